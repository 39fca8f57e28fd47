"""Cases of memory, answers to them, and what answers are worth.

A file of cases is JSON Lines. A file of answers is the same file with what was found added to each
line, so that it can be scored without anything else:

    {"kind": "commit", "query": "1a2b3c4...", "right": ["0790ea37-..."]}
    {"kind": "commit", "query": "1a2b3c4...", "right": ["0790ea37-..."], "found": ["0790ea37-..."]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean

from benchmarks import report

SEARCHES = ("question", "subject")
BLAMES = ("commit", "line", "file", "pull request")
KINDS = (*SEARCHES, "nothing", *BLAMES, "error")


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its true answer."""

    kind: str
    query: str
    right: tuple[str, ...] = ()
    """Ids of the conversations that answer it; none if none does."""
    home: str = ""
    """Where its conversations are; not given in a set that is a home itself."""
    line: int | None = None
    """Of a file: the line that is asked for."""
    ended: str = ""
    """What ended an error, as an answer has to name it: a file, a command; empty if nothing."""
    found: tuple[str, ...] | None = None
    """Ids of conversations, best first, that a program answers; None if it was not asked."""
    claims: int | None = None
    """How many of them it says made this, if it names others besides; else it is all of them."""
    evidence: str = ""
    """How sure it is that it found something: strong, weak or none; empty if it does not say."""
    fix: str = ""
    """What it says ended an error; empty if it knows no end."""

    @property
    def rank(self) -> int | None:
        """The place of the first right conversation, from 1."""
        places = (n for n, key in enumerate(self.found or (), 1) if key in self.right)
        return next(places, None)

    @property
    def claimed(self) -> tuple[str, ...]:
        return (self.found or ())[: self.claims]

    @property
    def is_first_right(self) -> bool:
        """Is the first answer right? Where none is, nothing may be claimed."""
        return self.rank == 1 if self.right else not self.claimed

    @property
    def is_anywhere(self) -> bool:
        return self.rank is not None if self.right else not self.claimed

    @property
    def is_fixed(self) -> bool:
        """Is what ended an error named first, or that nothing did?"""
        is_named = self.ended.casefold() in self.fix.casefold() if self.ended else not self.fix
        return self.rank == 1 and is_named

    def recall(self, first: int) -> float:
        """Return the share of the right conversations among the `first`, as far as they fit."""
        right = set((self.found or ())[:first]) & set(self.right)
        return len(right) / min(first, len(self.right))


def read(path: Path) -> list[Case]:
    """Return the cases of a file, or the answers. Raises TypeError for a field that none has."""
    return [_case(json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def _case(line: dict[str, object]) -> Case:
    lists = {name: tuple(value) for name, value in line.items() if isinstance(value, list)}
    return Case(**{**line, **lists})  # type: ignore[arg-type]


def write(path: Path, cases: Iterable[Case]) -> None:
    """Write cases or answers, without the fields that say nothing."""
    lines = (
        {name: value for name, value in asdict(case).items() if value not in (None, "")}
        for case in cases
    )
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")


def tables(name: str, answers: Sequence[Case]) -> list[str]:
    """Return what answers to some cases are worth, as Markdown; a kind without cases has no row."""
    of = {kind: [one for one in answers if one.kind == kind] for kind in KINDS}
    made = [
        report.table(
            f"Finding the conversation: {name}",
            ["", "cases", "recall@1", "recall@5", "MRR"],
            [[kind, *_searched(of[kind])] for kind in SEARCHES if of[kind]],
        ),
        report.table(
            f"Saying that there is nothing: {name}",
            ["", "cases", "weak or none", "not said"],
            [
                [name, *_certainty(of[kind])]
                for kind, name in (("nothing", "nothing answers it"), ("question", "answerable"))
                if of[kind]
            ],
        ),
        report.table(
            f"Which conversation made this: {name}",
            ["", "cases", "first right", "anywhere", "precision", "recall"],
            [[kind, *_blamed(of[kind])] for kind in BLAMES if of[kind]],
        ),
        report.table(
            f"What ended an error: {name}",
            ["", "cases", "right"],
            [[kind, *_fixed(of[kind])] for kind in ("error",) if of[kind]],
        ),
    ]
    return [one for one in made if one.count("\n| ") > 1]


def _searched(answers: Sequence[Case]) -> list[str]:
    ranks = [1 / one.rank if one.rank else 0.0 for one in answers]
    shares = (mean(one.recall(first) for one in answers) for first in (1, 5))
    return [str(len(answers)), *map(_share, shares), _share(mean(ranks))]


def _certainty(answers: Sequence[Case]) -> list[str]:
    said = [one.evidence for one in answers if one.evidence]
    unsure = _share(mean(one != "strong" for one in said)) if said else ""
    return [str(len(answers)), unsure, str(len(answers) - len(said))]


def _blamed(answers: Sequence[Case]) -> list[str]:
    right = sum(len(set(one.claimed) & set(one.right)) for one in answers)
    claimed = sum(len(one.claimed) for one in answers)
    true = sum(len(one.right) for one in answers)
    return [
        str(len(answers)),
        _share(mean(one.is_first_right for one in answers)),
        _share(mean(one.is_anywhere for one in answers)),
        _share(right / claimed) if claimed else "",
        _share(right / true) if true else "",
    ]


def _fixed(answers: Sequence[Case]) -> list[str]:
    return [str(len(answers)), _share(mean(one.is_fixed for one in answers))]


def _share(value: float) -> str:
    return f"{value:.2f}"


def wrong(answers: Iterable[Case]) -> Iterator[Case]:
    """Yield wrong answers, but for those of searches: `make bench-search` lists what it may."""
    for one in answers:
        if one.kind == "nothing":
            is_right = one.evidence != "strong"
        elif one.kind == "error":
            is_right = one.is_fixed
        else:
            is_right = one.kind in SEARCHES or one.is_first_right
        if not is_right:
            yield one
