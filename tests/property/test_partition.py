"""Partition directories: any value comes back, and no value leaves its directory."""

from __future__ import annotations

import collections
import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidRequestError
from holdfast.table.partition import (
    NULL_PARTITION,
    PartitionSplitter,
    escape_name,
    parse_partition_path,
    resolve_partition_columns,
    unescape_name,
)
from holdfast.table.values import infer_type, java_float, parse_values, partition_texts

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


@given(TEXT)
def test_names_come_back_as_one_segment(name: str) -> None:
    """facts: A-90, A-93."""
    escaped = escape_name(name)
    assert unescape_name(escaped) == name
    assert not set(escaped) & set('/\\":?*#\0\n\r\t=')


@given(TEXT, st.one_of(st.none(), TEXT))
def test_paths_come_back(column: str, value: str | None) -> None:
    if not column or column.startswith("."):
        return
    batch = pa.record_batch([pa.array([1]), pa.array([value], pa.string())], names=["data\0", column])
    [(directory, rows)] = PartitionSplitter(batch.schema, [column]).split(batch)
    assert "/" not in directory
    assert directory not in (".", "..")
    # Null and the empty string share a directory, and so does a value that is called like it: as in Spark.
    expected = None if value in (None, "", NULL_PARTITION) else value
    assert parse_partition_path(f"{directory}/part-0") == {column: expected}
    assert rows.schema.names == ["data\0"]


@given(st.text(max_size=60))
def test_any_percent_signs_survive_unescaping(text: str) -> None:
    assert unescape_name(escape_name(unescape_name(text))) == unescape_name(text)


VALUES = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "float64": (pa.float64(), st.floats(allow_nan=False)),
    "float32": (pa.float32(), st.floats(allow_nan=False, width=32)),
    "decimal": (pa.decimal128(20, 6), st.decimals(-(10**12), 10**12, places=6)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "instant": (
        pa.timestamp("us", "UTC"),
        st.datetimes(datetime.datetime(1970, 1, 1), timezones=st.just(datetime.timezone.utc)),
    ),
}


@pytest.mark.parametrize("name", sorted(VALUES))
@settings(max_examples=60)
@given(data=st.data())
def test_typed_values_come_back(name: str, data: st.DataObject) -> None:
    kind, strategy = VALUES[name]
    values = pa.array(data.draw(st.lists(st.one_of(st.none(), strategy), max_size=8)), kind)
    texts = partition_texts(values, "UTC")
    again = parse_values(texts, kind, "UTC", "c")
    assert [repr(value) for value in again.to_pylist()] == [repr(value) for value in values.to_pylist()]


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b/c", "", None, "ü"]),
        st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")]),
        st.integers(0, 2),
    ),
    max_size=60,
)


@given(ROWS, st.sampled_from([("k",), ("k", "f"), ("n", "f", "k"), ()]), st.booleans())
def test_splitting_is_grouping(rows: list[tuple[Any, ...]], by: tuple[str, ...], encoded: bool) -> None:
    """Against a model: a dictionary of lists, in order."""
    keys = pa.array([row[0] for row in rows], pa.string())
    batch = pa.record_batch(
        {
            "id": pa.array(range(len(rows)), pa.int64()),
            "k": keys.dictionary_encode() if encoded else keys,
            "f": pa.array([row[1] for row in rows], pa.float64()),
            "n": pa.array([row[2] for row in rows], pa.int32()),
        }
    )
    shown = {
        "k": [row[0] or NULL_PARTITION for row in rows],
        "f": [NULL_PARTITION if row[1] is None else java_float(repr(row[1])) for row in rows],
        "n": [str(row[2]) for row in rows],
    }
    model: dict[str, list[int]] = collections.defaultdict(list)
    for index in range(len(rows)):
        model["/".join(f"{name}={escape_name(shown[name][index])}" for name in by)].append(index)
    splitter = PartitionSplitter(batch.schema, by)
    parts = list(splitter.split(batch))
    assert {directory: part["id"].to_pylist() for directory, part in parts} == (model if rows else {})
    assert len({directory for directory, _ in parts}) == len(parts)
    assert all(part.schema.equals(splitter.data_schema) for _, part in parts)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        # Seen in Spark 4.3's directories.
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (1e-3, "0.001"),
        (9.9e-4, "9.9E-4"),
        (1e20, "1.0E20"),
        (0.1, "0.1"),
        (123456.789, "123456.789"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (-float("inf"), "-Infinity"),
    ],
)
def test_doubles_look_as_in_java(value: float, shown: str) -> None:
    assert partition_texts(pa.array([value]), "UTC") == [shown]


