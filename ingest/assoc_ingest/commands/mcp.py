"""assoc-ingest mcp"""

from __future__ import annotations

from pathlib import Path

import click

from .options import database_option, project_option


@click.group(invoke_without_command=True)
@project_option("Limit every tool to this project")
@click.option("--no-sync", is_flag=True, help="Do not read what is new before an answer.")
@click.option("--no-redact", is_flag=True, help="Do not mask credentials.")
@database_option
@click.pass_context
def mcp(
    context: click.Context, database: Path, project: str | None, no_sync: bool, no_redact: bool
) -> None:
    """Answer an agent over standard input and output: the Model Context Protocol.

    The tools search, open a place, say what was done lately and run SQL. They only read. Before
    each answer what is new is read, unless a watch does that.

    \b
    Examples:
      assoc-ingest mcp
      assoc-ingest mcp --project .
    """
    if context.invoked_subcommand is not None:
        return
    from ..mcp.index import Index, Settings
    from ..mcp.protocol import Protocol
    from ..mcp.server import serve
    from ..mcp.tools import INSTRUCTIONS, Tools

    def look() -> list[str]:
        from ..sync.news import read_news

        return read_news(database)

    index = Index(Settings(database, project, None if no_sync else look, not no_redact))
    tools = Tools(index)
    try:
        serve(Protocol(INSTRUCTIONS, tools.offered, tools.call), index.interrupt)
    finally:
        index.close()
