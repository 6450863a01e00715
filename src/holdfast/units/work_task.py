"""Run units from a work list, until the list is at its end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial

from holdfast.errors import FencedError, HoldfastError, OutcomeUnknownError
from holdfast.records.batches import AdaptivePageSize, iter_pages
from holdfast.runtime import Backoff, Repeat, repeat_in_thread
from holdfast.transactions.base import ABSENT, Backend, Commit, Record, ScanPage
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import Job, job_key, require_running_job
from holdfast.units.progress import LIST_DROPPED, Statistics, worker_unit_count_key
from holdfast.units.shard_task import ProgressRecord
from holdfast.units.unit import Unit
from holdfast.units.unit_loop import UnitLoop, UnitStatus
from holdfast.units.work_list import (
    ExpiredClaimDetector,
    WorkClaim,
    WorkItem,
    WorkList,
    claim_items,
    decode_claim,
    encode_claim,
    release_worker_claims,
)

_BEATS = 4
"""Heartbeats in the time of a lease."""

_IDLE = Backoff(0.002, 0.1)
"""Waits for work while others have it all."""
_MOST_WINDOW = 1000
_MOST_LARGE = 16
"""Items that whoever looks for work reads at least, if there is a worker for each, however large their values are."""


class WorkTask:
    """An attempt at one of the workers of a work list's job, which takes units from the list and runs them.

    Guarantee: when `run` returns, no item of the list waits, none is claimed, and every unit that has run has taken
    effect exactly once, durably. If it raises, its items wait again: when its next attempt starts, or after `lease_s`.

    Args:
        slot: number of the worker, from 0; the same for all attempts at this worker.
        run: see `ShardTask`.
    """

    def __init__(
        self,
        execution: UnitExecution,
        backend: Backend,
        job: Job,
        slot: int,
        work: WorkList,
        *,
        run: str = "",
        repeat: Repeat = repeat_in_thread,
    ) -> None:
        self._execution = execution
        self._database = execution.database
        self._backend = backend
        self._environment = execution.environment
        self._work = work
        self._job = job
        self._run = run
        self._workers = job.shards
        self._required: dict[bytes, int] = {}
        self._slot = slot
        self._key = work.claim_key(slot, execution.environment.ids.token())
        self._ledger = ClaimLedger(self._database, work, self._key, worker_unit_count_key(job.id, slot))
        self._loop = UnitLoop(execution, self._ledger)
        self._watch = ExpiredClaimDetector(self._database, work, execution.environment, execution.settings.lease_s)
        self._progress = ProgressRecord(self._database, job, slot, execution.statistics)
        self._repeat = repeat
        self._window = AdaptivePageSize()

    def run(self) -> Statistics:
        """Run units until no item of the list waits or is claimed, and return the statistics of this attempt.

        Raises:
            InvalidRequestError: a unit's function failed.
            TransactionConflictError: a unit conflicts however often it is tried.
            UnavailableError: the database did not come back in time.
            FencedError: the job was forgotten, or the list dropped, or the run has ended.
        """
        self._loop.retry_while_unavailable(lambda: release_worker_claims(self._database, self._work, self._slot))
        self._loop.retry_while_unavailable(self._read_job_version)
        self._loop.retry_while_unavailable(self._progress.load)
        is_over = False
        while not is_over:
            beats = self._repeat(self._send_heartbeat, self._execution.settings.lease_s / _BEATS)
            try:
                with beats, self._execution.alarm.ready():
                    self._run_claims()
            except Exception:
                with suppress(HoldfastError):
                    self._delete_heartbeats([self._work.heartbeat_key(self._key)])
                raise
            self._loop.measure()
            self._loop.retry_while_unavailable(self._delete_all_heartbeats)
            is_over = self._record_finish_at_list_end()
        return self._execution.statistics

    def _record_finish_at_list_end(self) -> bool:
        """Record that this worker is finished, durably; return whether the list is still at its end.

        A database that crashed before it was asked to make that durable has perhaps lost units, and has their items
        again.
        """
        retry_unavailable, progress = self._loop.retry_while_unavailable, self._progress
        retry_unavailable(progress.finish)
        retry_unavailable(self._backend.make_durable)
        page = retry_unavailable(lambda: self._read_start_of_list(1, [progress.key]))
        return progress.update_is_finished(page.guards.get(progress.key)) and not page.records

    def _run_claims(self) -> None:
        """Claim and run items; look for dead workers when there are none, and at times also when there are."""
        clock = self._environment.clock
        looked_s = clock.elapsed_s()
        waits = 0
        while True:
            page = self._loop.retry_while_unavailable(self._read_items_and_claims)
            if not page:
                self._loop.retry_while_unavailable(
                    self._ledger.load
                )  # a list that was dropped is empty, but not at its end
                return
            claim = self._loop.retry_while_unavailable(partial(self._claim_share, page))
            if claim is not None:
                self._loop.run(self._ledger.begin(claim))
                self._loop.drain()
                waits = 0
            else:
                waits += 1
                _IDLE.wait(waits, clock, self._environment.chance)
            if clock.elapsed_s() - looked_s >= self._execution.settings.lease_s / _BEATS:
                looked_s = clock.elapsed_s()
                self._loop.retry_while_unavailable(lambda: self._watch.release_expired_claims(self._key))
                self._loop.measure()
                self._loop.retry_while_unavailable(partial(self._progress.write, is_finished=False))

    def _read_items_and_claims(self) -> Sequence[tuple[bytes, Record]]:
        """Return items that wait, and then claims, if not many wait: nothing if the list is at its end.

        If values are large, it reads few of them, but one for each worker.
        """
        most = max(self._window.records, min(self._workers, _MOST_LARGE))
        page = self._read_start_of_list(min(self._workers * self._loop.group_size, most, _MOST_WINDOW))
        self._window.adapt_to_page(page)
        return page.records

    def _read_start_of_list(self, size: int, guards: Collection[bytes] = ()) -> ScanPage:
        """Read the begin of the list, items before claims: one read, so it sees one moment."""
        return self._database.scan(*self._work.range, size, guards)

    def _claim_share(self, page: Sequence[tuple[bytes, Record]]) -> WorkClaim | None:
        """Claim this worker's share of what waits: items at a random place among the first, so that fewer collide.

        A claim whose commit seemed to fail may have taken effect after all, so this looks for it.
        """
        waiting = [one for one in page if self._work.decode_item(*one) is not None]
        if len(waiting) < len(page):
            own = [decode_claim(key, record) for key, record in page if key == self._key]
            if own:
                return own[0]
        if not waiting:
            return None
        share = -(-len(waiting) // self._workers)
        count = max(1, min(self._loop.group_size, share))
        first = int(self._environment.chance.fraction() * (len(waiting) // count)) * count
        try:
            taken = claim_items(self._database, self._work, self._key, waiting[first : first + count], self._required)
        except OutcomeUnknownError:
            self._execution.statistics.unknown += 1
            taken = None
        if taken is None:
            self._read_job_version()
            record = self._database.get_many([self._key]).get(self._key)
            taken = None if record is None else decode_claim(self._key, record)
        return taken

    def _read_job_version(self) -> None:
        """Read the version of the job's record. Claims validate it: a zombie must not work for the list's next job.

        Raises:
            FencedError: the job is finished, or was forgotten, or its run has ended.
        """
        self._required = {job_key(self._job.name): require_running_job(self._database, self._job, self._run)}

    def _send_heartbeat(self) -> None:
        """Give a sign of life. If it fails, others take over; their commits are validated anyway."""
        reads = {self._work.definition_key: self._work.version}  # after the list is dropped, it would stay
        with suppress(HoldfastError):
            self._backend.commit(Commit(reads=reads, adds={self._work.heartbeat_key(self._key): 1}))

    def _delete_all_heartbeats(self) -> None:
        """Delete all heartbeats: the list is at its end, so there are no claims. Those of the dead would stay forever.

        Whoever lives beats again, and comes here, too.
        """
        for page in iter_pages(self._database, *self._work.heartbeats_range):
            self._delete_heartbeats([key for key, _record in page])

    def _delete_heartbeats(self, keys: Sequence[bytes]) -> None:
        """Delete heartbeats. If the reply is lost, they may stay: without a claim, they have no effect."""
        with suppress(OutcomeUnknownError):
            self._database.commit(Commit(deletes=keys))


class ClaimLedger:
    """The ledger of a worker's units: its claim, from which each commit removes the finished units.

    The commit of the last unit deletes the claim's record.

    Args:
        counter: key of the record that counts the worker's finished units.
    """

    def __init__(self, database: Backend, work: WorkList, key: bytes, counter: bytes) -> None:
        self._database = database
        self._work = work
        self._key = key
        self._counter = counter
        self._claim: WorkClaim
        self._left: dict[bytes, WorkItem]  # by the last `change`

    @property
    def keys(self) -> Collection[bytes]:
        """Return the keys of the record of the claim, and of the definition of the list."""
        return self._key, self._work.definition_key

    def begin(self, claim: WorkClaim) -> list[Unit]:
        """Start with a new claim, and return its units."""
        self._claim = claim
        return [Unit.of(one.key, one.value, one.place) for one in claim.items.values()]

    def change(self, done: Sequence[Unit], deferred: Collection[bytes]) -> Commit:
        """Return a commit that removes finished units from the claim."""
        ended = {unit.id for unit in done}
        left = {place: item for place, item in self._claim.items.items() if place not in ended}
        self._left = left
        return Commit(
            reads={self._key: self._claim.version, self._work.definition_key: self._work.version},
            puts={self._key: encode_claim(left.values())} if left else {},
            deletes=() if left else (self._key,),
            adds={self._counter: len(done)},
        )

    def committed(self, version: int) -> None:
        """Update the claim after the commit that `change` returned last took effect."""
        self._claim = WorkClaim(self._key, version, self._left)

    def load(self) -> None:
        """Read the claim of this worker again, because others may have ended it, as that of a dead worker.

        Raises:
            FencedError: the work list was dropped.
        """
        found = self._database.get_many([self._key, self._work.definition_key])
        definition = found.get(self._work.definition_key)
        if definition is None or definition.version != self._work.version:
            raise FencedError(LIST_DROPPED, list=self._work.name)
        record = found.get(self._key)
        self._claim = WorkClaim(self._key, ABSENT, {}) if record is None else decode_claim(self._key, record)

    def status(self, unit: Unit) -> UnitStatus:
        """Return "to do" for a unit in the claim, else "done"."""
        return UnitStatus.TO_DO if unit.id in self._claim.items else UnitStatus.DONE
