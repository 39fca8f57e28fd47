"""Clones and worktrees are one repository in every answer, whenever they were read."""

from __future__ import annotations

import html
import os
import re
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.served import get, served
from tests.support.shell import Shell
from tests.support.writing import Object, assistant, call, jsonl, result, user, write_bytes

from assoc_ingest import git
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_as_rebuilt, assert_same, check, connect, dump, rows

PUSHED = {
    "/srv/shop": "https://github.com/ada/shop.git",
    "/srv/shop/.claude/worktrees/door": "",
    "/home/ada/copy": "git@github.com:Ada/shop.git",
    "/home/ada/fork/shop": "git@github.com:eve/shop.git",
    "/opt/shop": "https://gitlab.com/ada/shop",
    "/opt/garden": "",
    "/var/garden": "",
    "/opt/notes": "",
}
"""Directories, and where `git push origin` went."""

NAMES = {
    "/srv/shop": "github.com/Ada/shop",
    "/srv/shop/.claude/worktrees/door": "github.com/Ada/shop",
    "/home/ada/copy": "github.com/Ada/shop",
    "/home/ada/fork/shop": "eve/shop",
    "/opt/shop": "gitlab.com/ada/shop",
    "/opt/garden": "/opt/garden",
    "/var/garden": "/var/garden",
    "/opt/notes": "notes",
}


def conversation(number: int, cwd: str, url: str) -> tuple[str, list[Object]]:
    """Return where an agent keeps a conversation, and its lines."""
    key = f"{number:08x}-1111-4222-8333-444455556666"
    given = {"cwd": cwd, "sessionId": key}
    lines = [user(f"Paint {number}", f"u{number}", **given)]
    if url:
        command = call(f"toolu_{number}", command="git push -u origin main")
        printed = result(f"toolu_{number}", f"To {url}\n * [new branch] main -> main")
        used = {"id": f"msg_{number}", "usage": {"input_tokens": 1, "output_tokens": 1}}
        lines += [
            assistant([command], f"a{number}", f"u{number}", **used, **given),
            user([printed], f"r{number}", f"a{number}", 2, **given),
        ]
    return f"projects/{re.sub('[^A-Za-z0-9]', '-', cwd)}/{key}.jsonl", lines


def fill(home: Path, pushed: dict[str, str]) -> None:
    for number, (cwd, url) in enumerate(pushed.items()):
        path, lines = conversation(number, cwd, url)
        write_bytes(home, path, jsonl(*lines))


def names(database: Path) -> dict[str, str]:
    return dict(rows(database, "select path, repository_name from projects"))


@pytest.fixture
def filled(place: Path, shell: Shell) -> Shell:
    fill(place / "home", PUSHED)
    assert shell("sync", str(place / "home")) == 0, shell.err
    return shell


def found(shell: Shell, *arguments: str) -> set[str]:
    """Return where the conversations lie that a list has."""
    return {row["cwd"] for row in shell.items("list", "sessions", *arguments)}


# -- however they are read -------------------------------------------------------------------------


@pytest.mark.parametrize("is_reversed", [False, True])
def test_read_bit_by_bit_they_are_what_they_are_read_at_once(
    place: Path, *, is_reversed: bool
) -> None:
    home, slow, fast = place / "home", place / "slow.db", place / "fast.db"
    files = [conversation(number, *each) for number, each in enumerate(PUSHED.items())]
    for path, lines in reversed(files) if is_reversed else files:
        for count in range(1, len(lines) + 1):
            write_bytes(home, path, jsonl(*lines[:count]))
            sync(slow, [home])
    sync(fast, [home])
    assert names(slow) == names(fast) == NAMES
    assert_same(dump(slow), dump(fast))
    check(slow)
    assert_as_rebuilt(slow)


