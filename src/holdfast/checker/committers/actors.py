"""The actors of a job: each runs the functions that ship, with a context over handles of its own.

Nothing here decides anything that the code under test decides; these functions do what Spark and Holdfast's edges do
around it: hand over the job, ask, report, and after a commit that raised call abort in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from holdfast.checker.committers.cluster import CLUSTER, Order
from holdfast.checker.committers.ledger import LOG_PREFIX
from holdfast.checker.committers.output import DESTINATION, HOME, chosen_name, content, directory, without_measurements
from holdfast.checker.committers.threads import ScheduledRunner, ThreadedPort
from holdfast.checker.kernel.calls import Call
from holdfast.checker.kernel.process import Port
from holdfast.checker.simulated_store.handle import SimulatedStore
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
from holdfast.commit.two_phase.stream_jobs import join_batch, plan_batch, settle_batch
from holdfast.errors import DestinationExistsError, HoldfastError
from holdfast.runtime import Environment, Runner, SerialRunner
from holdfast.runtime.simulated import StillClock
from holdfast.stores.base import Capabilities

__all__ = [
    "FINALLY_S",
    "LATER_S",
    "QUIET_S",
    "SETTINGS",
    "START_S",
    "OtherJob",
    "Setting",
    "attempt_program",
    "cancel",
    "driver",
    "end_job",
    "network",
    "reader",
    "recovery",
    "run_attempt",
    "second_driver",
    "start_job",
    "time_of",
    "write_files",
]

START_S = 1_800_000_000.0
"""When the job runs, seconds since the epoch."""

LATER_S = START_S + 7200.0
"""When recovery runs: the job was quiet for longer than `QUIET_S`."""

FINALLY_S = LATER_S + 7200.0
"""When all is over, and recovery finds every job quiet that is not known to live."""

QUIET_S = 3600.0


_REPLACING = (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)
SETTINGS = CommitSettings(
    part_size_bytes=1 << 20, allow_unsafe=True, conflict_attempts=6, finish_attempts=2, check_nesting=False
)
"""With few repetitions, so that histories stay short."""


def time_of(actor: str) -> float:
    """When an actor acts: what the job wrote is old when recovery comes, what other jobs write is not."""
    return START_S if actor in ("driver", "second driver") or actor.startswith("task ") else LATER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherJob:
    """Another job on the destination, from start to end in one process: one task with a file in each directory.

    Attributes:
        name: of the actor; its first word is in the files.
        mode: None for that of the job that is watched.
        later: whether it begins when the driver has ended or is gone.
        batch: which one of the stream it writes; None if it is no stream's.
        times: so many such jobs, one after the other.
        at_once: whether each of them is over before anybody else goes on: so worlds stay small.
    """

    name: str = "other job"
    mode: SaveMode | None = None
    later: bool = False
    directories: tuple[str, ...] = ("day=0",)
    batch: int | None = None
    times: int = 1
    at_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The part of a world that its actors know.

    Attributes:
        capabilities: by name of the resource.
        files: how many files each attempt writes.
        chosen: whether jobs name their files themselves, and all alike.
        batch: which one of a stream the job writes; None if it is no stream's.
        others: the other jobs.
        threads: how many calls a process makes side by side where it has work for so many.
        piecemeal: whether listings are made bit by bit, as on a file system.
        calm: whether nothing goes wrong and nobody is in the way: then every job has to be committed.
        settings: with few repetitions, so that histories stay short.
    """

    committer: Committer
    capabilities: Mapping[str, Capabilities]
    tasks: int
    attempts: int
    files: int
    order: Order
    mode: SaveMode = SaveMode.APPEND
    chosen: bool = False
    batch: int | None = None
    others: tuple[OtherJob, ...] = ()
    threads: int = 1
    piecemeal: bool = False
    calm: bool = False
    settings: CommitSettings = SETTINGS

    @property
    def replaces(self) -> bool:
        """Whether a job other than the driver's may replace what is there."""
        return any((one.mode or self.mode) in _REPLACING for one in self.others)

    def context(self, port: Port, home: str = HOME) -> CommitContext:
        """A process's context: handles on the stores of the world, its own time and tokens, none of its machine's."""
        runner: Runner = SerialRunner()
        if self.threads > 1:
            port = ThreadedPort(port)
            runner = ScheduledRunner(port, self.threads)

        def place(name: str, prefix: str) -> Place:
            store = SimulatedStore(port, name, self.capabilities[name])
            return Place(store=store, prefix=prefix, url=f"memory://{name}/{prefix}")

        can, staging = self.capabilities[DESTINATION], self.committer.staging
        store = SimulatedStore(port, DESTINATION, can, without_measurements, self.piecemeal)
        return CommitContext(
            store=store,
            prefix=home,
            url=f"memory://{DESTINATION}/{home}",
            staging=StagingPlaces(scratch=place("scratch", f"{port.name}/"), shared=place("shared", ""))
            if staging
            else None,
            settings=self.settings,
            environment=Environment(clock=StillClock(time_of(port.name)), ids=port, runner=runner),
        )


def _ask(port: Port, operation: str, *args: object) -> object:
    return port.call(Call(CLUSTER, operation, args))


