"""An exported conversation is whole, needs nothing else, and gives away no credential.

Whatever stands in it is text, no file is overwritten that nobody named, and nothing is written
below a directory of an agent.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.support.cases import DEMO, home_of
from tests.support.hostile import TEXTS
from tests.support.images import image
from tests.support.shell import Shell
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    agent,
    assistant,
    call,
    result,
    user,
    write,
)
from tests.test_every_command import EVIL as CONTROLS
from tests.test_redaction import BLOCK, SECRETS

from assoc_ingest import tags
from assoc_ingest.ask import conversation as message_text
from assoc_ingest.ask import export
from assoc_ingest.ask.export import Choice, ExportedConversation, prose, quoted
from assoc_ingest.commands import export as export_target
from assoc_ingest.files import private
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync
from assoc_ingest.web import entries as export_entries
from assoc_ingest.web import entries as export_html

GOLDEN = Path(__file__).parent / "golden"
FROST = "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301"
FORMATS = ("html", "md", "jsonl")
CORPUS = Path(os.environ.get("ASSOC_REAL_CORPUS", "/nowhere"))
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("demo") / "assoc.db"
    sync(database, sorted(DEMO.iterdir()))
    return database


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def exported(shell: Shell, *arguments: str) -> str:
    """Return what is printed of the one session that a test has written."""
    assert shell("export", SESSION, *arguments) == 0, shell.err
    return shell.out


# -- what is in it -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_the_demo_looks_as_expected(
    form: str, demo: Path, shell: Shell, request: pytest.FixtureRequest
) -> None:
    shutil.copy(demo, shell.database)
    assert shell("export", FROST, "--format", form) == 0
    shown = shell.out.replace(str(DEMO), "/demo")
    shown = re.sub(r"<(style|script)>.*?</\1>", r"<\1></\1>", shown, flags=re.S)
    shown = re.sub(r"sha256-[\w+/=]+", "sha256-", shown)
    shown = re.sub(r"(Cost(?::\*\*|</dt><dd>) ?)\\?\$[\d.]+", r"\1$0.00", shown)  # prices change
    golden = GOLDEN / f"export.{form}"
    if request.config.getoption("--golden"):
        golden.write_text(shown, "utf-8")
    assert shown == golden.read_text("utf-8")


def words(text: str) -> set[str]:
    """Return the words of a text that no markup takes apart."""
    return set(re.findall(r"[A-Za-z0-9]{3,}", re.sub(r"\x1b\[[\d;]*m", "", text)))


def leaves(value: object) -> Iterator[str]:
    """Yield every text inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)


def missing(conversation: ExportedConversation, shown: str) -> set[str]:
    """Return the words of the conversation that are not in what is shown of it."""
    messages = [one for file in conversation.files for one in conversation.messages(file)]
    for subagent in conversation.subagents:
        if subagent.kind != "warmup":
            messages += conversation.subagent_messages(subagent)
    known = words(shown)
    lacking: set[str] = set()
    for message in messages:
        text = message.content
        if message.kind == "tool_use":
            text = "\n".join(leaves(json.loads(text)))
        if message.kind == "command":  # the program repeats its name in words of its own
            text = message_text.typed(message.kind, text)
        lacking |= words(tags.without(text)) - known
    return lacking


