"""Reading: search, conversations, lists and queries, as text or JSON."""
