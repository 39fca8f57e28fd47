"""A damaged page costs what lay in it and nothing else, and what is lost for good is said.

The database has the files of a home of which the agent has deleted half: of those nothing is left
but what is archived. Any page may be damaged; the files on the disk are as they were.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults.amounts import SCALE, spread, times
from tests.support.writing import agent, assistant, at, call, result, user, write, write_bytes

from assoc_ingest.__main__ import main
from assoc_ingest.errors import DamagedError
from assoc_ingest.files import archive, walk
from assoc_ingest.sources import SOURCES
from assoc_ingest.store import database as databases
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_same, connect, dump
from assoc_ingest.upkeep import recover
from assoc_ingest.upkeep.rebuild import Rebuilt, rebuild
from assoc_ingest.upkeep.recover import Lost
from assoc_ingest.upkeep.verify import verify

SIZE = 16384
LARGE = 3  # the transcript with several frames, on many pages; it is deleted


def key(number: int) -> str:
    return f"{number:08x}-1111-4222-8333-444455556666"


def project(number: int) -> str:
    return f"projects/-srv-p{number % 3}"


def transcript(number: int) -> str:
    return f"{project(number)}/{key(number)}.jsonl"


def write_home(home: Path) -> list[Path]:
    """Write a file of each kind that matters, sixty in all; return them."""
    chance = random.Random(5)
    files = []
    for n in range(22):
        more = {"sessionId": key(n), "cwd": f"/srv/p{n % 3}"}
        lines = []
        for k in range(2 + n % 3):
            noise = chance.randbytes(4000 if n % 7 == 0 else 20).hex()
            lines += [
                user(f"wish {n} {k} {noise}", f"u{n}-{k}", second=k, **more),
                assistant(
                    [{"type": "text", "text": f"answer {n} {k}"}, call(f"c{n}-{k}", command="ls")],
                    f"a{n}-{k}", f"u{n}-{k}", second=k, id=f"m{n}-{k}",
                    usage={"input_tokens": 3, "output_tokens": 5}, **more,
                ),
                user([result(f"c{n}-{k}", f"out {n}")], f"r{n}-{k}", f"a{n}-{k}", k, **more),
            ]  # fmt: skip
        if n == LARGE:
            lines += [
                user(f"large {k} {chance.randbytes(40_000).hex()}", f"l{k}", second=k, **more)
                for k in range(30)
            ]
        files.append(write(home, transcript(n), *lines))
        if n % 4 == 0:
            name = f"a{n:07x}"
            place = f"{project(n)}/{key(n)}/subagents/agent-{name}"
            said = [user(f"aside {n} {k}", f"s{n}-{k}", second=k, **more) for k in range(3)]
            files.append(write(home, f"{place}.jsonl", *(agent(name, line) for line in said)))
            meta = {"agentType": "Explore", "description": f"look {n}", "toolUseId": f"c{n}-0"}
            files.append(write(home, f"{place}.meta.json", meta))
    for n in range(8):
        task = {"id": "1", "subject": f"Sow {n}", "description": "", "status": "pending",
                "blocks": [], "blockedBy": []}  # fmt: skip
        files.append(write(home, f"tasks/{key(n)}/1.json", task))
    for n in range(7):
        todo = [{"content": f"Hoe {n}", "status": "pending", "activeForm": "Hoeing"}]
        name = f"todos/{key(n)}-agent-{key(n)}.json"
        files.append(write_bytes(home, name, json.dumps(todo).encode()))
        files.append(write_bytes(home, f"plans/plan-{n}.md", f"# Plan {n}\n\ndig\n".encode()))
    prompts = [
        {"display": f"wish {n}", "pastedContents": {}, "timestamp": 1768903200000 + n,
         "project": f"/srv/p{n % 3}", "sessionId": key(n)}
        for n in range(22)
    ]  # fmt: skip
    files.append(write(home, "history.jsonl", *prompts))
    member = {"agentId": "lead@crew", "name": "lead", "agentType": "lead", "cwd": "/srv/p1"}
    team = {"name": "crew", "leadAgentId": "lead@crew", "leadSessionId": key(1)}
    files.append(write(home, "teams/crew/config.json", {**team, "members": [member]}))
    for who in ("lead", "bob"):
        items = [{"from": "bob", "text": f"hello {who} {k}", "timestamp": at(k)} for k in range(3)]
        file = f"teams/crew/inboxes/{who}.json"
        files.append(write_bytes(home, file, json.dumps(items).encode()))
    assert len(files) == 60
    return files


@dataclass
class Case:
    """A database, the home that it was read from, and what it held."""

    database: Path
    home: Path
    rows: dict[str, list[dict[str, object]]]
    gone: set[str]
    """Paths of the files that the agent deleted."""

    def copy(self, place: Path) -> Path:
        """Copy the database, to be damaged."""
        (place / "copy").mkdir(exist_ok=True)
        return Path(shutil.copy(self.database, place / "copy" / "index.db"))


@pytest.fixture
def home(case: Case, tmp_path: Path) -> Path:
    """A copy of the home of the case, to be changed."""
    return Path(shutil.copytree(case.home, tmp_path / "home"))


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    place = tmp_path_factory.mktemp("damaged")
    home, database = place / "home", place / "index.db"
    files = write_home(home)
    sync(database, [home])
    large = home / transcript(LARGE)
    gone = [file for number, file in enumerate(files) if number % 2 == 0 and file != large]
    gone = [*gone[:-1], large]
    assert len(gone) == 30
    for file in gone:
        file.unlink()
    sync(database, [home])
    execute(database, "vacuum")  # a table lies on pages side by side
    paths = {file.relative_to(home).as_posix() for file in gone}
    return Case(database, home, shown(database), paths)


def execute(database: Path, *statements: str) -> list[tuple[object, ...]]:
    """Run statements; return the rows of the last."""
    connection = connect(database)
    rows: list[tuple[object, ...]] = []
    for statement in statements:
        rows = [tuple(row) for row in connection.execute(statement)]
    connection.close()
    return rows


def shown(database: Path) -> dict[str, list[dict[str, object]]]:
    """Return all rows, but for what the archive holds: a damaged one cannot be read as a whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assoc_ingest.files.archive.read", lambda *_: ())
        return dump(database)


