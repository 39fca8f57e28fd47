"""Before rows go, everything is noted that depends on them."""

from __future__ import annotations

from tests.support.rows import Rows

from assoc_ingest.derive.changeset import Touched, fill, linked_worktrees


def noted(rows: Rows, file: int) -> Touched:
    touched = Touched()
    touched.before_clearing(rows.connection, file)
    return touched


def test_of_a_file_alone_nothing_but_its_own_session_and_project_is_noted(rows: Rows) -> None:
    project = rows.project("garden")
    session, file = rows.session("one", project)
    rows.message(file, "prompt", "hello", uuid="u1")
    rows.message(rows.session("two")[1], "prompt", "hello", uuid="u2")
    assert noted(rows, file) == Touched(sessions={session}, projects={project})


def test_responses_that_its_lines_state_are_noted(rows: Rows) -> None:
    _, file = rows.session("one")
    _, other = rows.session("two")
    rows.add("usage", response_key="msg_1", file_id=file)
    rows.add("usage", response_key="msg_2", file_id=other)
    assert noted(rows, file).responses == {"msg_1"}


def test_files_that_have_its_lines_too_are_noted(rows: Rows) -> None:
    _, file = rows.session("one")
    _, fork = rows.session("two")
    for place in (file, fork, file):
        rows.message(place, "prompt", "hello", uuid="u1")
    assert noted(rows, file).shared == {fork}


def test_files_whose_queue_repeats_its_rows_are_noted(rows: Rows) -> None:
    session, file = rows.session("one")
    other = rows.file("z.jsonl", session_id=session)
    entry = rows.message(file, "queued_prompt", "go on")
    rows.message(other, "queued_prompt", "go on", copy_of=entry)
    assert noted(rows, file).shared == {other}
    assert noted(rows, other).shared == set()


def test_files_whose_mail_repeats_its_own_are_noted(rows: Rows) -> None:
    _, file = rows.session("one")
    _, other = rows.session("two")
    first = rows.add("inbox_items", file_id=file, channel="transcript", text="hello")
    rows.add("inbox_items", file_id=other, channel="transcript", text="hello", copy_of=first)
    assert noted(rows, file).files == {other}
    assert noted(rows, other).files == set()


def test_sessions_and_projects_of_which_its_entries_speak_are_noted(rows: Rows) -> None:
    sessions = [rows.session(key)[0] for key in ("listed", "prompted", "titled", "other")]
    projects = [rows.project(name) for name in ("a", "b", "c", "d")]
    file = rows.file("list.json", kind="chat_list")
    rows.add("session_entries", file_id=file, session_id=sessions[0], project_id=projects[0])
    rows.add("prompts", file_id=file, session_id=sessions[1], project_id=projects[1])
    rows.add("summaries", file_id=file, session_id=sessions[2])
    rows.add("project_entries", file_id=file, project_id=projects[2])
    touched = noted(rows, file)
    assert touched.sessions == set(sessions[:3])
    assert touched.projects == set(projects[:3])


def test_the_worktree_whose_making_it_states_is_noted(rows: Rows) -> None:
    tree = rows.project("tree", "C:/src/Tree")
    rows.project("other", "C:/src/other")
    elsewhere = rows.add("sources", kind="claude", root="/elsewhere")
    rows.project("tree", "C:/src/Tree", source_id=elsewhere)
    _, file = rows.session("one")
    rows.add("links", file_id=file, kind="worktree", url="C:\\src\\tree\\")
    rows.add("links", file_id=file, kind="pr", url="C:/src/other")
    assert linked_worktrees(rows.connection, str(file)) == {tree}
    assert noted(rows, file).projects == {tree}


def test_a_set_of_ids_replaces_the_one_before(rows: Rows) -> None:
    rows.touch(files=[1, 2])
    fill(rows.connection, "touched_files", {3})
    assert rows.all("select id from touched_files") == [3]
