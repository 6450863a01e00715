"""Parse schemas without Spark, and compare with Spark's own result."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from holdfast.errors import HoldfastError
from holdfast.formats.spark.ddl import parse_ddl
from holdfast.formats.spark.schema_json import arrow_schema_of
from holdfast.spark.types import arrow_schema, nullable

pytestmark = pytest.mark.spark

_TYPES = (
    *("void", "boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real"),
    *(
        "double",
        "decimal",
        "dec(5)",
        "numeric(38, 18)",
        "DECIMAL(3,3)",
        "string",
        "string collate UTF8_LCASE",
        "binary",
    ),
    *("date", "timestamp", "timestamp_ltz", "timestamp_ntz", "interval day", "interval day to second", "variant"),
    *("interval hour to minute", "array<int>", "array<array<string>>", "map<int,map<string,date>>", "struct<>"),
    *("struct<a:int,b:array<struct<c: string NOT NULL, `d e` decimal(9,2) comment 'x'>>>", "struct<a int>"),
)
_SCHEMAS = (
    *(
        "a int, b string",
        "a: int, b: string",
        "struct<a:int,b:string>",
        "a int not null comment 'it is, a', `b c` date",
    ),
    *("1a int", "`x``y` int", 'a int comment "q"', "comment string", "not int", "a INT, B Array<INT>"),
)
_WRONG = (
    "a null",
    "a",
    "a int,",
    "a int b int",
    "a-b int",
    "a bigitn",
    "a array<int",
    "a array",
    "a decimal(39)",
    "a decimal(2,3)",
)


@pytest.mark.parametrize("make", [lambda kind: f"c {kind}", lambda kind: f"c array<map<string,struct<f:{kind}>>>"])
def test_ddl_is_read_as_spark_reads_it(spark: SparkSession, make: object) -> None:
    assert callable(make)
    for text in (*map(make, _TYPES), *_SCHEMAS):
        expected = StructType.fromDDL(text)
        assert parse_ddl(text).equals(_in_arrow(nullable(expected))), text


def test_ddl_that_spark_refuses_is_refused(spark: SparkSession) -> None:
    for text in _WRONG:
        with pytest.raises(PySparkException):
            StructType.fromDDL(text)
        with pytest.raises(HoldfastError):
            parse_ddl(text)


def test_schema_json_is_read_as_pyspark_reads_it(spark: SparkSession) -> None:
    types = [*_TYPES, "char(3)", "varchar(8)", "time(3)", "time"]
    text = ", ".join(f"c{number} {kind}{' not null' * (number % 2)}" for number, kind in enumerate(types))
    schema = StructType.fromDDL(text)
    found = arrow_schema_of(schema.json())
    assert found.names == schema.names
    assert [found.field(name).type for name in found.names[-4:]] == [pa.string()] * 2 + [pa.time64("us")] * 2
    plain = StructType(schema.fields[:-4])  # PySpark has no Arrow type for char, and another unit for times
    assert arrow_schema_of(plain.json()).equals(_in_arrow(plain))


def _in_arrow(schema: object) -> pa.Schema:
    """Return PySpark's own mapping without the metadata that it adds to variants."""
    assert isinstance(schema, StructType)
    return arrow_schema(schema).remove_metadata()
