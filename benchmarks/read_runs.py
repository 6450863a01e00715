"""`holdfast.read` and `spark.read` of the same files in turn, in one warm session or each time in a new application."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file, for a cold start

from pyspark.sql import DataFrame, SparkSession

import holdfast
from benchmarks.cpu_time import CpuMeter
from benchmarks.measure import Result, Say, run_in_turn
from benchmarks.read_tables import READS, Read, TableSizes
from holdfast.errors import InvalidRequestError
from holdfast.options.parsing import parse_read_options

__all__ = ["ReadRun", "measure_reads"]

_ROOT = Path(__file__).resolve().parents[1]
_TARGETS = {"python": 1.5, "native": 1.1}


@dataclass(frozen=True, kw_only=True)
class ReadRun:
    """How reads are measured.

    Attributes:
        path: whose reader takes the files for Holdfast: ``python`` its own, ``native`` Spark's.
        cold: each read in a new application, whose first one it is.
        clock: what the figure counts: ``cpu`` seconds of all processes, or ``wall`` seconds.
        rounds: those that count.
        warm_ups: those before them, in a warm session; both sides share a JVM whose compiler goes on improving.
        rows: see `TableSizes`, like `partitions` and `files`.
        folder: where tables are written; None for the machine's folder for temporary files.
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
    """One result for each benchmark, as soon as it is there."""
    sizes = TableSizes(rows=run.rows, partitions=run.partitions, files=run.files)
    home = Path(tempfile.mkdtemp(prefix="holdfast-bench-", dir=run.folder))
    try:
        spark = _open_session(home)
        try:
            for name in names:
                READS[name].make(spark, home / name, sizes)
                if run.path == "native":
                    _adopt(spark, str(home / name), READS[name])
            if not run.cold:
                for name in names:
                    yield _measure_warm(spark, name, home, run, say)
        finally:
            spark.stop()
        if run.cold:
            for name in names:
                yield _measure_cold(name, home, run, say)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _adopt(spark: SparkSession, url: str, read: Read) -> None:
    """An append of no rows: from now on a log tells of the table, as of every table that Holdfast has written."""
    nothing = spark.read.parquet(url).limit(0)
    holdfast.write(nothing, url, partition_by=list(read.partition_by) or None)


def _open_session(home: Path) -> SparkSession:
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("holdfast-bench")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(home / "session" / "warehouse"))
        .config("spark.local.dir", str(home / "session"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


# --- one read ---------------------------------------------------------------------------------------------------------
def _frame(spark: SparkSession, contender: str, url: str, read: Read, path: str) -> DataFrame:
    if contender == "spark":
        frame = spark.read.parquet(url)
        return frame if read.columns is None else frame.select(*read.columns)
    return holdfast.read(spark, url, columns=read.columns, **_reader_option(path))


def _reader_option(path: str) -> dict[str, str]:
    """The option that chooses the reader, where this version has it."""
    try:
        parse_read_options({"path": "/", "fileFormat": "parquet", "reader": path})
    except InvalidRequestError:
        if path != "python":
            raise
        return {}  # there is no other
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


def _content(frame: DataFrame) -> dict[str, object]:
    """Rows, and a checksum over all columns that does not depend on their order; maps cannot be hashed as such."""
    whole = f"to_json(struct({', '.join(frame.columns)}))"
    found = frame.selectExpr(f"xxhash64({whole}) AS hash").selectExpr(
        "count(*) AS rows", "bit_xor(hash) AS xored", "sum(CAST(hash AS DECIMAL(38, 0))) AS summed"
    )
    row = found.collect()[0]
    return {"schema": frame.schema.simpleString(), "rows": row.rows, "checksum": f"{row.xored} {row.summed}"}


# --- in turn ----------------------------------------------------------------------------------------------------------
def _measure_warm(spark: SparkSession, name: str, home: Path, run: ReadRun, say: Say) -> Result:
    read, url, meter = READS[name], str(home / name), CpuMeter()
    contents = [_content(_frame(spark, contender, url, read, run.path)) for contender in ("holdfast", "spark")]
    assert contents[0] == contents[1], contents

    def contender(who: str) -> Callable[[], _Taken]:
        return lambda: _take(spark, who, url, read, run.path, meter)

    return _result(name, run, say, {who: contender(who) for who in ("holdfast", "spark")}, run.warm_ups)


def _measure_cold(name: str, home: Path, run: ReadRun, say: Say) -> Result:
    def contender(who: str) -> Callable[[], _Taken]:
        command = [sys.executable, __file__, name, who, run.path, str(home / name)]

        def take() -> _Taken:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr[-2000:])
            return _Taken(**json.loads(done.stdout.splitlines()[-1]))

        return take

    return _result(name, run, say, {who: contender(who) for who in ("holdfast", "spark")}, 0)


def _result(name: str, run: ReadRun, say: Say, contenders: dict[str, Callable[[], _Taken]], warm_ups: int) -> Result:
    """The medians by the clock that counts; those by the other one are details."""
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
        figure_name="of what Spark's own reader takes",
        target=_TARGETS[run.path],
        seconds=seconds,
        settings={**{key: value for key, value in asdict(run).items() if key != "folder"}, "master": "local[2]"},
        details={
            f"{who}, median {other_clock} s": round(sorted(taken)[len(taken) // 2], 2) for who, taken in other.items()
        },
    )
    return result.with_figure(result.ratio_of("holdfast", "spark"))


# --- a new application ------------------------------------------------------------------------------------------------
def _main(argv: Sequence[str] | None = None) -> int:
    """One read in this process, which ends with it; prints what it took. The session's own start does not count."""
    parser = argparse.ArgumentParser(description="One read in a new application, for benchmarks/read_path.py.")
    for argument in ("name", "contender", "path", "url"):
        parser.add_argument(argument)
    arguments = parser.parse_args(argv)
    home = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        spark = _open_session(home)
        try:
            read = READS[arguments.name]
            taken = _take(spark, arguments.contender, arguments.url, read, arguments.path, CpuMeter())
        finally:
            spark.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(json.dumps(asdict(taken)))
    return 0


if __name__ == "__main__":
    sys.exit(_main())
