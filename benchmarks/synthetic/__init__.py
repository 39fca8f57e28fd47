"""The parts of the generator of synthetic Claude Code homes; see ``generate.py``."""
