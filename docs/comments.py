"""What the schema says of itself: the tables of a freshly migrated database and their comments.

SQLite keeps the text of a `create` statement with its comments, so a database explains itself.
A comment behind the opening line is that of the table or view, a comment behind a column that of
the column. Columns that mean the same everywhere are explained once, in the head of the first
migration. A column of a view that is passed on unchanged has the comment it has in its table.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from functools import cache

from sqlite_utils import Database, db

from assoc_ingest import sql

_RECORD_OF_MIGRATIONS = "_sqlite_migrations"

CORRECTED = {
    ("sessions", "message_count"): (
        "user and assistant lines of the main transcript that repeat no others; "
        "see copied_message_count"
    ),
    ("sessions", "prompt_count"): "what a person typed; copies left out",
    ("sessions", "tool_call_count"): "tool invocations, subagents included; copies left out",
    ("tool_calls", "status"): ("ok, error, declined (a person said no), or pending: no result yet"),
}
"""Comments that are no longer true. A released migration keeps its text: `verify` compares that."""

_opening = re.compile(r"create (?:table|view) \w+ (?:\(|as)\s*(?:--\s*(.*))?", re.IGNORECASE)
_comment = re.compile(r"--\s*(.*)")
_added_column = re.compile(r", (\w+)[^,]*? /\*\s*(.*?)\s*\*/")
_computed = re.compile(r", (\w+) text\s+generated always as .*? virtual (?=/\*)", re.DOTALL)
_shared_column = re.compile(r"^--   (\w+)  +(.+)$", re.MULTILINE)
_passed_on = re.compile(r"\b(?:(\w+)\.)?(\w+)(?: as (\w+))?\s*(?:,|$)")
_table_of_view = re.compile(r"\b(?:from|join) (\w+)(?: (?!left|join|where|group|on\b)(\w+))?")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table or view."""

    name: str
    type: str
    comment: str
    references: str | None = None
    """The table that it is a foreign key to."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view with what its comments say."""

    name: str
    kind: str
    comment: str
    columns: tuple[Column, ...]
    indexes: tuple[str, ...]
    full_text: tuple[str, ...]
    """The full-text indexes over it."""


@cache
def migrated() -> Database:
    """Return a database in memory to which all migrations were applied."""
    connection = sqlite3.connect(":memory:")
    sql.migrate(connection)
    return Database(connection, execute_plugins=False)


@cache
def tables() -> dict[str, Table]:
    """Return tables, then views, by name, in the order of the migrations; no full-text indexes."""
    found: dict[str, Table] = {}
    for name, kind, text in migrated().execute(
        "select name, type, sql from sqlite_master"
        " where type in ('table', 'view') order by type, rowid"
    ):
        if not _is_of_sqlite(name) and not text.lower().startswith("create virtual"):
            found[name] = Table(
                name,
                kind,
                _table_comment(text),
                tuple(_columns(name, text, found)),
                tuple(_indexes(name)),
                tuple(_full_text(name)),
            )
    return found


def shared_comments() -> dict[str, str]:
    """Return the comments of columns that mean the same in every table."""
    head = sql.data("schema", f"{sql.migration_names()[0]}.sql").read_text("utf-8")
    return dict(_shared_column.findall(head))


def _is_of_sqlite(name: str) -> bool:
    return "_fts" in name or name == _RECORD_OF_MIGRATIONS or name.startswith("sqlite_")


def _table_comment(text: str) -> str:
    found = _opening.match(text)
    return (found[1] or "") if found else ""


def _columns(table: str, text: str, tables: dict[str, Table]) -> list[Column]:
    own = _own_comments(text)
    passed_on = _passed_on_comments(text, tables) if text.lower().startswith("create view") else {}
    shared = shared_comments()
    described = migrated()[table]
    keys = described.foreign_keys if isinstance(described, db.Table) else []
    references = {key.column: key.other_table for key in keys}
    return [
        Column(
            name,
            type_.lower(),
            CORRECTED.get((table, name))
            or own.get(name)
            or passed_on.get(name)
            or shared.get(name, ""),
            references.get(name),
        )
        # As table_info has it, and the columns that are computed.
        for _, name, type_, *_ in described.db.execute(f"pragma table_xinfo([{table}])")
    ]


def _own_comments(text: str) -> dict[str, str]:
    """Return the comment of each line by the column that the line defines.

    In a table it is the first word of the line, in a view the last. Columns that were added stand
    behind the last one of the table, in its line, each with a comment of its own.
    """
    is_view = text.lower().startswith("create view")
    comments: dict[str, str] = {}
    for line in _computed.sub(r", \1 text ", text).splitlines()[1:]:
        comments.update(_added_column.findall(line))
        found = _comment.search(_added_column.sub("", line))
        words = re.findall(r"\w+", _added_column.sub("", line).partition("--")[0])
        if found and words:
            comments[words[-1 if is_view else 0]] = found[1]
    return comments


def _passed_on_comments(text: str, tables: dict[str, Table]) -> dict[str, str]:
    body = re.sub(r"--.*", "", text)
    select, _, rest = body.partition("\nfrom ")
    origins: dict[str | None, str] = {}
    for name, alias in _table_of_view.findall(f"from {rest}"):
        origins[alias or name] = name
        origins.setdefault(None, name)
    comments = {}
    for line in select.splitlines():
        for table, column, alias in _passed_on.findall(line):
            origin = tables.get(origins.get(table or None, ""))
            for known in origin.columns if origin else ():
                if known.name == column:
                    comments[alias or column] = known.comment
    return comments


def _indexes(table: str) -> list[str]:
    """Return what is indexed, in words: columns, uniqueness and condition."""
    found = []
    described = migrated()[table]
    for index in described.indexes if isinstance(described, db.Table) else []:
        text = _text_of(index.name)
        words = ", ".join(column or "(expression)" for column in index.columns)
        if text is not None:
            words = re.sub(r"\s+", " ", text[text.index("(") + 1 :]).replace(" )", ")").strip()
            words, _, condition = words.partition(") where ")
            words = words.removesuffix(")") + (f" where {condition}" if condition else "")
        found.append(f"{words}{' (unique)' if index.unique else ''}")
    return sorted(found)


def _full_text(table: str) -> list[str]:
    rows = migrated().execute(
        "select name from sqlite_master"
        " where sql like 'create virtual%' and sql like ? order by rowid",
        (f'%content="{table}"%',),
    )
    return [name for (name,) in rows]


def _text_of(name: str) -> str | None:
    row = migrated().execute("select sql from sqlite_master where name = ?", (name,)).fetchone()
    return row[0] if row else None
