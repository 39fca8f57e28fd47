"""Codex: each response counts once, a prompt is what a person typed, and a copy is told from its
original, whichever was written or read first."""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import home_of
from tests.support.shell import Shell
from tests.support.writing import jsonl, write_bytes

from assoc_ingest.ask.conversation import Originals
from assoc_ingest.files import stores as packed_files
from assoc_ingest.files.archive import Compressor
from assoc_ingest.files.tail import Parser
from assoc_ingest.records import Message, Usage
from assoc_ingest.source import MAX_CONTEXT, Line
from assoc_ingest.sources.codex import Codex
from assoc_ingest.sources.codex import rollout as texts
from assoc_ingest.sources.codex.rollout import Thread, session_of, spawn_of
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_same, check, dump, rows

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Fresh = Callable[[], Path]
THREAD = "019e5615-9632-7740-b2cf-3061e4ff06e2"
PARENT = "019e5615-1ef8-7270-b988-4f52f86449a4"
OLDER, NEWER = "019e5615-6261-7712-936a-db8c0fca200d", "019e5615-b2e2-72c1-93cc-b14b70334bc5"
PLACE = f"sessions/2026/05/23/rollout-2026-05-23T18-25-15-{THREAD}.jsonl"


def line(kind: str, **payload: object) -> dict[str, Any]:
    """Return a line; `kind` is that of a line, or of an item or an event after a slash."""
    outer, _, inner = kind.partition("/")
    outer = {"item": "response_item", "event": "event_msg"}.get(outer, outer)
    about = {"type": inner, **payload} if inner else payload
    return {"timestamp": "2026-05-23T18:25:15.000Z", "type": outer, "payload": about}


META = line("session_meta", id=THREAD, cwd="/srv/garden", timestamp="2026-05-23T18:25:15.000Z")
TURN = line("event/task_started", turn_id=NEWER)
ANSWER = line("item/message", role="assistant", content=[{"type": "output_text", "text": "yes"}])


def counts(total: list[int], last: list[int] | None) -> dict[str, Any]:
    """Return an event with these counts: input, read from the cache, output, reasoning."""
    names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
    info = {"total_token_usage": dict(zip(names, total, strict=True))}
    if last is not None:
        info["last_token_usage"] = dict(zip(names, last, strict=True))
    return line("event/token_count", info=info)


def parsed(*lines: dict[str, Any], path: str = PLACE) -> list[Any]:
    """Return the records of a rollout, read line by line."""
    claim = Codex().claim(tuple(path.split("/")))
    assert claim is not None
    data = [json.dumps(value).encode() for value in lines]
    parser = Parser(Codex(), Codex().classify(claim, data))
    found = [parser.parse([Line(place * 1000, part)]) for place, part in enumerate(data)]
    return [record for records in found for record in records]


def test_the_end_of_a_command_in_the_background_is_no_second_call() -> None:
    """It was answered that it still runs; what it gave in the end is one more answer."""
    command = json.dumps({"cmd": "make test", "yield_time_ms": 1000})
    still = "Wall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\n"
    found = parsed(
        META, TURN,
        line("item/function_call", name="exec_command", arguments=command, call_id="c1"),
        line("item/function_call_output", call_id="c1", output=still),
        line("event/exec_command_end", call_id="c1", command=["bash", "-lc", "make test"],
             exit_code=2, aggregated_output="2 failed"),
    )  # fmt: skip
    said = [(one.kind, one.tool_text) for one in found if isinstance(one, Message)]
    assert said == [("tool_use", command), ("tool_result", still), ("tool_result", "2 failed")]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_command_in_the_background_ends_as_its_last_answer_says(
    at_once: bool, home: Path, fresh: Fresh
) -> None:
    """Until then nothing says how, and the time that it has run is not its duration."""
    database = fresh()
    still = "Wall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\n"
    begun = (
        META, TURN, line("item/function_call", name="exec_command", arguments="{}", call_id="c1"),
        line("item/function_call_output", call_id="c1", output=still),
    )  # fmt: skip
    end = line("event/exec_command_end", call_id="c1", command=["ls"], exit_code=2)
    ended = "select status, exit_code, duration_ms from tool_calls"
    if not at_once:
        write_bytes(home, PLACE, jsonl(*begun))
        sync(database, [home])
        assert rows(database, ended) == [("pending", None, None)]
    write_bytes(home, PLACE, jsonl(*begun, end))
    sync(database, [home])
    assert rows(database, ended) == [("error", 2, None)]


def spent(*lines: dict[str, Any]) -> list[tuple[int, int, int, int]]:
    """Return fresh input, cached input, output, and whether it is partial, of each response."""
    found = {use.response_key: use for use in parsed(*lines) if isinstance(use, Usage)}
    return [
        (use.input_tokens, use.cache_read_tokens, use.output_tokens, use.partial)
        for use in found.values()
    ]