class Text(HTMLParser):
    """The text of a page, with the addresses of its links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.text += (
            " " + " ".join(value or "" for name, value in attrs if name in ("href", "alt")) + " "
        )

    def handle_endtag(self, tag: str) -> None:
        self.text += "" if tag in ("code", "em", "strong", "s", "a") else " "


def all_texts_are_there(database: Path, key: str) -> None:
    connection = open_reader(database)
    conversation = ExportedConversation(connection, key, Choice(every_record=True))
    page = "".join(export_html.pieces(connection, ExportedConversation(connection, key)))
    document = "".join(export.pieces(connection, ExportedConversation(connection, key)))
    lines = "".join(export.lines(conversation))
    assert missing(conversation, Text(page).text) == set()
    assert missing(conversation, document) == set()
    records = list(map(json.loads, lines.splitlines()))
    inputs = [json.loads(one["tool_text"]) for one in records if one.get("kind") == "tool_use"]
    assert missing(conversation, "\n".join(leaves([records, inputs]))) == set()
    connection.close()


def test_every_text_of_the_demo_is_there(demo: Path) -> None:
    connection = open_reader(demo)
    keys = [key for (key,) in connection.execute("select session_key from sessions")]
    connection.close()
    assert len(keys) > 3
    for key in keys:
        all_texts_are_there(demo, key)


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs a corpus of real transcripts")
def test_every_text_of_real_conversations_is_there(tmp_path: Path) -> None:
    database = tmp_path / "assoc.db"
    sync(database, sorted((CORPUS / "homes").iterdir()))
    connection = open_reader(database)
    keys = [key for (key,) in connection.execute("select distinct session_key from sessions")]
    connection.close()
    assert keys
    for key in keys:
        all_texts_are_there(database, key)


def test_a_subagent_is_inside_the_call_that_spawned_it(demo: Path, shell: Shell) -> None:
    shutil.copy(demo, shell.database)
    for form in ("html", "md"):
        assert shell("export", FROST, "--format", form) == 0
        call, said = "Survey the calendar", "Nothing reads a forecast yet"
        inside = shell.out[shell.out.index(f">{call}<") : shell.out.index(said)]
        assert inside.count("<b>Subagent</b>") == 1
        assert inside.count("<details") == inside.count("</details>") + 1, "still in the call"


def test_records_are_lines_with_the_key_of_their_subagent(demo: Path, shell: Shell) -> None:
    shutil.copy(demo, shell.database)
    assert shell("export", FROST, "--format", "jsonl") == 0
    records = list(map(json.loads, shell.out.splitlines()))
    kinds = [record["record"] for record in records]
    assert kinds[0] == "session"
    assert kinds[-1] == "end"
    assert records[0]["session_key"] == FROST
    assert records[-1] == {"record": "end", "messages": kinds.count("message"), "masked": {}}
    agents = {record["agent_key"] for record in records if record["record"] == "message"}
    assert agents == {None, "a4c1e07b92d83f516"}
    prompts = [record for record in records if record.get("kind") == "prompt"]
    assert [record["line"] for record in prompts] == [1]


def test_anchors_are_lines_and_survive_a_rebuild(demo: Path, shell: Shell) -> None:
    shutil.copy(demo, shell.database)
    assert shell("export", FROST) == 0
    before = shell.out
    named = re.findall(r'id="([^"]+)"', before)
    assert len(named) == len(set(named))
    assert {"L1", "L6", "a4c1e07b92d83f516-L1"} <= set(named)
    assert set(re.findall(r'href="#([^"]+)"', before)) <= set(named)
    assert shell("rebuild") == 0
    assert shell("export", FROST) == 0
    assert shell.out == before


def test_tools_and_thinking_can_be_left_out(demo: Path, shell: Shell) -> None:
    shutil.copy(demo, shell.database)
    for form in FORMATS:
        assert shell("export", FROST, "--format", form, "--no-tools", "--no-thinking") == 0
        assert "has no attribute" not in shell.out
        assert "Where does the calendar get" not in shell.out
        assert "Kale can stand frost" in shell.out
    assert shell("export", FROST, "--no-tools") == 0
    assert "1 subagent not shown" in shell.out
    assert "Left out: tool calls." in shell.out
    assert "Where does the calendar get" in shell.out


@pytest.mark.slow
def test_a_text_that_the_index_cut_is_whole(home: Path, shell: Shell) -> None:
    long = "b" * 300_000 + "END"
    write(
        home, TRANSCRIPT, user(f"prompt {long}"),
        assistant([call("t1", "Write", file_path="a", content=f"input {long}")]),
        user([result("t1", f"output {long}")], "u2"),
    )  # fmt: skip
    sync(shell.database, [home])
    for form in FORMATS:
        shown = exported(shell, "--format", form)
        for what in ("prompt", "input", "output"):
            assert f"{what} {long}" in shown, (form, what)


def test_what_was_taken_back_is_marked_in_every_format(shell: Shell, place: Path) -> None:
    home = home_of("gemini/what-was-rewound", place)
    sync(shell.database, [home])
    for form, mark in (("md", "*Taken back from here*"), ("html", "taken back")):
        assert shell("export", "2a000000", "--format", form) == 0
        before, behind = shell.out.index("Six beds."), shell.out.rindex("And a fence?")
        assert mark in shell.out[before : shell.out.index("Gravel.")], form
        assert mark not in shell.out[behind:], form
    assert shell("export", "2a000000", "--format", "md") == 0
    assert shell.out.index("*The conversation continues*") < shell.out.rindex("And a fence?")
    assert shell("export", "2a000000", "--format", "jsonl") == 0
    texts = {
        row["text"] for row in map(json.loads, shell.out.splitlines()) if row.get("is_superseded")
    }
    assert texts == {"And paths?", "Gravel."}


def test_a_text_whose_line_is_lost_says_that_its_end_is_missing(home: Path, shell: Shell) -> None:
    write(home, TRANSCRIPT, user("c" * 300_000 + "END"))
    sync(shell.database, [home])
    from assoc_ingest.testing.dump import connect

    connection = connect(shell.database)
    connection.execute("delete from archive")
    connection.commit()
    connection.close()
    shown = exported(shell)
    assert "END" not in shown
    assert "the end is not in the database" in shown
    assert "Without its end: 1 text" in shown


def test_images_are_in_the_file(home: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    svg = b"<svg onload='alert(1)'/>"
    write(
        home, TRANSCRIPT, user([image(PNG), image(PNG + b"large" * 99), image(svg, "image/svg+xml"),
                                image(svg)]),
        assistant([call("t1", "Read", file_path="a.png")]),
        user([result("t1", [image(PNG + b"read")])], "u2"),
    )  # fmt: skip
    sync(shell.database, [home])
    monkeypatch.setattr(export_entries, "LARGEST_IMAGE", 200)
    shown = exported(shell)
    sources = re.findall(r'<img [^>]*src="([^"]+)"', shown)
    data = "data:image/png;base64,"
    assert sources == [data + b64encode(one).decode() for one in (PNG, PNG + b"read")]
    assert shown.count("too large for this file, or not an image") == 3
    assert "[image image/png 48 bytes]" in exported(shell, "--format", "md").replace("\\", "")


# -- what stays text -----------------------------------------------------------------------------

EVIL = (
    "evil <script>alert(1)</script><img src=http://evil.example/x.png onerror=alert(2)>"
    "</details></pre></style><style>@import 'http://evil.example'</style> \"'> "
    "[a](javascript:alert(4)) ![b](http://evil.example/b.png) `<i>` ```<u>\n\n"
    "</details>\n# heading\n```\n</details><h1>x</h1>\n\n````\n[c]: http://evil.example\n<!--\n"
    f"{CONTROLS} @ada #12 \u202e"
)
OURS = {
    *("html", "head", "meta", "title", "style", "body", "script", "div", "header", "nav", "main"),
    *("footer", "article", "details", "summary", "button", "h1", "h2", "dl", "dt", "dd", "p"),
    *("ul", "ol", "li", "a", "b", "span", "pre", "code", "ins", "del"),
}
MARKDOWN = {
    *("h3", "h4", "h5", "h6", "em", "strong", "s", "blockquote", "hr", "br"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


@pytest.fixture
def hostile(home: Path, shell: Shell) -> Shell:
    """A session in which every text and every name is hostile."""
    task = call("t3", "Task", prompt=EVIL, subagent_type=EVIL, description=EVIL)
    write(
        home, TRANSCRIPT, user(EVIL, cwd=f"/srv/{EVIL}", gitBranch=EVIL),
        assistant(
            [{"type": "text", "text": EVIL}, {"type": "thinking", "thinking": EVIL},
             call("t1", "Bash", command=EVIL, description=EVIL),
             call("t2", "Edit", file_path=EVIL, old_string=EVIL, new_string=EVIL * 2),
             task, call("t4", EVIL, **{EVIL: EVIL}),
             call("t5", "TodoWrite", todos=[{"content": EVIL, "status": EVIL}])],
            model=EVIL, usage={"input_tokens": 5, "output_tokens": 7},
        ),
        user([result("t1", EVIL, is_error=True), result("t2", EVIL)], "u2"),
        {"type": "custom-title", "customTitle": EVIL, "sessionId": SESSION},
        {"type": "system", "subtype": EVIL, "content": EVIL, "uuid": "s1"},
        *({"type": "pr-link", "prUrl": url, "prRepository": EVIL, "sessionId": SESSION}
          for url in ("javascript:alert(5)", f"http://evil.example/{CONTROLS}<b>")),
    )  # fmt: skip
    write(home, f"{PROJECT}/{SESSION}/subagents/agent-a1.jsonl", agent("a1", user(EVIL, "u9")))
    sync(shell.database, [home])
    return shell


class Tags(HTMLParser):
    """The tags of a page: which there are, what they refer to, and whether all are closed."""

    VOID = ("meta", "img", "br", "hr", "input")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: set[str] = set()
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses |= {value or "" for name, value in attrs if name in ("href", "src")}
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in self.VOID or self._open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")


def test_hostile_text_stays_text_in_html(hostile: Shell) -> None:
    page = Tags(exported(hostile))
    assert page.tags <= OURS | MARKDOWN, page.tags
    assert not {name for name in page.attributes if name.startswith("on") or name == "style"}
    assert all(one.startswith(("#", "http://evil.example")) for one in page.addresses)
    assert "src" not in page.attributes
    assert "http-equiv" in page.attributes


def rendered(document: str) -> Tags:
    """Return the tags of Markdown as a program shows it that allows HTML."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return Tags(parser.render(document))


