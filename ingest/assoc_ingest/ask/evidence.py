"""Evidence that a conversation made something, in grades, and the conversations by it.

A grade says what was seen, not how likely something is. The strongest one of a conversation decides
where it stands; within a grade the newest conversation comes first.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields

from .. import sql
from ..terminal import one_line
from .lookup import short_key
from .refs import Names

GRADES = {
    "made": "a command here made it, and printed its hash",
    "committed": "a commit with this subject was made here at this time",
    "linked": "the conversation names it as its pull request",
    "edited": "edited here",
    "printed": "a tool printed it here",
    "read": "read here",
    "mentioned": "talked about here",
}
"""The grades of evidence, the strongest first."""

_ORDER = {grade: number for number, grade in enumerate(GRADES)}
_LONGEST = 240  # letters of a text that is shown
_SHORTEST = 6  # letters of a word that could tell something


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something that was seen in one place."""

    grade: str
    session: int
    subagent: int | None
    file: int
    byte: int
    time: str | None
    text: str
    """What was seen there, shortly."""
    tool: str | None = None
    rank: int = 0
    """Among those of its grade, the smallest first."""


@dataclass(frozen=True, slots=True)
class Place:
    """Evidence with what opens it."""

    grade: str
    ref: str | None
    """What `show` opens: KEY:LINE."""
    time: str | None
    tool: str | None
    subagent: str | None
    text: str
    file: str | None
    line: int | None
    byte: int

    def as_json(self) -> dict[str, object]:
        """Return it as data."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Blamed:
    """A conversation, with the evidence that it made what was asked for."""

    grade: str
    """Its strongest: made, committed, linked, edited, printed, read or mentioned."""
    key: str
    """What `show` takes."""
    title: str | None
    project: str | None
    branch: str | None
    time: str | None
    """When the strongest evidence was written."""
    source: str
    session_key: str
    cwd: str | None
    subagent: str | None
    """Who did it, if not the main conversation."""
    evidence: list[dict[str, object]]
    """The strongest, each with grade, ref, time, tool, subagent, text, file, line and byte."""
    more: int
    """Further evidence that is not listed."""

    def as_json(self) -> dict[str, object]:
        """Return it as an item of an answer."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class _Session:
    row: sqlite3.Row
    found: list[Evidence]


class Conversations:
    """The conversations that evidence was found in, in order; each is read when it is asked for."""

    def __init__(self, connection: sqlite3.Connection, evidence: Iterable[Evidence]) -> None:
        self._connection = connection
        self._names = Names(connection)
        self._sessions = _by_conversation(connection, evidence)

    def __len__(self) -> int:
        return len(self._sessions)

    def shown(
        self, start: int, limit: int, each: int, clean: Callable[[str], str] = str
    ) -> list[Blamed]:
        """Return some of them, with at most `each` pieces of evidence."""
        chosen = self._sessions[start : start + limit]
        return [self._blamed(session, each, clean) for session in chosen]

    def _blamed(self, session: _Session, each: int, clean: Callable[[str], str]) -> Blamed:
        row, kept = session.row, session.found[:each]
        known = self._known(kept)
        places = [self._place(one, known[one.file, one.byte], clean) for one in kept]
        best = known[kept[0].file, kept[0].byte]
        return Blamed(
            grade=kept[0].grade,
            key=short_key(self._connection, row["session_key"]),
            title=row["title"],
            project=row["project"],
            branch=best["branch"] or row["git_branch"],
            time=kept[0].time or row["ended_at"],
            source=row["source"],
            session_key=row["session_key"],
            cwd=row["cwd"],
            subagent=places[0].subagent,
            evidence=[place.as_json() for place in places],
            more=len(session.found) - len(kept),
        )

    def _known(self, kept: list[Evidence]) -> dict[tuple[int, int], sqlite3.Row]:
        asked = json.dumps([[one.file, one.byte, one.subagent] for one in kept])
        rows = sql.ask(self._connection, "pages/blame_places", places=asked)
        return {(row["file_id"], row["byte_offset"]): row for row in rows}

    def _place(self, one: Evidence, known: sqlite3.Row, clean: Callable[[str], str]) -> Place:
        line = self._names.line(one.file, one.byte)
        return Place(
            grade=one.grade,
            ref=self._names.at(one.file, line),
            time=one.time,
            tool=one.tool,
            subagent=known["subagent"],
            text=_short(_cleaned(one.text, known["texts"] or "", clean)),
            file=known["file"],
            line=line,
            byte=one.byte,
        )


def texts_of(connection: sqlite3.Connection, ids: Iterable[int | None]) -> dict[int, str]:
    """Return the texts of messages by their ids."""
    asked = json.dumps([one for one in ids if one is not None])
    rows = sql.ask(connection, "pages/blame_texts", ids=asked)
    return {row["id"]: row["text"] or "" for row in rows}


def line_of(text: str, at: int = 0) -> str:
    """Return the line of a text around a place, of bounded length."""
    start = max(text.rfind("\n", max(0, at - _LONGEST), at) + 1, at - _LONGEST, 0)
    end = text.find("\n", at, at + _LONGEST)
    return one_line(text[start : end if end >= 0 else at + _LONGEST])


def strings_of(text: str) -> str:
    """Return the texts in the input of a call, below each other."""
    try:
        value = json.loads(text)
    except ValueError:  # it was cut
        return text.replace("\\n", "\n").replace('\\"', '"')
    return "\n".join(_strings(value))


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _strings(item)]


def _by_conversation(
    connection: sqlite3.Connection, evidence: Iterable[Evidence]
) -> list[_Session]:
    found: dict[tuple[int, int], Evidence] = {}
    for one in evidence:  # of one line, the strongest
        place = (one.file, one.byte)
        if place not in found or _strength(one) < _strength(found[place]):
            found[place] = one
    ids = json.dumps(sorted({one.session for one in found.values()}))
    rows = sql.ask(connection, "pages/blame_conversations", ids=ids).fetchall()
    keys = {row["id"]: row["session_key"] for row in rows}
    first = {row["session_key"]: row for row in reversed(rows)}
    groups: dict[str, list[Evidence]] = {}
    for one in found.values():
        if one.session in keys:  # what is not seen is not shown
            groups.setdefault(keys[one.session], []).append(one)
    sessions = []
    for key, listed in groups.items():
        listed.sort(key=lambda one: one.time or "", reverse=True)
        listed.sort(key=_strength)
        sessions.append(_Session(first[key], listed))
    sessions.sort(key=lambda session: session.found[0].time or "", reverse=True)
    sessions.sort(key=lambda session: _strength(session.found[0]))
    return sessions


def _cleaned(excerpt: str, whole: str, clean: Callable[[str], str]) -> str:
    """Return an excerpt without what is removed from the whole text.

    What has to be removed may be cut in the excerpt, and not be recognised there any more: in a
    text that holds such a thing, only the words are kept that are left in it.
    """
    cleaned = clean(whole)
    if cleaned == whole:
        return clean(excerpt)
    return " ".join(
        word if len(word) < _SHORTEST or word.rstrip("…") in cleaned else "…"
        for word in clean(excerpt).split(" ")
    )


def _strength(one: Evidence) -> tuple[int, int]:
    return _ORDER[one.grade], one.rank


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
