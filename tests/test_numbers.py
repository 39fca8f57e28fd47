"""Numbers that can be trusted: what is counted of transcripts that repeat, contradict and lie."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    Object,
    agent,
    assistant,
    call,
    result,
    user,
    write,
)

from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import Ask, assert_same, check, dump, rows

AGENTS = f"{PROJECT}/{SESSION}/subagents"


# -- responses -----------------------------------------------------------------------------------

TOKENS = (
    "select input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens from responses"
)


def test_the_line_with_the_most_output_counts_as_a_whole(home: Path, ask: Ask) -> None:
    """A gateway moves tokens from the input to the cache: the best of each field is no answer."""
    early = {"input_tokens": 900, "output_tokens": 1}
    late = {"input_tokens": 10, "output_tokens": 50, "cache_read_input_tokens": 890}
    write(home, TRANSCRIPT, assistant("a", "a1", usage=early), assistant("b", "a2", usage=late))
    assert ask(TOKENS) == [(10, 50, 890, 0)]


def test_why_the_model_stopped_is_said_by_the_line_that_counts(home: Path, ask: Ask) -> None:
    first = assistant("a", "a1", usage={"output_tokens": 5}, stop_reason=None)
    last = assistant("b", "a2", usage={"output_tokens": 9}, stop_reason="max_tokens")
    again = assistant("c", "a3", usage={"output_tokens": 2}, stop_reason="end_turn")
    write(home, TRANSCRIPT, first, last, again)
    assert ask("select stop_reason, partial from responses") == [("max_tokens", 0)]


def test_an_id_of_a_gateway_is_one_response_in_each_session(home: Path, ask: Ask) -> None:
    usage = {"input_tokens": 5, "output_tokens": 7}
    for session, uuid in ((SESSION, "a1"), (OTHER, "a2")):
        line = assistant("hi", uuid, id="chatcmpl-1", usage=usage, sessionId=session)
        write(home, f"{PROJECT}/{session}.jsonl", line)
    assert ask(TOKENS) == [(5, 7, 0, 0), (5, 7, 0, 0)]


@pytest.mark.parametrize("is_split", [True, False])
def test_of_lines_with_as_many_tokens_the_last_counts(home: Path, ask: Ask, is_split: bool) -> None:
    """Also where a sync read the others before it."""
    usages = [{"input_tokens": 5, "output_tokens": 7}, {"input_tokens": 9, "output_tokens": 7}]
    lines = [assistant("hi", f"a{number}", usage=usage) for number, usage in enumerate(usages)]
    if is_split:
        write(home, TRANSCRIPT, lines[0])
        assert ask(TOKENS) == [(5, 7, 0, 0)]
    write(home, TRANSCRIPT, *lines)
    assert ask(TOKENS) == [(9, 7, 0, 0)]


def test_an_id_of_a_gateway_with_a_request_is_one_response(home: Path, ask: Ask) -> None:
    usage = {"input_tokens": 5, "output_tokens": 7}
    for session, more in ((SESSION, {"requestId": "req_1"}), (OTHER, {})):
        line = assistant("hi", "a1", id="gen-1", usage=usage, sessionId=session, **more)
        write(home, f"{PROJECT}/{session}.jsonl", line)
    assert ask(TOKENS) == [(5, 7, 0, 0)]


def test_a_response_without_any_id_counts_where_it_stands(home: Path, ask: Ask) -> None:
    line = assistant("hi", None, id=None, usage={"input_tokens": 2, "output_tokens": 3})  # type: ignore[arg-type]
    by_uuid = assistant("hi", "a9", id=None, usage={"input_tokens": 1, "output_tokens": 1})
    write(home, TRANSCRIPT, line, line, by_uuid, by_uuid)
    assert sorted(ask(TOKENS)) == [(1, 1, 0, 0), (2, 3, 0, 0), (2, 3, 0, 0)]


@pytest.mark.parametrize("value", [-1, 2**53 + 1, 2**64, 1.5, "12", True, [3], {"n": 1}])
def test_a_count_that_is_none_is_nothing_and_an_issue(home: Path, ask: Ask, value: object) -> None:
    usage = {"input_tokens": value, "output_tokens": 4, "cache_read_input_tokens": 6}
    write(home, TRANSCRIPT, assistant("hi", usage=usage))
    assert ask(TOKENS) == [(0, 4, 6, 0)]
    ((reason, quarantined, offset),) = ask("select reason, quarantined, byte_offset from issues")
    assert "input_tokens" in reason
    assert (quarantined, offset) == (0, 0)


@pytest.mark.parametrize("usage", [None, [], "none", 7])
def test_usage_that_is_no_object_is_no_response(home: Path, ask: Ask, usage: object) -> None:
    line = assistant("hi")
    line["message"]["usage"] = usage
    write(home, TRANSCRIPT, line)
    assert ask(TOKENS) == []
    assert len(ask("select 1 from issues")) == (usage is not None)


def test_what_the_client_made_up_and_progress_do_not_count(home: Path, ask: Ask) -> None:
    usage = {"input_tokens": 5, "output_tokens": 7}
    told = user([result("toolu_1")], "u2", toolUseResult={"usage": usage, "totalTokens": 12})
    progress = {"type": "progress", "data": {"message": assistant("x", usage=usage)}, "uuid": "p"}
    made_up = assistant("Sorry", "a3", id="msg_3", model="<synthetic>", usage=usage)
    write(home, TRANSCRIPT, made_up, told, progress)
    assert ask(TOKENS) == []


@pytest.mark.slow
def test_no_order_of_syncing_changes_a_number(
    home: Path, fresh: Callable[[], Path], place: Path
) -> None:
    """Forks, subagents and gateways: whichever file comes first, the rows are the same."""
    files = _tangled_home(home)
    expected = None
    for seed in range(6):
        database, part = fresh(), place / f"part-{seed}" / "home"
        order = random.Random(seed).sample(files, len(files))
        for path in order:
            target = part / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((home / path).read_bytes())
            sync(database, [part])
        check(database, part)
        found = dump(database)
        if expected is not None:
            assert_same(found, expected)
        expected = found
        totals = rows(database, "select sum(output_tokens) from responses")
        assert totals == [(30 + 40 + 7 + 7 + 11,)]


def _tangled_home(home: Path) -> list[str]:
    start = [user("go", "u1"), assistant("a", "a1", usage={"output_tokens": 3}, stop_reason=None)]
    more = assistant("b", "a2", "a1", 2, usage={"output_tokens": 30})
    spawn = assistant(
        [call("toolu_1", "Task", prompt="survey")], "a3", "a2", 3, id="msg_3",
        usage={"output_tokens": 40},
    )  # fmt: skip
    gateway = assistant("c", "a4", "a3", 4, id="gen-1", usage={"output_tokens": 7})
    fork = [{**line, "sessionId": OTHER} for line in (*start, more)]
    again = assistant("c", "b4", "a2", 9, id="gen-1", usage={"output_tokens": 7}, sessionId=OTHER)
    survey: list[Object] = [
        agent("a77", user("survey", "s1")),
        agent("a77", assistant("found", "s2", "s1", id="msg_9", usage={"output_tokens": 11})),
    ]
    write(home, TRANSCRIPT, *start, more, spawn, gateway)
    write(home, f"{PROJECT}/{OTHER}.jsonl", *fork, again)
    write(home, f"{AGENTS}/agent-a77.jsonl", *survey)
    return [f"{AGENTS}/agent-a77.jsonl", TRANSCRIPT, f"{PROJECT}/{OTHER}.jsonl"]


# -- who spawned whom ----------------------------------------------------------------------------

LINKS = (
    "select a.agent_key, a.link_method, t.tool_use_id, p.agent_key from subagents a"
    " left join tool_calls t on t.id = a.spawned_by left join subagents p on p.id = a.parent_id"
    " order by a.agent_key"
)


def _tasks(calls: Iterable[tuple[str, str]], *, uuid: str = "a1") -> Object:
    return assistant([call(key, "Task", prompt=prompt) for key, prompt in calls], uuid)


def test_an_agent_that_names_itself_as_parent_has_none(home: Path, ask: Ask) -> None:
    write(home, TRANSCRIPT, user("go"))
    own = agent("a1", _tasks([("toolu_1", "again")]))
    write(home, f"{AGENTS}/agent-a1.jsonl", agent("a1", user("work")), own)
    write(home, f"{AGENTS}/agent-a1.meta.json", {"agentType": "x", "toolUseId": "toolu_1"})
    assert ask(LINKS) == [("a1", None, None, None)]


def test_agents_that_would_spawn_each_other_are_cut_apart(home: Path, ask: Ask) -> None:
    write(home, TRANSCRIPT, user("go"))
    for key, other in (("a1", "2"), ("a2", "1")):
        calls = _tasks([(f"toolu_{key[1]}", f"for {other}")], uuid=f"x{key}")
        write(
            home,
            f"{AGENTS}/agent-{key}.jsonl",
            agent(key, user("work", f"u{key}")),
            agent(key, calls),
        )
        write(home, f"{AGENTS}/agent-{key}.meta.json", {"toolUseId": f"toolu_{other}"})
    assert ask(LINKS) == [("a1", None, None, None), ("a2", None, None, None)]


def test_two_agents_that_claim_one_call_both_have_it(home: Path, ask: Ask) -> None:
    write(home, TRANSCRIPT, _tasks([("toolu_1", "survey")]))
    for key in ("a1", "a2"):
        write(home, f"{AGENTS}/agent-{key}.jsonl", agent(key, user("work", f"u{key}")))
        write(home, f"{AGENTS}/agent-{key}.meta.json", {"toolUseId": "toolu_1"})
    assert ask(LINKS) == [("a1", "meta", "toolu_1", None), ("a2", "meta", "toolu_1", None)]


def test_a_prompt_links_to_no_call_that_has_its_agent(home: Path, ask: Ask) -> None:
    """Of two calls with the same prompt one is proven to be another's: it is the other one."""
    write(home, TRANSCRIPT, _tasks([("toolu_1", "survey"), ("toolu_2", "survey")]))
    for key in ("a1", "a2"):
        write(home, f"{AGENTS}/agent-{key}.jsonl", agent(key, user("survey", f"u{key}")))
    assert ask(LINKS) == [("a1", None, None, None), ("a2", None, None, None)]
    write(home, f"{AGENTS}/agent-a1.meta.json", {"toolUseId": "toolu_1"})
    assert ask(LINKS) == [("a1", "meta", "toolu_1", None), ("a2", "prompt", "toolu_2", None)]


