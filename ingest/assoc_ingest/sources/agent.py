"""Shared by sources of agents: a home with logs of JSON objects, and what their tools do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..fields import number
from ..records import OTHER
from ..source import LOG, Claim, Listing, Recognition, Source
from .jsonl import complete_prefix

_JOINTS = dict.fromkeys(map(ord, "-_"))  # that ids contain


class AgentSource(Source):
    """A source of an agent whose files are logs in one home, unless it says otherwise."""

    is_agent = True
    variable = ""
    """The environment variable that names the home, or a directory that has it."""
    below = ""
    """The home below what the variable names."""
    place = ""
    """The home below that of the user, if the variable is not set."""
    resume: tuple[str, ...] = ()
    """The command that resumes a session, which the id of the session completes."""

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """Return the configured home, else the default."""
        stated = environment.get(self.variable, "").strip()
        parts = (stated, self.below) if stated else (home, self.place)
        return ["/".join(filter(None, parts))] if parts[0] else []

    def recognises(self, listing: Listing) -> Recognition:
        """A home has files in the directories of the layout, with names as only this agent has."""
        paths = (tuple(path.split("/")) for path in listing)
        is_home = any(len(parts) > 1 and self.claim(parts) for parts in paths)
        return Recognition.CERTAIN if is_home else Recognition.NO

    def resume_command(self, session_key: str) -> list[str] | None:
        """The program finds a session by its id."""
        is_id = session_key[:1].isalnum() and session_key.translate(_JOINTS).isalnum()
        return [*self.resume[:-1], self.resume[-1].format(session_key)] if is_id else None

    def shape(self, claim: Claim) -> str:
        """Conversations grow."""
        return LOG

    def complete_prefix(self, claim: Claim, tail: bytes) -> int:
        """Whole objects at the start of an unterminated tail can be read."""
        return complete_prefix(tail)


def actions(**tools: str) -> Callable[[str | None], str]:
    """Return a function that says what a tool does by its name.

    `tools` has the names of the tools of each action, separated by blanks.
    """
    known = {tool: action for action, names in tools.items() for tool in names.split()}
    return lambda name: known.get(name or "", OTHER)


def exit_code(text: str, mark: str, end: str) -> int | None:
    """Return the exit code that an output states after its last `mark`, None if it states none."""
    return number(text.rpartition(mark)[2].partition(end)[0].strip()) if mark in text else None
