"""What an exported conversation says of itself: at its head, and at its end."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from .. import humanize, sql
from ..terminal import one_line
from .export import ExportedConversation
from .heading import cost_of, spent_of, tokens_of


def title_of(conversation: ExportedConversation) -> str:
    """Return the title of a conversation on one line."""
    return one_line(str(conversation.session["title"] or "")) or "(untitled)"


def facts(
    connection: sqlite3.Connection, conversation: ExportedConversation
) -> Iterator[tuple[str, str]]:
    """Yield names and values: where and when it was held, with what, at what cost."""
    session = conversation.session
    text = {key: one_line(value) for key, value in session.items() if isinstance(value, str)}
    number = {key: value for key, value in session.items() if isinstance(value, int)}
    known = spent_of(conversation)
    counts = [
        f"{number['message_count']:,}",
        humanize.many(number["prompt_count"], "prompt"),
        humanize.many(number["tool_call_count"], "tool call"),
    ]
    if conversation.subagents:
        counts.append(humanize.many(len(conversation.subagents), "subagent"))
    found = {
        "Project": text.get("project"),
        "Branch": text.get("git_branch"),
        "Agent name": text.get("agent"),
        "Model": ", ".join(map(one_line, conversation.models)),
        "When": _when(text.get("started_at"), text.get("ended_at")),
        "Messages": ", ".join(counts),
        "Tokens": tokens_of(number, known).removeprefix("tokens "),
        "Cost": cost_of(known).removeprefix("cost "),
        "Stated cost": _dollars(session["stated_cost_usd"]),
        "Tag": text.get("tag"),
        "Fork of": text.get("forked_from"),
        "Linked to": text.get("linked_session"),
        "Source": text["source"],
        "Session": text["session_key"],
    }
    yield from ((name, value) for name, value in found.items() if value)


def links(
    connection: sqlite3.Connection, conversation: ExportedConversation
) -> Iterator[tuple[str, str, str]]:
    """Yield what a conversation links to: the kind, the address, and what to call it."""
    for row in sql.ask(connection, "pages/session_links", session=conversation.session["id"]):
        url = conversation.clean(str(row["url"]))
        title = conversation.clean(str(row["title"])) if row["title"] else url
        yield str(row["kind"]).replace("_", " "), url, one_line(title)


def places(conversation: ExportedConversation) -> Iterator[str]:
    """Yield the files in which the conversation is, and the directories that they are in."""
    for file in conversation.files:
        yield one_line(file.path) + (" (deleted)" if file.gone_at else "")
    for root in (str(conversation.session["root"]), *conversation.other_roots):
        yield f"in {one_line(root)}"


def closing(conversation: ExportedConversation) -> Iterator[str]:
    """Yield the sentences at the end of an export, when all of it is written."""
    choice = conversation.choice
    if conversation.masked:
        yield f"Masked: {counted(conversation.masked)}."
    elif not choice.redacts:
        yield "Credentials are not masked."
    if conversation.shortened:
        count = humanize.many(conversation.shortened, "text")
        yield f"Without its end: {count}; the original file has all of it."
    left_out = [name for name, kept in _PARTS.items() if not getattr(choice, kept)]
    if left_out:
        yield f"Left out: {' and '.join(left_out)}."
    yield "Exported with assoc-ingest."


def counted(masked: Counter[str]) -> str:
    """Return how many credentials of which kind were masked."""
    return ", ".join(f"{kind} ({count:,})" for kind, count in masked.most_common())


_PARTS = {"tool calls": "tools", "thinking": "thinking"}


def _when(start: str | None, end: str | None) -> str:
    """Return the time with its zone: who reads a file may be in another one."""
    if not start and not end:
        return ""
    zone = datetime.fromisoformat(start or end or "").astimezone()
    return f"{humanize.span(start, end)} (UTC{zone:%z})".replace("(UTC+0000)", "(UTC)")


def _dollars(amount: object) -> str:
    return humanize.money(amount) if isinstance(amount, int | float) else ""
