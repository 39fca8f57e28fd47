"""Teams and workflows: calls that start several subagents, with the documents they leave."""

from __future__ import annotations

from dataclasses import dataclass

from . import prompts, shapes
from .agents import Agents, agent_id
from .conversation import Conversation
from .home import Home, Json, Session, stamp
from .tools import Call
from .transcript import Chain

_COLORS = ("blue", "green", "yellow")
_NAMES = ("alice", "bruno", "chen")


class Groups(Agents):
    """A spawner that can also run a workflow."""

    def answer(self, conversation: Conversation, call: Call) -> None:
        """Answer a workflow here, any other call as a subagent."""
        if call.name == "Workflow":
            self._workflow(conversation.chain, call)
        else:
            super().answer(conversation, call)

    def plan_workflow(self) -> None:
        """Call a workflow in the course of the conversation."""
        body = {"name": "survey", "args": {"topic": self.home.words.title(3)}}
        self.planned.append(Call("Workflow", body, ""))

    def _workflow(self, chain: Chain, call: Call) -> None:
        """The journal lists every subagent as it starts and ends; the snapshot comes last."""
        home, session = self.home, self.session
        run, task = f"wf_{home.words.hex(8)}", home.words.hex(8)
        folder = f"{session.side}/subagents/workflows/{run}"
        journal, steps = b"", []
        for index in range(home.rng.randrange(2, 5)):
            agent = agent_id(home, session.version)
            body = {"prompt": home.words.prose(300), "description": home.words.title(3)}
            part = Call("Agent", body, "")
            path = f"{folder}/agent-{agent}.jsonl"
            final, _ = self.run(agent, part, path, body["prompt"], chain)
            key = f"v2:{home.words.hex(6)}"
            journal += b'{"type":"started","key":"%b","agentId":"%b"}\n' % (
                key.encode(),
                agent.encode(),
            )
            journal += b'{"type":"result","key":"%b","agentId":"%b","result":{"ok":true}}\n' % (
                key.encode(),
                agent.encode(),
            )
            step: Json = {"type": "workflow_agent", "index": index, "agentId": agent}
            step |= {"label": body["description"], "phaseIndex": 1, "phaseTitle": "Survey"}
            steps.append({**step, "state": "completed", "resultPreview": final[:80]})
        home.write(f"{folder}/journal.jsonl", journal, chain.clock)
        script = f"{session.side}/workflows/scripts/survey.js"
        home.write(script, home.words.code(600).encode(), chain.clock)
        snapshot: Json = {"runId": run, "taskId": task, "status": "completed"}
        snapshot |= {"workflowName": "survey", "timestamp": stamp(chain.clock), "durationMs": 9_000}
        snapshot |= {"agentCount": len(steps), "totalTokens": 60_000, "totalToolCalls": 40}
        snapshot |= {"phases": [{"title": "Survey", "detail": "look around"}], "scriptPath": script}
        document = {**snapshot, "result": "done", "workflowProgress": steps}
        home.write_json(f"{session.side}/workflows/{run}.json", document, chain.clock)
        call.answer = f"Workflow launched.\nTask ID: {task}\nRun ID: {run}"
        call.result = {"runId": run, "taskId": task, "scriptPath": script, "transcriptDir": folder}

    def plan_team(self, chain: Chain) -> None:
        """Found a team, spawn its members, let them exchange messages."""
        home, session = self.home, self.session
        team = Team(f"{home.words.word()}-team", session, chain)
        session.team = team.name
        body: Json = {"team_name": team.name, "description": home.words.title(6)}
        result = {"team_name": team.name, "lead_agent_id": f"team-lead@{team.name}"}
        result["team_file_path"] = f"/home/dev/.claude/teams/{team.name}/config.json"
        self.planned.append(Call("TeamCreate", body, f"Team {team.name} created.", result))
        for name in _NAMES[: home.rng.randrange(2, 4)]:
            spawn: Json = {"name": name, "team_name": team.name, "prompt": home.words.prose(500)}
            spawn |= {"subagent_type": "general-purpose", "description": home.words.title(3)}
            self.planned.append(Call("Agent", spawn, ""))
            team.members.append(spawn)
            self.planned.append(team.message(home, name))
        team.write(home)


@dataclass
class Team:
    """A team's documents: its configuration, and an inbox for each member."""

    name: str
    session: Session
    chain: Chain

    def __post_init__(self) -> None:
        self.members: list[Json] = []
        self.sent: list[tuple[str, Json]] = []

    def message(self, home: Home, name: str) -> Call:
        """A message of the lead, and the member's answer, which comes as a user line."""
        text, key = home.words.prose(200), home.uuid()
        self.sent.append((name, _item("team-lead", text, self.session.start)))
        answer = home.words.prose(300)
        self.sent.append(("team-lead", _item(name, answer, self.session.start + 60)))
        body: Json = {"type": "message", "recipient": name, "content": text, "summary": text[:30]}
        routing = {"sender": "team-lead", "target": f"@{name}", "content": text}
        result = {"success": True, "message": "sent", "msg_id": key, "routing": routing}
        call = Call("SendMessage", body, f"Message sent to {name}'s inbox", result)
        line = f'<teammate-message teammate_id="{name}" color="blue" summary="{answer[:20]}">'
        call.then = lambda: _said(self.chain, f"{line}\n{answer}\n</teammate-message>")
        return call

    def write(self, home: Home) -> None:
        """Write ``config.json`` and the inboxes."""
        start = self.session.start
        lead: Json = {"agentId": f"team-lead@{self.name}", "name": "team-lead"}
        members = [{**lead, "agentType": "team-lead", "joinedAt": int(start * 1000)}]
        for member, color in zip(self.members, _COLORS, strict=False):
            name = member["name"]
            entry: Json = {"agentId": f"{name}@{self.name}", "name": name, "color": color}
            entry |= {"agentType": "general-purpose", "model": self.session.model}
            entry |= {"prompt": member["prompt"], "joinedAt": int(start * 1000) + 4_000}
            members.append({**entry, "cwd": self.session.cwd, "subscriptions": []})
        config: Json = {"name": self.name, "createdAt": int(start * 1000), "members": members}
        config |= {"leadAgentId": lead["agentId"], "leadSessionId": self.session.id}
        home.write_json(f"teams/{self.name}/config.json", config, start, indent=True)
        more = min(1_000, int(home.size / 400_000)) if home.counts["teams"] == 0 else 12
        home.counts["teams"] += 1
        notice = '{"type":"idle_notification","from":"alice","idleReason":"available"}'
        for number in range(more):
            text = notice if number % 4 == 0 else home.words.prose(home.length(shapes.ANSWER))
            self.sent.append(("team-lead", _item("alice", text, start + 90 + number)))
        for recipient in sorted({name for name, _ in self.sent}):
            inbox = [item for name, item in self.sent if name == recipient]
            path = f"teams/{self.name}/inboxes/{recipient}.json"
            home.write_json(path, inbox, start + 3_600, indent=True)


def _item(sender: str, text: str, when: float) -> Json:
    return {"from": sender, "text": text, "timestamp": stamp(when), "color": "blue", "read": True}


def _said(chain: Chain, text: str) -> None:
    prompts.write(chain, text)
