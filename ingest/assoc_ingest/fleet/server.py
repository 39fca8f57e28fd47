"""The server's schema and the calls that a machine makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .. import sql
from ..errors import BusyError, FleetError, UsageError
from ..fast_json import orjson
from .connect import telling, told

if TYPE_CHECKING:
    from psycopg import Connection

_LONGEST_NAME, _MOST_NAMES = 1_000, 10_000
"""Letters of a label, a version and the like, and how many of them: no server sends more."""

_NO_ANSWER = (
    "The server answered what no server of this program answers; see whether it is the one that "
    "you mean."
)
_A = TypeVar("_A", bound=tuple[Any, ...])

MOST_OF_A_FRAME = 16 * 1024 * 1024
"""Bytes of a frame: none of an honest machine has more than a quarter of it."""


# ------------------------------------------------------------------------------------------------
# The schema of the server: the files of `schema/fleet/`, applied in the order of their names.
#
# Only `remote init` and `remote migrate` run them. Each file and its entry in `schema_version`
# commit together, under a lock, so two administrators at once do it once.


_OLDEST = 140000
_LOCK = 0x4153534F  # "ASSO"
_PATIENCE = 10
"""Seconds that a migration waits for a lock."""


def migration_names() -> list[str]:
    """Return the names of the server's migrations, in order."""
    entries = (entry.name for entry in sql.data("schema", "fleet").iterdir())
    return sorted(name.removesuffix(".sql") for name in entries if name.endswith(".sql"))


@telling
def applied_migrations(connection: Connection[Any]) -> list[str]:
    """Return the names of those that this database has; none: it is not set up."""
    row = connection.execute("select to_regclass('assoc.schema_version')").fetchone()
    if row is None or row[0] is None:
        return []
    rows = connection.execute("select name from assoc.schema_version order by name")
    return [name for (name,) in rows.fetchall()]


@telling
def migrate(connection: Connection[Any]) -> list[str]:
    """Apply what is missing; return the names of what was applied."""
    _check_server(connection)
    done = []
    for name in migration_names():
        with connection.transaction():
            _take_lock(connection)
            known = applied_migrations(connection)
            _check_newer(known)
            if name in known:
                continue
            script = sql.data("schema", "fleet", f"{name}.sql").read_text("utf-8")
            connection.execute(script.encode())
            connection.execute("insert into assoc.schema_version (name) values (%s)", (name,))
            done.append(name)
    return done


def _take_lock(connection: Connection[Any]) -> None:
    """Take the lock of migrations, or say who holds it: every login of the server can."""
    connection.execute(f"set local lock_timeout = '{_PATIENCE}s'".encode())
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
            f"select pg_terminate_backend({pid})"
        ) from error


def check(connection: Connection[Any]) -> None:
    """Raise an error that says what to do unless this program and the server fit."""
    known = applied_migrations(connection)
    if not known:
        raise FleetError("The server has not been set up: run `assoc-ingest remote init`.")
    _check_newer(known)
    if missing := [name for name in migration_names() if name not in known]:
        raise FleetError(
            f"The server lacks {missing[0]}: its administrator must run `assoc-ingest remote "
            "migrate` first."
        )


def _check_newer(known: list[str]) -> None:
    if unknown := [name for name in known if name not in migration_names()]:
        raise FleetError(
            f"The server has a newer schema ({unknown[-1][:100]}): update assoc-ingest on this "
            "machine."
        )


def _check_server(connection: Connection[Any]) -> None:
    if connection.info.server_version < _OLDEST:
        raise UsageError("The server is too old: PostgreSQL 14 or newer is needed.")
    row = connection.execute("show server_encoding").fetchone()
    if row is None or row[0] != "UTF8":
        raise UsageError("The database needs the encoding UTF8: create another one with it.")


# ------------------------------------------------------------------------------------------------
# The calls that a machine makes: `schema/fleet/0002_push.sql` from the other side.
#
# Each call is a transaction. Those that write carry the version that the machine believes the
# server to have, and a nonce of their own: a call whose version is not the present one applies
# nothing.


Row = dict[str, Any]


class Known(NamedTuple):
    """What the server says about a machine."""

    origin_id: int
    version: int
    nonce: str
    db_uuid: str
    label: str
    reindexed_after: Sequence[str] = ()
    """Nonces before the calls of administrators, who made rows anew since the machine wrote."""


class Answer(NamedTuple):
    """What a call that writes came to: `version` and `nonce` are the present ones."""

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
    """A file as the server has it."""

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
    """Of the project of its session; without a session, of its own."""


class Beginning(NamedTuple):
    """Where a file of the server was, and its first frame, compressed."""

    file_key: bytes
    kind: str
    root: str
    path: str
    data: bytes | None
    size: int | None = None
    """Of the file, where it is asked for: one that is shorter here is another file."""
    is_whole: bool = False
    """The first frame is the only one."""


class SentFrame(NamedTuple):
    """A frame of a call. `keep`: the server has its bytes already, and `data` is not sent."""

    file_no: int
    start: int
    keep: bool
    data: bytes | None
    digest: bytes
    rows_digest: bytes


class Range(NamedTuple):
    """A stretch of a file that a call replaces; `end` None: all that follows."""

    file_no: int
    start: int
    end: int | None


