"""The write path and the job commit, measured: `make bench`, or ``python benchmarks/write_path.py --help``.

Prints a table and leaves the numbers in ``benchmarks/results/``. Exits 0 if every benchmark ran: a missed target is a
finding, not a failure. docs/explanation/benchmarks.md says how to read the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file, Python looks beside it only

from benchmarks.commit_memory import measure_memory
from benchmarks.job_commit import measure_embedded_s3, measure_requests, measure_throttled
from benchmarks.measure import Result, Say, show, write_json

__all__ = ["BENCHMARKS", "main"]

_RESULTS = Path(__file__).resolve().parent / "results"

Benchmark = Callable[[argparse.Namespace, Say], Result]


def _write(arguments: argparse.Namespace, say: Say) -> Result:
    from benchmarks.table_write import measure_write  # PySpark is imported only by those who need it

    return measure_write(arguments.rows, arguments.rounds, say, breakdown=arguments.breakdown, folder=arguments.folder)


BENCHMARKS: dict[str, Benchmark] = {
    "write": _write,
    "commit-s3": lambda arguments, say: measure_embedded_s3(arguments.rounds, arguments.threads, say),
    "commit-throttled": lambda arguments, say: measure_throttled(arguments.rounds, arguments.threads, say),
    "commit-memory": lambda arguments, say: measure_memory(arguments.threads, say),
    "requests": lambda arguments, say: measure_requests(arguments.threads),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure the write path and the job commit side by side with others.")
    parser.add_argument("--only", action="append", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--rounds", type=_positive, default=3, help="rounds that count, after a warm-up (%(default)s)")
    parser.add_argument("--rows", type=_positive, default=10_000_000, help="rows of the table (%(default)s)")
    parser.add_argument("--threads", type=_positive, default=32, help="threads of both committers (%(default)s)")
    parser.add_argument("--breakdown", action="store_true", help="also time what a table write consists of")
    parser.add_argument("--folder", type=Path, help="where tables are written (the folder for temporary files)")
    parser.add_argument("--results", type=Path, default=_RESULTS, help="folder for the numbers (benchmarks/results)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all results to this file")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for (None: the process's own)."""
    arguments = _parser().parse_args(argv)
    console = Console()
    found: list[Result] = []
    for name in arguments.only or BENCHMARKS:
        console.print(f"[bold]{name}[/bold]")
        found.append(BENCHMARKS[name](arguments, lambda line: console.print(line, highlight=False)))
        write_json(found, arguments.results, arguments.json)  # what was measured stays if a later benchmark fails
    show(found, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
