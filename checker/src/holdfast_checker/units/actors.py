"""Define the actors of a units world: task attempts and workers, and processes that interfere with them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass

from holdfast.errors import ConflictError, HoldfastError, NotFoundError, OutcomeUnknownError, UnavailableError
from holdfast.records.database import Database
from holdfast.records.row_keys import Row
from holdfast.runtime import Alarm, Environment, SeededRandom, SerialRunner
from holdfast.transactions.base import Record
from holdfast.units.execution import UnitExecution
from holdfast.units.job_input import JobInput, digest_task_units, iter_verified_units
from holdfast.units.jobs import MAP, Job, begin_job, end_job, forget_job, record_run_failure
from holdfast.units.progress import Statistics
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import CLIENT, SERVER, Unit, UnitSettings
from holdfast.units.work_list import WorkList
from holdfast.units.work_task import WorkTask
from holdfast_checker.framework.subject import GoalTracker
from holdfast_checker.kernel.calls import Call
from holdfast_checker.kernel.world import Port
from holdfast_checker.simulated.database import DATABASE
from holdfast_checker.units.contents import UnitsWorldContext
from holdfast_checker.units.database import DONE, GIVEN_UP, UNNEEDED, CommitAndReadHandle, UnitsHandle, WorkerClock
from holdfast_checker.units.scenes import LIST, ActorSpec
from holdfast_checker.units.scripts import CELLS, CellAccess, Shards, declared_cells_of, run_unit

_NOTED = ("conflicts", "deferred", "locked", "skipped", "stale", "unknown", "unavailable")
"""Statistics whose occurrence is a goal of the same name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorContext:
    """The configuration that all actors of a units world share.

    Attributes:
        jobs: the jobs that were begun before the execution starts, by name.
        known: records that never change, so that reading them is no step.
        work: the work list, if the world has one.
        tracker: records the coverage goals that executions reach.
    """

    setting: UnitsWorldContext
    jobs: Mapping[str, Job]
    known: Mapping[bytes, Record]
    work: WorkList | None = None
    tracker: GoalTracker | None = None

    def open(self, port: Port, *, reads_ahead: bool = False) -> tuple[UnitsHandle, Environment]:
        """Open the simulated database for a process; return its handle, and an environment with its clock and ids."""
        watched = self.work.range if self.work is not None else (b"", b"")
        database = (CommitAndReadHandle if reads_ahead else UnitsHandle)(port, self.known, watched)
        clock = WorkerClock(database, UnitSettings().lease_s)
        return database, Environment(clock=clock, ids=port, runner=SerialRunner(), chance=SeededRandom(1))

    def run_unit_script(self, cells: CellAccess, key: Row, value: object) -> None:
        """Run the script of a unit in its transaction; all simulated jobs have this function."""
        run_unit(cells, key, self.setting.scripts[str(key)])

    def declared_cells(self, key: Row, value: object) -> list[tuple[str, str]]:
        """Return the cells, as (table, row), that a unit declares to read before it runs."""
        return declared_cells_of(self.setting.scripts[str(key)])

    def record_goals(self, statistics: Statistics, database: UnitsHandle) -> None:
        """Record the coverage goals that a task attempt has reached, given its statistics."""
        if self.tracker is not None:
            self.tracker.reached.update(name for name in _NOTED if getattr(statistics, name))
            if isinstance(database, CommitAndReadHandle) and database.has_read_ahead:
                self.tracker.reached.add("ahead")


