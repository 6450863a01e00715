"""Run the units of one task."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.transactions.base import Backend
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import Job
from holdfast.units.statistics import Statistics
from holdfast.units.task_ledger import TaskLedger
from holdfast.units.unit import Unit
from holdfast.units.unit_loop import UnitLoop


class ShardTask:
    """An attempt at one task of a job.

    Guarantee: when `run` returns, every unit of the task has taken effect exactly once, durably, whatever other
    attempts have done. If it raises, some have, and another attempt goes on from there. After the end of the run to
    which it belongs, nothing takes effect.

    Args:
        run: which run of the job the attempt belongs to, if that can end before the attempt does.
    """

    def __init__(self, execution: UnitExecution, backend: Backend, job: Job, shard: int, *, run: str = "") -> None:
        self._execution = execution
        self._backend = backend
        self._ledger = TaskLedger(execution.database, job, shard, execution.statistics, run=run)
        self._loop = UnitLoop(execution, self._ledger)

    def run(self, units: Iterable[Unit]) -> Statistics:
        """Run all units, and return what happened.

        Args:
            units: in the order of their ids, each once, and the same in every attempt.

        Raises:
            InvalidRequestError: a unit's function failed. The message names the unit.
            TransactionConflictError: a unit conflicts however often it is tried.
            FencedError: the job was forgotten meanwhile, or its run has ended.
            ConflictError: the database has lost commits; run the task again.
            UnavailableError: the database did not come back in time.

        Crash: the units that have taken effect are recorded; run the task again.
        """
        with self._execution.alarm.ready():
            self._run_units(units)
        self._loop.measure()
        self._finish()
        return self._execution.statistics

    def _run_units(self, units: Iterable[Unit]) -> None:
        loop = self._loop
        loop.patiently(self._ledger.load)
        waiting: list[Unit] = []  # a full group, in whose commit the next one is read ahead
        group: list[Unit] = []
        for unit in units:
            group += loop.sort_out([unit])
            if len(group) >= loop.group_size:
                if self._execution.reads_ahead:
                    loop.run(waiting, group)
                    waiting = loop.sort_out(group)  # since they were seen, another attempt may have done them
                else:
                    loop.run(group)
                group = []
        loop.run(waiting, group)
        loop.run(loop.sort_out(group))
        loop.drain()

    def _finish(self) -> None:
        """Record that the task is finished, durably: once Spark has been told, it never runs the task again."""
        patiently, ledger = self._loop.patiently, self._ledger
        is_durable = False
        while not is_durable:
            patiently(ledger.finish)
            patiently(self._backend.make_durable)
            # A database that crashed before it was asked to make that durable has perhaps lost it. Another attempt may
            # have recorded the same since, which need not be durable yet.
            is_durable = patiently(ledger.is_unchanged)
