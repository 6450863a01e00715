"""Print the results as tables of 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Result

__all__ = ["show"]


def show(results: Sequence[Result], console: Console) -> None:
    """Print a table for each experiment and database, and one with all targets."""
    for result in results:
        if result.details:
            _TABLES[str(result.settings["experiment"])](result, console)
    table = _table("targets", ("", "figure", "target", ""))
    for result in results:
        table.add_row(
            f"{result.title}\n[dim]{result.figure_name}[/dim]",
            f"{result.figure:.3g}",
            f"<= {result.target:.3g}",
            "[green]met[/green]" if result.met else "[red]missed[/red]",
        )
    console.print(table)


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for number, name in enumerate(columns):
        if number:
            table.add_column(name, no_wrap=True, justify="right", vertical="bottom")
        else:
            table.add_column(name, min_width=11, no_wrap=bool(name))
    return table


def _rows(result: Result, name: str) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = result.details[name]  # type: ignore[assignment]  # written by `results`
    return rows


def _rates(result: Result, console: Console) -> None:
    settings = result.settings
    server = settings["server"]
    assert isinstance(server, Mapping)
    words = ", ".join(f"{name} {value}" for name, value in server.items())
    table = _table(
        f"{result.title}: {settings['network']}; {words}; CPU in microseconds per unit",
        (
            "variant",
            "wor-\nkers",
            "per\nsecond",
            "times\nSSI",
            "con-\nflicts",
            "least\n/most",
            "client\nCPU",
            "server\nCPU",
            "wrong",
        ),
    )
    cells = _rows(result, "cells")
    peer = {one["workers"]: one["rate"] for one in cells if one["variant"] == "serializable"}
    for one in cells:
        base = peer.get(one["workers"])
        table.add_row(
            one["variant"],
            str(one["workers"]),
            f"{one['rate']:,.0f}",
            "" if base is None else f"{one['rate'] / base:.1f}",
            f"{one['conflicts_per_unit']:.2f}",
            f"{one['least_share']:.2f}",
            f"{one['client_cpu_us']:,.0f}",
            f"{one['server_cpu_us']:,.0f}",
            f"{one['wrong']:+g}" if one["wrong"] else "",
        )
    console.print(table)


def _retry(result: Result, console: Console) -> None:
    table = _table(result.title, ("variant", "units", "counted", "wrong by"))
    for row in _rows(result, "rows"):
        table.add_row(
            row["variant"], f"{row['meant']:,}", f"{row['meant'] + row['wrong']:,.0f}", f"{row['wrong']:+,.0f}"
        )
    console.print(table)


def _shares(result: Result, console: Console) -> None:
    rows = _rows(result, "rows")
    parts = list(rows[0]["shares"])
    table = _table(f"{result.title}, {result.settings['network']}", ("", "units", "s", "calls", *parts))
    for row in rows:
        shares = [f"{row['shares'][part]:.0%}" for part in parts]
        table.add_row(row["variant"], f"{row['units']:,}", f"{row['seconds']:.2f}", f"{row['calls']:,}", *shares)
    console.print(table)


def _memory(result: Result, console: Console) -> None:
    table = _table(result.title, ("buffering", "MB", "seconds"))
    for row in _rows(result, "rows"):
        table.add_row(row["buffering"], f"{row['mb']:.0f}", f"{row['seconds']:.1f}")
    console.print(table)


_TABLES: Mapping[str, Callable[[Result, Console], None]] = {
    "rates": _rates,
    "retry": _retry,
    "shares": _shares,
    "memory": _memory,
}
