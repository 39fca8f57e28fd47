"""What all parts of the generator share: the directory, the dice, the ledger, the tally."""

from __future__ import annotations

import os
import random
import re
import string
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from . import shapes
from .ledger import Ledger
from .words import NEEDLE, PHRASE, Words

if TYPE_CHECKING:
    from .damage import Damage

Json = dict[str, Any]

_ALPHABET = string.ascii_letters + string.digits

# Stands in every file and field that a reader must never copy: bridge-session lines, credentials,
# settings, shell snapshots, the headers of an API error.
SECRET = "sk-never-index-this-canary"


@dataclass
class Summary:
    """What was generated.  ``faults`` counts pieces of damage, by kind, as they were written."""

    files: int = 0
    bytes: int = 0
    projects: int = 0
    sessions: int = 0  # main transcripts
    agents: int = 0  # subagent transcripts
    lines: int = 0  # of transcripts, damaged pieces not counted
    messages: int = 0  # of these lines, user and assistant
    copies: int = 0  # of these lines, copies in a fork or a side agent
    eras: dict[str, int] = field(default_factory=dict)  # lines
    faults: dict[str, int] = field(default_factory=dict)
    needles: list[str] = field(default_factory=list)  # words that occur in one block each
    phrases: int = 0  # blocks in which the planted phrase stands

    def as_dict(self) -> Json:
        """Plain types, for JSON."""
        return asdict(self)


@dataclass
class Session:
    """What the lines of one conversation have in common."""

    id: str
    folder: str  # below the root: projects/<enc>
    cwd: str
    branch: str
    version_text: str
    era: shapes.Era
    start: float
    slug: str
    model: str
    entrypoint: str
    gateway: bool = False  # answered by another vendor's API: other ids, other usage fields
    team: str | None = None
    kind: str | None = None  # bg: a fork in the background
    prompts: list[tuple[float, str]] = field(default_factory=list)
    tasks: list[Json] = field(default_factory=list)
    todos: list[Json] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    backups: list[tuple[str, str]] = field(default_factory=list)
    last_uuid: str = ""
    end: float = 0.0

    def __post_init__(self) -> None:
        self.version = shapes.parse_version(self.version_text)

    def absolute(self, path: str) -> str:
        """A path below the working directory, as the session's system writes it."""
        if self.cwd.startswith("/"):
            return f"{self.cwd}/{path}"
        return f"{self.cwd}\\{path}".replace("/", "\\")

    @property
    def side(self) -> str:
        """The session's directory of side files."""
        return f"{self.folder}/{self.id}"


def encode(cwd: str) -> str:
    """The directory name under ``projects/`` for a working directory."""
    name = re.sub("[^A-Za-z0-9]", "-", cwd)
    if len(name) <= 200:
        return name
    return f"{name[:200]}-{sum(map(ord, cwd)) * 7919 % 36**6:x}"


def stamp(seconds: float) -> str:
    """UTC ISO text with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


class Home:
    """The Claude home being written below *out*."""

    def __init__(
        self, out: Path, size: int, seed: int, profile: shapes.Profile = shapes.PROFILES["usual"]
    ) -> None:
        self.out = out
        self.size = size
        self.rng = random.Random(seed)
        self.words = Words(self.rng)
        self.profile = profile
        self.ledger = Ledger(profile)
        self.summary = Summary()
        self.counts: Counter[str] = Counter()
        self.sessions: list[Session] = []
        self.damage: Damage | None = None
        # A small home has the same things as a large one, but smaller: files with fewer lines,
        # fewer subagents, no file of more than a fifteenth of it, no text of more than a sixtieth.
        self.scale = min(1.0, max(0.2, (size / 100_000_000) ** 0.3)) if profile.is_scaled else 1.0
        self.largest_file = min(5_000_000, max(60_000, size // 15))
        self.most_agents = max(2, size // 500_000)
        self.bare = False  # transcripts only
        self.longest = max(4_000, size // 60)
        self._folders: set[Path] = set()

    def chance(self, share: float) -> bool:
        """True in *share* of the cases."""
        return self.rng.random() < share

    def length(self, curve: shapes.Curve) -> int:
        """A length drawn from *curve*, held down in small homes."""
        return min(curve.draw(self.rng, self.profile.scales.get(curve, 1.0)), self.longest)

    def uuid(self) -> str:
        """A random uuid, version 4."""
        bits = f"{self.rng.getrandbits(128):032x}"
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"

    def token(self, prefix: str, count: int = 22) -> str:
        """An opaque id as the API gives them: ``toolu_01...``, ``msg_01...``, ``req_011...``."""
        return prefix + "".join(self.rng.choices(_ALPHABET, k=count))

    def write(self, path: str, data: bytes, when: float, append: bool = False) -> None:
        """Write one file below the home, with *when* as its modification time."""
        target = self.out / path
        if target.parent not in self._folders:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._folders.add(target.parent)
        replaced = 0 if append or not target.exists() else target.stat().st_size
        self.summary.files += not target.exists()
        self.summary.bytes += len(data) - replaced
        with target.open("ab" if append else "wb") as file:
            file.write(data)
        os.utime(target, (int(when), int(when)))

    def write_json(self, path: str, document: object, when: float, indent: bool = False) -> None:
        """Write one JSON document."""
        option = orjson.OPT_INDENT_2 if indent else 0
        self.write(path, orjson.dumps(document, option=option), when)

    def needle(self) -> str:
        """Now and then a word or phrase to search for, else nothing."""
        written = self.summary.bytes
        if written >= 20_000_000 * len(self.summary.needles):
            word = NEEDLE.format(len(self.summary.needles) + 1)
            self.summary.needles.append(word)
            return f" {word}"
        if written >= 4_000_000 * self.summary.phrases:
            self.summary.phrases += 1
            return f" {PHRASE}"
        return ""
