"""A source needs nothing but itself: an invented one goes all the way, and keeps all promises.

It is that of `docs/source-template`, and registered here alone, with what a source of the program
brings besides: `source.json` and the page for its users, in `tests/support/letters_box`. Its lines
need what earlier ones said: the model is stated once, and what was spent is cumulative.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from assoc_ingest_letters import Letters
from tests import test_answers as answers
from tests import test_conformance as conformance
from tests import test_golden as golden
from tests.support.cases import GROUPS, home_of
from tests.support.shell import Shell
from tests.support.web import Site
from tests.support.writing import SESSION

from assoc_ingest.files.changes import replay
from assoc_ingest.files.exclusions import log_without
from assoc_ingest.files.tail import CONTEXT_TOO_LARGE, Parser, Stretch, lines_of
from assoc_ingest.records import Message, Usage
from assoc_ingest.source import MAX_CONTEXT, Claim, Context, Line
from assoc_ingest.sources import SOURCES
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_same, check, dump, rows
from assoc_ingest.testing.promises import read_in_pieces, touch
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.verify import verify

Fresh = Callable[[], Path]
CASE = "../../docs/source-template/tests/cases/demonstration"
GROUP = f"{Letters.name}-0"
FIRST, SECOND = "2026-03-01", "2026-03-02"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, Letters.name, Letters())
    monkeypatch.setitem(GROUPS, GROUP, [CASE])


@pytest.fixture
def home(place: Path) -> Path:
    return home_of(CASE, place)


# -- what later lines need of earlier ones -------------------------------------------------------

SPENT = """
select s.session_key, r.model, r.input_tokens, r.output_tokens
from responses r join sessions s on s.id = r.session_id order by s.session_key, r.byte_offset
"""
EACH = [
    (FIRST, "quill-1", 100, 20),
    (FIRST, "quill-1", 160, 15),
    (FIRST, "quill-1", 170, 17),
    (SECOND, "quill-2", 90, 9),
    (SECOND, "quill-2", 120, 12),
    (SECOND, "quill-3", 130, 8),
]


def test_the_model_and_what_was_spent_before_come_from_earlier_lines(
    home: Path, fresh: Fresh
) -> None:
    database = fresh()
    sync(database, [home])
    assert rows(database, SPENT) == EACH


@pytest.mark.slow
def test_a_sync_after_each_line_gives_the_same_and_keeps_what_was_said(
    home: Path, fresh: Fresh
) -> None:
    database, path = fresh(), home / "letters" / f"{SECOND}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    kept = []
    for count in range(len(lines) + 1):
        path.write_bytes(b"".join(lines[:count]))
        touch(path)
        sync(database, [home])
        ((context,),) = rows(database, f"select context from files where path like '%{SECOND}%'")
        kept.append(json.loads(str(context)) if context is not None else None)
    assert kept[0] is None
    assert kept[1] == kept[2] == {"model": "quill-2"}
    assert kept[-1] == {"model": "quill-3", "spent": [340, 29]}
    assert rows(database, SPENT) == EACH


def test_a_rewritten_file_begins_without_what_its_old_lines_said(home: Path, fresh: Fresh) -> None:
    database, path = fresh(), home / "letters" / f"{FIRST}.jsonl"
    sync(database, [home])
    path.write_bytes(b"\n".join(path.read_bytes().split(b"\n")[1:]))  # without the model
    touch(path)
    sync(database, [home])
    assert [row[1:] for row in rows(database, SPENT)][:3] == [
        (None, 100, 20), (None, 160, 15), (None, 170, 17),
    ]  # fmt: skip
    check(database, home)


def test_rows_derived_again_from_the_archive_know_what_earlier_lines_said(
    home: Path, fresh: Fresh
) -> None:
    database = fresh()
    sync(database, [home])
    before = dump(database)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("update files set context = null")
    with read_in_pieces(150, batch=150):
        rebuild(database)
    assert_same(dump(database), before)
    assert {row[0] for row in rows(database, "select context is null from files")} == {0}


def test_a_kept_context_that_the_bytes_do_not_give_is_found(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    assert not [finding for finding in verify(database).findings]
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute('update files set context = \'{"model":"another"}\'')
    assert {finding.check for finding in verify(database).findings} == {"context"}


@pytest.mark.parametrize("is_cut", [False, True], ids=["one stretch", "a stretch for each line"])
def test_a_line_that_is_left_out_leaves_nothing_to_the_lines_after_it(is_cut: bool) -> None:
    """Its archived bytes are spaces: what is read again from them knows nothing of it either."""
    source, claim = SOURCES[Letters.name], Claim(Letters.name, "transcript")
    lines = [
        {"model": "quill-1", "desk": "/srv/garden"},
        {"by": "quill", "words": "First.", "spent": [100, 20]},
        {"by": "quill", "words": f"About {SESSION}.", "spent": [500, 90], "model": "quill-9"},
        {"by": "quill", "words": "Last.", "spent": [600, 100]},
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    stretches = [Stretch(line.start, line.data, [line]) for line in lines_of(0, data)]
    parser, archived, read = Parser(source, claim), b"", []
    for stretch in stretches if is_cut else [Stretch(0, data, lines_of(0, data))]:
        kept, records = log_without([SESSION], parser, stretch)
        archived += kept + b"\n" * is_cut
        read += records
    (replayed,) = replay(source, claim, [archived])
    assert len(archived) == len(data)
    assert parser.context == replayed.context
    for kind in (Message, Usage):
        assert [r for r in read if isinstance(r, kind)] == [
            r for r in replayed.records if isinstance(r, kind)
        ]
    spent = [(r.model, r.input_tokens) for r in read if isinstance(r, Usage)]
    assert spent == [("quill-1", 100), ("quill-1", 500)]


def test_a_context_without_end_is_an_issue_and_is_not_kept(
    home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hoarder(Letters):
        def read(
            self, claim: Claim, lines: Iterator[Line], context: Context
        ) -> tuple[list[object], Context]:
            records, _ = super().read(claim, lines, context)
            return records, {"all": "x" * MAX_CONTEXT}

    monkeypatch.setitem(SOURCES, "letters", Hoarder())
    database = fresh()
    sync(database, [home])
    assert rows(database, "select distinct reason from issues") == [(CONTEXT_TOO_LARGE,)]
    assert rows(database, "select distinct context from files") == [(None,)]


# -- what it costs to add one --------------------------------------------------------------------

ROOT = Path(__file__).parents[1]
REGISTRY = "ingest/assoc_ingest/sources/__init__.py"
PROMISES = (
    # Whatever looks at all sources, but of each only what concerns this one.
    "tests/test_golden.py", "tests/test_answers.py", "tests/test_conformance.py",
    "tests/test_demo.py", "tests/test_shape.py", "tests/test_private_files.py",
    "tests/test_bounds.py", "-k",
    "letters or ((test_demo or test_shape) and (source or systems or demonstrates))"
    " or claims_nothing or find_out_whose or has_a_worst_text",
)  # fmt: skip


def with_letters(tree: Path) -> Path:
    """Copy the project and add the source to it as a contributor would."""
    left_out = shutil.ignore_patterns(".*", "__pycache__", "node_modules")
    shutil.copytree(ROOT, tree, ignore=left_out)
    box, template = tree / "tests" / "support" / "letters_box", tree / "docs" / "source-template"
    code = (
        (template / "src" / "assoc_ingest_letters.py")
        .read_text("utf-8")
        .replace("assoc_ingest.sources.", ".")
    )
    code = code.replace("from assoc_ingest.", "from ..")
    (tree / "ingest/assoc_ingest/sources/letters.py").write_text(code, "utf-8")
    (box / "page.md").rename(tree / "docs" / "sources" / "letters.md")
    shutil.copytree(box, tree / "tests" / "sources" / "letters")
    shutil.copytree(
        template / "tests" / "cases", tree / "tests" / "sources" / "letters", dirs_exist_ok=True
    )
    registry = (tree / REGISTRY).read_text("utf-8")
    last = '    "opencode": "OpenCode",\n'
    assert last in registry
    registry = registry.replace(last, f'{last}    "letters": "Letters",\n')
    (tree / REGISTRY).write_text(registry, "utf-8")
    return tree


@pytest.mark.slow
def test_it_costs_a_module_a_line_and_what_it_brings(tmp_path: Path) -> None:
    """No other file has to be edited, and no expected answer of another test changes."""
    tree = with_letters(tmp_path / "tree")
    paths = os.pathsep.join([str(tree / "ingest"), str(tree)])
    environment = {**os.environ, "PYTHONPATH": paths}

    def run(*command: str) -> str:
        arguments = [sys.executable, "-m", *command]
        done = subprocess.run(
            arguments, cwd=tree, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *PROMISES)
    run("cogapp", "-r", "-I", ".", "docs/sources.md")
    page = (tree / "docs" / "sources.md").read_text("utf-8")
    assert "| `letters` | An invented agent, Letters" in page
    assert "## Letters\n\nIts home is `~/.letterbox`" in page


def test_the_queries_are_answered_from_what_it_demonstrates(
    fresh: Fresh, place: Path, request: pytest.FixtureRequest
) -> None:
    golden.test_a_home_becomes_the_expected_rows(CASE, fresh, place / "rows", request)
    answers.test_the_queries_are_answered_from_what_a_source_demonstrates(
        CASE, fresh, place / "answers", request
    )


# -- the promises of every source ----------------------------------------------------------------


@pytest.mark.slow
def test_it_conforms(fresh: Fresh, tmp_path: Path) -> None:
    conformance.test_syncing_twice_changes_nothing(GROUP, fresh, tmp_path / "twice")
    for chunk, batch in ((1, 1), (150, 3000)):
        conformance.test_the_size_of_the_pieces_does_not_matter(
            GROUP, chunk, batch, fresh, tmp_path / f"pieces-{chunk}"
        )
    conformance.test_entries_of_lists_stand_in_documents_only(GROUP, tmp_path / "entries")
    conformance.test_a_log_may_be_cut_at_any_line(GROUP, fresh, tmp_path / "lines")
    for turn in (0, 1):
        conformance.test_a_file_replaced_by_rename_is_read_as_what_it_is(
            GROUP, turn, fresh, tmp_path / f"rename-{turn}"
        )


@pytest.mark.parametrize("is_reversed", [True, False])
def test_it_may_come_in_any_order(is_reversed: bool, fresh: Fresh, place: Path) -> None:
    conformance.test_the_order_in_which_files_come_does_not_matter(GROUP, is_reversed, fresh, place)


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(len(conformance.CHANGES)))
def test_a_rewritten_day_leaves_no_old_rows(turn: int, fresh: Fresh, place: Path) -> None:
    conformance.test_a_rewritten_history_leaves_no_old_rows(GROUP, turn, fresh, place)


@pytest.mark.slow
def test_it_may_be_cut_anywhere(template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "CASES", [CASE])
    conformance.test_a_log_may_be_cut_anywhere(template=template)


# -- all the way ---------------------------------------------------------------------------------


def test_a_day_goes_on_from_the_one_that_its_lines_state(home: Path, fresh: Fresh) -> None:
    forks = (
        "select s.session_key, o.session_key from sessions s join sessions o on o.id ="
        " s.forked_from"
    )
    database = fresh()
    sync(database, [home])
    assert rows(database, forks) == [(SECOND, FIRST)]
    later = home / "letters" / f"{FIRST}.jsonl"
    hidden = later.rename(home / "hidden")
    database = fresh()
    sync(database, [home])
    assert rows(database, forks) == []
    hidden.rename(later)
    sync(database, [home])  # the day that it answers came last
    assert rows(database, forks) == [(SECOND, FIRST)]


def test_a_call_counts_for_each_file_that_it_changes(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    assert rows(database, "select name, action, target, status from tool_calls order by id") == [
        ("mend", "edit", "/srv/garden/seeds.md", "ok"),
        ("peruse", "read", "/srv/garden/seeds.md", "error"),
    ]


@pytest.mark.slow
def test_it_is_found_listed_shown_counted_and_resumed(home: Path, shell: Shell) -> None:
    assert shell("sync", str(home)) == 0
    assert shell("search", "frost", "--source", "letters") == 0
    assert "Which seeds are left from the [frost]?" in shell.out
    listed = shell.items("list", "sessions")
    assert [(row["session_key"], row["source"], row["resume"]) for row in listed] == [
        (SECOND, "letters", f"cd /srv/garden && quill --day {SECOND}"),
        (FIRST, "letters", f"cd /srv/garden && quill --day {FIRST}"),
    ]
    assert shell("show", SECOND) == 0
    assert f"Resume: cd /srv/garden && quill --day {SECOND}" in shell.out
    assert FIRST in shell.out
    assert "Peas, I should think." in shell.out
    edited = shell.items("query", "most_edited_files")
    assert {row["file"] for row in edited} == {"/srv/garden/seeds.md", "/srv/garden/frost.md"}
    assert shell("stats", "--by", "model") == 0
    assert "quill-3" in shell.out
    kept = shell.items("query", "retention", "-p", "days", "100000")
    assert len(kept) == 2
    assert shell("verify") == 0
    assert shell("search", "--help") == 0
    assert "letters" in shell.out


def test_its_home_is_looked_for_where_it_says(fresh: Fresh) -> None:
    home_of(CASE, Path.home()).rename(Path.home() / ".letterbox")
    assert sync(fresh(), [], SyncOptions(source="letters")).files_read == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Datasette's own
def test_its_pages_are_there(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    site = Site(database)
    name = database.stem
    day = site.get(f"/{name}/-/session/{SECOND}").words
    assert "Peas, I should think." in day
    assert f"cd /srv/garden && quill --day {SECOND}" in day
    assert FIRST in day
    status = site.get(f"/{name}/-/status").words
    assert "Letters: old files are deleted when the agent starts" in status
    assert "mend" in site.get(f"/{name}/-/stats?by=tool&when=all").words
    found = site.get("/-/assoc/search?q=frost&source=letters").words
    assert "Which seeds are left" in found
    assert "letters" in found
