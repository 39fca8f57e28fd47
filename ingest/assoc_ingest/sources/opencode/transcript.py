"""The lines of an OpenCode conversation, whichever store they come from.

```json
{"table":"message","id":"msg_2","data":{"role":"assistant","parentID":"msg_1","modelID":"m",
 "providerID":"p","agent":"build","path":{"cwd":"/srv/demo"},"cost":0.01,
 "tokens":{"total":1052,"input":402,"output":40,"reasoning":10,"cache":{"read":600,"write":0}},
 "time":{"created":1795329349455,"completed":1795329352456}}}
{"table":"part","id":"prt_3","data":{"type":"tool","tool":"bash","callID":"c2",
 "state":{"status":"completed","input":{"command":"ls"},"output":"a.ts","metadata":{"exit":0},
 "time":{"start":1795329350916,"end":1795329350930}}}}
```

* **Messages** say who speaks: their parts follow. One with `summary` is what a compaction left.
* **Parts** are described in `parts`.
* **Tokens** are those of the message; `step-finish` repeats them. With a `total`, as since 1.2,
  `output` is without `reasoning`; without one, it includes it.
* **A fork copies all rows under new ids**, and does not say so. A message is recognised by its
  time, its model and the first prompt of the conversation, a part by its place in the message, and
  by its text or call unless it grows. So files and rows of one message are recognised, too,
  although the files may have less of it.
* **revert** of a session: from this message (and part) on, all is taken back. The next prompt
  deletes it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...fields import mapping, string
from ...project_paths import comparable, slashed
from ...records import AgentMeta, Record, SessionEntry, Superseded
from ...source import Context, Line
from ..jsonl import JSONObject, whole_value
from .parts import IDS, TODO, PartReader, digest

_UNTITLED = ("New session - ", "Child session - ")
_MOST_TODOS = 200  # of a list that comes row by row


class TranscriptReader(PartReader):
    """Reads the lines of one conversation."""

    def read(self, lines: Iterable[Line]) -> tuple[list[Record], Context]:
        """Turn lines into records, and return the context for the lines after them."""
        readers = {
            "project": self._project,
            "message": self._message,
            "part": self._part,
            "todo": self._todo,
            "session": self._session,
        }
        for value in self.objects(lines, _is_row, type_key="table"):
            table = string(value.get("table"))
            if table not in readers:
                self.refuse("unknown table")
            elif "data" in value and not isinstance(value["data"], dict) and table != "todo":
                self.refuse("data: not a JSON object")
            else:
                readers[table](value, self.mapping(value, "data") if table != "todo" else {})
        return self.finish(), self._context

    # -- the session -----------------------------------------------------------------------------

    def _project(self, value: JSONObject, data: JSONObject) -> None:
        row = {**data, **value}
        self.begin({}, is_message=False)
        self._context["worktree"] = self.name(row, "worktree")
        self._keep("project", row, ("table", "data", "worktree", "time", "sandboxes"))

    def _session(self, value: JSONObject, data: JSONObject) -> None:
        row = {**data, **value}
        self.begin({}, is_message=False)
        if "revert" in self._context:  # the second line of the session, at the end
            first = self._context.get("reverted")
            if first is not None:
                self.records.append(Superseded(None, None, first, self.start))
            self._keep("session", {}, ())
            return
        if revert := _decoded(row.get("revert")):
            self._context["revert"] = {
                key: self.name(revert, key) for key in ("messageID", "partID")
            }
        directory, title = self.text(row, "directory"), self.text(row, "title")
        self.fact("first_cwd", directory)
        self.fact("agent_version", self.text(row, "version"))
        if title is not None and not title.startswith(_UNTITLED):
            self.fact("ai_title", title)
        worktree = self._context.get("worktree")
        place = directory if worktree in (None, "/") else worktree
        if self.claim.agent_key is not None:
            self._about_agent(row, title)
        elif place is not None:
            archived = mapping(row.get("time")).get("archived") or row.get("time_archived")
            self.records.append(
                SessionEntry(
                    self.claim.session_key or "",
                    "meta",
                    project_key=comparable(place),
                    cwd=slashed(place),
                    status="archived" if archived else None,
                )
            )
        taken = ("table", "data", "directory", "title", "version", "time", "share", "permission")
        self._keep("session", row, taken)

    def _about_agent(self, row: JSONObject, title: str | None) -> None:
        """Add what a session says of the subagent that it is: its title names its type."""
        about, _, suffix = (title or "").rpartition(" (@")
        kind = suffix.removesuffix(" subagent)") if suffix.endswith(" subagent)") else None
        stated = self.name(row, "agent") or kind
        self.records.append(
            AgentMeta(stated, (about if kind else title) or None, None, None, None, None, None)
        )

    def _todo(self, value: JSONObject, data: JSONObject) -> None:
        """Add the list so far: a file has all of it, a row one item."""
        self.begin({"timestamp": value.get("time_updated")}, is_message=False)
        if "data" in value:
            self._state_todos(self.items(value, "data"), None)
        else:
            listed = self._context.setdefault("todos", [])
            if len(listed) < _MOST_TODOS:
                listed.append({word: value.get(word) for word in TODO})
            self._state_todos(listed, None)
        taken = ("table", "id", "data", "time_updated", *TODO)
        self._keep("todo", value, taken)

    # -- messages --------------------------------------------------------------------------------

    def _message(self, value: JSONObject, data: JSONObject) -> None:
        times = self.mapping(data, "time")
        created = times.get("created", value.get("time_created"))
        self.begin({"timestamp": created}, is_message=False)
        role = self.name(data, "role")
        is_agents = role == "assistant"
        model = self.name(data if is_agents else self.mapping(data, "model"), "modelID")
        self._context["message"] = {
            "created": created if isinstance(created, int) else None,
            "role": role,
            "model": model if is_agents else None,
            "is_summary": data.get("summary") is True,
            "parts": 0,
        }
        self._note_revert(value, "messageID")
        self.fact("mode", self.name(data, "agent") or self.name(data, "mode"))
        taken = {*IDS, "role", "modelID", "time", "cost"}
        if is_agents:
            self._spend(data, created)
            taken.add("tokens")
        self.model = None
        self._fail(self.mapping(data, "error"))
        self._keep("message", data, taken)

    def _spend(self, data: JSONObject, created: object) -> None:
        """Note the tokens of a message, which grow until it is complete: a copy may have less."""
        tokens = self.mapping(data, "tokens")
        cache = self.mapping(tokens, "cache")
        given, written = self.count(tokens, "input"), self.count(tokens, "output")
        thought = self.count(tokens, "reasoning")
        if tokens.get("total") is not None:
            written += thought
        read, kept = self.count(cache, "read"), self.count(cache, "write")
        cost = self.number(data, "cost")
        if not any((given, written, read, kept, cost)):
            return
        self.model = self.name(data, "modelID")
        facts = [created, self.model, self._context.get("began")]
        if not isinstance(created, int):
            facts += [given, written, read, kept]
        self.use(
            f"opencode {digest(facts)}", fresh=given, output=written, cached=read, written=kept,
            cost=cost or None, stop_reason=self.name(data, "finish"),
        )  # fmt: skip


def _is_row(value: JSONObject) -> bool:
    return "table" in value and "id" in value


def _decoded(value: object) -> JSONObject:
    """Return an object that a column has as text, and a file as it is."""
    if isinstance(value, str):
        found = whole_value(value.encode("utf-8", "replace"))
        return mapping(found[0]) if found else {}
    return mapping(value)
