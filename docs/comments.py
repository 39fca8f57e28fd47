"""What the schema says of itself: the tables of a freshly migrated database and their comments.

SQLite keeps the text of a `create` statement with its comments, so a database explains itself.
A comment behind the opening line is that of the table or view, a comment behind a column that of
the column. Columns that mean the same everywhere are explained once, in the head of the first
migration. A column of a view that is passed on unchanged has the comment it has in its table.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from functools import cache

from sqlite_utils import Database, db

from assoc_ingest import sql

_RECORD_OF_MIGRATIONS = "_sqlite_migrations"

CORRECTED = {
    ("sessions", "title_source"): (
        "note (your own), custom-title, ai-title, agent-name, index, summary, prompt, history, "
        "command, slug, id, or list: its program's own list"
    ),
    ("sessions", "message_count"): (
        "user and assistant lines of the main transcript that repeat no others; "
        "see copied_message_count"
    ),
    ("sessions", "prompt_count"): "what a person typed; copies left out",
    ("sessions", "tool_call_count"): "tool invocations, subagents included; copies left out",
    ("tool_calls", "status"): (
        "ok, error, declined (a person said no), or pending: no result says yet how it ended"
    ),
}
"""Comments that are no longer true. A released migration keeps its text: `verify` compares that."""

REWORDED = {
    "ok, error, declined (a person said no) or pending (no result yet)": (
        "ok, error, declined (a person said no), or pending: no result says yet how it ended"
    ),
    "0, and one more each time a path came back with other content after it was gone": (
        "0; one more each time the path came back with other content after it was gone"
    ),
    "0: its program's own list of conversations lacks it; null where there is no such list": (
        "0: missing from its program's own list of conversations; null: there is no such list"
    ),
    "1: a list of its own says which conversations there are": (
        "1: it has its own list of conversations"
    ),
    "1: git says that something differs from the last commit; only with sync --git": (
        "1: uncommitted changes; only with sync --git"
    ),
    "1: holds letters that nobody sees, see joined_text": (
        "1: contains invisible characters, see joined_text"
    ),
    "1: holds Chinese, Japanese or Korean, see messages_cjk": (
        "1: contains Chinese, Japanese or Korean, see messages_cjk"
    ),
    "1: taken back, and so no longer part of the conversation; see superseded": (
        "1: rewound, rolled back or reverted; see superseded"
    ),
    "1: the line says that it belongs to a subagent": (
        "1: belongs to a subagent, as its line states"
    ),
    "1: the list says that it only holds sidechains": (
        "1: contains only sidechains, as the list states"
    ),
    "1: the transcripts of the agent itself; 0: of a program around it, which may repeat them": (
        "1: transcripts of the agent itself; 0: of a program around it, which may repeat them"
    ),
    "BLAKE2b of the first 1 KiB of what was read": ("BLAKE2b of the first KiB read"),
    "BLAKE2b of the last 1 KiB of what was read": ("BLAKE2b of the last KiB read"),
    "CRC-32 of all that was read": ("CRC-32 of everything read"),
    "JSON list of the files that it was applied to, where target is not all of them": (
        "JSON list of the files that it was applied to, if target is not the only one"
    ),
    "JSON that the lines before the offset leave to those behind it; null: nothing": (
        "JSON context that later lines need from lines before the offset; null: none"
    ),
    "16 random bytes that name the file for life, whatever its path and generation become": (
        "16 random bytes that identify the file permanently, whatever its path and generation"
    ),
    "branch that git said is checked out; only with sync --git": (
        "checked-out branch according to git; only with sync --git"
    ),
    "branch that git says is checked out, else that of the newest session": (
        "checked-out branch according to git, else the branch of the newest session"
    ),
    "bytes, when it was last looked at": ("size in bytes at the last sync"),
    "calls as the result of its call states them; null where it has a file of its own": (
        "number of calls stated by the result that ended it; null: it has its own file"
    ),
    "color that a person gave it": ("colour chosen by a person"),
    "label that a person gave it; empty: taken back": ("label given by a person; empty: removed"),
    "days after which the agent deletes transcripts, as its settings say; null: its default, 30": (
        "days after which the agent deletes transcripts, from its settings; null: its default, 30"
    ),
    "directory of the repository that it is a worktree of, as its path, a link or git says": (
        "directory of the repository of this worktree, from its path, a link or git"
    ),
    "first thing a person typed": ("first text that a person typed"),
    "how the system is called: Claude Code, Chorus, ...": (
        "name of the system: Claude Code, Chorus, ..."
    ),
    "id that the API gave; a copied call has a row of its own": (
        "id from the API; a copied call has its own row"
    ),
    "last line that a branch has of the session that it comes from": (
        "last line that a branch shares with its original session"
    ),
    "length of what it wrote, as its file has it; null: not known. An estimate of "
    "output_tokens where partial is 1: see docs/costs.md": (
        "bytes written by the response; null: unknown. Basis of the estimate of "
        "output_tokens if partial is 1: see docs/costs.md"
    ),
    "length of what the response wrote in this file, where a reader measures it: see "
    "docs/costs.md": ("bytes written by the response in this file, if measured: see docs/costs.md"),
    "length of what it wrote, where it is known": ("bytes written by the response, if known"),
    "number of the row; a sync from scratch may give another": (
        "row number; a sync from scratch may assign another"
    ),
    "number of its row in the table of its store": ("row number in the table of its store"),
    "of the line with the most output tokens, as a whole": (
        "from the line with the most output tokens"
    ),
    "of the same line, as all counts": ("from the same line as all counts"),
    "of the line that counts": ("from the line that counts"),
    "pieces: decoded objects and quarantined stretches; no blank lines": (
        "decoded objects and quarantined records; blank lines do not count"
    ),
    "since when nothing names it: only lists ever did, and none does any more": (
        "when it disappeared from the only lists that had it"
    ),
    "since when the root is missing; its rows stay": ("when the root went missing; its rows stay"),
    "since when its directory is missing": ("when its directory went missing"),
    "since when its file or its list lacks it": ("when it disappeared from its file or list"),
    "stat of the last look: an unchanged one is not opened": (
        "modification time at the last sync; a file with an unchanged stat is not opened"
    ),
    "sum over those lines: what a program counts that adds them all up": (
        "sum over all these lines, as programs count that add them up"
    ),
    "text without invisible letters, so that the words are whole that they take "
    "apart; null where it has none": (
        "text without invisible characters, so that the words are found; null: it has none"
    ),
    "the application's agent with whom the conversation is held": (
        "the application's agent in the conversation"
    ),
    "the canonical occurrence of this block; null: this is it": (
        "the original of this block; null: this is the original"
    ),
    "the conversation it stands for, once it is there": (
        "the conversation that it represents, once it has been read"
    ),
    "the conversation of another system that it stands for": (
        "the conversation of another system that it represents"
    ),
    "the conversation that another system's entry stands for": (
        "the conversation of another system or home that this entry represents"
    ),
    "the project that stands for this directory, where several agents or homes know "
    "it; null for that one": (
        "the project that represents this directory, if several agents or homes know it; "
        "null: this one"
    ),
    "the same of tool_text": ("the same for tool_text"),
    "the same, as git said; only with sync --git": (
        "the same according to git; only with sync --git"
    ),
    "the same, once it is there": ("the same, once it has been read"),
    "the project, once it is known": ("the project, once known"),
    "the session, once it is there": ("the session, once it has been read"),
    "the subagent, once it is there": ("the subagent, once it has been read"),
    "the team, once it is there": ("the team, once it has been read"),
    "title of the session, once it is there": ("title of the session, once it has been read"),
    "the session whose chain this one begins with": ("the session that this one is a fork of"),
    "those of them that repeat lines of another session": (
        "how many of them repeat lines of another session"
    ),
    "those of them that say isSidechain": ("how many of them have isSidechain"),
    "time of its first chain line that no other file has: who copied from whom": (
        "time of its first line that no other file has; shows which file is the copy"
    ),
    "tokens that the model wrote, thinking included": (
        "tokens that the model wrote, including thinking"
    ),
    "tool invocations, subagents included; copies left out": (
        "tool calls, including subagents, without copies"
    ),
    "what a person typed; copies left out": ("prompts that a person typed, without copies"),
    "user and assistant lines of the main transcript that repeat no others; see "
    "copied_message_count": (
        "user and assistant lines of the main transcript, without repeated lines; see "
        "copied_message_count"
    ),
    "user and assistant lines that repeat those of another session and are not in message_count": (
        "user and assistant lines that repeat another session; not in message_count"
    ),
    "web searches that the call made as its result states them": (
        "web searches made by the call, as its result states"
    ),
    "what a live registry or a job last said: busy, idle, working, done ...": (
        "last status in a live registry or a job: busy, idle, working, done ..."
    ),
    "what it was applied to: path, command, pattern, query": (
        "target of the call: path, command, pattern, query"
    ),
    "what it was asked, in a few words": ("its task, in a few words"),
    "what it was told at first": ("the initial prompt"),
    "what it is for": ("purpose"),
    "what it is for, where that is stated": ("purpose, if stated"),
    "what is to be done": ("the task"),
    "what is to be done, in a few words": ("the task, in a few words"),
    "what is shown while it runs": ("text shown while it is in progress"),
    "what makes two lines the same response": ("identifies lines of the same response"),
    "what people and agents said": ("text of people and agents"),
    "what tools and the program gave; exactly one of the two is not null": (
        "tool input and output, and text of the program; exactly one of text and "
        "tool_text is not null"
    ),
    "what the tool was given, as JSON": ("input of the call, as JSON"),
    "what it gave back": ("output of the call"),
    "what is wrong, in words": ("description of the problem"),
    "what reports name it by": ("its name in reports"),
    "what it does": ("description"),
    "what is searched: both": ("the searched text: both"),
    "when the agent may delete it; null: it has": (
        "when the agent may delete it; null: it already did"
    ),
    "when git last answered for its directory": (
        "time of the last answer of git for its directory"
    ),
    "whose it is, or between whom": ("owner, or sender and recipient"),
    "why it ended early": ("error that ended it"),
    "why the model stopped: end_turn, tool_use, max_tokens ...; null where the line "
    "that counts does not say": (
        "why the model stopped: end_turn, tool_use, max_tokens ...; null: not stated"
    ),
    "position of the content block in that line": ("position of the content block in the line"),
    "place in its list; of one that is gone, its last one": (
        "place in its list; for a removed item, its last place"
    ),
    "file; transcript: its list has no file that names anything, so the last call tells of it": (
        "file, or transcript: the list has no file with items, so they come from the last call"
    ),
    "file; transcript: no file of it is there, so calls tell of it": (
        "file, or transcript: it has no file, so it comes from calls"
    ),
    "file; transcript: no file of it is there, so calls and attachments tell of it": (
        "file, or transcript: it has no file, so it comes from calls and attachments"
    ),
    "of a transcript: time of that call": ("for a transcript: time of that call"),
    "of a transcript: that call": ("for a transcript: that call"),
    "of a transcript: first byte of its line": ("for a transcript: first byte of its line"),
    "of a transcript: time of the last call that counts": (
        "for a transcript: time of the last call that counts"
    ),
    "of a transcript: JSON array of the tasks that it waits for, see task_dependencies": (
        "for a transcript: JSON array of the tasks that it waits for, see task_dependencies"
    ),
    "of a transcript: the last call that counts": ("for a transcript: the last call that counts"),
    "of a transcript: the call that proposed it": ("for a transcript: the call that proposed it"),
    "of a ticket: when a sync found it missing from its list": (
        "for a ticket: when a sync found it missing from its list"
    ),
    "of a worktree: its path; of a plan: its file": (
        "for a worktree its path, for a plan its file"
    ),
    "of a worktree: the directory from which it was made": (
        "for a worktree: the directory from which it was created"
    ),
    "as the last call that proposed it ended: accepted, rejected, or proposed (no "
    "answer yet); null: no call did": (
        "accepted, rejected, or proposed (no answer yet), from the last call that "
        "proposed it; null: no call did"
    ),
    "JSON object: what else the list, registry or sidecar states of it": (
        "JSON object with other fields of the list, registry or sidecar"
    ),
    "JSON object: what else the list states of it": ("JSON object with other fields of the list"),
    "JSON object: what else the configuration states of it": (
        "JSON object with other fields of the configuration"
    ),
    "JSON object: what else its file states of it": ("JSON object with other fields of its file"),
    "1: the piece became no record; 0: a record with loss": (
        "1: the record could not be read; 0: it was stored incompletely"
    ),
    "the task; of one that was made, its result tells": (
        "the task; for a new task, its result states it"
    ),
    "JSON object: what the call, or the line, states; null: only the result is in this file": (
        "JSON object with the input of the call, or the line; null: only the result is in this file"
    ),
    "JSON object: what the result adds": ("JSON object with what the result adds"),
    "the conversation; beside a path: the one that it was forgotten with": (
        "the conversation; with a path, the one that it was forgotten with"
    ),
    "the file or directory, relative to the root; null: all that names the conversation": (
        "the file or directory, relative to the root; null: everything of the conversation"
    ),
    "1: pages with its text may still be on the disk, until `compact` has run": (
        "1: its text may remain on disk until `compact` has run"
    ),
    "1: pages with it may still be on the disk, until `compact` has run": (
        "1: it may remain on disk until `compact` has run"
    ),
    "letters that it has": ("its length in characters"),
    "letters of that run": ("length of that run"),
    "where in it the longest run of letters and digits begins; null: only the rule "
    "finds it again": (
        "start of its longest run of letters and digits; null: only the rule recognises it"
    ),
    "bytes that the fingerprint is of; a copy has as many, and a log begins with them": (
        "number of bytes of the fingerprint; a copy has as many, and a log begins with them"
    ),
    "the first line that was taken back, if it is named; of an unknown one, the whole file was": (
        "the first line that was taken back, if named; an unknown uuid means the whole file"
    ),
    "where the first line begins that was taken back, if that is known": (
        "first byte of the first line that was taken back, if known"
    ),
    "the line that says so: everything between is taken back": (
        "the line that takes it back: everything in between is taken back"
    ),
    "header (what git says of the file), hunk (where the next lines stand), add, "
    "remove or context": (
        "header (git's facts about the file), hunk (position of the next lines), add, "
        "remove or context"
    ),
    "the line, without its sign if it is added, removed or context; stars cover what "
    "looks like a credential": (
        "the line without its sign; text that looks like a credential is masked with stars"
    ),
    "staged: against the last commit; unstaged: against what is staged": (
        "staged: compared with the last commit; unstaged: compared with the staged files"
    ),
    "branch on which it was said; that of its session where its lines state none": (
        "branch on which it was said; if its lines state none, the branch of its session"
    ),
    "conversation of another system that this one repeats, where that is here too": (
        "the conversation of another system that this one repeats, if it was read, too"
    ),
    "name of the application's agent with whom it is held": ("name of the application's agent"),
    "name; its key where no configuration names it": ("name; its key if no configuration names it"),
    "tells those of one store apart: a status, a type": ("status or type within its store"),
    "first part of the name by which show opens it; null: its line is its name": (
        "first part of its name for `show`; null: its line is its name"
    ),
    "1: what it says is found elsewhere, so search leaves it out": (
        "1: search finds its text elsewhere, and leaves it out"
    ),
    "file, inbox, or transcript: a line of one states it": ("file, inbox or transcript"),
    "of its own or of its session": ("its own project, or that of its session"),
    "millionths of a dollar for a million tokens, as all below": (
        "millionths of a dollar per million tokens, like all below"
    ),
    "millionths of a dollar for a thousand searches": (
        "millionths of a dollar per thousand searches"
    ),
    "1: the session went on after it": ("1: the session continued after it"),
    "day in the time zone of who asks": ("day in your time zone"),
    "cost in dollars, of what an agent states and of the same sessions": (
        "cost in dollars, as stated by an agent and for the same sessions"
    ),
    "tokens that were not cached, as all counts as stated": (
        "tokens that were not cached; like all counts, as stated"
    ),
    "A content block of a line: what was said, thought, called and answered": (
        "A content block of a line: text, thinking, tool call or result"
    ),
    "A tool invocation, with its result as soon as it is there": (
        "A tool call, with its result once available"
    ),
    "Token counts of an API response as one file states them; responses has each once": (
        "Token counts of an API response in one file; `responses` has each response once"
    ),
    "An API response, its tokens counted once however many lines and files repeat it": (
        "An API response, counted once however many lines and files repeat it"
    ),
    "A title line; the conversation it is for often lies in another file": (
        "A title line; its conversation is often in another file"
    ),
    "An edge as one file states it; both tasks state theirs, task_dependencies has each once": (
        "A dependency as stated in one file; both tasks state it, `task_dependencies` has it once"
    ),
    "An edge: task_key is blocked by blocker_key": ("A dependency: blocker_key blocks task_key"),
    "Something that could not be read, or only with loss": (
        "A record that could not be read, or was stored incompletely"
    ),
    "A type of line in a file, and how often it stands there": (
        "A type of line in a file, and how often it occurs"
    ),
    "A named agent of an application: conversations are held with it": (
        "A named agent of an application"
    ),
    "What a line or a document states beside what has a row or a column": (
        "Data of a line or document that has no row or column of its own"
    ),
    "A tool result that does not say which call it answers; it is taken for that of "
    "the last open call": (
        "A tool result without the id of its call; it is matched to the last open call"
    ),
    "A line that repeats a message of a subagent which has no file of its own": (
        "A line that repeats a message of a subagent without its own file"
    ),
    "What a line of a transcript states about tasks, todos or a plan; tasks, todos "
    "and plans have what follows": (
        "A statement about tasks, todos or a plan in a transcript; `tasks`, `todos` and "
        "`plans` have the result"
    ),
    "A plan: a file, or what only a transcript tells of": (
        "A plan, from a file or from a transcript"
    ),
    "What a conversation took back: a rewind, a roll-back, a revert": (
        "A rewind, roll-back or revert in a conversation"
    ),
    "A model whose price the library does not know; asked again when the library is newer": (
        "A model without a price in the library; a newer version of the library is asked again"
    ),
    "The name of this database: another one, made from the same files, has another": (
        "The unique key of this database"
    ),
    "A file that was forgotten: what other records have of it has to go, too": (
        "A forgotten file, which other copies of the record have to delete, too"
    ),
    "What an agent states of its own use at a line: sums of its session so far": (
        "Usage stated by an agent in a line: sums of its session so far"
    ),
    "Price of a model from a day on; one you change or add is never overwritten": (
        "Price of a model from a given day; your own prices are never overwritten"
    ),
    "A line of the diff of a staged or unstaged change, at the last sync --git; at "
    "most 512 KiB for the staged changes of a project and as much for the others, "
    "and 1,000 lines a file": (
        "A line of the diff of a staged or unstaged change at the last sync --git; at "
        "most 512 KiB for each of the two in a project, and 1,000 lines per file"
    ),
    "Messages that hold Chinese, Japanese or Korean: what messages_cjk_fts indexes": (
        "Messages with Chinese, Japanese or Korean text, indexed by messages_cjk_fts"
    ),
    "Messages with the titles of their session and project; copies in forked sessions left out": (
        "Messages with the titles of their session and project, without copies in forked sessions"
    ),
    "Tool calls with the whole text of input and output; copies left out": (
        "Tool calls with the whole text of input and output, without copies"
    ),
    "Every type of line that was ever seen in files of a system, and how often": (
        "All types of lines ever seen in files of a system, and how often"
    ),
    "Why tools disagree: the same transcripts of each agent, counted in five ways, "
    "of which the last is ours, and beside what the agent states": (
        "Why tools disagree: the transcripts of each agent counted in five ways, the "
        "last of which is ours, and as the agent states"
    ),
    "Sessions of which an agent or an application states what they used": (
        "Sessions whose usage an agent or an application states"
    ),
    "What the agent of a session states last of its own use": (
        "The last usage stated by the agent of a session"
    ),
    "What the agent will delete, and when; what only this database still holds": (
        "Files that the agent will delete, and when; and files that only this database still has"
    ),
    "1: only this database still holds it": ("1: only this database still has it"),
}
"""Comments of released migrations in better words: by what they say, for all tables."""

_opening = re.compile(r"create (?:table|view) \w+ (?:\(|as)\s*(?:--\s*(.*))?", re.IGNORECASE)
_comment = re.compile(r"--\s*(.*)")
_added_column = re.compile(r", (\w+)[^,]*? /\*\s*(.*?)\s*\*/")
_computed = re.compile(r", (\w+) text\s+generated always as .*? virtual (?=/\*)", re.DOTALL)
_shared_column = re.compile(r"^--   (\w+)  +(.+)$", re.MULTILINE)
_passed_on = re.compile(r"\b(?:(\w+)\.)?(\w+)(?: as (\w+))?\s*(?:,|$)")
_table_of_view = re.compile(r"\b(?:from|join) (\w+)(?: (?!left|join|where|group|on\b)(\w+))?")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table or view."""

    name: str
    type: str
    comment: str
    references: str | None = None
    """The table that it is a foreign key to."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view with what its comments say."""

    name: str
    kind: str
    comment: str
    columns: tuple[Column, ...]
    indexes: tuple[str, ...]
    full_text: tuple[str, ...]
    """The full-text indexes over it."""