def test_what_is_rewritten_or_forgotten_no_longer_says_it(place: Path, shell: Shell) -> None:
    home = place / "home"
    places = {"/srv/shop": PUSHED["/srv/shop"], "/home/ada/copy": PUSHED["/home/ada/copy"]}
    fill(home, places)
    assert shell("sync", str(home)) == 0
    assert set(names(shell.database).values()) == {"Ada/shop"}
    fill(home, {**places, "/home/ada/copy": PUSHED["/opt/shop"]})
    assert shell("sync") == 0
    assert names(shell.database)["/home/ada/copy"] == "gitlab.com/ada/shop"
    assert shell("forget", "--project", "/home/ada/copy", "--yes") == 0, shell.err
    assert names(shell.database) == {"/srv/shop": "ada/shop"}
    assert_as_rebuilt(shell.database)


def test_a_directory_that_was_moved_is_still_its_repository(place: Path, shell: Shell) -> None:
    """Its old conversations stay where they were held."""
    home = place / "home"
    fill(home, {"/srv/shop": PUSHED["/srv/shop"], "/mnt/shop": PUSHED["/srv/shop"]})
    assert shell("sync", str(home)) == 0
    assert found(shell, "--repository", "shop") == {"/srv/shop", "/mnt/shop"}


def test_a_database_from_before_is_completed_by_the_next_sync(filled: Shell) -> None:
    with closing(connect(filled.database)) as connection:
        connection.execute(
            "update projects set remote = null, repository_key = null, repository_name = null"
        )
    assert found(filled, "--repository", "notes") == {"/opt/notes"}
    assert filled("sync") == 0
    assert names(filled.database) == NAMES


# -- which one is meant ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("repository", "meant"),
    [
        ("github.com/ada/shop", "github.com/Ada/shop"),
        ("ssh://git@github.com/ADA/shop.git", "github.com/Ada/shop"),
        ("/home/ada/copy", "github.com/Ada/shop"),
        ("/srv/shop/.claude/worktrees/door/src", "github.com/Ada/shop"),
        ("eve/shop", "eve/shop"),
        ("EVE/SHOP", "eve/shop"),
        ("eve", "eve/shop"),
        ("gitlab.com", "gitlab.com/ada/shop"),
        ("notes", "notes"),
        ("/opt/garden", "/opt/garden"),
    ],
)
def test_a_repository_is_meant_by_name_address_or_path(
    filled: Shell, repository: str, meant: str
) -> None:
    expected = {path for path, name in NAMES.items() if name == meant}
    assert found(filled, "--repository", repository) == expected


def test_a_name_of_several_is_one_clear_sentence(filled: Shell) -> None:
    assert filled("list", "sessions", "--repository", "shop") == 2
    assert filled.err == (
        "Error: 'shop' names 3 repositories; give the whole name of one:\n"
        "  eve/shop\n  github.com/Ada/shop\n  gitlab.com/ada/shop\n"
    )
    assert filled("list", "sessions", "--repository", "note") == 0
    for unknown in ("shoe", "/nowhere", "", " ", "\x1b[2J"):
        assert filled("list", "sessions", "--repository", unknown or "\t") in (1, 2)
        assert filled.err.startswith("No repository ")
        assert "\x1b" not in filled.err
    assert filled("search", "Paint repository:shop") == 2
    assert "names 3 repositories" in filled.err


def test_it_limits_everything_that_a_project_limits(filled: Shell) -> None:
    of = ("--repository", "github.com/ada/shop")
    places = {path for path, name in NAMES.items() if name == "github.com/Ada/shop"}
    assert len(filled.items("search", "Paint", *of)) == len(places)
    assert len(filled.items("search", "Paint repository:github.com/ada/shop")) == len(places)
    assert {row["path"] for row in filled.items("list", "projects", "--all", *of)} == places
    assert {item["cwd"] for item in filled.items("recent", *of) if item["cwd"]} == places
    assert [row["calls"] for row in filled.items("stats", "--by", "tool", *of)] == [2]
    rows_ = filled.items("query", "tool_use", "-p", "repository", of[1])
    assert [row["calls"] for row in rows_] == [2]


def test_it_adds_to_the_project(filled: Shell) -> None:
    of = ("--repository", "github.com/ada/shop")
    assert found(filled, *of, "--project", "/home/ada/copy") == {"/home/ada/copy"}
    assert filled("list", "sessions", *of, "--project", "notes") == 0
    assert "Without project notes: 3 rows." in filled.err
    assert "Without repository github.com/ada/shop: 1 row." in filled.err
    assert filled("recent", *of, "--cwd", "/srv/shop") == 2
    assert "not both" in filled.err