# -- tokens --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([counts([50, 30, 5, 2], [50, 30, 5, 2])], [(20, 30, 5, 0)]),
        ([counts([50, 30, 5, 2], [50, 30, 5, 2])] * 3, [(20, 30, 5, 0)]),
        (
            [counts([50, 30, 5, 2], [50, 30, 5, 2]), counts([50, 30, 5, 2], [9, 0, 9, 0])],
            [(20, 30, 5, 0)],
        ),
        (
            [counts([50, 30, 5, 2], None), counts([80, 40, 9, 2], None)],
            [(20, 30, 5, 0), (20, 10, 4, 0)],
        ),
        ([counts([50, 0, 5, 0], None), counts([7, 0, 1, 0], None)], [(50, 0, 5, 0), (7, 0, 1, 0)]),
        (
            [counts([900, 0, 90, 0], [0, 0, 0, 0]), counts([950, 0, 91, 0], None)],
            [(50, 0, 1, 0)],
        ),
        ([line("event/token_count", info=None), line("event/token_count")], []),
    ],
    ids=["one", "repeated", "repeated with another last", "totals", "reset", "baseline", "none"],
)
def test_a_response_is_a_change_of_the_totals(
    events: list[dict[str, Any]], expected: list[tuple[int, ...]]
) -> None:
    assert spent(META, TURN, *events) == expected


def record(key: str | None, given: int, output: int, thread: str = THREAD) -> dict[str, Any]:
    usage = {"input_tokens": given, "output_tokens": output}
    return line("token_usage_record", response_id=key, thread_id=thread, usage=usage)


@pytest.mark.parametrize("is_record_first", [True, False])
def test_a_response_with_a_record_and_an_event_counts_once(is_record_first: bool) -> None:
    pairs = []
    for place in (1, 2, 3):
        twins = [
            record(f"resp_{place}", place, place),
            counts([100 * place, 0, 100 * place, 0], [place, 0, place, 0]),
        ]
        pairs += [ANSWER, *(twins if is_record_first else reversed(twins))]
    assert spent(META, TURN, *pairs) == [(1, 0, 1, 0), (2, 0, 2, 0), (3, 0, 3, 0)]


def test_a_record_that_is_repeated_or_of_another_thread_adds_nothing() -> None:
    lines = [record("resp_1", 5, 1), record("resp_1", 5, 1), record("resp_9", 9, 9, PARENT)]
    assert spent(META, TURN, *lines) == [(5, 0, 1, 0)]


def fork(turn: str, **facts: object) -> list[dict[str, Any]]:
    """Return a rollout that begins with a turn of its parent."""
    parent = line("session_meta", id=PARENT)
    begun = line("event/task_started", turn_id=turn, **facts)
    return [META, parent, begun, ANSWER, counts([50, 0, 5, 0], [50, 0, 5, 0])]


FORKED = line(
    "session_meta", id=THREAD, forked_from_id=PARENT, timestamp="2026-05-23T18:25:15.000Z"
)
OWN = [TURN, ANSWER, counts([90, 0, 9, 0], [40, 0, 4, 0])]


def test_what_a_fork_inherited_is_not_counted() -> None:
    assert spent(*fork(OLDER), *OWN) == [(40, 0, 4, 0)]
    started = 1779560700  # before the thread began
    assert spent(*fork("1", started_at=started), *OWN) == [(40, 0, 4, 0)]


def test_where_nobody_can_tell_a_response_is_partial() -> None:
    for lines in (fork("1"), [FORKED, *fork("1")[2:]], [FORKED, *fork(OLDER)[2:]]):
        (use,) = (use for use in parsed(*lines) if isinstance(use, Usage))
        assert (use.response_key, use.partial) == (f"{THREAD}:50+0+5+0", 1)


def test_a_turn_that_is_younger_than_a_fork_is_its_own() -> None:
    assert spent(FORKED, *fork("1")[2:], *OWN) == [(50, 0, 5, 1), (40, 0, 4, 0)]
    assert spent(FORKED, *OWN) == [(40, 0, 4, 0)]


# -- forks that do not say what they copied ------------------------------------------------------

A, B, C, D, E, F, G = (f"019e5615-00{n}-7270-b988-4f52f86449a4" for n in range(50, 57))
MISSING, LOST = (f"019e5615-00{n}-7270-b988-4f52f86449a4" for n in (48, 49))
FAMILIES = {
    A: (None, [1, 2, 3]),
    B: (A, [1, 2, 30]),
    C: (B, [1, 2, 30, 4]),
    D: (MISSING, [7, 8, 9]),
    E: (MISSING, [7, 8, 80]),
    F: (LOST, [5, 6]),
    G: (A, [40, 2]),  # 0.144: a fork that begins at zero
}
"""Threads: what each is a fork of, and the tokens of its responses, those of its parent first."""


def rollout(thread: str, parent: str | None, spent: list[int]) -> bytes:
    meta = line("session_meta", id=thread, cwd="/srv/garden", forked_from_id=parent)
    lines = [meta, line("event/task_started", turn_id="1")]
    for place in range(len(spent)):
        total = sum(spent[: place + 1])
        lines += [ANSWER, counts([total, 0, total, 0], [spent[place], 0, spent[place], 0])]
    return jsonl(*lines)


