"""Repositories: which projects are clones or worktrees of one repository.

Git is asked for this by `sync --git` only. Two directories are one repository if, the most certain
first:

1. one is a worktree of the other, or both are of a third (`projects`);
2. they have the same remote `origin`: what git said last, else the newest statement. An agent
   states it, or git printed it in a conversation when it was asked for `origin` by this name in the
   directory of the project;
3. they have the same first commit, which an agent states, and the same name.

A directory of which none of this is known is a repository of its own. Two repositories that are
taken for one are worse than one that is listed twice. So what may be about another directory or
another remote does not count, and a pull request does not, either: a fork opens its own in another
repository.
"""

from __future__ import annotations

import json
import posixpath
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..fields import mapping, string
from ..paths import comparable, slashed
from ..remotes import remote_of

_MOST_CALLS = 100  # of a project whose output is read
_LONGEST = 4_000  # letters of a command that is understood

# These two have the conditions of the indexes tool_calls_git and line_extras_git.
_CALLS = """
select t.started_at, t.target, t.file_id, t.call_id, t.result_id
from sessions s
cross join tool_calls t on t.session_id = s.id
cross join messages r on r.id = t.result_id
cross join files f on f.id = t.file_id
where s.project_id = ? and t.action = 'run'
  and (t.target like '%git %origin%' or t.target like '%git remote -v%')
  and r.copy_of is null
order by t.started_at desc, f.path desc, f.generation desc, t.byte_offset desc, t.block desc
limit ?
"""
_STATED = """
select coalesce(e.timestamp, s.started_at), e.type, e.extra
from sessions s
cross join line_extras e on e.session_id = s.id
cross join files f on f.id = e.file_id
where s.project_id = ? and e.type in (
    'session_meta', 'session.start', 'session.resume', 'session.context_changed', 'project'
)
order by 1 desc, f.path desc, f.generation desc, e.byte_offset desc
"""


# ------------------------------------------------------------------------------------------------
# What conversations state of one project.


def evidence_of(
    connection: sqlite3.Connection, project_id: int, path: str | None
) -> tuple[str | None, str | None]:
    """Return the remote of a project's directory, and the first commit of its repository."""
    if path is None:
        return None, None
    told: dict[str, tuple[str, str]] = {}
    for time, kind, text in connection.execute(_STATED, (project_id,)):
        for name, value in _stated(kind, text):
            told.setdefault(name, (time or "", value))
    printed = _printed(connection, project_id, path)
    remote = max(filter(None, (told.get("remote"), printed)), default=None)
    commit = told.get("first_commit")
    return remote and remote[1], commit and commit[1]


_first_commit = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}").fullmatch


