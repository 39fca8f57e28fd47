"""From directories to bytes and back: walking roots, reading new lines, archiving what was read."""
