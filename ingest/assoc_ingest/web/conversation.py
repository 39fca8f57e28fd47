"""The page of one conversation, or of one subagent of it, 200 messages at a time.

Where a page begins is named by a message: `?_after=ID` begins behind it, `?_at=ID` a few before it
(what a search hit opens), `?_end=1` shows the last. Order is the position in the file. A message
inside a subagent opens the page of that subagent.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from .. import humanize, sql
from ..ask import lookup
from ..ask.conversation import Conversation, File, Message, Place, Subagent
from ..ask.page import facts_of
from ..errors import UsageError
from . import pages
from .entries import Entries, Entry, Nested
from .pages import MOST_LINKS, PageError

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

PAGE = 200
"""Messages on a page, results inside their calls counted."""

MOST_SUBAGENTS = 5_000
"""Subagents of a conversation of which its pages know."""

MOST_FILES = 1_000
"""Files of a conversation of which its pages show the messages."""

_MOST_FILES = 50  # that a page names
_MOST_MODELS = 10
_CONTEXT = 6  # messages before the one that a search hit opens on
TABLES = (
    "messages", "sessions", "subagents", "tool_calls", "files", "projects", "responses", "prices",
    "links", "teams", "tasks", "todos", "plans",
)  # fmt: skip


class _Begin(NamedTuple):
    """Where a page begins: behind a place in the file with this number."""

    file: int
    after: Place | None


@dataclass(slots=True)
class _Shown:
    """What the template gets."""

    session: pages.Row
    models: list[str]
    more_models: int
    files: list[File]
    has_more_files: bool
    roots: list[str]
    resume: str | None
    usage: list[pages.Row]
    has_more_subagents: bool
    subagent: Subagent | None
    spawned_in: int | None
    entries: list[Entry]
    rest: list[Nested]
    more_rest: int
    warmups: int
    earlier: str | None
    later: str | None
    is_first: bool
    links: list[pages.Row]
    work: list[pages.Row]
    related: list[pages.Row]
    target: int | None


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the page of a conversation; a 300 with all of them where a prefix means several."""
    from datasette.utils import tilde_decode, tilde_encode

    database = tilde_decode(request.url_vars["database"])
    prefix = tilde_decode(request.url_vars["session"])
    asked = _Asked(
        agent=request.args.get("_agent"),
        after=_number(request.args.get("_after")),
        at=_number(request.args.get("_at")),
        is_end=bool(request.args.get("_end")),
    )
    shown = await pages.read(
        datasette, request, database, TABLES,
        lambda connection: _read(connection, prefix, asked, datasette, database),
    )  # fmt: skip
    key = str(shown.session["session_key"])
    context = {
        "database": database,
        "shown": shown,
        "session": shown.session,
        "title": shown.session["title"] or "(untitled)",
        "here": session_path(datasette, database, key),
        "table": lambda name: datasette.urls.table(database, name),
        "agent_facts": pages.cut(facts_of(shown.subagent)) if shown.subagent else "",
        "resume": _whole(shown.resume),
        "tilde": tilde_encode,
        "display": humanize,
    }
    return await pages.page(datasette, request, "session", context)


def session_path(datasette: Datasette, database: str, key: str) -> str:
    """Return the address of the page of a conversation."""
    from datasette.utils import tilde_encode

    return f"{datasette.urls.database(database)}/-/session/{tilde_encode(key)}"


def _whole(command: str | None) -> str | None:
    """Return a command if the page has room for all of it: one that is cut is another one."""
    return command if command is None or pages.cut(command) == command else None


class _Asked(NamedTuple):
    agent: str | None
    after: int | None
    at: int | None
    is_end: bool


def _read(
    connection: sqlite3.Connection, prefix: str, asked: _Asked, datasette: Datasette, database: str
) -> _Shown:
    try:
        conversation = Conversation(
            connection, prefix, files=_MOST_FILES + 1, subagents=MOST_SUBAGENTS + 1
        )
    except UsageError as error:
        rows = lookup.sessions_beginning_with(connection, prefix)
        links = [
            (
                f"{row['title'] or '(untitled)'} · {humanize.moment(row['ended_at'])} · "
                f"{row['session_key']}",
                session_path(datasette, database, row["session_key"]),
            )
            for row in rows
        ]
        message = f"{len(rows):,} sessions begin with {pages.cut(prefix)!r}."
        raise PageError(300, message, links) from error
    return _Reader(connection, conversation, asked).shown()


