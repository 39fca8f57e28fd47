"""`blame` finds the conversation that made a commit, a file or a line, and never names a wrong one.

The repository is a real one, made here by git, and the transcripts hold what git printed. With
ASSOC_REAL_CORPUS, every commit that a real home printed is looked for as well.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.shell import Shell
from tests.support.transcripts import Transcript
from tests.support.writing import OTHER, SESSION, THIRD, Object

from assoc_ingest import git as git_program
from assoc_ingest.ask.blame import Question, made_in, states
from assoc_ingest.ask.blame import blame as find
from assoc_ingest.ask.git_history import pull_request_in
from assoc_ingest.edits import added_lines
from assoc_ingest.mcp.index import Index, Settings
from assoc_ingest.mcp.server import Tools
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync

needs_git = pytest.mark.skipif(not git_program.is_installed(), reason="git is not installed")

DAY = 1_768_903_200  # 2026-01-20 10:00 UTC, when everything in the transcripts happens


class Repository:
    """A repository whose commits have fixed authors and times, and nobody's configuration."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir(parents=True)
        self.git(0, "init", "-q", "-b", "main")

    def git(self, second: int, *arguments: str) -> str:
        """Run git at a second of the day, and return what it printed."""
        names = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
                 for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"),
                                     ("DATE", f"{DAY + second} +0000"))}  # fmt: skip
        none = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", "-C", self.place, *arguments],
            check=True, capture_output=True, text=True, env={**os.environ, **names, **none},
        )  # fmt: skip
        return done.stdout

    def write(self, name: str, text: str) -> None:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, second: int, subject: str) -> str:
        self.git(second, "add", "-A")
        return self.git(second, "commit", "-m", subject)

    def hash(self, name: str = "HEAD") -> str:
        return self.git(0, "rev-parse", name).strip()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "garden")


def blamed(shell: Shell, home: Path, *arguments: str) -> list[tuple[str, str]]:
    """Return the grade and the key of each conversation that is named."""
    sync(shell.database, [home])
    assert shell("blame", *arguments, "--json") in (0, 1), shell.err
    found = json.loads(shell.out)
    assert "error" not in found, found
    assert shell("blame", *arguments) in (0, 1)  # people can read it, too
    return [(item["grade"], item["session_key"]) for item in found["items"]]


# -- commits --------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_git
def test_the_conversation_whose_command_made_a_commit_comes_before_one_that_listed_it(
    shell: Shell, home: Path, repository: Repository
) -> None:
    repository.write("pool.py", "size = 1\n")
    printed = repository.commit(60, "Make the pool larger")
    maker = Transcript(home, SESSION, repository.place)
    maker.bash(60, 'git add -A && git commit -m "Make the pool larger"', printed)
    reader = Transcript(home, OTHER, repository.place)
    reader.bash(300, "git log --oneline", repository.git(0, "log", "--oneline"))
    talker = Transcript(home, THIRD, repository.place)
    talker.say(f"Why did we do {repository.hash()[:9]}?", 400)
    expected = [("made", SESSION), ("mentioned", THIRD), ("printed", OTHER)]
    assert blamed(shell, home, repository.hash()) == expected
    assert blamed(shell, home, repository.hash()[:7]) == expected


@pytest.mark.slow
@needs_git
def test_every_place_is_one_that_show_opens(
    shell: Shell, home: Path, repository: Repository
) -> None:
    repository.write("pool.py", "size = 1\n")
    printed = repository.commit(60, "Make the pool larger")
    Transcript(home, SESSION, repository.place).bash(
        60, 'git commit -m "Make the pool larger"', printed
    )
    sync(shell.database, [home])
    (item,) = shell.items("blame", repository.hash())
    (place,) = item["evidence"]
    assert place["ref"] == f"{SESSION[:8]}:2"
    assert (place["line"], place["text"]) == (2, printed.split("\n")[0])
    path = Path(place["file"])
    assert path.read_bytes()[place["byte"] :].startswith(b'{"type":"user"')
    assert shell("show", place["ref"]) == 0
    assert "Make the pool larger" in shell.out


