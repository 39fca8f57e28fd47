"""The source keeps what every source of assoc-ingest promises, on each of the cases."""

from pathlib import Path

from assoc_ingest.testing import SourceTests


class TestLetters(SourceTests):
    source = "letters"
    cases = Path(__file__).parent / "cases"
