"""Cards of the search page: a conversation, or what belongs to none, with its best hits.

A hit leads to its message by a link that lasts; what is no message, to its row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from .. import humanize
from ..ask.blocks import bare, named_source, who_of
from ..ask.hits import Hit
from ..ask.ranking import preference_of_kind
from . import permalinks
from .html import marked
from .permalinks import Permalinks
from .search_address import Asked
from .search_facets import Projects, is_narrowing, shown_name
from .search_results import Card, Results

_ROWS = {
    "message": "messages", "session": "sessions", "inbox": "inbox_items", "task": "tasks",
    "todo": "todos", "plan": "plans", "document": "documents", "prompt": "prompts",
    "tool_result_file": "tool_result_files",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Paths:
    """The addresses of other pages."""

    session: Callable[[str], str]
    project: Callable[[str], str]
    table: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Place:
    """A hit as a card shows it."""

    address: str
    who: str
    name: str
    """`said`, `thinking` or `tools`: how much it counts."""
    moment: str
    snippet: Markup


@dataclass(frozen=True, slots=True)
class Shown:
    """A card as the page shows it."""

    title: str
    address: str
    moment: str
    is_close: bool
    is_said_to_be_close: bool
    """Has it a badge? The command line does not say it of corrected words."""
    project: tuple[str, str] | None
    """Name and address."""
    facts: list[str]
    places: list[Place]
    more: int
    more_address: str | None


class Cards:
    """Makes the cards of one page."""

    def __init__(
        self, connection: sqlite3.Connection, asked: Asked, found: Results, paths: Paths,
        projects: Projects,
    ) -> None:  # fmt: skip
        self._asked = asked
        self._found = found
        self._paths = paths
        self._projects = projects
        ids = [hit.id for card in found.cards for hit in card.shown if hit.what == "message"]
        rows = permalinks.rows(connection, ids)
        links = Permalinks(connection, paths.session).of(row.place for row in rows.values())
        self._messages = {
            one: links[row.place].address for one, row in rows.items() if row.place in links
        }

    def all(self) -> list[Shown]:
        """Return the cards, in order."""
        return [self._card(card) for card in self._found.cards]

    def _card(self, card: Card) -> Shown:
        found, best = self._found, card.shown[0]
        key = card.parts[0].values.get("project")
        branch = humanize.branch_besides(best.project, best.branch)
        places = [self._place(hit) for hit in card.shown if hit.what != "session"]
        more = card.hits - len(card.shown)
        is_by_time = self._asked.values.get("sort") == "newest"
        return Shown(
            title=shown_name(best.title or _file_name(best)),
            address=self._address(best),
            moment=humanize.moment(card.newest if is_by_time else best.time),
            is_close=card.is_close,
            is_said_to_be_close=card.is_close
            and (not found.relaxation or found.relaxation.is_said),
            project=(self._projects.name(key), self._paths.project(key)) if key else None,
            facts=[shown_name(fact) for fact in (branch, named_source(best)) if fact],
            places=places,
            more=more,
            more_address=self._more(card) if more and best.session_key else None,
        )

    def _more(self, card: Card) -> str | None:
        key = card.parts[0].session_key
        if key is None or "session" in self._asked.values:
            return None
        return self._asked.within("session", key, narrowing=is_narrowing(self._found, "session"))

    def _place(self, hit: Hit) -> Place:
        return Place(
            address=self._address(hit),
            who=shown_name(who_of(hit)),
            name=_name_of(hit),
            moment=humanize.moment(hit.time),
            snippet=marked(bare(hit)),
        )

    def _address(self, hit: Hit) -> str:
        if hit.what == "message":
            found = self._paths.session(hit.session_key) if hit.session_key else self._row(hit)
            return self._messages.get(hit.id, found)
        if hit.what == "session" and hit.session_key:
            return self._paths.session(hit.session_key)
        return self._row(hit)

    def _row(self, hit: Hit) -> str:
        return f"{self._paths.table(_ROWS[hit.what])}/{hit.id}"


def _file_name(hit: Hit) -> str:
    return (hit.file or "").rpartition("/")[2] if hit.session_key is None else "(untitled)"


def _name_of(hit: Hit) -> str:
    if hit.what != "message":
        return "tools" if hit.what == "tool_result_file" else "said"
    if hit.kind == "thinking":
        return "thinking"
    return (
        "said" if preference_of_kind(hit.kind or "") < preference_of_kind("thinking") else "tools"
    )
