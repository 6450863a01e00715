"""List directories in pages, and walk trees.

A page is one snapshot, together with the path of its directory: so it never shows entries under a path that they did
not have at that moment. Different pages of a listing are different snapshots, as in HDFS; a whole walk is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from holdfast.namespace.directory_times import DirectoryTimes
from holdfast.namespace.errors import PathNotFoundError
from holdfast.namespace.inode import Inode, decode_inode
from holdfast.namespace.keys import children_range, inode_key, name_of, times_key
from holdfast.namespace.operations.base import PathGroup
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, READ, Caller
from holdfast.namespace.status import FileStatus, status_of
from holdfast.namespace.view import Chain, Hints, View, read_view
from holdfast.transactions.base import Record, ScanPage, SnapshotReader

PAGE_SIZE = 1000
_MOST_ENTRIES = 2**31 - 2
"""So many, and one more, every database can be asked for."""


class _Readable(SnapshotReader, Protocol):
    """What a lister reads from."""

    def snapshot(self) -> AbstractContextManager[SnapshotReader]: ...


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a listing.

    Attributes:
        entries: in the order of their names as bytes; for a file, the file itself.
        more: whether the directory has entries after the last one.
    """

    entries: list[FileStatus]
    more: bool


class _Children(PathGroup):
    """The inodes on a path and a page of the target's children: a group, and its reader."""

    def __init__(self, path: NsPath, store: _Readable, start_after: bytes, limit: int) -> None:
        self._path = path
        self._store = store
        self._start_after = start_after
        self._limit = limit
        self.page = ScanPage([], False, {})

    @property
    def paths(self) -> tuple[NsPath]:
        return (self._path,)

    def peek(self, chains: Sequence[Chain]) -> tuple[bytes, bytes] | None:
        target = chains[0].target
        if target is None or not target.is_directory:
            return None
        start, end = children_range(target.id)
        return (inode_key(target.id, self._start_after) + b"\0" if self._start_after else start), end

    def get_many(self, keys: Collection[bytes]) -> Mapping[bytes, Record]:
        self.page = ScanPage([], False, {})
        return self._store.get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        """Read the whole page, where only the question whether there is a child was asked."""
        self.page = self._store.scan(start, end, self._limit, guards)
        return self.page


@dataclass(frozen=True, slots=True)
class Lister:
    """Lists the directories of one namespace."""

    store: _Readable
    hints: Hints
    times: DirectoryTimes

    def page(self, path: NsPath, caller: Caller, start_after: bytes = b"", limit: int = PAGE_SIZE) -> ListPage:
        """Return entries of a directory whose names come after `start_after`.

        Raises:
            PathNotFoundError, ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        self.times.flush_if_due()
        view, scanned = self._snapshot(path, start_after, min(limit, _MOST_ENTRIES))
        target = self._target(view, path, caller)
        if not target.is_directory:
            return ListPage([status_of(path, target)], False)
        if not caller.may(target, READ | EXECUTE):
            caller.deny(target, READ | EXECUTE, str(path))
        found = [(name_of(key), decode_inode(key, record.value)) for key, record in scanned.records]
        times = self._times([inode for _, inode in found])
        return ListPage(
            [status_of(path.child(name), inode, self._time_of(inode, times)) for name, inode in found], scanned.more
        )

    def _target(self, view: View, path: NsPath, caller: Caller) -> Inode:
        (chain,) = view.chains
        caller.check_traversal(chain)
        if chain.target is None:
            raise PathNotFoundError("the path does not exist: check it", path=str(path))
        return chain.target

    def _snapshot(self, path: NsPath, start_after: bytes, limit: int) -> tuple[View, ScanPage]:
        """Read the chain of a path and the range of its children in one snapshot."""
        group = _Children(path, self.store, start_after, limit)
        view = read_view(group, self.hints, group)
        return view, group.page

    def _times(self, inodes: list[Inode]) -> dict[bytes, Record]:
        directories = [times_key(inode.id) for inode in inodes if inode.is_directory]
        return self.store.get_many(directories) if directories else {}

    def _time_of(self, inode: Inode, times: dict[bytes, Record]) -> int:
        if not inode.is_directory:
            return 0
        record = times.get(times_key(inode.id))
        return self.times.time_of(inode.id, 0 if record is None else record.number)

    def pages(self, path: NsPath, caller: Caller, page_size: int = PAGE_SIZE) -> Iterator[ListPage]:
        """Yield all pages of a directory."""
        start_after = b""
        while True:
            page = self.page(path, caller, start_after, page_size)
            yield page
            if not page.more:
                return
            start_after = page.entries[-1].name.encode()

    def walk(self, path: NsPath, caller: Caller) -> Iterator[FileStatus]:
        """Yield everything below a directory, each directory before its entries, in the order of their names.

        Guarantee: all of it comes from one snapshot, however long the walk takes. The snapshot ends with the iterator.
        The tree is followed by the ids of its directories, so it may have more levels than a path.
        """
        with self.store.snapshot() as reader:
            yield from Lister(_Still(reader), self.hints, self.times)._walk(path, caller)

    def _walk(self, path: NsPath, caller: Caller) -> Iterator[FileStatus]:
        view, _ = self._snapshot(path, b"", 1)
        top = self._target(view, path, caller)
        if not top.is_directory:
            return
        open_directories = [self._entries(path, top, caller)]
        while open_directories:
            found = next(open_directories[-1], None)
            if found is None:
                open_directories.pop()
                continue
            below, inode, entry = found
            yield entry
            if inode.is_directory:
                open_directories.append(self._entries(below, inode, caller))

    def _entries(self, path: NsPath, directory: Inode, caller: Caller) -> Iterator[tuple[NsPath, Inode, FileStatus]]:
        """Yield the entries of a directory whose ancestors the caller may search."""
        if not caller.may(directory, READ | EXECUTE):
            caller.deny(directory, READ | EXECUTE, str(path))
        start, end = children_range(directory.id)
        more = True
        while more:
            scanned = self.store.scan(start, end, PAGE_SIZE)
            inodes = [decode_inode(key, record.value) for key, record in scanned.records]
            times = self._times(inodes)
            for (key, _), inode in zip(scanned.records, inodes, strict=True):
                below = path.child(name_of(key))
                yield below, inode, status_of(below, inode, self._time_of(inode, times))
            more = scanned.more
            if more:
                start = scanned.records[-1][0] + b"\0"


class _Still:
    """A snapshot, as a store that has no newer one."""

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return self._reader.get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return self._reader.scan(start, end, limit, guards)

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotReader]:
        yield self._reader
