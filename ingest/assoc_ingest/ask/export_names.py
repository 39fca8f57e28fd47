"""Which conversations of a project are exported, and how their files are called."""

from __future__ import annotations

import re
import sqlite3
from typing import NamedTuple

from .. import humanize, sql
from ..secrets.mask import redact
from ..terminal import cut, one_line
from .lookup import short_key
from .project_names import project_ids

_not_of_name = re.compile(r"[^a-z0-9]+")
_LONGEST_SLUG = 50
_SHOWN = 120  # letters of a title in an index


class Named(NamedTuple):
    """A conversation with the name of its file."""

    session_key: str
    name: str
    title: str
    about: str


def conversations_of(
    connection: sqlite3.Connection, project: str, form: str, *, redacts: bool
) -> list[Named]:
    """Return the conversations of a project, newest first, with a name for each that is its own.

    A name consists of the date, the title and the key, in letters that every system takes.
    Raises NotFoundError or UsageError if `project` means none.
    """
    ids = project_ids(connection, project)
    found: dict[str, Named] = {}
    taken = {"index"}
    for row in sql.ask(connection, "lists/sessions", project=ids, limit=-1):
        key = str(row["session_key"])
        if key in found:  # the same conversation in two homes
            continue
        title = str(row["title"] or "(untitled)")
        title = cut(one_line(redact(title)[0] if redacts else title), _SHOWN)
        at = row["started_at"] or row["ended_at"]
        stem = "-".join(
            filter(
                None, (humanize.moment(at)[:10], _slug(title), _slug(short_key(connection, key)))
            )
        )
        number, name = 1, stem
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name)
        counts = f"{humanize.moment(at)} · {humanize.many(row['prompt_count'], 'prompt')}"
        found[key] = Named(key, f"{name}.{form}", title, counts)
    return list(found.values())


def _slug(text: str) -> str:
    """Return a text in lower-case letters, digits and dashes, none at its ends."""
    return _not_of_name.sub("-", text.lower())[:_LONGEST_SLUG].strip("-")