def write_families(home: Path) -> list[Path]:
    place = "sessions/2026/05/23/rollout-2026-05-23T18-25-15-{}.jsonl"
    return [
        write_bytes(home, place.format(thread), rollout(thread, parent, spent))
        for thread, (parent, spent) in FAMILIES.items()
    ]


RESPONSES = (
    "select s.session_key, r.output_tokens, r.partial from responses r"
    " join sessions s on s.id = r.session_id order by 1, r.timestamp, r.byte_offset"
)


def test_what_forks_copied_without_saying_so_counts_once(fresh: Fresh, tmp_path: Path) -> None:
    write_families(tmp_path)
    database = fresh()
    sync(database, [tmp_path])
    own = {A: [1, 2, 3], B: [30], C: [4], D: [7, 8, 9], E: [80], F: [5, 6], G: [40, 2]}
    assert rows(database, RESPONSES) == [
        (thread, count, int(thread == F)) for thread, counted in own.items() for count in counted
    ]
    check(database, tmp_path)


@pytest.mark.slow
def test_what_forks_copied_does_not_depend_on_what_is_read_first(
    fresh: Fresh, tmp_path: Path
) -> None:
    """Each file comes in two pieces, or goes, while the others are there or not yet."""
    logs = write_families(tmp_path)
    contents = {path: path.read_bytes() for path in logs}
    whole = fresh()
    sync(whole, [tmp_path])
    for turn in range(len(logs)):
        order = [*logs[turn:], *logs[:turn]][:: 1 if turn % 2 else -1]
        database = fresh()
        for path in order:
            path.unlink()
        for path in order:
            lines = contents[path].splitlines(keepends=True)
            for size in (turn % 4 + 1, len(lines)):
                path.write_bytes(b"".join(lines[:size]))
                sync(database, [tmp_path])
        assert_same(dump(database), dump(whole))


@pytest.mark.slow
@pytest.mark.parametrize("changed", FAMILIES)
@pytest.mark.parametrize("is_forgotten", [True, False], ids=["forgotten", "rewritten"])
def test_when_a_thread_goes_its_forks_have_what_they_copied(
    shell: Shell, fresh: Fresh, tmp_path: Path, changed: str, is_forgotten: bool
) -> None:
    home = tmp_path / "home"
    (path,) = (path for path in write_families(home) if changed in path.name)
    assert shell("sync", str(home)) == 0
    if is_forgotten:
        assert shell("forget", changed) == 0
        path.unlink()
    else:
        path.write_bytes(rollout(changed, None, [11, 12]))
        assert shell("sync") == 0
    rest = fresh()
    sync(rest, [home])
    assert rows(shell.database, RESPONSES) == rows(rest, RESPONSES)
    sums = "select session_key, input_tokens, output_tokens from sessions order by 1"
    assert rows(shell.database, sums) == rows(rest, sums)
    assert shell("verify") == 0


def test_forks_of_each_other_end(fresh: Fresh, tmp_path: Path) -> None:
    for thread, parent in ((A, B), (B, A), (C, C)):
        write_bytes(tmp_path, PLACE.replace(THREAD, thread), rollout(thread, parent, [1, 2]))
    database = fresh()
    sync(database, [tmp_path])
    found = [(thread, count) for thread, count, _ in rows(database, RESPONSES)]
    assert found == [(A, 1), (A, 2), (C, 1), (C, 2)]


def test_totals_that_go_on_from_another_file_may_be_repeated_once() -> None:
    base = {"thread_id": PARENT, "end_ordinal_exclusive": 4}
    meta = line("session_meta", id=THREAD, history_base=base)
    repeated, new = counts([50, 0, 5, 0], [50, 0, 5, 0]), counts([90, 0, 9, 0], [40, 0, 4, 0])
    assert spent(meta, TURN, repeated, ANSWER, new) == [(40, 0, 4, 0)]
    assert spent(meta, TURN, ANSWER, new) == [(40, 0, 4, 0)]


def test_an_id_of_a_parent_alone_copies_nothing() -> None:
    meta = line("session_meta", id=THREAD, forked_from_id=PARENT)
    assert spent(meta, TURN, ANSWER, counts([5, 0, 1, 0], [5, 0, 1, 0])) == [(5, 0, 1, 0)]


def test_a_thread_may_state_where_its_own_lines_begin() -> None:
    meta = line("session_meta", id=THREAD, subagent_history_start_ordinal=3)
    lines = [meta, *fork(NEWER)[1:3], counts([50, 0, 5, 0], None), counts([60, 0, 6, 0], None)]
    placed = [{**value, "ordinal": place} for place, value in enumerate(lines)]
    assert spent(*placed) == [(50, 0, 5, 0), (10, 0, 1, 0)]
    assert spent(*({**value, "ordinal": 2} for value in placed)) == []


