"""Loads the SQL files: migrations in `schema/`, queries in `queries/`.

`data()` finds a shipped file, in a wheel as in a checkout. A query starts with a comment: its first
line is the title, the other comment lines are the description, and the line `-- Group: cost` of a
report says under which heading it is listed; `:name` is a parameter. SQL that reads is in these
files, so that the command line, Datasette and a SQLite shell can run the same text.

What people run by name is one file each. In `queries/pages/`, a file has the queries of one area;
the line `-- name: session_links` begins one.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from functools import cache
from operator import attrgetter
from pathlib import Path
from sqlite3 import complete_statement
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from sqlite_utils import Database, Migrations

MIGRATION_SET = "assoc-ingest"
RECORD_OF_MIGRATIONS = "_sqlite_migrations"

VIEWS_NAME = "views"
VIEWS = ("schema", f"{VIEWS_NAME}.sql")
NEW_SCHEMA = ("schema", "new", "schema.sql")
"""What all migrations but the views add up to, and the record of them: see `make schema`."""

AREAS = "pages"
"""The folder whose files have several queries each."""

FOLDERS = ("reports", "lists", "search", AREAS)
"""The folders of `queries/`: reports, which are run by name; queries of `list`; queries of
`search`; and those of `show`, the pages of `serve` and the rest of the code."""

OF_ONE_MACHINE = ("active_sessions", "git_changes", "git_diff", "status_runs")
"""Reports on what a server does not have: hook events, the state of repositories, syncs."""

GROUPS = {
    "cost": "Usage and cost",
    "activity": "Activity",
    "open": "Open work",
    "sessions": "Conversations, projects and teams",
    "database": "The database",
}
"""The headings of the reports, in the order in which they are shown."""

_text_or_comment = re.compile(r"('(?:[^']|'')*')|--[^\n]*")
_GROUP = "Group:"
_NAME = "\n-- name: "
_quoted_or_parameter = re.compile(r"'(?:[^']|'')*'|--[^\n]*|(?<![:\w]):([a-z_]\w*)")


class Query(NamedTuple):
    """A query: its name, its description, and its SQL."""

    folder: str
    stem: str
    title: str
    description: str
    group: str
    sql: str
    parameters: tuple[str, ...]
    file: str
    """Its file, below `queries/`."""

    @property
    def path(self) -> str:
        """Its name in the code: the folder below `queries/`, and its name there."""
        return f"{self.folder}/{self.stem}"

    @property
    def name(self) -> str:
        """Its name for users, who can run only reports and lists."""
        names = {"reports": self.stem, "lists": f"list_{self.stem}"}
        return names.get(self.folder, self.path)


def data(*parts: str) -> Traversable:
    """Return the shipped file or directory `parts`, in a wheel or in a checkout."""
    package = Path(__file__).parent
    for root in (package / "_data", package.parents[1]):
        if (root / "schema").is_dir():
            return root.joinpath(*parts)
    from importlib.resources import files  # takes long to import

    return files("assoc_ingest").joinpath("_data", *parts)  # the package is in an archive


@cache
def query(path: str) -> Query:
    """Return a query by its name in the code, such as `reports/coverage`."""
    folder, stem = path.split("/")
    if folder == AREAS:
        file, text = _by_area()[stem]
        return parse_query(folder, stem, text, file)
    return parse_query(folder, stem, data("queries", folder, f"{stem}.sql").read_text("utf-8"))


@cache
def queries(folder: str) -> dict[str, Query]:
    """Return the queries of a folder, sorted by name."""
    if folder == AREAS:
        stems = sorted(_by_area())
    else:
        stems = sorted(file.removesuffix(".sql") for file in _files(folder))
    return {stem: query(f"{folder}/{stem}") for stem in stems}


def _files(folder: str) -> list[str]:
    names = (entry.name for entry in data("queries", folder).iterdir())
    return [name for name in names if name.endswith(".sql")]


@cache
def _by_area() -> dict[str, tuple[str, str]]:
    """Return the file and the text of each query of `queries/pages/` by its name."""
    texts: dict[str, tuple[str, str]] = {}
    for file in _files(AREAS):
        _, *parts = data("queries", AREAS, file).read_text("utf-8").split(_NAME)
        for part in parts:
            name, _, text = part.partition("\n")
            if name in texts:
                raise ValueError(f"{AREAS}/{file} and {texts[name][0]} have a query {name}")
            texts[name] = f"{AREAS}/{file}", text
    return texts


@cache
def named_queries() -> dict[str, Query]:
    """Return the queries that users can run by name, reports and lists, sorted by name."""
    found = [*queries("reports").values(), *queries("lists").values()]
    return {query.name: query for query in sorted(found, key=attrgetter("name"))}


def normalized(name: str) -> str:
    """Return the name of a query as its file has it: in Datasette it is called otherwise."""
    return name.casefold().replace("-", "_").removeprefix("ask_")


def reports_by_heading() -> dict[str, list[Query]]:
    """Return the reports by the heading of their group, in the order of the headings."""
    found: dict[str, list[Query]] = {heading: [] for heading in GROUPS.values()}
    for report in queries("reports").values():
        found.setdefault(GROUPS.get(report.group, "Other"), []).append(report)
    return found


def ask(connection: sqlite3.Connection, path: str, /, **parameters: object) -> sqlite3.Cursor:
    """Return the rows of the query `path`; a parameter that is not given is NULL."""
    asked = query(path)
    return connection.execute(asked.sql, dict.fromkeys(asked.parameters) | parameters)


def count(connection: sqlite3.Connection, query: Query, parameters: Mapping[str, object]) -> int:
    """Return the number of rows of a query that does not limit itself."""
    # PostgreSQL before 16 wants a name for it.
    statement = f"select count(*) from ({query.sql}) as counted"
    (rows,) = connection.execute(statement, {"limit": -1, **parameters}).fetchone()
    return int(rows)


def ordered(
    connection: sqlite3.Connection,
    query: Query,
    parameters: Mapping[str, object],
    order: str,
    limit: int,
    start: int,
) -> list[sqlite3.Row]:
    """Return rows of a list of sessions from the row `start` on: as they are, or in the order of
    their cost or of their messages."""
    given = {**parameters, "limit": -1, "most": limit, "start": start}
    costs, by = "", ""
    kept = "materialized" if order == "cost" else "not materialized"
    if order == "cost":
        costs = """left join (
            select c.session_id, sum(c.cost_microusd) as cost
            from response_costs c
            where c.session_id in (select id from listed)
            group by c.session_id
        ) c on c.session_id = l.id"""
    if order:
        key = {"cost": "c.cost", "messages": "l.message_count"}[order]
        by = f"order by {key} desc, l.ended_at desc, l.id desc"
    statement = f"""with listed as {kept} ({query.sql})
        select l.* from listed l {costs} {by}
        limit cast(:most as integer) offset cast(:start as integer)"""
    return connection.execute(statement, given).fetchall()


def parse_query(folder: str, stem: str, text: str, file: str | None = None) -> Query:
    """Split the leading comment of a query into title, description and group."""
    comments = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        comments.append(line.removeprefix("--").strip())
    title, *rest = comments or [stem]
    group = "".join(line.removeprefix(_GROUP).strip() for line in rest if line.startswith(_GROUP))
    description = " ".join(line for line in rest if not line.startswith(_GROUP)).strip()
    found = (match.group(1) for match in _quoted_or_parameter.finditer(text))
    parameters = tuple(dict.fromkeys(parameter for parameter in found if parameter))
    file = file or f"{folder}/{stem}.sql"
    return Query(folder, stem, title, description, group, text, parameters, file)


def migration_names() -> list[str]:
    """Return the names of all migrations, in order: the stems of the files in `schema/`, and views.

    The last one changes with each view, so that every database gets the views of its writer.
    """
    names = (entry.name for entry in data("schema").iterdir())
    files = (name.removesuffix(".sql") for name in names if name.endswith(".sql"))
    text = data(*VIEWS).read_bytes()
    return [
        *sorted(name for name in files if name != VIEWS_NAME),
        f"{VIEWS_NAME}-{crc32(text):08x}",
    ]


def applied_migrations(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute(
        f"select name from {RECORD_OF_MIGRATIONS} where migration_set = ?", (MIGRATION_SET,)
    )
    return {name for (name,) in rows}


def migrate(connection: sqlite3.Connection) -> None:
    """Apply the missing migrations of `schema/`, within the open transaction if there is one.

    An empty database gets what they add up to, which is a tenth of the work, and then those that
    are newer than that, if there are any. Another one ends with the same schema, or this raises
    sqlite3.Error: its views are dropped before and made again behind them (`schema/views.sql`), so
    that no migration has to. Plugins of sqlite-utils that were installed for other programs are not
    loaded.
    """
    if connection.execute("select 1 from sqlite_master").fetchone() is None:
        is_within = connection.in_transaction
        for statement in _new_schema():
            connection.execute(statement)
        if not is_within and connection.in_transaction:  # Python has begun one for an insert
            connection.commit()
        if applied_migrations(connection).issuperset(migration_names()):
            return
    from sqlite_utils import Database

    for name in views():
        connection.execute(f"drop view if exists main.{name}")
    connection.execute(
        f"delete from {RECORD_OF_MIGRATIONS} where migration_set = ? and name glob ?",
        (MIGRATION_SET, f"{VIEWS_NAME}-*"),
    )
    migrations().apply(Database(connection, execute_plugins=False))
    _mend(connection)


def views() -> dict[str, str]:
    """Return the statements of `schema/views.sql` by the names of the views that they make."""
    made = statements(data(*VIEWS).read_text("utf-8"))
    return {plain(statement).split()[2]: statement for statement in made}


def _new_schema() -> Iterator[str]:
    """Yield what makes an empty database one of this version."""
    yield from statements(data(*NEW_SCHEMA).read_text("utf-8"))
    yield from views().values()
    yield (
        f"insert into {RECORD_OF_MIGRATIONS} (migration_set, name, applied_at) values"
        f" ('{MIGRATION_SET}', '{migration_names()[-1]}',"
        " strftime('%Y-%m-%d %H:%M:%f+00:00', 'now'))"
    )


def schema_of(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return type, name and SQL of what a schema consists of, in the order in which it was made."""
    return connection.execute(
        "select s.type, s.name, s.sql from sqlite_master s left join pragma_table_list l"
        " on l.name = s.name and l.schema = 'main'"
        " where s.sql is not null and coalesce(l.type, '') <> 'shadow'"
        " and s.name not glob 'sqlite_*' order by s.rowid"
    ).fetchall()


