"""Measure what uses the space of a directory, for people: how much is below each of its entries, within limits.

The tree is walked level by level, so that a measure that stops early has seen something of every entry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.namespace.inode import Inode, decode_inode
from holdfast.namespace.keys import children_range, entry_name_in_key
from holdfast.namespace.listing import PAGE_SIZE
from holdfast.namespace.operations.base import ReadInode, get_reachable_target
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, READ, Caller
from holdfast.namespace.phases import OperationRunner
from holdfast.namespace.view import Reader, read_view, scan_pages


@dataclass(slots=True)
class EntryUsage:
    """What is below one entry of a directory, the entry included.

    Attributes:
        size: bytes of files.
        is_complete: whether the whole tree was measured; else the numbers are lower bounds.
        unreadable: how many directories the caller may not list; what is below them is not counted.
    """

    name: str
    is_directory: bool
    size: int = 0
    files: int = 0
    directories: int = 0
    is_complete: bool = True
    unreadable: int = 0

    def count(self, inode: Inode) -> None:
        """Count a file or a directory."""
        self.size += inode.size
        self.files += not inode.is_directory
        self.directories += inode.is_directory


@dataclass(slots=True)
class DirectoryUsage:
    """What is below the entries of a directory.

    Attributes:
        is_complete: whether everything was measured; else entries may be missing, and numbers are lower bounds.
        measured: how many files and directories were counted.
    """

    entries: list[EntryUsage] = field(default_factory=list)
    is_complete: bool = True
    measured: int = 0


def measure_entries(
    operations: OperationRunner, path: NsPath, caller: Caller, *, most_inodes: int, most_s: float
) -> DirectoryUsage:
    """Measure what is below each entry of a directory; a file is its own only entry.

    Guarantee: everything is counted in one snapshot. The measure stops soon after one of its limits, and says so.

    Raises:
        PathNotFoundError, ParentNotDirectoryError, PermissionDeniedError: see the message.
    """
    clock = operations.environment.clock
    until_s = clock.elapsed_s() + most_s
    usage = DirectoryUsage()
    waiting: deque[tuple[Inode, EntryUsage]] = deque()

    def count(inode: Inode, entry: EntryUsage) -> None:
        usage.measured += 1
        entry.count(inode)
        if inode.is_directory and caller.has_permission(inode, READ | EXECUTE):
            waiting.append((inode, entry))
        else:
            entry.unreadable += inode.is_directory

    def may_go_on() -> bool:
        return usage.measured < most_inodes and clock.elapsed_s() < until_s

    with operations.database.snapshot() as reader:
        (chain,) = read_view(reader, operations.hints, ReadInode(path)).chains
        top = get_reachable_target(chain, caller)
        if not top.is_directory:
            usage.entries.append(EntryUsage(path.names[-1].decode(errors="replace"), False))
            count(top, usage.entries[0])
            return usage
        caller.check_listing(path, top)
        for name, inode in _iter_children(reader, top):
            if not may_go_on():
                usage.is_complete = False
                break
            usage.entries.append(EntryUsage(name, inode.is_directory))
            count(inode, usage.entries[-1])
        while waiting and may_go_on():
            directory, entry = waiting.popleft()
            for _, inode in _iter_children(reader, directory):
                if not may_go_on():
                    waiting.append((directory, entry))
                    break
                count(inode, entry)
    for _, entry in waiting:
        usage.is_complete = entry.is_complete = False
    return usage


def _iter_children(reader: Reader, directory: Inode) -> Iterator[tuple[str, Inode]]:
    for page in scan_pages(reader, *children_range(directory.id), PAGE_SIZE):
        for key, record in page.records:
            yield entry_name_in_key(key).decode(errors="replace"), decode_inode(key, record.value)
