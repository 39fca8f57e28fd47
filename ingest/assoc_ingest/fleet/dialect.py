"""Makes a query of `queries/` one that PostgreSQL runs, with the same rows in the same order.

The queries are written for SQLite and keep to what PostgreSQL knows, too, or what the functions and
views of the schema `assoc_read` add. What is left differs in every query in the same way:

- A parameter `:name` is `%(name)s`, always a text.
- SQLite takes NULL for less than every value, PostgreSQL for more, so each `order by` says where
  the rows with NULL stand.
- `cross join ... on` fixes an order of joins, which PostgreSQL chooses itself.
- An integer has 64 bits: `bigint`.
- `is` compares values of which either may be NULL: `is not distinct from`.
- Ids in a JSON array are numbers.
- The id of a message or a file is made of its place, so no index has it: what joins a tool call to
  its messages, or to calls of the same file, compares the places themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_token = re.compile(
    r"""--[^\n]*|\s+|'(?:[^']|'')*'|"[^"]*"|(?<!:):[a-z_]\w*|\w+|.""", re.DOTALL | re.IGNORECASE
)
_AFTER_A_KEY = {",", ")", "limit", "rows", "range", "union"}
"""What stands behind a key of an `order by`: the next one, or what ends them."""


def translated(query: str) -> str:
    """Return the text of a query for psycopg, whose parameters all are given by name."""
    text = "".join(_sorted_as_sqlite(map(_of_postgres, _tokens(query))))
    for old, new in _REPLACED:
        text = old.sub(new, text)
    return text


_SAME = r"\b(\w+)\.{} = (\w+)\.{}\b"
_FILE = r"\1.origin_id = \2.origin_id and \1.file_no = \2.file_no"
_CALL = r"\1.byte_offset = \2.byte_offset and \1.block = \2.block and \2.is_call = 1"
_RESULT = r"\1.byte_offset = \2.result_offset and \1.block = \2.result_block"
_REPLACED = tuple(
    (re.compile(old), new)
    for old, new in (
        (r"\bcross join (\w+ \w+) on\b", r"join \1 on"),
        (r"\bas integer\)", "as bigint)"),
        (r"\bchar\(", "chr("),
        (r"\bis (?=\w+\.)", "is not distinct from "),
        (r"\bselect value from json_each\(%", "select value::bigint from json_each(%"),
        (rf"{_SAME.format('id', 'call_id')}", rf"{_FILE} and {_CALL}"),
        (rf"{_SAME.format('id', 'result_id')}", rf"{_FILE} and {_RESULT}"),
        (rf"{_SAME.format('file_id', 'file_id')}", _FILE),
    )
)


def _tokens(query: str) -> Iterator[str]:
    """Yield the words and signs of a query without its comments, white space as one blank."""
    for match in _token.finditer(query):
        word = match[0]
        if not word.startswith("--"):
            yield " " if word.isspace() else word


def _of_postgres(word: str) -> str:
    if word.startswith(":") and word != ":":
        return f"%({word[1:]})s::text"
    return word.replace("%", "%%")


def _sorted_as_sqlite(tokens: Iterable[str]) -> Iterator[str]:
    """Yield the tokens, and behind each key of an `order by` where NULL stands."""
    depth = 0
    sorting: list[int] = []  # the depths of the brackets in which keys are being read
    before = last = ""
    for word in [*tokens, ")"]:
        if sorting and depth == sorting[-1] and word in _AFTER_A_KEY:
            yield " nulls last " if last == "desc" else " nulls first "
            if word != ",":
                sorting.pop()
        depth += (word == "(") - (word == ")")
        if depth >= 0:
            yield word
        if word != " ":
            before, last = last, word
        if (before, word) == ("order", "by"):
            sorting.append(depth)
