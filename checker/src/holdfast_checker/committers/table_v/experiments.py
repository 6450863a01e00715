"""Define the worlds in which the questions of paper 000, Table V, are asked.

Attempts ask the driver before they commit, as the paper assumes. The output of a committer is read by its intended
readers: that of `two_phase` through Holdfast, that of `stocator` by the names in ``_SUCCESS``, and that of the others
by a listing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from holdfast.commit import CommitContext, Committer, JobRecord, TaskCommit
from holdfast.commit.file_output.v1 import FILE_V1, recover_v1_task
from holdfast.commit.ids import AttemptId, FileOwner
from holdfast.errors import HoldfastError
from holdfast_checker.committers.actors import Setting, run_attempt, write_files
from holdfast_checker.committers.cluster import CLUSTER, Cluster, Order, attempt_actor
from holdfast_checker.committers.output import is_observed
from holdfast_checker.committers.sandbox import Sandbox
from holdfast_checker.committers.table_v.observed_cluster import ObservedCluster
from holdfast_checker.committers.table_v.questions import ASKED
from holdfast_checker.committers.table_v.task_questions import FIRST_ATTEMPT
from holdfast_checker.committers.worlds import Scene, build_world, setting_of
from holdfast_checker.kernel.calls import Call, Fault
from holdfast_checker.kernel.process import Actor, Port
from holdfast_checker.kernel.world import World
from holdfast_checker.simulated_store.resource import StoreResource


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A world in which questions of Table V are asked.

    Attributes:
        asked: names of properties in `questions`.
        actors: takes the world's setting and the scene's actors, and returns the actors of the experiment.
    """

    scene: Scene
    asked: tuple[str, ...]
    actors: Callable[[Setting, tuple[Actor, ...]], tuple[Actor, ...]] = lambda setting, found: found

    @property
    def name(self) -> str:
        """Return the name of the experiment: the part of the world's name after the committer's name."""
        return self.scene.name


def build_experiment(committer: Committer, experiment: Experiment) -> World:
    """Build the world of an experiment for a committer."""
    scene = experiment.scene
    world = build_world(committer, replace(scene, properties=()))
    stores = {name: one for name, one in world.resources.items() if isinstance(one, StoreResource)}
    setting = setting_of(committer, scene, stores)
    cluster = cast("Cluster", world.resources[CLUSTER])
    sandbox = Sandbox(setting, stores)
    return World(  # small worlds: no process needs to forget
        name=world.name,
        summary=world.summary,
        actors=experiment.actors(setting, world.actors),
        resources={CLUSTER: ObservedCluster(cluster), **stores},
        properties=tuple(ASKED[name](sandbox) for name in experiment.asked),
        budgets=world.budgets,
        observed=_is_observed,
    )


def _is_observed(call: Call) -> bool:
    """Check whether properties can see the effect of a call, such as a change in the state of an attempt."""
    return is_observed(call) or call.resource == CLUSTER


# --- actors -----------------------------------------------------------------------------------------------------------
def _abort_then_run(setting: Setting, found: tuple[Actor, ...]) -> tuple[Actor, ...]:
    """Let the second attempt start when the first one is lost, and abort the first one before it runs."""

    def run(port: Port) -> None:
        job = cast("JobRecord", port.call(Call(CLUSTER, "begin", (0, 1))))
        owner = FileOwner(job.job, 0, AttemptId(f"{FIRST_ATTEMPT}{1:08x}"))
        try:
            setting.committer.abort_task(setting.context(port), job, owner)
        except HoldfastError:
            port.call(Call(CLUSTER, "fail", (0, 1)))
        else:
            run_attempt(setting, port, job, 0, 1)

    second = attempt_actor(0, 1)
    return tuple(replace(actor, program=run) if actor.name == second else actor for actor in found)


def _restart(setting: Setting, found: tuple[Actor, ...]) -> tuple[Actor, ...]:
    """Let a second driver continue the job as its next attempt, with one attempt at each task.

    The second driver takes over committed tasks if the committer supports this, runs the other tasks itself, and
    commits with the reports that it has.
    """

    def run(port: Port) -> None:
        job, committed = cast("tuple[JobRecord, tuple[int, ...]]", port.call(Call(CLUSTER, "restart", ())))
        job = replace(job, job_attempt=job.job_attempt + 1)
        committer, ctx = setting.committer, setting.context(port)
        rerun = [task for task in range(setting.tasks) if task not in committed]
        try:
            for task in committed:
                if job.committer == FILE_V1.name:
                    recover_v1_task(ctx, job, task)
            reports = [_rerun(setting, ctx, job, task) for task in rerun]
            outcome = committer.commit_job(ctx, job, reports, rerun)
        except HoldfastError as error:
            port.call(Call(CLUSTER, "tell", ("failed", error.message)))
        else:
            port.call(Call(CLUSTER, "tell", ("committed" if outcome.committed else "aborted", outcome.finished)))

    kept = [actor for actor in found if not actor.name.endswith("attempt 1")]
    return (*kept, Actor("second driver", run, mortal=False))


