"""The file that lists the credentials that a user knows of: fingerprints, one on each line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from ..errors import UsageError

_HEAD = "# Fingerprints of credentials that are known; written by assoc-ingest secrets\n"
_LARGEST = 10_000_000  # bytes


def read_baseline(path: Path) -> frozenset[str]:
    """Return the fingerprints in a file. Raises UsageError if it is no baseline."""
    from ..ask.secrets import FINGERPRINT_LENGTH

    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(
            f"The baseline {path} cannot be read: {reason}. To write one: --write-baseline FILE"
        ) from error
    lines = [line.partition("#")[0].strip() for line in text.split("\n")]
    for number, line in enumerate(lines, start=1):
        if line and not (len(line) == FINGERPRINT_LENGTH and set(line) <= set("0123456789abcdef")):
            raise UsageError(
                f"Line {number} of {path} is no fingerprint. To write a baseline: "
                "--write-baseline FILE"
            )
    return frozenset(filter(None, lines))


def write_baseline(connection: sqlite3.Connection, path: Path, fingerprints: Iterable[str]) -> None:
    """Write a baseline, over an earlier one only. Raises UsageError if something else is there."""
    from ..upkeep.private_file import write_private
    from .export_target import checked_file

    is_there = path.is_file()
    if is_there:
        read_baseline(path)
    overwrite = checked_file(connection, path, force=is_there)
    lines = [f"{name}\n" for name in sorted(fingerprints)]
    write_private(path, [_HEAD, *lines], overwrite=overwrite)
