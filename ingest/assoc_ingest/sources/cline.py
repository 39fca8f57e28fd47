"""Cline: tasks of this agent for VS Code, and sessions of its newer versions.

```
<User>/globalStorage/saoudrizwan.claude-dev/tasks/<task>/     a task, until 3.x
<User>/globalStorage/saoudrizwan.claude-dev/state/taskHistory.json
~/.cline/data/tasks/<task>/, ~/.cline/data/state/             the same of the first command lines
~/.cline/data/sessions/<session>/<session>.messages.json      a session (4.0 on, June 2026)
~/.cline/data/sessions/<session>/<session>.json               its directory, model and title
~/.cline/data/sessions/<session>/<agent>.messages.json        a subagent
```

`<User>` is the directory of settings of VS Code, or of an editor that was made from it.
`CLINE_DATA_DIR` replaces `~/.cline/data`, and `CLINE_DIR` replaces `~/.cline`. The documents of a
task are described in `task_store`. A document is rewritten at each message.

A session has messages of the same form as a task: `{"version":1,"sessionId":"s","messages":[{"id":
"m1","role":"assistant","content":[],"ts":1767258003123,"modelInfo":{"id":"m","provider":"p"},
"metrics":{"inputTokens":640,"outputTokens":40,"cacheReadTokens":600,"cacheWriteTokens":0,
"cost":0.01}}]}`. Input includes the cache. A fork repeats messages with their ids.

A session that goes on with a task begins with a copy of it, up to a warning of the program, and
states all tokens of the task at once: this copy is left out. So is `<session>.compaction.json`,
what the model gets after a compaction.

Credentials are in `secrets.json`, and can be in `globalState.json`, `settings/` and `db/`. The
directory `checkpoints/` has repositories of the person's files. The format is that of the program's
source, from 3.20 (July 2025) to 4.1.13 (August 2026).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..fields import json_text, left_over
from ..paths import comparable, slashed
from ..records import Record, SessionEntry
from ..source import DOCUMENT, Claim, Context, Line, Listing, Recognition
from .chat_reader import actions
from .reader import JSONObject, Reader, exact_object, items_at
from .task_reader import TaskReader
from .task_source import TaskSource
from .tokens import beside_cache

_ACTIONS = {
    "run": "execute_command run_commands browser_action",
    "read": "read_file read_files web_fetch fetch_web_content access_mcp_resource use_skill skills "
    "load_mcp_documentation",
    "edit": "write_to_file replace_in_file apply_patch editor new_rule",
    "search": "search_files list_files list_code_definition_names search_codebase web_search",
    "plan": "plan_mode_respond act_mode_respond focus_chain switch_to_act_mode condense "
    "summarize_task new_task",
    "spawn": "use_subagents spawn_agent team_spawn_teammate",
    "ask": "ask_followup_question ask_question",
}
_TOOLS = (*" ".join(_ACTIONS.values()).split(), "attempt_completion", "use_mcp_tool")
_COUNTS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
_COPIED = "Warning: this is a legacy conversation, which means tool names may have changed."
_MESSAGES = ".messages.json"
_SECRET = ("secrets.json", "globalstate.json", "settings", "db")
_LISTED_COUNTS = ("tokensIn", "tokensOut", "cacheReads", "cacheWrites")


class _Task(TaskReader):
    """Reads the lines of a task of Cline."""

    action_of = staticmethod(actions(**_ACTIONS))
    tools = _TOOLS


class _Session(_Task):
    """Reads the document of a session."""

    tools = ()
    is_typed = True

    def session(self, value: JSONObject) -> None:
        """Read the messages of a session."""
        messages = self.items(value, "messages")
        data, places = self.data, items_at(self.data, "messages")
        if len(places) != len(messages):  # some are no objects
            places = [(place, 1) for place in range(len(messages))]
        copied = [place for place, item in enumerate(messages) if _COPIED in json_text(item)]
        first = copied[0] + 1 if copied else 0
        for message, (start, length) in list(zip(messages, places, strict=True))[first:]:
            self.start, self.length = start, length
            self.data = data[start : start + length]
            identity = self.name(message, "id")
            self.begin({"timestamp": message.get("ts"), "uuid": identity}, is_message=None)
            self.message({"id": start}, message)
            metrics = self.mapping(message, "metrics")
            counts = beside_cache(*(self.count(metrics, name) for name in _COUNTS))
            cost = self.number(metrics, "cost") or None
            if any(counts) or cost:
                key = identity or f"{self.claim.session_key}:{start}"
                self.use(key, counts, stated_cost_usd=cost)
        self.start, self.length, self.data = 0, len(data), data


def _state(reader: Reader, value: JSONObject) -> None:
    """Read what is stated of a session."""
    cwd, stated = reader.text(value, "cwd"), reader.mapping(value, "metadata")
    entry = SessionEntry(
        reader.claim.session_key or "",
        "meta",
        summary=reader.text(stated, "title"),
        started_at=reader.time(value, "started_at"),
        ended_at=reader.time(value, "ended_at"),
        model=reader.text(value, "model"),
        cwd=slashed(cwd) if cwd else None,
        project_key=comparable(cwd) if cwd else None,
        status=reader.text(value, "status"),
    )
    reader.records.append(entry)
    taken = ("cwd", "model", "started_at", "ended_at", "status", "workspace_root", "messages_path")
    rest = {**value, "metadata": {k: v for k, v in stated.items() if k not in ("title", *taken)}}
    reader.keep(left_over(rest, (*taken, "prompt"), lambda: exact_object(reader.data)))


def _task_list(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the list of tasks: where each began, and what it took so far."""
    reader = Reader(claim)
    for place, item in reader.array(lines):
        cwd, key = reader.text(item, "cwdOnTaskInitialization"), reader.name(item, "id")
        if key is not None:
            given, output, cached, written = (reader.whole(item, name) for name in _LISTED_COUNTS)
            entry = SessionEntry(
                key,
                "index",
                first_prompt=reader.text(item, "task"),
                cwd=slashed(cwd) if cwd else None,
                project_key=comparable(cwd) if cwd else None,
                model=reader.text(item, "modelId"),
                input_tokens=given,
                output_tokens=output,
                cache_read_tokens=cached,
                cache_write_tokens=written,
                cost_usd=reader.number(item, "totalCost"),
                byte_offset=place,
            )
            reader.records.append(entry)
    return reader.finish()


