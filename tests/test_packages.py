"""A source of an installed package is read like any other, and if it is faulty, nothing else is.

Where a test needs no package that is really installed, it has the two files that make one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from assoc_ingest_letters import Letters
from tests.support.cases import home_of
from tests.support.shell import Shell
from tests.support.writing import jsonl, user, write_bytes

from assoc_ingest.records import Message, Record
from assoc_ingest.source import (
    Claim,
    Context,
    Database,
    EntryLine,
    Gathered,
    Line,
    Listing,
    Recognition,
)
from assoc_ingest.sources import SOURCES
from assoc_ingest.sources.packages import FromPackage, Unusable, from_packages
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, dump, rows
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.verify import verify

ROOT = Path(__file__).parents[1]
Fresh = Callable[[], Path]
CASE = "../../docs/source-template/tests/cases/demonstration"
PACKAGE = "assoc-ingest-letters 1.0"
LETTERS = "from assoc_ingest_letters import Letters\n"


@pytest.fixture
def home(place: Path) -> Path:
    return home_of(CASE, place)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Puts a package with one source where Python looks for packages."""
    place = tmp_path / "site"
    monkeypatch.syspath_prepend(str(place))
    modules = set(sys.modules)

    def put(package: str, name: str, code: str, target: str = "Letters") -> None:
        facts = place / f"{package}-1.0.dist-info"
        facts.mkdir(parents=True)
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text(
            f"[assoc_ingest.sources]\n{name} = {package}:{target}\n"
        )
        (place / f"{package}.py").write_text(code)

    yield put
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def use(monkeypatch: pytest.MonkeyPatch, source: Letters) -> FromPackage:
    wrapped = FromPackage(source, PACKAGE)
    monkeypatch.setitem(SOURCES, "letters", wrapped)
    return wrapped


# -- loading -------------------------------------------------------------------------------------


def test_a_package_brings_a_source(install: Callable[..., None]) -> None:
    install("letter_reader", "letters", LETTERS)
    ((source,), unusable) = from_packages(["claude"])
    assert (source.name, source.label, source.package) == (
        "letters",
        "Letters",
        "letter_reader 1.0",
    )
    assert source.resume_command("2026-03-01") == ["quill", "--day", "2026-03-01"]
    assert source.retention_days == 90
    assert unusable == []


def test_without_packages_nothing_is_imported_to_find_them() -> None:
    assert from_packages([]) == ([], [])


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("letters", "import nothing_of_this_name", "ModuleNotFoundError: No module named"),
        ("letters", "raise SystemError", "SystemError"),
        ("letters", "Letters = 17", "TypeError: 'int' object is not callable"),
        ("letters", "class Letters(Letters): contract = 99", "for version 99 of the contract"),
        ("letters", "class Letters(Letters): contract = None", "for version None of the contract"),
        ("claude", "", "another source has this name"),
        ("Letters of mine", "", "its name must have 2 to 40 lower-case letters"),
        ("quills", "", "its attribute `name` is not the name of its entry point"),
        ("letters", "class Letters(Letters): label = None", "it has no `label`"),
        ("letters", "class Letters(Letters): known_lines = []", "are not a frozenset"),
        ("letters", "class Letters:\n    contract, name, label = 1, 'letters', 'L'\n"
         "    known_lines = frozenset()", "not derived from assoc_ingest.source.Source"),
    ],
)  # fmt: skip
def test_a_source_that_cannot_be_used_is_named_with_the_reason(
    name: str, code: str, reason: str, install: Callable[..., None]
) -> None:
    install("faulty", name, LETTERS + code)
    install("sound", "other", LETTERS + "class Other(Letters): name = 'other'", "Other")
    sources, (unusable,) = from_packages(["claude"])
    assert (unusable.name, unusable.package) == (name, "faulty 1.0")
    assert reason in unusable.reason
    assert [source.name for source in sources] == ["other"]


def test_what_cannot_be_used_is_said_by_sync_and_status(
    home: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SOURCES, "letters", FromPackage(Letters(), PACKAGE))
    unusable = [Unusable("quills", "quills 2.0", "ImportError: no ink")]
    monkeypatch.setattr(SOURCES, "_unusable", unusable)
    assert shell("sync", str(home)) == 0
    assert "the source quills of quills 2.0: ImportError: no ink" in shell.err
    assert shell("status") == 0
    assert "The source quills of quills 2.0 cannot be used: ImportError: no ink." in shell.out
    assert PACKAGE in shell.out
    assert shell("status", "--json") == 0
    told = json.loads(shell.out)
    assert told["unusable_sources"][0]["name"] == "quills"
    assert [row["package"] for row in told["sources"]] == [PACKAGE]


