"""Watch a table grow while units write to it: online aggregation, as in paper 003 (5.4).

Each view comes from one snapshot, with the progress of the job in it. A unit and the record that it is done take effect
in one step, so the sum of a column is always that of exactly the units that the view calls done. No unit waits for it.

Worked composition::

    for view in watch(database, "words", job="count words"):
        print(view.share, [(one.row, one.value, one.final) for one in view.top])

Source: Hellerstein, Haas and Wang, "Online aggregation" (1997). What the estimates assume is in `estimates`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeVar

from holdfast.errors import FencedError, InvalidRequestError, NotFoundError
from holdfast.records.cells import VALUE
from holdfast.records.database import Database
from holdfast.records.opening import require_open_database
from holdfast.records.row_keys import Row
from holdfast.transactions.base import MAX_NUMBER
from holdfast.units.column_totals import ColumnTotals, LargeCell, Number, read_column
from holdfast.units.estimates import (
    CONFIDENCE,
    Dispersion,
    Estimate,
    Looks,
    chance_of_change,
    final_value,
    is_usable,
)
from holdfast.units.job_state import JobState, read_state, share_of
from holdfast.units.jobs import find_job
from holdfast.units.patience import patiently
from holdfast.units.statistics import Statistics

T = TypeVar("T")

_MOST_TOP = 10_000
_SPARE_ROWS = 10
_MOST_TOLD = 10
_RATE_VIEWS = 10
_PATIENCE_S = 60.0
_BEGIN_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class TopRow:
    """One of the rows with the largest values.

    Attributes:
        final: what it is expected to hold when the job is finished; None if nothing can be said.
    """

    row: Row
    value: Number
    final: Estimate | None = None


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
        is_steady: False if the units that are done do not look like a sample of all, so that the estimates are not to
            be trusted; None if it is too early to tell.
        is_certain: whether `top` has the same rows at the end, with 95 % probability, in whatever order.
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
    is_steady: bool | None = None
    is_certain: bool = False
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
        lines += [f"{one.row!r}: {_told(one)}" for one in self.top[:_MOST_TOLD]]
        if len(self.top) > _MOST_TOLD:
            lines.append(f"and {len(self.top) - _MOST_TOLD:,} more rows in top")
        return "\n".join(lines)


def _told(one: TopRow) -> str:
    if one.final is None or one.final.low == one.final.high:
        return f"{one.value:,}"
    return f"{one.value:,}, at the end {one.final.low:,.0f} to {one.final.high:,.0f}"


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
        job: the job that writes to the table; without one, views have no estimates, and there is no last one.
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
    _check_count("top", top, 1, _MOST_TOP)
    if units is not None:
        _check_count("units", units, 0, MAX_NUMBER)
    _check_seconds("every_s", every_s)
    _check_seconds("begin_within_s", begin_within_s)
    return _views(_Watch(database, table, job, top, column, units), every_s, begin_within_s)


def _check_count(name: str, given: object, least: int, most: int) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise InvalidRequestError(f"{name} is a number from {least} to {most}: change it", given=given)


def _check_seconds(name: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 10**7:
        raise InvalidRequestError(f"{name} is a number of seconds that is at least 0: change it", given=given)


def _views(found: _Watch, every_s: float, begin_within_s: float) -> Iterator[View]:
    clock = found.database.environment.clock
    view = found.first(begin_within_s)
    while True:
        yield view
        if view.is_final:
            return
        clock.sleep(max(every_s - view.took_s, view.took_s))
        view = found.look()


class _Watch:
    """Reads views, and remembers what the estimates need of those before."""

    def __init__(
        self, database: Database, table: str, job: str | None, top: int, column: str, units: int | None
    ) -> None:
        self.database = database
        self._table = table
        self._job = job
        self._top = top
        self._column = column
        self._units = units
        self._job_id: int | None = None
        self._looks = Looks()
        self._rates: deque[tuple[float, int]] = deque(maxlen=_RATE_VIEWS)
        self._moved_s: float  # when a unit was last seen to be done

    def first(self, begin_within_s: float) -> View:
        """Return the first view, as soon as there are such a job and such a table."""
        clock = self.database.environment.clock
        began_s = clock.elapsed_s()
        while True:
            try:
                return self.look()
            except NotFoundError:
                if self._job is None or self._is_over(self._job) or clock.elapsed_s() - began_s >= begin_within_s:
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
        totals, state = _patiently(self.database, self._read)
        now_s = clock.elapsed_s()
        took_s = now_s - before_s
        if state is None:
            top = [TopRow(one.row, one.value) for one in totals.largest[: self._top]]
            return View(rows=totals.rows, sum=totals.sum, top=top, took_s=took_s)
        if self._job_id not in (None, state.job.id):
            raise FencedError("the job was forgotten and begun again meanwhile: watch it again", job=self._job)
        self._job_id = state.job.id
        while self._rates and self._rates[-1][1] > state.done:
            self._rates.pop()  # the database has lost units
        if not self._rates or self._rates[-1][1] != state.done:
            self._moved_s = now_s
        self._rates.append((now_s, state.done))
        return self._view(totals, state, took_s=took_s, idle_s=now_s - self._moved_s)

    def _read(self) -> tuple[ColumnTotals, JobState | None]:
        with self.database.snapshot() as snapshot:
            state: JobState | None = None
            if self._job is not None:
                try:
                    state = read_state(snapshot.reader, self._job)
                except NotFoundError:
                    if self._job_id is None:
                        raise
                    raise FencedError("the job was forgotten meanwhile", job=self._job) from None
            return read_column(snapshot, self._table, self._column, 2 * self._top + _SPARE_ROWS), state

    def _view(self, totals: ColumnTotals, state: JobState, *, took_s: float, idle_s: float) -> View:
        is_final = state.job.is_finished
        units = state.units(self._units)
        self._looks.note(state.done, {one.key: float(one.value) for one in totals.largest if is_usable(one.value)})
        dispersion = None if is_final else self._looks.dispersion()
        outlook = None if dispersion is None else _Outlook(totals, state.done, units, dispersion)
        top = totals.largest[: self._top]
        if is_final:
            rows = [TopRow(one.row, one.value, Estimate(one.value, one.value, one.value)) for one in top]
        else:
            rows = [TopRow(one.row, one.value, None if outlook is None else outlook.final(one)) for one in top]
        return View(
            rows=totals.rows,
            sum=totals.sum,
            top=rows,
            state=state,
            units=units,
            units_per_s=self._rate(state),
            idle_s=idle_s,
            is_steady=None if dispersion is None else dispersion.is_steady,
            is_certain=is_final or (outlook is not None and outlook.is_certain(self._top)),
            is_final=is_final,
            took_s=took_s,
        )

    def _rate(self, state: JobState) -> float | None:
        """Return how many units are done per second: over the last views, at the end as the job's report says."""
        if state.report is not None:
            return state.report.units_per_s or None
        (first_s, first), (last_s, last) = self._rates[0], self._rates[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else None


def _patiently(database: Database, call: Callable[[], T]) -> T:
    return patiently(call, _PATIENCE_S, database.environment, Statistics())


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What the units that are done say about the end of the job."""

    totals: ColumnTotals
    done: int
    units: int | None
    dispersion: Dispersion

    def final(self, cell: LargeCell) -> Estimate | None:
        """Estimate the final value of a row."""
        if not is_usable(cell.value):
            return None
        return final_value(
            float(cell.value),
            self.done,
            self.units,
            self.dispersion.of(cell.key),
            degrees=self.dispersion.degrees,
            rows=self.totals.rows,
        )

    def is_certain(self, top: int) -> bool:
        """Check whether the first rows are those of the end, with the stated confidence."""
        usable = takewhile(lambda one: is_usable(one.value), self.totals.largest)
        known = [(float(one.value), self.dispersion.of(one.key)) for one in usable]
        if self.dispersion.is_steady is False or len(known) <= top or not is_usable(self.totals.sum):
            return False
        chance = chance_of_change(
            known,
            top,
            rows=self.totals.rows,
            total_value=float(self.totals.sum),
            done=self.done,
            total=self.units,
            degrees=self.dispersion.degrees,
        )
        return chance <= 1 - CONFIDENCE
