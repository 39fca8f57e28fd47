"""A question is one function and its templates: people, programs and agents can then ask it.

The toy question here is registered nowhere else. And what was stored cannot act wherever it is
shown, though no template has to think of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.hostile import EVIL
from tests.support.shell import Shell
from tests.support.web import Site
from tests.support.writing import TRANSCRIPT, assistant, user, write

from assoc_ingest import questions
from assoc_ingest.mcp.index import Index, Settings
from assoc_ingest.mcp.server import Tools
from assoc_ingest.questions import question, view
from assoc_ingest.sync.run import sync
from assoc_ingest.terminal import Paint, harmless

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

MODULE = '''
from dataclasses import dataclass
from typing import Annotated

from assoc_ingest.questions.question import Field, ProjectField, Reader, Size, question


@dataclass
class Prompt:
    text: Annotated[str, "What was typed."]
    letters: int


@dataclass
class Prompts:
    colour: Annotated[str, "what was asked for"]
    total: Annotated[int, "Prompts with it."]
    items: Annotated[list[Prompt], "Prompts, as they were typed."]


@question(
    "Who named this colour", items="prompts", about="Find prompts that name a colour.",
    terminal=Size(5), json=Size(5), mcp=Size(5), web=Size(5),
)
def toy(
    reader: Reader,
    colour: Annotated[str, Field("The name of a colour.")],
    least: Annotated[int | None, Field("Of so many letters at least.", most=99)] = None,
    project: Annotated[str | None, ProjectField("Only of this project")] = None,
) -> Prompts:
    """Show the prompts that name a colour."""
    rows = reader.db.execute("select text from messages where kind = 'prompt' order by id")
    found = [text for (text,) in rows if colour in text and len(text) >= int(least or 0)]
    items = [Prompt(reader.mask(text), len(text)) for text in reader.page(found)]
    return Prompts(colour, len(found), items)
'''
TEMPLATES = {
    "txt": "{% block answer %}\n{% for one in items %}\nprompt: {{ one.text }}\n{% endfor %}\n"
    "{% endblock %}\n{% block empty %}Nobody named {{ colour }}.{% endblock %}",
    "mcp": "{% block head %}{% endblock %}\n{% block item %}\nprompt: {{ item.text }}\n"
    "{% endblock %}\n{% block empty %}Nobody named it.{% endblock %}",
    "html": "{% block answer %}{% for one in items %}<p>prompt: {{ one.text }}</p>{% endfor %}"
    "{% endblock %}{% block empty %}<p>Nobody named {{ colour }}.</p>{% endblock %}",
}


@pytest.fixture(autouse=True)
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add the question: its module, its templates and its name."""
    place = tmp_path / "toy"
    place.mkdir()
    (place / "toy.py").write_text(MODULE)
    for ending, text in TEMPLATES.items():
        (place / f"toy.{ending}").write_text(text)
    monkeypatch.setattr(questions, "__path__", [*questions.__path__, str(place)])
    monkeypatch.setattr(view, "FOLDERS", [*view.FOLDERS, place])
    questions.QUESTIONS.append("toy")
    view.environment.cache_clear()
    yield
    questions.QUESTIONS.remove("toy")
    view.environment.cache_clear()
    sys.modules.pop("assoc_ingest.questions.toy", None)


@pytest.fixture
def database(shell: Shell, tmp_path: Path) -> Path:
    write(tmp_path / "home", TRANSCRIPT, user("paint it red"), user(f"red {EVIL}", "u2"))
    sync(shell.database, [tmp_path / "home"])
    return shell.database


def described(database: Path) -> list[Any]:
    """Return what a client is told of the tools."""
    return [one.described() for one in Tools(Index(Settings(database))).offered()]


def asked(database: Path, **arguments: object) -> tuple[Any, str]:
    """Return the object and the text of the tool's answer."""
    index = Index(Settings(database))
    result: Any = Tools(index).call("toy", arguments)
    index.close()
    return result["structuredContent"], result["content"][0]["text"]


