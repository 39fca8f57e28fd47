"""Datasette for its user's browser, behind a guard that lets only its own pages read."""

from __future__ import annotations

import asyncio
import atexit
import errno
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread, current_thread, main_thread
from types import FrameType
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from .. import sql
from ..ask.output import say
from ..errors import BusyError, DatabaseError, UsageError
from ..paths import identity
from ..stopping import INTERRUPTED
from ..store.database import open_reader, writing
from ..store.sql_child import Value
from ..store.sql_process import Answer, Limits, Setup, SqlProcess, StoppedError

# ------------------------------------------------------------------------------------------------
# The SQL that visitors of `serve` write, run where it blocks nothing.
#
# A visitor can write SQL in an address or a form: as a statement, a condition, a facet, or a value
# that a condition or a canned query compares. So the SQL of any request with parameters runs in
# separate processes (`store/sql_process`), of which there are `_PROCESSES`. Pages without
# parameters, and our own pages, run our statements and do not wait for these.


_PROCESSES = 2
_WAITING = 20
"""Statements that may wait for a process."""
_MOST_ROWS = 100_000
_MOST_BYTES = 32 * 1024 * 1024

_FULL = "Too many statements are running. Try again in a few seconds."
_ENDING = "The server is stopping."

_is_of_visitor: ContextVar[bool] = ContextVar("is_of_visitor", default=False)
_parameter = re.compile(r"[:@$](\w+)")

Execute = Callable[..., Awaitable[Any]]


@contextmanager
def for_request(scope: Mapping[str, Any]) -> Iterator[None]:
    """Answer a request: the SQL that runs meanwhile may be the visitor's."""
    is_plain = scope["method"] in ("GET", "HEAD") and not scope.get("query_string")
    token = _is_of_visitor.set(not is_plain)
    try:
        yield
    finally:
        _is_of_visitor.reset(token)


def kept_apart(datasette: Any) -> None:
    """Let all databases of a Datasette run the SQL of visitors in other processes."""
    processes = _Processes()
    for name, database in datasette.databases.items():
        if name != "_internal" and not database.memory_name:
            database.execute = _execute(datasette, database, database.execute, processes)


def _execute(datasette: Any, database: Any, here: Execute, processes: _Processes) -> Execute:
    """Return a replacement of `Database.execute` that sends the SQL of visitors to a process."""

    async def execute(
        sql: str,
        params: Any = None,
        truncate: bool = False,
        custom_time_limit: int | None = None,
        page_size: int | None = None,
        **others: Any,
    ) -> Any:
        if not _is_of_visitor.get():
            return await here(sql, params, truncate, custom_time_limit, page_size, **others)
        from datasette.database import Results
        from datasette.views.base import DatasetteError

        milliseconds = min(filter(None, (datasette.sql_time_limit_ms, custom_time_limit)))
        most = datasette.max_returned_rows if truncate else _MOST_ROWS
        if truncate and most == (page_size or datasette.page_size):
            most += 1  # the one more that shows that there is another page
        limits = Limits(most, _MOST_BYTES, seconds=milliseconds / 1000)
        try:
            answer = await processes.run(
                _setup(datasette, database), sql, limits, _given(sql, params)
            )
        except StoppedError as error:
            raise _interrupted(str(error), sql, params) from error
        except _FullError as error:
            raise DatasetteError(str(error), status=503) from error
        except UsageError as error:
            raise DatasetteError(str(error), title="Not answered", status=400) from error
        if answer.has_more and not truncate:
            raise DatasetteError(f"The answer has more than {_MOST_ROWS:,} rows.", status=400)
        description, rows = _as_rows(answer)
        return Results(rows, answer.has_more, description)

    return execute


def _interrupted(sentence: str, sql: str, parameters: Any) -> Exception:
    """Return an exception that Datasette catches if it needs no answer, and shows otherwise."""
    from datasette.database import QueryInterrupted
    from datasette.views.base import DatasetteError

    class UnansweredError(QueryInterrupted, DatasetteError):  # type: ignore[misc]
        def __init__(self) -> None:
            QueryInterrupted.__init__(
                self, sqlite3.OperationalError("interrupted"), sql, parameters
            )
            DatasetteError.__init__(self, sentence, title="Not answered", status=400)

        def __str__(self) -> str:
            return sentence

    return UnansweredError()