def test_hostile_text_stays_text_in_markdown(hostile: Shell) -> None:
    document = exported(hostile, "--format", "md")
    page = rendered(document)
    assert page.tags <= MARKDOWN | {
        *("h1", "h2", "p", "ul", "ol", "li", "details", "summary", "a", "b", "code", "pre"),
    }
    assert page.attributes <= {"href", "id", "class", "start"}
    assert all(one.startswith(("#", "http://evil.example")) for one in page.addresses)
    said = re.sub(r"^(`{3,}).*?^\1$", "", document, flags=re.S | re.M)
    assert "ada" in said
    assert not re.search(r"[@#](?=ada|12)", said)


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_text_at_its_worst_breaks_nothing_in_markdown(name: str) -> None:
    text = f"{TEXTS[name](3000)}</details><i>\n</details>\n"
    for shown in (prose(text, 2), quoted(text)):
        page = rendered(f"<details>\n<summary>a</summary>\n\n{shown}\n\n</details>\n")
        assert not page.tags & {"i", "img", "script"}


def test_a_format_prints_nothing_that_acts_on_a_terminal(hostile: Shell) -> None:
    from tests.test_every_command import harmful_in

    for form in FORMATS:
        assert harmful_in(exported(hostile, "--format", form)) == []


# -- credentials ---------------------------------------------------------------------------------


