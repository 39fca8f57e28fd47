"""What people type works or says what does; a terminal is asked before anything is removed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.reading import index
from tests.support.rows import AT
from tests.support.shell import Shell

from assoc_ingest import __main__ as program
from assoc_ingest import terminal
from assoc_ingest.cli import commands, groups
from assoc_ingest.commands.options import progress_in_bytes

KEY = "0b7c2f4e-1111-4222-8333-444455556666"
TITLE = "A title that is longer than thirty columns of a table"


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """One conversation, whose file is gone."""
    with index(shell.database) as rows:
        session, file = rows.session(KEY, rows.project("shop"), title=TITLE, message_count=1)
        rows.connection.execute("update files set gone_at = ?, offset = 0", (AT,))
        rows.message(file, "prompt", "that deadlock is back")
        assert session
    return shell


# -- words ----------------------------------------------------------------------------------------

TYPED = {
    ("serch", "x"): "No such command 'serch'. Did you mean search?",
    ("open",): "No such command 'open'. Run: assoc-ingest list open",
    ("cost", "--by", "day"): "No such command 'cost'. Run: assoc-ingest stats",
    ("xyzzy",): "No such command 'xyzzy'. To see all commands: assoc-ingest --help",
    ("search", "--no-verify"): "No such option '--no-verify'. Did you mean '--no-pager'?"
    " To search for it: assoc-ingest search -- --no-verify",
}


@pytest.mark.parametrize("typed", TYPED, ids=" ".join)
def test_a_wrong_word_is_answered_with_the_right_one(filled: Shell, typed: tuple[str, ...]) -> None:
    assert filled(*typed) == 2
    assert TYPED[typed] in " ".join(filled.err.split())


def test_the_database_may_be_named_before_the_command(filled: Shell, tmp_path: Path) -> None:
    database, none = str(filled.database), str(tmp_path / "none.db")
    os.environ["ASSOC_INGEST_DB"] = none
    assert filled("-d", database, "list", "sessions") == 0
    assert "0b7c2f4e" in filled.out
    assert filled("--db", none, "list", "sessions", "-d", database) == 0, "the nearer one counts"
    assert filled("-d", none, "list", "sessions") == 4


# -- help -----------------------------------------------------------------------------------------


def test_the_help_has_every_command_once_and_cuts_no_line(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert shell("--help") == 0
    sections = shell.out.split("\n\n")[-len(groups()) :]
    assert [section.split(":")[0] for section in sections] == [*groups()]
    listed = [line.split()[0] for section in sections for line in section.split("\n")[1:] if line]
    assert listed == [*commands()]
    assert "..." not in shell.out.partition("Keep up to date:")[2]


def test_what_programs_read_is_at_the_end_of_the_help(shell: Shell) -> None:
    assert shell("list", "--help") == 0
    for_people, _, for_programs = shell.out.partition("\nOutput for programs:\n")
    options = ("--json", "--nl", "--csv", "--csv-safe", "--fields", "--max-chars", "--cursor")
    assert [option for option in options if f"  {option} " in for_people] == []
    assert [option for option in options if f"  {option} " not in for_programs] == []
    assert "--table" in for_people
    assert shell("status", "--help") == 0
    assert "Output for programs" not in shell.out, "one option is no group"


# -- tables ---------------------------------------------------------------------------------------


def test_eighty_columns_have_the_time_and_the_cost(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Titles and projects are cut for them, on wider terminals less."""
    with index(shell.database) as rows:
        project = rows.project("a project with a name that is as long as a title")
        session, file = rows.session(KEY, project, title=TITLE, message_count=1)
        rows.add("prices", model="walrus-1", input=1_000_000, output=0)
        rows.add("responses", model="walrus-1", input_tokens=7, timestamp=AT, session_id=session,
                 file_id=file)  # fmt: skip
    for width, title in (("80", "A title that is lon…"), ("100", "A title that is longer than t…")):
        monkeypatch.setenv("COLUMNS", width)
        shell("list", "sessions")
        headers, _, row = shell.out.split("\n")[:3]
        assert headers.endswith("ended             cost usd")
        assert title in row


