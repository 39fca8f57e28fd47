"""Prepares stored text for a terminal: sanitises, measures in columns, wraps, cuts, makes tables.

Transcripts contain what an agent fetched from anywhere, so every stored string, path and message
goes through `safe` before it is printed. A control sequence in it could move the cursor, set the
clipboard or hide text; here it becomes visible as `\\x1b`.

Widths are those of a terminal: a Chinese letter takes two columns, a combining mark none. This is
also why tables are made here: tabulate counts letters.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TextIO

import click

# Control characters except newline and tab, bidirectional marks and overrides, zero-width space,
# line and paragraph separators, invisible operators, byte order mark, lone surrogates, tags.
# U+200C and U+200D are kept: emoji and several scripts need them.
_HOSTILE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_hostile = re.compile(f"[{_HOSTILE}]")
_colour_sequence = re.compile(r"\x1b\[[0-9;:]*m")
_WIDE = "\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60"  # a line may end after each of them

ELLIPSIS = "…"
_NEVER_CUT = 16
_WIDEST = 120  # columns that short cells are filled to
TAB = 4


def safe(text: str) -> str:
    """Return `text` with visible escapes in place of everything that could control a terminal."""
    if _hostile.search(text) is None:
        return text
    return _hostile.sub(_escape, text)


def safe_json(value: object) -> str:
    """Return JSON with the exact value, and harmless on a terminal."""
    text = json.dumps(value, ensure_ascii=False)
    if _hostile.search(text) is None:
        return text
    return _hostile.sub(_json_escape, text)  # all of them are inside strings


def readable(text: str) -> str:
    """Return stored text for reading: harmless, without colours, with plain line breaks."""
    return safe(_colour_sequence.sub("", text.replace("\r\n", "\n"))).expandtabs(TAB)


def one_line(text: str) -> str:
    """Return stored text on one line, with single spaces."""
    return safe(" ".join(_colour_sequence.sub("", text).split()))


def columns(text: str) -> int:
    """Return the number of terminal columns that `text` takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns_of, text))


def cut(text: str, width: int) -> str:
    """Return `text` cut to at most `width` columns, with an ellipsis."""
    if len(text) * 2 <= width or columns(text) <= width:
        return text
    head, _ = _split(text, max(width - 1, 0))
    return head + ELLIPSIS


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return `text` padded with spaces to `width` columns."""
    fill = " " * max(0, width - columns(text))
    return fill + text if right else text + fill


def wrap(text: str, width: int) -> Iterator[str]:
    """Yield the lines of `text`, long ones wrapped at spaces, with their indentation.

    Lines are never joined: code, tables and lists keep their shape.
    """
    for line in text.split("\n"):
        if len(line) * 2 <= width or columns(line) <= width:
            yield line.rstrip()
        else:
            yield from _wrap_line(line, width)


def table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], width: int | None = None
) -> Iterator[str]:
    """Yield the lines of a table, numbers right-aligned; wide columns shrink to fit `width`."""
    cells = [[_cell(value) for value in row] for row in rows]
    texts = [list(headers), *([text for text, _ in row] for row in cells)]
    numeric = [_is_numeric([row[n] for row in cells]) for n in range(len(headers))]
    widths = [max(columns(row[n]) for row in texts) for n in range(len(headers))]
    if width is not None:
        _fit(widths, headers, width)
        texts = [[_cut_cell(text, size) for text, size in zip(row, widths, strict=True)]
                 for row in texts]  # fmt: skip
    widths = [min(size, _WIDEST) for size in widths]  # one long cell would fill all others
    texts.insert(1, ["-" * size for size in widths])
    for row in texts:
        aligned = zip(row, widths, numeric, strict=True)
        yield "  ".join(pad(text, size, right=right) for text, size, right in aligned).rstrip()


class Figure(str):
    """A number as it is shown: a table puts it to the right."""

    __slots__ = ()


class Paint:
    """Adds colours if the stream is a terminal that shows them."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    @classmethod
    def for_stream(cls, stream: TextIO) -> Paint:
        """Use colours on a terminal, unless the user has switched them off."""
        is_plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        return cls(not is_plain and is_terminal(stream))

    def __call__(
        self,
        text: str,
        colour: str | None = None,
        *,
        bold: bool = False,
        dim: bool = False,
    ) -> str:
        """Return `text` in a colour; `text` must be harmless already."""
        if not self.enabled or not text:
            return text
        return click.style(text, fg=colour, bold=bold or None, dim=dim or None)


