"""Asks the server what a local database is asked: queries in its dialect, and a search of all
machines.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..ask import query as query_parser
from ..ask.candidates import Candidate
from ..ask.conversation import resume_line
from ..ask.filters import Filters, Nothing, nothing
from ..ask.hits import Hit
from ..ask.query import Term, Terms
from ..ask.refs import shortest
from ..ask.search import (
    ALL_WORDS,
    NONE,
    STRONG,
    VERBATIM,
    Group,
    Marker,
    Ranked,
    SearchResult,
    is_special,
)
from ..errors import ArchiveError, FleetError, UsageError
from ..files.archive import Frame, unpacked
from . import connect, server
from .connect import destination_of, library
from .server import MOST_OF_A_FRAME

if TYPE_CHECKING:
    from psycopg import Cursor


# ------------------------------------------------------------------------------------------------
# Makes a query of `queries/` one that PostgreSQL runs, with the same rows in the same order.
#
# The queries are written for SQLite and keep to what PostgreSQL knows, too, or what the functions
# and views of the schema `assoc_read` add. What is left differs in every query in the same way:
#
# - A parameter `:name` is `%(name)s`, always a text.
# - SQLite takes NULL for less than every value, PostgreSQL for more, so each `order by` says where
#   the rows with NULL stand.
# - `cross join ... on` fixes an order of joins, which PostgreSQL chooses itself.
# - An integer has 64 bits: `bigint`.
# - `is` compares values of which either may be NULL: `is not distinct from`.
# - Ids are numbers, as parameters and in a JSON array; the default of a number is a text.
# - The id of a message or a file is made of its place, so no index has it: what joins a tool call
#   to
#   its messages, or to calls of the same file, compares the places themselves.


_token = re.compile(
    r"""--[^\n]*|\s+|'(?:[^']|'')*'|"[^"]*"|(?<!:):[a-z_]\w*|\w+|.""", re.DOTALL | re.IGNORECASE
)
_AFTER_A_KEY = {",", ")", "limit", "rows", "range", "union"}
"""The text after a key of an `order by`: the next key, or the end."""


def translated(query: str) -> str:
    """Return the text of a query for psycopg, whose parameters all are given by name."""
    text = "".join(_sorted_as_sqlite(map(_of_postgres, _tokens(query))))
    for old, new in _REPLACED:
        text = old.sub(new, text)
    return text


_SAME = r"\b(\w+)\.{} = (\w+)\.{}\b"
_FILE = r"\1.origin_id = \2.origin_id and \1.file_no = \2.file_no"
_CALL = r"\1.byte_offset = \2.byte_offset and \1.block = \2.block and \2.is_call = 1"
_RESULT = r"\1.byte_offset = \2.result_offset and \1.block = \2.result_block"
_BALANCED = r"(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*"
_RESULT_OR_CALL = (
    r"\1.origin_id = \2.origin_id and \1.file_no = \2.file_no"
    r" and \1.byte_offset = \2.last_offset and \1.block = \2.last_block"
    r" and (\2.is_call = 1 or \2.result_offset is not null)"
)
_AGENT = r"coalesce(\1.label, \1.kind) || ' (' || \1.machine || ')'"
"""An agent, and the machine from which it came."""
_REPLACED = tuple(
    (re.compile(old), new)
    for old, new in (
        (r"\bcross join (\w+ \w+) on\b", r"join \1 on"),
        (r"\bas integer\)", "as bigint)"),
        (r"\bchar\(", "chr("),
        (r"\bis (?=\w+\.)", "is not distinct from "),
        (
            r"(\bid|_id) in \(select value from json_each\(" rf"({_BALANCED})\)\)",
            r"\1 = any (array(select value::bigint from json_each(\2)))",
        ),
        # Not the text itself, which may be on another node.
        (r"\blength\(coalesce\((\w+)\.tool_text, \1\.text\)\)", r"\1.letters"),
        # As an array it is known before the rows are, and an index can be used.
        (rf"(_id) in \( ?(select \w+\.id from {_BALANCED})\)", r"\1 = any (array(\2))"),
        (r"(\bid|_id) = (%\(\w+\)s)::text", r"\1 = \2::bigint"),
        (r"(nullif\(%\(\w+\)s::text, ''\)), (-?\d+)\)", r"\1, '\2')"),
        # Its number is in the id of a file.
        (
            r"(\b\w+\.|\b)file_id = %\((\w+)\)s::(?:text|bigint)",
            r"\1origin_id = %(\2)s::bigint >> 32 and \1file_no = %(\2)s::bigint & 4294967295",
        ),
        (
            r"\b(\w+)\.file_id = (\(\s*select) (\w+)\.id\b",
            r"(\1.origin_id, \1.file_no) = \2 \3.origin_id, \3.file_no",
        ),
        (r"\b(\w+)\.file_id = f\.id\b", r"\1.origin_id = f.origin_id and \1.file_no = f.file_no"),
        (r"\b(\w+)\.id = coalesce\((\w+)\.result_id, \2\.call_id\)", _RESULT_OR_CALL),
        (r"\bcoalesce\((\w+)\.label, \1\.kind\)", _AGENT),
        (rf"{_SAME.format('id', 'call_id')}", rf"{_FILE} and {_CALL}"),
        (rf"{_SAME.format('id', 'result_id')}", rf"{_FILE} and {_RESULT}"),
        (rf"{_SAME.format('file_id', 'file_id')}", _FILE),
    )
)


