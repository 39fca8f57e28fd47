"""The schema of the server, and the calls that a machine makes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from zlib import crc32

from .. import __version__, sql
from ..errors import BusyError, FleetError, UsageError
from ..fields import orjson
from .connect import readable, readable_errors
from .nodes import is_distributed

if TYPE_CHECKING:
    from psycopg import Connection

_LONGEST_NAME, _MOST_NAMES = 1_000, 10_000
"""The length and the number of labels, versions and the like that a server may send."""

_NO_ANSWER = (
    "The answer is not one that an assoc-ingest server gives; check that this is the right server."
)
_A = TypeVar("_A", bound=tuple[Any, ...])

_time = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")

MOST_OF_A_FRAME = 16 * 1024 * 1024
"""Bytes of a frame; those that machines make have at most a quarter of it."""


# ------------------------------------------------------------------------------------------------
# The schema of the server: the migrations in `schema/fleet/`, and behind them `code.sql`, which has
# everything that holds no data: functions, views, policies and rights.
#
# Only `remote init` and `remote migrate` apply them, all in one transaction and under a lock, so
# two administrators at once do it once.


_OLDEST = 140000
_LOCK = 0x4153534F  # "ASSO"
_PATIENCE = 10
"""Seconds that a migration waits for a lock."""

INDEX = "messages_words"
"""The name of the text index."""

_CODE = "code"
_creation = re.compile(r"^create (?:view|function|aggregate|type) assoc\w*\.(\w+)", re.MULTILINE)
_code_name = re.compile(rf"{_CODE}-(\d{{1,9}}(?:\.\d{{1,9}}){{0,3}})\S{{0,20}}-([0-9a-f]{{8}})")

_quote = re.compile(r"\$(?:[a-z]\w*)?\$")

_OBJECTS = """
    select case c.relkind when 'v' then 'view' else 'table' end as kind, c.relname::text as name,
        c.oid::regclass::text as identity, c.relowner as owner, c.relacl as rights
    from pg_class c
    where c.relkind in ('r', 'v')
      and c.relnamespace::regnamespace::text in ('assoc', 'assoc_read', 'assoc_rows')
    union all
    select 'routine', p.proname, p.oid::regprocedure::text, p.proowner, p.proacl
    from pg_proc p
    where p.pronamespace::regnamespace::text in ('assoc', 'assoc_read', 'assoc_rows')
    union all
    select 'type', t.typname, t.oid::regtype::text, t.typowner, t.typacl
    from pg_type t
    join pg_class c on c.oid = t.typrelid and c.relkind = 'c'
    where t.typnamespace = to_regnamespace('assoc_read')
"""

_RIGHTS_OF_OTHERS = f"""
    select format(
        'grant %s on %s %s to %s%s', r.privilege_type,
        case kind when 'view' then 'table' else kind end, identity,
        r.grantee::regrole, case when r.is_grantable then ' with grant option' else '' end
    )
    from ({_OBJECTS}) o, aclexplode(o.rights) r
    where o.kind <> 'table' and r.grantee <> 0 and r.grantee <> o.owner
      and r.grantee::regrole::text not in ('assoc_device', 'assoc_reader', 'assoc_admin')
"""
"""What an administrator granted to other roles, as statements that grant it again."""

_POLICIES = """
    select format('drop policy %I on %I.%I', policyname, schemaname, tablename)
    from pg_policies
    where schemaname = 'assoc' and policyname in ('readers', 'administrators')
"""

_OWNERS = f"""
    select format('alter %s %s owner to %s', o.kind, o.identity, n.nspowner::regrole)
    from ({_OBJECTS}) o
    join pg_namespace n on n.nspname = 'assoc' and n.nspowner <> o.owner
    union all
    select format('alter schema %I owner to %s', s.nspname, n.nspowner::regrole)
    from pg_namespace s
    join pg_namespace n on n.nspname = 'assoc' and n.nspowner <> s.nspowner
    where s.nspname in ('assoc_read', 'assoc_rows')
