"""Marks words in HTML that was made of stored text: only in its text, never in a tag."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

from markupsafe import Markup, escape

from ..ask.matches import Span

Look = Callable[[str], list[Span]]
"""Says where in a text the words are."""

# What `html` makes: a value of an attribute stands between double quotes, and may have a `>`.
_tag = re.compile(r'(<(?:[^<>"]++|"[^"]*+")*+>)')


def marked(body: str, look: Look) -> Markup:
    """Return HTML, or text, with the words that `look` finds in `<mark>`; tags stay as they are."""
    pieces: list[str] = []
    for number, piece in enumerate(_tag.split(str(escape(body)))):
        if number % 2 or not piece:
            pieces.append(piece)
            continue
        text, position = unescape(piece), 0
        for start, end in look(text):
            pieces.append(f"{escape(text[position:start])}<mark>{escape(text[start:end])}</mark>")
            position = end
        pieces.append(escape(text[position:]))
    return Markup("".join(pieces))  # noqa: S704 - the tags it had, and escaped text
