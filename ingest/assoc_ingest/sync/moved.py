"""Finds the files of a plan that are known under other paths: they moved."""

from __future__ import annotations

from dataclasses import replace

from ..files.contents import reading
from ..files.steps import Work
from ..files.tail import resume
from ..files.walk import Root
from ..source import Claim, KnownFile, claim_at
from ..store.upserts import OF_THEIR_PLACE
from .plan import Plan


def match_moved(plan: Plan) -> set[int]:
    """Match new files with vanished ones, whose rows they take over.

    The two have the same claim, apart from the path, and the new one begins with all the bytes that
    were read of the old one. Returns the ids of the files found again.
    """
    vanished: dict[tuple[object, ...], list[KnownFile]] = {}
    for root, file in plan.gone:
        claim = claim_at(root.source, file.path)
        if claim is not None and file.checkpoint.offset:
            vanished.setdefault(_identity(root, claim), []).append(file)
    moved = set()
    for place, work in enumerate(plan.work if vanished else ()):
        candidates = vanished.get(_identity(work.root, work.claim), [])
        known = _same_content(work, candidates) if work.known is None else None
        if known is not None:
            plan.work[place] = replace(work, known=known)
            candidates.remove(known)
            moved.add(known.id)
    return moved


def _identity(root: Root, claim: Claim) -> tuple[object, ...]:
    place = claim.parts if claim.kind in OF_THEIR_PLACE else None
    return root.path, claim.kind, claim.session_key, claim.agent_key, claim.named_agent, place


def _same_content(work: Work, candidates: list[KnownFile]) -> KnownFile | None:
    if not candidates:
        return None
    try:
        with reading(work) as (descriptor, size):
            for file in candidates:
                if resume(descriptor, size, file.checkpoint, thorough=True):
                    return file
    except OSError:
        pass  # reading it will fail, too
    return None