def test_a_question_is_a_command(shell: Shell, database: Path) -> None:
    assert shell("toy", "red", "-n", "1") == 0
    assert shell.out == "prompt: paint it red\n"
    assert shell("toy", "beige") == 1
    assert "Nobody named beige." in shell.err
    assert shell("toy", "--help") == 0
    assert "Show the prompts that name a colour." in shell.out
    assert "--least INTEGER RANGE" in shell.out
    assert "Only of this project, given by name, path or id" in " ".join(shell.out.split())
    assert shell("--help") == 0
    assert "toy Show the prompts that name a colour." in " ".join(shell.out.split())


def test_a_question_answers_a_program(shell: Shell, database: Path) -> None:
    first: Any = shell.json("toy", "red", "--json", "-n", "1")
    assert (first["colour"], first["total"]) == ("red", 2)
    assert first["items"] == [{"text": "paint it red", "letters": 12}]
    rest: Any = shell.json("toy", "red", "--json", "--cursor", first["next"], "--fields", "text")
    assert [one["text"][:4] for one in rest["items"]] == ["red "]
    assert rest["next"] is None
    contract: Any = shell.json("schema", "--json")
    assert contract["toy"] == {"text": "string", "letters": "integer"}
    assert contract["beside"]["toy"] == {"colour": "what was asked for"}


def test_a_question_is_a_tool_for_agents(database: Path) -> None:
    (schemas,) = (one for one in described(database) if one["name"] == "toy")
    assert schemas["description"].startswith("Find prompts that name a colour.")
    assert schemas["inputSchema"]["properties"]["least"]["maximum"] == 99
    assert schemas["inputSchema"]["required"] == ["colour"]
    item = schemas["outputSchema"]["properties"]["items"]["items"]["properties"]
    assert item["text"] == {"type": "string", "description": "What was typed."}
    shown, said = asked(database, colour="red", limit=1)
    assert shown["items"] == [{"text": "paint it red", "letters": 12}]
    assert "prompt: \n> paint it red\n" in said
    rest, _ = asked(database, colour="red", cursor=shown["next"])
    assert [one["text"][:4] for one in rest["items"]] == ["red "]
    assert "Nobody named it." in asked(database, colour="beige")[1]


def test_a_question_is_a_page(database: Path) -> None:
    site, base = Site(database), f"/{database.stem}/-"
    page = site.get(f"{base}/toy")
    assert "Who named this colour" in page.words
    assert "Least" in page.words
    assert "prompt: paint it red" in site.get(f"{base}/toy?colour=red").words
    assert "Nobody named beige." in site.get(f"{base}/toy?colour=beige").words
    assert f"{base}/toy" in site.get(f"{base}/reports").links()


def test_what_was_stored_cannot_act_though_no_template_thinks_of_it(
    shell: Shell, database: Path
) -> None:
    assert shell("toy", "red") == 0
    assert [line[:12] for line in shell.out.split("\n")] == ["prompt: pain", "prompt: red ", ""]
    assert not [letter for letter in shell.out if ord(letter) < 32 and letter != "\n"]
    _, said = asked(database, colour="red")
    stored = said[said.index("> red ") : said.rindex("touch OWNED")].split("\n")
    assert len(stored) > 2
    assert [line for line in stored if not line.startswith("> ")] == []
    page = Site(database).get(f"/{database.stem}/-/toy?colour=red")
    assert page.harmful() == []


def test_colours_of_a_template_reach_the_terminal() -> None:
    template = view.environment("txt").from_string("{{ text | bold }}")
    printed = harmless(template.render(text="red\x1b[7m", paint=Paint(True)))
    assert printed == "\x1b[1mred\x1b[0m"


