r"""pi: conversations with this coding agent, below `~/.pi/agent`.

```
sessions/--<cwd>--/<time>_<id>.jsonl    a conversation; `/`, `\` and `:` of its directory are `-`
<time>_<id>.jsonl                       the same, in a directory that has nothing else
```

`PI_CODING_AGENT_DIR` replaces `~/.pi/agent`; conversations of the second form are where
`PI_CODING_AGENT_SESSION_DIR` says. A file appears with the first answer, and the program deletes
none. `auth.json`, `models.json` and `settings.json` contain keys and are never opened.

The lines are described in `pi_entries`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b

from ..fields import json_text, mapping, number, obvious_text, string, without
from ..records import Record, WorkingDirectory
from ..source import Claim, Context, Line, Listing, Recognition
from .chat_reader import AgentSource, ChatReader, actions, image_in, readable, text_of
from .reader import JSONObject
from .tokens import Counts

# ------------------------------------------------------------------------------------------------
# The entries of a pi conversation, of the versions 1 to 3.
#
# The first line states the session, all others are *entries*:
#
# ```json
# {"type":"session","version":3,"id":"01a2","timestamp":"..","cwd":"/srv",
#  "parentSession":"/a.jsonl"}
# {"type":"message","id":"314f","parentId":"9538","timestamp":"..","message":{"role":"assistant",
#  "content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{}}],"model":"m",
#  "usage":{"input":418,"output":50,"cacheRead":600,"cacheWrite":0,"cost":{"total":0.1}},
#  "stopReason":"toolUse"}}
# ```
#
# - Roles of messages: `user`, `assistant`, `toolResult`, `bashExecution` (a command that a person
#   ran with `!`), `custom` (what an extension added; `hookMessage` in version 2), `system`.
# - `compaction` and `branch_summary` have a `summary`, `session_info` the title, `model_change` the
#   model, `custom_message` what an extension added. `usage` states tokens that no message has. All
#   others are kept as they are: `thinking_level_change`, `label`, `custom`, `context_edit`.
# - `usage` can be in any entry. Output includes reasoning, input excludes the cache; the cost is
#   what the program states.
#
# **Tree.** `parentId` makes the entries a tree. The last entry is the end of the active branch,
# but all branches are read. The `parent_uuid` of a message is this id alone.
#
# **Forks.** A fork begins with the entries of its parent, with their ids and times. An id has
# eight digits and is unique in its file only, so an entry is identified by its id and its time
# together.
#
# **Versions.** Version 1 (2025) states no version, and its entries have no ids: the digest of the
# line takes their place. Its header says `branchedFrom`. The program rewrites a file of version 1
# or 2 with new ids when it opens it.


_action_of = actions(
    run="bash",
    read="read",
    edit="edit write",
    search="find grep ls",
    # of the extensions that come with the program
    plan="todo",
    spawn="subagent",
    ask="question questionnaire",
)
_KEPT = frozenset(["model_change", "thinking_level_change", "label", "custom", "context_edit"])
"""Entries that are not part of the conversation; they are kept unchanged."""

TYPES = _KEPT.union(
    ["session", "message", "compaction", "branch_summary"],
    ["custom_message", "session_info", "usage"],
)
_IN_ROWS = frozenset(
    [
        *("role", "content", "model", "errorMessage", "command", "output"),
        *("toolCallId", "toolName", "isError"),
    ]
)
"""Fields of a message that have columns."""

_IN_TIMES = set("0123456789-T")
_LONGEST_NAME = 200  # letters of a model's name that later lines need

_CODE = "Command exited with code "
"""How the result of a command ends that failed; its exit code follows."""


def session_in(name: str) -> str | None:
    """Return the session that a file is named after, `<time>_<id>.jsonl`; None for other names."""
    time, _, session = name.removesuffix(".jsonl").partition("Z_")
    is_named = name.endswith(".jsonl") and time.startswith("20") and set(time) <= _IN_TIMES
    return session or None if is_named else None


def session_of(name: str) -> str:
    """Return the session of a file: that of its name, else the name without its ending."""
    return session_in(name) or name.removesuffix(".jsonl")


def encoded(path: str) -> str:
    """Return the name of the directory that has the conversations of a working directory."""
    name = path.removeprefix("/").replace("/", "-").replace("\\", "-").replace(":", "-")
    return f"--{name}--"


def is_ours(value: JSONObject) -> bool:
    """Has the object the shape of a line of this format?"""
    return string(value.get("type")) in TYPES and "timestamp" in value


class Entries(ChatReader):
    """Reads the lines of one conversation."""

    action_of = staticmethod(_action_of)

    def __init__(self, claim: Claim, context: Context) -> None:
        super().__init__(claim)
        self.context = dict(context)
        """What later lines need: the model, and whether a line said where the session is."""
        self._key = ""

    def take(self, value: JSONObject) -> None:
        kind = string(value.get("type")) or ""
        message = self.mapping(value, "message") if kind == "message" else {}
        role = string(message.get("role"))
        is_message = role in ("user", "assistant", "toolResult", "bashExecution")
        self._key = self._identity(value)
        self.begin({**value, "uuid": self._key}, is_message=is_message)
        self.parent = self.name(value, "parentId")
        if kind == "session":
            self._begin_session(value)
        elif kind == "message":
            self._message(role, message)
        elif kind in ("compaction", "branch_summary"):
            self.say("compact_summary", self.text(value, "summary") or "", "system")
        elif kind == "custom_message":
            self._say_blocks("meta", value.get("content"), "system")
        elif kind == "session_info":
            self.fact("custom_title", string(value.get("name")) or "")
        elif kind == "model_change":
            self._note_model(self.name(value, "modelId"))
        elif kind not in TYPES and (text := obvious_text(value)):
            self.say("system", text, "system")
        self._use(kind, value, message)
        self.keep_rest(value, ("id", "parentId", "summary", "content", "usage"), _bare)

    def _identity(self, value: JSONObject) -> str:
        """Return what the entry and its copies in forks have in common, and nothing else has."""
        identity = string(value.get("id")) or blake2b(self.data, digest_size=8).hexdigest()
        return f"{identity}@{value.get('timestamp')}"

    def _begin_session(self, value: JSONObject) -> None:
        self._note_model(self.name(value, "modelId"))  # of version 1
        cwd = self.text(value, "cwd")
        if cwd is not None:
            self.fact("first_cwd", cwd)
            self.records.append(WorkingDirectory(cwd, encoded(cwd), self.start))
            if self.claim.project_key is None and not self.context.get("is_placed"):
                self.context["is_placed"] = True
                self.settle(cwd)
        parent = self.text(value, "parentSession") or self.text(value, "branchedFrom")
        if parent is not None:
            name = parent.replace("\\", "/").rpartition("/")[2]
            self.fact("forked_from_key", session_of(name))

    def _note_model(self, model: str | None) -> None:
        if model is not None:
            self.context["model"] = model[:_LONGEST_NAME]

    # -- messages --------------------------------------------------------------------------------

    def _message(self, role: str | None, message: JSONObject) -> None:
        if role == "assistant":
            self._assistant(message)
        elif role == "toolResult":
            self._tool_result(message)
        elif role == "bashExecution":
            code = self.whole(message, "exitCode")
            self.say("bash_input", self.text(message, "command") or "", "user")
            self.say("bash_output", self.text(message, "output") or "", "user", is_error=bool(code))
        else:
            kind = {"user": "prompt", "system": "system"}.get(role or "", "meta")
            content = message.get("content") or message.get("summary")
            self._say_blocks(kind, content, "user" if role == "user" else "system")

    def _say_blocks(self, kind: str, content: object, role: str) -> None:
        """Add a row for each block of text or image; one in any case."""
        for block in self._blocks(content):
            if (image := image_in(block)) is not None:
                self.say("image", image, role)
            else:
                self.say(kind, self.text(block, "text") or "", role)

    def _blocks(self, content: object) -> list[JSONObject]:
        if not isinstance(content, list):
            self._expect(content is None or isinstance(content, str), "content", content)
            return [{"type": "text", "text": content if isinstance(content, str) else ""}]
        return self.items({"content": content}, "content") or [{"type": "text"}]

    def _assistant(self, message: JSONObject) -> None:
        self.model = self.name(message, "model")
        self._note_model(self.model)
        error, content = self.text(message, "errorMessage"), message.get("content")
        for block in self._blocks(content) if content or error is None else ():
            kind = block.get("type")
            if kind == "toolCall":
                self._call(block)
            elif kind == "thinking":
                self.say("thinking", self.text(block, "thinking") or "", "assistant")
            else:
                self.say("text", self.text(block, "text") or obvious_text(block), "assistant")
        if error is not None:
            is_stopped = message.get("stopReason") == "aborted"
            kind = "interrupt" if is_stopped else "error"
            self.say(kind, error, "assistant", is_error=not is_stopped)

    def _call(self, block: JSONObject) -> None:
        name, arguments = self.text(block, "name"), block.get("arguments")
        text = json_text({} if arguments is None else arguments)
        identity = self.text(block, "id")
        self.call(name, mapping(arguments), text, identity)

    def _tool_result(self, message: JSONObject) -> None:
        text = text_of(message.get("content"))
        is_error = message.get("isError") is True
        code = text.rpartition(_CODE)[2].strip() if is_error and _CODE in text else ""
        self.answer(
            text,
            self.text(message, "toolCallId"),
            is_error=is_error,
            name=self.text(message, "toolName"),
            exit_code=number(code),
        )

    # -- tokens ----------------------------------------------------------------------------------

    def _use(self, kind: str, value: JSONObject, message: JSONObject) -> None:
        """Note what the entry states about tokens; a request that failed at once states zeros."""
        stated = message if kind == "message" else value
        usage = self.mapping(stated, "usage")
        counts = Counts(
            *(self.count(usage, key) for key in ("input", "output", "cacheRead", "cacheWrite"))
        )
        if not any(counts):
            return
        if self.model is None:
            self.model = self.name(value, "model") or self.context.get("model")
        reason = string(stated.get("stopReason"))
        self.use(
            self._key,
            counts,
            is_partial=reason in ("aborted", "error"),
            stated_cost_usd=self.number(self.mapping(usage, "cost"), "total"),
            stop_reason=reason,
        )


def _bare(value: JSONObject) -> JSONObject:
    """Return an entry without what its rows have, and without opaque fields."""
    bare = mapping(readable(value))
    if isinstance(message := bare.get("message"), dict):
        bare["message"] = without(message, _IN_ROWS)
    return bare


_PRIVATE = frozenset(["auth.json", "models.json", "settings.json"])


class Pi(AgentSource):
    """The source of kind `pi`."""

    name = "pi"
    label = "pi"
    unread_places = ("bin", "extensions", "git", "npm", "prompts", "skills", "themes", "tools")
    checked = "0.73 to 0.74"
    known_lines = TYPES
    variable, place = "PI_CODING_AGENT_DIR", ".pi/agent"
    resume = ("pi", "--session", "{}")

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """A variable of its own names a directory that has conversations only."""
        other = environment.get("PI_CODING_AGENT_SESSION_DIR")
        return [*super().default_roots(environment, home), *([other] if other else [])]

    def recognises(self, listing: Listing) -> Recognition:
        """A home has a directory of sessions that is named like one of this program, or a file."""
        for path in listing:
            match path.split("/"):
                case ["sessions", directory] if _is_encoded(directory):
                    return Recognition.CERTAIN
                case [name] if session_in(name):
                    return Recognition.CERTAIN
        return Recognition.NO

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Keys, and settings that can contain some."""
        return len(parts) == 1 and parts[0].casefold() in _PRIVATE

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        match parts:
            case ("sessions",):
                return True
            case ("sessions", directory):
                return _is_encoded(directory)
        return False

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("sessions", directory, name) if _is_encoded(directory):
                if name.endswith(".jsonl"):
                    claim = Claim(self.name, "transcript", session_key=session_of(name))
                    return replace(claim, project_key=directory, project_directory=directory)
            case (name,) if session_in(name):
                return Claim(self.name, "transcript", session_key=session_of(name))
        return None

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; the model of a summary is that of the lines before it."""
        reader = Entries(claim, context)
        for value in reader.objects(lines, is_ours):
            reader.take(value)
        return reader.finish(), reader.context


def _is_encoded(directory: str) -> bool:
    return len(directory) > 4 and directory.startswith("--") and directory.endswith("--")
