"""`verify` finds each kind of damage, names what repairs it, and is silent if nothing is wrong."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.support.cases import DEMO, homes_of, of_groups
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    assistant,
    at,
    jsonl,
    user,
    wait_for_clock,
    write,
    write_bytes,
)

from assoc_ingest.__main__ import main
from assoc_ingest.cli import cli
from assoc_ingest.errors import DatabaseError
from assoc_ingest.files import archive, changes, tail
from assoc_ingest.files.changes import claim_of, replay
from assoc_ingest.files.exclusions import AgentFiles
from assoc_ingest.sources import SOURCES
from assoc_ingest.store import database as database_module
from assoc_ingest.store.database import snapshot, writing
from assoc_ingest.store.known_files import known_file
from assoc_ingest.store.rows import COLUMNS, TABLES, archived
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import rows
from assoc_ingest.testing.promises import grow, nth_logs, read_in_pieces, some_cuts
from assoc_ingest.upkeep import verify as check_environment
from assoc_ingest.upkeep import verify as check_rows
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.verify import Finding, Verdict, fresh_schema, verify

Fresh = Callable[[], Path]

CORPUS = Path(os.environ.get("ASSOC_REAL_CORPUS", "/nowhere"))
REBUILD = "assoc-ingest rebuild"


def nothing(verdict: Verdict) -> None:
    """Fail with what was found."""
    assert verdict.findings == []
    assert verdict.counts["files"] > 0


def told(verdict: Verdict) -> list[tuple[str, str | None, int | None, str]]:
    """Return what was found: which check, in which file, at which byte, and what repairs it."""
    return [(f.check, f.path, f.byte_offset, f.remedy) for f in verdict.findings]


# -- nothing is wrong ------------------------------------------------------------------------------


@of_groups
def test_nothing_is_found_in_the_cases(group: str, fresh: Fresh, place: Path) -> None:
    homes, database = homes_of(group, place), fresh()
    sync(database, homes)
    nothing(verify(database))
    if logs := nth_logs(homes, 0):
        database = fresh()
        grow({log: some_cuts(log, 4) for log in logs}, database, homes)
        nothing(verify(database))


@of_groups
def test_nothing_is_found_however_it_was_read(group: str, fresh: Fresh, place: Path) -> None:
    homes, database = homes_of(group, place), fresh()
    with read_in_pieces(150, batch=3000):
        sync(database, homes)
    with read_in_pieces(70, batch=70):
        nothing(verify(database))
    for home in homes:
        shutil.rmtree(home)
    nothing(verify(database))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="ASSOC_REAL_CORPUS names no transcripts")
def test_nothing_is_found_in_real_homes(fresh: Fresh) -> None:
    database = fresh()
    sync(database, sorted(CORPUS.glob("homes/*")))
    verdict = verify(database)
    nothing(verdict)
    assert verdict.counts["messages"] > 1000
    assert verdict.counts["files"] == verdict.counts["files_on_disk"]


def test_a_line_too_long_to_be_decoded_is_found_where_it_lies(
    fresh: Fresh, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (tail, changes):
        monkeypatch.setattr(module, "MAX_LINE", 20_000)
    monkeypatch.setattr(tail, "CHUNK", 5_000)
    home, database = place / "home", fresh()
    lines = [jsonl(user("x" * size, f"u{size}")) for size in (10, 19_000, 21_000, 90_000, 20)]
    write_bytes(home, TRANSCRIPT, b"".join(lines))
    sync(database, [home])
    assert texts_and_issues(database) == (3, 2)
    nothing(verify(database))


def texts_and_issues(database: Path) -> tuple[int, int]:
    (counts,) = rows(
        database, "select (select count(*) from messages), (select count(*) from issues)"
    )
    return counts


# -- rows ------------------------------------------------------------------------------------------

DEMO_SESSION = "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301"
DEMO_TRANSCRIPT = f"projects/-srv-fernhill/{DEMO_SESSION}.jsonl"
IN_DEMO = f"file_id = (select id from files where path = '{DEMO_TRANSCRIPT}')"
A_TEXT = f"(select max(id) from messages where kind = 'text' and copy_of is null and {IN_DEMO})"


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with all demonstration homes and the database that a sync of them makes."""
    directory = tmp_path_factory.mktemp("demo")
    directory.chmod(0o700)
    shutil.copytree(DEMO, directory / "homes")
    sync(directory / "index.db", sorted((directory / "homes").iterdir()))
    return directory


