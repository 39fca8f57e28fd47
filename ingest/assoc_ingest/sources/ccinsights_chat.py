"""The lines of a CC-Insights chat, with the field names of old and new versions.

```json
{"type":"tool_use","timestamp":"2026-02-19T18:41:07.204518","tool_name":"Read","tool_kind":"read",
 "tool_use_id":"t1","tool_input":{"path":"a.ts"},"is_error":false}
{"type":"tool_use","timestamp":"2025-11-03T08:12:44.000Z","id":"t9","tool":"Grep",
 "input":{"pattern":"menu"}}
```

A file can have both, since a chat continues when the application is updated. The fields of each
type, with newer names first:

- `user`: `text`, `images[{data, media_type}]`; `assistant`: `text`, `content_type` text or
  thinking, `error_type`;
- `tool_use`: `tool_use_id`/`id`, `tool_name`/`tool`, `tool_input`/`input`, and `result` with
  `is_error` if the result existed when the line was written;
- `tool_result`: `tool_use_id`/`toolUseId`, `result`/`output` (any JSON), `is_error`/`isError`;
- `context_summary`: `summary`; `auto_compaction`, `system_notification`: `message`;
  `system_instruction`, `system`: `text`;
- `context_cleared`, `session_marker` and `unknown_message` have no text for people, or repeat
  another line: they have no row among the messages.

All other fields of a line (`tool_kind`, `error_type`, `marker_type` ...) are kept as JSON.

Subagents are not written at all.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..fields import json_text, mapping, obvious_text, placeholder, string
from ..records import Record
from ..source import Line
from .chat_reader import ChatReader
from .claude.tools import result_text
from .jsonl import JSONObject

_NOTICES = {
    "context_summary": ("compact_summary", "summary"),
    "auto_compaction": ("system", "message"),
    "system_notification": ("system", "message"),
    "system_instruction": ("system", "text"),
    "system": ("system", "text"),
}
_COLUMNS = {
    "user": ("text", "images"),
    "assistant": ("text", "content_type"),
    "tool_use": ("model", "result"),
    **{kind: (key,) for kind, (_, key) in _NOTICES.items()},
}
_PAIRS = {
    "tool_use": (
        ("tool_use_id", "id"),
        ("tool_name", "tool"),
        ("tool_input", "input"),
        ("is_error", "isError"),
    ),
    "tool_result": (("tool_use_id", "toolUseId"), ("result", "output"), ("is_error", "isError")),
}
_COUNTED = frozenset(["context_cleared", "session_marker", "unknown_message"])
TYPES = frozenset(["user", "assistant", "tool_use", "tool_result", *_NOTICES, *_COUNTED])


def _is_line(value: JSONObject) -> bool:
    return string(value.get("type")) in TYPES and "timestamp" in value


class ChatLines(ChatReader):
    """Reads the lines of one chat."""

    def read(self, lines: Iterable[Line]) -> list[Record]:
        """Turn lines into records."""
        for value in self.objects(lines, _is_line):
            kind = string(value.get("type")) or ""
            self.begin(value, is_message=kind in ("user", "assistant"))
            if kind == "user":
                self._user(value)
            elif kind == "assistant":
                self._assistant(value)
            elif kind == "tool_use":
                self._tool_use(value)
            elif kind == "tool_result":
                self._tool_result(value)
            elif kind in _NOTICES:
                self._notice(*_NOTICES[kind], value)
            elif kind not in _COUNTED and (text := obvious_text(value)):
                self.say("system", text, "system")
            self.keep_rest(value, _taken(kind, value))
        return self.finish()

    def _user(self, value: JSONObject) -> None:
        self.say("prompt", self.text(value, "text") or "", "user")
        for image in self.items(value, "images"):
            block: JSONObject = {"type": "image", "source": image}
            self.say("image", placeholder(block), "user")

    def _assistant(self, value: JSONObject) -> None:
        kind = "thinking" if value.get("content_type") == "thinking" else "text"
        if self.text(value, "error_type") is not None:
            kind = "error"
        text = self.text(value, "text") or ""
        self.say(kind, text, "assistant", is_error=kind == "error")

    def _tool_use(self, value: JSONObject) -> None:
        self.model = self.name(value, "model")
        identity = self._either(value, "tool_use_id", "id")
        key = "tool_input" if "tool_input" in value else "input"
        arguments = value.get(key)
        text = json_text({} if arguments is None else arguments, lambda: self.exact(key, arguments))
        self.call(self._either(value, "tool_name", "tool"), mapping(arguments), text, identity)
        if value.get("result") is not None:
            self.answer(
                _result(value["result"]), identity, is_error=_is_error(value), is_timed=False
            )

    def _tool_result(self, value: JSONObject) -> None:
        identity = self._either(value, "tool_use_id", "toolUseId")
        result = value["result"] if "result" in value else value.get("output")
        name = self._either(value, "tool_name", "tool")
        self.answer(_result(result), identity, is_error=_is_error(value), name=name)

    def _notice(self, kind: str, key: str, value: JSONObject) -> None:
        text = self.text(value, key)
        if text is not None:
            self.say(kind, text, "system")

    def _either(self, value: JSONObject, newer: str, older: str) -> str | None:
        return self.text(value, newer if newer in value else older)


def _taken(kind: str, value: JSONObject) -> set[str]:
    """Return the keys that became columns; of two with the same meaning, that is the newer one."""
    taken = set(_COLUMNS.get(kind, ()))
    for newer, older in _PAIRS.get(kind, ()):
        taken.add(newer if newer in value else older)
    if kind == "assistant" and value.get("content_type") not in ("text", "thinking"):
        taken.discard("content_type")
    if kind == "tool_use" and value.get("result") is None:  # without a result, it has no meaning
        taken -= {"is_error", "isError"}
    return taken


def _is_error(value: JSONObject) -> bool:
    return value.get("is_error", value.get("isError")) is True


def _result(result: object) -> str:
    """Return the text of a result: blocks as their text, other JSON as it is."""
    if result is None:
        return ""
    text = result_text([result] if isinstance(result, dict) else result)
    return text or (result if isinstance(result, str) else json_text(result))
