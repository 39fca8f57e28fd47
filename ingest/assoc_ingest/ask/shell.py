"""Commands of a shell by their grammar: which two of them run the same check.

A command line is taken apart into pipelines and words as a shell would do it, without running or
expanding anything. What only wraps a command is taken off (`sudo`, `env A=b`, `timeout 60`,
`uv run`, `npx`, `bash -c`), so is what only moves (`cd app &&`, `git -C app`, `--prefix app`) or
filters the output. What is left is compared: the program, the chain of its subcommands, what it is
applied to, where, and on which host.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from itertools import dropwhile
from typing import NamedTuple

LONGEST = 8_000  # letters of a command that are read
_MOST_COMMANDS = 100
_MOST_CHECKS = 30  # that are compared with each other
_DEEPEST = 4  # shells in shells
_DEEPEST_QUOTES = 20
_MOST_WRAPPERS = 20
_MOST_CODE = 500  # letters of a program in a command


class Likeness(IntEnum):
    """How alike two commands are."""

    OTHER = 0
    """They are two different commands."""
    NARROWER = 1
    """The second is the same check of a part."""
    REPHRASED = 2
    """The second does the same by other means, as far as that can be told."""
    SAME = 3
    """The second runs the same check, of the same or of more."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """A program that a command runs."""

    program: str
    chain: tuple[str, ...] = ()
    """Its task: subcommands, the name of a script, targets, code."""
    operands: frozenset[str] = frozenset()
    settings: frozenset[tuple[str, str]] = frozenset()
    """Options with values."""
    place: tuple[str, ...] = ()
    """The end of the directory where it runs, as far as the command says it."""
    host: tuple[str, ...] = ()
    """The machine or container where it runs."""
    words: tuple[str, ...] = ()
    """All of it as it was written, without redirections."""
    into: str = ""
    """The file that its output goes to."""


@dataclass(slots=True)
class _Simple:
    """A simple command: its words, and what its standard input is if that is written there."""

    words: list[str] = field(default_factory=list)
    document: str = ""
    into: str = ""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Programs whose output goes into the next one."""

    parts: tuple[tuple[Invocation, ...], ...]
    """What each of its commands runs: several programs if it is a shell."""
    is_hidden: bool = False
    """The command line can succeed although this fails: `a; b`, `a || true`, `a | tail`."""

    @property
    def checks(self) -> tuple[Invocation, ...]:
        """The programs that do something, without what writes their input and filters."""
        working = [part for part in self.parts if not all(map(only_shows, part))]
        return tuple(one for part in working or self.parts[:1] for one in part)

    @property
    def hides_status(self) -> bool:
        """Does it end with a filter, whose exit status is not that of the check?"""
        return len(self.parts) > 1 and all(map(only_shows, self.parts[-1]))

    @property
    def is_cut(self) -> bool:
        """Is a part of the output left out?"""
        return any(one.program in _SELECTING for part in self.parts[1:] for one in part)


@dataclass(frozen=True, slots=True)
class Command:
    """A command line that was taken apart."""

    pipelines: tuple[Pipeline, ...]

    @property
    def is_forgiving(self) -> bool:
        """Does it end with success even where what it does fails?"""
        return any(one.is_hidden and not all(map(only_shows, one.checks)) for one in self.pipelines)

    def only(self, command: str) -> Command:
        """Return the part of this that runs programs of another command, all if none does."""
        programs = {one.program for one in parsed(command).checks}
        kept = tuple(
            pipeline
            for pipeline in self.pipelines
            if any(one.program in programs for one in pipeline.checks)
        )
        return Command(kept) if kept else self

    @property
    def checks(self) -> tuple[Invocation, ...]:
        """The programs that do something; all if they only show something."""
        everything = [one for pipeline in self.pipelines for one in pipeline.checks]
        doing = [one for one in everything if not only_shows(one) and not _prepares(one)]
        chosen = doing or [
            one for one in everything if one.program not in _SAYING or writes_a_file(one)
        ]
        return tuple(dict.fromkeys(chosen))[:_MOST_CHECKS]

    def outcomes(self, *, is_ok: bool) -> Iterator[tuple[Invocation, bool | None]]:
        """Yield each program, and whether it succeeded if the command line did, or did not.

        None: that does not follow, since its status was hidden, or another program may have failed.
        """
        checks = self.checks
        for pipeline in self.pipelines:
            for number, part in enumerate(pipeline.parts, 1):
                for one in part:
                    if is_ok:
                        # A filter at the end that does not hide the others shows them all.
                        is_told = number == len(pipeline.parts) or pipeline.hides_status
                        yield one, True if is_told and not pipeline.is_hidden else None
                    else:
                        yield one, False if checks == (one,) else None

    @property
    def is_cut(self) -> bool:
        """Is a part of its output left out?"""
        return any(pipeline.is_cut for pipeline in self.pipelines)


# -- words -----------------------------------------------------------------------------------------

_plain = re.compile(r"[^\s'\"\\$`<>|&;()#]+").match
_document = re.compile(r"<<[-~]?[ \t]{0,20}(['\"]?)([\w.+-]{1,100})\1").match
_redirection = re.compile(r"(?:&>>?|[<>]&\d{0,4}-?|<<<|<>|>>|>\||<|>)").match
_setting = re.compile(r"[A-Za-z_]\w{0,100}\+?=").match
_OPERATORS = ("&&", "||", ";;", "|&", ";", "|", "&", "(", ")", "\n")