def _tokens(query: str) -> Iterator[str]:
    """Yield the words and signs of a query without its comments, white space as one blank."""
    for match in _token.finditer(query):
        word = match[0]
        if not word.startswith("--"):
            yield " " if word.isspace() else word


def _of_postgres(word: str) -> str:
    if word.startswith(":") and word != ":":
        return f"%({word[1:]})s::text"
    return word.replace("%", "%%")


def _sorted_as_sqlite(tokens: Iterable[str]) -> Iterator[str]:
    """Yield the tokens, and after each key of an `order by` the order of NULL."""
    depth = 0
    sorting: list[int] = []  # the depths of the brackets in which keys are being read
    before = last = ""
    for word in [*tokens, ")"]:
        if sorting and depth == sorting[-1] and word in _AFTER_A_KEY:
            yield " nulls last " if last == "desc" else " nulls first "
            if word != ",":
                sorting.pop()
        depth += (word == "(") - (word == ")")
        if depth >= 0:
            yield word
        if word != " ":
            before, last = last, word
        if (before, word) == ("order", "by"):
            sorting.append(depth)


# ------------------------------------------------------------------------------------------------
# Asks the server of a fleet what a local database is asked: the same queries, the same code.
#
# `Central` has as much of `sqlite3.Connection` as code needs that only reads: it translates a
# query (`dialect`) and gives rows like those of SQLite. Everything is one transaction that only
# reads and sees one state of the server; settings end with it, so a pool of connections may lie
# between.


_MOST = 10**15
_PATIENCE = 600.0  # seconds that a statement of a command may take

_MAY_READ = b"select has_schema_privilege('assoc_read', 'usage')"
_SETTINGS = (
    "set local search_path = assoc_read, pg_temp",
    # It takes longer to compile such a query than to run it.
    "set local jit = off",
    # Views that are barriers are joined by no index, so a loop would read one as a whole each time.
    "set local enable_nestloop = off",
)


_MOST_READ = 20_000
"""Messages that a search without a text index reads; it takes a millisecond for each."""

_SHORT = "set local statement_timeout = '10s'"
_CANCELED = "57014"

# The number that the server knows; none where it never looked.
_ESTIMATE = "select reltuples from pg_class where oid = to_regclass('assoc.messages')"

_INDEX = "Its owner creates one with: assoc-ingest remote index"
_NO_INDEX = f"The server has no text index, and too many messages to search without one. {_INDEX}"
_READ_ALL = f"The server has no text index, so this search read every message. {_INDEX}"


