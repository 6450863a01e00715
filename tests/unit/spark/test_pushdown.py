"""Test that conditions that Spark pushes down keep exactly the rows that Spark's own comparison keeps."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql.datasource import EqualNullSafe, EqualTo, Filter, GreaterThan, In, IsNull, LessThan, Not
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from holdfast.spark.pushdown import translate_filters


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (EqualTo(("i",), 1), [1]),
        (Not(EqualTo(("i",), 1)), [2]),
        (EqualNullSafe(("i",), 1), [1]),
        (Not(EqualNullSafe(("i",), 1)), [2, None]),
        (EqualNullSafe(("i",), None), [None]),
        (Not(EqualNullSafe(("i",), None)), [1, 2]),
        (In(("i",), (1, 3)), [1]),
        (Not(In(("i",), (1, 3))), [2]),
        (Not(IsNull(("i",))), [1, 2]),
    ],
)
def test_pushed_conditions_mean_what_they_mean_in_sql(condition: Filter, rows: list[int | None]) -> None:
    (found,), left = translate_filters([condition], StructType([StructField("i", LongType())]))
    assert left == []
    table = pa.table({"i": pa.array([1, 2, None], pa.int64())})
    assert ds.dataset(table).to_table(filter=found.expression)["i"].to_pylist() == rows


FLOATS = StructType([StructField("f", DoubleType())])


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (GreaterThan(("f",), 1.0), ["2.0", "nan"]),
        (LessThan(("f",), 2.0), ["1.0"]),
        (EqualTo(("f",), 1.0), ["1.0"]),
        (In(("f",), (1.0,)), ["1.0"]),
    ],
)
def test_spark_checks_conditions_on_floats_again(condition: Filter, rows: list[str]) -> None:
    """To Spark NaN is the greatest value and equal to itself: too many rows may pass here, never too few."""
    (found,), left = translate_filters([condition], FLOATS)
    assert left == [condition]
    table = pa.table({"f": [1.0, 2.0, float("nan"), None]})
    assert [str(one) for one in ds.dataset(table).to_table(filter=found.expression)["f"].to_pylist()] == rows


def test_what_only_spark_can_negate_is_left_to_it() -> None:
    condition = Not(GreaterThan(("f",), 1.0))
    assert translate_filters([condition], FLOATS) == ([], [condition])
