"""How far a sync is, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..sync import Progress


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show a bar in bytes on a terminal, and nothing elsewhere."""
    import sys

    from .. import display
    from ..terminal import is_terminal

    bar = click.progressbar(
        length=1,  # known only when the directories have been walked: with the first call
        label="Reading",
        file=sys.stderr,
        hidden=not is_terminal(sys.stderr),
        item_show_func=lambda item: item,
    )
    with bar:

        def advance(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos, f"{display.size(done)} of {display.size(total)}")

        yield advance
