"""Every query says what it answers, where it belongs, runs, and does not read all messages."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.cases import DEMO
from tests.support.reading import index, reader
from tests.support.rows import AT, Rows

from assoc_ingest import sql
from assoc_ingest.sync.run import sync
from assoc_ingest.upkeep.note import Change, write_note

NAMES = [query.path for folder in sql.FOLDERS for query in sql.queries(folder).values()]
FINDING = [name for name in NAMES if name.startswith("search/")]
STORES = ("note", "inbox", "task", "todo", "plan", "document", "prompt", "tool_result_file")

# A plan names a table by its alias; an index of full text is no scan of the table.
_reason = re.compile(r"^\s*-- scans messages: \w+", re.MULTILINE)
_alias = re.compile(r"\b(?:from|join) messages(?: as)? (\w+)")


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("queries") / "assoc.db"
    with index(path) as rows:
        _, file = rows.session("0b7c", rows.project("shop"), title="Pool", message_count=1)
        rows.message(file, "prompt", "pool")
        rows.call(file, "Bash", {"command": "make"}, "ok", duration_ms=10)
        rows.call(file, "Bash", {"command": "test"}, "failed", status="error", duration_ms=30)
        rows.call(file, "Edit", {"file_path": "/srv/a"}, "ok", duration_ms=20)
        _fill_stores(rows, file)
    connection = reader(path)
    yield connection
    connection.close()


def _fill_stores(rows: Rows, file: int) -> None:
    """Every store gets a row that its list shows; some get one that only `all` shows."""
    place = {"file_id": file, "byte_offset": 0, "byte_length": 1}
    team = rows.add("teams", name="crew", key="crew", source_id=rows.source)
    rows.add("teams", name="gone", key="gone", gone_at=AT, source_id=rows.source)
    rows.add("team_members", name="bob", team_id=team, file_id=file)
    tasks = {
        key: rows.add(
            "tasks", subject=f"task {key}", status="deleted" if key == "3" else "pending",
            task_key=key, task_number=int(key), list_key="crew", team_id=team,
            source_id=rows.source,
        )
        for key in ("1", "10", "2", "3")
    }  # fmt: skip
    rows.file("tasks/crew/2.json", kind="task")
    rows.add(
        "task_dependencies", task_key="2", blocker_key="1", task_id=tasks["2"],
        blocker_id=tasks["1"], list_key="crew", file_id=file, source_id=rows.source,
    )  # fmt: skip
    mail = rows.add(
        "inbox_items",
        text="hi",
        sender="bob",
        kind="message",
        channel="inbox",
        team_id=team,
        **place,
    )
    rows.add(
        "inbox_items", text="hi", kind="message", channel="transcript", copy_of=mail,
        **{**place, "byte_offset": 1},
    )  # fmt: skip
    for position, status in enumerate(("pending", "completed")):
        rows.add("todos", content=status, status=status, position=position, file_id=file)
    rows.add("todos", content="gone", position=0, gone_at=AT, file_id=file)
    rows.project("gone", gone_at=AT)
    rows.add("notes", text="pool", verdict="kept", session_key="0b7c", noted_at=AT)
    rows.add("plans", title="Plan", text="text", name="p", file_id=file)
    rows.add("documents", kind="note", title="Pool", text="text", path="a/b.md", file_id=file)
    output = rows.file("tool-results/o.txt", kind="tool_result")
    rows.add("tool_result_files", name="o", size=4, text="pool", file_id=output)
    for offset in (0, 1):  # repeats happen
        rows.add("prompts", text="pool", timestamp=AT, **{**place, "byte_offset": offset})
    rows.add("links", kind="pull_request", url="https://x/7", **place)
    for key, gone_at in (("g1", None), ("g2", AT)):
        rows.add(
            "agents", name=key, agent_key=key, project_key="w", gone_at=gone_at,
            source_id=rows.source,
        )  # fmt: skip
    for key, kind in (("a1", "task"), ("a2", "warmup")):
        rows.add("subagents", agent_key=key, kind=kind, source_id=rows.source)
    rows.add("issues", reason="not JSON", quarantined=1, **place)


@pytest.mark.parametrize("name", [name for name in NAMES if ":project" in sql.query(name).sql])
def test_a_query_takes_ids_of_projects_and_no_text_to_look_for(name: str) -> None:
    """What `--project` means is decided in one place, and that is not here."""
    statement = re.sub("--.*", "", sql.query(name).sql)
    for known in ("coalesce(:project, '') = ''", "json_each(:project)",
                  "json_each(nullif(:project, ''))"):  # fmt: skip
        statement = statement.replace(known, "")
    assert ":project" not in statement


def _run(
    connection: sqlite3.Connection, name: str, **parameters: object
) -> list[dict[str, object]]:
    query = sql.query(name)
    given = {**dict.fromkeys(query.parameters), **parameters}
    return [dict(row) for row in connection.execute(query.sql, given)]


def test_every_file_lies_in_a_folder_that_the_program_knows() -> None:
    root = Path(str(sql.data("queries")))
    found = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert found == {sql.query(name).file for name in NAMES}
    assert {path.name for path in root.iterdir()} == set(sql.FOLDERS)


def test_no_two_queries_of_an_area_have_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = tmp_path / "queries" / "pages"
    pages.mkdir(parents=True)
    for area in ("blame", "fix"):
        text = f"-- {area}\n\n-- name: calls\n-- Calls\nselect 1\n\n-- name: {area}\nselect 2\n"
        (pages / f"{area}.sql").write_text(text)
    monkeypatch.setattr(sql, "data", lambda *parts: tmp_path.joinpath(*parts))
    sql._by_area.cache_clear()
    with pytest.raises(ValueError, match="have a query calls"):
        sql._by_area()
    (pages / "fix.sql").unlink()
    assert sql._by_area()["blame"] == ("pages/blame.sql", "select 2\n")
    sql._by_area.cache_clear()


@pytest.mark.parametrize("name", NAMES)
def test_it_has_a_title_and_a_description(name: str) -> None:
    query = sql.query(name)
    assert query.title
    assert query.title != query.stem
    assert query.description.endswith(".")


def test_every_report_and_nothing_else_has_a_group() -> None:
    """A group that is misspelt would be a heading of its own."""
    without = [query.path for query in sql.queries("reports").values() if not query.group]
    assert without == []
    groups = {query.group for query in map(sql.query, NAMES)}
    assert groups - {""} == set(sql.GROUPS)
    others = [name for name in NAMES if not name.startswith("reports/")]
    assert [name for name in others if sql.query(name).group] == []


def test_a_report_without_a_known_group_is_still_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    query = sql.parse_query("reports", "mine", "-- My report\n-- What it says.\nselect 1")
    monkeypatch.setattr(sql, "queries", lambda folder: {"mine": query})
    assert sql.reports_by_heading()["Other"] == [query]


def test_the_group_is_no_part_of_the_description() -> None:
    text = "-- Title\n-- One line,\n-- and one more.\n-- Group: cost\nselect :a"
    query = sql.parse_query("reports", "mine", text)
    assert (query.title, query.description) == ("Title", "One line, and one more.")
    assert (query.group, query.parameters) == ("cost", ("a",))


def test_no_two_queries_that_can_be_run_have_one_name() -> None:
    runnable = [query for folder in ("reports", "lists") for query in sql.queries(folder).values()]
    assert len(sql.named_queries()) == len(runnable)


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_without_parameters_and_with_empty_ones(
    connection: sqlite3.Connection, name: str
) -> None:
    """The command line gives NULL for what is missing, Datasette gives ''."""
    query = sql.query(name)
    for missing in (None, ""):
        cursor = connection.execute(query.sql, dict.fromkeys(query.parameters, missing))
        columns = [column[0] for column in cursor.description]
        assert len(columns) == len(set(columns))
        cursor.fetchall()


@pytest.mark.parametrize("name", sql.named_queries())
def test_no_value_of_a_parameter_makes_a_report_or_a_list_fail(
    connection: sqlite3.Connection, name: str
) -> None:
    """A person may give any text, on the command line and in a form."""
    query = sql.named_queries()[name]
    for parameter in query.parameters:
        if parameter != "project":  # the ids are ours
            for value in ("few", '"', "'", "%", "-1", "9" * 30, "1e400", "\u2603", 10**17):
                given = {**dict.fromkeys(query.parameters), parameter: value}
                connection.execute(query.sql, given).fetchall()


@pytest.mark.parametrize("name", NAMES)
def test_it_reads_all_messages_only_if_it_says_why(
    connection: sqlite3.Connection, name: str
) -> None:
    query = sql.query(name)
    aliases = {"messages", *_alias.findall(query.sql)}
    parameters = dict.fromkeys(query.parameters, "x")
    rows = connection.execute(f"explain query plan {query.sql}", parameters)
    steps = [str(row["detail"]) for row in rows]
    scans = [
        step
        for step in steps
        if (found := re.match(r"SCAN (\w+)(?: (?!VIRTUAL)|$)", step)) and found[1] in aliases
    ]
    assert not scans or _reason.search(query.sql), scans


def test_a_search_asks_the_index_first_and_sorts_nothing(connection: sqlite3.Connection) -> None:
    query = sql.query("search/messages")
    # With other statistics the planner might begin elsewhere: only a cross join keeps the order.
    assert re.search(r"\nfrom \w+_fts\n(?:--.*\n)*cross join ", query.sql)
    rows = connection.execute(f"explain query plan {query.sql}", dict.fromkeys(query.parameters))
    steps = [str(row["detail"]) for row in rows]
    assert re.match(r"SCAN \w+_fts VIRTUAL TABLE", steps[0])
    assert not any("FOR ORDER BY" in step for step in steps)


def test_a_search_of_entries_asks_the_index_of_each_store_first(
    connection: sqlite3.Connection,
) -> None:
    query = sql.query("search/entries")
    rows = connection.execute(f"explain query plan {query.sql}", dict.fromkeys(query.parameters))
    steps = [str(row["detail"]) for row in rows]
    scanned = [step.split()[1] for step in steps if step.startswith("SCAN") and "json" not in step]
    indexes = [name for name in scanned if name.endswith("_fts")]
    assert len(indexes) == len(STORES)
    assert set(scanned) - set(indexes) <= {
        "e",
        "k",
        "o",
    }  # found entries, kinds asked for, projects


@pytest.mark.parametrize("what", STORES)
def test_an_entry_is_looked_up_by_its_id_and_not_in_all_of_them(
    connection: sqlite3.Connection, what: str
) -> None:
    query = sql.query("pages/entry")
    given = {"what": what, "id": 1}
    rows = connection.execute(f"explain query plan {query.sql}", given)
    steps = [str(row["detail"]) for row in rows]
    scanned = {step for step in steps if step.startswith("SCAN")}
    assert scanned <= {"SCAN e", "SCAN o"}  # the entry, and projects, for that of a noted file


@pytest.mark.parametrize("what", STORES)
def test_the_search_of_a_store_finds_what_the_view_calls_searchable(
    connection: sqlite3.Connection, what: str
) -> None:
    """The search reaches the same columns by the index, so it has them written a second time."""
    found = _run(connection, "search/entries", what=what, match='"pool" OR "hi" OR "task" OR "gone"'
                 ' OR "text" OR "pending" OR "completed"', limit=100)  # fmt: skip
    shared = ("what", "kind", "id", "byte_offset", "words")
    rows = connection.execute(
        f"select {', '.join(shared)} from searchable where what = ? and not is_repeated", (what,)
    )
    expected = {tuple(row) for row in rows}
    listed = {
        (row["what"], row["kind"], row["id"], row["byte_offset"],
         row["text"] if what != "tool_result_file" else "pool")
        for row in found
    }  # fmt: skip
    assert listed == expected != set()


def test_of_every_entry_the_search_says_what_the_view_says(tmp_path: Path) -> None:
    """Its conversation, project and time decide what a filter leaves out."""
    database = tmp_path / "data" / "assoc.db"
    sync(database, sorted(DEMO.iterdir()))
    write_note(database, "5e1f0c9a", Change("A warning", "kept"))
    connection = reader(database)
    rows = connection.execute(
        "select e.*, p.name as project, f.mtime, s.started_at,"
        " coalesce(p.same_as, p.id) as place"
        " from searchable e left join sessions s on s.id = e.session_id"
        " left join projects p on p.id = e.project_id left join files f on f.id = e.file_id"
        " where not e.is_repeated"
    ).fetchall()
    # The prompts of the demonstration are found in their conversations.
    assert {row["what"] for row in rows} == set(STORES) - {"prompt"}
    for row in rows:
        word = re.search("[A-Za-z]+", row["words"] or "")
        assert word
        found = _run(connection, "search/entries", what=row["what"], match=word[0], limit=1000)
        (one,) = [hit for hit in found if hit["id"] == row["id"]]
        same = ("kind", "session", "session_key", "source", "project", "byte_offset")
        assert {name: one[name] for name in same} == {name: row[name] for name in same}
        assert one["project_id"] == row["place"]
        assert one["timestamp"] == (row["timestamp"] or row["started_at"] or row["mtime"])
    connection.close()


def test_all_searches_give_the_columns_of_a_hit(connection: sqlite3.Connection) -> None:
    def columns(name: str) -> set[str]:
        query = sql.query(name)
        cursor = connection.execute(query.sql, dict.fromkeys(query.parameters))
        return {column[0] for column in cursor.description} - {"snippet", "text"}

    expected = columns("search/messages")
    assert {name: columns(name) for name in FINDING} == dict.fromkeys(FINDING, expected)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("lists/")])
def test_a_list_can_be_limited(name: str) -> None:
    assert {"limit", "project"} <= set(sql.query(name).parameters)


LISTED = {
    "agents": (1, 2),
    "files": (3, 3),
    "inbox": (1, 2),
    "issues": (1, 1),
    "links": (1, 1),
    "notes": (1, 1),
    "open": (5, 5),
    "plans": (1, 1),
    "projects": (1, 2),
    "prompts": (1, 1),
    "repositories": (1, 1),
    "sessions": (1, 1),
    "subagents": (1, 2),
    "tasks": (3, 4),
    "teams": (1, 2),
    "todos": (1, 3),
}
"""How many rows a list has, and how many with `all`."""


def test_a_list_hides_what_is_over_until_it_is_asked_for(connection: sqlite3.Connection) -> None:
    def count(name: str, **parameters: int) -> int:
        known = set(sql.query(f"lists/{name}").parameters)
        given = {key: value for key, value in parameters.items() if key in known}
        return len(_run(connection, f"lists/{name}", **given))

    names = sql.queries("lists")
    assert {name: (count(name), count(name, all=1)) for name in names} == LISTED


def test_a_list_has_what_is_gone_when_it_is_asked_for(connection: sqlite3.Connection) -> None:
    found = {
        name: len(_run(connection, name, gone=1)) - len(_run(connection, name))
        for name in NAMES
        if name.startswith("lists/") and "gone" in sql.query(name).parameters
    }
    assert found == {
        "lists/inbox": 0,
        "lists/links": 0,
        "lists/projects": 1,
        "lists/sessions": 0,
        "lists/tasks": 0,
        "lists/teams": 1,
        "lists/todos": 1,
    }


def test_tasks_are_in_the_order_of_their_numbers(connection: sqlite3.Connection) -> None:
    tasks = _run(connection, "lists/tasks")
    assert [(task["task"], task["waits_for"]) for task in tasks] == [
        ("1", None),
        ("2", "1"),
        ("10", None),
    ]


def test_tool_use_counts_calls_errors_and_the_duration_in_the_middle(
    connection: sqlite3.Connection,
) -> None:
    assert _run(connection, "reports/tool_use") == [
        {
            "action": "run",
            "name": "Bash",
            "calls": 2,
            "errors": 1,
            "error_percent": 50.0,
            "declined": 0,
            "median_ms": 10,
            "total_ms": 40,
            "letters": 8,
        },
        {
            "action": "edit",
            "name": "Edit",
            "calls": 1,
            "errors": 0,
            "error_percent": 0.0,
            "declined": 0,
            "median_ms": 20,
            "total_ms": 20,
            "letters": 2,
        },
    ]
    assert _run(connection, "reports/tool_use", project="[]") == []


def test_most_edited_files_and_errors_name_the_place(connection: sqlite3.Connection) -> None:
    (edited,) = _run(connection, "reports/most_edited_files")
    assert (edited["file"], edited["edits"], edited["repository"]) == ("/srv/a", 1, "shop")
    (error,) = _run(connection, "reports/errors")
    assert (error["name"], error["target"], error["said"]) == ("Bash", "test", "failed")


def test_a_failed_call_that_a_fork_repeats_is_listed_once(tmp_path: Path) -> None:
    with index(tmp_path / "assoc.db") as rows:
        calls = [
            rows.call(rows.session(key)[1], "Bash", {"command": "test"}, "no", status="error")[1]
            for key in ("0b7c", "1c8d")
        ]
        rows.connection.execute("update messages set copy_of = ? where id = ?", calls)
    with closing(reader(tmp_path / "assoc.db")) as connection:
        (error,) = _run(connection, "reports/errors")
    assert error["session_key"] == "0b7c"


def test_sessions_are_listed_with_their_project(connection: sqlite3.Connection) -> None:
    (session,) = _run(connection, "lists/sessions")
    assert (session["session_key"], session["title"], session["project"]) == (
        "0b7c",
        "Pool",
        "shop",
    )


def test_sources_are_counted(connection: sqlite3.Connection) -> None:
    (source,) = _run(connection, "reports/status_sources")
    assert (source["file_count"], source["session_count"], source["block_count"]) == (3, 1, 7)