# -- grouped ---------------------------------------------------------------------------------------


def test_lists_and_sums_have_one_row_for_all_directories(filled: Shell) -> None:
    listed = {row["repository"]: row for row in filled.items("list", "repositories")}
    assert listed.keys() == set(NAMES.values())
    shop = listed["github.com/Ada/shop"]
    assert (shop["session_count"], shop["directories"]) == (3, 3)
    assert shop["repository_key"] == "github.com/ada/shop"
    assert [row["session_count"] for row in filled.items("list", "repositories", "--repository",
                                                         "eve")] == [1]  # fmt: skip
    rows_ = {row["cwd"]: row["repository"] for row in filled.items("list", "sessions")}
    assert rows_ == NAMES
    stats = {row["repository"]: row for row in filled.items("stats", "--by", "repository")}
    assert stats["github.com/Ada/shop"]["sessions"] == 2  # the third has no response
    recap = filled.items("recap", "2026-01-20", "--by", "repository")
    assert {item["repository"] for item in recap} == set(NAMES.values())
    assert filled("recap", "2026-01-20") == 0
    assert filled.out.count("github.com/Ada/shop: 3 conversations") == 1
    recent = filled.items("recent", "-n", "20")
    assert {item["cwd"]: item["repository"] for item in recent if item["cwd"]} == NAMES


def test_a_file_in_several_clones_and_worktrees_is_one(place: Path, shell: Shell) -> None:
    """Its path is relative to the repository, and what is outside keeps its own."""
    home = place / "home"
    edited = {
        "/srv/shop": ("/srv/shop/src/door.py", "/etc/hosts", "/srv/shop/.worktrees/x/src/door.py"),
        "/srv/shop/.claude/worktrees/door": ("/srv/shop/.claude/worktrees/door/src/door.py",),
        "/home/ada/copy": ("/home/ada/copy/src/door.py", "/srv/shop/src/door.py"),
        "/home/ada/fork/shop": ("/home/ada/fork/shop/src/door.py",),
    }
    for number, (cwd, paths) in enumerate(edited.items()):
        path, lines = conversation(number, cwd, PUSHED[cwd])
        for count, file in enumerate(paths):
            id_ = f"toolu_{number}_{count}"
            used = call(id_, "Edit", file_path=file, old_string="a", new_string="b")
            lines += [
                assistant([used], id_, cwd=cwd, second=count),
                user([result(id_)], f"r{id_}", id_, cwd=cwd, second=count),
            ]
        write_bytes(home, path, jsonl(*lines))
    assert shell("sync", str(home)) == 0
    files = shell.items("query", "most_edited_files")
    assert {
        (row["file"], row["repository"]): (row["edits"], row["sessions"]) for row in files
    } == {
        ("src/door.py", "Ada/shop"): (5, 3),
        ("src/door.py", "eve/shop"): (1, 1),
        ("/etc/hosts", "Ada/shop"): (1, 1),
    }  # fmt: skip
    assert files[0]["session_key"].startswith("0000000")
    of = shell.items("query", "most_edited_files", "-p", "repository", "eve")
    assert [row["repository"] for row in of] == ["eve/shop"]


def test_pages_lead_from_a_repository_to_its_conversations(filled: Shell) -> None:
    site = served(filled.database)
    address = "/assoc/-/sessions?repository=github.com%2FAda%2Fshop"
    for path in ("/assoc/ask-list-repositories", "/assoc/-/sessions"):
        assert address in get(site, path).text, path
    page = get(site, address).text
    assert '<option value="github.com/Ada/shop" selected>' in page
    assert 'data-total="3"' in page


