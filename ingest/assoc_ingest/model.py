"""The nouns: what a source says of a path, of a line, and of what a line means.

No I/O, no SQL, no clock here. A record is one row to be; its fields are the columns of its table
(schema/), without the surrogate ids that only the store knows. Records are named tuples: a
gigabyte of transcripts becomes a million of them, and a tuple is what sqlite3 binds.

Positions are bytes from the start of the file. Times are UTC text (see `when`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

FileKind = str
"""What a file is, in the words of its source: transcript, agent, agent_meta, ..."""

LOG = "log"
DOCUMENT = "document"


class Line(NamedTuple):
    """The bytes of one line, without its line break, and the offset of the first of them."""

    start: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Claim:
    """What the path alone tells about a file that a source reads."""

    source: str
    kind: FileKind
    session_key: str | None = None
    agent_key: str | None = None
    project_key: str | None = None
    project_directory: str | None = None
    workflow: str | None = None
    is_doubtful: bool = False
    """The name alone does not prove that this is ours: `Source.believes` looks at its lines."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a file was read, and the marker of what was read."""

    offset: int
    head_hash: bytes
    tail_hash: bytes
    prefix_crc: int


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A row of `files`: what the last sync knew of a path."""

    id: int
    path: str
    kind: str
    generation: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int
    gone_at: str | None
    session_key: str | None
    agent_key: str | None
    checkpoint: Checkpoint


class Message(NamedTuple):
    """One content block of a line. Exactly one of text and tool_text is not None."""

    kind: str
    text: str | None
    tool_text: str | None
    role: str | None
    timestamp: str | None
    model: str | None
    uuid: str | None
    parent_uuid: str | None
    is_meta: int
    is_sidechain: int
    is_error: int
    is_cut: int
    has_cjk: int
    byte_offset: int
    byte_length: int
    block: int


class ToolCall(NamedTuple):
    """A tool invocation: its call, its result, or both, as far as they stand in these lines.

    `call` and `result` are (byte_offset, block) of the two messages. The store merges the halves
    by (file, tool_use_id), whichever comes first.
    """

    name: str | None
    target: str | None
    status: str
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None
    exit_code: int | None
    output_file: str | None
    tool_use_id: str | None
    call: tuple[int, int] | None
    result: tuple[int, int] | None
    byte_offset: int
    byte_length: int
    block: int


class Usage(NamedTuple):
    """The token counts of one API response, as its best line in this stretch states them."""

    response_key: str
    api_message_id: str | None
    request_id: str | None
    stated_session_key: str | None
    model: str | None
    timestamp: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_5m_tokens: int
    cache_write_1h_tokens: int
    web_searches: int
    partial: int
    byte_offset: int
    byte_length: int


class Transcript(NamedTuple):
    """What a stretch of one transcript states about its session or subagent.

    The store merges the stretches of a file column by column: `started_at` is the earliest,
    `ended_at` the latest, the counts are sums, `first_*` and `stated_session_key` keep the first
    value that is not None, everything else the last.
    """

    stated_session_key: str | None
    started_at: str | None
    ended_at: str | None
    message_count: int
    sidechain_count: int
    first_prompt: str | None
    first_cwd: str | None
    first_project_cwd: str | None
    custom_title: str | None
    ai_title: str | None
    agent_name: str | None
    git_branch: str | None
    agent_version: str | None
    slug: str | None
    permission_mode: str | None
    mode: str | None
    agent_setting: str | None
    session_kind: str | None
    entrypoint: str | None
    team_name: str | None
    last_prompt: str | None
    forked_from_key: str | None


class AgentMeta(NamedTuple):
    """The sidecar of a subagent: what it is, and the call that spawned it."""

    agent_type: str | None
    description: str | None
    name: str | None
    model: str | None
    spawn_depth: int | None
    worktree_path: str | None
    is_fork: int | None


class AgentLink(NamedTuple):
    """Evidence that a tool call spawned a subagent, or a run of subagents.

    `method` is the place in the precedence of the format reference: a smaller one is trusted more.
    """

    agent_key: str
    tool_use_id: str
    method: int
    byte_offset: int


class WorkflowLink(NamedTuple):
    """Evidence that a workflow run belongs to a tool call or to a background task.

    A tool result names its run or its task; the snapshot of a run names its task.
    """

    run: str | None
    task_key: str | None
    tool_use_id: str | None
    byte_offset: int


class WorkflowAgent(NamedTuple):
    """A subagent that a workflow's journal or snapshot names."""

    agent_key: str
    label: str | None
    phase: str | None
    state: str | None
    byte_offset: int


class Summary(NamedTuple):
    """A title for the session that owns the line `leaf_uuid`, often in another file."""

    leaf_uuid: str
    title: str
    byte_offset: int


class Link(NamedTuple):
    """A pull request, a frame or a worktree of the session."""

    kind: str
    url: str
    title: str | None
    timestamp: str | None
    byte_offset: int
    byte_length: int


class Issue(NamedTuple):
    """What could not be read, or only with loss.

    `quarantined` 1: this stretch became no record; 0: a record stands for it, with loss.
    """

    reason: str
    quarantined: int
    sample: str | None
    byte_offset: int
    byte_length: int


class LineType(NamedTuple):
    """How many objects of one type and subtype these lines hold: the column `count`."""

    type: str
    subtype: str
    objects: int


Record = (
    Message
    | ToolCall
    | Usage
    | Transcript
    | AgentMeta
    | AgentLink
    | WorkflowLink
    | WorkflowAgent
    | Summary
    | Link
    | Issue
    | LineType
)


class Source(Protocol):
    """One on-disk format. Pure: no I/O, SQL, clock, logging or globals."""

    name: str

    def recognises(self, listing: Iterable[str]) -> bool:
        """Is a directory with these entries a root of this source?

        `listing` yields relative paths (`a`, `a/b`), the shallow ones first, and reads the disk
        as it goes: stop at the first that decides.
        """
        ...

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Can a file of ours lie below the directory `parts` (relative to the root)?"""
        ...

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """Say what the file `parts` (relative to the root) is, or None if it is not ours."""
        ...

    def shape(self, claim: Claim) -> str:
        """Return LOG for a file that grows line by line, DOCUMENT for one rewritten whole."""
        ...

    def believes(self, claim: Claim, head: Sequence[bytes]) -> bool:
        """Do the first lines of a doubtful file show that it is ours?"""
        ...

    def complete_prefix(self, claim: Claim, tail: bytes) -> int:
        """Return how many bytes of an unterminated tail can no longer change."""
        ...

    def parse(self, claim: Claim, lines: Iterable[Line]) -> list[Record]:
        """Turn lines into records, in the order of the file. Never raises on data.

        Cutting the lines in two anywhere gives records that the store merges to the same rows.
        """
        ...
