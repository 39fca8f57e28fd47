"""The databases of Codex: mail between agents, queued prompts, goals, memories and titles.

```
agent_message_board_<n>.sqlite
                     posts {seq, board, id, channel, root, author, timestamp, payload}
queue_<n>.sqlite     queued_items {id, thread_id, payload_json, queue_order, created_at_ms}
goals_<n>.sqlite     thread_goals {thread_id, goal_id, objective, status, token_budget, tokens_used,
                     time_used_seconds, created_at_ms, updated_at_ms}
memories_<n>.sqlite  stage1_outputs {thread_id, raw_memory, rollout_summary, rollout_slug,
                     generated_at}
state_<n>.sqlite     threads {id, name, created_at}
```

Each thread that a database knows is an entry of it, such as `queue_1.sqlite#<thread>`.

- A post belongs to the board of a session, and to a channel of it; a reply has another `root` than
  its own `id`. The payload is `{"metadata":{},"text"}`. `timestamp` is in microseconds.
- A queued prompt waits until the thread is free, and is deleted when it is sent. Its payload has a
  list of inputs, `input` or `items`. A version between stored it in binary JSON: that is an issue.
- A goal has a budget of tokens, and what was used of it.
- A memory is what a model wrote about a thread; `generated_at` is in seconds.
- `threads.name` is the name that a person gave a thread. Versions before it have no such column.

Learned from the source of Codex in public repositories, up to version 0.169: the migrations in
`codex-rs/state`, and programs that read or write these databases. No real one was at hand.

`thread_history_<n>.sqlite` is not read: Codex can make it again from the rollouts. Nor are
`logs_<n>.sqlite`, and in `state_<n>.sqlite` anything but names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hashlib import sha256

from ...entry import Database, Table
from ...fields import MAX_TEXT, json_text, left_over, obvious_text, string
from ...records import Document, InboxItem, Record, SessionEntry
from ...source import Claim, Line
from ...when import utc
from ..jsonl import JSONObject
from ..reader import Reader

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
