"""Texts of partition values, Spark's and those of others. The expectations are what stock Spark 4.3 and Java gave."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from holdfast.errors import InvalidRequestError
from holdfast.formats.spark.texts import DAY_MICROS, date_text, find_zone, parse_date, time_text
from holdfast.table.partition_values import infer_type, parse_values, partition_texts

INSTANT = pa.timestamp("us", "UTC")
LOCAL = pa.timestamp("us")
NEW_YORK = "America/New_York"


def micros(text: str) -> int:
    """A time of the years that Arrow parses, as a number."""
    value: int = pa.array([text]).cast(LOCAL).cast(pa.int64())[0].as_py()
    return value


@pytest.mark.parametrize(
    ("days", "shown"),
    [
        (18262, "2020-01-01"),
        (2932897, "+10000-01-01"),
        (-719162, "0001-01-01"),
        (-719528, "0000-01-01"),
        (-719831, "-0001-03-04"),
        (-141428, "1582-10-14"),
        (2**31 - 1, "+5881580-07-11"),
        (-(2**31), "-5877641-06-23"),
    ],
)
def test_dates_look_as_in_spark(days: int, shown: str) -> None:
    values = pa.array([days], pa.int32()).cast(pa.date32())
    assert partition_texts(values, "UTC") == [shown]
    assert parse_values([shown], pa.date32(), "UTC", "d").cast(pa.int32()).to_pylist() == [days]


@pytest.mark.parametrize(
    ("instant", "zone", "shown"),
    [
        ("2020-11-01 05:30:00", NEW_YORK, "2020-11-01 01:30:00"),
        ("2020-03-08 07:30:00", NEW_YORK, "2020-03-08 03:30:00"),
        ("2050-07-01 12:00:00", NEW_YORK, "2050-07-01 08:00:00"),  # summer time does not end in 2037
        ("1700-01-01 12:00:00", NEW_YORK, "1700-01-01 07:03:58"),  # local mean time has seconds
        ("1970-01-01 00:00:00.000001", "UTC", "1970-01-01 00:00:00.000001"),
        ("2020-01-01 00:00:00.100", "+05:30", "2020-01-01 05:30:00.1"),
        ("2020-07-01 00:00:00", "EST", "2020-06-30 19:00:00"),
        ("2020-07-01 00:00:00", "GMT+2", "2020-07-01 02:00:00"),
        ("2020-07-01 00:00:00", "-3:30", "2020-06-30 20:30:00"),
    ],
)
def test_instants_look_as_in_spark(instant: str, zone: str, shown: str) -> None:
    values = pa.array([micros(instant)], INSTANT)
    assert partition_texts(values, zone) == [shown]
    assert parse_values([shown], INSTANT, zone, "at").equals(values)


def test_instants_far_away_have_a_year_with_a_sign() -> None:
    for text in ("+10000-01-01 00:00:00", "-0001-01-01 00:00:00", "+123456-07-01 10:20:30.12"):
        for zone in ("UTC", NEW_YORK):
            values = parse_values([text], INSTANT, zone, "at")
            assert partition_texts(values, zone) == [text]
    [late] = parse_values(["+123456-07-01 00:00:00"], INSTANT, NEW_YORK, "at").cast(pa.int64()).to_pylist()
    assert time_text(late) == "+123456-07-01 04:00:00"  # summer time, as in every year


def test_the_second_of_two_equal_local_times_is_refused() -> None:
    """facts: its directory's name reads back as the first, an hour earlier."""
    values = pa.array([micros("2020-11-01 06:30:00")], INSTANT)
    with pytest.raises(InvalidRequestError, match="a timestamp is ambiguous") as raised:
        partition_texts(values, NEW_YORK, "at")
    assert "column='at'" in str(raised.value)
    assert partition_texts(values, "UTC") == ["2020-11-01 06:30:00"]


def test_a_local_time_that_the_clocks_skip_is_read_as_java_does() -> None:
    [found] = parse_values(["2020-03-08 02:30:00"], INSTANT, NEW_YORK, "at").cast(pa.int64()).to_pylist()
    assert found == micros("2020-03-08 07:30:00")


OTHERS = [
    # seen in Spark with a schema that names the type
    (INSTANT, "2020-06-01T12", "2020-06-01 12:00:00"),
    (INSTANT, "2020-06-01 12:30", "2020-06-01 12:30:00"),
    (INSTANT, "2020-06-1 1:3:1.5", "2020-06-01 01:03:01.5"),
    (INSTANT, "2020-06-01T12:30:15.1234567", "2020-06-01 12:30:15.123456"),
    (INSTANT, "2020-06-01T12:30:15+02:00", "2020-06-01 06:30:15"),
    (INSTANT, "2020-06-01T12:30:15Z", "2020-06-01 08:30:15"),
    (INSTANT, "2020-06-01T12:30:15-7", "2020-06-01 15:30:15"),
    (INSTANT, "2020-06-01T12:30:15 UTC", "2020-06-01 08:30:15"),
    (INSTANT, "2020-06-01T12:30:15America/Los_Angeles", "2020-06-01 15:30:15"),
    (INSTANT, "2020-06-01 12:30:15 Europe/Berlin", "2020-06-01 06:30:15"),
    (INSTANT, " 2020-06-01 12:30:15 ", "2020-06-01 12:30:15"),
    (INSTANT, "2020-06", "2020-06-01 00:00:00"),
    (INSTANT, "-2020-6-1", "-2020-06-01 00:00:00"),
    (LOCAL, "2020-03-08 02:30:00", "2020-03-08 02:30:00"),
    (LOCAL, "+294247-01-10 04:00:54.775807", "+294247-01-10 04:00:54.775807"),
    (pa.date32(), "2020-1-1", "2020-01-01"),
    (pa.date32(), "2020", "2020-01-01"),
    (pa.date32(), "2020-01-01 ", "2020-01-01"),
    (pa.date32(), "10000-01-01", "+10000-01-01"),
    (pa.bool_(), "TRUE", "true"),
    (pa.int8(), "05", "5"),
    (pa.int64(), "+5", "5"),
    (pa.int32(), "-0", "0"),
    (pa.float64(), " 5", "5.0"),
    (pa.float64(), "1d", "1.0"),
    (pa.float64(), "0x1p3", "8.0"),
    (pa.float64(), "1e1000", "Infinity"),
    (pa.float64(), "4.9E-324", "4.9E-324"),
    (pa.float64(), "1.9999999999999998E23", "2.0E23"),  # Java 17's name of it
    (pa.float64(), "-0.0", "-0.0"),
    (pa.float32(), "1.4E-45", "1.4E-45"),
    (pa.decimal128(38, 0), "1e37", "1" + "0" * 37),
    (pa.string(), " 5", " 5"),
]


