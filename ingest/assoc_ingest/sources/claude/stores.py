"""Claude Code's stores beside its transcripts: history, lists, plans, teams, tasks, and the names
of its paths.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice

from ... import tags
from ...fields import MAX_TEXT, json_text, leaves, left_over, mapping, number, orjson, string
from ...paths import comparable_name
from ...records import (
    Document,
    InboxItem,
    Issue,
    Link,
    Paste,
    Plan,
    PlanLine,
    ProjectEntry,
    Prompt,
    Record,
    Retention,
    SessionEntry,
    Task,
    TaskDependency,
    Team,
    TeamMember,
    Todo,
    ToolResultFile,
)
from ...source import DOCUMENT, LOG, PRIVATE, UNKNOWN_CONTENT, UNREAD, Claim, Line, Whereabouts
from ..reader import (
    UUID,
    JSONObject,
    Reader,
    document_text,
    folded,
    nothing_in,
    pieces,
    whole_value,
)

# ------------------------------------------------------------------------------------------------
# Interprets the names of Claude Code's directories and files.
#
# A project directory is named after a working directory: each character except ASCII letters and
# digits becomes a hyphen; a name over 200 characters is truncated to 200, and a hash follows.
# This cannot be reversed. Names that begin with a drive letter are compared in lower case, see
# `project_paths`.


_MAX_ENCODED = 200

_uuid = re.compile(UUID)
_not_alphanumeric = re.compile(r"[^A-Za-z0-9]")


def homes(environment: Mapping[str, str], home: str | None) -> list[str]:
    """Return the homes of the program: the configured ones, else two defaults."""
    configured = environment.get("CLAUDE_CONFIG_DIR", "")
    named = [part.strip() for part in configured.split(",") if part.strip()]
    return named or ([f"{home}/.claude", f"{home}/.config/claude"] if home is not None else [])


def in_project(
    kind: str,
    directory: str,
    session: str | None,
    agent: str | None = None,
    workflow: str | None = None,
    *,
    is_doubtful: bool = False,
    parts: tuple[str, ...] = (),
) -> Claim:
    """Return the claim of a file below a project's directory."""
    if session is not None and (found := _uuid.search(session)):
        session = found[0].lower()
    return Claim(
        "claude",
        kind,
        session_key=session,
        agent_key=agent,
        project_key=comparable_name(directory),
        project_directory=directory,
        workflow=workflow,
        parts=parts,
        is_doubtful=is_doubtful,
    )


def encoded(path: str) -> str:
    """Return the name of the project directory of a working directory, in comparable form.

    For a path over 200 characters, it ends before the hash.
    """
    name = comparable_name(_not_alphanumeric.sub("-", path))
    return name if len(name) <= _MAX_ENCODED else name[:_MAX_ENCODED] + "-"


def named_after(path: str) -> str | None:
    """Return the key of the project of a directory, None if its name ends in a hash."""
    path = path.rstrip("/\\") or path
    return encoded(path) if len(path) <= _MAX_ENCODED else None


def is_session(name: str) -> bool:
    """Is this the name of a session's directory?"""
    return _uuid.fullmatch(name) is not None


def is_encoded(path: str, project_key: str | None) -> bool:
    """Is the project directory named after the working directory `path`?"""
    if project_key is None:
        return False
    name = encoded(path)
    return project_key.startswith(name) if len(name) > _MAX_ENCODED else name == project_key


def whereabouts_in(lines: Iterable[bytes]) -> Whereabouts:
    """Return what the lines of a transcript say about its path; nothing for other lines.

    The session is the one that the last line names: the first may be copied from another session.
    """
    session = agent = directory = None
    for data in lines:
        try:
            line = orjson.loads(data)
        except orjson.JSONDecodeError:
            continue
        if not isinstance(line, dict) or line.get("type") not in ("user", "assistant"):
            continue  # other files name sessions, too
        if not isinstance(line.get("sessionId"), str):
            continue
        session = folded(line["sessionId"])
        if line.get("isSidechain") is True and isinstance(line.get("agentId"), str):
            agent = agent or line["agentId"]
        if isinstance(line.get("cwd"), str):
            directory = directory or line["cwd"]
    return Whereabouts(session, agent, directory)


def transcript_path(session: str, directory: str) -> str | None:
    """Return the path of the transcript of a session that began in a working directory.

    Returns None if the name of the project's directory ends in a hash, or the key is not a uuid.
    """
    name = _not_alphanumeric.sub("-", directory)
    if len(name) > _MAX_ENCODED or not _uuid.fullmatch(session):
        return None
    return f"projects/{name}/{session}.jsonl"


