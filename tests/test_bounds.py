"""Nothing that looks into stored text is more than linear, however hostile the text is.

Each expression and each function gets a long text of what is worst for it. Steps of an expression
cannot be counted, so work is bounded instead: a child that uses more of a processor than a
linear function ever needs is ended by the system.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import told_by_sources
from tests.support.child import is_done_with, not_done_with
from tests.support.hostile import TEXTS
from tests.support.writing import SESSION, assistant, call, chain, dumps, result, user

import assoc_ingest
from assoc_ingest import tags, terminal
from assoc_ingest.ask import conversation, export, fix, matches, query, shell
from assoc_ingest.errors import UsageError
from assoc_ingest.secrets.find import find
from assoc_ingest.secrets.forget import ForgottenSecrets, forgotten_secret
from assoc_ingest.secrets.mask import redact, redact_bytes
from assoc_ingest.secrets.rules import Secret
from assoc_ingest.source import Claim, Line
from assoc_ingest.sources import SOURCES
from assoc_ingest.sources.claude import stores
from assoc_ingest.sources.claude import transcript as user_lines
from assoc_ingest.sources.reader import complete_prefix, pieces, whole_value
from assoc_ingest.web import frame

LONG = 300_000  # characters; with its square, even a plain comparison needs half a minute
SHORT = 30_000
SECONDS = 4  # of a processor, for one long text; the slowest needs one on a quiet machine
SECONDS_OF_ALL = 15  # a function with all short texts; Markdown needs five
SECONDS_OF_EXPRESSIONS = 4  # an expression with all short texts; the slowest needs two

PACKAGE = Path(assoc_ingest.__file__).parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and its limits"),
]


def lacking(names: object) -> str:
    return (
        f"{names}: an expression that no test has looked at. Add it to EXPRESSIONS with the texts "
        "of tests/support/hostile.py that are worst for it (that of a source: to `expressions` in "
        "tests/sources/<name>/source.json), or a new one there; if it is "
        "quadratic, take apart what repeats, make it possessive, or scan the text with str.find."
    )


# -- regular expressions -------------------------------------------------------------------------

OURS = {
    # Never see stored text: our own query files, addresses of our own pages, mount points.
    "sql._quoted_or_parameter", "web.pages._optional", "web.reports._parameter",
    "fleet.search._token", "web.reports._default", "upkeep.verify._SYNCED",
    # Only the views of our own schema.
    "mcp.index._create_view", "fleet.server._creation", "fleet.server._quote",
    # Only the columns of our own schema, and names of files, which systems bound.
    "upkeep.recover._PART", "upkeep.recover._PARTS", "upkeep.restore._no_name_on_windows",
}  # fmt: skip
EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "terminal._acts_in_quotes_of_windows": ("quotes", "backslashes"),
    "terminal._hostile_or_colour": ("controls", "colours", "zero-width letters"),
    "terminal._plain_on_windows": ("letters", "backslashes"),
    "sql._text_or_comment": ("quotes", "dashes", "letters"),
    "fleet.server._code_name": ("digits", "dashes", "letters"),
    "fleet.deletion._count": ("digits", "letters"),
    "fleet.devices._label": ("letters", "dashes", "digits"),
    "fleet.devices._size": ("digits", "spaces", "letters"),
    "fleet.server._time": ("digits", "dashes", "colons"),
    "derive.responses._totals_of": ("digits", "colons", "letters"),
    "files.stores._word": ("words", "letters", "underscores"),
    "store.sql_child._fts_words": ("quotes", "spaces", "words"),
    "web.serve._parameter": ("colons", "letters"),
    "source._is_key": ("digits", "letters", "dashes"),
    "files.exclusions._UUID": ("digits", "dashes"),
    "web.html._placeholder": ("digits", "opened objects"),
    "web.html._tag": ("less-than signs", "quotes", "odd escapes"),
    "web.html._slash": ("slashes", "letters"),
    "edits._is_telling": ("dashes", "letters", "spaces"),
    "ask.fix._dressing": ("colours", "one tag that never ends", "underscores"),
    "ask.fix._is_test": ("dots", "letters", "underscores"),
    "ask.shell._needs_quotes": ("letters", "spaces", "commands of a shell"),
    "mcp.recall._answers": ("quotes", "letters"),
    "mcp.recall._patched": ("letters", "lines"),
    "terminal._narrow_runs": ("spaces", "words", "letters"),
    "remotes._host": ("letters", "dots", "dashes"),
    "remotes._part": ("letters", "dots", "dashes"),
    "remotes._of_this_machine": ("digits", "dots"),
    "remotes._port": ("digits", "colons"),
    "remotes._for_programs": ("slashes", "letters"),
    "derive.repositories._first_commit": ("digits", "letters"),
    "derive.repositories._printed_remote": ("lines", "letters", "spaces"),
    "derive.repositories._only_asks": ("spaces", "letters"),
    "derive.repositories._shows": ("spaces", "letters"),
    "derive.repositories._transfers": ("spaces", "letters"),
    "derive.repositories._elsewhere": ("spaces", "dashes", "commands of a shell"),
    "derive.repositories._border": ("spaces", "lines", "commands of a shell"),
    "derive.repositories._moved": ("quotes", "letters", "spaces"),
    "ask.git_history._azure_merge": ("digits",),
    "ask.git_history._bitbucket_merge": ("letters", "spaces"),
    "ask.git_history._branch_merged": ("letters", "quotes"),
    "ask.git_history._merge_of": ("slashes", "letters", "digits"),
    "ask.git_history._merge_request": ("lines", "letters"),
    "ask.git_history._remote": ("slashes", "colons", "letters", "addresses"),
    "ask.git_history._squash_of": ("spaces", "letters", "digits"),
    "ask.hits._json_break": ("backslashes", "line starts"),
    "ask.hits._json_frame": ("braces", "opened objects", "quotes"),
    "ask.blame._address": ("slashes", "letters", "addresses"),
    "ask.blame._creating": ("letters", "dashes", "underscores"),
    "ask.blame._escape": ("backslashes", "odd escapes"),
    "sync.git._escape": ("backslashes", "odd escapes", "digits"),
    "sync.git._commit_head": ("digits", "letters"),
    "sync.git._hunk": ("digits", "letters"),
    "ask.blame._hash": ("digits", "letters"),
    "ask.blame._made": ("opened commits", "spaces", "digits"),
    "ask.blame._making": ("letters", "dashes"),
    "ask.blame._named": ("letters", "spaces", "digits"),
    "ask.blame._plain": ("digits",),
    "ask.blame._replaying": ("letters", "dashes"),
    "ask.blame._short_name": ("letters", "dots", "hashes"),
    "ask.fix._quoted": ("quotes", "back quotes", "letters"),
    "ask.fix._quoting": ("letters", "spaces", "digits", "dots"),
    "ask.fix._stating": ("letters", "spaces", "digits", "dots", "colons"),
    "ask.fix._summing": ("letters", "spaces"),
    "ask.fix._telling": ("letters", "spaces"),
    "ask.fix._word": ("letters", "words", "digits"),
    "ask.fix._wrapping": ("letters", "spaces", "digits", "back quotes"),
    "ask.shell._document": ("less-than signs", "spaces", "dashes"),
    "ask.shell._in_quotes": ("letters", "quotes"),
    "ask.shell._plain": ("letters", "spaces"),
    "ask.shell._redirection": ("less-than signs", "digits"),
    "ask.shell._setting": ("letters", "underscores"),
    "ask.shell._version": ("letters", "digits", "dots"),
    "ask.export._not_of_name": ("dashes", "wide letters"),
    "ask.export._active": ("stars", "hashes"),
    "ask.export._destination": ("letters", "dots"),
    "ask.export._fences": ("back quotes", "growing back quotes"),
    "ask.export._info": ("letters", "dots"),
    "ask.export._line_start": ("spaces", "digits", "blank lines"),
    "ask.export._special": ("back quotes", "less-than signs"),
    "ask.export._tag_start": ("less-than signs",),
    "ask.export._ticks": ("back quotes", "growing back quotes"),
    "secrets.find._letter_runs": ("letters", "names"),
    "secrets.find._made_up": ("letters", "digits"),
    "secrets.find._of_code": ("dots", "letters", "path", "colons"),
    "secrets.find._uuid": ("digits", "dashes"),
    "ask.query._last": ("letters", "spaces", "words"),
    "secrets.find._value": ("letters", "dots"),
    "secrets.find._weak": ("letters", "passwords"),
    "secrets.rules.assignment": (
        "passwords", "password of spaces", "quoted passwords", "escaped quotes", "letters",
    ),
    "secrets.rules.authorization": ("headers", "bearers", "spaces"),
    "secrets.rules.jwt": ("beginnings of web tokens", "web tokens", "dots"),
    "secrets.rules.key_header": ("private keys", "dashes"),
    "secrets.rules.key_lines": (
        "lines of a private key", "letters", "spaces", "odd escapes",
    ),
    "secrets.rules.option": ("dashes", "passwords", "password of spaces"),
    "secrets.rules.placeholder": ("letters", "stars", "dots"),
    "secrets.rules.password_line": ("colons", "path", "digits", "letters", "backslashes"),
    "secrets.rules.password_port": ("colons", "digits", "letters"),
    "secrets.mask._quote": ("quotes", "backslashes", "escaped quotes"),
    "secrets.mask._letters_of_key": ("letters", "digits"),
    "secrets.find._escape": ("backslashes", "escaped slashes", "escaped letters"),
    "secrets.find._needles": ("letters", "beginnings of tokens"),
    "secrets.find._named_by": ("passwords", "letters", "bearers"),
    "secrets.find._web_begins": ("beginnings of web tokens", "web tokens"),
    "secrets.find._SIGN": ("dots", "letters"),
    "secrets.find._at_end": ("letters", "digits"),
    "secrets.find._signs": ("dots", "underscores", "beginnings of tokens"),
    "secrets.find._number": ("digits", "dots"),
    "secrets.find._in_double": ("quoted passwords", "backslashes", "escaped quotes"),
    "secrets.find._quoted": ("quoted passwords", "letters"),
    "secrets.find._unquoted": ("letters", "spaces"),
    "secrets.find._setting_before": ("passwords", "letters"),
    "secrets.find._setting_behind": ("passwords", "letters", "spaces"),
    "secrets.find._of_hex": ("digits", "colons", "dots"),
    "secrets.rules.userinfo": ("users in addresses", "addresses", "slashes"),
    "secrets.forget._run": ("letters", "digits", "dashes"),
    "upkeep.forget._ends": ("quotes", "letters", "colons"),
    "secrets.find._token": ("beginnings of tokens", "short tokens", "letters"),
    "secrets.find._base64": ("letters", "slashes"),
    "secrets.find._key_line": ("letters", "digits"),
    "secrets.find._line_break": ("backslashes", "odd escapes"),
    "secrets.find._OTHER_TOKENS": ("letters", "names"),
    "derive.subagents._wrapped": (
        "ends of messages", "messages", "spaces", "spaces in a message",
    ),
    "ask.matches.MARK": ("marks", "pairs of marks"),
    "ask.times._ago": ("digits", "spaces"),
    "ask.times._date": ("digits", "dashes"),
    "ask.times._long_ago": ("digits", "spaces"),
    "ask.times._moment": ("digits", "dashes"),
    "questions.fit._plain": ("letters", "dots"),
    "mcp.server._option": ("dashes", "letters"),
    "paths._in_repository": ("letters", "worktrees", "lines"),
    "paths._named_after_drive": ("dashes", "letters"),
    "paths._windows_path": ("backslashes", "letters"),
    "sources.chat_reader._patched": ("lines", "patches", "letters of a patch"),
    "fields._cjk": ("wide letters", "surrogates"),
    "fields._formatting": ("zero-width letters", "surrogates"),
    "fields._radical": ("surrogates", "wide letters"),
    "sources.reader._blanks": ("spaces",),
    "sources.reader._uuid": ("digits", "dashes"),
    "sources.reader._blanks_before": ("spaces",),
    "sources.reader._leading": ("spaces", "surrogates"),
    "sources.reader._lone_surrogate": ("surrogates",),
    "files.walk._ambiguous": ("backslashes", "odd escapes"),
    "files.walk._escape": ("backslashes", "odd escapes"),
    "tags._tag": (
        "less-than signs", "tags that never end", "one tag that never ends", "names", "messages",
        "attributes that never end", "quotes that never end", "attributes between tags",
        "spaces in a message", "messages from",
    ),
    "tags._attribute": ("letters", "dashes", "quotes that never end", "attributes that never end"),
    "tags._cut_off": ("ellipses", "letters"),
    "tags._blank": ("spaces", "blank lines"),
    "terminal._hostile": ("controls", "zero-width letters"),
    "terminal._colour_sequence": ("colours", "controls"),
    "terminal._runs": ("spaces", "words", "wide letters", "combining marks"),
    "ask.conversation.TOKEN": ("words", "letters", "underscores"),
    "ask.query.TOKEN": ("words", "letters", "underscores"),
    "ask.query._term": ("quotes", "words", "letters", "spaces"),
    "ask.query._quoted_or_told": ("quotes", "words", "letters", "spaces"),
    "fields._unbindable": ("surrogates",),
    "fields.INVISIBLE_RUN": ("zero-width letters", "words"),
    "web.frame._time": ("digits", "dashes"),
    "web.frame._address": ("addresses", "slashes"),
    "web.frame._number": ("digits", "dashes"),
    "web.serve._host": ("brackets", "digits"),
    "web.download._not_of_name": ("dashes", "wide letters"),
    "web.address._place": ("digits", "dots"),
    "fields._stored_form": ("digits", "dashes"),
    **{k: texts for told in told_by_sources("expressions").values() for k, texts in told.items()},
}  # fmt: skip
"""Each expression with the texts that are worst for it; a source tells those of its own."""
MADE = {
    # Functions that make or use an expression of their own, and why that is no more than linear.
    "files.exclusions.log_without": "one letter after the other",
    "derive.projects._describe": "one separator after the other",
    "sources.claude.stores._todos": "of fixed length",
    "sources.claude.stores.list_name": "of fixed length",
    "sources.claude.tools._output_file": "one separator after the other",
    "upkeep.verify.file_system": "mount points, no stored text",
    "fields._cjk": "among the expressions above",
    "secrets.find._behind": "among the expressions above",
    "secrets.find._token": "among the expressions above",
    "terminal._runs": "among the expressions above",
    "ask.matches._pattern": "among the functions below",
    "ask.matches.substrings_in": "among the functions below",
}


def expressions() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Yield every expression that a module of ours holds, as it looks at a text.

    One that is not bound to one of its methods may be used with any of them.
    """
    for found in pkgutil.walk_packages(assoc_ingest.__path__, "assoc_ingest."):
        module = importlib.import_module(found.name)
        for name, held in vars(module).items():
            value = held() if _makes_an_expression(held) else held
            if (
                isinstance(value, tuple)
                and value
                and all(isinstance(one, re.Pattern) for one in value)
            ):
                value = re.compile("|".join(_as_text(one) for one in value))
            method = None if isinstance(value, re.Pattern) else value
            pattern = value if method is None else getattr(value, "__self__", None)
            if isinstance(pattern, re.Pattern):
                look = partial(_look_with, pattern, method)
                yield f"{found.name.removeprefix('assoc_ingest.')}.{name}", look