@pytest.mark.parametrize(("kind", "text", "shown"), OTHERS)
def test_texts_of_others_are_read_as_in_spark(kind: pa.DataType, text: str, shown: str) -> None:
    assert partition_texts(parse_values([text], kind, NEW_YORK, "c"), NEW_YORK) == [shown]


def test_decimals_of_others_are_read_right() -> None:
    """Where Spark itself takes ``5`` for 0.05."""
    assert parse_values(["5", "1e3", None], pa.decimal128(10, 2), "UTC", "c").to_pylist() == [
        Decimal(5),
        Decimal(1000),
        None,
    ]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.int8(), "2020"),  # Spark: -28
        (pa.int32(), "1.0"),
        (pa.int64(), "9" * 20),
        (pa.decimal128(10, 2), "1e-3"),  # Spark: 0.01
        (pa.decimal128(10, 2), "NaN"),
        (pa.float64(), "nan"),
        (pa.float64(), "5L"),
        (pa.bool_(), "1"),
        (pa.date32(), "2020-02-30"),
        (pa.date32(), "2020-06-01 12:30:15"),  # Spark drops the time
        (INSTANT, "2020-06-01T"),
        (INSTANT, "2020-06-01 garbage"),
        (INSTANT, "2020-06-01  12:30:15"),
        (INSTANT, "2020-12-31 24:00:00"),
        (INSTANT, "+294247-01-10 04:00:54.775807"),  # that late in New York is after the last instant
        (LOCAL, "2020-06-01T12:30:15Z"),  # Spark drops the zone
        (pa.binary(), "a"),
    ],
)
def test_texts_that_are_no_value_are_refused(kind: pa.DataType, text: str) -> None:
    with pytest.raises(InvalidRequestError, match="not fit the column's type"):
        parse_values([text], kind, NEW_YORK, "c")


def test_every_double_name_of_java_17_names_the_double() -> None:
    """Seen on Java 17, which has more digits than needed: another name, the same value."""
    names = {2e23: "1.9999999999999998E23", 2.26797932753915e17: "2.26797932753915008E17", 1e-323: "9.9E-324"}
    for value, name in names.items():
        assert parse_values(
            [name, *partition_texts(pa.array([value]), "UTC")], pa.float64(), "UTC", "f"
        ).to_pylist() == [
            value,
            value,
        ]


def test_nanoseconds_are_refused_before_they_are_cut_off() -> None:
    values: Any = pa.array([1], pa.timestamp("ns"))
    with pytest.raises(InvalidRequestError, match="beyond microseconds"):
        partition_texts(values, "UTC")
    assert partition_texts(pa.array([DAY_MICROS * 1000], pa.timestamp("ns")), "UTC") == ["1970-01-02 00:00:00"]


# --- zones ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("zone", ["+18:01", "-19:00", "UTC+05:60", "GMT+1:2:60", "Mars/Olympus", "../UTC", ""])
def test_what_is_no_zone_to_java_is_none_here(zone: str) -> None:
    with pytest.raises(InvalidRequestError, match="no such time zone"):
        find_zone(zone)


def test_offsets_reach_as_far_as_javas() -> None:
    for zone, hours in (("+18:00", 18), ("-18", -18), ("UTC+1", 1), ("GMT-01:30", -1.5)):
        assert find_zone(zone).local(0) == hours * 3600 * 1_000_000


def test_a_zone_in_a_directory_that_is_none_makes_the_text_no_instant() -> None:
    """That is about the directory; the call's own zone is another matter."""
    text = "2026-01-01 00:00:00 Mars/Olympus"
    with pytest.raises(InvalidRequestError, match=r"not fit the column's type.*column='at'"):
        parse_values([text], INSTANT, "UTC", "at")
    with pytest.raises(InvalidRequestError, match=r"no such time zone.*Mars/Olympus"):
        parse_values(["2026-01-01 00:00:00"], INSTANT, "Mars/Olympus", "at")


def test_days_are_those_of_the_calendar() -> None:
    """Each date that Python knows around the ends of February, and none that it does not know."""
    epoch = datetime.date(1970, 1, 1)
    for year in (1, 4, 100, 400, 1500, 1582, 1600, 1700, 1900, 1970, 2000, 2024, 2026, 2100, 9999):
        for month, day in ((1, 1), (2, 28), (2, 29), (2, 30), (3, 1), (4, 31), (12, 31), (12, 32), (13, 1), (0, 1)):
            try:
                wanted = (datetime.date(year, month, day) - epoch).days
            except ValueError:
                wanted = None
            text = f"{year:04d}-{month:02d}-{day:02d}"
            assert parse_date(text) == wanted, text
            assert wanted is None or date_text(wanted) == text


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
