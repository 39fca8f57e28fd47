"""A disk that is full or broken ends a sync with one sentence, and costs no row.

Any write to the database may fail: the program exits with 5, the database is as some commit left
it and can be read, and the next sync on a mended disk ends with the rows of a sync from scratch.
"""

from __future__ import annotations

import errno
import io
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from tests.faults.amounts import spread, times
from tests.faults.changing import Fresh, Home, assert_ends_as_from_scratch, state, states_of_commits
from tests.faults.preforked import Preforked, compiler, preforked
from tests.support.child import Child
from tests.support.writing import SESSION
from tests.test_forget import private_home, traces

from assoc_ingest.__main__ import main
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, dump
from assoc_ingest.testing.promises import read_in_pieces
from assoc_ingest.upkeep.compact import compact
from assoc_ingest.upkeep.forget import tombstones

resource = pytest.importorskip("resource", reason="of POSIX systems only")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="of Linux only")

POINTS = 25
"""Calls that fail, others for each error and for once and for ever, beside the first and last."""

MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Preforked]:
    if compiler() is None:
        pytest.skip("no C compiler: apt-get install gcc libc6-dev")
    with preforked(tmp_path_factory.mktemp("shim")) as running:
        yield running


@pytest.fixture
def grown(place: Path, fresh: Fresh) -> tuple[Home, Path]:
    """A home that changed since it was synced, in all the ways that a sync has to follow."""
    home, database = Home(place / "home", 8), fresh()
    sync(database, [home.root])
    for _ in range(3):
        home.change()
    home.rewrite()
    return home, database


@pytest.mark.slow
@pytest.mark.parametrize("for_ever", [False, True], ids=["once", "for-ever"])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_any_write_to_the_database_may_fail(
    error: int,
    for_ever: bool,
    grown: tuple[Home, Path],
    fresh: Fresh,
    place: Path,
    program: Preforked,
) -> None:
    home, before = grown
    database = place / "index.db"
    arguments = ["sync", str(home.root), "--db", str(database)]
    shutil.copy(before, database)
    with states_of_commits(database) as commits, read_in_pieces(chunk=1500, batch=2000):
        sync(database, [home.root])
    assert len(commits) > 4
    oracle = fresh()
    sync(oracle, [home.root])
    expected = dump(oracle)
    shutil.copy(before, database)
    clean = program.run(arguments)
    assert (clean.code, clean.failures) == (0, 0), clean.words
    kind = 2 * for_ever + (error == errno.EIO)
    points = {1, clean.calls, *spread(clean.calls, 4 * times(POINTS))[kind::4]}
    refused = 0
    for call in sorted(points):
        shutil.copy(before, database)
        run = program.run(arguments, call=call, error=error, for_ever=for_ever)
        assert run.failures >= 1, f"call {call} did not come"
        assert_one_sentence_or_nothing_lost(run.code, run.words, database, expected)
        refused += run.code == 5
        open_reader(database).close()
        check(database)
        assert state(database) in commits, f"call {call} left half of a batch"
        with read_in_pieces(chunk=1500, batch=2000):
            sync(database, [home.root])
        check(database, home.root)
        assert_same(dump(database), expected)
        assert sync(database, [home.root]).files_read == 0
        for path in place.glob("index.db*"):
            path.unlink()
    assert refused > len(points) * 0.8 - 1


def assert_one_sentence_or_nothing_lost(
    code: int, words: str, database: Path, expected: dict
) -> None:
    """A failure that cost something is told; one while tidying up after the last commit is not."""
    assert "Traceback" not in words, words
    if code == 0:
        assert_same(dump(database), expected)
        return
    assert code == 5, words
    lines = words.strip().splitlines()
    assert len(lines) == 1, words
    assert lines[0].startswith("Error: "), words


@pytest.mark.slow
@pytest.mark.parametrize("is_built", [False, True], ids=["in-place", "built"])
def test_a_database_may_fail_while_it_is_made(
    is_built: bool, fresh: Fresh, place: Path, program: Preforked
) -> None:
    """Neither an empty file nor half a schema is in the way of the next sync."""
    home, database = Home(place / "home", 9), place / "new.db"
    arguments = ["sync", str(home.root), "--db", str(database)]
    clean = program.run(arguments, is_built=is_built)
    assert clean.code == 0, clean.words
    refused = 0
    for call in spread(clean.calls, times(20, 5)):
        for path in place.glob("new.db*"):
            path.unlink()
        run = program.run(
            arguments, call=call, error=errno.ENOSPC, for_ever=call % 2 == 0, is_built=is_built
        )
        assert run.failures >= 1
        assert run.code in (0, 5), run.words
        assert "Traceback" not in run.words
        refused += run.code == 5
        if is_built and database.exists():
            check(database)
        assert_ends_as_from_scratch(database, home.root, fresh)
        assert not Path(f"{database}-unfinished").exists()
    assert refused > times(20, 5) * 0.7


