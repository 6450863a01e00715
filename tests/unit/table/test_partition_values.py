"""Texts of partition values, Holdfast's and those of others. The expectations are what stock Spark 4.3 gave."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from holdfast.errors import InvalidRequestError
from holdfast.table.partition_values import format_partition_values, infer_partition_type, parse_partition_values


@pytest.mark.parametrize(
    ("days", "shown"), [(18262, "2020-01-01"), (-719162, "0001-01-01"), (-141428, "1582-10-14"), (None, None)]
)
def test_dates_look_as_in_spark(days: int | None, shown: str | None) -> None:
    values = pa.array([days], pa.int32()).cast(pa.date32())
    assert format_partition_values(values) == [shown]
    assert parse_partition_values([shown], pa.date32(), "d").equals(values)


@pytest.mark.parametrize("days", [2_932_897, -719_163])
def test_years_without_four_digits_are_refused(days: int) -> None:
    """Readers differ in how they read them."""
    with pytest.raises(InvalidRequestError, match=r"only the years 1 to 9999.*column='d'"):
        format_partition_values(pa.array([days], pa.int32()).cast(pa.date32()), "d")


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        (pa.bool_(), "TRUE", "true"),
        (pa.int8(), "05", "5"),
        (pa.int32(), "-0", "0"),
        (pa.decimal128(38, 0), "1e37", "1" + "0" * 37),
        (pa.string(), " 5", " 5"),
    ],
)
def test_texts_of_others_are_read_as_in_spark(kind: pa.DataType, text: str, shown: str) -> None:
    assert format_partition_values(parse_partition_values([text], kind, "c")) == [shown]


def test_decimals_of_others_are_read_right() -> None:
    """Where Spark itself takes ``5`` for 0.05."""
    values = [Decimal(5), Decimal(1000), None]
    assert parse_partition_values(["5", "1e3", None], pa.decimal128(10, 2), "c").to_pylist() == values


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.int8(), "2020"),  # Spark: -28
        (pa.int32(), "1.0"),
        (pa.int64(), "9" * 20),
        (pa.decimal128(10, 2), "1e-3"),  # Spark: 0.01
        (pa.decimal128(10, 2), "NaN"),
        (pa.float64(), "1.5"),
        (pa.bool_(), "yes"),
        (pa.date32(), "2020-02-30"),
        (pa.date32(), "2020-1-1"),
        (pa.date32(), "2020-06-01 12:30:15"),  # Spark drops the time
        (pa.timestamp("us", "UTC"), "2020-06-01 12:30:15"),  # Spark takes its own time zone
        (pa.timestamp("us"), "2020-06-01 12:30:15"),
        (pa.list_(pa.int64()), "a"),
    ],
)
def test_texts_that_are_no_value_are_refused(kind: pa.DataType, text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"not fit the column's type.*column='c'"):
        parse_partition_values([text], kind, "c")


# --- inference --------------------------------------------------------------------------------------------------------
KNOWN: list[tuple[list[str | None], pa.DataType]] = [
    *(([text], pa.int32()) for text in ("05", "-0", "00", "0" * 46 + "5", "2020", "20200101", "-2147483648")),
    *(([text], pa.int64()) for text in ("2147483648", "9999999999", "-9223372036854775808")),
    *(([text], pa.date32()) for text in ("2020-01-01", "0001-01-01")),
    *(([text], pa.string()) for text in ("a", "true", "TRUE", "nan", "inf", "5L", "1_000", "1,5", "1e", "e5", "--5")),
    *(([text], pa.string()) for text in ("%35", "5%09", "%2B5", "2020-1-1", "2020-01", "200-01-01", "now", "12%3A00")),
    (["1", "9999999999"], pa.int64()),
    (["05", "5"], pa.int32()),
    (["05", "a"], pa.string()),
    (["1.5", "a"], pa.string()),
    (["2020-01-01", "a"], pa.string()),
    ([None], pa.null()),
    ([], pa.null()),
]


@pytest.mark.parametrize(("texts", "kind"), KNOWN)
def test_types_are_inferred_as_in_spark(texts: list[str | None], kind: pa.DataType) -> None:
    assert infer_partition_type(texts) == kind
    assert infer_partition_type([None, *reversed(texts)]) == kind


UNCLEAR: list[Any] = [
    *([text] for text in (" 5", "5 ", "\t5", "+5", "1.", "1e3", "1e-3", ".5", "1.0", "-0.0", "1d", "1F", "0x1p3")),
    *([text] for text in ("9" * 20, "9" * 39, "NaN", "-Infinity", "١٢")),
    *([text] for text in ("-0001-01-01", "+10000-01-01", "2020-01-01 00%3A00%3A00", "2020-03-08 02%3A30%3A00.1")),
    ["1", "2.5"],
    ["1", "9" * 20],
    ["2020-01-01", "2020-01-01 00%3A00%3A00"],
]


@pytest.mark.parametrize("texts", UNCLEAR)
def test_where_spark_infers_another_type_a_schema_is_needed(texts: list[str]) -> None:
    with pytest.raises(InvalidRequestError, match="not clear from its directories: give a schema"):
        infer_partition_type(texts)