def test_values_look_as_in_spark() -> None:
    """Seen in Spark 4.3's directories."""
    instant = datetime.datetime(2026, 1, 2, 11, 4, 5, 120_000, datetime.timezone.utc)
    assert partition_texts(pa.array([instant], pa.timestamp("us", "UTC")), "America/Los_Angeles") == [
        "2026-01-02 03:04:05.12"
    ]
    assert partition_texts(pa.array([datetime.datetime(2026, 1, 2)], pa.timestamp("us")), "Asia/Tokyo") == [
        "2026-01-02 00:00:00"
    ]
    assert partition_texts(pa.array([Decimal("1E-7"), Decimal("3")], pa.decimal128(10, 7)), "UTC") == [
        "0.0000001",
        "3.0000000",
    ]
    assert partition_texts(pa.array([True, None]), "UTC") == ["true", None]
    assert partition_texts(pa.array([123456.79], pa.float32()), "UTC") == ["123456.79"]
    escaped = "\x01\x1f\"#%'*/:=?[\\]^{\x7f"
    assert escape_name(escaped) == "".join(f"%{ord(character):02X}" for character in escaped)
    assert escape_name(" !$&()+,-.;<>@_`|}~é🎈") == " !$&()+,-.;<>@_`|}~é🎈"


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="no such time zone"):
        partition_texts(pa.array([0], pa.timestamp("us", "UTC")), "Mars/Olympus")


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", None, "2"], pa.int32()),
        (["1", "3000000000"], pa.int64()),
        (["1", "9" * 20], pa.decimal128(38, 0)),
        (["1", "1.5"], pa.float64()),
        (["2026-01-02", None], pa.date32()),
        (["2026-01-02", "2026-01-02 03:04:05.12"], pa.timestamp("us", "UTC")),
        (["2026-02-30"], pa.string()),
        (["1", "2026-01-02"], pa.string()),
        (["a"], pa.string()),
        ([None], pa.string()),
    ],
)
def test_types_are_inferred_as_in_spark(texts: list[str | None], kind: pa.DataType) -> None:
    assert infer_type(texts) == kind


SCHEMA = pa.schema([("id", pa.int64()), ("Month", pa.int32()), ("l", pa.list_(pa.int64())), ("b", pa.binary())])


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        (["mnth"], "no such column to partition by: did you mean Month column='mnth'"),
        (["Month", "month"], "named twice"),
        (["l"], "cannot hold this type"),
        (["b"], "cannot hold this type"),
    ],
)
def test_partition_columns_that_cannot_be(by: list[str], sentence: str) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        resolve_partition_columns(SCHEMA, by)
    assert sentence in str(raised.value)


def test_partition_columns_take_the_schemas_spelling() -> None:
    assert resolve_partition_columns(SCHEMA, ["month"]) == ("Month",)


@pytest.mark.parametrize("name", [".hidden", ""])
def test_names_that_no_directory_can_have(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="rename"):
        resolve_partition_columns(pa.schema([(name, pa.int64()), ("x", pa.int64())]), [name])


def test_partitioning_by_every_column_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="leaves no data"):
        resolve_partition_columns(pa.schema([("a", pa.int64()), ("b", pa.int64())]), ["a", "b"])


@pytest.mark.parametrize("value", ["x" * 300, "é" * 130, "/" * 90])
def test_a_name_too_long_for_a_directory_is_refused(value: str) -> None:
    """facts: A-93."""
    batch = pa.record_batch({"id": pa.array([1]), "k": pa.array([value])})
    with pytest.raises(InvalidRequestError, match="longer than 255 bytes"):
        list(PartitionSplitter(batch.schema, ["k"]).split(batch))


def test_parts_do_not_keep_the_batch_alive() -> None:
    """A part of one row may wait long in its writer; it must not hold the other rows' memory."""
    batch = pa.record_batch({"id": pa.array(range(10_000)), "k": pa.array([i // 9_999 for i in range(10_000)])})
    small = dict(PartitionSplitter(batch.schema, ["k"]).split(batch))["k=1"]
    assert small.get_total_buffer_size() < 1000
