"""The pages that are printed by the program itself.

README.md, docs/*.md and metadata.yml hold blocks of Python that cog replaces by what they print:
`make docs` writes them, `make check` fails if they are not current.
"""