def _stated(kind: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield what a line of an agent states: `remote`, or `first_commit`.

    - Codex: `{"git":{"repository_url":"https://github.com/owner/name.git"}}`;
    - Copilot: `{"data":{"context":{"repository":"owner/name","repositoryHost":"github.com"}}}`;
    - OpenCode: `{"id":"2986f6b1e32dbd0f3807c861e31d88610546d509"}`, the project.
    """
    value = mapping(json.loads(text))
    if kind == "project":
        commit = string(value.get("id")) or ""
        if _first_commit(commit):
            yield "first_commit", commit
        return
    url = string(mapping(value.get("git")).get("repository_url"))
    context = mapping(mapping(value.get("data")).get("context"))
    name, host = string(context.get("repository")), string(context.get("repositoryHost"))
    if name and host:
        url = f"https://{host}/{name}"
    if url and (remote := remote_of(url)):
        yield "remote", str(remote)


# What git prints of a remote that was asked for: `To github.com:owner/name.git`, or a line of
# `git remote -v`.
_printed_remote = re.compile(
    r"^(?:(?:To|From) |origin\t)(\S{1,300})(?: \((?:fetch|push)\))?$", re.MULTILINE
).findall
_only_asks = re.compile(r"git (?:remote get-url|config (?:--get )?remote\.)\s*origin(?:\.url)?")
_shows = re.compile(r"git remote (?:-v|--verbose)")
_transfers = re.compile(r"git (?:push|pull|fetch)\b(.*)")
_elsewhere = re.compile(
    r"(?:^|[\s(])(?:cd|pushd|popd|ssh|docker|podman|kubectl|GIT_DIR=\S*|-C|--git-dir\S*)(?:\s|$)"
).search
_border = re.compile(r"&&|\|\||[;|\n]").split
_moved = re.compile(r"cd (\"[^\"$]+\"|'[^']+'|[^\s\"'$]+)$").match
_other_places = ("cwd", "dir_path", "directory", "workdir")
"""Arguments with which tools run a command in another directory."""


def _printed(connection: sqlite3.Connection, project_id: int, path: str) -> tuple[str, str] | None:
    """Return when git last printed the remote of a directory, and the remote."""
    rows = connection.execute(_CALLS, (project_id, _MOST_CALLS)).fetchall()
    for time, command, file_id, call_id, result_id in rows:
        directory = directory_of(command)
        if directory is None or not (
            comparable(directory) == comparable(path)
            if directory
            else _is_held_in(connection, path, file_id, call_id)
        ):
            continue
        (output,) = connection.execute(
            "select coalesce(tool_text, text) from messages where id = ?", (result_id,)
        ).fetchone()
        if remote := origin_in(command, output or ""):
            return time or "", remote
    return None


def directory_of(command: str) -> str | None:
    """Return where a command runs that asks for `origin`: "" where it is started.

    None if it does not ask for it, for another remote too, or may do so anywhere else.
    """
    steps = _steps(command) if len(command) <= _LONGEST else [""]
    moved = _moved(steps[0])
    asking = steps[1:] if moved else steps
    if any(_elsewhere(step) for step in asking):
        return None
    given = [found[1].split() for step in asking if (found := _transfers.match(step))]
    names = [next((word for word in words if word[:1] != "-"), "") for words in given]
    is_shown = any(_shows.match(step) or _only_asks.match(step) for step in asking)
    if not (names or is_shown) or any(name != "origin" for name in names):
        return None
    return slashed(moved[1].strip("\"'")) if moved else ""


def _steps(command: str) -> list[str]:
    return [step.strip() for step in _border(command.strip())]


def _is_held_in(
    connection: sqlite3.Connection, path: str, file_id: int, call_id: int | None
) -> bool:
    """Was a transcript held in this directory only, and did a call not name another one?"""
    rows = connection.execute(
        "select path from working_directories where file_id = ?", (file_id,)
    ).fetchall()
    places = {comparable(place) for (place,) in rows}
    given = connection.execute(
        "select coalesce(tool_text, text) from messages where id = ?", (call_id,)
    ).fetchone()
    try:
        arguments = mapping(json.loads(given[0])) if given and given[0] else {}
    except ValueError:  # cut, or no JSON: a command alone
        arguments = {}
    named = (string(arguments.get(name)) for name in _other_places)
    places |= {comparable(place) for place in named if place}
    return places <= {comparable(path)}


def origin_in(command: str, output: str) -> str | None:
    """Return the remote that git printed, None if it printed none, or several."""
    printed = _printed_remote(output)
    if not printed and _only_asks.match(_steps(command)[-1]):
        printed = output.split()
    remotes = {str(remote) for url in printed if (remote := remote_of(url))}
    return remotes.pop() if len(remotes) == 1 else None


# ------------------------------------------------------------------------------------------------
# Which projects are one repository, and what it is called.


# Those that agents of this machine know come first, as for `same_as`.
_PROJECTS = """
select
    p.id, coalesce(p.path, r.root || '#' || p.key), p.name, coalesce(o.path, p.repository),
    coalesce(p.git_remote, p.remote), p.git_remote is not null,
    coalesce(p.git_first_commit, p.first_commit),
    p.repository_key, p.repository_name
from projects p
join sources r on r.id = p.source_id
left join projects o on o.id = p.parent_id
order by r.is_agent desc, r.root, p.key
"""


@dataclass
class _Directory:
    """What is known of a directory, whichever agents know it."""

    place: str
    name: str | None = None
    worktree_of: str | None = None
    remote: str | None = None
    is_certain: int = 0
    """1: git said what the remote is."""
    first_commit: str | None = None


def refresh_repositories(connection: sqlite3.Connection) -> None:
    """Find out which projects are one repository, and give each a name that no other has."""
    rows = connection.execute(_PROJECTS).fetchall()
    directories: dict[str, _Directory] = {}
    for _, place, name, worktree_of, remote, is_certain, first_commit, *_ in rows:
        own = directories.setdefault(comparable(place), _Directory(place))
        own.name = own.name or name
        own.worktree_of = own.worktree_of or worktree_of
        if remote and (own.remote is None or is_certain > own.is_certain):
            own.remote, own.is_certain = remote, is_certain
        own.first_commit = own.first_commit or first_commit
    for own in [*directories.values()]:
        if own.worktree_of:
            directories.setdefault(comparable(own.worktree_of), _Directory(own.worktree_of))
    named = _named(directories)
    connection.executemany(
        "update projects set repository_key = ?, repository_name = ? where id = ?",
        [
            (*named[comparable(place)], id_)
            for id_, place, *_, key, name in rows
            if named[comparable(place)] != (key, name)
        ],
    )


def _named(directories: Mapping[str, _Directory]) -> dict[str, tuple[str, str]]:
    """Return the key and the name of the repository of each directory."""
    keys: dict[str, str] = {}
    texts: dict[str, tuple[str, ...]] = {}
    for top, members in _families(directories):
        name = top.name or posixpath.basename(slashed(top.place)).removesuffix(".git")
        of_top = top.remote or _only({one.remote for one in members})
        commit = top.first_commit or _only({one.first_commit for one in members})
        for own in members:
            if address := own.remote or of_top:
                key, shown = address.casefold(), (address.partition("/")[2], address)
            else:
                place = comparable(top.place)
                key = f"{commit} {name}" if commit else place
                shown = (name or place, slashed(top.place))
            keys[comparable(own.place)] = key
            texts[key] = min(texts.get(key, shown), shown)
    taken = Counter(
        text for key, shown in texts.items() for text in {one.casefold() for one in (*shown, key)}
    )
    names = {
        key: next((text for text in shown if taken[text.casefold()] == 1), key)
        for key, shown in texts.items()
    }
    return {place: (key, names[key]) for place, key in keys.items()}


def _families(
    directories: Mapping[str, _Directory],
) -> list[tuple[_Directory, list[_Directory]]]:
    """Return each repository with its directory and its worktrees."""
    families: dict[str, list[_Directory]] = {}
    for place in directories:
        families.setdefault(_top(directories, place), []).append(directories[place])
    return [(directories[top], members) for top, members in families.items()]


def _top(directories: Mapping[str, _Directory], place: str) -> str:
    """Return the directory of the repository that one is a worktree of, at last; else itself.

    If the links form a cycle, nothing in it is a worktree.
    """
    at, seen = place, {place}
    while above := directories[at].worktree_of:
        at = comparable(above)
        if at in seen:
            return place
        seen.add(at)
    return at


def _only(values: set[str | None]) -> str | None:
    """Return the only text of a set, None if there are several."""
    texts = values - {None}
    return texts.pop() if len(texts) == 1 else None