@pytest.fixture
def demo(synced: Path, place: Path) -> Path:
    """A copy of that database, to be damaged; the homes stay where they are."""
    return Path(shutil.copy(synced / "index.db", place / "index.db"))


def damage(database: Path, *statements: str) -> list[tuple[object, ...]]:
    """Run statements on the database as nobody should; return the rows of the last."""
    connection = sqlite3.connect(database, isolation_level=None)
    rows: list[tuple[object, ...]] = []
    for statement in statements:
        before = connection.total_changes
        rows = connection.execute(statement).fetchall()
        if statement.startswith(("update", "delete")):
            assert connection.total_changes > before, statement
    connection.close()
    return rows


def offset_of(database: Path, row: str, table: str = "messages") -> int:
    ((offset,),) = damage(database, f"select byte_offset from {table} where id = {row}")
    assert isinstance(offset, int)
    return offset


def test_nothing_is_found_in_the_demonstration_homes(demo: Path) -> None:
    nothing(verify(demo))


@pytest.mark.parametrize(
    "change",
    [
        f"update messages set text = 'never said' where id = {A_TEXT}",
        f"update messages set timestamp = null where id = {A_TEXT}",
        f"update messages set is_meta = 1 where id = {A_TEXT}",
        f"update messages set block = block + 7 where id = {A_TEXT}",
        f"delete from messages where id = {A_TEXT}",
    ],
)
def test_a_message_that_is_not_what_its_line_says_is_found(demo: Path, change: str) -> None:
    offset = offset_of(demo, A_TEXT)
    damage(demo, change)
    assert told(verify(demo)) == [("rows", DEMO_TRANSCRIPT, offset, REBUILD)]


def test_a_message_that_no_line_says_is_found(demo: Path) -> None:
    columns = "kind, text, is_meta, is_sidechain, is_error, is_cut, has_cjk, session_id, file_id"
    damage(
        demo,
        f"insert into messages ({columns}, byte_offset, byte_length, block)"
        f" select {columns}, 3, 1, 5 from messages where id = {A_TEXT}",
        "insert into messages_fts (rowid, text, tool_text)"
        " select id, text, tool_text from messages where id = (select max(id) from messages)",
    )
    assert told(verify(demo)) == [("rows", DEMO_TRANSCRIPT, 3, REBUILD)]


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("tool_calls", "target"),
        ("tool_calls", "result_id"),
        ("usage", "input_tokens"),
        ("transcripts", "first_cwd"),
        ("prompts", "text"),
        ("pastes", "text"),
        ("hook_events", "payload"),
        ("tasks", "subject"),
        ("todos", "content"),
        ("plans", "text"),
        ("plan_lines", "text"),
        ("documents", "text"),
        ("team_members", "agent_type"),
        ("inbox_items", "text"),
        ("tool_result_files", "text"),
        ("agent_metas", "description"),
        ("session_entries", "title"),
        ("line_types", "type"),
    ],
)
def test_a_row_of_any_table_that_its_file_does_not_say_is_found(
    demo: Path, table: str, column: str
) -> None:
    other = "null" if column.endswith("_id") else f"{column} || '0'"
    of_files = " and channel = 'file'" if table in ("tasks", "todos", "plans") else ""
    rows = damage(
        demo,
        f"select max(id) from {table} where {column} is not null{of_files}",
    )
    row = rows[0][0]
    damage(demo, f"update {table} set {column} = {other} where id = {row}")
    ((path,),) = damage(
        demo,
        f"select path from files where id = (select file_id from {table} where id = {row})",
    )
    found = verify(demo).findings
    assert [(f.check, f.path, f.remedy) for f in found] == [("rows", path, REBUILD)]
    assert table in found[0].problem