# --- drivers ----------------------------------------------------------------------------------------------------------
def start_job(setting: Setting, port: Port, mode: SaveMode, batch: int | None) -> JobRecord | None:
    """Start a job, or say why not: refused, or skipped because there is nothing to do."""
    ctx = setting.context(port)
    try:
        if batch is None:
            job = setting.committer.setup_job(ctx, mode, {})
        else:
            stream = StreamBatch(stream="stream", checkpoint="checkpoint", batch=batch)
            job = join_batch(ctx, plan_batch(ctx, mode, {}), stream)
            if job is None:
                settle_batch(ctx)
    except HoldfastError as error:
        _ask(port, "tell", "refused" if isinstance(error, DestinationExistsError) else "failed", type(error).__name__)
        return None
    if job is None:
        _ask(port, "tell", "skipped", None)
    return job


def driver(setting: Setting) -> Callable[[Port], None]:
    """Starts the job, waits for its tasks, commits; after a commit that raised, and if tasks fail, aborts."""

    def run(port: Port) -> None:
        job = start_job(setting, port, setting.mode, setting.batch)
        if job is None:
            return
        _ask(port, "post_job", job)
        reports = cast("tuple[TaskCommit, ...] | None", _ask(port, "await_tasks"))
        end_job(setting, port, job, reports)

    return run


def second_driver(setting: Setting) -> Callable[[Port], None]:
    """The same job's commit or abort in another process, as Spark calls it after it took the first one for dead."""

    def run(port: Port) -> None:
        job, reports = cast("tuple[JobRecord, tuple[TaskCommit, ...] | None]", _ask(port, "take_over"))
        end_job(setting, port, job, reports)

    return run


def end_job(setting: Setting, port: Port, job: JobRecord, reports: tuple[TaskCommit, ...] | None) -> bool:
    """Commit if there are reports, abort otherwise or after an error; then say how it went.

    Returns:
        Whether the job is committed.
    """
    if reports is not None:
        try:
            outcome = setting.committer.commit_job(setting.context(port), job, reports, setting.tasks)
        except HoldfastError:
            pass  # Spark calls abort, in a process that knows nothing of this one
        else:
            _ask(port, "tell", "committed" if outcome.committed else "aborted", outcome.finished)
            return outcome.committed
    try:
        outcome = setting.committer.abort_job(setting.context(port), job)
    except HoldfastError as error:
        _ask(port, "tell", "unknown", type(error).__name__)
        return False
    _ask(port, "tell", "committed" if outcome.committed else "aborted", outcome.finished)
    return outcome.committed


# --- tasks ------------------------------------------------------------------------------------------------------------
def attempt_program(setting: Setting, task: int, attempt: int) -> Callable[[Port], None]:
    """An attempt: writes its files, commits, reports."""

    def run(port: Port) -> None:
        run_attempt(setting, port, cast("JobRecord", _ask(port, "begin", task, attempt)), task, attempt)

    return run


def run_attempt(setting: Setting, port: Port, job: JobRecord, task: int, attempt: int) -> None:
    """What an attempt does once it has started."""
    try:
        with setting.committer.setup_task(setting.context(port), job, task) as running:
            write_files(setting, running, task, attempt)
            if setting.order is Order.ASK_FIRST and not _ask(port, "may_commit", task, attempt):
                return
            commit = running.commit()
    except HoldfastError:
        _ask(port, "fail", task, attempt)
        return
    _ask(port, "report", task, attempt, commit)


def write_files(setting: Setting, running: TaskAttempt, task: int, attempt: int) -> None:
    """An attempt's files, which say whose they are."""
    for number in range(setting.files):
        name = chosen_name(task, number) if setting.chosen else running.file_name(".txt")
        sink = running.open(f"{directory(attempt, number)}/{name}")
        sink.write(content("main", task, attempt, number))
        sink.close()


# --- others -----------------------------------------------------------------------------------------------------------
def recovery(setting: Setting) -> Callable[[Port], None]:
    """`holdfast recover`, for jobs that were quiet for an hour."""

    def run(port: Port) -> None:
        _ask(port, "take_for_dead")
        try:
            report = recover(setting.context(port), older_than_s=QUIET_S, committers=(setting.committer,))
        except HoldfastError as error:
            _ask(port, "tell", "failed", type(error).__name__)
            return
        _ask(port, "tell", "recovered", tuple(sorted((str(job.job), job.action.value) for job in report.jobs)))

    return run


def reader(setting: Setting) -> Callable[[Port], None]:
    """Reads the destination once, through Holdfast, and says since when and until when it looked."""

    def run(port: Port) -> None:
        since = port.call(Call(DESTINATION, "notes", (LOG_PREFIX,)))
        try:
            found = read_snapshot(setting.context(port))
        except HoldfastError as error:
            _ask(port, "tell", "failed", type(error).__name__)
            return
        until = port.call(Call(DESTINATION, "notes", (LOG_PREFIX,)))
        _ask(port, "tell", "read", (since, until, tuple(sorted(file.path for file in found.files))))

    return run


def network(port: Port) -> None:
    """Cuts an executor off from the driver, once."""
    _ask(port, "lose")


def cancel(port: Port) -> None:
    """A person cancels the job while its tasks run."""
    _ask(port, "cancel")
