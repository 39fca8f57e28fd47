"""`how` says how a command was run here, and counts only what is sure to have worked or failed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.support.shell import Shell
from tests.support.transcripts import Transcript
from tests.support.writing import OTHER, SESSION

from assoc_ingest.ask import how
from assoc_ingest.ask.filters import Filters
from assoc_ingest.questions.how import how as how_command
from assoc_ingest.questions.question import Reader
from assoc_ingest.secrets.mask import redact
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def runs(
    home: Path, *commands: tuple[str, bool], session: str = SESSION, cwd: str = "/srv/demo"
) -> Transcript:
    """Write a conversation that ran these commands, each with whether it failed."""
    talk = Transcript(home, session, cwd, f"-{cwd.strip('/').replace('/', '-')}")
    for number, (command, is_error) in enumerate(commands):
        printed = "Error: no basin" if is_error else "ok"
        talk.bash(10 * number, command, printed, is_error=is_error)
    return talk


def forms(shell: Shell, home: Path, *arguments: str) -> list[tuple[str, int, int, int]]:
    """Return the form, and how often it worked, failed, and is not known to have done either."""
    sync(shell.database, [home])
    items = shell.items("how", *arguments)
    return [(one["form"], one["worked"], one["failed"], one["unknown"]) for one in items]


def test_forms_come_with_their_newest_runs_and_their_last_failure(shell: Shell, home: Path) -> None:
    runs(
        home,
        ("uv run pytest -q tests/a.py", False), ("pytest -x", True), ("pytest -x", True),
        ("uv run pytest -q tests/b.py::test_c", False), ("uv run pytest -q tests/b.py", True),
    )  # fmt: skip
    assert forms(shell, home, "pytest") == [("uv run pytest -q …", 2, 1, 0), ("pytest -x", 0, 2, 0)]
    used, failing = shell.items("how", "pytest")
    assert used["command"] == "uv run pytest -q tests/b.py::test_c"
    assert used["ref"] == f"{SESSION[:8]}:7"
    assert used["failure"] | {"time": ""} == {
        "ref": f"{SESSION[:8]}:9", "time": "", "error": "Error: no basin",
    }  # fmt: skip
    assert used["time"] == used["failure"]["time"] > failing["time"]
    assert (used["project"], failing["command"]) == ("demo", "pytest -x")
    assert failing["failure"]["ref"] == failing["ref"] == f"{SESSION[:8]}:5"
    assert shell("show", used["ref"]) == 0
    assert shell("how", "pytest") == 0
    assert "Run 5 times in 2 forms: 2 worked, 3 failed." in shell.out
    assert "uv run pytest -q … · 2 worked · 1 failed" in shell.out
    assert f"{SESSION[:8]}:5  failed  Error: no basin" in shell.out
    contract = shell.json("schema", "--json")
    assert isinstance(contract, dict)
    assert used.keys() == contract["how"].keys()


def test_names_wrappers_and_the_order_of_words_make_no_other_command(
    shell: Shell, home: Path
) -> None:
    runs(
        home,
        ("go test -v ./pool -run Tap", False), ("go test ./basin -run Sink -v", False),
        ("gotest go.mod", False), ("npm test", False), ("npm run test", False), ("npm t", False),
        ("cd web && npm --prefix web run test", False), ("python3.11 -m pytest", False),
        ("make -j4 clean test", False), ("make lint", False),
    )  # fmt: skip
    assert forms(shell, home, "go", "test") == [("go test … -run … -v", 2, 0, 0)]
    assert {form for form, *_ in forms(shell, home, "npm test")} == {
        "npm test", "npm run test", "npm t", "npm --prefix web run test",
    }  # fmt: skip
    assert forms(shell, home, "pytest") == [("python3.11 -m pytest", 1, 0, 0)]
    assert forms(shell, home, "make test") == [("make -j4 clean test", 1, 0, 0)]
    assert len(forms(shell, home, "make")) == 2


def test_what_is_asked_for_limits_the_runs(shell: Shell, home: Path) -> None:
    runs(
        home,
        ("git push", False), ("git push -u origin main", False), ("git pull", False),
        ("kubectl -n prod get pods", False), ("kubectl -n test get pods", False),
        ("ssh web make test", False),
    )  # fmt: skip
    assert forms(shell, home, "git push -u") == [("git push -u …", 1, 0, 0)]
    assert len(forms(shell, home, "git push")) == 2
    assert len(forms(shell, home, "git")) == 3
    assert forms(shell, home, "git push origin") == [("git push -u …", 1, 0, 0)]
    assert len(forms(shell, home, "kubectl get")) == 2
    assert len(forms(shell, home, "ssh web make test")) == 1
    assert shell("how", "ssh db make test") == 1
    assert shell("how", "git rebase") == 1
    assert "No conversation ran this command: git rebase." in shell.err


def test_a_status_that_the_command_line_hides_is_not_known(shell: Shell, home: Path) -> None:
    runs(
        home,
        ("pytest | tail -3", False), ("pytest; echo done", False), ("pytest || true", False),
        ("set -o pipefail; pytest | tail", False), ("cat a.sql | pytest", False),
        ("cd app && pytest > log.txt", False), ("make all && pytest", True),
        ("cd app && pytest", True), ("git status && pytest", False),
    )  # fmt: skip
    assert forms(shell, home, "pytest") == [("pytest", 4, 1, 4)]
    assert "4 worked, 1 failed, 4 not known" in (shell("how", "pytest"), shell.out)[1]


def test_only_runs_count_that_ended_and_only_once(shell: Shell, home: Path) -> None:
    talk = runs(home, ("pytest -q", False))
    talk.bash(20, "grep -rn pytest .", "a.py: pytest -q")
    talk.tool(30, "Read", "pytest -q", file_path="/srv/demo/pytest")
    assert forms(shell, home, "pytest") == [("pytest -q", 1, 0, 0)]


def test_a_project_limits_the_runs(shell: Shell, home: Path) -> None:
    runs(home, ("pytest -q", False))
    runs(home, ("pytest -x", False), session=OTHER, cwd="/srv/other")
    assert forms(shell, home, "pytest", "--project", "other") == [("pytest -x", 1, 0, 0)]
    assert len(forms(shell, home, "pytest")) == 2


def test_what_was_not_looked_at_is_said(
    shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(how, "MOST_CALLS", 2)
    runs(home, ("pytest -a", False), ("pytest -b", False), ("pytest -c", False))
    assert {form for form, *_ in forms(shell, home, "pytest")} == {"pytest -b", "pytest -c"}
    assert shell("how", "pytest") == 0
    assert "Only the last 2 calls were looked at." in shell.out


def test_code_and_long_texts_are_no_part_of_a_form(shell: Shell, home: Path) -> None:
    runs(
        home,
        ("python3 -c 'print(1)\nprint(2)'", False), ('python3 -c "import a; print(3)"', False),
        ("gh pr create --title 'One basin' --body \"$(cat <<'EOF'\nIt holds.\nEOF\n)\"", False),
    )  # fmt: skip
    assert forms(shell, home, "python") == [("python3 -c …", 2, 0, 0)]
    assert forms(shell, home, "gh pr create") == [("gh pr create --title … --body …", 1, 0, 0)]
    (made,) = shell.items("how", "gh pr create")
    assert made["command"].startswith("gh pr create --title 'One basin' --body \"$(cat <<")


def test_a_credential_is_not_shown(shell: Shell, home: Path) -> None:
    token = "ghp_" + "aB3dE5gH7jK9" * 3
    runs(home, (f"curl -H 'Authorization: Bearer {token}' https://example.org/a", False))
    runs(home, (f"deploy {token}", True), session=OTHER)
    sync(shell.database, [home])
    with closing(open_reader(shell.database)) as connection:
        reader = Reader(connection, 5, mask=lambda text: redact(text)[0])
        for command in ("curl", "deploy", f"deploy {token}"):
            answer = str(how_command.ask(reader, command, filters=Filters()))
            assert command == f"deploy {token}" or f"form='{command}" in answer
            assert token[:12] not in answer


@pytest.mark.parametrize("question", ["how", "fix", "blame"])
def test_an_empty_question_is_one_clear_error(
    question: str, shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(home, ("pytest", False))
    sync(shell.database, [home])
    monkeypatch.setattr("assoc_ingest.terminal.is_terminal", lambda stream: True)
    for text in ("", " "):
        assert shell(question, text) == 2
        assert "internal error" not in shell.err
        assert "Give" in shell.err or "does not say" in shell.err


def test_a_command_that_names_no_program_is_one_clear_error(shell: Shell, home: Path) -> None:
    runs(home, ("pytest", False))
    sync(shell.database, [home])
    for text in ("cd app", "A=b", "| |", "#", "for", "-"):
        assert shell("how", "--", text) == 2, text
        assert "Give a command" in shell.err
