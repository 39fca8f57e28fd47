"""Generated homes are deterministic, hold a bit of everything, and are broken only on demand."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from benchmarks.generate import PHRASE, SECRET, Summary, generate
from benchmarks.synthetic import published, shapes
from benchmarks.synthetic.damage import Damage
from benchmarks.synthetic.home import Home

pytestmark = pytest.mark.slow

SIZE = 2_000_000


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    """A small home without damage."""
    out = tmp_path_factory.mktemp("sound")
    return out, generate(out, SIZE)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    """A small home with damage."""
    out = tmp_path_factory.mktemp("broken")
    return out, generate(out, SIZE, faults=True)


def tree(root: Path) -> dict[str, tuple[str, int]]:
    """Every file's digest and modification time."""
    return {
        str(path.relative_to(root)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def transcripts(root: Path) -> list[Path]:
    """Main and subagent transcripts."""
    return sorted(path for path in root.glob("projects/**/*.jsonl") if path.stem != "journal")


def documents(root: Path) -> list[dict[str, Any]]:
    """Every line of every transcript; fails on one that is no JSON object."""
    lines = [line for path in transcripts(root) for line in path.read_bytes().splitlines()]
    found = [orjson.loads(line) for line in lines]
    assert all(isinstance(document, dict) for document in found)
    return found


@pytest.mark.parametrize("faults", [False, True])
def test_equal_arguments_give_an_equal_tree(tmp_path: Path, faults: bool) -> None:
    summaries = [
        generate(tmp_path / name, 1_000_000, seed=5, faults=faults) for name in ("first", "second")
    ]
    assert summaries[0] == summaries[1]
    assert tree(tmp_path / "first") == tree(tmp_path / "second")


def test_another_seed_gives_another_tree(tmp_path: Path) -> None:
    for seed in (1, 2):
        generate(tmp_path / str(seed), 500_000, seed=seed)
    assert tree(tmp_path / "1").keys() != tree(tmp_path / "2").keys()


@pytest.mark.parametrize("size", [1_000_000, 2_000_000, 6_000_000])
def test_the_size_is_about_what_was_asked_for(tmp_path: Path, size: int) -> None:
    summary = generate(tmp_path, size)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert summary.files == len(files)
    assert summary.bytes == sum(path.stat().st_size for path in files)
    assert 0.95 * size < summary.bytes < 1.3 * size


def test_every_line_of_a_sound_home_is_a_json_object(sound: tuple[Path, Summary]) -> None:
    root, summary = sound
    found = documents(root)
    assert len(found) == summary.lines
    assert summary.faults == {}
    kinds = Counter(document["type"] for document in found)
    assert kinds["user"] + kinds["assistant"] == summary.messages
    for path in root.rglob("*.json"):
        orjson.loads(path.read_bytes())


def test_a_small_home_has_every_era_and_every_kind_of_line(sound: tuple[Path, Summary]) -> None:
    root, summary = sound
    assert list(sorted(summary.eras)) == sorted(era.name for era in shapes.ERAS)
    kinds: set[str] = set()
    for document in documents(root):
        inner = document.get("data") or document.get("attachment") or {}
        kinds |= {document["type"], document.get("subtype", ""), inner.get("type", "")}
    assert kinds >= {
        *("user", "assistant", "system", "progress", "attachment", "summary"),
        *("bash_progress", "hook_progress", "agent_progress", "hook_success", "queued_command"),
        *("file-history-snapshot", "queue-operation", "last-prompt", "ai-title", "mode"),
        *("permission-mode", "custom-title", "agent-name", "bridge-session", "compact_boundary"),
    }


def test_a_small_home_has_every_store_and_layout(sound: tuple[Path, Summary]) -> None:
    root, _ = sound
    for pattern in (
        "projects/*/agent-*.jsonl",
        "projects/*/*/subagents/agent-*.meta.json",
        "projects/*/*/subagents/workflows/*/journal.jsonl",
        "projects/*/*/workflows/wf_*.json",
        "projects/*/*/tool-results/*",
        "projects/*/sessions-index.json",
        "todos/*.json",
        "tasks/*/1.json",
        "teams/*/config.json",
        "teams/*/inboxes/*.json",
        "plans/*.md",
        "paste-cache/*.txt",
        "file-history/*/*@v*",
        "history.jsonl",
        "sessions/*.json",
        "jobs/*/state.json",
    ):
        assert list(root.glob(pattern)), pattern
    folders = [path for path in root.glob("projects/*/*") if (path / "tool-results").is_dir()]
    assert any(not path.with_suffix(".jsonl").exists() for path in folders)


def test_parents_calls_and_answers_belong_together(sound: tuple[Path, Summary]) -> None:
    root, _ = sound
    asked: set[str] = set()
    answered: set[str] = set()
    known: set[str] = set()
    parents: list[str] = []
    for document in documents(root):
        if "uuid" in document:
            known.add(document["uuid"])
            parents += [document["parentUuid"]] if document["parentUuid"] else []
        content = document.get("message", {}).get("content", "")
        for block in content if isinstance(content, list) else []:
            asked |= {block["id"]} if block["type"] == "tool_use" else set()
            answered |= {block["tool_use_id"]} if block["type"] == "tool_result" else set()
    missing = sum(parent not in known for parent in parents)
    assert 0 < missing <= len(parents) * 0.01
    assert len(asked) > 50
    assert answered <= asked


def test_copies_are_a_few_percent_of_the_chain(sound: tuple[Path, Summary]) -> None:
    root, summary = sound
    uuids = Counter(d["uuid"] for d in documents(root) if "uuid" in d)
    assert 0 < summary.copies <= uuids.total() - len(uuids)
    assert 0.01 < summary.copies / uuids.total() < 0.06


def test_what_to_search_for_is_planted(sound: tuple[Path, Summary]) -> None:
    root, summary = sound
    text = b"".join(path.read_bytes() for path in transcripts(root))
    assert summary.needles == ["zanzibar0001"]
    assert b"zanzibar0001" in text
    assert summary.phrases >= 1
    assert PHRASE.encode() in text
    assert any("\u4e00" <= letter <= "\u9fff" for letter in text.decode())


def test_secrets_lie_where_no_reader_may_copy_them(sound: tuple[Path, Summary]) -> None:
    root, _ = sound
    for name in (".credentials.json", "settings.json", "session-env/0/hook-0.sh"):
        assert SECRET in (root / name).read_text()
    assert any(SECRET in path.read_text() for path in transcripts(root))


def test_a_broken_small_home_has_every_kind_of_damage(broken: tuple[Path, Summary]) -> None:
    _, summary = broken
    assert set(summary.faults) == Damage(Home(Path(), SIZE, 1)).kinds()


def test_damage_loses_no_good_line(broken: tuple[Path, Summary]) -> None:
    """Nearly all lines parse; the rest are no more than the damage that was counted explains."""
    root, summary = broken
    good = bad = 0
    for path in transcripts(root):
        for line in path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            try:
                good += isinstance(orjson.loads(line), dict)
            except orjson.JSONDecodeError:
                bad += bool(line.strip()) and b"not a transcript" not in line
    pieces = sum(summary.faults.values())
    assert 0 < bad <= 2 * pieces
    assert good >= summary.lines - pieces


def test_many_small_files_have_the_lines_asked_for(tmp_path: Path) -> None:
    summary = generate(tmp_path, files=40, lines_per_file=7)
    counts = [path.read_bytes().count(b"\n") for path in transcripts(tmp_path)]
    assert len(counts) == summary.sessions == 40
    assert summary.lines == 40 * 7
    assert set(counts) <= {6, 7}  # some have no final line feed


# What was counted in the home that the profile `real` stands for: share of the bytes, bytes a line.
REAL = {
    "result": (0.59, 11_279),
    "progress": (0.21, 2_477),
    "assistant": (0.18, 1_627),
}
REAL_FILES = {0.25: 300_000, 0.5: 900_000, 0.75: 2_000_000, 0.9: 3_400_000, 0.99: 4_100_000}


def test_a_home_of_the_profile_real_has_the_shape_that_was_counted(tmp_path: Path) -> None:
    generate(tmp_path, 200_000_000, profile="real")
    lengths: dict[str, list[int]] = {kind: [] for kind in (*REAL, "other")}
    structured = 0
    files = transcripts(tmp_path)
    for path in files:
        for line in path.read_bytes().splitlines():
            document = orjson.loads(line)
            kind = "result" if "toolUseResult" in document else document["type"]
            lengths[kind if kind in REAL else "other"].append(len(line))
            structured += len(orjson.dumps(document.get("toolUseResult", "")))
    total = sum(map(sum, lengths.values()))
    for kind, (share, length) in REAL.items():
        assert sum(lengths[kind]) / total == pytest.approx(share, rel=0.15), kind
        assert sum(lengths[kind]) / len(lengths[kind]) == pytest.approx(length, rel=0.15), kind
    assert structured / sum(lengths["result"]) == pytest.approx(0.75, rel=0.1)
    sizes = sorted(path.stat().st_size for path in files)
    for share, size in REAL_FILES.items():
        assert sizes[int(share * len(sizes))] == pytest.approx(size, rel=0.35), share


@pytest.mark.skipif("ASSOC_REAL_CORPUS" not in os.environ, reason="needs ASSOC_REAL_CORPUS")
def test_published_transcripts_are_repeated_as_other_conversations(tmp_path: Path) -> None:
    published.write(tmp_path / "once", 1)
    size = sum(path.stat().st_size for path in transcripts(tmp_path / "once"))
    published.write(tmp_path / "twice", size + 1)
    once, twice = (
        [
            [document["uuid"] for document in map(orjson.loads, lines) if "uuid" in document]
            for lines in (path.read_bytes().splitlines() for path in transcripts(tmp_path / name))
        ]
        for name in ("once", "twice")
    )
    assert len(twice) == 2 * len(once)
    assert sum(map(len, twice)) == 2 * sum(map(len, once))
    assert len(set().union(*twice)) == 2 * len(set().union(*once))


def test_one_file_is_as_long_as_asked_for(tmp_path: Path) -> None:
    generate(tmp_path, one_file=9_000_000)
    (path,) = transcripts(tmp_path)
    assert 9_000_000 <= path.stat().st_size < 10_000_000


def test_a_directory_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")
    with pytest.raises(FileExistsError, match="not empty"):
        generate(tmp_path, 1_000)
