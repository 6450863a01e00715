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

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
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
