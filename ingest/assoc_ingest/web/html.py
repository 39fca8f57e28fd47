"""Stored text as harmless HTML: Markdown, differences and matches.

This is the only module that says of a text that it is HTML. What it says so of was escaped piece
by piece, or came out of the sanitiser. Each piece takes what it needs of the page's budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from ..ask import snippets
from ..terminal import readable
from .budget import Budget
from .difference import TooMuchError, compared, one_behind_the_other

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONGEST = 60_000
"""Letters of a plain message, and of Markdown that is formatted."""

_LONGEST_VALUE = 10_000  # letters of what a tool was given or gave; its row has the rest
_MOST_ROWS = 400  # of a difference
_TAGS = {
    "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "code", "pre",
    "blockquote", "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
_RULER = " \t>|:-*+.0123456789"  # of a table that may be in a quote or a list
_SCHEMES = ("http://", "https://", "mailto:")
_AS_WRITTEN = "Shown as plain text: too long or too complex to format."
_NOT_COMPARED = (
    "Too long or too repetitive to compare: the old text is shown first, then the new one."
)


def markdown(text: str, budget: Budget | None = None) -> Markup:
    """Return Markdown as HTML: no tags of its own, no images, links only to other sites."""
    import nh3

    budget = budget or Budget()
    text = readable(text)
    cost = len(text) + _cells(text)
    if cost > LONGEST or not budget.lays_out(cost):
        return plain(text, budget) + note(_AS_WRITTEN)
    clean = nh3.clean(
        _parser().render(budget.beginning(text, LONGEST)),
        tags=_TAGS,
        attributes={"a": {"href", "title"}},
        attribute_filter=_kept,
        link_rel="noopener noreferrer nofollow",
    )
    for level in (5, 4, 3, 2, 1):  # a page has headings of its own above those of a text
        below = min(level + 2, 6)
        clean = clean.replace(f"<h{level}>", f"<h{below}>").replace(f"</h{level}>", f"</h{below}>")
    return Markup(clean)  # noqa: S704 - sanitised above


def plain(text: str, budget: Budget | None = None) -> Markup:
    """Return a message as it was written, with line breaks and spaces."""
    return _written(text, LONGEST, Markup('<pre class="ai-plain">'), budget or Budget())


def shortened(text: str, budget: Budget | None = None, name: str = "ai-plain") -> Markup:
    """Return what a tool was given or gave, cut where it is long."""
    opening = Markup('<pre class="{}" tabindex="0">').format(name)
    return _written(text, _LONGEST_VALUE, opening, budget or Budget())


def marked(snippet: str) -> Markup:
    """Return a snippet with its matches in `<mark>`."""
    return joined(
        Markup("<mark>{}</mark>").format(one) if found else escape(one)
        for piece, found in snippets.parts(snippet)
        for one in [readable(piece)]
    )


def difference(before: str, after: str, budget: Budget | None = None) -> Markup:
    """Return what changed between two texts, line by line, with a few lines around it."""
    budget = budget or Budget()
    old, new = _split(before), _split(after)
    notice = Markup("")
    try:
        rows = compared(old, new, budget)
    except TooMuchError:
        rows = one_behind_the_other(old, new)
        notice = note(_NOT_COMPARED)
    lines, room = [], _LONGEST_VALUE * 2
    for sign, line in rows[: budget.pieces(len(rows), _MOST_ROWS)]:
        shown = budget.beginning(line, room)
        room -= len(shown)
        if line and not shown:
            break
        lines.append(_line(sign, shown if shown == line else shown + "…"))
    if len(lines) < len(rows):
        lines.append(_line("…", f"{len(rows) - len(lines):,} more lines"))
    return Markup('<pre class="ai-diff" tabindex="0">{}</pre>').format(joined(lines)) + notice


def note(text: str) -> Markup:
    """Return what a page says of what it does not show."""
    return Markup('<p class="ai-more">{}</p>').format(text)


def joined(parts: Iterable[Markup]) -> Markup:
    """Return pieces of HTML as one."""
    return Markup("").join(parts)


_NAMES = {"+": ("ins", "ai-new"), "-": ("del", "ai-old"), "…": ("span", "ai-gap")}


def _line(sign: str, line: str) -> Markup:
    tag, name = _NAMES.get(sign, ("span", "ai-same"))
    # The sign is text: it is copied, and heard by those who cannot see the colour.
    return Markup('<{0} class="{1}">{2} {3}\n</{0}>').format(tag, name, sign, line)


def _written(text: str, most: int, opening: Markup, budget: Budget) -> Markup:
    shown = budget.beginning(text, most)
    body = opening + readable(shown) + Markup("</pre>")
    if len(shown) < len(text):
        body += note(f"… {len(text) - len(shown):,} more characters: open the row to read them")
    return body


def _split(text: str) -> list[str]:
    return readable(text).rstrip("\n").split("\n") if text else []


def _cells(text: str) -> int:
    """Return about how many cells the tables of a text can have: each row has those of the head."""
    rows = text.split("\n")
    rulers = [number for number, row in enumerate(rows) if "|" in row and not row.strip(_RULER)]
    widest = max((rows[number].count("|") for number in rulers), default=0)
    return (widest + 1) * (len(rows) - rulers[0]) if rulers else 0


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    known = MarkdownIt("commonmark", {"html": False, "linkify": False})
    # References would repeat one long address a thousand times.
    return known.enable(["table", "strikethrough"]).disable(["image", "reference"])


def _kept(tag: str, attribute: str, value: str) -> str | None:
    """Return the value of an attribute; None takes it away: a relative link would lead to us."""
    is_other = attribute != "href" or value.strip().lower().startswith(_SCHEMES)
    return value if is_other else None
