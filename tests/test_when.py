"""Every date format that agents write becomes one UTC text, or nothing: never "now"."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assoc_ingest.fields import from_milliseconds, milliseconds, utc

STORED = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("2026-07-02T09:14:03.118Z", "2026-07-02T09:14:03.118Z"),
        ("2026-07-02T09:14:03Z", "2026-07-02T09:14:03.000Z"),
        ("2026-07-02T09:14:03.118999Z", "2026-07-02T09:14:03.118Z"),
        ("2026-07-02T09:14:03.1Z", "2026-07-02T09:14:03.100Z"),
        ("2026-07-02T11:14:03.118+02:00", "2026-07-02T09:14:03.118Z"),
        ("2026-07-02T00:14:03-10:00", "2026-07-02T10:14:03.000Z"),
        ("2026-07-02T09:14:03.118", "2026-07-02T09:14:03.118Z"),
        ("2026-07-02 09:14:03", "2026-07-02T09:14:03.000Z"),
        ("2024-02-29T23:59:59.999Z", "2024-02-29T23:59:59.999Z"),
        (1771250400123, "2026-02-16T14:00:00.123Z"),
        (1771250400, "2026-02-16T14:00:00.000Z"),
        (1771250400.5, "2026-02-16T14:00:00.500Z"),
        (946684800, "2000-01-01T00:00:00.000Z"),
        (4102444799999, "2099-12-31T23:59:59.999Z"),
    ],
)
def test_every_form_names_the_same_instant(written: object, stored: str) -> None:
    assert utc(written) == stored


@pytest.mark.parametrize(
    "written",
    [
        None, "", "now", "yesterday", "2026-02-30T00:00:00.000Z", "2023-02-29T00:00:00.000Z",
        "2026-13-01T00:00:00.000Z", "2026-01-01T24:00:01.000Z", "2026-01-01T00:60:00.000Z",
        "1999-12-31T23:59:59.999Z", "2100-01-01T00:00:00.000Z", "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00", "\u0662\u0660\u0662\u0666-01-01T00:00:00.000Z",
        0, -1, 10**15, 10**30, 2**64, 1e300, float("inf"), float("-inf"), float("nan"),
        True, False, [], {}, b"2026-07-02T09:14:03.118Z",
    ],
)  # fmt: skip
def test_what_names_no_instant_is_none(written: object) -> None:
    assert utc(written) is None


def test_text_without_a_zone_is_read_in_the_zone_given() -> None:
    zone = timezone(timedelta(hours=2))
    assert utc("2026-02-19T18:41:07.204518", zone) == "2026-02-19T16:41:07.204Z"
    assert utc("2026-02-19T18:41:07.204Z", zone) == "2026-02-19T18:41:07.204Z"


@given(st.datetimes(datetime(2000, 1, 1), datetime(2099, 12, 31), timezones=st.just(UTC)))
def test_any_instant_survives(moment: datetime) -> None:
    stored = utc(moment.isoformat())
    assert stored is not None
    assert STORED.fullmatch(stored)
    assert utc(stored) == stored
    assert timedelta(0) <= moment - datetime.fromisoformat(stored) < timedelta(milliseconds=1)
    assert from_milliseconds(milliseconds(stored)) == stored


@given(st.text() | st.integers() | st.floats() | st.binary())
def test_nothing_raises_and_nothing_else_is_stored(value: object) -> None:
    stored = utc(value)
    assert stored is None or STORED.fullmatch(stored)
