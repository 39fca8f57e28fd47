"""Writes a synthetic Claude Code home, for benchmarks and tests.

    python benchmarks/generate.py OUT --bytes 200MB
    python benchmarks/generate.py OUT --bytes 2MB --seed 7 --faults
    python benchmarks/generate.py OUT --files 10000 --lines-per-file 10
    python benchmarks/generate.py OUT --one-file 1GB
    python benchmarks/generate.py OUT --chat 100000      one session of so many short messages
    python benchmarks/generate.py OUT --profile real     as the home of one person was counted
    python benchmarks/generate.py OUT --profile published    published transcripts, repeated

The home has everything a real one has: transcripts of all versions from 1.0.x to 2.1.2xx with
their subagents in the layout of the version, forks that repeat other transcripts, queued prompts,
compactions, tool results in files, teams, workflows, todos, tasks, plans, prompt history, and
files that must never be read.  How often and how long is taken from counts in published
transcripts (``shapes``): the share of each line kind in its era, the quantiles of texts, lines
and files, the rates of what goes wrong.  The text is invented (``words``) but spreads like real
text, so that parsing, compression and full-text search cost what they cost on real homes.

Equal arguments give equal bytes and times: one seeded generator, no clock, no network.  Without
``faults`` every line is JSON; only what is common in healthy homes is odd (no final line feed,
``\\u0000`` in a string).  With ``faults`` the pieces of damage seen in real homes are spread over
the transcripts (``damage``), each kind at least once.

The modules of ``synthetic``: ``plan`` what there is, ``shapes`` numbers, ``words`` text, ``ledger``
keeps shares, ``home`` the directory, ``transcript`` files and chains, ``tools`` ``replies``
``prompts`` ``asides`` the kinds of lines, ``conversation`` their order, ``agents`` ``groups``
``forks`` further transcripts, ``stores`` all other files; ``published`` repeats real ones.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as a script: the checkout is not on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.synthetic import chat, codex, published, shapes
from benchmarks.synthetic.home import SECRET, Summary
from benchmarks.synthetic.plan import generate
from benchmarks.synthetic.words import PHRASE

__all__ = ["PHRASE", "SECRET", "Summary", "generate"]

PROFILES = (*shapes.PROFILES, "published")
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20}


def parse_size(text: str) -> int:
    """``200MB``, ``1.5GB``, ``64KiB`` or plain bytes."""
    found = re.fullmatch(r"([\d.]+)\s*([a-zA-Z]*)", text.strip())
    if not found or found[2].upper() not in _UNITS:
        raise argparse.ArgumentTypeError(f"not a size: {text}")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; prints the summary as JSON."""
    parser = argparse.ArgumentParser(description="Write a synthetic Claude Code home.")
    parser.add_argument("out", type=Path, help="a directory that is empty or not there")
    parser.add_argument("--bytes", type=parse_size, default=20_000_000, metavar="SIZE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", action="store_true", help="break lines and files, too")
    parser.add_argument("--files", type=int, metavar="N", help="N small transcripts instead")
    parser.add_argument("--lines-per-file", type=int, default=10, metavar="N")
    parser.add_argument("--one-file", type=parse_size, metavar="SIZE", help="one huge transcript")
    parser.add_argument("--profile", choices=PROFILES, default="usual")
    parser.add_argument("--chat", type=int, metavar="N", help="one session of N short messages")
    parser.add_argument(
        "--codex", type=parse_size, metavar="SIZE", help="rollouts of Codex instead"
    )
    given = parser.parse_args(arguments)
    if given.codex is not None:
        codex.write(given.out, given.codex, given.seed)
        return 0
    if given.chat is not None:
        chat.write(given.out, given.chat)
        return 0
    if given.profile == "published":
        published.write(given.out, given.bytes)
        return 0
    try:
        summary = generate(
            given.out,
            given.bytes,
            given.seed,
            given.faults,
            files=given.files,
            lines_per_file=given.lines_per_file,
            one_file=given.one_file,
            profile=given.profile,
        )
    except FileExistsError as error:
        parser.error(str(error))
    print(json.dumps(summary.as_dict(), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
