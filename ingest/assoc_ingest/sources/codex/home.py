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
from collections.abc import Iterable
from dataclasses import replace

from ...entry import Database, entry_names
from ...fields import mapping
from ...records import Record
from ...source import DATABASE, DOCUMENT, LOG, UNREAD, Claim, Context, Line
from ..agent import AgentSource
from ..claude.paths import folded, uuid
from ..jsonl import pieces
from . import lists, stores
from .thread import SPAWN, session_of, spawn_of

_rollout = re.compile(
    rf"rollout-[0-9T-]{{1,40}}-({uuid})(?:_[^/]{{1,200}})?\.(?:jsonl|jsonl\.zst|json)"
).fullmatch
_uuid = re.compile(uuid).fullmatch
_private_file = re.compile(
    r"auth.*\.json.*|.*config\.toml.*|\.credentials.*|\.env.*|logs_.*\.sqlite.*",
    re.IGNORECASE | re.DOTALL,
).fullmatch
_PRIVATE_DIRECTORIES = ("log", "shell_snapshots")
_LISTS = {"session_index.jsonl": "thread_names", "history.jsonl": "history"}

KNOWN_LINES = frozenset(
    [
        *("session_meta", "turn_context", "compacted", "world_state", "token_usage_record"),
        *("message", "reasoning", "function_call", "function_call_output"),  # of bare rollouts
        *("custom_tool_call", "custom_tool_call_output", "local_shell_call", "web_search_call"),
        "event_msg/",
        *(
            f"event_msg/{event}"
            for event in (
                *("agent_message", "agent_reasoning", "agent_reasoning_raw_content"),
                *("agent_reasoning_section_break", "background_event", "context_compacted"),
                *("deprecation_notice", "entered_review_mode", "error", "exited_review_mode"),
                *("exec_command_begin", "exec_command_end", "image_generation_end"),
                *("item_completed", "item_started", "mcp_tool_call_begin", "mcp_tool_call_end"),
                *("patch_apply_begin", "patch_apply_end", "stream_error", "sub_agent_activity"),
                *("task_complete", "task_started", "thread_name_updated", "thread_rolled_back"),
                *("token_count", "turn_aborted", "turn_diff", "undo_completed", "undo_started"),
                *("user_message", "view_image_tool_call", "web_search_begin", "web_search_end"),
            )
        ),
        *(
            f"response_item/{item}"
            for item in (
                *("", "agent_message", "compaction", "custom_tool_call", "custom_tool_call_output"),
                *("function_call", "function_call_output", "ghost_snapshot", "message"),
                *("image_generation_call", "local_shell_call", "local_shell_call_output"),
                *("reasoning", "tool_search_call", "tool_search_output", "web_search_call"),
            )
        ),
    ]
)
"""The types of lines of a rollout, with those of events and items."""


class Codex(AgentSource):
    """The source of kind `codex`."""

    name = "codex"
    label = "Codex"
    known_lines = KNOWN_LINES

    def knows(self, kind: str, subtype: str) -> bool:
        """All items that an event completes are operations, and all of the team's events agents."""
        whole = kind == "event_msg" and subtype.startswith(("item_completed ", "collab_"))
        return whole or super().knows(kind, subtype)

    variable, place = "CODEX_HOME", ".codex"

    def resume_command(self, session_key: str) -> list[str] | None:
        """The program accepts the id of a thread, which is a uuid."""
        return ["codex", "resume", session_key] if _uuid(session_key) else None

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
        return stores.layout(name)

    def _of_database(self, name: str) -> Claim | None:
        """The claim of a database, of the log beside it, or of what it has of one thread."""
        database = name.removesuffix("-wal")
        if stores.store_of(database) is not None:
            if name != database:
                return Claim(self.name, "database_log", within=database)
            return Claim(self.name, DATABASE)
        names = entry_names(name)
        kind = stores.store_of(names[0]) if names else None
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
            return lists.history(claim, lines), context
        if claim.kind == "thread_names":
            return lists.sessions(claim, lines), context
        if claim.within is not None:
            return stores.read(claim, lines), context
        from .rollout import Rollout  # much to import, and most syncs read no line

        known = {**context}
        rollout = Rollout(claim, known)
        if self.shape(claim) == DOCUMENT:
            return rollout.read_document(lines), {}
        return rollout.read(lines), known


def _thread(parts: tuple[str, ...]) -> str | None:
    """Return the thread whose rollout is at a path, None if none is."""
    if parts[0] not in ("sessions", "archived_sessions"):
        return None
    found = _rollout(parts[-1])
    return found[1].lower() if found else None
