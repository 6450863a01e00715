"""Measure the write path and the job commit: `make bench`, or ``python benchmarks/write_path.py --help``.

Prints a table and writes the results to ``benchmarks/results/``. Exits with 0 if every benchmark ran: a missed target
is a finding, not a failure. docs/explanation/benchmarks.md explains the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for a script, only its own directory is on the path

from benchmarks.command_line import add_json_option, add_results_option, positive, run
from benchmarks.commit_memory import measure_memory
from benchmarks.job_commit import measure_embedded_s3, measure_requests, measure_throttled
from benchmarks.measure import Result, Say
from benchmarks.write_tables import SCHEMAS

__all__ = ["BENCHMARKS", "main"]


Benchmark = Callable[[argparse.Namespace, Say], Iterator[Result]]


def _write(arguments: argparse.Namespace, say: Say) -> Iterator[Result]:
    from benchmarks.table_write import measure_write  # import PySpark only if it is needed

    schemas, more = arguments.schema or list(SCHEMAS), {"breakdown": arguments.breakdown, "folder": arguments.folder}
    return measure_write(schemas, arguments.rows, arguments.rounds, say, **more)


def _batch(arguments: argparse.Namespace, say: Say) -> Iterator[Result]:
    from benchmarks.namespace_batch import measure_batch  # import the drivers of databases only if they are needed

    yield measure_batch(say)


BENCHMARKS: dict[str, Benchmark] = {
    "write": _write,
    "commit-s3": lambda arguments, say: iter([measure_embedded_s3(arguments.rounds, arguments.threads, say)]),
    "commit-throttled": lambda arguments, say: iter([measure_throttled(arguments.rounds, arguments.threads, say)]),
    "commit-memory": lambda arguments, say: iter([measure_memory(arguments.threads, say)]),
    "batch-memory": _batch,
    "requests": lambda arguments, say: iter([measure_requests(arguments.threads)]),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Compare the write path and the job commit with their alternatives.")
    parser.add_argument("--only", action="append", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--rounds", type=positive, default=3, help="rounds that count, after a warm-up (%(default)s)")
    parser.add_argument("--rows", type=positive, default=10_000_000, help="rows of the table `flat` (%(default)s)")
    parser.add_argument("--schema", action="append", choices=SCHEMAS, help="the table to write; repeatable (all)")
    parser.add_argument("--threads", type=positive, default=32, help="threads of both committers (%(default)s)")
    parser.add_argument("--breakdown", action="store_true", help="also time the parts of a table write")
    parser.add_argument("--folder", type=Path, help="folder for the tables (the system's temporary folder)")
    add_results_option(parser)
    add_json_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks with the given arguments, or with those of the process."""
    arguments = _parser().parse_args(argv)

    def measure(say: Say) -> Iterator[Result]:
        for name in arguments.only or BENCHMARKS:
            say(f"[bold]{name}[/bold]")
            yield from BENCHMARKS[name](arguments, say)

    return run(measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
