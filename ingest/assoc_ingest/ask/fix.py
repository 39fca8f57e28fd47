"""`fix`: where an error occurred, and what was done that ended it.

1. The telling line of the error is found: of a traceback the last one.
2. The full-text index finds results with all its words; those count that have them in one line.
3. An error has ended where the same command, or the same tool on the same target, later succeeds
   without it in the same conversation. An error that came several times until then is one.
4. What was done in between, edits and commands, is what ended it. Errors with the same ending are
   one item: the most frequent first, the newest first among those.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, fields

from .. import humanize, sql
from ..errors import UsageError
from ..records import EDIT
from .changed_text import shortly
from .error_text import telling_line, words_of
from .evidence import line_of, texts_of
from .fix_errors import MOST_RESULTS, FoundError, done, errors_of, grouped, results_with
from .lookup import short_key
from .refs import Names

_MOST_WORDS = 20
_STEPS = 8  # between an error and its end that are shown


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An error in one conversation, until it ended."""

    ref: str | None
    """What `show` opens: the result with the error."""
    key: str | None
    title: str | None
    project: str | None
    branch: str | None
    time: str | None
    command: str | None
    """What gave the error: a command, a path."""
    error: str
    """Its line."""
    times: int
    """How often it came until it ended."""
    steps: list[dict[str, object]]
    """What was done before it ended: ref, action (edit or run), target and text."""
    ended: dict[str, object] | None
    """The call that succeeded: ref and target; None if there is none."""
    file: str | None
    line: int | None
    byte: int


@dataclass(frozen=True, slots=True)
class Fix:
    """What ended an error, and where."""

    kind: str
    """edited, ran, looked (its file was read), again (nothing changed) or never (it did not)."""
    what: str
    """What was done, in words."""
    count: int
    """How many errors ended so."""
    time: str | None
    """When the newest of them occurred."""
    occurrences: list[dict[str, object]]
    """The newest of them."""

    def as_json(self) -> dict[str, object]:
        """Return it as an item of an answer."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(slots=True)
class Fixes:
    """What was found of an error."""

    error: str
    """The line that was looked for."""
    errors: int = 0
    ended: int = 0
    conversations: int = 0
    is_exact: bool = True
    """False: only errors that quote something else were found."""
    notes: list[str] = field(default_factory=list)
    _groups: list[tuple[str, str, list[FoundError]]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._groups)

    def facts(self) -> dict[str, object]:
        """Return what was looked for, and how often it was found."""
        names = ("error", "errors", "ended", "conversations", "is_exact")
        return {name: getattr(self, name) for name in names}

    def shown(
        self, connection: sqlite3.Connection, start: int, limit: int, each: int,
        clean: Callable[[str], str] = str,
    ) -> list[Fix]:  # fmt: skip
        """Return some of the endings, each with the newest of its errors."""
        reader = _Reader(connection, clean)
        return [
            Fix(kind, clean(what), len(errors), errors[0].first["timestamp"],
                [reader.occurrence(one) for one in errors[:each]])
            for kind, what, errors in self._groups[start : start + limit]
        ]  # fmt: skip


def fixes_of(connection: sqlite3.Connection, text: str, project: str | None = None) -> Fixes:
    """Return what ended an error. `project` is a JSON array of ids; None for all.

    Raises UsageError for a text without a word that an error could be known by.
    """
    error = telling_line(text.replace("\0", " "))
    if not words_of(error):
        raise UsageError("There is no word in this text. Give the line that says what is wrong.")
    found = Fixes(error)
    rows: list[tuple[sqlite3.Row, str]] = []
    for without_quoted in (False, True):
        words = words_of(error, without_quoted=without_quoted)[:_MOST_WORDS]
        if words:
            rows, is_cut = results_with(connection, words, project, without_quoted=without_quoted)
            if is_cut:
                found.notes.append(f"Only the last {MOST_RESULTS} outputs were looked at.")
        found.is_exact = not without_quoted
        if rows:
            break
    errors = errors_of(connection, rows)
    found.errors, found.ended = len(errors), sum(one.end is not None for one in errors)
    found.conversations = len({one.first["session_id"] for one in errors})
    found._groups = grouped(errors)
    return found


# -- what is shown of them -------------------------------------------------------------------------


class _Reader:
    """Reads what is shown of an error."""

    def __init__(self, connection: sqlite3.Connection, clean: Callable[[str], str]) -> None:
        self._connection = connection
        self._clean = clean
        self._names = Names(connection)

    def occurrence(self, error: FoundError) -> dict[str, object]:
        """Return an error as data."""
        row = error.first
        session = self._session(row["session_id"])
        (place,) = sql.ask(
            self._connection, "pages/blame_places",
            places=json.dumps([[row["file_id"], row["result_offset"], row["subagent_id"]]]),
        ).fetchall()  # fmt: skip
        line = self._names.line(row["file_id"], row["result_offset"])
        changed = done(error)
        texts = texts_of(self._connection, [call["call_id"] for call in changed[-_STEPS:]])
        shown = Occurrence(
            ref=self._names.at(row["file_id"], line),
            key=short_key(self._connection, session["session_key"]) if session else None,
            title=session["title"] if session else None,
            project=session["project"] if session else None,
            branch=place["branch"] or None,
            time=row["timestamp"],
            command=row["target"] and self._clean(row["target"]),
            error=line_of(self._clean(error.line)),
            times=len(error.rows),
            steps=[self._step(call, texts.get(call["call_id"], "")) for call in changed[-_STEPS:]],
            ended=self._end(error.end),
            file=place["file"],
            line=line,
            byte=row["result_offset"],
        )
        return {field.name: getattr(shown, field.name) for field in fields(shown)}

    def _session(self, session: object) -> sqlite3.Row | None:
        rows = sql.ask(self._connection, "pages/blame_conversations", ids=json.dumps([session]))
        row: sqlite3.Row | None = rows.fetchone()
        return row

    def _step(self, call: sqlite3.Row, text: str) -> dict[str, object]:
        changed = ""
        if call["action"] == EDIT:
            try:
                value = json.loads(self._clean(text))
            except ValueError:  # it was cut, or what was removed left no JSON
                value = None
            changed = shortly(value) if isinstance(value, dict) else ""
        return {
            "ref": self._names.of(call["file_id"], call["byte_offset"]),
            "action": call["action"],
            "target": self._clean(call["target"] or ""),
            "text": self._clean(changed) if changed else None,
        }

    def _end(self, call: sqlite3.Row | None) -> dict[str, object] | None:
        if call is None:
            return None
        ref = self._names.of(call["file_id"], call["byte_offset"])
        return {"ref": ref, "target": self._clean(call["target"] or "")}


def said(found: Fixes) -> str:
    """Return in a sentence how often an error was found, and how often it ended."""
    where = humanize.many(found.conversations, "conversation")
    ended = f"{found.ended:,} ended" if found.ended else "none ended"
    return f"Found {humanize.many(found.errors, 'time')} in {where}; {ended}."
