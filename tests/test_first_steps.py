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
    ("search", "--no-verify"): "No such option '--no-verify'."
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


# -- tables ---------------------------------------------------------------------------------------


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
    "assoc-ingest query usage_by_s": ["usage_by_session", "usage_by_subagent_type"],
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
