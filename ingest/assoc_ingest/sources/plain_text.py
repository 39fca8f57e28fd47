"""Shared by sources with documents that are plain text."""

from __future__ import annotations

from ..fields import sample
from ..records import Issue, LineType, Record
from ..source import Line


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
