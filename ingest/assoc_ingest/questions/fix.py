"""`fix`: where an error occurred before, and what was done that ended it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ..errors import UsageError
from .how import Form, how
from .question import Field, FilterFields, Reader, Size, question

if TYPE_CHECKING:
    import sqlite3

    from ..ask.filters import Filters
    from ..ask.fix import FoundError
    from ..ask.refs import Names

_STEPS = 8  # between an error and its end that are shown
_LONGEST = 500  # letters of the line that was looked for


@dataclass
class Step:
    """What was done between an error and its end."""

    ref: str | None
    action: Annotated[str, "edit or run"]
    target: str
    text: str | None


@dataclass
class End:
    """The call that succeeded."""

    ref: str | None
    target: str


@dataclass
class Occurrence:
    """An error in one conversation, until it ended."""

    ref: Annotated[str | None, "What `open` takes: the result with the error."]
    key: str | None
    title: str | None
    project: str | None
    branch: str | None
    time: str | None
    command: Annotated[str | None, "What gave the error: a command, a path."]
    error: Annotated[str, "Its line."]
    times: Annotated[int, "How often it came until it ended."]
    steps: Annotated[list[Step], "What was done before it ended."]
    ended: Annotated[End | None, "The call that succeeded."]
    certainty: Annotated[str | None, "seen or guess; none if nothing shows an end"]
    why: Annotated[str | None, "Why it is a guess."]
    file: str | None
    line: int | None
    byte: int


@dataclass
class Ending:
    """What ended an error, and where."""

    kind: Annotated[
        str,
        "edited, ran, looked (its file was read), again (nothing changed) or never (no end is "
        "seen)",
    ]
    what: Annotated[str, "What was done."]
    certainty: Annotated[
        str | None,
        "seen if one was seen to end so, else guess; none if nothing shows an end",
    ]
    count: Annotated[int, "Errors that ended so."]
    time: Annotated[str | None, "When the newest of them occurred."]
    occurrences: Annotated[list[Occurrence], "The newest of them."]


@dataclass
class Fixes:
    """What was found."""

    of: Annotated[
        dict[str, object],
        "{error, errors, ended, guesses, conversations, is_exact}: the line that was looked for,"
        " how often it was found and ended, and how many of those ends are guesses; is_exact "
        "is false if only other quoted text matches",
    ]
    total: Annotated[int, "Different endings."]
    notes: Annotated[list[str], "sentences on what was not looked at"]
    items: Annotated[list[Ending], "Endings, the most frequent first; what never ended comes last."]

    @property
    def said(self) -> str:
        """How often the error was found, and how often it ended, in a sentence."""
        from ..terminal import many

        errors, ended, guesses, conversations = (
            int(str(self.of[name])) for name in ("errors", "ended", "guesses", "conversations")
        )
        ends = f"{ended:,} fixed" if ended else "nothing shows that it was fixed"
        if guesses:
            guessed = "all" if guesses == ended else f"{guesses:,} of them"
            ends += f" ({guessed} guessed)" if ended > 1 else " (a guess)"
        return f"Found {many(errors, 'time')} in {many(conversations, 'conversation')}; {ends}."


@dataclass
class Answered:
    """What agents get: how an error ended, or how a command is run."""

    of: Annotated[
        dict[str, object],
        "Of an error {error, errors, ended, guesses, conversations, is_exact}: the line that was "
        "looked for, how often it was found and ended, and how many of those ends are guesses; "
        "is_exact is false if only other quoted text matches. Of a command {command, worked, "
        "failed, unknown}: its runs in all forms",
    ]
    total: Annotated[int, "Different endings or forms."]
    notes: Annotated[list[str], "sentences on what was not looked at"]
    items: Annotated[
        list[Ending | Form],
        "Endings, the most frequent first; what never ended comes last. Or forms, those that "
        "worked first.",
    ]
    _said: str


@question(
    "What ended this error before",
    agents=lambda: Answered,
    items="different endings",
    about="Find where an error occurred before, and what was done that ended it: the edits and "
    "commands until the same check succeeded, the most frequent ending first. What only suggests "
    "an end is marked as a guess; errors of which nothing shows an end come last. Use it with an "
    "error message before trying what was tried. With `command` instead, learn how to run "
    "something here (tests, a build, a deployment): the forms that worked, the most frequent "
    "first, and why others failed.",
    terminal=Size(5, 2), json=Size(5, 5), mcp=Size(4, 2, 20), web=Size(10, 3),
)  # fmt: skip
def fix(
    reader: Reader,
    error: Annotated[
        str | None,
        Field(
            "The text of the error, or a traceback. Numbers, paths, hashes and quotes do not "
            "matter.",
            is_text=True,
        ),
    ],
    command: Annotated[
        str | None,
        Field(
            "Instead of an error: a program, with its subcommand and options if those matter, such "
            "as pytest or npm run build.",
            is_for_agents=True,
            instead="error",
        ),
    ] = None,
    *,
    filters: Annotated[Filters, FilterFields(("project", "repository"))],
) -> Answered | Fixes:
    """Show where an error occurred before, and what fixed it.

    Without ERROR, reads the error from standard input, such as a traceback. Numbers, paths, hashes
    and quoted text in it do not matter. An error counts as fixed if the same check later succeeded
    in the same conversation; the edits and commands in between are shown. Weaker evidence, such as
    another command that succeeded, is marked as a guess.

    \b
    Examples:
      assoc-ingest fix "cannot find module"
      pytest 2>&1 | assoc-ingest fix
    """
    if command:
        if error:
            raise UsageError("Give either error or command.")
        forms = how.ask(reader, command, filters=filters)
        return Answered(forms.of, forms.total, forms.notes, forms.items, forms.said)
    if error is None:
        raise UsageError("fix needs the argument error or command.")
    fixes = _fixes(reader, error, filters)
    if reader.budget is None:
        return fixes
    return Answered(fixes.of, fixes.total, fixes.notes, [*fixes.items], fixes.said)


def _fixes(reader: Reader, error: str, filters: Filters) -> Fixes:
    from ..ask.filters import projects_in
    from ..ask.fix import fixes_of
    from ..ask.refs import Names

    found = fixes_of(reader.db, error, projects_in(reader.db, filters), reader.mask)
    names = Names(reader.db)
    items = [
        Ending(
            kind, reader.mask(what), _certainty(errors), len(errors),
            errors[0].first["timestamp"],
            [_occurrence(reader, names, one) for one in errors[: reader.each]],
        )
        for kind, what, errors in reader.page(found.endings)
    ]  # fmt: skip
    of = {**found.facts(), "error": reader.mask(found.error)[:_LONGEST]}
    return Fixes(of, len(found.endings), found.notes, items)


def _certainty(errors: list[FoundError]) -> str | None:
    """Return seen if one of them was seen to end, else guess; None if nothing shows an end."""
    from ..ask.fix import GUESS, SEEN

    if errors[0].end is None:
        return None
    return GUESS if all(error.why for error in errors) else SEEN


def _occurrence(reader: Reader, names: Names, error: FoundError) -> Occurrence:
    from .. import sql
    from ..ask.blame import line_of
    from ..ask.refs import short_key, texts_of

    row = error.first
    asked = json.dumps([row["session_id"]])
    session = sql.ask(reader.db, "pages/blame_conversations", ids=asked).fetchone()
    asked = json.dumps([[row["file_id"], row["result_offset"], row["subagent_id"]]])
    (place,) = sql.ask(reader.db, "pages/blame_places", places=asked).fetchall()
    steps = (error.changes if len(error.changes) <= _STEPS else error.causes)[-_STEPS:]
    texts = texts_of(reader.db, [call["call_id"] for call in steps])
    line = names.line(row["file_id"], row["result_offset"])
    certainty = _certainty([error])
    return Occurrence(
        ref=names.at(row["file_id"], line),
        key=short_key(reader.db, session["session_key"]) if session else None,
        title=session["title"] if session else None,
        project=session["project"] if session else None,
        branch=place["branch"] or None,
        time=row["timestamp"],
        command=row["target"] and reader.mask(row["target"]),
        error=line_of(reader.mask(error.line)),
        times=len(error.rows),
        steps=[_step(reader, names, call, texts.get(call["call_id"], "")) for call in steps],
        ended=_end(reader, names, error.end),
        certainty=certainty,
        why="; ".join(error.why) if certainty and error.why else None,
        file=place["file"],
        line=line,
        byte=row["result_offset"],
    )


def _step(reader: Reader, names: Names, call: sqlite3.Row, text: str) -> Step:
    from ..ask.conversation import shortly
    from ..records import EDIT

    changed = ""
    if call["action"] == EDIT:
        try:
            value = json.loads(reader.mask(text))
        except ValueError:  # it was cut, or what was masked left no JSON
            value = None
        changed = shortly(value) if isinstance(value, dict) else ""
    ref = names.of(call["file_id"], call["byte_offset"])
    target = reader.mask(call["target"] or "")
    return Step(ref, call["action"], target, reader.mask(changed) if changed else None)


def _end(reader: Reader, names: Names, call: sqlite3.Row | None) -> End | None:
    if call is None:
        return None
    ref = names.of(call["file_id"], call["byte_offset"])
    return End(ref, reader.mask(call["target"] or ""))
