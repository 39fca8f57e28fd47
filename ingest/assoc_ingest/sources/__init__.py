"""The sources, one line each. A source is a module here, a line, and a folder of fixtures.

Installed packages bring others (`packages`).
"""

from __future__ import annotations

from ..fields import MACHINE
from ..source import Source
from .associate import Associate
from .ccinsights import CCInsights
from .chorus import Chorus
from .claude import Claude
from .codex import Codex
from .copilot import Copilot
from .cortex import Cortex
from .gemini import Gemini
from .opencode import OpenCode
from .packages import from_packages
from .pi import Pi

_OWN: tuple[Source, ...] = (
    Claude(),
    Codex(),
    Associate(),
    Chorus(),
    Cortex(),
    CCInsights(MACHINE),
    Copilot(),
    Gemini(),
    Pi(),
    OpenCode(),
)

_brought, UNUSABLE = from_packages([source.name for source in _OWN])

SOURCES: dict[str, Source] = {source.name: source for source in (*_OWN, *_brought)}
