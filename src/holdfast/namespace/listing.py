"""List directories in pages, walk trees, and define what callers see of files and directories.

A page is one snapshot, together with the path of its directory: so it never shows entries under a path that they did
not have at that moment. Different pages of a listing are different snapshots, as in HDFS; a whole walk is one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.errors import HoldfastError
from holdfast.namespace.errors import ParentNotDirectoryError
from holdfast.namespace.inode import Inode, decode_inode
from holdfast.namespace.keys import children_range, entry_name_in_key, id_in_key, inode_key, times_key
from holdfast.namespace.operation import Operation
from holdfast.namespace.operations.attributes import GetStatus
from holdfast.namespace.operations.base import ReadInode, SinglePathOperation, get_reachable_target
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import Caller
from holdfast.namespace.phases import OperationRunner
from holdfast.namespace.view import Reader, ResolvedPath, View, read_view, scan_pages


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """The attributes of a file or a directory, like HDFS's ``FileStatus``.

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
    """The numbers of files, directories and bytes in a tree, like HDFS's ``ContentSummary``. The root of the tree
    counts as a directory.

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
    """The quotas of a file or a directory and their present usage, like HDFS's ``QuotaUsage``.

    Attributes:
        names_quota, space_quota: None for no limit.
        names, space: what is used, with the directory itself and with replication; 0 if there is no quota at all.
            Deleted trees count until they are collected.
    """

    names_quota: int | None
    space_quota: int | None
    names: int
    space: int


def etag_of_inode(inode: Inode) -> str:
    """Return the etag of a file: a text that changes with the content, and is never used again.

    No two files have one id. Between two truncations a file only gets extents, whose blobs are new or another file's.
    """
    text = f"{inode.cuts};" + "".join(f"{one.blob}:{one.length};" for one in inode.extents)
    return f"{inode.id:x}-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def make_status(path: NsPath, inode: Inode, entries_ms: int = 0) -> FileStatus:
    """Return the status of a file or directory, given its path and its inode.

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
        etag="" if inode.is_directory else etag_of_inode(inode),
    )


def find_statuses(
    operations: OperationRunner, asked: Sequence[tuple[NsPath, Caller]]
) -> list[FileStatus | HoldfastError | None]:
    """Find several paths, each for its caller, in one snapshot; return the status or the error of each, None for a path
    that does not exist.
    """
    reads: list[tuple[Operation[tuple[Inode | None, int]], Caller]] = [
        (GetStatus(path, operations.times), caller) for path, caller in asked
    ]
    statuses: list[FileStatus | HoldfastError | None] = []
    results: list[tuple[Inode | None, int] | HoldfastError] = operations.read_together(reads)
    for (path, _), found in zip(asked, results, strict=True):
        if isinstance(found, HoldfastError):
            statuses.append(None if isinstance(found, ParentNotDirectoryError) else found)
        else:
            inode, entries_ms = found
            statuses.append(None if inode is None else make_status(path, inode, entries_ms))
    return statuses


PAGE_SIZE = 1000
_MOST_ENTRIES = 2**31 - 2
"""So many, and one more, every database can be asked for."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a directory's entries.

    Attributes:
        entries: in the order of their names as bytes; for a file, the file itself.
        more: whether the directory has entries after the last one.
    """

    entries: list[FileStatus]
    more: bool


@dataclass(frozen=True, slots=True)
class _ReadDirectoryChildren(SinglePathOperation):
    """The inodes on a path, and the entries of the directory that come after a name."""

    path: NsPath
    start_after: bytes = b""

    def extra_range(self, chains: Sequence[ResolvedPath]) -> tuple[bytes, bytes] | None:
        target = chains[0].target
        if target is None or not target.is_directory:
            return None
        start, end = children_range(target.id)
        return (inode_key(target.id, self.start_after) + b"\0" if self.start_after else start), end


def list_page(
    operations: OperationRunner, path: NsPath, caller: Caller, start_after: bytes = b"", limit: int = PAGE_SIZE
) -> ListPage:
    """Return a page of at most `limit` entries of a directory, by name after `start_after`; of a file, the file itself.

    Raises:
        PathNotFoundError, ParentNotDirectoryError, PermissionDeniedError: see the message.
    """
    operations.times.flush_if_due()
    view = _read_children_view(operations, path, start_after, min(limit, _MOST_ENTRIES))
    target = get_reachable_target(view.chains[0], caller)
    if not target.is_directory:
        return ListPage([make_status(path, target)], False)
    caller.check_listing(path, target)
    found = [(entry_name_in_key(key), decode_inode(key, record.value)) for key, record in view.page]
    times = _read_directory_change_times(operations, operations.database, [inode for _, inode in found])
    return ListPage(
        [make_status(path.child(name), inode, times.get(inode.id, 0)) for name, inode in found], view.has_more
    )


