"""Prints a conversation: its heading, its messages a page wide, tool calls and their output."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from .. import terminal
from ..ask import conversation as message_text
from ..ask import excerpt as excerpts
from ..ask.conversation import (
    BOXES,
    PEOPLE,
    TOOL_KINDS,
    Conversation,
    File,
    Message,
    Subagent,
    arguments_of,
    by_call,
    call_facts,
    changes_of,
    facts_of,
    target_of,
    things_to_do,
    typed,
)
from ..ask.excerpt import Excerpt, Options
from ..ask.notes import notes_above
from ..ask.output import Marked
from ..ask.refs import MOST_ENTRIES, Entry, KeyMatch, Line, Names
from ..ask.since import changed_since
from ..ask.usage import spent_of
from ..edits import Change
from ..terminal import Paint, columns, cut, one_line, readable, safe, to_copy, wrap


@dataclass(frozen=True, slots=True)
class Look:
    """How wide, in colour or not, with tools or without, whole or at a glance."""

    width: int
    paint: Paint
    tools: bool = True
    full: bool = False
    nested: bool = True
    """Are subagents shown inside the calls that spawned them? Else each is one line."""
    marks: frozenset[int] = frozenset()
    """Messages that are marked; of a call that has one as its result, the call is."""
    alone: frozenset[int] = frozenset()
    """Results that are not below a call, because it is in another file."""
    directory: str | None = None
    """Paths below it are shown short."""
    opened: str = ""
    """Reference of the line that is marked."""


# ------------------------------------------------------------------------------------------------
# Prints a tool call: its input, its status, and the start of its output, or all of it.


_INDENT = "    "
_RESULT_LINES = 4
_ERROR_LINES = 12
_CHANGED_LINES = 4
_COLOURS = {"-": "red", "+": "green"}
_MANY = 100_000  # letters of a result that are looked at


def _headline(message: Message, look: Look) -> str:
    """Return the line of the call itself: tool, target, status and duration."""
    name = one_line(message.tool or "tool")
    facts, colour = call_facts(message)
    room = look.width - columns(name) - columns(facts) - 6
    target = cut(target_of(message, look.directory), max(room, 10))
    plain = f"▸ {name}  {target}"
    painted = look.paint("▸ ", "blue") + look.paint(name, "blue", bold=True) + f"  {target}"
    if not facts:
        return painted.rstrip()
    gap = " " * max(2, look.width - columns(plain) - columns(facts))
    return painted + gap + look.paint(facts, colour, dim=colour is None)


def _details(message: Message, result: str, look: Look) -> Iterator[str]:
    """Yield a few lines of the call's change or output; all of its input and output if whole."""
    is_error = message.status == "error"
    if look.full:
        yield from _whole_input(message, look)
        yield from _input_text(result, look, "→ ", "red" if is_error else None)
    elif not is_error and (changes := changes_of(message)):
        yield from _changes(changes, look)
    elif not is_error and (items := things_to_do(message)) is not None:
        yield from _output_items(items, look)
    else:
        limit, colour = (_ERROR_LINES, "red") if is_error else (_RESULT_LINES, None)
        yield from _start_of(result, limit, look, colour)


def _changes(changes: Iterable[Change], look: Look) -> Iterator[str]:
    for change in changes:
        for text, sign in ((change.old, "-"), (change.new, "+")):
            yield from _start_of(text, _CHANGED_LINES, look, _COLOURS[sign], f"{sign} ")
        lines = change.patched() if change.patch else []
        for line in lines[:_CHANGED_LINES]:
            yield from _start_of(line[1:] or " ", 1, look, _COLOURS[line[0]], f"{line[0]} ")
        if len(lines) > _CHANGED_LINES:
            more = terminal.many(len(lines) - _CHANGED_LINES, "more line")
            yield look.paint(f"{_INDENT}… {more}", dim=True)


