"""How large the calls of a push may be, and what a push did."""

from __future__ import annotations

from dataclasses import dataclass

_LONG_CALL = 1.0  # seconds
_SMALL_CALL = 500_000  # bytes


@dataclass
class Limits:
    """How large a call may be: bytes of frames and JSON, and rows."""

    size: int = 8_000_000
    rows: int = 5_000

    def after(self, seconds: float) -> None:
        """Make calls smaller if one took too long: whoever reads or pushes there has to wait."""
        if seconds > _LONG_CALL and self.size > _SMALL_CALL:
            self.size //= 2


@dataclass
class Report:
    """What a push did."""

    is_full: bool = False
    """Everything was compared, not only what changed."""
    files: int = 0
    """Files that were looked at."""
    frames: int = 0
    rows: int = 0
    size: int = 0
    """Bytes of frames and rows that were sent."""
    deleted: int = 0
    """Keyed rows and files that were deleted."""
    calls: int = 0
    version: int = 0
    waiting: int = 0
    """Files that came back and wait for a push while no other process writes to the database."""
