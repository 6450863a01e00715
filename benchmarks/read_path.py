"""The read path, measured: ``python benchmarks/read_path.py --help``.

`holdfast.read` and `spark.read` of the same files, in one run, in turn. Prints a table and leaves the numbers in
``benchmarks/results/``. Exits 0 if every benchmark ran: a missed target is a finding, not a failure.
docs/explanation/benchmarks.md says how to read the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file, Python looks beside it only

from benchmarks.measure import Result, show, write_json
from benchmarks.read_tables import READS

__all__ = ["main"]

_RESULTS = Path(__file__).resolve().parent / "results"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure reading side by side with Spark's own reader.")
    parser.add_argument("--only", action="append", choices=READS, metavar="NAME", help=", ".join(READS))
    parser.add_argument("--path", choices=("python", "native"), default="python", help="whose reader (%(default)s)")
    parser.add_argument("--start", choices=("warm", "cold"), default="warm", help="cold: each time a new application")
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu", help="what the figure counts (%(default)s)")
    parser.add_argument("--rounds", type=_positive, default=5, help="rounds that count (%(default)s)")
    parser.add_argument("--warm-ups", type=int, default=3, help="rounds before, in a warm session (%(default)s)")
    parser.add_argument("--rows", type=_positive, default=4_000_000, help="rows of the table (%(default)s)")
    parser.add_argument("--partitions", type=_positive, default=2_000, help="partition directories (%(default)s)")
    parser.add_argument("--files", type=_positive, default=2_000, help="of the benchmark files (%(default)s)")
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
    from benchmarks.read_runs import ReadRun, measure_reads  # PySpark is imported only by those who need it

    console = Console()
    run = ReadRun(
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
    found: list[Result] = []
    for result in measure_reads(arguments.only or list(READS), run, lambda line: console.print(line, highlight=False)):
        found.append(result)
        write_json(found, arguments.results, arguments.json)  # what was measured stays if a later benchmark fails
    show(found, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
