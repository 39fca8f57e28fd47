"""`blame`: which conversations made a file, a line, a commit or a pull request.

What is asked for is told apart by what it is: a file on this disk is a file; an address, `#12` or a
short number is a pull request; seven or more hexadecimal digits are a commit; anything else is a
file, or what git calls a commit. Evidence is explained in `evidence`. Ambiguous names are errors
that list what could be meant.
"""

from __future__ import annotations

import os
import posixpath
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import humanize, sql
from ..errors import NotFoundError, UsageError
from ..paths import is_directory, is_there
from ..project_paths import comparable, is_windows, slashed
from ..records import EDIT, READ
from ..when import milliseconds
from .blame_commit import CommitEvidence, evidence_of_commit
from .blame_file import Places, Wanted, edits_of, evidence_of_file, uses_of
from .blame_pull_request import PullRequest, as_pull_request, evidence_of_pull_request
from .commit_text import is_hash
from .evidence import Conversations, Evidence
from .git_history import GitHistory, history_at
from .query_parser import bindable

_LISTED = 20
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
    conversations: Conversations
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


def not_found(connection: sqlite3.Connection, of: dict[str, object]) -> NotFoundError:
    """Return the error that says what was looked at, and how complete the index is."""
    fresh = sql.ask(connection, "pages/fresh").fetchone()
    missing = sql.ask(connection, "pages/coverage").fetchone()
    known = f"The index is of {humanize.moment(fresh['synced_at']) or 'no sync'}"
    gaps = []
    if missing["files"]:
        gaps.append(f"the end of {humanize.many(missing['files'], 'file')} is not read yet")
    if missing["unparsed"]:
        gaps.append(f"{humanize.many(missing['unparsed'], 'record')} could not be parsed")
    looked = "Looked at: edits, reads, commands with their output, and what was said."
    return NotFoundError(
        f"No conversation is known to have made {of['text']!r}. {looked} "
        f"{known}{'; ' if gaps else ''}{' and '.join(gaps)}. To read what is new: assoc-ingest sync"
    )


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
        found, url = evidence_of_pull_request(self._connection, wanted, self._question.project)
        of: dict[str, object] = {"kind": "pull_request", "text": self._question.text, "url": url}
        return self._answer(of, found)

    def file(self) -> Blame:
        """Answer for a file, or for what git calls a commit if no file is called so."""
        of: dict[str, object] = {"kind": "file", "text": self._question.text}
        wanted, history = self._wanted()
        if wanted is None:
            found = self._commit_called()
            if found is not None:
                return self._of_commit(found, {"kind": "commit", "text": self._question.text})
            wanted = Wanted(Places(self._connection), end=self._end(history))
        of["path"] = wanted.paths[0] if wanted.paths else None
        evidence = evidence_of_file(self._connection, wanted, self._question.project)
        return self._answer(of, list(evidence))

    def line(self, number: int) -> Blame:
        """Answer for a line of a file, by the commit that git says it comes from."""
        path = self._path()
        history = self._history(posixpath.dirname(path)) if path is not None else None
        found = history.line(path, number) if history is not None and path is not None else None
        if history is None or path is None:
            raise UsageError(
                "--line asks git, and no repository with this file is here. "
                "To see who edited the file: leave out --line"
            )
        if found is None:
            raise NotFoundError(
                f"git has no line {number:,} of {self._question.text!r} that it could follow. "
                "To see who edited the file: leave out --line"
            )
        name, text = found
        of: dict[str, object] = {"kind": "line", "text": self._question.text, "line": number}
        of["content"] = text.strip()
        telling = text.strip() if sum(map(str.isalnum, text)) >= _LEAST_LETTERS else ""
        wanted = Wanted.at(self._connection, *self._names(path, history))
        edits = list(edits_of(self._connection, wanted, self._question.project, telling))
        if not name.strip("0"):
            self._notes.append(f"Line {number:,} is not committed yet.")
            return self._answer(of, edits)
        known = evidence_of_commit(
            self._connection, name, history, self._question.project, with_files=False
        )
        known.found += _before(edits, known, is_telling=bool(telling))
        return self._of_commit(known, of)

    # -- what is meant -----------------------------------------------------------------------------

    def _wanted(self) -> tuple[Wanted | None, GitHistory | None]:
        """Return the file that is meant, None if no call was applied to one called so."""
        path = self._path()
        history = None
        if path is not None:
            history = self._history(posixpath.dirname(path))
            exact = Wanted.at(self._connection, *self._names(path, history))
            if self._is_used(exact):
                return exact, history
        end = self._end(history)
        loose = Wanted(Places(self._connection), end=end)
        uses = uses_of(self._connection, loose, (EDIT, READ), self._question.project)
        places = list(dict.fromkeys(use.place for use in uses))
        if len(places) > 1:
            listed = "".join(f"\n  {place}" for place in places[:_LISTED])
            more = f"\n  and {len(places) - _LISTED} more" if places[_LISTED:] else ""
            raise UsageError(
                f"{end!r} is the name of {len(places)} files; give the path of one:{listed}{more}"
            )
        if places:
            self._notes.append(f"Taken for {places[0]}.")
            return Wanted(loose.places, (places[0],)), history
        return None, history

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
        return posixpath.normpath(slashed(self._question.text)).lstrip("./") or "?"

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
        return Blame(of, Conversations(self._connection, found), self._notes)


def _before(edits: list[Evidence], known: CommitEvidence, *, is_telling: bool) -> list[Evidence]:
    """Return the edits that may have made a line: those that wrote it, before it was committed."""
    if known.commit is None:
        return []
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