def _as_text(pattern: re.Pattern[Any]) -> str:
    text = pattern.pattern
    return text.decode() if isinstance(text, bytes) else str(text)


_EXPRESSIONS = ("re.Pattern", "Callable[[str, int], re.Match")
"""The types of expressions, and of the method of one that matches at a place."""


def _makes_an_expression(value: object) -> bool:
    """Is it a function that compiles an expression when it is needed first?"""
    result = getattr(value, "__annotations__", {}).get("return", "")
    return hasattr(value, "cache_info") and str(result).startswith(_EXPRESSIONS)


def _look_at(function: Callable[[str], object], text: str) -> object:
    return function(TEXTS[text](LONG))


def _look_at_all(function: Callable[[str], object], texts: list[str]) -> None:
    for text in texts:
        function(text)


def _look_with(pattern: re.Pattern[Any], method: Callable[[Any], object] | None, text: str) -> None:
    given: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    if method is not None:
        method(given)
    else:
        pattern.sub(given[:0], given)
        pattern.fullmatch(given)


def test_every_expression_has_a_worst_text() -> None:
    known = dict(expressions())
    new = known.keys() - EXPRESSIONS.keys() - OURS
    assert not new, lacking(new)
    assert known.keys() == EXPRESSIONS.keys() | OURS, "an expression that is no longer there"


