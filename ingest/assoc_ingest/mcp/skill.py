"""The skill: a short file that teaches an agent when and how to ask."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from ..errors import DatabaseIOError, UsageError

NAME = "past-conversations"
"""Its name, and that of its directory."""

_FILE = "SKILL.md"
_FIRST = f"---\nname: {NAME}\n"
"""How a file of ours begins, of whichever version."""


def text() -> str:
    """Return the file."""
    return (files(__package__) / "skill.md").read_text("utf-8")


def install(directory: Path, *, is_forced: bool = False) -> tuple[Path, bool]:
    """Write the file below a directory of skills; return where it is, and whether it was changed.

    The directory is made where it is not there yet. Raises UsageError where there is a file that
    is not this one, unless `is_forced`; a link is never followed.
    """
    target = directory / NAME / _FILE
    try:
        for place in (target.parent, target):
            if place.is_symlink():
                raise UsageError(f"{place} is a symbolic link. Remove it, or choose another place.")
        if target.exists():
            before = target.read_bytes()
            if before == text().encode():
                return target, False
            if not before.startswith(_FIRST.encode()) and not is_forced:
                raise UsageError(
                    f"{target} is another file. To replace it: assoc-ingest skill install --force"
                )
        if directory.exists() and not directory.is_dir():
            raise UsageError(f"{directory} is not a directory. Give another: --to DIR")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text(), "utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        raise DatabaseIOError(
            f"{target} cannot be written: {why}. Give another: --to DIR"
        ) from None
    return target, True
