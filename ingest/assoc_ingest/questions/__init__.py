"""What can be asked. `question` says what a question is; each has a module here, and templates."""

QUESTIONS = ["blame", "fix"]
"""In the order of the help. The function has the name of its module, as have its templates."""
