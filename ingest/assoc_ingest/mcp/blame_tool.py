"""The tools `blame` (who made this) and `fix` (what ended an error before)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..terminal import many
from .budget import Answer, Cursors, Item, heading, quoted
from .tool import PLACE, PROJECT, QUOTED, TEXT, Arguments, Tool, number

if TYPE_CHECKING:
    from ..ask.blame import Question
    from .index import Index


# ------------------------------------------------------------------------------------------------
# The tool `fix`: what ended an error before.


_FIXES, _MOST_FIXES = 4, 20
_FURTHEST_FIX = 300  # endings that cursors lead to
_ERRORS = 2  # of an ending


def run_fix(index: Index, arguments: Arguments) -> Answer:
    """Find the error, and return each way in which it ended as an item."""
    from ..ask.filters import project_ids
    from ..ask.fix import fixes_of, said

    connection = index.connection
    asked = [arguments.get(name) for name in FIX_PROPERTIES if name != "limit"]
    cursors = Cursors("fix", str(index.settings.database), index.settings.project, asked)
    (start,) = cursors.place(arguments.get("cursor"), [0])
    if start > _FURTHEST_FIX:
        raise UsageError("Nobody reads that far. Give more of the error.")
    limit = int(str(arguments.get("limit", _FIXES)))
    project = arguments.get("project")
    projects = project_ids(connection, str(project)) if project else None
    found = fixes_of(connection, str(arguments["error"]), projects, index.mask)
    shown = found.shown(connection, start, limit, _ERRORS, index.mask)
    return Answer(
        items=(_fix_item(one.as_json()) for one in shown),
        render=_render_fix,
        cursor=lambda number, _: cursors.made(start + number),
        is_continued=False,
        head={"of": {**found.facts(), "error": index.mask(found.error)[:500]}, "total": len(found),
              "notes": found.notes},
        said=(said(found),) if found else (),
        empty=" ".join(("No failed call in the index has this error.", *found.notes))
        if not start else "There is no more.",
        behind=lambda: cursors.made(start + limit) if len(found) > start + limit else None,
    )  # fmt: skip


def _fix_item(found: dict[str, object]) -> Item:
    errors = found["occurrences"]
    return {
        **found,
        "occurrences": [
            {name: value for name, value in error.items() if value is not None}
            for error in (errors if isinstance(errors, list) else ())
        ],
    }


def _render_fix(item: Item) -> str:
    """Return an ending with its errors as text."""
    times = f"{item.get('count')}x"
    lines = [
        "",
        heading(item.get("kind"), item.get("certainty"), times, str(item.get("time"))[:16]),
    ]
    lines.append(quoted(str(item.get("what"))))
    errors = item.get("occurrences")
    for error in errors if isinstance(errors, list) else ():
        lines.append(heading(error.get("ref"), "failed"))
        lines.append(quoted(f"{error.get('command') or ''}\n{error.get('error') or ''}".strip()))
        for step in error.get("steps") or ():
            lines.append(heading(step.get("ref"), step.get("action")))
            lines.append(quoted(f"{step.get('target')}  {step.get('text') or ''}".rstrip()))
        if isinstance(ended := error.get("ended"), dict):
            lines += [heading(ended.get("ref"), "worked"), quoted(str(ended.get("target")))]
        if why := error.get("why"):
            lines.append(f"A guess: {why}.")
    return "\n".join(lines)


FIX_PROPERTIES: dict[str, dict[str, object]] = {
    "error": {
        **TEXT,
        "description": "The text of the error, or a traceback. Numbers, paths, hashes and quotes "
        "do not matter.",
    },
    "project": PROJECT,
    "limit": number(f"Most endings. Default {_FIXES}.", _MOST_FIXES),
}

FIX = Tool(
    name="fix",
    title="What ended this error before",
    description=(
        "Find where an error occurred before, and what was done that ended it: the edits and "
        "commands until the same check succeeded, the most frequent ending first. What only "
        "suggests an end is marked as a guess; errors of which nothing shows an end come last. "
        "Use it with an error message before trying what was tried. "
        f"{QUOTED}"
    ),
    properties=FIX_PROPERTIES,
    required=("error",),
    run=run_fix,
    only_unlimited=("project",),
    fields={
        "of": {
            "type": "object",
            "description": "The line that was looked for, how often it was found and ended, and "
            "how many of the ends are guesses.",
        },
        "total": {"type": "integer", "description": "Different endings."},
        "notes": {"type": "array", "items": TEXT},
        "items": {
            "type": "array",
            "description": "Endings, the most frequent first; what never ended comes last.",
            "items": {
                "type": "object",
                "properties": {
                    "kind": {**TEXT, "description": "edited, ran, looked, again or never"},
                    "what": {**TEXT, "description": "What was done."},
                    "certainty": {
                        "type": ["string", "null"],
                        "description": "seen, guess, or null if nothing shows an end",
                    },
                    "count": {"type": "integer", "description": "Errors that ended so."},
                    "time": {"type": ["string", "null"]},
                    "occurrences": {
                        "type": "array",
                        "description": "The newest errors: ref, command, error, steps, ended, "
                        "certainty, and why it is a guess.",
                        "items": {"type": "object"},
                    },
                },
            },
        },
    },
)


# ------------------------------------------------------------------------------------------------
# The tool `blame`: which conversations made a file, a line, a commit or a pull request.


_CONVERSATIONS, _MOST = 6, 50
_FURTHEST = 1_000  # conversations that cursors lead to
_PLACES = 4  # of a conversation
_LARGEST = 10**9  # number of a line


def run_blame(index: Index, arguments: Arguments) -> Answer:
    """Find the evidence, and return a conversation as an item."""
    from ..ask.blame import blame

    asked = [arguments.get(name) for name in PROPERTIES if name != "limit"]
    cursors = Cursors("blame", str(index.settings.database), index.settings.project, asked)
    (start,) = cursors.place(arguments.get("cursor"), [0])
    if start > _FURTHEST:
        raise UsageError("Nobody reads that far. Name the file or the commit more exactly.")
    limit = int(str(arguments.get("limit", _CONVERSATIONS)))
    found = blame(index.connection, _question(index, arguments))
    count = len(found.conversations)
    shown = found.conversations.shown(start, limit, _PLACES, index.mask)
    return Answer(
        items=(_item(one.as_json()) for one in shown),
        render=_render,
        cursor=lambda number, _: cursors.made(start + number),
        is_continued=False,
        head={"of": found.of, "total": count, "notes": found.notes},
        said=(f"{many(count, 'conversation')}, those with the strongest evidence first.",)
        * bool(count),
        empty="No conversation in the index made, read or mentions it."
        if not start
        else "There is no more.",
        behind=lambda: cursors.made(start + limit) if count > start + limit else None,
    )


def _question(index: Index, arguments: Arguments) -> Question:
    """Return what is asked for. Where there is one project only, git is asked inside of it only."""
    from ..ask.blame import Question, directories_of, directory_of
    from ..ask.filters import find_projects
    from ..paths import here

    connection = index.connection
    line = arguments.get("line")
    number = int(str(line)) if line is not None else None
    name = arguments.get("project")
    if index.is_limited:
        within = directories_of(connection)
        directory = within[0] if within else None
        return Question(str(arguments["what"]), number, directory, None, within)
    if name:
        ids = find_projects(connection, str(name))
        directory = directory_of(connection, ids)
        return Question(str(arguments["what"]), number, directory, json.dumps(ids))
    place = here()
    return Question(str(arguments["what"]), number, place.as_posix() if place else None)


def _item(found: dict[str, object]) -> Item:
    item = {name: value for name, value in found.items() if value not in (None, 0, [])}
    item.pop("session_key", None)
    places = found["evidence"]
    item["evidence"] = [
        {name: value for name, value in place.items() if value is not None}
        for place in (places if isinstance(places, list) else ())
    ]
    return item


def _render(item: Item) -> str:
    """Return a conversation with its evidence as text."""
    lines = ["", heading(item.get("key"), item.get("grade"), str(item.get("time") or "")[:16])]
    title = " · ".join(
        str(item[name]) for name in ("title", "project", "branch", "subagent") if name in item
    )
    if title:
        lines.append(quoted(title))
    places = item.get("evidence")
    for place in places if isinstance(places, list) else ():
        lines.append(heading(*(place.get(name) for name in ("ref", "grade", "tool"))))
        lines.append(quoted(str(place.get("text"))))
    return "\n".join(lines)


PROPERTIES: dict[str, dict[str, object]] = {
    "what": {
        **TEXT,
        "description": "A file, the hash of a commit, or a pull request (#12 or its address).",
    },
    "line": number("Of a file, only who made this line; needs its git repository.", _LARGEST),
    "project": PROJECT,
    "limit": number(f"Most conversations. Default {_CONVERSATIONS}.", _MOST),
}

BLAME = Tool(
    name="blame",
    title="Which conversation made this",
    description=(
        "Find the conversations that made a file, a line, a commit or a pull request. Evidence has "
        "grades, the strongest first: made (a command here made it and printed its hash), "
        "committed (a commit with this subject at this time), linked, replayed (by a rebase), "
        "edited, read, mentioned, printed. Use it to learn why code is as it is, then `open` the "
        f"ref. {QUOTED}"
    ),
    properties=PROPERTIES,
    required=("what",),
    run=run_blame,
    only_unlimited=("project",),
    fields={
        "of": {"type": "object", "description": "What was asked for, and what is known of it."},
        "total": {"type": "integer", "description": "Conversations that were found."},
        "notes": {"type": "array", "items": TEXT},
        "items": {
            "type": "array",
            "description": "Conversations, those with the strongest evidence first.",
            "items": {
                "type": "object",
                "properties": {
                    "grade": {**TEXT, "description": "The strongest of its evidence."},
                    "key": TEXT,
                    "title": TEXT,
                    "project": TEXT,
                    "branch": TEXT,
                    "time": TEXT,
                    "source": TEXT,
                    "cwd": TEXT,
                    "subagent": TEXT,
                    "more": {"type": "integer", "description": "Further evidence."},
                    "evidence": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "grade": TEXT,
                                "ref": {**TEXT, "description": "What `open` takes."},
                                "time": TEXT,
                                "tool": TEXT,
                                "subagent": TEXT,
                                "text": TEXT,
                                **PLACE,
                            },
                        },
                    },
                },
            },
        },
    },
)
