"""Steps of the commit layer over ten, a hundred, a thousand times as many files: ``python benchmarks/scale.py --help``.

Prints a table and leaves the numbers in ``benchmarks/results/``. Exits 0 if every benchmark ran.
docs/explanation/benchmarks.md says how to read the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file, Python looks beside it only

from benchmarks.measure import Result, Say, write_json
from benchmarks.scale_runs import STEPS, Taken, take_step

__all__ = ["main"]

_RESULTS = Path(__file__).resolve().parent / "results"
_TARGET = 1.25
_SIZES = (1_000, 10_000, 100_000, 1_000_000)


def _measure(name: str, sizes: Sequence[int], say: Say) -> Result:
    taken: list[Taken] = []
    for files in sizes:
        taken.append(take_step(name, files))
        say(f"  {name}, {files:,} files: {taken[-1].cpu_s:.2f} CPU s, {taken[-1].peak_mb:.0f} MB above start")
    growth = [_growth(less, more) for less, more in pairwise(taken)]
    return Result(
        benchmark=f"scale-{name}",
        title=f"{name} of {sizes[-1]:,} files against {sizes[-2]:,}",
        figure=growth[-1],
        figure_name="of the CPU time a file",
        target=_TARGET,
        settings={"files": list(sizes)},
        details={
            "CPU s": [round(one.cpu_s, 2) for one in taken],
            "CPU time a file, against ten times fewer": [round(one, 2) for one in growth],
            "MB above start": [round(one.peak_mb, 1) for one in taken],
            "wall s": [round(one.wall_s, 2) for one in taken],
        },
    )


def _growth(less: Taken, more: Taken) -> float:
    return (more.cpu_s / more.files) / (less.cpu_s / less.files)


def _show(results: Sequence[Result], sizes: Sequence[int], console: Console) -> None:
    table = Table(title="CPU seconds and peak memory, by number of files", title_justify="left")
    table.add_column("step", no_wrap=True)
    for files in sizes:
        table.add_column(f"{files:,}", justify="right")
    table.add_column("growth a file", justify="right")
    for result in results:
        cells = zip(result.details["CPU s"], result.details["MB above start"], strict=True)  # type: ignore[call-overload]  # two lists
        shown = [f"{cpu_s:.2f} s, {peak_mb:.0f} MB" for cpu_s, peak_mb in cells]
        color = "green" if result.met else "red"
        table.add_row(result.benchmark, *shown, f"[{color}]{result.figure:.2f}[/{color}]")
    console.print(table)


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for (None: the process's own)."""
    parser = argparse.ArgumentParser(description="Measure how time and memory grow with the number of files.")
    parser.add_argument("--only", action="append", choices=STEPS, metavar="STEP", help=", ".join(STEPS))
    parser.add_argument("--files", type=int, default=_SIZES[-1], help="the largest number, by tens (%(default)s)")
    parser.add_argument("--results", type=Path, default=_RESULTS, help="folder for the numbers (benchmarks/results)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all results to this file")
    arguments = parser.parse_args(argv)
    sizes = [files for files in _SIZES if files <= arguments.files]
    if len(sizes) < 2:
        parser.error(f"at least {_SIZES[1]} files: one size alone does not grow")
    console = Console()
    found: list[Result] = []
    for name in arguments.only or STEPS:
        found.append(_measure(name, sizes, lambda line: console.print(line, highlight=False)))
        write_json(found, arguments.results, arguments.json)  # what was measured stays if a later benchmark fails
    _show(found, sizes, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
