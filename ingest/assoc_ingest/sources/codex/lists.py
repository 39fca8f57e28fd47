"""The prompt history of Codex, and its list of sessions.

```json
{"session_id":"019e5615-9632-7740-b2cf-3061e4ff06e2","ts":1779560716,"text":"tidy the menus"}
{"id":"019e5615-9632-7740-b2cf-3061e4ff06e2","thread_name":"Menus","updated_at":"2026-05-23T18:25:15Z"}
```

`history.jsonl` has a line for each prompt. `session_index.jsonl` has one for each name that a
session got, so the last one of a session counts; recent versions write it no more.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...fields import MAX_TEXT
from ...records import Issue, Prompt, Record, SessionEntry
from ...source import Claim, Line
from ..claude.paths import folded
from ..jsonl import JSONObject
from ..reader import Reader


def _is_prompt(value: JSONObject) -> bool:
    return "session_id" in value and "text" in value


def history(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read prompts."""
    reader = Reader(claim)
    for value in reader.objects(lines, _is_prompt):
        session = reader.text(value, "session_id")
        text, moment = (reader.text(value, "text") or "")[:MAX_TEXT], reader.time(value, "ts")
        key, place = folded(session) if session else None, (reader.start, reader.length)
        reader.records.append(Prompt(text, moment, None, key, None, None, *place))
    return reader.finish()


def sessions(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the titles of sessions. The list is read as a whole, so it may end in a torn line."""
    reader = Reader(claim)
    (whole,) = lines
    entries: dict[str, SessionEntry] = {}
    start = whole.start
    parts = []
    for data in whole.data.split(b"\n"):
        parts.append(Line(start, data))
        start += len(data) + 1
    if not parts[-1].data.rstrip().endswith(b"}"):
        parts.pop()
    for value in reader.objects(parts):
        key = reader.text(value, "id")
        if key is None:
            reader.note("id: missing")
            continue
        title, ended = reader.text(value, "thread_name"), reader.time(value, "updated_at")
        entry = SessionEntry(folded(key), "index", title, ended_at=ended, byte_offset=reader.start)
        entries[folded(key)] = entry
    found = [*reader.finish(), *entries.values()]
    # A broken line is no reason to keep the titles of an earlier version.
    return [one._replace(quarantined=0) if isinstance(one, Issue) else one for one in found]
