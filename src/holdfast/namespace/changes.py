"""Collect what an operation wants to write, and turn it into a commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from holdfast.namespace.inode import Inode, encode_inode
from holdfast.namespace.view import Entry, Hints, View
from holdfast.transactions.base import Bound, Commit, RangeCount

__all__ = ["Changes"]

R = TypeVar("R")


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
        """Whether the operation writes nothing."""
        return not (self.inserts or self.puts or self.values or self.new_values or self.deletes or self.adds)

    def to_commit(self, view: View) -> Commit:
        """Return the commit that validates the whole view and applies the changes."""
        inserts = {key: encode_inode(inode) for key, inode in self.inserts.items()}
        inserts.update(self.new_values)
        puts = {key: encode_inode(inode) for key, inode in self.puts.items()}
        puts.update(self.values)
        return Commit(
            reads=view.versions(),
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
