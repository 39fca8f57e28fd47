"""Derives facts from the rows of several files, in SQL: copies, subagents, sessions, projects."""
