"""Rows as a sync inserts them, so that a test says exactly what is in the database.

A test names the columns that it is about. Columns of which nothing is said get what most rows have,
and those that must not be NULL get 0 or ''.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from typing import Any

from assoc_ingest.derive.changeset import TEMPORARY, Touched, fill
from assoc_ingest.fields import has_invisible
from assoc_ingest.sources.claude.tools import action_of

AT = "2026-01-20T10:00:00.000Z"

_TOOL_KINDS = {
    "tool_use", "tool_result", "command_output", "bash_output", "hook", "attachment", "meta"
}  # fmt: skip
_USER_KINDS = {"prompt", "command", "bash_input", "tool_result"}
_DEFAULTS: dict[str, dict[str, object]] = {
    "sources": {"first_synced_at": AT, "last_synced_at": AT},
    "files": {
        "kind": "transcript", "size": 1000, "offset": 1000, "line_count": 1, "issue_count": 0,
        "mtime": AT, "first_seen_at": AT, "last_synced_at": AT, "inode": 1, "device": 1,
        "mtime_ns": 1, "ctime_ns": 1,
    },
    "messages": {"byte_length": 10, "timestamp": AT},
    "tool_calls": {"status": "ok", "byte_length": 10},
    "subagents": {"kind": "task"},
}  # fmt: skip


def at(second: int) -> str:
    """Return the time so many seconds after ten."""
    return f"2026-01-20T10:00:{second:02}.000Z"


class Rows:
    """Inserts rows; every method returns the id of the new one."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._offset = 0
        self.source = self.add("sources", kind="claude", root="/home/ada/.claude")

    def add(self, table: str, **values: object) -> int:
        """Insert one row of any table."""
        row = {**self._needed(table), **_DEFAULTS.get(table, {}), **values}
        if table == "tool_calls":
            row.setdefault("action", action_of(str(values.get("name"))))
        names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
        statement = f"insert into {table} ({names}) values ({marks})"
        cursor = self.connection.execute(statement, tuple(row.values()))
        assert cursor.lastrowid
        return cursor.lastrowid

    def _needed(self, table: str) -> dict[str, object]:
        """Return an empty value for each column of a table that must not be NULL."""
        columns = self.connection.execute(f"pragma table_info({table})")
        return {
            name: 0 if kind.lower() == "integer" else ""
            for _, name, kind, is_needed, default, is_key in columns
            if is_needed and default is None and not is_key
        }

    def project(self, name: str, path: str | None = None, **values: object) -> int:
        path = path or f"/srv/{name}"
        key = path.replace("/", "-").lower()
        row = {"name": name, "path": path, "key": key, "source_id": self.source, **values}
        return self.add("projects", **row)

    def session(self, key: str, project: int | None = None, **values: object) -> tuple[int, int]:
        """Insert a session and its transcript; return the ids of both."""
        row = {"title_source": "ai-title", "started_at": AT, "ended_at": AT, **values}
        both = {
            "session_key": key,
            "project_id": project,
            "source_id": row.pop("source_id", self.source),
        }
        session = self.add("sessions", **both, **row)
        return session, self.file(
            f"projects/-srv-{project}/{key}.jsonl", session_id=session, **both
        )

    def file(self, path: str, **values: object) -> int:
        own = {"path": path, "source_id": self.source, "file_key": os.urandom(16)}
        return self.add("files", **{**own, **values})

    def message(self, file: int, kind: str, text: str, **values: object) -> int:
        """Insert a message of the file's session, at the next place of the file."""
        self._offset += 100
        (session,) = self.connection.execute(
            "select session_id from files where id = ?", (file,)
        ).fetchone()
        is_tool = kind in _TOOL_KINDS
        row = {
            "session_id": session,
            "text": None if is_tool else text,
            "tool_text": text if is_tool else None,
            "byte_offset": self._offset,
            "role": "user" if kind in _USER_KINDS else "assistant",
            "has_cjk": int(any("\u3040" <= letter <= "\ud7a3" for letter in text)),
            "has_invisible": has_invisible(text),
            **values,
        }
        return self.add("messages", file_id=file, kind=kind, **row)

    def call(
        self, file: int, name: str, arguments: dict[str, object], result: str | None = None,
        **values: object,
    ) -> tuple[int, int]:  # fmt: skip
        """Insert a call with its result; return the ids of the tool call and of its message."""
        session = values.pop("session_id", None)
        subagent = values.pop("subagent_id", None)
        owner = {"subagent_id": subagent, **({"session_id": session} if session else {})}
        text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        call = self.message(file, "tool_use", text, **owner)
        is_error = values.get("status") == "error"
        answer = (
            None
            if result is None
            else self.message(file, "tool_result", result, is_error=int(is_error), **owner)
        )
        target = next((value for value in arguments.values() if isinstance(value, str)), None)
        row: dict[str, object] = {
            "name": name, "target": target, "call_id": call, "result_id": answer,
            "file_id": file, "byte_offset": self._offset, "tool_use_id": f"toolu_{call}",
            "subagent_id": subagent, "status": "pending" if result is None else "ok", **values,
        }  # fmt: skip
        (row["session_id"],) = self.connection.execute(
            "select session_id from messages where id = ?", (call,)
        ).fetchone()
        return self.add("tool_calls", **row), call

    # -- derived facts ---------------------------------------------------------------------------

    def touch(
        self, files: Iterable[int] = (), sessions: Iterable[int] = (), **more: Any
    ) -> Touched:
        """Say that a batch had these files and sessions, as steps before the tested one do."""
        for statement in TEMPORARY.split(";"):
            self.connection.execute(statement)
        touched = Touched(files=set(files), sessions=set(sessions), **more)
        fill(self.connection, "touched_files", touched.files)
        fill(self.connection, "touched_sessions", touched.sessions)
        return touched

    def touch_all(self, **more: Any) -> Touched:
        """Say that a batch had all files and sessions that there are."""
        return self.touch(
            self.all("select id from files"), self.all("select id from sessions"), **more
        )

    def all(self, query: str, *values: object) -> list[Any]:
        """Return what a query finds: values of one column, or tuples of several."""
        rows = self.connection.execute(query, values).fetchall()
        return [row[0] if len(row) == 1 else row for row in rows]

    def get(self, table: str, id_: int, *columns: str) -> Any:
        """Return a value of one row, or a tuple of several."""
        (found,) = self.all(f"select {', '.join(columns)} from {table} where id = ?", id_)
        return found

    def set(self, table: str, id_: int, **values: object) -> None:
        """Change columns of one row."""
        names = ", ".join(f"{name} = ?" for name in values)
        self.connection.execute(f"update {table} set {names} where id = ?", (*values.values(), id_))
