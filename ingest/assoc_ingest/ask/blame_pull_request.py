"""Which conversations made a pull request: whose command created it, who names it as theirs.

A number belongs to a repository. Without one, all addresses that are stored with this number have
to be of one repository.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from .. import sql
from ..errors import UsageError
from .evidence import Evidence, line_of, strings_of, texts_of
from .expressions import SAID, TOOLS, in_scope
from .terms import Term

_WORDS = ("pull", "merge_requests", "pulls", "pull-requests")
_ROWS = 300
_LONGEST = 250

_address = re.compile(
    r"(?:https?://)?[^\s/]{1,100}/([^\s]{1,200}?)/(?:-/)?"
    r"(?:pull|pulls|merge_requests|pull-requests)/(\d{1,9})(?:[/?#]\S{0,200})?"
).fullmatch
_short = re.compile(r"(?:([\w.-]{1,100}/[\w.-]{1,100}))?#(\d{1,9})").fullmatch
_plain = re.compile(r"\d{1,6}").fullmatch
_creating = re.compile(
    r"\b(?:pr|mr) create\b|create_(?:pull|merge)_request|\bpull-request\b", re.IGNORECASE
).search


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request that is asked for."""

    number: str
    repository: str | None = None
    """Its name with that of its owner; None if that was not said."""


def as_pull_request(text: str) -> PullRequest | None:
    """Return the pull request that `#12`, `12`, `owner/name#12` or an address means."""
    if found := _address(text):
        return PullRequest(found[2], found[1])
    if found := _short(text):
        return PullRequest(found[2], found[1])
    return PullRequest(text) if _plain(text) else None


def evidence_of_pull_request(
    connection: sqlite3.Connection, wanted: PullRequest, project: str | None
) -> tuple[list[Evidence], str | None]:
    """Return what there is of a pull request, and its address.

    Raises UsageError if several repositories have one with this number.
    """
    found = [
        (url, one)
        for url, one in _all(connection, wanted, project)
        if wanted.repository is None or f"/{wanted.repository}/" in url
    ]
    urls = sorted({url for url, _ in found})
    if len(urls) > 1:
        listed = "".join(f"\n  {url}" for url in urls[:20])
        raise UsageError(
            f"{len(urls)} repositories have a pull request {wanted.number}; give its address:"
            f"{listed}"
        )
    return [one for _, one in found], next(iter(urls), None)


def _all(
    connection: sqlite3.Connection, wanted: PullRequest, project: str | None
) -> Iterator[tuple[str, Evidence]]:
    """Yield everything that has the number in an address, with the address."""
    number = wanted.number
    for row in sql.ask(connection, "pages/pull_request_links", number=number, project=project):
        yield row["url"], Evidence(
            "linked", row["session_id"], None, row["file_id"], row["byte_offset"],
            row["timestamp"], row["url"],
        )  # fmt: skip
    phrases = " OR ".join(Term(f"{word}/{number}").expression() for word in _WORDS)
    given = {"project": project, "limit": _ROWS}
    rows = sql.ask(
        connection, "pages/blame_results", match=in_scope(TOOLS, phrases), **given
    ).fetchall()
    texts = texts_of(connection, [row[name] for row in rows for name in ("call_id", "result_id")])
    for row in rows:
        command = f"{row['tool']} {strings_of(texts.get(row['call_id'], ''))}"
        grade = "made" if _creating(command) else "printed"
        for url, line in _addresses(texts.get(row["result_id"], ""), number):
            yield url, _evidence(row, grade, line, row["tool"])
    rows = sql.ask(
        connection, "pages/blame_said", match=in_scope(SAID, phrases), **given
    ).fetchall()
    texts = texts_of(connection, [row["id"] for row in rows])
    for row in rows:
        for url, line in _addresses(texts.get(row["id"], ""), number):
            yield url, _evidence(row, "mentioned", line)


def _addresses(text: str, number: str) -> Iterator[tuple[str, str]]:
    """Yield the addresses of pull requests with a number in a text, each with its line."""
    for word in _WORDS:
        tail = f"/{word}/{number}"
        at = text.find(tail)
        while at >= 0:
            end = at + len(tail)
            start = text.rfind("http", max(0, at - _LONGEST), at)
            url = text[start:end]
            if start >= 0 and not text[end : end + 1].isdigit() and " " not in url:
                yield url, line_of(text, at)
            at = text.find(tail, end)


def _evidence(row: sqlite3.Row, grade: str, text: str, tool: str | None = None) -> Evidence:
    return Evidence(
        grade, row["session_id"], row["subagent_id"], row["file_id"], row["byte_offset"],
        row["timestamp"], text, tool,
    )  # fmt: skip
