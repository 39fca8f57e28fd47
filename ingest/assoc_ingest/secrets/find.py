"""Finds credentials in bytes and in text: to report them, and to mask what leaves the machine.

1. JSON escapes that can occur inside a credential (`\\u002d`, `\\/`) are decoded first. All other
   text is searched as it is, however it is quoted.
2. Tokens that providers issue are found by their prefixes, at the speed of `bytes.find`.
3. Other credentials count only after a name or a header that says what they are, in an address, or
   in a line of a password file.

A report (`find`) must be right: a credential is complete and looks random. 40 MB take a second.
A mask (`find_all`) also covers text that only begins like a credential, since it may be cut off,
and values that look like words: a mask too many does no harm. So a mask covers all that a report
has.

The work is linear in the number of bytes. What is found in a line of a log depends on that line
alone.
"""

from __future__ import annotations

import binascii
import itertools
import re
from base64 import urlsafe_b64decode
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import cache
from itertools import chain
from math import log2
from string import ascii_letters, ascii_uppercase, digits
from typing import NamedTuple

from . import rules
from .rules import BY_PREFIX, NAMES, Secret, is_placeholder

LONGEST = 24 * 1024
"""The most bytes of a credential, with the name before it: a key block of 20,000 and its header."""

_HEX = frozenset("0123456789abcdefABCDEF")
_PRINTABLE = frozenset("234567")
_escape = re.compile(r"\\(?:u00|/)")
_NESTED = 8  # backslashes before an escape: JSON in JSON in JSON has seven


def find(data: bytes, *, is_log: bool) -> list[Secret]:
    """Return the credentials in the bytes of a file, in order; no two of them overlap.

    In a log, none goes beyond the end of its line.
    """
    view, candidates = _candidates(data.decode("latin-1"), is_log=is_log)
    found: list[Secret] = []
    end = 0
    # If two overlap, the one that a rule of its own describes wins.
    certain = (candidate.certain for candidate in candidates if candidate.certain is not None)
    for secret in sorted(certain, key=_order):
        if secret.start >= end:
            found.append(secret)
            end = secret.end
        elif found[-1].rule in _VAGUE and secret.rule not in _VAGUE:
            found[-1] = secret
            end = secret.end  # another one can follow inside the vague one
    return [view.placed(secret) for secret in found]


def find_all(data: bytes | str, *, is_log: bool) -> list[Secret]:
    """Return possible credentials in bytes or in a text, in order; no two of them overlap."""
    raw = data.decode("latin-1") if isinstance(data, bytes) else data
    view, candidates = _candidates(raw, is_log=is_log)
    found: list[Secret] = []
    for secret in sorted((candidate.possible for candidate in candidates), key=_order):
        if found and secret.start < found[-1].end:
            last = found[-1]
            named = secret if last.rule in _VAGUE and secret.rule not in _VAGUE else last
            found[-1] = named._replace(start=last.start, end=max(last.end, secret.end))
        else:
            found.append(secret)
    return [view.placed(secret) for secret in found]


class _Candidate(NamedTuple):
    """What looks like a credential: as far as a mask covers it, and what a report says of it."""

    possible: Secret
    certain: Secret | None
    """Lies within the possible one."""


def _candidates(raw: str, *, is_log: bool) -> tuple[_View, list[_Candidate]]:
    """Return what looks like a credential in a text without its escapes, in any order."""
    view = _View(raw, sorted(_escapes(raw)))
    text = view.text
    seen = text.encode("latin-1", "replace")  # `?` for letters beyond Latin-1
    tokens = chain(_tokens(text, seen), _web_tokens(text, seen))
    return view, [*tokens, *_keys(text, seen, is_log=is_log), *_values(text, seen)]


