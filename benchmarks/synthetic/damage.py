"""Breaks what was generated, in the ways and at the rates in which real homes are broken.

No good line is lost: damage stands between the lines, repeats them, or changes one value in them.
So a reader that salvages everything it can has every line of the undamaged home.  Where a piece
of damage stands is not recorded, only how many there are of each kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from . import shapes
from .home import Home

_TEXT = re.compile(rb'"(?:text|content)":"(?=\w)')
_TOKENS = re.compile(rb'"output_tokens":\d+')
_NUMBER = re.compile(rb'"(?:limit|offset)":\d+')
_NO_OBJECTS = (b"[1,2,3]", b'"just a string"', b"42", b"null", b"true")
_ODD_OBJECTS = (
    b'{"sessionId":"0b7c","note":"no type"}',
    b'{"type":"assistant","uuid":"odd-1","message":"a string"}',
    b'{"type":"user","uuid":"odd-2","message":["a","list"]}',
    b'{"type":"user","uuid":"odd-3","mesage":{"role":"user","content":"misspelled"}}',
    b'{"type":7,"uuid":["odd-4"],"message":{"content":{"text":3}}}',
)
_NUMBERS = (
    b'{"type":"assistant","message":{"usage":{"input_tokens":NaN}}}',
    b'{"type":"user","message":{"content":"x"},"durationMs":1e400}',
)
_DEEP = b'{"type":"user","message":' + b"[" * 1_100 + b"]" * 1_100 + b"}"
_OF_FILES = ("crlf_file", "byte_order_mark", "torn_tail", "empty_file", "foreign_file")
_BINARY = b"\x1f\x8b\x08\x00not a transcript\x00\xff\xfe"

# Takes the line before and the line itself; gives the bytes to write instead of the line, the
# line feed included, or None where the line does not lend itself to it.
Breaker = Callable[[bytes, bytes], bytes | None]


class Damage:
    """Spoils lines and files as they are written."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._waiting: list[tuple[str, float, Breaker]] = []
        self._breakers: list[tuple[str, float, Breaker]] = [
            ("fragments", shapes.FRAGMENT, self._fragments),
            ("glued", shapes.GLUED, lambda before, line: line),
            ("cut", shapes.CUT, lambda before, line: self._head(line) + line + b"\n"),
            ("nul_run", shapes.NUL_RUN, lambda before, line: bytes(512) + b"\n" + line + b"\n"),
            ("nul_prefix", shapes.NUL_RUN, lambda before, line: bytes(64) + line + b"\n"),
            ("lone_surrogate", shapes.LONE_SURROGATE, self._surrogate),
            ("big_integer", shapes.BIG_INTEGER, self._big_typed),
            ("big_integer_in_input", shapes.BIG_INTEGER, self._big_free),
            ("no_object", shapes.NO_OBJECT, lambda before, line: self._extra(_NO_OBJECTS, line)),
            ("odd_object", shapes.ODD_OBJECT, lambda before, line: self._extra(_ODD_OBJECTS, line)),
            ("blank", shapes.BLANK, lambda before, line: self._extra((b"", b"  "), line)),
            ("bad_number", shapes.UNREADABLE_NUMBER, lambda b, line: self._extra(_NUMBERS, line)),
            ("too_deep", shapes.TOO_DEEP, lambda before, line: self._extra((_DEEP,), line)),
            ("invalid_utf8", shapes.INVALID_UTF8, self._invalid),
        ]

    def kinds(self) -> set[str]:
        """The names of all kinds of damage, as ``Summary.faults`` counts them."""
        return {name for name, _, _ in self._breakers} | set(_OF_FILES)

    def spoil(self, lines: list[bytes]) -> bytes:
        """The lines as bytes, now and then one of them broken."""
        pieces: list[bytes] = []
        before = b""
        for place, line in enumerate(lines):
            pieces.append(self._spoil(before, line, place + 1 < len(lines)))
            before = line
        return b"".join(pieces)

    def _spoil(self, before: bytes, line: bytes, followed: bool) -> bytes:
        """The line, broken in one of the ways that came due, now or at an earlier line."""
        due = self._home.ledger.due
        self._waiting += [entry for entry in self._breakers if due(entry[0], entry[1], spread=250)]
        for entry in self._waiting:
            name, _, breaker = entry
            broken = breaker(before, line) if followed else None
            if broken is not None:
                self._waiting.remove(entry)
                return self._count(name, broken)
        return line + b"\n"

    def newline(self) -> bytes:
        """What ends the lines of the next file."""
        crlf = self._home.ledger.due("crlf file", shapes.CRLF_FILE, spread=9)
        return self._count("crlf_file", b"\r\n") if crlf else b"\n"

    def mark(self, data: bytes) -> bytes:
        """The first bytes of a file, rarely behind a byte order mark."""
        marked = self._home.ledger.due("byte order mark", shapes.BYTE_ORDER_MARK, spread=9)
        return self._count("byte_order_mark", b"\xef\xbb\xbf" + data) if marked else data

    def torn_tail(self, lines: list[bytes]) -> bytes:
        """A last line that is still being written."""
        torn = lines and self._home.ledger.due("torn tail", shapes.TORN_TAIL, spread=9)
        return self._count("torn_tail", self._head(lines[-1])) if torn else b""

    def stray_files(self, folder: str, when: float) -> None:
        """Files in a project directory that are empty, or nothing we know."""
        home = self._home
        if home.ledger.due("empty file", shapes.EMPTY_FILE, spread=2):
            home.write(f"{folder}/{home.uuid()}.jsonl", b"", when)
            self._count("empty_file")
        if home.ledger.due("foreign file", shapes.FOREIGN_FILE, spread=2):
            rows = [_BINARY + home.rng.randbytes(40).replace(b"\n", b"") for _ in range(140)]
            home.write(f"{folder}/{home.uuid()}.jsonl", b"\n".join(rows), when)
            self._count("foreign_file")

    def _count(self, name: str, data: bytes = b"") -> bytes:
        faults = self._home.summary.faults
        faults[name] = faults.get(name, 0) + 1
        return data

    def _head(self, line: bytes) -> bytes:
        """A line cut somewhere inside."""
        return line[: self._home.rng.randrange(2, max(3, len(line) - 2))]

    def _extra(self, choices: tuple[bytes, ...], line: bytes) -> bytes:
        return self._home.rng.choice(choices) + b"\n" + line + b"\n"

    def _fragments(self, before: bytes, line: bytes) -> bytes | None:
        """A tail that was rewritten in place: ends of lines, then lines once more."""
        if not before:
            return None
        ends = [text[len(text) // 2 :] for text in (before, line)]
        return b"\n".join([line, *ends, before, line]) + b"\n"

    def _surrogate(self, before: bytes, line: bytes) -> bytes | None:
        found = _TEXT.search(line)
        return line[: found.end()] + rb"\ud83d " + line[found.end() :] + b"\n" if found else None

    def _invalid(self, before: bytes, line: bytes) -> bytes | None:
        found = _TEXT.search(line)
        return line[: found.end()] + b"\xff\xfe " + line[found.end() :] + b"\n" if found else None

    def _big_typed(self, before: bytes, line: bytes) -> bytes | None:
        broken, count = _TOKENS.subn(b'"output_tokens":%d' % 2**70, line, count=1)
        return broken + b"\n" if count else None

    def _big_free(self, before: bytes, line: bytes) -> bytes | None:
        broken, count = _NUMBER.subn(b'"limit":%d' % 2**70, line, count=1)
        return broken + b"\n" if count else None