class _FullError(Exception):
    """No statement is accepted now."""


class _Processes:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_PROCESSES, "foreign-sql")
        self._free: list[SqlProcess] = []
        self._busy: set[SqlProcess] = set()
        self._lock = Lock()
        self._asked = 0
        self._is_ending = False
        self._is_ready = False

    async def run(
        self,
        setup: Setup,
        sql: str,
        limits: Limits,
        parameters: Sequence[Value] | Mapping[str, Value],
    ) -> Answer:
        """Run a statement. Raises _FullError, or as `SqlProcess.run` does."""
        self._prepare()
        if self._is_ending:
            raise _FullError(_ENDING)
        if self._asked >= _PROCESSES + _WAITING:
            raise _FullError(_FULL)
        self._asked += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._threads, self._run, setup, sql, limits, parameters
            )
        finally:
            self._asked -= 1

    def _run(
        self,
        setup: Setup,
        sql: str,
        limits: Limits,
        parameters: Sequence[Value] | Mapping[str, Value],
    ) -> Answer:
        with self._lock:
            if self._is_ending:
                raise _FullError(_ENDING)
            process = self._free.pop() if self._free else SqlProcess()
            self._busy.add(process)
        try:
            return process.run(setup, sql, limits, parameters)
        finally:
            with self._lock:
                self._busy.discard(process)
                self._free.append(process)

    def _prepare(self) -> None:
        """Stop the processes with the server: at a signal, before it waits for its answers."""
        if self._is_ready:
            return
        self._is_ready = True
        atexit.register(self._close)
        if current_thread() is not main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            if callable(before):
                signal.signal(number, self._ended_before(before))

    def _ended_before(
        self, handler: Callable[[int, FrameType | None], Any]
    ) -> Callable[[int, FrameType | None], Any]:
        def end(number: int, frame: FrameType | None) -> Any:
            self._is_ending = True
            for process in tuple(self._busy):
                process.kill()
            return handler(number, frame)

        return end

    def _close(self) -> None:
        self._is_ending = True
        for process in (*self._free, *self._busy):
            process.close()


def _setup(datasette: Any, database: Any) -> Setup:
    """Return how a process connects to this database as Datasette does."""
    script: list[tuple[str, tuple[Value, ...]]] = []
    address = _address(database)
    if database.is_memory:
        address = "file::memory:"
        if datasette.crossdb:
            script += [
                (f"attach ? as {_quoted(name)}", (_address(other),))
                for name, other in list(datasette.databases.items())
                if not other.is_memory and name != "_internal"
            ][:10]  # SQLite attaches no more
    extensions = tuple(map(str, datasette.sqlite_extensions or ()))
    return Setup(address, tuple(script), None, False, True, extensions)


def _address(database: Any) -> str:
    how = "mode=ro" if database.is_mutable else "immutable=1"
    return f"{Path(database.path).resolve().as_uri()}?{how}"


def _given(sql: str, parameters: Any) -> Sequence[Value] | Mapping[str, Value]:
    """Return parameters as values; a canned query may compute them on demand."""
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping):
        return list(parameters)
    if type(parameters) is dict:
        return parameters
    values = {}
    for name in set(_parameter.findall(sql)):
        try:
            values[name] = parameters[name]
        except KeyError:
            continue
    return values


def _as_rows(answer: Answer) -> tuple[Any, list[sqlite3.Row]]:
    """Return the column description and the rows like those of a cursor."""
    connection = sqlite3.connect(":memory:")
    try:
        named = ", ".join(f"null as {_quoted(column)}" for column in answer.columns)
        cursor = connection.execute(f"select {named}")
        return cursor.description, [sqlite3.Row(cursor, row) for row in answer.rows]
    finally:
        connection.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# ------------------------------------------------------------------------------------------------
