"""Which part of a conversation is shown: all of it, its last turns, or what is around a line.

A turn is what a person typed, and what follows up to the next time. Around a line, only as many
messages are read as are shown: a conversation may have a hundred thousand.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from ..errors import NotFoundError, UsageError, did_you_mean
from ..terminal import cut, one_line
from .conversation import PEOPLE, TOOL_KINDS, Conversation, Message, Only, Part, Place, Subagent
from .refs import Entry, KeyMatch, Line, entries_of, resolve, split

if TYPE_CHECKING:
    from . import matches
    from .query import Terms

# ------------------------------------------------------------------------------------------------
# Finds text in one conversation as a search would, in the order of its files.
#
# The query has the syntax of `search`, and the same indexes answer. All words are required: nothing
# is relaxed, because a reader goes from one place to the next.


MOST = 20_000
"""The most messages that are found."""

_MOST_MARKED = 20  # words of a query that are marked


class Match(NamedTuple):
    """A block with all words of the query."""

    file: int
    byte_offset: int
    block: int
    id: int


class FindResult(NamedTuple):
    """The matches, and which parts of the query were ignored."""

    matches: list[Match]
    marker: Marker
    notes: tuple[str, ...] = ()


def find(
    connection: sqlite3.Connection, session: int, query: str, kinds: Sequence[str] = ()
) -> FindResult:
    """Return the blocks of the conversation with this row id that have all words of a query.

    `kinds` of messages are found, if any are named, and else those of the query. A filter of the
    query that names nothing raises UsageError or NotFoundError.
    """
    from . import query as query_parser
    from .candidates import Candidates
    from .filters import Filters

    terms = query_parser.parse(query)
    filters = Filters().limited_by(terms.fields)
    if kinds:
        wanted = tuple(kind for kind in kinds if not filters.kind or kind in filters.kind)
        filters = replace(filters, kind=wanted or ("session",))  # no message is one
    notes: tuple[str, ...] = (terms.note,) if terms.note else ()
    if not terms.clauses:
        return FindResult([], Marker(terms), ("The query has no words to search for.",))
    candidates = Candidates(connection, filters)
    found = {
        Match(row["file_id"], row["byte_offset"], row["block"], row["id"])
        for row in candidates.in_conversation(session, terms, MOST)
    }
    if len(found) >= MOST:
        notes += (f"There are more than {MOST:,}; some are left out.",)
    return FindResult(sorted(found), Marker(terms), notes)


class Marker:
    """Finds the words of a query in a text, to mark them."""

    def __init__(self, terms: Terms) -> None:
        from . import matches

        self._words = matches.Places(terms.words[:_MOST_MARKED])
        self._parts = terms.parts()[:_MOST_MARKED]

    def spans(self, text: str) -> list[matches.Span]:
        """Return the positions of the words, in order, without overlaps."""
        from .matches import substrings_in

        found = sorted({*self._words.some(text), *substrings_in(text, self._parts)})
        spans: list[matches.Span] = []
        for start, end in found:
            if start < end and (not spans or start >= spans[-1][1]):
                spans.append((start, end))
        return spans


CONTEXT = 3
"""Turns shown before and after a line by default."""

_MOST = 100  # messages before and after a line, where no number of turns is asked for
_NEAREST = 3
_TOOLS = 20  # that a message names
_TYPED = tuple(sorted(PEOPLE))


@dataclass(frozen=True, slots=True)
class Options:
    """The part of a conversation that a user asked for."""

    tools: bool = True
    full: bool = False
    context: int | None = None
    last: int | None = None
    prompts: bool = False
    errors: bool = False
    tool: str | None = None

    @property
    def only(self) -> Only | None:
        """Return which messages are wanted, None for all."""
        if self.prompts:
            return Only(_TYPED)
        if self.tool is not None:
            return Only(tool=self.tool)
        if self.errors:
            return Only(errors=True)
        return None

    def check(self, what: KeyMatch | Line | None) -> None:
        """Raise UsageError if two options, or an option and what is shown, contradict each other.

        `what` is None for an entry that is no conversation.
        """
        chosen = {
            "--no-tools": not self.tools,
            "--full": self.full,
            "--context": self.context is not None,
            "--last": self.last is not None,
            "--prompts": self.prompts,
            "--errors": self.errors,
            "--tool": self.tool is not None,
        }
        given = [name for name, is_given in chosen.items() if is_given]
        if what is None and (others := [name for name in given if name != "--full"]):
            raise UsageError(f"{others[0]} applies to a conversation. Leave it out.")
        if isinstance(what, Line):
            for name in ("--last", "--prompts", "--errors", "--tool"):
                if name in given:
                    raise UsageError(
                        f"{name} applies to a whole conversation. Leave out the line, or {name}."
                    )
        elif "--context" in given:
            raise UsageError("--context says how much to show around a line: show KEY:LINE")
        for one, other in _CONTRADICTIONS:
            if one in given and other in given:
                raise UsageError(f"{one} and {other} contradict each other. Leave out one of them.")


_CONTRADICTIONS = (
    ("--prompts", "--errors"),
    ("--prompts", "--tool"),
    ("--no-tools", "--errors"),
    ("--no-tools", "--tool"),
)


Opened = tuple[Conversation, KeyMatch | Line] | list[Entry]
"""A place in a conversation, or entries of another kind."""


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


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is shown of a conversation, or of one subagent of it."""

    parts: tuple[Part, ...]
    subagent: Subagent | None = None
    marks: frozenset[int] = frozenset()
    alone: frozenset[int] = frozenset()
    """Results that do not stand under a call, because it is in another file."""
    earlier: int = 0
    """Turns before it that are not shown."""
    later: int = 0
    is_cut_before: bool = False
    """Are messages of the first turn left out?"""
    is_cut_behind: bool = False
    is_whole: bool = True
    line: Line | None = None


