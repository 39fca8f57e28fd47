"""How an answer looks: the templates in `views/`, and what they may call.

A template prints what was stored by anybody, so printing itself makes it harmless, and no template
has to think of it: on a terminal a text becomes one line without control characters, in a page its
HTML is escaped, and for agents whatever is no plain name is quoted. A filter that lays out a text
returns it as `Shown`, which is printed as it is. What a macro returns would lose that: use loops.

A template consists of blocks: `answer` shows one, `empty` says that there are no items. The ones
for agents have `head`, a sentence before the items, and `item`, because a budget may end between
two of them, and cut one.

Jinja takes longer to import than a search, so this module is imported where something is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2.runtime import Context
from markupsafe import Markup, escape

from .. import terminal
from ..terminal import Paint, one_line, readable
from .fit import heading, is_plain, quoted

if TYPE_CHECKING:
    import sqlite3

_SHORT = 20  # letters of a cell that is not broken
FOLDERS = [Path(__file__).parents[1] / "views"]


class Shown(str):
    """A text that is laid out for where it is printed."""

    __slots__ = ()


def rendered(name: str, form: str, block: str, context: Mapping[str, object]) -> str:
    """Return a block of the template of a question; `form` is txt, mcp or html."""
    template = environment(form).get_template(f"{name}.{form}")
    text = "".join(template.blocks[block](template.new_context(dict(context)))).rstrip("\n")
    return Markup(text) if form == "html" else text  # noqa: S704 - what it prints is escaped


@cache
def environment(form: str) -> jinja2.Environment:
    """Return what renders the templates of a form."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDERS),
        # Of an item for agents, fields may be cut.
        undefined=jinja2.ChainableUndefined if form == "mcp" else jinja2.StrictUndefined,
        autoescape=form == "html",  # noqa: S701 - elsewhere nothing is HTML
        finalize={"txt": _of_terminal, "mcp": _of_agents, "html": _of_page}[form],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(_FILTERS)
    return made


def _of_terminal(value: object) -> object:
    if value is None:
        return ""
    return value if isinstance(value, Shown) else one_line(str(value))


def _of_agents(value: object) -> object:
    if isinstance(value, Shown) or value is None:
        return value or ""
    text = str(value)
    return text if not text or is_plain(text) else f"\n{quoted(text)}\n"


def _of_page(value: object) -> object:
    if value is None:
        return ""
    return readable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


# -- everywhere ------------------------------------------------------------------------------------


def facts(values: Iterable[object], separator: str = " · ") -> str:
    """Join those that there are."""
    return separator.join(one_line(str(value)) for value in values if value)


# -- on a terminal ---------------------------------------------------------------------------------


def _cut(text: object, width: int) -> str:
    return terminal.cut(one_line(str(text or "")), width)


@jinja2.pass_context
def _line(
    context: Context, text: object, *before: object, indent: int = 0, behind: str = ""
) -> Shown:
    """Return one line of the terminal: texts that are whole, and between them one that is cut."""
    head = " " * indent + "".join(f"{one_line(str(word))}  " for word in before if word)
    tail = f" · {one_line(behind)}" if behind else ""
    room = context["width"] - len(head) - terminal.columns(tail)
    return Shown(head + _cut(text, max(room, 20) if before else room) + tail)


@jinja2.pass_context
def _wrapped(context: Context, text: object, indent: int = 0, hang: int = 0) -> Shown:
    """Return lines of the terminal, all but the first further to the right."""
    lines = terminal.wrap(one_line(str(text)), context["width"] - indent - hang)
    spaces = "\n" + " " * (indent + hang)
    return Shown(" " * indent + spaces.join(lines))


def _painted(colour: str | None = None, **style: bool) -> Callable[..., Shown]:
    @jinja2.pass_context
    def paint(context: Context, text: object) -> Shown:
        lines = (text if isinstance(text, Shown) else one_line(str(text))).split("\n")
        painter: Paint = context["paint"]
        return Shown("\n".join(painter(line, colour, **style) for line in lines))

    return paint


def _as_markdown(text: object) -> Shown:
    """Return a text as one line of Markdown that obeys nothing in it."""
    from ..ask.export import escaped

    return Shown(escaped(one_line(str(text))))


# -- in a page -------------------------------------------------------------------------------------


def page_table(connection: sqlite3.Connection, rows: list[dict[str, object]]) -> Markup:
    """Return rows as the table of a page; numbers are aligned at the right."""
    from ..ask.output import shown_cells

    headers, cells = shown_cells(connection, list(rows[0]), [tuple(row.values()) for row in rows])
    kept = [at for at in range(len(headers)) if any(row[at] not in (None, "") for row in cells)]
    classes = {at: _class([row[at] for row in cells]) for at in kept}

    def line(tag: Markup, row: Sequence[object]) -> Markup:
        return Markup("<tr>%s</tr>") % Markup("").join(
            Markup("<{0}{1}>{2}</{0}>").format(tag, classes[at], _of_cell(row[at])) for at in kept
        )

    head, body = line(Markup("th"), headers), Markup("").join(line(Markup("td"), r) for r in cells)
    return Markup(
        '<div class="ai-wide" tabindex="0" role="region" aria-label="Rows">'
        "<table><thead>{}</thead><tbody>{}</tbody></table></div>"
    ).format(head, body)


def _class(values: Sequence[object]) -> Markup:
    """Return the class of a column: numbers stand at the right, and short words on one line."""
    if all(value is None or isinstance(value, int | float | terminal.Figure) for value in values):
        return Markup(' class="ai-number"')
    is_short = all(len(str(value)) <= _SHORT for value in values)
    return Markup(' class="ai-short"') if is_short else Markup("")


def _of_cell(value: object) -> object:
    return f"{value:,}" if isinstance(value, int) else _of_page(value)


def _highlighted(snippet: str) -> Markup:
    from ..ask.matches import parts

    pieces = ((escape(readable(one)), found) for one, found in parts(snippet))
    return Markup("").join(
        Markup("<mark>{}</mark>").format(one) if found else one for one, found in pieces
    )


# -- for agents ------------------------------------------------------------------------------------


def _heading(names: Iterable[object]) -> Shown:
    return Shown(heading(*filter(None, names)))


def _quoted(text: object) -> Shown:
    return Shown(quoted(str(text or "")))


_FILTERS: dict[str, Any] = {
    "besides": lambda branch, project: terminal.branch_besides(project or None, branch or None),
    "cut": _cut,
    "day": lambda text: Shown(terminal.day(f"{text}T12:00")),
    "facts": facts,
    "heading": _heading,
    "highlighted": _highlighted,
    "line": _line,
    "many": terminal.many,
    "markdown": _as_markdown,
    "moment": terminal.moment,
    "quoted": _quoted,
    "repr": repr,
    "sentence": Shown,  # of the program, nothing that was stored
    "wrap": _wrapped,
    "size": terminal.size,
    "bold": _painted(bold=True),
    "cyan": _painted("cyan"),
    "dim": _painted(dim=True),
    "red": _painted("red"),
    "yellow": _painted("yellow"),
}
