"""Define what an operation on the namespace is: a value with the paths that it concerns, and with its execution phase.

`phases` runs it. What it wants to write is in its `Changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from holdfast.namespace.inode import Inode, decode_inode, encode_inode
from holdfast.namespace.keys import usage_key
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import Caller
from holdfast.namespace.view import Entry, Group, Hints, View
from holdfast.transactions.base import ABSENT, MAX_NUMBER, Bound, Commit, RangeCount

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Context:
    """What the execution of an operation may use besides its view.

    Attributes:
        now_ms: the time, milliseconds since the epoch.
        new_id: returns an inode id that was never used.
    """

    caller: Caller
    now_ms: int
    new_id: Callable[[], int]


class Operation(Group, Protocol[R]):
    """An operation on the namespace: a value with the paths that it concerns."""

    def execute(self, view: View, context: Context) -> Changes[R]:
        """Carry out the operation on its view. Calls with the same arguments return the same changes, but for new ids.

        Raises:
            HoldfastError: the operation is impossible in this state of the namespace.
        """
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """An operation that is too large for one view: its parts become one transaction. A part sees what earlier ones
    make.

    Attributes:
        paths: those that errors name.
        operations: returns the parts, anew for each try: there is at least one.
    """

    paths: Sequence[NsPath]
    operations: Callable[[], Iterable[Operation[None]]]


# --- changes ----------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Changes(Generic[R]):
    """The result of an operation's execution phase: nothing of it is in the database yet.

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
        """Whether the operation writes nothing, and what it has seen proves its result."""
        writes = self.inserts or self.puts or self.values or self.new_values or self.deletes or self.adds
        return not (writes or self.ranges)

    def to_commit(self, view: View) -> Commit:
        """Return the commit that validates the whole view and applies the changes."""
        inserts = {key: encode_inode(inode) for key, inode in self.inserts.items()}
        inserts.update(self.new_values)
        puts = {key: encode_inode(inode) for key, inode in self.puts.items()}
        puts.update(self.values)
        reads = view.versions()
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

    def remember(self, hints: Hints, version: int) -> None:
        """Update the hints after the commit."""
        for inodes in (self.inserts, self.puts):
            for key, inode in inodes.items():
                hints.put(key, Entry(version, inode))
        for values in (self.values, self.new_values):
            for key, value in values.items():
                if key[0] == ord("l"):
                    hints.put(key, Entry(version, None, value))
        hints.drop(self.deletes)


@dataclass(slots=True)
class JoinedCommits:
    """The commits of the parts of one step, which become one commit. Of the inodes, there are only the bytes.

    Each part has a snapshot of its own. That is as good as one for all: the commit takes effect only if what every part
    has seen is still there.
    """

    reads: dict[bytes, int] = field(default_factory=dict)
    inserts: dict[bytes, bytes] = field(default_factory=dict)
    puts: dict[bytes, bytes] = field(default_factory=dict)
    deletes: set[bytes] = field(default_factory=set)
    adds: dict[bytes, int] = field(default_factory=dict)
    bounds: dict[Bound, None] = field(default_factory=dict)
    ranges: list[RangeCount] = field(default_factory=list)
    _made: dict[bytes, Inode] = field(default_factory=dict)

    def add(self, part: Commit) -> list[bytes]:
        """Add the commit of a part; return the keys that it has seen in another state than the parts before."""
        # A part whose insert the parts before it have seen there, or make themselves, has seen a later state.
        changed = [key for key in part.inserts if key in self.inserts or self.reads.get(key, ABSENT) != ABSENT]
        for key, version in part.reads.items():
            if key in self.inserts:
                if version != ABSENT:
                    changed.append(key)
            elif self.reads.setdefault(key, version) != version:
                changed.append(key)
        self.inserts.update(part.inserts)
        self.puts.update(part.puts)
        self.deletes.update(part.deletes)
        for key, delta in part.adds.items():
            self.adds[key] = self.adds.get(key, 0) + delta
        self.bounds.update(dict.fromkeys(part.bounds))
        self.ranges += part.ranges
        return changed

    def made(self, key: bytes) -> Inode | None:
        """Return the inode that a part has inserted at a key."""
        value = self.inserts.get(key)
        if value is None:
            return None
        if key not in self._made:
            self._made[key] = decode_inode(key, value)
        return self._made[key]

    def to_commit(self) -> Commit:
        """Return the commit of the whole step. What a part adds to a counter, another one may take away again."""
        return Commit(
            reads=self.reads,
            inserts=self.inserts,
            puts=self.puts,
            deletes=self.deletes,
            adds=self.adds,
            bounds=grown_only(self.bounds, self.adds),
            ranges=self.ranges,
        )


def grown_only(bounds: Iterable[Bound], adds: Mapping[bytes, int]) -> list[Bound]:
    """Return each bound once, and only those of counters that grow: what goes is never refused."""
    return [bound for bound in dict.fromkeys(bounds) if adds[bound.key] > 0]


# --- quotas -----------------------------------------------------------------------------------------------------------
# Only directories with a quota have counters, so an operation outside of them pays nothing. The counters change by
# blind adds, which do not conflict, with the quota as their bound, so concurrent operations cannot exceed it together.
#
# Source: Hadoop's HDFS Quotas Guide: a quota of names counts the directory itself; a quota of space counts bytes times
# replication.
def charge(changes: Changes[R], ancestors: Iterable[Inode], *, names: int = 0, space: int = 0) -> None:
    """Add to the usage of every directory with a quota, and require that it stays within the quota.

    Args:
        ancestors: the directories above what comes or goes.
        names, space: the change; what goes is negative, and is never refused.
    """
    for inode in ancestors:
        if inode.has_quota:
            names_key, space_key = usage_keys(inode)
            _charge(changes, names_key, names, inode.names_quota)
            _charge(changes, space_key, space, inode.space_quota)


def usage_keys(inode: Inode) -> tuple[bytes, bytes]:
    """Return the keys of the counters of a directory with a quota: names, and space."""
    return usage_key(inode.quota_id, b"n"), usage_key(inode.quota_id, b"s")


def _charge(changes: Changes[R], key: bytes, amount: int, quota: int | None) -> None:
    if not amount:
        return
    total = changes.adds.get(key, 0) + amount
    changes.adds[key] = total
    if not total:
        del changes.adds[key]  # what goes makes room for what comes
    if quota is not None and total > 0:
        changes.bounds.append(Bound(key, min(quota, MAX_NUMBER)))
