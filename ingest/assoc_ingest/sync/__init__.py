"""One pass over all roots, once or whenever something changes."""
