"""A session is called by the best of what was stated anywhere, and says where that stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import permutations

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive.sessions import refresh_summaries, refresh_titles

BEST_FIRST = [
    ("custom-title", "told", "custom_title"),
    ("ai-title", "told", "ai_title"),
    ("agent-name", "told", "agent_name"),
    ("index", "stated", "index_title"),
    ("summary", "stated", "summary"),
    ("prompt", "told", "first_prompt"),
    ("history", "stated", "job_title"),
    ("slug", "told", "slug"),
]
"""Each source of a title, with the place where it waits for this step."""


def titled(rows: Rows, session: int, **said: str) -> tuple[str, str]:
    """Return the title of a session and its source, after these columns were gathered."""
    for table in ("told", "stated"):
        columns = {column for _, place, column in BEST_FIRST if place == table}
        if table == "stated":
            columns |= {"title", "first_prompt"}
        values = ", ".join(f"? as {column}" for column in sorted(columns))
        rows.connection.execute(f"drop table if exists temp.{table}")
        rows.connection.execute(
            f"create temp table {table} as select ? as session_id, {values}",
            (session, *(said.get(f"{table}.{column}") for column in sorted(columns))),
        )
    rows.touch(sessions=[session])
    refresh_titles(rows.connection)
    title, source = rows.get("sessions", session, "title", "title_source")
    return title, source


def test_the_best_of_what_is_stated_is_the_title(rows: Rows) -> None:
    session, _ = rows.session("one")
    said = {f"{table}.{column}": source for source, table, column in BEST_FIRST}
    for source, table, column in BEST_FIRST:
        assert titled(rows, session, **said) == (source, source)
        said[f"{table}.{column}"] = ""  # what is empty says nothing
        if source == "prompt":
            del said[f"{table}.{column}"]
    assert titled(rows, session, **said) == ("one", "id")


def test_a_list_fills_the_gaps_of_the_transcripts(rows: Rows) -> None:
    session, _ = rows.session("one")
    listed = {"stated.title": "from a list", "stated.first_prompt": "listed prompt"}
    assert titled(rows, session, **listed) == ("from a list", "ai-title")
    assert titled(rows, session, **listed, **{"told.ai_title": "own"}) == ("own", "ai-title")
    del listed["stated.title"]
    assert titled(rows, session, **listed) == ("listed prompt", "prompt")


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ({"stated.title": "a"}, "list"),
        ({"stated.title": "a", "told.custom_title": "b"}, "custom-title"),
        ({"told.first_prompt": "a"}, "prompt"),
    ],
)
def test_a_title_of_an_application_that_lists_its_sessions_is_from_the_list(
    rows: Rows, said: dict[str, str], source: str
) -> None:
    rows.set("sources", rows.source, lists_sessions=1)
    session, _ = rows.session("one")
    assert titled(rows, session, **said)[1] == source


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("  two\r\nlines\tof it ", "two lines of it"),
        ("x" * 300, "x" * 200),
        ("y" * 199 + " z", "y" * 199),
    ],
)
def test_a_title_is_one_line_of_at_most_200_letters(rows: Rows, said: str, title: str) -> None:
    session, _ = rows.session("one")
    assert titled(rows, session, **{"told.ai_title": said})[0] == title


def test_the_first_prompt_of_the_history_is_the_title_where_nothing_else_is(rows: Rows) -> None:
    session, _ = rows.session("one")
    history = rows.file("history.jsonl", kind="history")
    for offset, (text, second) in enumerate([("second", 2), ("first", 1), ("first again", 1)]):
        rows.add(
            "prompts", text=text, timestamp=f"2026-01-20T10:00:0{second}.000Z", file_id=history,
            byte_offset=offset, session_id=session,
        )  # fmt: skip
    assert titled(rows, session) == ("first", "history")


def test_of_several_summaries_the_last_of_the_last_transcript_counts(rows: Rows) -> None:
    session, a = rows.session("a")
    _, b = rows.session("b")
    side = rows.file("z.json", kind="session_index")
    for file, offset, title in ((b, 1, "old"), (b, 2, "new"), (a, 9, "a's"), (side, 9, "side")):
        rows.add("summaries", title=title, file_id=file, byte_offset=offset, session_id=session)
    assert titled(rows, session) == ("new", "summary")
    rows.connection.execute("delete from summaries where file_id in (?, ?)", (a, b))
    assert titled(rows, session) == ("side", "summary")


def test_only_touched_sessions_are_titled(rows: Rows) -> None:
    one, _ = rows.session("one", title="kept")
    two, _ = rows.session("two")
    titled(rows, two)
    assert rows.get("sessions", one, "title") == "kept"


# -- summaries -----------------------------------------------------------------------------------


def summaries(
    rows: Rows, files: Iterable[int] = (), sessions: Iterable[int] = ()
) -> list[int | None]:
    """Derive, and return the session of each summary."""
    rows.touch(files, sessions)
    refresh_summaries(rows.connection)
    return rows.all("select session_id from summaries order by id")


def test_a_summary_titles_the_session_that_owns_its_leaf_whatever_came_first(
    empty: Callable[[], Rows],
) -> None:
    for order in permutations(["session", "summary"]):
        rows = empty()
        for came in order:
            if came == "session":
                session, file = rows.session("one")
                rows.message(file, "prompt", "hello", uuid="leaf")
                found = summaries(rows, [file], [session])
            else:
                other = rows.file("other.jsonl")
                rows.add("summaries", title="A day", leaf_uuid="leaf", file_id=other)
                found = summaries(rows, [other])
        assert found == [session], order


def test_a_copy_of_the_leaf_does_not_own_it(rows: Rows) -> None:
    one, a = rows.session("one")
    _, b = rows.session("two")
    copy = rows.message(b, "prompt", "hello", uuid="leaf")
    original = rows.message(a, "prompt", "hello", uuid="leaf", block=1)
    rows.set("messages", copy, copy_of=original)
    rows.add("summaries", title="A day", leaf_uuid="leaf", file_id=b)
    assert summaries(rows, [b]) == [one]


def test_a_summary_that_titles_another_session_than_before_touches_both(rows: Rows) -> None:
    one, a = rows.session("one")
    two, _ = rows.session("two")
    rows.message(a, "prompt", "hello", uuid="leaf")
    rows.add("summaries", title="A day", leaf_uuid="leaf", file_id=a, session_id=two)
    assert summaries(rows, [a]) == [one]
    assert set(rows.all("select id from touched_sessions")) == {one, two}


def test_a_summary_that_the_batch_cannot_have_changed_is_left_alone(rows: Rows) -> None:
    one, a = rows.session("one")
    two, b = rows.session("two")
    rows.message(a, "prompt", "hello", uuid="leaf")
    rows.add("summaries", title="A day", leaf_uuid="leaf", file_id=a, session_id=two)
    assert summaries(rows, [b]) == [two]
    assert summaries(rows, [], [two]) == [one]


PROMPTS = {
    "fix the lint": "fix the lint",
    "# Fix\n\nthe `lint` **now**": "Fix  the lint now",
    "Implement the following plan:\n\n# Plan: Add signing\n\n## Context\nNow": "Add signing",
    "Implement the following plan:\n# Fix: wrong path\ntext": "Fix: wrong path",
    "implement the following plan: do it": "do it",
    "Implement the following plan:": "Implement the following plan:",
    "Implement the following plan:\n#\n": "Implement the following plan: #",
    "###": "###",
    "__init__ is empty": "__init__ is empty",
}


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_becomes_one_line_of_plain_text(rows: Rows, prompt: str) -> None:
    session, _ = rows.session("one")
    assert titled(rows, session, **{"told.first_prompt": prompt}) == (PROMPTS[prompt], "prompt")
