"""The code keeps its shape: which module may know which, and what never stands in it.

The rules are read off the syntax trees, so that they hold for modules that do not exist yet.
"""

from __future__ import annotations

import ast
import gc
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.support.cases import told_by_sources
from tests.support.writing import TRANSCRIPT, user, write

from assoc_ingest import sql
from assoc_ingest.derive import projects
from assoc_ingest.source import FILE_KINDS, OF_THEIR_PLACE
from assoc_ingest.sources import SOURCES
from assoc_ingest.sources.claude.tools import ACTIONS as TOOLS
from assoc_ingest.sync.run import sync

PACKAGE = Path(__file__).parents[1] / "ingest" / "assoc_ingest"
ROOT = PACKAGE.parents[1]

ENTRY = ("__main__", "cli", "commands")
"""Nothing below imports these: they parse arguments, call one function and print."""

DIRECTIONS = {
    # What the modules of a package may import, beside each other and the words that all share.
    "commands": {"ask", "files", "fleet", "mcp", "questions", "store", "sync", "upkeep", "web"},
    "fleet": {"ask", "files", "secrets", "sources", "store"},
    "mcp": {"ask", "questions", "secrets", "store"},
    "web": {"ask", "questions", "store"},
    "questions": {"ask", "files", "secrets", "sources", "store", "upkeep"},
    "sync": {"derive", "files", "secrets", "sources", "store", "upkeep", "workers"},
    "upkeep": {"ask", "derive", "files", "secrets", "sources", "store", "workers"},
    "ask": {"files", "secrets", "sources"},
    "store": {"derive", "files", "sources"},
    "workers": {"files", "sources", "store"},
    "files": {"secrets", "sources"},
    "derive": set(),
    "secrets": set(),
    "sources": set(),
}
"""The packages, and which others each may know. What is missing here is not allowed."""

SHARED = {
    "edits",
    "errors",
    "fields",
    "git",
    "lock",
    "paths",
    "records",
    "remotes",
    "source",
    "sql",
    "stopping",
    "tags",
    "terminal",
}
"""Modules outside all packages: words that all may use. They know none of the packages."""

WRITES = {
    *("store.batch", "store.rows"),
    *("files.changes", "sync", "derive"),
}
"""What no way from a reading command leads to."""

PRINTS = {"ask.output", "questions.transcript"}
"""What no way from a sync or a watch leads to: they return or tell a report."""

HEAVY = {
    "datasette",
    "jinja2",
    "platformdirs",
    "psycopg",
    "sqlite_utils",
    "tabulate",
    "watchfiles",
    "genai_prices",
}
"""Libraries that cost more to import than a command may take to start."""

TESTING = "testing"
"""Tests of sources, for packages that bring one: they use the program as tests do."""

modules = [
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.parent.name != TESTING
]


@pytest.fixture(autouse=True, scope="module")
def _no_collector_looks_at_the_trees() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def offenders(rule: Callable[[str], object]) -> dict[str, object]:
    """Return what the rule finds in each module, for those where it finds anything."""
    return {module: found for module in modules if (found := rule(module))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(place(module).read_text("utf-8"))


@cache
def nodes(module: str) -> list[ast.AST]:
    return list(ast.walk(tree(module)))


def place(module: str) -> Path:
    """The file of a module; the package itself is called __init__."""
    path = PACKAGE.joinpath(*module.split("."))
    package = path / "__init__.py"  # a directory alone may be what an older checkout compiled
    return package if package.exists() else path.with_suffix(".py")


def imported(nodes: Iterable[ast.AST], module: str) -> Iterator[str]:
    """Yield the full names of what these nodes import, relative names resolved."""
    package = ["assoc_ingest", *module.split(".")]
    if place(module).name != "__init__.py" or module == "__init__":
        package.pop()
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def ours(module: str) -> set[str]:
    """Return the modules of ours that a module imports, anywhere in it."""
    names = set()
    for name in imported(nodes(module), module):
        found = re.fullmatch(r"assoc_ingest\.(.+)", name)
        parts = found[1].split(".") if found else []
        while parts and ".".join(parts) not in modules:
            parts.pop()  # the last part is a name in the module
        if parts:
            names.add(".".join(parts))
    return names


def reach(module: str) -> set[str]:
    """Return all modules of ours that a module imports, directly or through others."""
    reached = {module}
    while new := set().union(*map(ours, reached)) - reached:
        reached |= new
    return reached


def top_level(module: str) -> Iterator[ast.AST]:
    """Yield what runs when the module is imported; not what only type checkers read."""
    pending: list[ast.AST] = list(tree(module).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))


