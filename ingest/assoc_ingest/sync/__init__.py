"""One pass over all roots, and again whenever something changes."""
