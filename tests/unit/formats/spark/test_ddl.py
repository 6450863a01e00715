"""Test parsing Spark's DDL and schema JSON without Spark; tests/integration compares the results with Spark's."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats.spark.ddl import parse_ddl
from holdfast.formats.spark.schema_json import arrow_schema_of, spark_schema_json

EVERY_TYPE = pa.schema(
    [
        ("a", pa.null()),
        ("b", pa.bool_()),
        ("c", pa.int8()),
        ("d", pa.int16()),
        ("e", pa.int32()),
        ("f", pa.int64()),
        ("g", pa.float32()),
        ("h", pa.float64()),
        ("i", pa.decimal128(38, 18)),
        ("j", pa.string()),
        ("k", pa.binary()),
        ("l", pa.date32()),
        ("m", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("o", pa.duration("us")),
        ("p", pa.time64("us")),
        ("q", pa.list_(pa.field("element", pa.list_(pa.field("element", pa.int32(), False))))),
        ("r", pa.map_(pa.string(), pa.struct([pa.field("x", pa.decimal128(3, 0), False), ("y z", pa.string())]))),
        pa.field("an `odd` näme", pa.struct([("s", pa.map_(pa.int8(), pa.field("value", pa.date32(), False)))]), False),
    ]
)


def test_schema_json_there_and_back() -> None:
    assert arrow_schema_of(spark_schema_json(EVERY_TYPE)).equals(EVERY_TYPE)


@pytest.mark.parametrize("field", list(EVERY_TYPE), ids=[str(field.type) for field in EVERY_TYPE])
def test_json_of_arrow_is_the_same_again(field: pa.Field) -> None:
    text = spark_schema_json(pa.schema([field]))
    assert spark_schema_json(arrow_schema_of(text)) == text


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"type":"array"}', '{"type":"struct","fields":[{"name":"x"}]}', "1"])
def test_damaged_schema_json_is_reported(text: str) -> None:
    with pytest.raises(CorruptDataError, match="keep the bytes and report"):
        arrow_schema_of(text)


def test_a_kept_type_that_only_spark_reads_names_its_column() -> None:
    kept = {"type": "struct", "fields": [{"name": "age", "type": "interval year to month", "nullable": True}]}
    with pytest.raises(InvalidRequestError, match=r"cannot be read without Spark.*column='age'"):
        arrow_schema_of(json.dumps(kept))


def test_a_user_defined_type_is_what_it_is_stored_as() -> None:
    udt = {"type": "udt", "class": "x", "sqlType": {"type": "array", "elementType": "double", "containsNull": False}}
    kept = {"type": "struct", "fields": [{"name": "v", "type": udt, "nullable": True, "metadata": {}}]}
    assert arrow_schema_of(json.dumps(kept)).field("v").type == pa.list_(pa.field("element", pa.float64(), False))


def test_ddl_of_columns_and_nested_types() -> None:
    found = parse_ddl(
        "id bigint NOT NULL, `a ``b`` c` Decimal(10,2) COMMENT 'a''s', m map<string,array<struct<x:int>>>"
    )
    assert found.names == ["id", "a `b` c", "m"]
    assert found.field(0) == pa.field("id", pa.int64())
    assert found.field(1).type == pa.decimal128(10, 2)
    inner = pa.struct([("x", pa.int32())])
    assert found.field(2).type == pa.map_(pa.string(), pa.list_(pa.field("element", inner)))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no columns"),
        ("id", r"does not parse.*found='id'"),
        ("id bigint,", r"does not parse.*found=''"),
        ("id bigint name string", r"does not parse.*found='bigint name string'"),
        ("id bigitn", "no such type: did you mean bigint"),
        ("a array<int", r"does not parse.*found='array<int'"),
        ("a decimal(39,0)", "a decimal has 1 to 38 digits"),
        ("a decimal(5,6)", "no more of them behind the point"),
        ("a-b int", "in backquotes"),
        ("a int, A string", "names a column twice"),
        ("a interval year to month", "only day-time intervals"),
        ("a int comment hello", "does not parse"),
    ],
)
def test_ddl_that_cannot_be_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence):
        parse_ddl(text)
