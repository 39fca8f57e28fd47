"""Counts what is in homes of Claude Code, from their bytes, with no code of the program.

What a number means is written down here a second time, as short as it can be: it says what the
format says, not how the program finds it out.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Object = dict[str, Any]
Tokens = tuple[int, int, int, int]
"""Fresh input, output, read from the cache, written to it."""
Prices = dict[tuple[str, str, int], dict[str, int | None]]
"""The rows of the table of prices, by model, first day and the input above which they are."""

EDITING = {"Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path",
           "NotebookEdit": "notebook_path"}  # fmt: skip
_KNOWN = {"user", "assistant", "system", "summary", "attachment", "progress", "queue-operation"}
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DECLINED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "User rejected tool use",
    "[Request interrupted by user for tool use]",
    "User declined to answer questions",
)
_NOT_TYPED = re.compile(
    r"<(local-command-std(out|err)|bash-std(out|err)|task-notification|agent-notification"
    r"|ci-monitor-event|user-memory-input)>|<(teammate|cross-session)-message"
    r"|\[Request interrupted by user"
)
_BESIDE = re.compile(
    r"(\s*<(ide_opened_file|ide_selection|system-reminder)>.*?</\2>)+\s*", re.DOTALL
)


def objects(path: Path) -> Iterator[Object]:
    """Yield the objects of a log, glued ones too; what does not decode is passed over."""
    for line in path.read_bytes().split(b"\n"):
        text = line.decode("utf-8", "replace").strip()
        while text:
            try:
                value, end = json.JSONDecoder().raw_decode(text)
            except ValueError:
                break
            if isinstance(value, dict):
                yield value
            text = text[end:].strip()


def pieces(path: Path) -> int:
    """Return how many objects a log has, and pieces of lines that are none."""
    found = 0
    for line in path.read_bytes().split(b"\n"):
        text = line.decode("utf-8", "replace").strip()
        while text:
            found += 1
            try:
                _, end = json.JSONDecoder().raw_decode(text)
            except ValueError:
                break
            text = text[end:].strip()
    return found


def moment(text: str) -> str:
    """Return a time in UTC to the millisecond; what is finer is cut off."""
    time = datetime.fromisoformat(text)
    time = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"


def count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def stated_usage(line: Object) -> Tokens | None:
    """Return what an assistant line states, None if it is to be left out."""
    message = line.get("message")
    if line.get("type") != "assistant" or not isinstance(message, dict):
        return None
    usage = message.get("usage")
    if not isinstance(usage, dict) or message.get("model") == "<synthetic>":
        return None
    return tokens_of(usage)


def requests_of(line: Object) -> list[tuple[str, str, Tokens]]:
    """Return the requests that a line states: a suffix of the response's key, the model, tokens.

    The requests to other models have their place among all iterations as the suffix.
    """
    usage = stated_usage(line)
    if usage is None:
        return []
    own = line["message"].get("model") or ""
    iterations = line["message"]["usage"].get("iterations") or []
    return [
        ("", own, usage),
        *(
            (f"/{number}", one["model"], tokens_of(one))
            for number, one in enumerate(iterations)
            if any(other.get("model") == own for other in iterations)
            and one.get("model") not in (None, own)
        ),
    ]


def mapping(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def tokens_of(usage: Object) -> Tokens:
    split = mapping(usage.get("cache_creation"))
    written = sum(count(split.get(f"ephemeral_{life}_input_tokens")) for life in ("5m", "1h"))
    return (
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        count(usage.get("cache_read_input_tokens")),
        written or count(usage.get("cache_creation_input_tokens")),
    )


def response_key(line: Object, with_request: Iterable[object]) -> object:
    """Return what is one response: an id, which a gateway uses again in other sessions."""
    identity = line["message"].get("id")
    if identity and not identity.startswith("msg_") and identity not in with_request:
        return line.get("sessionId"), identity
    return identity or line.get("uuid")


def _first(*prices: int | None) -> int:
    return next(price for price in prices if price is not None)


@dataclass
class Call:
    """A tool call."""

    name: str
    status: str
    target: str | None
    of_subagent: bool


@dataclass
class Response:
    """An answer of a model."""

    model: str
    day: str | None
    tokens: Tokens
    of_subagent: bool
    for_an_hour: int
    """Of the tokens written to the cache, those that stay an hour; the others stay five minutes."""
    searches: int
    is_partial: bool

    def cost(self, prices: Prices) -> int | None:
        """Return millionths of a dollar: the price of the day, and of requests of this size."""
        fresh, output, read, written = self.tokens
        day = self.day or "9999"
        of_day = max((since for name, since, _ in prices if name == self.model and since <= day),
                     default=None)  # fmt: skip
        fitting = [
            (above, price) for (name, since, above), price in prices.items()
            if (name, since) == (self.model, of_day) and above < max(1, fresh + read + written)
        ]  # fmt: skip
        if not fitting:
            return None
        _, price = max(fitting, key=lambda one: one[0])
        parts = [
            (fresh, price["input"]), (output, price["output"]),
            (read, _first(price["cache_read"], price["input"])),
            (written - self.for_an_hour, _first(price["cache_write_5m"], price["input"])),
            (self.for_an_hour,
             _first(price["cache_write_1h"], price["cache_write_5m"], price["input"])),
            (self.searches, (price["web_search"] or 0) * 1000),
        ]  # fmt: skip
        if None in (price["input"], price["output"]):
            return None
        return (sum(count * each for count, each in parts) + 500_000) // 1_000_000


@dataclass
class Page:
    """What the page of a conversation counts, repetitions of other conversations included."""

    noise: Counter[str] = field(default_factory=Counter)
    """Blocks that are folded, by what the page calls them."""
    prompts: int = 0
    errors: int = 0
    compactions: int = 0
    edited: set[str] = field(default_factory=set)
    subagents: int = 0
    texts: list[set[str]] = field(default_factory=list)
    """The words of each block, subagents included."""
    unclear: set[str] = field(default_factory=set)
    """Words of attachments, of which only a part is text, and of tags, which are not found."""

    @property
    def parts(self) -> dict[str, int]:
        """The parts of the map, with their totals."""
        return {
            name: total
            for name, total in (
                ("Prompts", self.prompts), ("Files changed", len(self.edited)),
                ("Errors", self.errors), ("Subagents", self.subagents),
                ("Compactions", self.compactions),
            ) if total
        }  # fmt: skip


@dataclass
class Session:
    """What is counted of a conversation."""

    prompts: int = 0
    messages: int = 0
    copied: int = 0
    """Messages that another conversation counts."""
    calls: list[Call] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)
    subagents: dict[str, int] = field(default_factory=dict)
    """Messages of each subagent, by its key."""
    links: set[str] = field(default_factory=set)
    """Pull requests that it names as its own."""
    own_times: list[str] = field(default_factory=list)
    agent_times: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    page: Page = field(default_factory=lambda: Page())

    @property
    def times(self) -> tuple[str | None, str | None]:
        """The first and the last moment; of a conversation without a file, those of its agents."""
        times = self.own_times or self.agent_times
        return min(times, default=None), max(times, default=None)

    @property
    def directory(self) -> str:
        """The directory of its project, as its agent encodes it."""
        main = [path for path in self.files if not path.stem.startswith("agent-")]
        place = (main or self.files)[0].parts
        return place[place.index("projects") + 1].lower()

    @property
    def tokens(self) -> Tokens:
        sums = [sum(column) for column in zip(*(r.tokens for r in self.responses), strict=True)]
        return (sums[0], sums[1], sums[2], sums[3]) if sums else (0, 0, 0, 0)

    @property
    def edits(self) -> Counter[str]:
        return Counter(
            call.target
            for call in self.calls
            if call.name in EDITING and call.target and call.status in ("ok", "pending")
        )


@dataclass
class _File:
    path: Path
    home: Path
    session: str
    agent: str | None
    lines: list[Object]
    own_since: str = ""

    @property
    def rank(self) -> tuple[object, ...]:
        """Of files that have the same line, the first is the one that counts it."""
        first = self.lines[0] if self.lines else {}
        is_background = any(line.get("sessionKind") == "bg" for line in self.lines)
        is_stated_fork = any(line.get("type") == "fork-context-ref" for line in self.lines)
        return (
            self.agent is not None, is_background, is_stated_fork, self.own_since,
            str(self.path.relative_to(self.home)), str(self.home), id(first) * 0,
        )  # fmt: skip


def _files(home: Path) -> Iterator[_File]:
    for path in sorted(home.glob("projects/**/*.jsonl")):
        parts = path.relative_to(home).parts
        lines = list(objects(path))
        if path.stem.startswith("agent-"):
            agent = path.stem.removeprefix("agent-")
            key = parts[2] if len(parts) > 3 else next(
                (line["sessionId"] for line in lines if line.get("sessionId")), ""
            )  # fmt: skip
            yield _File(path, home, key.lower(), agent, lines)
        elif len(parts) == 3 and any(line.get("type") in _KNOWN for line in lines):
            (key,) = _UUID.findall(path.stem)[-1:] or [path.stem]
            yield _File(path, home, key.lower(), None, lines)


def blocks(*homes: Path) -> Counter[str]:
    """Return how many blocks the lines of people and agents have, by type, in all files."""
    found: Counter[str] = Counter()
    for file in (file for home in homes for file in _files(home)):
        for line in file.lines:
            message = line.get("message")
            content = message.get("content") if isinstance(message, dict) else message
            if line.get("type") not in ("user", "assistant") or not content:
                continue
            found.update(["text"] if isinstance(content, str) else [b["type"] for b in content])
    return found


def stated(*homes: Path) -> dict[str, int]:
    """Return how many todos and tasks transcripts state, and no file has.

    The last list of todos of each agent counts, and each task that was made: in the list of the
    team, else of the conversation.
    """
    todos: dict[tuple[str, str], int] = {}
    tasks: set[tuple[str, str]] = set()
    teams = {
        json.loads(path.read_text("utf-8")).get("leadSessionId"): path.parent.name
        for home in homes for path in home.glob("teams/*/config.json")
    }  # fmt: skip
    for file in (file for home in homes for file in _files(home)):
        roots = _roots(file)
        for line in file.lines:
            agent = file.agent or roots.get(line.get("uuid"), file.session)
            for block in _blocks(line) if line.get("type") == "assistant" else ():
                given = mapping(block.get("input"))
                if block.get("name") == "TodoWrite" and isinstance(given.get("todos"), list):
                    todos[file.session, agent] = len(given["todos"])
                elif block.get("name") == "TaskCreate":
                    team = line.get("teamName") or teams.get(file.session)
                    tasks.add((team or file.session, block["id"]))
    for home in homes:
        for path in home.glob("todos/*-agent-*.json"):
            if json.loads(path.read_text("utf-8")):
                session, _, agent = path.stem.partition("-agent-")
                todos.pop((session, agent), None)
        lists = {path.parent.name for path in home.glob("tasks/*/*.json")}
        tasks = {(name, call) for name, call in tasks if name not in lists}
    return {"todos": sum(todos.values()), "tasks": len(tasks)}


def sessions(*homes: Path) -> dict[str, Session]:
    """Return what is counted of each conversation of these homes, by its key."""
    files = [file for home in homes for file in _files(home)]
    where: dict[str, set[int]] = defaultdict(set)
    for number, file in enumerate(files):
        for line in file.lines:
            if isinstance(line.get("uuid"), str):
                where[line["uuid"]].add(number)
    for file in files:
        file.own_since = next(
            (line["timestamp"] for line in file.lines
             if isinstance(line.get("uuid"), str) and line.get("timestamp")
             and len(where[line["uuid"]]) == 1), ""
        )  # fmt: skip
    files.sort(key=lambda file: file.rank)
    found: dict[str, Session] = defaultdict(Session)
    seen: dict[str, str] = {}
    for file in files:
        session = found[file.session]
        session.files.append(file.path)
        _count_subagents(file, session)
        _count_lines(file, session, seen)
    _count_responses(files, found)
    for key, session in found.items():
        of_session = [file for file in files if file.session == key]
        _count_page(of_session, session.page)
        warm = {file.agent for file in of_session if _is_warm_up(file)}
        session.page.subagents = len(session.subagents.keys() - warm)
    return dict(found)


def _count_subagents(file: _File, session: Session) -> None:
    """Count the lines of an agent's file, and those of sidechains by the line they begin with."""
    said = [line for line in file.lines if line.get("type") in ("user", "assistant")]
    if file.agent is not None:
        session.subagents[file.agent] = session.subagents.get(file.agent, 0) + len(said)
        return
    for root in _roots(file).values():
        session.subagents[root] = session.subagents.get(root, 0) + 1