def _output_items(items: list[object], look: Look) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict):
            box = BOXES.get(str(item.get("status")), "☐")
            text = one_line(f"{box} {item.get('content') or item.get('activeForm') or ''}")
            yield look.paint(_INDENT + cut(text, look.width - len(_INDENT)), dim=True)


def _start_of(
    text: str, limit: int, look: Look, colour: str | None, sign: str = ""
) -> Iterator[str]:
    """Yield the first lines of a text, each cut to the width, and how many more there are."""
    rows = readable(text[:_MANY].strip("\r\n").rstrip()).split("\n") if text.strip() else []
    for row in islice(rows, limit):
        line = _INDENT + cut(sign + row, look.width - len(_INDENT))
        yield look.paint(line.rstrip(), colour, dim=colour is None)
    more = len(rows) - limit + text.count("\n", _MANY)
    if more > 0:
        yield look.paint(f"{_INDENT}… {terminal.many(more, 'more line')}", dim=True)


def _whole_input(message: Message, look: Look) -> Iterator[str]:
    arguments = arguments_of(message)
    if not arguments and message.content.strip() != "{}":
        yield from _input_text(message.content, look)
    for key, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        yield from _input_text(f"{key}:\n{text}" if "\n" in text else f"{key}: {text}", look)


def _input_text(text: str, look: Look, head: str = "", colour: str | None = None) -> Iterator[str]:
    """Yield all lines of a text, the first with a head before the indent."""
    indent = " " * (len(_INDENT) - len(head)) + head
    if not text.strip():
        return
    for line in wrap(readable(text.strip("\r\n").rstrip()), look.width - len(_INDENT)):
        yield look.paint(f"{indent}{line}".rstrip(), colour, dim=colour is None)
        indent = _INDENT


# ------------------------------------------------------------------------------------------------
# Messages on a page of at most 100 columns.
#
# What a person typed has a bar before it; what the agent answered is plain text; everything else
# is shortened so that it can be read at a glance: thinking to a few lines, a tool call to one line
# with a few lines of its result, what the program injected to one line for all that follows each
# other. A subagent is indented below the call that spawned it. A message that is marked,
# and with `full` every message, is whole.
#
# Everything is yielded line by line: a conversation may be longer than memory.


_MIN_WIDTH = 60  # deeper subagents are not indented further: there must be room for text
_TASK_LINES = 10
_LEVELS = 20  # of subagents inside each other; a deeper one stands at the end
# What follows each other of these, or of NOISE, is one line.
_REPEATED = "repeated block"
_CUT = "… the text ends here, at 256 KiB; its file has the rest"


@dataclass(slots=True)
class Progress:
    """What of a conversation is on the page already."""

    subagents: list[Subagent]
    spawned: dict[int, list[Subagent]]
    shown: set[int] = field(default_factory=set)
    level: int = 0
    day: str = ""

    @classmethod
    def of(cls, subagents: list[Subagent], shown: Subagent | None = None) -> Progress:
        """Return where a page begins on which one of the subagents is shown already."""
        return cls(subagents, by_call(subagents), {shown.id} if shown else set())

    def spawned_by(self, call: int | None) -> list[Subagent]:
        """Return the subagents of a call; one that was shown is not shown again, so no cycle."""
        if call is None or self.level >= _LEVELS:
            return []
        return [one for one in self.spawned.get(call, ()) if one.id not in self.shown]

    def rest(self) -> list[Subagent]:
        return [s for s in self.subagents if s.id not in self.shown]


