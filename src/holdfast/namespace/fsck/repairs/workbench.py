"""Provide what all repairs need: reads, transactions under the maintenance lock, and a place in /lost+found."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from holdfast.errors import CorruptDataError
from holdfast.namespace.changes import Changes
from holdfast.namespace.configuration import Configuration
from holdfast.namespace.directory_times import DirectoryTimes
from holdfast.namespace.fsck.check import Subject
from holdfast.namespace.inode import Extent, Inode, Kind, decode_inode
from holdfast.namespace.inode_ids import new_id
from holdfast.namespace.keys import lease_key
from holdfast.namespace.lease import Lease
from holdfast.namespace.listing import Lister
from holdfast.namespace.maintenance import MaintenanceLock
from holdfast.namespace.operations.base import PathGroup
from holdfast.namespace.operations.mkdirs import Mkdirs
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import Caller
from holdfast.namespace.phases import Operations
from holdfast.namespace.trees import TreeCounter
from holdfast.namespace.view import Entry, Hints, View, read_view
from holdfast.transactions.base import Record

LOST_AND_FOUND = NsPath((b"lost+found",))

_MOST_NAMES = 100
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Seen:
    """An inode as a repair saw it."""

    key: bytes
    version: int
    inode: Inode

    @property
    def entry(self) -> Entry:
        """What a transaction validates."""
        return Entry(self.version, self.inode)


@dataclass(frozen=True, slots=True)
class _Place(PathGroup):
    """The inodes on a path."""

    path: NsPath

    @property
    def paths(self) -> tuple[NsPath]:
        return (self.path,)


@dataclass(slots=True)
class Workbench:
    """The tools of one repair.

    Attributes:
        caller: a superuser, the owner of what the repair makes.
        store_now_s: the time of the object store's clock when the round began.
        shelf: the directory in /lost+found for what this repair finds; made when it is first needed.
    """

    subject: Subject
    configuration: Configuration
    operations: Operations
    trees: TreeCounter
    caller: Caller
    lock: MaintenanceLock
    store_now_s: float
    shelf: NsPath | None = None

    @staticmethod
    def set_up(
        subject: Subject,
        configuration: Configuration,
        lock: MaintenanceLock,
        shelf: NsPath | None,
        store_now_s: float,
    ) -> Workbench:
        """Return the tools, with hints of their own: those of others may be wrong."""
        database, environment = subject.database, subject.environment
        hints, times = Hints(configuration.identity), DirectoryTimes(database, environment.clock)
        operations = Operations(database, environment, hints, times)
        trees = TreeCounter(operations, Lister(database, hints, times))
        caller = Caller(configuration.superuser, is_superuser=True)
        return Workbench(subject, configuration, operations, trees, caller, lock, store_now_s, shelf)

    # --- reading ------------------------------------------------------------------------------------------------------
    def records(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        """Return the records that exist."""
        return self.subject.database.get_many(keys)

    def inode(self, key: bytes) -> Seen | None:
        """Return the inode at a key, if there is one that can be read."""
        record = self.records([key]).get(key)
        if record is None:
            return None
        try:
            return Seen(key, record.version, decode_inode(key, record.value))
        except CorruptDataError:
            return None

    def now_ms(self) -> int:
        """Return the time, milliseconds since the epoch."""
        return self.operations.now_ms()

    # --- writing ------------------------------------------------------------------------------------------------------
    def commit(self, changes: Changes[None], seen: Mapping[bytes, Entry | None]) -> bool:
        """Commit changes if all records are as they were seen; return whether they took effect.

        Args:
            seen: records by key; None for one that must not exist.
        """
        entries = {key: entry for key, entry in seen.items() if entry is not None}
        return self.lock.commit(changes, View((), entries, seen.keys() - entries.keys()))

    def shelve(self, name: str, inode: Inode, changes: Changes[None], seen: Mapping[bytes, Entry | None]) -> bool:
        """Put an inode into /lost+found, in one transaction with other changes; return whether it took effect.

        A lease of the inode follows it.

        Args:
            name: what it is called; a number is added if the name is taken.
        """
        shelf = self._make_shelf()
        for number in range(1, _MOST_NAMES):
            suffix = "" if number == 1 else f"-{number}"
            path = shelf.child((name[:_LONGEST_NAME] + suffix).encode())
            view = read_view(self.subject.database, Hints(self.configuration.identity), _Place(path))
            chain = view.chains[0]
            if chain.target is not None:
                continue
            if chain.parent is None or not chain.parent.is_directory:
                return False  # somebody has removed the shelf
            changes.inserts[chain.target_key] = inode
            self._move_lease(inode, chain.target_key, changes)
            return self.commit(changes, {**dict.fromkeys(view.absent), **view.entries, **seen})
        return False

    def _move_lease(self, inode: Inode, key: bytes, changes: Changes[None]) -> None:
        lease_at = lease_key(inode.id)
        record = self.records([lease_at]).get(lease_at) if inode.writer else None
        if record is not None:
            changes.values[lease_at] = replace(Lease.decode(lease_at, record.value), key=key).encode()

    def move(self, key: bytes, number: int, name: str) -> bool:
        """Move an inode, with everything below it, to /lost+found, if the key still has this inode."""
        seen = self.inode(key)
        if seen is None or seen.inode.id != number:
            return False
        changes: Changes[None] = Changes(None)
        changes.deletes.add(key)
        return self.shelve(name, seen.inode, changes, {key: seen.entry})

    def new_id(self) -> int:
        """Return an inode id that was never used."""
        return new_id(self.subject.environment)

    def new_file(self, extents: tuple[Extent, ...], xattrs: Mapping[str, bytes]) -> Inode:
        """Return the inode of a new file, for the superuser alone."""
        return replace(
            self.new_directory(self.new_id(), 0o600),
            kind=Kind.FILE,
            atime_ms=self.now_ms(),
            replication=self.configuration.replication,
            block_size=self.configuration.block_size,
            extents=extents,
            xattrs=xattrs,
        )

    def new_directory(self, number: int, mode: int = 0o700) -> Inode:
        """Return the inode of a directory of the superuser, with a given id."""
        return Inode(
            id=number,
            kind=Kind.DIRECTORY,
            mode=mode,
            owner=self.configuration.superuser,
            group=self.configuration.supergroup,
            mtime_ms=self.now_ms(),
        )

    def _make_shelf(self) -> NsPath:
        if self.shelf is None:
            made = datetime.fromtimestamp(self.subject.environment.clock.now_s(), tz=timezone.utc)
            self.shelf = self._lost_and_found().child(made.strftime("%Y-%m-%dT%H-%M-%SZ").encode())
        self.operations.run(Mkdirs(path=self.shelf, mode=0o700), self.caller)
        return self.shelf

    def _lost_and_found(self) -> NsPath:
        """Return the first of /lost+found, /lost+found-2 and so on that is no file."""
        for number in range(1, _MOST_NAMES):
            path = LOST_AND_FOUND if number == 1 else NsPath((LOST_AND_FOUND.names[0] + f"-{number}".encode(),))
            target = read_view(self.subject.database, Hints(self.configuration.identity), _Place(path)).chains[0].target
            if target is None or target.is_directory:
                return path
        return LOST_AND_FOUND
