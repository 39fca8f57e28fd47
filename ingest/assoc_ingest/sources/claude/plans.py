"""Texts that Claude Code keeps as files: plans, and its memory of a project.

**plans/<slug>.md**, `<slug>-agent-<A>.md`: a plan in Markdown, rewritten as a whole. `<slug>` is a
name of three words that is also on the lines of its session. Its title is the first line that,
trimmed, starts with `# ` and has a text after it; `(untitled)` if there is none. Each line is

- `code_fence`: begins, after white space, with three backticks; opens or closes code;
- `code_block`: between two fences;
- `heading`: one to six `#` and a space;
- `normal`: anything else.

**projects/<enc>/memory/**/*.md**, **agent-memory/**/*.md**: notes for later sessions. The title is
the first heading, else the name.

**Notes** are other texts: what a loop repeats, drafts of feedback, and what the program says about
the usage of a session, `usage-data/**/<S>.json`. Of a JSON document, all strings are the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...fields import MAX_TEXT, leaves
from ...records import Document, Plan, PlanLine, Record
from ...source import Claim, Line
from ..jsonl import whole_value
from ..plain_text import document_text, nothing_in
from .paths import folded, is_session

UNTITLED = "(untitled)"

_heading = re.compile(r"#{1,6} ").match


def plan(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read a plan and classify its lines."""
    (line,) = lines
    text, records = document_text(line)
    text = text[:MAX_TEXT]
    name = claim.parts[-1].removesuffix(".md")
    return [*records, Plan(title_of(text) or UNTITLED, text, name), *_classified(text)]


def memory(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read a note of the agent about a project."""
    (line,) = lines
    text, records = document_text(line)
    text = text[:MAX_TEXT]
    path = "/".join(claim.parts)
    name = claim.parts[-1].removesuffix(".md")
    return [*records, Document("memory", title_of(text) or name, text, path)]


def note(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read any other text; a JSON document has one in its strings."""
    (line,) = lines
    name, _, extension = claim.parts[-1].rpartition(".")
    if extension == "json":
        found = whole_value(line.data)
        if found is None:
            return nothing_in(line, "not JSON")
        text, records = "\n".join(leaves(found[0])), document_text(line)[1]
    else:
        text, records = document_text(line)
    session = claim.session_key or (folded(name) if is_session(name) else None)
    title = title_of(text) or claim.parts[-1]
    path = "/".join(claim.parts)
    return [*records, Document("note", title, text[:MAX_TEXT], path, session)]


def title_of(text: str) -> str | None:
    """Return the first heading with a text, None if there is none."""
    for line in text.split("\n"):
        trimmed = line.strip()
        if trimmed.startswith("# ") and trimmed[2:].strip():
            return trimmed[2:].strip()
    return None


def _classified(text: str) -> Iterator[PlanLine]:
    is_code = False
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
        if line.lstrip().startswith("```"):
            kind = "code_fence"
            is_code = not is_code
        elif is_code:
            kind = "code_block"
        else:
            kind = "heading" if _heading(line) else "normal"
        yield PlanLine(number, kind, line.removesuffix("\r"))