def overwrite(database: Path, numbers: Iterable[int], fill: Callable[[int], bytes] = bytes) -> None:
    """Damage pages; they are numbered from 1."""
    with database.open("r+b") as file:
        for number in numbers:
            file.seek((number - 1) * SIZE)
            file.write(fill(SIZE))


def pages_of(database: Path, *names: str) -> list[int]:
    """Return the pages of tables, and the first ones of indexes: without it none leads to them."""
    roots = dict(execute(database, "select name, rootpage from sqlite_master"))
    numbers = []
    with recover.opened_pages(database) as raw:
        for name in names:
            numbers += sorted(raw.leaves_of(int(str(roots[name]))))
    return numbers


def with_indexes(database: Path, table: str) -> list[str]:
    """Return the name of a table and those of its indexes."""
    rows = execute(database, f"select name from sqlite_master where tbl_name = '{table}'")
    return [str(name) for (name,) in rows if not str(name).endswith(("_insert", "_delete"))]


Frames = list[tuple[str, int, bytes, bytes]]


def frames(database: Path) -> Frames:
    """Return of each frame the path, the start, the stored and the original bytes."""
    rows = execute(
        database,
        'select f.path, a.start, a."end", a.data from archive a join files f on f.id = a.file_id',
    )
    return [
        (path, start, data, archive.unpacked(archive.Frame(start, end, data), 0))
        for path, start, end, data in rows  # type: ignore[misc]
    ]


def missing(before: Frames, database: Path) -> set[tuple[str, int]]:
    """Return the frames, by path and start, of which not every byte is in its place any more."""
    ids = dict(execute(database, "select path, id from files order by generation desc"))
    connection = connect(database)
    try:
        there = {
            path: list(archive.sound_pieces(connection, int(str(id_)))) for path, id_ in ids.items()
        }
    finally:
        connection.close()
    return {
        (path, start)
        for path, start, _, original in before
        if not any(
            data[start - at_ : start - at_ + len(original)] == original
            for at_, data in there.get(path, [])
            if at_ <= start
        )
    }


def lies_on(data: bytes, page: bytes) -> bool:
    """Has a page a part of these stored bytes: their beginning, or, behind a pointer, more?"""
    return data[:40] in page or page[4:44] in data


