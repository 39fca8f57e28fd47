"""A project has the path and the name that its directory really stands for, and true counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import permutations

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive.changeset import Touched
from assoc_ingest.derive.projects import refresh_lists, refresh_projects


def derive(rows: Rows, *files: int, projects: Iterable[int] = ()) -> Touched:
    touched = rows.touch(files, projects=set(projects))
    refresh_lists(rows.connection, touched)
    refresh_projects(rows.connection, touched)
    return touched


def project(rows: Rows, key: str, **values: object) -> int:
    """Insert a project of which nothing but its directory's name is known."""
    return rows.add("projects", **{"key": key, "source_id": rows.source, **values})


def transcript(rows: Rows, key: str, project_id: int, *directories: str, **values: object) -> int:
    """Insert a session of a project that was held in these directories."""
    _, file = rows.session(key, project_id, **values)
    rows.add("transcripts", file_id=file, started_at=f"2026-01-20 {key}")
    for offset, path in enumerate(directories):
        rows.add(
            "working_directories", path=path, encoded=path.replace("/", "-"), file_id=file,
            byte_offset=offset,
        )  # fmt: skip
    return file


def lists(rows: Rows, project_id: int, at: str = "list.json", **values: object) -> int:
    """Insert an entry of an application's list."""
    kind = values.pop("kind", "project_list")
    file = rows.file(at, kind=kind)
    rows.add("project_entries", file_id=file, project_id=project_id, **values)
    return file


def found(rows: Rows, project_id: int) -> tuple[str, str]:
    path, name = rows.get("projects", project_id, "path", "name")
    return path, name


def test_the_path_is_the_directory_that_the_project_is_named_after(
    empty: Callable[[], Rows],
) -> None:
    for order in permutations(["/srv", "/srv/garden", "/srv/garden/beds"]):
        rows = empty()
        garden = project(rows, "-srv-garden")
        derive(rows, transcript(rows, "one", garden, *order))
        assert found(rows, garden) == ("/srv/garden", "garden"), order


def test_where_no_directory_fits_the_first_one_counts(rows: Rows) -> None:
    garden = project(rows, "-srv-garden")
    files = [
        transcript(rows, "b", garden, "/later"),
        transcript(rows, "a", garden, "/first", "/then"),
    ]
    rows.set("files", files[1], path="z.jsonl")
    derive(rows, *files)
    assert found(rows, garden) == ("/first", "first")


def test_of_two_spellings_the_one_that_fits_exactly_counts(rows: Rows) -> None:
    garden = project(rows, "-srv-Garden")
    derive(rows, transcript(rows, "one", garden, "/srv/garden", "/srv/Garden"))
    assert found(rows, garden) == ("/srv/Garden", "Garden")


def test_of_a_long_path_the_name_of_the_directory_ends_in_a_hash(rows: Rows) -> None:
    path = "/srv/" + "x" * 220
    garden = project(rows, path.replace("/", "-") + "-a1b2c3")
    derive(rows, transcript(rows, "one", garden, "/tmp", path))
    assert found(rows, garden)[0] == path


def test_a_list_says_path_and_name_but_the_index_of_sessions_only_where_no_line_does(
    rows: Rows,
) -> None:
    garden, shed = project(rows, "g"), project(rows, "s")
    files = [
        lists(rows, garden, path="/listed/garden", name="The garden"),
        lists(rows, shed, "i.json", kind="session_index", path="/listed/shed"),
    ]
    derive(rows, *files)
    assert found(rows, garden) == ("/listed/garden", "The garden")
    assert found(rows, shed) == ("/listed/shed", "shed")
    files = [
        transcript(rows, "one", garden, "/said/garden"),
        transcript(rows, "two", shed, "/said/shed"),
    ]
    derive(rows, *files)
    assert found(rows, garden) == ("/listed/garden", "The garden")
    assert found(rows, shed) == ("/said/shed", "shed")


def test_an_entry_that_is_gone_counts_only_where_no_other_is_there(rows: Rows) -> None:
    garden = project(rows, "g")
    gone = lists(rows, garden, "a.json", path="/old", gone_at="2026-01-21")
    derive(rows, gone)
    assert found(rows, garden)[0] == "/old"
    derive(rows, lists(rows, garden, "b.json", path="/new"))
    assert found(rows, garden)[0] == "/new"


