"""What an agent is told without asking, when it runs one of its hooks.

An agent runs a hook at a moment of its work, writes what happens as JSON to its standard input, and
shows its model what the hook answers. Which moments take an answer, and how, is up to the agent:

- Claude Code 2.1 (https://code.claude.com/docs/en/hooks, and `claude plugin validate`) and Codex
  0.130 (https://developers.openai.com/codex/hooks, codex-rs/hooks): `hook_event_name`,
  `session_id`, `cwd`; SessionStart, whose `source` is `compact` after a compaction,
  UserPromptSubmit and PreToolUse take `hookSpecificOutput.additionalContext`. PreCompact takes no
  context: what Claude Code reads there are instructions for the summary.
- Gemini CLI 0.61 (docs/hooks/reference.md of its repository): the same fields; SessionStart and
  BeforeAgent take the same answer. BeforeTool and PreCompress take none, and none but JSON may be
  printed.
- Copilot CLI 1.0 (https://docs.github.com/en/copilot/reference/hooks-reference): `sessionId`, no
  name of the event; sessionStart takes `additionalContext`. What userPromptSubmitted prints is
  dropped, and preToolUse only decides.

An answer is short, quotes what was stored, says where it is from (`KEY:LINE`), and is empty if
there is nothing to say. Only a few of the modules that other answers need are imported: an agent
waits for each of its hooks.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import posixpath
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING

from .. import sql
from ..ask.notes import Note, notes
from ..ask.refs import Names, short_key
from ..ask.since import changed_since
from ..fields import from_milliseconds, milliseconds
from ..paths import comparable, is_file, is_there, is_windows, slashed
from ..questions.fit import NOTICE, heading, is_plain, quoted
from ..secrets.mask import redact
from ..terminal import ELLIPSIS, one_line

if TYPE_CHECKING:
    from ..ask.hits import Hit
    from ..ask.search import Ranking
    from ..ask.shell import Invocation

MOST = 1_500
"""Characters of an answer."""

SECONDS = 1.0
"""How long an answer may take; what takes longer is not given."""

MOST_INPUT = 16 * 1024 * 1024
"""Bytes of what an agent writes; it may hold a whole file that is to be written."""

_LONGEST = 4_096  # letters of a path or a command; what takes each apart takes the square of them
_MOST_TYPED = 20_000  # letters of a prompt
_CHUNK = 65_536
_BRANCH = "ref: refs/heads/"
_ANSWERED = frozenset({"SessionStart", "UserPromptSubmit", "BeforeAgent", "PreToolUse"})
_BEFORE_COMPACTION = frozenset({"PreCompact", "PreCompress", "SessionEnd"})
_MASKED = 4_000  # letters of a text that are masked; no more of it is shown
_patched = re.compile(r"\*\*\* Begin Patch\n\*\*\* \w+ File: (.+)").match
"""The first file of a patch that is given to a command which applies it."""
_answers = re.compile(r'"([^"]{1,500})"="([^"]{1,500})"').findall
"""Questions and answers, as Claude Code tells its model."""
_APPROVED = "\n## Approved Plan:\n"
_STEPS = 10_000  # of SQLite, between two looks at the clock


# ------------------------------------------------------------------------------------------------
# What an agent writes, and what it reads.


@dataclass(frozen=True, slots=True)
class Event:
    """What an agent says of the moment."""

    name: str
    """What the agent calls the moment; empty if it does not say."""
    session: str
    cwd: str
    source: str
    """Why a conversation begins: startup, resume, clear or compact."""
    command: str
    """What is about to be run; empty if that is no command."""
    path: str
    """The file that is about to be edited; empty if it is none."""
    prompt: str
    """What was typed."""
    transcript: str
    """The file that holds the conversation."""

    @property
    def is_answered(self) -> bool:
        """Does the agent show its model an answer to this?"""
        return not self.name or self.name in _ANSWERED

    @property
    def is_end(self) -> bool:
        """Is something about to end that later answers are about?"""
        return self.name in _BEFORE_COMPACTION


def read_input(descriptor: int = 0) -> bytes:
    """Return what an agent writes; what is too long is read, but nothing of it is returned."""
    parts, size = [], 0
    while (part := os.read(descriptor, _CHUNK)) and size <= 4 * MOST_INPUT:
        size += len(part)
        parts.append(part)
        if size > MOST_INPUT:
            parts.clear()
    return b"".join(parts)


def event_of(data: bytes) -> Event | None:
    """Return what an agent wrote, None if it is no such object."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None

    def text(of: dict[str, object], *names: str) -> str:
        given = next((one for name in names if isinstance(one := of.get(name), str)), "")
        return given.encode("utf-8", "replace").decode()  # no half of a surrogate pair

    given = value.get("tool_input")
    about = given if isinstance(given, dict) else {}
    command = text(about, "command")
    patched = _patched(command)
    path = patched[1] if patched else text(about, "file_path", "notebook_path", "path")
    return Event(
        name=text(value, "hook_event_name"),
        session=text(value, "session_id", "sessionId"),
        cwd=_short(text(value, "cwd")),
        source=text(value, "source"),
        command="" if patched else _short(command),
        path=_short(path),
        prompt=text(value, "prompt")[:_MOST_TYPED],
        transcript=_short(text(value, "transcript_path")),
    )