@pytest.fixture
def leaky(home: Path, shell: Shell) -> Shell:
    """A session with another credential in each field."""
    one = dict(zip(FIELDS, SECRETS.values(), strict=False))
    write(
        home, TRANSCRIPT,
        user(f"use {one['prompt']}", cwd=f"/srv/{one['path']}", gitBranch=one["branch"]),
        assistant(
            [{"type": "text", "text": f"`{one['answer']}`"},
             {"type": "thinking", "thinking": one["thinking"]},
             call("t1", "Bash", command=f"echo {'x ' * 142}{one['input']}"),
             call("t2", "Task", prompt="a", subagent_type=one["agent"], description="b"),
             call("t3", one["tool"], a="b")],
            model=one["model"], usage={"input_tokens": 5, "output_tokens": 7},
        ),
        user([result("t1", f"{one['output']}\n{BLOCK}")], "u2"),
        user([result("t2", [{"type": "text", "text": "c"}])], "u3",
             toolUseResult={"agentId": "a1"}),
        {"type": "custom-title", "customTitle": f"t {one['title']}", "sessionId": SESSION},
        {"type": "pr-link", "prUrl": f"https://ada:{one['link']}@example.org/1",
         "sessionId": SESSION},
    )  # fmt: skip
    write(home, f"{PROJECT}/{SESSION}/subagents/agent-a1.jsonl",
          agent("a1", user(one["subagent"], "u9")))  # fmt: skip
    sync(shell.database, [home])
    return shell


