"""Define the actors of a simulated Spark job, which run the shipped commit code: driver, task attempts, recovery.

Nothing here makes a decision that belongs to the code under test. These functions do what Spark and Holdfast's data
source do around that code: pass the job to its tasks, ask for permission to commit, report, and, after a commit that
raised an error, call abort in another process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from holdfast.commit import (
    CommitContext,
    CommitSettings,
    Committer,
    JobRecord,
    Place,
    SaveMode,
    StreamBatch,
    TaskAttempt,
    TaskCommit,
)
from holdfast.commit.context import StagingPlaces
from holdfast.commit.recovery import recover
from holdfast.commit.two_phase.snapshot import read_snapshot
from holdfast.commit.two_phase.streams import announce_stream_batch, plan_batch, roll_forward_decisions
from holdfast.errors import DestinationExistsError, HoldfastError
from holdfast.runtime import Environment, SerialRunner
from holdfast.stores.base import Capabilities
from holdfast_checker.committers.cluster import CLUSTER, TaskCommitTiming
from holdfast_checker.committers.ledger import LOG_PREFIX, PlannedCommit
from holdfast_checker.committers.output import (
    DESTINATION,
    HOME,
    choose_partition_directory,
    file_bytes,
    make_chosen_file_name,
    strip_measured_values,
)
from holdfast_checker.framework import subject
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.store_handle import SimulatedStore
from holdfast_checker.simulated.time import ManualClock

START_S = 1_800_000_000.0
"""When the main job runs, in seconds since the epoch."""

LATER_S = START_S + 7200.0
"""When recovery runs: by then, the main job has been inactive for longer than `QUIET_S`."""

FINALLY_S = LATER_S + 7200.0
"""When the final recovery runs, after a history: by then, all jobs count as inactive unless known to be alive."""

QUIET_S = 3600.0


_REPLACING = (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)
SETTINGS = CommitSettings(part_size_bytes=1 << 20, conflict_attempts=6, roll_forward_attempts=2, check_nesting=False)
"""Settings with few retries, so that histories stay short."""


def time_of_actor(actor: str) -> float:
    """Return the simulated time at which an actor runs, in seconds since the epoch.

    Actors outside the main job run two hours later: only the main job's objects are old enough for recovery."""
    return START_S if actor in ("driver", "second driver") or actor.startswith("task ") else LATER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherJob:
    """Describes a further job that writes to the same destination while the tested job runs.

    One process runs all of the job; its only task writes a file into each directory.

    Attributes:
        name: name of the actor; the content of the job's files contains its first word.
        mode: the save mode; None for that of the job under test.
        later: whether the job starts only after the main job's driver has ended or is gone.
        batch: number of the micro-batch that the job writes; None if the job belongs to no stream.
        times: how many jobs of this description run, one after another.
        at_once: whether each of these jobs runs as one atomic step, so that worlds stay small.
    """

    name: str = "other job"
    mode: SaveMode | None = None
    later: bool = False
    directories: tuple[str, ...] = ("day=0",)
    batch: int | None = None
    times: int = 1
    at_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitterScene(subject.Scene):
    """The declaration of a simulated job to check: its tasks, faults, other actors, and store; see `build_world`.

    Attributes:
        store: options of `MemoryStore` for the destination, in addition to those for the committer.
        bystanders: whether other jobs of the same committer are running, in the destination and beside it.
        old: the directories in which a file of an earlier job exists at the start.
        foreign: whether files exist that no job may touch: a hidden file, and a file beside the destination.
        chosen: whether jobs choose their file names themselves; if so, all jobs choose the same names.
        parts: number of parts of each uploaded file.
        batch: number of the micro-batch that the job writes; None if the job belongs to no stream.
        piecemeal: whether listings take several steps, as on a file system.
        retention: number of decisions that the log keeps; None for the default.
        order: when attempts commit.
        speculation: whether a second attempt may start while the first one runs.
        cancel, second_driver, reader: whether these actors exist.
        recovery: how many recoveries run.
        others: other jobs on the destination.
        mortal: the actors that may crash, by the first word of their names; empty for all actors.
    """

    tasks: int = 2
    attempts: int = 2
    files: int = 2
    mode: SaveMode = SaveMode.APPEND
    order: TaskCommitTiming = TaskCommitTiming.REPORT
    speculation: bool = True
    cancel: bool = False
    second_driver: bool = False
    recovery: int = 0
    reader: bool = False
    others: tuple[OtherJob, ...] = ()
    mortal: tuple[str, ...] = ()
    store: Mapping[str, Any] = field(default_factory=dict)
    bystanders: bool = False
    old: tuple[str, ...] = ()
    foreign: bool = False
    chosen: bool = False
    parts: int = 1
    batch: int | None = None
    retention: int | None = None
    piecemeal: bool = False
    reached: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorldSettings(CommitterScene):
    """The configuration that the actors of a world share: its scene, the committer under test, and its stores.

    Attributes:
        capabilities: what each store supports, by the name of the store.
    """

    committer: Committer
    capabilities: Mapping[str, Capabilities]

    @classmethod
    def for_scene(
        cls, scene: CommitterScene, committer: Committer, capabilities: Mapping[str, Capabilities]
    ) -> WorldSettings:
        """Derive the configuration of a world from a scene and a committer.

        A job that overwrites does so by partitions if the committer supports no other overwrite."""
        given = {one.name: getattr(scene, one.name) for one in fields(scene)}
        if scene.mode is SaveMode.OVERWRITE and scene.mode not in committer.modes:
            given["mode"] = SaveMode.OVERWRITE_PARTITIONS
        return cls(**given, committer=committer, capabilities=capabilities)

    @property
    def can_other_jobs_replace_files(self) -> bool:
        """Check whether a job other than the driver's may replace existing files."""
        return any((one.mode or self.mode) in _REPLACING for one in self.others)

    @property
    def must_all_commit(self) -> bool:
        """Check whether every job of the world must be committed, since no fault and no other job can prevent it."""
        refuses = self.mode in (SaveMode.FAIL, SaveMode.IGNORE) or (self.chosen and (self.others or self.old))
        fences = self.retention is not None  # a short log fences slow drivers
        return not (self.budgets or self.cancel or refuses or fences or self.batch is not None)

    @property
    def settings(self) -> CommitSettings:
        """The commit settings of all jobs in the world, with few retries, so that executions stay short."""
        size = -(-len(file_bytes("main", 0, 0, 0)) // self.parts) if self.parts > 1 else SETTINGS.part_size_bytes
        kept = SETTINGS.log_retention_entries if self.retention is None else self.retention
        return replace(SETTINGS, part_size_bytes=size, log_retention_entries=kept)

    def context(self, port: Port, home: str = HOME) -> CommitContext:
        """Build the `CommitContext` of a simulated process: handles on the stores, simulated time, and its own ids."""

        def make_place(name: str, prefix: str) -> Place:
            store = SimulatedStore(port, name, self.capabilities[name])
            return Place(store=store, prefix=prefix, url=f"memory://{name}/{prefix}")

        can, staging = self.capabilities[DESTINATION], self.committer.staging
        store = SimulatedStore(port, DESTINATION, can, strip_measured_values, self.piecemeal)
        return CommitContext(
            store=store,
            prefix=home,
            url=f"memory://{DESTINATION}/{home}",
            staging=StagingPlaces(scratch=make_place("scratch", f"{port.name}/"), shared=make_place("shared", ""))
            if staging
            else None,
            settings=self.settings,
            environment=Environment(clock=ManualClock(time_of_actor(port.name)), ids=port, runner=SerialRunner()),
        )


def _ask_cluster(port: Port, operation: str, *args: object) -> object:
    return port.call(Call(CLUSTER, operation, args))


# --- drivers ----------------------------------------------------------------------------------------------------------
def start_job_or_report(setting: WorldSettings, port: Port, mode: SaveMode, batch: int | None) -> JobRecord | None:
    """Set up a job and return its record; if the setup fails or skips the job, report that outcome and return None."""
    ctx = setting.context(port)
    try:
        if batch is None:
            job = setting.committer.setup_job(ctx, mode, {})
        else:
            stream = StreamBatch(stream="stream", checkpoint="checkpoint", batch=batch)
            job = announce_stream_batch(ctx, plan_batch(ctx, mode, {}), stream)
            if job is None:
                roll_forward_decisions(ctx)
    except HoldfastError as error:
        _ask_cluster(
            port, "tell", "refused" if isinstance(error, DestinationExistsError) else "failed", type(error).__name__
        )
        return None
    if job is None:
        _ask_cluster(port, "tell", "skipped", None)
    return job


def run_driver(setting: WorldSettings, port: Port) -> None:
    """Run the driver of the tested job: set up, wait for the tasks, commit; abort if a task or the commit fails."""
    job = start_job_or_report(setting, port, setting.mode, setting.batch)
    if job is None:
        return
    _ask_cluster(port, "post_job", job)
    reports = cast("tuple[TaskCommit, ...] | None", _ask_cluster(port, "await_tasks"))
    commit_or_abort_job(setting, port, job, reports)


def run_second_driver(setting: WorldSettings, port: Port) -> None:
    """Run a second driver, which commits or aborts the same job, because the first one is presumed dead."""
    job, reports = cast("tuple[JobRecord, tuple[TaskCommit, ...] | None]", _ask_cluster(port, "take_over"))
    commit_or_abort_job(setting, port, job, reports)


def commit_or_abort_job(
    setting: WorldSettings, port: Port, job: JobRecord, reports: tuple[TaskCommit, ...] | None
) -> bool:
    """Commit a job with its tasks' reports; abort it if `reports` is None or the commit fails; report the outcome.

    Returns:
        Whether the job is committed.
    """
    if reports is not None:
        try:
            outcome = setting.committer.commit_job(setting.context(port), job, reports, setting.tasks)
        except HoldfastError:
            pass  # Spark calls abort, in a process that knows nothing of this one
        else:
            _ask_cluster(port, "tell", "committed" if outcome.committed else "aborted", outcome.finished)
            return outcome.committed
    try:
        outcome = setting.committer.abort_job(setting.context(port), job)
    except HoldfastError as error:
        _ask_cluster(port, "tell", "unknown", type(error).__name__)
        return False
    _ask_cluster(port, "tell", "committed" if outcome.committed else "aborted", outcome.finished)
    return outcome.committed


# --- tasks ------------------------------------------------------------------------------------------------------------
def run_attempt_once_started(setting: WorldSettings, task: int, attempt: int, port: Port) -> None:
    """Run a task attempt once the driver starts it: write its files, commit, and report to the driver."""
    run_attempt(setting, port, cast("JobRecord", _ask_cluster(port, "begin", task, attempt)), task, attempt)


def run_attempt(setting: WorldSettings, port: Port, job: JobRecord, task: int, attempt: int) -> None:
    """Run a task attempt that the driver has started: write its files, commit them, and report to the driver."""
    try:
        with setting.committer.setup_task(setting.context(port), job, task) as running:
            write_files(setting, running, task, attempt)
            if setting.order is TaskCommitTiming.ASK_FIRST and not _ask_cluster(port, "may_commit", task, attempt):
                return
            commit = running.commit()
    except HoldfastError:
        _ask_cluster(port, "fail", task, attempt)
        return
    _ask_cluster(port, "report", task, attempt, commit)


def write_files(setting: WorldSettings, running: TaskAttempt, task: int, attempt: int) -> None:
    """Write the output files of a task attempt, without committing them."""
    for number in range(setting.files):
        name = make_chosen_file_name(task, number) if setting.chosen else running.file_name(".txt")
        sink = running.open(f"{choose_partition_directory(attempt, number)}/{name}")
        sink.write(file_bytes("main", task, attempt, number))
        sink.close()


# --- others -----------------------------------------------------------------------------------------------------------
def run_recovery(setting: WorldSettings, port: Port) -> None:
    """Run recovery, like `holdfast recover`, for jobs that have been inactive for an hour, and report what it did."""
    _ask_cluster(port, "take_for_dead")
    try:
        report = recover(setting.context(port), older_than_s=QUIET_S, committers=(setting.committer,))
    except HoldfastError as error:
        _ask_cluster(port, "tell", "failed", type(error).__name__)
        return
    ended = (job for job in report.jobs if not job.is_alive)  # it leaves the others alone
    _ask_cluster(port, "tell", "recovered", tuple(sorted((str(job.job), job.action.value) for job in ended)))


def run_reader(setting: WorldSettings, port: Port) -> None:
    """Read the destination once through Holdfast, and report when the read began and ended."""
    since = port.call(Call(DESTINATION, "notes", (LOG_PREFIX,)))
    try:
        found = read_snapshot(setting.context(port))
    except HoldfastError as error:
        _ask_cluster(port, "tell", "failed", type(error).__name__)
        return
    until = port.call(Call(DESTINATION, "notes", (LOG_PREFIX,)))
    _ask_cluster(port, "tell", "read", (since, until, tuple(sorted(file.path for file in found.files))))


def cut_off_executor(port: Port) -> None:
    """Cut one executor off from the driver, which presumes it dead although it keeps running."""
    _ask_cluster(port, "lose")


def cancel_job(port: Port) -> None:
    """Cancel the tested job while its tasks run, as a user may do."""
    _ask_cluster(port, "cancel")


def run_other_jobs(setting: WorldSettings, one: OtherJob, port: Port) -> None:
    """Run further jobs on the destination, one after another, until one is not committed; each reports its outcome."""
    if one.later:
        port.call(Call(CLUSTER, "await_end"))
    for number in range(one.times):
        if one.at_once:
            call = Call(DESTINATION, "run_atomically", (f"{one.name} {number}", port.token()))
            outcome = cast("tuple[str, object]", port.call(call))
            port.call(Call(CLUSTER, "tell", outcome))
            is_committed = outcome[0] == "committed"
        else:
            is_committed = _run_one_other_job(setting, port, one, number)
        if not is_committed:
            return


def run_atomic_job(
    setting: WorldSettings, one: OtherJob, number: int, do: Callable[[Call], object], token: str
) -> object:
    """Run a whole further job as one atomic call on the store, and return its outcome: see `AtomicProgram`."""
    port = _ImmediateStorePort(one.name, do, int(token, 16))
    _run_one_other_job(setting, port, one, number)
    return port.told


class _ImmediateStorePort(Port):
    """A port that executes every call to the store at once, and stores the job's outcome in `told`."""

    def __init__(self, name: str, do: Callable[[Call], object], token: int) -> None:
        super().__init__(name, 0, lambda index, call: None)
        self._do = do
        self._token = token
        self.told: tuple[object, object] = ("failed", None)

    def call(self, call: Call) -> object:
        if call.resource != CLUSTER:
            return self._do(call)
        if call.operation == "tell":
            self.told = (call.args[0], call.args[1])
            return None
        assert call.operation == "plan_commit", call.operation
        return self._do(Call(DESTINATION, "note", call.args))

    def token(self) -> str:
        self._token += 0x100
        return f"{self._token:012x}"


def _run_one_other_job(setting: WorldSettings, port: Port, one: OtherJob, number: int) -> bool:
    job = start_job_or_report(setting, port, one.mode or setting.mode, one.batch)
    if job is None:
        return False
    reports = None
    try:
        reports = (_run_only_task(setting, setting.context(port), job, one, number),)
    except HoldfastError:
        pass  # its driver aborts the job
    else:
        port.call(Call(CLUSTER, "plan_commit", (_make_planned_commit(one, job, reports[0]),)))
    return commit_or_abort_job(replace(setting, tasks=1), port, job, reports)


def _make_planned_commit(one: OtherJob, job: JobRecord, report: TaskCommit) -> PlannedCommit:
    return PlannedCommit(one.name, job.job, report.attempt, job.mode)


def _run_only_task(
    setting: WorldSettings, ctx: CommitContext, job: JobRecord, one: OtherJob, number: int
) -> TaskCommit:
    """Run the only task: write a file into each directory."""
    with setting.committer.setup_task(ctx, job, 0) as running:
        for at, folder in enumerate(one.directories):
            name = make_chosen_file_name(0, at) if setting.chosen else running.file_name(".txt")
            sink = running.open(f"{folder}/{name}")
            sink.write(file_bytes(one.name.partition(" ")[0], 0, number, at))
            sink.close()
        return running.commit()