def choose(conversation: Conversation, what: KeyMatch | Line, options: Options) -> Excerpt:
    if isinstance(what, Line):
        if not options.tools and all(row["kind"] in TOOL_KINDS for row in conversation.line(what)):
            raise UsageError(f"Line {what.number:,} is hidden by --no-tools: leave that out.")
        return _around(conversation, what, options.context)
    if options.tool is not None:
        _check_tool(conversation, options.tool)
    subagent = _subagent(conversation, what.agent_key)
    whole = Excerpt(tuple(conversation.parts(subagent)), subagent)
    return whole if options.last is None else _last(conversation, whole, options.last)


def messages_around(conversation: Conversation, line: Line, before: int, after: int) -> Excerpt:
    """Return so many messages before and after a line, and those of the line itself."""
    rows = conversation.line(line)
    part, subagent = _part(conversation, line, rows)
    first, last = (Place(row["byte_offset"], row["block"]) for row in (rows[0], rows[-1]))
    earlier, _ = conversation.around(part, first, before + 1)
    _, later = conversation.around(part, last, after + 1)
    has_earlier, has_later = len(earlier) > before, len(later) > after
    part = part._replace(
        after=earlier[before] if has_earlier else None, until=later[after] if has_later else None
    )
    marks = frozenset(row["id"] for row in rows)
    excerpt = Excerpt(
        (part,), subagent, marks, is_cut_before=has_earlier, is_cut_behind=has_later, line=line
    )
    return _with_subagents(excerpt, rows)


def selections(
    conversation: Conversation, excerpt: Excerpt, options: Options, *, context: bool = False
) -> Iterator[tuple[Subagent | None, Iterator[Message]]]:
    """Yield what is asked for of the conversation, then of each of its subagents.

    What a person typed goes before the errors of its turn where `context` is given.
    """
    by_id = {one.id: one for one in conversation.subagents}
    for part in excerpt.parts:
        inside = by_id.get(part.subagent) if part.subagent is not None else None
        yield inside or excerpt.subagent, selected(conversation, part, options, context=context)
    for subagent in subagents(conversation, excerpt) if not options.prompts else ():
        for part in conversation.parts(subagent):
            yield subagent, selected(conversation, part, options, context=context)


def subagents(conversation: Conversation, excerpt: Excerpt) -> list[Subagent]:
    """Return the subagents that are part of an excerpt: only a whole conversation has them."""
    is_whole = excerpt.is_whole and excerpt.line is None and excerpt.subagent is None
    return conversation.subagents if is_whole else []


def selected(
    conversation: Conversation, part: Part, options: Options, *, context: bool = False
) -> Iterator[Message]:
    only = options.only
    if only is not None and options.errors and context:
        only = only._replace(kinds=_TYPED)
    for message in conversation.messages_of(part, only):
        is_error = message.status == "error" or message.kind not in ("tool_use", "tool_result")
        if (options.prompts and message.stands_elsewhere) or (options.errors and not is_error):
            continue
        if options.tools or message.kind not in TOOL_KINDS:
            yield message


def _subagent(conversation: Conversation, agent_key: str | None) -> Subagent | None:
    if agent_key is None:
        return None
    found = [one for one in conversation.subagents if one.agent_key == agent_key]
    if not found:
        raise NotFoundError(f"Nothing is known of the subagent {agent_key!r}.")
    return max(found, key=lambda one: one.message_count)