# ------------------------------------------------------------------------------------------------
# Teams of agents: their members, and the messages between them.
#
# ```
# teams/<team>/config.json              {"name","description","createdAt","leadAgentId",
#                                        "leadSessionId","members":[...]}
# teams/<team>/inboxes/<agent>.json     [{"from","text","summary","timestamp","color","read"}]
# ```
#
# **The configuration** can be missing, or vanish before the inboxes do. Its times are
# milliseconds, those of inboxes are ISO text; both forms are accepted in both. A member has
# `agentId` (opaque, mostly `name@team`), `name`, `agentType`, `model`, `prompt`, `color`,
# `planModeRequired`, `joinedAt`, `cwd`, `subscriptions`, `backendType`, `isActive`, and other
# fields that are kept as JSON (`tmuxPaneId`). All are optional; the lead has no `prompt`. If the
# name of a team has capitals or underscores, its configuration and inboxes can be in two
# directories, so a team is identified by its directory's name in lower case with hyphens.
#
# **An inbox** is rewritten as a whole: messages are added, and `read` changes. A message has no
# id; the recipient is the name of the file. The `text` is often JSON itself, an object with a
# `type` (`idle_notification`, `task_assignment`, `shutdown_request`, ...): that type is the kind
# of the message, and the object is its payload.
#
# **Transcripts** have the same messages where an agent received or sent them:
#
# - a user line with `<teammate-message teammate_id="alice" color="blue" summary="..">body
#   </teammate-message>`, several in a row, text around them; the id `system` is the program;
# - `<cross-session-message from=".." from-name="..">`, with `origin` of kind `peer`, whose `msg_id`
#   is that of the sender's result;
# - a call of `SendMessage` (`to` or `recipient`, `message` or `content`, `summary`, `type`), whose
#   `toolUseResult` adds `msg_id` and `routing{sender,target,content}`. Since 2.1.2xx `content` is
#   the first 50 characters of `message`, so the longer of the two is the text.


MESSAGE = "message"

_TEAM_COLUMNS = ("name", "description", "createdAt", "leadAgentId", "leadSessionId", "members")
_MEMBER_COLUMNS = (
    "name", "agentType", "model", "cwd", "color", "joinedAt", "prompt", "subscriptions",
    "backendType", "planModeRequired", "isActive", "agentId",
)  # fmt: skip

_BETWEEN_SESSIONS = "cross-session-message"
_PLAIN_TYPES = (None, MESSAGE, "broadcast")


def team_key(directory: str) -> str:
    """Return the key of a team: its directory in lower case, with hyphens."""
    return _not_alphanumeric.sub("-", directory).lower()


# -- documents -----------------------------------------------------------------------------------


def team(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the configuration of a team."""
    reader = Reader(claim)
    for value in reader.document(lines):
        lead = reader.text(value, "leadSessionId")
        reader.records.append(
            Team(
                reader.text(value, "name") or claim.parts[1],
                reader.text(value, "description"),
                reader.time(value, "createdAt"),
                reader.text(value, "leadAgentId"),
                folded(lead) if lead else None,
            )
        )
        reader.keep(left_over(value, _TEAM_COLUMNS))
        equals: Counter[str | None] = Counter()
        for item in reader.items(value, "members"):
            member = _member(reader, item)
            key = member.agent_id or member.name
            reader.records.append(member._replace(ordinal=equals[key]))
            equals[key] += 1
    return reader.finish()


def _member(reader: Reader, value: JSONObject) -> TeamMember:
    subscriptions = value.get("subscriptions")
    return TeamMember(
        reader.text(value, "name"),
        reader.text(value, "agentType"),
        reader.text(value, "model"),
        reader.text(value, "cwd"),
        reader.text(value, "color"),
        reader.time(value, "joinedAt"),
        reader.text(value, "prompt"),
        json_text(subscriptions) if isinstance(subscriptions, list) else None,
        reader.text(value, "backendType"),
        reader.flag(value, "planModeRequired"),
        reader.flag(value, "isActive"),
        reader.text(value, "agentId"),
        left_over(value, _MEMBER_COLUMNS),
    )


def inbox(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the messages to an agent; equal ones are numbered."""
    reader = Reader(claim)
    recipient = claim.parts[-1].removesuffix(".json")
    seen: Counter[tuple[str | None, str | None, str]] = Counter()
    for _, value in reader.array(lines):
        said = value.get("text")
        text = json_text(said) if isinstance(said, dict) else reader.text(value, "text")
        sender, moment = reader.text(value, "from"), reader.time(value, "timestamp")
        item = item_of(text, sender, recipient, moment, string(value.get("type")))
        key = (moment, sender, item.text_hash)
        reader.records.append(
            item._replace(
                summary=reader.text(value, "summary"),
                is_read=reader.flag(value, "read"),
                color=reader.text(value, "color"),
                channel="inbox",
                ordinal=seen[key],
            )
        )
        seen[key] += 1
    return reader.finish()


def item_of(
    text: str | None,
    sender: str | None,
    recipient: str | None,
    moment: str | None,
    stated_type: str | None = None,
) -> InboxItem:
    """Return a message in a transcript; if its text is a JSON object, that is its payload."""
    payload = _inner(text)
    kind = string(payload.get("type")) if payload else None
    if kind is None:
        kind = MESSAGE if stated_type in _PLAIN_TYPES else stated_type
    return InboxItem(
        text=text[:MAX_TEXT] if text is not None else None,
        sender=sender,
        recipient=recipient,
        kind=kind or MESSAGE,
        summary=None,
        timestamp=moment,
        is_read=None,
        color=None,
        payload=json_text(payload) if payload else None,
        channel="transcript",
        team_name=None,
        message_key=None,
        text_hash=sha256((text or "").strip().encode()).hexdigest(),
        ordinal=0,
        byte_offset=0,
        byte_length=0,
    )


def _inner(text: str | None) -> JSONObject | None:
    """Return a text as a JSON object, None if it is not one with a type."""
    body = (text or "").strip()
    if not (body.startswith("{") and body.endswith("}")):
        return None
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("type"), str) else None