def _read_children_view(operations: OperationRunner, path: NsPath, start_after: bytes, limit: int) -> View:
    """Read the chain of a path and the range of its children in one snapshot."""
    return read_view(operations.database, operations.hints, _ReadDirectoryChildren(path, start_after), limit)


def _read_directory_change_times(operations: OperationRunner, reader: Reader, inodes: list[Inode]) -> dict[int, int]:
    """Return when the entries of directories changed last, by their ids."""
    directories = [inode.id for inode in inodes if inode.is_directory]
    known = reader.get_many(list(map(times_key, directories))) if directories else {}
    written = {id_in_key(key): record.number for key, record in known.items()}
    return {number: operations.times.time_of(number, written.get(number, 0)) for number in directories}


def walk_tree(operations: OperationRunner, path: NsPath, caller: Caller) -> Iterator[FileStatus]:
    """Yield the status of everything below a directory, each directory before its entries, in the order of their names.

    Guarantee: all of it comes from one snapshot, however long the walk takes. The snapshot ends with the iterator.
    """
    with operations.database.snapshot() as reader:
        (chain,) = read_view(reader, operations.hints, ReadInode(path)).chains
        top = get_reachable_target(chain, caller)
        times: dict[int, int] = {}

        def collect_change_times(page: list[Inode]) -> None:
            times.update(_read_directory_change_times(operations, reader, page))

        for found in (
            walk_descendants(reader, path, top, caller.check_listing, collect_change_times) if top.is_directory else ()
        ):
            yield make_status(found.path, found.inode, times.pop(found.inode.id, 0))


# --- trees ------------------------------------------------------------------------------------------------------------
class TreeEntry(NamedTuple):
    """A file or directory that a walk of a tree has found: its path, its inode, and the inode of its directory."""

    path: NsPath
    inode: Inode
    directory: Inode


def walk_descendants(
    reader: Reader,
    path: NsPath,
    directory: Inode,
    enter: Callable[[NsPath, Inode], object],
    see: Callable[[list[Inode]], object] = lambda page: None,
    *,
    beginning: bytes = b"",
    after: Sequence[bytes] = (),
) -> Iterator[TreeEntry]:
    """Yield the inodes of everything below a directory, each directory before its entries, in the order of their names.

    The tree is followed by the ids of its directories: the path may change meanwhile, and there may be more levels than
    a path has.

    Args:
        enter: called with each directory and its path before its entries are read; may raise an error.
        see: called with each page of entries.
        beginning: skips those entries of the directory itself whose names do not start with this.
        after: the last entry of an earlier walk, as components below the directory; this walk continues there.
    """
    enter(path, directory)
    waiting = [_iter_entries(reader, path, directory, see, beginning, after)]  # no recursion: a tree may be very deep
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
            continue
        found, rest, is_new = entry
        if is_new:
            yield found
        if found.inode.is_directory:
            enter(found.path, found.inode)
            waiting.append(_iter_entries(reader, found.path, found.inode, see, b"", rest))


def _iter_entries(
    reader: Reader,
    path: NsPath,
    directory: Inode,
    see: Callable[[list[Inode]], object],
    beginning: bytes,
    after: Sequence[bytes],
) -> Iterator[tuple[TreeEntry, Sequence[bytes], bool]]:
    """Yield the entries of a directory, each with what `after` means in it, and whether it comes after that."""
    start, end = children_range(directory.id)
    if beginning:
        end = inode_key(directory.id, beginning + b"\xff")  # no byte of UTF-8
    start = max(start, inode_key(directory.id, max(beginning, after[0] if after else b"")))
    for page in scan_pages(reader, start, end, PAGE_SIZE):
        inodes = [decode_inode(key, record.value) for key, record in page.records]
        see(inodes)
        for (key, _), inode in zip(page.records, inodes, strict=True):
            name = entry_name_in_key(key)
            is_seen = bool(after) and name == after[0]
            yield TreeEntry(path.child(name), inode, directory), after[1:] if is_seen else (), not is_seen