# The guard: only pages of this server can read the index through a browser.
#
# Datasette answers everybody, and any page in a browser can ask: through a name whose owner points
# it to 127.0.0.1, through a redirect to another site, or with an image whose address is a slow
# query. So `serve` checks every request here first. Requests that are not for its own pages are
# refused, and every response tells the browser to load nothing from other servers.
#
# Plain `datasette` is not guarded: it may have a name of its own, and has its own rules.


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Refusal = tuple[int, str]
"""A status, and the sentence that goes with it."""

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""The names by which a machine calls itself."""

_SWITCH = "ASSOC_INGEST_GUARD"  # in the environment: a process that Datasette starts has it too
_host = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[^\[\]:]+)(:[0-9]{1,5})?", re.ASCII)

_POLICY = (
    "default-src 'self'; img-src 'self' data:; "
    # Datasette's own pages hold small scripts and styles, not the same ones in each version.
    "script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    # Not no-referrer: browsers then send forms without an origin, and Datasette refuses those.
    b"referrer-policy": b"same-origin",
}
"""Headers of every response that does not set its own."""


@contextmanager
def switched_on() -> Iterator[None]:
    """Guard every Datasette that starts meanwhile, in this process or a child."""
    before = os.environ.get(_SWITCH)
    os.environ[_SWITCH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SWITCH]
        else:
            os.environ[_SWITCH] = before


def is_switched_on() -> bool:
    """Was this process started by `serve`?"""
    return os.environ.get(_SWITCH) == "1"


def guarded(app: App, hosts: Collection[str] = ()) -> App:
    """Return an ASGI application that refuses what `refusal` refuses, and asks `app` the rest.

    `hosts` are names, without a port, that are allowed beside those of the machine itself.
    """
    allowed = LOOPBACK | {host.lower() for host in hosts}

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                present = {name.lower() for name, _ in headers}
                headers += [pair for pair in HEADERS.items() if pair[0] not in present]
                message = {**message, "headers": headers}
            await send(message)

        if scope["type"] == "lifespan":
            await app(scope, receive, send)
        elif scope["type"] != "http":  # nothing here speaks anything else
            await send({"type": "websocket.close", "code": 1008})
        elif refused := refusal(scope, allowed):
            await refuse(refused, send_guarded)
        else:
            with for_request(scope):
                await app(scope, receive, send_guarded)

    return answer


def refusal(scope: Scope, allowed: Collection[str]) -> Refusal | None:
    """Say why a request is refused, None if it is not. `allowed` are lower-case host names."""
    if not _is_for_us(_values(scope, b"host"), allowed):
        return 421, "Wrong host name. Open http://127.0.0.1 with the port of this server."
    if _leads_elsewhere(scope):
        return 400, "The path must begin with a single slash."
    if not _comes_from_here(scope, allowed):
        return (
            403,
            "This request came from another site. Open the page yourself, or start at /.",
        )
    if scope["method"] not in ("GET", "HEAD"):  # Datasette has forms that write, and no others
        return 405, "This server only reads: it answers GET and HEAD."
    return None


def _is_for_us(hosts: list[str], allowed: Collection[str]) -> bool:
    """One host and no more: of two, this program and another could believe different ones."""
    match = _host.fullmatch(hosts[0]) if len(hosts) == 1 else None
    return match is not None and match["name"].lower() in allowed


def _leads_elsewhere(scope: Scope) -> bool:
    """Would Datasette's redirect of this path lead to another machine?"""
    raw = scope.get("raw_path") or b""
    paths = {scope["path"], raw.decode("latin-1"), unquote(raw.decode("latin-1"))}
    return any(path.replace("\\", "/").startswith("//") for path in paths)


def _comes_from_here(scope: Scope, allowed: Collection[str]) -> bool:
    """Did one of our own pages, a person or a program send it?"""
    sites = set(_values(scope, b"sec-fetch-site"))
    if not sites:  # an older browser sends only the page, and a program nothing
        pages = [*_values(scope, b"origin"), *_values(scope, b"referer")]
        return all(_is_ours(page, _values(scope, b"host")[0], allowed) for page in pages)
    if not sites & {"cross-site", "same-site"}:
        return True
    is_opened = (
        scope["method"] in ("GET", "HEAD")
        and _values(scope, b"sec-fetch-mode") == ["navigate"]
        and _values(scope, b"sec-fetch-dest") == ["document"]
    )
    # Another port of this machine is the same site: it may link to any page, and load none.
    return is_opened and (scope["path"] == "/" or "cross-site" not in sites)


