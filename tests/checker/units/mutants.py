"""Mistakes that a developer might have made in the running of units, and the scenes that must find them."""

from __future__ import annotations

from functools import partial

from holdfast.records import batches
from holdfast.records.cell_transaction import CellTransaction
from holdfast.transactions.transaction import Transaction
from holdfast.units import jobs, work_list
from holdfast.units.execution import LockedReads, UnitExecution
from holdfast.units.shard_task import ShardTask, TaskLedger
from holdfast.units.unit_loop import UnitLoop
from holdfast.units.work_task import ClaimLedger, WorkTask
from tests.checker.committers.planting import swap
from tests.checker.scene_mutants import SceneMutant
from tests.checker.units import mistakes

__all__ = ["MUTANTS"]

_Mutant = partial(SceneMutant, breaks="U1")

MUTANTS = (
    # --- progress -----------------------------------------------------------------------------------------------------
    _Mutant(
        name="plain-counter",
        slip="The progress is the last unit, as in paper 003, although others before it were deferred.",
        swap=swap(TaskLedger._progress_after, mistakes.count_only),
        scenes=("second-attempt",),
        breaks="U3",
    ),
    _Mutant(
        name="plain-counter-lies",
        slip="The progress is the last unit, as in paper 003: at every moment it says too much.",
        swap=swap(TaskLedger._progress_after, mistakes.count_only),
        scenes=("groups", "second-attempt"),
        breaks="U4",
    ),
    _Mutant(
        name="progress-afterwards",
        slip="The progress is recorded by a transaction of its own, after that of the units.",
        swap=swap(UnitExecution.run_group, mistakes.progress_afterwards),
        scenes=("second-attempt", "twin-dies"),
    ),
    _Mutant(
        name="no-fence",
        slip="A commit does not validate the version of the progress.",
        swap=swap(TaskLedger.change, mistakes.no_fence),
        scenes=("twins", "three-attempts", "zombie"),
    ),
    _Mutant(
        name="end-is-a-beginning",
        slip="An attempt whose job has ended begins with a new record of its progress.",
        swap=swap(TaskLedger.load, mistakes.begin_after_the_end),
        scenes=("zombie",),
    ),
    _Mutant(
        name="ended-run-goes-on",
        slip="An attempt does not look whether its run has ended.",
        swap=swap(jobs.require_running_run, mistakes.let_go_on),
        scenes=("ended-run",),
        breaks="U7",
    ),
    _Mutant(
        name="ended-run-not-fenced",
        slip="The end of a run does not stop a commit that was on its way.",
        swap=swap(TaskLedger.change, mistakes.no_fence),
        scenes=("ended-run",),
        breaks="U7",
    ),
    _Mutant(
        name="input-not-compared",
        slip="A driver goes on with a job that has the input of another one.",
        swap=swap(jobs.begin_job, mistakes.begin_with_any_input),
        scenes=("changed-input",),
        breaks="U3",
    ),
    _Mutant(
        name="no-flush",
        slip="A task reports success before its commits are durable.",
        swap=swap(ShardTask._finish_task, mistakes.no_flush),
        scenes=("database-crash",),
        breaks="U3",
    ),
    _Mutant(
        name="no-flush-of-jobs",
        slip="A driver takes the begin and the end of a job for durable.",
        swap=swap(jobs._transact_durably, mistakes.no_flush_of_jobs),
        scenes=("database-crash-under-a-driver",),
        breaks="U3",
    ),
    _Mutant(
        name="jobs-are-flushed-unseen",
        slip="A driver makes the begin and the end of a job durable, and a crash before that has undone them.",
        swap=swap(jobs._transact_durably, mistakes.flush_jobs_unseen),
        scenes=("database-crash-under-a-driver",),
        breaks="U3",
    ),
    _Mutant(
        name="no-flush-of-workers",
        slip="A worker reports success before the commits of its units are durable.",
        swap=swap(WorkTask._record_finish_at_list_end, mistakes.no_flush_of_workers),
        scenes=("database-crash-under-a-worker", "database-crash-under-workers"),
        breaks="W2",
    ),
    _Mutant(
        name="no-second-look",
        slip="A worker takes the list for ended, although a crash may have brought items back before that was durable.",
        swap=swap(WorkTask._record_finish_at_list_end, mistakes.no_second_look),
        scenes=("database-crash-under-a-worker", "database-crash-under-workers"),
        breaks="W2",
    ),
    # --- unknown outcomes ---------------------------------------------------------------------------------------------
    _Mutant(
        name="unknown-is-failure",
        slip="After a lost reply, the units run again with the new version of the progress.",
        swap=swap(UnitLoop._is_ledger_behind, mistakes.repeat_if_unknown),
        scenes=("lost-group", "lost-replies"),
    ),
    _Mutant(
        name="unknown-is-success",
        slip="After a lost reply, the units are taken for done.",
        swap=swap(UnitLoop._attempt_units, mistakes.succeed_if_unknown),
        scenes=("lost-group", "lost-replies"),
        breaks="U3",
    ),
    # --- reading ahead ------------------------------------------------------------------------------------------------
    _Mutant(
        name="ahead-is-not-validated",
        slip="What a commit has read for the next units is not validated by theirs.",
        swap=swap(Transaction._versions, mistakes.trust_what_was_read_ahead),
        scenes=("read-ahead", "read-ahead-groups"),
        breaks="U2",
    ),
    _Mutant(
        name="group-that-waited",
        slip="A group whose cells are read ahead runs, although another attempt has done its units meanwhile.",
        swap=swap(ShardTask._run_units, mistakes.run_what_waited),
        scenes=("read-ahead-twins",),
    ),
    # --- conflicts ----------------------------------------------------------------------------------------------------
    _Mutant(
        name="deferred-forgotten",
        slip="A unit that conflicts alone is forgotten.",
        swap=swap(UnitLoop.defer_unit, mistakes.forget_a_unit),
        scenes=("write-skew", "increments"),
        breaks="U3",
    ),
    _Mutant(
        name="rest-of-group-after-drain",
        slip="After units that were deferred have run early, the rest of the group runs, whatever others have done.",
        swap=swap(UnitLoop.drain, mistakes.drain_unnoticed),
        scenes=("early-drain",),
    ),
    _Mutant(
        name="put-off-by-others-forgotten",
        slip="The progress names the units that this attempt has deferred, and not those of its twins.",
        swap=swap(TaskLedger._progress_after, mistakes.forget_what_others_put_off),
        scenes=("early-drain-of-others",),
        breaks="U4",
    ),
    _Mutant(
        name="last-of-group-again",
        slip="After the conflict of a group, only its last unit runs again.",
        swap=swap(UnitLoop.run, mistakes.run_the_last_again),
        scenes=("groups", "two-groups"),
        breaks="U3",
    ),
    _Mutant(
        name="stale-errors",
        slip="What a unit that failed has read is not validated.",
        swap=swap(UnitExecution._commit_and_read_ahead, mistakes.trust_reads),
        scenes=("stale-reads",),
        breaks="U5",
    ),
    # --- cells --------------------------------------------------------------------------------------------------------
    _Mutant(
        name="adds-are-not-validated",
        slip="A cell to which a unit adds is not validated, even if the unit has read it.",
        swap=swap(CellTransaction.to_commit, mistakes.add_unread),
        scenes=("read-add", "adds"),
        breaks="U2",
    ),
    _Mutant(
        name="no-table-guard",
        slip="A commit does not validate the definitions of its tables.",
        swap=swap(CellTransaction._list_required_versions, mistakes.forget_tables),
        scenes=("dropped-table",),
        breaks="U6",
    ),
    _Mutant(
        name="no-mark-needed",
        slip="The cells of a dropped table are deleted, although a crash may have undone the drop.",
        swap=swap(batches._delete_dropped_table, mistakes.collect_without_mark),
        scenes=("database-crash-under-a-dropped-table",),
        breaks="U2",
    ),
    _Mutant(
        name="absence-is-trusted",
        slip="A row that did not exist when the unit wanted to lock it is not validated.",
        swap=swap(LockedReads.to_validation, mistakes.trust_absence),
        scenes=("absent-rows",),
        breaks="U2",
    ),
    # --- work lists ---------------------------------------------------------------------------------------------------
    _Mutant(
        name="emit-outside",
        slip="What a unit emits is added by a transaction of its own.",
        swap=swap(UnitExecution._call_unit, mistakes.emit_at_once),
        scenes=("emitted-by-a-task", "emitted-work"),
        breaks="W1",
    ),
    _Mutant(
        name="claim-not-validated",
        slip="A worker's commit does not validate its claim.",
        swap=swap(ClaimLedger.change, mistakes.keep_a_lost_claim),
        scenes=("expired-lease", "worker-twins"),
    ),
    _Mutant(
        name="items-not-validated",
        slip="A claim does not validate that its items still wait.",
        swap=swap(work_list.claim_items, mistakes.claim_anything),
        scenes=("workers", "emitted-work", "lost-claims"),
        breaks="W1",
    ),
    _Mutant(
        name="lease-without-version",
        slip="Who takes over the items of a claim leaves the claim as it is.",
        swap=swap(work_list.release_claim, mistakes.take_over_a_claim),
        scenes=("expired-lease",),
        breaks="W1",
    ),
    _Mutant(
        name="end-in-two-reads",
        slip="The end of a work list is concluded from two reads: no claims, and then no items.",
        swap=swap(WorkTask._read_start_of_list, mistakes.look_twice),
        scenes=("expired-lease", "worker-twins"),
        breaks="W2",
    ),
    _Mutant(
        name="end-without-claims",
        slip="A work list is taken for ended when nothing waits, although units that run may add to it.",
        swap=swap(WorkTask._read_start_of_list, mistakes.look_for_items_only),
        scenes=("emitted-work", "workers"),
        breaks="W2",
    ),
)
