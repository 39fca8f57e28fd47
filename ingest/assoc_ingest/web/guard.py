"""The guard: only pages of this server can read the index through a browser.

Datasette answers whoever asks, and any page in a browser can ask: by a name that its owner lets
point to 127.0.0.1, by an address that is redirected to another site, or with an image whose
address is a slow query. So `serve` lets every request pass here first. What is not for one of
its pages is refused, and every answer tells the browser to load nothing from other servers.

Plain `datasette` is not guarded: it may stand behind a name of its own, and has its own rules.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from . import foreign_sql

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Refusal = tuple[int, str]
"""A status, and the sentence that goes with it."""

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""The names by which a machine calls itself."""

_SWITCH = "ASSOC_INGEST_GUARD"  # in the environment: a process that Datasette starts has it too
_host = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[^\[\]:]+)(:[0-9]{1,5})?", re.ASCII)

_POLICY = (
    "default-src 'self'; img-src 'self' data:; "
    # Datasette's own pages hold small scripts and styles, not the same ones in each version.
    "script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    # Not no-referrer: browsers then send forms without an origin, and Datasette refuses those.
    b"referrer-policy": b"same-origin",
}
"""What every answer has, unless the page that gives it has its own."""


@contextmanager
def switched_on() -> Iterator[None]:
    """Guard each Datasette that is started meanwhile, in this process or below it."""
    before = os.environ.get(_SWITCH)
    os.environ[_SWITCH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SWITCH]
        else:
            os.environ[_SWITCH] = before


def is_switched_on() -> bool:
    """Was this process started by `serve`?"""
    return os.environ.get(_SWITCH) == "1"


def guarded(app: App, hosts: Collection[str] = ()) -> App:
    """Return an ASGI application that refuses what `refusal` refuses, and asks `app` the rest.

    `hosts` are names, without a port, that are allowed beside those of the machine itself.
    """
    allowed = LOOPBACK | {host.lower() for host in hosts}

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                present = {name.lower() for name, _ in headers}
                headers += [pair for pair in HEADERS.items() if pair[0] not in present]
                message = {**message, "headers": headers}
            await send(message)

        if scope["type"] == "lifespan":
            await app(scope, receive, send)
        elif scope["type"] != "http":  # nothing here speaks anything else
            await send({"type": "websocket.close", "code": 1008})
        elif refused := refusal(scope, allowed):
            await refuse(refused, send_guarded)
        else:
            with foreign_sql.for_request(scope):
                await app(scope, receive, send_guarded)

    return answer


def refusal(scope: Scope, allowed: Collection[str]) -> Refusal | None:
    """Say why a request is refused, None if it is not. `allowed` are lower-case host names."""
    if not _is_for_us(_values(scope, b"host"), allowed):
        return 421, "Wrong host name. Open http://127.0.0.1 with the port of this server."
    if _leads_elsewhere(scope):
        return 400, "The path must begin with a single slash."
    if not _comes_from_here(scope, allowed):
        return (
            403,
            "This request came from another site. Open the page yourself, or start at /.",
        )
    if scope["method"] not in ("GET", "HEAD"):  # Datasette has forms that write, and no others
        return 405, "This server only reads: it answers GET and HEAD."
    return None


def _is_for_us(hosts: list[str], allowed: Collection[str]) -> bool:
    """One host and no more: of two, this program and another could believe different ones."""
    found = _host.fullmatch(hosts[0]) if len(hosts) == 1 else None
    return found is not None and found["name"].lower() in allowed


def _leads_elsewhere(scope: Scope) -> bool:
    """Would a redirect to this path, made whole by a slash, lead to another machine?"""
    raw = scope.get("raw_path") or b""
    paths = {scope["path"], raw.decode("latin-1"), unquote(raw.decode("latin-1"))}
    return any(path.replace("\\", "/").startswith("//") for path in paths)


def _comes_from_here(scope: Scope, allowed: Collection[str]) -> bool:
    """Did one of our own pages, a person or a program send it?"""
    sites = set(_values(scope, b"sec-fetch-site"))
    if not sites:  # an older browser says only which page it was, and a program nothing
        pages = [*_values(scope, b"origin"), *_values(scope, b"referer")]
        return all(_is_ours(page, _values(scope, b"host")[0], allowed) for page in pages)
    if not sites & {"cross-site", "same-site"}:
        return True
    is_opened = (
        scope["method"] in ("GET", "HEAD")
        and _values(scope, b"sec-fetch-mode") == ["navigate"]
        and _values(scope, b"sec-fetch-dest") == ["document"]
    )
    # Another port of this machine is the same site: it may link to any page, and load none.
    return is_opened and (scope["path"] == "/" or "cross-site" not in sites)


def _is_ours(page: str, host: str, allowed: Collection[str]) -> bool:
    """Is an address, or the beginning of one, of this server as the request calls it?

    Behind a proxy, the request may call it by another name than the browser does.
    """
    try:
        parts = urlsplit(page)
        name, port = parts.hostname, parts.port
    except ValueError:
        return False
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    if usual is None or name is None:
        return False
    if (f"[{name}]" if ":" in name else name) in set(allowed) - LOOPBACK:
        return True
    own = urlsplit(f"{parts.scheme}://{host}")
    return (name, port or usual) == (own.hostname, own.port or usual)


def _values(scope: Scope, name: bytes) -> list[str]:
    return [
        value.decode("latin-1").strip() for key, value in scope["headers"] if key.lower() == name
    ]


async def refuse(refused: Refusal, send: Send) -> None:
    """Answer with a status and a sentence."""
    status, sentence = refused
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    if status == 405:
        headers.append((b"allow", b"GET, HEAD"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{sentence}\n".encode()})
