"""Text for people: made safe for a terminal, measured, wrapped and cut; times, sizes and costs;
the standard streams.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import select
import shlex
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING, TextIO, cast

import click

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


# ------------------------------------------------------------------------------------------------
# Prepares stored text for a terminal: sanitises, measures in columns, wraps, cuts, makes tables.
#
# Transcripts contain what an agent fetched from anywhere. A control sequence in it could move the
# cursor, set the clipboard or hide text; `safe` makes it visible as `\x1b`. Nothing is printed
# past it: the standard streams write what `harmless` returns (`streams`), which is `safe`, but
# for the colours of `Paint`. Commands that are printed to be copied are made by `to_copy`.
#
# Widths are those of a terminal: a Chinese letter takes two columns, a combining mark none. This
# is also why tables are made here: tabulate counts letters.


# Control characters except newline and tab, bidirectional marks and overrides, zero-width space,
# line and paragraph separators, invisible operators, byte order mark, lone surrogates, tags.
# U+200C and U+200D are kept: emoji and several scripts need them.
_HOSTILE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_hostile = re.compile(f"[{_HOSTILE}]")
_COLOUR = f"\x1b{os.urandom(8).hex()}["
"""How a colour of ours begins until it is printed. No stored text knows it."""
_hostile_or_colour = re.compile(f"{re.escape(_COLOUR)}|[{_HOSTILE}]")
_narrow_runs = re.compile(r"\s+|\S+")
_colour_sequence = re.compile(r"\x1b\[[0-9;:]*m")
_IN_A_LINE = str.maketrans({"\n": "\\x0a", "\t": "\\x09"})
_IS_WINDOWS = os.name == "nt"
_plain_on_windows = re.compile(r"[A-Za-z0-9_.:/\\-]+")
_acts_in_quotes_of_windows = re.compile('["%!$`\u201c-\u201f]')  # of cmd.exe or of PowerShell
_FIRST_WIDE = "\u2e80"
_WIDE = "\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60"  # a line may end after each of them

Progress = Callable[[int, int], None]
"""Called with the bytes done so far and the bytes in total."""

ELLIPSIS = "…"
_NEVER_CUT = 16
_WIDEST = 120  # columns that short cells are filled to
TAB = 4
_USUAL_WIDTH = 100


def safe(text: str) -> str:
    """Return `text` with visible escapes in place of everything that could control a terminal."""
    if _hostile.search(text) is None:
        return text
    return _hostile.sub(_escape, text)


def harmless(text: str) -> str:
    """Return what may be printed of `text`: as `safe` does, with the colours of `Paint`."""
    if text.rstrip("\n").isprintable() or _hostile.search(text) is None:  # the first is fast
        return text
    return _hostile_or_colour.sub(_escape, text)


def to_copy(*words: str, name: str | None = None) -> str:
    """Return a command to paste into a shell, in which each word is one word and does nothing else.

    `name` is a last word that is no option, whatever it begins with. Control characters cannot be
    typed in every shell, so they are shown as `safe` shows them, and the command finds nothing. On
    Windows, what acts within the double quotes of cmd.exe or PowerShell becomes a question mark.
    """
    if name is not None:
        words = (*words, *["--"] * name.startswith("-"), name)
    return " ".join(map(_quoted, words))


def is_typable(word: str) -> bool:
    """Does `to_copy` show exactly this word?"""
    return word.isprintable() and not (_IS_WINDOWS and _acts_in_quotes_of_windows.search(word))


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
        if not self.enabled or not text:
            return text
        painted = click.style(safe(text), fg=colour, bold=bold or None, dim=dim or None)
        return painted.replace("\x1b[", _COLOUR)


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def terminal_width(limit: int | None = None) -> int:
    """Return the columns of the terminal, at most `limit`."""
    given = os.environ.get("COLUMNS", "")
    width = int(given) if given.isdecimal() else 0
    for stream in (sys.__stdout__, sys.__stderr__):
        with suppress(AttributeError, OSError, ValueError):  # no stream, or not a terminal
            width = width or os.get_terminal_size(cast("TextIO", stream).fileno()).columns
    width = width or _USUAL_WIDTH
    return min(width, limit) if limit else width


def message(text: str) -> str:
    """Return words for the user as standard error shows them: wrapped if that is a terminal.

    A command at the end of a line stays on one line, so that it can be copied.
    """
    if not is_terminal(sys.stderr):
        return text
    width = terminal_width()
    return "\n".join(piece for line in text.split("\n") for piece in _wrap_message(line, width))


def _wrap_message(line: str, width: int) -> Iterator[str]:
    words, begins, command = line.partition(": assoc-ingest ")
    *lines, last = wrap(words + begins[:1], width)
    yield from lines
    command = begins[2:] + command
    if command and columns(last) + 1 + columns(command) > width:
        yield last
        yield f"  {command}"
    else:
        yield f"{last} {command}" if command else last


def table_width() -> int | None:
    """Return the columns that a table may take; None in a pipe or a file, whose reader cuts."""
    if is_terminal(sys.stdout) or os.environ.get("COLUMNS"):
        return terminal_width()
    return None


def _quoted(word: str) -> str:
    word = safe(word).translate(_IN_A_LINE)
    if not _IS_WINDOWS:
        return shlex.quote(word)
    if _plain_on_windows.fullmatch(word):
        return word
    return f'"{_acts_in_quotes_of_windows.sub("?", word)}"'


def _escape(match: re.Match[str]) -> str:
    if match[0] == _COLOUR:
        return "\x1b["
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
    """Compile the expression when it is needed first: a set of so many letters takes 4 ms."""
    return re.compile(rf"\s+|[{_WIDE}]|[^\s{_WIDE}]+")


def _wrap_line(line: str, width: int) -> Iterator[str]:
    indent = line[: len(line) - len(line.lstrip())]
    if columns(indent) > width // 2:
        indent = ""
    current, used, room = "", 0, width - columns(indent)
    runs = _narrow_runs if max(line) < _FIRST_WIDE else _runs()
    for match in runs.finditer(line.strip()):
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


# ------------------------------------------------------------------------------------------------
# The standard streams: always available, and never a reason for a command to fail.
#
# - A stream that was closed when the program started is replaced by the null device. Otherwise the
#   next opened file would get its number, and output would be written into the database.
# - Output that a stream cannot take is lost, but nothing raises: the reader has closed the pipe,
#   the disk of a log is full, the terminal is gone. Callers can ask for the error (`lost`) to stop
#   printing, and the entry point reports it at the end.
# - Text is made harmless here, whoever prints it (`terminal.harmless`): there is no other way to
#   the terminal. Only what another program reads in a pipe or a file stays exact (`for_programs`).


_CLOSED_PIPE = {errno.EPIPE} | ({errno.EINVAL} if sys.platform == "win32" else set())


class _Lossy(io.RawIOBase):
    """A stream of bytes that drops everything that is written after the first error."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self.error: OSError | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def isatty(self) -> bool:
        return self._raw.isatty()

    def write(self, data: ReadableBuffer) -> int:
        while self.error is None:
            try:
                written = self._raw.write(data)
                if written is not None:
                    return written
                select.select((), (self._raw,), ())  # another program made it non-blocking
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes


