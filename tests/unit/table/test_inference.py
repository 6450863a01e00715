"""Types of partition columns. The expectations are what stock Spark 4.3 gave for such directories."""

from __future__ import annotations

import pyarrow as pa
import pytest

from holdfast.table.inference import infer_type

INSTANT = pa.timestamp("us", "UTC")
ONE = {
    pa.int32(): ["05", "+5", "-0", "00", "0" * 46 + "5", "2020", "20200101", "-2147483648", "١٢", "１"],
    pa.int64(): ["2147483648", "9999999999", "-9223372036854775808"],
    pa.decimal128(4, 0): ["1e3", "1E3"],
    pa.decimal128(1, 0): ["1.", "1e-0"],
    pa.decimal128(3, 0): ["100."],
    pa.decimal128(2, 0): ["1.0e1", "1.5e1"],
    pa.decimal128(6, 0): ["0e5", "1e+5"],
    pa.decimal128(20, 0): ["9" * 20, "-" + "9" * 20],
    pa.decimal128(38, 0): ["9" * 38, "1e37"],
    pa.float64(): [
        *(" 5", "5 ", "\t5", "1e-3", ".5", "+.5", "1.0", "0.0", "-0.0", "10e-1", "1d", "1F", "0x1p3", "9" * 39, "1e40"),
        *("1e1000", "1e2147483647", "NaN", "Infinity", "+Infinity", "-Infinity"),
    ],
    pa.date32(): ["2020-01-01", "0001-01-01", "-0001-01-01", "+10000-01-01", "+5881580-07-11", "-5877641-06-23"],
    INSTANT: [
        *("2020-01-01 00%3A00%3A00", "2020-01-01 00:00:00", "2020-01-01 00%3A00%3A00.1", "0000-01-01 00%3A00%3A00"),
        *("+10000-01-01 00%3A00%3A00", "2020-03-08 02%3A30%3A00"),
    ],
    pa.string(): [
        *("a", "true", "TRUE", "nan", "inf", "0x10", "5L", "1_000", "1,5", "1e", "e5", "--5", "%35", "5%09", "%2B5"),
        *("2020-1-1", "2020-01", "2020-02-30", "2020-13-01", "10000-01-01", "+2020-06-01", "0000-00-00", "2020-01-01 "),
        *("2020-01-01T00%3A00%3A00", "2020-01-01 00%3A00", "2020-01-01 00%3A00%3A00.12", "2020-01-01 00%3A00%3A00Z"),
        *("2020-1-1 1%3A2%3A3", "2020-12-31 24%3A00%3A00", "2020-01-01 00%3A00%3A60", "2020-01-01 00%3A00%3A00."),
        *("__hive_default_partition__", "now", "12%3A00", "200-01-01"),
    ],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in ONE.items() for text in texts])
def test_one_value(kind: pa.DataType, text: str) -> None:
    assert infer_type([text]) == kind
    assert infer_type([None, text, text]) == kind


MANY = [
    (["1", "2.5"], pa.float64()),
    (["1", "9999999999"], pa.int64()),
    (["9999999999", "2.5"], pa.string()),
    (["9" * 20, "2.5"], pa.string()),
    (["1", "9" * 20], pa.decimal128(20, 0)),
    (["1e3", "5"], pa.decimal128(10, 0)),
    (["1e3", "9999999999"], pa.decimal128(20, 0)),
    (["9999999999999999999", "1"], pa.decimal128(19, 0)),
    (["9" * 20, "9" * 30], pa.decimal128(30, 0)),
    (["9" * 38, "-1e37"], pa.decimal128(38, 0)),
    (["1e3", "2.5"], pa.string()),
    (["1", "2020-01-01"], pa.string()),
    (["2.5", "2020-01-01", "1"], pa.string()),
    (["2020-01-01", "2020-01-01 00%3A00%3A00"], INSTANT),
    (["2020-01-01 00%3A00%3A00", "1.5"], pa.string()),
    (["2020-1-1", "2020-01-01"], pa.string()),
    (["1", "9999999999", "2.5"], pa.string()),
    (["1", "2.5", "9" * 20], pa.string()),
    (["05", "5"], pa.int32()),
    (["05", "a"], pa.string()),
    ([None], pa.null()),
    ([], pa.null()),
]


@pytest.mark.parametrize(("texts", "kind"), MANY)
def test_several_values(texts: list[str | None], kind: pa.DataType) -> None:
    assert infer_type(texts) == kind
    assert infer_type(texts[::-1]) == kind


def test_inference_as_the_session_wants_it() -> None:
    local = pa.timestamp("us")
    assert infer_type(["2020-01-01 00%3A00%3A00", "2020-01-01"], timestamp=local) == local
    assert infer_type(["1", None], enabled=False) == pa.string()
    assert infer_type([None], enabled=False) == pa.null()
