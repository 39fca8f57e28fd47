"""`serve` starts Datasette for this machine only, over a database that is ours and current.

The first half asks it for one page (`--get`), the second half is the real server.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml
from tests.support.served import is_line_1
from tests.support.shell import Shell, statements_below
from tests.support.writing import TRANSCRIPT, jsonl, user, write
from tests.test_migrations import RELEASED, zstd

from assoc_ingest.errors import BusyError
from assoc_ingest.store.database import locked
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import check
from assoc_ingest.web import serve
from assoc_ingest.web.serve import metadata_for

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own
posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX systems only")

PATIENCE = 60.0
"""Seconds after which a test gives up waiting."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(tmp_path / "home", TRANSCRIPT, user("rename the marmalade button"))
    return tmp_path / "home"


@pytest.fixture
def filled(shell: Shell, home: Path) -> Shell:
    sync(shell.database, [home])
    return shell


# -- one page ------------------------------------------------------------------------------------


def test_a_page_has_the_titles_of_metadata_and_our_settings(filled: Shell) -> None:
    assert filled("serve", "--get", "/assoc/sessions") == 0, filled.err
    assert "Sessions" in filled.out
    assert "best title known" in filled.out
    settings = filled.json("serve", "--get", "/-/settings.json")
    assert isinstance(settings, dict)
    assert settings["suggest_facets"] is settings["allow_download"] is False
    assert settings["allow_csv_stream"] is False
    assert settings["max_returned_rows"] == 1000
    assert 3000 <= settings["sql_time_limit_ms"] <= 5000


@pytest.mark.slow
def test_the_titles_are_there_whatever_the_file_is_called(filled: Shell) -> None:
    other = filled.database.rename(filled.database.with_name("story.db"))
    tables = filled.json("serve", "--db", str(other), "--get", "/story.json")
    hidden = {table["name"]: table["hidden"] for table in tables["tables"]}  # type: ignore[index]
    assert hidden["archive"]
    assert not hidden["sessions"]


@pytest.mark.parametrize("name", ["assoc", "my notes: #1", '"', "null", "1", "\\1", "ü\n"])
def test_no_name_of_a_file_breaks_the_metadata(name: str) -> None:
    databases = yaml.safe_load(metadata_for(Path(f"{name}.db")))["databases"]
    assert list(databases) == [name]
    assert "sessions" in databases[name]["tables"]


@pytest.mark.slow
def test_options_of_datasette_are_passed_on(filled: Shell) -> None:
    options = ("--setting", "default_page_size", "7", "--setting", "sql_time_limit_ms", "4000")
    settings = filled.json("serve", *options, "--get", "/-/settings.json")
    assert isinstance(settings, dict)
    assert (settings["default_page_size"], settings["sql_time_limit_ms"]) == (7, 4000)


def test_an_option_that_nobody_knows_is_refused(filled: Shell) -> None:
    assert filled("serve", "--no-such-option") == 2
    assert "--no-such-option" in filled.err


@pytest.mark.parametrize(
    "options",
    [
        *("--cors", "--host 0.0.0.0", "--host=::", "-- -h 0.0.0.0", "--nolock", "--create"),
        *("--reload", "--root", "--uds /tmp/x", "--immutable DB", "-i DB"),
    ],
)
def test_what_would_undo_the_guard_is_refused(options: str, filled: Shell) -> None:
    words = options.replace("DB", str(filled.database)).split()
    assert filled("serve", "--get", "/", *words) == 2
    assert filled.err.startswith("Error: ")
    assert filled.out == ""


@pytest.mark.slow
def test_the_guard_ends_with_the_server(filled: Shell) -> None:
    assert filled("serve", "--get", "/-/plugins.json") == 0
    assert not serve.is_switched_on()


@pytest.mark.slow
def test_a_missing_page_ends_with_1(filled: Shell) -> None:
    assert filled("serve", "--get", "/assoc/no_such_table") == 1


# -- the database --------------------------------------------------------------------------------


def test_no_database_names_the_command_that_makes_one(shell: Shell) -> None:
    assert shell("serve", "--get", "/") == 4
    assert "assoc-ingest sync" in shell.err
    assert not shell.database.exists()