def test_the_history_of_prompts_says_the_path_where_nothing_else_does(rows: Rows) -> None:
    garden = project(rows, "-srv-garden")
    rows.file("projects/-srv-garden/x", project_id=garden)
    history = rows.file("history.jsonl", kind="history")
    for offset, (path, second) in enumerate([("/b", "2"), ("/a/", "1"), ("/c", None)]):
        rows.add(
            "prompts", project_id=garden, project_path=path, timestamp=second, file_id=history,
            byte_offset=offset,
        )  # fmt: skip
    derive(rows)  # without a path, it is looked at whenever a prompt names it
    assert found(rows, garden) == ("/a", "a")


def test_a_project_of_which_nothing_is_known_is_called_as_its_directory_is_written(
    rows: Rows,
) -> None:
    work = project(rows, "d--work")
    derive(rows, rows.file("projects/D--Work/x.jsonl", project_id=work))
    assert found(rows, work) == (None, "D--Work")


def test_a_path_of_windows_is_written_with_slashes(rows: Rows) -> None:
    work = project(rows, "w")
    derive(rows, lists(rows, work, path="D:\\src\\garden\\"))
    assert found(rows, work) == ("D:/src/garden", "garden")


def test_sessions_are_counted_that_are_conversations_and_there(rows: Rows) -> None:
    garden = project(rows, "g")
    for key, values in {
        "a": {"ended_at": "2026-01-01", "git_branch": "old"},
        "b": {"ended_at": "2026-01-03", "git_branch": None},
        "c": {"ended_at": "2026-01-02", "git_branch": "new"},
        "d": {"ended_at": "2026-01-02", "kind": "sidechain"},
        "e": {"ended_at": "2026-01-02", "gone_at": "2026-01-21"},
    }.items():
        transcript(rows, key, garden, **values)
    derive(rows, projects={garden})
    columns = ("session_count", "last_activity_at", "git_branch")
    assert rows.get("projects", garden, *columns) == (3, "2026-01-03", "new")
    lists(rows, garden, git_branch="listed")
    derive(rows, projects={garden})
    assert rows.get("projects", garden, "git_branch") == "listed"
    rows.set("projects", garden, head_branch="asked")
    derive(rows, projects={garden})
    assert rows.get("projects", garden, "git_branch") == "asked"


def test_a_project_that_nothing_names_goes(rows: Rows) -> None:
    left, kept = project(rows, "old"), project(rows, "new")
    rows.file("x.jsonl", project_id=kept)
    assert derive(rows, projects={left, kept}).is_project_removed
    assert rows.all("select id from projects") == [kept]
    assert not derive(rows, projects={kept}).is_project_removed


def test_a_project_is_gone_since_the_last_list_dropped_it(rows: Rows) -> None:
    garden = project(rows, "g")
    lists(rows, garden, "a.json", gone_at="2026-01-21")
    lists(rows, garden, "b.json", gone_at="2026-01-22")
    derive(rows, projects={garden})
    assert rows.get("projects", garden, "gone_at") == "2026-01-22"
    transcript(rows, "one", garden)
    derive(rows, projects={garden})
    assert rows.get("projects", garden, "gone_at") is None


@pytest.mark.parametrize("why", ["file", "list", "session", "project"])
def test_a_project_is_derived_again_for_every_reason(rows: Rows, why: str) -> None:
    garden, other = project(rows, "g", name="as it was"), project(rows, "o", name="kept")
    file = rows.file("garden/x.jsonl", project_id=garden if why == "file" else None)
    rows.file("other/x.jsonl", project_id=other)
    listing = lists(rows, garden)
    session, _ = rows.session("one", garden if why == "session" else None)
    touched = rows.touch(
        [file] if why == "file" else [listing] if why == "list" else [],
        [session] if why == "session" else [],
        projects={garden} if why == "project" else set(),
    )
    refresh_lists(rows.connection, touched)
    refresh_projects(rows.connection, touched)
    assert rows.get("projects", garden, "name") == "g"
    assert rows.get("projects", other, "name") == "kept"


def test_deriving_again_changes_nothing(rows: Rows) -> None:
    garden = project(rows, "-srv-garden")
    file = transcript(rows, "one", garden, "/srv/garden", git_branch="main")
    tree = project(rows, "t")
    rows.add(
        "project_entries", file_id=file, key="t", project_id=tree, path="/srv/garden/.worktrees/t"
    )
    derive(rows, file)
    stored = rows.all("select * from projects")
    derive(rows, file)
    assert rows.all("select * from projects") == stored
