"""Teams of agents: their members, and the messages between them.

```
teams/<team>/config.json              {"name","description","createdAt","leadAgentId",
                                       "leadSessionId","members":[...]}
teams/<team>/inboxes/<agent>.json     [{"from","text","summary","timestamp","color","read"}]
```

**The configuration** can be missing, or vanish before the inboxes do. Its times are milliseconds,
those of inboxes are ISO text; both forms are accepted in both. A member has `agentId` (opaque,
mostly `name@team`), `name`, `agentType`, `model`, `prompt`, `color`, `planModeRequired`,
`joinedAt`, `cwd`, `subscriptions`, `backendType`, `isActive`, and other fields that are kept as
JSON (`tmuxPaneId`). All are optional; the lead has no `prompt`. If the name of a team has capitals
or underscores, its configuration and inboxes can be in two directories, so a team is identified by
its directory's name in lower case with hyphens.

**An inbox** is rewritten as a whole: messages are added, and `read` changes. A message has no id;
the recipient is the name of the file. The `text` is often JSON itself, an object with a `type`
(`idle_notification`, `task_assignment`, `shutdown_request`, ...): that type is the kind of the
message, and the object is its payload.

**Transcripts** have the same messages where an agent received or sent them:

- a user line with `<teammate-message teammate_id="alice" color="blue" summary="..">body
  </teammate-message>`, several in a row, text around them; the id `system` is the program;
- `<cross-session-message from=".." from-name="..">`, with `origin` of kind `peer`, whose `msg_id`
  is that of the sender's result;
- a call of `SendMessage` (`to` or `recipient`, `message` or `content`, `summary`, `type`), whose
  `toolUseResult` adds `msg_id` and `routing{sender,target,content}`. Since 2.1.2xx `content` is the
  first 50 characters of `message`, so the longer of the two is the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256

from ... import tags
from ...fast_json import orjson
from ...fields import MAX_TEXT, json_text, left_over, mapping, string
from ...records import InboxItem, Record, Team, TeamMember
from ...source import Claim, Line
from ..jsonl import JSONObject
from ..reader import Reader
from .paths import folded

MESSAGE = "message"

_TEAM_COLUMNS = ("name", "description", "createdAt", "leadAgentId", "leadSessionId", "members")
_MEMBER_COLUMNS = (
    "name", "agentType", "model", "cwd", "color", "joinedAt", "prompt", "subscriptions",
    "backendType", "planModeRequired", "isActive", "agentId",
)  # fmt: skip

_not_alphanumeric = re.compile(r"[^A-Za-z0-9]")
_BETWEEN_SESSIONS = "cross-session-message"
_PLAIN_TYPES = (None, MESSAGE, "broadcast")


def team_key(directory: str) -> str:
    """Return the key of a team: its directory in lower case, with hyphens."""
    return _not_alphanumeric.sub("-", directory).lower()


# -- documents -----------------------------------------------------------------------------------


def team(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the configuration of a team."""
    reader = Reader(claim)
    for value in reader.document(lines):
        lead = reader.text(value, "leadSessionId")
        reader.records.append(
            Team(
                reader.text(value, "name") or claim.parts[1],
                reader.text(value, "description"),
                reader.time(value, "createdAt"),
                reader.text(value, "leadAgentId"),
                folded(lead) if lead else None,
            )
        )
        reader.keep(left_over(value, _TEAM_COLUMNS))
        equals: Counter[str | None] = Counter()
        for item in reader.items(value, "members"):
            member = _member(reader, item)
            key = member.agent_id or member.name
            reader.records.append(member._replace(ordinal=equals[key]))
            equals[key] += 1
    return reader.finish()


def _member(reader: Reader, value: JSONObject) -> TeamMember:
    subscriptions = value.get("subscriptions")
    return TeamMember(
        reader.text(value, "name"),
        reader.text(value, "agentType"),
        reader.text(value, "model"),
        reader.text(value, "cwd"),
        reader.text(value, "color"),
        reader.time(value, "joinedAt"),
        reader.text(value, "prompt"),
        json_text(subscriptions) if isinstance(subscriptions, list) else None,
        reader.text(value, "backendType"),
        reader.flag(value, "planModeRequired"),
        reader.flag(value, "isActive"),
        reader.text(value, "agentId"),
        left_over(value, _MEMBER_COLUMNS),
    )