FIELDS = (
    "prompt", "path", "branch", "answer", "thinking", "input", "agent", "output", "title", "link",
    "subagent", "tool", "model",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_credentials_are_masked_in_every_field(form: str, leaky: Shell) -> None:
    shown = exported(leaky, "--format", form)
    assert "Masked: " in leaky.err
    assert "Masked: " in shown or '"masked": {"' in shown
    secrets = dict(zip(FIELDS, SECRETS.values(), strict=False)) | {"key": BLOCK[50:70]}
    for field, secret in secrets.items():
        assert secret not in shown, field
        assert secret[-6:] not in shown, field
    shown = exported(leaky, "--format", form, "--no-redact")
    assert leaky.err == ""
    for field, secret in secrets.items():
        assert secret in shown.replace("\\_", "_") or (field, form) == ("link", "jsonl"), field


def test_a_target_that_ends_in_a_credential_is_masked(home: Path, shell: Shell) -> None:
    """It is cut so early that nothing in it looks like a credential any more."""
    command = 'curl -H "Authorization: Bearer '.rjust(297, "x")
    write(home, TRANSCRIPT, assistant([call("t1", "Bash", command=f"{command}Qx7Qx7Qx7Qx7")]),
          assistant([call("t2", "Bash", command=f"echo {'y ' * 142}{SECRETS['npm token']}")],
                    "a2", id="m2"))  # fmt: skip
    sync(shell.database, [home])
    for form in FORMATS:
        assert "Qx7" not in exported(shell, "--format", form)
        assert SECRETS["npm token"][4:9] not in shell.out


def test_a_place_is_counted_once(home: Path, shell: Shell) -> None:
    token = SECRETS["GitHub token"]
    write(
        home, TRANSCRIPT, user("list them"),
        assistant([call("t1", "Bash", command=f"curl -u {token}")]),
        user([result("t1", f"{token}\n{token}")], "u2"),
    )  # fmt: skip
    sync(shell.database, [home])
    for form in FORMATS:
        exported(shell, "--format", form)
        assert shell.err == "Masked: GitHub token (3).\n", form


# -- where it is written -------------------------------------------------------------------------


@pytest.fixture
def small(home: Path, shell: Shell) -> Shell:
    write(home, TRANSCRIPT, user("fix the pool", cwd="/srv/demo"), assistant("Done."))
    write(home, f"{PROJECT}/{OTHER}.jsonl",
          user("fix the pool", "u5", sessionId=OTHER, cwd="/srv/demo"))  # fmt: skip
    sync(shell.database, [home])
    return shell


@pytest.mark.parametrize("name", ["a.html", "a.md", "a.jsonl", "a.txt"])
def test_a_file_is_private_whole_and_of_the_format_of_its_name(
    name: str, small: Shell, tmp_path: Path
) -> None:
    file = tmp_path / "out" / name
    file.parent.mkdir()
    assert small("export", SESSION, "-o", str(file)) == 0
    assert small.out == small.err == ""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]
    begins = {".html": "<!DOCTYPE", ".md": "# ", ".jsonl": '{"record"', ".txt": "<!DOCTYPE"}
    text = file.read_text("utf-8")
    assert text.startswith(begins[file.suffix])
    assert exported(small, "--format", {".txt": "html"}.get(file.suffix, file.suffix[1:])) == text


