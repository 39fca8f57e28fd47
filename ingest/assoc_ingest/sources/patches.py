"""Shared by sources of agents: the files that a patch for `apply_patch` changes.

It names them on lines of their own: `*** Add File: a.py`, `*** Update File: a.py`,
`*** Delete File: a.py`, `*** Move to: b.py`.
"""

from __future__ import annotations

import re

_patched = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.{1,4096})$", re.MULTILINE)


def patched(patch: str, cwd: str | None) -> tuple[str, ...]:
    """Return the files that a patch names, in full, each once."""
    names = dict.fromkeys(found[1].strip() for found in _patched.finditer(patch))
    return tuple(in_full(name, cwd) for name in names)


def in_full(path: str, cwd: str | None) -> str:
    """Return a path in full, if it is relative and the working directory is known."""
    is_full = path.startswith(("/", "\\")) or path[1:2] == ":"
    return path if is_full or cwd is None else f"{cwd.rstrip('/')}/{path}"
