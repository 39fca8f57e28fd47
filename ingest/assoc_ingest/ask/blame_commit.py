"""Which conversations made a commit: by its hash, by its subject and time, by its files.

1. Everything that printed the hash is found by the full-text index: a hash, and each beginning of
   it, is a word. A command made it that can commit, and printed `[branch hash] subject`, or the
   hash with the subject that it gave.
2. Commands that gave a commit this subject are found by it. The time that git has must be that of
   the command; if the repository is not here, they only count as mentions.
3. If the repository is here, edits of its files in the week before.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .. import sql
from ..errors import UsageError
from ..records import OTHER, RUN
from ..when import milliseconds
from . import commit_text, terms
from .blame_file import Wanted, edits_of
from .commit_text import LEAST, fits
from .evidence import Evidence, line_of, strings_of, texts_of
from .expressions import SAID, TOOLS, in_scope
from .git_history import Commit, GitHistory
from .terms import Term

_RESULTS = 400  # that have the hash; each text is read
_SAID = 100
_CALLS = 200  # that have the subject
_SLACK = 120_000  # milliseconds between the time of a commit and that of its command
_BEFORE = 7 * 24 * 3600 * 1000
_LISTED = 10


@dataclass(slots=True)
class CommitEvidence:
    """What was found of a commit."""

    hash: str
    """As much of it as is known."""
    subject: str | None = None
    commit: Commit | None = None
    """As the repository has it, if it is here."""
    found: list[Evidence] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def evidence_of_commit(
    connection: sqlite3.Connection,
    wanted: str,
    history: GitHistory | None,
    project: str | None = None,
    *,
    with_files: bool = True,
) -> CommitEvidence:
    """Return what there is of a commit. `project` is a JSON array of ids.

    Raises UsageError where an abbreviated hash fits several commits.
    """
    commit = history.commit(wanted) if history is not None else None
    known = CommitEvidence(wanted)
    if commit is not None:
        known.hash, known.subject, known.commit = commit.hash, commit.subject, commit
    known.found += _printed(connection, known, project)
    known.found += _said(connection, known, project)
    made = {one.session for one in known.found if one.grade == "made"}
    if known.subject and (commit is not None or not made):
        by_subject = _by_subject(connection, known, project)
        known.found += [one for one in by_subject if one.session not in made]
    if with_files and commit is not None and history is not None:
        known.found += _edits(connection, commit, history, project)
    return known


# -- by the hash -----------------------------------------------------------------------------------


def _words(wanted: str) -> str:
    """Return an expression for FTS5 that finds a hash, longer ones, and its abbreviations."""
    shorter = [Term(wanted[:length]) for length in range(LEAST, len(wanted))]
    return " OR ".join(term.expression() for term in [Term(wanted, is_prefix=True), *shorter])


def _printed(
    connection: sqlite3.Connection, known: CommitEvidence, project: str | None
) -> Iterator[Evidence]:
    """Yield the results that printed the hash; complete what is known of the commit."""
    match = in_scope(TOOLS, _words(known.hash))
    rows = sql.ask(
        connection, "pages/blame_results", match=match, project=project, limit=_RESULTS + 1
    ).fetchall()
    if len(rows) > _RESULTS:
        known.notes.append(f"Only the first {_RESULTS} outputs with this hash were looked at.")
    rows = rows[:_RESULTS]
    texts = texts_of(connection, [row["result_id"] for row in rows])
    calls = texts_of(connection, [row["call_id"] for row in rows if row["action"] in _CAN_COMMIT])
    hashes: dict[str, str] = {}
    for row in rows:
        text = texts.get(row["result_id"], "")
        command = calls.get(row["call_id"], "")
        for made in commit_text.made_in(command, text):
            if fits(made.hash, known.hash):
                hashes[made.hash] = made.subject
                known.subject = known.subject or made.subject
                yield _of_row(row, "made", made.line)
        for printed, line in commit_text.hashes_in(text, known.hash):
            subject = commit_text.subject_behind(line, printed)
            hashes[printed] = hashes.get(printed) or subject or ""
            known.subject = known.subject or subject
            is_own = subject is not None and commit_text.states(strings_of(command), subject)
            yield _of_row(row, "made" if is_own else "printed", line)
    _check_one(known, hashes)


_CAN_COMMIT = (RUN, OTHER)


def _check_one(known: CommitEvidence, hashes: dict[str, str]) -> None:
    """Raise if the hashes that were found are of several commits; else keep the longest."""
    longest = [
        one for one in hashes if not any(other != one and other.startswith(one) for other in hashes)
    ]
    if known.commit is None and len(longest) > 1:
        listed = "".join(f"\n  {one}  {hashes[one]}".rstrip() for one in sorted(longest)[:_LISTED])
        raise UsageError(
            f"{known.hash!r} is the beginning of {len(longest)} hashes; give more of it:{listed}"
        )
    if longest and len(longest[0]) > len(known.hash):
        known.hash = longest[0]


def _said(
    connection: sqlite3.Connection, known: CommitEvidence, project: str | None
) -> Iterator[Evidence]:
    match = in_scope(SAID, _words(known.hash))
    rows = sql.ask(
        connection, "pages/blame_said", match=match, project=project, limit=_SAID
    ).fetchall()
    texts = texts_of(connection, [row["id"] for row in rows])
    for row in rows:
        for _, line in commit_text.hashes_in(texts[row["id"]], known.hash)[:1]:
            yield _of_row(row, "mentioned", line)


# -- by the subject --------------------------------------------------------------------------------


def _by_subject(
    connection: sqlite3.Connection, known: CommitEvidence, project: str | None
) -> list[Evidence]:
    """Return the commands that made a commit with this subject, at the time that git has.

    Without the repository nobody knows the time: several commits may have one subject, so that a
    command gave it is no more than a mention.
    """
    found = _with_subject(connection, known.subject or "", project)
    if known.commit is not None:
        return [one[0] for one in found if _is_at(one, known.commit)]
    return [
        replace(one, grade="mentioned", text=f"a commit with this subject: {one.text}")
        for one, *_ in found
    ]


_Run = tuple[Evidence, str | None, str | None]
"""Evidence, and when the command began and ended."""


def _with_subject(connection: sqlite3.Connection, subject: str, project: str | None) -> list[_Run]:
    tokens = terms.TOKEN.findall(subject)
    if not tokens:
        return []
    match = in_scope(TOOLS, Term(" ".join(tokens)).expression_at_line_starts())
    actions = '["run", "other"]'
    rows = sql.ask(
        connection, "pages/blame_calls",
        match=match, actions=actions, project=project, limit=_CALLS,
    ).fetchall()  # fmt: skip
    texts = texts_of(connection, [row["call_id"] for row in rows])
    found: list[_Run] = []
    for row in rows:
        if commit_text.states(strings_of(texts.get(row["call_id"], "")), subject):
            evidence = _of_row(row, "committed", subject)
            found.append((evidence, row["timestamp"], row["ended_at"]))
    rows = sql.ask(
        connection, "pages/blame_results", match=match, project=project, limit=_CALLS
    ).fetchall()
    rows = [row for row in rows if row["action"] in _CAN_COMMIT]
    texts = texts_of(connection, [row[name] for row in rows for name in ("call_id", "result_id")])
    for row in rows:
        command, output = (texts.get(row[name], "") for name in ("call_id", "result_id"))
        for made in commit_text.made_in(command, output):
            if made.subject == subject:
                evidence = _of_row(row, "committed", made.line)
                found.append((evidence, row["started_at"], row["timestamp"]))
    return found


def _is_at(run: _Run, commit: Commit) -> bool:
    """Was a commit made while a command ran? Clocks have seconds, and hooks take a while."""
    _, started, ended = run
    if started is None:
        return False
    first = milliseconds(started) - _SLACK
    last = milliseconds(ended or started) + _SLACK
    times = (milliseconds(commit.authored_at), milliseconds(commit.committed_at))
    return any(first <= time <= last for time in times)


# -- by the files ----------------------------------------------------------------------------------


def _edits(
    connection: sqlite3.Connection, commit: Commit, history: GitHistory, project: str | None
) -> Iterator[Evidence]:
    """Yield the edits of the commit's files in the week before it."""
    top = history.top()
    if top is None:
        return
    last = milliseconds(commit.committed_at) + _SLACK
    first = milliseconds(commit.authored_at) - _BEFORE
    for path in history.files(commit.hash):
        for edit in edits_of(connection, Wanted.at(connection, f"{top}/{path}"), project):
            if edit.time is not None and first <= milliseconds(edit.time) <= last:
                yield edit


def _of_row(row: sqlite3.Row, grade: str, text: str) -> Evidence:
    tool = row["tool"] if "tool" in row.keys() else None  # noqa: SIM118
    return Evidence(
        grade, row["session_id"], row["subagent_id"], row["file_id"], row["byte_offset"],
        row["timestamp"], line_of(text), tool,
    )  # fmt: skip