def inbox(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the messages to an agent; equal ones are numbered."""
    reader = Reader(claim)
    recipient = claim.parts[-1].removesuffix(".json")
    seen: Counter[tuple[str | None, str | None, str]] = Counter()
    for _, value in reader.array(lines):
        said = value.get("text")
        text = json_text(said) if isinstance(said, dict) else reader.text(value, "text")
        sender, moment = reader.text(value, "from"), reader.time(value, "timestamp")
        item = item_of(text, sender, recipient, moment, string(value.get("type")))
        key = (moment, sender, item.text_hash)
        reader.records.append(
            item._replace(
                summary=reader.text(value, "summary"),
                is_read=reader.flag(value, "read"),
                color=reader.text(value, "color"),
                channel="inbox",
                ordinal=seen[key],
            )
        )
        seen[key] += 1
    return reader.finish()


def item_of(
    text: str | None,
    sender: str | None,
    recipient: str | None,
    moment: str | None,
    stated_type: str | None = None,
) -> InboxItem:
    """Return a message in a transcript; if its text is a JSON object, that is its payload."""
    payload = _inner(text)
    kind = string(payload.get("type")) if payload else None
    if kind is None:
        kind = MESSAGE if stated_type in _PLAIN_TYPES else stated_type
    return InboxItem(
        text=text[:MAX_TEXT] if text is not None else None,
        sender=sender,
        recipient=recipient,
        kind=kind or MESSAGE,
        summary=None,
        timestamp=moment,
        is_read=None,
        color=None,
        payload=json_text(payload) if payload else None,
        channel="transcript",
        team_name=None,
        message_key=None,
        text_hash=sha256((text or "").strip().encode()).hexdigest(),
        ordinal=0,
        byte_offset=0,
        byte_length=0,
    )


def _inner(text: str | None) -> JSONObject | None:
    """Return a text as a JSON object, None if it is not one with a type."""
    body = (text or "").strip()
    if not (body.startswith("{") and body.endswith("}")):
        return None
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("type"), str) else None


# -- transcripts ---------------------------------------------------------------------------------


def received(text: str, origin: object, moment: str | None) -> Iterator[InboxItem]:
    """Yield the messages in a user line.

    The line's origin belongs to one message, the first one between sessions if there is any.
    """
    found = list(tags.elements(text, ("teammate-message", _BETWEEN_SESSIONS)))
    between = [element for element in found if element.tag.name == _BETWEEN_SESSIONS]
    described = next(iter(between or found), None)
    for element in found:
        peer = mapping(origin) if element is described else {}
        yield _received(element, peer, moment)


def _received(element: tags.Element, peer: JSONObject, moment: str | None) -> InboxItem:
    attributes = element.tag.attributes or {}
    body = element.text.strip("\r\n")
    if element.tag.name == _BETWEEN_SESSIONS:
        sender = string(peer.get("name")) or attributes.get("from-name")
        sender = sender or string(peer.get("from")) or attributes.get("from")
        item = item_of(string(peer.get("body")) or body, sender, None, moment)
    else:
        item = item_of(body, attributes.get("teammate_id"), None, moment)
    return item._replace(
        summary=attributes.get("summary"),
        color=attributes.get("color"),
        message_key=string(peer.get("msg_id")),
    )


def sent(arguments: JSONObject, tool_use_id: str | None, moment: str | None) -> InboxItem:
    """Return the message that a call of SendMessage sends; only its result names the sender."""
    text = max(map(_body, (arguments.get("message"), arguments.get("content"))), key=len) or None
    recipient = string(arguments.get("recipient")) or string(arguments.get("to"))
    item = item_of(text, None, _addressee(recipient), moment, string(arguments.get("type")))
    return item._replace(summary=string(arguments.get("summary")), tool_use_id=tool_use_id)


def _body(value: object) -> str:
    return json_text(value) if isinstance(value, dict) else string(value) or ""


def delivered(extra: JSONObject, tool_use_id: str, moment: str | None) -> InboxItem | None:
    """Return what the result of SendMessage adds to its call, None for other tools."""
    routing, key = mapping(extra.get("routing")), string(extra.get("msg_id"))
    if not routing and key is None:
        return None
    target = _addressee(string(routing.get("target")))
    item = item_of(string(routing.get("content")), string(routing.get("sender")), target, moment)
    return item._replace(
        summary=string(routing.get("summary")), message_key=key, tool_use_id=tool_use_id
    )


def _addressee(name: str | None) -> str | None:
    """Return the name of one agent, None for a message to all."""
    name = (name or "").removeprefix("@")
    return None if name in ("", "*", "all", "team") else name
