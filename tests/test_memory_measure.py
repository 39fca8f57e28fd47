"""The measure of memory counts what it says, and its cases have true answers.

The published repository is an invented one, made here by git as Entire would leave it.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest
from benchmarks import search
from benchmarks.memory import case, ours
from benchmarks.memory.__main__ import main
from benchmarks.memory.case import Case

from assoc_ingest import git as git_program
from assoc_ingest.sync.run import sync

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not git_program.is_installed(), reason="git is not installed"),
]

FROST = "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301"
LID = "11111111-0000-4000-8000-000000000001"
HINGE = "019c7a10-0000-7270-b988-000000000002"


@pytest.fixture(autouse=True)
def without_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSOC_REAL_CORPUS", raising=False)


# -- figures ---------------------------------------------------------------------------------------


def test_figures_are_those_of_answers_made_by_hand() -> None:
    answers = [
        Case("question", "a", ("x",), found=("x", "y"), evidence="strong"),
        Case("question", "b", ("x", "z"), found=("y", "x", "z"), evidence="weak"),
        Case("nothing", "c", found=("y",), evidence="weak"),
        Case("nothing", "d", found=("y",), evidence="strong"),
        Case("nothing", "e", found=("y",)),
        Case("commit", "1", ("x",), found=("x", "y", "z"), claims=2),
        Case("commit", "2", ("x", "y"), found=("z", "x"), claims=2),
        Case("commit", "3", found=("x",), claims=0),
        Case("commit", "4", found=("x",), claims=1),
        Case("error", "e1", ("x",), found=("x",), ended="pool.py", fix="edited Pool.py"),
        Case("error", "e2", ("x",), found=("y",), ended="pool.py", fix="edited pool.py"),
        Case("error", "e3", ("x",), found=("x",)),
        Case("error", "e4", ("x",), found=("x",), fix="ran make"),
    ]
    page = "\n".join(case.tables("mine", answers))
    rows = [line for line in page.splitlines() if re.match(r"\| [a-z]", line)]
    assert rows == [
        "| question | 2 | 0.50 | 1.00 | 0.75 |",
        "| nothing answers it | 3 | 0.50 | 1 |",
        "| answerable | 2 | 0.50 | 0 |",
        "| commit | 4 | 0.50 | 0.75 | 0.40 | 0.67 |",
        "| error | 4 | 0.50 |",
    ]
    assert [one.query for one in case.wrong(answers)] == ["d", "2", "4", "e2", "e4"]


def test_answers_of_another_program_are_scored_from_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [Case("commit", "1", ("x",)), Case("line", "a.py", ("y",), line=3)]
    case.write(tmp_path / "cases.jsonl", cases)
    lines = (tmp_path / "cases.jsonl").read_text("utf-8").splitlines()
    assert lines[0] == '{"kind": "commit", "query": "1", "right": ["x"]}'
    answered = [{**json.loads(line), "found": ["x"]} for line in lines]
    path = tmp_path / "other.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in answered), "utf-8")
    assert main(["score", str(path)]) == 0
    page = capsys.readouterr().out
    assert "### Which conversation made this: other" in page
    assert "| commit | 1 | 1.00 | 1.00 | 1.00 | 1.00 |" in page
    assert "| line | 1 | 0.00 | 0.00 | 0.00 | 0.00 |" in page
    assert "| line | `a.py` | not found |" in page


# -- cases made by hand ----------------------------------------------------------------------------


@pytest.mark.parametrize("home", ["demo", "corpus"])
def test_cases_by_hand_name_conversations_that_exist(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    if home not in search.homes():
        pytest.skip("ASSOC_REAL_CORPUS names no transcripts")
    cases = [one for one in case.read(ours.CASES) if one.home == home]
    assert {one.kind for one in cases} <= set(case.KINDS)
    sync(tmp_path / "assoc.db", search.homes()[home])
    with sqlite3.connect(tmp_path / "assoc.db") as connection:
        known = {key for (key,) in connection.execute("select session_key from sessions")}
    for one in cases:
        assert known.issuperset(one.right), one
        assert bool(one.right) != (one.kind == "nothing") or one.kind in case.BLAMES, one


def test_this_program_answers_the_cases_of_the_demonstration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = tmp_path / "answers.jsonl"
    assert main(["ask", "--build", str(tmp_path / "build"), "--answers", str(answers)]) == 0
    page = capsys.readouterr().out
    kept = case.read(answers)
    assert page.count("\n### ") == 5
    questions = [one for one in kept if one.kind == "question"]
    assert len(questions) == 13
    assert [one.query for one in questions if one.rank is None or one.rank > 3] == []
    blamed = {
        (one.query, one.line): (one.is_first_right, one.found)
        for one in kept
        if one.kind in ("file", "pull request")
    }
    assert blamed["crops.toml", None] == (True, (FROST,))
    assert blamed["beds/three.md", None] == (True, ())
    assert blamed["https://example.org/fernhill/pull/12", None] == (True, (FROST,))
    assert [one.fix for one in kept if one.kind == "error"] == ["edited crops.toml"] * 2
    made_by_a_person = [one for one in kept if one.kind in ("commit", "line") and not one.right]
    assert [one.is_first_right for one in made_by_a_person] == [True] * 3


# -- published transcripts -------------------------------------------------------------------------


class Published:
    """A repository with the branch on which Entire keeps transcripts."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        names = {f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER")
                 for what in ("NAME", "EMAIL")}  # fmt: skip
        none = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", "-C", self.place, *arguments],
            check=True, capture_output=True, text=True, env={**os.environ, **names, **none},
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, message: str, **files: str) -> str:
        for name, text in files.items():
            path = self.place / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def checkpoint(self, name: str, session: str, transcript: list[dict[str, object]]) -> None:
        lines = "".join(json.dumps(line) + "\n" for line in transcript)
        place = f"{name[:2]}__{name[2:]}__0__"
        files = {
            f"{place}metadata_dot_json": json.dumps({"session_id": session}),
            f"{place}full_dot_jsonl": lines,
        }
        self.commit("Checkpoint", **files)


