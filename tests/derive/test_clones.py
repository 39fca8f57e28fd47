"""Clones and worktrees of one repository are one; two repositories never are."""

from __future__ import annotations

from itertools import permutations

import pytest
from tests.support.rows import Rows, at

from assoc_ingest.derive.projects import refresh_named
from assoc_ingest.derive.repositories import directory_of, origin_in

PUSHED = "To https://github.com/ada/shop.git\n   1a2b3c4..2b3c4d5  main -> main\n"
ADDRESS = "github.com/ada/shop"


class Clones:
    """Projects, each with one conversation in which commands ran."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.second = 0

    def add(self, path: str | None, *commands: tuple[str, str], **values: object) -> int:
        """Insert a project; a command is its text, and what it printed."""
        key = (path or str(values.pop("key"))).replace("/", "-")
        project = self.rows.add("projects", key=key, source_id=self.rows.source, **values)
        self.ran(project, path, *commands)
        return project

    def ran(self, project: int, path: str | None, *commands: tuple[str, str]) -> None:
        self.second += 1
        session, file = self.rows.session(f"s{self.second}", project)
        self.rows.add("transcripts", file_id=file, started_at=at(self.second))
        if path is not None:
            self.rows.add(
                "working_directories", path=path, encoded=path.replace("/", "-"), file_id=file,
                byte_offset=0,
            )  # fmt: skip
        for command, printed in commands:
            self.second += 1
            self.rows.call(
                file, "Bash", {"command": command}, printed, target=command, session_id=session,
                started_at=at(self.second),
            )  # fmt: skip

    def states(self, project: int, kind: str, extra: str) -> None:
        """Insert a line of an agent that is stored whole."""
        (session,) = self.rows.all("select max(id) from sessions where project_id = ?", project)
        (file,) = self.rows.all("select max(id) from files where session_id = ?", session)
        self.rows.add(
            "line_extras", type=kind, extra=extra, session_id=session, file_id=file,
            byte_offset=self.second,
        )  # fmt: skip

    def names(self) -> dict[str, str]:
        """Derive, and return the name of the repository of each directory."""
        refresh_named(self.rows.connection, {*self.rows.all("select id from projects")})
        return dict(self.rows.all("select coalesce(path, key), repository_name from projects"))

    def keys(self) -> dict[str, str]:
        self.names()
        return dict(self.rows.all("select coalesce(path, key), repository_key from projects"))


@pytest.fixture
def clones(rows: Rows) -> Clones:
    return Clones(rows)


# -- which directories are one ---------------------------------------------------------------------


def test_clones_have_one_remote(clones: Clones) -> None:
    clones.add("/srv/shop", ("git push origin main", PUSHED))
    clones.add("/home/ada/Shop-2", ("git fetch origin", "From github.com:Ada/shop\n"))
    assert clones.keys() == {"/srv/shop": ADDRESS, "/home/ada/Shop-2": ADDRESS}
    assert set(clones.names().values()) == {"Ada/shop"}


def test_a_worktree_is_its_repository_whose_remote_either_may_know(clones: Clones) -> None:
    clones.add("/srv/shop")
    clones.add("/srv/shop/.worktrees/1", ("git push -u origin x", PUSHED))
    clones.add("/srv/shop/.worktrees/2")
    clones.add("/srv/gone/.worktrees/1")
    clones.add("/srv/gone/.worktrees/2")
    names = clones.names()
    assert [*names.values()] == ["ada/shop"] * 3 + ["gone"] * 2


def test_a_fork_and_another_repository_of_this_name_are_others(clones: Clones) -> None:
    clones.add("/srv/shop", ("git push origin main", PUSHED))
    clones.add("/srv/fork/shop", ("git push origin main", "To github.com:eve/shop\n"))
    clones.add("/srv/lab/shop", ("git push origin main", "To gitlab.com:ada/shop\n"))
    clones.add("/opt/shop")
    clones.add("/usr/shop")
    assert clones.names() == {
        "/srv/shop": "github.com/ada/shop",
        "/srv/fork/shop": "eve/shop",
        "/srv/lab/shop": "gitlab.com/ada/shop",
        "/opt/shop": "/opt/shop",
        "/usr/shop": "/usr/shop",
    }


def test_a_worktree_of_another_remote_is_no_worktree_of_this_repository(clones: Clones) -> None:
    clones.add("/srv/shop", ("git push origin main", PUSHED))
    clones.add("/srv/shop/.worktrees/x/test", ("git push origin x", "To github.com:ada/test\n"))
    assert clones.names()["/srv/shop/.worktrees/x/test"] == "ada/test"


def test_worktrees_that_differ_say_nothing_of_the_others(clones: Clones) -> None:
    clones.add("/srv/shop")
    clones.add("/srv/shop/.worktrees/1", ("git push origin x", PUSHED))
    clones.add("/srv/shop/.worktrees/2", ("git push origin x", "To github.com:ada/test\n"))
    assert clones.names()["/srv/shop"] == "shop"


def test_the_newest_statement_counts(clones: Clones) -> None:
    renamed = "To https://github.com/ada/store.git\n"
    project = clones.add(
        "/srv/shop", ("git push origin main", PUSHED), ("git push origin a", renamed)
    )
    assert clones.names() == {"/srv/shop": "ada/store"}
    clones.states(
        project, "session_meta",
        f'{{"git":{{"repository_url":"git@github.com:ada/kiosk"}},"timestamp":"{at(1)}"}}',
    )  # fmt: skip
    assert clones.names() == {"/srv/shop": "ada/store"}
    clones.rows.connection.execute("update line_extras set timestamp = ?", (at(59),))
    assert clones.names() == {"/srv/shop": "ada/kiosk"}


def test_what_git_says_counts_more_than_what_was_printed(clones: Clones) -> None:
    clones.add("/srv/shop", ("git push origin main", PUSHED), git_remote="github.com/ada/store")
    assert clones.names() == {"/srv/shop": "ada/store"}


def test_agents_state_the_remote(clones: Clones) -> None:
    urls = {
        "/a": ("session_meta", '{"git":{"repository_url":"https://github.com/ada/shop.git"}}'),
        "/b": (
            "session.start",
            '{"data":{"context":{"repository":"ada/shop","repositoryHost":"github.com"}}}',
        ),
    }
    for path, (kind, extra) in urls.items():
        clones.states(clones.add(path), kind, extra)
    for path, extra in {
        "/c": '{"git":{"repository_url":7}}', "/d": '{"data":[{"context":1}]}', "/e": '{"git":"x"}',
        "/f": '{"git":{"repository_url":"../shop"}}', "/g": "[]",
    }.items():  # fmt: skip
        clones.states(clones.add(path), "session_meta", extra)
    assert clones.names() == {
        "/a": "ada/shop", "/b": "ada/shop", **{f"/{name}": name for name in "cdefg"}
    }  # fmt: skip


def test_without_a_remote_the_first_commit_and_the_name_count(clones: Clones) -> None:
    commit = "2986f6b1e32dbd0f3807c861e31d88610546d509"
    for path in ("/srv/shop", "/home/ada/shop", "/home/ada/store"):
        clones.states(clones.add(path), "project", f'{{"id":"{commit}"}}')
    clones.states(clones.add("/opt/shop"), "project", '{"id":"global"}')
    keys = clones.keys()
    assert keys["/srv/shop"] == keys["/home/ada/shop"] == f"{commit} shop"
    assert len({*keys.values()}) == 3
    clones.add("/var/shop", git_first_commit=commit)
    assert clones.keys()["/var/shop"] == f"{commit} shop"


def test_a_directory_that_nobody_knows_is_one_of_its_home(clones: Clones) -> None:
    for home in ("/home/ada/.claude", "/home/eve/.claude"):
        clones.rows.source = clones.rows.add("sources", kind="claude", root=home + "x")
        clones.add(None, key="-srv-shop")
    assert {*dict(clones.rows.all("select repository_key, 1 from projects"))} == {None}
    clones.names()
    assert dict(clones.rows.all("select repository_key, repository_name from projects")) == {
        key: key for key in ("/home/ada/.claudex#-srv-shop", "/home/eve/.claudex#-srv-shop")
    }


def test_links_in_a_circle_join_nothing(clones: Clones) -> None:
    clones.add("/a", git_repository="/b")
    clones.add("/b", git_repository="/a")
    assert clones.keys() == {"/a": "/a", "/b": "/b"}


def test_on_windows_case_makes_no_difference(clones: Clones) -> None:
    clones.add("C:/Work/shop")
    clones.add("c:\\work\\shop\\.worktrees\\1")
    assert {*clones.keys().values()} == {"c:/work/shop"}


def test_names_are_different_whatever_an_application_calls_its_projects(clones: Clones) -> None:
    """It may call one as the path or the remote of another."""
    listed = clones.rows.file("list.json", kind="project_list")
    called = {
        "/srv/shop": "/srv/till",
        "/srv/till": "\x1b[2J",
        "/srv/door": "ada/shop",
        "/x": "\x1b[2J",
    }
    for path, name in called.items():
        project = clones.add(path)
        clones.rows.add(
            "project_entries", key=path.replace("/", "-"), name=name, path=path,
            project_id=project, file_id=listed,
        )  # fmt: skip
    clones.add("/home/ada/shop", ("git push origin main", PUSHED))
    names = clones.names()
    assert len({*names.values()}) == 5
    assert names["/home/ada/shop"] == "github.com/ada/shop"


def test_the_order_in_which_projects_are_known_makes_no_difference(clones: Clones) -> None:
    places = {
        "/srv/shop": PUSHED, "/srv/shop/.worktrees/1": "", "/opt/shop": "To github.com:Ada/Shop\n",
    }  # fmt: skip
    for place, printed in places.items():
        clones.add(place, ("git push origin main", printed))
    expected = clones.names()
    ids = clones.rows.all("select id from projects")
    for order in permutations(ids):
        clones.rows.connection.execute(
            "update projects set remote = null, repository_key = null, repository_name = null"
        )
        for project in order:
            refresh_named(clones.rows.connection, {project})
        found = clones.rows.all("select coalesce(path, key), repository_name from projects")
        assert dict(found) == expected


# -- what git printed ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("git push origin main", ""),
        ("git push -u origin x && gh pr create", ""),
        ("git add . && git commit -m 'a; b' && git push --force-with-lease origin next", ""),
        ("git pull --rebase origin main", ""),
        ("git fetch origin", ""),
        ("git remote -v", ""),
        ("git remote get-url origin", ""),
        ("git config --get remote.origin.url", ""),
        ("cd /srv/shop && git push origin main", "/srv/shop"),
        ('cd "/srv/my shop" && git status; git fetch origin', "/srv/my shop"),
        ("cd D:/shop && git push origin main", "D:/shop"),
    ],
)
def test_a_command_that_asks_for_origin_says_where(command: str, place: str) -> None:
    assert directory_of(command) == place


@pytest.mark.parametrize(
    "command",
    [
        "", "git push", "git pull", "git push fork main",
        "git push origin main && git push fork main",
        "git fetch --all", "git fetch upstream", "git -C ../other push origin main",
        "cd a && cd b && git push origin main", "(cd other && git push origin main)",
        "git status && cd /other && git push origin main", "pushd /x && git push origin main",
        'ssh host "cd /x; git push origin main"', "GIT_DIR=/x/.git git push origin main",
        "git --git-dir /x/.git push origin main", "docker exec x git push origin main",
        "cd $HOME/x && git push origin main", "cd `pwd`/x && git push origin main",
        "echo git push origin main", "gh repo view", "git push origin main " + "x" * 5000,
    ],
)  # fmt: skip
def test_what_may_be_another_directory_or_another_remote_does_not_count(command: str) -> None:
    assert directory_of(command) in (None, "$HOME/x", "`pwd`/x")


@pytest.mark.parametrize(
    ("command", "printed", "remote"),
    [
        ("git push origin main", PUSHED, ADDRESS),
        ("git push origin main", "remote: hello\n" + PUSHED + "done", ADDRESS),
        ("git push origin a", "To github.com:ada/shop\n ! [rejected] a -> a (fetch)", ADDRESS),
        ("git remote -v", "eve\tgit@x.org:eve/shop (fetch)\norigin\tgithub.com:ada/shop (fetch)\n"
         "origin\tgithub.com:ada/shop (push)\n", ADDRESS),
        ("git remote get-url origin", "git@github.com:ada/shop.git\n", ADDRESS),
        ("cd /x && git config --get remote.origin.url", "git@github.com:ada/shop.git\n", ADDRESS),
        ("git push origin a", PUSHED + "To github.com:eve/shop\n", None),
        ("git push origin a", "To nowhere\n", None),
        ("git push origin a", "From 1a2b Mon Sep 17 00:00:00 2001\n", None),
        ("git push origin a", "", None),
        ("git push origin a", " To github.com:eve/shop\n", None),
    ],
)  # fmt: skip
def test_git_prints_one_remote(command: str, printed: str, remote: str | None) -> None:
    assert origin_in(command, printed) == remote


def test_only_the_directory_of_the_project_counts(clones: Clones) -> None:
    """An agent may have gone into another repository below, or its tool was told to."""
    above = clones.add("/srv", ("git push origin main", PUSHED))
    (file,) = clones.rows.all("select max(id) from files")
    clones.rows.add(
        "working_directories", path="/srv/shop", encoded="-srv-shop", file_id=file, byte_offset=1
    )
    assert clones.names() == {"/srv": "srv"}
    clones.ran(above, "/srv", ("cd /srv/shop && git push origin main", PUSHED))
    assert clones.names() == {"/srv": "srv"}
    clones.rows.call(
        file, "Bash", {"command": "git push origin main", "workdir": "/srv/shop"}, PUSHED,
        target="git push origin main",
    )  # fmt: skip
    assert clones.names() == {"/srv": "srv"}
    clones.ran(above, "/srv/other", ("cd /srv && git push origin main", PUSHED))
    assert clones.names() == {"/srv": "ada/shop"}