class _Lexer:
    """Takes a command line apart into words, operators and here-documents."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._word: list[str] | None = None
        self._redirects = ""  # the operator, if the next word is where output goes
        self._marks: list[str] = []  # of here-documents that begin on the next line

    def tokens(self) -> Iterator[tuple[str, str]]:
        """Yield each with its kind: word, operator or document."""
        text = self._text
        while self._at < len(text):
            letter = text[self._at]
            if letter.isspace() or letter in "|&;()<>":
                is_descriptor = letter in "<>" and "".join(self._word or ()).isdigit()
                yield from () if is_descriptor else self._end_of_word()
                self._word = None
                yield from self._behind_word(letter)
            elif letter == "#" and self._word is None:
                self._at = _or_end(text.find("\n", self._at), len(text))
            else:
                run = _plain(text, self._at)
                piece, self._at = (
                    (run[0], run.end()) if run is not None else _quoted(text, self._at, 0)
                )
                self._word = self._word or []
                self._word.append(piece)
        yield from self._end_of_word()

    def _end_of_word(self) -> Iterator[tuple[str, str]]:
        if self._word is not None:
            kind = "word" if not self._redirects else "into" if ">" in self._redirects else ""
            if kind:
                yield kind, "".join(self._word)
            self._redirects = ""

    def _behind_word(self, letter: str) -> Iterator[tuple[str, str]]:
        text, at = self._text, self._at
        if letter.isspace() and letter != "\n":
            self._at += 1
        elif found := _document(text, at):
            yield from self._begin_document(found)
        elif letter in "<>" and text[at + 1 : at + 2] == "(":
            self._at = _end_of_substitution(text, at + 2, 0)
            self._word = ["<()"]
        elif redirected := _redirection(text, at):
            self._at = redirected.end()
            is_complete = redirected[0][-1].isdigit() or redirected[0][-1] == "-"
            self._redirects = "" if is_complete else redirected[0]
        else:
            operator = next((one for one in _OPERATORS if text.startswith(one, at)), letter)
            self._at += len(operator)
            self._redirects = ""
            yield "operator", operator
            if operator == "\n":
                for mark in self._marks:
                    body, self._at = _until(text, self._at, f"\n{mark}", from_line=True)
                    yield "document", body
                self._marks.clear()

    def _begin_document(self, found: re.Match[str]) -> Iterator[tuple[str, str]]:
        self._at = found.end()
        if self._text.find("\n", self._at) >= 0:
            self._marks.append(found[2])
        else:  # on one line, as it is kept in short
            body, self._at = _until(self._text, self._at, f" {found[2]}")
            yield "document", body


def _quoted(text: str, at: int, depth: int) -> tuple[str, int]:
    """Return the text that begins with a quote, a backslash or a dollar sign, and its end."""
    letter = text[at]
    if letter == "\\":
        follows = text[at + 1 : at + 2]
        kept = "" if follows == "\n" else f"\\{follows}" if follows.isalnum() else follows
        return kept, at + 2
    if letter == "'":
        close = _or_end(text.find("'", at + 1), len(text))
        return text[at + 1 : close], close + 1
    if letter == "`":
        close = _or_end(text.find("`", at + 1), len(text))
        return text[at : close + 1], close + 1
    if letter == '"':
        return _double_quoted(text, at + 1, depth)
    if text.startswith("$(", at):
        close = _end_of_substitution(text, at + 2, depth)
        return text[at:close], close
    return letter, at + 1


_in_quotes = re.compile(r'[^"\\$`]+').match


def _double_quoted(text: str, at: int, depth: int) -> tuple[str, int]:
    pieces = []
    while at < len(text) and text[at] != '"':
        if run := _in_quotes(text, at):
            pieces.append(run[0])
            at = run.end()
        elif text[at] == "\\":
            follows = text[at + 1 : at + 2]
            pieces.append(follows if follows in '"\\$`' else f"\\{follows}")
            at += 2
        elif text.startswith("$(", at):
            close = _end_of_substitution(text, at + 2, depth)
            pieces.append(text[at:close])
            at = close
        else:
            pieces.append(text[at])
            at += 1
    return "".join(pieces), at + 1


def _end_of_substitution(text: str, at: int, depth: int) -> int:
    """Return where `$(...)` ends, behind its bracket."""
    if depth >= _DEEPEST_QUOTES:
        return len(text)
    opened = 1
    while at < len(text):
        letter = text[at]
        if letter == "(":
            opened += 1
        elif letter == ")":
            opened -= 1
            if not opened:
                return at + 1
        elif letter == "<" and (found := _document(text, at)):
            mark = found[2]
            line = "\n" if "\n" in text[found.end() :] else " "
            _, at = _until(text, found.end(), f"{line}{mark}")
            continue
        elif letter in "'\"\\`":
            _, at = _quoted(text, at, depth + 1)
            continue
        at += 1
    return len(text)


def _until(text: str, at: int, mark: str, *, from_line: bool = False) -> tuple[str, int]:
    """Return a here-document, and where it ends."""
    start = max(at - 1, 0) if from_line else at
    close = text.find(mark, start)
    while close >= 0 and text[close + len(mark) : close + len(mark) + 1].strip(')"; \n\t'):
        close = text.find(mark, close + len(mark))
    return (text[at:], len(text)) if close < 0 else (text[at:close], close + len(mark))


def _or_end(at: int, end: int) -> int:
    return at if at >= 0 else end


# -- commands --------------------------------------------------------------------------------------

_KEYWORDS = frozenset({
    "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "esac", "!", "{", "}",
    "time", "[[", "]]",
})  # fmt: skip


@lru_cache(maxsize=4_000)
def parsed(text: str) -> Command:
    """Return a command line taken apart. What cannot be read is left out."""
    return _Reader((), (), 0).read(text[:LONGEST])


class _Reader:
    """Reads one command line; `cd` changes where the rest of it runs."""

    def __init__(self, host: tuple[str, ...], place: tuple[str, ...], depth: int) -> None:
        self._host = host
        self._place = place
        self._depth = depth
        self._pipelines: list[Pipeline] = []
        self._behind: list[str] = []  # the operator behind each of them

    def read(self, text: str) -> Command:
        parts = [_Simple()]
        places: list[tuple[str, ...]] = []
        for kind, piece in _Lexer(text).tokens():
            current = parts[-1]
            if kind == "word":
                if current.words or piece not in _KEYWORDS:
                    current.words.append(piece)
            elif kind == "into":
                current.into = piece
            elif kind == "document":
                current.document = piece
            elif piece in {"|", "|&"}:
                parts += [_Simple()] if len(parts) < _MOST_COMMANDS else []
            elif piece == "(":
                places += [] if current.words else [self._place]
            else:
                self._finish(parts, piece)
                parts = [_Simple()]
                if piece == ")" and places:
                    self._place = places.pop()
        self._finish(parts, "")
        stops = "pipefail" in text or "set -e" in text
        return Command(tuple(_hidden(self._pipelines, self._behind, stops=stops)))

    def _finish(self, parts: list[_Simple], operator: str) -> None:
        simple = [one for one in parts if one.words]
        if not simple or len(self._pipelines) >= _MOST_COMMANDS:
            if self._behind and self._behind[-1] == ")":
                self._behind[-1] = operator
            return
        moved = _moved(simple[0].words, self._place) if len(simple) == 1 else None
        if moved is not None:
            self._place = moved
            return
        run = (tuple(self._programs(one)) for one in simple)
        if told := tuple(part for part in run if part):
            self._pipelines.append(Pipeline(told))
            self._behind.append(operator)

    def _programs(self, simple: _Simple) -> Iterator[Invocation]:
        if simple.words[0] in {"for", "case", "select", "function", "in"}:
            return
        inner = _unwrapped(_Wrapped(simple.words, self._host, self._place))
        if not inner.words:
            return
        code = _shell_code(inner.words, simple.document)
        if code is not None and self._depth < _DEEPEST:
            reader = _Reader(inner.host, inner.place, self._depth + 1)
            for pipeline in reader.read(code[:LONGEST]).pipelines:
                yield from pipeline.checks
            return
        told = _told(inner.words, simple.document)
        if told.program:
            place = (*inner.place, *told.place)
            yield replace(
                told, place=place, host=inner.host, words=tuple(simple.words), into=simple.into
            )


def _hidden(pipelines: list[Pipeline], behind: list[str], *, stops: bool) -> list[Pipeline]:
    """Return pipelines with what the command line says of their status."""
    listed: list[Pipeline] = []
    is_hidden = False
    for number in range(len(pipelines) - 1, -1, -1):
        pipeline = pipelines[number]
        if number == len(pipelines) - 1:
            is_hidden = False
        elif behind[number] != "&&":
            is_hidden = behind[number] == "||" or not stops
        own = is_hidden or (pipeline.hides_status and not stops)
        listed.append(replace(pipeline, is_hidden=own))
    return listed[::-1]


def _moved(words: list[str], place: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return where a command that only moves leads to, None if it is another one."""
    if words[0] not in {"cd", "pushd"}:
        return None
    target = next((word for word in words[1:] if not word.startswith("-")), "")
    return _below(place, target)


