"""`prune --gone` leaves what a sync from scratch of the remaining files would leave."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from tests.support.cases import DEMO, homes_of, of_groups
from tests.support.shell import Shell
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    dumps,
    user,
    write,
    write_bytes,
)
from tests.test_incremental_equals_full import BROKEN, DOCUMENTS, Homes, comparable, some_lines

from assoc_ingest.errors import UsageError
from assoc_ingest.files.changes import replay
from assoc_ingest.files.exclusions import LEFT_OUT
from assoc_ingest.files.stores import opened
from assoc_ingest.files.tail import pieces
from assoc_ingest.files.walk import FoundFile, Root, Walk, recognised, walk
from assoc_ingest.records import Issue
from assoc_ingest.source import LOG
from assoc_ingest.sources import SOURCES
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_as_rebuilt, assert_same, check, connect, dump
from assoc_ingest.upkeep.forget import Target, forget, remember, tombstones
from assoc_ingest.upkeep.prune import prune_gone


def roots_of(home: Path) -> set[Root]:
    try:
        return set(recognised(home, SOURCES))
    except UsageError:
        return set()


INBOX = "teams/garden/inboxes/ada.json"

LISTS: dict[str, list[bytes]] = {
    "tasks/garden/1.json": [
        dumps({"id": "1", "subject": subject, "blocks": ["2"]}) for subject in ("dig", "sow")
    ],
    "teams/garden/config.json": [
        dumps({"name": "garden", "leadSessionId": SESSION, "members": [{"name": name}]})
        for name in ("ada", "bo")
    ],
    f"todos/{OTHER}-agent-{OTHER}.json": [dumps([{"content": word}]) for word in ("rake", "weed")],
    f"{PROJECT}/sessions-index.json": [
        dumps({"version": 1, "entries": [{"sessionId": key, "summary": "Beds"} for key in keys]})
        for keys in ([SESSION], [OTHER, "named"], [])
    ],
    INBOX: [dumps([{"from": "bo", "text": text}]) for text in ("dig", "sow")],
}
"""Documents with entries, and what they say at one time and another."""


class PrunedHomes(Homes):
    """A home that changes, and an index from which things are removed now and then.

    Whatever was removed in whatever order, the rows are those that the archive makes.
    """

    documents = (*DOCUMENTS, *LISTS)

    @rule(data=st.data(), path=st.sampled_from(sorted(LISTS)))
    def write_list(self, data: st.DataObject, path: str) -> None:
        content = data.draw(st.sampled_from([*LISTS[path], *BROKEN]))
        self._write_document(path, content)

    @rule(new=some_lines)
    def append_unsigned(self, new: list[bytes]) -> None:
        """To a log that is a transcript only while a list names it, or a line says so."""
        lines = (line.replace(b'"sessionId"', b'"session"') for line in new)
        self._append(f"{PROJECT}/named.jsonl", b"".join(line + b"\n" for line in lines))

    @rule(full=st.booleans())
    def sync_and_compare(self, full: bool) -> None:
        self._sync(full=full)
        check(self.database, self.home)
        assert_as_rebuilt(self.database)

    @rule()
    def prune(self) -> None:
        """Without a sync before: the index may be behind the home."""
        prune_gone(self.database, None, dry_run=False)
        check(self.database)
        assert_as_rebuilt(self.database)

    @rule()
    def prune_and_compare(self) -> None:
        self._sync()
        prune_gone(self.database, None, dry_run=False)
        check(self.database, self.home)
        assert not [file for file in dump(self.database)["files"] if file["is_gone"]]
        assert_as_rebuilt(self.database)
        if not any(issue["reason"] == LEFT_OUT for issue in dump(self.database)["issues"]):
            assert_same(comparable(self.database), comparable(self._oracle()))

    @rule(data=st.data(), with_copies=st.booleans())
    def forget(self, data: st.DataObject, with_copies: bool) -> None:
        shown = dump(self.database)
        names = {file["path"] for file in shown["files"]}
        names |= {session["session_key"] for session in shown["sessions"]}
        if not names:
            return
        target = Target(data.draw(st.sampled_from(sorted(names))))
        forget(
            self.database, target, with_copies=with_copies, dry_run=False, announce=lambda _: None
        )
        check(self.database)
        assert_as_rebuilt(self.database)

    @rule(data=st.data())
    def remember(self, data: st.DataObject) -> None:
        names = {stone.path or stone.session_key for stone in tombstones(self.database)}
        if names:
            remember(self.database, data.draw(st.sampled_from(sorted(filter(None, names)))))
            assert_as_rebuilt(self.database)

    def _new(self) -> Path:
        """Return a database that leaves out what ours does."""
        oracle = super()._new()
        with closing(connect(oracle)) as connection:
            connection.execute("attach ? as ours", (str(self.database),))
            connection.execute("insert into forgotten select * from ours.forgotten")
        return oracle


@pytest.mark.slow
def test_pruned_equals_scratch(template: Path) -> None:
    PrunedHomes.template = template
    examples = settings().max_examples // 6
    run_state_machine_as_test(
        PrunedHomes, settings=settings(max_examples=examples, stateful_step_count=20)
    )


@pytest.mark.slow
@of_groups
def test_a_file_that_is_pruned_leaves_no_trace(
    group: str, fresh: Callable[[], Path], place: Path
) -> None:
    """Each file of every golden case in turn is deleted, and pruned: one of each home at a time."""
    leave_no_trace(homes_of(group, place), fresh, place)


@pytest.mark.slow
def test_a_first_sync_reads_a_home_without_any_of_its_files_as_a_later_one_does(
    fresh: Callable[[], Path], place: Path
) -> None:
    """T88: a home whose only log was deleted was read by a later sync and not by a first one."""
    shutil.copytree(DEMO, place / "demo")
    leave_no_trace(sorted((place / "demo").iterdir()), fresh, place)


def leave_no_trace(homes: list[Path], fresh: Callable[[], Path], place: Path) -> None:
    roots = {home: roots_of(home) for home in homes}
    files = {home: sorted(filter(Path.is_file, home.rglob("*"))) for home in homes}
    synced: list[Path] = []
    for number in range(max(map(len, files.values()))):
        homes = [home for home in homes if len(files[home]) > number]
        if homes != synced:  # what is done with is no burden for the others
            whole, synced = fresh(), homes
            sync(whole, homes)
        hidden = {}
        for home in homes:
            file = files[home][number]
            aside = file.rename(place / f"{home.name}.hidden")
            if roots_of(home) == roots[home]:
                hidden[aside] = file
            else:
                assert not has_files(roots[home] - roots_of(home)), file
                aside.rename(file)
        if hidden:
            database, scratch = Path(shutil.copy(whole, place / "one.db")), fresh()
            sync(database, homes)
            prune_gone(database, None, dry_run=False)
            check(database)
            sync(scratch, homes)
            assert_same(dump(database), dump(scratch))
        for aside, file in hidden.items():
            aside.rename(file)


def has_files(roots: set[Root]) -> bool:
    return any(is_of(root, found) for root in roots for found in walk(root, Walk()))


def is_of(root: Root, found: FoundFile) -> bool:
    """Is a file one of the source? A log of any name can be another program's, or empty."""
    claim = root.source.claim(found.parts)
    if claim is None or root.source.shape(claim) != LOG:
        return claim is not None
    with opened(found.location) as descriptor:
        stretches = list(replay(root.source, claim, pieces(descriptor)))
    return any(not isinstance(record, Issue) for each in stretches for record in each.records)


