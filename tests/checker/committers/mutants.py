"""Mistakes that a developer might have made in `two_phase`, and the worlds in which the checker has to find them.

A mistake is a function that runs in place of a shipped one (`planting`). It does the wrong thing and leaves the rest to
the shipped function where it can.

`MUTANTS` are found. `REDUNDANT` are not: each breaks a safeguard that the protocol backs up with a second one, as the
reasons say. Together with the second one, some of them are mutants.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import cast

from holdfast.commit import SaveMode, layout, task
from holdfast.commit.committer import leave_attempt_to_cleanup
from holdfast.commit.ids import file_name
from holdfast.commit.two_phase import cleanup, decision, job, publication, recovery, roll_forward, snapshot
from holdfast.commit.two_phase.committer import TWO_PHASE, commit_task
from holdfast.commit.two_phase.decision import roll_forward_earlier_jobs
from holdfast.commit.two_phase.decision_log import append_entry, job_exists
from holdfast.commit.two_phase.pending_uploads import LiveJobs
from holdfast.stores.base import iter_uploads
from holdfast.versioned_log import RecordStore
from holdfast_checker.committers.actors import CommitterScene, OtherJob
from holdfast_checker.committers.cluster import CLUSTER
from holdfast_checker.committers.output import DESTINATION
from holdfast_checker.committers.scenes import SCENES
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.calls import Call, Fault
from holdfast_checker.kernel.world import Actor, Port, World
from holdfast_checker.simulated.store import StoreResource
from holdfast_checker.simulated.store_handle import SimulatedStore
from tests.checker.committers import mistakes
from tests.checker.committers.planting import Swap, planted, swap

__all__ = ["MUTANTS", "REDUNDANT", "Mutant", "world_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A mistake.

    Attributes:
        slip: what a developer might have done, in one sentence.
        swaps: shipped functions with the functions that run in their place.
        scene: a world in which the mistake does harm, and the shipped code does none.
        breaks: properties that the checker must report; empty for a redundant safeguard.
        reason: why the mistake does no harm, if the safeguard is redundant.
        change: how the world differs from the scene.
    """

    name: str
    slip: str
    swaps: tuple[Swap, ...]
    scene: CommitterScene
    breaks: tuple[str, ...] = ()
    reason: str = ""
    change: Callable[[World], World] = lambda world: world

    def planted(self) -> AbstractContextManager[None]:
        """Run the mistake instead of the shipped code."""
        return planted(*self.swaps)


def world_of(mutant: Mutant) -> World:
    """Build the world of the mutant's scene, with the code as it is at the moment."""
    return mutant.change(build_world(TWO_PHASE, mutant.scene))


def _with_bucket_rule(world: World) -> World:
    """Add a bucket lifecycle rule, which aborts pending uploads at any time."""
    capabilities = cast("StoreResource", world.resources[DESTINATION]).capabilities

    def expire(port: Port) -> None:
        store = SimulatedStore(port, DESTINATION, capabilities)
        for upload in list(iter_uploads(store, "")):
            store.abort_upload(upload.key, upload.upload_id)

    return replace(world, actors=(*world.actors, Actor("bucket rule", expire, mortal=False)))


def _other_job_later(world: World) -> World:
    """Let the other job start when the driver is dead."""

    def later(actor: Actor) -> Actor:
        def run(port: Port) -> object:
            port.call(Call(CLUSTER, "take_for_dead"))
            return actor.program(port)

        return replace(actor, program=run) if actor.name == "other job" else actor

    return replace(world, actors=tuple(map(later, world.actors)))


# --- scenes, as small as the mistakes allow ---------------------------------------------------------------------------
_LONE = CommitterScene(name="lone", summary="one attempt at one task", tasks=1, attempts=1)
_SPECULATION = SCENES["speculation"]
_DRIVER_DIES = replace(
    _LONE,
    name="driver-dies",
    summary="the driver dies between any two calls, and recovery follows",
    recovery=1,
    mortal=("driver",),
    budgets={Fault.CRASH: 1},
)
_TWINS_DRIVER_DIES = replace(_DRIVER_DIES, name="twins-driver-dies", attempts=2)
_TWO_TASKS_DRIVER_DIES = replace(_DRIVER_DIES, name="two-tasks-driver-dies", tasks=2, files=1)
_SECOND_DRIVER = replace(SCENES["second-driver"], files=1)
_SECOND_DRIVER_DEAD = replace(
    SCENES["second-driver"], name="second-driver-dead", mortal=("driver",), budgets={Fault.CRASH: 1}
)
_READER = replace(SCENES["reader"], budgets={}, files=2)
_FAILURE = replace(SCENES["failure"], attempts=1)
_OVERWRITE = SCENES["overwrite"]
_OTHER_JOB = replace(SCENES["other-job"], files=1)
_NEXT_OVERWRITES = replace(
    _LONE,
    name="next-overwrites",
    summary="the driver dies between any two calls, and the next job replaces what is there",
    mode=SaveMode.OVERWRITE,
    others=(OtherJob(),),
    mortal=("driver",),
    budgets={Fault.CRASH: 1},
)
_RENAMES = {"limits": None, "rename": True}
_RENAMES_SECOND_DRIVER = replace(_SECOND_DRIVER, name="renames-second-driver", store=_RENAMES)
_EXPIRING = replace(
    _LONE,
    name="bucket-rule",
    summary="a rule of the bucket aborts pending uploads",
    properties=("C1", "C2", "C3", "C4"),
)

