"""Chorus: conversations with agents of Claude Code, kept by a desktop application.

```
.chorus/config.json                                                workspaces and settings
.chorus/sessions/<workspace>/<agent>/conversations.json            the conversations of an agent
.chorus/sessions/<workspace>/<agent>/<id>-messages.jsonl           the messages of one
```

**config.json** holds an API key beside what we want of it, so it is read by an allow-list and its
bytes are never kept: `workspaces[]` with `id`, `name`, `path` and `gitBranch`. Ids of workspaces
and conversations come from the paths, so nothing depends on it. Other programs have a file of this
name that must not be opened: only conversations show that the directory is of this one.

**conversations.json** is rewritten on every message, in place: one that is empty or cut off is
read again later. `sessionId` is the session of Claude Code that does the work; `worktreePath`,
`branchName`, `sessionCreatedAt` and `settings` came later.

```json
{"conversations":[{"id":"k1","sessionId":"0b7c","branchName":null,"worktreePath":null,
 "agentId":"g1","workspaceId":"w1","title":"Tidy menus","createdAt":"2026-01-05T10:00:00.000Z",
 "updatedAt":"2026-01-05T10:00:09.000Z","messageCount":2,
 "settings":{"permissionMode":"default","allowedTools":[],"model":"default"}}]}
```

The messages are described in `chorus_messages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..model import (
    DOCUMENT,
    LOG,
    PRIVATE,
    Claim,
    Line,
    Listing,
    ProjectEntry,
    Record,
    SessionEntry,
)
from .chorus_messages import Messages
from .claude_paths import folded
from .fields import slashed
from .jsonl import JSONObject, complete_prefix
from .reader import Reader

_MESSAGES = "-messages.jsonl"


class Chorus:
    """The source of kind `chorus`."""

    name = "chorus"

    def recognises(self, listing: Listing) -> bool:
        """A home has conversations. Other programs use `.chorus`, and have a `config.json`, too."""
        for path in listing:
            match path.split("/"):
                case ["sessions", _, _, name]:
                    if name == "conversations.json" or name.endswith(_MESSAGES):
                        return True
        return False

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """What lies beside our keys is wanted: the file that has both is read by an allow-list."""
        return False

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Walk the layout and nothing else."""
        return parts[0] == "sessions" and len(parts) <= 3

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """Judge a path by its place in the layout."""
        match parts:
            case ("config.json",):
                return Claim(self.name, "config")
            case ("sessions", workspace, _, "conversations.json"):
                return self._claim("conversations", workspace, None)
            case ("sessions", workspace, _, name) if name.endswith(_MESSAGES) and name != _MESSAGES:
                return self._claim("transcript", workspace, name.removesuffix(_MESSAGES))
        return None

    def _claim(self, kind: str, workspace: str, conversation: str | None) -> Claim:
        return Claim(
            self.name,
            kind,
            session_key=conversation or None,
            project_key=workspace.casefold(),
            project_directory=workspace,
        )

    def shape(self, claim: Claim) -> str:
        """Messages are appended; the configuration holds a secret."""
        return {"transcript": LOG, "config": PRIVATE}.get(claim.kind, DOCUMENT)

    def believes(self, claim: Claim, head: Sequence[bytes]) -> bool:
        """A path of ours proves enough."""
        return True

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
        if key is not None:
            yield ProjectEntry(
                key.casefold(),
                reader.text(workspace, "name"),
                reader.text(workspace, "path"),
                git_branch=reader.text(workspace, "gitBranch"),
            )


def _conversations(reader: Reader, value: JSONObject) -> Iterator[Record]:
    for entry in reader.items(value, "conversations"):
        key = reader.text(entry, "id")
        if key is None:
            continue
        workspace = reader.text(entry, "workspaceId")
        project = workspace.casefold() if workspace else reader.claim.project_key
        worktree, branch = reader.text(entry, "worktreePath"), reader.text(entry, "branchName")
        if worktree is not None:
            path = slashed(worktree)
            yield ProjectEntry(path, None, path, project, 1, branch)
            project = path
        settings = reader.mapping(entry, "settings")
        linked = reader.text(entry, "sessionId")
        model = reader.text(settings, "model")
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
            model=None if model == "default" else model,
            permission_mode=reader.text(settings, "permissionMode"),
            linked_session_key=folded(linked) if linked else None,
        )
