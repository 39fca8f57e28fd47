"""What programs can rely on: the fields of the JSON answers of every command that reads.

Fields are read from the code and the queries that give them, so that this cannot say otherwise.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin

from .. import sql
from ..ask.answer import LEAST_CHARS, SCHEMA
from ..ask.conversation import Message
from ..ask.refs import Entry
from ..ask.secrets import SecretPlace
from ..errors import ERROR_CODES
from ..sql import Query
from ..terminal import safe_json, wrap
from . import QUESTIONS
from .list import columns
from .question import Question, hints_of, named, names_beside
from .show import PLACE

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
    "without_filters": "how many items there would be without any filter",
    "is_close": "whether these are counts of items with some of the words, because none has all",
    "words": "words of a query that occur nowhere",
    "is_lower_bound": "true if there may be more of them; absent otherwise",
}
"""The object `nothing` that answers of search, list and query have if they have no items."""

BESIDE = {
    "show": {
        "session": "what is known of the conversation",
        "subagent": "key of the subagent that was asked for, or null",
    },
}
"""Fields that some commands have beside those of every answer."""

OPTIONS = {
    "--limit N": "at most N items",
    "--cursor NEXT": "continue after the answer with this `next`",
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
        lists = {
            name: columns(name, _columns(connection, one))
            for name, one in sql.queries("lists").items()
        }
        reports = {name: _columns(connection, one) for name, one in sql.queries("reports").items()}
    questions = [*map(named, QUESTIONS)]
    return {
        "schema": SCHEMA,
        "options": OPTIONS,
        "answer": ANSWER,
        "beside": {**BESIDE, **{one.name: fields for one in questions if (fields := _beside(one))}},
        "nothing": NOTHING,
        "error": {"code": ERROR_CODES, "message": "what is wrong", "hint": "what to do, or null"},
        **{one.name: _fields(one) for one in questions if not one.is_table},
        "search": {**_fields(named("search")), "marks": "array"},
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
    yield "\nAn answer of search, list or stats without items also has an object `nothing`:"
    for name, meaning in NOTHING.items():
        yield from _explained(name, meaning, width)
    yield "\nAn error is one object, too: {schema, error: {code, message, hint}}."
    for code, meaning in ERROR_CODES.items():
        yield from _explained(code, meaning, width)
    yield "\nOptions of search, show, list, query, stats, blame, fix and secrets:"
    for option, meaning in OPTIONS.items():
        yield from _explained(option, meaning, width)
    first, *others = (name for name in QUESTIONS if name in known and not named(name).is_table)
    for command in (first, "show", *others, "secrets"):
        yield f"\nFields of {command}:"
        yield from _indented(", ".join(known[command]), width)
    for name, fields_of_list in known["list"].items():
        yield f"\nFields of list {name}:"
        yield from _indented(", ".join(fields_of_list), width)
    yield "\nThe columns of reports: assoc-ingest schema --json"


def as_json() -> str:
    return safe_json(contract()) + "\n"


def _columns(connection: sqlite3.Connection, query: Query) -> list[str]:
    cursor = connection.execute(query.sql, dict.fromkeys(query.parameters))
    return [column[0] for column in cursor.description]


def _beside(question: Question) -> dict[str, str]:
    """Return what the fields mean that an answer has beside its items and those of every one."""
    hints = hints_of(question.json_answer) if question.items else {}
    names = names_beside(question.json_answer) if question.items else ()
    return {name: get_args(hints[name])[1] for name in names if name not in ("nothing", "relaxed")}


def _fields(question: Question) -> Any:
    """Return the fields of the items of an answer; of one that is no list, its own."""
    hints = hints_of(question.json_answer)
    return _type(hints["items"]) if question.items else _types(question.answer)


def _types(of: type) -> dict[str, Any]:
    """Return the fields of a dataclass with their JSON types."""
    return {name: _type(hint) for name, hint in hints_of(of).items()}


def _type(hint: Any) -> Any:
    """Return a JSON type; of a list of dataclasses, their fields."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if isinstance(hint, UnionType):
        return " or ".join(map(_type, get_args(hint)))
    if get_origin(hint) is list and is_dataclass(item := get_args(hint)[0]):
        return _types(item)  # type: ignore[arg-type]
    if is_dataclass(hint):
        return "object"
    return "null" if hint is NoneType else _TYPES[get_origin(hint) or hint]


def _shown(types: dict[str, Any]) -> dict[str, Any]:
    given = Message(*([None] * len(fields(Message)))).as_json()  # type: ignore[arg-type]
    return {name: types.get(name, "object or null") for name in given}


def _explained(name: str, meaning: str, width: int) -> Iterator[str]:
    first, *others = wrap(meaning, width - 20)
    yield f"  {name:17} {first}"
    yield from (" " * 20 + line for line in others)


def _indented(text: str, width: int) -> Iterator[str]:
    return ("  " + line for line in wrap(text, width - 2))
