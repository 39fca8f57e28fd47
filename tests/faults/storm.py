"""Every command at once, killed at random, while agents write: in the end all is as from scratch.

    python -m tests.faults.storm --minutes 10 --seed 1

A thread appends to the files of a home of Claude Code, rewrites, cuts, renames and deletes them,
and now and then renames the home itself; the files of homes of all other agents grow, break, go and
return. Meanwhile commands run, one or two at a time: sync, watch, rebuild, compact, verify, prune,
forget, serve and those that only read. Many are killed, interrupted or terminated at a random
moment. No command may fail in another way than it says, and whenever none runs the database is as a
commit left it. In the end the rows are those that a rebuild makes, and a sync and a `prune --gone`
leave what a sync from scratch of the home gives, without what was forgotten; and of that no word is
left in the file.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.changing import Home, OtherAgents
from tests.support.writing import PROJECT, dumps, jsonl, user, write, write_bytes

from assoc_ingest.store.database import writing
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_as_rebuilt, check, connect, differences, dump
from assoc_ingest.upkeep.verify import verify

PAUSE = 0.1  # seconds between two changes, at most
PATIENCE = 180.0  # seconds after which a command hangs
PLANTED = 12  # conversations that may be forgotten
_ADDRESS = re.compile(rb"running on (http://127\.0\.0\.1:\d+)")

COMMANDS: dict[str, tuple[list[str], set[int]]] = {
    "sync": (["sync"], {0}),
    "full sync": (["sync", "--full"], {0}),
    "watch": (["watch", "--rescan", "1"], {0}),
    "rebuild": (["rebuild"], {0}),
    "compact": (["compact"], {0}),
    "verify": (["verify"], {0, 1}),  # the home changes while it is compared
    "prune": (["prune", "--gone"], {0}),
    "forget": (["forget"], {0, 1}),
    "serve": (["serve", "--port", "0"], {0}),
    "status": (["status", "--json"], {0}),
    "search": (["search", "text"], {0, 1}),
    "list": (["list", "sessions"], {0}),
}
"""The arguments of each command, and the codes with which it may end; 3 is: another one writes."""

OFTEN = ("sync", "watch", "sync", "watch", "full sync", "forget", "prune")
_SIGNALS = {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130, signal.SIGTERM: 143}
_UNTIL_STOPPED = ("watch", "serve")


class ChangingHome(Home):
    """A home in which files are renamed and deleted, too, with conversations that are planted."""

    def __init__(self, root: Path, seed: int) -> None:
        self.secrets: dict[str, str] = {}
        self.where = root
        super().__init__(root, seed)
        for number in range(PLANTED):
            session = f"{number:08x}-dddd-4ddd-8ddd-dddddddddddd"
            self.secrets[session] = f"zqsecret{number}x{seed}"
            lines = [user(self.secrets[session], f"planted-{number}", sessionId=session)]
            write(root, f"{PROJECT}-planted/{session}.jsonl", *lines)
            self._note(session)
        write_bytes(root, "tasks/garden/1.json", dumps(self._task()))

    def storm(self) -> None:
        """Change something."""
        dice = self._random.random()
        if dice < 0.03:
            self._rename_home()
        elif dice < 0.08:
            self._rename()
        elif dice < 0.1:
            self._random.choice(self._files()).unlink()
        elif dice < 0.2:
            self._note(self._random.choice(list(self.secrets)))
            self._change_task()
        elif dice < 0.25:
            self.rewrite()
        elif dice < 0.7:
            self._append(self._random.choice(self._files()))
        else:
            self.change()

    def mend(self) -> None:
        """Let no document be broken."""
        write_bytes(self.root, "tasks/garden/1.json", dumps(self._task()))

    def _change_task(self) -> None:
        """Let it be whole, be broken, or go; it may come back whole or broken."""
        task = self.root / "tasks/garden/1.json"
        if self._random.random() < 0.3:
            task.unlink(missing_ok=True)
            return
        whole = dumps(self._task())
        write_bytes(self.root, "tasks/garden/1.json", self._random.choice([whole, whole[:-4]]))

    def _files(self) -> list[Path]:
        files = (self.root / "projects").glob("*/**/*.jsonl")
        return sorted(path for path in files if "-planted" not in path.parent.name)

    def _rename(self) -> None:
        """Let a file lie in another project."""
        file = self._random.choice(self._files())
        parts = list(file.relative_to(self.root).parts)
        parts[1] = self._random.choice(["-srv-demo", "-srv-other", "-srv-third"])
        target = self.root.joinpath(*parts)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            file.rename(target)

    def _rename_home(self) -> None:
        self.root.rename(self.root.with_name("away"))
        time.sleep(self._random.random())
        self.root.with_name("away").rename(self.root)

    def _note(self, session: str) -> None:
        prompt = {"display": f"{self.secrets[session]} again", "timestamp": 1_768_903_200_000}
        with (self.root / "history.jsonl").open("ab") as file:
            file.write(jsonl({**prompt, "project": "/srv/demo", "sessionId": session}))

    def _task(self) -> dict[str, str]:
        status = self._random.choice(["pending", "in_progress", "completed"])
        return {"id": "1", "subject": "dig", "status": status}


@dataclass
class Storm:
    """What happens, and what went wrong."""

    place: Path
    seed: int
    wrong: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    kills: int = 0

    def __post_init__(self) -> None:
        # A shell starts what runs in the background with SIGINT ignored, and children inherit that:
        # a command would miss the signal that comes before it has set up its own handling.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._chance = random.Random(self.seed)
        self.home = ChangingHome(self.place / "home", self.seed)
        self.others = OtherAgents(self.place / "agents", self.seed)
        self.roots = [self.home.root, *self.others.homes]
        self.database = self.place / "index.db"
        self._usual: dict[str, float] = {}
        self._user = self.place / "user"
        self._user.mkdir()
        self._is_over = threading.Event()
        self._unlucky: list[BaseException] = []
        with writing(self.database):
            pass
        sync(self.database, self.roots)

    def rage(self, goes_on: Callable[[int], bool]) -> list[str]:
        """Run commands as long as it `goes_on`, told the number of steps; return what is wrong."""
        changing = threading.Thread(target=self._change)
        changing.start()
        step = 0
        try:
            while goes_on(step) and not self.wrong:
                self._step()
                step += 1
        finally:
            self._is_over.set()
            changing.join()
        self.wrong += [f"the home could not change: {error!r}" for error in self._unlucky]
        if not self.wrong:
            self._settle()
        return self.wrong

    def _change(self) -> None:
        chance = random.Random(self.seed + 1)
        try:
            while not self._is_over.wait(chance.random() * PAUSE):
                self.home.storm()
                self.others.change()
        except BaseException as error:
            self._unlucky.append(error)

    def _step(self) -> None:
        count = 2 if self._chance.random() < 0.25 else 1
        names = [
            self._chance.choice(OFTEN if self._chance.random() < 0.5 else list(COMMANDS))
            for _ in range(count)
        ]
        threads = [threading.Thread(target=self._run, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._chance.random() < 0.4:
            self._check(f"after {' and '.join(names)}")

    def _check(self, when: str) -> None:
        try:
            check(self.database)
        except Exception as error:
            self.wrong.append(f"{when}: {error!r}")

    def _run(self, name: str) -> None:
        arguments, allowed = COMMANDS[name]
        arguments = [*arguments, "-d", str(self.database)]
        if name == "forget":
            arguments.append(self._chance.choice(list(self.home.secrets)))
        number = self._chance.choice([None, None, *_SIGNALS, signal.SIGKILL])
        if name in _UNTIL_STOPPED and number is None:
            number = signal.SIGTERM
        usual = 4.0 if name in _UNTIL_STOPPED else self._usual.get(name, 1.0)
        life = self._chance.random() * usual * 1.3 if number else PATIENCE
        started = time.monotonic()
        process = self._start(arguments)
        try:
            if name == "serve" and number != signal.SIGKILL:
                self._browse(process)
            said, _ = process.communicate(timeout=life)
            self._usual[name] = time.monotonic() - started
            number = None
        except subprocess.TimeoutExpired:
            process.send_signal(number or signal.SIGKILL)
            try:
                said, _ = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                said, _ = process.communicate()
                self.wrong.append(f"{name} did not end")
        self._judge(name, process.returncode, number, said, allowed)

    def _judge(
        self, name: str, code: int, number: signal.Signals | None, said: bytes, allowed: set[int]
    ) -> None:
        allowed = {*allowed, 3}
        if number is not None:  # it may have been done just before, or not have begun
            allowed |= {_SIGNALS[number], -number}
        self.ends[f"{name}: {code}"] += 1
        self.kills += code == -signal.SIGKILL
        if code not in allowed or b"Traceback" in said.replace(b"KeyboardInterrupt\n", b""):
            is_start = number is not None and b"KeyboardInterrupt" in said
            if not is_start:  # before the program has taken over the signals
                text = said.decode()
                shown = text if len(text) < 4000 else f"{text[:1000]}\n...\n{text[-2000:]}"
                self.wrong.append(f"{name} ended with {code} ({number!r}): {shown}")

    def _start(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        names = ("HOME", "USERPROFILE", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA")
        return subprocess.Popen(
            [sys.executable, "-m", "assoc_ingest", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._user,
            env={**os.environ, **dict.fromkeys(names, str(self._user))},
        )

    def _browse(self, process: subprocess.Popen[bytes]) -> None:
        """Look at some pages, as soon as the server says where it is."""
        assert process.stdout
        for line in process.stdout:
            if found := _ADDRESS.search(line):
                for page in ("/", "/-/assoc/search?q=text", "/index/sessions.json"):
                    self._get(found[1].decode() + page)
                return

    def _get(self, address: str) -> None:
        try:
            urllib.request.urlopen(address, timeout=PATIENCE).read()
            self.ends["pages"] += 1
        except urllib.error.HTTPError as error:
            if error.code != 503:  # busy, or shutting down
                self.wrong.append(f"{address}: {error.code} {error.read()[:500]!r}")
        except OSError:
            pass  # it ended meanwhile

    # -- the end -----------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Bring the database up to date, and hold it against one from scratch."""
        self._run_and_compare(["sync"], ["prune", "--gone"])
        self.home.mend()
        self.others.mend()
        self._run_and_compare(["sync"], ["sync"], ["prune", "--gone"], ["compact"])
        check(self.database, *self.roots)
        scratch = self.place / "scratch.db"
        forgotten = self._leave_out_in(scratch)
        sync(scratch, self.roots)
        self.wrong += differences(dump(self.database), dump(scratch))
        self.wrong += [f"verify: {finding}" for finding in verify(self.database).findings]
        data = self.database.read_bytes().lower()
        self.wrong += [f"{key} is forgotten, and its words are there" for key in forgotten
                       if self.home.secrets[key].encode() in data]  # fmt: skip
        self.ends["forgotten"] = len(forgotten)
        for left in self.place.glob("index.db*"):
            if left.name not in ("index.db", "index.db.lock"):
                self.wrong.append(f"left behind: {left.name}")

    def _run_and_compare(self, *commands: list[str]) -> None:
        """Run commands to their end; after each, the rows are those that a rebuild makes."""
        for arguments in commands:
            process = self._start([*arguments, "-d", str(self.database)])
            said, _ = process.communicate(timeout=PATIENCE)
            if process.returncode:
                self.wrong.append(f"the last {arguments[0]}: {process.returncode} {said.decode()}")
            try:
                assert_as_rebuilt(self.database)
            except AssertionError as error:
                self.wrong.append(f"a rebuild after the last {arguments[0]}: {error}")

    def _leave_out_in(self, scratch: Path) -> list[str]:
        """Make a database that leaves out what ours does; return the conversations' keys."""
        with writing(scratch):
            pass
        source, target = connect(self.database), connect(scratch)
        columns = "session_key, path, root, forgotten_at, is_pending"
        rows = source.execute(f"select {columns} from forgotten").fetchall()
        target.executemany(f"insert into forgotten ({columns}) values (?, ?, ?, ?, ?)", rows)
        source.close()
        target.close()
        return sorted({row["session_key"] for row in rows} & self.home.secrets.keys())


def main() -> int:
    """Run the storm with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", file=sys.stderr)
    end = time.monotonic() + arguments.minutes * 60
    with tempfile.TemporaryDirectory(prefix="storm-") as directory:
        storm = Storm(Path(directory), arguments.seed)
        with contextlib.suppress(KeyboardInterrupt):
            storm.rage(lambda step: time.monotonic() < end)
    for how, count in sorted(storm.ends.items()):
        print(f"{count:6} {how}")
    print("\n".join(storm.wrong[:40]) or "equal to a sync from scratch")
    return 1 if storm.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
