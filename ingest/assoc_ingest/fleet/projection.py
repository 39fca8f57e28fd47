"""Rows for the server, made from one local snapshot: tables, masks, scope and SQL."""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from ..ask.projects import as_path
from ..errors import ArchiveError, NotFoundError, UsageError
from ..files import archive
from ..files.changes import claim_of
from ..paths import comparable, is_pulled
from ..secrets.find import LONGEST
from ..secrets.mask import redact, redact_bytes
from ..secrets.rules import REVISED
from ..source import LOG, Claim, Line, Source
from ..sources import SOURCES
from ..sql import id_list
from ..store.known_files import known_file

# ------------------------------------------------------------------------------------------------
# The tables of the server: their columns and keys.
#
# `schema/fleet/` creates these tables on the server, in the schema `assoc`; the projection makes
# their rows from a local database. A column with the same meaning has its local name, but no local
# id travels. A reference is the key of the row that it refers to:
#
# | local column | on the server |
# |---|---|
# | `session_id` | `source_no`, `session_key`: the resolved session |
# | `session_key` beside a `session_id` | `stated_session_key` |
# | `subagent_id` | `agent_session_key` ('' where the subagent has none), `agent_key` |
# | `project_id` | `project_source_no`, `project_key` |
# | `source_id` | `source_no`: the local number of the source |
# | `file_id` of a placed row | `origin_id`, `file_no`: the server knows the number of the file |
# | `file_id` of a keyed row | `file_key`, the 16 bytes of `files.file_key`, or null |
# | `copy_of` | `is_copy`: 1 where it is not null |
# | `call_id` | `is_call`: 1 where it is not null, as the row's own place is that of the call |
# | `result_id` | `result_offset`, `result_block`: its place in the same file |
#
# A **placed** row has a place in a file: its key on the server is `origin_id`, `file_no`,
# `byte_offset` and `row_no`, the number of the row among those of its table with the same
# `byte_offset`, from 0, in the order of the local unique key. (Messages have `block`, which is
# such a number already.) `byte_offset` is 0 if a row belongs to a document as a whole, and -1 if it
# sums up a file that may grow. A placed row travels with the frame that contains its `byte_offset`.
#
# A **keyed** row outlives files: its key on the server is `origin_id` and `Table.key`.
#
# Key columns are never null: the projection writes '' or 0 if the local column is null. Times are
# text, JSON is text, NUL becomes U+FFFD. `short_key` limits a text that `is_cut` to 400 bytes,
# because an entry of a PostgreSQL index must be smaller than 2,700 bytes.


BIGINT, INTEGER, DOUBLE, TEXT, BYTEA = "bigint", "integer", "double precision", "text", "bytea"

LONGEST_KEY = 400
"""Bytes of UTF-8 that an indexed text may have."""

_ALSO_CUT = {"uuid", "parent_uuid", "tool_use_id", "model"}


class Column(NamedTuple):
    """A column of a table of the server."""

    name: str
    type: str
    is_cut: bool
    """Is its text shortened by `short_key`?"""


class Table(NamedTuple):
    """A table of the server; its rows begin with `origin_id`, and placed ones with `file_no`, too.

    `columns` are the others, in the order of the projection.
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
    """Return a key unchanged, or if it is too long, its beginning and its hash."""
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


_SESSION_KEY = "source_no:int session_key"
_SUBAGENT_KEY = "agent_session_key agent_key"
_PROJECT_KEY = "project_source_no:int project_key"
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
        session_key {_SUBAGENT_KEY} {_PROJECT_KEY} entrypoint recorded_at""",
        (),
    ),
    False,
)
"""Attributes of a file. `source_no` is also the source of its session."""

