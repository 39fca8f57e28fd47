"""Jobs for workers that do not go well, whatever is read. Workers import this module."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

from assoc_ingest.files.stores import Work
from assoc_ingest.upkeep.verify import CheckJob, Listed
from assoc_ingest.workers.reading import Archived, ReadJob, ReplayJob

STUCK, FATAL, FAILING = "5eee0000", "5eee1111", "5eee2222"
"""How the name of a file begins whose parser never ends, kills the process, or fails."""


@dataclass(frozen=True, slots=True)
class OddJob(ReadJob):
    """Reads files as usual, but some names make a worker behave oddly."""

    def items(self) -> Iterator[Iterator[bytes]]:
        for item, usual in zip(self.work, ReadJob.items(self), strict=True):
            yield _oddly(item.found.path, usual)


def odd_job(work: tuple[Work, ...], thorough: bool, seconds: float) -> OddJob:
    """Return a job; one of a stuck parser may take only a second, so that a test does not wait."""
    is_stuck = any(STUCK in item.found.path for item in work)
    return OddJob(work, thorough, 1.0 if is_stuck else seconds)


def _oddly(name: str, usual: Iterator[bytes]) -> Iterator[bytes]:
    if FATAL in name:
        os.kill(os.getpid(), signal.SIGKILL)
    if FAILING in name:
        raise ValueError("not this one")
    while STUCK in name:
        pass
    yield from usual


@dataclass(frozen=True, slots=True)
class OddReplay(ReplayJob):
    """Parses files again as usual, but some names make a worker behave oddly."""

    def items(self) -> Iterator[Iterator[bytes]]:
        for file, usual in zip(self.files, ReplayJob.items(self), strict=True):
            yield _oddly(_key(file), usual)


def odd_replay(files: tuple[Archived, ...], seconds: float) -> OddReplay:
    """Return a job; see `odd_job`."""
    return OddReplay(files, 1.0 if any(STUCK in _key(file) for file in files) else seconds)


def _key(file: Archived) -> str:
    return (file.claim and file.claim.session_key) or ""


@dataclass(frozen=True, slots=True)
class OddCheck(CheckJob):
    """Checks files as usual, but some names make a worker behave oddly."""

    def items(self) -> Iterator[Iterator[bytes]]:
        for file, usual in zip(self.files, CheckJob.items(self), strict=True):
            yield _oddly(file.path, usual)


def odd_check(database: str, files: tuple[Listed, ...], seconds: float) -> OddCheck:
    """Return a job; see `odd_job`."""
    return OddCheck(database, files, 1.0 if any(STUCK in file.path for file in files) else seconds)


@dataclass(frozen=True, slots=True)
class Pieces:
    """A job of one item, whose pieces have a size in bytes and take a while, in seconds."""

    seconds: float
    count: int
    size: int
    takes: float = 0.0

    def items(self) -> Iterator[Iterator[bytes]]:
        yield self._pieces()

    def _pieces(self) -> Iterator[bytes]:
        for _ in range(self.count):
            time.sleep(self.takes)
            yield bytes(self.size)