def _below(place: tuple[str, ...], target: str) -> tuple[str, ...]:
    """Return the end of a directory, () if it cannot be told."""
    if not target or any(letter in target for letter in "$`*~"):
        return ()
    parts = [part for part in target.replace("\\", "/").split("/") if part not in {"", "."}]
    if ".." in parts:
        normal = posixpath.normpath("/".join((*place, *parts)))
        return () if normal.startswith("..") or normal == "." else tuple(normal.split("/"))
    return tuple(parts) if target.startswith("/") or not place else (*place, *parts)


# -- what wraps a command --------------------------------------------------------------------------

_WRAPPERS: dict[str, tuple[str, int]] = {  # options with values, arguments before the command
    "sudo": ("-u -g -h -p -C -r -t -T -U -D -R --user --group --chdir --prompt", 0),
    "doas": ("-u -C", 0), "env": ("-u -C -S --unset --chdir", 0),
    "timeout": ("-s -k --signal --kill-after", 1), "gtimeout": ("-s -k --signal --kill-after", 1),
    "nice": ("-n --adjustment", 0), "ionice": ("-c -n -p", 0), "nohup": ("", 0),
    "stdbuf": ("-i -o -e", 0), "setsid": ("", 0), "exec": ("-a", 0), "builtin": ("", 0),
    "command": ("", 0), "time": ("-f -o", 0), "unbuffer": ("", 0), "winpty": ("", 0),
    "xvfb-run": ("-e -f -n -p -s -w", 0), "caffeinate": ("-t -w", 0), "chronic": ("", 0),
    "npx": ("-p --package -c --call", 0), "bunx": ("-p --package", 0), "corepack": ("", 0),
    "uvx": ("--from --with --python -p", 0), "xargs": ("-n -I -P -L -d -a -E -s", 0),
    "rtk": ("", 0), "flock": ("-w -E", 1), "watch": ("-n", 0), "dotenv": ("-e -f", 0),
    "arch": ("", 0),
}  # fmt: skip
_RUNNERS: dict[tuple[str, ...], tuple[str, int]] = {
    ("uv", "run"): ("--with --extra --group --python -p --env-file --only-group --package", 0),
    ("uv", "tool", "run"): ("--from --with --python", 0),
    ("poetry", "run"): ("", 0), ("pipenv", "run"): ("", 0), ("pdm", "run"): ("-p", 0),
    ("rye", "run"): ("", 0), ("hatch", "run"): ("-e", 0), ("pipx", "run"): ("--spec", 0),
    ("bundle", "exec"): ("", 0), ("pnpm", "exec"): ("", 0), ("pnpm", "dlx"): ("--package", 0),
    ("yarn", "exec"): ("", 0), ("yarn", "dlx"): ("-p", 0), ("npm", "exec"): ("-p --package", 0),
    ("npm", "x"): ("-p --package", 0), ("bun", "x"): ("", 0), ("mise", "exec"): ("-C", 0),
    ("mise", "x"): ("-C", 0), ("direnv", "exec"): ("", 1), ("conda", "run"): ("-n -p", 0),
    ("mamba", "run"): ("-n -p", 0), ("micromamba", "run"): ("-n -p", 0),
    ("rbenv", "exec"): ("", 0), ("pyenv", "exec"): ("", 0), ("asdf", "exec"): ("", 0),
    ("volta", "run"): ("--node --npm", 0), ("op", "run"): ("--env-file --account", 0),
    ("nix", "develop"): ("", 0), ("doppler", "run"): ("-p -c --project --config", 0),
}  # fmt: skip
_HOSTS: dict[tuple[str, ...], str] = {  # options with values; the first argument is the host
    ("ssh",): "-p -i -l -o -F -J -L -R -D -b -c -e -m -w -W -E -S -Q -B -I -O",
    ("docker", "exec"): "-u -w -e --user --workdir --env --env-file",
    ("docker", "run"): "-u -w -e -v -p -h -m --user --workdir --env --env-file --volume --name "
    "--network --publish --mount --entrypoint --platform --hostname --memory --cpus --gpus --label",
    ("docker", "compose", "exec"): "-u -w -e --user --workdir --env --index",
    ("docker", "compose", "run"): "-u -w -e -v -p --user --workdir --env --volume --name "
    "--entrypoint",
    ("kubectl", "exec"): "-c -n --container --namespace",
}  # fmt: skip
_SAME_NAMES = {
    "python3": "python", "python2": "python", "py": "python", "pypy3": "python", "pip3": "pip",
    "nodejs": "node", "gmake": "make", "gradlew": "gradle", "mvnw": "mvn", "podman": "docker",
    "yarnpkg": "yarn", "gsed": "sed", "ggrep": "grep", "egrep": "grep", "fgrep": "grep",
    "apt": "apt-get", "py.test": "pytest",
}  # fmt: skip
_version = re.compile(
    r"(python|pip|ruby|php|node|go|clang|gcc|g\+\+)-?\d{1,3}(?:\.\d{1,3}){0,2}"
).fullmatch
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish", "ash"})


def _name(word: str) -> str:
    """Return the name of a program: `.venv/bin/python3.11` is `python`."""
    name = word.replace("\\", "/").rsplit("/", 1)[-1]
    stem, _, ending = name.rpartition(".")
    if stem and ending.lower() in {"exe", "cmd", "bat"}:
        name = stem
    if versioned := _version(name):
        name = versioned[1]
    if name.find("@") > 0:  # the version for `npx`
        name = name.partition("@")[0]
    return _SAME_NAMES.get(name, name)


