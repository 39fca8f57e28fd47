"""Claude Code: transcripts, subagents, tasks, plans and other files below `~/.claude`.

```
projects/<enc>/<S>.jsonl                                  transcript; S is the session's uuid
projects/<enc>/agent-<A>.jsonl                            subagent, old layout (2.0.28 to 2.1.2)
projects/<enc>/<S>/subagents/agent-<A>.jsonl              subagent, new layout (2.1.3 on)
projects/<enc>/<S>/subagents/agent-<A>.meta.json          its sidecar (about 2.1.71 on)
projects/<enc>/<S>/subagents/workflows/<run>/agent-<A>.jsonl, .meta.json, journal.jsonl
projects/<enc>/<S>/subagents/<any directory>/agent-<A>.jsonl, .meta.json
projects/<enc>/<S>/workflows/<run>.json                   snapshot of a finished workflow run
```

The other stores (tasks, todos, teams, plans, prompts, ...) are listed in `stores`.

`<enc>` is the working directory with every character except letters and digits replaced by a
hyphen, so it cannot be decoded; the real path comes from the lines. A file whose stem is not a uuid
(exporters write `<date>-<uuid>.jsonl`) is a transcript only if its lines show it, or if the index
of its project names it (`exclusions.as_listed`). Nothing else below the root is opened: it contains
credentials, caches and complete copies of itself. These are not opened for other sources either: in
the root, `.credentials.json`, `.claude.json`, `config.json`, `.mcp.json`, `*auth*.json` and all
settings except `settings.json`; and everything in `session-env/`, `shell-snapshots/`, `debug/`,
`security/`, `telemetry/` and `daemon*`.

The lines of transcripts are described in `transcript`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from ...fields import integer, mapping, sample, string
from ...paths import comparable_name
from ...records import BY_META, AgentLink, AgentMeta, Issue, Record, WorkflowAgent, WorkflowLink
from ...source import (
    DOCUMENT,
    FOREIGN,
    FOREIGN_DOCUMENT,
    LOG,
    Claim,
    Line,
    Listing,
    Recognition,
    Source,
    Whereabouts,
)
from ..reader import UUID, JSONObject, Reader, complete_prefix, pieces
from . import stores
from .stores import STORES, encoded, homes, in_project, transcript_path, whereabouts_in
from .transcript import ARTIFACT, KNOWN_LINES, TRANSCRIPT_TYPES, TranscriptReader, is_known, role_of

_uuid = re.compile(UUID)
_ends_in_uuid = re.compile(rf"(?:.*[^0-9A-Za-z])?{UUID}", re.DOTALL).fullmatch
_agent_file = re.compile(r"agent-(.+)\.jsonl", re.DOTALL).fullmatch
_agent_meta = re.compile(r"agent-(.+)\.meta\.json", re.DOTALL).fullmatch
_private_file = re.compile(
    r"\.credentials.*|\.claude\.json.*|\.mcp\.json|config\.json|.*auth.*\.json"
    r"|settings(?!\.json$).*\.json.*|settings\.json.+",
    re.IGNORECASE | re.DOTALL,
).fullmatch
_private_directory = re.compile(
    r"session-env|shell-snapshots|debug|security|daemon.*|telemetry", re.IGNORECASE | re.DOTALL
).fullmatch
_encoded_path = re.compile(r"-|[A-Za-z]--").match
_DOCUMENTS = ("agent_meta", "workflow", FOREIGN_DOCUMENT)
_MOST_BELOW = 3  # directories below subagents/ that are walked
_SIDE_AGENTS = ("acompact-", "aprompt_suggestion-", "aside_question-")


class Claude(Source):
    """The source of kind `claude`."""

    name = "claude"
    label = "Claude Code"
    is_agent = True
    retention_days = 30
    directory_of_projects = "projects"
    unread_places = (
        *("backup*", "*.bak*", "cache", "chrome", "downloads", "ide", "image-cache", "local"),
        *("agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills"),
        *("session-data", "statsig", "theassociate", "transcripts", "uploads", "worktrees"),
    )
    checked = "1.0.0 to 2.1.330"
    known_lines = KNOWN_LINES | {"started", "result"}  # of transcripts, and of journals

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """Return the directories in `CLAUDE_CONFIG_DIR`, a comma list, else the two defaults."""
        return homes(environment, home)

    def resume_command(self, session_key: str) -> list[str] | None:
        """The program accepts the id of a session, which is a uuid."""
        return ["claude", "--resume", session_key] if _uuid.fullmatch(session_key) else None

    def whereabouts(self, lines: Iterable[bytes]) -> Whereabouts:
        """Return what the lines of a transcript say about its path."""
        return whereabouts_in(lines)

    def path_of(self, told: Whereabouts, project_key: str | None) -> str | None:
        """The path of a transcript follows from its session and the directory of its project."""
        if told.agent is not None or told.directory is None:
            return None
        if project_key is not None and project_key != encoded(told.directory):
            return None
        return transcript_path(told.session or "", told.directory)

    def recognises(self, listing: Listing) -> Recognition:
        """A home has projects/ with a transcript, or its history or another store shows it.

        A directory in projects/ that is named like a path is not enough, if any has `chats/`: there
        Qwen Code keeps its conversations. The `.claude/` of a repository has none of these.
        """
        is_possible = is_of_another = False
        for path in listing:
            parts = path.split("/")
            if stores.is_store(parts):
                return Recognition.CERTAIN
            match parts:
                case ["history.jsonl"]:
                    if stores.believes(listing.content(path).split(b"\n")):
                        return Recognition.CERTAIN
                case ["projects", directory] if _encoded_path(directory):
                    is_possible = True
                case ["projects", _, "chats"]:
                    is_of_another = True
                case ["projects", _, name] if name.endswith(".jsonl"):
                    if _uuid.fullmatch(name.removesuffix(".jsonl")) or _agent_file(name):
                        return Recognition.CERTAIN
        is_home = is_possible and not is_of_another
        return Recognition.POSSIBLE if is_home else Recognition.NO

    def knows(self, kind: str, subtype: str) -> bool:
        """Artifacts have many types of lines, all of which are only counted."""
        return kind.startswith(ARTIFACT) or super().knows(kind, subtype)

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Credentials and settings in the root, and the program's internal files."""
        if len(parts) == 1 and _private_file(parts[0]):
            return True
        return parts[0] != "projects" and _private_directory(parts[0]) is not None

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        match parts:
            case ("projects",) | ("projects", _) | ("projects", _, _):
                return True
            case ("projects", _, _, "workflows"):
                return True
            case ("projects", _, _, "subagents", *below) if len(below) <= _MOST_BELOW:
                return True
        return stores.descends(parts)

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        if stores.is_left_alone(parts[-1]):
            return None
        match parts:
            case ("projects", directory, name) if name.endswith(".jsonl"):
                return self._in_project(directory, name)
            case ("projects", directory, session, "subagents", *below, name):
                run = below[1] if below[:1] == ["workflows"] and len(below) > 1 else None
                if claim := self._subagent(directory, session, name, run):
                    return claim
            case ("projects", directory, session, "workflows", name) if name.endswith(".json"):
                run = name.removesuffix(".json")
                return in_project("workflow", directory, session, workflow=run)
        return stores.claim(parts)

    @staticmethod
    def _in_project(directory: str, name: str) -> Claim:
        if agent := _agent_file(name):
            return in_project(_agent_kind(agent[1]), directory, None, agent[1])
        stem = name.removesuffix(".jsonl")
        return in_project("transcript", directory, stem, is_doubtful=not _ends_in_uuid(stem))

    @staticmethod
    def _subagent(directory: str, session: str, name: str, run: str | None) -> Claim | None:
        if agent := _agent_file(name):
            return in_project(_agent_kind(agent[1]), directory, session, agent[1], run)
        if agent := _agent_meta(name):
            return in_project("agent_meta", directory, session, agent[1], run)
        if run is not None and name == "journal.jsonl":
            return in_project("workflow_journal", directory, session, None, run)
        return None

    def project_key(self, directory: str) -> str | None:
        """Names that differ in case only are one directory on Windows."""
        return None if stores.is_left_alone(directory) else comparable_name(directory)

    def shape(self, claim: Claim) -> str:
        """Transcripts and journals grow; sidecars and snapshots are rewritten as a whole."""
        if claim.kind in STORES:
            return STORES[claim.kind][0]
        return DOCUMENT if claim.kind in _DOCUMENTS else LOG

    def classify(self, claim: Claim, lines: Iterable[bytes]) -> Claim:
        """Check the first line of a transcript, or if its name is unusual, all lines as necessary.

        A JSON document on several lines is not a transcript, whatever its name is.
        """
        every = iter(lines)
        first = next(filter(bytes.strip, every), b"")
        if first.strip() in (b"{", b"[") and next(every, None) is not None:
            # Only with a second line: of a torn line, only the first byte may have been written.
            return claim.as_foreign(FOREIGN_DOCUMENT)
        if not claim.is_doubtful or self._believes(claim, chain([first], every)):
            return claim
        return claim.as_foreign()

    @staticmethod
    def _believes(claim: Claim, lines: Iterable[bytes]) -> bool:
        """Does one of the lines have a session and a known type?

        It can be any line: real transcripts begin with a hundred summaries, which name no session.
        A file that consists of summaries is a transcript, too.
        """
        if claim.kind == "history":
            return stores.believes(lines)
        has_summaries = False
        for data in lines:
            if b'"sessionId"' not in data and b'"leafUuid"' not in data:
                continue
            for piece in pieces(Line(0, data), _is_line_of_ours):
                if piece.object is not None and _is_line_of_ours(piece.object):
                    return True
                has_summaries |= piece.object is not None and is_known(piece.object)
        return has_summaries

    def complete_prefix(self, claim: Claim, tail: bytes) -> int:
        """Whole objects at the start of an unterminated tail can be read."""
        return complete_prefix(tail)

    def parse(self, claim: Claim, lines: Iterable[Line]) -> list[Record]:
        """Turn lines into records; a document is one line."""
        if claim.kind in STORES:
            return STORES[claim.kind][1](claim, lines)
        if claim.kind == "agent_meta":
            return _document(claim, lines, _agent_meta_records)
        if claim.kind == "workflow":
            return _document(claim, lines, _workflow_records)
        if claim.kind == "workflow_journal":
            return _journal(claim, lines)
        if claim.kind == FOREIGN:
            return _counted(claim, lines)
        if claim.kind == FOREIGN_DOCUMENT:
            return [_broken("not JSON lines", line) for line in lines]
        reader = TranscriptReader(claim)
        reader.read(lines)
        return reader.finish()


