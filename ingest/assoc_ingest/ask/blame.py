"""`blame`: which conversations made a file, a line, a commit or a pull request.

What is asked for is told apart by what it is: a file on this disk is a file; an address, `#12`,
`PR 12` or a short number is a pull request; seven or more hexadecimal digits are a commit; anything
else is a file, or what git calls a commit. Ambiguous names are errors that list what is possible.

- A commit: everything that has its hash is found by the full-text index, where a hash and each
  beginning of it is a word. A command made it that can commit, and printed `[branch hash] subject`,
  or the hash with the subject that it gave. Commands that gave a commit this subject count if git
  says that it was made then, else as mentions. A commit that was rebased, picked or given another
  message has the changes and the time of the one that it repeats: who made that one counts. If the
  repository is here, edits of its files in the week before count, too.
- A file: the index finds the calls that were given its name, and the path that a call was applied
  to says whether it is this file. A file has several paths: in worktrees and clones of its
  repository, and relative to the directory in which an agent worked.
- A pull request belongs to a repository, which has an address for people and one for programs.

A grade of evidence says what was seen, not how likely something is. The strongest one of a
conversation decides where it stands; within a grade the newest conversation comes first.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from .. import sql
from ..edits import line_hash, telling
from ..errors import NotFoundError, UsageError
from ..fields import bindable, from_milliseconds, milliseconds
from ..paths import comparable, in_repository, is_directory, is_there, is_windows, slashed
from ..records import EDIT, OTHER, READ, RUN
from ..terminal import one_line
from . import query
from .conversation import shortly
from .git_history import Commit, GitHistory, Merge, history_at
from .query import SAID, TOOLS, Term, in_scope
from .refs import texts_of

GRADES = (
    *("made", "committed", "linked", "wrote", "branch", "partly", "replayed", "edited"),
    *("read", "mentioned", "printed"),  # from which nothing follows
)
"""The grades of evidence, the strongest first."""

_MAKING = GRADES[:2]
_SHOWING = GRADES[8:]
_ORDER = {grade: number for number, grade in enumerate(GRADES)}
_LONGEST_SHOWN = 240  # letters of a text that is shown
_SHORTEST = 6  # letters of a word that could tell something


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something that was seen in one place."""

    grade: str
    session: int
    subagent: int | None
    file: int
    byte: int
    time: str | None
    text: str
    """What was seen there, shortly."""
    tool: str | None = None
    rank: int = 0
    """Among those of its grade, the smallest first."""
    lines: int = 0
    """The lines that its conversation wrote, if they were counted; 0: they were not."""
    of_lines: int = 0
    """All lines of which these are some."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with its evidence, the strongest first."""

    session: sqlite3.Row
    evidence: list[Evidence]


def line_of(text: str, at: int = 0) -> str:
    """Return the line of a text around a place, of bounded length."""
    start = max(text.rfind("\n", max(0, at - _LONGEST_SHOWN), at) + 1, at - _LONGEST_SHOWN, 0)
    end = text.find("\n", at, at + _LONGEST_SHOWN)
    return one_line(text[start : end if end >= 0 else at + _LONGEST_SHOWN])


def strings_of(text: str) -> str:
    """Return the texts in the input of a call, below each other."""
    try:
        value = json.loads(text)
    except ValueError:  # it was cut
        return text.replace("\\n", "\n").replace('\\"', '"')
    return "\n".join(_strings(value))


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _strings(item)]


def _by_conversation(
    connection: sqlite3.Connection, evidence: Iterable[Evidence]
) -> list[Conversation]:
    found: dict[tuple[int, int], Evidence] = {}
    for one in evidence:  # of one line, the strongest
        place = (one.file, one.byte)
        if place not in found or _strength(one) < _strength(found[place]):
            found[place] = one
    ids = json.dumps(sorted({one.session for one in found.values()}))
    rows = sql.ask(connection, "pages/blame_conversations", ids=ids).fetchall()
    keys = {row["id"]: row["session_key"] for row in rows}
    first = {row["session_key"]: row for row in reversed(rows)}
    groups: dict[str, list[Evidence]] = {}
    for one in found.values():
        if one.session in keys:  # what is not seen is not shown
            groups.setdefault(keys[one.session], []).append(one)
    sessions = []
    for key, listed in groups.items():
        listed.sort(key=lambda one: one.time or "", reverse=True)
        listed.sort(key=_strength)
        sessions.append(Conversation(first[key], listed))
    sessions.sort(key=lambda session: session.evidence[0].time or "", reverse=True)
    sessions.sort(key=lambda session: _strength(session.evidence[0]))
    return sessions


def excerpt(text: str, whole: str, mask: Callable[[str], str]) -> str:
    """Return an excerpt, of bounded length, without what is masked in the whole text.

    What has to be masked may be cut in the excerpt, and not be recognised there any more: in a
    text that holds such a thing, only the words are kept that are left in it.
    """
    masked, text = mask(whole), mask(text)
    if masked != whole:
        text = " ".join(
            word if len(word) < _SHORTEST or word.rstrip("…") in masked else "…"
            for word in text.split(" ")
        )
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _strength(one: Evidence) -> tuple[int, int]:
    return _ORDER[one.grade], one.rank


# -- text of commits -------------------------------------------------------------------------------

LEAST, MOST = 7, 64
"""Letters of a hash: git abbreviates to seven at least."""

_hash = re.compile(r"(?<![0-9a-z])[0-9a-f]{7,64}(?![0-9a-z])").match
_made = re.compile(r"^\[([^\]\n]{1,250}) ([0-9a-f]{7,64})\] (.*)$", re.MULTILINE).finditer
_making = re.compile(r"\b(?:commit|cherry-pick|revert|merge|rebase|am)\b").search
_replaying = re.compile(r"\b(?:rebase|cherry-pick)\b").search
_escape = re.compile(r"\\([\"'`$\\])")
_QUOTES = "\"'"
_BREAKS = "\r\n"
_OPTIONS = ("-m ", "--message=", "--message ", "-t ", "--title=", "--title ")


