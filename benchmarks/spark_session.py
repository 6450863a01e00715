"""Open the Spark session of a benchmark, and summarize the rows of a DataFrame."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

__all__ = ["MASTER", "content", "open_session"]

MASTER = "local[2]"
_ROOT = Path(__file__).resolve().parents[1]


@contextlib.contextmanager
def open_session(home: Path, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Open a session on two cores and stop it at the end.

    Args:
        home: a directory for the session's warehouse and temporary files.
        settings: further settings.
    """
    # Spark's Python workers unpickle the benchmarks' data sources by name.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    spark = (
        SparkSession.builder.master(MASTER)
        .appName("holdfast-bench")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(home / "session" / "warehouse"))
        .config("spark.local.dir", str(home / "session"))
        .config(map=dict(settings or {}))
        .getOrCreate()
    )
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()


def content(frame: DataFrame, hashed: str = "") -> dict[str, object]:
    """Return the schema, the number of rows, and a checksum over all columns that ignores the order of rows.

    Args:
        frame: the rows.
        hashed: SQL expressions that are hashed for each row; empty to hash the columns themselves, none of which may be
            a map.
    """
    found = frame.selectExpr(f"xxhash64({hashed or ', '.join(frame.columns)}) AS hash").selectExpr(
        "count(*) AS rows", "bit_xor(hash) AS xored", "sum(CAST(hash AS DECIMAL(38, 0))) AS summed"
    )
    row = found.collect()[0]
    return {"schema": frame.schema.simpleString(), "rows": row.rows, "checksum": f"{row.xored} {row.summed}"}
