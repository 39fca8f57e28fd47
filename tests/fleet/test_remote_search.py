"""A search of the server finds what a local search finds, and says on which machine."""

from __future__ import annotations

import json
import random
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.machines import Fleet
from tests.support.searching import search as local_search
from tests.support.writing import SESSION, assistant, call, jsonl, result, user, write

from assoc_ingest.ask.filters import Filters
from assoc_ingest.cli import cli
from assoc_ingest.errors import NotFoundError, UsageError
from assoc_ingest.fleet import administration
from assoc_ingest.fleet import search as fleet_search
from assoc_ingest.fleet.connect import DESTINATION
from assoc_ingest.fleet.search import search
from assoc_ingest.store.database import open_reader

pytestmark = pytest.mark.citus

_SAID = [
    user("The café deadlocks when the pool is empty", "u1"),
    assistant([call("t1", command="grep deadlock pool.py")], "a1", "u1"),
    user([result("t1", "pool.py: deadlocked twice")], "u2", "a1", 2),
    assistant("連接池在空的時候會死鎖。It is fixed: the pool waits", "a2", "u2", 3, id="msg_2"),
    user("The pool is fine now", "u3", "a2", 4),
]
QUERIES = (
    "pool", "deadlocks pool", '"pool is"', '"is pool"', "dead*", "pool -empty", "cafe", "Café",
    "fixed OR fine", "連接池", "死鎖", "鎖死", "empty pool fixed", "pool.py", "kind:prompt pool",
)  # fmt: skip


@pytest.fixture
def fleet(tmp_path: Path, database: Any, empty_database: str) -> Fleet:
    """A server to which one machine pushed a conversation."""
    made = Fleet(tmp_path, empty_database, database)
    write(tmp_path / "home", f"projects/-srv-shop/{SESSION}.jsonl", *_SAID)
    made.push("laptop", tmp_path / "home").close()
    return made


def _found(connection: Any, query: str, **given: Any) -> list[dict[str, Any]]:
    answer = search(connection, query, Filters(), limit=100, **given)
    return [hit.as_json() for hit in answer.hits]


@pytest.mark.parametrize("query", QUERIES)
def test_the_same_messages_are_found(fleet: Fleet, tmp_path: Path, query: str) -> None:
    with closing(open_reader(tmp_path / "laptop.db")) as local, closing(fleet.central()) as central:
        here = local_search(local, query, limit=100, closest=False).hits
        there = _found(central, query)
        assert {hit.byte for hit in here if hit.what == "message"} == {hit["byte"] for hit in there}


@pytest.mark.parametrize(
    "query", ['pool -"is empty"', 'pool -"empty is"', '"pool is empty" OR cafe']
)
def test_phrases_are_exact_where_they_must_and_must_not_be(
    fleet: Fleet, tmp_path: Path, query: str
) -> None:
    with closing(open_reader(tmp_path / "laptop.db")) as local, closing(fleet.central()) as central:
        here = local_search(local, query, limit=100, closest=False).hits
        there = _found(central, query)
    assert here
    assert {hit.byte for hit in here if hit.what == "message"} == {hit["byte"] for hit in there}


def test_conversations_are_the_best_with_their_best_hits(fleet: Fleet, tmp_path: Path) -> None:
    """Of many hits only those that are shown come from the server; the others are counted."""
    for number in range(4):
        key = f"{number}{SESSION[1:]}"
        said = [
            user(f"{'pool ' * turn}water", f"w{number}{turn}", sessionId=key)
            for turn in range(1, 6)
        ]
        write(tmp_path / "desk", f"projects/-srv-shop/{key}.jsonl", *said)
    fleet.push("desk", tmp_path / "desk").close()
    with closing(fleet.central()) as central:
        answer = search(central, "pool water", Filters(), limit=3, shown=2)
        flat = search(central, "pool water", Filters(), limit=3, shown=0)
        everything = search(central, "pool water", Filters(), limit=100, shown=0)
    assert [len(group.hits) + group.more for group in answer.groups] == [5, 5, 5]
    assert [len(group.hits) for group in answer.groups] == [2, 2, 2]
    assert (answer.count, flat.count, len(everything.hits)) == (20, 20, 20)
    assert flat.hits == everything.hits[:3] == answer.hits
    assert flat.groups == ()
    by_conversation: dict[str | None, list[Any]] = {}
    for hit in everything.hits:
        by_conversation.setdefault(hit.session_key, []).append(hit)
    best = list(by_conversation.values())[:3]
    assert [list(group.hits) for group in answer.groups] == [hits[:2] for hits in best]


def test_a_key_is_as_short_as_those_of_all_machines_allow(fleet: Fleet, tmp_path: Path) -> None:
    """As with `show`: no other conversation begins with it, and it has eight letters at least."""
    for name, shared in (("desk", 12), ("rack", 20), ("none", 7)):
        key = SESSION[:shared] + "".join("0" if c != "0" else "1" for c in SESSION[shared:])
        said = user(f"frost on {name}", name, sessionId=key)
        write(tmp_path / name, f"projects/-srv-shop/{key}.jsonl", said)
        fleet.push(name, tmp_path / name).close()
    with closing(fleet.central()) as central:
        lengths = {
            hit["snippet"].rpartition(" ")[2]: len(hit["key"]) for hit in _found(central, "frost")
        }
        (of_all,) = {hit["key"] for hit in _found(central, "pool")}
    assert lengths == {"desk": 13, "rack": 21, "none": 8}
    assert of_all == SESSION[:21]


