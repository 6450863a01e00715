"""Compare jobs on S3 with Hadoop's S3A magic committer: ``python benchmarks/peers.py --help``.

All writers use the same server in the same run. Prints a table and writes the results to ``benchmarks/results/``. Exits
with 0 if every benchmark ran.
docs/explanation/benchmarks.md explains the figures.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for a script, only its own directory is on the path

from benchmarks.command_line import add_json_option, add_results_option, run
from benchmarks.measure import Result, Say, run_in_turn
from benchmarks.peer_runs import OURS, PEER, TABLES, MeteredServer, PeerRun, Table, open_peer_session, take_run
from benchmarks.spark_session import MASTER

__all__ = ["main"]

_HOW = """Hadoop's S3A was not found, so only Holdfast's committers run, without ratios. To get it (Maven, about 15 MB),
take the pom.xml of docs/how-to/read-with-s3a.md, "Spark's own reader on S3", and add to its <dependencies>
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
        with open_peer_session(server, Path(home), jars) as spark:

            def one(writer: str) -> Callable[[int], float]:
                def write(number: int) -> float:
                    place = f"{name}/{number}/{writer.replace(' ', '-')}"
                    found = take_run(spark, server, writer, table, place)
                    after = f"{found.after_s:.2f} s after the last task"
                    say(f"    {after}, {found.cpu_s:.1f} CPU s, {found.requests} requests")
                    if number > 0:
                        runs.setdefault(writer, []).append(found)
                    return found.total_s

                return write

            run_in_turn({writer: one(writer) for writer in writers}, arguments.rounds, say)
    return _results(name, table, runs)


def _results(name: str, table: Table, runs: dict[str, list[PeerRun]]) -> list[Result]:
    """Return a result for each target; the results of the total time also contain all other measurements."""
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
            title=f"{table.title}, Parquet, local S3 server, {MASTER}: {what}",
            figure=ratios[what].get("two_phase", float("nan")),
            figure_name="two_phase's time divided by S3A magic's, median of the rounds' ratios",
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
    """Run the benchmarks with the given arguments, or with those of the process."""
    parser = argparse.ArgumentParser(description="Compare jobs on S3 with Hadoop's S3A magic committer.")
    parser.add_argument("--only", action="append", choices=TABLES, help="large: many rows; small: many small files")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count, after a warm-up (%(default)s)")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the large table (%(default)s)")
    parser.add_argument("--files", type=int, default=1_000, help="files of the table of small files (%(default)s)")
    parser.add_argument(
        "--jars", type=Path, default=os.environ.get("HOLDFAST_S3A_JARS"), help="directory with the jars of S3A"
    )
    add_results_option(parser)
    add_json_option(parser)
    arguments = parser.parse_args(argv)
    jars = sorted(map(str, Path(arguments.jars).glob("*.jar"))) if arguments.jars else []
    if not jars:
        Console().print(_HOW, highlight=False, markup=False)
    sizes = {"large": arguments.rows, "small": arguments.files}

    def measure(say: Say) -> Iterator[Result]:
        for name in arguments.only or TABLES:
            say(f"[bold]{name}[/bold]")
            yield from _measure(name, TABLES[name](sizes[name]), arguments, jars, say)

    return run(measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
