"""Parse the JSON of schemas without Spark, and compare with Spark's own result."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from holdfast.formats.schema_json import arrow_schema_from_json
from holdfast.spark.types import make_arrow_schema

pytestmark = pytest.mark.spark

_TYPES = (
    *("void", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "decimal(38, 18)"),
    *("string", "string collate UTF8_LCASE", "binary", "date", "timestamp", "timestamp_ntz", "variant"),
    *("interval day", "interval day to second", "interval hour to minute", "array<int>", "array<array<string>>"),
    *("map<int,map<string,date>>", "struct<a:int,b:array<struct<c: string NOT NULL, `d e` decimal(9,2)>>>"),
)


def test_schema_json_is_read_as_pyspark_reads_it(spark: SparkSession) -> None:
    types = [*_TYPES, "char(3)", "varchar(8)", "time(3)", "time"]
    text = ", ".join(f"c{number} {kind}{' not null' * (number % 2)}" for number, kind in enumerate(types))
    schema = StructType.fromDDL(text)
    found = arrow_schema_from_json(schema.json())
    assert found.names == schema.names
    assert [found.field(name).type for name in found.names[-4:]] == [pa.string()] * 2 + [pa.time64("us")] * 2
    plain = StructType(schema.fields[:-4])  # PySpark has no Arrow type for char, and another unit for times
    # PySpark's own mapping has metadata of variants only
    assert arrow_schema_from_json(plain.json()).equals(make_arrow_schema(plain).remove_metadata())