def is_terminal(stream: TextIO) -> bool:
    """Is this stream a terminal?"""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def terminal_width(limit: int | None = None) -> int:
    """Return the columns of the terminal, at most `limit`."""
    width = shutil.get_terminal_size((100, 24)).columns
    return min(width, limit) if limit else width


def table_width() -> int | None:
    """Return the columns that a table may take; None in a pipe or a file, whose reader cuts."""
    if is_terminal(sys.stdout) or os.environ.get("COLUMNS"):
        return terminal_width()
    return None


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _columns_of(letter: str) -> int:
    if unicodedata.east_asian_width(letter) in "WF":
        return 2
    return 0 if unicodedata.category(letter) in ("Mn", "Me", "Cf") else 1


def _split(text: str, width: int) -> tuple[str, str]:
    """Split `text` after as many letters as fit in `width` columns."""
    if text.isascii():
        return text[:width], text[width:]
    used = 0
    for position, letter in enumerate(text):
        used += _columns_of(letter)
        if used > width:
            return text[:position], text[position:]
    return text, ""


@cache
def _runs() -> re.Pattern[str]:
    """Compile the expression when it is needed first: a set of so many letters takes 2 ms."""
    return re.compile(rf"\s+|[{_WIDE}]|[^\s{_WIDE}]+")


def _wrap_line(line: str, width: int) -> Iterator[str]:
    indent = line[: len(line) - len(line.lstrip())]
    if columns(indent) > width // 2:
        indent = ""
    current, used, room = "", 0, width - columns(indent)
    for match in _runs().finditer(line.strip()):
        run = match[0]
        size = columns(run)
        if used + size > room and current.strip():
            yield (indent + current).rstrip()
            current, used = "", 0
        if not current and run.isspace():
            continue
        if size > room:
            *heads, run = _chunks(run, room)
            yield from (indent + head for head in heads)
            size = columns(run)
        current += run
        used += size
    if current:
        yield (indent + current).rstrip()


def _chunks(run: str, width: int) -> Iterator[str]:
    """Yield pieces of at most `width` columns, at least one letter each, in linear time."""
    start = used = 0
    for position, letter in enumerate(run):
        size = _columns_of(letter)
        if used + size > width and position > start:
            yield run[start:position]
            start, used = position, 0
        used += size
    yield run[start:]


def _cell(value: object) -> tuple[str, bool]:
    """Return the text of a value in a table, and whether it is a number."""
    if value is None:
        return "", True
    if isinstance(value, int | float):
        return f"{value:,}", True
    if isinstance(value, Figure):
        return value, True
    return one_line(str(value)), False


def _cut_cell(text: str, width: int) -> str:
    """Cut a text at its end, but a path at its beginning: the paths in a column begin alike."""
    if "/" not in text or " " in text or columns(text) <= width:
        return cut(text, width)
    _, tail = _split(text, columns(text) - width + 1)
    return ELLIPSIS + tail


def _is_numeric(cells: Sequence[tuple[str, bool]]) -> bool:
    return all(is_number for _, is_number in cells) and any(text for text, _ in cells)


def _fit(widths: list[int], headers: Sequence[str], width: int) -> None:
    """Shrink the widest column repeatedly until the table fits, but never below `_NEVER_CUT`."""
    floors = [max(_NEVER_CUT, columns(header)) for header in headers]
    widths[:] = [min(size, max(width, floor)) for size, floor in zip(widths, floors, strict=True)]
    excess = sum(widths) + 2 * (len(widths) - 1) - width
    while excess > 0:
        able = [n for n, size in enumerate(widths) if size > floors[n]]
        if not able:
            return
        widest = max(able, key=lambda n: widths[n])
        widths[widest] -= 1
        excess -= 1
