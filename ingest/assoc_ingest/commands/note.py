"""assoc-ingest note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from .options import database_option, sessions

if TYPE_CHECKING:
    from ..ask.notes import Note

_PLACE = ("line_key", "file_id", "byte_offset", "id")
"""Fields of a note that mean nothing to anybody but this database."""


@click.command()
@click.argument("name", metavar="KEY[:LINE]|FILE", shell_complete=sessions)
@click.argument("words", metavar="[TEXT]", nargs=-1)
@click.option("--kept", "verdict", flag_value="kept", help="It was a decision, and it held.")
@click.option(
    "--rejected", "verdict", flag_value="rejected", help="It was a decision that was turned down."
)
@click.option("--no-verdict", "verdict", flag_value="", help="Take the verdict away.")
@click.option("--star/--no-star", default=None, help="Give it a star, or take that away.")
@click.option("--title", help="Your own title of the conversation; '' takes it away.")
@click.option("--remove", is_flag=True, help="Remove the note.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def note(
    database: Path,
    name: str,
    words: tuple[str, ...],
    verdict: str | None,
    star: bool | None,
    title: str | None,
    remove: bool,
    as_json: bool,
) -> None:
    """Keep a note on a conversation, on a line of one, or on a file.

    A note is a text, a verdict on a decision, a star, and for a conversation a title of your own,
    which is shown in place of any other. TEXT replaces an earlier one; what is not given stays.
    With nothing else, the notes on it are printed. A note stays when what it is about is read
    again, rebuilt or forgotten.

    \b
    Examples:
      assoc-ingest note 0b7c2f4e --title 'Pool deadlock' --star
      assoc-ingest note 0b7c2f4e:212 --kept One lock for each pool, not for each connection
      assoc-ingest note src/pool.py --rejected A second pool for reads was slower
      assoc-ingest note 0b7c2f4e:212 --remove
      assoc-ingest list notes
    """
    from ..ask.output import say
    from ..upkeep.note import Change, read_notes, remove_note, write_note

    change = Change(" ".join(words) or None, verdict, title, star)
    if remove and not change.is_none:
        raise UsageError("--remove takes nothing beside it.")
    if change.is_none and not remove:
        found = read_notes(database, name)
        _write(found, as_json=as_json)
        if not found:
            say("There is no note on it.")
        return
    done = remove_note(database, name) if remove else write_note(database, name, change)
    _write([done], as_json=as_json)
    say(f"{'Removed the note' if remove else 'Noted'} on {done.path or done.ref}.")


def _write(notes: Sequence[Note], *, as_json: bool) -> None:
    from ..ask.output import write
    from ..questions.fit import SCHEMA
    from ..terminal import safe_json

    if as_json:
        items = [
            {name: value for name, value in asdict(note).items() if name not in _PLACE}
            for note in notes
        ]
        write([safe_json({"schema": SCHEMA, "items": items}) + "\n"], is_exact=True)
    else:
        write(line for note in notes for line in _lines(note))


def _lines(note: Note) -> list[str]:
    from .. import terminal
    from ..terminal import one_line, readable

    facts = (note.path or note.ref, "★" * note.is_starred, note.verdict, terminal.moment(note.time))
    titled = [one_line(note.title) + "\n"] if note.title else []
    said = [f"  {line}\n" for line in readable(note.text).split("\n")] if note.text else []
    return [" · ".join(one_line(one) for one in facts if one) + "\n", *titled, *said]
