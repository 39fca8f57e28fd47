"""After a push the server has exactly what the machine has, whatever it had before."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.fleet import (
    MadeFrame,
    MadeLocal,
    MadeMemory,
    expected,
    frame,
    on_server,
    push_v1,
    row,
    says,
)

from assoc_ingest.errors import FleetError
from assoc_ingest.fleet.push import Limits, Report, push
from assoc_ingest.fleet.server import Server

pytestmark = pytest.mark.citus


class Machine:
    """A machine with its memory, and the server."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.server = Server(connection)
        self.local = MadeLocal()
        self.memory = MadeMemory()

    def push(self, **options: Any) -> Report:
        """Push, and let the server have what is here."""
        report = push(self.server, self.local, self.memory, **options)
        assert on_server(self.connection, self.memory.uuid) == expected(self.local)
        return report

    @property
    def version(self) -> int:
        """The version that the server has."""
        known = self.server.hello(self.memory.uuid)
        return known.version if known else -1


@pytest.fixture
def machine(database: Any) -> Machine:
    """A machine that has two files and never pushed."""
    made = Machine(database)
    made.local.put("a", two_frames())
    made.local.put("b", [frame(0, b"other", messages=[says(0, "other")])])
    made.local.keep("sessions", row("sessions", source_no=1, session_key="s", title="A title"))
    made.local.keep("sources", row("sources", source_no=1, kind="claude", root="/home"))
    return made


def two_frames() -> list[MadeFrame]:
    """A file of two frames."""
    return [
        frame(-1, None, line_types=[row("line_types", byte_offset=-1, type="user", count=2)]),
        frame(0, b"first", messages=[says(0, "first"), says(5, "fifth", model="m")]),
        frame(10, b"second", messages=[says(10, 'tenth \ufffd \u2028 \\ " é')]),
    ]


def test_everything_arrives_as_it_is(machine: Machine) -> None:
    report = machine.push()
    assert (report.files, report.frames, report.is_full) == (2, 5, True)


def test_what_did_not_change_is_not_sent_again(machine: Machine) -> None:
    machine.push()
    before = machine.version
    assert machine.push().calls == 0
    report = machine.push(is_full=True)
    assert (report.frames, report.rows, machine.version) == (0, 0, before)


def test_an_appended_line_sends_the_last_stretch_alone(machine: Machine) -> None:
    machine.push()
    machine.local.put("a", [*two_frames(), frame(20, b"third", messages=[says(20, "x")])])
    report = machine.push()
    assert (report.files, report.frames, report.rows) == (1, 1, 1)


def test_bytes_that_the_server_has_are_not_sent_with_changed_rows(machine: Machine) -> None:
    machine.push()
    first, second, third = two_frames()
    third = frame(10, third.data, messages=[says(10, "tenth", is_copy=1)])
    machine.local.put("a", [first, second, third])
    report = machine.push()
    assert report.frames == 1
    assert report.size < 400


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [frame(0, b"anew", messages=[says(0, "anew")])],
        [frame(0, b"merged", messages=[says(0, "first"), says(12, "twelfth")])],
        [frame(10, b"second", messages=[says(10, "tenth")])],
        two_frames()[:2],
    ],
    ids=["emptied", "rewritten", "merged", "without its beginning", "without its end"],
)
def test_a_rewrite_leaves_nothing_of_before(machine: Machine, frames: list[MadeFrame]) -> None:
    machine.push()
    machine.local.put("a", frames)
    machine.push()


def test_lines_behind_many_send_their_own_rows_alone(machine: Machine) -> None:
    """Also where rows before them disappeared or changed: then from there on."""
    lines = [says(n, f"line {n}") for n in range(100)]

    def pushed(*rows: tuple[object, ...]) -> int:
        machine.local.put("long", [frame(0, b"%d" % len(rows), messages=list(rows))])
        return machine.push().rows

    machine.push()
    assert pushed(*lines) == 100
    assert pushed(*lines, says(100, "more")) == 5
    assert pushed(*lines, says(100, "more"), says(101, "and more")) == 6
    assert pushed(*lines[:70], *lines[71:]) == 99 - 64
    assert pushed(*lines[:64]) == 0
    assert pushed(says(0, "anew"), *lines[1:64]) == 64


def test_rows_disappear_from_a_table_that_has_no_others(machine: Machine) -> None:
    call = row("tool_calls", byte_offset=5, row_no=0, name="Bash")
    link = row("links", byte_offset=25, row_no=0, url="https://example.org")
    said = [says(0, "said")]
    for frames in (
        [frame(0, b"all", messages=said, tool_calls=[call], links=[link])],
        [frame(0, b"1", messages=said), frame(20, b"2", links=[link])],
        [frame(0, b"1", messages=said), frame(20, b"3")],
        [frame(0, b"1", messages=said, tool_calls=[call])],
        [frame(0, b"1", messages=[says(0, "other")])],
    ):
        machine.local.put("a", frames)
        machine.push(limits=Limits(rows=1))


