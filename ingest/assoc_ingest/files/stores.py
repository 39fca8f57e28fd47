"""Lists the entries of the stores below a root: those of databases, and of many small files.

A database is opened only if it, or the log beside it, has changed. Entries that are missing are
gone only if all of the store could be listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..entry import entry_names
from ..paths import is_directory, is_there
from ..source import DATABASE, Claim, KnownFile, claim_at
from .scanning import Walk
from .stored_names import NO_TIME
from .walk import Found, Root

if TYPE_CHECKING:  # most roots have no stores
    from .entries import Entry, Store
    from .steps import Listed


@dataclass(slots=True)
class Listing:
    """The entries of one store, as far as they were listed."""

    store: Store
    known: dict[str, KnownFile]
    entries: list[Entry] | None = None
    """None if nothing has changed, or nothing could be listed: all that was read is kept."""
    database: tuple[Found, KnownFile | None] | None = None
    """A database that was opened: its file, and what the last sync knew about it."""
    listed: Listed | None = None


@dataclass(slots=True)
class Stores:
    """The stores below a root, gathered while it is walked."""

    root: Root
    seen: Walk
    is_limited: bool
    _stores: dict[str, Store] = field(default_factory=dict)
    _files: dict[str, KnownFile | None] = field(default_factory=dict)

    def take(self, found: Found, claim: Claim, known: KnownFile | None) -> bool:
        """Take a file if it is a store, or a part of one; return whether it is."""
        is_database = claim.kind == DATABASE
        if not is_database and claim.within is None:
            return False
        from .entries import Store

        name = claim.within or found.path
        store = self._stores.setdefault(name, Store(self.root, name))
        if is_database:
            store.database = found
            self._files[name] = known
        else:
            store.files.append(found)
        return True

    @property
    def are_there(self) -> bool:
        """Was any store found?"""
        return bool(self._stores)

    @property
    def is_doubtful(self) -> bool:
        """Do entries consist of files of which only some were listed?"""
        return self.is_limited and any(store.database is None for store in self._stores.values())

    def listings(self, known: dict[str, KnownFile], *, full: bool) -> Iterator[Listing]:
        """Yield what was listed of each store; takes what is known of their entries out of `known`.

        What is known of a store that the walk has not seen is kept, unless that is gone.
        """
        entries: dict[str, dict[str, KnownFile]] = {name: {} for name in self._stores}
        for path, file in known.items():
            if (names := entry_names(path)) is not None and claim_at(self.root.source, path):
                entries.setdefault(names[0], {})[path] = file
        for name, own in sorted(entries.items()):
            if name in self._stores or self._is_unseen(name):
                for path in own:
                    del known[path]
            if name in self._stores:
                yield self._listing(self._stores[name], own, full=full)

    def _listing(self, store: Store, own: dict[str, KnownFile], *, full: bool) -> Listing:
        listing, found, file = Listing(store, own), store.found, self._files.get(store.name)
        if found is None:
            if not self.is_limited and not self._is_hidden(store):
                listing.entries = list(store.entries())
            return listing
        is_read = all(entry.gone_at or entry.mtime_ns != NO_TIME for entry in own.values())
        if file is None or full or not is_read or not found.is_as(file):
            from .database_files import list_entries

            entries, listed = list_entries(store, found)
            listing.entries, listing.database, listing.listed = entries, (found, file), listed
        return listing

    def _is_unseen(self, name: str) -> bool:
        """Is a store there of which the walk did not see all? It saw that a directory is empty."""
        place = self.root.path / name
        is_seen = is_directory(place) and not self.is_limited and not self._has_hidden(str(place))
        return is_there(place) and not is_seen

    def _is_hidden(self, store: Store) -> bool:
        """Is there a directory in the store that cannot be read?"""
        return self._has_hidden(store.location)

    def _has_hidden(self, location: str) -> bool:
        return any(place.startswith(location) for place, _ in self.seen.unreadable)