def test_many_responses_of_a_turn_need_no_more_context_than_there_is_room_for() -> None:
    lines = [META, TURN]
    for place in range(1, 2001):
        lines.append(line("item/function_call", name="shell", call_id=f"call_{place:030}"))
        lines.append(
            line("item/message", role="user", content=[{"type": "input_text", "text": str(place)}])
        )
        lines.append(counts([place, 0, place, 0], None))
    claim = Codex().claim(tuple(PLACE.split("/")))
    assert claim is not None
    parser = Parser(Codex(), claim)
    found = parser.parse([Line(n * 200, json.dumps(v).encode()) for n, v in enumerate(lines)])
    assert len(parser.context or "") < MAX_CONTEXT // 2
    assert sum(isinstance(record, Usage) for record in found) == 2000
    uuids = [message.uuid for message in found if isinstance(message, Message) and message.uuid]
    assert len(uuids) == len(set(uuids)) > 2000


# -- what a person typed -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sow", ["prompt sow"]),
        ("<b>sow</b>", ["prompt <b>sow</b>"]),
        ("# AGENTS.md instructions for /srv\n<INSTRUCTIONS>a</INSTRUCTIONS>", ["meta"]),
        ("<environment_context>a</environment_context>\n\nsow", ["meta", "prompt sow"]),
        ("<environment_context>a", ["meta"]),
        ("<skill>a</skill><skill>b</skill> sow", ["meta", "meta", "prompt sow"]),
        ("# Context from my IDE setup:\nx\n## My request for Codex:\nsow", ["meta", "prompt sow"]),
        ("# Context from my IDE setup:\nx", ["prompt # Context from my IDE setup:\nx"]),
        (
            "<user_shell_command><command>ls</command><result>a</result></user_shell_command>",
            ["bash_input ls", "bash_output a"],
        ),
        ("<turn_aborted>a</turn_aborted>", ["interrupt <turn_aborted>a</turn_aborted>"]),
        ("  \n ", []),
    ],
)
def test_a_prompt_is_what_remains_without_what_was_added(text: str, expected: list[str]) -> None:
    said = [f"{kind} {part}" if kind != "meta" else kind for kind, part in texts.said_in(text)]
    assert said == expected


def test_what_the_message_says_of_a_block_counts_more_than_its_beginning() -> None:
    assert list(texts.said_in("sow", "agents_md.root")) == [("meta", "sow")]
    assert list(texts.said_in("sow", "user.text")) == [("prompt", "sow")]
    passed = {"content_item_kinds": ["user.text", 5]}
    message = {"internal_chat_message_metadata_passthrough": passed}
    assert texts.kinds_of(message, 3) == ["user.text", None, None]


# -- calls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("plain", ("plain", "ok", None, None)),
        (
            '{"output":"a","metadata":{"exit_code":2,"duration_seconds":0.5}}',
            ("a", "error", 2, 500),
        ),
        ('{"output":"a"', ('{"output":"a"', "ok", None, None)),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\na", ("a", "ok", 0, 100)),
        ("Wall time: 2 seconds\nProcess exited with code -1\nOutput:\na", ("a", "error", -1, 2000)),
        ("a\nOutput:\nExit code: 1", ("a\nOutput:\nExit code: 1", "ok", None, None)),
        ("Script failed\nWall time 0.2 seconds\nOutput:\na", ("a", "error", None, 200)),
        (
            "exec command rejected by user",
            ("exec command rejected by user", "declined", None, None),
        ),
        ({"content": "a", "success": False}, ("a", "error", None, None)),
        ([{"type": "input_text", "text": "a"}, {"text": "b"}], ("a\nb", "ok", None, None)),
        (None, ("", "ok", None, None)),
    ],
)
def test_an_output_says_how_its_call_ended(output: object, expected: tuple[object, ...]) -> None:
    assert tuple(texts.outcome(output)) == expected


def test_what_still_runs_keeps_the_name_of_its_process() -> None:
    text = "Wall time: 9 seconds\nProcess running with session ID 7\nOutput:\na"
    assert texts.outcome(text).text == text


def test_a_patch_names_its_files_wherever_it_is() -> None:
    patch = "*** Begin Patch\n*** Add File: a\n*** Update File: /b\n*** Move to: c\n*** End Patch"
    for name, arguments, text in (
        ("apply_patch", {}, patch),
        ("shell", {"command": ["apply_patch", patch]}, ""),
        ("exec_command", {"cmd": f"apply_patch <<'E'\n{patch}\nE"}, ""),
    ):
        found = texts.deed_of(name, arguments, text, "/srv/")
        assert (found.action, found.paths) == ("edit", ("/srv/a", "/b", "/srv/c")), name


def test_a_patch_is_shown_by_its_lines(shell: Shell, place: Path) -> None:
    assert shell("sync", str(home_of("codex/a-conversation-with-tools", place))) == 0
    assert shell("show", "019e5615-0001-7270-b988-4f52f86449a4") == 0
    shown = [row.strip() for row in shell.out.split("\n")]
    start = shown.index("▸ apply_patch  plan.md")
    assert shown[start + 1 : start + 4] == ["+ Sow on 16 May", "- old", "+ new"]