@pytest.mark.parametrize("name", [name for name in questions.QUESTIONS if name != "toy"])
def test_every_question_has_its_templates(name: str) -> None:
    asked = question.named(name)
    expected = {"mcp": {"head", "item", "empty"}, "web": {"answer", "empty"}}
    # A table looks like any other, and an answer may show itself.
    if not asked.is_table and not any(hasattr(one, "lines") for one in asked.answers):
        expected["terminal"] = {"answer", "empty"}
    endings = {"terminal": "txt", "mcp": "mcp", "web": "html"}
    has_page = {"web"} if name == "search" else set()  # it has a view of its own
    for size in (asked.sizes.keys() | has_page) & expected.keys():
        form = endings[size]
        template = view.environment(form).get_template(f"{name}.{form}")
        text = Path(str(template.filename)).read_text("utf-8")
        shared = {block for block in template.blocks if f"self.{block}()" in text}
        needed = expected[size] - ({"empty"} if not asked.items else set())
        assert set(template.blocks) - shared == needed, form
    assert {"terminal", "json"} <= asked.sizes.keys()


def test_recent_work_is_one_answer_for_people_programs_and_browsers(
    shell: Shell, tmp_path: Path
) -> None:
    """What it says of a conversation is compared with the golden answer of the tool elsewhere."""
    key = "0b7c2f4e-9d31-4a86-b5c0-7e2f9a61d8b3"
    write(
        tmp_path / "home", f"projects/-srv-demo/{key}.jsonl",
        user("paint it red", sessionId=key, cwd="/srv/demo"),
        user("and blue", "u2", "u1", sessionId=key, cwd="/srv/demo"),
    )  # fmt: skip
    write(tmp_path / "home", f"tasks/{key}/1.json",
          {"id": "1", "subject": "Buy paint", "status": "pending", "description": ""})  # fmt: skip
    sync(shell.database, [tmp_path / "home"])
    assert shell("recent", "--project", "demo") == 0
    assert "0b7c2f4e:1  paint it red" in shell.out
    assert "0b7c2f4e:2  and blue" in shell.out
    assert "task  pending  0b7c2f4e  Buy paint" in shell.out
    answer: Any = shell.json("recent", "--json")
    assert (answer["conversations"], answer["total"]) == (1, len(answer["items"]))
    assert [one["text"] for one in answer["items"][0]["prompts"]] == ["paint it red", "and blue"]
    page = Site(shell.database).get(f"/{shell.database.stem}/-/recent?project=demo")
    assert "paint it red" in page.words
    assert "Buy paint" in page.words
    assert f"/{shell.database.stem}/-/session/0b7c2f4e?at=1" in page.links()
    assert shell("recent", "--since", "2031-01-01") == 1
    assert "No activity in that period. Without since 2031-01-01:" in shell.err


def test_costs_and_the_state_of_the_index_have_pages(shell: Shell, tmp_path: Path) -> None:
    home = tmp_path / "home"
    usage = {"input_tokens": 10, "output_tokens": 20}
    write(home, TRANSCRIPT, user("paint it red"), assistant("done", usage=usage))
    (home / "unheard-of").mkdir()
    sync(shell.database, [home])
    site, base = Site(shell.database), f"/{shell.database.stem}/-"
    page = site.get(f"{base}/stats?by=model").words
    assert shell.json("stats", "--by", "model", "--json")["items"][0]["model"] in page
    assert "No usage is recorded. Without since 2031-01-01: 1 row." in " ".join(
        site.get(f"{base}/stats?since=2031-01-01").words.split()
    )
    assert site.get(f"{base}/stats?by=colour").status == 400
    assert site.get(f"{base}/stats?since=soon").status == 400
    chosen = site.get(f"{base}/stats?by=model&since=2026-01&source=claude")
    assert "Source claude × , remove this filter From 2026-01 (2026-01-01) ×" in chosen.words
    assert f"{base}/stats?by=model&since=2026-01" in chosen.links(), "without the source"
    assert f"{base}/stats?by=model" in chosen.links(), "without all"
    state = site.get(f"{base}/status").words
    assert "Last sync" in state
    assert str(home) in state
    assert shell("status") == 0
    assert "unheard-of" in shell.out
    assert "unheard-of" not in state, "a page of anybody's looks at no disk"
    closed = {"tables": {"sync_runs": {"allow": False}}}
    limited = Site(shell.database, databases={shell.database.stem: closed})
    assert limited.get(f"{base}/status").status == 403
    assert limited.get(f"{base}/stats").status == 200
