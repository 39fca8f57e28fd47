"""From a query string to hits.

What people and agents said stands above what tools gave: results are most of the text and would
drown it. So a search asks in this order, and stops as soon as it has enough:

1. titles that a user gave to a session: the five newest,
2. what was said: messages, and the smaller stores (inboxes, tasks, todos, plans, documents,
   prompts),
3. what tools were given and gave: messages, and outputs that were too large for the transcript,
4. in the same place, words at the start of a line inside JSON (see `query_parser`).

Within a step the full-text rank decides. Ranks of two indexes cannot be compared, so the first hit
of a smaller store stands after the fourth message, its second after the eighth, and so on.
A copy of a message in a forked session is never a hit; the original is.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice

from .. import sql
from ..errors import UsageError
from ..files.archive import line_numbers
from . import matches, query_parser, snippets
from .filters import Filters, Parameters
from .matches import Places
from .query_parser import Terms

SAID, TOOLS, TITLE = "said", "tools", "title"
# A smaller store is one file queries/search/<name>.sql; which scope it belongs to.
_STORES = {
    SAID: ("inbox", "tasks", "todos", "plans", "documents", "prompts"),
    TOOLS: ("tool_result_files",),
}
_COLUMNS = {SAID: "text joined_text", TOOLS: "tool_text joined_tool_text"}
_MESSAGES_PER_STORE_HIT = 4
_TITLES = 5
STATED = ("task", "todo", "plan")
"""What may have no file, so that a line of a transcript is its place."""

_SYNTAX_ERRORS = (
    "fts5:", "no such column", "unterminated string", "unknown special query", "malformed MATCH",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where the query was found."""

    what: str
    """message, session, inbox, task, todo, plan, document, prompt or tool_result_file"""
    kind: str | None
    """Of a message `messages.kind`, of the others what tells them apart among themselves."""
    scope: str
    """said, tools or title"""
    snippet: str
    """A piece of the text, of bounded length, matches between the characters 2 and 3 in pairs."""
    session: str | None
    project: str | None
    subagent: str | None
    tool: str | None
    timestamp: str | None
    source: str
    session_key: str | None
    file: str | None
    byte_offset: int
    id: int
    rank: float | None
    line: int | None = None
    """Number of the line in the file, from 1; None until `with_lines` has counted it."""

    def as_json(self) -> dict[str, object]:
        """Return the stable JSON object: `snippet` without marks, `marks` as [start, end] pairs."""
        fields = asdict(self)
        fields["snippet"], spans = snippets.plain(self.snippet)
        rank = None if self.rank is None else round(self.rank, 3)
        return {**fields, "rank": rank, "marks": spans}


def search(
    connection: sqlite3.Connection,
    query: str,
    filters: Filters | None = None,
    *,
    limit: int = 20,
    tools: bool = False,
    raw: bool = False,
) -> list[Hit]:
    """Return at most `limit` hits, best first.

    `tools` leaves out what was said. Of a very long query the beginning is searched for, as
    `query_parser.parse` says. `raw` takes the query as an FTS5 expression and raises UsageError if
    it is none, or too long.
    """
    parameters = (filters or Filters()).parameters(connection)
    if raw:
        question: _Plain | _Raw = _Raw(connection, parameters, query_parser.bindable(query))
    else:
        question = _Plain(connection, parameters, query_parser.parse(query))
    return list(islice(question.hits(tools), max(limit, 0)))


def store_rows(
    connection: sqlite3.Connection, words: Terms, filters: Filters, limit: int
) -> Iterator[sqlite3.Row]:
    """Yield the rows of hits in the stores that are not messages, at most `limit` of each."""
    question = _Plain(connection, filters.parameters(connection), words)
    for scope in (SAID, TOOLS):
        for store in question.store_rows(scope):
            yield from islice(store, limit)