class _Wrapped(NamedTuple):
    """A command, perhaps in wrappers, and where it runs."""

    words: list[str]
    host: tuple[str, ...]
    place: tuple[str, ...]


def _unwrapped(command: _Wrapped) -> _Wrapped:
    """Return a command without what wraps it. A wrapper without anything in it stays."""
    for _ in range(_MOST_WRAPPERS):
        words = list(dropwhile(_is_no_program, command.words))
        command = command._replace(words=words)
        if not words:
            break
        inner = _inside(_name(words[0]), command)
        if inner is None or not inner.words:
            break
        command = inner
    return command


def _is_no_program(word: str) -> bool:
    return _setting(word) is not None or word in {"--", "-"}


def _inside(name: str, command: _Wrapped) -> _Wrapped | None:
    """Return what a wrapper runs, None if this is none."""
    words, host, place = command
    if name == "docker-compose":
        return _Wrapped(["docker", "compose", *words[1:]], host, place)
    if name == "command" and words[1:2] and words[1] in {"-v", "-V"}:
        return _Wrapped(["which", *words[2:]], host, place)
    if name == "python":
        return command._replace(words=_module(words))
    if name == "wsl":
        rest = _without_options(words[1:], "-d -u --distribution --user --cd")
        return _Wrapped(rest, (*host, name), ())
    if name == "ssh":
        rest = _without_options(words[1:], _HOSTS[name,])
        text = " ".join(rest[1:])
        return _Wrapped(["sh", "-c", text] if text else [], (*host, name, *rest[:1]), ())
    if name in _WRAPPERS:
        valued, skipped = _WRAPPERS[name]
        rest = _without_options(words[1:], valued)[skipped:]
        return command._replace(words=rest[1:] if (name, *rest[:1]) == ("rtk", "proxy") else rest)
    chain, rest, _ = _subcommands(name, words[1:])
    for depth in (2, 1):
        key = (name, *chain[:depth])
        behind = [*chain[depth:], *rest]
        if key in _RUNNERS:
            valued, skipped = _RUNNERS[key]
            return command._replace(words=_without_options(behind, valued)[skipped:])
        if key in _HOSTS:
            rest = _without_options(behind, _HOSTS[key])
            return _Wrapped(_without_options(rest[1:], "-c -n"), (*host, *key, *rest[:1]), ())
    return None


def _module(words: list[str]) -> list[str]:
    """Return what `python -m` runs, nothing if it runs something else."""
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] not in {"-m", "-c", "-"}:
        at += 2 if words[at] in {"-W", "-X"} else 1
    if words[at : at + 1] == ["-m"] and len(words) > at + 1:
        return words[at + 1 :]
    return []


def _without_options(words: list[str], valued: str) -> list[str]:
    """Return words without the options in front."""
    takes = valued.split()
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            return words[at + 1 :]
        at += 2 if words[at] in takes else 1
    while at < len(words) and _setting(words[at]):
        at += 1
    return words[at:]


def _shell_code(words: list[str], document: str) -> str | None:
    """Return what a shell is given to run, None if this is none."""
    name = _name(words[0])
    if name in {"powershell", "pwsh", "cmd"}:
        for at, word in enumerate(words):
            if word.lower() in {"-command", "-c", "/c"}:
                return " ".join(words[at + 1 :])
        return None
    if name == "eval":
        return " ".join(words[1:])
    if name not in _SHELLS:
        return None
    for at, word in enumerate(words[1:], 1):
        if not word.startswith("-"):
            return None
        if not word.startswith("--") and "c" in word:
            return words[at + 1] if len(words) > at + 1 else None
    return document or None


# -- what a program is told ------------------------------------------------------------------------

