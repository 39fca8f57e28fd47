"""Measures other programs on the same home, beside ours in the same run.

    make bench-peers
    make bench-peers ARGS='--homes usual:1GB --repeat 1'

The peers that the Python package index offers as programs are installed into an environment of
their own below the build directory. Each gets a private copy of the generated home, below a
directory that stands in for the user's home: none of them, and not ours, sees the user's. Nothing
is asked of the network once they are installed: telemetry and the search for updates are off.
What cannot be installed here is said, and skipped.

Measured is what all have: a first sync, one that finds nothing, and one after ten lines were
appended to a transcript. They do not do the same: what each keeps stands beside it. Ratios to a
peer that are worse than in the last kept run of the same home are named.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import report
from benchmarks.cost import Cost, Program, best, measure, scratch
from benchmarks.generate import PROFILES, parse_size
from benchmarks.growing import LINES, Growing
from benchmarks.homes import Homes, size_of
from benchmarks.syncs import amount

HOMES = "usual:200MB,real:371MB,published:200MB"
NOISE = 1.1  # a ratio that grew by less says nothing
STEPS = ("first sync", "no-op sync", f"{LINES} lines appended")
_RATIOS = "Ours as a multiple of theirs"
_GROWING = 7_000_000  # bytes of the transcript that is appended to
OURS = "assoc-ingest"


@dataclass(frozen=True, slots=True)
class Peer:
    """A program of others: how it is installed, started, and where it keeps its index."""

    package: str
    version: str
    command: tuple[str, ...]
    database: str
    """Below the user's home."""
    keeps: str


PEERS = (
    Peer(
        "agentsview",
        "0.46.1",
        ("agentsview", "sync"),
        ".agentsview/sessions.db",
        "messages and tool calls; full text of messages",
    ),
    Peer(
        "claude-session-search",
        "0.2.0",
        ("cc-search", "--reindex"),
        ".cc-search/index.db",
        "texts, those of tools cut at 4,000 characters; full text of them",
    ),
)