# -- transcripts ---------------------------------------------------------------------------------


def received(text: str, origin: object, moment: str | None) -> Iterator[InboxItem]:
    """Yield the messages in a user line.

    The line's origin belongs to one message, the first one between sessions if there is any.
    """
    found = list(tags.elements(text, ("teammate-message", _BETWEEN_SESSIONS)))
    between = [element for element in found if element.tag.name == _BETWEEN_SESSIONS]
    described = next(iter(between or found), None)
    for element in found:
        peer = mapping(origin) if element is described else {}
        yield _received(element, peer, moment)


def _received(element: tags.Element, peer: JSONObject, moment: str | None) -> InboxItem:
    attributes = element.tag.attributes or {}
    body = element.text.strip("\r\n")
    if element.tag.name == _BETWEEN_SESSIONS:
        sender = string(peer.get("name")) or attributes.get("from-name")
        sender = sender or string(peer.get("from")) or attributes.get("from")
        item = item_of(string(peer.get("body")) or body, sender, None, moment)
    else:
        item = item_of(body, attributes.get("teammate_id"), None, moment)
    return item._replace(
        summary=attributes.get("summary"),
        color=attributes.get("color"),
        message_key=string(peer.get("msg_id")),
    )


def sent(arguments: JSONObject, tool_use_id: str | None, moment: str | None) -> InboxItem:
    """Return the message that a call of SendMessage sends; only its result names the sender."""
    text = max(map(_body, (arguments.get("message"), arguments.get("content"))), key=len) or None
    recipient = string(arguments.get("recipient")) or string(arguments.get("to"))
    item = item_of(text, None, _addressee(recipient), moment, string(arguments.get("type")))
    return item._replace(summary=string(arguments.get("summary")), tool_use_id=tool_use_id)


def _body(value: object) -> str:
    return json_text(value) if isinstance(value, dict) else string(value) or ""


def delivered(extra: JSONObject, tool_use_id: str, moment: str | None) -> InboxItem | None:
    """Return what the result of SendMessage adds to its call, None for other tools."""
    routing, key = mapping(extra.get("routing")), string(extra.get("msg_id"))
    if not routing and key is None:
        return None
    target = _addressee(string(routing.get("target")))
    item = item_of(string(routing.get("content")), string(routing.get("sender")), target, moment)
    return item._replace(
        summary=string(routing.get("summary")), message_key=key, tool_use_id=tool_use_id
    )


def _addressee(name: str | None) -> str | None:
    """Return the name of one agent, None for a message to all."""
    name = (name or "").removeprefix("@")
    return None if name in ("", "*", "all", "team") else name


# ------------------------------------------------------------------------------------------------
# Texts that Claude Code keeps as files: plans, and its memory of a project.
#
# **plans/<slug>.md**, `<slug>-agent-<A>.md`: a plan in Markdown, rewritten as a whole. `<slug>`
# is a name of three words that is also on the lines of its session. Its title is the first line
# that, trimmed, starts with `# ` and has a text after it; `(untitled)` if there is none. Each
# line is
#
# - `code_fence`: begins, after white space, with three backticks; opens or closes code;
# - `code_block`: between two fences;
# - `heading`: one to six `#` and a space;
# - `normal`: anything else.
#
# **projects/<enc>/memory/**/*.md**, **agent-memory/**/*.md**: notes for later sessions. The title
# is the first heading, else the name.
#
# **Notes** are other texts: what a loop repeats, drafts of feedback, and what the program says
# about the usage of a session, `usage-data/**/<S>.json`. Of a JSON document, all strings are the
# text.


