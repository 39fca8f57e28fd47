"""Addresses of git remotes, in one form for all spellings of one repository."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

_LONGEST = 300
_SCHEMES = ("http", "https", "ssh", "git", "git+ssh", "ssh+git")

_host = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?").fullmatch
_part = re.compile(r"(?!\.{1,2}$)[\w.~+&=%@-]{1,200}").fullmatch
_of_this_machine = re.compile(r"localhost|127\.[\d.]{1,11}|0\.0\.0\.0").fullmatch
_port = re.compile(r":\d{1,5}$")
_for_programs = re.compile(r"/?(?:repos|api/v3/repos|api/v4/projects|2\.0/repositories)/").match

_WRITTEN_OTHERWISE = {
    "ssh.github.com": "github.com",
    "altssh.bitbucket.org": "bitbucket.org",
    "altssh.gitlab.com": "gitlab.com",
    "ssh.dev.azure.com": "dev.azure.com",
}


class Remote(NamedTuple):
    """A repository on a server."""

    host: str
    name: str
    """With that of its owner, as it is spelled."""

    def __str__(self) -> str:
        return f"{self.host}/{self.name}"


def remote_of(url: str) -> Remote | None:
    """Return the repository that an address means, whatever its scheme, user, port and spelling.

    None if it means none: a path, or a server on this machine, which may stand for any other.
    """
    scheme, mark, rest = url.rpartition("://")
    if len(url) > _LONGEST or scheme.casefold() not in (*_SCHEMES, ""):
        return None
    place, slash, path = rest.partition("/")
    if not mark and ":" in place:  # user@host:owner/name
        place, _, start = place.partition(":")
        path = start + slash + path
    elif not mark and "." not in place:
        return None
    host = _port.sub("", place.rpartition("@")[2].casefold()).removeprefix("www.")
    if _host(host) is None or len(host) == 1 or _of_this_machine(host):  # one letter: a drive
        return None
    host = _WRITTEN_OTHERWISE.get(host, host)
    if found := _for_programs(path):
        host, path = host.removeprefix("api."), path[found.end() :]
    if host == "dev.azure.com":
        path = path.removeprefix("v3/").replace("/_git/", "/")
    name = unquote(path).strip("/").removesuffix(".git").rstrip("/")
    return Remote(host, name) if all(map(_part, name.split("/"))) else None
