"""A conversation in few words: what it was about, what was asked, how it ended, what it changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import islice

from .. import sql
from ..ask.conversation import Conversation
from ..ask.heading import cost_of, numbers_of, spent_of, tokens_of
from ..ask.message_text import typed
from ..ask.refs import Names
from .answers import Item
from .quotes import heading, quoted
from .windows import outcome

_PROMPTS = 4  # from each end
_MOST = 20  # entries of a list
_LONGEST = 600  # letters of a prompt
_OF_OUTCOME = 3_000

_FACTS = {
    "project": "project",
    "branch": "git_branch",
    "cwd": "cwd",
    "source": "source",
    "started": "started_at",
    "ended": "ended_at",
    "messages": "message_count",
    "prompt_count": "prompt_count",
    "tool_calls": "tool_call_count",
    "tag": "tag",
    "forked_from": "forked_from",
}
"""Fields of a summary, and of which column of the session they are."""


def summary(conversation: Conversation) -> Item:
    """Return what is known of a conversation, its messages left out."""
    session, connection = conversation.session, conversation.connection
    id = session["id"]
    last, state = outcome(conversation)
    if last is not None:
        last["text"] = _short(str(last["text"]), _OF_OUTCOME)
    edits = sql.ask(connection, "pages/session_edits", session=id, limit=-1).fetchall()
    counts = {
        "changed_files": len(edits),
        "subagents": len(conversation.subagents),
        "files": len(conversation.files),
    }
    item: Item = {
        "key": conversation.short_key(),
        "kind": "summary",
        "title": session["title"],
        "state": state,
        **{field: session[column] for field, column in _FACTS.items()},
        "branches": branches(connection, id),
        "models": conversation.models,
        **_usage(conversation),
        "resume": conversation.resume,
        "prompts": prompts(connection, [id], conversation.names()).get(id, []),
        "outcome": last,
        "totals": {field: count for field, count in counts.items() if count > _MOST} or None,
        "changed_files": _filled(edits),
        "work": _work(_rows(connection, "session_work", id)),
        "links": _rows(connection, "session_links", id),
        "subagents": [
            {"key": one.agent_key, "type": one.agent_type, "about": one.description,
             "messages": one.message_count}
            for one in islice(conversation.subagents, _MOST)
        ],
        "files": [f"{session['root']}/{file.path}" for file in islice(conversation.files, _MOST)],
    }  # fmt: skip
    return {field: value for field, value in item.items() if value not in (None, [], "")}


def _usage(conversation: Conversation) -> Item:
    """Return what a conversation used and cost, as numbers and in words."""
    known = spent_of(conversation)
    numbers = {**known.as_json(), "output_tokens": conversation.session["output_tokens"]}
    del numbers["stated_by_model"]
    words = [tokens_of(numbers_of(conversation), known), cost_of(known)]
    return {
        "usage": {name: value for name, value in numbers.items() if value is not None},
        "used": " · ".join(filter(None, words)),
    }


def branches(connection: sqlite3.Connection, session: object) -> list[str]:
    """Return the branches on which a conversation was held, if there were several."""
    rows = sql.ask(connection, "pages/session_branches", session=session)
    stated = [str(row["branch"]) for row in islice(rows, _MOST)]
    return stated if len(stated) > 1 else []


def prompts(
    connection: sqlite3.Connection, sessions: Iterable[object], names: Names, most: int = _PROMPTS
) -> dict[object, list[Item]]:
    """Return the first and the last prompts of sessions, by the id of the session."""
    found: dict[object, list[Item]] = {}
    ids = f"[{','.join(map(str, sessions))}]"
    for row in sql.ask(connection, "pages/session_prompts", sessions=ids, limit=most):
        text = _short(typed(row["kind"], row["text"] or ""), _LONGEST)
        item: Item = {
            "ref": names.of(row["file_id"], row["byte_offset"]),
            "number": row["number"],
            "time": row["timestamp"],
            "text": text,
        }
        found.setdefault(row["session_id"], []).append(item)
    return found


def render(item: Item) -> str:
    """Return a summary as text."""
    lines = ["", heading(item.get("key")) + f" {item.get('state', '')}".rstrip()]
    known = [item[field] for field in ("title", "project", "branch", "started") if field in item]
    if isinstance(several := item.get("branches"), list):
        known.append(f"branches: {', '.join(map(str, several))}")
    if known:
        lines.append(quoted(" · ".join(map(str, known))))
    if "used" in item:
        lines.append(f"Used: {item['used']}")
    for field, title in _TITLES.items():
        entries = item.get(field)
        if not isinstance(entries, list):
            continue
        totals = item.get("totals")
        total = totals.get(field) if isinstance(totals, dict) else None
        lines.append(f"{title}, {len(entries)} of {total}:" if total else f"{title}:")
        for entry in entries:
            lines += rendered_entry(entry)
    last = item.get("outcome")
    if isinstance(last, dict):
        lines += ["Last answer:", *rendered_entry(last)]
    return "\n".join(lines)


_TITLES = {
    "prompts": "Prompts",
    "changed_files": "Files changed",
    "work": "Tasks, todos and plans",
    "links": "Links",
    "subagents": "Subagents",
}


def rendered_entry(entry: object) -> list[str]:
    """Return the lines of an entry of a list: its reference, and what it says, quoted."""
    if not isinstance(entry, dict):
        return [quoted(str(entry))]
    lines = [heading(entry[field]) for field in ("ref", "key") if entry.get(field)]
    said = [str(value) for field, value in entry.items() if field in _SAID and value is not None]
    return lines + ([quoted(" · ".join(said))] if said else [])


_SAID = ("text", "path", "what", "title", "status", "kind", "url", "type", "about", "state")


def _work(rows: list[Item]) -> list[Item]:
    return [{name: value for name, value in row.items() if name != "id"} for row in rows]


def _rows(connection: sqlite3.Connection, query: str, session: object) -> list[Item]:
    return _filled(sql.ask(connection, f"pages/{query}", session=session))


def _filled(rows: Iterable[sqlite3.Row]) -> list[Item]:
    """Return the first rows as objects, without what they do not know."""
    return [
        {name: row[name] for name in row.keys() if row[name] is not None}  # noqa: SIM118
        for row in islice(rows, _MOST)
    ]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"
