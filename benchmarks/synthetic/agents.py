"""Subagents: their files in the layout of the version, and the evidence of who called them.

Up to 2.0.27 a subagent is a sidechain inside the main file; then a file beside it
(``agent-<A>.jsonl``); from 2.1.3 a file below the session's directory, from 2.1.71 with a
``meta.json``.  The call is named by ``toolUseResult.agentId``, by ``agent_progress`` lines, by a
line ``agentId: <A>`` in the result, by ``toolUseId`` in the meta file, or only by equal prompts.
"""

from __future__ import annotations

from collections import deque

import orjson

from . import asides, prompts, shapes
from .conversation import Conversation
from .home import Home, Json, Session
from .tools import Call
from .transcript import Chain, Transcript

_TYPES = ("Explore", "general-purpose", "Plan", "code-reviewer")
_READY = "I'm ready to help you explore the codebase. What should I look for?"


class Agents:
    """Spawns *left* subagents in the course of a conversation, besides the calls in *planned*."""

    def __init__(self, home: Home, session: Session, left: int, depth: int = 1) -> None:
        self.home = home
        self.session = session
        self.left = left
        self.planned: deque[Call] = deque()
        self._depth = depth

    def waiting(self) -> bool:
        """Whether there are calls left to make."""
        return self.left > 0 or bool(self.planned)

    def next_call(self, conversation: Conversation) -> Call | None:
        """The calls are spread evenly over what is left of the conversation."""
        expected = max(1.0, conversation.left() * conversation.lines / 6)
        if not self.home.chance((self.left + len(self.planned)) / expected):
            return None
        if self.planned:
            return self.planned.popleft()
        if self.left <= 0:
            return None
        self.left -= 1
        words = self.home.words
        body: Json = {"description": words.title(4), "subagent_type": self.home.rng.choice(_TYPES)}
        body["prompt"] = words.prose(self.home.length(shapes.AGENT_PROMPT))
        return Call("Task" if self.session.version < (2, 1, 63) else "Agent", body, "")

    def answer(self, conversation: Conversation, call: Call) -> None:
        """Run the subagent, then say in the answer what its version says."""
        chain, version = conversation.chain, self.session.version
        if version < (2, 0, 28):
            final = self._sidechain(chain, call.input["prompt"])
            call.answer = [{"type": "text", "text": final}]
            call.result = {"content": call.answer, "totalDurationMs": 31_000, "totalTokens": 9_000}
            return
        agent = agent_id(self.home, version, call.input.get("name"))
        prompt = call.input["prompt"]
        if "team_name" in call.input:
            prompt = f'<teammate-message teammate_id="team-lead">{prompt}</teammate-message>'
        final, said = self.run(agent, call, self._path(agent), prompt, chain)
        if chain.agent is None and (2, 1, 9) <= version < (2, 1, 82):
            asides.agent_progress(chain, call.id, agent, call.input["prompt"], said)
        if "team_name" in call.input:
            _answer_teammate(call, agent)
        elif version >= (2, 1, 0) and self.home.chance(0.15):
            _answer_later(chain, call, agent, final)
        else:
            self._answer_now(call, agent, final)

    def run(
        self, agent: str, call: Call, path: str, prompt: str, parent: Chain
    ) -> tuple[str, list[Json]]:
        """Write a subagent's file and its meta file; returns its last answer and its messages."""
        home, session = self.home, self.session
        file = Transcript(home, path, session.era.name)
        chain = Chain(file, session, agent)
        chain.clock = parent.clock
        if session.version == (2, 1, 220) and home.chance(0.5):
            reference: Json = {"type": "fork-context-ref", "agentId": agent, "contextLength": 90}
            reference |= {"parentSessionId": session.id, "parentLastUuid": parent.parent}
            chain.state("fork-context-ref", reference)
        lines = max(2, home.profile.agent_lines.draw(home.rng, home.scale))
        nested = None
        if session.version >= (2, 1, 82) and self._depth == 1 and lines > 12:
            nested = Agents(home, session, int(home.chance(0.2)), depth=2)
        final = Conversation(chain, lines, home.largest_file // 3, nested).play_agent(prompt)
        said = [] if file.flushed else [_message(line) for line in file.lines]
        file.finish(chain.clock)
        self._meta(path, call, chain)
        session.agents.append(agent)
        home.summary.agents += 1
        if session.version < (2, 1, 0):
            home.counts["agents of 2.0"] += 1
        parent.clock = max(parent.clock, chain.clock)
        return final, said

    def warm_up(self) -> None:
        """Stubs that 2.0.x wrote at start-up: nine in ten of its subagent files."""
        home, session = self.home, self.session
        if not (2, 0, 28) <= session.version <= (2, 1, 4):
            return
        wanted = 1 + home.counts["agents of 2.0"] * shapes.WARMUP / (1 - shapes.WARMUP)
        most = 12 if session.version < (2, 1, 0) else 2
        for _ in range(min(most, max(0, int(wanted) - home.counts["warm-ups"]))):
            agent = agent_id(home, session.version)
            file = Transcript(home, self._path(agent), session.era.name)
            chain = Chain(file, session, agent)
            prompts.write(chain, "Warmup")
            content = [{"type": "text", "text": _READY}]
            message: Json = {"role": "assistant", "type": "message", "id": home.token("msg_01")}
            message |= {"model": session.model, "content": content, "stop_reason": "end_turn"}
            message["usage"] = {"input_tokens": 3, "output_tokens": 36}
            chain.line("assistant", {"type": "assistant", "message": message})
            file.finish(chain.clock)
            home.counts["warm-ups"] += 1
            home.summary.agents += 1

    def _path(self, agent: str) -> str:
        if self.session.version < (2, 1, 3):
            return f"{self.session.folder}/agent-{agent}.jsonl"
        return f"{self.session.side}/subagents/agent-{agent}.jsonl"

    def _sidechain(self, main: Chain, prompt: str) -> str:
        """A subagent of 1.0.x: a second thread in the main file."""
        chain = Chain(main.file, self.session, side=True)
        chain.clock = main.clock
        lines = min(40, self.home.profile.agent_lines.draw(self.home.rng, self.home.scale))
        final = Conversation(chain, lines, 10**12).play_agent(prompt)
        main.clock = chain.clock
        return final

    def _meta(self, path: str, call: Call, chain: Chain) -> None:
        home, version = self.home, self.session.version
        if version < (2, 1, 71):
            return
        meta: Json = {"agentType": call.input.get("subagent_type", "general-purpose")}
        if home.chance(0.86):
            meta["description"] = call.input.get("description", "")
        if version >= (2, 1, 120) and call.id:
            meta |= {"toolUseId": call.id, "spawnDepth": self._depth}
        if version >= (2, 1, 200):
            meta["model"] = self.session.model
        home.write_json(path.replace(".jsonl", ".meta.json"), meta, chain.clock)

    def _answer_now(self, call: Call, agent: str, final: str) -> None:
        version = self.session.version
        blocks: list[Json] = [{"type": "text", "text": final}]
        call.result = {"status": "completed", "prompt": call.input["prompt"], "content": blocks}
        call.result |= {"totalDurationMs": 31_000, "totalTokens": 9_000, "totalToolUseCount": 7}
        if version >= (2, 1, 0) or self.home.chance(0.25):
            call.result["agentId"] = agent
        if version >= (2, 1, 0):
            text = f"agentId: {agent} (for resuming to continue this agent's work if needed)"
            blocks = [*blocks, {"type": "text", "text": text}]
        call.answer = blocks


def _answer_later(chain: Chain, call: Call, agent: str, final: str) -> None:
    """The subagent runs in the background; a notice with its result follows."""
    output = f"/tmp/claude/tasks/{agent}.output"
    call.answer = f"Async agent launched successfully.\nagentId: {agent}\noutput_file: {output}"
    call.result = {"isAsync": True, "status": "async_launched", "agentId": agent}
    call.result |= {"prompt": call.input["prompt"], "outputFile": output}
    notice = prompts.task_notification(chain, agent, call.id, final)
    call.then = lambda: prompts.enqueue(chain, notice, notice=True)


def _answer_teammate(call: Call, agent: str) -> None:
    name, team = call.input["name"], call.input["team_name"]
    call.answer = f"Spawned successfully.\nagent_id: {name}@{team}\nname: {name}"
    call.result = {"status": "teammate_spawned", "agent_id": f"{name}@{team}", "name": name}
    call.result |= {"teammate_id": f"{name}@{team}", "color": "blue", "agentId": agent}
    call.result["prompt"] = call.input["prompt"]


def agent_id(home: Home, version: shapes.Version, name: str | None = None) -> str:
    """A subagent's id in the form of its version."""
    if name:
        return f"a{name}-{home.words.hex(16)}"
    if version >= (2, 1, 50):
        return f"a{home.words.hex(16)}"
    return home.words.hex(7 if version >= (2, 0, 77) else 8)


def _message(line: bytes) -> Json:
    """A subagent's line as its parent repeats it."""
    document = orjson.loads(line)
    keys = ("type", "message", "requestId", "toolUseResult", "uuid", "timestamp")
    return {key: document[key] for key in keys if key in document}