class Page:
    """Writes messages in one width; a subagent gets a narrower page."""

    def __init__(self, conversation: Conversation, look: Look, progress: Progress) -> None:
        self._conversation = conversation
        self._look = look
        self._paint = look.paint
        self._progress = progress
        self._names: Names | None = None

    def rule(self, text: str) -> Iterator[str]:
        text = cut(one_line(text), self._look.width - 8)
        yield ""
        line = f"─── {text} ".ljust(self._look.width - (columns(text) - len(text)), "─")
        yield self._paint(line, dim=True)

    def messages(self, messages: Iterable[Message]) -> Iterator[str]:
        noise: Counter[str] = Counter()
        sample = ""
        is_marked = is_taken_back = False
        for message in messages:
            was_marked, is_marked = is_marked, self._is_marked(message)
            if message.is_superseded != is_taken_back and not self._is_left_out(message):
                is_taken_back = not is_taken_back
                yield from self._noise(noise, sample)
                yield from self.rule(message_text.BORDERS[is_taken_back])
            if is_marked:
                yield from self._noise(noise, sample)
                yield from self._mark(message, is_first=not was_marked)
                continue
            if self._is_left_out(message):
                continue
            if message.is_repeat or (message.kind in message_text.NOISE and not self._look.full):
                noise[_REPEATED if message.is_repeat else message_text.NOISE[message.kind]] += 1
                sample = message.content
                continue
            if message.kind != "tool_use":  # hooks run at every call: a row of calls stays a row
                yield from self._noise(noise, sample)
            yield from self._message(message)
        yield from self._noise(noise, sample)

    def item(self, message: Message) -> Iterator[str]:
        """Yield the lines of a message that does not follow another, below its reference."""
        facts = [self.ref(message), terminal.moment(message.timestamp)]
        self._progress.day = terminal.day(message.timestamp or "")
        yield ""
        yield self._paint(" · ".join(one_line(fact) for fact in facts if fact), "yellow")
        for number, line in enumerate(self._message(message)):
            if line or number:
                yield line

    def ref(self, message: Message) -> str | None:
        if self._names is None:
            self._names = self._conversation.names()
        return self._names.of(message.file_id, message.byte_offset)

    def _is_marked(self, message: Message) -> bool:
        if message.id in self._look.marks:
            return message.answers is None or message.id in self._look.alone
        return message.result_id in self._look.marks

    def _mark(self, message: Message, *, is_first: bool) -> Iterator[str]:
        """Yield the lines of a message behind a bar, whole; the first of them says what it is."""
        bar = self._paint("┃", "yellow", bold=True)
        if is_first:
            kind = message.kind if message.id in self._look.marks else "tool_result"
            facts = [self._look.opened, kind.replace("_", " "), terminal.moment(message.timestamp)]
            headline = " · ".join(one_line(fact) for fact in facts if fact)
            yield ""
            yield Marked(self._paint(f"┏ {cut(headline, self._look.width - 2)}", "yellow"))
        narrow = replace(
            self._look, width=max(self._look.width - 2, _MIN_WIDTH), full=True, nested=False
        )
        self._progress.day = terminal.day(message.timestamp or "")
        page = Page(self._conversation, narrow, self._progress)
        for number, line in enumerate(page._message(message)):
            if line or number:
                yield f"{bar} {line}".rstrip()

    def unspawned(self) -> Iterator[str]:
        """Yield the subagents that no call of this conversation spawned."""
        rest = [s for s in self._progress.rest() if s.kind != "warmup"]
        stubs = [s for s in self._progress.rest() if s.kind == "warmup"]
        if rest and self._look.tools:
            yield from self.rule("subagents without a call here")
        hidden = 0
        for subagent in rest:
            if not self._look.tools:
                hidden += 1
            elif subagent.id not in self._progress.shown:  # it may be inside the one before
                yield ""
                yield from self._subagent(subagent)
        for count, word in ((hidden, "subagent"), (len(stubs), "warm-up agent")):
            if count:
                yield self._paint(f"· {terminal.many(count, word)} not shown", dim=True)

    def _is_left_out(self, message: Message) -> bool:
        if not self._look.tools and message.kind in TOOL_KINDS:
            return True
        return message.stands_elsewhere

    def _noise(self, noise: Counter[str], sample: str) -> Iterator[str]:
        if not noise:
            return
        text = ", ".join(terminal.many(count, word) for word, count in noise.items())
        if noise.total() == 1 and _REPEATED not in noise:
            text = f"{next(iter(noise))}: {one_line(message_text.untagged(sample[:400]))}"
        noise.clear()
        yield self._paint(cut(f"· {text}", self._look.width), dim=True)

    def _message(self, message: Message) -> Iterator[str]:
        kind, text = message.kind, message.content
        if kind in message_text.PEOPLE:
            yield from self._typed(message)
        elif kind == "text":
            yield ""
            yield from wrap(readable(text.strip("\n")), self._look.width)
        elif kind == "tool_use":
            yield from self._call(message)
            return
        elif kind == "agent_prompt":
            yield from self._behind_bar(self._some(text, _TASK_LINES, 2), "cyan")
        elif kind == "system" and text.startswith(message_text.COMPACTED):
            yield from self.rule("conversation compacted")
            if self._look.full:
                yield from self._aside(kind, text)
        else:
            yield from self._aside(kind, text)
        if message.is_cut and self._look.full:
            yield self._paint(_CUT, dim=True)

    def _typed(self, message: Message) -> Iterator[str]:
        day = terminal.day(message.timestamp or "")
        if day and day != self._progress.day:
            self._progress.day = day
            yield from self.rule(day)
        yield ""
        note = terminal.clock(message.timestamp)
        if message.kind == "queued_prompt":
            note = f"queued {note}".rstrip()
        text = message_text.typed(message.kind, message.content)
        if self._look.full:
            text = message_text.whole(message.content, text)
        text = readable(text.strip())
        yield from self._behind_bar(wrap(text, self._look.width - 4 - len(note)), "green", note)

    def _behind_bar(self, body: Iterable[str], colour: str, note: str = "") -> Iterator[str]:
        """Yield lines behind a bar, the first with a note at its end."""
        bar = self._paint("▌", colour)
        for line in body:
            room = self._look.width - 2 - columns(line) - len(note)
            end = " " * room + self._paint(note, dim=True) if note else ""
            note = ""
            yield f"{bar} {line}{end}".rstrip()

    def _aside(self, kind: str, text: str) -> Iterator[str]:
        aside = message_text.aside(kind)
        indent = " " * columns(aside.head)
        head = safe(aside.head)
        heard = message_text.heard(kind, text)
        if self._look.full:
            heard = message_text.whole(text, heard)
        for line in self._some(heard, aside.lines, 2 + len(indent)):
            shown = f"  {head}{line}".rstrip()
            head = indent
            yield self._paint(shown, aside.colour, dim=aside.colour is None)

    def _some(self, text: str, limit: int, indent: int) -> Iterator[str]:
        wrapped = wrap(readable(text.strip()), self._look.width - indent)
        yield from islice(wrapped, None if self._look.full else limit)
        more = sum(1 for _ in wrapped)
        if more:
            yield f"… {terminal.many(more, 'more line')}"

    def _call(self, message: Message) -> Iterator[str]:
        yield _headline(message, self._look)
        has_said = False
        for subagent in self._progress.spawned_by(message.tool_call_id):
            yield from self._subagent(subagent)
            has_said = has_said or (subagent.message_count > 0 and self._look.nested)
        if has_said and message.status != "error" and not self._look.full:
            return  # the result is the last thing that the subagent said
        result = message.result_id
        text, is_cut = self._conversation.whole_text(result) if result is not None else ("", False)
        yield from _details(message, text, self._look)
        if (is_cut or message.is_cut) and self._look.full:
            yield self._paint(_CUT, dim=True)
        if message.output_file and self._look.full:
            key = self._conversation.session["session_key"]
            more = to_copy("assoc-ingest", "show", f"output:{key}/{message.output_file}")
            yield self._paint(f"    the whole output: {more}", dim=True)

    def _subagent(self, subagent: Subagent) -> Iterator[str]:
        self._progress.shown.add(subagent.id)
        bar = self._paint("│", "cyan") if self._look.width > _MIN_WIDTH else ""
        narrow = replace(self._look, width=max(self._look.width - 2, _MIN_WIDTH))
        page = Page(self._conversation, narrow, self._progress)
        facts, dot, key = one_line(facts_of(subagent)).rpartition(" · ")
        end = f"{dot}{key}"  # the key is there to be typed
        headline = cut(facts, max(narrow.width - columns(end), 0)) + end
        yield f"{bar} {self._paint(headline, 'cyan')}".lstrip()
        if not self._look.nested:
            return
        self._progress.level += 1
        for line in page.messages(self._conversation.subagent_messages(subagent)):
            yield f"{bar} {line}".rstrip() if bar else line
        self._progress.level -= 1