@cache
def migrated() -> Database:
    """Return a database in memory to which all migrations were applied."""
    connection = sqlite3.connect(":memory:")
    sql.migrate(connection)
    return Database(connection, execute_plugins=False)


@cache
def tables() -> dict[str, Table]:
    """Return tables, then views, by name, in the order of the migrations; no full-text indexes."""
    found: dict[str, Table] = {}
    for name, kind, text in migrated().execute(
        "select name, type, sql from sqlite_master"
        " where type in ('table', 'view') order by type, rowid"
    ):
        if not _is_of_sqlite(name) and not text.lower().startswith("create virtual"):
            found[name] = Table(
                name,
                kind,
                _table_comment(text),
                tuple(_columns(name, text, found)),
                tuple(_indexes(name)),
                tuple(_full_text(name)),
            )
    return found


def shared_comments() -> dict[str, str]:
    """Return the comments of columns that mean the same in every table."""
    head = sql.data("schema", f"{sql.migration_names()[0]}.sql").read_text("utf-8")
    return dict(_shared_column.findall(head))


def _is_of_sqlite(name: str) -> bool:
    return "_fts" in name or name == _RECORD_OF_MIGRATIONS or name.startswith("sqlite_")


def _table_comment(text: str) -> str:
    found = _opening.match(text)
    comment = (found[1] or "") if found else ""
    return REWORDED.get(comment, comment)


