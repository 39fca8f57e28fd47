"""How many worker processes are used."""

from __future__ import annotations

import os
import sys

MOST = 8
"""Workers that are used unless the user says otherwise: more would wait for the writer."""

PAYS_FROM = 32 * 1024 * 1024
"""From this many bytes on, workers take less time than they take to start."""


def usual_jobs() -> int:
    """Return how many workers are used if the user does not say: one for each core, at most 8."""
    if getattr(sys, "frozen", False) or not sys.executable:
        return 1  # there is no interpreter to run workers with
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min(cores, MOST)


def worker_count(jobs: int | None, size: int) -> int:
    """Return how many workers read so many bytes; 1: none, since they pay only for much input.

    `jobs` is what the user said, None if nothing.
    """
    if size < PAYS_FROM:
        return 1
    return usual_jobs() if jobs is None else jobs
