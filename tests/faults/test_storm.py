"""Whatever runs at once and whatever is killed, in the end the database is as one from scratch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.faults.amounts import times
from tests.faults.storm import Storm

pytestmark = pytest.mark.skipif(os.name != "posix", reason="of POSIX systems only")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(times(1, 1)))
def test_a_storm_leaves_what_a_sync_from_scratch_gives(seed: int, place: Path) -> None:
    storm = Storm(place, seed)
    assert storm.rage(lambda step: step < 6 or storm.kills < 2) == [], f"seed {seed}"
