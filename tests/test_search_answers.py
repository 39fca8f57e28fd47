"""A question in natural words finds its conversation, and the answer says how it was found."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.reading import index, reader
from tests.support.rows import Rows
from tests.support.searching import search
from tests.support.shell import Shell
from tests.support.writing import TRANSCRIPT, assistant, at, call, result, user, write

from assoc_ingest.ask import candidates, hits
from assoc_ingest.ask import query as stems
from assoc_ingest.ask.filters import Filters
from assoc_ingest.ask.matches import OPEN, plain
from assoc_ingest.ask.query import parse
from assoc_ingest.ask.search import SearchResult, fused
from assoc_ingest.ask.search import find as ranked
from assoc_ingest.ask.times import until
from assoc_ingest.errors import NotFoundError, UsageError
from assoc_ingest.questions.question import Reader, named
from assoc_ingest.questions.search import short_path
from assoc_ingest.sources import SOURCES
from assoc_ingest.terminal import Paint, columns

Ask = Callable[..., SearchResult]

POOL = "0b7c2f4e-1111-4222-8333-444455556666"
DOCKER, PARSER, OTHER = "1c8d3a5f", "2d9e4b60", "3eaf5c71"


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("answers") / "assoc.db"
    with index(path) as rows:
        _fill(rows)
    connection = reader(path)
    yield connection
    connection.close()


def _fill(rows: Rows) -> None:
    shop, blog = rows.project("shop"), rows.project("blog")
    session, file = rows.session(POOL, shop, title="Deadlock in the pool", cwd="/srv/shop")
    rows.message(file, "prompt", "Workers hang when the connection pool is empty, fix it")
    rows.message(file, "thinking", "The pool hands out connections, connections and connections")
    rows.message(file, "text", "The pool deadlocks: acquire_connection waits for its own worker.")
    rows.call(file, "Bash", {"command": "grep -rn acquire_connection src"}, "src/pool.py: 3 found")
    for number in range(4):
        rows.message(file, "text", f"Worker {number} handled its timeout")
    rows.add(
        "tasks", subject="Measure the pool of workers", status="pending", task_key="1",
        list_key=POOL, session_id=session, source_id=rows.source, file_id=file,
    )  # fmt: skip

    _, file = rows.session(DOCKER, shop, title="Base image", git_branch="slim")
    rows.message(
        file, "prompt", "make the docker image smaller", timestamp="2026-02-03T10:00:00.000Z"
    )
    rows.message(file, "text", "The image is built with --porcelain output and telemetry is off.")
    rows.call(file, "Read", {"file_path": "/srv/a"}, "getTelemetryOptOut and the docker pool")

    _, file = rows.session(PARSER, blog, title="Parser")
    first = rows.message(file, "prompt", "The parser crashes on quotes in a query")
    rows.message(file, "text", "接続プールのデッドロックを直す")
    rows.message(file, "text", "either it was cached or the cache was stale")
    _, fork = rows.session(OTHER, blog, title="Fork")
    rows.message(fork, "prompt", "The parser crashes on quotes in a query", copy_of=first)

    plan = rows.file("plans/p.md", kind="plan")
    rows.add(
        "plans", title="Plan", text="# Greenhouse\nwater the seedlings", name="p", file_id=plan
    )


@pytest.fixture
def ask(connection: sqlite3.Connection) -> Ask:
    def answered(query: str, filters: Filters | None = None, **options: Any) -> SearchResult:
        return search(connection, query, filters, **options)

    return answered


def shown(
    connection: sqlite3.Connection, query: str, limit: int = 10, width: int = 80
) -> list[str]:
    """Return the lines of the answer on a terminal."""
    answer = named("search").ask(Reader(connection, limit, each=3), query=query, filters=Filters())
    return [*answer.lines(width, Paint(False))]


def keys(answer: SearchResult) -> list[str | None]:
    return [group.session_key for group in answer.groups]


def whys(answer: SearchResult) -> set[str]:
    return {hit.why for hit in answer.hits}


def texts(answer: SearchResult) -> list[str]:
    return [plain(hit.snippet)[0] for hit in answer.hits]


# -- tiers -----------------------------------------------------------------------------------------


def test_what_holds_the_query_as_it_was_typed_stands_first(ask: Ask) -> None:
    answer = ask("acquire_connection")
    assert whys(answer) == {"verbatim"}, "of one identifier, nothing else is looked for"
    assert answer.relaxation is None
    assert answer.hits[0].kind == "text", "what was said stands before what tools gave"
    assert {hit.kind for hit in answer.hits} == {"text", "tool_use"}
    assert ask('"the connection pool"').hits[0].why == "verbatim"


def test_all_words_stand_before_some_of_them(ask: Ask) -> None:
    answer = ask("connections pool")
    why = [hit.why for hit in answer.hits]
    assert why == sorted(why)
    assert set(why) == {"all_words", "relaxed"}
    assert answer.relaxation
    assert answer.relaxation.has_exact
    assert not answer.relaxation.missing


def test_a_question_finds_the_conversation_that_is_about_it(ask: Ask) -> None:
    answer = ask("why do the workers hang when they need a connection?")
    assert keys(answer)[0] == POOL
    assert whys(answer) == {"relaxed"}
    answer = ask("how can I make a docker image that is smaller than this one")
    assert keys(answer)[0] == DOCKER


def test_what_a_conversation_is_about_counts_more_than_what_it_mentions(tmp_path: Path) -> None:
    with index(tmp_path / "assoc.db") as rows:
        for key, title, texts in (
            (POOL, "Heating", ("how warm is it", "the greenhouse, " + "and much else, " * 20)),
            (DOCKER, "Greenhouse", ("how warm is it", "the greenhouse, " + "and all that, " * 20)),
            (PARSER, "Wind", ("ask the greenhouse first", "the others, " + "and so on, " * 20)),
            (OTHER, "Rain", ("how wet is it", "greenhouse greenhouse")),
        ):
            _, file = rows.session(key, title=title)
            for kind, text in zip(("prompt", "text"), texts, strict=True):
                rows.message(file, kind, text)
        for number in range(20):
            rows.message(file, "text", f"nothing of the kind {number}")
    with closing(reader(tmp_path / "assoc.db")) as connection:
        assert keys(search(connection, "greenhouse")) == [DOCKER, PARSER, OTHER, POOL]


def test_a_plan_with_the_rarest_word_stands_before_messages_with_others(ask: Ask) -> None:
    assert keys(ask("why do workers need seedlings"))[0] is None


def test_a_relaxed_answer_says_so_and_names_what_is_missing(ask: Ask) -> None:
    answer = ask("frobnicate the deadlocks")
    assert answer.relaxation
    assert not answer.relaxation.has_exact
    assert answer.relaxation.missing == ("frobnicate",)
    said = answer.relaxation.lines()
    assert said == ["Not found: frobnicate.", "No message contains all words. Closest matches:"]


def test_stop_words_count_for_nothing_unless_there_is_nothing_else(ask: Ask) -> None:
    assert all("either" not in text for text in texts(ask("what is either about docker")))
    assert "either it was cached" in texts(ask("either or was"))[0]
    assert any("the cache was stale" in text for text in texts(ask("whose was")))
    answer = ask("whose")
    assert not answer.hits
    assert "common words" in answer.notes[0]


def test_endings_are_taken_off(ask: Ask) -> None:
    assert ask("deadlock").groups, "deadlocks"
    assert whys(ask("handling timeouts")) == {"relaxed"}
    assert keys(ask("caches caching")) == [PARSER]
    answer = ask("queries")
    assert keys(answer) == [PARSER]
    assert answer.relaxation
    assert answer.relaxation.lines() == ["No message contains queries. Closest matches:"]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("caching", {"cach*"}), ("queries", {"quer*"}), ("handled", {"handl*"}),
        ("classes", {"class*"}), ("status", {"status*"}), ("running", {"running", "run", "runs"}),
        ("added", {"added", "add", "adds"}), ("bug", {"bug", "bugs"}), ("is", {"is"}),
        ("naïve", {"naïve"}), ("mp3s", {"mp3s"}),
    ],
)  # fmt: skip
def test_a_stem_is_a_prefix_of_four_letters_and_more(word: str, found: set[str]) -> None:
    assert {term.text + "*" * term.is_prefix for term in stems.forms(word)} == found


@given(st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=12))
def test_every_stem_finds_the_word_itself(word: str) -> None:
    found = stems.forms(word)
    begins = [word.lower().startswith(term.text) for term in found if term.is_prefix]
    assert all(begins)
    assert begins or word.lower() in [term.text.lower() for term in found]


# -- spelling --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("telemtry", "telemetry"), ("telemetyr", "telemetry"), ("telemetryy", "telemetry"),
        ("tolemotry", "telemetry"), ("dokcer", "docker"), ("TelemetryOpt", "gettelemetryoptout"),
        ("elemetr", "telemetry"),
    ],
)  # fmt: skip
def test_a_word_that_no_message_has_is_taken_for_a_near_one(
    ask: Ask, query: str, meant: str
) -> None:
    answer = ask(query)
    assert DOCKER in keys(answer)
    assert answer.relaxation
    assert meant in answer.relaxation.corrected[query]
    assert "Showing results for " in answer.relaxation.lines()[0]


def test_an_error_with_other_numbers_is_found_where_it_occurred(ask: Ask) -> None:
    answer = ask("src/pool.py: 7 found")
    assert (answer.hits[0].kind, answer.hits[0].why) == ("tool_result", "relaxed")
    assert keys(answer)[0] == POOL
    assert parse("7 8").without_numbers() is None
    assert parse("pool 7").without_numbers() is None, "one word is no message"
    assert parse("the pool").without_numbers() is None, "nothing is left out"


def test_a_word_of_a_title_is_known(ask: Ask) -> None:
    answer = ask("base docker deadlocks bases")
    assert answer.relaxation
    assert not answer.relaxation.corrected
    assert "base" not in answer.relaxation.missing


@pytest.mark.parametrize(
    "query",
    [
        "bocker", "pol", "poll", "connector", "dicker worker",  # other words, not other spellings
        "how do we tune the tolemotry of our kafka consumers",  # of a long query, only one letter
    ],
)  # fmt: skip
def test_a_correction_changes_no_more_than_the_spelling(ask: Ask, query: str) -> None:
    answer = ask(query)
    corrected = answer.relaxation.corrected if answer.relaxation else {}
    assert corrected == ({"dicker": ("docker",)} if "dicker" in query else {})


def test_the_stop_words_of_other_languages_are_no_subject(ask: Ask) -> None:
    asked = "warum sind die worker nach dem start blockiert avec"
    assert [clause.name for clause in parse(asked).content] == [
        "die",
        "worker",
        "start",
        "blockiert",
    ]
    answer = ask(asked)
    assert answer.relaxation
    assert answer.relaxation.corrected == {}


def test_a_known_word_is_never_corrected(ask: Ask) -> None:
    answer = ask("docker telemetry xyzzy")
    assert answer.relaxation
    assert answer.relaxation.corrected == {}
    assert not ask("xyzzy").hits


def test_punctuation_around_a_word_is_no_part_of_it(ask: Ask) -> None:
    answer = ask("Frobnicated: telemetry, (docker)?")
    assert DOCKER in keys(answer)
    assert answer.relaxation
    assert answer.relaxation.corrected == {}
    assert answer.relaxation.missing == ("Frobnicated:",)


def test_an_identifier_that_nothing_holds_is_taken_apart(ask: Ask) -> None:
    assert keys(ask("deadlocks_of_pool"))[0] == POOL


def test_words_are_read_once_and_no_more_than_a_limit(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    search(connection, " ".join(f"qwertz{letter * 9}" for letter in "abc"))
    connection.set_trace_callback(None)
    assert sum("temp.search_words where term >= 'a'" in text for text in statements) == 1
    assert ask_for(connection, "elemetr") == {"telemetry", "gettelemetryoptout"}
    monkeypatch.setattr(candidates, "MOST_READ", 3)
    assert ask_for(connection, "elemetr") == set()


def ask_for(connection: sqlite3.Connection, word: str) -> set[str]:
    """Return what is taken for an unknown word."""
    relaxation = search(connection, word).relaxation
    return set(relaxation.corrected[word]) if relaxation else set()


def test_a_connection_that_refuses_temporary_tables_still_finds(tmp_path: Path) -> None:
    with index(tmp_path / "assoc.db") as rows:
        _fill(rows)
    with closing(reader(tmp_path / "assoc.db")) as connection:
        connection.execute("pragma query_only = on")
        assert search(connection, "acquire_connection").hits
        assert search(connection, "how do workers hang").hits
        assert not search(connection, "telemtry").hits


def test_a_search_leaves_nothing_in_the_connection(connection: sqlite3.Connection) -> None:
    search(connection, "docker")
    assert connection.execute("select count(*) from temp.sqlite_master").fetchone()[0] == 0


# -- evidence --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "evidence"),
    [
        ("connection pool", "strong"), ("why do the workers hang", "strong"),
        ("how did the parser crash on stale quotes", "strong"), ("telemtry", "strong"),
        ("how do we tune the kafka workers in staging", "weak"),
        ("which migration of the pool dropped the customers table", "weak"),
        ("xyzzy", "none"), ("docker project:blog", "none"),
    ],
)  # fmt: skip
def test_matches_are_weak_that_lack_what_the_question_is_about(
    ask: Ask, query: str, evidence: str
) -> None:
    answer = ask(query)
    assert answer.evidence == evidence
    said = "Weak matches: no conversation contains most of the words." in answer.said()
    assert said == (evidence == "weak")


def test_evidence_counts_what_one_message_says_with_its_title(ask: Ask) -> None:
    assert ask("smaller base frobnicated").evidence == "strong"
    assert ask("quotes seedlings frobnicated gizmos widgets").evidence == "weak"


# -- several phrasings -----------------------------------------------------------------------------


def test_other_phrasings_find_what_the_first_one_lacks(connection: sqlite3.Connection) -> None:
    def found(query: str, *also: str) -> SearchResult:
        rankings = [ranked(connection, text) for text in (query, *also)]
        return fused(rankings).read(10)

    alone = found("segfault of the tokenizer")
    assert (keys(alone), alone.evidence) == ([], "none")
    both = found("segfault of the tokenizer", "parser crashes quotes", "crash of the parser")
    assert (keys(both)[0], both.evidence) == (PARSER, "strong")
    assert OPEN + "parser" in both.groups[0].best.snippet
    # What two of three find stands before what one finds best.
    assert keys(found("docker image", "workers hang", "acquire_connection"))[0] == POOL
    several = found("docker image", "connection pool")
    assert sorted(keys(several)[:2], key=str) == [POOL, DOCKER]
    assert several.count == sum(len(group.hits) + group.more for group in several.groups)
    places = [(hit.what, hit.id) for hit in several.hits]
    assert len(places) == len({*places})


def test_other_phrasings_are_words_and_not_many(connection: sqlite3.Connection) -> None:
    def check(**given: Any) -> None:
        named("search").arguments({"query": "docker", **given})

    check(also=["pool"] * 4)
    for wrong in ({"also": ["pool"] * 5}, {"also": ["pool"], "raw": True}, {"also": [" "]}):
        with pytest.raises(UsageError):
            check(**wrong)


# -- filters in plain words ------------------------------------------------------------------------


def test_a_time_and_a_branch_in_a_question_are_filters(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 2, 4, 12).astimezone()
    monkeypatch.setattr("assoc_ingest.ask.times.present", lambda: now)
    answer = ask("what did we do yesterday about the image")
    assert keys(answer) == [DOCKER]
    assert answer.understood == {"yesterday": 'since:"yesterday" until:"yesterday"'}
    assert answer.notes == (
        '\'yesterday\' is taken for since:"yesterday" until:"yesterday". In quotes it is words.',
    )
    branch = ask("a thing about the pool on branch slim")
    assert set(keys(branch)) == {DOCKER}
    assert branch.understood == {"on branch slim": 'branch:"slim"'}


def test_the_last_thing_on_a_branch_comes_first(tmp_path: Path) -> None:
    with index(tmp_path / "assoc.db") as rows:
        for day in range(1, 10):
            _, file = rows.session(f"{day}{DOCKER[1:]}", git_branch="slim")
            said = "the pool hangs " * (10 - day)
            rows.message(file, "prompt", said, timestamp=f"2026-02-0{day}T10:00:00.000Z")
        _, file = rows.session(f"a{DOCKER[1:]}", git_branch="main")
        rows.message(file, "prompt", "the pool", timestamp="2026-02-10T10:00:00.000Z")
    with closing(reader(tmp_path / "assoc.db")) as connection:
        for query in ("the last thing on branch slim", "latest pool on branch slim"):
            answer = search(connection, query)
            days = [group.session_key[0] for group in answer.groups if group.session_key]
            assert days == sorted(days, reverse=True), query
            assert days[0] == "9"
            assert any("The newest of these comes first" in note for note in answer.notes)
        assert search(connection, "the pool on branch slim").groups[0].session_key[0] != "9"


def test_words_stay_words_where_a_filter_would_not_help(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 2, 4, 12).astimezone()
    monkeypatch.setattr("assoc_ingest.ask.times.present", lambda: now)
    for query in (
        'docker image "yesterday"',  # quoted
        "docker image last year",  # nothing is of that time
        "docker image on branch nowhere",
        "docker image yesterday since:2026",  # the filter is set
        "docker yesterdays",
    ):
        assert ask(query).understood == {}, query
    answer = ask("docker image last year")
    assert DOCKER in keys(answer)
    filters = 'since:"last year" until:"last year"'
    assert answer.notes[0] == f"Nothing fits {filters}, so 'last year' is searched for as words."
    assert ask("docker image yesterday", Filters(until="2026")).understood == {}


# -- the language ----------------------------------------------------------------------------------


def test_a_minus_leaves_out_at_every_stage(ask: Ask) -> None:
    assert keys(ask("pool -docker")) == [POOL]
    assert all("docker" not in text for text in texts(ask("pool -docker")))
    assert all("image" not in text for text in texts(ask("smaller telemetry frobnicate -image")))
    assert all(
        "connection pool" not in t for t in texts(ask('workers hang pool -"connection pool"'))
    )
    assert not ask("接続 -デッドロック").hits
    assert ask("接続 -ロケット").hits


def test_a_copied_command_leaves_nothing_out(ask: Ask) -> None:
    answer = ask("grep -rn acquire_connection")
    assert (answer.hits[0].kind, answer.hits[0].why) == ("tool_use", "verbatim")
    assert answer.notes == ("Nothing is excluded: a message contains -rn as it stands.",)
    assert not ask("grep -acquire_connection").hits
    # A phrase that must not be there is part of no command, although its words stand there.
    answer = ask('the -"connection pool"')
    assert answer.notes == ()
    assert all("connection pool" not in text for text in texts(answer))


def test_a_flag_is_a_word_and_quotes_escape(ask: Ask) -> None:
    assert ask("--porcelain").hits[0].why == "verbatim"
    assert ask('"-rn acquire_connection"').hits
    assert ask("-- -rn acquire_connection").hits
    assert not ask("-rn grep").hits


def test_only_what_to_leave_out_is_no_question(ask: Ask) -> None:
    for query in ("-docker", "kind:prompt", "project:shop -pool"):
        answer = ask(query)
        assert not answer.hits
        assert "no words to search for" in answer.notes[0]


def test_or_is_one_word_of_the_query(ask: Ask) -> None:
    assert set(keys(ask("docker OR quotes"))) == {DOCKER, PARSER}
    assert keys(ask("crashes (docker OR quotes"))[0] == PARSER
    assert {PARSER, DOCKER} <= set(keys(ask("接続プール OR docker")))
    assert [hit.what for hit in ask("base OR nowhere", limit=20).hits] == ["session"]
    for query in ("OR", "OR docker", "docker OR", "docker OR OR image", "or"):
        ask(query)


def test_a_phrase_is_required_even_when_words_are_missing(ask: Ask) -> None:
    answer = ask('"connection pool" frobnicate telemetry')
    assert keys(answer) == [POOL]
    assert all("connection pool" in text for text in texts(answer))


def test_fields_are_filters(ask: Ask) -> None:
    assert {hit.kind for hit in ask("pool kind:prompt kind:thinking").hits} == {
        "prompt",
        "thinking",
    }
    assert {hit.kind for hit in ask("pool kind:prompt", Filters(kind=("thinking",))).hits} == {
        "prompt", "thinking",
    }  # fmt: skip
    assert set(keys(ask("docker OR quotes project:blog"))) == {PARSER}
    assert keys(ask(f"pool session:{POOL}")) == [POOL]
    assert {hit.tool for hit in ask("docker OR connection tool:read").hits} == {"Read"}
    assert keys(ask("image branch:slim")) == [DOCKER]
    assert not ask("image branch:main").hits
    assert not ask("image since:2026-03-01 kind:prompt").hits
    assert ask("image until:2026-02-03 kind:prompt").hits, "a date includes its day"
    assert not ask("image until:2026-02-02 kind:prompt").hits
    assert ask("image source:claude").hits


def test_a_list_counts_what_it_lists(ask: Ask) -> None:
    mixed = "connection pool"  # in conversations that also have one of both
    for query in (mixed, "docker OR quotes", "frobnicate workers docker pools image quotes crash"):
        answer = ask(query, limit=1000, shown=0)
        assert answer.count == len(answer.hits)
    grouped = ask(mixed, limit=1000)
    assert grouped.count < len(grouped.hits)


def test_what_has_no_time_was_said_in_its_conversation(home: Path, shell: Shell) -> None:
    todo = {"content": "feed the capybara", "status": "pending", "activeForm": "feeding"}
    lines = (
        user("frost 接続", "u2"),
        assistant([call("t1", "TodoWrite", todos=[todo])], "a2", "u2"),
        user([result("t1")], "u3", "a2"),
    )
    untimed = [{name: line[name] for name in line if name != "timestamp"} for line in lines]
    write(home, TRANSCRIPT, user("hello"), *untimed)
    shell("sync", str(home))
    for query in ("frost", "接続", "capybara kind:todo", "frost nowhere kind:prompt"):
        assert {hit["time"] for hit in shell.items("search", query)} == {at(0)}
        for time, found in (("2026-01-20", True), ("2026-01-21", False), ("2026-01-19", False)):
            times = ("--since", time, "--until", time)
            assert (shell("search", query, *times) == 0) is found


@given(st.sampled_from(["error:", "TypeError:x", "src/pool.py:3", "http://a", "kind:", "12:30"]))
def test_any_other_colon_is_text(word: str) -> None:
    terms = parse(f"pool {word}")
    assert not terms.fields
    assert [clause.name for clause in terms.clauses] == ["pool", word]


def test_a_field_that_names_nothing_says_what_there_is(ask: Ask) -> None:
    with pytest.raises(UsageError, match=r"Unknown kind 'promt'\. Did you mean prompt\?"):
        ask("pool kind:promt")
    with pytest.raises(NotFoundError, match="Did you mean 'shop'"):
        ask("pool project:shpo")
    with pytest.raises(UsageError, match="7d"):
        ask("pool since:soon")


@pytest.mark.parametrize("query", ["", "???", "***", '"', "\x00", "👩\u200d💻", "--", "- -", "%"])
def test_symbols_alone_find_nothing_and_it_is_said_why(ask: Ask, query: str) -> None:
    answer = ask(query)
    assert not answer.hits
    assert "no letters or digits" in answer.notes[0]


@example('"open')
@example("'; drop table messages; --")
@example("select * from messages where text like '%a%'")
@example("NEAR(a b) AND NOT {text}: ^x")
@example("a" * 300)
@example("x" * 41)
@example("Zürich naïve ﬁ ß İ")
@example("\udcff\udc80 pool")
@example("漢 -字 OR 文")
@given(st.text(max_size=40))
def test_nothing_makes_it_fail(connection: sqlite3.Connection, query: str) -> None:
    try:
        answer = search(connection, query)
    except (UsageError, NotFoundError):
        assert parse(query).fields
        return
    assert answer.count >= len(answer.hits)
    assert len(answer.groups) <= answer.conversations
    for line in shown(connection, query) if query.strip() else ():
        assert columns(line) <= 80


# -- other letters ---------------------------------------------------------------------------------


def test_a_question_in_japanese_is_relaxed_to_its_trigrams(ask: Ask) -> None:
    answer = ask("デッドロックの直し方")
    assert keys(answer) == [PARSER]
    assert whys(answer) == {"relaxed"}
    assert "デッドロック" in plain(answer.hits[0].snippet)[0]


# -- filters when relaxed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "filters",
    [
        Filters(project="shop"), Filters(session=DOCKER), Filters(branch="slim"),
        Filters(kind=("prompt",)), Filters(tool="Bash"), Filters(since="2026-02-01"),
        Filters(until="2026-01-31"), Filters(role="user"), Filters(source="cortex"),
        Filters(kind=("task",)),
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_holds_at_the_relaxed_stage(ask: Ask, filters: Filters) -> None:
    query = "frobnicate workers docker pools image quotes crash connection"
    every = {(hit.what, hit.id) for hit in ask(query, limit=100).hits}
    answer = ask(query, filters, limit=100)
    found = {(hit.what, hit.id) for hit in answer.hits}
    assert found < every
    assert bool(found) == (filters.source is None)
    for hit in answer.hits:
        assert hit.why == "relaxed"
        assert filters.project in (None, hit.project)
        assert filters.session in (None, hit.session_key)
        assert filters.branch in (None, hit.branch)
        assert filters.tool in (None, hit.tool)
        assert not filters.kind or hit.kind in filters.kind or hit.what in filters.kind
        assert hit.time is None or (filters.since or "") <= hit.time <= (filters.until or "3")


def test_a_copy_in_a_fork_is_never_a_hit(ask: Ask) -> None:
    for query in ("parser crashes", "parsers that crash on frobnicated quotes"):
        assert OTHER not in keys(ask(query))
        assert PARSER in keys(ask(query))


# -- groups ----------------------------------------------------------------------------------------


def test_a_conversation_is_one_group_with_its_best_hits(ask: Ask) -> None:
    answer = ask("pool")
    group = next(group for group in answer.groups if group.session_key == POOL)
    assert group.title == "Deadlock in the pool"
    assert (group.best.kind, group.best.project) == ("prompt", "shop"), "not the thinking"
    assert len(group.hits) == 3
    assert {hit.what for hit in answer.hits} == {"message", "task", "session"}
    assert len(group.hits) + group.more == sum(hit.session_key == POOL for hit in answer.hits)


def test_what_belongs_to_no_conversation_is_a_group_of_its_own(ask: Ask) -> None:
    answer = ask("seedlings")
    assert [(g.session_key, g.best.what, g.best.ref) for g in answer.groups] == [
        (None, "plan", None)
    ]


def test_the_first_hits_are_of_different_conversations(ask: Ask) -> None:
    answer = ask("the pool, docker, workers and quotes", limit=20)
    first = [hit.session_key for hit in answer.hits][: answer.conversations]
    assert len(set(first)) == answer.conversations > 1


def test_the_limit_is_of_conversations_and_what_was_found_is_counted(ask: Ask) -> None:
    every = ask("pool docker workers quotes")
    assert every.conversations == len(every.groups) > 1
    answer = ask("pool docker workers quotes", limit=1)
    assert len(answer.groups) == 1
    assert (answer.conversations, answer.is_cut) == (every.conversations, False)


def test_few_conversations_with_very_many_hits_are_all_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with index(tmp_path / "assoc.db") as rows:
        shop = rows.project("shop")
        for number in range(12):
            _, file = rows.session(f"{number:08}", shop, title=f"{number}")
            for _ in range(30):
                rows.message(file, "text", "walrus")
    with closing(reader(tmp_path / "assoc.db")) as connection:
        answer = search(connection, "walrus")
        assert (answer.conversations, answer.count, answer.is_cut) == (12, 360, False)
        assert whys(answer) == {"all_words"}
        monkeypatch.setattr("assoc_ingest.ask.search._MOST_IN_ALL", 250)
        answer = search(connection, "walrus")
        assert (answer.count, answer.is_cut) == (250, True)
        assert whys(answer) == {"all_words"}, "what was not read is not what lacks a word"


def test_more_than_is_looked_at_is_said_to_be_at_least_so_much(shell: Shell) -> None:
    with index(shell.database) as rows:
        shop = rows.project("shop")
        for number in range(250):
            _, file = rows.session(f"{number:08}", shop, title=f"{number}")
            rows.message(file, "text", "walrus")
    with closing(reader(shell.database)) as connection:
        answer = search(connection, "walrus")
        assert answer.is_cut
        assert (answer.conversations, answer.count) == (200, 200)
        *_, total, _ = shown(connection, "walrus")
        assert total == "At least 200 conversations, 200 hits. More: -n 50, or --all-hits."
    answer: Any = shell.json("search", "walrus", "--json", "-n", "5")
    assert answer["total"] is None
    assert answer["next"]


def test_a_search_on_a_terminal_loads_no_source(shell: Shell) -> None:
    with index(shell.database) as rows:
        _fill(rows)
    script = f"""
