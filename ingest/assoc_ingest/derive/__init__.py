"""What follows from the rows of several files, in SQL: copies, subagents, sessions, projects."""
