"""The tools, in the order in which a client is told of them: a module each, and its line here."""

from __future__ import annotations

from . import blame_tool, fix_tool, open_tool, recent_tool, search_tool, sql_tool
from .tool import Tool

TOOLS: tuple[Tool, ...] = (
    recent_tool.TOOL,
    search_tool.TOOL,
    open_tool.TOOL,
    blame_tool.TOOL,
    fix_tool.TOOL,
    sql_tool.TOOL,
)  # fmt: skip