@dataclass(frozen=True, slots=True)
class MadeCommit:
    """A commit as git says that it has made it: `[main 1a2b3c4] Subject`."""

    branch: str
    hash: str
    subject: str
    line: str
    is_replayed: bool = False
    """It repeats another commit: a rebase printed it, or a cherry-pick."""


def is_hash(text: str) -> bool:
    """Can this be the hash of a commit, or the beginning of one?"""
    return LEAST <= len(text) <= MOST and all(letter in "0123456789abcdef" for letter in text)


def made_in(command: str, output: str) -> list[MadeCommit]:
    """Return the commits that a command made.

    Git prints such a line when it commits; so does what prints an old log, so the command has to
    be one that can make a commit.
    """
    if _making(command) is None:
        return []
    text = strings_of(command)
    return [
        MadeCommit(
            found[1].split(" ")[0],
            found[2],
            found[3].strip(),
            one_line(found[0]),
            _is_replayed(text, found[1], found[3].strip()),
        )
        for found in _made(output)
    ]


def commits_of(
    connection: sqlite3.Connection, commands: Sequence[sqlite3.Row]
) -> Iterator[tuple[sqlite3.Row, MadeCommit]]:
    """Yield the commits that commands made, each once, with the command that made it first.

    The commands, in the order of their time, are rows such as those of `blame_commits`.
    """
    ids = [row[name] for row in commands for name in ("call_id", "result_id")]
    texts, hashes = texts_of(connection, ids), set()
    for row in commands:
        for made in made_in(texts.get(row["call_id"], ""), texts.get(row["result_id"], "")):
            if not made.is_replayed and made.hash not in hashes:
                hashes.add(made.hash)
                yield row, made


def _is_replayed(command: str, branch: str, subject: str) -> bool:
    """Was a commit made from another one? In a rebase, git commits on `detached HEAD`."""
    if states(command, subject):
        return False
    is_detached = branch.startswith("detached HEAD")
    found = _replaying(command)
    return found is not None and (is_detached or found[0] == "cherry-pick")


def fits(printed: str, wanted: str) -> bool:
    """Can two hashes, each perhaps abbreviated, be of one commit?"""
    return printed.startswith(wanted) or wanted.startswith(printed)


def hashes_in(text: str, wanted: str) -> list[tuple[str, str]]:
    """Return each hash in a text that fits the wanted one, with the line around it."""
    start = wanted[:LEAST]
    found = []
    at = text.find(start)
    while at >= 0:
        match = _hash(text, at)
        if match is not None and fits(match[0], wanted):
            found.append((match[0], line_of(text, at)))
        at = text.find(start, at + len(start))
    return found


def subject_behind(line: str, printed: str) -> str | None:
    """Return what a line of a list of commits says behind the hash, None if it says nothing."""
    rest = line.partition(printed)[2]
    if rest[:1] != " ":
        return None
    rest = rest.strip()
    if rest.startswith("(") and ") " in rest:  # the branches and tags of the commit
        rest = rest.partition(") ")[2]
    return rest or None


def states(command: str, subject: str) -> bool:
    """Does a command give a commit this subject, as an option or as a line of its own?"""
    return bool(subject) and _making(command) is not None and _gives(command, subject)


def _gives(command: str, subject: str) -> bool:
    text = _escape.sub(r"\1", command)
    wanted = _escape.sub(r"\1", subject)
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        before, after = text[at - 1 : at], text[end : end + 1]
        is_begun = at == 0 or before in _QUOTES + _BREAKS or text.endswith(_OPTIONS, 0, at)
        if is_begun and (not after or after in _QUOTES + _BREAKS):
            return True
        at = text.find(wanted, end)
    return False


# -- files -----------------------------------------------------------------------------------------

_FILE_CALLS = 3000  # that were given a name
_TEXTS = 300  # of edits that are read
_SAID = 100


class Places:
    """Paths of files in the form that is the same in all worktrees of a repository."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        rows = sql.ask(connection, "pages/project_names").fetchall()
        paths = {row["id"]: comparable(row["path"]) for row in rows if row["path"]}
        self._moved = {
            paths[row["id"]]: paths[row["parent_id"]]
            for row in rows
            if row["id"] in paths and row["parent_id"] in paths
        }
        self.roots = sorted(set(paths.values()), key=len, reverse=True)
        self._keys = {paths[row["id"]]: str(row["repository_key"]) for row in rows if row["path"]}

    def of(self, path: str, directory: str | None = None) -> str:
        """Return the path of a file; `directory` is where a relative one begins."""
        text = slashed(path)
        if not text.startswith("/") and not is_windows(text) and directory:
            text = f"{slashed(directory)}/{text}"
        place = comparable(posixpath.normpath(text))
        for top, parent in self._moved.items():
            if place.startswith(f"{top}/"):
                return parent + place[len(top) :]
        return in_repository(place)

    def clones(self, place: str) -> list[str]:
        """Return the paths of a file in all clones of its repository, as far as they are known.

        Where nobody stated what a directory is a clone of, the same name is enough.
        """
        root, inner = self.below(place)
        if not inner:
            return [place]
        alike = (other for other in self.roots if other != root and self._may_be_one(root, other))
        return [place, *(f"{other}/{inner}" for other in alike)]

    def _may_be_one(self, root: str, other: str) -> bool:
        keys = {self._keys[root], self._keys[other]}
        is_unknown = any(key.startswith("/") or is_windows(key) for key in keys)
        is_called_so = posixpath.basename(root) == posixpath.basename(other)
        return len(keys) == 1 or (is_unknown and is_called_so)

    def below(self, place: str) -> tuple[str, str]:
        """Return the project that a file is in, and its path below it; ("", "") if in none."""
        root = next((root for root in self.roots if place.startswith(f"{root}/")), "")
        return root, place[len(root) + 1 :] if root else ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file that is asked for: all paths that it may have, or the end of one."""

    places: Places
    paths: tuple[str, ...] = ()
    end: str = ""

    @classmethod
    def at(cls, connection: sqlite3.Connection, *paths: str) -> Wanted:
        """Return the file with one of these absolute paths."""
        places = Places(connection)
        return cls(places, tuple(places.of(path) for path in paths))

    @property
    def names(self) -> list[str]:
        """The last components of its paths."""
        return list(dict.fromkeys(posixpath.basename(path) for path in (*self.paths, self.end)))

    def fits(self, place: str) -> bool:
        """Is this its path?"""
        if self.paths:
            return place in self.paths
        end = self.end.casefold() if is_windows(place) else self.end
        return place == end or place.endswith(f"/{end}")