@pytest.mark.slow
def test_every_column_that_a_record_has_is_compared(demo: Path) -> None:
    """Nothing lists the columns by hand, so one that a record gains is compared, too."""
    ignored, compared = set(), set()
    with (
        closing(sqlite3.connect(demo, isolation_level=None)) as connection,
        fresh_schema() as schema,
        check_rows.scratch(schema) as scratch,
    ):
        for kind, table in TABLES.items():
            of_files = "channel = 'file'" if table in ("tasks", "todos", "plans") else "true"
            for column in COLUMNS[kind]:
                row = connection.execute(
                    f'select id, file_id, typeof("{column}") from {table}'
                    f' where "{column}" is not null and {of_files} order by id desc'
                ).fetchone()
                if row is None:
                    continue
                other = f'"{column}" {"|| 0" if row[2] == "text" else "+ 1"}'
                with snapshot(connection):
                    connection.execute(
                        f'update {table} set "{column}" = {other} where id = {row[0]}'
                    )
                    found = differing_tables(connection, scratch, row[1])
                (compared if table in found else ignored).add(f"{table}.{column}")
    assert ignored == {
        "plans.modified_at", "documents.modified_at", "tool_result_files.size",
        "tool_result_files.tool_use_id", "prompts.pasted",
        "session_entries.started_at", "session_entries.ended_at",  # read as local times
    }  # fmt: skip
    assert len(compared) > 200, len(compared)


def differing_tables(
    connection: sqlite3.Connection, scratch: sqlite3.Connection, file_id: int
) -> set[str]:
    """Compare one file with its archive; return the tables in which it has other rows."""
    known = known_file(connection, file_id)
    assert known is not None
    ((source_id, kind),) = connection.execute(
        "select s.id, s.kind from files f join sources s on s.id = f.source_id where f.id = ?",
        (file_id,),
    )
    source = SOURCES[kind]
    claim = claim_of(source, known)
    assert claim is not None
    file = archived(source_id, AgentFiles(connection).with_files(source, source_id, claim), known)
    pieces = archive.read_whole(connection, file_id, known.checkpoint.offset)
    found = check_rows.compare(
        connection, scratch, source, file, replay(source, file.claim, pieces)
    )
    return {difference.table for difference in found.differences}


def test_a_row_that_is_missing_or_too_many_is_found(demo: Path) -> None:
    first = "(select min(id) from hook_events)"
    offset = offset_of(demo, first, "hook_events")
    damage(demo, f"delete from hook_events where id = {first}")
    assert told(verify(demo)) == [("rows", "hook-events.jsonl", offset, REBUILD)]


def test_an_issue_that_is_none_is_found(demo: Path) -> None:
    damage(
        demo,
        "insert into issues (reason, quarantined, file_id, byte_offset, byte_length)"
        f" select 'made up', 1, id, 5, 2 from files where path = '{DEMO_TRANSCRIPT}'",
    )
    assert told(verify(demo)) == [("rows", DEMO_TRANSCRIPT, 5, REBUILD)]


@pytest.mark.parametrize("column", ["line_count", "issue_count"])
def test_a_wrong_count_is_found(demo: Path, column: str) -> None:
    damage(demo, f"update files set {column} = {column} + 1 where path = 'history.jsonl'")
    assert told(verify(demo)) == [("counts", "history.jsonl", None, REBUILD)]


def test_a_row_beyond_the_offset_is_found(demo: Path) -> None:
    damage(demo, "update files set offset = offset - 10 where path = 'history.jsonl'")
    last = offset_of(demo, "(select max(id) from prompts)", "prompts")
    assert told(verify(demo)) == [("offset", "history.jsonl", last, REBUILD)]