@pytest.mark.slow
@needs_git
def test_a_commit_that_was_rewritten_is_found_by_its_subject_and_time(
    shell: Shell, home: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for second, session in ((60, SESSION), (3000, OTHER)):
        repository.write("notes.txt", f"{second}\n")
        subject = "Water the beans"
        command = f"git commit -am \"$(cat <<'EOF'\n{subject}\n\nThey were dry.\nEOF\n)\""
        Transcript(home, session, repository.place).bash(
            second, command, repository.commit(second, subject)
        )
    repository.git(5000, "commit", "--amend", "-q", "-m", "Water the beans", "-m", "Reworded.")
    monkeypatch.chdir(repository.place)
    assert blamed(shell, home, repository.hash()) == [("committed", OTHER)]
    monkeypatch.chdir(home)  # without the repository nobody knows the subject
    assert blamed(shell, home, repository.hash()) == []


@pytest.mark.slow
@needs_git
def test_a_commit_of_a_person_is_found_by_the_edits_before_it(
    shell: Shell, home: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = Transcript(home, SESSION, repository.place)
    path = str(repository.place / "pool.py")
    editor.tool(60, "Edit", file_path=path, old_string="size = 1", new_string="size = 9")
    later = Transcript(home, OTHER, repository.place)
    later.tool(3000, "Edit", file_path=path, old_string="size = 9", new_string="size = 7")
    repository.write("pool.py", "size = 9\n")
    repository.commit(600, "By hand")
    monkeypatch.chdir(repository.place)
    assert blamed(shell, home, "HEAD") == [("edited", SESSION)]


@pytest.mark.slow
@needs_git
def test_only_edits_of_the_week_before_a_commit_count(
    shell: Shell, home: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = Transcript(home, SESSION, repository.place)
    path = str(repository.place / "pool.py")
    editor.tool(60, "Edit", file_path=path, old_string="size = 1", new_string="size = 9")
    monkeypatch.chdir(repository.place)
    for days, expected in [(6, [("edited", SESSION)]), (8, [])]:
        repository.write("pool.py", f"size = {days}\n")
        repository.commit(days * 86_400, f"By hand, {days} days later")
        assert blamed(shell, home, "HEAD") == expected


@pytest.mark.slow
def test_without_the_repository_an_equal_subject_is_only_a_mention(
    shell: Shell, home: Path
) -> None:
    """It may be another commit: many are called alike."""
    maker = Transcript(home, SESSION, "/srv/demo")
    maker.bash(1, 'git commit -m "Water the beans"', "[main 7654321] Water the beans\n")
    Transcript(home, OTHER, "/srv/demo").bash(9, "git log", "1a2b3c4 Water the beans\n")
    assert blamed(shell, home, "1a2b3c4") == [("mentioned", SESSION), ("printed", OTHER)]


@pytest.mark.slow
def test_the_beginning_of_two_hashes_is_ambiguous(shell: Shell, home: Path) -> None:
    log = Transcript(home, SESSION, "/srv/demo")
    log.bash(1, "git log --oneline", "1234567a One\n1234567b Other\n")
    sync(shell.database, [home])
    assert shell("blame", "1234567") == 2
    assert "is the beginning of 2 hashes" in shell.err
    assert "1234567a  One" in shell.err
    assert blamed(shell, home, "1234567a") == [("printed", SESSION)]


@pytest.mark.slow
def test_what_shows_an_old_commit_line_did_not_make_it(shell: Shell, home: Path) -> None:
    reader = Transcript(home, SESSION, "/srv/demo")
    reader.bash(1, "cat build.log", "[main 1a2b3c4] Make the pool larger\n")
    assert blamed(shell, home, "1a2b3c4") == [("printed", SESSION)]


@pytest.mark.slow
def test_what_was_only_printed_leads_nobody(shell: Shell, home: Path) -> None:
    Transcript(home, SESSION, "/srv/demo").say("What did 1a2b3c4 change?", 1)
    Transcript(home, OTHER, "/srv/demo").bash(9, "git log --oneline", "1a2b3c4 Prune the roses\n")
    assert blamed(shell, home, "1a2b3c4") == [("mentioned", SESSION), ("printed", OTHER)]
    shell("blame", "1a2b3c4")
    assert "Nothing shows which conversation made it" in " ".join(shell.out.split())


@pytest.mark.slow
def test_a_commit_that_a_rebase_repeats_was_made_elsewhere(shell: Shell, home: Path) -> None:
    line = "[detached HEAD 1a2b3c4] Prune the roses\n"
    Transcript(home, SESSION, "/srv/demo").bash(1, "git rebase --continue", line)
    assert blamed(shell, home, "1a2b3c4") == [("replayed", SESSION)]
    maker = Transcript(home, OTHER, "/srv/demo")
    maker.bash(0, 'git commit -m "Prune the roses"', "[main 1a2b3c4] Prune the roses\n")
    assert blamed(shell, home, "1a2b3c4") == [("made", OTHER), ("replayed", SESSION)]


@pytest.mark.parametrize(
    ("command", "printed", "is_replayed"),
    [
        ("git rebase --continue", "[detached HEAD 1a2b3c4] Subject", True),
        ("git commit --no-edit && git rebase --continue", "[detached HEAD 1a2b3c4] A", True),
        ("git cherry-pick 7654321", "[main 1a2b3c4] Subject", True),
        ("git commit -m 'Subject'", "[detached HEAD 1a2b3c4] Subject", False),
        ("git commit -m 'Subject' && git rebase main", "[main 1a2b3c4] Subject", False),
        ("git commit --amend --no-edit", "[main 1a2b3c4] Subject", False),
        ("git revert 7654321", "[main 1a2b3c4] Subject", False),
    ],
)
def test_a_commit_is_replayed_if_another_one_was_its_source(
    command: str, printed: str, *, is_replayed: bool
) -> None:
    (made,) = made_in(command, printed)
    assert made.is_replayed is is_replayed


@pytest.mark.slow
@needs_git
def test_a_repeated_commit_leads_to_who_made_the_one_that_it_repeats(
    shell: Shell, home: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person moves, picks and amends what a conversation committed, and no edits are known."""
    repository.write("shed.py", "roof = 1\n")
    repository.commit(1, "Begin")
    repository.git(2, "checkout", "-q", "-b", "pool")
    repository.write("pool.py", "size = 1\n")
    maker = Transcript(home, SESSION, repository.place)
    maker.bash(60, "git commit -am 'Make a pool'", repository.commit(60, "Make a pool"))
    repository.write("pond.py", "size = 1\n")
    other = Transcript(home, OTHER, repository.place)
    other.bash(60, "git commit -am 'Dig a pond'", repository.commit(60, "Dig a pond"))
    repository.git(70, "checkout", "-q", "main")
    monkeypatch.chdir(repository.place)

    repository.write("shed.py", "roof = 2\n")
    repository.commit(901, "A roof")
    repository.git(902, "cherry-pick", "-x", "pool~1")
    repository.git(903, "commit", "--amend", "-m", "A pool, reviewed")
    assert blamed(shell, home, "HEAD") == [("committed", SESSION)]
    texts = [one["text"] for one in shell.items("blame", "HEAD")[0]["evidence"]]
    assert all(re.fullmatch(r"as [0-9a-f]{9}: .*Make a pool", text) for text in texts)
    repository.git(905, "branch", "-D", "pool")  # its commits are in the log of references still
    assert blamed(shell, home, "HEAD") == [("committed", SESSION)]
    repository.git(910, "reset", "-q", "--hard", "main~2")
    repository.write("pool.py", "size = 1\ndepth = 2\n")
    repository.git(911, "add", "-A")
    repository.git(912, "commit", "-m", "Something else", "--date", f"{DAY + 60} +0000")
    assert blamed(shell, home, "HEAD") == [], "the time alone tells nothing"


@pytest.mark.slow
def test_a_quiet_commit_that_is_listed_by_its_own_command_was_made_there(
    shell: Shell, home: Path
) -> None:
    maker = Transcript(home, SESSION, "/srv/demo")
    command = 'git commit -qm "Prune the roses" && git log --oneline -2'
    maker.bash(1, command, "1a2b3c4 (HEAD -> main) Prune the roses\n7654321 Older\n")
    assert blamed(shell, home, "1a2b3c4") == [("made", SESSION)]
    assert blamed(shell, home, "7654321") == [("printed", SESSION)]


@pytest.mark.parametrize(
    ("command", "is_stated"),
    [
        ('git commit -m "Prune the roses"', True),
        ("git commit -am 'Prune the roses'", True),
        ("git commit --message=Prune the roses", True),
        ("git commit -F - <<EOF\nPrune the roses\n\nWhy\nEOF", True),
        ('git commit -m "Prune the roses and the beans"', False),
        ('git commit -m "Do not Prune the roses"', False),
        ('echo "Prune the roses"', False),
    ],
)
def test_a_subject_is_stated_as_a_whole_line_or_option(command: str, *, is_stated: bool) -> None:
    assert states(command, "Prune the roses") is is_stated


def test_the_line_of_a_made_commit_is_read_with_its_branch() -> None:
    lines = "hook: ok\n[detached HEAD 1a2b3c4] Fix: [x]\n[trunk (root-commit) 7654321] Begin\n"
    made = made_in("git commit", lines)
    assert [(one.branch, one.hash, one.subject) for one in made] == [
        ("detached", "1a2b3c4", "Fix: [x]"), ("trunk", "7654321", "Begin"),
    ]  # fmt: skip


# -- content --------------------------------------------------------------------------------------

LINES = [f"The {name} are watered every morning." for name in ("beans", "roses", "leeks", "peas")]


@pytest.mark.slow
@needs_git
def test_a_commit_leads_to_who_wrote_its_lines_wherever_the_files_lay(
    shell: Shell, home: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person committed, in a clone that no transcript knows; most lines have one writer."""
    elsewhere = "/workspace/container/notes.txt"
    writer = Transcript(home, SESSION, "/workspace/container")
    writer.tool(10, "Write", file_path=elsewhere, content="\n".join(LINES[:2]))
    edited = f"    {LINES[2]}\n{LINES[0]}"
    writer.tool(20, "Edit", file_path=elsewhere, old_string=LINES[0], new_string=edited)
    other = Transcript(home, OTHER, "/srv/demo")
    other.tool(5, "Edit", file_path="/x", old_string="", new_string="\n".join(LINES))
    late = Transcript(home, THIRD, "/srv/demo")
    late.tool(3000, "Edit", file_path="/x", old_string="", new_string="\n".join(LINES))
    late.tool(9, "Edit", "no", is_error=True, file_path="/x", old_string="", new_string=LINES[0])
    repository.write("garden/notes.txt", "\n".join([*LINES, "}", "----------------"]))
    repository.commit(600, "By hand")
    monkeypatch.chdir(repository.place)
    assert blamed(shell, home, "HEAD") == [("wrote", SESSION), ("partly", OTHER)]
    most, part = shell.items("blame", "HEAD")
    assert (most["lines"], most["of_lines"]) == (3, 4)
    assert [one["text"] for one in most["evidence"]] == [
        f"3 of 4 added lines · {elsewhere}", f"1 of 4 added lines · {elsewhere}",
    ]  # fmt: skip
    assert (part["lines"], part["of_lines"]) == (1, 4)


@pytest.mark.slow
@needs_git
def test_a_squashed_pull_request_leads_to_who_wrote_its_lines(
    shell: Shell, home: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    Transcript(home, SESSION, "/elsewhere").tool(
        10, "Write", file_path="/elsewhere/notes.txt", content="\n".join(LINES)
    )
    repository.write("notes.txt", "\n".join(LINES))
    repository.commit(600, "Water everything (#12)")
    monkeypatch.chdir(repository.place)
    assert blamed(shell, home, "#12") == blamed(shell, home, "HEAD") == [("wrote", SESSION)]


@pytest.mark.slow
def test_a_file_and_a_line_lead_to_who_wrote_them_without_a_repository(
    shell: Shell, home: Path, tmp_path: Path
) -> None:
    """The copy lies where no agent was, and its name is that of several files."""
    for session, name in ((SESSION, "one"), (OTHER, "two")):
        Transcript(home, session, f"/srv/{name}", f"-srv-{name}").tool(
            10, "Write", file_path=f"/srv/{name}/notes.txt",
            content="\n".join(LINES) if name == "one" else "Nothing to be seen here.",
        )  # fmt: skip
    path = tmp_path / "notes.txt"
    path.write_text("\n".join(LINES))
    assert blamed(shell, home, str(path)) == [("wrote", SESSION)]
    assert shell.items("blame", str(path))[0]["evidence"][0]["text"].startswith("4 of 4 lines")
    assert blamed(shell, home, str(path), "--line", "2") == [("wrote", SESSION)]
    assert shell("blame", str(path), "--line", "9") == 2


@pytest.mark.slow
def test_the_latest_edit_that_added_a_line_wrote_it(
    shell: Shell, home: Path, tmp_path: Path
) -> None:
    for second, session in ((10, SESSION), (30, OTHER), (20, THIRD)):
        Transcript(home, session, "/srv/demo").tool(
            second, "Edit", file_path="/srv/demo/a", old_string="x", new_string=LINES[0]
        )
    (tmp_path / "b").write_text(LINES[0])
    assert blamed(shell, home, str(tmp_path / "b"), "--line", "1") == [("wrote", OTHER)]


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"content": f"{LINES[0]}\n  {LINES[1]}\t\n}}\n{LINES[0]}"}, LINES[:2]),
        ({"old_string": LINES[0], "new_string": f" {LINES[0]}\n{LINES[1]}"}, LINES[1:2]),
        ({"edits": [{"oldText": LINES[0], "newText": LINES[1]}, {"newText": LINES[2]}]},
         LINES[1:3]),
        ({"input": f"*** Begin Patch\n+{LINES[0]}\n-{LINES[1]}\n {LINES[2]}"}, LINES[:1]),
        ({"command": ["apply_patch", f"*** Begin Patch\n+{LINES[0]}"]}, LINES[:1]),
        ({"command": "ls", "edits": "none", "content": 7}, []),
        ({"content": "short line\n------------------\n豆に水をやる"}, ["豆に水をやる"]),
    ],
)  # fmt: skip
def test_an_edit_is_recognised_by_the_telling_lines_that_it_added(
    arguments: dict[str, object], lines: list[str]
) -> None:
    assert added_lines(arguments) == lines


# -- files ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_file_was_edited_before_it_was_read_or_talked_about(shell: Shell, home: Path) -> None:
    Transcript(home, SESSION, "/srv/demo").tool(
        1, "Edit", file_path="/srv/demo/src/pool.py", old_string="a = 1\nb", new_string="a = 2\nb"
    )
    Transcript(home, OTHER, "/srv/demo").tool(2, "Read", file_path="/srv/demo/src/pool.py")
    Transcript(home, THIRD, "/srv/demo").say("Look at src/pool.py, please.", 3)
    found = blamed(shell, home, "/srv/demo/src/pool.py")
    assert found == [("edited", SESSION), ("read", OTHER), ("mentioned", THIRD)]
    (edited, *_) = shell.items("blame", "/srv/demo/src/pool.py")
    assert edited["evidence"][0]["text"] == "-2 +2 · a = 1 → a = 2"


@pytest.mark.slow
def test_a_call_that_failed_or_was_declined_edited_nothing(shell: Shell, home: Path) -> None:
    Transcript(home, SESSION, "/srv/demo").tool(
        1, "Edit", "not found", is_error=True,
        file_path="/srv/demo/pool.py", old_string="a", new_string="b",
    )  # fmt: skip
    assert blamed(shell, home, "/srv/demo/pool.py") == []


@pytest.mark.slow
def test_a_name_of_several_files_is_ambiguous_until_its_path_is_given(
    shell: Shell, home: Path
) -> None:
    Transcript(home, SESSION, "/srv/one", "-srv-one").tool(
        1, "Write", file_path="/srv/one/src/pool.py", content="x"
    )
    Transcript(home, OTHER, "/srv/two", "-srv-two").tool(
        2, "Write", file_path="/srv/two/src/pool.py", content="y"
    )
    sync(shell.database, [home])
    assert shell("blame", "src/pool.py") == 2
    assert "is the name of 2 files" in shell.err
    assert "/srv/two/src/pool.py" in shell.err
    assert blamed(shell, home, "/srv/two/src/pool.py") == [("edited", OTHER)]
    assert blamed(shell, home, "src/pool.py", "--project", "one") == [("edited", SESSION)]


@pytest.mark.slow
def test_a_file_is_the_same_in_a_worktree_and_relative_to_its_directory(
    shell: Shell, home: Path
) -> None:
    Transcript(home, SESSION, "/srv/demo").tool(1, "Write", file_path="src/pool.py", content="x")
    Transcript(home, OTHER, "/srv/demo").tool(
        2, "Write", file_path="/srv/demo/.claude/worktrees/a1/src/pool.py", content="y"
    )
    Transcript(home, THIRD, "/srv/demo").tool(
        3, "Write", file_path="/srv/demo/old-src/pool.py", content="z"
    )
    assert blamed(shell, home, "/srv/demo/src/pool.py") == [("edited", OTHER), ("edited", SESSION)]


@pytest.mark.slow
@needs_git
def test_a_file_that_was_renamed_is_found_by_its_earlier_name(
    shell: Shell, home: Path, repository: Repository
) -> None:
    repository.write("src/pool.py", "size = 1\nname = 'pool'\n")
    repository.commit(60, "Begin")
    repository.git(70, "mv", "src/pool.py", "src/basin.py")
    repository.commit(80, "Rename")
    Transcript(home, SESSION, repository.place).tool(
        50, "Write", file_path=str(repository.place / "src/pool.py"), content="size = 1"
    )
    assert blamed(shell, home, str(repository.place / "src/basin.py")) == [("edited", SESSION)]


@pytest.mark.slow
def test_a_name_inside_of_a_longer_name_is_another_file(shell: Shell, home: Path) -> None:
    others = ("my-pool.py", "my_pool.py", "pool.pyc", ".pool.py", "pool.py.orig", "whirlpool.py")
    talk = Transcript(home, OTHER, "/srv/demo")
    for number, name in enumerate(others):
        path = f"/srv/demo/src/{name}"
        talk.tool(number, "Edit", file_path=path, old_string="a", new_string="b")
        talk.tool(number, "Read", "a", file_path=path)
        talk.bash(number, f"pytest src/{name}", "ok")
        talk.say(f"Look at src/{name}, please.", number)
    asker = Transcript(home, SESSION, "/srv/demo")
    asker.bash(30, "pytest -q ./src/pool.py", "ok")
    asker.say("What does `src/pool.py` do?", 31)
    asker.tool(32, "Read", "a", file_path="/srv/demo/src/pool.py")
    for name in ("src/pool.py", "/srv/demo/src/pool.py", "pool.py"):
        assert blamed(shell, home, name) == [("read", SESSION)], name
    (item,) = shell.items("blame", "src/pool.py")
    assert sorted(one["grade"] for one in item["evidence"]) == ["mentioned", "mentioned", "read"]


def test_a_name_without_a_directory_is_no_part_of_another_either(shell: Shell, home: Path) -> None:
    talk = Transcript(home, OTHER, "/srv/demo")
    for name in ("my-pool.py", "my_pool.py", "pool.pyc", ".pool.py", "whirlpool.py"):
        talk.say(f"Look at {name}, please.", 1)
        talk.bash(2, f"pytest {name}", "ok")
    Transcript(home, SESSION, "/srv/demo").say("What does pool.py do?", 3)
    assert blamed(shell, home, "pool.py") == [("mentioned", SESSION)]


@pytest.mark.slow
def test_a_name_that_begins_with_a_dot_keeps_it(shell: Shell, home: Path) -> None:
    for session, name in ((SESSION, ".env"), (OTHER, "env")):
        Transcript(home, session, "/srv/demo").tool(
            1, "Write", file_path=f"/srv/demo/{name}", content="x"
        )
    assert blamed(shell, home, "./.env") == [("edited", SESSION)]


@pytest.mark.slow
def test_a_file_in_several_clones_is_one_question(shell: Shell, home: Path) -> None:
    for number, (session, top) in enumerate(
        ((SESSION, "/home/ada/garden"), (OTHER, "/Users/bea/src/garden"), (THIRD, "/srv/orchard"))
    ):
        Transcript(home, session, top, top.replace("/", "-")).tool(
            number, "Write", file_path=f"{top}/src/pool.py", content="x"
        )
    expected = [("edited", OTHER), ("edited", SESSION)]
    assert blamed(shell, home, "/home/ada/garden/src/pool.py") == expected
    shell("blame", "/home/ada/garden/src/pool.py")
    assert "Also taken for this file, since the directories are called alike" in shell.out
    assert "/Users/bea/src/garden/src/pool.py" in " ".join(shell.out.split())
    assert shell("blame", "src/pool.py") == 2  # the orchard has another one
    assert "is the name of" in shell.err
    assert blamed(shell, home, "src/pool.py", "--project", "/srv/orchard") == [("edited", THIRD)]


@pytest.mark.slow
def test_a_name_that_only_clones_have_is_not_ambiguous(shell: Shell, home: Path) -> None:
    for session, top in ((SESSION, "/home/ada/garden"), (OTHER, "/Users/bea/garden")):
        Transcript(home, session, top, top.replace("/", "-")).tool(
            1, "Write", file_path=f"{top}/src/pool.py", content="x"
        )
    assert {key for _, key in blamed(shell, home, "src/pool.py")} == {SESSION, OTHER}


# -- lines ----------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_git
def test_a_line_leads_to_the_conversation_of_its_commit(
    shell: Shell, home: Path, repository: Repository
) -> None:
    path = str(repository.place / "pool.py")
    repository.write("pool.py", "first_line = 1\n")
    Transcript(home, SESSION, repository.place).bash(
        60, 'git commit -am "One"', repository.commit(60, "One")
    )
    repository.write("pool.py", "first_line = 1\nsecond_line = 2\n")
    second = Transcript(home, OTHER, repository.place)
    second.tool(110, "Edit", file_path=path, old_string="", new_string="second_line = 2")
    second.bash(120, 'git commit -am "Two"', repository.commit(120, "Two"))
    assert blamed(shell, home, path, "--line", "1") == [("made", SESSION)]
    assert blamed(shell, home, path, "--line", "2") == [("made", OTHER)]
    (item,) = shell.items("blame", path, "--line", "2")
    assert [one["grade"] for one in item["evidence"]] == ["made", "wrote"]
    assert item["evidence"][1]["text"].startswith("wrote this line")
    assert shell("blame", path, "--line", "99") == 1
    assert "git has no line 99" in shell.err


@pytest.mark.slow
@needs_git
def test_a_line_that_is_not_committed_leads_to_the_edit_that_wrote_it(
    shell: Shell, home: Path, repository: Repository
) -> None:
    repository.write("pool.py", "first_line = 1\n")
    repository.commit(60, "One")
    repository.write("pool.py", "first_line = 1\nsecond_line = 2\n")
    path = str(repository.place / "pool.py")
    Transcript(home, OTHER, repository.place).tool(
        80, "Edit", file_path=path, old_string="x", new_string="unrelated = 0"
    )
    Transcript(home, SESSION, repository.place).tool(
        70, "Edit", file_path=path, old_string="x", new_string="second_line = 2"
    )
    assert blamed(shell, home, path, "--line", "2")[0] == ("wrote", SESSION)
    shell("blame", path, "--line", "2")
    assert "Line 2 is not committed yet." in shell.out


def test_a_line_without_a_repository_is_one_clear_error(
    shell: Shell, home: Path, tmp_path: Path
) -> None:
    Transcript(home, SESSION, "/srv/demo").say("Hello")
    sync(shell.database, [home])
    (tmp_path / "pool.py").write_text("x\n")
    assert shell("blame", str(tmp_path / "pool.py"), "--line", "1") == 2
    assert "leave out --line" in shell.err


# -- pull requests --------------------------------------------------------------------------------

URL = "https://github.com/ada/garden/pull/12"
API = "https://api.github.com/repos/ada/garden/pulls/12"


@pytest.mark.slow
def test_the_conversation_that_created_a_pull_request_comes_first(shell: Shell, home: Path) -> None:
    Transcript(home, SESSION, "/srv/demo").bash(1, "gh pr create --fill", f"Creating\n{URL}\n")
    Transcript(home, OTHER, "/srv/demo").bash(2, "gh pr view 12", f"url: {URL}\n")
    Transcript(home, THIRD, "/srv/demo").say(f"Review {URL}/files", 3)
    expected = [("made", SESSION), ("mentioned", THIRD), ("printed", OTHER)]
    for name in (
        "#12", "12", "PR 12", "pr-12", "pr #12", "pull/12", "!12", "ada/garden#12",
        "Ada/Garden/pull/12", URL, f"{URL}/files", f"{URL}.diff", API,
    ):  # fmt: skip
        assert blamed(shell, home, name) == expected, name
    assert blamed(shell, home, "PR", "12") == expected, "two words"
    assert blamed(shell, home, "pull", "request", "#12") == expected
    assert shell("blame", "my", "notes.md") == 2
    assert "quotes: assoc-ingest blame 'my notes.md'" in shell.err
    assert blamed(shell, home, "#1") == []
    assert blamed(shell, home, "ada/other#12") == []


@pytest.mark.slow
def test_the_address_for_programs_is_that_of_the_same_pull_request(
    shell: Shell, home: Path
) -> None:
    Transcript(home, SESSION, "/srv/demo").bash(1, "gh pr create --fill", f"Creating\n{URL}\n")
    Transcript(home, OTHER, "/srv/demo").bash(2, "gh api x", f'"url": "{API}", "n": 1\n')
    for name in ("12", API, URL, "ada/garden#12"):
        assert blamed(shell, home, name) == [("made", SESSION), ("printed", OTHER)], name
        of = shell.json("blame", name, "--json")
        assert isinstance(of, dict)
        assert of["of"]["url"] == URL
    assert blamed(shell, home, "https://example.org/ada/garden/pull/12") == []


def test_a_number_of_several_repositories_is_ambiguous(shell: Shell, home: Path) -> None:
    other = URL.replace("garden", "orchard")
    Transcript(home, SESSION, "/srv/demo").say(f"{URL} and {other}")
    sync(shell.database, [home])
    assert shell("blame", "#12") == 2
    assert "2 repositories have a pull request 12" in shell.err
    assert blamed(shell, home, other) == [("mentioned", SESSION)]


@pytest.mark.slow
@needs_git
def test_a_merged_pull_request_leads_to_its_commits_and_its_branch(
    shell: Shell, home: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was opened on the site, by nobody who left a transcript."""
    repository.git(0, "remote", "add", "origin", "git@github.com:Ada/garden.git")
    repository.write("pool.py", "size = 1\n")
    repository.commit(10, "Begin")
    repository.git(20, "checkout", "-q", "-b", "larger-pool")
    repository.write("pool.py", "size = 9\n")
    printed = repository.commit(60, "Make the pool larger")
    repository.git(70, "checkout", "-q", "main")
    merge = "Merge pull request #12 from ada/larger-pool"
    repository.git(600, "merge", "-q", "--no-ff", "larger-pool", "-m", merge, "-m", "A larger pool")
    maker = Transcript(home, SESSION, repository.place)
    maker.bash(60, 'git commit -am "Make the pool larger"', printed)
    Transcript(home, OTHER, repository.place, branch="larger-pool").say("How large is it?", 300)
    Transcript(home, THIRD, repository.place, branch="main").say("Hello", 300)
    fourth = "44444444-4444-4444-8444-444444444444"
    Transcript(home, fourth, repository.place, branch="larger-pool").say("Too late", 3000)
    expected = [("committed", SESSION), ("branch", OTHER)]
    monkeypatch.chdir(repository.place)
    for name in ("#12", "ada/garden#12", "HEAD"):
        assert blamed(shell, home, name) == expected, name
    assert blamed(shell, home, "ada/orchard#12") == [], "another repository"
    monkeypatch.chdir(home)
    assert blamed(shell, home, "ada/garden#12") == [], "nobody knows its branch"


@pytest.mark.slow
@needs_git
def test_a_squashed_commit_leads_to_the_pull_request_that_was_opened_with_its_title(
    shell: Shell, home: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("pool.py", "size = 9\n")
    repository.commit(600, "Make the pool larger (#12)")
    opener = Transcript(home, SESSION, repository.place, branch="larger-pool")
    opener.bash(60, 'gh pr create --title "Make the pool larger" --fill', "Creating a draft")
    late = Transcript(home, OTHER, repository.place, branch="other")
    late.bash(3000, 'gh pr create --title "Make the pool larger" --fill', "")
    Transcript(home, THIRD, repository.place, branch="larger-pool").say("Is it large?", 30)
    monkeypatch.chdir(repository.place)
    assert blamed(shell, home, "HEAD") == [("linked", SESSION), ("branch", THIRD)]
    assert blamed(shell, home, "#12") == [("made", SESSION), ("branch", THIRD)]


@pytest.mark.parametrize(
    ("subject", "body", "named"),
    [
        ("Merge pull request #12 from ada/pool", "A larger pool", ("12", "pool", "A larger pool")),
        ("Make the pool larger (#12)", "", ("12", None, "Make the pool larger")),
        ("Merge branch 'pool' into 'main'", "See merge request a/b!12", ("12", "pool", None)),
        ("Merged in pool (pull request #12)", "", ("12", "pool", None)),
        ("Merged PR 12: A larger pool", "", ("12", None, "A larger pool")),
        ("Merge branch 'pool' into 'main'", "", None),
        ('Revert "Make the pool larger (#12)"', "", None),
        ("Make the pool larger, see #12", "", None),
    ],
)  # fmt: skip
def test_the_message_of_a_merge_names_its_pull_request(
    subject: str, body: str, named: tuple[str, str | None, str | None] | None
) -> None:
    assert pull_request_in(subject, body) == named


# -- what is not there ----------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_not_found_says_what_was_looked_at(shell: Shell, home: Path) -> None:
    Transcript(home, SESSION, "/srv/demo").say("Hello")
    sync(shell.database, [home])
    for name in ("1a2b3c4", "nowhere.py", "#77"):
        assert shell("blame", name) == 1
        assert "Looked at: edits, reads, commands" in shell.err
        assert "The index is of 20" in shell.err
    assert shell("blame", "1a2b3c4", "--json") == 1
    assert json.loads(shell.out)["items"] == []


@pytest.mark.parametrize("name", ["", " ", "/", ".", "...", '"', "%", "#", "\x00", "x" * 5000, "☃"])
def test_no_name_makes_it_fail_in_another_way(shell: Shell, home: Path, name: str) -> None:
    Transcript(home, SESSION, "/srv/demo").say("Hello")
    sync(shell.database, [home])
    assert shell("blame", name) in (1, 2)
    assert "internal error" not in shell.err


def test_a_program_gets_the_answer_in_pieces(shell: Shell, home: Path) -> None:
    for number, session in enumerate((SESSION, OTHER, THIRD)):
        Transcript(home, session, "/srv/demo").tool(number, "Read", file_path="/srv/demo/pool.py")
    sync(shell.database, [home])
    assert shell("blame", "/srv/demo/pool.py", "--json", "-n", "2") == 0
    first = json.loads(shell.out)
    assert [item["session_key"] for item in first["items"]] == [THIRD, OTHER]
    assert (first["total"], first["of"]["kind"]) == (3, "file")
    contract = shell.json("schema", "--json")
    assert isinstance(contract, dict)
    assert first["items"][0].keys() == contract["blame"].keys()
    assert first["items"][0]["evidence"][0].keys() == contract["blame"]["evidence"].keys()
    shell("blame", "/srv/demo/pool.py", "--json", "-n", "2", "--cursor", first["next"])
    assert [item["session_key"] for item in json.loads(shell.out)["items"]] == [SESSION]


# -- limited to one project -----------------------------------------------------------------------


@pytest.mark.slow
@needs_git
def test_an_agent_of_one_project_learns_nothing_of_another(
    shell: Shell, home: Path, repository: Repository, tmp_path: Path
) -> None:
    """Not by a hash, not by a path, and git is not asked elsewhere."""
    repository.write("pool.py", "size = 1\n")
    printed = repository.commit(60, "Make the pool larger")
    maker = Transcript(home, SESSION, repository.place, "-other")
    maker.bash(60, 'git commit -m "Make the pool larger"', printed)
    maker.tool(70, "Write", file_path=str(repository.place / "pool.py"), content="size = 1")
    maker.bash(80, "pytest", "Error: the pool is empty", is_error=True)
    Transcript(home, OTHER, "/srv/one", "-srv-one").say("Hello")
    sync(shell.database, [home])
    asked: list[tuple[str, dict[str, object]]] = [
        ("blame", {"what": repository.hash()}),
        ("blame", {"what": "pool.py"}),
        ("blame", {"what": str(repository.place / "pool.py")}),
        ("blame", {"what": str(repository.place / "pool.py"), "line": 1}),
        ("fix", {"error": "the pool is empty"}),
    ]
    for project, is_seen in (("/srv/one", False), (str(repository.place), True)):
        index = Index(Settings(shell.database, project=project))
        for name, arguments in asked:
            shown = json.dumps(Tools(index).call(name, arguments)["structuredContent"])
            assert (SESSION[:8] in shown) is is_seen, (project, name, arguments)
            assert is_seen or "Make the pool larger" not in shown
        index.close()


# -- real homes -----------------------------------------------------------------------------------

HOMES = sorted(Path(os.environ.get("ASSOC_REAL_CORPUS", "/nowhere")).glob("homes/*"))
_PRINTED = re.compile(r"^\[[^\]\n]+ ([0-9a-f]{7,40})\] (.*)$", re.MULTILINE)


@pytest.mark.skipif(not HOMES, reason="ASSOC_REAL_CORPUS names no transcripts")
def test_the_commits_that_real_homes_printed_are_found_without_a_wrong_one(tmp_path: Path) -> None:
    """What is expected is read from the files, and shares no code with the program."""
    database = tmp_path / "real.db"
    sync(database, HOMES)
    expected: dict[str, tuple[str, str]] = {}
    for path in (path for home in HOMES for path in home.glob("projects/**/*.jsonl")):
        for block, line in _blocks(path):
            for hash_, subject in _PRINTED.findall(block):
                expected[hash_] = (line.get("sessionId", ""), subject)
    assert len(expected) >= 12
    with closing(open_reader(database)) as connection:
        for hash_, (session, subject) in expected.items():
            found = find(connection, Question(hash_))
            made = [
                one.session["session_key"]
                for one in found.conversations[:10]
                if one.evidence[0].grade == "made"
            ]
            assert made == [session], hash_
            assert found.of["subject"] == subject


def _blocks(path: Path) -> list[tuple[str, Object]]:
    """Return the outputs of commands in a transcript, each with its line."""
    found = []
    for text in path.read_bytes().split(b"\n"):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        message = line.get("message") if isinstance(line, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and isinstance(block.get("content"), str):
                found.append((block["content"], line))
    return found
