"""What surrounds a page: navigation, columns and cells of tables, links of rows, and pages that
are missing.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from markupsafe import Markup

from .. import sql
from ..ask.times import as_given
from ..errors import nearest
from ..terminal import moment, one_line, unknown_of
from . import pages, serve
from .html import at_slashes
from .pages import PageError, is_for_us, our_databases
from .reports import Report, report_of, totals
from .urls import PREFIX, BlockPlace, Paths, Permalinks

# ------------------------------------------------------------------------------------------------
# Readable cells in Datasette's tables: times, links to conversations, addresses.
#
# Only harmless values become HTML, and all text in it is escaped.


_time = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\.\d{3}Z", re.ASCII)
# No characters that end an attribute, are invisible, or change the direction of text.
_address = re.compile(
    r"https?://[^\s<>\"'`\\\x00-\x20\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069]+"
)

_BOUNDED = frozenset({
    "cost_usd", "cost_with_worktrees_usd", "cost_microusd", "output_tokens", "tokens",
})  # fmt: skip
"""Columns that are lower bounds where responses are partial or unpriced."""

_LONG = 100  # letters of an address that are shown


def is_worth_it(column: str, value: object) -> bool:
    """Could the cell be shown as anything but plain text? Quick: asked of every cell."""
    if isinstance(value, int | float):
        return column in _BOUNDED
    if not isinstance(value, str) or not value:
        return False
    return column in ("session_key", "session", "title", "repository") or bool(
        _time.fullmatch(value) or _address.fullmatch(value)
    )


def cell(
    row: Any, value: str | float, column: str, table: str | None, paths: Paths
) -> Markup | None:
    """Return a cell as HTML, None where it stays as it is; `table` is None for a query's rows."""
    if not isinstance(value, str):
        counts = {name: _get(row, name) for name in ("partial", "unpriced", "is_lower_bound")}
        present = {name: count for name, count in counts.items() if count is not _ABSENT}
        return Markup("≥{}").format(value) if any(unknown_of(column, present)) else None
    if column == "session_key":
        return _conversation(paths, value, value)
    if _is_title_of_session(row, column, table):
        return _conversation(paths, _get(row, "session_key"), value)
    if column == "repository" and table is None:  # the table of projects has its directory
        return Markup('<a href="{}">{}</a>').format(paths.list(repository=value), value)
    if _time.fullmatch(value):
        return _moment(value)
    if _address.fullmatch(value):
        text = value if len(value) <= _LONG else value[:_LONG] + "…"
        return Markup('<a href="{}" rel="noopener noreferrer nofollow">{}</a>').format(value, text)
    return None


def _is_title_of_session(row: Any, column: str, table: str | None) -> bool:
    """Is this the title of the conversation whose key is in the same row?

    Where a query has a column `session`, its `title` is that of something else: a plan, a link.
    """
    if table not in (None, "sessions") or not isinstance(_get(row, "session_key"), str):
        return False
    return column == "session" or (column == "title" and _get(row, "session") is _ABSENT)


def _conversation(paths: Paths, key: str, text: str) -> Markup:
    return Markup('<a href="{}">{}</a>').format(paths.session(key), text)


def _moment(value: str) -> Markup | None:
    try:
        text = moment(value)
    except ValueError:  # the thirtieth of February
        return None
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(value, text)


_ABSENT = object()


def _get(row: Any, column: str) -> Any:
    try:
        return row[column]
    except (KeyError, IndexError):  # a row of SQLite raises the second one
        return _ABSENT


# ------------------------------------------------------------------------------------------------
# The links of a row: to its message, its conversation, its project, its team.


TABLES = ("sessions", "subagents", "files", "messages", "tool_calls")
_LONGEST_TITLE = 100


class Way(NamedTuple):
    """A place to go from a row."""

    text: str
    address: str


def _ways(
    connection: sqlite3.Connection, table: str, row: Mapping[str, Any], paths: Paths
) -> Iterator[Way]:
    """Yield where a row leads to, the nearest first."""
    file, offset, block = (row.get(name) for name in ("file_id", "byte_offset", "block"))
    if isinstance(file, int) and isinstance(offset, int):
        place = BlockPlace(file, offset, block if isinstance(block, int) else 0)
        # Another line of the file has no message of its own: the page shows the nearest.
        if link := Permalinks(connection, paths.session).of([place]).get(place):
            yield Way("Open the message in its conversation", link.address)
    ids = {}
    for what in ("session", "subagent", "project", "team"):
        value = row.get("id" if table == f"{what}s" else f"{what}_id")
        ids[what] = value if isinstance(value, int) else None
    owner = sql.ask(
        connection, "pages/row_owner", session=ids["session"], subagent=ids["subagent"]
    ).fetchone()
    if owner["agent_key"]:
        yield Way("Open the subagent", paths.session(owner["agent_key"]))
    if owner["session_key"]:
        title = one_line(owner["title"] or "(untitled)")[:_LONGEST_TITLE]
        yield Way(f"Open the conversation: {title}", paths.session(owner["session_key"]))
    if ids["project"] is not None:
        yield Way("Open the project", paths.project(ids["project"]))
    if ids["team"] is not None:
        yield Way("Open the team", paths.team(ids["team"]))


