"""A file may have any name, any time and any number that its file system allows: it is read once,
kept, found sound and given back.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.child import as_nobody
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    jsonl,
    user,
    write,
    write_bytes,
)

from assoc_ingest.__main__ import main
from assoc_ingest.files import walk
from assoc_ingest.files.walk import (
    NO_TIME,
    original_name,
    original_parts,
    original_time,
    recognised,
    stored_name,
    stored_number,
    stored_time,
)
from assoc_ingest.sources import SOURCES
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.plan import Report, make_plan, places_of
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, connect, dump, rows
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.restore import WRITTEN, Restored, restore, select_all
from assoc_ingest.upkeep.verify import verify

Fresh = Callable[[], Path]

SECONDS = 1_000_000_000  # nanoseconds
TIMES = {
    "zero": 0,
    "the-nanosecond-after": 1,
    "1960": -315_619_200 * SECONDS,
    "before-the-day-that-32-bits-can-count": -2_200_000_000 * SECONDS,
    "1600": -11_676_096_000 * SECONDS,
    "2106": 4_294_967_296 * SECONDS,
    "2262": 2**63 - 1,
    "a-nanosecond-later": 2**63,
    "2300": 10_413_792_000 * SECONDS,
    "2446": 15_032_385_535 * SECONDS,
    "9999": 253_402_300_799 * SECONDS,
    "the-largest": (2**63 - 1) * SECONDS,
    "the-smallest": -(2**63) * SECONDS,
}
TIME_ISSUE = "the time of the file lies outside the years 2000 to 2100"


@pytest.fixture
def home(place: Path) -> Path:
    write(place / "home", TRANSCRIPT, user("here", "u1"))
    return place / "home"


def set_time(path: Path, nanoseconds: int) -> None:
    """Give a file this time, or skip the test where the file system has no such time."""
    try:
        os.utime(path, ns=(nanoseconds, nanoseconds))
    except (OverflowError, OSError):
        pytest.skip("this system has no such time")
    if path.stat().st_mtime_ns != nanoseconds:
        pytest.skip("this file system has no such time")


# -- times -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("nanoseconds", TIMES.values(), ids=list(TIMES))
def test_a_file_of_any_time_is_read_once_and_its_time_is_an_issue(
    nanoseconds: int, home: Path, fresh: Fresh, place: Path
) -> None:
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("beside it", "u2"))
    set_time(home / TRANSCRIPT, nanoseconds)
    database = fresh()
    assert sync(database, [home]).files_read == 2
    check(database, home)
    issue = rows(
        database,
        "select f.path, f.mtime, i.reason, i.quarantined from issues i"
        " join files f on f.id = i.file_id",
    )
    known = 946_684_800 * SECONDS <= nanoseconds < 4_102_444_800 * SECONDS
    assert issue == ([] if known else [(TRANSCRIPT, None, TIME_ISSUE, 0)])
    report = sync(database, [home])
    assert (report.files_read, report.issues) == (0, 0)
    assert verify(database).findings == []
    rebuild(database)
    assert verify(database).findings == []
    assert len(rows(database, "select 1 from issues")) == len(issue)
    assert sync(database, [home]).files_read == 0


@pytest.mark.slow
def test_a_time_that_becomes_usual_or_odd_is_noticed_without_reading_anything_again(
    home: Path, fresh: Fresh
) -> None:
    database = fresh()
    sync(database, [home])
    stated = "select f.mtime is null, f.issue_count, count(i.id) from files f"
    stated += " left join issues i on i.file_id = f.id"
    for nanoseconds, expected in ((10**19, (1, 1, 1)), (17 * 10**17, (0, 0, 0)), (-5, (1, 1, 1))):
        set_time(home / TRANSCRIPT, nanoseconds)
        report = sync(database, [home])
        assert (report.files_read, report.rows) == (0, 0)
        assert rows(database, stated) == [expected]
    assert verify(database).findings == []


@pytest.mark.slow
def test_what_grows_beyond_all_times_is_read_on_and_keeps_one_issue(
    home: Path, fresh: Fresh
) -> None:
    database = fresh()
    for number in range(3):
        write(home, TRANSCRIPT, *(user("line", f"u{line}") for line in range(number + 1)))
        set_time(home / TRANSCRIPT, 10**19)
        assert sync(database, [home]).rows == 1
    check(database, home)
    assert rows(database, "select reason from issues") == [(TIME_ISSUE,)]


@pytest.mark.parametrize("nanoseconds", [0, 1, -1, 10**19])
def test_a_file_of_no_time_that_was_not_read_to_its_end_is_read_again(
    nanoseconds: int, home: Path, fresh: Fresh
) -> None:
    set_time(home / TRANSCRIPT, nanoseconds)
    database = fresh()
    sync(database, [home])
    connection = connect(database)
    connection.execute("update files set mtime_ns = ?, head_hash = x''", (NO_TIME,))
    connection.close()
    assert sync(database, [home]).files_read == 1
    assert sync(database, [home]).files_read == 0


@pytest.mark.slow
def test_documents_of_any_time_are_read_once(home: Path, fresh: Fresh) -> None:
    paths = {
        "plans/a-plan.md": b"# A plan\n",
        "settings.json": b'{"cleanupPeriodDays":30}',
        "tasks/a-list/1.json": b'{"id":"1","subject":"Sow"}',
        f"{PROJECT}/{SESSION}/tool-results/image.png": b"\x89PNG\0\0",
        f"file-history/{SESSION}/0123456789abcdef@v1": b"never opened",
    }
    for path, data in paths.items():
        set_time(write_bytes(home, path, data), 10**19)
    database = fresh()
    assert sync(database, [home]).files_read == len(paths) + 1
    assert sync(database, [home]).files_read == 0
    found = rows(database, "select f.path from issues i join files f on f.id = i.file_id")
    assert {path for (path,) in found} == paths.keys()
    assert rows(database, "select modified_at from plans") == [(None,)]
    assert verify(database).findings == []
    rebuild(database)
    assert verify(database).findings == []
    assert len(rows(database, "select 1 from issues")) == len(paths)


@pytest.mark.parametrize("nanoseconds", TIMES.values(), ids=list(TIMES))
def test_a_restored_file_has_its_time_if_the_database_could_hold_it(
    nanoseconds: int, home: Path, fresh: Fresh, place: Path
) -> None:
    set_time(home / TRANSCRIPT, nanoseconds)
    database = fresh()
    sync(database, [home])
    before = (place / "home").stat().st_mtime_ns
    (done,) = restored(database, place / "rescued")
    assert done.status == WRITTEN
    found = (place / "rescued" / TRANSCRIPT).stat().st_mtime_ns
    if -(2**63) < nanoseconds < 2**63 - 1 and nanoseconds != 1:
        assert found == nanoseconds
    elif nanoseconds != 1:
        assert found >= before, "the time at which it was restored: a wrong one is worse than none"


def restored(database: Path, to: Path) -> list[Restored]:
    connection = open_reader(database)
    done = list(restore(connection, select_all(connection), to))
    connection.close()
    return done


# -- numbers ---------------------------------------------------------------------------------------


@dataclass
class Numbered:
    """An entry of a directory, on a file system that counts otherwise."""

    entry: os.DirEntry[str]
    numbers: dict[str, int]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.entry, name)

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        status = self.entry.stat(follow_symlinks=follow_symlinks)
        names = [name for name in dir(status) if name.startswith("st_")]
        real = {name: getattr(status, name) for name in names}
        return cast("os.stat_result", SimpleNamespace(**real | self.numbers))


LARGE = (0, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64 + 7, 2**127 + 7, 2**128 - 1)


@pytest.mark.parametrize("number", LARGE)
def test_files_that_all_have_the_same_odd_number_are_read_once_each(
    number: int, home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("beside it", "u2"))
    listed = walk.entries

    def entries(directory: str, seen: walk.Walk) -> list[Any]:
        numbers = dict.fromkeys(("st_ino", "st_dev", "st_mtime_ns", "st_ctime_ns"), number)
        return [Numbered(entry, numbers) for entry in listed(directory, seen)]

    monkeypatch.setattr(walk, "entries", entries)
    database = fresh()
    assert sync(database, [home]).files_read == 2
    assert sync(database, [home]).files_read == 0
    assert not verify(database).findings


def test_numbers_and_times_stay_different_ones() -> None:
    assert len(set(map(stored_number, LARGE))) == len(LARGE)
    low = {stored_number(2**127 + high * 2**64) for high in range(1000)}
    assert len(low) == 1000, "of 128 bits neither half is unique"
    for value in (*LARGE, *low):
        assert -(2**63) <= stored_number(value) < 2**63
    for nanoseconds in TIMES.values():
        assert stored_time(nanoseconds) != NO_TIME
        back = original_time(stored_time(nanoseconds))
        assert back in (None, nanoseconds) or nanoseconds == 1


# -- names -----------------------------------------------------------------------------------------

posix = pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX systems only")
components = st.one_of(
    st.binary(min_size=1).filter(lambda name: not set(name) & set(b"/\0")),
    st.lists(
        st.sampled_from([b"\\", b"x", b"5", b"c", b"f", b"8", b"\xff", b"\xc3", b"\xa9", b"\n"]),
        min_size=1,
    ).map(b"".join),
)


@posix
@given(st.lists(components, min_size=1))
def test_a_stored_path_leads_back_to_its_bytes(parts: list[bytes]) -> None:
    names = tuple(map(os.fsdecode, parts))
    stored = [stored_name(name) for name in names]
    assert original_parts("/".join(stored)) == names
    assert stored_name("/".join(names)) == "/".join(stored)
    "/".join(stored).encode()


@given(st.text(st.characters(exclude_characters="\\", exclude_categories=["Cs"]), min_size=1))
def test_a_name_without_a_backslash_is_stored_as_it_is(name: str) -> None:
    assert stored_name(name) == name


@pytest.mark.parametrize("name", ["\\", "a\\b", "\\n", "\\x", "\\x41", "\\xf", "\\xFF", "C:\\x.y"])
def test_a_backslash_that_nobody_takes_for_an_escape_is_stored_as_it_is(name: str) -> None:
    assert stored_name(name) == name
    assert original_name(name) == name


ODD = tuple(
    os.fsdecode(name)
    for name in (
        b"a\xff", rb"a\xff", rb"a\x5cxff", b"a\\\xff", rb"a\\xff", b"a\xc3", b"a\xc3\xa9",
        b"ae\xcc\x81", rb"a\xc3\xa9", b"A\xff", b"a", b"A", b"a\n", rb"a\n", b"a\r", b"a ",
        b"a'\"%s{}$(x)", b"\xe2\x80\xae", b"+-", b"a\xed\xa0\x80", b"\xf0\x9f\xa6\x8a",
    )
)  # fmt: skip
LINE = {"role": "user", "content": "hi", "timestamp": 1771250400123}
PLACES: dict[str, dict[str, Any]] = {
    "claude": {
        "projects/-srv-demo/{}.jsonl": user("hi", "u1"),
        "projects/-srv-demo/agent-{}.jsonl": user("hi", "u2"),
        "projects/{}/x.jsonl": user("hi", "u3"),
        "projects/{}/memory/{}.md": "# A note",
        "projects/{}/sessions-index.json": {"version": 1, "entries": []},
        "projects/-srv-demo/{}/subagents/agent-{}.jsonl": user("hi", "u4"),
        "projects/-srv-demo/{}/subagents/agent-{}.meta.json": {"agentType": "scout"},
        "projects/-srv-demo/{}/subagents/workflows/{}/agent-{}.jsonl": user("hi", "u5"),
        "projects/-srv-demo/{}/workflows/{}.json": {"taskId": "t"},
        "projects/-srv-demo/{}/tool-results/{}": "an output",
        "tasks/{}/1.json": {"id": "1", "subject": "Sow", "blockedBy": ["2"]},
        "tasks/list/{}.json": {"id": "1", "subject": "Sow"},
        "teams/{}/config.json": {"name": "a team", "members": [{"name": "m"}]},
        "teams/team/inboxes/{}.json": [{"from": "m", "text": "hi", "read": False}],
        "plans/{}.md": "# A plan",
    },
    "associate": {
        "hook-events.jsonl": {"hook_event_name": "Stop", "session_id": "s"},
        "notes/{}.json": {"title": "note"},
        "projects/{}/notes/{}.json": {"title": "note"},
        "projects/{}/summaries/{}-summary-001.md": "# A summary",
        "projects/{}/task-snapshots/{}.json": {"1": {"snapshot": {"subject": "Sow"}}},
    },
    "chorus": {
        "sessions/{}/{}/conversations.json": {"conversations": [{"id": "k1"}]},
        "sessions/{}/{}/{}-messages.jsonl": {"uuid": "m", "type": "user", "content": "hi"},
    },
    "cortex": {"transcripts/{}/transcript.jsonl": LINE, "transcripts/a/{}/transcript.jsonl": LINE},
    "ccinsights": {
        "projects/{}/chats/{}.chat.jsonl": {"type": "user", "text": "hi"},
        "projects/{}/chats/{}.meta.json": {"model": "m"},
        "projects/{}/tickets.json": {"tickets": [{"title": "t"}]},
        "projects/{}/tracking.jsonl": {"chatName": "c", "worktree": "w"},
    },
}


def odd_home(home: Path, kind: str) -> dict[str, bytes]:
    """Write a home in which every name that may be is odd; return its files."""
    files = {}
    for path, content in PLACES[kind].items():
        for name in ODD:
            data = content.encode() if isinstance(content, str) else jsonl(content)
            named = path.replace("{}", name)
            files[named] = write_bytes(home, named, data).read_bytes()
    return files


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
@pytest.mark.parametrize("kind", PLACES)
def test_odd_names_are_different_files_and_none_stops_another(
    kind: str, fresh: Fresh, place: Path
) -> None:
    home, database = place / "home", fresh()
    files = odd_home(home, kind)
    report = sync(database, [home])
    assert (report.files_read, report.unreadable, report.error) == (len(files), [], None)
    stored = {path for (path,) in rows(database, "select path from files")}
    assert {"/".join(original_parts(path)) for path in stored} == files.keys()
    check(database, home)
    assert verify(database).findings == []
    before = dump(database)
    assert sync(database, [home]).files_read == 0
    rebuild(database)
    assert_same(dump(database), before)
    assert {file.status for file in restored(database, place / "rescued")} == {WRITTEN}
    rescued = place / "rescued"
    back = {str(path.relative_to(rescued)): path for path in rescued.rglob("*") if path.is_file()}
    assert {path: file.read_bytes() for path, file in back.items()} == files


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_sessions_of_odd_names_are_different_ones(fresh: Fresh, place: Path) -> None:
    home, database = place / "home", fresh()
    for name in ODD:
        write(home, f"{PROJECT}/{name}.jsonl", user(f"in {name!r}", "u1"))
    sync(database, [home])
    found = rows(
        database, "select count(*), count(distinct s.id) from messages m join sessions s"
        " on s.id = m.session_id where m.copy_of is null and m.kind = 'prompt'"
    )  # fmt: skip
    assert found == [(1, 1)]  # the lines are copies of one another
    assert rows(database, "select count(*) from sessions") == [(len(ODD),)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_a_file_of_an_odd_name_moves_grows_vanishes_and_returns(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    key = f"{PROJECT}/{SESSION}/subagents"
    paths = [f"{key}/workflows/{name}/agent-{name}.jsonl" for name in ODD]
    for number, path in enumerate(paths):
        write(home, path, user("hi", f"u{number}"))
    assert sync(database, [home]).files_read == len(ODD)
    ids = rows(database, "select id, path from files order by id")
    renamed = home / PROJECT / OTHER
    (home / PROJECT / SESSION).rename(renamed)
    assert sync(database, [home]).files_gone == len(ODD), "of another session: no move"
    renamed.rename(home / PROJECT / SESSION)
    sync(database, [home])
    gone = "select count(*) from files where gone_at is null"
    assert rows(database, gone) == [(len(ODD) + 1,)]
    assert rows(database, "select id, path from files order by id")[: len(ids)] == ids
    elsewhere = home / "projects" / "-srv-other"
    (home / PROJECT).rename(elsewhere)
    report = sync(database, [home])
    assert (report.rows, report.files_gone) == (0, 0), "all of it moved"
    assert [id_ for id_, _ in rows(database, "select id, path from files where gone_at is null")]
    for path in paths:
        with open(home / path.replace(PROJECT, "projects/-srv-other"), "ab") as file:
            file.write(jsonl(user("more", "u99")))
    assert sync(database, [home]).rows == len(ODD)
    check(database)
    assert verify(database).findings == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_a_change_below_an_odd_name_is_found_where_it_happened(home: Path, fresh: Fresh) -> None:
    database = fresh()
    paths = [f"projects/-srv{name}/{SESSION}/subagents/agent-{name}.jsonl" for name in ODD[:9]]
    for path in paths:
        write(home, path, user("hi", "u1"))
    sync(database, [home])
    connection = connect(database)
    for number, path in enumerate(paths):
        write(home, path, user("hi", "u1"), user("more", f"m{number}"))
        roots = recognised(home, SOURCES)
        places = places_of([str(home / path)], roots)
        plan = make_plan(connection, places, Report(""), full=False, places=places)
        assert ["/".join(original_parts(work.found.path)) for work in plan.work] == [path]
        assert (len(plan.gone), plan.work[0].known is not None) == (0, True)
        sync(database, [home])
    connection.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_a_file_of_an_odd_name_is_forgotten_and_no_other(home: Path, fresh: Fresh) -> None:
    database = fresh()
    for number, name in enumerate(ODD):  # forgotten with a file is what has the same content
        write(home, f"{PROJECT}/memory/{name}.md", f"# Note {number}".encode())
    assert sync(database, [home]).files_read == len(ODD) + 1
    for name in ODD[:5]:
        before = rows(database, "select count(*) from files")[0][0]
        stored = stored_name(f"{PROJECT}/memory/{name}.md")
        assert main(["forget", stored, "-d", str(database)]) == 0, stored
        assert rows(database, "select count(*) from files") == [(before - 1,)]
        assert sync(database, [home]).files_read == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
@pytest.mark.parametrize("name", ODD)
def test_a_root_of_an_odd_name_is_one_root(name: str, fresh: Fresh, place: Path) -> None:
    home, database = place / name / "home", fresh()
    write(home, TRANSCRIPT, user("here", "u1"))
    assert sync(database, [home]).files_read == 1
    assert sync(database, [home]).files_read == 0
    assert sync(database, []).files_seen == 1, "remembered"
    assert rows(database, "select count(*) from sources") == [(1,)]
    assert verify(database).findings == []
    assert verify(database).counts["files_on_disk"] == 1
    (home / TRANSCRIPT).unlink()
    shutil.rmtree(home)
    assert sync(database, []).missing_roots == [stored_name(str(home))]
    assert rows(database, "select count(gone_at) from sources") == [(1,)]
    assert rows(database, "select count(gone_at) from files") == [(0,)]
    assert {file.status for file in restored(database, place / "rescued")} == {WRITTEN}


@pytest.mark.slow
@posix
@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow no such names")
def test_nothing_is_gone_in_an_unreadable_directory_of_an_odd_name(
    home: Path, fresh: Fresh, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    directories = [home / "projects" / f"-srv-{name}" for name in ODD]
    for directory in directories:
        write(directory, "x.jsonl", user("hi", "u1"))
    database = fresh()
    arguments = ["sync", str(home), "-d", str(database)]
    assert main(arguments) == 0
    for path in (place, database, *place.rglob("*")):
        path.chmod(0o777)
    for directory in directories:
        directory.chmod(0)
    try:
        code, warnings = as_nobody(lambda: (main(arguments), verify(database).warnings))
    finally:
        for directory in directories:
            directory.chmod(0o700)
    assert code == 0
    assert f"Could not read {home}" in capfd.readouterr().err
    assert rows(database, "select count(gone_at) from files") == [(0,)]
    assert [w.problem.split(",")[0] for w in warnings if w.check == "disk"] == [
        f"{len(ODD)} places not readable and therefore not compared"
    ]