_BARE_PREFIX = swap(publication._list_uploads_below, mistakes.list_below_bare_prefix)

MUTANTS = (
    # --- the decision -------------------------------------------------------------------------------------------------
    Mutant(
        name="decides-after-publishing",
        slip="The decision is written after the uploads are completed, as if it were the job's report.",
        swaps=(swap(append_entry, mistakes.publish_first),),
        scene=_DRIVER_DIES,
        breaks=("C9",),
    ),
    Mutant(
        name="abort-without-entry",
        slip="Abort cleans up and writes nothing into the log: the job is undecided, so there is nothing to record.",
        swaps=(swap(append_entry, mistakes.abort_without_entry),),
        scene=_SECOND_DRIVER,
        breaks=("C8",),
    ),
    Mutant(
        name="commit-without-looking",
        slip="Commit checks neither whether the log already has an entry about its job, nor whether its record exists.",
        swaps=(
            swap(job._find_or_make_decision, mistakes.commit_without_looking),
            swap(job_exists, mistakes.believe_in_the_record),
        ),
        scene=_SECOND_DRIVER,
        breaks=("C8",),
    ),
    Mutant(
        name="next-number-without-looking",
        slip="After a conflict, it tries the next number, and checks neither whether the winner decided its job, "
        "nor whether the job's record exists.",
        swaps=(
            swap(decision._append_commit, mistakes.try_next_number),
            swap(job_exists, mistakes.believe_in_the_record),
        ),
        scene=_SECOND_DRIVER,
        breaks=("C8",),
    ),
    Mutant(
        name="overwrites-decisions",
        slip="Records are put without the condition that they do not exist.",
        swaps=(swap(RecordStore._put_new, mistakes.create_unconditionally),),
        scene=_SECOND_DRIVER,
        breaks=("C8",),
    ),
    Mutant(
        name="any-entry-is-mine",
        slip="The entry at the number after the put is considered the job's own, whichever job it is about.",
        swaps=(swap(decision._append_commit, mistakes.take_any_entry),),
        scene=_OTHER_JOB,
        breaks=("C1",),
    ),
    Mutant(
        name="abort-without-looking",
        slip="Abort does not read the log first, and undoes a committed job (Iceberg 4686).",
        swaps=(swap(job.abort_job, mistakes.abort_without_looking),),
        scene=_SECOND_DRIVER_DEAD,
        breaks=("C5",),
    ),
    Mutant(
        name="unknown-put-is-success",
        slip="A record whose put was not answered is considered written.",
        swaps=(swap(RecordStore._put_new, mistakes.take_silence_for_success),),
        scene=_FAILURE,
        breaks=("log-order",),
    ),
    # --- after the decision -------------------------------------------------------------------------------------------
    Mutant(
        name="replaced-first",
        slip="Replaced files are deleted before the job's files are published.",
        swaps=(swap(roll_forward._publish_all, mistakes.delete_replaced_first),),
        scene=_OVERWRITE,
        breaks=("replaced-data",),
    ),
    Mutant(
        name="visible-first",
        slip="The decision is marked visible before its files are published.",
        swaps=(swap(roll_forward._publish_all, mistakes.mark_visible_first),),
        scene=_READER,
        breaks=("whole-reads",),
    ),
    Mutant(
        name="trouble-is-ignored",
        slip="Failures after the decision are swallowed: the job is committed, so it is reported as finished.",
        swaps=(swap(job._roll_forward_with_retries, mistakes.ignore_trouble),),
        scene=_FAILURE,
        breaks=("C1",),
    ),
    Mutant(
        name="unknown-completion-is-success",
        slip="A completion that was not answered is considered done.",
        swaps=(swap(task.ensure_file_moved, mistakes.take_silence_for_completion),),
        scene=_FAILURE,
        breaks=("C1",),
    ),
    Mutant(
        name="not-found-is-success",
        slip="A completion that finds no upload is considered done by another process, without checking the object.",
        swaps=(swap(task.complete_upload, mistakes.complete_without_looking),),
        scene=_EXPIRING,
        breaks=("C1",),
        change=_with_bucket_rule,
    ),
    Mutant(
        name="deletes-then-renames",
        slip="The target of a rename is deleted first, for stores that do not overwrite by renaming.",
        swaps=(swap(publication._rename_file, mistakes.delete_then_rename),),
        scene=_RENAMES_SECOND_DRIVER,
        breaks=("C6",),
    ),
    Mutant(
        name="no-helping",
        slip="A job decides without rolling earlier decisions forward: their drivers will do that.",
        swaps=(swap(roll_forward_earlier_jobs, mistakes.help_nobody),),
        scene=_NEXT_OVERWRITES,
        breaks=("C9",),
        change=_other_job_later,
    ),
    # --- tasks --------------------------------------------------------------------------------------------------------
    Mutant(
        name="task-publishes",
        slip="A task completes its uploads when it commits, to save the driver work.",
        swaps=(swap(commit_task, mistakes.publish_in_task),),
        scene=_SPECULATION,
        breaks=("C4",),
    ),
    Mutant(
        name="manifest-by-task",
        slip="Manifests are named by task, so the last attempt's manifest replaces the one that counts.",
        swaps=(swap(layout.manifest_path, mistakes.name_by_task),),
        scene=_TWINS_DRIVER_DIES,
        breaks=("C9",),
    ),
    Mutant(
        name="manifests-by-listing",
        slip="The driver takes the manifests in the job's folder, not those that the messages name.",
        swaps=(swap(job._find_or_make_decision, mistakes.list_manifests),),
        scene=_SPECULATION,
        breaks=("C3",),
    ),
    Mutant(
        name="task-abort-sweeps-job",
        slip="An attempt that may not commit aborts every pending upload of its job.",
        swaps=(swap(leave_attempt_to_cleanup, mistakes.abort_every_upload_of_the_job),),
        scene=SCENES["asking"],
        breaks=("C9",),
    ),
    # --- clean-up, recovery -------------------------------------------------------------------------------------------
    Mutant(
        name="sweeps-live-jobs",
        slip="Clean-up aborts every pending upload below the destination, even of jobs that have a record.",
        swaps=(swap(LiveJobs.has_ended, mistakes.end_every_job),),
        scene=_SPECULATION,
        breaks=("C7",),
    ),
    Mutant(
        name="bare-prefix",
        slip="Clean-up lists below a prefix without its slash, and looks for records only in its own destination.",
        swaps=(
            _BARE_PREFIX,
            swap(LiveJobs.has_ended, mistakes.look_in_own_destination),
        ),
        scene=_SPECULATION,
        breaks=("C7",),
    ),
    Mutant(
        name="unannounced",
        slip="A job starts without writing its record.",
        swaps=(swap(job.announce_job, mistakes.announce_nothing),),
        scene=_SPECULATION,
        breaks=("C7",),
    ),
    Mutant(
        name="recovery-keeps-uploads",
        slip="Recovery ends jobs, and leaves the uploads of late attempts.",
        swaps=(swap(cleanup.clean_up_ended_jobs, mistakes.sweep_with_limit_only),),
        scene=_SPECULATION,
        breaks=("no-leftovers",),
    ),
    Mutant(
        name="recovery-rolls-forward",
        slip="Recovery commits an undecided job, with the manifests that exist.",
        swaps=(swap(recovery._end_open_job, mistakes.commit_open_job),),
        scene=_TWO_TASKS_DRIVER_DIES,
        breaks=("C9",),
    ),
    # --- readers ------------------------------------------------------------------------------------------------------
    Mutant(
        name="reader-ignores-mark",
        slip="A reader shows the files of every decision, even if it is not marked visible.",
        swaps=(swap(snapshot._build_visibility_rule, mistakes.hide_nothing),),
        scene=_READER,
        breaks=("whole-reads",),
    ),
    Mutant(
        name="reader-looks-once",
        slip="A reader does not check again whether the log changed while it listed the files.",
        swaps=(swap(snapshot._summarize_log_state, mistakes.see_no_change),),
        scene=_READER,
        breaks=("whole-reads",),
    ),
)

REDUNDANT = (
    Mutant(
        name="bare-prefix-alone",
        slip="Clean-up lists below a prefix without its slash.",
        swaps=(_BARE_PREFIX,),
        scene=_SPECULATION,
        reason="a job is over only if no folder above its upload has a record of it, and the neighbor has one",
    ),
    Mutant(
        name="done-first",
        slip="A decision is marked done before its clean-up.",
        swaps=(swap(cleanup.clean_up_decided_job, mistakes.mark_done_first),),
        scene=_DRIVER_DIES,
        reason="recovery also ends jobs that have a record, and finds the decision in the log",
    ),
    Mutant(
        name="lost-reply-is-conflict",
        slip="A record that exists after a lost reply is considered another job's.",
        swaps=(swap(decision._append_commit, mistakes.take_every_entry_for_anothers),),
        scene=SCENES["lost-reply"],
        reason="after a conflict the log is read again first, and contains the job's own decision",
    ),
    Mutant(
        name="names-without-attempt",
        slip="Names of files contain the job and the task, not the attempt, as Spark's do.",
        swaps=(swap(file_name, mistakes.name_without_attempt),),
        scene=_SPECULATION,
        reason="such names are allowed: manifests identify uploads by id, and metadata identify the owner of an object",
    ),
)