def test_a_table_is_cut_for_a_terminal_and_whole_in_a_pipe(
    filled: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    filled("list", "sessions")
    assert TITLE not in filled.out
    assert max(map(len, filled.out.split("\n"))) <= 60
    monkeypatch.delenv("COLUMNS")
    filled("list", "sessions")
    assert TITLE in filled.out
    assert "/srv/shop" not in filled.out.split("\n")[0]


def test_one_long_cell_does_not_fill_all_others(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with index(shell.database) as rows:
        for number, title in enumerate(["x" * 100_000, "short", "short"]):
            rows.session(f"{number}{KEY}", None, title=title, message_count=1)
    monkeypatch.delenv("COLUMNS")
    shell("list", "sessions")
    assert "x" * 100_000 in shell.out
    assert len(shell.out) < 102_000


def test_a_progress_bar_takes_one_line_of_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    with progress_in_bytes("Rebuilding") as progress:
        for done in range(0, 12_345_678_901, 1_234_567_890):
            progress(done, 12_345_678_901)
    lines = shown.getvalue().replace("\x1b[?25l", "").replace("\x1b[?25h", "").split("\r")
    assert any("12.3 GB" in line for line in lines)
    assert max(len(line.rstrip()) for line in lines) <= 80


# -- completion -----------------------------------------------------------------------------------

COMPLETED = {
    "assoc-ingest list sess": ["sessions"],
    "assoc-ingest query status_": ["status_runs", "status_sources"],
    "assoc-ingest forget 0b7": [KEY],
    "assoc-ingest restore 0b7": [KEY],
    "assoc-ingest forget ff": [],
    "assoc-ingest list sessions --project sh": ["shop"],
    "assoc-ingest list sessions --source cc": ["ccinsights"],
}


def completed(database: Path, line: str) -> list[str]:
    environment = {
        **os.environ, "_ASSOC_INGEST_COMPLETE": "bash_complete", "ASSOC_INGEST_DB": str(database),
        "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1),
        "PYTHONPATH": str(Path(program.__file__).parents[1]),
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "assoc_ingest"], env=environment,
                          capture_output=True, text=True)  # fmt: skip
    assert not done.stderr
    return [item.split(",", 1)[1] for item in done.stdout.split()]


@pytest.mark.parametrize("line", COMPLETED)
def test_a_shell_completes_names_and_keys(filled: Shell, line: str) -> None:
    assert completed(filled.database, line) == COMPLETED[line]


def test_where_there_is_no_database_nothing_is_completed(tmp_path: Path) -> None:
    assert completed(tmp_path / "none.db", "assoc-ingest forget 0b") == []
    assert not (tmp_path / "none.db").exists()


# -- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A word, and the second one", "A word, and the\nsecond one"),
        (
            "Interrupted. To go on: assoc-ingest sync",
            "Interrupted. To go\non:\n  assoc-ingest sync",
        ),
        ("To go on: assoc-ingest sync --full", "To go on:\n  assoc-ingest sync --full"),
        ("More: assoc-ingest x", "More: assoc-ingest x"),
        ("a\n\nUsage: assoc-ingest", "a\n\nUsage: assoc-ingest"),
    ],
)
def test_a_message_is_wrapped_at_the_width_of_a_terminal_but_no_command(
    text: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert terminal.message(text) == text, "in a pipe or a file nothing is wrapped"
    monkeypatch.setattr(terminal, "is_terminal", lambda stream: stream is sys.stderr)
    assert terminal.message(text) == shown


# -- the pager ------------------------------------------------------------------------------------


def _pager(place: Path, does: str) -> str:
    script = place / "pager"
    script.write_text(f"#!/bin/sh\necho in the pager\n{does}\n")
    script.chmod(0o700)
    return str(script)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["list sessions", "list sessions --table", "show 0b7c2f4e"])
