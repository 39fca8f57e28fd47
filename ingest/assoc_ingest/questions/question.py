"""A question is one typed function, and `views/` has the templates that show its answer.

    @question("Which conversation made this", items="conversations", about="...", ...)
    def blame(
        reader: Reader,
        what: Annotated[str, Field("A file, the hash of a commit, or a pull request.")],
        project: Annotated[str | None, ProjectField("Only conversations of this project")] = None,
    ) -> Blame:
        "Show which conversations made a file, a commit or a pull request."

Nothing else is said of it anywhere. Its parameters are the arguments and options of the command,
the input of the tool for agents (MCP) and the form of the web page. What it returns is a dataclass,
an `Answer`: its `items` are dataclasses, too, and their fields are those of `--json` and of the
output of the tool. Its docstring is the help of the command.

A question knows nothing of who asks but what `Reader` says. How an answer looks is up to its
templates: `blame.txt` on a terminal, `blame.mcp` for agents, `blame.html` in a browser (`view`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, get_args, get_type_hints

if TYPE_CHECKING:
    import sqlite3


@dataclass(frozen=True)
class Reader:
    """Who asks: what may be looked at, and how much of the answer is wanted."""

    db: sqlite3.Connection
    limit: int
    """Most items."""
    each: int = 1
    """Most of what belongs to one item."""
    start: int = 0
    """The number of the first item."""
    mask: Callable[[str], str] = str
    """Takes the credentials out of a text. A text is masked before it is cut: a part of a
    credential looks like none."""
    is_limited: bool = False
    """Is one project all that there is? Then its directories are all that may be looked at."""
    has_disk: bool = True
    """May anything be looked at but the database?"""

    def page(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return those of all items that are wanted."""
        return items[self.start : self.start + self.limit]


class Answer(Protocol):
    """What a question returns: a dataclass whose other fields stand beside the items."""

    @property
    def items(self) -> Sequence[Any]:
        """Dataclasses, from `reader.start` on, at most `reader.limit`."""

    @property
    def total(self) -> int | None:
        """The number of all items, None if nobody knows."""


@dataclass(frozen=True)
class Field:
    """What a parameter means."""

    about: str
    name: str = ""
    """What the command's help calls it."""
    most: int = 10**9
    """The largest number; the smallest is 1."""
    is_text: bool = False
    """A command takes all its words for it or, without any, standard input."""
    joins: Callable[[str], bool] = lambda text: False
    """Are several words of a command one value?"""
    needs_disk: bool = False


class ProjectField(Field):
    """The project that an answer is limited to: a command adds how it is named."""


class Parameter(NamedTuple):
    name: str
    type: type
    field: Field
    is_required: bool


class Size(NamedTuple):
    """How much of an answer somebody gets, unless more or less is asked for."""

    items: int
    each: int = 1
    most: int | None = None


@dataclass(frozen=True)
class Question:
    """Something that can be asked."""

    ask: Callable[..., Answer]
    title: str
    items: str
    """What its items are, in the plural."""
    about: str
    """What agents are told of it: what it answers, and when it helps."""
    sizes: Mapping[str, Size]
    """For each who asks: terminal, json, mcp and web."""

    @property
    def name(self) -> str:
        """The name of the command, the tool, the page and the templates."""
        return self.ask.__name__

    @property
    def help(self) -> str:
        return inspect.cleandoc(self.ask.__doc__ or "")

    def parameters(self) -> Iterator[Parameter]:
        hints = get_type_hints(self.ask, include_extras=True)
        for name, parameter in list(inspect.signature(self.ask).parameters.items())[1:]:
            hint, field = get_args(hints[name])
            yield Parameter(name, plain(hint), field, parameter.default is parameter.empty)

    @property
    def answer(self) -> type:
        """The dataclass that it returns."""
        returned: type = get_type_hints(self.ask)["return"]
        return returned


def question(
    title: str, *, items: str, about: str, **sizes: Size
) -> Callable[[Callable[..., Answer]], Question]:
    """Make a function a question."""
    return lambda ask: Question(ask, title, items, about, sizes)


def named(name: str) -> Question:
    found: Question = getattr(import_module(f".{name}", __package__), name)
    return found


def plain(hint: Any) -> Any:
    """Return a type without `| None`."""
    kinds = get_args(hint)
    return next(kind for kind in kinds if kind is not NoneType) if NoneType in kinds else hint


def hints_of(of: type) -> dict[str, Any]:
    """Return the types of the fields of a dataclass, with what they mean where that is said."""
    hints = get_type_hints(of, include_extras=True)
    return {field.name: hints[field.name] for field in fields(of)}


def beside(answer: Answer) -> dict[str, object]:
    """Return the fields that an answer has beside its items and their number."""
    names = (field.name for field in fields(answer))  # type: ignore[arg-type]
    return {name: getattr(answer, name) for name in names if name not in ("items", "total")}


def context(answer: Answer) -> dict[str, object]:
    """Return what templates know of an answer."""
    return {**beside(answer), "answer": answer, "items": answer.items, "total": answer.total}
