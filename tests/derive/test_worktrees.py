"""A worktree is called after its repository and its branch, and refers to the project of that."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive.projects import refresh_named, relatives


class Places:
    """Projects that an application lists: their paths, branches and parents."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.ids: dict[str, int] = {}
        self.file = rows.file("list.json", kind="project_list")

    def add(self, key: str, path: str | None, **values: object) -> int:
        """Insert a project; `head_branch` and `git_repository` are what git said."""
        asked = {
            name: values.pop(name) for name in ("head_branch", "git_repository") if name in values
        }
        self.ids[key] = self.rows.add("projects", key=key, source_id=self.rows.source, **asked)
        self.rows.add(
            "project_entries", key=key, path=path, project_id=self.ids[key], file_id=self.file,
            **values,
        )  # fmt: skip
        return self.ids[key]

    def states(self, url: str, **values: object) -> None:
        """Insert a line that says where a session made a worktree."""
        row = {"kind": "worktree", "url": url, "file_id": self.file, **values}
        self.rows.add("links", **row)

    def derive(self, *keys: str) -> dict[str, tuple[str | None, str | None]]:
        """Derive, and return name and parent of each project."""
        refresh_named(self.rows.connection, {self.ids[key] for key in keys or self.ids})
        found = self.rows.all(
            "select p.key, p.name, o.key from projects p left join projects o on o.id = p.parent_id"
        )
        return {key: tuple(rest) for key, *rest in found}  # type: ignore[misc]


@pytest.fixture
def places(rows: Rows) -> Places:
    return Places(rows)


def test_a_project_without_a_repository_is_called_by_its_own_name(places: Places) -> None:
    places.add("garden", "/srv/garden", head_branch="main")
    assert places.derive() == {"garden": ("garden", None)}
    assert places.rows.all("select is_worktree from projects") == [None]


@pytest.mark.parametrize("folder", [".claude/worktrees", ".worktrees"])
def test_the_path_says_it_whatever_is_derived_first(empty: Callable[[], Rows], folder: str) -> None:
    for order in permutations(["garden", "tree"]):
        places = Places(empty())
        for key in order:
            if key == "garden":
                places.add("garden", "/srv/garden")
            else:
                places.add("tree", f"/srv/garden/{folder}/7", head_branch="beds")
            found = places.derive(key)
        assert found == {"garden": ("garden", None), "tree": ("garden · beds", "garden")}, order


def test_the_list_is_believed_before_git_and_git_before_the_path(places: Places) -> None:
    for name in ("a", "b", "c"):
        places.add(name, f"/{name}")
    inside = "/c/.worktrees/"
    places.add("x", f"{inside}x", parent_key="a", git_repository="/b", head_branch="x")
    places.add("y", f"{inside}y", git_repository="/b", head_branch="y")
    places.add("z", f"{inside}z", head_branch="z")
    found = places.derive()
    assert {key: found[key] for key in "xyz"} == {
        "x": ("a · x", "a"),
        "y": ("b · y", "b"),
        "z": ("c · z", "c"),
    }


def test_a_session_that_made_the_worktree_says_from_where(places: Places) -> None:
    places.add("garden", "/srv/garden")
    places.add("tree", "D:/trees/7")
    places.states("D:\\trees\\7", origin="/srv/garden/.worktrees/6", title="beds", timestamp="2")
    places.states("D:/trees/7", origin="/srv/other", title="old", timestamp="1", gone_at="2026")
    assert places.derive()["tree"] == ("garden · beds", "garden")


@pytest.mark.parametrize(
    ("branch", "name"), [("beds", "garden · beds"), (None, "garden · 7"), ("HEAD", "garden · 7")]
)
def test_a_worktree_without_a_branch_is_called_by_its_directory(
    places: Places, branch: str | None, name: str
) -> None:
    places.add("garden", "/srv/garden")
    places.add("tree", "/srv/garden/.worktrees/7", head_branch=branch)
    assert places.derive()["tree"] == (name, "garden")


def test_a_repository_that_is_no_project_still_gives_its_name(places: Places) -> None:
    places.add("tree", "/trees/7", git_repository="/srv/garden.git", head_branch="beds")
    assert places.derive()["tree"] == ("garden · beds", None)
    assert places.rows.all("select is_worktree, repository from projects") == [
        (1, "/srv/garden.git")
    ]


def test_a_list_that_says_it_is_no_worktree_is_believed(places: Places) -> None:
    tree = places.add("tree", "/srv/garden/.worktrees/7")
    places.rows.set("projects", tree, is_worktree=0)
    places.derive()
    assert places.rows.get("projects", tree, "is_worktree") == 0


def test_a_worktree_of_a_worktree_is_one_of_the_repository(places: Places) -> None:
    places.add("garden", "/srv/garden")
    places.add("tree", "/trees/7", git_repository="/srv/garden", head_branch="beds")
    places.add("inner", "/trees/8", git_repository="/trees/7", head_branch="shed")
    assert places.derive()["inner"] == ("garden · shed", "garden")


def test_where_the_statements_go_in_a_circle_nothing_is_a_worktree(places: Places) -> None:
    places.add("a", "/a", git_repository="/b")
    places.add("b", "/b", git_repository="/a")
    assert places.derive() == {"a": ("a", None), "b": ("b", None)}


def test_a_directory_is_no_worktree_of_itself(places: Places) -> None:
    places.add("a", "C:/Work", git_repository="c:\\work")
    assert places.derive() == {"a": ("Work", None)}


def test_paths_differ_in_case_but_on_windows(places: Places) -> None:
    places.add("unix", "/srv/Garden")
    places.add("tree", "/trees/1", git_repository="/srv/garden")
    places.add("windows", "C:/Garden")
    places.add("other", "C:/trees/2", git_repository="c:/garden")
    found = places.derive()
    assert found["tree"] == ("garden · 1", None)
    assert found["other"] == ("Garden · 2", "windows")


def test_a_repository_with_another_name_renames_its_worktrees(places: Places) -> None:
    places.add("garden", "/srv/garden")
    places.add("tree", "/srv/garden/.worktrees/7", head_branch="beds")
    places.derive()
    places.rows.connection.execute("update project_entries set name = 'Eden' where key = 'garden'")
    assert places.derive("garden")["tree"] == ("Eden · beds", "garden")


def test_relatives_are_those_that_depend_on_a_project_and_no_others(places: Places) -> None:
    garden = places.add("garden", "/srv/garden")
    listed = places.add("listed", "/trees/1", parent_key="garden")
    inside = places.add("inside", "/srv/garden/.worktrees/7")
    places.add("other", "/srv/other")
    places.derive()
    assert relatives(places.rows.connection, {garden}) == {listed, inside}


def test_deriving_again_changes_nothing(places: Places) -> None:
    places.add("garden", "/srv/garden")
    places.add("tree", "/srv/garden/.worktrees/7", head_branch="beds")
    places.add("orphan", "/trees/9", git_repository="/srv/gone", head_branch="x")
    found = places.derive()
    assert places.derive() == found