@pytest.mark.slow
@pytest.mark.parametrize("for_ever", [False, True], ids=["once", "for-ever"])
def test_a_disk_may_fail_while_something_is_forgotten(
    for_ever: bool, place: Path, program: Preforked
) -> None:
    """It is all there, or gone from the tables: then `compact` ends what was begun."""
    home, whole, database = private_home(place / "home"), place / "whole.db", place / "index.db"
    sync(whole, [home])
    before = dump(whole)
    shutil.copy(whole, database)
    clean = program.run(["forget", SESSION, "--db", str(database)])
    assert clean.code == 0, clean.words
    after, outcomes = dump(database), set()
    for call in spread(clean.calls, times(12, 8)):
        for path in place.glob("index.db*"):
            path.unlink()
        shutil.copy(whole, database)
        run = program.run(
            ["forget", SESSION, "--db", str(database)],
            call=call, error=errno.ENOSPC, for_ever=for_ever,
        )  # fmt: skip
        assert run.failures >= 1, f"call {call} did not come"
        assert run.code in (0, 5), run.words
        assert "Traceback" not in run.words, run.words
        check(database)
        if not tombstones(database):
            assert_same(dump(database), before)
            assert run.code == 5
            outcomes.add("nothing")
            continue
        assert SESSION in run.words, "what is gone is told, whatever came after"
        outcomes.add("forgotten" if run.code == 0 else "begun")
        if any(stone.is_pending for stone in tombstones(database)):
            assert "To remove them: assoc-ingest compact" in run.words
            compact(database)
        assert_same(dump(database), after)
        assert traces(database) == []
    assert {"nothing", "begun"} <= outcomes


# -- no room -------------------------------------------------------------------------------------


def sync_as_a_user(home: Path, database: Path, limit: int | None = None) -> tuple[int, str]:
    """Run `sync` in tiny pieces in a process of its own; return its exit code and its words."""

    def run() -> tuple[int, str]:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        words = io.StringIO()
        with redirect_stderr(words), read_in_pieces(chunk=1500, batch=2000):
            code = main(["sync", str(home), "--db", str(database)])
        return code, words.getvalue()

    answer = Child(run).result()
    assert isinstance(answer, tuple), answer
    return answer


@pytest.mark.slow
def test_a_limit_of_the_size_of_files_is_a_full_disk(
    grown: tuple[Home, Path], fresh: Fresh, place: Path
) -> None:
    home, before = grown
    database, refused = place / "index.db", 0
    largest = before.stat().st_size + 12 * 65536
    for limit in range(0, largest, largest // times(24, 6)):
        shutil.copy(before, database)
        code, words = sync_as_a_user(home.root, database, limit)
        assert code in (0, 5), words
        if code == 5:
            refused += 1
            assert words.startswith("Error: "), words
            assert "Traceback" not in words
        check(database)
        assert_ends_as_from_scratch(database, home.root, fresh)
    assert refused >= times(4)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mounts file systems of a few mebibytes."""
    mounted: list[Path] = []

    def mount(size: int) -> Path:
        target = tmp_path / f"disk-{len(mounted)}"
        target.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(target)]
        if (
            shutil.which("mount") is None
            or subprocess.run(command, stderr=subprocess.DEVNULL).returncode
        ):
            pytest.skip("mounting a small disk needs the rights of root")
        mounted.append(target)
        return target

    yield mount
    for target in mounted:
        subprocess.run(["umount", str(target)], check=True)


def test_a_full_disk_ends_a_sync_and_can_be_read(
    grown: tuple[Home, Path], fresh: Fresh, small_disk: Callable[[int], Path]
) -> None:
    home, before = grown
    disk = small_disk(before.stat().st_size // MEBIBYTE * MEBIBYTE + 3 * MEBIBYTE)
    database, ballast = disk / "index.db", disk / "ballast"
    shutil.copy(before, database)
    ballast.write_bytes(b"x" * (shutil.disk_usage(disk).free - 8192))
    code, words = sync_as_a_user(home.root, database)
    assert code == 5, words
    assert words.count("\n") == 1, words
    assert "has free space" in words, words
    assert shutil.disk_usage(disk).free < 32768  # not even room for what readers share
    assert_readable(database)
    ballast.unlink()
    assert_ends_as_from_scratch(database, home.root, fresh)


@pytest.mark.slow
def test_a_disk_that_fills_up_keeps_what_was_committed(
    grown: tuple[Home, Path], fresh: Fresh, small_disk: Callable[[int], Path]
) -> None:
    """Some batches of the sync have room, then one has none."""
    home, before = grown
    for _ in range(20):
        home.change()
    disk = small_disk(before.stat().st_size + 3 * MEBIBYTE)
    database, ballast = disk / "index.db", disk / "ballast"
    shutil.copy(before, database)
    ballast.write_bytes(b"x" * (shutil.disk_usage(disk).free - 2 * MEBIBYTE))
    code, words = sync_as_a_user(home.root, database)
    assert code == 5, words
    assert_readable(database)
    assert state(database) != state(before), "not even one batch had room"
    ballast.unlink()
    assert_ends_as_from_scratch(database, home.root, fresh)


def assert_readable(database: Path) -> None:
    """The commands that read work, on the full disk."""
    said = Child(lambda: main(["search", "text", "--db", str(database)])).result()
    assert said == 0
    reader = open_reader(database)
    assert reader.execute("select count(*) from messages").fetchone()[0] > 0
    reader.close()
