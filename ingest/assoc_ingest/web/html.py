"""Stored text as HTML: Markdown, differences and matches, of which nothing can act on a page.

This is the only module that says of a text that it is HTML. What it says so of was escaped piece
by piece, or came out of the sanitiser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from .. import marks
from ..terminal import readable

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_MOST_MARKDOWN = 60_000  # letters; what is longer is shown as it is
_MOST_COMPARED = 1_500  # lines: comparing takes time that grows with their square
_MOST_LINES = 400  # of a difference
_CONTEXT = 3
_TAGS = {
    "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "code", "pre",
    "blockquote", "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
_SCHEMES = ("http://", "https://", "mailto:")


def markdown(text: str) -> Markup:
    """Return Markdown as HTML: no tags of its own, no images, links only to other sites."""
    import nh3

    text = readable(text)
    if len(text) > _MOST_MARKDOWN:
        return plain(text)
    clean = nh3.clean(
        _parser().render(text),
        tags=_TAGS,
        attributes={"a": {"href", "title"}},
        attribute_filter=_kept,
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)  # noqa: S704 - sanitised in the line above


def plain(text: str) -> Markup:
    """Return text as it was written, line breaks and spaces kept."""
    return Markup('<pre class="ai-plain">{}</pre>').format(readable(text))


def marked(snippet: str) -> Markup:
    """Return a balanced snippet with its matches in `<mark>`."""
    return Markup("").join(
        Markup("<mark>{}</mark>").format(one) if found else escape(one)
        for piece, found in marks.parts(snippet)
        for one in [readable(piece)]
    )


def difference(before: str, after: str) -> Markup:
    """Return what changed between two texts, line by line, with a few lines around it."""
    lines = list(_lines(_split(before), _split(after)))
    rows = Markup("").join(_line(sign, line) for sign, line in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        rows += _line("…", f"{len(lines) - _MOST_LINES:,} more lines")
    return Markup('<pre class="ai-diff" tabindex="0">{}</pre>').format(rows)


_NAMES = {"+": ("ins", "ai-new"), "-": ("del", "ai-old"), "…": ("span", "ai-gap")}


def _line(sign: str, line: str) -> Markup:
    tag, name = _NAMES.get(sign, ("span", "ai-same"))
    # The sign is text: it is copied, and heard by those who cannot see the colour.
    return Markup('<{0} class="{1}">{2} {3}\n</{0}>').format(tag, name, sign, line)


def _lines(before: list[str], after: list[str]) -> Iterator[tuple[str, str]]:
    if len(before) + len(after) > _MOST_COMPARED or not before or not after:
        yield from chain((("-", line) for line in before), (("+", line) for line in after))
        return
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number:
            yield "…", ""
        for kind, first, last, start, stop in group:
            if kind == "equal":
                yield from ((" ", line) for line in before[first:last])
            else:
                yield from (("-", line) for line in before[first:last])
                yield from (("+", line) for line in after[start:stop])


def _split(text: str) -> list[str]:
    return readable(text).rstrip("\n").split("\n") if text else []


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    known = MarkdownIt("commonmark", {"html": False, "linkify": False})
    return known.enable(["table", "strikethrough"]).disable("image")


def _kept(tag: str, attribute: str, value: str) -> str | None:
    """Return the value of an attribute; None takes it away: a relative link would lead to us."""
    is_other = attribute != "href" or value.strip().lower().startswith(_SCHEMES)
    return value if is_other else None


def joined(parts: Iterable[Markup]) -> Markup:
    """Return pieces of HTML as one."""
    return Markup("").join(parts)