# -- any page --------------------------------------------------------------------------------------


def sampled(case: Case, number: int) -> list[int]:
    """Return pages of all of the database, and those on which most depends."""
    names = ("sources", "files", "archive", "sqlite_autoindex_archive_1", "forgotten")
    last = case.database.stat().st_size // SIZE
    if SCALE > 1:
        return spread(last, 4 * times(number))
    return sorted({*spread(last, number), *pages_of(case.database, *names)[:9]})


@pytest.mark.slow
@pytest.mark.parametrize(("how", "number"), [("zeroed", 8), ("garbled", 4)])
def test_a_page_costs_no_archived_byte_that_lay_on_another(
    case: Case, place: Path, how: str, number: int
) -> None:
    chance, seen = random.Random(7), Counter[str]()
    before = frames(case.database)
    whole = case.database.read_bytes()
    pages = sampled(case, number)
    for page in pages:
        database = case.copy(place)
        overwrite(database, [page], bytes if how == "zeroed" else chance.randbytes)
        damaged = database.read_bytes()
        try:
            rebuilt = rebuild(database)
        except databases.DatabaseError:  # what lists its tables, or the first page of all
            seen["refused"] += 1
            assert database.read_bytes() == damaged
            assert [path.name for path in database.parent.glob("*damaged*")] == []
        else:
            sync(database, [case.home])
            content = whole[(page - 1) * SIZE : page * SIZE]
            seen[judge(case, database, before, rebuilt, content)] += 1
        shutil.rmtree(database.parent)
    assert seen["whole"] > number // 2
    assert seen["lost"] > 1
    assert 0 < seen["refused"] < len(pages) / 6


def judge(case: Case, database: Path, before: Frames, rebuilt: Rebuilt, page: bytes) -> str:
    """Assert that what is lost lay on the page, that it is said, and that all else is there."""
    lost_frames = missing(before, database)
    stored = {(path, start): data for path, start, data, _ in before}
    for path, start in lost_frames:
        assert lies_on(stored[path, start], page), f"{path} at {start} lay elsewhere"
        assert path in case.gone, f"{path} is on the disk"
    paths = {path for path, _ in lost_frames}
    assert {file.path for file in rebuilt.lost} == paths
    assert rebuilt.is_whole or paths or rebuilt.only_here
    verdict = verify(database)
    assert {finding.path for finding in verdict.findings} == paths
    assert all("bytes are lost" in finding.problem for finding in verdict.findings)
    rows = shown(database)
    if paths:  # their rows say that bytes of them are missing, and nothing else is lost
        for table in ("files", "issues"):
            rows[table] = case.rows[table]
    assert_same(rows, case.rows)
    return "lost" if paths else "whole"


def nothing_is_found_in_pages(patch: pytest.MonkeyPatch) -> None:
    """What lies behind a damaged page is given up."""
    patch.setattr(recover, "rows_on_stray_pages", lambda *_: iter(()))


def indexes_tell_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recover, "traces_in_indexes", lambda *_: recover.Traces())


def rows_of_lost_files_go(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        recover,
        "_recreate_parents",
        lambda connection, *_: recover._drop_broken_references(connection),
    )


def gaps_are_passed_over(patch: pytest.MonkeyPatch) -> None:
    """The archive is taken for whole, and rows are derived from what there is."""
    patch.setattr("assoc_ingest.store.replay.ArchivedBytes.gaps", [])
    patch.setattr("assoc_ingest.store.replay.ArchivedBytes.are_as_read", True)
    patch.setattr(
        "assoc_ingest.files.archive.read_whole",
        lambda connection, file_id, size: archive.read_around_gaps(connection, file_id, size),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "table", "number"),
    [
        (nothing_is_found_in_pages, "archive", 0),
        (indexes_tell_nothing, "files", 1),
        (rows_of_lost_files_go, "files", 1),
        (rows_of_lost_files_go, "sources", 0),
        (gaps_are_passed_over, "archive", 1),
    ],
)
def test_a_planted_bug_is_caught(
    case: Case,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    bug: Callable[[pytest.MonkeyPatch], None],
    table: str,
    number: int,
) -> None:
    database = case.copy(place)
    page = pages_of(database, table)[number]
    content = database.read_bytes()[(page - 1) * SIZE : page * SIZE]
    overwrite(database, [page])
    bug(monkeypatch)
    rebuilt = rebuild(database)
    sync(database, [case.home])
    with pytest.raises(AssertionError):
        judge(case, database, frames(case.database), rebuilt, content)


