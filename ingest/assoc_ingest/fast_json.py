"""orjson, imported here alone.

While it is initialized, orjson imports modules of the standard library and crashes the process if
one of them cannot be imported (https://github.com/ijl/orjson/issues/310). A Ctrl-C at that moment
is such a failure, so it waits.
"""

from contextlib import suppress

from .stopping import signals_held_back

with signals_held_back():
    import orjson

__all__ = ["fail_within_limits", "orjson"]

_LONG = 100_000


def fail_within_limits() -> None:
    """From now on, let `loads` raise MemoryError where it would crash the process.

    orjson does not look whether there was memory for an object, which matters where a process has
    a limit. So long texts are first read by the standard library, with room for what orjson takes.
    """
    import json

    loads = orjson.loads
    if loads.__name__ == "careful":
        return

    def careful(data: bytes | str) -> object:
        if len(data) > _LONG:
            room = bytearray(3 * len(data))
            with suppress(ValueError, RecursionError):
                json.loads(data)
            del room
        return loads(data)

    orjson.loads = careful  # type: ignore[assignment]
