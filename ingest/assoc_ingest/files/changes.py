"""From files to steps for the store: what changed, its bytes, and their records.

Nothing here touches the database, so a large sync can read ahead while a batch is indexed and
committed. A file whose stat changed is read like this:

- it is compared with its checkpoint (`tail.resume`): it continues, it was rewritten, it came back
  with other content after it was gone (a new generation), or only its stat changed;
- an `Opened` step says which. A `FilePart` step follows for each stretch of whole lines, about
  4 MB, with its records, and a `Closed` step at the end;
- a `Border` marks the start of a group that is stored completely or not at all (a file that is read
  from its beginning again, a line of several parts). If a read fails later, the group is undone;
- an entry of a store (`stores`) is a log that is always rewritten, unless it is the same;
- a document is one `FilePart`. If it cannot be parsed, its old rows are kept: half-written
  documents are normal, and complete at the next sync.

A large stretch is compressed in a thread while its lines are parsed: zstd releases the interpreter.
`replay` does the same from the archive.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from ..records import Issue, LineType, Record
from ..source import LOG, PRIVATE, UNKNOWN_CONTENT, UNREAD, Claim, KnownFile, Line, Source, claim_at
from . import tail, walk
from .archive import Compressor, Frame
from .exclusions import document_without, issues_at, log_without, stretches_without, without_sample
from .stores import Lines, Listed, PackedError, Work, content_size, open_content
from .tail import (
    MAX_LINE,
    Parser,
    Prefix,
    Stretch,
    changed_ns,
    cut,
    first_records,
    lines_in,
    lines_in_parts,
    pieces,
    read_at,
    resume,
    stretches,
    wait_out,
)
from .walk import FoundFile

# ------------------------------------------------------------------------------------------------
# The steps that reading files produces for the store.
#
# An `Opened` step says which file the following parts belong to; a `FilePart` is a stretch of
# whole lines with its records, and `Closed` is the end. A `Border` marks the start of a group
# that is stored completely or not at all. A file of which nothing is stored is one step.


@dataclass(frozen=True, slots=True)
class Border:
    """Ends a batch. What follows is stored completely or not at all, so it may have to be undone.

    It ends with a part that is not open, or with its file.
    """


@dataclass(frozen=True, slots=True)
class Opened:
    """The following parts belong to this file.

    `prefix` is where reading continues; None keeps the checkpoint, for a broken document.
    """

    work: Work
    claim: Claim
    known: KnownFile | None
    prefix: Prefix | None
    generation: int
    is_rewritten: bool


@dataclass(frozen=True, slots=True)
class FilePart:
    """A stretch of the opened file: its records, its compressed bytes, and the prefix at its end.

    `frames` waits for the thread that compresses. No batch may end after a part that is open: the
    file is being rewritten, or a line continues in the next part.
    """

    records: list[Record]
    frames: Callable[[], list[Frame]]
    prefix: Prefix | None
    size: int
    is_open: bool = False
    context: str | None = None
    """The context for the lines after it, as it is stored; see `source.Context`."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The opened file was read to its end.

    Only now may its stat be stored. Otherwise a sync that is killed between two batches of a large
    file would leave it half read, and it would look unchanged from then on.
    """


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The stat of the file changed, but its content did not."""

    known: KnownFile
    found: FoundFile
    is_document: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The file could not be read to its end, for this reason."""

    path: str
    reason: str
    refused: tuple[int, ...] | None = None
    """Its stat, if it may not be opened: trying again before that changes is of no use."""


Step = Border | Opened | FilePart | Closed | Unchanged | Unreadable


def without_unsettled(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield all steps except those of databases with an unreadable entry.

    So the next sync lists such a database again, even if it has not changed.
    """
    failed: set[str] = set()
    is_left_out = False
    for step in steps:
        if isinstance(step, Unreadable):
            failed.add(step.path)
        if isinstance(step, Opened):
            is_left_out = step.work.listed is not None and step.work.found.location in failed
        elif not isinstance(step, FilePart | Closed):
            is_left_out = False
        if not is_left_out:
            yield step


_SNIFFED = 8192  # bytes that are searched for a NUL, which shows that a file is binary
_LARGE = 64 * 1024  # bytes that are worth compressing in a thread
_HELD = 16 * 1024 * 1024  # bytes of an entry that are kept while it is compared
LONG_LINE = "line is longer than 64 MiB"