def test_a_file_that_this_version_reads_otherwise_is_found(demo: Path) -> None:
    damage(demo, "update files set kind = 'prophecy' where path = 'history.jsonl'")
    assert told(verify(demo)) == [("rows", "history.jsonl", None, REBUILD)]


# -- what follows from rows ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "change"),
    [
        ("sessions", "update sessions set message_count = message_count + 1 where id = {session}"),
        ("sessions", "update sessions set prompt_count = prompt_count + 1 where id = {session}"),
        ("sessions", "update sessions set tool_call_count = 77 where id = {session}"),
        ("sessions", "update sessions set output_tokens = 7 where id = {session}"),
        ("responses", "update responses set byte_offset = byte_offset + 1 where id = 1"),
        ("rows", "update messages set session_id = null where id = {text}"),
        ("copies", "update messages set copy_of = id where id = {text}"),
        (
            "copies",
            "update messages set copy_of = (select min(id) from messages) where id = {text}",
        ),
        ("references", "update messages set subagent_id = 99999 where id = {text}"),
    ],
)
def test_what_does_not_follow_from_the_rows_is_found(demo: Path, check: str, change: str) -> None:
    session = f"(select id from sessions where session_key = '{DEMO_SESSION}')"
    damage(demo, change.format(session=session, text=A_TEXT))
    assert told(verify(demo)) == [(check, None, None, REBUILD)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "path", "place_in_it"),  # items know their places; a task is its document
    [("tasks", "tasks/sowing/1.json", None), ("inbox_items", "teams/crew/inboxes/bob.json", 0)],
)
def test_a_row_that_is_missing_of_a_document_that_is_gone_is_found_and_mended(
    table: str, path: str, place_in_it: int | None, fresh: Fresh, place: Path
) -> None:
    """Rows outlive such a document, so there may be more of them; but none may be missing."""
    home, database = place / "home", fresh()
    (home / PROJECT).mkdir(parents=True)
    write(home, "tasks/sowing/1.json", {"id": "1", "subject": "Sow", "status": "pending"})
    items = [{"from": "ada", "text": f"hello {n}", "timestamp": at(n)} for n in range(2)]
    write_bytes(home, "teams/crew/inboxes/bob.json", json.dumps(items).encode())
    sync(database, [home])
    for name in ("tasks/sowing/1.json", "teams/crew/inboxes/bob.json"):
        (home / name).unlink()
    sync(database, [home])
    nothing(verify(database))
    before = damage(database, f"select * from {table}")
    damage(database, f"delete from {table} where id = (select max(id) from {table})")
    assert told(verify(database)) == [("rows", path, place_in_it, REBUILD)]
    rebuild(database)
    nothing(verify(database))
    assert damage(database, f"select * from {table}") == before


def test_a_fork_with_two_originals_is_found(fresh: Fresh, place: Path) -> None:
    home, database = place / "home", fresh()
    lines = [user("a prompt", "u1"), assistant("an answer", "a1")]
    write(home, TRANSCRIPT, *lines)
    write(home, f"{PROJECT}/{OTHER}.jsonl", *[{**line, "sessionId": OTHER} for line in lines])
    sync(database, [home])
    nothing(verify(database))
    damage(database, "update messages set copy_of = null where copy_of is not null and uuid = 'a1'")
    assert told(verify(database)) == [("copies", None, None, REBUILD)]


# -- schema and indexes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "drop trigger messages_fts_delete",
        "drop trigger plans_fts_insert",
        "drop index messages_uuid",
        "drop view conversation",
        "drop table prompts_fts",
        "alter table links add column mood text",
        "create trigger mine after insert on plans begin select 1; end",
    ],
)
def test_a_schema_that_is_not_ours_is_found(demo: Path, change: str) -> None:
    damage(demo, change)
    found = verify(demo).findings
    assert {f.check for f in found} == {"schema"}
    assert all(change.split()[2] in f.problem for f in found)


