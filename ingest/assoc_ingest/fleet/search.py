"""`search --remote`: messages of all machines, as hits like those of a local search.

The server finds and ranks (`assoc.search_v1`): messages that hold all words, phrases and prefixes
of the query. Titles and the smaller stores are not searched there, and nothing is relaxed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ..ask import query_parser
from ..ask.candidates import Candidate
from ..ask.filters import Filters
from ..ask.hits import Hit, Marker
from ..ask.lookup import short_agent_key, short_key
from ..ask.ranking import ALL_WORDS, VERBATIM, Found, is_special
from ..ask.resume import resume_line
from ..ask.search_result import Group, SearchResult
from ..ask.terms import Term, Terms
from ..errors import ArchiveError, UsageError
from ..files.archive import Frame, unpacked

if TYPE_CHECKING:
    import sqlite3

_MOST = 500
"""Candidates that the server ranks: the newest."""
_MOST_FRAMES = 100
"""Frames of a file that are fetched to number a line."""

_SEARCH = """
    select *
    from assoc.search_v1(
        cast(:terms as json), cast(:parts as text[]), :literal, cast(:kinds as text[]), :since,
        :until, cast(:projects as bigint[]), :session, :source, :origin,
        cast(:tools as boolean), cast(:most as int4)
    )
"""
_FRAMES = """
    select
        f.start,
        coalesce(
            (
                select min(n.start)
                from assoc.frames n
                where n.origin_id = f.origin_id and n.file_no = f.file_no and n.start > f.start
            ),
            o."offset"
        ) as stop,
        f.data
    from assoc.frames f
    join assoc.files o using (origin_id, file_no)
    where f.origin_id = cast(:origin as int4) and f.file_no = cast(:file as int4)
      and f.start >= 0 and f.start < cast(:byte as bigint)
    order by f.start
    limit cast(:frames as int4)
"""


@dataclass(frozen=True, slots=True)
class OriginHit(Hit):
    """A hit, and the machine from which it came."""

    origin: str


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
    given = filters.parameters(connection)
    asked = {
        "terms": json.dumps(_as_json(terms)),
        "parts": _alone(terms) or None,
        "literal": terms.literal if is_special(terms.literal) else None,
        "kinds": list(filters.kind) or None,
        "projects": json.loads(str(given["project"])) if given["project"] else None,
        "tools": tools,
        "origin": origin,
        "most": _MOST,
        **{name: given[name] for name in ("since", "until", "session", "source")},
    }
    rows = connection.execute(_SEARCH, asked).fetchall() if terms.clauses else []
    hits, grouped = _Hits(connection, terms), _grouped(rows)
    groups = tuple(
        Group(
            members[0]["session_key"],
            members[0]["session"],
            hits.of(members[:shown]),
            max(0, len(members) - shown),
        )
        for members in (grouped[:limit] if shown else ())
    )
    best = hits.of(rows[:limit])
    is_cut = len(rows) >= _MOST
    notes = (terms.note,) if terms.note else ()
    return SearchResult(groups, best, len(grouped), len(rows), is_cut, None, notes)


def with_machines(result: SearchResult) -> SearchResult:
    """Return a result whose hits say for people, beside the project, on which machine they are."""
    hits = {hit.id: hit for hit in (*result.shown(), *result.hits) if isinstance(hit, OriginHit)}
    return result.with_hits(
        replace(hit, project=f"{hit.project or ''} ({hit.origin})".strip()) for hit in hits.values()
    )


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
    found: dict[object, list[Any]] = {}
    for row in rows:
        found.setdefault((row["source"], row["session_key"] or row["id"]), []).append(row)
    return list(found.values())


class _Hits:
    """Makes hits of the rows of the server."""

    def __init__(self, connection: sqlite3.Connection, terms: Terms) -> None:
        self._connection = connection
        self._marker = Marker(terms)
        self._made: dict[int, OriginHit] = {}

    def of(self, rows: Iterable[Any]) -> tuple[Hit, ...]:
        """Return the hits for rows; each is made once."""
        return tuple(self._made.get(row["id"]) or self._make(row) for row in rows)

    def _make(self, row: Any) -> OriginHit:
        key = self._key(row["session_key"], row["agent_key"])
        line = self._line(row["origin_id"], row["file_no"], row["byte_offset"])
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
            snippet=self._marker.snippet(Found(candidate, why, 0, row["rank"]), row["text"]),
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

    def _key(self, session_key: str | None, agent_key: str | None) -> str | None:
        if agent_key:
            return short_agent_key(self._connection, agent_key)
        return short_key(self._connection, session_key) if session_key else None

    def _line(self, origin: int, file: int, byte: int) -> int | None:
        """Return the number of the line at an offset, None where the archive cannot tell it."""
        given = {"origin": origin, "file": file, "byte": byte, "frames": _MOST_FRAMES}
        frames = self._connection.execute(_FRAMES, given).fetchall()
        line, end = 1, 0
        for frame in frames:
            if frame["start"] != end or frame["data"] is None:
                return None
            end = frame["stop"]
            try:
                data = unpacked(Frame(frame["start"], end, frame["data"]), file)
            except ArchiveError:
                return None
            line += data.count(b"\n", 0, byte - frame["start"])
        return line if end >= byte else None