# ------------------------------------------------------------------------------------------------
# The header of a conversation: what it is, what it cost, how to resume it, its files.


def _noted(conversation: Conversation, excerpt: Excerpt, look: Look) -> Iterator[str]:
    """Yield the lines of the user's notes on a conversation, or on the line that was opened."""
    key = str(conversation.session["session_key"])
    for note in notes_above(conversation.connection, key, excerpt.line):
        said = one_line(f"{note.ref} {note.label}: {note.text or ''}".rstrip(": "))
        yield from (look.paint(part, "yellow") for part in wrap(said, look.width))


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
        used = spent_of(conversation).words(conversation.session)
        rows.append([*conversation.sizes(), *(f"{name} {said}" for name, said in used.items())])
        if since := changed_since(conversation.connection, conversation.session):
            rows.append([since.said()])
    rows.append([f"session {text['session_key']}", _origin(text)])
    for facts in rows:
        line = " · ".join(fact for fact in facts if fact)
        yield from (look.paint(part, dim=True) for part in wrap(one_line(line), look.width))
    yield from _noted(conversation, excerpt, look)
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
    return f"{file.path} (deleted)" if file.gone_at else file.path


def _what(conversation: Conversation, text: dict[str, str]) -> list[str | None]:
    return [
        text.get("project"),
        text.get("git_branch"),
        f"tag {text['tag']}" if "tag" in text else "",
        f"with {text['agent']}" if "agent" in text else "",
        ", ".join(conversation.models),
        terminal.span(text.get("started_at"), text.get("ended_at")),
    ]


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