def test_what_somebody_added_is_a_warning(demo: Path) -> None:
    damage(demo, "create table notes_of_mine (x)", "create index faster on links (title)")
    verdict = verify(demo)
    nothing(verdict)
    names = [warning.problem for warning in verdict.warnings if warning.check == "schema"]
    assert names == [
        "The index faster was not created by assoc-ingest.",
        "The table notes_of_mine was not created by assoc-ingest.",
    ]


@pytest.mark.parametrize(
    ("index", "columns"),
    [("messages_fts", "text, tool_text"), ("plans_fts", "title, text"), ("prompts_fts", "text")],
)
def test_an_index_that_forgot_a_row_is_found(demo: Path, index: str, columns: str) -> None:
    table = index.removesuffix("_fts")
    damage(
        demo,
        f"insert into {index} ({index}, rowid, {columns})"
        f" select 'delete', id, {columns} from {table}"
        f" where id = (select max(id) from {table} where text <> '')",
    )
    verdict = verify(demo)
    assert told(verdict) == [("index", None, None, REBUILD)]
    assert index in verdict.findings[0].problem


# -- the archive -----------------------------------------------------------------------------------


def frames_of(home: Path, database: Path) -> list[tuple[int, int, int]]:
    """Sync a transcript of several frames; return (id, start, end) of each."""
    lines = [user(f"line {n} " + "abcdefg " * 16_000, f"u{n}", second=n) for n in range(30)]
    write(home, TRANSCRIPT, *lines)
    sync(database, [home])
    rows = damage(database, 'select id, start, "end" from archive order by start')
    assert len(rows) > 2
    return rows  # type: ignore[return-value]


@pytest.mark.slow
def test_a_frame_that_is_missing_is_found(fresh: Fresh, place: Path) -> None:
    for which in (0, 1, -1):
        database = fresh()
        frames = frames_of(place / f"home{which}", database)
        damage(database, f"delete from archive where id = {frames[which][0]}")
        expected = [("archive", TRANSCRIPT, frames[which][1], REBUILD)]
        assert told(verify(database)) == expected


@pytest.mark.parametrize(
    "change",
    [
        "data = x'00'",
        "data = substr(data, 1, 100)",
        "data = cast(replace(data, substr(data, 200, 5), x'0102030405') as blob)",
        "data = (select data from archive where start = 0)",
        '"end" = "end" - 1',
        '"end" = start - 5',
        '"end" = 1 << 60',
        "codec = 'lzma'",
    ],
)
def test_a_frame_that_is_not_what_was_written_is_found(
    change: str, fresh: Fresh, place: Path
) -> None:
    database = fresh()
    number, start, _ = frames_of(place / "home", database)[1]
    damage(database, f"update archive set {change} where id = {number}")
    assert told(verify(database)) == [("archive", TRANSCRIPT, start, REBUILD)]


@pytest.mark.slow
def test_a_wrong_number_of_lines_of_a_frame_is_found_and_repaired(
    fresh: Fresh, place: Path
) -> None:
    database, recorded = fresh(), "select id, line_count from archive order by id"
    number, start, _ = frames_of(place / "home", database)[1]
    before = damage(database, recorded)
    damage(database, f"update archive set line_count = line_count + 1 where id = {number}")
    assert told(verify(database)) == [("counts", TRANSCRIPT, start, REBUILD)]
    rebuild(database)
    nothing(verify(database))
    assert damage(database, recorded) == before
    damage(database, "update archive set line_count = null")  # as an older version left them
    nothing(verify(database))
    rebuild(database)
    assert damage(database, recorded) == before


def test_frames_that_overlap_are_found(fresh: Fresh, place: Path) -> None:
    database = fresh()
    number, start, end = frames_of(place / "home", database)[1]
    damage(
        database,
        'insert into archive (file_id, start, "end", codec, data)'
        f' select file_id, start + 1, "end", codec, data from archive where id = {number}',
    )
    assert told(verify(database)) == [("archive", TRANSCRIPT, end, REBUILD)]
    assert start < end