class _Reader:
    """Reads one page of a conversation."""

    def __init__(
        self, connection: sqlite3.Connection, conversation: Conversation, asked: _Asked
    ) -> None:
        self._connection = connection
        self._conversation = conversation
        self._id = conversation.session["id"]
        self._asked = asked
        self._named = self._place(asked.after if asked.at is None else asked.at)
        self._subagent = self._find_subagent()
        self._main = list(islice(conversation.files_with_messages(), MOST_FILES))
        self._files = [file.id for file in self._main]
        if self._subagent is not None:
            found = sql.ask(self._connection, "pages/subagent_files", subagent=self._subagent.id)
            self._files = [row["id"] for row in found]

    def shown(self) -> _Shown:
        """Return what is on the page."""
        conversation = self._conversation
        begin = self._begin()
        found = list(islice(self._from(begin), PAGE + 1))
        has_more = len(found) > PAGE
        messages = found[:PAGE]
        entries = Entries(conversation, self._asked.at)
        shown = list(entries.of(messages))
        is_whole = self._subagent is None and not has_more
        rest, more_rest, warmups = self._unspawned(entries) if is_whole else ([], 0, 0)
        spawned_in = None
        if self._subagent and self._subagent.call_id:
            spawned_in = self._subagent.call_id
        models = conversation.models
        related = pages.ask(self._connection, "pages/session_related", session=self._id)
        return _Shown(
            session=pages.brief(conversation.session),
            models=list(map(pages.cut, models[:_MOST_MODELS])),
            more_models=max(len(models) - _MOST_MODELS, 0),
            files=conversation.files[:_MOST_FILES],
            has_more_files=len(conversation.files) > _MOST_FILES,
            has_more_subagents=len(conversation.subagents) > MOST_SUBAGENTS,
            roots=[str(conversation.session["root"]), *conversation.other_roots],
            resume=conversation.resume,
            usage=pages.ask(self._connection, "pages/session_usage", session=self._id),
            subagent=self._subagent,
            spawned_in=spawned_in,
            entries=shown,
            rest=rest,
            more_rest=more_rest,
            warmups=warmups,
            earlier=self._earlier(begin),
            later=f"_after={messages[-1].id}" if has_more else None,
            is_first=begin == _Begin(0, None),
            links=pages.ask(self._connection, "pages/session_links", session=self._id),
            work=pages.ask(self._connection, "pages/session_work", session=self._id),
            related=related[:MOST_LINKS],
            target=self._asked.at,
        )

    def _find_subagent(self) -> Subagent | None:
        wanted = self._asked.agent
        if wanted is None and self._named is not None:
            wanted = self._named["agent_key"]
        if wanted is None:
            return None
        for subagent in self._conversation.subagents:
            if subagent.agent_key == wanted:
                return subagent
        raise PageError(404, f"This conversation has no subagent {wanted!r}.")

    def _place(self, message: int | None) -> sqlite3.Row | None:
        if message is None:
            return None
        row: sqlite3.Row | None = sql.ask(
            self._connection, "pages/message_place", id=message
        ).fetchone()
        if row is not None and row["answers"] is not None:  # a result is inside its call
            row = sql.ask(self._connection, "pages/message_place", id=row["answers"]).fetchone()
        if row is None or row["session_id"] != self._id:
            raise PageError(
                404,
                f"There is no message {message} in this conversation. Message ids change when a "
                "file is rewritten: remove the part of the address after the question mark.",
            )
        return row

    def _begin(self) -> _Begin:
        if self._asked.is_end and self._files:
            return self._back(_Begin(len(self._files) - 1, _END), PAGE)
        if self._named is None or self._named["file_id"] not in self._files:
            return _Begin(0, None)
        file = self._files.index(self._named["file_id"])
        place = Place(self._named["byte_offset"], self._named["block"])
        if self._asked.at is None:
            return _Begin(file, place)
        return self._back(_Begin(file, place), _CONTEXT)

    def _back(self, begin: _Begin, count: int) -> _Begin:
        """Return where `count` messages before the beginning of a page is, in the same file."""
        after = begin.after
        places = sql.ask(
            self._connection,
            "pages/message_before",
            file=self._files[begin.file],
            subagent=self._subagent.id if self._subagent else None,
            before_offset=after.byte_offset if after else 0,
            before_block=after.block if after else 0,
            limit=count + 1,
        ).fetchall()
        if len(places) <= count:
            return _Begin(begin.file, None)
        return _Begin(begin.file, Place(places[-1]["byte_offset"], places[-1]["block"]))

    def _earlier(self, begin: _Begin) -> str | None:
        """Return what names the page before the one that begins here."""
        if begin == _Begin(0, None):
            return None
        file, after = begin
        if after is None:
            file, after = file - 1, _END
        # The place behind which a page begins is on the page before it.
        before = self._back(_Begin(file, Place(after.byte_offset, after.block + 1)), PAGE)
        if before.after is None and before.file == 0:
            return ""
        if before.after is None:
            before = self._back(_Begin(before.file - 1, _END), 0)
        row = sql.ask(
            self._connection,
            "pages/message_at",
            file=self._files[before.file],
            byte_offset=before.after.byte_offset if before.after else 0,
            block=before.after.block if before.after else 0,
        ).fetchone()
        return f"_after={row['id']}" if row else ""

    def _from(self, begin: _Begin) -> Iterator[Message]:
        if self._subagent is not None:
            after = (self._files[begin.file], begin.after) if begin.after else None
            yield from self._conversation.subagent_messages(self._subagent, after, PAGE + 1)
            return
        after_place = begin.after
        for file in self._main[begin.file :]:
            yield from self._conversation.messages(file, after_place, PAGE + 1)
            after_place = None

    def _unspawned(self, entries: Entries) -> tuple[list[Nested], int, int]:
        free = [one for one in self._conversation.subagents if one.spawned_by is None]
        rest, more = entries.nested_all([one for one in free if one.kind != "warmup"])
        return rest, more, sum(one.kind == "warmup" for one in free)


_END = Place(2**62, 0)


def _number(text: str | None) -> int | None:
    """Return a number of the address; raise PageError if it is not a number."""
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise PageError(400, f"{text!r} is not a message id.")
    return int(text)
