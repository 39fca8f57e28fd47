"""Plans a home: which sessions there are, in which projects, how long each becomes."""

from __future__ import annotations

from pathlib import Path

from . import asides, prompts, shapes, stores
from .conversation import Conversation
from .damage import Damage
from .forks import Forks
from .groups import Groups
from .home import Home, Session, Summary, encode
from .tools import make_call
from .transcript import Chain, Transcript

_MODELS = ("claude-sonnet-4-20250514", "claude-sonnet-4-5", "claude-opus-4-6", "claude-sonnet-5")
_SLUGS = ("quiet", "amber", "nimble", "lucid", "brisk"), ("otter", "harbor", "maple", "comet")


def generate(
    out: Path,
    size: int = 20_000_000,
    seed: int = 1,
    faults: bool = False,
    *,
    files: int | None = None,
    lines_per_file: int = 10,
    one_file: int | None = None,
    profile: str = "usual",
) -> Summary:
    """Write a home of about *size* bytes into *out*, a directory that is empty or not there.

    With *files*, that many transcripts of *lines_per_file* lines instead; with *one_file*, one
    transcript of about that many bytes. The *profile* is one of ``shapes.PROFILES``.
    """
    if out.exists() and any(out.iterdir()):
        raise FileExistsError(f"{out} is not empty")
    out.mkdir(parents=True, exist_ok=True)
    if files is not None:
        size = files * lines_per_file * 2_000
    home = Home(out, one_file or size, seed, shapes.PROFILES[profile])
    home.damage = Damage(home) if faults else None
    maker = _Maker(home)
    if files is not None:
        maker.many(files, lines_per_file)
    elif one_file is not None:
        maker.one(one_file)
    else:
        maker.home_of(size)
    home.summary.projects = len({session.folder for session in home.sessions})
    home.summary.eras = {era: total for era, total in home.ledger.totals().items() if total}
    return home.summary


