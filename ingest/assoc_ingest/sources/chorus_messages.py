"""The messages of a Chorus conversation.

A line has a type: user, assistant, tool_use, tool_result, error, system, since some version
research_progress and research_result. `content` is a text, rarely a list of blocks; of a call it
is only a phrase, the input stands in `toolInput`. `claudeMessage` is the message as the SDK gave
it: the only place of thinking, and repeated on the line of each call that it makes.

```json
{"uuid":"m2","type":"tool_use","content":"Using tool: Read","timestamp":"2026-01-05T10:00:04.000Z",
 "toolName":"Read","toolInput":{"file_path":"a.ts"},"toolUseId":"toolu_0Demo1","claudeMessage":{}}
```

A turn ends with an `assistant` line and a `system` line that state the same totals of the turn:
counted once, the `system` line's where there is one. They stand again in the linked session's own
transcript, which is why views leave out the usage of a session that has a linked one.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from ..model import Line, Record, SessionEntry, Usage
from .chat_reader import ChatReader
from .claude_tools import result_text
from .fields import json_text, mapping, obvious_text, placeholder, string
from .jsonl import JSONObject

_TYPES = frozenset(
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
_LEVELS = 8  # of lists in lists; a line may nest a thousand
_TOKENS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens")


def _is_message(value: JSONObject) -> bool:
    return string(value.get("type")) in _TYPES and "content" in value


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
                self._user(value)
            elif kind in ("assistant", "research_result"):
                self._assistant(value, raw)
            elif kind == "tool_use":
                self._tool_use(value, raw)
            elif kind == "tool_result":
                self._tool_result(value, raw)
            else:
                self._notice(kind, value)
            if kind in ("assistant", "system"):
                self._turn(value, raw)
                window = self.whole(value, "contextWindow") or window
        key = self.claim.session_key
        if window is not None and key is not None:
            self.records.append(SessionEntry(key, "meta", context_window=window))
        return self.finish()

    def _user(self, value: JSONObject) -> None:
        content = value.get("content")
        for block in content if isinstance(content, list) else [content]:
            part = mapping(block)
            if part.get("type") == "tool_result":
                self.answer(result_text(part.get("content")), None, is_error=False)
            elif part.get("type") == "image":
                self.say("image", placeholder(part), "user")
            else:
                self.say("prompt", _plain(block), "user")

    def _assistant(self, value: JSONObject, raw: JSONObject) -> None:
        blocks = _blocks(raw)
        self.model = self.name(mapping(raw.get("message")), "model")
        if not any(block.get("type") == "tool_use" for block in blocks):
            self._thinking(blocks)  # else it stands on the line of the first call
        text = _plain(value.get("content"))
        sources = [
            " ".join(filter(None, (string(item.get("title")), string(item.get("url")))))
            for item in self.items(value, "researchSources")
        ]
        self.say("text", "\n".join([text, *sources]), "assistant")

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

    def _tool_result(self, value: JSONObject, raw: JSONObject) -> None:
        identity = self.text(value, "toolUseId")
        content = value.get("content")
        for block in _blocks(raw):  # `content` is the text of a list, images and all
            if block.get("type") == "tool_result" and block.get("tool_use_id") == identity:
                content = block.get("content")
        if isinstance(content, str) and content.startswith("[{"):
            content = _decoded(content)
        self.answer(result_text(content), identity, is_error=value.get("isToolError") is True)

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

    def _turn(self, value: JSONObject, raw: JSONObject) -> None:
        """Note what a turn cost. Its two lines state the same numbers, which are its key."""
        read, wrote, cached, kept = (self.count(value, key) for key in _TOKENS)
        cost = self.number(value, "costUsd")
        if not any((read, wrote, cached, kept, cost)):
            return
        duration = self.whole(value, "durationMs")
        stated: tuple[object, ...] = (duration, cost, read, wrote, cached, kept)
        if duration is None and cost is None:  # a turn that was broken off has no second line
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


def _blocks(raw: JSONObject) -> list[JSONObject]:
    content = mapping(raw.get("message")).get("content")
    return [mapping(block) for block in content] if isinstance(content, list) else []


def _plain(content: object, levels: int = _LEVELS) -> str:
    if isinstance(content, list):
        texts = (_plain(item, levels - 1) for item in content) if levels else ()
        return "\n".join(filter(None, texts))
    return content if isinstance(content, str) else obvious_text(content)


def _decoded(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
