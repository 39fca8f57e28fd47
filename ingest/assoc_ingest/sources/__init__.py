"""The sources, one line each. A source is a module here, a line, and a folder of fixtures.

Installed packages bring others (`packages`).
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING

from ..source import Source

if TYPE_CHECKING:
    from .packages import Unusable

_OWN = {
    "claude": "Claude",
    "codex": "Codex",
    "associate": "Associate",
    "chorus": "Chorus",
    "cortex": "Cortex",
    "ccinsights": "CCInsights",
    "copilot": "Copilot",
    "gemini": "Gemini",
    "pi": "Pi",
    "opencode": "OpenCode",
    "kimi": "Kimi",
    "qwen": "Qwen",
    "copilot_chat": "CopilotChat",
    "cline": "Cline",
    "roo": "Roo",
    "cursor": "Cursor",
    "goose": "Goose",
    "cursor_cli": "CursorCLI",
}
"""The module and the class of each source; the module is called after the source."""


class Sources(MutableMapping[str, Source]):
    """The sources by name, those of packages last.

    A source is imported when it is asked for: all of them take 20 ms, a fifth of a short command.
    """

    def __init__(self) -> None:
        self._sources: dict[str, Source | None] = dict.fromkeys(_OWN)
        self._unusable: list[Unusable] | None = None

    @property
    def unusable(self) -> list[Unusable]:
        """Sources of packages that could not be loaded."""
        return self._load_packages()

    def _load_packages(self) -> list[Unusable]:
        """Add what packages bring, once; return what could not be loaded."""
        if self._unusable is None:
            from .packages import from_packages

            brought, self._unusable = from_packages(_OWN)
            for source in brought:
                self._sources.setdefault(source.name, source)
        return self._unusable

    def __getitem__(self, name: str) -> Source:
        if name not in self._sources:
            self._load_packages()
        source = self._sources[name]
        if source is None:
            made = getattr(import_module(f".{name}", __name__), _OWN[name])()
            source = self._sources[name] = made
        return source

    def __setitem__(self, name: str, source: Source) -> None:
        self._sources[name] = source

    def __delitem__(self, name: str) -> None:
        del self._sources[name]

    def __iter__(self) -> Iterator[str]:
        self._load_packages()
        return iter(self._sources)

    def __len__(self) -> int:
        return sum(1 for _ in self)


SOURCES = Sources()
