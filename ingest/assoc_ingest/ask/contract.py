"""What programs can rely on: the fields of the JSON answers of every command that reads.

Fields are read from the code and the queries that give them, so that this cannot say otherwise.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from .. import sql
from ..errors import ERROR_CODES
from ..sql import Query
from ..terminal import safe_json, wrap
from .answer import LEAST_CHARS, SCHEMA
from .blame import Blamed, Place
from .conversation import Message
from .fix import Fix, Occurrence
from .open import PLACE, Entry
from .search import Hit
from .secrets import SecretPlace

ANSWER = {
    "schema": f"{SCHEMA}: the version of this contract",
    "items": "hits, messages or rows; `cut` of an item lists fields that were shortened to fit",
    "total": "number of all items; null if there are too many to count",
    "next": "what --cursor continues with; null at the end",
    "relaxed": "how a search was relaxed: {missing, corrected, has_exact}; null if it was not",
    "fresh": "{synced_at, is_complete, issues}: as of when, whether the last sync read everything,"
    " and how many records could not be parsed",
}
NOTHING = {
    "filters": "filters without which there would be items: [{filter, told, without}], the last how"
    " many",
    "without_filters": "how many items there would be without all filters",
    "is_close": "whether these are counts of what has some of the words: nothing has all",
    "words": "words of a query that nothing holds",
    "is_lower_bound": "true if there may be more of them; absent otherwise",
}
"""The object `nothing` that answers of search, list and query have if they have no items."""

BESIDE = {
    "show": {
        "session": "what is known of the conversation",
        "subagent": "key of the subagent that was asked for, or null",
    },
    "list": {"hidden": "options that show more rows, and how many: {--all, --gone}"},
    "blame": {
        "of": "what was asked for: kind (file, line, commit, pull_request) and what is known of it",
        "notes": "sentences on how the question was understood, and on what was not looked at",
    },
    "fix": {
        "of": "{error, errors, ended, guesses, conversations, is_exact}: the line that was looked"
        " for, how often it was found and ended, and how many of those ends are guesses; is_exact"
        " is false where it quotes something else",
        "notes": "sentences on what was not looked at",
    },
    "stats": {"totals": "what all rows add up to"},
}
"""Fields that some commands have beside those of every answer."""

OPTIONS = {
    "--limit N": "at most N items",
    "--cursor NEXT": "continue behind the answer that has this `next`",
    "--fields A,B": "only these fields of each item",
    "--max-chars N": f"at most N characters, {LEAST_CHARS:,} or more",
}
_TYPES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}


def contract() -> dict[str, object]:
    with closing(sqlite3.connect(":memory:")) as connection:
        sql.migrate(connection)
        lists = {name: _columns(connection, one) for name, one in sql.queries("lists").items()}
        reports = {name: _columns(connection, one) for name, one in sql.queries("reports").items()}
    lists["sessions"] += ["cost_usd", "unpriced", "partial", "is_lower_bound", "resume"]
    return {
        "schema": SCHEMA,
        "options": OPTIONS,
        "answer": ANSWER,
        "beside": BESIDE,
        "nothing": NOTHING,
        "error": {"code": ERROR_CODES, "message": "what is wrong", "hint": "what to do, or null"},
        "search": {**_types(Hit), "marks": "array"},
        "blame": {**_types(Blamed), "evidence": _types(Place)},
        "fix": {**_types(Fix), "occurrences": _types(Occurrence)},
        "secrets": _types(SecretPlace),
        "show": {**PLACE, **_shown(_types(Message))},
        "show STORE:NAME": _types(Entry),
        "list": lists,
        "query": {
            name: {"parameters": list(sql.queries("reports")[name].parameters), "columns": columns}
            for name, columns in reports.items()
        },
    }


def lines(width: int) -> Iterator[str]:
    """Yield the contract for people."""
    known: dict[str, Any] = contract()
    yield "Every answer with --json is one object:"
    for name, meaning in ANSWER.items():
        yield from _explained(name, meaning, width)
    yield "\nAn answer of search, list or stats without items has an object more, `nothing`:"
    for name, meaning in NOTHING.items():
        yield from _explained(name, meaning, width)
    yield "\nWhat is wrong is one object, too: {schema, error: {code, message, hint}}."
    for code, meaning in ERROR_CODES.items():
        yield from _explained(code, meaning, width)
    yield "\nOptions of search, show, list, query, stats, blame, fix and secrets:"
    for option, meaning in OPTIONS.items():
        yield from _explained(option, meaning, width)
    for command in ("search", "show", "blame", "fix", "secrets"):
        yield f"\nFields of {command}:"
        yield from _indented(", ".join(known[command]), width)
    for name, columns in known["list"].items():
        yield f"\nFields of list {name}:"
        yield from _indented(", ".join(columns), width)
    yield "\nThe columns of reports: assoc-ingest schema --json"


def as_json() -> str:
    return safe_json(contract()) + "\n"


def _columns(connection: sqlite3.Connection, query: Query) -> list[str]:
    cursor = connection.execute(query.sql, dict.fromkeys(query.parameters))
    return [column[0] for column in cursor.description]


def _types(of: type) -> dict[str, str]:
    """Return the fields of a dataclass with their JSON types."""
    hints = get_type_hints(of)
    return {field.name: _type(hints[field.name]) for field in fields(of)}


def _type(hint: Any) -> str:
    if isinstance(hint, UnionType):
        return " or ".join(map(_type, get_args(hint)))
    return "null" if hint is NoneType else _TYPES[get_origin(hint) or hint]


def _shown(types: dict[str, str]) -> dict[str, str]:
    given = Message(*([None] * len(fields(Message)))).as_json()  # type: ignore[arg-type]
    return {name: types.get(name, "object or null") for name in given}


def _explained(name: str, meaning: str, width: int) -> Iterator[str]:
    first, *others = wrap(meaning, width - 20)
    yield f"  {name:17} {first}"
    yield from (" " * 20 + line for line in others)


def _indented(text: str, width: int) -> Iterator[str]:
    return ("  " + line for line in wrap(text, width - 2))