def test_an_archive_of_other_bytes_is_found(fresh: Fresh, place: Path) -> None:
    database = fresh()
    number, start, end = frames_of(place / "home", database)[1]
    (frame,) = archive.Compressor().frames(start, b" " * (end - start - 1) + b"\n")
    connection = sqlite3.connect(database)
    with connection:
        connection.execute("update archive set data = ? where id = ?", (frame.data, number))
    connection.close()
    assert told(verify(database)) == [("archive", TRANSCRIPT, None, REBUILD)]


def test_what_is_lost_with_its_file_is_not_promised_back(fresh: Fresh, place: Path) -> None:
    home, database = place / "home", fresh()
    number, start, _ = frames_of(home, database)[1]
    (home / TRANSCRIPT).unlink()
    sync(database, [home])
    damage(database, f"delete from archive where id = {number}")
    (finding,) = verify(database).findings
    assert (finding.check, finding.byte_offset) == ("archive", start)
    assert finding.remedy.startswith("These bytes cannot be recovered")


@pytest.mark.parametrize("column", ["prefix_crc", "head_hash", "tail_hash"])
def test_a_checksum_that_is_not_that_of_the_archive_is_found(demo: Path, column: str) -> None:
    other = "prefix_crc + 1" if column == "prefix_crc" else "zeroblob(16)"
    damage(demo, f"update files set {column} = {other} where path = '{DEMO_TRANSCRIPT}'")
    assert told(verify(demo)) == [("archive", DEMO_TRANSCRIPT, None, REBUILD)]


# -- the files on the disk -------------------------------------------------------------------------


def pretend_unchanged(database: Path, file: Path) -> None:
    """Let the row of a file show its stat, as if no clock had noticed the change."""
    status = file.stat()
    connection = sqlite3.connect(database)
    with connection:
        connection.execute(
            "update files set size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?",
            (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino),
        )
    connection.close()


def test_a_byte_that_changed_unseen_is_found_and_mended(fresh: Fresh, place: Path) -> None:
    home, database = place / "home", fresh()
    file = write(home, TRANSCRIPT, user("a prompt", "u1"), assistant("an answer", "a1"))
    sync(database, [home])
    file.write_bytes(file.read_bytes().replace(b"a prompt", b"a hammer"))
    pretend_unchanged(database, file)
    assert told(verify(database)) == [("file", TRANSCRIPT, None, "assoc-ingest sync --full")]
    sync(database, [home], full_options())
    nothing(verify(database))


def full_options() -> SyncOptions:
    return SyncOptions(full=True)


@pytest.mark.slow
def test_an_edit_in_the_middle_of_a_large_file_that_grew_is_found(
    fresh: Fresh, place: Path
) -> None:
    home, database = place / "home", fresh()
    lines = [user(f"line {n} " + "abcdefg " * 4000, f"u{n}", second=n) for n in range(40)]
    file = write(home, TRANSCRIPT, *lines)
    assert file.stat().st_size > 1024 * 1024
    sync(database, [home])
    wait_for_clock(place)
    with file.open("r+b") as stream:
        stream.write(jsonl(*lines).replace(b"line 20 ", b"LINE 20 "))
        stream.write(jsonl(user("more", "u99")))
    expected = [("file", TRANSCRIPT, None, "assoc-ingest sync --full")]
    assert told(verify(database)) == expected
    sync(database, [home])
    assert told(verify(database)) == expected
    sync(database, [home], full_options())
    nothing(verify(database))


def test_a_document_that_changed_unseen_is_found(fresh: Fresh, place: Path) -> None:
    home, database = place / "home", fresh()
    (home / PROJECT).mkdir(parents=True)
    file = write_bytes(home, "plans/a-plan.md", b"# A plan\n")
    sync(database, [home])
    file.write_bytes(b"# A plot\n")
    pretend_unchanged(database, file)
    assert told(verify(database)) == [("file", "plans/a-plan.md", None, "assoc-ingest sync --full")]


