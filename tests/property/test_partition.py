"""Check partition directories: any value can be read back, and no value escapes its directory."""

from __future__ import annotations

import collections
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidRequestError
from holdfast.table.partition import (
    NULL_PARTITION,
    PARTITION_REASONS,
    PartitionSplitter,
    escape_name,
    normalize_partition_directory,
    parse_partition_path,
    resolve_partition_columns,
    unescape_name,
)
from holdfast.table.partition_values import format_partition_values, parse_partition_values
from tests.unit.formats.columns.test_types import FIELDS

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
DIRECTORY_TEXT = TEXT.filter(lambda text: text not in ("", NULL_PARTITION))


@given(TEXT)
def test_names_come_back_as_one_segment(name: str) -> None:
    """facts: A-90, A-93."""
    escaped = escape_name(name)
    assert unescape_name(escaped) == name
    assert not set(escaped) & set('/\\":?*#\0\n\r\t=')


@given(TEXT, st.one_of(st.none(), DIRECTORY_TEXT))
def test_paths_come_back(column: str, value: str | None) -> None:
    if not column or column.startswith("."):
        return
    batch = pa.record_batch([pa.array([1]), pa.array([value], pa.string())], names=["data\0", column])
    [(directory, rows)] = PartitionSplitter(batch.schema, [column]).split(batch)
    assert "/" not in directory
    assert directory not in (".", "..")
    assert parse_partition_path(f"{directory}/part-0") == {column: value}
    assert rows.schema.names == ["data\0"]


@given(st.text(max_size=60))
def test_any_percent_signs_survive_unescaping(text: str) -> None:
    assert unescape_name(escape_name(unescape_name(text))) == unescape_name(text)


VALUES = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "decimal": (pa.decimal128(20, 6), st.decimals(-(10**12), 10**12, places=6)),
    "date": (pa.date32(), st.dates()),
}


@pytest.mark.parametrize("name", sorted(VALUES))
@given(data=st.data())
def test_typed_values_come_back(name: str, data: st.DataObject) -> None:
    kind, strategy = VALUES[name]
    values = pa.array(data.draw(st.lists(st.one_of(st.none(), strategy), max_size=8)), kind)
    assert parse_partition_values(format_partition_values(values), kind, "c").equals(values)


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b/c", " ", None, "ü"]),
        st.sampled_from([None, True, False]),
        st.integers(0, 2),
    ),
    max_size=60,
)


@given(ROWS, st.sampled_from([("k",), ("k", "f"), ("n", "f", "k"), ()]), st.booleans())
def test_splitting_is_grouping(rows: list[tuple[Any, ...]], by: tuple[str, ...], encoded: bool) -> None:
    """The model is a dictionary of lists, in order."""
    keys = pa.array([row[0] for row in rows], pa.string())
    batch = pa.record_batch(
        {
            "id": pa.array(range(len(rows)), pa.int64()),
            "k": keys.dictionary_encode() if encoded else keys,
            "f": pa.array([row[1] for row in rows], pa.bool_()),
            "n": pa.array([row[2] for row in rows], pa.int32()),
        }
    )
    shown = {
        "k": [NULL_PARTITION if row[0] is None else row[0] for row in rows],
        "f": [NULL_PARTITION if row[1] is None else str(row[1]).lower() for row in rows],
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


def test_values_look_as_in_spark() -> None:
    """As observed in directories that Spark 4.3 writes."""
    decimals = pa.array([Decimal("1E-7"), Decimal("3")], pa.decimal128(10, 7))
    assert format_partition_values(decimals) == ["0.0000001", "3.0000000"]
    assert format_partition_values(pa.array([True, None])) == ["true", None]
    escaped = "\x01\x1f\"#%'*/:=?[\\]^{\x7f"
    assert escape_name(escaped) == "".join(f"%{ord(character):02X}" for character in escaped)
    assert escape_name(" !$&()+,-.;<>@_`|}~é🎈") == " !$&()+,-.;<>@_`|}~é🎈"


SCHEMA = pa.schema([("id", pa.int64()), ("Month", pa.int32()), ("l", pa.list_(pa.int64())), ("b", pa.binary())])


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        (["mnth"], "no such column to partition by: did you mean Month column='mnth'"),
        (["Month", "month"], "named twice"),
        (["l"], "cannot hold this type: Spark partitions by single values only: partition by an element of it"),
        (["b"], "cannot hold this type: Spark reads other bytes back than it names: partition by hex(column)"),
    ],
)
def test_partition_columns_that_cannot_be(by: list[str], sentence: str) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        resolve_partition_columns(SCHEMA, by)
    assert sentence in str(raised.value)


