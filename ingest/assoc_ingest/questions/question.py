"""A question is one typed function, and `views/` has the templates that show its answer.

    @question("Which conversation made this", items="conversations", about="...", ...)
    def blame(
        reader: Reader,
        what: Annotated[str, Field("A file, the hash of a commit, or a pull request.")],
        project: Annotated[str | None, ProjectField("Only conversations of this project")] = None,
    ) -> Blame:
        "Show which conversations made a file, a commit or a pull request."

It is defined nowhere else. Its parameters are the arguments and options of the command,
the input of the tool for agents (MCP) and the form of the web page. What it returns is a dataclass,
an `Answer`: its `items` are dataclasses, too, and their fields are those of `--json` and of the
output of the tool. Its docstring is the help of the command. A parameter of type `Filters`, which
`FilterFields` names, is an option, an argument and a field of the form for each of the filters.

Not every answer is a list of items: one without `items` is a single object. An answer with a method
`table` consists of rows with columns that only it knows, as a command prints them.

A question knows only what `Reader` says about who asks. How an answer looks is up to its
templates: `blame.txt` on a terminal, `blame.mcp` for agents, `blame.html` in a browser (`view`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from importlib import import_module
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    import sqlite3

    from ..terminal import Paint

WHY_NOTHING = (
    "Why there are no items: {filters, without_filters, is_close, words}: how many there are "
    "without each filter, and without any, with some of the words if is_close; words that occur "
    "nowhere."
)
"""What the field `nothing` of an answer means."""


NOTED = "What the user noted on it: {ref, is, time, text}; `is` says kept or rejected."
"""What the field `noted` of an answer means."""


# What compares or prints a dataclass is made when it is imported, and costs every command time.
@dataclass(eq=False, repr=False)
class Reader:
    """Who asks: what they may see, and how much of the answer they want."""

    db: sqlite3.Connection
    limit: int
    """Most items."""
    each: int = 1
    """Most of what belongs to one item; 0 if that alone is asked for, in one list."""
    cursor: tuple[int, ...] = ()
    """The numbers of the cursor with which the answer goes on; none at its beginning."""
    mask: Callable[[str], str] = str
    """Takes the credentials out of a text. A text is masked before it is cut: a part of a
    credential looks like none."""
    is_limited: bool = False
    """Is one project all that there is? Then its directories are all that may be looked at."""
    has_disk: bool = True
    """May anything be looked at but the database?"""
    is_program: bool = False
    """Is every field read, and has it to be known whether there is more? Templates show some."""
    has_limit: bool = True
    """Was a number of items asked for? If not, a report can have a limit of its own."""
    progress: Callable[[int, int], None] = lambda done, size: None
    """Is called with the bytes that were read, and with all of them, where that takes long."""
    budget: int | None = None
    """Characters of the whole answer, if an agent gets it."""
    own: Callable[[], frozenset[str]] = frozenset
    """Finds the keys of the conversations that may be the one that asks."""

    @property
    def start(self) -> int:
        """The number of the first item."""
        return self.at(1)[0]

    def at(self, count: int) -> tuple[int, ...]:
        """Return the numbers of the cursor, zeros at the beginning; UsageError if not so many."""
        if not self.cursor:
            return (0,) * count
        from .fit import place_of

        return place_of(self.cursor, count)

    def page(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return those of all items that are wanted."""
        return items[self.start : self.start + self.limit]


Answer = Any
"""What a question returns: a dataclass, whose fields are those of `--json` and of the tool.

A list has `items`, from `reader.start` on and at most `reader.limit`, and `total`, the number of
all of them, or None with `_has_more`. A table has `columns`, too, and a method `table`. Fields with
an underscore are for the templates alone. An answer with `lines` needs no template for a terminal.
One that does not go on behind the number of an item has `_continued` (`fit.Continued`).
"""


