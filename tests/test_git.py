"""`sync --git` asks git about projects on this disk, and nothing in them can start a program."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.planted import password, planted, private_key
from tests.support.shell import Shell
from tests.support.writing import SESSION, user, write

from assoc_ingest import git as git_program
from assoc_ingest.secrets.forget import fingerprint
from assoc_ingest.sync import git
from assoc_ingest.sync.git import Branch, Change
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_same, check, dump, rows
from assoc_ingest.upkeep.compact import compact
from assoc_ingest.upkeep.forget import Target, forget
from assoc_ingest.upkeep.prune import prune_gone
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.verify import verify

pytestmark = pytest.mark.skipif(not git_program.is_installed(), reason="git is not installed")

ASK = SyncOptions(git=True)
TREE = "20e50a07feffafe7699bf38ff4027a606f406eaa"
"""The tree of the first commit: one file, a.txt."""


def run(directory: Path, *arguments: str | bytes) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "-C", directory, *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "garden"
    place.mkdir()
    run(place, "init", "-b", "trunk")
    (place / "a.txt").write_text("one\n")
    run(place, "add", ".")
    run(place, "commit", "-m", "first")
    return place


def begin_a_conflict(repository: Path) -> None:
    run(repository, "checkout", "-b", "side")
    (repository / "a.txt").write_text("side\n")
    run(repository, "commit", "-am", "side")
    run(repository, "checkout", "trunk")
    (repository / "a.txt").write_text("trunk\n")
    run(repository, "commit", "-am", "trunk")
    with pytest.raises(subprocess.CalledProcessError):
        run(repository, "merge", "side")


def looked_at(directory: Path) -> git.GitFacts:
    facts = git.look_at(str(directory))
    assert facts is not None
    return facts


# -- what git says -------------------------------------------------------------------------------


def test_a_clean_repository_has_a_branch(repository: Path) -> None:
    facts = looked_at(repository)
    assert facts == git.GitFacts(
        "trunk", 0, (), (Branch("trunk", True),), first_commit=facts.first_commit
    )
    assert not facts.is_dirty
    assert re.fullmatch("[0-9a-f]{40}", facts.first_commit or "")


def test_a_changed_and_a_new_file_make_it_dirty(repository: Path) -> None:
    (repository / "new.txt").write_text("two\n")
    facts = looked_at(repository)
    assert (facts.branch, facts.is_dirty) == ("trunk", True)


def test_every_change_has_its_status_and_letter(repository: Path) -> None:
    for name in ("deleted", "renamed", "staged", "twice", "link"):
        (repository / name).write_text(f"{name} has some text\n" * 9)
    run(repository, "add", ".")
    run(repository, "commit", "-m", "second")
    run(repository, "rm", "deleted")
    run(repository, "mv", "renamed", "? new name")
    for name in ("staged", "twice"):
        (repository / name).write_text("other\n")
        run(repository, "add", name)
    (repository / "twice").write_text("other again\n")
    (repository / "a.txt").unlink()
    (repository / "link").unlink()
    (repository / "link").symlink_to("staged")
    (repository / "added").write_text("added\n")
    run(repository, "add", "added")
    (repository / "sub").mkdir()
    (repository / "sub" / "untracked").write_text("x")
    facts = looked_at(repository)
    assert sorted(facts.changes) == [
        Change("? new name", "staged", "R"),
        Change("a.txt", "unstaged", "D"),
        Change("added", "staged", "A"),
        Change("deleted", "staged", "D"),
        Change("link", "unstaged", "T"),
        Change("staged", "staged", "M"),
        Change("sub/", "untracked", "?"),
        Change("twice", "staged", "M"),
        Change("twice", "unstaged", "M"),
    ]
    assert facts.change_count == 9


def test_a_conflict_is_unmerged(repository: Path) -> None:
    begin_a_conflict(repository)
    assert looked_at(repository).changes == (Change("a.txt", "unstaged", "U"),)


def test_a_renamed_file_whose_old_name_looks_like_an_entry(repository: Path) -> None:
    (repository / "? fake").write_text("some text that is long enough to be found again\n" * 9)
    run(repository, "add", ".")
    run(repository, "commit", "-m", "second")
    run(repository, "mv", "? fake", "real")
    assert looked_at(repository).changes == (Change("real", "staged", "R"),)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_odd_names_are_kept_as_text(repository: Path) -> None:
    names = [b"with\nline\tand space ", b"\xff\xfe", "\u00fc\u4e2d".encode(), b'"quoted"']
    for name in names:
        Path(os.fsdecode(os.fsencode(repository) + b"/" + name)).write_text("x")
    found = {change.path for change in looked_at(repository).changes}
    assert found == {"with\nline\tand space ", "\\xff\\xfe", "\u00fc\u4e2d", '"quoted"'}


def test_all_branches_are_listed_the_current_one_first(repository: Path) -> None:
    for name in ("alpha", "zeta/one"):
        run(repository, "branch", name)
    run(repository, "checkout", "zeta/one")
    assert looked_at(repository).branches == (
        Branch("zeta/one", True),
        Branch("alpha", False),
        Branch("trunk", False),
    )


def test_a_detached_head_has_no_branch(repository: Path) -> None:
    run(repository, "checkout", "--detach")
    facts = looked_at(repository)
    assert (facts.branch, facts.branches) == (None, (Branch("trunk", False),))


def test_a_repository_without_a_commit_has_a_branch_to_be(tmp_path: Path) -> None:
    run(tmp_path, "init", "-b", "trunk")
    (tmp_path / "a.txt").write_text("one\n")
    facts = looked_at(tmp_path)
    assert (facts.branch, facts.branches) == ("trunk", ())
    assert facts.changes == (Change("a.txt", "untracked", "?"),)


def test_of_a_directory_in_a_repository_only_its_own_changes_count(repository: Path) -> None:
    (repository / "sub").mkdir()
    (repository / "sub" / "tracked").write_text("x")
    run(repository, "add", ".")
    run(repository, "commit", "-m", "second")
    (repository / "a.txt").write_text("two\n")
    assert looked_at(repository / "sub").changes == ()
    (repository / "sub" / "tracked").write_text("y")
    assert looked_at(repository / "sub").changes == (Change("sub/tracked", "unstaged", "M"),)


def test_a_directory_without_repository_says_nothing(tmp_path: Path) -> None:
    assert git.look_at(str(tmp_path)) is None


# -- what changes add and remove -----------------------------------------------------------------

DIFF = "select path, status, kind, text from git_diff_lines order by path, status, position"


def test_seeds_a_diff_is_kept_as_header_hunk_add_remove_and_context_lines(
    repository: Path, home: Path, shell: Shell
) -> None:
    """git diff: with --git, the diff of what is changed, staged and not."""
    (repository / "a.txt").write_text("one\nstaged\n")
    run(repository, "add", ".")
    (repository / "a.txt").write_text("other\nstaged\n")
    (repository / "new.txt").write_text("untracked\n")
    assert shell("sync", str(home), "--git") == 0
    staged, unstaged = (
        [(kind, text) for _, status, kind, text in rows(shell.database, DIFF) if status == wanted]
        for wanted in ("staged", "unstaged")
    )
    assert [kind for kind, _ in staged] == [*["header"] * 4, "hunk", "context", "add"]
    assert staged[2:] == [
        ("header", "--- a/a.txt"), ("header", "+++ b/a.txt"), ("hunk", "@@ -1 +1,2 @@"),
        ("context", "one"), ("add", "staged"),
    ]  # fmt: skip
    assert unstaged[4:] == [
        ("hunk", "@@ -1,2 +1,2 @@"), ("remove", "one"), ("add", "other"), ("context", "staged"),
    ]  # fmt: skip
    asked = shell.items("query", "git_diff", "-p", "project", "garden")
    assert [(row["kind"], row["text"]) for row in asked] == [*staged, *unstaged]  # type: ignore[index]
    cut = "select path, status, is_diff_cut from git_changes order by path, status"
    assert rows(shell.database, cut) == [
        ("a.txt", "staged", 0), ("a.txt", "unstaged", 0), ("new.txt", "untracked", None),
    ]  # fmt: skip
    run(repository, "checkout", "HEAD", "a.txt")
    assert shell("sync", str(home), "--git") == 0
    assert rows(shell.database, DIFF) == []


def changed_lines(directory: Path) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """What is added and removed, by path and status."""
    facts = looked_at(directory)
    listed = {change[:2] for change in facts.changes if change.status != "untracked"}
    assert facts.diffs.keys() == listed
    assert not any(diff.is_cut for diff in facts.diffs.values())
    return {
        key: [line for line in diff.lines if line[0] in ("add", "remove")]
        for key, diff in facts.diffs.items()
    }


def test_every_kind_of_change_has_its_diff(repository: Path) -> None:
    kept = {name: f"{name} has some text\n" * 9 for name in ("renamed", "link", "deleted", "mode")}
    for name, text in kept.items():
        (repository / name).write_text(text)
    (repository / "picture").write_bytes(bytes(range(256)))
    (repository / "crlf").write_bytes(b"one\r\ntwo\r\n")
    (repository / "form").write_bytes(b"a\x0cb\x85c\rd\xff\n")
    (repository / "minus").write_text("-- a/x\n++ b/x\ndiff --git a/x b/x\n")
    run(repository, "add", ".")
    run(repository, "commit", "-m", "second")
    run(repository, "mv", "renamed", "moved")
    with (repository / "moved").open("a") as file:
        file.write("more\n")
    run(repository, "rm", "deleted")
    run(repository, "add", ".")
    (repository / "link").unlink()
    (repository / "link").symlink_to("moved")
    (repository / "mode").chmod(0o755)
    (repository / "picture").write_bytes(bytes(range(255)))
    (repository / "crlf").write_bytes(b"one\r\nthree")
    (repository / "form").write_bytes(b"a\x0cb\x85c\rd\xfe\n")
    (repository / "minus").write_text("")
    assert changed_lines(repository) == {
        ("moved", "staged"): [("add", "more")],
        ("deleted", "staged"): [("remove", "deleted has some text")] * 9,
        ("link", "unstaged"): [*[("remove", "link has some text")] * 9, ("add", "moved")],
        ("mode", "unstaged"): [],
        ("picture", "unstaged"): [],
        ("crlf", "unstaged"): [("remove", "two\r"), ("add", "three")],
        ("form", "unstaged"): [
            ("remove", "a\x0cb\\x85c\rd\\xff"), ("add", "a\x0cb\\x85c\rd\\xfe"),
        ],
        ("minus", "unstaged"): [
            ("remove", "-- a/x"), ("remove", "++ b/x"), ("remove", "diff --git a/x b/x"),
        ],
    }  # fmt: skip
    headers = [text for _, text in looked_at(repository).diffs["picture", "unstaged"].lines]
    assert "Binary files a/picture and b/picture differ" in headers


def test_a_conflict_has_the_diff_from_our_side(repository: Path) -> None:
    begin_a_conflict(repository)
    ((key, lines),) = changed_lines(repository).items()
    assert key == ("a.txt", "unstaged")
    assert [text for _, text in lines] == ["<<<<<<< HEAD", "=======", "side", ">>>>>>> side"]
    with pytest.raises(subprocess.CalledProcessError):
        run(repository, "commit", "-m", "unmerged")
    run(repository, "merge", "--abort")
    run(repository, "rm", "a.txt")
    run(repository, "commit", "-m", "deleted")
    with pytest.raises(subprocess.CalledProcessError):
        run(repository, "merge", "side")
    assert looked_at(repository).changes == (Change("a.txt", "unstaged", "U"),)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_diffs_of_odd_names_are_told_apart(repository: Path) -> None:
    names = [
        *(b"with\nline\tand space ", b"\xff\xfe", "\u00fc\u4e2d".encode(), b'"quoted"'),
        *(b"back\\slash", b" b/x", b"x b/x", b"a b/a b", b"\x01\x7f", b"\\303\\274"),
        *(b"tab\t", b"--", b"@@ -1 +1 @@"),
    ]
    place = os.fsencode(repository)
    for name in names:
        path = Path(os.fsdecode(place + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        path.write_text("one\n")
    run(repository, "add", ".")
    run(repository, "commit", "-m", "second")
    for number, name in enumerate(names):
        Path(os.fsdecode(place + b"/" + name)).write_text(f"{number}\n")
    assert changed_lines(repository) == {
        (name.decode("utf-8", "backslashreplace"), "unstaged"): [
            ("remove", "one"), ("add", f"{number}"),
        ]
        for number, name in enumerate(names)
    }  # fmt: skip


_PIECES = [
    *(b"diff --git a/x b/x\n", b'diff --git "a/\\7" "b/\\777"\n', b"diff --git \n"),
    *(b"diff --cc x\n", b"* Unmerged path x\n", b"rename to \n", b'copy to "\\'),
    *(b"@@ -1 +1 @@ x\n", b"@@ -0,0 +1,9 @@\n", b"@@@ -1 -1 +1 @@@\n", b"+a\n", b"-b\n"),
    *(b" c\n", b"\n", b"\\ No newline\n", b"\0\r\xff", b"--- a/x\n"),
]


def test_settings_of_a_repository_do_not_change_a_diff(repository: Path) -> None:
    (repository / "a.txt").write_text("".join(f"{n}\n\n" for n in range(30)))
    run(repository, "commit", "-am", "second")
    (repository / "a.txt").write_text("".join(f"{n + (n == 15)}\n\n" for n in range(30)))
    plain = looked_at(repository).diffs
    (repository / ".git" / "order").write_text("z*\n")
    for setting in (
        "diff.noPrefix=true", "diff.mnemonicPrefix=true", "diff.context=0", "color.diff=always",
        "diff.suppressBlankEmpty=true", f"diff.orderFile={repository}/.git/order",
        "diff.algorithm=patience", "diff.wordRegex=.", "diff.colorMoved=zebra",
        "core.quotePath=true", "diff.relative=true", "diff.interHunkContext=40",
        "diff.renames=false", "core.pager=false", "color.ui=always",
    ):  # fmt: skip
        run(repository, "config", *setting.split("="))
    assert looked_at(repository).diffs == plain


@given(st.lists(st.sampled_from(_PIECES), max_size=30), st.integers(0, 3))
def test_any_output_is_taken_apart(pieces: list[bytes], cut: int) -> None:
    """However git is made to print it, or wherever its output ends."""
    answer = b"".join(pieces)[: -cut or None]
    lines = [line for _, lines in git._patches(answer) for line in lines]
    assert len(lines) == answer.count(b"\n")


def test_submodules_are_left_alone(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    run(tmp_path / "part", "init")
    (tmp_path / "part" / "b.txt").write_text("one\n")
    run(tmp_path / "part", "add", ".")
    run(tmp_path / "part", "commit", "-m", "first")
    allowed = ("-c", "protocol.file.allow=always")
    run(repository, *allowed, "submodule", "add", str(tmp_path / "part"), "part")
    run(repository, "commit", "-m", "second")
    (repository / "part" / "b.txt").write_text("two\n")
    run(repository, "config", "diff.submodule", "diff")
    assert changed_lines(repository) == {}


@pytest.mark.parametrize("bound", ["MOST_DIFF_LINES", "MOST_DIFF_BYTES", "_SECONDS"])
def test_a_diff_is_bounded_and_says_so(
    bound: str, repository: Path, home: Path, fresh: Callable[[], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name in ("a.txt", "b.txt", "c.txt"):
        (repository / name).write_text("one\n")
    run(repository, "add", ".")
    run(repository, "commit", "-m", "second")
    (repository / "a.txt").write_text("two\n")
    (repository / "b.txt").write_text("line\n" * 500)
    (repository / "c.txt").write_text("two\n")
    monkeypatch.setattr(git, bound, {"MOST_DIFF_LINES": 50, "MOST_DIFF_BYTES": 1500}.get(bound, 5))
    if bound == "_SECONDS":  # git answers what is changed, and not how
        ask = git_program.ask
        monkeypatch.setattr(git_program, "ask", lambda *given: None if given[3:] else ask(*given))
    database = fresh()
    sync(database, [home], ASK)
    counts = "select path, count(*) from git_diff_lines group by path order by path"
    cut = "select path, is_diff_cut from git_changes order by path"
    kept = dict(rows(database, counts))
    assert (
        rows(database, cut)
        == {
            "MOST_DIFF_LINES": [("a.txt", 0), ("b.txt", 1), ("c.txt", 0)],
            "MOST_DIFF_BYTES": [("a.txt", 0), ("b.txt", 1), ("c.txt", 1)],
            "_SECONDS": [("a.txt", 1), ("b.txt", 1), ("c.txt", 1)],
        }[bound]
    )
    assert kept.get("a.txt") == (None if bound == "_SECONDS" else 7)
    assert kept.get("c.txt") == (7 if bound == "MOST_DIFF_LINES" else None)
    if bound == "MOST_DIFF_LINES":
        assert kept["b.txt"] == 50
    elif bound == "MOST_DIFF_BYTES":
        assert 100 < kept["b.txt"] < 300


def test_a_credential_in_a_diff_is_never_stored(repository: Path, home: Path, shell: Shell) -> None:
    token, key = planted()["github"], private_key()
    (repository / "a.txt").write_text(f"TOKEN={token}\n{key}\nDB_PASSWORD=Tr0ub4dor&3x\nplain\n")
    assert shell("sync", str(home), "--git") == 0
    texts = [text for *_, text in rows(shell.database, DIFF)]
    assert "plain" in texts
    stored = shell.database.read_bytes()
    for secret in (token, key.splitlines()[1], "Tr0ub4dor"):
        assert secret.encode() not in stored


def test_a_forgotten_credential_does_not_come_back_in_a_diff(
    repository: Path, home: Path, shell: Shell
) -> None:
    """There, nothing but its hash tells it from any other word."""
    word = password()
    line = user(f"export DB_PASSWORD={word}", cwd=str(repository))
    write(home, f"projects/-garden/{SESSION}.jsonl", line)
    (repository / "a.txt").write_text(f"x {word} y\n")
    assert shell("sync", str(home), "--git") == 0
    added = "select text from git_diff_lines where kind = 'add'"
    assert rows(shell.database, added) == [(f"x {word} y",)]
    assert shell("forget", "--secret", fingerprint(word), "--yes") == 0
    blanked = [(f"x {' ' * len(word)} y",)]
    assert rows(shell.database, added) == blanked
    assert shell("sync", str(home), "--git") == 0
    assert rows(shell.database, added) == blanked
    assert word.encode() not in shell.database.read_bytes()


def test_a_forgotten_credential_does_not_come_back_in_a_name(
    repository: Path, home: Path, shell: Shell
) -> None:
    """Of a file, a branch, or the directory of the repository that has the worktree."""
    word, tree = password(), repository.parent / "tree"
    main = repository.rename(repository.parent / f"of-{word}")
    run(main, "worktree", "add", "-b", f"fix/{word}", tree)
    for name in (f"new-{word}.txt", f"staged {word}"):
        (tree / name).write_text("two\n")
    run(tree, "add", f"staged {word}")
    line = user(f"export DB_PASSWORD={word}", cwd=str(tree))
    write(home, f"projects/-garden/{SESSION}.jsonl", line)
    assert shell("sync", str(home), "--git") == 0
    names = (
        "select path from git_changes union all select name from git_branches"
        " union all select head_branch || git_branch || git_repository from projects"
        " union all select text from git_diff_lines"
    )
    before = rows(shell.database, names)
    assert sum(word in name for (name,) in before) == 6
    blanked = sorted((name.replace(word, " " * len(word)),) for (name,) in before)
    assert shell("forget", "--secret", fingerprint(word), "--yes") == 0
    assert sorted(rows(shell.database, names)) == blanked
    assert shell("sync", str(home), "--git") == 0
    assert sorted(rows(shell.database, names)) == blanked
    assert word.encode() not in shell.database.read_bytes()


# -- limits --------------------------------------------------------------------------------------


def test_of_very_many_changes_some_are_kept_and_all_counted(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "MOST_ENTRIES", 5)
    for number in range(30):
        (repository / f"new {number:02d}").write_text("x")
    facts = looked_at(repository)
    assert facts.change_count == 30
    assert [change.path for change in facts.changes] == [f"new {number:02d}" for number in range(5)]


def test_an_answer_of_any_length_is_read_up_to_a_limit(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        (repository / f"{number:03d}{'x' * 40}").write_text("x")
    monkeypatch.setattr(git_program, "MOST_BYTES", 5000)
    facts = looked_at(repository)
    assert 50 < facts.change_count < 300
    assert {len(change.path) for change in facts.changes} == {43}, "no name is cut"


@pytest.mark.slow
def test_a_git_that_takes_too_long_is_ended_with_all_that_it_started(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nsleep 1000 &\nsleep 1000\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(git, "_SECONDS", 1)
    before = set(threading.enumerate())
    assert git.look_at(str(repository)) is None
    assert (tmp_path / "started").exists()
    for reader in set(threading.enumerate()) - before:
        reader.join(60)  # it reads as long as anyone holds the other end
        assert not reader.is_alive()


# -- what git may not do -------------------------------------------------------------------------


def filtered(repository: Path, setting: str) -> Callable[[str], None]:
    def plant(program: str) -> None:
        run(repository, "config", setting, program)
        name = setting.removeprefix("filter.").rpartition(".")[0]
        (repository / ".git" / "info").mkdir(exist_ok=True)
        (repository / ".git" / "info" / "attributes").write_text(f"* filter={name}\n")
        (repository / "a.txt").write_text("two\n")

    return plant


def included(repository: Path) -> Callable[[str], None]:
    def plant(program: str) -> None:
        other = repository / ".git" / "other"
        other.write_text(f'[filter "far"]\n\tclean = {program}\n')
        run(repository, "config", "include.path", str(other))
        (repository / ".gitattributes").write_text("* filter=far\n")
        (repository / "a.txt").write_text("two\n")

    return plant


def hooked(repository: Path) -> Callable[[str], None]:
    def plant(program: str) -> None:
        hook = repository / ".git" / "hooks" / "post-index-change"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{program}\n")
        hook.chmod(0o755)
        os.utime(repository / "a.txt", (1, 1))

    return plant


def partial_clone(repository: Path) -> Callable[[str], None]:
    def plant(program: str) -> None:
        run(repository, "config", "core.sshCommand", program)
        run(repository, "config", "extensions.partialClone", "origin")
        run(repository, "config", "core.repositoryFormatVersion", "1")
        run(repository, "config", "remote.origin.url", "ssh://example.invalid/x")
        run(repository, "config", "remote.origin.promisor", "true")
        run(repository, "config", "protocol.ssh.allow", "always")
        tree = repository / ".git" / "objects" / TREE[:2] / TREE[2:]
        tree.unlink(missing_ok=True)

    return plant


def configured(repository: Path, setting: str) -> Callable[[str], None]:
    return lambda program: run(repository, "config", setting, program)


def attributed(repository: Path, setting: str) -> Callable[[str], None]:
    def plant(program: str) -> None:
        run(repository, "config", f"diff.evil.{setting}", f"{program}; cat")
        (repository / ".git" / "info").mkdir(exist_ok=True)
        (repository / ".git" / "info" / "attributes").write_text("* diff=evil\n")
        (repository / "a.txt").write_text("two\n")

    return plant


PROGRAMS = {
    "a file system monitor": lambda place: configured(place, "core.fsmonitor"),
    "a filter": lambda place: filtered(place, "filter.evil.clean"),
    "a filter that stays": lambda place: filtered(place, "filter.evil.process"),
    "a filter with a strange name": lambda place: filtered(place, "filter.e.v-I.l.clean"),
    "a filter in another file": included,
    "a program that compares": lambda place: attributed(place, "command"),
    "a program that makes text of a file": lambda place: attributed(place, "textconv"),
    "a hook": hooked,
    "the other side of a partial clone": partial_clone,
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_hostile_repository_starts_nothing(kind: str, repository: Path, tmp_path: Path) -> None:
    """What git alone would start, by the same question, is not started."""
    witness = tmp_path / "started"
    PROGRAMS[kind](repository)(f"touch {witness}")
    for command in ("status", "diff"):
        subprocess.run(["git", "-C", repository, command], check=False, capture_output=True)
    assert witness.exists(), "git alone starts it"
    witness.unlink()
    PROGRAMS[kind](repository)(f"touch {witness}")
    facts = git.look_at(str(repository))
    assert not witness.exists()
    assert facts is None or facts.branch == "trunk"


def test_a_filter_that_cannot_be_switched_off_is_a_reason_not_to_look(
    repository: Path, tmp_path: Path
) -> None:
    witness = tmp_path / "started"
    with (repository / ".git" / "config").open("a") as file:
        file.write(f'[filter "evil=x"]\n\tclean = touch {witness}\n')
    (repository / ".gitattributes").write_text("* filter=evil=x\n")
    (repository / "a.txt").write_text("two\n")
    subprocess.run(["git", "-C", repository, "status"], check=False, capture_output=True)
    assert witness.exists(), "git alone starts it"
    witness.unlink()
    (repository / "a.txt").write_text("three\n")
    assert git.look_at(str(repository)) is None
    assert not witness.exists()


def test_a_program_called_git_in_the_project_is_not_started(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = tmp_path / "started"
    (repository / "git").write_text(f"#!/bin/sh\ntouch {witness}\n")
    (repository / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    assert looked_at(repository).branch == "trunk"
    assert not witness.exists()


def test_nothing_is_written_into_a_repository(repository: Path) -> None:
    os.utime(repository / "a.txt", (1, 1))  # git alone would note that in its index
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*")}
    assert looked_at(repository).changes == ()
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*")} == before


def test_the_repository_of_another_user_is_left_alone(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_program, "KEPT_VARIABLES", ("GIT_TEST_ASSUME_DIFFERENT_OWNER",))
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert git.look_at(str(repository)) is None


def test_variables_that_name_another_repository_are_ignored(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook of git that starts a sync passes them on."""
    run(tmp_path, "init", "-b", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert looked_at(repository).branches == (Branch("trunk", True),)


# -- what the database keeps ---------------------------------------------------------------------


@pytest.fixture
def home(repository: Path, tmp_path: Path) -> Path:
    """A home of Claude Code with one session in the repository."""
    claude = tmp_path / "claude"
    write(claude, f"projects/-garden/{SESSION}.jsonl", user("hello", cwd=str(repository)))
    return claude


CHANGES = "select path, status, letter from git_changes order by path, status"
BRANCHES = "select name, is_current from git_branches order by name"


def test_a_sync_that_asks_git_replaces_what_it_said(
    repository: Path, home: Path, fresh: Callable[[], Path]
) -> None:
    database = fresh()
    (repository / "new.txt").write_text("x")
    sync(database, [home])
    assert rows(database, CHANGES) == rows(database, BRANCHES) == []
    sync(database, [home], ASK)
    assert rows(database, CHANGES) == [("new.txt", "untracked", "?")]
    assert rows(database, BRANCHES) == [("trunk", 1)]
    state = "select head_branch, git_branch, is_dirty, change_count from projects"
    assert rows(database, state) == [("trunk", "trunk", 1, 1)]
    run(repository, "checkout", "-b", "other")
    (repository / "new.txt").unlink()
    (repository / "a.txt").write_text("two\n")
    sync(database, [home])
    assert rows(database, CHANGES) == [("new.txt", "untracked", "?")], "nobody asked"
    sync(database, [home], ASK)
    assert rows(database, CHANGES) == [("a.txt", "unstaged", "M")]
    assert rows(database, BRANCHES) == [("other", 1), ("trunk", 0)]
    seen = "select distinct seen_at from git_changes union select git_seen_at from projects"
    assert len(rows(database, seen)) == 1
    check(database, home)


def test_a_worktree_is_called_after_the_repository_that_git_names(
    repository: Path, home: Path, tmp_path: Path, fresh: Callable[[], Path]
) -> None:
    """Nothing else tells: it lies anywhere, and is but a number."""
    database, worktree, inside = fresh(), tmp_path / "3", tmp_path / "3" / "beds"
    run(repository, "worktree", "add", "-b", "feature-x", str(worktree))
    inside.mkdir()
    for number, place in enumerate((worktree, inside)):
        line = user("hello", cwd=str(place), sessionId=f"{number}{SESSION[1:]}")
        write(home, f"projects/-place-{number}/{number}{SESSION[1:]}.jsonl", line)
    names = "select name from projects order by path"
    sync(database, [home])
    assert rows(database, names) == [("3",), ("beds",), ("garden",)]
    sync(database, [home], ASK)
    assert rows(database, names) == [("garden · feature-x",), ("beds",), ("garden",)]
    assert rows(
        database,
        "select p.repository, o.name from projects p join projects o on o.id = p.parent_id",
    ) == [(str(repository), "garden")]
    check(database)
    run(worktree, "checkout", "-b", "feature-y")
    sync(database, [home], ASK)
    assert rows(database, names)[0] == ("garden · feature-y",)
    rebuild(database)
    assert rows(database, names)[0] == ("garden · feature-y",), "nobody asked again"


def test_what_git_said_of_a_project_that_left_the_disk_stays_with_its_time(
    repository: Path, home: Path, tmp_path: Path, fresh: Callable[[], Path]
) -> None:
    database = fresh()
    (repository / "new.txt").write_text("x")
    sync(database, [home], ASK)
    before = rows(database, "select * from git_changes union all select * from git_changes")
    repository.rename(tmp_path / "unmounted")
    sync(database, [home], ASK)
    assert rows(database, "select on_disk from projects") == [(0,)]
    assert rows(database, "select * from git_changes union all select * from git_changes") == before


def test_what_git_said_stays_when_it_does_not_answer(
    repository: Path, home: Path, fresh: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = fresh()
    (repository / "new.txt").write_text("x")
    sync(database, [home], ASK)
    with monkeypatch.context() as patched:
        patched.setattr(git, "_SECONDS", 0)
        sync(database, [home], ASK)
    assert rows(database, CHANGES) == [("new.txt", "untracked", "?")]


def test_nothing_stays_of_a_repository_that_is_none_any_more(
    repository: Path, home: Path, tmp_path: Path, fresh: Callable[[], Path]
) -> None:
    database = fresh()
    (repository / "new.txt").write_text("x")
    sync(database, [home], ASK)
    (repository / ".git").rename(tmp_path / "no longer")
    sync(database, [home], ASK)
    assert rows(database, CHANGES) == rows(database, BRANCHES) == []
    assert rows(database, "select git_seen_at, change_count from projects") == [(None, None)]


def test_projects_with_one_directory_are_asked_once(
    repository: Path, home: Path, tmp_path: Path, fresh: Callable[[], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    chats = tmp_path / "ccinsights"
    write(chats, "projects.json", {str(repository): {"id": "a1", "name": "G", "worktrees": {}}})
    (repository / "new.txt").write_text("x")
    asked: list[str] = []
    look_at = git.look_at
    monkeypatch.setattr(
        git, "look_at", lambda path, *rest: asked.append(path) or look_at(path, *rest)
    )
    database = fresh()
    sync(database, [home, chats], ASK)
    assert asked == [str(repository)]
    assert rows(database, "select count(distinct project_id), count(*) from git_changes") == [
        (2, 2)
    ]


@pytest.mark.slow
def test_rebuilding_verifying_and_compacting_leave_it_alone(
    repository: Path, home: Path, fresh: Callable[[], Path]
) -> None:
    database = fresh()
    (repository / "new.txt").write_text("x")
    sync(database, [home], ASK)
    assert verify(database).findings == []
    tables = ("projects", "git_changes", "git_branches")
    before = [rows(database, f"select * from {table}") for table in tables]
    assert all(before)
    rebuild(database)
    compact(database)
    assert [rows(database, f"select * from {table}") for table in tables] == before
    plain = fresh()
    sync(plain, [home])
    assert_same({**dump(plain), "projects": []}, {**dump(database), "projects": []})


@pytest.mark.parametrize("way", ["prune", "forget"])
def test_it_goes_with_the_last_session_of_its_project(
    way: str, repository: Path, home: Path, fresh: Callable[[], Path]
) -> None:
    database = fresh()
    (repository / "new.txt").write_text("x")
    write(home, "projects/-other/9f000000-0000-4000-8000-000000000001.jsonl", user("stays"))
    sync(database, [home], ASK)
    assert rows(database, CHANGES) != []
    if way == "prune":
        shutil.rmtree(home / "projects/-garden")
        sync(database, [home])
        prune_gone(database, None, dry_run=False)
    else:
        target = Target(SESSION)
        forget(database, target, with_copies=False, dry_run=False, announce=lambda _: None)
    assert rows(database, CHANGES) == rows(database, BRANCHES) == []
    assert rows(database, "select count(*) from projects") == [(1,)]
    check(database)


def test_without_a_git_to_ask_a_sync_says_so(
    home: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert shell("sync", str(home), "--git") == 2
    assert shell.err == (
        "Error: git was not found on this machine. Install it, or leave out --git.\n"
    )
    assert not shell.database.exists()


def test_the_question_what_is_not_committed_is_answered(
    repository: Path, home: Path, shell: Shell
) -> None:
    (repository / "new.txt").write_text("x")
    assert shell("sync", str(home), "--git") == 0
    assert shell("query", "git_changes", "-p", "project", "garden", "--json") == 0
    (row,) = shell.items("query", "git_changes", "-p", "project", "garden")  # type: ignore[misc]
    asked = ("project", "status", "letter", "path", "changes_of_project", "branch")
    assert [row[key] for key in asked] == ["garden", "untracked", "?", "new.txt", 1, "trunk"]
    assert shell("query", "git_changes", "-p", "project", "elsewhere", "--json") == 1


def test_seeds_git_changes_lists_a_directory_once_that_two_systems_know(
    repository: Path, home: Path, tmp_path: Path, shell: Shell
) -> None:
    (repository / "new.txt").write_text("x")
    other = tmp_path / "other"
    write(other, f"projects/-srv-garden/{SESSION}.jsonl", user("hello", cwd=str(repository)))
    assert shell("sync", str(home), str(other), "--git") == 0
    assert len(rows(shell.database, "select 1 from git_changes")) == 2
    for project in ((), ("-p", "project", "garden")):
        assert shell("query", "git_changes", *project, "--json") == 0
        (row,) = shell.items("query", "git_changes", *project)
        assert row["path"] == "new.txt"  # type: ignore[index]
