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

METADATA = yaml.safe_load((Path(__file__).parents[1] / "metadata.yml").read_text("utf-8"))
TABLES: dict[str, dict[str, Any]] = METADATA["databases"][DATABASE]["tables"]


def first_columns_of_indexes(table: str) -> set[str]:
    found = set()
    for _, index, *_ in migrated().execute(f"pragma index_list([{table}])"):
        found.add(migrated().execute(f"pragma index_info([{index}])").fetchone()[2])
    return found


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
    assert [name for name in targets - {None} if "label_column" not in TABLES[str(name)]] == []


def test_every_default_facet_has_an_index() -> None:
    facets = {(name, facet) for name, entry in TABLES.items() for facet in entry.get("facets", ())}
    assert facets
    assert [facet for facet in facets if facet[1] not in first_columns_of_indexes(facet[0])] == []


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
    from datasette.app import Datasette

    parts = {"metadata": METADATA}
    if not hasattr(Datasette, "metadata"):  # 1.0 takes the settings of tables from its config
        parts["config"] = METADATA
    datasette = Datasette([str(path)], **parts)
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
