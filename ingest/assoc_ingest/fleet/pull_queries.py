"""What a pull asks the server: its files, what was deleted there, and the frames of a file."""

from __future__ import annotations

import sqlite3
from typing import Any

FILES = """
    select
        f.origin_id, f.file_no, f.file_key, f.path, f.generation, f.kind, f.size,
        f."offset", f.mtime, f.gone_at, f.stated_session_key, f.stated_agent_key, f.team_key,
        f.stated_project_key, f.workflow, o.label, o.uuid, r.kind as source, r.root,
        r.label as source_label, r.is_agent, r.lists_sessions, r.retention_days,
        r.cleanup_period_days, f.source_no,
        (
            select sha256(string_agg(int8send(d.start) || d.digest, ''::bytea order by d.start))
            from assoc.frames d
            where d.origin_id = f.origin_id and d.file_no = f.file_no and d.data is not null
        ) as digest
    from assoc.files f
    join assoc.origins o using (origin_id)
    join assoc.sources r using (origin_id, source_no)
    left join assoc.sessions s using (origin_id, source_no, session_key)
    where (:origin is null or o.label = :origin)
      and (:since is null or f.mtime >= :since)
      and (
        cast(:projects as bigint[]) is null
        or assoc_read.id(
            f.origin_id,
            coalesce(s.project_source_no, f.project_source_no),
            coalesce(s.project_key, f.project_key)
        ) = any (cast(:projects as bigint[]))
      )
    order by o.label, r.root, f.path, f.generation
"""
DELETED = """
    select o.uuid, d.file_key
    from assoc.deleted_files d
    join assoc.origins o using (origin_id)
    where (:origin is null or o.label = :origin)
      and not exists (
        select 1 from assoc.files f where f.origin_id = d.origin_id and f.file_key = d.file_key
      )
"""
DATA = """
    select start, data
    from assoc.frames
    where origin_id = cast(:origin as int4) and file_no = cast(:file as int4) and data is not null
    order by start
"""


def files_there(
    server: sqlite3.Connection,
    origin: str | None,
    since: str | None = None,
    projects: object = None,
) -> list[Any]:
    """Return the files that the server shows: of a label, since a time, of projects (ids)."""
    asked = {"origin": origin, "since": since, "projects": projects}
    return server.execute(FILES, asked).fetchall()
