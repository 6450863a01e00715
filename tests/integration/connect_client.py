"""Run a client of Spark Connect in its own process: a whole process of PySpark is either a client or classic.

It starts a local server, uses Holdfast there, and prints the results as one JSON document.

Usage: python -m tests.integration.connect_client DIRECTORY PART…
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import xxhash64

import holdfast
from holdfast.spark.units import TransactionalMap, TransactionalReduce
from holdfast.units.work_list import open_work_list
from tests.integration.catalog_statements import outcomes
from tests.integration.spark_session import by_value

by_value(__name__)


def write_and_read(spark: SparkSession, base: Path) -> Any:
    df = spark.range(0, 100, 1, 2).selectExpr("id", "cast(id % 3 as int) as k", "concat('v', id) as v")
    url = str(base / "t")
    first = holdfast.write(df, url, partition_by="k")
    again = holdfast.write(df.filter("k = 1 and id < 10"), url, mode="overwrite-partitions", partition_by=["k"])
    with holdfast.job(spark, str(base / "files")) as job:
        results = job.run(df, _save)
    whole = holdfast.read(spark, url)
    some = holdfast.read(spark, url, columns=["id", "k"], filters=[("k", "=", 1)])
    return {
        "rows": [first.rows, again.rows],
        "finished": [first.finished, again.finished],
        "ids": sorted(row["id"] for row in whole.collect()),
        "types": whole.dtypes,
        "some": sorted(row["id"] for row in some.collect()),
        "files": [results, job.result.files],
        "setting": spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch"),
    }


def _save(task: Any, batches: Any) -> list[int]:
    with task.open(f"{task.partition}.txt", "w") as file:
        file.write(str(task.partition))
    return [sum(map(len, batches))]


def errors(spark: SparkSession, base: Path) -> Any:
    df = spark.range(3)
    url = str(base / "errors")
    holdfast.write(df, url)
    calls: dict[str, Callable[[], object]] = {
        "exists": lambda: holdfast.write(df, url, mode="fail"),
        "column": lambda: holdfast.write(df, url, partition_by="kk"),
        "nothing": lambda: holdfast.read(spark, str(base / "nothing")),
        "relative": lambda: holdfast.write(df, "somewhere"),
        "relative read": lambda: holdfast.read(spark, "somewhere"),
        "task": lambda: holdfast.write(df.selectExpr("raise_error('injected') as e"), url + "-task"),
        "ignore": lambda: holdfast.write(df, url, mode="ignore"),
    }
    found = {}
    for name, call in calls.items():
        try:
            found[name] = ["no error", str(call())]
        except (holdfast.HoldfastError, PySparkException) as error:
            found[name] = [type(error).__name__, str(error)]
    return found


def streams(spark: SparkSession, base: Path) -> Any:
    found: dict[str, Any] = {}
    source = str(base / "source")
    spark.range(0, 20, 1, 2).write.parquet(source)

    def stream(name: str, rows: Any) -> None:
        options = {"checkpointLocation": str(base / f"checkpoint {name}")}
        try:
            query = rows.options(**options).trigger(availableNow=True).start()
            query.awaitTermination(120)
            failed = query.exception()
            found[name] = "ended" if failed is None else str(failed)
        except PySparkException as error:
            found[name] = str(error)

    rows = spark.readStream.schema("id long").parquet(source)
    stream("writeStream", rows.writeStream.format("holdfast").option("path", str(base / "stream")))
    target = str(base / "each")

    def each(batch: DataFrame, number: int) -> None:
        import holdfast

        holdfast.write(batch, target)

    stream("foreachBatch", rows.writeStream.foreachBatch(each))
    back = spark.readStream.format("holdfast").load(str(base / "stream"))
    stream("readStream", back.writeStream.format("memory").queryName("back"))
    for name in ("stream", "each"):
        found[name] = sorted(row["id"] for row in holdfast.read(spark, str(base / name)).collect())
    return found


def lines_without_drops(spark: SparkSession, base: Path) -> DataFrame:
    """Return 40 rows of a file with 60 lines: whether Spark drops a line depends on the columns that it reads."""
    path = base / "lines.csv"
    path.write_text("".join(f"{number},v{number},{'x' if number % 3 == 0 else number}\n" for number in range(60)))
    return spark.read.schema("id int, v string, n int").option("mode", "DROPMALFORMED").csv(str(path))


def rows_of_replaced(spark: SparkSession, before: str, now: str) -> DataFrame:
    """Return the rows of a view that was replaced since the client has asked for its columns."""
    spark.sql(before).createOrReplaceTempView("replaced")
    rows = spark.table("replaced")
    assert rows.columns == ["id", "v"]
    spark.sql(now).createOrReplaceTempView("replaced")
    return rows


def units(spark: SparkSession, base: Path) -> Any:
    url = f"sqlite://{base}/database.db?synchronous=normal"
    rows = spark.range(0, 60, 1, 2).selectExpr("id % 20 as k", "concat('v', id) as v", "id")

    def note(txn: Any, key: Any, value: Any) -> None:
        txn.put("seen", key, value["v"])

    def note_size(txn: Any, key: Any, values: Any) -> None:
        txn.add("sizes", key, sum(row["id"] for row in values))

    def visit(txn: Any, key: Any, value: Any) -> None:
        txn.add("visits", key)
        for near in (2 * key, 2 * key + 1):
            if near < 100:
                txn.emit(near)

    found: dict[str, Any] = {}
    with holdfast.open_database(url, create=True) as db:
        for table in ("seen", "sizes", "visits"):
            db.create_table(table)
        open_work_list(db, "tree", create=True).add(1)
        reports = {
            "map": TransactionalMap(note, database=url).run(rows, key="id"),
            "reduce": TransactionalReduce(note_size, database=url).run(rows, key="k", tasks=3),
            "work list": TransactionalMap(visit, database=url).run_work_list(spark, "tree", tasks=2),
            "no rows": TransactionalMap(note, database=url).run(rows.filter("1 = 0"), key="id", tasks=3),
            "few rows": TransactionalMap(note, database=url).run(rows.filter("id = 7"), key="id", tasks=5),
            "dropped lines": TransactionalMap(note, database=url).run(
                lines_without_drops(spark, base), key="id", tasks=2
            ),
            "placed rows": TransactionalMap(note, database=url).run(
                rows.repartition(xxhash64("id")).filter("length(v) > 0"), key="id", tasks=2
            ),
        }
        for name, report in reports.items():
            found[name] = [report.total.units, len(report.tasks)]
        for table in ("seen", "sizes", "visits"):
            found[table] = [[row, columns["value"]] for row, columns in db.scan(table)]
        replaced = {
            "reordered": ("SELECT 1 AS id, 'v' AS v", "SELECT 'v' AS v, 1 AS id"),
            "retyped": ("SELECT 1 AS id, NULL AS v", "SELECT 1 AS id, 'v' AS v"),
            "key": ("SELECT 1 AS id, 'v' AS v", "SELECT '1' AS id, 'v' AS v"),
            "field": ("SELECT 1 AS id, struct(1 AS a) AS v", "SELECT 1 AS id, struct(1 AS b) AS v"),
        }
        for name, queries in replaced.items():
            db.create_table(name)

            def note_value(txn: Any, key: Any, value: Any, table: str = name) -> None:
                txn.put(table, key, str(value["v"]))

            TransactionalMap(note_value, database=url).run(
                rows_of_replaced(spark, *queries), key="id", job="replaced-" + name
            )
            found[f"replaced: {name}"] = [[row, columns["value"]] for row, columns in db.scan(name)]
    calls: dict[str, Callable[[], object]] = {
        "pairs": lambda: TransactionalMap(note, database=url).run([(1, 2)], key="id"),
        "null": lambda: TransactionalMap(note, database=url).run(rows.selectExpr("nullif(id, 3) id", "v"), key="id"),
        "no text": lambda: TransactionalMap(note, database=url).run(
            spark.sql("SELECT cast(X'4DFC' AS string) AS id, 'v' AS v"), key="id"
        ),
        "dotted": lambda: TransactionalMap(note, database=url).run(rows.selectExpr("v", "id AS `a.b`"), key="v"),
        "failing": lambda: TransactionalMap(lambda txn, key, row: 1 // 0, database=url).run(rows, key="id"),
    }
    for name, call in calls.items():
        try:
            found[name] = ["no error", str(call())]
        except (holdfast.HoldfastError, PySparkException) as error:
            found[name] = [type(error).__name__, str(error)]
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    base = Path(sys.argv[1])
    builder = SparkSession.builder.remote("local[2]")
    settings = {"ui.enabled": "false", "driver.memory": "1g", "sql.shuffle.partitions": "2", "log.level": "OFF"}
    for key, value in (settings | {"sql.warehouse.dir": str(base / "warehouse")}).items():
        builder = builder.config(f"spark.{key}", value)
    spark = builder.getOrCreate()
    try:
        parts = {
            "tables": outcomes,
            "write and read": write_and_read,
            "errors": errors,
            "streams": streams,
            "units": units,
        }
        found = {}
        for name in sys.argv[2:]:
            (base / name).mkdir()
            found[name] = parts[name](spark, base / name)
    finally:
        spark.stop()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    main()
