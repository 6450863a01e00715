"""Write a table through WebHDFS as a Spark driver in a process of its own: stock Spark, without Holdfast's sources."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession, functions

ROWS = 2_000_000
TASKS = 16
_CLIENT = {
    "dfs.nameservices": "demo",
    "dfs.ha.namenodes.demo": "one,two",
    "dfs.client.failover.proxy.provider.demo": (
        "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
    ),
    "dfs.client.failover.sleep.base.millis": "100",  # the default waits half a second before the other server is asked
    "dfs.client.failover.sleep.max.millis": "1000",
}


def main() -> None:
    """Write the rows. Arguments: the addresses of both servers, as host:port; Spark's work directory."""
    first, second, work = sys.argv[1:]
    client = {
        **_CLIENT,
        "dfs.namenode.http-address.demo.one": first,
        "dfs.namenode.http-address.demo.two": second,
    }
    builder = (
        SparkSession.builder.appName("holdfast namespace demo")
        .master("local[2,4]")  # two threads; at most four attempts at each task
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", work)
    )
    for name, value in client.items():
        builder = builder.config(f"spark.hadoop.{name}", value)
    spark = builder.getOrCreate()
    number = functions.col("id")
    rows = spark.range(0, ROWS, 1, TASKS).select(number, functions.sha2(number.cast("string"), 256).alias("digest"))
    rows.write.parquet("webhdfs://demo/table")
