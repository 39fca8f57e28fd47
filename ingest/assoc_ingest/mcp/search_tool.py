"""The tool `search`: what holds the words, by conversation, each hit with its place."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ..ask.answer import Cursors
from ..errors import UsageError
from ..questions.fit import Answer, Item, heading, quoted
from ..terminal import branch_besides, many
from .tool import NOTHING, PLACE, PROJECT, QUOTED, SINCE, TEXT, UNTIL, Arguments, Tool, number

if TYPE_CHECKING:
    from ..ask.search import Group, Hit, SearchResult
    from .index import Index

_CONVERSATIONS, _MOST = 8, 50
_FURTHEST = 1_000  # conversations that cursors lead to
_SHOWN = 3  # hits of a conversation


def run(index: Index, arguments: Arguments) -> Answer:
    """Search, and return a conversation as an item."""
    from ..ask.filters import Filters
    from ..ask.search import search, with_lines

    asked = {name: arguments.get(name) for name in PROPERTIES if name != "limit"}
    cursors = Cursors("search", str(index.settings.database), index.settings.project, asked)
    (start,) = cursors.place(arguments.get("cursor"), [0])
    if start > _FURTHEST:
        raise UsageError(
            "The cursor is too far from the start. Narrow the search with more words or a filter."
        )
    limit = int(str(arguments.get("limit", _CONVERSATIONS)))
    kinds = arguments.get("kinds")
    filters = Filters.of(
        {**arguments, "kind": tuple(map(str, kinds)) if isinstance(kinds, list) else ()}
    )
    result = search(
        index.connection, str(arguments["query"]), filters,
        limit=start + limit + 1, shown=_SHOWN, clean=index.mask,
    )  # fmt: skip
    chosen = result.groups[start : start + limit]
    hits = with_lines(index.connection, [hit for group in chosen for hit in group.hits])
    result = result.with_hits(hits)
    groups = result.groups[start:]
    head = _head(index, result)
    return Answer(
        items=(_item(group) for group in islice(groups, limit)),
        render=render,
        cursor=lambda number, _: cursors.made(start + number),
        is_continued=False,
        head=head,
        said=_said(result, head),
        empty="Nothing contains these words." if not start else "There is no more.",
        behind=lambda: cursors.made(start + limit) if len(groups) > limit else None,
    )


def _head(index: Index, result: SearchResult) -> Item:
    """Return how much was found, and how the query was relaxed."""
    head: Item = {"total": result.conversations, "is_at_least": result.is_cut}
    if (relaxed := _relaxed(index, result)) is not None:
        head["relaxed"] = relaxed
    if result.notes:
        head["notes"] = list(result.notes)
    if result.nothing:
        head["nothing"] = result.nothing.as_json()
    return head


def _relaxed(index: Index, result: SearchResult) -> Item | None:
    """Return how the query was relaxed; of words that were taken for others, those that are here.

    The words of an index are those of all projects.
    """
    relaxed = result.relaxed()
    if relaxed is None or not index.is_limited:
        return relaxed
    from ..ask.candidates import Candidates
    from ..ask.filters import Filters
    from ..ask.query import Term

    candidates = Candidates(index.connection, Filters())
    corrected = result.relaxation.corrected if result.relaxation else {}
    here = {
        word: [other for other in meant if candidates.finds(Term(other).expression())]
        for word, meant in corrected.items()
    }
    return {**relaxed, "corrected": {word: found for word, found in here.items() if found}}


def _said(result: SearchResult, head: Item) -> tuple[str, ...]:
    """Return what to know before the hits; words of the index are quoted."""
    said = [f"{'At least ' * result.is_cut}{many(result.conversations, 'conversation')}."]
    if result.relaxation is not None:
        few = "Few contain" if result.relaxation.has_exact else "Nothing contains"
        said.append(f"{few} all words: hits with why=relaxed lack some of them.")
    relaxed = head.get("relaxed")
    for word, meant in relaxed["corrected"].items() if isinstance(relaxed, dict) else ():
        said.append(quoted(f"{', '.join(meant)} instead of {word}"))
    said += map(quoted, result.nothing.lines("conversation") if result.nothing else ())
    return (*said, *map(quoted, result.notes))


def _item(group: Group) -> Item:
    best = group.best
    item: Item = {
        "key": best.key or best.ref,
        "title": group.title,
        "project": best.project,
        "branch": best.branch,
        "time": best.time,
        "source": best.source,
        "cwd": best.cwd,
        "resume": best.resume,
        "hits": [_hit(hit) for hit in group.hits],
        "more_hits": group.more,
    }
    return {field: value for field, value in item.items() if value not in (None, 0)}


def _hit(hit: Hit) -> Item:
    from ..ask.matches import plain

    text, _ = plain(hit.snippet)
    item: Item = {
        "ref": hit.ref,
        "kind": hit.kind if hit.what == "message" else _KINDS.get(hit.what, hit.what),
        "tool": hit.tool,
        "subagent": hit.subagent,
        "time": hit.time,
        "why": hit.why,
        "snippet": text if hit.what != "session" else None,
        "file": hit.file,
        "line": hit.line,
        "byte": hit.byte,
    }
    return {field: value for field, value in item.items() if value is not None}


def render(item: Item) -> str:
    """Return a conversation with its hits as text."""
    time = str(item.get("time") or "")[:16]
    lines = ["", heading(item.get("key"), time)]
    said = {field: str(item[field]) for field in ("title", "project", "branch") if field in item}
    branch = branch_besides(said.get("project"), said.pop("branch", None))
    title = " · ".join([*said.values(), *([branch] if branch else [])])
    if title:
        lines.append(quoted(title))
    hits = item.get("hits")
    for hit in hits if isinstance(hits, list) else ():
        lines.append(heading(*(hit.get(field) for field in ("ref", "kind", "tool", "why"))))
        if "snippet" in hit:
            lines.append(quoted(str(hit["snippet"])))
    return "\n".join(lines)


_KINDS = {"session": "title", "tool_result_file": "output"}
PROPERTIES: dict[str, dict[str, object]] = {
    "query": {
        **TEXT,
        "description": 'Words; all of them are best. "two words" in quotes are a phrase, word* is '
        "a prefix, -word excludes, OR separates alternatives.",
    },
    "project": PROJECT,
    "branch": {**TEXT, "description": "Only messages on this git branch."},
    "since": SINCE,
    "until": UNTIL,
    "kinds": {
        "type": "array",
        "items": TEXT,
        "description": "Only these kinds: prompt, text, thinking, tool_use, tool_result, plan, "
        "task, todo, document, inbox ...",
    },
    "source": {**TEXT, "description": "Only this system."},
    "model": {**TEXT, "description": "Only this model."},
    "tool": {**TEXT, "description": "Only calls of this tool, and their output."},
    "session": {**TEXT, "description": "Only this conversation: its key or the beginning of it."},
    "limit": number(f"Most conversations. Default {_CONVERSATIONS}.", _MOST),
}

TOOL = Tool(
    name="search",
    title="Search past conversations",
    description=(
        "Find past conversations with coding agents, and what was said in them: prompts, answers, "
        "commands and their output, plans, tasks, notes. Use it before solving a problem that "
        "may have been solved before, and to learn why something looks the way it does. Each "
        f"hit has a `ref`; `open` shows its context. {QUOTED}"
    ),
    properties=PROPERTIES,
    required=("query",),
    run=run,
    only_unlimited=("project",),
    fields={
        "total": {"type": "integer", "description": "Conversations that were found."},
        "is_at_least": {"type": "boolean", "description": "There may be more than `total`."},
        "relaxed": {
            "type": ["object", "null"],
            "description": "How the query was relaxed: {missing, corrected, has_exact}.",
        },
        "notes": {"type": "array", "items": TEXT},
        "nothing": NOTHING,
        "items": {
            "type": "array",
            "description": "Conversations, best first, each with its best hits.",
            "items": {
                "type": "object",
                "properties": {
                    "key": TEXT,
                    "title": TEXT,
                    "project": TEXT,
                    "branch": TEXT,
                    "time": TEXT,
                    "source": TEXT,
                    "cwd": TEXT,
                    "resume": TEXT,
                    "more_hits": {"type": "integer"},
                    "hits": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "ref": {**TEXT, "description": "What `open` takes."},
                                "kind": TEXT,
                                "tool": TEXT,
                                "subagent": TEXT,
                                "time": TEXT,
                                "why": {**TEXT, "description": "verbatim, all_words or relaxed"},
                                "snippet": TEXT,
                                **PLACE,
                            },
                        },
                    },
                },
            },
        },
    },
)
