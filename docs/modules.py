"""What each source reads: the first paragraph of its docstring, and its page in docs/sources/."""

from __future__ import annotations

import ast
from pathlib import Path

from assoc_ingest.sources import SOURCES

_ROOT = Path(__file__).parents[1]
_PACKAGE = _ROOT / "ingest" / "assoc_ingest"


def sources() -> str:
    """Return a table of the sources."""
    lines = ["| source | | checked with |", "|---|---|---|"]
    for name, source in SOURCES.items():
        about = _promise(_file_of(name))
        lines.append(f"| `{name}` | {about} | {source.checked or 'not known'} |")
    return "".join(f"{line}\n" for line in lines)


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


def _promise(path: Path) -> str:
    """Return the first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|").replace("<", "&lt;")