def _check_tool(conversation: Conversation, name: str) -> None:
    """Raise NotFoundError, with the tools that were called, if this one was not."""
    calls = conversation.tools()
    tools = [tool for tool, _ in calls]
    if name in tools:
        return
    listed = ", ".join(f"{_short(tool)} ({count:,})" for tool, count in calls[:_TOOLS])
    if not tools:
        raise NotFoundError("No tool was called in this conversation.")
    hint = did_you_mean(name, tools, _NEAREST, show=_short)
    raise NotFoundError(f"No call of {name!r} in this conversation.{hint} Its tools: {listed}")


def _short(name: str) -> str:
    return cut(one_line(name), 60)


def _last(conversation: Conversation, whole: Excerpt, count: int) -> Excerpt:
    """Return the last turns; where there are fewer, everything."""
    if count < 1:
        raise UsageError("--last takes a number of turns, from 1.")
    parts: list[Part] = []
    missing = count
    for number in range(len(whole.parts) - 1, -1, -1):
        part = whole.parts[number]
        turns = conversation.turns(part)
        if len(turns) >= missing:
            begin = Place(turns[-missing], -1)
            earlier = len(turns) - missing
            earlier += sum(len(conversation.turns(other)) for other in whole.parts[:number])
            parts.insert(0, part._replace(after=begin))
            return replace(whole, parts=tuple(parts), earlier=earlier, is_whole=False)
        missing -= len(turns)
        parts.insert(0, part)
    return whole


def _around(conversation: Conversation, line: Line, context: int | None) -> Excerpt:
    rows = conversation.line(line)
    part, subagent = _part(conversation, line, rows)
    anchor = min(_place(row, line) for row in rows)
    turns = conversation.turns(part)
    here = bisect_right(turns, anchor.byte_offset) - 1
    wanted = CONTEXT if context is None else context
    first, behind = max(here - wanted, -1), here + 1 + wanted
    after = Place(turns[first], -1) if first > 0 else None
    until = Place(turns[behind], -1) if behind < len(turns) else None
    excerpt = Excerpt(
        parts=(part._replace(after=after, until=until),),
        subagent=subagent,
        marks=frozenset(row["id"] for row in rows),
        alone=frozenset(row["id"] for row in rows if _is_alone(row, line)),
        earlier=max(first, 0),
        later=max(len(turns) - behind, 0),
        is_whole=after is None and until is None,
        line=line,
    )
    bounded = excerpt if context is not None else _bounded(conversation, excerpt, anchor)
    return _with_subagents(bounded, rows)


def _part(
    conversation: Conversation, line: Line, rows: Sequence[sqlite3.Row]
) -> tuple[Part, Subagent | None]:
    """Return the file of a line, and the subagent in which all of the line is."""
    inside = {row["subagent_id"] for row in rows}
    only = inside.pop() if len(inside) == 1 else None
    subagent = next((one for one in conversation.subagents if one.id == only), None)
    return Part(line.file.path, line.file.id, only), subagent


def _with_subagents(excerpt: Excerpt, rows: Sequence[sqlite3.Row]) -> Excerpt:
    """Return an excerpt of a line that has messages of several, with a part for each of them."""
    (part,) = excerpt.parts
    others = dict.fromkeys(row["subagent_id"] for row in rows if row["subagent_id"])
    if part.subagent is not None or not others:
        return excerpt
    return replace(excerpt, parts=(part, *(part._replace(subagent=one) for one in others)))


def _bounded(conversation: Conversation, excerpt: Excerpt, anchor: Place) -> Excerpt:
    """Return an excerpt that ends after so many messages on each side, if the turns are longer."""
    (part,) = excerpt.parts
    before, behind = conversation.around(part, anchor, _MOST + 1)
    is_cut_before = len(before) > _MOST and (part.after is None or before[-1] > part.after)
    is_cut_behind = len(behind) > _MOST and (part.until is None or behind[-1] < part.until)
    if is_cut_before:
        part = part._replace(after=before[-1])
    if is_cut_behind:
        part = part._replace(until=behind[-1])
    is_whole = excerpt.is_whole and not is_cut_before and not is_cut_behind
    return replace(
        excerpt,
        parts=(part,),
        is_cut_before=is_cut_before,
        is_cut_behind=is_cut_behind,
        is_whole=is_whole,
    )


def _place(row: sqlite3.Row, line: Line) -> Place:
    """Return where a block is shown: a result is shown with its call."""
    if row["answers"] is None or _is_alone(row, line):
        return Place(row["byte_offset"], row["block"])
    return Place(row["call_offset"], row["call_block"])


def _is_alone(row: sqlite3.Row, line: Line) -> bool:
    return row["answers"] is not None and row["call_file_id"] != line.file.id
