"""A home of any size made of published transcripts, each repeated under other ids.

`ASSOC_REAL_CORPUS` names their directory. Every copy of a conversation has ids of its own, as the
conversations of a person have, so nothing is taken for a copy that a fork or a resume made.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_UUID = re.compile(rb"\b[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)")
_API_ID = re.compile(rb"\b(?:toolu|msg|req)_(?:01|vrtx_|bdrk_)?[A-Za-z0-9]{6}")


def write(out: Path, size: int) -> None:
    """Write about *size* bytes into *out*; raises KeyError without `ASSOC_REAL_CORPUS`."""
    homes = Path(os.environ["ASSOC_REAL_CORPUS"]) / "homes"
    files = [(path, path.read_bytes()) for path in sorted(homes.glob("*/projects/**/*.jsonl"))]
    written = number = 0
    while written < size:
        for path, content in files:
            home, *below = path.relative_to(homes).parts
            copy = _renamed("/".join(below).encode(), number).decode()
            project = f"projects/-{home.replace('+', '-')}-{number}"
            target = out / copy.replace("projects/", project, 1)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_renamed(content, number))
            written += len(content)
        number += 1


def _renamed(text: bytes, number: int) -> bytes:
    """The text with the ids of copy *number*: the same for equal ids, so that links still hold."""
    text = _UUID.sub(lambda match: b"%08x" % (int(match[0], 16) ^ number), text)
    return _API_ID.sub(lambda match: match[0] + b"%04d" % number, text)