PLACED = (
    _placed(
        "messages",
        f"""kind text tool_text role timestamp {_SESSION_KEY} {_SUBAGENT_KEY} model uuid parent_uuid
        is_meta:int is_sidechain:int is_error:int is_cut:int has_cjk:int is_copy:int
        has_invisible:int is_superseded:int byte_length:big joined_text joined_tool_text""",
        number="block",
    ),
    _placed(
        "tool_calls",
        f"""block:int name target status action paths started_at ended_at duration_ms:big
        exit_code:big output_file search_count:big {_SESSION_KEY} {_SUBAGENT_KEY} tool_use_id
        response_key byte_length:big is_call:int result_offset:big result_block:int""",
    ),
    _placed(
        "usage",
        f"""response_key api_message_id request_id stated_session_key model timestamp {_TOKENS}
        partial:int stated_cost_usd:real line_count:big all_input_tokens:big all_output_tokens:big
        all_cache_read_tokens:big all_cache_write_tokens:big stop_reason byte_length:big
        written_bytes:big""",
    ),
    _placed(
        "stated_usage",
        """model timestamp input_tokens:big output_tokens:big cache_read_tokens:big
        cache_write_tokens:big cost_usd:real is_lower_bound:int byte_length:big""",
    ),
    _placed(
        "responses",
        f"""response_key api_message_id request_id model timestamp {_TOKENS}
        partial:int stated_cost_usd:real {_SESSION_KEY} {_SUBAGENT_KEY} stop_reason
        byte_length:big written_bytes:big""",
    ),
    _placed(
        "prompts",
        f"""text timestamp project_path pasted paste_hashes stated_project_key stated_session_key
        {_SESSION_KEY} {_PROJECT_KEY} byte_length:big joined""",
    ),
    _placed(
        "links",
        f"""kind url title timestamp stated_session_key {_SESSION_KEY} byte_length:big gone_at
        origin""",
    ),
    _placed(
        "documents",
        f"""kind title text path stated_session_key project_path stated_project_key {_SESSION_KEY}
        {_PROJECT_KEY} modified_at ordinal:big gone_at extra joined""",
    ),
    _placed(
        "plans",
        f"title text name status modified_at {_SESSION_KEY} channel tool_use_id joined",
    ),
    _placed(
        "todos",
        f"""content status priority active_form position:big gone_at stated_session_key
        stated_agent_key {_SESSION_KEY} {_SUBAGENT_KEY} ordinal:big channel stated_at tool_use_id
        joined""",
    ),
    _placed(
        "inbox_items",
        f"""text sender recipient kind summary timestamp is_read:int color payload channel
        team_source_no:int team_key {_SESSION_KEY} is_copy:int gone_at team_name message_key
        text_hash
        tool_use_id ordinal:big byte_length:big joined""",
    ),
    _placed(
        "tool_result_files",
        f"name size:big media_type text stated_session_key tool_use_id {_SESSION_KEY} joined",
    ),
    _placed("issues", "reason quarantined:int sample byte_length:big"),
    _placed("line_types", "type subtype count:big"),
    _placed("agent_lines", "agent_key"),
    _placed("contexts", "name value"),
)
"""Rows that have a place in a file."""

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
        same_key gone_at git_seen_at change_count:big repository git_repository remote git_remote
        first_commit git_first_commit repository_key repository_name""",
    ),
    _keyed(
        "agents",
        "source_no:int stated_project_key agent_key",
        f"""name type description path is_general:int extra gone_at {_PROJECT_KEY}
        file_key:bytes""",
    ),
    _keyed(
        "sessions",
        "source_no:int session_key",
        f"""title title_source {_PROJECT_KEY} started_at ended_at message_count:big
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
    _keyed("notes", "session_key line_key path", "text verdict title is_starred:int noted_at"),
)
"""Rows that outlive files, in the order in which they are sent."""

TABLES = (*PLACED, *KEYED)
"""All tables but `files`."""

BY_NAME = {table.name: table for table in TABLES}


# ------------------------------------------------------------------------------------------------
# Masks credentials in data that leaves this machine, by the rules of `secrets`.
#
# In bytes, each letter becomes a star, so that offsets stay and JSON stays valid (`redact_bytes`).
# A line with a credential is parsed twice, as it is and masked, and each value that differs is
# replaced in its rows. A value that depends on several lines, such as a title, or on bytes that are
# not archived, may be cut anywhere: there, the beginning of a credential is masked, too, as in an
# export.
#
# Patterns miss things: a password in a sentence looks like any other word.


VERSION = REVISED
"""The version of the rules: when it changes, the next push compares everything."""

Row = tuple[Any, ...]

Rows = dict[str, list[Row]]
"""Rows by table."""

_OF_SEVERAL_LINES = {"prompts", "links", "plans", "todos", "inbox_items"}
"""Tables whose rows may contain text of other lines or files."""


