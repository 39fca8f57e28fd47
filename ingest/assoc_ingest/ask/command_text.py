"""Commands in the form in which they are compared: the same check, run again another way."""

from __future__ import annotations

import re
from itertools import takewhile

_LONGEST = 2_000

_separator = re.compile(r"&&|\|\||;|\n").split
_SETTING = re.compile(r"[A-Za-z_]\w{0,100}=").match
_MOVES = frozenset({"cd", "export", "source", ".", "set", "sleep", "time"})
_READERS = frozenset({
    "cat", "grep", "rg", "ag", "sed", "awk", "head", "tail", "less", "more", "find", "ls", "tree",
    "echo", "printf", "wc", "diff", "jq", "stat", "file", "which", "pwd", "env",
})  # fmt: skip
_READING = frozenset({"status", "log", "diff", "show", "blame", "grep", "branch"})


def steps_of(command: str) -> list[list[str]]:
    """Return the programs that a command runs, each as its words, without what it is piped into."""
    steps = []
    for part in _separator(command[:_LONGEST]):
        words = part.split("|")[0].replace("2>&1", " ").split()
        while words and _SETTING(words[0]) is not None:
            words.pop(0)
        if words and words[0] not in _MOVES:
            steps.append(words)
    return steps


def only_reads(command: str) -> bool:
    """Does a command only show something?"""
    return all(
        words[0] in _READERS or (words[0] == "git" and len(words) > 1 and words[1] in _READING)
        for words in steps_of(command)
    )


def is_same(one: str, other: str) -> bool:
    """Do two commands run the same check: the same program, on the same or on more?"""
    first, second = steps_of(one), steps_of(other)
    if first == second:
        return bool(first)
    checks = [_program(words) for words in first if words[0] not in _READERS]
    others = [_program(words) for words in second]
    return bool(checks) and all(any(_fits(check, other) for other in others) for check in checks)


def in_short(command: str) -> str:
    """Return the programs of a command with what they are told to do."""
    return " && ".join(" ".join(_program(words)) for words in steps_of(command))


def _fits(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Is this one program, told the same as far as both are told something?"""
    return all(first == second for first, second in zip(one, other, strict=False))


def _program(words: list[str]) -> tuple[str, ...]:
    """Return a program with its subcommand: `npm run test`, `cargo build`, `pytest`."""
    most = 3 if words[1:2] == ["run"] else 2
    return (words[0], *takewhile(_is_plain, words[1:most]))


def _is_plain(word: str) -> bool:
    return word.isalpha() and word.islower()
