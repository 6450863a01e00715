"""Watch a table grow while units write to it: online aggregation and top-k, as in paper 003 (5.4).

Each view comes from one snapshot, with the progress of the job in it. A unit and the record that it is done take effect
in one step, so the sum of a column is always that of exactly the units that the view calls done. No unit waits for it.

Worked composition::

    for view in watch(db, "words", job="count words"):
        print(view.share, [(one.row, one.value) for one in view.top])
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from holdfast.errors import FencedError, InvalidRequestError, NotFoundError
from holdfast.records.cells import VALUE, present, read_cells, rows_range, value_of
from holdfast.records.database import Database, DatabaseSnapshot, require_open_database
from holdfast.records.keys import cell_of, column_bytes
from holdfast.records.row_keys import Row
from holdfast.records.values import Value
from holdfast.transactions.base import MAX_NUMBER
from holdfast.units.jobs import find_job
from holdfast.units.progress import Statistics
from holdfast.units.report import JobState, read_state, share_of
from holdfast.units.unit_loop import patiently

Number: TypeAlias = "int | float"

T = TypeVar("T")

_MOST_TOP = 10_000
_MOST_SECONDS = 10**6
_MOST_SHOWN = 10
_RATE_VIEWS = 10
_PATIENCE_S = 60.0
_BEGIN_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class TopRow:
    """One of the rows with the largest values."""

    row: Row
    value: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A table and a job at one instant. `print` shows it in a few lines.

    Attributes:
        rows: number of rows that have the column.
        sum: of their values.
        top: the rows with the largest values, the largest first.
        state: how far the job is; None if no job was named.
        units: how many units the job has; None if nobody knows.
        units_per_s: over the last views; None in the first one; in the last one that of the job's report.
        idle_s: seconds since the view in which a unit was last seen to be done.
        is_final: whether the job is finished: then everything is exact.
        took_s: how long reading took, seconds.
    """

    rows: int
    sum: Number
    top: Sequence[TopRow]
    state: JobState | None = field(default=None, repr=False)  # it has the figures of all tasks
    units: int | None = None
    units_per_s: float | None = None
    idle_s: float = 0.0
    is_final: bool = False
    took_s: float = 0.0

    @property
    def done(self) -> int:
        """How many units of the job are done."""
        return 0 if self.state is None else self.state.done

    @property
    def share(self) -> float | None:
        """Which share of the units is done, from 0 to 1; None if it is not known how many there are."""
        return share_of(self.done, self.units)

    @property
    def ends_in_s(self) -> float | None:
        """In how many seconds the job is expected to end; None if nothing can be said."""
        if self.is_final:
            return 0.0
        if self.units is None or not self.units_per_s:
            return None
        return max(0, self.units - self.done) / self.units_per_s

    def __str__(self) -> str:
        lines = [f"{self.rows:,} rows, sum {self.sum:,}"]
        if self.state is not None:
            known = "an unknown number of" if self.units is None else f"{self.units:,}"
            rate = "" if self.units_per_s is None else f", {self.units_per_s:,.0f}/s"
            lines.insert(0, f"{self.state.job.name}: {self.done:,} of {known} units done{rate}")
        lines += [f"{one.row!r}: {one.value:,}" for one in self.top[:_MOST_SHOWN]]
        if len(self.top) > _MOST_SHOWN:
            lines.append(f"and {len(self.top) - _MOST_SHOWN:,} more rows in top")
        return "\n".join(lines)


def watch(
    database: Database,
    table: str,
    *,
    job: str | None = None,
    top: int = 10,
    column: str = VALUE,
    every_s: float = 1.0,
    units: int | None = None,
    begin_within_s: float = 60.0,
) -> Iterator[View]:
    """Yield views of a table, until the job is finished; the last one is exact.

    Guarantee: each view is from one snapshot. Units never wait for it, and the memory that it needs depends on `top`
    alone. Reading a view takes time in proportion to the table; at least as much time passes until the next one.

    Args:
        job: the job that writes to the table; without one, views have no progress, and there is no last one.
        top: how many of the rows with the largest values to show.
        column: which one has the values; all are numbers. What a view sums up is in this column alone.
        every_s: seconds from one view to the next.
        units: how many units the job has, if you know it, and Holdfast does not: that of a work list.
        begin_within_s: how long to wait until there is such a job, and such a table, seconds.

    Raises:
        InvalidRequestError: a value in the column is no number, or an argument is not valid.
        NotFoundError: there is no such table, or no such job, also after the wait.
        FencedError: the job was forgotten meanwhile.
        UnavailableError: the database did not come back within a minute.
    """
    require_open_database(database)
    _check("top", top, 1, _MOST_TOP)
    _check("units", 0 if units is None else units, 0, MAX_NUMBER)
    _check("every_s", every_s, 0, _MOST_SECONDS, float)
    _check("begin_within_s", begin_within_s, 0, _MOST_SECONDS, float)
    return _views(_Watch(database, table, job, top, column, units), every_s, begin_within_s)


def _check(name: str, given: Any, least: int, most: int, kind: type = int) -> None:
    is_number = isinstance(given, int | kind) and not isinstance(given, bool)
    if not is_number or not least <= given <= most:
        raise InvalidRequestError(f"{name} is a number from {least} to {most:,}: change it", given=given)


