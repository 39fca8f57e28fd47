"""No credential that a rule knows leaves this machine, in bytes or rows.

What leaves instead is what would leave if the files had never held one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.writing import (
    PROJECT,
    SESSION,
    assistant,
    call,
    dumps,
    result,
    user,
    write,
    write_bytes,
)
from tests.test_forget_secrets import KINDS, TOKEN, a_home

from assoc_ingest.ask.redaction import redact_bytes
from assoc_ingest.files import archive
from assoc_ingest.fleet import projection
from assoc_ingest.fleet.masks import Masks
from assoc_ingest.fleet.scope import EVERYTHING
from assoc_ingest.fleet.tables import FILES
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync

_PATH = FILES.names.index("path")

Placed = dict[tuple[str, int], tuple[bytes | None, dict[str, list[tuple[Any, ...]]]]]


def projected(database: Path, masks: Masks) -> tuple[Placed, dict[str, list[tuple[Any, ...]]]]:
    """Return all frames by path and start, their bytes not compressed, and the keyed rows."""
    connection = open_reader(database)
    try:
        placed: Placed = {}
        for file in projection.files(connection, EVERYTHING, None):
            content = projection.content(connection, file, EVERYTHING, masks)
            for frame in content.frames:
                data = frame.data and archive.zstd.decompress(frame.data)
                placed[content.attributes[_PATH], frame.start] = data, frame.rows
        sets = projection.keyed(connection, EVERYTHING, None, masks)
        return placed, {found.table: found.rows for found in sets}
    finally:
        connection.close()


@pytest.mark.parametrize("kind", KINDS)
def test_no_credential_leaves_in_bytes_or_rows(
    kind: str, place: Path, fresh: Callable[[], Path]
) -> None:
    database, text = fresh(), KINDS[kind]
    sync(database, [a_home(place / "home", text)])
    body = text.splitlines()[len(text.splitlines()) // 2]
    assert body in repr(projected(database, Masks(is_on=False)))
    masks = Masks()
    covered = repr(projected(database, masks))
    if kind == "a password":  # where nothing names it, it is a word like any other
        assert f"DB_PASSWORD={body}" not in covered
    else:
        assert body not in covered
    assert masks.counts.total() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_covered_bytes(
    kind: str, place: Path, fresh: Callable[[], Path]
) -> None:
    text, ours, theirs = KINDS[kind], fresh(), fresh()
    home = a_home(place / "home", text)
    sync(ours, [home])
    for path in (path for path in home.rglob("*") if path.is_file()):
        data, _ = redact_bytes(path.read_bytes(), is_log=path.suffix == ".jsonl")
        before = path.stat()
        path.write_bytes(data)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    sync(theirs, [home])
    placed, _ = projected(ours, Masks())
    expected, _ = projected(theirs, Masks(is_on=False))
    assert placed.keys() == expected.keys()
    for key, (data, rows) in expected.items():
        assert placed[key][0] == data, key
        assert placed[key][1] == rows, key


def test_escapes_within_a_credential_are_covered_whole(
    place: Path, fresh: Callable[[], Path]
) -> None:
    database, home = fresh(), place / "home"
    line = dumps_escaped(user(f"It is {TOKEN} now"))
    write(home, f"{PROJECT}/{SESSION}.jsonl", line, user("Nothing here", "u2", "u1", 2))
    sync(database, [home])
    placed, _ = projected(database, Masks())
    (text,) = [
        row[3]
        for _, rows in placed.values()
        for row in rows.get("messages", ())
        if row[3].startswith("It is")
    ]
    assert text == f"It is {'*' * (len(TOKEN) + 5)} now"


def dumps_escaped(value: dict[str, Any]) -> bytes:
    """Return a line of JSON in which the token's underscore is written as an escape."""
    return dumps(value).replace(TOKEN.encode(), TOKEN.replace("_", "\\u005f", 1).encode())


def test_a_credential_behind_the_first_frame_of_a_line_is_covered(
    place: Path, fresh: Callable[[], Path]
) -> None:
    database, home = fresh(), place / "home"
    blocks = [{"type": "text", "text": text} for text in ("x" * 5_000_000, f"It is {TOKEN} now")]
    write(home, f"{PROJECT}/{SESSION}.jsonl", assistant(blocks))
    sync(database, [home])
    placed, _ = projected(database, Masks(is_on=False))
    assert max(start for _, start in placed) > 1_000_000, "there are several frames"
    assert TOKEN in repr(placed[f"{PROJECT}/{SESSION}.jsonl", 0][1])
    assert TOKEN not in repr(projected(database, Masks()))


def test_a_credential_across_a_border_of_frames_is_covered(
    place: Path, fresh: Callable[[], Path]
) -> None:
    database, home, frame = fresh(), place / "home", 1024 * 1024
    line = dumps(user("x" * 5 * frame))
    start = line.index(b"xxxx")
    middle = frame - start - 20
    line = line.replace(b"x" * 5 * frame, b" " * middle + TOKEN.encode() + b" " * 4 * frame)
    write_bytes(home, f"{PROJECT}/{SESSION}.jsonl", line + b"\n")
    sync(database, [home])
    placed, _ = projected(database, Masks())
    assert next(start for _, start in placed if start > 0) == frame
    data = b"".join(data for (_, start), (data, _) in sorted(placed.items()) if data)
    assert len(data) == len(line) + 1
    assert TOKEN[:15].encode() not in data
    assert TOKEN[-15:].encode() not in data
    assert TOKEN not in repr(placed)


def test_a_pasted_text_is_covered_where_a_prompt_repeats_it(
    place: Path, fresh: Callable[[], Path]
) -> None:
    database, home = fresh(), place / "home"
    pasted = {"1": {"id": 1, "type": "text", "contentHash": "0123456789abcdef"}}
    write(
        home,
        "history.jsonl",
        {"display": "Look [Pasted text #1]", "pastedContents": pasted, "timestamp": 1768905000000,
         "project": "/srv/demo"},
    )  # fmt: skip
    write_bytes(home, "paste-cache/0123456789abcdef.txt", f"It is {TOKEN} now".encode())
    sync(database, [home])
    assert TOKEN in repr(projected(database, Masks(is_on=False))[0]["history.jsonl", 0][1])
    assert TOKEN not in repr(projected(database, Masks()))


def test_what_has_no_credential_is_sent_as_it_is(place: Path, fresh: Callable[[], Path]) -> None:
    database, home = fresh(), place / "home"
    write(
        home,
        f"{PROJECT}/{SESSION}.jsonl",
        user("Sow beans"),
        assistant([call("t1", command="ls")]),
        user([result("t1", "beans.txt")], "u2", "a1", 2),
    )
    sync(database, [home])
    masks = Masks()
    assert projected(database, masks) == projected(database, Masks(is_on=False))
    assert not masks.counts
