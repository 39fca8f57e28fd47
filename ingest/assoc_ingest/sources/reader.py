"""Shared by sources that read JSON objects: those of a log, or the one of a document.

A `Reader` yields the objects of lines one by one, counts their types, and records what is wrong
with them: a stretch that is not an object is quarantined, and a field of the wrong type becomes
None with an issue. For conversations, `ChatReader` gathers more.

The store can merge everything that is gathered with that of the next stretch of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ..fields import MAX_NAME, integer, sample
from ..records import Issue, LineExtra, LineType, Record
from ..source import Claim, Line
from ..when import Zone, is_without_zone, utc
from .jsonl import JSONObject, Piece, exact_object, pieces, whole_value

UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
"""A regular expression for the id of a session of most programs."""

_uuid = re.compile(UUID)


def folded(session: str) -> str:
    """Return a session's key in comparable form: a uuid in lower case, others unchanged."""
    return session.lower() if _uuid.fullmatch(session) else session


# ------------------------------------------------------------------------------------------------
# Shared by sources with documents that are plain text.


def document_text(line: Line) -> tuple[str, list[Record]]:
    """Return the text of a document that is not JSON, its line type, and issues for losses."""
    data = line.data.removeprefix(b"\xef\xbb\xbf")
    records: list[Record] = [LineType("", "", 1)]
    text = data.decode("utf-8", "replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
        reason = "invalid UTF-8 was replaced"
        records.append(Issue(reason, 0, sample(line.data), line.start, len(line.data)))
    return text.replace("\x00", "\u2400"), records


def nothing_in(line: Line, reason: str) -> list[Record]:
    """Return the issue of a document that is empty, or useless for a reason."""
    reason = reason if line.data.strip() else "empty"
    return [Issue(reason, 1, sample(line.data), line.start, len(line.data))]


_MOST_ISSUES = 50  # per object: each wrong field is an issue with a sample


def _never(value: JSONObject) -> bool:
    return False


class Reader:
    """Reads the objects of one stretch of a file, and gathers their records."""

    def __init__(self, claim: Claim, zone: Zone | None = None) -> None:
        self.claim = claim
        self.records: list[Record] = []
        self.start = 0
        self.length = 0
        self.data = b""
        self.is_local = False
        """Was a time without a zone read as local time?"""
        self._zone = zone
        self._types: dict[tuple[str, str], int] = {}
        self._firsts: dict[tuple[str, str], int] = {}
        self._is_refused = False
        self._noted: dict[int, set[str]] = {}

    # -- objects ---------------------------------------------------------------------------------

    def objects(
        self,
        lines: Iterable[Line],
        is_known: Callable[[JSONObject], bool] = _never,
        type_key: str = "type",
    ) -> Iterator[JSONObject]:
        """Yield each object, then count it under its type unless it was refused.

        `is_known` says whether an object after a truncated one is a line of this format.
        """
        for line in lines:
            yield from self._read(line, pieces(line, is_known), type_key)

    def _read(
        self, line: Line, found: Iterable[Piece], type_key: str = "type"
    ) -> Iterator[JSONObject]:
        for piece in found:
            self.start, self.length = piece.start, piece.length
            begin = piece.start - line.start
            self.data = line.data[begin : begin + piece.length]
            if piece.reason is not None:
                self._issue(piece.reason, int(piece.object is None))
            if piece.object is None:
                continue
            self._is_refused = False
            yield piece.object
            if not self._is_refused:
                key = self.type_of(piece.object, type_key)
                self._firsts.setdefault(key, piece.start)
                self._types[key] = self._types.get(key, 0) + 1

    def type_of(self, value: JSONObject, type_key: str) -> tuple[str, str]:
        """Return the type and the subtype under which an object is counted."""
        kind = value.get(type_key)
        return (kind if isinstance(kind, str) else "", "")

    def document(self, lines: Iterable[Line]) -> Iterator[JSONObject]:
        """Yield the object of a document; an empty or truncated document is quarantined.

        So is a document with more than one object: nobody can tell which part counts.
        """
        (line,) = lines
        if not line.data.strip():
            self.records.append(Issue("empty", 1, None, 0, len(line.data)))
            return
        found = list(pieces(line, _never))
        if any(piece.object is not None for piece in found) and len(found) > 1:
            self.start, self.data, self.length = line.start, line.data, len(line.data)
            self._issue("not JSON: unexpected content after document", 1)
            return
        yield from self._read(line, found)

    def array(
        self, lines: Iterable[Line], *, is_empty_allowed: bool = False
    ) -> Iterator[tuple[int, JSONObject]]:
        """Yield the objects of a document that is a list, each with its position in it.

        Any other document is quarantined, and so is an empty file, unless it means an empty list.
        """
        (line,) = lines
        self.start, self.data, self.length = line.start, line.data, len(line.data)
        if is_empty_allowed and not line.data.strip():
            return
        found = whole_value(line.data)
        if found is None or not isinstance(found[0], list):
            self._issue("not JSON" if found is None else "JSON, but no list", 1)
            return
        if found[1] is not None:
            self._issue(found[1], 0)
        self._types["", ""] = 1
        for place, item in enumerate(found[0]):
            self._expect(isinstance(item, dict), "item", item)
            if isinstance(item, dict):
                yield place, item

    def refuse(self, reason: str) -> None:
        """Quarantine the current object: it is not a line of this format."""
        self._is_refused = True
        self._issue(reason, 1)

    def note(self, reason: str) -> None:
        """Add an issue: the current object lacks something."""
        self._issue(reason, 0)

    def keep(
        self,
        extra: str | None,
        *,
        kind: str = "",
        moment: str | None = None,
        is_silent: bool = False,
    ) -> None:
        """Keep the fields of the current object that did not become rows, as JSON text.

        An object that `is_silent` has no other row, so it is kept even without such fields.
        """
        if extra is not None or is_silent:
            self.records.append(LineExtra(kind, moment, extra or "{}", self.start, self.length))

    def finish(self) -> list[Record]:
        """Return everything that was gathered."""
        firsts = self._firsts
        self.records.extend(
            LineType(*key, count, firsts.get(key)) for key, count in self._types.items()
        )
        return self.records

    # -- fields ----------------------------------------------------------------------------------

    def text(self, value: JSONObject, key: str) -> str | None:
        """Return a text, None if there is none or it is empty."""
        found = value.get(key)
        if isinstance(found, str):
            return found or None
        self._expect(found is None, key, found)
        return None

    def name(self, value: JSONObject, key: str) -> str | None:
        """Return a text that every row of the line repeats, None if it is too long for that."""
        found = self.text(value, key)
        if found is None or len(found) <= MAX_NAME:
            return found
        self._expect(is_right=False, key=key, value=found)
        return None

    def whole(self, value: JSONObject, key: str) -> int | None:
        """Return an integer."""
        found = value.get(key)
        number = integer(int(found) if isinstance(found, float) and found % 1 == 0 else found)
        self._expect(found is None or number is not None, key, found)
        return number

    def number(self, value: JSONObject, key: str) -> float | None:
        """Return a number."""
        found = value.get(key)
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        self._expect(found is None or is_number, key, found)
        return float(found) if is_number else None  # type: ignore[arg-type]

    def flag(self, value: JSONObject, key: str) -> int | None:
        """Return a boolean as 0 or 1."""
        found = value.get(key)
        self._expect(found is None or isinstance(found, bool), key, found)
        return int(found) if isinstance(found, bool) else None

    def time(self, value: JSONObject, key: str) -> str | None:
        """Return a time; without a zone, it is read as a time of the reader's zone."""
        found = value.get(key)
        if found is None or found == "":
            return None
        moment = utc(found) if self._zone is None else utc(found, self._zone)
        self._expect(moment is not None, key, found)
        if self._zone is not None and moment is not None and is_without_zone(found):
            self.is_local = True
        return moment

    def mapping(self, value: JSONObject, key: str) -> JSONObject:
        """Return an object, an empty one if there is none."""
        found = value.get(key)
        if isinstance(found, dict):
            return found
        self._expect(found is None, key, found)
        return {}

    def items(self, value: JSONObject, key: str) -> list[JSONObject]:
        """Return the objects of a list, without other values."""
        found = value.get(key)
        self._expect(found is None or isinstance(found, list), key, found)
        items = found if isinstance(found, list) else []
        for item in items:
            self._expect(isinstance(item, dict), f"{key}[]", item)
        return [item for item in items if isinstance(item, dict)]

    def scalars(self, value: JSONObject, key: str) -> list[str]:
        """Return the texts of a list, with numbers as texts."""
        found = value.get(key)
        self._expect(found is None or isinstance(found, list), key, found)
        texts = []
        for item in found if isinstance(found, list) else []:
            is_scalar = isinstance(item, str | int) and not isinstance(item, bool)
            self._expect(is_scalar, f"{key}[]", item)
            if is_scalar:
                texts.append(str(item))
        return texts

    def exact(self, key: str, value: object) -> object:
        """Decode a field of the current line again, with integers of any size."""
        return exact_object(self.data).get(key, value)

    def _expect(self, is_right: bool, key: str, value: object) -> None:
        if not is_right:
            self._issue(f"{key}: unusable {type(value).__name__}", 0)

    def _issue(self, reason: str, quarantined: int) -> None:
        if quarantined == 0:
            noted = self._noted.setdefault(self.start, set())
            if reason in noted or len(noted) >= _MOST_ISSUES:
                return  # a thousand items with the same fault are not a thousand issues
            noted.add(reason)
        self.records.append(Issue(reason, quarantined, sample(self.data), self.start, self.length))
