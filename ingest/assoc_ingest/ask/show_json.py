"""A conversation, or a part of it, as the JSON answer of `answer`: one item for each message.

Beside the frame it has `session`, with what is known of the conversation, and `subagent`, the key
of the one that was asked for. The messages of subagents come behind those of the conversation that
called them, each with its `agent_key`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from . import excerpt as excerpts
from .answer import Answer, Item, Wanted
from .conversation import Conversation
from .excerpt import Excerpt, Options
from .heading import spent_of
from .lookup import Key
from .refs import Line

PLACE = {
    "ref": "string or null",
    "line": "integer or null",
    "is_marked": "integer, where a line was asked for",
    "agent_key": "string or null",
}
"""The fields of an item that say where its message stands, before those of the message."""

_MOST_FILES = 20
_MOST_COUNTED = 5_000
"""Messages of a session that are counted for `total`: they are read to know which are shown."""


def as_json(
    conversation: Conversation,
    what: Key | Line | None = None,
    options: Options | None = None,
    wanted: Wanted | None = None,
    limit: int | None = None,
) -> Iterator[str]:
    """Yield the pieces of the answer, with at most `limit` messages.

    Of a part of a conversation, the items are that part, and a message of the line that was asked
    for has is_marked 1.
    """
    options = options or Options()
    what = what or Key(str(conversation.session["session_key"]))
    excerpt = excerpts.choose(conversation, what, options)
    place = what.number if isinstance(what, Line) else None
    asked = ["show", conversation.session["session_key"], whose(excerpt), place, repr(options)]
    answer = Answer(conversation.connection, asked, wanted or Wanted())
    items = islice(_items(conversation, excerpt, options), answer.start, None)
    total = None
    (rows,) = conversation.connection.execute(
        "select count(*) from messages where session_id = ?", (conversation.session["id"],)
    ).fetchone()
    if rows <= _MOST_COUNTED:
        found = excerpts.selections(conversation, excerpt, options)
        total = sum(1 for _, messages in found for _ in messages)
    before = {"session": _session(conversation), "subagent": whose(excerpt)}
    yield from answer.pieces(items, total=total, limit=limit, before=before)


def whose(excerpt: Excerpt) -> str | None:
    """Return the key of the subagent that was asked for, None for a conversation."""
    return excerpt.subagent.agent_key if excerpt.subagent else None


def _session(conversation: Conversation) -> dict[str, object]:
    """Return what is known of a session; of very many files only the first."""
    files = [file._asdict() for file in conversation.files[:_MOST_FILES]]
    return {
        **conversation.session,
        **spent_of(conversation).as_json(),
        "models": conversation.models,
        "file_count": len(conversation.files),
        "files": files,
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
