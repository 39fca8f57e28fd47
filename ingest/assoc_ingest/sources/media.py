"""Shared by sources of agents: values without the bytes of images, and without signatures.

Programs keep what only a model's provider can read in their conversations: encrypted reasoning,
signatures of thoughts. Nobody can read it, and it is larger than what was said.
"""

from __future__ import annotations

from ..fields import mapping, placeholder
from .claude.tools import result_text
from .jsonl import JSONObject

_OPAQUE = frozenset(
    [
        *("signature", "thinkingSignature", "textSignature", "thoughtSignature"),
        *("reasoningOpaque", "encryptedContent", "encrypted_content"),
    ]
)
_MAX_DEPTH = 64


def image(media_type: object, data: object) -> str:
    """Return the description of an image, or of another file, in place of its bytes."""
    return placeholder({"type": "image", "source": {"media_type": media_type, "data": data}})


def image_in(block: JSONObject) -> str | None:
    """Return the description of a block that is an image or a file, None for other blocks."""
    if "data" in block and "mimeType" in block:
        return image(block["mimeType"], block["data"])
    return None


def text_of(content: object) -> str:
    """Return the text of a tool's result: texts as they are, images as their descriptions."""
    if isinstance(content, list):
        blocks = [(item, image_in(mapping(item))) for item in content]
        content = [item if shown is None else shown for item, shown in blocks]
    return result_text(content)


def readable(value: object, depth: int = 0) -> object:
    """Return a copy of a value that has only what people can read; images are described."""
    if depth >= _MAX_DEPTH:
        return value
    if isinstance(value, list):
        return [readable(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if (shown := image_in(value)) is not None:
        value = {**value, "data": shown}
    return {k: readable(item, depth + 1) for k, item in value.items() if k not in _OPAQUE}
