"""What the same work costs at least: the steps of a sync without everything that makes it safe.

    python -m benchmarks.floors STEP HOME DATABASE

The steps build on each other: `read` the files; `parse` each line with orjson; `insert` the text
of each block into one table without an index; `index` it with one full-text statement a batch.
No archive, checkpoints, copies, links, counts of tokens, or damaged lines. Prints one JSON object.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

STEPS = ("read", "parse", "insert", "index")

_BATCH = 16 * 1024 * 1024
_Row = tuple[int, int, int, str | None, str | None, str, str | None, str | None]


def transcripts(home: Path) -> list[Path]:
    """Return the files of a home that hold lines of JSON."""
    return sorted(path for path in home.glob("projects/**/*.jsonl") if path.is_file())


def run(step: str, home: Path, database: Path) -> dict[str, int]:
    """Do the work up to `step` and return what was done."""
    done = {"files": 0, "bytes": 0, "lines": 0, "rows": 0}
    files = transcripts(home)
    if step in ("read", "parse"):
        for path in files:
            data = path.read_bytes()
            done["files"] += 1
            done["bytes"] += len(data)
            if step == "parse":
                done["lines"] += sum(1 for _ in _documents(data))
        return done
    connection = _create(database, step == "index")
    rows: list[_Row] = []
    size = 0
    for number, path in enumerate(files):
        data = path.read_bytes()
        done["files"] += 1
        done["bytes"] += len(data)
        size += len(data)
        for offset, document in _documents(data):
            done["lines"] += 1
            rows.extend(_rows(number, offset, document))
        if size >= _BATCH:
            done["rows"] += _write(connection, rows, step == "index")
            rows, size = [], 0
    done["rows"] += _write(connection, rows, step == "index")
    return done


def _documents(data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    offset = 0
    for line in data.split(b"\n"):
        if line:
            try:
                document = orjson.loads(line)
            except orjson.JSONDecodeError:
                document = None
            if isinstance(document, dict):
                yield offset, document
        offset += len(line) + 1


def _rows(file: int, offset: int, document: dict[str, Any]) -> Iterator[_Row]:
    message = document.get("message")
    if not isinstance(message, dict):
        return
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    uuid, role = document.get("uuid"), message.get("role")
    for place, block in enumerate(blocks):
        text, tool_text = _texts(block)
        kind = block.get("type", "")
        yield file, offset, place, text, tool_text, kind, uuid, role


def _texts(block: dict[str, Any]) -> tuple[str | None, str | None]:
    kind = block.get("type")
    if kind == "tool_use":
        return None, orjson.dumps(block.get("input")).decode()
    if kind == "tool_result":
        content = block.get("content")
        if isinstance(content, list):
            content = "\n".join(str(part.get("text", "")) for part in content)
        return None, str(content or "")
    return str(block.get("text") or block.get("thinking") or ""), None


def _create(path: Path, is_indexed: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("page_size = 16384", "journal_mode = wal", "synchronous = normal"):
        connection.execute(f"pragma {setting}").fetchall()
    connection.execute(
        "create table messages (id integer primary key, file integer, byte_offset integer,"
        " block integer, text text, tool_text text, kind text, uuid text, role text) strict"
    )
    if is_indexed:
        connection.execute(
            "create virtual table messages_fts using fts5 (text, tool_text,"
            ' content="messages", content_rowid="id",'
            ' tokenize="unicode61 remove_diacritics 2")'
        )
        connection.execute(
            "insert into messages_fts (messages_fts, rank) values ('hashsize', 67108864)"
        )
    return connection


def _write(connection: sqlite3.Connection, rows: list[_Row], is_indexed: bool) -> int:
    connection.execute("begin immediate")
    (last,) = connection.execute("select coalesce(max(id), 0) from messages").fetchone()
    connection.executemany("insert into messages values (null, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    if is_indexed:
        connection.execute(
            "insert into messages_fts (rowid, text, tool_text)"
            " select id, text, tool_text from messages where id > ?",
            (last,),
        )
    connection.execute("commit")
    return len(rows)


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
