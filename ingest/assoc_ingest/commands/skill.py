"""assoc-ingest skill"""

from __future__ import annotations

from pathlib import Path

import click

from .options import verbose_option


@click.group()
@verbose_option
def skill() -> None:
    """Teach an agent when and how to ask: print a skill file, or put it where you say.

    A skill is a directory with a file SKILL.md that an agent reads when it fits its task. It works
    with the command line alone; the tools of `assoc-ingest mcp` are used where they are there.

    \b
    Examples:
      assoc-ingest skill print
      assoc-ingest skill install --to ~/.claude/skills
    """


@skill.command("print")
@verbose_option
def print_skill() -> None:
    """Print the file."""
    from ..ask.output import write
    from ..mcp.skill import text

    write([text()])


@skill.command()
@click.option(
    "--to",
    "directory",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The directory in which the agent keeps its skills.",
)
@click.option("--force", is_flag=True, help="Replace a file that is another skill.")
@verbose_option
def install(directory: Path, force: bool) -> None:
    """Write the file to DIR/past-conversations/SKILL.md; nothing else is written anywhere."""
    from ..ask.output import say
    from ..mcp.skill import install as put

    path, is_new = put(directory, is_forced=force)
    say(f"Written: {path}" if is_new else f"It is there already: {path}")
