"""Credentials: what they look like, where they stand, what masks them, and how one is forgotten."""