"""
"""A function judges by its owner who the owner of the schema is: a superuser may have migrated."""


def migration_names() -> list[str]:
    """Return the names of the server's migrations, in order, and last that of its code.

    The last one changes with the code, and says which version it comes from.
    """
    entries = (entry.name for entry in sql.data("schema", "fleet").iterdir())
    stems = (name.removesuffix(".sql") for name in entries if name.endswith(".sql"))
    checksum = f"{crc32(_script(_CODE)):08x}"
    return [
        *sorted(name for name in stems if name != _CODE),
        f"{_CODE}-{__version__}-{checksum}",
    ]


@readable
def applied_migrations(connection: Connection[Any]) -> list[str]:
    """Return the names of the applied migrations; none: the server is not set up."""
    row = connection.execute("select to_regclass('assoc.schema_version')").fetchone()
    if row is None or row[0] is None:
        return []
    rows = connection.execute("select name from assoc.schema_version order by name")
    return [name for (name,) in rows.fetchall()]


def missing_migrations(applied: Sequence[str]) -> list[str]:
    """Return the names of the migrations that a database lacks."""
    *names, code = migration_names()
    is_current = any(_parsed(name)[1] == _parsed(code)[1] for name in applied)
    return [*(name for name in names if name not in applied), *([] if is_current else [code])]


def _check_newer(applied: Sequence[str]) -> None:
    """Raise FleetError if a database has a migration, or code, of a newer version."""
    *names, code = migration_names()
    is_other = code in missing_migrations(applied)
    newer = [
        name
        for name in applied
        if (is_other and _parsed(name)[0] > _parsed(code)[0])
        or (name not in names and not _code_name.fullmatch(name))
    ]
    if newer:
        raise FleetError(
            f"The server has a newer schema ({newer[-1][:100]}): update assoc-ingest on this "
            "machine."
        )


def _parsed(name: str) -> tuple[tuple[int, ...], str]:
    """Return the version and the checksum in the name of code, nothing for a migration."""
    match = _code_name.fullmatch(name)
    return (tuple(map(int, match[1].split("."))), match[2]) if match else ((), "")


@readable
def migrate(connection: Connection[Any], *, distributed: bool = False) -> list[str]:
    """Apply what is missing; return the names of what was applied.

    `distributed`: also distribute the tables over the nodes of Citus.
    """
    from psycopg.errors import UndefinedFunction, UndefinedObject, UndefinedTable

    _check_server(connection)
    with patient(connection), connection.transaction():
        _take_lock(connection)
        applied = applied_migrations(connection)
        _check_newer(applied)
        missing = missing_migrations(applied)
        was_distributed = is_distributed(connection)
        distributed = distributed or was_distributed
        if not missing and distributed == was_distributed:
            return []
        if distributed:
            _check_nodes(connection)
            # Else a change of a table is refused after one of a table that others refer to.
            connection.execute("set local citus.multi_shard_modify_mode = 'sequential'")
        connection.execute("set local search_path = pg_catalog")  # so names are told in full
        rights = _statements(connection, _RIGHTS_OF_OTHERS)
        _drop_code(connection)
        *_, code = migration_names()
        missing = [*(name for name in missing if name != code), code]
        for name in missing:
            if name == code and distributed:
                _run(connection, "nodes/distribute")
            _run(connection, _CODE if name == code else name)
            connection.execute("insert into assoc.schema_version (name) values (%s)", (name,))
        for statement in _statements(connection, _OWNERS):
            connection.execute(statement)
        for statement in rights:
            gone = suppress(UndefinedFunction, UndefinedObject, UndefinedTable)
            with gone, connection.transaction():
                connection.execute(statement)
    return missing


def _drop_code(connection: Connection[Any]) -> None:
    """Drop what `code.sql` makes, so that migrations can change the tables that it reads."""
    for statement in _statements(connection, _POLICIES):
        connection.execute(statement)
    names = _creation.findall(_script(_CODE).decode())
    for kind in ("view", "routine", "type"):
        rows = connection.execute(
            f"select identity from ({_OBJECTS}) o where kind = %s"
            " and (name = any (%s) or identity like 'assoc_rows.%%')".encode(),
            (kind, names),
        ).fetchall()
        if rows:
            identities = ", ".join(identity for (identity,) in rows)
            connection.execute(f"drop {kind} {identities}".encode())
    if applied_migrations(connection):
        connection.execute("delete from assoc.schema_version where name like 'code-%'")


def _check_nodes(connection: Connection[Any]) -> None:
    row = connection.execute("select to_regclass('pg_catalog.pg_dist_partition')").fetchone()
    if row is None or row[0] is None:
        raise UsageError(
            "The database has no nodes: run `create extension citus` there and add the workers "
            "first."
        )


def _statements(connection: Connection[Any], query: str) -> list[bytes]:
    return [statement.encode() for (statement,) in connection.execute(query.encode()).fetchall()]


def _run(connection: Connection[Any], name: str) -> None:
    """Run a script: Citus sends a node the whole text in which it finds a statement."""
    for statement in _each(_script(name).decode()):
        connection.execute(statement.encode())


def _each(script: str) -> Iterator[str]:
    """Yield the statements of a script, each of which ends at the end of a line."""
    statement = ""
    for line in script.split("\n"):
        statement += f"{line}\n"
        quotes = _quote.findall(statement)
        if line.rstrip().endswith(";") and all(quotes.count(one) % 2 == 0 for one in quotes):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


@cache
def _script(name: str) -> bytes:
    return sql.data("schema", "fleet", *f"{name}.sql".split("/")).read_text("utf-8").encode()


def _take_lock(connection: Connection[Any]) -> None:
    """Take the lock of migrations, or report who holds it: every login can."""
    row = connection.execute("select pg_try_advisory_xact_lock(%s)", (_LOCK,)).fetchone()
    if row is not None and row[0]:
        return
    holder = connection.execute(
        "select a.usename, a.pid from pg_locks l join pg_stat_activity a using (pid)"
        " where l.locktype = 'advisory' and l.objid = %s and l.granted"
        " and l.pid <> pg_backend_pid()",
        (_LOCK,),
    ).fetchone()
    try:
        with connection.transaction():
            connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
    except Exception as error:
        if getattr(error, "sqlstate", None) != "55P03":
            raise
        name, pid = holder or ("another login", "?")
        raise BusyError(
            f"The login {name} (process {pid}) holds the lock of migrations for more than "
            f"{_PATIENCE} seconds. If that is not another `remote migrate`, end it with: "
            f"select pg_terminate_backend({pid}), or `remote migrate --force`"
        ) from error


@contextmanager
def patient(connection: Connection[Any]) -> Iterator[None]:
    """Wait ten seconds for others at most, and then raise BusyError with their logins.

    Each login can hold what it changed for as long as it likes.
    """
    from psycopg.errors import LockNotAvailable

    connection.execute("select set_config('lock_timeout', %s, false)", (f"{_PATIENCE}s",))
    # Lets `change` tell the workers, too; without Citus it says nothing to anybody.
    connection.execute("select set_config('citus.propagate_set_commands', 'local', false)")
    try:
        yield
    except (LockNotAvailable, FleetError) as error:
        if not isinstance(error.__cause__ or error, LockNotAvailable):
            raise
        rows = connection.execute(
            "select distinct a.usename, a.pid from pg_locks l join pg_stat_activity a using (pid)"
            " join pg_class c on c.oid = l.relation join pg_database d on d.oid = l.database"
            " where d.datname = current_database() and l.granted and l.pid <> pg_backend_pid()"
            " and c.relnamespace in (to_regnamespace('assoc'), to_regnamespace('assoc_read'))"
            " order by 1, 2"
        ).fetchall()
        holders = ", ".join(f"{name} (process {pid})" for name, pid in rows) or "others"
        raise BusyError(
            f"For more than {_PATIENCE} seconds, what is to change was used by {holders}. Try "
            "again, or end it: select pg_terminate_backend(PROCESS). `remote migrate --force` ends "
            "those of machines and readers."
        ) from error


@contextmanager
def change(connection: Connection[Any]) -> Iterator[None]:
    """A transaction within `patient` in which no node waits longer: workers only hear SET LOCAL."""
    with connection.transaction():
        connection.execute(f"set local lock_timeout = '{_PATIENCE}s'".encode())
        yield


def check(connection: Connection[Any]) -> None:
    """Raise an error that says what to do unless the schema of the server fits this program."""
    applied = applied_migrations(connection)
    if not applied:
        raise FleetError("The server has not been set up: run `assoc-ingest remote init`.")
    _check_newer(applied)
    if missing := missing_migrations(applied):
        raise FleetError(
            f"The server lacks {missing[0]}: its administrator must run `assoc-ingest remote "
            "migrate` first."
        )


@readable
def has_text_index(connection: Connection[Any]) -> bool:
    row = connection.execute(
        "select indisvalid from pg_index where indexrelid = to_regclass(%s)", (f"assoc.{INDEX}",)
    ).fetchone()
    return bool(row and row[0])


def _check_server(connection: Connection[Any]) -> None:
    if connection.info.server_version < _OLDEST:
        raise UsageError("The server is too old: PostgreSQL 14 or newer is needed.")
    row = connection.execute("show server_encoding").fetchone()
    if row is None or row[0] != "UTF8":
        raise UsageError("The database needs the encoding UTF8: create another one with it.")


# ------------------------------------------------------------------------------------------------
# The calls that a machine makes: functions of `schema/fleet/code.sql`.
#
# Each call is a transaction. Those that write carry the version that the machine believes the
# server to have, and a nonce of their own: a call whose version is not the present one applies
# nothing.


Row = dict[str, Any]


class Known(NamedTuple):
    """What the server knows about a machine."""

    origin_id: int
    version: int
    nonce: str
    db_uuid: str
    label: str
    reindexed_after: Sequence[str] = ()
    """The nonces that a reindex has replaced since the machine last wrote."""


class Answer(NamedTuple):
    """The result of a call that writes, with the current `version` and `nonce`."""

    applied: bool
    version: int
    nonce: str


class Origin(NamedTuple):
    """A machine that pushes with this login."""

    origin_id: int
    uuid: str
    label: str
    pushed_at: str


class KnownFile(NamedTuple):
    """A file on the server."""

    file_key: bytes
    file_no: int
    source_no: int | None
    path: str | None
    session_key: str | None
    project_source_no: int | None
    project_key: str | None
    team_key: str | None
    session_project_source_no: int | None
    session_project_key: str | None
    project_path: str | None
    """The path of the project of its session, or without a session, of its own project."""


class Beginning(NamedTuple):
    """The place of a file on the server, and its first frame, compressed."""

    file_key: bytes
    kind: str
    root: str
    path: str
    data: bytes | None
    size: int | None = None
    """The size of the file, if asked for: a shorter local file is another one."""
    is_whole: bool = False
    """Is the first frame the only one?"""


class FileThere(NamedTuple):
    """A file of a machine on the server."""

    file_no: int
    frames: dict[int, tuple[bytes, bytes]]
    """The digests of each frame's bytes and rows, by its start."""


