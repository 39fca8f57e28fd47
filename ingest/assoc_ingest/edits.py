"""What the input of an edit says that it changes, in whatever words its agent has for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

_OLD = ("old_string", "old_str", "old_text", "oldString", "oldText")
_NEW = (
    *("new_string", "new_str", "new_text", "newString", "newText"),
    *("new_source", "content", "contents", "file_text", "code_edit", "streamingContent"),
)
_PATCHES = ("patch", "diff", "input", "changes")
_PATCH = "*** Begin Patch"
_MOST_LINES = 100_000


class Change(NamedTuple):
    """A part of an edit: a text before and after it, or a patch."""

    old: str = ""
    new: str = ""
    patch: str = ""

    def lines(self, sign: str) -> list[str]:
        """Return the lines that went, whose sign is `-`, or those that came."""
        if self.patch:
            return [line[1:] for line in self.patched() if line.startswith(sign)]
        text = self.old if sign == "-" else self.new
        return text.split("\n")[:_MOST_LINES] if text else []

    def patched(self) -> list[str]:
        """Return the lines of a patch that went or came, with their signs."""
        lines = self.patch[: _MOST_LINES * 10].split("\n")
        signed = (line for line in lines if line.startswith(("-", "+")))
        return [line for line in signed if not line.startswith(("---", "+++"))]


def changes_in(arguments: Mapping[str, object]) -> Iterator[Change]:
    """Yield the parts of an edit."""
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if isinstance(edit, dict):
            old, new = (_text(edit, names)[1] for names in (_OLD, _NEW))
            if old or new:
                yield Change(old, new)
            yield from (Change(patch=text) for name in _PATCHES if (text := _text(edit, [name])[1]))
    command = arguments.get("command")  # of a shell that was told to apply a patch
    for word in command if isinstance(command, list) else ():
        if isinstance(word, str) and word.startswith(_PATCH):
            yield Change(patch=word)


def rest_of(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return what an input says beside its changes; of several edits, all of them."""
    said = {_text(arguments, names)[0] for names in (_OLD, _NEW, *([name] for name in _PATCHES))}
    return {name: value for name, value in arguments.items() if name not in said}


def _text(edit: Mapping[str, object], names: Sequence[str]) -> tuple[str, str]:
    """Return the first of these names that is a text, and this text; '' if none is."""
    texts = ((name, text) for name in names if isinstance(text := edit.get(name), str))
    return next(texts, ("", ""))


# ------------------------------------------------------------------------------------------------
# Lines by which an edit is recognised, wherever its file lies now.


_LEAST_BYTES = 12  # four Chinese letters say as much as twelve Latin ones
_HASH_BYTES = 6

_is_telling = re.compile(r"(?:[\W_]*[^\W_]){6}").match


def telling(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that tell one place from another, without blanks around them.

    Those that are short, or consist of signs, stand in any file.
    """
    for line in map(str.strip, lines):
        if len(line.encode("utf-8", "replace")) >= _LEAST_BYTES and _is_telling(line):
            yield line


def added_lines(arguments: Mapping[str, object]) -> list[str]:
    """Return the telling lines that an edit added, each once."""
    gone: set[str] = set()
    come: dict[str, None] = {}
    for change in changes_in(arguments):
        gone.update(map(str.strip, change.lines("-")))
        come.update(dict.fromkeys(telling(change.lines("+"))))
    return [line for line in come if line not in gone]


def line_hash(line: str) -> int:
    """Return the number under which a line is indexed; two lines hardly ever share one."""
    data = line.encode("utf-8", "replace")
    return int.from_bytes(blake2b(data, digest_size=_HASH_BYTES).digest())
