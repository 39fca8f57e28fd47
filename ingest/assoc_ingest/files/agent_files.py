"""Which subagents have files of their own, so that nothing of them is read twice.

A transcript repeats the messages of its subagents. Of one that has a file, they are read from that
file and nowhere else; of one that has none, the repetition is the only record. So what a transcript
means depends on which agents have files, and it is read again from its archive when that changes:

- a sync knows the files that it is about to read before it reads the first of them. When a file
  appears later, the transcripts that were read without it are read again (`to_read_again`);
- when a file is removed from the database, the lines that repeat it are the record again
  (`bereaved`). A file that is only gone stays the record, and so does one that was forgotten.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import replace

from ..source import LOG, Claim, Source, claim_at
from ..sources import SOURCES
from ..sql import id_list
from .exclusions import load


class AgentFiles:
    """The subagents with files of their own, source by source."""

    def __init__(self, connection: sqlite3.Connection | None) -> None:
        self._connection = connection
        self._known: dict[int, frozenset[str]] = {}

    def tell(
        self, source: Source, source_id: int, claim: Claim, found: Iterable[str] = ()
    ) -> Claim:
        """Return the claim of a transcript with the agents that have files; any other as it is.

        `found` are agents whose files are about to be read for the first time.
        """
        if claim.agent_key is not None or claim.session_key is None or source.shape(claim) != LOG:
            return claim
        if source_id not in self._known:
            self._known[source_id] = self._stored(source_id)
        agents = self._known[source_id].union(found)
        return replace(claim, elsewhere=agents) if agents else claim

    def _stored(self, source_id: int) -> frozenset[str]:
        if self._connection is None:
            return frozenset()
        rows = self._connection.execute(
            "select distinct agent_key from files where source_id = ? and agent_key is not null",
            (source_id,),
        )
        return frozenset(key for (key,) in rows) | _forgotten(self._connection, source_id)


def _forgotten(connection: sqlite3.Connection, source_id: int) -> frozenset[str]:
    row = connection.execute("select kind, root from sources where id = ?", (source_id,)).fetchone()
    if row is None or row[0] not in SOURCES:
        return frozenset()
    claims = (
        claim_at(SOURCES[row[0]], path)
        for root, path in load(connection).places
        if root in (None, row[1])
    )
    return frozenset(claim.agent_key for claim in claims if claim and claim.agent_key)


def to_read_again(connection: sqlite3.Connection) -> list[int]:
    """Return the files that repeat lines of subagents which have files of their own by now."""
    rows = connection.execute(
        "select distinct l.file_id from agent_lines l join files f on f.id = l.file_id"
        " join files o on o.source_id = f.source_id and o.agent_key = l.agent_key"
        " order by l.file_id"
    )
    return [file_id for (file_id,) in rows]


def bereaved(connection: sqlite3.Connection, removed: Iterable[int]) -> list[int]:
    """Return the files that repeat lines of subagents whose files are about to be removed."""
    ids = id_list(removed)
    rows = connection.execute(
        "select distinct l.file_id from files g"
        " join agent_links l on l.agent_key = g.agent_key"
        " join files f on f.id = l.file_id and f.source_id = g.source_id"
        f" where g.id in ({ids}) and g.agent_key is not null and f.id not in ({ids})"
        " order by l.file_id"
    )
    return [file_id for (file_id,) in rows]
