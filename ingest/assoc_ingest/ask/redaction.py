"""Masks credentials in stored text: `[redacted: GitHub token]`.

What providers issue is recognised by its prefix; the rest by what surrounds it: a private key
block, an `Authorization` header, the password in an address, an assignment to a name such as
`API_KEY` or `password`. Nothing of the value is kept, not even its end. This is the best that can
be done with patterns, and no proof: a password in a sentence looks like any other word.

The patterns are our own. detect-secrets knows most of these tokens, but it is made to tell a person
about lines of code: it has no rule for `sk-ant-` and `sk-proj-`, of a GitHub token it returns the
prefix alone, its entropy rules take ordinary words for secrets, and a line of a transcript takes it
milliseconds.

Every pattern is linear in the text: a prefix is followed by one class of characters, so a place
that fails is looked at no further than the shortest token, and all other repetitions have a limit.
"""

from __future__ import annotations

import json
import re
from collections import Counter

_TOKENS: dict[str, tuple[tuple[str, ...], str, int]] = {
    # Kind: what it begins with, what characters follow, and how many of them at least.
    "Anthropic API key": (("sk-ant-",), "[A-Za-z0-9_-]", 16),
    "OpenAI API key": (("sk-proj-", "sk-svcacct-", "sk-admin-"), "[A-Za-z0-9_-]", 16),
    "OpenRouter API key": (("sk-or-v1-",), "[A-Za-z0-9]", 16),
    "API key": (("sk-",), "[A-Za-z0-9]", 20),
    "Stripe key": (
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"), "[A-Za-z0-9]", 12,
    ),
    "AWS access key": (("AKIA", "ASIA"), "[A-Z0-9]", 16),
    "GitHub token": (
        ("ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_"), "[A-Za-z0-9_]", 16,
    ),
    "GitLab token": (
        ("glpat-", "glptt-", "glrt-", "gldt-", "glcbt-", "glft-", "glsoat-", "glagent-", "glimt-"),
        "[A-Za-z0-9_.-]", 16,
    ),
    "Slack token": (
        ("xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
        "[A-Za-z0-9-]", 12,
    ),
    "Slack webhook": (("hooks.slack.com/services/",), "[A-Za-z0-9/]", 12),
    "Google API key": (("AIza",), "[A-Za-z0-9_-]", 30),
    "Google token": (("ya29.", "GOCSPX-"), "[A-Za-z0-9_-]", 16),
    "npm token": (("npm_",), "[A-Za-z0-9]", 30),
    "PyPI token": (("pypi-AgE",), "[A-Za-z0-9_-]", 16),
    "Hugging Face token": (("hf_",), "[A-Za-z0-9]", 20),
    "SendGrid API key": (("SG.",), "[A-Za-z0-9_.-]", 40),
    "DigitalOcean token": (("dop_v1_", "doo_v1_", "dor_v1_"), "[0-9a-f]", 32),
}  # fmt: skip
_KIND_OF = {prefix: kind for kind, (prefixes, _, _) in _TOKENS.items() for prefix in prefixes}
_AMBIGUOUS = ("sk-", "AKIA", "ASIA", "hf_", "SG.")  # the ends of words: `disk-`, `half_`

# A title or a target is cut at some length: what is left of a token at its end is masked, too.
_token = re.compile(
    "|".join(
        f"(?:{'|'.join(map(re.escape, prefixes))})"
        f"(?:{letters}{{{least},}}+|{letters}{{4,}}+(?=…?\\Z))"
        for prefixes, letters, least in _TOKENS.values()
    )
)
# Behind an escaped line break, too: output of tools is often JSON text.
_jwt = re.compile(
    r"(?:(?<![\w-])|(?<=\\[nrt]))eyJ[\w-]{8,}+\.(?:[\w-]{8,}+(?:\.[\w-]*+){0,3}|[\w-]*+(?=…?\Z))"
)
_key_header = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_key_lines = re.compile(r"(?:(?:\\[nrt]|[\s\"'>|+,]){0,40}+[A-Za-z0-9+/=]{24,}+)*+")
_KEY_END = "-----END"
_LONGEST_KEY = 20_000
_authorization = re.compile(
    r"((?:authorization[\"'\\]{0,3}\s{0,8}[:=]\s{0,8}[\"'\\]{0,3}(?:[a-z]{2,12}[ \t]{1,8})?"
    r"|\bbearer[ \t]{1,8}(?=[^\s\"'\\]{20})))"
    r"([^\s\"'\\,;`]{6,}+)",
    re.IGNORECASE,
)
_userinfo = re.compile(r"(://[^\s/?#:@\"'<>\\]{0,100}:)([^\s/?#@\"'<>\\]{1,200})(@|(?=…?\Z))")
_NAMES = {
    "password": "password", "passwd": "password", "passphrase": "password", "pwd": "password",
    "secret": "secret", "token": "token", "apikey": "API key", "api_key": "API key",
    "api-key": "API key", "accesskey": "access key", "access_key": "access key",
    "access-key": "access key", "accountkey": "access key", "privatekey": "private key",
    "private_key": "private key", "private-key": "private key", "encryption_key": "secret",
    "signing_key": "secret", "credentials": "secret",
}  # fmt: skip
"""Ends of names whose value is a credential, and how that is called."""

_assignment = re.compile(
    rf"({'|'.join(_NAMES)})"
    r"((?:_(?:prod|production|dev|test|staging|live|old|new|\d{1,3}))?"
    r"[\"'\\]{0,3}[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8})"
    # In quotes that are themselves in a quoted text, a backslash ends the value.
    r"(?:(\")((?:[^\"\\\n]|\\[^\n]){4,}+)|(['`]|\\[\"'])([^\"'`\\\n]{4,}+)|([^\s\"'`\\,;&]{4,}+))",
    re.IGNORECASE,
)
_option = re.compile(
    rf"(--[a-z0-9-]{{0,40}}?({'|'.join(_NAMES)})[ \t]{{1,4}}[\"']?)([^\s\"'`\\]{{4,}}+)",
    re.IGNORECASE,
)
_placeholder = re.compile(
    r"[$<{%*\[(].*|[*x.•…]+|(?:true|false|null|none|undefined|nil)|(?:process|os|env|config)\..*",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST_NAME = 64

Redacted = tuple[str, Counter[str]]


def redact(text: str) -> Redacted:
    """Return a text with its credentials masked, and how many of which kind there were."""
    found: Counter[str] = Counter()
    if _key_header.search(text) is not None:
        text = _without_keys(text, found)
    text = _without_tokens(text, found)
    if "eyJ" in text:
        text, count = _jwt.subn(mask("JWT"), text)
        found["JWT"] += count
    if "://" in text:
        text = _userinfo.sub(lambda match: _in_address(match, found), text)
    lower = text.lower()
    if "authorization" in lower or "bearer" in lower:
        text = _authorization.sub(lambda match: _value_masked(match, "authorization", found), text)
    if any(name in lower for name in _NAMES):
        text = _option.sub(lambda match: _option_masked(match, found), text)
        text = _assignment.sub(lambda match: _assigned(match, found), text)
    return text, +found


def redact_json(text: str) -> Redacted:
    """Return JSON text with the credentials in its strings masked: it stays JSON.

    The value of a key such as `password` is masked, whatever it looks like. What is no JSON is
    treated as any other text.
    """
    plain, found = redact(text)
    if not found:
        return text, found
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return plain, found
    if not isinstance(value, dict | list):
        return plain, found
    found = Counter()
    masked = json.dumps(_in_value(value, found), ensure_ascii=False, separators=(",", ":"))
    masked, more = redact(masked)  # what a key and its value say only together
    return masked, found + more


def mask(kind: str) -> str:
    """Return what stands in place of a credential."""
    return f"[redacted: {kind}]"


def _without_tokens(text: str, found: Counter[str]) -> str:
    """Mask what begins like a token. To look for each beginning is quicker than one expression."""
    places: dict[int, str] = {}
    for prefix in _KIND_OF:  # of two that begin at one place, the longer one counts
        start = text.find(prefix)
        while start >= 0:
            if len(prefix) > len(places.get(start, "")) and not _is_inside_word(
                text, start, prefix
            ):
                places[start] = prefix
            start = text.find(prefix, start + len(prefix))
    pieces, position = [], 0
    for start, prefix in sorted(places.items()):
        match = _token.match(text, start) if start >= position else None
        if match is not None:
            kind = _KIND_OF[prefix]
            found[kind] += 1
            pieces += [text[position:start], mask(kind)]
            position = match.end()
    return "".join([*pieces, text[position:]]) if pieces else text


def _is_inside_word(text: str, start: int, prefix: str) -> bool:
    """Does a short prefix stand in a word? Behind an escaped line break it does not."""
    if prefix not in _AMBIGUOUS or start == 0 or not text[start - 1].isalnum():
        return False
    return text[max(start - 2, 0) : start] not in ("\\n", "\\r", "\\t")


def _in_address(match: re.Match[str], found: Counter[str]) -> str:
    if not match[3] and match[2].isdigit():  # at the end of a text, a port
        return match[0]
    return _value_masked(match, "password", found)


def _value_masked(match: re.Match[str], kind: str, found: Counter[str]) -> str:
    """Return what was found with its second group masked."""
    if _is_placeholder(match[2]):
        return match[0]
    found[kind] += 1
    behind = match[3] if match.re.groups > 2 else ""
    return f"{match[1]}{mask(kind)}{behind}"


def _option_masked(match: re.Match[str], found: Counter[str]) -> str:
    if _is_placeholder(match[3]) or match[3].startswith("-"):
        return match[0]
    kind = _NAMES[match[2].lower()]
    found[kind] += 1
    return f"{match[1]}{mask(kind)}"


def _assigned(match: re.Match[str], found: Counter[str]) -> str:
    name, operator, *alternatives, bare = match.groups()
    quote = alternatives[0] or alternatives[2] or ""
    value = alternatives[1] or alternatives[3] or bare
    if _is_placeholder(value) or not (quote or _is_literal(match, value)):
        return match[0]
    kind = _NAMES[name.lower()]
    found[kind] += 1
    return f"{name}{operator}{quote}{mask(kind)}"


def _is_literal(match: re.Match[str], value: str) -> bool:
    """Is what is assigned without quotes a value? In source code it is the name of another thing.

    `API_KEY=hunter` of a shell is a value, `password = value` is none, `password=hunter2` is one.
    """
    if "(" in value or "[" in value or value.endswith((".", ")")):
        return False
    text = match.string
    start = match.start()
    while start > 0 and match.start() - start < _LONGEST_NAME and _is_of_name(text[start - 1]):
        start -= 1
    is_of_shell = text[start : match.end(1)].isupper() and match[2].endswith("=")
    return is_of_shell or (len(value) >= 6 and any(map(str.isdigit, value)) and not value.isdigit())


def _is_of_name(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _is_placeholder(value: str) -> bool:
    return _placeholder.fullmatch(value) is not None


def _without_keys(text: str, found: Counter[str]) -> str:
    """Mask private keys from their header to their end; one that is cut off, as far as it goes."""
    pieces, position = [], 0
    for match in _key_header.finditer(text):
        if match.start() < position:
            continue
        end = text.find(_KEY_END, match.end(), match.end() + _LONGEST_KEY)
        if end >= 0:
            closing = text.find("-----", end + len(_KEY_END), end + len(_KEY_END) + 60)
            stop = closing + 5 if closing >= 0 else end + len(_KEY_END)
        else:
            lines = _key_lines.match(text, match.end())
            stop = lines.end() if lines is not None else match.end()
            if stop == match.end() and text[stop : stop + 3].strip("…\n"):
                continue  # only the words are there
        pieces += [text[position : match.start()], mask("private key")]
        found["private key"] += 1
        position = stop
    return "".join([*pieces, text[position:]])


def _in_value(value: object, found: Counter[str], depth: int = 0) -> object:
    if isinstance(value, str):
        text, more = redact(value)
        found.update(more)
        return text
    if depth > 100:  # deeper than any input; as text it is masked all the same
        text, more = redact(json.dumps(value, ensure_ascii=False))
        found.update(more)
        return text
    if isinstance(value, list):
        return [_in_value(item, found, depth + 1) for item in value]
    if isinstance(value, dict):
        return {redact(key)[0]: _of_key(key, item, found, depth + 1) for key, item in value.items()}
    return value


def _of_key(key: str, value: object, found: Counter[str], depth: int) -> object:
    name = key.lower()
    kind = next((kind for end, kind in _NAMES.items() if name.endswith(end)), None)
    if kind is None or not isinstance(value, str) or len(value) < 4 or _is_placeholder(value):
        return _in_value(value, found, depth)
    masked, more = redact(value)
    found.update(more or {kind: 1})
    return masked if more else mask(kind)