# ------------------------------------------------------------------------------------------------
# The columns of a table that are shown first: at most eight, those that people read.
#
# The others are one click away. Only the page is shorter, not the query, so a table can be sorted
# and continued by any column, as usual in Datasette.


MOST = 8
"""Columns of a table on its page."""

_ASKED = ("_all", "_col", "_nocol")
"""Parameters of an address that select columns."""

FIRST: Mapping[str, tuple[str, ...]] = {
    "conversation": ("kind", "text", "tool_text", "timestamp", "session", "project", "subagent"),
    "documents": ("kind", "title", "text", "path", "session_id", "project_id", "modified_at"),
    "files": ("path", "kind", "size", "line_count", "issue_count", "mtime", "session_id"),
    "hook_events": ("event", "tool_name", "cwd", "model", "source", "reason", "session_id"),
    "inbox_items": ("text", "sender", "recipient", "kind", "timestamp", "is_read", "team_id"),
    "messages": ("kind", "text", "tool_text", "timestamp", "session_id", "subagent_id", "model"),
    "projects": (
        "name", "path", "git_branch", "session_count", "last_activity_at", "parent_id", "source_id",
    ),
    "prompts": ("text", "timestamp", "project_path", "session_id"),
    "response_costs": (
        "timestamp", "model", "cost_microusd", "input_tokens", "output_tokens",
        "cache_read_tokens", "session", "project",
    ),
    "responses": (
        "model", "timestamp", "input_tokens", "output_tokens", "cache_read_tokens", "session_id",
        "subagent_id",
    ),
    "sessions": (
        "title", "project_id", "ended_at", "message_count", "prompt_count", "tool_call_count",
        "git_branch",
    ),
    "subagents": (
        "agent_type", "description", "name", "session_id", "started_at", "message_count", "tokens",
    ),
    "tasks": ("subject", "description", "status", "owner", "session_id", "team_id", "gone_at"),
    "todos": ("content", "status", "priority", "session_id", "subagent_id", "gone_at"),
    "tool_calls": (
        "name", "target", "status", "started_at", "duration_ms", "exit_code", "session_id",
    ),
    "tool_calls_full": (
        "name", "target", "status", "started_at", "input", "output", "session", "project",
    ),
}  # fmt: skip
"""For tables and views whose first columns are not those that people read most."""

FIRST_OF_REPORTS: Mapping[str, tuple[str, ...]] = {
    "git-changes": (
        "path", "letter", "status", "project", "branch", "changes_of_project", "seen_at",
        "is_diff_cut",
    ),
    "git-diff": (
        "path", "kind", "text", "position", "status", "project", "seen_at", "is_cut",
    ),
    "list-agents": (
        "name", "project", "sessions", "last_activity", "type", "description", "source", "gone_at",
    ),
    "list-files": (
        "path", "kind", "size", "last_synced_at", "read", "line_count", "issue_count", "gone_at",
    ),
    "list-inbox": (
        "message", "sender", "recipient", "timestamp", "kind", "is_read", "team", "session",
    ),
    "list-projects": (
        "name", "session_count", "sessions_with_worktrees", "last_activity_at", "path",
        "git_branch", "worktree_of", "source",
    ),
    "list-sessions": (
        "title", "project", "ended_at", "prompt_count", "message_count", "tool_call_count",
        "output_tokens", "git_branch",
    ),
    "list-subagents": (
        "description", "agent_type", "started_at", "message_count", "tokens", "session", "project",
        "kind",
    ),
    "list-tasks": (
        "subject", "status", "owner", "waits_for", "session", "project", "description", "gone_at",
    ),
    "list-teams": (
        "name", "description", "created_at", "member_count", "item_count", "session", "project",
        "gone_at",
    ),
    "list-todos": ("content", "status", "priority", "session", "project", "channel", "gone_at"),
    "longest-sessions": (
        "title", "project", "prompt_count", "message_count", "tool_call_count", "hours",
        "output_tokens", "ended_at",
    ),
    "projects-overview": (
        "project", "sessions", "prompts", "tool_calls", "input_tokens", "output_tokens",
        "cache_read_tokens", "last_activity",
    ),
    "status-sources": (
        "kind", "root", "file_count", "session_count", "block_count", "bytes", "last_synced_at",
        "gone_at",
    ),
    "usage-by-session": (
        "title", "cost_usd", "input_tokens", "output_tokens", "cache_read_tokens",
        "cache_write_tokens", "responses", "last_activity",
    ),
    "usage-reconciliation": (
        "source", "counting", "counted", "input_tokens", "output_tokens", "cache_read_tokens",
        "cost_usd", "explanation",
    ),
}  # fmt: skip
"""For reports and lists, in the same way."""

