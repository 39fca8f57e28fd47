"""Shared by Cline and agents that were made from it: the source of an extension with such tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from ..records import Record
from ..source import Claim, Context, Gathered, Line, Member, entry_names
from .chat_reader import AgentSource
from .task_reader import KNOWN_LINES, TaskReader, session_above
from .task_store import FILES, MESSAGES, SHOWN, STORE, lines

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_CONFIGURED = ("APPDATA", "XDG_CONFIG_HOME")
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server")


class TaskSource(AgentSource):
    """A source of an extension that keeps such tasks."""

    known_lines = KNOWN_LINES
    extension = ""
    """The directory of the extension in `globalStorage`."""
    reader: type[TaskReader] = TaskReader
    started_in = staticmethod(session_above)

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """Each editor has a directory of settings, and so has the part of it on a server."""
        above = [path for name in _CONFIGURED if (path := environment.get(name))]
        if home is not None:
            above += [f"{home}/.config", f"{home}/Library/Application Support"]
        users = [f"{path}/{editor}/User" for path in above for editor in _EDITORS]
        if home is not None:
            users += [f"{home}/{server}/data/User" for server in _SERVERS]
        return [f"{user}/globalStorage/{self.extension}" for user in users]

    def descends(self, parts: tuple[str, ...]) -> bool:
        """The directories of tasks have nothing else."""
        return parts[0] == STORE and len(parts) < 3

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """A document is a part of its task, which is an entry."""
        match parts:
            case (name,) if (names := entry_names(name)) is not None and names[0] == STORE:
                return Claim(self.name, "transcript", names[1], within=STORE)
            case ("tasks", _, name) if name in FILES:
                return Claim(self.name, "part", within=STORE)
        return None

    def gather(
        self, members: Collection[tuple[str, ...]], content: Callable[[tuple[str, ...]], bytes]
    ) -> list[Gathered]:
        """Sort the documents by tasks."""
        tasks: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
        for parts in members:
            if (claim := self.claim(parts)) is not None and claim.kind == "part":
                tasks[parts[1]][parts[2]] = parts
        gathered = []
        for task, files in sorted(tasks.items()):
            documents = [Member(FILES[name], name, files[name]) for name in FILES if name in files]
            if any(document.table in (MESSAGES, SHOWN) for document in documents):
                gathered.append(Gathered(task, None, documents, lines))
        return gathered

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; which model answers comes from earlier lines."""
        return self.reader(claim, context=context).read_lines(lines)
