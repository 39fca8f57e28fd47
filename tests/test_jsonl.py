"""A line is decoded into objects and quarantined stretches that tile it, whatever its bytes are.

And it does not matter whether a reader saw an object alone, or with what was written behind it.
"""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.strategies import lines as broken_lines

from assoc_ingest.records import AgentMeta, Issue, WorkflowAgent
from assoc_ingest.source import Claim, Line
from assoc_ingest.sources import SOURCES
from assoc_ingest.sources.reader import Piece, complete_prefix, pieces

BLANK = b" \t\r\n"

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
objects = st.dictionaries(st.text(max_size=6), values, max_size=4).map(
    lambda value: json.dumps(value).encode()
)
scraps = st.one_of(
    st.binary(max_size=40),
    objects,
    objects.map(lambda data: data[: len(data) // 2]),
    broken_lines,
    st.sampled_from([b"\x00" * 9, b"\xef\xbb\xbf", b'{"', b"}{", b"\\ud83d", b"NaN", b"  "]),
)
jumbles = st.lists(scraps, max_size=4).map(b"".join)


def parse(data: bytes, start: int = 0) -> list[Piece]:
    return list(pieces(Line(start, data), lambda value: bool(value)))


def values_of(data: bytes) -> list[object]:
    return [piece.object for piece in parse(data)]


@given(jumbles, st.integers(0, 10**9))
def test_any_bytes_are_tiled_and_nothing_raises(data: bytes, start: int) -> None:
    position = start
    for piece in parse(data, start):
        assert piece.start >= position
        assert piece.length > 0
        assert not data[position - start : piece.start - start].strip(BLANK), "a gap"
        assert (piece.object is None) <= (piece.reason is not None)
        position = piece.start + piece.length
    assert not data[position - start :].strip(BLANK)


@given(jumbles)
def test_what_was_decoded_can_be_stored(data: bytes) -> None:
    for piece in parse(data):
        text = repr(piece.object)
        text.encode()
        assert "\\x00" not in text


@given(objects, jumbles)
def test_an_object_and_garbage_are_as_two_lines(first: bytes, rest: bytes) -> None:
    """Byte for byte: so one read and two give the same rows."""
    together = parse(first + rest)
    apart = parse(first) + parse(rest, len(first))
    assert together == apart


@given(jumbles)
def test_what_a_reader_takes_of_a_tail_does_not_change_the_rest(tail: bytes) -> None:
    tail = tail.replace(b"\n", b"")
    taken = complete_prefix(tail)
    assert 0 <= taken <= len(tail)
    assert parse(tail) == parse(tail[:taken]) + parse(tail[taken:], taken)
    assert all(piece.object is not None for piece in parse(tail[:taken]))


@given(objects)
def test_an_object_is_complete_and_no_part_of_it_is(data: bytes) -> None:
    assert complete_prefix(data) == len(data)
    for size in range(len(data)):
        assert complete_prefix(data[:size]) == 0


@given(objects.filter(lambda data: b"\\u0000" not in data and b"\\ud" not in data))
def test_plain_objects_are_decoded_as_they_are(data: bytes) -> None:
    (piece,) = parse(data)
    assert piece == (0, len(data), orjson.loads(data), None)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b'{"a":1}', [(0, 7, {"a": 1}, None)], id="one object"),
        pytest.param(
            b'{"a":1}{"b":2}', [(0, 7, {"a": 1}, None), (7, 7, {"b": 2}, None)], id="two objects"
        ),
        pytest.param(
            b'{"a":1} {"b":2}', [(0, 7, {"a": 1}, None), (8, 7, {"b": 2}, None)], id="and a blank"
        ),
        pytest.param(b'\x00\x00{"a":1}', [(0, 9, {"a": 1}, None)], id="NULs before"),
        pytest.param(b'\xef\xbb\xbf{"a":1}', [(0, 10, {"a": 1}, None)], id="byte order mark"),
        pytest.param(b' {"a":1}\r', [(1, 7, {"a": 1}, None)], id="blanks around"),
        pytest.param(b'{"a":"\\u0000"}', [(0, 14, {"a": "\u2400"}, None)], id="NUL in a string"),
        pytest.param(
            b'{"a":"\\ud83d\\ude00"}', [(0, 20, {"a": "\U0001f600"}, None)], id="surrogate pair"
        ),
        pytest.param(
            b'{"a":"\\ud83d"}',
            [(0, 14, {"a": "\ufffd"}, "lone surrogate was replaced")],
            id="lone surrogate",
        ),
        pytest.param(
            b'{"\\ud83d":1}', [(0, 12, {"\ufffd": 1}, "lone surrogate was replaced")], id="in a key"
        ),
        pytest.param(
            b'{"a":"\xff"}', [(0, 9, {"a": "\ufffd"}, "invalid UTF-8 was replaced")], id="bad UTF-8"
        ),
        pytest.param(b'{"a":1,"a":2}', [(0, 13, {"a": 2}, None)], id="a key twice"),
        pytest.param(
            b'{"a":18446744073709551616}{}',
            [(0, 26, {"a": 2.0**64}, None), (26, 2, {}, None)],
            id="a wide integer is the same alone and in company",
        ),
        pytest.param(b"{}", [(0, 2, {}, None)], id="empty object"),
        pytest.param(b"", [], id="nothing"),
        pytest.param(b" \t\r", [], id="blanks"),
        pytest.param(b"\x00" * 5, [(0, 5, None, "only NUL bytes")], id="NULs"),
        pytest.param(
            b'{"a":"cut{"c":2}',
            [(0, 9, None, "cut off before another object"), (9, 7, {"c": 2}, None)],
            id="cut, then whole",
        ),
    ],
)
def test_lines_as_they_occur(data: bytes, expected: list[tuple[object, ...]]) -> None:
    assert [tuple(piece) for piece in parse(data)] == expected


