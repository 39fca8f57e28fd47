"""What a reference opens: a conversation, a part of it, or entries of a store.

The command `show` gives people the text of it (`ask.show`) and programs its messages as JSON.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice

from ..ask import excerpt as excerpts
from ..ask import show
from ..ask.answer import Answer, Item, Wanted
from ..ask.conversation import Conversation
from ..ask.excerpt import Excerpt, Options
from ..ask.refs import Entry, KeyMatch, Line, entries_of, resolve, split
from ..ask.show import Look
from ..ask.usage import spent_of
from ..errors import NotFoundError, UsageError

Opened = tuple[Conversation, KeyMatch | Line] | list[Entry]


def opened(connection: sqlite3.Connection, reference: str, options: Options) -> Opened:
    """Return what a reference means: a place in a conversation, or entries of another kind.

    Raises NotFoundError or UsageError where it means nothing, or not what the options ask for.
    """
    if (named := split(reference)) is not None:
        options.check(None)
        try:
            return entries_of(connection, *named)
        except NotFoundError as error:
            try:  # a session may be called like a store
                what = resolve(connection, reference)
            except (NotFoundError, UsageError):
                raise error from None
    else:
        what = resolve(connection, reference)
    options.check(what)
    key = what.key if isinstance(what, Line) else what
    session = what.file.session_id if isinstance(what, Line) else what.session_id
    return Conversation(connection, key.session_key, session_id=session), what


# ------------------------------------------------------------------------------------------------
# For people, as lines of text; for programs, as the JSON answer of `ask.answer`.
#
# Beside the frame, that of a conversation has `session`, with what is known of it, and `subagent`,
# the key of the one that was asked for. The messages of subagents come behind those of the
# conversation that called them, each with its `agent_key`.


PLACE = {
    "ref": "string or null",
    "line": "integer or null",
    "is_marked": "integer, where a line was asked for",
    "agent_key": "string or null",
}
"""The fields of an item with the place of its message, before those of the message."""

_MOST_FILES = 20
_MOST_COUNTED = 5_000
"""Messages of a session that are counted for `total`: they are read to know which are shown."""


def has_mark(found: Opened) -> bool:
    return not isinstance(found, list) and isinstance(found[1], Line)


def lines(found: Opened, look: Look, options: Options) -> Iterator[str]:
    if isinstance(found, list):
        return show.entry_lines(found, look)
    return show.lines(found[0], look, found[1], options)


def as_json(
    connection: sqlite3.Connection,
    reference: str,
    options: Options,
    wanted: Wanted,
    limit: int | None = None,
) -> Iterator[str]:
    """Return the pieces of the answer; of a conversation, with at most `limit` messages.

    A message of the line that was asked for has is_marked 1.
    """
    found = opened(connection, reference, options)
    if isinstance(found, list):
        answer = Answer(connection, ["show", reference], wanted)
        return answer.pieces(map(asdict, found[answer.start :]), total=len(found))
    conversation, what = found
    excerpt = excerpts.choose(conversation, what, options)
    agent_key = excerpt.subagent.agent_key if excerpt.subagent else None
    place = what.number if isinstance(what, Line) else None
    asked = ["show", conversation.session["session_key"], agent_key, place, repr(options)]
    answer = Answer(connection, asked, wanted)
    total = None
    (rows,) = connection.execute(
        "select count(*) from messages where session_id = ?", (conversation.session["id"],)
    ).fetchone()
    if rows <= _MOST_COUNTED:
        selections = excerpts.selections(conversation, excerpt, options)
        total = sum(1 for _, messages in selections for _ in messages)
    items = islice(_items(conversation, excerpt, options), answer.start, None)
    before = {"session": _session(conversation), "subagent": agent_key}
    return answer.pieces(items, total=total, limit=limit, before=before)


def _session(conversation: Conversation) -> dict[str, object]:
    """Return what is known of a session; of very many files only the first."""
    return {
        **conversation.session,
        **spent_of(conversation).as_json(),
        "models": conversation.models,
        "file_count": len(conversation.files),
        "files": [file._asdict() for file in conversation.files[:_MOST_FILES]],
        "subagent_count": len(conversation.subagents),
        "resume": conversation.resume,
    }


def _items(conversation: Conversation, excerpt: Excerpt, options: Options) -> Iterator[Item]:
    names = conversation.names()
    for subagent, messages in excerpts.selections(conversation, excerpt, options):
        agent_key = subagent.agent_key if subagent else None
        for message in messages:
            line = names.line(message.file_id, message.byte_offset)
            place: Item = {"ref": names.at(message.file_id, line), "line": line}
            marked = {"is_marked": int(message.id in excerpt.marks)} if excerpt.marks else {}
            yield {**place, **marked, "agent_key": agent_key, **message.as_json()}