import sys
from assoc_ingest.__main__ import main
assert main(["search", "pool", "--db", {str(shell.database)!r}]) == 0
print("loaded:", *(sys.modules.keys() & {{"assoc_ingest.sources", "jinja2"}}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "loaded:", done.stderr
    assert next(iter(SOURCES)) == hits._USUAL


def test_a_hit_can_be_opened_and_gone_on_with(ask: Ask) -> None:
    fields = ask("acquire_connection").hits[0].as_json()
    assert {"key", "title", "ref", "project", "branch", "cwd", "model", "kind", "time", "snippet",
            "marks", "why", "file", "line", "byte", "resume"} < fields.keys()  # fmt: skip
    assert (fields["key"], fields["cwd"]) == (POOL[:8], "/srv/shop")
    assert str(fields["resume"]).startswith("cd /srv/shop && ")
    assert fields["marks"]


# -- how it looks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 80, 120])
def test_blocks_fit_the_terminal_and_show_every_best_match(
    connection: sqlite3.Connection, ask: Ask, width: int
) -> None:
    long = '"connection pool is empty, fix it"'
    for query in ("pool", long, "acquire_connection", "how do workers hang", "デッドロック"):
        answer = ask(query)
        lines = shown(connection, query, width=width)
        assert max(map(columns, lines)) <= width
        text = "\n".join(lines)
        assert text.count("[") == text.count("]") >= len(answer.groups)
        assert f"{answer.conversations} conversation" in " ".join(lines[-4:])


def test_the_lines_say_how_to_go_on(connection: sqlite3.Connection) -> None:
    lines = shown(connection, "docker OR quotes", limit=1)
    assert lines[-1] == f"Open the first: assoc-ingest show {DOCKER}"
    assert "-n 50" in lines[-2]


def test_a_divider_stands_before_conversations_that_lack_a_word(
    connection: sqlite3.Connection,
) -> None:
    lines = shown(connection, "docker image")
    assert not any("with a word missing" in line for line in lines), "nothing else was found"
    lines = shown(connection, "parser query pool")
    assert not any("with a word missing" in line for line in lines), "nothing has all of them"
    lines = shown(connection, "image pool OR telemetry")
    divider = lines.index("Closest matches, with a word missing:")
    assert lines[0].startswith("Base image")
    assert lines[divider + 2].startswith("Deadlock in the pool")


@pytest.mark.parametrize("room", [20, 40, 200])
def test_a_path_is_cut_in_its_middle(room: int) -> None:
    path = "/srv/a/very/long/way/to/projects/-srv-a/0b7c2f4e-1111.jsonl"
    shown = short_path(path, room)
    assert columns(shown) <= max(room, 20)
    assert shown.startswith("/srv")
    assert room < 40 or shown.endswith("1111.jsonl")


def test_a_date_ends_with_its_day() -> None:
    assert until("2026-01-31T12:00:00Z") == "2026-01-31T12:00:00.000Z"
    assert until("2026-01-31") > "2026-01-31T10"


def test_thinking_never_stands_before_what_was_said_for_the_same_words(shell: Shell) -> None:
    """However often thinking has the words, in the same conversation and in another one."""
    with index(shell.database) as rows:
        for key, kinds in (("a", ("thinking", "text")), ("b", ("thinking",)), ("c", ("text",))):
            _, file = rows.session(f"{key:0>8}-session")
            for kind in kinds:
                is_thought = kind == "thinking"
                text = "walrus tusk " * 20 if is_thought else "walrus tusk" + " far away" * 900
                rows.message(file, kind, text)
        for number in range(60):
            rows.message(file, "text", f"nothing of it {number}")
    kinds = [hit["kind"] for hit in shell.items("search", "walrus tusk")]
    assert kinds == ["text", "text", "thinking", "thinking"]
