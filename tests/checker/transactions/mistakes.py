"""Mistakes in transactions: functions that run in place of shipped ones.

Each takes the shipped function first (see `planting`). `mutants` says what a developer might have been thinking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from holdfast.errors import OutcomeUnknownError
from holdfast.transactions.base import ABSENT, Backend, Commit, Committed, Outcome, Record
from holdfast.transactions.transaction import Transaction
from holdfast.transactions.validation import ANY, Step, StepKind, ValidationResult
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.database import DATABASE
from holdfast_checker.transactions.row_locks import count_records_in_ranges, lock_records

__all__ = [
    "add_once_per_group",
    "apply_every_call",
    "ask_if_missing",
    "bound_the_old_number",
    "commit_again",
    "confirm_everything",
    "count_first",
    "count_versions",
    "forget_adds",
    "forget_own_inserts",
    "ignore_bounds_in_groups",
    "leave_absence",
    "lock_in_order_of_call",
    "lock_member_by_member",
    "lock_shared",
    "lock_writes_only",
    "look_at_nothing",
    "put_in_place_of_insert",
    "read_before_the_lock",
    "scan_without_count",
    "validate_no_adds",
    "validate_no_deletes",
    "validate_nothing",
    "validate_writes_only",
]

_Judge = Callable[..., ValidationResult]
_StepsOf = Callable[..., list[Step]]


# --- validation -------------------------------------------------------------------------------------------------------
def _validating_other_steps(change: Callable[[Step], Step]) -> Callable[..., ValidationResult]:
    """In place of `validate_group`: validate other steps, and apply those that were asked for."""

    def validate_group(
        shipped: _Judge,
        commits: Sequence[Commit],
        steps: Sequence[Step],
        seen: Mapping[bytes, Record],
        counts: Mapping[tuple[int, int], int],
        base: int,
    ) -> ValidationResult:
        result = shipped(commits, [change(step) for step in steps], seen, counts, base)
        valid = {call for call, outcome in enumerate(result.outcomes) if isinstance(outcome, Committed)}
        return ValidationResult(result.outcomes, [step for step in steps if step.call in valid])

    return validate_group


def _unless(kept: Callable[[Step], bool]) -> Callable[[Step], Step]:
    return lambda step: step if kept(step) else step._replace(expected=ANY)


validate_nothing = _validating_other_steps(_unless(lambda step: step.kind is StepKind.INSERT))
validate_writes_only = _validating_other_steps(_unless(lambda step: step.kind is not StepKind.READ))
validate_no_adds = _validating_other_steps(_unless(lambda step: step.kind is not StepKind.ADD))
validate_no_deletes = _validating_other_steps(_unless(lambda step: step.kind is not StepKind.DELETE))


def put_in_place_of_insert(shipped: _StepsOf, commits: Sequence[Commit]) -> list[Step]:
    """In place of `steps_of_group`: write records that must not exist as if they might."""
    return [
        step._replace(kind=StepKind.PUT, expected=ANY) if step.kind is StepKind.INSERT else step
        for step in shipped(commits)
    ]


def bound_the_old_number(
    shipped: Callable[..., None],
    commits: Sequence[Commit],
    steps: Sequence[Step],
    seen: Mapping[bytes, Record],
    conflicts: dict[int, list[bytes]],
) -> None:
    """In place of `_validate_bounds`: compare the number before the commit's own add."""
    relaxed = [
        replace(commit, bounds=[replace(one, most=one.most + commit.adds[one.key]) for one in commit.bounds])
        for commit in commits
    ]
    shipped(relaxed, steps, seen, conflicts)


def ignore_bounds_in_groups(
    shipped: Callable[..., None],
    commits: Sequence[Commit],
    steps: Sequence[Step],
    seen: Mapping[bytes, Record],
    conflicts: dict[int, list[bytes]],
) -> None:
    """In place of `_validate_bounds`: validate each commit as if it came alone."""
    for call, commit in enumerate(commits):
        own = [step._replace(call=0) for step in steps if step.call == call]
        found: dict[int, list[bytes]] = {}
        shipped([commit], own, seen, found)
        if found:
            conflicts.setdefault(call, []).extend(found[0])


# --- applying ---------------------------------------------------------------------------------------------------------
def apply_every_call(
    shipped: _Judge,
    commits: Sequence[Commit],
    steps: Sequence[Step],
    seen: Mapping[bytes, Record],
    counts: Mapping[tuple[int, int], int],
    base: int,
) -> ValidationResult:
    """In place of `validate_group`: apply the whole group if one of its commits is valid."""
    result = shipped(commits, steps, seen, counts, base)
    return replace(result, valid=list(steps) if result.valid else [])


_Changes = dict[bytes, Record | None]