def test_a_kind_is_named_by_directories_or_there_is_a_reason() -> None:
    for kind, field in FIELDS.items():
        schema = pa.schema([field, ("id", pa.int64())])
        if kind not in PARTITION_REASONS:
            assert resolve_partition_columns(schema, ["c"]) == ("c",)
            continue
        with pytest.raises(InvalidRequestError) as raised:
            resolve_partition_columns(schema, ["c"])
        assert PARTITION_REASONS[kind] in str(raised.value)


def test_partition_columns_take_the_schemas_spelling() -> None:
    assert resolve_partition_columns(SCHEMA, ["month"]) == ("Month",)


def test_columns_that_differ_by_case_are_refused() -> None:
    """One of them would be a directory and the other a column in the files: no reader could distinguish them."""
    schema = pa.schema([("A", pa.int64()), ("a", pa.int64()), ("x", pa.int64())])
    with pytest.raises(InvalidRequestError, match="differ only by case"):
        resolve_partition_columns(schema, ["A"])


@pytest.mark.parametrize("partition_by", [[], ["x"]])
def test_equal_column_names_are_refused(partition_by: list[str]) -> None:
    """They have no place in `PartitionSplitter`, which finds columns by name, also in tables without partitions."""
    schema = pa.schema([("id", pa.int64()), ("id", pa.int64()), ("x", pa.int64())])
    with pytest.raises(InvalidRequestError, match="two names are equal"):
        resolve_partition_columns(schema, partition_by)


@pytest.mark.parametrize("value", ["", NULL_PARTITION])
def test_values_that_would_be_read_as_null_are_refused(value: str) -> None:
    batch = pa.record_batch({"id": pa.array([1]), "k": pa.array([value])})
    with pytest.raises(InvalidRequestError, match="null: write null or another value"):
        list(PartitionSplitter(batch.schema, ["k"]).split(batch))


def test_text_that_is_not_unicode_is_refused() -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"], pa.binary()).buffers())
    batch = pa.record_batch({"id": pa.array([1]), "k": broken})
    with pytest.raises(InvalidRequestError, match="not valid Unicode"):
        list(PartitionSplitter(batch.schema, ["k"]).split(batch))


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
    """A part of one row may wait long in its writer and must not keep the other rows in memory."""
    batch = pa.record_batch({"id": pa.array(range(10_000)), "k": pa.array([i // 9_999 for i in range(10_000)])})
    small = dict(PartitionSplitter(batch.schema, ["k"]).split(batch))["k=1"]
    assert small.get_total_buffer_size() < 1000


@pytest.mark.parametrize(
    ("directory", "ours"),
    [
        ("Month=01/v=a%20b", "Month=1/v=a b"),
        ("month=001/v=%41", "Month=1/v=A"),
        ("Month=1/v=__HIVE_DEFAULT_PARTITION__", "Month=1/v=__HIVE_DEFAULT_PARTITION__"),
        ("d=2020-01-02", "d=2020-01-02"),
        ("d=2020-1-2", "d=2020-1-2"),
        ("Month=x", "Month=x"),  # not a value of the column
        ("other=1", "other=1"),
        ("", ""),
        ("plain", "plain"),
    ],
)
def test_a_partition_has_one_name_here(directory: str, ours: str) -> None:
    fields = {"Month": pa.int32(), "v": pa.string(), "d": pa.date32()}
    assert normalize_partition_directory(directory, pa.schema(list(fields.items()))) == ours
