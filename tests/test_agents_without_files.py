"""A subagent that left no file is there all the same, from what the transcript of its call says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    chain,
    result,
    user,
    write,
)

from assoc_ingest.sync.plan import Report, find_roots, given_roots, make_plan
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import Ask, assert_as_rebuilt, assert_same, check, dump, rows
from assoc_ingest.upkeep.forget import remember

AGENT_FILE = f"{PROJECT}/{SESSION}/subagents/agent-a1.jsonl"
PROMPT = "Survey the parser"
SAID = "The parser has three stages."
AGENTS = (
    "select agent_key, kind, agent_type, description, link_method, message_count, tokens,"
    " tool_call_count from subagents order by agent_key"
)
OF_AGENTS = (
    "select m.kind, coalesce(m.text, m.tool_text) from messages m join subagents a"
    " on a.id = m.subagent_id order by m.byte_offset, m.block"
)
TOKENS = "select sum(input_tokens), sum(output_tokens), count(*) from responses"


def task(second: int = 1) -> Object:
    arguments = {"subagent_type": "Explore", "description": "Survey", "prompt": PROMPT}
    return assistant([call("toolu_1", "Task", **arguments)], "a1", "u1", second, id="msg_main")


def answer(second: int = 60, **stated: Any) -> Object:
    extra = {"status": "completed", "agentId": "a1", "totalTokens": 1234, "totalDurationMs": 5000}
    extra |= {"totalToolUseCount": 7, "agentType": "Explore", **stated}
    return user([result("toolu_1", "Done.")], "u9", "a1", second, toolUseResult=extra)


def said(second: int = 3, output: int = 20) -> list[Object]:
    """What the agent was told and said, as lines of its own file would have it."""
    counts = {"input_tokens": 5, "output_tokens": output}
    return [
        user(PROMPT, "i1", None, 2),
        assistant(
            [call("toolu_i", "Read", file_path="a.py")],
            "i2",
            "i1",
            second,
            id="msg_i",
            usage=counts,
        ),
        user([result("toolu_i", "1 import re")], "i3", "i2", second + 1),
        assistant(SAID, "i4", "i3", second + 2, id="msg_j", usage=counts),
    ]


def progress(line: Object, number: int) -> Object:
    """The line of a transcript that repeats a line of its agent."""
    inner = {key: line[key] for key in ("type", "message", "uuid", "timestamp")}
    data = {"type": "agent_progress", "agentId": "a1", "prompt": PROMPT, "message": inner}
    return chain(
        "progress", f"p{number}", "a1", 10 + number,
        toolUseID="agent_msg_1", parentToolUseID="toolu_1", data=data,
    )  # fmt: skip


def transcript(*more: Object) -> list[Object]:
    repeated = [progress(line, number) for number, line in enumerate(said())]
    return [user("go", second=0), task(), *repeated, *more]


# -- from the result of its call -----------------------------------------------------------------


def test_an_agent_that_a_result_names_is_there_with_its_stated_totals(home: Path, ask: Ask) -> None:
    write(home, TRANSCRIPT, user("go"), task(), answer())
    assert ask(AGENTS) == [("a1", "task", "Explore", "Survey", "result", 0, 1234, 7)]
    assert ask("select count(*) from responses where subagent_id is not null") == [(0,)]


def test_an_agent_of_which_nothing_is_stated_is_no_row(home: Path, ask: Ask) -> None:
    launched = {"isAsync": True, "status": "async_launched", "totalTokens": None}
    write(home, TRANSCRIPT, user("go"), task(), answer(**launched))
    assert ask(AGENTS) == []


def test_a_fork_repeats_the_result_and_not_the_agent(home: Path, ask: Ask) -> None:
    lines = [user("go"), task(), answer()]
    write(home, TRANSCRIPT, *lines)
    write(home, f"{PROJECT}/{OTHER}.jsonl", *lines, user("more", "u10", "u9", 90))
    assert [row[0] for row in ask(AGENTS)] == ["a1"]


# -- from progress lines -------------------------------------------------------------------------


def test_what_only_progress_lines_tell_is_read(home: Path, ask: Ask) -> None:
    write(home, TRANSCRIPT, *transcript(answer()))
    assert ask(AGENTS) == [("a1", "task", "Explore", "Survey", "result", 4, 50, 7)]
    assert ask(OF_AGENTS) == [
        ("agent_prompt", PROMPT), ("tool_use", '{"file_path":"a.py"}'),
        ("tool_result", "1 import re"), ("text", SAID),
    ]  # fmt: skip
    assert ask(TOKENS) == [(10, 40, 2)]
    calls = ask("select t.name, t.status, a.agent_key from tool_calls t"
                " left join subagents a on a.id = t.subagent_id order by t.started_at")  # fmt: skip
    assert calls == [("Task", "ok", None), ("Read", "ok", "a1")]


def test_it_is_neither_a_message_nor_a_prompt_of_the_session(home: Path, ask: Ask) -> None:
    write(home, TRANSCRIPT, *transcript())
    assert ask("select message_count, prompt_count, title from sessions") == [(2, 1, "go")]


def test_a_message_that_is_repeated_twice_counts_once(home: Path, ask: Ask) -> None:
    again = [progress(line, 10 + number) for number, line in enumerate(said())]
    write(home, TRANSCRIPT, *transcript(*again))
    assert ask(TOKENS) == [(10, 40, 2)]
    assert ask("select count(*) from messages where copy_of is null and text is not null"
               " and subagent_id is not null") == [(2,)]  # fmt: skip


def test_a_fork_that_repeats_the_lines_counts_nothing_twice(home: Path, ask: Ask) -> None:
    write(home, TRANSCRIPT, *transcript())
    more = user("more", "u10", "a1", 90)
    write(home, f"{PROJECT}/{OTHER}.jsonl", *transcript(more))
    assert ask(TOKENS) == [(10, 40, 2)]
    rows = ask("select s.session_key, count(*) from responses r join sessions s on"
               " s.id = r.session_id group by 1")  # fmt: skip
    assert rows == [(SESSION, 2)]


@pytest.mark.parametrize("message", [None, 5, "x", {}, {"type": "user"}, {"type": "assistant"}])
def test_a_progress_line_without_a_message_is_only_counted(
    home: Path, ask: Ask, message: object
) -> None:
    line = progress(said()[0], 1)
    line["data"]["message"] = message
    write(home, TRANSCRIPT, user("go"), task(), line)
    assert ask("select count from line_types where subtype = 'agent_progress'") == [(1,)]


def test_lines_of_an_agent_with_a_file_are_not_read_twice(home: Path, ask: Ask) -> None:
    write(home, TRANSCRIPT, *transcript(answer()))
    write(home, AGENT_FILE, *(agent("a1", line) for line in said()))
    assert ask("select count(*) from agent_lines") == [(0,)]
    assert ask(TOKENS) == [(10, 40, 2)]
    assert len(ask(OF_AGENTS)) == 4


# -- when the file appears, and when it goes -----------------------------------------------------


@pytest.mark.slow
def test_when_the_file_appears_it_is_as_if_it_had_always_been_there(
    home: Path, fresh: Callable[[], Path]
) -> None:
    database, scratch = fresh(), fresh()
    lines = transcript(answer())
    write(home, TRANSCRIPT, *lines[:4])
    sync(database, [home])
    write(home, TRANSCRIPT, *lines)
    sync(database, [home])
    write(home, AGENT_FILE, *(agent("a1", line) for line in said(output=25)))
    sync(database, [home])
    sync(scratch, [home])
    assert_same(dump(database), dump(scratch))
    check(database, home)


def test_all_transcripts_of_a_plan_share_one_set_of_agents(home: Path) -> None:
    """With a set for each, memory would grow with the square of the files of a home."""
    for number in range(5):
        write(home, TRANSCRIPT.replace(".jsonl", f"{number}.jsonl"), *transcript(answer()))
    write(home, AGENT_FILE, *(agent("a1", line) for line in said()))
    report = Report("")
    plan = make_plan(
        None, find_roots(None, given_roots([home], None), None, report), report, full=False
    )
    claims = [work.claim for work in plan.work if work.claim.agent_key is None]
    assert len(claims) == 5
    assert len({id(claim.elsewhere) for claim in claims}) == 1
    assert claims[0].elsewhere


def test_a_kill_between_the_two_is_made_good_by_the_next_sync(
    home: Path, fresh: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from assoc_ingest.sync import run as module

    database, scratch = fresh(), fresh()
    write(home, TRANSCRIPT, *transcript(answer()))
    sync(database, [home])
    write(home, AGENT_FILE, *(agent("a1", line) for line in said()))
    with monkeypatch.context() as patch:
        patch.setattr(module, "derive_what_others_decide", lambda connection: None)
        sync(database, [home])
    sync(database, [home])
    sync(scratch, [home])
    assert_same(dump(database), dump(scratch))


@pytest.mark.slow
def test_when_the_file_is_pruned_the_lines_are_the_record_again(
    home: Path, fresh: Callable[[], Path]
) -> None:
    from assoc_ingest.upkeep.prune import prune_gone

    database, scratch = fresh(), fresh()
    write(home, TRANSCRIPT, *transcript(answer()))
    file = write(home, AGENT_FILE, *(agent("a1", line) for line in said()))
    sync(database, [home])
    file.unlink()
    sync(database, [home])
    prune_gone(database, None, dry_run=False)
    sync(scratch, [home])
    assert_same(dump(database), dump(scratch))


@pytest.mark.slow
def test_an_agent_whose_file_is_forgotten_does_not_return(
    home: Path, fresh: Callable[[], Path]
) -> None:
    from assoc_ingest.upkeep.forget import Target, forget

    database = fresh()
    write(home, TRANSCRIPT, *transcript(answer()))
    write(home, AGENT_FILE, *(agent("a1", line) for line in said()))
    sync(database, [home])
    forget(
        database, Target("agent-a1.jsonl"), with_copies=False, dry_run=False,
        announce=lambda done: None,
    )  # fmt: skip
    write(home, TRANSCRIPT, *transcript(answer(), user("more", "u10", "u9", 90)))
    sync(database, [home])
    assert rows(database, "select count(*) from agent_lines") == [(0,)]


def test_a_forgotten_copy_of_an_agents_file_is_the_record_like_the_original(
    home: Path, fresh: Callable[[], Path]
) -> None:
    """A sync finds the copy under the key of another agent, whose lines were read before."""
    from assoc_ingest.upkeep.forget import Target, forget

    database = fresh()
    write(home, AGENT_FILE.replace("a1", "a2"), *(agent("a2", line) for line in said()))
    write(home, TRANSCRIPT, *transcript(answer()))
    sync(database, [home])
    forget(
        database, Target("agent-a2.jsonl"), with_copies=False, dry_run=False,
        announce=lambda done: None,
    )  # fmt: skip
    assert_as_rebuilt(database)
    shutil.copy(home / AGENT_FILE.replace("a1", "a2"), home / AGENT_FILE)
    write(home, f"{PROJECT}/{OTHER}.jsonl", *transcript(user("more", "u10", "a1", 90)))
    sync(database, [home])
    assert_as_rebuilt(database)
    remember(database, AGENT_FILE)
    assert_as_rebuilt(database)


@pytest.mark.parametrize("is_remembered", [False, True])
def test_what_a_fork_repeats_of_a_forgotten_conversations_agent_is_its_own(
    is_remembered: bool, home: Path, fresh: Callable[[], Path]
) -> None:
    from assoc_ingest.upkeep.forget import Target, forget

    database = fresh()
    write(home, TRANSCRIPT, *transcript(answer()))
    write(home, AGENT_FILE, *(agent("a1", line) for line in said()))
    fork = [{**line, "sessionId": OTHER} for line in transcript(answer())]
    write(home, f"{PROJECT}/{OTHER}.jsonl", *fork)
    sync(database, [home])
    forget(database, Target(SESSION), with_copies=False, dry_run=False, announce=lambda done: None)
    if is_remembered:
        remember(database, SESSION)
    assert_as_rebuilt(database)
    sync(database, [home])
    assert_as_rebuilt(database)


def test_the_ways_to_count_are_told_apart(home: Path, ask: Ask) -> None:
    own = assistant("hi", "a0", "u1", 1, id="msg_0", usage={"input_tokens": 1, "output_tokens": 2})
    write(home, TRANSCRIPT, *transcript(own))
    rows = dict(ask("select counting, output_tokens from usage_reconciliation"))
    assert rows["once"] == 42
    assert rows["once, without agents that have no file"] == 2
    assert rows["once, without subagents"] == 2


def test_a_file_of_the_agent_below_another_conversation_takes_it_whenever_it_comes(
    home: Path, fresh: Callable[[], Path]
) -> None:
    database, at_once = fresh(), fresh()
    write(home, TRANSCRIPT, user("go"), task(), answer(agentId="a1", totalTokens=5))
    sync(database, [home])
    other = f"{PROJECT}/{OTHER}/subagents/agent-a1.jsonl"
    write(home, other, agent("a1", user(PROMPT, "x1", sessionId=OTHER)))
    sync(database, [home])
    sync(at_once, [home])
    assert_same(dump(database), dump(at_once))
