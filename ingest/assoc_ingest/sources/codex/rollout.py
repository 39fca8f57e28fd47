"""A rollout of Codex: its lines, items, tools and tokens, and which part of it is its own
thread's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple
from weakref import proxy

from ...fields import (
    integer,
    json_text,
    left_over,
    mapping,
    obvious_text,
    orjson,
    string,
    utc,
    without,
)
from ...paths import comparable, slashed
from ...records import (
    ASK,
    BY_RESULT,
    DECLINED,
    EDIT,
    ERROR,
    OK,
    PENDING,
    SEARCH,
    AgentLink,
    AgentMeta,
    Record,
    Statement,
    Superseded,
    ToolCall,
    WorkingDirectory,
)
from ...source import Claim, Line
from .. import chat_reader
from ..chat_reader import ChatReader, actions, in_full, patched
from ..reader import JSONObject, folded
from ..tokens import beside_cache, since

# ------------------------------------------------------------------------------------------------
# Tool calls of Codex: what a call does and to which files, and how its output says it ended.
#
# A command states its exit code and its time in one of four ways, before its output:
#
# ```
# {"output":"ok\n","metadata":{"exit_code":0,"duration_seconds":0.7}}
#
# Exit code: 0
# Wall time: 0.1 seconds
# Output:
#
# Command: /bin/zsh -lc ls
# Chunk ID: b5a9ac
# Wall time: 0.0000 seconds
# Process exited with code 0        or: Process running with session ID 7
# Output:
#
# Script completed                  or: Script failed
# Wall time 0.2 seconds
# Output:
# ```
#
# Older versions pass a patch to a shell.


_action_of = actions(
    run="shell shell_command exec_command write_stdin local_shell container.exec unified_exec"
    " CommandExecution",
    read="view_image read_file read_mcp_resource",
    edit="apply_patch FileChange",
    search="grep_files list_dir tool_search web_search web.search list_mcp_resources",
    plan="update_plan",
    spawn="spawn_agent",
    ask="request_user_input",
)

_MAX_DEPTH = 64
_HEADER = 1000  # letters of an output that can say how its command ended
_exit_code = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d{1,9})$", re.MULTILINE)
_wall_time = re.compile(r"^Wall time:? (\d{1,9}(?:\.\d{1,9})?) seconds", re.MULTILINE)
_output_heading = re.compile(r"^Output:", re.MULTILINE)
_user_in_url = re.compile(r"//[^/@]*+@")
_FAILED = (
    "Script failed",
    "exec_command failed",
    "apply_patch verification failed",
    "execution error",
)
_STILL_RUNNING = "Process running with session ID"
_DECLINED = ("exec command rejected by user", "rejected by user", "patch rejected by user")


class Deed(NamedTuple):
    """What a call does, and what it was applied to."""

    action: str
    target: JSONObject
    """The argument that says what it was applied to, by the name that says which kind it is."""
    paths: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """The output of a call, and how the call ended."""

    text: str
    status: str = OK
    exit_code: int | None = None
    duration_ms: int | None = None


def deed_of(name: str | None, arguments: Mapping[str, object], text: str, cwd: str | None) -> Deed:
    """Return what a call does. `text` is its unparsed input, `cwd` where it runs."""
    command = command_of(arguments)
    cwd = string(arguments.get("workdir")) or cwd
    if name == "apply_patch" or (command is not None and _is_patch(command)):
        paths = patched(text if command is None else command, cwd)
        return Deed(EDIT, {"path": paths[0]} if paths else {}, paths)
    action = _action_of(name)
    if command is not None:
        return Deed(action, {"command": command})
    target = {**arguments, **({"prompt": arguments["message"]} if "message" in arguments else {})}
    return Deed(action, target or ({"command": text} if text != "{}" else {}))


def command_of(arguments: Mapping[str, object]) -> str | None:
    """Return the command that a call runs, without the shell that runs it."""
    command = arguments.get("cmd", arguments.get("command"))
    if isinstance(command, str):
        return command or None
    if not isinstance(command, list) or not command:
        return None
    words = [word for word in command if isinstance(word, str)]
    if len(words) == 3 and words[1] in ("-lc", "-c", "-Command"):
        return words[2]
    return " ".join(words) or None


def _is_patch(command: str) -> bool:
    return command.lstrip().startswith("apply_patch")


# -- outputs -------------------------------------------------------------------------------------


def outcome(output: object) -> Outcome:
    """Return what the output of a call says."""
    if isinstance(output, dict) and "content" in output:
        text = output_text(output["content"])
        found = outcome(text)
        return found._replace(status=ERROR) if output.get("success") is False else found
    text = output_text(output)
    if text.startswith('{"output"'):
        stated = parsed(text)
        if isinstance(stated.get("output"), str):
            facts = mapping(stated.get("metadata"))
            code = integer(facts.get("exit_code"))
            status = ERROR if code else OK
            seconds = facts.get("duration_seconds")
            return Outcome(str(stated["output"]), status, code, milliseconds(seconds))
    return _headed(text)


def _headed(text: str) -> Outcome:
    """Return what the lines before an output say."""
    head = text[:_HEADER]
    heading = _output_heading.search(head)
    head = head[: heading.start()] if heading else head
    code, time = _exit_code.search(head), _wall_time.search(head)
    exit_code = int(code[1]) if code else None
    status = ERROR if exit_code or text.startswith(_FAILED) else OK
    if text.startswith(_DECLINED):
        status = DECLINED
    if heading and (code or time) and _STILL_RUNNING not in head:
        text = text[heading.end() :].lstrip("\n")
    return Outcome(text, status, exit_code, milliseconds(float(time[1])) if time else None)


def milliseconds(seconds: object) -> int | None:
    """Return a duration that is stated in seconds, or in seconds and nanoseconds."""
    if isinstance(seconds, dict):
        whole, rest = integer(seconds.get("secs")), integer(seconds.get("nanos")) or 0
        seconds = None if whole is None else whole + rest / 1e9
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return round(seconds * 1000) if 0 <= seconds < 10**9 else None


def parsed(text: str) -> JSONObject:
    """Return the JSON object that a text is, an empty one for any other text."""
    try:
        return mapping(orjson.loads(text))
    except orjson.JSONDecodeError:
        return {}


def output_text(output: object) -> str:
    """Return the text of an output, with images as placeholders."""
    if isinstance(output, str):
        return output
    if isinstance(output, list):
        return "\n".join(filter(None, map(_part, output)))
    return obvious_text(output) or (json_text(output) if output else "")


def _part(part: object) -> str:
    block = mapping(part)
    url = string(block.get("image_url"))
    return image_of(url) if url else string(block.get("text")) or obvious_text(part)


def image_of(url: str) -> str:
    """Describe an image by the type and the length of its data."""
    if not url.startswith("data:"):
        return f"[image {url[:1000]}]"
    kind, _, data = url[5:].partition(",")
    return chat_reader.image(kind.partition(";")[0][:100], data)


def without_data(value: object, depth: int = 0) -> object:
    """Return a JSON value without what is dropped, and with images as placeholders."""
    if isinstance(value, str):
        return image_of(value) if value.startswith("data:") and "," in value[:200] else value
    if depth >= _MAX_DEPTH:
        return None
    if isinstance(value, list):
        return [without_data(item, depth + 1) for item in value]
    if isinstance(value, dict):
        kept = {
            key: without_data(item, depth + 1) for key, item in value.items() if key not in DROPPED
        }
        if isinstance(url := kept.get("repository_url"), str):
            kept["repository_url"] = _user_in_url.sub("//", url)
        return kept
    return value


DROPPED = ("encrypted_content", "base_instructions", "dynamic_tools", "env")
"""Fields that no row has: encrypted text, the program's own instructions, and the
environment of a command, which contains secrets."""

TELLING = (
    "role", "content", "summary", "encrypted_content", "action", "author", "recipient", "message",
    "reason",
)  # fmt: skip
"""Fields of an item without a call that are the same in all copies of it."""


def todos(arguments: Mapping[str, object]) -> Iterator[JSONObject]:
    """Yield the steps of a plan."""
    steps = arguments.get("plan")
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict):
            yield {"content": string(step.get("step")), "status": string(step.get("status"))}


# ------------------------------------------------------------------------------------------------
# Token counts of Codex: each response once, and never what a thread inherited from another.
#
# ```json
# {"type":"event_msg","payload":{"type":"token_count","info":{
#  "total_token_usage":{"input_tokens":50,"cached_input_tokens":30,"output_tokens":5,
#  "reasoning_output_tokens":2,"total_tokens":55},"last_token_usage":{"input_tokens":20}}}}
# {"type":"token_usage_record","payload":{"response_id":"resp_1","thread_id":"t1","turn_id":"u1",
#  "usage":{"input_tokens":20},"turn_token_usage":{},"thread_token_usage":{}}}
# ```
#
# An event states the totals of the thread so far, and the counts of the last response. It is
# written again when nothing was spent, so a response is an event whose totals differ from those
# before it. The input contains what was read from the cache, and the output the reasoning. An
# event whose last counts are all zero only sets the totals: those of a thread that this one
# continues, or an estimate after a compaction. Totals that become smaller were reset.
#
# Newer versions write a record per response beside the events, with totals of its own. From the
# first record of the thread on, only records count.


_VECTOR = (
    "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens",
    "cache_write_input_tokens",
)  # fmt: skip
Vector = list[int]


class Tokens:
    """Counts the responses of one thread. `state` is the part of the context that it uses:

    - `total`: the totals of the last event;
    - `answered`: has the model said anything since then?
    - `records`: does the thread have records?
    - `joins`: the totals go on from another file, which this event may repeat.
    """

    def __init__(self, reader: ChatReader, state: dict[str, Any]) -> None:
        self._reader: ChatReader = proxy(reader)  # which has this: no cycle
        self._state = state

    def answer(self) -> None:
        """Note that the model said something."""
        self._state["answered"] = True

    def event(self, info: object, thread: str, *, is_inherited: bool, is_sure: bool) -> None:
        """Take a `token_count` of a thread in.

        If the thread may have inherited it, the response is partial: see `derive/responses.py`.
        """
        stated = mapping(info)
        if "total_token_usage" not in stated:
            return  # only rate limits
        total = self._vector(stated["total_token_usage"])
        before = self._state.get("total")
        was_answered = self._state.pop("answered", False)
        self._state["total"] = total
        if is_inherited or self._state.get("records") or total == before:
            return
        if self._state.pop("joins", False) and not was_answered:
            return
        last = self._last(stated, total, before)
        if any(last):
            self._state["last"] = last
            key = f"{thread}:{'+'.join(map(str, total[:4]))}"
            self._spend(key, last, is_partial=not is_sure)

    def record(self, payload: JSONObject, thread: str, *, is_sure: bool) -> None:
        """Take a `token_usage_record` in that is not inherited for certain.

        One of another thread may be inherited; its id is the same there, so it counts once.
        """
        usage = self._vector(payload.get("usage"))
        is_first = not self._state.get("records")
        self._state["records"] = True
        is_of_another = string(payload.get("thread_id")) not in (None, thread)
        if (is_sure and is_of_another) or not any(usage):
            return
        if is_first and usage == self._state.pop("last", None) and not self._state.get("answered"):
            return  # the event of the same response came first, and was counted
        key = string(payload.get("response_id"))
        if key is not None:
            self._spend(key, usage, is_partial=False)
        elif not is_of_another:
            self._spend(f"{thread}@{self._reader.start}", usage, is_partial=not is_sure)

    def _last(self, stated: JSONObject, total: Vector, before: Vector | None) -> Vector:
        if isinstance(stated.get("last_token_usage"), dict):
            return self._vector(stated["last_token_usage"])
        return since(total, before)

    def _vector(self, value: object) -> Vector:
        counts = mapping(value)
        return [self._reader.count(counts, key) for key in _VECTOR]

    def _spend(self, key: str, counts: Vector, *, is_partial: bool) -> None:
        given, cached, output, _, written = counts
        spent = beside_cache(given, output, cached, written)
        self._reader.use(key, spent, is_partial=is_partial)


# ------------------------------------------------------------------------------------------------
# Tells what a person typed from what Codex adds to it, in the messages of the role `user`.
#
# Newer versions say of each block of a message what it is (`content_item_kinds`: `user.*` was
# typed, `agents_md.*` and `environments.*` was added). Without that, the beginning of the text
# decides. What is added ends at its closing tag, and a prompt may follow in the same block. An
# editor adds its context as Markdown, with the prompt below the heading `_REQUEST`.


Said = tuple[str, str]
"""The kind of a message, and its text."""

# How a stretch begins and ends, and its kind.
_STRETCHES = (
    ("# AGENTS.md instructions", "</INSTRUCTIONS>", "meta"),
    ("<user_instructions>", "</user_instructions>", "meta"),
    ("<INSTRUCTIONS>", "</INSTRUCTIONS>", "meta"),
    ("<environment_context>", "</environment_context>", "meta"),
    ("<recommended_plugins>", "</recommended_plugins>", "meta"),
    ("<skill>", "</skill>", "meta"),
    ("<goal_context>", "</goal_context>", "meta"),
    ("<codex_internal_context", "</codex_internal_context>", "meta"),
    ("<hook_prompt", "</hook_prompt>", "meta"),
    ("<user_shell_command>", "</user_shell_command>", "bash_input"),
    ("<turn_aborted>", "</turn_aborted>", "interrupt"),
    ("<subagent_notification>", "</subagent_notification>", "agent_message"),
)
_STARTS = tuple(start for start, _, _ in _STRETCHES)
_EDITOR = "# Context from my IDE setup"
_REQUEST = "## My request for Codex:"

_blanks = re.compile(r"\s*+")


def said_in(text: str, kind: str | None = None) -> Iterator[Said]:
    """Yield what a block of a user message says, in order.

    `kind` is what the message itself says of the block, None if it says nothing.
    """
    if kind is not None and kind.startswith(("agents_md", "environments")):
        yield "meta", text
        return
    start = _after_blanks(text, 0)
    while start < len(text) and text.startswith(_STARTS, start):
        end, kind_of_stretch = _stretch(text, start)
        yield from _said(kind_of_stretch, text[start:end])
        start = _after_blanks(text, end)
    request = text.find(_REQUEST, start) if text.startswith(_EDITOR, start) else -1
    if request >= 0:
        yield "meta", text[start:request]
        start = _after_blanks(text, request + len(_REQUEST))
    if start < len(text):
        yield "prompt", text[start:]


def kinds_of(message: dict[str, object], count: int) -> list[str | None]:
    """Return what a message says of each of its `count` blocks."""
    passed = mapping(message.get("internal_chat_message_metadata_passthrough"))
    stated = passed.get("content_item_kinds")
    kinds = [string(kind) for kind in stated] if isinstance(stated, list) else []
    return (kinds + [None] * count)[:count]


def _stretch(text: str, start: int) -> tuple[int, str]:
    """Return the end of the stretch that begins at `start`, and its kind."""
    ending, kind = next(
        (ending, kind)
        for beginning, ending, kind in _STRETCHES
        if text.startswith(beginning, start)
    )
    end = text.find(ending, start)
    return (len(text) if end < 0 else end + len(ending)), kind


def _said(kind: str, text: str) -> Iterator[Said]:
    """Yield a stretch; a command that the person ran has its output with it."""
    if kind != "bash_input":
        yield kind, text
        return
    yield kind, inside(text, "command") or text
    output = inside(text, "result")
    if output:
        yield "bash_output", output


def inside(text: str, tag: str) -> str:
    """Return the text in the first element of this name, without blanks around it."""
    start = text.find(f"<{tag}>")
    end = text.find(f"</{tag}>", start)
    return "" if start < 0 else text[start + len(tag) + 2 : end if end >= 0 else None].strip()


def _after_blanks(text: str, start: int) -> int:
    found = _blanks.match(text, start)
    return found.end() if found else start


# ------------------------------------------------------------------------------------------------
# Which lines of a rollout belong to its own thread, and which it took from another one.
#
# A fork, and a subagent that was given the conversation, begin with lines of their parent. How
# they are told apart depends on the version; the first that applies counts:
#
# 1. `subagent_history_start_ordinal` of the first `session_meta`: the `ordinal` where the own
#    begin.
# 2. `history_base`: the lines of the parent stay in its file, so all are own; but the totals of
#    tokens go on, and a turn may begin by repeating them.
# 3. A second `session_meta` with another id: the lines after it were copied, most of them with the
#    time of the copy. The own part begins with the first turn that is younger than the thread: ids
#    of turns and threads are UUIDs of version 7, which begin with their time. For other ids, the
#    time when the turn started counts. Without either, it is not known: see `is_sure`.
# 4. `forked_from_id` without a second `session_meta`: some versions copied lines, others did not.
#    Turns tell as in 3, but what was spent before the first younger one is compared with what the
#    parent spent: see `derive/responses.py`.
# 5. Otherwise, all lines are own.


_UNIQUE = 32  # letters of an id; a shorter one counts the turns of its thread
_uuid7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch

OWN, COPIED, UNKNOWN = "own", "copied", "unknown"
SPAWN = "thread_spawn"
"""What makes the thread of a subagent."""


def spawn_of(payload: JSONObject) -> tuple[str | None, JSONObject]:
    """Return what made the thread of a `session_meta`, and what is said about it.

    That is `thread_spawn` for a subagent, another word for what the program started on its own
    (a review, a guardian), and None for a thread of the user.
    """
    by = mapping(payload.get("source")).get("subagent")
    if isinstance(by, str) and by:
        return by, {}
    for kind, about in mapping(by).items():
        return (about if isinstance(about, str) else kind), mapping(about)
    source = string(payload.get("thread_source"))
    if source in (None, "user"):
        return None, {}
    return (SPAWN if source == "subagent" else source), {}


def session_of(payload: JSONObject) -> str | None:
    """Return the session that a subagent's thread belongs to: the first one, if it is stated."""
    _, about = spawn_of(payload)
    own = string(payload.get("id"))
    stated = (
        payload.get("session_id"), payload.get("parent_thread_id"), about.get("parent_thread_id"),
        payload.get("forked_from_id"),
    )  # fmt: skip
    return next((folded(key) for key in stated if isinstance(key, str) and key != own), None)


