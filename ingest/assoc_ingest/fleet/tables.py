"""The tables of the server: which rows travel, by which columns they are known.

`schema/fleet/` makes these tables on the server, in the schema `assoc`; the projection makes rows
of them from a local database. Columns have the name of the local schema where they mean the same,
but no local id travels. A reference is the key of what it refers to:

| local column | on the server |
|---|---|
| `session_id` | `source_no`, `session_key`: the resolved session |
| `session_key` beside a `session_id` | `stated_session_key` |
| `subagent_id` | `agent_session_key` ('' where the subagent has none), `agent_key` |
| `project_id` | `project_source_no`, `project_key` |
| `source_id` | `source_no`: the local number of the source |
| `file_id` of a placed row | `origin_id`, `file_no`: the server knows the number of the file |
| `file_id` of a keyed row | `file_key`, the 16 bytes of `files.file_key`, or null |
| `copy_of` | `is_copy`: 1 where it is not null |
| `call_id` | `is_call`: 1 where it is not null, as the row's own place is that of the call |
| `result_id` | `result_offset`, `result_block`: its place in the same file |

A **placed** row stands in a file: its key on the server is `origin_id`, `file_no`, `byte_offset`
and `row_no`, the number of the row among those of its table with the same `byte_offset`, from 0, in
the order of the local unique key. (Messages have `block`, which is such a number already.)
`byte_offset` is 0 where a row belongs to a document as a whole, and -1 where it sums up a file that
may grow. A placed row travels with the frame in which its `byte_offset` lies.

A **keyed** row outlives files: its key on the server is `origin_id` and `Table.key`.

Key columns are never null: the projection writes '' or 0 where the local column may be null. Times
are text, JSON is text, NUL becomes U+FFFD. A text that `is_cut` is at most 400 bytes long, because
an entry of a PostgreSQL index must be below 2,700 bytes: `short_key` makes it so, alike everywhere.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

BIGINT, INTEGER, DOUBLE, TEXT, BYTEA = "bigint", "integer", "double precision", "text", "bytea"

LONGEST_KEY = 400
"""Bytes of UTF-8 that a text column may have which an index holds."""

_ALSO_CUT = {"uuid", "parent_uuid", "tool_use_id", "model"}


class Column(NamedTuple):
    """A column of a table of the server."""

    name: str
    type: str
    is_cut: bool
    """Its text goes through `short_key`."""


class Table(NamedTuple):
    """A table of the server; its rows begin with `origin_id`, and placed ones with `file_no`, too.

    `columns` are what the projection gives, in this order, without these two.
    """

    name: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    placed: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)


def short_key(text: str) -> str:
    """Return a key as it travels: unchanged, or shortened and made unique by its hash."""
    data = text.encode("utf-8", "replace")
    if len(data) <= LONGEST_KEY:
        return text
    return f"{data[:300].decode('utf-8', 'ignore')}…{sha256(data).hexdigest()}"


def _columns(text: str, key: tuple[str, ...]) -> tuple[Column, ...]:
    types = {"": TEXT, "int": INTEGER, "big": BIGINT, "real": DOUBLE, "bytes": BYTEA}
    columns = []
    for word in text.split():
        name, _, short = word.partition(":")
        may_be_long = name.endswith("key") or name in key or name in _ALSO_CUT
        columns.append(Column(name, types[short], may_be_long and types[short] == TEXT))
    return tuple(columns)


def _placed(name: str, columns: str, *, number: str = "row_no") -> Table:
    key = ("byte_offset", number)
    return Table(name, key, _columns(f"byte_offset:big {number}:int {columns}", key), True)


def _keyed(name: str, key: str, columns: str) -> Table:
    words = tuple(word.partition(":")[0] for word in key.split())
    return Table(name, words, _columns(f"{key} {columns}", words), False)


_SESSION = "source_no:int session_key"
_SUBAGENT = "agent_session_key agent_key"
_PROJECT = "project_source_no:int project_key"
_TOKENS = """
    input_tokens:big output_tokens:big cache_read_tokens:big
    cache_write_5m_tokens:big cache_write_1h_tokens:big web_searches:big
