"""An answer before it is fitted into its budget: items that are made as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

Item = dict[str, object]

DEFAULT_CHARS, LEAST_CHARS, MOST_CHARS = 16_000, 200, 400_000
"""Characters of an answer, its object and its text together: about four to a token."""


@dataclass(slots=True)
class Answer:
    """What a tool found."""

    items: Iterable[Item]
    render: Callable[[Item], str]
    """An item as text for the agent."""
    cursor: Callable[[int, int], str] | None = None
    """The cursor of the item with a number, counted from the first one here, and of the letter in
    its `text` from which on it was not shown; None if nothing can be continued."""
    first: int = 0
    """The letter at which the `text` of the first item begins."""
    is_continued: bool = True
    """A `text` that was cut goes on behind the cursor."""
    is_shared: bool = False
    """No `text` may take more than its share, so that there is room for others."""
    head: Item = field(default_factory=dict)
    """Fields before the items."""
    said: tuple[str, ...] = ()
    """Sentences before the items: of the server, nothing stored."""
    empty: str = "Nothing was found."
    """What to say if there is no item."""
    behind: Callable[[], str | None] | None = None
    """The cursor of what follows when all items are shown."""
