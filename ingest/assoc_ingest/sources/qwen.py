"""Qwen Code: conversations with Alibaba's agent for the terminal, below `~/.qwen`.

```
projects/<cwd>/chats/<session>.jsonl                        a conversation; `archive/` has others
projects/<cwd>/subagents/<session>/agent-<agent>.jsonl      a subagent
projects/<cwd>/subagents/<session>/agent-<agent>.meta.json  its type, task and call
```

`QWEN_HOME` replaces `~/.qwen`, and conversations are where `QWEN_RUNTIME_DIR` says, or a setting
that is not read. Characters of a directory that are no ASCII letters or digits are `-` in its name.
The program deletes no conversations. Learned from the packages of the versions 0.15.10 and 0.24.4.

`oauth_creds.json`, `mcp-oauth-tokens*.json`, `google_accounts.json`, `settings.json*` and `.env*`
contain credentials and are never opened. Not read: other files that are named after a session, and
conversations of the first versions, `tmp/<hash>/chats/*.json`, which are those of Gemini CLI.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..fields import json_text, mapping, obvious_text, string, without
from ..records import BY_META, DECLINED, AgentLink, AgentMeta, Record, Superseded, WorkingDirectory
from ..records import Context as Fact
from ..source import DOCUMENT, LOG, Claim, Context, Line
from .chat_reader import AgentSource, ChatReader, actions, exit_code, image_in, readable
from .reader import JSONObject, Reader
from .tokens import beside_cache

# ------------------------------------------------------------------------------------------------
# The records of a Qwen Code conversation.
#
# ```json
# {"uuid":"r2","parentUuid":"r1","sessionId":"s","timestamp":"..","type":"assistant","cwd":"/srv",
#  "version":"0.24.4","gitBranch":"main","model":"m","message":{"role":"model","parts":[
#  {"text":"..","thought":true},{"functionCall":{"id":"c1","name":"n","args":{}}}]},
#  "usageMetadata":{"promptTokenCount":1024,"cachedContentTokenCount":600,
#  "candidatesTokenCount":50,"thoughtsTokenCount":10,"totalTokenCount":1074}}
# ```
#
# - `user`: what was typed; with a `subtype`, it was typed while tools ran (`mid_turn_user_message`)
#   or spoken (`realtime_message`), or the program wrote it. The program adds parts to it: after an
#   `at_command`, which names files, all but the first; in a tag, what a hook said.
# - `tool_result`: a `functionResponse` with `output` or `error`, and `toolCallResult` with `callId`
#   and `status`, `success error cancelled`. Its `resultDisplay`, what the person saw, is left out.
# - `system`: `subtype` says what `systemPayload` is: a `slash_command` that a person typed and what
#   it printed, the summary of a `chat_compression` with the history that the model gets instead, a
#   `custom_title`, of which `titleSource` says if the program chose it. Others are kept as they
#   are, without texts that they repeat: calls in `ui_telemetry`, a history in `agent_bootstrap`.
#   The `parentUuid` of a `rewind` is that of the first prompt that it takes back, null for all.
# - **Forks** begin with the records of their parent that were not taken back, with the same uuids
#   and times; each says so in `forkedFrom`.
# - **Tokens** are those of one request. The prompt includes what was read from the cache, and what
#   was written to it, which is not told apart. Reasoning is part of the candidates or not, as the
#   provider has it, but always of the total, beyond the prompt. No line states costs.
# - **Subagents** write such records without a model; the first has their task. Their id is
#   `<type>-<call>`; since 0.24, `toolUseId` of `.meta.json` states the call.


_action_of = actions(
    run="run_shell_command exec monitor",
    read="read_file read_many_files web_fetch zoom_image display_image read_mcp_resource",
    edit="edit replace write_file notebook_edit",
    search="grep_search search_file_content glob list_directory lsp web_search google_web_search",
    plan="todo_write enter_plan_mode exit_plan_mode task_create task_update task_list",
    spawn="agent task create_sub_session workflow",
    ask="ask_user_question",
)

_USERS = {
    "": "prompt", "realtime_message": "prompt", "mid_turn_user_message": "queued_prompt",
    "notification": "task_notification", "cron": "meta", "goal_runtime": "meta",
}  # fmt: skip
"""The kind of the rows of a user record, by subtype."""

_KEPT = (
    *("agent_bootstrap", "agent_retry", "agent_session_ready", "at_command"),
    *("attribution_snapshot", "background_task_completed", "branch_checkpoint", "goal_state"),
    *("goal_turn_end", "file_history_snapshot", "omni_recall", "parent_session", "session_model"),
    *("session_artifact_event", "session_artifact_snapshot", "session_source"),
    *("session_sources_snapshot", "turn_result", "ui_telemetry", "user_text_elements"),
)
"""System records that are not part of the conversation; they are kept unchanged."""

_READ = ("agent_launch_prompt", "chat_compression", "custom_title", "rewind", "slash_command")
TYPES = frozenset(f"user/{subtype}" for subtype in _USERS).union(
    ["assistant/", "assistant/realtime_message", "tool_result/", "tool_result/goal_runtime"],
    (f"system/{subtype}" for subtype in (*_READ, *_KEPT)),
)

_COUNTS = tuple(f"{name}TokenCount" for name in ("prompt", "candidates", "total", "cachedContent"))
_ADDED = ("<qwen:user-prompt-submit-context>", "<system-reminder>")
_IN_ROWS = (
    *("sessionId", "cwd", "version", "gitBranch", "model", "forkedFrom", "agentId", "isSidechain"),
    *("agentName", "provenance", "role", "parts", "callId", "status", "durationMs"),
    "resultDisplay",
)
_REPEATED = (
    *("hookContext", "history", "compressedHistory", "customTitle", "rawCommand"),
    *("function_args", "response_text"),
)
_INNER = {"message": _IN_ROWS, "toolCallResult": _IN_ROWS, "systemPayload": _REPEATED}
"""What of a record, and of an object in it, has columns or repeats what others have."""

_FACTS = (("first_cwd", "cwd"), ("git_branch", "gitBranch"), ("agent_version", "version"))
_MOST_PROMPTS, _LONGEST_ID = 100, 36  # of the prompts that a later rewind can find


def encoded(path: str) -> str:
    """Return the name of the directory that has the conversations of a working directory."""
    path = path.lower() if path[1:2] == ":" else path
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in path)


class Records(ChatReader):
    """Reads the records of one conversation or subagent.

    Later lines need the facts so far, and what is before the last prompts.
    """

    action_of = staticmethod(_action_of)

    @staticmethod
    def is_ours(value: JSONObject) -> bool:
        is_kind = value.get("type") in ("user", "assistant", "tool_result", "system")
        return is_kind and "uuid" in value

    def type_of(self, value: JSONObject, type_key: str) -> tuple[str, str]:
        return string(value.get(type_key)) or "", string(value.get("subtype")) or ""

    def take(self, value: JSONObject) -> None:
        kind, subtype = self.line_type
        self.begin(value, is_message=None)
        self.parent = self.name(value, "parentUuid")
        for name, key in _FACTS:
            text = self.name(value, key)
            if text is not None and text != self.context.get(name):
                self.context[name] = text
                self.fact(name, text)
                place = WorkingDirectory(text, encoded(text), self.start)
                self.records.append(place if key == "cwd" else Fact(name, text, self.start))
        if self.claim.agent_key is None:
            self.fact("forked_from_key", self.name(self.mapping(value, "forkedFrom"), "sessionId"))
        if kind == "user":
            self._user(subtype, value)
        elif kind == "assistant":
            self._assistant(value)
        elif kind == "tool_result":
            self._tool_result(value)
        else:
            self._system(subtype, value)
        self.keep_rest(value, ("parentUuid",), _bare)

    def _parts(self, value: JSONObject) -> list[JSONObject]:
        return self.items(self.mapping(value, "message"), "parts")

    def _user(self, subtype: str, value: JSONObject) -> None:
        kind = _USERS.get(subtype, "meta")
        if self.claim.agent_key is not None and kind == "prompt":
            is_note = value.get("externalInputKind") == "notification"
            kind = "task_notification" if is_note else "agent_prompt"
        elif not subtype and self.parent is not None:
            prompt = [self.parent[:_LONGEST_ID], self.start]
            self.context["prompts"] = [*self.context.get("prompts", ()), prompt][-_MOST_PROMPTS:]
        has_files = not subtype and self.context.pop("names_files", False)
        for number, part in enumerate(self._parts(value)):
            text = string(part.get("text")) or ""
            is_added = text.lstrip().startswith(_ADDED) or (text and number and has_files)
            self._say_part("meta" if is_added else kind, part)

    def _say_part(self, kind: str, part: JSONObject) -> None:
        is_answer = kind in ("text", "thinking")
        role = "assistant" if is_answer else "user" if "prompt" in kind else "system"
        if (media := _media(part)) is not None:
            self.say("image", media, role)
        elif text := self.text(part, "text") or obvious_text(part):
            self.say(kind, text, role)

    def _assistant(self, value: JSONObject) -> None:
        self.model = self.name(value, "model")
        for part in self._parts(value):
            if "functionCall" in part:
                call = self.mapping(part, "functionCall")
                arguments = call.get("args") or {}
                name, identity = self.text(call, "name"), self.text(call, "id")
                self.call(name, mapping(arguments), json_text(arguments), identity)
            else:
                is_thought = part.get("thought") is True
                self._say_part("thinking" if is_thought else "text", part)
        usage, key = self.mapping(value, "usageMetadata"), self.name(value, "uuid")
        given, candidates, total, cached = (self.count(usage, key) for key in _COUNTS)
        output = total - given if given and total > given else candidates
        if key is not None and (given or output):
            self.use(key, beside_cache(given, output, min(cached, given)))

    def _tool_result(self, value: JSONObject) -> None:
        stated = self.mapping(value, "toolCallResult")
        status, identity = stated.get("status"), self.text(stated, "callId")
        for part in self._parts(value):
            if "functionResponse" not in part:
                self._say_part("meta", part)
                continue
            response = self.mapping(part, "functionResponse")
            text = self._output(response)
            code = exit_code(text, "\nExit Code: ", "\n")
            is_error = status == "error" or "error" in mapping(response.get("response"))
            self.answer(
                text,
                self.text(response, "id") or identity,
                is_error=is_error or bool(code),
                status=DECLINED if status == "cancelled" else None,
                name=self.text(response, "name"),
                exit_code=code,
                duration_ms=self.whole(stated, "durationMs"),
            )

    def _output(self, response: JSONObject) -> str:
        stated = mapping(response.get("response"))
        text = string(stated.get("output")) or string(stated.get("error")) or obvious_text(stated)
        return "\n".join(filter(None, [text, *map(_media, self.items(response, "parts"))]))

    def _system(self, subtype: str, value: JSONObject) -> None:
        payload = self.mapping(value, "systemPayload")
        if subtype == "slash_command":
            if payload.get("phase") != "result":  # which repeats the command
                self.say("command", self.text(payload, "rawCommand") or "", "user")
            for text in filter(None, map(obvious_text, self.items(payload, "outputHistoryItems"))):
                self.say("command_output", text, "system")
        elif subtype == "chat_compression":
            history = self.items(payload, "compressedHistory")
            parts = self.items(history[0], "parts") if history else []
            self.say("compact_summary", "\n".join(map(obvious_text, parts)), "system")
        elif subtype == "custom_title":
            name = "ai_title" if payload.get("titleSource") == "auto" else "custom_title"
            self.fact(name, self.text(payload, "customTitle"))
        elif subtype == "agent_launch_prompt":
            self.say("agent_prompt", self.text(payload, "displayText") or "", "user")
        elif subtype == "rewind":
            self._rewind(value)
        elif subtype == "at_command":
            self.context["names_files"] = payload.get("status") == "success"
        elif subtype not in _KEPT and (text := obvious_text(payload or value)):
            self.say("system", text, "system")

    def _rewind(self, value: JSONObject) -> None:
        """Mark what was taken back, which is not in a fork."""
        places: dict[str, int] = dict(self.context.get("prompts", ()))
        is_all = value.get("parentUuid", "") is None
        first = 0 if is_all else places.get((self.parent or "")[:_LONGEST_ID])
        if first is not None:
            self.records.append(Superseded(self.moment, None, first, self.start))


def _media(part: JSONObject) -> str | None:
    """Return the description of a part that is an image or a file, None for other parts."""
    shown = image_in(mapping(part.get("inlineData")))
    return shown or string(mapping(part.get("fileData")).get("fileUri"))


def _bare(value: JSONObject) -> JSONObject:
    """Return a record without what its rows have, and without opaque fields."""
    bare = without(value, _IN_ROWS)
    for key, taken in _INNER.items():
        if isinstance(inner := bare.get(key), dict):
            bare[key] = without(inner, taken)
    payload = mapping(bare.get("systemPayload"))
    if isinstance(event := payload.get("uiEvent"), dict):
        payload["uiEvent"] = without(event, _REPEATED)
    return mapping(readable(bare))


class Qwen(AgentSource):
    """The source of kind `qwen`."""

    name, label = "qwen", "Qwen Code"
    unread_places = (
        *("agents", "arena", "artifacts", "bin", "boards", "channels", "commands", "debug", "ide"),
        *("extension*", "file-history", "fork-profiles", "history", "insights", "locales", "plans"),
        *("memories", "output-styles", "rules", "sandbox", "scratch-workspaces", "skills", "tmp"),
        *("session*", "tasks", "team*", "todos", "updates", "usage", "workflows", "worktrees"),
    )
    checked = "0.15.10 and 0.24.4"
    known_lines = TYPES
    variable, place = "QWEN_HOME", ".qwen"
    resume = ("qwen", "--resume", "{}")

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """A variable of its own names where conversations are from then on."""
        other = environment.get("QWEN_RUNTIME_DIR")
        return [*super().default_roots(environment, home), *([other] if other else [])]

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Credentials, and settings that can contain some."""
        name = parts[0].casefold()
        is_private = name.startswith(("settings.json", ".env", "google_accounts.json"))
        return len(parts) == 1 and (is_private or "oauth" in name)

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        is_near = len(parts) < 3 or parts[2] in ("chats", "subagents")
        return parts[0] == "projects" and len(parts) < 5 and is_near

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("projects", place, "chats", name) | ("projects", place, "chats", "archive", name):
                session = name.removesuffix(".jsonl")
                if name != session and _is_session(session):
                    return Claim(self.name, "transcript", session, None, place, place)
            case ("projects", place, "subagents", session, name) if _is_session(session):
                for kind, ending in (("agent", ".jsonl"), ("agent_meta", ".meta.json")):
                    agent = name.removeprefix("agent-").removesuffix(ending)
                    if agent and name == f"agent-{agent}{ending}":
                        return Claim(self.name, kind, session, agent, place, place)
        return None

    def shape(self, claim: Claim) -> str:
        """Conversations grow; what is stated of a subagent is rewritten."""
        return DOCUMENT if claim.kind == "agent_meta" else LOG

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; what a rewind takes back comes from earlier lines."""
        if claim.kind == "agent_meta":
            return _agent_meta(claim, lines), context
        return Records(claim, context=context).read_lines(lines)


def _is_session(name: str) -> bool:
    return 32 <= len(name) <= 36 and set(name) <= set("0123456789abcdefABCDEF-")


def _agent_meta(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read what is stated of a subagent."""
    reader = Reader(claim)
    for value in reader.document(lines):
        kind, agent, model = (reader.name(value, key) for key in ("agentType", "agentId", "model"))
        about, depth = reader.text(value, "description"), reader.whole(value, "depth")
        reader.records.append(AgentMeta(kind, about, None, model, depth, None, None))
        call = reader.name(value, "toolUseId") or (agent or "").removeprefix(f"{kind}-")
        if call and call != agent and claim.agent_key is not None:
            reader.records.append(AgentLink(claim.agent_key, call, BY_META, 0))
    return reader.finish()
