"""A progress bar for long commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def progress_in_bytes(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error if that is a terminal, and nothing elsewhere.

    Yields what is to be called with the bytes done and the bytes to do.
    """
    import sys

    from .. import humanize
    from ..terminal import is_terminal

    bar = click.progressbar(
        length=1,  # known only with the first call
        label=label,
        width=0,  # what the numbers leave of the line
        file=sys.stderr,
        hidden=not is_terminal(sys.stderr),
        item_show_func=lambda item: item,
    )
    with bar:

        def advance(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos, f"{humanize.size(done)} of {humanize.size(total)}")

        yield advance
