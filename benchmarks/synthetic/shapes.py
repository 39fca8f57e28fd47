"""The measured shape of real Claude Code homes, as numbers.

Everything here was counted in published transcripts of the versions 1.0.0 to 2.1.232 (June 2025
to August 2026): which line kinds an era writes and how often, how long texts are, how many lines
a file has, how often a thing goes wrong.  The other modules draw from these tables and hold no
number of their own that was measured.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

Version = tuple[int, int, int]


@dataclass(frozen=True)
class Curve:
    """A skewed distribution given by its quantiles, drawn log-linearly between them."""

    low: float
    p50: float
    p90: float
    p99: float
    top: float

    def draw(self, rng: random.Random, scale: float = 1.0) -> int:
        """One value; *scale* shrinks the whole curve."""
        share = rng.random()
        if share < 0.5:
            return _between(self.low, self.p50, share / 0.5, scale)
        if share < 0.9:
            return _between(self.p50, self.p90, (share - 0.5) / 0.4, scale)
        if share < 0.99:
            return _between(self.p90, self.p99, (share - 0.9) / 0.09, scale)
        return _between(self.p99, self.top, (share - 0.99) / 0.01, scale)


def _between(start: float, stop: float, share: float, scale: float) -> int:
    return int(start * (stop / start) ** share * scale)


# Characters of a text, by what it is.
PROMPT = Curve(8, 126, 714, 6_721, 20_000)
AGENT_PROMPT = Curve(120, 900, 3_000, 9_000, 20_000)
ANSWER = Curve(20, 83, 798, 12_063, 20_000)
FINAL_ANSWER = Curve(60, 500, 2_400, 12_063, 20_000)
THINKING = Curve(20, 93, 839, 4_473, 15_000)
SIGNATURE = Curve(200, 472, 2_692, 13_032, 30_000)
COMMAND = Curve(12, 90, 560, 4_500, 12_000)
BASH_OUTPUT = Curve(6, 500, 5_600, 28_000, 30_000)
READ_OUTPUT = Curve(80, 2_000, 10_500, 40_000, 120_000)
EDITED_TEXT = Curve(20, 230, 1_500, 7_000, 20_000)
EDITED_FILE = Curve(300, 3_800, 17_000, 50_000, 160_000)
WRITTEN_FILE = Curve(60, 2_400, 12_000, 40_000, 100_000)
SEARCH_OUTPUT = Curve(15, 480, 4_500, 20_000, 40_000)
WEB_OUTPUT = Curve(100, 1_600, 6_500, 20_000, 60_000)
IMAGE = Curve(8_000, 87_000, 424_000, 1_500_000, 1_600_000)
HOOK_OUTPUT = Curve(10, 420, 3_500, 10_500, 30_000)
ASYNC_HOOK_OUTPUT = Curve(100, 900, 9_000, 60_000, 80_000)
SKILL_LISTING = Curve(2_000, 6_000, 20_000, 38_000, 45_000)
CONTEXT_FILE = Curve(200, 1_600, 9_000, 30_000, 60_000)
BASH_TICK = Curve(1, 60, 2_000, 8_000, 12_000)
QUEUED_COMMAND = Curve(10, 160, 2_500, 25_000, 31_000)
COMPACT_SUMMARY = Curve(3_000, 9_000, 18_000, 25_000, 30_000)
TOOL_RESULT_FILE = Curve(200, 2_200, 92_000, 900_000, 4_200_000)
PLAN = Curve(900, 7_500, 20_000, 50_000, 80_000)
PASTE = Curve(40, 3_600, 30_000, 300_000, 2_600_000)

# Lines of a file, sessions of a project, subagents of a session.
MAIN_LINES = Curve(4, 63, 641, 2_077, 3_000)
AGENT_LINES = Curve(3, 18, 109, 375, 4_120)
PROJECT_SESSIONS = Curve(1, 2, 19, 135, 299)
SESSION_AGENTS = Curve(1, 3, 11, 40, 105)
HUGE_BYTES = (5_000_000, 36_000_000)
HUGE_SHARE = 0.13  # of the bytes of a home lie in files of HUGE_BYTES

# Shares; per file unless said.
NO_FINAL_LF = 0.04
METADATA_ONLY = 0.05
SECOND_CWD = 0.036
SEVERAL_ROOTS = 0.07
SESSIONS_WITH_AGENTS = 0.45
AGENTS_BY_AGENTS = 0.10
WARMUP = 0.92  # of the agent files of 2.0.x
TOOL_RESULT_DROPPED = 0.86  # of the results in agent files before 2.1.200 lack toolUseResult
COPIES = 0.04  # of all chain lines are copies in a fork or a side agent
DIRECTORY_WITHOUT_TRANSCRIPT = 0.50
OUT_OF_ORDER = 0.05  # per line
PARENT_LATER = 0.001  # per line
PARENT_MISSING = 0.001  # per line
UUID_REPEATED = 1 / 5_000  # per line
NUL_ESCAPE = 1 / 860  # per line
CALLS_AT_ONCE = ((1, 86), (2, 9), (3, 2.5), (6, 1.6), (12, 0.7), (40, 0.05))  # and their weights
GROWING_OUTPUT = 0.29  # of responses with several lines
NO_REQUEST_ID = 0.31  # per response
TODOS_EMPTY = 0.98
PASTE_DANGLING = 0.18
HISTORY_REPEATED = 0.04
CJK = 0.02  # of prose texts hold a Chinese, Japanese or Korean sentence

# Damage, per line; tried only with faults.
FRAGMENT = 1 / 40_000
GLUED = 1 / 80_000
CUT = 1 / 80_000
NUL_RUN = 1 / 80_000
LONE_SURROGATE = 1 / 700_000
BIG_INTEGER = 1 / 700_000
NO_OBJECT = 1 / 40_000
ODD_OBJECT = 1 / 20_000
BLANK = 1 / 20_000
UNREADABLE_NUMBER = 1 / 700_000
TOO_DEEP = 1 / 700_000
INVALID_UTF8 = 1 / 700_000
# Damage, per file.
CRLF_FILE = 1 / 1_500
BYTE_ORDER_MARK = 1 / 5_000
TORN_TAIL = 1 / 200
EMPTY_FILE = 1 / 300
FOREIGN_FILE = 1 / 2_500


# Percent of an era's lines by kind; what is missing to 100 are assistant lines.
_LINES = """
kind             1.0.x  2.0.x  2.1.0-81  2.1.82-199  2.1.200+
user              40     36     24        27          21
bash_progress      0      0     20         0           0
hook_progress      0      0      9         0           0
agent_progress     0      0      5         0           0
attachment         0      0      0        12          16
system           4.3    1.2    1.9       2.9         2.4
snapshot           0    3.6    2.5       3.7         1.6
queue              0    2.2    4.3       0.9         2.5
last-prompt        0      0      0       3.9         4.4
permission-mode    0      0      0       3.2         2.7
ai-title           0      0      0       2.5         1.7
mode               0      0      0       0.2         3.5
custom-title       0      0      0       0.4         2.6
agent-name         0      0      0       0.4         1.3
bridge-session     0      0      0         0         2.1
summary          1.4    0.3    0.1         0           0
"""

# Percent of an era's tool calls by tool; calls of subagents come on top.
_TOOLS = """
tool             1.0.x  2.0.x  2.1.0-81  2.1.82-199  2.1.200+
Bash              32     34     37        29          56
Read              18     20     27        30          13
Edit              17     15     12        15          14
Write              5      5      4         4           4
MultiEdit          3      0      0         0           0
Grep               8      8      6         5           2
Glob               4      4    2.5         2         0.5
TodoWrite          9      8      1         0           0
TaskCreate         0      0    1.5         2         1.5
TaskUpdate         0      0      2         4           3
WebFetch         1.5    1.5      1         1           1
WebSearch        0.5    0.5    0.5       0.5         0.5
AskUserQuestion    0      0    0.5       0.5         0.5
Skill              0    0.3    0.5       0.7         0.7
ToolSearch         0      0      0         1           1
mcp__atlas__lookup 0    0.7      1         1         0.8
"""


def _columns(table: str) -> dict[str, dict[str, float]]:
    """The columns of a table above, by era, without the zeros."""
    header, *rows = (line.split() for line in table.strip().splitlines())
    return {
        era: {row[0]: float(row[place]) for row in rows if float(row[place])}
        for place, era in enumerate(header[1:], start=1)
    }


LINES = _columns(_LINES)
TOOLS = _columns(_TOOLS)


@dataclass(frozen=True)
class Era:
    """A span of versions that write alike."""

    name: str
    days: tuple[int, int]  # first and last day of its transcripts, counted from 1970
    weight: float  # share of a home's bytes
    text_per_call: float  # assistant text blocks for each tool call
    thinking_per_call: float
    versions: tuple[str, ...]  # hand-ordered: the first few stand for the whole in a small home


def _versions(stem: str, patches: str) -> tuple[str, ...]:
    return tuple(f"{stem}.{patch}" for patch in patches.split())


ERAS = (
    Era("1.0.x", (20_240, 20_360), 0.08, 0.68, 0.03, _versions("1.0", "108 58 3 98 31 72 120")),
    Era(
        "2.0.x",
        (20_360, 20_460),
        0.17,
        0.62,
        0.45,
        _versions("2.0", "62 37 76 10 55 28 42 64 22 74 50 31"),
    ),
    Era(
        "2.1.0-81",
        (20_460, 20_535),
        0.35,
        0.50,
        0.32,
        _versions("2.1", "34 50 12 2 72 25 63 81 9 42 76 14 59"),
    ),
    Era(
        "2.1.82-199",
        (20_535, 20_630),
        0.22,
        0.42,
        0.42,
        _versions("2.1", "140 114 177 92 126 152 84 165 181 112 119"),
    ),
    Era(
        "2.1.200+",
        (20_630, 20_680),
        0.18,
        0.37,
        0.63,
        _versions("2.1", "219 217 228 205 220 232 207 223 215 209"),
    ),
)


@dataclass(frozen=True)
class Profile:
    """What homes differ in."""

    eras: dict[str, float]  # share of the bytes
    main_lines: Curve
    agent_lines: Curve
    sessions_with_agents: float
    session_agents: Curve
    huge_share: float
    metadata_only: float = METADATA_ONLY  # of the files
    is_scaled: bool = True  # a small home has the same things, but smaller
    lines: dict[str, dict[str, float]] = field(default_factory=lambda: LINES)
    scales: dict[Curve, float] = field(default_factory=dict)  # of the usual length of a text


# `usual` is what all published transcripts together have. `real` is the home of one person who
# worked with long conversations for some months: 371 MB in 288 files of 99 KB, 0.3, 0.9, 2.0, 3.4
# and 4.1 MB at 10, 25, 50, 75, 90 and 99 %. Of its bytes, 59 % are results (19,436 lines of 11,279
# bytes, three quarters of which are `toolUseResult`, with the file as it was before each edit),
# 21 % progress (31,124 of 2,477), 18 % lines of assistants (40,867 of 1,627) and 1 % of users.
_LINES_OF_REAL = {
    "user": 21.0,
    "bash_progress": 26.0,
    "hook_progress": 6.0,
    "agent_progress": 5.5,
    "system": 1.0,
    "snapshot": 1.0,
    "queue": 0.5,
}
PROFILES = {
    "usual": Profile(
        {era.name: era.weight for era in ERAS},
        MAIN_LINES,
        AGENT_LINES,
        SESSIONS_WITH_AGENTS,
        SESSION_AGENTS,
        HUGE_SHARE,
    ),
    "real": Profile(
        {"1.0.x": 0.01, "2.0.x": 0.01, "2.1.0-81": 0.96, "2.1.82-199": 0.01, "2.1.200+": 0.01},
        Curve(40, 310, 850, 980, 1_000),
        Curve(40, 300, 700, 900, 1_000),
        0.02,
        Curve(1, 2, 4, 5, 6),
        0.0,
        metadata_only=0.02,
        is_scaled=False,
        lines={**LINES, "2.1.0-81": _LINES_OF_REAL},
        scales={
            EDITED_FILE: 5.5,
            BASH_OUTPUT: 0.8,
            BASH_TICK: 8.0,
            IMAGE: 0.1,
            CONTEXT_FILE: 0.3,
            ANSWER: 0.8,
            SIGNATURE: 0.6,
        },
    ),
}


# The first version that writes a kind of state line.
STATE_SINCE: dict[str, Version] = {
    "last-prompt": (2, 1, 71),
    "custom-title": (2, 1, 81),
    "agent-name": (2, 1, 81),
    "permission-mode": (2, 1, 96),
    "ai-title": (2, 1, 112),
    "mode": (2, 1, 152),
    "bridge-session": (2, 1, 217),
}


def parse_version(text: str) -> Version:
    """``"2.1.34"`` as numbers that compare."""
    major, minor, patch = (int(part) for part in text.split("."))
    return major, minor, patch


def stop_reason_missing(version: Version) -> float:
    """The share of responses of which no line ever got the final ``stop_reason``."""
    if version < (2, 0, 0):
        return 0.85
    if version < (2, 1, 0):
        return 0.73
    return 0.97 if version < (2, 1, 60) else 0.02