@cache
def calls(module: str) -> list[tuple[str, ast.Call]]:
    """Return every call with the text of what is called."""
    return [(ast.unparse(node.func), node) for node in nodes(module) if isinstance(node, ast.Call)]


@cache
def strings(module: str) -> list[str]:
    """Return every string of a module but its docstrings."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstrings = {
        id(node.body[0].value)
        for node in nodes(module)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in nodes(module)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
    ]


# -- who knows whom ------------------------------------------------------------------------------


def test_nothing_imports_the_command_line() -> None:
    def rule(module: str) -> object:
        if _top(module) in ENTRY:
            return None
        return {name for name in ours(module) if _top(name) in ENTRY}

    assert offenders(rule) == {}


def test_packages_know_each_other_in_one_direction() -> None:
    """Every arrow between packages is listed, so that a new one is a decision and no accident."""

    def rule(module: str) -> object:
        package = _top(module)
        if package in ("__init__", "__main__", "cli"):
            return None
        others = {_top(name) for name in ours(module)} - {package} - SHARED
        return others - DIRECTIONS.get(package, set())

    assert offenders(rule) == {}
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert packages == {*DIRECTIONS, TESTING}


def test_every_direction_is_used() -> None:
    used: dict[str, set[str]] = {}
    for module in modules:
        used.setdefault(_top(module), set()).update(map(_top, ours(module)))
    assert {
        package: unused
        for package, allowed in DIRECTIONS.items()
        if (unused := allowed - used[package])
    } == {}


def test_what_all_share_stands_outside_the_packages() -> None:
    outside = {module for module in modules if "." not in module} - DIRECTIONS.keys()
    assert outside - {"__init__", "__main__", "cli"} == SHARED


def test_reading_and_writing_are_apart() -> None:
    for command in ("question", "export", "secrets"):
        assert not _among(reach(f"commands.{command}"), WRITES), command
    for module in ("sync.run", "sync.watch"):
        assert not _among(reach(module), PRINTS), module


def test_imports_have_no_cycle() -> None:
    waiting = {module: ours(module) - {module} for module in modules}
    while free := [module for module, needs in waiting.items() if not needs]:
        for module in free:
            del waiting[module]
        for needs in waiting.values():
            needs.difference_update(free)
    assert waiting == {}


LOADER = "sources.packages"
"""Looks for installed packages, and is no source."""


def test_a_source_is_pure() -> None:
    impure = {"os", "pathlib", "sqlite3", "time", "datetime", "logging", "socket", "random"}

    def rule(module: str) -> object:
        if _top(module) != "sources" or module == LOADER:
            return None
        names = {_top(name) for name in imported(nodes(module), module)}
        return names & impure | {name for name, _ in calls(module)} & {"open", "print"}

    assert offenders(rule) == {}


AROUND_CLAUDE = {"associate", "ccinsights", "chorus"}
"""Sources of programs around Claude Code, whose files repeat what it wrote."""


def test_what_sources_share_belongs_to_none_of_them() -> None:
    """Another agent's tools, statuses and phrases would be taken for those of the one that is read.

    What is neither a source nor in the package of one is shared."""
    own = set(SOURCES)

    def rule(module: str) -> object:
        if _top(module) != "sources" or module == "sources":
            return None
        source = module.split(".")[1]
        allowed = {source, "claude"} if source in AROUND_CLAUDE else {source}
        named = {name.split(".")[1] for name in ours(module) if name.startswith("sources.")}
        return named & own - allowed

    assert offenders(rule) == {}


def test_heavy_libraries_are_imported_where_they_are_needed() -> None:
    def rule(module: str) -> object:
        if module == "questions.view":  # it is imported where a template is shown
            return None
        return {*map(_top, imported(top_level(module), module))} & HEAVY

    assert offenders(rule) == {}


def test_starting_loads_nothing_heavy() -> None:
    script = f"""
