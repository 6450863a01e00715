"""The actors of a job: each runs the functions that ship, with a context over handles of its own.

Nothing here decides anything that the code under test decides; these functions do what Spark and Holdfast's edges do
around it: hand over the job, ask, report, and after a commit that raised call abort in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from holdfast.checker.jobs.cluster import CLUSTER, Order
from holdfast.checker.jobs.output import DESTINATION, HOME, content, directory, without_measurements
from holdfast.checker.kernel.calls import Call
from holdfast.checker.kernel.process import Port
from holdfast.checker.simulated_store import SimulatedStore
from holdfast.commit import (
    CommitContext,
    CommitSettings,
    Committer,
    JobRecord,
    Place,
    SaveMode,
    TaskAttempt,
    TaskCommit,
)
from holdfast.commit.recovery import recover
from holdfast.commit.snapshot import read_snapshot
from holdfast.errors import HoldfastError
from holdfast.seams import SerialRunner
from holdfast.stores.base import Capabilities

__all__ = [
    "LATER_S",
    "QUIET_S",
    "START_S",
    "Setting",
    "StillClock",
    "attempt_program",
    "cancel",
    "driver",
    "end_job",
    "network",
    "other_job",
    "reader",
    "recovery",
    "run_attempt",
    "second_driver",
    "time_of",
    "write_files",
]

START_S = 1_800_000_000.0
"""When the job runs, seconds since the epoch."""

LATER_S = START_S + 7200.0
"""When recovery runs: the job was quiet for longer than `QUIET_S`."""

QUIET_S = 3600.0


_SETTINGS = CommitSettings(
    part_size_bytes=1 << 20, allow_unsafe=True, conflict_attempts=6, finish_attempts=2, check_nesting=False
)


@dataclass(frozen=True, slots=True)
class StillClock:
    """Time stands still: when something happens is a matter of the scheduler."""

    at_s: float

    def now_s(self) -> float:
        return self.at_s

    def elapsed_s(self) -> float:
        return 0.0

    def sleep(self, duration_s: float) -> None:
        """Waiting is a matter of the scheduler."""


def time_of(actor: str) -> float:
    """When an actor acts: what the job wrote is old when recovery comes."""
    return LATER_S if actor in ("recovery", "second recovery", "reader", "other job") else START_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The part of a world that its actors know.

    Attributes:
        capabilities: by name of the resource.
        files: how many files each attempt writes.
        settings: with few repetitions, so that histories stay short.
    """

    committer: Committer
    capabilities: Mapping[str, Capabilities]
    tasks: int
    attempts: int
    files: int
    order: Order
    mode: SaveMode = SaveMode.APPEND
    settings: CommitSettings = _SETTINGS

    def context(self, port: Port, home: str = HOME) -> CommitContext:
        """A process's context: handles on the stores of the world, its own time and tokens, no threads."""

        def place(name: str, prefix: str) -> Place:
            store = SimulatedStore(port, name, self.capabilities[name])
            return Place(store=store, prefix=prefix, url=f"memory://{name}/{prefix}")

        staging = self.committer.staging
        return CommitContext(
            store=SimulatedStore(port, DESTINATION, self.capabilities[DESTINATION], without_measurements),
            prefix=home,
            url=f"memory://{DESTINATION}/{home}",
            scratch=place("scratch", f"{port.name}/") if staging else None,
            shared=place("shared", "") if staging else None,
            clock=StillClock(time_of(port.name)),
            ids=port,
            runner=SerialRunner(),
            settings=self.settings,
        )


def _ask(port: Port, operation: str, *args: object) -> object:
    return port.call(Call(CLUSTER, operation, args))


# --- drivers ----------------------------------------------------------------------------------------------------------
def driver(setting: Setting) -> Callable[[Port], None]:
    """Starts the job, waits for its tasks, commits; after a commit that raised, and if tasks fail, aborts."""

    def run(port: Port) -> None:
        try:
            job = setting.committer.start_job(setting.context(port), setting.mode, {})
        except HoldfastError as error:
            _ask(port, "tell", "refused", type(error).__name__)
            return
        assert job is not None, "no world ignores data"
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


def end_job(setting: Setting, port: Port, job: JobRecord, reports: tuple[TaskCommit, ...] | None) -> None:
    """Commit if there are reports, abort otherwise or after an error; then say how it went."""
    if reports is not None:
        try:
            outcome = setting.committer.commit_job(setting.context(port), job, reports, setting.tasks)
        except HoldfastError:
            pass  # Spark calls abort, in a process that knows nothing of this one
        else:
            _ask(port, "tell", "committed" if outcome.committed else "aborted", outcome.finished)
            return
    try:
        outcome = setting.committer.abort_job(setting.context(port), job)
    except HoldfastError as error:
        _ask(port, "tell", "unknown", type(error).__name__)
    else:
        _ask(port, "tell", "committed" if outcome.committed else "aborted", outcome.finished)


# --- tasks ------------------------------------------------------------------------------------------------------------
def attempt_program(setting: Setting, task: int, attempt: int) -> Callable[[Port], None]:
    """An attempt: writes its files, commits, reports."""

    def run(port: Port) -> None:
        run_attempt(setting, port, cast("JobRecord", _ask(port, "begin", task, attempt)), task, attempt)

    return run


def run_attempt(setting: Setting, port: Port, job: JobRecord, task: int, attempt: int) -> None:
    """What an attempt does once it has started."""
    try:
        with setting.committer.start_task(setting.context(port), job, task) as running:
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
        sink = running.open(f"{directory(attempt, number)}/{running.file_name('.txt')}")
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
    """Reads the destination once, through Holdfast."""

    def run(port: Port) -> None:
        try:
            found = read_snapshot(setting.context(port))
        except HoldfastError as error:
            _ask(port, "tell", "failed", type(error).__name__)
            return
        _ask(port, "tell", "read", tuple(sorted(file.path for file in found.files)))

    return run


def other_job(setting: Setting) -> Callable[[Port], None]:
    """Another job on the same destination, from start to end: one task with one file."""

    def run(port: Port) -> None:
        ctx = setting.context(port)
        committer = setting.committer
        try:
            job = committer.start_job(ctx, setting.mode, {})
            assert job is not None, "no world ignores data"
            with committer.start_task(ctx, job, 0) as running:
                sink = running.open(f"day=0/{running.file_name('.txt')}")
                sink.write(content("other", 0, 0, 0))
                sink.close()
                commit = running.commit()
            committer.commit_job(ctx, job, [commit], 1)
        except HoldfastError as error:
            _ask(port, "tell", "failed", type(error).__name__)
            return
        _ask(port, "tell", "committed", True)

    return run


def network(port: Port) -> None:
    """Cuts an executor off from the driver, once."""
    _ask(port, "lose")


def cancel(port: Port) -> None:
    """A person cancels the job while its tasks run."""
    _ask(port, "cancel")
