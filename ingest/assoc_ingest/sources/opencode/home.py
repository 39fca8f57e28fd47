"""OpenCode: conversations in its database, and in the many small files of earlier versions.

```
~/.local/share/opencode/opencode.db, opencode-<channel>.db       since 1.2
~/.local/share/opencode/storage/project/<project>.json           until 1.1
~/.local/share/opencode/storage/session/<project>/<session>.json
~/.local/share/opencode/storage/message/<session>/<message>.json
~/.local/share/opencode/storage/part/<message>/<part>.json
~/.local/share/opencode/storage/todo/<session>.json
```

Each conversation is one entry (see `entry`), of the database or of `storage`: the lines of its
project, of the session, of its messages, each followed by its parts, and of its todos; if
something is taken back, the session has another one at the end. In a file,
the fields of a row are in one object; in the database, most are in the column `data`. The session
of a subagent names its parent: its entry is that of a subagent of the first one.

1.2 copied the files to rows of the same ids, and left the files. So a session can be in both; what
is equal counts once, and the rows take precedence (`opencode.db` sorts before `storage`).

Ids of messages and parts ascend with time; those of sessions descend. A change of a row moves its
`time_updated`; a deleted row leaves nothing. Tables and columns with secrets are never selected:
`account`, `control_account`, `credential`, `session_share`, `share_url`. Nor is `event`, a log of
all that is in the other tables, which can be a hundred times as large.

The package is larger than that of an agent with one kind of files: both stores have to give the
same lines, and copies are told by what they say, because forks do not name their origin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from ...entry import Database, Gathered, Member, Table, entry_names
from ...fields import mapping, string
from ...records import Record
from ...source import DATABASE, LOG, UNREAD, Claim, Context, Line, Listing, Recognition
from ..agent import AgentSource
from ..jsonl import whole_value
from .transcript import TranscriptReader

_STORAGE = "storage"
_LOG = "-wal"
_KINDS = ("session", "message", "part", "todo", "project")
_SECRETS = ("auth.json", "mcp-auth.json")

_LAYOUT = Database(
    listing="""
        select s.id, s.parent_id, s.time_updated, s.title, s.directory, p.worktree, p.name
        from session s left join project p on p.id = s.project_id
    """,
    counts=tuple(
        # Without the plus, the rows would be read in the order of an index, which takes longer.
        f"select session_id, count(*), max(time_updated), sum(time_updated % 1000000007)"
        f" from {table} group by +session_id"
        for table in ("message", "part", "todo")
    ),
    tables=(
        Table(
            "project",
            ("worktree", "name"),
            "id = (select project_id from session where id = :key)",
        ),
        Table(
            "session",
            (
                *("parent_id", "directory", "title", "version", "agent", "model", "revert"),
                *("time_created", "time_archived"),
            ),
            "id = :key",
        ),
        Table(
            "message",
            ("time_created",),
            "session_id = :key",
            "time_created, id",
            json="data",
            rows=(Table("part", (), "message_id = :above", json="data"),),
        ),
        Table(
            "todo",
            ("content", "status", "priority", "time_updated"),
            "session_id = :key",
            "position",
            id="position",
        ),
        Table("session", (), "id = :key and revert is not null"),
    ),
    unread=("session_message",),
)


class OpenCode(AgentSource):
    """The source of kind `opencode`."""

    name = "opencode"
    label = "OpenCode"
    known_lines = frozenset(["project", "session", "message", "part", "todo"])
    # The same on macOS and Windows.
    variable, below, place = "XDG_DATA_HOME", "opencode", ".local/share/opencode"
    resume = ("opencode", "-s", "{}")
    database = _LAYOUT

    def recognises(self, listing: Listing) -> Recognition:
        """A home has its database, or messages in files."""
        for path in listing:
            match path.split("/"):
                case [name] if _is_database(name):
                    return Recognition.CERTAIN
                case ["storage", "message", session, _] if session.startswith("ses_"):
                    return Recognition.CERTAIN
        return Recognition.NO

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """The keys of providers and servers are in files of their own."""
        return len(parts) == 1 and parts[0].casefold() in _SECRETS

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        match parts:
            case ("storage",) | ("storage", "project" | "todo"):
                return True
            case ("storage", "session" | "message" | "part", *below) if len(below) < 2:
                return True
        return False

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """A path is a database, its log, an entry of either store, or a file of `storage`."""
        match parts:
            case (name,) if _is_database(name):
                return Claim(self.name, DATABASE)
            case (name,) if name.endswith(_LOG) and _is_database(name.removesuffix(_LOG)):
                return Claim(self.name, "database_log", within=name.removesuffix(_LOG))
            case (name,) if (names := entry_names(name)) is not None:
                return self._entry(*names)
        return Claim(self.name, "part", within=_STORAGE) if _member(parts) else None

    def _entry(self, store: str, session: str, agent: str | None) -> Claim | None:
        if store != _STORAGE and not _is_database(store):
            return None
        kind = "transcript" if agent is None else "agent"
        return Claim(self.name, kind, session_key=session, agent_key=agent, within=store)

    def shape(self, claim: Claim) -> str:
        """Entries have lines; all other files are read as parts of entries only."""
        return LOG if claim.kind in ("transcript", "agent") else UNREAD

    def gather(
        self, members: Collection[tuple[str, ...]], content: Callable[[tuple[str, ...]], bytes]
    ) -> list[Gathered]:
        """Sort the files of `storage` by session and message."""
        below: dict[tuple[str, str], list[Member]] = defaultdict(list)
        for above, member in filter(None, map(_member, sorted(members))):
            below[member.table, above].append(member)
        sessions = [row for (table, _), rows in below.items() if table == "session" for row in rows]
        gathered = []
        for key, session in {session.id: session for session in sessions}.items():
            lines = [*below["project", session.parts[2]], session]
            for message in below["message", key]:
                lines += [message, *below["part", message.id]]
            lines += below["todo", key]
            found = whole_value(content(session.parts))
            stated = mapping(found[0]) if found else {}
            lines += [session] if stated.get("revert") else []
            gathered.append(Gathered(key, string(stated.get("parentID")), lines))
        return gathered

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; what a part says depends on its message."""
        return TranscriptReader(claim, context).read(lines)


def _is_database(name: str) -> bool:
    return name.endswith(".db") and (name == "opencode.db" or name.startswith("opencode-"))


def _member(parts: tuple[str, ...]) -> tuple[str, Member] | None:
    """Return what a file of `storage` belongs to, and the row that it is."""
    match parts:
        case ("storage", "session" | "message" | "part" as table, above, name):
            pass
        case ("storage", "todo" | "project" as table, name):
            above = name.removesuffix(".json")
        case _:
            return None
    identity = name.removesuffix(".json")
    withheld = ("share",) if table == "session" else ()
    is_json = name.endswith(".json") and identity != ""
    return (above, Member(table, identity, parts, withheld)) if is_json else None