def find_in(pieces: Iterable[tuple[int, bytes]], *, is_log: bool) -> Iterator[Secret]:
    """Yield the credentials in a file that comes in pieces: the offset of each, and its bytes.

    A credential may begin in one piece and end in the next. Memory holds little more than one.
    """
    buffer, start, done = b"", 0, 0
    for offset, data in pieces:
        if offset != start + len(buffer):  # after lost bytes
            yield from _since(done, start, buffer, is_log=is_log)
            buffer, start, done = b"", offset, offset
        buffer += data
        is_whole = is_log and buffer.endswith(b"\n")
        cut = start + len(buffer) - (0 if is_whole else LONGEST)
        for secret in _since(done, start, buffer, is_log=is_log):
            if secret.start < cut:
                yield secret
                done = secret.end
        done = max(done, cut)
        low = max(0, (len(buffer) if is_whole else done - start - _LONGEST_NAMING))
        buffer, start = buffer[low:], start + low
    yield from _since(done, start, buffer, is_log=is_log)


def _since(done: int, start: int, buffer: bytes, *, is_log: bool) -> Iterator[Secret]:
    """Yield the credentials that begin at `done` or later, in bytes whose offset is `start`."""
    for secret in find(buffer, is_log=is_log) if buffer else ():
        if secret.start + start >= done:
            yield secret._replace(start=secret.start + start, end=secret.end + start)


_LONGEST_NAMING = 512  # bytes before a credential that say that it is one
_VAGUE = ("named", "address", "authorization", "password-file", "cut")


def _order(secret: Secret) -> tuple[int, bool, int]:
    return secret.start, secret.rule in _VAGUE, -secret.end


class _View:
    """Text without JSON escapes, and the original position of each letter."""

    def __init__(self, raw: str, escapes: Iterable[tuple[int, int, str]]) -> None:
        pieces, position = [], 0
        self._ends = [0]  # in the text: behind each escape
        self._shifts = [0]
        length = 0
        for start, end, letter in escapes:
            pieces += [raw[position:start], letter]
            length += start - position + 1
            position = end
            self._ends.append(length)
            self._shifts.append(position - length)
        pieces.append(raw[position:])
        self.text = "".join(pieces)

    def placed(self, secret: Secret) -> Secret:
        return secret._replace(start=self._raw(secret.start), end=self._raw(secret.end))

    def _raw(self, position: int) -> int:
        return position + self._shifts[bisect_right(self._ends, position) - 1]


