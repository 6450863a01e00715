"""Fill directories quickly, many inodes in one transaction, and count entries: past the operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from benchmarks.namespace_runs.workloads import DIRECTORIES, KNOWN, directory_of, known_name
from holdfast.namespace import Namespace
from holdfast.namespace.inode import DIRECTORY_MODE, FILE_MODE, Inode, InodeKind, encode_inode
from holdfast.namespace.keys import children_range, inode_key, new_inode_id
from holdfast.transactions.base import Commit, Committed

__all__ = ["count_entries", "fill", "prepare_workload"]

T = TypeVar("T")

_BATCH = 1000


def fill(namespace: Namespace, directory: str, names: Iterable[str], *, kind: InodeKind = InodeKind.FILE) -> None:
    """Create empty files, or directories, in an existing directory."""
    parent = namespace.status(directory)
    now_ms = namespace.operations.now_ms()
    for batch in _batches(names, _BATCH):
        inserts = {}
        for name in batch:
            inode = Inode(
                id=new_inode_id(namespace.environment),
                kind=kind,
                mode=DIRECTORY_MODE if kind is InodeKind.DIRECTORY else FILE_MODE,
                owner=namespace.caller.user,
                group=parent.group,
                mtime_ms=now_ms,
                replication=1 if kind is InodeKind.FILE else 0,
                block_size=namespace.configuration.block_size if kind is InodeKind.FILE else 0,
            )
            inserts[inode_key(parent.id, name.encode())] = encode_inode(inode)
        outcome = namespace.database.commit(Commit(inserts=inserts))
        assert isinstance(outcome, Committed), "the names are new"


def prepare_workload(namespace: Namespace, root: str, workload: str, operations: int) -> None:
    """Make what a workload needs in its directory."""
    if workload == "mixed":
        fill(namespace, root, map(known_name, range(KNOWN)), kind=InodeKind.DIRECTORY)
    if workload not in ("create", "create-with-lease", "mkdirs-spread", "rename", "delete"):
        return
    for number in range(DIRECTORIES):
        namespace.mkdirs(f"{root}/{number}")
        if workload in ("rename", "delete"):
            mine = (f"file{n}" for n in range(operations) if directory_of(n) == number)
            fill(namespace, f"{root}/{number}", mine)


def count_entries(namespace: Namespace, directory: str) -> int:
    """Count the entries of a directory."""
    start, end = children_range(namespace.status(directory).id)
    count, more = 0, True
    while more:
        page = namespace.database.scan(start, end, _BATCH)
        count += len(page.records)
        more = page.more
        if more:
            start = page.records[-1][0] + b"\0"
    return count


def _batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch
