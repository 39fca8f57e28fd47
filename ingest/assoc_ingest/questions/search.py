"""`search`: which conversations contain the words of a query, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from ..ask.hits import Hit
from ..terminal import (
    ELLIPSIS,
    branch_besides,
    columns,
    cut,
    many,
    moment,
    one_line,
    safe,
    to_copy,
    wrap,
)
from .question import WHY_NOTHING, Field, FilterFields, Reader, Size, question

if TYPE_CHECKING:
    from ..ask.filters import Filters
    from ..ask.search import Ranking, SearchResult
    from ..terminal import Paint

FILTERS = (
    "kind", "project", "repository", "session", "source", "branch", "model", "since", "until",
    "tool",
)  # fmt: skip
"""What a search can be limited by."""

EVIDENCE = (
    "strong, weak or none: how much of the query the best of the first conversations holds. "
    "Weak matches are unlikely to be an answer."
)
UNDERSTOOD = (
    "Words of the query that were taken for filters: {words: filters}. In quotes they are words."
)
_FURTHEST = 1_000  # conversations that cursors lead to
_LONGEST_ECHO = 200  # letters of a query that a message repeats
_KINDS = {"session": "title", "tool_result_file": "output"}
_RELAXED = "relaxed"
_MOST_PHRASINGS = 4
_IN_BLOCK, _WITH_FEW, _FEW = 2, 3, 3  # hits of a conversation; one more if there are few
_SNIPPET_LINES = 3
_INDENT = "    "
_MANY = 50


@dataclass
class Place:
    """A hit in a conversation."""

    ref: Annotated[str | None, "What `open` takes."]
    kind: str | None
    tool: str | None
    subagent: str | None
    time: str | None
    why: Annotated[str, "verbatim, all_words or relaxed"]
    snippet: str | None
    file: Annotated[str | None, "The file it was read from."]
    line: int | None
    byte: Annotated[int, "Where the line begins."]
    _hit: Hit


@dataclass
class Conversation:
    """A conversation, or a thing that belongs to none, with its best hits."""

    key: str | None
    title: str | None
    project: str | None
    branch: str | None
    time: str | None
    source: str | None
    cwd: str | None
    resume: Annotated[str | None, "The command that resumes it."]
    hits: list[Place]
    more_hits: int
    _project: tuple[str, str] | None = None
    """Id and name, for links."""
    _more: str | None = None
    """The address of its other hits."""

    @property
    def best(self) -> Hit:
        return self.hits[0]._hit

    @property
    def is_close(self) -> bool:
        """Do all of its hits lack a word?"""
        return self.best.why == _RELAXED

    @property
    def texts(self) -> list[Hit]:
        """The hits except for titles, which are shown anyway."""
        return [place._hit for place in self.hits if place._hit.what != "session"]

    @property
    def facts(self) -> list[str | None]:
        branch = branch_besides(self.best.place, self.branch)
        return [self.best.place, branch, self.best.other_source]


@dataclass
class Search:
    """Conversations that were found."""

    total: Annotated[int, "Conversations that were found."]
    is_at_least: Annotated[bool, "There may be more than `total`."]
    evidence: Annotated[str, EVIDENCE]
    understood: Annotated[dict[str, str] | None, UNDERSTOOD]
    relaxed: Annotated[
        dict[str, object] | None,
        "How the query was relaxed: {missing, corrected, has_exact}.",
    ]
    notes: list[str] | None
    nothing: Annotated[dict[str, object] | None, WHY_NOTHING]
    items: Annotated[list[Conversation], "Conversations, best first, each with its best hits."]
    _query: str
    _result: Any
    """The SearchResult."""

    @property
    def border(self) -> int | None:
        """The first item of those that lack a word; None if it is the first, or others follow."""
        lacking = [item.is_close for item in self.items]
        first = lacking.index(True) if True in lacking else 0
        return first if first and all(lacking[first:]) else None

    @property
    def said(self) -> list[str]:
        """What to know before the items, one sentence each."""
        is_mixed = self.border is None and len({item.is_close for item in self.items}) > 1
        return [*self._result.said(), *["Only some of these contain all words."] * is_mixed]

    @property
    def names_close(self) -> bool:
        """Are items called close matches, rather than words corrected?"""
        relaxation = self._result.relaxation
        return relaxation is None or bool(relaxation.is_said)

    def lines(self, width: int, paint: Paint) -> Iterator[str]:
        """Yield the answer for a terminal."""
        for line in self.said:
            yield from wrap(line, width)
        most = _WITH_FEW if len(self.items) <= _FEW else _IN_BLOCK
        for number, item in enumerate(self.items):
            if number or self.said:
                yield ""
            if number == self.border:
                yield "Closest matches, with a word missing:"
                yield ""
            yield from _conversation_lines(item, most, width, paint)
        yield ""
        for line in self._footer():
            yield from (paint(part, dim=True) for part in wrap(line, width))

    def _footer(self) -> Iterator[str]:
        hits = [place._hit for item in self.items for place in item.hits]
        more = ""
        if self.total > len(self.items):
            more = f"More: -n {max(_MANY, 2 * len(self.items))}, or --all-hits."
        elif self._result.count > len(hits):
            more = "All of them: --all-hits."
        return _footer(self._result, hits, more)

    @property
    def empty(self) -> list[str]:
        """What to say if there are no items."""
        return [*self.said, f"No hits for {self._query}."]

    @property
    def reasons(self) -> list[str]:
        """Why there are no items, one sentence each."""
        why = self._result.nothing
        return [*why.lines("conversation")] if why else []


@dataclass
class Hits:
    """The same for programs: the hits in one list, of as many conversations as possible."""

    total: Annotated[int | None, "Hits that were found; null if there may be more."]
    evidence: Annotated[str, EVIDENCE]
    understood: Annotated[dict[str, str], UNDERSTOOD]
    relaxed: Annotated[dict[str, object] | None, "How the query was relaxed."]
    nothing: Annotated[dict[str, object] | None, WHY_NOTHING]
    items: Annotated[list[Hit], "Hits, best first."]
    _query: str
    _result: Any
    _has_more: bool

    def lines(self, width: int, paint: Paint) -> Iterator[str]:
        said = [part for line in self._result.said() for part in wrap(line, width)]
        yield from said
        for number, hit in enumerate(self.items):
            if number or said:
                yield ""
            yield from _hit_lines(hit, width, paint)
        yield ""
        count = len(self.items)
        more = f"More: -n {max(_MANY, 2 * count)}." if self._result.count > count else ""
        yield from (paint(line, dim=True) for line in _footer(self._result, self.items, more))

    @property
    def empty(self) -> list[str]:
        """What to say if there are no items."""
        return [*self._result.said(), f"No hits for {self._query}."]


def _check(
    query: str, raw: bool, remote: bool, origin: str | None, also: Sequence[str] | None, **_: object
) -> None:
    from ..errors import UsageError

    if not all(text.strip() for text in (query, *(also or ()))):
        raise UsageError("Give at least one word to search for.")
    if also and len(also) > _MOST_PHRASINGS:
        raise UsageError(f"--also can be given {_MOST_PHRASINGS} times.")
    if also and (raw or remote):
        raise UsageError(
            f"--also is for words; leave it out with {'--raw' if raw else '--remote'}."
        )
    if remote and raw:
        raise UsageError("--raw is a SQLite expression; leave it out with --remote.")
    if origin is not None and not remote:
        raise UsageError("--origin limits a search with --remote; add it.")


@question(
    "Search past conversations",
    items="conversations",
    parts="hits",
    check=_check,
    about="Find past conversations with coding agents, and what was said in them: prompts, "
    "answers, commands and their output, plans, tasks, notes. Use it before solving a problem that "
    "may have been solved before, and to learn why something looks the way it does. For a "
    "question, give two other phrasings in `also`: only words match, no synonyms. Each hit has a "
    "`ref`; `open` shows its context.",
    terminal=Size(10, 3), json=Size(20), mcp=Size(8, 3, 50),
)  # fmt: skip
def search(
    reader: Reader,
    query: Annotated[
        str,
        Field(
            'Words; all of them are best. "two words" in quotes are a phrase, word* is a prefix, '
            "-word excludes, OR separates alternatives.",
            is_query=True,
        ),
    ],
    *,
    filters: Annotated[
        Filters,
        FilterFields(FILTERS),
    ],
    also: Annotated[
        list[str] | None,
        Field("Another phrasing of the same question; can be given several times.", name="TEXT"),
    ] = None,
    tools: Annotated[bool, Field("Search only tool input and output.", is_option=True)] = False,
    raw: Annotated[bool, Field("Interpret QUERY as an FTS5 expression.", is_option=True)] = False,
    remote: Annotated[
        bool, Field("Use the fleet server, with the data of all machines.", is_option=True)
    ] = False,
    origin: Annotated[
        str | None,
        Field("With --remote: only what this machine pushed, by its label.", is_option=True),
    ] = None,
    include_current: Annotated[
        bool, Field("Search your own conversation, too.", is_for_agents=True)
    ] = False,
) -> Search | Hits:
    """Search conversations, plans, tasks and notes.

    Conversations with all words come first, then the closest others. "Several words" in quotes
    match as a phrase, and word* matches every word with that prefix. -word excludes messages with
    it, and OR separates alternatives. QUERY can contain filters: kind:prompt, project:shop.

    \b
    Examples:
      assoc-ingest search how did we fix the deadlock
      assoc-ingest search '"connection refused" -docker since:2w project:shop'
    """
    from ..ask.search import find, fused, with_lines
    from ..errors import UsageError

    if reader.each and reader.start > _FURTHEST:
        raise UsageError(
            "The cursor is too far from the start. Narrow the search with more words or a filter."
        )
    end = reader.start + reader.limit
    most = end + reader.is_program  # which wants to know whether there is more
    if remote:
        # A fleet server ranks by itself, so its connection has a search of its own.
        result = reader.db.search(  # type: ignore[attr-defined]
            query, filters, limit=most, tools=tools, origin=origin, shown=reader.each
        )
    else:
        own = frozenset() if include_current or filters.session else reader.own()
        rankings = [
            find(
                reader.db, text, filters, limit=most, tools=tools, raw=raw, left_out=own,
                clean=reader.mask,
            )
            for text in (query, *(also or ()))
        ]  # fmt: skip
        ranking = fused(rankings) if also else rankings[0]
        result = ranking.read(most, reader.each, with_resume=reader.is_program)
        result = replace(result, notes=(*result.notes, *_left_out(reader, ranking)))
    if not reader.each:
        hits = [*reader.page(result.hits)]
        hits = hits if result.has_lines else with_lines(reader.db, hits)
        total = None if result.is_cut and reader.is_program else result.count
        relaxed, nothing = _relaxed(reader, result), _nothing(result)
        has_more = len(result.hits) > end
        return Hits(
            total,
            result.evidence,
            {**result.understood},
            relaxed,
            nothing,
            hits,
            _in_short(query),
            result,
            has_more,
        )
    groups = reader.page(result.groups)
    every = [hit for group in groups for hit in group.hits]
    numbered = every if result.has_lines else with_lines(reader.db, every)
    read = {(hit.what, hit.id): hit for hit in numbered}
    items = [
        conversation([read[hit.what, hit.id] for hit in group.hits], group.more) for group in groups
    ]
    return answer(result, items, query, _relaxed(reader, result))


def answer(
    result: SearchResult,
    items: list[Conversation],
    query: str,
    relaxed: dict[str, object] | None,
) -> Search:
    return Search(
        result.conversations, result.is_cut, result.evidence, {**result.understood} or None,
        relaxed, [*result.notes] or None,
        _nothing(result), items, _in_short(query), result,
    )  # fmt: skip


def conversation(hits: Sequence[Hit], more: int) -> Conversation:
    """Return the conversation of its best hits, best first; `more` are not among them."""
    best, places = hits[0], [*map(_place, hits)]
    return Conversation(
        best.key or best.ref, best.title, best.project, best.branch, best.time, best.source,
        best.cwd, best.resume, places, more,
    )  # fmt: skip


def _nothing(result: SearchResult) -> dict[str, object] | None:
    return result.nothing.as_json() if result.nothing else None


def _place(hit: Hit) -> Place:
    from ..ask.matches import plain

    kind = hit.kind if hit.what == "message" else _KINDS.get(hit.what, hit.what)
    if hit.what == "note" and hit.kind:
        kind = f"{hit.kind} note"
    text = plain(hit.snippet)[0] if hit.what != "session" else None
    return Place(
        hit.ref, kind, hit.tool, hit.subagent, hit.time, hit.why, text, hit.file, hit.line,
        hit.byte, hit,
    )  # fmt: skip


def _relaxed(reader: Reader, result: SearchResult) -> dict[str, object] | None:
    """Return how the query was relaxed, with corrections that occur in what the reader may see.

    The words of the index are those of all projects.
    """
    relaxed = result.relaxed()
    if relaxed is None or result.relaxation is None or not reader.is_limited:
        return relaxed
    from ..ask.candidates import Candidates
    from ..ask.filters import Filters
    from ..ask.query import Term

    candidates = Candidates(reader.db, Filters())
    here = {
        word: [other for other in meant if candidates.finds(Term(other).expression())]
        for word, meant in result.relaxation.corrected.items()
    }
    return {**relaxed, "corrected": {word: words for word, words in here.items() if words}}


def _left_out(reader: Reader, ranking: Ranking) -> Iterator[str]:
    from ..ask.refs import short_key

    if keys := sorted(ranking.candidates.met):
        named = ", ".join(short_key(reader.db, key) for key in keys)
        yield f"Left out as the conversation that asks: {named}. include_current searches it, too."


def _in_short(text: str) -> str:
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}…"


# ------------------------------------------------------------------------------------------------
# The answer on a terminal. It has no template: loading Jinja takes as long as a search.


def _conversation_lines(one: Conversation, most: int, width: int, paint: Paint) -> Iterator[str]:
    yield _title(one.best, "", one.time, width, paint)
    hits = one.texts[:most]
    more = one.more_hits + len(one.texts) - len(hits)
    others = f"{more:,} more in this conversation" if more else None
    if about := _facts(*one.facts, others):
        yield paint(cut("  " + about, width), dim=True)
    if not hits:
        yield "  " + paint(f"{one.best.ref or ''}  in the title", "yellow")
    for number, hit in enumerate(hits):
        yield from _snippet_lines(hit, 2 if number == 0 else 1, width, paint)


def _snippet_lines(hit: Hit, most: int, width: int, paint: Paint) -> Iterator[str]:
    """Yield the reference of a hit, its author, and `most` lines of text around the match."""
    place, who = hit.ref or short_path(hit.file or "", width // 2), one_line(hit.who)
    first = f"  {place}  {who}: "
    label = f"  {paint(place, 'yellow')}  {paint(who + ':', 'cyan')} "
    indent = " " * min(columns(first), columns(place) + 4)
    if columns(first) > width // 2:
        yield f"  {paint(place, 'yellow')}  {paint(who, 'cyan')}"
        first = label = indent = _INDENT
    room = width - columns(first)
    text = _near_its_match(_marked(hit), room * most)
    head, *others = wrap(text, room) if text else [""]
    lines = [head, *(wrap(" ".join(others), width - len(indent)) if others else ())]
    if len(lines) > most:
        lines = lines[:most]
        lines[-1] = _cut_marked(lines[-1], room if most == 1 else width - columns(indent))
    painted = _painted(lines, paint)
    yield label + next(painted)
    yield from (indent + line for line in painted)


def _hit_lines(hit: Hit, width: int, paint: Paint) -> Iterator[str]:
    """Yield a hit of `--all-hits`."""
    yield _title(hit, f"{hit.ref}  " if hit.ref else "", hit.time, width, paint)
    if hit.what != "session":
        lines = islice(wrap(_marked(hit), width - len(_INDENT)), _SNIPPET_LINES)
        yield from (_INDENT + line for line in _painted(lines, paint))
    about = _INDENT + _facts(hit.who, hit.place, hit.other_source)
    path = short_path(hit.file or "", max(width - columns(about) - 2, width // 2))
    if columns(about) + columns(path) + 2 > width:
        yield paint(about, "cyan")
        about = "  "
    yield (paint(about, "cyan") + paint(f"  {path}", dim=True)).rstrip()


def _title(hit: Hit, begin: str, time: str | None, width: int, paint: Paint) -> str:
    end = moment(time)
    name = cut(one_line(hit.name), width - columns(begin) - columns(end) - 2)
    gap = " " * (width - columns(begin) - columns(name) - columns(end))
    return f"{paint(begin, 'yellow')}{paint(name, bold=True)}{gap}{paint(end, dim=True)}".rstrip()


def _facts(*facts: str | None) -> str:
    return " · ".join(one_line(fact) for fact in facts if fact)


def _footer(result: SearchResult, hits: Iterable[Hit], more: str) -> Iterator[str]:
    found = f"{many(result.conversations, 'conversation')}, {many(result.count, 'hit')}"
    yield f"{'At least ' * result.is_cut}{found}. {more}".rstrip()
    if ref := next((hit.ref for hit in hits if hit.ref), None):
        yield f"Open the first: {to_copy('assoc-ingest', 'show', name=ref)}"


def short_path(path: str, room: int) -> str:
    """Return a path, as `~/...` below the home, with its middle cut to fit into `room`."""
    from ..paths import home

    above = home()
    if above is not None and path.startswith(f"{above}/"):
        path = f"~{path[len(str(above)) :]}"
    path = one_line(path)
    if columns(path) <= room:
        return path
    head, _, name = path.rpartition("/")
    tail = cut(name, room - 8)
    return f"{cut(head, max(room - columns(tail) - 1, 2))}/{tail}"


def _marked(hit: Hit) -> str:
    """Return the snippet on one line, harmless, with its marks."""
    from ..ask.matches import CLOSE, OPEN, parts

    pieces = parts(hit.words)  # the marks would not survive being made harmless
    text = "".join(f"{OPEN}{safe(one)}{CLOSE}" if found else safe(one) for one, found in pieces)
    return " ".join(text.split())


def _near_its_match(text: str, room: int) -> str:
    """Cut the beginning of a text if its first match would not be seen."""
    from ..ask.matches import OPEN

    first = text.find(OPEN)
    if first < room * 2 // 3:
        return text
    start = text.find(" ", first - room // 3, first)
    return ELLIPSIS + text[max(start, first - room // 3) :].lstrip()


def _cut_marked(line: str, width: int) -> str:
    """Cut a line; a match across the cut is closed."""
    from ..ask.matches import CLOSE, OPEN

    room = width - 2  # for the ellipsis, and for the end of a match
    shown = line.removesuffix(ELLIPSIS)
    shown = cut(shown, room + 1) if columns(shown) > room else shown + ELLIPSIS
    return shown + CLOSE * (shown.rfind(OPEN) > shown.rfind(CLOSE))


def _painted(lines: Iterable[str], paint: Paint) -> Iterator[str]:
    """Yield the lines with their matches in colour or in brackets."""
    from ..ask.matches import CLOSE, MARK, OPEN

    is_match = False
    for line in lines:
        shown = ""
        for piece in MARK.split(line):
            if piece in (OPEN, CLOSE):
                is_match = piece == OPEN
                shown += "" if paint.enabled else "[" if is_match else "]"
            else:
                shown += paint(piece, "red", bold=True) if is_match else piece
        yield shown
