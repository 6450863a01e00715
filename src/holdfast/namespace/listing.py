"""List directories in pages, and walk trees.

A page is one snapshot, together with the path of its directory: so it never shows entries under a path that they did
not have at that moment. Different pages of a listing are different snapshots, as in HDFS; a whole walk is one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.namespace.directory_times import DirectoryTimes
from holdfast.namespace.inode import Inode, decode_inode
from holdfast.namespace.keys import children_range, inode_key, name_of, times_key
from holdfast.namespace.operations.base import OnePath, target_of
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, READ, Caller
from holdfast.namespace.view import Chain, Hints, Reader, View, read_view, scan_pages
from holdfast.transactions.base import Backend, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """A file or a directory, as HDFS's ``FileStatus`` has it.

    Attributes:
        path: the whole path.
        is_directory: whether it is a directory.
        size: bytes; 0 for a directory.
        mtime_ms, atime_ms: milliseconds since the epoch.
        id: of the inode: stays the same when the path changes.
        is_open: whether a client is writing the file.
        etag: changes with the content of a file, and never comes again; empty for a directory.
    """

    path: str
    is_directory: bool
    size: int
    mode: int
    owner: str
    group: str
    mtime_ms: int
    atime_ms: int
    replication: int
    block_size: int
    id: int
    is_open: bool = False
    etag: str = ""

    @property
    def name(self) -> str:
        """The last component of the path; empty for the root."""
        return self.path.rpartition("/")[2]

    @property
    def permissions(self) -> str:
        """The mode as ``ls`` shows it, such as ``drwxr-xr-x``."""
        letters = "".join(
            letter if self.mode >> bit & 1 else "-" for bit, letter in zip(range(8, -1, -1), "rwxrwxrwx", strict=True)
        )
        if self.mode & 0o1000:
            letters = letters[:-1] + ("t" if self.mode & 1 else "T")
        return ("d" if self.is_directory else "-") + letters


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSummary:
    """What is in a tree, as HDFS's ``ContentSummary`` has it. The root of the tree counts as a directory.

    Attributes:
        space: bytes times replication.
        names_quota, space_quota: of the root of the tree; None for no limit.
    """

    files: int
    directories: int
    size: int
    space: int
    names_quota: int | None = None
    space_quota: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUsage:
    """The quotas of a file or a directory and what counts against them, as HDFS's ``QuotaUsage`` has it.

    Attributes:
        names_quota, space_quota: None for no limit.
        names, space: what is used, with the directory itself and with replication; 0 if there is no quota at all.
            Deleted trees count until they are collected.
    """

    names_quota: int | None
    space_quota: int | None
    names: int
    space: int


def etag_of(inode: Inode) -> str:
    """Return a text that changes with the content of a file, and never comes again.

    No two files have one id. Between two truncations a file only gets extents, whose blobs are new or another file's.
    """
    text = f"{inode.cuts};" + "".join(f"{one.blob}:{one.length};" for one in inode.extents)
    return f"{inode.id:x}-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def status_of(path: NsPath, inode: Inode, entries_ms: int = 0) -> FileStatus:
    """Return the status of an inode.

    Args:
        entries_ms: when the entries of a directory changed last, milliseconds since the epoch.
    """
    return FileStatus(
        path=str(path),
        is_directory=inode.is_directory,
        size=inode.size,
        mode=inode.mode,
        owner=inode.owner,
        group=inode.group,
        mtime_ms=max(inode.mtime_ms, entries_ms),
        atime_ms=inode.atime_ms,
        replication=inode.replication,
        block_size=inode.block_size,
        id=inode.id,
        is_open=bool(inode.writer),
        etag="" if inode.is_directory else etag_of(inode),
    )


PAGE_SIZE = 1000
_MOST_ENTRIES = 2**31 - 2
"""So many, and one more, every database can be asked for."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a listing.

    Attributes:
        entries: in the order of their names as bytes; for a file, the file itself.
        more: whether the directory has entries after the last one.
    """

    entries: list[FileStatus]
    more: bool


@dataclass(frozen=True, slots=True)
class _Children(OnePath):
    """The inodes on a path, and the entries of the directory that come after a name."""

    path: NsPath
    start_after: bytes = b""

    def peek(self, chains: Sequence[Chain]) -> tuple[bytes, bytes] | None:
        target = chains[0].target
        if target is None or not target.is_directory:
            return None
        start, end = children_range(target.id)
        return (inode_key(target.id, self.start_after) + b"\0" if self.start_after else start), end


@dataclass(frozen=True, slots=True)
class Lister:
    """Lists the directories of one namespace.

    Attributes:
        reader: what is read: the database, or a snapshot of it.
    """

    database: Backend
    hints: Hints
    times: DirectoryTimes
    reader: Reader

    def page(self, path: NsPath, caller: Caller, start_after: bytes = b"", limit: int = PAGE_SIZE) -> ListPage:
        """Return entries of a directory whose names come after `start_after`.

        Raises:
            PathNotFoundError, ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        self.times.flush_if_due()
        view = self._view(path, start_after, min(limit, _MOST_ENTRIES))
        target = self._target(view, caller)
        if not target.is_directory:
            return ListPage([status_of(path, target)], False)
        if not caller.may(target, READ | EXECUTE):
            caller.deny(target, READ | EXECUTE, str(path))
        found = [(name_of(key), decode_inode(key, record.value)) for key, record in view.page]
        times = self._times([inode for _, inode in found])
        entries = [status_of(path.child(name), inode, self._time_of(inode, times)) for name, inode in found]
        return ListPage(entries, view.has_more)

    def _target(self, view: View, caller: Caller) -> Inode:
        (chain,) = view.chains
        caller.check_traversal(chain)
        return target_of(chain)

    def _view(self, path: NsPath, start_after: bytes, limit: int) -> View:
        """Read the chain of a path and the range of its children in one snapshot."""
        return read_view(self.reader, self.hints, _Children(path, start_after), limit)

    def _times(self, inodes: list[Inode]) -> Mapping[bytes, Record]:
        directories = [times_key(inode.id) for inode in inodes if inode.is_directory]
        return self.reader.get_many(directories) if directories else {}

    def _time_of(self, inode: Inode, times: Mapping[bytes, Record]) -> int:
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
        with self.database.snapshot() as reader:
            yield from replace(self, reader=reader)._walk(path, caller)

    def _walk(self, path: NsPath, caller: Caller) -> Iterator[FileStatus]:
        top = self._target(self._view(path, b"", 1), caller)
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
        for scanned in scan_pages(self.reader, *children_range(directory.id), PAGE_SIZE):
            inodes = [decode_inode(key, record.value) for key, record in scanned.records]
            times = self._times(inodes)
            for (key, _), inode in zip(scanned.records, inodes, strict=True):
                below = path.child(name_of(key))
                yield below, inode, status_of(below, inode, self._time_of(inode, times))
