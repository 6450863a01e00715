"""Check what stock Spark does with a Python source in SQL and in its catalog: the table in docs/reference/spark.md.

Runs in the test's own process for classic Spark, and in a client's for Spark Connect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["MADE", "OUTCOMES", "outcomes"]

NO_PLACE = "Spark does not tell a Python source where a table of its catalog is stored"
NO_TABLE = f"{NO_PLACE}, so it could not be read: write with save(path) or holdfast.write"
MADE = "works, for Spark makes it without asking us"
NO_MODE = 'cannot be written in the "'

OUTCOMES: Mapping[str, str] = {
    "CREATE TEMPORARY VIEW v USING holdfast OPTIONS (path …)": "works",
    "SELECT … FROM v": "works",
    "INSERT INTO v …": "works",
    "INSERT OVERWRITE v …": "works",
    "CREATE TABLE t USING holdfast LOCATION …": NO_TABLE,
    "CREATE TABLE t USING holdfast OPTIONS (path …, partitionBy …)": NO_TABLE,
    "CREATE TABLE t USING holdfast LOCATION … AS SELECT …": NO_PLACE,
    "spark.catalog.createTable(…, source='holdfast')": NO_TABLE,
    "df.write.format('holdfast').saveAsTable(…)": NO_PLACE,
    "df.write.format('holdfast').option('path', …).saveAsTable(…)": NO_TABLE,
    "df.write.format('holdfast').partitionBy(…).option('path', …).saveAsTable(…)": NO_TABLE,
    "df.writeTo(…).using('holdfast').option('path', …).create()": NO_TABLE,
    "CREATE TABLE t (…) USING holdfast LOCATION …": MADE,
    "SELECT … FROM t": NO_PLACE,
    "spark.table('t')": NO_PLACE,
    "INSERT INTO t …": NO_PLACE,
    "df.write.insertInto('t')": NO_PLACE,
    "df.writeTo('t').append()": NO_PLACE,
    "DESCRIBE t": "works",
    "ALTER TABLE t …": "works",
    "DROP TABLE t": "works",
    "SELECT … FROM holdfast.`…`": "Unsupported data source type for direct query on files",
    "INSERT OVERWRITE DIRECTORY … USING holdfast": "Only Data Sources providing FileFormat are supported",
    "df.write.format('holdfast').mode('ignore').save(…)": NO_MODE,
    "df.write.format('holdfast').partitionBy(…).save(…)": "do not match the existing table's",
    "df.write.format('holdfast').clusterBy(…).save(…)": "do not match the existing table's",
    "df.write.format('holdfast').bucketBy(…).save(…)": "'save' does not support bucketBy",
}
"""For each statement ``works``, or what its error says. All in one sentence, ours or Spark's."""


def outcomes(spark: SparkSession, base: Path) -> dict[str, str]:
    """Return the result of each statement in the order of `OUTCOMES`: ``works`` if its whole effect is visible."""
    import holdfast

    df = spark.range(0, 10, 1, 2).selectExpr("id", "cast(id % 2 as int) as k", "concat('v', id) as v")
    there = str(base / "there")
    holdfast.write(df, there, partition_by="k")

    def ids(url: str = there) -> list[int]:
        return sorted(row["id"] for row in spark.read.format("holdfast").load(url).collect())

    def insert(ids_after: list[int], statement: str) -> bool:
        spark.sql(statement)
        return ids() == ids_after

    def sql(statement: str) -> Callable[[], Any]:
        return lambda: spark.sql(statement).collect()

    def query(statement: str, rows: int) -> Callable[[], bool]:
        return lambda: len(spark.sql(statement).collect()) == rows

    ours = df.write.format("holdfast").mode("append")
    acts: list[Callable[[], Any]] = [
        sql(f"CREATE TEMPORARY VIEW v USING holdfast OPTIONS (path '{there}', partitionBy 'k')"),
        query("SELECT id, k, v FROM v WHERE k = 1", 5),
        lambda: insert([*range(10), 100], "INSERT INTO v (id, k, v) VALUES (100, 1, 'x')"),
        lambda: insert([7], "INSERT OVERWRITE v (id, k, v) SELECT 7L, 1, 'y'"),
        sql(f"CREATE TABLE t USING holdfast LOCATION '{there}'"),
        sql(f"CREATE TABLE t USING holdfast OPTIONS (path '{there}', partitionBy 'k')"),
        sql(f"CREATE TABLE t USING holdfast LOCATION '{base}/ctas' AS SELECT 1 AS id"),
        lambda: spark.catalog.createTable("t", path=there, source="holdfast"),
        lambda: ours.saveAsTable("t"),
        lambda: ours.option("path", str(base / "saved")).saveAsTable("t"),
        lambda: ours.partitionBy("k").option("path", str(base / "parted")).saveAsTable("t"),
        lambda: df.writeTo("t").using("holdfast").option("path", str(base / "created")).create(),
        sql(f"CREATE TABLE t (id bigint, k int, v string) USING holdfast LOCATION '{there}'"),
        sql("SELECT * FROM t"),
        lambda: spark.table("t").count(),
        sql("INSERT INTO t VALUES (1, 1, 'x')"),
        lambda: df.write.insertInto("t"),
        lambda: df.writeTo("t").append(),
        query("DESCRIBE t", 3),
        lambda: spark.sql("ALTER TABLE t ADD COLUMNS (z int)").collect() == [],
        lambda: spark.sql("DROP TABLE t").collect() == [] and not spark.catalog.tableExists("t"),
        sql(f"SELECT * FROM holdfast.`{there}`"),
        sql(f"INSERT OVERWRITE DIRECTORY '{base}/directory' USING holdfast SELECT 1 AS id"),
        lambda: df.write.format("holdfast").mode("ignore").save(str(base / "plain")),
        lambda: df.write.format("holdfast").mode("append").partitionBy("k").save(str(base / "plain")),
        lambda: df.write.format("holdfast").mode("append").clusterBy("k").save(str(base / "plain")),
        lambda: df.write.format("holdfast").mode("append").bucketBy(2, "k").save(str(base / "plain")),
    ]
    found = {}
    for name, act in zip(OUTCOMES, acts, strict=True):
        try:
            done = act()
        except (PySparkException, Py4JError) as error:
            found[name] = str(error)
        else:
            found[name] = "works" if done is not False else "something is missing"
    found["tables left"] = str([table.name for table in spark.catalog.listTables() if not table.isTemporary])
    found["rows left"] = str([*map(str, ids())])
    return found
