"""`fix`: where an error occurred, and what was done that ended it.

1. The telling line of the error is found: of the lines that state an error the one that the fewest
   stored outputs have, of a traceback the last one, and never one that only says that something
   failed (`ERROR task failed`, `make: *** [x] Error 1`).
2. The full-text index finds results with all its words; those count that have them in one line.
3. An error has ended where the same check (see `shell`), or the same tool on the same target, later
   succeeds without it in the same conversation. An error that came several times until then is one.
   What only suggests an end is a guess, and says why: another command did it, the output was cut.
4. What was done in between, edits and commands, is what ended it. Errors with the same ending are
   one item: the most frequent first, the newest first among those.
"""

from __future__ import annotations

import json
import posixpath
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from .. import sql, terminal
from ..errors import UsageError
from ..paths import slashed
from ..records import EDIT, OTHER, READ, RUN, SPAWN
from . import query, shell
from .query import TOOLS, Term, in_scope
from .refs import texts_of
from .shell import Likeness

MOST_RESULTS = 300
"""Results with the words whose texts are read."""

_MOST_WORDS = 20
_AFTER = 150  # calls behind an error that are looked at
_RETRIES = 3  # commands behind an error that may be another try of it
_NAMED = 3

EDITED, RAN, LOOKED, AGAIN, NEVER = "edited", "ran", "looked", "again", "never"
SEEN, GUESS = "seen", "guess"


@dataclass(slots=True)
class Fixes:
    """What was found of an error."""

    error: str
    """The line that was looked for."""
    errors: int = 0
    ended: int = 0
    guesses: int = 0
    """How many of those that ended are guesses."""
    conversations: int = 0
    is_exact: bool = True
    """False: only errors that quote something else were found."""
    notes: list[str] = field(default_factory=list)
    endings: list[tuple[str, str, list[FoundError]]] = field(default_factory=list)
    """The kind of each, what was done, and the errors that ended so."""

    def facts(self) -> dict[str, object]:
        """Return what was looked for, and how often it was found."""
        names = ("error", "errors", "ended", "guesses", "conversations", "is_exact")
        return {name: getattr(self, name) for name in names}


def fixes_of(
    connection: sqlite3.Connection,
    text: str,
    project: str | None = None,
    clean: Callable[[str], str] = str,
) -> Fixes:
    """Return what ended an error. `project` is a JSON array of ids; None for all.

    `clean` is applied to commands before they are cut: a part of a credential looks like none.

    Raises UsageError for a text that does not say what went wrong.
    """
    lines = telling_lines(text.replace("\0", " "))
    if not lines:
        raise UsageError(
            "This text does not say what went wrong. Give the line that does, such as "
            "\"ImportError: cannot import name 'Pool'\"."
        )
    error = _rarest(connection, lines, project)
    found = Fixes(error)
    rows: list[tuple[sqlite3.Row, str]] = []
    search = _Search(connection, clean)
    for without_quoted in (False, True):
        if words_of(error, without_quoted=without_quoted):
            rows, succeeded, is_cut = search.results_with(
                error, project, without_quoted=without_quoted
            )
            if is_cut:
                found.notes.append(f"Only the last {MOST_RESULTS} outputs were looked at.")
            if succeeded and not rows and not without_quoted:
                found.notes.append(
                    f"{terminal.many(succeeded, 'command')} printed this line and succeeded."
                )
        found.is_exact = not without_quoted
        if rows:
            break
    errors = search.errors_of(rows)
    found.errors, found.ended = len(errors), sum(one.end is not None for one in errors)
    found.guesses = sum(one.end is not None and bool(one.why) for one in errors)
    found.conversations = len({one.first["session_id"] for one in errors})
    found.endings = search.grouped(errors, error)
    return found


def ending_of(
    connection: sqlite3.Connection, call: sqlite3.Row, clean: Callable[[str], str]
) -> tuple[str, FoundError, sqlite3.Row] | None:
    """Return what was done that ended the error of one call, the error, and what showed the end.

    None if nothing shows it, or what went wrong. `call` is a row as `fix_errors` has them.
    """
    search = _Search(connection, clean)
    lines = telling_lines(search.output(call))
    if not lines:
        return None
    (error,) = search.errors_of([(call, lines[0])])
    return None if error.end is None else (search.ending(error)[1], error, error.end)


# -- the line of an error --------------------------------------------------------------------------

