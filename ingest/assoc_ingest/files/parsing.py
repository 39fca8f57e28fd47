"""Parses the lines of a file stretch by stretch, and passes the context from one to the next."""

from __future__ import annotations

from collections.abc import Sequence

from ..fast_json import orjson
from ..records import Issue, Record
from ..source import MAX_CONTEXT, Claim, Context, Line, Source

CONTEXT_TOO_LARGE = "what later lines need of earlier ones is too large to be kept"
"""Reason of the issue of a file whose context was dropped."""


RAN_AWAY = "reading it took too long and was given up"
"""Reason of the issue of a file whose parser did not come to an end."""


class Parser:
    """Parses the lines of one log in order, wherever they are cut into stretches."""

    def __init__(self, source: Source, claim: Claim, context: str | None = None) -> None:
        self._source = source
        self.claim = claim
        self.context = context
        """The context after the last stretch, as it is stored: JSON, None if it is empty."""

    def parse(self, lines: Sequence[Line]) -> list[Record]:
        """Return the records of the next lines."""
        if not lines:
            return []
        records, context = self._source.read(self.claim, lines, _unpacked(self.context))
        if not context:
            self.context = None
            return records
        text = orjson.dumps(context)
        if len(text) > MAX_CONTEXT:  # later rows may lack what earlier lines said
            records.append(Issue(CONTEXT_TOO_LARGE, 0, None, lines[-1].start, len(lines[-1].data)))
            self.context = None
        else:
            self.context = text.decode()
        return records


def _unpacked(context: str | None) -> Context:
    """Return a stored context, an empty one if none is stored."""
    found: Context = orjson.loads(context) if context is not None else {}
    return found
