"""Pass once over all records of a snapshot, and take the facts from them.

To check another kind of record, write a function that takes the facts from one record, and add it to `KINDS`. Records
come in the order of their keys, so those of an earlier kind are complete when those of a later kind come.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.errors import CorruptDataError
from holdfast.namespace.deleted_tree import DeletedTree
from holdfast.namespace.errors import InvalidPathError
from holdfast.namespace.frames import content_bytes, find_damage
from holdfast.namespace.fsck.blob_table import NOTED, OWNED, PROTECTED, BlobTable
from holdfast.namespace.fsck.conclude import conclude
from holdfast.namespace.fsck.facts import Facts, OpenFile, Quota
from holdfast.namespace.fsck.progress import Progress
from holdfast.namespace.inode import Extent, Inode, decode_inode
from holdfast.namespace.inode_ids import ID_BYTES
from holdfast.namespace.keys import ROOT_ID, ROOT_KEY, blob_of, id_of, kind_range, name_of, parent_of
from holdfast.namespace.lease import Lease
from holdfast.namespace.object_store.uploads import Upload, decode_parts
from holdfast.namespace.paths import NsPath
from holdfast.namespace.trails import decode_trail
from holdfast.transactions.base import MAX_KEY_BYTES, Record, SnapshotReader

Confirm = Callable[[Sequence[str]], Mapping[str, int | None]]
"""Ask the object store for the sizes of blobs that a listing did not show; None for one that does not exist."""

_PAGE = 1000
_PAGE_OF_DATA = 32
"""Records of small files are up to 1 MiB each."""

_UNCONFIRMED = 1000


def records_of(reader: SnapshotReader, kind: bytes) -> Iterator[tuple[bytes, Record]]:
    """Yield all records of a kind, page by page."""
    start, end = kind_range(kind)
    limit = _PAGE_OF_DATA if kind == b"d" else _PAGE
    while True:
        page = reader.scan(start, end, limit)
        yield from page.records
        if not page.more:
            return
        start = page.records[-1][0] + b"\0"


def leased_files(reader: SnapshotReader) -> frozenset[int]:
    """Return the ids of the files that have a lease.

    Whoever takes blobs for unowned asks before it writes the root (`MaintenanceLock.announce`), and leaves the blobs of
    these files alone. If a lease ends after that, and the database forgets its end, the writer may publish the blob
    after all, and end the lease again. If it ended before, a database that forgets that forgets the write of the root
    as well, and with it the lock.
    """
    return frozenset(id_of(key) for key, _ in records_of(reader, b"l"))


class Surveyor:
    """The state of one pass.

    Args:
        confirm: None if it does not matter whether blobs are missing.
        damaged: the damaged objects: see `contents`.
    """

    def __init__(self, facts: Facts, confirm: Confirm | None, damaged: Mapping[str, int] | None = None) -> None:
        self.facts = facts
        self._confirm = confirm
        self._damaged = dict(damaged or {})
        self._unlisted: dict[str, int] = {}

    # --- one function for each kind -----------------------------------------------------------------------------------
    def take_data(self, key: bytes, record: Record) -> None:
        """Take the bytes of a small file."""
        blob = blob_of(key)
        self.facts.data.add(blob, len(record.value))
        position = find_damage(blob, 0, record.value)
        if position is not None:
            self._damaged[blob] = position

    def take_note(self, key: bytes, record: Record) -> None:
        """Take a garbage note."""
        self.facts.objects.mark(blob_of(key), NOTED)
        self.facts.notes += 1

    def take_inode(self, key: bytes, record: Record) -> None:
        """Take an inode, and its references to blobs."""
        facts = self.facts
        parent_id, name = parent_of(key), name_of(key)
        inode = decode_inode(key, record.value)
        if key == ROOT_KEY:
            facts.has_root = inode.is_directory and inode.id == ROOT_ID
        elif not _is_name(name):
            facts.misnamed.add(key)
        facts.ids.add(inode.id)
        facts.directories.add(parent_id, inode)
        if inode.is_directory:
            self._take_directory(key, inode)
            return
        facts.files += 1
        facts.file_bytes += inode.size
        if inode.writer:
            facts.open_files[inode.id] = OpenFile(key, inode.writer)
        for extent in inode.extents:
            self._take_extent(extent)

    def _take_directory(self, key: bytes, inode: Inode) -> None:
        if inode.has_quota:
            self.facts.quotas[key] = Quota(inode.quota_id, inode.id)
        if inode.moving and not inode.is_frozen(self.facts.now_ms):
            self.facts.marks.add(key)

    def _take_extent(self, extent: Extent) -> None:
        facts = self.facts
        table = facts.data if extent.inline else facts.objects
        row = table.mark(extent.blob, OWNED)
        if row is None:
            if extent.inline:
                facts.missing.add(extent.blob)
            elif self._confirm is not None:
                self._take_unlisted(extent)
            return
        if row.flags & OWNED:
            facts.shared.add(extent.blob)
        if row.flags & NOTED:
            facts.referenced_notes.add(extent.blob)
        if content_bytes(row.size) < extent.length:
            facts.short.add(extent.blob, f"{content_bytes(row.size)} of {extent.length} bytes")
        elif self._damaged.get(extent.blob, extent.length) < extent.length:
            facts.damaged_blobs.add(extent.blob, f"from byte {self._damaged[extent.blob]} of the blob on")

    def _take_unlisted(self, extent: Extent) -> None:
        if extent.blob in self._unlisted:
            self.facts.shared.add(extent.blob)
        self._unlisted[extent.blob] = max(extent.length, self._unlisted.get(extent.blob, 0))
        if len(self._unlisted) >= _UNCONFIRMED:
            self.confirm()

    def confirm(self) -> None:
        """Ask for the blobs that the listing did not show: most of them are younger than the listing."""
        if self._confirm is None or not self._unlisted:
            return
        for blob, size in self._confirm(list(self._unlisted)).items():
            if size is None:
                self.facts.missing.add(blob)
                continue
            self.facts.objects.add_late(blob, size, OWNED)
            if content_bytes(size) < self._unlisted[blob]:
                self.facts.short.add(blob, f"{content_bytes(size)} of {self._unlisted[blob]} bytes")
        self._unlisted.clear()

    def take_lease(self, key: bytes, record: Record) -> None:
        """Take a lease."""
        self.facts.leases[id_of(key)] = Lease.decode(key, record.value)

    def take_upload(self, key: bytes, record: Record) -> None:
        """Take a pending upload: its parts belong to no file yet, however old they are."""
        upload = Upload.decode(key, record.value)
        self._protect(upload.parts.values())

    def take_parts(self, key: bytes, record: Record) -> None:
        """Take further parts of a pending upload."""
        self._protect(decode_parts(key, record.value).values())

    def _protect(self, parts: Iterable[Extent]) -> None:
        for part in parts:
            table = self.facts.data if part.inline else self.facts.objects
            table.mark(part.blob, PROTECTED)

    def take_deleted(self, key: bytes, record: Record) -> None:
        """Take a deleted tree."""
        tree = DeletedTree.decode(key, record.value)
        self.facts.deleted.add(tree.root.id)
        if tree.charged:
            self.facts.charges[tree.root.id] = tree.charged
        if tree.root.has_quota:
            self.facts.quotas[key] = Quota(tree.root.quota_id, tree.root.id)

    def take_time(self, key: bytes, record: Record) -> None:
        """Take the time of a directory."""
        if self._is_stray(id_of(key)):
            self.facts.stray_times.append(id_of(key))

    def take_place(self, key: bytes, record: Record) -> None:
        """Take the place of a directory that was renamed."""
        decode_trail(key, record.value)
        if self._is_stray(id_of(key)):
            self.facts.stray_places.append(id_of(key))

    def _is_stray(self, number: int) -> bool:
        """Check whether an id belongs to no directory. One that is lost, but has entries, will be made again."""
        directories = self.facts.directories
        return number not in directories and number not in self.facts.deleted and directories.entries(number) == (0, 0)

    def take_usage(self, key: bytes, record: Record) -> None:
        """Take a counter of a quota."""
        if name_of(key) not in (b"n", b"s"):
            raise CorruptDataError("a record of the namespace is not a counter: run holdfast namespace fsck", key=key)
        self.facts.usage[key] = record

    # --- ends of kinds ------------------------------------------------------------------------------------------------
    def end_data(self) -> None:
        """Prepare the small files for questions."""
        self.facts.data.sort()

    def end_inodes(self) -> None:
        """Prepare the inodes for questions."""
        self.confirm()
        self.facts.ids.sort()
        self.facts.directories.sort()

    def end_deleted(self) -> None:
        """Prepare the deleted trees for questions."""
        self.facts.deleted.sort()


@dataclass(frozen=True, slots=True)
class RecordKind:
    """A kind of record, and how to take the facts from it.

    Attributes:
        first: the first byte of the keys.
        least, most: the length of the keys, bytes; what is shorter or longer is damaged.
        take: called with each record; raises `CorruptDataError` if it is damaged.
        end: called after the last record of the kind.
    """

    first: bytes
    least: int
    most: int
    take: Callable[[Surveyor, bytes, Record], None]
    end: Callable[[Surveyor], None] | None = None


KINDS = (
    RecordKind(b"d", 1, MAX_KEY_BYTES, Surveyor.take_data, Surveyor.end_data),
    RecordKind(b"g", 9, MAX_KEY_BYTES, Surveyor.take_note),
    RecordKind(b"i", 1 + ID_BYTES, MAX_KEY_BYTES, Surveyor.take_inode, Surveyor.end_inodes),
    RecordKind(b"l", 1 + ID_BYTES, 1 + ID_BYTES, Surveyor.take_lease),
    RecordKind(b"p", 2, MAX_KEY_BYTES, Surveyor.take_upload),
    RecordKind(b"q", 4, MAX_KEY_BYTES, Surveyor.take_parts),
    RecordKind(b"r", 1 + ID_BYTES, 1 + ID_BYTES, Surveyor.take_deleted, Surveyor.end_deleted),
    RecordKind(b"t", 1 + ID_BYTES, 1 + ID_BYTES, Surveyor.take_time),
    RecordKind(b"u", 2 + ID_BYTES, 2 + ID_BYTES, Surveyor.take_usage),
    RecordKind(b"w", 1 + ID_BYTES, 1 + ID_BYTES, Surveyor.take_place),
)
"""The kinds of records, in the order of their keys."""


def take_facts(
    reader: SnapshotReader,
    objects: BlobTable,
    now_ms: int,
    progress: Progress,
    *,
    confirm: Confirm | None = None,
    damaged: Mapping[str, int] | None = None,
    without: Collection[bytes] = (),
    leased: Collection[int] = (),
) -> Facts:
    """Return the facts of a snapshot.

    Args:
        objects: the blobs in the store, listed before the snapshot began.
        damaged: those of them that are damaged; None if they were not read.
        without: the first bytes of kinds that are skipped.
        leased: the files whose blobs are in progress, whether or not they have a lease in the snapshot.
    """
    facts = Facts(now_ms, objects, leased)
    surveyor = Surveyor(facts, confirm, damaged)
    done = 0
    for kind in KINDS:
        for key, record in () if kind.first in without else records_of(reader, kind.first):
            try:
                _take(kind, surveyor, key, record)
            except CorruptDataError:
                facts.damaged.add(key)
            done += 1
            if done % _PAGE == 0:
                progress("records", done, 0)
        if kind.end is not None:
            kind.end(surveyor)
    conclude(facts)
    return facts


def is_readable(key: bytes, record: Record) -> bool:
    """Check whether a record is one of its kind."""
    surveyor = Surveyor(Facts(0), None)
    kind = next(kind for kind in KINDS if key.startswith(kind.first))
    try:
        _take(kind, surveyor, key, record)
    except CorruptDataError:
        return False
    return True


def _take(kind: RecordKind, surveyor: Surveyor, key: bytes, record: Record) -> None:
    if not kind.least <= len(key) <= kind.most:
        raise CorruptDataError("the key of a record has a wrong length: run holdfast namespace fsck", key=key)
    kind.take(surveyor, key, record)


def _is_name(name: bytes) -> bool:
    """Check whether an entry of this name can be reached by a path."""
    try:
        return NsPath.parse("/" + name.decode()).names == (name,)
    except (UnicodeDecodeError, InvalidPathError):
        return False