def test_what_a_sync_will_see_is_a_warning(fresh: Fresh, place: Path) -> None:
    home, database = place / "home", fresh()
    names = [f"{PROJECT}/{key}.jsonl" for key in (SESSION, OTHER)]
    grown, gone = (write(home, name, user("a prompt", "u1")) for name in names)
    rewritten = write_bytes(home, "plans/a-plan.md", b"# A plan\n")
    sync(database, [home])
    wait_for_clock(place)
    with grown.open("ab") as stream:
        stream.write(jsonl(user("more", "u2")))
    rewritten.write_bytes(b"# Another plan\n")
    gone.unlink()
    verdict = verify(database)
    nothing(verdict)
    warnings = [(w.problem.split(",")[0], w.remedy) for w in verdict.warnings if w.check == "disk"]
    assert warnings == [
        ("2 files new or changed since the last sync", "assoc-ingest sync"),
        ("1 file gone since the last sync (rows are kept)", "assoc-ingest sync"),
    ]
    home.rename(place / "away")
    assert [w.check for w in verify(database).warnings if "missing" in w.problem] == ["disk"]


def test_a_document_that_is_broken_keeps_its_last_version(fresh: Fresh, place: Path) -> None:
    home, database = place / "home", fresh()
    (home / PROJECT).mkdir(parents=True)
    task = write_bytes(home, "tasks/a-list/1.json", b'{"id":"1","subject":"Sow"}')
    sync(database, [home])
    wait_for_clock(place)
    task.write_bytes(b'{"id":"1","subj')
    sync(database, [home])
    assert texts_and_issues(database) == (0, 1)
    nothing(verify(database))
    assert [w for w in verify(database).warnings if w.check == "disk"] == []


# -- garbled pages ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_garbled_page_is_found_and_never_a_bug(demo: Path, place: Path) -> None:
    """Findings, or an error that names a remedy; and most of them are noticed.

    Free space, which is most of a small database, is left out: nothing in it can be noticed.
    """
    whole = demo.read_bytes()
    used = [place for place, byte in enumerate(whole) if byte and place >= 100]
    chance, noticed = random.Random(7), 0
    for _ in range(60):
        data = bytearray(whole)
        at = chance.choice(used)
        size = chance.choice((1, 16, 400, 20_000))
        data[at : at + size] = chance.randbytes(len(data[at : at + size]))
        for ending in ("", "-wal", "-shm"):
            Path(f"{demo}{ending}").unlink(missing_ok=True)
        demo.write_bytes(data)
        result = CliRunner().invoke(cli, ["verify", "--db", str(demo), "--json"])
        error = result.exception
        if error is None or isinstance(error, SystemExit):
            assert result.exit_code == (0 if json.loads(result.stdout)["ok"] else 1)
        else:
            assert isinstance(error, DatabaseError), (at, size, repr(error))
        noticed += result.exit_code != 0
    assert noticed > 55


@pytest.mark.slow
def test_an_entry_that_an_index_lacks_is_found(demo: Path) -> None:
    """The page is as SQLite writes them, and the table is, too."""
    ((root,),) = damage(demo, "select rootpage from sqlite_master where name = 'prompts_project'")
    ((count,),) = damage(demo, "select count(*) from prompts")
    assert isinstance(root, int)
    with demo.open("r+b") as file:
        file.seek((root - 1) * 16384 + 3)
        entries = int.from_bytes(file.read(2))
        assert entries == count
        file.seek((root - 1) * 16384 + 3)
        file.write((entries - 1).to_bytes(2))
    findings = verify(demo).findings
    assert {finding.check for finding in findings} == {"pages"}
    assert any("prompts_project" in finding.problem for finding in findings)
    rebuild(demo)
    nothing(verify(demo))


