"""What has changed since a conversation: which of the files that it edited, and by what.

Two things are known: what other conversations edited later, and which commits `sync --git` found.
Files change without either, so nothing follows for those that are not named here.
"""

from __future__ import annotations

import json
import posixpath
import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from .. import sql
from ..paths import comparable, is_windows, slashed
from ..terminal import many


class Since(NamedTuple):
    """What has changed since a conversation."""

    files: list[str]
    """Those that have changed, as the conversation named them."""
    of_files: int
    """The number of files that it edited."""
    conversations: int
    """Other conversations that edited them later."""
    commits: int

    def said(self) -> str:
        """Return it in a sentence without an end."""
        by = [(self.conversations, "other conversation"), (self.commits, "commit")]
        listed = " and ".join(many(count, what) for count, what in by if count)
        some, files = len(self.files), many(self.of_files, "file")
        which = f"{some:,} of the {files}" if some < self.of_files else f"The {files}"
        have = "has" if some == 1 else "have"
        return f"{which} edited here {have} changed since: by {listed}"


def changed_since(
    connection: sqlite3.Connection, session: sqlite3.Row | Mapping[str, object]
) -> Since | None:
    """Return what has changed since a conversation, None if nothing is known to have.

    `session` is a row of a session, with its id, its directory and the time of its end.
    """
    cwd, end = str(session["cwd"] or ""), session["ended_at"]
    rows = sql.ask(connection, "pages/session_edits", session=session["id"], limit=-1).fetchall()
    names: dict[str, str] = {}
    edited: dict[str, str] = {}
    for row in rows:
        place = _place(row["path"], cwd)
        names.setdefault(place, row["path"])
        if row["last_edited"] is not None:
            edited[place] = max(row["last_edited"], edited.get(place, ""))
    if not edited or end is None:
        return None
    later = sql.ask(
        connection, "pages/session_later_edits", session=session["id"], since=min(edited.values())
    )
    others = [
        (place, row["session_key"])
        for row in later
        if (place := _place(row["path"], row["cwd"] or "")) in edited
        and row["last_edited"] > edited[place]
    ]
    commits = sql.ask(
        connection, "pages/session_later_commits",
        files=json.dumps(list(edited.items())), ended_at=end,
    ).fetchall()  # fmt: skip
    changed = {place for place, _ in (*others, *commits)}
    if not changed:
        return None
    return Since(
        [name for place, name in names.items() if place in changed],
        len(names),
        len({key for _, key in others}),
        len({commit for _, commit in commits}),
    )


def _place(path: str, directory: str) -> str:
    """Return the whole path of a file, as projects have theirs."""
    place = path if is_windows(path) else posixpath.join(slashed(directory), path)
    return posixpath.normpath(comparable(place))
