"""Images as a transcript holds them."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode

from tests.support.writing import Object


def png() -> bytes:
    """A red square that every browser shows."""

    def chunk(name: bytes, data: bytes) -> bytes:
        check = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\xc0\x20\x20" * 8) * 8
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def image(data: bytes, media_type: str = "image/png") -> Object:
    source = {"type": "base64", "media_type": media_type, "data": b64encode(data).decode()}
    return {"type": "image", "source": source}
