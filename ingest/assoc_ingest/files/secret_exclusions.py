"""Leaves out of what is read the credentials that the user has forgotten.

Each letter is replaced by a space, before the bytes are parsed or archived: rows, index and archive
never have it, offsets stay, and JSON stays JSON. An issue says where. Only a keyed hash of a
credential is stored, so it is recognised like this:

1. what the rules find (`secret_scan`) has this hash, however it is escaped or quoted;
2. a run of letters and digits has the length of the longest one in the credential, and what stands
   around it, as far as the credential goes, has this hash. So it is found without its name, too,
   but not within a longer word, and a private key not without its header.

What is left out of a line depends on that line alone, wherever reading begins.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from ..records import Issue, Record
from .tail import Stretch, lines_of

if TYPE_CHECKING:
    from .secret_rules import Secret

CREDENTIAL_LEFT_OUT = "left out: a forgotten credential"
"""Reason of the issue where a credential was left out."""

KEY_BLOCK = "private key"
"""The rule of what has no core: its lines may be broken anywhere."""

_run = re.compile("[A-Za-z0-9]+")
_PLAIN = bytes(
    ord("a") if chr(code).isascii() and chr(code).isalnum() else ord(" ") for code in range(256)
)
_SPACES = bytes(code if code in b"\r\n" else ord(" ") for code in range(256))
_BREAKS = b"nrtbf"

Span = tuple[int, int]


class ForgottenSecret(NamedTuple):
    """A row of `forgotten_secrets`, as far as it tells what to leave out."""

    rule: str
    length: int
    core: Span | None
    """Where the longest run of letters and digits begins, and how long it is."""
    salt: bytes
    hash: bytes


def forgotten_secret(secret: Secret, salt: bytes) -> ForgottenSecret:
    """Return what is stored of a credential to know it again."""
    core = None
    if secret.rule != KEY_BLOCK:
        longest = max(_run.finditer(secret.text), key=lambda match: len(match[0]))
        core = (longest.start(), len(longest[0]))
    return ForgottenSecret(
        secret.rule, len(secret.text), core, salt, _hash(secret.text.encode("latin-1"), salt)
    )


@dataclass(frozen=True, slots=True)
class ForgottenSecrets:
    """The rows of `forgotten_secrets`; if there are none, nothing is looked for."""

    salts: frozenset[bytes] = frozenset()
    hashes: frozenset[bytes] = frozenset()
    lengths: frozenset[int] = frozenset()
    cores: dict[int, frozenset[Span]] = field(default_factory=dict)
    """By the length of a core: where it begins in a credential, and how long that is."""

    @classmethod
    def of(cls, rows: Iterable[ForgottenSecret]) -> ForgottenSecrets:
        """Return these rows, arranged for looking."""
        rows = list(rows)
        cores: dict[int, set[Span]] = {}
        for row in rows:
            if row.core is not None:
                cores.setdefault(row.core[1], set()).add((row.core[0], row.length))
        return cls(
            frozenset(row.salt for row in rows),
            frozenset(row.hash for row in rows),
            frozenset(row.length for row in rows),
            {length: frozenset(found) for length, found in cores.items()},
        )

    def __bool__(self) -> bool:
        """Is there anything to leave out?"""
        return bool(self.hashes)

    def spans(self, data: bytes, *, is_log: bool) -> list[Span]:
        """Return where forgotten credentials stand in bytes: in order, none within another."""
        if not self:
            return []
        # Compiling the rules takes 20 ms, which every sync would pay in which nothing is forgotten.
        from .secret_scan import find

        found = [
            (secret.start, secret.end)
            for secret in find(data, is_log=is_log)
            if len(secret.text) in self.lengths and self._has(secret.text.encode("latin-1"))
        ]
        shape = b" " + data.translate(_PLAIN) + b" "
        for length, places in self.cores.items():
            for start in _runs(data, shape, length):
                for before, whole in places:
                    low = start - before
                    if low >= 0 and self._has(data[low : low + whole]):
                        found.append((low, low + whole))
        return _merged(found)

    def without(self, data: bytes, *, is_log: bool) -> tuple[bytes, list[Span]]:
        """Return bytes with spaces in place of forgotten credentials, and where these were."""
        spans = self.spans(data, is_log=is_log)
        return (_blanked(data, spans) if spans else data), spans

    def _has(self, text: bytes) -> bool:
        return any(_hash(text, salt) in self.hashes for salt in self.salts)


def load_secrets(connection: sqlite3.Connection | None) -> ForgottenSecrets:
    """Read which credentials are forgotten; without a database, none are."""
    if connection is None:
        return ForgottenSecrets()
    rows = connection.execute(
        "select rule, length, core_start, core_length, salt, hash from forgotten_secrets"
    )
    return ForgottenSecrets.of(
        ForgottenSecret(rule, length, None if count is None else (start, count), salt, hash_)
        for rule, length, start, count, salt, hash_ in rows
    )


def issues_at(start: int, spans: Iterable[Span]) -> list[Record]:
    """Return an issue for each credential that was left out of bytes that begin at `start`."""
    return [Issue(CREDENTIAL_LEFT_OUT, 0, None, start + low, high - low) for low, high in spans]


def stretches_without(
    secrets: ForgottenSecrets, stretches: Iterable[Stretch]
) -> Iterator[tuple[Stretch, bytes, list[Record]]]:
    """Yield the stretches of a log without forgotten credentials, as they were, and the issues.

    Of a line too long to be parsed, the end of each piece is looked at again with the next one.
    """
    if not secrets:
        yield from ((stretch, stretch.data, []) for stretch in stretches)
        return
    from .secret_scan import LONGEST

    held: Stretch | None = None
    for stretch in stretches:
        if held is not None:
            stretch = Stretch(
                held.start, held.data + stretch.data, (), stretch.long_line, stretch.is_cut
            )
            held = None
        spans = secrets.spans(stretch.data, is_log=True)
        if stretch.is_cut:
            cut = max(0, len(stretch.data) - LONGEST)
            cut = min([cut, *(low for low, high in spans if low < cut < high)])
            held = Stretch(stretch.start + cut, stretch.data[cut:], (), 0, is_cut=True)
            spans = [span for span in spans if span[1] <= cut]
            stretch = Stretch(stretch.start, stretch.data[:cut], (), 0, is_cut=True)
            if not cut:
                continue
        yield _stretch_without(stretch, spans), stretch.data, issues_at(stretch.start, spans)
    if held is not None:
        yield held, held.data, []


def _stretch_without(stretch: Stretch, spans: list[Span]) -> Stretch:
    if not spans:
        return stretch
    data = _blanked(stretch.data, spans)
    lines = lines_of(stretch.start, data) if stretch.lines else ()
    return Stretch(stretch.start, data, lines, stretch.long_line, stretch.is_cut)


def _runs(data: bytes, shape: bytes, length: int) -> Iterator[int]:
    """Yield where runs of so many letters and digits begin.

    Behind an escaped line break, the letter of the escape is none of them.
    """
    for extra in (0, 1):
        wanted = b" " + b"a" * (length + extra) + b" "
        place = shape.find(wanted)
        while place >= 0:
            if not extra or (data[place - 1 : place] == b"\\" and data[place] in _BREAKS):
                yield place + extra
            place = shape.find(wanted, place + length + extra + 1)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def _blanked(data: bytes, spans: Iterable[Span]) -> bytes:
    changed = bytearray(data)
    for low, high in spans:
        changed[low:high] = data[low:high].translate(_SPACES)
    return bytes(changed)


def _hash(text: bytes, salt: bytes) -> bytes:
    return blake2b(text, digest_size=16, key=salt).digest()
