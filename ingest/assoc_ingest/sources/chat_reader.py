"""Shared by the sources of agents: gathers a transcript; tools, patches and media that they have
in common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..edits import added_lines, line_hash
from ..fields import (
    MAX_TEXT,
    TOOL_KINDS,
    Zone,
    is_count,
    json_text,
    left_over,
    mapping,
    number,
    obvious_text,
    odd_letters,
    orjson,
    placeholder,
    string,
)
from ..paths import comparable
from ..records import (
    EDIT,
    ERROR,
    OK,
    OTHER,
    PENDING,
    AddedLine,
    Message,
    Record,
    SessionEntry,
    ToolCall,
    Transcript,
    UnmatchedResult,
    Usage,
)
from ..source import (
    DATABASE,
    LOG,
    UNREAD,
    Claim,
    Context,
    Line,
    Listing,
    Recognition,
    Source,
)
from .reader import JSONObject, Reader, complete_prefix, exact_object, object_in
from .tokens import Counts, merged, usage

# ------------------------------------------------------------------------------------------------
# Shared by sources of agents: the files that a patch for `apply_patch` changes.
#
# It names them on lines of their own: `*** Add File: a.py`, `*** Update File: a.py`, `*** Delete
# File: a.py`, `*** Move to: b.py`.


_patched = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.{1,4096})$", re.MULTILINE)


def patched(patch: str, cwd: str | None) -> tuple[str, ...]:
    """Return the files that a patch names, in full, each once."""
    names = dict.fromkeys(found[1].strip() for found in _patched.finditer(patch))
    return tuple(in_full(name, cwd) for name in names)


def in_full(path: str, cwd: str | None) -> str:
    """Return a path in full, if it is relative and the working directory is known."""
    is_full = path.startswith(("/", "\\")) or path[1:2] == ":"
    return path if is_full or cwd is None else f"{cwd.rstrip('/')}/{path}"


# ------------------------------------------------------------------------------------------------
# Shared by sources of agents: values without the bytes of images, and without signatures.
#
# Conversations contain data that only the model's provider can read: encrypted reasoning,
# signatures of thoughts. It is larger than the text itself.


_OPAQUE = frozenset(
    [
        *("signature", "thinkingSignature", "textSignature", "thoughtSignature"),
        *("reasoningOpaque", "encryptedContent", "encrypted_content"),
    ]
)
_MAX_DEPTH = 64


def image(media_type: object, data: object) -> str:
    """Return the description of an image, or of another file, in place of its bytes."""
    return placeholder({"type": "image", "source": {"media_type": media_type, "data": data}})


def image_in(block: JSONObject) -> str | None:
    """Return the description of a block that is an image or a file, None for other blocks."""
    if "data" in block and "mimeType" in block:
        return image(block["mimeType"], block["data"])
    return None


def text_of(content: object) -> str:
    """Return the text of a tool's result: texts as they are, images as their descriptions."""
    if isinstance(content, str):
        return content
    parts = map(_part_text, content) if isinstance(content, list) else [obvious_text(content)]
    return "\n".join(filter(None, parts))


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    block = mapping(part)
    return image_in(block) or string(block.get("text")) or obvious_text(block)


