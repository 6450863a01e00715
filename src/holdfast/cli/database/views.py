"""Show views of a table that grows: as JSON, as a line, and as a table with its captions."""

from __future__ import annotations

from holdfast.cli.database.forms import json_row, json_value, row_text, value_text
from holdfast.cli.output import Captioned, duration
from holdfast.units.aggregation import TopRow, View
from holdfast.units.estimates import CONFIDENCE, Estimate
from holdfast.wording import counted, percent

_LONGEST_GROUPED = 10**18
_IDLE_S = 10.0
_FIRST = 3


# --- JSON -------------------------------------------------------------------------------------------------------------
def view_form(view: View) -> dict[str, object]:
    """Return a view for programs."""
    found: dict[str, object] = {
        "rows": view.rows,
        "sum": json_value(view.sum),
        "top": [
            {"row": json_row(one.row), "value": json_value(one.value), "final": _estimate_form(one.final)}
            for one in view.top
        ],
    }
    state = view.state
    if state is None:
        return found
    return {
        **found,
        "job": state.job.name,
        "done": view.done,
        "deferred": state.deferred,
        "units": view.units,
        "share": view.share,
        "tasks": state.job.shards,
        "tasks_finished": state.finished,
        "units_per_s": view.units_per_s,
        "ends_in_s": view.ends_in_s,
        "idle_s": round(view.idle_s, 3),
        "is_steady": view.is_steady,
        "is_certain": view.is_certain,
        "is_final": view.is_final,
    }


def _estimate_form(found: Estimate | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {"value": json_value(found.value), "low": json_value(found.low), "high": json_value(found.high)}


# --- for people -------------------------------------------------------------------------------------------------------
def view_line(view: View) -> str:
    """Return a view on one line."""
    first = ", ".join(f"{row_text(one.row)} {_number(one.value)}" for one in view.top[:_FIRST])
    parts = [_progress(view), f"{counted(view.rows, 'row')}, sum {_number(view.sum)}", first]
    return "; ".join(part for part in parts if part)


def view_table(view: View, table: str, column: str) -> Captioned:
    """Return a view as a table."""
    columns = ["row", "now"]
    rows = [[row_text(one.row), _number(one.value)] for one in view.top]
    if view.state is not None and not view.is_final:
        columns += ["at the end", "at least", "at most"]
        for row, one in zip(rows, view.top, strict=True):
            row += _expected(one)
    above = [_progress(view), f"{table}: {counted(view.rows, 'row')}, sum of {column} {_number(view.sum)}"]
    return Captioned([line for line in above if line], columns, rows, _remarks(view))


def _progress(view: View) -> str:
    state = view.state
    if state is None:
        return ""
    done = f"{view.done:,} of {_total(view)}"
    if view.share is not None:
        done += f" ({percent(view.share)})"
    parts = [done, f"{state.finished:,} of {counted(state.job.shards, 'task')} finished"]
    if view.units_per_s is not None:
        parts.append(f"{view.units_per_s:,.0f}/s")
    if view.ends_in_s:
        parts.append(f"ends in about {duration(view.ends_in_s)}")
    if state.deferred:
        parts.append(f"{state.deferred:,} put off")
    return f"{state.job.name}: {', '.join(parts)}"


def _total(view: View) -> str:
    return "an unknown number of units" if view.units is None else counted(view.units, "unit")


def _expected(row: TopRow) -> list[str]:
    found = row.final
    if found is None:
        return ["-", "-", "-"]
    is_whole = isinstance(row.value, int)
    return [_number(round(one) if is_whole else one) for one in (found.value, found.low, found.high)]


def _remarks(view: View) -> list[str]:
    state = view.state
    if state is None:
        return []
    if view.is_final:
        return ["the job is finished: all values are exact"]
    found = []
    if view.is_steady is False:
        found.append("the units that are done do not look like a sample of all: the values at the end may be wrong")
    elif view.is_certain:
        found.append(f"with {CONFIDENCE:.0%} probability, these rows are also the first ones at the end")
    if view.units is None:
        found.append("units add units, so nobody knows how many there are: all values are lower bounds")
    if view.idle_s >= _IDLE_S:
        found.append(f"no unit was done for {duration(view.idle_s)}: see whether the job still runs")
    return found


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < _LONGEST_GROUPED else value_text(value)
    return f"{value:,.6g}" if abs(value) < _LONGEST_GROUPED else value_text(value)
