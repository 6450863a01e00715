"""Measure `holdfast.read` and `spark.read` on the same files in turn, in one warm session or in new applications."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import holdfast
from benchmarks.cpu_time import CpuMeter
from benchmarks.fresh_process import run_module
from benchmarks.measure import Result, Say, run_in_turn
from benchmarks.read_tables import READS, Read, TableSizes
from benchmarks.spark_session import MASTER, content, open_session
from holdfast.errors import InvalidRequestError
from holdfast.options.read import parse_read_options

__all__ = ["ReadRun", "measure_reads"]

_TARGETS = {"python": 1.5, "native": 1.1}


@dataclass(frozen=True, kw_only=True)
class ReadRun:
    """How reads are measured.

    Attributes:
        path: the reader that Holdfast uses: ``python`` for its own, ``native`` for Spark's.
        cold: whether each read is the first one of a new application.
        clock: the time that the figure compares: ``cpu`` seconds of all processes, or ``wall`` seconds.
        rounds: the number of rounds that count.
        warm_ups: the number of rounds in a warm session before these; both sides share a JVM whose compiler keeps
            improving their code.
        rows, partitions, files: see `TableSizes`.
        folder: folder for the tables; None for the system's temporary folder.
    """

    path: str
    cold: bool
    clock: str
    rounds: int
    warm_ups: int
    rows: int
    partitions: int
    files: int
    folder: Path | None


@dataclass(frozen=True, slots=True)
class _Taken:
    cpu: float
    wall: float


def measure_reads(names: Sequence[str], run: ReadRun, say: Say) -> Iterator[Result]:
    """Yield the result of each benchmark as soon as it is complete."""
    sizes = TableSizes(rows=run.rows, partitions=run.partitions, files=run.files)
    home = Path(tempfile.mkdtemp(prefix="holdfast-bench-", dir=run.folder)).resolve()
    try:
        with open_session(home) as spark:
            for name in names:
                READS[name].make(spark, home / name, sizes)
                if run.path == "native":
                    _adopt(spark, str(home / name), READS[name])
            if not run.cold:
                for name in names:
                    yield _measure_warm(spark, name, home, run, say)
        if run.cold:
            for name in names:
                yield _measure_cold(name, home, run, say)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _adopt(spark: SparkSession, url: str, read: Read) -> None:
    """Append no rows, so that a log describes the table from then on, like every table that Holdfast has written."""
    nothing = spark.read.parquet(url).limit(0)
    holdfast.write(nothing, url, partition_by=list(read.partition_by) or None)


# --- one read ---------------------------------------------------------------------------------------------------------
def _frame(spark: SparkSession, contender: str, url: str, read: Read, path: str) -> DataFrame:
    if contender == "spark":
        frame = spark.read.parquet(url)
        return frame if read.columns is None else frame.select(*read.columns)
    return holdfast.read(spark, url, columns=read.columns, **_reader_option(path))


def _reader_option(path: str) -> dict[str, Any]:
    """Return the option that selects the reader, if this version has it."""
    try:
        parse_read_options({"path": "/", "fileFormat": "parquet", "reader": path})
    except InvalidRequestError:
        if path != "python":
            raise
        return {}  # this version has only this reader
    return {"reader": path}


def _take(spark: SparkSession, contender: str, url: str, read: Read, path: str, meter: CpuMeter) -> _Taken:
    cpu_s, wall_s = meter.seconds(), time.perf_counter()
    if read.count and contender == "holdfast":
        holdfast.count(spark, url, **_reader_option(path))
    elif read.count:
        _frame(spark, contender, url, read, path).count()
    else:
        _frame(spark, contender, url, read, path).write.format("noop").mode("overwrite").save()
    return _Taken(meter.seconds() - cpu_s, time.perf_counter() - wall_s)


# --- in turn ----------------------------------------------------------------------------------------------------------
def _measure_warm(spark: SparkSession, name: str, home: Path, run: ReadRun, say: Say) -> Result:
    read, url = READS[name], str(home / name)
    frames = [_frame(spark, contender, url, read, run.path) for contender in ("holdfast", "spark")]
    # As JSON, because maps cannot be hashed.
    contents = [content(frame, f"to_json(struct({', '.join(frame.columns)}))") for frame in frames]
    assert contents[0] == contents[1], contents

    def contender(who: str, meter: CpuMeter) -> Callable[[], _Taken]:
        return lambda: _take(spark, who, url, read, run.path, meter)

    with CpuMeter() as meter:
        return _result(name, run, say, {who: contender(who, meter) for who in ("holdfast", "spark")}, run.warm_ups)


def _measure_cold(name: str, home: Path, run: ReadRun, say: Say) -> Result:
    def contender(who: str) -> Callable[[], _Taken]:
        return lambda: _Taken(**run_module("benchmarks.read_runs", name, who, run.path, home / name))

    return _result(name, run, say, {who: contender(who) for who in ("holdfast", "spark")}, 0)


def _result(name: str, run: ReadRun, say: Say, contenders: dict[str, Callable[[], _Taken]], warm_ups: int) -> Result:
    """Return the medians by the selected clock, and those by the other clock as details."""
    other: dict[str, list[float]] = {who: [] for who in contenders}

    def timed(who: str) -> Callable[[int], float]:
        def one(number: int) -> float:
            taken = contenders[who]()
            if number > 0:
                other[who].append(taken.wall if run.clock == "cpu" else taken.cpu)
            return taken.cpu if run.clock == "cpu" else taken.wall

        return one

    seconds = run_in_turn({who: timed(who) for who in contenders}, run.rounds, say, warm_ups=warm_ups)
    start = "cold" if run.cold else "warm"
    clock, other_clock = ("CPU", "wall") if run.clock == "cpu" else ("wall", "CPU")
    result = Result(
        benchmark=f"{name}-{run.path}-{start}",
        title=f"{READS[name].title}, {run.path} reader, {start}, {clock} seconds",
        figure=0.0,
        figure_name="of Spark's own reader",
        target=_TARGETS[run.path],
        seconds=seconds,
        settings={**{key: value for key, value in asdict(run).items() if key != "folder"}, "master": MASTER},
        details={
            f"{who}, median {other_clock} s": round(sorted(taken)[len(taken) // 2], 2) for who, taken in other.items()
        },
    )
    return result.with_figure(result.ratio_of("holdfast", "spark"))


# --- a new application ------------------------------------------------------------------------------------------------
def _main(argv: Sequence[str] | None = None) -> int:
    """Run one read in this process and print its duration. The start of the session does not count."""
    parser = argparse.ArgumentParser(description="Run one read in a new application, for benchmarks/read_path.py.")
    for argument in ("name", "contender", "path", "url"):
        parser.add_argument(argument)
    arguments = parser.parse_args(argv)
    home = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        with open_session(home) as spark, CpuMeter() as meter:
            read = READS[arguments.name]
            taken = _take(spark, arguments.contender, arguments.url, read, arguments.path, meter)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(json.dumps(asdict(taken)))
    return 0


if __name__ == "__main__":
    sys.exit(_main())
