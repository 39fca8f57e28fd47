"""Errors in stored output, each with the call that ended it, and what was done in between."""

from __future__ import annotations

import json
import posixpath
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from .. import sql
from ..project_paths import slashed
from ..records import EDIT, OTHER, READ, RUN
from .command_text import in_short, is_same, only_reads
from .error_text import line_with, words_of
from .evidence import texts_of
from .expressions import TOOLS, in_scope
from .terms import Term

MOST_RESULTS = 300
"""Results with the words whose texts are read."""

_AFTER = 100  # calls behind an error that are looked at
_NAMED = 3

EDITED, RAN, LOOKED, AGAIN, NEVER = "edited", "ran", "looked", "again", "never"


@dataclass(slots=True)
class FoundError:
    """An error that came one or several times, and the call that ended it."""

    rows: list[sqlite3.Row]
    line: str
    between: list[sqlite3.Row]
    end: sqlite3.Row | None

    @property
    def first(self) -> sqlite3.Row:
        """The call that gave it first."""
        return self.rows[0]


def results_with(
    connection: sqlite3.Connection, words: list[str], project: str | None, *, without_quoted: bool
) -> tuple[list[tuple[sqlite3.Row, str]], bool]:  # fmt: skip
    """Return the calls whose result has the words of an error in one line, with that line.

    Also return whether there are more than were looked at: those that were read last.
    """
    match = " AND ".join(Term(word).expression() for word in dict.fromkeys(words))
    rows = sql.ask(
        connection, "pages/fix_errors", match=in_scope(TOOLS, match),
        actions=json.dumps([RUN, OTHER]), project=project, limit=MOST_RESULTS + 1,
    ).fetchall()  # fmt: skip
    is_cut = len(rows) > MOST_RESULTS
    rows = [
        row
        for row in rows[:MOST_RESULTS]
        if row["status"] == "error" or not only_reads(row["target"] or "")
    ]
    texts = texts_of(connection, [row["result_id"] for row in rows])
    listed = []
    for row in rows:
        line = line_with(texts.get(row["result_id"], ""), words, without_quoted=without_quoted)
        if line is not None:
            listed.append((row, line))
    return listed, is_cut


def errors_of(
    connection: sqlite3.Connection, rows: Iterable[tuple[sqlite3.Row, str]]
) -> list[FoundError]:
    """Return the errors of each file; what came again before it ended is one."""
    found: dict[tuple[int, object], FoundError] = {}
    for row, line in sorted(rows, key=lambda one: (one[0]["file_id"], one[0]["byte_offset"])):
        between, end = _until_it_ended(connection, row, line)
        ending: object = end["id"] if end is not None else (row["subagent_id"], row["target"])
        known = found.get((row["file_id"], ending))
        if known is not None:
            known.rows.append(row)
        else:
            found[row["file_id"], ending] = FoundError([row], line, between, end)
    return list(found.values())


def _until_it_ended(
    connection: sqlite3.Connection, row: sqlite3.Row, line: str
) -> tuple[list[sqlite3.Row], sqlite3.Row | None]:
    """Return what was done behind an error, and the call that succeeded, if any did."""
    after = sql.ask(
        connection, "pages/calls_after", file=row["file_id"], byte_offset=row["byte_offset"],
        subagent=row["subagent_id"], limit=_AFTER,
    )  # fmt: skip
    words = words_of(line)
    between: list[sqlite3.Row] = []
    for call in after:
        if call["status"] == "ok" and _is_again(row, call):
            texts = texts_of(connection, [call["result_id"]])
            if line_with(texts.get(call["result_id"], ""), words) is None:
                return between, call
        between.append(call)
    return between, None


def _is_again(failed: sqlite3.Row, call: sqlite3.Row) -> bool:
    if failed["action"] != call["action"] or failed["tool"] != call["tool"]:
        return False
    one, other = failed["target"] or "", call["target"] or ""
    return is_same(one, other) if failed["action"] == RUN else one == other


def done(error: FoundError) -> list[sqlite3.Row]:
    """Return the calls before the end that changed something, as far as that can be told."""
    if error.end is None:
        return []
    return [
        call
        for call in error.between
        if call["status"] == "ok"
        and (
            call["action"] == EDIT
            or (
                call["action"] == RUN
                and not only_reads(call["target"] or "")
                and not is_same(error.first["target"] or "", call["target"] or "")
            )
        )
    ]


def grouped(errors: Iterable[FoundError]) -> list[tuple[str, str, list[FoundError]]]:
    """Return the endings, each with its kind, what was done, and the errors that ended so.

    The most frequent comes first, the newest first among those, and what did not end last.
    """
    groups: dict[tuple[str, str], list[FoundError]] = {}
    for one in errors:
        groups.setdefault(_ending(one), []).append(one)
    listed = [(kind, what, found) for (kind, what), found in groups.items()]
    for _, _, found in listed:
        found.sort(key=lambda one: one.first["timestamp"] or "", reverse=True)
    listed.sort(key=lambda group: group[2][0].first["timestamp"] or "", reverse=True)
    listed.sort(key=lambda group: (group[0] == NEVER, -len(group[2])))
    return listed


def _ending(error: FoundError) -> tuple[str, str]:
    """Return how an error ended, and what was done, in words."""
    if error.end is None:
        return NEVER, "did not end in its conversation"
    changes = done(error)
    names = [posixpath.basename(slashed(call["target"] or "")) for call in changes
             if call["action"] == EDIT]  # fmt: skip
    if names:
        return EDITED, f"edited {_listed(sorted(set(names)))}"
    commands = [in_short(call["target"] or "") for call in changes]
    if commands:
        return RAN, f"ran {_listed(list(dict.fromkeys(commands)))}"
    if _was_read(error):
        return LOOKED, "read the file first"
    if error.first["action"] == RUN and error.first["target"] != error.end["target"]:
        return RAN, f"ran it as {in_short(error.end['target'] or '')}"
    return AGAIN, "the same again, with nothing changed"


def _was_read(error: FoundError) -> bool:
    """Was that read in between to which the failed call was applied?"""
    return any(
        call["action"] == READ and call["target"] == error.first["target"] for call in error.between
    )


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
