"""Copies: transcripts that begin with the whole of another one, and side agents with a part.

A resume in the desktop application and a fork repeat every line of the old file: same uuid, time,
``message.id`` and usage, mostly under another ``sessionId``.  A side agent (a compaction, a
suggested prompt, an aside) repeats its parent's context under an ``agentId`` of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import orjson

from . import prompts, replies, shapes
from .conversation import Conversation
from .home import Home, Json, Session
from .transcript import Chain, Transcript

_KINDS = {
    "file-history-snapshot": "snapshot",
    "file-history-delta": "snapshot",
    "queue-operation": "queue",
}


@dataclass
class Original:
    """A finished transcript that may be copied."""

    session: Session
    lines: list[bytes]
    chain_lines: int


class Forks:
    """Makes as many copies as keep their share of all chain lines."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._originals: list[Original] = []

    def remember(self, session: Session, file: Transcript) -> None:
        """Keep a small transcript as a candidate; call before it is finished."""
        if not file.flushed and 4 < file.count < 700:
            self._originals.append(Original(session, list(file.lines), file.chain_lines))
            del self._originals[:-12]

    def next_fork(self) -> bool:
        """Write one fork if copies are behind their share; say whether one was written."""
        missing = self._missing()
        fitting = [one for one in self._originals if one.chain_lines <= missing * 1.5]
        if not fitting:
            return False
        original = max(fitting, key=lambda one: one.chain_lines)
        self._originals.remove(original)
        self._fork(original)
        return True

    def _missing(self) -> float:
        home = self.home
        return shapes.COPIES * home.counts["chain"] - home.summary.copies

    def _fork(self, original: Original) -> None:
        home, old = self.home, original.session
        new = replace(old, id=home.uuid(), prompts=[], tasks=[], todos=[], agents=[], team=None)
        new.backups, new.start = list(old.backups), old.end + 3_000
        renamed = home.chance(0.7)
        file = Transcript(home, f"{new.folder}/{new.id}.jsonl", new.era.name)
        for line in original.lines:
            copy = line.replace(old.id.encode(), new.id.encode()) if renamed else line
            self._copy(file, copy, orjson.loads(line))
        chain = Chain(file, new)
        chain.parent = old.last_uuid
        chain.count = file.count
        if new.version == (2, 1, 140):
            new.kind = "bg"
        more = max(4, int(file.count * (0.2 + 0.5 * home.rng.random())))
        Conversation(chain, file.count + more, home.largest_file * 2).play()
        file.finish(chain.clock)
        home.sessions.append(new)
        home.summary.sessions += 1
        home.counts["forks"] += 1

    def _copy(self, file: Transcript, line: bytes, document: Json) -> None:
        kind = str(document["type"])
        if kind == "progress":
            kind = str(document["data"]["type"])
        in_chain = "uuid" in document
        file.add_raw(line, _KINDS.get(kind, kind), in_chain)
        self.home.summary.copies += in_chain

    def side_agent(self, session: Session, main: Transcript) -> None:
        """A side agent that carries the end of *main*; call before it is finished."""
        home, version = self.home, session.version
        if version < (2, 1, 23) or main.flushed or not home.ledger.due("side agent", 0.12):
            return
        forms = {"compact-": 6, "prompt_suggestion-": 6, "side_question-": 16}
        if version > (2, 1, 72):
            del forms["compact-"]
        name = home.rng.choice(list(forms))
        agent = f"a{name}{home.words.hex(forms[name])}"
        file = Transcript(home, f"{session.side}/subagents/agent-{agent}.jsonl", session.era.name)
        last: str | None = None
        for line in main.lines[-int(min(80, max(3, self._missing() / 2))) :]:
            document = orjson.loads(line)
            if document["type"] in ("user", "assistant"):
                last = str(document["uuid"])
                document |= {"isSidechain": True, "agentId": agent}
                self._copy(file, orjson.dumps(document), document)
        chain = Chain(file, session, agent)
        chain.clock, chain.parent = session.end, last
        prompts.write(chain, "Suggest what the user may say next, in one sentence.")
        replies.Reply(chain, 1, 9_000, 40, "end_turn").say(replies.text(chain))
        file.finish(chain.clock)
        home.summary.agents += 1
