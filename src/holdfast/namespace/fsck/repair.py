"""Repair what a check finds, in rounds, until nothing is left that can be repaired.

A repair mends damage; what is left over goes by a collection or a sweep. Nothing is deleted but leases and notes that
contradict the files. Entries and blobs that belong nowhere become entries of
``/lost+found/<time>``, and so do the bytes of damaged records. One repair may uncover the next: the entries of a
directory whose record was damaged are found as orphans in the next round. The young blobs of a damaged inode are found
only when their safety age is over: so such a repair is complete with the next one (`damage`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from holdfast.errors import CorruptDataError, FencedError, HoldfastError, NotFoundError
from holdfast.namespace.blobs import content_size
from holdfast.namespace.configuration import Configuration
from holdfast.namespace.directory_times import DirectoryTimes
from holdfast.namespace.fsck.check import CheckedNamespace, check, hold_maintenance_lock
from holdfast.namespace.fsck.findings import FINDING_KINDS, Finding, Progress, Report, ignore_progress
from holdfast.namespace.fsck.survey import CLOSING_S, can_decode_record, find_leased_files
from holdfast.namespace.inode import Extent, Inode, InodeKind, decode_inode
from holdfast.namespace.keys import (
    DAMAGED,
    NO_PARENT,
    ROOT_ID,
    ROOT_KEY,
    blob_name_in_key,
    children_range,
    data_key,
    deleted_key,
    entry_name_in_key,
    lease_key,
    new_inode_id,
)
from holdfast.namespace.maintenance import KINDS_WITH_BLOBS, MaintenanceLock, delete_damage_note, encode_damage_note
from holdfast.namespace.operation import Changes
from holdfast.namespace.operations.base import ReadInode
from holdfast.namespace.operations.names import Mkdirs
from holdfast.namespace.other_records import Lease
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import Caller
from holdfast.namespace.phases import OperationRunner
from holdfast.namespace.trees import TreeUsageCounter
from holdfast.namespace.view import InodeCache, ResolvedPath, SeenRecord, View, read_view
from holdfast.transactions.base import Record

_MOST_NAMES = 100
_LONGEST_NAME = 200
_PAGE = 100
_MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """A finding that could not be repaired, and the error message."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """The result of a repair: what was repaired, what failed, and a check afterwards.

    Attributes:
        repaired: what was found and repaired, in order.
        failed: what could not be repaired, although a repair exists for its kind.
        report: a check after all repairs.
        shelf: the directory in /lost+found; empty if there was no need for one.
    """

    repaired: Sequence[Finding]
    failed: Sequence[Failure]
    report: Report
    shelf: str

    def to_json(self) -> dict[str, object]:
        """Return the report as a JSON object."""
        return {
            "repaired": [finding.to_json() for finding in self.repaired],
            "failed": [{**failure.finding.to_json(), "reason": failure.reason} for failure in self.failed],
            "lost_and_found": self.shelf,
            **self.report.to_json(),
        }


def repair(
    subject: CheckedNamespace, configuration: Configuration, progress: Progress = ignore_progress
) -> RepairReport:
    """Repair all damage that a check of the namespace finds, in rounds; return a report. The namespace may be in use.

    Guarantee: every step is one transaction, which validates what the check saw. The content of files does not change.

    Raises:
        ConflictError: another process repairs or sweeps: wait.
        FencedError: another process has taken over.
        InvalidRequestError: the blobs belong to another namespace; nothing happened.

    Crash: some repairs are done; call it again.
    """
    subject = replace(subject, safety_age_s=max(subject.safety_age_s, CLOSING_S))
    with hold_maintenance_lock(subject, "repair", progress) as (lock, renewing):
        work = _RepairProgress()
        shelf: NsPath | None = None
        while True:
            store_now_s = subject.blobs.read_store_clock_s()
            leased = find_leased_files(subject.database)
            lock.rewrite_root()
            found = check(subject, renewing, store_now_s=store_now_s, leased=leased)
            bench = RepairWorkbench(subject, configuration, lock, shelf, store_now_s)
            is_done = not _repair_round(bench, found.findings, work, renewing)
            shelf = bench.shelf
            if is_done:
                break
        if FINDING_KINDS["unowned-blob"] not in found.totals:
            delete_damage_note(subject.database, lock, store_now_s, subject.safety_age_s)
        return RepairReport(
            repaired=work.repaired,
            failed=list(work.failed.values()),
            report=found,
            shelf="" if shelf is None else str(shelf),
        )


_Identity = tuple[object, ...]


@dataclass(slots=True)
class _RepairProgress:
    """What all rounds have done.

    Attributes:
        tries: how often each finding was repaired: a repair that does not help must not be repeated without end.
    """

    repaired: list[Finding] = field(default_factory=list)
    failed: dict[_Identity, Failure] = field(default_factory=dict)
    tries: Counter[_Identity] = field(default_factory=Counter)


def _repair_round(
    bench: RepairWorkbench, findings: Sequence[Finding], work: _RepairProgress, progress: Progress
) -> bool:
    """Repair each finding of a check once; return whether something was repaired."""
    before = len(work.repaired)
    for number, finding in enumerate(findings):
        identity = (finding.kind.name, *finding.keys, finding.blob, finding.number)
        if finding.kind.name not in REPAIRS or work.tries[identity] >= _MOST_TRIES:
            continue
        work.tries[identity] += 1
        progress("repairs", number, len(findings))
        try:
            is_repaired = REPAIRS[finding.kind.name](bench, finding)
        except FencedError:
            raise
        except HoldfastError as error:
            work.failed[identity] = Failure(finding, str(error))
            continue
        if is_repaired:
            work.failed.pop(identity, None)
            work.repaired.append(finding)
    bench.operations.times.flush()
    return len(work.repaired) > before


# --- tools ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class SeenInode:
    """An inode as a repair has read it, with its key and version."""

    key: bytes
    version: int
    inode: Inode

    @property
    def entry(self) -> SeenRecord:
        """The record that a transaction validates: the repair takes effect only if it is unchanged."""
        return SeenRecord(self.version, self.inode)


class RepairWorkbench:
    """Reads and changes records for one round of repairs, under the maintenance lock.

    Attributes:
        caller: a superuser, the owner of what the repair makes.
        store_now_s: the time of the object store's clock when the round began.
        shelf: the directory in /lost+found for what this repair finds; made when it is first needed.
    """

    def __init__(
        self,
        subject: CheckedNamespace,
        configuration: Configuration,
        lock: MaintenanceLock,
        shelf: NsPath | None,
        store_now_s: float,
    ) -> None:
        self.subject = subject
        self.configuration = configuration
        self.lock = lock
        self.shelf = shelf
        self.store_now_s = store_now_s
        # Hints of its own: those of others may be wrong.
        hints, times = InodeCache(configuration.identity), DirectoryTimes(subject.database, subject.environment.clock)
        self.operations = OperationRunner(subject.database, subject.environment, hints, times)
        self.trees = TreeUsageCounter(self.operations)
        self.caller = Caller(configuration.superuser, is_superuser=True)

    # --- reading ------------------------------------------------------------------------------------------------------
    def read_record(self, key: bytes) -> Record | None:
        """Read the record at a key; return None if it does not exist."""
        return self.subject.database.get_many([key]).get(key)

    def read_inode(self, key: bytes) -> SeenInode | None:
        """Read the inode at a key; return None if it does not exist or cannot be decoded."""
        record = self.read_record(key)
        try:
            return None if record is None else SeenInode(key, record.version, decode_inode(key, record.value))
        except CorruptDataError:
            return None

    def chain(self, path: NsPath) -> tuple[ResolvedPath, View]:
        """Resolve a path; return the inodes on it, and the view that a commit validates."""
        view = read_view(self.subject.database, InodeCache(self.configuration.identity), ReadInode(path))
        return view.chains[0], view

    # --- writing ------------------------------------------------------------------------------------------------------
    def commit(self, changes: Changes[None], seen: Mapping[bytes, SeenRecord | None]) -> bool:
        """Commit changes under the lock if all records in `seen` are unchanged; return whether they took effect.

        Args:
            seen: records by key; None for one that must not exist.
        """
        entries = {key: entry for key, entry in seen.items() if entry is not None}
        return self.lock.commit(changes, View((), entries, seen.keys() - entries.keys()))

    def put(self, seen: SeenInode, inode: Inode) -> bool:
        """Replace an inode if it is unchanged; return whether that took effect."""
        return self.commit(Changes(None, puts={seen.key: inode}), {seen.key: seen.entry})

    def add_to_lost_found(
        self, name: str, inode: Inode, changes: Changes[None], seen: Mapping[bytes, SeenRecord | None]
    ) -> bool:
        """Add an inode to this repair's directory in /lost+found, in one transaction with other changes; return whether
        it took effect.

        The lease of a file gets the file's new key.

        Args:
            name: what it is called; a number is added if the name is taken.
        """
        shelf = self._make_lost_found_directory()
        for number in range(1, _MOST_NAMES):
            suffix = "" if number == 1 else f"-{number}"
            chain, view = self.chain(shelf.child((name[:_LONGEST_NAME] + suffix).encode()))
            if chain.target is not None:
                continue
            if chain.parent is None or not chain.parent.is_directory:
                return False  # the shelf was removed
            changes.inserts[chain.target_key] = inode
            record = self.read_record(lease_key(inode.id)) if inode.writer else None
            if record is not None:
                lease = Lease.decode(lease_key(inode.id), record.value)
                changes.values[lease_key(inode.id)] = replace(lease, key=chain.target_key).encode()
            return self.commit(changes, {**dict.fromkeys(view.absent), **view.entries, **seen})
        return False

    def move(self, key: bytes, number: int, name: str) -> bool:
        """Move an inode, with everything below it, to /lost+found if `key` still has the inode with the id `number`;
        return whether it did.
        """
        seen = self.read_inode(key)
        if seen is None or seen.inode.id != number:
            return False
        return self.add_to_lost_found(name, seen.inode, Changes(None, deletes={key}), {key: seen.entry})

    def new_id(self) -> int:
        """Return a new inode id."""
        return new_inode_id(self.subject.environment)

    def new_file(self, extents: tuple[Extent, ...], xattrs: Mapping[str, bytes]) -> Inode:
        """Return the inode of a new file with the given content, which only the superuser may read."""
        return replace(
            self.new_directory(self.new_id(), 0o600),
            kind=InodeKind.FILE,
            atime_ms=self.operations.now_ms(),
            replication=self.configuration.replication,
            block_size=self.configuration.block_size,
            extents=extents,
            xattrs=xattrs,
        )

    def new_directory(self, number: int, mode: int = 0o700) -> Inode:
        """Return the inode, with the id `number`, of a new directory of the superuser."""
        return Inode(
            id=number,
            kind=InodeKind.DIRECTORY,
            mode=mode,
            owner=self.configuration.superuser,
            group=self.configuration.supergroup,
            mtime_ms=self.operations.now_ms(),
        )

    def _make_lost_found_directory(self) -> NsPath:
        if self.shelf is None:
            made = datetime.fromtimestamp(self.subject.environment.clock.now_s(), tz=timezone.utc)
            self.shelf = NsPath((b"lost+found", made.strftime("%Y-%m-%dT%H-%M-%SZ").encode()))
        self.operations.run(Mkdirs(path=self.shelf, mode=0o700), self.caller)
        return self.shelf


# --- single records ---------------------------------------------------------------------------------------------------
def _save_damaged_record_as_file(bench: RepairWorkbench, finding: Finding) -> bool:
    """Move the bytes of a damaged record into a file; its key is an attribute of the file."""
    (key,) = finding.keys
    if key == ROOT_KEY:
        return _recreate_root_directory(bench, finding)
    record = bench.read_record(key)
    if record is None or can_decode_record(key, record):
        return False
    changes: Changes[None] = Changes(None, deletes={key})
    if key[:1] in KINDS_WITH_BLOBS:
        changes.values[DAMAGED] = encode_damage_note(bench.store_now_s)
    extents: tuple[Extent, ...] = ()
    if record.value:
        extent, stored = bench.subject.blobs.new_small_blob(bench.new_id(), record.value)
        changes.new_values.update({data_key(blob): value for blob, value in stored.items()})
        extents = (extent,)
    file = bench.new_file(extents, {"user.key": key, "user.number": str(record.number).encode()})
    return bench.add_to_lost_found(
        f"record-{chr(key[0])}-{key[1:].hex()}", file, changes, {key: SeenRecord(record.version, None)}
    )


def _recount_quota_usage(bench: RepairWorkbench, finding: Finding) -> bool:
    """Count what a directory with a quota uses, while it is frozen."""
    bench.trees.recount_usage(NsPath.parse(finding.path), bench.caller)
    return True


# --- the tree: what hangs nowhere moves to /lost+found, with everything below it --------------------------------------
def _recreate_root_directory(bench: RepairWorkbench, finding: Finding) -> bool:
    """Make a root. The bytes of a damaged one are kept as the record of a small file, which no file refers to yet."""
    record, seen = bench.read_record(ROOT_KEY), bench.read_inode(ROOT_KEY)
    if seen is not None and seen.inode.is_directory and seen.inode.id == ROOT_ID:
        return False
    root = replace(bench.new_directory(ROOT_ID, 0o755), namespace=bench.configuration.identity)
    changes: Changes[None] = Changes(None, puts={ROOT_KEY: root})
    if record is not None:
        _, stored = bench.subject.blobs.new_small_blob(ROOT_ID, record.value)
        changes.new_values.update({data_key(blob): value for blob, value in stored.items()})
    return bench.commit(changes, {ROOT_KEY: None if record is None else SeenRecord(record.version, None)})


def _move_invalid_entry_to_lost_found(bench: RepairWorkbench, finding: Finding) -> bool:
    """Move an entry whose name no path can have."""
    (key,) = finding.keys
    seen = bench.read_inode(key)
    return seen is not None and bench.move(key, seen.inode.id, f"name-{entry_name_in_key(key).hex()}")


def _recreate_missing_directory(bench: RepairWorkbench, finding: Finding) -> bool:
    """Make the missing directory again, with its id: so all its entries are in it again, however many there are."""
    page = bench.subject.database.scan(*children_range(finding.number), _PAGE)
    entries = [(key, record) for key, record in page.records if key != ROOT_KEY and can_decode_record(key, record)]
    if not entries:
        return False
    if finding.number == NO_PARENT:  # no directory can have this id
        moved = [
            bench.move(key, seen.inode.id, _make_lost_entry_name(key))
            for key, _ in entries
            if (seen := bench.read_inode(key))
        ]
        return any(moved)
    key, record = entries[0]
    directory = bench.new_directory(finding.number)
    return bench.add_to_lost_found(
        f"directory-{finding.number}", directory, Changes(None), {key: SeenRecord(record.version, None)}
    )


def _make_lost_entry_name(key: bytes) -> str:
    return (
        f"entry-{entry_name_in_key(key).decode(errors='replace')}".replace("/", "-")
        .replace(":", "-")
        .replace("\0", "-")
    )


def _break_directory_cycle(bench: RepairWorkbench, finding: Finding) -> bool:
    """Move one directory of a cycle, and with it all the others."""
    return bench.move(finding.keys[0], finding.number, f"directory-{finding.number}")


def _renumber_duplicate_inodes(bench: RepairWorkbench, finding: Finding) -> bool:
    """Give all but one of several inodes new ids. Entries stay with the one that keeps the id: a directory."""
    found = [seen for key in finding.keys if (seen := bench.read_inode(key)) and seen.inode.id == finding.number]
    if len(found) < 2:
        return False
    keeper, *others = sorted(found, key=lambda seen: not seen.inode.is_directory)
    changes: Changes[None] = Changes(None)
    for seen in others:
        changes.puts[seen.key] = replace(
            seen.inode, id=bench.new_id(), writer="", names_quota=None, space_quota=None, quota_id=0
        )
    return bench.commit(changes, {seen.key: seen.entry for seen in (keeper, *others)})


def _split_file_with_children(bench: RepairWorkbench, finding: Finding) -> bool:
    """Give the file another id: its entries are then those of a directory that does not exist."""
    seen = bench.read_inode(finding.keys[0])
    if seen is None or seen.inode.is_directory or seen.inode.id != finding.number:
        return False
    changes: Changes[None] = Changes(None, puts={seen.key: replace(seen.inode, id=bench.new_id(), writer="")})
    if seen.inode.writer:
        changes.deletes.add(lease_key(finding.number))
    return bench.commit(changes, {seen.key: seen.entry})


def _cancel_collection_of_live_tree(bench: RepairWorkbench, finding: Finding) -> bool:
    """Delete the note that a directory waits for its collection: it still exists."""
    seen, key = bench.read_inode(finding.keys[0]), deleted_key(finding.number)
    record = bench.read_record(key)
    if seen is None or record is None or seen.inode.id != finding.number:
        return False
    return bench.commit(Changes(None, deletes={key}), {seen.key: seen.entry, key: SeenRecord(record.version, None)})


# --- blobs ------------------------------------------------------------------------------------------------------------
def _make_file_from_unowned_blob(bench: RepairWorkbench, finding: Finding) -> bool:
    """Make a file of a blob that belongs to none, called like the blob."""
    blobs, seen = bench.subject.blobs, dict[bytes, SeenRecord | None]()
    if finding.keys:
        (key,) = finding.keys
        record = bench.read_record(key)
        if record is None:
            return False
        extent = Extent(blob_name_in_key(key), content_size(len(record.value)), inline=True)
        seen[key] = SeenRecord(record.version, None)
    else:
        try:
            info = blobs.store.head(blobs.key(finding.blob))
        except NotFoundError:
            return False
        extent = Extent(finding.blob, content_size(info.size_bytes))
    name = f"blob-{extent.blob}".replace("/", "-").replace(":", "-")
    return bench.add_to_lost_found(name, bench.new_file((extent,), {}), Changes(None), seen)


def _delete_garbage_notes(bench: RepairWorkbench, finding: Finding) -> bool:
    """Delete the garbage notes of a blob that a file refers to."""
    seen = bench.read_inode(finding.keys[0])
    notes = bench.subject.database.get_many(finding.keys[1:])
    if seen is None or not notes or finding.blob not in {extent.blob for extent in seen.inode.extents}:
        return False
    return bench.commit(Changes(None, deletes=set(notes)), {seen.key: seen.entry})


# --- leases -----------------------------------------------------------------------------------------------------------
def _close_file(bench: RepairWorkbench, finding: Finding) -> bool:
    """Close a file whose writer has no lease; what was synced stays."""
    seen = bench.read_inode(finding.keys[0])
    if seen is None or not seen.inode.writer or bench.read_record(lease_key(seen.inode.id)) is not None:
        return False
    changes = Changes(None, puts={seen.key: replace(seen.inode, writer="")})
    return bench.commit(changes, {seen.key: seen.entry, lease_key(seen.inode.id): None})


def _delete_lease(bench: RepairWorkbench, finding: Finding) -> bool:
    """Delete a lease whose holder writes no file."""
    (key,) = finding.keys
    record = bench.read_record(key)
    if record is None:
        return False
    lease = Lease.decode(key, record.value)
    seen = bench.read_inode(lease.key)
    if seen is not None and lease_key(seen.inode.id) == key and seen.inode.writer == lease.holder:
        return False
    file = {} if seen is None else {seen.key: seen.entry}
    return bench.commit(Changes(None, deletes={key}), {key: SeenRecord(record.version, None), **file})


REPAIRS: Mapping[str, Callable[[RepairWorkbench, Finding], bool]] = {
    "no-root": _recreate_root_directory,
    "damaged-record": _save_damaged_record_as_file,
    "bad-name": _move_invalid_entry_to_lost_found,
    "duplicate-id": _renumber_duplicate_inodes,
    "file-with-children": _split_file_with_children,
    "deleted-tree": _cancel_collection_of_live_tree,
    "orphan": _recreate_missing_directory,
    "cycle": _break_directory_cycle,
    "referenced-garbage": _delete_garbage_notes,
    "unowned-blob": _make_file_from_unowned_blob,
    "writer-without-lease": _close_file,
    "lease-without-file": _delete_lease,
    "wrong-usage": _recount_quota_usage,
}
"""By the name of a kind of finding: repairs one in a transaction; returns False if there is nothing to do any more."""