class _Maker:
    """Plans sessions and projects, and plays them one after the other."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.forks = Forks(home)
        self._cwd = ""
        self._cwd_left = 0

    def home_of(self, size: int) -> None:
        """A home with everything: sessions until *size* is reached and each era has one."""
        home = self.home
        while home.summary.bytes < size * 0.985 or len(home.ledger.totals()) < len(shapes.ERAS):
            if not self.forks.next_fork():
                self._session()
        stores.write_home_stores(home)

    def many(self, files: int, lines: int) -> None:
        """Nothing but main transcripts, all short."""
        self.home.bare = True
        for number in range(files):
            session = self._new_session(shapes.ERAS[number % len(shapes.ERAS)])
            file = self._open(session)
            chain = Chain(file, session)
            Conversation(chain, lines, 10**12).play()
            file.cut(lines)
            self._close(session, file, chain)

    def one(self, size: int) -> None:
        """Nothing but one transcript of the last era."""
        self.home.bare = True
        session = self._new_session(shapes.ERAS[-1])
        file = self._open(session)
        chain = Chain(file, session)
        Conversation(chain, 10**12, size).play()
        self._close(session, file, chain)

    def _session(self) -> None:
        """One session with its subagents and all that it leaves elsewhere."""
        home = self.home
        session = self._new_session(home.ledger.next_era())
        file = self._open(session)
        chain = Chain(file, session)
        asides.summaries(chain, [other.last_uuid for other in home.sessions[-20:]])
        if home.ledger.due("metadata only", home.profile.metadata_only, spread=5):
            self._metadata_only(chain)
        else:
            self._play(chain)
            asides.summaries(chain, [other.last_uuid for other in home.sessions[-20:]])
        self.forks.remember(session, file)
        self.forks.side_agent(session, file)
        self._close(session, file, chain)
        stores.write_session_stores(home, session)
        if home.damage:
            home.damage.stray_files(session.folder, session.end)

    def _play(self, chain: Chain) -> None:
        home, session = self.home, chain.session
        lines, size = self._length()
        spawner = Groups(home, session, 0)
        spawner.warm_up()
        compact = False
        share = home.profile.sessions_with_agents
        if home.ledger.due(f"agents {_layout(session)}", share, spread=1):
            agents = home.profile.session_agents.draw(home.rng, home.scale)
            spawner.left = min(max(1, agents), home.most_agents)
        if session.version >= (2, 0, 76):
            compact = home.ledger.due("several roots", shapes.SEVERAL_ROOTS, spread=1)
        if session.version >= (2, 1, 140) and home.ledger.due("workflow", 0.04, spread=1):
            spawner.plan_workflow()
        if (2, 1, 34) <= session.version < (2, 1, 82) and home.ledger.due("team", 0.06, spread=1):
            spawner.plan_team(chain)
        if session.version >= (2, 1, 16) and home.ledger.due("task list", 0.1, spread=1):
            spawner.planned.append(make_call(home, session, "TaskCreate"))
        if spawner.left or spawner.planned or compact:
            lines = max(lines, 24)
        leave = None
        if home.ledger.due("second directory", shapes.SECOND_CWD):
            leave = session.absolute(home.words.word())
        Conversation(chain, lines, size, spawner).play(compact, leave)

    def _metadata_only(self, chain: Chain) -> None:
        """A session in which nobody said anything: a snapshot and queued prompts, or titles."""
        session = chain.session
        if session.version < prompts.QUEUE_SINCE:
            for _ in range(3):
                asides.summary(chain, self.home.uuid())
            return
        for text in (self.home.words.title(6), self.home.words.title(9)):
            document = {"type": "queue-operation", "operation": "enqueue", "content": text}
            document |= {"timestamp": chain.stamp(), "sessionId": session.id}
            chain.state("queue", document)
        asides.snapshot(chain, self.home.uuid())

    def _length(self) -> tuple[int, int]:
        """Lines and bytes of the next main transcript; a few are huge."""
        home = self.home
        low, high = shapes.HUGE_BYTES
        if home.size > 60_000_000 and home.counts["huge bytes"] < (
            home.profile.huge_share * home.summary.bytes - low / 2
        ):
            size = int(min(low * (high / low) ** home.rng.random(), home.size / 8))
            home.counts["huge bytes"] += size
            return 10**9, size
        return max(4, home.profile.main_lines.draw(home.rng, home.scale)), home.largest_file

    def _open(self, session: Session) -> Transcript:
        return Transcript(self.home, f"{session.folder}/{session.id}.jsonl", session.era.name)

    def _close(self, session: Session, file: Transcript, chain: Chain) -> None:
        session.end = chain.clock
        file.finish(chain.clock)
        self.home.sessions.append(session)
        self.home.summary.sessions += 1

    def _new_session(self, era: shapes.Era) -> Session:
        """A session of the era's next version, in the project that is being filled."""
        home, rng = self.home, self.home.rng
        turn = home.counts[f"sessions of {era.name}"]
        home.counts[f"sessions of {era.name}"] += 1
        version = era.versions[turn % len(era.versions)]
        place = sorted(era.versions, key=shapes.parse_version).index(version)
        day = era.days[0] + (era.days[1] - era.days[0]) * (place + rng.random()) / len(era.versions)
        cwd = self._project()
        return Session(
            id=home.uuid(),
            folder=f"projects/{encode(cwd)}",
            cwd=cwd,
            branch=rng.choice(("main", "main", "", "HEAD", f"feat/{home.words.word()}")),
            version_text=version,
            era=era,
            start=86_400 * day,
            slug="-".join((*(rng.choice(part) for part in _SLUGS), home.words.word())),
            model=rng.choice(_MODELS),
            entrypoint=rng.choice(("cli", "cli", "claude-desktop", "claude-vscode", "sdk-ts")),
            gateway=home.ledger.due("gateway", 0.03, spread=7),
        )

    def _project(self) -> str:
        """The working directory of the next session."""
        home = self.home
        if self._cwd_left <= 0:
            most = max(2, home.size // 1_000_000)
            self._cwd_left = min(most, shapes.PROJECT_SESSIONS.draw(home.rng))
            name = f"{home.words.word()}-{home.words.word()}"
            if home.ledger.due("windows project", 0.1):
                self._cwd = f"D:\\work\\{name}"
            elif home.ledger.due("long path", 0.02):
                self._cwd = "/home/dev/" + "/".join([name] * 16)
            else:
                self._cwd = f"/home/dev/work/{name}.{home.words.word()}"
        self._cwd_left -= 1
        return self._cwd


def _layout(session: Session) -> str:
    """Where the subagents of a session lie, and with what beside them."""
    starts = {"sidechain": (0,), "old": (2, 0, 28), "new": (2, 1, 3), "meta": (2, 1, 71)}
    return [name for name, start in starts.items() if session.version >= start][-1]
