"""Makes a set of cases from a public repository that publishes the transcripts of its agents.

The repositories of `SOURCES` use a program, Entire, that keeps transcripts on a branch of their own
and writes into each commit a trailer, `Entire-Checkpoint: 1a2b3c4d5e6f`, that names them. So a
repository itself says which conversation made a commit, and with `git blame`, a line; what a file
consists of; what a pull request merged. Nothing of it is kept here: the set is built where the user
says, from a clone that they have or ask for.

    DIRECTORY/NAME/homes/claude, codex, copilot    transcripts, as those programs leave them
    DIRECTORY/NAME/repository                      a clone, at another path than transcripts say
    DIRECTORY/NAME/cases.jsonl                     what is asked, and the truth
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .case import Case, write

SOURCES = (
    "entireio/cli",
    "FSM1/cipher-box",
    "PackmindHub/context-evaluator",
    "EntityProcess/agentv",
)
"""Public repositories with such a branch, the first with most conversations."""

BRANCH = "entire/checkpoints/v1"
TRAILER = "Entire-Checkpoint"
_WEB = "https://github.com/{}"
_LEAST_LETTERS = 12  # of a line from which something follows
_LEAST_WORDS = 3  # of a subject that is a question

is_repository = re.compile(r"[\w.-]+/[\w.-]+").fullmatch
_merged = re.compile(r"Merge pull request #(\d{1,6}) from ").match
_squashed = re.compile(r" \(#(\d{1,6})\)$").search
_dated = re.compile(r"\d{4}-\d\d-\d\d-").match
_letter = re.compile(r"\w")


class Git:
    """A repository, which is only read."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __call__(self, *arguments: str) -> str:
        """Return what git printed. Raises CalledProcessError."""
        return self.bytes(*arguments).decode("utf-8", "replace")

    def bytes(self, *arguments: str) -> bytes:
        command = ["git", "-C", str(self.place), *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout

    def branch(self, name: str) -> str:
        """Return the commit of a branch, of this repository or of where it was cloned from."""
        names = (f"refs/heads/{name}", f"refs/remotes/origin/{name}")
        listed = self("for-each-ref", "--format=%(objectname)", *names).split()
        if not listed:
            raise SystemExit(f"{self.place} has no branch {name}: it publishes no transcripts.")
        return listed[0]


@dataclass(frozen=True, slots=True)
class Commit:
    hash: str
    parents: tuple[str, ...]
    subject: str
    checkpoints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """The transcripts on the branch."""

    transcripts: dict[str, tuple[int, str]]
    """By the id of the conversation: size and blob of its longest version."""
    conversations: dict[str, set[str]]
    """By checkpoint: the conversations whose transcripts are there."""


def build(source: str, into: Path, given: Path | None) -> Path:
    """Build the set of a repository, from a clone that is there or one that is made now."""
    place = into / source.replace("/", "+")
    if place.exists():
        raise SystemExit(f"{place} is there already: remove it, or give another --to.")
    new = place.with_name(f"{place.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    repository = new / "repository"
    origin = ("--shared", str(given.resolve())) if given else (_WEB.format(source),)
    subprocess.run(["git", "clone", "-q", "--no-checkout", *origin, str(repository)], check=True)
    clone = Git(repository)
    clone("read-tree", "HEAD")
    # Files that the given clone lacks are not written, and nothing is asked about them.
    written = ["git", "-C", str(repository), "checkout-index", "--all", "--quiet"]
    subprocess.run(written, check=False)
    clone("remote", "set-url", "origin", _WEB.format(source))
    # A clone of a clone has not the branches that the first one knows of its origin.
    all_branches = Git(given) if given else clone
    published = _published(all_branches)
    for key, (_, blob) in published.transcripts.items():
        _write_transcript(new / "homes", key, all_branches.bytes("cat-file", "blob", blob))
    write(new / "cases.jsonl", _cases(all_branches, clone, source, published))
    new.rename(place)
    return place


# -- transcripts -----------------------------------------------------------------------------------


def _published(git: Git) -> Published:
    transcripts: dict[str, tuple[int, str]] = {}
    conversations: dict[str, set[str]] = defaultdict(set)
    files: dict[str, tuple[str, int]] = {}
    # A clone can lack the blobs of large files; git gives those no size.
    for line in git("ls-tree", "-r", "-l", git.branch(BRANCH)).splitlines():
        facts, _, path = line.partition("\t")
        blob, size = facts.split()[2:4]
        if size.isdigit():
            files[path] = blob, int(size)
    for path, (blob, _) in files.items():
        transcript = path.replace("/metadata.json", "/full.jsonl")
        # CHECKPOINT in two parts, the number of a conversation, and the name of the file.
        if not path.endswith("/metadata.json") or path.count("/") != 3 or transcript not in files:
            continue
        key = _key(json.loads(git("cat-file", "blob", blob))["session_id"])
        checkpoint = "".join(path.split("/")[:2])
        version, length = files[transcript]
        transcripts[key] = max(transcripts.get(key, (0, "")), (length, version))
        conversations[checkpoint].add(key)
    return Published(transcripts, conversations)


def _key(session: str) -> str:
    """Return the id of a conversation; earlier versions of Entire put a day before it."""
    dated = _dated(session)
    return session[dated.end() :] if dated else session


def _write_transcript(homes: Path, key: str, data: bytes) -> None:
    """Write a transcript to where its agent would have put it; another agent's is left out."""
    lines = [_object(line) for line in data.split(b"\n")[:50]]
    first = lines[0]
    if first.get("type") == "session_meta":
        time = str(first["timestamp"])[:19].replace(":", "-")
        days = time[:10].replace("-", "/")
        path = homes / "codex" / "sessions" / days / f"rollout-{time}-{key}.jsonl"
    elif first.get("type") == "session.start":
        path = homes / "copilot" / "session-state" / key / "events.jsonl"
    elif first:
        cwd = next((str(line["cwd"]) for line in lines if line.get("cwd")), "unknown")
        folder = re.sub(r"[^A-Za-z0-9]", "-", cwd)
        path = homes / "claude" / "projects" / folder / f"{key}.jsonl"
    else:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _object(line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


# -- cases -----------------------------------------------------------------------------------------


def _cases(git: Git, clone: Git, source: str, published: Published) -> Iterator[Case]:
    commits = {commit.hash: commit for commit in _commits(git)}
    made = {
        commit.hash: conversations
        for commit in commits.values()
        if (conversations := _conversations(commit, published))
    }
    yield from _subjects(commits, made)
    for commit in commits.values():
        if commit.hash in made and len(commit.parents) < 2:
            yield Case("commit", commit.hash, _sorted(made[commit.hash]))
    yield from _lines_and_files(clone, made)
    yield from _pull_requests(git, source, commits, made)


def _sorted(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(keys))


def _commits(git: Git) -> Iterator[Commit]:
    trailer = f"%(trailers:key={TRAILER},valueonly,separator=%x20)"
    listed = git("log", "--all", "-z", f"--format=%H%x01%P%x01%s%x01{trailer}")
    for entry in filter(None, listed.split("\0")):
        name, parents, subject, checkpoints = entry.split("\x01")
        yield Commit(name, tuple(parents.split()), subject, tuple(checkpoints.split()))


def _conversations(commit: Commit, published: Published) -> set[str]:
    return {
        key
        for checkpoint in commit.checkpoints
        for key in published.conversations.get(checkpoint, ())
    }


def _subjects(commits: dict[str, Commit], made: dict[str, set[str]]) -> Iterator[Case]:
    """Yield each subject once, with the conversations of all commits that have it."""
    right: dict[str, set[str]] = defaultdict(set)
    for name, keys in made.items():
        subject = commits[name].subject
        if len(subject.split()) >= _LEAST_WORDS and _merged(subject) is None:
            right[subject] |= keys
    for subject, keys in right.items():
        yield Case("subject", subject, _sorted(keys))


def _lines_and_files(git: Git, made: dict[str, set[str]]) -> Iterator[Case]:
    """Yield one line of each commit that still has one, and each file that such commits changed."""
    changed = _changed(git)
    lines: dict[str, Case] = {}
    files = []
    for path in sorted(git("ls-files", "-z").split("\0")[:-1]):
        keys = {key for commit in changed[path] for key in made.get(commit, ())}
        if not keys or not (git.place / path).is_file():
            continue
        files.append(Case("file", path, _sorted(keys)))
        for number, (commit, text) in enumerate(_blame(git, path), 1):
            if commit in made and commit not in lines and _tells_something(text):
                lines[commit] = Case("line", path, _sorted(made[commit]), line=number)
    yield from lines.values()
    yield from files


def _changed(git: Git) -> dict[str, set[str]]:
    """Return the commits that changed each file, without those before it got its name."""
    changed: dict[str, set[str]] = defaultdict(set)
    commit = ""
    for part in git("log", "-z", "--name-only", "--no-renames", "--format=%x01%H").split("\0"):
        if "\x01" in part:
            _, _, rest = part.partition("\x01")
            commit, _, part = rest.partition("\n")
        if name := part.strip("\n"):
            changed[name].add(commit)
    return changed


def _blame(git: Git, path: str) -> Iterator[tuple[str, str]]:
    """Yield the commit and the text of each line of a file."""
    commit = ""
    for line in git("blame", "--line-porcelain", "--", path).split("\n"):
        if line.startswith("\t"):
            yield commit, line[1:]
            commit = ""
        elif not commit:
            commit = line.partition(" ")[0]


def _tells_something(line: str) -> bool:
    return len(_letter.findall(line)) >= _LEAST_LETTERS


def _pull_requests(
    git: Git, source: str, commits: dict[str, Commit], made: dict[str, set[str]]
) -> Iterator[Case]:
    right: dict[str, set[str]] = defaultdict(set)
    for commit in commits.values():
        if merged := _merged(commit.subject):
            inside = git("rev-list", f"{commit.parents[0]}..{commit.hash}").split()
            right[merged[1]].update(key for name in inside for key in made.get(name, ()))
        elif (squashed := _squashed(commit.subject)) and commit.hash in made:
            right[squashed[1]] |= made[commit.hash]
    for number, keys in sorted(right.items(), key=lambda pair: int(pair[0])):
        if keys:
            yield Case("pull request", f"{_WEB.format(source)}/pull/{number}", _sorted(keys))
