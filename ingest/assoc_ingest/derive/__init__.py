"""Refreshes all derived facts that a batch can change, in the transaction of the batch.

Nothing here depends on the order in which files were read. A fact is derived again from all rows
that it depends on, so each step first finds out what a change affects, and then derives that again:

1. sidechains: agents inside a main file (1.0.x) become subagents;
2. copies: forks repeat lines of other files; every block has one canonical occurrence;
3. queued prompts: each text counts once, wherever it was delivered (`queued_prompts`);
4. tool results that do not say which call they answer are linked to it (`unnamed_results`), and
   messages that were taken back are marked (`superseded`);
5. subagents: their kind, times and counts (`subagents`), the call that spawned them
   (`agent_links`);
6. tasks, todos and plans that only transcripts state (`statements`);
7. responses: one row per API response, from the best of its lines in all files;
8. references between stores: text keys become ids (`references`);
9. sessions, the agents that they are with (`agents`), and projects: titles, times, counts, paths.

Sets of ids that are passed from step to step are in temporary tables named `touched_*`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ..sql import id_list
from . import copies, projects, references, responses, sessions, statements, subagents
from .changeset import TEMPORARY, Touched, fill


def refresh(connection: sqlite3.Connection, touched: Touched) -> None:
    """Derive again everything that the batch can change. Runs in the transaction of the batch."""
    for statement in TEMPORARY.split(";"):
        connection.execute(statement)
    touched.sidechains.update(_files_with_sidechains(connection, touched.files))
    _assign_sidechains(connection, touched.sidechains)
    affected = copies.refresh_copies(connection, touched)
    is_delivered = copies.refresh_queued(connection, touched, affected)
    if affected or touched.moved or is_delivered:
        touched.is_append = False
    _collect_sessions(connection, touched, affected)
    copies.refresh_answers(connection)
    copies.refresh_superseded(connection)
    projects.refresh_lists(connection, touched)
    sessions.refresh_summaries(connection)
    subagents.refresh_subagents(connection)
    statements.refresh_statements(connection, touched, affected)
    responses.refresh_responses(connection, touched, affected)
    responses.refresh_tokens(connection)
    references.refresh_references(connection, touched)
    sessions.refresh_sessions(connection, touched)
    projects.refresh_agents(connection)
    projects.refresh_projects(connection, touched)
    references.refresh_places(connection, touched)


def refresh_everything(connection: sqlite3.Connection) -> None:
    """Derive all facts again, as if every file had just been read. Runs in a transaction."""

    def ids(query: str) -> set[int]:
        return {id_ for (id_,) in connection.execute(query)}

    files = ids("select id from files")
    touched = Touched(files=files, shared=set(files))
    touched.sessions = ids("select id from sessions")
    touched.projects = ids("select id from projects")
    rows = connection.execute(
        "select response_key from usage union select response_key from responses"
    )
    touched.responses = {key for (key,) in rows}
    touched.groups = statements.all_groups(connection)
    (last,) = connection.execute("select max(id) from messages").fetchone()
    touched.first_message_id = (last or 0) + 1
    refresh(connection, touched)


def _collect_sessions(connection: sqlite3.Connection, touched: Touched, affected: set[int]) -> None:
    fill(connection, "touched_files", touched.files | affected | touched.moved)
    fill(connection, "touched_sessions", touched.sessions)
    connection.execute(
        "insert or ignore into touched_sessions select f.session_id from touched_files t"
        " cross join files f on f.id = t.id where f.session_id is not null"
        " union select e.session_id from touched_files t"
        " cross join session_entries e on e.file_id = t.id where e.session_id is not null"
        # A call in another session may name the agent of a file: it has a file now.
        " union select c.session_id from touched_files t cross join files f on f.id = t.id"
        " cross join agent_totals a on a.agent_key = f.agent_key"
        " cross join files c on c.id = a.file_id and c.source_id = f.source_id"
        " where f.agent_key is not null and c.session_id is not null"
    )


def _files_with_sidechains(connection: sqlite3.Connection, files: Iterable[int]) -> list[int]:
    """Return the grown main files that have sidechains; these can continue in any stretch."""
    rows = connection.execute(
        "select x.file_id from transcripts x join files f on f.id = x.file_id"
        f" where x.file_id in ({id_list(files)}) and x.sidechain_count > 0"
        " and f.kind = 'transcript'"
    )
    return [file_id for (file_id,) in rows]


def _assign_sidechains(connection: sqlite3.Connection, files: Iterable[int]) -> None:
    """Assign the sidechain lines of a main file to subagents: one per chain, named by its root.

    The chain of a line is found by following `parentUuid` as long as it names another sidechain
    line of the file. Lines can be in any order, so the whole file is read again.
    """
    for file_id in files:
        rows = connection.execute(
            "select id, uuid, parent_uuid from messages"
            " where file_id = ?1 and is_sidechain = 1 and uuid is not null"
            " and byte_offset not in (select byte_offset from agent_lines where file_id = ?1)"
            " order by byte_offset, block",
            (file_id,),
        ).fetchall()
        parents: dict[str, str | None] = {}
        for _, uuid, parent in rows:
            parents.setdefault(uuid, parent)
        roots = _chain_roots(parents)
        source, session, key = connection.execute(
            "select source_id, session_id, session_key from files where id = ?", (file_id,)
        ).fetchone()
        ids: dict[str, int] = {}
        for root in dict.fromkeys(roots.values()):
            connection.execute(
                "insert into subagents (source_id, session_id, session_key, agent_key, kind)"
                " values (?, ?, ?, ?, 'sidechain') on conflict do nothing",
                (source, session, key, root),
            )
            (ids[root],) = connection.execute(
                "select id from subagents"
                " where source_id = ? and coalesce(session_key, '') = ? and agent_key = ?",
                (source, key or "", root),
            ).fetchone()
        connection.executemany(
            "update messages set subagent_id = ? where id = ?",
            ((ids[roots[uuid]], id_) for id_, uuid, _ in rows),
        )
        connection.execute(
            "update tool_calls set subagent_id = (select m.subagent_id from messages m"
            " where m.id = coalesce(call_id, result_id)) where file_id = ?",
            (file_id,),
        )


def _chain_roots(parents: dict[str, str | None]) -> dict[str, str]:
    """Return the root of each line's chain; in a cycle, its first line in the file."""
    roots: dict[str, str] = {}
    for start in parents:
        path: list[str] = []
        walked = set()
        uuid: str | None = start
        while uuid in parents and uuid not in roots and uuid not in walked:
            path.append(uuid)
            walked.add(uuid)
            uuid = parents[uuid]
        if uuid in roots:
            root = roots[uuid]
        elif uuid in walked:
            order = {name: place for place, name in enumerate(parents)}
            root = min(path, key=order.__getitem__)
        else:
            root = path[-1]
        roots.update(dict.fromkeys(path, root))
    return roots
