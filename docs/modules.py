"""What each source reads: the first paragraph of its docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from assoc_ingest.sources import SOURCES

_ROOT = Path(__file__).parents[1]
_PACKAGE = _ROOT / "ingest" / "assoc_ingest"


def sources() -> str:
    """Return a table of the sources."""
    return _table("source", ((name, _file_of(name)) for name in SOURCES))


def _file_of(source: str) -> Path:
    place = _PACKAGE / "sources" / source
    return place / "home.py" if (place / "home.py").exists() else place.with_suffix(".py")


def _table(title: str, rows: Iterator[tuple[str, Path]]) -> str:
    lines = [f"| {title} | |", "|---|---|"]
    lines += [f"| `{name}` | {_promise(path)} |" for name, path in rows]
    return "".join(f"{line}\n" for line in lines)


def _promise(path: Path) -> str:
    """Return the first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|").replace("<", "&lt;")