def test_what_a_package_read_stays_when_the_package_goes(
    home: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Letters())
    assert shell("sync", str(home)) == 0
    monkeypatch.delitem(SOURCES, "letters")
    before = dump(shell.database)
    assert shell("sync", str(home)) != 0  # nothing reads this directory any more
    assert shell("status") == 0
    assert "No installed package brings the source letters: what was read stays" in shell.out
    rebuild(shell.database)
    assert_same(dump(shell.database), before)
    assert shell("search", "frost") == 0
    assert "Which seeds are left" in shell.out


@pytest.mark.slow
def test_the_template_is_built_installed_read_and_tested(home: Path, tmp_path: Path) -> None:
    """As the author of a package does it, and the user of one."""
    ignored = shutil.ignore_patterns("__pycache__")
    template = shutil.copytree(ROOT / "docs" / "source-template", tmp_path / "copy", ignore=ignored)
    site = tmp_path / "site"

    def run(*command: str, **more: str) -> str:
        inherited = {name: os.environ[name] for name in os.environ if not name.startswith("PYTEST")}
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=template,
            env={**inherited, "PYTHONPATH": f"{site}{os.pathsep}{ROOT / 'ingest'}", **more},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    wheels = str(tmp_path / "wheels")
    run("pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, ".")
    (wheel,) = Path(wheels).glob("*.whl")
    run("pip", "install", "--no-deps", "--no-index", "--target", str(site), str(wheel))
    database = {"ASSOC_INGEST_DB": str(tmp_path / "assoc.db")}
    run("assoc_ingest", "sync", str(home), **database)
    assert PACKAGE in run("assoc_ingest", "status", **database)
    assert "frost" in run("assoc_ingest", "search", "frost", "--source", "letters", **database)
    expected = template / "tests" / "cases" / "demonstration" / "expected.json"
    before = expected.read_text("utf-8")
    expected.unlink()
    told = run("pytest", "-q", "-p", "no:cacheprovider", ASSOC_GOLDEN="1")
    assert re.search(r"^\d\d passed", told, re.M), told
    assert expected.read_text("utf-8") == before
    module = site / "assoc_ingest_letters.py"
    code = module.read_text("utf-8")
    assert "is_message=by in" in code
    module.write_text(code.replace("is_message=by in", "is_message=by not in"), "utf-8")
    with pytest.raises(AssertionError, match="a message that does not count"):
        run("pytest", "-q", "-p", "no:cacheprovider", "-k", "can_be_meant")


# -- homes ---------------------------------------------------------------------------------------


class Greedy(Letters):
    """Takes every directory for its home, and is a guest wherever it can be."""

    def recognises(self, listing: Listing) -> Recognition:
        return Recognition.GUEST

    def default_roots(self, environment: object, home: str | None) -> list[str]:
        return ["~", "/", str(home), "~/.letterbox"]


def test_no_package_takes_the_home_of_another_agent(
    place: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    greedy = use(monkeypatch, Greedy())
    database = fresh()
    line = jsonl(user("whose is this", "u1"))
    write_bytes(place / "home", "projects/-srv/0b7c2f4e-1111-4222-8333-444455556666.jsonl", line)
    sync(database, [place / "home"])
    assert rows(database, "select kind from sources") == [("claude",)]
    assert greedy.default_roots({}, str(Path.home())) == ["~/.letterbox"]


# -- a source that fails -------------------------------------------------------------------------

PLACES = ("recognises", "withholds", "descends", "claim", "shape", "default_roots")
OTHERS = ("classify", "complete_prefix", "resume_command", "whereabouts", "path_of", "project_key")


def failing(name: str) -> Letters:
    def fail(self: Letters, *arguments: object, **more: object) -> Any:
        raise RuntimeError(f"no {name}")

    return type("Failing", (Letters,), {name: fail})()


@pytest.mark.parametrize("name", [*PLACES, *OTHERS])
def test_whatever_fails_ends_no_sync_and_marks_nothing_as_gone(
    name: str, home: Path, place: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = write_bytes(
        place / "other", "projects/-srv/0b7c2f4e-1111-4222-8333-444455556666.jsonl",
        jsonl(user("still read", "u1")),
    )  # fmt: skip
    database = fresh()
    use(monkeypatch, Letters())
    sync(database, [home])
    before = rows(database, "select path, gone_at from files")
    use(monkeypatch, failing(name))
    (home / "letters" / "2026-03-03.jsonl").write_bytes(jsonl({"model": "quill-4"}))
    report = sync(database, [place / "other"])
    assert report.files_read == 1, claude
    report = sync(database, [])
    assert rows(database, "select path, gone_at from files where path like 'letters/%'") >= before
    told = [why for _, why in report.unreadable]
    if name in PLACES:
        assert f"the source letters of {PACKAGE} failed: RuntimeError: no {name}" in told
    check(database, place / "other")
    rebuild(database)
    assert rows(database, "select count(*) from messages")[0][0] > 5


class Unstable(Letters):
    """Fails at, or makes an impossible record of, each line that has the word."""

    def __init__(self, change: Callable[[list[Record]], list[Record]]) -> None:
        self._change = change

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        given = list(lines)
        records, context = super().read(claim, given, context)
        return (
            self._change(records) if any(b"Peas" in x.data for x in given) else records
        ), context


def _raises(records: list[Record]) -> list[Record]:
    raise KeyError("peas")


def _each(of: type, **values: object) -> Callable[[list[Record]], list[Record]]:
    def change(records: list[Record]) -> list[Record]:
        return [r._replace(**values) if isinstance(r, of) else r for r in records]

    return change


@pytest.mark.parametrize(
    "change",
    [
        _raises,
        lambda records: None,
        lambda records: [*records, ("a", "tuple")],
        lambda records: [*records, *records],
        _each(Message, kind=None),
        _each(Message, text="nul \0"),
        _each(Message, text="half \ud83d"),
        _each(Message, text=None),
        _each(Message, byte_offset=10**9),
        _each(Message, byte_offset=-1),
        _each(Message, block=2**70),
        _each(Message, timestamp=17),
    ],
)
def test_a_line_that_it_fails_at_is_an_issue_and_all_others_are_read(
    change: Callable[[list[Record]], list[Record]],
    home: Path,
    fresh: Fresh,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database, whole = fresh(), fresh()
    use(monkeypatch, Letters())
    sync(whole, [home])
    use(monkeypatch, Unstable(change))
    sync(database, [home])
    check(database, home)
    ((reason, offset, length, path),) = rows(
        database,
        "select i.reason, i.byte_offset, i.byte_length, f.path from issues i"
        " join files f on f.id = i.file_id",
    )
    assert reason.startswith(f"source letters of {PACKAGE} failed: ")
    line = (home / path).read_bytes()[offset : offset + length]
    assert b"Peas" in line
    count = "select count(*) from messages"
    assert rows(database, count)[0][0] == rows(whole, count)[0][0] - 1
    assert verify(database).findings == []


def test_a_good_source_is_read_as_if_it_were_the_programs_own(
    home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, brought = fresh(), fresh()
    monkeypatch.setitem(SOURCES, "letters", Letters())
    sync(own, [home])
    use(monkeypatch, Letters())
    sync(brought, [home])
    assert_same(dump(own), dump(brought))


def test_an_entry_whose_lines_cannot_be_made_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without lines it would be empty, and what was read of it would be lost."""

    def torn(contents: object) -> Iterator[EntryLine]:
        yield "letter", 1, {}, b"{}"
        raise ValueError("no ink")

    class Bound(Letters):
        database = Database("select 1", (), (), lines=torn)

        def gather(self, members: object, content: object) -> list[Gathered]:
            return [Gathered("a", None, [], torn)]

    source = use(monkeypatch, Bound())
    (entry,), layout = source.gather([], lambda parts: b""), source.layout("letters.db")
    assert layout is not None
    assert layout.lines is not None
    for lines in (entry.lines, layout.lines):
        source.failure = None
        with pytest.raises(OSError, match="no ink"):
            list(lines([]))
        assert source.failure is not None


def test_what_a_store_fails_at_is_no_failure_of_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read() -> Iterator[EntryLine]:
        yield "letter", 1, {}, b"{}"
        raise OSError("the disk is gone")

    class Bound(Letters):
        database = Database("select 1", (), (), lines=iter)

    source = use(monkeypatch, Bound())
    layout = source.layout("letters.db")
    assert layout is not None
    assert layout.lines is not None
    with pytest.raises(OSError, match="the disk is gone"):
        list(layout.lines(read()))
    assert source.failure is None
