"""The items of a rollout: messages, thoughts, tool calls and their outputs.

```json
{"type":"message","role":"user","content":[{"type":"input_text","text":"tidy the menus"}]}
{"type":"reasoning","summary":[{"type":"summary_text","text":"..."}],"encrypted_content":"..."}
{"type":"function_call","name":"shell","arguments":"{\\"command\\":[\\"ls\\"]}","call_id":"c1"}
{"type":"function_call_output","call_id":"c1","output":"..."}
{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch","call_id":"c2"}
{"type":"local_shell_call","action":{"type":"exec","command":["ls"]},"call_id":"c3"}
{"type":"web_search_call","action":{"type":"search","query":"frost dates"}}
{"type":"agent_message","author":"/root","recipient":"/root/a","content":[]}
```

Items have no id that stays the same in copies. So the id of a line is made from its turn and what
it says, with the number of equal ones before it in the turn: a fork that copies only some lines of
its parent copies these ids. In versions where turns have no ids, it is made from what it says and
from the id of the line before: there, forks copy all lines.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from ...fields import json_text, left_over, mapping, obvious_text, string, without
from ...project_paths import comparable, slashed
from ...records import (
    SEARCH,
    AgentLink,
    Message,
    Record,
    Statement,
    ToolCall,
    WorkingDirectory,
)
from ...source import Claim
from ..chat_reader import ChatReader
from ..claude.paths import folded
from ..claude.tools import BY_RESULT, ERROR, OK
from ..jsonl import JSONObject
from . import texts, tools
from .thread import Thread

_MOST_OPEN = 256  # calls without an output that are remembered
_MOST_PROMPTS = 500  # prompts whose places are remembered
_MOST_ITEMS = 1000  # messages of a turn that are told apart
_SILENT = (
    "compaction", "context_compaction", "ghost_snapshot", "additional_tools",
    "configuration_update", "other",
)  # fmt: skip


class Items(ChatReader):
    """Reads items. `context` is what earlier lines said:

    - `open`: calls without an output, each with what events said about how it ended;
    - `prompts`: where the last prompts are that were not rolled back;
    - `session`: the session that a subagent belongs to; `hidden`: nobody asked for this thread;
    - `interrupted`: the last item said that the turn was interrupted.
    """

    def __init__(self, claim: Claim, context: dict[str, Any], thread: Thread) -> None:
        super().__init__(claim)
        self.context = context
        self.thread = thread
        self._open: dict[str, list[Any]] = context.setdefault("open", {})

    def finish(self) -> list[Record]:
        """Return everything that was gathered. A thread that nobody asked for is hidden."""
        if "hidden" in self.context:
            self._facts["sidechain_count"] = self._message_count
        return super().finish()

    def item(self, item: JSONObject) -> None:
        """Take an item in."""
        kind = string(item.get("type")) or ""
        self.identify(kind, item)
        self.counts_next = True
        self.context.pop("interrupted", None)
        if kind in _ITEMS:
            _ITEMS[kind](self, item)
        elif kind.endswith("_output"):
            self._output(item)
        elif kind not in _SILENT and (text := obvious_text(item)):
            self.say("system", text, "system")
        if kind in ("reasoning", "agent_message") or kind.endswith("_call"):
            self.thread.state["answered"] = True

    def identify(self, kind: str, item: JSONObject) -> None:
        """Give the rows that follow an id, which is the same in all copies of the line."""
        self._uuid = self._identity(kind, item)

    def say(self, kind: str, text: str, role: str, *, is_error: bool = False) -> None:
        """Add the row of the next block. The title of a fork is not the prompt of its parent."""
        known = self._facts.get("first_prompt")
        super().say(kind, text, role, is_error=is_error)
        if known is None and self.thread.is_inherited:
            self._facts.pop("first_prompt", None)
        message = self.records[-1]
        if kind == "meta" and isinstance(message, Message):
            self.records[-1] = message._replace(is_meta=1)

    def directory(self, cwd: str | None) -> None:
        """Note a working directory; the first one is that of the project."""
        if cwd is None or cwd == self.context.get("cwd"):
            return
        is_first = "cwd" not in self.context
        self.context["cwd"] = cwd[:4096]
        self.records.append(WorkingDirectory(slashed(cwd), comparable(cwd), self.start))
        if is_first:
            self.fact("first_cwd", cwd)
            self.settle(cwd)

    def _identity(self, kind: str, item: JSONObject) -> str | None:
        """Return the id of the line, None if its turn has too many to tell equal ones apart."""
        state, call = self.thread.state, string(item.get("call_id"))
        told: object = call
        if call is None:
            told = {key: value for key, value in item.items() if key in tools.TELLING}
        parts = [self.thread.turn or state.get("chain"), kind, told]
        identity = blake2b(json_text(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()
        if self.thread.turn is None:
            state["chain"] = identity
            return identity
        if call is not None:
            return identity
        seen = state.setdefault("items", {})
        if identity[:12] not in seen and len(seen) >= _MOST_ITEMS:
            return None
        count = seen[identity[:12]] = seen.get(identity[:12], -1) + 1
        return f"{identity}-{count}" if count else identity

    # -- messages --------------------------------------------------------------------------------

    def _message(self, item: JSONObject) -> None:
        role = string(item.get("role")) or ""
        blocks = self.items(item, "content")
        for block, kind in zip(blocks, texts.kinds_of(item, len(blocks)), strict=True):
            url, text = string(block.get("image_url")), self.text(block, "text")
            if url is not None:
                self.say("image", tools.image(url), "assistant" if role == "assistant" else "user")
            elif text is not None and role == "assistant":
                self.say("text", text, "assistant")
                self.thread.state["answered"] = True
            elif text is not None and role == "user":
                self._typed(text, kind)
            elif text is not None:
                self.say("meta", text, "system")

    def _typed(self, text: str, stated: str | None) -> None:
        for kind, part in texts.said_in(text, stated):
            if kind == "prompt" and self._is_of_agent():
                kind = "agent_prompt"
            self.say(kind, part, "system" if kind == "meta" else "user")
            if kind in ("prompt", "agent_prompt"):
                self._note_prompt()
            if part.startswith("<environment_context>") and (cwd := texts.inside(part, "cwd")):
                self.directory(cwd)
            if kind == "interrupt":
                self.context["interrupted"] = True

    def _note_prompt(self) -> None:
        """Remember where a prompt is, in case that it is rolled back."""
        prompts = self.context.setdefault("prompts", [])
        if prompts[-1:] != [self.start]:
            prompts.append(self.start)
            del prompts[:-_MOST_PROMPTS]

    def _is_of_agent(self) -> bool:
        """Does a prompt come from another agent? A subagent's own ones do."""
        is_agent = self.claim.agent_key is not None or "hidden" in self.context
        return is_agent and not self.thread.is_inherited

    def _reasoning(self, item: JSONObject) -> None:
        summary = "\n\n".join(filter(None, map(obvious_text, self.items(item, "summary"))))
        text = summary or obvious_text(item.get("content"))
        if text:
            self.say("thinking", text, "assistant")

    def _mail(self, item: JSONObject) -> None:
        text = tools.output_text(item.get("content")) or self.text(item, "message") or ""
        names = [string(item.get(key)) or "?" for key in ("author", "recipient")]
        self.say("agent_message", f"{' → '.join(names)}: {text}", "user")

    def _image(self, item: JSONObject) -> None:
        data = string(item.get("result"))
        image = tools.image(f"data:image/png;base64,{data}") if data else "[image]"
        prompt = string(item.get("revised_prompt"))
        self.say("image", f"{image} {prompt}" if prompt else image, "assistant")

    # -- calls -----------------------------------------------------------------------------------

    def _function_call(self, item: JSONObject) -> None:
        text = self.text(item, "arguments") or ""
        self._call(item, tools.parsed(text), text)

    def _custom_call(self, item: JSONObject) -> None:
        text = self.text(item, "input") or ""
        self._call(item, {}, json_text({"input": text}), text)

    def _other_call(self, item: JSONObject) -> None:
        arguments = mapping(item.get("action")) or mapping(item.get("arguments"))
        arguments = without(arguments, tools.DROPPED)
        name = (string(item.get("type")) or "").removesuffix("_call")
        self._call({"name": name, **item}, arguments, json_text(arguments))

    def _call(
        self, item: JSONObject, arguments: JSONObject, text: str, given: str | None = None
    ) -> None:
        """Add a call; `given` is its input as it stands, if `text` wraps it."""
        name, space = self.name(item, "name"), string(item.get("namespace"))
        call = self.name(item, "call_id") or (
            self.name(item, "id") if item.get("type") == "local_shell_call" else None
        )
        deed = tools.deed(
            name, arguments, text if given is None else given, self.context.get("cwd")
        )
        steps = list(tools.todos(arguments)) if name == "update_plan" else []
        block = self._block
        full = f"{space}.{name}" if space and name else name
        self.call(full, deed.target, text, call, action=deed.action, paths=deed.paths)
        if call is not None:
            self._open[call] = []
            if len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]
        session = self.claim.session_key or self.context.get("session")
        if steps and session is not None:
            self.records.append(
                Statement(
                    "todos", session, None, json_text({"items": steps}), None, self.moment, call,
                    self.start, self.length, block,
                )
            )  # fmt: skip

    def _web_search(self, item: JSONObject) -> None:
        """Add a search, which has no id and no output: it has ended."""
        action = mapping(item.get("action"))
        self.call("web_search", action, json_text(action), None, action=SEARCH)
        call = self.records[-1]
        if isinstance(call, ToolCall):
            self.records[-1] = call._replace(status=OK)

    def _output(self, item: JSONObject) -> None:
        call = self.name(item, "call_id")
        found = tools.outcome(item.get("output"))
        stated = self._open.pop(call, None) if call is not None else None
        if stated:
            status, code, time = stated
            found = found._replace(
                status=found.status if status == OK else status,
                exit_code=code if found.exit_code is None else found.exit_code,
                duration_ms=time if found.duration_ms is None else found.duration_ms,
            )
        self.end(found, call)
        if call is not None and found.text.startswith('{"agent_id"'):
            self._link_agent(found.text, call)

    def end(self, found: tools.Outcome, call: str | None, *, is_timed: bool = True) -> None:
        """Add the output of a call, and how it ended."""
        text, status, code, time = found
        self.answer(
            text, call, is_error=status == ERROR, is_timed=is_timed, status=status,
            exit_code=code, duration_ms=time,
        )  # fmt: skip

    def _link_agent(self, text: str, call: str) -> None:
        """Link a call to the thread that its output names."""
        agent = string(tools.parsed(text).get("agent_id"))
        if agent is not None:
            self.records.append(AgentLink(folded(agent), call, BY_RESULT, self.start))

    def keep_payload(self, kind: str, payload: JSONObject, taken: tuple[str, ...] = ()) -> None:
        """Keep what a line states that has no row, without what nobody can read."""
        rest = mapping(tools.without_data(payload))
        self.keep(left_over(rest, taken), kind=kind, moment=self.moment, is_silent=True)


# Not in the reader: it would refer to itself, and stay until cycles are collected.
_ITEMS: dict[str, Callable[[Items, JSONObject], None]] = {
    "message": Items._message,
    "reasoning": Items._reasoning,
    "function_call": Items._function_call,
    "custom_tool_call": Items._custom_call,
    "local_shell_call": Items._other_call,
    "tool_search_call": Items._other_call,
    "web_search_call": Items._web_search,
    "image_generation_call": Items._image,
    "agent_message": Items._mail,
}
"""How items are read, by their type."""
