"""What the indexes are asked for a query: expressions of FTS5, and LIKE patterns for the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable

from .filters import Parameters
from .terms import Terms, like

SAID, TOOLS, TITLE = "said", "tools", "title"
"""Scopes: what people and agents said, what tools were given and gave, titles."""

_COLUMNS = {SAID: "text joined_text", TOOLS: "tool_text joined_tool_text"}


def in_scope(scope: str, expression: str) -> str:
    """Limit an expression for FTS5 to what was said, or to what tools were given and gave."""
    return f"{{{_COLUMNS[scope]}}} : ({expression})"


def everything(terms: Terms) -> Parameters:
    """Return what asks one index for all that is asked for, and compares what it cannot tell."""
    match, substrings = terms.all_words(), terms.all_substrings()
    return {
        "match": match or substrings,
        "cjk": substrings if match else None,
        "letters": like_patterns(terms.letters),
        "without": left_out(terms, cjk_only=match is not None),
    }


def left_out(terms: Terms, *, cjk_only: bool = True) -> str | None:
    """Return LIKE patterns for what no hit may hold, where the word index cannot tell."""
    texts = [term.text for term in terms.without if term.has_cjk or not cjk_only]
    return like_patterns(texts) if texts else None


def like_patterns(texts: Iterable[str]) -> str:
    """Return a JSON array of LIKE patterns, one for each text."""
    return json.dumps([like(text) for text in texts], ensure_ascii=False)
