"""OpenCode: its home, its database, and its conversations."""
