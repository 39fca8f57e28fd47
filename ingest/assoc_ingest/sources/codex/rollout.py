"""The lines of a rollout: what a thread of Codex wrote, in every version.

```json
{"timestamp":"2026-05-23T18:25:02.612Z","ordinal":0,"type":"session_meta","payload":{"id":"019e",
 "cwd":"/srv/demo","cli_version":"0.130.0","source":"cli","git":{"branch":"main"}}}
{"timestamp":"...","type":"turn_context","payload":{"turn_id":"019e","cwd":"/srv/demo","model":"gpt-5"}}
{"timestamp":"...","type":"response_item","payload":{"type":"message","role":"user","content":[]}}
{"timestamp":"...","type":"event_msg","payload":{"type":"token_count","info":null}}
```

- `session_meta`: the first one is that of the thread, later ones were copied (`thread`).
- `turn_context`: the model and the working directory of a turn.
- `response_item`: the conversation, complete and in order (`items`).
- `event_msg`: what the client showed. Most events repeat an item and become no rows. They add exit
  codes, durations, titles, errors, what was interrupted, and what was rolled back. Some say what
  no item does: `warning`, `model_reroute`, `hook_completed`, `elicitation_request`, and
  `request_user_input` without a call. `plan_update` repeats a call; `thread_queue_changed`, and the
  line `dynamic_tools_updated`, say nothing that is kept. Learned from the protocol in the public
  source, as of 0.169.
- `compacted`: a summary. Its `replacement_history` repeats old items.
- `token_usage_record`, and events `token_count`: see `tokens`.

Rollouts before September 2025 are bare: the first line is `{"id","timestamp","instructions","git"}`
and the others are items without a time. The first versions wrote one document,
`{"session":{...},"items":[...]}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...fields import json_text, mapping, string
from ...records import ASK, AgentMeta, Record, Superseded
from ...source import Claim, Line
from ..claude.paths import folded
from ..jsonl import JSONObject
from .operations import Operations
from .thread import SPAWN, Thread, session_of, spawn_of
from .tokens import Tokens

_MAX_NAME = 200  # letters of a name that the context keeps


def is_known(value: JSONObject) -> bool:
    """Does the object have the shape of a line of a rollout?"""
    is_typed = isinstance(value.get("type"), str) or "record_type" in value
    return is_typed or isinstance(value.get("payload"), dict)


class Rollout(Operations):
    """Reads the lines of one stretch; `context` is what earlier ones said."""

    def __init__(self, claim: Claim, context: dict[str, Any]) -> None:
        super().__init__(claim, context, Thread(context.setdefault("thread", {})))
        self._tokens = Tokens(self, self.thread.state)

    def read(self, lines: Iterable[Line]) -> list[Record]:
        """Return the records of the lines; `context` then has what later lines need."""
        for value in self.objects(lines, is_known):
            self._line(value)
        return self.finish()

    def read_document(self, lines: Iterable[Line]) -> list[Record]:
        """Return the records of a rollout of the first versions, which is one document."""
        for value in self.document(lines):
            about = mapping(value.get("session"))
            self.begin(about, is_message=None)
            self._bare_meta(about)
            for item in self.items(value, "items"):
                self.item(item)
        return self.finish()

    def type_of(self, value: JSONObject, type_key: str) -> tuple[str, str]:
        """Return the types of a line and of what it carries."""
        payload = mapping(value.get("payload"))
        kind, inner = string(value.get("type")), string(payload.get("type"))
        if inner == "item_completed":
            inner = f"{inner} {string(mapping(payload.get('item')).get('type')) or ''}".strip()
        if kind is None and "record_type" in value:
            inner = string(value["record_type"])
        return kind or "", inner or ""

    def _line(self, value: JSONObject) -> None:
        self.begin(value, is_message=None)
        self.model = self.context.get("model")
        payload = value.get("payload")
        kind = string(value.get("type"))
        if isinstance(payload, dict):
            self.thread.line(value)
            take = _LINES.get(kind or "")
            if take is not None:
                take(self, value, payload)
        elif kind is not None:
            self.item(value)
        elif "id" in value:
            self._bare_meta(value)

    # -- the thread ------------------------------------------------------------------------------

    def _meta(self, value: JSONObject, payload: JSONObject) -> None:
        knew_parent = self.thread.is_marked
        if self.thread.meta(payload):
            self._describe(payload)
            self.keep_payload("session_meta", payload)
        elif not knew_parent and self.thread.is_marked and "is_fork" not in self.context:
            self.fact("forked_from_key", self.thread.state["of"])

    def _bare_meta(self, value: JSONObject) -> None:
        if self.thread.meta(value):
            self._describe(value)
            self.keep_payload("session_meta", value, ("instructions",))

    def _describe(self, payload: JSONObject) -> None:
        """Take in what the thread says about itself."""
        self.fact("agent_version", self.name(payload, "cli_version"))
        self.fact("git_branch", self.name(self.mapping(payload, "git"), "branch"))
        source = payload.get("source")
        self.fact("entrypoint", source if isinstance(source, str) else None)
        parent = string(payload.get("forked_from_id"))
        if parent is not None:
            self.context["is_fork"] = True
            self.fact("forked_from_key", folded(parent))
        self.directory(self.text(payload, "cwd"))
        made_by, spawn = spawn_of(payload)
        session = session_of(payload) if made_by is not None else None
        if self.claim.agent_key is None:
            if made_by is not None:
                self.context["hidden"] = True
            return
        self.context["session"] = session
        self.fact("stated_session_key", session)
        kind = self.name(spawn, "agent_role") or (None if made_by == SPAWN else made_by)
        path, nickname = self.name(spawn, "agent_path"), self.name(spawn, "agent_nickname")
        depth, is_fork = self.whole(spawn, "depth"), int(parent is not None)
        self.records.append(AgentMeta(kind, path, nickname, None, depth, None, is_fork))

    def _turn_context(self, value: JSONObject, payload: JSONObject) -> None:
        self.thread.begin_turn(payload)
        model = self.text(payload, "model")
        if model is not None:
            self.context["model"] = model[:_MAX_NAME]
        self.directory(self.text(payload, "cwd"))
        if not self.thread.is_inherited:
            self.fact("permission_mode", self.name(payload, "approval_policy"))

    # -- events ----------------------------------------------------------------------------------

    def _event(self, value: JSONObject, payload: JSONObject) -> None:
        take = _EVENTS.get(string(payload.get("type")) or "")
        if take is not None:
            take(self, payload)

    def _begin_turn(self, payload: JSONObject) -> None:
        self.thread.begin_turn(payload)

    def _token_count(self, payload: JSONObject) -> None:
        self._tokens.event(
            payload.get("info"),
            self._spender,
            is_inherited=self.thread.is_inherited and self.thread.is_marked,
            is_sure=self.thread.is_sure,
        )

    def _record(self, value: JSONObject, payload: JSONObject) -> None:
        if not (self.thread.is_inherited and self.thread.is_marked):
            self._tokens.record(payload, self._spender, is_sure=self.thread.is_sure)

    @property
    def _spender(self) -> str:
        """The thread whose tokens are counted."""
        return self.thread.id or self.claim.session_key or self.claim.agent_key or ""

    def _title(self, payload: JSONObject) -> None:
        title = string(payload.get("thread_name")) or string(payload.get("name"))
        if title is not None and not self.thread.is_inherited:
            self.fact("custom_title", title[:1000])

    def _aborted(self, payload: JSONObject) -> None:
        """An interruption; newer versions write an item, too, and just before."""
        if not self.context.pop("interrupted", False):
            self.identify("turn_aborted", payload)
            self.say("interrupt", f"[{self.text(payload, 'reason') or 'interrupted'}]", "user")

    def _roll_back(self, payload: JSONObject) -> None:
        """Take back the last prompts and everything after them."""
        prompts, count = self.context.get("prompts", []), self.whole(payload, "num_turns")
        if prompts and count is not None and count > 0:
            first = prompts[-count:][0]
            del prompts[-count:]
            self.records.append(Superseded(self.moment, None, first, self.start))

    def _error(self, payload: JSONObject) -> None:
        self.identify("error", payload)
        self.say("error", self.text(payload, "message") or "error", "system", is_error=True)

    def _warning(self, payload: JSONObject) -> None:
        self._tell("warning", self.text(payload, "message"))

    def _rerouted(self, payload: JSONObject) -> None:
        """Another model answers than the turn asked for, until the next turn."""
        model, asked = self.name(payload, "to_model"), self.name(payload, "from_model")
        if model is None:
            return
        self.context["model"] = model[:_MAX_NAME]
        reason = string(payload.get("reason"))
        about = f" ({reason[:_MAX_NAME]})" if reason else ""
        self._tell("model_reroute", f"{asked or '?'} → {model}{about}")

    def _hook(self, payload: JSONObject) -> None:
        """What a hook said; one that said nothing has no row."""
        run = self.mapping(payload, "run")
        said = [self.text(entry, "text") for entry in self.items(run, "entries")]
        if text := "\n".join(filter(None, said)):
            is_error = run.get("status") in ("failed", "blocked")
            self.identify("hook_completed", {"message": text})
            self.say("hook", text, "system", is_error=is_error)

    def _elicitation(self, payload: JSONObject) -> None:
        """A server asks the person something; earlier versions have no `request`."""
        request = self.mapping(payload, "request") or payload
        text, server = self.text(request, "message"), self.name(payload, "server_name")
        self._tell("elicitation_request", f"{server}: {text}" if server and text else text)

    def _asked(self, payload: JSONObject) -> None:
        """Questions to the person. In most threads, they are those of a call."""
        call = self.name(payload, "call_id")
        if call is None or call in self._open:
            return
        self.identify("operation", {"call_id": call})
        text = json_text({"questions": payload.get("questions")})
        self.call("request_user_input", {}, text, call, action=ASK)

    def _tell(self, kind: str, text: str | None) -> None:
        if text:
            self.identify(kind, {"message": text})
            self.say("system", text, "system")

    def _compacted(self, value: JSONObject, payload: JSONObject) -> None:
        text = self.text(payload, "message")
        if text is not None:
            self.identify("compacted", payload)
            self.say("compact_summary", text, "user")


# Not in the reader, as in `items`.
_LINES: dict[str, Callable[[Rollout, JSONObject, JSONObject], None]] = {
    "session_meta": Rollout._meta,
    "turn_context": Rollout._turn_context,
    "response_item": lambda rollout, value, payload: rollout.item(payload),
    "event_msg": Rollout._event,
    "compacted": Rollout._compacted,
    "token_usage_record": Rollout._record,
}
_EVENTS: dict[str, Callable[[Rollout, JSONObject], None]] = {
    "task_started": Rollout._begin_turn,
    "turn_started": Rollout._begin_turn,
    "token_count": Rollout._token_count,
    "thread_name_updated": Rollout._title,
    "turn_aborted": Rollout._aborted,
    "thread_rolled_back": Rollout._roll_back,
    "error": Rollout._error,
    "stream_error": Rollout._error,
    "warning": Rollout._warning,
    "model_reroute": Rollout._rerouted,
    "hook_completed": Rollout._hook,
    "elicitation_request": Rollout._elicitation,
    "request_user_input": Rollout._asked,
    "exec_command_end": Rollout.ended,
    "patch_apply_end": Rollout.ended,
    "mcp_tool_call_end": Rollout.ended,
    "dynamic_tool_call_response": Rollout.ended,
    "item_completed": Rollout.completed,
    "collab_agent_spawn_end": Rollout.spawned,
    "sub_agent_activity": Rollout.spawned,
}
