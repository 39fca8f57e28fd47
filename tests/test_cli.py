"""Commands answer with documented JSON and exit codes; data to stdout, words to stderr."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.reading import index
from tests.support.shell import Shell, running

from assoc_ingest import __main__ as program
from assoc_ingest import __version__, sql
from assoc_ingest.errors import (
    AssocIngestError,
    BusyError,
    DatabaseError,
    DatabaseIOError,
    NotFoundError,
    UsageError,
)

GOLDEN = Path(__file__).parent / "golden"
KEY = "0b7c2f4e-1111-4222-8333-444455556666"
AT = "2026-01-20T10:00:00.000Z"
COMMANDS = ("sync", "watch", "search", "show", "list", "query", "status", "verify", "restore")


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """A shell whose database holds one conversation of everything."""
    with index(shell.database) as rows:
        project = rows.project(
            "shop", session_count=1, last_activity_at=AT, on_disk=0, git_branch="main"
        )
        session, file = rows.session(
            KEY, project, title="Deadlock in the pool", message_count=3, prompt_count=1,
            tool_call_count=1, input_tokens=10, output_tokens=20, cache_read_tokens=30,
            cache_write_tokens=40, models='["claude-x"]', git_branch="main", cwd="/srv/shop",
            agent_version="2.1.0", permission_mode="default",
        )  # fmt: skip
        rows.message(file, "prompt", "that deadlock is back", uuid="u1")
        rows.message(file, "text", "The deadlock is fixed.", uuid="u2", model="claude-x")
        call, _ = rows.call(
            file, "Task", {"description": "find deadlock"}, "done", duration_ms=5, started_at=AT
        )
        agent = rows.add(
            "subagents", agent_type="Explore", agent_key="a1", session_id=session,
            spawned_by=call, link_method="meta", message_count=1, source_id=rows.source,
        )  # fmt: skip
        side = rows.file(f"projects/-srv-shop/{KEY}/subagents/agent-a1.jsonl", kind="agent",
                         session_id=session, subagent_id=agent)  # fmt: skip
        rows.message(side, "text", "nothing here", subagent_id=agent)
        rows.add("issues", reason="not JSON", quarantined=1, file_id=file, byte_offset=7,
                 byte_length=9, sample="{\x1b")  # fmt: skip
        rows.add("sync_runs", started_at=AT, finished_at=AT, files_read=2, bytes_read=99,
                 rows=5, issues=1)  # fmt: skip
        rows.add("sync_runs", started_at=AT, finished_at=None, files_read=0, bytes_read=0,
                 rows=0, issues=0)  # fmt: skip
    return shell


def test_a_search_for_nothing_says_what_it_needs(filled: Shell) -> None:
    assert filled("search", " ") == 2
    assert filled.err == "Error: Give at least one word to search for.\n"
    assert filled("search", "deadlock", "--kind") == 2
    assert "'--kind' requires an argument" in filled.err


@pytest.mark.parametrize(
    "command", ["sync", "sync --json", "watch", "list sessions", "search x", "secrets"]
)
def test_an_unknown_source_is_refused_before_anything_is_done(shell: Shell, command: str) -> None:
    assert shell(*command.split(), "--source", "nope") == 2
    assert "Unknown source 'nope'." in shell.out + shell.err
    assert "Choose one of: claude, codex, " in shell.out + shell.err
    assert not shell.database.exists()


def test_issues_are_one_row_a_reason_and_file_and_each_can_be_listed(shell: Shell) -> None:
    with index(shell.database) as rows:
        for name, reason, quarantined, offsets in (
            ("a", "not JSON", 1, (70, 7, 700)), ("a", "cut", 0, (3,)), ("b", "not JSON", 1, (5, 9)),
        ):  # fmt: skip
            file = next(iter(rows.all("select id from files where path = ?", name)), 0)
            file = file or rows.file(name)
            for offset in offsets:
                rows.add(
                    "issues", reason=reason, quarantined=quarantined, file_id=file,
                    byte_offset=offset, byte_length=2, sample=f"{reason} {offset}",
                )  # fmt: skip
    fields = ("file", "reason", "count", "byte_offset", "sample")
    listed = [tuple(row[name] for name in fields) for row in shell.items("list", "issues")]
    assert [(Path(file).name, *row) for file, *row in listed] == [
        ("a", "not JSON", 3, 7, "not JSON 7"), ("b", "not JSON", 2, 5, "not JSON 5"),
        ("a", "cut", 1, 3, "cut 3"),
    ]  # fmt: skip
    places = [row["byte_offset"] for row in shell.items("list", "issues", "--all")]
    assert places == [7, 70, 700, 5, 9, 3]
    assert shell("list", "issues") == 0
    assert "3 more with --all." in shell.err
    first: Any = shell.json("list", "issues", "--json", "-n", "1")
    second: Any = shell.json("list", "issues", "--json", "-n", "1", "--cursor", first["next"])
    assert [Path(row["file"]).name for row in (*first["items"], *second["items"])] == ["a", "b"]


# -- JSON is a contract ---------------------------------------------------------------------------

CONTRACTS = {
    "search": ("search", "deadlock", "--json"),
    "show": ("show", KEY, "--json"),
    "list_sessions": ("list", "sessions", "--json"),
    "list_projects": ("list", "projects", "--all", "--json"),
    "list_subagents": ("list", "subagents", "--json"),
    "list_files": ("list", "files", "--json"),
    "list_issues": ("list", "issues", "--json"),
    "query_tool_use": ("query", "tool_use", "--json"),
    "status": ("status", "--json"),
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_the_json_of_a_command_is_as_documented(
    filled: Shell, name: str, request: pytest.FixtureRequest
) -> None:
    shown = filled.json(*CONTRACTS[name])
    if name == "status":
        assert isinstance(shown, dict)
        shown |= {"database": Path(shown["database"]).name, "size": "a number"}
    text = json.dumps(shown, indent=1, ensure_ascii=False) + "\n"
    golden = GOLDEN / f"{name}.json"
    if request.config.getoption("--golden", default=False):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")


def test_json_lines_and_csv_say_the_same(filled: Shell) -> None:
    rows = filled.items("list", "files")
    assert filled("list", "files", "--nl") == 0
    assert [json.loads(line) for line in filled.out.split("\n")[:-1]] == rows
    assert filled("list", "files", "--csv") == 0
    header, *lines = filled.out.split("\n")[:-1]
    assert header == ",".join(rows[0])
    assert len(lines) == len(rows)


def test_csv_is_exact_unless_it_is_to_be_safe(filled: Shell) -> None:
    with sqlite3.connect(filled.database) as connection:
        connection.execute("update sessions set title = '=cmd|x'")
    filled("list", "sessions", "--csv")
    assert f"{KEY},=cmd|x," in filled.out
    filled("list", "sessions", "--csv-safe")
    assert f"{KEY},'=cmd|x," in filled.out


def test_a_table_is_for_reading(filled: Shell) -> None:
    assert filled("list", "sessions") == 0
    header, _, row = filled.out.split("\n")[:3]
    assert header.split("  ")[0] == "key"
    assert row.startswith("0b7c2f4e  Deadlock in the pool")
    assert max(map(len, filled.out.split("\n"))) <= 100
    assert filled("list", "sessions", "--table") == 0
    assert "/srv/shop" in filled.out


def test_a_conversation_is_shown_with_its_best_matches_and_how_to_open_them(filled: Shell) -> None:
    assert filled("search", "deadlock") == 0
    lines = filled.out.split("\n")
    assert lines[0].startswith("Deadlock in the pool  ")
    assert lines[1] == "  shop · main · 1 more in this conversation"
    assert lines[2] == "  0b7c2f4e  you: that [deadlock] is back"
    assert lines[-3:] == [
        "1 conversation, 4 hits. All of them: --all-hits.",
        "Open the first: assoc-ingest show 0b7c2f4e",
        "",
    ]
    assert filled.err == ""


def test_all_hits_are_listed_with_their_places(filled: Shell) -> None:
    assert filled("search", "deadlock", "--all-hits") == 0
    first, *_ = filled.out.split("\n\n")
    assert first.split("\n")[1:] == [
        "    that [deadlock] is back",
        f"    you · shop  /home/ada/.claude/projects/-srv-1/{KEY}.jsonl",
    ]
    assert "Task call" in filled.out


def test_a_query_may_have_words_that_begin_with_a_dash(filled: Shell) -> None:
    assert filled("search", "deadlock", "-back", "-n2", "--kind", "prompt") == 1
    assert "Excluded: messages with back" in filled.err
    assert filled("search", "deadlock", "-nowhere") == 0
    assert filled("search", "--", "-deadlock") == 0
    assert filled("search", "--nowhere") == 2
    assert "To search for it: assoc-ingest search -- --nowhere" in filled.err


# -- names of queries -----------------------------------------------------------------------------


def test_query_without_a_name_lists_the_reports_below_their_headings(shell: Shell) -> None:
    assert shell("query") == 0
    listed = shell.out
    lines = listed.split("\n")
    headings = [line for line in lines if line and not line.startswith(" ")]
    assert headings == list(sql.GROUPS.values())
    below = lines[lines.index("Usage and cost") + 1 : lines.index("")]
    assert [line.split()[0] for line in below] == [
        name for name, report in sql.queries("reports").items() if report.group == "cost"
    ]
    for name, report in sql.queries("reports").items():
        assert sum(re.fullmatch(rf" +{name} +(.*)", line) is not None for line in lines) == 1
        assert f"  {report.title}\n" in listed
    assert max(map(len, lines)) <= 80
    assert "assoc-ingest query NAME" in shell.err


def test_the_query_list_is_for_programs_too(shell: Shell) -> None:
    shown = shell.items("query")
    assert {"name", "group", "title", "description", "parameters"} == set(shown[0])
    assert {item["name"] for item in shown} == set(sql.queries("reports"))
    assert {item["group"] for item in shown} == set(sql.GROUPS)
    (errors,) = (item for item in shown if item["name"] == "errors")
    assert errors["parameters"] == ["tool", "project", "limit"]
    assert shell("query", "--csv") == 0
    rows = list(csv.DictReader(io.StringIO(shell.out)))
    assert [row["name"] for row in rows] == [item["name"] for item in shown]
    assert {"errors": "tool, project, limit"}.items() <= {
        row["name"]: row["parameters"] for row in rows
    }.items()
    assert shell("query", "--table") == 0
    assert errors["description"] in shell.out


NAMED_WRONGLY = {
    ("query", "coverge"): "No query named 'coverge'. Did you mean coverage?",
    ("query", "ask-tool-use"): "No query named 'ask-tool-use'. Did you mean tool_use?",
    ("query", "usage_by_day"): "'usage_by_day' is answered by: assoc-ingest stats --by day",
    ("query", "ask-usage-by-subagent-type"): "is answered by: assoc-ingest stats --by subagent",
    ("query", "list_sesions"): "No query named 'list_sesions'. Did you mean list_sessions?",
    ("query", "usage"): "'usage' is answered by: assoc-ingest stats",
    ("query", "things"): "No query named 'things'. To see them all: assoc-ingest query",
    ("query", ""): "No query named ''. To see them all: assoc-ingest query",
    ("query", "x" * 100_000): "To see them all: assoc-ingest query",
    ("query", "sessions"): "'sessions' is a list, so run: assoc-ingest list sessions",
    ("query", "search_messages"): "'search_messages' cannot be run by name;"
    " use assoc-ingest search.",
    ("query", "pages/session"): "'pages/session' cannot be run by name;"
    " use assoc-ingest show or assoc-ingest serve.",
    ("query", "dashboard_projects"): "use assoc-ingest show or assoc-ingest serve.",
    ("query", "reports/errors"): "No query named 'reports/errors'. Did you mean errors?",
    ("list", "sesions"): "No list named 'sesions'. Did you mean sessions?",
    ("list", "session"): "No list named 'session'. Did you mean sessions?",
    ("list", "tool_use"): "'tool_use' is a report, so run: assoc-ingest query tool_use",
    ("list", "zzz"): "No list named 'zzz'. There are: agents, files, inbox,",
}


@pytest.mark.parametrize("command", NAMED_WRONGLY, ids=lambda command: " ".join(command)[:30])
def test_a_wrong_name_is_answered_with_the_nearest_or_the_command_to_use(
    filled: Shell, command: tuple[str, str]
) -> None:
    assert filled(*command) == 2
    assert NAMED_WRONGLY[command] in filled.err
    assert not filled.out


@pytest.mark.parametrize("name", sql.named_queries())
def test_reports_and_lists_are_run_by_name(filled: Shell, name: str) -> None:
    assert filled("query", name, "--json") == 0, filled.err


def test_a_parameter_reaches_the_query(filled: Shell) -> None:
    assert filled.items("query", "errors", "-p", "tool", "Bash") == []
    assert filled("query", "errors", "-p", "tol", "Bash") == 2
    assert "'tol'" in filled.err
    assert "tool, project, limit" in filled.err


# -- sync -----------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one transcript, whose last line cannot be read."""
    file = tmp_path / "home" / "projects" / "-srv-shop" / f"{KEY}.jsonl"
    file.parent.mkdir(parents=True)
    line = {
        "type": "user", "uuid": "u1", "sessionId": KEY, "timestamp": AT, "cwd": "/srv/shop",
        "message": {"role": "user", "content": "that deadlock is back"},
    }  # fmt: skip
    file.write_text(json.dumps(line) + "\n{broken}\n")
    return tmp_path / "home"