class Thread:
    """The thread of a rollout. `state` is the part of the context that it uses.

    - `id`, `began`: the thread and when it began; `of`: the first other thread that is named;
    - `part`: own, copied, or unknown; `from`: the ordinal where the own part begins;
    - `turn`: the current turn; `chain`: what the lines so far say, where turns have no ids.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    @property
    def id(self) -> str | None:
        """The thread, as its lines name it."""
        return self.state.get("id")

    @property
    def is_inherited(self) -> bool:
        """Does the current line belong to another thread for certain?"""
        return bool(self.state.get("part") == COPIED)

    @property
    def is_marked(self) -> bool:
        """Is it marked where copied lines begin, so that what is inherited is so for certain?"""
        return "of" in self.state or "from" in self.state

    @property
    def is_sure(self) -> bool:
        """Is the current line the thread's own for certain?"""
        return bool(self.state.get("part", OWN) == OWN)

    @property
    def turn(self) -> str | None:
        """The id of the current turn, if no other thread can have a turn with this id."""
        turn: str = self.state.get("turn") or ""
        return turn if len(turn) >= _UNIQUE else None

    def meta(self, payload: JSONObject) -> bool:
        """Take a `session_meta` in. Returns whether it is that of the thread itself."""
        key = string(payload.get("id"))
        if key is None:
            return False
        key = folded(key)[:200]
        if "id" not in self.state:
            self._begin(key, payload)
            return True
        if key != self.id:
            self.state.setdefault("of", key)
            self.state["chain"] = key
            if "from" not in self.state:
                self.state["part"] = COPIED
        return False

    def _begin(self, key: str, payload: JSONObject) -> None:
        self.state["id"] = self.state["chain"] = key
        self.state["began"] = utc(payload.get("timestamp"))
        start = integer(payload.get("subagent_history_start_ordinal"))
        if start is not None:
            self.state["from"] = start
            self.state["part"] = COPIED
        if mapping(payload.get("history_base")):
            self.state["joins"] = True
        elif start is None and string(payload.get("forked_from_id")) is not None:
            self.state["part"] = UNKNOWN

    def line(self, value: JSONObject) -> None:
        """Take the place of a line in: from an ordinal on, all are own."""
        start, place = self.state.get("from"), value.get("ordinal")
        if start is not None and isinstance(place, int) and place >= start:
            self.state["part"] = OWN

    def begin_turn(self, payload: JSONObject) -> None:
        """Take the id of a turn in, which a `task_started` or a `turn_context` states."""
        turn = (string(payload.get("turn_id")) or "")[:200]
        if turn != self.state.get("turn"):
            self.state["turn"] = turn
            self.state.pop("items", None)
        if self.state.get("part", OWN) != OWN and "from" not in self.state:
            self.state["part"] = self._part_of(turn, utc(payload.get("started_at")))

    def _part_of(self, turn: str, started_at: str | None) -> str:
        if _uuid7(turn) and _uuid7(self.id or ""):
            return OWN if turn > (self.id or "") else COPIED
        began = self.state.get("began")
        if started_at is not None and began is not None:  # in whole seconds
            return OWN if started_at[:19] >= began[:19] else COPIED
        return UNKNOWN


