"""The messages of a Chorus conversation.

A line has a type: user, assistant, tool_use, tool_result, error, system, and in later versions
research_progress and research_result. `content` is a text, rarely a list of blocks (text, tool_use,
tool_result, image); for a call it is only a phrase, and the input is in `toolInput`.
`claudeMessage` is the message from the SDK: the only place of thinking, repeated on the line of
each of its calls. Calls and results had no ids at first: such a result answers the last open call,
or the last open call of the tool that it names.

```json
{"uuid":"m2","type":"tool_use","content":"Using tool: Read","timestamp":"2026-01-05T10:00:04.000Z",
 "toolName":"Read","toolInput":{"file_path":"a.ts"},"toolUseId":"toolu_0Demo1","claudeMessage":{}}
```

A turn ends with an `assistant` line and a `system` line that state the same totals of the turn.
They are counted once, from the `system` line if there is one. The linked session's own transcript
has them, too, so views leave out the usage of a session that has a linked one.

All other fields of a line (`sessionId`, `numTurns`, `searchCount`, and everything in
`claudeMessage` except its content) are kept as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..fast_json import orjson
from ..fields import json_text, mapping, obvious_text, placeholder, string
from ..records import Record, SessionEntry, Usage
from ..source import Line
from .chat_reader import ChatReader
from .claude.tools import result_text
from .jsonl import JSONObject

TYPES = frozenset(
    [
        "user",
        "assistant",
        "tool_use",
        "tool_result",
        "error",
        "system",
        "research_progress",
        "research_result",
    ]
)
_BLOCKS = ("text", "tool_use", "tool_result", "thinking", "image", "document")
_COLUMNS = {
    "tool_use": ("toolName", "toolInput", "toolUseId"),
    "tool_result": ("toolUseId", "isToolError"),
}
_LEVELS = 8  # of nested lists; a line may have a thousand
_TOKENS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens")


def _is_message(value: JSONObject) -> bool:
    return string(value.get("type")) in TYPES and "content" in value


class Messages(ChatReader):
    """Reads the lines of one conversation."""

    def read(self, lines: Iterable[Line]) -> list[Record]:
        """Turn lines into records."""
        window: int | None = None
        for value in self.objects(lines, _is_message):
            kind = string(value.get("type"))
            self.begin(value, is_message=kind in ("user", "assistant"))
            raw = mapping(value.get("claudeMessage"))
            if kind == "user":
                self._blocks(value.get("content"), "prompt", "user")
            elif kind in ("assistant", "research_result"):
                self._assistant(value, raw)
            elif kind == "tool_use":
                self._tool_use(value, raw)
            elif kind == "tool_result":
                self._tool_result(value)
            else:
                self._notice(kind, value)
            taken = _taken(kind, value)
            if kind in ("assistant", "system"):
                taken |= self._turn(value, raw)
                window = self.whole(value, "contextWindow") or window
            self.keep_rest(value, taken, _bare)
        key = self.claim.session_key
        if key is not None:
            self.records.append(
                SessionEntry(key, "meta", context_window=window, agent_key=self.claim.named_agent)
            )
        return self.finish()

    def _blocks(self, content: object, kind: str, role: str) -> None:
        """Add the rows of a content: texts as messages of this kind, calls, and results."""
        blocks = content if isinstance(content, list) and content else [content]
        for place, block in enumerate(blocks):
            part = mapping(block)
            what = part.get("type")
            if what == "tool_use":
                self._call_block(part, place)
            elif what == "tool_result":
                said = part["content"] if "content" in part else part.get("text")
                is_error = part.get("is_error") is True
                name = string(part.get("name"))
                identity = string(part.get("tool_use_id")) or string(part.get("toolUseId"))
                self.answer(result_text(said), identity, is_error=is_error, name=name)
            elif what == "thinking":
                self.say("thinking", string(part.get("thinking")) or "", role)
            elif what in ("image", "document"):
                self.say("image", placeholder(part), role)
            else:
                self.say(kind, _plain(block), role)

    def _call_block(self, block: JSONObject, place: int) -> None:
        arguments = mapping(block.get("input"))

        def exact() -> object:
            content = self.exact("content", None)
            same = content[place] if isinstance(content, list) else content
            return mapping(same).get("input", arguments)

        identity = string(block.get("id")) or string(block.get("toolUseId"))
        self.call(string(block.get("name")), arguments, json_text(arguments, exact), identity)

    def _assistant(self, value: JSONObject, raw: JSONObject) -> None:
        blocks = _blocks(raw)
        self.model = self.name(mapping(raw.get("message")), "model")
        if not any(block.get("type") == "tool_use" for block in blocks):
            self._thinking(blocks)  # otherwise it is on the line of the first call
        sources = [
            " ".join(filter(None, (string(item.get("title")), string(item.get("url")))))
            for item in self.items(value, "researchSources")
        ]
        content = value.get("content")
        if sources and not isinstance(content, list):
            content = "\n".join([_plain(content), *sources])
            sources = []
        self._blocks(content, "text", "assistant")
        if sources:
            self.say("text", "\n".join(sources), "assistant")

    def _tool_use(self, value: JSONObject, raw: JSONObject) -> None:
        blocks = _blocks(raw)
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        identity = self.text(value, "toolUseId")
        self.model = self.name(mapping(raw.get("message")), "model")
        if calls and calls[0].get("id") == identity:
            self._thinking(blocks)
        arguments = self.mapping(value, "toolInput")
        text = json_text(arguments, lambda: self.exact("toolInput", arguments))
        self.call(self.text(value, "toolName"), arguments, text, identity)

    def _tool_result(self, value: JSONObject) -> None:
        identity, name = self.text(value, "toolUseId"), self.text(value, "toolName")
        is_error = value.get("isToolError") is True
        self.answer(result_text(_result(value)), identity, is_error=is_error, name=name)

    def _notice(self, kind: str | None, value: JSONObject) -> None:
        text = _plain(value.get("content"))
        if kind == "error":
            self.say("error", text, "system", is_error=True)
        elif text:
            self.say("system", text, "system")

    def _thinking(self, blocks: list[JSONObject]) -> None:
        for block in blocks:
            if block.get("type") == "thinking":
                self.say("thinking", string(block.get("thinking")) or "", "assistant")

    def _turn(self, value: JSONObject, raw: JSONObject) -> set[str]:
        """Add the usage of a turn, and return the keys that state it, if there are any.

        The two lines of a turn state the same numbers, so these are its key.
        """
        read, wrote, cached, kept = (self.count(value, key) for key in _TOKENS)
        cost = self.number(value, "costUsd")
        if not any((read, wrote, cached, kept, cost)):
            return set()
        duration = self.whole(value, "durationMs")
        stated: tuple[object, ...] = (duration, cost, read, wrote, cached, kept)
        if duration is None and cost is None:  # an interrupted turn has no second line
            stated = (self.text(value, "uuid"), self.start)
        key = " ".join(map(str, ("chorus", self.claim.session_key, *stated)))
        models = [*mapping(raw.get("modelUsage"))]
        model = models[0] if len(models) == 1 else self.model
        self.spend(
            Usage(
                key,
                None,
                None,
                self.text(value, "sessionId"),
                model,
                self.moment,
                read,
                wrote,
                cached,
                kept,
                0,
                0,
                0,
                self.start,
                self.length,
                cost,
                1,
                read,
                wrote,
                cached,
                kept,
            )
        )
        return {"costUsd", *_TOKENS}


def _taken(kind: str | None, value: JSONObject) -> set[str]:
    """Return the keys of a line that become columns, whatever their values are."""
    content = value.get("content")
    taken = set(_COLUMNS.get(kind or "", ()))
    if kind == "tool_use":
        is_said = content == f"Using tool: {value.get('toolName')}"
    elif kind == "tool_result":
        is_said = _result(value) in (content, _decoded(content))
    else:
        blocks = content if isinstance(content, list) else [content]
        is_said = all(isinstance(b, str) or mapping(b).get("type") in _BLOCKS for b in blocks)
    if is_said:
        taken.add("content")
    if kind in ("assistant", "system"):
        taken.add("contextWindow")
    sources = value.get("researchSources")
    if isinstance(sources, list) and all(mapping(s).keys() <= {"title", "url"} for s in sources):
        taken.add("researchSources")
    return taken


def _bare(value: JSONObject) -> JSONObject:
    """Return a line without the content of its SDK message, which is in rows."""
    raw = mapping(value.get("claudeMessage"))
    message = mapping(raw.get("message"))
    if "content" not in message:
        return value
    message = {key: item for key, item in message.items() if key != "content"}
    return {**value, "claudeMessage": {**raw, "message": message}}


def _blocks(raw: JSONObject) -> list[JSONObject]:
    content = mapping(raw.get("message")).get("content")
    return [mapping(block) for block in content] if isinstance(content, list) else []


def _result(value: JSONObject) -> object:
    """Return the output of a tool: `content` is its text, including images."""
    for block in _blocks(mapping(value.get("claudeMessage"))):
        is_answer = block.get("type") == "tool_result"
        if is_answer and block.get("tool_use_id") == value.get("toolUseId"):
            return block.get("content")
    return _decoded(value.get("content"))


def _plain(content: object, levels: int = _LEVELS) -> str:
    if isinstance(content, list):
        texts = (_plain(item, levels - 1) for item in content) if levels else ()
        return "\n".join(filter(None, texts))
    return content if isinstance(content, str) else obvious_text(content)


def _decoded(content: object) -> object:
    """Return the content, decoded if it is the text of a JSON list."""
    if not (isinstance(content, str) and content.startswith("[{")):
        return content
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return content