def test_a_terminal_gets_a_pager_unless_it_wants_none(
    filled: Shell, command: str, tmp_path: Path
) -> None:
    pager = _pager(tmp_path, "cat")
    for options, is_paged in (([], True), (["--no-pager"], False)):
        typed = [[*command.split(), *options], [*options, *command.split()]]
        for arguments in typed:
            code, said = at_a_terminal(filled.database, "", *arguments, pager=pager)
            assert (code, "in the pager" in said) == (0, is_paged), said
            assert "0b7c2f4e" in said
    code, said = at_a_terminal(filled.database, "", *command.split(), pager="")
    assert (code, "0b7c2f4e" in said) == (0, True), said
    os.environ["PAGER"] = pager
    assert filled(*command.split()) == 0
    assert "in the pager" not in filled.out, "nothing but a terminal has one"


@pytest.mark.slow
def test_a_pager_that_is_left_early_ends_the_command_quietly(shell: Shell, tmp_path: Path) -> None:
    with index(shell.database) as rows:
        for number in range(3_000):
            rows.session(f"{number:04}{KEY}", None, title=TITLE, message_count=1)
    arguments = ("list", "sessions", "-n", "0")
    code, said = at_a_terminal(shell.database, "", *arguments, pager=_pager(tmp_path, "exit 0"))
    assert (code, said.split()) == (0, ["in", "the", "pager"])


# -- asking ---------------------------------------------------------------------------------------

ASKING = {
    ("forget", "0b7c2f4e"): "Would forget 1 conversation",
    ("prune", "--gone"): "Would remove 1 file",
    ("compact",): "The database takes",
}


def at_a_terminal(
    database: Path, answer: str, *arguments: str, pager: str = "cat", kind: str = "xterm"
) -> tuple[int, str]:
    """Run a command at a terminal of its own, and type an answer."""
    pty = pytest.importorskip("pty")
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["ASSOC_INGEST_DB"] = str(database)
        os.environ["PAGER"], os.environ["TERM"] = pager, kind
        os.environ["PYTHONPATH"] = str(Path(program.__file__).parents[1])
        os.execv(sys.executable, [sys.executable, "-m", "assoc_ingest", *arguments])
    os.write(terminal, answer.encode())
    said = b""
    try:
        while piece := os.read(terminal, 4096):
            said += piece
    except OSError:  # how a terminal ends on Linux
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()


@pytest.mark.slow
@pytest.mark.parametrize("command", ASKING, ids=" ".join)
def test_a_terminal_is_asked_after_it_was_shown_what_goes(
    filled: Shell, command: tuple[str, ...]
) -> None:
    before = filled.items("list", "files", "--fields", "path")
    code, said = at_a_terminal(filled.database, "n\n", *command)
    assert (code, "Nothing was changed." in said) == (1, True), said
    assert said.index(ASKING[command]) < said.index("[y/N]")
    assert filled.items("list", "files", "--fields", "path") == before
    code, said = at_a_terminal(filled.database, "y\n", *command)
    assert code == 0, said
    is_left = command == ("compact",)
    assert filled.items("list", "files", "--fields", "path") == (before if is_left else [])


@pytest.mark.slow
@pytest.mark.parametrize("command", ASKING, ids=" ".join)
def test_nobody_is_asked_with_yes_or_in_a_script(filled: Shell, command: tuple[str, ...]) -> None:
    code, said = at_a_terminal(filled.database, "", *command, "--yes")
    assert (code, "[y/N]" in said) == (0, False), said
    assert filled("compact") == 0


def test_a_terminal_is_not_asked_about_nothing(shell: Shell) -> None:
    with index(shell.database) as rows:
        rows.session(KEY, None)
    code, said = at_a_terminal(shell.database, "", "prune", "--gone")
    assert (code, "[y/N]" in said) == (0, False), said
    assert "nothing to remove" in said
