"""A message between agents counts once, in the inbox if it is there, however many files show it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest
from tests.support.rows import Rows, at

from assoc_ingest.derive.references import refresh_mail

TEXT = "Please look at the beds"


def team(rows: Rows, key: str = "gardeners", **values: object) -> int:
    return rows.add("teams", **{"name": key, "key": key, "source_id": rows.source, **values})


def inbox(rows: Rows, team_id: int, recipient: str = "ada", **values: object) -> int:
    """Insert a message in an inbox of a team."""
    file = rows.file(f"teams/{recipient}{len(rows.all('select 1 from files'))}.json", kind="inbox")
    row = {
        "text": TEXT, "text_hash": TEXT, "sender": "bob", "recipient": recipient,
        "channel": "inbox", "team_id": team_id, "timestamp": at(0), "file_id": file,
    }  # fmt: skip
    return rows.add("inbox_items", **{**row, **values})


def shown(rows: Rows, file: int, **values: object) -> int:
    """Insert a message as a transcript shows it."""
    message = rows.message(file, "meta", TEXT)
    row = {
        "text": TEXT, "text_hash": TEXT, "channel": "transcript", "team_name": "gardeners",
        "timestamp": at(0), "file_id": file,
        "byte_offset": rows.get("messages", message, "byte_offset"),
    }  # fmt: skip
    return rows.add("inbox_items", **{**row, **values})


def derive(rows: Rows) -> None:
    rows.touch_all()
    refresh_mail(rows.connection)


def original(rows: Rows, item: int) -> int | None:
    found: int | None = rows.get("inbox_items", item, "copy_of")
    return found


def transcript(rows: Rows, key: str = "one") -> int:
    return rows.session(key)[1]


def test_what_a_transcript_shows_is_a_copy_of_the_row_in_the_inbox(rows: Rows) -> None:
    gardeners = team(rows, "the-gardeners")
    message = inbox(rows, gardeners)
    item = shown(rows, transcript(rows), team_name="The_Gardeners")
    derive(rows)
    assert rows.get("inbox_items", item, "team_id", "copy_of") == (gardeners, message)
    assert original(rows, message) is None


@pytest.mark.parametrize(
    "other",
    [
        {"text": "Another", "text_hash": "Another"},
        {"sender": "eve"},
        {"recipient": "eve"},
        {"text": None},
        {"team_name": "cooks"},
    ],
)
def test_another_text_sender_recipient_or_team_is_another_message(
    rows: Rows, other: dict[str, object]
) -> None:
    inbox(rows, team(rows))
    item = shown(rows, transcript(rows), **{"sender": "bob", "recipient": "ada", **other})
    derive(rows)
    assert original(rows, item) is None


def test_a_broadcast_is_a_copy_of_the_recipients_own_row(rows: Rows) -> None:
    gardeners = team(rows)
    for name in ("ada", "carl", "dora"):
        inbox(rows, gardeners, name)
    item = shown(rows, transcript(rows), recipient="carl")
    derive(rows)
    assert rows.get("inbox_items", original(rows, item) or 0, "recipient") == "carl"


def test_of_equal_messages_the_nearest_in_time_is_meant(rows: Rows) -> None:
    gardeners = team(rows)
    times = [inbox(rows, gardeners, timestamp=at(second)) for second in (0, 20, 50)]
    untimed = inbox(rows, gardeners, timestamp=None)
    items = [shown(rows, transcript(rows), timestamp=at(29))]
    derive(rows)
    assert original(rows, items[0]) == times[1] != untimed


def test_a_transcript_that_names_no_team_is_about_the_one_that_its_session_leads(
    rows: Rows,
) -> None:
    leader, file = rows.session("leader")
    gardeners = team(rows, lead_session_id=leader)
    message = inbox(rows, gardeners)
    item = shown(rows, file, team_name=None, session_id=leader)
    derive(rows)
    assert rows.get("inbox_items", item, "team_id", "copy_of") == (gardeners, message)


def test_a_message_that_no_inbox_has_counts_where_it_was_shown_first(
    empty: Callable[[], Rows],
) -> None:
    for order in permutations([("b", 1), ("a", 2), ("c", 1)]):
        rows = empty()
        items = {}
        for key, second in order:
            items[key] = shown(rows, transcript(rows, key), message_key="k1", timestamp=at(second))
            derive(rows)
        found = {key: original(rows, item) for key, item in items.items()}
        assert found == {"a": items["b"], "b": None, "c": items["b"]}, order


def test_a_message_that_appears_in_an_inbox_later_is_the_original_of_all(rows: Rows) -> None:
    items = [
        shown(rows, transcript(rows, key), message_key="k1", timestamp=at(second))
        for second, key in enumerate("ab")
    ]
    derive(rows)
    assert [original(rows, item) for item in items] == [None, items[0]]
    message = inbox(rows, team(rows))
    derive(rows)
    assert [original(rows, item) for item in items] == [message, message]


def test_one_row_that_is_found_in_an_inbox_is_enough_for_all_with_its_key(rows: Rows) -> None:
    message = inbox(rows, team(rows))
    cut = {"text_hash": "cut off", "message_key": "k1"}
    items = [
        shown(rows, transcript(rows, "a"), timestamp=at(1), **cut),
        shown(rows, transcript(rows, "b"), timestamp=at(2), message_key="k1"),
        shown(rows, transcript(rows, "c"), timestamp=at(3), **cut),
    ]
    derive(rows)
    assert [original(rows, item) for item in items] == [message] * 3


def test_what_has_no_key_is_a_copy_where_its_line_is_one(rows: Rows) -> None:
    first, fork = transcript(rows, "a"), transcript(rows, "b")
    told, again = shown(rows, first), shown(rows, fork)
    (line, copy) = rows.all("select id from messages order by id")
    derive(rows)
    assert original(rows, again) is None
    rows.set("messages", copy, copy_of=line)
    derive(rows)
    assert [original(rows, item) for item in (told, again)] == [None, told]


def test_equal_messages_of_one_line_are_copies_of_each_other_in_order(rows: Rows) -> None:
    first, fork = transcript(rows, "a"), transcript(rows, "b")
    pairs = []
    for file in (first, fork):
        zeroth = shown(rows, file)
        offset = rows.get("inbox_items", zeroth, "byte_offset")
        row = {"byte_offset": offset, "ordinal": 1}
        pairs.append((zeroth, shown(rows, file, **row)))
    line, _, copy, _ = rows.all("select id from messages order by id")
    rows.set("messages", copy, copy_of=line)
    derive(rows)
    assert tuple(original(rows, item) for item in pairs[1]) == pairs[0]


def test_a_team_of_another_home_is_another_team(rows: Rows) -> None:
    home = rows.add("sources", kind="claude", root="/elsewhere")
    inbox(rows, team(rows, source_id=home))
    item = shown(rows, transcript(rows))
    derive(rows)
    assert rows.get("inbox_items", item, "team_id", "copy_of") == (None, None)


def test_nothing_is_looked_at_if_the_batch_had_no_mail(rows: Rows) -> None:
    inbox(rows, team(rows))
    item = shown(rows, transcript(rows))
    rows.touch([transcript(rows, "other")])
    refresh_mail(rows.connection)
    assert original(rows, item) is None


def test_deriving_again_changes_nothing(rows: Rows) -> None:
    inbox(rows, team(rows))
    shown(rows, transcript(rows, "a"))
    shown(rows, transcript(rows, "b"), message_key="k1", sender="eve")
    derive(rows)
    found = rows.all("select * from inbox_items")
    derive(rows)
    assert rows.all("select * from inbox_items") == found