def _roots(file: _File) -> dict[object, str]:
    """Return the first line of the sidechain of each line that is in one."""
    roots: dict[object, str] = {}
    for line in file.lines if file.agent is None else ():
        if line.get("type") in ("user", "assistant") and line.get("isSidechain") is True:
            roots[line["uuid"]] = roots.get(line.get("parentUuid"), line["uuid"])
    return roots


def _count_lines(file: _File, session: Session, seen: dict[str, str]) -> None:
    """Count the lines of a file that no file before it has; `seen` says whose those are."""
    results = _results(file.lines)
    calls: set[str] = set()
    for line in file.lines:
        kind, uuid = line.get("type"), line.get("uuid")
        if isinstance(line.get("timestamp"), str) and line["timestamp"] > "2000":
            times = session.agent_times if file.agent is not None else session.own_times
            times.append(moment(line["timestamp"]))
        is_agents = file.agent is not None or line.get("isSidechain") is True
        if isinstance(uuid, str) and uuid in seen:
            is_message = kind in ("user", "assistant") and not is_agents
            session.copied += is_message and seen[uuid] != file.session
            continue
        if isinstance(uuid, str):
            seen[uuid] = file.session
        if kind == "pr-link" and isinstance(line.get("prUrl"), str):
            session.links.add(line["prUrl"])
        if not is_agents:
            session.messages += kind in ("user", "assistant")
            session.prompts += typed_text(line) is not None
        stated = line.get("toolUseResult")
        if isinstance(stated, dict) and isinstance(stated.get("agentId"), str):
            session.subagents.setdefault(stated["agentId"], 0)  # it may have no file
        for block in _blocks(line) if kind == "assistant" else ():
            if block.get("type") in ("tool_use", "server_tool_use") and block["id"] not in calls:
                calls.add(block["id"])
                status = results.get(block["id"], "pending")
                session.calls.append(Call(block["name"], status, _target(block), is_agents))
    session.prompts += _waiting(file.lines)


