"""Commits in stored text: what git prints when it makes one, and what a command calls it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..terminal import one_line
from .evidence import line_of

LEAST, MOST = 7, 64
"""Letters of a hash: git abbreviates to seven at least."""

_hash = re.compile(r"(?<![0-9a-z])[0-9a-f]{7,64}(?![0-9a-z])").match
_made = re.compile(r"^\[([^\]\n]{1,250}) ([0-9a-f]{7,64})\] (.*)$", re.MULTILINE).finditer
_making = re.compile(r"\b(?:commit|cherry-pick|revert|merge|rebase|am)\b").search
_escape = re.compile(r"\\([\"'`$\\])")
_QUOTES = "\"'"
_BREAKS = "\r\n"
_OPTIONS = ("-m ", "--message=", "--message ")


@dataclass(frozen=True, slots=True)
class MadeCommit:
    """A commit as git says that it has made it: `[main 1a2b3c4] Subject`."""

    branch: str
    hash: str
    subject: str
    line: str


def is_hash(text: str) -> bool:
    """Can this be the hash of a commit, or the beginning of one?"""
    return LEAST <= len(text) <= MOST and all(letter in "0123456789abcdef" for letter in text)


def made_in(command: str, output: str) -> list[MadeCommit]:
    """Return the commits that a command made.

    Git prints such a line when it commits; so does what prints an old log, so the command has to
    be one that can make a commit.
    """
    if _making(command) is None:
        return []
    return [
        MadeCommit(found[1].split(" ")[0], found[2], found[3].strip(), one_line(found[0]))
        for found in _made(output)
    ]


def fits(printed: str, wanted: str) -> bool:
    """Can two hashes, each perhaps abbreviated, be of one commit?"""
    return printed.startswith(wanted) or wanted.startswith(printed)


def hashes_in(text: str, wanted: str) -> list[tuple[str, str]]:
    """Return each hash in a text that fits the wanted one, with the line around it."""
    start = wanted[:LEAST]
    found = []
    at = text.find(start)
    while at >= 0:
        match = _hash(text, at)
        if match is not None and fits(match[0], wanted):
            found.append((match[0], line_of(text, at)))
        at = text.find(start, at + len(start))
    return found


def subject_behind(line: str, printed: str) -> str | None:
    """Return what a line of a list of commits says behind the hash, None if it says nothing."""
    rest = line.partition(printed)[2]
    if rest[:1] != " ":
        return None
    rest = rest.strip()
    if rest.startswith("(") and ") " in rest:  # the branches and tags of the commit
        rest = rest.partition(") ")[2]
    return rest or None


def states(command: str, subject: str) -> bool:
    """Does a command give a commit this subject, as an option or as a line of its own?"""
    if not subject or _making(command) is None:
        return False
    text = _escape.sub(r"\1", command)
    wanted = _escape.sub(r"\1", subject)
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        before, after = text[at - 1 : at], text[end : end + 1]
        is_begun = at == 0 or before in _QUOTES + _BREAKS or text.endswith(_OPTIONS, 0, at)
        if is_begun and (not after or after in _QUOTES + _BREAKS):
            return True
        at = text.find(wanted, end)
    return False
