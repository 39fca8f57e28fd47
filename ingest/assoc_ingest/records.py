"""Records: what sources make of lines. Each record becomes one row.

Its fields are the columns of its table (schema/), without the ids that only the store knows.
Records are named tuples: a gigabyte of transcripts becomes a million of them, and sqlite3 binds
tuples.

Positions are bytes from the start of the file. Times are UTC text (see `fields.utc`).
"""

# No `from __future__ import annotations` here: `typing` would compile each annotation, and to
# import these classes, which every sync does, would take twice as long.

from typing import NamedTuple


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
    has_invisible: int
    byte_offset: int
    byte_length: int
    block: int


RUN, READ, EDIT, SEARCH, PLAN, SPAWN, ASK, OTHER = ACTIONS = (
    "run", "read", "edit", "search", "plan", "spawn", "ask", "other",
)  # fmt: skip
"""What tool calls do: run a command, read, change or search files and pages, plan work, start a
subagent, ask the person. The source decides it for each call, so that reports and pages need not
know the names of tools."""


OK, ERROR, DECLINED, PENDING = "ok", "error", "declined", "pending"
"""How a call ended. One that a person did not allow is declined, one without a result pending."""


class ToolCall(NamedTuple):
    """A tool invocation: its call, its result, or both, as far as these lines have them.

    `call` and `result` are (byte_offset, block) of the two messages. The store merges the halves
    by (file, tool_use_id), whichever comes first.
    """

    name: str | None
    target: str | None
    action: str | None
    """What the tool does, whatever its name is: one of `ACTIONS`; None for a result alone."""
    paths: str | None
    """The files that it was applied to, as a JSON list, if `target` is not all of them."""
    status: str
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None
    exit_code: int | None
    output_file: str | None
    search_count: int | None
    response_key: str | None
    tool_use_id: str | None
    call: tuple[int, int] | None
    result: tuple[int, int] | None
    byte_offset: int
    byte_length: int
    block: int


class AddedLine(NamedTuple):
    """A line that an edit added, so that it can be found by its content.

    `byte_offset` and `block` are those of the message with the call.
    """

    line_hash: int
    byte_offset: int
    block: int


class UnmatchedResult(NamedTuple):
    """A tool result that does not say which call it answers.

    `name` is the tool that it names, if any. Which call it answers depends on all lines before it,
    so the database finds that out (`unnamed_results`).
    """

    name: str | None
    is_error: int
    timestamp: str | None
    byte_offset: int
    block: int


class Superseded(NamedTuple):
    """What this line takes back: a rewind, a roll-back, a revert.

    From the line at `first_offset`, or else the first line of the file that has this uuid, up to
    this line, exclusive, nothing is part of the conversation any more. Of a uuid that no line has,
    everything before is taken back. Rows stay, and are marked.
    """

    timestamp: str | None
    first_uuid: str | None
    first_offset: int | None
    byte_offset: int


class LineExtra(NamedTuple):
    """What a line, or a whole document, states that has no row or column of its own.

    `extra` is a JSON object as text.
    """

    type: str
    timestamp: str | None
    extra: str
    byte_offset: int
    byte_length: int


class Context(NamedTuple):
    """A value that holds for this line and those after it: the git branch or the agent version."""

    name: str
    value: str
    byte_offset: int


class AgentLine(NamedTuple):
    """A line of a transcript that repeats messages of a subagent."""

    agent_key: str
    byte_offset: int


class AgentTotals(NamedTuple):
    """What the result of a call states about the subagent run that the call spawned."""

    agent_key: str
    agent_type: str | None
    tokens: int | None
    duration_ms: int | None
    tool_call_count: int | None
    byte_offset: int


class Usage(NamedTuple):
    """The token counts of one API response, from the best of its lines in this stretch.

    The timestamp is that of its first line.
    """

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
    stated_cost_usd: float | None = None
    line_count: int = 0
    all_input_tokens: int = 0
    """The sum over all lines of the response, like the three below."""
    all_output_tokens: int = 0
    all_cache_read_tokens: int = 0
    all_cache_write_tokens: int = 0
    stop_reason: str | None = None
    written_bytes: int | None = None
    """The length of what the response wrote on all its lines; None: not known."""


class StatedUsage(NamedTuple):
    """What an agent states of its own use at a line: sums of its session so far.

    `model` is the name that the agent uses, '' for all models.
    """

    model: str
    timestamp: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None
    is_lower_bound: int
    """1: the agent knows no price for some of it."""
    byte_offset: int
    byte_length: int


class Transcript(NamedTuple):
    """What a stretch of one transcript states about its session or subagent.

    The store merges the stretches of a file column by column: `started_at` is the earliest,
    `ended_at` the latest, the counts are sums, `first_*` and `stated_session_key` keep the first
    value that is not None, everything else the last.
    """

    stated_session_key: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    message_count: int = 0
    sidechain_count: int = 0
    first_prompt: str | None = None
    first_cwd: str | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    agent_name: str | None = None
    git_branch: str | None = None
    agent_version: str | None = None
    slug: str | None = None
    permission_mode: str | None = None
    mode: str | None = None
    agent_setting: str | None = None
    session_kind: str | None = None
    entrypoint: str | None = None
    team_name: str | None = None
    last_prompt: str | None = None
    forked_from_key: str | None = None
    time_zone: str | None = None
    user_type: str | None = None
    tag: str | None = None
    agent_color: str | None = None
    forked_from_uuid: str | None = None


