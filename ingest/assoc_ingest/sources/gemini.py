"""Gemini CLI: conversations with Google's agent for the terminal, below `~/.gemini`.

```
projects.json                                   {"projects": {"/srv/demo": "demo"}}
tmp/<id>/.project_root                          the directory of a project, as text
tmp/<id>/chats/session-<time>-<8 digits>.json   a conversation, rewritten as a whole
tmp/<id>/chats/session-<time>-<8 digits>.jsonl  the same, appended to (0.39 on)
tmp/<id>/chats/<parent>/<subagent>.jsonl        a subagent (0.36 on)
tmp/<id>/logs.json                              prompts of all conversations of a project
```

`GEMINI_CLI_HOME` replaces the directory that has `.gemini`. `<id>` was the SHA-256 of the project's
directory, and is a short name since 0.29. The name of a file has only the beginning of the id of
its session, which its lines state.

The program deletes conversations after 30 days, and of two files with the same session sometimes
the longer one: a resumed conversation leaves a second file with almost nothing in it.

`oauth_creds.json`, `*oauth-tokens*.json`, `google_accounts.json`, `settings.json` and `.env`
contain credentials and are never opened.

`logs.json` is a list of `{"sessionId","messageId","type":"user","message","timestamp"}`. It repeats
what conversations have, and is the only record of those that are gone.

The messages of a conversation are described in `gemini_chat`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..fields import MAX_TEXT, string
from ..records import ProjectEntry, Prompt, Record
from ..source import DOCUMENT, LOG, Claim, Context, Line, Listing, Recognition, parts_of
from .agent import AgentSource
from .gemini_chat import TYPES, Chat, is_ours
from .located import items_at
from .plain_text import document_text, nothing_in
from .reader import Reader

_PRIVATE = frozenset(["google_accounts.json", "settings.json", ".env"])
_JSON, _JSONL = ".json", ".jsonl"
_LONGEST_PATH = 10_000


class Gemini(AgentSource):
    """The source of kind `gemini`."""

    name = "gemini"
    label = "Gemini CLI"
    known_lines = TYPES
    variable, below, place = "GEMINI_CLI_HOME", ".gemini", ".gemini"
    resume = ("gemini", "--resume", "{}")
    retention_days = 30

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Credentials in the root."""
        name = parts[0].casefold()
        return len(parts) == 1 and (name in _PRIVATE or ("oauth" in name and _JSON in name))

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        match parts:
            case ("tmp",) | ("tmp", _) | ("tmp", _, "chats") | ("tmp", _, "chats", _):
                return True
        return False

    def recognises(self, listing: Listing) -> Recognition:
        """A home has chats. Programs that were made from this one have the same list of prompts.

        Qwen Code is one of them; its home also has `projects/`.
        """
        names = [path for path in listing if path == "projects" or self.claim(parts_of(path))]
        if any("/chats/" in name for name in names):
            return Recognition.CERTAIN
        is_home = "projects" not in names and any("/" in name for name in names)
        return Recognition.POSSIBLE if is_home else Recognition.NO

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("projects.json",):
                return Claim(self.name, "project_list")
            case ("tmp", project, ".project_root"):
                return self._in_project("project_root", project)
            case ("tmp", project, "logs.json"):
                return self._in_project("history", project)
            case ("tmp", project, "chats", name) if name.endswith((_JSON, _JSONL)):
                return self._in_project("transcript", project, name)
            case ("tmp", project, "chats", parent, name) if name.endswith(_JSONL):
                return self._in_project("agent", project, name, parent)
        return None

    def _in_project(
        self, kind: str, project: str, name: str = "", parent: str | None = None
    ) -> Claim:
        agent = name.removesuffix(_JSONL) if parent is not None else None
        return Claim(self.name, kind, parent, agent, project, project, parts=(name,))

    def shape(self, claim: Claim) -> str:
        """Conversations of newer versions grow; all else is rewritten."""
        return LOG if claim.parts and claim.parts[0].endswith(_JSONL) else DOCUMENT

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; which messages were read before comes from earlier lines."""
        if claim.kind in _LISTS:
            return _LISTS[claim.kind](claim, lines), context
        chat = Chat(claim, context)
        if self.shape(claim) == DOCUMENT:
            for value in chat.document(lines):
                chat.begin_chat(value)
                chat.messages(value.get("messages"))
            return chat.finish(), {}
        for value in chat.objects(lines, is_ours):
            chat.take(value)
        return chat.finish(), chat.context


def _root(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the directory of a project."""
    (line,) = lines
    text, records = document_text(line)
    path = text.strip()
    if not path or "\n" in path or len(path) > _LONGEST_PATH:
        return nothing_in(line, "no path")
    return [ProjectEntry(claim.project_key or "", None, path), *records]


def _projects(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the list of projects: the short name of each directory."""
    reader = Reader(claim)
    for value in reader.document(lines):
        projects = reader.mapping(value, "projects")
        for path in projects:
            if (name := reader.name(projects, path)) is not None:
                reader.records.append(ProjectEntry(name, None, path))
    return reader.finish()


def _prompts(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the list of what was typed."""
    reader = Reader(claim)
    (line,) = lines
    places = items_at(b'{"":' + line.data + b"}", "")
    for place, item in reader.array([line], is_empty_allowed=True):
        offset, length = places[place] if place < len(places) else (4 + place, 1)
        text = string(item.get("message"))
        if text is None:
            reader.note("message: missing")
            continue
        moment, session = reader.time(item, "timestamp"), reader.name(item, "sessionId")
        prompt = Prompt(text[:MAX_TEXT], moment, None, session, None, None, offset - 4, length)
        reader.records.append(prompt._replace(project_key=claim.project_key))
    return reader.finish()


_LISTS = {"project_root": _root, "project_list": _projects, "history": _prompts}
"""How files are read that are no conversations, by their kind."""
