"""Whole lines from an offset, and the proof that what was read before is still there."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assoc_ingest.files import tail
from assoc_ingest.files.tail import Prefix, Stretch, open_regular, read_at, resume, stretches
from assoc_ingest.sources.reader import complete_prefix

LARGE = 2 * 1024 * 1024  # more than is compared whole at every visit


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def read(path: Path, start: int = 0, size: int | None = None) -> list[Stretch]:
    descriptor = open_regular(str(path))
    try:
        end = path.stat().st_size if size is None else size
        return list(stretches(descriptor, start, end, complete_prefix))
    finally:
        os.close(descriptor)


def lines(found: list[Stretch]) -> list[tuple[int, bytes]]:
    return [tuple(line) for stretch in found for line in stretch.lines]


def prefix_of(data: bytes) -> Prefix:
    return Prefix().extended(data)


def resumed(path: Path, known: Prefix, *, thorough: bool = False) -> Prefix | None:
    descriptor = open_regular(str(path))
    try:
        return resume(descriptor, path.stat().st_size, known.checkpoint(), thorough=thorough)
    finally:
        os.close(descriptor)


# -- lines ---------------------------------------------------------------------------------------


def test_lines_have_the_offsets_of_their_first_bytes(file: Path) -> None:
    file.write_bytes(b'{"a":1}\n\n{"b":2}\r\n{"c":3}\n')
    assert lines(read(file)) == [(0, b'{"a":1}'), (9, b'{"b":2}\r'), (18, b'{"c":3}')]


def test_a_torn_last_line_is_left_for_the_next_read(file: Path) -> None:
    file.write_bytes(b'{"a":1}\n{"b":')
    (stretch,) = read(file)
    assert (stretch.start, len(stretch.data)) == (0, 8)


def test_a_last_line_without_line_feed_is_read_when_it_is_whole(file: Path) -> None:
    file.write_bytes(b'{"a":1}\n{"b":2}')
    assert lines(read(file)) == [(0, b'{"a":1}'), (8, b'{"b":2}')]
    file.write_bytes(b'{"a":1}\n{"b":2}\n{"c":3}\n')
    assert lines(read(file, 15)) == [(16, b'{"c":3}')]


def test_no_more_is_read_than_the_file_had_when_it_was_looked_at(file: Path) -> None:
    file.write_bytes(b'{"a":1}\n{"b":2}\n')
    assert lines(read(file, size=8)) == [(0, b'{"a":1}')]


def test_a_file_that_shrinks_while_it_is_read_ends(file: Path) -> None:
    file.write_bytes(b'{"a":1}\n')
    assert lines(read(file, size=1000)) == [(0, b'{"a":1}')]


# -- long lines ----------------------------------------------------------------------------------


@pytest.fixture
def _short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "MAX_LINE", 100)
    monkeypatch.setattr(tail, "CHUNK", 30)


@pytest.mark.usefixtures("_short_limit")
def test_a_line_over_the_limit_comes_in_pieces_that_are_not_decoded(file: Path) -> None:
    file.write_bytes(b'{"a":1}\n' + b"x" * 250 + b'\n{"b":2}\n')
    found = read(file)
    assert lines(found) == [(0, b'{"a":1}'), (259, b'{"b":2}')]
    assert b"".join(stretch.data for stretch in found) == file.read_bytes()
    assert [stretch.long_line for stretch in found if stretch.long_line] == [250]
    cut = [stretch.is_cut for stretch in found]
    assert cut.count(True) == 8  # 251 bytes in pieces of 30; the ninth ends the line
    assert not cut[-1]


@pytest.mark.usefixtures("_short_limit")
def test_a_long_line_without_end_is_left_for_the_next_read(file: Path) -> None:
    file.write_bytes(b'{"a":1}\n' + b"x" * 250)
    found = read(file)
    assert sum(len(stretch.data) for stretch in found) == 8


# -- opening -------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_in_the_way_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = threading.Event()

    def opens() -> None:
        with pytest.raises(FileNotFoundError):
            open_regular(str(tmp_path / "pipe"))
        done.set()

    threading.Thread(target=opens, daemon=True).start()
    assert done.wait(10)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="link"):
        open_regular(str(tmp_path / "link"))


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_regular(str(tmp_path))


# -- the marker ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, LARGE])
def test_a_file_that_grew_continues(size: int, file: Path) -> None:
    file.write_bytes(b"1" * size + b"\ntwo\n")
    known = prefix_of(b"1" * size + b"\n")
    assert resumed(file, known) == known
    assert resumed(file, known, thorough=True) == known


def test_a_file_that_shrank_was_rewritten(file: Path) -> None:
    file.write_bytes(b"on")
    assert resumed(file, prefix_of(b"one\n")) is None


def test_nothing_read_before_is_in_every_file(file: Path) -> None:
    file.write_bytes(b"anything")
    assert resumed(file, Prefix()) == Prefix()


@pytest.mark.parametrize("place", [0, 500, 1023, 1024, 5000, 9998])
def test_any_changed_byte_of_a_small_file_is_seen(file: Path, place: int) -> None:
    data = bytes(range(256)) * 40
    known = prefix_of(data[:9999])
    changed = bytearray(data)
    changed[place] ^= 1
    file.write_bytes(changed)
    assert resumed(file, known) is None


@pytest.mark.parametrize("place", [0, 1023, LARGE - 1, LARGE - 1024])
def test_a_changed_head_or_tail_of_a_large_file_is_seen(file: Path, place: int) -> None:
    data = bytearray(os.urandom(1024) * 2048)
    known = prefix_of(bytes(data))
    data[place] ^= 1
    file.write_bytes(data + b"more\n")
    assert resumed(file, known) is None


def test_a_changed_middle_of_a_large_file_is_seen_only_by_a_thorough_look(file: Path) -> None:
    data = bytearray(b"x" * LARGE)
    known = prefix_of(bytes(data))
    data[LARGE // 2] ^= 1
    file.write_bytes(data)
    assert resumed(file, known) is not None
    assert resumed(file, known, thorough=True) is None


@given(st.binary(min_size=1, max_size=5000), st.lists(st.integers(0, 5000), max_size=6))
def test_a_prefix_is_the_same_however_it_was_read(data: bytes, borders: list[int]) -> None:
    prefix, start = Prefix(), 0
    for border in sorted(borders):
        prefix = prefix.extended(data[start:border])
        start = max(start, min(border, len(data)))
    prefix = prefix.extended(data[start:])
    assert prefix == prefix_of(data)
    assert prefix.checkpoint() == prefix_of(data).checkpoint()


def test_bytes_can_be_read_without_pread(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(b"0123456789")
    monkeypatch.delattr(os, "pread")
    descriptor = open_regular(str(file))
    try:
        assert read_at(descriptor, 3, 4) == b"456"
        assert read_at(descriptor, 3, 10) == b""
    finally:
        os.close(descriptor)