def add_once_per_group(
    shipped: Callable[..., _Changes], records: Mapping[bytes, Record], steps: Sequence[Step], base: int
) -> _Changes:
    """In place of `apply_steps`: let the last add to a counter in a group win."""
    changes: _Changes = {}
    for step in steps:
        changes.update(shipped(records, [step], base))
    return changes


def count_versions(
    shipped: Callable[..., _Changes], records: Mapping[bytes, Record], steps: Sequence[Step], base: int
) -> _Changes:
    """In place of `apply_steps`: number the versions of each record, and begin anew after a delete."""
    return {
        key: None if record is None else replace(record, version=records[key].version + 1 if key in records else 1)
        for key, record in shipped(records, steps, base).items()
    }


# --- locks ------------------------------------------------------------------------------------------------------------
def _read(port: Port, key: bytes) -> Record | None:
    found = cast("tuple[tuple[bytes, Record], ...]", port.call(Call(DATABASE, "get_many", ((key,),))))
    return dict(found).get(key)


def lock_writes_only(shipped: Callable[..., Record | None], port: Port, step: Step) -> Record | None:
    """In place of `lock_record`: validate what is only read without a lock."""
    return _read(port, step.key) if step.kind is StepKind.READ else shipped(port, step)


def lock_shared(shipped: Callable[..., bool], step: Step) -> bool:
    """In place of `needs_exclusive`: take shared locks, as the validation only reads."""
    return False


def read_before_the_lock(shipped: Callable[..., Record | None], port: Port, step: Step) -> Record | None:
    """In place of `lock_record`: compare a record as it was before the lock, as under REPEATABLE READ."""
    record = _read(port, step.key)
    locked = shipped(port, step)
    return locked if step.kind is StepKind.INSERT else record


def leave_absence(shipped: Callable[..., bool], port: Port, key: bytes) -> bool:
    """In place of `lock_absent_record`: lock nothing, because there is nothing to lock."""
    return True


def ask_if_missing(shipped: Callable[..., bool], port: Port, key: bytes) -> bool:
    """In place of `lock_absent_record`: look again whether the record is missing."""
    return _read(port, key) is None


def lock_in_order_of_call(shipped: _StepsOf, commits: Sequence[Commit]) -> list[Step]:
    """In place of `steps_of_group`: lock what is written first, then what is read, each in the order of the keys."""
    return sorted(shipped(commits), key=lambda step: step.kind is StepKind.READ)


def lock_member_by_member(shipped: _StepsOf, commits: Sequence[Commit]) -> list[Step]:
    """In place of `steps_of_group`: lock for each commit of a group by itself, in the order of the group."""
    return sorted(shipped(commits), key=lambda step: step.call)


_Locked = tuple[dict[bytes, Record], Mapping[tuple[int, int], int]]


def count_first(
    shipped: Callable[..., _Locked], port: Port, commits: Sequence[Commit], steps: Sequence[Step]
) -> _Locked:
    """In place of `lock_and_count`: count the ranges before their guards are locked."""
    counts = count_records_in_ranges(port, commits)
    return lock_records(port, steps), counts


# --- what callers use -------------------------------------------------------------------------------------------------
def look_at_nothing(shipped: Callable[..., None], transaction: Transaction, guard: bytes) -> None:
    """In place of `read_guard_record`: create records in a range without a look at its guard."""


def scan_without_count(shipped: Callable[..., Commit], self: Transaction) -> Commit:
    """In place of `Transaction.to_commit`: validate the records that a scan has shown, and nothing else."""
    return replace(shipped(self), ranges=())


def confirm_everything(shipped: Callable[..., Outcome], backend: Backend, transaction: Transaction) -> Outcome:
    """In place of `_validate`: take what several calls have read for one state."""
    return Committed(ABSENT)


def commit_again(shipped: Callable[..., Outcome], backend: Backend, transaction: Transaction) -> Outcome:
    """In place of `_end`: repeat a commit whose reply was lost."""
    try:
        return shipped(backend, transaction)
    except OutcomeUnknownError:
        return backend.commit(transaction.to_commit())


def forget_adds(shipped: Callable[..., Record | None], self: Transaction, key: bytes) -> Record | None:
    """In place of `Transaction._view`: show a record without what the transaction has added to it."""
    return self._seen.get(key) if isinstance(self._writes.get(key), int) else shipped(self, key)


def forget_own_inserts(
    shipped: Callable[..., list[tuple[bytes, Record]]], self: Transaction, start: bytes, end: bytes
) -> list[tuple[bytes, Record]]:
    """In place of `Transaction._visible`: let a scan show only what exists in the store."""
    return [(key, record) for key, record in shipped(self, start, end) if self._seen.get(key) is not None]