_number = re.compile(r"[≥~]?-?[\d,]+(?:\.\d+)?", re.ASCII)


# ------------------------------------------------------------------------------------------------
# What the templates of all pages need: the navigation, and additions to Datasette's pages.
#
# `templates/` has some of Datasette's own names: `base.html`, `table.html` and so on. Each of them
# extends Datasette's template unless it is given a frame, so another program's database is shown as
# if this plugin were not installed.


CONVERSATIONS, SEARCH, USAGE = "/-/assoc", "/-/assoc/search", "/-/assoc/usage"

_SECTIONS = (
    ("Search", re.compile(r"/-/assoc/search/?")),
    ("Usage", re.compile(r"/[^/]+/-/stats/?")),
    ("Conversations", re.compile(r"/|/-/assoc/?|/[^/]+/-/(?:sessions?|project|team)(?:/.*)?")),
    ("Reports", re.compile(r"/-/|/[^/]+(?:/.*)?")),  # with the tables, and all other pages
)
"""The place of an address in the navigation: the first pattern that matches."""


class Place(NamedTuple):
    text: str
    address: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """What the templates of a page can call."""

    datasette: Any
    request: Any
    database: str | None
    """The assoc-ingest database of the page, else the first one that may be seen."""
    is_one_of_many: bool
    """Are there several assoc-ingest databases, so that addresses have to name theirs?"""

    def navigation(self) -> list[Place]:
        """Return the links of the header; without a database only those that need none."""
        urls = self.datasette.urls
        asked = f"?{urlencode({'db': self.database})}" if self.is_one_of_many else ""
        base = urls.database(self.database) if self.database else None
        places = {
            "Conversations": urls.path(CONVERSATIONS) + asked,
            "Search": urls.path(SEARCH) + asked,
            "Usage": f"{base}/-/stats" if base else None,
            "Reports": f"{base}/-/reports" if base and not serve.remote() else None,
            "Tables": None if base else urls.path("/-/"),
        }
        current = self._section()
        return [Place(text, to, text == current) for text, to in places.items() if to]

    def others(self, links: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
        own = {self.datasette.urls.path(path) for path in (CONVERSATIONS, SEARCH, USAGE)}
        return [link for link in links if link["href"] not in own]

    def columns(
        self, table: str, described: Sequence[Mapping[str, Any]], asked: Mapping[str, str]
    ) -> list[int]:
        """Return the indexes of the columns to show, in order.

        The first is the link of the row, if the table has one. Columns that the address sorts or
        filters by are included.
        """
        names = [column["name"] for column in described]
        every = list(range(len(names)))
        if len(names) <= MOST or any(name in asked for name in _ASKED):
            return every
        wanted = [name for name in FIRST.get(table, ()) if name in names]
        chosen = [names.index(name) for name in wanted] or every
        if wanted and 0 not in chosen and names[0] not in FIRST[table]:
            chosen.insert(0, 0)
        chosen = chosen[:MOST]
        named = {name.split("__")[0] for name in asked}
        named |= {asked[name] for name in ("_sort", "_sort_desc") if name in asked}
        chosen += [place for place in every if names[place] in named and place not in chosen]
        return chosen

    def columns_of_report(
        self, report: str, names: Sequence[str], asked: Mapping[str, str]
    ) -> list[int]:
        """Return the indexes of the columns of a report to show, in order."""
        if len(names) <= MOST or "_all" in asked:
            return [*range(len(names))]
        wanted = FIRST_OF_REPORTS.get(report.removeprefix(PREFIX), names)
        return [names.index(name) for name in wanted if name in names][:MOST]

    def with_all_columns(self, *, is_wanted: bool) -> str:
        """Return the address of this page with all columns, or with those shown first."""
        asked = [one for one in parse_qsl(self.request.query_string) if one[0] != "_all"]
        return f"?{urlencode([*asked, ('_all', '1')] if is_wanted else asked)}"

    @staticmethod
    def numeric(rows: Iterable[Iterable[object]]) -> list[bool]:
        """Return for each column whether its cells, which may be HTML, are all numbers."""
        columns = [
            [str(value).replace("&nbsp;", " ").strip() for value in column]
            for column in zip(*rows, strict=True)
        ]
        return [
            any(cells) and all(_number.fullmatch(cell) for cell in cells if cell)
            for cells in columns
        ]

    async def ways(self, table: str, cells: Iterable[Mapping[str, Any]]) -> list[Way]:
        """Return the links of a row; none for those who may not see where they lead."""
        from datasette import Forbidden

        row = {cell["column"]: cell["raw"] for cell in cells}
        database = str(self.database)
        paths = Paths(self.datasette, database)
        try:
            return await pages.read(
                self.datasette, self.request, database, TABLES,
                lambda connection: list(_ways(connection, table, row, paths)),
            )  # fmt: skip
        except (Forbidden, PageError):
            return []

    def report_names(self) -> list[str]:
        """Return the names of our reports and lists among the queries of the database."""
        return list(pages.for_people())

    async def descriptions(self) -> dict[str, str]:
        return await pages.descriptions(self.datasette, str(self.database))

    async def report(self, name: str | None) -> Report | None:
        return await report_of(self.datasette, self.request, str(self.database), name)

    at_slashes = staticmethod(at_slashes)
    totals = staticmethod(totals)
    as_given = staticmethod(as_given)

    def _section(self) -> str:
        path = self.request.path if self.request else ""
        path = "/" + path.removeprefix(self.datasette.setting("base_url")).lstrip("/")
        return next((text for text, form in _SECTIONS if form.fullmatch(path)), "")


async def of(datasette: Any, request: Any, template: str | None, database: str | None) -> Any:
    """Return the frame of a page, None for one that stays as Datasette has it."""
    actor = request.actor if request else None
    ours = [
        name
        for name in await our_databases(datasette)
        if await pages.may_view(datasette, actor, name)
    ]
    named = database or _in_path(datasette, request)
    is_own_page = (template or "").startswith("assoc_")
    if named not in ours:
        is_other = named in datasette.databases or not ours or not await is_for_us(datasette)
        if is_other and not is_own_page:
            return None
        named = ours[0] if ours else None
    return Frame(datasette, request, named, len(ours) > 1)


def _in_path(datasette: Any, request: Any) -> str | None:
    """Return the database in the address: on an error page, nothing else names it."""
    from datasette.utils import tilde_decode

    if request is None:
        return None
    path = request.path.removeprefix(datasette.setting("base_url")).lstrip("/")
    return str(tilde_decode(path.split("/")[0]))


# ------------------------------------------------------------------------------------------------
# The page for an address that does not exist: a search for its last part, and similar names.
#
# Only for pages of ours; a request for data gets Datasette's own answer.


_NEAR = 5


async def answer(datasette: Any, request: Any, exception: Exception) -> Any:
    """Return the page for an error, None to leave it to Datasette."""
    status = getattr(exception, "status", None)
    if status == 400 and "/-/" in request.path:  # 0.65 takes it for the row of a table
        status = 404
    asks_for_data = request.path.endswith((".json", ".csv")) or "json" in str(
        request.headers.get("accept") or ""
    )
    if status not in (400, 404) or asks_for_data or getattr(exception, "message_is_html", False):
        return None
    frame = await of(datasette, request, None, None)
    if frame is None:
        return None
    if status == 400:
        return await pages.error_page(datasette, request, PageError(400, str(exception)))
    wanted = pages.unquoted(request.path.rstrip("/").rpartition("/")[2])
    links = await _near(datasette, str(frame.database), wanted)
    near = " The nearest names:" if links else ""
    error = PageError(404, f"There is no page {pages.cut(request.path)!r}.{near}", links, wanted)
    return await pages.error_page(datasette, request, error, frame.database)


async def _near(datasette: Any, database: str, wanted: str) -> list[tuple[str, str]]:
    """Return tables, views and reports with a similar name, and their addresses."""
    held = datasette.get_database(database)
    urls = datasette.urls
    tables = {*await held.table_names(), *await held.view_names()}
    tables -= set(await held.hidden_table_names())
    addresses = {name: urls.table(database, name) for name in sorted(tables)}
    addresses |= {name: urls.query(database, name) for name in pages.for_people()}
    return [(name, addresses[name]) for name in nearest(wanted, addresses, _NEAR)]