def test_no_expression_is_made_elsewhere() -> None:
    made = set()
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef):
                calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
                of_modules = (call.value for call in calls if isinstance(call, ast.Attribute))
                if any(isinstance(of, ast.Name) and of.id == "re" for of in of_modules):
                    made.add(f"{module}.{function.name}")
    assert made == set(MADE), lacking(made - set(MADE))


def test_every_expression_is_linear_in_what_is_worst_for_it() -> None:
    looks = {
        (name, text): partial(_look_at, function, text)
        for name, function in expressions()
        for text in EXPRESSIONS.get(name, ())
    }
    assert not_done_with(SECONDS, looks) is None


def test_every_expression_is_linear_in_every_text() -> None:
    texts = [make(SHORT) for make in TEXTS.values()]
    looks = {
        name: partial(_look_at_all, function, texts)
        for name, function in expressions()
        if name not in OURS
    }
    assert not_done_with(SECONDS_OF_EXPRESSIONS, looks) is None


# -- functions -----------------------------------------------------------------------------------

CLAIM = Claim("claude", "transcript", session_key=SESSION, project_key="-srv-demo")
EXCLUDED = ForgottenSecrets.of(
    [forgotten_secret(Secret("named", "secret", 0, 9, "aB-d5gH7-"), b"salt")]
)
WORDS = query.parse('"a a" a* b "a b" aa names').words


