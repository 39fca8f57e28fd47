"""Stored text cannot act on a terminal, and what is printed keeps to its columns."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assoc_ingest import terminal
from assoc_ingest.terminal import (
    Paint,
    columns,
    cut,
    harmless,
    one_line,
    pad,
    readable,
    safe,
    safe_json,
    table,
    to_copy,
    wrap,
)

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)

HOSTILE = {
    "a colour": ("\x1b[31mred", r"\x1b[31mred"),
    "a window title": ("\x1b]0;owned\x07", r"\x1b]0;owned\x07"),
    "a link": ("\x1b]8;;http://x\x1b\\y", "\\x1b]8;;http://x\\x1b\\y"),
    "the clipboard": ("\x1b]52;c;aGk=\x07", r"\x1b]52;c;aGk=\x07"),
    "a device control string": ("\x1bPq\x1b\\", "\\x1bPq\\x1b\\"),
    "an eight-bit control": ("\x9b31m\x85\x90", r"\x9b31m\x85\x90"),
    "a carriage return": ("good\rbad", r"good\x0dbad"),
    "delete and backspace": ("a\x7f\x08", r"a\x7f\x08"),
    "an override of direction": ("abc\u202edef\u202c", r"abc\u202edef\u202c"),
    "isolates and marks": ("\u2066\u2069\u200e\u200f\u061c", r"\u2066\u2069\u200e\u200f\u061c"),
    "what has no width": ("a\u200bb\ufeff\u2060", r"a\u200bb\ufeff\u2060"),
    "a line separator": ("a\u2028b\u2029", r"a\u2028b\u2029"),
    "tags": ("\U000e0041\U000e007f", r"\U000e0041\U000e007f"),
    "half a letter": ("\ud83d!", r"\ud83d!"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_could_act_on_a_terminal_becomes_visible(name: str) -> None:
    text, shown = HOSTILE[name]
    assert safe(text) == shown


@pytest.mark.parametrize("name", HOSTILE)
def test_a_colour_of_ours_acts_and_one_that_is_in_the_text_does_not(name: str) -> None:
    text, shown = HOSTILE[name]
    assert harmless(Paint(True)(f"a {text}", "red") + text) == f"\x1b[31ma {shown}\x1b[0m{shown}"
    assert harmless(Paint(False)(text, "red")) == shown
    assert harmless(safe(text)) == shown


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), min_size=1))
def test_a_command_to_copy_is_the_words_that_it_is_made_of(words: list[str]) -> None:
    line = to_copy(*words)
    assert harmless(line) == line
    assert not set(line) & set("\n\t")
    shown = [safe(word).replace("\n", r"\x0a").replace("\t", r"\x09") for word in words]
    assert shlex.split(line) == shown


def test_a_name_is_no_option() -> None:
    assert to_copy("show", name="-k;x:1") == "show -- '-k;x:1'"
    assert to_copy("show", name="0b7c:1") == "show 0b7c:1"


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_on_windows_nothing_ends_the_quotes_or_acts_within_them(word: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terminal, "_IS_WINDOWS", True)
        line = to_copy("show", word)
    assert re.fullmatch(r'show ([A-Za-z0-9_.:/\\-]+|"[^"%!$`“”„‟\n\t]*")', line)


def test_ordinary_text_stays_as_it_is() -> None:
    text = "line\n\tindented, naïve 日本語 👩\u200d💻 می\u200cخواهم\n"
    assert safe(text) is text


@given(any_text)
def test_no_text_gets_a_control_character_through(text: str) -> None:
    shown = safe(text)
    assert not any(
        unicodedata.category(letter) in ("Cc", "Cs") for letter in shown if letter not in "\n\t"
    )
    assert "\u202e" not in shown
    shown.encode()


@given(any_text)
def test_json_is_harmless_and_gives_the_text_back(text: str) -> None:
    printed = safe_json({"text": text})
    assert json.loads(printed) == {"text": text}
    assert safe(printed) == printed
    printed.encode()


def test_colours_of_a_tool_are_dropped_and_other_sequences_shown() -> None:
    assert readable("\x1b[1;32mok\x1b[0m\r\n\tx\x1b[2J") == "ok\n    x\\x1b[2J"


def test_one_line_has_no_line_break() -> None:
    assert one_line("a\n\n b\tc \x1b") == "a b c \\x1b"


def test_width_is_counted_in_columns() -> None:
    assert columns("abc") == 3
    assert columns("日本") == 4
    assert columns("e\u0301") == 1


def test_a_cut_is_marked_and_never_too_wide() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"
    assert cut("日本語日本語", 6) == "日本…"
    assert pad("日本", 6) == "日本  "
    assert pad("12", 4, right=True) == "  12"


@given(any_text, st.integers(10, 60))
def test_no_line_is_wider_than_asked(text: str, width: int) -> None:
    assert all(columns(line) <= width for line in wrap(readable(text), width))


@given(st.text(st.sampled_from("ab 日\n"), max_size=100), st.integers(10, 30))
def test_wrapping_loses_nothing_but_spaces(text: str, width: int) -> None:
    assert "".join("".join(wrap(text, width)).split()) == "".join(text.split())


def test_wrapping_keeps_lines_and_indentation() -> None:
    text = "def f():\n    return 'a rather long text in a line of code'\n\nend"
    assert list(wrap(text, 30)) == [
        "def f():",
        "    return 'a rather long text",
        "    in a line of code'",
        "",
        "end",
    ]


def test_a_table_aligns_wide_letters_and_numbers() -> None:
    rows = [["日本語", 1, None], ["ab", 12345, "x\ny"]]
    assert list(table(["name", "count", "note"], rows)) == [
        "name     count  note",
        "------  ------  ----",
        "日本語       1",
        "ab      12,345  x y",
    ]


def test_a_table_gives_way_where_there_is_most_text() -> None:
    rows = [["2026-01-20 10:00", "a long title " * 9, "/srv/shop/projects/transcript.jsonl"]]
    lines = list(table(["when", "title", "path"], rows, 70))
    assert max(map(columns, lines)) == 70
    assert lines[2].startswith("2026-01-20 10:00  a long title a long")
    assert lines[2].endswith("  …rojects/transcript.jsonl")


def test_a_table_without_rows_is_its_header() -> None:
    assert list(table(["name", "count"], [])) == ["name  count", "----  -----"]