def test_lines_are_numbered_over_all_stretches_of_a_file(fleet: Fleet, tmp_path: Path) -> None:
    path = write(tmp_path / "desk", f"projects/-srv-shop/{SESSION}.jsonl")
    desk = fleet.machine("desk")
    for number in range(4):
        with path.open("ab") as file:
            file.write(jsonl(user(f"frost {number}", f"f{number}", second=number)))
            file.write(b"\n\n" * number + jsonl(user("x" * 2**20, f"x{number}", second=9)))
        desk.push(tmp_path / "desk")
    lines = path.read_bytes().split(b"\n")
    with closing(fleet.central()) as central:
        hits = _found(central, "frost")
    assert len(hits) == 4
    assert all(hit["snippet"].replace("**", "").encode() in lines[hit["line"] - 1] for hit in hits)
    cut = "update assoc.frames set data = null where start > 0"
    assert desk.connection.execute(cut).rowcount > 2
    with closing(fleet.central()) as central:
        told = {hit["snippet"][-1]: hit["line"] for hit in _found(central, "frost")}
    assert told == {"0": 1, "1": 3, "2": None, "3": None}  # the first stretch ends with line 2


_LETTERS = "".join(map(chr, range(1, 0x250))) + "ΆΟΔΟΣςЁЖжßẞİ中文한글かな\u0301\u200b\xad、—'_"


def test_the_words_of_a_text_do_not_depend_on_how_they_are_found(fleet: Fleet) -> None:
    """Texts of ASCII alone take a shorter way."""
    chance = random.Random(7)
    alphabets = (_LETTERS, _LETTERS[:127], _LETTERS[:127])
    texts = ["".join(chance.choices(chance.choice(alphabets), k=40)) for _ in range(500)]
    texts += ["", " ", "a_b-c.d/e f'g", "Ünïcode Ὀδυσσεύς ЁЛКА", "1.5e10 0x1F v2.3.4", "a\tb\nc"]
    with closing(fleet.central()) as central:
        for text in texts:
            (words, plain) = central.execute(
                "select assoc.words(:text)::text,"
                " to_tsvector('pg_catalog.simple', assoc.plain_text(:text)"
                " || ' ' || coalesce(assoc.cjk_pairs(:text), ''))::text",
                {"text": text},
            ).fetchone()
            assert words == plain, text
            if text.isascii():
                expected = re.sub("[^0-9a-z]+", " ", text.lower())
                assert set(re.findall(r"'(\w+)'", words)) == set(expected.split())


_PIECES = [
    *(
        "copper",
        "Lantern",
        "cafe",
        "café",
        "CAFE\u0301",
        "ca\u200bfe",
        "ca\xadfe",
        "fin",
        "\ufb01n",
    ),
    *("12", "\uff11\uff12", "½", "ω", "Ώ", "中文", "x"),
    *(" ", " ", " ", "-", "_", ".", "—", "…", "、", "\n", "\u200b", "→", ""),
]
_PHRASES = [
    "copper lantern",
    "cafe copper",
    "Café fin",
    "fin 12",
    "copper ω cafe",
    "1 2",
    "cafe caf",
]


@pytest.mark.parametrize("is_prefix", [False, True])
def test_patterns_of_phrases_say_nothing_wrong(fleet: Fleet, is_prefix: bool) -> None:
    """A strict one finds only what the words have, the other one all of it."""
    chance, decided = random.Random(5), {True: 0, False: 0}
    with closing(fleet.central()) as central:
        for phrase in _PHRASES:
            pieces = [*_PIECES, *phrase.split() * 5, *" -" * 8]
            texts = ["".join(chance.choices(pieces, k=9)) for _ in range(600)]
            terms = {"clauses": [[{"text": phrase, "is_prefix": is_prefix}]], "without": []}
            found = central.execute(
                """
                select
                    t.value,
                    assoc.words(t.value) @@ assoc.query_of(cast(:terms as json), true) as holds,
                    lower(t.value) ~ (assoc.phrases_of(cast(:terms as json), true))[1] as strict,
                    lower(t.value) ~ (assoc.phrases_of(cast(:terms as json), false))[1] as loose
                from json_array_elements_text(cast(:texts as json)) as t
                """,
                {"terms": json.dumps(terms), "texts": json.dumps(texts)},
            )
            for text, holds, strict, loose in found:
                assert strict <= holds <= loose, (phrase, text)
                decided[bool(holds)] += strict == loose
    assert min(decided.values()) > 20


