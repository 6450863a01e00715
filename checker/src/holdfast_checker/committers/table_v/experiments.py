"""Define the simulated worlds in which the attributes of committers in Table V of paper 000 are checked.

Attempts ask the driver before they commit, as the paper assumes. The output of a committer is read by its intended
readers: that of `two_phase` through Holdfast, that of `stocator` by the names in ``_SUCCESS``, and that of the others
by a listing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

from holdfast.commit import CommitContext, Committer, JobRecord, TaskCommit
from holdfast.commit.hadoop.file_output.committers import FILE_V1
from holdfast.commit.hadoop.file_output.directories import committed_task_dir
from holdfast.commit.hadoop.files import delete_dir, is_dir, move_dir
from holdfast.commit.ids import AttemptId, FileOwner
from holdfast.errors import HoldfastError
from holdfast_checker.committers.actors import CommitterScene, WorldSettings, run_attempt, write_files
from holdfast_checker.committers.cluster import CLUSTER, name_of_attempt_actor
from holdfast_checker.committers.output import is_call_observed
from holdfast_checker.committers.sandbox import StoreSandbox
from holdfast_checker.committers.scenes import SECTIONS, read_scene_group
from holdfast_checker.committers.table_v.questions import ASKED, FIRST_ATTEMPT, ObservedCluster
from holdfast_checker.committers.worlds import build_world
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import Actor, Port, World
from holdfast_checker.simulated.store import StoreResource

EXPERIMENTS: Mapping[str, CommitterScene] = read_scene_group("experiments")
"""The scenes of all experiments by name, which is the part of a world's name after the committer's."""


def build_experiment(committer: Committer, name: str) -> World:
    """Build the simulated world of an experiment for Table V of paper 000, with the committer under test."""
    scene = EXPERIMENTS[name]
    world = build_world(committer, replace(scene, properties=()))
    stores = {name: one for name, one in world.resources.items() if isinstance(one, StoreResource)}
    setting = WorldSettings.for_scene(scene, committer, {name: one.capabilities for name, one in stores.items()})
    sandbox = StoreSandbox(setting, stores)
    change = _CHANGED_ACTORS.get(name)
    cluster = ObservedCluster(tasks=scene.tasks, attempts=scene.attempts, speculation=scene.speculation)
    return replace(
        world,
        actors=world.actors if change is None else change(setting, world.actors),
        resources={CLUSTER: cluster, **stores},
        properties=tuple(ASKED[asked].bind(sandbox) for asked in SECTIONS[name]["asked"].split()),
        observed=_is_call_observed,
    )


def _is_call_observed(call: Call) -> bool:
    """Check whether properties can see the effect of a call, such as a change in the state of an attempt."""
    return is_call_observed(call) or call.resource == CLUSTER


# --- actors -----------------------------------------------------------------------------------------------------------
def _let_second_attempt_abort_first(setting: WorldSettings, found: tuple[Actor, ...]) -> tuple[Actor, ...]:
    """Let the second attempt start when the first one is lost, and abort the first one before it runs."""

    def abort_first_then_run(port: Port) -> None:
        job = cast("JobRecord", port.call(Call(CLUSTER, "begin", (0, 1))))
        owner = FileOwner(job.job, 0, AttemptId(f"{FIRST_ATTEMPT}{1:08x}"))
        try:
            setting.committer.abort_task(setting.context(port), job, owner)
        except HoldfastError:
            port.call(Call(CLUSTER, "fail", (0, 1)))
        else:
            run_attempt(setting, port, job, 0, 1)

    second = name_of_attempt_actor(0, 1)
    return tuple(replace(actor, program=abort_first_then_run) if actor.name == second else actor for actor in found)


def _let_second_driver_restart_job(setting: WorldSettings, found: tuple[Actor, ...]) -> tuple[Actor, ...]:
    """Let a second driver continue the job as its next attempt, with one attempt at each task.

    The second driver takes over committed tasks if the committer supports this, runs the other tasks itself, and
    commits with the reports that it has.
    """

    def run_restarted_driver(port: Port) -> None:
        job, committed = cast("tuple[JobRecord, tuple[int, ...]]", port.call(Call(CLUSTER, "restart", ())))
        job = replace(job, job_attempt=job.job_attempt + 1)
        committer, ctx = setting.committer, setting.context(port)
        rerun = [task for task in range(setting.tasks) if task not in committed]
        try:
            for task in committed:
                if job.committer == FILE_V1.name:
                    _recover_v1_task_output(ctx, job, task)
            reports = [_rerun_task(setting, ctx, job, task) for task in rerun]
            outcome = committer.commit_job(ctx, job, reports, rerun)
        except HoldfastError as error:
            port.call(Call(CLUSTER, "tell", ("failed", error.message)))
        else:
            port.call(Call(CLUSTER, "tell", ("committed" if outcome.committed else "aborted", outcome.finished)))

    kept = [actor for actor in found if not actor.name.endswith("attempt 1")]
    return (*kept, Actor("second driver", run_restarted_driver, mortal=False))


def _allow_retry_of_first_task_only(setting: WorldSettings, found: tuple[Actor, ...]) -> tuple[Actor, ...]:
    """Let only the first task have a second attempt, to keep worlds small.

    The job needs the other task as well: a job that loses all of its tasks would notice the loss.
    """
    return tuple(actor for actor in found if actor.name != name_of_attempt_actor(1, 1))


def _rerun_task(setting: WorldSettings, ctx: CommitContext, job: JobRecord, task: int) -> TaskCommit:
    with setting.committer.setup_task(ctx, job, task) as running:
        write_files(setting, running, task, 1)
        return running.commit()


_CHANGED_ACTORS: Mapping[str, Callable[[WorldSettings, tuple[Actor, ...]], tuple[Actor, ...]]] = {
    "new-driver": _let_second_driver_restart_job,
    "aborts-itself": _let_second_attempt_abort_first,
    "is-aborted": _let_second_attempt_abort_first,
    "cut-off": _allow_retry_of_first_task_only,
}
"""For experiments whose actors are not those of the scene: what makes them of the setting and the scene's actors."""


def _recover_v1_task_output(ctx: CommitContext, job: JobRecord, task: int) -> bool:
    """Move a task's directory from the previous job attempt to this one; return whether there was a directory.

    A task that committed without output left no directory, so it runs again.

    Args:
        job: the record of the next attempt at the job.

    Crash: the directory is at its old or its new path. Idempotent.
    """
    target = committed_task_dir(job, task)
    if job.job_attempt == 0:
        return False
    source = committed_task_dir(replace(job, job_attempt=job.job_attempt - 1), task)
    if not is_dir(ctx, source):
        return is_dir(ctx, target)  # recovered before
    delete_dir(ctx, target)
    move_dir(ctx, source, target)
    return True