class Table(NamedTuple):
    """The rows of an answer as a command prints them, and what it says below them."""

    rows: Sequence[Sequence[object]]
    notes: Sequence[str] = ()
    has_total: bool = False
    """The last row is the sum of the others."""
    lines: Callable[[Paint], Iterable[str]] | None = None
    """What a terminal shows instead of a table; then the notes are about these."""


@dataclass(eq=False, repr=False)
class Field:
    """What a parameter means."""

    about: str
    name: str = ""
    """What the command's help calls it."""
    label: str = ""
    """What a form calls it, if not by its name."""
    least: int = 1
    """The smallest number."""
    most: int = 10**9
    is_text: bool = False
    """A command takes all its words for it or, without any, standard input."""
    joins: Callable[[str], bool] = lambda text: False
    """Are several words of a command one value?"""
    is_query: bool = False
    """Are several words of a command one value, and `-word` one of them?"""
    is_option: bool = False
    """Has only a command this?"""
    is_argument: bool = False
    """Is it an argument of the command although it can be left out?"""
    is_for_agents: bool = False
    """Has only the tool this?"""
    instead: str = ""
    """The required parameter that is not needed where this one is given."""
    completes: str = ""
    """What a shell completes it with, a function of `commands/options`; it is one word then."""
    needs_disk: bool = False


class ProjectField(Field):
    """The project that an answer is limited to: who can see only one has none to name."""


@dataclass(eq=False, repr=False)
class FilterFields:
    """Which filters a parameter of type `Filters` takes."""

    names: tuple[str, ...]


class Parameter(NamedTuple):
    name: str
    type: type
    field: Field
    is_required: bool = False
    default: object = None
    choices: tuple[str, ...] = ()
    filters: str = ""
    """Of a filter: the parameter of the function that it is a part of."""


class Size(NamedTuple):
    """How much of an answer somebody gets, unless more or less is asked for; 0 items is all."""

    items: int
    each: int = 1
    most: int | None = None


