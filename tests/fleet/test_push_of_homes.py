"""What agents left on a machine is on the server after a push, row by row, and stays so."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleet import MadeMemory, on_server
from tests.support.writing import assistant, call, jsonl, result, user, wait_for_clock

from assoc_ingest.errors import NotFoundError
from assoc_ingest.fleet.projection import EVERYTHING, KEYED, PLACED, Local, Masks
from assoc_ingest.fleet.push import Report, push
from assoc_ingest.fleet.server import Server
from assoc_ingest.fleet.state import place_of
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync
from assoc_ingest.upkeep.forget import Target, forget

DEMO = Path(__file__).parents[1] / "demo"


class Home:
    """A database of agents' files, pushed with everything in scope."""

    def __init__(self, database: Path, connection: Any) -> None:
        self.database = database
        self.connection = connection
        self.memory = MadeMemory()

    def push(self, **options: Any) -> Report:
        """Push, and let the server have what the projection of the whole gives."""
        with self.snapshot() as local:
            report = push(Server(self.connection), local, self.memory, **options)
        there = on_server(self.connection, self.memory.uuid)
        assert _but_syncs(there) == _but_syncs(self.whole())
        return report

    @contextmanager
    def snapshot(self) -> Iterator[Local]:
        """The local side of a push."""
        with closing(open_reader(self.database)) as reader:
            yield Local(reader, EVERYTHING, Masks(is_on=False))

    def whole(self) -> dict[str, list[Any]]:
        """Everything that the projection gives."""
        tables: dict[str, list[Any]] = {t.name: [] for t in (*PLACED, *KEYED)}
        tables |= {"files": [], "frames": []}
        with self.snapshot() as local:
            for file in local.files(None):
                content = local.content(file)
                tables["files"].append(content.attributes)
                for frame in content.frames:
                    digests = (frame.digest, frame.rows_digest)
                    tables["frames"].append((file.file_key, frame.start, frame.data, *digests))
                    for name, rows in frame.rows.items():
                        tables[name] += [(file.file_key, *row) for row in rows]
            for found in local.keyed(None):
                tables[found.table] += found.rows
        return {name: sorted(rows, key=repr) for name, rows in tables.items()}


def _but_syncs(tables: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Leave out when a source was last synced: alone, that is no reason to push."""
    names = next(table.names for table in KEYED if table.name == "sources")
    place = names.index("last_synced_at")
    rows = [(*row[:place], *row[place + 1 :]) for row in tables["sources"]]
    return tables | {"sources": rows}


@pytest.fixture
def home(tmp_path: Path, database: Any) -> Home:
    """The demonstration data."""
    for place in DEMO.iterdir():
        shutil.copytree(place, tmp_path / "homes" / place.name)
    place_of(tmp_path / "a.db").touch()  # else nothing notes what changes
    sync(tmp_path / "a.db", sorted((tmp_path / "homes").iterdir()))
    return Home(tmp_path / "a.db", database)


def test_everything_of_every_agent_is_on_the_server(home: Home) -> None:
    report = home.push()
    found = home.whole()
    assert report.is_full
    assert {name for name, rows in found.items() if not rows} == {"agent_lines", "issues", "notes"}
    assert home.push().calls == 0
    report = home.push(is_full=True)
    assert (report.frames, report.rows, report.deleted) == (0, 0, 0)


def told(second: int, text: str, uuid: str, session: str) -> bytes:
    """One line that a person said, with a call and its result behind it."""
    return jsonl(
        user(text, uuid, second=second, sessionId=session, cwd=f"/srv/{session[:2]}"),
        assistant([call(f"t{uuid}", "Bash", command=text)], f"a{uuid}", id=f"m{uuid}"),
        user([result(f"t{uuid}", text)], f"r{uuid}", sessionId=session),
    )


SESSIONS = [f"{letter * 8}-3b72-4d18-9c44-70a2d6b8e301" for letter in "abc"]


class Files:
    """Transcripts, and what can happen to one."""

    def __init__(self, root: Path, database: Path, chance: random.Random) -> None:
        self.root, self.database, self.chance = root, database, chance
        self.steps = [self.grow] * 5 + [self.copy, self.rewrite, self.remove, self.forget]

    def path(self, session: str) -> Path:
        """Return the file of a session."""
        place = self.root / "projects" / f"-srv-{session[:2]}" / f"{session}.jsonl"
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def grow(self, session: str, number: int) -> None:
        """Append lines."""
        with self.path(session).open("ab") as file:
            file.write(told(number, f"said {number}", f"u{number}", session))

    def copy(self, session: str, number: int) -> None:
        """Append what another one has, as a fork does."""
        other = self.chance.choice(SESSIONS)
        if self.path(other).exists():
            with self.path(session).open("ab") as file:
                file.write(self.path(other).read_bytes())

    def rewrite(self, session: str, number: int) -> None:
        """Replace it."""
        self.path(session).write_bytes(told(number, f"anew {number}", f"n{number}", session))

    def remove(self, session: str, number: int) -> None:
        """Delete it."""
        self.path(session).unlink(missing_ok=True)

    def forget(self, session: str, number: int) -> None:
        """Forget it with its copies, if it was not already."""
        target = Target(session, root=None)
        with suppress(NotFoundError):
            forget(self.database, target, with_copies=True, dry_run=False, announce=lambda _: None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_pushing_after_every_change_comes_to_the_same_as_pushing_once(
    seed: int, tmp_path: Path, database: Any
) -> None:
    """Files grow, are copied into others, moved, rewritten, removed and forgotten."""
    chance, root = random.Random(seed), tmp_path / "home"
    home = Home(tmp_path / "a.db", database)
    files = Files(tmp_path / "home", home.database, chance)
    for name in SESSIONS:
        files.grow(name, 0)
    for number in range(1, 16):
        wait_for_clock(tmp_path)
        sync(home.database, [root])
        if chance.random() < 0.7:
            home.push()
        chance.choice(files.steps)(chance.choice(SESSIONS), number)
    sync(home.database, [root])
    home.push()
    assert home.push(is_full=True).frames == 0
