"""Measure computation units: ``python benchmarks/units.py --help``.

Units per second beside transactions that are written by hand, on three databases, on one machine and through a network
of 2 ms; where the time of a job goes; work lists; memory. Starts the databases itself, with durable commits. Prints
tables and writes the results to ``benchmarks/results/``. Exits with 0 if every benchmark ran: a missed target is a
finding, not a failure. docs/explanation/benchmarks.md explains the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for a script, only its own directory is on the path

from benchmarks.command_line import add_json_option, add_results_option, positive, run
from benchmarks.measure import Result, Say
from benchmarks.namespace_runs.databases import DATABASES, DatabaseServer, opened
from benchmarks.unit_runs.peers import PEERS
from benchmarks.unit_runs.plots import plot
from benchmarks.unit_runs.rates import NETWORKS
from benchmarks.unit_runs.report import show
from benchmarks.unit_runs.results import (
    Plan,
    measure_levels,
    measure_memory,
    measure_rates,
    measure_retry,
    measure_shares,
)
from benchmarks.unit_runs.tasks import VARIANTS
from benchmarks.unit_runs.workloads import WORKLOADS
from benchmarks.worker_processes import WorkerProcesses

__all__ = ["main"]

_WHAT = ("rates", "retry", "shares", "levels", "memory")
_ONLY_ON = {"shares": ("postgresql",), "levels": ("postgresql", "sqlite")}
_VARIANTS = (*PEERS, *VARIANTS)


def _plan_of(arguments: argparse.Namespace, say: Say) -> Plan:
    is_quick = arguments.quick
    return Plan(
        variants=arguments.variant or _VARIANTS,
        workloads=arguments.workload or WORKLOADS,
        networks=arguments.network or NETWORKS,
        workers=sorted(set(arguments.workers or ((1, 8) if is_quick else (1, 2, 4, 8)))),
        rounds=arguments.rounds or (1 if is_quick else 3),
        limit_s=arguments.limit_s or (0.5 if is_quick else 1.5),
        units=arguments.units or (2_000 if is_quick else 20_000),
        levels=arguments.levels or (10 if is_quick else 80),
        say=say,
    )


def _measure(name: str, server: DatabaseServer, workers: WorkerProcesses, plan: Plan) -> Iterator[Result]:
    plan.say(f"[bold]{name}, {server.name}[/bold]")
    if name == "rates":
        yield from measure_rates(server, workers, plan)
    elif name == "retry":
        yield from measure_retry(server, workers, plan)
    elif name == "shares":
        yield from measure_shares(server, plan)
    elif name == "levels":
        yield from measure_levels(server, plan)
    else:
        yield from measure_memory(server, plan)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure computation units.")
    parser.add_argument("--only", action="append", choices=_WHAT, metavar="NAME", help=", ".join(_WHAT))
    parser.add_argument("--database", action="append", choices=DATABASES, help="a database (all)")
    parser.add_argument("--network", action="append", choices=NETWORKS, help="what is before a server (both)")
    parser.add_argument("--variant", action="append", choices=_VARIANTS, metavar="NAME", help=", ".join(_VARIANTS))
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="which cells units have (both)")
    parser.add_argument("--workers", action="append", type=positive, metavar="N", help="worker processes (1, 2, 4, 8)")
    parser.add_argument("--units", type=positive, help="units of a job of shares (20000)")
    parser.add_argument("--levels", type=positive, help="levels of the graph (80)")
    parser.add_argument("--rounds", type=positive, help="rounds; the medians count (3)")
    parser.add_argument("--limit-s", type=float, help="seconds of a run (1.5)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw a plot")
    add_results_option(parser)
    add_json_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks with the given arguments, or with those of the process."""
    arguments = _parser().parse_args(argv)

    def measure(say: Say) -> Iterator[Result]:
        plan = _plan_of(arguments, say)
        with WorkerProcesses("benchmarks.unit_runs.worker", max([2, *plan.workers])) as workers:
            for chosen in arguments.database or DATABASES:
                names = [one for one in arguments.only or _WHAT if chosen in _ONLY_ON.get(one, DATABASES)]
                if names:
                    with opened(chosen) as server:
                        for name in names:
                            yield from _measure(name, server, workers, plan)

    def display(results: list[Result], console: Console) -> None:
        show(results, console)
        if arguments.plot is not None:
            plot(results, arguments.plot)
            console.print(f"[dim]plot: {arguments.plot}[/dim]", highlight=False)

    return run(measure, arguments, display)


if __name__ == "__main__":
    sys.exit(main())
