"""Runs Datasette on the database, for the browser of the user who started it.

It listens on this machine only and behind the guard (`web/guard`), with the titles and notes of
metadata.yml, and with limits that let no page take the machine. Options of Datasette pass through,
but for those that would undo one of these, or let Datasette write.

With `--watch`, a second process keeps the database up to date. It ends when this one ends, however
that happens: its standard input, a pipe from here, closes.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Any

from .. import sql
from ..ask.output import say
from ..errors import BusyError, DatabaseError, UsageError
from ..paths import identity
from ..stopping import INTERRUPTED
from ..store.database import open_reader, writing
from . import guard

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
"""Settings of Datasette; the user's own come behind them, and win."""

_REFUSED = {
    "cors": "--cors would let every web page read your conversations",
    "immutable": "-i shows wrong data while the database is written",
    "nolock": "--nolock shows wrong data while the database is written",
    "create": "--create would create a database that assoc-ingest cannot use",
    "reload": "--reload would start Datasette without protection against other sites",
    "root": "--root allows writing, and only assoc-ingest may write to its database",
}
"""Options of Datasette that undo what is promised here, and why they are not passed on."""

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
    """What `serve` is asked to do."""

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
        stack.enter_context(guard.switched_on())
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
    """Make sure that the database is usable and current. Should a watch be started?"""
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
    """Return the port, or one that is free for 0. Raises UsageError if it cannot be had."""
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


# -- beside it -----------------------------------------------------------------------------------


@contextmanager
def _following(database: Path) -> Iterator[None]:
    """Keep the database up to date in a process of its own, which ends with this one."""
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
