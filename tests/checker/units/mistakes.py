"""Mistakes in the running of units: functions that run in place of shipped ones.

Each takes the shipped function first (see `planting`). `mutants` says what a developer might have been thinking.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar, cast

from holdfast.errors import InvalidRequestError, OutcomeUnknownError
from holdfast.records.cell_transaction import CellTransaction
from holdfast.records.cells import PutWrite
from holdfast.runtime import Environment
from holdfast.transactions.base import (
    ABSENT,
    Backend,
    Commit,
    Committed,
    Outcome,
    Record,
    ScanPage,
)
from holdfast.transactions.transaction import Transaction, run_transaction
from holdfast.units.execution import GroupResult, LockedReads, UnitExecution
from holdfast.units.job_input import JobInput
from holdfast.units.jobs import Job, job_key
from holdfast.units.progress import Statistics, TaskProgress
from holdfast.units.shard_task import ShardTask, TaskLedger
from holdfast.units.unit import Unit
from holdfast.units.unit_loop import UnitLoop
from holdfast.units.work_list import WorkClaim, WorkList
from holdfast.units.work_task import ClaimLedger, WorkTask

__all__ = [
    "add_unread",
    "begin_after_the_end",
    "begin_with_any_input",
    "claim_anything",
    "collect_without_mark",
    "count_only",
    "drain_unnoticed",
    "emit_at_once",
    "flush_jobs_unseen",
    "forget_a_unit",
    "forget_tables",
    "forget_what_others_put_off",
    "keep_a_lost_claim",
    "let_go_on",
    "look_for_items_only",
    "look_twice",
    "no_fence",
    "no_flush",
    "no_flush_of_jobs",
    "no_flush_of_workers",
    "no_second_look",
    "progress_afterwards",
    "repeat_if_unknown",
    "run_the_last_again",
    "run_what_waited",
    "succeed_if_unknown",
    "take_over_a_claim",
    "trust_absence",
    "trust_reads",
    "trust_what_was_read_ahead",
]

T = TypeVar("T")

_Attempt = Callable[..., GroupResult]


# --- progress ---------------------------------------------------------------------------------------------------------
def count_only(
    shipped: Callable[..., TaskProgress], self: TaskLedger, done: Sequence[Unit], deferred: Collection[bytes]
) -> TaskProgress:
    """In place of `TaskLedger._after`: record the last unit, as in paper 003 (4.5.1), and not those deferred."""
    return replace(shipped(self, done, deferred), deferred=())


def forget_what_others_put_off(
    shipped: Callable[..., TaskProgress], self: TaskLedger, done: Sequence[Unit], deferred: Collection[bytes]
) -> TaskProgress:
    """In place of `TaskLedger._after`: record the units that this attempt has deferred, whatever the record had."""
    own = set(deferred).difference(unit.id for unit in done)
    return replace(shipped(self, done, deferred), deferred=sorted(own))


def progress_afterwards(
    shipped: _Attempt,
    self: UnitExecution,
    units: Sequence[Unit],
    change: Callable[[int], Commit],
    *,
    locked: bool = False,
    following: Sequence[Unit] = (),
) -> GroupResult:
    """In place of `UnitExecution.run_group`: commit the units, then record the progress."""
    recorded: list[Commit] = []

    def without_puts(done: int) -> Commit:
        recorded.append(change(done))
        return Commit(reads=recorded[-1].reads)

    attempt = shipped(self, units, without_puts, locked=locked, following=following)
    if not attempt.done:
        return attempt
    outcome = self.database.commit(Commit(puts=recorded[-1].puts))
    assert isinstance(outcome, Committed), "it validates nothing"
    return replace(attempt, version=outcome.version)


def no_fence(
    shipped: Callable[..., Commit], self: TaskLedger, done: Sequence[Unit], deferred: Collection[bytes]
) -> Commit:
    """In place of `TaskLedger.change`: do not look whether another attempt has recorded progress."""
    return replace(shipped(self, done, deferred), reads={})


def begin_after_the_end(shipped: Callable[..., None], self: TaskLedger) -> None:
    """In place of `TaskLedger.load`: if there is no record of the progress, write a new one."""
    if self.key not in self._database.get_many([self.key]):
        self._database.commit(Commit(inserts={self.key: TaskProgress(statistics=Statistics()).to_bytes()}))
    shipped(self)


def let_go_on(shipped: Callable[..., None], job: Job, run: str) -> None:
    """In place of `require_running_run`: let attempts of an ended run go on."""


def begin_with_any_input(
    shipped: Callable[..., Job],
    database: Backend,
    name: str,
    *,
    kind: str,
    environment: Environment,
    shards: int | None = None,
    default: int = 1,
    keys: str = "",
    batch: str = "",
    job_input: JobInput | None = None,
) -> Job:
    """In place of `begin_job`: take any job that has the name."""
    given = {"kind": kind, "shards": shards, "default": default, "keys": keys, "batch": batch, "job_input": job_input}
    try:
        return shipped(database, name, environment=environment, **given)
    except InvalidRequestError:
        key = job_key(name)
        return Job.of(key, database.get_many([key])[key])


def no_flush(shipped: Callable[..., None], self: ShardTask) -> None:
    """In place of `ShardTask._finish`: take it for durable that a task is finished."""
    self._loop.retry_while_unavailable(self._ledger.finish)


def no_second_look(shipped: Callable[..., bool], self: WorkTask) -> bool:
    """In place of `WorkTask._record_finish_at_list_end`: a list that was at its end before it was durable has ended."""
    self._loop.retry_while_unavailable(self._progress.finish)
    self._loop.retry_while_unavailable(self._database.make_durable)
    return True


def no_flush_of_workers(shipped: Callable[..., bool], self: WorkTask) -> bool:
    """In place of `WorkTask._record_finish_at_list_end`: look again, and take it for durable."""
    self._loop.retry_while_unavailable(self._progress.finish)
    return not self._loop.retry_while_unavailable(self._read_items_and_claims)


def no_flush_of_jobs(
    shipped: Callable[..., T],
    database: Backend,
    function: Callable[[Transaction], T],
    environment: Environment,
    name: str,
    is_there: Callable[[T, Job | None], bool],
) -> T:
    """In place of `jobs._transact_durably`: take it for durable that a job has begun, is finished or forgotten."""
    return run_transaction(database, function, environment)


def flush_jobs_unseen(
    shipped: Callable[..., T],
    database: Backend,
    function: Callable[[Transaction], T],
    environment: Environment,
    name: str,
    is_there: Callable[[T, Job | None], bool],
) -> T:
    """In place of `jobs._transact_durably`: do not look whether it was there when it was made durable."""
    result = run_transaction(database, function, environment)
    database.make_durable()
    return result


# --- unknown outcomes -------------------------------------------------------------------------------------------------
def repeat_if_unknown(shipped: Callable[..., bool], self: UnitLoop, attempt: GroupResult) -> bool:
    """In place of `UnitLoop._is_ledger_behind`: take unknown outcomes for failures; look only for the new version."""
    if attempt.unknown and isinstance(self._ledger, TaskLedger):
        self._ledger._version = _version_of(self)
        return False
    return shipped(self, attempt)


def succeed_if_unknown(
    shipped: _Attempt, self: UnitLoop, units: Sequence[Unit], *, locked: bool = False, following: Sequence[Unit] = ()
) -> GroupResult:
    """In place of `UnitLoop._attempt_units`: take an unknown outcome for a success."""
    attempt = shipped(self, units, locked=locked, following=following)
    if not attempt.unknown:
        return attempt
    version = _version_of(self)
    self._ledger.committed(version)
    for unit in units:
        self.deferred.pop(unit.id, None)
    return GroupResult(done=len(units), version=version)


def _version_of(loop: UnitLoop) -> int:
    [key] = loop._ledger.keys
    return loop._execution.database.get_many([key])[key].version


# --- reading ahead ----------------------------------------------------------------------------------------------------
def trust_what_was_read_ahead(shipped: Callable[..., dict[bytes, int]], self: Transaction) -> dict[bytes, int]:
    """In place of `Transaction._versions`: validate only what the transaction itself has read from the database."""
    return {key: version for key, version in shipped(self).items() if key not in self._ahead}


def run_what_waited(shipped: Callable[..., None], self: ShardTask, units: Iterable[Unit]) -> None:
    """In place of `ShardTask._run_units`: run a group that waited, whatever another attempt has done meanwhile."""
    loop = self._loop

    class Hasty:
        def __getattr__(self, name: str) -> object:
            return getattr(loop, name)

        def filter_remaining(self, units: Iterable[Unit]) -> list[Unit]:
            return list(units)

    self._loop = cast("UnitLoop", Hasty())
    shipped(self, units)
    self._loop = loop


# --- conflicts --------------------------------------------------------------------------------------------------------
def forget_a_unit(shipped: Callable[..., None], self: UnitLoop, unit: Unit) -> None:
    """In place of `UnitLoop.defer_unit`: forget the unit."""


def drain_unnoticed(shipped: Callable[..., None], self: UnitLoop) -> None:
    """In place of `UnitLoop.drain`: whoever runs a group meanwhile does not hear that the ledger was read again."""
    shipped(self)
    filter_remaining = self.filter_remaining

    def unsorted(units: Iterable[Unit]) -> list[Unit]:
        self.filter_remaining = filter_remaining  # type: ignore[method-assign]  # only the first look is left out
        return list(units)

    self.filter_remaining = unsorted  # type: ignore[method-assign]  # see above


def run_the_last_again(
    shipped: Callable[..., None], self: UnitLoop, units: Sequence[Unit], following: Sequence[Unit] = ()
) -> None:
    """In place of `UnitLoop.run`: after the conflict of a group, run only its last unit again."""
    attempt = self._attempt_units(units) if units else GroupResult()
    if len(units) > 1 and attempt.conflict:
        shipped(self, units[-1:], following)
    else:
        shipped(self, units[attempt.done :], following)


def trust_reads(
    shipped: Callable[..., Outcome], self: UnitExecution, commit: Commit, following: Sequence[Unit]
) -> Outcome:
    """In place of `UnitExecution._commit_and_read_ahead`: validate nothing if nothing is written."""
    if commit.puts or commit.adds or commit.deletes:
        return shipped(self, commit, following)
    return Committed(ABSENT)


# --- cells ------------------------------------------------------------------------------------------------------------
def add_unread(shipped: Callable[..., Commit], self: CellTransaction) -> Commit:
    """In place of `CellTransaction.to_commit`: do not validate what is added to, even if it was read."""
    commit = shipped(self)
    return replace(commit, reads={key: version for key, version in commit.reads.items() if key not in commit.adds})


def forget_tables(shipped: Callable[..., dict[bytes, int]], self: CellTransaction) -> dict[bytes, int]:
    """In place of `CellTransaction._guards`: do not look whether the tables still exist."""
    return {}


def collect_without_mark(shipped: Callable[..., int], database: Backend, mark: bytes, version: int) -> int:
    """In place of `batches._delete_dropped_table`: delete the cells of a table without a look at its mark."""

    class Hasty:
        def __getattr__(self, name: str) -> object:
            return getattr(database, name)

        def commit(self, commit: Commit) -> Outcome:
            return database.commit(replace(commit, reads={}))

    return shipped(Hasty(), mark, version)


def trust_absence(shipped: Callable[..., Commit], self: LockedReads) -> Commit:
    """In place of `LockedReads.to_validation`: validate nothing that was read under locks."""
    return Commit()


# --- work lists -------------------------------------------------------------------------------------------------------
def emit_at_once(
    shipped: Callable[..., Exception | None], self: UnitExecution, cells: CellTransaction, unit: Unit
) -> Exception | None:
    """In place of `UnitExecution._call`: add to the work list in a transaction of its own."""
    failure = shipped(self, cells, unit)
    items = {
        key: write.value for key, write in cells._own.items() if key.startswith(b"Sw") and isinstance(write, PutWrite)
    }
    if items:
        self.database.commit(Commit(puts=items))
    for key in items:
        del cells._own[key]
    return failure


def keep_a_lost_claim(
    shipped: Callable[..., Commit], self: ClaimLedger, done: Sequence[Unit], deferred: Collection[bytes]
) -> Commit:
    """In place of `ClaimLedger.change`: do not look whether others have dissolved the claim."""
    return replace(shipped(self, done, deferred), reads={})


def claim_anything(
    shipped: Callable[..., WorkClaim | None],
    database: Backend,
    work: WorkList,
    claim_key: bytes,
    waiting: Sequence[tuple[bytes, Record]],
    required: Mapping[bytes, int],
) -> WorkClaim | None:
    """In place of `claim_items`: do not look whether others have claimed the items."""

    class Hasty:
        def commit(self, commit: Commit) -> Outcome:
            return database.commit(replace(commit, reads={}))

    return shipped(Hasty(), work, claim_key, waiting, required)


def take_over_a_claim(shipped: Callable[..., bool], database: Backend, work: WorkList, claim: WorkClaim) -> bool:
    """In place of `release_claim`: let the items wait again, and leave the version of the claim as it is."""
    with suppress(OutcomeUnknownError):
        database.commit(Commit(puts={work.item_key(item.place): item.encoded for item in claim.items.values()}))
    return True


def look_twice(shipped: Callable[..., ScanPage], self: WorkTask, size: int, guards: Collection[bytes] = ()) -> ScanPage:
    """In place of `WorkTask._page`: look for claims, and then for items that wait."""
    claims = self._database.scan(*self._work.claims_range, 100).records
    waiting = self._database.scan(*self._work.waiting, 100).records
    page = shipped(self, size, guards)
    return page if claims or waiting else replace(page, records=())


def look_for_items_only(
    shipped: Callable[..., ScanPage], self: WorkTask, size: int, guards: Collection[bytes] = ()
) -> ScanPage:
    """In place of `WorkTask._page`: take the list for ended when nothing waits."""
    page = shipped(self, size, guards)
    return page if self._database.scan(*self._work.waiting, 100).records else replace(page, records=())
