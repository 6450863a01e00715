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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from holdfast.errors import FencedError, InvalidRequestError, NotFoundError
from holdfast.records.batches import iter_records
from holdfast.records.cells import VALUE, decode_cell_value, rows_range, strip_update_counter
from holdfast.records.database import Database, DatabaseSnapshot, require_open_database
from holdfast.records.keys import column_bytes, parse_cell_key
from holdfast.records.row_keys import Row
from holdfast.records.values import Value
from holdfast.units.progress import Statistics
from holdfast.units.report import JobState, find_job_state
from holdfast.units.unit_loop import retry_while_unavailable

Number: TypeAlias = "int | float"

_MOST_TOP = 10_000
_MOST_SECONDS = 10**6
_MOST_SHOWN = 10
_RATE_VIEWS = 10
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class LargestValueRow:
    """A row with one of the largest values of the column, as part of a `View`."""

    row: Row
    value: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A summary of a table's column and of a job at one instant. `print` shows it in a few lines.

    Attributes:
        rows: number of rows that have the column.
        sum: the sum of their values.
        top: the rows with the largest values, the largest first.
        state: the state of the job; None if no job was named.
        units_per_s: the speed over the last views; None in the first view; from the job's report in the last view.
    """

    rows: int
    sum: Number
    top: Sequence[LargestValueRow]
    state: JobState | None = field(default=None, repr=False)  # it has the figures of all tasks
    units_per_s: float | None = None

    @property
    def done(self) -> int:
        """Return how many units of the job are done."""
        return 0 if self.state is None else self.state.done

    @property
    def units(self) -> int | None:
        """Return how many units the job has; None if that is not known."""
        return None if self.state is None else self.state.units

    @property
    def share(self) -> float | None:
        """Return the share of units that are done, from 0 to 1; None if it is not known how many there are."""
        return None if self.state is None else self.state.share

    @property
    def is_final(self) -> bool:
        """Return whether the job is finished: then everything is exact."""
        return self.state is not None and self.state.job.is_finished

    @property
    def ends_in_s(self) -> float | None:
        """Return in how many seconds the job is expected to end; None if that cannot be estimated."""
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
) -> Iterator[View]:
    """Yield summaries of a table while units write to it, until the job is finished; the last one is exact.

    Guarantee: each view is from one snapshot. Units never wait for a view, whose memory depends on `top` alone.
    Reading a view takes time in proportion to the table; at least as much time passes until the next one.

    Args:
        job: the job that writes to the table; without one, views have no progress, and there is no last one.
        top: how many of the rows with the largest values to show.
        column: the column with the values, which must be numbers. Views summarize only this column.
        every_s: seconds from one view to the next.

    Raises:
        InvalidRequestError: a value in the column is no number, or an argument is not valid.
        NotFoundError: there is no such table, or no such job.
        FencedError: the job was forgotten meanwhile.
        UnavailableError: the database did not come back within a minute.
    """
    require_open_database(database)
    if type(top) is not int or not 1 <= top <= _MOST_TOP:
        raise InvalidRequestError(f"top is a number from 1 to {_MOST_TOP:,}: change it", given=top)
    if type(every_s) not in (int, float) or not 0 <= every_s <= _MOST_SECONDS:
        raise InvalidRequestError(f"every_s is a number from 0 to {_MOST_SECONDS:,}: change it", given=every_s)
    return _iter_views(database, table, job, top, column, every_s)


def _iter_views(
    database: Database, table: str, job: str | None, top: int, column: str, every_s: float
) -> Iterator[View]:
    clock = database.environment.clock
    seen: deque[tuple[float, int]] = deque(maxlen=_RATE_VIEWS)  # when so many units were done
    job_id: int | None = None

    def read_view() -> View:
        with database.snapshot() as snapshot:
            state = None if job is None else _read_job_state(snapshot, job, job_id)
            return replace(summarize_column(snapshot, table, column, top), state=state)

    while True:
        before_s = clock.elapsed_s()
        view = retry_while_unavailable(read_view, _PATIENCE_S, database.environment, Statistics())
        now_s = clock.elapsed_s()
        if view.state is not None:
            job_id = view.state.job.id
            while seen and seen[-1][1] > view.done:
                seen.pop()  # the database has lost units
            seen.append((now_s, view.done))
            view = replace(view, units_per_s=_compute_rate(view.state, *seen[0], *seen[-1]))
        yield view
        if view.is_final:
            return
        took_s = now_s - before_s
        clock.sleep(max(every_s - took_s, took_s))


def _read_job_state(snapshot: DatabaseSnapshot, job: str, job_id: int | None) -> JobState:
    """Return how far a job is; after the first view, it is the one of that view."""
    try:
        state = find_job_state(snapshot.reader, job)
    except NotFoundError:
        if job_id is None:
            raise
        raise FencedError("the job was forgotten meanwhile", job=job) from None
    if job_id not in (None, state.job.id):
        raise FencedError("the job was forgotten and begun again meanwhile: watch it again", job=job)
    return state


def _compute_rate(state: JobState, first_s: float, first: int, last_s: float, last: int) -> float | None:
    """Return how many units are done per second: over the last views, at the end as the job's report says."""
    if state.report is not None:
        return state.report.units_per_s or None
    return (last - first) / (last_s - first_s) if last_s > first_s else None


# --- a column ---------------------------------------------------------------------------------------------------------
def summarize_column(snapshot: DatabaseSnapshot, table: str, column: str, most: int) -> View:
    """Read a column of a table in one pass: the number of rows, their sum, and those with the largest values.

    Args:
        most: how many of the largest rows to return and keep in memory. Of equal values, the first rows win.

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
    for key, stored in iter_records(snapshot.reader, *rows_range(definition)):
        record = strip_update_counter(definition, key, stored) if key.endswith(ending) else None
        if record is None:
            continue
        value = _require_number(decode_cell_value(key, record), key, table, column)
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
    top = [LargestValueRow(parse_cell_key(key)[0], value) for value, _place, key in sorted(heap, reverse=True)]
    return View(rows=rows, sum=_add_sums(whole, fractions, table, column) if has_fractions else whole, top=top)


def _add_sums(whole: int, fractions: float, table: str, column: str) -> float:
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


def _require_number(value: Value, key: bytes, table: str, column: str) -> Number:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or value in (math.inf, -math.inf)
        or value != value
    ):
        raise InvalidRequestError(
            "the column has a value that is not a finite number: choose another column",
            table=table,
            row=parse_cell_key(key)[0],
            column=column,
            type=type(value).__name__,
        )
    return value