def test_a_database_that_is_not_ours_is_refused_untouched(shell: Shell) -> None:
    connection = sqlite3.connect(shell.database)
    connection.execute("create table notes (text)")
    connection.close()
    before = shell.database.read_bytes()
    for options in ((), ("--watch",)):
        assert shell("serve", *options, "--get", "/") == 4
        assert "not an assoc-ingest database" in shell.err
    assert shell.database.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.name[:-7])
def test_an_older_database_is_updated_first(released: Path, shell: Shell) -> None:
    shell.database.write_bytes(zstd.decompress(released.read_bytes()))
    assert shell("status") == 4
    assert shell("serve", "--get", "/assoc/usage_by_day") == 0, shell.err
    assert shell("status") == 0


@pytest.mark.slow
def test_it_serves_while_another_process_writes(filled: Shell) -> None:
    with locked(filled.database):
        assert filled("serve", "--get", "/assoc/messages") == 0, filled.err
        assert filled("serve", "--watch", "--get", "/assoc/messages") == 0, filled.err
    assert f"process {os.getpid()}" in filled.err
    assert "Serving without --watch" in filled.err


@pytest.mark.slow
def test_a_port_that_is_taken_is_one_sentence(filled: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert filled("serve", "--port", port) == 2
    assert (
        filled.err
        == f"Error: Port {port} is in use. Choose another one, or use --port 0 for any free port.\n"
    )


# -- the server ----------------------------------------------------------------------------------


class Server:
    """The program, serving; `log` is what it said so far."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log
        self.address = "http://" + self.said(r"running on http://(\S+)")

    def said(self, pattern: str) -> str:
        found: list[str] = []
        wait_until(lambda: found.extend(re.findall(pattern, self.log())) or bool(found), self.log)
        return found[0]

    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        request = urllib.request.Request(self.address + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


def wait_until(happened: Callable[[], bool], log: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, log()
        time.sleep(0.05)


@contextmanager
def serving(database: Path, *options: str, **environment: str) -> Iterator[Server]:
    log = database.with_name("log")
    command = [sys.executable, "-m", "assoc_ingest", "serve", "--port", "0", "--db", str(database)]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, *options],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**os.environ, **environment},
            preexec_fn=_hears_of_its_terminal if os.name == "posix" else None,
        )
    try:
        yield Server(process, log)
    finally:
        process.kill()
        process.wait()


def _hears_of_its_terminal() -> None:
    """The tests may run under `nohup`, which `serve` respects."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.slow
@posix
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 0), ("SIGHUP", 0), ("SIGINT", 130)])
def test_a_signal_ends_it_and_the_watch_beside_it(
    name: str, code: int, home: Path, tmp_path: Path
) -> None:
    database, temporary = tmp_path / "assoc.db", tmp_path / "temporary"
    temporary.mkdir()
    own = {"CLAUDE_CONFIG_DIR": str(home), "TMPDIR": str(temporary)}
    with serving(database, "--watch", **own) as server:
        server.said(r"blocks? added")
        assert not is_free(database)
        server.process.send_signal(getattr(signal, name))
        assert server.process.wait(PATIENCE) == code, server.log()
        assert is_free(database), "the watch is still there"
        assert not list(temporary.iterdir())
        assert "Traceback" not in server.log()


SENT_EARLY = """
import os, signal, threading

start = threading.Thread.start

def start_and_signal(thread):
    start(thread)
    if "ThreadPoolExecutor" in thread.name and threading.current_thread().name == "MainThread":
        threading.Thread.start = start
        os.kill(os.getpid(), signal.{name})

threading.Thread.start = start_and_signal
"""
"""A plugin of Datasette. Its pool does not know a thread yet whose start is interrupted here, and
does not end it when the process ends, which waits for all threads."""


@pytest.mark.slow
@posix
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 0), ("SIGHUP", 0), ("SIGINT", 130)])
def test_a_signal_that_comes_while_it_starts_ends_it_when_it_has(
    name: str, code: int, home: Path, tmp_path: Path
) -> None:
    database, plugins = tmp_path / "assoc.db", tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "early.py").write_text(SENT_EARLY.format(name=name))
    options = ("--watch", "--plugins-dir", str(plugins))
    with serving(database, *options, CLAUDE_CONFIG_DIR=str(home)) as server:
        assert server.process.wait(PATIENCE) == code, server.log()
        assert is_free(database), "the watch is still there"
        assert "Traceback" not in server.log()