_LONGEST = 2_000  # letters of a line that are compared
_MOST_LINES = 5_000
_MOST_COMPARED_WORDS = 40
_CANDIDATES = 8  # lines whose outputs are counted
_COUNTED = 50

_telling = re.compile(
    r"error|exception|fail|fatal|panic|cannot|can't|could not|unable|denied|refused|undefined"
    r"|not found|no such|invalid|unexpected|missing|timed? ?out|abort|reject",
    re.IGNORECASE,
).search
_stating = re.compile(
    r"\b(?:error|fatal|panic|exception)(?:\[\w{1,20}\]| [A-Z]{1,5}\d{1,5})?:"
    r"|\b(?-i:[A-Z]\w{0,80}(?:Error|Exception))\b|command not found|no such file or directory"
    r"|permission denied|cannot find |is not recogni[sz]ed|connection refused"
    r"|^(?:E   |FAILED |\s{0,8}[×✕✗✘] )"
    r"|\.\w{1,10}(?::\d{1,7}(?::\d{1,7})?[:\]]|\(\d{1,7},\d{1,7}\):)",  # file.c:1:2:
    re.IGNORECASE,
).search
_wrapping = re.compile(
    r"exit(?:ed)?(?: with)?(?: a)?(?: non-?zero)?(?: exit)? (?:code|status)|non-?zero exit"
    r"|(?:task|build|recipe|command|step|script|job|run|tests?|suites?) (?:`[^`]{0,100}` )?"
    r"(?:has |was )?(?:failed|aborted)"
    r"|[\[(](?:build|setup) failed[\])]|\bmake(?:\[\d{1,4}\])?: \*\*\*|elifecycle|lifecycle script"
    r"|^npm (?:err!|error) (?:code|path|command|errno|syscall|workspace|location|a complete|in )"
    r"|^sibling tool call errored|<tool_use_error>sibling|^\W*fail(?:ed|ure)?\W*$"
    r"|^\W*(?:found )?\d{1,7} (?:errors?|warnings?|problems?|failures?|issues?|failed|failing)\b"
    r"|^(?:tests?|test suites|test files|snapshots):? .{0,80}\b(?:failed|passed)"
    r"|^failure: build failed|what went wrong:|some errors were emitted|for more information"
    r"|^test result: failed|^\(.{0,40}no output\)|^script error:?$|^traceback \(most"
    r"|complete log of this run|^error: process |^exit code|^error command failed",
    re.IGNORECASE,
).search
_summing = re.compile(  # says what failed, and not why
    r"failed to push some refs|could not compile `|aborting due to|execution failed for task",
    re.IGNORECASE,
).search
_quoting = re.compile(  # code, frames, diffs, hints, commands, what passed
    r"^\s{0,200}(?:\d{1,7}(?:\s{0,9}[│|→]|[:-]\s)|[\w.]{1,80}\([\"'`]|[>│|^~]"
    r"|at \S.{0,300}[:(]\d|File \"|\$ |//|/?\*|```|-->"
    r"|(?:return|throw|raise|if|for|func|def|const|let|var|import|export|class)\s"
    r"|(?:hint|note|help|tip|usage|warn(?:ing)?|info|debug|trace)\b|ok\s|[✓✔])"
    r"|^(?:[+-]{1,3}\s|@@|diff )",
    re.IGNORECASE,
).match
_word = re.compile(r"[^\W\d_]+").findall
_quoted = re.compile(r"'[^'\n]{0,300}'|\"[^\"\n]{0,300}\"|`[^`\n]{0,300}`")
_dressing = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]|</?[a-z]{1,20}(?:_[a-z]{1,20}){1,4}>")
"""What is no part of a line's text: colours, and tags such as `<tool_use_error>`."""
_hexadecimal = frozenset("0123456789abcdefABCDEF")


def words_of(line: str, *, without_quoted: bool = False) -> list[str]:
    """Return the words of a line of an error that say which error it is.

    File "/srv/a.py", line 3: KeyError: 'x' at 0x7f3a   →   file line keyerror x at
    """
    text = _dressing.sub("", line[:_LONGEST])
    if without_quoted:
        text = _quoted.sub(" ", text)
    words = []
    for part in text.split():
        bare = part.strip("'\"`()[]{}<>,;:.!?*")
        if "/" in bare.strip("/") or "\\" in bare or _is_number(bare) or _is_place(bare):
            continue
        words += [word.casefold() for word in _word(part) if not _is_hash(word)]
    return words


