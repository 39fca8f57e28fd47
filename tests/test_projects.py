"""A project is one directory, and `--project` means exactly the one that its user names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.dump import dump
from tests.shell import Shell
from tests.writing import user, write

from assoc_ingest.sources.directories import comparable, comparable_name, slashed

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
    rows = shell.json("list", "sessions", "--json", "--project", project)
    assert isinstance(rows, list)
    return {row["cwd"] for row in rows}


def id_of(shell: Shell, path: str) -> str:
    rows = shell.json("list", "projects", "--json", "--all")
    assert isinstance(rows, list)
    return str(next(row["id"] for row in rows if row["path"] == path))


# -- which directory is the same as which ---------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("/srv/Shop", "/srv/shop", False),
        ("/srv/shop/", "/srv/shop", True),
        ("D:\\Work\\Shop", "d:/work/shop/", True),
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
    ):
        assert shell("list", "sessions", "--project", path) == 1
        assert shell.err.count("\n") == 1
        assert repr(path) in shell.err
        assert repr(nearest) in shell.err


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
    found = shell.json("search", "pumpkin", "--json", "--project", "/srv/shop")
    assert isinstance(found, list)
    assert [hit["snippet"] for hit in found] == ["pumpkin in /srv/shop"]
    shell("query", "most_edited_files", "-p", "project", "/srv/nowhere")
    assert "nearest" in shell.err
    number = id_of(shell, "/srv/shop")
    assert shell("query", "show_project_sessions", "-p", "project", "/srv/shop", "--json") == 0
    by_path = shell.out
    assert shell("query", "show_project_sessions", "-p", "project", number, "--json") == 0
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
    assert shell("forget", "--project", "proj") == 0
    assert {row["session_key"] for row in dump(shell.database)["sessions"]} == {keys["/srv/Proj"]}