def test_what_is_encrypted_or_secret_is_in_no_row(fresh: Fresh, place: Path) -> None:
    database = fresh()
    sync(database, [home_of("codex/a-conversation-with-tools", place)])
    with closing(open_reader(database)) as connection:
        tables = connection.execute(
            "select name from pragma_table_list where schema = 'main' and type = 'table'"
            " and name <> 'archive' and name not like '%fts%'"
        )
        stored = str(
            [list(map(tuple, connection.execute(f"select * from {t}"))) for (t,) in tables]
        )
    assert "When does the frost end?" in stored
    for secret in ("gAAAA", "token-7", "secret-1", "You are Codex", "iVBORw0KGgo"):
        assert secret not in stored


def test_an_image_is_served_from_the_archive(fresh: Fresh, tmp_path: Path) -> None:
    data = "iVBORw0KGgoAAAANSUhEUg=="
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}
    message = line("item/message", role="user", content=[picture])
    write_bytes(tmp_path, PLACE, jsonl(META, TURN, message))
    database = fresh()
    sync(database, [tmp_path])
    ((file, offset, length, text),) = rows(
        database, "select file_id, byte_offset, byte_length, text from messages where kind='image'"
    )
    assert data not in text
    with closing(open_reader(database)) as connection:
        (image,) = Originals(connection).images(file, offset, length, text)
    assert (image.media_type, image.data) == ("image/png", data)


# -- threads -------------------------------------------------------------------------------------


def spawned(**facts: object) -> dict[str, Any]:
    return {"id": THREAD, "source": {"subagent": {"thread_spawn": facts}}}


@pytest.mark.parametrize(
    ("payload", "made_by", "session"),
    [
        ({"id": THREAD, "source": "cli"}, None, None),
        ({"id": THREAD, "thread_source": "user", "session_id": PARENT}, None, PARENT),
        (spawned(parent_thread_id=PARENT), "thread_spawn", PARENT),
        ({**spawned(parent_thread_id="x"), "session_id": PARENT}, "thread_spawn", PARENT),
        ({"id": THREAD, "thread_source": "subagent"}, "thread_spawn", None),
        ({"id": THREAD, "source": {"subagent": "review"}}, "review", None),
        ({"id": THREAD, "source": {"subagent": {"other": "guardian"}}}, "guardian", None),
        ({"id": THREAD, "source": {"subagent": []}, "thread_source": 5}, None, None),
    ],
)
def test_a_thread_says_what_made_it(
    payload: dict[str, Any], made_by: str | None, session: str | None
) -> None:
    assert spawn_of(payload)[0] == made_by
    assert session_of(payload) == session


def test_only_the_first_meta_is_that_of_the_thread() -> None:
    thread = Thread({})
    assert [thread.meta({"id": key}) for key in (THREAD, PARENT, THREAD)] == [True, False, False]
    assert (thread.id, thread.is_inherited) == (THREAD, True)


OLD = [f"019e5615-00{n}-7270-b988-4f52f86449a4" for n in ("06", "07", "0a")]
"""A thread whose turns have no ids, its fork, and the fork of that."""

FORK = "codex/a-fork-repeats-its-parent"


@pytest.fixture
def forks(place: Path) -> Path:
    return home_of(FORK, place)


@pytest.mark.slow
def test_a_fork_is_never_the_original_whoever_goes_on_first(fresh: Fresh, forks: Path) -> None:
    """Its parent goes on later here, so its first own line is the younger one."""
    logs = sorted(forks.rglob("*.jsonl"))
    contents = {path: path.read_bytes() for path in logs}
    dumps = []
    for order in (logs, logs[::-1]):
        database = fresh()
        for path in logs:
            path.unlink()
        for path in order:
            path.write_bytes(contents[path])
            sync(database, [forks])
        dumps.append(dump(database))
        originals = rows(
            database,
            "select distinct f.session_key, o.session_key from messages m"
            " join files f on f.id = m.file_id join messages c on c.id = m.copy_of"
            " join files o on o.id = c.file_id order by 1, 2",
        )
        assert originals == [
            (OLD[1], OLD[0]), (OLD[2], OLD[0]), (OLD[2], OLD[1]),
            ("019e5617-9632-7740-b2cf-3061e4ff06e2", PARENT),
        ]  # fmt: skip
    assert_same(*dumps)


def test_subagents_are_below_their_session_and_reviews_are_hidden(
    shell: Shell, place: Path
) -> None:
    home = home_of("codex/subagents-and-what-the-program-starts", place)
    assert shell("sync", str(home)) == 0
    assert shell("list", "sessions") == 0
    assert "Sow in both beds" in shell.out
    assert "Review the changes" not in shell.out
    assert shell("list", "subagents") == 0
    assert all(name in shell.out for name in ("worker", "guardian"))
    assert shell("show", "019e5615-0030") == 0
    assert "Sow the first bed" in shell.out
    linked = rows(
        shell.database,
        "select a.agent_key, t.tool_use_id, a.message_count from subagents a"
        " join tool_calls t on t.id = a.spawned_by order by 1",
    )
    assert linked == [
        ("019e5615-0031-7270-b988-4f52f86449a4", "call_1", 3),
        ("019e5615-0032-7270-b988-4f52f86449a4", "call_2", 3),
    ]
    assert shell("verify") == 0


