"""Credentials: what they look like, where they are, how they are masked and forgotten."""
