"""Moved to `assoc_ingest.testing.dump`."""

from assoc_ingest.testing.dump import *  # noqa: F403
