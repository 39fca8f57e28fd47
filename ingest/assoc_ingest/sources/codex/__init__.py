"""Codex: its home directory, rollouts, prompt history and list of sessions."""