class Row(tuple[Any, ...]):
    """A row whose values have a place and a name."""

    __slots__ = ()
    names: tuple[str, ...] = ()

    def __getitem__(self, place: Any) -> Any:
        return super().__getitem__(self.names.index(place) if isinstance(place, str) else place)

    def keys(self) -> Sequence[str]:
        return self.names


class Central:
    """A connection to the server that reads as one to a local database does."""

    is_server = True

    def __init__(self, destination: str) -> None:
        """Raise FleetError if the server cannot be reached or is not set up."""
        self._connection = connect.connect(destination)
        self._destination = connect.shown(destination)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        from psycopg import IsolationLevel

        server.check(self._connection)
        with connect.readable_errors():
            (may_read,) = self._connection.execute(_MAY_READ).fetchone() or (False,)
            if not may_read:
                raise FleetError(
                    "This login may not read on the server: its owner can allow that with "
                    "`assoc-ingest remote add-device NAME --reader`."
                )
            self._connection.autocommit = False
            self._connection.isolation_level = IsolationLevel.REPEATABLE_READ
            self._connection.read_only = True
        self.begin_anew()

    def begin_anew(self, seconds: float = _PATIENCE) -> None:
        """End the transaction, and begin one in which each statement may take so long."""
        with connect.readable_errors():
            self._connection.rollback()
            for setting in (*_SETTINGS, f"set local statement_timeout = {seconds * 1000:.0f}"):
                self._connection.execute(setting.encode())

    def cancel(self) -> None:
        """End what the server is doing for this connection; called from another thread."""
        with suppress(library().Error):  # there is nothing to end where it is gone
            self._connection.cancel()

    def execute(self, query: str, parameters: Mapping[str, object] | None = None) -> Cursor[Row]:
        """Run a query of ours with parameters by name. Raises FleetError."""
        if query == "pragma database_list":  # what tells one database from another
            query = f"select 0, 'main', '{self._destination.replace(chr(39), '')}'"
        with connect.readable_errors():
            if "'localtime'" in query:
                zone = "select set_config('TimeZone', %s, true)"
                self._connection.execute(zone.encode(), [_time_zone()])
            cursor = self._connection.cursor(row_factory=_rows)
            given = {name: _number(name, value) for name, value in (parameters or {}).items()}
            return cursor.execute(_translated(query).encode(), given)

    def search(self, query: str, filters: Filters, **given: Any) -> SearchResult:
        """Find messages of all machines.

        Raises FleetError if there is no text index, and too much to read without one.
        """
        connection = cast(sqlite3.Connection, self)
        if server.has_text_index(self._connection):
            return search(connection, query, filters, **given)
        with connect.readable_errors():
            (count,) = self._connection.execute(_ESTIMATE).fetchone() or (0,)
            self._connection.execute(_SHORT.encode())
        if count > _MOST_READ:
            raise FleetError(_NO_INDEX)
        try:
            result = search(connection, query, filters, **given)
        except FleetError as error:
            if getattr(error.__cause__, "sqlstate", None) == _CANCELED:
                raise FleetError(_NO_INDEX) from error
            raise
        return replace(result, notes=(*result.notes, _READ_ALL))

    def short_keys(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the shortest beginnings of keys that mean only them."""
        short = _short_keys(cast(sqlite3.Connection, self), {(key, False) for key in keys})
        return {key: beginning for (key, _), beginning in short.items() if key}

    def end(self) -> None:
        """End the transaction: an idle connection holds nothing back."""
        with connect.readable_errors():
            self._connection.rollback()

    def close(self) -> None:
        """End the transaction and the connection."""
        self._connection.close()


def central(database: Path) -> sqlite3.Connection:
    """Open the server of the fleet for code that reads, at its destination."""
    return cast(sqlite3.Connection, Central(destination_of(database)))


def _number(name: str, value: object) -> object:
    """Return a number as SQLite takes it: fractions cut, a limit below 0 is none, none is huge."""
    if name not in ("limit", "days") or value in (None, ""):
        return value
    try:
        whole = int(max(-_MOST, min(_MOST, float(str(value)))))
    except ValueError:
        return value
    return _MOST if whole < 0 and name == "limit" else whole


def _time_zone() -> str:
    """Return the time zone of this machine for the server: its name, or its rule as in POSIX."""
    given = os.environ.get("TZ")
    if given is not None:
        return given.removeprefix(":").rpartition("zoneinfo/")[2] or "UTC"
    if os.name == "nt":
        raise UsageError(
            "The days of a report are local ones, and the server does not know the names that "
            "Windows gives to time zones: set the environment variable TZ, as in "
            "TZ=CET-1CEST,M3.5.0,M10.5.0/3."
        )
    file = Path(os.path.realpath("/etc/localtime"))
    if not file.exists():
        return "UTC"
    _, found, name = str(file).rpartition("zoneinfo/")
    # A file of the time zone database ends with the rule, also where it is a copy.
    return name if found else file.read_bytes().split(b"\n")[-2].decode("ascii", "replace")


@cache
def _translated(query: str) -> str:
    return translated(query)


def _rows(cursor: Cursor[Any]) -> Callable[[Iterable[Any]], Row]:
    columns = tuple(column.name for column in cursor.description or ())
    kind = type("Row", (Row,), {"names": columns, "__slots__": ()})
    return lambda values: cast(Row, kind(map(_as_sqlite, values)))


def _as_sqlite(value: Any) -> Any:
    """Return a value as SQLite gives it: sums of integers are integers, truth is 0 or 1."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        return int(value) if isinstance(exponent, int) and exponent >= 0 else float(value)
    return value


# ------------------------------------------------------------------------------------------------
# `search --remote`: messages of all machines, as hits like those of a local search.
#
# The server finds and ranks (`assoc.search_v1`): messages that hold all words, phrases and
# prefixes of the query. Titles and the smaller stores are not searched there, and nothing is
# relaxed.


_MOST_FRAMES = 100
"""Frames of a file that are fetched to number its lines."""

_SEARCH = """
    select *
    from assoc.search_v1(
        cast(:terms as json), cast(:parts as text[]), :literal, cast(:kinds as text[]), :since,
        :until, cast(:projects as bigint[]), :session, :source, :origin,
        cast(:tools as boolean), cast(:most as int4), cast(:shown as int4)
    )
"""
_TOTALS = ("found", "conversations", "has_more")
_NEIGHBOURS = "select * from assoc.key_neighbours_v1(cast(:keys as text[]))"
_FRAMES = """
    select s.origin_id, s.file_no, s.start, s.stop, s.data
    from (
        select
            f.origin_id, f.file_no, f.start, f.data, w.byte,
            coalesce(lead(f.start) over file, o."offset") as stop,
            row_number() over file as number
        from json_to_recordset(cast(:wanted as json))
            as w (origin_id int4, file_no int4, byte bigint)
        join assoc.frames f on f.origin_id = w.origin_id and f.file_no = w.file_no
        join assoc.files o on o.origin_id = f.origin_id and o.file_no = f.file_no
        where f.start >= 0 and f.origin_id = any (cast(:origins as int4[]))
        window file as (partition by f.origin_id, f.file_no order by f.start)
    ) s
    where s.start < s.byte and s.number <= cast(:frames as int4)
    order by s.origin_id, s.file_no, s.start
"""


@dataclass(frozen=True, slots=True)
class OriginHit(Hit):
    """A hit, and the machine from which it came."""

    origin: str

    @property
    def place(self) -> str | None:
        return f"{self.project or ''} ({self.origin})".strip()


def search(
    connection: sqlite3.Connection,
    query: str,
    filters: Filters,
    *,
    limit: int,
    tools: bool = False,
    origin: str | None = None,
    shown: int = 3,
) -> SearchResult:
    """Return the best `limit` conversations with `shown` hits each, and the best `limit` hits.

    Raises UsageError for a filter that the server does not have, FleetError if it does not answer.
    """
    terms = query_parser.parse(query)
    filters = filters.limited_by(terms.fields)
    for name in ("tool", "model", "role", "branch"):
        if getattr(filters, name):
            raise UsageError(f"A search with --remote cannot be limited by {name}; leave it out.")
    # It reads tables, and fetches what belongs to a few messages by their keys.
    connection.execute("set local enable_nestloop = on")

    def found_by(filters: Filters, origin: str | None, most: int, shown: int) -> list[Any]:
        given = filters.parameters(connection)
        asked = {
            "terms": json.dumps(_as_json(terms)),
            "parts": _alone(terms) or None,
            "literal": terms.literal if is_special(terms.literal) else None,
            "kinds": list(filters.kind) or None,
            "projects": json.loads(str(given["project"])) if given["project"] else None,
            "tools": tools,
            "origin": origin,
            "most": most,
            "shown": shown,
            **{name: given[name] for name in ("since", "until", "session", "source")},
        }
        return connection.execute(_SEARCH, asked).fetchall() if terms.clauses else []

    rows = found_by(filters, origin, limit, shown)
    why = None
    if not rows and terms.clauses:
        why = _why_nothing(filters, origin, lambda other, label: found_by(other, label, 1, 0))
    hits = _Hits(connection, terms, rows)
    groups = tuple(
        Group(
            members[0]["session_key"],
            members[0]["session"],
            hits.of(members[:shown]),
            max(0, members[0]["in_conversation"] - shown),
        )
        for members in (_grouped(rows)[:limit] if shown else ())
    )
    best = hits.of(row for row in rows if row["place"] <= limit)
    found, conversations, has_more = map(rows[0].__getitem__, _TOTALS) if rows else (0, 0, 0)
    notes = (terms.note,) if terms.note else ()
    return SearchResult(
        groups, best, conversations, found, bool(has_more), None, notes, why, has_lines=True,
        evidence=STRONG if rows else NONE,
    )  # fmt: skip


def _why_nothing(
    filters: Filters, origin: str | None, found_by: Callable[[Filters, str | None], list[Any]]
) -> Nothing:
    """Say how many conversations there are without each filter, the machine being one of them."""
    is_cut = False

    def count(filters: Filters, origin: str | None = origin) -> int:
        nonlocal is_cut
        rows = found_by(filters, origin)
        is_cut = is_cut or any(row["has_more"] for row in rows)
        return rows[0]["conversations"] if rows else 0

    why = nothing(filters, count)
    if origin is not None:
        in_all = count(filters.without(*filters.given()), None)
        alone = count(filters, None)
        machine = (("origin", f"origin {origin}", alone),) if alone else ()
        why = why._replace(filters=(*why.filters, *machine), in_all=in_all)
    return why._replace(is_lower_bound=is_cut)


def _as_json(terms: Terms) -> dict[str, object]:
    def plain(term: Term) -> dict[str, object]:
        return {"text": term.text, "is_prefix": term.is_prefix}

    return {
        "clauses": [list(map(plain, clause.alternatives)) for clause in terms.clauses],
        "without": list(map(plain, terms.without)),
    }


def _alone(terms: Terms) -> list[str]:
    """Return what must stand in a text as it is: its words are no proof of the order of letters."""
    return [
        clause.alternatives[0].text.strip()
        for clause in terms.clauses
        if len(clause.alternatives) == 1 and clause.alternatives[0].has_cjk
    ]


def _grouped(rows: Iterable[Any]) -> list[list[Any]]:
    """Return the rows by conversation, in the order of their best."""
    found: dict[int, list[Any]] = {}
    for row in rows:
        found.setdefault(row["conversation"], []).append(row)
    return [found[number] for number in sorted(found)]


class _Hits:
    """Makes hits of the rows of the server."""

    def __init__(self, connection: sqlite3.Connection, terms: Terms, rows: Sequence[Any]) -> None:
        self._marker = Marker(terms)
        self._lines = _line_numbers(connection, rows)
        self._short_keys = _short_keys(connection, {_key(row) for row in rows})
        self._made: dict[int, OriginHit] = {}

    def of(self, rows: Iterable[Any]) -> tuple[Hit, ...]:
        """Return the hits for rows; each is made once."""
        return tuple(self._made.get(row["id"]) or self._make(row) for row in rows)

    def _make(self, row: Any) -> OriginHit:
        key = self._short_keys.get(_key(row))
        line = self._lines.get(_place(row))
        why = VERBATIM if row["is_verbatim"] else ALL_WORDS
        candidate = Candidate(cast("sqlite3.Row", {**row, "what": "message"}), row["scope"])
        session = {**row, "kind": row["session_kind"]}
        hit = OriginHit(
            key=key,
            title=row["session"],
            ref=f"{key}:{line}" if key and line else key,
            project=row["project"],
            branch=row["branch"] or None,
            cwd=row["cwd"],
            model=row["model"],
            kind=row["kind"],
            time=row["timestamp"],
            snippet=self._marker.snippet(Ranked(candidate, why, 0, row["rank"]), row["text"]),
            why=why,
            file=row["file"],
            line=line,
            byte=row["byte_offset"],
            resume=resume_line(session, is_there=bool(row["has_transcript"])),
            session_key=row["session_key"],
            id=row["id"],
            what="message",
            scope=row["scope"],
            source=row["source"],
            subagent=row["subagent"],
            tool=row["tool"],
            origin=row["origin"],
        )
        self._made[hit.id] = hit
        return hit


def _key(row: Any) -> tuple[str | None, bool]:
    """Return the key of what a row belongs to, and whether that is a subagent."""
    return row["agent_key"] or row["session_key"], bool(row["agent_key"])


def _short_keys(
    connection: sqlite3.Connection, keys: set[tuple[str | None, bool]]
) -> dict[tuple[str | None, bool], str]:
    """Return the shortest beginnings of keys that mean only them, of subagents where so marked."""
    given = [key for key, _ in keys if key]
    found = connection.execute(_NEIGHBOURS, {"keys": given}) if given else ()
    neighbours = {row["key"]: tuple(row)[1:] for row in found}
    # A key of a session has to differ from those of subagents, too.
    return {
        (key, is_agent): shortest(key, neighbours[key][2 if is_agent else 0 :])
        for key, is_agent in keys
        if key
    }


def _place(row: Any) -> tuple[int, int, int]:
    return row["origin_id"], row["file_no"], row["byte_offset"]


def _line_numbers(
    connection: sqlite3.Connection, rows: Iterable[Any]
) -> dict[tuple[int, int, int], int]:
    """Return the number of the line of each row by its place, where the archive can tell it."""
    bytes_of: dict[tuple[int, int], set[int]] = {}
    for origin, file, byte in map(_place, rows):
        bytes_of.setdefault((origin, file), set()).add(byte)
    wanted = [
        {"origin_id": origin, "file_no": file, "byte": max(found)}
        for (origin, file), found in bytes_of.items()
    ]
    if not wanted:
        return {}
    given = {
        "wanted": json.dumps(wanted),
        "origins": sorted({origin for origin, _ in bytes_of}),  # which tells their nodes
        "frames": _MOST_FRAMES,
    }
    frames: dict[tuple[int, int], list[Any]] = {}
    for frame in connection.execute(_FRAMES, given):
        frames.setdefault((frame["origin_id"], frame["file_no"]), []).append(frame)
    return {
        (*file, byte): line
        for file, found in bytes_of.items()
        for byte, line in _numbered(sorted(found), frames.get(file, ()))
    }


def _numbered(wanted: Iterable[int], frames: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """Yield ascending offsets with the numbers of their lines, as far as frames have no gap."""
    rest = iter(frames)
    line, start, counted, end, data = 1, 0, 0, 0, b""
    for byte in wanted:
        while end < byte:
            frame = next(rest, None)
            if frame is None or frame["start"] != end or frame["data"] is None:
                return
            line += data.count(b"\n", counted - start)
            start = counted = end
            end = frame["stop"]
            if end - start > MOST_OF_A_FRAME:
                return
            try:
                data = unpacked(Frame(start, end, frame["data"]), frame["file_no"])
            except ArchiveError:
                return
        line += data.count(b"\n", counted - start, byte - start)
        counted = byte
        yield byte, line
