"""orjson, imported here alone.

While it is initialized, orjson imports modules of the standard library and crashes the process if
one of them cannot be imported (https://github.com/ijl/orjson/issues/310). A Ctrl-C at that moment
is such a failure, so it waits.
"""

from .stopping import signals_held_back

with signals_held_back():
    import orjson

__all__ = ["orjson"]
