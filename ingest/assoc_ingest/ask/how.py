"""`how`: in which forms a program was run, and which of them worked.

1. The full-text index finds calls that ran a command with the program's name, the last first.
2. Each is taken apart by the grammar of `shell`; those count in which the program runs with the
   subcommand and the options that were asked for.
3. Runs that differ only in their files and texts, or in the order of their words, are one form.
   Those that worked come first, the most frequent of them before others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field

from .. import sql
from ..errors import UsageError
from . import shell
from .fix import telling_lines, whole
from .query import TOOLS, Term, in_scope
from .refs import texts_of

MOST_CALLS = 2_000
"""Calls that are taken apart, those that were read last."""

_AT_ONCE = 500


@dataclass(slots=True)
class Form:
    """Runs of a program that differ only in what it was applied to; the newest first."""

    words: list[str]
    """How the newest of them was written, without what differs."""
    worked: list[Run] = field(default_factory=list)
    failed: list[Run] = field(default_factory=list)
    unknown: list[Run] = field(default_factory=list)

    @property
    def newest(self) -> Run:
        """The run that shows it: one that worked, if any did."""
        return (self.worked or self.unknown or self.failed)[0]

    @property
    def runs(self) -> list[Run]:
        return [*self.worked, *self.unknown, *self.failed]


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a program."""

    call: sqlite3.Row
    command: str
    """As it was written, but for quotes, redirections and what else the command line runs."""


@dataclass(slots=True)
class Forms:
    """What was found."""

    forms: list[Form]
    is_cut: bool
    """There are older calls that were not looked at."""


def forms_of(
    connection: sqlite3.Connection,
    command: str,
    project: str | None = None,
    clean: Callable[[str], str] = str,
) -> Forms:
    """Return the forms in which a command was run. `project` is a JSON array of ids; None for all.

    `clean` is applied to commands before they are taken apart.

    Raises UsageError if the command names no program.
    """
    asked = shell.asked_for(command.replace("\0", " "))
    if asked is None:
        raise UsageError("Give a command, such as pytest or 'npm run build'.")
    expression = " AND ".join(
        f"({' OR '.join(Term(name).expression() for name in names)})"
        for names in shell.names_of(asked)
    )
    rows = sql.ask(
        connection, "pages/how_calls", match=in_scope(TOOLS, expression), project=project,
        limit=MOST_CALLS + 1,
    ).fetchall()  # fmt: skip
    forms: dict[frozenset[str], Form] = {}
    for start in range(0, min(len(rows), MOST_CALLS), _AT_ONCE):
        some = rows[start : min(start + _AT_ONCE, MOST_CALLS)]
        texts = texts_of(connection, [row["call_id"] for row in some])
        for row in some:
            text = clean(whole(row["target"] or "", texts.get(row["call_id"], "")))
            _add(forms, row, text, asked)
    listed = list(forms.values())
    for one in listed:
        for runs in (one.worked, one.failed, one.unknown):
            runs.sort(key=_time, reverse=True)
    listed.sort(key=lambda one: _time(one.newest), reverse=True)
    listed.sort(key=lambda one: (not (one.worked or one.unknown), not one.worked, -_good(one)))
    return Forms(listed, len(rows) > MOST_CALLS)


def _add(
    forms: dict[frozenset[str], Form], row: sqlite3.Row, text: str, asked: shell.Invocation
) -> None:
    for one, has_worked in shell.parsed(text).outcomes(is_ok=row["status"] == "ok"):
        if shell.is_run_of(one, asked):
            words = shell.form(one)
            form = forms.setdefault(frozenset(words), Form(words))
            runs = {True: form.worked, False: form.failed, None: form.unknown}[has_worked]
            runs.append(Run(row, shell.written(one)))


def _good(form: Form) -> int:
    return len(form.worked) + len(form.unknown)


def _time(run: Run) -> str:
    return run.call["timestamp"] or ""


def error_of(
    connection: sqlite3.Connection, run: Run, clean: Callable[[str], str] = str
) -> str | None:
    """Return the line that says why a run failed; None if none does."""
    text = texts_of(connection, [run.call["result_id"]]).get(run.call["result_id"], "")
    lines = telling_lines(clean(text))
    return lines[0] if lines else None