@pytest.mark.parametrize(
    "data",
    [
        b"17",
        b'"text"',
        b"[1]",
        b"null",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1e400}',
        b'{"a":' + b"[" * 1100 + b"]" * 1100 + b"}",
        b'{"a":1',
        b"\x89PNG\r\x1a",
        b"{'a':1}",
        b'{"a":"' + b"\x01" + b'"}',
    ],
)
def test_what_is_no_object_is_quarantined_whole(data: bytes) -> None:
    (piece,) = parse(data)
    assert (piece.start, piece.length, piece.object) == (0, len(data), None)
    assert piece.reason


def test_an_object_behind_a_stub_must_have_a_known_shape() -> None:
    """The end of a cut line can parse as an object by accident."""
    line = Line(0, b'{"a":{"text":"x"},"b{"text":"y"}')
    assert [p.object for p in pieces(line, lambda value: "type" in value)] == [None]


def test_garbage_costs_no_more_than_its_length() -> None:
    """A million starts of an object are not tried one by one."""
    data = b'{"' * 500_000
    assert len(parse(data)) == 1
    assert complete_prefix(data) == 0


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (rb"C:\\u0000dir", r"C:\u0000dir"),  # the letters after a backslash, and no NUL
        (rb"half an emoji \ud83d", "half an emoji \ufffd"),
        (rb"nothing\u0000", "nothing\u2400"),
    ],
)
def test_a_document_of_a_home_is_read_like_a_line(written: bytes, meant: str) -> None:
    """A sidecar, and what a workflow says of its agents."""
    claude = SOURCES["claude"]
    meta = Claim("claude", "agent_meta", session_key="s", agent_key="a")
    read = claude.parse(meta, [Line(0, b'{"agentType":"x","description":"%s"}' % written)])
    assert [record.description for record in read if isinstance(record, AgentMeta)] == [meant]
    run = Claim("claude", "workflow", session_key="s", workflow="w")
    data = b'{"workflowProgress":[{"agentId":"a","label":"%s"}]}' % written
    read = claude.parse(run, [Line(0, data)])
    assert [record.label for record in read if isinstance(record, WorkflowAgent)] == [meant]


@pytest.mark.parametrize("more", [b'{"agentType":"y"}', b'\n{"agentType":"y"}', b" and more"])
def test_a_document_with_more_than_its_object_is_one_issue(more: bytes) -> None:
    """Two rows for what is one file would end the sync of everything."""
    meta = Claim("claude", "agent_meta", session_key="s", agent_key="a")
    data = b'{"agentType":"x"}' + more
    (issue,) = SOURCES["claude"].parse(meta, [Line(0, data)])
    assert isinstance(issue, Issue)
    assert issue[:2] == ("not JSON: unexpected content after document", 1)
    assert issue[-2:] == (0, len(data))
