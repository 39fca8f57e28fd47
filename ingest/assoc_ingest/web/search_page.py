"""The page of a search: the answer of the question `search`, with facets to narrow it.

    q, db, sort, page    the query; in which database; by relevance or `newest` first; which page
    kind, project ...    filters, as the options of the command with these names
    raw=1                the query is an FTS5 expression
    closest=0            only what has all words
    narrow=kind,month    these filters were chosen from what was found: they leave out some of it,
                         and are no part of the question

A value of a facet shows the number of conversations that it leads to. To be sure of that, its link
narrows what was found: within a filter, the same question may be relaxed where it was not before.
Only if there is too much to list does a value become a part of the question, without a number.

However long the names and the query are, the page has an end: snippets are short, names are cut,
and a facet offers the values with the most conversations.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from .. import sql
from ..ask.filters import Filters, Nothing
from ..ask.hits import Hit
from ..ask.projects import find_projects
from ..ask.repositories import find_repository, repositories
from ..ask.search import FACETS, Cluster, Facets, Ranking, SearchResult, find
from ..errors import NotFoundError, UsageError
from ..questions.question import context
from ..questions.search import FILTERS as OPTIONS
from ..questions.search import Search, answer, conversation
from . import pages, serve, urls
from .forms import Chip, chips, shown_name
from .pages import PageError
from .urls import Paths, Permalinks

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

TABLES = (
    "messages", "sessions", "subagents", "projects", "files", "inbox_items", "tasks", "todos",
    "plans", "documents", "prompts", "tool_result_files", "notes",
)  # fmt: skip
FILTERS = tuple(dict.fromkeys((*FACETS, *OPTIONS)))
SORTS = {"": "Best first", "newest": "Newest first"}
PAGE = 20
"""Conversations on a page."""

LONGEST_QUERY = 4_000  # letters: it is in each of the links
LONGEST_VALUE = 1_000  # letters of a value that is a link
_OTHERS = ("q", "db", "sort", "page", "raw", "closest", "narrow")
_MOST = 1_000  # hits of a kind on all pages
_SHOWN = 3  # hits of a conversation
_VALUES, _MORE_VALUES = 8, 40  # of a facet: those that are seen, and those that unfold
_LONG_QUERY = 300  # letters of a query with which so many links would be too much
_WORDS = 6  # of a query that found nothing, each as a link
_RAW = "--raw: "  # what an error begins with that is about the expression
_ROWS = {
    "message": "messages", "session": "sessions", "inbox": "inbox_items", "task": "tasks",
    "todo": "todos", "plan": "plans", "document": "documents", "prompt": "prompts",
    "tool_result_file": "tool_result_files", "note": "notes",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search as its address says it; parameters without a value are left out."""

    here: str
    values: Mapping[str, str]
    is_cut: bool = False
    """Was the query too long?"""

    @property
    def query(self) -> str:
        return self.values.get("q", "")

    @property
    def page(self) -> int:
        """The number of the page, from 1."""
        return pages.page_number(self.values.get("page"))

    @property
    def start(self) -> int:
        """The number of the first conversation on the page."""
        return (self.page - 1) * PAGE

    @property
    def sort(self) -> str:
        return self.values.get("sort", "")

    @property
    def sorts(self) -> dict[str, str]:
        return SORTS if serve.remote() is None else {"": SORTS[""]}

    @property
    def narrowed(self) -> frozenset[str]:
        """The names of the filters that only leave out some of what was found."""
        names = frozenset(filter(None, self.values.get("narrow", "").split(",")))
        return names & self.values.keys()

    @property
    def filters(self) -> dict[str, str]:
        return {name: self.values[name] for name in FILTERS if name in self.values}

    @property
    def is_inside(self) -> bool:
        """Is one conversation searched? Then each of its hits has a heading."""
        return "session" in self.values

    @property
    def kept(self) -> dict[str, str]:
        """What the next query is asked with, too."""
        names = (*FILTERS, "sort", "raw")
        return {name: self.values[name] for name in names if name in self.values}

    def address(self, **changes: str | None) -> str:
        """Return the address of the search with other values, its first page if none is given."""
        changed = {**self.values, "page": None, **changes}
        return f"{self.here}?{urlencode({name: text for name, text in changed.items() if text})}"

    def without(self, name: str) -> str:
        """Return the address of the search without a filter."""
        if not self.filters.keys() - {name}:
            return self.without_filters()
        return self.address(**{name: None}, narrow=",".join(sorted(self.narrowed - {name})))

    def without_filters(self) -> str:
        return self.address(**dict.fromkeys(FILTERS), narrow=None, closest=None)

    def within(self, name: str, value: str, *, is_cut: bool) -> str:
        """Return the address of the hits that have a value of a facet."""
        if is_cut:
            return self.address(**{name: value}, closest="0")
        return self.address(**{name: value}, narrow=",".join(sorted({*self.narrowed, name})))

    def question(self) -> Filters:
        """Return the filters that are part of the question."""
        narrowed = self.narrowed
        return Filters.of({n: value for n, value in self.filters.items() if n not in narrowed})

    def wanted(self, connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
        """Return the values by which what was found is narrowed."""
        wanted = {name: frozenset((self.values[name],)) for name in self.narrowed}
        if "project" in wanted:
            ids = find_projects(connection, self.values["project"])
            wanted["project"] = frozenset(map(str, ids))
        if "repository" in wanted:
            ids = find_repository(connection, self.values["repository"])
            of_project = repositories(connection)
            wanted["repository"] = frozenset(of_project[str(id_)] for id_ in ids)
        return wanted


def parse(request: Request, here: str) -> SearchRequest:
    """Return what an address asks for; raise PageError for a value that means nothing."""
    given = {name: request.args.get(name) or "" for name in (*_OTHERS, *FILTERS)}
    for name, text in given.items():
        if name != "q" and len(text) > LONGEST_VALUE:
            raise PageError(400, f"The value of {name} is too long.")
    _check("order", given["sort"], tuple(SORTS)[1:])
    for name in given["narrow"].split(","):
        _check("filter", name, (*FACETS, "session"))
    values = {name: text for name, text in given.items() if text}
    if "q" in values:
        values["q"] = given["q"][:LONGEST_QUERY]
    return SearchRequest(here, values, is_cut=len(given["q"]) > LONGEST_QUERY)


def _check(what: str, value: str, known: tuple[str, ...]) -> None:
    if value and value not in known:
        raise PageError(400, f"Unknown {what} {value!r}. Choose one of: {', '.join(known)}.")


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the page; without a query, the form alone."""
    names = await pages.databases(datasette, request, TABLES)
    if not names:
        raise PageError(
            404, "No assoc-ingest database is open here, or you have no permission to see it."
        )
    asked = parse(request, datasette.urls.path("/-/assoc/search"))
    database = asked.values.get("db") or names[0]
    shown: dict[str, object] = {
        "title": f"{asked.query} – search" if asked.query.strip() else "Search",
        "asked": asked,
        "database": database,
        "databases": names,
        "body": None,
    }
    if asked.query.strip():
        others = [name for name in names if name != database]
        shown |= await pages.read(
            datasette, request, database, TABLES,
            lambda connection: _read(connection, asked, datasette, database, others),
        )  # fmt: skip
    return await pages.page(datasette, request, "search", shown)


def _read(
    connection: sqlite3.Connection,
    asked: SearchRequest,
    datasette: Datasette,
    database: str,
    others: list[str],
) -> dict[str, object]:
    from ..questions.view import rendered

    if (search := getattr(connection, "search", None)) is not None:
        return _read_remote(connection, search, asked, RemoteLinks(datasette, database))
    every = _find(connection, asked)
    try:
        facets, wanted = Facets(connection, every.groups), asked.wanted(connection)
    except (UsageError, NotFoundError) as error:
        raise PageError(400, str(error)) from None
    found = every.narrowed(facets, wanted) if wanted else every
    if asked.is_inside:
        found = found.apart()
    if asked.sort == "newest":
        found = found.newest_first()
    groups = found.groups[asked.start : asked.start + PAGE]
    if asked.page > 1 and not groups:
        raise PageError(
            404, f"There is no page {asked.page} of this search.",
            [("First page", asked.address())],
        )  # fmt: skip
    if wanted and not groups:
        found = replace(found, nothing=_why_nothing(asked, facets, wanted))
    projects = Projects(connection)
    shown = _answer(asked, found, groups, projects)
    chosen = list(_chips(asked, shown, projects))
    known = {
        **context(shown),
        "request": asked,
        "links": Links(datasette, database, connection, shown),
        "chosen": chosen,
        "corrected": _corrected(asked, found),
    }
    if not groups:
        words = [clause.name for clause in found.terms.content]
        known |= {
            "words": words[:_WORDS] if len(words) > 1 else [],
            "fresh": sql.ask(connection, "pages/fresh").fetchone(),
            "read": sql.ask(connection, "pages/indexed_files").fetchone(),
            "others": others,
        }
    return {
        "body": rendered("search", "html", "answer" if groups else "empty", known),
        "is_cut": found.is_cut,
        "facets": list(_facets(asked, found, facets, projects)),
        "chosen": chosen,
    }


def _read_remote(
    connection: sqlite3.Connection,
    search: Callable[..., SearchResult],
    asked: SearchRequest,
    links: RemoteLinks,
) -> dict[str, object]:
    """Return what a server finds, which ranks by itself and counts no facets."""
    from ..questions.view import rendered

    if "raw" in asked.values or asked.sort:
        raise PageError(400, "A search of a server has no FTS5 expressions and no other order.")
    filters, end = Filters.of(asked.filters), asked.start + PAGE
    result = search(asked.query, filters, limit=end, shown=_SHOWN)
    if asked.is_inside:
        result = replace(result, conversations=result.count)
        items = [conversation([hit], 0) for hit in result.hits[asked.start : end]]
    else:
        groups = result.groups[asked.start : end]
        items = [conversation(group.hits, group.more) for group in groups]
    if asked.page > 1 and not items:
        raise PageError(
            404, f"There is no page {asked.page} of this search.",
            [("First page", asked.address())],
        )  # fmt: skip
    for item in items:
        if item.more_hits:
            item._more = asked.address(session=item.best.session_key)
    shown = answer(result, items, asked.query, result.relaxed())
    chosen = list(_chips(asked, shown, Projects(connection)))
    known = {
        **context(shown),
        "request": asked,
        "links": links,
        "chosen": chosen,
        "corrected": None,
    }
    if not items:
        known |= {
            "words": [],
            "fresh": sql.ask(connection, "pages/fresh").fetchone(),
            "read": sql.ask(connection, "pages/indexed_files").fetchone(),
            "others": [],
        }
    body = rendered("search", "html", "answer" if items else "empty", known)
    return {"body": body, "is_cut": result.is_cut, "facets": [], "chosen": chosen}


def _find(connection: sqlite3.Connection, asked: SearchRequest) -> Ranking:
    """Return what was found; raise PageError where the query is an expression and is wrong."""
    is_raw = "raw" in asked.values
    try:
        return find(
            connection, asked.query, asked.question(), limit=PAGE, most=_MOST, raw=is_raw,
            closest=asked.values.get("closest") != "0", newest=asked.sort == "newest",
        )  # fmt: skip
    except UsageError as error:
        of_raw = str(error).removeprefix(_RAW)
        if not is_raw or of_raw == str(error):
            raise
        message = of_raw.removesuffix(", or leave out --raw.").rstrip(".")
        is_wrong = message.startswith("not ")
        message = f"The query is {message}." if is_wrong else f"{message.capitalize()}."
        plain = [("Search for its words instead", asked.address(raw=None))]
        raise PageError(400, message, plain) from error


def _answer(
    asked: SearchRequest, found: Ranking, groups: Sequence[Cluster], projects: Projects
) -> Search:
    """Return the conversations of a page as the answer of the question `search`."""
    notes = [*found.notes]
    if asked.is_cut:
        notes.insert(0, f"Only the first {LONGEST_QUERY:,} characters of the query were used.")
    if found.terms.without and groups:
        words = ", ".join(term.text for term in found.terms.without)
        notes.append(f"Excluded: messages with {words}.")
    result = found.read(PAGE, _SHOWN, asked.start)
    # Close matches are all that there are: only what has all words can be more than is listed.
    result = replace(result, is_cut=found.is_cut, notes=tuple(notes))
    items = []
    for group, cluster in zip(result.groups, groups, strict=True):
        item = conversation(group.hits, group.more)
        project, key = cluster.best.candidate.row["project_id"], cluster.session_key
        if asked.sort == "newest":
            item.time = cluster.newest
        if project is not None:
            item._project = str(project), projects.name(str(project))
        if key and group.more and not asked.is_inside:
            item._more = asked.within("session", key, is_cut=found.is_cut)
        items.append(item)
    return answer(result, items, asked.query, result.relaxed())


def _why_nothing(
    asked: SearchRequest, facets: Facets, wanted: Mapping[str, frozenset[str]]
) -> Nothing:
    """Say how much there is without each filter that narrows, and without all of them."""
    filters = Filters.of(asked.filters)

    def left(*names: str) -> int:
        return facets.count({name: texts for name, texts in wanted.items() if name not in names})

    alone = ((name, filters.told(name), left(name)) for name in wanted)
    return Nothing(tuple(one for one in alone if one[2]), left(*wanted))


def _corrected(asked: SearchRequest, found: Ranking) -> str | None:
    """Return the query with its words corrected, None if none was."""
    query = asked.query
    for word, meant in found.relaxed.corrected.items() if found.relaxed else ():
        query = " ".join(meant[0] if one == word else one for one in query.split(" "))
    return query if query != asked.query else None


# ------------------------------------------------------------------------------------------------
# What the page offers to narrow a search, and which filters are set.


class Value(NamedTuple):
    """A value of a facet, in how many conversations it occurs, and the address of these."""

    key: str
    text: str
    conversations: int
    address: str


class Facet(NamedTuple):
    """What was found can be narrowed by these values."""

    name: str
    values: list[Value]
    folded: list[Value]
    """Further ones."""
    left_out: int
    """How many more there are."""


class Projects:
    """The names and the directories of projects."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        rows = sql.ask(connection, "pages/project_names")
        self._rows = {str(row["id"]): row for row in rows}

    def name(self, key: str) -> str:
        """Return the name of the project with this id; a key that is no id is its own name."""
        row = self._rows.get(key)
        return shown_name((row["name"] or row["key"] or "") if row else key, "(unnamed)")

    def names(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the names of projects; equal ones with directories, or else with sources."""
        names = {key: self.name(key) for key in keys}
        for column in ("path", "source"):
            facts: dict[str, set[str]] = {}
            for key, name in names.items():
                facts.setdefault(name, set()).add(self._fact(key, column))
            names = {
                key: f"{name} ({self._fact(key, column)})" if len(facts[name]) > 1 else name
                for key, name in names.items()
            }
        return names

    def _fact(self, key: str, column: str) -> str:
        row = self._rows.get(key)
        return shown_name((row[column] or row["key"] or "") if row else key)


def _facets(
    asked: SearchRequest, found: Ranking, facets: Facets, projects: Projects
) -> Iterator[Facet]:
    """Yield the facets that are not chosen and have more than one value."""
    of_query = dict(found.terms.fields) if found.is_cut else {}  # a second value could not limit it
    counts = facets.counts(found.groups)
    if len(counts["repository"]) == len(counts["project"]):  # each has one directory
        del counts["repository"]
    for name, counter in counts.items():
        if name in asked.values or name in of_query or len(counter) < 2:
            continue
        ordered = sorted(counter.items(), key=lambda one: (-one[1], one[0]))
        if name == "month":
            ordered.sort(reverse=True)
        texts = _texts(name, counter, projects)
        values = [
            Value(key, texts[key], count, asked.within(name, key, is_cut=found.is_cut))
            for key, count in ordered[: _VALUES + _MORE_VALUES]
            if len(key) <= LONGEST_VALUE
        ]
        seen = values[:_VALUES]
        folded = values[_VALUES:] if len(asked.query) <= _LONG_QUERY else []
        yield Facet(name, seen, folded, len(ordered) - len(seen) - len(folded))


def _chips(asked: SearchRequest, shown: Search, projects: Projects) -> Iterator[Chip]:
    texts = {}
    if kind := asked.filters.get("kind"):
        texts["kind"] = _texts("kind", [kind], projects)[kind]
    if project := asked.filters.get("project"):
        texts["project"] = projects.name(project)
    if "session" in asked.filters:
        titles = (item.title for item in shown.items)
        texts["session"] = next(filter(None, titles), "")
    return chips(Filters.of(asked.filters), asked.without, texts)


def _texts(name: str, keys: Iterable[str], projects: Projects) -> dict[str, str]:
    """Return how the values of a facet are shown."""
    if name == "project":
        return projects.names(keys)
    return {key: shown_name(key.replace("_", " ") if name == "kind" else key) for key in keys}


# ------------------------------------------------------------------------------------------------
# Where the answer leads to: a hit to its message by a link that lasts, or to its row.


class RemoteLinks(Paths):
    """The addresses of what was found on a server: a reference, and the machine that has it."""

    def hit(self, hit: Hit) -> str:
        address = urls.of_reference(self.session, hit.ref or str(hit.session_key))
        sign = "&" if "?" in address else "?"
        return f"{address}{sign}{urlencode({'origin': getattr(hit, 'origin', '')})}"


class Links(Paths):
    """The addresses of what a page shows."""

    def __init__(
        self, datasette: Datasette, database: str, connection: sqlite3.Connection, shown: Search
    ) -> None:
        super().__init__(datasette, database)
        hits = [place._hit for item in shown.items for place in item.hits]
        rows = urls.rows(connection, [hit.id for hit in hits if hit.what == "message"])
        links = Permalinks(connection, self.session).of(row.place for row in rows.values())
        self._messages = {
            one: links[row.place].address for one, row in rows.items() if row.place in links
        }

    def hit(self, hit: Hit) -> str:
        if hit.what == "message" and hit.id in self._messages:
            return self._messages[hit.id]
        if hit.what in ("message", "session", "note") and hit.session_key:
            return self.session(hit.session_key)
        return f"{self.table(_ROWS[hit.what])}/{hit.id}"
