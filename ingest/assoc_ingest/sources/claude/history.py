"""The prompt history of Claude Code: every prompt of every project, one line each.

```json
{"display":"/review [Pasted text #1 +12 lines]","timestamp":1771301000456,"project":"/srv/demo",
 "pastedContents":{"1":{"id":1,"type":"text","contentHash":"3f8a0c1d22e4b567"}},"sessionId":"0b7c"}
```

`history.jsonl` is appended to; the time is in milliseconds; lines before November 2025 have no
`sessionId`. A pasted text of up to 1,024 characters is in the line (`content`); a longer one is a
file of its own, `paste-cache/<hash>.txt`, named by the first 16 hex digits of its SHA-256. A fifth
of these files are gone. Of a pasted image, only `[Image #1]` is left. Consecutive duplicates are
normal. Other programs have a `history.jsonl`, too; this one has `display` in every line.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from ...fields import MAX_TEXT, json_text, mapping, string
from ...records import Paste, Prompt, Record
from ...source import Claim, Line
from ..jsonl import JSONObject, pieces
from ..plain_text import document_text
from ..reader import Reader
from .paths import encoded, folded

_HEAD_LINES = 20


def is_prompt(line: JSONObject) -> bool:
    """Does the object have the shape of a line of the history?"""
    return isinstance(line.get("display"), str) and not line.keys().isdisjoint(
        ("project", "pastedContents", "timestamp")
    )


def believes(lines: Iterable[bytes]) -> bool:
    """Is one of the first lines a prompt? An empty history is not accepted."""
    head = islice(lines, _HEAD_LINES)
    found = (piece for data in head for piece in pieces(Line(0, data), is_prompt))
    return any(piece.object is not None and is_prompt(piece.object) for piece in found)


def history(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read prompts, with what was pasted into them."""
    reader = Reader(claim)
    for value in reader.objects(lines, is_prompt):
        pasted, hashes = _pasted(reader, value)
        session, project = reader.text(value, "sessionId"), reader.text(value, "project")
        reader.records.append(
            Prompt(
                (reader.text(value, "display") or "")[:MAX_TEXT],
                reader.time(value, "timestamp"),
                project,
                folded(session) if session else None,
                pasted,
                hashes,
                reader.start,
                reader.length,
                encoded(project) if project else None,
            )
        )
    return reader.finish()


def _pasted(reader: Reader, value: JSONObject) -> tuple[str | None, str | None]:
    """Return the pasted text, or the parts that the store has to combine if some are files.

    These are a JSON array: a hash for a part that is a file, `{"text": ...}` for one in the line.
    """
    texts: list[str] = []
    parts: list[object] = []
    for entry in reader.mapping(value, "pastedContents").values():
        content, key = mapping(entry).get("content"), string(mapping(entry).get("contentHash"))
        if mapping(entry).get("type") == "image":
            continue
        if isinstance(content, str) and content:
            texts.append(content)
            parts.append({"text": content})
        elif key is not None:
            parts.append(key)
    if len(parts) == len(texts):
        return "\n".join(texts)[:MAX_TEXT] or None, None
    return None, json_text(parts)


def paste(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read a pasted text."""
    (line,) = lines
    text, records = document_text(line)
    return [*records, Paste(claim.parts[-1].removesuffix(".txt"), text[:MAX_TEXT])]
