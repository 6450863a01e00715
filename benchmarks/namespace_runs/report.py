"""Print the results as tables, with the figures of paper 004 beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Result
from benchmarks.namespace_runs import paper

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
            table.add_column(name, min_width=11)
    return table


def _cells(result: Result, console: Console, paper_rows: Sequence[Sequence[str]], what: str) -> None:
    settings = result.settings
    table = _table(
        f"{settings['experiment']}, {settings['database']}: {_words(settings['server'])}",
        (
            "mode",
            "clients",
            what,
            "seconds",
            "per\nsecond",
            "times\nPCC",
            "CPU us:\nclient,\nserver",
            "ms:\nmedian,\n99 %",
        ),
    )
    cells: Sequence[Mapping[str, Any]] = result.details["cells"]  # type: ignore[assignment]  # written by `as_dict`
    pessimistic = {(one["layout"], one["label"]): one["seconds"] for one in cells if one["mode"] == "pessimistic"}
    for one in cells:
        base = pessimistic.get((one["layout"], one["label"]))
        failures = "".join(f" {count} {name}" for name, count in one["failures"].items())
        table.add_row(
            one["mode"],
            one["layout"],
            one["label"],
            f"{'' if one['complete'] else '~'}{one['seconds']:.2f}{failures}",
            f"{one['rate']:,.0f}",
            "" if base is None else f"{base / one['seconds']:.2f}",
            f"{one['client_cpu_us']:,.0f}, {one['server_cpu_us']:,.0f}",
            f"{one['median_ms']:.2f}, {one['high_ms']:.0f}",
        )
    for row in paper_rows:
        table.add_row(*row, style="dim")
    console.print(table)


def _words(settings: object) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items()) if isinstance(settings, Mapping) else ""


def _sizes(table: Mapping[str, Mapping[int, float]]) -> list[list[str]]:
    return [
        [
            f"paper: {name}",
            "1,024",
            f"{size:,}",
            f"{seconds:.2f}",
            f"{size / seconds:,.0f}",
            f"{table['PCC'][size] / seconds:.2f}",
        ]
        for size in table["PCC"]
        for name, seconds in ((name, of[size]) for name, of in table.items())
    ]


def _same_parent(result: Result, console: Console) -> None:
    _cells(result, console, _sizes(paper.SAME_PARENT), "directories")


def _mixed(result: Result, console: Console) -> None:
    _cells(result, console, _sizes(paper.MIXED), "operations")


def _conflicts(result: Result, console: Console) -> None:
    rows = [
        ["paper: OCC", "1,024", f"{names:,} names", f"{seconds:.2f}", f"{10_000 / seconds:,.0f}"]
        for names, seconds in paper.CONFLICTS.items()
    ]
    _cells(result, console, rows, "different")


def _operations(result: Result, console: Console) -> None:
    pcc = paper.OPERATIONS_PER_S["PCC"]
    rows = [
        [f"paper: {name}", "3", operation, "", f"{rate:,.0f}", f"{rate / pcc[operation]:.2f}"]
        for operation in pcc
        for name, rate in ((name, of[operation]) for name, of in paper.OPERATIONS_PER_S.items())
    ]
    _cells(result, console, rows, "operation")


def _waits(result: Result, console: Console) -> None:
    table = _table(
        str(result.title),
        ("mode", "clients", "per\nsecond", "client\nCPU us", "server\nCPU us", "connections, on average"),
    )
    cells: Sequence[Mapping[str, Any]] = result.details["cells"]  # type: ignore[assignment]  # written by `as_dict`
    for one in cells:
        table.add_row(
            one["mode"],
            one["layout"],
            f"{one['rate']:,.0f}",
            f"{one['client_cpu_us']:,.0f}",
            f"{one['server_cpu_us']:,.0f}",
            "\n".join(f"{count} {state}" for state, count in one["waits"].items() if count >= 0.1),
        )
    console.print(table)


def _growth(result: Result, console: Console) -> None:
    micros: Mapping[str, Mapping[int, float]] = result.details["microseconds"]  # type: ignore[assignment]  # a series
    sizes = sorted({size for of in micros.values() for size in of})
    table = _table(f"{result.title}: microseconds", ("", *(f"{size:,}" for size in sizes), "growth"))
    for operation, of in micros.items():
        growth = of[sizes[-1]] / of[sizes[0]]
        table.add_row(operation, *(f"{of[size]:,.0f}" for size in sizes), f"{growth:.2f}")
    console.print(table)


def _peer(result: Result, console: Console) -> None:
    table = _table(
        result.title,
        (
            "",
            "files",
            "files\nper second",
            "times\nJuiceFS",
            "directories per\nsecond, 1 client",
            "client\nCPU us",
            "server\nCPU us",
        ),
    )
    rows: Sequence[Mapping[str, Any]] = result.details["rows"]  # type: ignore[assignment]  # written by `_peer_result`
    (theirs,) = (one["files_per_s"] for one in rows if one["contender"] == "juicefs")
    for one in rows:
        table.add_row(
            one["contender"],
            f"{one['files']:,}",
            f"{one['files_per_s']:,.0f}",
            f"{one['files_per_s'] / theirs:.2f}",
            f"{one['directories_per_s']:,.0f}",
            f"{one['client_cpu_us']:,.0f}",
            f"{one['server_cpu_us']:,.0f}",
        )
    console.print(table)


_TABLES: Mapping[str, Callable[[Result, Console], None]] = {
    "same-parent": _same_parent,
    "mixed": _mixed,
    "conflicts": _conflicts,
    "operations": _operations,
    "waits": _waits,
    "growth": _growth,
    "peer": _peer,
}
