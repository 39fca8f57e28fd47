"""The benchmarks measure what they say: every row is there, on homes that take seconds.

Nothing here looks at how long anything took.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from math import log2
from pathlib import Path
from typing import Any

import pytest
from benchmarks import bench, compare, peers, report, search
from benchmarks.asking import SEARCHES
from benchmarks.cost import Answer, Cost, Line, Program
from benchmarks.growing import LINES, Growing
from benchmarks.homes import ROOT, Homes
from benchmarks.syncs import Run
from benchmarks.synthetic import chat, codex

from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync

pytestmark = pytest.mark.slow

SMALL = ("--repeat", "1", "--growing", "200KB", "--chat", "200", "--shown", "150", "--watched", "1")


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build directory for homes, used by all tests here."""
    return tmp_path_factory.mktemp("build")


def tables(page: str) -> dict[str, list[str]]:
    """Return the first cells of each table, by its title."""
    found: dict[str, list[str]] = {}
    for part in page.split("\n### ")[1:]:
        title, *lines = part.split("\n")
        found[title] = [line.split(" | ")[0][2:] for line in lines if line.startswith("| ")][1:]
    return found


def test_every_row_is_measured_and_kept(
    build: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.md"
    given = ("--sizes", "300KB", "--build", str(build), "--results", str(results), "--write")
    assert bench.main([*given, *SMALL, "--remark", "in a test"]) == 0
    printed = capsys.readouterr().out
    kept = results.read_text("utf-8")
    assert kept.startswith(report.HEADER)
    assert printed.strip() in kept
    rows = tables(kept)
    assert rows["A home of 300KB"] == [
        *("first sync", "no-op sync", "start: --version", "start: search error"),
        *("start: search, a question", "start: show", "start: stats", "start: recall, for a hook"),
        *("verify", "rebuild", "compact", "10 lines to 200 kB", "10 lines to 200 messages"),
        "rewrite of 200 kB",
    ]
    searches = [f"{name}, {scope}" for scope in ("prose", "tools") for name in SEARCHES]
    pages = ["list sessions", "stats", "tool_use", "status", "show, first page"]
    assert rows["Questions to a home of 300KB"] == [*searches, *pages]
    assert re.search(r"^## \d{4}-\d\d-\d\d \d\d:\d\d, \S+", kept, re.M)
    assert re.search(r"\d+ cores?, .+ Python .+, SQLite .+, orjson .+, best of 1, in a test", kept)
    assert "1 times: middle" in kept


def test_the_newest_results_stand_first(tmp_path: Path) -> None:
    results = tmp_path / "results.md"
    for number in range(3):
        report.write(f"## run {number}\n\ntext\n", results)
    sections = "\n\n".join(f"## run {number}\n\ntext" for number in (2, 1, 0))
    assert results.read_text("utf-8") == f"{report.HEADER}\n{sections}\n"


def test_a_table_of_costs_says_what_each_byte_costs() -> None:
    lines = [
        Line("first sync", Cost(2.0, 5.0, 90_000_000), 100_000_000, "note"),
        Line("no-op sync", Cost(0.1, 0.1, 30_000_000)),
    ]
    assert bench.costs("Title", lines) == (
        "### Title\n\n"
        "|  | wall | CPU | MB/s | CPU s/GB | peak |  |\n"
        "|---|--:|--:|--:|--:|--:|---|\n"
        "| first sync | 2.00 s | 5.00 s | 50.0 | 50.0 | 90 MB | note |\n"
        "| no-op sync | 0.10 s | 0.10 s |  |  | 30 MB |  |\n"
    )


def test_a_growing_transcript_ends_as_it_was(build: Path, tmp_path: Path) -> None:
    home = Homes(build).chat(100)
    growing = Growing(home, tmp_path / "copy", 3)
    (whole,) = home.glob("projects/*/*.jsonl")
    sizes = []
    for _ in range(3):
        sizes.append(growing.path.read_bytes().count(b"\n"))
        growing.grow()
    assert sizes == [100 - 3 * LINES, 100 - 2 * LINES, 100 - LINES]
    assert growing.path.read_bytes() == whole.read_bytes()
    growing.rewrite()
    assert sorted(growing.path.read_bytes()) == sorted(whole.read_bytes())
    assert growing.path.read_bytes() != whole.read_bytes()


def test_a_spoken_line_can_be_found(tmp_path: Path) -> None:
    """Else a watch would be waited for in vain."""
    home, database = tmp_path / "home", tmp_path / "assoc.db"
    chat.write(home, 10)
    (path,) = home.glob("projects/*/*.jsonl")
    with path.open("ab") as file:
        file.write(chat.spoken_line("zwatch1") + chat.spoken_line("zwatch2"))
    sync(database, [home])
    with sqlite3.connect(database) as connection:
        query = "select m.text from messages m join messages_fts f on f.rowid = m.id"
        found = connection.execute(f"{query} where messages_fts match 'zwatch2'").fetchall()
    assert found == [("zwatch2",)]


# -- comparing -----------------------------------------------------------------------------------


def test_a_comparison_shows_ratios_of_the_best_and_the_larger_spread() -> None:
    def runs(*walls: float) -> list[Run]:
        costs = [Line("first sync", Cost(wall, 2 * wall, 100)) for wall in walls]
        return [Run([line], [Answer("rare", "prose", 9.0, line.cost.wall, 1)]) for line in costs]

    page = compare.compared(runs(4.0, 5.0), runs(2.0, 2.2))
    row = "4.00 s | 2.00 s | 0.50 | 25% | 8.00 s | 4.00 s | 0.50 | 25% | 1.00"
    assert f"| first sync | {row} |" in page
    assert "| rare, prose | 4.00 | 2.00 | 0.50 | 25% |" in page


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout")
def test_a_commit_is_compared_with_this_checkout(
    build: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checkouts = []

    def started(program: Program, *_: object) -> Run:
        cost = program.run("--version")
        checkouts.append(program.checkout)
        return Run([Line("start: --version", cost)], [Answer("rare", "prose", 9.0, 4.0, 1)])

    monkeypatch.setattr(compare, "run", started)
    monkeypatch.setattr(compare, "measure", lambda *_: None)  # compiling both takes long
    assert compare.main(["HEAD", "--size", "300KB", "--build", str(build), *SMALL]) == 0
    page = capsys.readouterr().out
    assert tables(page) == {"Commands": ["start: --version"], "Questions": ["rare, prose"]}
    base, head = checkouts
    assert base.is_relative_to(build)
    assert head == ROOT
    assert not list(build.glob("run-*"))


# -- searching -----------------------------------------------------------------------------------


def outcome(kind: str, found: str, **expected: Any) -> search.Outcome:
    """Return the answer to a case: letters that stand for sessions, each shown as itself."""
    case = search.Case(kind, "the query", "demo", **expected)
    return search.Outcome(case, [(letter, f"shows {letter}") for letter in found])


def test_the_cases_of_searches_are_well_formed() -> None:
    cases = search.cases()
    assert len({case.query for case in cases}) == len(cases) >= 80
    for kind in search.KINDS:
        of_kind = [case for case in cases if case.kind == kind]
        assert sum(case.held_out for case in of_kind) == len(of_kind) // 3 > 0
    for case in cases:
        named = [*case.right, *case.also, *case.absent]
        assert case.kind in search.KINDS
        assert bool(case.right) == (case.kind != search.NOTHING), case
        assert len(set(named)) == len(named), case
        assert not case.literal or case.kind == "identifier", case


@pytest.mark.parametrize("home", ["demo", "corpus"])
def test_the_sessions_of_cases_exist_and_hold_what_is_looked_for(home: str, tmp_path: Path) -> None:
    if home not in search.homes():
        pytest.skip("ASSOC_REAL_CORPUS names no transcripts")
    sync(tmp_path / "assoc.db", search.homes()[home])
    held = "instr(lower(coalesce(m.text, m.tool_text)), lower(?))"
    with sqlite3.connect(tmp_path / "assoc.db") as connection:
        known = {key for (key,) in connection.execute("select session_key from sessions")}
        for case in search.cases():
            if case.home != home:
                continue
            assert known.issuperset([*case.right, *case.also, *case.absent]), case
            for key in case.right if case.kind == "identifier" else ():
                literal = case.literal or case.query
                assert connection.execute(
                    "select 1 from messages m join sessions s on s.id = m.session_id"
                    f" where s.session_key = ? and {held}", (key, literal),
                ).fetchone(), case  # fmt: skip


def test_ranks_recall_and_gain_are_those_of_a_ranking_made_by_hand() -> None:
    found = outcome("question", "xaybz", right=("a", "b"), also=("x",))
    assert found.rank == 2
    assert [found.recall(first) for first in (1, 2, 3, 5, 10)] == [0.0, 0.5, 0.5, 1.0, 1.0]
    gains = 1 / log2(2) + 2 / log2(3) + 2 / log2(5)
    assert found.gain == pytest.approx(gains / (2 / log2(2) + 2 / log2(3) + 1 / log2(4)))
    assert not found.has_failed
    best = outcome("question", "abx", right=("a", "b"), also=("x",))
    assert (best.rank, best.recall(1), best.gain) == (1, 1.0, pytest.approx(1.0))
    nothing = outcome("question", "", right=("a",))
    assert (nothing.rank, nothing.recall(10), nothing.gain) == (None, 0.0, 0.0)
    summary = search.summary([found, best, nothing])
    assert summary["MRR"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert summary["recall@5"] == pytest.approx(2 / 3)
    assert (summary["cases"], summary["empty"], summary["failed"]) == (3, 1, 1)


def test_a_search_is_certain_where_there_is_an_answer() -> None:
    right, wrong = outcome("question", "a", right=("a",)), outcome("nothing", "a")
    unsure = [replace(one, evidence="weak") for one in (right, wrong)]
    assert [one.is_certain for one in (right, wrong, *unsure)] == [True, False, False, True]
    assert search.missed([right, unsure[1]]) == []
    assert search.missed([unsure[0], wrong]) == [
        "Missed: certain of questions is 0.00, and should be 0.90.",
        "Missed: certain of nothings is 0.00, and should be 0.80.",
    ]
    assert search.missed([unsure[0]]) == []


def test_what_a_user_would_call_a_failure_depends_on_the_kind() -> None:
    assert not outcome("identifier", "xa", right=("a",), literal="SHOWS  x").has_failed
    assert outcome("identifier", "ax", right=("a",), literal="shows x").has_failed
    assert outcome("identifier", "a", right=("a",)).has_failed, "the literal is the query"
    unanswerable = outcome("nothing", "ab")
    assert unanswerable.has_failed, "a guess is shown as a fact"
    assert not replace(unanswerable, evidence="weak").has_failed
    assert not outcome("keyword", "wxyza", right=("a",)).has_failed
    assert outcome("keyword", "uwxyza", right=("a",)).has_failed
    assert not outcome("filter", "abcdefghijz", right=("a",), absent=("z",)).has_failed
    assert outcome("filter", "abcdefghiz", right=("a",), absent=("z",)).has_failed


def test_searches_that_miss_a_target_end_with_1(
    build: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ASSOC_REAL_CORPUS", raising=False)
    of_demo = {case.query: case for case in search.cases() if case.home == "demo"}

    def best(_: sqlite3.Connection, query: str) -> tuple[search.Ranking, str]:
        case = of_demo[query]
        return [(key, case.literal or query) for key in case.right], "strong"

    monkeypatch.setattr(search, "conversations", best)
    assert search.main(["--build", str(build)]) == 0
    page = capsys.readouterr().out
    skipped = len(search.cases()) - len(of_demo)
    assert f"{len(of_demo)} cases, {skipped} skipped" in page
    assert "| question, held out | " in page
    assert "Missed" not in page
    monkeypatch.setattr(search, "conversations", lambda connection, query: ([], "none"))
    assert search.main(["--build", str(build)]) == 1
    page = capsys.readouterr().out
    assert "Missed: recall@5 of questions is 0.00, and should be 0.90." in page
    listed = [line for line in page.splitlines() if line.endswith(" | not found |")]
    assert len(listed) == sum(not case.held_out for case in of_demo.values())


def test_a_search_finds_conversations_each_with_its_first_hit(tmp_path: Path) -> None:
    sync(tmp_path / "assoc.db", search.homes()["demo"])
    with closing(open_reader(tmp_path / "assoc.db")) as connection:
        found, evidence = search.conversations(connection, "crops.toml")
    assert evidence == "strong"
    assert found[0][0] == "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301"
    assert "crops.toml" in found[0][1]
    assert len(dict(found)) == len(found)


# -- peers ---------------------------------------------------------------------------------------

_FAKE = """#!{python}
import os, pathlib
user = pathlib.Path(os.environ["HOME"])
claude = pathlib.Path(os.environ["CLAUDE_CONFIG_DIR"])
assert claude == user / ".claude" and os.environ["DO_NOT_TRACK"] == "1"
files = sorted(claude.glob("projects/**/*.jsonl"))
with open(user / "index.db", "a") as out:
    out.write("x" * 100)
with open({log!r}, "a") as out:
    out.write(f"{{len(files)}} {{sum(path.stat().st_size for path in files)}}\\n")
"""


def test_a_peer_is_shown_a_private_copy_that_grows(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = peers.Peer("fake", "1", ("fake-search",), "index.db", "nothing")
    programs = build / "peers" / "fake-1" / "bin"
    programs.mkdir(parents=True)
    log = tmp_path / "log"
    fake = programs / "fake-search"
    fake.write_text(_FAKE.format(python=sys.executable, log=str(log)))
    fake.chmod(0o755)
    missing = peers.Peer("no-such-program-of-anybody", "1", ("none",), "index.db", "")
    monkeypatch.setattr(peers, "PEERS", (peer, missing))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    results = tmp_path / "results.md"
    given = ["--homes", "usual:300KB", "--growing", "200KB", "--repeat", "1", "--build", str(build)]
    assert peers.main([*given, "--write", "--results", str(results)]) == 0
    page = capsys.readouterr().out
    assert list(tables(page).values()) == [["assoc-ingest", "fake 1"], ["fake 1"]]
    assert "Could not be installed here, and is left out: no-such-program-of-anybody." in page
    assert page.strip() in results.read_text("utf-8")
    seen = [line.split() for line in log.read_text().splitlines()]
    assert len({count for count, _ in seen}) == 1
    sizes = [int(size) for _, size in seen]
    assert sizes[0] == sizes[1] == sizes[-2] < sizes[-1]
    shutil.rmtree(programs.parent)


def test_a_ratio_that_grew_since_the_last_kept_run_is_named() -> None:
    def section(first: str, peak: str) -> str:
        rows = [["fake 1", first, peak]]
        ratios = report.table("Ours as a multiple of theirs", ["", "first sync, CPU", "peak"], rows)
        return f"{report.table('Peers on a home of 1 MB, real', ['', 'a'], [['x', '1']])}\n{ratios}"

    kept = f"# Results\n\n## Today\n\n{section('1.00', '2.00')}\n## Before\n\n{section('9', '9')}"
    assert peers.worse(section("1.20", "2.10"), kept) == ["fake 1, first sync, CPU: 1.20, was 1.00"]
    assert peers.worse(section("0.90", "2.00"), kept) == []
    assert peers.worse(section("5.00", "5.00").replace("real", "usual"), kept) == []


def test_rollouts_of_codex_are_read_without_an_issue(tmp_path: Path) -> None:
    home, database = tmp_path / "codex", tmp_path / "codex.db"
    assert codex.write(home, 300_000) > 0
    sync(database, [home])
    lines = b"".join(path.read_bytes() for path in home.rglob("*.jsonl")).splitlines()
    with open_reader(database) as connection:
        (issues,) = connection.execute("select count(*) from issues").fetchone()
        (responses,) = connection.execute("select count(*) from responses").fetchone()
    assert issues == 0
    assert responses == sum(b'"token_count"' in line for line in lines) > 0
