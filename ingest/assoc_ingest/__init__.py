"""Index everything that coding agents leave on disk in one SQLite file."""

__version__ = "0.1.0"