@dataclass(frozen=True, slots=True)
class Use:
    """A call that was applied to a file."""

    row: sqlite3.Row
    place: str
    """The path of the file, as `Places` has it."""


def uses_of(
    connection: sqlite3.Connection, wanted: Wanted, actions: tuple[str, ...], project: str | None
) -> list[Use]:
    """Return the calls that were applied to a file, the last read first."""
    rows = sql.ask(
        connection, "pages/blame_calls",
        match=in_scope(TOOLS, _phrases(wanted)), actions=json.dumps(actions), project=project,
        limit=_FILE_CALLS,
    )  # fmt: skip
    found = []
    for row in rows:
        paths = json.loads(row["paths"]) if row["paths"] else [row["target"]]
        for path in paths if isinstance(paths, list) else ():
            place = wanted.places.of(str(path), row["cwd"]) if path else ""
            if place and wanted.fits(place):
                found.append(Use(row, place))
    return found


def edits_of(
    connection: sqlite3.Connection, wanted: Wanted, project: str | None, line: str = ""
) -> Iterator[Evidence]:
    """Yield the edits of a file; those that wrote a line first."""
    uses = uses_of(connection, wanted, (EDIT,), project)
    texts = texts_of(connection, [use.row["call_id"] for use in uses[:_TEXTS]])
    for use in uses:
        text = texts.get(use.row["call_id"], "")
        wrote = bool(line) and line in strings_of(text)
        changed = f"wrote this line · {_changed(text)}" if wrote else _changed(text)
        yield _evidence(use.row, "edited", changed or use.place, 0 if wrote or not line else 1)


def evidence_of_file(
    connection: sqlite3.Connection, wanted: Wanted, project: str | None, line: str = ""
) -> Iterator[Evidence]:
    """Yield what was done with a file, and said of it."""
    yield from edits_of(connection, wanted, project, line)
    for use in uses_of(connection, wanted, (READ,), project):
        yield _evidence(use.row, "read", str(use.row["target"]))
    yield from _mentions(connection, wanted, project)


def _mentions(
    connection: sqlite3.Connection, wanted: Wanted, project: str | None
) -> Iterator[Evidence]:
    """Yield the commands and texts that name a file, by as much of its path as tells it apart."""
    ends = _told_apart(wanted)
    phrases = " OR ".join(Term(end).expression() for end in ends)
    rows = sql.ask(
        connection, "pages/blame_calls", match=in_scope(TOOLS, phrases),
        actions=json.dumps([RUN]), project=project, limit=_SAID,
    ).fetchall()  # fmt: skip
    for row in rows:
        if any(_place_of(row["target"] or "", end) >= 0 for end in ends):
            yield _evidence(row, "mentioned", row["target"], 1)
    rows = sql.ask(
        connection, "pages/blame_said", match=in_scope(SAID, phrases), project=project, limit=_SAID
    ).fetchall()
    texts = texts_of(connection, [row["id"] for row in rows])
    for row in rows:
        text = texts[row["id"]]
        for end in ends:
            if (at := _place_of(text, end)) >= 0:
                yield Evidence(
                    "mentioned", row["session_id"], row["subagent_id"], row["file_id"],
                    row["byte_offset"], row["timestamp"], line_of(text, at),
                )  # fmt: skip
                break


def _place_of(text: str, path: str) -> int:
    """Return where a text names a file, as a path or its end, -1 if it does not.

    `my-pool.py`, `pool.pyc` and `.pool.py` are other files than `pool.py`.
    """
    at = text.find(path)
    while at >= 0:
        before = text[at - 1 : at] if at else ""
        behind = text[at + len(path) : at + len(path) + 2]
        is_longer = behind[:1].isalnum() or behind.startswith(("_", "-"))
        is_other = before.isalnum() or before in {"_", "-", "."}
        has_ending = behind.startswith(".") and behind[1:].isalnum()
        if not (is_longer or is_other or has_ending):
            return at
        at = text.find(path, at + 1)
    return -1


def _told_apart(wanted: Wanted) -> list[str]:
    """Return the paths below their projects, which is how people and commands name a file."""
    if not wanted.paths:
        return [wanted.end]
    ends = []
    for path in wanted.paths:
        top = next((root for root in wanted.places.roots if path.startswith(f"{root}/")), None)
        ends.append(path[len(top) + 1 :] if top else path)
    return list(dict.fromkeys(ends))


def _phrases(wanted: Wanted) -> str:
    known = [name for name in wanted.names if query.TOKEN.search(name)]
    return " OR ".join(Term(name).expression() for name in known) or '""'


