"""What can be asked. `question` says what a question is; each has a module here, and templates."""

QUESTIONS = [
    "search", "show", "list", "query", "recent", "recap", "stats", "blame", "fix", "status",
    "secrets", "schema",
]  # fmt: skip
"""In the order of the help. The function has the name of its module, as have its templates; an
underscore behind it keeps it apart from a name of Python's."""

FILTERS = {
    "kind": "Only hits of this kind (prompt, text, thinking, tool_use, plan, task ...)",
    "project": "Only this project",
    "cwd": "Only the project of this directory, or of the nearest one above it: an absolute path.",
    "session": "Only this session, given by a prefix of its key.",
    "source": "Only this source",
    "branch": "Only work on this git branch.",
    "model": "Only this model.",
    "tool": "Only calls of this tool, and their output.",
    "status": "Only this status, such as pending, or sessions that ended this way: error, "
    "interrupted, finished. A part is enough.",
    "errors": "Only sessions in which a call or a request failed.",
    "min_cost": "Only sessions that cost this many dollars or more.",
    "since": "From this time on: 12h, 7d, yesterday, monday, 'last week', '3 weeks ago' or a date.",
    "until": "Up to this time; a day, week or month is included.",
}
"""What an answer can be limited by. A command completes some of the sentences."""