class WorkingDirectory(NamedTuple):
    """A working directory of a transcript's session, at the line that states it first.

    `encoded` is the name of the project directory for this path; it shows whether the path is that
    of the project. It is empty if the path alone does not decide that name.
    """

    path: str
    encoded: str
    byte_offset: int


class AgentMeta(NamedTuple):
    """The sidecar of a subagent: its type, its task, and how it was started."""

    agent_type: str | None
    description: str | None
    name: str | None
    model: str | None
    spawn_depth: int | None
    worktree_path: str | None
    is_fork: int | None


BY_META, BY_RESULT, BY_PROGRESS, BY_RESULT_TEXT, BY_NOTIFICATION = 1, 2, 3, 4, 5
"""The ranks of evidence that links a call to its subagent: a smaller number is trusted more."""


class AgentLink(NamedTuple):
    """Evidence that a tool call spawned a subagent, or a run of subagents.

    `method` is the rank of the evidence: a smaller one is trusted more, see `agent_links`.
    """

    agent_key: str
    tool_use_id: str
    method: int
    byte_offset: int


class WorkflowLink(NamedTuple):
    """Evidence that a workflow run belongs to a tool call or to a background task.

    A tool result names a run or a task; the snapshot of a run names its task.
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
    """A pull request, a frame, a worktree or a plan of a session.

    `session_key` names the session if the path of the file does not, as in a list. `origin` is the
    directory from which a worktree was created.
    """

    kind: str
    url: str
    title: str | None
    timestamp: str | None
    byte_offset: int
    byte_length: int
    session_key: str | None = None
    origin: str | None = None


ENTRY_KINDS = {
    "conversation": "the program's own list of conversations: its title and project come first",
    "chat": "as conversation",
    "index": "an index of transcripts: its title counts if the transcript states none",
    "job": "a run in the background: its title comes last",
    "registry": "a list of running programs: its title comes last, its status ends with the entry",
    "meta": "a file of the session itself",
    "relocated": "the session's transcript: where it is held from some line on",
}
"""What an entry is, and with it how much what it states counts. Of several entries that state the
same fact, the one whose kind comes first in the alphabet counts."""


class SessionEntry(NamedTuple):
    """What a list, a registry or a sidecar states about a session, in addition to its transcript.

    `kind` is one of `ENTRY_KINDS`. `extra` is JSON text.
    """

    session_key: str
    kind: str
    title: str | None = None
    summary: str | None = None
    first_prompt: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    message_count: int | None = None
    project_key: str | None = None
    git_branch: str | None = None
    cwd: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    status: str | None = None
    is_sidechain: int | None = None
    linked_session_key: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    context_tokens: int | None = None
    context_window: int | None = None
    agent_key: str | None = None
    extra: str | None = None
    byte_offset: int = 0


class Agent(NamedTuple):
    """A named agent of an application, as its configuration lists it. `extra` is JSON text."""

    name: str
    type: str | None
    description: str | None
    path: str | None
    is_general: int | None
    extra: str | None
    agent_key: str
    project_key: str


class ProjectEntry(NamedTuple):
    """A project or worktree in a program's own list. `extra` is JSON text."""

    key: str
    name: str | None
    path: str | None
    parent_key: str | None = None
    is_worktree: int | None = None
    git_branch: str | None = None
    extra: str | None = None


class Task(NamedTuple):
    """A task of a task list. `metadata` is JSON text."""

    task_key: str
    list_key: str
    subject: str | None
    description: str | None
    status: str | None
    owner: str | None
    active_form: str | None
    metadata: str | None
    task_number: int | None = None
    """The key, if it is a number: tasks are shown in this order."""


class TaskDependency(NamedTuple):
    """The edge: `task_key` is blocked by `blocker_key`."""

    list_key: str
    task_key: str
    blocker_key: str


class TaskChange(NamedTuple):
    """A change of a task that a file states, in addition to those that syncs see."""

    list_key: str
    task_key: str
    field: str
    old_value: str | None
    new_value: str | None
    timestamp: str | None
    byte_offset: int


class Statement(NamedTuple):
    """What a line of a transcript states about tasks, todos or a plan.

    `stated` and `answered` are JSON objects: what the call says, and what its result adds. The
    store merges them by (file, tool_use_id).
    """

    kind: str
    list_key: str
    task_key: str | None
    stated: str | None
    answered: str | None
    timestamp: str | None
    tool_use_id: str | None
    byte_offset: int
    byte_length: int
    block: int


class Todo(NamedTuple):
    """An item of a todo list, identified by its content, and its place among equal ones."""

    position: int
    content: str | None
    status: str | None
    priority: str | None
    active_form: str | None
    session_key: str | None
    agent_key: str | None
    ordinal: int = 0


