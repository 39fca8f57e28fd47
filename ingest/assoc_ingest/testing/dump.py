"""A database as plain values, to compare it with another; and the promises every one must keep.

`dump` shows every table with its surrogate ids replaced by what they stand for: a session by its
key, a file by its path, a message by its place in a file. What depends on the time of a sync or
on the disk, and not on the files' bytes, is left out. Two databases that should be equal have
equal dumps, in whatever order they came to be.

`check` proves what must hold of a single database at any time, after a kill too; given the homes
it was read from, also that the archive is what lies there.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ..fields import orjson
from ..files import archive
from ..files.exclusions import CREDENTIAL_LEFT_OUT, REASONS
from ..files.stores import opened
from ..files.tail import NOT_A_TRANSCRIPT, RAN_AWAY, pieces
from ..files.walk import UNOPENED, original_parts
from ..records import ENTRY_KINDS
from ..source import DATABASE, DOCUMENT, FOREIGN_DOCUMENT, LOG, entry_names
from ..sources import SOURCES
from ..store.rows import ODD_TIME
from ..upkeep.rebuild import rebuild

Ask = Callable[[str], list[tuple[Any, ...]]]
"""Returns the rows of a query, after a sync."""
Row = dict[str, Any]
Dump = dict[str, list[Row]]

# What a row is called in other rows. A column that is a reference gives the key of its target.
_KEYS: dict[str, tuple[str, ...]] = {
    "sources": ("kind", "root"),
    "projects": ("source_id", "key"),
    "sessions": ("source_id", "session_key"),
    "subagents": ("source_id", "session_key", "agent_key"),
    "files": ("source_id", "path", "generation"),
    "messages": ("file_id", "byte_offset", "block"),
    "tool_calls": ("file_id", "byte_offset", "block"),
    "tasks": ("source_id", "list_key", "task_key", "channel"),
    "teams": ("source_id", "key"),
    "agents": ("source_id", "project_key", "agent_key"),
    "plans": ("file_id",),  # lines refer to those of files only
    "inbox_items": ("file_id", "byte_offset", "timestamp", "sender", "text_hash", "ordinal"),
}
# Tables that tell of syncs, of a price list, of what is left out, of what a user noted, or of git,
# and not of files.
_OF_SYNCS = {
    *(
        "sync_runs",
        "task_changes",
        "archive",
        "prices",
        "unpriced",
        "forgotten",
        "forgotten_secrets",
        "notes",
    ),
    *("git_changes", "git_branches", "git_diff_lines", "git_commits"),
    *("identity", "changes", "changed_rows", "forgotten_files"),
}
# Columns that a sync's clock or this machine's disk decides.
_NOT_COMPARED = {
    "sources": {"first_synced_at", "last_synced_at"},
    "files": {
        *("first_seen_at", "last_synced_at", "mtime", "mtime_ns", "ctime_ns"),
        *("inode", "device", "generation", "file_key"),
    },
    "projects": {
        *("is_worktree", "on_disk", "head_branch", "is_dirty"),
        *("git_seen_at", "change_count"),
    },
    "agents": {"gone_at"},
    "plans": {"modified_at"},
    "documents": {"modified_at"},
}


def connect(database: Path) -> sqlite3.Connection:
    """Open a database for looking at it and for the index checks, which are inserts."""
    connection = sqlite3.connect(database, isolation_level=None)
    connection.row_factory = sqlite3.Row
    return connection


def rows(database: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Ask a database, and close it."""
    with closing(connect(database)) as connection:
        return [tuple(row) for row in connection.execute(query, values)]


def dump(database: Path, *, tables: Collection[str] = ()) -> Dump:
    """Return all rows of all tables (or of `tables`), comparable with those of another database."""
    connection = connect(database)
    try:
        return _dump(connection, tables)
    finally:
        connection.close()


