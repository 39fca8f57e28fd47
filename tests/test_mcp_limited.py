"""A server that is limited to a project shows nothing of any other, by whatever way it is asked.

Every text, name, path and key of the other project holds a word that must not come out.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.writing import (
    OTHER,
    SESSION,
    agent,
    assistant,
    call,
    dumps,
    result,
    user,
    write,
    write_bytes,
)

from assoc_ingest.mcp.index import Index, Settings
from assoc_ingest.mcp.server import Tools
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync
from assoc_ingest.upkeep.note import Change, write_note

SECRET = "xylophone"
HERE = "/srv/open"
THERE = f"/srv/{SECRET}"
KEYS = (SESSION, f"0b7c2f4e-{SECRET}", OTHER)

KINDS = {
    *("prompt", "text", "tool_use", "tool_result", "session", "task", "todo", "document"),
    *("tool_result_file", "inbox", "plan", "note"),
}

Object = dict[str, Any]


def project(home: Path, directory: str, key: str, word: str) -> None:
    """Write a conversation with everything that belongs to one."""
    name = "projects/" + directory.replace("/", "-")
    where = {"cwd": directory, "sessionId": key, "gitBranch": f"{word}-branch"}
    write(
        home, f"{name}/{key}.jsonl",
        user(f"{word} frost one", f"{word}1", **where),
        assistant(f"{word} answer frost", f"{word}2", f"{word}1", **where),
        assistant([call(f"{word}_1", "Bash", command=f"echo {word}"),
                   call(f"{word}_2", "Edit", file_path=f"{directory}/{word}.py", old_string="a",
                        new_string=word)], f"{word}3", f"{word}2", id=f"{word}_m", **where),
        user([result(f"{word}_1", f"{word} output", is_error=True),
              result(f"{word}_2", f"{word} done")], f"{word}4", f"{word}3", **where),
        {"type": "custom-title", "customTitle": f"{word} title", "sessionId": key},
        b"{broken " + word.encode(),
    )  # fmt: skip
    write(home, f"{name}/{key}/subagents/agent-a{key[:6]}.jsonl",
          agent(f"a{key[:6]}", user(f"{word} agent frost", f"{word}9", **where)))  # fmt: skip
    write_bytes(home, f"{name}/{key}/tool-results/{word}.txt", f"{word} large".encode())
    write(home, f"tasks/{key}/1.json", {"id": "1", "subject": f"{word} task", "status": "pending",
                                        "description": word})  # fmt: skip
    write(home, f"todos/{key}-agent-{key}.json", [{"content": f"{word} todo", "status": "pending"}])
    write_bytes(home, f"{name}/memory/MEMORY.md", f"# {word} memory frost\n".encode())


@pytest.fixture(scope="module")
def database(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("limited")
    home = place / "home"
    project(home, HERE, KEYS[0], "piano")
    project(home, THERE, KEYS[1], SECRET)
    write(home, f"projects/{THERE.replace('/', '-')}/{OTHER}.jsonl",
          user(f"{SECRET} frost", sessionId=OTHER, cwd=THERE))  # fmt: skip
    write(home, "history.jsonl",
          {"display": f"{SECRET} typed frost", "project": THERE, "timestamp": 1768900000000},
          {"display": "piano typed frost", "project": HERE,
          "timestamp": 1768900000001},
          {"display": f"{SECRET} typed there of here", "project": HERE, "sessionId": KEYS[1],
          "timestamp": 1768900000002})  # fmt: skip
    write_bytes(home, "plans/secret.md", f"# {SECRET} plan\n".encode())
    write(home, f"teams/{SECRET}/config.json", {"name": SECRET, "leadSessionId": KEYS[1],
                                                "members": [{"name": SECRET}]})  # fmt: skip
    write_bytes(home, f"teams/{SECRET}/inboxes/{SECRET}.json",
                dumps([{"from": SECRET, "text": f"{SECRET} frost", "read": False}]))  # fmt: skip
    path = Path(shutil.copy(template, place / "assoc.db"))
    sync(path, [home])
    for key, word in zip(KEYS, ("piano", SECRET), strict=False):
        write_note(path, key, Change(f"{word} note", "kept", f"{word} of mine"))
        file = write(place / word, f"{word}.py", b"")
        write_note(path, str(file), Change(f"{word} file"))
    with sqlite3.connect(path) as connection:
        connection.execute(
            "insert into forgotten (path, forgotten_at, is_pending) values (?, '2026', 0)", (THERE,)
        )
    return path


@pytest.fixture(scope="module")
def limited(database: Path) -> Iterator[Tools]:
    index = Index(Settings(database, project=HERE))
    yield Tools(index)
    index.close()


def shown(tools: Tools, name: str, **arguments: Any) -> Object:
    answer: Any = tools.call(name, arguments)
    return {**answer["structuredContent"], "said": answer["content"][0]["text"]}


def echoes(value: object) -> bool:
    return SECRET in json.dumps(value).lower()


def test_without_a_limit_all_of_it_can_be_seen(database: Path) -> None:
    """What follows would prove nothing if the word could not be found at all."""
    tools = Tools(Index(Settings(database)))
    for kind in KINDS:
        assert shown(tools, "search", query=SECRET, kinds=[kind])["items"], kind
    assert echoes(shown(tools, "recent"))
    assert echoes(shown(tools, "recap", since="2000-01-01"))
    assert echoes(shown(tools, "open", ref=OTHER))
    assert echoes(shown(tools, "sql", query="select text from messages"))


def test_what_belongs_to_the_project_is_there(limited: Tools) -> None:
    found = []
    for kind in KINDS - {"inbox", "plan"}:
        items = shown(limited, "search", query="piano", kinds=[kind])["items"]
        assert items, kind
        found += items
    refs = [hit["ref"] for item in found for hit in item["hits"]]
    for ref in (*refs, "0b7c2f4e", "prompt:2"):
        assert "error" not in shown(limited, "open", ref=ref), ref
    recent = shown(limited, "recent")
    assert {item["kind"] for item in recent["items"]} == {"conversation", "task", "todo", "session"}
    rows = shown(limited, "sql", query="select distinct project from conversation")["items"]
    assert rows == [{"row": ["open"]}]


WAYS: list[tuple[str, Object]] = [
    *(("stats", {"by": by}) for by in ("project", "session", "model", "tool")),
    ("stats", {"session": KEYS[1][:8]}),
    *(("search", {"query": query}) for query in (
        "frost", "xylophon", "xylofone", "xylofone piano", "xyl*", "title",
        "frost project:xxx",
        "frost session:1c8d3a5f", "frost session:0b7c2f4e-x", "frost source:claude",
        "frost project:1",
        "frost project:2", "frost project:3", "frost kind:plan", "kind:inbox frost", "large",
        "typed",
    )),
    *(("search", {"query": "frost", "session": key})
    for key in ("0", "1", "1c8d3a5f", "0b7c2f4e-")),
    *(("open", {"ref": ref}) for ref in (
        OTHER, OTHER[:8], f"{OTHER}:1", "1c", "0b7c2f4e-", "0b7c2f4e-x", "a0b7c2f", "plan:secret",
        "plan:s", "plan:x", "task:0b7c2f4e-x", "task:1", "todo:0b7c2f4e-x", "todo:1", "inbox:x",
        "document:MEMORY.md", "document:x", "prompt:1", "prompt:3", "prompt:2/1",
        "output:0b7c2f4e-x",
        "output:x", "team:x", "5", "",
    )),
    ("recent", {}), ("recent", {"limit": 50}), ("recent", {"project": "x"}),
    ("recent", {"cwd": "/srv"}), ("recap", {"since": "2000-01-01"}), ("recap", {}),
    *(("sql", {"query": query}) for query in (
        "select * from messages", "select * from sessions", "select * from projects",
        "select * from files", "select * from sources", "select * from tasks",
        "select * from prompts",
        "select * from documents", "select * from issues", "select * from tool_calls_full",
        "select * from conversation", "select * from usage_by_project", "select * from archive",
        "select * from sync_runs", "select * from teams", "select * from team_members",
        "select * from inbox_items", "select * from plans", "select * from plan_lines",
        "select * from main.messages", 'select * from "main".messages',
        "select * from 'main'.messages",
        "select * from [main] . messages", "select * from main/**/.messages",
        "select * from `main`.files",
        "with messages as (select * from main.messages) select * from messages",
        "select * from (select * from main.messages) messages",
        "select * from temp.sqlite_master", "select * from sqlite_master",
        "select * from sqlite_schema",
        "select * from sqlite_temp_schema", "with messages as (select * from sqlite_temp_schema)"
        " select sql from messages", "select file from pragma_database_list",
        "select * from pragma_table_list", "with messages as (select * from pragma_database_list)"
        " select * from messages", "select text from messages_fts",
        "select * from messages_fts where messages_fts match 'frost'",
        "with messages as (select * from messages_fts) select * from messages",
        "select * from messages_fts_data", "select * from documents_fts",
        "select * from limited_sessions",
        "select hex(data) from archive", "select data from archive join files on files.id = file_id"
        " where kind = 'history'",
    )),
    ("sql", {"schema": "all"}), ("sql", {"schema": SECRET[:4]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), WAYS, ids=lambda value: str(value)[:70])
def test_no_way_leads_to_another_project(name: str, arguments: Object, limited: Tools) -> None:
    answer = shown(limited, name, **arguments, max_chars=300_000)
    assert not echoes(answer)
    assert answer.get("error", {}).get("code") != "internal"
    for _ in range(5):
        if not (cursor := answer.get("next")):
            break
        answer = shown(limited, name, **arguments, max_chars=300_000, cursor=cursor)
        assert not echoes(answer)


def test_every_table_shows_rows_of_the_project_alone(limited: Tools, database: Path) -> None:
    """Also those that nobody thought of."""
    connection = open_reader(database)
    names = [
        row["name"] for row in connection.execute(
            "select name from sqlite_master where type in ('table', 'view')"
            " and sql not like 'create virtual%'"
        )
    ]  # fmt: skip
    connection.close()
    read = 0
    for name in names:
        answer = shown(limited, "sql", query=f"select * from {name}", limit=2000, max_chars=300_000)
        assert not echoes(answer), name
        read += "error" not in answer
    assert read > 50


def test_a_cursor_of_another_server_is_refused(limited: Tools, database: Path) -> None:
    tools = Tools(Index(Settings(database)))
    for name, arguments in (("search", {"query": "frost", "limit": 1}), ("open", {"ref": SESSION})):
        cursor = shown(tools, name, **arguments)["next"]
        assert cursor
        refused = shown(limited, name, **arguments, cursor=cursor)
        assert refused["error"]["message"].startswith("cursor belongs to another")


@given(st.sampled_from(["search", "open"]), st.text("xyl0b7c2f4e1-:/ aosndtkp*", max_size=14))
def test_no_guess_leads_to_another_project(limited: Tools, name: str, guess: str) -> None:
    if SECRET in guess:
        return
    argument = {"search": "query", "open": "ref"}[name]
    assert not echoes(shown(limited, name, **{argument: guess}))


def test_what_is_added_is_seen_and_only_of_the_project(template: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    project(home, HERE, SESSION, "piano")
    database = Path(shutil.copy(template, tmp_path / "assoc.db"))
    sync(database, [home])
    tools = Tools(Index(Settings(database, project=HERE)))
    count = {"query": "select count(*) from sessions"}
    assert shown(tools, "sql", **count)["items"] == [{"row": [1]}]
    project(home, THERE, KEYS[1], SECRET)
    project(home, HERE, OTHER, "violin")
    sync(database, [home])
    assert shown(tools, "sql", **count)["items"] == [{"row": [2]}]
    assert shown(tools, "search", query="violin")["items"]
    assert not echoes(shown(tools, "search", query="frost"))


@pytest.mark.parametrize("name", ["/srv/xylophon", "no", "srv", ".", "9999"])
def test_a_project_that_is_not_there_names_no_other(
    name: str, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tools = Tools(Index(Settings(database, project=name)))
    for tool, arguments in (("search", {"query": "frost"}), ("recent", {}), ("open", {"ref": "0"})):
        answer = shown(tools, tool, **arguments)
        assert answer["error"]["code"] == "not_found"
        assert "xylophone" not in json.dumps(answer)
        assert "/srv/open" not in json.dumps(answer)


def test_what_would_name_another_project_is_not_offered(database: Path) -> None:
    tools = Tools(Index(Settings(database, project=HERE)))
    offered = {tool.described()["name"]: tool.described() for tool in tools.offered()}
    assert set(offered) == {"recent", "recap", "search", "open", "blame", "fix", "stats", "sql"}
    for name in offered:
        properties: Any = offered[name]["inputSchema"]
        assert not {"project", "cwd"} & properties["properties"].keys()
