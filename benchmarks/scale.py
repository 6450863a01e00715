"""Measure how the commit layer scales from a thousand to a million files: ``python benchmarks/scale.py --help``.

Prints a table and writes the results to ``benchmarks/results/``. Exits with 0 if every benchmark ran.
docs/explanation/benchmarks.md explains the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for a script, only its own directory is on the path

from benchmarks.command_line import add_json_option, add_results_option, run
from benchmarks.measure import Result, Say
from benchmarks.scale_runs import STEPS, Taken, take_step

__all__ = ["main"]

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
        title=f"{name} of {sizes[-1]:,} files, relative to {sizes[-2]:,}",
        figure=growth[-1],
        figure_name="of the CPU time per file",
        target=_TARGET,
        settings={"files": list(sizes)},
        details={
            "CPU s": [round(one.cpu_s, 2) for one in taken],
            "CPU time per file, relative to ten times fewer files": [round(one, 2) for one in growth],
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
    table.add_column("growth per file", justify="right")
    for result in results:
        cells = zip(result.details["CPU s"], result.details["MB above start"], strict=True)  # type: ignore[call-overload]  # two lists
        shown = [f"{cpu_s:.2f} s, {peak_mb:.0f} MB" for cpu_s, peak_mb in cells]
        color = "green" if result.met else "red"
        table.add_row(result.benchmark, *shown, f"[{color}]{result.figure:.2f}[/{color}]")
    console.print(table)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks with the given arguments, or with those of the process."""
    parser = argparse.ArgumentParser(description="Measure how time and memory grow with the number of files.")
    parser.add_argument("--only", action="append", choices=STEPS, metavar="STEP", help=", ".join(STEPS))
    parser.add_argument(
        "--files", type=int, default=_SIZES[-1], help="the largest number of files, a power of ten (%(default)s)"
    )
    add_results_option(parser)
    add_json_option(parser)
    arguments = parser.parse_args(argv)
    sizes = [files for files in _SIZES if files <= arguments.files]
    if len(sizes) < 2:
        parser.error(f"choose at least {_SIZES[1]} files: growth needs two sizes")

    def measure(say: Say) -> Iterator[Result]:
        for name in arguments.only or STEPS:
            yield _measure(name, sizes, say)

    return run(measure, arguments, lambda results, console: _show(results, sizes, console))


if __name__ == "__main__":
    sys.exit(main())
