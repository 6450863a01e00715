"""Define operations on the namespace and the changes that they return. `phases` runs them.

`phases` runs it. What it wants to write is in its `Changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from holdfast.namespace.inode import Inode, decode_inode, encode_inode
from holdfast.namespace.keys import usage_key
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import Caller
from holdfast.namespace.view import InodeCache, OperationReads, SeenRecord, View
from holdfast.transactions.base import MAX_NUMBER, Bound, Commit, RangeCount

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class OperationContext:
    """The caller, the time and the source of new ids of one execution of an operation.

    Attributes:
        now_ms: the time, milliseconds since the epoch.
        new_id: returns an inode id that was never used.
    """

    caller: Caller
    now_ms: int
    new_id: Callable[[], int]


class Operation(OperationReads, Protocol[R]):
    """An operation on the namespace, such as a rename: its arguments, the records that it reads, and `execute`, which
    turns those records into changes.
    """

    def execute(self, view: View, context: OperationContext) -> Changes[R]:
        """Return the changes that the operation makes, given the records that were read. Reads nothing else: a retry
        with the same arguments returns the same changes, except for new ids.

        Raises:
            HoldfastError: the operation is impossible in this state of the namespace.
        """
        ...


@dataclass(frozen=True, slots=True)
class OperationBatch:
    """Several operations that run as one transaction. Each of them sees the directories that earlier ones make.

    Attributes:
        paths: those that error messages name.
        operations: returns the operations, anew for each try: there is at least one. Each concerns one path, all paths
            differ, and none reads a range of keys.
    """

    paths: Sequence[NsPath]
    operations: Callable[[], Iterable[Operation[Any]]]


class RequestAbandonedError(Exception):
    """Nobody waits for the answer anymore, so nothing was done. Not a `HoldfastError`: there is nobody to tell."""


# --- changes ----------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Changes(Generic[R]):
    """What an operation wants to write, and its result. `phases` commits the changes after `execute` has returned them.

    Attributes:
        result: what the operation returns once the changes are committed.
        inserts, puts: inodes by key; an insert requires that the key is free.
        values: other records to put, by key; those in `new_values` must not exist.
        deletes: keys of records to delete.
        adds, bounds, ranges: see `Commit`.
        touched: keys of the inodes of directories whose entries change: their modification time is written later.
    """

    result: R
    inserts: dict[bytes, Inode] = field(default_factory=dict)
    puts: dict[bytes, Inode] = field(default_factory=dict)
    values: dict[bytes, bytes] = field(default_factory=dict)
    new_values: dict[bytes, bytes] = field(default_factory=dict)
    deletes: set[bytes] = field(default_factory=set)
    adds: dict[bytes, int] = field(default_factory=dict)
    bounds: list[Bound] = field(default_factory=list)
    ranges: list[RangeCount] = field(default_factory=list)
    touched: set[bytes] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write or to validate, so that no commit is needed."""
        writes = self.inserts or self.puts or self.values or self.new_values or self.deletes or self.adds
        return not (writes or self.ranges)

    def differs_from(self, view: View) -> bool:
        """Return whether a commit would leave other records than those of the view that it is based on."""
        seen = view.entries
        if self.inserts or self.new_values or any(self.adds.values()) or not self.deletes.isdisjoint(seen):
            return True
        return any(key not in seen or seen[key].inode != inode for key, inode in self.puts.items()) or any(
            view.value(key) != value for key, value in self.values.items()
        )

    def to_commit(self, view: View) -> Commit:
        """Return the database commit that validates every record of the view and writes these changes."""
        inserts = {key: encode_inode(inode) for key, inode in self.inserts.items()}
        inserts.update(self.new_values)
        puts = {key: encode_inode(inode) for key, inode in self.puts.items()}
        puts.update(self.values)
        reads = view.collect_seen_versions()
        for key in view.absent.intersection(inserts):
            reads.pop(key, None)  # an insert requires it anyway
        return Commit(
            reads=reads,
            inserts=inserts,
            puts=puts,
            deletes=self.deletes,
            adds=self.adds,
            bounds=self.bounds,
            ranges=self.ranges,
        )

    def update_hints(self, hints: InodeCache, version: int) -> None:
        """Store the written inodes and leases in the cache `hints`, with the version that the commit has given them."""
        for inodes in (self.inserts, self.puts):
            for key, inode in inodes.items():
                hints.put(key, SeenRecord(version, inode))
        for values in (self.values, self.new_values):
            for key, value in values.items():
                if key[0] == ord("l"):
                    hints.put(key, SeenRecord(version, None, value))
        hints.drop(self.deletes)