class StandardStream(io.TextIOWrapper):
    """A standard stream that never raises; a letter that it cannot encode becomes an escape."""

    def __init__(self, raw: io.RawIOBase, encoding: str, *, line_buffering: bool) -> None:
        self._lossy = _Lossy(raw)
        buffer = io.BufferedWriter(self._lossy)
        super().__init__(buffer, encoding, "backslashreplace", line_buffering=line_buffering)

    @property
    def error(self) -> OSError | None:
        """Why output was lost, None if none is known to be lost."""
        return self._lossy.error


class _Exit(io.TextIOBase):
    """What prints into another stream, and nothing that acts on a terminal.

    It has no `buffer`, so click does not write past it.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.stream.errors

    def write(self, text: str | bytes) -> int:
        if text and isinstance(text, bytes):  # completions; click tries an empty one elsewhere
            text = text.decode()
        self.stream.write(harmless(cast("str", text)))
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()


def unchecked(stream: TextIO) -> TextIO:
    """Return the stream behind a standard stream, for text that contains no data."""
    return stream.stream if isinstance(stream, _Exit) else stream


def for_programs() -> TextIO:
    """Return standard output for a format that a program reads: exact, but on a terminal."""
    return sys.stdout if is_terminal(sys.stdout) else unchecked(sys.stdout)


def prepare() -> None:
    """Make all three streams usable. Has to be called before any file is opened."""
    for number in range(3):
        _open_if_closed(number)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 — it stays open
    sys.stdout = _prepared(sys.stdout, sys.__stdout__, 1)
    sys.stderr = _prepared(sys.stderr, sys.__stderr__, 2)


def lost() -> OSError | None:
    """Return why standard output takes no more, None if it does, as far as is known."""
    stream = unchecked(sys.stdout)
    return stream.error if isinstance(stream, StandardStream) else None


def flushed() -> OSError | None:
    """Flush standard output; return why some of it was lost, if that is an error.

    It is not an error if the reader has closed the pipe.
    """
    sys.stdout.flush()
    error = lost()
    return None if error is None or error.errno in _CLOSED_PIPE else error


def _open_if_closed(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        # It gets the lowest free number, which is this one. Child processes should have it, too.
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _prepared(stream: TextIO | None, original: TextIO | None, number: int) -> TextIO:
    if isinstance(stream, _Exit):
        return stream
    return cast("TextIO", _Exit(_never_failing(stream, original, number)))


def _never_failing(stream: TextIO | None, original: TextIO | None, number: int) -> TextIO:
    if stream is None:
        return StandardStream(io.FileIO(number, "w", closefd=False), "utf-8", line_buffering=False)
    if stream is not original or not isinstance(stream, io.TextIOWrapper):
        return stream  # replaced by a caller, such as a test
    stream.flush()
    # Without a buffer (python -u), the raw stream is in its place.
    raw = cast("io.RawIOBase", getattr(stream.buffer, "raw", stream.buffer))
    is_direct = stream.line_buffering or stream.write_through
    return StandardStream(raw, stream.encoding, line_buffering=is_direct)


# ------------------------------------------------------------------------------------------------
# Formats times, sizes, counts and durations for people. Times are local times.


def moment(text: str | None) -> str:
    """Return a stored time as local date and minute."""
    return f"{_local(text):%Y-%m-%d %H:%M}" if text else ""


def day(text: str) -> str:
    """Return the local date of a stored time."""
    if not text:
        return ""
    local = _local(text)
    return f"{local:%A}, {local.day} {local:%B %Y}"


def days(first: date, last: date, today: date) -> str:
    """Return a stretch of days as a phrase: 18–24 Nov, 28 Oct – 3 Nov; a year unless it is this."""
    year = f" {last:%Y}" if first.year != last.year or last.year != today.year else ""
    end = f"{last.day} {last:%b}{year}"
    if (first.year, first.month) == (last.year, last.month):
        return end if first == last else f"{first.day}–{end}"
    return f"{first.day} {first:%b}{f' {first:%Y}' if first.year != last.year else ''} – {end}"


def clock(text: str | None) -> str:
    """Return the local time of day of a stored time."""
    return f"{_local(text):%H:%M}" if text else ""


def span(start: str | None, end: str | None) -> str:
    """Return two stored times as one phrase; the date of the second only if it differs."""
    if not start or not end or moment(start) == moment(end):
        return moment(start or end)
    is_same_day = moment(start)[:10] == moment(end)[:10]
    return f"{moment(start)} – {clock(end) if is_same_day else moment(end)}"


def size(count: int) -> str:
    """Return a number of bytes."""
    if count < 1000:
        return f"{count} bytes"
    return _scaled(count, ("kB", "MB", "GB", "TB"))


def tokens(
    count: int, partial: int = 0, *, is_exact: bool = False, is_estimate: bool = False
) -> str:
    """Return a number of tokens, in thousands or millions once it is long unless `is_exact`.

    `partial` counts the responses among them that never stated their final count: with these it is
    a lower bound.
    """
    sign = _sign(is_at_least=partial > 0, is_estimate=is_estimate)
    if is_exact or count < 1000:
        return f"{sign}{count:,}"
    return sign + _scaled(count, ("k", "M", "G"), is_cut=partial > 0)


def money(
    amount: float | None,
    partial: int = 0,
    unpriced: int = 0,
    *,
    currency: str = "$",
    is_estimate: bool = False,
) -> str:
    """Return dollars to the cent, `unknown` for None.

    It is a lower bound, and cut to the cent, where some responses are partial, see `tokens`, or
    unpriced: their model has no known price.
    """
    if amount is None:
        return "unknown"
    sign = _sign(is_at_least=partial + unpriced > 0, is_estimate=is_estimate)
    if partial or unpriced:  # 0.004 is at least 0.00, not at least 0.01
        return f"{sign}{currency}{math.floor(amount * 100 + 1e-6) / 100:,.2f}"
    return f"<{currency}0.01" if 0 < amount < 0.005 else f"{sign}{currency}{amount:,.2f}"


def unknown_of(column: str, row: Mapping[str, object]) -> tuple[int, int]:
    """Return the partial and the unpriced responses behind a number in a row of a query.

    They have columns of their own, or else is_lower_bound says that there are some. Tokens of a
    response without a price are known.
    """
    if column.startswith("stated_"):
        return 0, 0
    if "partial" in row and "with_worktrees" not in column:
        # An estimate leaves out only what has no price: it is none of partial responses.
        partial = 0 if column.startswith("estimated_") else int(str(row["partial"] or 0))
        unpriced = int(str(row.get("unpriced") or 0)) if "cost" in column else 0
        return partial, unpriced
    # A row says nothing of an estimate but that there is one: then all of it is measured.
    return 0 if column.startswith("estimated_") else int(str(row.get("is_lower_bound") or 0)), 0


def branch_besides(project: str | None, branch: str | None) -> str | None:
    """Return the branch, None if the name of the project ends in it, as that of a worktree does."""
    return None if branch and (project or "").endswith(f"· {branch}") else branch


def many(count: int, word: str, plural: str | None = None) -> str:
    return f"{count:,} {word if count == 1 else plural or word + 's'}"


def duration(milliseconds: int | None) -> str:
    """Return a duration, '' for less than a second."""
    if milliseconds is None or milliseconds < 1000:
        return ""
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _sign(*, is_at_least: bool, is_estimate: bool) -> str:
    return "≥" * is_at_least + "~" * is_estimate


def _scaled(count: int, units: tuple[str, ...], *, is_cut: bool = False) -> str:
    """Return a count in the unit that fits it, rounded, or cut to the digits that are shown."""
    value, unit = count / 1000, units[0]
    for larger in units[1:]:
        if value < 999.95:
            break
        value, unit = value / 1000, larger
    if is_cut:
        value = math.floor(value * 10) / 10 if value < 99.95 else math.floor(value)
    return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"


def _local(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()
