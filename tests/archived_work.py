"""Run a little of everything that tests do with Spark, so that `tests.class_archive` stores the classes it needs."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import holdfast

__all__ = ["main"]

_PATIENCE_S = 600


def main(folder: Path) -> None:
    """Run the work, then wait for the JVM to exit, because it writes the archive only then."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    rows = session.range(20).selectExpr("id", "id % 2 as k", "cast(id as string) as s", "array(id) as a")
    for name in ("parquet", "orc", "json"):
        rows.write.partitionBy("k").format(name).save(str(folder / name))
        session.read.format(name).load(str(folder / name)).where("id > 1").groupBy("k").count().collect()
    rows.drop("a").write.csv(str(folder / "csv"), header=True)
    session.read.csv(str(folder / "csv"), header=True, inferSchema=True).orderBy("id").toArrow()
    rows.mapInArrow(lambda batches: batches, rows.schema).collect()
    url = str(folder / "table")
    holdfast.write(rows, url, partition_by="k")
    for reader in ("native", "python"):
        holdfast.read(session, url, reader=reader).where("id > 1").collect()
    stream = session.readStream.schema(rows.schema).json(str(folder / "json")).writeStream.format("holdfast")
    stream = stream.option("checkpointLocation", str(folder / "checkpoint")).option("streamId", "s")
    query = stream.trigger(availableNow=True).start(str(folder / "streamed"))
    query.awaitTermination(_PATIENCE_S)
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=_PATIENCE_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
