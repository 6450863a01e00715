"""Compare writing a DataFrame as Parquet to local disk with Spark's own writer, in one warm session."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.measure import Result, Say, run_in_turn
from benchmarks.null_sources import ArrowOnly, EncodeOnly
from benchmarks.read_tables import FLAT
from benchmarks.spark_session import MASTER, content, open_session
from holdfast.spark.session import register

__all__ = ["measure_write"]


def measure_write(rows: int, rounds: int, say: Say, *, breakdown: bool = False, folder: Path | None = None) -> Result:
    """Measure both writers with the same rows, tasks, codec and disk, then read both results back and compare them.

    Args:
        rows: the number of rows.
        rounds: the number of rounds that count.
        say: reports progress.
        breakdown: whether to time the parts of a write as well.
        folder: folder to write to; None for the system's temporary folder.
    """
    home = Path(tempfile.mkdtemp(prefix="holdfast-bench-", dir=folder))
    try:
        with open_session(home) as spark:
            register(spark)
            for source in (ArrowOnly, EncodeOnly):
                spark.dataSource.register(source)
            return _measure(spark, home, rows, rounds, say, breakdown)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _measure(spark: SparkSession, home: Path, rows: int, rounds: int, say: Say, breakdown: bool) -> Result:
    frame = spark.range(0, rows, 1, 2).selectExpr(*FLAT)
    writers = {
        "holdfast": lambda path: frame.write.format("holdfast").mode("append").save(path),
        "spark": lambda path: frame.write.mode("append").option("compression", "snappy").parquet(path),
    }
    contenders = {name: _contender(home / name, write) for name, write in writers.items()}
    # Both sides share a JVM, whose compiler keeps improving their common code during the first few runs.
    seconds = run_in_turn(contenders, rounds, say, warm_ups=3)
    contents = {name: content(spark.read.parquet(str(home / name))) for name in writers}
    assert contents["holdfast"] == contents["spark"], contents
    assert contents["spark"]["rows"] == rows, contents
    details: dict[str, object] = {f"{name}, MB on disk": round(_size_bytes(home / name) / 1e6, 1) for name in writers}
    details["checksum of both"] = contents["spark"]["checksum"]
    if breakdown:
        details.update(_break_down(frame, rounds, say))
    result = Result(
        benchmark="write",
        title=f"write {rows:,} rows x {len(FLAT)} columns, Parquet, snappy, local disk, {MASTER}",
        figure=0.0,
        figure_name="of the time of Spark's own writer",
        target=0.75,
        seconds=seconds,
        settings={"rows": rows, "tasks": 2, "codec": "snappy", "master": MASTER},
        details=details,
    )
    return result.with_figure(result.ratio_of("holdfast", "spark"))


def _contender(folder: Path, write: Callable[[str], None]) -> Callable[[int], float]:
    def run(number: int) -> float:
        shutil.rmtree(folder, ignore_errors=True)
        os.sync()  # flush what the other writer left in the page cache
        started_s = time.perf_counter()
        write(str(folder))
        return time.perf_counter() - started_s

    return run


def _size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


# --- where the time goes ----------------------------------------------------------------------------------------------
def _break_down(frame: DataFrame, rounds: int, say: Say) -> dict[str, object]:
    def timed(source: str) -> Callable[[int], float]:
        def run(number: int) -> float:
            started_s = time.perf_counter()
            frame.write.format(source).mode("append").save()
            return time.perf_counter() - started_s

        return run

    steps = {"rows to noop": "noop", "Arrow to Python": ArrowOnly.name(), "and encoded": EncodeOnly.name()}
    seconds = run_in_turn({step: timed(source) for step, source in steps.items()}, rounds, say)
    return {f"{step}, s": round(sorted(taken)[len(taken) // 2], 2) for step, taken in seconds.items()}