def read(work: Iterable[Work], *, thorough: bool) -> Generator[Step, None, None]:
    """Yield the steps for each file. With `thorough`, every byte read before is compared."""
    with ThreadPoolExecutor(1, "compress") as thread:
        packer = Packer(Compressor(), thread)
        for item in work:
            yield from read_file(item, packer, thorough=thorough)


@dataclass(frozen=True, slots=True)
class Packer:
    """Compresses frames for the archive, large ones in a thread, if there is one."""

    compressor: Compressor
    thread: ThreadPoolExecutor | None = None

    def begin(self, start: int, data: bytes) -> Callable[[], list[Frame]]:
        """Begin to compress the bytes at `start`; the returned function waits for the frames."""
        if self.thread is None or len(data) < _LARGE:
            return partial(self.compressor.frames, start, data)
        return self.thread.submit(self.compressor.frames, start, data).result


# -- one file ------------------------------------------------------------------------------------


def read_file(work: Work, packer: Packer, *, thorough: bool) -> Iterator[Step]:
    """Yield the steps for one file. With `thorough`, every byte read before is compared."""
    shape = work.root.source.shape(work.claim)
    if work.listed is not None:
        yield from _note_database(work, work.listed)
        return
    if shape == UNREAD:
        yield Opened(work, work.claim, work.known, Prefix(), 0, work.known is not None)
        if records := work.root.source.parse(work.claim, []):
            yield FilePart(records, list, Prefix(), 0)
        yield Closed()
        return
    wait_out(changed_ns(work.found.mtime_ns, work.found.ctime_ns))
    try:
        if work.entry is not None:
            with work.entry.open() as lines:
                yield from _read_entry(work, lines, packer)
        else:
            yield from _read_opened(work, shape, thorough, packer)
    except PackedError as error:
        yield from _note_failure(work, error.reason)
    except OSError as error:
        is_refused = isinstance(error, PermissionError) and work.entry is None
        stat = work.found[2:] if is_refused else None
        yield Unreadable(work.found.location, error.strerror or str(error), stat)


def _note_failure(work: Work, reason: str) -> Iterator[Step]:
    """Record that a file cannot be read until it changes; what was read of it before is kept."""
    known, claim = work.known, work.claim
    if known is not None:
        claim = work.root.source.as_kind(claim, known.kind)
    generation = known.generation if known is not None else 0
    yield Opened(work, claim, known, None, generation, False)
    yield FilePart([Issue(reason, 0, None, 0, 0)], list, None, 0, context=known and known.context)
    yield Closed()
    yield Unreadable(work.found.location, reason)


def _read_opened(work: Work, shape: str, thorough: bool, packer: Packer) -> Iterator[Step]:
    try:
        descriptor = open_content(work.found.location)
    except FileNotFoundError:
        return  # it vanished since the walk; the next sync marks it as gone
    try:
        size = content_size(descriptor, work.found.location, work.found.size)
        if shape == LOG:
            yield from _read_log(work, descriptor, size, thorough, packer)
        elif shape == UNKNOWN_CONTENT and _is_binary(descriptor, size):
            yield from _note_binary(work)
        else:
            yield from _read_document(work, descriptor, size, packer, is_private=shape == PRIVATE)
    finally:
        os.close(descriptor)


def _read_log(
    work: Work, descriptor: int, size: int, thorough: bool, packer: Packer
) -> Iterator[Step]:
    source, known, claim, generation = work.root.source, work.known, work.claim, 0
    prefix = _resumed(work, claim, descriptor, size, thorough)
    if prefix is None or prefix.offset == 0:
        claim = source.classify(claim, lines_in(descriptor, size))
        if claim.kind != work.claim.kind:
            prefix = _resumed(work, claim, descriptor, size, thorough)
    if source.shape(claim) != LOG:
        yield from _note_document(work, claim, descriptor, size)
        return
    if known is not None:
        generation = known.generation
        if prefix is None and known.gone_at is not None:
            # A sync saw it gone, and it came back with other content: the old rows stay.
            known, generation = None, generation + 1
        elif prefix is not None and prefix.offset == size and _is_where_it_was(work):
            yield Unchanged(known, work.found)
            return
    is_rewritten = known is not None and prefix is None
    opened = Opened(work, claim, known, prefix or Prefix(), generation, is_rewritten)
    read_now = stretches(
        descriptor,
        prefix.offset if prefix else 0,
        size,
        lambda tail: source.complete_prefix(claim, tail),
    )
    yield from _log_parts(opened, read_now, size, packer)