@dataclass(eq=False, repr=False)
class Question:
    """Something that can be asked."""

    ask: Callable[..., Answer]
    title: str
    items: str
    """What its items are, in the plural; empty if the answer is no list."""
    about: str
    """What agents are told of it: what it answers, and when it helps."""
    sizes: Mapping[str, Size]
    """For each who can ask: terminal, json, mcp and web."""
    parts: str = ""
    """What belongs to its items, in the plural, if programs are given these in one list."""
    tables: tuple[str, ...] = ()
    """What it reads besides conversations: who may not see these tables has no page of it."""
    check: Callable[..., None] | None = None
    """Raises UsageError for arguments that do not go together, before anything is opened."""
    is_static: Callable[..., bool] = lambda **_: False
    """Does the answer to these arguments come with the program? Then no database is opened."""
    tool: str = ""
    """What agents call it, if not by its name."""
    agents: Callable[[], type] | None = None
    """Imports the dataclass that agents get, if only they need it."""

    @property
    def name(self) -> str:
        """The name of the command, the tool, the page and the templates."""
        return self.ask.__name__.removesuffix("_")  # `list_` does not hide the type

    @property
    def help(self) -> str:
        return inspect.cleandoc(self.ask.__doc__ or "")

    def parameters(self) -> Iterator[Parameter]:
        # Filters take longer to import than the help of a command may take.
        hints = get_type_hints(self.ask, localns={"Filters": object}, include_extras=True)
        for name, parameter in list(inspect.signature(self.ask).parameters.items())[1:]:
            hint, field = get_args(hints[name])
            if isinstance(field, FilterFields):
                yield from (_filter(one, name) for one in field.names)
                continue
            kind = plain(hint)
            choices = get_args(kind) if get_origin(kind) is Literal else ()
            is_required = parameter.default is parameter.empty
            default = None if is_required else parameter.default
            kind = str if choices else kind
            yield Parameter(name, kind, field, is_required, default, choices)

    def arguments(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments of the function, from the values of its parameters."""
        arguments: dict[str, Any] = {}
        filters: dict[str, dict[str, object]] = {}
        for one in self.parameters():
            value = values.get(one.name)
            if one.filters:
                filters.setdefault(one.filters, {})[one.name] = value
            else:
                arguments[one.name] = one.default if value is None else value
        if filters:
            from ..ask.filters import Filters

            arguments |= {name: Filters.of(given) for name, given in filters.items()}
        if self.check is not None:
            self.check(**arguments)
        return arguments

    @property
    def answer(self) -> type:
        """The dataclass that it returns."""
        return self.agents() if self.agents is not None else self.answers[0]

    @property
    def json_answer(self) -> type:
        """The dataclass for programs: that of its parts, if they are given these."""
        return self.answers[-1]

    @property
    def answers(self) -> tuple[type, ...]:
        returned = get_type_hints(self.ask, localns={"Filters": object})["return"]
        return get_args(returned) or (returned,)

    @property
    def is_table(self) -> bool:
        return hasattr(self.json_answer, "table")


def question(
    title: str,
    *,
    items: str,
    about: str,
    parts: str = "",
    tables: tuple[str, ...] = (),
    check: Callable[..., None] | None = None,
    is_static: Callable[..., bool] = lambda **_: False,
    tool: str = "",
    agents: Callable[[], type] | None = None,
    **sizes: Size,
) -> Callable[[Callable[..., Answer]], Question]:
    """Make a function a question."""
    return lambda ask: Question(
        ask, title, items, about, sizes, parts, tables, check, is_static, tool, agents
    )


def named(name: str) -> Question:
    module = import_module(f".{name}", __package__)
    named: Question = getattr(module, name, None) or getattr(module, f"{name}_")
    return named


def _filter(name: str, filters: str) -> Parameter:
    from ..ask.filters import FILTERS

    one = FILTERS[name]
    is_project = name in ("project", "repository", "cwd")
    field = ProjectField(one.about) if is_project else Field(one.about.removesuffix(".") + ".")
    return Parameter(name, one.type, replace(field, label=one.label), filters=filters)


def plain(hint: Any) -> Any:
    """Return a type without `| None`."""
    kinds = get_args(hint)
    return next(kind for kind in kinds if kind is not NoneType) if NoneType in kinds else hint


def hints_of(of: type) -> dict[str, Any]:
    """Return the types of the fields of a dataclass, with what they mean where that is said."""
    hints = get_type_hints(of, include_extras=True)
    return {field.name: hints[field.name] for field in fields(of)}


def beside(answer: Answer, *, with_total: bool = False) -> dict[str, object]:
    """Return the fields that an answer has beside its items, but for those that are null.

    Those that it names in `_NULLS` are given in any case.
    """
    names = names_beside(type(answer), with_total=with_total)
    values = ((name, _plain(getattr(answer, name))) for name in names)
    nulls = getattr(answer, "_NULLS", ())
    return {name: value for name, value in values if value is not None or name in nulls}


def has_more(answer: Answer, start: int) -> bool:
    """Does anything follow the items, the first of which has the number `start`?"""
    if hasattr(answer, "_has_more"):
        return bool(answer._has_more)
    return bool(answer.total > start + len(answer.items))


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [*map(as_data, value)]
    return as_data(value) if is_dataclass(value) else value


def as_data(item: Any) -> dict[str, object]:
    """Return an item, a dataclass or a row, as fields."""
    if hasattr(item, "as_json"):
        return item.as_json()  # type: ignore[no-any-return]
    return asdict(item, dict_factory=_shown) if is_dataclass(item) else item  # type: ignore[arg-type]


def _shown(fields: list[tuple[str, object]]) -> dict[str, object]:
    return {name: value for name, value in fields if name[0] != "_"}


def names_beside(answer: type, *, with_total: bool = False) -> list[str]:
    left = {"items", "columns", *(["total"] if not with_total else [])}
    names = (field.name for field in fields(answer))
    return [name for name in names if name not in left and name[0] != "_"]


def context(answer: Answer) -> dict[str, object]:
    """Return what templates know of an answer."""
    known = {field.name: getattr(answer, field.name) for field in fields(answer)}
    return {**known, "answer": answer}
