"""Measure the read path: ``python benchmarks/read_path.py --help``.

Runs `holdfast.read` and `spark.read` on the same files in turn. Prints a table and writes the results to
``benchmarks/results/``. Exits with 0 if every benchmark ran: a missed target is a finding, not a failure.
docs/explanation/benchmarks.md explains the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for a script, only its own directory is on the path

from benchmarks.command_line import add_json_option, add_results_option, positive, run
from benchmarks.read_tables import READS

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Compare reading with Spark's own reader.")
    parser.add_argument("--only", action="append", choices=READS, metavar="NAME", help=", ".join(READS))
    parser.add_argument(
        "--path", choices=("python", "native"), default="python", help="the reader that Holdfast uses (%(default)s)"
    )
    parser.add_argument(
        "--start", choices=("warm", "cold"), default="warm", help="cold: a new application for each read"
    )
    parser.add_argument(
        "--clock", choices=("cpu", "wall"), default="cpu", help="the time that the figure compares (%(default)s)"
    )
    parser.add_argument("--rounds", type=positive, default=5, help="rounds that count (%(default)s)")
    parser.add_argument("--warm-ups", type=int, default=3, help="earlier rounds in a warm session (%(default)s)")
    parser.add_argument("--rows", type=positive, default=4_000_000, help="rows of the table (%(default)s)")
    parser.add_argument("--partitions", type=positive, default=2_000, help="partition directories (%(default)s)")
    parser.add_argument("--files", type=positive, default=2_000, help="files of the benchmark read-files (%(default)s)")
    parser.add_argument("--folder", type=Path, help="folder for the tables (the system's temporary folder)")
    add_results_option(parser)
    add_json_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks with the given arguments, or with those of the process."""
    arguments = _parser().parse_args(argv)
    from benchmarks.read_runs import ReadRun, measure_reads  # import PySpark only if it is needed

    how = ReadRun(
        path=arguments.path,
        cold=arguments.start == "cold",
        clock=arguments.clock,
        rounds=arguments.rounds,
        warm_ups=arguments.warm_ups,
        rows=arguments.rows,
        partitions=arguments.partitions,
        files=arguments.files,
        folder=arguments.folder,
    )
    return run(lambda say: measure_reads(arguments.only or list(READS), how, say), arguments)


if __name__ == "__main__":
    sys.exit(main())
