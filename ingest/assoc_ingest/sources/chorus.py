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

from ..fields import left_over, mapping
from ..project_paths import comparable, slashed
from ..records import Agent, ProjectEntry, Record, SessionEntry
from ..source import DOCUMENT, LOG, PRIVATE, Claim, Line, Listing, Recognition, Source
from .chorus_messages import TYPES, Messages
from .claude.paths import folded
from .jsonl import JSONObject, complete_prefix
from .reader import Reader

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