def test_a_side_agent_is_not_spawned_by_the_call_of_whose_context_it_has(
    home: Path, ask: Ask
) -> None:
    write(home, TRANSCRIPT, _tasks([("toolu_1", "survey")]))
    for key in ("a1", "acompact-2"):
        write(home, f"{AGENTS}/agent-{key}.jsonl", agent(key, user("survey", "u5")))
    assert ask(LINKS) == [("a1", "prompt", "toolu_1", None), ("acompact-2", None, None, None)]


def test_agents_spawn_agents_to_any_depth(home: Path, ask: Ask) -> None:
    depth = 40
    write(home, TRANSCRIPT, _tasks([("toolu_0", "level 0")]))
    for level in range(depth):
        key = f"a{level:02d}"
        inner = _tasks([(f"toolu_{level + 1}", f"level {level + 1}")], uuid=f"x{level}")
        lines = [agent(key, user(f"level {level}", f"u{level}")), agent(key, inner)]
        write(home, f"{AGENTS}/agent-{key}.jsonl", *lines)
    links = ask(LINKS)
    assert [(method, parent) for _, method, _, parent in links] == [
        ("prompt", f"a{level - 1:02d}" if level else None) for level in range(depth)
    ]


# -- prompts -------------------------------------------------------------------------------------


