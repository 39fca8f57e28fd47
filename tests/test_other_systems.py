"""The homes of TheAssociate, Chorus, Cortex and CC-Insights: what their golden cases do not show.

Which directories are homes, what becomes of a document that is caught half-written, of a secret,
of a home that is missing today, of an agent that is no longer listed, and of times without a zone;
which call a result without an id answers; and the replay of hook events.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.cases import SOURCES as CASES
from tests.support.cases import home_of
from tests.support.shell import Shell
from tests.support.writing import write

from assoc_ingest.errors import UsageError
from assoc_ingest.fields import MACHINE, utc
from assoc_ingest.files import archive
from assoc_ingest.files.walk import recognised
from assoc_ingest.records import Message, Transcript
from assoc_ingest.source import LOG, Line
from assoc_ingest.sources import SOURCES
from assoc_ingest.sources.associate import folded_directory
from assoc_ingest.sources.ccinsights import CCInsights
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.damage import assert_storable
from assoc_ingest.testing.dump import assert_same, check, connect, dump, rows
from assoc_ingest.upkeep.prune import prune_gone
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.verify import verify

CHORUS = "chorus/a-conversation-in-a-worktree"
CHATS = "ccinsights/chats-in-both-vocabularies"
BROKEN = "ccinsights/a-broken-list-and-its-copy"
NOTES = "associate/notes-summaries-and-tasks"
EVENTS = "associate/hook-events"
SESSION = "0b7c2f4e-1111-4222-8333-444455556666"


# -- which directories are homes -----------------------------------------------------------------


def test_seeds_an_id_of_cc_insights_that_is_not_the_hash_of_its_path_is_an_issue(
    fresh: Callable[[], Path], tmp_path: Path
) -> None:
    database, worktrees = fresh(), {"worktrees": {}}
    listed = {
        "/srv/garden": {"id": "5AD8FF26", **worktrees},
        "/srv/site": {"id": "b2", **worktrees},
    }
    write(tmp_path, "projects.json", listed)
    sync(database, [tmp_path])
    assert rows(database, "select path, key from projects order by path") == [
        ("/srv/garden", "5ad8ff26"),
        ("/srv/site", "b2"),
    ]
    assert rows(database, "select reason from issues") == [
        ("id: not the beginning of the SHA-256 of the path",)
    ]


def test_seeds_a_limit_of_a_cortex_agent_counts_messages(tmp_path: Path, shell: Shell) -> None:
    lines = [
        {"role": role, "content": f"{role} {turn}", "timestamp": 1771250400000 + turn}
        for turn in range(3)
        for role in ("user", "assistant")
    ]
    write(tmp_path / ".cortex", "transcripts/main/transcript.jsonl", *lines)
    assert shell("sync", str(tmp_path / ".cortex")) == 0, shell.err
    assert shell("show", "main", "--json", "--limit", "3") == 0, shell.err
    answer = json.loads(shell.out)
    said = [item["text"] for item in answer["items"]]
    assert (said, answer["total"]) == (["user 0", "assistant 0", "user 1"], 6)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", '{"workspaces": 3}'),  # another program's
        ("config.json", "{"),
        ("projects.json", '{"scripts": {"build": "make"}}'),
        ("projects.json", "[]"),
        ("transcripts/transcript.jsonl", "{}"),
        ("theassociate.txt", ""),
    ],
)
def test_a_directory_of_another_program_is_refused(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    with pytest.raises(UsageError):
        recognised(tmp_path, SOURCES)


def test_homes_inside_known_projects_are_found_without_a_path(
    fresh: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "garden"
    home_of(CHORUS, project / "x").rename(project / ".chorus")
    cortex = home_of("cortex/agents-and-what-they-were-told", project / "y")
    cortex.rename(project / ".cortex")
    claude = tmp_path / "claude"
    line = {"type": "user", "sessionId": SESSION, "uuid": "u1", "cwd": str(project)}
    transcript = claude / "projects" / "-garden" / f"{SESSION}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(json.dumps({**line, "message": {"content": "hello"}}) + "\n")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(claude))
    database = fresh()
    sync(database, [])  # here the project becomes known
    sync(database, [])
    kinds = "select kind from sources order by kind"
    assert rows(database, kinds) == [("chorus",), ("claude",), ("cortex",)]


def test_the_associate_below_a_home_is_a_root_of_its_own(
    fresh: Callable[[], Path], tmp_path: Path
) -> None:
    claude = home_of("claude/a-plain-session", tmp_path)
    shutil.copytree(CASES / NOTES / "home", claude / "theassociate")
    database = fresh()
    sync(database, [claude])
    assert rows(database, "select kind, substr(root, -12) from sources order by kind") == [
        ("associate", "theassociate"),
        ("claude", str(claude)[-12:]),
    ]
    assert not rows(
        database,
        "select path from files where path like 'theassociate%'",
    )


def test_a_home_that_is_missing_today_marks_nothing_as_gone(
    fresh: Callable[[], Path], tmp_path: Path
) -> None:
    database, home = fresh(), home_of(CHATS, tmp_path)
    sync(database, [home])
    before = dump(database)
    home.rename(tmp_path / "elsewhere")
    (tmp_path / "other" / "transcripts" / "a").mkdir(parents=True)
    (tmp_path / "other" / "transcripts" / "a" / "transcript.jsonl").write_text("")
    report = sync(database, [])
    assert report.missing_roots == [str(home)]
    assert rows(database, "select count(gone_at) from files") == [(0,)]
    assert_same(dump(database), before)


# -- half-written documents ----------------------------------------------------------------------


def documents() -> list[tuple[str, str]]:
    return [
        (CHORUS, "config.json"),
        (CHORUS, "sessions/W1/g1/conversations.json"),
        (CHATS, "projects.json"),
        (CHATS, "projects/5ad8ff26/chats/chat-1771234500123.meta.json"),
        ("ccinsights/tickets-of-both-versions", "projects/5ad8ff26/tickets.json"),
        (NOTES, "notes/n1.json"),
        (NOTES, "projects/-srv-garden/plan-links.json"),
        (NOTES, "projects/-srv-garden/task-snapshots/garden-team.json"),
    ]


@pytest.mark.parametrize(
    ("case", "document"), documents(), ids=[document for _, document in documents()]
)
@pytest.mark.parametrize("share", [0.0, 0.5], ids=["empty", "cut off"])
def test_a_half_written_document_keeps_its_rows_and_is_read_again(
    case: str, document: str, share: float, fresh: Callable[[], Path], tmp_path: Path
) -> None:
    database, home = fresh(), home_of(case, tmp_path)
    sync(database, [home])
    before = dump(database)
    path = home / document
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    assert sync(database, [home]).quarantined >= 1
    broken = dump(database)
    for table in before.keys() - {"issues", "files", "sources"}:
        assert broken[table] == before[table], table
    path.write_bytes(whole)
    sync(database, [home])
    check(database, home)
    assert_same(dump(database), before)


@pytest.mark.slow
def test_the_copy_of_a_list_counts_while_the_list_is_broken(
    fresh: Callable[[], Path], tmp_path: Path
) -> None:
    database, home = fresh(), home_of(BROKEN, tmp_path)
    chat = "select title, is_listed from sessions where session_key = 'chat-7'"

    def title(name: str, text: str | None) -> object:
        if text is None:
            (home / name).unlink()
        else:
            (home / name).write_text(text)
        sync(database, [home])
        check(database, home)
        return rows(database, chat)[0][0]

    original = (home / "projects.json.bak").read_text()
    newer = original.replace("From the copy", "From the list")
    without = original.replace("chat-7", "chat-8")
    assert title("projects.json", newer) == "From the list"
    assert title("projects.json", "") == "From the copy"
    assert title("projects.json", newer) == "From the list"
    assert title("projects.json.bak", "{") == "From the list"
    assert title("projects.json", newer[:40]) == "From the list", "both broken: what was known"
    assert title("projects.json.bak", original) == "From the copy"
    assert title("projects.json", without) == "From the list", "as it was called last"
    assert rows(database, chat) == [("From the list", 0)], "deleted chats may stand in the copy"
    oracle = fresh()
    for text in (newer, without):  # what is gone was there once
        (home / "projects.json").write_text(text)
        sync(oracle, [home])
    assert_same(dump(database), dump(oracle))


# -- secrets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "secret"),
    [(CHORUS, "sk-planted-0123456789abcdef"), (CHATS, "sk-ant-planted-in-config")],
)
@pytest.mark.parametrize("is_broken", [False, True], ids=["whole", "broken"])
def test_a_secret_in_a_configuration_is_nowhere(
    case: str, secret: str, is_broken: bool, fresh: Callable[[], Path], tmp_path: Path
) -> None:
    database, home = fresh(), home_of(case, tmp_path)
    config = home / "config.json"
    assert secret in config.read_text()
    if is_broken:
        config.write_text(config.read_text()[:-3])
    sync(database, [home])
    config.write_text(config.read_text() + "\n")
    sync(database, [home])
    connection = connect(database)
    text = "".join(connection.iterdump())
    kept = b"".join(
        part
        for (file_id,) in connection.execute("select id from files").fetchall()
        for part in archive.read(connection, file_id)
    )
    connection.close()
    assert "k1-messages" in text or "chat-1" in text, "something was read"
    assert secret not in text
    assert secret.encode() not in kept
    for path in tmp_path.glob("fresh-*"):
        assert secret.encode() not in path.read_bytes(), path


# -- times without a zone ------------------------------------------------------------------------


def chat_lines(zone: timezone, *texts: str) -> list[object]:
    source = CCInsights(zone)
    claim = source.claim(("projects", "a1", "chats", "chat-1.chat.jsonl"))
    assert claim is not None
    lines = [
        Line(0, json.dumps({"type": "user", "text": "x", "timestamp": text}).encode())
        for text in texts
    ]
    return list(source.parse(claim, lines))


@pytest.mark.parametrize(
    ("text", "moment", "zone"),
    [
        ("2026-02-19T18:41:07.204518", "2026-02-19T13:11:07.204Z", "local"),
        ("2026-02-19T18:41:07", "2026-02-19T13:11:07.000Z", "local"),
        ("2026-02-19T18:41:07.204Z", "2026-02-19T18:41:07.204Z", None),
        ("2026-02-19T18:41:07+01:00", "2026-02-19T17:41:07.000Z", None),
    ],
)
def test_a_time_without_zone_is_local_and_says_so(text: str, moment: str, zone: str | None) -> None:
    records = chat_lines(timezone(timedelta(hours=5, minutes=30)), text)
    assert [r.timestamp for r in records if isinstance(r, Message)] == [moment]
    assert [r.time_zone for r in records if isinstance(r, Transcript)] == [zone]


def test_the_machines_zone_is_that_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    time = pytest.importorskip("time")
    if not hasattr(time, "tzset"):
        pytest.skip("the zone of a process cannot be set here")
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        time.tzset()
        assert utc("2026-01-15T12:00:00", MACHINE) == "2026-01-15T11:00:00.000Z"
        assert utc("2026-07-15T12:00:00", MACHINE) == "2026-07-15T10:00:00.000Z"
        assert utc("2026-07-15T12:00:00Z", MACHINE) == "2026-07-15T12:00:00.000Z"
    time.tzset()


# -- hook events ---------------------------------------------------------------------------------


def replayed(events: list[dict[str, object]]) -> dict[str, dict[str, object]]:
    """What TheAssociate itself makes of events: the rules of the format, in the plainest words."""
    sessions: dict[str, dict[str, object]] = {}
    for event in events:
        key, name = event.get("session_id"), event.get("hook_event_name")
        agent = event.get("agent_id")
        if not isinstance(key, str):
            continue
        is_agent = name == "SubagentStart" and agent is not None
        if (name == "SessionStart" or is_agent) and key not in sessions:
            known = {"status": "active", "cwd": event.get("cwd")}
            sessions[key] = {**known, "model": None, "agents": []}
        session = sessions.get(key)
        if session is None:
            continue
        agents = session["agents"]
        assert isinstance(agents, list)
        if name == "SessionStart":
            session |= {"status": "active", "cwd": event.get("cwd")}
            session["model"] = event.get("model") or session["model"]
        elif name in ("Stop", "SessionEnd"):
            session["status"] = "idle" if name == "Stop" else "completed"
        elif is_agent and agent not in [one["agent_id"] for one in agents]:
            agents.append({"agent_id": agent, "agent_type": event.get("agent_type")})
        elif name == "SubagentStop":
            agents[:] = [one for one in agents if one["agent_id"] != agent]
    return sessions


def active_sessions(database: Path) -> dict[str, dict[str, object]]:
    found = {}
    for key, status, is_active, cwd, model, count, agents in rows(
        database,
        "select session_key, status, is_active, cwd, model, running_subagents, subagents"
        " from active_sessions",
    ):
        assert is_active == (status == "active")
        running = json.loads(str(agents))
        assert count == len(running)
        found[str(key)] = {"status": status, "cwd": cwd, "model": model, "agents": running}
    return found


def test_the_view_says_what_the_program_says(fresh: Callable[[], Path], tmp_path: Path) -> None:
    names = ["SessionStart", "Stop", "SessionEnd", "SubagentStart", "SubagentStop", "PreToolUse"]
    seen = set()
    for seed in range(6):
        state = seed + 1
        events: list[dict[str, object]] = []
        for _ in range(120):
            picks = []
            for size in (len(names), 3, 3, 2, 2):
                state = state * 1103515245 + 12345 & 0x7FFFFFFF
                picks.append(state // 65536 % size)
            name, session, agent, cwd, model = picks
            event: dict[str, object] = {"session_id": f"s{session}", "hook_event_name": names[name]}
            event["cwd"] = f"/srv/{cwd}" if cwd else None
            if names[name].startswith("Subagent"):
                event |= {"agent_id": f"a{agent}", "agent_type": f"type {model}"}
            elif model:
                event["model"] = f"model {agent}"
            events.append(event)
            seen.add(names[name])
        home, database = tmp_path / str(seed), fresh()
        home.mkdir()
        (home / "hook-events.jsonl").write_text("".join(f"{json.dumps(e)}\n" for e in events))
        sync(database, [home])
        assert active_sessions(database) == replayed(events)
    assert seen == set(names)


def test_a_removed_file_of_events_leaves_no_active_sessions(
    fresh: Callable[[], Path], tmp_path: Path
) -> None:
    database, home = fresh(), home_of(EVENTS, tmp_path)
    sync(database, [home])
    (home / "hook-events.jsonl").unlink()
    sync(database, [])
    assert active_sessions(database) == {}
    assert rows(database, "select count(*) from hook_events")[0][0] != 0, "the events stay"


@pytest.mark.parametrize(
    "names",
    [
        ("-srv-my-app", "-srv-my_app", "-srv-my.app", "/srv/my.app", "\\srv\\my_app\\"),
        ("C--code-my-site", "c--code-my.site", "C:\\code\\my_site", "C:/code/my site"),
    ],
)
def test_every_encoding_of_a_directory_is_the_same(names: tuple[str, ...]) -> None:
    assert len({folded_directory(name) for name in names}) == 1


# -- agents --------------------------------------------------------------------------------------

AGENTS = "chorus/every-field-of-the-format"
LISTED = "select name, is_general, gone_at is not null from agents order by agent_key"
HELD = (
    "select s.session_key, a.name from sessions s left join agents a on a.id = s.agent_id"
    " order by s.session_key"
)


def rewritten(path: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def test_lists_and_the_view_of_messages_name_the_agent(tmp_path: Path, shell: Shell) -> None:
    home = home_of(AGENTS, tmp_path)
    assert shell("sync", str(home)) == 0
    (session,) = cast("list[dict[str, object]]", shell.items("list", "sessions"))
    assert (session["session_key"], session["agent"]) == ("conv-full-1", "Pruner")
    shown = cast("dict[str, Any]", shell.json("show", "conv-full-1", "--json"))
    assert shown["session"]["agent"] == "Pruner"
    agents = cast("list[dict[str, object]]", shell.items("list", "agents"))
    assert [(agent["name"], agent["sessions"]) for agent in agents] == [
        ("Pruner", 2),
        ("Chorus", 0),
        ("Deep reader", 0),
    ]
    assert shell("show", "conv-full-1") == 0
    assert "with Pruner" in shell.out
    assert rows(shell.database, "select distinct agent from conversation") == [("Pruner",)]


def test_an_agent_without_a_configuration_is_named_by_its_directory(
    fresh: Callable[[], Path], tmp_path: Path
) -> None:
    database, home = fresh(), home_of(AGENTS, tmp_path)
    hidden = (home / "config.json").rename(tmp_path / "config.json")
    listed = home / "sessions" / "WS-aa01" / "ag-pruner-2" / "conversations.json"
    listed.write_text('{"conversations":[]}')
    sync(database, [home])
    assert rows(database, HELD) == [("conv-full-1", "ag-pruner-2")]
    hidden.rename(home / "config.json")
    sync(database, [home])
    assert rows(database, HELD) == [("conv-full-1", "Pruner")]
    check(database, home)
    oracle = fresh()
    sync(oracle, [home])
    assert_same(dump(database), dump(oracle))


def test_an_agent_that_is_no_longer_listed_keeps_its_name(
    fresh: Callable[[], Path], tmp_path: Path
) -> None:
    database, home = fresh(), home_of(AGENTS, tmp_path)
    config = home / "config.json"
    sync(database, [home])
    whole = config.read_text()
    rewritten(config, lambda value: value["workspaces"][0]["agents"].pop(1))
    sync(database, [home])
    assert rows(database, LISTED) == [("Chorus", 1, 0), ("Pruner", 0, 1), ("Deep reader", 0, 0)]
    assert rows(database, HELD)[0] == ("conv-basic-2", "Pruner")
    config.unlink()
    sync(database, [home])
    assert [gone for _, _, gone in rows(database, LISTED)] == [1, 1, 1]
    config.write_text(whole)
    sync(database, [home])
    assert [gone for _, _, gone in rows(database, LISTED)] == [0, 0, 0]
    check(database, home)


def test_an_agent_of_whom_nothing_speaks_any_more_is_pruned(
    fresh: Callable[[], Path], tmp_path: Path
) -> None:
    database, home = fresh(), home_of(AGENTS, tmp_path)
    sync(database, [home])
    (home / "config.json").unlink()
    sync(database, [home])
    prune_gone(database, None, dry_run=False)
    assert rows(database, "select name, file_id from agents") == [("ag-pruner-2", None)]
    oracle = fresh()
    sync(oracle, [home])
    assert_same(dump(database), dump(oracle))
    shutil.rmtree(home / "sessions" / "WS-aa01")
    (home / "sessions" / "w" / "g").mkdir(parents=True)
    (home / "sessions" / "w" / "g" / "conversations.json").write_text('{"conversations":[]}')
    sync(database, [home])
    prune_gone(database, None, dry_run=False)
    assert rows(database, "select name from agents") == []
    check(database, home)


def test_a_conversation_that_moves_to_another_agent_is_held_with_that_one(
    fresh: Callable[[], Path], tmp_path: Path
) -> None:
    database, home = fresh(), home_of(AGENTS, tmp_path)
    place = home / "sessions" / "WS-aa01"
    (place / "ag-pruner-2" / "conversations.json").unlink()
    sync(database, [home])
    (place / "ag-pruner-2").rename(place / "ag-research-3")
    sync(database, [home])
    assert rows(database, HELD) == [("conv-full-1", "Deep reader")]
    check(database, home)
    prune_gone(database, None, dry_run=False)
    oracle = fresh()
    sync(oracle, [home])
    assert_same(dump(database), dump(oracle))


def test_the_same_agent_in_two_workspaces_is_two(fresh: Callable[[], Path], tmp_path: Path) -> None:
    database, home = fresh(), home_of(AGENTS, tmp_path)

    def add(value: Any) -> None:
        value["workspaces"].append({**value["workspaces"][0], "id": "other", "name": "Other"})

    rewritten(home / "config.json", add)
    sync(database, [home])
    statement = (
        "select p.name, count(s.id) from agents a join projects p on p.id = a.project_id"
        " left join sessions s on s.agent_id = a.id"
        " where a.agent_key = 'ag-pruner-2' group by p.name order by p.name"
    )
    assert rows(database, statement) == [("Orchard", 2), ("Other", 0)]


# -- results without an id -----------------------------------------------------------------------

CALLS = (
    "select c.name, c.status, m.tool_text from tool_calls c"
    " left join messages m on m.id = c.result_id order by c.byte_offset, c.block"
)


def chorus_call(name: str, second: int, identity: str | None = None) -> dict[str, object]:
    line = {"uuid": f"c{second}", "type": "tool_use", "content": f"Using tool: {name}"}
    named: dict[str, object] = {"toolName": name, "toolInput": {}}
    moment = f"2026-01-05T10:00:{second:02d}.000Z"
    return {**line, **named, "timestamp": moment, **({"toolUseId": identity} if identity else {})}


def chorus_result(
    text: str, second: int, identity: str | None = None, **more: object
) -> dict[str, object]:
    line = {"uuid": f"r{second}", "type": "tool_result", "content": text}
    moment = f"2026-01-05T10:00:{second:02d}.000Z"
    return {**line, "timestamp": moment, **({"toolUseId": identity} if identity else {}), **more}


READ, GREP = chorus_call("Read", 1), chorus_call("Grep", 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([READ, chorus_result("one", 2), chorus_result("more", 3)], [("Read", "ok", "one")]),
        (
            [READ, GREP, chorus_result("g", 3), chorus_result("r", 4)],
            [("Read", "ok", "r"), ("Grep", "ok", "g")],
        ),
        (
            [READ, GREP, chorus_result("r", 3, toolName="Read")],
            [("Read", "ok", "r"), ("Grep", "pending", None)],
        ),
        (
            [chorus_call("Read", 1, "t1"), chorus_result("bad", 2, isToolError=True)],
            [("Read", "error", "bad")],
        ),
        (
            [
                READ,
                chorus_call("Grep", 2, "t2"),
                chorus_result("r", 3),
                chorus_result("g", 4, "t2"),
            ],
            [("Read", "ok", "r"), ("Grep", "ok", "g")],
        ),
        ([chorus_result("too soon", 0), READ], [("Read", "pending", None)]),
    ],
    ids=["one", "the last open", "by name", "of a call with an id", "by id", "before its call"],
)
def test_a_result_without_an_id_answers_the_last_open_call(
    lines: list[dict[str, object]],
    expected: list[tuple[object, ...]],
    fresh: Callable[[], Path],
    tmp_path: Path,
) -> None:
    whole, grown, home = fresh(), fresh(), tmp_path / "home"
    path = home / "sessions" / "w1" / "g1" / "k1-messages.jsonl"
    path.parent.mkdir(parents=True)
    (path.parent / "conversations.json").write_text('{"conversations":[]}')
    for line in lines:
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        sync(grown, [home])
    sync(whole, [home])
    assert rows(whole, CALLS) == expected
    assert_same(dump(grown), dump(whole))
    assert verify(whole).findings == []
    rebuild(grown)
    assert_same(dump(grown), dump(whole))


@pytest.mark.parametrize("is_list", [True, False], ids=["a list", "one block"])
def test_a_block_keeps_all_digits_of_its_input(
    is_list: bool, fresh: Callable[[], Path], tmp_path: Path
) -> None:
    path = tmp_path / "home" / "sessions" / "w1" / "g1" / "k1-messages.jsonl"
    path.parent.mkdir(parents=True)
    (path.parent / "conversations.json").write_text('{"conversations":[]}')
    block = {"type": "tool_use", "id": "t1", "name": "Wait", "input": {"until": 2**64 + 1}}
    line = {"uuid": "m1", "type": "assistant", "timestamp": "2026-01-05T10:00:01.000Z"}
    path.write_text(json.dumps({**line, "content": [block] if is_list else block}) + "\n")
    database = fresh()
    sync(database, [tmp_path / "home"])
    called = (
        "select c.tool_use_id, m.tool_text from tool_calls c join messages m on m.id = c.call_id"
    )
    assert rows(database, called) == [("t1", '{"until":"18446744073709551617"}')]


# -- tasks and events ---------------------------------------------------------------------------


def test_a_task_snapshot_says_how_the_status_changed(
    fresh: Callable[[], Path], tmp_path: Path
) -> None:
    database, home = fresh(), home_of(NOTES, tmp_path)
    sync(database, [home])
    changes = (
        "select t.subject, c.field, c.old_value, c.new_value, c.timestamp, c.seen_at"
        " from task_changes c join tasks t on t.id = c.task_id order by c.id"
    )
    assert rows(database, changes) == [
        ("Sow", "status", None, "pending", "2026-02-17T07:00:00.000Z", None),
        ("Sow", "status", "pending", "completed", "2026-02-17T08:00:00.000Z", None),
    ]


def test_a_task_that_left_its_snapshot_is_kept(fresh: Callable[[], Path], tmp_path: Path) -> None:
    database, home = fresh(), home_of(NOTES, tmp_path)
    sync(database, [home])
    path = home / "projects" / "-srv-garden" / "task-snapshots" / "garden-team.json"
    value = json.loads(path.read_text())
    del value["tasks"]["2"]
    path.write_text(json.dumps(value))
    sync(database, [home])
    tasks = "select subject, gone_at is not null from tasks where list_key = 'garden-team'"
    assert sorted(map(str, rows(database, tasks))) == ["('Sow', 0)", "('Water', 1)"]


def test_sqlite_reads_every_payload(fresh: Callable[[], Path], tmp_path: Path) -> None:
    database, home = fresh(), home_of(EVENTS, tmp_path)
    long = {"hook_event_name": "PostToolUse", "session_id": "s", "tool_response": "x" * 600_000}
    with (home / "hook-events.jsonl").open("a") as file:
        file.write(json.dumps(long) + "\n")
    sync(database, [home])
    payloads = "select min(json_valid(payload)), max(length(payload)) < 300000 from hook_events"
    assert rows(database, payloads) == [(1, 1)]


# -- any value in any field ----------------------------------------------------------------------

ODD: tuple[object, ...] = (
    None,
    True,
    -1,
    1e300,
    2**70,
    "",
    "\ud83d",
    "x\0y",
    [],
    [1],
    {},
    {"a": []},
)


def files() -> list[tuple[str, str]]:
    return [
        (case, str(path.relative_to(CASES / case / "home")))
        for case in sorted(str(p.relative_to(CASES)) for p in CASES.glob("*/*") if p.is_dir())
        for path in sorted((CASES / case / "home").rglob("*.json*"))
        if not case.startswith("claude")
    ]


def spoilt(value: object) -> Iterator[object]:
    """Yield the value with each part of it in turn replaced by each odd value."""
    yield from ODD
    if isinstance(value, dict):
        for key, item in value.items():
            for odd in spoilt(item):
                yield {**value, key: odd}
    elif isinstance(value, list):
        for place, item in enumerate(value):
            for odd in spoilt(item):
                yield [*value[:place], odd, *value[place + 1 :]]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "path"), files(), ids=[path for _, path in files()])
def test_no_value_in_any_field_makes_a_source_fail(case: str, path: str) -> None:
    source = SOURCES[case.split("/")[0]]
    claim = source.claim(tuple(path.split("/")))
    if claim is None:
        return
    data = (CASES / case / "home" / path).read_bytes()
    parts = data.split(b"\n") if source.shape(claim) == LOG else [data]
    for part in parts:
        try:
            value = json.loads(part)
        except ValueError:
            continue
        for odd in spoilt(value):
            text = json.dumps(odd).encode()
            for record in source.parse(claim, [Line(0, text)]):
                assert_storable(record)
