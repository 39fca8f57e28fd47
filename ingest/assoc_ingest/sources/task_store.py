"""Shared by Cline and agents that were made from it: a directory of JSON documents for each task.

```
tasks/<task>/api_conversation_history.json  messages as the model gets them
tasks/<task>/ui_messages.json               what was shown to the person
tasks/<task>/task_metadata.json             models, versions, files in the context
tasks/<task>/history_item.json              the item of the list of tasks (newer Roo Code)
```

All are rewritten at each message. The first two tell the same conversation: only messages have
the calls with their results, only what was shown has times, tokens, costs and errors, and in
earlier versions the reasoning. `lines` makes one conversation of both, a line for each item: a
message, and before it what was shown meanwhile that it does not have.

What was shown says which message is next (`conversationHistoryIndex`). Where it does not, as in
Roo Code, messages have times (`ts`). The first versions have neither: each request that was shown
sends the next message of the user.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ..fields import is_count, json_bytes, json_text, leaves, string
from ..source import EntryLine, Member
from .reader import JSONObject, whole_value

STORE = "tasks"
MESSAGES, SHOWN = "message", "shown"
FILES = {
    "history_item.json": "task",
    "task_metadata.json": "metadata",
    "ui_messages.json": SHOWN,
    "api_conversation_history.json": MESSAGES,
}
"""The documents of a task in the order in which they are read, and their tables."""


# ------------------------------------------------------------------------------------------------
# Makes one conversation of what was sent and what was shown.
#
# ```json
# {"ts":1767258000123,"type":"say","say":"api_req_started","text":"{\"request\":\"..\",
#  \"tokensIn\":600,\"tokensOut\":40,\"cacheWrites\":0,\"cacheReads\":0,\"cost\":0.01}",
#  "conversationHistoryIndex":0,"modelInfo":{"providerId":"p","modelId":"m","mode":"act"}}
# {"role":"assistant","content":[{"type":"text","text":".."}],"ts":1767258003123}
# ```


SPENT = ("api_req_started", "deleted_api_reqs", "subagent_usage", "condense_context")
"""What is shown with tokens or costs."""

REPEATED = (
    *("api_req_finished", "api_req_retried", "api_req_deleted", "command", "command_output"),
    *("tool", "browser_action", "browser_action_launch", "browser_action_result", "image"),
    *("use_mcp_server", "mcp_server_request_started", "mcp_server_response", "use_subagents"),
    *("checkpoint_created", "checkpoint_saved", "resume_task", "resume_completed_task"),
    *("codebase_search_result", "load_mcp_documentation", "user_feedback_diff"),
    "user_edit_todos",
)
"""What is shown of calls and results, which messages have."""

_HAS_CHANGES = "HAS_CHANGES"  # ends the text of a result if files have changed
_PROBE = 200  # letters of a text by which it is recognised in a message


def lines(contents: Iterable[tuple[Member, bytes]]) -> Iterator[EntryLine]:
    """Yield the lines of a task."""
    lists: dict[str, list[JSONObject]] = {MESSAGES: [], SHOWN: []}
    for member, data in contents:
        if member.table not in lists:
            yield member.table, member.id, {}, data
            continue
        value, loss = whole_value(data) or (None, None)
        if not isinstance(value, list):
            is_object = isinstance(value, dict)  # which is no item
            yield member.table, member.id, {}, b"[" + data + b"]" if is_object else data
            continue
        if loss is not None:
            yield "loss", member.id, {"reason": loss}, None
        for place, item in enumerate(value):
            if isinstance(item, dict):
                lists[member.table].append(item)
            else:
                yield member.table, place, {}, json_bytes(item)
    yield from _merged(lists[MESSAGES], lists[SHOWN])


def _merged(messages: list[JSONObject], shown: list[JSONObject]) -> Iterator[EntryLine]:
    placed = _placed(messages, shown)
    texts = list(map(json_bytes, messages))
    now: object = None
    for place in range(len(messages) + 1):
        around = b"".join(texts[place : place + 2])
        now = next((item["ts"] for item in placed[place] if "ts" in item), now)
        later = []
        for item in placed[place]:
            if kind_of(item) in SPENT:
                later.append(item)
            elif not messages or not _is_in(item, around):
                yield SHOWN, item.get("ts"), {}, json_bytes(item)
        if place < len(messages):
            stated = messages[place].get("ts")
            yield MESSAGES, place, {"time": now if stated is None else stated}, texts[place]
        for item in later:
            yield SHOWN, item.get("ts"), {}, json_bytes(item)


def _placed(messages: list[JSONObject], shown: list[JSONObject]) -> Mapping[int, list[JSONObject]]:
    """Return what was shown by the position of the message that it is before."""
    placed: dict[int, list[JSONObject]] = defaultdict(list)
    sent = [place for place, message in enumerate(messages) if message.get("role") == "user"]
    times, latest = [], 0
    for message in messages:
        latest = max(latest, moment_of(message))
        times.append(latest)
    place = requests = 0
    for item in shown:
        index, moment = item.get("conversationHistoryIndex"), moment_of(item)
        if isinstance(index, int):
            place = index + 1
        elif latest and moment:
            place = bisect_left(times, moment)
        elif kind_of(item) == "api_req_started":
            place = sent[requests] if requests < len(sent) else len(messages)
            requests += 1
        elif requests:
            place = sent[min(requests, len(sent)) - 1] + 1 if sent else 0
        placed[max(0, min(place, len(messages)))].append(item)
    return placed


def kind_of(item: JSONObject) -> str:
    return string(item.get("say")) or string(item.get("ask")) or ""


def moment_of(item: JSONObject) -> int:
    """Return the time of an item in milliseconds, 0 if it has none."""
    stated = item.get("ts")
    return stated if isinstance(stated, int) and is_count(stated) else 0


def text_shown(item: JSONObject) -> str:
    """Return what an item says; that of an object, its strings."""
    text = (string(item.get("text")) or "").removesuffix(_HAS_CHANGES)
    if text.startswith("{") and (decoded := whole_value(text.encode("utf-8", "replace"))):
        return "\n".join(leaves(decoded[0]))
    return text


def _is_in(item: JSONObject, messages: bytes) -> bool:
    """Do these messages have what an item says? The first line of it is enough."""
    if kind_of(item) in REPEATED:
        return True
    first = next((line.strip() for line in text_shown(item).split("\n") if line.strip()), "")
    return not first or json_text(first[:_PROBE])[1:-1].encode() in messages
