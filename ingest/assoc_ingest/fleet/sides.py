"""What a push has on its side: the local database, and what the machine remembers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .projection import Cursor


class Local(Protocol):
    """What `local.Local` gives: one snapshot of the local database, as far as it is in scope."""

    def cursor(self) -> Cursor | None:
        """Return the state of the database."""

    def is_known(self, seen: Cursor) -> bool:
        """Return whether what changed since then can be told."""

    def files(self, since: int | None) -> Iterable[Any]:
        """Yield the files that changed since then; None: all."""

    def content(self, file: Any) -> Any:
        """Return the attributes of a file and its frames from the first change on."""

    def keyed(self, since: int | None) -> Iterable[Any]:
        """Yield the keyed sets that changed since then; None: all of them, whole."""

    def gone_file_keys(self, since: int | None) -> Iterable[bytes]:
        """Yield the keys of files that were forgotten since then; None: all."""


class Memory(Protocol):
    """What this machine remembers of its pushes, beside its database."""

    uuid: str
    label: str
    db_uuid: str
    version: int
    nonces: list[str]
    """Nonces that the server may have: that of the last push that ended, and of those since."""
    cursor: Cursor | None


@dataclass
class Nobody:
    """The memory of who pushes for another machine: nothing outlives the push."""

    uuid: str = ""
    label: str = ""
    db_uuid: str = ""
    version: int = 0
    nonces: list[str] = field(default_factory=list)
    cursor: Cursor | None = None