def _target(block: Object) -> str | None:
    """Return the file that a call edits."""
    given, name = block.get("input"), EDITING.get(block["name"], "")
    target = given.get(name) if isinstance(given, dict) else None
    return target if isinstance(target, str) else None


def _waiting(lines: Iterable[Object]) -> int:
    """Return how many texts were put into the queue and never left it for the conversation."""
    queue = [text for text in _enqueued(lines) if not text.strip().startswith(_NOTICE)]
    delivered = Counter(typed_text(line) for line in lines)
    return sum((Counter(queue) - delivered).values())


_NOTICE = "<", '{"task_id"'


def _enqueued(lines: Iterable[Object]) -> list[str]:
    return [
        line["content"]
        for line in lines
        if line.get("type") == "queue-operation"
        and line.get("operation") == "enqueue"
        and isinstance(line.get("content"), str)
    ]


# -- the page of a conversation --------------------------------------------------------------------

_READABLE = {
    "file": "content", "edited_text_file": "content", "nested_memory": "content",
    "skill_listing": "content", "agent_listing_delta": "addedLines",
    "mcp_instructions_delta": "addedBlocks",
}  # fmt: skip
"""The field of an attachment that a person can read. Hooks have several, and are always shown."""


def _count_page(files: list[_File], page: Page) -> None:
    """Count what the page of a conversation shows of its files; each line once."""
    seen: set[str] = set()
    calls: set[str] = set()
    for file in files:
        _count_texts(file, page, seen)
    seen = set()
    for file in files:
        if file.agent is not None:
            continue
        results = _results(file.lines)
        notices = [text.strip() for text in _enqueued(file.lines)]
        queue = Counter(text for text in notices if text.startswith(_NOTICE))
        delivered = Counter(text.strip() for line in file.lines for text in _said(line))
        page.noise["repeated block"] += (queue & delivered).total() + _repeated(file.lines)
        page.prompts += _waiting(file.lines)
        for line in _once(file.lines, seen):
            if line.get("isSidechain") is True:
                continue
            page.noise.update(_noise(line))
            page.prompts += typed_text(line) is not None
            page.compactions += line.get("isCompactSummary") is True
            page.errors += line.get("isApiErrorMessage") is True or (
                line.get("type") == "system" and line.get("subtype") == "api_error"
            )
            for block in _blocks(line) if line.get("type") == "assistant" else ():
                if not str(block.get("type")).endswith("tool_use") or block["id"] in calls:
                    continue
                calls.add(block["id"])
                status = results.get(block["id"], "pending")
                page.errors += status == "error"
                target = _target(block) if status in ("ok", "pending") else None
                page.edited |= {target} if target else set()