_GLOBAL: dict[str, str] = {  # options with values in front of the subcommand
    "git": "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix",
    "docker": "-H -c -l --host --context --config --log-level --tlscacert --tlscert --tlskey "
    "-f -p --file --project-name --profile --env-file --project-directory --ansi --parallel",
    "kubectl": "-n -s --namespace --context --kubeconfig --cluster --user --server --as --token "
    "--as-group --request-timeout --certificate-authority -v",
    "helm": "-n --namespace --kube-context --kubeconfig", "terraform": "-chdir",
    "npm": "--prefix -C -w --workspace --registry --loglevel --userconfig",
    "pnpm": "-C --dir -F --filter --registry", "yarn": "--cwd", "bun": "--cwd --filter",
    "cargo": "--color --config -Z -C", "go": "-C", "mise": "-C --cd -E --env -j --jobs",
    "make": "-C -f -I -o -W --directory --file --makefile", "just": "-f -d --justfile "
    "--working-directory", "task": "-d -t --dir --taskfile", "gradle": "-p -b -c --project-dir",
    "mvn": "-f -pl -P -s --file --projects", "poetry": "-C -P --directory --project",
    "uv": "--project --directory --config-file --cache-dir", "pip": "--python --log --proxy",
    "bundle": "--gemfile", "gh": "-R --repo --hostname", "aws": "--profile --region --output "
    "--endpoint-url --query --ca-bundle", "gcloud": "--project --account --configuration --format",
    "systemctl": "-H -M -n -o -p -t --host --machine --type", "apt-get": "-o -t -c --option",
    "heroku": "-a -r --app --remote", "tox": "-c --conf --workdir", "nox": "-f",
    "dotnet": "", "conda": "-n -p --name --prefix", "swift": "--package-path", "svn": "",
    "rails": "", "mix": "", "nx": "", "turbo": "--filter --cwd", "deno": "", "bazel": "",
}  # fmt: skip
_DEPTH: dict[str, int] = {  # how many subcommands it has
    "git": 1, "docker": 1, "kubectl": 2, "helm": 1, "terraform": 1, "cargo": 1, "go": 1,
    "npm": 1, "pnpm": 1, "yarn": 1, "bun": 1, "mise": 1, "pip": 1, "poetry": 1, "uv": 1,
    "bundle": 1, "gh": 2, "aws": 2, "gcloud": 3, "az": 3, "systemctl": 1, "service": 2,
    "apt-get": 1, "brew": 1, "mix": 1, "rails": 1, "dotnet": 1, "conda": 1, "mamba": 1,
    "swift": 1, "svn": 1, "hg": 1, "heroku": 1, "fly": 1, "flyctl": 1, "vercel": 1, "firebase": 1,
    "supabase": 2, "wrangler": 1, "prisma": 2, "alembic": 1, "flask": 1, "composer": 1,
    "rustup": 1, "nvm": 1, "pm2": 1, "pipenv": 1, "pdm": 1, "rye": 1, "hatch": 1, "pipx": 1,
    "deno": 1, "nx": 1, "turbo": 1, "ruff": 1, "biome": 1, "artisan": 1, "manage.py": 1,
    "django-admin": 1, "buf": 1, "dvc": 1, "expo": 1, "eas": 1, "ng": 1, "next": 1, "vite": 1,
    "vitest": 1, "playwright": 1, "cypress": 1, "flutter": 1, "dart": 1, "zig": 1, "stack": 1,
    "cabal": 1, "lein": 1, "bazel": 1, "bazelisk": 1, "snap": 1, "dnf": 1, "yum": 1, "apk": 1,
    "zypper": 1, "minikube": 1, "kind": 1, "vagrant": 1, "ansible-galaxy": 1, "pulumi": 1,
    "sam": 1, "cdk": 1, "golangci-lint": 1, "goreleaser": 1, "gem": 1, "openssl": 1, "ip": 1,
    "launchctl": 1, "initctl": 1, "tmux": 1, "nix": 1, "npm-run-all": 9, "assoc-ingest": 1,
    "direnv": 1, "corepack": 1, "volta": 1, "xcrun": 1, "jj": 1, "glab": 2, "op": 1, "doppler": 1,
    "rbenv": 1, "pyenv": 1, "asdf": 1, "micromamba": 1,
}  # fmt: skip
_DEEPER = {  # subcommands that have subcommands
    ("git", "stash"), ("git", "remote"), ("git", "worktree"), ("git", "submodule"),
    ("git", "bisect"), ("git", "lfs"), ("git", "notes"), ("git", "config"),
    ("docker", "compose"), ("docker", "container"), ("docker", "image"), ("docker", "network"),
    ("docker", "volume"), ("docker", "buildx"), ("docker", "system"), ("docker", "builder"),
    ("docker", "context"), ("go", "mod"), ("go", "tool"), ("go", "work"), ("uv", "pip"),
    ("uv", "tool"), ("uv", "python"), ("conda", "env"), ("terraform", "workspace"),
    ("terraform", "state"), ("helm", "repo"), ("npm", "run"), ("pnpm", "run"), ("yarn", "run"),
    ("bun", "run"), ("mise", "run"), ("deno", "task"), ("composer", "run"), ("nx", "run"),
    ("turbo", "run"), ("rustup", "toolchain"), ("rustup", "target"), ("cargo", "nextest"),
    ("dotnet", "ef"), ("dotnet", "tool"), ("npm", "workspace"), ("yarn", "workspace"),
}  # fmt: skip
_PLACES = {  # options that say where
    "-C", "--prefix", "--cwd", "--dir", "--directory", "--project-directory", "--git-dir",
    "--chdir", "-chdir", "--work-tree", "--manifest-path", "--package-path", "-w", "--workspace",
    "--filter", "-F", "--cd", "--working-directory", "--project-dir",
}  # fmt: skip
_TARGETS = frozenset({"make", "just", "task", "gradle", "mvn", "rake", "invoke", "sbt", "ninja",
                      "ant", "tox", "nox", "mage"})  # fmt: skip
_ALIASES = {
    "npm": {"t": "test", "tst": "test", "i": "install", "run-script": "run", "rum": "run",
            "add": "install"},
    "pnpm": {"t": "test", "i": "install", "run-script": "run"}, "bun": {"i": "install"},
    "mise": {"r": "run"}, "cargo": {"t": "test", "b": "build", "c": "check", "r": "run"},
    "docker": {}, "composer": {"run-script": "run"}, "kubectl": {},
}  # fmt: skip
_SCRIPTS = {"test", "start", "stop", "restart"}
_OF_MANAGER = frozenset({
    "install", "add", "remove", "up", "upgrade", "update", "init", "publish", "link", "unlink",
    "cache", "config", "dlx", "exec", "workspaces", "workspace", "why", "audit", "outdated", "ci",
    "ls", "list", "pack", "version", "info", "view", "run", "x", "create", "login", "logout",
    "prune", "rebuild", "root", "store", "patch", "dedupe", "import", "global", "npm", "node",
    "help", "set", "plugin", "test",
})  # fmt: skip
_MANAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
_INSTALLS = {"install", "add", "remove", "uninstall", "ci", "update", "upgrade", "i", "get"}
_CHECKERS: dict[str, str] = {  # that check all if they are given nothing: options with values
    "pytest": "-c -n -o -p -r -W --maxfail --rootdir --cov --cov-report --timeout --tb --durations "
    "--color --junitxml --ignore --deselect --log-level",
    "mypy": "--config-file --python-version --cache-dir", "ruff": "--config --output-format "
    "--select --ignore", "tsc": "--target --outDir --module --lib", "eslint": "-c -f --config "
    "--format --max-warnings --ext", "jest": "-c --config -w --maxWorkers --reporters",
    "vitest": "-c --config --reporter --root --pool", "mocha": "--reporter -R --timeout --require",
    "go": "-count -timeout -tags -parallel -p -coverprofile -bench -cpu -race", "cargo":
    "--features --target --profile -j --jobs --color --message-format", "rspec": "-f --format -r",
    "rubocop": "-c --config -f --format", "phpunit": "-c --configuration", "prettier": "--config",
    "biome": "--config-path --max-diagnostics", "golangci-lint": "-c --config --timeout",
    "black": "-l --line-length", "flake8": "--config --max-line-length", "pylint": "--rcfile",
    "swift": "", "mix": "", "dotnet": "-c -v --configuration --verbosity -f --framework",
    "playwright": "--reporter -j --workers --project", "tsgo": "", "pyright": "-p --project",
    "shellcheck": "", "ctest": "", "deno": "", "clippy": "",
}  # fmt: skip
_VALUED = {
    "git": "-m -F -b -B -n -t -o -c --author --date --message --onto --format --grep --since",
    "curl": "-d -H -o -u -A -e -m --data --header --output --user --max-time",
}
_FLAGS = _CHECKERS.keys() | {"git", "curl", "apt-get", "brew"}  # whose other options have no value
_SELECTING_OPTIONS = {
    "-k", "-m", "-t", "--testNamePattern", "-run", "--run", "-g", "--grep", "--filter", "-e",
    "--example", "--test-name-pattern", "-p", "--package", "--test", "--bin", "--lib",
}  # fmt: skip
_MODES: dict[str, set[str]] = {  # options that say what is done
    "psql": {"-c", "--command", "-l", "--list", "-f", "--file"}, "prettier": {"--write", "--check",
    "-w", "-c", "-l"}, "gofmt": {"-l", "-w", "-d"}, "tar": {"-c", "-x", "-t"}, "node": {"--test"},
    "pacman": {"-S", "-R", "-Q", "-U"}, "dpkg": {"-i", "-l", "-r", "-P"}, "sed": {"-i"},
    "sqlite3": set(), "tsc": {"--build", "-b", "--init"}, "crontab": {"-l", "-e", "-r"},
    "cmake": {"--build", "--install"}, "xcodebuild": {"-list", "test", "build", "clean"},
    "curl": {"-X", "--request"}, "black": {"--check"}, "isort": {"--check", "--check-only"},
    "tox": {"-e"}, "nox": {"-s", "-e"}, "nginx": {"-t", "-s"},
    "codesign": {"--verify", "--sign", "-s", "-v"},
}  # fmt: skip
_CODE = {"python": {"-c"}, "node": {"-e", "--eval", "-p", "--print"}, "ruby": {"-e"},
         "perl": {"-e", "-E"}, "php": {"-r"}, "tsx": {"-e"}, "ts-node": {"-e"}, "bun": {"-e"},
         "deno": {"-e"}}  # fmt: skip
