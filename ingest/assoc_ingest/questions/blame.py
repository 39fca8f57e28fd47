"""`blame`: which conversations made a file, a line, a commit or a pull request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from .question import NOTED, Field, FilterFields, Reader, Size, question

if TYPE_CHECKING:
    from ..ask.blame import Conversation
    from ..ask.blame import Question as Wanted
    from ..ask.filters import Filters
    from ..ask.refs import Names


@dataclass
class Place:
    """Evidence with what opens it."""

    grade: str
    ref: Annotated[str | None, "What `open` takes."]
    time: str | None
    tool: str | None
    subagent: str | None
    text: Annotated[str, "What was seen there, in short."]
    file: Annotated[str | None, "The file it was read from."]
    line: int | None
    byte: Annotated[int, "Where the line begins."]


@dataclass
class Blamed:
    """A conversation, with the evidence that it made what was asked for."""

    grade: Annotated[str, "The strongest of its evidence."]
    key: str
    title: str | None
    project: str | None
    branch: str | None
    time: Annotated[str | None, "When the strongest evidence was written."]
    source: str
    session_key: str
    cwd: str | None
    subagent: Annotated[str | None, "Who did it, if not the main conversation."]
    lines: Annotated[int | None, "Lines of it that were written here, where they were counted."]
    of_lines: Annotated[int | None, "All its lines that can be recognised."]
    evidence: Annotated[list[Place], "The strongest."]
    more: Annotated[int, "Further evidence."]


@dataclass
class Blame:
    """What was found."""

    GRADES: ClassVar = {
        "made": "committed in this conversation",
        "committed": "a commit with this subject was made here at this time",
        "linked": "the conversation names it as its pull request",
        "wrote": "most of its lines were written here",
        "branch": "on the branch of this pull request",
        "partly": "a part of its lines was written here",
        "replayed": "a rebase or cherry-pick here made it from another commit",
        "edited": "edited here",
        "read": "read here",
        "mentioned": "mentioned here",
        "printed": "printed by a tool here",
    }

    of: Annotated[
        dict[str, object],
        "what was asked for: kind (file, line, commit, pull_request) and what is known of it",
    ]
    total: Annotated[int, "Conversations that were found."]
    notes: Annotated[
        list[str],
        "sentences on how the question was understood, and on what was not looked at",
    ]
    noted: Annotated[list[dict[str, object]] | None, NOTED]
    items: Annotated[list[Blamed], "Conversations, those with the strongest evidence first."]


@question(
    "Which conversation made this",
    items="conversations",
    about="Find the conversations that made a file, a line, a commit or a pull request. Evidence "
    "has grades, the strongest first: made (a command here made it and printed its hash), "
    "committed (a commit with this subject at this time), linked, wrote (edits here added most of "
    "its lines), branch (of the pull request), partly (edits here added some of its lines), "
    "replayed (by a rebase), edited, read, mentioned, printed. Use it to learn why code is as it "
    "is, then `open` the ref.",
    terminal=Size(10, 3), json=Size(10, 10), mcp=Size(6, 4, 50), web=Size(20, 5),
    tables=("added_lines", "contexts"),
)  # fmt: skip
def blame(
    reader: Reader,
    what: Annotated[
        str,
        Field(
            "A file, the hash of a commit, or a pull request (#12 or its address).",
            name="FILE|COMMIT|PR",
            joins=lambda text: _is_pull_request(text),
        ),
    ],
    line: Annotated[
        int | None,
        Field("Of a file, only who made this line.", needs_disk=True),
    ] = None,
    *,
    filters: Annotated[Filters, FilterFields(("project", "repository"))],
) -> Blame:
    """Show which conversations made a file, a commit or a pull request.

    Evidence is graded, strongest first: a command made the commit and printed its hash; a commit
    with this subject was made at this time; edits added most or some of its lines, wherever their
    file was; a rebase repeated it; the file was edited; it was read, mentioned or printed. `show`
    opens each place. Uses git if the repository is on this machine. A pull request is a number,
    `PR 118`, `owner/name#118` or an address.

    \b
    Examples:
      assoc-ingest blame src/pool.py
      assoc-ingest blame src/pool.py --line 42
      assoc-ingest blame 1a2b3c4
      assoc-ingest blame '#118'
    """
    from ..ask.blame import blame
    from ..ask.refs import Names

    found = blame(reader.db, _wanted(reader, what, line, filters))
    names = Names(reader.db)
    items = [_blamed(reader, names, one) for one in reader.page(found.conversations)]
    noted = _noted(reader, what, found.of.get("path"))
    return Blame(found.of, len(found.conversations), found.notes, noted or None, items)


def _noted(reader: Reader, what: str, path: object) -> list[dict[str, object]]:
    """Return the notes on a file."""
    from ..ask.notes import notes, told
    from ..paths import is_file, real_path, slashed

    paths = {str(path)} if path else set()
    if reader.has_disk and not reader.is_limited and is_file(what):
        paths.add(slashed(str(real_path(what))))
    return told(notes(reader.db, paths=paths), reader.mask) if paths else []


def _is_pull_request(text: str) -> bool:
    from ..ask.blame import as_pull_request

    return as_pull_request(text) is not None


def _wanted(reader: Reader, what: str, line: int | None, filters: Filters) -> Wanted:
    """Say where relative paths begin, in a given project or here, and where git may be asked."""
    from ..ask.blame import Question, directories_of, directory_of
    from ..ask.filters import projects_in
    from ..paths import here

    if reader.is_limited:
        within = directories_of(reader.db)
        return Question(what, line, within[0] if within else None, None, within)
    nowhere = None if reader.has_disk else ()
    projects = projects_in(reader.db, filters)
    if projects is not None:
        return Question(
            what, line, directory_of(reader.db, json.loads(projects)), projects, nowhere
        )
    place = here() if reader.has_disk else None
    return Question(what, line, place.as_posix() if place else None, None, nowhere)


def _blamed(reader: Reader, names: Names, found: Conversation) -> Blamed:
    from .. import sql
    from ..ask.blame import excerpt
    from ..ask.refs import short_key

    listed = found.evidence[: reader.each]
    asked = json.dumps([[one.file, one.byte, one.subagent] for one in listed])
    rows = {
        (row["file_id"], row["byte_offset"]): row
        for row in sql.ask(reader.db, "pages/blame_places", places=asked)
    }
    places = []
    for one in listed:
        row, line = rows[one.file, one.byte], names.line(one.file, one.byte)
        text = excerpt(one.text, row["texts"] or "", reader.mask)
        places.append(Place(
            one.grade, names.at(one.file, line), one.time, one.tool, row["subagent"], text,
            row["file"], line, one.byte,
        ))  # fmt: skip
    session, first = found.session, listed[0]
    counted = next((one for one in found.evidence if one.lines), None)
    return Blamed(
        grade=first.grade,
        key=short_key(reader.db, session["session_key"]),
        title=session["title"],
        project=session["project"],
        branch=rows[first.file, first.byte]["branch"] or session["git_branch"],
        time=first.time or session["ended_at"],
        source=session["source"],
        session_key=session["session_key"],
        cwd=session["cwd"],
        subagent=places[0].subagent,
        lines=counted.lines if counted else None,
        of_lines=counted.of_lines if counted else None,
        evidence=places,
        more=len(found.evidence) - len(listed),
    )