def with_lines(connection: sqlite3.Connection, hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits with the numbers of their lines, which are counted in the archive."""
    known = list(hits)
    places: dict[tuple[str, int], tuple[int, int]] = {}
    for hit in known:
        if hit.what == "message":
            row = sql.ask(connection, "pages/message_text", id=hit.id).fetchone()
        elif hit.what in STATED:
            row = sql.ask(connection, "pages/stated", what=hit.what, id=hit.id).fetchone()
        else:
            continue
        if row is not None:
            places[hit.what, hit.id] = (row["file_id"], row["byte_offset"])
    lines = {
        file: line_numbers(connection, file, [at for where, at in places.values() if where == file])
        for file in {file for file, _ in places.values()}
    }
    return [
        replace(hit, line=lines[place[0]].get(hit.byte_offset))
        if (place := places.get((hit.what, hit.id))) is not None
        else hit
        for hit in known
    ]


class _Plain:
    """A search for plain words."""

    def __init__(self, connection: sqlite3.Connection, parameters: Parameters, words: Terms):
        self._connection = connection
        self._parameters = parameters
        self._terms = words
        self._piece = _Piece(words)
        self._messages_only = any(parameters[name] for name in ("model", "role", "branch"))

    def hits(self, tools: bool) -> Iterator[Hit]:
        if not self._terms.texts():
            return
        if not tools:
            yield from islice(self._titles(), 0 if self._messages_only else _TITLES)
            yield from _mixed(self._messages(SAID), self._stores(SAID))
        yield from _mixed(self._messages(TOOLS), self._stores(TOOLS))
        yield from self._line_starts()

    def _titles(self) -> Iterator[Hit]:
        where = Places(self._terms.words)  # LIKE finds `the` in `other`
        for row in self._rows("search/sessions", patterns=self._patterns(self._terms.texts())):
            title = row["text"]
            spans = where.find(title)
            if spans or not self._terms.words:
                spans += matches.substrings_in(title, self._terms.parts())
                yield _hit(row, TITLE, snippets.around(title, spans, len(title)))

    def _messages(self, scope: str) -> Iterator[Hit]:
        return (_hit(row, scope, self._piece.of(row["text"])) for row in self._found(scope))

    def _found(self, scope: str) -> Iterator[sqlite3.Row]:
        words, substrings = self._terms.all_words(), self._terms.all_substrings()
        if words:
            return self._fts(scope, words, cjk=_in(scope, substrings) if substrings else None)
        if substrings:
            return self._fts(scope, substrings, index="messages_cjk_fts")
        letters = self._patterns(self._terms.letters)
        return self._rows("search/messages_letters", letters=letters, scope=scope)

    def store_rows(self, scope: str) -> list[Iterator[sqlite3.Row]]:
        """Return the rows of hits in each store that is not messages."""
        if self._messages_only or not self._terms.texts():
            return []
        if self._terms.has_cjk:
            patterns = self._patterns(self._terms.texts())
            return [self._rows("search/stores_cjk", patterns=patterns, scope=scope)]
        match = self._terms.all_words()
        return [self._rows(f"search/{name}", match=match) for name in _STORES[scope]]

    def _stores(self, scope: str) -> list[Iterator[Hit]]:
        # The words of a query in Chinese, Japanese or Korean are compared, not looked up.
        piece = _Piece(self._terms, is_compared=self._terms.has_cjk)
        return [
            (_hit(row, scope, piece.of(row["text"])) for row in rows)
            for rows in self.store_rows(scope)
        ]

    def _line_starts(self) -> Iterator[Hit]:
        """Yield the hits in which a word begins a line inside JSON; the others are out already."""
        match, patterns = self._terms.at_line_starts(), self._terms.line_start_patterns()
        if match is None or not patterns:
            return
        substrings = self._terms.all_substrings()
        where = Places(self._terms.words)
        for row in self._fts(
            TOOLS,
            match,
            cjk=_in(TOOLS, substrings) if substrings else None,
            line_starts=json.dumps(patterns),
        ):
            if spans := where.find(row["text"]):
                yield _hit(row, TOOLS, snippets.around(row["text"], spans))

    def _fts(
        self, scope: str, match: str, index: str = "messages_fts", **others: str | None
    ) -> Iterator[sqlite3.Row]:
        letters = self._patterns(self._terms.letters)
        return self._rows(
            "search/messages", index, match=_in(scope, match), letters=letters, **others
        )

    def _rows(
        self, name: str, index: str = "messages_fts", **parameters: str | None
    ) -> Iterator[sqlite3.Row]:
        return _rows(self._connection, name, {**self._parameters, **parameters}, index)

    @staticmethod
    def _patterns(texts: Iterable[str]) -> str:
        return json.dumps([query_parser.like(text) for text in texts], ensure_ascii=False)


class _Raw:
    """A search for an FTS5 expression, which the user wrote."""

    def __init__(self, connection: sqlite3.Connection, parameters: Parameters, expression: str):
        self._connection = connection
        self._parameters = parameters
        self._expression = expression
        self._piece = _Piece(query_parser.parse_raw(expression))

    def hits(self, tools: bool) -> Iterator[Hit]:
        for scope in (TOOLS,) if tools else (SAID, TOOLS):
            stores = [self._store(name, scope) for name in _STORES[scope]]
            yield from _mixed(self._messages(scope), stores)

    def _messages(self, scope: str) -> Iterator[Hit]:
        try:
            yield from self._found("search/messages", scope, _in(scope, self._expression))
        except sqlite3.OperationalError as error:
            if not _is_syntax(error):
                raise
            raise UsageError(
                f"--raw: not a valid FTS5 expression ({_detail(error)}). "
                "Quote words with punctuation in double quotes, or leave out --raw."
            ) from error

    def _store(self, name: str, scope: str) -> Iterator[Hit]:
        try:
            yield from self._found(f"search/{name}", scope, self._expression)
        except sqlite3.OperationalError as error:
            # The expression was good for messages: it names a column that this store lacks.
            if not _is_syntax(error):
                raise

    def _found(self, name: str, scope: str, match: str) -> Iterator[Hit]:
        for row in _rows(self._connection, name, {**self._parameters, "match": match}):
            yield _hit(row, scope, self._piece.of(row["text"]))


class _Piece:
    """Shows the piece of a text that holds most of what was searched for."""

    def __init__(self, words: Terms, *, is_compared: bool = False) -> None:
        self._places = Places(() if is_compared else words.words)
        self._parts = words.texts() if is_compared else words.parts()

    def of(self, text: str | None) -> str:
        text = text or ""
        return snippets.around(
            text, self._places.some(text) + matches.substrings_in(text, self._parts)
        )


def _rows(
    connection: sqlite3.Connection, name: str, parameters: Parameters, index: str = "messages_fts"
) -> Iterator[sqlite3.Row]:
    """Yield the rows of a query, as many as are asked for.

    The index of trigrams has the columns of the word index, so the same query asks it.
    """
    query = sql.query(name)
    given = {**dict.fromkeys(query.parameters), **parameters, "limit": -1}
    known: Parameters = {key: given[key] for key in query.parameters}
    return iter(connection.execute(query.sql.replace("messages_fts", index), known))


def _hit(row: sqlite3.Row, scope: str, snippet: str) -> Hit:
    return Hit(
        what=row["what"],
        kind=row["kind"],
        scope=scope,
        snippet=snippet,
        session=row["session"],
        project=row["project"],
        subagent=row["subagent"],
        tool=row["tool"],
        timestamp=row["timestamp"],
        source=row["source"],
        session_key=row["session_key"],
        file=row["file"],
        byte_offset=row["byte_offset"],
        id=row["id"],
        rank=row["rank"],
    )


def _mixed(messages: Iterator[Hit], stores: list[Iterator[Hit]]) -> Iterator[Hit]:
    """Yield four messages, one hit of each store, four messages, and so on."""
    while True:
        some = [*islice(messages, _MESSAGES_PER_STORE_HIT)]
        some += [hit for store in stores for hit in islice(store, 1)]
        if not some:
            return
        yield from some


def _in(scope: str, expression: str) -> str:
    return f"{{{_COLUMNS[scope]}}} : ({expression})"


def _detail(error: sqlite3.OperationalError) -> str:
    detail = str(error).removeprefix("fts5: ")
    return detail.replace('near ")"', "at its end")  # the bracket is that of the scope


def _is_syntax(error: sqlite3.OperationalError) -> bool:
    return str(error).startswith(_SYNTAX_ERRORS)
