"""The text of docs/schema.md and docs/queries.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assoc_ingest import sql
from assoc_ingest.sql import Query
from docs.comments import Column, Table, migrated, tables

_GROUPS = {
    "list_": ("Lists", "What `assoc-ingest list` prints: `list_sessions` is `list sessions`."),
    "search_": ("Search", "What `assoc-ingest search` runs, store by store."),
    "show_": ("One conversation", "What `assoc-ingest show` reads."),
    "status_": ("State", "What `assoc-ingest status` prints."),
}
_OTHERS = ("Reports", "For `assoc-ingest query`, Datasette and any SQLite shell.")


def schema_page() -> str:
    """Return every table and view: columns with their meaning, indexes, full text."""
    described = [line for table in tables().values() for line in _table(table)]
    return _text([*_contents(), *described, *_full_text_indexes()])


def _contents() -> Iterator[str]:
    for kind, title in (("table", "Tables"), ("view", "Views")):
        yield f"\n| {title[:-1].lower()} | a row is |\n|---|---|"
        for table in tables().values():
            if table.kind == kind:
                yield f"| [{table.name}](#{table.name}) | {_cell(table.comment)} |"


def _table(table: Table) -> Iterator[str]:
    yield f"\n## {table.name}\n\n{table.comment}{' (a view)' * (table.kind == 'view')}.\n"
    yield "| column | type | meaning |\n|---|---|---|"
    for column in table.columns:
        yield f"| {column.name} | {column.type} | {_cell(_meaning(column))} |"
    if table.indexes:
        yield f"\nIndexes: {'; '.join(f'`{index}`' for index in table.indexes)}."
    if table.full_text:
        yield f"\nFull text: {', '.join(f'`{name}`' for name in table.full_text)}."


def _meaning(column: Column) -> str:
    link = f"→ [{column.references}](#{column.references})" if column.references else ""
    return ". ".join(part for part in (column.comment, link) if part)


def _full_text_indexes() -> Iterator[str]:
    yield "\n## Full-text indexes\n\n| index | of | columns |\n|---|---|---|"
    for table in tables().values():
        for name in table.full_text:
            columns = ", ".join(column.name for column in migrated()[name].columns)
            yield f"| {name} | [{table.name}](#{table.name}) | {columns} |"


def queries_page() -> str:
    """Return every query with its title, description and parameters."""
    left = dict(sql.queries())
    groups = []
    for prefix, words in _GROUPS.items():
        names = [name for name in left if name.startswith(prefix)]
        groups.append((words, [left.pop(name) for name in names]))
    groups.insert(0, (_OTHERS, list(left.values())))
    return _text(line for words, queries in groups for line in _group(*words, queries))


def _group(title: str, description: str, queries: Iterable[Query]) -> Iterator[str]:
    yield f"\n## {title}\n\n{description}\n"
    yield "| query | result | parameters |\n|---|---|---|"
    for query in queries:
        answer = f"**{query.title}.** {query.description}".strip()
        parameters = ", ".join(f"`{name}`" for name in query.parameters)
        yield f"| {query.name} | {_cell(answer)} | {parameters} |"


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
