"""Titles of sessions: the best one that is stated anywhere, and where it comes from."""

from __future__ import annotations

import sqlite3

_MAX_TITLE = 200
_READ = 4_000  # letters of a prompt that are looked at for its title
_PLAN = "implement the following plan"
"""How a prompt begins that an agent wrote itself, when its user accepted a plan."""

_TITLES = {
    "custom_title": "custom-title",
    "ai_title": "ai-title",
    "agent_name": "agent-name",
    "index_title": "index",
    "summary": "summary",
    "first_prompt": "prompt",
    "history": "history",
    "slug": "slug",
}
"""Candidates for the title of a session, the best first, each with the name of its source."""


def refresh_summaries(connection: sqlite3.Connection) -> None:
    """Find the session of each summary line: the one that has its leaf line."""
    connection.execute(
        "create temp table if not exists owners (id integer primary key, session_id integer)"
    )
    connection.execute("delete from owners")
    connection.execute(
        "insert into owners select u.id, ("
        " select m.session_id from messages m where m.uuid = u.leaf_uuid and m.copy_of is null"
        # Each block has one original. By block, not by id: ids follow the order of reading.
        " order by m.session_id is null, m.block limit 1) from summaries u"
        " where u.session_id is null or u.session_id in (select id from touched_sessions)"
        " or u.file_id in (select id from touched_files)"
    )
    for column in ("u.session_id", "o.session_id"):
        connection.execute(
            f"insert or ignore into touched_sessions select {column} from owners o"
            " join summaries u on u.id = o.id"
            f" where u.session_id is not o.session_id and {column} is not null"
        )
    connection.execute(
        "update summaries"
        " set session_id = (select o.session_id from owners o where o.id = summaries.id)"
        " where id in (select o.id from owners o cross join summaries u on u.id = o.id"
        "  where u.session_id is not o.session_id)"
    )


def of_prompt(text: str | None) -> str | None:
    """Return a prompt as a title: plain text, and of an accepted plan the plan's own title."""
    if text is None:
        return None
    text = text[:_READ].strip()
    if text[: len(_PLAN)].lower() == _PLAN:
        plan = text[len(_PLAN) :].lstrip(": \t\r\n")
        heading = plan.partition("\n")[0] if plan.startswith("#") else plan
        kind, colon, title = heading.lstrip("# ").partition(":")
        is_named = colon and kind.strip().lower() in ("plan", "implementation plan")
        text = (title if is_named else heading.lstrip("# ")).strip() or text
    return text.lstrip("# ").replace("**", "").replace("`", "") or text


def refresh_titles(connection: sqlite3.Connection) -> None:
    """Write the titles of changed sessions, from `told` and `stated` (see `sessions`)."""
    connection.create_function("title_of_prompt", 1, of_prompt, deterministic=True)
    candidates = ", ".join(f"x.{column}" for column in _TITLES)
    sources = " ".join(
        f"when x.{column} is not null then '{name}'" for column, name in _TITLES.items()
    )
    connection.execute(f"""
        update sessions set
            title = rtrim(substr(trim(replace(replace(replace(coalesce(
                {candidates}, session_key
            ), char(13), ''), char(10), ' '), char(9), ' ')), 1, {_MAX_TITLE})),
            title_source = iif(x.is_list and x.custom_title is null and x.ai_title is not null,
                'list', case {sources} else 'id' end)
        from (
            select s.id, r.lists_sessions = 1 as is_list,
                nullif(m.custom_title, '') as custom_title,
                coalesce(nullif(m.ai_title, ''), nullif(e.title, '')) as ai_title,
                nullif(m.agent_name, '') as agent_name,
                nullif(e.index_title, '') as index_title,
                coalesce((
                    select u.title from summaries u join files a on a.id = u.file_id
                    where u.session_id = s.id
                    order by a.kind = 'transcript' desc, a.path desc, u.byte_offset desc limit 1
                ), nullif(e.summary, '')) as summary,
                title_of_prompt(coalesce(m.first_prompt, nullif(e.first_prompt, '')))
                    as first_prompt,
                coalesce(title_of_prompt((
                    select p.text from prompts p where p.session_id = s.id
                    order by p.timestamp, p.byte_offset limit 1
                )), nullif(e.job_title, '')) as history,
                nullif(m.slug, '') as slug
            from touched_sessions t cross join sessions s on s.id = t.id
            join sources r on r.id = s.source_id
            left join told m on m.session_id = s.id
            left join stated e on e.session_id = s.id
        ) x where x.id = sessions.id and sessions.id in (select id from touched_sessions)
    """)