def _short(text: str) -> str:
    """Return a path or a command, empty if it is longer than one that was given before can be."""
    return text if len(text) <= _LONGEST else ""


def printed(event: Event, text: str) -> str:
    """Return an answer in the form that the agent takes."""
    if not event.name:
        return json.dumps({"additionalContext": text})
    answer = {"hookEventName": event.name, "additionalContext": text}
    return json.dumps({"hookSpecificOutput": answer})


# ------------------------------------------------------------------------------------------------
# The answers.


_LISTED = 20  # rows that are looked at
_CONVERSATIONS = 3
_OPEN = 5
_DECISIONS = 3
_WEEK = 7 * 24 * 3600 * 1000  # milliseconds
_CALLS = 60  # commands and files
_EDITS = 3  # conversations
_SAID, _HITS = 2, 2  # conversations, and places in each
_RAREST = 6  # words of a prompt that are looked for
_CHANCE = 1.15
"""How rare the words of a message have to be together: at 1, chance would bring them into one of
all messages. Of 73 questions about a home of published transcripts, 23 are answered, 22 of them
rightly; asked in other projects, 1.3 in a hundred are."""
_FAILURES = 40  # commands that are compared
_RUNS = 200
_LEAST_RUNS = 2  # of a form in which a command works here


def recall(connection: sqlite3.Connection, hook: str, event: Event) -> str:
    """Return what to tell an agent at a moment, empty if nothing.

    Raises sqlite3.OperationalError if that takes too long.
    """
    end = time.monotonic() + SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    memory = _Memory(connection, event)
    if hook == "prompt":
        return memory.of_prompt()
    if hook == "tool":
        return memory.of_file() if event.path else memory.of_command()
    if hook == "compact" or event.source == "compact":
        return memory.of_conversation()
    return memory.of_project()


