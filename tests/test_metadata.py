"""metadata.yml fits the schema, and Datasette shows every table with it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs.comments import migrated, tables
from docs.metadata import DATABASE
from tests.support.served import is_line_1, made

METADATA = yaml.safe_load((Path(__file__).parents[1] / "metadata.yml").read_text("utf-8"))
TABLES: dict[str, dict[str, Any]] = METADATA["databases"][DATABASE]["tables"]


def test_it_names_every_table_and_nothing_else() -> None:
    assert set(TABLES) - {"_sqlite_migrations"} == set(tables())


def test_it_has_nothing_that_one_of_the_two_lines_of_datasette_refuses() -> None:
    assert "queries" not in METADATA["databases"][DATABASE]
    assert not [name for name, table in TABLES.items() if "units" in table]


def test_every_column_it_names_is_there() -> None:
    for name, entry in TABLES.items():
        if name in tables():
            columns = {column.name for column in tables()[name].columns}
            named = {entry.get(key) for key in ("label_column", "sort", "sort_desc", "fts_pk")}
            assert named - {None} <= columns, name
            assert set(entry["columns"]) == columns, name


def test_every_target_of_a_foreign_key_has_a_label() -> None:
    targets = {column.references for table in tables().values() for column in table.columns}
    assert targets - {None}
    shown = {name for name, entry in TABLES.items() if not entry.get("hidden")}
    assert [name for name in targets & shown if "label_column" not in TABLES[str(name)]] == []


FACETS = [(name, facet) for name, entry in TABLES.items() for facet in entry.get("facets", ())]


def test_the_tables_in_which_most_is_looked_up_have_facets() -> None:
    assert {"inbox_items", "hook_events", "tool_calls", "messages"} <= {name for name, _ in FACETS}


@pytest.mark.parametrize(("table", "column"), FACETS)
def test_a_default_facet_is_counted_in_an_index_and_not_in_the_rows(
    table: str, column: str
) -> None:
    """The statement is Datasette's own; it ends after a second, and the facet is not shown."""
    plan = migrated().execute(
        f'explain query plan select "{column}" as value, count(*) as count from'
        f' (select * from "{table}") where "{column}" is not null'
        f' group by "{column}" order by count desc, value limit 31'
    )
    (first, *_) = [detail for *_, detail in plan]
    assert f"{table} USING COVERING INDEX" in first


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Datasette's own
def test_datasette_shows_every_table(fresh: Callable[[], Path]) -> None:
    path = fresh().rename(fresh().with_name(f"{DATABASE}.db"))
    with sqlite3.connect(path) as connection:
        connection.execute(
            "insert into sources (kind, root, first_synced_at, last_synced_at)"
            " values ('claude', '/home/ada/.claude', '', '')"
        )
    connection.close()
    asyncio.run(_visit(path))


async def _visit(path: Path) -> None:
    parts = {"metadata": METADATA}
    if is_line_1():  # 1.0 takes the settings of tables from its config
        parts["config"] = METADATA
    datasette = made(path, **parts)
    await datasette.invoke_startup()
    for name, entry in TABLES.items():
        page = await datasette.client.get(f"/{DATABASE}/{name}")
        assert page.status_code == 200, name
        if "title" in entry:
            assert entry["title"] in page.text, name
    front = await datasette.client.get(f"/{DATABASE}.json")
    hidden = {table["name"]: table["hidden"] for table in front.json()["tables"]}
    assert hidden["archive"]
    assert not hidden["messages"]
    rows = await datasette.client.get(f"/{DATABASE}/sources.json?_shape=array")
    assert rows.json()[0]["root"] == "/home/ada/.claude"
