"""What each module and each test file promises, in the first line that it says of itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from assoc_ingest.sources import SOURCES

_ROOT = Path(__file__).parents[1]
_PACKAGE = _ROOT / "ingest" / "assoc_ingest"


def modules() -> str:
    """Return a table of the modules of the package."""
    return _table("module", _package())


def test_files() -> str:
    """Return a table of the test files."""
    tests = _ROOT / "tests"
    paths = [*sorted(tests.glob("test_*.py")), *sorted(tests.glob("*/test_*.py"))]
    return _table("file", ((str(path.relative_to(tests))[:-3], path) for path in paths))


def sources() -> str:
    """Return a table of the sources."""
    paths = ((name, _PACKAGE / "sources" / f"{name}.py") for name in SOURCES)
    return _table("source", paths)


def _package() -> Iterator[tuple[str, Path]]:
    for path in sorted(_PACKAGE.rglob("*.py")):
        name = path.relative_to(_PACKAGE).with_suffix("").as_posix()
        if name != "__init__":
            yield name.removesuffix("/__init__"), path


def _table(title: str, rows: Iterator[tuple[str, Path]]) -> str:
    lines = [f"| {title} | |", "|---|---|"]
    lines += [f"| `{name}` | {_promise(path)} |" for name, path in rows]
    return "".join(f"{line}\n" for line in lines)


def _promise(path: Path) -> str:
    """Return the first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|").replace("<", "&lt;")