@pytest.mark.slow
@posix
def test_the_watch_ends_though_the_server_was_killed(home: Path, tmp_path: Path) -> None:
    database = tmp_path / "assoc.db"
    with serving(database, "--watch", CLAUDE_CONFIG_DIR=str(home)) as server:
        server.said(r"blocks? added")
        server.process.kill()
        wait_until(lambda: is_free(database), server.log)


def is_free(database: Path) -> bool:
    try:
        with locked(database):
            return True
    except BusyError:
        return False


@pytest.mark.slow
def test_what_is_written_meanwhile_is_shown(home: Path, tmp_path: Path) -> None:
    database = tmp_path / "assoc.db"
    with serving(database, "--watch", CLAUDE_CONFIG_DIR=str(home)) as server:
        server.said(r"blocks? added")
        with (home / TRANSCRIPT).open("ab") as file:
            file.write(jsonl(user("and the quince label", "u2")))
        address = "/assoc/messages.json?_search=quince&_shape=array"
        wait_until(lambda: "quince" in server.get(address)[1], server.log)
        assert server.get("/assoc")[0] == 200


@pytest.mark.slow
@posix
@pytest.mark.parametrize("options", [(), ("--watch",)], ids=["alone", "with-a-watch"])
@pytest.mark.parametrize("is_replaced", [False, True], ids=["removed", "replaced"])
def test_a_database_that_is_no_longer_there_is_not_shown_any_more(
    options: tuple[str, ...], is_replaced: bool, home: Path, tmp_path: Path
) -> None:
    """Connections that are open would show the old one, and new ones the new one."""
    database, other = tmp_path / "assoc.db", tmp_path / "other.db"
    for each in (database, other):
        sync(each, [home])
    with serving(database, *options, CLAUDE_CONFIG_DIR=str(home)) as server:
        assert server.get("/assoc/sessions")[0] == 200
        if is_replaced:
            other.rename(database)
        else:
            database.unlink()
        assert server.process.wait(PATIENCE) == 4, server.log()
        assert "was removed or replaced" in server.log()
        assert "Traceback" not in server.log()
        assert is_free(database), "the watch is still there"
    if is_replaced:
        check(database, home)


@pytest.mark.slow
def test_the_server_is_guarded(filled: Shell) -> None:
    with serving(filled.database) as server:
        assert server.get("/assoc/sessions")[0] == 200
        assert server.get("/assoc/sessions", Host="evil.com")[0] == 421
        assert server.get("/assoc/sessions", Host="localhost:1")[0] == 200
        assert server.get("//evil.com/")[0] == 400
        forbidden = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
        assert server.get("/assoc.json?sql=select+1", **forbidden)[0] == 403


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="of Linux only")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 0), ("SIGINT", 130)])
def test_a_signal_ends_a_statement_of_a_visitor(name: str, code: int, filled: Shell) -> None:
    sql = (
        "select instr(x, substr(x, 1, 4999999) || 'b') from (select printf('%.*c', 9999999, 'a') x)"
    )
    options = ("--setting", "sql_time_limit_ms", "3600000")
    with serving(filled.database, *options) as server, ThreadPoolExecutor(1) as thread:
        query = "/assoc/-/query" if is_line_1() else "/assoc"
        answer = thread.submit(server.get, f"{query}.json?{urlencode({'sql': sql})}")
        wait_until(lambda: bool(statements_below(server.process.pid)), server.log)
        (child,) = statements_below(server.process.pid)
        server.process.send_signal(getattr(signal, name))
        assert server.process.wait(PATIENCE) == code, server.log()
        assert answer.result()[0] in (400, 503)
        assert not Path(f"/proc/{child}").exists()
        assert "Traceback" not in server.log()


@pytest.mark.slow
@posix
def test_open_opens_the_first_page(filled: Shell, tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new\nmv {opened}.new {opened}\n')
    browser.chmod(0o700)
    with serving(filled.database, "--open", BROWSER=f"{browser} %s") as server:
        wait_until(opened.exists, server.log)
        assert opened.read_text() == f"{server.address}/\n"
        assert f"Conversations: {server.address}/\n" in server.log()
