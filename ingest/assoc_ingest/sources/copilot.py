"""Copilot CLI: conversations with GitHub's agent for the terminal, below `~/.copilot`.

```
session-state/<id>/events.jsonl     a conversation, with those of its subagents
session-state/<id>/workspace.yaml   where it was held, and what it is called
session-state/<id>.jsonl            a conversation, in older versions
```

`COPILOT_HOME` replaces `~/.copilot`. Editors that run this agent write the same files. No retention
is documented, but the directory of a session can outlive its `events.jsonl`.

`workspace.yaml` has one value on each line, `cwd: /srv/demo`; only these lines are read. A text
that does not fit on its line follows it, indented.

`config.json` and `mcp-config.json` contain tokens and are never opened, and neither is `logs/`.
`session-store.db` is derived from the events. Versions before 0.0.342 had another format, in
`history-session-state/`, which is not read.

The lines of a conversation are described in `copilot_events`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..fields import json_text
from ..project_paths import comparable
from ..records import LineExtra, ProjectEntry, Record, SessionEntry
from ..source import DOCUMENT, LOG, Claim, Context, Line
from ..when import utc
from .agent import AgentSource
from .copilot_events import TYPES, Events, is_ours
from .plain_text import document_text, nothing_in

_WORKSPACE = "workspace"
_PRIVATE = frozenset(["config.json", "mcp-config.json", "logs", "mcp-oauth-config"])
_LONGEST_VALUE = 2000
_NO_VALUES = ("|", "|-", ">", ">-", "null", "~")  # or texts of several lines
_TAKEN = ("cwd", "branch", "name", "summary", "created_at", "updated_at")


class Copilot(AgentSource):
    """The source of kind `copilot`."""

    name = "copilot"
    label = "Copilot CLI"
    known_lines = TYPES
    variable, place = "COPILOT_HOME", ".copilot"
    resume = ("copilot", "--resume={}")

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Tokens, and logs that can repeat them."""
        return parts[0].casefold() in _PRIVATE

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        return parts[0] == "session-state" and len(parts) <= 2

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("session-state", session, "events.jsonl"):
                return Claim(self.name, "transcript", session_key=session)
            case ("session-state", session, "workspace.yaml"):
                return Claim(self.name, _WORKSPACE, session_key=session)
            case ("session-state", name) if name.endswith(".jsonl"):
                return Claim(self.name, "transcript", session_key=name.removesuffix(".jsonl"))
        return None

    def shape(self, claim: Claim) -> str:
        """Conversations grow; what is said about one is rewritten."""
        return DOCUMENT if claim.kind == _WORKSPACE else LOG

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; what was spent before comes from earlier lines."""
        if claim.kind == _WORKSPACE:
            (line,) = lines
            return list(_workspace(claim, line)), context
        events = Events(claim, context)
        for value in events.objects(lines, is_ours):
            events.take(value)
        return events.finish(), events.context


def _workspace(claim: Claim, line: Line) -> Iterator[Record]:
    """Yield what the description of a session says about it."""
    text, records = document_text(line)
    values = _values(text)
    if not values:
        yield from nothing_in(line, "no values")
        return
    yield from records
    cwd = values.get("cwd")
    if cwd is not None:
        yield ProjectEntry(comparable(cwd), None, cwd)
    yield SessionEntry(
        claim.session_key or "",
        "meta",
        summary=values.get("name") or values.get("summary"),
        started_at=utc(values.get("created_at")),
        ended_at=utc(values.get("updated_at")),
        project_key=comparable(cwd) if cwd is not None else None,
        git_branch=values.get("branch"),
        cwd=cwd,
    )
    rest = {key: value for key, value in values.items() if key not in _TAKEN}
    if rest:
        yield LineExtra(_WORKSPACE, None, json_text(rest), 0, len(line.data))


def _values(text: str) -> dict[str, str]:
    """Return the values of plain lines `key: value`; those of lists and of objects are left out."""
    values: dict[str, str] = {}
    key = ""
    for line in text.split("\n"):
        if line[:1] in (" ", "\t"):
            if key and len(values[key]) < _LONGEST_VALUE:
                values[key] = f"{values[key]} {line.strip()}".strip()
            continue
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if not colon or not value or not key.replace("_", "").isalnum():
            key = ""  # what follows is indented, and belongs to a list or an object
            continue
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        values[key] = value[1:-1] if is_quoted else "" if value in _NO_VALUES else value
    return {key: value[:_LONGEST_VALUE] for key, value in values.items() if value}