def test_a_cut_database_names_the_remedy(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo.write_bytes(demo.read_bytes()[:-40_000])
    assert main(["verify", "--db", str(demo)]) in (1, 4)
    out, err = capsys.readouterr()
    assert REBUILD in out + err


# -- warnings --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_database_that_others_may_read_is_a_warning(demo: Path) -> None:
    demo.parent.chmod(0o700)
    demo.chmod(0o600)
    assert "mode" not in {w.check for w in verify(demo).warnings}
    demo.chmod(0o640)
    demo.parent.chmod(0o755)
    warnings = [w for w in verify(demo).warnings if w.check == "mode"]
    assert [w.remedy for w in warnings] == [f"chmod 600 '{demo}'", f"chmod 700 '{demo.parent}'"]


@pytest.mark.parametrize(
    ("directory", "marker", "check"),
    [
        ("work", ".git", "git"),
        ("Dropbox", None, "synced folder"),
        ("OneDrive - Fernhill", None, "synced folder"),
        ("notes", ".stfolder", "synced folder"),
    ],
)
def test_a_place_that_spreads_what_lies_in_it_is_a_warning(
    demo: Path, tmp_path: Path, directory: str, marker: str | None, check: str
) -> None:
    there = tmp_path / directory / "data"
    there.mkdir(parents=True)
    if marker:
        (there.parent / marker).mkdir()
    database = Path(shutil.copy(demo, there))
    assert check in {w.check for w in verify(database).warnings}
    assert check not in {w.check for w in verify(demo).warnings}


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/home/ada/assoc.db", "ext4"), ("/mnt/nas drive/assoc.db", "nfs4"), ("/mnt/x", "fuse.sshfs")],
)
def test_the_file_system_is_that_of_the_innermost_mount(path: str, expected: str) -> None:
    mounts = [
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw",
        "2 1 0:1 / /mnt rw shared:1 - fuse.sshfs host rw",
        r"3 2 0:2 / /mnt/nas\040drive rw - nfs4 host:/ rw",
    ]
    assert check_environment.file_system(Path(path), mounts) == expected


def test_a_network_file_system_is_a_warning(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_environment, "file_system", lambda path: "fuse.sshfs")
    assert "file system" in {w.check for w in verify(demo).warnings}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 0), False),
    ],
)
def test_a_version_of_sqlite_that_loses_pages_is_known(
    version: tuple[int, ...], expected: bool
) -> None:
    assert check_environment.is_wal_reset_version(version) is expected


# -- the command -----------------------------------------------------------------------------------


def test_the_command_tells_what_mends_it(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--db", str(demo)]) == 0
    assert capsys.readouterr().out.endswith(": no problems found.\n")
    damage(
        demo,
        "update files set line_count = 0, path = 'plans/\x1b[31m.md' where kind = 'plan'",
    )
    assert main(["verify", "--db", str(demo)]) == 1
    out = capsys.readouterr().out
    assert f"run: {REBUILD}" in out
    assert "plans/\\x1b[31m.md" in out
    assert "\x1b" not in out


def test_the_json_of_the_command(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(demo, "update files set line_count = 0 where path = 'history.jsonl'")
    assert main(["verify", "--db", str(demo), "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert set(shown) == {"ok", "findings", "warnings", "counts"}
    assert shown["ok"] is False
    assert set(shown["findings"][0]) == set(Finding.__dataclass_fields__)
    assert shown["counts"]["files"] == 42


@pytest.mark.slow
def test_it_changes_nothing_and_needs_no_lock(demo: Path) -> None:
    with writing(demo):
        nothing(verify(demo))
    before = demo.read_bytes()
    nothing(verify(demo))
    assert demo.read_bytes() == before


def test_a_database_that_is_kept_busy_is_busy(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "_SAFE", ("busy_timeout = 20",))
    with writing(demo) as writer:
        writer.execute("begin immediate")
        assert main(["verify", "--db", str(demo)]) == 3
        writer.execute("rollback")
    assert stat.S_IMODE(demo.stat().st_mode) == 0o600


def test_without_a_database_it_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--db", str(tmp_path / "none.db")]) == 4
    assert "assoc-ingest sync" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
