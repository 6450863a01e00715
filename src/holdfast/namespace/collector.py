"""Do the background work of a namespace: remove deleted trees, close files of dead writers, delete old garbage blobs.

Every step is one transaction that validates what it read, so two collectors at work, or one that dies, do no harm: the
steps of one conflict with those of the other, and are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice

from holdfast.errors import CorruptDataError
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.configuration import decode_configuration
from holdfast.namespace.inode import MOST_SKEW_S, decode_inode
from holdfast.namespace.keys import (
    CONFIGURATION,
    blob_name_in_key,
    children_range,
    deleted_key,
    directory_record_keys,
    garbage_key,
    kind_range,
    lease_key,
    usage_key,
)
from holdfast.namespace.operation import Changes
from holdfast.namespace.operations.base import discard_content_and_lease
from holdfast.namespace.other_records import HARD_LIMIT_MS, DeletedTree, Lease
from holdfast.namespace.view import SeenRecord, View, scan_pages
from holdfast.runtime import Clock
from holdfast.transactions.base import Backend, Committed, RangeCount, Record, ScanPage

_PAGE = 500
_MOST_EXTENTS = 5000
"""The most extents of deleted files in one step; each is a record to write."""

_MOST_SKEW_MS = int(MOST_SKEW_S * 1000)

_MOST_RECLAIMING = 200
"""The most steps for which an operation waits that needs what deleted trees use."""


@dataclass(slots=True)
class CollectionResult:
    """Counts what a run of the collector has done.

    Attributes:
        trees: directories that were removed, with all their entries.
        files: files that were removed from deleted trees.
        blobs: blobs that were deleted from the object store.
        leases: files of dead writers that were closed.
    """

    trees: int = 0
    files: int = 0
    blobs: int = 0
    leases: int = 0


@dataclass(slots=True)
class _FirstDamage:
    """The first error of a collection that goes on after it: one damaged record must not keep all others waiting."""

    first: CorruptDataError | None = None

    @contextmanager
    def collect_errors(self) -> Iterator[None]:
        try:
            yield
        except CorruptDataError as error:
            self.first = self.first or error


AfterStep = Callable[[CollectionResult], bool]
"""Called after each transaction of a collection with what has been done so far; returns whether to go on."""


@dataclass(frozen=True, slots=True)
class Collector:
    """Removes what operations have left behind, in steps of bounded size: deleted trees, leases of dead writers,
    garbage blobs.

    Args:
        safety_age_s: how long garbage blobs are kept.
        identity: the unique id of the namespace.
    """

    database: Backend
    blobs: BlobStore
    clock: Clock
    safety_age_s: int
    identity: str = ""

    def run(self, *, most_steps: int = 1_000_000, after_step: AfterStep = lambda done: True) -> CollectionResult:
        """Collect until nothing is left to do, for at most `most_steps` transactions, or until `after_step` returns
        False.

        Raises:
            CorruptDataError: a record is damaged; everything else is done. Run fsck.
            NotFoundError, FencedError: the database no longer contains the namespace, or contains another one.
        """
        done, damage = CollectionResult(), _FirstDamage()
        for number, _ in enumerate(self._run_steps(done, damage), 1):
            if number >= most_steps or not after_step(done):
                break
        if damage.first is not None:
            raise damage.first
        return done

    def reclaim(self, quotas: Collection[int]) -> bool:
        """Remove deleted trees that still count in the usage of the given quotas (by quota id); return whether there
        were any.

        Unlike in HDFS, a deleted tree counts until it is collected, which no operation waits for. The work is bounded:
        of very large trees, only a part is removed.
        """
        work = self._collect_deleted_trees(CollectionResult(), _FirstDamage(), frozenset(quotas))
        return sum(1 for _ in islice(work, _MOST_RECLAIMING)) > 0

    def _run_steps(self, done: CollectionResult, damage: _FirstDamage) -> Iterator[None]:
        yield from self._collect_deleted_trees(done, damage)
        yield from self._recover_leases(done, damage)
        yield from self._collect_garbage(done, damage)

    def _iter_records(self, kind: bytes) -> Iterator[tuple[bytes, Record]]:
        for page in scan_pages(self.database, *kind_range(kind), _PAGE, [CONFIGURATION]):
            decode_configuration(page.guards.get(CONFIGURATION), self.identity)
            yield from page.records

    # --- deleted trees ------------------------------------------------------------------------------------------------
    def _collect_deleted_trees(
        self, done: CollectionResult, damage: _FirstDamage, only_quotas: frozenset[int] = frozenset()
    ) -> Iterator[None]:
        """Remove deleted directories, page by page.

        A subdirectory becomes a deleted tree of its own, in the transaction that removes its entry: so there is no
        orphan at any moment, and the depth does not matter.

        Args:
            only_quotas: remove only what counts for these, unless empty.
        """
        found = True
        while found:
            found = False
            for key, record in self._iter_records(b"r"):
                with damage.collect_errors():
                    tree = DeletedTree.decode(key, record.value)
                    more = not only_quotas or not only_quotas.isdisjoint(tree.charged)
                    while more:
                        more = self._collect_page(key, record, tree, done)
                        found = found or more
                        yield

    def _collect_page(self, key: bytes, record: Record, tree: DeletedTree, done: CollectionResult) -> bool:
        """Remove a page of the entries of a deleted directory, or its own record; return whether to call it again."""
        directory = tree.root
        start, end = children_range(directory.id)
        page = self.database.scan(start, end, _PAGE)
        changes: Changes[None] = Changes(None)
        entries = {key: SeenRecord(record.version, None, record.value)}
        now_ms = self._now_ms()
        files = 0
        space = 0
        extents = 0
        for child_key, child_record in page.records:
            child = decode_inode(child_key, child_record.value)
            extents += len(child.extents)
            if extents > _MOST_EXTENTS and changes.deletes:
                break  # the next step takes it
            entries[child_key] = SeenRecord(child_record.version, child)
            changes.deletes.add(child_key)
            if child.is_directory:
                changes.new_values[deleted_key(child.id)] = replace(tree, root=child).encode()
            else:
                discard_content_and_lease(changes, child, now_ms)
                files += 1
                space += child.space
        if not page.records:
            changes.deletes |= {key, *directory_record_keys(directory.id, directory.quota_id)}
            changes.ranges.append(RangeCount(key, start, end, 0))
        for number in tree.charged:
            changes.adds[usage_key(number, b"n")] = -(files + (0 if page.records else 1))
            changes.adds[usage_key(number, b"s")] = -space
        gone = self._drop_counters_of_missing_quotas(changes)
        if not isinstance(self.database.commit(changes.to_commit(View((), entries, gone))), Committed):
            return False  # another collector was first
        done.files += files
        done.trees += not page.records
        return bool(page.records)

    def _drop_counters_of_missing_quotas(self, changes: Changes[None]) -> set[bytes]:
        """Leave out the counters of quotas that do not exist anymore; return their keys.

        They must still be missing when the changes take effect: a database that loses its newest commits may have such
        a quota again, which counts what the changes remove.
        """
        wanted = {key for key, delta in changes.adds.items() if delta}
        known = self.database.get_many(wanted) if wanted else {}
        changes.adds = {key: changes.adds[key] for key in wanted if key in known}
        return wanted - known.keys()

    # --- leases -------------------------------------------------------------------------------------------------------
    def _recover_leases(self, done: CollectionResult, damage: _FirstDamage) -> Iterator[None]:
        """Close the files of writers that have been silent beyond the hard limit; what they synced stays."""
        now_ms = self._now_ms()
        for key, record in self._iter_records(b"l"):
            with damage.collect_errors():
                if Lease.decode(key, record.value).is_renewal_overdue(now_ms, HARD_LIMIT_MS):
                    done.leases += end_silent_lease(self.database, key, record)
                    yield

    # --- blobs --------------------------------------------------------------------------------------------------------
    def _collect_garbage(self, done: CollectionResult, damage: _FirstDamage) -> Iterator[None]:
        """Delete blobs that have been garbage for the safety age, if our clock and that of the object store agree.

        With a clock that is ahead, we would take what readers still need; with one that is behind, we would take right
        dates for those of the future. If the store has no clock, ours decides, and no date is changed.
        """
        start, end = kind_range(b"g")
        age_ms, now_ms = self.safety_age_s * 1000, self._now_ms()
        due = start, garbage_key(max(now_ms - age_ms, 0), "")
        far = garbage_key(now_ms + _MOST_SKEW_MS, ""), end
        if not any(self.database.scan(*span, 1).records for span in (due, far)):
            return
        self.blobs.hold()
        store_ms = int(self.blobs.read_store_clock_s() * 1000)
        if store_ms:
            yield from self._redate_future_notes(max(now_ms, store_ms), damage)
            now_ms = min(now_ms, store_ms)
        yield from self._delete_garbage(max(now_ms - age_ms, 0), done, damage)

    def _delete_garbage(self, until_ms: int, done: CollectionResult, damage: _FirstDamage) -> Iterator[None]:
        """Delete what has been garbage since before a time: first the blobs, then their notes.

        What the notes prove must be durable before: a database that crashes and loses it has files again that need the
        blobs. A note that is there before and afterwards, with one version, was never lost.
        """
        for page in scan_pages(self.database, kind_range(b"g")[0], garbage_key(until_ms, ""), _PAGE):
            changes: Changes[None] = Changes(None)
            blobs = self._select_durable_notes(page, _blobs_by_garbage_note(page, damage))
            changes.deletes.update(blobs)
            if changes.deletes:
                self.blobs.delete_many(list(blobs.values()))
                self.database.commit(changes.to_commit(View((), {})))
                done.blobs += len(changes.deletes)
            yield

    def _select_durable_notes(self, page: ScanPage, blobs: dict[bytes, str]) -> dict[bytes, str]:
        """Return those of the notes on a page that no crash can undo any more."""
        if not blobs:
            return blobs
        self.database.make_durable()
        found = self.database.get_many([CONFIGURATION, *blobs])
        decode_configuration(found.get(CONFIGURATION), self.identity)  # another namespace has its blobs elsewhere
        versions = {key: record.version for key, record in page.records}
        return {key: blob for key, blob in blobs.items() if key in found and found[key].version == versions[key]}

    def _redate_future_notes(self, now_ms: int, damage: _FirstDamage) -> Iterator[None]:
        """Give notes from the future the present time: a client whose clock was wrong has written them."""
        for page in scan_pages(self.database, garbage_key(now_ms + _MOST_SKEW_MS, ""), kind_range(b"g")[1], _PAGE):
            blobs = _blobs_by_garbage_note(page, damage)
            changes: Changes[None] = Changes(None)
            changes.deletes.update(blobs)
            changes.values.update({garbage_key(now_ms, blob): b"" for blob in blobs.values()})
            entries = {key: SeenRecord(record.version, None) for key, record in page.records}
            if blobs:  # if it is a conflict, another collector was first
                self.database.commit(changes.to_commit(View((), entries)))
            yield

    def _now_ms(self) -> int:
        return max(int(self.clock.now_s() * 1000), 0)


def _blobs_by_garbage_note(page: ScanPage, damage: _FirstDamage) -> dict[bytes, str]:
    """Return the blobs that garbage notes name, by the keys of the notes."""
    found = {}
    for key, _ in page.records:
        with damage.collect_errors():
            found[key] = blob_name_in_key(key)
    return found


def end_silent_lease(database: Backend, key: bytes, record: Record) -> bool:
    """Delete the lease of a silent writer, and close its file; return False if another client changed them first.

    Args:
        key, record: the lease as it was when the writer was found to be silent.
    """
    lease = Lease.decode(key, record.value)
    found = database.get_many([lease.key]).get(lease.key)
    changes: Changes[None] = Changes(None)
    changes.deletes.add(key)
    view = View((), {key: SeenRecord(record.version, None)})
    if found is None:
        view.absent.add(lease.key)
    else:
        inode = decode_inode(lease.key, found.value)
        view.entries[lease.key] = SeenRecord(found.version, inode)
        if inode.writer == lease.holder and lease_key(inode.id) == key:
            changes.puts[lease.key] = replace(inode, writer="")
    return isinstance(database.commit(changes.to_commit(view)), Committed)
