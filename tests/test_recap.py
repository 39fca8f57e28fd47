"""`recap` adds up what was done in a period, by day and repository."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.hostile import EVIL
from tests.support.reading import index, reader
from tests.support.shell import Shell
from tests.support.web import Site
from tests.support.writing import (
    OTHER,
    SESSION,
    THIRD,
    Object,
    assistant,
    call,
    dumps,
    result,
    user,
    write,
    write_bytes,
)

from assoc_ingest.ask import times
from assoc_ingest.ask.filters import Filters
from assoc_ingest.questions import recap
from assoc_ingest.questions.question import Reader, named
from assoc_ingest.sync.run import sync
from assoc_ingest.web import conversations

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

ADDRESS = "https://example.org/ada/shop/pull/7"
FORK = "3eaf5c71-4444-4555-8666-777788889999"


class Talk:
    """The lines of a conversation."""

    def __init__(self, key: str, cwd: str) -> None:
        self.key, self.cwd = key, cwd
        self.lines: list[Object] = []

    def _envelope(self, moment: str) -> dict[str, Any]:
        number = len(self.lines)
        return {
            "uuid": f"{self.key}-{number}",
            "parent": f"{self.key}-{number - 1}" if number else None,
            "sessionId": self.key, "cwd": self.cwd, "timestamp": f"2026-03-{moment}:00.000Z",
        }  # fmt: skip

    def person(self, moment: str, content: object) -> Talk:
        self.lines.append(user(content, **self._envelope(moment)))
        return self

    def agent(self, moment: str, content: object, output: int | None = 1000) -> Talk:
        """1,000 tokens of the model cost a cent. Without a number, no final count is stated."""
        envelope = self._envelope(moment)
        usage = {"input_tokens": 0, "output_tokens": 1 if output is None else output}
        reason = None if output is None else "end_turn"
        id = f"msg_{envelope['uuid']}"
        self.lines.append(assistant(content, id=id, usage=usage, stop_reason=reason, **envelope))
        return self

    def tool(self, moment: str, id: str, printed: str, name: str = "Bash", **given: str) -> Talk:
        self.agent(moment, [call(id, name, **given)])
        return self.person(moment, [result(id, printed)])

    def write(self, home: Path) -> None:
        folder = self.cwd.replace("/", "-").replace(".", "-")
        write(home, f"projects/{folder}/{self.key}.jsonl", *self.lines)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("recap")
    home = place / "home"
    made = "[main 1a2b3c4] Paint the door\n"
    change = {"old_string": "a", "new_string": "b"}
    shop = Talk(SESSION, "/srv/shop").person("02T09:00", "Paint the door")
    shop.tool("02T09:01", "t1", "done", "Write", file_path="/srv/shop/door.py", content="red")
    shop.tool("02T09:02", "t2", made, command="git commit -m 'Paint the door'")
    shop.agent("02T09:03", "The door is red.").person("03T10:00", "And the fence")
    for number, name in enumerate(("fence.py", "door.py")):
        shop.tool(
            "03T10:01", f"t{number + 3}", "done", "Edit", file_path=f"/srv/shop/{name}", **change
        )
    shop.tool("03T10:03", "t5", made, command="git show && git commit")
    shop.agent("03T10:04", "The fence is blue.")
    shop.lines.append(
        {"type": "pr-link", "prUrl": ADDRESS, "prRepository": "ada/shop", "prNumber": 7,
         "sessionId": SESSION, "timestamp": "2026-03-03T10:05:00.000Z"}
    )  # fmt: skip
    shop.write(home)
    # A fork has the first day's lines again, and nothing of its own.
    fork = Talk(FORK, "/srv/shop")
    origin = {"sessionId": SESSION, "messageUuid": f"{SESSION}-0"}
    fork.lines = [{**line, "sessionId": FORK, "forkedFrom": origin} for line in shop.lines[:7]]
    fork.write(home)
    worktree = Talk(OTHER, "/srv/shop/.claude/worktrees/wide")
    worktree.person("03T11:00", EVIL)
    path = "/srv/shop/.claude/worktrees/wide/wide.py"
    worktree.tool("03T11:01", "t1", "done", "Write", file_path=path, content="wide")
    worktree.agent("03T11:02", "Wider.", None)
    worktree.write(home)
    Talk(THIRD, "/srv/garden").person("03T12:00", "Say ok").agent("03T12:01", "ok").write(home)
    write_bytes(
        home, f"tasks/{SESSION}/1.json",
        dumps({"id": "1", "subject": "Buy paint", "status": "pending", "description": ""}),
    )  # fmt: skip
    database = place / "assoc.db"
    sync(database, [home])
    return database


@pytest.fixture
def asked(filled: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("ASSOC_INGEST_DB", str(filled))
    return shell


def rows(answer: Mapping[str, Any]) -> dict[tuple[str, str | None], dict[str, Any]]:
    return {(one["key"], one["day"]): one for one in answer["items"]}


def test_each_day_has_what_was_done_on_it(asked: Shell) -> None:
    answer = asked.json("recap", "2026-03", "--json")
    assert [(one["key"], one["day"]) for one in answer["items"]] == [
        ("2d9e4b60", "2026-03-03"), ("1c8d3a5f", "2026-03-03"), ("0b7c2f4e", "2026-03-03"),
        ("0b7c2f4e", "2026-03-02"),
    ]  # fmt: skip
    first, second = (rows(answer)["0b7c2f4e", f"2026-03-0{day}"] for day in (2, 3))
    assert first["commits"] == [
        {"ref": "0b7c2f4e:5", "hash": "1a2b3c4", "subject": "Paint the door", "branch": "main"}
    ]
    assert (first["prompts"], first["files"], first["pull_requests"]) == (1, ["door.py"], [])
    assert (first["cost_usd"], second["cost_usd"]) == (0.03, 0.04)
    assert (first["outcome"], first["state"]) == (None, None), "it went on the next day"
    assert second["commits"] == [], "a commit that is printed again is the same one"
    assert (second["files"], second["pull_requests"]) == (["fence.py", "door.py"], [ADDRESS])
    assert second["outcome"]["text"] == "The fence is blue."
    assert second["state"] == "finished"


def test_totals_count_each_thing_once(asked: Shell) -> None:
    answer = asked.json("recap", "2026-03", "--json")
    assert {name: answer[name] for name in ("conversations", "repositories", "commits")} == {
        "conversations": 3, "repositories": 2, "commits": 1
    }  # fmt: skip
    assert (answer["pull_requests"], answer["files"]) == (1, 3)
    assert answer["is_lower_bound"] is True, "a response of the worktree has no final count"
    assert answer["cost_usd"] == pytest.approx(sum(one["cost_usd"] for one in answer["items"]))
    assert [(one["kind"], one["text"]) for one in answer["open"]][:1] == [("task", "Buy paint")]


def test_by_repository_a_conversation_is_listed_once(asked: Shell) -> None:
    answer = asked.json("recap", "2026-03", "--by", "repository", "--json")
    assert [(one["key"], one["repository"], one["day"]) for one in answer["items"]] == [
        ("2d9e4b60", "garden", None), ("1c8d3a5f", "shop", None), ("0b7c2f4e", "shop", None)
    ]  # fmt: skip
    whole = rows(answer)["0b7c2f4e", None]
    assert (len(whole["commits"]), whole["prompts"], whole["files"]) == (
        1,
        2,
        ["door.py", "fence.py"],
    )
    assert whole["cost_usd"] == 0.07
    assert rows(answer)["1c8d3a5f", None]["files"] == ["wide.py"]


def test_a_period_ends_where_it_says(asked: Shell) -> None:
    first = asked.json("recap", "2026-03-02", "--json")
    assert [one["key"] for one in first["items"]] == ["0b7c2f4e"]
    assert first["items"][0]["outcome"] is None
    later = asked.json("recap", "--since", "2026-03-03", "--json")
    assert {one["day"] for one in later["items"]} == {"2026-03-03"}
    assert asked.json("recap", "2026", "--project", "garden", "--json")["conversations"] == 1
    pages = [asked.json("recap", "2026-03", "--json", "-n", "3")]
    pages.append(asked.json("recap", "2026-03", "--json", "-n", "3", "--cursor", pages[0]["next"]))
    assert [len(page["items"]) for page in pages] == [3, 1]
    assert pages[1]["commits"] == 1, "totals are of the period, not of the page"


def test_people_read_it_by_day(asked: Shell) -> None:
    assert asked("recap", "2026-03") == 0
    lines = asked.out.splitlines()
    assert lines[:2] == [
        "Recap, 2026-03-01 to 2026-03-31",
        "3 conversations in 2 repositories, 1 commit, 1 pull request, 3 files, ≥$0.09",
    ]
    assert lines.index("Tuesday, 3 March 2026") < lines.index("Monday, 2 March 2026")
    assert "shop: 2 conversations, 1 pull request, 3 files, ≥$0.05" in lines
    assert "  and 1 short conversation" in lines
    assert "    0b7c2f4e:5  commit  1a2b3c4  Paint the door" in lines
    assert lines[lines.index("Open: 1") :] == [
        "Open: 1", "shop: 1 task", "  task  pending  0b7c2f4e  Buy paint"
    ]  # fmt: skip


def test_what_a_conversation_did_stands_behind_its_title_however_long_that_is(
    asked: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert asked("recap", "2026-03-03", "--project", "shop") == 0
    (line,) = (line for line in asked.out.splitlines() if line.startswith("  1c8d3a5f"))
    assert line.endswith("… · 1 prompt, 1 file, ≥$0.01")
    assert len(line) == 60


def test_what_a_repository_adds_up_to_is_of_all_of_it(asked: Shell, filled: Path) -> None:
    """Also where the answer ends within it, as on the page of many conversations."""
    with closing(reader(filled)) as connection:
        answer = named("recap").ask(Reader(connection, 2), "2026-03", filters=Filters())
    assert [(one.repository, one.about.partition(",")[0]) for one in answer._groups] == [
        ("garden", "1 conversation"), ("shop", "2 conversations")
    ]  # fmt: skip
    assert [(one.repository, one.about.partition(",")[0]) for one in answer._repositories] == [
        ("shop", "2 conversations"), ("garden", "1 conversation")
    ]  # fmt: skip


def test_what_is_open_is_counted_by_repository_and_the_first_of_it_named(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recap, "_LISTED", 2)
    with index(shell.database) as rows:
        for name in ("shop", "garden"):
            project = rows.project(name)
            session, file = rows.session(name, project, message_count=1, prompt_count=1)
            rows.message(file, "prompt", "begin", session_id=session)
            for number in range(3):
                rows.add(
                    "tasks", subject=f"{name} {number}", status="pending", session_id=session,
                    source_id=rows.source, list_key=name, task_key=f"{number}",
                )  # fmt: skip
    assert shell("recap", "2026-01-20") == 0
    opened = shell.out.partition("\nOpen: ")[2].splitlines()
    assert [line[:6] for line in opened] == ["8", "garden", "  sess", "  task", "shop: ", "  and "]
    assert opened[1] == "garden: 1 unfinished conversation, 3 tasks"
    assert opened[4] == "shop: 1 unfinished conversation, 3 tasks"
    assert "more items: assoc-ingest list open" in opened[-1]


def test_markdown_obeys_nothing_that_was_stored(asked: Shell) -> None:
    assert asked("recap", "2026-03", "--markdown") == 0
    assert asked.out.startswith("# Recap, 2026\\-03\\-01") or asked.out.startswith(
        "# Recap, 2026-03-01"
    )
    assert "- **Paint the door** (1 prompt, 1 pull request, 2 files, $0.04, 0b7c2f4e)" in asked.out
    assert "<script" not in asked.out
    assert "\x1b" not in asked.out


def test_a_page_links_to_what_it_names(filled: Path) -> None:
    page = Site(filled).get(f"/{filled.stem}/-/recap?when=2026-03")
    assert "Tuesday, 3 March 2026" in page.words
    assert f"/{filled.stem}/-/session/0b7c2f4e?at=5" in page.links()


def test_the_first_page_begins_with_the_last_days_that_have_something(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def front(query: str = "") -> str:
        page = Site(filled).get(f"/-/assoc{query}").words
        return page.partition(" Recap ")[2].partition(" Newest ")[0]

    monkeypatch.setattr(times, "present", lambda: datetime(2026, 3, 3, 12, tzinfo=UTC))
    week = front()
    assert "3 conversations in 2 repositories, 1 commit, 1 pull request, 3 files" in week
    assert "Tuesday, 3 March 2026" in week
    assert "Monday, 2 March 2026" in week
    assert "Monday" not in front("?recap=today")
    assert "Tuesday" not in front("?recap=yesterday")
    monkeypatch.setattr(conversations, "MOST_RECAPPED", 1)
    assert "Monday" not in front(), "of too many conversations, the newest days are shown"
    monkeypatch.setattr(conversations, "MOST_RECAPPED", 60)
    monkeypatch.setattr(times, "present", lambda: datetime(2026, 5, 3, 12, tzinfo=UTC))
    assert front().partition(" 3 conv")[2] == week.partition(" 3 conv")[2], "nothing is newer"
    assert "Nothing was done in that period." in front("?recap=today")
    assert "Choose one of: yesterday, today." in Site(filled).get("/-/assoc?recap=x").words


def test_who_may_not_see_what_a_recap_is_made_of_gets_the_rest_of_the_first_page(
    filled: Path,
) -> None:
    hidden = {filled.stem: {"tables": {"links": {"allow": False}}}}
    words = Site(filled, databases=hidden).get("/-/assoc").words
    assert " Recap " not in words
    assert " Newest " in words


def test_nothing_says_when_there_was_something(asked: Shell) -> None:
    assert asked("recap", "2031") == 1
    assert "Nothing was done in that period." in asked.err
    assert "The newest conversation is of 2026-03-03: assoc-ingest recap 2026-03-03" in asked.err
    assert asked("recap") == 1
    assert "Without since today" in asked.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bogus"], "Invalid time 'bogus'"),
        (["2026-03", "--since", "7d"], "Give a period, or --since and --until, not both."),
        (["last", "wek"], "Invalid time 'last wek'"),
    ],
)
def test_a_period_that_means_nothing_is_refused(asked: Shell, words: list[str], said: str) -> None:
    assert asked("recap", *words) == 2
    assert said in asked.err


def test_words_of_a_period_need_no_quotes(asked: Shell) -> None:
    assert asked("recap", "last", "week") == 1
    assert "Without since last week" in asked.err
    assert asked("recap", "week") == 1
    assert "Without since this week" in asked.err
