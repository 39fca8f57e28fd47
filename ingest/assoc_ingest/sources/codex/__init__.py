"""Codex: the rollouts of the command line, the desktop application and editors in `~/.codex`.

```
sessions/YYYY/MM/DD/rollout-<time>-<thread>[_<segment>].jsonl   a thread; see `rollout`
sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl.zst           the same, packed when it got old
sessions/rollout-<date>-<thread>.json                           a thread of the first versions
archived_sessions/<the same name>                               a thread that was archived
session_index.jsonl, history.jsonl                              `lists`
agent_message_board_<n>.sqlite, queue_<n>.sqlite and others     `stores`
```

The home is `CODEX_HOME`, or `~/.codex`. A thread stays in the folder of its first day. It is a
session, or a subagent: that is only in its first line, which then names the session, too. Reviews
and what else the program starts on its own are side agents; without a session, they are hidden.

Nothing else is opened: credentials (`auth.json`, `.credentials.json`, `.env`), settings
(`config.toml` and others), logs (`log/`, `logs_<n>.sqlite`), and `shell_snapshots/`, which contain
the environment. These are not opened for other sources either.

The package is larger than those of other agents, because it has to be: three forms of files, items
and the events that repeat some of them, four ways in which an output says how it ended, and copies
of other threads' lines that only rules tell from own ones (`thread`), also for tokens (`tokens`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import sha256

from ...fields import MAX_TEXT, json_text, left_over, mapping, obvious_text, string, utc
from ...records import Document, InboxItem, Issue, Prompt, Record, SessionEntry
from ...source import (
    DATABASE,
    DOCUMENT,
    LOG,
    UNREAD,
    Claim,
    Context,
    Database,
    Line,
    Listing,
    Recognition,
    Table,
    entry_names,
    parts_of,
)
from ..chat_reader import AgentSource
from ..reader import UUID, JSONObject, Reader, folded, pieces
from .rollout import EVENTS, ITEMS, LINES, SPAWN, session_of, spawn_of

# ------------------------------------------------------------------------------------------------
# The databases of Codex: mail between agents, queued prompts, goals, memories and titles.
#
# ```
# agent_message_board_<n>.sqlite
#                      posts {seq, board, id, channel, root, author, timestamp, payload}
# queue_<n>.sqlite     queued_items {id, thread_id, payload_json, queue_order, created_at_ms}
# goals_<n>.sqlite     thread_goals {thread_id, goal_id, objective, status, token_budget,
#                      tokens_used, time_used_seconds, created_at_ms, updated_at_ms}
# memories_<n>.sqlite  stage1_outputs {thread_id, raw_memory, rollout_summary, rollout_slug,
#                      generated_at}
# state_<n>.sqlite     threads {id, name, created_at}
# ```
#
# Each thread that a database knows is an entry of it, such as `queue_1.sqlite#<thread>`.
#
# - A post belongs to the board of a session, and to a channel of it; a reply has another `root`
#   than its own `id`. The payload is `{"metadata":{},"text"}`. `timestamp` is in microseconds.
# - A queued prompt waits until the thread is free, and is deleted when it is sent. Its payload has
#   a list of inputs, `input` or `items`. A version between stored it in binary JSON: that is an
#   issue.
# - A goal has a budget of tokens, and what was used of it.
# - A memory is what a model wrote about a thread; `generated_at` is in seconds.
# - `threads.name` is the name that a person gave a thread. Versions before it have no such column.
#
# Learned from the source of Codex in public repositories, up to version 0.169: the migrations in
# `codex-rs/state`, and programs that read or write these databases. No real one was at hand.
#
# `thread_history_<n>.sqlite` is not read: Codex can make it again from the rollouts. Nor are
# `logs_<n>.sqlite`, and in `state_<n>.sqlite` anything but names.


_database = re.compile(
    r"(agent_message_board|queue|goals|memories|state)_[0-9]{1,4}\.sqlite"
).fullmatch

_LAYOUTS = {
    "agent_message_board": Database(
        listing="select board, null, max(timestamp) / 1000, count(*), max(seq)"
        " from posts group by board",
        counts=(),
        tables=(
            Table(
                "posts",
                ("id", "channel", "root", "author", "timestamp"),
                "board = :key",
                "seq",
                id="seq",
                json="payload",
            ),
        ),
    ),
    "queue": Database(
        listing="select thread_id, null, max(updated_at_ms), count(*),"
        " sum(updated_at_ms % 1000000007), sum(length(payload_json)), sum(queue_order)"
        " from queued_items group by thread_id",
        counts=(),
        tables=(
            Table(
                "queued_items",
                ("queue_order", "created_at_ms"),
                "thread_id = :key",
                "queue_order, id",
                json="payload_json",
            ),
        ),
    ),
    "goals": Database(
        listing="select thread_id, null, updated_at_ms, goal_id, status, tokens_used"
        " from thread_goals",
        counts=(),
        tables=(
            Table(
                "thread_goals",
                (
                    *("objective", "status", "token_budget", "tokens_used", "time_used_seconds"),
                    *("created_at_ms", "updated_at_ms"),
                ),
                "thread_id = :key",
                "goal_id",
                id="goal_id",
            ),
        ),
    ),
    "memories": Database(
        listing="select thread_id, null, generated_at * 1000, length(raw_memory),"
        " length(rollout_summary) from stage1_outputs",
        counts=(),
        tables=(
            Table(
                "stage1_outputs",
                ("raw_memory", "rollout_summary", "rollout_slug", "generated_at"),
                "thread_id = :key",
                "thread_id",
                id="thread_id",
            ),
        ),
    ),
    "state": Database(
        # Where `threads` has no column `name`, the inner select finds that of `other`.
        listing="select t.id, null, t.created_at * 1000,"
        " (select name from threads n where n.id = t.id) as called"
        " from threads t cross join (select null as name) other where called <> ''",
        counts=(),
        tables=(Table("threads", ("name",), "id = :key"),),
    ),
}


def store_of(name: str) -> str | None:
    """Return what the database of this name has, None if it is not one of these."""
    found = _database(name)
    return found[1] if found else None


def layout(name: str) -> Database | None:
    """Return how the database of this name is read."""
    return _LAYOUTS.get(store_of(name) or "")


def read(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read what a database has of one thread."""
    reader = Reader(claim)
    for value in reader.objects(lines, lambda value: "table" in value, type_key="table"):
        table = string(value.get("table")) or ""
        if table in _READ:
            reader.records += _READ[table](reader, value)
        else:
            reader.refuse("unknown table")
    return reader.finish()


