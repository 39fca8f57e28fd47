"""Prints the pages that are made from the program itself.

The README, `docs/*.md` and `metadata.yml` hold blocks that cog fills by calling the functions
here: `make docs` writes them, `cog --check` tells whether they are current.
"""
