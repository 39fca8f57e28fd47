"""Copilot CLI's sessions are found where it puts them, and described as its own file says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assoc_ingest.records import Issue, ProjectEntry, SessionEntry, ToolCall
from assoc_ingest.source import Line
from assoc_ingest.sources.copilot import Copilot


def described(text: str) -> tuple[SessionEntry | None, list[ProjectEntry], list[Issue]]:
    """Return what a session's description states."""
    claim = Copilot().claim(("session-state", "s1", "workspace.yaml"))
    assert claim is not None
    records = Copilot().parse(claim, [Line(0, text.encode())])
    entries = [record for record in records if isinstance(record, SessionEntry)]
    projects = [record for record in records if isinstance(record, ProjectEntry)]
    issues = [record for record in records if isinstance(record, Issue)]
    return entries[0] if entries else None, projects, issues


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("name: Seeds: which survive", "Seeds: which survive"),
        ("name: 'Seeds'", "Seeds"),
        ("name: >-\n  Seeds\n  and frost\nbranch: main", "Seeds and frost"),
        ("name: Seeds\n  and frost", "Seeds and frost"),
        ("summary: Seeds", "Seeds"),
        ("name: null\nsummary: Seeds", "Seeds"),
        ("name:\n  first: Seeds", None),
        ("name: ''", None),
    ],
)
def test_a_title_is_read_however_it_is_written(line: str, title: str | None) -> None:
    entry, _, issues = described(f"id: s1\n{line}\n")
    assert entry is not None
    assert entry.summary == title
    assert issues == []


def test_the_project_is_the_directory_however_windows_spells_it() -> None:
    entry, (project,), _ = described("cwd: C:\\Garden\n")
    assert entry is not None
    assert (entry.cwd, entry.project_key) == ("C:\\Garden", "c:/garden")
    assert (project.key, project.path) == ("c:/garden", "C:\\Garden")


def test_the_files_of_a_patch_are_named_from_where_the_session_is() -> None:
    def event(kind: str, **data: object) -> bytes:
        return json.dumps({"type": kind, "data": data}).encode()

    patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: lib/b.py\n*** End Patch"
    call = {"toolCallId": "c1", "name": "apply_patch", "arguments": patch}
    lines = [
        event("session.start", context={"cwd": "/srv/garden"}),
        event("assistant.message", toolRequests=[call]),
    ]
    claim = Copilot().claim(("session-state", "s1.jsonl"))
    assert claim is not None
    _, context = Copilot().read(claim, [Line(0, lines[0])], {})
    records, _ = Copilot().read(claim, [Line(100, lines[1])], context)
    (made,) = [record for record in records if isinstance(record, ToolCall)]
    assert made.target == "/srv/garden/a.py"
    assert json.loads(made.paths or "") == ["/srv/garden/a.py", "/srv/garden/lib/b.py"]


def test_a_description_without_values_is_an_issue() -> None:
    for text in ("", "\n", "just words\n", "- a\n- b\n"):
        entry, _, issues = described(text)
        assert entry is None
        assert [issue.quarantined for issue in issues] == [1]


def test_its_home_is_the_one_that_the_environment_names() -> None:
    assert Copilot().default_roots({}, "/home/ada") == ["/home/ada/.copilot"]
    assert Copilot().default_roots({"COPILOT_HOME": "/srv/c"}, "/home/ada") == ["/srv/c"]
    assert Copilot().default_roots({}, None) == []


def test_a_session_goes_on_by_its_id_and_never_by_an_option() -> None:
    assert Copilot().resume_command("1f-2e") == ["copilot", "--resume=1f-2e"]
    assert Copilot().resume_command("x; rm -r .") is None


def test_nothing_beside_its_sessions_is_claimed() -> None:
    other = [
        "session-store.db", "command-history-state.json", "session-state/s1/plan.md",
        "session-state/s1/files/x.jsonl", "session-state/s1/inuse.1.lock", "x.jsonl",
    ]  # fmt: skip
    assert [path for path in other if Copilot().claim(Path(path).parts)] == []