_INTERPRETERS = {"python", "node", "ruby", "perl", "php", "tsx", "ts-node", *_SHELLS}
_HAS_VERSION = {"cargo", "rustc", "rustup", "rustfmt"}


def _subcommands(program: str, words: list[str]) -> tuple[tuple[str, ...], list[str], list[str]]:
    """Return the subcommands of a program, the words behind them, and where options say it runs."""
    valued = _GLOBAL.get(program, "").split()
    depth = _DEPTH.get(program, 0)
    chain: list[str] = []
    places: list[str] = []
    at = 0
    while at < len(words) and len(chain) < depth:
        word = words[at]
        name, equals, value = word.partition("=")
        if word == "--":
            break
        if word.startswith("-") and len(word) > 1:
            takes = not equals and name in valued
            given = value if equals else words[at + 1] if takes and at + 1 < len(words) else ""
            if name in _PLACES and given:
                places.append(given)
            at += 2 if takes else 1
        elif word.startswith("+") and program in _HAS_VERSION:
            at += 1
        else:
            word = _ALIASES.get(program, {}).get(word, word)
            chain.append(word)
            if (program, word) in _DEEPER and len(chain) == depth:
                depth += 1
            at += 1
    return tuple(chain), words[at:], places


def _told(words: list[str], document: str) -> Invocation:
    program, rest = _name(words[0]), words[1:]
    for at, word in enumerate(rest):
        if word in _CODE.get(program, ()):
            return Invocation(program, (word, _shortened(" ".join(rest[at + 1 : at + 2]))))
    if program in _INTERPRETERS:
        script = _without_options(rest, "-r --require -I -W -X --import --loader --env-file -M")
        if script and script[0] != "-":
            return _told(script, document)
        return Invocation(program, ("-", _shortened(document)) if document else tuple(rest))
    chain, rest, places = _subcommands(program, rest)
    if program in _MANAGERS:
        chain, rest = _script(program, chain, rest, places)
    given = _Given(program, [*chain], places)
    given.read(rest)
    chain = tuple(given.chain)
    if program in _TARGETS:
        chain, given.operands = (*chain, *sorted(given.operands)), set()
    place = _below((), places[-1]) if places else ()
    return Invocation(program, chain, frozenset(given.operands), frozenset(given.settings), place)


def _shortened(text: str) -> str:
    return " ".join(text.split())[:_MOST_CODE]


class _Given:
    """Sorts the words after the subcommands of a program."""

    def __init__(self, program: str, chain: list[str], places: list[str]) -> None:
        self.chain = chain
        self.places = places
        self.operands: set[str] = set()
        self.settings: set[tuple[str, str]] = set()
        self._program = program
        tables = (_GLOBAL, _CHECKERS, _VALUED)
        self._valued = " ".join(table.get(program, "") for table in tables).split()

    def read(self, words: list[str]) -> None:
        at = 0
        while at < len(words):
            word = words[at]
            if word == "--":
                if self._program not in {*_MANAGERS, "cargo"}:
                    self.operands.update(words[at + 1 :])
                    return
            elif not word.startswith("-") or len(word) == 1:
                self.operands.add(word)
            elif self._option(word, words[at + 1] if at + 1 < len(words) else ""):
                at += 1
            at += 1

    def _option(self, word: str, behind: str) -> bool:
        """Sort an option; return whether the word behind it is its value."""
        name, equals, value = word.partition("=")
        program = self._program
        follows = "" if equals or behind.startswith("-") else behind
        given = value or follows
        if name in _MODES.get(program, ()):
            self.chain.append(name)
            if program not in {"psql", "curl", "tox", "nox"} or not given:
                return False
            self.chain.append(_shortened(given))
        elif not given:
            return False
        elif name in _PLACES and name in self._valued and program in _GLOBAL:
            self.places.append(given)
        elif program in _CHECKERS and name in _SELECTING_OPTIONS:
            self.operands.add(f"{name}={given}")
        elif equals or name in self._valued or self._may_be_valued(follows):
            self.settings.add((name, given))
        else:
            return False
        return not equals

    def _may_be_valued(self, follows: str) -> bool:
        """May a word belong to the option in front of it? Nobody knows the options of all."""
        if self._program in _FLAGS or (self._program in _TARGETS and not follows.isdigit()):
            return False
        return "/" not in follows and follows not in {".", ".."}