def telling_lines(text: str) -> list[str]:
    """Return the lines of an output that may say what is wrong, the most likely kind only.

    Of a traceback that is the last line. There are none if the output only says that it failed.
    """
    lines = [_dressing.sub("", line[:_LONGEST]) for line in text.split("\n")[-_MOST_LINES:]]
    lines = [line for line in lines if line.strip()]
    if any(line.lstrip().startswith("Traceback (") for line in lines):
        last = [line for line in lines if not line[:1].isspace() and words_of(line)][-1:]
        if last and not is_wrapper(last[0]):
            return [last[0].strip()]
    stated, told, summed, others = [], [], [], []
    for line in lines:
        if not words_of(line) or is_wrapper(line):
            continue
        is_code = _quoting(line) is not None or line.rstrip().endswith(("{", "};"))
        if _summing(line):
            summed.append(line.strip())
        elif _stating(line) and not is_code:
            stated.append(line.strip())
        elif _telling(line) and not is_code:
            told.append(line.strip())
        elif not is_code or len(lines) == 1:
            others.append(line.strip())
    return stated or told or summed or others[:1]


def is_wrapper(line: str) -> bool:
    """Does a line only say that something failed, and not what?"""
    return _wrapping(line.strip()[:_LONGEST]) is not None


def _rarest(connection: sqlite3.Connection, lines: list[str], project: str | None) -> str:
    """Return the line that the fewest outputs have, of those that some output has."""
    distinct = list({tuple(words_of(line)): line for line in reversed(lines)}.values())[::-1]
    if len(distinct) > _CANDIDATES:
        distinct = distinct[: _CANDIDATES // 2] + distinct[-_CANDIDATES // 2 :]
    if len(distinct) < 2:
        return lines[0]
    counts = []
    for line in distinct:
        match = in_scope(TOOLS, _expression(line))
        (count,) = sql.ask(
            connection, "pages/fix_count", match=match, project=project, limit=_COUNTED
        ).fetchone()
        counts.append(count)
    stored = [count for count in counts if count]
    return distinct[counts.index(min(stored))] if stored else distinct[0]


def _expression(line: str, *, without_quoted: bool = False) -> str:
    """Return what finds the outputs with the words of a line.

    A word is left out that the index has with digits: `E` of `error[E0308]`.
    """
    tokens = query.TOKEN.findall(line[:_LONGEST].casefold())
    whole = {token for token in tokens if not any(map(str.isdigit, token))}
    words = list(dict.fromkeys(words_of(line, without_quoted=without_quoted)[:_MOST_WORDS]))
    asked = [word for word in words if word in whole] or words
    return " AND ".join(Term(word).expression() for word in asked)


def line_with(text: str, words: list[str], *, without_quoted: bool = False) -> str | None:
    """Return the first line of a text that has these words one behind the other, None if none."""
    wanted = f" {' '.join(words[:_MOST_COMPARED_WORDS])} "
    for line in text.split("\n")[:_MOST_LINES]:
        found = words_of(line, without_quoted=without_quoted)
        if wanted in f" {' '.join(found)} ":
            return _dressing.sub("", line).strip()
    return None


def _is_number(part: str) -> bool:
    if part[:1].isdigit():  # with its unit
        return True
    return any(letter.isdigit() for letter in part) and not any(
        letter.isalpha() and letter not in _hexadecimal and letter not in "xX" for letter in part
    )


def _is_place(part: str) -> bool:
    """Is this a line of a file: `pool.go:43:12`, `pool.ts(43,12)`?"""
    name, mark, rest = part.replace("(", ":").partition(":")
    return bool(mark and rest) and "." in name and all(letter in "0123456789:,)" for letter in rest)


def _is_hash(word: str) -> bool:
    return len(word) >= 12 and all(letter in _hexadecimal for letter in word)


# -- errors and what ended them --------------------------------------------------------------------


@dataclass(slots=True)
class FoundError:
    """An error that came one or several times, and the call that ended it."""

    rows: list[sqlite3.Row]
    line: str
    between: list[sqlite3.Row]
    end: sqlite3.Row | None
    changes: list[sqlite3.Row] = field(default_factory=list)
    """The calls in between that changed something."""
    causes: list[sqlite3.Row] = field(default_factory=list)
    """Those of them that may have ended it."""
    why: list[str] = field(default_factory=list)
    """Why it is a guess that it ended, or so."""

    @property
    def first(self) -> sqlite3.Row:
        """The call that gave it first."""
        return self.rows[0]


class _Search:
    """Looks for an error and its ends; keeps what it has read of commands."""

    def __init__(self, connection: sqlite3.Connection, clean: Callable[[str], str]) -> None:
        self._connection = connection
        self._clean = clean
        self._inputs: dict[int, str] = {}
        self._outputs: dict[int, str] = {}

    def results_with(
        self, error: str, project: str | None, *, without_quoted: bool
    ) -> tuple[list[tuple[sqlite3.Row, str]], int, bool]:
        """Return the calls whose result has the words of an error in one line, with that line.

        Also return how many commands printed it and succeeded, and whether there are more results
        than were looked at: those that were read last.
        """
        words = words_of(error, without_quoted=without_quoted)
        match = _expression(error, without_quoted=without_quoted)
        rows = sql.ask(
            self._connection, "pages/fix_errors", match=in_scope(TOOLS, match),
            actions=json.dumps([RUN, OTHER]), project=project, limit=MOST_RESULTS + 1,
        ).fetchall()  # fmt: skip
        is_cut = len(rows) > MOST_RESULTS
        texts = texts_of(self._connection, [row["result_id"] for row in rows[:MOST_RESULTS]])
        self._outputs = texts
        self._read(rows[:MOST_RESULTS])
        listed, succeeded = [], 0
        for row in rows[:MOST_RESULTS]:
            line = line_with(texts.get(row["result_id"], ""), words, without_quoted=without_quoted)
            if line is None:
                continue
            if row["status"] != "error" and row["action"] == RUN:
                command = self.command(row)
                is_error = _telling(line) or _stating(line)
                if (
                    not is_error
                    or shell.only_reads(command)
                    or not shell.parsed(command).is_forgiving
                ):
                    succeeded += 1
                    continue
            listed.append((row, line))
        return listed, succeeded, is_cut

    def errors_of(self, rows: Iterable[tuple[sqlite3.Row, str]]) -> list[FoundError]:
        """Return the errors of each file; what came again before it ended is one."""
        found: dict[tuple[int, object], FoundError] = {}
        for row, line in sorted(rows, key=lambda one: (one[0]["file_id"], one[0]["byte_offset"])):
            error = self._until_it_ended(row, line)
            end = error.end
            ending: object = end["id"] if end is not None else (row["subagent_id"], row["target"])
            known = found.get((row["file_id"], ending))
            if known is not None:
                known.rows.append(row)
            else:
                found[row["file_id"], ending] = error
        return list(found.values())

    def command(self, call: sqlite3.Row) -> str:
        """Return the whole text of a command."""
        return whole(call["target"] or "", self._inputs.get(call["call_id"], ""))

    def output(self, call: sqlite3.Row) -> str:
        return texts_of(self._connection, [call["result_id"]]).get(call["result_id"], "")

    def _in_short(self, call: sqlite3.Row) -> str:
        return shell.in_short(self._clean(self.command(call)))

    def _read(self, calls: Iterable[sqlite3.Row]) -> None:
        wanted = [call["call_id"] for call in calls if call["call_id"] not in self._inputs]
        self._inputs |= texts_of(self._connection, wanted)

    def _until_it_ended(self, row: sqlite3.Row, line: str) -> FoundError:
        """Return an error with what was done behind it, and the call that succeeded, if any did."""
        after = sql.ask(
            self._connection, "pages/fix_calls", file=row["file_id"],
            byte_offset=row["result_offset"], subagent=row["subagent_id"], limit=_AFTER,
        ).fetchall()  # fmt: skip
        self._read([call for call in after if call["action"] == RUN or call["tool"] == row["tool"]])
        words = words_of(line)
        guess: tuple[int, list[str]] | None = None
        tries = 0
        for at, call in enumerate(after):
            if call["status"] not in ("ok", "error"):
                continue
            is_try = row["action"] == RUN == call["action"] and tries < _RETRIES
            tries += call["action"] == RUN
            why = self._why(row, call, line, is_try=is_try)
            if why is None or (guess is not None and guess[1] and why):
                continue
            output = self.output(call)
            if line_with(output, words) is not None:
                continue
            why = why + self._doubts(row, call, output)
            if not why:
                return self._judged(FoundError([row], line, after[:at], call))
            if guess is None and (call["status"] == "ok" or _RAN_AGAIN in why):
                guess = (at, why)
        if guess is None:
            guess = self._checked_otherwise(row, line, after)
        if guess is not None:
            at, why = guess
            return self._judged(FoundError([row], line, after[:at], after[at], why=why))
        return FoundError([row], line, after, None)

    def _checked_otherwise(
        self, failed: sqlite3.Row, line: str, after: list[sqlite3.Row]
    ) -> tuple[int, list[str]] | None:
        """Return where another check succeeded after a file was edited that the error names."""
        is_edited = False
        for at, call in enumerate(after if failed["action"] == RUN else ()):
            if call["status"] != "ok":
                continue
            if call["action"] == EDIT:
                is_edited = is_edited or _is_named(_file(call), line)
            elif is_edited and call["action"] == RUN and shell.is_check(self.command(call)):
                output = self.output(call)
                doubts = self._doubts(failed, call, output)
                if line_with(output, words_of(line)) is None and _RAN_AGAIN not in doubts:
                    return at, ["another check succeeded", *doubts]
        return None

    def _judged(self, error: FoundError) -> FoundError:
        """Tell apart what may have ended an error from what else was changed before its end."""
        error.changes = self._changes(error)
        output = self._outputs.get(error.first["result_id"], "")
        edits = [call for call in error.changes if call["action"] == EDIT]
        named = "none of them"
        for text in (error.line, output):
            error.causes = [call for call in edits if _is_named(_file(call), text)]
            # A test that fails names itself, whatever it fails of.
            if any(_is_test(_file(call)) is None for call in error.causes):
                return error
            named = "only a test" if error.causes else named
        error.causes = edits or error.changes
        if len({(call["action"], call["target"]) for call in error.changes}) > 1:
            error.why.append(f"several files were changed, and the error names {named}")
        return error

    def _why(
        self, failed: sqlite3.Row, call: sqlite3.Row, line: str, *, is_try: bool
    ) -> list[str] | None:
        """Return why it is a guess that a call does what failed before; None if it does not."""
        if failed["action"] == RUN:
            is_run = call["action"] == RUN and failed["target"] is not None
            return self._why_run(failed, call, line, is_try=is_try) if is_run else None
        if call["status"] != "ok":
            return None
        path = failed["target"] or ""
        if failed["action"] == EDIT and call["action"] == RUN:
            command = self.command(call)
            is_edit = path and shell.names(command, path) and not shell.changes_nothing(command, "")
            return ["a command did it instead"] if is_edit else None
        is_same_tool = failed["tool"] == call["tool"] or failed["action"] == EDIT == call["action"]
        if is_same_tool and failed["target"] == call["target"]:
            return []
        is_form = failed["tool"] == call["tool"] and (failed["action"] == SPAWN or not path)
        return ["the tool was called for something else"] if is_form else None

    def _why_run(
        self, failed: sqlite3.Row, call: sqlite3.Row, line: str, *, is_try: bool
    ) -> list[str] | None:
        first, second = self.command(failed), self.command(call)
        like = shell.likeness(first, second)
        if like is Likeness.SAME:
            return []
        if like is Likeness.REPHRASED:
            return ["another form of the command succeeded"]
        if like is Likeness.NARROWER and _is_named(second, line):
            return ["only a part was checked again"]
        if is_try and call["status"] == "ok" and shell.is_retry(first, second):
            return ["a similar command succeeded"]
        return None

    def _doubts(self, failed: sqlite3.Row, call: sqlite3.Row, output: str) -> list[str]:
        """Return why an output without the error may not show that it is gone."""
        if failed["action"] != RUN:
            return []
        if call["status"] == "error":
            return [_RAN_AGAIN]
        command = shell.parsed(self.command(call)).only(self.command(failed))
        if not command.is_forgiving:
            return []
        if any(_stating(line) or is_wrapper(line) for line in output.split("\n")[:_MOST_LINES]
               if _quoting(line) is None and _telling(line)):  # fmt: skip
            return [_RAN_AGAIN]
        return ["only a part of its output was shown"] if command.is_cut else []

    def _changes(self, error: FoundError) -> list[sqlite3.Row]:
        """Return the calls before the end that changed something, as far as that can be told."""
        if error.first["action"] == EDIT:
            return []  # what else was edited did not make an edit fit
        about = self.command(error.first) if error.first["action"] == RUN else ""
        return [
            call
            for call in error.between
            if call["status"] == "ok"
            and (
                call["action"] == EDIT
                or (
                    call["action"] == RUN
                    and not shell.changes_nothing(self.command(call), about)
                    and not (about and shell.is_same(about, self.command(call)))
                )
            )
        ]

    def grouped(
        self, errors: Iterable[FoundError], line: str
    ) -> list[tuple[str, str, list[FoundError]]]:
        """Return the endings, each with its kind, what was done, and the errors that ended so.

        The most frequent comes first; among those what ended exactly this line, which names the
        same files; then the newest. What did not end comes last.
        """
        groups: dict[tuple[str, str], list[FoundError]] = {}
        for one in errors:
            groups.setdefault(self.ending(one), []).append(one)
        listed = [(kind, what, found) for (kind, what), found in groups.items()]
        for _, _, found in listed:
            found.sort(key=lambda one: one.first["timestamp"] or "", reverse=True)
        listed.sort(key=lambda group: group[2][0].first["timestamp"] or "", reverse=True)
        exact = _without_numbers(line)
        listed.sort(
            key=lambda group: not any(exact in _without_numbers(one.line) for one in group[2])
        )
        listed.sort(key=lambda group: (group[0] == NEVER, -len(group[2])))
        return listed

    def ending(self, error: FoundError) -> tuple[str, str]:
        """Return how an error ended, and what was done, in words."""
        failed, end = error.first, error.end
        if end is None:
            return NEVER, "nothing shows that it was fixed"
        if failed["action"] == EDIT and end["action"] != RUN and _was_read(error):
            return LOOKED, "read the file first"
        names = [_file(call) for call in error.causes if call["action"] == EDIT]
        if names:
            return EDITED, f"edited {_listed(sorted(set(names)))}"
        commands = [self._in_short(call) for call in error.causes]
        if commands:
            return RAN, f"ran {_listed(list(dict.fromkeys(commands)))}"
        if end["action"] == RUN:
            return self._ending_run(failed, end)
        if _was_read(error):
            return LOOKED, "read the file first"
        given = _differences(*(self._inputs.get(call["call_id"], "") for call in (failed, end)))
        if failed["tool"] != end["tool"]:
            return AGAIN, f"called {end['tool']} instead"
        if given:
            return AGAIN, f"called {end['tool']} again with another {_listed(given)}"
        return AGAIN, "the same again, with nothing changed"

    def _ending_run(self, failed: sqlite3.Row, end: sqlite3.Row) -> tuple[str, str]:
        one, other = self.command(failed), self.command(end)
        if failed["action"] != RUN or not shell.is_same(one, other):
            return RAN, f"ran {self._in_short(end)} instead"
        if shell.essence(one) != shell.essence(other):
            return RAN, f"ran it as {self._in_short(end)}"
        return AGAIN, "the same again, with nothing changed"


_RAN_AGAIN = "it still failed, with other errors"


def whole(target: str, text: str) -> str:
    """Return a command as it was given in a call's input; `target` is its beginning on one line."""
    try:
        value = json.loads(text)
    except ValueError:  # it was cut
        return target
    for given in _strings_in(value):
        if " ".join(given[: 4 * len(target) + 4].split()).startswith(target[:280]):
            return given
    return target


def _strings_in(value: object) -> Iterator[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            yield from (text for text in item if isinstance(text, str))


def _file(call: sqlite3.Row) -> str:
    return posixpath.basename(slashed(call["target"] or ""))


_is_test = re.compile(r"(?:^|[._-])(?:tests?|specs?)[._-]|Tests?\.", re.IGNORECASE).search


def _without_numbers(line: str) -> str:
    return "".join(letter for letter in line if not letter.isdigit())


def _is_named(text: str, line: str) -> bool:
    """Does a line name a file, or one of the files and tests in a command?"""
    for word in text.split():
        for part in word.split("::"):
            name = part.rstrip("/.").rsplit("/", 1)[-1]
            at = line.find(name) if len(name) > 2 else -1
            while at >= 0:
                before, behind = line[at - 1 : at] if at else "", line[at + len(name) :][:1]
                if not (before.isalnum() or before in {"_", "-"} or behind.isalnum()):
                    return True
                at = line.find(name, at + len(name))
    return False


def _differences(one: str, other: str) -> list[str]:
    """Return the names of what two calls were given differently."""
    try:
        first, second = json.loads(one), json.loads(other)
    except ValueError:  # one was cut
        return []
    if not isinstance(first, dict) or not isinstance(second, dict):
        return []
    return [name for name in {**first, **second} if first.get(name) != second.get(name)]


def _was_read(error: FoundError) -> bool:
    """Was that read in between to which the failed call was applied?"""
    return any(
        call["action"] == READ and call["target"] == error.first["target"] for call in error.between
    )


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