def test_a_search_is_narrowed_by_repository(filled: Shell) -> None:
    site = served(filled.database)
    page = get(site, "/-/assoc/search?q=Paint").text
    chips = re.findall(r'<a href="([^"]*)"[^>]*data-facet="repository" data-value="([^"]*)"', page)
    assert {html.unescape(name) for _, name in chips} == set(NAMES.values())
    (address,) = [one for one, name in chips if name == "github.com/Ada/shop"]
    narrowed = get(site, html.unescape(address)).text
    assert "3 conversations" in narrowed
    assert "Paint 0" in narrowed
    assert "Paint 3" not in narrowed
    for given, status in (("gitlab.com/ada/shop", 200), ("shop", 400), ("nowhere", 400)):
        asked = f"/-/assoc/search?q=Paint&repository={given}&narrow=repository"
        assert get(site, asked).status_code == status, given


def test_a_search_does_not_offer_repositories_where_each_is_one_project(
    place: Path, shell: Shell
) -> None:
    fill(place / "home", {"/opt/garden": "", "/opt/notes": ""})
    assert shell("sync", str(place / "home")) == 0
    page = get(served(shell.database), "/-/assoc/search?q=Paint").text
    assert 'data-facet="project"' in page
    assert 'data-facet="repository"' not in page


def test_what_is_open_is_grouped_by_repository_of_how_many(filled: Shell) -> None:
    """The conversations in which git was called are unfinished."""
    opened = filled.items("list", "open", "--repository", "github.com/ada/shop")
    assert [(row["repository"], row["open"]) for row in opened] == [
        ("github.com/Ada/shop", len(opened))
    ] * len(opened)
    assert opened


# -- what git says ---------------------------------------------------------------------------------


@pytest.mark.skipif(not git.is_installed(), reason="git is not installed")
def test_git_tells_remotes_and_first_commits_when_it_is_asked(place: Path) -> None:
    def run(directory: Path, *arguments: str) -> None:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        given = {**os.environ, "GIT_COMMITTER_DATE": "@0 +0000", "GIT_AUTHOR_DATE": "@0 +0000"}
        command = ["git", "-C", str(directory), *who, *arguments]
        subprocess.run(command, check=True, capture_output=True, env=given)

    clones = {name: place / name / "shop" for name in ("one", "two", "three", "four", "five")}
    for number, clone in enumerate(clones.values()):
        clone.mkdir(parents=True)
        run(clone, "init", "-b", "main")
        run(clone, "commit", "--allow-empty", "-m", "first" if number < 4 else "another")
    for name in ("one", "two"):
        run(clones[name], "remote", "add", "origin", f"https://{name}:secret@example.org/ada/shop")
    fill(place / "home", {str(clone): "" for clone in clones.values()})
    database = place / "assoc.db"
    sync(database, [place / "home"])
    assert len(set(names(database).values())) == 5
    sync(database, [place / "home"], options=SyncOptions(git=True))
    keys = rows(database, "select repository_key from projects order by path")
    five, four, one, three, two = (key for (key,) in keys)
    assert one == two == "example.org/ada/shop"
    assert three == four
    assert three.endswith(" shop")
    assert len({one, three, five}) == 3
    assert_as_rebuilt(database)
    run(clones["two"], "remote", "set-url", "origin", "https://example.org/eve/shop")
    sync(database, [place / "home"], options=SyncOptions(git=True))
    assert names(database)[str(clones["two"])] == "eve/shop"


def test_how_counts_the_runs_in_all_clones_of_a_repository(filled: Shell) -> None:
    def runs(*arguments: str) -> int:
        forms = filled.items("how", "git push", *arguments)
        return sum(form["worked"] + form["failed"] + form["unknown"] for form in forms)

    assert runs() == 4
    assert runs("--repository", "github.com/ada/shop") == 2
    assert runs("--repository", "eve/shop") == 1
    assert filled("how", "git push", "--repository", "nowhere") == 1
    assert "No repository is named 'nowhere'" in filled.err


def test_an_export_of_a_repository_has_the_conversations_of_all_its_clones(
    filled: Shell, place: Path
) -> None:
    of = ("--repository", "github.com/ada/shop", "--format", "jsonl", "-o", str(place / "out"))
    assert filled("export", *of) == 0, filled.err
    assert len(list((place / "out").glob("*.jsonl"))) == 3