def test_a_sync_is_summed_up_and_its_rows_are_found(shell: Shell, home: Path) -> None:
    assert shell("sync", str(home)) == 0
    assert not shell.out
    assert "Read 1 of 1 file (219 bytes)" in shell.err
    assert "1 record could not be parsed" in shell.err
    assert shell("search", "deadlock") == 0
    assert "that [deadlock] is back" in shell.out
    assert shell("show", "0b7c") == 0
    assert "▌ that deadlock is back" in shell.out
    assert shell("sync") == 0
    assert "Nothing new in 1 file." in shell.err


def test_the_json_of_a_sync_is_the_row_of_the_run(shell: Shell, home: Path) -> None:
    report = shell.json("sync", str(home), "--json")
    assert isinstance(report, dict)
    with sqlite3.connect(shell.database) as connection:
        connection.row_factory = sqlite3.Row
        assert report == dict(connection.execute("select * from sync_runs").fetchone())
    assert (report["files_read"], report["rows"], report["issues"]) == (1, 1, 1)


def test_strict_makes_what_could_not_be_read_a_failure(shell: Shell, home: Path) -> None:
    assert shell("sync", "--strict", str(home)) == 1


def test_a_dry_run_writes_nothing(shell: Shell, home: Path) -> None:
    report = shell.json("sync", str(home), "--dry-run", "--json")
    assert isinstance(report, dict)
    assert (report["id"], report["files_read"]) == (None, 1)
    assert "Would read 1 of 1 file" in shell.err
    assert not shell.database.exists()