# ------------------------------------------------------------------------------------------------
# The items of a rollout: messages, thoughts, tool calls and their outputs.
#
# ```json
# {"type":"message","role":"user","content":[{"type":"input_text","text":"tidy the menus"}]}
# {"type":"reasoning","summary":[{"type":"summary_text","text":"..."}],"encrypted_content":"..."}
# {"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}
# {"type":"function_call_output","call_id":"c1","output":"..."}
# {"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch","call_id":"c2"}
# {"type":"local_shell_call","action":{"type":"exec","command":["ls"]},"call_id":"c3"}
# {"type":"web_search_call","action":{"type":"search","query":"frost dates"}}
# {"type":"agent_message","author":"/root","recipient":"/root/a","content":[]}
# ```
#
# Items have no id that stays the same in copies. So the id of a line is made from its turn and
# what it says, with the number of equal ones before it in the turn: a fork that copies only some
# lines of its parent copies these ids. In versions where turns have no ids, it is made from what
# it says and from the id of the line before: there, forks copy all lines.


_MOST_OPEN = 256  # calls without an output that are remembered
_MOST_PROMPTS = 500  # prompts whose places are remembered
_MOST_ITEMS = 1000  # messages of a turn that are told apart
_SILENT = (
    "compaction", "context_compaction", "ghost_snapshot", "additional_tools",
    "configuration_update", "other",
)  # fmt: skip


