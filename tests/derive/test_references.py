"""What a row says of another store becomes a reference, whichever of the two was read first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive.changeset import Touched
from assoc_ingest.derive.references import refresh_places, refresh_references


def derive(rows: Rows, *files: int, sessions: tuple[int, ...] = ()) -> Touched:
    touched = rows.touch(files, sessions)
    refresh_references(rows.connection, touched)
    refresh_places(rows.connection, touched)
    return touched


def home(rows: Rows, root: str, kind: str = "claude", **values: object) -> int:
    return rows.add("sources", kind=kind, root=root, **values)


STORES = {
    "todos": "session_key",
    "prompts": "session_key",
    "documents": "session_key",
    "links": "session_key",
    "tool_result_files": "session_key",
    "hook_events": "session_key",
    "tasks": "list_key",
}


@pytest.mark.parametrize("table", STORES)
def test_a_key_becomes_a_reference_whatever_was_read_first(
    empty: Callable[[], Rows], table: str
) -> None:
    for order in permutations(["session", "row"]):
        rows = empty()
        for came in order:
            if came == "session":
                session, _ = rows.session("one")
                derive(rows, sessions=(session,))
            else:
                file = rows.file("store", kind="store")
                own = {"source_id": rows.source} if table == "tasks" else {}
                rows.add(table, file_id=file, **{STORES[table]: "one"}, **own)
                derive(rows, file)
        assert rows.all(f"select session_id from {table}") == [session], order


def test_the_session_of_the_same_home_is_meant_else_an_agents_own_else_the_first_root(
    rows: Rows,
) -> None:
    wanted = [
        rows.session("one", source_id=rows.source)[0],
        rows.session("one", source_id=home(rows, "/y", is_agent=1))[0],
        rows.session("one", source_id=home(rows, "/a"))[0],
        rows.session("one", source_id=home(rows, "/b"))[0],
    ]
    file = rows.file("todos.json", kind="todo")
    item = rows.add("todos", file_id=file, session_key="one")
    for session in wanted:
        rows.set("todos", item, session_id=None)
        derive(rows, file)
        assert rows.get("todos", item, "session_id") == session
        rows.connection.execute(
            "update sessions set session_key = 'x' || id where id = ?", (session,)
        )


def test_rows_that_neither_the_batch_nor_a_new_session_reaches_are_left_alone(rows: Rows) -> None:
    rows.session("one")
    two, _ = rows.session("two")
    file = rows.file("todos.json", kind="todo")
    rows.add("todos", file_id=file, session_key="one")
    derive(rows, sessions=(two,))
    assert rows.all("select session_id from todos") == [None]


def test_a_conversation_is_linked_to_the_agents_session_and_touched(rows: Rows) -> None:
    chorus = home(rows, "/chorus", "chorus")
    talk, _ = rows.session("talk", source_id=chorus)
    listing = rows.file("list.json", kind="chat_list", source_id=chorus)
    rows.add(
        "session_entries", file_id=listing, session_key="talk", session_id=talk,
        linked_session_key="one",
    )  # fmt: skip
    rows.session("one", source_id=chorus)
    derive(rows, listing)
    assert rows.all("select linked_session_id from session_entries") == [None]
    rows.set("sources", rows.source, is_agent=1)
    one, _ = rows.session("one")
    derive(rows, sessions=(one,))
    assert rows.all("select linked_session_id from session_entries") == [one]
    assert talk in rows.all("select id from touched_sessions")


def test_a_team_has_the_session_that_leads_it_now(rows: Rows) -> None:
    one, two = rows.session("one")[0], rows.session("two")[0]
    file = rows.file("team.json", kind="team")
    team = rows.add("teams", key="t", file_id=file, lead_session_key="one", source_id=rows.source)
    derive(rows, file)
    assert rows.get("teams", team, "lead_session_id") == one
    rows.set("teams", team, lead_session_key="two")
    derive(rows, file)
    assert rows.get("teams", team, "lead_session_id") == two


def test_a_team_is_gone_when_all_of_its_files_are(rows: Rows) -> None:
    team = rows.add("teams", key="t", source_id=rows.source)
    files = [rows.file(path, kind="inbox", team_id=team) for path in ("a", "b")]
    rows.set("files", files[0], gone_at="2026-01-21")
    derive(rows, *files)
    assert rows.get("teams", team, "gone_at") is None
    rows.set("files", files[1], gone_at="2026-01-22")
    derive(rows, *files)
    assert rows.get("teams", team, "gone_at") == "2026-01-22"


def test_tasks_belong_to_the_team_that_their_list_is_named_after(rows: Rows) -> None:
    file = rows.file("tasks/1.json", kind="task")
    task = rows.add("tasks", file_id=file, list_key="The_Team", source_id=rows.source)
    other = home(rows, "/elsewhere")
    rows.add("teams", key="the-team", source_id=other)
    derive(rows, file)
    assert rows.get("tasks", task, "team_id") is None
    team = rows.add("teams", key="the-team", source_id=rows.source)
    derive(rows, rows.file("team.json", kind="team", team_id=team))
    assert rows.get("tasks", task, "team_id") == team


@pytest.mark.parametrize("table", ["todos", "hook_events"])
def test_todos_and_events_refer_to_the_subagent_of_their_session(rows: Rows, table: str) -> None:
    one, _ = rows.session("one")
    two, _ = rows.session("two")
    agents = [
        rows.add(
            "subagents", session_id=session, agent_key="x", source_id=rows.source, session_key=key
        )
        for session, key in ((two, "two"), (one, "one"))
    ]
    file = rows.file("store", kind="store")
    rows.add(table, file_id=file, session_key="one", agent_key="x")
    derive(rows, file)
    assert rows.all(f"select subagent_id from {table}") == [agents[1]]
    rows.connection.execute("delete from subagents")
    rows.connection.execute(f"update {table} set subagent_id = null")
    derive(rows, sessions=(one,))
    assert rows.all(f"select subagent_id from {table}") == [None]


def test_a_prompt_has_the_project_that_its_path_names(rows: Rows) -> None:
    history = rows.file("history.jsonl", kind="history")
    rows.add("prompts", file_id=history, project_key="-srv-garden")
    derive(rows, history)
    assert rows.all("select project_id from prompts") == [None]
    garden = rows.project("garden")
    touched = rows.touch(projects={garden})
    refresh_references(rows.connection, touched)
    assert rows.all("select project_id from prompts") == [garden]


def test_a_session_that_just_got_a_prompt_is_touched(rows: Rows) -> None:
    one, _ = rows.session("one")
    history = rows.file("history.jsonl", kind="history")
    rows.add("prompts", file_id=history, session_key="one")
    derive(rows, history)
    assert rows.all("select id from touched_sessions") == [one]
    derive(rows, history)
    assert rows.all("select id from touched_sessions") == []


def test_pasted_texts_stand_where_only_a_hash_stood_once_they_are_there(rows: Rows) -> None:
    history = rows.file("history.jsonl", kind="history")
    rows.add("prompts", file_id=history, paste_hashes='["h1", {"text": "inline"}, "h2"]')
    derive(rows, history)
    assert rows.all("select pasted from prompts") == ["inline"]
    pastes = [rows.file(key, kind="paste") for key in ("h1", "h2")]
    for file, key in zip(pastes, ("h1", "h2"), strict=True):
        rows.add("pastes", file_id=file, hash=key, text=f"text of {key}")
    derive(rows, *pastes)
    assert rows.all("select pasted from prompts") == ["text of h1\ninline\ntext of h2"]


def test_an_output_file_belongs_to_the_call_that_names_it(rows: Rows) -> None:
    session, file = rows.session("one")
    rows.add("tool_calls", file_id=file, session_id=session, tool_use_id="t1", output_file="b.txt")
    outputs = {}
    for name, use in (("b.txt", None), ("t2.txt", "t2"), ("c.txt", None)):
        output = rows.file(name, kind="tool_result")
        outputs[name] = rows.add(
            "tool_result_files", file_id=output, name=name, session_key="one", tool_use_id=use,
            session_id=session,
        )  # fmt: skip
    derive(rows, sessions=(session,))
    assert rows.all("select name, tool_use_id from tool_result_files") == [
        ("b.txt", "t1"),
        ("t2.txt", "t2"),
        ("c.txt", None),
    ]


def test_a_plan_belongs_to_the_last_session_with_its_slug(rows: Rows) -> None:
    rows.session("old", slug="brave-fern", ended_at="2026-01-19")
    last, _ = rows.session("new", slug="brave-fern", ended_at="2026-01-20")
    plans = [
        rows.add("plans", file_id=rows.file(f"{name}.md", kind="plan"), name=name)
        for name in ("brave-fern", "brave-fern-agent-a1", "calm-oak")
    ]
    derive(rows)
    assert [rows.get("plans", plan, "session_id") for plan in plans] == [last, last, None]


def test_a_document_belongs_to_the_project_of_its_own_home(rows: Rows) -> None:
    rows.set("sources", rows.source, is_agent=1)
    notes = home(rows, "/home/ada/.claude/theassociate", "associate")
    other = home(rows, "/a", is_agent=1)
    rows.project("garden", source_id=other)
    file = rows.file("note.json", kind="note", source_id=notes)
    document = rows.add("documents", file_id=file, project_key="-srv-garden", kind="note")
    derive(rows, file)
    (elsewhere,) = rows.all("select id from projects")
    assert rows.get("documents", document, "project_id") == elsewhere
    garden = rows.project("garden")
    refresh_places(rows.connection, rows.touch(projects={garden}))
    assert rows.get("documents", document, "project_id") == garden


def test_edges_and_changes_refer_to_the_task_that_is_there(rows: Rows) -> None:
    file = rows.file("tasks/one/1.json", kind="task")
    talk = rows.file("talk.jsonl")
    own = {"list_key": "one", "source_id": rows.source}
    gone = rows.add("tasks", task_key="1", file_id=file, gone_at="2026-01-21", **own)
    stated = rows.add("tasks", task_key="1", channel="transcript", file_id=talk, **own)
    rows.add("task_links", file_id=file, list_key="one", task_key="1", blocker_key="2")
    change = rows.add("task_changes", file_id=file, list_key="one", task_key="1")
    derive(rows, file)
    assert rows.all("select task_id, blocker_id from task_dependencies") == [(stated, None)]
    assert rows.get("task_changes", change, "task_id") == stated
    rows.set("tasks", gone, gone_at=None)
    derive(rows, file)
    assert rows.get("task_changes", change, "task_id") == gone