def raw_query(text: str) -> object:
    try:
        return query.parse_raw(text)
    except UsageError:
        return None


def parsed(data: bytes) -> int:
    """Read one line of a transcript; return how much its records hold."""
    return len(repr(SOURCES["claude"].parse(CLAIM, [Line(0, data)])))


def peers(text: str) -> bytes:
    """Many messages between sessions, and one long text that the line says one of them has."""
    messages = '<cross-session-message from="a">x</cross-session-message>' * (len(text) // 120)
    origin = {"kind": "peer", "body": "b" * (len(text) // 2), "msg_id": "m" * (len(text) // 4)}
    return dumps(user(messages, origin=origin))


def many(count: int, block: object) -> list[object]:
    return [block] * count


LINES: dict[str, tuple[Callable[[str], bytes], str]] = {
    "a prompt": (lambda text: dumps(user(text)), "messages"),
    "reminders before a prompt": (lambda text: dumps(user(text)), "reminders"),
    "a result": (lambda text: dumps(user([result("a", text)])), "agents"),
    "a notification": (
        lambda text: dumps({"type": "queue-operation", "operation": "enqueue", "content": text}),
        "tasks",
    ),
    "a command": (
        lambda text: dumps(chain("system", "s", None, 1, subtype="local_command", content=text)),
        "elements",
    ),
    "messages of a peer": (peers, "letters"),
    "results without ids": (
        lambda text: dumps(user(many(len(text) // 23, {"type": "tool_result"}))), "letters",
    ),
    "blocks of the wrong type": (
        lambda text: dumps(user(many(len(text) // 23, {"type": "text", "text": 1}))), "letters",
    ),
    "integers that only another decoder reads": (
        lambda text: dumps(assistant([call(f"t{n}", a=2**70) for n in range(len(text) // 90)])),
        "letters",
    ),
    "a long id and many blocks": (
        lambda text: dumps(user(many(len(text) // 8, "x"), "u" * (len(text) // 2))), "letters",
    ),
    "snapshots of nothing": (
        lambda text: dumps(
            {"type": "file-history-snapshot", "messageId": "m",
             "snapshot": {"trackedFileBackups": dict.fromkeys(map(str, range(len(text) // 10)))}}
        ),
        "letters",
    ),
    "objects one behind the other": (str.encode, "empty objects"),
    "objects that never end": (str.encode, "opened objects"),
    "braces": (str.encode, "braces"),
    "brackets": (str.encode, "nested lists"),
    "half an emoji in each of many objects": (
        lambda text: b'{"a":"\\ud83d"}' * (len(text) // 14), "letters",
    ),
    "bytes that are no text": (lambda text: b'{"a":"\xff\xfe"}' * (len(text) // 10), "letters"),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_reading_a_line_costs_what_it_is_long(name: str) -> None:
    make, text = LINES[name]
    data = make(TEXTS[text](LONG))
    assert is_done_with(SECONDS, lambda: parsed(data))


@pytest.mark.parametrize("name", LINES)
def test_the_records_of_a_line_are_as_large_as_the_line(name: str) -> None:
    make, text = LINES[name]
    small, large = (make(TEXTS[text](size)) for size in (20_000, 40_000))
    assert parsed(large) < 2.3 * parsed(small) + 20_000


FUNCTIONS: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "typed": (
        lambda text: conversation.typed("command", text), ("commands", "elements", "letters"),
    ),
    "a notification heard": (
        lambda text: conversation.heard("task_notification", text),
        ("summaries", "task of spaces", "tags that never end"),
    ),
    "a message heard": (
        lambda text: conversation.heard("agent_message", text), ("messages", "messages from"),
    ),
    "untagged": (
        conversation.untagged,
        ("opening tags", "elements", "different elements", "messages in turn"),
    ),
    "tags.without": (tags.without, ("opening tags", "tags that never end", "names", "ellipses")),
    "tags.inside": (lambda text: tags.inside(text, "task-id"), ("tasks", "task of spaces")),
    "messages received": (
        lambda text: list(stores.received(text, {}, None)),
        ("messages", "closed messages", "messages in turn", "spaces in a message"),
    ),
    "beside a prompt": (user_lines.is_beside, ("reminders", "opened reminders", "spaces")),
    "masked": (
        redact,
        ("beginnings of tokens", "short tokens", "beginnings of web tokens", "web tokens",
         "private keys", "lines of a private key", "headers", "bearers", "passwords",
         "password of spaces", "quoted passwords", "users in addresses", "letters",
         "opened objects", "nested lists", "quotes", "digits"),
    ),
    "credentials": (
        lambda text: find(text.encode("utf-8", "replace"), is_log=True),
        ("beginnings of tokens", "short tokens", "beginnings of web tokens", "web tokens",
         "private keys", "lines of a private key", "closed private keys", "headers", "bearers",
         "passwords", "password of spaces", "quoted passwords", "users in addresses", "letters",
         "escaped slashes", "escaped letters", "backslashes", "prefixes of tokens"),
    ),
    "forgotten credentials": (
        lambda text: EXCLUDED.without(text.encode("utf-8", "replace"), is_log=True),
        ("letters", "digits", "words", "line starts", "words of a credential"),
    ),
    "prose in Markdown": (
        lambda text: export.prose(text, 2), ("letters", "back quotes", "columns", "table"),
    ),
    "a quotation in Markdown": (export.quoted, ("stars", "lines", "back quotes", "digits")),
    "code in Markdown": (
        export.code, ("back quotes", "growing back quotes", "letters"),
    ),
    "commands": (
        lambda text: (shell.likeness(text, f"{text}x"), shell.is_retry(text, f"{text} x")),
        ("letters", "words", "lines", "quotes", "back quotes", "backslashes", "less-than signs",
         "brackets", "columns", "dashes", "commands of a shell", "shells in shells"),
    ),
    "lines of an error": (
        fix.telling_lines, ("letters", "lines", "words", "colons", "digits", "spaces", "quotes"),
    ),
    "marks": (matches.plain, ("marks", "pairs of marks")),
    "a raw query": (raw_query, ("words", "quotes", "colons")),
    "a query": (query.parse, ("words", "quotes", "wide letters")),
    "places of words": (
        lambda text: matches.around(text, matches.Places(WORDS).find(text)),
        ("words", "numbered words", "backslashes", "odd escapes", "line starts", "underscores",
         "combining letters", "names", "zero-width letters", "words of invisible letters"),
    ),
    "places of letters": (
        lambda text: matches.around(text, matches.substrings_in(text, ["字字字", "字"])),
        ("wide letters", "zero-width letters"),
    ),
    "wrapped": (
        lambda text: list(terminal.wrap(terminal.readable(text), 80)),
        ("letters", "spaces", "surrogates", "combining letters", "wide letters"),
    ),
    "cut": (
        lambda text: terminal.cut(terminal.one_line(text), 80),
        ("spaces", "combining marks", "joined emoji", "colours"),
    ),
    "a table": (
        lambda text: list(terminal.table(["a", "b"], [(text, text[1:])], 100)),
        ("letters", "path", "surrogates", "combining marks"),
    ),
    "JSON on a terminal": (terminal.safe_json, ("controls", "zero-width letters")),
    "a cell": (
        lambda text: frame.cell({}, f"http://{text}", "url", None, "/"), ("letters", "addresses"),
    ),
    "a whole value": (lambda text: whole_value(text.encode()), ("nested lists", "digits")),
    "a tail": (
        lambda text: complete_prefix(text.encode()), ("empty objects", "opened objects", "braces"),
    ),
    "pieces of a line": (
        lambda text: list(pieces(Line(0, text.encode()), bool)),
        ("empty objects", "opened objects", "braces", "nested lists", "surrogates"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_looks_into_text_is_linear(name: str) -> None:
    function, worst = FUNCTIONS[name]
    assert (
        not_done_with(SECONDS, {text: partial(_look_at, function, text) for text in worst}) is None
    )


def test_the_headers_of_many_keys_in_a_long_line_are_not_searched_from_each_to_its_end() -> None:
    line = TEXTS["private keys"](4_000_000).encode()  # less shows nothing
    assert is_done_with(SECONDS, lambda: redact_bytes(line, is_log=True))


def test_every_function_is_linear_in_every_text() -> None:
    texts = [make(SHORT) for make in TEXTS.values()]
    looks = {
        name: partial(_look_at_all, function, texts) for name, (function, _) in FUNCTIONS.items()
    }
    assert not_done_with(SECONDS_OF_ALL, looks) is None


def test_the_bound_is_one_that_a_quadratic_expression_meets() -> None:
    """What this file relies on: the child is ended, and the test told."""
    quadratic = re.compile(r"<a>(.*?)</a>")
    text = TEXTS["opening tags"](LONG)
    looks = {"fast": str, "slow": lambda: quadratic.findall(text), "behind": str}
    assert not_done_with(1, looks) == "slow"