def said(text: str, **fields: object) -> dict[str, object]:
    return {
        "type": "user", "cwd": "/srv/box", "timestamp": "2026-03-01T10:00:00Z",
        "message": {"role": "user", "content": text}, **fields,
    }  # fmt: skip


@pytest.fixture
def published(tmp_path: Path) -> Published:
    made = Published(tmp_path / "clone")
    made.commit("By a person", box_dot_py="start = 1  # of the box\n")
    made.git("checkout", "-q", "--orphan", "entire/checkpoints/v1")
    made.git("rm", "-q", "-rf", ".")
    first = [said("Make a lid", sessionId=LID), said("and a hinge", sessionId=LID)]
    made.checkpoint("1234567890ab", LID, first[:1])
    made.checkpoint("223456789012", f"2026-03-01-{LID}", first)
    rollout = {"timestamp": "2026-03-02T09:00:00.000Z", "type": "session_meta",
               "payload": {"id": HINGE, "cwd": "/srv/box"}}  # fmt: skip
    made.checkpoint("323456789012", HINGE, [rollout])
    made.git("checkout", "-q", "main")
    return made


def test_a_set_is_what_a_repository_says_of_its_own_commits(
    published: Published, tmp_path: Path
) -> None:
    lid = published.commit(
        "A lid for the box\n\nEntire-Checkpoint: 1234567890ab",
        box_dot_py="start = 1  # of the box\nlid = 'closes the box'\n}\n",
    )
    published.git("checkout", "-q", "-b", "hinge")
    hinge = published.commit(
        "Hinge\n\nEntire-Checkpoint: 323456789012", hinge_dot_py="hinge = 'of the lid'\n"
    )
    published.git("checkout", "-q", "main")
    published.git("merge", "-q", "--no-ff", "-m", "Merge pull request #7 from ada/hinge", "hinge")
    squashed = published.commit(
        "Paint the box red (#8)\n\nEntire-Checkpoint: 223456789012", colour_dot_py="red = 1\n"
    )
    published.commit("Unknown\n\nEntire-Checkpoint: ffffffffffff")
    at = tmp_path / "sets"
    arguments = ["build", "ada/box", "--from", str(published.place), "--to", str(at)]
    assert main(arguments) == 0
    place = at / "ada+box"
    cases = {(one.kind, one.query, one.line): one.right
             for one in case.read(place / "cases.jsonl")}  # fmt: skip
    web = "https://github.com/ada/box/pull"
    assert cases == {
        ("subject", "A lid for the box", None): (LID,),
        ("subject", "Paint the box red (#8)", None): (LID,),
        ("commit", lid, None): (LID,),
        ("commit", hinge, None): (HINGE,),
        ("commit", squashed, None): (LID,),
        ("line", "box.py", 2): (LID,),
        ("line", "hinge.py", 1): (HINGE,),
        ("file", "box.py", None): (LID,),
        ("file", "colour.py", None): (LID,),
        ("file", "hinge.py", None): (HINGE,),
        ("pull request", f"{web}/7", None): (HINGE,),
        ("pull request", f"{web}/8", None): (LID,),
    }
    homes = place / "homes"
    transcript = homes / "claude" / "projects" / "-srv-box" / f"{LID}.jsonl"
    assert transcript.read_text("utf-8").count("\n") == 2, "the longest version"
    day = homes / "codex" / "sessions" / "2026" / "03" / "02"
    assert (day / f"rollout-2026-03-02T09-00-00-{HINGE}.jsonl").is_file()
    assert (place / "repository" / "hinge.py").is_file()
    assert published.git("status", "--porcelain") == ""
    answers = ours.of_set(place, tmp_path / "build", 1)
    assert [one.kind for one in answers] == [
        *("subject", "commit", "line", "file", "pull request"),
    ]
    assert all(one.found is not None for one in answers)


def test_what_cannot_be_built_says_why(
    published: Published, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["build", "box"])
    assert "box is no OWNER/NAME" in capsys.readouterr().err
    missing = ["build", "ada/box", "--from", str(tmp_path / "none"), "--to", str(tmp_path / "sets")]
    with pytest.raises(SystemExit):
        main(missing)
    assert "Nothing was built: git clone" in capsys.readouterr().err
    published.git("branch", "-q", "-D", "entire/checkpoints/v1")
    with pytest.raises(SystemExit, match="publishes no transcripts"):
        main(["build", "ada/box", "--from", str(published.place), "--to", str(tmp_path / "sets")])
