"""`<tag>` in stored text: what agents wrap messages, commands and their output in.

Stored text can be anything, and long. So there is one scanner, and it takes linear time: a tag is
read from its `<` to the next `>`, no letter twice, and an end that was not found once is not
searched again. An expression for a whole element, `<a>(.*?)</a>`, would read to the end of the text
for each `<a>` that is not closed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

# Quoted attributes may contain < and >. Anything but attributes ends at the next of them. Every
# repetition is possessive, so that nothing is tried twice.
_tag = re.compile(
    r"<(?P<slash>/?)(?P<name>[a-z][\w-]*+)"
    r'(?:(?P<attributes>(?:\s++[\w-]++="[^"]*+")*+)\s*+|\s[^<>]*+)>'
)
_attribute = re.compile(r'(?<![\w-])([\w-]++)="([^"]*+)"')
_cut_off = re.compile(r"…[\w-]*+>")  # the end of a tag whose beginning a snippet lacks
_blank = re.compile(r"\s*+")


class Tag(NamedTuple):
    """An opening tag."""

    name: str
    attributes: dict[str, str] | None
    """None if there is something else between the name and `>`."""
    end: int
    """Where the text after it begins."""


class Element(NamedTuple):
    """A tag, and the text up to its nearest end."""

    tag: Tag
    text: str


def openings(text: str) -> Iterator[Tag]:
    """Yield the opening tags of a text in order."""
    position = 0
    while tag := _opening(text, position):
        yield tag
        position = tag.end


def outermost(text: str) -> Iterator[Element]:
    """Yield the outermost elements; one without an end reaches to the end of the text."""
    position = 0
    while tag := _opening(text, position):
        ending = f"</{tag.name}>"
        end = text.find(ending, tag.end)
        if end < 0:
            end = len(text)
        yield Element(tag, text[tag.end : end])
        position = end + len(ending)


def elements(text: str, names: Collection[str]) -> Iterator[Element]:
    """Yield the elements that have one of these names, well-formed attributes, and an end."""
    endless: set[str] = set()
    position = 0
    while tag := _opening(text, position):
        position = tag.end
        if tag.name not in names or tag.name in endless or tag.attributes is None:
            continue
        ending = f"</{tag.name}>"
        end = text.find(ending, tag.end)
        if end < 0:
            endless.add(tag.name)
            continue
        yield Element(tag, text[tag.end : end])
        position = end + len(ending)


def inside(text: str, name: str) -> str | None:
    """Return the text in the first `<name>`, None if it is empty or has no end."""
    _, opening, rest = text.partition(f"<{name}>")
    inner, ending, _ = rest.partition(f"</{name}>") if opening else ("", "", "")
    return inner.strip() or None if ending else None


def command(text: str) -> str:
    """Return `/name arguments` of a command that is wrapped in tags, otherwise an empty text."""
    return " ".join(filter(None, (inside(text, "command-name"), inside(text, "command-args"))))


def is_only(text: str, names: Collection[str]) -> bool:
    """Does the text consist only of elements with these names, without attributes, and spaces?"""
    position = start = _skip_blanks(text, 0)
    while position < len(text):
        name = next((name for name in names if text.startswith(f"<{name}>", position)), None)
        end = text.find(f"</{name}>", position) if name else -1
        if name is None or end < 0:
            return False
        position = _skip_blanks(text, end + len(name) + 3)
    return position > start


def without(text: str) -> str:
    """Return a piece of text with a space in place of each tag, even a cut one at its beginning."""
    return _tag.sub(" ", _cut_off.sub(" ", text, 1) if text.startswith("…") else text)


def shown(text: str) -> str:
    """Return what pages show of a text: the values of its tags, but neither their names nor those
    of the attributes."""
    return _tag.sub(
        lambda tag: f" {' '.join(value for _, value in _attribute.findall(tag[0]))} ", text
    )


def _opening(text: str, position: int) -> Tag | None:
    for found in _tag.finditer(text, position):
        if not found["slash"]:
            listed = found["attributes"]
            attributes = None if listed is None else dict(_attribute.findall(listed))
            return Tag(found["name"], attributes, found.end())
    return None


def _skip_blanks(text: str, position: int) -> int:
    found = _blank.match(text, position)
    return found.end() if found else position
