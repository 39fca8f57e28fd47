"""Errors in the form in which they are compared: numbers, paths, hashes and quotes do not count.

File "/srv/a.py", line 3: KeyError: 'x' at 0x7f3a   →   file line keyerror x at
"""

from __future__ import annotations

import re

_LONGEST = 2_000  # letters of a line that are compared
_MOST_LINES = 5_000
_MOST_WORDS = 40

_EXIT = ["exit", "code"]  # a line that says nothing of what went wrong

_telling = re.compile(
    r"error|exception|fail|fatal|panic|cannot|can't|could not|unable|denied|refused|undefined"
    r"|not found|no such|invalid|unexpected|missing|timed? ?out|abort",
    re.IGNORECASE,
).search
_word = re.compile(r"[^\W\d_]+").findall
_quoted = re.compile(r"'[^'\n]{0,300}'|\"[^\"\n]{0,300}\"|`[^`\n]{0,300}`")
_colour = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_hexadecimal = frozenset("0123456789abcdefABCDEF")


def words_of(line: str, *, without_quoted: bool = False) -> list[str]:
    """Return the words of a line of an error that say which error it is."""
    text = _colour.sub("", line[:_LONGEST])
    if without_quoted:
        text = _quoted.sub(" ", text)
    words = []
    for part in text.split():
        bare = part.strip("'\"`()[]{}<>,;:.!?*")
        if "/" in bare.strip("/") or "\\" in bare or _is_number(bare):
            continue
        words += [word.casefold() for word in _word(part) if not _is_hash(word)]
    return words


def telling_line(text: str) -> str:
    """Return the line of an error that says what is wrong: of a traceback, the last one."""
    lines = [line for line in text.split("\n")[-_MOST_LINES:] if line.strip()]
    told = [line for line in lines if _telling(line[:_LONGEST]) and words_of(line)]
    if any(line.lstrip().startswith("Traceback ") for line in lines):
        told = [line for line in lines if not line[:1].isspace() and words_of(line)][-1:] or told
    others = [line for line in lines if words_of(line)]
    chosen = told or [line for line in others if words_of(line) != _EXIT] or others
    return chosen[0].strip() if chosen else ""


def line_with(text: str, words: list[str], *, without_quoted: bool = False) -> str | None:
    """Return the first line of a text that has these words one behind the other, None if none."""
    wanted = f" {' '.join(words[:_MOST_WORDS])} "
    for line in text.split("\n")[:_MOST_LINES]:
        found = words_of(line, without_quoted=without_quoted)
        if wanted in f" {' '.join(found)} ":
            return line.strip()
    return None


def _is_number(part: str) -> bool:
    if part[:1].isdigit():  # with its unit
        return True
    return any(letter.isdigit() for letter in part) and not any(
        letter.isalpha() and letter not in _hexadecimal and letter not in "xX" for letter in part
    )


def _is_hash(word: str) -> bool:
    return len(word) >= 12 and all(letter in _hexadecimal for letter in word)