def test_a_subagent_that_is_forgotten_with_its_session_never_comes_back(
    shell: Shell, place: Path
) -> None:
    home = home_of("codex/subagents-and-what-the-program-starts", place)
    assert shell("sync", str(home)) == 0
    assert shell("forget", "019e5615-0030-7270-b988-4f52f86449a4") == 0
    assert shell("sync", "--full") == 0
    assert rows(shell.database, "select text from messages where text like '%first bed%'") == []
    assert len(rows(shell.database, "select 1 from files")) == 1


@pytest.mark.parametrize(
    ("path", "kind", "key"),
    [
        (PLACE, "transcript", THREAD),
        (f"archived_sessions/rollout-2026-05-23T18-25-15-{THREAD}.jsonl", "transcript", THREAD),
        (f"sessions/2026/05/23/rollout-2026-05-23T18-25-15-{THREAD}_{PARENT}.jsonl", "transcript",
         THREAD),
        (f"sessions/rollout-2025-05-01-{THREAD.upper()}.json", "transcript", THREAD),
        ("history.jsonl", "history", None),
        ("session_index.jsonl", "thread_names", None),
        ("sessions/2026/05/23/notes.jsonl", None, None),
        (f"other/rollout-2026-05-23T18-25-15-{THREAD}.jsonl", None, None),
        ("state_5.sqlite", "database", None),
        ("queue_1.sqlite-wal", "database_log", None),
        (f"goals_1.sqlite#{THREAD}", "goals", THREAD),
        ("logs_2.sqlite", None, None),
        ("thread_history_1.sqlite", None, None),
        (f"thread_history_1.sqlite#{THREAD}", None, None),
        ("state_5.sqlite-shm", None, None),
    ],
)  # fmt: skip
def test_a_path_names_its_thread(path: str, kind: str | None, key: str | None) -> None:
    claim = Codex().claim(tuple(path.split("/")))
    assert (claim and claim.kind, claim and claim.session_key) == (kind, key)


def test_its_home_is_the_one_that_the_environment_names() -> None:
    assert Codex().default_roots({}, "/home/ada") == ["/home/ada/.codex"]
    assert Codex().default_roots({"CODEX_HOME": "/srv/codex"}, "/home/ada") == ["/srv/codex"]
    assert Codex().default_roots({}, None) == []
    assert Codex().resume_command(THREAD) == ["codex", "resume", THREAD]
    assert Codex().resume_command("--help") is None


def test_a_rollout_that_is_moved_to_the_archive_keeps_its_rows(
    fresh: Fresh, tmp_path: Path
) -> None:
    prompt = line("item/message", role="user", content=[{"type": "input_text", "text": "sow"}])
    old = write_bytes(tmp_path, PLACE, jsonl(META, TURN, prompt))
    database = fresh()
    sync(database, [tmp_path])
    before = rows(database, "select id, text, copy_of from messages")
    new = tmp_path / "archived_sessions" / old.name
    new.parent.mkdir()
    old.rename(new)
    assert sync(database, [tmp_path]).rows == 0
    assert rows(database, "select id, text, copy_of from messages") == before
    check(database, tmp_path)


# -- packed rollouts -----------------------------------------------------------------------------


def prompt(text: str) -> dict[str, Any]:
    return line("item/message", role="user", content=[{"type": "input_text", "text": text}])


def packed(data: bytes) -> bytes:
    return b"".join(frame.data for frame in Compressor().frames(0, data))


IDS = "select id, text from messages order by id"


def test_a_rollout_that_is_packed_and_unpacked_again_keeps_its_rows(
    shell: Shell, tmp_path: Path
) -> None:
    content = jsonl(META, TURN, prompt("sow"))
    plain = write_bytes(tmp_path / "home", PLACE, content)
    assert shell("sync", str(tmp_path / "home")) == 0
    before = rows(shell.database, IDS)
    assert [text for _, text in before] == ["sow"]
    zipped = write_bytes(tmp_path / "home", f"{PLACE}.zst", packed(content))
    plain.unlink()
    assert shell("sync") == 0
    assert rows(shell.database, IDS) == before
    assert rows(shell.database, "select path, gone_at from files") == [(f"{PLACE}.zst", None)]
    assert shell("verify") == 0
    check(shell.database, tmp_path / "home")
    zipped.unlink()
    plain.write_bytes(content + jsonl(prompt("water")))
    assert shell("sync") == 0
    assert rows(shell.database, IDS) == [*before, (before[-1][0] + 1, "water")]
    check(shell.database, tmp_path / "home")


