"""Messages on a page of at most 100 columns.

What a person typed stands behind a bar; what the agent answered is plain text; everything else is
cut to what one wants to see at a glance: thinking to a few lines, a tool call to one line with a
few lines of its result, what the program injected to one line for all that follows each other.
A subagent stands, indented, under the call that spawned it. A message that is marked, and with
`full` every message, is whole.

Everything is yielded line by line: a conversation may be longer than memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from .. import humanize
from ..terminal import Paint, columns, cut, one_line, readable, safe, wrap
from . import message_text, tool_calls
from .conversation import TOOL_KINDS, Conversation, Message, Subagent
from .output import Marked
from .refs import Names

_MIN_WIDTH = 60  # deeper subagents are not indented further: there must be room for text
_TASK_LINES = 10
_LEVELS = 20  # of subagents inside each other; a deeper one stands at the end
# What follows each other of these, or of NOISE, is one line.
_REPEATED = "repeated block"
_CUT = "… the text ends here, at 256 KiB; its file has the rest"


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
    """Results that do not stand under a call, because it is in another file."""
    opened: str = ""
    """Reference of the line that is marked."""


def by_call(subagents: Iterable[Subagent]) -> dict[int, list[Subagent]]:
    """Return the subagents that a call spawned, under the number of that call."""
    found: dict[int, list[Subagent]] = {}
    for subagent in subagents:
        if subagent.spawned_by is not None:
            found.setdefault(subagent.spawned_by, []).append(subagent)
    return found


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
        """Return those that are not on the page."""
        return [s for s in self.subagents if s.id not in self.shown]


class Page:
    """Writes messages in one width; a subagent gets a narrower page."""

    def __init__(self, conversation: Conversation, look: Look, progress: Progress) -> None:
        self._conversation = conversation
        self._look = look
        self._paint = look.paint
        self._progress = progress
        cwd = conversation.session["cwd"]
        self._view = tool_calls.View(look.width, look.paint, f"{cwd}/" if cwd else None, look.full)
        self._names: Names | None = None

    def rule(self, text: str) -> Iterator[str]:
        """Yield a line across the page with a text in it."""
        text = cut(one_line(text), self._look.width - 8)
        yield ""
        line = f"─── {text} ".ljust(self._look.width - (columns(text) - len(text)), "─")
        yield self._paint(line, dim=True)

    def messages(self, messages: Iterable[Message]) -> Iterator[str]:
        """Yield the lines of messages."""
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
        facts = [self.ref(message), humanize.moment(message.timestamp)]
        self._progress.day = humanize.day(message.timestamp or "")
        yield ""
        yield self._paint(" · ".join(one_line(fact) for fact in facts if fact), "yellow")
        for number, line in enumerate(self._message(message)):
            if line or number:
                yield line

    def ref(self, message: Message) -> str | None:
        """Return the reference to the line of a message."""
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
            facts = [self._look.opened, kind.replace("_", " "), humanize.moment(message.timestamp)]
            headline = " · ".join(one_line(fact) for fact in facts if fact)
            yield ""
            yield Marked(self._paint(f"┏ {cut(headline, self._look.width - 2)}", "yellow"))
        narrow = replace(
            self._look, width=max(self._look.width - 2, _MIN_WIDTH), full=True, nested=False
        )
        self._progress.day = humanize.day(message.timestamp or "")
        page = Page(self._conversation, narrow, self._progress)
        for number, line in enumerate(page._message(message)):
            if line or number:
                yield f"{bar} {line}".rstrip()

    def unspawned(self) -> Iterator[str]:
        """Yield the subagents that stand under no call of this conversation."""
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
                yield self._paint(f"· {humanize.many(count, word)} not shown", dim=True)

    def _is_left_out(self, message: Message) -> bool:
        if not self._look.tools and message.kind in TOOL_KINDS:
            return True
        return message.stands_elsewhere

    def _noise(self, noise: Counter[str], sample: str) -> Iterator[str]:
        if not noise:
            return
        text = ", ".join(humanize.many(count, word) for word, count in noise.items())
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
        day = humanize.day(message.timestamp or "")
        if day and day != self._progress.day:
            self._progress.day = day
            yield from self.rule(day)
        yield ""
        note = humanize.clock(message.timestamp)
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
        """Yield the first `limit` lines of a text, and how many more there are."""
        wrapped = wrap(readable(text.strip()), self._look.width - indent)
        yield from islice(wrapped, None if self._look.full else limit)
        more = sum(1 for _ in wrapped)
        if more:
            yield f"… {humanize.many(more, 'more line')}"

    def _call(self, message: Message) -> Iterator[str]:
        yield tool_calls.headline(message, self._view)
        has_said = False
        for subagent in self._progress.spawned_by(message.tool_call_id):
            yield from self._subagent(subagent)
            has_said = has_said or (subagent.message_count > 0 and self._look.nested)
        if has_said and message.status != "error" and not self._look.full:
            return  # the result is the last thing that the subagent said
        result = message.result_id
        text, is_cut = self._conversation.whole_text(result) if result is not None else ("", False)
        yield from tool_calls.details(message, text, self._view)
        if (is_cut or message.is_cut) and self._look.full:
            yield self._paint(_CUT, dim=True)
        if message.output_file and self._look.full:
            key = self._conversation.session["session_key"]
            more = one_line(f"output:{key}/{message.output_file}")
            yield self._paint(f"    the whole output: assoc-ingest show {more}", dim=True)

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


def facts_of(subagent: Subagent) -> str:
    """Return one line about a subagent: what it is, what for, how long, its key."""
    facts = [
        subagent.agent_type or subagent.name or subagent.kind,
        subagent.description,
        humanize.many(subagent.message_count, "message") if subagent.message_count else None,
        f"{humanize.tokens(subagent.tokens, subagent.partial)} tokens" if subagent.tokens else None,
        subagent.agent_key,
    ]
    return " · ".join(fact for fact in facts if fact)
