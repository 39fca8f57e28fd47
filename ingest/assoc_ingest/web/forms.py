"""The fields of forms, and the chips of filters that are set: the same on all pages.

A filter is described in `ask/filters`; here are the parameters that only reports have. Their
defaults are in the SQL of the report, as in `coalesce(nullif(:days, ''), '7')`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ..ask.filters import FILTERS, Filter, Filters
from ..questions.question import Parameter
from ..terminal import one_line
from . import pages


class Field(NamedTuple):
    """A field of a form, with an example or its default."""

    name: str
    label: str
    example: str = ""
    kind: str = "text"
    """text, flag, number, dollars or month."""
    choices: Mapping[str, str] = {}
    """All values that it takes, and their texts."""
    suggestions: tuple[str, ...] = ()
    """Some of its values."""
    about: str = ""
    is_required: bool = False


class Chip(NamedTuple):
    """A filter that is set, and the address of the page without it."""

    name: str
    label: str
    text: str
    address: str


FIELDS = {
    **{one.name: Field(one.name, one.label, one.example, one.kind) for one in FILTERS.values()},
    "days": Field("days", "Days", "{default}", "number"),
    "limit": Field("limit", "Maximum rows", "{default}", "number"),
    "all": Field("all", "All of the above", kind="flag"),
    "gone": Field("gone", "Include deleted entries", kind="flag"),
}
"""The fields of filters, and of the other parameters of reports."""


def of_parameter(parameter: Parameter) -> Field:
    """Return the field for a parameter of a question."""
    name, about = parameter.name, parameter.field.about
    if parameter.filters:
        return FIELDS[name]._replace(about=about)
    label = parameter.field.label or name.replace("_", " ").capitalize()
    kind = "flag" if parameter.type is bool else "text"
    choices = {one: one for one in parameter.choices}
    return Field(name, label, "", kind, choices, about=about, is_required=parameter.is_required)


def chips(
    filters: Filters, address: Callable[[str], str], texts: Mapping[str, str]
) -> Iterator[Chip]:
    """Yield the filters that are set; `texts` has the values that are shown in other words."""
    for name, value in filters.given().items():
        one: Filter = FILTERS[name]
        text = texts.get(name) or one.shown(value)
        yield Chip(name, one.label, text and shown_name(text), address(name))


def shown_name(text: object, nameless: str = "(untitled)") -> str:
    return one_line(pages.cut(str(text or ""))) or nameless