# -- what is chosen, and what is said ------------------------------------------------------------


def message(text: str) -> dict[str, str]:
    return {"from": "bo", "text": text, "timestamp": "2026-01-20T10:00:00.000Z"}


@pytest.fixture
def home(place: Path) -> Path:
    """A home with two conversations and an inbox, of which one and a message are then deleted."""
    home = place / "home"
    write(home, TRANSCRIPT, user("Rake the beds"))
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("Sow beans", "u2", sessionId=OTHER))
    write_bytes(home, INBOX, dumps([message("vanishes"), message("stays")]))
    return home


@pytest.fixture
def gone(home: Path, shell: Shell) -> Shell:
    assert shell("sync", str(home)) == 0
    (home / TRANSCRIPT).unlink()
    write_bytes(home, INBOX, dumps([message("stays")]))
    assert shell("sync") == 0
    return shell


def test_a_dry_run_says_what_would_go_and_changes_nothing(gone: Shell) -> None:
    before = dump(gone.database)
    assert gone("prune", "--gone", "--dry-run") == 0
    assert SESSION in gone.out
    assert "Rake the beds" in gone.out
    assert OTHER not in gone.out
    assert "Would remove 1 file" in gone.err
    assert "1 team message" in gone.err
    assert_same(dump(gone.database), before)