def _is_ours(page: str, host: str, allowed: Collection[str]) -> bool:
    """Is an address, or the beginning of one, of this server as the request calls it?

    Behind a proxy, the request may call it by another name than the browser does.
    """
    try:
        parts = urlsplit(page)
        name, port = parts.hostname, parts.port
    except ValueError:
        return False
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    if usual is None or name is None:
        return False
    if (f"[{name}]" if ":" in name else name) in set(allowed) - LOOPBACK:
        return True
    own = urlsplit(f"{parts.scheme}://{host}")
    return (name, port or usual) == (own.hostname, own.port or usual)


def _values(scope: Scope, name: bytes) -> list[str]:
    return [
        value.decode("latin-1").strip() for key, value in scope["headers"] if key.lower() == name
    ]


async def refuse(refused: Refusal, send: Send) -> None:
    status, sentence = refused
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    if status == 405:
        headers.append((b"allow", b"GET, HEAD"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{sentence}\n".encode()})


# ------------------------------------------------------------------------------------------------
# With `--remote`, the pages read from the server of a fleet, and Datasette has an empty database.
#
# So the guard, permissions, templates and errors are the same. Pages that need Datasette's tables
# are not there (`web/__init__`), so nobody sees that they are empty.


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Reading(Protocol[T_co]):
    """What one page reads from a server, in a thread."""

    def run(self) -> T_co:
        """Return what is read; raise FleetError if the server does not answer."""

    def give_up(self) -> None:
        """End it, because nobody waits for it any more."""


class Remote(Protocol):
    """A server whose pages are shown."""

    threads: ThreadPoolExecutor

    def start(self, function: Callable[[sqlite3.Connection], T], seconds: float) -> Reading[T]:
        """Return the reading of what `function` returns; a statement may take so many seconds."""

    def close(self) -> None:
        """End everything that is being read."""


REMOTE_DATABASE = "fleet"
"""The name of the empty database, which is in all addresses."""

_remote: list[Remote] = []


def remote() -> Remote | None:
    """Return the server whose pages are shown, None for those of a local database."""
    return _remote[0] if _remote else None


@contextmanager
def reading_from(server: Remote) -> Iterator[None]:
    """Let every Datasette that starts meanwhile in this process show a server."""
    _remote.append(server)
    try:
        yield
    finally:
        _remote.clear()
        server.close()


def serve_remote(server: Remote, options: ServeOptions) -> int:
    """Serve the pages of a server until a signal ends it, as `serve` does."""
    if options.watched:
        raise UsageError("--watch keeps a local database up to date; leave it out with --remote.")
    with tempfile.TemporaryDirectory(prefix="assoc-ingest-") as place:
        database = Path(place) / f"{REMOTE_DATABASE}.db"
        with writing(database):
            pass
        with reading_from(server):
            return serve(database, options)


# ------------------------------------------------------------------------------------------------
# Runs Datasette on the database, for the browser of the user who started it.
#
# It listens on this machine only and behind the guard above, with the titles and notes of
# metadata.yml, and with limits that keep a page from using up the machine. Options are passed to
# Datasette, except those that would undo one of these or let Datasette write.
#
# With `--watch`, a second process keeps the database up to date. It ends with this one in any case:
# its standard input, a pipe from here, closes.


HOST = "127.0.0.1"

SETTINGS = {
    "sql_time_limit_ms": 5000,
    "facet_time_limit_ms": 1000,
    "suggest_facets": "off",  # it goes through whole tables, for each page
    "allow_download": "off",
    "allow_csv_stream": "off",
    "max_returned_rows": 1000,
    "max_csv_mb": 100,
    "truncate_cells_html": 500,
}
"""Settings of Datasette; the user's own come after them, and win."""

_REFUSED = {
    "cors": "--cors would let every web page read your conversations",
    "immutable": "-i shows wrong data while the database is written",
    "nolock": "--nolock shows wrong data while the database is written",
    "create": "--create would create a database that assoc-ingest cannot use",
    "reload": "--reload would start Datasette without protection against other sites",
    "root": "--root allows writing, and only assoc-ingest may write to its database",
}
"""Options of Datasette that would break a promise, and why they are not passed on."""

_FOREIGN_HOST = (
    "serve listens on this machine only. To give others access, run datasette itself behind a "
    "proxy with authentication."
)
_LAST_BATCH = 30.0  # seconds that a watch has to finish its batch
_LAST_START = 60.0  # seconds after which no browser is opened any more
_TICK = 1.0  # seconds between two looks whether the database is the same file
_LOOK = 0.1  # seconds between two looks whether the server answers


@dataclass(frozen=True, slots=True)
class ServeOptions:
    port: int = 8001
    """0: any that is free."""
    watched: bool = False
    """Keep the database up to date meanwhile."""
    opened: bool = False
    """Open a browser."""
    others: Sequence[str] = ()
    """Options of Datasette, and files of other databases."""


def serve(database: Path, options: ServeOptions) -> int:
    """Serve the database until a signal ends it; return the exit code of the process.

    Raises DatabaseError if there is none, it is of another program or newer than this one, or it is
    removed or replaced meanwhile; BusyError if it must be updated while another process writes;
    and UsageError for a port that is taken and for options that are not passed on.
    """
    is_one_page = _check(database, options.others)
    port = 0 if is_one_page else _free_port(options.port)
    watched = _prepare(database, options.watched)
    address = f"http://{HOST}:{port}/"
    with ExitStack() as stack:
        stack.enter_context(switched_on())
        came = stack.enter_context(_ended_by_signals())
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assoc-ingest-")))
        if watched:
            stack.enter_context(_following(database))
        if not is_one_page:
            stack.enter_context(_ended_with(database))
            if options.opened:
                stack.enter_context(_browser(address, port))
            say(f"Conversations: {address}")
        own = ["--host", HOST, "--port", str(port), *_settings(), *_metadata(database, place)]
        code = _datasette([str(database), *own, *options.others])
        return 0 if code == INTERRUPTED and signal.SIGTERM in came[:1] else code


def metadata_for(database: Path) -> str:
    """Return metadata.yml with its tables under the name that Datasette gives to this file."""
    text = sql.data("metadata.yml").read_text("utf-8")
    return text.replace("\n  assoc:\n", f"\n  {json.dumps(database.stem)}:\n", 1)


def _prepare(database: Path, watched: bool) -> bool:
    """Check and update the database. Should a watch be started?"""
    if watched:
        try:
            with writing(database):
                return True
        except BusyError as error:
            open_reader(database).close()
            say(f"{error} Serving without --watch, since that process updates the database.")
            return False
    try:
        open_reader(database).close()
    except DatabaseError:
        if not database.exists():
            raise
        with writing(database):  # an older one is updated, any other is refused again
            pass
    return False


# -- Datasette -----------------------------------------------------------------------------------


def _datasette(arguments: Sequence[str]) -> int:
    """Run Datasette until it ends; return the exit code."""
    from uvicorn.config import LOGGING_CONFIG

    for formatter in LOGGING_CONFIG["formatters"].values():
        formatter["use_colors"] = False  # on a terminal they would be shown as escapes
    with _command(arguments) as context:
        try:
            context.command.invoke(context)
        except SystemExit as error:  # of --get, of SIGTERM, and of a server that cannot start
            return error.code if isinstance(error.code, int) else 0
    return INTERRUPTED  # 0.65 ends quietly after Ctrl-C, 1.0 raises


def _command(arguments: Sequence[str]) -> Any:
    from datasette.cli import serve as command

    return command.make_context("assoc-ingest serve", list(arguments))


def _check(database: Path, others: Sequence[str]) -> bool:
    """Raise UsageError for options that are not passed on; say if they ask for one page (--get).

    Datasette reads them itself, so that no way of writing one is overlooked.
    """
    with _command([str(database), *others]) as context:
        for name, reason in _REFUSED.items():
            if context.params.get(name):
                raise UsageError(f"{reason}. Leave it out.")
        if context.params.get("host") != HOST or context.params.get("uds"):
            raise UsageError(_FOREIGN_HOST)
        if remote() and len(context.params["files"]) > 1:
            raise UsageError("With --remote, no other databases are served. Leave them out.")
        return context.params.get("get") is not None


def _settings() -> Iterator[str]:
    for name, value in SETTINGS.items():
        yield from ("--setting", name, str(value))


def _metadata(database: Path, place: Path) -> Iterator[str]:
    """Write metadata.yml for a database of this name; yield the options that make it known."""
    from datasette.version import __version__

    path = place / "metadata.yml"
    path.write_text(metadata_for(database), "utf-8")
    yield from ("--metadata", str(path))
    if not __version__.startswith("0."):  # 1.0 takes the settings of tables from its configuration
        yield from ("--config", str(path))


def _free_port(port: int) -> int:
    """Return the port, or a free one for 0. Raises UsageError if it is not available."""
    with socket.socket() as probe:
        if os.name == "posix":  # else the connections of a server that just ended count as taken
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            why = "is in use" if error.errno == errno.EADDRINUSE else "is reserved by the system"
            raise UsageError(
                f"Port {port} {why}. Choose another one, or use --port 0 for any free port."
            ) from None
        return int(probe.getsockname()[1])


# -- beside the server ---------------------------------------------------------------------------


@contextmanager
def _following(database: Path) -> Iterator[None]:
    """Keep the database up to date in a second process, which ends with this one."""
    # Without -P, the current directory could bring modules of its own.
    program = [sys.executable, "-P", "-m", "assoc_ingest", "watch", "--until-eof"]
    watch = subprocess.Popen(  # noqa: S603 — this program, and the path that it was given
        [*program, "--db", str(database.resolve())], stdin=subprocess.PIPE
    )
    try:
        yield
    finally:
        if watch.stdin:
            watch.stdin.close()
        try:
            watch.wait(_LAST_BATCH)
        except subprocess.TimeoutExpired:
            watch.kill()  # which costs nothing but the time to read that batch again
            watch.wait()


@contextmanager
def _ended_with(database: Path) -> Iterator[None]:
    """End the server when the database is another file, or none; then raise DatabaseError.

    Datasette has connections that it opened before. They would go on showing what was there then,
    and others what is there now.
    """
    held, ended, lost = identity(database), Event(), Event()

    def look() -> None:
        while not ended.wait(_TICK):
            if identity(database) != held:
                lost.set()
                signal.raise_signal(signal.SIGTERM)
                return

    Thread(target=look, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
    if lost.is_set():
        raise DatabaseError(
            f"{database} was removed or replaced while being served. "
            "To serve the new database, run serve again."
        )


@contextmanager
def _browser(address: str, port: int) -> Iterator[None]:
    """Open the address as soon as something answers there."""
    ended = Event()

    def open_when_ready() -> None:
        for _ in range(int(_LAST_START / _LOOK)):
            if ended.wait(_LOOK):
                return
            with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
                webbrowser.open(address)
                return

    Thread(target=open_when_ready, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


@contextmanager
def _ended_by_signals() -> Iterator[list[int]]:
    """Let signals end a server as it ends a watch; yield those that came.

    A terminal that is closed is one, too, unless `nohup` keeps that away: otherwise, the temporary
    directory would stay.

    The server handles signals as soon as it runs. One that comes before is kept until then: an
    exception in the middle of what is being started could leave a thread that nobody knows, and
    the process would wait for it at its end. A second one raises, for someone in a hurry.
    """
    came: list[int] = []
    has_come, over = Event(), Event()

    def keep(number: int, frame: FrameType | None) -> None:
        came.append(number)
        has_come.set()
        if len(came) > 1:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(0)

    def hang_up(number: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGTERM)

    def hand_over() -> None:
        has_come.wait()
        while not over.wait(_LOOK):
            if signal.getsignal(came[0]) is not keep:  # it is the server's now
                signal.raise_signal(came[0])
                return

    handlers = {signal.SIGTERM: keep, signal.SIGINT: keep}
    if os.name != "nt" and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        handlers[signal.SIGHUP] = hang_up
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    Thread(target=hand_over, daemon=True).start()
    try:
        yield came
    finally:
        over.set()
        has_come.set()
        for number, handler in before.items():
            signal.signal(number, handler)
