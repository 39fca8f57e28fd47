"""A hit: one match of a search, and how it is presented."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

_USUAL = "claude"
"""The source of most hits, which is not named."""

# In the input of a tool a line break is the two letters \n, and a quote has a backslash.
_json_break = re.compile(r"\\[nrt]")
_json_frame = re.compile(r'^\{"\w+":"?|"?\}$')
TAGGED = frozenset(
    {"command", "command_output", "bash_input", "bash_output", "task_notification", "agent_message"}
)
_WHO = {
    "prompt": "you", "command": "you", "queued_prompt": "you", "bash_input": "you",
    "text": "agent", "agent_prompt": "task", "tool_use": "call", "tool_result": "result",
}  # fmt: skip


_PREFERRED = {
    **dict.fromkeys(("prompt", "command", "text", "queued_prompt", "bash_input"), 0),
    **dict.fromkeys(("agent_prompt", "agent_message"), 1),
    "compact_summary": 2,
    "thinking": 3,
}
OTHERS = 4
"""The preference of all other kinds."""


def preference(kind: str) -> int:
    """Return the rank of a kind of messages among equals: what people and agents said is first."""
    return _PREFERRED.get(kind, OTHERS)


@dataclass(frozen=True, slots=True)
class Hit:
    """One match of a query."""

    key: str | None
    """Key of its conversation, or of the subagent in whose file it is, for `show`."""
    title: str | None
    """Of its conversation."""
    ref: str | None
    """The reference that `show` opens; it has a line once `with_lines` has counted them."""
    project: str | None
    branch: str | None
    cwd: str | None
    model: str | None
    kind: str | None
    """For a message `messages.kind`; for others their own kind."""
    time: str | None
    snippet: str
    """A piece of the text, of bounded length; matches are enclosed in the characters 2 and 3."""
    why: str
    """verbatim, all_words or relaxed"""
    file: str | None
    line: int | None
    """The number of the line in the file, from 1; None before `with_lines`."""
    byte: int
    """The offset of the line."""
    resume: str | None
    """The command that resumes the conversation."""
    session_key: str | None
    id: int
    what: str
    """message, session, note, inbox, task, todo, plan, document, prompt or tool_result_file"""
    scope: str
    """said, tools or title"""
    source: str | None
    """The system that wrote it; None for a note on a file, or on what is not there."""
    subagent: str | None
    tool: str | None

    def as_json(self) -> dict[str, object]:
        """Return the stable JSON object: `snippet` without marks, `marks` as [start, end] pairs."""
        from .matches import plain

        fields: dict[str, object] = {}
        for name, value in asdict(self).items():
            fields[name] = value
            if name == "snippet":
                fields["snippet"], fields["marks"] = plain(self.snippet)
        return fields

    # -- for people --------------------------------------------------------------------------------

    @property
    def who(self) -> str:
        """The author of a message, or the store of another hit."""
        if self.what == "note":
            return f"note, {self.kind}" if self.kind else "note"
        if self.what != "message":
            return self.what.replace("_", " ") if self.what != "session" else "title"
        who = _WHO.get(self.kind or "", (self.kind or "").replace("_", " "))
        if self.tool:
            who = f"{self.tool} {who}"
        return f"{self.subagent}: {who}" if self.subagent else who

    @property
    def weight(self) -> str:
        """How much it counts: as said, thinking or tools."""
        if self.what != "message":
            return "tools" if self.what == "tool_result_file" else "said"
        if self.kind == "thinking":
            return "thinking"
        return "said" if preference(self.kind or "") < OTHERS else "tools"

    @property
    def words(self) -> str:
        """The snippet with its marks, but without the JSON or the tags that enclose the text."""
        text = self.snippet
        if self.kind == "tool_use":
            text = _json_break.sub(" ", _json_frame.sub("", text)).replace('\\"', '"')
        elif self.kind in TAGGED:
            from .. import tags

            text = tags.without(text)
        return text

    @property
    def name(self) -> str:
        """The title of its conversation; without one, the name of its file."""
        if self.title and self.title != self.session_key:
            return self.title
        return (self.file or "").rpartition("/")[2] if self.session_key is None else "(untitled)"

    @property
    def place(self) -> str | None:
        """The project, with the machine if there are several."""
        return self.project

    @property
    def other_source(self) -> str | None:
        """The source, None for the usual one."""
        return self.source if self.source != _USUAL else None
