"""Read tables of a database with Spark, and load them with units; see `holdfast.spark.database`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("pyspark.sql")

from pyspark.errors import PySparkException

import holdfast
from holdfast.records import CellTransaction, Database, open_database
from tests.integration.spark_session import by_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]  # PySpark's own imports warn

by_value(__name__)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/shop.db"


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    with open_database(url, create=True) as opened:
        yield opened


def read(spark: SparkSession, url: str, table: str = "words", schema: str = "", **options: object) -> DataFrame:
    reader = spark.read.format("holdfast-database").option("url", url).option("table", table)
    reader = reader.schema(schema) if schema else reader
    return reader.options(**options).load()  # type: ignore[arg-type]  # PySpark's hints leave out int


def test_values_of_every_type(spark: SparkSession, db: Database, url: str) -> None:
    cells: dict[str, dict[str, Any]] = {
        "a": {"i": 1, "f": 2.5, "t": "é\0", "b": b"\0\xff", "o": True, "a": np.array([1.0, float("inf")])}
        | {"m": np.array([[1, 2], [3, 4]]), "j": {"k": [1, None]}},
        "b": {
            "i": -(2**63),
            "f": -0.0,
            "t": "",
            "b": b"",
            "o": False,
            "a": np.array([0.5]),
            "m": np.array([[5]]),
            "j": [],
        },
        "c": {"t": "only this"},
    }

    def put(txn: CellTransaction) -> None:
        for row, columns in cells.items():
            for column, value in columns.items():
                txn.put("words", row, value, column=column)

    db.create_table("words")
    db.transact(put)
    schema = (
        "row string, i long, f double, t string, b binary, o boolean, a array<double>, m array<array<long>>, j string"
    )
    found = read(spark, url, schema=schema)
    assert [tuple(row) for row in found.orderBy("row").collect()] == [
        ("a", 1, 2.5, "é\0", b"\0\xff", True, [1.0, float("inf")], [[1, 2], [3, 4]], '{"k":[1,null]}'),
        ("b", -(2**63), -0.0, "", b"", False, [0.5], [[5]], "[]"),
        ("c", None, None, "only this", None, None, None, None, None),
    ]
    assert read(spark, url).schema.simpleString() == (
        "struct<row:string,a:array<double>,b:binary,f:double,i:bigint,j:string,m:array<array<bigint>>,o:boolean,t:string>"
    )


def test_units_load_a_table_of_which_spark_reads_parts(spark: SparkSession, db: Database, url: str) -> None:
    def put(txn: Any, number: int, row: Any) -> None:
        txn.put("new", number, row.double, column="double")

    for double in ("-1", "id * 2"):
        db.create_table("new")
        rows = spark.range(3000).selectExpr("id", f"{double} as double")
        holdfast.TransactionalMap(put, database=url, group=1024).run(rows, key="id")
        db.rename_table("new", "numbers", replace=True)
    df = read(spark, url, "numbers", rowColumn="id", partitions=4)
    assert df.rdd.getNumPartitions() == 4
    assert {(row.id, row.double) for row in df.collect()} == {(number, 2 * number) for number in range(3000)}
    some = read(spark, url, "numbers", rowColumn="id", filters='[["id", ">=", 10], ["id", "<", 13]]')
    assert sorted(row.id for row in some.collect()) == [10, 11, 12]


@pytest.mark.slow
def test_errors_are_one_sentence_without_the_password(spark: SparkSession, db: Database, url: str) -> None:
    db.create_table("mixed")
    db.put("mixed", "a", 1)
    db.put("mixed", "b", "text")
    with pytest.raises(PySparkException, match="different types: pass a schema"):
        read(spark, url, "mixed")
    with pytest.raises(PySparkException, match=r"row='b' column='value'"):
        read(spark, url, "mixed", schema="row string, value long").collect()
    with pytest.raises(PySparkException, match="did you mean rowColumn"):
        read(spark, url, "mixed", rowColum="x")
    with pytest.raises(PySparkException) as caught:
        read(spark, "postgresql://me:hunter2@127.0.0.1:1/shop", "mixed")
    assert "hunter2" not in str(caught.value)
    assert read(spark, url, "mixed", schema="row string, value string").count() == 2
    with pytest.raises(PySparkException, match="units write tables of a database"):
        spark.range(3).write.format("holdfast-database").option("url", url).mode("append").save()