def _dump(connection: sqlite3.Connection, tables: Collection[str]) -> Dump:
    names = _Names(connection)
    shown: Dump = {}
    for table in _tables(connection):
        if table in _OF_SYNCS or (tables and table not in tables):
            continue
        hidden = {"id", "gone_at", *_NOT_COMPARED.get(table, ())}
        references = names.references(table)
        rows = []
        for row in connection.execute(f"select * from {table}"):
            values = {}
            for column in row.keys():  # noqa: SIM118
                if column not in hidden:
                    values[column] = _plain(names.value(references.get(column), row[column]))
            values |= names.places(table, row)
            if table != "sources" and "gone_at" in row.keys():  # noqa: SIM118
                values["is_gone"] = row["gone_at"] is not None
            if table == "files":
                values["generation"] = row["generation"]
                is_known = not values["is_gone"] and row["kind"] != DATABASE  # SQLite's choice
                values["size"] = row["size"] if is_known else None
                values["archived"] = _digest(archive.read(connection, row["id"]))
            rows.append(values)
        shown[table] = sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
    return shown


def differences(left: Dump, right: Dump) -> list[str]:
    """Return what only one of two dumps has, a line each; for a test to print."""
    found = []
    for table in sorted(left.keys() | right.keys()):
        ours, theirs = ({_line(row) for row in d.get(table, [])} for d in (left, right))
        found += [f"- {table} {row}" for row in sorted(ours - theirs)]
        found += [f"+ {table} {row}" for row in sorted(theirs - ours)]
        if ours == theirs and len(left.get(table, [])) != len(right.get(table, [])):
            found.append(f"~ {table}: {len(left[table])} and {len(right[table])} rows")
    return found


def assert_same(left: Dump, right: Dump) -> None:
    """Fail with the differing rows: `-` only the first has, `+` only the second."""
    found = differences(left, right)
    assert not found, "\n" + "\n".join(found)


def assert_as_rebuilt(database: Path) -> None:
    """Fail if the archive does not make the rows that are there."""
    copy = database.with_name("rebuilt.db")
    with closing(connect(database)) as connection:
        connection.execute("vacuum into ?", (str(copy),))
    try:
        rebuild(copy)
        before, after = dump(database), dump(copy)
        for file in (*before["files"], *after["files"]):
            del file["head_hash"]  # what is not archived has to be read again
        assert_same(before, after)
    finally:
        copy.unlink()


