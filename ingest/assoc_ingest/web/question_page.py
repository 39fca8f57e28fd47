"""The pages of questions: a form made of the parameters, and what the template of a question shows.

A page looks at the database alone: who asks may be anybody, so no file and no repository that they
name is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ..questions import QUESTIONS
from ..questions.question import Parameter, Question, Reader, context, named
from . import pages, search_page
from .conversation import session_path
from .pages import PageError

if TYPE_CHECKING:
    import sqlite3

    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

TABLES = (*search_page.TABLES, "tool_calls", "links")
_LONGEST = 20_000  # letters of a value: a traceback is long


def views() -> list[tuple[str, Callable[[Datasette, Request], Any]]]:
    """Return the path and the view of each page."""
    return [(rf"^/(?P<database>[^/]+)/-/{name}/?$", partial(_view, name)) for name in QUESTIONS]


def links(datasette: Datasette, database: str) -> list[tuple[str, str, str]]:
    """Return the title, the address and the first sentence of the help of each page."""
    base = datasette.urls.database(database)
    questions = map(named, QUESTIONS)
    return [(one.title, f"{base}/-/{one.name}", one.help.split("\n")[0]) for one in questions]


async def _view(name: str, datasette: Datasette, request: Request) -> Response:
    question, database = named(name), pages.named(request, "database")
    here = f"{datasette.urls.database(database)}/-/{name}"
    fields = [one for one in question.parameters() if not one.field.needs_disk]
    given = {one.name: (request.args.get(one.name) or "").strip() for one in fields}
    if any(len(value) > _LONGEST for value in given.values()):
        raise PageError(400, f"A value is longer than {_LONGEST:,} characters.")
    is_asked = all(given[one.name] for one in fields if one.is_required)
    number = pages.page_number(request.args.get("page"))
    size = question.sizes["web"]

    def read(connection: sqlite3.Connection) -> dict[str, object]:
        start = (number - 1) * size.items
        reader = Reader(connection, size.items, size.each, start, has_disk=False)
        values = {one.name: _value(one, given[one.name]) for one in fields}
        return _answered(question, reader, values, partial(session_path, datasette, database))

    shown: dict[str, object] = {
        "title": question.title,
        "database": database,
        "about": question.help.split("\n\n")[0],
        "here": here,
        "fields": fields,
        "given": given,
        "number": number,
        "page_address": lambda page: f"{here}?{urlencode({**given, 'page': page})}",
        "body": None,
        "has_more": False,
    }
    await pages.read(datasette, request, database, TABLES, lambda connection: None)
    if is_asked:
        shown |= await pages.read(datasette, request, database, TABLES, read)
    return await pages.page(datasette, request, "question", shown)


def _value(parameter: Parameter, text: str) -> object:
    """Return what a field of the form says, None if it is empty."""
    if parameter.type is not int or not text:
        return text or None
    if not (text.isascii() and text.isdigit() and 0 < int(text[:12]) <= parameter.field.most):
        raise PageError(400, f"{parameter.name} is a number from 1 to {parameter.field.most:,}.")
    return int(text)


def _answered(
    question: Question, reader: Reader, given: dict[str, object], path: Callable[[str], str]
) -> dict[str, object]:
    from ..questions.view import rendered

    found = question.ask(reader, **given)
    block = "answer" if found.items else "empty"
    body = rendered(
        question.name, "html", block, {**context(found), "open": partial(_address, path)}
    )
    return {
        "body": body,
        "has_more": (found.total or 0) > reader.start + len(found.items),
    }


def _address(path: Callable[[str], str], ref: str) -> str:
    """Return the address of the page that shows what a reference names: KEY, KEY:12, KEY/2:12."""
    head, _, line = ref.rpartition(":")
    if not (head and line.isdecimal()):
        return path(ref)
    key, _, file = head.rpartition("/")
    return (
        f"{path(key)}?at={file}:{line}" if key and file.isdecimal() else f"{path(head)}?at={line}"
    )
