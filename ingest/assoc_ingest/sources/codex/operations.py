"""Operations that events state: how a call ended, and calls that are no items of their own.

```json
{"type":"exec_command_end","call_id":"c1","command":["/bin/zsh","-lc","ls"],"exit_code":0,
 "duration":{"secs":0,"nanos":8208},"aggregated_output":"..."}
{"type":"patch_apply_end","call_id":"c2","success":true,"changes":{"/srv/a.py":{"type":"update",
 "unified_diff":"..."}}}
{"type":"mcp_tool_call_end","call_id":"c3","invocation":{"server":"s","tool":"t","arguments":{}},
 "duration":{"secs":1,"nanos":0},"result":{"Ok":{"content":[]}}}
{"type":"item_completed","turn_id":"u1","item":{"type":"CommandExecution","id":"exec-1",
 "command":"ls","exit_code":0,"duration_ms":12,"aggregated_output":"..."},"completed_at_ms":0}
```

If the call is an item that has no output yet, they add to it what its output may not say. In code
mode, an item `exec` holds a program that runs any number of operations: these have rows.
"""

from __future__ import annotations

from ...fields import integer, json_text, mapping, string, without
from ...records import AgentLink
from ..claude.paths import folded
from ..claude.tools import BY_RESULT, DECLINED, ERROR, OK
from ..jsonl import JSONObject
from ..patches import in_full
from . import tools
from .items import Items

_OPERATIONS = (
    "CommandExecution", "FileChange", "McpToolCall", "DynamicToolCall", "Extension",
    "CollabAgentToolCall",
)  # fmt: skip
_DESCRIBED = ("type", "id", "aggregated_output", "formatted_output", "stdout", "stderr", "result")


class Operations(Items):
    """Reads events about operations."""

    def ended(self, payload: JSONObject) -> None:
        """Take the event in that ends a call."""
        if payload.get("source") == "user_shell":
            return  # a command of the person, which is an item
        self._operation(payload, self.name(payload, "call_id"))

    def completed(self, payload: JSONObject) -> None:
        """Take an `item_completed` in: most items repeat others, some are operations."""
        item = self.mapping(payload, "item")
        kind = string(item.get("type"))
        call = self.name(item, "id")
        if kind == "SubAgentActivity":
            self.spawned(item)
        elif kind in _OPERATIONS:
            self._operation(item, call)
            self.spawned({"call_id": call, **item})

    def spawned(self, payload: JSONObject) -> None:
        """Link a call to the thread that it started, if the event names both."""
        call = string(payload.get("call_id")) or string(payload.get("event_id"))
        agent = string(payload.get("new_thread_id")) or string(payload.get("agent_thread_id"))
        if call is not None and agent is not None:
            self.records.append(AgentLink(folded(agent), call, BY_RESULT, self.start))

    def _operation(self, about: JSONObject, call: str | None) -> None:
        code = integer(about.get("exit_code"))
        time = integer(about.get("duration_ms"))
        time = tools.milliseconds(about.get("duration")) if time is None else time
        status = _status(about, code)
        if call in self._open:
            self._open[call] = [status, code, time]
            return
        found = tools.Outcome(_output(about), status, code, time)
        name, arguments = _call(about)
        given = arguments or without(about, _DESCRIBED)
        deed = tools.deed(name, given, json_text(given), self.context.get("cwd"))
        paths = tuple(
            in_full(path, self.context.get("cwd")) for path in mapping(about.get("changes"))
        )
        target: JSONObject = {"path": paths[0]} if paths else deed.target
        text = json_text(tools.without_data(given))
        self.identify("operation", {"call_id": call})
        self.call(name, target, text, call, action=deed.action, paths=paths or deed.paths)
        self.end(found, call, is_timed=False)


def _call(about: JSONObject) -> tuple[str | None, JSONObject]:
    """Return the tool of an operation, and what it was given."""
    invocation = mapping(about.get("invocation")) or about
    server, tool = string(invocation.get("server")), string(invocation.get("tool"))
    if tool is not None:
        arguments = mapping(invocation.get("arguments"))
        return (f"{server}.{tool}" if server else tool), arguments
    if command := tools.command_of(about):
        return "exec_command", {"command": command}
    if "changes" in about:
        return "apply_patch", {"changes": _diffs(about["changes"])}
    return string(about.get("kind")) or string(about.get("type")), {}


def _diffs(changes: object) -> str:
    """Return the differences of all changed files as one text."""
    texts = []
    for path, change in mapping(changes).items():
        about = mapping(change)
        texts.append(f"{string(about.get('type')) or 'change'} {path}")
        added = "".join(f"+{line}\n" for line in (string(about.get("content")) or "").split("\n"))
        texts.append(string(about.get("unified_diff")) or added)
    return "\n".join(filter(None, texts))


def _status(about: JSONObject, code: int | None) -> str:
    stated = string(about.get("status")) or ""
    if stated in ("declined", "rejected"):
        return DECLINED
    is_wrong = code or about.get("success") is False or "Err" in mapping(about.get("result"))
    return ERROR if is_wrong or stated in ("failed", "error") or about.get("error") else OK


def _output(about: JSONObject) -> str:
    """Return what an operation gave."""
    for key in ("aggregated_output", "formatted_output", "stdout"):
        if text := string(about.get(key)):
            return text
    result = mapping(about.get("result"))
    given = result.get("Ok", result.get("Err", about.get("result")))
    return tools.output_text(mapping(given).get("content", given) or about.get("error"))
