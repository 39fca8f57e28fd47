"""Everything that coding agents leave on a disk, in one SQLite file."""

__version__ = "0.1.0"
