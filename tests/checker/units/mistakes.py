"""Mistakes in the running of units: functions that run in place of shipped ones.

Each takes the shipped function first (see `planting`). `mutants` says what a developer might have been thinking.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from holdfast.errors import OutcomeUnknownError
from holdfast.records.cell_transaction import CellTransaction
from holdfast.records.row_keys import Row
from holdfast.records.values import Value
from holdfast.transactions.base import ABSENT, Commit, Committed, Outcome, Record, TransactionStore
from holdfast.units.claim_ledger import ClaimLedger
from holdfast.units.claims import Claim
from holdfast.units.execution import Attempt, Change, UnitExecution
from holdfast.units.locked_reads import LockedReads
from holdfast.units.metered_store import MeteredStore
from holdfast.units.progress import TaskProgress
from holdfast.units.shard_task import ShardTask
from holdfast.units.task_ledger import TaskLedger
from holdfast.units.unit import Unit
from holdfast.units.unit_loop import UnitLoop
from holdfast.units.unit_transaction import UnitTransaction
from holdfast.units.work_list import WorkList
from holdfast.units.work_task import WorkTask

__all__ = [
    "adds_read_nothing",
    "claim_without_items",
    "count_only",
    "emit_at_once",
    "forget_a_unit",
    "forget_tables",
    "keep_no_version",
    "last_of_group_again",
    "leave_items_waiting",
    "lock_shared",
    "look_twice",
    "look_for_items_only",
    "no_fence",
    "no_flush",
    "progress_afterwards",
    "repeat_if_unknown",
    "succeed_if_unknown",
    "trust_absence",
    "trust_reads",
]

_Attempt = Callable[..., Attempt]


# --- progress ---------------------------------------------------------------------------------------------------------
def count_only(
    shipped: Callable[..., TaskProgress], self: TaskLedger, done: Sequence[Unit], put_off: Collection[bytes]
) -> TaskProgress:
    """In place of `TaskLedger._after`: record the last unit, as in paper 003 (4.5.1), and not those put off."""
    return replace(shipped(self, done, put_off), deferred=())


def progress_afterwards(
    shipped: _Attempt,
    self: UnitExecution,
    units: Sequence[Unit],
    change: Callable[[int], Change],
    *,
    locked: bool = False,
) -> Attempt:
    """In place of `UnitExecution.attempt`: commit the units, then record the progress."""
    recorded: list[Change] = []

    def without(done: int) -> Change:
        recorded.append(change(done))
        return Change(reads=recorded[-1].reads)

    attempt = shipped(self, units, without, locked=locked)
    if attempt.done:
        outcome = self.store.commit(Commit(puts=recorded[-1].puts, deletes=recorded[-1].deletes))
        assert isinstance(outcome, Committed), "it validates nothing"
        return replace(attempt, version=outcome.version)
    return attempt


def no_fence(shipped: Callable[..., Change], self: TaskLedger, done: Sequence[Unit], put_off: Collection[bytes]) -> Change:
    """In place of `TaskLedger.change`: do not look whether another attempt has recorded progress."""
    return replace(shipped(self, done, put_off), reads={})


def no_flush(shipped: Callable[..., None], self: ShardTask) -> None:
    """In place of `ShardTask._finish`: take it for durable that a task is finished."""
    while not self._loop.patiently(self._ledger.finish):
        pass


# --- unknown outcomes -------------------------------------------------------------------------------------------------
def repeat_if_unknown(shipped: Callable[..., bool], self: UnitLoop, attempt: Attempt) -> bool:
    """In place of `UnitLoop._is_behind`: take an unknown outcome for a failure, and only learn the new version."""
    if attempt.unknown and isinstance(self._ledger, TaskLedger):
        record = self._execution.store.get_many([self._ledger._key])[self._ledger._key]
        self._ledger._version = record.version
        return False
    return shipped(self, attempt)


def succeed_if_unknown(
    shipped: _Attempt, self: UnitLoop, units: Sequence[Unit], *, locked: bool = False
) -> Attempt:
    """In place of `UnitLoop._attempt`: take an unknown outcome for a success."""
    attempt = shipped(self, units, locked=locked)
    if not attempt.unknown or not isinstance(self._ledger, TaskLedger):
        return attempt
    record = self._execution.store.get_many([self._ledger._key])[self._ledger._key]
    self._ledger.committed(record.version)
    return Attempt(done=len(units), version=record.version)


# --- conflicts --------------------------------------------------------------------------------------------------------
def forget_a_unit(shipped: Callable[..., None], self: UnitLoop, unit: Unit) -> None:
    """In place of `UnitLoop.put_off`: forget the unit."""


def last_of_group_again(shipped: Callable[..., None], self: UnitLoop, units: Sequence[Unit]) -> None:
    """In place of `UnitLoop.run`: after the conflict of a group, run its last unit again, and take up the others."""
    attempt = self._attempt(units) if units else Attempt()
    if len(units) > 1 and attempt.conflict:
        for unit in units[:-1]:
            self._ledger.take_up(unit)
        shipped(self, units[-1:])
    else:
        shipped(self, units[attempt.done :])


def trust_reads(shipped: Callable[..., Outcome], self: MeteredStore, commit: Commit) -> Outcome:
    """In place of `MeteredStore.commit`: a commit that writes nothing needs no validation."""
    if commit.puts or commit.adds or commit.deletes:
        return shipped(self, commit)
    return Committed(ABSENT)


# --- cells ------------------------------------------------------------------------------------------------------------
def adds_read_nothing(shipped: Callable[..., Commit], self: CellTransaction) -> Commit:
    """In place of `CellTransaction.to_commit`: do not validate what is added to, as if it had not been read."""
    commit = shipped(self)
    return replace(commit, reads={key: version for key, version in commit.reads.items() if key not in commit.adds})


def forget_tables(shipped: Callable[..., dict[bytes, int]], self: CellTransaction) -> dict[bytes, int]:
    """In place of `CellTransaction._guards`: do not look whether the tables are still the same."""
    return {}


def trust_absence(shipped: Callable[..., Commit], self: LockedReads) -> Commit:
    """In place of `LockedReads.to_validation`: what was locked needs no validation."""
    return Commit()


def lock_shared(
    shipped: Callable[..., None], self: LockedReads, locked: object, *, exclusive: bool
) -> None:
    """In place of `LockedReads.__init__`."""
    raise NotImplementedError


# --- work lists -------------------------------------------------------------------------------------------------------
def emit_at_once(
    shipped: Callable[..., None], self: UnitTransaction, key: Row, value: Value | None, priority: int
) -> None:
    """In place of `UnitTransaction._add_work`: write to the list at once, in a transaction of its own."""
    assert self._emit_to is not None, "the world has a work list"
    store = self._cells._tables._store  # type: ignore[attr-defined] # the cache of tables is the only way to the store from here
    store.commit(Commit(puts=dict([self._emit_to.new_item(key, value, priority)])))


def keep_no_version(
    shipped: Callable[..., Change], self: ClaimLedger, done: Sequence[Unit], put_off: Collection[bytes]
) -> Change:
    """In place of `ClaimLedger.change`: do not look whether others have dissolved the claim."""
    return replace(shipped(self, done, put_off), reads={})


def leave_items_waiting(
    shipped: Callable[..., Claim | None],
    store: TransactionStore,
    work: WorkList,
    claim_key: bytes,
    waiting: Sequence[tuple[bytes, Record]],
) -> Claim | None:
    """In place of `take_items`: do not look whether others have claimed the items."""

    class Hasty:
        def commit(self, commit: Commit) -> Outcome:
            return store.commit(replace(commit, reads={}))

    return shipped(Hasty(), work, claim_key, waiting)


def look_twice(shipped: Callable[..., Sequence[tuple[bytes, Record]]], self: WorkTask) -> Sequence[tuple[bytes, Record]]:
    """In place of `WorkTask._look`: look for claims first, and then for items that wait."""
    claims = self._store.scan(*self._work.claims, 100).records
    return [*self._store.scan(*self._work.waiting, 100).records, *claims]


def look_for_items_only(
    shipped: Callable[..., Sequence[tuple[bytes, Record]]], self: WorkTask
) -> Sequence[tuple[bytes, Record]]:
    """In place of `WorkTask._look`: take the list for ended when nothing waits."""
    return self._store.scan(*self._work.waiting, 100).records


def claim_without_items(
    shipped: Callable[..., bool], store: TransactionStore, work: WorkList, claim: Claim
) -> bool:
    """In place of `dissolve`: let the items wait again, and leave the claim of the dead as it is."""
    puts = {work.item_key(item.place): item.encoded for item in claim.items.values()}
    with suppress(OutcomeUnknownError):
        store.commit(Commit(puts=puts))
    return True
