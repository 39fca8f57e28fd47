"""Tests of a source that a package brings: the promises that every source of this program keeps.

```python
from pathlib import Path

from assoc_ingest.testing import SourceTests


class TestLetters(SourceTests):
    source = "letters"
    cases = Path(__file__).parent / "cases"
```

Each directory in `cases` is a case: `home` is what lies on disk, small, for one thing that the
agent writes or that can be broken, and `expected.json` the rows that it becomes. With the
environment variable `ASSOC_GOLDEN=1`, the tests write `expected.json`; read what they wrote. The
package has to be installed, for example with `pip install -e .`, since the tests read homes as a
sync does. They need pytest and hypothesis: `assoc-ingest[testing]`.

`promises` has the same as functions, `damage` the damaged lines, and `dump` compares databases.
"""

# ruff: noqa: E402

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..source import Source
from ..sources import SOURCES
from ..store.database import writing
from ..sync.run import sync

pytest.register_assert_rewrite(f"{__name__}.dump", f"{__name__}.damage", f"{__name__}.promises")

from . import promises
from .damage import Fixture, damaged, fixtures_in
from .dump import check, readable
from .dump import dump as every_row  # the module is called dump here, too
from .promises import Fresh

_QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


class SourceTests:
    """Derive a class from this, and say which source it tests and where its cases are."""

    source: str
    cases: Path

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each test that takes a case for all of them."""
        if "case" in metafunc.fixturenames:
            names = sorted(path.parent.name for path in self.cases.glob("*/home"))
            metafunc.parametrize("case", names)

    @pytest.fixture(autouse=True)
    def _alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Keep the tests out of the user's own homes."""
        for name in ("HOME", "USERPROFILE", "XDG_DATA_HOME", "LOCALAPPDATA"):
            monkeypatch.setenv(name, str(tmp_path / "user"))
        monkeypatch.delenv("ASSOC_INGEST_DB", raising=False)

    @pytest.fixture
    def fresh(self, tmp_path: Path) -> Fresh:
        """Makes empty databases."""
        numbers = count()

        def make() -> Path:
            path = tmp_path / f"{next(numbers)}.db"
            with writing(path):
                return path

        return make

    @pytest.fixture
    def home(self, case: str, tmp_path: Path) -> Path:
        """A copy of the home of the case."""
        return promises.copied(self.cases / case, tmp_path / "home")

    @property
    def _source(self) -> Source:
        return SOURCES[self.source]

    def _files(self) -> Iterator[Fixture]:
        for home in sorted(self.cases.glob("*/home")):
            yield from fixtures_in(home, self.source)

    # -- the promises ----------------------------------------------------------------------------

    def test_it_is_installed(self) -> None:
        assert self.source in SOURCES, "install the package, and look at: assoc-ingest status"
        assert list(self.cases.glob("*/home")), f"there is no case in {self.cases}"

    def test_a_home_becomes_the_expected_rows(self, case: str, home: Path, fresh: Fresh) -> None:
        database = fresh()
        sync(database, [home])
        check(database, home)
        shown, expected = readable(every_row(database)), self.cases / case / "expected.json"
        if os.environ.get("ASSOC_GOLDEN") == "1":
            expected.write_text(shown, "utf-8")
        assert json.loads(shown) == json.loads(expected.read_text("utf-8"))

    def test_syncing_twice_changes_nothing(self, home: Path, fresh: Fresh) -> None:
        promises.read_twice([home], fresh)

    def test_no_other_source_is_as_sure_of_a_home(self, home: Path) -> None:
        promises.recognised_by_one(home, self._source)

    def test_entries_of_lists_stand_in_documents_only(self, home: Path) -> None:
        promises.entries_in_documents([home])

    @pytest.mark.parametrize(("chunk", "batch"), [(1, 1), (150, 3000)])
    def test_the_size_of_the_pieces_does_not_matter(
        self, chunk: int, batch: int, home: Path, fresh: Fresh
    ) -> None:
        expected = promises.full([home], fresh)
        promises.read_in_any_pieces([home], fresh, expected, chunk, batch)

    def test_a_log_may_be_cut_at_any_line(self, home: Path, fresh: Fresh) -> None:
        promises.cut_at_lines([home], fresh, promises.full([home], fresh), logs=2, amount=12)

    def test_a_log_may_be_empty_at_first(self, home: Path, fresh: Fresh) -> None:
        promises.empty_at_first([home], fresh, promises.full([home], fresh))

    @pytest.mark.parametrize("turn", range(len(promises.CHANGES)))
    def test_a_rewritten_history_leaves_no_old_rows(
        self, turn: int, home: Path, fresh: Fresh
    ) -> None:
        promises.rewritten([home], fresh, turn)

    @pytest.mark.parametrize("turn", [0, 1])
    def test_a_file_replaced_by_rename_is_read_as_what_it_is(
        self, turn: int, home: Path, fresh: Fresh
    ) -> None:
        promises.replaced_by_rename([home], fresh, turn)

    @pytest.mark.parametrize("is_reversed", [True, False])
    def test_the_order_in_which_files_come_does_not_matter(
        self, is_reversed: bool, home: Path, fresh: Fresh
    ) -> None:
        promises.in_any_order([home], fresh, self.source, is_reversed=is_reversed)

    def test_what_it_says_is_what_can_be_meant(self) -> None:
        found = promises.contradictions([file for file in self._files() if file.is_log])
        assert not found, "\n".join(sorted(found))

    def test_no_line_makes_it_fail_or_is_lost(self) -> None:
        files = list(self._files())
        seen = 0

        @settings(max_examples=300, deadline=None, database=None, suppress_health_check=_QUIET)
        @given(st.data())
        def holds(data: st.DataObject) -> None:
            nonlocal seen
            file = data.draw(st.sampled_from(files))
            line = damaged(file.lines).map(lambda text: text.replace(b"\n", b" "))
            parts = data.draw(st.lists(line, min_size=1, max_size=4 if file.is_log else 1))
            seen += sum(promises.accounted_for(file, parts))

        holds()
        assert seen or not any(file.is_log for file in files)