# -- pages that lie together -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["messages"]])
def test_files_of_which_nothing_tells_the_path_are_kept_and_found_again(
    case: Case, place: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    """All pages of `files` and its indexes are lost: rows, or lines, tell what they can."""
    database = case.copy(place)
    before = frames(database)
    names = [*with_indexes(database, "files"), *with_indexes(database, "sources"), *more]
    overwrite(database, pages_of(database, *names))
    rebuilt = rebuild(database)
    assert rebuilt.is_whole
    assert rebuilt.rows_lost == dict.fromkeys(["files", "sources", *more], 1)
    assert len(rebuilt.files_unnamed) > 20
    execute(database, "insert into messages_fts (messages_fts, rank) values ('integrity-check', 1)")
    report = sync(database, [case.home])
    assert report.missing_roots == []
    kept = sorted(original for *_, original in frames(database))
    assert kept == sorted(original for *_, original in before)
    on_disk = [row for row in case.rows["files"] if not row["is_gone"]]
    rows = shown(database)
    assert [row for row in rows["files"] if not row["is_gone"]] == on_disk
    told = {str(row["path"]) for row in rows["files"] if row["is_gone"]}
    assert {path for path in told if not walk.is_unnamed(path)} <= case.gone
    assert {transcript(number) for number in range(22)} & case.gone <= told
    for table in ("messages", "tool_calls", "responses"):
        by_session = Counter(str(row["session_id"]) for row in rows[table])
        assert by_session == Counter(str(row["session_id"]) for row in case.rows[table])
    verdict = verify(database)
    assert verdict.findings == []
    assert {warning.path for warning in verdict.warnings if warning.check == "path"} == told
    assert sync(database, [case.home]).files_read == 0
    to = place / "restored"
    assert main(["restore", "-d", str(database), "--all", "--to", str(to)]) == 0
    assert capsys.readouterr().out.count("written  ") == 60


@pytest.mark.slow
def test_what_belongs_to_a_conversation_can_be_forgotten_though_its_path_is_lost(
    case: Case, place: Path
) -> None:
    database = case.copy(place)
    overwrite(database, pages_of(database, *with_indexes(database, "files")))
    rebuild(database)
    numbers = [n for n in range(0, 8, 4) if transcript(n) in case.gone]
    assert numbers
    for number in numbers:
        assert sum(_mentions(database, number)) > 5
        forget(database, key(number))
        assert sum(_mentions(database, number)) == 0
    sync(database, [case.home])
    assert verify(database).findings == []


def _mentions(database: Path, number: int) -> list[int]:
    """Count what is left of a conversation: in the archive by its words, and in some tables."""
    words = (key(number), f"wish {number} ", f"aside {number} ", f"look {number}", f"Sow {number}")
    kept = [original for *_, original in frames(database)]
    found = [sum(word.encode() in original for original in kept) for word in words]
    for table, column in (("todos", "content"), ("tasks", "subject"), ("prompts", "text")):
        rows = execute(database, f"select {column} from {table}")
        texts = {f"Hoe {number}", f"Sow {number}", f"wish {number}"}
        found.append(sum(text in texts for (text,) in rows))
    return found


@pytest.mark.slow
def test_a_file_that_grew_while_its_path_was_lost_is_found_again(home: Path, place: Path) -> None:
    database = place / "index.db"
    sync(database, [home])
    overwrite(database, pages_of(database, *with_indexes(database, "files")))
    rebuild(database)
    sync(database, [])  # while nothing is told of another root, this one is looked at
    moved = home / transcript(1)
    with moved.open("ab") as file:
        file.write(b'{"type":"user","sessionId":"x","message":{"content":"more"}}\n')
    sync(database, [home])
    fresh = place / "fresh.db"
    sync(fresh, [home])
    assert_same(shown(database), shown(fresh))
    assert verify(database).findings == []


@pytest.mark.slow
def test_another_file_of_its_name_does_not_take_the_place_of_one_whose_row_was_lost(
    case: Case, home: Path, place: Path
) -> None:
    """That it was gone is lost with the row: what it was still must not be written over."""
    database = place / "index.db"
    shutil.copy(case.database, database)
    execute(database, f"update sources set root = '{home}'")
    before = frames(database)
    overwrite(database, pages_of(database, "files"))
    assert rebuild(database).is_whole
    assert verify(database).findings == []
    other = {"sessionId": key(LARGE), "cwd": "/srv/p0"}
    write(home, transcript(LARGE), user("quite another", "o1", **other))
    sync(database, [home])
    kept = [original for *_, original in frames(database)]
    assert all(original in kept for *_, original in before)
    generations = execute(
        database, f"select generation from files where path = '{transcript(LARGE)}'"
    )
    assert generations == [(0,), (1,)]
    expected = [row for row in case.rows["files"] if str(row["path"]) not in case.gone]
    assert [row for row in shown(database)["files"] if row["path"] in paths(expected)] == expected
    assert verify(database).findings == []


def paths(rows: list[dict[str, object]]) -> set[object]:
    return {row["path"] for row in rows}


@pytest.mark.slow
def test_a_file_that_lost_its_row_and_bytes_is_read_again_in_its_place(
    home: Path, place: Path
) -> None:
    write_home(home)
    database = place / "index.db"
    sync(database, [home])
    execute(database, "vacuum")
    expected = dump(database)
    lost_pages = [*pages_of(database, "files"), *overflow_of(database, LARGE)[3:5]]
    overwrite(database, [*lost_pages, pages_of(database, "archive")[2]])
    rebuilt = rebuild(database)
    assert rebuilt.is_whole
    assert len(rebuilt.files_damaged) > 3
    sync(database, [home])
    assert verify(database).findings == []
    assert_same(dump(database), expected)


def test_no_source_claims_a_path_that_stands_in_for_another() -> None:
    for name, source in SOURCES.items():
        assert source.claim(tuple(walk.placeholder(7).split("/"))) is None, name


@pytest.mark.slow
def test_rows_and_frames_that_are_both_lost_leave_what_is_left_of_either(
    case: Case, place: Path
) -> None:
    """A log has a gap in its archive, and rows of it are lost: some there, some elsewhere."""
    database = case.copy(place)
    before = {row[0] for row in execute(database, OF_LARGE)}
    leaves = pages_of(database, "messages")[1:]
    overwrite(database, [*leaves[1::3], *overflow_of(database, LARGE)[8:12]])
    rebuilt = rebuild(database)
    ((path, count),) = [(file.path, file.bytes) for file in rebuilt.lost]
    assert path == transcript(LARGE)
    assert 100_000 < count < 1_200_000
    sync(database, [case.home])
    rows, gaps = execute(database, OF_LARGE), gaps_of(database, LARGE)
    assert sum(end - start for start, end in gaps) == count
    missing = before - {row[0] for row in rows}
    assert missing, "a row and its bytes were lost"
    assert all(any(low <= offset < high for low, high in gaps) for offset in missing)
    kept = {row[0] for row in rows if any(low <= row[0] < high for low, high in gaps)}
    assert kept, "a row whose bytes are lost is there"
    again = rebuild(database)
    assert (again.lost, again.rows_lost) == (rebuilt.lost, {})
    assert execute(database, OF_LARGE) == rows


OF_LARGE = (
    "select byte_offset, block, text, tool_text from messages where file_id ="
    f" (select id from files where path = '{transcript(LARGE)}') order by 1, 2"
)


def overflow_of(database: Path, number: int) -> list[int]:
    """Return the pages that hold the archive of a transcript, but for the beginnings of frames."""
    stored = b"".join(data for path, _, data, _ in frames(database) if path == transcript(number))
    with recover.opened_pages(database) as raw:
        return [page for page in range(2, raw.count + 1) if raw.page(page)[4:60] in stored]


def gaps_of(database: Path, number: int) -> list[tuple[int, int]]:
    ((file_id, offset),) = execute(
        database, f"select id, offset from files where path = '{transcript(number)}'"
    )
    connection = connect(database)
    try:
        return archive.gaps(connection, int(str(file_id)), int(str(offset)))
    finally:
        connection.close()


def test_a_gap_in_the_archive_is_said_wherever_it_matters(
    case: Case, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = case.copy(place)
    before = frames(database)
    overwrite(database, overflow_of(database, LARGE)[3:4])
    assert main(["rebuild", "-d", str(database), "--json"]) == 1
    out, err = capsys.readouterr()
    told = json.loads(out)
    ((start, end),) = gaps_of(database, LARGE)
    assert told["bytes_lost"] == end - start > 0
    assert [file["path"] for file in told["lost"]] == [transcript(LARGE)]
    assert f"{end - start:,} archived bytes of 1 file are lost" in err
    assert str(told["kept_aside"]) in err
    sync(database, [case.home])
    (finding,) = verify(database).findings
    assert finding.problem.startswith(f"{end - start:,} of ")
    assert (finding.path, finding.byte_offset) == (transcript(LARGE), start)
    assert "These bytes cannot be recovered" in finding.remedy
    main(["status", "-d", str(database)])
    assert walk.BYTES_LOST in capsys.readouterr().out
    to = place / "to"
    assert main(["restore", "-d", str(database), key(LARGE), "--to", str(to)]) == 1
    out, err = capsys.readouterr()
    assert f"with spaces in place of {end - start} lost bytes" in out
    whole = b"".join(data for path, _, _, data in sorted(before) if path == transcript(LARGE))
    blank = b" " * (end - start - 1) + b"\n"
    assert (to / transcript(LARGE)).read_bytes() == whole[:start] + blank + whole[end:]
    assert len(whole) > end, "what lies behind the gap is there"


@pytest.mark.slow
def test_what_is_on_the_disk_is_not_lost(home: Path, place: Path) -> None:
    database = place / "index.db"
    sync(database, [home])
    expected = dump(database)
    overwrite(database, pages_of(database, "archive")[1:])
    rebuilt = rebuild(database)
    assert rebuilt.is_whole
    assert len(rebuilt.files_damaged) == 30
    assert {finding.remedy for finding in verify(database).findings} == {"assoc-ingest sync"}
    sync(database, [home])
    assert verify(database).findings == []
    assert_same(dump(database), expected)


def test_a_new_version_that_derives_again_loses_no_row_of_a_damaged_file(
    case: Case, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It happens in the midst of a sync, and nobody is asked."""
    database = case.copy(place)
    before = execute(database, OF_LARGE)
    execute(
        database,
        "delete from archive where id in (select a.id from archive a join files f"
        f" on f.id = a.file_id where f.path = '{transcript(LARGE)}' and a.start > 0)",
        "update archive set data = x'00' where file_id in (select id from files"
        f" where path = '{transcript(1)}')",
    )
    monkeypatch.setattr(databases, "DERIVATION", databases.DERIVATION + 1)
    assert sync(database, [case.home]).files_rebuilt > 40
    assert execute(database, OF_LARGE) == before
    assert_same(but_files(shown(database)), but_files(case.rows))
    assert [finding.path for finding in verify(database).findings] == [transcript(LARGE)]


def but_files(rows: dict[str, list[dict[str, object]]]) -> dict[str, list[dict[str, object]]]:
    """Leave out what says that bytes are lost."""
    return {table: found for table, found in rows.items() if table not in ("files", "issues")}


# -- what no file tells ----------------------------------------------------------------------------


def forget(database: Path, *keys: str) -> None:
    for name in keys:
        assert main(["forget", "-d", str(database), name]) == 0


@pytest.mark.slow
def test_what_is_forgotten_stays_so_when_its_list_is_damaged(home: Path, place: Path) -> None:
    database = place / "index.db"
    sync(database, [home])
    forget(database, key(1), key(5))
    stones = "select session_key, path, root from forgotten order by 1, 2"
    listed = execute(database, stones)
    rows = shown(database)
    overwrite(database, pages_of(database, "forgotten"))
    assert rebuild(database).is_whole
    assert execute(database, stones) == listed
    assert execute(database, "select distinct is_pending from forgotten") == [(1,)]
    assert sync(database, [home]).rows == 0
    assert_same(shown(database), rows)


@pytest.mark.slow
def test_a_list_of_the_forgotten_that_is_lost_is_said(
    home: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home, "history.jsonl", {"display": "x", "timestamp": 1, "sessionId": key(1)})
    database = place / "index.db"
    sync(database, [home])
    forget(database, key(1))
    capsys.readouterr()
    overwrite(database, pages_of(database, *with_indexes(database, "forgotten")))
    assert main(["rebuild", "-d", str(database)]) == 1
    assert "list of forgotten conversations may be incomplete" in capsys.readouterr().err
    (warning,) = [w for w in verify(database).warnings if w.check == "forgotten"]
    assert "1 file" in warning.problem


@pytest.mark.slow
def test_tasks_that_are_gone_come_back_from_their_documents(home: Path, place: Path) -> None:
    """A task that no document held any more keeps its key, and what was seen to change in it."""
    database = place / "index.db"
    for status in ("pending", "done"):
        write(home, "tasks/sowing/1.json", {"id": "1", "subject": "Sow", "status": status})
        sync(database, [home])
    (home / "tasks/sowing/1.json").unlink()
    sync(database, [home])
    changes = execute(database, "select * from task_changes")
    assert len(changes) == 1
    expected = execute(database, "select id, subject, status, gone_at from tasks order by id")
    overwrite(database, pages_of(database, "tasks"))
    assert rebuild(database).is_whole
    sync(database, [home])
    rows = execute(database, "select id, subject, status, gone_at from tasks order by id")
    assert rows == expected
    assert execute(database, "select * from task_changes") == changes
    assert verify(database).findings == []
    execute(database, "delete from archive where file_id = (select max(file_id) from tasks)")
    overwrite(database, pages_of(database, "tasks"))
    rebuilt = rebuild(database)
    assert rebuilt.only_here == ["tasks"]
    ((subject, status, list_key, task_id),) = execute(
        database, "select subject, status, list_key, id from tasks where list_key = 'sowing'"
    )
    assert (subject, status, list_key) == (None, "done", "sowing")
    assert execute(database, "select * from task_changes where task_id = " + str(task_id))


def test_a_table_that_came_with_a_later_version_is_not_lost(case: Case, place: Path) -> None:
    database = case.copy(place)
    execute(
        database,
        "drop table forgotten",
        "delete from _sqlite_migrations where name like '%forgotten'",
    )
    overwrite(database, pages_of(database, "messages")[1:2])
    with databases.locked(database):
        salvaged = recover.recover(database)
    assert list(salvaged.holes) == ["messages"]
    assert rebuild(database).is_whole
    assert verify(database).findings == []


# -- the damaged database is kept ------------------------------------------------------------------


def damaged(case: Case, place: Path) -> tuple[Path, int]:
    """Damage a page; return the database and the number of the page."""
    database = case.copy(place)
    page = pages_of(database, "archive")[1]
    overwrite(database, [page])
    return database, page


@pytest.mark.slow
def test_a_damaged_database_is_kept_as_it_was(
    case: Case, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database, page = damaged(case, place)
    connection = sqlite3.connect(database)  # something is in the log only
    connection.execute("pragma wal_autocheckpoint = 0")
    connection.execute("update sources set gone_at = 'in the log'")
    connection.commit()
    assert main(["rebuild", "-d", str(database)]) == 1
    connection.close()
    (kept,) = recover.kept_aside(database)
    assert kept.name.startswith("index.db.damaged-2")
    assert str(kept) in capsys.readouterr().err
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert execute(kept, "select gone_at from sources") == [("in the log",)]
    assert execute(database, "pragma integrity_check") == [("ok",)]
    assert kept.read_bytes()[(page - 1) * SIZE : page * SIZE] == bytes(SIZE)
    (warning,) = [w for w in verify(database).warnings if w.check == "kept aside"]
    assert str(kept) in warning.problem
    sync(database, [case.home])
    overwrite(database, pages_of(database, "messages")[1:2])
    rebuild(database)
    assert len(recover.kept_aside(database)) == 2
    left = {path.name.split(".")[-1] for path in database.parent.iterdir()}
    assert {name.partition("-")[0] for name in left} == {"db", "damaged", "lock"}


@pytest.mark.slow
def test_without_room_to_keep_it_nothing_is_changed(
    case: Case,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    database, _ = damaged(case, place)
    before = database.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(recover.shutil, "copyfileobj", full)
        assert main(["rebuild", "-d", str(database)]) == 5
    free = shutil.disk_usage(place)._replace(free=database.stat().st_size * 2)
    with monkeypatch.context() as patch:
        patch.setattr(recover.shutil, "disk_usage", lambda _: free)
        assert main(["rebuild", "-d", str(database)]) == 5
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2
    assert all("Nothing was changed. Free some space" in error for error in errors)
    assert database.read_bytes() == before
    assert sorted(path.name for path in database.parent.iterdir()) == ["index.db", "index.db.lock"]
    assert main(["rebuild", "-d", str(database)]) == 1


# -- pages as they lie -----------------------------------------------------------------------------


@pytest.mark.slow
def test_every_row_and_every_entry_is_found_in_the_pages(case: Case) -> None:
    found: dict[tuple[int, int], list[list[object]]] = {}
    with recover.opened_pages(case.database) as raw:
        for leaf in raw.leaves():
            for row in filter(None, map(leaf.row, leaf.cells())):
                found.setdefault((row.id, len(row.values)), []).append(row.values[1:])
        for table in sorted(case.rows):
            names = execute(case.database, f"select name from pragma_table_info('{table}')")
            stored = ", ".join(f'"{name}"' for (name,) in names)  # without those that are computed
            for id_, *values in execute(case.database, f"select {stored} from {table}"):
                assert values in found[int(str(id_)), len(values) + 1], table
        indexes = execute(
            case.database,
            "select i.rootpage, i.tbl_name, i.sql from sqlite_master i"
            " join sqlite_master t on t.name = i.tbl_name and t.sql like '%strict'"
            " where i.type = 'index'",
        )
        assert len(indexes) > 90
        for root, table, sql in indexes:
            ids = [entry[-1] for entry in raw.entries(int(str(root)))]
            expected = [id_ for (id_,) in execute(case.database, f"select id from {table}")]
            is_partial = " where " in str(sql)
            assert set(ids) <= set(expected) if is_partial else sorted(ids) == sorted(expected)


@pytest.mark.slow
def test_no_page_makes_the_reading_of_pages_fail(case: Case, place: Path) -> None:
    """Bytes anywhere in a page that still looks like one: numbers lead anywhere."""
    chance, lost_values, rows = random.Random(3), 0, 0
    whole = case.database.read_bytes()
    roots = [root for (root,) in execute(case.database, "select rootpage from sqlite_master")]
    for _ in range(times(12)):
        data = bytearray(whole)
        for start in range(0, len(data), SIZE):
            for _ in range(3):
                place_ = start + chance.choice([*range(1, 12), chance.randrange(SIZE)])
                data[max(place_, 200)] = chance.choice([0, 1, 127, 128, 255, chance.randrange(256)])
        database = place / "odd.db"
        database.write_bytes(data[: len(data) - chance.choice([0, 0, 100, SIZE, 5 * SIZE])])
        with recover.opened_pages(database) as raw:
            for leaf in raw.leaves():
                for row in filter(None, map(leaf.row, leaf.cells())):
                    rows += 1
                    lost_values += isinstance(row.values[-1], Lost) if row.values else 0
            for root in roots:
                raw.leaves_of(int(str(root or 0)))
                list(raw.entries(int(str(root or 0))))
    assert rows > 1000
    assert lost_values > 10


@pytest.mark.slow
def test_bytes_that_changed_within_pages_end_in_a_sound_database(case: Case, place: Path) -> None:
    """Nothing says that such a page is damaged, but what stands on it."""
    chance, whole, mended = random.Random(9), case.database.read_bytes(), 0
    for _ in range(times(10)):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 8, 60])):
            start = chance.randrange(SIZE * 9, len(data))
            data[start : start + 16] = chance.randbytes(len(data[start : start + 16]))
        database = case.copy(place)
        database.write_bytes(data)
        try:
            rebuilt = rebuild(database)
        except DamagedError:
            pass
        else:
            sync(database, [case.home], SyncOptions(full=True))
            assert execute(database, "pragma integrity_check") == [("ok",)]
            paths = {finding.path for finding in verify(database).findings}
            assert paths <= {file.path for file in rebuilt.lost}
            mended += 1
        shutil.rmtree(database.parent)
    assert mended > times(10) / 2
