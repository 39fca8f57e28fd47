"""`show`: what a reference opens: a conversation, a part of it, or entries of a store.

People get all of it as text, and programs its messages. Agents, who call it `open`, get a summary
of a conversation first, and then its messages, a window at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from .question import Field, Reader, Size, question

if TYPE_CHECKING:
    from ..ask.conversation import Conversation
    from ..ask.excerpt import Excerpt, Opened, Options
    from ..ask.refs import KeyMatch, Line
    from ..terminal import Paint
    from .open import Opening
else:  # what only agents get is imported for them
    Opening = object


# ------------------------------------------------------------------------------------------------
# For people and programs: all that there is.


PLACE = {
    "ref": "string or null",
    "line": "integer or null",
    "is_marked": "integer, where a line was asked for",
    "agent_key": "string or null",
}
"""The fields with the place of a message, before its own."""

_MAX_WIDTH = 100
_MOST_FILES = 20
_MOST_COUNTED = 5_000
"""Messages of a session that are counted for `total`: they are read to know which are shown."""


@dataclass
class Printed:
    """The text for people."""

    _lines: Callable[[int, Paint], Iterator[str]]
    has_mark: bool = False
    """Does a pager open at a line of it?"""

    def lines(self, width: int, paint: Paint) -> Iterator[str]:
        return self._lines(min(width, _MAX_WIDTH), paint)


@dataclass
class Shown:
    """The messages of a conversation; those of subagents behind those that called them."""

    session: Annotated[dict[str, object], "what is known of the conversation"]
    subagent: Annotated[str | None, "key of the subagent that was asked for, or null"]
    total: int | None
    items: Iterable[dict[str, object]]
    """Read as they are needed: a conversation may be longer than memory."""
    _has_more: bool = False
    """Known once the items were read."""
    _NULLS: ClassVar = ("subagent",)


@dataclass
class ShownEntries:
    """Entries of a store that have one name."""

    total: int
    items: Sequence[Any]


def _agents() -> type:
    from .open import Opening

    return Opening


_MOST = 200  # messages before a line, and behind it


@question(
    "Open a place in a past conversation",
    tool="open",
    agents=_agents,
    items="messages",
    about="Open what a `ref` means: KEY:LINE shows the messages around a line, KEY first a "
    "summary of the conversation (title, prompts, outcome, files changed), then, behind "
    "the cursor, its messages from the beginning; the key of a subagent shows its "
    "messages. task:LIST/TASK, todo:SESSION, plan:NAME, inbox:TEAM/NAME/NUMBER, "
    "document:PATH, prompt:LINE and output:SESSION/FILE open what is no conversation. The "
    "beginning of a key is enough.",
    terminal=Size(0), json=Size(50), mcp=Size(0),
)  # fmt: skip
def show(
    reader: Reader,
    ref: Annotated[
        str,
        Field(
            "KEY, KEY:LINE, or a name such as plan:NAME.", name="KEY[:LINE]", completes="sessions"
        ),
    ],
    before: Annotated[
        int | None,
        Field("Messages before the line. Default 4.", least=0, most=_MOST, is_for_agents=True),
    ] = None,
    after: Annotated[
        int | None,
        Field("Messages after the line. Default 8.", least=0, most=_MOST, is_for_agents=True),
    ] = None,
    context: Annotated[
        int | None,
        Field(
            "With LINE, show N turns before and after it.  [default: 3]",
            name="N",
            least=0,
            is_option=True,
        ),
    ] = None,
    full: Annotated[
        bool,
        Field("Show everything uncut, including tool input and output.", is_option=True),
    ] = False,
    last: Annotated[
        int | None, Field("Show only the last N turns.", name="N", is_option=True)
    ] = None,
    prompts: Annotated[bool, Field("Show only what you typed.", is_option=True)] = False,
    errors: Annotated[
        bool, Field("Show only failed tool calls and API errors.", is_option=True)
    ] = False,
    tool: Annotated[
        str | None, Field("Show only calls of this tool.", name="NAME", is_option=True)
    ] = None,
    no_tools: Annotated[
        bool, Field("Leave out tool calls, results and hooks.", is_option=True)
    ] = False,
) -> Opening | Printed | ShownEntries | Shown:
    """Print a conversation, or open a search result.

    KEY is a prefix of the key of a session or subagent, as printed by `search` and `list`. With
    LINE, the number of a line in its file, only the turns around that line are shown; a turn is a
    prompt and everything up to the next one. Subagents appear below the calls that spawned them.

    Everything outside of conversations has a name: task:LIST/TASK, todo:SESSION, plan:NAME,
    inbox:TEAM/NAME/NUMBER, document:PATH, prompt:LINE, output:SESSION/FILE.

    \b
    Examples:
      assoc-ingest show 0b7c2f4e
      assoc-ingest show 0b7c2f4e:212 --context 1
      assoc-ingest show plan:brave-green-hedge
    """
    from ..ask.excerpt import Options, opened

    options = Options(not no_tools, full, context, last, prompts, errors, tool)
    if reader.budget is not None:
        from .open import opening

        return opening(reader, ref, before, after)
    found = opened(reader.db, ref, options)
    if not reader.is_program:
        return _printed(found, options)
    if isinstance(found, list):
        return ShownEntries(len(found), found[reader.start :])
    return _shown(reader, *found, options)


def _printed(found: Opened, options: Options) -> Printed:
    from ..ask.refs import Line
    from .transcript import Look, entry_lines, lines

    if isinstance(found, list):
        return Printed(lambda width, paint: entry_lines(found, Look(width, paint)))
    conversation, what = found
    return Printed(
        lambda width, paint: lines(conversation, Look(width, paint), what, options),
        has_mark=isinstance(what, Line),
    )


# ------------------------------------------------------------------------------------------------
# For programs: messages with the place of each. A message of the requested line has is_marked 1.


def _shown(
    reader: Reader, conversation: Conversation, what: KeyMatch | Line, options: Options
) -> Shown:
    from ..ask import excerpt as excerpts

    excerpt = excerpts.choose(conversation, what, options)
    agent_key = excerpt.subagent.agent_key if excerpt.subagent else None
    total = None
    (rows,) = reader.db.execute(
        "select count(*) from messages where session_id = ?", (conversation.session["id"],)
    ).fetchone()
    if rows <= _MOST_COUNTED:
        selections = excerpts.selections(conversation, excerpt, options)
        total = sum(1 for _, messages in selections for _ in messages)
    shown = Shown(_session(conversation), agent_key, total, ())
    items = islice(_messages(conversation, excerpt, options), reader.start, None)
    shown.items = _limited(shown, items, reader.limit)
    return shown


def _limited(
    shown: Shown, items: Iterable[dict[str, object]], limit: int
) -> Iterator[dict[str, object]]:
    for number, item in enumerate(items):
        if number == limit:
            shown._has_more = True
            return
        yield item


def _session(conversation: Conversation) -> dict[str, object]:
    """Return what is known of a session; of very many files only the first."""
    from ..ask.notes import notes_above, told
    from ..ask.since import changed_since
    from ..ask.usage import spent_of

    found = notes_above(conversation.connection, str(conversation.session["session_key"]), None)
    since = changed_since(conversation.connection, conversation.session)
    return {
        **conversation.session,
        **spent_of(conversation).as_json(),
        "changed_since": since and since._asdict(),
        "noted": told(found, str),
        "models": conversation.models,
        "file_count": len(conversation.files),
        "files": [file._asdict() for file in conversation.files[:_MOST_FILES]],
        "subagent_count": len(conversation.subagents),
        "resume": conversation.resume,
    }


def _messages(
    conversation: Conversation, excerpt: Excerpt, options: Options
) -> Iterator[dict[str, object]]:
    from ..ask import excerpt as excerpts

    names = conversation.names()
    for subagent, messages in excerpts.selections(conversation, excerpt, options):
        agent_key = subagent.agent_key if subagent else None
        for message in messages:
            line = names.line(message.file_id, message.byte_offset)
            place = {"ref": names.at(message.file_id, line), "line": line}
            marked = {"is_marked": int(message.id in excerpt.marks)} if excerpt.marks else {}
            yield {**place, **marked, "agent_key": agent_key, **message.as_json()}
