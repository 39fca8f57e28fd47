"""What `prune`, `forget`, `compact`, `restore` and `verify` print."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from .. import terminal
from ..ask.output import say, write
from ..terminal import Paint, cut, one_line, pad, safe_json
from ..upkeep.check import Finding, Verdict
from ..upkeep.restore import IDENTICAL, NOT_ARCHIVED, REFUSED, WRITTEN, Restored

if TYPE_CHECKING:
    from ..upkeep.compact import Compaction, Unused
    from ..upkeep.forget import Forgetting, Tombstone
    from ..upkeep.forget_secret import SecretForgetting
    from ..upkeep.prune import LostSession, Removal


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
    status = "would write" if dry_run and file.status == WRITTEN else file.status
    size = f" ({terminal.size(file.bytes)})" if file.status == WRITTEN else ""
    note = f": {file.note}" if file.note else ""
    place = file.target or f"{file.root}/{file.path}"
    return f"{status}  {place}{size}{note}".replace("\n", "\\n")


def _sum(counts: Counter[str], written: int, *, dry_run: bool) -> str:
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
    if done.is_pending:
        say(_TRACES)
    for path in done.put_aside:
        say(f"A damaged copy of the database may still contain it; delete that file: {path}")
    say("The agent's own files are untouched; later syncs skip them.")
    if dry_run:
        say("To forget it, run the same command without --dry-run.")


def write_secret(done: SecretForgetting, *, as_json: bool, dry_run: bool) -> None:
    """Print which credential was forgotten, or would be, and where it stands; never what it is."""
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
    if done.is_pending:
        say(_TRACES)
    for path in done.put_aside:
        say(f"A damaged copy of the database may still contain it; delete that file: {path}")
    say("The agent's own files still contain it; later syncs leave it out.")
    say("It is still valid: rotate it.")
    if dry_run:
        say("To forget it, run the same command without --dry-run.")


def write_tombstones(stones: list[Tombstone], *, as_json: bool) -> None:
    if as_json:
        write([safe_json([asdict(stone) for stone in stones]) + "\n"])
    else:
        write(dict.fromkeys(map(_tombstone, _without_parts(stones))))
    if not stones:
        say("Nothing is forgotten.")
    elif any(stone.is_pending for stone in stones):
        say(_TRACES)


def write_remembered(stones: list[Tombstone], *, as_json: bool) -> None:
    if as_json:
        write([safe_json([asdict(stone) for stone in stones]) + "\n"])
    else:
        write(dict.fromkeys(map(_tombstone, _without_parts(stones))))
    say("To read what still exists: assoc-ingest sync")


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