def _one_task_repeated(setting: Setting, found: tuple[Actor, ...]) -> tuple[Actor, ...]:
    """Let only the first task have a second attempt, to keep worlds small.

    The job needs the other task as well: a job that loses all of its tasks would notice the loss.
    """
    return tuple(actor for actor in found if actor.name != attempt_actor(1, 1))


def _rerun(setting: Setting, ctx: CommitContext, job: JobRecord, task: int) -> TaskCommit:
    with setting.committer.setup_task(ctx, job, task) as running:
        write_files(setting, running, task, 1)
        return running.commit()


# --- worlds -----------------------------------------------------------------------------------------------------------
_TASKS = ("task",)

_ALL = (
    Experiment(
        scene=Scene(
            name="side-by-side",
            summary="two attempts at a task run concurrently, the driver lets one commit, no fault happens",
            tasks=1,
            order=Order.ASK_FIRST,
        ),
        asked=(
            "speculative-tasks",
            "speculative-tasks-early",
            "uncommitted-output-observable",
            "uncommitted-output-observable-in-commit",
            "committed-output-observable",
            "atomic-job-commit",
            "atomic-job-commit-listed",
        ),
    ),
    Experiment(
        scene=Scene(
            name="two-commits",
            summary="two attempts at a task run concurrently and commit without asking, no fault happens",
            tasks=1,
            order=Order.REPORT,
        ),
        asked=("speculative-tasks-two-commits",),
    ),
    Experiment(
        scene=Scene(
            name="new-driver",
            summary="the driver dies after tasks committed, a new one continues as the next attempt at the job",
            order=Order.ASK_FIRST,
            budgets={Fault.CRASH: 1},
            mortal=("driver",),
        ),
        asked=("recoverable-job",),
        actors=_restart,
    ),
    Experiment(
        scene=Scene(
            name="aborts-itself",
            summary="a call fails, the attempt aborts itself, the next one runs",
            tasks=1,
            order=Order.ASK_FIRST,
            speculation=False,
            budgets={Fault.FAILURE: 1},
        ),
        asked=("abortable-task", "abortable-task-in-commit", "abortable-task-at-once"),
        actors=_abort_then_run,
    ),
    Experiment(
        scene=Scene(
            name="is-aborted",
            summary="an attempt dies, another process aborts it, the next one runs",
            tasks=1,
            order=Order.ASK_FIRST,
            speculation=False,
            budgets={Fault.CRASH: 1},
            mortal=_TASKS,
        ),
        asked=("abortable-task", "abortable-task-in-commit", "abortable-task-at-once"),
        actors=_abort_then_run,
    ),
    Experiment(
        scene=Scene(
            name="given-up",
            summary="a user cancels the job when some tasks have committed and others run, no fault happens",
            attempts=1,
            files=1,
            order=Order.ASK_FIRST,
            cancel=True,
        ),
        asked=("abortable-job", "abortable-job-by-itself"),
    ),
    Experiment(
        scene=Scene(
            name="dies-in-commit",
            summary="an attempt dies in its task commit",
            tasks=1,
            order=Order.ASK_FIRST,
            speculation=False,
            budgets={Fault.CRASH: 1},
            mortal=_TASKS,
        ),
        asked=("atomic-task-commit",),
    ),
    Experiment(
        scene=Scene(
            name="dies-beside",
            summary="an attempt is cut off in its task commit, another takes over, and the first one dies in its own",
            tasks=1,
            order=Order.ASK_FIRST,
            speculation=False,
            budgets={Fault.PARTITION: 1, Fault.CRASH: 1},
            mortal=_TASKS,
        ),
        asked=("atomic-task-commit-two-commits",),
    ),
    Experiment(
        scene=Scene(
            name="cut-off",
            summary="an attempt is cut off from the driver, another takes over, and both keep running",
            tasks=2,
            order=Order.ASK_FIRST,
            speculation=False,
            budgets={Fault.PARTITION: 1},
        ),
        asked=("partitioned-executor", "partitioned-executor-in-commit", "partitioned-executor-C3"),
        actors=_one_task_repeated,
    ),
)

EXPERIMENTS: Mapping[str, Experiment] = {one.name: one for one in _ALL}
"""All experiments by name, which is the part of a world's name after the committer's."""
