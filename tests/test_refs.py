"""Whatever search finds has a short name, and `show` opens there: the text is on the page."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.cases import CASES, DEMO, SOURCES, home_of
from tests.support.reading import index as indexed
from tests.support.searching import search
from tests.support.shell import Shell
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    agent,
    assistant,
    call,
    chain,
    result,
    user,
    write,
    write_bytes,
)

from assoc_ingest import sql, tags
from assoc_ingest.ask import refs
from assoc_ingest.ask.hits import Hit
from assoc_ingest.ask.refs import find_session
from assoc_ingest.errors import NotFoundError, UsageError
from assoc_ingest.questions.question import Reader, as_data, beside
from assoc_ingest.questions.show import show
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync
from assoc_ingest.terminal import Paint

AGENT = "a1b2c3d4e5"
AGENT_FILE = f"{PROJECT}/{SESSION}/subagents/agent-{AGENT}.jsonl"
SHORT = SESSION[:8]

_frame = re.compile(r"[\s│┃▌]+")
_word = re.compile(r"[A-Za-z]{4,15}")


def shown(connection: sqlite3.Connection, reference: str, **options: object) -> list[str]:
    """Return the lines that `show` prints for a reference."""
    return list(show.ask(Reader(connection, 0), reference, **options).lines(100, Paint(False)))


def as_json(connection: sqlite3.Connection, reference: str, **options: object) -> dict[str, object]:
    answer = show.ask(Reader(connection, -1, is_program=True), reference, **options)
    return {**beside(answer), "total": answer.total, "items": [*map(as_data, answer.items)]}


def ref_of(connection: sqlite3.Connection, word: str) -> str | None:
    """Return the reference to the only hit of a word."""
    (hit,) = search(connection, word, closest=False).hits
    return refs.of_hits(connection, [hit])[0][0]


class Index:
    """A home that a test writes, and its index."""

    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        self._database = place / "assoc.db"

    def open(self, *more: Path) -> sqlite3.Connection:
        sync(self._database, [self.home, *more])
        return open_reader(self._database)


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path)


def turns(count: int) -> Iterator[dict[str, object]]:
    """Yield the lines of a conversation, two a turn: a prompt and its answer."""
    parent = None
    for number in range(1, count + 1):
        yield user(f"prompt {number}", f"u{number}", parent, number)
        parent = f"a{number}"
        yield assistant(f"answer {number}", parent, f"u{number}", number, id=f"msg_{number}")


# -- every text ----------------------------------------------------------------------------------

TEXTS = {
    "message": "select kind, id, coalesce(text, tool_text) as text from messages"
    " where copy_of is null",
    "task": "select null as kind, id, coalesce(subject, '') || ' ' || coalesce(description, '')"
    " as text from tasks",
    "todo": "select null as kind, id, content as text from todos",
    "plan": "select null as kind, id, text from plans",
    "inbox": "select null as kind, id, text from inbox_items where channel = 'inbox'",
    "document": "select null as kind, id, text from documents",
    "prompt": "select null as kind, id, text from prompts",
    "tool_result_file": "select null as kind, id, text from tool_result_files",
    "session": "select null as kind, id, title as text from sessions",
}


@pytest.fixture(scope="module")
def everything(
    template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[sqlite3.Connection]:
    """All golden cases and the demonstration homes in one database: many keys are in many homes."""
    place = tmp_path_factory.mktemp("everything")
    database = place / "assoc.db"
    database.write_bytes(template.read_bytes())
    homes = [
        home_of(case, place / case) if any((SOURCES / case).rglob("*.sql")) else lying
        for case in CASES
        if (lying := SOURCES / case / "home")
    ]
    sync(database, [*homes, *sorted(DEMO.iterdir())])
    with closing(open_reader(database)) as connection:
        yield connection


def values_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from values_in(item)


def a_word(kind: str | None, text: str | None) -> str | None:
    """Return the longest word of a text, that of a call without the names of its arguments."""
    text = text or ""
    if kind == "tool_use":
        try:
            text = " ".join(values_in(json.loads(text)))
        except ValueError:
            return None
    return max(_word.findall(tags.without(text)), key=len, default=None)


def marked(hit: Hit) -> set[str]:
    """Return what the snippet of a hit marks."""
    fields = hit.as_json()
    snippet, marks = fields["snippet"], fields["marks"]
    assert isinstance(snippet, str)
    assert isinstance(marks, list)
    return {_frame.sub("", snippet[start:end]) for start, end in marks}


@pytest.mark.slow
def test_every_text_that_search_finds_can_be_opened(everything: sqlite3.Connection) -> None:
    """Below its reference the text is whole, and with --full so is everything around it."""
    pages: dict[tuple[str, bool], str] = {}
    opened: set[tuple[str, int]] = set()
    kinds: set[str | None] = set()
    for what, statement in TEXTS.items():
        for row in everything.execute(statement).fetchall():
            word = a_word(row["kind"], row["text"])
            if word is None or (what, row["id"]) in opened:
                continue
            hits = [
                hit
                for hit in search(everything, word, limit=1000, closest=False).hits
                if (hit.what, hit.id) not in opened
            ]
            for hit, (reference, _) in zip(hits, refs.of_hits(everything, hits), strict=True):
                assert reference is not None, hit
                opened.add((hit.what, hit.id))
                kinds.add(hit.kind if hit.what == "message" else hit.what)
                for full in (False, True):
                    if (reference, full) not in pages:
                        lines = shown(everything, reference, full=full)
                        pages[reference, full] = _frame.sub("", "".join(lines))
                    for piece in marked(hit):
                        # `<command-name>` is found by its words, and a page shows the command.
                        is_tag = f"-{piece}>" in str(hit.as_json()["snippet"])
                        assert piece in pages[reference, full] or is_tag, (reference, hit)
    written = {
        row["kind"]
        for row in everything.execute(TEXTS["message"])
        if a_word(row["kind"], row["text"]) is not None
    }
    assert kinds == written | TEXTS.keys() - {"message"}
    assert {"prompt", "text", "thinking", "tool_use", "tool_result", "system"} < written
    assert {"attachment", "hook", "command", "compact_summary", "task_notification"} < written


@pytest.mark.slow
def test_every_line_has_a_reference_that_leads_to_it(everything: sqlite3.Connection) -> None:
    names = refs.Names(everything)
    rows = everything.execute("select distinct file_id, byte_offset from messages").fetchall()
    seen: dict[str, int] = {}
    for file, offset in sorted(map(tuple, rows)):
        reference = names.of(file, offset)
        assert reference is not None
        assert seen.setdefault(reference, file) == file
        line = refs.resolve(everything, reference)
        assert isinstance(line, refs.Line)
        if not line.notes:  # what another file repeats is shown there
            end = 2**62 if line.end is None else line.end
            assert line.file.id == file
            assert line.byte_offset <= offset < end, reference


# -- where it opens ------------------------------------------------------------------------------


def test_a_line_is_shown_with_the_turns_around_it(index: Index) -> None:
    write(index.home, TRANSCRIPT, *turns(20))
    with closing(index.open()) as connection:
        assert ref_of(connection, '"answer 10"') == f"{SHORT}:20"
        text = "\n".join(shown(connection, f"{SHORT}:20"))
        one = "\n".join(shown(connection, f"{SHORT}:20", context=1))
        alone = "\n".join(shown(connection, f"{SHORT}:20", context=0))
        whole = "\n".join(shown(connection, SHORT))
    assert re.findall(r"answer (\d+)", text) == ["7", "8", "9", "10", "11", "12", "13"]
    assert "· 6 earlier turns not shown" in text
    assert "· 7 later turns not shown" in text
    assert f"┏ {SHORT}:20 · text · 2026-01-20" in text
    assert "┃ answer 10" in text
    assert "--context 12 shows more around this line" in text
    assert f"show {SHORT} shows all" in text
    assert re.findall(r"answer (\d+)", one) == ["9", "10", "11"]
    assert re.findall(r"answer (\d+)", alone) == ["10"]
    assert "┃" not in whole
    assert len(re.findall(r"answer (\d+)", whole)) == 20


def test_a_byte_names_the_line_in_which_it_is(index: Index) -> None:
    """As in the answers of a server, which does not count lines."""
    write(index.home, TRANSCRIPT, *turns(20))
    with closing(index.open()) as connection:
        line = refs.resolve(connection, f"{SHORT}:20")
        assert isinstance(line, refs.Line)
        for byte in (line.byte_offset, line.byte_offset + 3):
            assert refs.resolve(connection, f"{SHORT}:B{byte}") == line
        with pytest.raises(NotFoundError, match=f"{SHORT} has no byte 9,999,999"):
            refs.resolve(connection, f"{SHORT}:B9999999")


def test_the_first_and_the_last_line_have_nothing_before_and_behind_them(index: Index) -> None:
    write(index.home, TRANSCRIPT, *turns(4))
    with closing(index.open()) as connection:
        for reference in (f"{SHORT}:1", f"{SHORT}:8"):
            text = "\n".join(shown(connection, reference))
            assert re.findall(r"answer (\d+)", text) == ["1", "2", "3", "4"]
            assert "not shown" not in text


def test_of_a_turn_without_end_a_hundred_messages_on_each_side_are_shown(index: Index) -> None:
    many = [
        assistant(f"step {n}", f"a{n}", f"a{n - 1}", n % 60, id=f"msg_{n}") for n in range(1, 500)
    ]
    write(index.home, TRANSCRIPT, user("go", "a0"), *many)
    with closing(index.open()) as connection:
        text = "\n".join(shown(connection, f"{SHORT}:251"))
        asked = "\n".join(shown(connection, f"{SHORT}:251", context=0))
    steps = [int(step) for step in re.findall(r"step (\d+)", text)]
    assert steps == list(range(150, 351))
    assert "· earlier messages of this turn not shown" in text
    assert "· later messages of this turn not shown" in text
    assert len(re.findall(r"step (\d+)", asked)) == 499


@pytest.mark.slow
def test_opening_a_line_costs_what_is_shown_not_what_is_there(index: Index, tmp_path: Path) -> None:
    steps = []
    for length in (150, 1500):
        home = tmp_path / str(length)
        many = [user(f"prompt {n}", f"u{n}", None, n) for n in range(10)]
        lines = []
        for prompt in many:
            lines += [prompt, *(assistant(f"step {n}", None, None) for n in range(length))]
        write(home / "home", TRANSCRIPT, *lines)
        with closing(Index(home).open()) as connection:
            counted: list[int] = []
            connection.set_progress_handler(lambda: counted.append(1), 100)  # noqa: B023
            text = shown(connection, f"{SHORT}:{5 * length}")
            connection.set_progress_handler(None, 100)
        assert sum("step" in line for line in text) > 150
        steps.append(len(counted))
    assert steps[1] < 1.2 * steps[0]


def test_a_result_is_shown_whole_under_its_call(index: Index) -> None:
    output = "\n".join(f"row {n}" for n in range(50))
    write(
        index.home,
        TRANSCRIPT,
        user("go"),
        assistant([call("toolu_1", command="one\ntwo\nthree")]),
        user([result("toolu_1", output)], "u2", "a1", 2),
        user("stop", "u3", "u2", 3),
    )
    with closing(index.open()) as connection:
        assert ref_of(connection, '"row 49"') == f"{SHORT}:3"
        text = shown(connection, f"{SHORT}:3")
        usual = shown(connection, SHORT)
        full = shown(connection, SHORT, full=True)
    assert f"┏ {SHORT}:3 · tool result · 2026-01-20" in "\n".join(text)
    assert "┃     row 49" in text
    assert "┃     three" in text
    assert not any("row 49" in line for line in usual)
    assert "    row 49" in full
    assert "    three" in full


def test_a_text_that_is_cut_says_that_there_is_more(index: Index) -> None:
    write(index.home, TRANSCRIPT, user("x" * 300_000))
    with closing(index.open()) as connection:
        assert any(
            "the text ends here, at 256 KiB" in line for line in shown(connection, f"{SHORT}:1")
        )


def test_a_line_inside_a_subagent_opens_the_subagent_and_says_whose_it_is(index: Index) -> None:
    write(
        index.home,
        TRANSCRIPT,
        user("look around"),
        assistant([call("toolu_1", "Task", description="survey", prompt="dig")]),
        user(
            [result("toolu_1", "found it")], "u2", "a1", 2,
            toolUseResult={"agentId": AGENT, "status": "completed"},
        ),
    )  # fmt: skip
    write(
        index.home,
        AGENT_FILE,
        agent(AGENT, user("dig", "s1", None, 1)),
        agent(AGENT, assistant("a buried needle", "s2", "s1", 1)),
    )
    with closing(index.open()) as connection:
        assert ref_of(connection, "needle") == f"{AGENT[:8]}:2"
        for reference in (f"{AGENT}:2", AGENT[:6]):
            text = "\n".join(shown(connection, reference))
            assert "a buried needle" in text
            assert "▌ look around" not in text
            assert f"session {SESSION}" in text
            assert f"· {AGENT} · called in {SHORT}:2" in text
        around = "\n".join(shown(connection, f"{SHORT}:1"))
        assert "▸ Task" in around
        assert AGENT in around
        assert "needle" not in around, "inside a window, a subagent is one line"
        assert as_json(connection, AGENT)["subagent"] == AGENT


def test_a_line_with_messages_of_a_conversation_and_of_its_subagent_shows_both(
    tmp_path: Path,
) -> None:
    home, database = home_of("copilot_chat/subagents-and-attachments", tmp_path), tmp_path / "a.db"
    sync(database, [home])
    with closing(open_reader(database)) as connection:
        text = "\n".join(shown(connection, "8a100000:3"))
        answer = as_json(connection, "8a100000:3")
    own, rule, of_subagent = text.partition("─── sidechain · Look for slugs ")
    assert rule
    assert "┃ ▸ runSubagent  Look for slugs" in own
    assert "12 files" not in own
    assert "┃ ▸ run_in_terminal  ls leaves" in of_subagent
    assert "┃   → 12 files" in of_subagent
    assert "runSubagent" not in of_subagent
    items = json.dumps(answer["items"])
    assert "Twelve slugs." in items
    assert "12 files" in items


def test_a_second_file_of_a_conversation_has_a_number(index: Index, tmp_path: Path) -> None:
    write(index.home, TRANSCRIPT, *turns(3))
    other = tmp_path / "backup"
    write(other, TRANSCRIPT, user("only in the backup", "x1"))
    with closing(index.open(other)) as connection:
        assert ref_of(connection, "backup") == f"{SHORT}/2:1"
        assert any("only in the backup" in line for line in shown(connection, f"{SHORT}/2:1"))
        assert not any("backup" in line for line in shown(connection, f"{SHORT}:1")[1:])
        with pytest.raises(NotFoundError, match=f"{SHORT} has 2 files with messages, not 3"):
            shown(connection, f"{SHORT}/3:1")


def test_a_line_that_repeats_another_file_of_the_session_leads_there(index: Index) -> None:
    lines = list(turns(3))
    write(index.home, TRANSCRIPT, *lines)
    write(index.home, f"projects/-srv-other/{SESSION}.jsonl", *lines)
    with closing(index.open()) as connection:
        text = "\n".join(shown(connection, f"{SHORT}/2:2"))
    assert f"Line 2 repeats {SHORT}:2, which is shown." in text
    assert "┃ answer 1" in text


def test_a_line_without_a_message_opens_at_the_nearest_and_says_so(index: Index) -> None:
    lines = list(turns(3))
    title = {"type": "custom-title", "customTitle": "Named", "sessionId": SESSION}
    write(index.home, TRANSCRIPT, *lines, title)
    with closing(index.open()) as connection:
        text = "\n".join(shown(connection, f"{SHORT}:7"))
    assert f"Line 7 of {SHORT} holds no message; the nearest that does is line 6." in text
    assert "┃ answer 3" in text


def test_lines_are_counted_as_an_editor_counts_them(index: Index) -> None:
    first, second = turns(1)
    data = json.dumps(first).encode() + b"\n\n\n{broken\n" + json.dumps(second).encode()
    write_bytes(index.home, TRANSCRIPT, data + b"\n")
    with closing(index.open()) as connection:
        assert ref_of(connection, '"answer 1"') == f"{SHORT}:5"
        assert any("┃ answer 1" in line for line in shown(connection, f"{SHORT}:5"))


def test_all_records_of_a_line_are_marked(index: Index) -> None:
    first, second = turns(1)
    third = user("prompt 2", "u2", "a1", 2)
    data = b"".join(json.dumps(line).encode() for line in (first, second)) + b"\n"
    write_bytes(index.home, TRANSCRIPT, data + json.dumps(third).encode() + b"\n")
    with closing(index.open()) as connection:
        assert ref_of(connection, '"answer 1"') == f"{SHORT}:1"
        text = "\n".join(shown(connection, f"{SHORT}:1"))
    assert re.findall("┃.*(prompt 1|answer 1|prompt 2)", text) == ["prompt 1", "answer 1"]


def test_json_says_which_message_was_asked_for_and_names_every_line(index: Index) -> None:
    write(index.home, TRANSCRIPT, *turns(20))
    with closing(index.open()) as connection:
        found = as_json(connection, f"{SHORT}:20", context=1)
        entry = as_json(connection, SHORT, prompts=True, last=2)
    messages = found["items"]
    assert isinstance(messages, list)
    assert [message["ref"] for message in messages] == [f"{SHORT}:{n}" for n in range(17, 23)]
    assert [message["line"] for message in messages if message["is_marked"]] == [20]
    prompts = entry["items"]
    assert isinstance(prompts, list)
    assert [message["text"] for message in prompts] == ["prompt 19", "prompt 20"]


# -- names of what is in no conversation ----------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("plan:brave-green-hedge", "every evening from May on"),
        ("plan:brave-green", "every evening from May on"),
        ("task:bed-team/2", "Plan the watering"),
        ("task:bed-team", "Draw the map of the beds"),
        ("todo:5e1f", "Mark tender crops in crops.toml"),
        ("inbox:bed-team/willow/2", "Please keep the beans out of bed one"),
        ("inbox:bed-team/willow", "Which bed needs the most water?"),
        ("document:projects/-srv-fernhill/memory/MEMORY.md", "Bed one is the coldest."),
        ("document:memory/MEMORY.md", "Bed one is the coldest."),
        ("output:5e1f/toolu_01FernTest2.txt", "test_day_040 PASSED"),
        ("prompt:2", "night of March 3: low -1"),
    ],
)
def test_an_entry_is_opened_by_its_name(
    everything: sqlite3.Connection, reference: str, words: str
) -> None:
    assert any(words in line for line in shown(everything, reference))
    assert words in json.dumps(as_json(everything, reference), ensure_ascii=False)


def test_a_subagent_is_no_session_and_its_session_is_told(everything: sqlite3.Connection) -> None:
    agent, session = everything.execute(
        "select a.agent_key, s.session_key from subagents a join sessions s on s.id = a.session_id"
        " where length(a.agent_key) > 8 and s.session_key like '5e1f%' limit 1"
    ).fetchone()
    told = f"^'{agent}' is a subagent. Give its session: {session[:8]}$"
    with pytest.raises(NotFoundError, match=told):
        find_session(everything, agent)


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("plan:brave-gren-hedge", "the nearest are plan:brave-green-hedge,"),
        ("task:bed-teem/2", "task:bed-team/2"),
        ("task:bed-team/99", "There is no task 'bed-team/99'"),
        ("prompt:99", "The history of prompts has no line 99"),
        ("prompt:99999999999999999999", "The history of prompts has no line"),
        ("prompt:9999/1", "There is no history 9999"),
        ("inbox:bed-team/willow/99", "There is no inbox"),
        ("5e1e", "the nearest key is 5e1f0c9a"),
        ("5e1e:4", "the nearest key is 5e1f0c9a"),
        ("5e1f:900", "Line 900 is beyond the end (23 lines) of 5e1f. Its last line: 5e1f:23"),
        ("5e1f:" + "9" * 400, "is beyond the end (23 lines)"),
    ],
)
def test_what_is_not_there_names_the_nearest(
    everything: sqlite3.Connection, reference: str, sentence: str
) -> None:
    with pytest.raises(NotFoundError) as error:
        shown(everything, reference)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("reference", "options", "sentence"),
    [
        ("5e1f:x", {}, "'x' is not the number of a line. An example: 5e1f:14"),
        ("5e1f:0", {}, "Lines are counted from 1: 5e1f:1"),
        ("prompt:x", {}, "prompt:LINE"),
        ("5e1f:13", {"no_tools": True}, "Line 13 is hidden by --no-tools"),
        ("5e1f", {"context": 2}, "--context says how much to show around a line"),
        ("5e1f:4", {"last": 2}, "--last applies to a whole conversation."),
        ("5e1f:4", {"errors": True}, "--errors applies to a whole conversation."),
        ("5e1f", {"prompts": True, "tool": "Bash"}, "--prompts and --tool contradict each other."),
        ("5e1f", {"errors": True, "no_tools": True}, "--no-tools and --errors contradict"),
        ("plan:brave-green-hedge", {"prompts": True}, "--prompts applies to a conversation."),
    ],
)
def test_what_contradicts_itself_is_one_sentence(
    everything: sqlite3.Connection, reference: str, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UsageError) as error:
        shown(everything, reference, **options)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_session_that_is_called_like_a_kind_of_entry_can_be_opened(index: Index) -> None:
    write(index.home, f"{PROJECT}/plan.jsonl", chain("user", "u1", None, 0, message={
        "role": "user", "content": "odd name"}, sessionId="plan"))  # fmt: skip
    write(index.home, f"{PROJECT}/{OTHER}.jsonl", user("other", "o1", sessionId=OTHER))
    with closing(index.open()) as connection:
        reference = ref_of(connection, '"odd name"')
        assert reference == "plan:1"
        assert any("odd name" in line for line in shown(connection, reference))


def test_stored_text_in_names_cannot_act_on_the_terminal(index: Index) -> None:
    evil = "\x1b]0;owned\x07"
    write(index.home, f"plans/{'a'}.md", f"# {evil}\n\n{evil} needle\n".encode())
    write(
        index.home,
        TRANSCRIPT,
        user(f"{evil} hook"),
        assistant([call("t1", f"Ba{evil}", command=evil)]),
    )
    with closing(index.open()) as connection:
        lines = [
            *shown(connection, "plan:a"),
            *shown(connection, f"{SHORT}:1", full=True),
            *shown(connection, f"{SHORT}:2"),
            *shown(connection, SHORT, prompts=True),
        ]
        with pytest.raises(NotFoundError) as error:
            shown(connection, SHORT, tool="Ba")
    text = "\n".join(lines) + str(error.value)
    assert not set(text) & set("\x1b\x07")
    assert "\\x1b]0;owned\\x07" in text


@pytest.mark.parametrize(("command", "code"), [("search walrus", 0), ("show plan:walrus", 1)])
def test_an_entry_that_a_sync_replaces_meanwhile_is_no_bug(
    command: str, code: int, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with indexed(shell.database) as rows:
        _, file = rows.session("0b7c", None, title="Pool", message_count=1)
        rows.add("plans", title="Walrus", text="walrus", name="walrus", file_id=file)
    ask = sql.ask

    def replaced(connection: sqlite3.Connection, path: str, /, **given: object) -> sqlite3.Cursor:
        if path == "pages/entry":
            with closing(sqlite3.connect(shell.database)) as other, other:
                other.execute("delete from plans")
        return ask(connection, path, **given)

    monkeypatch.setattr(sql, "ask", replaced)
    assert shell(*command.split()) == code, shell.err
