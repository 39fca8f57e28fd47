"""Text at its worst: what acts on a terminal or in a shell, and what takes forever to look at.

`TEXTS` make a careless expression or comparison look at every letter often. Each is a function from
a number of letters to a text of about that size. What stands in it is repeated, never closed,
nested, or so much alike that everything nearly fits everything.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

CONTROLS = (
    "red \x1b[31m title \x1b]0;owned\x07 clip \x1b]52;c;ZXZpbA==\x07 link \x1b]8;;http://x\x1b\\"
    " dcs \x1bPq\x1b\\ c1 \x9b31m bell \x07 bidi \u202e\u2066 tag \U000e0041 bom \ufeff\r\x08"
    + "".join(map(chr, [*range(1, 32), *range(127, 160), 0x2028, 0x2029]))
)
SHELL = (
    ";touch OWNED;#`touch OWNED`$(touch OWNED)&touch OWNED&|touch OWNED>OWNED"
    "'$(touch OWNED)'\"$(touch OWNED)\";touch OWNED\ntouch OWNED\n';touch OWNED;'\\"
)
EVIL = CONTROLS + SHELL

_TIME = re.compile(r"\d{4}-\d\d-\d\d")
_STRUCTURE = {
    *("type", "role", "kind", "status", "subtype", "event", "method", "version", "schema"),
    *("sessionKind", "provider", "format"),
}


def spoil(home: Path) -> None:
    """Put what acts behind each text and name that the files of a home state: in JSON, in the rows
    of a database, in lines of any other text.

    Names of fields, times and what says how the format goes on stay.
    """
    for path in filter(Path.is_file, home.rglob("*")):
        data = path.read_bytes()
        if data.startswith(b"SQLite format 3"):
            _spoil_database(path)
        elif path.suffix in (".md", ".txt", ".yaml"):
            lines = data.decode().splitlines()
            path.write_text("".join(f"{line}{EVIL}\n" for line in lines))
        elif ".json" in path.name:
            lines = data.splitlines() if path.suffix == ".jsonl" else [data]
            path.write_bytes(b"".join(_spoilt_json(line) + b"\n" for line in lines))


def _spoilt_json(data: bytes | str) -> bytes:
    return json.dumps(_spoilt(json.loads(data))).encode()


def _spoilt(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _spoilt(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_spoilt(inner, key) for inner in value]
    is_free = isinstance(value, str) and key not in _STRUCTURE and not _TIME.match(value)
    return value + EVIL if is_free else value


def _spoil_database(path: Path) -> None:
    """Texts in columns that join rows stay: those whose name is `id` or ends in it."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("select name from sqlite_master where type = 'table'")
        for (table,) in tables.fetchall():
            columns = [row[1] for row in connection.execute(f'pragma table_info("{table}")')]
            for column in columns:
                if not column.lower().endswith(("id", "board", *_STRUCTURE)):
                    connection.create_function("spoilt", 1, partial(_spoilt_value, column))
                    connection.execute(f'update "{table}" set "{column}" = spoilt("{column}")')
        connection.commit()


def _spoilt_value(column: str, value: object) -> object:
    with suppress(ValueError, TypeError):
        if isinstance(json.loads(value), dict | list):  # type: ignore[arg-type]
            return _spoilt_json(value).decode()  # type: ignore[arg-type]
    return _spoilt(value, column)


Maker = Callable[[int], str]


