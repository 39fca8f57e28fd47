"""The tool `open`: what a reference means. Of a conversation a summary first, then its messages, a
window at a time.

A window begins behind a place in a file, which its cursor holds, so that the last one of a long
conversation costs as little as the first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..ask.answer import Cursors
from ..ask.conversation import Conversation, Part, Place
from ..errors import NotFoundError, UsageError
from ..questions.fit import DEFAULT_CHARS, Answer, Item
from .question_tool import fields_of, stated
from .tool import QUOTED, TEXT, Arguments, Tool

if TYPE_CHECKING:
    from ..ask.excerpt import Excerpt
    from .index import Index

_BEFORE, _AFTER, _MOST = 4, 8, 200
_CANDIDATES = 20
_EACH = 3_000  # characters of an answer for each message before the line
_LARGE, _BLOCKS = 10**10, 1_000  # bytes of a file, and blocks of a line, at most


class Position(NamedTuple):
    """A message, and the letter of its text from which on it was not shown."""

    file: int
    """The id of its file; 0 for the beginning."""
    offset: int
    block: int
    letter: int = 0


def run(index: Index, arguments: Arguments) -> Answer:
    """Return what the reference means."""
    from ..ask import excerpt as excerpts
    from ..ask.excerpt import Options
    from ..ask.refs import Line
    from ..questions.open import summary
    from ..questions.show import opened

    reference = str(arguments["ref"])
    around = [arguments.get("before"), arguments.get("after")]
    cursors = Cursors(
        "open", str(index.settings.database), index.settings.project, reference, around
    )
    try:
        found = opened(index.connection, reference, Options())
    except (NotFoundError, UsageError) as error:
        error.candidates = _candidates(index.connection, reference)
        raise
    if isinstance(found, list):
        return _entries(found, arguments, cursors)
    conversation, what = found
    place = cursors.place(arguments.get("cursor"), [0, 0, 0, 0])
    if isinstance(what, Line):
        before, after = _counts(arguments)
        excerpt = excerpts.messages_around(conversation, what, before, after)
        return _messages(conversation, excerpt, place, cursors, is_shared=bool(before or after))
    if around != [None, None]:
        raise UsageError("before and after need a line. Give a ref with one: KEY:LINE")
    if what.agent_key is not None or place[0]:
        excerpt = excerpts.choose(conversation, what, Options())
        return _messages(conversation, excerpt, place, cursors)
    return Answer(
        items=iter([_item(summary(conversation, index.mask))]),
        render=partial(_rendered, "summary"),
        cursor=lambda number, letter: cursors.made(1, 0, 0, 0),
        is_continued=False,
        said=("A summary; for messages, use the cursor, or a ref with a line.",),
        behind=lambda: cursors.made(1, 0, 0, 0),
    )


def _candidates(connection: sqlite3.Connection, reference: str) -> tuple[str, ...]:
    """Return the keys that a reference may mean: those that begin like it, or are nearest to it."""
    from ..ask.refs import nearest_keys, sessions_beginning_with, split

    if split(reference) is not None:
        return ()
    key = reference.rpartition(":")[0] or reference
    beginning = [row["session_key"] for row in sessions_beginning_with(connection, key)]
    return tuple(dict.fromkeys(beginning or nearest_keys(connection, key)))[:_CANDIDATES]


def _counts(arguments: Arguments) -> tuple[int, int]:
    """Return how many messages to show before a line, and behind it: fewer of a small answer."""
    most = int(str(arguments.get("max_chars", DEFAULT_CHARS)))
    before, after = arguments.get("before"), arguments.get("after")
    return (
        min(_BEFORE, most // _EACH) if before is None else int(str(before)),
        _AFTER if after is None else int(str(after)),
    )


def _item(found: Any) -> Item:
    """Return an item without what says nothing."""
    data = asdict(found).items()
    return {name: stated(value) for name, value in data if value not in (None, [], "")}


def _rendered(block: str, item: Item) -> str:
    from ..questions.view import rendered

    return rendered("open", "mcp", block, {"item": item})


def _entries(found: Sequence[Any], arguments: Arguments, cursors: Cursors) -> Answer:
    from ..questions.open import of_entry

    start, letter = cursors.place(arguments.get("cursor"), [0, 0])
    return Answer(
        items=(_item(of_entry(entry)) for entry in found[start:]),
        render=partial(_rendered, "entry"),
        cursor=lambda number, letter: cursors.made(start + number, letter),
        first=letter,
        head={"total": len(found)},
    )


def _messages(
    conversation: Conversation,
    excerpt: Excerpt,
    place: Sequence[int],
    cursors: Cursors,
    *,
    is_shared: bool = True,
) -> Answer:
    """Return the messages of an excerpt from a place on."""
    start = Position(max(place[0] - 1, 0), *place[1:])
    positions: list[Position] = []

    def cursor(number: int, letter: int) -> str:
        known = positions[number] if number < len(positions) else _furthest(conversation, excerpt)
        return cursors.made(known.file + 1, *known[1:3], letter)

    session = conversation.session
    head = {
        "session": conversation.short_key(),
        "title": session["title"],
        "project": session["project"],
        "is_begun_before": excerpt.is_cut_before or None,
    }
    return Answer(
        items=_items(conversation, excerpt, start, positions.append),
        render=partial(_rendered, "message"),
        cursor=cursor,
        first=start.letter,
        is_shared=is_shared,
        head=stated(head),
        said=excerpt.line.notes if excerpt.line else (),
        empty="There is no message here.",
    )


def _items(
    conversation: Conversation,
    excerpt: Excerpt,
    start: Position,
    note: Callable[[Position], None],
) -> Iterator[Item]:
    """Yield the messages; the position of each is noted before it is yielded."""
    from ..questions.open import of_message

    names, root = conversation.names(), str(conversation.session["root"])
    for part in _parts_from(excerpt.parts, start):
        for message in conversation.messages_of(part):
            if not message.stands_elsewhere or message.answers is not None:
                note(Position(part.file, message.byte_offset, message.block))
                yield _item(of_message(names, excerpt, root, message))


def _furthest(conversation: Conversation, excerpt: Excerpt) -> Position:
    """Return a position with numbers as long as those of any message here."""
    sizes = {file.id: file.size for file in conversation.files}
    most = max((sizes.get(part.file, _LARGE) for part in excerpt.parts), default=0)
    return Position(max((part.file for part in excerpt.parts), default=0), most, _BLOCKS)


def _parts_from(parts: Sequence[Part], start: Position) -> Sequence[Part]:
    """Return the parts from a position on. Raises UsageError if its file is not there."""
    if not start.file:
        return parts
    files = [part.file for part in parts]
    if start.file not in files:
        raise UsageError("The cursor refers to data that no longer exists. Open the ref again.")
    first, *others = parts[files.index(start.file) :]
    # A query begins behind a place: right before the position.
    before = Place(start.offset - 1, 2**31)
    if start.block:
        before = Place(start.offset, start.block - 1)
    if first.after is None or before > first.after:
        first = first._replace(after=before)
    return [first, *others]


_COUNT = {"type": "integer", "minimum": 0, "maximum": _MOST}
_PART = {
    "from": {
        "type": "integer",
        "description": "Offset in the whole text at which `text` begins.",
    },
    "letters": {
        "type": "integer",
        "description": "Length of the whole text, if it was cut to leave room for others. Open its "
        "ref with before 0 and after 0 to read it.",
    },
}
"""Fields of an item that does not have all of its text."""


def tool() -> Tool:
    from ..questions.open import Opening

    fields: dict[str, Any] = fields_of(Opening)
    fields["items"]["items"]["properties"] |= _PART
    return Tool(
        name="open",
        title="Open a place in a past conversation",
        description=(
            "Open what a `ref` means: KEY:LINE shows the messages around a line, KEY first a "
            "summary of the conversation (title, prompts, outcome, files changed), then, behind "
            "the cursor, its messages from the beginning; the key of a subagent shows its "
            "messages. task:LIST/TASK, todo:SESSION, plan:NAME, inbox:TEAM/NAME/NUMBER, "
            "document:PATH, prompt:LINE and output:SESSION/FILE open what is no conversation. The "
            f"beginning of a key is enough. {QUOTED}"
        ),
        properties={
            "ref": {**TEXT, "description": "KEY, KEY:LINE, or a name such as plan:NAME."},
            "before": {**_COUNT, "description": f"Messages before the line. Default {_BEFORE}."},
            "after": {**_COUNT, "description": f"Messages after the line. Default {_AFTER}."},
        },
        required=("ref",),
        run=run,
        fields=fields,
    )