def _script(
    program: str, chain: tuple[str, ...], rest: list[str], places: list[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the script that a package manager is told to run, whichever way that is written."""
    if chain[:1] == ("workspace",) and len(chain) == 2:
        places.append(chain[1])
        chain, rest, _ = _subcommands(program, rest)
    if not chain:
        return (("install",) if program == "yarn" and not rest else ()), rest
    if chain[0] == "run":
        return chain, rest
    is_script = chain[0] in _SCRIPTS and not (program == "bun" and chain[0] == "test")
    if is_script or (program in {"yarn", "pnpm"} and chain[0] not in _OF_MANAGER):
        return ("run", *chain), rest
    return chain, rest


# -- comparing -------------------------------------------------------------------------------------

_SAYING = frozenset({"echo", "printf", "true", "false", ":", "sleep", "exit", "return", "set",
                     "export", "source", ".", "unset", "shopt", "trap", "wait", "alias", "local",
                     "declare", "read", "test", "[", "popd", "cd", "pushd", "clear"})  # fmt: skip
_READERS = _SAYING | frozenset({
    "cat", "grep", "rg", "ag", "awk", "head", "tail", "less", "more", "find", "ls", "tree", "wc",
    "diff", "jq", "yq", "stat", "file", "which", "pwd", "env", "cut", "sort", "uniq", "tr", "nl",
    "column", "od", "hexdump", "xxd", "date", "whoami", "hostname", "uname", "id", "ps", "df",
    "du", "basename", "dirname", "realpath", "readlink", "type", "bat", "fd", "lsof", "top",
    "tee", "comm", "cmp", "md5sum", "sha256sum", "strings", "seq", "yes", "printenv", "man", "fold",
})  # fmt: skip
_SELECTING = frozenset({"head", "tail", "grep", "rg", "sed", "awk", "cut", "uniq", "jq"})
_SENDING = ("-X", "--request", "-d", "--data", "-o", "-O", "--output", "-F", "-T")
_READING = {
    "git": frozenset({
        "status", "log", "diff", "show", "blame", "grep", "branch", "rev-parse", "ls-files",
        "remote", "describe", "shortlog", "reflog", "cat-file", "ls-remote", "ls-tree", "rev-list",
    }),
    "gh": frozenset({"view", "list", "diff", "status", "checks"}),
    "kubectl": frozenset({"get", "describe", "logs", "top", "explain"}),
    "docker": frozenset({"ps", "images", "logs", "inspect"}),
}  # fmt: skip
_PREPARING = {"git": frozenset({"add", "fetch"})}


def only_shows(one: Invocation) -> bool:
    """Does a program only show something?"""
    if one.program in {"sed", "awk", "perl"}:
        return one.program != "perl" and not any(
            word.startswith(("-i", "--in-place")) for word in one.words
        )
    if one.program in {"curl", "wget"}:
        return not any(word.startswith(_SENDING) for word in one.words)
    if one.program == "find":
        return not {"-delete", "-exec", "-execdir"} & set(one.words)
    if one.program == "test" and not one.operands:
        return False  # a script of this name
    told = one.chain[1:2] if one.program == "gh" else one.chain[:1]
    return one.program in _READERS or bool(
        told and told[0] in _READING.get(one.program, frozenset())
    )


def _prepares(one: Invocation) -> bool:
    return one.program in {"mkdir", "touch"} or one.chain[:1] in {
        (name,) for name in _PREPARING.get(one.program, ())
    }


def writes_a_file(one: Invocation) -> bool:
    """Does a program that says or shows something put it into a file that stays?"""
    is_lost = one.into.startswith("/") and one.into.split("/")[1] in {"dev", "tmp"}
    return bool(one.into) and not is_lost and one.program in {"echo", "printf", "cat"}


def only_reads(command: str) -> bool:
    """Does a command only show something?"""
    pipelines = parsed(command).pipelines
    return all(only_shows(one) for pipeline in pipelines for part in pipeline.parts for one in part)


_CHANGING = {"--fix", "--write", "-w", "fmt", "format", "fix", "-A", "--autocorrect", "-a"}
_CHECKS = {"test", "lint", "check", "typecheck", "type-check", "tsc", "vet", "test:ci"}


def changes_nothing(command: str, about: str) -> bool:
    """Does a command only show or check something, or record what was changed before it?

    `about` is the command that failed: of git and gh, what git and gh do may be what ended it.
    """
    failed = {one.program for one in parsed(about).checks}
    return all(
        (only_shows(one) and not writes_a_file(one))
        or _prepares(one)
        or (one.program == "git" and "git" not in failed and one.chain[:1] in _RECORDING)
        or (one.program == "gh" and "gh" not in failed)
        or _only_checks(one)
        for pipeline in parsed(command).pipelines
        for one in pipeline.checks
    )


def is_check(command: str) -> bool:
    """Does a command check something, so that its success says something?"""
    return any(map(_only_checks, parsed(command).checks))


_RECORDING = {("commit",), ("push",), ("tag",)}


def _only_checks(one: Invocation) -> bool:
    if _CHANGING & set(one.words):
        return False
    told = one.chain[1:2] if one.chain[:1] == ("run",) else one.chain
    if one.program in _CHECKERS and one.program not in {"go", "cargo", "swift", "mix", "dotnet",
                                                       "deno", "biome", "ruff"}:  # fmt: skip
        return True
    if one.program in {"python", "node", "ruby"} and one.chain[:1] in {("-c",), ("-e",), ("-",)}:
        code = one.chain[-1]
        return not any(word in code for word in _WRITING)
    return bool(told) and all(name in _CHECKS for name in told)


_WRITING = ("write", "'w'", '"w"', "'a'", "unlink", "rename", "shutil", "subprocess", "os.system",
            "remove", "mkdir", "execSync", "commit(")  # fmt: skip


def names(command: str, path: str) -> bool:
    return path in command or path.replace("\\", "/").rsplit("/", 1)[-1] in command


def is_retry(first: str, second: str) -> bool:
    """Is a second command so like the first that it may be another try of it?"""
    one, other = parsed(first).checks, parsed(second).checks
    if not one or not other or one[-1].host != other[-1].host:
        return False
    piped = [found.pipelines[-1].parts for found in (parsed(first), parsed(second))]
    if all(len(parts) > 1 for parts in piped) and _words(piped[0][0]) == _words(piped[1][0]):
        return one[-1].program == other[-1].program
    programs = (one[-1].program, other[-1].program)
    if programs[0] == programs[1] and programs[0] in _DEPTH:
        return False
    words = [Counter(text[:LONGEST].split()) for text in (first, second)]
    shared = (words[0] & words[1]).total()
    return shared >= _LEAST_SHARED and shared >= 0.6 * (words[0] | words[1]).total()


def _words(part: tuple[Invocation, ...]) -> list[tuple[str, ...]]:
    return [one.words for one in part]


_LEAST_SHARED = 5


def likeness(first: str, second: str) -> Likeness:
    """Return whether a second command runs the check of the first."""
    one, other = parsed(first), parsed(second)
    wanted, others = one.checks, other.checks
    if not wanted or not others:
        return Likeness.OTHER
    found = [max((_alike(check, by) for by in others), default=Likeness.OTHER) for check in wanted]
    least = min(found)
    if least > Likeness.OTHER:
        return least
    if found[-1] == Likeness.SAME and len(found) > 1:
        return Likeness.REPHRASED  # what was to be shown at the end, prepared in another way
    return Likeness.REPHRASED if _is_rest(wanted, others) else Likeness.OTHER


def is_same(first: str, second: str) -> bool:
    """Does a second command run the check of the first?"""
    return likeness(first, second) is Likeness.SAME


def _is_rest(wanted: tuple[Invocation, ...], others: tuple[Invocation, ...]) -> bool:
    """Is one command the other behind a wrapper that is not known: `rtk npm test`, `npm test`?"""
    one, other = (list(found[-1].words) for found in (wanted, others))
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return (
        2 <= len(shorter) < len(longer)
        and longer[-len(shorter) :] == shorter
        and not shorter[0].startswith("-")
        and _name(longer[0]) not in _READERS
        and len(longer) - len(shorter) <= 3
        and (len(shorter) > 2 or _name(shorter[0]) in _DEPTH or _name(shorter[0]) in _CHECKERS)
        and _name(longer[0]) not in _DEPTH
    )


def _alike(one: Invocation, other: Invocation) -> Likeness:
    """Return whether a second program runs the check of the first."""
    if one.host != other.host or not _may_be_one(one.place, other.place):
        return Likeness.OTHER
    if one.program != other.program:
        is_script = {one.program, other.program} <= _MANAGERS and one.chain[:1] == ("run",)
        return Likeness.REPHRASED if is_script and one.chain == other.chain else Likeness.OTHER
    if one.chain != other.chain:
        return Likeness.OTHER
    like = _applied(one, other)
    differing = _differing(one.settings, other.settings)
    if differing & _TELLING_OPTIONS:
        return Likeness.OTHER
    return min(like, Likeness.REPHRASED) if differing else like


def _applied(one: Invocation, other: Invocation) -> Likeness:
    """Return whether what a program is applied to is the same, more or less."""
    if one.operands == other.operands or (
        one.program == "git" and "--continue" in other.words and one.chain[:1] == other.chain[:1]
    ):
        return Likeness.SAME
    if one.chain[:1] and one.chain[0] in _INSTALLS:
        return Likeness.SAME if one.operands and one.operands < other.operands else Likeness.OTHER
    is_checker = one.program in _CHECKERS or one.program in {*_MANAGERS, "mise"}
    if is_checker:
        if all(any(_covers(by, name) for by in other.operands) for name in one.operands):
            return Likeness.SAME if one.operands or not other.operands else Likeness.NARROWER
        if not {name for name in other.operands if not name.startswith("-")} and all(
            name in one.operands for name in other.operands
        ):
            return Likeness.SAME
        narrower = all(any(_covers(by, name) for by in one.operands) for name in other.operands)
        return Likeness.NARROWER if narrower else Likeness.OTHER
    if one.operands < other.operands:
        return Likeness.SAME if one.operands else Likeness.REPHRASED
    is_sent = one.program == "git" and one.chain[:1] in {("push",), ("pull",), ("commit",)}
    return Likeness.REPHRASED if is_sent and other.operands < one.operands else Likeness.OTHER


def _covers(wide: str, narrow: str) -> bool:
    """Is a path, a pattern or a test a part of another?"""
    if wide == narrow or wide in {".", "./...", "..."}:
        return True
    start = wide.removeprefix("./").removesuffix("...").rstrip("/")
    name = narrow.removeprefix("./")
    return name == start or name.startswith((f"{start}/", f"{start}::"))


_TELLING_OPTIONS = {"-c", "-e", "-f", "-i", "-jar", "--command", "--execute", "--file"}
_MESSAGES = {"-m", "--message", "--title", "--body", "-b"}


def _differing(one: Iterable[tuple[str, str]], other: Iterable[tuple[str, str]]) -> set[str]:
    """Return the options that are given different values; numbers and messages do not count."""
    values = dict(one)
    return {
        name
        for name, value in other
        if value != values.get(name, value)
        and not (value.isdigit() and values[name].isdigit())
        and name not in _MESSAGES
    }


def _may_be_one(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Can these be ends of one directory?"""
    short, long = sorted((one, other), key=len)
    return not short or long[-len(short) :] == short


# -- in short --------------------------------------------------------------------------------------

_SHOWN = 60
_MOST_SHOWN = 2


def in_short(command: str) -> str:
    """Return the programs of a command that do something, without what filters their output."""
    shown = []
    for one in parsed(command).checks:
        text = " ".join(" ".join(one.words).split())
        text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
        shown.append(f"{text} > {one.into}" if writes_a_file(one) else text)
    distinct = list(dict.fromkeys(shown))
    return " && ".join(distinct[:_MOST_SHOWN]) + (" && …" if distinct[_MOST_SHOWN:] else "")


def essence(command: str) -> tuple[tuple[str, ...], ...]:
    """Return what a command runs, without redirections and filters: equal for equal runs."""
    return tuple(one.words for one in parsed(command).checks)


# -- how a program is run --------------------------------------------------------------------------

VARYING = "…"
_LONGEST_WORD = 60
_needs_quotes = re.compile(r"[\s|&;<>()]").search


def asked_for(command: str) -> Invocation | None:
    """Return the program that somebody asks for; None if there is none."""
    everything = [one for pipeline in parsed(command).pipelines for one in pipeline.checks]
    return everything[-1] if everything else None


def is_run_of(one: Invocation, asked: Invocation) -> bool:
    """Is this a run of the program that was asked for, with the same subcommand and options?"""
    if one.program != asked.program or (asked.host and one.host != asked.host):
        return False
    if asked.program in _TARGETS:
        has_chain = set(asked.chain) <= set(one.chain)
    else:
        has_chain = one.chain[: len(asked.chain)] == asked.chain
    options = {word for word in asked.words if word.startswith("-")}
    return (
        has_chain
        and asked.operands <= one.operands
        and asked.settings <= one.settings
        and options <= set(one.words)
    )


def names_of(asked: Invocation) -> list[list[str]]:
    """Return words of which each run of a program has one of each list: its names and subcommand.

    A subcommand is left out that is no word, such as code.
    """
    names = [asked.program, *(name for name, same in _SAME_NAMES.items() if same == asked.program)]
    last = asked.chain[-1] if asked.chain else ""
    short = _ALIASES.get(asked.program, {})
    told = [last, *(name for name, whole in short.items() if whole == last)]
    return [names, told] if last.isalnum() else [names]


def written(one: Invocation) -> str:
    """Return a run as it was written, though perhaps in other quotes."""
    return " ".join(map(_in_quotes_again, one.words))


def _in_quotes_again(word: str) -> str:
    if word and _needs_quotes(word) is None:
        return word
    return f'"{word}"' if "$" in word or "'" in word else f"'{word}'"


def form(one: Invocation) -> list[str]:
    """Return the words of a run without those that differ from run to run: files, texts."""
    varying = {part for operand in one.operands for part in (operand, operand.partition("=")[2])}
    words: list[str] = []
    for word in one.words:
        is_varying = word in varying or len(word) > _LONGEST_WORD or len(word.split()) > 1
        if not is_varying:
            words.append(word)
        elif words[-1:] != [VARYING]:
            words.append(VARYING)
    return words
