"""Test Spark's schema JSON: it follows the Arrow types, with Spark's further details as long as they fit."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.errors import UnsupportedError
from holdfast.formats import get_format
from holdfast.formats.columns.types import (
    VARIANT,
    attach_spark_json,
    find_spark_type_of_struct,
    spark_json_of,
    with_field_metadata_of,
)
from holdfast.formats.schema_json import arrow_schema_to_json, restore_spark_types

POINT_STRUCT = {
    "type": "struct",
    "fields": [{"name": "x", "type": "double", "nullable": False, "metadata": {}}],
}
POINT = {"type": "udt", "class": "x.Point", "pyClass": "x.Point", "sqlType": POINT_STRUCT}


def spark_json(kind: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": "c", "type": kind, "nullable": True, "metadata": metadata}


def printed(arrow: pa.DataType, spark: Any, **metadata: Any) -> dict[str, Any]:
    field = attach_spark_json(pa.field("c", arrow), spark_json(spark, **metadata))
    found: dict[str, Any] = json.loads(arrow_schema_to_json(pa.schema([field])))["fields"][0]
    return found


@pytest.mark.parametrize(
    ("arrow", "spark"),
    [
        (pa.duration("us"), "interval day"),
        (pa.duration("us"), "interval hour to second"),
        (pa.time64("ns"), "time(3)"),
        (VARIANT, "variant"),
        (pa.list_(pa.duration("us")), {"type": "array", "elementType": "interval minute", "containsNull": True}),
        (
            pa.map_(pa.string(), pa.time64("us")),
            {"type": "map", "keyType": "string", "valueType": "time(0)", "valueContainsNull": True},
        ),
        (pa.struct([pa.field("x", pa.float64(), nullable=False)]), POINT),
    ],
)
def test_what_spark_said_is_kept(arrow: pa.DataType, spark: Any) -> None:
    assert printed(arrow, spark, comment="why", k=[1, 2]) == spark_json(spark, comment="why", k=[1, 2])


@pytest.mark.parametrize(
    ("arrow", "spark", "now"),
    [
        (pa.int64(), "integer", "long"),
        (pa.duration("us"), "long", "interval day to second"),
        (pa.string(), "interval day", "string"),
        (pa.time64("us"), "time(9)", "time(6)"),
        (pa.float64(), POINT, "double"),
        (pa.binary(), "variant", "binary"),
    ],
)
def test_a_column_that_was_cast_is_what_it_is_now(arrow: pa.DataType, spark: Any, now: Any) -> None:
    assert printed(arrow, spark)["type"] == now


def test_fields_of_structs_keep_their_own() -> None:
    inner = {"name": "s", "type": "string", "nullable": True, "metadata": {"__COLLATIONS": {"s": "icu.UNICODE_CI"}}}
    other = {"name": "n", "type": "integer", "nullable": True, "metadata": {"comment": "x"}}
    arrow = pa.struct([("n", pa.int32()), ("s", pa.string())])
    found = printed(arrow, {"type": "struct", "fields": [inner, other]})
    assert found["type"]["fields"] == [other, inner]


def test_without_a_word_of_spark_the_types_are_arrows() -> None:
    schema = pa.schema([("a", pa.dictionary(pa.int32(), pa.string())), ("b", pa.list_(pa.timestamp("us")))])
    fields = json.loads(arrow_schema_to_json(schema))["fields"]
    assert [field["type"] for field in fields] == [
        "string",
        {"type": "array", "elementType": "timestamp_ntz", "containsNull": True},
    ]


def test_a_schema_is_described_like_another() -> None:
    one = pa.schema([attach_spark_json(pa.field("c", pa.duration("us")), spark_json("interval day"))])
    other = pa.schema([pa.field("c", pa.duration("us"))])
    assert arrow_schema_to_json(with_field_metadata_of(other, one)) == arrow_schema_to_json(one)


# --- files ------------------------------------------------------------------------------------------------------------
def parquet(column: Any, spark: Any, **metadata: Any) -> io.BytesIO:
    """Return a file as Spark might write it: the column, and the schema JSON in the metadata."""
    file = io.BytesIO()
    table = pa.table({"c": column})
    writer = pq.ParquetWriter(file, table.schema, store_schema=False)
    writer.write_table(table)
    note = json.dumps({"type": "struct", "fields": [spark_json(spark, **metadata)]})
    writer.add_key_value_metadata({"org.apache.spark.sql.parquet.row.metadata": note})
    writer.close()
    return file


def read(file: io.BytesIO) -> tuple[pa.Schema, list[Any]]:
    parquet_format = get_format("parquet")
    options = parquet_format.default_options
    schema = parquet_format.read_schema(file, options)
    batches = parquet_format.read_batches(file, schema, ["c"], None, options, None)
    return schema, [value for batch in batches for value in batch.column(0).cast(schema.field("c").type).to_pylist()]


VALUE = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}


def test_variant_of_spark_is_recognized_and_read() -> None:
    stored = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    schema, values = read(parquet(pa.array([VALUE, None, VALUE], stored), "variant"))
    assert find_spark_type_of_struct(schema.field("c").type) == "variant"
    assert values == [VALUE, None, VALUE]
    schema, values = read(
        parquet(pa.array([[VALUE, None], None], pa.list_(stored)), {"type": "array", "elementType": "variant"})
    )
    assert find_spark_type_of_struct(schema.field("c").type.value_type) == "variant"
    assert values == [[VALUE, None], None]


@pytest.mark.parametrize("nested", [False, True])
def test_variant_in_parts_is_refused_before_a_row_is_read(nested: bool) -> None:
    stored = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
    shredded = pa.array([{**VALUE, "value": None, "typed_value": 1}], stored)
    spark: Any = "variant"
    if nested:
        shredded = pa.StructArray.from_arrays([shredded], names=["v"])
        spark = {"type": "struct", "fields": [{"name": "v", "type": "variant"}]}
    with pytest.raises(UnsupportedError, match="which only Spark can read"):
        read(parquet(shredded, spark))


def test_intervals_of_spark_are_recognized() -> None:
    schema, values = read(parquet(pa.array([86_400_000_000, None]), "interval day"))
    assert schema.field("c").type == pa.duration("us")
    found = spark_json_of(schema.field("c"))
    assert found is not None and found["type"] == "interval day"
    assert [None if value is None else value.days for value in values] == [1, None]


FOREIGN_NOTES = [
    b"{",
    b"[]",
    b"[" * 50_000,
    b'{"fields":1}',
    b'{"fields":[1]}',
    b'{"fields":{"a":1}}',
    b'{"fields":[{"nme":"c"}]}',
    b'{"fields":[{"name":"c"}]}',
    b'{"fields":[{"name":"c","type":{"type":"udt"}}]}',
    b'{"fields":[{"name":"c","type":{"type":"struct","fields":null}}]}',
    b'{"fields":[{"name":"c","type":{"type":"struct","fields":[7]}}]}',
]
"""What any writer may put under Spark's key."""


@pytest.mark.parametrize("kind", [pa.int64(), pa.struct([("x", pa.int64())])])
@pytest.mark.parametrize("note", [*FOREIGN_NOTES, None])
def test_a_note_of_another_writer_changes_nothing(note: bytes | None, kind: pa.DataType) -> None:
    schema = pa.schema([("c", kind)])
    assert restore_spark_types(schema, note).equals(schema)


@pytest.mark.parametrize("note", FOREIGN_NOTES)
def test_a_file_with_a_note_of_another_writer_is_read(note: bytes) -> None:
    file = io.BytesIO()
    table = pa.table({"c": pa.array([{"x": 1}, None])})
    pq.write_table(table.replace_schema_metadata({b"org.apache.spark.sql.parquet.row.metadata": note}), file)
    assert read(file)[1] == [{"x": 1}, None]