def test_without_a_home_the_places_that_were_looked_at_are_named(shell: Shell) -> None:
    assert shell("sync") == 1
    assert ".claude" in shell.err
    assert not shell.database.exists()


# -- exit codes -----------------------------------------------------------------------------------

ANSWERS = {
    "a hit": (("search", "deadlock"), 0),
    "no hit": (("search", "nowhere"), 1),
    "no session": (("show", "ffff"), 1),
    "no project": (("list", "sessions", "--project", "x"), 1),
    "nothing to list": (("list", "teams"), 0),
    "no such command": (("serch", "x"), 2),
    "no query": (("search",), 2),
    "no such list": (("list", "things"), 2),
    "no such query": (("query", "things"), 2),
    "two formats": (("list", "files", "--nl", "--csv"), 2),
    "a bad time": (("search", "x", "--since", "soon"), 2),
    "bad raw syntax": (("search", "--raw", "a AND"), 2),
    "a bad parameter": (("query", "errors", "-p", "limit", "few"), 2),
    "a database that is a directory": (("status", "-d", "/"), 2),
    "a root that is not there": (("sync", "/no/such/directory"), 2),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_exit_code_tells_what_happened(filled: Shell, name: str) -> None:
    arguments, code = ANSWERS[name]
    assert filled(*arguments) == code, filled.err
    assert "Traceback" not in filled.err
    if code:
        assert filled.err.strip()
        assert not filled.out


def test_no_hits_are_still_json(filled: Shell) -> None:
    assert filled("search", "nowhere", "--json") == 1
    answer = json.loads(filled.out)
    assert (answer["items"], answer["total"], answer["next"]) == ([], 0, None)


@pytest.mark.slow
def test_a_query_of_very_many_words_is_answered_and_what_is_left_out_is_said(filled: Shell) -> None:
    words = " ".join(f"w{number}" for number in range(20_000))
    assert filled("search", "deadlock " * 20_000) == 0
    assert "only the first" not in filled.err
    assert filled("search", words) == 1
    assert "The query has 20,000 words; only the first 100 were used." in filled.err
    assert len(filled.err) < 500, "a message does not repeat it"
    assert filled("search", "--raw", words) == 2
    assert "--raw: the expression has 20,000 words; at most 100 are allowed." in filled.err


@pytest.mark.parametrize(
    "command", [("search", "x"), ("show", "x"), ("list", "files"), ("status",)]
)
def test_without_a_database_the_next_command_is_named(
    shell: Shell, command: tuple[str, ...]
) -> None:
    assert shell(*command) == 4
    assert "assoc-ingest sync" in shell.err
    assert not shell.database.exists()


def test_a_file_that_is_no_database_is_refused_and_kept(shell: Shell) -> None:
    shell.database.write_text("not a database, whatever its name says")
    assert shell("status") == 4
    assert "Error: " in shell.err
    assert shell.database.read_text() == "not a database, whatever its name says"


def _sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("it failed \x1b")
    error.sqlite_errorcode = code
    return error


FAILURES: dict[str, tuple[BaseException, int]] = {
    "a known error": (AssocIngestError("it is so"), 1),
    "not found": (NotFoundError("it is so"), 1),
    "usage": (UsageError("it is so"), 2),
    "busy": (BusyError("it is so"), 3),
    "database": (DatabaseError("it is so"), 4),
    "input or output": (DatabaseIOError("it is so"), 5),
    "locked": (_sqlite_error(sqlite3.SQLITE_BUSY), 3),
    "busy with a snapshot": (_sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT), 3),
    "damaged": (_sqlite_error(sqlite3.SQLITE_CORRUPT), 4),
    "no database": (_sqlite_error(sqlite3.SQLITE_NOTADB), 4),
    "disk full": (_sqlite_error(sqlite3.SQLITE_FULL), 5),
    "disk broken": (_sqlite_error(sqlite3.SQLITE_IOERR_WRITE), 5),
    "read-only": (_sqlite_error(sqlite3.SQLITE_READONLY), 5),
    "disk full outside the database": (OSError(28, "No space left on device"), 5),
    "a wrong statement": (_sqlite_error(sqlite3.SQLITE_ERROR), 70),
    "a bug": (ValueError("it failed \x1b"), 70),
    "interrupted": (KeyboardInterrupt(), 130),
}


