"""Processes that read and parse many files for the one writer."""
