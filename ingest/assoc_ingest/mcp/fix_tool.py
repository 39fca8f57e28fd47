"""The tool `fix`: what ended an error before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UsageError
from .answers import Answer, Item
from .cursors import Cursors
from .quotes import heading, quoted
from .tool import PROJECT, QUOTED, TEXT, Arguments, Tool, number

if TYPE_CHECKING:
    from .index import Index

_FIXES, _MOST = 4, 20
_FURTHEST = 300  # endings that cursors lead to
_ERRORS = 2  # of an ending


def run(index: Index, arguments: Arguments) -> Answer:
    """Find the error, and return each way in which it ended as an item."""
    from ..ask.fix import fixes_of, said
    from ..ask.project_names import project_ids

    connection = index.connection
    asked = [arguments.get(name) for name in PROPERTIES if name != "limit"]
    cursors = Cursors("fix", str(index.settings.database), index.settings.project, asked)
    (start,) = cursors.place(arguments.get("cursor"), [0])
    if start > _FURTHEST:
        raise UsageError("Nobody reads that far. Give more of the error.")
    limit = int(str(arguments.get("limit", _FIXES)))
    project = arguments.get("project")
    projects = project_ids(connection, str(project)) if project else None
    found = fixes_of(connection, str(arguments["error"]), projects, index.mask)
    shown = found.shown(connection, start, limit, _ERRORS, index.mask)
    return Answer(
        items=(_item(one.as_json()) for one in shown),
        render=_render,
        cursor=lambda number, _: cursors.made(start + number),
        is_continued=False,
        head={"of": {**found.facts(), "error": index.mask(found.error)[:500]}, "total": len(found),
              "notes": found.notes},
        said=(said(found),) if found else (),
        empty=" ".join(("No failed call in the index has this error.", *found.notes))
        if not start else "There is no more.",
        behind=lambda: cursors.made(start + limit) if len(found) > start + limit else None,
    )  # fmt: skip


def _item(found: dict[str, object]) -> Item:
    errors = found["occurrences"]
    return {
        **found,
        "occurrences": [
            {name: value for name, value in error.items() if value is not None}
            for error in (errors if isinstance(errors, list) else ())
        ],
    }


def _render(item: Item) -> str:
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


PROPERTIES: dict[str, dict[str, object]] = {
    "error": {
        **TEXT,
        "description": "The text of the error, or a traceback. Numbers, paths, hashes and quotes "
        "do not matter.",
    },
    "project": PROJECT,
    "limit": number(f"Most endings. Default {_FIXES}.", _MOST),
}

TOOL = Tool(
    name="fix",
    title="What ended this error before",
    description=(
        "Find where an error occurred before, and what was done that ended it: the edits and "
        "commands until the same check succeeded, the most frequent ending first. What only "
        "suggests an end is marked as a guess; errors of which nothing shows an end come last. "
        "Use it with an error message before trying what was tried. "
        f"{QUOTED}"
    ),
    properties=PROPERTIES,
    required=("error",),
    run=run,
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
