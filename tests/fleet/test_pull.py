"""What was pulled is in the database like what was read here, and stays what the server has."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.machines import QUERIES, Fleet, demo, rows_of
from tests.support.writing import SESSION, assistant, user, write

from assoc_ingest.cli import cli
from assoc_ingest.errors import FleetError, NotFoundError
from assoc_ingest.files import archive
from assoc_ingest.fleet.connect import DESTINATION
from assoc_ingest.fleet.projection import Masks
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync

LINES = [user("how does the pool wait", "u1"), assistant("it does not", "a1")]
MORE = user("then it should", "u2", "a1", 2)
TRANSCRIPT = f"projects/-srv-shop/{SESSION}.jsonl"
OF_PLACES = {"reports/status_sources", "lists/files", "lists/issues", "lists/plans"}
"""What shows roots and times of syncs."""


@pytest.fixture
def fleet(
    tmp_path: Path, database: Any, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> Fleet:
    """A server that nobody pushed to, and that commands ask."""
    monkeypatch.setenv(DESTINATION, empty_database)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    return Fleet(tmp_path, empty_database, database)


def _run(tmp_path: Path, *arguments: str) -> str:
    run = CliRunner().invoke(cli, [*arguments, "--db", str(tmp_path / "team.db")])
    if run.exception is not None and not isinstance(run.exception, SystemExit):
        raise run.exception
    assert run.exit_code == 0, run.output
    return run.output


def _texts(tmp_path: Path) -> list[str]:
    with closing(open_reader(tmp_path / "team.db")) as team:
        return [text for (text,) in team.execute("select text from messages order by text")]


def test_every_report_says_of_pulled_files_what_it_says_on_their_machine(
    fleet: Fleet, tmp_path: Path
) -> None:
    # The list of projects in the configuration of Chorus is private: its bytes stay at home.
    homes = [home for home in demo(tmp_path / "homes") if home.name != "chorus"]
    laptop = fleet.push("laptop", *homes)
    _run(tmp_path, "pull")
    other = {}
    with closing(laptop), closing(open_reader(tmp_path / "team.db")) as team:
        for path, query in QUERIES.items():
            if path not in OF_PLACES and not path.startswith("reports/retention"):
                given = {"all": 1} if "all" in query.parameters else {}
                there, here = rows_of(laptop, query, given), rows_of(team, query, given)
                if sorted(map(repr, there)) != sorted(map(repr, here)):
                    other[path] = (there, here)
    assert not other, other
    _run(tmp_path, "verify")
    _run(tmp_path, "rebuild")
    _run(tmp_path, "verify")


def test_a_second_pull_fetches_what_changed_and_removes_what_was_forgotten(
    fleet: Fleet, tmp_path: Path
) -> None:
    write(tmp_path / "home", TRANSCRIPT, *LINES)
    machine = fleet.machine("laptop")
    machine.push(tmp_path / "home")
    assert "Fetched 1 file" in _run(tmp_path, "pull")
    assert "Fetched 0 files" in _run(tmp_path, "pull")
    write(tmp_path / "home", TRANSCRIPT, *LINES, MORE)
    machine.push(tmp_path / "home")
    assert "Fetched 1 file" in _run(tmp_path, "pull", "--origin", "laptop")
    assert "then it should" in _run(tmp_path, "show", SESSION)
    _run(tmp_path, "verify")
    machine.forget(SESSION)
    assert "Removed 1 file" in _run(tmp_path, "pull")
    with closing(open_reader(tmp_path / "team.db")) as team:
        assert team.execute("select count(*) from messages").fetchone()[0] == 0


def test_what_the_server_does_not_show_any_more_stays(
    fleet: Fleet, tmp_path: Path, database: Any
) -> None:
    write(tmp_path / "home", TRANSCRIPT, *LINES)
    machine = fleet.machine("laptop")
    machine.push(tmp_path / "home")
    _run(tmp_path, "pull")
    before = _texts(tmp_path)
    for table in ("frames", "files"):  # as on another server, or one restored from a backup
        database.execute(f"delete from assoc.{table}")
    for arguments in ((), ("--origin", "laptop")):
        found = _run(tmp_path, "pull", *arguments)
        assert "Kept 1 file pulled before" in found
        assert "Removed" not in found
    assert _texts(tmp_path) == before
    machine.forget(
        SESSION
    )  # the server does not have it, and tells those who pulled it nevertheless
    assert "Removed 1 file" in _run(tmp_path, "pull")


def test_a_file_that_is_pushed_again_after_it_was_deleted_is_pulled_again(
    fleet: Fleet, tmp_path: Path, database: Any
) -> None:
    write(tmp_path / "home", TRANSCRIPT, *LINES)
    machine = fleet.machine("laptop")
    machine.push(tmp_path / "home")
    database.execute(
        "select assoc.forget_v1(origin_id, version, nonce, array(select file_key from assoc.files))"
        " from assoc.origin_states"
    )
    assert "Fetched 0 files" in _run(tmp_path, "pull")
    machine.push_all()
    assert "Fetched 1 file" in _run(tmp_path, "pull")
    assert "Removed" not in _run(tmp_path, "pull")
    assert len(_texts(tmp_path)) == 2


def test_files_with_one_place_and_generation_stay_apart(
    fleet: Fleet, tmp_path: Path, database: Any
) -> None:
    # Of machines that gave a generation again.
    for number in range(2):
        fleet.place = tmp_path / str(number)
        fleet.place.mkdir()
        write(tmp_path / "home", TRANSCRIPT, user(f"text {number}", f"u{number}"))
        fleet.push(f"laptop{number}", tmp_path / "home").close()
    for _ in range(2):
        _run(tmp_path, "pull")
        assert _texts(tmp_path) == ["text 0", "text 1"]
    database.execute("update assoc.files set file_key = sha256(file_key)")
    for arguments in (("--since", "2000-01-01"), ()):
        _run(tmp_path, "pull", *arguments)
        assert _texts(tmp_path) == ["text 0", "text 0", "text 1", "text 1"]
    assert "Fetched 0 files" in _run(tmp_path, "pull")
    database.execute("insert into assoc.deleted_files select origin_id, file_key from assoc.files")
    database.execute(
        "delete from assoc.files where origin_id = (select min(origin_id) from assoc.origins)"
    )
    _run(tmp_path, "pull")
    _run(tmp_path, "pull")
    assert _texts(tmp_path) == ["text 0", "text 1", "text 1"]
    _run(tmp_path, "verify")


def test_what_was_pulled_and_forgotten_here_does_not_come_back(
    fleet: Fleet, tmp_path: Path
) -> None:
    write(tmp_path / "home", TRANSCRIPT, *LINES)
    fleet.push("laptop", tmp_path / "home").close()
    _run(tmp_path, "pull")
    _run(tmp_path, "forget", SESSION, "--yes")
    assert "1 file that you have forgotten" in _run(tmp_path, "pull")
    assert _texts(tmp_path) == []


def test_a_pulled_file_is_restored_byte_for_byte(fleet: Fleet, tmp_path: Path) -> None:
    original = write(tmp_path / "home", TRANSCRIPT, *LINES)
    fleet.push("laptop", tmp_path / "home").close()
    _run(tmp_path, "pull")
    _run(tmp_path, "restore", SESSION, "--to", str(tmp_path / "out"))
    (restored,) = (tmp_path / "out").rglob("*.jsonl")
    assert restored.read_bytes() == original.read_bytes()


@pytest.mark.slow
def test_a_sync_leaves_pulled_files_alone_and_nothing_of_them_is_pushed(
    fleet: Fleet, tmp_path: Path
) -> None:
    write(tmp_path / "home", TRANSCRIPT, *LINES)
    write(tmp_path / "mine", TRANSCRIPT.replace("0b7c", "1b7c"), *LINES)
    fleet.push("laptop", tmp_path / "home").close()
    _run(tmp_path, "pull")
    machine = fleet.machine("team")
    machine.push(tmp_path / "mine")
    machine.push(tmp_path / "mine")
    with closing(open_reader(tmp_path / "team.db")) as team:
        rows = team.execute("select count(*), count(gone_at) from files").fetchone()
        assert tuple(rows) == (2, 0)
        assert team.execute("select count(gone_at) from sources").fetchone()[0] == 0
    assert sync(tmp_path / "team.db", []).missing_roots == []
    count = "select count(*) from assoc.files f join assoc.origins o using (origin_id)"
    with closing(fleet.central()) as central:
        found = central.execute(f"{count} where o.label = :label", {"label": "team"}).fetchone()
        assert found[0] == 1
    assert "Skipped 1 file of this machine" in _run(tmp_path, "pull")


def test_a_damaged_file_on_the_server_does_not_replace_what_was_pulled(
    fleet: Fleet, tmp_path: Path, database: Any
) -> None:
    write(tmp_path / "home", TRANSCRIPT, *LINES)
    fleet.push("laptop", tmp_path / "home").close()
    _run(tmp_path, "pull")
    before = _texts(tmp_path)
    database.execute(
        "update assoc.frames set digest = sha256('x'), data = substring(data from 1 for 20)"
        " where data is not null"
    )
    assert "1 file, damaged or incomplete" in _run(tmp_path, "pull")
    assert _texts(tmp_path) == before == sorted(["how does the pool wait", "it does not"])
    _run(tmp_path, "verify")


@pytest.mark.parametrize("is_masked", [False, True])
def test_a_file_whose_first_bytes_are_lost_is_pulled_from_where_it_goes_on(
    fleet: Fleet, tmp_path: Path, *, is_masked: bool
) -> None:
    # Random words, so that the transcript has more than one frame.
    long = [user(f"{n} {sha256(bytes([n])).hexdigest() * 20_000}", f"u{n}") for n in range(3)]
    write(tmp_path / "home", TRANSCRIPT, *long)
    machine = fleet.machine("laptop", Masks(is_on=is_masked))
    machine.push(tmp_path / "home")
    _run(tmp_path, "pull")
    with closing(sqlite3.connect(machine.database)) as connection, connection:
        connection.execute("delete from archive where start = 0")
    machine.push_all()
    assert "1 file, damaged or incomplete" in _run(tmp_path, "pull")
    assert len(_texts(tmp_path)) == 3
    (tmp_path / "team.db").unlink()
    assert "Fetched 1 file" in _run(tmp_path, "pull")
    assert "Fetched 0 files" in _run(tmp_path, "pull")
    assert [text[:1] for text in _texts(tmp_path)] == ["1", "2"]


def test_a_part_of_the_fleet_is_pulled(fleet: Fleet, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(
            tmp_path / name,
            f"projects/-srv-{name}/{name}.jsonl",
            user(name, name, cwd=f"/srv/{name}"),
        )
        fleet.push(name, tmp_path / name).close()
    assert "Fetched 1 file" in _run(tmp_path, "pull", "--origin", "two")
    assert "Fetched 1 file" in _run(tmp_path, "pull", "--project", "one")
    assert "Removed" not in _run(tmp_path, "pull", "--project", "two")
    with pytest.raises(NotFoundError, match="one, two"):
        _run(tmp_path, "pull", "--origin", "three")


def _one_frame(data: bytes) -> list[str]:
    """Statements by which the only frame of each transcript has these bytes, packed."""
    packed = archive.zstd.compress(data)
    return [
        "delete from assoc.files where kind <> 'transcript' or agent_key is not null",
        f'update assoc.files set "offset" = {len(data)}',
        "delete from assoc.frames where start > 0",
        f"update assoc.frames set data = '\\x{packed.hex()}' where data is not null",
    ]


_LONG = "update assoc.sessions set title = repeat('frost ', 8000000)"
_OBJECTS = b'{"type":"user","x":[' + b"{}," * 5_000_000 + b"0]}\n"
_NAMES = [
    "alter table assoc.schema_version drop constraint schema_version_pkey",
    "insert into assoc.schema_version (name)"
    " select repeat('9', 100000000) from generate_series(1, 4)",
]
ATTACKS = {
    "a frame that unpacks to a gigabyte": (_one_frame(bytes(1 << 30)), "pull", 1),
    "a line of a million objects": (_one_frame(_OBJECTS), "pull", 1),
    "long texts in a list": ([_LONG], "query list_sessions --remote --json", 6),
    "long texts in hits": ([_LONG], "search --remote the --json", 6),
    "many rows": (
        [
            "drop view assoc_read.coverage",
            "create view assoc_read.coverage as select '' as type, '' as subtype, g as lines,"
            " g as files, '' as source from generate_series(1, 3000000) g",
        ],
        "query coverage --remote --json", 6,
    ),
    "long names of migrations": (_NAMES, "remote init DESTINATION --label desk", 6),
}  # fmt: skip
"""What a server may do, by statements; the command that is run then, and its exit code."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory")
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_server_cannot_take_the_memory_of_who_asks_it(
    fleet: Fleet, tmp_path: Path, database: Any, attack: str
) -> None:
    fleet.push("laptop", *demo(tmp_path / "homes")).close()
    statements, arguments, code_expected = ATTACKS[attack]
    for statement in statements:
        database.execute(statement)
    if attack == "long names of migrations":
        shutil.copy(tmp_path / "laptop.db", tmp_path / "other.db")
    given = [fleet.destination if word == "DESTINATION" else word for word in arguments.split()]
    _demand_bounds(fleet, tmp_path / "other.db", given, code_expected)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory")
