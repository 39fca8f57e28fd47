"""What stands above a conversation: what it is, what it cost, how to go on with it, its files."""

from __future__ import annotations

from collections.abc import Iterator

from .. import humanize, sql
from ..terminal import one_line, wrap
from .conversation import Conversation, File
from .excerpt import Excerpt
from .page import Look, facts_of
from .usage import Spent, spent, stated


def heading(conversation: Conversation, excerpt: Excerpt, look: Look) -> Iterator[str]:
    """Yield the lines above a conversation; above a few turns of it, only what it is.

    What a session cost is added up from its responses, and the files of a session may be many: to
    open a line takes neither.
    """
    text = {key: value for key, value in conversation.session.items() if isinstance(value, str)}
    for line in wrap(one_line(text.get("title") or "(untitled)"), look.width):
        yield look.paint(line, bold=True)
    is_short = excerpt.line is not None or excerpt.subagent is not None
    rows = [_what(conversation, text)]
    if not is_short:
        rows.append(_counts(conversation))
    rows.append([f"session {text['session_key']}", _origin(text)])
    for facts in rows:
        line = " · ".join(fact for fact in facts if fact)
        yield from (look.paint(part, dim=True) for part in wrap(one_line(line), look.width))
    if conversation.resume is not None:  # not cut: it is there to be copied
        yield look.paint(f"Resume: {conversation.resume}", dim=True)
    if excerpt.subagent is not None:
        yield from _whose(conversation, excerpt, look)
    files = [note_of(file) for file in conversation.files] if not is_short else []
    if excerpt.line is not None:
        files = [excerpt.line.file.path]
    yield from (look.paint(one_line(file), dim=True) for file in files)
    if is_short:
        return
    yield look.paint(f"in {one_line(text['root'])}", dim=True)
    for root, title in zip(conversation.other_roots, conversation.other_titles, strict=True):
        called = f", called {title}" if title and title != text.get("title") else ""
        yield look.paint(one_line(f"in {root}{called}"), dim=True)


def note_of(file: File) -> str:
    """Return the path of a file, and whether it is still there."""
    return f"{file.path} (deleted)" if file.gone_at else file.path


def cost_of(known: Spent) -> str:
    """Return what a session cost, in words; '' where that is not known."""
    return f"cost {cost}" if (cost := known.cost()) else ""


def spent_of(conversation: Conversation) -> Spent:
    """Return what the responses of a session used and cost, and what its agent states of that."""
    rows = sql.ask(
        conversation.connection, "pages/session_stated", session=conversation.session["id"]
    ).fetchall()
    cost = conversation.session["stated_cost_usd"]
    said = stated(cost if isinstance(cost, float) else None, rows)
    return spent(conversation.connection, conversation.usage())._replace(stated=said)


def _what(conversation: Conversation, text: dict[str, str]) -> list[str | None]:
    return [
        text.get("project"),
        text.get("git_branch"),
        f"tag {text['tag']}" if "tag" in text else "",
        f"with {text['agent']}" if "agent" in text else "",
        ", ".join(conversation.models),
        humanize.span(text.get("started_at"), text.get("ended_at")),
    ]


def sizes_of(conversation: Conversation) -> list[str]:
    """Return how much of each kind a session has, in words."""
    number = numbers_of(conversation)
    subagents = len(conversation.subagents)
    return [
        humanize.many(number["prompt_count"], "prompt"),
        humanize.many(number["message_count"], "message"),
        humanize.many(number["tool_call_count"], "tool call"),
        *([humanize.many(subagents, "subagent")] if subagents else []),
    ]


def numbers_of(conversation: Conversation) -> dict[str, int]:
    """Return what is counted of a session."""
    return {key: value for key, value in conversation.session.items() if isinstance(value, int)}


def _counts(conversation: Conversation) -> list[str | None]:
    known = spent_of(conversation)
    tokens = tokens_of(numbers_of(conversation), known)
    return [*sizes_of(conversation), tokens, cost_of(known)]


def _whose(conversation: Conversation, excerpt: Excerpt, look: Look) -> Iterator[str]:
    """Yield the lines that say which subagent this is, and which call spawned it."""
    subagent = excerpt.subagent
    if subagent is None:
        return
    facts = f"subagent {facts_of(subagent)}"
    if subagent.parent is not None:
        facts += f" · of the subagent {subagent.parent}"
    call = conversation.place_of(subagent.call_id) if subagent.call_id is not None else None
    reference = conversation.names().of(*call) if call is not None else None
    if reference is not None:
        facts += f" · called in {reference}"
    yield from (look.paint(line, "cyan") for line in wrap(one_line(facts), look.width))


def tokens_of(number: dict[str, int], known: Spent) -> str:
    """Return the tokens of a session in words, '' where none are known."""
    if "input_tokens" not in number:
        return ""
    cached = number.get("cache_read_tokens", 0)
    fresh = number["input_tokens"] + number.get("cache_write_tokens", 0)
    output = known.tokens(number.get("output_tokens", 0))
    if known.partial and not fresh and not cached:  # the end of the run would have stated it
        return f"tokens {output}"
    return f"tokens {humanize.tokens(fresh)} in, {humanize.tokens(cached)} from cache, {output}"


_LINEAGE = {
    "forked_from": "fork of",
    "continues": "continues",
    "derived_from": "derived from",
    "linked_session": "linked to",
    "continued_in": "continued in",
}


def _origin(text: dict[str, str]) -> str:
    return " · ".join(f"{said} {text[name]}" for name, said in _LINEAGE.items() if name in text)
