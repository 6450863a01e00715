"""Collect what one pass over all records finds out, in little memory: about 100 bytes for each inode.

What there can be millions of is kept in arrays. What is rare in every namespace (quotas, files that are being written)
is kept in dictionaries, and what should not exist at all is kept up to a number (`Few`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from holdfast.namespace.fsck.blob_table import BlobTable
from holdfast.namespace.fsck.directories import Directories
from holdfast.namespace.fsck.ids import IdArray, IdSet
from holdfast.namespace.lease import Lease
from holdfast.transactions.base import Record

MOST_FINDINGS = 10_000
"""How many findings of a kind are looked up and reported one by one; a repair works in rounds of so many."""

T = TypeVar("T")


class Few(Generic[T]):
    """The first of the things that should not exist, each once, and the number of all.

    Attributes:
        total: how often something was added; at least the number of different things.
    """

    def __init__(self) -> None:
        self._items: dict[T, str] = {}
        self.total = 0

    def add(self, item: T, detail: str = "") -> None:
        """Add a thing."""
        if item not in self._items:
            self.total += 1
            if len(self._items) < MOST_FINDINGS:
                self._items[item] = detail

    def __iter__(self) -> Iterator[tuple[T, str]]:
        return iter(self._items.items())


@dataclass(frozen=True, slots=True)
class Quota:
    """A directory with a quota."""

    quota_id: int
    directory: int


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that somebody is writing."""

    key: bytes
    writer: str


@dataclass(slots=True)
class Facts:
    """What is known about a namespace: `survey` fills it, `conclude` adds what follows, and checkers read it.

    Attributes:
        now_ms: when the pass began, milliseconds since the epoch.
        objects: the blobs in the object store.
        data: the blobs in the database.
        ids: of all inodes.
        has_root: whether there is a root directory.
        files, file_bytes: of all files, in the tree or not.
        damaged, misnamed: keys of records, or of names, that cannot be read.
        marks: keys of directories whose mark has expired.
        missing, short, damaged_blobs, shared, referenced_notes: names of blobs: see the checkers.
        deleted: ids of the roots of deleted trees.
        charges: the quotas that deleted trees are charged to, by the ids of their roots.
        quotas: the directories with quotas, by the key of the record of the directory.
        leased: ids of files that had a lease earlier: see `take_facts`.
        usage: the counters of quotas, by key.
        used: what the quotas in the tree count, by quota id: names and space.
        stray_times, stray_places: ids of directories that have a time, or a place, and do not exist.
        lost_parents: ids that are parents of inodes, and neither directories nor deleted trees.
        cycles: ids of directories that are above themselves, one of each cycle.
        in_progress: blobs that no file refers to, and that are young or whose writer has a lease.
        notes: how many garbage notes there are.
    """

    now_ms: int
    objects: BlobTable = field(default_factory=BlobTable)
    leased: Collection[int] = ()
    data: BlobTable = field(default_factory=BlobTable)
    ids: IdSet = field(default_factory=IdSet)
    directories: Directories = field(default_factory=Directories)
    has_root: bool = False
    files: int = 0
    file_bytes: int = 0
    damaged: Few[bytes] = field(default_factory=Few)
    misnamed: Few[bytes] = field(default_factory=Few)
    marks: Few[bytes] = field(default_factory=Few)
    missing: Few[str] = field(default_factory=Few)
    short: Few[str] = field(default_factory=Few)
    damaged_blobs: Few[str] = field(default_factory=Few)
    shared: Few[str] = field(default_factory=Few)
    referenced_notes: Few[str] = field(default_factory=Few)
    deleted: IdSet = field(default_factory=IdSet)
    charges: dict[int, tuple[int, ...]] = field(default_factory=dict)
    quotas: dict[bytes, Quota] = field(default_factory=dict)
    usage: dict[bytes, Record] = field(default_factory=dict)
    used: dict[int, tuple[int, int]] = field(default_factory=dict)
    open_files: dict[int, OpenFile] = field(default_factory=dict)
    leases: dict[int, Lease] = field(default_factory=dict)
    stray_times: IdArray = field(default_factory=IdArray)
    stray_places: IdArray = field(default_factory=IdArray)
    lost_parents: Few[int] = field(default_factory=Few)
    cycles: Few[int] = field(default_factory=Few)
    in_progress: int = 0
    notes: int = 0
