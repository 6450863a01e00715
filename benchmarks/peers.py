"""Jobs on S3 beside Hadoop's S3A magic committer, in one run on one server: ``python benchmarks/peers.py --help``.

Prints a table and leaves the numbers in ``benchmarks/results/``. Exits 0 if every benchmark ran.
docs/explanation/benchmarks.md says how to read the figures.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file, Python looks beside it only

from benchmarks.measure import Result, Say, run_in_turn, show, write_json
from benchmarks.peer_runs import OURS, PEER, TABLES, MeteredServer, PeerRun, Table, open_session, take_run

__all__ = ["main"]

_RESULTS = Path(__file__).resolve().parent / "results"
_HOW = """Hadoop's S3A is not there, so ours run alone and no ratio is taken. To get it (Maven, some 15 MB):
  the pom.xml of docs/how-to/read-with-s3a.md, "Spark's own reader on S3", and in its <dependencies> also
    <dependency><groupId>org.apache.spark</groupId><artifactId>spark-hadoop-cloud_2.13</artifactId><version>4.1.1</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
  mvn dependency:copy-dependencies -DoutputDirectory=jars -DexcludeGroupIds=io.netty,org.slf4j
  HOLDFAST_S3A_JARS=$PWD/jars python benchmarks/peers.py"""
_TARGETS = {("large", "total"): 0.6, ("small", "total"): 0.25, ("small", "after the last task"): 1.0}
_FIGURES: dict[str, Callable[[PeerRun], float]] = {
    "total": lambda run: run.total_s,
    "after the last task": lambda run: run.after_s,
    "CPU": lambda run: run.cpu_s,
    "requests": lambda run: float(run.requests),
}


def _measure(name: str, table: Table, arguments: argparse.Namespace, jars: Sequence[str], say: Say) -> list[Result]:
    runs: dict[str, list[PeerRun]] = {}
    writers = [*([PEER] if jars else []), *OURS]
    with tempfile.TemporaryDirectory(prefix="holdfast-peers-") as home, MeteredServer() as server:
        with open_session(server, Path(home), jars) as spark:

            def one(writer: str) -> Callable[[int], float]:
                def run(number: int) -> float:
                    place = f"{name}/{number}/{writer.replace(' ', '-')}"
                    found = take_run(spark, server, writer, table, place)
                    after = f"{found.after_s:.2f} s after the last task"
                    say(f"    {after}, {found.cpu_s:.1f} CPU s, {found.requests} requests")
                    if number > 0:
                        runs.setdefault(writer, []).append(found)
                    return found.total_s

                return run

            run_in_turn({writer: one(writer) for writer in writers}, arguments.rounds, say)
    return _results(name, table, runs)


def _results(name: str, table: Table, runs: dict[str, list[PeerRun]]) -> list[Result]:
    """A result for each target; what else was measured is in the details of all of them."""
    taken = {
        what: {writer: [figure(run) for run in found] for writer, found in runs.items()}
        for what, figure in _FIGURES.items()
    }
    ratios = {what: {w: _ratio(found, of[PEER]) for w, found in of.items() if PEER in of} for what, of in taken.items()}
    details: dict[str, object] = {}
    for what, of in taken.items():
        for writer, found in of.items():
            details[f"{what}, {writer}, median"] = round(statistics.median(found), 2)
            if ratios[what] and writer != PEER:
                details[f"{what}, {writer}, ratio"] = round(ratios[what][writer], 3)
    return [
        Result(
            benchmark=f"peers-{table_name}-{what.replace(' ', '-')}",
            title=f"{table.title}, Parquet, S3 server of this machine, local[2]: {what}",
            figure=ratios[what].get("two_phase", float("nan")),
            figure_name="two_phase's share of S3A magic's time, median of the rounds' ratios",
            target=target,
            seconds=taken[what],
            details=details if what == "total" else {},
        )
        for (table_name, what), target in _TARGETS.items()
        if table_name == name
    ]


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for (None: the process's own)."""
    parser = argparse.ArgumentParser(description="Measure jobs on S3 beside Hadoop's S3A magic committer.")
    parser.add_argument("--only", action="append", choices=TABLES, help="large: many rows; small: many small files")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count, after a warm-up (%(default)s)")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the large table (%(default)s)")
    parser.add_argument("--files", type=int, default=1_000, help="files of the other one (%(default)s)")
    parser.add_argument(
        "--jars", type=Path, default=os.environ.get("HOLDFAST_S3A_JARS"), help="directory with S3A's jars"
    )
    parser.add_argument("--results", type=Path, default=_RESULTS, help="folder for the numbers (benchmarks/results)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all results to this file")
    arguments = parser.parse_args(argv)
    console = Console()
    jars = sorted(map(str, Path(arguments.jars).glob("*.jar"))) if arguments.jars else []
    if not jars:
        console.print(_HOW, highlight=False, markup=False)
    found: list[Result] = []
    sizes = {"large": arguments.rows, "small": arguments.files}
    for name in arguments.only or TABLES:
        console.print(f"[bold]{name}[/bold]")
        table = TABLES[name](sizes[name])
        found += _measure(name, table, arguments, jars, lambda line: console.print(line, highlight=False))
        write_json(found, arguments.results, arguments.json)  # what was measured stays if a later benchmark fails
    show(found, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