def test_a_prompt_is_what_a_person_typed(home: Path, ask: Ask) -> None:
    queued = {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION}
    write(
        home,
        TRANSCRIPT,
        user("one", "u1"),
        user("<command-name>/review</command-name><command-args>x</command-args>", "u2"),
        user("<bash-input>ls</bash-input>", "u3"),
        {**queued, "content": "five"},
        {**queued, "content": "queued and never delivered"},
        user("five", "u4"),
        user("<local-command-stdout>x</local-command-stdout>", "n1"),
        user("<bash-stdout>x</bash-stdout>", "n2"),
        user("Caveat", "n3", isMeta=True),
        user("summary", "n4", isCompactSummary=True),
        user([result("toolu_1")], "n5"),
        user("[Request interrupted by user]", "n6"),
        user("<task-notification>x</task-notification>", "n7"),
        user('<teammate-message teammate_id="a">x</teammate-message>', "n8"),
        user([{"type": "text", "text": "<system-reminder>x</system-reminder>"}], "n9"),
    )
    write(home, f"{AGENTS}/agent-a1.jsonl", agent("a1", user("to an agent", "n10")))
    assert ask("select prompt_count from sessions") == [(5,)]


# -- calls that a person declined ----------------------------------------------------------------

NO = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was"
    " a file edit, the new_string was NOT written to the file)."
)
CALLS = "select status, duration_ms, exit_code from tool_calls order by byte_offset"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (NO, {"toolUseResult": "User rejected tool use"}),
        (NO, {}),
        (f"Error: {NO}", {"toolUseResult": f"Error: {NO}"}),
        ("Not now.", {"toolDenialKind": "user-rejected"}),
        ("The user doesn't want to take this action right now. STOP what you are doing.", {}),
    ],
)
def test_a_call_that_a_person_declined_did_not_fail(
    home: Path, ask: Ask, content: str, line: Object
) -> None:
    answer = user([result("t1", content, is_error=True)], "u2", "a1", 600, **line)
    write(home, TRANSCRIPT, user("do it"), assistant([call("t1")]), answer)
    assert ask(CALLS) == [("declined", None, None)]
    assert ask("select sum(is_error) from messages") == [(0,)]


