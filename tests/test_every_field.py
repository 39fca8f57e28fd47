"""Whatever a file of an application states, some row has it, but for secrets.

The cases hold every field that their formats know, each with a value of its own. A value that
stands in no row would be lost to whoever asks the database; the archive alone is no answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import SOURCES as CASES
from tests.support.cases import home_of
from tests.support.writing import TRANSCRIPT, user, write

from assoc_ingest.fields import from_milliseconds, utc
from assoc_ingest.records import Issue
from assoc_ingest.source import LOG, Line
from assoc_ingest.sources import SOURCES
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import connect

HOMES = sorted(str(path.parent.relative_to(CASES)) for path in CASES.glob("*/every-field-*/home"))
FILES = [
    (case, str(path.relative_to(CASES / case / "home")))
    for case in HOMES
    for path in sorted((CASES / case / "home").rglob("*.json*"))
]
SECRETS = ("openaiApiKey", "bridgeSessionId", "messagingSocketPath", "providerEnv")
LEFT_OUT = {
    "data": "the bytes of an image",
    "signature": "of a thought: nothing that a person would read",
}
REPEATED = {
    "claudeMessage.message.content": "the message's content, which has rows of its own",
    "tasks.4001.subject": "stands in the snapshot of the task too",
}

Leaf = tuple[tuple[str | int, ...], Any]


def leaves(value: object, path: tuple[str | int, ...] = ()) -> Iterator[Leaf]:
    """Yield every text, number and flag, with the keys that lead to it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))
    elif value is not None and value != "":
        yield path, value


def is_secret(path: Iterable[str | int]) -> bool:
    return any(key in SECRETS for key in path)


def is_repeated(path: Iterable[str | int]) -> bool:
    dotted = ".".join(map(str, path))
    return any(dotted.startswith(prefix) for prefix in REPEATED)


def is_phrase(line: Any, leaf: object) -> bool:
    """Is it what Chorus shows of a call instead of its input?"""
    return isinstance(line, dict) and leaf == f"Using tool: {line.get('toolName')}"


def lines_of(case: str, path: str) -> list[Any]:
    """Return the values of a file: one of a document, one for each line of a log."""
    source = SOURCES[case.split("/")[0]]
    claim = source.claim(tuple(path.split("/")))
    assert claim is not None, path
    data = (CASES / case / "home" / path).read_bytes()
    parts = data.splitlines() if source.shape(claim) == LOG else [data]
    return [json.loads(part) for part in parts]


def stored(database: Path) -> tuple[set[str], str]:
    """Return every value of every row as text, those inside of JSON too; and all texts in one."""
    connection = connect(database)
    tables = connection.execute(
        "select name from pragma_table_list where schema = 'main' and type = 'table'"
        " and name not in ('archive', 'issues')"
    ).fetchall()
    values = set()
    for (table,) in tables:
        for row in connection.execute(f"select * from {table}"):
            values.update(str(value) for value in row if value is not None)
    connection.close()
    for text in list(values):
        if text.startswith(("{", "[")):
            try:
                values.update(str(leaf) for _, leaf in leaves(json.loads(text)))
            except ValueError:
                continue
    return values, "\n".join(values)


def forms(value: object) -> Iterator[str]:
    """Yield how a value may stand in a column."""
    yield str(value)
    if isinstance(value, str):
        yield value.casefold()
        yield utc(value) or str(value)
    elif isinstance(value, int):
        yield from_milliseconds(value) or str(value)


@pytest.mark.parametrize("case", HOMES)
def test_every_text_and_number_is_in_a_row(
    case: str, fresh: Callable[[], Path], tmp_path: Path
) -> None:
    database = fresh()
    sync(database, [home_of(case, tmp_path)])
    values, text = stored(database)
    missing = []
    for path in (path for of, path in FILES if of == case):
        for value in lines_of(case, path):
            for keys, leaf in leaves(value):
                if is_secret(keys):
                    assert str(leaf) not in text, keys
                elif not (isinstance(leaf, bool) or keys[-1] in LEFT_OUT or is_phrase(value, leaf)):
                    is_there = any(form in values for form in forms(leaf))
                    if not is_there and not (isinstance(leaf, str) and leaf in text):
                        missing.append((path, keys, leaf))
    assert missing == []


def with_leaf(value: Any, path: tuple[str | int, ...], leaf: object) -> Any:
    """Return a value with another leaf in the place of one."""
    if not path:
        return leaf
    key, *rest = path
    if isinstance(value, list):
        return [
            with_leaf(item, tuple(rest), leaf) if place == key else item
            for place, item in enumerate(value)
        ]
    return {**value, key: with_leaf(value[key], tuple(rest), leaf)}


def other(leaf: object) -> object:
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, int | float):
        return leaf + 1
    text = str(leaf)
    moved = {"0": "1"}.get(text[-2:-1], "0") if text.endswith("Z") else "x"
    return f"{text[:-2]}{moved}Z" if text.endswith("Z") else f"{text}{moved}"


def records(case: str, path: str, value: object) -> list[object]:
    """Return what a line becomes, but for its length, and for what only says what is wrong."""
    source = SOURCES[case.split("/")[0]]
    claim = source.claim(tuple(path.split("/")))
    assert claim is not None
    found = source.parse(claim, [Line(0, json.dumps(value).encode())])
    return [
        record._replace(byte_length=0) if "byte_length" in record._fields else record
        for record in found
        if not isinstance(record, Issue)
    ]


@pytest.mark.parametrize(("case", "path"), FILES, ids=[path for _, path in FILES])
def test_another_value_in_any_field_makes_another_row(case: str, path: str) -> None:
    """So a flag is in a row too, whatever it is called there; and a secret is in none."""
    for value in lines_of(case, path):
        before = records(case, path, value)
        for keys, leaf in leaves(value):
            changed = records(case, path, with_leaf(value, keys, other(leaf)))
            if is_secret(keys):
                assert changed == before, keys
            elif not is_repeated(keys) and keys[-1] not in LEFT_OUT:
                assert changed != before, keys


def test_all_applications_have_such_a_case() -> None:
    assert {case.split("/")[0] for case in HOMES} == {
        "associate", "ccinsights", "chorus", "claude", "cortex",
    }  # fmt: skip


def test_a_transcript_says_who_runs_the_agent(fresh: Callable[[], Path], tmp_path: Path) -> None:
    database = fresh()
    write(tmp_path, TRANSCRIPT, user("hello", userType="external"))
    sync(database, [tmp_path])
    assert "external" in stored(database)[0]
