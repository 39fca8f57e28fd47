"""Recognises forgotten credentials, and names any credential by a fingerprint and its prefix.

A credential has the same fingerprint on every machine, so that a baseline can be shared. So the
fingerprint depends on nothing but the credential, and can be used to check guesses: nobody guesses
a token of a provider, but a password from a dictionary can be found. That is why each guess costs
about 10 ms and 4 MB (scrypt): a million guesses take three hours of processor time.

Only a keyed hash of a forgotten credential is stored. It is recognised in two ways:

1. What the rules find (`find`) has this hash, however it is escaped or quoted.
2. A run of letters and digits is as long as the longest one in the credential, and together with
   the text around it has this hash. So the credential is also found without its name, but not
   within a longer word, and a private key not without its header.

Each letter of it is replaced by a space. What is left out of a line depends on that line alone,
wherever reading begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b, scrypt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .rules import Secret

LENGTH = 16
"""Letters of a fingerprint."""

_SALT = b"assoc-ingest secrets"
_COST = 4096


@lru_cache(maxsize=4096)
def fingerprint(text: str) -> str:
    """Return the fingerprint of a credential: 64 bits as hexadecimal digits."""
    data = text.encode("utf-8", "surrogatepass")
    return scrypt(data, salt=_SALT, n=_COST, r=8, p=1, dklen=LENGTH // 2).hex()


def masked(secret: Secret) -> str:
    """Return how a report shows a credential: its prefix and its length."""
    if secret.kind == "private key":
        return f"{secret.prefix}… ({secret.end - secret.start} letters)"
    return f"{secret.prefix}… ({len(secret.text)} letters)"


KEY_BLOCK = "private key"
"""The rule of credentials without a core: their lines may be broken anywhere."""

_run = re.compile("[A-Za-z0-9]+")
_PLAIN = bytes(
    ord("a") if chr(code).isascii() and chr(code).isalnum() else ord(" ") for code in range(256)
)
_SPACES = bytes(code if code in b"\r\n" else ord(" ") for code in range(256))
_BREAKS = b"nrtbf"

Span = tuple[int, int]


class ForgottenSecret(NamedTuple):
    """The columns of `forgotten_secrets` that are needed to leave a credential out."""

    rule: str
    length: int
    core: Span | None
    """Where the longest run of letters and digits begins, and how long it is."""
    salt: bytes
    hash: bytes


def forgotten_secret(secret: Secret, salt: bytes) -> ForgottenSecret:
    """Return what is stored of a credential in order to recognise it."""
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
        """Return where forgotten credentials are in bytes: in order, none within another."""
        if not self:
            return []
        # Compiling the rules takes 20 ms, which no sync should pay if nothing is forgotten.
        from .find import find

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
        return (blanked(data, spans) if spans else data), spans

    def are_in(self, path: str) -> bool:
        return bool(self and self.spans(_bytes(path), is_log=False))

    def covered(self, path: str) -> str:
        """Return a path with stars in place of forgotten credentials."""
        data, parts, end = _bytes(path), [], 0
        for low, high in self.spans(data, is_log=False):
            parts.append(data[end:low])
            end = high
        return b"***".join([*parts, data[end:]]).decode("utf-8", "replace")

    def _has(self, text: bytes) -> bool:
        return any(_hash(text, salt) in self.hashes for salt in self.salts)


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _runs(data: bytes, shape: bytes, length: int) -> Iterator[int]:
    """Yield where runs of this many letters and digits begin.

    After an escaped line break, the letter of the escape does not count.
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


def blanked(data: bytes, spans: Iterable[Span]) -> bytes:
    changed = bytearray(data)
    for low, high in spans:
        changed[low:high] = data[low:high].translate(_SPACES)
    return bytes(changed)


def _hash(text: bytes, salt: bytes) -> bytes:
    return blake2b(text, digest_size=16, key=salt).digest()
