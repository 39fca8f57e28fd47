"""From a question to its answer: search, conversations, lists and reports, as text or JSON."""