def test_a_machine_that_takes_too_much_memory_stops_no_other(
    fleet: Fleet, tmp_path: Path, database: Any
) -> None:
    fleet.push("attic", *demo(tmp_path / "homes")).close()
    for statement in _one_frame(_OBJECTS):
        database.execute(statement)
    write(tmp_path / "home", TRANSCRIPT, *LINES)
    fleet.push("zoo", tmp_path / "home").close()
    said = _demand_bounds(fleet, tmp_path / "team.db", ["pull"], 1)
    assert "Fetched 1 file" in said
    assert said.count("attic") == 1
    assert _texts(tmp_path) == ["how does the pool wait", "it does not"]
    said = _demand_bounds(fleet, tmp_path / "team.db", ["pull", "--origin", "attic"], 6)
    assert "240 MB" in said


def _demand_bounds(fleet: Fleet, database: Path, arguments: list[str], code_expected: int) -> str:
    """Run a command that ends with this code; its memory keeps to the limit. Return what it says.

    It says one sentence for each problem, and no more.
    """
    code = (
        "import re, sys; from assoc_ingest.__main__ import main\n"
        "try: code = main()\n"
        "finally:\n"  # not ru_maxrss, which begins with what the tests themselves take
        "    status = open('/proc/self/status').read()\n"
        "    print(re.search(r'VmHWM:\\s+(\\d+)', status)[1], file=sys.stderr)\n"
        "sys.exit(code)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--db", str(database)],
        capture_output=True, text=True, env={**os.environ, DESTINATION: fleet.destination},
    )  # fmt: skip
    peak = int(run.stderr.strip().split("\n")[-1]) * 1024
    assert peak < 300_000_000
    assert "Traceback" not in run.stderr, run.stderr
    assert run.returncode == code_expected, run.stderr
    assert len(run.stderr) < 2_000
    return run.stderr


