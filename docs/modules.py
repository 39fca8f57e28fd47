"""What each source reads: the first paragraph of its docstring, and its page in docs/sources/."""

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


def pages() -> str:
    """Return a section for each source: what its users should know of it."""
    sections = []
    for name, source in SOURCES.items():
        text = (_ROOT / "docs" / "sources" / f"{name}.md").read_text("utf-8")
        sections.append(f"## {source.label}\n\n{text}")
    return "\n".join(sections)


def _file_of(source: str) -> Path:
    place = _PACKAGE / "sources" / source
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _table(title: str, rows: Iterator[tuple[str, Path]]) -> str:
    lines = [f"| {title} | |", "|---|---|"]
    lines += [f"| `{name}` | {_promise(path)} |" for name, path in rows]
    return "".join(f"{line}\n" for line in lines)


def _promise(path: Path) -> str:
    """Return the first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|").replace("<", "&lt;")
