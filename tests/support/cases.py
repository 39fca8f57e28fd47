"""The golden cases: a small home for each thing that a format knows, and what its tables are.

`tests/sources/<source>/<case>/home` is what lies on disk; the folder's name says what it shows.
`expected.json` beside it holds the rows: without ids, without columns that are null, flags that
are 0, and references that repeat the file's own session and subagent. Rows of a file are listed
under its path, and a place in the same file is written without it. A database is the SQL that makes
it: `opencode.db.sql`.

`tests/sources/<source>/source.json` says what the tests of all sources need to know of this one:
`private`, what is never opened in its home; `expressions`, the texts of `hostile.py` that are worst
for its regular expressions; `is_called_like_a_word`, that its name is found in any text.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.support.dump import Dump, Row

DEMO = Path(__file__).parents[1] / "demo"
"""A home of each system, as the documentation shows them."""

SOURCES = Path(__file__).parents[1] / "sources"
CASES = sorted(
    (str(case.parent.relative_to(SOURCES)) for case in SOURCES.glob("*/*/home")), key=str.lower
)

SHOWN = "demonstration"
"""The case of a source that shows what it is for, with `answers.json` beside it."""

_GROUP = 13  # cases: enough that the fixed cost of a sync is shared, few enough for all processes

GROUPS = {
    f"{source}-{first}": cases[first : first + _GROUP]
    for source, cases in (
        (source, [case for case in CASES if case.split("/")[0] == source])
        for source in sorted({case.split("/")[0] for case in CASES})
    )
    for first in range(0, len(cases), _GROUP)
}
"""Cases of one source whose homes are the roots of one sync, for what must hold of any home: a
sync of one small home costs as much as one of ten. What a case itself shows is compared case by
case (`test_golden`)."""

_FEW = ("claude-52", "cortex-0", "opencode-0")

of_groups = pytest.mark.parametrize(
    "group",
    [pytest.param(group, marks=() if group in _FEW else pytest.mark.slow) for group in GROUPS],
)
"""Tests all groups, of which a run without slow tests has a few: logs, documents, a database."""

_HIDDEN = {"head_hash", "tail_hash", "prefix_crc", "archived", "source_id"}
_NOT_SHOWN = {"sources", "usage", "statements"}  # seen in what becomes of them
_MOSTLY_ZERO = {
    *("generation", "partial", "copied_message_count"),
    *("repeated_count", "copied_count", "repeated_call_count"),
}
_FIRST = ("sessions", "subagents", "projects", "messages", "tool_calls", "responses")


def told_by_sources(key: str) -> dict[str, Any]:
    """Return what the `source.json` of each source says under this key, by source."""
    told = {}
    for path in sorted(SOURCES.glob("*/source.json")):
        facts = json.loads(path.read_text("utf-8"))
        if key in facts:
            told[path.parent.name] = facts[key]
    return told


def home_of(case: str, place: Path, name: str = "home") -> Path:
    """Copy the home of a case to `place` and return where it is."""
    home = Path(shutil.copytree(SOURCES / case / "home", place / name))
    for script in [*home.rglob("*.db.sql"), *home.rglob("*.sqlite.sql")]:
        make_database(script.with_suffix(""), script.read_text("utf-8"))
        script.unlink()
    return home


def homes_of(group: str, place: Path) -> list[Path]:
    """Copy the homes of a group to `place` and return where they are, each named after its case."""
    return [home_of(case, place, case.replace("/", "-")) for case in GROUPS[group]]


def make_database(path: Path, script: str) -> None:
    """Make a database as its program leaves it: closed, with a log that is gone."""
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode = wal")
    connection.executescript(script)
    connection.close()


def expected(case: str) -> Path:
    return SOURCES / case / "expected.json"


def readable(dump: Dump) -> str:
    """Return the rows as JSON to be read by people: a row is a line."""
    files = {_file_name(row): row for row in dump["files"]}
    tables = {}
    order = [*_FIRST, *sorted(dump.keys() - set(_FIRST) - _NOT_SHOWN)]
    for table in order:
        grouped: dict[str, list[str]] = {}
        for row in sorted(dump[table], key=_place):
            file = row.get("file_id", "")
            shown = _shown(row, file, files.get(file, {}) if table != "files" else {})
            if table == "line_types":  # every type of line of every file has one
                shown.pop("first_offset", None)
            grouped.setdefault(file or "", []).append(json.dumps(shown, ensure_ascii=False))
        if grouped:
            tables[table] = grouped
    return "{\n" + ",\n".join(f"{json.dumps(t)}: {_body(g)}" for t, g in tables.items()) + "\n}\n"


def _body(grouped: dict[str, list[str]]) -> str:
    def rows(lines: list[str], indent: str) -> str:
        return "[\n" + ",\n".join(f"{indent}  {line}" for line in lines) + f"\n{indent}]"

    if list(grouped) == [""]:
        return rows(grouped[""], "")
    parts = [f"  {json.dumps(file)}: {rows(lines, '  ')}" for file, lines in grouped.items()]
    return "{\n" + ",\n".join(parts) + "\n}"


def _file_name(row: Row) -> str:
    return f"{row['path']}:{row['generation']}" if row["generation"] else row["path"]


def _place(row: Row) -> tuple[Any, ...]:
    if "subtype" in row:
        return repr(row["count"]), row["file_id"], row["subtype"], row["type"]
    return row.get("byte_offset") or 0, row.get("block") or 0


def _shown(row: Row, file: str, file_row: Row) -> Row:
    shown = {}
    for column, value in row.items():
        if column in ("session_id", "subagent_id") and column in file_row:
            is_hidden = value == file_row[column]  # null is shown where the file has one
        else:
            is_hidden = value is None or column in _HIDDEN or column == "file_id"
        is_flag = column.startswith(("is_", "has_")) or column in _MOSTLY_ZERO
        if is_hidden or (is_flag and not value):
            continue
        if isinstance(value, str) and file and value.startswith(f"{file}:"):
            value = value.removeprefix(f"{file}:")
        if column == "reason" and value.startswith("not JSON"):
            value = "not JSON"  # the rest are the words of orjson, of this version
        shown[column] = value
    return shown