class _Names:
    """Turns surrogate ids into what they stand for."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._keys: dict[str, dict[int, str]] = {}
        roots = [Path(root) for (root,) in connection.execute("select root from sources")]
        self._roots = sorted(map(str, roots), key=len, reverse=True)
        self._is_one_source = len(roots) == 1
        self._root_parts = 1 if len({root.name for root in roots}) == len(set(roots)) else 2

    def root(self, path: str) -> str:
        """Return what a root is called wherever it lies: several homes have an inner one."""
        return "/".join(Path(path).parts[-self._root_parts :])

    def places(self, table: str, row: sqlite3.Row) -> Row:
        """Return the columns that have the path of a root, with what it is called instead."""
        if table == "sources":
            return {"root": self.root(row["root"])}
        if table != "projects":
            return {}
        columns = {name: row[name] for name in ("repository_key", "repository_name")}
        for root in self._roots:
            for name, text in columns.items():
                columns[name] = text and text.replace(root, self.root(root))
        return columns

    def references(self, table: str) -> dict[str, str]:
        rows = self._connection.execute(f"pragma foreign_key_list({table})")
        return {row["from"]: row["table"] for row in rows}

    def value(self, table: str | None, value: object) -> object:
        if table is None or not isinstance(value, int):
            return value
        return self._of(table).get(value, f"dangling {value}")

    def _of(self, table: str) -> dict[int, str]:
        if table not in self._keys:
            references = self.references(table)
            columns = _KEYS[table]
            self._keys[table] = {
                row["id"]: self._joined(table, [(c, references.get(c), row[c]) for c in columns])
                for row in self._connection.execute(f"select id, {', '.join(columns)} from {table}")
            }
        return self._keys[table]

    def _joined(self, table: str, parts: Iterable[tuple[str, str | None, object]]) -> str:
        words = []
        for column, target, value in parts:
            if column == "root":
                value = self.root(str(value))
            is_plain = (column == "source_id" and self._is_one_source) or (
                column == "generation" and value == 0
            )
            if not is_plain:
                words.append(str(self.value(target, value)))
        return ":".join(words)


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        "select name from pragma_table_list"
        " where schema = 'main' and type = 'table' and name not glob 'sqlite_*'"
        " and name not glob '_*' order by name"
    )
    return [name for (name,) in rows]


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, sort_keys=True)


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]


# -- to be read by people ----------------------------------------------------------------------

_HIDDEN = {"head_hash", "tail_hash", "prefix_crc", "archived", "source_id"}
_NOT_SHOWN = {"sources", "usage", "statements"}  # seen in what becomes of them
_MOSTLY_ZERO = {
    *("generation", "partial", "copied_message_count"),
    *("repeated_count", "copied_count", "repeated_call_count"),
}
_FIRST = ("sessions", "subagents", "projects", "messages", "tool_calls", "responses")


def readable(dump: Dump) -> str:
    """Return the rows as JSON to be read by people: a row is a line."""
    files = {_file_name(row): row for row in dump["files"]}
    tables = {}
    order = [*_FIRST, *sorted(dump.keys() - set(_FIRST) - _NOT_SHOWN)]
    for table in order:
        grouped: dict[str, list[str]] = {}
        for row in sorted(dump[table], key=_place_of):
            file = row.get("file_id", "")
            shown = _shown(row, file, files.get(file, {}) if table != "files" else {})
            if table == "line_types":  # every type of line of every file has one
                shown.pop("first_offset", None)
            grouped.setdefault(file or "", []).append(json.dumps(shown, ensure_ascii=False))
        if grouped:
            tables[table] = grouped
    return "{\n" + ",\n".join(f"{json.dumps(t)}: {_body(g)}" for t, g in tables.items()) + "\n}\n"


def _body(grouped: dict[str, list[str]]) -> str:
    def rows(lines: list[str], indent: str) -> str:
        return "[\n" + ",\n".join(f"{indent}  {line}" for line in lines) + f"\n{indent}]"

    if list(grouped) == [""]:
        return rows(grouped[""], "")
    parts = [f"  {json.dumps(file)}: {rows(lines, '  ')}" for file, lines in grouped.items()]
    return "{\n" + ",\n".join(parts) + "\n}"


def _file_name(row: Row) -> str:
    return f"{row['path']}:{row['generation']}" if row["generation"] else row["path"]


def _place_of(row: Row) -> tuple[Any, ...]:
    if "subtype" in row:
        return repr(row["count"]), row["file_id"], row["subtype"], row["type"]
    return row.get("byte_offset") or 0, row.get("block") or 0


def _shown(row: Row, file: str, file_row: Row) -> Row:
    shown = {}
    for column, value in row.items():
        if column in ("session_id", "subagent_id") and column in file_row:
            is_hidden = value == file_row[column]  # null is shown where the file has one
        else:
            is_hidden = value is None or column in _HIDDEN or column == "file_id"
        is_flag = column.startswith(("is_", "has_")) or column in _MOSTLY_ZERO
        if is_hidden or (is_flag and not value):
            continue
        if isinstance(value, str) and file and value.startswith(f"{file}:"):
            value = value.removeprefix(f"{file}:")
        if column == "reason" and value.startswith("not JSON"):
            value = "not JSON"  # the rest are the words of orjson, of this version
        shown[column] = value
    return shown


# -- what must hold ------------------------------------------------------------------------------


def check(database: Path, *homes: Path) -> None:
    """Assert what must hold of the database; with `homes`, that they are what was read."""
    connection = connect(database)
    try:
        _check_sqlite(connection)
        _check_rows(connection)
        for file in connection.execute("select * from files").fetchall():
            _check_file(connection, file)
        if homes:
            _check_against_disk(connection, homes)
    finally:
        connection.close()


def _check_sqlite(connection: sqlite3.Connection) -> None:
    assert [row[0] for row in connection.execute("pragma quick_check")] == ["ok"]
    assert connection.execute("pragma foreign_key_check").fetchall() == []
    indexes = connection.execute(
        "select name from sqlite_master where sql like 'create virtual table % using fts5%'"
    ).fetchall()
    assert indexes
    for (name,) in indexes:
        connection.execute(f"insert into {name} ({name}, rank) values ('integrity-check', 1)")


def _check_rows(connection: sqlite3.Connection) -> None:
    def none(why: str, sql: str) -> None:
        assert [tuple(row) for row in connection.execute(sql)] == [], why

    kinds = {kind for (kind,) in connection.execute("select distinct kind from session_entries")}
    assert kinds <= ENTRY_KINDS.keys(), "an entry says how much it counts"
    none("one text", "select id from messages where (text is null) = (tool_text is null)")
    none(
        "a copy is of an original",
        "select m.id from messages m join messages o on o.id = m.copy_of"
        " where o.copy_of is not null or o.id = m.id",
    )
    none(
        "rows lie in what was read",
        "select m.id from messages m join files f on f.id = m.file_id"
        " where m.byte_offset + m.byte_length > f.offset",
    )
    none(
        "a message belongs to its file's session",
        "select m.id from messages m join files f on f.id = m.file_id"
        " where m.session_id is not f.session_id",
    )
    none(
        "a call's blocks are blocks of its file",
        "select t.id from tool_calls t join messages m on m.id in (t.call_id, t.result_id)"
        " where m.file_id <> t.file_id",
    )
    none(
        "a call has a block",
        "select id from tool_calls where call_id is null and result_id is null",
    )
    columns = connection.execute("select * from files limit 0").description
    if "file_key" in {name for name, *_ in columns}:  # an old database has none
        lacking = "select id from files where length(coalesce(file_key, x'')) <> 16"
        none("a file has a name for life", lacking)
    none("no agent spawns itself", "select id from subagents where parent_id = id")
    none("samples are short", "select id from issues where length(sample) > 4096")
    none(
        "text is NUL-free",
        "select id from messages where instr(coalesce(text, tool_text), char(0))",
    )
    none(
        "every response is of a line that states it",
        "select r.id from responses r where not exists (select 1 from usage u"
        " where u.file_id = r.file_id and u.byte_offset = r.byte_offset)",
    )


def _check_file(connection: sqlite3.Connection, file: sqlite3.Row) -> None:
    """The archive is the bytes that were read, and each of them is accounted for."""
    place, shape = file["path"], _shape(connection, file)
    data = b"".join(archive.read(connection, file["id"]))
    assert len(data) == file["offset"], place
    is_whole = shape in (LOG, DOCUMENT) and not _left_out(connection, file)
    assert not is_whole or zlib.crc32(data) == file["prefix_crc"], place
    borders = connection.execute(
        'select start, "end" from archive where file_id = ? order by start', (file["id"],)
    ).fetchall()
    assert all(a["end"] == b["start"] for a, b in itertools.pairwise(borders)), place
    counts = connection.execute(
        "select (select coalesce(sum(count), 0) from line_types where file_id = ?1),"
        " (select count(*) from issues where file_id = ?1 and quarantined = 1),"
        " (select count(*) from issues where file_id = ?1)",
        (file["id"],),
    ).fetchone()
    assert file["line_count"] == counts[0] + counts[1], place
    assert file["issue_count"] == counts[2], place
    if shape == LOG:
        _check_tiles(connection, file, data)


def _left_out(connection: sqlite3.Connection, file: sqlite3.Row) -> list[tuple[int, int]]:
    """Return the stretches of a file that stand as spaces in its archive."""
    rows = connection.execute(
        "select byte_offset, byte_length from issues where file_id = ? and reason in (?, ?)",
        (file["id"], *REASONS),
    )
    return [tuple(row) for row in rows]


def _shape(connection: sqlite3.Connection, file: sqlite3.Row) -> str | None:
    """Return how the file is read; None if its source is no longer known."""
    (kind,) = connection.execute(
        "select kind from sources where id = ?", (file["source_id"],)
    ).fetchone()
    claim = SOURCES[kind].claim(tuple(file["path"].split("/")))
    if claim and file["kind"] == FOREIGN_DOCUMENT:
        claim = claim.as_foreign(FOREIGN_DOCUMENT)
    return SOURCES[kind].shape(claim) if claim else None


_ABOUT_THE_FILE = "select 1 from issues where file_id = ? and reason in (?, ?, ?, ?, ?)"


def _check_tiles(connection: sqlite3.Connection, file: sqlite3.Row, data: bytes) -> None:
    """Rows and issues cover stretches that never overlap; what is left are objects or blanks.

    What is said of a file as a whole is said of no stretch of it.
    """
    place = file["path"]
    stretches: set[tuple[int, int]] = set()
    notes: set[tuple[int, int]] = set()
    tables = {"messages", "tool_calls", "usage", "links", "line_extras", "issues"}
    for table in tables.intersection(_tables(connection)):  # an old database lacks some
        for row in connection.execute(f"select * from {table} where file_id = ?", (file["id"],)):
            if table == "issues" and row["reason"] == CREDENTIAL_LEFT_OUT:
                continue  # a part of a line, which is spoken of all the same
            is_note = table == "issues" and not row["quarantined"]
            (notes if is_note else stretches).add((row["byte_offset"], row["byte_length"]))
    about = (file["id"], ODD_TIME, NOT_A_TRANSCRIPT, RAN_AWAY, *UNOPENED)
    if connection.execute(_ABOUT_THE_FILE, about).fetchone():
        stretches.discard((0, 0))
        notes.discard((0, 0))
    assert pieces_of(data, stretches, place, notes) == file["line_count"], place


def pieces_of(
    data: bytes,
    stretches: Collection[tuple[int, int]],
    place: str,
    notes: Collection[tuple[int, int]] = (),
) -> int:
    """Return how many pieces the bytes of a log are; `stretches` are (offset, length) of some.

    Fail if two of those overlap, or if between them lies anything but JSON objects and blanks.
    `notes` are what issues say of lines that were read: of one whose records divide it up, the note
    lies around theirs.
    """
    ordered = sorted({*stretches, *notes}, key=lambda stretch: (stretch[0], -stretch[1]))
    position = pieces = 0
    for (start, length), inner in zip_longest(ordered, ordered[1:]):
        is_note = (start, length) not in stretches
        if is_note and inner is not None and inner[0] + inner[1] <= start + length:
            continue
        assert position <= start, f"{place}: overlap at {start}"
        assert length > 0, f"{place}: nothing at {start}"
        assert start + length <= len(data), f"{place}: beyond the offset at {start}"
        pieces += 1 + _objects_in(data[position:start], f"{place}:{position}")
        position = start + length
    return pieces + _objects_in(data[position:], f"{place}:{position}")


def _objects_in(data: bytes, place: str) -> int:
    """Count the JSON objects that `data` consists of; fail if it holds anything else."""
    found = 0
    for line in data.split(b"\n"):
        text = line.lstrip(b" \t\r\x00\xef\xbb\xbf").decode()
        while text := text.strip(" \t\r\ufeff\x00"):
            if _is_object(text):  # the usual case, however deep it is
                found += 1
                break
            try:
                value, end = json.JSONDecoder().raw_decode(text)
            except ValueError:
                raise AssertionError(f"{place}: nobody speaks of {text[:80]!r}") from None
            assert isinstance(value, dict), place
            found += 1
            text = text[end:]
    return found


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _check_against_disk(connection: sqlite3.Connection, homes: Iterable[Path]) -> None:
    roots = {str(home.resolve()) for home in homes}
    rows = connection.execute(
        "select s.root, f.* from files f join sources s on s.id = f.source_id"
        " where f.gone_at is null"
    ).fetchall()
    for row in rows:
        if row["root"] in roots and entry_names(row["path"]) is None:
            place = Path(row["root"], *original_parts(row["path"]))
            with opened(str(place)) as descriptor:
                data = bytearray(b"".join(pieces(descriptor)))
            for start, length in _left_out(connection, row):
                data[start : start + length] = b" " * length
            kept = b"".join(archive.read(connection, row["id"]))
            is_broken = _shape(connection, row) != LOG and row["issue_count"]
            assert is_broken or data.startswith(kept), row["path"]
            # The size of a database is that of its log, too.
            size = place.stat().st_size
            assert row["kind"] == DATABASE or row["size"] == size, row["path"]


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, bytes) of every line of a file that is not blank."""
    offset = 0
    for line in path.read_bytes().split(b"\n"):
        if line.strip():
            yield offset, line
        offset += len(line) + 1
