"""The options that several commands share, what a shell may complete, and the progress bar."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click
from click.core import ParameterSource

from ..paths import DATABASE, default_database

if TYPE_CHECKING:
    import sqlite3

    from click.shell_completion import CompletionItem

    from ..ask.output import Format
    from ..questions.fit import Wanted


# ------------------------------------------------------------------------------------------------
# With `--remote`, a command that reads asks the server of the fleet.


P = ParamSpec("P")
R = TypeVar("R")


def remotely(database: Path) -> sqlite3.Connection:
    """Open the server for reading until the command ends."""
    from ..fleet.connect import bounded
    from ..fleet.search import central

    context = click.get_current_context()
    context.with_resource(bounded())
    connection = central(database)
    context.call_on_close(connection.close)
    return connection


# ------------------------------------------------------------------------------------------------
# A progress bar for long commands.


@contextmanager
def progress_in_bytes(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error if that is a terminal, and nothing elsewhere.

    Yields what is to be called with the bytes done and the bytes to do.
    """
    import sys

    from .. import terminal
    from ..terminal import is_terminal, unchecked

    if not is_terminal(sys.stderr):
        yield lambda done, total: None  # click's bar takes a millisecond to import
        return
    bar = click.progressbar(
        length=1,  # known only with the first call
        label=label,
        width=0,  # what the numbers leave of the line
        file=unchecked(sys.stderr),  # the bar is control characters
        item_show_func=lambda item: item,
    )
    with bar:

        def advance(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos, f"{terminal.size(done)} of {terminal.size(total)}")

        yield advance


# ------------------------------------------------------------------------------------------------
# Shell completion: keys of sessions, projects, sources, kinds, queries and lists.
#
# A completion never fails and never waits: without a database, it completes nothing.


_MOST = 50
_TITLE = 60  # columns
_ACTS = frozenset(";&|<>()[]{}$`'\"\\*?!#~^")
"""Special characters of a shell: bash inserts a completion without quoting it."""