class _Memory:
    """What is remembered that matters to one moment."""

    def __init__(self, connection: sqlite3.Connection, event: Event) -> None:
        self._connection, self._event = connection, event
        self._names = Names(connection)
        self._projects = self._ask(
            "pages/recall_projects", directory=comparable(event.cwd)
        ).fetchall()
        """Those of the directory that the agent is in, the nearest first."""
        self._ids = json.dumps([row["id"] for row in self._projects])

    def of_project(self) -> str:
        """Return what was done last in the project, how it ended, what was noted, what was decided
        in the week before that, and what is left open."""
        if not self._projects:
            return ""
        rows = self._last()
        first, *others = [self._conversation(row) for row in rows[:_CONVERSATIONS]] or [""]
        end = max((row["ended_at"] or "" for row in rows), default="")
        return _told(
            "What was done in this project before, the newest first.",
            filter(
                None,
                (
                    first,
                    *self._notes(),
                    *self._decisions(end),
                    *islice(self._open(), _OPEN),
                    *others,
                ),
            ),
        )

    def of_prompt(self) -> str:
        """Return the conversations of the project that speak of what was typed.

        A whole search takes several times as long as an agent should wait. What is looked for
        instead is more than strong evidence: messages that hold rare words of the prompt together.
        """
        from ..ask.search import find

        match = _together(self._connection, self._event.prompt)
        if not match or not self._projects:
            return ""
        ids = {row["id"] for row in self._projects}
        found = find(self._connection, match, only_said=True, raw=True, clean=masked)
        groups = [
            group
            for group in found.groups
            if group.session_key not in (None, self._event.session)
            and group.best.candidate.row["project_id"] in ids
        ]
        groups = groups[:_LISTED]
        keys = json.dumps([group.session_key for group in groups])
        linked = {row["session_key"] for row in self._ask("pages/recall_linked", keys=keys)}
        new = (
            group
            for group in groups
            if group.session_key not in linked and not self._holds(self._key(group.session_key))
        )
        chosen = replace(found, groups=[*islice(new, _SAID)], hits=[])
        return _told("What was said about this before.", map(self._said, self._read(chosen)))

    def of_file(self) -> str:
        """Return who edited a file last, and what they said before."""
        path = self._event.path
        path = slashed(path if is_windows(path) else posixpath.join(self._event.cwd, path))
        roots = [f"{slashed(row['path'])}/" for row in self._projects if row["path"]]
        inner = next((path.removeprefix(root) for root in roots if path.startswith(root)), None)
        if inner is None:
            return ""
        paths = [root + inner for root in roots]
        rows = self._ask(
            "pages/recall_edits", in_projects=self._ids, session=self._event.session,
            paths=json.dumps(paths), limit=_EDITS,
        )  # fmt: skip
        noted = [self._noted(one) for one in notes(self._connection, paths=paths)]
        about = "This file was edited in these conversations before."
        if noted:
            about = "What the user noted on this file, and who edited it before."
        return self._once(about, (*noted, *map(self._edited, rows)))

    def of_command(self) -> str:
        """Return how a command failed last, what ended that, and how it is run here."""
        from ..ask.shell import is_same, only_reads, parsed

        checks = () if only_reads(self._event.command) else parsed(self._event.command).checks
        if not checks:
            return ""
        rows = self._ask(
            "pages/recall_failures", in_projects=self._ids, session=self._event.session,
            words=checks[0].words[0], limit=_FAILURES,
        )  # fmt: skip
        same = (row for row in rows if is_same(self._event.command, row["target"]))
        if (last := next(same, None)) is None:
            return ""
        parts = (self._failure(last), self._form(checks[0]))
        return self._once("This command failed in this project before.", filter(None, parts))

    def of_conversation(self) -> str:
        """Return which files the conversation changed and what it ran: a summary loses that."""
        from ..ask.shell import only_reads

        session = self._session()
        if session is None:
            return ""
        calls = self._ask("pages/recall_calls", session=session["id"], limit=_CALLS).fetchall()
        edits = (self._edit(row) for row in calls if row["action"] == "edit")
        runs = (row for row in calls if row["action"] == "run" and not only_reads(row["target"]))
        return _told(
            "What this conversation did before its compaction: files, then commands, the newest "
            "first.",
            (*_fitting(edits, MOST // 2), *map(self._run, runs)),
        )

    def _ask(self, query: str, **parameters: object) -> sqlite3.Cursor:
        return sql.ask(self._connection, query, **parameters)

    def _key(self, key: str | None) -> str:
        return short_key(self._connection, key) if key else ""

    def _read(self, found: Ranking) -> Iterator[Sequence[Hit]]:
        """Yield the best hits of each conversation, with their references."""
        from ..ask.search import with_lines

        for group in found.read(_SAID, _HITS, with_resume=False).groups:
            yield with_lines(self._connection, group.hits)

    def _said(self, hits: Sequence[Hit]) -> str:
        from ..ask.matches import plain

        best = hits[0]
        lines = [heading(self._key(best.session_key), (best.time or "")[:16], best.branch)]
        lines.append(self._quoted(best.title, 120))
        for hit in hits:
            if hit.what != "session" and hit.ref and is_plain(hit.ref):
                lines += [hit.ref, self._quoted(plain(hit.snippet)[0], 260)]
        return "\n".join(filter(None, lines))

    def _once(self, about: str, parts: Iterable[str]) -> str:
        """Return an answer that the conversation was not given before."""
        text = _told(about, parts)
        first = text.split("\n")[1] if text else ""
        return text if first and not self._holds(first) else ""

    def _holds(self, line: str) -> bool:
        """Does the transcript hold a line of an answer? It does if nobody can tell."""
        place = self._event.transcript
        if not is_file(place):  # it is written with the first answer of the model
            return not place or is_there(place)
        with Path(place).open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return data.rfind(line.encode()) >= 0

    def _edited(self, row: sqlite3.Row) -> str:
        times = f", {row['times']} times" if row["times"] > 1 else ""
        place = self._place(row, f"edited it {(row['started_at'] or '')[:16]}{times}".strip())
        texts = (self._quoted(row["title"], 120), self._quoted(row["said"], 260))
        return "\n".join(filter(None, (place, *texts)))

    def _failure(self, row: sqlite3.Row) -> str:
        from ..ask.fix import ending_of

        found = ending_of(self._connection, row, masked)
        if found is None:
            return ""
        what, error, end = found
        lines = [self._place(row, f"failed{_exit(row)} {(row['timestamp'] or '')[:16]}".strip())]
        lines += [self._quoted(row["target"], 160), self._quoted(error.line, 260)]
        is_guess = " perhaps" * bool(error.why)
        lines += [self._place(end, f"ended it{is_guess}"), self._quoted(what, 160)]
        return "\n".join(filter(None, lines))

    def _form(self, asked: Invocation) -> str:
        """Return the form in which a command worked most often, empty if it worked as it is."""
        from ..ask.shell import form, parsed, written

        rows = self._ask(
            "pages/recall_runs", in_projects=self._ids, words=asked.program, limit=_RUNS
        )
        forms: dict[frozenset[str], list[tuple[sqlite3.Row, Invocation]]] = {}
        for row in rows:
            for one, has_worked in parsed(row["target"]).outcomes(is_ok=True):
                if has_worked and (one.program, one.chain) == (asked.program, asked.chain):
                    forms.setdefault(frozenset(form(one)), []).append((row, one))
        if not forms or frozenset(form(asked)) in forms:
            return ""
        runs = max(forms.values(), key=len)
        if len(runs) < _LEAST_RUNS:
            return ""
        row, one = runs[0]
        place = self._place(row, f"worked in this form, {len(runs)} times")
        return f"{place}\n{self._quoted(written(one), 160)}"

    def _session(self) -> sqlite3.Row | None:
        """Return the conversation in which the hook runs, if it was read already."""
        rows = self._ask("pages/session", session_key=self._event.session)
        return rows.fetchone()  # type: ignore[no-any-return]

    def _last(self) -> list[sqlite3.Row]:
        """Return the last conversations, those on the branch that is checked out first.

        One that is resumed knows what was done before it ended.
        """
        own = self._session() if self._event.source == "resume" else None
        rows = self._ask(
            "lists/sessions", project=self._ids, since=own and own["ended_at"], limit=_LISTED
        )
        others = [row for row in rows if row["session_key"] != self._event.session]
        if branch := branch_at(self._event.cwd):
            others.sort(key=lambda row: row["git_branch"] != branch)
        return others

    def _conversation(self, row: sqlite3.Row) -> str:
        ids = json.dumps([row["id"]])
        end = self._ask("pages/session_ends", sessions=ids).fetchone()
        state = "finished" if end is None else end["state"]
        key, time = short_key(self._connection, row["session_key"]), (row["ended_at"] or "")[:16]
        lines = [heading(key, time, row["git_branch"], *state.split())]
        lines.append(self._quoted(row["title"], 120))
        last = self._ask("pages/last_answers", sessions=ids).fetchone()
        if last is not None and last["text"] is not None:
            lines += [self._place(last, "last answer"), self._quoted(last["text"], 260)]
        if (failed := self._ask("pages/last_commands", sessions=ids).fetchone()) is not None:
            how = f"last command failed{_exit(failed)}"
            lines += [self._place(failed, how), self._quoted(failed["target"], 160)]
        if (since := changed_since(self._connection, row)) is not None:
            lines.append(since.said())
        return "\n".join(filter(None, lines))

    def _notes(self) -> Iterator[str]:
        """Yield what the user noted in the project: decisions, and what has a star."""
        for row in self._ask("lists/notes", project=self._ids, limit=_LISTED):
            if row["verdict"] or row["is_starred"]:
                yield from map(self._noted, notes(self._connection, id=row["id"]))

    def _noted(self, note: Note) -> str:
        place = heading(note.ref, "note", note.verdict, "starred" if note.is_starred else "")
        return "\n".join(filter(None, (place, self._quoted(note.text or note.title, 260))))

    def _decisions(self, end: str) -> Iterator[str]:
        """Yield what a person answered or approved in the week before a time."""
        if not end:
            return
        since = from_milliseconds(milliseconds(end) - _WEEK)
        rows = self._ask(
            "pages/recall_decisions", in_projects=self._ids, session=self._event.session,
            since=since, limit=_DECISIONS,
        )  # fmt: skip
        for row in rows:
            answers = _answers(row["answered"])
            plan = "" if answers else _plan(row["asked"], row["answered"])
            text = " · ".join(f"{asked} {given}" for asked, given in answers) or plan
            if text:
                place = self._place(
                    row, "the user approved this plan" if plan else "the user answered"
                )
                yield f"{place}\n{self._quoted(text, 260)}"

    def _open(self) -> Iterator[str]:
        """Yield what is left open, except for conversations: those say how they ended."""
        for row in self._ask("lists/open", project=self._ids, limit=_LISTED):
            if row["what"] != "session":
                key = row["session_key"] and short_key(self._connection, row["session_key"])
                yield f"{heading(key, 'open', row['what'], row['status'])}\n" + self._quoted(
                    row["text"], 100
                )

    def _edit(self, row: sqlite3.Row) -> str:
        path = row["target"].removeprefix(self._event.cwd.rstrip("/") + "/")
        place = self._place(row, f"edited {row['times']} times" if row["times"] > 1 else "edited")
        return f"{place}\n{self._quoted(path, 120)}"

    def _run(self, row: sqlite3.Row) -> str:
        how = {"ok": "succeeded", "error": f"failed{_exit(row)}"}.get(row["status"], "unanswered")
        return f"{self._place(row, how)}\n{self._quoted(row['target'], 120)}"

    def _place(self, row: sqlite3.Row, words: str) -> str:
        """Return the reference of a line, and words of ours."""
        reference = self._names.of(row["file_id"], row["byte_offset"]) or ""
        return f"{reference} {words}" if is_plain(reference) else words

    def _quoted(self, text: str | None, most: int) -> str:
        """Return the beginning of a stored text as one quoted line."""
        # Masked before it is cut: a part of a credential looks like none.
        line = one_line(masked((text or "")[:_MASKED]))
        return quoted(line if len(line) <= most else line[: most - 1] + ELLIPSIS) if line else ""


def _together(connection: sqlite3.Connection, prompt: str) -> str:
    """Return what finds messages with rare words of a prompt, empty if it has not so many.

    Two or three words have to be so rare that chance would hardly bring them into one message of
    all that there are.
    """
    from ..ask.candidates import vocabulary
    from ..ask.query import parse
    from ..ask.search import words_of

    words: dict[str, float] = {}
    with vocabulary(connection) as known:
        (texts,) = connection.execute("select coalesce(max(id), 0) from messages").fetchone()
        nowhere = math.log(texts + 1)
        for word in words_of(parse(f"-- {prompt}").content):
            if (rarity := known.rarity(word.forms)) < nowhere:
                words[word.forms[0].expression()] = rarity
    rarest = sorted(words, key=lambda word: -words[word])[:_RAREST]
    chosen: list[set[str]] = []
    for count in (2, 3):
        for some in map(set, combinations(rarest, count)):
            is_enough = sum(words[word] for word in some) >= _CHANCE * nowhere
            if is_enough and not any(fewer <= some for fewer in chosen):
                chosen.append(some)
    return " OR ".join(f"({' AND '.join(sorted(some))})" for some in chosen)


def _plan(asked: str, answered: str) -> str:
    """Return the heading of a plan that was approved, empty if there is none."""
    text = answered.partition(_APPROVED)[2]
    if not text:
        try:
            plan = json.loads(asked).get("plan")
        except (ValueError, AttributeError, RecursionError):  # it was cut, or is something else
            plan = None
        text = plan if isinstance(plan, str) else ""
    return text.strip().partition("\n")[0].lstrip("# ")


def masked(text: str) -> str:
    """Return a text without credentials."""
    return redact(text)[0]


def _exit(row: sqlite3.Row) -> str:
    return "" if row["exit_code"] is None else f" (exit {row['exit_code']})"


def _told(about: str, parts: Iterable[str]) -> str:
    """Return the parts that fit into an answer, behind what they are; empty if there is none."""
    head = f"{about} {NOTICE} To open a reference: assoc-ingest show KEY:LINE"
    fitting = _fitting(parts, MOST - len(head))
    return "\n".join((head, *fitting)) if fitting else ""


def _fitting(parts: Iterable[str], room: int) -> list[str]:
    """Return the parts that fit, each with a line break before it."""
    fitting = []
    for part in parts:
        if len(part) < room:
            fitting.append(part)
            room -= len(part) + 1
    return fitting


def branch_at(directory: str) -> str | None:
    """Return the branch that is checked out in a directory, as the files of its repository say.

    Git is not started: that takes longer than the rest.
    """
    place = Path(directory)
    for above in (place, *place.parents):
        repository = above / ".git"
        if is_file(repository):  # of a worktree
            named = repository.read_text("utf-8", "replace").removeprefix("gitdir:").strip()
            repository = above / named
        if is_file(repository / "HEAD"):
            head = (repository / "HEAD").read_text("utf-8", "replace").strip()
            return head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else None
    return None
