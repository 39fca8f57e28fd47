"""Transcript lines at random: few ids, so that they collide as those of forks and agents do."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from tests.support.writing import OTHER, SESSION, Object, at, dumps

SESSIONS = (SESSION, OTHER)
AGENTS = ("a1b2c3d", "ab", "acompact-77")
_UUIDS = [f"u{number}" for number in range(8)]
_CALLS = ("toolu_1", "toolu_2", "call_3")
_RESPONSES = ("msg_1", "msg_2", "gen-1", None)
_TEXTS = ("fix it", "Survey the parser", "Warmup", "中文字", "café", "", "agentId: a1b2c3d\nok")

# What tools are called with that state tasks, todos and plans, and what answers them.
_STATED: tuple[tuple[str, Object], ...] = (
    ("TaskCreate", {"subject": "Dig", "description": "the beds"}),
    ("TaskCreate", {"subject": "Sow"}),
    ("TaskUpdate", {"taskId": "1", "status": "completed", "addBlockedBy": ["2"]}),
    ("TaskUpdate", {"taskId": "2", "owner": "ab", "addBlocks": ["1"], "metadata": {"a": 1}}),
    ("TaskUpdate", {"taskId": "2", "status": "deleted"}),
    ("TodoWrite", {"todos": [{"content": "Rake", "status": "pending"}]}),
    ("TodoWrite", {"todos": [{"content": "Rake", "status": "completed"}, {"content": "Rake"}]}),
    ("TodoWrite", {"todos": []}),
    ("ExitPlanMode", {"plan": "# Plan"}),
    ("ExitPlanMode", {"plan": "# Another", "planFilePath": "/home/ada/.claude/plans/a-plan.md"}),
    ("ExitPlanMode", {}),
)
_ANSWERS = (
    "Task #1 created successfully: Dig",
    "Task #2 created successfully: Sow",
    "Task not found",
    "User has approved your plan.\n\n## Approved Plan:\n# Plan",
)
_EXTRAS: tuple[Object, ...] = (
    {"task": {"id": "1", "subject": "Dig"}},
    {"success": False, "taskId": "1", "updatedFields": []},
    {"plan": "# As it was approved", "isAgent": False},
)

_texts = st.sampled_from(_TEXTS)
_uuids = st.sampled_from(_UUIDS)
_counts = st.sampled_from([0, 1, 5, 900, None, -1, 2**70])


def _queue(text: str) -> Object:
    return {"type": "queue-operation", "operation": "enqueue", "content": text}


@st.composite
def _chain(draw: st.DrawFn, kind: str, **more: Any) -> Object:
    line: Object = {
        "type": kind,
        "uuid": draw(_uuids),
        "parentUuid": draw(st.none() | _uuids),
        "sessionId": draw(st.sampled_from(SESSIONS)),
        "timestamp": draw(st.sampled_from([at(1), at(2), at(3), at(60), None])),
        "cwd": draw(st.sampled_from(["/srv/demo", "/srv/other"])),
        **more,
    }
    line |= draw(st.sampled_from([{}, {}, {}, {"isSidechain": True}, {"sessionKind": "bg"}]))
    return line


@st.composite
def _users(draw: st.DrawFn) -> Object:
    text = st.builds(lambda text: {"type": "text", "text": text}, _texts)
    answer = st.builds(
        lambda call, text: {"type": "tool_result", "tool_use_id": call, "content": text},
        st.sampled_from(_CALLS),
        _texts | st.sampled_from(_ANSWERS),
    )
    content = draw(_texts | st.lists(text | answer, max_size=2))
    line = draw(_chain("user", message={"role": "user", "content": content}))
    extra = st.sampled_from([None, None, {"agentId": "a1b2c3d"}, {"agentId": "ab"}, *_EXTRAS])
    plan = st.sampled_from([{}, {}, {}, {"planContent": "# Plan"}, {"slug": "a-plan"}])
    return line | {"toolUseResult": draw(extra)} | draw(plan)


@st.composite
def _assistants(draw: st.DrawFn) -> Object:
    text = st.builds(lambda text: {"type": "text", "text": text}, _texts)
    prompt = st.builds(lambda text: {"prompt": text}, _texts)
    calls = st.builds(
        lambda call, name, given: {"type": "tool_use", "id": call, "name": name, "input": given},
        st.sampled_from(_CALLS),
        st.sampled_from(["Task", "Bash"]),
        prompt,
    )
    work = st.builds(
        lambda call, stated: {
            "type": "tool_use",
            "id": call,
            "name": stated[0],
            "input": stated[1],
        },
        st.sampled_from(_CALLS),
        st.sampled_from(_STATED),
    )
    usage = {"input_tokens": draw(_counts), "output_tokens": draw(_counts)}
    message = {
        "content": draw(st.lists(text | calls | work, max_size=2)),
        "model": draw(st.sampled_from(["claude-sonnet-5", "<synthetic>"])),
        "stop_reason": draw(st.sampled_from([None, "end_turn"])),
        "usage": usage,
        "id": draw(st.sampled_from(_RESPONSES)),
    }
    line = draw(_chain("assistant", message=message))
    return line | draw(st.sampled_from([{}, {"requestId": "req_1"}]))


def _repeated(line: Object) -> Object:
    return {key: line[key] for key in ("type", "message", "uuid", "timestamp")}


_progress = st.builds(
    lambda line, agent, call, message: (
        line
        | {
            "parentToolUseID": call,
            "data": {"type": "agent_progress", "agentId": agent, "message": message},
        }
    ),
    _chain("progress"),
    st.sampled_from(AGENTS),
    st.sampled_from(_CALLS),
    st.none() | (_users() | _assistants()).map(_repeated),
)
_queued_commands = st.builds(
    lambda line, text: (
        line | {"attachment": {"type": "queued_command", "prompt": text, "commandMode": "prompt"}}
    ),
    _chain("attachment"),
    _texts,
)
_states = st.sampled_from(
    [
        {"type": "custom-title", "customTitle": "First", "sessionId": SESSION},
        {"type": "custom-title", "customTitle": "Second", "sessionId": SESSION},
        {"type": "ai-title", "aiTitle": "Third", "sessionId": SESSION},
        {"type": "permission-mode", "permissionMode": "plan", "sessionId": SESSION},
        {"type": "pr-link", "prUrl": "https://example.org/7", "sessionId": SESSION},
        {"type": "bridge-session", "bridgeSessionId": "secret", "sessionId": SESSION},
        {"type": "a-new-kind", "sessionId": SESSION, "content": "said newly"},
        {"no": "type"},
        {"type": "system", "subtype": "away_summary", "content": "While away", "uuid": "s1"},
    ]
)
_summaries = st.builds(
    lambda text, leaf: {"type": "summary", "summary": text or "Of nothing", "leafUuid": leaf},
    _texts,
    _uuids,
)
_notifications = st.builds(
    lambda agent, call: (
        f"<task-notification><task-id>{agent}</task-id>"
        f"<tool-use-id>{call}</tool-use-id></task-notification>"
    ),
    st.sampled_from(AGENTS),
    st.sampled_from(_CALLS),
)
objects: st.SearchStrategy[Object] = st.one_of(
    _users(),
    _users(),
    _assistants(),
    _assistants(),
    _progress,
    _queued_commands,
    _states,
    _summaries,
    st.builds(_queue, _texts | _notifications),
)
"""One line, as an object."""

_odd = st.sampled_from(
    [
        b"",
        b"\r",
        b"  ",
        b"\x00" * 300,
        b"17",
        b"[1,2]",
        b'{"cut":"off',
        b'ent":"x"}',
        b'\xff\xfe{"a":1}',
        b'{"type":"user","sessionId":"s","message":{"content":"\\ud83d lone"}}',
        b'{"type":"user","sessionId":"s","message":{"content":"\\u0000nul"}}',
        b'{"type":"user","sessionId":"s","message":{"content":"\xff"}}',
        b'{"type":"user","sessionId":"s","message":"text","timestamp":17}',
        b'{"deep":' + b"[" * 1200 + b"]" * 1200 + b"}",
        b'{"n":1e400}',
    ]
)


def _glued(parts: list[bytes]) -> bytes:
    return b"".join(parts)


lines: st.SearchStrategy[bytes] = st.one_of(
    objects.map(dumps),
    objects.map(dumps),
    objects.map(dumps),
    objects.map(lambda line: dumps(line) + b"\r"),
    _odd,
    st.lists(objects.map(dumps) | _odd, min_size=2, max_size=3).map(_glued),
)
"""One line, as bytes without its line break: mostly whole, sometimes broken as real ones are."""