class SentStretch(NamedTuple):
    """A stretch of a file that a call replaces, with its frame."""

    file_no: int
    start: int
    rows_start: int
    """Rows before this place stay."""
    end: int | None
    """None: everything from `start` on."""
    row_tables: int
    """A bit for each table of PLACED that has rows in the stretch."""
    data: bytes | None
    """None also if the server has these bytes."""
    digest: bytes
    rows_digest: bytes


class Server:
    """A connection, and the calls on it."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection

    @readable
    def hello(self, uuid: str) -> Known | None:
        """Return what the server knows about a machine; None: it never pushed with this login."""
        row = self.connection.execute(
            "select origin_id, version, nonce::text, db_uuid::text, label, reindexed_after::text[]"
            " from assoc.hello_v2(%s)",
            (uuid,),
        ).fetchone()
        return _short(Known(*row)) if row else None

    @readable
    def mine(self) -> list[Origin]:
        """Return the machines that push with this login, the last one first."""
        rows = self.connection.execute(
            "select origin_id, uuid::text, label, pushed_at::text from assoc.mine_v1()"
        )
        return [Origin(*row) for row in rows.fetchall()]

    @readable
    def kept_since(self) -> str:
        """Return the time since which files are kept, '' if all are."""
        kept_since = self._row("select assoc.kept_since_v1()", ())[0] or ""
        if kept_since and not _time.fullmatch(kept_since):  # it becomes part of a query
            raise FleetError(_NO_ANSWER)
        return str(kept_since)

    @readable
    def clock(self) -> float:
        """Return the time of the server, in seconds since 1970."""
        return float(self._row("select extract(epoch from clock_timestamp())", ())[0])

    @readable
    def room(self, uuid: str) -> int | None:
        """Return how many bytes this machine may store; None: as many as fit."""
        row = self.connection.execute("select assoc.room_v1(%s)", (uuid,)).fetchone()
        return row[0] if row else None

    @readable
    def register(self, uuid: str, label: str, db_uuid: str, nonce: str) -> None:
        self.connection.execute(
            "select assoc.register_v1(%s, %s, %s, %s)", (uuid, label, db_uuid, nonce)
        )

    @readable
    def adopt(self, origin_id: int, db_uuid: str, nonce: str) -> int:
        """Let a local database continue this origin; return the new version."""
        row = self._row("select assoc.adopt_v1(%s, %s, %s)", (origin_id, db_uuid, nonce))
        return int(row[0])

    @readable
    def fence(self, origin_id: int, nonce: str) -> int:
        """Keep calls of earlier pushes from applying anything; return the new version."""
        return int(self._row("select assoc.fence_v1(%s, %s)", (origin_id, nonce))[0])

    @readable
    def reindex(self, origin_id: int, nonce: str) -> int:
        """Start a reindex of an origin; return the new version."""
        return int(self._row("select assoc.reindex_v1(%s, %s)", (origin_id, nonce))[0])

    @readable
    def files_of(self, origin_id: int) -> list[KnownFile]:
        found = self.connection.execute("select * from assoc.files_of_v1(%b)", (origin_id,))
        return [KnownFile(*row) for row in found.fetchall()]

    def beginnings(self, origin_id: int) -> Iterator[Beginning]:
        """Yield the beginning of each file of the machine."""
        with readable_errors():
            cursor = self.connection.cursor(binary=True)
            cursor.execute("select * from assoc.beginnings_v1(%s)", (origin_id,))
            yield from (Beginning(*row) for row in cursor)

    @readable
    def same_places(
        self, origin_id: int, files: Sequence[tuple[bytes, str, str, str]]
    ) -> list[Beginning]:
        """Return the server's files at the places of those `files` that it does not know.

        A file is given by its key, the kind and the root of its source, and its path.
        """
        keys, *places = map(list, zip(*files, strict=True))
        cursor = self.connection.cursor(binary=True)
        cursor.execute(
            "select * from assoc.same_places_v1(%s, %b::bytea[], %s::text[], %s::text[], "
            "%s::text[])",
            (origin_id, keys, *places),
        )
        return [Beginning(*row) for row in cursor]

    @readable
    def frames(self, origin_id: int, keys: Sequence[bytes]) -> dict[bytes, FileThere]:
        """Return the number and the frames of those of these files that the server has."""
        there: dict[bytes, FileThere] = {}
        cursor = self.connection.cursor(binary=True)
        cursor.execute("select * from assoc.frames_v2(%s, %b::bytea[])", (origin_id, list(keys)))
        for key, file_no, start, digest, rows_digest in cursor:
            file = there.setdefault(key, FileThere(file_no, {}))
            if start is not None:
                file.frames[start] = (digest, rows_digest)
        return there

    @readable
    def keyed(self, origin_id: int, table: str) -> dict[tuple[str, ...], bytes]:
        """Return the digests of a keyed table's rows by their keys as text (`key_text`)."""
        cursor = self.connection.cursor(binary=True)
        cursor.execute("select key, digest from assoc.keyed_v1(%s, %s)", (origin_id, table))
        return {tuple(key): digest for key, digest in cursor}

    @readable
    def files(
        self, origin_id: int, version: int, nonce: str, files: list[Row]
    ) -> tuple[Answer, list[int]]:
        """Write the attributes of new files; return their numbers."""
        row = self._row(
            "select applied, version, nonce::text, numbers from assoc.files_v1(%s, %s, %s, %s)",
            (origin_id, version, nonce, as_json(files)),
        )
        answer, numbers = _short(Answer(*row[:3])), row[3]
        if answer.applied and len(numbers or ()) != len(files):
            raise FleetError(_NO_ANSWER)
        return answer, numbers

    @readable
    def push(
        self,
        origin_id: int,
        version: int,
        nonce: str,
        files: bytes,
        stretches: Sequence[SentStretch],
        rows: dict[str, bytes],
        gone: dict[str, list[Row]],
    ) -> Answer:
        """Write attributes of files, replace stretches of them, write and delete keyed rows."""
        columns = list(map(list, zip(*stretches, strict=True))) or [[] for _ in SentStretch._fields]
        row = self._row(
            """select applied, version, nonce::text from assoc.push_v2(
                %s, %s, %s, %s::json, %b::int[], %b::bigint[], %b::bigint[], %b::bigint[],
                %b::int[], %b::bytea[], %b::bytea[], %b::bytea[], %b::text[],
                %b::text[]::json[], %s)""",
            (
                *(origin_id, version, nonce, files.decode(), *columns),
                *(list(rows), [text.decode() for text in rows.values()], as_json(gone)),
            ),
        )
        return _short(Answer(*row))

    @readable
    def forget(self, origin_id: int, version: int, nonce: str, keys: Iterable[bytes]) -> Answer:
        row = self._row(
            "select applied, version, nonce::text from assoc.forget_v1(%s, %s, %s, %b::bytea[])",
            (origin_id, version, nonce, list(keys)),
        )
        return _short(Answer(*row))

    def _row(self, query: str, values: tuple[object, ...]) -> tuple[Any, ...]:
        row = self.connection.execute(query, values).fetchone()
        assert row is not None, "a function returns a row"  # noqa: S101
        return tuple(row)


def _short(answer: _A) -> _A:
    """Return an answer; raise FleetError if it has a text too long for a name: it is stored."""
    values = [text for value in answer for text in (value if isinstance(value, list) else [value])]
    if len(values) > _MOST_NAMES or any(len(str(value)) > _LONGEST_NAME for value in values):
        raise FleetError(_NO_ANSWER)
    return answer


def as_json(value: object) -> str:
    """Return JSON for the functions of the server: bytes are hexadecimal."""
    return as_json_bytes(value).decode()


def as_json_bytes(value: object) -> bytes:
    """The same as UTF-8."""
    return orjson.dumps(value, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return key_text(value)
    raise TypeError(type(value))


def key_text(value: object) -> str:
    """Return a value of a key as PostgreSQL converts it to text."""
    return rf"\x{value.hex()}" if isinstance(value, bytes) else str(value)
