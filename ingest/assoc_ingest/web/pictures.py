"""Placeholders of images in a text: what a page asks the route of `images` for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

LARGEST = 8_000_000
"""Bytes of an image that is shown."""

_MOST = 20  # of one message
# As `fields.placeholder` writes it, of the types that every browser shows.
_placeholder = re.compile(r"\[image image/(?:png|jpeg|gif|webp) ([\d,]{1,12}) bytes\]", re.ASCII)


@dataclass(slots=True)
class Picture:
    """An image of a message, and what is shown where there is none."""

    message: int
    number: int
    """Which image of its message it is, from 1."""
    text: str
    address: str = ""


def in_text(message: int, text: str) -> Iterator[Picture]:
    """Yield the images for which the text of a message has placeholders; not those too large."""
    found = dict.fromkeys(match[0] for match in islice(_placeholder.finditer(text), _MOST))
    for number, placeholder in enumerate(found, start=1):
        size = _placeholder.fullmatch(placeholder)
        if size is not None and int(size[1].replace(",", "") or 0) <= LARGEST:
            yield Picture(message, number, placeholder)
