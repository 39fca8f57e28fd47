"""One .jsonl file being written, and the chains of lines in it.

A transcript is a file.  A chain is a thread of lines of which each names its parent: the main
thread, a subagent's, or (up to 2.0.27) a sidechain inside the main file.  The chain writes the
envelope every line has, in the order of keys that its version uses.
"""

from __future__ import annotations

import orjson

from . import shapes
from .home import Home, Json, Session, stamp

_FLUSH = 4_000_000


class Transcript:
    """Collects lines and writes them in pieces, so that one file may be of any size."""

    def __init__(self, home: Home, path: str, era: str) -> None:
        self.home = home
        self.path = path
        self.era = era
        self.count = 0
        self.chain_lines = 0
        self.size = 0
        self.flushed = False
        self.lines: list[bytes] = []  # not yet written
        self._pending = 0  # their bytes
        self._damage = home.damage
        self._newline = home.damage.newline() if home.damage else b"\n"

    def add(self, document: Json, kind: str) -> None:
        """Append one line."""
        self.add_raw(orjson.dumps(document), kind, "uuid" in document)

    def add_raw(self, line: bytes, kind: str, in_chain: bool) -> None:
        """Append the bytes of one line."""
        home, size = self.home, len(line) + 1
        home.ledger.count(self.era, kind, size)
        home.summary.lines += 1
        home.summary.messages += kind in ("user", "assistant")
        home.counts["chain"] += in_chain
        self.count += 1
        self.chain_lines += in_chain
        self.size += size
        self.lines.append(line)
        self._pending += size
        if self._pending > _FLUSH:
            self._flush(0.0)

    def cut(self, count: int) -> None:
        """Keep only the first *count* lines of what is not yet written."""
        for line in self.lines[count:]:
            self.home.summary.lines -= 1
            self.home.summary.messages -= orjson.loads(line)["type"] in ("user", "assistant")
        del self.lines[count:]

    def finish(self, when: float) -> None:
        """Write what is left; a few files end without a line feed, for good."""
        self._flush(when, last=True)

    def _flush(self, when: float, last: bool = False) -> None:
        data = self._damage.spoil(self.lines) if self._damage else None
        if data is None:
            data = b"".join([line + b"\n" for line in self.lines])
        if self._newline != b"\n":
            data = data.replace(b"\n", self._newline)
        if self._damage and not self.flushed:
            data = self._damage.mark(data)
        if last and self.home.ledger.due("no final line feed", shapes.NO_FINAL_LF):
            self.home.counts["no_final_lf"] += 1
            data = data.removesuffix(b"\n").removesuffix(b"\r")
        elif last and self._damage:
            data += self._damage.torn_tail(self.lines)
        self.home.write(self.path, data, when, append=self.flushed)
        self.flushed = True
        self.lines = []
        self._pending = 0


class Chain:
    """A thread of lines in a transcript, with its clock."""

    def __init__(
        self, file: Transcript, session: Session, agent: str | None = None, side: bool = False
    ) -> None:
        self.file = file
        self.home = file.home
        self.session = session
        self.agent = agent
        self.sidechain = side or agent is not None
        self.parent: str | None = None
        self.clock = session.start
        self.count = 0
        self._promised: str | None = None

    def tick(self, seconds: float) -> None:
        """Let time pass."""
        self.clock += seconds * (0.2 + 1.6 * self.home.rng.random())

    def stamp(self) -> str:
        """The time of the next line: milliseconds, rarely none or microseconds; some go back."""
        home, when = self.home, self.clock
        if home.chance(shapes.OUT_OF_ORDER):
            when -= 20 * home.rng.random() + 1
        text = stamp(when)
        if home.ledger.due("time without milliseconds", 0.008, spread=200):
            return text[:19] + "Z"
        if home.ledger.due("time with microseconds", 0.0005, spread=200):
            return text[:-1] + "512Z"
        return text

    def line(self, kind: str, body: Json, after: Json | None = None) -> str:
        """Append a chain line and return its uuid; *after* are keys behind the timestamp."""
        home = self.home
        uuid = self._promised or home.uuid()
        self._promised = None
        parent = self.parent
        if parent and home.ledger.due("parent missing", shapes.PARENT_MISSING, spread=300):
            parent = home.uuid()
        elif parent and home.ledger.due("parent later", shapes.PARENT_LATER, spread=300):
            parent = self._promised = home.uuid()
        tail: Json = {"uuid": uuid, "timestamp": self.stamp(), **(after or {})}
        document = self._document(parent, body, tail)
        self.file.add(document, kind)
        if home.ledger.due("uuid repeated", shapes.UUID_REPEATED, spread=300):
            self.file.add({**document, "interruptedMessageId": home.uuid()}, kind)
        self.parent = uuid
        self.count += 1
        self.tick(0.4)
        return uuid

    def state(self, kind: str, document: Json) -> None:
        """Append a line without uuid."""
        self.file.add(document, kind)
        self.count += 1

    def _document(self, parent: str | None, body: Json, tail: Json) -> Json:
        """The keys in the order in which this version writes them."""
        first: Json = {"parentUuid": parent, "isSidechain": self.sidechain}
        where = self._envelope()
        if self.session.version < (2, 1, 82):
            return {**first, **where, **body, **tail}
        if self.agent:
            first["agentId"] = self.agent
        return {**first, **body, **tail, **where}

    def _envelope(self) -> Json:
        """Who wrote the line, where: the keys that came with each version."""
        session, version = self.session, self.session.version
        fields: Json = {"userType": "external"}
        if version >= (2, 1, 79):
            fields["entrypoint"] = session.entrypoint
        fields |= {"cwd": session.cwd, "sessionId": session.id}
        if version >= (2, 1, 207):
            fields["session_id"] = session.id
        fields["version"] = session.version_text
        if version >= (1, 0, 55):
            fields["gitBranch"] = session.branch
        if self.agent and version < (2, 1, 82):
            fields["agentId"] = self.agent
        if (2, 0, 55) <= version <= (2, 1, 217):
            fields["slug"] = session.slug
        if session.kind:
            fields["sessionKind"] = session.kind
        if session.team and (2, 1, 34) <= version <= (2, 1, 81):
            fields["teamName"] = session.team
        return fields