def _columns(table: str, text: str, tables: dict[str, Table]) -> list[Column]:
    own = _own_comments(text)
    passed_on = _passed_on_comments(text, tables) if text.lower().startswith("create view") else {}
    shared = shared_comments()
    described = migrated()[table]
    keys = described.foreign_keys if isinstance(described, db.Table) else []
    references = {key.column: key.other_table for key in keys}
    return [
        Column(name, type_.lower(), REWORDED.get(comment, comment), references.get(name))
        # As table_info has it, and the columns that are computed.
        for _, name, type_, *_ in described.db.execute(f"pragma table_xinfo([{table}])")
        for comment in [
            CORRECTED.get((table, name))
            or own.get(name)
            or passed_on.get(name)
            or shared.get(name, "")
        ]
    ]


def _own_comments(text: str) -> dict[str, str]:
    """Return the comment of each line by the column that the line defines.

    In a table it is the first word of the line, in a view the last. Columns that were added stand
    behind the last one of the table, in its line, each with a comment of its own.
    """
    is_view = text.lower().startswith("create view")
    comments: dict[str, str] = {}
    for line in _computed.sub(r", \1 text ", text).splitlines()[1:]:
        comments.update(_added_column.findall(line))
        found = _comment.search(_added_column.sub("", line))
        words = re.findall(r"\w+", _added_column.sub("", line).partition("--")[0])
        if found and words:
            comments[words[-1 if is_view else 0]] = found[1]
    return comments