def sessions(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the key of a session; its title explains it."""
    from ..ask.refs import sessions_beginning_with
    from ..terminal import cut, one_line

    with _reading(context) as connection:
        rows = sessions_beginning_with(connection, begun)[:_MOST] if connection else []
        return _items(
            {row["session_key"]: cut(one_line(row["title"] or ""), _TITLE) for row in rows}
        )


def projects(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a project; its path explains it."""
    from .. import sql

    with _reading(context) as connection:
        rows = sql.ask(connection, "pages/project_names") if connection else []
        named = {row["name"]: row["path"] for row in rows if row["name"]}
    found = [(name, path) for name, path in sorted(named.items()) if name.startswith(begun)]
    return _items(dict(found[:_MOST]))


def repositories(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    from .. import sql

    with _reading(context) as connection:
        rows = sql.ask(connection, "pages/project_names") if connection else []
        names = {str(row["repository"]) for row in rows}
    return sorted(name for name in names if name.startswith(begun))[:_MOST]


def sources(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from ..ask.filters import source_names

    return [name for name in source_names() if name.startswith(begun)]


def kinds(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    from ..ask.filters import MESSAGE_KINDS, WHAT

    return [kind for kind in dict.fromkeys((*WHAT, *MESSAGE_KINDS)) if kind.startswith(begun)]


def reports(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a report; its title explains it."""
    return _queries("reports", begun)


def lists(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the name of a list; its title explains it."""
    return _queries("lists", begun)


def _queries(folder: str, begun: str) -> list[CompletionItem]:
    from .. import sql

    found = sql.queries(folder).items()
    return _items({name: one.title for name, one in found if name.startswith(begun)})


def _items(explained: dict[str, str]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [
        CompletionItem(value, help=text)
        for value, text in explained.items()
        if value.isprintable() and not _ACTS.intersection(value)
    ]


@contextmanager
def _reading(context: click.Context) -> Iterator[sqlite3.Connection | None]:
    """Open the database that the command line names; None if it cannot be read."""
    import sqlite3

    from ..errors import AssocIngestError
    from ..store.database import open_reader

    try:
        connection = open_reader(Path(context.params["database"]))
    except (AssocIngestError, sqlite3.Error, OSError, KeyError, TypeError):
        yield None
        return
    with closing(connection):
        yield connection


# ------------------------------------------------------------------------------------------------
# The options that several commands share.


class _DatabaseFile(click.Path):
    """A file that is there, or could be."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path. A name that no file can have is wrong usage, and no failure later."""
        super().convert(value, param, ctx)
        if not os.fspath(value):
            self.fail("The name of the database is empty. Give a file: --db FILE", param, ctx)
        path = Path(value)
        try:
            path.absolute().stat()
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
                self.fail(f"{os.strerror(error.errno)}. Give another file: --db FILE", param, ctx)
            if error.filename is None:  # the current directory was removed
                self.fail(
                    f"No directory exists for {path}. Give another file: --db FILE", param, ctx
                )
        return path


def reading(database: Path) -> sqlite3.Connection:
    """Open the database for reading until the command ends."""
    from ..store.database import open_reader

    connection = open_reader(database)
    click.get_current_context().call_on_close(connection.close)
    return connection


def database_option(command: Callable[P, R]) -> Callable[P, R]:
    """Add `-d/--db` as the argument `database`, and `-v`."""
    database = click.option(
        "-d",
        "--db",
        "database",
        type=_DatabaseFile(path_type=Path, dir_okay=False),
        envvar=DATABASE,
        default=default_database,
        callback=_follow_links,
        show_default="assoc.db in your data directory",
        show_envvar=True,
        help="Database file.",
    )
    return database(verbose_option(command))


def any_database_option(command: Callable[P, R]) -> Callable[P, R]:
    """Add `-d/--db` to the group: it means the same before the command as behind it."""
    return click.option(
        "-d",
        "--db",
        type=_DatabaseFile(path_type=Path, dir_okay=False),
        expose_value=False,
        callback=_remember_database,
        help="Database file, for any command.",
    )(command)


def _remember_database(context: click.Context, _: click.Parameter, value: Path | None) -> None:
    context.ensure_object(dict)["database"] = value


def _follow_links(context: click.Context, parameter: click.Parameter, database: Path) -> Path:
    """Return the real path: the lock, the log and the database are then in one directory."""
    from ..store.database import resolved

    given = (context.find_root().obj or {}).get("database")
    is_own = context.get_parameter_source("database") is ParameterSource.COMMANDLINE
    return resolved(given if given is not None and not is_own else database)


def project_option(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Add `--project`; `what` says for what the project is given."""
    text = f"{what}, given by name, path or id; . is the current directory."
    return click.option("--project", help=text, shell_complete=projects)


class _SourceOption(click.Option):
    """The option `--source`, whose help names the sources: they are loaded when it is printed."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from ..ask.filters import source_names

        record = super().get_help_record(ctx)
        return record and (record[0], f"{record[1]}: {', '.join(source_names())}.")


def source_option(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Add `--source`; `what` says what is limited to the source."""
    return click.option(
        "--source",
        cls=_SourceOption,
        callback=_check_source,
        help=what,
        shell_complete=sources,
    )


def filter_option(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Add the option of one filter."""
    from ..ask.filters import FILTERS

    one, flags = FILTERS[name], f"--{name.replace('_', '-')}"
    if name == "project":
        return project_option(one.about)
    if name == "source":
        return source_option(one.about)
    if name == "repository":
        return click.option(flags, help=one.about, shell_complete=repositories)
    if one.type is list:
        return click.option(flags, multiple=True, help=f"{one.about}; can be given several times.")
    value = {"time": "WHEN", "dollars": "USD"}.get(one.kind)
    return click.option(flags, name, is_flag=one.type is bool, metavar=value, help=one.about)


def _check_source(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    if name is not None:
        from ..ask.filters import known_source

        known_source(name)
    return name


def jobs_option(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--jobs`."""
    return click.option(
        "-j",
        "--jobs",
        type=click.IntRange(1, 64),
        metavar="N",
        help="Use N processes if there is much to read. [default: one per core, at most 8]",
    )(command)


def yes_option(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--yes`, for commands that ask."""
    return click.option("-y", "--yes", is_flag=True, help="Do not ask on a terminal.")(command)


def asks(*, yes: bool) -> bool:
    """Return whether to ask first: a person at a terminal, but never a script."""
    import sys

    from ..terminal import is_terminal

    return not yes and is_terminal(sys.stdin) and is_terminal(sys.stdout)


def confirmed(question: str) -> bool:
    """Ask the user; say so if the answer is no."""
    is_agreed = click.confirm(question, err=True)
    if not is_agreed:
        click.echo("Nothing was changed.", err=True)
    return is_agreed


class _ForPrograms(click.Option):
    """An option about the output that a program reads."""


class QueryCommand(click.Command):
    """A command whose argument may begin with a dash: the error for such an option says how.

    Its help has the options for programs at its end.
    """

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        every = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        for heading, is_for_programs in (("Options", False), ("Output for programs", True)):
            options = [one for one in every if isinstance(one, _ForPrograms) == is_for_programs]
            if records := [*filter(None, (one.get_help_record(ctx) for one in options))]:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; raise UsageError with the way to search for an unknown option."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from ..terminal import to_copy

            search = to_copy("assoc-ingest", str(self.name), name=error.option_name)
            raise click.UsageError(
                f"{error.format_message()} To search for it: {search}", ctx
            ) from None


class WordsCommand(QueryCommand):
    """A command whose query may have words that begin with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; `-word`, which leaves out a word, is one of the query."""
        return super().parse_args(ctx, _with_words_behind(args))


def _with_words_behind(args: list[str]) -> list[str]:
    """Return the arguments with `-word`, which leaves out a word, behind the options.

    Everything behind `--` is words, so that is kept for the query.
    """
    options: list[str] = []
    words: list[str] = []
    for number, arg in enumerate(args):
        if arg == "--":
            return [*options, "--", *words, *args[number:]]
        # `-n50` and `-d/srv/assoc.db` are options with their values.
        is_word = arg[:1] == "-" and arg[1:3].isalpha() and len(arg) > 2
        (words if is_word and not {"/", "."} & set(arg) else options).append(arg)
    return [*options, "--", *words] if words else options  # else it would be a missing value


def pager_option(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--no-pager`, which `ask.output` reads; it means the same before the command."""
    return click.option(
        "--no-pager",
        is_flag=True,
        expose_value=False,
        callback=_remember_no_pager,
        help="Do not show long output in a pager.",
    )(command)


def _remember_no_pager(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().ensure_object(dict)["no_pager"] = True


def verbose_option(command: Callable[P, R]) -> Callable[P, R]:
    """Add `-v`, which the entry point reads when something goes wrong."""
    return click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=_remember_verbose,
        help="Print a traceback for internal errors.",
    )(command)


def _remember_verbose(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().ensure_object(dict)["verbose"] = True


def rows_option(terminal: int, json: int) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Add `--limit` for rows: so many on a terminal and in JSON, 0 is all.

    The command gets None if no limit is given and these differ.
    """
    is_same = terminal == json
    text = "Maximum number of rows; 0 for no limit."
    return click.option(
        "-n",
        "--limit",
        type=click.IntRange(min=0),
        metavar="N",
        default=terminal if is_same else None,
        show_default=is_same,
        help=text if is_same else f"{text} [default: {json} with --json, else {terminal}]",
    )


def json_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add `--json` and what bounds its answer, as the argument `wanted`: None without `--json`."""

    @wraps(command)
    def with_json(
        as_json: bool,
        fields: str | None,
        max_chars: int | None,
        cursor: str | None,
        **others: object,
    ) -> R:
        if not as_json:
            if (fields, max_chars, cursor) != (None, None, None):
                text = "--fields, --max-chars and --cursor belong to --json. Add it."
                raise click.UsageError(text)
            return command(wanted=None, **others)
        from ..questions.fit import Wanted

        return command(wanted=Wanted(cursor, fields, max_chars), **others)

    for flags, type_, value, text in (
        ("--cursor", str, "NEXT", "With --json: continue after the answer with this `next`."),
        ("--max-chars", click.IntRange(min=1000), "N", "With --json: at most N characters."),
        ("--fields", str, "NAMES", "With --json: only these fields, separated by commas."),
    ):
        with_json = click.option(flags, cls=_ForPrograms, type=type_, metavar=value, help=text)(
            with_json
        )
    return click.option(
        "--json", "as_json", cls=_ForPrograms, is_flag=True, help="Print one JSON object."
    )(with_json)


def format_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add `--json` with its options, `--nl`, `--csv` and `--table` as `wanted` and `form`."""

    @wraps(command)
    def with_format(
        wanted: Wanted | None,
        as_lines: bool,
        as_csv: bool,
        csv_safe: bool,
        whole: bool,
        **others: object,
    ) -> R:
        from ..ask.output import Format

        is_json = wanted is not None
        chosen = {"json": is_json, "nl": as_lines, "csv": as_csv or csv_safe, "whole": whole}
        names = [name for name, is_chosen in chosen.items() if is_chosen]
        if len(names) > 1:
            raise click.UsageError("Choose one of --json, --nl, --csv and --table.")
        form: Format = Format(names[0] if names else "table", csv_safe)
        return command(form=form, wanted=wanted, **others)

    for flag, name, text in (
        ("--csv-safe", "csv_safe", "Like --csv, but put a ' before cells that look like formulas."),
        ("--csv", "as_csv", "Print CSV with a header."),
        ("--nl", "as_lines", "Print JSON, one object per line."),
    ):
        with_format = click.option(flag, name, cls=_ForPrograms, is_flag=True, help=text)(
            with_format
        )
    text = "Print a table with all columns and uncut cells."
    return click.option("-t", "--table", "whole", is_flag=True, help=text)(
        json_options(with_format)
    )
