"""Chorus: conversations with Claude Code agents in this desktop application.

```
.chorus/config.json                                                workspaces and settings
.chorus/sessions/<workspace>/<agent>/conversations.json            the conversations of an agent
.chorus/sessions/<workspace>/<agent>/<id>-messages.jsonl           the messages of one
```

**config.json** also contains an API key, so only the fields of an allow-list are read, and its
bytes are never kept: `workspaces[]` with `id`, `name`, `path`, `gitBranch`, their `agents[]`, and
the fields in `_WORKSPACE`, `_DEFAULTS` and `_SETTINGS`. An agent is described by a file, except for
the general one of each workspace (`isGeneral`). Ids of workspaces, agents and conversations are
also in the paths, so only names depend on this file. Other programs have a file of this name that
must not be opened: only conversations show that a directory belongs to Chorus.

```json
{"workspaces":[{"id":"w1","name":"Demo","path":"/srv/demo","isExpanded":true,"gitBranch":"main",
 "isDirty":false,"hasSystemPrompt":true,"agents":[{"id":"g1","name":"Reviewer",
 "filePath":"/srv/demo/.claude/agents/reviewer.md","workspaceId":"w1"}]}]}
```

**conversations.json** is rewritten in place on every message: an empty or truncated one is read
again later. `sessionId` is the session of Claude Code that does the work; `worktreePath`,
`branchName`, `sessionCreatedAt` and `settings` were added later.

```json
{"conversations":[{"id":"k1","sessionId":"0b7c","branchName":null,"worktreePath":null,
 "agentId":"g1","workspaceId":"w1","title":"Tidy menus","createdAt":"2026-01-05T10:00:00.000Z",
 "updatedAt":"2026-01-05T10:00:09.000Z","messageCount":2,
 "settings":{"permissionMode":"default","allowedTools":[],"model":"default"}}]}
```

The messages are described in `chorus_messages`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ..fields import json_text, left_over, mapping, obvious_text, orjson, placeholder, string
from ..paths import comparable, slashed
from ..records import Agent, ProjectEntry, Record, SessionEntry
from ..source import DOCUMENT, LOG, PRIVATE, Claim, Line, Listing, Recognition, Source
from .claude.tools import AroundClaude, result_text
from .reader import JSONObject, Reader, complete_prefix, folded
from .tokens import Counts

# ------------------------------------------------------------------------------------------------
# The messages of a Chorus conversation.
#
# A line has a type: user, assistant, tool_use, tool_result, error, system, and in later versions
# research_progress and research_result. `content` is a text, rarely a list of blocks (text,
# tool_use, tool_result, image); for a call it is only a phrase, and the input is in `toolInput`.
# `claudeMessage` is the message from the SDK: the only place of thinking, repeated on the line of
# each of its calls. Calls and results had no ids at first: such a result answers the last open
# call, or the last open call of the tool that it names.
#
# ```json
# {"uuid":"m2","type":"tool_use","content":"Using tool: Read",
#  "timestamp":"2026-01-05T10:00:04.000Z","toolName":"Read",
#  "toolInput":{"file_path":"a.ts"},"toolUseId":"toolu_0Demo1","claudeMessage":{}}
# ```
#
# A turn ends with an `assistant` line and a `system` line that state the same totals of the turn.
# They are counted once, from the `system` line if there is one. The linked session's own
# transcript has them, too, so views leave out the usage of a session that has a linked one.
#
# All other fields of a line (`sessionId`, `numTurns`, `searchCount`, and everything in
# `claudeMessage` except its content) are kept as JSON.


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


class Messages(AroundClaude):
    """Reads the lines of one conversation."""

    def read(self, lines: Iterable[Line]) -> list[Record]:
        """Turn lines into records."""
        window: int | None = None
        for value in self.objects(lines, _is_message):
            kind = string(value.get("type"))
            self.begin(value, is_message=kind in ("user", "assistant", "research_result"))
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
        session = self.text(value, "sessionId")
        counts = Counts(read, wrote, cached, kept)
        self.use(key, counts, model=model, stated_session_key=session, stated_cost_usd=cost)
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


_MESSAGES = "-messages.jsonl"
_WORKSPACE = ("isExpanded", "isDirty", "hasSystemPrompt")
_DEFAULTS = ("defaultPermissionMode", "defaultAllowedTools", "defaultModel")
_SETTINGS = (
    "rootWorkspaceDir", "theme", "chatSidebarCollapsed", "chatSidebarWidth",
    "researchOutputDirectory",
)  # fmt: skip
_ENTRY_COLUMNS = (
    "id", "title", "createdAt", "updatedAt", "messageCount", "branchName", "worktreePath",
    "sessionId", "workspaceId", "agentId",
)  # fmt: skip


class Chorus(Source):
    """The source of kind `chorus`."""

    name = "chorus"
    label = "Chorus"
    known_lines = TYPES
    lists_sessions = True
    directory_in_project = ".chorus"

    def recognises(self, listing: Listing) -> Recognition:
        """A home has conversations. Other programs also use `.chorus` with a `config.json`."""
        for path in listing:
            match path.split("/"):
                case ["sessions", _, _, name]:
                    if name == "conversations.json" or name.endswith(_MESSAGES):
                        return Recognition.CERTAIN
        return Recognition.NO

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """No: the file with the key is needed, and only the fields of an allow-list are read."""
        return False

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        return parts[0] == "sessions" and len(parts) <= 3

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("config.json",):
                return Claim(self.name, "config")
            case ("sessions", workspace, agent, "conversations.json"):
                return self._claim("conversations", workspace, agent)
            case ("sessions", workspace, agent, name) if name.endswith(_MESSAGES):
                conversation = name.removesuffix(_MESSAGES)
                if conversation:
                    return self._claim("transcript", workspace, agent, conversation)
        return None

    def _claim(
        self, kind: str, workspace: str, agent: str, conversation: str | None = None
    ) -> Claim:
        return Claim(
            self.name,
            kind,
            session_key=conversation or None,
            project_key=workspace.casefold(),
            project_directory=workspace,
            named_agent=agent,
        )

    def shape(self, claim: Claim) -> str:
        """Messages are appended; the configuration contains a secret."""
        return {"transcript": LOG, "config": PRIVATE}.get(claim.kind, DOCUMENT)

    def complete_prefix(self, claim: Claim, tail: bytes) -> int:
        """Whole objects at the start of an unterminated tail can be read."""
        return complete_prefix(tail)

    def parse(self, claim: Claim, lines: Iterable[Line]) -> list[Record]:
        """Turn lines into records; a document is one line."""
        if claim.kind == "transcript":
            return Messages(claim).read(lines)
        reader = Reader(claim)
        read = _workspaces if claim.kind == "config" else _conversations
        for value in reader.document(lines):
            reader.records.extend(read(reader, value))
        return reader.finish()


# -- lists ---------------------------------------------------------------------------------------


def _workspaces(reader: Reader, value: JSONObject) -> Iterator[Record]:
    for workspace in reader.items(value, "workspaces"):
        key = reader.text(workspace, "id")
        if key is None:
            reader.note("workspaces[].id: missing")
            continue
        yield ProjectEntry(
            key.casefold(),
            reader.text(workspace, "name"),
            reader.text(workspace, "path"),
            git_branch=reader.text(workspace, "gitBranch"),
            extra=left_over({**_allowed(workspace, _WORKSPACE), **_defaults(reader, workspace)}),
        )
        for agent in reader.items(workspace, "agents"):
            yield from _agent(reader, agent, key.casefold())
    reader.keep(left_over({"settings": _allowed(mapping(value.get("settings")), _SETTINGS)}))


def _defaults(reader: Reader, workspace: JSONObject) -> JSONObject:
    """Return the defaults of a workspace for new conversations."""
    return {"settings": _allowed(reader.mapping(workspace, "settings"), _DEFAULTS)}


def _allowed(value: JSONObject, keys: Collection[str]) -> JSONObject:
    """Return the scalars and lists of texts that an object has under these keys.

    Other values are left out: a later version could put secrets there.
    """
    return {key: item for key, item in value.items() if key in keys and _is_plain(item)}


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, str | int | float)


def _agent(reader: Reader, agent: JSONObject, workspace: str) -> Iterator[Record]:
    key = reader.text(agent, "id")
    if key is None:
        reader.note("agents[].id: missing")
        return
    stated = reader.text(agent, "workspaceId")
    yield Agent(
        reader.text(agent, "name") or key,
        reader.text(agent, "type"),
        reader.text(agent, "description"),
        reader.text(agent, "filePath"),
        reader.flag(agent, "isGeneral") or 0,
        left_over({"workspaceId": stated} if (stated or workspace).casefold() != workspace else {}),
        key,
        workspace,
    )


def _conversations(reader: Reader, value: JSONObject) -> Iterator[Record]:
    for entry in reader.items(value, "conversations"):
        key = reader.text(entry, "id")
        if key is None:
            reader.note("conversations[].id: missing")
            continue
        workspace = reader.text(entry, "workspaceId")
        project = workspace.casefold() if workspace else reader.claim.project_key
        worktree, branch = reader.text(entry, "worktreePath"), reader.text(entry, "branchName")
        if worktree is not None:
            place = comparable(worktree)
            yield ProjectEntry(place, None, slashed(worktree), project, 1, branch)
            project = place
        settings = reader.mapping(entry, "settings")
        linked = reader.text(entry, "sessionId")
        model = reader.text(settings, "model")
        is_model = model is not None and model != "default"
        yield SessionEntry(
            key,
            "conversation",
            title=reader.text(entry, "title"),
            started_at=reader.time(entry, "createdAt"),
            ended_at=reader.time(entry, "updatedAt"),
            message_count=reader.whole(entry, "messageCount"),
            project_key=project,
            git_branch=branch,
            cwd=slashed(worktree) if worktree else None,
            model=model if is_model else None,
            permission_mode=reader.text(settings, "permissionMode"),
            linked_session_key=folded(linked) if linked else None,
            agent_key=reader.text(entry, "agentId") or reader.claim.named_agent,
            extra=_rest_of_entry(entry, settings, is_model=is_model),
        )
    reader.keep(left_over(value, ("conversations",)))


def _rest_of_entry(entry: JSONObject, settings: JSONObject, *, is_model: bool) -> str | None:
    taken = ("permissionMode", "model") if is_model else ("permissionMode",)
    rest = {key: item for key, item in settings.items() if key not in taken}
    return left_over({**entry, "settings": rest}, _ENTRY_COLUMNS)
