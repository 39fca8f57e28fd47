"""The text of docs/schema.md and docs/queries.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assoc_ingest import sql
from assoc_ingest.sql import Query
from docs.comments import Column, Table, migrated, tables

_OTHERS = {
    "lists": (
        "Lists",
        "`sessions` is `assoc-ingest list sessions`; `query` runs it as `list_sessions`, and"
        " Datasette as `ask-list-sessions`.",
    ),
    "search": ("Search", "What `assoc-ingest search` runs, store by store."),
    "pages": (
        "Pages",
        "What `assoc-ingest show` and the pages of `assoc-ingest serve` read, by area.",
    ),
}
"""The folders beside the reports: their heading, and who runs what lies in them."""


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
    lines = [line for group in sql.reports_by_heading().items() for line in _queries(*group)]
    for folder, (heading, description) in _OTHERS.items():
        lines += _queries(heading, sql.queries(folder).values(), description)
    return _text(lines)


def _queries(heading: str, queries: Iterable[Query], description: str = "") -> Iterator[str]:
    yield f"\n## {heading}\n"
    if description:
        yield f"{description}\n"
    yield "| query | result | parameters |\n|---|---|---|"
    for query in queries:
        answer = f"**{query.title}.** {query.description}".strip()
        parameters = ", ".join(f"`{name}`" for name in query.parameters)
        link = f"[{query.stem}](../queries/{query.file})"
        yield f"| {link} | {_cell(answer)} | {parameters} |"


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
