"""Whatever happens to the files, and whenever a sync runs or dies, the tables end as those of one
sync from scratch.

A state machine changes a home as agents, users and disks do, syncs now and then (in tiny batches,
so that every border between reads and transactions is met), kills some syncs, and compares with
the oracle: a new database, synced once. Files that are gone cannot be read by an oracle, so it is
given what the archive holds of them, and loses it again.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.faults.amounts import times
from tests.support.child import Child
from tests.support.pieces import Killed, killed_at
from tests.support.strategies import lines, objects
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    THIRD,
    Object,
    dumps,
    in_memory,
    wait_for_clock,
    write_bytes,
)

from assoc_ingest.files import archive
from assoc_ingest.files.tail import open_regular
from assoc_ingest.sync.plan import Report
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import Dump, assert_same, check, connect, dump
from assoc_ingest.testing.promises import read_in_pieces
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.verify import verify

SIDE = f"{PROJECT}/{SESSION}"
LOGS = (
    f"{PROJECT}/{SESSION}.jsonl",
    f"{PROJECT}/{OTHER}.jsonl",
    f"projects/-srv-other/{OTHER}.jsonl",
    f"{PROJECT}/2026-01-20-{THIRD}.jsonl",
    f"{PROJECT}/notes.jsonl",
    f"{PROJECT}/agent-a1b2c3d.jsonl",
    f"{SIDE}/subagents/agent-a1b2c3d.jsonl",
    f"{SIDE}/subagents/agent-acompact-77.jsonl",
    f"{SIDE}/subagents/agent-ab.jsonl",
    f"{SIDE}/subagents/workflows/wf_1/agent-ab.jsonl",
    f"{SIDE}/subagents/workflows/wf_1/journal.jsonl",
)
DOCUMENTS = (
    f"{SIDE}/subagents/agent-a1b2c3d.meta.json",
    f"{SIDE}/subagents/workflows/wf_1/agent-ab.meta.json",
    f"{SIDE}/workflows/wf_1.json",
)
META = [
    b'{"agentType":"Explore","description":"Survey","toolUseId":"toolu_1"}',
    b'{"agentType":"Plan",\n "toolUseId": "toolu_2"}\n',
    b'{"taskId":"b1","workflowProgress":[{"agentId":"ab","label":"one","phaseTitle":"p"}]}',
    b'{"type":"started","agentId":"ab"}\n{"type":"result","agentId":"ab"}\n',
]
BROKEN_KEPT = ("agent_meta", "workflow", "task", "inbox", "team", "todos", "session_index")
BROKEN = [b"", b"{", b"[]", b"\xff"]

logs = st.sampled_from(LOGS)
some_lines = st.lists(lines, min_size=1, max_size=6)


class Homes(RuleBasedStateMachine):
    """A home that changes, and its index."""

    template: Path
    documents: tuple[str, ...] = DOCUMENTS

    @initialize()
    def start(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="homes-", dir=in_memory()))
        self.home = self.place / "home"
        (self.home / PROJECT).mkdir(parents=True)
        self.database = Path(shutil.copy(self.template, self.place / "index.db"))
        self.clock = 1_768_900_000_000_000_000
        self.torn: dict[str, bytes] = {}

    def teardown(self) -> None:
        if hasattr(self, "place"):
            shutil.rmtree(self.place)

    # -- what happens to files -------------------------------------------------------------------

    def _changed(self, path: Path, *, by_clock: bool = True) -> None:
        """Give a changed file a time of its own: the disk's clock is slower than this test."""
        if by_clock:
            self.clock += 1_000_000_007
            os.utime(path, ns=(self.clock, self.clock))

    def _files(self) -> list[str]:
        found = (path for path in self.home.rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.home)) for path in found)

    def _some_file(self, data: st.DataObject) -> Path:
        return self.home / data.draw(st.sampled_from(self._files()))

    @rule(path=logs, new=some_lines)
    def append(self, path: str, new: list[bytes]) -> None:
        self._append(path, b"".join(line + b"\n" for line in new))

    @rule(path=logs, new=some_lines, data=st.data())
    def append_torn(self, path: str, new: list[bytes], data: st.DataObject) -> None:
        """The agent is still writing: the rest comes with the next append."""
        written = b"".join(line + b"\n" for line in new)
        cut = data.draw(st.integers(0, len(written)))
        self._append(path, written[:cut])
        self.torn[path] = written[cut:]

    @rule(path=logs, last=objects, before=some_lines, end=st.sampled_from([b"", b"\n", b"\r\n"]))
    def append_without_a_line_feed(
        self, path: str, last: Object, before: list[bytes], end: bytes
    ) -> None:
        """The last object is whole; what is written next may end its line or stick to it."""
        self._append(path, b"".join(line + b"\n" for line in before) + dumps(last))
        self.torn[path] = end

    def _append(self, path: str, written: bytes) -> None:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as stream:
            stream.write(self.torn.pop(path, b"") + written)
        self._changed(file)

    @rule(path=st.sampled_from(DOCUMENTS), content=st.sampled_from(META + BROKEN))
    def write_document(self, path: str, content: bytes) -> None:
        self._write_document(path, content)

    def _write_document(self, path: str, content: bytes) -> None:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        self._changed(file)

    @precondition(lambda self: any(map(self._is_there, self.documents)))
    @rule(data=st.data(), broken=st.sampled_from(BROKEN))
    def break_and_mend(self, data: st.DataObject, broken: bytes) -> None:
        """Half of a document is seen, and then the whole again."""
        path = data.draw(st.sampled_from([p for p in self.documents if self._is_there(p)]))
        whole = (self.home / path).read_bytes()
        self._write_document(path, broken)
        self._sync()
        self._write_document(path, whole)

    def _is_there(self, path: str) -> bool:
        return (self.home / path).exists()

    @precondition(lambda self: self._files())
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        file = self._some_file(data)
        os.truncate(file, data.draw(st.integers(0, file.stat().st_size)))
        self._changed(file)

    @precondition(lambda self: self._files())
    @rule(data=st.data(), new=some_lines, keep=st.booleans())
    def rewrite(self, data: st.DataObject, new: list[bytes], keep: bool) -> None:
        """Another history, with or without the same beginning, smaller or larger."""
        file = self._some_file(data)
        before = file.read_bytes()
        cut = data.draw(st.integers(0, len(before))) if keep else 0
        file.write_bytes(before[:cut] + b"".join(line + b"\n" for line in new))
        self._changed(file)

    @precondition(lambda self: self._files())
    @rule(data=st.data())
    def remove_a_line(self, data: st.DataObject) -> None:
        file = self._some_file(data)
        kept = file.read_bytes().splitlines(keepends=True)
        if kept:
            del kept[data.draw(st.integers(0, len(kept) - 1))]
        file.write_bytes(b"".join(kept))
        self._changed(file)

    @precondition(lambda self: self._files())
    @rule(data=st.data(), by_clock=st.booleans())
    def flip_a_byte(self, data: st.DataObject, by_clock: bool) -> None:
        """The size stays; when the time of the file is put back, only its ctime tells."""
        file = self._some_file(data)
        content = bytearray(file.read_bytes())
        if not content:
            return
        wait_for_clock(self.place)
        before = file.stat()
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1
        file.write_bytes(content)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        self._changed(file, by_clock=by_clock)

    @precondition(lambda self: self._files())
    @rule(data=st.data(), more=some_lines, is_same=st.booleans())
    def replace_by_rename(self, data: st.DataObject, more: list[bytes], is_same: bool) -> None:
        file = self._some_file(data)
        before = file.read_bytes() if is_same else b""
        other = file.with_name("written.tmp")
        other.write_bytes(before + b"".join(line + b"\n" for line in more))
        self._changed(other)
        other.replace(file)

    @precondition(lambda self: self._files())
    @rule(data=st.data(), to=logs, is_grown=st.booleans(), more=lines)
    def rename(self, data: st.DataObject, to: str, is_grown: bool, more: bytes) -> None:
        file, target = self._some_file(data), self.home / to
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)
        if is_grown:
            with target.open("ab") as stream:
                stream.write(more + b"\n")
            self._changed(target)

    @precondition(lambda self: (self.home / PROJECT).exists())
    @rule(name=st.sampled_from(["-srv-moved", "-srv-other", "-srv-Demo"]))
    def rename_project(self, name: str) -> None:
        target = self.home / "projects" / name
        if not target.exists():
            (self.home / PROJECT).rename(target)

    @precondition(lambda self: self._files())
    @rule(data=st.data(), to=logs, is_renamed=st.booleans())
    def fork(self, data: st.DataObject, to: str, is_renamed: bool) -> None:
        """The desktop app resumes: the new file repeats the beginning of the old one."""
        file, target = self._some_file(data), self.home / to
        before = file.read_bytes()
        content = before[: data.draw(st.integers(0, len(before)))]
        if is_renamed:
            content = content.replace(SESSION.encode(), OTHER.encode())
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        self._changed(target)

    @precondition(lambda self: self._files())
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self._some_file(data).unlink()

    @precondition(lambda self: self._files())
    @rule(data=st.data(), more=st.none() | some_lines, is_seen=st.booleans())
    def recreate(self, data: st.DataObject, more: list[bytes] | None, is_seen: bool) -> None:
        """It is gone, a sync sees that or not, and it is back: the same, grown or another."""
        file = self._some_file(data)
        before = file.read_bytes()
        file.unlink()
        if is_seen:
            self._sync()
        is_grown = data.draw(st.booleans())
        file.parent.mkdir(parents=True, exist_ok=True)
        if more is None:
            file.write_bytes(before)
        else:
            new = b"".join(line + b"\n" for line in more)
            file.write_bytes(before + new if is_grown else new)
        self._changed(file)

    @rule()
    def delete_project(self) -> None:
        shutil.rmtree(self.home / PROJECT, ignore_errors=True)

    @precondition(lambda self: hasattr(os, "geteuid") and self._files())
    @rule(data=st.data())
    def forbid_and_sync(self, data: st.DataObject) -> None:
        """What cannot be read is named, and keeps what was read of it."""
        file = self._some_file(data)
        before = dump(self.database)
        file.chmod(0)
        with forbidden(file):
            report = self._sync()
        file.chmod(0o600)
        self._changed(file)
        assert [place for place, _ in report.unreadable] in ([], [str(file)])
        assert len(dump(self.database)["files"]) >= len(before["files"])

    # -- syncs -----------------------------------------------------------------------------------

    def _sync(self, into: Path | None = None, *, full: bool = False) -> Report:
        (self.home / PROJECT).mkdir(parents=True, exist_ok=True)
        return sync(into or self.database, [self.home], SyncOptions(full=full))

    @rule(chunk=st.integers(1, 2000), batch=st.sampled_from([1, 500, 10**9]))
    def sync_in_pieces(self, chunk: int, batch: int) -> None:
        with read_in_pieces(chunk, batch):
            self._sync()
        check(self.database, self.home)

    @rule(step=st.integers(1, 400), chunk=st.integers(100, 900), is_compared=st.booleans())
    def sync_that_is_killed(self, step: int, chunk: int, is_compared: bool) -> None:
        """After a kill the database is as after some commit; nothing is half."""
        try:
            with killed_at(step), read_in_pieces(chunk, batch=1):
                self._sync()
            event("survived")
        except Killed:
            event("killed")
        check(self.database)
        if is_compared:
            self.sync_and_compare(full=False)

    @precondition(lambda self: hasattr(os, "fork"))
    @rule(chunk=st.integers(100, 2000))
    def sync_in_a_new_process(self, chunk: int) -> None:
        """Nothing but the database remembers what was read."""
        with read_in_pieces(chunk, batch=500):
            assert isinstance(Child(self._sync).result(), Report)
        check(self.database, self.home)

    @precondition(lambda self: hasattr(os, "fork"))
    @rule(chunk=st.integers(100, 2000))
    def two_syncs(self, chunk: int) -> None:
        """One of them may find the other at work."""
        with read_in_pieces(chunk, batch=500):
            results = [child.result() for child in [Child(self._sync), Child(self._sync)]]
        done = [result for result in results if isinstance(result, Report)]
        assert done, results
        assert all("BusyError" in result for result in results if result not in done), results
        event(f"{len(done)} of two syncs were done")
        check(self.database, self.home)

    @rule(chunk=st.integers(100, 2000), batch=st.sampled_from([500, 10**9]))
    def rebuild(self, chunk: int, batch: int) -> None:
        """What is derived from the archive is what syncs derived from the files."""
        before = comparable(self.database)
        with read_in_pieces(chunk, batch):
            rebuild(self.database)
        check(self.database)
        after = comparable(self.database)
        assert_same({**after, "files": []}, {**before, "files": []})
        assert verify(self.database).findings == []

    @rule(full=st.booleans())
    def sync_and_compare(self, full: bool) -> None:
        self._sync(full=full)
        check(self.database, self.home)
        assert self._sync().files_read == 0
        assert_same(comparable(self.database), comparable(self._oracle()))

    def _oracle(self) -> Path:
        """Return a database synced once; what can no longer be read was there before."""
        oracle = self._new()
        stages = self._only_archived()
        if stages:
            event("with files that are gone or broken")
            with tempfile.TemporaryDirectory(dir=self.place) as kept:
                self.home.rename(f"{kept}/home")
                for files in stages:
                    for path, content in files.items():
                        write_bytes(self.home, path, content)
                    self._sync(oracle)
                    shutil.rmtree(self.home)
                    self._sync(oracle)
                shutil.rmtree(self.home)
                Path(kept, "home").rename(self.home)
        self._sync(oracle)
        return oracle

    def _new(self) -> Path:
        oracle = self.place / "oracle.db"
        oracle.unlink(missing_ok=True)
        return Path(shutil.copy(self.template, oracle))

    def _only_archived(self) -> list[dict[str, bytes]]:
        """Return what was read of files that are gone, and of documents that are broken.

        Each generation of a path is a stage of its own: the next came when it was gone.
        """
        connection = connect(self.database)
        rows = connection.execute(
            "select id, path, generation from files where gone_at is not null"
            f" or (issue_count > 0 and kind in {BROKEN_KEPT} and head_hash is not null)"
            " order by generation"
        ).fetchall()
        stages: list[dict[str, bytes]] = [
            {} for _ in range(rows[-1]["generation"] + 1 if rows else 0)
        ]
        for row in rows:
            data = b"".join(archive.read(connection, row["id"]))
            stages[row["generation"]][row["path"]] = data
        connection.close()
        return stages


