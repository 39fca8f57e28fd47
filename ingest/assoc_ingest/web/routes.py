"""The pages of the plugin: which path shows what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from . import (
    conversation,
    conversations,
    dashboard,
    front,
    pages,
    project,
    reports,
    search_page,
    timeline,
)
from .pages import PageError, error_page

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import AsgiStream, Request, Response

View = Callable[["Datasette", "Request"], Awaitable["Response | AsgiStream"]]

_PAGES: tuple[tuple[str, View], ...] = (
    (r"^/$", front.home),
    (r"^/-/$", pages.index),
    (r"^/-/assoc/?$", front.view),
    (r"^/(?P<database>[^/]+)/-/session/(?P<session>[^/]+)/?$", conversation.view),
    (r"^/(?P<database>[^/]+)/-/session/(?P<session>[^/]+)/export$", conversation.download),
    (r"^/(?P<database>[^/]+)/-/session/(?P<session>[^/]+)/image$", conversation.image),
    (r"^/(?P<database>[^/]+)/-/session/(?P<session>[^/]+)/news$", conversation.news),
    (r"^/(?P<database>[^/]+)/-/session/(?P<session>[^/]+)/timeline$", timeline.view),
    (r"^/(?P<database>[^/]+)/-/sessions/?$", conversations.view),
    (r"^/(?P<database>[^/]+)/-/reports/?$", reports.view),
    (r"^/(?P<database>[^/]+)/-/project/(?P<project>[^/]+)/?$", project.project),
    (r"^/(?P<database>[^/]+)/-/team/(?P<team>[^/]+)/?$", project.team),
    (r"^/-/assoc/search/?$", search_page.view),
    (r"^/-/assoc/dashboard/?$", dashboard.view),
)


def routes() -> list[tuple[str, View]]:
    """Return a pattern for the path and the view of every page."""
    return [(pattern, _telling_errors(view)) for pattern, view in (*_PAGES, *reports.views())]


def _telling_errors(view: View) -> View:
    async def shown(datasette: Datasette, request: Request) -> Response | AsgiStream:
        try:
            return await view(datasette, request)
        except PageError as error:
            return await error_page(datasette, request, error)

    return shown
