"""A project is one directory, and `--project` means exactly the one that its user names."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.shell import Shell
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    Object,
    assistant,
    jsonl,
    user,
    write,
    write_bytes,
)

from assoc_ingest.paths import comparable, comparable_name, slashed
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_as_rebuilt, assert_same, check, dump, rows
from assoc_ingest.upkeep.prune import prune_gone

PLACES = ("/srv/shop", "/srv/shop-2", "/srv/shop/till", "/Srv/shop", "/home/ada/garden", "/opt/7")


@pytest.fixture
def keys(place: Path, shell: Shell) -> dict[str, str]:
    """A conversation in each of PLACES; its key by the directory."""
    return in_projects(place / "home", shell, *PLACES)


def in_projects(home: Path, shell: Shell, *paths: str) -> dict[str, str]:
    keys = {}
    for number, path in enumerate(paths):
        keys[path] = f"{number:08x}-1111-4222-8333-444455556666"
        line = user(f"pumpkin in {path}", f"u{number}", cwd=path, sessionId=keys[path])
        directory = re.sub("[^A-Za-z0-9]", "-", path)
        write(home, f"projects/{directory}/{keys[path]}.jsonl", line)
    assert shell("sync", str(home)) == 0, shell.err
    return keys


def listed(shell: Shell, project: str) -> set[str]:
    """Return where the conversations lie that a list of one project has."""
    rows = shell.items("list", "sessions", "--project", project)
    assert isinstance(rows, list)
    return {row["cwd"] for row in rows}


def id_of(shell: Shell, path: str) -> str:
    rows = shell.items("list", "projects", "--all")
    assert isinstance(rows, list)
    return str(next(row["id"] for row in rows if row["path"] == path))


# -- which directory is the same as which ---------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("/srv/Shop", "/srv/shop", False),
        ("/srv/shop/", "/srv/shop", True),
        ("D:\\Code\\Shop", "d:/code/shop/", True),
        ("\\\\Server\\Share", "//server/share", True),
        ("/srv/a\\b", "/srv/a/b", False),
    ],
)
def test_case_tells_directories_apart_unless_the_path_is_one_of_windows(
    one: str, other: str, is_same: bool
) -> None:
    assert (comparable(one) == comparable(other)) is is_same


def test_only_names_that_begin_with_a_drive_are_compared_without_case() -> None:
    assert comparable_name("D--Work") == comparable_name("d--work")
    assert comparable_name("-srv-Work") != comparable_name("-srv-work")


def test_a_backslash_is_a_letter_in_a_path_that_begins_with_a_slash() -> None:
    assert slashed("/srv/a\\b/") == "/srv/a\\b"
    assert slashed("C:\\a\\b\\") == "C:/a/b"


# -- one directory that several homes know --------------------------------------------------------


def in_homes(place: Path, shell: Shell, *homes: str) -> None:
    """Sync one conversation in `/srv/shop` of each home, and one in `/srv/NAME`."""
    for number, name in enumerate(homes):
        for at, path in enumerate(("/srv/shop", f"/srv/{name}")):
            key = f"{number}{at}000000-1111-4222-8333-444455556666"
            line = user(f"pumpkin of {name}", f"u{number}{at}", cwd=path, sessionId=key)
            directory = path.replace("/", "-")
            write(place / name, f"projects/{directory}/{key}.jsonl", line)
        assert shell("sync", str(place / name)) == 0, shell.err


def test_a_directory_that_two_homes_know_is_one_project(place: Path, shell: Shell) -> None:
    in_homes(place, shell, "b", "a")
    rows = {row["path"]: row for row in shell.items("list", "projects", "--all")}
    assert {path: row["session_count"] for path, row in rows.items()} == {
        "/srv/shop": 2, "/srv/a": 1, "/srv/b": 1,
    }  # fmt: skip
    number = str(rows["/srv/shop"]["id"])
    for project in (number, "shop", "/srv/shop"):
        assert len(shell.items("list", "sessions", "--project", project)) == 2
        assert len(shell.items("search", "pumpkin", "--project", project)) == 2
    overview = shell.items("query", "projects_overview")
    assert [row["sessions"] for row in overview if row["path"] == "/srv/shop"] == [2]


def test_which_project_stands_for_a_directory_does_not_depend_on_the_order(
    place: Path, shell: Shell, tmp_path: Path
) -> None:
    in_homes(place, shell, "b", "a")
    first = dump(shell.database)
    again = Shell(tmp_path / "again.db", shell._capsys)
    assert again("sync", str(place / "a"), str(place / "b"), "-d", str(tmp_path / "again.db")) == 0
    assert_same(first, dump(tmp_path / "again.db"))


def test_when_the_project_that_stands_for_a_directory_goes_another_does(
    place: Path, shell: Shell
) -> None:
    in_homes(place, shell, "b", "a")
    (before,) = [
        r["id"] for r in shell.items("list", "projects", "--all") if r["path"] == "/srv/shop"
    ]
    key = "10000000-1111-4222-8333-444455556666"  # of the home a, whose project stands for both
    assert shell("forget", key) == 0, shell.err
    (row,) = [row for row in shell.items("list", "projects", "--all") if row["path"] == "/srv/shop"]
    assert (row["session_count"], row["id"] == before) == (1, False)
    check(shell.database)


# -- what --project means -------------------------------------------------------------------------


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("path", ["/srv/shop", "/srv/shop/", "/srv/./shop", "/srv/x/../shop"])
def test_a_path_means_what_lies_exactly_there(path: str, shell: Shell) -> None:
    assert listed(shell, path) == {"/srv/shop"}


@pytest.mark.usefixtures("keys")
def test_a_project_is_named_by_its_id_or_its_name(shell: Shell) -> None:
    assert listed(shell, id_of(shell, "/srv/shop-2")) == {"/srv/shop-2"}
    assert listed(shell, "garden") == {"/home/ada/garden"}
    assert listed(shell, "-srv-shop-till") == {"/srv/shop/till"}
    assert listed(shell, "shop") == {"/srv/shop", "/Srv/shop"}, "two are called so"


@pytest.mark.usefixtures("keys")
def test_what_reads_takes_other_case_and_a_part_that_only_one_has(shell: Shell) -> None:
    assert listed(shell, "GARDEN") == {"/home/ada/garden"}
    assert listed(shell, "SHOP") == listed(shell, "shop")
    assert listed(shell, "ada/gar") == {"/home/ada/garden"}
    assert shell("list", "sessions", "--project", "sho") == 2
    assert all(path in shell.err for path in ("/srv/shop-2", "/srv/shop/till"))


@pytest.mark.usefixtures("keys")
def test_a_number_is_an_id_before_it_is_a_name(shell: Shell) -> None:
    number = id_of(shell, "/opt/7")
    assert listed(shell, number) == {"/opt/7"}
    if number != "7":
        assert listed(shell, "7") == {"/opt/7"}, "no project has this id"


@pytest.mark.usefixtures("keys")
def test_a_path_at_which_nothing_lies_is_told_with_the_nearest(shell: Shell) -> None:
    for path, nearest in (
        ("/srv/shop/till/src", "/srv/shop/till"),
        ("/srv/shpo-2", "/srv/shop-2"),
        ("/home/ada", "/home/ada/garden"),
        ("/nowhere/else", ""),
    ):
        assert shell("list", "sessions", "--project", path) == 1
        assert shell.err.count("\n") == 1
        assert repr(path) in shell.err
        assert (f"Did you mean {nearest!r}?" in shell.err) == bool(nearest)
        assert ("Did you mean" in shell.err) == bool(nearest)


@pytest.mark.usefixtures("keys")
def test_a_home_and_the_current_directory_are_paths(
    shell: Shell, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = place / "here" / "deep"
    here.mkdir(parents=True)
    in_projects(place / "more", shell, str(here))
    monkeypatch.chdir(here)
    assert listed(shell, ".") == {str(here)}
    monkeypatch.setenv("HOME", str(place))
    assert listed(shell, "~/here/deep") == {str(here)}
    monkeypatch.chdir(here.parent)
    assert listed(shell, "./deep") == {str(here)}
    assert shell("list", "sessions", "--project", ".") == 1
    assert str(here) in shell.err


def test_a_path_of_windows_is_found_in_any_case(shell: Shell, place: Path) -> None:
    in_projects(place / "home", shell, "D:\\Work\\Shop")
    assert listed(shell, "d:\\work\\shop\\") == {"D:\\Work\\Shop"}


@pytest.mark.usefixtures("keys")
def test_every_command_that_takes_a_project_means_the_same(shell: Shell) -> None:
    found = shell.items("search", "pumpkin", "--project", "/srv/shop")
    assert isinstance(found, list)
    assert [hit["snippet"] for hit in found] == ["pumpkin in /srv/shop"]
    shell("query", "most_edited_files", "-p", "project", "/srv/nowhere")
    assert "Did you mean" in shell.err
    number = id_of(shell, "/srv/shop")
    assert shell("query", "list_sessions", "-p", "project", "/srv/shop", "--json") == 0
    by_path = shell.out
    assert shell("query", "list_sessions", "-p", "project", number, "--json") == 0
    assert json.loads(by_path) == json.loads(shell.out) != []


# -- forget ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["path", "id"])
def test_forget_takes_one_directory_and_none_that_looks_like_it(
    how: str, keys: dict[str, str], shell: Shell
) -> None:
    """Not /srv/shop-2, which begins like it, not what lies in it, not /Srv/shop."""
    named = "/srv/shop" if how == "path" else id_of(shell, "/srv/shop")
    assert shell("forget", "--project", named) == 0, shell.err
    left = {row["session_key"] for row in dump(shell.database)["sessions"]}
    assert left == {key for path, key in keys.items() if path != "/srv/shop"}


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ("shop", 2),  # two are called so
        ("SHOP-2", 2),  # what reads would take it
        ("shop-", 2),
        ("/srv", 1),
        ("/SRV/shop", 1),
        ("/srv/shop-", 1),
        ("nothing like it", 1),
    ],
)
def test_forget_refuses_what_is_not_exactly_one_project(
    named: str, code: int, keys: dict[str, str], shell: Shell
) -> None:
    assert shell("forget", "--project", named) == code
    if code == 2:
        assert "/srv/shop" in shell.err
    assert len(dump(shell.database)["sessions"]) == len(keys)


def test_forget_refuses_a_number_that_is_an_id_and_a_name(place: Path, shell: Shell) -> None:
    in_projects(place / "home", shell, "/a/2", "/b/1")
    assert id_of(shell, "/a/2") == "1"
    assert listed(shell, "1") == {"/a/2"}
    assert shell("forget", "--project", "1") == 2
    assert "/a/2" in shell.err
    assert "/b/1" in shell.err


# -- directories that differ in case --------------------------------------------------------------


def test_what_differs_in_case_is_two_projects_also_for_forget(place: Path, shell: Shell) -> None:
    keys = in_projects(place / "home", shell, "/srv/Proj", "/srv/proj")
    assert listed(shell, "proj") == {"/srv/proj"}
    assert shell("list", "sessions", "--project", "PROJ") == 2, "it may mean either"
    assert shell("forget", "--project", "proj") == 0
    assert {row["session_key"] for row in dump(shell.database)["sessions"]} == {keys["/srv/Proj"]}


def test_a_database_that_has_them_as_one_is_derived_again(place: Path, shell: Shell) -> None:
    """As versions before this one left it: one project for both, in lower case."""
    in_projects(place / "home", shell, "/srv/Proj", "/srv/proj")
    expected = dump(shell.database)
    with closing(sqlite3.connect(shell.database)) as connection:
        (kept,) = connection.execute("select id from projects where key = '-srv-proj'").fetchone()
        for table in ("files", "sessions"):
            connection.execute(f"update {table} set project_id = ?", (kept,))
        connection.execute("update files set project_key = lower(project_key)")
        connection.execute("update working_directories set encoded = lower(encoded)")
        connection.execute("delete from projects where id <> ?", (kept,))
        connection.execute("pragma user_version = 3")
        connection.commit()
    assert shell("sync") == 0, shell.err
    assert_same(dump(shell.database), expected)
    check(shell.database)


@pytest.mark.parametrize(
    ("path", "directory", "is_same"),
    [
        ("/srv/garden", "-srv-garden", True),
        ("/srv/garden", "-SRV-Garden", False),
        ("C:\\code\\my.site", "c--Code-my-site", True),
    ],
)
def test_a_note_is_of_the_project_whose_directory_it_names(
    path: str, directory: str, is_same: bool, place: Path, shell: Shell
) -> None:
    in_projects(place / "home", shell, path)
    associate = place / "associate"
    write(associate, "hook-events.jsonl", {"hook_event_name": "SessionStart"})
    note = {"id": "n1", "title": "Seeds", "content": "Beans"}
    write(associate, f"projects/{directory}/notes/n1.json", note)
    assert shell("sync", str(associate)) == 0
    (found,) = dump(shell.database)["documents"]
    assert (found["project_id"] is not None) is is_same


# -- worktrees ------------------------------------------------------------------------------------


REPOSITORY, WORKTREE = "/home/ada/cli", "/home/ada/cli/.worktrees/3"
AT_PRICES = {"input_tokens": 1000, "output_tokens": 1000}


def held(home: Path, path: str, number: int, branch: str | None, *more: Object) -> str:
    """Write a conversation with an answer that costs something; return its key."""
    key = f"{number:08x}-aaaa-4222-8333-444455556666"
    own: Object = {"cwd": path, "sessionId": key} | ({"gitBranch": branch} if branch else {})
    write(
        home, f"projects/{re.sub('[^A-Za-z0-9]', '-', path)}/{key}.jsonl",
        user("turnip", f"w{number}", second=number, **own),
        assistant("turnip", f"x{number}", f"w{number}", number + 1, id=f"msg_w{number}",
                  usage=AT_PRICES, model="claude-sonnet-4-5", **own),
        *({**line, "sessionId": key} for line in more),
    )  # fmt: skip
    return key


def projects(shell: Shell) -> dict[str, Object]:
    rows = shell.items("list", "projects", "--all")
    assert isinstance(rows, list)
    return {row["path"]: row for row in rows}


def entered(path: str, origin: str, branch: str = "seven") -> Object:
    """The line of a session that made a worktree."""
    state = {"originalCwd": origin, "worktreePath": path, "worktreeBranch": branch}
    return {"type": "worktree-state", "worktreeSession": state}


def test_a_worktree_is_called_after_its_repository_and_branch(home: Path, shell: Shell) -> None:
    held(home, REPOSITORY, 1, "main", entered("/srv/seven", REPOSITORY))
    held(home, WORKTREE, 2, "feature-x")
    held(home, "/srv/seven", 3, "HEAD")  # detached: the branch is that of the line above
    held(home, f"{REPOSITORY}/.claude/worktrees/elm", 4, None)
    held(home, "/opt/alone/.worktrees/2", 5, "two")  # nobody worked in its repository
    assert shell("sync", str(home)) == 0
    found = {path: (row["name"], row["worktree_of"]) for path, row in projects(shell).items()}
    assert found == {
        REPOSITORY: ("cli", None),
        WORKTREE: ("cli · feature-x", "cli"),
        "/srv/seven": ("cli · seven", "cli"),
        f"{REPOSITORY}/.claude/worktrees/elm": ("cli · elm", "cli"),
        "/opt/alone/.worktrees/2": ("alone · two", None),
    }
    assert listed(shell, "cli · feature-x") == {WORKTREE}
    assert listed(shell, REPOSITORY) == {REPOSITORY}
    assert listed(shell, "cli") == set(found) - {"/opt/alone/.worktrees/2"}, "and all its worktrees"


def test_a_worktree_that_had_several_branches_has_none_of_them_in_its_name(
    home: Path, shell: Shell
) -> None:
    """Else conversations would be shown with the branch of another one."""
    held(home, REPOSITORY, 1, "main")
    held(home, WORKTREE, 2, "feature-x")
    assert shell("sync", str(home)) == 0
    assert projects(shell)[WORKTREE]["name"] == "cli · feature-x"
    held(home, WORKTREE, 3, "feature-y")
    assert shell("sync", str(home)) == 0
    assert projects(shell)[WORKTREE]["name"] == "cli · 3"
    in_steps = dump(shell.database)
    shell.database.unlink()
    assert shell("sync", str(home)) == 0
    assert_same(in_steps, dump(shell.database))


def test_what_tells_a_worktree_may_come_in_any_order_and_go(home: Path, shell: Shell) -> None:
    """The repository after its worktree, the line that names it last of all."""
    held(home, WORKTREE, 1, "feature-x")
    held(home, "/srv/seven", 2, "HEAD")
    assert shell("sync", str(home)) == 0
    assert [row["name"] for row in projects(shell).values()] == ["seven", "cli · feature-x"]
    key = held(home, REPOSITORY, 3, "main", entered("/srv/seven", REPOSITORY))
    assert shell("sync", str(home)) == 0
    assert projects(shell)["/srv/seven"]["name"] == "cli · seven"
    assert projects(shell)[WORKTREE]["worktree_of"] == "cli"
    check(shell.database)
    in_steps = dump(shell.database)
    shell.database.unlink()
    assert shell("sync", str(home)) == 0
    assert_same(in_steps, dump(shell.database))
    assert shell("forget", key) == 0
    assert projects(shell)["/srv/seven"]["name"] == "seven"
    assert projects(shell)[WORKTREE]["worktree_of"] is None


def test_statements_in_a_circle_make_nothing_a_worktree(home: Path, shell: Shell) -> None:
    held(home, "/srv/one", 1, "a", entered("/srv/two", "/srv/one"))
    held(home, "/srv/two", 2, "b", entered("/srv/one", "/srv/two"))
    held(home, "/srv/three", 3, "c", entered("/srv/three", "/srv/three"))
    assert shell("sync", str(home)) == 0
    assert sorted(row["name"] for row in projects(shell).values()) == ["one", "three", "two"]


def test_a_worktree_of_a_worktree_is_one_of_the_repository(home: Path, shell: Shell) -> None:
    held(home, REPOSITORY, 1, "main", entered("/srv/seven", REPOSITORY))
    held(home, "/srv/seven", 2, "seven", entered("/srv/eight", "/srv/seven", "eight"))
    held(home, "/srv/eight", 3, "eight")
    assert shell("sync", str(home)) == 0
    assert projects(shell)["/srv/eight"]["name"] == "cli · eight"
    assert projects(shell)[REPOSITORY]["sessions_with_worktrees"] == 3


def test_a_repository_has_the_sum_of_its_worktrees_and_totals_count_it_once(
    home: Path, shell: Shell
) -> None:
    for number, path in enumerate((REPOSITORY, WORKTREE, WORKTREE, "/srv/other"), 1):
        held(home, path, number, "main" if path == REPOSITORY else "feature-x")
    assert shell("sync", str(home)) == 0
    rows = shell.items("stats", "--by", "project")
    assert isinstance(rows, list)
    together = shell.items("stats", "--by", "repository")
    by_path = {row["path"]: row for row in rows}
    by_repository = {row["repository_key"]: row for row in together}  # type: ignore[union-attr]
    own = by_path[REPOSITORY]
    assert own["cost_usd"] > 0
    assert own["sessions"] == 1
    assert by_repository.keys() == {REPOSITORY, "/srv/other"}
    assert by_repository[REPOSITORY]["sessions"] == 3
    assert by_repository[REPOSITORY]["cost_usd"] == pytest.approx(3 * own["cost_usd"], rel=1e-3)
    (total,) = shell.items("stats", "--by", "model")  # type: ignore[misc]
    assert sum(row["cost_usd"] for row in rows) == pytest.approx(total["cost_usd"], rel=1e-3)
    assert sum(row["sessions"] for row in rows) == 4
    assert projects(shell)[REPOSITORY]["session_count"] == 1
    assert projects(shell)[REPOSITORY]["sessions_with_worktrees"] == 3


def test_a_repository_in_which_nobody_worked_lately_still_has_its_sum(
    home: Path, shell: Shell
) -> None:
    held(home, WORKTREE, 1, "feature-x")
    write(home, f"projects/-home-ada-cli/{SESSION}.jsonl", user("no answer", cwd=REPOSITORY))
    assert shell("sync", str(home)) == 0
    assert [row["path"] for row in shell.items("stats", "--by", "project")] == [WORKTREE]
    (own,) = shell.items("stats", "--by", "repository")  # type: ignore[misc]
    assert (own["repository_key"], own["sessions"]) == (REPOSITORY, 1)
    assert own["cost_usd"] > 0


# -- what is not on this disk ---------------------------------------------------------------------


def test_seeds_orphaned_projects_are_out_of_the_default_list(
    home: Path, place: Path, shell: Shell
) -> None:
    here = place / "here"
    here.mkdir()
    held(home, str(here), 1, None)
    held(home, "/srv/on-another-machine", 2, None)
    assert shell("sync", str(home)) == 0
    assert shell("list", "projects") == 0
    assert re.search(r"here .* yes ", shell.out)
    assert "on-another-machine" not in shell.out
    assert "1 more with --all." in shell.err
    assert shell("list", "projects", "--json") == 0
    answer = json.loads(shell.out)
    assert ([row["path"] for row in answer["items"]], answer["hidden"]["--all"]) == ([str(here)], 1)
    assert shell("list", "projects", "--all") == 0
    assert re.search(r"on-another-machine .* no ", shell.out)
    assert "more with" not in shell.err
    rows = shell.items("list", "projects", "--all")
    assert {row["path"]: row["on_disk"] for row in rows} == {
        str(here): 1,
        "/srv/on-another-machine": 0,
    }
    (row,) = shell.items("list", "projects", "--project", "on-another-machine")
    assert row["on_disk"] == 0, "a project that is asked for by name is shown"


def test_a_project_of_which_no_line_states_the_path_any_more_is_on_no_disk(
    home: Path, place: Path, fresh: Callable[[], Path]
) -> None:
    here = place / "here"
    here.mkdir()
    key = str(here).replace("/", "-")
    path = write(home, f"projects/{key}/{SESSION}.jsonl", user("stated", cwd=str(here)))
    before, after = fresh(), fresh()
    sync(before, [home])
    path.write_bytes(jsonl({**user("not stated"), "cwd": None}))
    sync(before, [home])
    sync(after, [home])
    projects = rows(before, "select path, on_disk, is_worktree from projects")
    assert projects == [(None, None, None)]
    assert_same(dump(before, tables=["projects"]), dump(after, tables=["projects"]))


def test_seeds_an_empty_directory_below_projects_is_a_project(
    home: Path, fresh: Callable[[], Path], shell: Shell
) -> None:
    """Seed: an empty directory below `projects/` is a project. It comes and goes with it."""
    places = Places(home, shell.database, fresh)
    write(home, f"{PROJECT}/{SESSION}.jsonl", user("hello"))
    places.sync()
    empty = home / "projects/-srv-Empty"
    empty.mkdir()
    (home / "projects/.hidden").mkdir()
    places.sync()
    assert places.names() == ["-srv-Empty", "demo"]
    rows = {row["name"]: row for row in shell.items("list", "projects", "--all")}
    assert rows["-srv-Empty"]["session_count"] == 0
    assert rows["-srv-Empty"]["path"] is None
    write_bytes(home, "history.jsonl", b'{"display":"x","timestamp":1,"project":"/srv/Empty"}\n')
    places.sync()
    assert places.names() == ["Empty", "demo"], "the history says where it is"
    (home / "history.jsonl").unlink()
    sync(shell.database, [home])
    prune_gone(shell.database, None, dry_run=False)
    assert sync(shell.database, [home]).rows == 0
    assert_same(dump(shell.database), dump(places.at_once()))
    conversation = write(empty, f"{OTHER}.jsonl", user("filled", "u2", cwd="/srv/Empty"))
    places.sync()
    assert places.names() == ["Empty", "demo"]
    conversation.unlink()
    sync(shell.database, [home])
    prune_gone(shell.database, None, dry_run=False)
    assert_same(dump(shell.database), dump(places.at_once()))
    assert places.names() == ["-srv-Empty", "demo"]
    empty.rmdir()
    places.sync()
    assert places.names() == ["demo"]


def test_an_empty_directory_stays_a_project_while_its_home_cannot_be_seen(
    home: Path, place: Path, fresh: Callable[[], Path], shell: Shell
) -> None:
    places = Places(home, shell.database, fresh)
    write(home, f"{PROJECT}/{SESSION}.jsonl", user("hello"))
    (home / "projects/-srv-empty").mkdir()
    places.sync()
    home.rename(place / "elsewhere")
    home.mkdir()
    sync(shell.database, [])
    assert places.names() == ["-srv-empty", "demo"]


class Places:
    """A home, its database, and the names of its projects."""

    def __init__(self, home: Path, database: Path, fresh: Callable[[], Path]) -> None:
        self.home, self.database, self._fresh = home, database, fresh

    def sync(self) -> None:
        sync(self.database, [self.home])
        check(self.database, self.home)
        assert_as_rebuilt(self.database)
        assert_same(dump(self.database), dump(self.at_once()))

    def at_once(self) -> Path:
        database = self._fresh()
        sync(database, [self.home])
        return database

    def names(self) -> list[str]:
        query = "select name from projects order by name"
        return [name for (name,) in rows(self.database, query)]
