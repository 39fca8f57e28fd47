"""A conversation as JSON lines: its records as the database has them.

One object on each line; `record` says what it is, in this order:

- `session`, once: the columns that `show --json` has, `models`, `files`, and `format`, which is 1;
- `message`, any number: one block of the main conversation, with the fields of `show --json`,
  `line` (the number of its line, from 1, or null) and `agent_key` (null);
- for each subagent a `subagent`, and then its `message` lines, with its `agent_key`;
- `end`, once: how many messages there were, and how many credentials were `masked`, by kind. A file
  without this line is not complete.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..terminal import safe_json
from .conversation import Message
from .export import ExportedConversation

FORMAT = 1


def lines(conversation: ExportedConversation) -> Iterator[str]:
    """Yield the lines."""
    files = [file._asdict() for file in conversation.files]
    session = {**conversation.session, "models": conversation.models, "files": files}
    yield _line("session", {"format": FORMAT, **session})
    count = 0
    for file in conversation.files_with_messages():
        for message in conversation.messages(file):
            count += 1
            yield _message(conversation, message, None)
    for subagent in conversation.subagents:
        facts = subagent._asdict()
        del facts["spawned_by"]  # the id of a tool call; call_id is the message that called
        yield _line("subagent", facts)
        for message in conversation.subagent_messages(subagent):
            count += 1
            yield _message(conversation, message, subagent.agent_key)
    yield _line("end", {"messages": count, "masked": dict(conversation.masked)})


def _message(conversation: ExportedConversation, message: Message, agent: str | None) -> str:
    place = {"agent_key": agent, "line": conversation.line_number(message)}
    return _line("message", {**place, **message.as_json()})


def _line(record: str, fields: dict[str, object]) -> str:
    return safe_json({"record": record, **fields}) + "\n"
