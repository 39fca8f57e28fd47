"""The Model Context Protocol, as far as a server with nothing but tools speaks it.

Two ways to agree on a version, both served on one connection: up to 2025-11-25 a client begins with
`initialize`; from 2026-07-28 on, every request carries its version, and nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol as Interface

from .. import __version__
from .messages import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    Object,
    Request,
    RequestError,
)

STATELESS = ("2026-07-28",)
"""Versions in which each request is complete in itself."""

WITH_HANDSHAKE = ("2025-11-25", "2025-06-18")
"""Versions that begin with `initialize`, the newest first."""

VERSIONS = (*STATELESS, *WITH_HANDSHAKE)
"""The versions that are spoken, the newest first."""

_META = "io.modelcontextprotocol/"
_VERSION, _CAPABILITIES = f"{_META}protocolVersion", f"{_META}clientCapabilities"
_SERVER: Object = {"name": "assoc-ingest", "title": "Past conversations", "version": __version__}
_CAN: Object = {"tools": {}}
_FRESH_FOR = 3_600_000
"""Milliseconds: the tools do not change while the server runs."""


class Offered(Interface):
    """A tool as the protocol sees it."""

    def described(self) -> Object:
        """Return its name, what it does, and its schemas."""


class Protocol:
    """Answers requests."""

    def __init__(
        self,
        instructions: str,
        tools: Callable[[], Iterable[Offered]],
        call: Callable[[str, Object], Object],
    ) -> None:
        """`call` runs a tool; it raises KeyError if there is none of this name."""
        self._instructions = instructions
        self._tools = tools
        self._call = call

    def answer(self, request: Request) -> Object:
        """Return the result of a request. Raises RequestError if it cannot be answered."""
        meta = request.params.get("_meta")
        if request.method == "initialize":
            return self._initialized(request.params)
        if isinstance(meta, dict) and _VERSION in meta:
            _check_envelope(meta)
            return self._complete(request)
        if request.method == "ping":
            return {}
        return self._listed_or_called(request)

    def _initialized(self, params: Object) -> Object:
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise RequestError(INVALID_PARAMS, "initialize needs the protocolVersion, a string.")
        version = wanted if wanted in WITH_HANDSHAKE else WITH_HANDSHAKE[0]
        return {
            "protocolVersion": version,
            "capabilities": _CAN,
            "serverInfo": _SERVER,
            "instructions": self._instructions,
        }

    def _complete(self, request: Request) -> Object:
        """Answer a request of a version without a handshake: each result says what it is."""
        ending: Object = {"resultType": "complete", "_meta": {f"{_META}serverInfo": _SERVER}}
        if request.method == "server/discover":
            found: Object = {
                "supportedVersions": list(VERSIONS),
                "capabilities": _CAN,
                "instructions": self._instructions,
            }
        else:
            found = self._listed_or_called(request)
        if request.method != "tools/call":
            ending |= {"ttlMs": _FRESH_FOR, "cacheScope": "private"}
        return {**found, **ending}

    def _listed_or_called(self, request: Request) -> Object:
        if request.method == "tools/list":
            return {"tools": [tool.described() for tool in self._tools()]}
        if request.method != "tools/call":
            raise RequestError(METHOD_NOT_FOUND, f"There is no method {request.method[:100]!r}.")
        name, arguments = request.params.get("name"), request.params.get("arguments")
        if not isinstance(name, str):
            raise RequestError(INVALID_PARAMS, "tools/call needs the name of a tool, a string.")
        if arguments is not None and not isinstance(arguments, dict):
            raise RequestError(INVALID_PARAMS, "The arguments of a tool are an object.")
        try:
            return self._call(name, arguments or {})
        except KeyError:
            known = ", ".join(str(tool.described()["name"]) for tool in self._tools())
            raise RequestError(
                INVALID_PARAMS, f"There is no tool {name[:100]!r}. There are: {known}."
            ) from None


def _check_envelope(meta: Object) -> None:
    version = meta[_VERSION]
    if not isinstance(version, str):
        raise RequestError(INVALID_PARAMS, f"{_VERSION} is a string.")
    if version not in STATELESS:
        raise RequestError(
            UNSUPPORTED_VERSION,
            "Unsupported protocol version",
            {"supported": list(VERSIONS), "requested": version},
        )
    if not isinstance(meta.get(_CAPABILITIES), dict):
        raise RequestError(INVALID_PARAMS, f"params._meta needs {_CAPABILITIES}, an object.")
