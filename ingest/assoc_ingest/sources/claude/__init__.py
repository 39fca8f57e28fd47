"""Claude Code: its home directory, transcripts, stores and lists."""
