"""Write to a namespace with Spark, and read it back: every job is one transaction."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import holdfast
from holdfast.errors import NotFoundError
from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.s3_server import SeaweedServer
from holdfast.stores.s3 import S3Options
from tests.variants import variants

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]


@pytest.fixture(params=variants(["sqlite", "postgresql", "mysql"]))
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    urls: dict[str, Callable[[], str]] = {
        "sqlite": lambda: f"sqlite://{tmp_path}/ns.db",
        "postgresql": lambda: request.getfixturevalue("new_postgres_url")(),
        "mysql": lambda: request.getfixturevalue("new_mysql_url")(),
    }
    url = urls[request.param]()
    configuration = Configuration(name="lake", data=str(tmp_path / "data"), superuser=getpass.getuser())
    init_namespace(configuration, url, register=False)
    return url


def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, 300, 1, 3).selectExpr("id", "cast(id % 3 as int) as k", "concat('v ', id % 2) as `o d`")


def ids(df: DataFrame) -> list[int]:
    return sorted(row["id"] for row in df.collect())


def files(namespace: Namespace, path: str) -> list[str]:
    return [entry.path for entry in namespace.walk(path) if "part-" in entry.name]


def test_jobs_on_a_namespace(spark: SparkSession, database: str) -> None:
    url = "holdfast://lake/ünï %20/t"
    access = {"namespace_database": database}
    assert holdfast.write(rows(spark), url, partition_by=["k", "o d"], **access).finished
    assert ids(holdfast.read(spark, url, **access)) == [*range(300)]
    holdfast.write(
        rows(spark).filter("k = 1 and id < 30"), url, mode="overwrite-partitions", partition_by=["k", "o d"], **access
    )
    expected = [i for i in range(300) if i % 3 != 1 or i < 30]
    assert ids(holdfast.read(spark, url, **access)) == expected
    holdfast.write(rows(spark).filter("id < 9"), url, mode="overwrite", partition_by=["k", "o d"], **access)
    assert ids(holdfast.read(spark, url, **access)) == [*range(9)]
    with open_namespace(database) as namespace:
        assert len(files(namespace, "/ünï %20/t")) > 0
        assert namespace.exists("/ünï %20/t/_SUCCESS")
        assert not [path for path in files(namespace, "/") if "/_holdfast/" in path]


def test_the_format_takes_the_database_as_an_option(spark: SparkSession, database: str) -> None:
    url = "holdfast://lake/t"
    holdfast.spark.register(spark)
    for _ in range(2):
        rows(spark).write.format("holdfast").option("namespaceDatabase", database).mode("append").save(url)
    read = spark.read.format("holdfast").option("namespaceDatabase", database).load(url)
    assert ids(read) == sorted([*range(300)] * 2)


def test_a_failed_job_leaves_nothing(spark: SparkSession, database: str) -> None:
    url = "holdfast://lake/t"
    bad = rows(spark).selectExpr("id", "if(id = 299, raise_error('no'), 'v') as v")
    with pytest.raises(PySparkException):
        holdfast.write(bad, url, namespace_database=database)
    with open_namespace(database) as namespace:
        assert files(namespace, "/") == []


def test_an_unknown_namespace_is_refused_in_one_sentence(spark: SparkSession) -> None:
    with pytest.raises(NotFoundError, match="no such namespace"):
        holdfast.write(rows(spark), "holdfast://nowhere/t")


@pytest.mark.slow
@pytest.mark.s3
def test_options_of_the_data_reach_executors(
    spark: SparkSession, server: SeaweedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defect: a job on a namespace with data on a server that is not AWS ignored the endpoint, and asked AWS."""
    server.create_bucket("lake")
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(tmp_path / "catalog.json"))
    keys = {"access_key": "holdfast", "secret_key": "holdfast-secret"}
    database = f"sqlite://{tmp_path}/ns.db"
    configuration = Configuration(name="lake", data="s3://lake/data", superuser=getpass.getuser(), inline_bytes=0)
    reach = S3Options(endpoint_url=server.endpoint_url, region="us-east-1", **keys)
    init_namespace(configuration, database, store_options=[reach])
    access = {"namespaceDatabase": database, "endpoint": server.endpoint_url, "region": "us-east-1", **keys}

    url = "holdfast://lake/t"
    assert holdfast.write(rows(spark), url, **access).finished
    holdfast.spark.register(spark)
    rows(spark).write.format("holdfast").options(**access).mode("append").save(url)
    assert ids(spark.read.format("holdfast").options(**access).load(url)) == sorted([*range(300)] * 2)
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load().writeStream.format("holdfast")
    running = stream.options(**access).option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    running.start("holdfast://lake/stream").awaitTermination(120)
    assert holdfast.read(spark, "holdfast://lake/stream", **access).count() > 0
    with open_namespace(database, store_options=[reach]) as namespace:
        assert files(namespace, "/t") and namespace.check().totals == {}
