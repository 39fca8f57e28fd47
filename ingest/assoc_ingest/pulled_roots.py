"""The roots of files that were pulled from another machine: names, and SQL that knows them."""

from __future__ import annotations

PULLED = "fleet/"
"""How these roots begin; no absolute path does."""


def pulled_root(label: str, root: str) -> str:
    """Return the root of files that were pulled: of the machine with a label, from its root."""
    return f"{PULLED}{label.replace('/', '_')}/{root.lstrip('/')}"


def is_pulled(root: str) -> str:
    """Return the SQL condition that the column `root` is the root of pulled files."""
    return f"substr({root}, 1, {len(PULLED)}) = '{PULLED}'"
