"""What an edit changed, in one line: the first lines that went and came, and how many of each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..terminal import cut, one_line

_OLD = ("old_string", "old_str", "old_text")
_NEW = ("new_string", "new_str", "new_text", "new_source", "content", "file_text")
_PATCHES = ("patch", "diff", "input", "changes")
_SHOWN = 60
_MOST_LINES = 100_000


def shortly(arguments: dict[str, object]) -> str:
    """Return what the input of an edit changes: `-2 +3 · old line → new line`."""
    gone, come = [], []
    for old, new in islice(_parts(arguments), 100):
        gone += old
        come += new
    first_gone, first_come = _first_difference(gone, come)
    counts = " ".join(f"{sign}{len(lines)}" for sign, lines in (("-", gone), ("+", come)) if lines)
    shown = " → ".join(cut(one_line(line), _SHOWN) for line in (first_gone, first_come) if line)
    return " · ".join(filter(None, (counts, shown)))


def _parts(arguments: dict[str, object]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the lines that went and those that came, for each part of an edit."""
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if not isinstance(edit, dict):
            continue
        yield _lines(edit, _OLD), _lines(edit, _NEW)
        for lines in patches(edit):
            yield _signed(lines, "-"), _signed(lines, "+")


def patches(edit: dict[str, object]) -> Iterator[list[str]]:
    """Yield the lines of each patch that an edit is."""
    for name in _PATCHES:
        if isinstance(patch := edit.get(name), str):
            yield patch[: _MOST_LINES * 10].split("\n")


def _lines(edit: dict[str, object], names: tuple[str, ...]) -> list[str]:
    text = next((value for name in names if isinstance(value := edit.get(name), str)), "")
    return text.split("\n")[:_MOST_LINES] if text else []


def _signed(lines: list[str], sign: str) -> list[str]:
    return [line[1:] for line in lines if line.startswith(sign) and not line.startswith(sign * 3)]


def _first_difference(gone: list[str], come: list[str]) -> tuple[str, str]:
    """Return the first line on each side that the other does not have."""
    others = set(come)
    kept = set(gone)
    first_gone = next((line for line in gone if line.strip() and line not in others), "")
    first_come = next((line for line in come if line.strip() and line not in kept), "")
    return first_gone, first_come
