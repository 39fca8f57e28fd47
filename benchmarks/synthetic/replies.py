"""One answer of the API, as the several lines that Claude Code makes of it.

Each content block becomes a line of its own, all with the same ``message.id`` and ``requestId``.
In three of ten answers the lines were written while the answer still grew, so that only the last
has the final ``output_tokens``; in older versions the final ``stop_reason`` was mostly never kept.
"""

from __future__ import annotations

from . import shapes
from .home import Json
from .transcript import Chain


class Reply:
    """Writes the lines of one answer; *count* is how many there will be."""

    def __init__(self, chain: Chain, count: int, context: int, tokens: int, reason: str) -> None:
        home, session = chain.home, chain.session
        self._chain = chain
        self._left = count
        self._growing = count > 1 and home.chance(shapes.GROWING_OUTPUT)
        self._reason = reason
        if home.chance(shapes.stop_reason_missing(session.version)):
            self._reason = ""
        self._tokens = max(1, tokens)
        self._cached = int(context * 0.9)
        self._written = context - self._cached
        self._request: str | None = home.token("req_011")
        unknown = home.ledger.due("no request id", shapes.NO_REQUEST_ID)
        if unknown or session.gateway:
            self._request = None
        self._id = home.token("msg_01")
        if session.gateway:  # its ids begin anew with each session
            self._id = f"gen-{chain.file.count // 2}"

    def say(self, *blocks: Json) -> str:
        """Append one line with *blocks*, mostly one, and return its uuid."""
        self._left -= 1
        last = self._left == 0
        chain, session = self._chain, self._chain.session
        reason = self._reason if last or not self._growing else ""
        message: Json = {"model": session.model, "id": self._id, "type": "message"}
        message |= {"role": "assistant", "content": list(blocks), "stop_reason": reason or None}
        message |= {"stop_sequence": None, "usage": self._usage(last)}
        after: Json = {"requestId": self._request} if self._request else {}
        if session.version >= (2, 1, 215):
            after["effort"] = "high"
        return chain.line("assistant", {"type": "assistant", "message": message}, after)

    def _usage(self, last: bool) -> Json:
        session, version = self._chain.session, self._chain.session.version
        output = self._tokens if last or not self._growing else self._tokens % 7 + 1
        if session.gateway:
            split = {"input_tokens": 9, "cache_read_input_tokens": self._cached}
            whole = {"input_tokens": self._cached, "cache_read_input_tokens": None}
            return {**(split if last else whole), "output_tokens": output, "cost": 0.0021}
        usage: Json = {"input_tokens": 4, "cache_creation_input_tokens": self._written}
        usage |= {"cache_read_input_tokens": self._cached, "output_tokens": output}
        parts = {"ephemeral_5m_input_tokens": self._written, "ephemeral_1h_input_tokens": 0}
        if version >= (1, 0, 98):
            usage["cache_creation"] = parts
        if version >= (2, 0, 15) and self._growing is False:
            usage["server_tool_use"] = {"web_search_requests": 0, "web_fetch_requests": 0}
        usage["service_tier"] = "standard"
        if version >= (2, 1, 38):
            whole = {key: value for key, value in usage.items() if key != "server_tool_use"}
            usage["iterations"] = [{**whole, "type": "message"}] if version >= (2, 1, 150) else []
            usage |= {"inference_geo": "not_available", "speed": "standard"}
        if version >= (2, 1, 228):
            usage["output_tokens_details"] = {"thinking_tokens": output // 3}
        return usage


def thinking(chain: Chain) -> Json:
    """A thinking block; new versions mostly keep its signature only."""
    home = chain.home
    empty = chain.session.version >= (2, 1, 85) and home.chance(0.6)
    text = "" if empty else home.words.prose(home.length(shapes.THINKING))
    signature = home.words.base64(home.length(shapes.SIGNATURE))
    return {"type": "thinking", "thinking": text, "signature": signature}


def text(chain: Chain, curve: shapes.Curve = shapes.ANSWER) -> Json:
    """A text block, with something to search for now and then."""
    home = chain.home
    planted = "" if chain.sidechain else home.needle()
    return {"type": "text", "text": home.words.prose(home.length(curve)) + planted}


def failure(chain: Chain) -> None:
    """The client's own answer when the API gave none."""
    words = "API Error: 529 Overloaded. This is a server-side issue, try again in a moment"
    usage = {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0}
    message: Json = {"id": chain.home.uuid(), "model": "<synthetic>", "role": "assistant"}
    message |= {"type": "message", "stop_reason": "stop_sequence", "stop_sequence": ""}
    message |= {"usage": usage, "content": [{"type": "text", "text": words}]}
    after = {"isApiErrorMessage": True, "error": "server_error"}
    chain.line("assistant", {"type": "assistant", "message": message}, after)