def _passed_on_comments(text: str, tables: dict[str, Table]) -> dict[str, str]:
    body = re.sub(r"--.*", "", text)
    select, _, rest = body.partition("\nfrom ")
    origins: dict[str | None, str] = {}
    for name, alias in _table_of_view.findall(f"from {rest}"):
        origins[alias or name] = name
        origins.setdefault(None, name)
    comments = {}
    for line in select.splitlines():
        for table, column, alias in _passed_on.findall(line):
            origin = tables.get(origins.get(table or None, ""))
            for known in origin.columns if origin else ():
                if known.name == column:
                    comments[alias or column] = known.comment
    return comments


def _indexes(table: str) -> list[str]:
    """Return what is indexed, in words: columns, uniqueness and condition."""
    found = []
    described = migrated()[table]
    for index in described.indexes if isinstance(described, db.Table) else []:
        text = _text_of(index.name)
        words = ", ".join(column or "(expression)" for column in index.columns)
        if text is not None:
            words = re.sub(r"\s+", " ", text[text.index("(") + 1 :]).replace(" )", ")").strip()
            words, _, condition = words.partition(") where ")
            words = words.removesuffix(")") + (f" where {condition}" if condition else "")
        found.append(f"{words}{' (unique)' if index.unique else ''}")
    return sorted(found)


def _full_text(table: str) -> list[str]:
    rows = migrated().execute(
        "select name from sqlite_master"
        " where sql like 'create virtual%' and sql like ? order by rowid",
        (f'%content="{table}"%',),
    )
    return [name for (name,) in rows]


def _text_of(name: str) -> str | None:
    row = migrated().execute("select sql from sqlite_master where name = ?", (name,)).fetchone()
    return row[0] if row else None
