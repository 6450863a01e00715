"""Conversions between cells and Spark's columns: exact, or refused."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql.types import ArrayType, DataType, _parse_datatype_json_value

from holdfast.errors import InvalidRequestError
from holdfast.spark.database.values import Misfit, part_from_row, to_spark, to_value


def kind_of(text: str) -> DataType:
    """Return a type by its name in JSON."""
    if text.startswith("array<"):
        return ArrayType(kind_of(text[len("array<") : -1]))
    return _parse_datatype_json_value(text)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("byte", -128, -128),
        ("long", 2**63 - 1, 2**63 - 1),
        ("decimal(5,2)", 999, Decimal(999)),
        ("double", 2**53, 2.0**53),
        ("double", 0.1, 0.1),
        ("float", 0.5, 0.5),
        ("string", "x", "x"),
        ("string", 5, "5"),
        ("string", 0.1, "0.1"),
        ("string", {"é": [1, None]}, '{"é":[1,null]}'),
        ("string", True, "true"),
        ("boolean", True, True),
        ("binary", b"\0", b"\0"),
        ("array<double>", np.array([1, 2], "f4"), [1.0, 2.0]),
        ("array<array<long>>", np.array([[1], [2]], "u1"), [[1], [2]]),
        ("array<string>", ["a", None], ["a", None]),
        ("array<boolean>", np.array([True]), [True]),
    ],
)
def test_what_a_type_holds(kind: str, value: Any, expected: Any) -> None:
    found = to_spark(kind_of(kind), "c")(value)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("byte", 128),
        ("long", 2**63),
        ("long", 1.0),
        ("long", True),
        ("long", "1"),
        ("decimal(5,2)", 1000),
        ("decimal(5,2)", 0.5),
        ("double", 2**53 + 1),
        ("double", 10**400),
        ("double", True),
        ("float", 0.1),
        ("float", 1e300),
        ("string", b"x"),
        pytest.param("string", 10**5000, id="many digits"),
        ("string", np.array([1])),
        ("binary", "x"),
        ("boolean", 1),
        ("array<long>", np.array(5)),
        ("array<long>", np.array([0.5])),
        ("array<long>", np.array([[1]])),
        ("array<long>", np.array(["2026-01-01"], "M8[ns]")),
        ("array<long>", np.array([2**64 - 1], "u8")),
        ("array<double>", np.array([1j])),
        ("array<long>", {"a": 1}),
        ("array<long>", "12"),
    ],
)
def test_what_a_type_does_not_hold(kind: str, value: Any) -> None:
    with pytest.raises(Misfit):
        to_spark(kind_of(kind), "c")(value)


def test_nan_is_a_float() -> None:
    assert math.isnan(to_spark(kind_of("float"), "c")(math.nan))


def test_types_that_no_value_has_are_refused() -> None:
    for convert in (lambda: to_spark(kind_of("date"), "c"), lambda: to_value(kind_of("date"), "c", is_json=False)):
        with pytest.raises(InvalidRequestError, match="column='c' type='date'"):
            convert()
    with pytest.raises(InvalidRequestError, match="name of a row"):
        part_from_row(kind_of("double"), "row")
    with pytest.raises(InvalidRequestError, match="only strings can be JSON"):
        to_value(kind_of("long"), "c", is_json=True)


@pytest.mark.parametrize("text", ["5", '"x"', "null", "[1", pytest.param("[" * 100_000, id="deep")])
def test_json_that_would_not_be_stored_as_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="JSON"):
        to_value(kind_of("string"), "c", is_json=True)(text)


@pytest.mark.parametrize("value", [[None], [[1], [2, 3]], [[1, None]]])
def test_irregular_arrays_are_refused(value: Any) -> None:
    kind = "array<array<long>>" if isinstance(value[0], list) else "array<long>"
    with pytest.raises(Misfit):
        to_value(kind_of(kind), "c", is_json=False)(value)


@pytest.mark.parametrize(("kind", "dtype"), [("array<float>", "f4"), ("array<short>", "i2"), ("array<boolean>", "?")])
def test_arrays_keep_the_size_of_their_elements(kind: str, dtype: str) -> None:
    array: Any = to_value(kind_of(kind), "c", is_json=False)([1, 0])
    assert array.dtype == np.dtype(dtype) and array.tolist() == [1, 0]