def _is_warm_up(file: _File) -> bool:
    """Was an agent only started to be ready? The map leaves it out."""
    first = mapping(file.lines[0].get("message")) if file.lines else {}
    return file.agent is not None and first.get("content") == "Warmup"


def _once(lines: Iterable[Object], seen: set[str]) -> Iterator[Object]:
    """Yield the lines that are not `seen`, and add them to it."""
    for line in lines:
        uuid = line.get("uuid")
        if not isinstance(uuid, str):
            yield line
        elif uuid not in seen:
            seen.add(uuid)
            yield line


def _repeated(lines: Iterable[Object]) -> int:
    """Return how many blocks of people and agents have lines that a file has twice."""
    uuids: set[object] = set()
    count = 0
    for line in lines:
        if line.get("uuid") in uuids and line.get("type") in ("user", "assistant"):
            count += max(1, len(_blocks(line)))
        uuids.add(line.get("uuid") or id(line))
    return count


def _noise(line: Object) -> Iterator[str]:
    """Yield what a page calls the blocks of a line that the program wrote, and nobody said."""
    given = mapping(line.get("attachment"))
    kind = str(given.get("type"))
    if line.get("type") == "attachment" and kind.startswith("hook"):
        yield "hook"
    elif line.get("type") == "attachment" and given.get(_READABLE.get(kind, "")):
        yield "attachment"
    elif line.get("type") == "user" and line.get("isMeta") is True:
        yield from ["injected text"] * max(1, len(_blocks(line)))
    elif line.get("type") == "user":
        yield from ["injected text" for text in _said(line) if _BESIDE.fullmatch(text)]


