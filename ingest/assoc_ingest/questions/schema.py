"""`schema`: what programs can rely on, the fields of the JSON answers of every command that reads.

Fields are read from the code and the queries that give them, so that this cannot say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from . import QUESTIONS
from .list import columns
from .question import Question, Reader, Size, hints_of, named, names_beside, question

if TYPE_CHECKING:
    import sqlite3

    from ..ask.conversation import Message
    from ..sql import Query
    from ..terminal import Paint

ANSWER = {
    "schema": "{schema}: the version of this contract",
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

OPTIONS = {
    "--limit N": "at most N items",
    "--cursor NEXT": "continue after the answer with this `next`",
    "--fields A,B": "only these fields of each item",
    "--max-chars N": "at most N characters, {least:,} or more",
}
_TYPES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    Iterable: "array",
}


_MAX_WIDTH = 100


@dataclass
class Contract:
    """The contract, as data."""

    _parts: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return self._parts

    def lines(self, width: int, _: Paint) -> Iterator[str]:
        return _lines(self._parts, min(width, _MAX_WIDTH))


@question(
    "What programs can rely on",
    items="",
    about="",
    is_static=lambda: True,
    terminal=Size(0), json=Size(0),
)  # fmt: skip
def schema(_: Reader) -> Contract:
    """Print what programs can rely on: the fields of --json.

    The tables of the database are described in docs/schema.md, and in the database itself.

    \b
    Examples:
      assoc-ingest schema
      assoc-ingest schema --json
    """
    return Contract(contract())


def contract() -> dict[str, object]:
    import sqlite3
    from contextlib import closing

    from .. import sql
    from ..ask.conversation import Message
    from ..ask.refs import Entry
    from ..errors import ERROR_CODES
    from .fit import LEAST_JSON_CHARS, SCHEMA
    from .show import PLACE

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
        "options": {name: text.format(least=LEAST_JSON_CHARS) for name, text in OPTIONS.items()},
        "answer": ANSWER | {"schema": ANSWER["schema"].format(schema=SCHEMA)},
        "beside": {one.name: fields for one in questions if (fields := _beside(one))},
        "nothing": NOTHING,
        "error": {"code": ERROR_CODES, "message": "what is wrong", "hint": "what to do, or null"},
        **{one.name: _fields(one) for one in questions if _has_fields(one)},
        "search": {**_fields(named("search")), "marks": "array"},
        "show": {**PLACE, **_shown(Message)},
        "show STORE:NAME": _types(Entry),
        "list": lists,
        "query": {
            name: {"parameters": list(sql.queries("reports")[name].parameters), "columns": columns}
            for name, columns in reports.items()
        },
    }


def _lines(known: Mapping[str, Any], width: int) -> Iterator[str]:
    """Yield the contract for people."""
    yield "Every answer with --json is one object:"
    for name, meaning in known["answer"].items():
        yield from _explained(name, meaning, width)
    yield "\nAn answer of search, list or stats without items also has an object `nothing`:"
    for name, meaning in known["nothing"].items():
        yield from _explained(name, meaning, width)
    yield "\nAn error is one object, too: {schema, error: {code, message, hint}}."
    for code, meaning in known["error"]["code"].items():
        yield from _explained(code, meaning, width)
    yield "\nOptions of search, show, list, query, stats, blame, fix, how and secrets:"
    for option, meaning in known["options"].items():
        yield from _explained(option, meaning, width)
    for command in (one.name for one in map(named, QUESTIONS) if _has_fields(one)):
        yield f"\nFields of {command}:"
        yield from _indented(", ".join(known[command]), width)
    for name, fields_of_list in known["list"].items():
        yield f"\nFields of list {name}:"
        yield from _indented(", ".join(fields_of_list), width)
    yield "\nThe columns of reports: assoc-ingest schema --json"


def _has_fields(question: Question) -> bool:
    """Does each answer have the same fields, which its dataclass names?"""
    return not question.is_table and question.answer is not Contract


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


def _shown(message: type[Message]) -> dict[str, Any]:
    types = _types(message)
    given = message(*([None] * len(fields(message)))).as_json()  # type: ignore[arg-type]
    return {name: types.get(name, "object or null") for name in given}


def _explained(name: str, meaning: str, width: int) -> Iterator[str]:
    from ..terminal import wrap

    first, *others = wrap(meaning, width - 20)
    yield f"  {name:17} {first}"
    yield from (" " * 20 + line for line in others)


def _indented(text: str, width: int) -> Iterator[str]:
    from ..terminal import wrap

    return ("  " + line for line in wrap(text, width - 2))