"""

FILES = Table(
    "files",
    ("file_key",),
    _columns(
        f"""file_key:bytes source_no:int path generation:big kind size:big offset:big
        line_count:big issue_count:big mtime first_seen_at last_synced_at gone_at
        stated_session_key stated_agent_key team_key stated_project_key workflow own_since
        session_key {_SUBAGENT} {_PROJECT}""",
        (),
    ),
    False,
)
"""Attributes of a file, which travel with its frames. `source_no` is that of its session, too."""

PLACED = (
    _placed(
        "messages",
        f"""kind text tool_text role timestamp {_SESSION} {_SUBAGENT} model uuid parent_uuid
        is_meta:int is_sidechain:int is_error:int is_cut:int has_cjk:int is_copy:int
        has_invisible:int is_superseded:int byte_length:big joined_text joined_tool_text""",
        number="block",
    ),
    _placed(
        "tool_calls",
        f"""block:int name target status action paths started_at ended_at duration_ms:big
        exit_code:big output_file search_count:big {_SESSION} {_SUBAGENT} tool_use_id response_key
        byte_length:big is_call:int result_offset:big result_block:int""",
    ),
    _placed(
        "usage",
        f"""response_key api_message_id request_id stated_session_key model timestamp {_TOKENS}
        partial:int stated_cost_usd:real line_count:big all_input_tokens:big all_output_tokens:big
        all_cache_read_tokens:big all_cache_write_tokens:big stop_reason byte_length:big""",
    ),
    _placed(
        "stated_usage",
        """model timestamp input_tokens:big output_tokens:big cache_read_tokens:big
        cache_write_tokens:big cost_usd:real is_lower_bound:int byte_length:big""",
    ),
    _placed(
        "responses",
        f"""response_key api_message_id request_id model timestamp {_TOKENS}
        partial:int stated_cost_usd:real {_SESSION} {_SUBAGENT} stop_reason byte_length:big""",
    ),
    _placed(
        "prompts",
        f"""text timestamp project_path pasted paste_hashes stated_project_key stated_session_key
        {_SESSION} {_PROJECT} byte_length:big joined""",
    ),
    _placed(
        "links",
        f"""kind url title timestamp stated_session_key {_SESSION} byte_length:big gone_at
        origin""",
    ),
    _placed(
        "documents",
        f"""kind title text path stated_session_key project_path stated_project_key {_SESSION}
        {_PROJECT} modified_at ordinal:big gone_at extra joined""",
    ),
    _placed(
        "plans",
        f"title text name status modified_at {_SESSION} channel tool_use_id joined",
    ),
    _placed(
        "todos",
        f"""content status priority active_form position:big gone_at stated_session_key
        stated_agent_key {_SESSION} {_SUBAGENT} ordinal:big channel stated_at tool_use_id joined""",
    ),
    _placed(
        "inbox_items",
        f"""text sender recipient kind summary timestamp is_read:int color payload channel
        team_source_no:int team_key {_SESSION} is_copy:int gone_at team_name message_key text_hash
        tool_use_id ordinal:big byte_length:big joined""",
    ),
    _placed(
        "tool_result_files",
        f"name size:big media_type text stated_session_key tool_use_id {_SESSION} joined",
    ),
    _placed("issues", "reason quarantined:int sample byte_length:big"),
    _placed("line_types", "type subtype count:big"),
    _placed("agent_lines", "agent_key"),
)
"""Rows that stand in a file."""

KEYED = (
    _keyed(
        "sources",
        "source_no:int",
        """kind root label is_agent:int lists_sessions:int retention_days:big
        cleanup_period_days:big first_synced_at last_synced_at gone_at""",
    ),
    _keyed(
        "projects",
        "source_no:int key",
        """name path is_worktree:int on_disk:int git_branch is_dirty:int head_branch
        session_count:big last_activity_at parent_source_no:int parent_key same_source_no:int
        same_key gone_at git_seen_at change_count:big repository git_repository""",
    ),
    _keyed(
        "agents",
        "source_no:int stated_project_key agent_key",
        f"""name type description path is_general:int extra gone_at {_PROJECT} file_key:bytes""",
    ),
    _keyed(
        "sessions",
        "source_no:int session_key",
        f"""title title_source {_PROJECT} started_at ended_at message_count:big
        copied_message_count:big prompt_count:big tool_call_count:big input_tokens:big
        output_tokens:big cache_read_tokens:big cache_write_tokens:big stated_cost_usd:real models
        git_branch cwd agent_version kind status is_listed:int context_tokens:big
        context_window:big permission_mode ts_zone slug forked_source_no:int forked_key
        linked_source_no:int linked_key agent_source_no:int agent_project_key agent_key gone_at""",
    ),
    _keyed(
        "subagents",
        "source_no:int stated_session_key agent_key",
        """agent_type description kind session_key parent_source_no:int parent_session_key
        parent_key spawned_by_file_key:bytes spawned_by_tool_use_id link_method workflow name model
        started_at ended_at message_count:big tokens:big tool_call_count:big""",
    ),
    _keyed(
        "teams",
        "source_no:int key",
        """name description created_at gone_at lead_agent_key stated_lead_session_key
        lead_source_no:int lead_session_key file_key:bytes""",
    ),
    _keyed(
        "team_members",
        "file_key:bytes member_key ordinal:big",
        """name agent_type model cwd color joined_at prompt subscriptions backend_type
        plan_mode_required:int is_active:int agent_id team_source_no:int team_key gone_at extra""",
    ),
    _keyed(
        "tasks",
        "source_no:int list_key task_key channel",
        """subject description status owner active_form metadata task_number:big
        session_source_no:int session_key team_source_no:int team_key gone_at stated_at blocked_by
        tool_use_id file_key:bytes byte_offset:big joined""",
    ),
    _keyed(
        "task_dependencies",
        "source_no:int list_key task_key blocker_key",
        "task_channel blocker_channel file_key:bytes",
    ),
    _keyed(
        "prices",
        "model valid_from above_tokens:big",
        """input:big output:big cache_read:big cache_write_5m:big cache_write_1h:big
        web_search:big origin""",
    ),
)
"""Rows that outlive files, in the order in which they travel."""

TABLES = (*PLACED, *KEYED)
"""All tables whose rows are made from local rows, without `files`."""
