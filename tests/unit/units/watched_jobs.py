"""Run jobs of units, task by task, so that tests can watch them in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.records.database import Database
from holdfast.runtime import Alarm, Environment, SeededRandom
from holdfast.transactions.memory import MemoryBackend
from holdfast.units.execution import UnitExecution
from holdfast.units.job_input import JobInput, digest_task_units
from holdfast.units.jobs import MAP, Job, begin_job, end_job, read_task_progress
from holdfast.units.progress import Statistics
from holdfast.units.report import JobReport
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import Unit, UnitSettings
from tests.clocks import CountingIds, SimulatedClock

__all__ = ["TABLE", "RunningClock", "WatchedJob", "add_words", "memory_db", "text"]

TABLE = "words"


@dataclass
class RunningClock(SimulatedClock):
    """A simulated clock that lets a job go on whenever somebody waits."""

    meanwhile: list[Callable[[], object]] = field(default_factory=list)

    def sleep(self, duration_s: float) -> None:
        super().sleep(duration_s)
        if self.meanwhile:
            self.meanwhile.pop(0)()


def memory_db(clock: SimulatedClock | None = None) -> Database:
    """Return a database in memory, in a simulated world, with an empty table."""
    environment = Environment(clock=clock or RunningClock(), ids=CountingIds(), chance=SeededRandom(1))
    db = Database(MemoryBackend(environment.ids), "memory://test", environment)
    db.create_table(TABLE)
    return db


def text(lines: int, words: int = 10, vocabulary: int = 50, seed: int = 1) -> list[list[str]]:
    """Return lines of words, of which the first ones are the most frequent."""
    random = SeededRandom(seed)
    return [[f"w{int(vocabulary ** random.fraction()):02}" for _ in range(words)] for _ in range(lines)]


def add_words(txn: Any, key: int, words: list[str]) -> None:
    """Count the words of a line."""
    for word in words:
        txn.add(TABLE, word)


@dataclass
class WatchedJob:
    """A job over lines of text, dealt to its tasks one after the other.

    Attributes:
        function: that of the units.
    """

    db: Database
    lines: Sequence[list[str]]
    shards: int = 4
    name: str = "count"
    group: int = 8
    function: Callable[..., object] = add_words
    job: Job | None = None

    def begin(self) -> Job:
        """Begin the job, or go on with it."""
        environment = self.db.environment
        shards = [(unit.id for unit in self.units(shard)) for shard in range(self.shards)]
        self.job = begin_job(
            self.db.backend,
            self.name,
            kind=MAP,
            shards=self.shards,
            job_input=JobInput([digest_task_units(ids, repeats=False) for ids in shards]),
            environment=environment,
        )
        return self.job

    def units(self, shard: int) -> list[Unit]:
        """Return the units of a task."""
        return [Unit.of(number, self.lines[number]) for number in range(shard, len(self.lines), self.shards)]

    def run(self, shard: int, units: Iterable[Unit] | None = None) -> Statistics:
        """Run a task."""
        job = self.job or self.begin()
        execution = UnitExecution(
            self.function,
            self.db.backend,
            UnitSettings(group=self.group),
            self.db.environment,
            alarm=Alarm(is_on=False),
        )
        return ShardTask(execution, self.db.backend, job, shard).run(self.units(shard) if units is None else units)

    def end(self) -> None:
        """Record that the job is finished."""
        job = self.job or self.begin()
        progress = read_task_progress(self.db.backend, job)
        seconds = self.db.environment.clock.now_s() - job.began_s
        report = JobReport.of_progress(job, progress, seconds)
        end_job(self.db.backend, job, report.to_json(), self.db.environment)

    def steps(self) -> list[Callable[[], object]]:
        """Return what remains to be done after the begin, for a `RunningClock`."""
        return [*((lambda shard=shard: self.run(shard)) for shard in range(self.shards)), self.end]
