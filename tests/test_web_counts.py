"""A number that is a link leads to exactly what it counts; a model has one colour everywhere."""

from __future__ import annotations

import html
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.reading import index
from tests.support.rows import Rows
from tests.support.served import data, get, served
from tests.test_demo import HOMES

from assoc_ingest.ask import times
from assoc_ingest.sync.run import sync
from assoc_ingest.web import usage
from assoc_ingest.web.usage import COLOURS, Colours

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

STATIC = Path(usage.__file__).parent / "static"
PAGES = (
    "/-/assoc", "/{db}/-/stats?when=all", "/{db}/-/stats?when=7d", "/{db}/-/status",
    "/{db}/-/sessions", "/{db}/-/project/1", "/{db}/-/project/2",
)  # fmt: skip


@pytest.fixture(scope="module")
def demo(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("demo") / "db.db"
    path.write_bytes(template.read_bytes())
    sync(path, HOMES)
    return served(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A database with copies, failures, worktrees, and what the demo lacks to be counted."""
    path = tmp_path_factory.mktemp("made") / "db.db"
    with index(path) as rows:
        _fill(rows)
    return served(path)


def _fill(rows: Rows) -> None:
    rows.add("prices", model="walrus-1", input=1_000_000, output=0)
    shop = rows.project("shop", session_count=2)
    branch = rows.project("shop · spring", is_worktree=1, parent_id=shop, session_count=1)
    days = [(shop, "01-20"), (shop, "02-03"), (branch, "02-03"), (None, "02-05")]
    for place, (project, date) in enumerate(days):
        day = f"2026-{date}"
        session, file = rows.session(
            f"k{place}", project, title=f"Fix {place}", message_count=2, prompt_count=place + 1,
            started_at=f"{day}T10:00:00.000Z", ended_at=f"{day}T11:00:00.000Z",
            models='["walrus-1"]',
        )  # fmt: skip
        rows.message(file, "prompt", "fix it")
        for name, status in (("Bash", "ok"), ("Bash", "error"), (None, "error"), ("Edit", "ok")):
            rows.call(file, name, {}, "said", status=status)
        for number, model in enumerate(["walrus-1", "seal-2", "unpriced & <b>", None]):
            rows.add(
                "responses", model=model, timestamp=f"{day}T10:0{number}:00.000Z",
                input_tokens=1_000_000 * (place + number), output_tokens=7 * number + place,
                cache_read_tokens=3, session_id=session, response_key=f"r{place}-{number}",
                file_id=file, byte_length=1,
            )  # fmt: skip
    rows.connection.execute("update sources set retention_days = 30")
    rows.connection.execute("update files set mtime = '2020-01-01T00:00:00.000Z', size = 9")
    rows.connection.execute(
        "update files set gone_at = '2026-02-01T00:00:00.000Z'"
        " where id = (select min(id) from files)"
    )


def counts(site: Any, path: str) -> list[tuple[str, float, str]]:
    """Return the links of a page that say a number: address, number, columns that add up to it."""
    answer = get(site, path)
    assert answer.status_code == 200, answer.text[:500]
    found = []
    for tag in re.findall(r"<a [^>]*data-count=[^>]*>", answer.text):
        said = {
            name: html.unescape(value) for name, value in re.findall(r'([\w-]+)="([^"]*)"', tag)
        }
        found.append((said["href"], float(said["data-count"]), said.get("data-sum", "")))
    return found


def at_the_end(site: Any, address: str, columns: str) -> float:
    """Return the number that the page at an address shows."""
    page = get(site, address)
    assert page.status_code == 200, address
    if not columns:
        (shown,) = re.findall(r'data-(?:rows|total)="(\d+)"', page.text)
        return float(shown)
    path, _, asked = address.partition("?")
    rows = data(site, f"{path}.json?{asked}")
    totals = dict(one.split("=") for one in re.findall(r'data-total="([^"]+)"', page.text))
    result = 0.0
    for column in columns.split():
        result += (column_sum := sum(row[column] or 0 for row in rows))
        if len(rows) > 1:  # the page says it below the column
            assert float(totals[column]) == pytest.approx(column_sum)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("site", ["demo", "made"])
@pytest.mark.parametrize("path", PAGES)
def test_a_number_leads_to_what_it_counts(
    site: str, path: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = datetime(2026, 3, 4, tzinfo=UTC) if site == "demo" else datetime(2026, 2, 5, tzinfo=UTC)
    monkeypatch.setattr(times, "present", lambda: today)
    served = request.getfixturevalue(site)
    links = counts(served, path.format(db="db"))
    assert len(links) >= (0 if "status" in path else 1 if "project" in path else 2)
    for address, number, columns in dict.fromkeys(links):
        shown = at_the_end(served, address, columns)
        assert shown == pytest.approx(number, abs=0.001), (address, columns)


def test_each_kind_of_number_is_a_link(made: Any) -> None:
    links = counts(made, "/db/-/stats?when=all") + counts(made, "/db/-/status")
    named = {(address.split("?")[0], columns) for address, _, columns in links}
    assert named == {
        ("/db/ask-usage-by-session", "cost_usd"), ("/db/ask-usage-by-session", "output_tokens"),
        ("/db/ask-usage-by-session", "input_tokens cache_write_tokens"), ("/db/retention", ""),
    }  # fmt: skip


def test_a_cost_that_is_not_known_is_not_nothing(tmp_path: Path) -> None:
    path = tmp_path / "db.db"
    with index(path) as rows:
        rows.add("prices", model="walrus-1", input=1_000, output=0)
        for name, models in (
            ("nobody", ["seal-2"]), ("tiny", ["walrus-1"]), ("some", ["walrus-1", "seal-2"]),
            ("silent", []),
        ):  # fmt: skip
            session, file = rows.session(
                name, rows.project(name, session_count=1), started_at="2026-02-03T10:00:00.000Z"
            )
            for number, model in enumerate(models):
                rows.add(
                    "responses", model=model, timestamp="2026-02-03T10:00:00.000Z",
                    input_tokens=1_000_000, session_id=session, file_id=file, byte_length=1,
                    response_key=f"{name}-{number}",
                )  # fmt: skip
    site = served(path)
    for project, cost in enumerate(("unknown", "&lt;$0.01", "≥$0.00", "$0.00"), 1):
        page = get(site, f"/db/-/project/{project}").text
        assert re.sub("<[^>]+>", "", page.partition("<dt>Cost</dt>")[2]).startswith(cost)
    board = get(site, "/db/-/stats?when=all&by=project").text
    costs = re.findall(
        r'<a href="[^"]*"[^>]*>(\w+)</a></th><td class="ai-number">([^<]*)</td>', board
    )
    assert dict(costs[:3]) == {"nobody": "unknown", "tiny": "&lt;$0.01", "some": "≥$0.00"}


def test_a_chart_has_a_column_for_each_day_from_the_first_to_the_last() -> None:
    days = ("2026-01-29", "2026-02-01")
    expected = ["2026-01-29", "2026-01-30", "2026-01-31", "2026-02-01"]
    assert usage.columns_of(days, "day") == expected
    assert usage.columns_of(days, "month") == ["2026-01", "2026-02"]
    assert usage.columns_of(days, "week") == ["2026-01-26"]
    assert usage.columns_of(("2026-02-01", "2026-02-02"), "week") == ["2026-01-26", "2026-02-02"]


def test_columns_of_very_many_days_are_months_and_say_so(made: Any, tmp_path: Path) -> None:
    assert "Cost per day by model" in get(made, "/db/-/stats?when=all").text
    path = tmp_path / "db.db"
    with index(path) as rows:
        for year in ("2024", "2026"):
            session, file = rows.session(f"k{year}", rows.project(year))
            rows.add(
                "responses", model="seal-2", timestamp=f"{year}-02-03T10:00:00.000Z",
                output_tokens=1, session_id=session, file_id=file, byte_length=1, response_key=year,
            )  # fmt: skip
    page = get(served(path), "/db/-/stats?when=all").text
    assert "Output tokens per month by model" in page, "no cost is known"
    assert "Output tokens per month from 2024-02 to 2026-02: 2 in all" in page
    assert page.count("<rect") == 2


@pytest.mark.slow
@pytest.mark.skipif("ASSOC_REAL_CORPUS" not in os.environ, reason="no transcripts of real people")
def test_numbers_of_real_transcripts_lead_to_what_they_count(
    template: Path, tmp_path: Path
) -> None:
    path = tmp_path / "db.db"
    path.write_bytes(template.read_bytes())
    sync(path, sorted(Path(os.environ["ASSOC_REAL_CORPUS"], "homes").iterdir()))
    site = served(path)
    links = counts(site, "/db/-/stats?when=all") + counts(site, "/db/-/sessions")
    assert len(links) > 40
    for address, number, columns in dict.fromkeys(links):
        assert at_the_end(site, address, columns) == pytest.approx(number, abs=0.01), address


# -- charts --------------------------------------------------------------------------------------


def test_every_bar_has_its_share_of_the_axis(tmp_path: Path) -> None:
    """The numbers are those of the rows: 3 and 1 dollars on one day, 2 on the next but one."""
    path = tmp_path / "db.db"
    with index(path) as rows:
        rows.add("prices", model="walrus-1", input=1_000_000, output=0)
        rows.add("prices", model="seal-2", input=1_000_000, output=0)
        session, file = rows.session("k", rows.project("shop"))
        for number, (model, day, dollars) in enumerate(
            [("walrus-1", 1, 3), ("seal-2", 1, 1), ("walrus-1", 3, 2)]
        ):
            rows.add(
                "responses", model=model, timestamp=f"2026-02-0{day}T10:00:00.000Z",
                input_tokens=1_000_000 * dollars, session_id=session, file_id=file, byte_length=1,
                response_key=f"{number}",
            )  # fmt: skip
    page = get(served(path), "/db/-/stats?when=all").text
    bars = re.findall(
        r'<rect class="ai-c\d+" x="(\d+)" y="([\d.]+)" width="8" height="([\d.]+)">'
        r"<title>([^<]+)</title>", page,
    )  # fmt: skip
    assert [(int(x), float(y), float(height), said) for x, y, height, said in bars] == [
        (1, 25, 75, "2026-02-01: walrus-1 $3.00"), (1, 0, 25, "2026-02-01: seal-2 $1.00"),
        (21, 50, 50, "2026-02-03: walrus-1 $2.00"),
    ]  # fmt: skip
    assert re.findall(r'<span class="ai-z\d+">(\$[\d.]+)</span>', page) == ["$4.00", "$2.00"]
    about = "Cost per day from 2026-02-01 to 2026-02-03: $6.00 in all, the most $4.00 (2026-02-01)."
    assert f'<svg role="img" aria-label="{about}"' in page


def test_an_axis_ends_with_a_round_number_that_is_large_enough() -> None:
    for value, top in ((0.003, 0.003), (0.91, 1), (1, 1), (1.1, 1.5), (23, 25), (642.16, 800)):
        assert usage.nice(value) == pytest.approx(top)
    values = {("a", f"m{number:02}"): 1 / 3 + number for number in range(40)}
    series = usage.ranked(values)
    assert (series[-1], len(series)) == (usage.OTHERS, usage.SERIES)


# -- colours -------------------------------------------------------------------------------------


def test_a_model_has_one_colour_on_every_page(made: Any) -> None:
    colours: dict[str, set[str]] = {}
    for path in ("/db/-/stats?when=all", "/db/-/stats?when=2026-02-03", "/db/-/sessions"):
        for colour, name in re.findall(
            r'<i class="ai-dot ai-(c[\w-]+)"></i>(?:<a [^>]*>)?([^<]+)', get(made, path).text
        ):
            colours.setdefault(name.strip(), set()).add(colour)
    assert len(colours) == 3
    assert {len(one) for one in colours.values()} == {1}
    assert len(set.union(*colours.values())) == 3


def test_a_colour_stays_whatever_models_come_later() -> None:
    names = [f"model-{number}" for number in range(40)]
    every = Colours(names)
    for count in range(40):
        some = Colours(names[:count])
        assert [some(name) for name in names[:count]] == [every(name) for name in names[:count]]
    assert {every(name) for name in names[:COLOURS]} == set(range(COLOURS))
    assert {every(name) for name in names[: 2 * COLOURS]} == set(range(2 * COLOURS))
    style = (STATIC / "assoc.css").read_text("utf-8")
    assert all(f".ai-c{number} {{" in style for number in range(2 * COLOURS))
    assert {Colours([])(name) for name in names} <= set(range(COLOURS))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_stands_out_from_the_ground(scheme: str) -> None:
    style = (STATIC / "assoc.css").read_text("utf-8")
    place = style.index("prefers-color-scheme: dark")
    part = style[:place] if scheme == "light" else style[place : style.index("}", place)]
    known = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part))
    assert {f"c{number}" for number in range(COLOURS)} <= set(known)
    for name, colour in known.items():
        if re.fullmatch(r"c\d+|others", name):
            for ground in ("ground", "raised"):
                assert _contrast(colour, known[ground]) >= 3, name


def _contrast(first: str, second: str) -> float:
    """Return the ratio of luminances as WCAG defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_a_lower_bound_is_marked_on_every_page(tmp_path: Path) -> None:
    """A partial response makes output and cost a lower bound, one without a price only the cost."""
    path = tmp_path / "db.db"
    with index(path) as rows:
        rows.add("prices", model="walrus-1", input=1_000_000, output=1_000_000)
        for name, model, partial in (("begun", "walrus-1", 1), ("free", "seal-2", 0)):
            session, file = rows.session(
                name, rows.project(name, session_count=1), started_at="2026-02-03T10:00:00.000Z",
                ended_at="2026-02-03T10:00:00.000Z", message_count=1, input_tokens=2_500_000,
                output_tokens=100,
            )  # fmt: skip
            rows.add(
                "responses", model=model, timestamp="2026-02-03T10:00:00.000Z", partial=partial,
                input_tokens=2_500_000, output_tokens=100, session_id=session, file_id=file,
                byte_length=1, response_key=name,
            )  # fmt: skip
    site = served(path)
    words = {
        address: re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", get(site, address).text))
        for address in (
            "/db/-/stats?when=all&by=model", "/db/-/session/begun", "/db/-/sessions",
            "/db/ask-usage-by-session", "/db/responses",
            "/db/ask-list-sessions", "/db/usage_by_model",
        )
    }  # fmt: skip
    board = words["/db/-/stats?when=all&by=model"]
    assert re.search(r"Cost ≥\$2\.50 .* Output ≥200 ", board)
    assert "walrus-1 ≥$2.50 ≥100 2.5 M" in board
    assert "seal-2 unknown 100 2.5 M" in board
    session = words["/db/-/session/begun"]
    assert "2.5 M in, 0 from cache, ≥100 out" in session
    assert "Cost ≥$2.50 " in session
    assert "≥$2.50" in words["/db/-/sessions"]
    report = words["/db/ask-usage-by-session"]
    assert report.count("≥100 ") == 1, "of the other, only the cost is not known"
    assert "All ≥2.5001" in report
    for place in ("/db/responses", "/db/ask-list-sessions", "/db/usage_by_model"):
        assert words[place].count("≥100 ") == 1, place
