"""A DataFrame into Parquet on local disk: Holdfast against Spark's own writer, in one warm session."""

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
from holdfast.spark.session import register

__all__ = ["measure_write"]

_ROOT = Path(__file__).resolve().parents[1]


def measure_write(rows: int, rounds: int, say: Say, *, breakdown: bool = False, folder: Path | None = None) -> Result:
    """Both writers get the same rows, tasks, codec and disk; afterwards both results are read back and compared.

    Args:
        breakdown: also time what a write consists of, from the rows alone to the whole.
        folder: where to write; None for the machine's folder for temporary files.
    """
    home = Path(tempfile.mkdtemp(prefix="holdfast-bench-", dir=folder))
    try:
        spark = _open_session(home)
        try:
            return _measure(spark, home, rows, rounds, say, breakdown)
        finally:
            spark.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _open_session(home: Path) -> SparkSession:
    # Spark's Python workers unpickle the sources of the breakdown by name.
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
    register(spark)
    for source in (ArrowOnly, EncodeOnly):
        spark.dataSource.register(source)
    return spark


def _measure(spark: SparkSession, home: Path, rows: int, rounds: int, say: Say, breakdown: bool) -> Result:
    frame = spark.range(0, rows, 1, 2).selectExpr(*FLAT)
    writers = {
        "holdfast": lambda path: frame.write.format("holdfast").mode("append").save(path),
        "spark": lambda path: frame.write.mode("append").option("compression", "snappy").parquet(path),
    }
    contenders = {name: _contender(home / name, write) for name, write in writers.items()}
    # Both sides run in one JVM, whose compiler goes on improving what they share for the first few runs.
    seconds = run_in_turn(contenders, rounds, say, warm_ups=3)
    contents = {name: _content(spark, home / name) for name in writers}
    assert contents["holdfast"] == contents["spark"], contents
    assert contents["spark"]["rows"] == rows, contents
    details: dict[str, object] = {f"{name}, MB on disk": round(_size_bytes(home / name) / 1e6, 1) for name in writers}
    details["checksum of both"] = contents["spark"]["checksum"]
    if breakdown:
        details.update(_break_down(frame, rounds, say))
    result = Result(
        benchmark="write",
        title=f"write {rows:,} rows x {len(FLAT)} columns, Parquet, snappy, local disk, local[2]",
        figure=0.0,
        figure_name="of the time of Spark's own writer",
        target=0.75,
        seconds=seconds,
        settings={"rows": rows, "tasks": 2, "codec": "snappy", "master": "local[2]"},
        details=details,
    )
    return result.with_figure(result.ratio_of("holdfast", "spark"))


def _contender(folder: Path, write: Callable[[str], None]) -> Callable[[int], float]:
    def run(number: int) -> float:
        shutil.rmtree(folder, ignore_errors=True)
        os.sync()  # nobody pays for what the other left in the page cache
        started_s = time.perf_counter()
        write(str(folder))
        return time.perf_counter() - started_s

    return run


def _content(spark: SparkSession, folder: Path) -> dict[str, object]:
    """What stock Spark reads there: rows, and a checksum over all columns that does not depend on their order."""
    frame = spark.read.parquet(str(folder))
    found = frame.selectExpr(f"xxhash64({', '.join(frame.columns)}) AS hash").selectExpr(
        "count(*) AS rows", "bit_xor(hash) AS xored", "sum(CAST(hash AS DECIMAL(38, 0))) AS summed"
    )
    row = found.collect()[0]
    return {"schema": frame.schema.simpleString(), "rows": row.rows, "checksum": f"{row.xored} {row.summed}"}


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