def _read_entry(work: Work, lines: Lines, packer: Packer) -> Iterator[Step]:
    """Read an entry, compare it with what was read before, and parse it if it differs.

    A large one is read once more for that, so that memory does not have all of it.
    """
    prefix = Prefix()
    held: list[bytes] = []
    for data in lines():
        prefix = prefix.extended(data)
        if prefix.offset <= _HELD:
            held.append(data)
    if not prefix.offset and not (work.entry and work.entry.may_be_empty):
        return  # it vanished since it was listed; the next sync marks it as gone
    work = replace(work, found=work.found._replace(size=prefix.offset))
    known = work.known
    if known and _is_where_it_was(work) and known.checkpoint == prefix.checkpoint():
        yield Unchanged(known, work.found)
        return
    claim = work.root.source.classify(work.claim, lines_in_parts(iter(held) if held else lines()))
    opened = Opened(work, claim, known, Prefix(), 0, known is not None)
    read_now = iter(held) if prefix.offset <= _HELD else lines()
    del held
    yield from _log_parts(opened, cut(read_now, 0, len), prefix.offset, packer)


def _note_database(work: Work, listed: Listed) -> Iterator[Step]:
    """Record what listing a database has shown, after its entries were read."""
    yield Opened(work, work.claim, work.known, Prefix(), 0, work.known is not None)
    yield FilePart(list(listed.issues), list, Prefix(), 0)
    if listed.is_settled:
        yield Closed()


def _resumed(work: Work, claim: Claim, descriptor: int, size: int, thorough: bool) -> Prefix | None:
    """Return the prefix to continue from, None if the file was rewritten or was of another kind."""
    known = work.known
    if known is None or known.kind != claim.kind:
        return None
    odd = thorough or is_odd(known, work.found)
    return resume(descriptor, size, known.checkpoint, thorough=odd)


def _note_document(work: Work, claim: Claim, descriptor: int, size: int) -> Iterator[Step]:
    """Record that a file at the path of a log is none; its bytes are not archived.

    If a sync saw the log gone, its rows are kept, and this file is the next generation.
    """
    known, generation = work.known, 0
    if known is not None:
        generation = known.generation
        if known.gone_at is not None:
            known, generation = None, generation + 1
    data, _ = work.secrets.without(read_at(descriptor, min(size, MAX_LINE), 0), is_log=False)
    yield Opened(work, claim, known, Prefix(), generation, known is not None)
    yield FilePart(work.root.source.parse(claim, [Line(0, data)]), list, Prefix(), 0)
    yield Closed()


def _log_parts(
    opened: Opened, read_now: Iterable[Stretch], size: int, packer: Packer
) -> Iterator[Step]:
    """Yield the steps for the lines after the prefix, of a file that has this size.

    The first stretch is read before the first step: if that fails, nothing has to be undone. Most
    files have only one stretch.
    """
    work, claim, prefix = opened.work, opened.claim, opened.prefix or Prefix()
    source = work.root.source
    is_shared = work.forgotten and claim.session_key is None
    parser = Parser(source, claim, opened.known.context if opened.known and prefix.offset else None)
    is_opened = is_open = False
    for stretch, as_read, left_out in stretches_without(work.secrets, read_now):
        prefix = prefix.extended(as_read)
        was_open = is_open
        is_open = stretch.is_cut or (opened.is_rewritten and prefix.offset < size)
        if is_open and not was_open:
            yield Border()
        if not is_opened:
            yield opened
            is_opened = True
        if is_shared:
            data, records = log_without(work.forgotten, parser, stretch)
            frames = packer.begin(stretch.start, data)
        else:
            frames = packer.begin(stretch.start, stretch.data)
            records = parser.parse(stretch.lines)
        records.extend(left_out)
        records.extend(first_records(claim, stretch.start))
        if stretch.long_line:
            records.append(Issue(LONG_LINE, 1, None, stretch.first_line, stretch.long_line))
        yield FilePart(records, frames, prefix, len(stretch.data), is_open, parser.context)
    if not is_opened:
        yield opened
    yield Closed()


