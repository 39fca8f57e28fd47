"""Messages as a page shows them: who wrote them, what is folded, and what belongs to a call.

An entry knows the id of its message; its anchor is its line (`permalinks`). What the program
injects is gathered in one folded entry until a message for the reader follows. A subagent is inside
the call that spawned it; a long one is a link to a page of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from markupsafe import Markup

from .. import humanize
from ..ask import message_text, tool_calls
from ..ask.conversation import Conversation, Message, Subagent
from ..ask.page import by_call, facts_of
from ..terminal import one_line, readable
from . import pictures
from .budget import Budget
from .html import joined, markdown, plain, shortened
from .permalinks import Link
from .pictures import Picture
from .tool_input import body_of, summary_of

INLINE = 40
"""Messages of a subagent that are inside its call; a longer one has a page of its own."""

_BLOCKS = 4 * INLINE  # of such a subagent: a message may have any number of them
_MOST_INLINE = 400  # messages of subagents on one page
_LEVELS = 5  # of subagents inside each other
_MOST_AGENTS = 300  # on one page, however short
_SUMMARY = 90  # letters of what a folded entry says of itself
_FACTS = 300  # letters of what is said of a subagent
_MOST_PICTURES = 200  # on one page
_OPEN = 1_500  # letters of what is said that stand unfolded where folding is usual


@dataclass(slots=True)
class Entry:
    """One thing on the page."""

    id: int
    shape: str
    """typed, text, call, aside, noise, rule or copies"""
    who: str
    kind: str
    timestamp: str | None = None
    body: Markup = field(default_factory=Markup)
    summary: str = ""
    """What a folded entry shows; '' for one that is not folded."""
    facts: str = ""
    is_open: bool = False
    is_error: bool = False
    is_copy: bool = False
    is_cut: bool = False
    is_superseded: bool = False
    ids: list[int] = field(default_factory=list)
    """Messages that are inside: their anchors lead here."""
    link: Link | None = None
    inside: list[str] = field(default_factory=list)
    """The anchors of the messages that are inside."""
    original: str | None = None
    """Of a copy, the address where it was first said."""
    becomes_new: str | None = None
    """Of a run of copies, what opens the first message behind it that is no copy of anything."""
    is_target: bool = False
    steps: tuple[str | None, str | None] | None = None
    """Of a prompt, what opens the one before and the one behind it."""
    entries: list[Entry] = field(default_factory=list)
    """Of a run of copies, those that it consists of."""
    result: Markup | None = None
    pictures: list[Picture] = field(default_factory=list)
    agents: list[Nested] = field(default_factory=list)
    more_agents: int = 0
    """How many more the call spawned."""

    @property
    def clock(self) -> str:
        """Return the local time of day."""
        return humanize.clock(self.timestamp)

    @property
    def moment(self) -> str:
        """Return the local date and time."""
        return humanize.moment(self.timestamp)


@dataclass(slots=True)
class Nested:
    """A subagent where it was spawned."""

    key: str
    facts: str
    message_count: int
    entries: list[Entry] | None
    """None: it is too long to stand here."""
    is_open: bool = False


class Entries:
    """Makes entries of the messages of one conversation, as many as a page shows."""

    def __init__(
        self,
        conversation: Conversation,
        targets: Collection[int] = (),
        budget: Budget | None = None,
    ) -> None:
        """Remember the conversation; the messages `targets` are shown unfolded."""
        self._conversation = conversation
        self._targets = targets
        self._budget = budget or Budget()
        self._spawned = by_call(conversation.subagents)
        self._shown: set[int] = set()
        self._room = _MOST_INLINE
        self._pictures_left = _MOST_PICTURES
        self._level = 0
        cwd = conversation.session["cwd"]
        self._directory = f"{cwd}/" if cwd else None
        self._day = ""

    def of(self, messages: Iterable[Message]) -> Iterator[Entry]:
        """Yield the entries of messages, those that stand elsewhere left out."""
        noise: list[Message] = []
        for message in messages:
            if message.stands_elsewhere:
                continue
            if message.is_repeat or message.kind in message_text.NOISE:
                noise.append(message)
                continue
            if noise and message.kind != "tool_use":  # hooks run at every call
                yield self._noise(noise)
                noise = []
            yield from self._days(message)
            yield self._entry(message)
        if noise:
            yield self._noise(noise)

    def nested_all(self, subagents: Sequence[Subagent]) -> tuple[list[Nested], int]:
        """Return subagents as there is room for them, and how many more there are."""
        new = [one for one in subagents if one.id not in self._shown]  # no cycle
        some = new[: max(_MOST_AGENTS - len(self._shown), 0)]
        self._shown.update(one.id for one in some)
        return list(map(self._nested, some)), len(new) - len(some)

    def _nested(self, subagent: Subagent) -> Nested:
        """Return a subagent with its entries, if it is short."""
        facts = _cut(facts_of(subagent), _FACTS)
        nested = Nested(subagent.agent_key, facts, subagent.message_count, None)
        is_short = subagent.message_count <= min(INLINE, self._room)
        if is_short and self._level < _LEVELS:
            found = list(self._conversation.subagent_messages(subagent, limit=_BLOCKS + 1))
            if len(found) <= _BLOCKS:
                self._room -= subagent.message_count
                self._level += 1
                day, self._day = self._day, "nested"
                nested.entries = list(self.of(found))
                self._day = day
                self._level -= 1
        return nested

    def _days(self, message: Message) -> Iterator[Entry]:
        day = humanize.day(message.timestamp or "")
        if day and day != self._day and self._day != "nested":
            self._day = day
            yield Entry(0, "rule", day, "day")

    def _entry(self, message: Message) -> Entry:
        kind, text = message.kind, message.content
        if kind in message_text.PEOPLE:
            entry = self._new(message, "typed", "You" if kind != "queued_prompt" else "You, queued")
            entry.body = plain(message_text.typed(kind, text).strip(), self._budget)
        elif kind == "text":
            entry = self._new(message, "text", "Agent")
            entry.body = markdown(text, self._budget)
        elif kind == "tool_use":
            entry = self._call(message)
        elif kind == "system" and text.startswith(message_text.COMPACTED):
            entry = self._new(message, "rule", "Conversation compacted")
        else:
            entry = self._aside(message)
        return entry

    def _new(self, message: Message, shape: str, who: str) -> Entry:
        return Entry(
            id=message.id,
            shape=shape,
            who=who,
            kind=message.kind,
            timestamp=message.timestamp,
            is_open=message.id in self._targets,
            is_copy=message.copy_of is not None,
            is_cut=bool(message.is_cut),
            is_superseded=bool(message.is_superseded),
            is_error=bool(message.is_error) or message.kind == "error",
        )

    def _call(self, message: Message) -> Entry:
        entry = self._new(message, "call", one_line(message.tool or "tool"))
        entry.summary = _cut(summary_of(message, self._directory))
        entry.facts, _ = tool_calls.facts_of(message)
        entry.is_error = message.status == "error"
        entry.body = body_of(message, self._budget)
        if message.result_id is not None:
            entry.ids = [message.result_id]
            entry.is_open = entry.is_open or message.result_id in self._targets
            text = self._conversation.text(message.result_id)
            entry.result = shortened(text, self._budget) if text.strip() else None
            entry.pictures = self._pictures(message.result_id, text)
        if message.output_file:
            note = "the output was too large for the transcript"
            entry.facts = f"{entry.facts} · {note}".removeprefix(" · ")
        spawned = self._spawned.get(message.tool_call_id or 0, ())
        entry.agents, entry.more_agents = self.nested_all(spawned)
        return entry

    def _aside(self, message: Message) -> Entry:
        who = _WHO.get(message.kind, message.kind.replace("_", " ").capitalize())
        entry = self._new(message, "aside", who)
        text = message_text.heard(message.kind, message.content).strip()
        if message.kind == "image":
            shown = self._budget.beginning(readable(text), _OPEN)
            entry.body = Markup('<p class="ai-image">{}</p>').format(shown)
            entry.pictures = self._pictures(message.id, text)
            return entry
        is_prose = message.kind in ("agent_prompt", "compact_summary", "agent_message", "thinking")
        entry.body = (markdown if is_prose else shortened)(text, self._budget)
        is_line = len(text) <= _SUMMARY and "\n" not in text  # folded it would be no shorter
        if not is_line and (len(text) >= _OPEN or message.kind not in _UNFOLDED):
            entry.summary = _cut(one_line(text))
        return entry

    def _pictures(self, message: int, text: str) -> list[Picture]:
        found = list(islice(pictures.in_text(message, text), self._pictures_left))
        self._pictures_left -= len(found)
        return found

    def _noise(self, messages: list[Message]) -> Entry:
        counts: Counter[str] = Counter(
            "repeated block" if m.is_repeat else message_text.NOISE[m.kind] for m in messages
        )
        entry = self._new(messages[0], "noise", "")
        entry.ids = [message.id for message in messages[1:]]
        entry.is_open = any(message.id in self._targets for message in messages)
        entry.summary = ", ".join(humanize.many(count, word) for word, count in counts.items())
        if len(messages) == 1 and not messages[0].is_repeat:
            entry.summary += ": " + _cut(one_line(message_text.untagged(messages[0].content[:400])))
        entry.body = joined(shortened(message.content, self._budget) for message in messages)
        return entry


_UNFOLDED = {"agent_prompt", "agent_message", "error", "interrupt", "system"}

_WHO = {
    "agent_prompt": "Task", "compact_summary": "Summary of the conversation so far",
    "tool_result": "Result", "task_notification": "Background task",
    "agent_message": "Message from an agent", "bash_output": "Output",
    "command_output": "Output", "system": "Notice", "interrupt": "Interrupted",
}  # fmt: skip


def _cut(text: str, most: int = _SUMMARY) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