def repeated(piece: str, end: str = "") -> Maker:
    """Return a maker of `piece`, again and again, with `end` behind it."""
    return lambda size: piece * max(1, size // len(piece)) + end


def nested(opening: str, closing: str, inner: str = "") -> Maker:
    """Return a maker of pairs that stand in each other."""
    return lambda size: (
        opening * (size // (len(opening) + len(closing)))
        + inner
        + closing * (size // (len(opening) + len(closing)))
    )


def _table(size: int) -> str:
    """A head of very many columns, and very many rows that fill none of them."""
    columns = size // 6
    return f"{'|a' * columns}|\n{'|-' * columns}|\n" + "|\n" * (size // 6)


def _references(size: int) -> str:
    """A long address, and very many references to it."""
    return f"[a]: http://x/{'y' * (size // 2)}\n\n" + "[a]" * (size // 6)


TEXTS: dict[str, Maker] = {
    "letters": repeated("a"),
    "words": repeated("a "),
    "numbered words": lambda size: " ".join(map(str, range(size // 6))),
    "spaces": repeated(" ", "x"),
    "indented": repeated("x    "),
    "blank lines": repeated("\n", "x"),
    "carriage returns": repeated("\r\n", "\rx"),
    "tabs": repeated("\t"),
    "lines": repeated("a\n"),
    "worktrees": repeated("/.claude/worktree/.worktree"),
    "commands of a shell": repeated("a|"),
    "shells in shells": repeated("bash -c \"$('a "),
    "equal lines": repeated("the same line\n"),
    "two kinds of lines": repeated("{\n}\n"),
    "marks": repeated("\x02", "\x03"),
    "pairs of marks": repeated("\x02a\x03"),
    "colours": repeated("\x1b[31"),
    "controls": repeated("\x1b"),
    "surrogates": repeated("\ufffd"),
    "combining letters": repeated("a\u0301"),
    "combining marks": lambda size: "a" + "\u0301" * size,
    "zero-width letters": repeated("\u200b"),
    "words of invisible letters": repeated("a\u00ada "),
    "colons": repeated("{ : "),
    "wide letters": repeated("字"),
    "joined emoji": repeated("👩\u200d"),
    "backslashes": repeated("\\"),
    "odd escapes": repeated("\\\\\\n"),
    "line starts": repeated("\\na"),
    "quotes": repeated('"'),
    "escaped quotes": repeated('\\"'),
    "braces": repeated("}{"),
    "empty objects": repeated("{}"),
    "opened objects": repeated('{"a":'),
    "opened lists": repeated("["),
    "nested lists": nested("[", "]"),
    "digits": repeated("1"),
    "opened commits": repeated("\n[" + "a " * 120 + "1234567"),
    "slashes": repeated("/"),
    "path": repeated("a/"),
    "dots": repeated("."),
    "dashes": repeated("-"),
    "ellipses": repeated("…"),
    "backups": repeated(".bak"),
    "underscores": repeated("_"),
    "addresses": repeated("http://"),
    "less-than signs": repeated("<"),
    "tags that never end": repeated("<a "),
    "one tag that never ends": lambda size: "<" + "a" * size,
    "attributes that never end": lambda size: "<a" + ' b="c"' * (size // 6),
    "quotes that never end": repeated('<a b="'),
    "attributes between tags": repeated('<a "<b" '),
    "names": lambda size: f"<a {'b' * size}>",
    "opening tags": repeated("<a>"),
    "closing tags": repeated("</a>"),
    "elements": repeated("<a>b</a>"),
    "different elements": lambda size: "".join(f"<a{n}>" for n in range(size // 9)),
    "messages": repeated('<teammate-message a="b">'),
    "messages from": repeated('<cross-session-message from="'),
    "closed messages": repeated('<teammate-message teammate_id="b">x</teammate-message>'),
    "messages in turn": repeated('<teammate-message a="b"><cross-session-message a="b">'),
    "ends of messages": repeated("</teammate-message> "),
    "spaces in a message": lambda size: f'<teammate-message{" " * size}a="b"',
    "reminders": repeated("<system-reminder>a</system-reminder>\n", "z"),
    "opened reminders": repeated("<system-reminder>"),
    "tasks": repeated("<task-id>"),
    "task of spaces": lambda size: f"<task-id>{' ' * size}x</summary>",
    "summaries": repeated("<summary> ", "</summary"),
    "commands": repeated("<command-name>"),
    "agents": repeated("agentId: "),
    "task ids": repeated("Task ID: "),
    "saved to": repeated("Full output saved to: "),
    "exit codes": repeated("Exit code 1"),
    "exit codes of commands": repeated("Exit code: 1\n"),
    "wall times": repeated("Wall time: 1 second"),
    "patches": repeated("*** Add File: a\n"),
    "letters of a patch": lambda size: "*** Add File: " + "a" * size,
    "rollouts": repeated("rollout-"),
    "brackets": repeated("["),
    "links": repeated("[a]("),
    "nested links": nested("[", "](b)", "a"),
    "images": repeated("![a]("),
    "angle links": repeated("[a](<"),
    "references": _references,
    "definitions": repeated("[a]: "),
    "many definitions": lambda size: "".join(f"[{n}]: b\n" for n in range(size // 10)),
    "stars": repeated("*"),
    "emphasis": repeated("*a "),
    "strong": repeated("**a"),
    "nested emphasis": nested("*a ", " a*", "b"),
    "mixed emphasis": repeated("*a_b**c__"),
    "strikes": repeated("~~a "),
    "back quotes": repeated("`"),
    "growing back quotes": lambda size: "".join(
        "`" * (n % 700) + "a" for n in range(1, max(2, size // 350))
    ),
    "code": repeated("`a"),
    "fences": repeated("```\n"),
    "quoted lines": repeated("> a\n"),
    "nested quotes": repeated(">"),
    "lists": repeated("- a\n"),
    "nested items": lambda size: "".join(
        " " * (n % 1000) + "- a\n" for n in range(max(1, size // 500))
    ),
    "items in a line": repeated("- "),
    "headings": repeated("# a\n"),
    "underlines": repeated("a\n=\n"),
    "hashes": repeated("#"),
    "entities": repeated("&a"),
    "exclamations": repeated("!"),
    "table": _table,
    "columns": repeated("|a"),
    "rows": lambda size: "|a|b|\n|-|-|\n" + "|c|d|\n" * (size // 6),
    "backslashes before line breaks": repeated("\\\n"),
    "html": repeated("<!--"),
    "beginnings of tokens": repeated("ghp_"),
    "short tokens": repeated("sk-ant-a "),
    "beginnings of web tokens": repeated("eyJ"),
    "web tokens": repeated("eyJaaaaaaaa."),
    "private keys": repeated("-----BEGIN PRIVATE KEY-----"),
    "lines of a private key": lambda size: (
        "-----BEGIN PRIVATE KEY-----" + f"\\n{'a' * 24} " * (size // 27)
    ),
    "closed private keys": repeated(
        "-----BEGIN PRIVATE KEY-----" * 300 + "a1" * 99 + "-----END PRIVATE KEY-----"
    ),
    "escaped slashes": repeated("\\/"),
    "escaped letters": repeated("\\u002d"),
    "prefixes of tokens": repeated("_eyJ_sk-ant-hooks.slack.com/services/"),
    "words of a credential": repeated("aB-d5gH7 "),
    "headers": repeated("authorization: "),
    "bearers": repeated("bearer "),
    "passwords": repeated("password="),
    "password of spaces": lambda size: f"password{' ' * size}=",
    "quoted passwords": repeated('password="'),
    "users in addresses": repeated("://a:"),
}