def _said(line: Object) -> list[str]:
    """Return the texts of a line of a person, also of one that was queued."""
    given = mapping(line.get("attachment"))
    if given.get("type") == "queued_command" and isinstance(given.get("prompt"), str):
        return [given["prompt"]]
    if line.get("type") != "user":
        return []
    content = mapping(line.get("message")).get("content")
    if isinstance(content, str):
        return [content]
    return [str(block.get("text")) for block in _blocks(line) if block.get("type") == "text"]


def _count_texts(file: _File, page: Page, seen: set[str]) -> None:
    """Gather the words of each block of a file, those of texts that still wait in the queue too."""
    waiting = Counter(text.strip() for text in _enqueued(file.lines)) - Counter(
        text.strip() for line in file.lines for text in _said(line)
    )
    page.texts += map(_words, waiting.elements())
    for line in _once(file.lines, seen):
        page.unclear |= _words(" ".join(re.findall("<[^<>]*>", " ".join(_strings(line)))))
        if line.get("type") in ("user", "assistant"):
            message = line.get("message")
            content = message.get("content") if isinstance(message, dict) else message
            blocks = _blocks(line) or [{"type": "text", "text": content}]
            page.texts += [_words(_text_of(block)) for block in blocks]
        elif line.get("type") == "system":
            page.texts.append(_words(str(line.get("content") or "")))
        elif line.get("type") == "attachment" and _said(line):
            page.texts += map(_words, _said(line))
        else:
            page.unclear |= _words("\n".join(_strings(line)))


