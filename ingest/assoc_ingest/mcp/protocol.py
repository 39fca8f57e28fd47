"""The Model Context Protocol, as far as a server with nothing but tools speaks it, over JSON-RPC
2.0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol as Interface

from .. import __version__

# ------------------------------------------------------------------------------------------------
# Messages of JSON-RPC 2.0, as the Model Context Protocol uses them: one JSON object on a line.
#
# Everything is written as ASCII: an answer then has as many characters as whoever measures it
# will count, and nothing in it acts on a terminal or ends the line.


PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
UNSUPPORTED_VERSION = -32022

Object = dict[str, object]
Id = int | str


class RequestError(Exception):
    """A request that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: object = None, id: Id | None = None) -> None:
        super().__init__(message)
        self.code, self.data, self.id = code, data, id


@dataclass(frozen=True, slots=True)
class Request:
    """A request, or a notification: that has no id, and nobody waits for an answer."""

    method: str
    params: Object
    id: Id | None


def parse(line: bytes) -> Request | None:
    """Return the request of a line; None for a response, which answers nothing of ours.

    Raises RequestError for what is no message: text that is no JSON, a batch (no version of the
    protocol that is spoken here has those), or an object that lacks what every request has.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise RequestError(PARSE_ERROR, "This line is not JSON.") from None
    if isinstance(message, list):
        raise RequestError(INVALID_REQUEST, "Batches are not supported; send one request a line.")
    if not isinstance(message, dict):
        raise RequestError(INVALID_REQUEST, "A message is a JSON object.")
    has_id, id = "id" in message, message.get("id")
    known = id if isinstance(id, int | str) and not isinstance(id, bool) else None
    if "method" not in message and ("result" in message or "error" in message):
        return None
    if message.get("jsonrpc") != "2.0":
        raise RequestError(INVALID_REQUEST, 'A message has "jsonrpc": "2.0".', id=known)
    if has_id and known is None:
        raise RequestError(INVALID_REQUEST, "The id of a request is a string or an integer.")
    if not isinstance(method := message.get("method"), str):
        raise RequestError(INVALID_REQUEST, "A request names its method.", id=known)
    if not isinstance(params := message.get("params", {}), dict):
        raise RequestError(INVALID_PARAMS, "The params of a request are an object.", id=known)
    return Request(method, params, known)


def line_of(value: object) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value)


def response(id: Id | None, result: Object) -> str:
    """Return the line that answers a request."""
    return line_of({"jsonrpc": "2.0", "id": id, "result": result})


def failure(id: Id | None, error: RequestError) -> str:
    """Return the line that answers a request with an error."""
    told: Object = {"code": error.code, "message": str(error)}
    if error.data is not None:
        told["data"] = error.data
    return line_of({"jsonrpc": "2.0", "id": id, "error": told})


# ------------------------------------------------------------------------------------------------
# The Model Context Protocol, as far as a server with nothing but tools speaks it.
#
# Two ways to agree on a version, both served on one connection: up to 2025-11-25 a client begins
# with `initialize`; from 2026-07-28 on, every request carries its version, and nothing is
# remembered.


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
