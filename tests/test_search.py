"""A search finds what was said first, never fails on what people type, and says where it was."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.child import is_done_with
from tests.support.hostile import TEXTS
from tests.support.reading import index, reader
from tests.support.rows import Rows
from tests.support.searching import search

from assoc_ingest.ask import excerpt
from assoc_ingest.ask.filters import Filters
from assoc_ingest.ask.hits import Hit
from assoc_ingest.ask.matches import Places, around, parts, plain
from assoc_ingest.ask.query import parse
from assoc_ingest.ask.search import RELAXED, SearchResult, with_lines
from assoc_ingest.ask.times import period, shown, since, until
from assoc_ingest.errors import NotFoundError, UsageError
from assoc_ingest.fields import INVISIBLE
from assoc_ingest.store.database import open_reader
from assoc_ingest.store.fts import fits, indexes, rebuild_index
from assoc_ingest.sync.run import sync

Find = Callable[..., list[Hit]]
TUESDAY = datetime(2026, 1, 20, 10, tzinfo=UTC)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("search") / "assoc.db"
    with index(path) as rows:
        _fill(rows)
    connection = reader(path)
    yield connection
    connection.close()


def _fill(rows: Rows) -> None:
    shop, blog = rows.project("shop"), rows.project("blog", "/srv/Blog/web")
    first, file = rows.session("0b7c2f4e-1111", shop, title="Deadlock in the pool")
    rows.message(
        file, "prompt", "that deadlock in the pool is back", timestamp="2026-01-01T00:00:00.000Z"
    )
    rows.message(file, "text", "The pool's lock is held twice; see error-401 and snake_case_name.")
    rows.message(file, "thinking", "naïve café")
    rows.message(file, "tool_result", "deadlock deadlock deadlock deadlock found in table")
    rows.call(
        file, "Bash", {"command": "cd /srv\npm test\nable\n\tindented"}, "installed C:\\\\ready"
    )
    rows.message(file, "tool_result", "C:\\\\ready and npm, unable")
    agent = rows.add(
        "subagents", agent_type="Explore", agent_key="a1", session_id=first, source_id=rows.source
    )
    side = rows.file("projects/x/agent-a1.jsonl", kind="agent", session_id=first, subagent_id=agent)
    rows.message(side, "text", "zebra in a subagent", subagent_id=agent)

    _, fork = rows.session("0b7c9999-2222", blog, title="Fork", title_source="prompt")
    original = rows.message(file, "text", "copied walrus")
    rows.message(fork, "text", "copied walrus", copy_of=original)
    rows.message(fork, "text", "接続プールのデッドロックを直す pool")
    rows.message(fork, "tool_result", "結果: デッドロックなし")
    rows.message(fork, "text", "한국어 텍스트")
    rows.message(fork, "text", "stored \x02marks\x03 here, walnut \x03\x02")

    plan = rows.file("plans/p.md", kind="plan")
    rows.add("plans", title="Plan", text="remove the deadlock giraffe", name="p", file_id=plan)
    tasks = rows.file("tasks/x/1.json", kind="task")
    rows.add(
        "tasks", subject="Fix giraffe", status="pending", task_key="1", list_key="x",
        session_id=first, source_id=rows.source, file_id=tasks,
    )  # fmt: skip
    rows.add("todos", content="feed giraffe", position=0, file_id=tasks)
    notes = rows.file("notes/n.json", kind="note")
    rows.add("documents", kind="note", title="キリン", text="giraffe note", path="n", file_id=notes)
    history = rows.file("history.jsonl", kind="history")
    for offset, session in ((0, None), (1, first)):
        rows.add(
            "prompts", text="giraffe prompt", timestamp="2026-01-01T00:00:00.000Z",
            session_id=session, file_id=history, byte_offset=offset, byte_length=1,
        )  # fmt: skip
    rows.connection.execute("update sessions set message_count = 5 where id = ?", (first,))
    for offset, channel in ((0, "inbox"), (1, "transcript")):
        rows.add(
            "inbox_items", text="giraffe mail", sender="bob", kind="message", channel=channel,
            file_id=notes, byte_offset=offset, byte_length=1,
        )  # fmt: skip
    output = rows.file("tool-results/t.txt", kind="tool_result")
    rows.add("tool_result_files", name="t.txt", size=9, text="giraffe output", file_id=output)


def has_pairs(snippet: str) -> bool:
    marks = re.sub("[^\x02\x03]", "", snippet)
    return marks == "\x02\x03" * (len(marks) // 2)


def marked(hit: Hit) -> list[str]:
    """Return the matches that a hit shows."""
    return [piece for piece, is_match in parts(hit.snippet) if is_match]


def asked(connection: sqlite3.Connection, query: str, **options: Any) -> SearchResult:
    """Search with filters and options by their names."""
    names = ("kind", "project", "session", "source", "since", "until", "branch", "tool")
    filters = {name: options.pop(name) for name in names if name in options}
    if isinstance(filters.get("kind"), str):
        filters["kind"] = (filters["kind"],)
    return search(connection, query, Filters(**filters), **options)


def exact(connection: sqlite3.Connection, query: str, **options: Any) -> list[Hit]:
    """Return the hits that hold all words."""
    answer = asked(connection, query, **{"limit": 30, **options})
    return [hit for hit in answer.hits if hit.why != RELAXED]


@pytest.fixture
def find(connection: sqlite3.Connection) -> Find:
    def found(query: str, **options: object) -> list[Hit]:
        answer = asked(connection, query, **{"limit": 20, **options})
        return [hit for hit in answer.hits if hit.why != RELAXED]

    return found


def _texts(hits: list[Hit]) -> list[str]:
    return [plain(hit.snippet)[0] for hit in hits]


# -- what is found, and in which order ------------------------------------------------------------


def test_a_long_text_shows_its_match(tmp_path: Path) -> None:
    with index(tmp_path / "assoc.db") as rows:
        _, file = rows.session("0b7c2f4e-1111", rows.project("shop"))
        rows.message(file, "text", "beginning " + "filler words " * 8_000 + "the walrus is here")
        rows.message(file, "text", "begin " + "a " * 130_000)
    with closing(reader(tmp_path / "assoc.db")) as connection:
        (hit,) = exact(connection, "walrus")
        assert "\x02walrus\x03" in hit.snippet
        (hit,) = exact(connection, "a")  # one match in two letters, of which each costs all others
        assert "\x02a\x03" in hit.snippet


STORES = {
    "inbox_items": ("text", "summary"),
    "tasks": ("subject", "description"),
    "todos": ("content",),
    "plans": ("text",),
    "documents": ("title", "text"),
    "prompts": ("text", "pasted"),
    "tool_result_files": ("text",),
}


def fill_stores(rows: Rows, text: str, column: int = -1) -> None:
    """Insert a row of each of the smaller stores that holds `text`."""
    file = rows.file(f"stores{column}.json", kind="note")
    place = {"file_id": file, "byte_offset": 0, "byte_length": 1}
    task = {"status": "pending", "task_key": str(column), "list_key": "x", "source_id": rows.source}
    others: dict[str, dict[str, object]] = {
        "inbox_items": {"sender": "bob", "kind": "message", "channel": "inbox", **place},
        "tasks": {**task, "file_id": file},
        "todos": {"position": 0, "file_id": file},
        "plans": {"name": "p", "file_id": file},
        "documents": {"text": "none", "kind": "note", "path": "n", "file_id": file},
        "prompts": {"text": "none", **place},
        "tool_result_files": {"name": "t.txt", "size": 9, "file_id": file},
    }
    for table, columns in STORES.items():
        rows.add(table, **{**others[table], columns[column]: text})


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and its limits")
@pytest.mark.parametrize("name", ["words", "words of invisible letters", "numbered words"])
def test_a_long_text_of_very_many_matches_costs_what_it_is_long(tmp_path: Path, name: str) -> None:
    """What a snippet costs must not grow with the square of its matches, in any store."""
    text = TEXTS[name](1_000_000)
    query = " ".join(dict.fromkeys(text.split()[:20])).replace("\xad", "")
    with index(tmp_path / "assoc.db") as rows:
        fill_stores(rows, text)
        _, file = rows.session("0b7c2f4e-1111", rows.project("shop"))
        rows.message(file, "text", text)
        rows.message(file, "tool_result", text)

    def look() -> None:
        with closing(reader(tmp_path / "assoc.db")) as connection:
            for raw in (False, True) if name == "words" else (False,):
                hits = exact(connection, query, raw=raw)
                assert len(hits) == len(STORES) + 2
                assert all(marked(hit) and len(hit.snippet) < 1_000 for hit in hits)

    assert is_done_with(60, look)


def test_a_match_of_any_length_is_shown_in_short(tmp_path: Path) -> None:
    with index(tmp_path / "assoc.db") as rows:
        fill_stores(rows, "a" * 30_000)
        _, file = rows.session("0b7c2f4e-1111", rows.project("shop"))
        rows.message(file, "text", "b a" + "a" * 30_000)
    with closing(reader(tmp_path / "assoc.db")) as connection:
        hits = exact(connection, "aaa*")
        assert len(hits) == len(STORES) + 1
        assert all(marked(hit) and len(hit.snippet) < 600 for hit in hits)


def test_the_piece_that_is_shown_has_most_of_the_words() -> None:
    text = "pool " + "filler " * 100 + "the deadlock of the pool"
    where = Places(parse("pool deadlock").words)
    assert [piece for piece, found in parts(around(text, where.some(text))) if found] == [
        "deadlock", "pool",
    ]  # fmt: skip


# -- tags, which nobody sees -----------------------------------------------------------------------

CLEAR = "<command-name>/clear</command-name>\n<command-args>walnut</command-args>"


def test_the_name_of_a_tag_is_no_word_of_a_message(tmp_path: Path) -> None:
    """A page shows what stands between tags, and the values of their attributes."""
    with index(tmp_path / "assoc.db") as rows:
        session, file = rows.session("0b7c2f4e-1111", rows.project("shop"))
        rows.message(file, "command", CLEAR)
        rows.message(
            file, "agent_message", '<teammate-message id="willow">frost</teammate-message>'
        )
        rows.message(file, "text", "<command-name> is what the agent wraps it in")
    with closing(reader(tmp_path / "assoc.db")) as connection:
        for query in ("command-name", "command", "teammate OR command"):
            for options in ({}, {"closest": False}):
                hits = search(connection, query, **options).hits
                assert [hit.kind for hit in hits] == ["text"], query
            places = excerpt.find(connection, session, query).matches
            assert len(places) == 1, query
        for query, kind in (("clear walnut", "command"), ("willow frost", "agent_message")):
            assert [hit.kind for hit in exact(connection, query)] == [kind]
        assert not exact(connection, "command walnut")
        (hit,) = search(connection, "command walnut", Filters(kind=("command",))).hits
        assert hit.why == "relaxed"
        assert "walnut" in marked(hit)


def test_a_word_is_found_behind_very_many_tags_of_that_name(tmp_path: Path) -> None:
    with index(tmp_path / "assoc.db") as rows:
        _, file = rows.session("0b7c2f4e-1111", rows.project("shop"))
        for _ in range(450):
            rows.message(file, "command", CLEAR)
        rows.message(file, "text", "this command, " + "and so on, " * 200)
    with closing(reader(tmp_path / "assoc.db")) as connection:
        for query in ("command", "command nowhere"):
            assert [hit.kind for hit in search(connection, query).hits] == ["text"]
        assert len(exact(connection, "walnut", limit=1000)) == 450


# -- letters that nobody sees ---------------------------------------------------------------------

TORN = [f"pass{letter}word" for letter in INVISIBLE] + ["p\u200ba\u00adss\ufeff\u2060word"]


@pytest.mark.parametrize("word", TORN, ids=ascii)
def test_a_word_with_an_invisible_letter_is_found(tmp_path: Path, word: str) -> None:
    text = f"the {word}, she said"
    with index(tmp_path / "assoc.db") as rows:
        for column in (0, -1):
            fill_stores(rows, text, column)
        _, file = rows.session("0b7c2f4e-1111", rows.project("shop"))
        rows.message(file, "text", text)
        rows.message(file, "tool_result", text)
    with closing(reader(tmp_path / "assoc.db")) as connection:
        count = 2 * len(STORES) + 2
        for query in ("password", "PASSW*", '"the password"', word, f'"{word} she"'):
            hits = exact(connection, query)
            assert len(hits) == count, query
            for hit in hits:
                assert any(word in one for one in marked(hit)), "the whole word is marked"
                assert text in plain(hit.snippet)[0], "the text is as it was"
            assert len(exact(connection, query, tools=True)) == 3
        assert len(exact(connection, "password", raw=True)) == count
        assert len(exact(connection, f"the AND {word}", raw=True)) == count
        if word[4:-4] in "\u00ad\u200b\u200c\u200d\u2060\ufeff":  # to the index, no letters
            assert len(exact(connection, "word")) == count, "what was found before still is"


def test_a_query_with_an_invisible_letter_finds_plain_text(find: Find) -> None:
    for query in ("dead\u00adlock", "\ufeffdeadlock\u200b", '"in the po\u200dol"', "gir\u2060aff*"):
        assert find(query), ascii(query)
        assert find(query.strip('"'), raw=True), ascii(query)


def test_invisible_letters_inside_chinese_and_json_are_no_obstacle(tmp_path: Path) -> None:
    with index(tmp_path / "assoc.db") as rows:
        _, file = rows.session("0b7c2f4e-1111", rows.project("shop"))
        rows.message(file, "text", "接\u200b続プ\u200bール")
        rows.call(file, "Bash", {"command": "cd\nin\u00addented"})
    with closing(reader(tmp_path / "assoc.db")) as connection:
        for query, found in {"接続": "接\u200b続", "接続プール": "接\u200b続プ\u200bール"}.items():
            (hit,) = exact(connection, query)
            assert marked(hit) == [found]
        (hit,) = exact(connection, "indented")
        assert marked(hit) == ["in\u00addented"]


def test_joined_letters_of_persian_and_emoji_stay_as_they_are(tmp_path: Path) -> None:
    text = "من می\u200cخواهم 👩\u200d💻"
    with index(tmp_path / "assoc.db") as rows:
        _, file = rows.session("0b7c2f4e-1111", rows.project("shop"))
        rows.message(file, "text", text)
    with closing(reader(tmp_path / "assoc.db")) as connection:
        for query in ("می\u200cخواهم", "میخواهم", "خواهم", "من"):
            (hit,) = exact(connection, query)
            assert plain(hit.snippet)[0] == text


def test_the_indexes_follow_texts_with_invisible_letters(tmp_path: Path) -> None:
    """Whoever edits a row with a shell of SQLite keeps the indexes right, and so does a rebuild."""
    with index(tmp_path / "assoc.db") as rows:
        fill_stores(rows, "pass\u00adword")
        _, file = rows.session("0b7c2f4e-1111", rows.project("shop"))
        for _ in range(2):
            rows.message(file, "text", "接pass\u00adword")
    with closing(sqlite3.connect(tmp_path / "assoc.db")) as shell:
        for name in indexes(shell):
            assert fits(shell, name)
        for table, columns in {**STORES, "messages": ("text",)}.items():
            shell.execute(f"update {table} set {columns[-1]} = 'wal\u200brus' || id")
        for name in indexes(shell):
            assert fits(shell, name)
            rebuild_index(shell, name)
            assert fits(shell, name)
        shell.execute("update messages set has_invisible = 0 where id = 1")
        for table in (*STORES, "messages"):
            shell.execute(f"delete from {table} where id = (select max(id) from {table})")
        for name in indexes(shell):
            assert fits(shell, name)


def test_the_schema_and_the_program_know_the_same_invisible_letters(tmp_path: Path) -> None:
    with index(tmp_path / "assoc.db") as rows:
        fill_stores(rows, f"a{INVISIBLE}b")
        _, file = rows.session("0b7c2f4e-1111", rows.project("shop"))
        rows.message(file, "text", f"a{INVISIBLE}b")
        texts = [
            text
            for table in STORES
            for (text,) in rows.connection.execute(f"select joined from {table}")
        ]
        texts += [t for (t,) in rows.connection.execute("select joined_text from messages")]
        assert len(texts) == len(STORES) + 1
        assert {text.replace("none", "").strip() for text in texts} == {"ab"}


def test_the_schema_and_the_program_agree_on_each_letter(tmp_path: Path) -> None:
    """Also on those beside them, which begin with the same bytes: dashes, quotes, accents."""
    beside = {chr(ord(letter) + step) for letter in INVISIBLE for step in range(-9, 10)}
    with index(tmp_path / "assoc.db") as rows:
        fill_stores(rows, "a")
        for table, columns in STORES.items():
            joined = f"update {table} set {columns[-1]} = ? returning joined is not null"
            for letter in beside | set(INVISIBLE):
                found = rows.connection.execute(joined, (f"é{letter}b",)).fetchall()
                assert found == [(letter in INVISIBLE,)], (table, hex(ord(letter)))


@pytest.mark.parametrize("letter", ["a", "%", "_", "é", "漢", "😀", "\\", '"'])
@pytest.mark.parametrize(
    "length",
    [4_999, *(pytest.param(n, marks=pytest.mark.slow) for n in (12_500, 50_001, 200_000))],
)
def test_a_word_of_any_length_is_searched_for(
    connection: sqlite3.Connection, letter: str, length: int
) -> None:
    for query in (letter * length, f'"{letter * length}"', f"walrus {letter * length}"):
        for tools in (False, True):
            assert all("walrus" in hit.snippet for hit in exact(connection, query, tools=tools))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1_000, 30_000])
def test_a_query_may_have_any_number_of_words(connection: sqlite3.Connection, count: int) -> None:
    for word in ("walrus", "漢字", "漢字字"):
        assert exact(connection, " ".join(f"{word}{n}" for n in range(count))) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and its limits")
def test_what_a_query_costs_does_not_grow_with_its_words(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(20_000)]
    with index(tmp_path / "assoc.db") as rows:
        _, file = rows.session("0b7c2f4e-1111", rows.project("shop"))
        for _ in range(20):
            rows.message(file, "text", " ".join(words))

    def look() -> None:
        with closing(reader(tmp_path / "assoc.db")) as connection:
            queries = (" ".join(words), f'"{" ".join(words)}"', "w*-" * 20_000, "漢" * 20_000)
            for query in queries:
                hits = exact(connection, query)
                assert len(hits) == (20 if "w0" in query else 0)

    assert is_done_with(20, look)


def test_what_is_left_out_of_a_long_query_is_said(connection: sqlite3.Connection) -> None:
    assert parse(" ".join(f"w{number}" for number in range(100))).note is None
    assert parse("deadlock " * 2000).note is None, "what is said twice is one word"
    long = parse("deadlock back " + " ".join(f"w{number}" for number in range(20_000)))
    assert long.note == "The query has 20,002 words; only the first 100 were used."
    assert len(long.words) == 100
    assert len(parse("-".join(["a"] * 300)).words[0].text) == 199, "a phrase is cut, too"
    with pytest.raises(
        UsageError, match=r"the expression has 20,000 words; at most 100 are allowed\."
    ):
        exact(connection, " OR ".join(["a"] * 20_000), raw=True)


def test_a_branch_is_that_of_each_message(tmp_path: Path) -> None:
    with index(tmp_path / "assoc.db") as rows:
        _, file = rows.session("0b7c2f4e-1111", rows.project("shop"), git_branch="feature")
        for branch in ("main", "feature"):
            message = rows.message(file, "prompt", f"walrus on {branch}")
            offset = rows.connection.execute(
                "select byte_offset from messages where id = ?", (message,)
            ).fetchone()[0]
            rows.add("contexts", name="git_branch", value=branch, file_id=file, byte_offset=offset)
        rows.message(file, "text", "the walrus once more")
    with closing(reader(tmp_path / "assoc.db")) as connection:
        for branch, texts in {
            "main": {"walrus on main"},
            "feature": {"walrus on feature", "the walrus once more"},
            "other": set(),
        }.items():
            hits = exact(connection, "walrus", branch=branch)
            assert {plain(hit.snippet)[0] for hit in hits} == texts
            assert {hit.branch for hit in hits} == {branch for _ in texts}


def test_what_was_said_stands_first_of_each_conversation_then_the_rest(find: Find) -> None:
    hits = find("deadlock")
    assert [(hit.what, hit.scope) for hit in hits] == [
        ("message", "said"),
        ("plan", "said"),
        ("session", "title"),
        ("message", "tools"),
    ]


def test_a_hit_says_where_it_was_found(find: Find) -> None:
    (hit,) = find("zebra")
    assert (hit.title, hit.session_key, hit.project) == (
        "Deadlock in the pool",
        "0b7c2f4e-1111",
        "shop",
    )
    assert (hit.subagent, hit.source, hit.kind) == ("Explore", "claude", "text")
    assert hit.file == "/home/ada/.claude/projects/x/agent-a1.jsonl"
    assert plain(hit.snippet) == ("zebra in a subagent", [[0, 5]])


def test_a_hit_in_a_call_names_the_tool(find: Find) -> None:
    (hit,) = find("installed")
    assert (hit.kind, hit.tool) == ("tool_result", "Bash")


def test_all_words_must_be_there(find: Find) -> None:
    assert find("deadlock back")
    assert not find("deadlock zebra")


def test_a_phrase_keeps_its_order(find: Find) -> None:
    assert find('"in the pool is"')
    assert not find('"pool the in"')


def test_a_star_stands_for_the_rest_of_a_word(find: Find) -> None:
    assert not find("zebr")
    assert find("zebr*")
    assert find('"in a sub"*')


@pytest.mark.parametrize("query", ["error-401", "snake_case_name", "naive CAFÉ", "pool's"])
def test_punctuation_case_and_accents_are_no_obstacle(find: Find, query: str) -> None:
    assert find(query)


def test_a_copy_in_a_fork_is_no_second_hit(find: Find) -> None:
    (hit,) = find("walrus")
    assert hit.session_key == "0b7c2f4e-1111"


def test_tools_leaves_out_what_was_said(find: Find) -> None:
    assert {hit.scope for hit in find("deadlock", tools=True)} == {"tools"}


def test_the_limit_is_kept_and_prose_comes_first(find: Find) -> None:
    assert [hit.scope for hit in find("deadlock", limit=2)] == ["said", "said"]


def test_every_store_is_searched_and_nothing_twice(find: Find) -> None:
    hits = find("giraffe")
    assert sorted(hit.what for hit in hits) == [
        "document", "inbox", "plan", "prompt", "task", "todo", "tool_result_file",
    ]  # fmt: skip
    assert hits[-1].what == "tool_result_file"


def test_a_title_made_of_a_prompt_is_no_hit_of_its_own(find: Find) -> None:
    assert not find("fork")


# -- words at the start of a line inside JSON -----------------------------------------------------


def test_a_word_that_begins_a_line_of_a_command_is_found(find: Find) -> None:
    (hit,) = find("pm")
    assert (hit.kind, hit.scope) == ("tool_use", "tools")
    text, spans = plain(hit.snippet)
    assert [text[start:end] for start, end in spans] == ["pm"]


def test_several_words_may_begin_lines(find: Find) -> None:
    assert find("pm able indented test")
    assert find('"pm test"')
    assert find("inden*")


def test_a_longer_word_is_not_taken_for_a_line_start(find: Find) -> None:
    """`npm`, `table` and `C:\\ready` hold no `pm`, `able` or `eady` at the start of a line."""
    assert [hit.kind for hit in find("able")] == ["tool_use"]
    assert not find("eady")


# -- Chinese, Japanese, Korean --------------------------------------------------------------------


@pytest.mark.parametrize("query", ["デッドロック", "ロック", "接続", "直す", "한국", "텍스트"])
def test_a_part_of_a_run_of_letters_is_found(find: Find, query: str) -> None:
    hits = find(query)
    assert hits
    text, spans = plain(hits[0].snippet)
    assert query in [text[start:end] for start, end in spans]


def test_every_part_of_a_mixed_query_must_be_there(find: Find) -> None:
    assert find("pool デッドロック 接続")
    assert not find("zebra デッドロック")
    assert not find("pool デッドロック 韓国")
    assert not find("接続 語本")


def test_a_percent_sign_beside_letters_is_no_wildcard(find: Find) -> None:
    assert find("接続")
    assert not find("接%")
    assert not find("接_")


def test_either_word_is_enough_at_the_start_of_a_line_inside_json(find: Find) -> None:
    assert [hit.kind for hit in find("able OR nowhere")] == ["tool_use"]


def test_letters_are_found_in_tools_and_stores_too(find: Find) -> None:
    assert [hit.scope for hit in find("デッドロック")] == ["said", "tools"]
    assert [hit.what for hit in find("キリン")] == ["document"]
    assert [hit.scope for hit in find("結果", tools=True)] == ["tools"]


# -- filters --------------------------------------------------------------------------------------


def test_filters_leave_out_the_rest(find: Find) -> None:
    assert [hit.kind for hit in find("deadlock", kind="prompt")] == ["prompt"]
    assert [hit.what for hit in find("deadlock", kind="plan")] == ["plan"]
    assert not find("zebra", project="blog")
    assert find("zebra", project="SHOP")
    assert find("接続", project="srv/blog")
    assert find("接続", project="/srv/Blog/web")
    assert find("zebra", session="0b7c2f")
    assert find("zebra", source="claude")
    assert not find("zebra", source="cortex")
    assert find("zebra", since="2026-01-10")
    assert not find("back", since="2026-01-10")


def test_a_filter_that_names_nothing_says_so(find: Find) -> None:
    with pytest.raises(NotFoundError, match="list projects"):
        find("zebra", project="nowhere")
    with pytest.raises(NotFoundError, match="list sessions"):
        find("zebra", session="ffff")
    with pytest.raises(UsageError, match="0b7c2f4e-1111"):
        find("zebra", session="0b7c")
    with pytest.raises(UsageError, match="tool_result"):
        find("zebra", kind="nonsense")
    with pytest.raises(UsageError, match="cortex"):
        find("zebra", source="nonsense")


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("12h", "2026-01-19T22:00:00.000Z"),
        ("24h", "2026-01-19T10:00:00.000Z"),
        ("30 minutes ago", "2026-01-20T09:30:00.000Z"),
        ("7d", "2026-01-14T00:00:00.000Z"),
        ("1d", "2026-01-20T00:00:00.000Z"),
        ("2W", "2026-01-07T00:00:00.000Z"),
        ("Last 7 Days", "2026-01-14T00:00:00.000Z"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z"),
    ],
)
def test_a_time_may_be_ago_or_a_moment(text: str, stored: str) -> None:
    assert period(text, TUESDAY) == (stored, stored)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("today", "2026-01-20", "2026-01-20"),
        ("yesterday", "2026-01-19", "2026-01-19"),
        ("tuesday", "2026-01-20", "2026-01-20"),
        ("Wednesday", "2026-01-14", "2026-01-14"),
        ("this week", "2026-01-19", "2026-01-25"),
        ("last week", "2026-01-12", "2026-01-18"),
        ("last-month", "2025-12-01", "2025-12-31"),
        ("this_month", "2026-01-01", "2026-01-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("1 day ago", "2026-01-19", "2026-01-19"),
        ("3 weeks ago", "2025-12-30", "2025-12-30"),
        ("11 months ago", "2025-02-20", "2025-02-20"),
        ("2026-01-31", "2026-01-31", "2026-01-31"),
        ("2024-02", "2024-02-01", "2024-02-29"),
        ("2026", "2026-01-01", "2026-12-31"),
    ],
)
def test_a_word_for_a_time_begins_with_its_first_day_and_ends_with_its_last(
    text: str, first: str, last: str
) -> None:
    start, end = period(text, TUESDAY)
    assert (start, until(last)) == (since(first), end)


def test_a_month_ago_is_the_last_day_of_a_shorter_month() -> None:
    march = datetime(2026, 3, 31, 12, tzinfo=UTC)
    assert period("1 month ago", march) == (since("2026-02-28"), since("2026-03-01"))


def test_days_are_those_of_the_local_calendar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert period("yesterday", datetime(2026, 1, 20, 20, tzinfo=UTC)) == (
            "2026-01-19T18:30:00.000Z", "2026-01-20T18:30:00.000Z",
        )  # fmt: skip
        assert shown("until", "2026-01") == "2026-01 (2026-01-31)"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text",
    ["", "soon", "7", "d", "9999999999d", "999999 years ago", "2026-13-01", "2026-02-30",
     "1800-01-01", "2026-W05", "last", "last weak", "\u0663d"],
)  # fmt: skip
def test_a_time_that_is_none_is_explained(text: str) -> None:
    with pytest.raises(UsageError, match=r"^Invalid time .*7d.*yesterday.*2026-01-31\.$"):
        since(text)


# -- hostile queries ------------------------------------------------------------------------------

words = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)
syntax = st.lists(
    st.sampled_from(['"', "*", "(", ")", "AND", "OR", "NOT", "NEAR(", "{text}", ":", "-", "^", "+",
                     "deadlock", "pool", "接続", "デッド", "\x00", "~", "%", "_", "\\n", "'"]),
    max_size=12,
)  # fmt: skip


@given(words | syntax.map(" ".join) | syntax.map("".join))
def test_no_text_is_a_syntax_error(connection: sqlite3.Connection, query: str) -> None:
    for hit in exact(connection, query) + exact(connection, query, tools=True):
        assert has_pairs(hit.snippet)
        assert hit.as_json()["what"] == hit.what


@given(words | syntax.map(" ".join))
def test_a_raw_query_is_answered_or_explained(connection: sqlite3.Connection, query: str) -> None:
    try:
        exact(connection, query, raw=True)
    except UsageError as error:
        assert "FTS5" in str(error)  # noqa: PT017


def test_a_raw_query_has_the_syntax_of_the_index(find: Find) -> None:
    assert find("dead* NOT pool", raw=True)
    assert [hit.scope for hit in find("tool_text : deadlock", raw=True)] == ["tools"]
    assert find("NEAR(deadlock pool, 3)", raw=True)


@pytest.mark.parametrize("query", ["deadlock", "pool", "deadlock pool"])
def test_a_raw_query_ranks_what_it_finds_as_its_words_would(find: Find, query: str) -> None:
    ranked = [(hit.what, hit.id) for hit in find(query) if hit.scope != "title"]
    assert [(hit.what, hit.id) for hit in find(query, raw=True)] == ranked


@pytest.mark.parametrize("query", ['"open', "a AND", "nocolumn : a", "(", "", "*"])
def test_a_raw_query_that_is_none_gets_a_hint(find: Find, query: str) -> None:
    with pytest.raises(UsageError, match="--raw"):
        find(query, raw=True)


def test_a_query_of_punctuation_finds_nothing(find: Find) -> None:
    assert find('--- !!! "" *') == []


def test_a_long_query_is_a_query(find: Find) -> None:
    assert find("deadlock " * 2000)
    assert not find(" ".join(f"word{n}" for n in range(2000)))


def test_quotes_make_phrases_and_stay_letters_inside_words() -> None:
    terms = parse('say "two words" o"clock pre* "open end')
    assert [word.text for word in terms.words] == ["say", "two words", 'o"clock', "pre", "open end"]
    assert [word.is_prefix for word in terms.words] == [False, False, False, True, False]
    assert terms.words[2].expression() == '"o""clock"'


# -- marks ----------------------------------------------------------------------------------------


def test_marks_in_stored_text_do_not_unbalance_the_snippet(find: Find) -> None:
    (hit,) = find("walnut")
    assert has_pairs(hit.snippet)
    assert "walnut" in plain(hit.snippet)[0]


@given(
    st.text("ab \x02\x03", max_size=300),
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 9))),
)
def test_marks_come_in_pairs(text: str, places: list[tuple[int, int]]) -> None:
    spans = [(start, start + size) for start, size in places if start + size <= len(text)]
    snippet = around(text, spans)
    assert has_pairs(snippet)
    assert len(snippet) < 800
    shown = "".join(piece for piece, _ in parts(snippet)).strip("…")
    assert shown in re.sub("[\x02\x03]", "", text)


def test_a_hit_names_its_line_in_the_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    transcript = home / "projects" / "-srv-demo" / "0b7c2f4e-1111-4222-8333-444455556666.jsonl"
    transcript.parent.mkdir(parents=True)
    line = {
        "type": "user",
        "sessionId": "0b7c2f4e-1111-4222-8333-444455556666",
        "message": {"role": "user", "content": "needle"},
    }
    other = {**line, "message": {"role": "user", "content": "hay"}}
    lines = [{**other, "uuid": "a"}, {**line, "uuid": "b"}, {**other, "uuid": "c"}]
    text = "\n".join(map(json.dumps, lines[:1])) + "\n\n" + "\n".join(map(json.dumps, lines[1:]))
    transcript.write_text(text)
    database = tmp_path / "assoc.db"
    sync(database, [home])
    with closing(open_reader(database)) as connection:
        (hit,) = with_lines(connection, exact(connection, "needle"))
    assert hit.line == 3, "the second line is blank"