def _text_of(block: Object) -> str:
    kind = block.get("type")
    if kind in ("tool_use", "server_tool_use"):
        return "\n".join(_strings(block.get("input")))
    if kind == "tool_result":
        content = block.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))
    return str(block.get("text") or block.get("thinking") or "")


def _strings(value: object) -> Iterator[str]:
    """Yield the texts in JSON, names of fields included."""
    if isinstance(value, dict):
        for name, inside in value.items():
            yield name
            yield from _strings(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from _strings(inside)
    elif value is not None:
        yield str(value)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.lower()))


def _since_2000(time: object) -> bool:
    return isinstance(time, str) and time > "2000"


def issues(*homes: Path) -> Counter[str]:
    """Return what cannot be used in the files of agents, by file: lines that are no JSON object,
    times before the year 2000, and files that were changed then.
    """
    found: Counter[str] = Counter()
    for file in (file for home in homes for file in _files(home)):
        found[str(file.path)] += pieces(file.path) - len(file.lines)
        found[str(file.path)] += sum(
            "timestamp" in line and not _since_2000(line["timestamp"]) for line in file.lines
        )
        modified = datetime.fromtimestamp(file.path.stat().st_mtime, UTC).year
        found[str(file.path)] += not 2000 <= modified <= 2100
    return +found


def named(home: Path) -> set[str]:
    """Return the conversations of a home: what transcripts and directories are named after, what
    the index of a project lists, and whose agents are there.
    """
    mains = [path for path in home.glob("projects/*/*.jsonl") if path.stem[:6] != "agent-"]
    listed = [
        entry["sessionId"]
        for path in home.glob("projects/*/sessions-index.json")
        for entry in json.loads(path.read_text("utf-8"))["entries"]
    ]
    keys = [(_UUID.findall(path.stem) or [path.stem])[-1] for path in mains]
    keys += [path.name for path in home.glob("projects/*/*/") if _UUID.fullmatch(path.name)]
    return {key.lower() for key in (*keys, *listed)} | {file.session for file in _files(home)}


def _queued(line: Object) -> str | None:
    """Return what a person typed while the agent worked, where an attachment delivers it."""
    given = line.get("attachment")
    if not isinstance(given, dict) or given.get("type") != "queued_command":
        return None
    text = given.get("prompt")
    is_typed = given.get("commandMode") in (None, "prompt", "bash") and not given.get("isMeta")
    is_notice = not isinstance(text, str) or text.strip().startswith("<")
    return None if is_notice or not is_typed else str(text)


def _blocks(line: Object) -> list[Object]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _results(lines: Iterable[Object]) -> dict[str, str]:
    """Return how calls ended, by their id: the first result counts."""
    found: dict[str, str] = {}
    for line in lines:
        for block in _blocks(line):
            if block.get("type") != "tool_result":
                continue
            content = block.get("content")
            parts = content if isinstance(content, list) else [{"text": content}]
            text = "\n".join(str(p.get("text") or "") for p in parts if isinstance(p, dict))
            status = "ok"
            if block.get("is_error") is True:
                denial = str(line.get("toolDenialKind") or "")
                is_declined = denial.startswith("user-") or text.removeprefix(
                    "Error: ").startswith(_DECLINED)  # fmt: skip
                status = "declined" if is_declined else "error"
            found.setdefault(str(block.get("tool_use_id")), status)
    return found


