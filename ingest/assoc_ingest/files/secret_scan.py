"""Finds credentials in bytes as they were read: at 40 MB/s and more, with hardly a false report.

1. Escapes of JSON that can stand inside of a credential (`\\u002d`, `\\/`) are taken for what they
   mean. Everything else is looked at as it stands, whatever it is quoted in.
2. What providers issue is found by its prefix (`secret_tokens`).
3. The rest counts only where a name or a header says what it is, or in an address, and only if it
   looks random (`secret_values`).

The work grows with the bytes alone. What is found in a line depends on that line alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from .secret_rules import Secret
from .secret_tokens import tokens
from .secret_values import values

LONGEST = 24 * 1024
"""No credential with what names it has more bytes: a key block of 20,000, and its header."""

_HEX = frozenset("0123456789abcdefABCDEF")
_PRINTABLE = frozenset("234567")
_NESTED = 8  # backslashes before an escape: JSON in JSON in JSON has seven


def find(data: bytes, *, is_log: bool) -> list[Secret]:
    """Return the credentials in the bytes of a file, in order; no two of them overlap.

    In a log, none goes beyond the end of its line.
    """
    raw = data.decode("latin-1")
    escapes = sorted(_escapes(raw))
    view = _View(raw, escapes) if escapes else None
    text = raw if view is None else view.text
    seen = data if view is None else text.encode("latin-1")
    found: list[Secret] = []
    end = 0
    candidates = [*tokens(text, seen), *values(text, seen, is_log=is_log)]
    # Where two are found at one place, the one with a rule of its own counts.
    for secret in sorted(candidates, key=_order):
        if secret.start >= end:
            found.append(secret)
            end = secret.end
        elif found[-1].rule in _VAGUE and secret.rule not in _VAGUE:
            found[-1] = secret
            end = max(end, secret.end)
    return found if view is None else [view.placed(secret) for secret in found]


def find_in(pieces: Iterable[tuple[int, bytes]], *, is_log: bool) -> Iterator[Secret]:
    """Yield the credentials in a file that comes in pieces: the offset of each, and its bytes.

    A credential may begin in one piece and end in the next; memory holds little more than one.
    """
    buffer, start, done = b"", 0, 0
    for offset, data in pieces:
        if offset != start + len(buffer):  # after bytes that are lost
            yield from _since(done, start, buffer, is_log=is_log)
            buffer, start, done = b"", offset, offset
        buffer += data
        is_whole = is_log and buffer.endswith(b"\n")
        cut = start + len(buffer) - (0 if is_whole else LONGEST)
        for secret in _since(done, start, buffer, is_log=is_log):
            if secret.start < cut:
                yield secret
                done = secret.end
        done = max(done, cut)
        low = max(0, (len(buffer) if is_whole else done - start - _LONGEST_NAMING))
        buffer, start = buffer[low:], start + low
    yield from _since(done, start, buffer, is_log=is_log)


def _since(done: int, start: int, buffer: bytes, *, is_log: bool) -> Iterator[Secret]:
    """Yield what begins at `done` or later in bytes that begin at `start`."""
    for secret in find(buffer, is_log=is_log) if buffer else ():
        if secret.start + start >= done:
            yield secret._replace(start=secret.start + start, end=secret.end + start)


_LONGEST_NAMING = 512  # bytes of what stands before a credential and says that it is one
_VAGUE = ("named", "address", "authorization")


def _order(secret: Secret) -> tuple[int, bool, int]:
    return secret.start, secret.rule in _VAGUE, -secret.end


class _View:
    """Text without the escapes of JSON, and where each letter of it stood."""

    def __init__(self, raw: str, escapes: Iterable[tuple[int, int, str]]) -> None:
        pieces, position = [], 0
        self._ends = [0]  # in the text: behind each escape
        self._shifts = [0]
        length = 0
        for start, end, letter in escapes:
            pieces += [raw[position:start], letter]
            length += start - position + 1
            position = end
            self._ends.append(length)
            self._shifts.append(position - length)
        pieces.append(raw[position:])
        self.text = "".join(pieces)

    def placed(self, secret: Secret) -> Secret:
        """Return a credential with its place in what was read."""
        return secret._replace(start=self._raw(secret.start), end=self._raw(secret.end))

    def _raw(self, position: int) -> int:
        return position + self._shifts[bisect_right(self._ends, position) - 1]


def _escapes(raw: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the end and the meaning of each escape of a letter, in any order."""
    for needle in ("\\u00", "\\/"):
        place = raw.find(needle)
        while place >= 0:
            digits = raw[place + 4 : place + 6]
            start = place
            while start and place - start < _NESTED and raw[start - 1] == "\\":
                start -= 1
            if needle == "\\/":
                yield start, place + 2, "/"
            elif digits[:1] in _PRINTABLE and digits[1:] in _HEX:
                yield start, place + 6, chr(int(digits, 16))
            place = raw.find(needle, place + len(needle))
