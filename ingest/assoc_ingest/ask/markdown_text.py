"""Stored text as Markdown that cannot break out of its place.

What agents write is Markdown already. Its blocks are written again one by one: a code block that is
never closed gets its end, a heading moves below those of the document. In what is left no `<` stays
that could begin a tag, no image is loaded, no link leads to a script, no name is mentioned and no
issue closed. Other text is escaped, or stands in a fence that is longer than any in it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from ..terminal import one_line, readable

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST = 60_000
"""Letters of Markdown that is taken apart; a longer text stands in a fence."""

_special = re.compile(r"[\\`<!\]@#]")
_ticks = re.compile(r"`+")
_fences = re.compile(r"`{3,}+")
_active = re.compile(r"[\\`*_\[\]~|$!<>&@#]")
_line_start = re.compile(r"\A\s*(?:[-+=]|\d{1,9}[.)])")
_tag_start = re.compile(r"<[A-Za-z/!?]")
_destination = re.compile(r"(?:https?://|mailto:|#|\.{0,2}/|[\w.-]{1,200}(?:[/)#?\s]|\Z))", re.I)
_info = re.compile(r"[\w+#.-]{1,20}")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_BREAK = "&#8203;"
"""Behind `@` and `#`, so that nobody is mentioned and no issue is referred to."""

_DEEPEST = 14  # lists and quotes inside each other; programs stop at about twenty
_FEW_LINES = 40  # that are quoted; more of them stand in a fence


def prose(text: str, level: int) -> str:
    """Return Markdown that an agent wrote, its headings below those of this level."""
    text = readable(text).strip("\n")
    if len(text) > LONGEST or text.count("|") > LONGEST // 20:
        return fenced(text, "markdown")
    tokens = _parser().parse(text)
    if max((token.level for token in tokens), default=0) > _DEEPEST:
        return fenced(text, "markdown")
    return "\n\n".join(_blocks(tokens, text.split("\n"), level))


def quoted(text: str) -> str:
    """Return what a person typed as a quotation; with a shape of its own it stands in a fence."""
    lines = readable(text).strip("\n").split("\n")
    has_shape = any(
        line.startswith("    ") or line.lstrip().startswith(("```", "|")) for line in lines
    )
    if has_shape or len(lines) > _FEW_LINES:
        return fenced("\n".join(lines))
    shown = [_line_start.sub(_not_an_item, escaped(line), count=1) for line in lines]
    ends = [
        "\\" if line and after else "" for line, after in zip(shown, [*shown[1:], ""], strict=True)
    ]
    return "\n".join(f"> {line}{end}".rstrip(" ") for line, end in zip(shown, ends, strict=True))


def escaped(text: str) -> str:
    """Return a line of text without anything that Markdown would obey."""
    return _active.sub(lambda match: _inactive(match, text), text)


def heading(text: str, level: int) -> str:
    """Return a line of text as a heading."""
    return f"{'#' * min(level, 6)} {escaped(one_line(text))}"


def fenced(text: str, info: str = "") -> str:
    """Return a text in a fence that is longer than any in it."""
    text = readable(text).strip("\n")
    longest = max((len(match[0]) for match in _fences.finditer(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{info}\n{text}\n{fence}"


def code(text: str) -> str:
    """Return a line of text as code."""
    text = one_line(text)
    longest = max((len(match[0]) for match in _ticks.finditer(text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def in_html(text: str) -> str:
    """Return a line of text for the inside of a tag of ours."""
    shown = html.escape(one_line(text), quote=False)
    return shown.replace("#", f"#{_BREAK}").replace("@", f"@{_BREAK}")


def _not_an_item(match: re.Match[str]) -> str:
    """Return the beginning of a line that would be an item of a list, or underline a heading."""
    return f"{match[0][:-1]}\\{match[0][-1]}"


def _inactive(match: re.Match[str], text: str) -> str:
    letter = match[0]
    if letter in "<&":
        return html.escape(letter)
    if letter in "@#" and text[match.end() : match.end() + 1].isalnum():
        return letter + _BREAK
    return "\\" + letter if letter != "@" else letter


# -- what an agent wrote -----------------------------------------------------------------------


def _blocks(tokens: list[Token], lines: list[str], level: int) -> Iterator[str]:
    for token, inner in _outermost(tokens):
        first, last = token.map or (0, 0)
        if token.type == "heading_open":
            marks = "#" * min(level + int(token.tag[1:]), 6)
            yield f"{marks} {_inline(inner[0].content.replace(chr(10), ' '))}"
        elif token.type in ("fence", "code_block"):
            info = _info.match(token.info.strip())
            yield fenced(token.content, info[0] if info else "")
        elif token.type == "hr":
            yield "---"
        else:
            yield "\n".join(_written_again([token, *inner], lines, first, last)).rstrip()


def _outermost(tokens: list[Token]) -> Iterator[tuple[Token, list[Token]]]:
    """Yield each token that is in no other, with all that are in it."""
    first = 0
    for number, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            yield tokens[first], tokens[first + 1 : number]
            first = number + 1


def _written_again(
    tokens: Iterable[Token], lines: list[str], first: int, last: int
) -> Iterator[str]:
    """Yield the lines of a block: those of code as they are, each run of text harmless."""
    ends: dict[int, tuple[int, str]] = {}
    for token in tokens:
        kind = {"fence": "code", "code_block": "code", "table_open": "table", "inline": "text"}
        if token.map is not None and token.type in kind and token.map[0] not in ends:
            ends[token.map[0]] = (token.map[1], kind[token.type])
    number = first
    while number < last:
        end, kind_of = ends.get(number, (number + 1, "text"))
        end = max(min(end, last), number + 1)
        if kind_of == "code":
            yield from lines[number:end]
        elif kind_of == "table":  # a cell ends before what is written as code in it does
            yield from ("|".join(map(_inline, line.split("|"))) for line in lines[number:end])
        else:
            yield _inline("\n".join(lines[number:end]))
        number = end


def _inline(text: str) -> str:
    """Return a run of text, which is parsed as one, without what must not be in it."""
    parts: list[str] = []
    closings = _closings(text)
    position = 0
    while (match := _special.search(text, position)) is not None:
        start, letter = match.start(), match[0]
        parts.append(text[position:start])
        following = text[start + 1 : start + 2]
        position = start + 1
        if letter == "`":
            run = _ticks.match(text, start)
            length = len(run[0]) if run else 1
            end = closings.get(start)
            position = end if end is not None else start + length
            span = text[start:position]
            parts.append(_code_span(span, length) if end is not None else "\\`" * length)
        elif letter == "\\" and following in _PUNCTUATION and following:
            parts.append(letter + following)
            position = start + 2
        else:
            parts.append(_harmless(letter, following, text, start))
    return "".join([*parts, text[position:]])


def _harmless(letter: str, following: str, text: str, start: int) -> str:
    if letter == "<":
        return "&lt;"
    if letter == "!" and following == "[":
        return "!\\"
    if letter == "]" and following == ":":
        return "]\\"
    if letter == "]" and following == "(":
        destination = text[start + 2 : start + 300].lstrip()
        return "]" if _destination.match(destination) else "]\\"
    if letter in "@#" and following.isalnum() and not text[max(start - 1, 0) : start].isalnum():
        return letter + _BREAK
    return letter


def _closings(text: str) -> dict[int, int]:
    """Return where the code ends that begins at each run of back quotes: behind one as long.

    From the last run to the first, so that each is looked at once.
    """
    closings: dict[int, int] = {}
    next_of: dict[int, int] = {}
    for run in reversed(list(_ticks.finditer(text))):
        length = len(run[0])
        if length in next_of:
            closings[run.start()] = next_of[length]
        next_of[length] = run.end()
    return closings


def _code_span(span: str, length: int) -> str:
    """Return code in a line; with tags of ours if it has a tag in it, wherever it ends up."""
    if _tag_start.search(span) is None:
        return span
    inner = " ".join(span[length:-length].split())
    return f"<code>{_active.sub(lambda match: f'&#{ord(match[0])};', inner)}</code>"


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    known = MarkdownIt("commonmark", {"html": False})
    return known.enable(["table", "strikethrough"]).disable(["reference"])