def comparable(database: Path) -> Dump:
    """Return a dump without how a document was broken when it was seen last: it is gone."""
    shown = dump(database)
    lost = {f["path"] for f in shown["files"] if f["is_gone"] and f["kind"] in BROKEN_KEPT}
    shown["issues"] = [row for row in shown["issues"] if row["file_id"] not in lost]
    for file in shown["files"]:
        if file["path"] in lost:
            file["issue_count"] = file["line_count"] = None
    return shown


@contextmanager
def forbidden(file: Path) -> Iterator[None]:
    """Refuse to open a file, as its mode does to everybody but root."""
    if os.geteuid():
        yield
        return

    def open_unless_forbidden(path: str) -> int:
        if path == str(file):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return open_regular(path)

    with (
        patch("assoc_ingest.files.stores.open_regular", open_unless_forbidden),
        patch("assoc_ingest.files.tail.open_regular", open_unless_forbidden),
    ):
        yield


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_incremental_equals_full(part: int, template: Path) -> None:
    """24 histories of 30 steps with `--all`, in four parts that can run side by side."""
    Homes.template = template
    steps = max(30, settings().stateful_step_count)
    examples = max(2, settings().max_examples // 10) * times(1, 1)
    run_state_machine_as_test(
        Homes, settings=settings(max_examples=examples, stateful_step_count=steps)
    )
