"""Prints docs/schema.md and docs/queries.md."""

from __future__ import annotations

from collections.abc import Iterable

import cog

from assoc_ingest import sql
from assoc_ingest.sql import Query
from docs.comments import Column, Table, migrated, tables

_GROUPS = {
    "list_": ("Lists", "What `assoc-ingest list` prints: `list_sessions` is `list sessions`."),
    "search_": ("Search", "What `assoc-ingest search` asks, store by store."),
    "show_": ("One conversation", "What `assoc-ingest show` reads."),
    "status_": ("State", "What `assoc-ingest status` prints."),
}
_OTHERS = ("Questions", "For `assoc-ingest query`, Datasette and any SQLite shell.")


def schema_page() -> None:
    """Print every table and view: columns with their meaning, indexes, full text."""
    _contents()
    for table in tables().values():
        _table(table)
    _full_text_indexes()


def _contents() -> None:
    for kind, title in (("table", "Tables"), ("view", "Views")):
        cog.outl(f"\n| {title[:-1].lower()} | a row is |\n|---|---|")
        for table in tables().values():
            if table.kind == kind:
                cog.outl(f"| [{table.name}](#{table.name}) | {_cell(table.comment)} |")


def _table(table: Table) -> None:
    cog.outl(f"\n## {table.name}\n\n{table.comment}{' (a view)' * (table.kind == 'view')}.\n")
    cog.outl("| column | type | meaning |\n|---|---|---|")
    for column in table.columns:
        cog.outl(f"| {column.name} | {column.type} | {_cell(_meaning(column))} |")
    if table.indexes:
        cog.outl(f"\nIndexes: {'; '.join(f'`{index}`' for index in table.indexes)}.")
    if table.full_text:
        cog.outl(f"\nFull text: {', '.join(f'`{name}`' for name in table.full_text)}.")


def _meaning(column: Column) -> str:
    link = f"→ [{column.references}](#{column.references})" if column.references else ""
    return ". ".join(part for part in (column.comment, link) if part)


def _full_text_indexes() -> None:
    cog.outl("\n## Full-text indexes\n\n| index | of | columns |\n|---|---|---|")
    for table in tables().values():
        for name in table.full_text:
            rows = migrated().execute(f"pragma table_info([{name}])")
            columns = ", ".join(row[1] for row in rows)
            cog.outl(f"| {name} | [{table.name}](#{table.name}) | {columns} |")


def queries_page() -> None:
    """Print every query with its title, description and parameters."""
    left = dict(sql.queries())
    groups = []
    for prefix, words in _GROUPS.items():
        names = [name for name in left if name.startswith(prefix)]
        groups.append((words, [left.pop(name) for name in names]))
    for words, queries in [(_OTHERS, list(left.values())), *groups]:
        _group(*words, queries)


def _group(title: str, description: str, queries: Iterable[Query]) -> None:
    cog.outl(f"\n## {title}\n\n{description}\n")
    cog.outl("| query | answers | parameters |\n|---|---|---|")
    for query in queries:
        answer = f"**{query.title}.** {query.description}".strip()
        parameters = ", ".join(f"`{name}`" for name in query.parameters)
        cog.outl(f"| {query.name} | {_cell(answer)} | {parameters} |")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