def _escapes(raw: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the end and the meaning of each escape of a letter, in any order."""
    for match in _escape.finditer(raw):
        start = place = match.start()
        while start and place - start < _NESTED and raw[start - 1] == "\\":
            start -= 1
        if match[0] == "\\/":
            yield start, place + 2, "/"
            continue
        digits = raw[place + 4 : place + 6]
        if digits[:1] in _PRINTABLE and digits[1:] in _HEX:
            yield start, place + 6, chr(int(digits, 16))


# -- tokens of providers ---------------------------------------------------------------------------

_RULES = [rule for _, rule in sorted(BY_PREFIX.items(), key=lambda item: -len(item[0]))]
_base64 = re.compile(r"[A-Za-z0-9+/]*+").fullmatch


@cache
def _token() -> Callable[[str, int], re.Match[str] | None]:
    """Return what matches text with a prefix; `_RULES` has the rule of each group.

    To compile it takes 9 ms, and few texts need it.
    """
    return re.compile(
        "|".join(
            f"({re.escape(prefix)}{rule.letters}{{{rule.least},}}+"
            + (f"|{re.escape(prefix)}{rule.letters}{{4,}}+(?=…?\\Z))" if rule.is_cut else ")")
            for prefix, rule in sorted(BY_PREFIX.items(), key=lambda item: -len(item[0]))
        )
    ).match


def _tokens(text: str, seen: bytes) -> Iterator[_Candidate]:
    """Yield text that begins and continues like a token, except inside words."""
    end = 0
    for start in sorted(_beginnings(text, seen)):
        match = _token()(text, start) if start >= end else None
        if match is None:
            continue
        rule = _RULES[(match.lastindex or 1) - 1]
        prefix = next(prefix for prefix in rule.prefixes if match[0].startswith(prefix))
        value = match[0].rstrip(".")
        rest = value[len(prefix) :]
        is_in_word = _is_in_word(text, start)
        if rule.is_word and is_in_word:
            continue
        is_random = _is_random(rest)
        if not (rule.is_cut or is_random or _is_random(match[0])):
            continue  # the name of something
        end = match.end()
        certain = None
        if (
            is_random
            and rule.lengths[0] <= len(rest) <= rule.lengths[1]
            and ("/" in prefix or not is_in_word)
            and not _goes_on(text, start + len(value))
            and not _is_in_base64(text, start)
        ):
            certain = Secret(rule.name, rule.kind, start, start + len(value), value, prefix)
        yield _Candidate(Secret(rule.name, rule.kind, start, end, match[0], prefix), certain)


def _goes_on(text: str, end: int) -> bool:
    """Is it a longer word, which only begins like a token?"""
    behind = text[end : end + 1]
    return _is_letter(behind) or behind in ("_", "-")


def _is_letter(text: str) -> bool:
    return text.isascii() and text.isalnum()  # in Latin-1, half of a dash is a letter


def _is_in_base64(text: str, start: int) -> bool:
    """Is there so much base64 before it that it must be part of an image?"""
    if start < 60 or text[start - 1] not in "+/":
        return False
    return _base64(text[start - 60 : start]) is not None


def _web_tokens(text: str, seen: bytes) -> Iterator[_Candidate]:
    end = 0
    for begin in _web_begins.finditer(seen):
        start = begin.end() - len("eyJ")
        match = rules.jwt.match(text, start) if start >= end else None
        if match is not None:
            end = match.end()
            value = match[0].rstrip(".")
            possible = Secret("jwt", "JWT", start, end, match[0], "eyJ")
            certain = possible._replace(end=start + len(value), text=value)
            yield _Candidate(possible, certain if _is_web_token(value) else None)


def _is_web_token(value: str) -> bool:
    parts = value.split(".")
    if not (len(parts) in (3, 5) and len(parts[-1]) >= 16):
        return False
    head, body = _decoded(parts[0]), _decoded(parts[1])
    return b'"alg"' in head and b'"1234567890"' not in body  # the example in every tutorial


def _decoded(part: str) -> bytes:
    try:
        return urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        return b""


_SIGN = re.compile("[_.~-]")
_PLAIN_CLASSES = ("[A-Za-z0-9]", "[A-Za-z0-9.]", "[a-z0-9]")
_BY_SIGN: dict[str, list[tuple[int, str]]] = {}
"""Prefixes by their first sign and the two letters before it; and where that sign is."""
_WITHOUT_SIGN: dict[str, list[str]] = {}
"""The others, by their first letter: what follows it."""
_IN_CAPITALS, _IN_PLAIN_RUNS = [], []
"""Prefixes before many capitals and digits, and letters, digits and dots: such runs are few."""
for _prefix, _rule in BY_PREFIX.items():
    if (_found := _SIGN.search(_prefix)) is None:
        _count = len(_prefix) + _rule.least
        if _rule.letters == "[A-Z0-9]" and _prefix.isupper() and _count >= 20:
            _IN_CAPITALS.append(_prefix)
        elif _rule.letters in _PLAIN_CLASSES and _count >= 35 and not _rule.is_cut:
            _IN_PLAIN_RUNS.append(_prefix)
        else:
            _WITHOUT_SIGN.setdefault(_prefix[0], []).append(_prefix[1:])
    else:
        _at = _found.start()
        _BY_SIGN.setdefault(_prefix[_at - 2 : _at + 1], []).append((_at, _prefix))


def _behind(sign: str) -> str:
    """Return the expression for a sign within a prefix.

    Most signs are within words, so the letters before it are compared one by one first, then in
    pairs, and then the whole beginning of the prefixes.
    """
    stems = {prefix[:at] for ends in _BY_SIGN.values() for at, prefix in ends if prefix[at] == sign}
    pairs: dict[str, set[str]] = {}
    for stem in stems:
        pairs.setdefault(stem[-2], set()).add(stem[-1])
    letters = (sorted(pairs), sorted({stem[-1] for stem in stems}))
    looked_at = [
        "".join(f"[{''.join(one)}]" for one in letters),
        "|".join(f"{first}[{''.join(sorted(last))}]" for first, last in sorted(pairs.items())),
    ]
    whole = [
        "|".join(sorted(of_length))
        for _, of_length in itertools.groupby(sorted(stems, key=len), key=len)
    ]
    sign = re.escape(sign)
    quickly = "".join(f"(?<=(?:{stems}){sign})" for stems in looked_at)
    return f"{sign}{quickly}(?:{'|'.join(f'(?<=(?:{stems}){sign})' for stems in whole)})"


_signs = tuple(re.compile(_behind(sign)) for sign in "_.~-")
_needles = tuple(
    re.compile(f"{first}(?:{'|'.join(rests)})".encode()) for first, rests in _WITHOUT_SIGN.items()
)
_web_begins = re.compile(b"J(?<=eyJ)")


def _table_of(letters: str) -> bytes:
    """Return the table by which `translate` makes these letters `a`, and all others a space."""
    return bytes(ord("a") if chr(code) in letters else ord(" ") for code in range(256))


_RUNS = (
    (_table_of(ascii_uppercase + digits), b"a" * 20, re.compile(f"(?={'|'.join(_IN_CAPITALS)})")),
    (_table_of(ascii_letters + digits + "."), b"a" * 35,
     re.compile(f"(?={'|'.join(_IN_PLAIN_RUNS)})")),
)  # fmt: skip
_at_end = re.compile(f"(?:{'|'.join(_IN_CAPITALS)})[A-Z0-9]{{4,}}+(?=…?\\Z)")
_LONGEST_CUT = 24


def _beginnings(text: str, seen: bytes) -> set[int]:
    places = set()
    for match in chain.from_iterable(signs.finditer(text) for signs in _signs):
        end = match.end()
        for sign, prefix in _BY_SIGN[text[end - 3 : end]]:
            if text.startswith(prefix, end - 1 - sign):
                places.add(end - 1 - sign)
    for needle in _needles:
        places.update(match.start() for match in needle.finditer(seen))
    for table, run, prefixes in _RUNS:
        shape = seen.translate(table)
        start = shape.find(run)
        while start >= 0:
            end = shape.find(b" ", start + len(run))
            end = len(shape) if end < 0 else end
            places.update(match.start() for match in prefixes.finditer(text, start, end))
            start = shape.find(run, end)
    # At the end of a text, few letters are enough; more are a run.
    places.update(m.start() for m in _at_end.finditer(text, max(0, len(text) - _LONGEST_CUT)))
    return places


def _is_in_word(text: str, start: int) -> bool:
    """Is a short prefix part of a word? After an escaped line break it is not."""
    if not _is_letter(text[max(start - 1, 0) : start]):
        return False
    return text[max(start - 2, 0) : start] not in ("\\n", "\\r", "\\t", "\\b", "\\f")


# -- credentials that have a name ------------------------------------------------------------------

_LOOKED_AT = 1024  # bytes after a name: the most that each name costs
_named_by = (
    re.compile(b"p(?:ass|wd)"), re.compile(b"secret"), re.compile(b"credential"),
    re.compile(b"k(?:ey|(?<=tok)en(?!s))"),  # tokens are a count
)  # fmt: skip
_KEYS = tuple(name[:-3].encode() for name in NAMES if name.endswith("key"))
_OTHER_TOKENS = re.compile(
    r"(?:page|next|prev|continuation|sync|cursor|csrf|xsrf|cancel\w*|design|syntax)[_-]?\Z",
    re.IGNORECASE,
)
"""Text before `token` where it is not a credential."""
_key_line = re.compile(r"[A-Za-z0-9+/=]{16,}+")
_line_break = re.compile(r"\\{1,8}[nrt]")
_KEY_BEGIN = b"-----BEGIN "
_LEAST_KEY = 64  # letters of base64: an Ed25519 key has them
_LONGEST_NAME = 64
_LONGEST_HOST = 255
_BREAKS = "nrtbf"  # behind a backslash: line breaks and the like
_AROUND_A_LINE = frozenset(" \t\r\n\"'`\\<>|=,;")
_BEHIND_A_QUOTE = (",", ":", "}", "]", "")
"""JSON after the end of a text, or nothing."""
_TYPES = {
    *("str", "string", "bytes", "text", "char", "varchar", "boolean", "integer", "number"),
    *("unknown", "object", "secret", "required", "optional"),
}
_number = re.compile(r"-?[0-9][0-9.eE+-]*").fullmatch
_in_double = re.compile(r"(?:[^\"\\\n]|\\[^\n])*+").match
_quoted = re.compile(r"[^\"'`\\\n]*+").match
_unquoted = re.compile(r"[^\s\"'`\\,;&]*+", re.ASCII).match
_setting_before = re.compile(r"(?:[A-Za-z0-9_]=[^\s,;&\"']{1,30}[ ;&]|[?;&])\Z")
_setting_behind = re.compile(r"[^\s=]{1,40}=[^\s,;&\"'`\\]{1,200}[ ;&]{1,2}[A-Za-z_ ]{1,30}=").match
_of_hex = re.compile(r"[0-9a-fA-F:.\[\]]*").fullmatch


def _keys(text: str, seen: bytes, *, is_log: bool) -> Iterator[_Candidate]:
    """Yield private keys from their header to their end, or as far as they go.

    In a log, none goes beyond the end of its line.
    """
    begin, end, line_end, masked = seen.find(_KEY_BEGIN), -1, -1, 0
    while begin >= 0:
        start, begin = begin, seen.find(_KEY_BEGIN, begin + 1)
        header = rules.key_header.match(text, start)
        if header is None:
            continue
        # Both are looked for once, not once for each header before them.
        if line_end < header.end():
            line_end = _next(text, "\n", header.end()) if is_log else len(text)
        if end < header.end():
            end = _next(text, rules.KEY_END, header.end())
        behind = end + len(rules.KEY_END)
        closing, is_ended = -1, behind <= min(line_end, header.end() + rules.LONGEST_KEY)
        if is_ended:
            closing = text.find("-----", behind, min(line_end, behind + _LONGEST_NAME))
            stop = closing + 5 if closing >= 0 else behind
        else:
            lines = rules.key_lines.match(text, header.end(), line_end)
            stop = lines.end() if lines is not None else header.end()
        certain = None
        if closing >= 0 and not header.end() <= begin < end:  # else another key begins in it
            body = _key_letters(text[header.end() : end])
            if len(body) >= _LEAST_KEY and _is_random(body[:_LEAST_KEY]):
                certain = Secret("private key", "private key", start, stop, body, header[0])
        if certain is None and start < masked:
            continue
        # Or only the words are there.
        if is_ended or stop > header.end() or not text[stop : stop + 3].strip("…\n"):
            masked = stop
            value = text[start:stop]
            possible = Secret("private key", "private key", start, stop, value, header[0])
            yield _Candidate(possible, certain)


def _next(text: str, needle: str, start: int) -> int:
    place = text.find(needle, start)
    return place if place >= 0 else len(text)


def _key_letters(text: str) -> str:
    """Return the letters of a private key, however its lines are broken, numbered or indented."""
    return "".join(_key_line.findall(_line_break.sub("\n", text)))


_Found = tuple[str, str, int, int, bool]
"""A rule, a kind, the position of the value, and whether it counts even if it looks like a word."""


def _values(text: str, seen: bytes) -> Iterator[_Candidate]:
    """Yield the credentials without a prefix in a text, and in the same as bytes, in any order."""
    lower = seen.lower()
    for rule, kind, start, end, is_sure in chain(
        _named(text, lower), _in_headers(text, lower), _in_addresses(text, seen),
        _in_password_lines(text, seen),
    ):  # fmt: skip
        possible = Secret(rule, kind, start, end, text[start:end])
        value = possible.text.rstrip(".")
        certain = None
        if rule != "cut" and _is_secret_value(value) and not is_placeholder(value):
            certain = possible._replace(end=start + len(value), text=value)
        if is_sure or certain is not None:
            yield _Candidate(possible, certain)


def _named(text: str, lower: bytes) -> Iterator[_Found]:
    done: dict[bytes, int] = {}
    for match in chain.from_iterable(names.finditer(lower) for names in _named_by):
        place, name = match.start(), match[0]
        if place < done.get(name, 0):
            continue
        if name == b"ken":
            place -= len(b"to")
        elif name == b"key":
            before = lower[max(0, place - 11) : place]
            if not before.endswith(_KEYS):
                continue
            place -= max(len(key) for key in _KEYS if before.endswith(key))
        done[name] = yield from _assigned(text, place)


def _assigned(text: str, place: int) -> Generator[_Found, None, int]:
    """Yield the value that the name at this place is given; return where no name is looked for."""
    limit = place + _LOOKED_AT
    match = rules.assignment.match(text, place, limit)
    if match is not None:
        name, operator, double, in_double, quote, in_quotes, bare = match.groups()
        value = in_double or in_quotes or bare
        end = match.end()
        start = end - len(value)
        quote = double or quote
        if quote is None:
            end = start + len(bare.rstrip(".)]}"))
            if _number(text, start, end) is not None and set(operator) & set("\"'\\"):
                return 0  # behind the quoted name of JSON: not a text
            is_sure = _is_literal(text, place, name, operator, text[start:end])
        else:
            # In JSON, the quote may end the string that contains the name.
            is_sure = double is None or value.lstrip(" \t")[:1] not in _BEHIND_A_QUOTE
    else:
        low = text.rfind("--", max(0, place - 42), place)
        match = rules.option.match(text, low, limit) if low >= 0 else None
        if match is None or match.start(2) != place:
            return 0
        name, value, quote = match[2], match[3], None
        start, end = match.span(3)
        is_closing = match[1][-1] in "\"'" and value[0] in _BEHIND_A_QUOTE
        is_sure = not (value.startswith("-") or is_closing)
    is_sure = is_sure and not is_placeholder(value)
    is_other = name.lower() == "token" and _OTHER_TOKENS.search(text, max(0, place - 16), place)
    done = 0
    if is_sure and match.end() == limit:
        done = end = _end_of_value(text, limit, quote)
    yield "cut" if is_other else "named", NAMES[name.lower()], start, end, is_sure
    return done


def _end_of_value(text: str, place: int, quote: str | None) -> int:
    match = (_in_double if quote == '"' else _unquoted if quote is None else _quoted)(text, place)
    return place if match is None else match.end()


def _is_literal(text: str, place: int, name: str, operator: str, value: str) -> bool:
    """Is what is assigned without quotes a value? In source code it is the name of another thing.

    `API_KEY=hunter` of a shell is a value, `password = value` is none, `password=hunter2` is one.
    """
    if "(" in value or "[" in value or not any(map(str.isalnum, value)) or is_placeholder(value):
        return False
    digits = sum(map(str.isdigit, value))
    if len(value) >= 6 and digits and digits < len(value):
        return True
    start = place
    while start > 0 and place - start < _LONGEST_NAME and _is_of_name(text[start - 1]):
        start -= 1
    if start and text[start - 1] == "\\" and text[start] in _BREAKS:
        start += 1
    if text[start : place + len(name)].isupper() and operator.endswith("="):
        return True
    if NAMES[name.lower()] != "password" or "pass" in value.lower() or _of_code(value):
        return False
    if operator.strip() == ":":  # YAML, and what people write
        return value.lower() not in _TYPES
    around = text[max(0, place - 40) : place], text[place : place + _LOOKED_AT]
    return operator == "=" and (
        _setting_before.search(around[0]) is not None or _setting_behind(around[1]) is not None
    )


def _is_of_name(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _in_headers(text: str, lower: bytes) -> Iterator[_Found]:
    for needle in (b"authorization", b"bearer"):
        place = lower.find(needle)
        while place >= 0:
            match = rules.authorization.match(text, place, place + _LOOKED_AT)
            if match is not None:
                start, end = match.span(2)
                value, is_bare = text[start:end].rstrip(")]}"), match[1][-1] in ": "
                is_sure = len(value) >= 4 and not is_placeholder(value)
                if is_sure and end == place + _LOOKED_AT:
                    end = _end_of_value(text, end, None)
                elif is_bare:
                    end = start + len(value)
                if not (is_bare and _number(value) is not None):  # a number of JSON
                    yield "authorization", "authorization", start, end, is_sure
            place = lower.find(needle, place + len(needle))


def _in_addresses(text: str, seen: bytes) -> Iterator[_Found]:
    place = seen.find(b"://")
    while place >= 0:
        match = rules.userinfo.match(text, place)
        if match is not None:
            is_port = not match[3] and match[2].isdigit()  # at the end of a text
            is_sure = not is_port and not is_placeholder(match[2])
            yield "address" if match[3] else "cut", "password", *match.span(2), is_sure
        place = seen.find(b"://", place + 3)


def _in_password_lines(text: str, seen: bytes) -> Iterator[_Found]:
    for port in rules.password_port.finditer(seen):
        start = place = port.start()
        while start and place - start < _LONGEST_HOST and text[start - 1] not in _AROUND_A_LINE:
            start -= 1
        if text[max(start - 1, 0) : start] == "\\" and text[start] in _BREAKS:
            start += 1
        match = rules.password_line.match(text, start)
        if match is None or match.end(1) != place:
            continue
        host, database, value = match.group(1, 2, 3)
        # An address, a time and a place in a file have colons, too.
        is_other = _of_hex(match[0]) or host.isdigit() or database.isdigit()
        if not is_other:
            yield "password-file", "password", *match.span(3), not is_placeholder(value)


# -- what looks random -----------------------------------------------------------------------------

_made_up = re.compile(
    r"example|sample|placeholder|redacted|dummy|fake|your|change|planted|xxxx|00000|11111|12345"
    r"|abcde|aaaaa|deadbeef|cafebabe|foobar",
    re.IGNORECASE,
)
_weak = re.compile(
    r"pass|secret|test|admin|user|demo|token|key|default|local|qwert|hunter|letmein|login|root",
    re.IGNORECASE,
)
_value = re.compile(r"[A-Za-z0-9_+/=.~!@#$%^&*:?-]{8,400}").fullmatch
_letter_runs = re.compile(r"[a-z]{4,}+|[A-Z]{4,}+|[A-Z][a-z]{3,}+")
_of_code = re.compile(
    r"[A-Za-z_$][\w$]*+(?:(?:\.|::|->)[A-Za-z_$][\w$]*+)++\??|[A-Za-z_]++[:?].*"
).fullmatch
_uuid = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE).fullmatch
_JUDGED = 400  # letters: more say nothing new


def _is_random(text: str) -> bool:
    """Does what follows the prefix of a credential look random?"""
    text = text[:_JUDGED]
    if _made_up.search(text) is not None or not _is_mixed(text):
        return False
    return any(map(str.isdigit, text)) or not _is_wordy(text)


def _is_secret_value(text: str) -> bool:
    """Does a value that a name calls a credential look like one?

    Short ones have letters of both cases and digits or signs; long ones are no words.
    """
    if _value(text) is None or _made_up.search(text) is not None:
        return False
    if "://" in text or text[0] in "/.~#@&" or _of_code(text) or _uuid(text):
        return False
    digits = sum(map(str.isdigit, text))
    if not digits or digits == len(text) or not _is_mixed(text) or _is_wordy(text):
        return False
    if len(text) >= 16:
        return digits >= 2 and _turns(text) * 5 >= len(text)
    signs = any(not letter.isalnum() for letter in text)
    cases = any(map(str.islower, text)) + any(map(str.isupper, text))
    return cases + signs >= 2 and _turns(text) >= 3 and _weak.search(text) is None


def _is_mixed(text: str) -> bool:
    """Has it as many different letters as if drawn at random, and are they in no order?"""
    count = len(text)
    if count < 8:
        return False
    entropy = -sum(n / count * log2(n / count) for n in Counter(text).values())
    steps = sum(ord(b) - ord(a) == 1 for a, b in itertools.pairwise(text))
    return entropy >= min(3.0, 0.7 * log2(count)) and steps * 4 <= count


def _turns(text: str) -> int:
    """Return how often the class of letters changes."""
    classes = [
        "d" if c.isdigit() else "l" if c.islower() else "u" if c.isupper() else "s" for c in text
    ]
    return sum(a != b for a, b in itertools.pairwise(classes))


def _is_wordy(text: str) -> bool:
    """Is half of it runs of letters with as many vowels as words have?"""
    words = 0
    for run in _letter_runs.findall(text):
        vowels = sum(letter in "aeiouAEIOU" for letter in run)
        words += len(run) if 0.25 * len(run) <= vowels <= 0.6 * len(run) else 0
    return words * 2 >= len(text)
