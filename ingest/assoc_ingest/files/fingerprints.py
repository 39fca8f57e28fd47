"""What may be told of a credential: a fingerprint to name it by, and a form without its letters.

A fingerprint is the same wherever a credential is found, on every machine, so that a baseline can
be shared. So nothing secret goes into it but the credential. Whoever has a fingerprint can try out
guesses: a token of a provider cannot be guessed, a password of a dictionary can. That is why each
try costs about 10 ms and 4 MB (scrypt): a million guesses take three hours of a processor.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import scrypt

from .secret_rules import Secret

LENGTH = 16
"""Letters of a fingerprint."""

_SALT = b"assoc-ingest secrets"
_COST = 4096


@lru_cache(maxsize=4096)
def fingerprint(text: str) -> str:
    """Return the fingerprint of a credential: 64 bits as hexadecimal digits."""
    data = text.encode("utf-8", "surrogatepass")
    return scrypt(data, salt=_SALT, n=_COST, r=8, p=1, dklen=LENGTH // 2).hex()


def masked(secret: Secret) -> str:
    """Return what stands for a credential in a report: its prefix and its length."""
    if secret.kind == "private key":
        return f"{secret.prefix}… ({secret.end - secret.start} letters)"
    return f"{secret.prefix}… ({len(secret.text)} letters)"