def test_what_an_older_program_pushed_is_continued(machine: Machine) -> None:
    push_v1(machine.connection, machine.local, machine.memory)
    assert on_server(machine.connection, machine.memory.uuid) == expected(machine.local)
    assert machine.push(is_full=True).frames == 0
    machine.local.put("a", two_frames()[:2])
    push_v1(machine.connection, machine.local, machine.memory)
    assert machine.push(is_full=True).frames == 0
    machine.local.put("b", [frame(0, b"more", messages=[says(0, "other"), says(5, "more")])])
    machine.push()


def test_a_document_without_bytes_brings_its_rows(machine: Machine) -> None:
    text = row("documents", byte_offset=0, row_no=0, kind="note", title="t", text="private")
    machine.local.put("note", [frame(0, None, documents=[text])])
    machine.push()


def test_a_forgotten_file_is_deleted_first(machine: Machine) -> None:
    machine.push()
    machine.local.forget("b")
    machine.local.keep("sessions")
    assert machine.push().deleted == 2


def test_a_file_that_was_pruned_here_stays_on_the_server(machine: Machine) -> None:
    machine.push()
    before = on_server(machine.connection, machine.memory.uuid)
    machine.local.prune("b")
    machine.local.keep("sessions")
    push(machine.server, machine.local, machine.memory)
    assert on_server(machine.connection, machine.memory.uuid) == before


@pytest.mark.parametrize("limits", [{"size": 1}, {"rows": 1}], ids=str)
def test_many_small_calls_come_to_the_same(machine: Machine, limits: dict[str, int]) -> None:
    report = machine.push(limits=Limits(**limits))
    assert report.calls >= 6


def test_a_call_that_is_late_or_repeated_does_nothing(machine: Machine) -> None:
    machine.push()
    known = machine.server.hello(machine.memory.uuid)
    assert known is not None
    late = (known.origin_id, known.version - 1, known.nonce)
    assert not machine.server.files(*late, [{"file_key": b"new"}])[0].applied
    assert not machine.server.push(*late, b"[]", [], {}, {}).applied
    assert not machine.server.forget(*late, list(machine.local.contents)).applied
    assert on_server(machine.connection, machine.memory.uuid) == expected(machine.local)
    assert machine.version == known.version


def test_two_machines_do_not_touch_each_other(machine: Machine, database: Any) -> None:
    other = Machine(database)
    other.local.put("a", [frame(0, b"two", messages=[says(0, "of the other")])])
    machine.push()
    other.push()
    machine.local.forget("a")
    machine.push()
    assert on_server(database, other.memory.uuid) == expected(other.local)


def test_a_copied_identity_is_refused(machine: Machine, database: Any) -> None:
    machine.push()
    copy = Machine(database)
    copy.memory.__dict__.update(machine.memory.__dict__, nonces=list(machine.memory.nonces))
    machine.local.put("c", [frame(0, b"c")])
    machine.push()
    with pytest.raises(FleetError, match="remote new-origin"):
        copy.push()


def test_a_copy_that_came_to_the_same_version_is_refused(machine: Machine) -> None:
    machine.push()
    machine.memory.nonces[:] = ["0b7c2f4e-1111-4222-8333-444455556666"]  # the server has another
    with pytest.raises(FleetError, match="remote new-origin"):
        machine.push()


def test_another_database_does_not_go_on_by_itself(machine: Machine) -> None:
    machine.push()
    machine.memory.db_uuid = MadeMemory().db_uuid
    with pytest.raises(FleetError, match="remote adopt"):
        machine.push()


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)


@st.composite
def files(draw: st.DrawFn) -> list[MadeFrame]:
    """A file: frames that begin in different places, with rows in each."""
    starts = sorted(draw(st.sets(st.integers(0, 6), max_size=4)))
    frames = []
    for start, end in pairwise([*starts, 9]):
        offsets = draw(st.sets(st.integers(start, end - 1), max_size=2))
        messages = [says(offset, draw(TEXTS)) for offset in sorted(offsets)]
        frames.append(frame(start, draw(st.binary(min_size=1, max_size=2)), messages=messages))
    return frames


@settings(
    max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.lists(st.tuples(st.sampled_from("abc"), files(), st.booleans()), max_size=6))
def test_any_sequence_of_changes_ends_as_one_push(
    database: Any, changes: list[tuple[str, list[MadeFrame], bool]]
) -> None:
    machine = Machine(database)
    for name, frames, is_pushed in changes:
        machine.local.put(name, frames)
        if is_pushed:
            machine.push(limits=Limits(rows=2))
    machine.push()
