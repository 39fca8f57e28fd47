"""A document that is plain text loses nothing silently, whichever source has it."""

from __future__ import annotations

import pytest

from assoc_ingest.records import Issue, LineType
from assoc_ingest.source import Line
from assoc_ingest.sources import SOURCES
from assoc_ingest.sources.reader import document_text, nothing_in

DOCUMENTS = {
    "claude": ("plans", "moss.md"),
    "copilot": ("session-state", "s1", "workspace.yaml"),
    "gemini": ("tmp", "garden", ".project_root"),
    "associate": ("projects", "-srv-garden", "s1-summary-001.md"),
}


@pytest.mark.parametrize(
    ("data", "text", "reasons"),
    [
        (b"caf\xc3\xa9", "café", []),
        (b"\xef\xbb\xbfcaf\xc3\xa9", "café", []),
        (b"a\x00b", "a\u2400b", []),
        (b"caf\xe9", "caf\ufffd", ["invalid UTF-8 was replaced"]),
        (b"caf\xef\xbf\xbd", "caf\ufffd", []),
    ],
)
def test_what_is_lost_is_an_issue(data: bytes, text: str, reasons: list[str]) -> None:
    found, records = document_text(Line(0, data))
    assert found == text
    assert [record.reason for record in records if isinstance(record, Issue)] == reasons
    assert LineType("", "", 1) in records


@pytest.mark.parametrize(("data", "reason"), [(b"", "empty"), (b" \n", "empty"), (b"x", "odd")])
def test_a_document_without_use_is_quarantined(data: bytes, reason: str) -> None:
    (issue,) = nothing_in(Line(0, data), "odd")
    assert isinstance(issue, Issue)
    assert (issue.reason, issue.quarantined, issue.byte_length) == (reason, 1, len(data))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_source_says_that_bytes_were_replaced(name: str) -> None:
    claim = SOURCES[name].claim(DOCUMENTS[name])
    assert claim is not None
    records = SOURCES[name].parse(claim, [Line(0, b"cwd: /srv/caf\xe9\n")])
    (issue,) = [record for record in records if isinstance(record, Issue)]
    assert (issue.reason, issue.quarantined) == ("invalid UTF-8 was replaced", 0)