class Items(ChatReader):
    """Reads items. `context` is what earlier lines said:

    - `open`: calls without an output, each with what events said about how it ended;
    - `prompts`: where the last prompts are that were not rolled back;
    - `session`: the session that a subagent belongs to; `hidden`: nobody asked for this thread;
    - `interrupted`: the last item said that the turn was interrupted.
    """

    def __init__(self, claim: Claim, context: dict[str, Any], thread: Thread) -> None:
        super().__init__(claim)
        self.context = context
        self.thread = thread
        self._open: dict[str, list[Any]] = context.setdefault("open", {})

    def finish(self) -> list[Record]:
        """Return everything that was gathered. A thread that nobody asked for is hidden."""
        if "hidden" in self.context:
            self._facts["sidechain_count"] = self._message_count
        return super().finish()

    def item(self, item: JSONObject) -> None:
        kind = string(item.get("type")) or ""
        self.identify(kind, item)
        self.counts_next = True
        self.context.pop("interrupted", None)
        if kind in ITEMS:
            ITEMS[kind](self, item)
        elif kind.endswith("_output"):
            self._output(item)
        elif kind not in _SILENT and (text := obvious_text(item)):
            self.say("system", text, "system")
        if kind in ("reasoning", "agent_message") or kind.endswith("_call"):
            self.thread.state["answered"] = True

    def identify(self, kind: str, item: JSONObject) -> None:
        """Give the rows that follow an id, which is the same in all copies of the line."""
        self._uuid = self._identity(kind, item)

    def say(self, kind: str, text: str, role: str, *, is_error: bool = False) -> None:
        """Add the row of the next block. The title of a fork is not the prompt of its parent."""
        known = self._facts.get("first_prompt")
        self._is_meta = int(kind == "meta")
        super().say(kind, text, role, is_error=is_error)
        if known is None and self.thread.is_inherited:
            self._facts.pop("first_prompt", None)

    def directory(self, cwd: str | None) -> None:
        """Note a working directory; the first one is that of the project."""
        if cwd is None or cwd == self.context.get("cwd"):
            return
        is_first = "cwd" not in self.context
        self.context["cwd"] = cwd[:4096]
        self.records.append(WorkingDirectory(slashed(cwd), comparable(cwd), self.start))
        if is_first:
            self.fact("first_cwd", cwd)
            self.settle(cwd)

    def _identity(self, kind: str, item: JSONObject) -> str | None:
        """Return the id of the line, None if its turn has too many to tell equal ones apart."""
        state, call = self.thread.state, string(item.get("call_id"))
        told: object = call
        if call is None:
            told = {key: value for key, value in item.items() if key in TELLING}
        parts = [self.thread.turn or state.get("chain"), kind, told]
        identity = blake2b(json_text(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()
        if self.thread.turn is None:
            state["chain"] = identity
            return identity
        if call is not None:
            return identity
        seen = state.setdefault("items", {})
        if identity[:12] not in seen and len(seen) >= _MOST_ITEMS:
            return None
        count = seen[identity[:12]] = seen.get(identity[:12], -1) + 1
        return f"{identity}-{count}" if count else identity

    # -- messages --------------------------------------------------------------------------------

    def _message(self, item: JSONObject) -> None:
        role = string(item.get("role")) or ""
        blocks = self.items(item, "content")
        for block, kind in zip(blocks, kinds_of(item, len(blocks)), strict=True):
            url, text = string(block.get("image_url")), self.text(block, "text")
            if url is not None:
                self.say("image", image_of(url), "assistant" if role == "assistant" else "user")
            elif text is not None and role == "assistant":
                self.say("text", text, "assistant")
                self.thread.state["answered"] = True
            elif text is not None and role == "user":
                self._typed(text, kind)
            elif text is not None:
                self.say("meta", text, "system")

    def _typed(self, text: str, stated: str | None) -> None:
        for kind, part in said_in(text, stated):
            if kind == "prompt" and self._is_of_agent():
                kind = "agent_prompt"
            self.say(kind, part, "system" if kind == "meta" else "user")
            if kind in ("prompt", "agent_prompt"):
                self._note_prompt()
            if part.startswith("<environment_context>") and (cwd := inside(part, "cwd")):
                self.directory(cwd)
            if kind == "interrupt":
                self.context["interrupted"] = True

    def _note_prompt(self) -> None:
        """Remember where a prompt is, in case that it is rolled back."""
        prompts = self.context.setdefault("prompts", [])
        if prompts[-1:] != [self.start]:
            prompts.append(self.start)
            del prompts[:-_MOST_PROMPTS]

    def _is_of_agent(self) -> bool:
        """Does a prompt come from another agent? A subagent's own ones do."""
        is_agent = self.claim.agent_key is not None or "hidden" in self.context
        return is_agent and not self.thread.is_inherited

    def _reasoning(self, item: JSONObject) -> None:
        summary = "\n\n".join(filter(None, map(obvious_text, self.items(item, "summary"))))
        text = summary or obvious_text(item.get("content"))
        if text:
            self.say("thinking", text, "assistant")

    def _mail(self, item: JSONObject) -> None:
        text = output_text(item.get("content")) or self.text(item, "message") or ""
        names = [string(item.get(key)) or "?" for key in ("author", "recipient")]
        self.say("agent_message", f"{' → '.join(names)}: {text}", "user")

    def _image(self, item: JSONObject) -> None:
        data = string(item.get("result"))
        image = image_of(f"data:image/png;base64,{data}") if data else "[image]"
        prompt = string(item.get("revised_prompt"))
        self.say("image", f"{image} {prompt}" if prompt else image, "assistant")

    # -- calls -----------------------------------------------------------------------------------

    def _function_call(self, item: JSONObject) -> None:
        text = self.text(item, "arguments") or ""
        self._call(item, parsed(text), text)

    def _custom_call(self, item: JSONObject) -> None:
        text = self.text(item, "input") or ""
        self._call(item, {}, json_text({"input": text}), text)

    def _other_call(self, item: JSONObject) -> None:
        arguments = mapping(item.get("action")) or mapping(item.get("arguments"))
        arguments = without(arguments, DROPPED)
        name = (string(item.get("type")) or "").removesuffix("_call")
        self._call({"name": name, **item}, arguments, json_text(arguments))

    def _call(
        self, item: JSONObject, arguments: JSONObject, text: str, given: str | None = None
    ) -> None:
        """Add a call; `given` is its original input, if `text` wraps it."""
        name, space = self.name(item, "name"), string(item.get("namespace"))
        call = self.name(item, "call_id") or (
            self.name(item, "id") if item.get("type") == "local_shell_call" else None
        )
        deed = deed_of(name, arguments, text if given is None else given, self.context.get("cwd"))
        steps = list(todos(arguments)) if name == "update_plan" else []
        block = self._block
        full = f"{space}.{name}" if space and name else name
        self.call(full, deed.target, text, call, action=deed.action, paths=deed.paths)
        if call is not None:
            _remember(self._open, call, [])
        session = self.claim.session_key or self.context.get("session")
        if steps and session is not None:
            self.records.append(
                Statement(
                    "todos", session, None, json_text({"items": steps}), None, self.moment, call,
                    self.start, self.length, block,
                )
            )  # fmt: skip

    def _web_search(self, item: JSONObject) -> None:
        """Add a search, which has no id and no output: it has ended."""
        action = mapping(item.get("action"))
        self.call("web_search", action, json_text(action), None, action=SEARCH)
        call = self.records[-1]
        if isinstance(call, ToolCall):
            self.records[-1] = call._replace(status=OK)

    def _output(self, item: JSONObject) -> None:
        call = self.name(item, "call_id")
        found = outcome(item.get("output"))
        stated = self._open.pop(call, None) if call is not None else None
        if call is not None and _STILL_RUNNING in found.text[:_HEADER]:
            _remember(self.context.setdefault("running", {}), call, None)
            found = found._replace(status=PENDING, duration_ms=None)
        if stated:
            status, code, time = stated
            found = found._replace(
                status=found.status if status == OK and found.status != PENDING else status,
                exit_code=code if found.exit_code is None else found.exit_code,
                duration_ms=time if found.duration_ms is None else found.duration_ms,
            )
        self.end(found, call)
        if call is not None and found.text.startswith('{"agent_id"'):
            self._link_agent(found.text, call)

    def end(self, found: Outcome, call: str | None, *, is_timed: bool = True) -> None:
        """Add the output of a call, and how it ended."""
        text, status, code, time = found
        self.answer(
            text, call, is_error=status == ERROR, is_timed=is_timed, status=status,
            exit_code=code, duration_ms=time,
        )  # fmt: skip

    def _link_agent(self, text: str, call: str) -> None:
        """Link a call to the thread that its output names."""
        agent = string(parsed(text).get("agent_id"))
        if agent is not None:
            self.records.append(AgentLink(folded(agent), call, BY_RESULT, self.start))

    def keep_payload(self, kind: str, payload: JSONObject, taken: tuple[str, ...] = ()) -> None:
        """Keep what a line states that has no row, without encrypted fields."""
        rest = mapping(without_data(payload))
        self.keep(left_over(rest, taken), kind=kind, moment=self.moment, is_silent=True)


def _remember(calls: dict[str, Any], call: str, value: object) -> None:
    calls[call] = value
    if len(calls) > _MOST_OPEN:
        del calls[next(iter(calls))]


# Not in the reader: it would refer to itself, and stay until cycles are collected.
ITEMS: dict[str, Callable[[Items, JSONObject], None]] = {
    "message": Items._message,
    "reasoning": Items._reasoning,
    "function_call": Items._function_call,
    "custom_tool_call": Items._custom_call,
    "local_shell_call": Items._other_call,
    "tool_search_call": Items._other_call,
    "web_search_call": Items._web_search,
    "image_generation_call": Items._image,
    "agent_message": Items._mail,
}
"""How items are read, by their type."""


# ------------------------------------------------------------------------------------------------
# Operations that events state: how a call ended, and calls that are no items of their own.
#
# ```json
# {"type":"exec_command_end","call_id":"c1","command":["/bin/zsh","-lc","ls"],"exit_code":0,
# "duration":{"secs":0,"nanos":8208},"aggregated_output":"..."}
# {"type":"patch_apply_end","call_id":"c2","success":true,"changes":{"/srv/a.py":{"type":"update",
# "unified_diff":"..."}}} {"type":"mcp_tool_call_end","call_id":"c3","invocation":{"server":"s","t
# ool":"t","arguments":{}}, "duration":{"secs":1,"nanos":0},"result":{"Ok":{"content":[]}}}
# {"type":"item_completed","turn_id":"u1","item":{"type":"CommandExecution","id":"exec-1",
# "command":"ls","exit_code":0,"duration_ms":12,"aggregated_output":"..."},"completed_at_ms":0}
# ```
#
# If the call is an item that has no output yet, they add to it what its output may not say. If it
# was answered that it still runs, they contain its final output. In code mode, an item `exec`
# holds a program that runs any number of operations: these have rows.


_OPERATIONS = (
    "CommandExecution", "FileChange", "McpToolCall", "DynamicToolCall", "Extension",
    "CollabAgentToolCall",
)  # fmt: skip
_DESCRIBED = ("type", "id", "aggregated_output", "formatted_output", "stdout", "stderr", "result")


class Operations(Items):
    """Reads events about operations."""

    def ended(self, payload: JSONObject) -> None:
        """Take the event in that ends a call."""
        if payload.get("source") == "user_shell":
            return  # a command of the person, which is an item
        self._operation(payload, self.name(payload, "call_id"))

    def completed(self, payload: JSONObject) -> None:
        """Take an `item_completed` in: most items repeat others, some are operations."""
        item = self.mapping(payload, "item")
        kind = string(item.get("type"))
        call = self.name(item, "id")
        if kind == "SubAgentActivity":
            self.spawned(item)
        elif kind in _OPERATIONS:
            self._operation(item, call)
            self.spawned({"call_id": call, **item})

    def spawned(self, payload: JSONObject) -> None:
        """Link a call to the thread that it started, if the event names both."""
        call = string(payload.get("call_id")) or string(payload.get("event_id"))
        agent = string(payload.get("new_thread_id")) or string(payload.get("agent_thread_id"))
        if call is not None and agent is not None:
            self.records.append(AgentLink(folded(agent), call, BY_RESULT, self.start))

    def _operation(self, about: JSONObject, call: str | None) -> None:
        code = integer(about.get("exit_code"))
        time = integer(about.get("duration_ms"))
        time = milliseconds(about.get("duration")) if time is None else time
        status = _status(about, code)
        if call in self._open:
            self._open[call] = [status, code, time]
            return
        found = Outcome(_output(about), status, code, time)
        if call in self.context.get("running", ()):
            del self.context["running"][call]
            self.identify("operation", {"call_id": call})
            self.end(found, call, is_timed=False)
            return
        name, arguments = _call(about)
        given = arguments or without(about, _DESCRIBED)
        deed = deed_of(name, given, json_text(given), self.context.get("cwd"))
        paths = tuple(
            in_full(path, self.context.get("cwd")) for path in mapping(about.get("changes"))
        )
        target: JSONObject = {"path": paths[0]} if paths else deed.target
        text = json_text(without_data(given))
        self.identify("operation", {"call_id": call})
        self.call(name, target, text, call, action=deed.action, paths=paths or deed.paths)
        self.end(found, call, is_timed=False)


def _call(about: JSONObject) -> tuple[str | None, JSONObject]:
    """Return the tool of an operation, and what it was given."""
    invocation = mapping(about.get("invocation")) or about
    server, tool = string(invocation.get("server")), string(invocation.get("tool"))
    if tool is not None:
        arguments = mapping(invocation.get("arguments"))
        return (f"{server}.{tool}" if server else tool), arguments
    if command := command_of(about):
        return "exec_command", {"command": command}
    if "changes" in about:
        return "apply_patch", {"changes": _diffs(about["changes"])}
    return string(about.get("kind")) or string(about.get("type")), {}


def _diffs(changes: object) -> str:
    """Return the differences of all changed files as one text."""
    texts = []
    for path, change in mapping(changes).items():
        about = mapping(change)
        texts.append(f"{string(about.get('type')) or 'change'} {path}")
        added = "".join(f"+{line}\n" for line in (string(about.get("content")) or "").split("\n"))
        texts.append(string(about.get("unified_diff")) or added)
    return "\n".join(filter(None, texts))


def _status(about: JSONObject, code: int | None) -> str:
    stated = string(about.get("status")) or ""
    if stated in ("declined", "rejected"):
        return DECLINED
    is_wrong = code or about.get("success") is False or "Err" in mapping(about.get("result"))
    return ERROR if is_wrong or stated in ("failed", "error") or about.get("error") else OK


def _output(about: JSONObject) -> str:
    """Return the output of an operation."""
    for key in ("aggregated_output", "formatted_output", "stdout"):
        if text := string(about.get(key)):
            return text
    result = mapping(about.get("result"))
    given = result.get("Ok", result.get("Err", about.get("result")))
    return output_text(mapping(given).get("content", given) or about.get("error"))


# ------------------------------------------------------------------------------------------------
# The lines of a rollout: what a thread of Codex wrote, in every version.
#
# ```json
# {"timestamp":"2026-05-23T18:25:02.612Z","ordinal":0,"type":"session_meta","payload":{"id":"019e",
#  "cwd":"/srv/demo","cli_version":"0.130.0","source":"cli","git":{"branch":"main"}}}
# {"timestamp":"..","type":"turn_context","payload":{"turn_id":"019e","cwd":"/srv/demo",
#  "model":"gpt-5"}}
# {"timestamp":"..","type":"response_item","payload":{"type":"message","role":"user","content":[]}}
# {"timestamp":"..","type":"event_msg","payload":{"type":"token_count","info":null}}
# ```
#
# - `session_meta`: the first one is that of the thread, later ones were copied (`thread`).
# - `turn_context`: the model and the working directory of a turn.
# - `response_item`: the conversation, complete and in order (`items`).
# - `event_msg`: what the client showed. Most events repeat an item and become no rows. They add
#   exit codes, durations, titles, errors, what was interrupted, and what was rolled back. Some say
#   what no item does: `warning`, `model_reroute`, `hook_completed`, `elicitation_request`, and
#   `request_user_input` without a call. `plan_update` repeats a call; `thread_queue_changed`, and
#   the line `dynamic_tools_updated`, say nothing that is kept. Learned from the protocol in the
#   public source, as of 0.169.
# - `compacted`: a summary. Its `replacement_history` repeats old items.
# - `token_usage_record`, and events `token_count`: see `tokens`.
#
# Rollouts before September 2025 are bare: the first line is
# `{"id","timestamp","instructions","git"}` and the others are items without a time. The first
# versions wrote one document, `{"session":{...},"items":[...]}`.


_MAX_NAME = 200  # letters of a name that the context keeps


def is_known(value: JSONObject) -> bool:
    """Does the object have the shape of a line of a rollout?"""
    is_typed = isinstance(value.get("type"), str) or "record_type" in value
    return is_typed or isinstance(value.get("payload"), dict)


class Rollout(Operations):
    """Reads the lines of one stretch; `context` is what earlier ones said."""

    def __init__(self, claim: Claim, context: dict[str, Any]) -> None:
        super().__init__(claim, context, Thread(context.setdefault("thread", {})))
        self._tokens = Tokens(self, self.thread.state)

    def read(self, lines: Iterable[Line]) -> list[Record]:
        """Return the records of the lines; `context` then has what later lines need."""
        for value in self.objects(lines, is_known):
            self._line(value)
        return self.finish()

    def read_document(self, lines: Iterable[Line]) -> list[Record]:
        """Return the records of a rollout of the first versions, which is one document."""
        for value in self.document(lines):
            about = mapping(value.get("session"))
            self.begin(about, is_message=None)
            self._bare_meta(about)
            for item in self.items(value, "items"):
                self.item(item)
        return self.finish()

    def type_of(self, value: JSONObject, type_key: str) -> tuple[str, str]:
        """Return the types of a line and of what it carries."""
        payload = mapping(value.get("payload"))
        kind, inner = string(value.get("type")), string(payload.get("type"))
        if inner == "item_completed":
            inner = f"{inner} {string(mapping(payload.get('item')).get('type')) or ''}".strip()
        if kind is None and "record_type" in value:
            inner = string(value["record_type"])
        return kind or "", inner or ""

    def _line(self, value: JSONObject) -> None:
        self.begin(value, is_message=None)
        self.model = self.context.get("model")
        payload = value.get("payload")
        kind = string(value.get("type"))
        if isinstance(payload, dict):
            self.thread.line(value)
            take = LINES.get(kind or "")
            if take is not None:
                take(self, value, payload)
        elif kind is not None:
            self.item(value)
        elif "id" in value:
            self._bare_meta(value)

    # -- the thread ------------------------------------------------------------------------------

    def _meta(self, value: JSONObject, payload: JSONObject) -> None:
        knew_parent = self.thread.is_marked
        if self.thread.meta(payload):
            self._describe(payload)
            self.keep_payload("session_meta", payload)
        elif not knew_parent and self.thread.is_marked and "is_fork" not in self.context:
            self.fact("forked_from_key", self.thread.state["of"])

    def _bare_meta(self, value: JSONObject) -> None:
        if self.thread.meta(value):
            self._describe(value)
            self.keep_payload("session_meta", value, ("instructions",))

    def _describe(self, payload: JSONObject) -> None:
        """Take in what the thread says about itself."""
        self.fact("agent_version", self.name(payload, "cli_version"))
        self.fact("git_branch", self.name(self.mapping(payload, "git"), "branch"))
        source = payload.get("source")
        self.fact("entrypoint", source if isinstance(source, str) else None)
        parent = string(payload.get("forked_from_id"))
        if parent is not None:
            self.context["is_fork"] = True
            self.fact("forked_from_key", folded(parent))
        self.directory(self.text(payload, "cwd"))
        made_by, spawn = spawn_of(payload)
        session = session_of(payload) if made_by is not None else None
        if self.claim.agent_key is None:
            if made_by is not None:
                self.context["hidden"] = True
            return
        self.context["session"] = session
        self.fact("stated_session_key", session)
        kind = self.name(spawn, "agent_role") or (None if made_by == SPAWN else made_by)
        path, nickname = self.name(spawn, "agent_path"), self.name(spawn, "agent_nickname")
        depth, is_fork = self.whole(spawn, "depth"), int(parent is not None)
        self.records.append(AgentMeta(kind, path, nickname, None, depth, None, is_fork))

    def _turn_context(self, value: JSONObject, payload: JSONObject) -> None:
        self.thread.begin_turn(payload)
        model = self.text(payload, "model")
        if model is not None:
            self.context["model"] = model[:_MAX_NAME]
        self.directory(self.text(payload, "cwd"))
        if not self.thread.is_inherited:
            self.fact("permission_mode", self.name(payload, "approval_policy"))

    # -- events ----------------------------------------------------------------------------------

    def _event(self, value: JSONObject, payload: JSONObject) -> None:
        take = EVENTS.get(string(payload.get("type")) or "")
        if take is not None:
            take(self, payload)

    def _begin_turn(self, payload: JSONObject) -> None:
        self.thread.begin_turn(payload)

    def _token_count(self, payload: JSONObject) -> None:
        self._tokens.event(
            payload.get("info"),
            self._spender,
            is_inherited=self.thread.is_inherited and self.thread.is_marked,
            is_sure=self.thread.is_sure,
        )

    def _record(self, value: JSONObject, payload: JSONObject) -> None:
        if not (self.thread.is_inherited and self.thread.is_marked):
            self._tokens.record(payload, self._spender, is_sure=self.thread.is_sure)

    @property
    def _spender(self) -> str:
        """The thread whose tokens are counted."""
        return self.thread.id or self.claim.session_key or self.claim.agent_key or ""

    def _title(self, payload: JSONObject) -> None:
        title = string(payload.get("thread_name")) or string(payload.get("name"))
        if title is not None and not self.thread.is_inherited:
            self.fact("custom_title", title[:1000])

    def _aborted(self, payload: JSONObject) -> None:
        """An interruption; newer versions write an item, too, and just before."""
        if not self.context.pop("interrupted", False):
            self.identify("turn_aborted", payload)
            self.say("interrupt", f"[{self.text(payload, 'reason') or 'interrupted'}]", "user")

    def _roll_back(self, payload: JSONObject) -> None:
        """Take back the last prompts and everything after them."""
        prompts, count = self.context.get("prompts", []), self.whole(payload, "num_turns")
        if prompts and count is not None and count > 0:
            first = prompts[-count:][0]
            del prompts[-count:]
            self.records.append(Superseded(self.moment, None, first, self.start))

    def _error(self, payload: JSONObject) -> None:
        self.identify("error", payload)
        self.say("error", self.text(payload, "message") or "error", "system", is_error=True)

    def _warning(self, payload: JSONObject) -> None:
        self._tell("warning", self.text(payload, "message"))

    def _rerouted(self, payload: JSONObject) -> None:
        """Another model answers than the turn asked for, until the next turn."""
        model, asked = self.name(payload, "to_model"), self.name(payload, "from_model")
        if model is None:
            return
        self.context["model"] = model[:_MAX_NAME]
        reason = string(payload.get("reason"))
        about = f" ({reason[:_MAX_NAME]})" if reason else ""
        self._tell("model_reroute", f"{asked or '?'} → {model}{about}")

    def _hook(self, payload: JSONObject) -> None:
        """What a hook said; one that said nothing has no row."""
        run = self.mapping(payload, "run")
        said = [self.text(entry, "text") for entry in self.items(run, "entries")]
        if text := "\n".join(filter(None, said)):
            is_error = run.get("status") in ("failed", "blocked")
            self.identify("hook_completed", {"message": text})
            self.say("hook", text, "system", is_error=is_error)

    def _elicitation(self, payload: JSONObject) -> None:
        """A server asks the person something; earlier versions have no `request`."""
        request = self.mapping(payload, "request") or payload
        text, server = self.text(request, "message"), self.name(payload, "server_name")
        self._tell("elicitation_request", f"{server}: {text}" if server and text else text)

    def _asked(self, payload: JSONObject) -> None:
        """Questions to the person. In most threads, they are those of a call."""
        call = self.name(payload, "call_id")
        if call is None or call in self._open:
            return
        self.identify("operation", {"call_id": call})
        text = json_text({"questions": payload.get("questions")})
        self.call("request_user_input", {}, text, call, action=ASK)

    def _tell(self, kind: str, text: str | None) -> None:
        if text:
            self.identify(kind, {"message": text})
            self.say("system", text, "system")

    def _compacted(self, value: JSONObject, payload: JSONObject) -> None:
        text = self.text(payload, "message")
        if text is not None:
            self.identify("compacted", payload)
            self.say("compact_summary", text, "user")


# Not in the reader, as in `items`.
LINES: dict[str, Callable[[Rollout, JSONObject, JSONObject], None]] = {
    "session_meta": Rollout._meta,
    "turn_context": Rollout._turn_context,
    "response_item": lambda rollout, value, payload: rollout.item(payload),
    "event_msg": Rollout._event,
    "compacted": Rollout._compacted,
    "token_usage_record": Rollout._record,
}
EVENTS: dict[str, Callable[[Rollout, JSONObject], None]] = {
    "task_started": Rollout._begin_turn,
    "turn_started": Rollout._begin_turn,
    "token_count": Rollout._token_count,
    "thread_name_updated": Rollout._title,
    "turn_aborted": Rollout._aborted,
    "thread_rolled_back": Rollout._roll_back,
    "error": Rollout._error,
    "stream_error": Rollout._error,
    "warning": Rollout._warning,
    "model_reroute": Rollout._rerouted,
    "hook_completed": Rollout._hook,
    "elicitation_request": Rollout._elicitation,
    "request_user_input": Rollout._asked,
    "exec_command_end": Rollout.ended,
    "patch_apply_end": Rollout.ended,
    "mcp_tool_call_end": Rollout.ended,
    "dynamic_tool_call_response": Rollout.ended,
    "item_completed": Rollout.completed,
    "collab_agent_spawn_end": Rollout.spawned,
    "sub_agent_activity": Rollout.spawned,
}