_LONG_TEXT = "(select string_agg(repeat('x', 50000000), '') from generate_series(1, 10))"
_ORIGINS = "assoc.origins o join assoc.origin_states s using (origin_id) where o.uuid = $1"
_NO_FILE = "'\\x00'::bytea, 0, null::int, null, null, null::int, null, null, null::int, null, null"
ATTACKS_ON_PUSHES = {
    "who it thinks this is": (
        "hello_v2(uuid)",
        "table (origin_id int, version bigint, nonce text, db_uuid uuid, label text,"
        " reindexed_after uuid[])",
        f"select o.origin_id, s.version, {_LONG_TEXT}, s.db_uuid, o.label, s.reindexed_after"
        f" from {_ORIGINS}",
    ),
    "a name to be remembered": (
        "hello_v2(uuid)",
        "table (origin_id int, version bigint, nonce text, db_uuid uuid, label text,"
        " reindexed_after uuid[])",
        "select o.origin_id, s.version - 1, repeat('x', 20000000), s.db_uuid, o.label,"
        f" s.reindexed_after from {_ORIGINS}",
    ),
    "how files begin": (
        "same_places_v1(int, bytea[], text[], text[], text[])",
        "table (file_key bytea, kind text, root text, path text, data bytea, size bigint,"
        " is_whole boolean)",
        "select g::text::bytea, 'claude', repeat('x', 50000), g::text, ''::bytea, 1::bigint, true"
        " from generate_series(1, 9000) g",
    ),
    "numbers of files": (
        "files_v1(int, bigint, uuid, json)",
        "table (applied boolean, version bigint, nonce uuid, numbers int[])",
        "select true, $2 + 1, $3, array_agg(g) from generate_series(1, 30000000) g",
    ),
    "frames": (
        "frames_v2(int, bytea[])",
        "table (file_key bytea, file_no int, start bigint, digest bytea, rows_digest bytea)",
        "select $2[1], 1, g::bigint, '\\x00'::bytea, '\\x00'::bytea"
        " from generate_series(1, 4000000) g",
    ),
    "keys of rows": (
        "keyed_v1(int, text)",
        "table (key text[], digest bytea)",
        "select array['1', g::text], '\\x00'::bytea from generate_series(1, 4000000) g",
    ),
    "files that are not here": (
        "files_of_v1(int)",
        "table (file_key bytea, file_no int, source_no int, path text, session_key text,"
        " project_source_no int, project_key text, team_key text, session_project_source_no int,"
        " session_project_key text, project_path text)",
        f"select {_NO_FILE} from generate_series(1, 4000000) g",
    ),
}
"""A function of the server, what it returns, and what it answers: beyond any bound."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory")
@pytest.mark.parametrize("attack", ATTACKS_ON_PUSHES)
def test_a_server_cannot_take_the_memory_of_who_pushes(
    fleet: Fleet, tmp_path: Path, database: Any, attack: str
) -> None:
    sync(tmp_path / "desk.db", demo(tmp_path / "homes"))
    for words in ("remote init DESTINATION", "remote allow --all-projects", "push --yes"):
        given = [fleet.destination if word == "DESTINATION" else word for word in words.split()]
        run = CliRunner().invoke(cli, [*given, "--db", str(tmp_path / "desk.db")])
        assert run.exit_code == 0, run.output
    remembered = (tmp_path / "desk.db.push").read_bytes()
    function, returned, answer = ATTACKS_ON_PUSHES[attack]
    with closing(open_reader(tmp_path / "desk.db")) as reader:
        (session,) = reader.execute("select session_key from sessions limit 1").fetchone()
    run = CliRunner().invoke(cli, ["forget", session, "--yes", "--db", str(tmp_path / "desk.db")])
    assert run.exit_code == 0, run.output
    database.execute("delete from assoc.files where file_no = 1")  # it is new there
    database.execute(f"drop function assoc.{function}")
    database.execute(
        f"create function assoc.{function} returns {returned} language sql as $f$ {answer} $f$"
    )
    _demand_bounds(fleet, tmp_path / "desk.db", ["push", "--full", "--yes"], 6)
    state = (tmp_path / "desk.db.push").stat().st_size
    assert state < len(remembered) + 1_000


@pytest.mark.parametrize(
    "statement",
    [
        "update assoc.frames set data = data || decode(repeat('00', 50000), 'hex')",
        "update assoc.files set path = repeat('p', 50000)",
        "update assoc.files set gone_at = repeat('9', 50000)",
    ],
    ids=["bytes behind a frame", "path", "time"],
)
def test_what_no_machine_sends_is_not_stored(
    fleet: Fleet, tmp_path: Path, database: Any, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    fleet.push("laptop", *demo(tmp_path / "homes")).close()
    database.execute(
        "delete from assoc.files f where not exists ("
        " select from assoc.frames where file_no = f.file_no and data is not null)"
    )
    database.execute(statement)
    run = CliRunner().invoke(cli, ["pull", "--db", str(tmp_path / "other.db")])
    assert "Fetched 0 files" in run.output
    assert "41 files, damaged or incomplete on the server" in run.output


def test_an_error_of_the_server_is_repeated_in_part(
    fleet: Fleet, tmp_path: Path, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    database.execute("drop view assoc_read.coverage")
    database.execute(
        "create function assoc_read.fails() returns text language plpgsql as"
        " $$ begin raise exception '%', repeat('x', 100000); end $$"
    )
    database.execute(
        "create view assoc_read.coverage as select assoc_read.fails() as type, '' as subtype,"
        " 1 as lines, 1 as files, '' as source"
    )
    run = CliRunner().invoke(cli, ["query", "coverage", "--remote"])
    assert isinstance(run.exception, FleetError)
    assert len(str(run.exception)) < 1_000
