"""Test which types the formats support, and the reasons that errors and docs share."""

from __future__ import annotations

import pyarrow as pa
import pytest

from holdfast.errors import InvalidRequestError
from holdfast.formats import FORMATS, get_format
from holdfast.formats.columns.types import SPATIAL, VARIANT, attach_spark_json, kind_of_column

GEOMETRY = pa.struct(
    [
        pa.field("srid", pa.int32(), nullable=False),
        pa.field("wkb", pa.binary(), nullable=False, metadata={b"geometry": b"true", b"srid": b"0"}),
    ]
)


def described(kind: pa.DataType, spark: object, **metadata: object) -> pa.Field:
    return attach_spark_json(pa.field("c", kind), {"name": "c", "type": spark, "nullable": True, "metadata": metadata})


POINT = {"type": "udt", "class": "x.Point", "sqlType": {"type": "struct", "fields": []}}
COLLATIONS = {"c": "icu.UNICODE_CI"}
FIELDS = {
    "null": pa.field("c", pa.null()),
    "boolean": pa.field("c", pa.bool_()),
    "integer": pa.field("c", pa.int16()),
    "float": pa.field("c", pa.float32()),
    "decimal": pa.field("c", pa.decimal128(38, 38)),
    "string": pa.field("c", pa.dictionary(pa.int8(), pa.string())),
    "binary": pa.field("c", pa.binary()),
    "date": pa.field("c", pa.date32()),
    "timestamp": pa.field("c", pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.field("c", pa.timestamp("us")),
    "time": described(pa.time64("ns"), "time(6)"),
    "time of nanoseconds": described(pa.time64("ns"), "time(9)"),
    "interval": described(pa.duration("us"), "interval day to second"),
    "interval of other fields": described(pa.duration("us"), "interval day"),
    "list": pa.field("c", pa.list_(pa.int8())),
    "map": pa.field("c", pa.map_(pa.string(), pa.int8())),
    "struct": pa.field("c", pa.struct([("x", pa.int8())])),
    "variant": pa.field("c", VARIANT),
    "geometry": pa.field("c", GEOMETRY),
    "collated string": described(pa.string(), "string", __COLLATIONS=COLLATIONS),
    "user-defined": described(pa.struct([("x", pa.int8())]), POINT),
}


@pytest.mark.parametrize("kind", sorted(FIELDS))
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_format_holds_a_kind_or_says_why_not(name: str, kind: str) -> None:
    field = FIELDS[kind]
    assert kind_of_column(field) == kind
    if kind in FORMATS[name].holds:
        assert kind not in FORMATS[name].reasons
        get_format(name).check_schema(pa.schema([field]))
        return
    usual = {"geometry": SPATIAL, "geography": SPATIAL}
    reason, _, act = {**usual, **FORMATS[name].reasons}[kind].rpartition(": ")
    assert reason and act
    with pytest.raises(InvalidRequestError) as raised:
        get_format(name).check_schema(pa.schema([field]))
    assert f"{name} does not support this type, {reason}: {act}" in str(raised.value)


def test_every_reason_is_of_a_kind() -> None:
    kinds = {kind for one in FORMATS.values() for kind in (*one.reasons, *one.holds)}
    assert kinds | {"geometry", "geography"} == {*FIELDS, "geography"}


@pytest.mark.parametrize(
    "kind", [pa.list_(VARIANT), pa.struct([("x", VARIANT)]), pa.map_(pa.string(), pa.list_(VARIANT))]
)
def test_kinds_are_found_inside_others(kind: pa.DataType) -> None:
    schema = pa.schema([("c", kind)])
    get_format("parquet").check_schema(schema)
    with pytest.raises(InvalidRequestError, match="ORC has no VARIANT"):
        get_format("orc").check_schema(schema)


def test_what_only_spark_says_is_found_inside_other_types() -> None:
    inner = {"name": "s", "type": "string", "nullable": True, "metadata": {"__COLLATIONS": {"s": "icu.UNICODE_CI"}}}
    spark = {"type": "array", "elementType": {"type": "struct", "fields": [inner]}, "containsNull": True}
    field = described(pa.list_(pa.struct([("s", pa.string())])), spark)
    with pytest.raises(InvalidRequestError, match="ORC does not store collations"):
        get_format("orc").check_schema(pa.schema([field]))
    times = described(pa.list_(pa.time64("ns")), {"type": "array", "elementType": "time(7)", "containsNull": True})
    with pytest.raises(InvalidRequestError, match="times are stored in microseconds"):
        get_format("parquet").check_schema(pa.schema([times]))


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.struct([("x\0y", pa.int64())]), pa.list_(pa.struct([("\0", pa.int8())]))]
)
def test_names_with_nul_are_refused(kind: pa.DataType) -> None:
    """Spark truncates such names on the way to Python, so the values would not be found."""
    name = "a\0b" if pa.types.is_integer(kind) else "s"
    for file_format in sorted(FORMATS.keys() - {"text"}):
        with pytest.raises(InvalidRequestError, match="contains NUL: rename the column"):
            get_format(file_format).check_schema(pa.schema([("id", pa.int64()), (name, kind)]))
