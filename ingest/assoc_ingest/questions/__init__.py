"""What can be asked. `question` says what a question is; each has a module here, and templates."""

QUESTIONS = [
    "search", "show", "list", "query", "recent", "recap", "stats", "blame", "fix", "how",
    "status", "secrets", "schema",
]  # fmt: skip
"""In the order of the help. The function has the name of its module, as have its templates; an
underscore behind it keeps it apart from a name of Python's."""
