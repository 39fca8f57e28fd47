"""A task of Cline or Roo Code is one conversation of several documents, whatever is in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.cases import home_of

from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, dump, rows

Fresh = Callable[[], Path]
SENT, SHOWN = "api_conversation_history.json", "ui_messages.json"
DEEP = f"{'[' * 300}1{']' * 300}"
LONG = "9" * 30
ODD = [DEEP, f'{{"n":{LONG},"s":"\\ud83d"}}', f'"{LONG}"', "1e400", "null", "[]"]


def document(home: Path, name: str) -> Path:
    (path,) = home.glob(f"tasks/*/{name}")
    return path


def test_a_task_that_was_emptied_has_no_messages_and_is_still_there(
    place: Path, fresh: Fresh
) -> None:
    home, database, other = home_of("cline/demonstration", place), fresh(), fresh()
    sync(database, [home])
    assert rows(database, "select count(*) > 5 from messages") == [(1,)]
    for name in (SENT, SHOWN):
        document(home, name).write_text("[]")
    document(home, "task_metadata.json").unlink()
    sync(database, [home])
    assert rows(database, "select count(*) from messages") == [(0,)]
    assert rows(database, "select gone_at from files where path like 'tasks#%'") == [(None,)]
    check(database, home)
    sync(other, [home])
    assert_same(dump(database), dump(other))


def test_what_was_said_to_an_emptied_task_is_read(place: Path, fresh: Fresh) -> None:
    home, database = home_of("cline/demonstration", place), fresh()
    for name in (SENT, SHOWN, "task_metadata.json"):
        document(home, name).write_text("[]")
    sync(database, [home])
    said = [{"role": "user", "content": [{"type": "text", "text": "<task>\nBegin anew\n</task>"}]}]
    document(home, SENT).write_text(json.dumps(said))
    sync(database, [home])
    assert ("prompt", "Begin anew") in rows(database, "select kind, text from messages")
    check(database, home)


@pytest.mark.parametrize("odd", ODD, ids=["deep", "long", "digits", "infinite", "null", "list"])
@pytest.mark.parametrize("name", [SENT, SHOWN, "history_item.json"])
def test_an_odd_value_in_any_field_ends_no_sync(
    odd: str, name: str, place: Path, fresh: Fresh
) -> None:
    home, database = home_of("roo/demonstration", place), fresh()
    path = document(home, name)
    value = json.loads(path.read_text())
    first, *rest = value if isinstance(value, list) else [value]
    for field in first:
        text = json.dumps({**first, field: "ODD", "lone": "\ud83d"}).replace('"ODD"', odd)
        whole = ",".join([text, *map(json.dumps, rest)])
        path.write_text(f"[{whole}]" if isinstance(value, list) else whole)
        sync(database, [home])
        check(database, home)
    said = "select count(*) from messages where kind in ('text', 'tool_use')"
    assert rows(database, said) != [(0,)]