class Team(NamedTuple):
    """A team, as its configuration states it. The claim's team_key says which."""

    name: str
    description: str | None
    created_at: str | None
    lead_agent_key: str | None
    lead_session_key: str | None


class TeamMember(NamedTuple):
    """A member of a team, identified by agent_id, else name, and its place among equal ones.

    `subscriptions` is a JSON array, `extra` a JSON object.
    """

    name: str | None
    agent_type: str | None
    model: str | None
    cwd: str | None
    color: str | None
    joined_at: str | None
    prompt: str | None
    subscriptions: str | None
    backend_type: str | None
    plan_mode_required: int | None
    is_active: int | None
    agent_id: str | None
    extra: str | None = None
    ordinal: int = 0


class InboxItem(NamedTuple):
    """A message to an agent: in its inbox (offset 0), or in a transcript.

    `team_name` names the team if the path does not. `payload` is JSON text. `tool_use_id` is the
    call that sent it: the store merges what the call states with what its result adds.
    """

    text: str | None
    sender: str | None
    recipient: str | None
    kind: str
    summary: str | None
    timestamp: str | None
    is_read: int | None
    color: str | None
    payload: str | None
    channel: str
    team_name: str | None
    message_key: str | None
    text_hash: str
    ordinal: int
    byte_offset: int
    byte_length: int
    tool_use_id: str | None = None


class Plan(NamedTuple):
    """A plan. The store fills `modified_at` from the file's stat."""

    title: str | None
    text: str
    name: str
    modified_at: str | None = None


class PlanLine(NamedTuple):
    """A line of the plan of the same file: heading, code_fence, code_block or normal."""

    number: int
    kind: str
    text: str


class Document(NamedTuple):
    """A note, a memory, a session summary or a ticket. `extra` is JSON text.

    The store fills `modified_at` from the file's stat if the document states no time. A ticket is
    identified by its `ordinal` in its list.
    """

    kind: str
    title: str | None
    text: str
    path: str
    session_key: str | None = None
    project_path: str | None = None
    modified_at: str | None = None
    ordinal: int = 0
    project_key: str | None = None
    extra: str | None = None


class Prompt(NamedTuple):
    """A line of the global prompt history.

    `pasted` is what was pasted inline. If a part is in a file of its own, `paste_hashes` lists all
    parts as a JSON array of hashes and of `{"text": ...}`, and the store combines the text.
    """

    text: str
    timestamp: str | None
    project_path: str | None
    session_key: str | None
    pasted: str | None
    paste_hashes: str | None
    byte_offset: int
    byte_length: int
    project_key: str | None = None


class Paste(NamedTuple):
    """A pasted text that prompts refer to by its hash."""

    hash: str
    text: str


class FileSnapshot(NamedTuple):
    """A version of a file that the agent tracked, as a snapshot line lists it."""

    path: str
    version: int | None
    backup_at: str | None
    backup_name: str | None
    message_uuid: str | None
    byte_offset: int
    byte_length: int


class ToolResultFile(NamedTuple):
    """An output that was too large for its transcript. The store fills `size` from the stat."""

    name: str
    media_type: str | None
    text: str | None
    session_key: str | None
    tool_use_id: str | None
    size: int = 0


class Retention(NamedTuple):
    """The number of days after which the agent deletes its files, according to its settings."""

    cleanup_period_days: int | None


class HookEvent(NamedTuple):
    """A hook event, in file order. `payload` is the event as JSON text."""

    event: str | None
    session_key: str | None
    agent_key: str | None
    agent_type: str | None
    cwd: str | None
    model: str | None
    source: str | None
    reason: str | None
    tool_name: str | None
    payload: str
    byte_offset: int
    byte_length: int


class Issue(NamedTuple):
    """What could not be parsed, or only with loss.

    `quarantined` is 1 if this stretch became no record, 0 if it became one with loss.
    """

    reason: str
    quarantined: int
    sample: str | None
    byte_offset: int
    byte_length: int


class LineType(NamedTuple):
    """The number of objects of one type and subtype in these lines: the column `count`."""

    type: str
    subtype: str
    objects: int
    first_offset: int | None = None
    """The place of the first of them that is of the source's own program, if that is known."""


Record = (
    Message
    | ToolCall
    | AddedLine
    | UnmatchedResult
    | Superseded
    | LineExtra
    | Context
    | AgentLine
    | AgentTotals
    | Usage
    | StatedUsage
    | Transcript
    | WorkingDirectory
    | AgentMeta
    | AgentLink
    | WorkflowLink
    | WorkflowAgent
    | Summary
    | Link
    | SessionEntry
    | Agent
    | ProjectEntry
    | Task
    | TaskDependency
    | TaskChange
    | Statement
    | Todo
    | Team
    | TeamMember
    | InboxItem
    | Plan
    | PlanLine
    | Document
    | Prompt
    | Paste
    | FileSnapshot
    | ToolResultFile
    | Retention
    | HookEvent
    | Issue
    | LineType
)
