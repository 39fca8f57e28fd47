"""A conversation or a part of it as one JSON object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..terminal import safe_json
from . import excerpt as excerpts
from .conversation import Conversation, Message
from .excerpt import Excerpt, Options
from .lookup import Key
from .refs import Line, Names


def as_json(
    conversation: Conversation, what: Key | Line | None = None, options: Options | None = None
) -> Iterator[str]:
    """Yield the pieces of {session: {}, subagent: key, messages: [], subagents: []}.

    Of a part of a conversation, messages holds that part, and a message of the line that was asked
    for has is_marked 1. Where one subagent was asked for, subagent is its key.
    """
    options = options or Options()
    what = what or Key(str(conversation.session["session_key"]))
    excerpt = excerpts.choose(conversation, what, options)
    names = conversation.names()
    files = [file._asdict() for file in conversation.files]
    session = {**conversation.session, "models": conversation.models, "files": files}
    session["resume"] = conversation.resume
    whose = excerpt.subagent.agent_key if excerpt.subagent else None
    yield f'{{"session": {safe_json(session)},\n"subagent": {safe_json(whose)},\n"messages": ['
    main = (
        message
        for part in excerpt.parts
        for message in excerpts.selected(conversation, part, options)
    )
    yield from _list(_items(main, names, excerpt))
    yield '],\n"subagents": ['
    for number, subagent in enumerate(excerpts.subagents(conversation, excerpt)):
        facts = subagent._asdict()
        del facts["spawned_by"]  # the id of a tool call; call_id is the message that called
        yield ",\n" if number else "\n"
        yield safe_json(facts)[:-1] + ', "messages": ['
        inside = (
            message
            for part in conversation.parts(subagent)
            for message in excerpts.selected(conversation, part, options)
        )
        yield from _list(_items(inside, names, excerpt))
        yield "]}"
    yield "]}\n"


def _items(messages: Iterable[Message], names: Names, excerpt: Excerpt) -> Iterator[str]:
    for message in messages:
        line = names.line(message.file_id, message.byte_offset)
        place = {"ref": names.at(message.file_id, line), "line": line}
        marked = {"is_marked": int(message.id in excerpt.marks)} if excerpt.marks else {}
        yield safe_json({**place, **marked, **message.as_json()})


def _list(items: Iterable[str]) -> Iterator[str]:
    for number, item in enumerate(items):
        yield (",\n" if number else "\n") + item
