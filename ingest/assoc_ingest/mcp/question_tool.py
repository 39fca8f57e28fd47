"""The tools that are questions: their schemas, and how a question is asked for an agent."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import is_dataclass
from functools import partial
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from ..ask.answer import Cursors
from ..questions.fit import Answer, Item
from ..questions.question import (
    Parameter,
    ProjectField,
    Question,
    Reader,
    as_data,
    beside,
    context,
    has_more,
    hints_of,
    named,
    plain,
)
from .protocol import Object
from .tool import PROJECT, QUOTED, TEXT, Arguments, Tool, number

if TYPE_CHECKING:
    from .index import Index

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object"}


def tool(name: str) -> Tool:
    """Return the tool that asks a question."""
    question = named(name)
    size = question.sizes["mcp"]
    parameters = [one for one in question.parameters() if not one.field.is_option]
    properties = {_argument(one): _property(one) for one in parameters}
    properties["limit"] = number(f"Most {question.items}. Default {size.items}.", size.most or 50)
    return Tool(
        name=name,
        title=question.title,
        description=f"{question.about} {QUOTED}",
        properties=properties,
        required=tuple(one.name for one in parameters if one.is_required),
        run=partial(_run, question),
        fields=fields_of(question.answer),
        only_unlimited=tuple(one.name for one in parameters if isinstance(one.field, ProjectField)),
    )


def _argument(parameter: Parameter) -> str:
    return f"{parameter.name}s" if parameter.type is list else parameter.name


def _property(parameter: Parameter) -> Object:
    field = parameter.field
    if parameter.name == "project":
        return PROJECT
    if parameter.type is list:
        return {"type": "array", "items": TEXT, "description": field.about}
    if parameter.choices:
        about = f"{field.about} Default {parameter.default}."
        return {**TEXT, "enum": list(parameter.choices), "description": about}
    if parameter.type is int:
        return number(field.about, field.most)
    return {**TEXT, "description": field.about}


def _run(question: Question, index: Index, arguments: Arguments) -> Answer:
    from ..questions.view import rendered

    values = {one.name: arguments.get(_argument(one)) for one in question.parameters()}
    given = question.arguments(values)
    asked = (question.name, str(index.settings.database), index.settings.project, [*given.values()])
    cursors = Cursors(*asked)
    (start,) = cursors.place(arguments.get("cursor"), [0])
    size = question.sizes["mcp"]
    limit = int(str(arguments.get("limit", size.items)))
    reader = Reader(
        index.connection, limit, size.each, start, index.mask, index.is_limited, is_program=True
    )
    found = question.ask(reader, **given)
    known = context(found)
    following = start + len(found.items)

    def shown(block: str, **more: object) -> str:
        return rendered(question.name, "mcp", block, {**known, **more})

    return Answer(
        items=(_item(as_data(one)) for one in found.items),
        render=lambda item: shown("item", item=item),
        cursor=lambda number, _: cursors.made(start + number),
        is_continued=False,
        head=beside(found, with_total=True),
        said=tuple(filter(None, (shown("head"),))),
        empty="There is no more." if start else shown("empty"),
        behind=lambda: cursors.made(following) if has_more(found, start) else None,
    )


def _item(data: dict[str, object]) -> Item:
    """Return an item without what says nothing, and without the whole of a key that it has."""
    return {
        name: stated(value)
        for name, value in data.items()
        if value not in (None, []) and not _is_whole_key(name, data)
    }


def _is_whole_key(name: str, names: Container[str]) -> bool:
    return name == "session_key" and "key" in names


def stated(value: Any) -> Any:
    """Return a value without the fields of its parts that are null."""
    if isinstance(value, dict):
        return {name: stated(one) for name, one in value.items() if one is not None}
    return [stated(one) for one in value] if isinstance(value, list) else value


def fields_of(of: type) -> dict[str, Object]:
    """Return the schemas of the fields of a dataclass."""
    hints = hints_of(of)
    return {
        name: _schema(hint)
        for name, hint in hints.items()
        if name[0] != "_" and name != "columns" and not _is_whole_key(name, hints)
    }


def _schema(hint: Any) -> Object:
    """Return the schema of a type. A field that may be null is left out then, see `_item`."""
    if get_origin(hint) is Annotated:
        kind, about = get_args(hint)
        return {**_schema(kind), "description": about}
    kind = plain(hint)
    if isinstance(kind, UnionType):  # of dataclasses: what it is shows in its `kind`
        properties: dict[str, Object] = {}
        for one in get_args(kind):
            properties |= fields_of(one) | properties
        return {"type": "object", "properties": properties}
    if is_dataclass(kind):
        return {"type": "object", "properties": fields_of(kind)}  # type: ignore[arg-type]
    if get_origin(kind) is list:
        return {"type": "array", "items": _schema(get_args(kind)[0])}
    return {"type": _TYPES[get_origin(kind) or kind]}