def test_on_a_terminal_the_file_is_called_after_the_conversation(
    small: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(export_target, "is_terminal", lambda stream: stream is sys.stdout)
    assert small("export", SESSION, "--format", "md") == 0
    (file,) = tmp_path.glob("*.md")
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\d-[a-z0-9-]+-{SESSION[:8]}\.md", file.name)
    assert f"Written to {file.name}." in small.err
    assert small("export", SESSION, "--format", "md", "-o", "-") == 0
    assert small.out == file.read_text("utf-8")


def test_a_file_that_is_there_is_only_overwritten_on_demand(small: Shell, tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("mine")
    assert small("export", SESSION, "-o", str(file)) == 2
    assert "already there" in small.err
    assert "--force" in small.err
    assert file.read_text() == "mine"
    assert small("export", SESSION, "-o", str(file), "--force") == 0
    assert "fix the pool" in file.read_text()


def test_on_a_terminal_a_person_is_asked(
    small: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.md"
    monkeypatch.setattr(export_target, "is_terminal", lambda _: True)
    for answer, code in ((False, 2), (True, 0)):
        file.write_text("mine")
        monkeypatch.setattr("click.confirm", lambda *_, answer=answer, **__: answer)
        assert small("export", SESSION, "-o", str(file)) == code
        assert (file.read_text() == "mine") is not answer


def test_an_export_that_fails_leaves_the_old_file(
    small: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out" / "a.md"
    file.parent.mkdir()
    file.write_text("mine")

    def broken(*_: object) -> Iterator[str]:
        yield "half"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "pieces", broken)
    assert small("export", SESSION, "-o", str(file), "--force") != 0
    assert file.read_text() == "mine"
    assert list(file.parent.iterdir()) == [file]


def test_a_name_that_is_taken_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "a"

    def pieces() -> Iterator[str]:
        yield "ours"
        file.write_text("theirs")

    with pytest.raises(Exception, match="already there"):
        private.write_private(file, pieces(), overwrite=False)
    assert file.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(os.name != "posix", reason="of POSIX systems only")
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_file_is_on_the_disk_before_its_name_and_the_name_before_it_is_said(
    overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[tuple[int, bool]] = []
    file = tmp_path / "a"
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: flushed.append((os.fstat(descriptor).st_ino, file.exists()))
    )
    private.write_private(file, ["text"], overwrite=overwrite)
    assert flushed == [(file.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_nothing_is_written_below_a_root(small: Shell, home: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home, target_is_directory=True)
    before = sorted(home.rglob("*"))
    for place in (home / "a.html", tmp_path / "link" / "a.html", home / PROJECT / "a.md"):
        assert small("export", SESSION, "-o", str(place), "--force") == 2
        assert "a directory of an agent" in small.err
    assert small("export", "--project", "demo", "-o", str(home / "out")) == 2
    assert "a directory of an agent" in small.err
    assert sorted(home.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["export"], "--project NAME"),
        (["export", SESSION, "--project", "demo"], "Give a session, or a project"),
        (["export", SESSION, "-o", "OUT/missing/a.html"], "Create it first"),
        (["export", SESSION, "-o", "OUT"], "is a directory"),
        (["export", SESSION, "-o", "/dev/null"], "not a regular file"),
        (["export", SESSION, "-o", f"OUT/{'x' * 300}"], "cannot be written"),
        (["export", "--project", "demo"], "-o DIR"),
        (["export", "--project", "demo", "-o", "OUT/file"], "is a file"),
        (["export", "--project", "dmeo", "-o", "OUT/x"], "Did you mean 'demo'"),
        (["export", "nothing"], "assoc-ingest list sessions"),
    ],
)
def test_bad_usage_gets_a_sentence(
    arguments: list[str], says: str, small: Shell, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "file").write_text("mine")
    code = small(*(one.replace("OUT", str(out)) for one in arguments))
    assert code in (1, 2)
    assert says in small.err
    assert small.out == ""
    assert [path.name for path in out.iterdir()] == ["file"]


def test_a_project_becomes_a_file_each_and_an_index(small: Shell, tmp_path: Path) -> None:
    for form in FORMATS:
        out = tmp_path / form
        assert small("export", "--project", "demo", "-o", str(out), "--format", form) == 0
        names = sorted(path.name for path in out.iterdir())
        index = [] if form == "jsonl" else [f"index.{form}"]
        stem = "2026-01-20-fix-the-pool-"
        assert names == [f"{stem}{key[:8]}.{form}" for key in (SESSION, OTHER)] + index
        assert stat.S_IMODE(out.stat().st_mode) == 0o700
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in out.iterdir())
        for name in index:
            assert all(one in (out / name).read_text() for one in names[:2])
        assert small("export", "--project", "demo", "-o", str(out), "--format", form) == 2
        assert "already there" in small.err
    assert "2 conversations" not in small.out


def test_names_of_files_are_safe_and_unique(home: Path, shell: Shell, tmp_path: Path) -> None:
    titles = ["../../etc/passwd", "CON", "", "字", "x" * 300, SECRETS["GitHub token"], "index"]
    for number, title in enumerate(titles):
        key = f"{number}{SESSION[1:]}"
        write(home, f"{PROJECT}/{key}.jsonl", user("a", f"u{number}", sessionId=key),
              {"type": "custom-title", "customTitle": title, "sessionId": key})  # fmt: skip
    sync(shell.database, [home])
    out = tmp_path / "out"
    assert shell("export", "--project", "demo", "-o", str(out)) == 0
    names = [path.name for path in out.iterdir()]
    assert len(names) == len(titles) + 1
    assert all(re.fullmatch(r"[a-z0-9-]{1,90}\.html", name) for name in names)
    assert SECRETS["GitHub token"][4:12].lower() not in "".join(names)
    assert list(tmp_path.rglob("*passwd*")) == [out / f"2026-01-20-etc-passwd-{SESSION[:8]}.html"]


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_ends_it_quietly(home: Path, shell: Shell) -> None:
    write(home, TRANSCRIPT, *(user("a" * 9000, f"u{n}") for n in range(200)))
    sync(shell.database, [home])
    command = [sys.executable, "-m", "assoc_ingest", "export", SESSION]
    process = subprocess.Popen(
        command, cwd=Path(__file__).parents[1] / "ingest", stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=os.environ,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.read(20).startswith(b"<!DOCTYPE html>")
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