def _views(found: _Watch, every_s: float, begin_within_s: float) -> Iterator[View]:
    clock = found.database.environment.clock
    view = found.first(begin_within_s)
    while True:
        yield view
        if view.is_final:
            return
        clock.sleep(max(every_s - view.took_s, view.took_s))
        view = found.look()


@dataclass
class _Watch:
    """Reads views, and remembers when units were done."""

    database: Database
    table: str
    job: str | None
    top: int
    column: str
    given_units: int | None
    _job_id: int | None = None
    _rates: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_RATE_VIEWS))
    _moved_s: float = 0.0  # when a unit was last seen to be done

    def first(self, begin_within_s: float) -> View:
        """Return the first view, as soon as there are such a job and such a table."""
        clock = self.database.environment.clock
        began_s = clock.elapsed_s()
        while True:
            try:
                return self.look()
            except NotFoundError:
                if self.job is None or self._is_over(self.job) or clock.elapsed_s() - began_s >= begin_within_s:
                    raise
            clock.sleep(_BEGIN_POLL_S)

    def _is_over(self, job: str) -> bool:
        """Check whether the job is finished already: then no table comes into being anymore."""
        with suppress(NotFoundError):
            return _patiently(self.database, lambda: find_job(self.database.backend, job)).is_finished
        return False

    def look(self) -> View:
        """Return a view."""
        clock = self.database.environment.clock
        before_s = clock.elapsed_s()
        view, state = _patiently(self.database, self._read)
        now_s = clock.elapsed_s()
        took_s = now_s - before_s
        if state is None:
            return replace(view, took_s=took_s)
        if self._job_id not in (None, state.job.id):
            raise FencedError("the job was forgotten and begun again meanwhile: watch it again", job=self.job)
        self._job_id = state.job.id
        while self._rates and self._rates[-1][1] > state.done:
            self._rates.pop()  # the database has lost units
        if not self._rates or self._rates[-1][1] != state.done:
            self._moved_s = now_s
        self._rates.append((now_s, state.done))
        return replace(
            view,
            state=state,
            units=state.units(self.given_units),
            units_per_s=self._rate(state),
            idle_s=now_s - self._moved_s,
            is_final=state.job.is_finished,
            took_s=took_s,
        )

    def _read(self) -> tuple[View, JobState | None]:
        with self.database.snapshot() as snapshot:
            state: JobState | None = None
            if self.job is not None:
                try:
                    state = read_state(snapshot.reader, self.job)
                except NotFoundError:
                    if self._job_id is None:
                        raise
                    raise FencedError("the job was forgotten meanwhile", job=self.job) from None
            return read_column(snapshot, self.table, self.column, self.top), state

    def _rate(self, state: JobState) -> float | None:
        """Return how many units are done per second: over the last views, at the end as the job's report says."""
        if state.report is not None:
            return state.report.units_per_s or None
        (first_s, first), (last_s, last) = self._rates[0], self._rates[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else None


def _patiently(database: Database, call: Callable[[], T]) -> T:
    return patiently(call, _PATIENCE_S, database.environment, Statistics())


# --- a column ---------------------------------------------------------------------------------------------------------
def read_column(snapshot: DatabaseSnapshot, table: str, column: str, most: int) -> View:
    """Read a column in one pass: how many rows have it, their sum, and those with the largest values.

    Args:
        most: how many of the largest rows to return: no more than these are in memory. Of equal ones, the first counts.

    Raises:
        NotFoundError: there is no such table.
        InvalidRequestError: a value is no finite number: choose another column.
    """
    definition = snapshot.table(table)
    # No row ends with a part of a column's name: its encoding ends with a zero byte, which names do not contain.
    ending = b"\0" + column_bytes(column)
    heap: list[tuple[Number, int, bytes]] = []
    rows, whole, fractions = 0, 0, 0.0
    has_fractions = False
    for key, stored in read_cells(snapshot.reader, *rows_range(definition)):
        content = present(definition, key, stored) if key.endswith(ending) else None
        if content is None:
            continue
        value = _number(value_of(key, content), key, table, column)
        rows += 1
        if isinstance(value, int):
            whole += value
        else:
            fractions += value
            has_fractions = True
        if len(heap) < most:
            heapq.heappush(heap, (value, -rows, key))
        elif value > heap[0][0]:
            heapq.heapreplace(heap, (value, -rows, key))
    top = [TopRow(cell_of(key)[0], value) for value, _place, key in sorted(heap, reverse=True)]
    return View(rows=rows, sum=_sum(whole, fractions, table, column) if has_fractions else whole, top=top)


def _sum(whole: int, fractions: float, table: str, column: str) -> float:
    try:
        found = whole + fractions
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise InvalidRequestError(
            "the sum of the column is too large for a float: choose another column, or store integers only",
            table=table,
            column=column,
        )
    return found


def _number(value: Value, key: bytes, table: str, column: str) -> Number:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or value in (math.inf, -math.inf)
        or value != value
    ):
        raise InvalidRequestError(
            "the column has a value that is not a finite number: choose another column",
            table=table,
            row=cell_of(key)[0],
            column=column,
            type=type(value).__name__,
        )
    return value
