"""Hits: what a search found in one place, with all that a reader or a program needs of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from .. import sql
from . import matches, refs, snippets
from .expressions import TITLE
from .lookup import short_agent_key, short_key
from .matches import Places, Span
from .ranking import RELAXED, VERBATIM, Found
from .relaxing import Relaxed
from .resume import resume_line
from .terms import Terms


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where the query was found."""

    key: str | None
    """What `show` takes for its conversation, or for the subagent in whose file it stands."""
    title: str | None
    """Of its conversation."""
    ref: str | None
    """What `show` takes to open it, as soon as `with_lines` has counted the lines."""
    project: str | None
    branch: str | None
    cwd: str | None
    model: str | None
    kind: str | None
    """Of a message `messages.kind`, of the others what tells them apart among themselves."""
    time: str | None
    snippet: str
    """A piece of the text, of bounded length, matches between the characters 2 and 3 in pairs."""
    why: str
    """verbatim, all_words or relaxed"""
    file: str | None
    line: int | None
    """Number of the line in the file, from 1; None until `with_lines` has counted it."""
    byte: int
    """Where the line begins."""
    resume: str | None
    """The command that goes on with the conversation."""
    session_key: str | None
    id: int
    what: str
    """message, session, inbox, task, todo, plan, document, prompt or tool_result_file"""
    scope: str
    """said, tools or title"""
    source: str
    subagent: str | None
    tool: str | None

    def as_json(self) -> dict[str, object]:
        """Return the stable JSON object: `snippet` without marks, `marks` as [start, end] pairs."""
        fields: dict[str, object] = {}
        for name, value in asdict(self).items():
            fields[name] = value
            if name == "snippet":
                fields["snippet"], fields["marks"] = snippets.plain(self.snippet)
        return fields


class Marker:
    """Shows the piece of a text that holds most of what was searched for."""

    def __init__(
        self,
        terms: Terms,
        relaxed: Relaxed | None = None,
        clean: Callable[[str], str] | None = None,
    ) -> None:
        """`clean` is called with each text before a piece of it is chosen, which may begin within
        what has to be masked."""
        self._terms = terms
        self._clean = clean
        self._all = Places(terms.words)
        self._parts = terms.parts()
        forms = [form for word in relaxed.words for form in word.forms] if relaxed else []
        self._any = Places(form for form in forms if not form.has_cjk)
        self._any_parts = relaxed.trigrams() if relaxed else []
        self._words = [
            (word.name, [matches.fold(form.text) for form in word.forms])
            for word in (relaxed.words if relaxed else ())
        ]
        self.present: set[str] = set()
        """Names of the words that the texts held so far."""

    def snippet(self, found: Found, text: str) -> str:
        """Return the piece of the text of a hit, its matches marked."""
        text = self._clean(text) if self._clean is not None else text
        if found.candidate.scope == TITLE:
            return snippets.around(text, self._spans(found, text), len(text))
        return snippets.around(text, self._spans(found, text))

    def look(self, text: str) -> None:
        """Note which words of the query a text holds: none of those is missing."""
        folded = matches.fold(text)
        self.present.update(
            name for name, forms in self._words if any(form in folded for form in forms)
        )

    def _spans(self, found: Found, text: str) -> Sequence[Span]:
        if found.why == RELAXED:
            self.look(text)
            spans = self._any.some(text)
            return spans + matches.substrings_in(text, self._any_parts)
        if found.why == VERBATIM and (spans := matches.substrings_in(text, [self._terms.literal])):
            return spans
        if self._terms.has_cjk and (
            found.candidate.scope == TITLE or not found.candidate.is_message
        ):
            return matches.substrings_in(text, self._terms.texts())
        return self._all.some(text) + matches.substrings_in(text, self._parts)


def read_hits(
    connection: sqlite3.Connection, found: Iterable[Found], marker: Marker
) -> dict[tuple[str, int], Hit]:
    """Return what was found as hits, with their texts, by what and id."""
    listed = {one.candidate.place: one for one in found}
    places = [
        [*place, one.candidate.row["session_key"], one.candidate.row["source"]]
        for place, one in listed.items()
    ]
    keys: dict[str, str] = {}
    hits = {}
    for details in sql.ask(connection, "pages/hits", places=json.dumps(places)):
        one = listed[details["what"], details["id"]]
        hits[one.candidate.place] = _hit(connection, one, details, marker, keys)
    return hits


def with_lines(connection: sqlite3.Connection, hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits with the numbers of their lines, which are counted in the archive."""
    known = list(hits)
    places: dict[tuple[str, int], tuple[int, int]] = {}
    for hit in known:
        if hit.what == "message":
            row = sql.ask(connection, "pages/message_text", id=hit.id).fetchone()
        else:
            row = sql.ask(connection, "pages/entry", what=hit.what, id=hit.id).fetchone()
            if row is not None and row["channel"] != "transcript":
                continue  # a file of its own
        if row is not None:
            places[hit.what, hit.id] = (row["file_id"], row["byte_offset"])
    names = refs.Names(connection)  # knows the lines of one file at a time
    lines = {place: names.line(*place) for place in sorted({*places.values()})}
    counted = [
        replace(hit, line=lines[place])
        if (place := places.get((hit.what, hit.id))) is not None
        else hit
        for hit in known
    ]
    found = refs.of_hits(connection, counted)
    return [replace(hit, ref=ref) for hit, ref in zip(counted, found, strict=True)]


def _hit(
    connection: sqlite3.Connection,
    found: Found,
    details: sqlite3.Row,
    marker: Marker,
    keys: dict[str, str],
) -> Hit:
    row = found.candidate.row
    session_key, agent_key = row["session_key"], details["agent_key"]
    if agent_key and agent_key not in keys:
        keys[agent_key] = short_agent_key(connection, agent_key)
    elif session_key and session_key not in keys:
        keys[session_key] = short_key(connection, session_key)
    key = keys.get(agent_key or session_key or "")
    text = details["text"]
    if row["what"] not in ("message", "session"):
        entry = sql.ask(connection, "pages/entry", what=row["what"], id=row["id"]).fetchone()
        text = entry["words"] if entry is not None else ""  # a sync may just have replaced it
    session = {**details, "kind": details["session_kind"], "source": row["source"]}
    return Hit(
        key=key,
        title=row["session"],
        ref=key,
        project=row["project"],
        branch=details["branch"] or None,
        cwd=details["cwd"],
        model=details["model"],
        kind=row["kind"],
        time=row["timestamp"],
        snippet=marker.snippet(found, text or ""),
        why=found.why,
        file=row["file"],
        line=None,
        byte=row["byte_offset"],
        resume=resume_line(
            {**session, "session_key": session_key}, is_there=bool(details["has_transcript"])
        ),
        session_key=session_key,
        id=row["id"],
        what=row["what"],
        scope=found.candidate.scope,
        source=row["source"],
        subagent=row["subagent"],
        tool=row["tool"],
    )
