"""What the server keeps of a machine although the machine does not have it any more.

A file that was pruned here, or is no longer in scope, stays on the server: only `forget` and
`remote withdraw` delete there. So do the keyed rows that such files name.
"""

from __future__ import annotations

from .server import KnownFile, Row


class Kept:
    """What the server's files name that are not here any more, or not in scope."""

    def __init__(self, files: list[KnownFile]) -> None:
        self._keys = {rf"\x{file.file_key.hex()}" for file in files}
        self._sources = {str(file.source_no) for file in files}
        self._sessions = {(str(file.source_no), file.session_key) for file in files}
        self._projects = {(str(f.project_source_no), f.project_key) for f in files} | {
            (str(f.session_project_source_no), f.session_project_key) for f in files
        }
        self._teams = {(str(file.source_no), file.team_key) for file in files}

    def names(self, table: str, key: Row) -> bool:
        """Return whether a keyed row belongs to what is kept."""
        source = key.get("source_no")
        tests: dict[str, bool] = {
            "sources": source in self._sources,
            "projects": (source, key.get("key")) in self._projects,
            "agents": bool(self._keys) and source in self._sources,
            "sessions": (source, key.get("session_key")) in self._sessions,
            "subagents": (source, key.get("stated_session_key")) in self._sessions,
            "teams": (source, key.get("key")) in self._teams,
            "team_members": key.get("file_key") in self._keys,
            "tasks": self._has_list(key),
            "task_dependencies": self._has_list(key),
        }
        return tests.get(table, False)

    def _has_list(self, key: Row) -> bool:
        of_list = (key.get("source_no"), key.get("list_key"))
        return of_list in self._sessions or of_list in self._teams