@pytest.mark.parametrize("is_first", [True, False])
def test_the_time_of_a_person_is_not_that_of_the_tool_across_syncs(
    home: Path, ask: Ask, is_first: bool
) -> None:
    lines = [
        assistant([call("t1")]),
        user([result("t1", NO, is_error=True)], "u2", "a1", 600),
    ]
    write(home, TRANSCRIPT, *lines[: 1 if is_first else 0])
    ask(CALLS)
    write(home, TRANSCRIPT, *(lines if is_first else reversed(lines)))
    assert ask(CALLS) == [("declined", None, None)]


@pytest.mark.parametrize("tool", ["AskUserQuestion", "ExitPlanMode"])
@pytest.mark.parametrize("is_first", [True, False])
def test_the_time_until_a_person_answers_is_not_that_of_the_tool_either(
    home: Path, ask: Ask, tool: str, is_first: bool
) -> None:
    lines = [assistant([call("t1", tool)]), user([result("t1", "yes")], "u2", "a1", 600)]
    write(home, TRANSCRIPT, *(lines[:1] if is_first else ()))
    ask(CALLS)
    write(home, TRANSCRIPT, *lines)
    assert ask(CALLS) == [("ok", None, None)]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_call_takes_the_time_until_its_result_across_syncs(
    home: Path, ask: Ask, is_first: bool
) -> None:
    lines = [assistant([call("t1")]), user([result("t1")], "u2", "a1", 3)]
    lines = lines if is_first else lines[::-1]
    write(home, TRANSCRIPT, lines[0])
    ask(CALLS)
    write(home, TRANSCRIPT, *lines)
    assert ask(CALLS) == [("ok", 2000, None)]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("Exit code 1\nThe user doesn't want to proceed with this tool use", {}),
        ("Permission to use Bash has been denied.", {"toolDenialKind": "permission-rule"}),
    ],
)
def test_an_error_about_something_else_is_an_error(
    home: Path, ask: Ask, content: str, line: Object
) -> None:
    answer = user([result("t1", content, is_error=True)], "u2", "a1", 3, **line)
    write(home, TRANSCRIPT, assistant([call("t1")]), answer)
    assert ask("select status, duration_ms from tool_calls") == [("error", 2000)]


@pytest.mark.slow
def test_a_search_takes_and_costs_what_it_states(home: Path, ask: Ask) -> None:
    stated = {"query": "x", "results": [], "durationSeconds": 15.2086, "searchCount": 4}
    usage = {"input_tokens": 1_000_000, "output_tokens": 0}
    lines = [
        assistant([call("t1", "WebSearch", query="x")], usage=usage),
        user([result("t1", "found")], "u2", "a1", 30, toolUseResult=stated),
    ]
    write(home, TRANSCRIPT, *lines)
    # A fork repeats the search, which was made once.
    write(home, f"{PROJECT}/{OTHER}.jsonl", *lines, user("go on", "u3", "u2", 40))
    rows = "select duration_ms, search_count from tool_calls where name is not null"
    assert ask(rows) == [(15209, 4)] * 2
    ask(
        "insert into prices (model, input, output, web_search)"
        " values ('claude-sonnet-5', 3000000, 0, 10000000) on conflict (model, valid_from,"
        " above_tokens) do update set input = 3000000, web_search = 10000000"
    )
    assert ask("select cost_microusd from response_costs") == [(3_040_000,)]


# -- where it was said ---------------------------------------------------------------------------

PLACES = (
    "select text, git_branch, agent_version, permission_mode from conversation"
    " where kind in ('prompt', 'text') order by byte_offset"
)


@pytest.mark.slow
def test_branch_version_and_mode_are_those_at_each_message(home: Path, ask: Ask) -> None:
    lines: list[Object] = [
        user("one", "u1", gitBranch="main", permissionMode="default"),
        assistant("two", gitBranch="main"),
        {"type": "permission-mode", "permissionMode": "plan", "sessionId": SESSION},
        user("three", "u2", "a1", 2, gitBranch="feature", version="2.1.101"),
        user("four", "u3", "u2", 3, gitBranch=""),
        user("five", "u4", "u3", 4, gitBranch="main", permissionMode="default"),
    ]
    for count in range(1, len(lines) + 1):  # a stretch repeats what holds already
        write(home, TRANSCRIPT, *lines[:count])
        ask("select 1")
    assert ask(PLACES) == [
        ("one", "main", "2.1.100", "default"),
        ("two", "main", "2.1.100", "default"),
        ("three", "feature", "2.1.101", "plan"),
        ("four", None, "2.1.100", "plan"),
        ("five", "main", "2.1.100", "default"),
    ]
    assert ask("select count(*) from contexts where name = 'git_branch'") == [(4,)]