UNTITLED = "(untitled)"

_heading = re.compile(r"#{1,6} ").match


def plan(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read a plan and classify its lines."""
    (line,) = lines
    text, records = document_text(line)
    text = text[:MAX_TEXT]
    name = claim.parts[-1].removesuffix(".md")
    return [*records, Plan(title_of(text) or UNTITLED, text, name), *_classified(text)]


def memory(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read a note of the agent about a project."""
    (line,) = lines
    text, records = document_text(line)
    text = text[:MAX_TEXT]
    path = "/".join(claim.parts)
    name = claim.parts[-1].removesuffix(".md")
    return [*records, Document("memory", title_of(text) or name, text, path)]


def note(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read any other text; a JSON document has one in its strings."""
    (line,) = lines
    name, _, extension = claim.parts[-1].rpartition(".")
    if extension == "json":
        found = whole_value(line.data)
        if found is None:
            return nothing_in(line, "not JSON")
        text, records = "\n".join(leaves(found[0])), document_text(line)[1]
    else:
        text, records = document_text(line)
    session = claim.session_key or (folded(name) if is_session(name) else None)
    title = title_of(text) or claim.parts[-1]
    path = "/".join(claim.parts)
    return [*records, Document("note", title, text[:MAX_TEXT], path, session)]


def title_of(text: str) -> str | None:
    """Return the first heading with a text, None if there is none."""
    for line in text.split("\n"):
        trimmed = line.strip()
        if trimmed.startswith("# ") and trimmed[2:].strip():
            return trimmed[2:].strip()
    return None


def _classified(text: str) -> Iterator[PlanLine]:
    is_code = False
    for place, line in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
        if line.lstrip().startswith("```"):
            kind = "code_fence"
            is_code = not is_code
        elif is_code:
            kind = "code_block"
        else:
            kind = "heading" if _heading(line) else "normal"
        yield PlanLine(place, kind, line.removesuffix("\r"))


# ------------------------------------------------------------------------------------------------
# The prompt history of Claude Code: every prompt of every project, one line each.
#
# ```json
# {"display":"/review [Pasted text #1 +12 lines]","timestamp":1771301000456,"project":"/srv/demo",
#  "pastedContents":{"1":{"id":1,"type":"text","contentHash":"3f8a0c1d22e4b567"}},
#  "sessionId":"0b7c"}
# ```
#
# `history.jsonl` is appended to; the time is in milliseconds; lines before November 2025 have no
# `sessionId`. A pasted text of up to 1,024 characters is in the line (`content`); a longer one is
# a file of its own, `paste-cache/<hash>.txt`, named by the first 16 hex digits of its SHA-256. A
# fifth of these files are gone. Of a pasted image, only `[Image #1]` is left. Consecutive
# duplicates are normal. Other programs have a `history.jsonl`, too; this one has `display` in
# every line.


_HEAD_LINES = 20


def is_prompt(line: JSONObject) -> bool:
    """Does the object have the shape of a line of the history?"""
    return isinstance(line.get("display"), str) and not line.keys().isdisjoint(
        ("project", "pastedContents", "timestamp")
    )


def believes(lines: Iterable[bytes]) -> bool:
    """Is one of the first lines a prompt? An empty history is not accepted."""
    head = islice(lines, _HEAD_LINES)
    found = (piece for data in head for piece in pieces(Line(0, data), is_prompt))
    return any(piece.object is not None and is_prompt(piece.object) for piece in found)


def history(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read prompts, with what was pasted into them."""
    reader = Reader(claim)
    for value in reader.objects(lines, is_prompt):
        pasted, hashes = _pasted(reader, value)
        session, project = reader.text(value, "sessionId"), reader.text(value, "project")
        reader.records.append(
            Prompt(
                (reader.text(value, "display") or "")[:MAX_TEXT],
                reader.time(value, "timestamp"),
                project,
                folded(session) if session else None,
                pasted,
                hashes,
                reader.start,
                reader.length,
                encoded(project) if project else None,
            )
        )
    return reader.finish()


def _pasted(reader: Reader, value: JSONObject) -> tuple[str | None, str | None]:
    """Return the pasted text, or the parts that the store has to combine if some are files.

    These are a JSON array: a hash for a part that is a file, `{"text": ...}` for one in the line.
    """
    texts: list[str] = []
    parts: list[object] = []
    for entry in reader.mapping(value, "pastedContents").values():
        content, key = mapping(entry).get("content"), string(mapping(entry).get("contentHash"))
        if mapping(entry).get("type") == "image":
            continue
        if isinstance(content, str) and content:
            texts.append(content)
            parts.append({"text": content})
        elif key is not None:
            parts.append(key)
    if len(parts) == len(texts):
        return "\n".join(texts)[:MAX_TEXT] or None, None
    return None, json_text(parts)


def paste(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read a pasted text."""
    (line,) = lines
    text, records = document_text(line)
    return [*records, Paste(claim.parts[-1].removesuffix(".txt"), text[:MAX_TEXT])]


# ------------------------------------------------------------------------------------------------
# What Claude Code says about its sessions outside their transcripts.
#
# **projects/<enc>/sessions-index.json** (until about 2.1.3x): one object. Half of its entries
# belong to deleted sessions, and a quarter of the sessions are missing, so it is only a hint at
# titles and at what is gone. All fields except `sessionId` are optional; `customTitle`, `prUrl`
# and `prRepository` are rare.
#
# ```json
# {"version":1,"originalPath":"/srv/demo","entries":[{"sessionId":"0b7c","fileMtime":1768905000000,
#  "firstPrompt":"rename the button","summary":"Button rename","messageCount":12,"gitBranch":"",
#  "created":"2026-01-20T10:00:00.000Z","modified":"2026-01-20T10:20:00.000Z",
#  "projectPath":"/srv/demo","isSidechain":false}]}
# ```
#
# **sessions/<pid>.json**: a session that is open now, with `status` idle, busy, shell or waiting.
# It is deleted at exit, and stale after a crash. **jobs/<8hex>/state.json**: a session in the
# background, with `state` working, blocked or done. Both contain secrets (`bridgeSessionId`,
# `messagingSocketPath`; `providerEnv`), so only the keys below and those in `_REGISTRY` and
# `_JOB`, which are kept as JSON, are read, and their bytes are not kept.
#
# ```json
# {"pid":4711,"sessionId":"0b7c","cwd":"/srv/demo","startedAt":1771500000000,"kind":"interactive",
#  "status":"busy","updatedAt":1771500090000,"name":"tidy"}
# {"state":"done","intent":"tidy menus","sessionId":"0b7c","cwd":"/srv/demo",
#  "output":{"result":"ok"},"createdAt":"2026-02-19T11:20:00.000Z",
#  "updatedAt":"2026-02-19T11:25:00.000Z",
#  "worktreePath":"/srv/demo-tidy","worktreeBranch":"tidy","name":"tidy","detail":"running tests"}
# ```
#
# **settings.json**: only `cleanupPeriodDays`, after which transcripts are deleted.


_INDEX_COLUMNS = (
    "sessionId", "customTitle", "summary", "firstPrompt", "created", "modified", "messageCount",
    "gitBranch", "projectPath", "isSidechain", "prUrl", "prRepository",
)  # fmt: skip
_REGISTRY = (
    "pid", "version", "kind", "entrypoint", "procStart", "nameSource", "waitingFor", "tmux",
    "peerProtocol",
)  # fmt: skip
_JOB = (
    "detail", "intent", "resumeSessionId", "originCwd", "firstTerminalAt", "linkScanPath",
    "linkScanOffset", "backend", "cliVersion",
)  # fmt: skip


def index(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read an index of a project's sessions."""
    reader = Reader(claim)
    for value in reader.document(lines):
        entries = reader.items(value, "entries")
        paths = [reader.text(value, "originalPath")]
        paths += [reader.text(entry, "projectPath") for entry in entries]
        reader.records.extend(_project(claim, [path for path in paths if path]))
        for entry in entries:
            reader.records.extend(_index_entry(reader, entry))
        reader.keep(left_over(value, ("entries",)))
    return reader.finish()


def _project(claim: Claim, paths: list[str]) -> Iterator[Record]:
    """Yield the project's path: the one that its directory is named after, else the first."""
    fitting = [path for path in paths if is_encoded(path, claim.project_key)]
    if claim.project_key and paths:
        yield ProjectEntry(claim.project_key, None, (fitting or paths)[0])


def _index_entry(reader: Reader, entry: JSONObject) -> Iterator[Record]:
    session = _session(reader, entry)
    if session is None:
        return
    yield SessionEntry(
        session,
        "index",
        title=reader.text(entry, "customTitle"),
        summary=reader.text(entry, "summary"),
        first_prompt=reader.text(entry, "firstPrompt"),
        started_at=reader.time(entry, "created"),
        ended_at=reader.time(entry, "modified") or reader.time(entry, "fileMtime"),
        message_count=reader.whole(entry, "messageCount"),
        git_branch=reader.text(entry, "gitBranch"),
        cwd=reader.text(entry, "projectPath"),
        is_sidechain=reader.flag(entry, "isSidechain"),
        extra=left_over(entry, _INDEX_COLUMNS),
    )
    url = reader.text(entry, "prUrl")
    if url is not None:
        repository = reader.text(entry, "prRepository")
        yield Link("pull_request", url, repository, None, 0, reader.length, session)


def _session(reader: Reader, value: JSONObject) -> str | None:
    session = reader.text(value, "sessionId")
    if session is None:
        reader.note("sessionId: missing")
    return folded(session) if session else None


def registry(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read what the registry says about an open session."""
    reader = Reader(claim)
    for value in reader.document(lines):
        session = _session(reader, value)
        if session is not None:
            entry = SessionEntry(
                session,
                "registry",
                title=reader.text(value, "name"),
                started_at=reader.time(value, "startedAt"),
                ended_at=reader.time(value, "updatedAt"),
                cwd=reader.text(value, "cwd"),
                status=reader.text(value, "status"),
                extra=_allowed(value, _REGISTRY),
            )
            reader.records.append(entry)
    return reader.finish()


def job(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the state of a session that runs in the background."""
    reader = Reader(claim)
    for value in reader.document(lines):
        session = _session(reader, value)
        if session is None:
            continue
        output = reader.mapping(value, "output")
        entry = SessionEntry(
            session,
            "job",
            title=reader.text(value, "name") or reader.text(value, "intent"),
            summary=reader.text(output, "result") or reader.text(value, "detail"),
            started_at=reader.time(value, "createdAt"),
            ended_at=reader.time(value, "updatedAt") or reader.time(value, "firstTerminalAt"),
            cwd=reader.text(value, "cwd"),
            status=reader.text(value, "state"),
            extra=_allowed(value, _JOB),
        )
        reader.records.append(entry)
        worktree = reader.text(value, "worktreePath")
        if worktree is not None:
            branch = reader.text(value, "worktreeBranch")
            origin = reader.text(value, "originCwd")
            reader.records.append(
                Link("worktree", worktree, branch, None, 0, reader.length, session, origin)
            )
    return reader.finish()


def _allowed(value: JSONObject, keys: tuple[str, ...]) -> str | None:
    """Return the values of these keys of a document with secrets, as JSON text."""
    return left_over({key: value.get(key) for key in keys})


def settings(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the number of days after which Claude Code deletes transcripts."""
    reader = Reader(claim)
    for value in reader.document(lines):
        reader.records.append(Retention(reader.whole(value, "cleanupPeriodDays")))
    return reader.finish()


# ------------------------------------------------------------------------------------------------
# Claude Code's stores besides its transcripts: their paths, and how the small ones are read.
#
# ```
# history.jsonl, paste-cache/<16hex>.txt, paste-cache/<S>/<16hex>.txt   `history`
# tasks/<list>/<N>.json                                     a task
# todos/<S>-agent-<A>.json                                  a todo list; other names name no owner
# teams/<team>/config.json, inboxes/<agent>.json            `teams`
# plans/<slug>.md                                           `plans`
# projects/<enc>/sessions-index.json, sessions/<pid>.json, jobs/<8hex>/state.json, settings.json
#                                                           `lists`
# projects/<enc>/memory/**/*.md, agent-memory/**/*.md        notes of the agent: `plans.memory`
# loop.md, feedback/drafts/*, usage-data/**/*.json          other texts: `plans.note`
# projects/<enc>/<S>/tool-results/**                        outputs too large for their transcript
# file-history/<S>/<16hex>@v<N>                             copies of the user's files: never opened
# ```
#
# Any other file below a session is not opened and becomes an issue, unless it is a text with
# the extension of one; so do `server-sessions.json`, `remote-agents/`, and reports in `usage-
# data/`.
#
# `history.jsonl` grows; all others are rewritten as a whole, mostly by renaming a temporary file.
# Names that begin with a dot, temporary names, locks and backups are ignored everywhere.
#
# **A task** is one object; the stem of the file is its id. Both tasks of a dependency state it, in
# `blocks` and in `blockedBy`; `owner`, `metadata` and, rarely, `activeForm` can be missing.
# `<list>` is a session, a team, or a name that the user chose. A finished list is deleted.
#
# ```json
# {"id":"3","subject":"Write loader","description":"JSONL first","activeForm":"Writing loader",
#  "status":"in_progress","owner":"alice","blocks":["5"],"blockedBy":["2"],"metadata":{"phase":"1"}}
# ```
#
# **A todo list** is an array of `{"content","status","activeForm"}`, in old versions
# `{"content","status","priority","id"}`. `<A>` is `<S>` for the main agent. 98 % of the lists are
# `[]`, and some files are empty: neither means anything. A list is rewritten as a whole, and `id`
# counts from 1 in each version, so an item is identified by its content.
#
# **A tool result** is any file; most are named after their call (`toolu_...`, `call_...`). For a
# binary file, only name, size and type are kept.


_todo_file = re.compile(rf"({UUID})-agent-(.+)\.json", re.DOTALL).fullmatch
_paste_file = re.compile(r"([0-9a-f]{16})\.txt").fullmatch
_backup_file = re.compile(r"[0-9a-f]{16}@v\d+").fullmatch
_registry_file = re.compile(r"\d+\.json").fullmatch
_job_directory = re.compile(r"[0-9a-f]{8}").fullmatch
_task_file = re.compile(r"\d+\.json").fullmatch
_call_name = re.compile(r"(?:toolu|call|tooluse)_[\w-]+").fullmatch
_left_alone = re.compile(r"\..*|.*(?:\.lock|\.tmp(?:\..*)?|\.bak.*|~)", re.DOTALL).fullmatch

_TOOL_RESULT_DEPTH = 6
_DEPTH = 5  # directories of a path in other places
_TEXTS = (".md", ".txt", ".js")
_MORE = ("agent-memory", "feedback", "memory", "remote-agents", "usage-data")
UNKNOWN = "a file of a kind that this version does not read"
"""Reason of the issue of a file that nothing is known of."""
_MEDIA_TYPES = {
    "txt": "text/plain", "log": "text/plain", "md": "text/markdown", "json": "application/json",
    "jsonl": "application/jsonl", "csv": "text/csv", "html": "text/html", "xml": "text/xml",
    "yaml": "application/yaml", "pdf": "application/pdf", "jpg": "image/jpeg",
    "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp",
    "svg": "image/svg+xml", "zip": "application/zip", "gz": "application/gzip",
    "mp3": "audio/mpeg", "wav": "audio/wav", "mp4": "video/mp4",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}  # fmt: skip


# -- paths ---------------------------------------------------------------------------------------


def is_store(path: list[str]) -> bool:
    """Does this path in a listing show that the directory is a home?"""
    match path:
        case ["todos", name]:
            return _todo_file(name) is not None
        case ["tasks", _, name]:
            return _task_file(name) is not None
        case ["teams", _, "config.json"]:
            return True
        case ["teams", _, "inboxes", name]:
            return name.endswith(".json") and not is_left_alone(name)
    return False


def is_left_alone(name: str) -> bool:
    """Is this the name of a lock, a backup or a temporary file?"""
    return _left_alone(name) is not None


def descends(parts: tuple[str, ...]) -> bool:
    """Can the directory `parts` contain files of these stores?"""
    match parts:
        case ("tasks" | "todos" | "teams" | "plans" | "paste-cache" | "sessions",):
            return True
        case ("paste-cache", session) if is_session(session):
            return True
        case ("file-history" | "jobs",) | ("tasks" | "teams" | "file-history" | "jobs", _):
            return True
        case ("teams", _, "inboxes"):
            return True
        case ("projects", _, _, "tool-results", *_):
            return len(parts) <= _TOOL_RESULT_DEPTH
        case ("projects", _, session, *_) if session == "memory" or is_session(session):
            return len(parts) <= _DEPTH and not is_left_alone(parts[-1])
        case (first, *_) if first in _MORE:
            return len(parts) < _DEPTH and not is_left_alone(parts[-1])
    return False


def claim(parts: tuple[str, ...]) -> Claim | None:
    """Return the claim of a path, None if it is in none of these stores."""
    if is_left_alone(parts[-1]):
        return None
    if parts[0] == "projects":
        return _in_project(parts)
    kind = _at_top(parts)
    if kind is None:
        return None
    team = team_key(parts[1]) if kind in ("team", "inbox") else None
    return Claim("claude", kind, team_key=team, parts=parts, is_doubtful=kind == "history")


def _in_project(parts: tuple[str, ...]) -> Claim | None:
    match parts:
        case (_, directory, "sessions-index.json"):
            return in_project("session_index", directory, None, parts=parts)
        case (_, directory, "memory", *_, name) if name.endswith(".md"):
            return in_project("memory", directory, None, parts=parts)
        case (_, directory, "loop.md"):
            return in_project("note", directory, None, parts=parts)
        case (_, directory, session, "tool-results", *below) if below:
            return in_project("tool_result", directory, session, parts=tuple(below))
        case (_, directory, session, *_, name) if len(parts) > 3 and is_session(session):
            kind = "note" if name.endswith(_TEXTS) else "unknown"
            return in_project(kind, directory, session, parts=parts)
    return None


def _at_top(parts: tuple[str, ...]) -> str | None:  # noqa: C901
    """Return the kind of a file, with one line for each path."""
    match parts:
        case ("history.jsonl",):
            return "history"
        case ("settings.json",):
            return "settings"
        case ("tasks", _, name) if name.endswith(".json"):
            return "task"
        case ("todos", name) if name.endswith(".json"):
            return "todos"
        case ("teams", _, "config.json"):
            return "team"
        case ("teams", _, "inboxes", name) if name.endswith(".json"):
            return "inbox"
        case ("plans", name) if name.endswith(".md"):
            return "plan"
        case ("paste-cache", name) | ("paste-cache", _, name) if _paste_file(name):
            return "paste"
        case ("file-history", _, name) if _backup_file(name):
            return "file_backup"
        case ("sessions", name) if _registry_file(name):
            return "registry"
        case ("jobs", directory, "state.json") if _job_directory(directory):
            return "job"
        case ("agent-memory" | "memory", *_, name) if name.endswith(".md"):
            return "memory"
        case ("loop.md",):
            return "note"
        case ("feedback", "drafts", *_, name) | ("usage-data", *_, name) if name.endswith(
            (*_TEXTS, ".json")
        ):
            return "note"
        case ("server-sessions.json",):
            return "unknown"
        case (first, _, *_) if first in _MORE:
            return "unknown"
    return None


# -- contents ------------------------------------------------------------------------------------

Parser = Callable[[Claim, Iterable[Line]], list[Record]]


def _tasks(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    reader = Reader(claim)
    list_key = list_name(claim.parts[1])
    key = claim.parts[2].removesuffix(".json")
    for value in reader.document(lines):
        reader.records.append(
            Task(
                key,
                list_key,
                reader.text(value, "subject"),
                reader.text(value, "description"),
                reader.text(value, "status"),
                reader.text(value, "owner"),
                reader.text(value, "activeForm"),
                _metadata(reader, value),
                number(key),
            )
        )
        edges = [(other, key) for other in reader.scalars(value, "blocks")]
        edges += [(key, other) for other in reader.scalars(value, "blockedBy")]
        reader.records.extend(TaskDependency(list_key, *edge) for edge in dict.fromkeys(edges))
    return reader.finish()


def _metadata(reader: Reader, value: JSONObject) -> str | None:
    metadata = reader.mapping(value, "metadata")
    if not metadata:
        return None
    return json_text(metadata, lambda: reader.exact("metadata", metadata))


def list_name(directory: str) -> str:
    """Return the key of a task list: a session's uuid in lower case, other names unchanged."""
    return directory.lower() if re.fullmatch(UUID, directory) else directory


def _todos(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    reader = Reader(claim)
    name = _todo_file(claim.parts[1])
    session, agent = (name[1].lower(), name[2]) if name else (None, None)
    agent = agent.lower() if agent and re.fullmatch(UUID, agent) else agent
    equals: Counter[str | None] = Counter()
    for position, value in reader.array(lines, is_empty_allowed=True):
        content = reader.text(value, "content")
        reader.records.append(
            Todo(
                position,
                content,
                reader.text(value, "status"),
                reader.text(value, "priority"),
                reader.text(value, "activeForm"),
                session,
                agent,
                equals[content],
            )
        )
        equals[content] += 1
    return reader.finish()


def _tool_result(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read an output; a binary one has no lines."""
    name = "/".join(claim.parts)
    stem, _, extension = claim.parts[-1].partition(".")
    media_type = _MEDIA_TYPES.get(extension.rpartition(".")[2].lower())
    call = stem if len(claim.parts) == 1 and _call_name(stem) else None
    text: str | None = None
    records: list[Record] = []
    for line in lines:
        text, records = document_text(line)
        text = text[:MAX_TEXT]
        media_type = media_type or "text/plain"
    media_type = media_type or "application/octet-stream"
    return [ToolResultFile(name, media_type, text, claim.session_key, string(call)), *records]


def _unknown(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    return [Issue(UNKNOWN, 0, None, 0, 0)]


def _nothing(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    return []


STORES: dict[str, tuple[str, Parser]] = {
    "task": (DOCUMENT, _tasks),
    "todos": (DOCUMENT, _todos),
    "team": (DOCUMENT, team),
    "inbox": (DOCUMENT, inbox),
    "plan": (DOCUMENT, plan),
    "memory": (DOCUMENT, memory),
    "note": (DOCUMENT, note),
    "history": (LOG, history),
    "paste": (DOCUMENT, paste),
    "session_index": (DOCUMENT, index),
    "registry": (PRIVATE, registry),
    "job": (PRIVATE, job),
    "settings": (PRIVATE, settings),
    "tool_result": (UNKNOWN_CONTENT, _tool_result),
    "file_backup": (UNREAD, _nothing),
    "unknown": (UNREAD, _unknown),
}
"""How the files of each kind are read, and the function that parses them."""