def _agent_kind(agent: str) -> str:
    return "side_agent" if agent.startswith(_SIDE_AGENTS) else "agent"


def _is_line_of_ours(line: JSONObject) -> bool:
    kind = string(line.get("type")) or role_of(line)
    return kind in TRANSCRIPT_TYPES and isinstance(line.get("sessionId"), str)


def _has_type(line: JSONObject) -> bool:
    return isinstance(line.get("type"), str)


def _document(
    claim: Claim, lines: Iterable[Line], read: Callable[[Claim, JSONObject], Iterable[Record]]
) -> list[Record]:
    """Read a document that is one JSON object; a broken one is one quarantined issue."""
    reader = Reader(claim)
    for value in reader.document(lines):
        reader.records.extend(read(claim, value))
    return reader.finish()


def _broken(reason: str, line: Line) -> Issue:
    return Issue(reason, 1, sample(line.data), line.start, len(line.data))


def _agent_meta_records(claim: Claim, value: JSONObject) -> Iterable[Record]:
    yield AgentMeta(
        string(value.get("agentType")),
        string(value.get("description")),
        string(value.get("name")),
        string(value.get("model")),
        integer(value.get("spawnDepth")),
        string(value.get("worktreePath")),
        1 if value.get("isFork") is True else 0,
    )
    call = string(value.get("toolUseId"))
    if call and claim.agent_key:
        yield AgentLink(claim.agent_key, call, BY_META, 0)


def _workflow_records(claim: Claim, value: JSONObject) -> Iterable[Record]:
    task = string(value.get("taskId"))
    if task:
        yield WorkflowLink(claim.workflow, task, None, 0)
    progress = value.get("workflowProgress")
    for item in progress if isinstance(progress, list) else ():
        entry = mapping(item)
        agent = string(entry.get("agentId"))
        if agent:
            label, phase, state = (string(entry.get(k)) for k in ("label", "phaseTitle", "state"))
            yield WorkflowAgent(agent, label, phase, state, 0)


def _journal(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read a workflow's journal, which lists the agents that it launched."""
    reader = Reader(claim)
    agents: dict[str, WorkflowAgent] = {}
    for value in reader.objects(lines, _has_type):
        agent = string(value.get("agentId"))
        if agent:
            state = "done" if value.get("type") == "result" else string(value.get("type"))
            agents[agent] = WorkflowAgent(agent, None, None, state, reader.start)
    reader.records.extend(agents.values())
    return reader.finish()


def _counted(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Count the lines of a file that another program left here."""
    reader = Reader(claim)
    for _ in reader.objects(lines, _has_type):
        pass
    return reader.finish()