def run_actor(around: ActorContext, run: ActorSpec, port: Port) -> None:
    """Run a task attempt, a work-list worker or a driver with the shipped code, and report how it ended."""
    settings = UnitSettings(
        group=run.group,
        rounds=run.rounds,
        most_deferred=run.most_deferred,
        buffering=SERVER if run.is_locked else CLIENT,
    )
    if run.after and port.call(Call(DATABASE, "await", (run.after,))) in (DONE, UNNEEDED):
        _report_end(port, UNNEEDED)
        return
    database, environment = around.open(port, reads_ahead=run.reads_ahead)
    execution = UnitExecution(
        around.run_unit_script,
        database,
        settings,
        environment,
        reads=around.declared_cells if run.reads_ahead else None,
        emit_to=around.work,
        alarm=Alarm(is_on=False),
    )
    try:
        if run.job == LIST:
            _run_worker(around, run, execution, database)
        elif run.drives:
            _run_driver(around, run, execution, database)
        else:
            _run_task(around, run, execution, database, around.jobs[run.job])
    except HoldfastError as error:
        unit = error.variables.get("unit")
        _report_end(port, f"{type(error).__name__} {unit}" if unit is not None else type(error).__name__)
    else:
        unwanted = around.work.range if around.work is not None and run.job == LIST else (b"", b"")
        _report_end(port, DONE, around.setting.required_effects[port.name], unwanted)
    finally:
        around.record_goals(execution.statistics, database)


def _report_end(
    port: Port, how: str, wanted: tuple[bytes, ...] = (), unwanted: tuple[bytes, bytes] = (b"", b"")
) -> None:
    port.call(Call(DATABASE, "report", (port.name, how, wanted, unwanted)))


def _run_task(around: ActorContext, run: ActorSpec, execution: UnitExecution, database: UnitsHandle, job: Job) -> None:
    units = around.setting.scene.jobs[run.job][run.shard]
    ShardTask(execution, database, job, run.shard, run=run.run).run(Unit.of(key, None) for key in units)


def make_job_input(shards: Shards) -> JobInput:
    """Compute the input summary of a job (keys and counts by task), as the first pass over its rows does."""
    return JobInput([digest_task_units((Unit.of(key, None).id for key in units), repeats=False) for units in shards])


def _run_driver(around: ActorContext, run: ActorSpec, execution: UnitExecution, database: UnitsHandle) -> None:
    shards = [
        {key: units[key] for key in units if key not in run.without} for units in around.setting.scene.jobs[run.job]
    ]
    environment, found = execution.environment, make_job_input(tuple(shards))
    job = begin_job(database, run.job, kind=MAP, shards=len(shards), environment=environment, job_input=found)
    if job.is_finished:
        return
    for shard, units in enumerate(shards):
        rows = iter_verified_units(((Unit.of(key, None), 1) for key in units), found.tasks[shard])
        ShardTask(execution, database, job, shard).run(rows)
    end_job(database, job, {}, environment)


def _run_worker(around: ActorContext, run: ActorSpec, execution: UnitExecution, database: UnitsHandle) -> None:
    assert around.work is not None, "the world has a work list"
    job = around.jobs[LIST]
    WorkTask(execution, database, job, run.shard, around.work, repeat=lambda work, interval_s: nullcontext()).run()


# --- those who get in the way -----------------------------------------------------------------------------------------
def recreate_table(around: ActorContext, port: Port) -> None:
    """Drop the table of cells and create it again, as an administrator may do while tasks run."""
    database, environment = around.open(port)
    db = Database(database, "memory://", environment)
    # A crash may undo the drop, or the creation: then the table exists, or it does not.
    undone = (ConflictError, NotFoundError) if around.setting.scene.crashes else ()
    with suppress(OutcomeUnknownError, UnavailableError, *undone):
        db.drop_table(CELLS)
        db.create_table(CELLS)


def forget_job_records(around: ActorContext, job: str, port: Port) -> None:
    """Delete the records of a job while its tasks run, like ``holdfast database forget``."""
    database, environment = around.open(port)
    with suppress(OutcomeUnknownError, UnavailableError):
        forget_job(database, job, environment)


def end_run_early(around: ActorContext, run: str, port: Port) -> None:
    """End a run of a job early, like a driver that gives up while attempts run; report which units had no effect."""
    database, environment = around.open(port)
    with suppress(UnavailableError):
        record_run_failure(database, around.jobs["job"], run, environment)
        _report_end(port, GIVEN_UP, around.setting.required_effects[port.name])
