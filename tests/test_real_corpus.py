"""Real homes are read to the last byte, and their tokens counted as the format says.

Needs transcripts of real people: ASSOC_REAL_CORPUS names a directory with `homes/*`, each as
`~/.claude` would be, and `growth/<session>/NN.jsonl`, versions of a file as it grew. What is
expected is calculated here from the bytes, sharing no code with the program.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.counting import Tokens, objects, requests_of, response_key

from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_same, check, dump, rows

CORPUS = Path(os.environ.get("ASSOC_REAL_CORPUS", "/nowhere"))
HOMES = sorted(CORPUS.glob("homes/*"))
GROWTH = sorted(CORPUS.glob("growth/*"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HOMES, reason="ASSOC_REAL_CORPUS names no transcripts"),
]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All homes in one database."""
    path = tmp_path_factory.mktemp("real") / "index.db"
    sync(path, HOMES)
    return path


def transcripts() -> Iterator[tuple[Path, str]]:
    """Yield the transcripts of all homes: (home, path in it)."""
    for home in HOMES:
        for path in sorted(home.glob("projects/**/*.jsonl")):
            if path.stem != "journal":
                yield home, str(path.relative_to(home))


def test_the_estimate_of_output_is_as_near_as_the_documentation_says(database: Path) -> None:
    """Of sessions with complete counts, each calibrated on the other sessions."""
    known = rows(
        database,
        "select session_id, model, output_tokens, written_bytes from responses"
        " where partial = 0 and written_bytes > 0",
    )
    sums: dict[int, list[float]] = {}
    for session, model, tokens, written in known:
        others = [row for row in known if row[0] != session]
        alike = [row for row in others if row[1] == model]
        alike = alike if len(alike) >= 20 else others
        of_session = sums.setdefault(session, [0, 0])
        of_session[0] += tokens
        of_session[1] += written * sum(row[2] for row in alike) / sum(row[3] for row in alike)
    errors = sorted(abs(about / tokens - 1) for tokens, about in sums.values() if tokens >= 500)
    assert len(errors) >= 10
    assert errors[len(errors) // 2] < 0.1
    assert errors[-1] < 0.3
    stated, about = (sum(pair[place] for pair in sums.values()) for place in (0, 1))
    assert about == pytest.approx(stated, rel=0.05)


def test_every_byte_is_accounted_for(database: Path) -> None:
    """`check` compares, file by file, the archive with the bytes and the pieces with the lines."""
    check(database, *HOMES)
    assert rows(database, "select count(*) from files where kind = 'transcript'")[0][0] > 30


def test_every_line_is_a_counted_type_or_quarantined(database: Path) -> None:
    counted = {
        (root, path): (types, quarantined)
        for root, path, types, quarantined in rows(
            database,
            "select s.root, f.path,"
            " (select coalesce(sum(count), 0) from line_types t where t.file_id = f.id),"
            " (select count(*) from issues i where i.file_id = f.id and i.quarantined)"
            " from files f join sources s on s.id = f.source_id",
        )
    }
    for home, path in transcripts():
        data = (home / path).read_bytes()
        types, quarantined = counted[str(home.resolve()), path]
        lines = sum(1 for line in data.split(b"\n") if line.strip())
        assert types == sum(1 for _ in objects(home / path)), path
        assert types + quarantined >= lines, path


def test_every_message_of_people_and_agents_is_there(database: Path) -> None:
    known = {
        (root, path, uuid)
        for root, path, uuid in rows(
            database,
            "select s.root, f.path, m.uuid from messages m join files f on f.id = m.file_id"
            " join sources s on s.id = f.source_id where m.uuid is not null",
        )
    }
    expected = {
        (str(home.resolve()), path, line["uuid"])
        for home, path in transcripts()
        for line in objects(home / path)
        if line.get("type") in ("user", "assistant") and isinstance(line.get("uuid"), str)
    }
    assert len(expected) > 1000
    assert expected <= known


def test_a_second_sync_reads_nothing(database: Path) -> None:
    before = dump(database)
    report = sync(database, HOMES)
    assert (report.files_read, report.bytes_read) == (0, 0)
    assert sync(database, HOMES, SyncOptions(full=True)).rows == 0
    assert_same(dump(database), before)


@pytest.mark.parametrize("versions", GROWTH, ids=lambda path: path.name)
def test_versions_synced_one_after_the_other_equal_the_last(
    versions: Path, fresh: Callable[[], Path], place: Path
) -> None:
    grown, once = fresh(), fresh()
    path = place / "home" / "projects" / "-srv-demo" / f"{versions.name}.jsonl"
    path.parent.mkdir(parents=True)
    for version in sorted(versions.glob("*.jsonl")):
        shutil.copyfile(version, path)
        sync(grown, [place / "home"])
        check(grown, place / "home")
    sync(once, [place / "home"])
    assert_same(dump(grown), dump(once))


# -- tokens, calculated once more ----------------------------------------------------------------

FIELDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def responses() -> dict[object, list[Tokens]]:
    """Return the usage that the lines of each response state, over all homes."""
    lines = [line for home, path in transcripts() for line in objects(home / path)]
    stated = [(line, request) for line in lines for request in requests_of(line)]
    with_request = {line["message"].get("id") for line, _ in stated if line.get("requestId")}
    found: dict[object, list[Tokens]] = {}
    for line, (suffix, _, usage) in stated:
        key = response_key(line, with_request)
        found.setdefault(f"{key}{suffix}" if suffix else key, []).append(usage)
    return found


def test_every_response_is_one_row(database: Path) -> None:
    expected = responses()
    assert len(expected) > 400
    assert rows(database, "select count(*) from responses") == [(len(expected),)]


def test_tokens_are_those_of_one_line_of_each_response(database: Path) -> None:
    """The line with the most output; where several have as many they agree on the output."""
    expected = responses()
    chosen = {
        key: (output, tuple(rest))
        for key, output, *rest in rows(
            database,
            "select coalesce(nullif(substr(response_key, 1, instr(response_key, ' in ') - 1), ''),"
            " response_key), output_tokens, input_tokens, output_tokens, cache_read_tokens,"
            " cache_write_5m_tokens + cache_write_1h_tokens from responses",
        )
    }
    for key, lines in expected.items():
        output, whole = chosen[key[1] if isinstance(key, tuple) else key]
        assert output == max(line[1] for line in lines), key
        assert whole in lines, key


def test_the_totals_of_sessions_are_the_sums_of_their_responses(database: Path) -> None:
    sums = ", ".join(f"sum({field})" for field in FIELDS)
    split = sums.replace("cache_write_tokens", "cache_write_5m_tokens + cache_write_1h_tokens")
    expected = responses()
    totals = rows(database, f"select {sums} from sessions")
    assert totals == rows(database, f"select {split} from responses")
    best = [max(lines, key=lambda line: line[1]) for lines in expected.values()]
    assert totals[0][1] == sum(line[1] for line in best)
    is_certain = all(len({line for line in lines if line[1] == max(each[1] for each in lines)}) == 1
                     for lines in expected.values())  # fmt: skip
    if is_certain:
        assert totals == [tuple(sum(column) for column in zip(*best, strict=True))]


# -- agents --------------------------------------------------------------------------------------


def version(text: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in (text or "0").split(".") if part.isdigit())


def task_agents(database: Path) -> list[tuple[tuple[int, ...], str, str | None]]:
    """Return version, key and link of the task agents whose session has its main transcript."""
    agents = rows(
        database,
        "select distinct x.agent_version, a.agent_key, a.link_method from subagents a"
        " join files f on f.subagent_id = a.id and f.kind = 'agent'"
        " join transcripts x on x.file_id = f.id"
        " join files m on m.session_id = a.session_id and m.kind = 'transcript'"
        " where a.kind = 'task'",
    )
    return [(version(stated), key, method) for stated, key, method in agents]


def test_every_task_agent_of_newer_versions_is_linked(database: Path) -> None:
    newer = [agent for agent in task_agents(database) if agent[0] >= (2, 1, 82)]
    assert newer
    assert [agent for agent in newer if agent[2] is None] == []


def test_task_agents_of_2_1_are_linked_but_for_one_in_twenty(database: Path) -> None:
    older = [agent for agent in task_agents(database) if (2, 1) <= agent[0] < (2, 1, 82)]
    assert older
    assert len([agent for agent in older if agent[2]]) >= 0.95 * len(older)


# -- order ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_no_order_of_files_changes_a_row(
    seed: int, database: Path, fresh: Callable[[], Path], place: Path
) -> None:
    """The files of all homes appear in a random order, with a sync after every few."""
    files = [
        path.relative_to(CORPUS) for home in HOMES for path in home.rglob("*") if path.is_file()
    ]
    random.Random(seed).shuffle(files)
    grown = fresh()
    for start in range(0, len(files), 8):
        for path in files[start : start + 8]:
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CORPUS / path, place / path)
        sync(grown, [home for home in (place / "homes").iterdir() if _is_home(home)])
    check(grown, *(place / "homes").iterdir())
    assert_same(dump(grown), dump(database))


def _is_home(path: Path) -> bool:
    return any((path / name).is_dir() for name in ("projects", "todos", "tasks", "plans"))