_QUIET = {
    "AGENTSVIEW_NO_DAEMON": "1",
    "AGENTSVIEW_TELEMETRY_ENABLED": "0",
    "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
    "DO_NOT_TRACK": "1",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What one program took for each of the steps, and the bytes of its database."""

    name: str
    costs: tuple[Cost, ...]
    stored: int
    keeps: str = ""


def installed(peer: Peer, build: Path) -> Path | None:
    """Return the directory of the peer's programs, None if it cannot be installed here."""
    place = build / "peers" / f"{peer.package}-{peer.version}"
    programs = place / ("Scripts" if sys.platform == "win32" else "bin")
    if not (programs / peer.command[0]).exists():
        venv.create(place, with_pip=True, clear=True)
        done = subprocess.run(
            [programs / "python", "-m", "pip", "install", "--quiet",
             "--disable-pip-version-check", f"{peer.package}=={peer.version}"],
            check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            shutil.rmtree(place)
            return None
    return programs


def environment(user: Path) -> dict[str, str]:
    """Return the variables that point a program at a user's home that is not the user's."""
    claude = user / ".claude"
    return {
        "HOME": str(user),
        "USERPROFILE": str(user),
        "XDG_CONFIG_HOME": str(user / ".config"),
        "XDG_DATA_HOME": str(user / ".local" / "share"),
        "XDG_CACHE_HOME": str(user / ".cache"),
        "CLAUDE_CONFIG_DIR": str(claude),
        "CLAUDE_PROJECTS_DIR": str(claude / "projects"),
        "AGENTSVIEW_DATA_DIR": str(user / ".agentsview"),
        **_QUIET,
    }


def measured(
    name: str,
    command: Sequence[str | Path],
    variables: Callable[[Path], Mapping[str, str]],
    database: str,
    homes: Homes,
    home: Path,
    growing: int,
    keeps: str = "",
) -> Measured:
    """Run a program's three steps on a private copy of the home, in an empty home of a user."""
    with scratch(homes.build) as user:
        claude = user / ".claude"
        shutil.copytree(home, claude)
        grown = Growing(homes.one_file(growing), user / "grown", 1)
        # Below the same home, for not all of them can read two.
        shutil.copytree(grown.home / "projects", claude / "projects", dirs_exist_ok=True)
        grown.path = claude / grown.path.relative_to(grown.home)
        shutil.rmtree(grown.home)

        def once() -> Cost:
            return measure(*command, environment=variables(user), cwd=user)

        first = once()
        nothing = best([once() for _ in range(3)])
        grown.grow()
        appended = once()
        beside = (user / f"{database}{ending}" for ending in ("", "-wal"))
        stored = sum(path.stat().st_size for path in beside if path.exists())
    return Measured(name, (first, nothing, appended), stored, keeps)


def folded(runs: Sequence[Measured]) -> Measured:
    """Return the best of some runs of one program."""
    costs = tuple(map(best, zip(*(run.costs for run in runs), strict=True)))
    return Measured(runs[0].name, costs, runs[0].stored, runs[0].keeps)


def reported(title: str, ours: Measured, others: Sequence[Measured], source: int) -> str:
    """Return the tables: every program, and ours against each of them."""
    columns = ["", *STEPS, "CPU of first", "peak", "database", ""]
    rows = [_figures(program, source) for program in (ours, *others)]
    pairs = [_pair(ours, other) for other in others]
    tables = [report.table(title, columns, rows)]
    if pairs:
        names = [part for step in STEPS for part in (f"{step}, wall", f"{step}, CPU")]
        columns = ["", *names, "peak", "database"]
        tables.append(report.table(_RATIOS, columns, pairs))
    return "\n".join(tables)


def _figures(program: Measured, source: int) -> list[str]:
    first = program.costs[0]
    return [
        program.name,
        *(f"{cost.wall:.2f} s" for cost in program.costs),
        f"{first.cpu:.2f} s",
        f"{max(cost.memory for cost in program.costs) / 1e6:.0f} MB",
        f"{program.stored / source:.2f} x source",
        program.keeps,
    ]


def _pair(ours: Measured, theirs: Measured) -> list[str]:
    ratios = []
    for mine, other in zip(ours.costs, theirs.costs, strict=True):
        ratios += [mine.wall / other.wall, mine.cpu / other.cpu]
    peaks = [max(cost.memory for cost in program.costs) for program in (ours, theirs)]
    ratios += [peaks[0] / peaks[1], ours.stored / theirs.stored]
    return [theirs.name, *(f"{ratio:.2f}" for ratio in ratios)]


def worse(section: str, kept: str) -> list[str]:
    """What is worse in *section* than where its home was last *kept* in the results."""
    title = section.split("\n", 1)[0]
    _, _, last = kept.partition(f"{title}\n")
    before = _ratios(last.split("\n## ")[0])
    return [
        f"{name}, {column}: {ratio:.2f}, was {before[name, column]:.2f}"
        for (name, column), ratio in _ratios(section).items()
        if (name, column) in before and ratio > NOISE * before[name, column]
    ]


def _ratios(section: str) -> dict[tuple[str, str], float]:
    """The first table of ratios in a section, by peer and column."""
    table = section.partition(f"### {_RATIOS}\n")[2].strip().split("\n\n")[0]
    header, _, *rows = [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()
    ] or [[], []]
    columns = header[-len(rows[0]) + 1 :] if rows else []
    return {
        (row[0], column): float(ratio)
        for row in rows
        for column, ratio in zip(columns, row[1:], strict=True)
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Install, measure, print, and keep if asked to."""
    parser = argparse.ArgumentParser(description="Measure other programs beside ours.")
    parser.add_argument(
        "--homes", default=HOMES, metavar="LIST", help=f"profiles and sizes; default {HOMES}"
    )
    parser.add_argument("--growing", type=parse_size, default=_GROWING, metavar="SIZE")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="the best of N counts")
    report.add_options(parser)
    given = parser.parse_args(arguments)
    homes = [part.split(":") for part in given.homes.split(",")]
    for profile, *size in homes:
        if profile not in PROFILES:
            parser.error(f"no profile is named {profile}: choose from {', '.join(PROFILES)}")
        if len(size) != 1:
            parser.error(f"give the size of {profile}, as in {profile}:200MB")
    if "ASSOC_REAL_CORPUS" not in os.environ and any(
        profile == "published" for profile, _ in homes
    ):
        print("Without ASSOC_REAL_CORPUS, homes of the profile published are left out.")
        homes = [home for home in homes if home[0] != "published"]
    sections = (_section(profile, parse_size(size), given) for profile, size in homes)
    report.show(given, f"best of {given.repeat}", sections)
    return 0


def _section(profile: str, size: int, given: argparse.Namespace) -> str:
    homes = Homes(given.build)
    home = homes.of_size(size, profile)
    programs = {peer: installed(peer, given.build) for peer in PEERS}
    runs: dict[str, list[Measured]] = {}
    for _ in range(given.repeat):
        mine = measured(
            OURS, Program(Path()).command("sync"), _ours, ".assoc.db", homes, home, given.growing,
            "every text whole, full text of it, the original bytes",
        )  # fmt: skip
        runs.setdefault(OURS, []).append(mine)
        for peer, place in programs.items():
            if place is not None:
                command = [str(place / peer.command[0]), *peer.command[1:]]
                theirs = measured(
                    f"{peer.package} {peer.version}", command, environment, peer.database,
                    homes, home, given.growing, peer.keeps,
                )  # fmt: skip
                runs.setdefault(peer.package, []).append(theirs)
    ours, *others = map(folded, runs.values())
    source = size_of(home) + given.growing
    section = reported(f"Peers on a home of {amount(size)}, {profile}", ours, others, source)
    missing = [peer.package for peer, place in programs.items() if place is None]
    if missing:
        section += f"\nCould not be installed here, and is left out: {', '.join(missing)}.\n"
    kept = given.results.read_text("utf-8") if given.results.exists() else ""
    if decline := worse(section, kept):
        section += "\nWorse than in the last kept run: " + "; ".join(decline) + ".\n"
    return section


def _ours(user: Path) -> dict[str, str]:
    program = Program(user).environment()
    return {**environment(user), **program, "ASSOC_INGEST_DB": str(user / ".assoc.db")}


if __name__ == "__main__":
    sys.exit(main())
