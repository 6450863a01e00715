"""Mistakes that a developer might have made in transactions or in a backend, and the scenes that must find them."""

from __future__ import annotations

from functools import partial

from holdfast.transactions import transaction, validation
from holdfast.transactions.transaction import Transaction
from holdfast.transactions.validation import apply_steps
from holdfast_checker.transactions import row_locks, scripts
from tests.checker.committers.planting import swap
from tests.checker.scene_mutants import SceneMutant
from tests.checker.transactions import mistakes

__all__ = ["MUTANTS"]


_Mutant = partial(SceneMutant, breaks="T1")

MUTANTS = (
    # --- validation ---------------------------------------------------------------------------------------------------
    _Mutant(
        name="validates-nothing",
        slip="The versions of reads are not compared.",
        swap=swap(validation.validate_group, mistakes.validate_nothing),
        scenes=("increments", "write-skew", "read-only-anomaly", "pairs/present:append+append", "increments-in-steps"),
    ),
    _Mutant(
        name="validates-writes-only",
        slip="Only the versions of what is written are compared, as under snapshot isolation.",
        swap=swap(validation.validate_group, mistakes.validate_writes_only),
        scenes=("write-skew", "audit", "skew-through-absence", "write-skew-in-steps", "read-only-anomaly"),
    ),
    _Mutant(
        name="validates-no-adds",
        slip="An add is not validated, even if its record was read.",
        swap=swap(validation.validate_group, mistakes.validate_no_adds),
        scenes=("pairs/present:put+read-add", "pairs/absent:put+read-add", "pairs-in-steps/present:delete+read-add"),
    ),
    _Mutant(
        name="validates-no-deletes",
        slip="A delete is not validated, even if its record was read.",
        swap=swap(validation.validate_group, mistakes.validate_no_deletes),
        scenes=("pairs/present:append+remove", "pairs-in-steps/present:append+remove"),
    ),
    _Mutant(
        name="inserts-are-puts",
        slip="A record that must not exist is written as if it might.",
        swap=swap(validation.steps_of_group, mistakes.put_in_place_of_insert),
        scenes=("pairs/present:read+insert", "pairs/absent:insert+insert", "pairs-in-steps/absent:insert+insert"),
    ),
    _Mutant(
        name="bounds-the-old-number",
        slip="A bound is compared with the number before the add.",
        swap=swap(validation._validate_bounds, mistakes.bound_the_old_number),
        scenes=("counters", "pairs/present:bounded+bounded", "counters-in-steps"),
    ),
    _Mutant(
        name="bounds-in-groups",
        slip="A bound does not see the adds of the commits before it in the group.",
        swap=swap(validation._validate_bounds, mistakes.ignore_bounds_in_groups),
        scenes=("bounded-group", "bounded-group-in-steps"),
    ),
    _Mutant(
        name="version-reuse",
        slip="The versions of a record count up from 1, and begin anew when it is created again (ABA).",
        swap=swap(apply_steps, mistakes.count_versions),
        scenes=("recreated", "recreated-in-steps", "database-crash"),
    ),
    # --- groups -------------------------------------------------------------------------------------------------------
    _Mutant(
        name="group-applied-whole",
        slip="The writes of a commit that conflicts are applied with those of its group.",
        swap=swap(validation.validate_group, mistakes.apply_every_call),
        scenes=("groups", "groups-in-steps"),
    ),
    _Mutant(
        name="last-add-of-group-wins",
        slip="Adds of several commits to one counter do not add up.",
        swap=swap(apply_steps, mistakes.add_once_per_group),
        scenes=("bounded-group", "bounded-group-in-steps"),
    ),
    # --- locks --------------------------------------------------------------------------------------------------------
    _Mutant(
        name="locks-one-member-after-the-other",
        slip="A group locks the records of its first commit, then those of the next one.",
        swap=swap(validation.steps_of_group, mistakes.lock_member_by_member),
        scenes=("crossing-groups-in-steps",),
        breaks="T5",
    ),
    _Mutant(
        name="reads-are-not-locked",
        slip="What is only read is validated without a lock.",
        swap=swap(row_locks.lock_record, mistakes.lock_writes_only),
        scenes=("write-skew-in-steps", "lock-order"),
    ),
    _Mutant(
        name="writes-are-locked-shared",
        slip="What is written is locked in shared mode.",
        swap=swap(row_locks.needs_exclusive, mistakes.lock_shared),
        scenes=("increments-in-steps", "pairs-in-steps/present:append+append"),
    ),
    _Mutant(
        name="reads-before-the-lock",
        slip="The version is the one before the lock was granted, as under REPEATABLE READ.",
        swap=swap(row_locks.lock_record, mistakes.read_before_the_lock),
        scenes=("increments-in-steps", "pairs-in-steps/present:append+append"),
    ),
    _Mutant(
        name="absence-is-not-locked",
        slip="No row is created in place of an absent record, so that nothing locks its absence.",
        swap=swap(row_locks.lock_absent_record, mistakes.leave_absence),
        scenes=("skew-through-absence-in-steps", "pairs-in-steps/absent:append+append"),
    ),
    _Mutant(
        name="absence-is-read-twice",
        slip="The absence of a record is read again in place of a lock.",
        swap=swap(row_locks.lock_absent_record, mistakes.ask_if_missing),
        scenes=("skew-through-absence-in-steps",),
    ),
    _Mutant(
        name="counts-first",
        slip="Ranges are counted before their guards are locked.",
        swap=swap(row_locks.lock_and_count, mistakes.count_first),
        scenes=("two-ranges-in-steps", "empty-directory-in-steps"),
    ),
    _Mutant(
        name="no-lock-order",
        slip="What is written is locked first, then what is read.",
        swap=swap(validation.steps_of_group, mistakes.lock_in_order_of_call),
        scenes=("lock-order", "write-skew-in-steps"),
        breaks="T5",
    ),
    # --- what callers use ---------------------------------------------------------------------------------------------
    _Mutant(
        name="no-look-at-the-guard",
        slip="A transaction inserts into a range and does not read its guard.",
        swap=swap(scripts.read_guard_record, mistakes.look_at_nothing),
        scenes=("two-ranges-in-steps",),
    ),
    _Mutant(
        name="scans-are-not-counted",
        slip="A scan is protected by the versions of the records that it has shown, and by nothing else.",
        swap=swap(Transaction.to_commit, mistakes.scan_without_count),
        scenes=("phantom", "empty-directory", "two-ranges", "phantom-in-steps"),
    ),
    _Mutant(
        name="mixed-states-are-real",
        slip="What several calls have read is taken for one state, if the transaction writes nothing or fails.",
        swap=swap(transaction._validate_reads, mistakes.confirm_everything),
        scenes=("mixed-state", "audit", "read-only-anomaly"),
    ),
    _Mutant(
        name="blind-repeat",
        slip="A commit whose reply was lost is repeated.",
        swap=swap(transaction._commit_or_validate_reads, mistakes.commit_again),
        scenes=("unmarked", "unmarked-in-steps"),
        breaks="T3",
    ),
    _Mutant(
        name="own-adds-are-hidden",
        slip="A transaction does not see what it has added itself.",
        swap=swap(Transaction._apply_own_write, mistakes.forget_adds),
        scenes=("own-writes",),
    ),
    _Mutant(
        name="own-inserts-are-not-scanned",
        slip="A scan does not show the records that the transaction has created itself.",
        swap=swap(Transaction._list_records_with_writes, mistakes.forget_own_inserts),
        scenes=("own-writes",),
    ),
)