def typed_text(line: Object) -> str | None:
    """Return what a person typed in a line, None if nobody did."""
    kind, message = line.get("type"), line.get("message")
    if kind == "attachment":
        return _queued(line)
    if kind == "system" and str(line.get("content")).startswith("<command-name>"):
        return str(line["content"])
    if kind != "user":
        return None
    content = message.get("content") if isinstance(message, dict) else message
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [b.get("text") or "" for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    origin = line.get("origin")
    is_other = isinstance(origin, dict) and origin.get("kind") not in (None, "human")
    if line.get("isMeta") is True or line.get("isCompactSummary") is True or is_other:
        return None
    texts = [text for text in texts if not _BESIDE.fullmatch(text)]
    if not texts or _NOT_TYPED.match(texts[0].lstrip()):
        return None
    return str(texts[0])


def _day(line: Object) -> str | None:
    """Return the day of a line; a time before the year 2000 is none."""
    time = line.get("timestamp")
    return time[:10] if isinstance(time, str) and time > "2000" else None


def _searched(files: list[_File]) -> dict[str, int]:
    """Return how often calls searched the web, by their id, as their results state it."""
    found: dict[str, int] = {}
    for file in files:
        for line in file.lines:
            stated = mapping(line.get("toolUseResult")).get("searchCount")
            for block in _blocks(line) if stated else ():
                key = str(block.get("tool_use_id"))
                found[key] = max(found.get(key, 0), count(stated))
    return found


def _count_responses(files: list[_File], found: dict[str, Session]) -> None:
    with_request = {
        line["message"].get("id") for file in files for line in file.lines
        if line.get("requestId") and isinstance(line.get("message"), dict)
    }  # fmt: skip
    searched = _searched(files)
    lines: dict[tuple[object, str], list[tuple[_File, Object, str, Tokens]]] = defaultdict(list)
    for file in files:
        for line in file.lines:
            for suffix, model, usage in requests_of(line):
                key = response_key(line, with_request), suffix
                lines[key].append((file, line, model, usage))
    for (_, suffix), stated in lines.items():
        most = max(usage[1] for *_, usage in stated)
        best = [one for one in stated if one[3][1] == most]
        file = best[0][0]
        of_file = [one for one in best if one[0] is file]
        _, line, model, usage = of_file[-1]
        day = next((day for _, one, *_ in stated if (day := _day(one))), None)
        full = line["message"]["usage"]
        if suffix:
            full = full["iterations"][int(suffix[1:])]
        calls = {str(block.get("id")) for _, one, *_ in stated for block in _blocks(one)}
        found[file.session].responses.append(
            Response(
                model, day, usage,
                file.agent is not None or line.get("isSidechain") is True,
                count(mapping(full.get("cache_creation")).get("ephemeral_1h_input_tokens")),
                count(mapping(full.get("server_tool_use")).get("web_search_requests"))
                + (0 if suffix else sum(searched.get(call, 0) for call in calls)),
                line["message"].get("stop_reason") is None,
            )
        )  # fmt: skip


# -- programs around agents ------------------------------------------------------------------------


def programs(home: Path) -> dict[str, tuple[int, int]]:
    """Return the messages and the prompts of each conversation that Chorus, CC-Insights or Cortex
    wrote below a home, by its key: what people and agents said, and of that what people typed.
    """
    files = {
        **{path.name.removesuffix("-messages.jsonl"): path
           for path in home.glob("sessions/*/*/*-messages.jsonl")},
        **{path.name.removesuffix(".chat.jsonl"): path
           for path in home.glob("projects/*/chats/*.chat.jsonl")},
        **{path.parent.relative_to(home / "transcripts").as_posix(): path
           for path in home.glob("transcripts/**/transcript.jsonl")},
    }  # fmt: skip
    found = {}
    for key, path in files.items():
        # Cortex itself ignores a line whose content is no text.
        lines = [
            line for line in _torn_too(path) if "type" in line or isinstance(line["content"], str)
        ]
        kinds = Counter(line.get("type") or line.get("role") for line in lines)
        found[key] = kinds["user"] + kinds["assistant"] + kinds["research_result"], kinds["user"]
    return found


def _torn_too(path: Path) -> Iterator[Object]:
    """Yield the objects of a log, and what was appended to a line that was never finished."""
    for line in path.read_bytes().split(b"\n"):
        for start in re.finditer(rb'\{"(?:uuid|type|role)":', line):
            try:
                yield json.JSONDecoder().raw_decode(
                    line[start.start() :].decode("utf-8", "replace")
                )[0]
            except ValueError:
                continue
            break