def _changed(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:  # it was cut
        return ""
    return shortly(value) if isinstance(value, dict) else ""


def _evidence(row: sqlite3.Row, grade: str, text: str, rank: int = 0) -> Evidence:
    tool = row["tool"] if "tool" in row.keys() else None  # noqa: SIM118
    return Evidence(
        grade, row["session_id"], row["subagent_id"], row["file_id"], row["byte_offset"],
        row["timestamp"], line_of(text), tool, rank,
    )  # fmt: skip


# -- lines -----------------------------------------------------------------------------------------

_MOST_PART = 0.6  # of the lines: measured, 97 of 100 conversations with so many are the right ones
_LEAST_PART = 0.15  # below, hardly any is
_MOST_LINES = 20_000


def wrote(
    connection: sqlite3.Connection,
    lines: Sequence[str],
    until: str | None,
    project: str | None,
    what: str = "added lines",
) -> list[Evidence]:
    """Return who wrote lines, which are telling: of each, the latest edit that added it counts.

    Where their file lies does not matter. A conversation that wrote a small part of them is left
    out: others have some lines, too.
    """
    hashes = json.dumps([line_hash(line) for line in lines[:_MOST_LINES]])
    rows = sql.ask(connection, "pages/blame_lines", lines=hashes, until=until, project=project)
    by_session: dict[int, dict[int, list[sqlite3.Row]]] = {}
    for row in rows:
        by_session.setdefault(row["session_id"], {}).setdefault(row["call_id"], []).append(row)
    total = min(len(lines), _MOST_LINES)
    found = []
    for by_call in by_session.values():
        calls = sorted(by_call.values(), key=len, reverse=True)
        count = sum(map(len, calls))
        if count < _LEAST_PART * total:
            continue
        grade = "wrote" if count >= _MOST_PART * total else "partly"
        for number, same in enumerate(calls):
            share = len(same) if number else count  # the first one speaks for the conversation
            text = " · ".join(filter(None, (f"{share} of {total} {what}", same[0]["target"])))
            found.append(
                replace(_evidence(same[0], grade, text, -share), lines=count, of_lines=total)
            )
    return found


# -- commits ---------------------------------------------------------------------------------------

_RESULTS = 400  # that have the hash; each text is read
_CALLS = 200  # that have the subject
_SLACK = 120_000  # milliseconds between the time of a commit and that of its command
_BEFORE = 7 * 24 * 3600 * 1000
_LISTED_HASHES = 10


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
    known = _known(commit) if commit is not None else CommitEvidence(wanted)
    known.found += _commit_made(connection, known, project)
    known.found += _hash_said(connection, known, project)
    if commit is not None and history is not None:
        if not any(one.grade in _MAKING for one in known.found):
            known.found += _made_before(connection, commit, history, project)
        known.found += _commit_content(connection, known, history, project)
    merge = history.merge_of(commit) if history is not None and commit is not None else None
    if history is not None and merge is not None:
        known.found += _of_merge(connection, merge, history, project)
    has_content = any(one.lines for one in known.found)
    if with_files and commit is not None and history is not None and not has_content:
        known.found += _commit_edits(connection, commit, history, project)
    return known


def _made_before(
    connection: sqlite3.Connection, commit: Commit, history: GitHistory, project: str | None
) -> Iterator[Evidence]:
    """Yield who made a commit before it was rebased, picked, or given another message."""
    for twin in history.twins(commit):
        for one in _commit_made(connection, _known(twin), project):
            if one.grade in _MAKING:
                yield replace(one, grade="committed", text=f"as {twin.hash[:9]}: {one.text}")


def _known(commit: Commit) -> CommitEvidence:
    return CommitEvidence(commit.hash, commit.subject, commit)


def _commit_made(
    connection: sqlite3.Connection, known: CommitEvidence, project: str | None
) -> list[Evidence]:
    """Return what tools printed of a commit, and the commands that gave it its subject."""
    printed = list(_printed(connection, known, project))
    made = {one.session for one in printed if one.grade == "made"}
    if not known.subject or (known.commit is None and made):
        return printed
    by_subject = _by_subject(connection, known, project)
    return [*printed, *(one for one in by_subject if one.session not in made)]


# -- by the hash -----------------------------------------------------------------------------------


def _hash_words(wanted: str) -> str:
    """Return an expression for FTS5 that finds a hash, longer ones, and its abbreviations."""
    shorter = [Term(wanted[:length]) for length in range(LEAST, len(wanted))]
    return " OR ".join(term.expression() for term in [Term(wanted, is_prefix=True), *shorter])


def _printed(
    connection: sqlite3.Connection, known: CommitEvidence, project: str | None
) -> Iterator[Evidence]:
    """Yield the results that printed the hash; complete what is known of the commit."""
    match = in_scope(TOOLS, _hash_words(known.hash))
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
        for made in made_in(command, text):
            if fits(made.hash, known.hash):
                hashes[made.hash] = made.subject
                known.subject = known.subject or made.subject
                yield _evidence(row, "replayed" if made.is_replayed else "made", made.line)
        for printed, line in hashes_in(text, known.hash):
            subject = subject_behind(line, printed)
            hashes[printed] = hashes.get(printed) or subject or ""
            known.subject = known.subject or subject
            is_own = subject is not None and states(strings_of(command), subject)
            yield _evidence(row, "made" if is_own else "printed", line)
    _check_one(known, hashes)


_CAN_COMMIT = (RUN, OTHER)


def _check_one(known: CommitEvidence, hashes: dict[str, str]) -> None:
    """Raise if the hashes that were found are of several commits; else keep the longest."""
    longest = [
        one for one in hashes if not any(other != one and other.startswith(one) for other in hashes)
    ]
    if known.commit is None and len(longest) > 1:
        listed = "".join(
            f"\n  {one}  {hashes[one]}".rstrip() for one in sorted(longest)[:_LISTED_HASHES]
        )
        raise UsageError(
            f"{known.hash!r} is the beginning of {len(longest)} hashes; give more of it:{listed}"
        )
    if longest and len(longest[0]) > len(known.hash):
        known.hash = longest[0]


def _hash_said(
    connection: sqlite3.Connection, known: CommitEvidence, project: str | None
) -> Iterator[Evidence]:
    match = in_scope(SAID, _hash_words(known.hash))
    rows = sql.ask(
        connection, "pages/blame_said", match=match, project=project, limit=_SAID
    ).fetchall()
    texts = texts_of(connection, [row["id"] for row in rows])
    for row in rows:
        for _, line in hashes_in(texts[row["id"]], known.hash)[:1]:
            yield _evidence(row, "mentioned", line)


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
    tokens = query.TOKEN.findall(subject)
    if not tokens:
        return []
    match = in_scope(TOOLS, Term(" ".join(tokens)).expression_at_line_starts())
    rows = _calls_with(connection, subject, project)
    texts = texts_of(connection, [row["call_id"] for row in rows])
    found: list[_Run] = []
    for row in rows:
        if states(strings_of(texts.get(row["call_id"], "")), subject):
            evidence = _evidence(row, "committed", subject)
            found.append((evidence, row["timestamp"], row["ended_at"]))
    rows = sql.ask(
        connection, "pages/blame_results", match=match, project=project, limit=_CALLS
    ).fetchall()
    rows = [row for row in rows if row["action"] in _CAN_COMMIT]
    texts = texts_of(connection, [row[name] for row in rows for name in ("call_id", "result_id")])
    for row in rows:
        command, output = (texts.get(row[name], "") for name in ("call_id", "result_id"))
        for made in made_in(command, output):
            if made.subject == subject and not made.is_replayed:
                evidence = _evidence(row, "committed", made.line)
                found.append((evidence, row["started_at"], row["timestamp"]))
    return found


def _calls_with(
    connection: sqlite3.Connection, line: str, project: str | None
) -> list[sqlite3.Row]:
    """Return the commands, and the calls of unknown tools, that were given a line."""
    tokens = query.TOKEN.findall(line)
    if not tokens:
        return []
    return sql.ask(
        connection, "pages/blame_calls",
        match=in_scope(TOOLS, Term(" ".join(tokens)).expression_at_line_starts()),
        actions=json.dumps(_CAN_COMMIT), project=project, limit=_CALLS,
    ).fetchall()  # fmt: skip


def _is_at(run: _Run, commit: Commit) -> bool:
    """Was a commit made while a command ran? Clocks have seconds, and hooks take a while."""
    _, started, ended = run
    if started is None:
        return False
    first = milliseconds(started) - _SLACK
    last = milliseconds(ended or started) + _SLACK
    times = (milliseconds(commit.authored_at), milliseconds(commit.committed_at))
    return any(first <= time <= last for time in times)


# -- by the content --------------------------------------------------------------------------------


def _commit_content(
    connection: sqlite3.Connection, known: CommitEvidence, history: GitHistory, project: str | None
) -> list[Evidence]:
    """Return who wrote the lines that a commit added."""
    if known.commit is None:
        return []
    lines = history.added_lines(known.commit)
    if lines is None:
        known.notes.append("Its diff is too large to be compared with edits.")
        return []
    until = from_milliseconds(milliseconds(known.commit.committed_at) + _SLACK)
    return wrote(connection, lines, until, project)


# -- by the pull request ---------------------------------------------------------------------------


def _of_merge(
    connection: sqlite3.Connection, merge: Merge, history: GitHistory, project: str | None
) -> Iterator[Evidence]:
    """Yield what shows who made the pull request that a commit merged or squashed."""
    stated = _stated(connection, PullRequest(merge.name.number), project)
    own = stated.of_repositories(history.remotes())
    for one in _pull_request_made(connection, own, merge, project):
        if one.grade not in _SHOWING:
            yield replace(one, grade="linked") if one.grade == "made" else one


# -- by the files ----------------------------------------------------------------------------------


def _commit_edits(
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


# -- pull requests ---------------------------------------------------------------------------------

_PULL_WORDS = ("pull", "merge_requests", "pulls", "pull-requests", "pullrequests")
_ROWS = 300
_LONGEST_ADDRESS = 250
_MERGED_COMMITS = 15  # of a pull request; each is looked for
_SHARED_BRANCHES = (None, "", "HEAD", "main", "master", "trunk", "develop", "dev")
"""From which nothing follows: everybody works on them."""

_address = re.compile(
    r"(?:(https?)://)?([^\s/]{1,100})/([^\s]{1,200}?)/(?:-/)?"
    r"(?:pulls?|merge_requests|pull-?requests)/(\d{1,9})(?:[/?#.]\S{0,200})?"
).fullmatch
_short_name = re.compile(r"(?:([\w.-]{1,100}/[\w.-]{1,100}))?[#!](\d{1,9})").fullmatch
_named = re.compile(
    r"(?:pr|mr|pulls?|(?:pull|merge)[ _-]?request)[ _/-]{0,3}[#!]?(\d{1,9})", re.IGNORECASE
).fullmatch
_plain = re.compile(r"\d{1,6}").fullmatch
_creating = re.compile(
    r"\b(?:pr|mr) create\b|create_(?:pull|merge)_request|\bpull-request\b", re.IGNORECASE
).search


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request that is asked for."""

    number: str
    repository: str | None = None
    """Its name with that of its owner; None if that was not said."""
    host: str | None = None


def as_pull_request(text: str) -> PullRequest | None:
    """Return the pull request that is meant by a number or an address.

    `12`, `#12`, `PR 12`, `pr-12`, `owner/name#12`, and addresses for people and for programs.
    """
    text = text.strip()
    if found := _address(text):
        return _at_address(*found.groups())
    if found := _short_name(text):
        return PullRequest(found[2], found[1])
    if found := _named(text):
        return PullRequest(found[1])
    return PullRequest(text) if _plain(text) else None


def _at_address(scheme: str | None, host: str, path: str, number: str) -> PullRequest:
    """Return what an address means: one for programs means the same as the one for people."""
    host, path = host.casefold().removeprefix("www."), path.casefold()
    if scheme is None and "." not in host:  # owner/name/pull/12
        return PullRequest(number, f"{host}/{path}")
    for start in ("repos/", "api/v3/repos/", "api/v4/projects/", "2.0/repositories/"):
        if path.startswith(start):
            host, path = host.removeprefix("api."), path[len(start) :].replace("%2f", "/")
            break
    return PullRequest(number, path.removesuffix(".git"), host)


@dataclass(slots=True)
class Stated:
    """What conversations state of pull requests with one number, by repository."""

    evidence: dict[PullRequest, list[Evidence]] = field(default_factory=dict)
    addresses: dict[PullRequest, str] = field(default_factory=dict)

    def of_repositories(self, remotes: Collection[tuple[str, str]]) -> list[Evidence]:
        """Return what is stated of those of the repositories with these hosts and names."""
        return [
            one
            for pull_request, listed in self.evidence.items()
            if (pull_request.host, pull_request.repository) in remotes
            for one in listed
        ]


def evidence_of_pull_request(
    connection: sqlite3.Connection,
    wanted: PullRequest,
    history: GitHistory | None,
    project: str | None,
) -> tuple[list[Evidence], str | None]:
    """Return what there is of a pull request, and its address.

    Raises UsageError if several repositories have one with this number.
    """
    stated = _stated(connection, wanted, project)
    remotes = history.remotes() if history is not None else set()
    here = [one for one in stated.evidence if (one.host, one.repository) in remotes]
    meant = here or list(stated.evidence)
    if len(meant) > 1:
        listed = "".join(f"\n  {url}" for url in sorted(stated.addresses.values())[:_LISTED])
        raise UsageError(
            f"{len(meant)} repositories have a pull request {wanted.number}; give its address:"
            f"{listed}"
        )
    is_here = bool(here) or (not meant and _is_clone(wanted, remotes))
    merge = history.merge(wanted.number) if history is not None and is_here else None
    found = [one for pull_request in meant for one in stated.evidence[pull_request]]
    found = list(_pull_request_made(connection, found, merge, project))
    if history is not None and merge is not None:
        found += _commit_content(connection, _known(merge.commit), history, project)
    return found, next((stated.addresses[one] for one in meant), None)


def _is_clone(wanted: PullRequest, remotes: Collection[tuple[str, str]]) -> bool:
    """Is a repository with these remotes the one whose pull request is asked for?"""
    if wanted.repository is None:
        return True
    return any(_is_meant(wanted, PullRequest(wanted.number, name, host)) for host, name in remotes)


def _pull_request_made(
    connection: sqlite3.Connection,
    stated: list[Evidence],
    merge: Merge | None,
    project: str | None,
) -> Iterator[Evidence]:
    """Yield what is stated of a pull request, and what was done for it.

    Its head branch is that of the merge, or the one on which a conversation opened it.
    """
    yield from stated
    opened = [one for one in stated if one.grade in ("made", "linked")]
    if merge is not None:
        by_title = _opened(connection, merge, project)
        opened += by_title
        yield from by_title
        for commit in merge.commits[:_MERGED_COMMITS]:
            for one in _commit_made(connection, _known(commit), project):
                if one.grade in _MAKING:
                    yield replace(one, grade="committed")
    yield from _on_branch(connection, merge, opened, project)


def _opened(connection: sqlite3.Connection, merge: Merge, project: str | None) -> list[Evidence]:
    """Return the calls that opened a pull request with the title of one that was merged."""
    title = merge.name.title or ""
    rows = _calls_with(connection, title, project)
    texts = texts_of(connection, [row["call_id"] for row in rows])
    last = milliseconds(merge.commit.committed_at) + _SLACK
    found = []
    for row in rows:
        command = strings_of(texts.get(row["call_id"], ""))
        is_before = row["timestamp"] is not None and milliseconds(row["timestamp"]) <= last
        if is_before and _creating(f"{row['tool']} {command}") and _gives(command, title):
            found.append(_evidence(row, "made", f"opened a pull request with this title: {title}"))
    return found


def _on_branch(
    connection: sqlite3.Connection,
    merge: Merge | None,
    opened: Iterable[Evidence],
    project: str | None,
) -> Iterator[Evidence]:
    """Yield where the head branch of a pull request was checked out, before it was merged."""
    places = json.dumps([[one.file, one.byte, one.subagent] for one in opened])
    rows = sql.ask(connection, "pages/blame_places", places=places)
    branches = {row["branch"] for row in rows}
    since = until = None
    if merge is not None:
        branches = {merge.name.branch} if merge.name.branch else branches
        since = from_milliseconds(milliseconds(merge.since) - _BEFORE)
        until = from_milliseconds(milliseconds(merge.commit.committed_at) + _SLACK)
    asked = json.dumps(sorted(branch for branch in branches if branch not in _SHARED_BRANCHES))
    for row in sql.ask(
        connection, "pages/blame_branches",
        branches=asked, since=since, until=until, project=project,
    ):  # fmt: skip
        yield _evidence(row, "branch", f"on its branch {row['branch']}")


def _is_meant(wanted: PullRequest, other: PullRequest) -> bool:
    if wanted.repository is not None and wanted.repository.casefold() != other.repository:
        return False
    return wanted.host is None or wanted.host == other.host


def _is_for_programs(url: str) -> bool:
    return "/repos/" in url or "/api/" in url or "/2.0/" in url


def _stated(connection: sqlite3.Connection, wanted: PullRequest, project: str | None) -> Stated:
    """Return what names a pull request by its address; the one for people is kept."""
    stated = Stated()
    for url, one in _all_of_number(connection, wanted, project):
        pull_request = as_pull_request(url)
        if pull_request is None or not _is_meant(wanted, pull_request):
            continue
        stated.evidence.setdefault(pull_request, []).append(one)
        known = stated.addresses.get(pull_request)
        if known is None or _is_for_programs(known):
            stated.addresses[pull_request] = url
    return stated


def _all_of_number(
    connection: sqlite3.Connection, wanted: PullRequest, project: str | None
) -> Iterator[tuple[str, Evidence]]:
    """Yield everything that has the number in an address, with the address."""
    number = wanted.number
    for row in sql.ask(connection, "pages/pull_request_links", number=number, project=project):
        yield row["url"], Evidence(
            "linked", row["session_id"], None, row["file_id"], row["byte_offset"],
            row["timestamp"], row["url"],
        )  # fmt: skip
    phrases = " OR ".join(Term(f"{word}/{number}").expression() for word in _PULL_WORDS)
    given = {"project": project, "limit": _ROWS}
    rows = sql.ask(
        connection, "pages/blame_results", match=in_scope(TOOLS, phrases), **given
    ).fetchall()
    texts = texts_of(connection, [row[name] for row in rows for name in ("call_id", "result_id")])
    for row in rows:
        command = f"{row['tool']} {strings_of(texts.get(row['call_id'], ''))}"
        grade = "made" if _creating(command) else "printed"
        for url, line in _addresses(texts.get(row["result_id"], ""), number):
            yield url, _evidence(row, grade, line)
    rows = sql.ask(
        connection, "pages/blame_said", match=in_scope(SAID, phrases), **given
    ).fetchall()
    texts = texts_of(connection, [row["id"] for row in rows])
    for row in rows:
        for url, line in _addresses(texts.get(row["id"], ""), number):
            yield url, _evidence(row, "mentioned", line)


def _addresses(text: str, number: str) -> Iterator[tuple[str, str]]:
    """Yield the addresses of pull requests with a number in a text, each with its line."""
    for word in _PULL_WORDS:
        tail = f"/{word}/{number}"
        at = text.find(tail)
        while at >= 0:
            end = at + len(tail)
            start = text.rfind("http", max(0, at - _LONGEST_ADDRESS), at)
            url = text[start:end]
            if start >= 0 and not text[end : end + 1].isdigit() and " " not in url:
                yield url, line_of(text, at)
            at = text.find(tail, end)


# -- questions -------------------------------------------------------------------------------------

_LISTED = 20
_LISTED_CLONES = 3
_MOST_CONTENT = 2 * 1024 * 1024
_LEAST_LETTERS = 8  # of a line that tells something


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for, and where."""

    text: str
    line: int | None = None
    directory: str | None = None
    """Where relative paths begin, and where git is asked."""
    project: str | None = None
    """Ids of projects as a JSON array; None for all."""
    within: tuple[str, ...] | None = None
    """The only directories in which git is asked; None for any."""


@dataclass(slots=True)
class Blame:
    """What was found."""

    of: dict[str, object]
    """What was asked for: kind, and what is known of it."""
    conversations: list[Conversation]
    notes: list[str] = field(default_factory=list)


def blame(connection: sqlite3.Connection, question: Question) -> Blame:
    """Return the conversations that made something, those with the strongest evidence first.

    Raises UsageError for a name that means several things.
    """
    asked = _Asked(connection, replace(question, text=bindable(question.text)))
    if not question.text.strip() or "\0" in question.text:
        raise UsageError("Give a file, the hash of a commit, or a pull request such as #12.")
    if question.line is not None:
        return asked.line(question.line)
    pull_request = as_pull_request(question.text)
    if pull_request is not None and not asked.is_file():
        return asked.pull_request(pull_request)
    if is_hash(question.text.lower()) and not asked.is_file():
        return asked.commit(question.text.lower())
    return asked.file()


class _Asked:
    """One question to one database."""

    def __init__(self, connection: sqlite3.Connection, question: Question) -> None:
        self._connection = connection
        self._question = question
        self._notes: list[str] = []

    def is_file(self) -> bool:
        """Is there a file of this name on this disk, where the question may look?"""
        path = self._path()
        return path is not None and self._may_look(path) and is_there(path)

    def commit(self, name: str) -> Blame:
        """Answer for a commit."""
        history = self._history(self._question.directory)
        known = evidence_of_commit(self._connection, name, history, self._question.project)
        return self._of_commit(known, {"kind": "commit", "text": self._question.text})

    def pull_request(self, wanted: PullRequest) -> Blame:
        """Answer for a pull request."""
        history = self._history(self._question.directory)
        found, url = evidence_of_pull_request(
            self._connection, wanted, history, self._question.project
        )
        of: dict[str, object] = {"kind": "pull_request", "text": self._question.text, "url": url}
        return self._answer(of, found)

    def file(self) -> Blame:
        """Answer for a file, or for what git calls a commit if no file is called so."""
        of: dict[str, object] = {"kind": "file", "text": self._question.text}
        by_content = self._writers()
        try:
            wanted, history = self._wanted()
        except UsageError:  # several files are called so; this one is known by its lines
            if not by_content:
                raise
            return self._answer({**of, "path": self._path()}, by_content)
        if wanted is None:
            found = self._commit_called()
            if found is not None:
                return self._of_commit(found, {"kind": "commit", "text": self._question.text})
            wanted = Wanted(Places(self._connection), end=self._end(history))
        of["path"] = wanted.paths[0] if wanted.paths else None
        evidence = evidence_of_file(self._connection, wanted, self._question.project)
        return self._answer(of, [*by_content, *evidence])

    def line(self, number: int) -> Blame:
        """Answer for a line of a file, by its content, and by the commit that git says it is of."""
        path = self._path()
        history = self._history(posixpath.dirname(path)) if path is not None else None
        found = history.line(path, number) if history is not None and path is not None else None
        name, text = found or ("", self._line_on_disk(number))
        if path is None or (found is None and not list(telling([text]))):
            if history is None:
                raise UsageError(
                    "--line asks git, and no repository with this file is here; no edit could be "
                    "recognised by this line. To see who edited the file: leave out --line"
                )
            raise NotFoundError(
                f"git has no line {number:,} of {self._question.text!r} that it could follow, and "
                "no edit could be recognised by it. To see who edited the file: leave out --line"
            )
        of: dict[str, object] = {"kind": "line", "text": self._question.text, "line": number}
        of["content"] = text.strip()
        known = CommitEvidence(name)
        if name.strip("0") and history is not None:
            known = evidence_of_commit(
                self._connection, name, history, self._question.project, with_files=False
            )
            known.found = [one for one in known.found if not one.lines]
        elif found is not None:
            self._notes.append(f"Line {number:,} is not committed yet.")
        is_long = sum(map(str.isalnum, text)) >= _LEAST_LETTERS
        wanted = Wanted.at(self._connection, *self._names(path, history))
        edits = edits_of(
            self._connection, wanted, self._question.project, text.strip() if is_long else ""
        )
        known.found += _before(edits, known, is_telling=is_long)
        known.found += self._wrote_line(text, known.commit)
        return self._of_commit(known, of) if known.commit else self._answer(of, known.found)

    def _wrote_line(self, text: str, commit: Commit | None) -> list[Evidence]:
        """Return the latest edit before a commit that added exactly this line, in any file."""
        until = from_milliseconds(milliseconds(commit.committed_at) + _SLACK) if commit else None
        lines = list(telling([text]))
        found = wrote(self._connection, lines, until, self._question.project)
        return [
            replace(one, text=f"wrote this line · {one.text.partition(' · ')[2]}", lines=0)
            for one in found
        ]

    def _writers(self) -> list[Evidence]:
        """Return who wrote the lines that the file has now, if it is on this disk."""
        content = self._content()
        lines = list(dict.fromkeys(telling(content.split("\n"))))
        return wrote(self._connection, lines, None, self._question.project, "lines")

    def _line_on_disk(self, number: int) -> str:
        return next(islice(self._content().split("\n"), number - 1, number), "")

    def _content(self) -> str:
        """Return the text of the file, '' if it is not here, or too large."""
        path = self._path()
        if path is None or not self._may_look(path):
            return ""
        try:
            if not Path(path).is_file():  # a pipe would wait
                return ""
            with Path(path).open("rb") as file:
                data = file.read(_MOST_CONTENT + 1)
        except OSError:
            return ""
        return data.decode("utf-8", "replace") if len(data) <= _MOST_CONTENT else ""

    # -- what is meant -----------------------------------------------------------------------------

    def _wanted(self) -> tuple[Wanted | None, GitHistory | None]:
        """Return the file that is meant, None if no call was applied to one called so."""
        path = self._path()
        history = None
        if path is not None:
            history = self._history(posixpath.dirname(path))
            exact = Wanted.at(self._connection, *self._names(path, history))
            if self._is_used(exact):
                return self._with_clones(exact), history
        end = self._end(history)
        loose = Wanted(Places(self._connection), end=end)
        uses = uses_of(self._connection, loose, (EDIT, READ), self._question.project)
        places = list(dict.fromkeys(use.place for use in uses))
        if places and set(places) <= set(loose.places.clones(places[0])):
            self._notes.append(f"Taken for {places[0]}.")
            return self._with_clones(Wanted(loose.places, (places[0],))), history
        if len(places) > 1:
            listed = "".join(f"\n  {place}" for place in places[:_LISTED])
            more = f"\n  and {len(places) - _LISTED} more" if places[_LISTED:] else ""
            raise UsageError(
                f"{end!r} is the name of {len(places)} files; give the path of one:{listed}{more}"
            )
        return None, history

    def _with_clones(self, wanted: Wanted) -> Wanted:
        """Return a file with its paths in the clones of its repository where it was used."""
        paths = [clone for path in wanted.paths for clone in wanted.places.clones(path)]
        every = Wanted(wanted.places, tuple(dict.fromkeys(paths)))
        uses = uses_of(self._connection, every, (EDIT, READ), self._question.project)
        used = {use.place for use in uses} - set(wanted.paths)
        if used:
            self._notes.append(
                f"Also taken for this file, since the directories are called alike: "
                f"{', '.join(sorted(used)[:_LISTED_CLONES])}"
                f"{' and others' if len(used) > _LISTED_CLONES else ''}."
            )
        return replace(wanted, paths=(*wanted.paths, *sorted(used)))

    def _is_used(self, wanted: Wanted) -> bool:
        return bool(uses_of(self._connection, wanted, (EDIT, READ), self._question.project))

    def _path(self) -> str | None:
        """Return the absolute path that the question names."""
        text = slashed(self._question.text)
        if text.startswith("~"):
            text = slashed(os.path.expanduser(text))  # noqa: PTH111
        if text.startswith("/") or is_windows(text):
            return posixpath.normpath(text)
        if self._question.directory is None:
            return None
        return posixpath.normpath(f"{slashed(self._question.directory)}/{text}")

    def _names(self, path: str, history: GitHistory | None) -> list[str]:
        """Return the path of a file, and those that it had before, if git knows."""
        top = history.top() if history is not None else None
        if history is None or top is None:
            return [path]
        return [path, *(f"{top}/{old}" for old in history.earlier_names(path))]

    def _end(self, history: GitHistory | None) -> str:
        """Return the end of the path, by which a file is found elsewhere."""
        path, top = self._path(), history.top() if history is not None else None
        if path is not None and top is not None and path.startswith(f"{top}/"):
            return path[len(top) + 1 :]
        parts = posixpath.normpath(slashed(self._question.text)).lstrip("/").split("/")
        return "/".join(part for part in parts if part not in {".", ".."}) or "?"

    def _commit_called(self) -> CommitEvidence | None:
        """Return what there is of a commit that git calls so: a branch, a tag, HEAD~2."""
        history = self._history(self._question.directory)
        commit = history.commit(self._question.text) if history is not None else None
        if commit is None:
            return None
        project = self._question.project
        return evidence_of_commit(self._connection, commit.hash, history, project)

    # -- where it is asked -------------------------------------------------------------------------

    def _history(self, directory: str | None) -> GitHistory | None:
        if self._question.within == ():
            return None
        while (
            directory and not is_directory(directory) and directory != posixpath.dirname(directory)
        ):
            directory = posixpath.dirname(directory)  # of a file that was removed
        return history_at(directory) if directory and self._may_look(directory) else None

    def _may_look(self, path: str) -> bool:
        if self._question.within is None:
            return True
        place = comparable(str(Path(path).resolve()))
        return any(
            place == top or place.startswith(f"{top}/")
            for top in (comparable(str(Path(one).resolve())) for one in self._question.within)
        )

    # -- the answer --------------------------------------------------------------------------------

    def _of_commit(self, known: CommitEvidence, of: dict[str, object]) -> Blame:
        self._notes += known.notes
        facts = {"hash": known.hash, "subject": known.subject}
        if known.commit is not None:
            facts["time"] = known.commit.authored_at
        return self._answer({**of, **facts}, known.found)

    def _answer(self, of: dict[str, object], found: Sequence[Evidence]) -> Blame:
        if found and all(one.grade in _SHOWING for one in found):
            self._notes.append(
                "Nothing shows which conversation made it: it was read, printed or talked about."
            )
        return Blame(of, _by_conversation(self._connection, found), self._notes)


def _before(
    edits: Iterable[Evidence], known: CommitEvidence, *, is_telling: bool
) -> list[Evidence]:
    """Return the edits that may have made a line: those that wrote it, before it was committed."""
    if known.commit is None:
        return list(edits)
    last = milliseconds(known.commit.committed_at) + 60_000
    earlier = [one for one in edits if one.time is not None and milliseconds(one.time) <= last]
    return [one for one in earlier if one.rank == 0] if is_telling else earlier


def directory_of(connection: sqlite3.Connection, projects: Sequence[int]) -> str | None:
    """Return the directory of projects: one that is on this disk before others."""
    rows = sql.ask(connection, "pages/project_names").fetchall()
    paths = [str(row["path"]) for row in rows if row["id"] in projects and row["path"]]
    return next(filter(is_directory, paths), next(iter(paths), None))


def directories_of(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the directories of all projects that are seen, those on this disk first."""
    rows = sql.ask(connection, "pages/project_names").fetchall()
    paths = [str(row["path"]) for row in rows if row["path"]]
    return tuple(sorted(dict.fromkeys(paths), key=lambda path: (not is_directory(path), len(path))))
