"""Share the options and the main loop of the commands that measure several benchmarks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console

from benchmarks.measure import Result, Say, show, write_json

__all__ = ["RESULTS", "Show", "add_json_option", "add_results_option", "positive", "run"]

RESULTS = Path(__file__).resolve().parent / "results"

Show = Callable[[list[Result], Console], None]


def positive(text: str) -> int:
    """Parse a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def add_results_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses the folder of the results."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the results (benchmarks/results)")


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that writes all results to one file."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all results to this file")


def run(measure: Callable[[Say], Iterable[Result]], arguments: argparse.Namespace, display: Show = show) -> int:
    """Measure, save each result as soon as it is complete, and print a table at the end.

    Args:
        measure: yields the results, and reports its progress line by line.
        arguments: the parsed command line, with `results` and `json`.
        display: prints the results.

    Returns:
        The exit code, 0.
    """
    console = Console()
    found: list[Result] = []
    for result in measure(lambda line: console.print(line, highlight=False)):
        found.append(result)
        write_json(found, arguments.results, arguments.json)  # keep the results if a later benchmark fails
    display(found, console)
    return 0
