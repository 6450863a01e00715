"""Compare writing a DataFrame as Parquet to local disk with Spark's own writer, in one warm session."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.cpu_time import CpuMeter
from benchmarks.measure import Result, Say, run_in_turn
from benchmarks.null_sources import ArrowOnly, EncodeOnly
from benchmarks.spark_session import MASTER, content, open_session
from benchmarks.write_tables import SCHEMAS
from holdfast.spark.session import register

__all__ = ["measure_write"]


def measure_write(
    schemas: Sequence[str], rows: int, rounds: int, say: Say, *, breakdown: bool = False, folder: Path | None = None
) -> Iterator[Result]:
    """Measure both writers with the same rows, tasks, codec and disk, then read both results back and compare them.

    Yield the result of each table as soon as it is complete.

    Args:
        schemas: names of the tables to write, from `SCHEMAS`.
        rows: the number of rows of the table `flat`.
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
            for name in schemas:
                say(f"  {name}")
                yield _measure(spark, home / name, name, rows, rounds, say, breakdown)
                shutil.rmtree(home / name)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _measure(
    spark: SparkSession, home: Path, name: str, most_rows: int, rounds: int, say: Say, breakdown: bool
) -> Result:
    schema = SCHEMAS[name]
    rows = max(round(most_rows * schema.share), 1)
    frame = spark.range(0, rows, 1, 2).selectExpr(*schema.columns)
    writers: dict[str, Callable[[str], None]] = {
        "holdfast": lambda path: frame.write.format("holdfast").mode("append").save(path),
        "spark": lambda path: frame.write.mode("append").option("compression", "snappy").parquet(path),
    }
    with CpuMeter() as meter:
        contenders = {who: _Contender(home / who, write, meter) for who, write in writers.items()}
        # Both sides share a JVM, whose compiler keeps improving their common code during the first few runs.
        seconds = run_in_turn(contenders, rounds, say, warm_ups=3)
        parts = _break_down(frame, home / "nowhere", meter, rounds, say) if breakdown else {}
    contents = {who: content(spark.read.parquet(str(home / who)), schema.hashed) for who in writers}
    assert contents["holdfast"] == contents["spark"], contents
    assert contents["spark"]["rows"] == rows, contents
    details: dict[str, object] = {f"{who}, MB on disk": round(_size_bytes(home / who) / 1e6, 1) for who in writers}
    for who, contender in contenders.items():
        details[f"{who}, CPU s"] = round(statistics.median(contender.cpu_s), 2)
    details["checksum of both"] = contents["spark"]["checksum"]
    details.update(parts)
    result = Result(
        benchmark=f"write-{name}",
        title=f"write {rows:,} rows x {len(schema.columns)} columns, Parquet, snappy, local disk, {MASTER}",
        figure=0.0,
        figure_name="of the time of Spark's own writer",
        target=0.75,
        seconds=seconds,
        settings={"schema": name, "rows": rows, "tasks": 2, "codec": "snappy", "master": MASTER},
        details=details,
    )
    return result.with_figure(result.ratio_of("holdfast", "spark"))


@dataclass(frozen=True)
class _Contender:
    """A writer; its CPU seconds depend less than its time on the machine's other load."""

    folder: Path
    write: Callable[[str], None]
    meter: CpuMeter
    cpu_s: list[float] = field(default_factory=list)

    def __call__(self, number: int) -> float:
        shutil.rmtree(self.folder, ignore_errors=True)
        os.sync()  # flush what the other writer left in the page cache
        cpu_s, started_s = self.meter.seconds(), time.perf_counter()
        self.write(str(self.folder))
        taken_s = time.perf_counter() - started_s
        if number > 0:
            self.cpu_s.append(self.meter.seconds() - cpu_s)
        return taken_s


def _size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


# --- where the time goes ----------------------------------------------------------------------------------------------
def _break_down(frame: DataFrame, nowhere: Path, meter: CpuMeter, rounds: int, say: Say) -> dict[str, object]:
    def part(source: str) -> _Contender:
        return _Contender(nowhere, lambda _: frame.write.format(source).mode("append").save(), meter)

    sources = {"rows to noop": "noop", "Arrow to Python": ArrowOnly.name(), "and encoded": EncodeOnly.name()}
    parts = {step: part(source) for step, source in sources.items()}
    seconds = run_in_turn(parts, rounds, say)
    details: dict[str, object] = {}
    for step, taken in seconds.items():
        details[f"{step}, s"] = round(statistics.median(taken), 2)
        details[f"{step}, CPU s"] = round(statistics.median(parts[step].cpu_s), 2)
    return details
