"""Credentials that are none, of every kind: made when a test runs, so that no file has one."""

from __future__ import annotations

import base64
import json
import random
import re

from assoc_ingest.secrets.rules import RULES

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


WORDS = {
    # What must not leave a machine though it looks like words: the text, and what is to be masked.
    "an address": ("postgres://ada:{}@db.example/shop", "marigoldbed"),
    "an address without a user": ("redis://:{}@cache.example:6379/0", "foxglovebed"),
    "a shell": ("PGPASSWORD={} psql -h db.example shop", "lavenderbed"),
    "YAML": ("  password: {}", "snowdropbed"),
    "a sentence": ("The db password: {}.", "primrosebed"),
    "a connection string": ("host=db user=ada password={} dbname=shop", "cornflowerbed"),
    "settings": ("Server=db;User Id=ada;Password={};", "hollyhockbed"),
    "a query of an address": ("https://a.example/?password={}&page=2", "bluebellbed"),
    "JSON": ('{{"clientSecret": "{}"}}', "harebellbed"),
    "a header": ("Authorization: Bearer {}", "honesty" + "sweetpeabed"),
    "an option": ("deploy --db-password {} --verbose", "speedwellbed"),
    "a line of a password file": ("db.example.org:5432:fleet:laptop:{}", "wallflowerbed"),
    "a line of any host": ("*:*:*:ada:{}", "cowslipbedding"),
    "a line of a socket": ("/var/run/postgresql:5433:fleet:ada:{}", "campionbed"),
    "a line with a colon": ("localhost:5432:fleet:ada:{}", "teasel\\:bed"),
    "a run of letters": ("token is {} now", "ghp_" + "x" * 36),
    "a token behind a colour": ("\x1b[32m{}\x1b[0m", "glpat-" + "y" * 20),
    "a token that is cut off": ("it is {}", "github_pat_" + "z" * 20),
    "a token in an address": ("?q=%3D{}", "npm_" + "w" * 36),
}