def test_where_a_rollout_is_there_twice_the_one_that_is_not_packed_counts(
    shell: Shell, tmp_path: Path
) -> None:
    content = jsonl(META, TURN, prompt("sow"), counts([5, 0, 1, 0], None))
    for path, data in ((PLACE, content), (f"{PLACE}.zst", packed(content))):
        write_bytes(tmp_path / "home", path, data)
    assert shell("sync", str(tmp_path / "home")) == 0
    copied = "select f.path from messages m join files f on f.id = m.file_id where m.copy_of is"
    assert rows(shell.database, f"{copied} null") == [(PLACE,)]
    assert rows(shell.database, f"{copied} not null") == [(f"{PLACE}.zst",)]
    assert rows(shell.database, "select message_count, output_tokens from sessions") == [(1, 1)]


@pytest.mark.slow
def test_a_packed_rollout_may_lack_its_end(fresh: Fresh, tmp_path: Path) -> None:
    content = jsonl(META, TURN, *(prompt(f"bed {place}") for place in range(9000)))
    whole, database = packed(content), fresh()
    counts = []
    for size in (1, len(whole) // 2, len(whole)):
        write_bytes(tmp_path, f"{PLACE}.zst", whole[:size])
        sync(database, [tmp_path], SyncOptions(full=True))
        counts.append(len(rows(database, "select 1 from messages")))
        check(database, tmp_path)
    assert counts[0] == 0 < counts[1] < counts[2] == 9000


def test_a_packed_rollout_that_is_damaged_is_reported_and_keeps_its_rows(
    shell: Shell, tmp_path: Path
) -> None:
    whole = packed(jsonl(META, TURN, prompt("sow")))
    path = write_bytes(tmp_path / "home", f"{PLACE}.zst", whole)
    assert shell("sync", str(tmp_path / "home")) == 0
    path.write_bytes(whole[:30] + bytes(20) + whole[50:])
    shell("sync")
    assert "damaged" in shell.out + shell.err
    assert [text for _, text in rows(shell.database, IDS)] == ["sow"]


def bomb(size: int) -> bytes:
    """Return a packed file that unpacks to so many bytes, each as the one before it."""
    compressor, chunk = zstd.ZstdCompressor(), bytes(1024 * 1024)
    parts = [compressor.compress(chunk) for _ in range(size // len(chunk))]
    return b"".join((*parts, compressor.flush()))


BROKEN = {
    "damaged": lambda: packed(jsonl(META, TURN, prompt("sow")) * 50)[:-40] + bytes(40),
    "damaged at its end": lambda: bomb(48 * 1024 * 1024) + b"not packed at all",
    "too large": lambda: bomb(256 * 1024 * 1024),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_packed_rollout_that_cannot_be_read_is_looked_at_once_and_costs_no_disk(
    name: str, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    path = write_bytes(home, f"{PLACE}.zst", BROKEN[name]())
    opened: list[str] = []
    regular = packed_files.open_regular
    monkeypatch.setattr(
        packed_files, "open_regular", lambda place: (opened.append(place), regular(place))[1]
    )
    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "TemporaryFile", None)  # nothing of it is on a disk
        assert shell("sync", str(home)) == 0
        assert "it is packed, and " in shell.out + shell.err
        assert opened
        opened.clear()
        for _ in range(3):
            assert shell("sync") == 0
        assert opened == []
        reasons = rows(shell.database, "select reason from issues")
        assert len(reasons) == 1
        assert reasons[0][0].startswith("it is packed, and ")
        assert shell("verify") == 0, shell.out
        assert shell("rebuild") == 0
        assert rows(shell.database, "select reason from issues") == reasons
    path.write_bytes(packed(jsonl(META, TURN, prompt("sow"))))
    assert shell("sync") == 0
    assert [text for _, text in rows(shell.database, IDS)] == ["sow"]
    check(shell.database, home)


@pytest.mark.parametrize("is_longer", [False, True])
def test_a_packed_rollout_that_was_damaged_for_a_while_is_as_if_it_never_was(
    is_longer: bool, shell: Shell, tmp_path: Path
) -> None:
    home, content = tmp_path / "home", jsonl(META, TURN, prompt("sow"))
    path = write_bytes(home, f"{PLACE}.zst", packed(content))
    assert shell("sync", str(home)) == 0
    path.write_bytes(packed(content)[:30] + bytes(20) + packed(content)[50:])
    assert shell("sync") == 0
    assert [text for _, text in rows(shell.database, IDS)] == ["sow"]
    assert shell("verify") == 0, shell.out
    assert shell("rebuild") == 0
    assert rows(shell.database, "select count(*) from issues") == [(1,)]
    path.write_bytes(packed(content + jsonl(prompt("water")) * is_longer))
    assert shell("sync") == 0
    check(shell.database, home)


def test_a_log_that_is_packed_to_a_hundredth_is_read(shell: Shell, tmp_path: Path) -> None:
    content = jsonl(META, TURN, *[prompt("sow " * 500)] * 500)
    data = zstd.compress(content)
    assert len(content) > 100 * len(data)
    write_bytes(tmp_path / "home", f"{PLACE}.zst", data)
    assert shell("sync", str(tmp_path / "home")) == 0
    assert rows(shell.database, "select count(*) from messages") == [(500,)]
    check(shell.database, tmp_path / "home")


def test_a_packed_rollout_is_restored_as_what_is_in_it(shell: Shell, tmp_path: Path) -> None:
    content = jsonl(META, TURN, prompt("sow"))
    write_bytes(tmp_path / "home", f"{PLACE}.zst", packed(content))
    assert shell("sync", str(tmp_path / "home")) == 0
    assert shell("restore", "--all", "--to", str(tmp_path / "rescued")) == 0
    assert (tmp_path / "rescued" / PLACE).read_bytes() == content
    assert not (tmp_path / "rescued" / f"{PLACE}.zst").exists()


@pytest.mark.slow
def test_a_subagent_that_is_packed_after_it_was_forgotten_stays_forgotten(
    shell: Shell, tmp_path: Path
) -> None:
    meta = line("session_meta", **spawned(parent_thread_id=PARENT))
    content = jsonl(meta, TURN, prompt("sow"))
    plain = write_bytes(tmp_path / "home", PLACE, content)
    parent = line("session_meta", id=PARENT, cwd="/srv/garden")
    place = PLACE.replace(THREAD, PARENT)
    write_bytes(tmp_path / "home", place, jsonl(parent, TURN, prompt("begin")))
    assert shell("sync", str(tmp_path / "home")) == 0
    assert shell("forget", PARENT) == 0
    write_bytes(tmp_path / "home", f"{PLACE}.zst", packed(content))
    plain.unlink()
    assert shell("sync") == 0
    assert rows(shell.database, IDS) == []


# -- databases -----------------------------------------------------------------------------------

STORES = "codex/databases-and-what-their-events-say"


def bytes_of(home: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def test_databases_are_read_without_a_trace(fresh: Fresh, place: Path) -> None:
    home, database = home_of(STORES, place), fresh()
    lying = bytes_of(home)
    sync(database, [home])
    assert bytes_of(home) == lying
    assert sync(database, [home]).files_read == 0


def test_a_prompt_that_was_queued_is_searched_and_a_thread_has_its_name(
    shell: Shell, place: Path
) -> None:
    home = home_of(STORES, place)
    assert shell("sync", str(home)) == 0
    for words in ("Then water", "bed is ready", "Feed the street", "warm soil", "Spring work"):
        assert shell("search", words) == 0, words
        assert words.split()[-1] in shell.out
    with closing(sqlite3.connect(home / "queue_1.sqlite")) as connection, connection:
        connection.execute("delete from queued_items")
    assert shell("sync") == 0
    assert rows(shell.database, "select gone_at is null from files where kind = 'queue'") == [(0,)]
    assert shell("verify") == 0


def test_states_before_threads_had_names_are_no_issue(fresh: Fresh, tmp_path: Path) -> None:
    write_bytes(tmp_path, PLACE, jsonl(META, TURN, ANSWER))
    with closing(sqlite3.connect(tmp_path / "state_5.sqlite")) as connection, connection:
        connection.execute("create table threads (id text primary key, title, created_at integer)")
        connection.execute("insert into threads values (?, 'name', 1789894800)", (THREAD,))
    database = fresh()
    sync(database, [tmp_path])
    assert rows(database, "select reason from issues") == []
    assert rows(database, "select 1 from session_entries where title is not null") == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "other tables"),
        (b"half a page", "not a SQLite database"),
        (b"SQLite format 3\0" + bytes(5000), "not a SQLite database"),
        ("create table other (id)", "other tables"),
        ("create table queued_items (queued_item_id, thread_id, payload_jsonb)", "other tables"),
        ("create view queued_items as select 1", "other tables"),
    ],
    ids=["empty", "half", "zeros", "foreign", "binary JSON", "a view"],
)
def test_a_database_that_cannot_be_read_is_one_issue(
    content: bytes | str, reason: str, fresh: Fresh, tmp_path: Path
) -> None:
    write_bytes(tmp_path, PLACE, jsonl(META, TURN, ANSWER))
    if isinstance(content, str):
        with closing(sqlite3.connect(tmp_path / "queue_1.sqlite")) as connection, connection:
            connection.execute(content)
    else:
        (tmp_path / "queue_1.sqlite").write_bytes(content)
    database = fresh()
    sync(database, [tmp_path])
    ((found, path),) = rows(
        database, "select i.reason, f.path from issues i join files f on f.id = i.file_id"
    )
    assert reason in found
    assert path == "queue_1.sqlite"
    assert rows(database, "select text from messages") == [("yes",)]


def test_a_database_in_use_is_read_as_it_was_committed(fresh: Fresh, place: Path) -> None:
    home, database = home_of(STORES, place), fresh()
    with closing(sqlite3.connect(home / "goals_1.sqlite", isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("update thread_goals set status = 'complete'")
        connection.execute("begin immediate")
        connection.execute("update thread_goals set status = 'paused'")
        sync(database, [home])
        stated = rows(database, "select extra ->> 'status' from documents where kind = 'goal'")
        assert stated == [("complete",)]
        connection.execute("commit")
        sync(database, [home])
    stated = rows(database, "select extra ->> 'status' from documents where kind = 'goal'")
    assert stated == [("paused",)]
