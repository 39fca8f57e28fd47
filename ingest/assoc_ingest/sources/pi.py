"""pi: conversations with this coding agent, below `~/.pi/agent`.

```
sessions/--<cwd>--/<time>_<id>.jsonl    a conversation; `/`, `\\` and `:` of its directory are `-`
<time>_<id>.jsonl                       the same, in a directory that has nothing else
```

`PI_CODING_AGENT_DIR` replaces `~/.pi/agent`; conversations of the second form are where
`PI_CODING_AGENT_SESSION_DIR` says. A file appears with the first answer, and the program deletes
none. `auth.json`, `models.json` and `settings.json` contain keys and are never opened.

The lines are described in `pi_entries`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..records import Record
from ..source import Claim, Context, Line, Listing, Recognition
from .agent import AgentSource
from .pi_entries import TYPES, Entries, is_ours, session_in, session_of

_PRIVATE = frozenset(["auth.json", "models.json", "settings.json"])


class Pi(AgentSource):
    """The source of kind `pi`."""

    name = "pi"
    label = "pi"
    known_lines = TYPES
    variable, place = "PI_CODING_AGENT_DIR", ".pi/agent"
    resume = ("pi", "--session", "{}")

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """A variable of its own names a directory that has conversations only."""
        other = environment.get("PI_CODING_AGENT_SESSION_DIR")
        return [*super().default_roots(environment, home), *([other] if other else [])]

    def recognises(self, listing: Listing) -> Recognition:
        """A home has a directory of sessions that is named like one of this program, or a file."""
        for path in listing:
            match path.split("/"):
                case ["sessions", directory] if _is_encoded(directory):
                    return Recognition.CERTAIN
                case [name] if session_in(name):
                    return Recognition.CERTAIN
        return Recognition.NO

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Keys, and settings that can contain some."""
        return len(parts) == 1 and parts[0].casefold() in _PRIVATE

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        match parts:
            case ("sessions",):
                return True
            case ("sessions", directory):
                return _is_encoded(directory)
        return False

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("sessions", directory, name) if _is_encoded(directory):
                if name.endswith(".jsonl"):
                    claim = Claim(self.name, "transcript", session_key=session_of(name))
                    return replace(claim, project_key=directory, project_directory=directory)
            case (name,) if session_in(name):
                return Claim(self.name, "transcript", session_key=session_of(name))
        return None

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; the model of a summary is that of the lines before it."""
        reader = Entries(claim, context)
        for value in reader.objects(lines, is_ours):
            reader.take(value)
        return reader.finish(), reader.context


def _is_encoded(directory: str) -> bool:
    return len(directory) > 4 and directory.startswith("--") and directory.endswith("--")