def test_what_is_gone_goes_and_is_named(gone: Shell, home: Path, fresh: Callable[[], Path]) -> None:
    told = gone.json("prune", "--gone", "--json")
    assert isinstance(told, dict)
    assert [row["session_key"] for row in told["sessions"]] == [SESSION]
    assert (told["files"], told["messages"], told["inbox_items"]) == (1, 1, 1)
    scratch = fresh()
    sync(scratch, [home])
    assert_same(dump(gone.database), dump(scratch))
    assert gone("prune", "--gone") == 0
    assert "nothing to remove" in gone.err


def test_only_what_is_gone_for_long_enough_goes(gone: Shell) -> None:
    before = dump(gone.database)
    assert gone("prune", "--gone", "--before", "1d") == 0
    assert_same(dump(gone.database), before)
    assert gone("prune", "--gone", "--before", "0m") == 0
    assert len(dump(gone.database)["sessions"]) == 1


def test_nothing_goes_unasked(gone: Shell) -> None:
    before = dump(gone.database)
    assert gone("prune") == 2
    assert "--gone" in gone.err
    assert_same(dump(gone.database), before)


def test_a_path_that_was_used_twice_is_one_again(
    home: Path, gone: Shell, fresh: Callable[[], Path]
) -> None:
    """The first generation goes; the second is what a sync from scratch finds."""
    write(home, TRANSCRIPT, user("Another beginning", "u9"))
    assert gone("sync") == 0
    assert {file["generation"] for file in dump(gone.database)["files"]} == {0, 1}
    assert gone("prune", "--gone") == 0
    scratch = fresh()
    sync(scratch, [home])
    assert_same(dump(gone.database), dump(scratch))


def test_a_reference_finds_the_same_session_in_another_root(
    place: Path, shell: Shell, fresh: Callable[[], Path]
) -> None:
    """Both homes have the session; what TheAssociate noted on it means the one that is left."""
    one, two = place / "one", place / "two"
    for home, uuid in ((one, "u1"), (two, "u7")):
        write(home, TRANSCRIPT, user("Rake the beds", uuid))
    event = {"session_id": SESSION, "hook_event_name": "Stop"}
    write(one, "theassociate/hook-events.jsonl", event)
    write(one, f"{PROJECT}/{OTHER}.jsonl", user("Sow beans", "u2", sessionId=OTHER))
    assert shell("sync", str(one), str(two)) == 0
    (one / TRANSCRIPT).unlink()
    assert shell("sync") == 0
    assert shell("prune", "--gone") == 0
    scratch = fresh()
    sync(scratch, [one, two])
    (noted,) = dump(shell.database)["hook_events"]
    assert noted["session_id"] == f"claude:two:{SESSION}"
    assert_same(dump(shell.database), dump(scratch))


def test_a_missing_database_is_not_made(shell: Shell) -> None:
    assert shell("prune", "--gone") == 4
    assert not shell.database.exists()


def test_who_says_no_changes_nothing(
    home: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked: whether to prune, to forget or to rewrite."""
    write(home, TRANSCRIPT, user("Rake the beds"))
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("Sow beans", "u2", sessionId=OTHER))
    sync(shell.database, [home])
    (home / TRANSCRIPT).unlink()
    sync(shell.database, [home])
    before, stat = dump(shell.database), shell.database.stat()
    monkeypatch.setattr("assoc_ingest.terminal.is_terminal", lambda _: True)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    for arguments in (["prune", "--gone"], ["forget", OTHER], ["compact"]):
        assert shell(*arguments) == 1, arguments
        assert "Nothing was changed." in shell.err
        assert dump(shell.database) == before, arguments
    assert shell.database.stat().st_mtime_ns == stat.st_mtime_ns  # it was not rewritten either
