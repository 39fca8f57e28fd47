"""A session is what its transcripts tell of it; what only lists state fills the gaps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from tests.support.rows import Rows
from tests.support.writing import (
    TRANSCRIPT,
    agent,
    assistant,
    call,
    jsonl,
    result,
    user,
    write,
)

from assoc_ingest.derive.changeset import Touched
from assoc_ingest.derive.projects import refresh_lists
from assoc_ingest.derive.sessions import refresh_sessions
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import check, connect


def derive(rows: Rows, *sessions: int) -> Touched:
    touched = rows.touch(sessions=sessions or rows.all("select id from sessions"))
    refresh_lists(rows.connection, touched)
    refresh_sessions(rows.connection, touched)
    return touched


def session(rows: Rows, key: str = "one", **values: object) -> int:
    """Insert a session of which nothing is derived yet."""
    return rows.add("sessions", session_key=key, **{"source_id": rows.source, **values})


def transcript(rows: Rows, session_id: int, path: str = "a.jsonl", **said: Any) -> int:
    """Insert a transcript that says this; `project_id`, `kind` and `gone_at` are of its file."""
    own = {name: said.pop(name) for name in ("project_id", "kind", "gone_at") if name in said}
    file = rows.file(path, session_id=session_id, **own)
    rows.add("transcripts", file_id=file, **said)
    return file


def entry(
    rows: Rows, session_id: int, kind: str = "index", path: str = "l.json", **said: Any
) -> int:
    """Insert what a list states."""
    file = rows.all("select id from files where path = ?", path) or [rows.file(path, kind="list")]
    key = rows.get("sessions", session_id, "session_key")
    return rows.add(
        "session_entries", file_id=file[0], session_id=session_id, session_key=key, kind=kind,
        byte_offset=len(rows.all("select 1 from session_entries")), **said,
    )  # fmt: skip


def test_a_session_that_nothing_speaks_of_goes(rows: Rows) -> None:
    session(rows, "forgotten")
    kept = [session(rows, key) for key in ("held", "listed", "sided")]
    transcript(rows, kept[0])
    entry(rows, kept[1])
    rows.file("side", kind="file_history", session_id=kept[2])
    derive(rows)
    assert rows.all("select id from sessions") == kept


@pytest.mark.slow
def test_what_changes_is_as_the_newest_transcript_tells_it_whatever_was_read_first(
    empty: Callable[[], Rows],
) -> None:
    tells = {
        "a.jsonl": {"ended_at": "2026-01-02", "git_branch": "older", "first_prompt": "second"},
        "b.jsonl": {"ended_at": "2026-01-01", "git_branch": "old", "first_prompt": "first"},
        "c.jsonl": {"ended_at": "2026-01-03", "git_branch": "new", "first_prompt": "third"},
        "d.jsonl": {"ended_at": "2026-01-04"},
    }
    for order in permutations(tells):
        rows = empty()
        one = session(rows)
        for path in order:
            said = tells[path]
            transcript(rows, one, path, started_at=said["ended_at"], **said)
        derive(rows)
        assert rows.get("sessions", one, "git_branch", "title") == ("new", "first"), order


def test_a_transcript_that_is_there_counts_before_one_that_is_gone(rows: Rows) -> None:
    one = session(rows)
    transcript(rows, one, "a", ended_at="2026-01-02", git_branch="gone", gone_at="2026-01-21")
    transcript(rows, one, "b", ended_at="2026-01-01", git_branch="there")
    derive(rows)
    assert rows.get("sessions", one, "git_branch") == "there"


def test_times_are_the_first_and_the_last_and_messages_those_that_repeat_nothing(
    rows: Rows,
) -> None:
    one = session(rows)
    times = {"started_at": "2026-01-01", "ended_at": "2026-01-05"}
    transcript(rows, one, "a", message_count=5, repeated_count=3, copied_count=2, **times)
    times = {"started_at": "2026-01-02", "ended_at": "2026-01-09"}
    transcript(rows, one, "b", message_count=4, repeated_count=1, copied_count=1, **times)
    entry(rows, one, message_count=99, started_at="2025-01-01", ended_at="2027-01-01")
    derive(rows)
    columns = ("started_at", "ended_at", "message_count", "copied_message_count")
    assert rows.get("sessions", one, *columns) == ("2026-01-01", "2026-01-09", 5, 3)


def test_a_list_fills_the_gaps_of_the_transcripts(rows: Rows) -> None:
    told, listed = session(rows, "told"), session(rows, "listed")
    transcript(rows, told, git_branch="told", permission_mode="plan")
    for one in (told, listed):
        entry(
            rows, one, git_branch="listed", permission_mode="auto", status="busy", cwd="/srv",
            message_count=7, started_at="2026-01-01",
        )  # fmt: skip
    derive(rows)
    columns = ("git_branch", "permission_mode", "status", "cwd", "message_count", "started_at")
    found = rows.get("sessions", told, *columns)
    assert found == ("told", "plan", "busy", "/srv", 0, "2026-01-01")
    found = rows.get("sessions", listed, *columns)
    assert found == ("listed", "auto", "busy", "/srv", 7, "2026-01-01")


def test_of_several_entries_the_first_that_states_a_fact_counts(rows: Rows) -> None:
    one = session(rows)
    entry(rows, one, "registry", "z.json", git_branch="of a registry", model="r")
    entry(rows, one, "index", "b.json", git_branch="of a later index", model="b")
    entry(rows, one, "index", "a.json", git_branch="of the index")
    derive(rows)
    assert rows.get("sessions", one, "git_branch", "models") == ("of the index", '["b"]')


def test_what_no_list_states_any_more_counts_where_nothing_else_of_its_kind_is_stated(
    rows: Rows,
) -> None:
    one = session(rows)
    entry(rows, one, "index", "a.json", git_branch="dropped", gone_at="2026-01-21")
    derive(rows)
    assert rows.get("sessions", one, "git_branch", "gone_at") == ("dropped", "2026-01-21")
    entry(rows, one, "registry", "r.json")
    derive(rows)
    assert rows.get("sessions", one, "git_branch", "gone_at") == ("dropped", None)
    entry(rows, one, "index", "b.json", git_branch="listed")
    derive(rows)
    assert rows.get("sessions", one, "git_branch", "gone_at") == ("listed", None)


def test_an_entry_of_a_list_that_does_not_count_is_one_that_is_gone(rows: Rows) -> None:
    one = session(rows)
    for path, kind, branch in (
        ("c", "chat_list", "of the list"),
        ("b", "chat_list_backup", "of the copy"),
    ):
        file = rows.file(path, kind=kind)
        rows.add("line_types", file_id=file, type="document", count=1)
        entry(rows, one, "chat", path, git_branch=branch)
    derive(rows)
    assert rows.get("sessions", one, "git_branch") == "of the list"


def test_a_registry_that_is_gone_says_nothing_of_the_status(rows: Rows) -> None:
    one = session(rows)
    entry(rows, one, "registry", status="busy", model="m", gone_at="2026-01-21")
    derive(rows)
    assert rows.get("sessions", one, "status", "models") == (None, '["m"]')


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"session_kind": "bg", "message_count": 2, "sidechain_count": 2}, "background"),
        ({"message_count": 2, "sidechain_count": 2}, "sidechain"),
        ({"message_count": 2, "sidechain_count": 1}, "main"),
        ({}, "main"),
        ({"kind": "agent"}, "side_files"),
    ],
)
def test_its_files_say_what_a_session_is(rows: Rows, said: dict[str, Any], kind: str) -> None:
    one = session(rows)
    transcript(rows, one, **said)
    entry(rows, one)
    derive(rows)
    assert rows.get("sessions", one, "kind") == kind


@pytest.mark.parametrize(
    ("is_sidechain", "kind"), [(None, "listed"), (0, "listed"), (1, "sidechain")]
)
def test_a_session_without_files_is_only_listed(
    rows: Rows, is_sidechain: int | None, kind: str
) -> None:
    one = session(rows)
    entry(rows, one, is_sidechain=is_sidechain)
    derive(rows)
    assert rows.get("sessions", one, "kind") == kind


def test_a_fork_goes_on_from_the_session_that_it_states_whichever_came_first(
    empty: Callable[[], Rows],
) -> None:
    for order in permutations(["parent", "fork"]):
        rows = empty()
        ids = {}
        for key in order:
            ids[key] = session(rows, key)
            said = {"forked_from_key": "parent"} if key == "fork" else {}
            transcript(rows, ids[key], f"{key}.jsonl", **said)
            derive(rows, ids[key])
        assert rows.get("sessions", ids["fork"], "forked_from") == ids["parent"], order
        assert rows.get("sessions", ids["parent"], "forked_from") is None


def test_else_it_goes_on_from_the_session_whose_line_its_first_one_repeats(rows: Rows) -> None:
    parent, fork = session(rows, "parent"), session(rows, "fork")
    original = rows.message(transcript(rows, parent, "p"), "prompt", "hello", uuid="u1")
    file = transcript(rows, fork, "f")
    rows.message(file, "system", "no name")
    rows.message(file, "prompt", "hello", uuid="u1", copy_of=original)
    rows.message(file, "prompt", "own", uuid="u2")
    derive(rows)
    assert rows.get("sessions", fork, "forked_from") == parent
    assert rows.get("sessions", parent, "forked_from") is None


def test_prompts_are_counted_by_line_and_only_what_a_person_typed_here(rows: Rows) -> None:
    one = session(rows)
    file = transcript(rows, one)
    agent = rows.add("subagents", session_id=one, agent_key="x", source_id=rows.source)
    first = rows.message(file, "prompt", "hello")
    rows.message(
        file, "prompt", "image", byte_offset=rows.get("messages", first, "byte_offset"), block=1
    )
    rows.message(file, "prompt", "hello", copy_of=first)
    rows.message(file, "prompt", "of an agent", subagent_id=agent)
    for kind in ("command", "bash_input", "queued_prompt", "text", "meta", "task_notification"):
        rows.message(file, kind, "hello")
    derive(rows)
    assert rows.get("sessions", one, "prompt_count") == 4


def test_calls_are_counted_without_those_that_repeat_others(rows: Rows) -> None:
    one = session(rows)
    file = transcript(rows, one, repeated_call_count=1)
    for use, name in (("t1", "Bash"), ("t2", "Read"), ("t3", None)):
        rows.add("tool_calls", file_id=file, session_id=one, tool_use_id=use, name=name)
    derive(rows)
    assert rows.get("sessions", one, "tool_call_count") == 1


def test_tokens_are_those_of_responses_else_those_that_a_list_states(rows: Rows) -> None:
    used, stated = session(rows, "used"), session(rows, "stated")
    file = transcript(rows, used)
    for key, model in (("r1", "b"), ("r2", "a"), ("r3", None)):
        rows.add(
            "responses", response_key=key, file_id=file, session_id=used, model=model,
            input_tokens=1, output_tokens=20, cache_read_tokens=300, cache_write_5m_tokens=4000,
            cache_write_1h_tokens=50000,
        )  # fmt: skip
    for one in (used, stated):
        counts = {"input_tokens": 7, "output_tokens": 8, "cache_read_tokens": 9}
        entry(rows, one, cost_usd=0.5, model="m", **counts)
    derive(rows)
    columns = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "models")
    assert rows.get("sessions", used, *columns) == (3, 60, 900, 162000, '["a","b"]')
    assert rows.get("sessions", stated, *columns) == (7, 8, 9, None, '["m"]')
    assert rows.get("sessions", used, "stated_cost_usd") == 0.5


def test_a_session_is_in_the_project_that_its_application_lists_it_under(rows: Rows) -> None:
    one = session(rows)
    listed, told, filed, indexed = (rows.project(name) for name in "abcd")
    entry(rows, one, "index", project_id=indexed)
    derive(rows)
    assert rows.get("sessions", one, "project_id") == indexed
    rows.file("side", kind="file_history", session_id=one, project_id=filed)
    derive(rows)
    assert rows.get("sessions", one, "project_id") == filed
    transcript(rows, one, project_id=told)
    derive(rows)
    assert rows.get("sessions", one, "project_id") == told
    entry(rows, one, "chat", project_id=listed)
    touched = derive(rows)
    assert rows.get("sessions", one, "project_id") == listed
    assert told in touched.projects  # it has lost one


def test_only_where_an_application_lists_its_sessions_one_is_listed_or_not(rows: Rows) -> None:
    one = session(rows)
    entry(rows, one, "chat", "a")
    derive(rows)
    assert rows.get("sessions", one, "is_listed") is None
    rows.set("sources", rows.source, lists_sessions=1)
    derive(rows)
    assert rows.get("sessions", one, "is_listed") == 1
    rows.connection.execute("update session_entries set gone_at = '2026-01-21'")
    derive(rows)
    assert rows.get("sessions", one, "is_listed") == 0


def test_a_session_that_has_files_is_not_gone_because_lists_dropped_it(rows: Rows) -> None:
    one = session(rows)
    transcript(rows, one)
    entry(rows, one, gone_at="2026-01-21")
    derive(rows)
    assert rows.get("sessions", one, "gone_at") is None


def test_a_session_without_a_transcript_is_as_its_other_files_say(rows: Rows) -> None:
    one = session(rows)
    said = {"started_at": "2026-01-01", "ended_at": "2026-01-02", "first_cwd": "/srv"}
    transcript(rows, one, kind="agent", **said)
    derive(rows)
    columns = ("started_at", "ended_at", "cwd", "title")
    assert rows.get("sessions", one, *columns) == ("2026-01-01", "2026-01-02", "/srv", "one")


def test_only_touched_sessions_are_derived(rows: Rows) -> None:
    one, two = session(rows, "one"), session(rows, "two")
    transcript(rows, one, "a", git_branch="main")
    transcript(rows, two, "b", git_branch="main")
    derive(rows, two)
    assert rows.get("sessions", one, "git_branch", "title") == (None, None)
    assert rows.get("sessions", two, "git_branch", "title") == ("main", "two")


def test_deriving_again_changes_nothing(rows: Rows) -> None:
    one, two = session(rows, "one"), session(rows, "two")
    transcript(rows, one, "a", git_branch="main", first_prompt="hello")
    transcript(rows, two, "b", forked_from_key="one", session_kind="bg")
    entry(rows, two, title="listed")
    derive(rows)
    found = rows.all("select * from sessions")
    derive(rows)
    assert rows.all("select * from sessions") == found


# -- sums that grow --------------------------------------------------------------------------------

_FORK = TRANSCRIPT.replace("0b7c", "1b7c")


def _used(tokens: int) -> dict[str, int]:
    return {"input_tokens": tokens, "output_tokens": tokens, "cache_read_input_tokens": tokens}


def _queued(text: str, second: int) -> dict[str, Any]:
    line = user(text, "q", second=second)
    return {key: line[key] for key in ("sessionId", "timestamp")} | {
        "type": "queue-operation", "operation": "enqueue", "content": text,
    }  # fmt: skip


_LINES = [
    user("begin", "u1"),
    assistant("one", "a1", usage=_used(10), id="msg_1"),
    assistant([call("c1")], "a2", "a1", usage=_used(20), id="msg_1"),
    user([result("c1")], "u2"),
    user([{"type": "text", "text": "two"}, {"type": "text", "text": "blocks"}], "u3"),
    _queued("typed meanwhile", 5),
    assistant("two", "a3", "u3", usage=_used(7), id="msg_2"),
    user("typed meanwhile", "u4"),
    user("begin", "u1"),  # what a compaction repeats
    assistant("one", "a1", usage=_used(10), id="msg_1"),
    agent("a-side", user("in a chain", "u5", None)),
    agent("a-side", assistant("beside", "a5", "u5", usage=_used(5), id="msg_3")),
    assistant("last", "a6", "u4", usage=_used(1), id="msg_4"),
]


@pytest.mark.parametrize("length", [1, 2, 3])
def test_what_appends_add_is_what_counting_again_gives(
    length: int, home: Path, fresh: Callable[[], Path]
) -> None:
    """Rows of before may change with an append: delivered, repeated, or of a response that grew."""
    database = fresh()

    def compare() -> None:
        again = fresh()
        for path in (database, again):
            sync(path, [home])
        assert _counts(database) == _counts(again)

    beside = assistant("beside", "b1", None, usage=_used(3), id="msg_9")
    write(home, TRANSCRIPT.replace(".jsonl", "/subagents/agent-b.jsonl"), agent("b", beside))
    path = write(home, TRANSCRIPT, *_LINES[:3])
    for first in range(3, len(_LINES), length):
        compare()
        with path.open("ab") as file:
            file.write(jsonl(*_LINES[first : first + length]))
    write(home, TRANSCRIPT, *_LINES[:8])
    compare()
    write(home, _FORK, *_LINES[:5])  # what both have counts here, as long as it has nothing else
    compare()
    write(home, _FORK, *_LINES[:5], user("on its own way", "v1"))
    compare()
    check(database, home)


def _counts(database: Path) -> list[tuple[Any, ...]]:
    columns = "prompt_count, tool_call_count, input_tokens, output_tokens, cache_read_tokens"
    with closing(connect(database)) as connection:
        rows = connection.execute(f"select session_key, {columns} from sessions order by 1")
        return [tuple(row) for row in rows]