@pytest.mark.parametrize("name", FAILURES)
def test_every_failure_has_its_code_and_one_sentence(
    filled: Shell, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure, code = FAILURES[name]

    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr("assoc_ingest.upkeep.status.facts", fail)
    assert filled("status") == code
    assert "Traceback" not in filled.err
    assert "\x1b" not in filled.err
    if code not in (0, 130):
        assert len(filled.err.strip().split("\n")) == 1


def test_a_bug_shows_its_traceback_on_request(
    filled: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assoc_ingest.upkeep.status.facts", lambda *_, **__: 1 / 0)
    for arguments in (("-v", "status"), ("status", "-v")):
        assert filled(*arguments) == 70
        assert "Traceback" in filled.err
        assert "ZeroDivisionError" in filled.err


# -- as a process ---------------------------------------------------------------------------------


def _start(database: Path, *arguments: str, **options: int) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "ASSOC_INGEST_DB": str(database),
        "PYTHONPATH": str(Path(program.__file__).parents[1]),
    }
    return subprocess.Popen(running(*arguments), env=environment, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(shell: Shell) -> None:
    with index(shell.database) as rows:
        _, file = rows.session(KEY, None, title="Long")
        for _ in range(2000):
            rows.message(file, "text", "line\n" * 40)
    process = _start(shell.database, "show", KEY, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    assert process.stderr
    process.stdout.read(1000)
    process.stdout.close()
    assert process.wait(30) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_a_signal_that_meets_an_import_ends_a_command_with_its_code(tmp_path: Path) -> None:
    """orjson crashes where one of its own imports fails, so the signal has to wait for them."""
    script = """
import os, signal, sys
from assoc_ingest.__main__ import main

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "uuid" and "orjson" in sys.modules:
            os.kill(os.getpid(), signal.SIGINT)
            print("interrupted", flush=True)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.modules.pop("uuid", None)
sys.meta_path.insert(0, Interrupting())
sys.exit(main(["sync", "-d", sys.argv[1]]))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(program.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "assoc.db")],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "interrupted\n"), done.stderr
    assert not done.stderr.strip()


def test_a_sync_that_is_interrupted_says_what_is_kept(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "home/projects").mkdir(parents=True)
    monkeypatch.setattr("assoc_ingest.sync.run.sync", interrupted)
    assert shell("sync", str(tmp_path / "home")) == 130
    assert shell.err.strip() == "Interrupted. Nothing was kept. To begin again: assoc-ingest sync"
    shell.database.touch()
    assert shell("sync", str(tmp_path / "home")) == 130
    assert shell.err.strip() == "Interrupted. What was read is kept. To go on: assoc-ingest sync"
    assert shell("sync", str(tmp_path / "home"), "--dry-run") == 130
    assert not shell.err.strip()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_command_with_its_code(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """The command waits for its output to be read, so the signal meets it at work."""
    database = tmp_path / "assoc.db"
    with index(database) as rows:
        _, file = rows.session(KEY, None, title="Long")
        for _ in range(2000):
            rows.message(file, "text", "line\n" * 40)
    process = _start(database, "show", KEY, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    process.stdout.read(1000)
    process.send_signal(number)
    _, words = process.communicate(timeout=30)
    assert process.returncode == code
    assert b"Traceback" not in words


@pytest.mark.slow
def test_what_is_asked_often_does_not_import_what_changes_a_schema(tmp_path: Path) -> None:
    """sqlite-utils takes as long to import as a search takes; it is for old databases."""
    home = tmp_path / "home"
    transcript = home / "projects" / "-srv-demo" / "0b7c2f4e-1111-4222-8333-444455556666.jsonl"
    transcript.parent.mkdir(parents=True)
    line = '{"type": "user", "message": {"role": "user", "content": "frost"}, "uuid": "u%d"}\n'
    transcript.write_text(line % 1)
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from assoc_ingest.__main__ import main\n"
        "home, transcript, line = sys.argv[1:]\n"
        "def done(*arguments):\n"
        "    assert main(list(arguments)) == 0, arguments\n"
        "done('sync', home)\n"
        "Path(transcript).open('a').write(line)\n"
        "done('sync', home), done('search', 'frost')\n"
        "done('show', '0b7c'), done('query', 'forks')\n"
        "sys.exit('sqlite_utils' in sys.modules)\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(program.__file__).parents[1]),
        "ASSOC_INGEST_DB": str(tmp_path / "assoc.db"),
    }
    done = subprocess.run(
        [sys.executable, "-c", script, str(home), str(transcript), line % 2],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "module", ["sqlite_utils", "datasette", "orjson", "platformdirs", "sqlite3"]
)
def test_help_and_version_import_nothing_heavy(module: str) -> None:
    script = (
        "import sys\n"
        "from assoc_ingest.__main__ import main\n"
        "main(['--help']), main(['--version'])\n"
        f"sys.exit({module!r} in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(program.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


# -- help -----------------------------------------------------------------------------------------


def test_the_version_is_printed(shell: Shell) -> None:
    assert shell("--version") == 0
    assert shell.out == f"assoc-ingest {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help_with_an_example_and_names_its_database(
    shell: Shell, command: str, flag: str
) -> None:
    assert shell(command, flag) == 0
    assert f"assoc-ingest {command}" in shell.out.split("Example")[1]
    assert "ASSOC_INGEST_DB" in shell.out
