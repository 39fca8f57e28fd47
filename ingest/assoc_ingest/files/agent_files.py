"""Which subagents have files of their own, so that none of their messages is stored twice.

A transcript repeats the messages of its subagents. If a subagent has a file, its messages are read
from that file only; if it has none, the repetition is the only record. So the rows of a transcript
depend on which agents have files, and it is re-parsed from its archive when that changes:

- a sync knows all the files that it is about to read before it reads the first one. If an agent's
  file appears later, transcripts that were read without it are re-parsed (`to_read_again`);
- if an agent's file is removed from the database, the lines that repeat it become the record
  (`repeating_removed`). A file that is gone or forgotten remains the record.
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
        self._joined: dict[tuple[int, frozenset[str]], frozenset[str]] = {}

    def with_files(
        self, source: Source, source_id: int, claim: Claim, found: frozenset[str] = frozenset()
    ) -> Claim:
        """Add to the claim of a transcript the agents that have files; return others unchanged.

        `found` are agents whose files are about to be read for the first time. All claims share one
        set: a home can have thousands of transcripts, and as many agents.
        """
        if claim.agent_key is not None or claim.session_key is None or source.shape(claim) != LOG:
            return claim
        if (source_id, found) not in self._joined:
            self._joined[source_id, found] = self._stored(source_id) | found
        agents = self._joined[source_id, found]
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
    """Return the files that repeat lines of subagents which now have files of their own."""
    rows = connection.execute(
        "select distinct l.file_id from agent_lines l join files f on f.id = l.file_id"
        " join files o on o.source_id = f.source_id and o.agent_key = l.agent_key"
        " order by l.file_id"
    )
    return [file_id for (file_id,) in rows]


def repeating_removed(connection: sqlite3.Connection, removed: Iterable[int]) -> list[int]:
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
