"""Where `export` may write: never over a file that it was not told to, nor in an agent's home."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from ..errors import UsageError
from ..paths import is_directory, is_file
from ..terminal import is_terminal


def checked_file(connection: sqlite3.Connection, output: Path, *, force: bool) -> bool:
    """Return whether the file may be overwritten. Raises UsageError if it cannot be written."""
    from ..upkeep.outside_roots import known_roots, outside_roots

    if is_directory(output):
        raise UsageError(f"{output} is a directory. Give a file in it: -o {output / 'NAME'}")
    _check_parent(output)
    outside_roots(output.parent, known_roots(connection), "-o FILE")
    return _may_overwrite([output], force=force)


def checked_directory(
    connection: sqlite3.Connection, output: Path, names: Sequence[str], *, force: bool
) -> bool:
    """Make the directory; return whether the files in it may be overwritten.

    Raises UsageError if they cannot be written.
    """
    from ..upkeep.outside_roots import known_roots, outside_roots

    if os.path.lexists(output) and not is_directory(output):
        raise UsageError(f"{output} is a file. Give a directory: -o DIR")
    _check_parent(output)
    outside_roots(output, known_roots(connection), "-o DIR")
    overwrite = _may_overwrite([output / name for name in names], force=force)
    output.mkdir(mode=0o700, exist_ok=True)
    return overwrite


def _check_parent(output: Path) -> None:
    if not is_directory(output.parent):
        raise UsageError(
            f"{output.parent} is not a directory. Create it first, or give another place"
        )


def _may_overwrite(files: Sequence[Path], *, force: bool) -> bool:
    """Return whether files that are there may be overwritten; a person is asked.

    Raises UsageError if something is there and nobody allows it.
    """
    there = [file for file in files if os.path.lexists(file)]
    if not there:
        return False
    odd = next((file for file in there if not is_file(file) and not file.is_symlink()), None)
    if odd is not None:
        raise UsageError(f"{odd} is not a regular file. Give another place with -o")
    if force:
        return True
    more = f" and {len(there) - 1:,} more files are" if len(there) > 1 else " is"
    said = f"{there[0]}{more} already there."
    if is_terminal(sys.stdin) and is_terminal(sys.stderr):
        if click.confirm(f"{said} Overwrite?", err=True):
            return True
        raise UsageError("Nothing was written.")
    raise UsageError(f"{said} To overwrite, add --force")
