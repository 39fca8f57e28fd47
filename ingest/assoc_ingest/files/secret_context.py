"""Credentials that only their surroundings show: a key block, a header, an address, a name.

Every expression is linear in the text: each repetition has a limit or is possessive, so a place
that fails is looked at no further than that.
"""

from __future__ import annotations

import re

from .secret_rules import NAMES

# Behind an escaped line break, too: output of tools is often JSON text.
jwt = re.compile(
    r"(?:(?<![\w-])|(?<=\\[nrt]))eyJ[\w-]{8,}+\.(?:[\w-]{8,}+(?:\.[\w-]*+){0,3}|[\w-]*+(?=…?\Z))",
    re.ASCII,
)
key_header = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
key_lines = re.compile(r"(?:(?:\\[nrt]|[\s\"'>|+,]){0,40}+[A-Za-z0-9+/=]{24,}+)*+")
KEY_END = "-----END"
LONGEST_KEY = 20_000
authorization = re.compile(
    r"((?:authorization[\"'\\]{0,9}\s{0,8}[:=]\s{0,8}[\"'\\]{0,9}(?:[a-z]{2,12}[ \t]{1,8})?"
    r"|\bbearer[ \t]{1,8}(?=[^\s\"'\\]{20})))"
    r"([^\s\"'\\,;`]{6,}+)",
    re.IGNORECASE,
)
userinfo = re.compile(r"(://[^\s/?#:@\"'<>\\]{0,100}:)([^\s/?#@\"'<>\\]{1,200})(@|(?=…?\Z))")
assignment = re.compile(
    rf"({'|'.join(NAMES)})"
    r"((?:_(?:prod|production|dev|test|staging|live|old|new|\d{1,3}))?"
    r"[\"'\\]{0,9}[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8})"
    # In quotes that are themselves in a quoted text, a backslash ends the value.
    r"(?:(\")((?:[^\"\\\n]|\\[^\n]){4,}+)|(['`]|\\{1,7}[\"'])([^\"'`\\\n]{4,}+)"
    r"|([^\s\"'`\\,;&]{4,}+))",
    re.IGNORECASE,
)
option = re.compile(
    rf"(--[a-z0-9-]{{0,40}}?({'|'.join(NAMES)})[ \t]{{1,4}}[\"']?)([^\s\"'`\\]{{4,}}+)",
    re.IGNORECASE,
)
placeholder = re.compile(
    r"[$<{%*\[(].*|[*x.•…]+|(?:true|false|null|none|undefined|nil)|(?:process|os|env|config)\..*",
    re.IGNORECASE | re.DOTALL,
)


def is_placeholder(value: str) -> bool:
    """Does a value only stand for a credential: a variable, stars, `null`?"""
    return placeholder.fullmatch(value) is not None