@dataclass(slots=True)
class Masks:
    """Masks credentials and counts them by kind, unless it is off."""

    is_on: bool = True
    counts: Counter[str] = field(default_factory=Counter)

    def of_file(self, connection: sqlite3.Connection, file_id: int) -> FileMasks | None:
        """Return the masks of a file, None if masking is off."""
        if not self.is_on:
            return None
        known = known_file(connection, file_id)
        (kind,) = connection.execute(
            "select x.kind from files f join sources x on x.id = f.source_id where f.id = ?",
            (file_id,),
        ).fetchone()
        source = SOURCES.get(kind)
        claim = claim_of(source, known) if source is not None and known is not None else None
        return FileMasks(connection, self, file_id, source, claim)

    def rows(self, table: Table, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows with masked values."""
        if not self.is_on:
            yield from rows
            return
        places = _texts(table)
        for row in rows:
            texts = "\n".join([row[place] for place in places if row[place]])
            yield row if not texts or not redact(texts)[1] else self._covered(row, places)

    def _covered(self, row: Row, places: Sequence[int]) -> Row:
        values = list(row)
        for place in places:
            if values[place]:
                values[place], found = redact(values[place])
                self.counts.update(found)
        return tuple(values)

    def text(self, text: str) -> str:
        """Return a text of a line with stars in place of credentials."""
        data, found = redact_bytes(text.encode(), is_log=False)
        return data.decode() if found else text


def _texts(table: Table) -> list[int]:
    """Return the indexes of columns that are masked; keys are not, as rows are joined by them."""
    return [
        place
        for place, column in enumerate(table.columns)
        if column.type == TEXT and not column.is_cut
    ]


@dataclass(frozen=True, slots=True)
class FileMasks:
    """Masks the credentials of one file, frame by frame."""

    connection: sqlite3.Connection
    masks: Masks
    file_id: int
    source: Source | None
    claim: Claim | None

    def applied(
        self, frame: archive.Frame, rows: dict[str, list[Row]], *, is_last: bool
    ) -> tuple[bytes | None, dict[str, list[Row]]]:
        """Return the masked data of a frame, None without bytes, and its masked rows."""
        try:
            original = archive.unpacked(frame, self.file_id)
            before, after = self._around(frame, original, is_last=is_last)
        except ArchiveError:  # damaged, or never archived: only the rows can be sent
            return None, self._by_value(rows)
        is_log = self._is_log()
        covered, found = redact_bytes(before + original + after, is_log=is_log)
        covered = covered[len(before) : len(covered) - len(after)]
        self.masks.counts.update(found)
        changed = _changed_lines(original, covered) if is_log else [(0, len(original))]
        lines = list(changed) if covered != original else []
        if after or before:  # a row has text of a frame behind the one that it begins in
            rows = self._by_value(rows)
        rows = self._rewritten(frame.start, original, covered, lines, rows)
        if covered == original:
            return frame.data, rows
        return archive.Compressor().compressed(covered), rows

    def _around(
        self, frame: archive.Frame, original: bytes, *, is_last: bool
    ) -> tuple[bytes, bytes]:
        """Return the bytes before and behind a frame that belong to its first and its last line."""
        is_log = self._is_log()
        before = after = b""
        if not is_last and not (is_log and original.endswith(b"\n")):
            after = self._read(frame.end, frame.end + LONGEST)
        if frame.start and not (is_log and self._read(frame.start - 1, frame.start) == b"\n"):
            before = self._read(max(0, frame.start - LONGEST), frame.start)
        return before, after

    def _read(self, start: int, end: int) -> bytes:
        return b"".join(archive.read(self.connection, self.file_id, start, end))

    def _is_log(self) -> bool:
        return (
            self.source is not None
            and self.claim is not None
            and self.source.shape(self.claim) == LOG
        )

    def _by_value(self, rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
        return {name: list(self.masks.rows(BY_NAME[name], found)) for name, found in rows.items()}

    def _rewritten(
        self,
        start: int,
        original: bytes,
        covered: bytes,
        lines: list[tuple[int, int]],
        rows: dict[str, list[Row]],
    ) -> dict[str, list[Row]]:
        values = {
            start + low: self._differences(start + low, original[low:high], covered[low:high])
            for low, high in lines
        }
        found: dict[str, list[Row]] = {}
        for name, kept in rows.items():
            places = _texts(BY_NAME[name])
            found[name] = [
                self._of_line(row, places, values.get(row[0], {}))
                if row[0] in values or name in _OF_SEVERAL_LINES
                else row
                for row in kept
            ]
        return found

    def _differences(self, offset: int, original: bytes, covered: bytes) -> dict[str, str]:
        """Return the masked values of a line by the original ones."""
        if self.source is None or self.claim is None:
            return {}
        before, after = (
            self.source.parse(self.claim, [Line(offset, data)]) for data in (original, covered)
        )
        changed: dict[str, str] = {}
        if len(before) == len(after):
            for old, new in zip(before, after, strict=True):
                for one, other in zip(old, new, strict=False):
                    if isinstance(one, str) and isinstance(other, str) and one != other:
                        changed[one] = other
        return changed

    def _of_line(self, row: Row, places: Sequence[int], values: dict[str, str]) -> Row:
        cells = list(row)
        for place in places:
            if cells[place]:
                known = values.get(cells[place])
                cells[place] = self.masks.text(cells[place]) if known is None else known
        return tuple(cells)


def _changed_lines(original: bytes, covered: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each masked line, without its line break."""
    position = 0
    while position < len(original):
        end = original.find(b"\n", position)
        end = len(original) if end < 0 else end
        if original[position:end] != covered[position:end]:
            yield position, end
        position = end + 1


# ------------------------------------------------------------------------------------------------
# What may leave this machine: the conversations of allowed projects, or everything.
#
# A file belongs to the project of its session, or without a session, to the project in whose
# directory it is. Data that several projects share (histories, lists, teams, hooks) belongs to
# none, and leaves only if everything may. A project is allowed by the exact path of its directory.
#
# Agents name the directory of a conversation after the path, with a dash for each character but
# letters and digits, so /srv/my_shop and /srv/my-shop are one project. Of such a project, only
# sessions leave that worked in the allowed directory and not in the other one, and no data without
# a session.


OWN = f"select id from sources where not {is_pulled('root')}"
"""The sources of this machine: pulled data is never pushed."""


_ENDED = "coalesce({0}.ended_at, {0}.started_at)"
"""When a session ended."""


def _last_record(file: str) -> str:
    """Return the time of the last line of a file; null if its lines have none."""
    return (
        f"coalesce((select ended_at from transcripts where file_id = {file}.id),"
        f" (select timestamp from prompts where file_id = {file}.id and timestamp is not null"
        " order by byte_offset desc limit 1))"
    )


@dataclass(frozen=True, slots=True)
class Scope:
    """The projects that may leave this machine."""

    projects: str | None = None
    """Their ids as SQL; None: everything may leave."""
    unshared: str = ""
    """Those whose names mean only one directory."""
    left_out: str = ""
    """Sessions of the other ones that may not leave."""
    kept_since: str = ""
    """Files whose last line is older stay here: the server would not keep them."""

    def of_file(self, file: str) -> str:
        """Return the condition that a row of `files` is in scope; `file` is its alias."""
        return f"({self._may_leave(file)} and not {self._is_old_file(file)})"

    def _is_old_file(self, file: str) -> str:
        """Return the condition that the server does not keep a row of `files`.

        It is as old as its last line, or as its session, or if it has neither, as its last change.
        A file that was copied or touched has a new time of change, and a restored one an old one.
        """
        of_session = f"(select {_ENDED.format('a')} from sessions a where a.id = {file}.session_id)"
        return self._is_old(f"coalesce({_last_record(file)}, {of_session}, {file}.mtime)")

    def _is_old(self, time: str) -> str:
        """Return the condition that the server does not keep what has this time.

        A time before the year 2000 comes from a wrong clock. `deletion` has the same condition.
        """
        if not self.kept_since:
            return "0"
        return f"coalesce({time} between '2000' and '{self.kept_since}', 0)"

    def _may_leave(self, file: str) -> str:
        if self.projects is None:
            return f"{file}.source_id in ({OWN})"
        return (
            f"iif({file}.session_id is null, {file}.project_id in ({self.unshared}),"
            f" {self._of_session(f'{file}.session_id')})"
        )

    def _of_session(self, id_: str) -> str:
        return (
            f"exists (select 1 from sessions x where x.id = {id_}"
            f" and x.project_id in ({self.projects}) and x.id not in ({self.left_out}))"
        )

    def _of_note(self) -> str:
        """Return the condition that the note `r` is the user's own, and on something in scope."""
        return (
            "r.origin is null and (exists (select 1 from sessions n where"
            f" n.session_key = r.session_key and {self._of_session('n.id')}) or exists ("
            f"select 1 from projects x where x.id in ({self.unshared}) and x.path <> ''"
            " and substr(r.path, 1, length(x.path) + 1) = replace(x.path, '\\', '/') || '/'))"
        )

    def has(self, table: str, id_: str) -> str:
        """Return the condition that the row of a placed table with this id is in scope."""
        return (
            f"exists (select 1 from {table} o join files f on f.id = o.file_id"
            f" where o.id = {id_} and {self.of_file('f')})"
        )

    def keeps(self, table: str) -> str:
        """Return the condition that the row `r` of a keyed table is in scope."""
        id_ = {"sessions": "r.id", "subagents": "r.session_id", "tasks": "r.session_id"}.get(table)
        if not self.kept_since or id_ is None:
            return self._keeps(table)
        return (
            f"{self._keeps(table)} and not exists (select 1 from sessions y where y.id = {id_}"
            f" and {self._is_old(_ENDED.format('y'))} and not exists ("
            f"select 1 from files z where z.session_id = y.id and not {self._is_old_file('z')}))"
        )

    def _keeps(self, table: str) -> str:
        if self.projects is None:
            of_file = f"r.file_id in (select id from files where source_id in ({OWN}))"
            whole = {"sources": f"r.id in ({OWN})", "prices": "1", "team_members": of_file}
            whole["notes"] = "r.origin is null"
            return whole.get(table, f"r.source_id in ({OWN})")
        mine = f"in ({self.projects})"
        of_file = f"exists (select 1 from files x where x.id = r.file_id and {self.of_file('x')})"
        of_source = f"exists (select 1 from projects x where x.source_id = r.id and x.id {mine})"
        conditions = {
            "sources": of_source,
            "projects": f"r.id {mine}",
            "agents": f"r.project_id in ({self.unshared})",
            "sessions": self._of_session("r.id"),
            "subagents": self._of_session("r.session_id"),
            "tasks": f"({of_file} or r.file_id is null and {self._of_session('r.session_id')})",
            "task_dependencies": of_file,
            "prices": "1",
            "notes": self._of_note(),
        }
        return conditions.get(table, "0")


EVERYTHING = Scope()


def of_paths(connection: sqlite3.Connection, paths: Collection[str]) -> Scope:
    """Return the scope of the projects with these paths that the database has."""
    rows = connection.execute(
        "select id, path from projects where path in (select value from json_each(?))"
        f" and source_id in ({OWN})",
        (json.dumps(sorted(paths)),),
    )
    projects = dict(rows.fetchall())
    shared, left_out = _shared(connection, projects)
    return Scope(id_list(projects), id_list(projects.keys() - shared), id_list(left_out))


def _shared(connection: sqlite3.Connection, projects: dict[int, str]) -> tuple[set[int], list[int]]:
    """Return the projects of several directories, and those of their sessions that stay here."""
    ids = id_list(projects)
    rows = connection.execute(
        "select coalesce(s.project_id, f.project_id), f.session_id, d.path"
        " from working_directories d join files f on f.id = d.file_id"
        " left join sessions s on s.id = f.session_id"
        f" where coalesce(s.project_id, f.project_id) in ({ids})"
        f" union select project_id, id, cwd from sessions where project_id in ({ids})"
    )
    worked_in = defaultdict[tuple[int, int | None], set[str]](set)
    for project, session, path in rows:
        worked_in[project, session].add(comparable(path or ""))
    shared, certain = set[int](), set[int | None]()
    for (project, session), places in worked_in.items():
        path = comparable(projects[project])
        if any(_is_namesake(place, path) for place in places):
            shared.add(project)
        elif any(place == path or place.startswith(f"{path}/") for place in places):
            certain.add(session)
    sessions = connection.execute(
        f"select id from sessions where project_id in ({id_list(shared)})"
    )
    return shared, [id_ for (id_,) in sessions if id_ not in certain]


def _is_namesake(place: str, path: str) -> bool:
    """Is a directory in another one that agents name like `path`?"""
    head, rest = place[: len(path)], place[len(path) :]
    is_within = rest[:1] in ("", "/")
    return is_within and head != path and _flat(head) == _flat(path)


def _flat(path: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in path)


def known_paths(connection: sqlite3.Connection, directory: str) -> list[str]:
    """Return the stored paths of the projects in a directory.

    Raises UsageError if it is no path, and NotFoundError if no project has it.
    """
    path = as_path(directory)
    if path is None:
        raise UsageError(
            f"{directory} is not an absolute path. Give the directory of the project: "
            "/path/to/project, or . for this one"
        )
    rows = connection.execute("select distinct path from projects where path is not null")
    found = [known for (known,) in rows if comparable(known) == comparable(path)]
    if not found:
        raise NotFoundError(
            f"No conversation of a project in {path} has been read. To see the projects: "
            "assoc-ingest list projects"
        )
    return found


# ------------------------------------------------------------------------------------------------
# The SQL that makes rows for the server from local rows: one statement for each table.
#
# It says where the columns of the tables above come from. A column that is not mentioned is the
# local column with the same name.


_SESSION = {"source_no": "s.source_id", "session_key": "s.session_key"}
_SUBAGENT = {
    "agent_session_key": "iif(a.id is null, null, coalesce(a.session_key, ''))",
    "agent_key": "a.agent_key",
}
_PROJECT = {"project_source_no": "p.source_id", "project_key": "p.key"}
_STATED = {
    "stated_session_key": "r.session_key",
    "stated_agent_key": "r.agent_key",
    "stated_project_key": "r.project_key",
}
_TEAM = {"team_source_no": "t.source_id", "team_key": "t.key"}
_FILE = {"file_key": "(select file_key from files where id = r.file_id)"}

_JOIN_SESSION = " left join sessions s on s.id = r.session_id"
_JOIN_SUBAGENT = " left join subagents a on a.id = r.subagent_id"
_JOIN_PROJECT = " left join projects p on p.id = r.project_id"
_JOIN_TEAM = " left join teams t on t.id = r.team_id"


class _Origin(NamedTuple):
    """The origin of the columns of a table."""

    columns: Mapping[str, str] = MappingProxyType({})
    joins: str = ""
    order: tuple[str, ...] = ()
    """Columns that order rows with the same place in a file: the rest of the local unique key."""


_PLACED = {
    "messages": _Origin(_SESSION | _SUBAGENT, _JOIN_SESSION + _JOIN_SUBAGENT, ("block",)),
    "tool_calls": _Origin(
        {
            **_SESSION,
            **_SUBAGENT,
            "is_call": "r.call_id is not null",
            "result_offset": "(select byte_offset from messages where id = r.result_id)",
            "result_block": "(select block from messages where id = r.result_id)",
        },
        _JOIN_SESSION + _JOIN_SUBAGENT,
        ("block", "tool_use_id"),
    ),
    "usage": _Origin(order=("response_key",)),
    "stated_usage": _Origin(order=("model",)),
    "responses": _Origin(_SESSION | _SUBAGENT, _JOIN_SESSION + _JOIN_SUBAGENT, ("response_key",)),
    "prompts": _Origin(_SESSION | _PROJECT | _STATED, _JOIN_SESSION + _JOIN_PROJECT),
    "links": _Origin(_SESSION | _STATED, _JOIN_SESSION, ("kind", "url", "session_key")),
    "documents": _Origin(
        {**_SESSION, **_PROJECT, **_STATED, "byte_offset": "0"},
        _JOIN_SESSION + _JOIN_PROJECT,
        ("ordinal",),
    ),
    "plans": _Origin(_SESSION, _JOIN_SESSION, ("name",)),
    "todos": _Origin(
        _SESSION | _SUBAGENT | _STATED,
        _JOIN_SESSION + _JOIN_SUBAGENT,
        ("content", "ordinal", "tool_use_id"),
    ),
    "inbox_items": _Origin(
        _SESSION | _TEAM,
        _JOIN_SESSION + _JOIN_TEAM,
        ("timestamp", "sender", "text_hash", "ordinal"),
    ),
    "tool_result_files": _Origin({**_SESSION, **_STATED, "byte_offset": "0"}, _JOIN_SESSION),
    "issues": _Origin(order=("reason", "byte_length", "quarantined", "sample")),
    "line_types": _Origin({"byte_offset": "-1"}, order=("type", "subtype")),
    "agent_lines": _Origin(order=("agent_key",)),
    "contexts": _Origin(order=("name",)),
}

_KEYED = {
    "sources": _Origin({"source_no": "r.id"}),
    "projects": _Origin(
        {
            "source_no": "r.source_id",
            "parent_source_no": "o.source_id",
            "parent_key": "o.key",
            "same_source_no": "e.source_id",
            "same_key": "e.key",
        },
        " left join projects o on o.id = r.parent_id left join projects e on e.id = r.same_as",
    ),
    "agents": _Origin(
        {"source_no": "r.source_id", "stated_project_key": "r.project_key", **_PROJECT, **_FILE},
        _JOIN_PROJECT,
    ),
    "sessions": _Origin(
        {
            **_PROJECT,
            "source_no": "r.source_id",
            "forked_source_no": "f.source_id",
            "forked_key": "f.session_key",
            "linked_source_no": "l.source_id",
            "linked_key": "l.session_key",
            "agent_source_no": "g.source_id",
            "agent_project_key": "g.project_key",
            "agent_key": "g.agent_key",
        },
        _JOIN_PROJECT + " left join sessions f on f.id = r.forked_from"
        " left join sessions l on l.id = r.linked_session_id"
        " left join agents g on g.id = r.agent_id",
    ),
    "subagents": _Origin(
        {
            "source_no": "r.source_id",
            "stated_session_key": "coalesce(r.session_key, '')",
            "session_key": "s.session_key",
            "parent_source_no": "o.source_id",
            "parent_session_key": "iif(o.id is null, null, coalesce(o.session_key, ''))",
            "parent_key": "o.agent_key",
            "spawned_by_file_key": "(select file_key from files where id = c.file_id)",
            "spawned_by_tool_use_id": "c.tool_use_id",
        },
        _JOIN_SESSION + " left join subagents o on o.id = r.parent_id"
        " left join tool_calls c on c.id = r.spawned_by",
    ),
    "teams": _Origin(
        {
            "source_no": "r.source_id",
            "stated_lead_session_key": "r.lead_session_key",
            "lead_source_no": "s.source_id",
            "lead_session_key": "s.session_key",
            **_FILE,
        },
        " left join sessions s on s.id = r.lead_session_id",
    ),
    "team_members": _Origin(
        {"member_key": "coalesce(r.agent_id, r.name, '')", **_TEAM, **_FILE}, _JOIN_TEAM
    ),
    "tasks": _Origin(
        {
            "source_no": "r.source_id",
            "session_source_no": "s.source_id",
            "session_key": "s.session_key",
            **_TEAM,
            **_FILE,
        },
        _JOIN_SESSION + _JOIN_TEAM,
    ),
    "task_dependencies": _Origin(
        {
            "source_no": "r.source_id",
            "task_channel": "(select channel from tasks where id = r.task_id)",
            "blocker_channel": "(select channel from tasks where id = r.blocker_id)",
            **_FILE,
        }
    ),
    "prices": _Origin(),
    "notes": _Origin(
        {name: f"coalesce(r.{name}, '')" for name in ("session_key", "line_key", "path")}
    ),
}

_FILES = _Origin(
    {
        **_SUBAGENT,
        **_PROJECT,
        **_STATED,
        "source_no": "r.source_id",
        "session_key": "s.session_key",
        "entrypoint": "(select entrypoint from transcripts where file_id = r.id)",
        "recorded_at": _last_record("r"),
    },
    _JOIN_SESSION + _JOIN_SUBAGENT + _JOIN_PROJECT,
)


def _select(table: Table, origin: _Origin) -> str:
    columns = ", ".join(
        origin.columns.get(name, f'r."{name}"') for name in table.names if name != "row_no"
    )
    return f"select {columns} from {table.name} r{origin.joins}"


FILE = f"{_select(FILES, _FILES)} where r.id = ?"
"""The attributes of a file."""


def _place_of(origin: _Origin) -> tuple[str, ...]:
    """Return the column that orders rows by place, none if all have the same place."""
    return () if "byte_offset" in origin.columns else ("byte_offset",)


@lru_cache(maxsize=64)
def placed(table: Table, scope: Scope) -> str:
    """Return the statement for the rows of a file from a place on; parameters `file`, `start`."""
    origin = _PLACED[table.name]
    is_copy = f"r.copy_of is not null and {scope.has(table.name, 'r.copy_of')}"
    statement = _select(table, origin._replace(columns={**origin.columns, "is_copy": is_copy}))
    place = origin.columns.get("byte_offset", "r.byte_offset")
    order = ", ".join([f'r."{name}"' for name in (*_place_of(origin), *origin.order, "id")])
    return f"{statement} where r.file_id = :file and {place} >= :start order by {order}"


def keyed_rows(table: Table, scope: Scope) -> str:
    """Return the statement for the rows of a table in scope.

    Its parameter `ids` is null, or a JSON array that limits the rows.
    """
    return (
        f"{_select(table, _KEYED[table.name])} where {scope.keeps(table.name)}"
        " and (:ids is null or r.id in (select value from json_each(:ids))) order by r.id"
    )


# ------------------------------------------------------------------------------------------------
# Reads the rows from one snapshot of the local database, a frame at a time.
#
# On the server, a file consists of its attributes and its frames, each with compressed bytes and
# the rows that begin in it. A frame ends where the next one begins, so that no row is between two
# frames; the last frame has no end. Two digests show whether a frame differs from the server's: one
# of its compressed bytes, and one of its rows. The latter consists of digests of pieces of some
# lines each, so that a new line sends the rows of the last piece, and not of the whole frame.
#
# Counts of a whole file (`line_types`) change with every line. They travel in a separate frame that
# begins at -1, so that a new line does not send the first megabyte of a transcript again.
#
# A **cursor** is the last change that was seen. If the database knows it, it has a record of all
# later changes (`store/changes.py`); otherwise everything must be compared.


COUNTS_START = -1
"""The start of the frame that has the counts of a file instead of bytes."""

_AFTER_ALL = 2**62


class Cursor(NamedTuple):
    """A state of the database: its last change, with the random mark of that change."""

    change: int
    mark: int


class ChangedFile(NamedTuple):
    """A file to compare with the server."""

    id: int
    file_key: bytes
    start: int
    """The first place that changed; beyond the end if only counts changed."""


class Frame(NamedTuple):
    """A stretch of a file: its bytes, compressed, and the rows that begin in it, by table."""

    start: int
    end: int | None
    """Where the next frame begins; None: the file has no other frame behind it."""
    data: bytes | None
    """None: there are no archived bytes, or they cannot be masked."""
    digest: bytes
    rows: Rows
    rows_digest: bytes
    """The digests of the pieces of its rows (`digested`), one after the other."""
    row_starts: list[int]
    """Where each piece begins, and where the last one ends."""


class FileContent(NamedTuple):
    """A file as the server stores it."""

    file_key: bytes
    attributes: tuple[Any, ...]
    frames: Iterator[Frame]
    is_whole: bool
    """Are these all of its frames, not only those from the first change on?"""


class KeyedSet(NamedTuple):
    """Rows of a keyed table."""

    table: str
    rows: list[tuple[Any, ...]]
    is_whole: bool
    """Are these all rows in scope? Then the server has to delete all others."""


def cursor(connection: sqlite3.Connection) -> Cursor | None:
    """Return the present state of the database, None if it does not record changes."""
    row = connection.execute("select id, mark from changes order by id desc limit 1").fetchone()
    return Cursor(*row) if row else None


@dataclass(frozen=True, slots=True)
class Local:
    """What may leave the local database. The caller holds a snapshot on the connection."""

    connection: sqlite3.Connection
    scope: Scope
    masks: Masks = field(default_factory=lambda: Masks(is_on=False))
    left_out: frozenset[int] = frozenset()
    """Files for a later push, because this one cannot give them their keys."""

    def cursor(self) -> Cursor | None:
        """Return the present state of the database, None if it does not record changes."""
        return None if self.left_out else cursor(self.connection)

    def is_known(self, seen: Cursor) -> bool:
        """Are all changes since then recorded?"""
        query = "select 1 from changes where id = ? and mark = ?"
        return self.connection.execute(query, seen).fetchone() is not None

    def files(self, since: int | None) -> Iterator[ChangedFile]:
        """Yield the files in scope that changed after `since`; all of them if it is None."""
        if since is None:
            in_scope = self.scope.of_file("f")
            query = f"select id, file_key, {COUNTS_START} from files f where {in_scope}"
        else:
            query = (
                f"select f.id, f.file_key, min(coalesce(r.start, {_AFTER_ALL}))"
                " from changed_rows r join files f on f.id = r.row_id"
                " where r.change_id > :since and r.name = 'files' and"
                f" {self.scope.of_file('f')} group by f.id"
            )
        for row in self.connection.execute(f"{query} order by f.id", {"since": since}):
            file = ChangedFile(*row)
            if file.id not in self.left_out:
                yield file

    def content(self, file: ChangedFile) -> FileContent:
        """Return a file from the frame in which `file.start` lies: the rest is unchanged."""
        values = tuple(self.connection.execute(FILE, (file.id,)).fetchone())
        (attributes,) = self.masks.rows(FILES, cleaned(FILES, [values]))
        archived = self.connection.execute(
            'select start, id, "end" from archive where file_id = ? order by start', (file.id,)
        ).fetchall()
        stored = [_Stored(*row) for row in archived]
        # A row must travel with a frame: the first begins where the file does, archived or not.
        if not stored or stored[0].start > 0:
            stored.insert(0, _Stored(0, None, 0))
        first = max(n for n, frame in enumerate(stored) if not n or frame.start <= file.start)
        if file.start >= _AFTER_ALL:
            first = len(stored)
        masks = self.masks.of_file(self.connection, file.id)
        frames = _frames(self.connection, file.id, self.scope, stored[first:], masks)
        return FileContent(file.file_key, attributes, frames, first == 0)

    def keyed(self, since: int | None) -> Iterator[KeyedSet]:
        """Yield the keyed tables that changed after `since`; all of them if it is None.

        All `sources` are always among them: the time of the last sync is not recorded as a change.
        """
        for table in KEYED:
            changed = self._changed_ids(table.name, since)
            takes_all = changed is None or table.name == "sources"
            if not takes_all and not changed:
                continue
            ids = None if takes_all else json.dumps(changed)
            rows = self.connection.execute(keyed_rows(table, self.scope), {"ids": ids})
            masked = self.masks.rows(table, cleaned(table, map(tuple, rows)))
            yield KeyedSet(table.name, list(masked), changed is None)

    def _changed_ids(self, table: str, since: int | None) -> list[int] | None:
        """Return the ids of changed rows; None: compare all, because one may have been removed."""
        if since is None:
            return None
        rows = self.connection.execute(
            "select distinct row_id from changed_rows where change_id > ? and name = ?",
            (since, table),
        ).fetchall()
        ids = [id_ for (id_,) in rows]
        return None if None in ids else ids

    def gone_file_keys(self, since: int | None) -> list[bytes]:
        """Return the keys of files that were forgotten after `since`, for deletion there, too."""
        rows = self.connection.execute(
            "select file_key from forgotten_files where change_id > ? order by id",
            (-1 if since is None else since,),
        )
        return [key for (key,) in rows]


class _Stored(NamedTuple):
    """A frame in the archive; without an id, there is none."""

    start: int
    id: int | None
    end: int


def _frames(
    connection: sqlite3.Connection,
    file_id: int,
    scope: Scope,
    stored: list[_Stored],
    masks: FileMasks | None,
) -> Iterator[Frame]:
    first = stored[0].start if stored else _AFTER_ALL
    placed = [
        _Rows(connection, table, scope, file_id, COUNTS_START if is_count else first)
        for table in PLACED
        for is_count in [table.name == "line_types"]
    ]
    yield _frame(COUNTS_START, 0, None, placed)
    for number, frame in enumerate(stored):
        end = stored[number + 1].start if number + 1 < len(stored) else None
        row = connection.execute("select data from archive where id = ?", (frame.id,)).fetchone()
        made = _frame(frame.start, end, row and row[0], placed)
        if end is not None or made.data is not None or made.rows:  # an empty file has no frame
            yield made if masks is None else _masked(made, masks, frame.end)


def _masked(frame: Frame, masks: FileMasks, end: int) -> Frame:
    stored = archive.Frame(frame.start, end, frame.data or b"")
    data, rows = masks.applied(stored, frame.rows, is_last=frame.end is None)
    return _made(frame.start, frame.end, data, rows)


def _frame(start: int, end: int | None, data: bytes | None, placed: list[_Rows]) -> Frame:
    found = {rows.name: taken for rows in placed if (taken := rows.before(end))}
    return _made(start, end, data, found)


def _made(start: int, end: int | None, data: bytes | None, rows: Rows) -> Frame:
    return Frame(start, end, data, sha256(data or b"").digest(), rows, *digested(rows, start))


class _Rows:
    """The rows of a file in one table, ordered by place."""

    def __init__(
        self, connection: sqlite3.Connection, table: Table, scope: Scope, file_id: int, start: int
    ) -> None:
        self.name = table.name
        self._table = table
        self._has_number = table.key[-1] == "row_no"
        self._rows = connection.execute(placed(table, scope), {"file": file_id, "start": start})
        self._next = self._rows.fetchone()

    def before(self, end: int | None) -> list[tuple[Any, ...]]:
        """Return the next rows before a place, all if it is None."""
        if self._next is None:
            return []
        taken: list[tuple[Any, ...]] = []
        number, last = 0, None
        while self._next is not None and (end is None or self._next[0] < end):
            row = tuple(self._next)
            number = number + 1 if row[0] == last else 0
            last = row[0]
            taken.append((row[0], number, *row[1:]) if self._has_number else row)
            self._next = self._rows.fetchone()
        return list(cleaned(self._table, taken))


def database_key(connection: sqlite3.Connection) -> str:
    """Return the key of the database as a UUID; a new database has another."""
    (key,) = connection.execute("select database_key from identity").fetchone()
    return str(UUID(bytes=key))


# -- values --------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """The columns of a table whose values may need cleaning."""

    texts: tuple[int, ...]
    cut: tuple[int, ...]
    needed: tuple[tuple[int, str | int], ...]
    """Columns of the key, with the values that replace null."""


@cache
def _plan(table: Table) -> _Plan:
    columns = table.columns
    return _Plan(
        tuple(place for place, column in enumerate(columns) if column.type == TEXT),
        tuple(place for place, column in enumerate(columns) if column.is_cut),
        tuple(
            (place, "" if column.type == TEXT else 0)
            for place, column in enumerate(columns)
            if column.name in table.key
        ),
    )


def cleaned(table: Table, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows that the server can store: without NUL, and with keys that fit into an index."""
    texts, cut, needed = _plan(table)
    for row in rows:
        values = list(row)
        for place in texts:
            text = values[place]
            if text and "\0" in text:
                values[place] = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
        for place in cut:
            if values[place]:
                values[place] = short_key(values[place])
        for place, default in needed:
            if values[place] is None:
                values[place] = default
        yield tuple(values)


# -- digests -------------------------------------------------------------------------------------


_PIECE = 32
"""Rows after which the next line begins another piece."""

DIGEST_SIZE = sha256().digest_size


def digested(rows: Rows, start: int) -> tuple[bytes, list[int]]:
    """Return the digests of the pieces of a frame's rows, and where pieces begin and the last ends.

    Which rows are in a piece depends only on those before and in it.
    """
    counts = Counter(row[0] for of_table in rows.values() for row in of_table)
    starts, size, end = [start], 0, start
    for place in sorted(counts):
        if size >= _PIECE:
            starts.append(end)
            size = 0
        size += counts[place]
        end = place + 1
    pieces = [sha256() for _ in starts] if counts else []
    for table in sorted(rows):
        for row in rows[table]:
            piece = pieces[bisect_right(starts, row[0]) - 1]
            piece.update(f"{table}{row!r}".encode("utf-8", "surrogatepass"))
    return b"".join(piece.digest() for piece in pieces), [*starts, end] if counts else starts