def try_migrations(connection: sqlite3.Connection) -> None:
    """Apply the missing migrations to an empty copy of a database, in memory.

    Raises sqlite3.Error as `migrate` does.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        for _, _, statement in schema_of(connection):
            copy.execute(statement)
        copy.executemany(
            f"insert into {RECORD_OF_MIGRATIONS} (migration_set, name) values (?, ?)",
            ((MIGRATION_SET, name) for name in applied_migrations(connection)),
        )
        migrate(copy)


def _mend(connection: sqlite3.Connection) -> None:
    """Make indexes, triggers and views those of a database of this version.

    A database of before the first release may lack some, although it has all migrations. Raises
    sqlite3.DatabaseError if a table is not as in a database of this version. Comments may differ.
    """
    with closing(sqlite3.connect(":memory:")) as new:
        for statement in _new_schema():
            new.execute(statement)
        if applied_migrations(new) != set(migration_names()):
            return  # `make schema` has yet to be run
        expected = schema_of(new)
    there = {(type_, name): plain(text) for type_, name, text in schema_of(connection)}
    for type_, name, text in expected:
        is_same = there.get((type_, name)) == plain(text)
        if is_same or RECORD_OF_MIGRATIONS in name:
            continue
        if type_ == "table":
            raise sqlite3.DatabaseError(f"its table {name} is not that of this version")
        if (type_, name) in there:
            connection.execute(f"drop {type_} {name}")
        connection.execute(text)


def plain(text: str) -> str:
    """Return SQL without comments, and with single spaces."""
    return " ".join(_text_or_comment.sub(lambda match: match[1] or " ", text).split())


def migrations() -> Migrations:
    """Return the files of `schema/` as migrations."""
    from sqlite_utils import Migrations

    known = Migrations(MIGRATION_SET)
    *files, views = migration_names()
    for name in files:
        _register(known, name, data("schema", f"{name}.sql").read_text("utf-8"))
    _register(known, views, data(*VIEWS).read_text("utf-8"))
    return known


def _register(known: Migrations, name: str, script: str) -> None:
    @known(name=name)
    def apply(database: Database) -> None:
        for statement in statements(script):
            database.conn.execute(statement)


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script, each of which ends at the end of a line.

    They are executed one by one inside the open transaction: `executescript` of a sqlite3
    connection commits first, and that of sqlite-utils looks for an end after every character, which
    takes a quarter of a second for a new database.
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if line.rstrip().endswith(";") and complete_statement(statement):
            yield statement.strip()
            statement = ""
    if statement.strip():
        yield statement.strip()


def id_list(values: Iterable[int]) -> str:
    """Return ids as SQL text; they are integers, and can be more than SQLite allows parameters."""
    return ", ".join(map(str, values))
