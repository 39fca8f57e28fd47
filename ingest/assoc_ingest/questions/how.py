"""`how`: how a command is really run here, and whether that works."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from .question import Field, FilterFields, Reader, Size, question

if TYPE_CHECKING:
    from ..ask import how as asked
    from ..ask.filters import Filters
    from ..ask.refs import Names

_LONGEST = 500  # letters of a command


@dataclass
class Failure:
    """The newest run that failed."""

    ref: str | None
    time: str | None
    error: Annotated[str | None, "What its output says went wrong."]


@dataclass
class Form:
    """Runs of a command that differ only in what it was applied to, or in the order of words."""

    ref: Annotated[str | None, "What `open` takes: the newest run that worked, if any did."]
    form: Annotated[str, "How it is written; … stands for what differs from run to run."]
    command: Annotated[str, "That run, as it was written."]
    worked: Annotated[int, "Runs that succeeded."]
    failed: Annotated[int, "Runs that failed."]
    unknown: Annotated[
        int,
        "Runs whose status is not known: `run | tail`, `run; other`, one of several that failed.",
    ]
    time: Annotated[str | None, "When it was run last."]
    key: str | None
    title: str | None
    project: str | None
    failure: Failure | None


@dataclass
class How:
    """What was found."""

    of: Annotated[
        dict[str, object],
        "{command, worked, failed, unknown}: what was asked for, and its runs in all forms",
    ]
    total: Annotated[int, "Forms."]
    notes: Annotated[list[str], "sentences on what was not looked at"]
    items: Annotated[
        list[Form],
        "Forms, those that worked first, the most frequent of them before others.",
    ]

    @property
    def said(self) -> str:
        """How often it was run, and how often that worked, in a sentence."""
        from ..terminal import many

        worked, failed, unknown = (
            int(str(self.of[name])) for name in ("worked", "failed", "unknown")
        )
        runs = f"{many(worked + failed + unknown, 'time')} in {many(self.total, 'form')}"
        unsaid = f", {unknown:,} not known (such as `... | tail`)" if unknown else ""
        return f"Run {runs}: {worked:,} worked, {failed:,} failed{unsaid}."


@question(
    "How a command is run here",
    items="forms",
    about="",
    terminal=Size(5), json=Size(20), web=Size(20),
)  # fmt: skip
def how(
    reader: Reader,
    command: Annotated[
        str,
        Field(
            "A program, with its subcommand and options if those matter: pytest, 'npm run build'.",
            joins=lambda text: True,
        ),
    ],
    *,
    filters: Annotated[Filters, FilterFields(("project", "repository"))],
) -> How:
    """Show how a command was run here, and whether that worked.

    COMMAND is a program, with its subcommand and options if those matter. Runs that differ only in
    files and other arguments are one form; … stands for these. Forms that worked come first, the
    most frequent before others, each with its newest run that worked and why it failed last.

    \b
    Examples:
      assoc-ingest how pytest
      assoc-ingest how npm run build
    """
    from ..ask.filters import projects_in
    from ..ask.how import MOST_CALLS, forms_of
    from ..ask.refs import Names

    found = forms_of(reader.db, command, projects_in(reader.db, filters), reader.mask)
    names = Names(reader.db)
    kinds = ("worked", "failed", "unknown")
    counts = {kind: sum(len(getattr(one, kind)) for one in found.forms) for kind in kinds}
    notes = [f"Only the last {MOST_CALLS:,} calls were looked at."] if found.is_cut else []
    return How(
        {"command": reader.mask(command)[:_LONGEST], **counts},
        len(found.forms),
        notes,
        [_form(reader, names, one) for one in reader.page(found.forms)],
    )


def _form(reader: Reader, names: Names, found: asked.Form) -> Form:
    from .. import sql
    from ..ask.refs import short_key

    call = found.newest.call
    sessions = sql.ask(
        reader.db, "pages/blame_conversations", ids=json.dumps([call["session_id"]])
    ).fetchall()
    session = sessions[0] if sessions else None
    return Form(
        ref=names.of(call["file_id"], call["byte_offset"]),
        form=" ".join(found.words),
        command=found.newest.command[:_LONGEST],
        worked=len(found.worked),
        failed=len(found.failed),
        unknown=len(found.unknown),
        time=max(run.call["timestamp"] or "" for run in found.runs) or None,
        key=short_key(reader.db, session["session_key"]) if session else None,
        title=session["title"] if session else None,
        project=session["project"] if session else None,
        failure=_failure(reader, names, found.failed[0]) if found.failed else None,
    )


def _failure(reader: Reader, names: Names, run: asked.Run) -> Failure:
    from ..ask.blame import line_of
    from ..ask.how import error_of

    error = error_of(reader.db, run, reader.mask)
    ref = names.of(run.call["file_id"], run.call["byte_offset"])
    return Failure(ref, run.call["timestamp"], error and line_of(error))
