"""Delete what no file refers to, and nothing ever will.

A writer that dies leaves blobs that were durable already; no record names them, so no collector finds them. A sweep
lists all blobs, then takes one snapshot of the database, and deletes a blob of the listing only if

- no inode of the snapshot refers to it, in the tree or in a deleted tree, nor a pending upload, and no garbage note
  names it;
- it is older than the safety age, by the store's own clock: files are published after their blobs, and a publication
  that comes later than that is refused (`Publish`);
- no lease of its file exists: the writer could still publish it; nor did one when the sweep began (`leased_files`), as
  a database that loses its newest commits could have it again;
- it is younger than the last repair of a damaged record, which may have named it: such blobs are left to the next
  repair (`fsck.damage`).

The order matters. A blob of the listing that is in use at the snapshot is named by it, and one that is not in use can
be published only by its own writer. With several snapshots instead of one, a file could be renamed from what is not
read yet to what was read already, and its blobs would look unowned.

The collector deletes what is noted a safety age later, not at once: a database that loses its newest commits, in a
failover, could have the lease of a writer again, whose bytes would be gone.

Blobs that were never finished are given up (`unfinished_blobs`). Nothing else is deleted directly: the sweep notes the
blobs as garbage, in transactions that no repair can overtake (`maintenance`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from holdfast.errors import CorruptDataError
from holdfast.namespace.changes import Changes
from holdfast.namespace.configuration import require_configuration
from holdfast.namespace.fsck.check import Subject
from holdfast.namespace.fsck.checkers.blobs import unowned
from holdfast.namespace.fsck.checkers.quotas import STRAY_USAGE
from holdfast.namespace.fsck.checkers.times import STRAY_PLACES, STRAY_TIMES
from holdfast.namespace.fsck.damage import damaged_at_s
from holdfast.namespace.fsck.listing import CLOSING_S, list_blobs
from holdfast.namespace.fsck.progress import Progress, silent
from holdfast.namespace.fsck.survey import leased_files, take_facts
from holdfast.namespace.keys import garbage_key
from holdfast.namespace.maintenance import MaintenanceLock
from holdfast.namespace.unfinished_blobs import abandoned, abort_unfinished, list_unfinished
from holdfast.namespace.view import Entry, View

T = TypeVar("T")

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep has found and given to the collector.

    Attributes:
        blobs, blob_bytes: objects that nothing refers to.
        records: times, places and counters of directories that do not exist; they are deleted.
        uploads: blobs that were never finished; they are given up.
    """

    blobs: int = 0
    blob_bytes: int = 0
    records: int = 0
    uploads: int = 0


def sweep(subject: Subject, progress: Progress = silent, *, closing_s: float = CLOSING_S) -> Swept:
    """Note unowned blobs as garbage, and delete stray records. Safe at any time.

    Raises:
        ConflictError: another process sweeps or repairs: wait.
        CorruptDataError: an inode cannot be read, so it is unknown what it refers to; nothing happened. Run fsck.
        InvalidRequestError: the blobs belong to another namespace; nothing happened.
        FencedError: another process has taken over.

    Crash: some of the blobs are noted; the next sweep finds the others.
    """
    subject.blobs.hold()
    with MaintenanceLock.hold(subject.database, subject.environment, "sweep") as lock:
        require_configuration(subject.database, subject.identity)  # now that losing it loses the lock

        def report(stage: str, done: int, total: int) -> None:
            lock.renew_if_due()
            progress(stage, done, total)

        age_s = max(subject.safety_age_s, closing_s)
        store_now_s = subject.blobs.store_time_s()
        leased = leased_files(subject.database)
        lock.announce()
        objects = list_blobs(
            subject.blobs, store_now_s, age_s, report, with_young=False, after_s=damaged_at_s(subject.database)
        )
        uploads = list_unfinished(subject.blobs, store_now_s, age_s)
        now_ms = int(subject.environment.clock.now_s() * 1000)
        with subject.database.snapshot() as reader:
            facts = take_facts(reader, objects, now_ms, report, without=[b"d"], leased=leased)
        if facts.damaged.total:
            raise CorruptDataError(
                "records cannot be read, so it is unknown which blobs are in use: run holdfast namespace fsck --repair",
                records=facts.damaged.total,
            )
        since_ms = max(now_ms, int(store_now_s * 1000))
        blobs = blob_bytes = 0
        for rows in _batched(unowned(facts), _PAGE):
            notes = {garbage_key(since_ms, row.name): b"" for row in rows}
            lock.commit(Changes(None, values=notes), View((), {}))
            blobs += len(rows)
            blob_bytes += sum(row.size for row in rows)
            progress("unowned blobs", blobs, 0)
        records = 0
        strays = itertools.chain(STRAY_TIMES.find(facts), STRAY_PLACES.find(facts), STRAY_USAGE.find(facts))
        for suspects in _batched(strays, _PAGE):
            # A database that has lost its newest commits may have the quota of a stray counter again.
            seen = {one.key: Entry(one.version, None) for one in suspects if one.version}
            if lock.commit(Changes(None, deletes={one.key for one in suspects}), View((), seen)):
                records += len(suspects)
        given_up = 0
        for batch in _batched(abandoned(subject.blobs, uploads, leased | facts.leases.keys()), _PAGE):
            lock.commit(Changes(None), View((), {}))  # as for blobs: whoever has lost the lock gives up nothing
            abort_unfinished(subject.blobs, batch)
            given_up += len(batch)
        return Swept(blobs, blob_bytes, records, given_up)


def _batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Split items into lists of at most `size`."""
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, size)):
        yield batch