class Server:
    """A connection, and the calls on it."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection

    @telling
    def hello(self, uuid: str) -> Known | None:
        """Return what the server knows of a machine; None: it never pushed with this login."""
        row = self.connection.execute(
            "select origin_id, version, nonce::text, db_uuid::text, label, reindexed_after::text[]"
            " from assoc.hello_v2(%s)",
            (uuid,),
        ).fetchone()
        return _short(Known(*row)) if row else None

    @telling
    def mine(self) -> list[Origin]:
        """Return the machines that push with this login, the last one first."""
        rows = self.connection.execute(
            "select origin_id, uuid::text, label, pushed_at::text from assoc.mine_v1()"
        )
        return [Origin(*row) for row in rows.fetchall()]

    @telling
    def register(self, uuid: str, label: str, db_uuid: str, nonce: str) -> None:
        self.connection.execute(
            "select assoc.register_v1(%s, %s, %s, %s)", (uuid, label, db_uuid, nonce)
        )

    @telling
    def adopt(self, origin_id: int, db_uuid: str, nonce: str) -> int:
        """Say that a local database continues this origin; return the new version."""
        row = self._row("select assoc.adopt_v1(%s, %s, %s)", (origin_id, db_uuid, nonce))
        return int(row[0])

    @telling
    def fence(self, origin_id: int, nonce: str) -> int:
        """Let calls of earlier pushes apply nothing from now on; return the new version."""
        return int(self._row("select assoc.fence_v1(%s, %s)", (origin_id, nonce))[0])

    @telling
    def reindex(self, origin_id: int, nonce: str) -> int:
        """Begin to make the rows of an origin anew; return the new version."""
        return int(self._row("select assoc.reindex_v1(%s, %s)", (origin_id, nonce))[0])

    @telling
    def files_of(self, origin_id: int) -> list[KnownFile]:
        found = self.connection.execute("select * from assoc.files_of_v1(%b)", (origin_id,))
        return [KnownFile(*row) for row in found.fetchall()]

    def beginnings(self, origin_id: int) -> Iterator[Beginning]:
        """Yield how each file of the machine begins."""
        with told():
            cursor = self.connection.cursor(binary=True)
            cursor.execute("select * from assoc.beginnings_v1(%s)", (origin_id,))
            yield from (Beginning(*row) for row in cursor)

    @telling
    def same_places(
        self, origin_id: int, files: Sequence[tuple[bytes, str, str, str]]
    ) -> list[Beginning]:
        """Return what the machine has in the places of those files that are new to the server.

        A file is given by its key, and the kind and the root of its source, and its path.
        """
        keys, *places = map(list, zip(*files, strict=True))
        cursor = self.connection.cursor(binary=True)
        cursor.execute(
            "select * from assoc.same_places_v1(%s, %b::bytea[], %s::text[], %s::text[], "
            "%s::text[])",
            (origin_id, keys, *places),
        )
        return [Beginning(*row) for row in cursor]

    @telling
    def frames(
        self, origin_id: int, numbers: Sequence[int]
    ) -> dict[int, dict[int, tuple[bytes, bytes]]]:
        """Return, for each of these files, the two digests of each frame by its start."""
        frames: dict[int, dict[int, tuple[bytes, bytes]]] = {number: {} for number in numbers}
        cursor = self.connection.cursor(binary=True)
        cursor.execute("select * from assoc.frames_v1(%s, %s::int[])", (origin_id, list(numbers)))
        for file_no, start, digest, rows_digest in cursor:
            if file_no in frames:
                frames[file_no][start] = (digest, rows_digest)
        return frames

    @telling
    def keyed(self, origin_id: int, table: str) -> dict[tuple[str, ...], bytes]:
        """Return the digests of a keyed table's rows by their keys, as `as_key` makes them."""
        cursor = self.connection.cursor(binary=True)
        cursor.execute("select key, digest from assoc.keyed_v1(%s, %s)", (origin_id, table))
        return {tuple(key): digest for key, digest in cursor}

    @telling
    def files(
        self, origin_id: int, version: int, nonce: str, files: list[Row]
    ) -> tuple[Answer, list[int]]:
        """Make the attributes of files those that are given; return their numbers."""
        row = self._row(
            "select applied, version, nonce::text, numbers from assoc.files_v1(%s, %s, %s, %s)",
            (origin_id, version, nonce, as_json(files)),
        )
        answer, numbers = _short(Answer(*row[:3])), row[3]
        if answer.applied and len(numbers or ()) != len(files):
            raise FleetError(_NO_ANSWER)
        return answer, numbers

    @telling
    def push(
        self,
        origin_id: int,
        version: int,
        nonce: str,
        ranges: Sequence[Range],
        frames: Sequence[SentFrame],
        rows: dict[str, bytes],
        gone: dict[str, list[Row]],
    ) -> Answer:
        """Replace ranges of files, and write and delete keyed rows."""
        columns = [list(column) for column in zip(*frames, strict=True)] or [[] for _ in range(6)]
        row = self._row(
            """select applied, version, nonce::text from assoc.push_v1(
                %s, %s, %s, %s, %b::int[], %b::bigint[], %b::boolean[],
                %b::bytea[], %b::bytea[], %b::bytea[], %b::text[], %b::text[]::json[], %s)""",
            (
                *(origin_id, version, nonce, as_json([r._asdict() for r in ranges])),
                *(*columns, list(rows), [text.decode() for text in rows.values()], as_json(gone)),
            ),
        )
        return _short(Answer(*row))

    @telling
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
    """Return an answer whose texts are names, which are remembered; raise FleetError if not."""
    values = [text for value in answer for text in (value if isinstance(value, list) else [value])]
    if len(values) > _MOST_NAMES or any(len(str(value)) > _LONGEST_NAME for value in values):
        raise FleetError(_NO_ANSWER)
    return answer


def as_json(value: object) -> str:
    """Return JSON as the functions take it: bytes are hexadecimal."""
    return as_json_bytes(value).decode()


def as_json_bytes(value: object) -> bytes:
    """The same as UTF-8."""
    return orjson.dumps(value, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return rf"\x{value.hex()}"
    raise TypeError(type(value))
