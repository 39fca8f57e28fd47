"""Nothing is removed because a list stopped naming it.

Lists are rewritten whole: conversations, chats, projects, entries of an index, members of a team,
todos, tickets, links. What one no longer names is kept and noted as gone, and what it said last
still counts where nothing newer says it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.faults.amounts import times
from tests.support.pieces import Killed, killed_at
from tests.support.shell import Shell
from tests.support.web import Site
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    dumps,
    in_memory,
    user,
    write,
    write_bytes,
)

from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import (
    Dump,
    assert_as_rebuilt,
    assert_same,
    check,
    connect,
    differences,
    dump,
)
from assoc_ingest.upkeep.forget import Target, forget
from assoc_ingest.upkeep.prune import prune_gone
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.verify import verify

Entry = dict[str, Any]


@dataclass(frozen=True)
class List:
    """A document that lists things, and where its entries become rows."""

    root: str
    path: str
    table: str
    name: str
    """SQL of what tells an entry from others."""
    word: str | None
    """The column of a text in it, None if it has none."""
    entry: Callable[[str, str], Any]
    """Makes an entry of a name and a text."""
    document: Callable[[list[Any]], Any] = lambda entries: entries
    has_equals: bool = False
    """What it names twice are two."""


def merged(entries: list[Any]) -> Any:
    return {key: value for entry in entries for key, value in entry.items()}


LISTS = {
    "index": List(
        "claude", f"{PROJECT}/sessions-index.json", "session_entries", "session_key", "summary",
        lambda name, word: {"sessionId": name, "summary": word, "projectPath": "/srv/demo"},
        lambda entries: {"version": 1, "entries": entries},
    ),
    "pull requests": List(
        "claude", f"{PROJECT}/sessions-index.json", "links", "session_key", "title",
        lambda name, word: {"sessionId": name, "prUrl": "https://x/7", "prRepository": word},
        lambda entries: {"version": 1, "entries": entries},
    ),
    "todos": List(
        "claude", f"todos/{SESSION}-agent-{SESSION}.json", "todos", "content", "status",
        lambda name, word: {"content": name, "status": word},
        has_equals=True,
    ),
    "members": List(
        "claude", "teams/crew/config.json", "team_members", "name", "prompt",
        lambda name, word: {"name": name, "agentId": f"{name}@crew", "prompt": word},
        lambda entries: {"name": "crew", "members": entries},
        has_equals=True,
    ),
    "inbox": List(
        "claude", "teams/crew/inboxes/ada.json", "inbox_items", "text", "summary",
        lambda name, word: {"from": "bo", "text": name, "summary": word, "timestamp": 1768900000},
        has_equals=True,
    ),
    "tasks of a snapshot": List(
        "claude/theassociate", "projects/-srv-demo/task-snapshots/crew.json", "tasks", "task_key",
        "subject",
        lambda name, word: {name: {"snapshot": {"subject": word}}},
        lambda entries: {"teamName": "crew", "tasks": merged(entries)},
    ),
    "plan links": List(
        "claude/theassociate", "projects/-srv-demo/plan-links.json", "links", "url", None,
        lambda name, word: {name: SESSION},
        merged,
    ),
    "conversations": List(
        "chorus", "sessions/w1/g1/conversations.json", "session_entries", "session_key", "title",
        lambda name, word: {"id": name, "title": word},
        lambda entries: {"conversations": entries},
    ),
    "worktrees": List(
        "chorus", "sessions/w1/g1/conversations.json", "project_entries", "key", "git_branch",
        lambda name, word: {"id": name, "worktreePath": name, "branchName": word},
        lambda entries: {"conversations": entries},
    ),
    "workspaces": List(
        "chorus", "config.json", "project_entries", "key", "name",
        lambda name, word: {"id": name, "name": word, "path": f"/srv/{name}"},
        lambda entries: {"workspaces": entries, "settings": {"openaiApiKey": "sk-planted"}},
    ),
    "chats": List(
        "ccinsights", "projects.json", "session_entries", "session_key", "title",
        lambda name, word: {"chatId": name, "name": word},
        lambda entries: {"/srv/x": {"id": "p", "worktrees": {"/srv/x": {"chats": entries}}}},
    ),
    "projects": List(
        "ccinsights", "projects.json", "project_entries", "key", "name",
        lambda name, word: {f"/srv/{name}": {"id": name, "name": word, "worktrees": {}}},
        merged,
    ),
    "tickets": List(
        "ccinsights", "projects/p/tickets.json", "documents", "title", "text",
        lambda name, word: {"id": ord(name), "title": name, "body": word},
        lambda entries: {"schemaVersion": 2, "tickets": entries},
    ),
}  # fmt: skip


class Place:
    """A home of each program that keeps lists, and their index."""

    def __init__(self, place: Path, database: Path) -> None:
        self.place, self.database = place, database
        self._clock = 1_768_900_000
        write(place / "claude", f"{PROJECT}/{SESSION}.jsonl", user("plan the loader"))
        write(place / "claude", "theassociate/hook-events.jsonl", {"hook_event_name": "Stop"})
        write_bytes(place / "chorus", "sessions/w0/g0/conversations.json", b'{"conversations":[]}')
        chat = {"type": "user", "text": "hello", "timestamp": "2026-02-20T10:00:00.000Z"}
        write(place / "ccinsights", "projects/q/chats/chat-0.chat.jsonl", chat)

    @property
    def homes(self) -> list[Path]:
        return [self.place / name for name in ("claude", "chorus", "ccinsights")]

    def put(self, path: str, value: Any) -> Path:
        """Write a document, later than all before."""
        file = write_bytes(self.place, path, value if isinstance(value, bytes) else dumps(value))
        self._clock += 1
        os.utime(file, (self._clock, self._clock))
        return file

    def sync(self) -> None:
        sync(self.database, self.homes)
        check(self.database, *self.homes)

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        connection = connect(self.database)
        try:
            return [tuple(row) for row in connection.execute(question)]
        finally:
            connection.close()


@pytest.fixture
def place(place: Path, fresh: Callable[[], Path]) -> Place:
    return Place(place, fresh())


class Listed:
    """One list of a place."""

    def __init__(self, place: Place, kind: List) -> None:
        self.place, self.kind = place, kind
        self.path = f"{kind.root}/{kind.path}"

    def write(self, *names: str, word: str = "word") -> None:
        entries = [self.kind.entry(name, word) for name in names]
        self.place.put(self.path, self.kind.document(entries))

    def says(self, *names: str, word: str = "word") -> None:
        """Let the list name these, and sync."""
        self.write(*names, word=word)
        self.place.sync()

    def ids(self) -> dict[str, int]:
        return dict(self.place.rows(f"select {self.kind.name}, id from {self._rows} order by 1"))

    def gone(self) -> list[str]:
        rows = self.place.rows(
            f"select {self.kind.name} from {self._rows} and gone_at is not null order by 1"
        )
        return [name for (name,) in rows]

    def words(self) -> dict[str, str]:
        return dict(self.place.rows(f"select {self.kind.name}, {self.kind.word} from {self._rows}"))

    @property
    def _rows(self) -> str:
        path = self.kind.path
        return (
            f"{self.kind.table} where file_id in (select id from files where path = '{path}')"
            f" and {self.kind.name} in ('a', 'b', 'c', 'd')"
        )


class SideBySide(dict[str, Listed]):
    """Lists of one place, each in a file of its own: what all say is read by one sync."""

    def __init__(self, place: Place, kinds: list[str]) -> None:
        super().__init__((kind, Listed(place, LISTS[kind])) for kind in kinds)
        self.place = place
        assert len({listed.path for listed in self.values()}) == len(kinds)

    def says(self, *names: str, word: str = "word") -> None:
        for listed in self.values():
            listed.write(*names, word=word)
        self.place.sync()

    def delete(self) -> None:
        for listed in self.values():
            (self.place.place / listed.path).unlink()
        self.place.sync()

    def cut(self, share: float) -> None:
        for listed in self.values():
            whole = (self.place.place / listed.path).read_bytes()
            self.place.put(listed.path, whole[: int(len(whole) * share)])
        self.place.sync()

    def ids(self) -> dict[str, dict[str, int]]:
        return {kind: listed.ids() for kind, listed in self.items()}

    def names(self) -> dict[str, list[str]]:
        return {kind: list(listed.ids()) for kind, listed in self.items()}

    def gone(self) -> dict[str, list[str]]:
        return {kind: listed.gone() for kind, listed in self.items()}

    def of_each(self, *names: str) -> dict[str, list[str]]:
        return {kind: list(names) for kind in self}


SHARED = ["pull requests", "worktrees", "projects"]
"""Lists in whose files other lists stand."""

ALONE = [kind for kind in LISTS if kind not in SHARED]


@pytest.fixture(params=[ALONE, SHARED], ids=["alone", "shared"])
def lists(request: pytest.FixtureRequest, place: Place) -> SideBySide:
    return SideBySide(place, request.param)


@pytest.fixture(params=[ALONE, SHARED], ids=["alone", "shared"])
def worded(request: pytest.FixtureRequest, place: Place) -> SideBySide:
    """Lists whose entries say more than who they are."""
    return SideBySide(place, [kind for kind in request.param if LISTS[kind].word is not None])


def test_what_a_list_no_longer_names_is_kept_and_may_return(lists: SideBySide) -> None:
    lists.says("a", "b", "c")
    before = lists.ids()
    assert lists.names() == lists.of_each("a", "b", "c")
    lists.says("b", "d")
    assert lists.names() == lists.of_each("a", "b", "c", "d")
    assert lists.gone() == lists.of_each("a", "c")
    lists.says("a", "b", "d")
    assert lists.gone() == lists.of_each("c")
    for kind, ids in lists.ids().items():
        assert {name: id_ for name, id_ in ids.items() if name != "d"} == before[kind]


def test_since_when_something_is_gone_stays_as_it_was_first_seen(lists: SideBySide) -> None:
    def since() -> dict[str, list[tuple[Any, ...]]]:
        return {
            kind: lists.place.rows(f"select max(gone_at) from {listed._rows}")
            for kind, listed in lists.items()
        }

    lists.says("a", "b")
    lists.says("b")
    before = since()
    assert [(None,)] not in before.values()
    lists.says("b", "c")
    assert since() == before


def test_another_order_and_what_is_named_twice_say_nothing(lists: SideBySide) -> None:
    lists.says("a", "b", "c")
    before = lists.ids()
    lists.says("c", "a", "b")
    assert (lists.ids(), lists.gone()) == (before, lists.of_each())
    for listed in lists.values():
        if not listed.kind.has_equals:
            listed.write("c", "a", "c", "b", "a")
    lists.place.sync()
    assert (lists.ids(), lists.gone()) == (before, lists.of_each())


def test_of_two_that_are_equal_one_may_go(place: Place) -> None:
    lists = SideBySide(place, [kind for kind, each in LISTS.items() if each.has_equals])
    assert len(lists) == 3
    lists.says("a", "a", "b")
    assert (lists.names(), lists.gone()) == (lists.of_each("a", "b"), lists.of_each())
    lists.says("b", "a")
    assert lists.gone() == lists.of_each("a")
    lists.says("a", "b", "a")
    assert lists.gone() == lists.of_each()


def test_what_a_list_says_otherwise_is_changed_in_place(worded: SideBySide) -> None:
    worded.says("a", "b")
    before = worded.ids()
    worded.says("a", "b", word="another")
    assert (worded.ids(), worded.gone()) == (before, worded.of_each())
    for kind, listed in worded.items():
        assert all("another" in word for word in listed.words().values()), kind


def test_what_is_gone_keeps_what_was_said_of_it_last(worded: SideBySide) -> None:
    worded.says("a", "b", word="first")
    worded.says("a", "b", word="second")
    worded.says("b", word="third")
    for kind, listed in worded.items():
        said = {name: word[-6:].strip() for name, word in listed.words().items()}
        assert said == {"a": "second", "b": "third"}, kind


@pytest.mark.parametrize("share", [0.0, 0.6], ids=["empty", "cut off"])
def test_a_half_written_list_changes_nothing(lists: SideBySide, share: float) -> None:
    if share == 0.0:
        lists.pop("todos", None)  # an empty file of todos means that there are none
    lists.says("a", "b")
    lists.says("b", "c")
    before = dump(lists.place.database)
    lists.cut(share)
    after = dump(lists.place.database)
    assert len(after["issues"]) == len(before["issues"]) + len(lists)
    assert_same({**after, "issues": [], "files": []}, {**before, "issues": [], "files": []})


def test_a_list_that_is_deleted_takes_nothing_with_it(lists: SideBySide) -> None:
    lists.says("a", "b")
    lists.says("b")
    before = lists.ids()
    lists.delete()
    assert (lists.ids(), lists.gone()) == (before, lists.of_each("a", "b"))
    lists.says("b")
    assert (lists.ids(), lists.gone()) == (before, lists.of_each("a"))


@pytest.mark.parametrize("is_deleted", [False, True], ids=["list there", "list deleted"])
def test_a_rebuild_keeps_what_is_gone(lists: SideBySide, is_deleted: bool) -> None:
    def since() -> dict[str, list[tuple[Any, ...]]]:
        return {
            kind: lists.place.rows(f"select id, gone_at from {listed.kind.table} order by id")
            for kind, listed in lists.items()
        }

    lists.says("a", "b", "c")
    lists.says("b", "c", word="changed")
    lists.says("b")
    if is_deleted:
        lists.delete()
    before, gone = dump(lists.place.database), since()
    rebuild(lists.place.database)
    check(lists.place.database)
    assert_same({**dump(lists.place.database), "files": []}, {**before, "files": []})
    assert since() == gone
    assert verify(lists.place.database).findings == []
    lists.place.sync()
    assert_same(dump(lists.place.database), before)


def test_a_rebuild_removes_what_an_empty_list_never_named(lists: SideBySide) -> None:
    lists.pop("workspaces", None)  # its file has secrets and is not archived: its rows are kept
    lists.says("a")
    lists.says()
    connection = connect(lists.place.database)
    with connection:
        for listed in lists.values():
            connection.execute(f"update {listed.kind.table} set gone_at = null")  # a mistake
    connection.close()
    rebuild(lists.place.database)
    assert lists.names() == lists.of_each()
    assert verify(lists.place.database).findings == []


@pytest.mark.parametrize("kind", ["index", "todos", "workspaces"])
def test_what_is_gone_is_copied_out_of_a_damaged_database(kind: str, place: Place) -> None:
    listed = Listed(place, LISTS[kind])
    listed.says("a", "b")
    listed.says("b")
    before = dump(listed.place.database)
    connection = connect(listed.place.database)
    connection.execute("drop view conversation")
    connection.close()
    rebuild(listed.place.database)
    listed.place.sync()
    assert_same(dump(listed.place.database), before)
    assert listed.gone() == ["a"]


@pytest.mark.parametrize("is_deleted", [False, True], ids=["list there", "list deleted"])
def test_what_is_gone_and_pruned_leaves_no_trace(
    lists: SideBySide, is_deleted: bool, fresh: Callable[[], Path]
) -> None:
    lists.says("a", "b")
    lists.says("b")
    if is_deleted:
        lists.delete()
    removal = prune_gone(lists.place.database, None, dry_run=False)
    assert removal.tasks + removal.inbox_items + removal.entries >= len(lists)
    check(lists.place.database)
    scratch = fresh()
    sync(scratch, lists.place.homes)
    assert_same(dump(lists.place.database), dump(scratch))


def test_a_list_that_comes_back_broken_has_what_it_had(lists: SideBySide) -> None:
    """Nothing newer is known of it. So `prune` removes only what it dropped before it went."""
    lists.says("a", "b")
    lists.says("b")
    whole = {
        listed.path: (lists.place.place / listed.path).read_bytes() for listed in lists.values()
    }
    lists.delete()
    assert lists.gone() == lists.of_each("a", "b")
    for path, content in whole.items():
        lists.place.put(path, content[:-3])
    lists.place.sync()
    assert lists.gone() == lists.of_each("a")
    assert_as_rebuilt(lists.place.database)
    prune_gone(lists.place.database, None, dry_run=False)
    assert (lists.names(), lists.gone()) == (lists.of_each("b"), lists.of_each())
    assert_as_rebuilt(lists.place.database)


def test_what_is_gone_only_now_is_not_pruned_with_what_is_gone_for_long(place: Place) -> None:
    listed = Listed(place, LISTS["index"])
    listed.says("a", "b")
    listed.says("b")
    before = dump(listed.place.database)
    assert prune_gone(listed.place.database, "2020-01-01T00:00:00.000Z", dry_run=False).is_nothing
    assert_same(dump(listed.place.database), before)
    assert listed.gone() == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["index", "todos", "chats"])
def test_a_kill_leaves_a_list_as_it_was_or_as_it_is(
    kind: str, place: Place, fresh: Callable[[], Path]
) -> None:
    listed = Listed(place, LISTS[kind])
    listed.says("a", "b")
    before = dump(listed.place.database)
    listed.write("b", "c")
    done = Path(shutil.copy(listed.place.database, fresh()))
    sync(done, listed.place.homes)
    after, outcomes = dump(done), set()
    for step in range(1, 400, 9):
        victim = Path(shutil.copy(listed.place.database, fresh()))
        try:
            with killed_at(step):
                sync(victim, listed.place.homes)
            outcomes.add("survived")
            break
        except Killed:
            outcomes.add("killed")
        check(victim)
        assert not differences(dump(victim), before) or not differences(dump(victim), after)
        sync(victim, listed.place.homes)
        assert_same(dump(victim), after)
    assert outcomes == {"survived", "killed"}


# -- what still counts ---------------------------------------------------------------------------

INDEX = f"claude/{PROJECT}/sessions-index.json"
ELSEWHERE = "claude/projects/-srv-else/sessions-index.json"
CHAT = "ccinsights/projects/p/chats/chat-1.chat.jsonl"
CHATS = "ccinsights/projects.json"
CONVERSATIONS = "chorus/sessions/w1/g1/conversations.json"


def index(*entries: Entry) -> Entry:
    return {"version": 1, "entries": list(entries)}


def chats(*entries: Entry, **more: Any) -> Entry:
    worktrees = {"/srv/x": {"type": "primary", "chats": list(entries)}}
    return {"/srv/x": {"id": "p", "name": "Garden", "worktrees": worktrees, **more}}


def session(place: Place, key: str, columns: str) -> tuple[Any, ...]:
    ((*values,),) = place.rows(f"select {columns} from sessions where session_key = '{key}'")
    return tuple(values)


def test_a_conversation_keeps_title_link_and_summary_when_no_list_names_it(place: Place) -> None:
    write(place.place, CHAT, {"type": "user", "text": "hello", "timestamp": "2026-02-20T10:00:00Z"})
    facts = "title, title_source, is_listed, linked_session_id is not null, kind, gone_at"
    place.put(CHATS, chats({"chatId": "chat-1", "name": "Menus", "lastSessionId": SESSION}))
    place.sync()
    assert session(place, "chat-1", facts) == ("Menus", "list", 1, 1, "main", None)
    place.put(CHATS, chats())
    place.sync()
    assert session(place, "chat-1", facts) == ("Menus", "list", 0, 1, "main", None)
    (place.place / CHATS).unlink()
    place.sync()
    assert session(place, "chat-1", facts) == ("Menus", "list", 0, 1, "main", None)


def test_a_session_that_an_index_named_keeps_what_it_said(place: Place) -> None:
    entry = {"sessionId": SESSION, "customTitle": "By hand", "prUrl": "https://x/7"}
    place.put(INDEX, index(entry))
    place.sync()
    place.put(INDEX, index())
    place.sync()
    assert session(place, SESSION, "title, title_source") == ("By hand", "index")
    assert place.rows("select url, session_id is not null from links") == [("https://x/7", 1)]


def test_what_is_said_now_counts_more_than_what_was_said_once(place: Place) -> None:
    """Of two lists of one kind, the one that still names the conversation is believed."""
    said = {"sessionId": "a", "customTitle": "Once", "messageCount": 90, "firstPrompt": "before"}
    place.put(INDEX, index(said))
    place.put(ELSEWHERE, index({"sessionId": "a", "summary": "Now", "messageCount": 3}))
    place.sync()
    facts = "title, message_count"
    assert session(place, "a", facts) == ("Once", 90)
    place.put(INDEX, index())
    place.sync()
    assert session(place, "a", facts) == ("Now", 3)
    place.put(ELSEWHERE, index())
    place.sync()
    assert session(place, "a", facts) == ("Once", 90)


def test_a_session_that_only_lists_named_is_gone_with_the_last_of_them(place: Place) -> None:
    gone = "gone_at is not null, kind"
    place.put(INDEX, index({"sessionId": "a"}))
    place.put(ELSEWHERE, index({"sessionId": "a"}))
    place.sync()
    assert session(place, "a", gone) == (0, "listed")
    place.put(INDEX, index())
    place.sync()
    assert session(place, "a", gone) == (0, "listed")
    (place.place / ELSEWHERE).unlink()
    place.sync()
    assert session(place, "a", gone) == (1, "listed")
    place.put(INDEX, index({"sessionId": "a"}))
    place.sync()
    assert session(place, "a", gone) == (0, "listed")


def test_a_new_link_of_a_chat_is_followed_and_one_that_is_dropped_is_not(place: Place) -> None:
    write(place.place / "claude", f"{PROJECT}/{OTHER}.jsonl", user("x", "o1", sessionId=OTHER))
    linked = (
        "select l.session_key from sessions s left join sessions l on l.id = s.linked_session_id"
        " where s.session_key = 'chat-1'"
    )
    for link in (SESSION, OTHER, None, SESSION):
        place.put(CHATS, chats({"chatId": "chat-1", "lastSessionId": link}))
        place.sync()
        assert place.rows(linked) == [(link,)]


def test_a_project_that_its_list_dropped_keeps_its_name(place: Place) -> None:
    facts = "select name, path, session_count, gone_at is not null from projects where key = 'p'"
    place.put(CHATS, chats({"chatId": "chat-1"}))
    place.sync()
    assert place.rows(facts) == [("Garden", "/srv/x", 1, 0)]
    place.put(CHATS, {})
    place.sync()
    assert place.rows(facts) == [("Garden", "/srv/x", 0, 1)]
    write(place.place, CHAT, {"type": "user", "text": "hello", "timestamp": "2026-02-20T10:00:00Z"})
    place.sync()
    assert place.rows(facts) == [("Garden", "/srv/x", 1, 0)], "a chat that lies there"


def test_a_chat_that_only_the_copy_of_a_list_names_is_called_as_there(place: Place) -> None:
    place.put(CHATS, chats({"chatId": "chat-2", "name": "New"}))
    place.put(f"{CHATS}.bak", chats({"chatId": "chat-1", "name": "Old"}))
    place.sync()
    facts = "title, is_listed, gone_at"
    assert session(place, "chat-1", facts) == ("Old", 0, None)
    assert session(place, "chat-2", facts) == ("New", 1, None)
    place.put(f"{CHATS}.bak", chats({"chatId": "chat-2", "name": "New"}))
    place.sync()
    assert session(place, "chat-1", "title, is_listed, gone_at is null") == ("Old", 0, 0)


def test_an_archived_chat_that_is_taken_back_is_no_longer_archived(place: Place) -> None:
    """The copy of the list still says that it is: nothing of it is added to what the list says."""
    archived = {"chatId": "chat-1", "name": "Menus", "originalWorktreePath": "/srv/x"}
    place.put(CHATS, chats(archivedChats=[archived]))
    place.sync()
    assert session(place, "chat-1", "status") == ("archived",)
    place.put(f"{CHATS}.bak", chats(archivedChats=[archived]))
    place.put(CHATS, chats({"chatId": "chat-1", "name": "Menus"}))
    place.sync()
    assert session(place, "chat-1", "status, is_listed") == (None, 1)
    place.put(CHATS, b"{")
    place.sync()
    assert session(place, "chat-1", "status, is_listed") == ("archived", 1)


def test_a_list_that_moves_with_its_directory_loses_nothing(place: Place) -> None:
    place.put(INDEX, index({"sessionId": "a", "customTitle": "By hand"}, {"sessionId": "b"}))
    place.sync()
    place.put(INDEX, index({"sessionId": "b"}))
    place.sync()
    before = place.rows("select id, session_key, gone_at from session_entries order by id")
    (place.place / "claude" / PROJECT).rename(place.place / "claude/projects/-srv-moved")
    place.sync()
    assert place.rows("select id, session_key, gone_at from session_entries order by id") == before
    assert session(place, "a", "title, gone_at is not null") == ("By hand", 1)


def test_todos_with_the_content_of_vanished_ones_are_those_of_another_session(place: Place) -> None:
    mine, other = (f"claude/todos/{key}-agent-{key}.json" for key in (SESSION, OTHER))
    place.put(mine, [{"content": "one"}])
    place.sync()
    (place.place / mine).rename(place.place / other)
    place.sync()
    assert place.rows("select session_key, gone_at is null from todos order by 1") == [
        (SESSION, 0),
        (OTHER, 1),
    ]


@pytest.mark.slow
def test_what_is_gone_is_forgotten_like_all_else(place: Place) -> None:
    word = "Qwertzuiop77"
    place.put(INDEX, index({"sessionId": OTHER, "customTitle": word, "prUrl": f"https://{word}"}))
    place.put(f"claude/todos/{OTHER}-agent-{OTHER}.json", [{"content": word}])
    place.put("claude/theassociate/projects/-srv-demo/plan-links.json", {f"{word}.md": OTHER})
    place.sync()
    place.put(INDEX, index())
    place.put(f"claude/todos/{OTHER}-agent-{OTHER}.json", [])
    place.put("claude/theassociate/projects/-srv-demo/plan-links.json", {})
    place.sync()
    assert word in json.dumps(dump(place.database))
    forget(place.database, Target(OTHER), with_copies=False, dry_run=False, announce=lambda _: None)
    assert word not in json.dumps(dump(place.database))
    assert word.lower().encode() not in place.database.read_bytes().lower()
    place.sync()
    assert word not in json.dumps(dump(place.database))


# -- lists and pages -----------------------------------------------------------------------------


@pytest.fixture
def asked(place: Place, shell: Shell) -> Shell:
    """The program on the index of the place."""
    place.database = Path(shutil.move(place.database, shell.database))
    return shell


@pytest.mark.slow
def test_lists_leave_out_what_is_gone_and_say_how_much(place: Place, asked: Shell) -> None:
    for name, what, option in (
        ("todos", "todos", "content"),
        ("tasks of a snapshot", "tasks", "task"),
        ("inbox", "inbox", "text"),
        ("projects", "projects", "key"),
        ("plan links", "links", "url"),
    ):
        listed = Listed(place, LISTS[name])
        listed.says("a", "b", "c")
        listed.says("b")

        def names(*options: str, what: str = what, option: str = option) -> list[str]:
            rows = asked.items("list", what, "-n", "0", *options)
            return [row[option] for row in rows if row[option] in ("a", "b", "c")]

        # The projects' directories are not on this disk.
        assert names() == ([] if what == "projects" else ["b"])
        assert asked("list", what, "-n", "0") == 0
        assert "2 entries no longer present; show with --gone" in asked.err
        assert {"a", "c"} <= set(names("--gone"))
        assert asked("list", what, "-n", "0", "--gone") == 0
        assert "gone" not in asked.err
        assert sorted(names("--all")) == ["a", "b", "c"]


def test_sessions_and_members_that_are_gone_are_left_out_and_counted(
    place: Place, asked: Shell
) -> None:
    place.put(CONVERSATIONS, {"conversations": [{"id": "a"}, {"id": "b"}]})
    Listed(place, LISTS["members"]).says("a", "b", "c")
    place.put(CONVERSATIONS, {"conversations": [{"id": "b"}]})
    Listed(place, LISTS["members"]).says("a")

    def keys(*options: str) -> set[str]:
        rows = asked.items("list", "sessions", *options)
        assert isinstance(rows, list)
        return {row["session_key"] for row in rows} & {"a", "b"}

    assert keys() == set()
    assert json.loads(asked.out)["hidden"] == {"--gone": 1, "--all": 1}
    assert asked("list", "sessions") == 0
    assert "1 entry no longer present; show with --gone" in asked.err
    assert "1 more with --all" in asked.err
    assert keys("--gone") == {"a"}
    assert keys("--all") == {"a", "b"}
    (team,) = asked.items("list", "teams")  # type: ignore[misc]
    assert (team["member_count"], team["gone_member_count"]) == (1, 2)  # type: ignore[index]


def test_a_list_without_anything_that_can_be_gone_says_so(place: Place, asked: Shell) -> None:
    assert asked("list", "prompts", "--gone") == 2
    assert "--gone does not apply to" in asked.err


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Datasette's own
def test_pages_leave_out_what_is_gone_and_say_how_much(place: Place) -> None:
    place.put(CHATS, chats({"chatId": "chat-1", "name": "Menus"}, {"chatId": "chat-2"}))
    for name in ("members", "tasks of a snapshot", "tickets"):
        Listed(place, LISTS[name]).says("a", "b", "c")
        Listed(place, LISTS[name]).says("b")
    place.put(CHATS, chats({"chatId": "chat-2"}))
    place.sync()
    site = Site(place.database)
    name = place.database.stem
    team = site.get(f"/{name}/-/team/crew").words
    assert "2 members no longer in the configuration" in team
    assert "word" in team
    project = site.get(f"/{name}/-/project/p").words
    assert "No longer present and not shown here: 1 session, 2 tickets." in project
    assert "Menus" not in project


def test_projects_that_are_not_on_this_machine_are_a_question(place: Place, asked: Shell) -> None:
    place.put(CHATS, chats({"chatId": "chat-1"}))
    place.sync()
    rows = asked.items("query", "orphaned_projects")
    assert isinstance(rows, list)
    assert {"name": "Garden", "path": "/srv/x"}.items() <= rows[-1].items()


# -- any history ---------------------------------------------------------------------------------

HISTORIES = {
    "index": LISTS["index"],
    "index elsewhere": replace(LISTS["index"], path="projects/-srv-else/sessions-index.json"),
    "todos": LISTS["todos"],
    "members": LISTS["members"],
    "tasks": LISTS["tasks of a snapshot"],
    "worktrees": LISTS["worktrees"],
    "chats": LISTS["chats"],
    "copy of chats": replace(LISTS["chats"], path="projects.json.bak"),
}
Said = tuple[str, str]
"""A name, and what is said of it."""


class Lists(RuleBasedStateMachine):
    """Lists that change, and their index.

    What is gone cannot be seen by a sync from scratch. So the oracle first sees lists that name
    everything that was ever named, as it was said last; then the lists as they were when they were
    last whole; and then what lies there now. Whatever the history was, the tables end as with that.

    If a list names something several times, the oracle hears all of it: one table has what the
    first of them says, another one of the same list what the last says.
    """

    template: Path

    @initialize()
    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="lists-", dir=in_memory()))
        self.place = Place(self.directory, Path(shutil.copy(self.template, self.directory / "db")))
        self.there: dict[str, list[Said] | None] = {}  # None: broken
        self.whole: dict[str, list[Said]] = {}
        self.said: dict[str, dict[tuple[str, int], list[str]]] = {}

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            shutil.rmtree(self.directory)

    def _write(self, place: Place, name: str, said: list[Said] | None) -> None:
        kind = HISTORIES[name]
        some = [("a", "one")] if said is None else said
        whole = kind.document([kind.entry(*one) for one in some])
        path = f"{kind.root}/{kind.path}"
        place.put(path, whole if said is not None else dumps(whole)[:-3])

    # -- what happens to lists -------------------------------------------------------------------

    @rule(
        name=st.sampled_from(sorted(HISTORIES)),
        said=st.lists(
            st.tuples(st.sampled_from("abc"), st.sampled_from(["one", "two"])), max_size=4
        ),
    )
    def write(self, name: str, said: list[Said]) -> None:
        self._write(self.place, name, said)
        self.there[name] = said

    @precondition(lambda self: self.there or self.whole)
    @rule(data=st.data())
    def break_off(self, data: st.DataObject) -> None:
        """Of one that lies there, or comes back like that after it was gone."""
        name = data.draw(st.sampled_from(sorted(self.there.keys() | self.whole.keys())))
        self._write(self.place, name, None)
        self.there[name] = None

    @precondition(lambda self: self.there.keys() & self.whole.keys())
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """One that was read: of another, no oracle can know that it was there."""
        name = data.draw(st.sampled_from(sorted(self.there.keys() & self.whole.keys())))
        kind = HISTORIES[name]
        (self.place.place / kind.root / kind.path).unlink()
        del self.there[name]

    # -- syncs -----------------------------------------------------------------------------------

    @rule()
    def sync(self) -> None:
        self.place.sync()
        for name, said in self.there.items():
            if said is not None:
                self.whole[name] = said
                self.said.setdefault(name, {}).update(_numbered(HISTORIES[name], said))

    @rule(step=st.integers(1, 300))
    def sync_that_is_killed(self, step: int) -> None:
        try:
            with killed_at(step):
                self.place.sync()
        except Killed:
            event("killed")
        check(self.place.database)
        self.sync()

    @rule()
    def rebuild(self) -> None:
        before = _comparable(self.place.database)
        rebuild(self.place.database)
        check(self.place.database)
        assert_same({**_comparable(self.place.database), "files": []}, {**before, "files": []})
        assert verify(self.place.database).findings == []

    @rule()
    def prune(self) -> None:
        self.sync()
        prune_gone(self.place.database, None, dry_run=False)
        self.whole = {name: self.whole[name] for name in self.there if name in self.whole}
        self.said = {name: _numbered(HISTORIES[name], said) for name, said in self.whole.items()}

    @rule()
    def compare(self) -> None:
        self.sync()
        with tempfile.TemporaryDirectory(dir=in_memory()) as directory:
            place = Path(directory)
            oracle = Place(place, Path(shutil.copy(self.template, place / "db")))
            ever = {
                name: [(key, word) for (key, _), words in sorted(said.items()) for word in words]
                for name, said in self.said.items()
            }
            for stage in (ever, self.whole, self.there):
                for name, said in stage.items():
                    self._write(oracle, name, said)
                for name in self.whole.keys() - stage.keys():
                    kind = HISTORIES[name]
                    (place / kind.root / kind.path).unlink()
                oracle.sync()
            event(f"{sum(map(len, ever.values()))} entries, some gone")
            assert_same(_comparable(self.place.database), _comparable(oracle.database))


def _numbered(kind: List, said: list[Said]) -> dict[tuple[str, int], list[str]]:
    """Return all that a list says of each of its entries, by name and place among equals."""
    found: dict[tuple[str, int], list[str]] = {}
    counts: Counter[str] = Counter()
    for name, word in said:
        found.setdefault((name, counts[name] if kind.has_equals else 0), []).append(word)
        counts[name] += 1
    return found


def _comparable(database: Path) -> Dump:
    """Return a dump without how a list was broken that is gone, and where gone todos stood in it.

    The oracle says all that was ever said in one list, so there they stand behind each other.
    """
    shown = dump(database)
    for todo in shown["todos"]:
        if todo["is_gone"]:
            todo["position"] = None
    lost = {file["path"] for file in shown["files"] if file["is_gone"]}
    shown["issues"] = [r for r in shown["issues"] if r["file_id"].rpartition(":")[2] not in lost]
    for file in shown["files"]:
        if file["path"] in lost:
            file["issue_count"] = file["line_count"] = None
    return shown


def test_what_a_list_named_twice_and_no_longer_names_is_as_it_was_said(
    template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worktrees of a list have what is said of them first, its conversations what is last."""
    monkeypatch.setattr(f"{__name__}.event", lambda _: None)  # there is no test of Hypothesis
    monkeypatch.setattr(Lists, "template", template, raising=False)
    lists = Lists()
    lists.start()
    try:
        lists.write(name="worktrees", said=[("c", "two"), ("c", "one")])
        lists.compare()
        lists.write(name="worktrees", said=[("a", "one")])
        lists.compare()
    finally:
        lists.teardown()


@pytest.mark.slow
def test_any_history_of_lists_ends_as_if_all_had_been_said_at_once(template: Path) -> None:
    Lists.template = template
    run_state_machine_as_test(
        Lists, settings=settings(max_examples=times(15, 6), stateful_step_count=20)
    )
