"""Messages of JSON-RPC 2.0, as the Model Context Protocol uses them: one JSON object on a line.

Everything is written as ASCII: an answer then has as many characters as whoever measures it will
count, and nothing in it acts on a terminal or ends the line.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

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
