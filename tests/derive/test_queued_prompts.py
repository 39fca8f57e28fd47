"""What was typed while the agent was busy counts once, wherever it ended up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import permutations

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive.copies import refresh_queued


def queued(rows: Rows, file: int, text: str, **values: object) -> int:
    return rows.message(file, "queued_prompt", text, **{"role": "user", **values})


def said(rows: Rows, file: int, text: str, kind: str = "prompt", **values: object) -> int:
    values = {"role": "user", "uuid": f"u{len(rows.all('select 1 from messages'))}", **values}
    return rows.message(file, kind, text, **values)


def derive(rows: Rows, *files: int, first: int = 0, affected: Iterable[int] = ()) -> None:
    refresh_queued(rows.connection, rows.touch(files, first_message_id=first), set(affected))


def copies(rows: Rows, *entries: int) -> list[int | None]:
    return [rows.get("messages", entry, "copy_of") for entry in entries]


def test_an_entry_is_a_copy_of_the_first_row_after_it_with_its_text(rows: Rows, file: int) -> None:
    said(rows, file, "go on")
    entry = queued(rows, file, "go on")
    said(rows, file, "another")
    delivered = said(rows, file, "go on")
    said(rows, file, "go on")
    derive(rows, file)
    assert copies(rows, entry) == [delivered]


def test_each_row_delivers_one_entry(rows: Rows, file: int) -> None:
    entries = [queued(rows, file, "go on") for _ in range(3)]
    rows_ = [said(rows, file, "go on") for _ in range(2)]
    derive(rows, file)
    assert copies(rows, *entries) == [*rows_, None]


@pytest.mark.parametrize(
    ("typed", "kind", "text"),
    [
        (
            "/deploy now",
            "command",
            "<command-name>/deploy</command-name><command-args>now</command-args>",
        ),
        ("/clear", "command", "<command-name>/clear</command-name>"),
        ("ls", "bash_input", "<bash-input>ls</bash-input>"),
        ("!ls", "bash_input", "<bash-input>ls</bash-input>"),
        ("! ls", "bash_input", "<bash-input>ls</bash-input>"),
    ],
)
def test_a_command_is_delivered_inside_tags(
    rows: Rows, file: int, typed: str, kind: str, text: str
) -> None:
    entry = queued(rows, file, typed)
    delivered = said(rows, file, text, kind)
    derive(rows, file)
    assert copies(rows, entry) == [delivered]


def test_what_the_assistant_says_delivers_nothing(rows: Rows, file: int) -> None:
    entry = queued(rows, file, "go on")
    rows.message(file, "text", "go on", uuid="u1")
    derive(rows, file)
    assert copies(rows, entry) == [None]


def test_an_entry_whose_row_is_a_copy_is_one_of_the_original(rows: Rows, file: int) -> None:
    _, other = rows.session("two")
    original = said(rows, other, "go on")
    entry = queued(rows, file, "go on")
    said(rows, file, "go on", copy_of=original)
    derive(rows, file)
    assert copies(rows, entry) == [original]


def test_an_open_entry_is_delivered_by_a_row_of_a_later_batch(rows: Rows, file: int) -> None:
    first, second = queued(rows, file, "go on"), queued(rows, file, "stop")
    derive(rows, file)
    assert copies(rows, first, second) == [None, None]
    delivered = said(rows, file, "stop")
    derive(rows, file, first=delivered)
    assert copies(rows, first, second) == [None, delivered]


def test_what_was_delivered_stays_as_it_is_when_a_file_grows(rows: Rows, file: int) -> None:
    entry = queued(rows, file, "go on")
    delivered = said(rows, file, "go on")
    derive(rows, file)
    again = said(rows, file, "go on")
    derive(rows, file, first=again)
    assert copies(rows, entry) == [delivered]


def test_a_file_whose_originals_changed_is_matched_from_its_beginning(
    rows: Rows, file: int
) -> None:
    entry = queued(rows, file, "go on")
    delivered = said(rows, file, "go on")
    derive(rows, file, first=delivered + 1)
    assert copies(rows, entry) == [None]
    derive(rows, first=delivered + 1, affected=[file])
    assert copies(rows, entry) == [delivered]


def test_a_draft_is_a_copy_of_the_later_text_that_begins_with_it(rows: Rows, file: int) -> None:
    draft, other = queued(rows, file, "look at"), queued(rows, file, "something else")
    final = said(rows, file, "look at the beds")
    derive(rows, file)
    assert copies(rows, draft, other) == [None, None]  # nothing was given back to edit
    rows.add("line_types", file_id=file, type="queue-operation", subtype="popAll", count=1)
    derive(rows, file)
    assert copies(rows, draft, other) == [final, None]


def test_a_draft_of_a_draft_is_a_copy_of_the_final_text(rows: Rows, file: int) -> None:
    rows.add("line_types", file_id=file, type="queue-operation", subtype="popAll", count=1)
    before = said(rows, file, "look at the beds first")
    drafts = [queued(rows, file, text) for text in ("look", "look at")]
    final = said(rows, file, "look at the beds")
    derive(rows, file)
    assert copies(rows, *drafts) == [final, final]
    assert before not in copies(rows, *drafts)


def test_an_entry_in_several_transcripts_of_a_session_is_one(empty: Callable[[], Rows]) -> None:
    for order in permutations(["a.jsonl", "b.jsonl", "c.jsonl"]):
        rows = empty()
        session, _ = rows.session("one")
        entries = {}
        for path in order:
            file = rows.file(path, session_id=session)
            entries[path] = queued(rows, file, "go on")
            derive(rows, file, first=entries[path])
        found = dict(zip(entries, copies(rows, *entries.values()), strict=True))
        first = entries["a.jsonl"]
        assert found == {"a.jsonl": None, "b.jsonl": first, "c.jsonl": first}, order


def test_an_entry_that_one_of_several_transcripts_delivers_is_delivered(rows: Rows) -> None:
    session, a = rows.session("one")
    b = rows.file("z.jsonl", session_id=session)
    entries = [queued(rows, file, "go on") for file in (a, b)]
    delivered = said(rows, b, "go on")
    derive(rows, a, b)
    assert copies(rows, *entries) == [delivered, delivered]


def test_equal_entries_at_another_time_or_of_another_session_are_others(rows: Rows) -> None:
    session, a = rows.session("one")
    b = rows.file("z.jsonl", session_id=session)
    _, c = rows.session("two")
    entries = [
        queued(rows, a, "go on"),
        queued(rows, b, "go on", timestamp="2026-01-20T10:00:09.000Z"),
        queued(rows, c, "go on"),
    ]
    derive(rows, a, b, c)
    assert copies(rows, *entries) == [None, None, None]


def test_deriving_again_changes_nothing(rows: Rows) -> None:
    session, a = rows.session("one")
    b = rows.file("z.jsonl", session_id=session)
    for file in (a, b):
        queued(rows, file, "go on"), queued(rows, file, "stop")
        said(rows, file, "go on")
    derive(rows, a, b)
    found = rows.all("select id, copy_of from messages")
    derive(rows, a, b)
    assert rows.all("select id, copy_of from messages") == found
