"""What has changed since a conversation is said as far as it is known, and never guessed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.reading import index
from tests.support.shell import Shell
from tests.support.transcripts import Transcript
from tests.support.writing import OTHER, SESSION, THIRD, at, write

from assoc_ingest import git as git_program
from assoc_ingest.ask.since import Since, changed_since
from assoc_ingest.mcp.index import Index, Settings
from assoc_ingest.mcp.recall import event_of, recall
from assoc_ingest.mcp.server import Tools
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import SyncOptions, sync

DEMO = "/srv/demo"


def since(database: Path, key: str = SESSION) -> Since | None:
    with closing(open_reader(database)) as connection:
        row = connection.execute(
            "select id, cwd, ended_at from sessions where session_key = ?", (key,)
        ).fetchone()
        return changed_since(connection, row)


def edit(one: Transcript, second: int, *paths: str, **more: Any) -> None:
    for path in paths:
        one.tool(second, "Edit", file_path=path, old_string="a", new_string="b", **more)


def two(home: Path) -> None:
    """Write a conversation that edits three files, and another that edits two of them later."""
    first, second = (Transcript(home, key, DEMO) for key in (SESSION, OTHER))
    edit(first, 1, f"{DEMO}/beds.py", f"{DEMO}/kale.py", f"{DEMO}/peas.py")
    edit(second, 10, f"{DEMO}/beds.py", "kale.py", f"{DEMO}/new.py")


def test_later_edits_of_other_conversations_are_known(
    home: Path, fresh: Callable[[], Path]
) -> None:
    two(home)
    third = Transcript(home, THIRD, DEMO)
    edit(third, 20, f"{DEMO}/src/../beds.py")
    database = fresh()
    sync(database, [home])
    found = since(database)
    assert found == Since([f"{DEMO}/beds.py", f"{DEMO}/kale.py"], 3, 2, 0)
    assert found is not None
    assert found.said() == (
        "2 of the 3 files edited here have changed since: by 2 other conversations"
    )
    assert since(database, OTHER) == Since([f"{DEMO}/beds.py"], 3, 1, 0)
    assert since(database, THIRD) is None


def test_only_edits_behind_the_last_one_of_a_file_count(
    home: Path, fresh: Callable[[], Path]
) -> None:
    first, second = (Transcript(home, key, DEMO) for key in (SESSION, OTHER))
    edit(first, 1, f"{DEMO}/beds.py")
    edit(second, 10, f"{DEMO}/beds.py", f"{DEMO}/kale.py")
    edit(first, 20, f"{DEMO}/kale.py")
    database = fresh()
    sync(database, [home])
    assert since(database) == Since([f"{DEMO}/beds.py"], 2, 1, 0)


def test_what_changed_nothing_does_not_count(home: Path, fresh: Callable[[], Path]) -> None:
    first = Transcript(home, SESSION, DEMO)
    earlier, failed, elsewhere = (
        Transcript(home, key, DEMO) for key in (OTHER, THIRD, "4" + THIRD[1:])
    )
    other = Transcript(home, "5" + THIRD[1:], "/srv/other", key="-srv-other")
    edit(earlier, 1, f"{DEMO}/beds.py")
    edit(first, 5, f"{DEMO}/beds.py")
    edit(failed, 10, f"{DEMO}/beds.py", is_error=True)
    failed.tool(12, "Read", file_path=f"{DEMO}/beds.py")
    edit(elsewhere, 10, f"{DEMO}/.claude/worktrees/w/beds.py", f"{DEMO}/src/beds.py")
    edit(other, 10, "beds.py")
    first.tool(20, "Edit", is_error=True, file_path=f"{DEMO}/kale.py")
    database = fresh()
    sync(database, [home])
    assert since(database) is None


def test_a_conversation_that_an_app_has_too_is_no_other(shell: Shell) -> None:
    with index(shell.database) as rows:
        project = rows.project("demo", DEMO)
        facts = {"cwd": DEMO, "ended_at": at(50)}
        session, file = rows.session(SESSION, project, **facts)
        _, twin = rows.session(OTHER, project, linked_session_id=session, **facts)
        _, other = rows.session(THIRD, project, **facts)
        for one, second in ((file, 1), (twin, 2), (other, 3)):
            rows.call(one, "Edit", {"file_path": f"{DEMO}/beds.py"}, "done", started_at=at(second))
    assert since(shell.database) == Since([f"{DEMO}/beds.py"], 1, 1, 0)


# -- commits ---------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "garden"
    (place / "beds").mkdir(parents=True)
    run(place, "init", "-b", "trunk")
    return place


def run(directory: Path, *arguments: str, date: str = "") -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    environment = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
    subprocess.run(
        ["git", "-C", directory, *identity, *arguments],
        check=True, capture_output=True, env=environment or None,
    )  # fmt: skip


def commit(repository: Path, second: int, *paths: str) -> None:
    for path in paths:
        (repository / path).write_text(f"{second}\n")
    run(repository, "add", ".")
    run(repository, "commit", "-m", f"at {second}", date=at(second))


needs_git = pytest.mark.skipif(not git_program.is_installed(), reason="git is not installed")


@needs_git
@pytest.mark.parametrize("inner", ["", "beds"])
def test_commits_count_behind_the_one_that_may_have_its_own_work(
    inner: str, repository: Path, home: Path, fresh: Callable[[], Path]
) -> None:
    cwd = repository / inner if inner else repository
    one = Transcript(home, SESSION, cwd)
    edit(one, 10, str(cwd / "kale.py"), str(cwd / "peas.py"), str(cwd / "a.py"))
    name = f"{inner}/".lstrip("/")
    commit(repository, 1, f"{name}kale.py", f"{name}peas.py")
    commit(repository, 20, f"{name}kale.py", f"{name}peas.py", "other.py")
    database = fresh()
    sync(database, [home], SyncOptions(git=True))
    assert since(database) is None  # that commit has what the conversation wrote, or may have it
    commit(repository, 30, f"{name}kale.py")
    commit(repository, 40, f"{name}kale.py", "a.py")
    sync(database, [home])
    assert since(database) is None, "nobody asked git again"
    sync(database, [home], SyncOptions(git=True))
    found = since(database)
    assert found == Since([str(cwd / "kale.py")], 3, 0, 2)
    assert found.said() == "1 of the 3 files edited here has changed since: by 2 commits"


@needs_git
def test_commits_while_it_went_on_are_its_own(
    repository: Path, home: Path, fresh: Callable[[], Path]
) -> None:
    one = Transcript(home, SESSION, repository)
    edit(one, 10, "kale.py")
    one.answer("Committed in parts.", 40)
    for second in (20, 30):
        commit(repository, second, "kale.py")
    database = fresh()
    sync(database, [home], SyncOptions(git=True))
    assert since(database) is None
    commit(repository, 50, "kale.py")
    sync(database, [home], SyncOptions(git=True))
    assert since(database) == Since(["kale.py"], 1, 0, 1)


# -- where it is shown ----------------------------------------------------------------------------

SAID = "2 of the 3 files edited here have changed since: by 1 other conversation"


def test_show_says_it_above_a_whole_conversation(home: Path, shell: Shell) -> None:
    two(home)
    assert shell("sync", str(home)) == 0
    assert shell("show", SESSION) == 0
    assert SAID in " ".join(shell.out.split())
    shown: Any = shell.json("show", SESSION, "--json")
    assert shown["session"]["changed_since"] == {
        "files": [f"{DEMO}/beds.py", f"{DEMO}/kale.py"], "of_files": 3, "conversations": 1,
        "commits": 0,
    }  # fmt: skip
    shown = shell.json("show", OTHER, "--json")
    assert shown["session"]["changed_since"] is None
    assert shell("show", f"{SESSION}:1") == 0
    assert "changed since" not in shell.out


def test_an_agent_that_opens_a_conversation_is_told(home: Path, shell: Shell) -> None:
    two(home)
    assert shell("sync", str(home)) == 0
    answer: Any = Tools(Index(Settings(shell.database))).call("open", {"ref": SESSION})
    (item,) = answer["structuredContent"]["items"]
    assert item["changed_since"] == SAID
    assert [file.get("has_changed") for file in item["changed_files"]] == [True, True, None]
    text = answer["content"][0]["text"]
    assert f"\n{SAID}.\n" in text
    assert f"\n> {DEMO}/kale.py · changed since\n" in text
    assert f"\n> {DEMO}/peas.py\n" in text


def test_a_conversation_that_begins_is_told(home: Path, shell: Shell) -> None:
    two(home)
    assert shell("sync", str(home)) == 0
    moment = event_of(json.dumps({"cwd": DEMO, "hook_event_name": "SessionStart"}).encode())
    assert moment is not None
    with closing(open_reader(shell.database)) as connection:
        assert f"\n{SAID}" in recall(connection, "session-start", moment)


def test_edits_without_a_time_tell_nothing(home: Path, fresh: Callable[[], Path]) -> None:
    two(home)
    path = home / f"projects/-srv-demo/{OTHER}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    write(
        home, f"projects/-srv-demo/{OTHER}.jsonl", *({**one, "timestamp": "soon"} for one in lines)
    )
    database = fresh()
    sync(database, [home])
    assert since(database) is None
