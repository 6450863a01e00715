"""Run jobs of computation units over a database that fails when it is told to, and say what units do in turn.

`Shaky` counts the calls of a database, and lets a test act before and after each. `Model` is a transaction over a
dictionary: the same functions run on it, one by one, to find the state that some order of the units gives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from holdfast.errors import ConflictError, OutcomeUnknownError, UnavailableError
from holdfast.records.batches import iter_records
from holdfast.records.database import Database
from holdfast.records.row_keys import Row, encode_row
from holdfast.runtime import Alarm, Environment, SeededRandom
from holdfast.transactions.base import Backend, Commit, LockingTransaction, Outcome, Record, ScanPage, SnapshotReader
from holdfast.transactions.memory import MemoryBackend
from holdfast.units.execution import UnitExecution
from holdfast.units.jobs import MAP, Job, begin_job, read_task_progress
from holdfast.units.progress import Statistics, TaskProgress, progress_range
from holdfast.units.shard_task import ShardTask
from holdfast.units.unit import Unit, UnitFunction, UnitReads, UnitSettings
from tests.clocks import CountingIds, SimulatedClock
from tests.forgetful_database import ForgetfulDatabase
from tests.patience import PATIENCE_S

__all__ = [
    "FAULTS",
    "Death",
    "Model",
    "Shaky",
    "UnitWorld",
    "change_at",
    "fail_at",
    "finish",
    "interleaved",
    "refused_after_failovers",
    "replayed",
    "units",
]

T = TypeVar("T")

_TABLE = "t"


class Death(BaseException):
    """The process ends here: nothing catches it."""


@dataclass
class Shaky(Backend):
    """A database that holds another one, and lets a test act before and after each call.

    Attributes:
        before, after: called with the number of the call, from 1, and its name; what they raise reaches the caller.
        calls: the names of all calls so far.
        last: what the last call has returned.
    """

    inner: Backend
    before: Callable[[int, str], object] = lambda _number, _name: None
    after: Callable[[int, str], object] = lambda _number, _name: None
    calls: list[str] = field(default_factory=list)
    last: object = None

    def _call(self, name: str, call: Callable[[], T]) -> T:
        self.calls.append(name)
        number = len(self.calls)
        self.before(number, name)
        self.last = result = call()
        self.after(number, name)
        return result

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return self._call("get_many", lambda: self.inner.get_many(keys))

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return self._call("scan", lambda: self.inner.scan(start, end, limit, guards))

    def commit(self, commit: Commit) -> Outcome:
        return self._call("commit", lambda: self.inner.commit(commit))

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return self._call("commit_group", lambda: self.inner.commit_group(commits))

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotReader]:
        with self.inner.snapshot() as reader:
            yield reader

    @contextmanager
    def begin_locking_transaction(self) -> Iterator[LockingTransaction]:
        with self.inner.begin_locking_transaction() as transaction:
            yield _ShakyLocked(self, transaction)

    def make_durable(self) -> None:
        self._call("make_durable", self.inner.make_durable)

    def close(self) -> None:
        self.inner.close()


class _ShakyLocked:
    def __init__(self, shaky: Shaky, inner: LockingTransaction) -> None:
        self._shaky = shaky
        self._inner = inner

    def read(self, keys: Collection[bytes], *, exclusive: bool) -> dict[bytes, Record]:
        return self._shaky._call("read", lambda: self._inner.read(keys, exclusive=exclusive))

    def scan(self, start: bytes, end: bytes, limit: int) -> ScanPage:
        return self._shaky._call("locked scan", lambda: self._inner.scan(start, end, limit))

    def apply(self, commit: Commit) -> Outcome:
        return self._shaky._call("apply", lambda: self._inner.apply(commit))


# --- faults -----------------------------------------------------------------------------------------------------------
_COMMITS = ("commit", "apply")

FAULTS = ("dies", "dies later", "lost with effect", "lost without effect", "unavailable")
"""What can happen to a call. Only the reply of a commit can be lost; a read is then unavailable."""


def fail_at(shaky: Shaky, call: int, fault: str) -> None:
    """Let one call of a database fail."""

    def before(number: int, name: str) -> None:
        if number != call:
            return
        if fault == "dies":
            raise Death
        if fault == "unavailable" or (fault == "lost without effect" and name not in _COMMITS):
            raise UnavailableError("the database is not available")
        if fault == "lost without effect":
            raise OutcomeUnknownError("the reply was lost")

    def after(number: int, name: str) -> None:
        if number == call and fault == "dies later":
            raise Death
        if number == call and fault == "lost with effect":
            raise OutcomeUnknownError("the reply was lost") if name in _COMMITS else UnavailableError("no reply")

    shaky.before, shaky.after = before, after


def change_at(call: int, act: Callable[[], object]) -> Callable[[int, str], None]:
    """Return a function that acts before one call."""

    def before(number: int, name: str) -> None:
        if number == call:
            act()

    return before


def refused_after_failovers(
    prepare: Callable[[Database], object], act: Callable[[Database], object], advice: str
) -> int:
    """Act on a database that loses commits, each number of them before each call; return how often that was refused.

    Args:
        prepare: makes what is never lost.
        act: fails if it succeeds without effect; it can be repeated.
        advice: what each refusal says.
    """
    quiet = Shaky(ForgetfulDatabase(keeps=False))
    db = Database(quiet, "memory://", Environment())
    prepare(db)
    quiet.calls.clear()
    act(db)
    refused = 0
    for call in range(1, len(quiet.calls) + 1):
        for lost in range(1, quiet.calls.count("commit") + 1):
            refused += _is_refused(prepare, act, advice, call, lost)
    return refused


def _is_refused(
    prepare: Callable[[Database], object], act: Callable[[Database], object], advice: str, call: int, lost: int
) -> bool:
    database = ForgetfulDatabase(keeps=False)
    shaky = Shaky(database)
    db = Database(shaky, "memory://", Environment())
    prepare(db)
    database.forget_nothing_before()
    shaky.calls.clear()
    shaky.before = change_at(call, lambda: database.forget(min(lost, database.newest)))
    try:
        act(db)
    except ConflictError as error:
        if advice not in str(error):
            raise
        act(db)
        return True
    return False


# --- jobs -------------------------------------------------------------------------------------------------------------
def finish(db: Backend, job: Job) -> None:
    """Record that the tasks of a job are finished, however far they are."""
    found = dict(iter_records(db, *progress_range(job.id)))
    done = {key: replace(TaskProgress.of(one.value), is_finished=True).to_bytes() for key, one in found.items()}
    db.commit(Commit(puts=done))


class UnitWorld:
    """A database with the table ``t``, and a job with one task or several.

    Args:
        database: holds the records; a new one in memory if none is given.
    """

    def __init__(self, database: Backend | None = None, *, shards: int = 1, name: str = "job", seed: int = 0) -> None:
        self.inner = MemoryBackend(CountingIds()) if database is None else database
        self.clock = SimulatedClock()
        self.environment = Environment(clock=self.clock, ids=CountingIds(seed << 20), chance=SeededRandom(seed))
        self.db = Database(self.inner, "memory://", self.environment)
        self.db.create_table(_TABLE, exist_ok=True)
        self.job = self.begin(name, shards)

    def begin(self, name: str, shards: int = 1) -> Job:
        return begin_job(self.inner, name, kind=MAP, shards=shards, environment=self.environment)

    def task(
        self,
        function: UnitFunction,
        settings: UnitSettings | None = None,
        *,
        database: Backend | None = None,
        shard: int = 0,
        reads: UnitReads | None = None,
        run: str = "",
    ) -> ShardTask:
        """Return an attempt at a task."""
        database = database or self.inner
        execution = UnitExecution(
            function, database, settings or UnitSettings(), self.environment, reads=reads, alarm=Alarm(is_on=False)
        )
        return ShardTask(execution, database, self.job, shard, run=run)

    def run(self, function: UnitFunction, keys: Iterable[Row], settings: UnitSettings | None = None) -> Statistics:
        """Run an attempt over units without values."""
        return self.task(function, settings).run(units(keys))

    @property
    def progress(self) -> TaskProgress:
        """How far the first task is."""
        return read_task_progress(self.inner, self.job)[0]

    @property
    def cells(self) -> dict[tuple[Row, str], Any]:
        """All cells of the table."""
        return {(row, column): one for row, found in self.db.scan(_TABLE) for column, one in found.items()}


def units(keys: Iterable[Row], value: object = None) -> list[Unit]:
    """Return units in the order of their ids."""
    return sorted((Unit.of(key, value) for key in keys), key=lambda unit: unit.id)


# --- what units mean --------------------------------------------------------------------------------------------------
class Model:
    """A transaction over a dictionary, with the calls of `UnitTransaction`; what it does takes effect at once."""

    def __init__(self, cells: dict[tuple[Row, str], Any] | None = None) -> None:
        self.cells: dict[tuple[Row, str], Any] = {} if cells is None else cells

    def get(self, table: str, row: Row, *, column: str = "value", default: Any = None) -> Any:
        return self.cells.get((row, column), default)

    def get_many(self, table: str, rows: Iterable[Row], *, column: str = "value") -> dict[Row, Any]:
        return {row: self.cells[row, column] for row in rows if (row, column) in self.cells}

    def get_row(self, table: str, row: Row) -> dict[str, Any]:
        return dict(sorted((column, one) for (found, column), one in self.cells.items() if found == row))

    def scan(
        self, table: str, *, start: Row | None = None, end: Row | None = None, limit: int | None = None
    ) -> list[tuple[Row, dict[str, Any]]]:
        rows = sorted({row for row, _column in self.cells}, key=encode_row)
        first, last = b"" if start is None else encode_row(start), b"\xff" if end is None else encode_row(end)
        return [(row, self.get_row(table, row)) for row in rows if first <= encode_row(row) < last][:limit]

    def put(self, table: str, row: Row, value: Any, *, column: str = "value") -> None:
        self.cells[row, column] = value

    def add(self, table: str, row: Row, amount: int = 1, *, column: str = "value") -> None:
        self.cells[row, column] = self.cells.get((row, column), 0) + amount

    def delete(self, table: str, row: Row, *, column: str = "value") -> None:
        self.cells.pop((row, column), None)


def replayed(function: UnitFunction, keys: Iterable[Row], value: object = None) -> dict[tuple[Row, str], Any]:
    """Return the cells after units ran one after the other."""
    model = Model()
    for key in keys:
        function(model, key, value)
    return model.cells


# --- two attempts -----------------------------------------------------------------------------------------------------
def interleaved(one: Callable[[Callable[[], None]], object], other: Callable[[Callable[[], None]], object]) -> None:
    """Run two attempts in turns: one up to a point, the other up to a point, then the first and the second to the end.

    Args:
        one, other: take a function that they call at their point; what they raise is raised here.
    """
    at_point, go_on = threading.Event(), threading.Event()
    failed: list[BaseException] = []

    def pause() -> None:
        at_point.set()
        assert go_on.wait(PATIENCE_S), "the first attempt has ended"

    def run() -> None:
        try:
            other(pause)
        except BaseException as error:  # noqa: BLE001 # raised in the thread of the test
            failed.append(error)
        finally:
            at_point.set()

    thread = threading.Thread(target=run)

    def begin_the_other() -> None:
        thread.start()
        assert at_point.wait(PATIENCE_S), "the other attempt has reached its point, or ended"

    try:
        one(begin_the_other)
    finally:
        go_on.set()
        with suppress(RuntimeError):  # it was never started
            thread.join(PATIENCE_S)
    if failed:
        raise failed[0]
