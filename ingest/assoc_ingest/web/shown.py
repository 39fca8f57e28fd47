"""What an address asks of the pages of a conversation, and what such a page shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from ..ask.conversation import File, Subagent
from . import pages, permalinks
from .conversation_map import Map
from .entries import Entry, Nested
from .finding import Finding


class Asked(NamedTuple):
    """What an address asks for."""

    agent: str | None
    at: permalinks.Asked | None
    after: permalinks.Asked | None
    row: int | None
    is_end: bool
    said: bool = False
    """Only what was said: prompts and answers."""
    find: str = ""
    """What is looked for in the conversation."""
    goes: bool = False
    """Is the first match wanted, or the first behind `after`?"""

    def keep(self, address: str) -> str:
        """Return an address of the conversation that shows it as this page does."""
        values = {"find": self.find, "said": "1" if self.said else ""}
        kept = urlencode({name: value for name, value in values.items() if value})
        head, sign, anchor = address.partition("#")
        if not kept:
            return address
        join = "" if head.endswith("?") else "&" if "?" in head else "?"
        return f"{head}{join}{kept}{sign}{anchor}"


@dataclass(slots=True)
class Shown:
    """What the template gets."""

    session: pages.Row
    models: list[str]
    more_models: int
    files: list[File]
    has_more_files: bool
    roots: list[str]
    resume: str | None
    sizes: list[str]
    """How much the conversation has of what: the words that `show` has for it."""
    tokens: str
    cost: str
    has_more_subagents: bool
    subagent: Subagent | None
    spawned_in: str | None
    entries: list[Entry]
    rest: list[Nested]
    more_rest: int
    warmups: int
    earlier: str | None
    later: str | None
    is_first: bool
    links: list[pages.Row]
    work: list[pages.Row]
    related: list[pages.Row]
    notes: list[str]
    map: Map
    finding: Finding | None
    """None: nothing is looked for."""
    news: str
    """On the last page, the address that tells how many lines came since."""
    begin: str
    """Behind which place the page begins, as an address names it; '' if with the first."""
