"""assoc-ingest verify, restore, price, prune, forget, compact."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

import click

from .. import terminal
from ..ask.output import say, write
from ..errors import UsageError
from ..terminal import Figure, Paint, cut, one_line, pad, safe, safe_json
from .options import (
    asks,
    confirmed,
    database_option,
    jobs_option,
    progress_in_bytes,
    project_option,
    reading,
    sessions,
    yes_option,
)

if TYPE_CHECKING:
    from ..upkeep.compact import Compaction, Unused
    from ..upkeep.forget import Forgetting, SecretForgetting, Tombstone
    from ..upkeep.prune import LostSession, Removal
    from ..upkeep.restore import Restored
    from ..upkeep.verify import Finding, Verdict


# ------------------------------------------------------------------------------------------------
# What `verify` found, as text or as one JSON object.


_LISTED = 50


def write_verdict(verdict: Verdict, *, as_json: bool) -> None:
    """Print what was found, as text or as one JSON object."""
    if as_json:
        write([safe_json({"ok": verdict.ok, **asdict(verdict)}) + "\n"])
        return
    paint = Paint.for_stream(sys.stdout)
    for title, colour, listed in (
        ("Problem", "red", verdict.findings),
        ("Warning", "yellow", verdict.warnings),
    ):
        for finding in listed[:_LISTED]:
            write([f"{paint(title, colour)}: {_sentence(finding)}\n", f"  {_mending(finding)}\n"])
        if len(listed) > _LISTED:
            more = terminal.many(len(listed) - _LISTED, f"more {title.lower()}")
            write([f"{more} not shown. To see all: assoc-ingest verify --json\n"])
    write([f"{_summary(verdict)}\n"])


def _sentence(finding: Finding) -> str:
    place = ""
    if finding.path is not None:
        place = finding.path if finding.root is None else f"{finding.root}/{finding.path}"
        place += f", byte {finding.byte_offset}" if finding.byte_offset is not None else ""
        place += ": "
    return _one_line(f"{place}{finding.problem}")


def _mending(finding: Finding) -> str:
    is_command = finding.remedy.startswith("assoc-ingest ")
    return _one_line(f"run: {finding.remedy}" if is_command else finding.remedy)


def _one_line(text: str) -> str:
    return text.replace("\n", "\\n")


def _summary(verdict: Verdict) -> str:
    counts = verdict.counts
    checked = ", ".join(
        terminal.many(counts[name], word)
        for name, word in (("files", "file"), ("messages", "message"))
        if name in counts
    )
    size = f" ({terminal.size(counts['archived_bytes'])})" if "archived_bytes" in counts else ""
    count = len(verdict.findings)
    found = f"{terminal.many(count, 'problem')} found" if count else "no problems found"
    return f"Checked {checked or 'the database pages'}{size}: {found}."


# ------------------------------------------------------------------------------------------------
# What a restore did: a line for each file, or one JSON object, and the totals.


def write_report(
    done: Sequence[Restored], directory: Path, *, as_json: bool, dry_run: bool
) -> bool:
    """Print what became of each file.

    Returns whether all of them is there now that was ever archived, and anything at all.
    """
    from ..upkeep.restore import IDENTICAL, REFUSED, WRITTEN

    counts = Counter(file.status for file in done)
    if as_json:
        files = [asdict(file) for file in done]
        write([safe_json({"to": str(directory), "dry_run": dry_run, "files": files}) + "\n"])
    else:
        write(_line(file, dry_run=dry_run) + "\n" for file in done)
    written = sum(file.bytes for file in done if file.status == WRITTEN)
    say(_sum(counts, written, dry_run=dry_run))
    if lost := sum(file.bytes_lost for file in done):
        incomplete = terminal.many(sum(file.bytes_lost > 0 for file in done), "file")
        say(f"{lost:,} bytes of {incomplete} are lost and were replaced by spaces.")
    is_whole = not any(file.bytes_lost for file in done)
    return is_whole and not counts[REFUSED] and counts[WRITTEN] + counts[IDENTICAL] > 0


def _line(file: Restored, *, dry_run: bool) -> str:
    from ..upkeep.restore import WRITTEN

    status = "would write" if dry_run and file.status == WRITTEN else file.status
    size = f" ({terminal.size(file.bytes)})" if file.status == WRITTEN else ""
    note = f": {file.note}" if file.note else ""
    place = file.target or f"{file.root}/{file.path}"
    return f"{status}  {place}{size}{note}".replace("\n", "\\n")


def _sum(counts: Counter[str], written: int, *, dry_run: bool) -> str:
    from ..upkeep.restore import IDENTICAL, NOT_ARCHIVED, REFUSED, WRITTEN

    verb = "Would write" if dry_run else "Wrote"
    parts = [f"{verb} {terminal.many(counts[WRITTEN], 'file')}, {terminal.size(written)}"]
    for status, words in (
        (IDENTICAL, "already there"),
        (NOT_ARCHIVED, "not archived"),
        (REFUSED, "refused"),
    ):
        if counts[status]:
            parts.append(f"{counts[status]:,} {words}")
    return "; ".join(parts) + "."


# ------------------------------------------------------------------------------------------------
# What `prune`, `forget` and `compact` did: lists on standard output, totals on standard error.


_TITLE = 50  # columns
_TRACES = "Traces may remain in the database file. To remove them: assoc-ingest compact"
_NAMED = 10  # files that are named one by one
_WHY = {
    "lines": "shares lines with it",
    "program": "same conversation in another program",
    "title": "shares a title with it",
}


def write_pruned(removal: Removal, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        write([safe_json(asdict(removal)) + "\n"])
    else:
        write(_session(session) for session in removal.sessions)
    before = f" since before {terminal.moment(removal.before)}" if removal.before else ""
    _write_kept(removal)
    if removal.is_nothing:
        say(f"No data is {'known to be ' * _is_unsure(removal)}gone{before}; nothing to remove.")
        return
    parts = [
        terminal.many(removal.files, "file"),
        terminal.size(removal.bytes),
        terminal.many(removal.messages, "message"),
    ]
    parts += [terminal.many(removal.tasks, "task")] if removal.tasks else []
    parts += [terminal.many(removal.inbox_items, "team message")] if removal.inbox_items else []
    parts += [terminal.many(removal.entries, "list entry", "list entries")] * (removal.entries > 0)
    gone = f", gone{before}" if before else ""
    say(f"{'Would remove' if dry_run else 'Removed'} {', '.join(parts)}{gone}.")
    say(
        "To remove it, run the same command without --dry-run."
        if dry_run
        else "To return the space to the disk: assoc-ingest compact"
    )


def _session(session: LostSession) -> str:
    title = pad(cut(one_line(session.title or ""), _TITLE), _TITLE)
    files, size = terminal.many(session.files, "file"), terminal.size(session.bytes)
    messages = terminal.many(session.messages, "message")
    part = "" if session.is_whole else ", partly"
    gone = f", gone since {terminal.moment(session.gone_at)}" if session.gone_at else ""
    return f"{session.session_key}  {title}  {files}, {messages}, {size}{part}{gone}\n"


def _is_unsure(removal: Removal) -> bool:
    return bool(removal.kept or removal.kept_entries)


def _write_kept(removal: Removal) -> None:
    """Name what stays because its date may be that of a clock that was wrong."""
    for file in removal.kept[:_NAMED]:
        since = f"since {terminal.moment(file.gone_at)}" if file.gone_at else "without a date"
        why = "not confirmed by any sync" if file.is_date_possible else "which cannot be right"
        say(f"Kept: {file.path} is gone {since}, {why}.")
    if len(removal.kept) > _NAMED:
        say(f"Kept: {terminal.many(len(removal.kept) - _NAMED, 'more file')} for the same reason.")
    if removal.kept_entries:
        say(
            f"Kept: {terminal.many(removal.kept_entries, 'task or message', 'tasks and messages')}."
        )
    if any(file.is_date_possible for file in removal.kept):
        say("The clock may have been wrong, or no sync ran for long. To remove it: --before DATE")
    elif _is_unsure(removal):
        say("The clock was wrong. To remove everything that is gone: --gone without --before")


def write_unused(found: Unused) -> None:
    """Print what `compact` would gain."""
    free = f"at least {terminal.size(found.free)} of it unused" if found.free else "all in use"
    say(f"The database takes {terminal.size(found.size)}, {free}.")
    if found.has_traces:
        say(_TRACES)


def write_compacted(done: Compaction, *, as_json: bool) -> None:
    if as_json:
        write([safe_json(asdict(done)) + "\n"])
    say(f"Size before: {terminal.size(done.before)}, after: {terminal.size(done.after)}.")


def write_forgotten(done: Forgetting, *, as_json: bool, dry_run: bool) -> None:
    """Print what `forget` removed, or would remove, and where copies are."""
    if as_json:
        write([safe_json(asdict(done)) + "\n"])
    else:
        for conversation in done.conversations:
            rows = terminal.many(conversation.messages, "message")
            write([f"{_named(conversation.session_key, conversation.title)}  {rows}\n"])
        write(f"{path}\n" for path in done.files)
        write(f"{path}  (only its own entries)\n" for path in done.shared)
    verb = "Would forget" if dry_run else "Forgot"
    parts = [
        terminal.many(len(done.conversations), "conversation"),
        terminal.many(len(done.files), "file"),
        terminal.size(done.bytes),
        terminal.many(done.messages, "message"),
    ]
    say(f"{verb} {', '.join(parts)}.")
    for copy in done.copies:
        say(f"Kept, {_WHY[copy.why]}: {_named(copy.session_key, copy.title).rstrip()}")
    if done.copies:
        say("To forget these too: add --copies, or forget them one by one.")
    if done.unnamed_prompts:
        prompts = terminal.many(done.unnamed_prompts, "prompt")
        say(
            f"Kept {prompts} of the history with the same text: they name no conversation. "
            "To forget the whole history: assoc-ingest forget history.jsonl"
        )
    if done.quoting_notes:
        say(f"{verb} {_notes(done.quoting_notes)}, with a sentence of it.")
    if done.kept_notes:
        say(
            f"Kept {_notes(done.kept_notes)}: your own words. To remove one: "
            f"assoc-ingest note {done.kept_notes[0]} --remove"
        )
    _say_what_remains(done)
    say("The agent's own files are untouched; later syncs skip them.")
    if dry_run:
        say("To forget it, run the same command without --dry-run.")


def _notes(refs: Sequence[str]) -> str:
    return f"{terminal.many(len(refs), 'note')} ({', '.join(refs)})"


def _say_what_remains(done: Forgetting | SecretForgetting) -> None:
    if done.is_pending:
        say(_TRACES)
    for path in done.put_aside:
        say(f"A damaged copy of the database may still contain it; delete that file: {path}")


def write_secret(done: SecretForgetting, *, as_json: bool, dry_run: bool) -> None:
    """Print which credential was forgotten, or would be, and where it is; never its value."""
    if as_json:
        write([safe_json(asdict(done)) + "\n"])
    else:
        write(f"{path}\n" for path in done.files)
    verb = "Would forget" if dry_run else "Forgot"
    places = terminal.many(done.places, "place")
    files = terminal.many(len(done.files), "file")
    say(f"{verb} {done.kind} {done.masked} {done.fingerprint}: {places} in {files}.")
    if done.within_words:
        say(
            f"Kept {terminal.many(done.within_words, 'place')} where it is part of a longer word. "
            "If they reveal it, forget those conversations."
        )
    _say_what_remains(done)
    say("The agent's own files still contain it; later syncs leave it out.")
    say("It is still valid: rotate it.")
    if dry_run:
        say("To forget it, run the same command without --dry-run.")


def write_tombstones(stones: list[Tombstone], *, as_json: bool) -> None:
    if as_json:
        write([safe_json([asdict(stone) for stone in stones]) + "\n"])
    else:
        write(dict.fromkeys(map(_tombstone, _without_parts(stones))))


def _without_parts(stones: list[Tombstone]) -> Iterator[Tombstone]:
    """Yield what is forgotten, without the files of a directory that is."""
    places = {(stone.root, stone.path) for stone in stones}
    for stone in stones:
        above = PurePosixPath(stone.path or "").parents
        if stone.path is None or not any((stone.root, str(place)) in places for place in above):
            yield stone


def _tombstone(stone: Tombstone) -> str:
    name = stone.session_key if stone.path is None else stone.path
    if stone.secret is not None:
        name = f"credential {stone.secret}"
    place = f"  in {stone.root}" if stone.root else ""
    return f"{terminal.moment(stone.forgotten_at)}  {name or ''}{place}\n"


def _named(session_key: str, title: str | None) -> str:
    return f"{session_key}  {cut(one_line(title or ''), _TITLE)}"


C = TypeVar("C", bound=Callable[..., object])


# ------------------------------------------------------------------------------------------------
# assoc-ingest compact


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with sizes in bytes.")
@yes_option
@database_option
def compact(database: Path, as_json: bool, yes: bool) -> int:
    """Shrink the database and erase traces of removed data.

    Rewrites the whole file. Needs free space of about twice the size of the database; half of that
    can be on another disk if SQLITE_TMPDIR names a directory there. Row ids do not change. If
    another program is reading, old pages may have to stay; compact then reports it and exits with
    3.

    \b
    Example:
      assoc-ingest compact
    """
    from ..upkeep.compact import compact as run
    from ..upkeep.compact import unused

    if asks(yes=yes or as_json):
        write_unused(unused(database))
        if not confirmed("Rewrite the database now?"):
            return 1
    write_compacted(run(database), as_json=as_json)
    return 0


# ------------------------------------------------------------------------------------------------
# assoc-ingest forget


@click.command()
@click.argument("name", required=False, metavar="[SESSION|FILE]", shell_complete=sessions)
@project_option("Everything stored so far for this project")
@click.option(
    "--secret", metavar="FINGERPRINT", help="A credential, as `secrets` names it, wherever it is."
)
@click.option("--root", help="Only in this root, if several contain it.")
@click.option("--copies", is_flag=True, help="Also forget conversations that repeat it.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--list", "is_list", is_flag=True, help="List what has been forgotten.")
@click.option("--remember", is_flag=True, help="Undo: let the next sync read it again.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@yes_option
@database_option
def forget(
    database: Path,
    name: str | None,
    project: str | None,
    secret: str | None,
    root: str | None,
    copies: bool,
    dry_run: bool,
    is_list: bool,
    remember: bool,
    as_json: bool,
    yes: bool,
) -> int:
    """Remove a conversation, a file or a credential for good.

    Removes everything that belongs to it (rows, full-text index and archive), rewrites the database
    so that no trace remains, and excludes it from all later syncs. The agent's own files are not
    touched. SESSION is a prefix of a session's key, FILE a path or a file name.

    \b
    Examples:
      assoc-ingest forget 0b7c2f4e --dry-run
      assoc-ingest forget 0b7c2f4e --yes
      assoc-ingest forget --secret 3f9a0c11d2e4b5a6
      assoc-ingest forget --list
      assoc-ingest forget --remember 0b7c2f4e
    """
    from ..upkeep.forget import SecretForgetting, Target, tombstones
    from ..upkeep.forget import forget as run
    from ..upkeep.forget import remember as take_back

    if is_list:
        _list(tombstones(database), as_json=as_json)
        return 0
    given = _given(name, project, secret, remember=remember)
    if remember:
        write_tombstones(take_back(database, given), as_json=as_json)
        say("To read what still exists: assoc-ingest sync")
        return 0
    if secret is not None and (root is not None or copies):
        raise UsageError(
            "--secret removes the credential everywhere. Leave out --root and --copies."
        )

    def carry_out(*, dry_run: bool) -> None:
        def announce(done: Forgetting | SecretForgetting) -> None:
            if isinstance(done, SecretForgetting):
                write_secret(done, as_json=as_json, dry_run=dry_run)
            else:
                write_forgotten(done, as_json=as_json, dry_run=dry_run)

        target = Target(name, project, root, secret)
        run(database, target, with_copies=copies, dry_run=dry_run, announce=announce)

    if asks(yes=yes or as_json or dry_run):
        carry_out(dry_run=True)
        if not confirmed("Forget all of this for good?"):
            return 1
    carry_out(dry_run=dry_run)
    return 0


def _list(stones: list[Tombstone], *, as_json: bool) -> None:
    write_tombstones(stones, as_json=as_json)
    if not stones:
        say("Nothing is forgotten.")
    elif any(stone.is_pending for stone in stones):
        say(_TRACES)


def _given(name: str | None, project: str | None, secret: str | None, *, remember: bool) -> str:
    """Return what is to be forgotten or remembered; raise UsageError if it is not one thing."""

    given = [one for one in (name, project, secret) if one is not None]
    if len(given) != 1 or (remember and project is not None):
        raise UsageError(
            "Give one session or file, or use --project or --secret. To preview: "
            "assoc-ingest forget SESSION --dry-run"
        )
    return given[0]


# ------------------------------------------------------------------------------------------------
# assoc-ingest price

_MOST_DOLLARS = 100_000  # for a million tokens


def _dollars(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 <= value <= _MOST_DOLLARS:  # nor is it NaN
        raise click.BadParameter(
            f"give dollars per million tokens, from 0 to {_MOST_DOLLARS:,}, not {value:g}."
        )
    return value


def _dollar_option(name: str, text: str, *, required: bool = False) -> Callable[[C], C]:
    return click.option(
        f"--{name}", type=float, metavar="DOLLARS", required=required, callback=_dollars, help=text
    )


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def price() -> None:
    """Show and set the prices from which costs are computed.

    Prices are dollars per million tokens. Each model has its list price as the library genai-prices
    knows it, unless you set one. A model without a price has no cost.

    \b
    Examples:
      assoc-ingest price list
      assoc-ingest price set my-model --input 1.25 --output 10 --cache-read 0.125
      assoc-ingest price remove my-model
    """


@price.command("set")
@click.argument("model")
@_dollar_option("input", "A million input tokens.", required=True)
@_dollar_option("output", "A million output tokens.", required=True)
@_dollar_option("cache-read", "Input read from the cache; default: as input.")
@_dollar_option("cache-write", "Input written to the cache; default: as input.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def set_one(
    database: Path,
    model: str,
    input: float,
    output: float,
    cache_read: float | None,
    cache_write: float | None,
    as_json: bool,
) -> None:
    """Set your price of a model, for all its responses.

    MODEL is the name that responses have, as `price list` shows it. Syncs and updates never change
    a price that you set.

    \b
    Example:
      assoc-ingest price set my-model --input 1.25 --output 10
    """
    from ..store.database import writing
    from ..sync.prices import all_prices, set_price, used

    if not model.strip():
        raise UsageError(
            "Give the name of a model. To see those that occur: assoc-ingest price list"
        )
    reading(database).close()  # a price alone makes no database
    stated = {"input": input, "output": output, "cache_read": cache_read}
    stated["cache_write_5m"] = cache_write
    with writing(database) as connection:
        set_price(connection, model, {k: v for k, v in stated.items() if v is not None})
        prices, is_used = all_prices(connection, model), used(connection, model)
    _write_prices(database, prices, as_json=as_json)
    if not is_used:
        say(f"No response is by {safe(model)} so far. Models that occur: assoc-ingest price list")


@price.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def list_all(database: Path, as_json: bool) -> None:
    """List the prices of all models that occur, in dollars per million tokens.

    `origin` is `user` for a price that you set, else the version of the library that it is from. A
    model without a price has no cost. A web search is priced by the thousand.

    \b
    Example:
      assoc-ingest price list
    """
    from ..sync.prices import all_prices

    _write_prices(database, all_prices(reading(database)), as_json=as_json)


@price.command("remove")
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def remove_one(database: Path, model: str, as_json: bool) -> None:
    """Remove your price of a model; its list price counts again, if it has one.

    \b
    Example:
      assoc-ingest price remove my-model
    """
    from ..store.database import writing
    from ..sync.prices import all_prices, remove_price

    reading(database).close()
    with writing(database) as connection:
        remove_price(connection, model)
        prices = all_prices(connection, model)
    say(f"Removed your price of {safe(model)}.")
    if prices or as_json:
        _write_prices(database, prices, as_json=as_json)


def _write_prices(database: Path, prices: Sequence[Mapping[str, object]], *, as_json: bool) -> None:
    from ..ask.output import write_table
    from ..questions.fit import SCHEMA

    if as_json:
        write([safe_json({"schema": SCHEMA, "items": prices}) + "\n"], is_exact=True)
    elif not prices:
        say("No model has a price.")
    else:
        rows = [
            [Figure(f"{v:,.6g}") if isinstance(v, float) else v for v in row.values()]
            for row in prices
        ]
        write_table(reading(database), list(prices[0]), rows, whole=False)


# ------------------------------------------------------------------------------------------------
# assoc-ingest prune


@click.command()
@click.option("--gone", is_flag=True, help="Remove data of files the agent has deleted (required).")
@click.option("--before", help="Only data gone for longer than this: 90d, 12w or a date.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@yes_option
@database_option
def prune(
    database: Path, gone: bool, before: str | None, dry_run: bool, as_json: bool, yes: bool
) -> int:
    """Remove data of files that agents have deleted.

    A sync keeps this data; only prune removes it, from tables and archive. This cannot be undone.
    The database file does not shrink until you run `compact`.

    Ages are measured by the recorded syncs: the time between two syncs counts for at most half of
    an age. Data that is old enough only because of a wrong clock or one long pause is kept and
    listed; give a date to remove it.

    \b
    Examples:
      assoc-ingest prune --gone --dry-run
      assoc-ingest prune --gone --before 90d
    """
    from ..upkeep.prune import prune_gone

    if not gone:
        raise UsageError(
            "Add --gone to remove data of deleted files. "
            "To preview: assoc-ingest prune --gone --dry-run"
        )
    if asks(yes=yes or as_json or dry_run):
        removal = prune_gone(database, before, dry_run=True)
        write_pruned(removal, as_json=False, dry_run=True)
        if removal.is_nothing:
            return 0
        if not confirmed("Remove all of this?"):
            return 1
    removal = prune_gone(database, before, dry_run=dry_run)
    write_pruned(removal, as_json=as_json, dry_run=dry_run)
    return 0


# ------------------------------------------------------------------------------------------------
# assoc-ingest restore


@click.command()
@click.argument("name", required=False, metavar="[SESSION|FILE]", shell_complete=sessions)
@click.option("--all", "everything", is_flag=True, help="Restore every file of every root.")
@click.option(
    "--to",
    "directory",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Target directory; created if missing.",
)
@click.option(
    "--generation",
    type=int,
    help="Which file to restore if several have had this path, counted from 0.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def restore(
    name: str | None,
    database: Path,
    everything: bool,
    directory: Path,
    generation: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Write the original files back, byte for byte.

    SESSION is a prefix of a session's key and restores its transcript, the files of its subagents,
    its tool results, tasks, todos, plan, pasted texts and team. FILE is a path as printed by `list
    files`, or a file name with or without extension. Files keep their path relative to the root; if
    two roots contain the same path, each root gets its own directory. Existing files are never
    overwritten.

    \b
    Examples:
      assoc-ingest restore 0b7c2f4e --to rescued
      assoc-ingest restore --all --to rescued --dry-run
    """
    from ..upkeep.restore import restore as run
    from ..upkeep.restore import select, select_all

    if (name is None) != everything:
        raise click.UsageError("Give a session or a file, or use --all.")
    connection = reading(database)
    selected = (
        select_all(connection, generation) if name is None else select(connection, name, generation)
    )
    total = sum(file.known.checkpoint.offset for file in selected)
    done: list[Restored] = []
    written = 0
    with progress_in_bytes("Writing") as progress:
        for file in run(connection, selected, directory, dry_run=dry_run):
            done.append(file)
            written += file.bytes
            progress(written, total)
    if not write_report(done, directory, as_json=as_json, dry_run=dry_run):
        raise click.exceptions.Exit(1)


# ------------------------------------------------------------------------------------------------
# assoc-ingest verify


@click.command(short_help="Check the database against the source files and itself.")
@jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@database_option
def verify(database: Path, jobs: int | None, as_json: bool) -> None:
    """Check the database against the source files and for internal consistency.

    All archived files are decompressed, parsed again and compared with the tables; checksums are
    compared with the files that still exist. Each problem is printed with the command that repairs
    it. Exits with 1 if a problem was found; warnings do not count.

    \b
    Example:
      assoc-ingest verify
    """
    from ..upkeep.verify import verify as run

    with progress_in_bytes("Checking") as progress:
        verdict = run(database, progress, jobs)
    write_verdict(verdict, as_json=as_json)
    if not verdict.ok:
        raise click.exceptions.Exit(1)