@dataclass(slots=True)
class CombinedCommit:
    """The changes of many operations, joined into one commit. Inodes are kept encoded, to save memory.

    The operations read from several snapshots. That is as good as one snapshot: the commit takes effect only if all
    that was read is unchanged.
    """

    reads: dict[bytes, int] = field(default_factory=dict)
    inserts: dict[bytes, bytes] = field(default_factory=dict)
    puts: dict[bytes, bytes] = field(default_factory=dict)
    deletes: set[bytes] = field(default_factory=set)
    adds: dict[bytes, int] = field(default_factory=dict)
    bounds: dict[Bound, None] = field(default_factory=dict)
    ranges: list[RangeCount] = field(default_factory=list)
    directories: dict[bytes, Inode] = field(default_factory=dict)

    def add_reads(self, view: View) -> tuple[bytes, ...]:
        """Add the records of a view; return the keys that an earlier view has in another version."""
        seen = view.collect_seen_versions().items()
        return tuple(key for key, version in seen if self.reads.setdefault(key, version) != version)

    def add_changes(self, changes: Changes[Any]) -> None:
        """Add the changes of one operation."""
        for key, inode in changes.inserts.items():
            self.inserts[key] = encode_inode(inode)
            if inode.is_directory:
                self.directories[key] = inode
        for key, inode in changes.puts.items():
            self.puts[key] = encode_inode(inode)
        self.inserts |= changes.new_values
        self.puts |= changes.values
        self.deletes |= changes.deletes
        for key, delta in changes.adds.items():
            self.adds[key] = self.adds.get(key, 0) + delta
        self.bounds |= dict.fromkeys(changes.bounds)
        self.ranges += changes.ranges

    def find_inserted_inode(self, key: bytes) -> Inode | None:
        """Return the inode that one of the operations inserts at a key; None if none does."""
        value = self.inserts.get(key)
        return None if value is None else self.directories.get(key) or decode_inode(key, value)

    def to_commit(self) -> Commit:
        """Return the one commit that validates everything that was read, and writes the changes of all operations."""
        return Commit(
            reads={key: version for key, version in self.reads.items() if key not in self.inserts},
            inserts=self.inserts,
            puts=self.puts,
            deletes=self.deletes,
            adds=self.adds,
            # What one operation adds to a counter, another one may take away again, and what goes is never refused.
            bounds=[bound for bound in self.bounds if self.adds.get(bound.key, 0) > 0],
            ranges=self.ranges,
        )


# --- quotas -----------------------------------------------------------------------------------------------------------
# Only directories with a quota have counters, so an operation outside of them pays nothing. The counters change by
# blind adds, which do not conflict, with the quota as their bound, so concurrent operations cannot exceed it together.
#
# Source: Hadoop's HDFS Quotas Guide: a quota of names counts the directory itself; a quota of space counts bytes times
# replication.
def charge_quotas(changes: Changes[R], ancestors: Iterable[Inode], *, names: int = 0, space: int = 0) -> None:
    """Add a change of names and space to the usage counters of all ancestors with a quota; the commit fails if a
    counter would exceed its quota.

    Args:
        ancestors: the directories above the inode that is added or removed.
        names, space: the change; a negative one is never refused.
    """
    for inode in ancestors:
        if inode.has_quota:
            names_key, space_key = usage_keys(inode)
            _add_usage(changes, names_key, names, inode.names_quota)
            _add_usage(changes, space_key, space, inode.space_quota)


def usage_keys(inode: Inode) -> tuple[bytes, bytes]:
    """Return the keys of the two usage counters of a directory with a quota: of names, and of space."""
    return usage_key(inode.quota_id, b"n"), usage_key(inode.quota_id, b"s")


def _add_usage(changes: Changes[R], key: bytes, amount: int, quota: int | None) -> None:
    if not amount:
        return
    total = changes.adds.get(key, 0) + amount
    changes.adds[key] = total
    if not total:
        del changes.adds[key]  # what goes makes room for what comes
    if quota is not None and total > 0:
        changes.bounds.append(Bound(key, min(quota, MAX_NUMBER)))