def test_a_hit_has_what_a_local_hit_has_and_its_machine(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    answers = []
    for more in ((), ("--remote",)):
        arguments = ["search", "empty", "--json", *more, "--db", str(tmp_path / "laptop.db")]
        run = CliRunner().invoke(cli, arguments)
        assert run.exit_code == 0, run.output
        answers.append(json.loads(run.stdout)["items"][0])
    here, there = answers
    assert there.pop("origin") == "laptop"
    assert list(there) == list(here)
    assert {key: value for key, value in there.items() if key != "id"} == {
        key: value for key, value in here.items() if key != "id"
    }


def test_what_two_machines_have_is_one_hit(fleet: Fleet, tmp_path: Path) -> None:
    fleet.push("desktop", tmp_path / "home").close()
    with closing(fleet.central()) as central:
        assert [hit["origin"] for hit in _found(central, "deadlocks")] == ["laptop"]
        assert [hit["origin"] for hit in _found(central, "deadlocks", origin="desktop")] == [
            "desktop"
        ]
        assert _found(central, "deadlocks", origin="nobody") == []


def test_hits_are_printed_by_conversation(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    run = CliRunner().invoke(cli, ["search", "pool", "--remote", "--db", str(tmp_path / "none.db")])
    assert run.exit_code == 0, run.output
    assert "deadlocks" in run.stdout
    assert "(laptop)" in run.stdout


@pytest.mark.parametrize(
    "options", [["--remote", "--raw"], ["--origin", "x"], ["--remote", "--tool", "Bash"]]
)
def test_what_the_server_does_not_know_is_refused(
    fleet: Fleet, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    run = CliRunner().invoke(cli, ["search", "pool", *options])
    assert isinstance(run.exception, UsageError)


def test_a_search_without_hits_names_the_filters_that_left_none(
    fleet: Fleet, tmp_path: Path, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    administration.make_text_index(database)
    write(tmp_path / "desk", f"projects/-srv-tide/9{SESSION[1:]}.jsonl", user("water", "w1"))
    desk = fleet.machine("desk")
    desk.push(tmp_path / "desk")

    def said(*more: str) -> list[str]:
        run = CliRunner().invoke(cli, ["search", "pool", "--remote", *more])
        assert isinstance(run.exception, NotFoundError), run.output
        return run.stderr.splitlines()

    assert said("--source", "codex", "--until", "2001") == ["Without all filters: 1 conversation."]
    assert said("--kind", "prompt", "--until", "2001") == [
        "Without until 2001 (2001-12-31): 1 conversation."
    ]
    assert said("--origin", "desk") == ["Without origin desk: 1 conversation."]
    assert said("--origin", "desk", "--source", "codex") == ["Without all filters: 1 conversation."]
    run = CliRunner().invoke(cli, ["search", "pool", "--remote", "--origin", "desk", "--json"])
    assert json.loads(run.stdout)["nothing"] == {
        "filters": [{"filter": "origin", "told": "origin desk", "without": 1}],
        "without_filters": 1, "is_close": False, "words": [],
    }  # fmt: skip
    many = [user(f"pool {n}", f"p{n}", second=n) for n in range(501)]
    write(tmp_path / "desk", f"projects/-srv-tide/8{SESSION[1:]}.jsonl", *many)
    desk.push(tmp_path / "desk")
    (line,) = said("--source", "codex")
    assert line.startswith("Without source codex: ≥"), "the newest 500 messages are counted"


def test_a_message_without_a_time_is_as_old_as_its_session(fleet: Fleet, tmp_path: Path) -> None:
    lines = [user("hello", "h1"), user("frost", "f1", timestamp=None)]
    write(tmp_path / "desk", f"projects/-srv-tide/9{SESSION[1:]}.jsonl", *lines)
    local = fleet.push("desk", tmp_path / "desk")
    with closing(local), closing(fleet.central()) as central:
        (start,) = local.execute("select started_at from sessions").fetchone()
        untimed = "select count(*) from messages where timestamp is null and text = 'frost'"
        assert local.execute(untimed).fetchone()[0] == 1
        for filters, count in (
            (Filters(since=start), 1),
            (Filters(until=start), 0),
            (Filters(since="2001", until="2099"), 1),
            (Filters(since="2099"), 0),
        ):
            assert len(local_search(local, "frost", filters, closest=False).hits) == count, filters
            assert len(search(central, "frost", filters, limit=9).hits) == count, filters


def test_a_search_without_a_text_index_says_so_and_ends_soon(
    fleet: Fleet, tmp_path: Path, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    arguments = ["search", "pool", "--remote", "--db", str(tmp_path / "laptop.db")]

    def searched() -> tuple[str, str]:
        run = CliRunner().invoke(cli, arguments)
        return run.output, str(run.exception)

    assert "no text index, so this search read every message" in searched()[0]
    with monkeypatch.context() as patched:
        patched.setattr(fleet_search, "_SHORT", "set local statement_timeout = '1ms'")
        assert "too many messages to search without one" in searched()[1]
    count = "update pg_class set reltuples = %s where oid = 'assoc.messages'::regclass"
    database.execute(count, (fleet_search._MOST_READ + 1,))
    assert "too many messages to search without one" in searched()[1]
    administration.make_text_index(database)
    database.execute(count, (fleet_search._MOST_READ + 1,))
    assert "text index" not in "".join(searched())
