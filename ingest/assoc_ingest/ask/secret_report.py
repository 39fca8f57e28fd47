"""What `secrets` prints for people: each credential once, where it stands, and what removes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .. import humanize
from ..files.secret_rules import NAMES, REVISED, RULES
from ..terminal import safe
from .secrets import SecretPlace

_PLACES = 5  # of one credential that are named


def report(places: Iterable[SecretPlace], limit: int) -> Iterator[str]:
    """Yield the lines of a report on at most `limit` credentials; 0 is all."""
    by_name: dict[str, list[SecretPlace]] = {}
    for place in places:
        by_name.setdefault(place.fingerprint, []).append(place)
    for number, (name, found) in enumerate(by_name.items(), start=1):
        if limit and number > limit:
            yield f"... and {len(by_name) - limit:,} more. To see all: --limit 0\n"
            return
        first = found[0]
        yield f"{safe(first.kind)}  {safe(first.masked)}  {name}\n"
        for place in found[:_PLACES]:
            yield f"  {_place(place)}\n"
        if len(found) > _PLACES:
            yield f"  ... and {humanize.many(len(found) - _PLACES, 'more place')}\n"
        yield f"  To forget it: {first.forget}\n\n"


def _place(place: SecretPlace) -> str:
    name = place.ref or (f"line {place.line}" if place.line is not None else "?")
    return f"{safe(name)}  {safe(place.path)}, byte {place.byte_offset}"


def rules() -> Iterator[str]:
    """Yield the lines of the list of rules."""
    yield f"Rules of {REVISED}\n\n"
    for rule in RULES:
        least, most = rule.lengths
        count = str(least) if least == most else f"{least} to {most}"
        for prefix in rule.prefixes:
            yield f"{rule.kind}: {prefix} and {count} of {rule.letters}\n"
        yield f"  {rule.source}\n"
    yield "\nJWT: eyJ..., a head with `alg`, and a signature (RFC 7519)\n"
    yield "private key: a block from -----BEGIN ... PRIVATE KEY----- to its end (RFC 7468)\n"
    yield "authorization: what is behind `Authorization:` or `Bearer`, if it looks random\n"
    yield "address: the password in scheme://user:password@host, if it looks random\n"
    yield "named: a value that looks random, behind a name that ends in one of these:\n"
    yield f"  {', '.join(NAMES)}\n"