def _post(reader: Reader, value: JSONObject) -> Iterable[Record]:
    payload = reader.mapping(value, "data")
    text = (reader.text(payload, "text") or "")[:MAX_TEXT]
    if not text:
        reader.note("data: no text")
        return
    microseconds, channel = reader.whole(value, "timestamp"), reader.name(value, "channel")
    key, root = reader.name(value, "id"), reader.name(value, "root")
    about = {"board": reader.claim.session_key, "reply_to": None if root == key else root}
    yield InboxItem(
        text, reader.name(value, "author"), f"#{channel}" if channel else None, "message", None,
        None if microseconds is None else utc(microseconds // 1000), None, None,
        json_text({name: stated for name, stated in about.items() if stated}),
        "transcript", None, key, sha256(text.strip().encode("utf-8", "replace")).hexdigest(), 0,
        reader.start, reader.length,
    )  # fmt: skip


def _queued(reader: Reader, value: JSONObject) -> Iterable[Record]:
    payload = reader.mapping(value, "data")
    inputs = [
        obvious_text(part)
        for key in ("input", "items")
        if isinstance(payload.get(key), list)
        for part in reader.items(payload, key)
    ]
    text = "\n".join(filter(None, inputs)) or obvious_text(payload)
    if not text:
        reader.note("data: no text")
        return
    place, moment = reader.whole(value, "queue_order"), reader.time(value, "created_at_ms")
    title = text.strip().partition("\n")[0][:200]
    yield _document(reader, "queued_prompt", title, text, moment, place or 0, None)


def _goal(reader: Reader, value: JSONObject) -> Iterable[Record]:
    text = reader.text(value, "objective") or ""
    moment = reader.time(value, "updated_at_ms")
    extra = left_over(value, ("table", "objective", "updated_at_ms"))
    yield _document(reader, "goal", text.partition("\n")[0][:200], text, moment, 0, extra)


def _memory(reader: Reader, value: JSONObject) -> Iterable[Record]:
    title, moment = reader.name(value, "rollout_slug"), reader.time(value, "generated_at")
    kinds = {"summary": "rollout_summary", "memory": "raw_memory"}
    for ordinal, (kind, key) in enumerate(kinds.items()):
        if text := reader.text(value, key):
            yield _document(reader, kind, title, text, moment, ordinal, None)


def _document(
    reader: Reader, kind: str, title: str | None, text: str, moment: str | None, ordinal: int,
    extra: str | None,
) -> Document:  # fmt: skip
    return Document(
        kind, title or None, text[:MAX_TEXT], "/".join(reader.claim.parts),
        session_key=reader.claim.session_key, modified_at=moment, ordinal=ordinal, extra=extra,
    )  # fmt: skip


def _name(reader: Reader, value: JSONObject) -> Iterable[Record]:
    name = reader.text(value, "name")
    key = reader.claim.session_key
    if name is not None and key is not None:
        yield SessionEntry(key, "meta", name[:1000], byte_offset=reader.start)


_READ: dict[str, Callable[[Reader, JSONObject], Iterable[Record]]] = {
    "posts": _post,
    "queued_items": _queued,
    "thread_goals": _goal,
    "stage1_outputs": _memory,
    "threads": _name,
}


# ------------------------------------------------------------------------------------------------
# The prompt history of Codex, and its list of sessions.
#
# ```json
# {"session_id":"019e5615-9632-7740-b2cf-3061e4ff06e2","ts":1779560716,"text":"tidy the menus"}
# {"id":"019e5615-9632-7740-b2cf-3061e4ff06e2","thread_name":"Menus",
#  "updated_at":"2026-05-23T18:25:15Z"}
# ```
#
# `history.jsonl` has a line for each prompt. `session_index.jsonl` has one for each name that a
# session got, so the last one of a session counts; recent versions write it no more.


def _is_prompt(value: JSONObject) -> bool:
    return "session_id" in value and "text" in value


def history(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read prompts."""
    reader = Reader(claim)
    for value in reader.objects(lines, _is_prompt):
        session = reader.text(value, "session_id")
        text, moment = (reader.text(value, "text") or "")[:MAX_TEXT], reader.time(value, "ts")
        key, place = folded(session) if session else None, (reader.start, reader.length)
        reader.records.append(Prompt(text, moment, None, key, None, None, *place))
    return reader.finish()


def sessions(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the titles of sessions. The list is read as a whole, so it may end in a torn line."""
    reader = Reader(claim)
    (whole,) = lines
    entries: dict[str, SessionEntry] = {}
    start = whole.start
    parts = []
    for data in whole.data.split(b"\n"):
        parts.append(Line(start, data))
        start += len(data) + 1
    if not parts[-1].data.rstrip().endswith(b"}"):
        parts.pop()
    for value in reader.objects(parts):
        key = reader.text(value, "id")
        if key is None:
            reader.note("id: missing")
            continue
        title, ended = reader.text(value, "thread_name"), reader.time(value, "updated_at")
        entry = SessionEntry(folded(key), "index", title, ended_at=ended, byte_offset=reader.start)
        entries[folded(key)] = entry
    found = [*reader.finish(), *entries.values()]
    # A broken line is no reason to keep the titles of an earlier version.
    return [one._replace(quarantined=0) if isinstance(one, Issue) else one for one in found]


_rollout = re.compile(
    rf"rollout-[0-9T-]{{1,40}}-({UUID})(?:_[^/]{{1,200}})?\.(?:jsonl|jsonl\.zst|json)"
).fullmatch
_uuid = re.compile(UUID).fullmatch
_private_file = re.compile(
    r"auth.*\.json.*|.*config\.toml.*|\.credentials.*|\.env.*|logs_.*\.sqlite.*",
    re.IGNORECASE | re.DOTALL,
).fullmatch
_PRIVATE_DIRECTORIES = ("log", "shell_snapshots")
_LISTS = {"session_index.jsonl": "thread_names", "history.jsonl": "history"}
_FIELDS = {
    "session_index.jsonl": ("id", "thread_name", "updated_at"),
    "history.jsonl": ("session_id", "ts", "text"),
}

KNOWN_LINES = frozenset(
    [
        *(LINES.keys() - {"event_msg", "response_item"}),  # of these the subtype decides
        *_READ,  # tables of databases
        *("world_state", "dynamic_tools_updated"),
        *("message", "reasoning", "function_call", "function_call_output"),  # of bare rollouts
        *("custom_tool_call", "custom_tool_call_output", "local_shell_call", "web_search_call"),
        "event_msg/",
        *(
            f"event_msg/{event}"
            for event in (
                *EVENTS,
                *("agent_message", "agent_reasoning", "agent_reasoning_raw_content"),
                *("agent_reasoning_section_break", "background_event", "context_compacted"),
                *("deprecation_notice", "entered_review_mode", "exited_review_mode", "plan_update"),
                *("exec_command_begin", "image_generation_end", "item_started"),
                *("mcp_tool_call_begin", "patch_apply_begin"),
                *("task_complete", "thread_queue_changed", "turn_diff"),
                *("undo_completed", "undo_started"),
                *("user_message", "view_image_tool_call", "web_search_begin", "web_search_end"),
            )
        ),
        *(
            f"response_item/{item}"
            for item in (
                *ITEMS,
                *("", "compaction", "custom_tool_call_output", "function_call_output"),
                *("ghost_snapshot", "local_shell_call_output", "tool_search_output"),
            )
        ),
    ]
)
"""The types of lines of a rollout, with those of events and items."""


class Codex(AgentSource):
    """The source of kind `codex`."""

    name = "codex"
    label = "Codex"
    unread_places = (
        *("automations", "cache", "memories", "plugins", "prompts", "rules", "skills", "sqlite"),
        *("thread_history_*.sqlite", "tmp", "vendor_imports", "worktrees"),
    )
    checked = "up to 0.169"
    known_lines = KNOWN_LINES

    def knows(self, kind: str, subtype: str) -> bool:
        """All items that an event completes are operations, and all of the team's events agents."""
        whole = kind == "event_msg" and subtype.startswith(("item_completed ", "collab_"))
        return whole or super().knows(kind, subtype)

    variable, place = "CODEX_HOME", ".codex"

    def resume_command(self, session_key: str) -> list[str] | None:
        """The program accepts the id of a thread, which is a uuid."""
        return ["codex", "resume", session_key] if _uuid(session_key) else None

    def recognises(self, listing: Listing) -> Recognition:
        """A home has rollouts. If all are deleted, its lists and databases are still its own."""
        lists = []
        for path in listing:
            if self.claim(parts_of(path)):
                if "/" in path:
                    return Recognition.CERTAIN
                lists.append(path)
        is_home = any(_is_ours(path, listing.content(path)) for path in lists)
        return Recognition.POSSIBLE if is_home else Recognition.NO

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Credentials, settings and logs in the root, and snapshots of the environment."""
        if len(parts) == 1 and _private_file(parts[0]):
            return True
        return parts[0].casefold() in _PRIVATE_DIRECTORIES

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        match parts:
            case ("archived_sessions",) | ("sessions",):
                return True
            case ("sessions", *days):
                return len(days) <= 3 and all(day.isdigit() for day in days)
        return False

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout, and the name of the thread."""
        if len(parts) == 1 and parts[0] in _LISTS:
            return Claim(self.name, _LISTS[parts[0]], parts=parts)
        if len(parts) == 1 and ".sqlite" in parts[0]:
            return self._of_database(parts[0])
        thread = _thread(parts)
        if thread is None:
            return None
        return Claim(self.name, "transcript", session_key=thread, parts=parts)

    def layout(self, name: str) -> Database | None:
        """Each database has other tables."""
        return layout(name)

    def _of_database(self, name: str) -> Claim | None:
        """The claim of a database, of the log beside it, or of what it has of one thread."""
        database = name.removesuffix("-wal")
        if store_of(database) is not None:
            if name != database:
                return Claim(self.name, "database_log", within=database)
            return Claim(self.name, DATABASE)
        names = entry_names(name)
        kind = store_of(names[0]) if names else None
        if names is None or kind is None:
            return None
        return Claim(self.name, kind, session_key=folded(names[1]), parts=(name,), within=names[0])

    def shape(self, claim: Claim) -> str:
        """Rollouts and the history grow. In the list of sessions, the last entry counts."""
        if claim.kind in (DATABASE, "database_log"):
            return UNREAD
        is_document = claim.kind == "thread_names" or "".join(claim.parts[-1:]).endswith(".json")
        return DOCUMENT if is_document else LOG

    def classify(self, claim: Claim, lines: Iterable[bytes]) -> Claim:
        """The first line of a subagent's thread says that it is one, and names its session."""
        if claim.kind != "transcript":
            return claim
        from .rollout import is_known

        first = next(filter(bytes.strip, lines), b"")
        for piece in pieces(Line(0, first), is_known):
            payload = mapping((piece.object or {}).get("payload"))
            made_by, _ = spawn_of(payload)
            if made_by is not None and session_of(payload) is not None:
                return self.as_kind(claim, "agent" if made_by == SPAWN else "side_agent")
            break
        return claim

    def as_kind(self, claim: Claim, kind: str) -> Claim:
        """The path of a subagent's thread names the subagent, not the session."""
        if kind in ("agent", "side_agent"):
            return replace(claim, kind=kind, session_key=None, agent_key=claim.session_key)
        return super().as_kind(claim, kind)

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; most lines need what earlier ones said."""
        if claim.kind == "history":
            return history(claim, lines), context
        if claim.kind == "thread_names":
            return sessions(claim, lines), context
        if claim.within is not None:
            return read(claim, lines), context
        from .rollout import Rollout  # much to import, and most syncs read no line

        known = {**context}
        rollout = Rollout(claim, known)
        if self.shape(claim) == DOCUMENT:
            return rollout.read_document(lines), {}
        return rollout.read(lines), known


def _is_ours(name: str, content: bytes) -> bool:
    """Has a file in the root what Codex writes there: the fields of a list, or its tables?"""
    of_database = layout(name)
    if of_database is not None:
        return f" TABLE {of_database.tables[0].name}".encode() in content
    first = next(filter(bytes.strip, content.split(b"\n")), b"")
    return all(f'"{key}"'.encode() in first for key in _FIELDS.get(name, (" ",)))


def _thread(parts: tuple[str, ...]) -> str | None:
    """Return the thread whose rollout is at a path, None if none is."""
    if parts[0] not in ("sessions", "archived_sessions"):
        return None
    found = _rollout(parts[-1])
    return found[1].lower() if found else None
