"""Plays a conversation: prompts, answers, tool calls and their results, until it is long enough."""

from __future__ import annotations

from typing import Protocol

from . import asides, prompts, replies, shapes
from .home import Json
from .tools import Call, make_call
from .transcript import Chain


class Spawner(Protocol):
    """Makes the calls that have files of their own: subagents, teams, workflows."""

    def waiting(self) -> bool:
        """Whether there are calls left to make."""

    def next_call(self, conversation: Conversation) -> Call | None:
        """A call to make now, or none."""

    def answer(self, conversation: Conversation, call: Call) -> None:
        """Do what the call asks for and fill in its answer."""


class Conversation:
    """One chain of lines, as long as *lines* and *size* allow."""

    def __init__(self, chain: Chain, lines: int, size: int, spawner: Spawner | None = None) -> None:
        self.chain = chain
        self.home = chain.home
        self.session = chain.session
        self.lines = lines
        self.size = size
        self.prompt_uuid: str | None = None
        self.last_prompt = ""
        self._spawner = spawner
        self._context = 12_000
        self._title = self.home.words.title(5)
        tools = shapes.TOOLS[self.session.era.name]
        self._tools, self._weights = list(tools), list(tools.values())

    def full(self) -> bool:
        """Whether the file is as long as it should become, and all its calls are made."""
        if self._spawner and self._spawner.waiting():
            return False
        return self.chain.count >= self.lines or self.chain.file.size >= self.size

    def left(self) -> float:
        """The share of the conversation that is still to come."""
        done = max(self.chain.count / self.lines, self.chain.file.size / self.size)
        return max(0.0, 1.0 - done)

    def play(self, compact: bool = False, leave: str | None = None) -> None:
        """A main transcript; *compact* it halfway, change to directory *leave* on the way."""
        asides.attachments(self.chain, most=8)
        while not self.full():
            if compact and self.left() < 0.5:
                compact = False
                prompts.compaction(self.chain)
            if leave and self.left() < 0.6:
                self.session.cwd, leave = leave, None
            self._turn()
        if compact:
            prompts.compaction(self.chain)
        if leave:
            self.session.cwd = leave
        if compact or leave:
            self._turn()
        self.session.last_uuid = self.chain.parent or ""
        self.session.end = self.chain.clock

    def play_agent(self, prompt: str) -> str:
        """A subagent: one prompt, tool calls, and a last answer, which is returned."""
        prompts.write(self.chain, prompt)
        while self.chain.count < self.lines - 1 and self.chain.file.size < self.size:
            self._exchange()
        final = replies.text(self.chain, shapes.FINAL_ANSWER)
        self._reply(1, 400, "end_turn").say(final)
        return str(final["text"])

    def _turn(self) -> None:
        """From a prompt to the answer that ends the turn."""
        chain, home = self.chain, self.home
        chain.tick(240)
        if self.prompt_uuid and home.ledger.due("rewind", 0.02):
            chain.parent = self.prompt_uuid
        self.prompt_uuid, self.last_prompt = prompts.human(chain)
        asides.snapshot(chain, self.prompt_uuid)
        asides.attachments(chain)
        while not self.full():
            self._exchange()
            if self.session.version >= prompts.QUEUE_SINCE and self._owed("queue"):
                prompts.queue(chain)
            if home.chance(0.2):
                asides.notes(chain)
                asides.states(chain, self.last_prompt, self._title)
            if self._owed("user"):
                if home.chance(0.5):
                    break
                prompts.meta(chain)
        if home.ledger.due("api error", 0.01):
            replies.failure(chain)
        else:
            self._reply(1, 300, "end_turn").say(replies.text(chain))
            self._count("texts", 1)
        asides.notes(chain)
        asides.states(chain, self.last_prompt, self._title)

    def _exchange(self) -> None:
        """One answer with its tool calls, and their results."""
        chain = self.chain
        calls = self._calls()
        blocks: list[Json] = []
        if self._wants("thinking", self.session.era.thinking_per_call):
            blocks.append(replies.thinking(chain))
        if self._wants("texts", self.session.era.text_per_call):
            blocks.append(replies.text(chain))
        self._count("calls", len(calls))
        tokens = sum(len(str(call.input)) for call in calls) // 4 + 60 * len(blocks)
        merged = bool(blocks) and self.home.ledger.due("two blocks on a line", 0.005, spread=60)
        reply = self._reply(len(blocks) + len(calls) - merged, tokens, "tool_use")
        for block in blocks[: len(blocks) - merged]:
            reply.say(block)
        chain.tick(6)
        waiting: list[tuple[Call, str]] = []
        at_once = self.home.chance(0.5)
        for call in calls:
            call.id = call.id or self.home.token("toolu_01")
            use: Json = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
            if self.session.version >= (2, 1, 34):
                use["caller"] = {"type": "direct"}
            uuid = reply.say(*([blocks[-1], use] if merged else [use]))
            merged = False
            waiting.append((call, uuid))
            if at_once or call is calls[-1]:
                for ready in waiting:
                    self._result(*ready)
                waiting = []

    def _calls(self) -> list[Call]:
        """The calls of the next answer: mostly one, rarely dozens side by side."""
        special = self._spawner.next_call(self) if self._spawner else None
        if special:
            return [special]
        counts, weights = zip(*shapes.CALLS_AT_ONCE, strict=True)
        count = min(self.home.rng.choices(counts, weights)[0], 1 + self.lines // 20)
        names = self.home.rng.choices(self._tools, self._weights, k=count)
        return [make_call(self.home, self.session, name) for name in names]

    def _result(self, call: Call, asked: str) -> None:
        """The user line that answers one call."""
        home, chain, session = self.home, self.chain, self.session
        asides.after_call(chain, call.id, call.name)
        if self._spawner and not call.answer:
            self._spawner.answer(self, call)
        chain.tick(3)
        if call.name == "Bash" and not call.error and session.version >= (2, 1, 3):
            self._persist(call)
        if home.ledger.due("nul escape", shapes.NUL_ESCAPE, spread=200):
            call.answer = f"{call.answer}\x00"
        if call.name == "Read" and home.ledger.due("picture read", 0.004, spread=60):
            call.answer, call.result = [prompts.picture(home)], {"type": "image", "file": {}}
        block: Json = {"type": "tool_result", "tool_use_id": call.id, "content": call.answer}
        if call.error or call.name == "Bash":
            block["is_error"] = call.error
        after: Json = dict(call.extra)
        dropped = chain.agent and session.version < (2, 1, 200)
        if not (dropped and home.chance(shapes.TOOL_RESULT_DROPPED)):
            after["toolUseResult"] = call.result
        if session.version >= (2, 0, 77):
            after["sourceToolAssistantUUID"] = asked
        prompts.write(chain, [block], after)
        self._context = min(self._context + len(str(call.answer)) // 4, 170_000)
        if call.then:
            call.then()
        if call.name in ("Edit", "Write", "MultiEdit") and not chain.sidechain:
            asides.snapshot(chain, asked, update=True)
        asides.attachments(chain)

    def _persist(self, call: Call) -> None:
        """Now and then an output too large for a line: a preview here, the rest in a file."""
        home = self.home
        if home.bare or not home.ledger.due("persisted output", 0.012, spread=12):
            return
        size = min(shapes.TOOL_RESULT_FILE.draw(home.rng), home.longest * 4)
        output = home.words.output(size)
        stem = call.id if home.chance(0.41) else f"b{home.words.hex(8)}"
        name = f"{self.session.side}/tool-results/{stem}.txt"
        if home.ledger.due("persisted output is there", 0.34, spread=1):
            home.write(name, output.encode(), self.chain.clock)
        where = f"/home/dev/.claude/{name}"
        call.answer = (
            f"<persisted-output>\nOutput too large ({size / 1000:.1f}KB). Full output saved to:"
            f" {where}\n\nPreview (first 2KB):\n{output[:2_000]}\n...\n</persisted-output>"
        )
        call.result = {**call.result, "stdout": output[:30_000], "persistedOutputPath": where}
        call.result["persistedOutputSize"] = size

    def _reply(self, count: int, tokens: int, reason: str) -> replies.Reply:
        return replies.Reply(self.chain, count, self._context, tokens, reason)

    def _owed(self, kind: str) -> int:
        return self.home.ledger.owed(self.session.era.name, kind)

    def _count(self, what: str, by: int) -> None:
        self.home.counts[f"{self.session.era.name} {what}"] += by

    def _wants(self, what: str, per_call: float) -> bool:
        """Whether a block of this kind comes now, so that its share per call is kept."""
        counts, era = self.home.counts, self.session.era.name
        behind = counts[f"{era} {what}"] < per_call * counts[f"{era} calls"]
        wanted = self.home.chance(min(0.95, per_call * (1.4 if behind else 0.4)))
        self._count(what, wanted)
        return wanted
