"""Credentials that are none, of every kind: made when a test runs, so that no file has one."""

from __future__ import annotations

import base64
import json
import random
import re

from assoc_ingest.files.secret_rules import RULES

_PRINTABLE = [chr(code) for code in range(33, 127)]


def planted(seed: int = 1) -> dict[str, str]:
    """Return a credential for each rule, by its name, as its provider would issue it."""
    rng = random.Random(seed)
    return {rule.name: _issued(rng, rule.prefixes[0], rule.letters, rule.lengths[0])
            for rule in RULES}  # fmt: skip


def _issued(rng: random.Random, prefix: str, letters: str, count: int) -> str:
    usual = [c for c in _PRINTABLE if re.match(letters, c)]
    plain = [c for c in usual if c.isalnum()]
    digits = [c for c in usual if c.isdigit()]
    # The first and the last letter are plain, and a digit is among them: it is drawn again else.
    while True:
        body = rng.choice(plain) + "".join(rng.choices(plain, k=count - 2)) + rng.choice(plain)
        if len(set(body) & set(digits)) > 1:
            return prefix + body


def password(seed: int = 1, count: int = 24) -> str:
    """Return letters and digits as a machine draws them."""
    return _issued(random.Random(seed), "", "[A-Za-z0-9]", count)


def private_key(seed: int = 1, kind: str = "RSA ") -> str:
    """Return a private key as it stands in a file."""
    rng = random.Random(seed)
    lines = [base64.b64encode(rng.randbytes(48)).decode() for _ in range(6)]
    edge = "-" * 5
    return "\n".join([f"{edge}BEGIN {kind}PRIVATE KEY{edge}", *lines,
                      f"{edge}END {kind}PRIVATE KEY{edge}"])  # fmt: skip


def web_token(seed: int = 1) -> str:
    """Return a signed token of the web."""
    rng = random.Random(seed)
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": str(rng.random()), "iat": rng.randrange(9**9)}]
    head, body = (_url(json.dumps(part).encode()) for part in parts)
    return f"{head}.{body}.{_url(rng.randbytes(32))}"


def _url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
