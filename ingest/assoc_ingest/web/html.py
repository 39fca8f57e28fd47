"""Stored text as harmless HTML: Markdown, differences, marks, pictures, input of tool calls."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from functools import cache
from html import unescape
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from .. import terminal
from ..ask.conversation import (
    BOXES,
    Message,
    arguments_of,
    changes_of,
    target_of,
    things_to_do,
)
from ..ask.matches import Span
from ..edits import Change
from ..records import PLAN, RUN
from ..terminal import one_line, readable

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.environment import TemplateModule
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict


# ------------------------------------------------------------------------------------------------
# Limits how much one page shows: conversations can be huge, and any part may be hostile.
#
# A page has as many letters, as much Markdown and as many comparisons of lines as a browser and a
# reader can cope with. Each text takes its share; if nothing is left, a text is shown shorter or
# plainer, and the page says so. The row, one click away, has all of it.


LETTERS = 1_500_000
"""Of stored text on a page."""

PIECES = 20_000
"""Lines of differences, values and other pieces, which cost more than their letters."""

LAID_OUT = 200_000
"""Letters of Markdown, and cells of tables in it, that are laid out on a page."""

COMPARISONS = 4_000_000
"""Pairs of lines that are compared on a page."""


class Budget:
    """How much a page may still show."""

    context: int = 3
    """Unchanged lines around each change of a difference."""

    def __init__(self) -> None:
        self._letters = LETTERS
        self._pieces = PIECES
        self._laid_out = LAID_OUT
        self._comparisons = COMPARISONS

    def beginning(self, text: str, most: int) -> str:
        """Return the beginning of a text: at most `most` letters, and no more than are left."""
        beginning = text[: min(most, self._letters)]
        self._letters -= len(beginning)
        return beginning

    def pieces(self, count: int, most: int) -> int:
        """Take up to `count` pieces, at most `most`, and return how many may be shown."""
        some = min(count, most, self._pieces)
        self._pieces -= some
        return some

    def lays_out(self, cost: int) -> bool:
        """May Markdown of this cost be laid out? If so, its cost is taken."""
        if cost > self._laid_out:
            return False
        self._laid_out -= cost
        return True

    def compares(self, pairs: int) -> bool:
        """May this many more pairs of lines be compared?"""
        self._comparisons -= pairs
        return self._comparisons >= 0


class WholeText(Budget):
    """The budget of an exported file: every text is whole, only formatting is limited."""

    context = 1_000_000

    def __init__(self) -> None:
        super().__init__()
        self._laid_out = 20 * LAID_OUT

    def beginning(self, text: str, most: int) -> str:
        return text

    def pieces(self, count: int, most: int) -> int:
        return count


# ------------------------------------------------------------------------------------------------
# Pieces of HTML from templates that are used without Datasette.


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader

    folder = Path(__file__).parent / "templates"
    return Environment(loader=FileSystemLoader(folder), autoescape=True, trim_blocks=True)


@cache
def _macros(template: str) -> TemplateModule:
    return _templates().get_template(f"_assoc_{template}.html").module


def macro(template: str, name: str, *values: object) -> Markup:
    """Call a macro of one of the templates."""
    made: Markup = getattr(_macros(template), name)(*values)
    return made


# ------------------------------------------------------------------------------------------------
# The changed lines of two texts, with a few lines of context.
#
# The time to compare grows with the square of equal lines, or faster: three edits with some hundred
# equal lines take tens of millions of comparisons. They are counted, and if there are too many, the
# old lines are shown before the new ones.


MOST_LINES = 1_500
"""Lines of both texts together that are compared."""

Row = tuple[str, str]
"""A sign and a line: `-` removed, `+` added, a space for unchanged, `…` left out."""


class TooMuchError(Exception):
    """The two texts are too long or too much alike to compare."""


def compared(before: list[str], after: list[str], budget: Budget) -> list[Row]:
    """Return what changed. Raises TooMuchError."""
    if not before or not after:
        return one_behind_the_other(before, after)
    if len(before) + len(after) > MOST_LINES:
        raise TooMuchError
    rows = list(_rows(before, after, _Matcher(before, after, budget), budget.context))
    return rows or [(" ", line) for line in before]  # nothing changed


def one_behind_the_other(before: list[str], after: list[str]) -> list[Row]:
    return list(chain((("-", line) for line in before), (("+", line) for line in after)))


def _rows(
    before: list[str], after: list[str], matcher: SequenceMatcher[str], context: int
) -> Iterator[Row]:
    for number, group in enumerate(matcher.get_grouped_opcodes(context)):
        if number:
            yield "…", ""
        for kind, first, last, start, stop in group:
            if kind == "equal":
                yield from ((" ", line) for line in before[first:last])
            else:
                yield from (("-", line) for line in before[first:last])
                yield from (("+", line) for line in after[start:stop])


class _Matcher(SequenceMatcher[str]):
    """Counts comparisons before it makes them."""

    def __init__(self, before: list[str], after: list[str], budget: Budget) -> None:
        super().__init__(None, before, after, autojunk=False)
        self._budget = budget
        # A line is compared with each equal line of the other text.
        alike = Counter(after)
        self._pairs_before = [0, *accumulate(1 + alike[line] for line in before)]

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        pairs = self._pairs_before[-1 if ahi is None else ahi] - self._pairs_before[alo]
        if not self._budget.compares(pairs):
            raise TooMuchError
        return super().find_longest_match(alo, ahi, blo, bhi)


# ------------------------------------------------------------------------------------------------
# Stored text as harmless HTML: Markdown, differences and matches.
#
# Only this module marks stored text as HTML. It was escaped piece by piece, or came out of the
# sanitiser. Each piece takes its share of the page's budget.


LONGEST = 60_000
"""Letters of a plain message, and of Markdown that is formatted."""

_LONGEST_VALUE = 10_000  # letters of what a tool was given or gave; its row has the rest
_MOST_ROWS = 400  # of a difference
_TAGS = {
    "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "code", "pre",
    "blockquote", "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
_SIGNS = ("## ", "### ", "- ", "* ", "1. ", "> ")  # what a line of Markdown begins with
_RULER = " \t>|:-*+.0123456789"  # of a table that may be in a quote or a list
_SCHEMES = ("http://", "https://", "mailto:")
_AS_WRITTEN = "Shown as plain text: too long or too complex to format."
_NOT_COMPARED = (
    "Too long or too repetitive to compare: the old text is shown first, then the new one."
)


def typed(text: str, budget: Budget) -> Markup:
    """Return what a person typed: as Markdown if it is written so, else as it was typed."""
    return markdown(text, budget, breaks=True) if _is_markdown(text) else plain(text, budget)


def _is_markdown(text: str) -> bool:
    """Has a text signs of Markdown, and no lines that are indented, as a pasted log has them?

    Indented code and lists within lists would lose their spaces, so they are shown as typed.
    """
    lines = "".join(text.split("```")[::2]).split("\n")
    if any(line.startswith(("  ", "\t")) for line in lines):
        return False
    return "`" in text or "**" in text or any(line.startswith(_SIGNS) for line in lines)


def markdown(text: str, budget: Budget | None = None, *, breaks: bool = False) -> Markup:
    """Return Markdown as HTML: no tags of its own, no images, links only to other sites.

    With `breaks`, each line of it is a line.
    """
    import nh3

    budget = budget or Budget()
    text = readable(text)
    cost = len(text) + _cells(text)
    if cost > LONGEST or not budget.lays_out(cost):
        return plain(text, budget) + note(_AS_WRITTEN)
    clean = nh3.clean(
        _parser(breaks).render(budget.beginning(text, LONGEST)),
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "table": {"tabindex"}},
        attribute_filter=_kept,
        link_rel="noopener noreferrer nofollow",
    )
    for level in (5, 4, 3, 2, 1):  # a page has headings of its own above those of a text
        below = min(level + 2, 6)
        clean = clean.replace(f"<h{level}>", f"<h{below}>").replace(f"</h{level}>", f"</h{below}>")
    return Markup(clean)  # noqa: S704 - sanitised above


def plain(text: str, budget: Budget | None = None) -> Markup:
    """Return a message with its line breaks and spaces."""
    return _written(text, LONGEST, Markup('<pre class="ai-plain">'), budget or Budget())


def shortened(text: str, budget: Budget | None = None, name: str = "ai-plain") -> Markup:
    """Return the input or output of a tool, cut if it is long."""
    opening = Markup('<pre class="{}" tabindex="0">').format(name)
    return _written(text, _LONGEST_VALUE, opening, budget or Budget())


def difference(before: str, after: str, budget: Budget | None = None) -> Markup:
    """Return the changed lines of two texts, with a few lines of context."""
    budget = budget or Budget()
    old, new = _split(before), _split(after)
    notice = Markup("")
    try:
        rows = compared(old, new, budget)
    except TooMuchError:
        rows = one_behind_the_other(old, new)
        notice = note(_NOT_COMPARED)
    return _difference(rows, budget) + notice


def _difference(rows: list[Row], budget: Budget) -> Markup:
    lines, room = [], _LONGEST_VALUE * 2
    for sign, line in rows[: budget.pieces(len(rows), _MOST_ROWS)]:
        beginning = budget.beginning(line, room)
        room -= len(beginning)
        if line and not beginning:
            break
        lines.append(_line(sign, beginning if beginning == line else beginning + "…"))
    if len(lines) < len(rows):
        lines.append(_line("…", f"{len(rows) - len(lines):,} more lines"))
    return Markup('<pre class="ai-diff" tabindex="0">{}</pre>').format(joined(lines))


def note(text: str) -> Markup:
    return Markup('<p class="ai-more">{}</p>').format(text)


def joined(parts: Iterable[Markup]) -> Markup:
    return Markup("").join(parts)


_NAMES = {"+": ("ins", "ai-new"), "-": ("del", "ai-old"), "…": ("span", "ai-gap")}


def _line(sign: str, line: str) -> Markup:
    tag, name = _NAMES.get(sign, ("span", "ai-same"))
    # The sign is text: it is copied, and heard by those who cannot see the colour.
    return Markup('<{0} class="{1}">{2} {3}\n</{0}>').format(tag, name, sign, line)


def _written(text: str, most: int, opening: Markup, budget: Budget) -> Markup:
    beginning = budget.beginning(text, most)
    body = opening + readable(beginning) + Markup("</pre>")
    if len(beginning) < len(text):
        body += note(f"… {len(text) - len(beginning):,} more characters: open the row to see them")
    return body


def _split(text: str) -> list[str]:
    return readable(text).rstrip("\n").split("\n") if text else []


def _cells(text: str) -> int:
    """Estimate how many cells the tables of a text have: each row is as wide as the head."""
    rows = text.split("\n")
    rulers = [number for number, row in enumerate(rows) if "|" in row and not row.strip(_RULER)]
    widest = max((rows[number].count("|") for number in rulers), default=0)
    return (widest + 1) * (len(rows) - rulers[0]) if rulers else 0


@cache
def _parser(breaks: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": breaks})
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("table_open", lambda *_: '<table tabindex="0">\n')  # a wide one scrolls
    # References would repeat one long address a thousand times.
    return parser.enable(["table", "strikethrough"]).disable(["image", "reference"])


def _fence(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: object
) -> str:
    """Return a block of code below what its fence says of it, its language: no word is lost."""
    info = tokens[at].info.strip()
    said = f"<p><code>{escape(info)}</code></p>\n" if info else ""
    return f"{said}<pre><code>{escape(tokens[at].content)}</code></pre>\n"


def _kept(tag: str, attribute: str, value: str) -> str | None:
    """Return the value of an attribute, None to remove it: a relative link would lead to us."""
    is_other = attribute != "href" or value.strip().lower().startswith(_SCHEMES)
    return value if is_other else None


# ------------------------------------------------------------------------------------------------
# The input of a tool call as a page shows it: a command, a difference, a list.


_MOST_INPUT = 50  # arguments, changes and things to do of one call
_LONG_NAME, _LONG_ITEM = 200, 2000  # letters
_NONE = Markup("")
_MARKDOWN = {"prompt", "plan", "message", "summary"}
_FIELD = Markup('<dt>{}</dt><dd class="ai-value">{}</dd>')


def body_of(message: Message, budget: Budget) -> Markup:
    arguments = arguments_of(message)
    if not arguments:
        is_empty = not message.content.strip("{} \n")
        return _NONE if is_empty else shortened(message.content, budget)
    if changes := changes_of(message):
        return _changes(changes, budget)
    if (todos := things_to_do(message)) is not None:
        return _list(todos, budget)
    if message.action == RUN and isinstance(arguments.get("command"), str):
        return _command(arguments, budget)
    return fields(arguments, budget)


def summary_of(message: Message, directory: str | None) -> str:
    """Return one line about a call: its target, or how much of a list is done."""
    arguments = arguments_of(message)
    if (todos := things_to_do(message)) is not None:
        done = sum(isinstance(one, dict) and one.get("status") == "completed" for one in todos)
        return f"{done} of {len(todos)} done"
    if message.action == PLAN and isinstance(arguments.get("taskId"), str):
        changes = [
            f"{key} {value}" if key != "status" else str(value)
            for key, value in arguments.items()
            if key != "taskId" and isinstance(value, str)
        ]
        if changes:
            return one_line(f"task {arguments['taskId']}: {', '.join(changes)}")
    return target_of(message, directory)


def fields(arguments: dict[str, object], budget: Budget) -> Markup:
    """Return named values as HTML, with long texts laid out."""
    count = _few(arguments, budget)
    rows = [
        _FIELD.format(_named(key, budget), _value(key, value, budget))
        for key, value in islice(arguments.items(), count)
    ]
    named = Markup('<dl class="ai-fields">{}</dl>').format(joined(rows)) if rows else _NONE
    return named + _more(len(arguments) - count, "value")


def _changes(changes: list[Change], budget: Budget) -> Markup:
    count = _few(changes, budget)
    parts = [
        _difference([_patched(line) for line in change.patch.split("\n")], budget)
        if change.patch
        else difference(change.old, change.new, budget)
        for change in changes[:count]
    ]
    return joined(parts) + _more(len(changes) - count, "change")


def _patched(line: str) -> Row:
    return (line[0], line[1:]) if line.startswith(("-", "+")) else (" ", line.removeprefix(" "))


def _list(items: list[object], budget: Budget) -> Markup:
    count = _few(items, budget)
    rows = [
        Markup("<li><span>{}</span> {}</li>").format(
            BOXES.get(str(item.get("status")), "☐"),
            _named(str(item.get("content") or item.get("activeForm") or ""), budget, _LONG_ITEM),
        )
        for item in items[:count]
        if isinstance(item, dict)
    ]
    items_list = Markup('<ul class="ai-todos">{}</ul>').format(joined(rows))
    return items_list + _more(len(items) - count, "item")


def _command(arguments: dict[str, object], budget: Budget) -> Markup:
    rest = {key: value for key, value in arguments.items() if key != "command"}
    command = shortened(f"$ {arguments['command']}", budget, "ai-plain ai-command")
    return command + fields(rest, budget)


def _value(key: str, value: object, budget: Budget) -> Markup:
    if isinstance(value, str):
        if key in _MARKDOWN and "\n" in value:
            return Markup('<div class="ai-prose">{}</div>').format(markdown(value, budget))
        return shortened(value, budget)
    return shortened(json.dumps(value, ensure_ascii=False, indent=2), budget)


def _named(text: str, budget: Budget, most: int = _LONG_NAME) -> str:
    """Return a text on one line, as much of it as there is room for."""
    beginning = budget.beginning(text, most)
    return one_line(beginning) if beginning == text else one_line(beginning) + "…"


def _few(parts: Sized, budget: Budget) -> int:
    return budget.pieces(len(parts), _MOST_INPUT)


def _more(count: int, word: str) -> Markup:
    if not count:
        return _NONE
    return note(f"… and {terminal.many(count, f'more {word}')}: open the row")


# ------------------------------------------------------------------------------------------------
# Placeholders of images in a text: the page requests each image by its number.


LARGEST = 8_000_000
"""Bytes of an image that is shown."""

_MOST = 20  # of one message
# As `fields.placeholder` writes it, of the types that every browser shows.
_placeholder = re.compile(r"\[image image/(?:png|jpeg|gif|webp) ([\d,]{1,12}) bytes\]", re.ASCII)


@dataclass(slots=True)
class Picture:
    """An image of a message, and the text to show without it."""

    message: int
    number: int
    """Which image of its message it is, from 1."""
    text: str
    address: str = ""


def in_text(message: int, text: str) -> Iterator[Picture]:
    """Yield the images that a text has placeholders for, without those that are too large."""
    placeholders = dict.fromkeys(match[0] for match in islice(_placeholder.finditer(text), _MOST))
    for number, placeholder in enumerate(placeholders, start=1):
        size = _placeholder.fullmatch(placeholder)
        if size is not None and int(size[1].replace(",", "") or 0) <= LARGEST:
            yield Picture(message, number, placeholder)


# ------------------------------------------------------------------------------------------------
# Marks words in HTML made of stored text: only in its text, never in a tag.


Look = Callable[[str], list[Span]]
"""Returns the places of the words in a text."""

# Attribute values made here are in double quotes, and may contain `>`.
_tag = re.compile(r'(<(?:[^<>"]++|"[^"]*+")*+>)')


def marked_html(body: str, look: Look) -> Markup:
    """Return HTML or text with the words that `look` finds in `<mark>`; tags do not change."""

    def marked(piece: str) -> str:
        text, position, parts = unescape(piece), 0, []
        for start, end in look(text):
            parts.append(f"{escape(text[position:start])}<mark>{escape(text[start:end])}</mark>")
            position = end
        return "".join([*parts, escape(text[position:])])

    return _with_texts(body, marked)


def at_slashes(cell: object) -> Markup:
    """Return HTML or text that a browser may break after the slashes before words."""
    return _with_texts(cell, lambda piece: _slash.sub("/<wbr>", piece))


_slash = re.compile(r"/(?=\w)")


def _with_texts(body: object, changed: Callable[[str], str]) -> Markup:
    """Return HTML with its texts changed, which are and stay escaped; tags do not change."""
    pieces = _tag.split(str(escape(body)))
    pieces[::2] = [changed(piece) if piece else "" for piece in pieces[::2]]
    return Markup("".join(pieces))  # noqa: S704 - the tags it had, and escaped texts