import sys
from assoc_ingest.__main__ import main
assert main(["--help"]) == 0
print("loaded:", *sorted({HEAVY!r} & sys.modules.keys()))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT / "ingest", capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1].strip() == "loaded:", done.stderr


def test_a_sync_without_news_loads_nothing_that_stores_or_derives(tmp_path: Path) -> None:
    """Most syncs find nothing: what they import is half of their time."""
    write(tmp_path / "home", TRANSCRIPT, user("hello", "u1"))
    sync(tmp_path / "assoc.db", [tmp_path / "home"])
    script = f"""
import sys
from assoc_ingest.__main__ import main
assert main(["sync", "--db", {str(tmp_path / "assoc.db")!r}]) == 0
loaded = [name for name in sys.modules if name.startswith("assoc_ingest.")]
parts = ("derive", "workers", "store.batch", "store.rows", "sync.batches", "files.changes")
print("loaded:", *sorted(n for n in loaded if n.removeprefix("assoc_ingest.").startswith(parts)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT / "ingest", capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1].strip() == "loaded:", done.stdout + done.stderr


# -- what never stands in it ---------------------------------------------------------------------


def test_lines_of_data_are_never_split_by_unicode_rules() -> None:
    # str.splitlines cuts at U+2028 and U+0085, bytes.splitlines at a lone CR.
    def rule(module: str) -> object:
        is_of_ours = module == "sql"  # our own query files
        return not is_of_ours and [name for name, _ in calls(module) if "splitlines" in name]

    assert offenders(rule) == {}


def test_no_call_commits_drops_or_replaces_behind_our_back() -> None:
    def rule(module: str) -> object:
        return [
            name
            for name, call in calls(module)
            if name.endswith(".transform")  # of sqlite-utils: drops all triggers
            or name in ("os.replace", "os.rename", "shutil.move")  # of a live database
            or any(keyword.arg == "alter" for keyword in call.keywords)  # columns from data
            or ("executescript" in name and module != "sql")  # of sqlite3: commits first
        ]

    assert offenders(rule) == {}


def test_no_row_is_replaced() -> None:
    # REPLACE deletes without firing triggers: the index keeps the old words.
    replace = re.compile(r"\bor\s+replace\b|\breplace\s+into\b", re.IGNORECASE)
    assert offenders(lambda module: list(filter(replace.search, strings(module)))) == {}


def test_the_schema_is_made_by_migrations_only() -> None:
    permanent = re.compile(
        r"\bcreate\s+(?!temp\b|index temp\.|virtual table if not exists temp\.)"
        r"(\w+\s+)?(table|index|trigger|view)\b"
        r"|\bdrop\s+(table|index|trigger|view)\s+(if\s+exists\s+)?(?!temp\.|if\s|main\.)"
        r"|\balter\s+table\b",
        re.IGNORECASE,
    )
    assert offenders(lambda module: list(filter(permanent.search, strings(module)))) == {}


def test_a_query_only_reads() -> None:
    writing = re.compile(r"\b(insert|update|delete|create|drop|alter|pragma|attach)\b", re.I)
    for path in ROOT.glob("queries/*.sql"):
        text = re.sub(r"--.*|'[^']*'", "", path.read_text("utf-8"))
        assert not writing.search(text), path.name


_SQL_TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"[^\"]*\"|[:@]?\w+|\S", re.DOTALL)
_CLAUSES = {"select", "from", "where", "group", "having", "order", "limit", "window"}
Token = tuple[str, int, re.Match[str]]
"""The clause of its select that it stands in, how many parentheses deep, and where."""


def selects(text: str) -> list[list[Token]]:
    """Return the tokens of each select of a statement, without those of selects within it."""
    done: list[list[Token]] = []
    pending: list[tuple[int, list[Token]]] = []
    depth = 0
    for match in _SQL_TOKEN.finditer(text):
        word = match.group().lower()
        if word.startswith(("--", "/*")):
            continue
        if word in (")", ";", "union", "intersect", "except"):
            while pending and pending[-1][0] >= depth:
                done.append(pending.pop()[1])
        depth += (word == "(") - (word == ")")
        if word == "select":
            pending.append((depth, []))
        if pending:
            level, tokens = pending[-1]
            begins = depth == level and word in _CLAUSES
            clause = word if begins or not tokens else tokens[-1][0]
            tokens.append((clause, depth - level, match))
    return done + [tokens for _, tokens in pending]


def aliases_of(tokens: list[Token]) -> dict[str, str]:
    """Return the aliases of a select, each with its expression."""
    expressions: dict[str, str] = {}
    texts = [match.group() for clause, _, match in tokens if clause == "select"]
    depths = [depth for clause, depth, _ in tokens if clause == "select"]
    start = 0
    for place, (word, depth) in enumerate(zip(texts, depths, strict=True)):
        if not depth and word.lower() in ("select", "distinct", ","):
            start = place + 1
        elif not depth and word.lower() == "as" and place + 1 < len(texts):
            expressions[texts[place + 1]] = "".join(texts[start:place])
    return expressions


def bare_uses(tokens: list[Token], aliases: dict[str, str]) -> Iterator[re.Match[str]]:
    """Yield where names of aliases stand alone and would be columns before they are aliases."""
    words = ["", *(match.group().lower() for _, _, match in tokens), "", ""]
    for place, (clause, depth, match) in enumerate(tokens, 1):
        before, behind = words[place - 1], words[place + 1]
        if clause == "select" or before in (".", "as") or behind in (".", "("):
            continue
        is_aggregate = re.match(
            r"(min|max|sum|total|count|group_concat)\(", aliases.get(match.group(), "")
        )
        is_term = before in ("by", ",") and behind in (",", "asc", "desc", "limit", "", ";")
        is_alias_first = clause == "order" and not depth and is_term
        if (
            match.group() in aliases
            and not is_alias_first
            and not (clause == "where" and is_aggregate)
        ):
            yield match


def hidden_aliases(text: str, is_column: Callable[[str, int, int, str], bool]) -> Iterator[str]:
    """Yield uses of an alias that mean a column of the same name.

    In GROUP BY, HAVING, WHERE and expressions of ORDER BY, a name is a column if any table of the
    select has one of that name, and an alias only if none has. `is_column` is asked for the name
    of a table, and for the name with its place in the text.
    """
    for tokens in selects(text):
        aliases = aliases_of(tokens)
        words = dict.fromkeys(match.group() for clause, _, match in tokens if clause == "from")
        tables = [word for word in words if re.fullmatch(r"\w+", word)]
        for match in bare_uses(tokens, aliases):
            name = match.group()
            for table in tables:
                is_same = aliases[name] in (name, f"{table}.{name}")
                if not is_same and is_column(table, *match.span(), name):
                    yield f"{name} is a column of {table}, not {aliases[name]}"


_OF_FUNCTIONS = {
    "json_each": {"key", "value", "type", "atom", "id", "parent", "fullkey", "path"},
    "pragma_table_info": {"cid", "name", "type", "pk"},
    "pragma_table_list": {"schema", "name", "type", "ncol"},
}
_OF_FUNCTIONS |= {"json_tree": _OF_FUNCTIONS["json_each"]}


def hidden_in_query(connection: sqlite3.Connection, text: str) -> list[str]:
    def prepares(statement: str) -> bool:
        names = dict.fromkeys(re.findall(r":(\w+)", statement))
        try:
            connection.execute(f"explain {statement}", names)
        except sqlite3.Error:
            return False
        return True

    assert prepares(text), text
    return list(
        hidden_aliases(
            text,
            lambda table, start, end, name: prepares(f"{text[:start]}{table}.{name}{text[end:]}"),
        )
    )


def test_no_alias_of_a_query_is_hidden_by_a_column() -> None:
    connection = sqlite3.connect(":memory:")
    sql.migrate(connection)
    shadowed = """select coalesce(e.value, t.target) as path, count(*) as edits from tool_calls t
        left join json_each(t.paths) e on true group by path order by edits desc, path"""
    assert len(hidden_in_query(connection, shadowed)) == 1
    views = connection.execute("select name, sql from sqlite_master where type = 'view'")
    statements = {name: re.sub(r"(?i)^create view \w+ as", "", view) for name, view in views}
    statements |= {
        query.path: query.sql for folder in sql.FOLDERS for query in sql.queries(folder).values()
    }
    found = {name: hidden_in_query(connection, text) for name, text in statements.items()}
    connection.close()
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_no_alias_in_code_is_hidden_by_a_column_of_a_table_function() -> None:
    """Statements that are put together cannot be prepared, but their words can be read."""

    def is_column(table: str, start: int, end: int, name: str) -> bool:
        return name in _OF_FUNCTIONS.get(table, ())

    planted = "select max(x.value) as key, 1 from json_each(?) x group by key"
    assert list(hidden_aliases(planted, is_column))
    assert not offenders(
        lambda module: [
            line
            for text in (*strings(module), *formatted(module))
            if any(f"{function}(" in text for function in _OF_FUNCTIONS)
            for line in hidden_aliases(text, is_column)
        ]
    )


def formatted(module: str) -> Iterator[str]:
    """Yield every f-string of a module, with a name where each value is put in."""
    for node in nodes(module):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values
            )


def test_transactions_begin_and_end_in_one_place() -> None:
    def rule(module: str) -> object:
        # The next four call a commit of git so; the last two read databases of other programs and
        # those of PostgreSQL.
        if module in (
            *("store.database", "ask.blame", "ask.shell", "ask.since", "questions.recap"),
            *("files.stores", "fleet.search"),
        ):
            return None
        own = {name for name, _ in calls(module) if name.endswith("connection.rollback")}
        return own | {s for s in strings(module) if re.match(r"(?i)(begin|commit|rollback)\b", s)}

    assert offenders(rule) == {}


def test_the_kind_of_a_failure_is_told_in_one_place() -> None:
    def rule(module: str) -> object:
        if module == "errors":
            return None
        return re.findall(
            r"sqlite_errorcode|sqlite3\.SQLITE_(?!LIMIT)", place(module).read_text("utf-8")
        )

    # One tells what a statement does, the other how it ended.
    assert offenders(rule).keys() <= {"store.sql_child", "store.sql_process"}


def test_orjson_is_imported_in_one_place() -> None:
    def rule(module: str) -> object:
        return {"orjson"} & set(imported(nodes(module), module))

    assert offenders(rule).keys() == {"fields"}


def test_no_error_is_swallowed() -> None:
    everything = {"Exception", "BaseException", "everything"}

    def rule(module: str) -> object:
        suppressed = [call for name, call in calls(module) if name.endswith("suppress")]
        caught = {ast.unparse(name) for call in suppressed for name in call.args}
        for node in nodes(module):
            if isinstance(node, ast.ExceptHandler) and _does_nothing(node.body):
                caught.add(ast.unparse(node.type) if node.type else "everything")
        return caught & everything

    assert offenders(rule) == {}


def test_no_page_trusts_stored_text() -> None:
    pages = [*PACKAGE.rglob("*.html"), *PACKAGE.rglob("*.py")]
    assert not [path for path in pages if re.search(r"\|\s*safe\b", path.read_text("utf-8"))]


ORDINARY = told_by_sources("is_called_like_a_word")
SOURCE_NAMES = re.compile(
    "|".join(
        # One that is called like an ordinary word: its label, inside of a sentence, not a class.
        rf"(?<=[a-z,] ){s.label}\b(?![(,\n])"
        if s.name in ORDINARY
        else rf"(?i:\b{s.name}\b|\b{s.label}\b)"
        for s in SOURCES.values()
    )
)
NAMES_LEFT = {
    # Places outside `sources/` where a source is named, and why it has to be.
    "commands/serve.py": "clients that are configured in their own words",
    "commands/sync.py": "an example of a command",
    "ask/hits.py": "the one that its hits do not name: to load all takes a third of a search",
    "commands/recall.py": "agents that are given a plugin in their own form",
    "mcp/plugin.py": "agents that are given a plugin in their own form",
    "mcp/recall.py": "what each agent writes to its hooks, and what it reads",
    "mcp/setup.py": "clients that are configured in their own words",
    "derive/projects.py": "how a repository lies around its worktrees, whoever made them",
    "derive/repositories.py": "lines that are stored whole, so that none is read again for this",
    "queries/reports/most_edited_files.sql": "how a repository lies around its worktrees",
    "paths.py": "how a repository lies around its worktrees, whoever made them",
}


def test_no_source_is_named_outside_of_the_sources() -> None:
    """A source is added in `sources/` alone: it tells there what the rest needs to know of it."""
    places = [*PACKAGE.rglob("*.*"), *ROOT.glob("queries/**/*.sql")]
    named = {}
    for path in places:
        inner = path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT).as_posix()
        if path.suffix not in (".py", ".html", ".js", ".css", ".sql") or "sources/" in inner:
            continue
        if found := SOURCE_NAMES.findall(path.read_text("utf-8")):
            named[inner] = found
    assert named.keys() - NAMES_LEFT.keys() == set(), named
    assert NAMES_LEFT.keys() - named.keys() == set()  # a reason that is no longer needed


TOOLS_LEFT = {
    # Words outside `sources/` that only look like a tool's name.
    "web.entries": "what a page calls the messages of a subagent",
}


def test_no_tool_is_named_outside_of_the_sources() -> None:
    """What a tool does stands in `tool_calls.action`: other agents call theirs otherwise."""
    quoted = re.compile(rf"""['"]({"|".join(TOOLS)})['"]""")

    def rule(module: str) -> object:
        if _top(module) == "sources":
            return None
        texts = [text for text in strings(module) if text in TOOLS or quoted.search(text)]
        return texts if module not in TOOLS_LEFT else not texts

    assert offenders(rule) == {}
    texts = [*ROOT.glob("queries/**/*.sql"), *PACKAGE.rglob("*.html"), *PACKAGE.rglob("*.js")]
    assert not [path for path in texts if quoted.search(path.read_text("utf-8"))]


def test_kinds_of_files_that_the_core_names_mean_the_same_for_every_source() -> None:
    """A source chooses one to say what the rest makes of the file: the meaning stands there."""
    word = """["'][a-z_]+["'],? ?"""
    named = re.compile(rf"\b(?:f|file|files|claim)\.kind (?:==?|<>|!=|in) \(?((?:{word})+)")
    found = {*OF_THEIR_PLACE, *projects.LISTING_KINDS}
    for path in [*PACKAGE.rglob("*.py"), *ROOT.glob("queries/**/*.sql")]:
        if "sources" not in path.parts:
            for kinds in named.findall(path.read_text("utf-8")):
                found.update(re.findall("[a-z_]+", kinds))
    assert {"transcript", "history", "task", "side_agent"} <= found
    assert found <= FILE_KINDS.keys()


def _among(reached: set[str], named: set[str]) -> set[str]:
    """Return those modules that are named, or lie in a package that is."""
    return {module for module in reached if module in named or _top(module) in named}


def _top(name: str) -> str:
    return name.split(".")[0]


def _does_nothing(body: list[ast.stmt]) -> bool:
    return all(isinstance(statement, ast.Pass | ast.Continue) for statement in body)
