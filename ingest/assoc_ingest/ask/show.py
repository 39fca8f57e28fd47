"""Prints a conversation or a part of it: a header, the messages, and what else can be shown.

Everything is yielded line by line: a conversation may be longer than memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

from .. import humanize
from ..terminal import cut, one_line, wrap
from . import excerpt as excerpts
from .conversation import Conversation, Message
from .excerpt import Excerpt, Options
from .heading import heading, note_of
from .lookup import Key
from .message_text import PEOPLE, typed
from .page import Look as Look
from .page import Page, Progress, facts_of
from .refs import Line

MAX_WIDTH = 100
_MOST_OF_PROMPT = 1_000  # letters, of which one line is shown above a call that failed


def lines(
    conversation: Conversation,
    look: Look,
    what: Key | Line | None = None,
    options: Options | None = None,
) -> Iterator[str]:
    """Yield the lines of a conversation, or of what is asked for of it."""
    options = options or Options(tools=look.tools)
    what = what or Key(str(conversation.session["session_key"]))
    excerpt = excerpts.choose(conversation, what, options)
    look = replace(
        look,
        tools=options.tools,
        full=options.full,
        nested=excerpt.line is None,
        marks=excerpt.marks,
        alone=excerpt.alone,
        opened=_name(conversation, excerpt),
    )
    yield from heading(conversation, excerpt, look)
    page = Page(conversation, look, Progress.of(conversation.subagents, excerpt.subagent))
    if options.only is not None:
        yield from _selected(conversation, excerpt, options, page, look)
    elif excerpt.subagent is None and excerpt.is_whole and excerpt.line is None:
        yield from _whole(conversation, page, look)
    else:
        yield from _part(conversation, excerpt, options, page, look)
    yield ""
    for line in wrap(one_line(f"· {_more(conversation, excerpt, options)}"), look.width):
        yield look.paint(line, dim=True)


def _whole(conversation: Conversation, page: Page, look: Look) -> Iterator[str]:
    """Yield all messages, and the subagents without a call here."""
    written = 0
    for file in conversation.files:
        messages = conversation.messages(file)
        first = list(islice(messages, 1))
        if not first:
            continue
        if written:
            yield from page.rule(note_of(file))
        written += 1
        yield from page.messages(chain(first, messages))
    if not written and not conversation.subagents:
        yield from _nothing(look)
    yield from page.unspawned()


def _part(
    conversation: Conversation, excerpt: Excerpt, options: Options, page: Page, look: Look
) -> Iterator[str]:
    for note in excerpt.line.notes if excerpt.line else ():
        yield ""
        yield from (look.paint(line, "yellow") for line in wrap(one_line(note), look.width))
    if excerpt.subagent is not None:
        yield ""
    yield from _left_out(excerpt.earlier, excerpt.is_cut_before, "earlier", look)
    for part in excerpt.parts:
        yield from page.messages(excerpts.selected(conversation, part, options))
    yield from _left_out(excerpt.later, excerpt.is_cut_behind, "later", look)


def _name(conversation: Conversation, excerpt: Excerpt) -> str:
    """Return the reference of the line that was asked for, '' where none was."""
    line = excerpt.line
    return (conversation.names().at(line.file.id, line.number) or "") if line else ""


def _left_out(turns: int, is_cut: bool, where: str, look: Look) -> Iterator[str]:
    known = [f"{where} messages of this turn"] if is_cut else []
    if turns:
        known.append(f"{humanize.many(turns, f'{where} turn')}")
    if known:
        yield ""
        yield look.paint(f"· {' and '.join(known)} not shown", dim=True)


def _selected(
    conversation: Conversation, excerpt: Excerpt, options: Options, page: Page, look: Look
) -> Iterator[str]:
    """Yield the messages that are asked for, each below its reference."""
    is_empty = True
    for subagent, found in excerpts.selections(conversation, excerpt, options, context=True):
        items = _items(found, options, page, look)
        first = next(items, None)
        if first is None:
            continue
        is_empty = False
        if subagent is not None and excerpt.subagent is None:
            yield from page.rule(facts_of(subagent))
        yield from chain([first], items)
    if is_empty:
        yield ""
        yield look.paint("There are none here.", dim=True)


def _items(messages: Iterable[Message], options: Options, page: Page, look: Look) -> Iterator[str]:
    """Yield the lines of messages; above those that failed, what a person had asked for."""
    prompt: Message | None = None
    for message in messages:
        if options.errors and message.kind in PEOPLE:
            prompt = message
            continue
        if prompt is not None:
            text = one_line(typed(prompt.kind, prompt.content[:_MOST_OF_PROMPT]))
            yield ""
            yield look.paint(cut(f"▌ {text}", look.width), "green", dim=True)
            prompt = None
        yield from page.item(message)


def _nothing(look: Look) -> Iterator[str]:
    yield ""
    yield look.paint("No messages of this session are indexed.", dim=True)


def _more(conversation: Conversation, excerpt: Excerpt, options: Options) -> str:
    """Return a sentence that tells what else can be shown."""
    key = conversation.short_key(excerpt.subagent)
    known = [] if options.full else ["--full shows everything whole"]
    if excerpt.line is not None:
        known.insert(0, f"--context {4 * excerpts.CONTEXT} shows more around this line")
        known.append(f"show {key} shows all of it")
    elif options.only is not None or excerpt.earlier:
        known.insert(0, f"show {key}:LINE opens a line")
        known.append(f"show {key} shows all of it")
    else:
        known.insert(0, f"show {key}:LINE opens a line")
        known.append("--prompts, --errors, --tool NAME and --last N show less")
        if conversation.subagents and excerpt.subagent is None:
            agent = conversation.subagents[0].agent_key
            known.append(f"show {agent} shows a subagent alone")
    return " · ".join(known)