def readable(value: object, depth: int = 0) -> object:
    """Return a copy of a value that has only what people can read; images are described."""
    if depth >= _MAX_DEPTH:
        return value
    if isinstance(value, list):
        return [readable(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if (shown := image_in(value)) is not None:
        value = {**value, "data": shown}
    return {k: readable(item, depth + 1) for k, item in value.items() if k not in _OPAQUE}


# ------------------------------------------------------------------------------------------------
# Shared by sources of agents: a home with logs of JSON objects, and what their tools do.


_JOINTS = dict.fromkeys(map(ord, "-_"))  # that ids contain


class AgentSource(Source):
    """A source of an agent whose files are logs in one home, unless it says otherwise."""

    is_agent = True
    variable = ""
    """The environment variable that names the home, or a directory that has it."""
    below = ""
    """The home below what the variable names."""
    place = ""
    """The home below that of the user, if the variable is not set."""
    resume: tuple[str, ...] = ()
    """The command that resumes a session, with {} for its id; empty if there is none."""
    telling: tuple[str, ...] = ()
    """Files at the top of a home that only this agent has; without conversations it is one, too."""
    started_in: Callable[[JSONObject], str | None] | None = None
    """Returns the conversation in which one of a store was started, of several the outermost one,
    from the `data` of its first line; None if that is no subagent's."""

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """Return the configured home, else the default."""
        stated = environment.get(self.variable, "").strip()
        parts = (stated, self.below) if stated else (home, self.place)
        return ["/".join(filter(None, parts))] if parts[0] else []

    def recognises(self, listing: Listing) -> Recognition:
        """A home has files in the directories of the layout, with names as only this agent has."""
        paths = (tuple(path.split("/")) for path in listing)
        is_home = any(
            parts[0] in self.telling if len(parts) == 1 else self.claim(parts) for parts in paths
        )
        return Recognition.CERTAIN if is_home else Recognition.NO

    def resume_command(self, session_key: str) -> list[str] | None:
        """The program finds a session by its id."""
        is_id = session_key[:1].isalnum() and session_key.translate(_JOINTS).isalnum()
        return [word.format(session_key) for word in self.resume] if self.resume and is_id else None

    def shape(self, claim: Claim) -> str:
        """Conversations grow; databases and parts of other stores are read as entries."""
        is_part = claim.within is not None and claim.kind not in ("transcript", "agent")
        return UNREAD if is_part or claim.kind == DATABASE else LOG

    def classify(self, claim: Claim, lines: Iterable[bytes]) -> Claim:
        """The first line of a subagent's conversation in a store says that it is one."""
        if self.started_in is None or claim.kind != "transcript" or not claim.within:
            return claim
        value = object_in(next(iter(lines), b""))
        is_agent = self.started_in(mapping(value.get("data"))) is not None
        return self.as_kind(claim, "agent") if is_agent else claim

    def as_kind(self, claim: Claim, kind: str) -> Claim:
        """The path of such a conversation names the subagent, not the session."""
        if kind == "agent" and claim.within and claim.kind == "transcript":
            return replace(claim, kind=kind, session_key=None, agent_key=claim.session_key)
        return super().as_kind(claim, kind)

    def complete_prefix(self, claim: Claim, tail: bytes) -> int:
        """Whole objects at the start of an unterminated tail can be read."""
        return complete_prefix(tail)


def actions(**tools: str) -> Callable[[str | None], str]:
    """Return a function that says what a tool does by its name.

    `tools` has the names of the tools of each action, separated by blanks.
    """
    known = {tool: action for action, names in tools.items() for tool in names.split()}
    return lambda name: known.get(name or "", OTHER)


def exit_code(text: str, mark: str, end: str) -> int | None:
    """Return the exit code that an output states after its last `mark`, None if it states none."""
    return number(text.rpartition(mark)[2].partition(end)[0].strip()) if mark in text else None


# ------------------------------------------------------------------------------------------------
# Shared by sources that read conversations: a `Reader` that gathers a transcript.
#
# It gathers one row per content block, the two halves of each tool call, and facts of the
# session. The store can merge all of them with those of the next stretch of the file.


# The arguments that say what a call is about, the most specific first.
_TARGETS = (
    "file_path", "notebook_path", "command", "pattern", "url", "query", "path", "skill",
    "subject", "description", "recipient", "to", "prompt", "taskId", "task_id",
)  # fmt: skip
_MAX_TARGET = 300

_MAX_PROMPT = 2000

Position = tuple[int, int]


class Call(NamedTuple):
    """The calling half of a tool call."""

    name: str | None
    target: str | None
    timestamp: str | None
    position: Position
    length: int
    response_key: str | None = None
    """The response that made the call, for tools whose use is charged with it."""
    action: str = OTHER
    """What the tool does."""
    paths: tuple[str, ...] = ()
    """The files that it was given, if there are several."""


class Result(NamedTuple):
    """The answering half of a tool call."""

    status: str
    timestamp: str | None
    position: Position
    length: int
    stated_ms: int | None = None
    exit_code: int | None = None
    output_file: str | None = None
    search_count: int | None = None


def target(arguments: dict[str, object]) -> str | None:
    """Return what a call is about, on one line, or None."""
    for key in _TARGETS:
        value = arguments.get(key)
        if value and isinstance(value, str):
            return " ".join(value[: 4 * _MAX_TARGET].split())[:_MAX_TARGET]
    return None


def joined(tool_use_id: str | None, call: Call | None, answer: Result | None) -> ToolCall:
    """Return the record of a call, of its result, or of both."""
    position, length = (call or answer).position, (call or answer).length  # type: ignore[union-attr]
    return ToolCall(
        call.name if call else None,
        call.target if call else None,
        call.action if call else None,
        json_text(call.paths) if call and call.paths else None,
        answer.status if answer else PENDING,
        call.timestamp if call else None,
        answer.timestamp if answer else None,
        answer.stated_ms if answer else None,
        answer.exit_code if answer else None,
        answer.output_file if answer else None,
        answer.search_count if answer else None,
        call.response_key if call else None,
        tool_use_id,
        call.position if call else None,
        answer.position if answer else None,
        position[0],
        length,
        position[1],
    )


def _input(text: str) -> JSONObject:
    """Return the input of a call from its text; {} if it is no object."""
    try:
        return mapping(orjson.loads(text))
    except ValueError:
        return {}


def _as_it_is(value: JSONObject) -> JSONObject:
    return value


class ChatReader(Reader):
    """Reads the lines of a conversation."""

    action_of: Callable[[str | None], str] = staticmethod(actions())
    """What a tool does, by its name."""
    type_key = "type"
    """The field of a line that has its type."""

    def __init__(
        self,
        claim: Claim,
        zone: Zone | None = None,
        type_key: str | None = None,
        *,
        context: Context | None = None,
    ) -> None:
        super().__init__(claim, zone)
        self.type_key = type_key or self.type_key
        self.context: dict[str, Any] = {**(context or {})}
        """What later lines need to know of earlier ones."""
        self._calls: dict[str, Call] = {}
        self._results: dict[str, Result] = {}
        self._usage: dict[str, Usage] = {}
        self._facts: dict[str, Any] = {}
        self._message_count = 0
        self.counts_next = False
        """Does the next row that is not the program's make the line a message?"""
        self._started: str | None = None
        self._ended: str | None = None
        self._block = 0
        self._is_meta = self._is_sidechain = 0
        """Flags of the rows that follow."""
        self._uuid: str | None = None
        self._moment: str | None = None
        self.model: str | None = None
        """The model that the current line states."""
        self.parent: str | None = None
        """The id of the line before, if the current line states it."""

    @staticmethod
    def is_ours(value: JSONObject) -> bool:
        """Has an object the shape of a line of this format? The lines of stores have a table."""
        return "table" in value

    def take(self, value: JSONObject) -> None:
        """Take one line in, for `read_lines`."""
        raise NotImplementedError

    def read_lines(self, lines: Iterable[Line]) -> tuple[list[Record], Context]:
        """Turn lines into records, and return the context for the lines after them."""
        for value in self.objects(lines, self.is_ours, self.type_key):
            self.take(value)
        return self.finish(), self.context

    @staticmethod
    def status_of(text: str, *, is_error: bool) -> str:
        """Return how a call ended, by the text of its result."""
        return ERROR if is_error else OK

    def begin(self, value: JSONObject, *, is_message: bool | None) -> None:
        """Begin a line: its time, its id, and whether it counts as a message.

        With None, it does if it has a row that is not the program's.
        """
        moment = self._moment = self.time(value, "timestamp")
        if moment is not None:
            self._started = min(self._started or moment, moment)
            self._ended = max(self._ended or moment, moment)
        self._uuid = self.name(value, "uuid")
        self._block = 0
        self.model = self.parent = None
        self._message_count += bool(is_message)
        self.counts_next = is_message is None

    def say(self, kind: str, text: str, role: str, *, is_error: bool = False) -> None:
        """Add the row of the next block of the line."""
        if kind == "prompt" and text.strip():
            self._facts.setdefault("first_prompt", text[:_MAX_PROMPT])
        if self.counts_next and role != "system":
            self._message_count += 1
            self.counts_next = False
        self.add_row(kind, text, role, self._block, is_error)
        self._block += 1

    def add_row(self, kind: str, text: str, role: str, block: int, is_error: int) -> None:
        is_cut = 0
        if len(text) > MAX_TEXT:
            text = text[:MAX_TEXT]
            is_cut = 1
        said, given = (None, text) if kind in TOOL_KINDS else (text, None)
        cjk, invisible = odd_letters(text)
        self.records.append(
            Message(
                kind,
                said,
                given,
                role,
                self._moment,
                self.model,
                self._uuid,
                self.parent,
                self._is_meta,
                self._is_sidechain,
                int(is_error),
                is_cut,
                cjk,
                invisible,
                self.start,
                self.length,
                block,
            )
        )

    def call(
        self,
        name: str | None,
        arguments: JSONObject,
        text: str,
        tool_use_id: str | None,
        *,
        action: str | None = None,
        paths: Sequence[str] = (),
    ) -> None:
        """Add a tool call: its row, and the half that a result completes.

        `action` is what the tool does, if that does not follow from its name; `paths` are all files
        that it was given, if the arguments have more than one.
        """
        position = (self.start, self._block)
        several = tuple(paths) if len(paths) > 1 else ()
        about, action = target(arguments), action or self.action_of(name)
        call = Call(name, about, self._moment, position, self.length, action=action, paths=several)
        self.say("tool_use", text, "assistant")
        if action == EDIT:
            self.add_lines(_input(text), position)
        if tool_use_id is None:
            self.records.append(joined(None, call, None))
        else:
            self._calls.setdefault(tool_use_id, call)

    def add_lines(self, arguments: JSONObject, position: Position) -> None:
        """Add the lines that an edit added, by which it is found."""
        lines = added_lines(arguments)
        self.records.extend(AddedLine(line_hash(line), *position) for line in lines)

    def answer(
        self,
        text: str,
        tool_use_id: str | None,
        *,
        is_error: bool,
        is_timed: bool = True,
        name: str | None = None,
        status: str | None = None,
        exit_code: int | None = None,
        duration_ms: int | None = None,
    ) -> None:
        """Add the result of a tool call: its row, and the half that belongs to the call.

        A result on the line of its call has no time: the time of the line is that of the call.
        `name` is the tool that it names: without an id, it answers the last open call of this tool.
        `status` is how the call ended, if the source knows better than the text. What is pending
        has only begun to answer: the next result says how it ended.
        """
        position = (self.start, self._block)
        status = status or self.status_of(text, is_error=is_error)
        self.say("tool_result", text, "user", is_error=status == ERROR)
        moment = self._moment if is_timed else None
        if tool_use_id is None:
            is_failure = int(status == ERROR)
            self.records.append(UnmatchedResult(name, is_failure, moment, *position))
        else:
            answer = Result(status, moment, position, self.length, duration_ms, exit_code)
            earlier = self._results.get(tool_use_id)
            if earlier is None or earlier.status == PENDING:
                self._results[tool_use_id] = answer

    def spend(self, spent: Usage) -> None:
        """Add the token counts of a response, of which an earlier line may have stated some."""
        key = spent.response_key
        self._usage[key] = merged(self._usage.get(key), spent)

    def use(self, key: str, counts: Counts, *, is_partial: bool = False, **stated: Any) -> Usage:
        """Add the token counts of the response `key`, which the current line states.

        `stated` are more fields of `Usage`. Returns what this line alone states.
        """
        model, place = stated.pop("model", self.model), (self.start, self.length)
        spent = usage(
            key,
            counts,
            model=model,
            moment=self._moment,
            place=place,
            is_partial=is_partial,
            **stated,
        )
        self.spend(spent)
        return spent

    def keep_rest(
        self,
        value: JSONObject,
        taken: Collection[str],
        bare: Callable[[JSONObject], JSONObject] = _as_it_is,
    ) -> None:
        """Keep the fields of the current line that did not become columns (`taken`).

        `bare` removes what is also in rows.
        """
        kind = value.get(self.type_key)
        is_silent = self._block == 0
        spoken = {"timestamp", *([] if is_silent else ["uuid", *taken])}
        if isinstance(kind, str):
            spoken.add(self.type_key)
        self.keep(
            left_over(bare(value), spoken, lambda: bare(exact_object(self.data))),
            kind=kind if isinstance(kind, str) else "",
            moment=self._moment,
            is_silent=is_silent,
        )

    def keep_left(self, kind: str, value: JSONObject, taken: Collection[str] = ()) -> None:
        """Keep the fields of an object, or of a row, that did not become columns (`taken`)."""
        rest = left_over(value, taken)
        self.keep(rest, kind=kind, moment=self._moment, is_silent=self._block == 0)

    def settle(self, cwd: str) -> None:
        """State that the session belongs to the project of a directory, unless its path says so."""
        key, project = self.claim.session_key, comparable(cwd)
        if key is not None and self.claim.project_key is None:
            entry = SessionEntry(key, "meta", project_key=project, cwd=cwd, byte_offset=self.start)
            self.records.append(entry)

    def count(self, value: JSONObject, key: str) -> int:
        """Return a number of tokens, 0 if none is stated."""
        stated = value.get(key)
        if is_count(stated):
            return stated  # type: ignore[return-value]
        self._expect(stated is None, key, stated)
        return 0

    def fact(self, name: str, value: str | None) -> None:
        """Set a fact of the session; the last value counts, of `first_...` the first."""
        if value is not None and not (name.startswith("first_") and name in self._facts):
            self._facts[name] = value

    @property
    def moment(self) -> str | None:
        """The time of the current line."""
        return self._moment

    def finish(self) -> list[Record]:
        """Return everything that was gathered: first messages, in the order of the file."""
        if self.is_local:
            self._facts["time_zone"] = "local"
        for identity in dict.fromkeys((*self._calls, *self._results)):
            call, answer = self._calls.get(identity), self._results.get(identity)
            self.records.append(joined(identity, call, answer))
        self.records.extend(self._usage.values())
        if self._types:
            facts = Transcript(
                started_at=self._started,
                ended_at=self._ended,
                message_count=self._message_count,
            )
            self.records.append(facts._replace(**self._facts))
        return super().finish()