class Cline(TaskSource):
    """The source of kind `cline`."""

    name, label, checked = "cline", "Cline", "3.20 to 4.1.13"
    reader = _Task
    extension = "saoudrizwan.claude-dev"
    unread_places = (
        *("cache", "checkpoints", "connectors", "cron*", "hub*", "logs", "machine-id", "puppeteer"),
        *("tasks.db*", "teams", "workspace*", "worktrees", "locks", "plugins"),
    )
    resume = ("cline", "--id", "{}")

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """The command line and newer versions have a home of their own."""
        data, above = environment.get("CLINE_DATA_DIR"), environment.get("CLINE_DIR")
        above = above or (f"{home}/.cline" if home is not None else None)
        own = data or (f"{above}/data" if above else None)
        return [*([own] if own else []), *super().default_roots(environment, home)]

    def resume_command(self, session_key: str) -> list[str] | None:
        """The program resumes sessions; a task is opened in its editor."""
        return None if session_key.isdecimal() else super().resume_command(session_key)

    def recognises(self, listing: Listing) -> Recognition:
        """A home has its list of tasks, or sessions. Tasks whose ids are times may be another's."""
        is_possible = False
        for path in listing:
            parts = tuple(path.split("/"))
            if (claim := self.claim(parts)) is not None and claim.kind != "part":
                return Recognition.CERTAIN
            is_possible = is_possible or (claim is not None and parts[1].isdecimal())
        return Recognition.POSSIBLE if is_possible else Recognition.NO

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Credentials, and settings and databases that can contain some."""
        return parts[0].casefold() in _SECRET

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        is_ours = parts[0] == "sessions" and len(parts) < 3
        return is_ours or parts == ("state",) or super().descends(parts)

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("state", "taskHistory.json"):
                return Claim(self.name, "task_list")
            case ("sessions", session, name) if name == f"{session}.json":
                return Claim(self.name, "state", session)
            case ("sessions", session, name) if name.endswith(_MESSAGES):
                agent = name.removesuffix(_MESSAGES)
                if agent == session:
                    return Claim(self.name, "transcript", session)
                return Claim(self.name, "agent", session, agent) if agent else None
        return super().claim(parts)

    def shape(self, claim: Claim) -> str:
        """Documents of sessions are rewritten as a whole."""
        return super().shape(claim) if claim.within else DOCUMENT

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; which model answers comes from earlier lines."""
        if claim.within:
            return super().read(claim, lines, context)
        if claim.kind == "task_list":
            return _task_list(claim, lines), {}
        if claim.kind == "state":
            reader = Reader(claim)
            for value in reader.document(lines):
                _state(reader, value)
            return reader.finish(), {}
        session = _Session(claim)
        for value in session.document(lines):
            session.session(value)
        return session.finish(), {}