_LINEAGE = {
    "forked_from": "fork of",
    "continues": "continues",
    "derived_from": "derived from",
    "linked_session": "linked to",
    "continued_in": "continued in",
}


def _origin(text: dict[str, str]) -> str:
    return " · ".join(f"{said} {text[name]}" for name, said in _LINEAGE.items() if name in text)


# ------------------------------------------------------------------------------------------------
# Prints a conversation or a part of it: a header, the messages, and what else can be shown.
#
# Everything is yielded line by line: a conversation may be longer than memory.


_MOST_OF_PROMPT = 1_000  # letters, of which one line is shown above a call that failed


def lines(
    conversation: Conversation,
    look: Look,
    what: KeyMatch | Line | None = None,
    options: Options | None = None,
) -> Iterator[str]:
    options = options or Options(tools=look.tools)
    what = what or KeyMatch(str(conversation.session["session_key"]))
    excerpt = excerpts.choose(conversation, what, options)
    cwd = conversation.session["cwd"]
    look = replace(
        look,
        tools=options.tools,
        full=options.full,
        nested=excerpt.line is None,
        marks=excerpt.marks,
        alone=excerpt.alone,
        opened=_name(conversation, excerpt),
        directory=f"{cwd}/" if cwd else None,
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
    for subagent, messages in excerpts.selections(conversation, excerpt, options):
        if subagent is not None and excerpt.subagent is None:
            yield from page.rule(facts_of(subagent))
        yield from page.messages(messages)
    yield from _left_out(excerpt.later, excerpt.is_cut_behind, "later", look)


def _name(conversation: Conversation, excerpt: Excerpt) -> str:
    """Return the reference of the requested line, '' if there is none."""
    line = excerpt.line
    return (conversation.names().at(line.file.id, line.number) or "") if line else ""


def _left_out(turns: int, is_cut: bool, where: str, look: Look) -> Iterator[str]:
    known = [f"{where} messages of this turn"] if is_cut else []
    if turns:
        known.append(f"{terminal.many(turns, f'{where} turn')}")
    if known:
        yield ""
        yield look.paint(f"· {' and '.join(known)} not shown", dim=True)


def _selected(
    conversation: Conversation, excerpt: Excerpt, options: Options, page: Page, look: Look
) -> Iterator[str]:
    """Yield the selected messages, each below its reference."""
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
        yield look.paint("Nothing to show.", dim=True)


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
    """Return a sentence about what else can be shown."""
    key = conversation.short_key(excerpt.subagent)
    known = [] if options.full else ["--full shows everything uncut"]
    if excerpt.line is not None:
        known.insert(0, f"--context {4 * excerpts.CONTEXT} shows more around this line")
        known.append(f"{to_copy('show', name=key)} shows all of it")
    elif options.only is not None or excerpt.earlier:
        known.insert(0, f"{to_copy('show', name=f'{key}:LINE')} opens a line")
        known.append(f"{to_copy('show', name=key)} shows all of it")
    else:
        known.insert(0, f"{to_copy('show', name=f'{key}:LINE')} opens a line")
        known.append("--prompts, --errors, --tool NAME and --last N show less")
        if conversation.subagents and excerpt.subagent is None:
            agent = conversation.subagents[0].agent_key
            known.append(f"{to_copy('show', name=agent)} shows a subagent alone")
    return " · ".join(known)


# ------------------------------------------------------------------------------------------------
# Entries of a store, which are no messages: their facts, where they are, and their text.


_STATED = {"note": "on"}
"""What the line of a transcript is to an entry, where it does not state it."""


def entry_lines(entries: list[Entry], look: Look) -> Iterator[str]:
    """Yield the lines of entries: their facts, place and text."""
    place: tuple[str | None, str] | None = None
    for number, entry in enumerate(entries):
        if number:
            yield ""
        if place != (entry.session_key, entry.file):
            place = entry.session_key, entry.file
            yield from _where(entry, look)
        title = entry.title or (entry.text if entry.what == "todo" else None)
        for line in wrap(one_line(title), look.width) if title else ():
            yield look.paint(line, bold=True)
        known = [
            entry.ref,
            entry.kind,
            entry.facts,
            terminal.moment(entry.time),
            f"gone since {terminal.moment(entry.gone_at)}" if entry.gone_at else None,
            f"{_STATED.get(entry.what, 'stated in')} {entry.stated}"
            if entry.stated not in (None, entry.ref)
            else None,
        ]
        facts = " · ".join(one_line(fact) for fact in known if fact)
        yield from (look.paint(line, "cyan") for line in wrap(facts, look.width))
        if entry.text and entry.text != title:
            yield ""
            yield from wrap(readable(entry.text.strip("\n")), look.width)
    if len(entries) == MOST_ENTRIES:
        yield look.paint(f"· only the first {MOST_ENTRIES} are shown; give a longer name", dim=True)


def _where(entry: Entry, look: Look) -> Iterator[str]:
    """Yield the lines that say to which session an entry belongs, and in which file it is."""
    if entry.session_key and entry.session:
        of = one_line(f"session {entry.session_key} · {entry.session}")
        yield from (look.paint(line, dim=True) for line in wrap(of, look.width))
    if entry.file:
        yield look.paint(one_line(entry.file), dim=True)  # not cut: it is there to be copied