def _read_document(
    work: Work, descriptor: int, size: int, packer: Packer, *, is_private: bool
) -> Iterator[Step]:
    if size > MAX_LINE:
        yield Opened(work, work.claim, work.known, None, 0, False)
        yield FilePart([Issue(LONG_LINE, 1, None, 0, size)], list, None, 0)
        yield Closed()
        return
    data = b"".join(pieces(descriptor, 0, size))
    known, prefix = work.known, Prefix().extended(data)
    # The checkpoint of content of which only the hash is stored: at offset 0, nothing is archived.
    unarchived = prefix._replace(offset=0, head=b"")
    as_read = (prefix.checkpoint(), unarchived.checkpoint())
    if known and _is_where_it_was(work) and known.checkpoint in as_read:
        yield Unchanged(known, work.found, is_document=True)
        return
    data, spans = work.secrets.without(data, is_log=False)
    records = work.root.source.parse(work.claim, [Line(0, data)])
    if is_private:
        records = [_without_values(record) for record in records]
    is_shared = work.forgotten and work.claim.session_key is None
    left = document_without(work.forgotten, records, size) if is_shared else None
    if any(isinstance(record, Issue) and record.quarantined for record in records):
        yield Opened(work, work.claim, known, None, 0, False)
        issues: list[Record] = [record for record in records if isinstance(record, Issue)]
        if is_shared:  # it may be about a forgotten conversation
            issues = [without_sample(issue) for issue in issues]
        yield FilePart(issues, list, None, 0)
        yield Closed()
        return
    yield Opened(work, work.claim, known, Prefix(), 0, known is not None)
    stored = [*(records if left is None else left), *issues_at(0, spans)]
    if is_private or left is not None:
        yield FilePart(stored, list, unarchived, len(data))
    else:
        yield FilePart(stored, packer.begin(0, data), prefix, len(data))
    yield Closed()


def _without_values(record: Record) -> Record:
    """Return a record of a private document without the values that it quotes."""
    record = without_sample(record)
    return record._replace(type="") if isinstance(record, LineType) else record


def _is_binary(descriptor: int, size: int) -> bool:
    return size > MAX_LINE or b"\0" in read_at(descriptor, min(size, _SNIFFED), 0)


def _note_binary(work: Work) -> Iterator[Step]:
    """Record that a binary file exists; its bytes are not archived."""
    yield Opened(work, work.claim, work.known, Prefix(), 0, work.known is not None)
    yield FilePart(work.root.source.parse(work.claim, []), list, Prefix(), 0)
    yield Closed()


def is_odd(known: KnownFile, found: FoundFile) -> bool:
    """Does the stat show more than growth? Then every byte read before is compared."""
    return (
        known.gone_at is not None
        or known.path != found.path
        or known.inode != found.inode
        or known.device != found.device
        or found.mtime_ns < known.mtime_ns
        or (found.ctime_ns != known.ctime_ns and found.size <= known.size)
    )


def _is_where_it_was(work: Work) -> bool:
    known = work.known
    return known is not None and known.gone_at is None and known.path == work.found.path


# ------------------------------------------------------------------------------------------------
# Parses a file again from its archive, with the same result as a sync that reads it from disk.
#
# Only bytes up to the offset are archived, so every line is complete, even a last one without a
# line feed. The archived frames are cut into stretches of whole lines, about `tail.CHUNK` each,
# so that a file of any size takes the memory of one stretch.


@dataclass(frozen=True, slots=True)
class Replayed:
    """A stretch of whole lines: its borders in the file, its records, its number of lines."""

    start: int
    end: int
    records: list[Record]
    line_count: int
    """Lines that are not blank."""
    context: str | None = None
    """The context for the lines after it, as it is stored; see `source.Context`."""


def claim_of(source: Source, known: KnownFile) -> Claim | None:
    """Return the claim of a known file, None if the source no longer reads such files.

    If the path is lost, the claim is made from the row.
    """
    if walk.is_unnamed(known.path):
        return walk.claim_of_unnamed(source.name, known)
    claim = claim_at(source, known.path)
    return source.as_kind(claim, known.kind) if claim is not None else None


def replay(source: Source, claim: Claim, pieces: Iterable[bytes]) -> Iterator[Replayed]:
    """Parse the bytes of a file, which come in pieces, and yield its stretches."""
    if source.shape(claim) != LOG:
        data = b"".join(pieces)
        yield Replayed(0, len(data), source.parse(claim, [Line(0, data)]), 1)
        return
    parser = Parser(source, claim)
    for stretch in tail.cut(pieces, 0, lambda rest: source.complete_prefix(claim, rest)):
        if stretch.is_cut:
            continue
        start = stretch.first_line
        records = parser.parse(stretch.lines)
        records.extend(first_records(claim, start))
        if stretch.long_line:
            records.append(Issue(LONG_LINE, 1, None, start, stretch.long_line))
        lines = sum(1 for line in stretch.lines if line.data.strip(b" \t\r"))
        lines += stretch.long_line > 0
        yield Replayed(start, stretch.end, records, lines, parser.context)
