"""A conversation as Markdown that reads well in a pull request.

Each prompt is a heading with the prompt as a quotation below it; what the agent wrote stands as it
is; everything else is folded: thinking, tool calls, and inside of these the subagents.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from .. import humanize
from ..records import RUN
from ..terminal import cut, one_line
from . import export_facts, message_text, tool_calls
from .conversation import Message, Subagent
from .export import ExportedConversation
from .markdown_text import code, escaped, fenced, heading, in_html, prose, quoted
from .page import by_call, facts_of

_TITLE = 80  # columns of a prompt in its heading
_SUMMARY = 100  # columns of what a folded part says of itself
_LEVELS = 20  # of subagents inside each other; a deeper one is at the end
_FEW_PROMPTS = 2  # need no table of contents
_OF_ADDRESSES = "!#$%&'()*+,/:;=?@[]~"
_REPEATED = "repeated block"


def pieces(connection: sqlite3.Connection, conversation: ExportedConversation) -> Iterator[str]:
    """Yield the Markdown of a conversation."""
    for block in _Document(connection, conversation).blocks():
        yield f"{block}\n\n"


def index(title: str, rows: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """Yield a page that links to files: the name of each, its title, and facts about it."""
    yield f"{heading(title, 1)}\n\n"
    for name, text, about in rows:
        yield f"- [{escaped(one_line(text))}]({quote(name)}) {escaped(one_line(about))}\n"


class _Document:
    """Writes the blocks of one conversation; between two of them is an empty line."""

    def __init__(self, connection: sqlite3.Connection, conversation: ExportedConversation) -> None:
        self._connection = connection
        self._conversation = conversation
        self._spawned = by_call(conversation.subagents)
        self._shown: set[int] = set()
        self._prompts = 0
        self._level = 0
        cwd = conversation.session["cwd"]
        self._directory = f"{cwd}/" if cwd else None

    def blocks(self) -> Iterator[str]:
        """Yield the blocks of the document."""
        yield from self._header()
        written = 0
        for file in self._conversation.files_with_messages():
            if written:
                yield "---"
                yield code(self._conversation.clean(file.path))
            for block in self._messages(self._conversation.messages(file)):
                written += 1
                yield block
        if not written:
            yield "No messages of this session are indexed."
        yield from self._unspawned()
        yield "---"
        for sentence in export_facts.closing(self._conversation):
            yield escaped(sentence)

    def _header(self) -> Iterator[str]:
        conversation = self._conversation
        yield heading(export_facts.title_of(conversation), 1)
        found = export_facts.facts(self._connection, conversation)
        yield "\n".join(f"- **{name}:** {escaped(value)}" for name, value in found)
        if conversation.resume is not None:
            yield f"Resume: {code(conversation.resume)}"
        if links := list(export_facts.links(self._connection, conversation)):
            yield "\n".join(f"- {escaped(kind)}: {_linked(url)}" for kind, url, _ in links)
        yield from _folded("Source files", [fenced("\n".join(export_facts.places(conversation)))])
        prompts = [
            f"{number}. [{escaped(self._title(message))}](#{conversation.anchor(message)})"
            for number, message in enumerate(conversation.prompts(), start=1)
        ]
        if len(prompts) > _FEW_PROMPTS:
            yield from _folded("Prompts", ["\n".join(prompts)])

    def _messages(self, messages: Iterable[Message]) -> Iterator[str]:
        noise: list[Message] = []
        is_taken_back = False
        for message in messages:
            if message.is_repeat or message.kind in message_text.NOISE:
                noise.append(message)
                continue
            is_turn = message.is_superseded != is_taken_back
            if noise and (is_turn or message.kind != "tool_use"):  # hooks run at every call
                yield from _noise(noise)
                noise = []
            if is_turn:
                is_taken_back = not is_taken_back
                yield "---"
                yield f"*{message_text.BORDERS[is_taken_back].capitalize()}*"
            yield from self._message(message)
        if noise:
            yield from _noise(noise)

    def _message(self, message: Message) -> Iterator[str]:
        kind, text = message.kind, message.content
        if kind in message_text.PEOPLE:
            yield from self._typed(message)
        elif kind == "text":
            yield prose(text, self._level + 2)
        elif kind == "tool_use":
            yield from self._call(message)
        elif kind == "agent_prompt":
            yield heading("The task", self._level + 2)
            yield quoted(text)
        elif kind == "system" and text.startswith(message_text.COMPACTED):
            yield "---"
            yield "*Conversation compacted*"
        elif kind == "image":
            yield escaped(one_line(text))
        else:
            yield from self._aside(message)

    def _typed(self, message: Message) -> Iterator[str]:
        title = self._title(message)
        if self._level == 0:
            self._prompts += 1
            yield f'<a id="{self._conversation.anchor(message)}"></a>'
            yield heading(f"{self._prompts}. {title}", 2)
        else:
            yield heading(title, self._level + 2)
        queued = "queued " if message.kind == "queued_prompt" else ""
        if message.timestamp:
            yield f"*{queued}{humanize.moment(message.timestamp)}*"
        text = message_text.typed(message.kind, message.content).strip()
        if text != title:
            yield quoted(text)

    def _title(self, message: Message) -> str:
        return cut(one_line(message_text.typed(message.kind, message.content)), _TITLE)

    def _aside(self, message: Message) -> Iterator[str]:
        name = message.kind.replace("_", " ").capitalize()
        is_notification = message.kind == "task_notification"  # with words outside of its tags
        text = message.content if is_notification else message_text.untagged(message.content)
        summary = f"{name}: {one_line(message_text.heard(message.kind, message.content))}"
        is_prose = message.kind in ("thinking", "compact_summary", "agent_message")
        body = prose(text, self._level + 2) if is_prose else fenced(text.strip())
        yield from _folded(cut(summary, _SUMMARY), [body])

    def _call(self, message: Message) -> Iterator[str]:
        facts, _ = tool_calls.facts_of(message)
        target = cut(tool_calls.target_of(message, self._directory), _SUMMARY)
        mark = "✗ " if message.status == "error" else ""
        summary = f"{mark}<b>{in_html(message.tool or 'tool')}</b>"
        summary += f" <code>{in_html(target)}</code>" if target else ""
        summary += f" · {in_html(facts)}" if facts else ""
        yield f"<details>\n<summary>{summary}</summary>"
        yield from _input(message)
        spawned = self._spawned.get(message.tool_call_id or 0, ()) if self._level < _LEVELS else ()
        for subagent in self._new(spawned):
            yield from self._subagent(subagent)
        if message.result_id is not None:
            text = self._conversation.text(message.result_id)
            yield "Result:" if text.strip() else "No output."
            if text.strip():
                yield fenced(text)
        if output := self._conversation.output_file(message):
            yield "Whole output, from its own file:"
            yield fenced(output)
        yield "</details>"

    def _new(self, subagents: Iterable[Subagent]) -> list[Subagent]:
        """Return those that are not shown yet; from now on they are, so no cycle."""
        new = [one for one in subagents if one.id not in self._shown]
        self._shown.update(one.id for one in new)
        return new

    def _subagent(self, subagent: Subagent) -> Iterator[str]:
        yield f"<details>\n<summary><b>Subagent</b> {in_html(facts_of(subagent))}</summary>"
        self._level += 1
        yield from self._messages(self._conversation.subagent_messages(subagent))
        self._level -= 1
        yield "</details>"

    def _unspawned(self) -> Iterator[str]:
        rest = self._new(self._conversation.subagents)
        shown = [one for one in rest if one.kind != "warmup" and self._conversation.choice.tools]
        if shown:
            yield heading("Subagents without a call here", 2)
        for subagent in shown:
            yield from self._subagent(subagent)
        if hidden := len(rest) - len(shown):
            yield f"{humanize.many(hidden, 'subagent')} not shown."


def _linked(url: str) -> str:
    """Return an address as a link, if it leads to a page."""
    if not url.startswith(("https://", "http://")):
        return code(url)
    return f"<{quote(url, safe=_OF_ADDRESSES)}>"


def _input(message: Message) -> Iterator[str]:
    """Yield the input of a call: changes as a difference, a command as one, the rest as JSON."""
    arguments = tool_calls.arguments_of(message)
    if not arguments:
        if message.content.strip("{} \n"):
            yield fenced(message.content)
        return
    rest = dict(arguments)
    if tool_calls.changes_files(message) and not isinstance(arguments.get("edits"), list):
        yield fenced("\n".join(_changed(rest)), "diff")
    elif message.action == RUN and isinstance(arguments.get("command"), str):
        yield fenced(str(rest.pop("command")), "sh")
    for key, value in list(rest.items()):
        if isinstance(value, str) and "\n" in value:
            del rest[key]
            yield f"{escaped(one_line(key))}:"
            yield fenced(value)
    if rest:
        yield fenced(json.dumps(rest, ensure_ascii=False, indent=2), "json")


def _changed(arguments: dict[str, object]) -> Iterator[str]:
    """Yield what was and what is, line by line, and take it out of the arguments."""
    for key, sign in (
        ("old_string", "-"),
        ("new_string", "+"),
        ("new_source", "+"),
        ("content", "+"),
    ):
        text = arguments.get(key)
        if isinstance(text, str):
            del arguments[key]
            yield from (f"{sign} {line}" for line in text.split("\n") if text)


def _noise(messages: list[Message]) -> Iterator[str]:
    counts: Counter[str] = Counter(
        _REPEATED if one.is_repeat else message_text.NOISE[one.kind] for one in messages
    )
    summary = ", ".join(humanize.many(count, word) for word, count in counts.items())
    yield from _folded(summary, (fenced(one.content) for one in messages))


def _folded(summary: str, blocks: Iterable[str]) -> Iterator[str]:
    yield f"<details>\n<summary>{in_html(summary)}</summary>"
    yield from blocks
    yield "</details>"
