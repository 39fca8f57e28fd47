"""The copy of a list counts while the list itself cannot be read, and at no other time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive.changeset import Touched
from assoc_ingest.derive.projects import refresh_lists

Damage = Callable[[Rows, int], None]


def pair(rows: Rows) -> tuple[int, int]:
    """Insert a list and its copy, both whole."""
    found = [
        rows.file(path, kind=kind)
        for path, kind in (("chats.json", "chat_list"), ("chats.json.bak", "chat_list_backup"))
    ]
    for file in found:
        rows.add("line_types", file_id=file, type="document", count=1)
    return found[0], found[1]


def derive(rows: Rows, *files: int) -> Touched:
    touched = rows.touch(files)
    refresh_lists(rows.connection, touched)
    return touched


def stale(rows: Rows) -> list[int]:
    return rows.all("select file_id from stale_lists")


def broken(rows: Rows, file: int) -> None:
    rows.add("issues", file_id=file, reason="no JSON", quarantined=1)


def gone(rows: Rows, file: int) -> None:
    rows.set("files", file, gone_at="2026-01-21")


def never_read(rows: Rows, file: int) -> None:
    rows.connection.execute("delete from line_types where file_id = ?", (file,))


def test_the_list_counts_where_both_are_whole(rows: Rows) -> None:
    _, copy = pair(rows)
    derive(rows)
    assert stale(rows) == [copy]


@pytest.mark.parametrize("damage", [broken, gone, never_read])
def test_the_copy_counts_while_the_list_is_missing_or_broken(rows: Rows, damage: Damage) -> None:
    original, _ = pair(rows)
    damage(rows, original)
    derive(rows)
    assert stale(rows) == [original]


@pytest.mark.parametrize("damage", [broken, gone, never_read])
def test_what_was_last_read_of_the_list_counts_where_both_are_broken(
    rows: Rows, damage: Damage
) -> None:
    original, copy = pair(rows)
    broken(rows, original)
    damage(rows, copy)
    derive(rows)
    assert stale(rows) == [copy]


def test_a_list_with_a_remark_on_it_is_whole(rows: Rows) -> None:
    original, copy = pair(rows)
    rows.add("issues", file_id=original, reason="a field is odd", quarantined=0)
    derive(rows)
    assert stale(rows) == [copy]


def test_a_list_without_a_copy_and_that_of_another_home_stay_out_of_it(rows: Rows) -> None:
    original, _ = pair(rows)
    other = rows.add("sources", kind="ccinsights", root="/elsewhere")
    rows.file("chats.json", kind="chat_list", source_id=other, gone_at="2026-01-21")
    broken(rows, original)
    derive(rows)
    assert stale(rows) == [original]


def test_all_that_the_pair_speaks_of_is_touched_if_one_of_the_two_changed(rows: Rows) -> None:
    original, copy = pair(rows)
    one, _ = rows.session("one")
    two, _ = rows.session("two")
    listed, held = rows.project("listed"), rows.project("held")
    rows.add("session_entries", file_id=copy, session_key="one", session_id=one, project_id=held)
    rows.add("session_entries", file_id=original, session_key="two", session_id=two)
    rows.add("project_entries", file_id=copy, key="listed", project_id=listed)
    touched = derive(rows, original)
    assert rows.all("select id from touched_sessions") == [one, two]
    assert touched.projects == {listed, held}


def test_nothing_is_touched_while_the_pair_does_not_change(rows: Rows) -> None:
    _, copy = pair(rows)
    one, transcript = rows.session("one")
    rows.add("session_entries", file_id=copy, session_key="one", session_id=one)
    assert derive(rows, transcript).projects == set()
    assert rows.all("select id from touched_sessions") == []
    assert stale(rows) == [copy]
