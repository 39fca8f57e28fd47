"""Cortex: one file per agent with its memory, in the directory where the agent works.

```
.cortex/transcripts/<agent>/transcript.jsonl     <agent> may be several directories deep
```

A line is what one side said; nothing else is written, and a line has no id. Two lines can be
equal. The user's line is written before the agent runs, so it can be without an answer.

```json
{"role":"user","content":"sum up the plan","timestamp":1771250400123}
```

`role` is user or assistant, `content` a text, `timestamp` milliseconds since 1970. The program
itself ignores lines without the first two; here they are quarantined. Each agent is a session with
the agent's name.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..records import Record
from ..source import LOG, Claim, Line, Listing, Recognition, Source, claim_at
from .chat_reader import ChatReader
from .reader import JSONObject, complete_prefix

_KINDS = {"user": "prompt", "assistant": "text"}


class Cortex(Source):
    """The source of kind `cortex`."""

    name = "cortex"
    label = "Cortex"
    known_lines = frozenset(_KINDS)
    directory_in_project = ".cortex"

    def recognises(self, listing: Listing) -> Recognition:
        """A home has a transcript of an agent; another program may name files like this."""
        is_home = any(claim_at(self, path) for path in listing)
        return Recognition.POSSIBLE if is_home else Recognition.NO

    def descends(self, parts: tuple[str, ...]) -> bool:
        """An agent's name can have any number of parts."""
        return parts[0] == "transcripts"

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("transcripts", *agent, "transcript.jsonl") if agent:
                return Claim(self.name, "transcript", session_key="/".join(agent))
        return None

    def shape(self, claim: Claim) -> str:
        """Transcripts grow."""
        return LOG

    def complete_prefix(self, claim: Claim, tail: bytes) -> int:
        """Whole objects at the start of an unterminated tail can be read."""
        return complete_prefix(tail)

    def parse(self, claim: Claim, lines: Iterable[Line]) -> list[Record]:
        """Turn lines into records."""
        reader = ChatReader(claim, type_key="role")
        reader.fact("agent_name", claim.session_key)
        for value in reader.objects(lines, _is_ours, type_key="role"):
            if not _is_ours(value):
                reader.refuse("no line of Cortex: it needs role and content")
                continue
            role, content = str(value["role"]), str(value["content"])
            reader.begin(value, is_message=True)
            reader.say(_KINDS[role], content, role)
            reader.keep_rest(value, ("content",))
        return reader.finish()


def _is_ours(value: JSONObject) -> bool:
    role = value.get("role")
    return isinstance(role, str) and role in _KINDS and isinstance(value.get("content"), str)
