"""List Spark's types as data: for each a table of values, as SQL expressions and as the results expected of readers.

Results are compared as text (`tests.matrix.canonical`): exact, with a prefix for the type, so that an instant differs
from a local time, ``-0.0`` differs from ``0.0`` and NaN equals itself. Instants and dates are given as numbers, so that
they do not depend on the session's zone. A type has several rows where formats support only some of its values.
"""

from __future__ import annotations

import datetime
import struct
from dataclasses import dataclass
from decimal import Decimal

__all__ = ["GROUPS", "KINDS", "Kind"]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A type, or the part of its values that formats handle alike.

    Attributes:
        name: a short, unique name that can be part of a column's name.
        title: the name in the docs.
        type: Spark's name of the type (`simpleString`).
        values: pairs of SQL and canonical text.
        nested: whether to test it in all nestings; if not, only as a column and in a struct, because it differs little
            from a kind that is tested in all.
        key: whether Spark allows it as a map's key.
        partition: whether Spark allows it as a partition column.
    """

    name: str
    title: str
    type: str
    values: tuple[tuple[str, str], ...]
    nested: bool = True
    key: bool = True
    partition: bool = True


def _cast(type_name: str, *texts: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"cast('{text}' as {type_name})", text) for text in texts)


# --- numbers ----------------------------------------------------------------------------------------------------------
def _integers(type_name: str, bits: int) -> tuple[tuple[str, str], ...]:
    edge = 2 ** (bits - 1)
    numbers = (-edge, edge - 1, 0, -1, 10)
    return tuple((f"cast({number + 1}L - 1 as {type_name})", str(number)) for number in numbers[:1]) + tuple(
        (f"cast({number}L as {type_name})", str(number)) for number in numbers[1:]
    )


def _floats(type_name: str, *texts: str) -> tuple[tuple[str, str], ...]:
    def shown(text: str) -> str:
        value = float(text.replace("Infinity", "inf"))
        if type_name == "float":
            value = struct.unpack("f", struct.pack("f", value))[0]
        return repr(value)

    return tuple((f"cast('{text}' as {type_name})", shown(text)) for text in texts)


def _decimals(precision: int, scale: int) -> tuple[tuple[str, str], ...]:
    nines = "9" * precision
    least = Decimal((0, (1,), -scale))
    most = Decimal(nines).scaleb(-scale) if precision < 28 else Decimal((0, (9,) * precision, -scale))
    texts = [f"{most:f}", f"-{most:f}", f"{least:f}", f"-{least:f}", f"{Decimal((0, (0,), -scale)):f}"]
    return _cast(f"decimal({precision},{scale})", *texts)


_FLOATS = ("NaN", "Infinity", "-Infinity", "-0.0", "0.0", "0.1", "1.0E7", "1.0E-3", "1.0E16")
_NUMBERS = (
    Kind(name="boolean", title="boolean", type="boolean", values=(("true", "true"), ("false", "false"))),
    Kind(name="byte", title="byte", type="tinyint", values=_integers("tinyint", 8)),
    Kind(name="short", title="short", type="smallint", values=_integers("smallint", 16)),
    Kind(name="int", title="int", type="int", values=_integers("int", 32)),
    Kind(name="long", title="long", type="bigint", values=_integers("bigint", 64)),
    Kind(name="float", title="float", type="float", values=_floats("float", *_FLOATS, "1.4E-45", "3.4028235E38")),
    Kind(
        name="double",
        title="double",
        type="double",
        values=_floats("double", *_FLOATS, "4.9E-324", "1.7976931348623157E308", "123456789.123456789"),
    ),
    *(
        Kind(
            name=f"decimal_{precision}_{scale}",
            title=f"decimal({precision},{scale})",
            type=f"decimal({precision},{scale})",
            values=_decimals(precision, scale),
            nested=(precision, scale) in {(9, 2), (38, 18)},
        )
        for precision, scale in ((5, 0), (9, 2), (18, 6), (20, 0), (38, 0), (38, 18), (38, 38))
    ),
)


# --- text and bytes ---------------------------------------------------------------------------------------------------
_PLAIN = (
    "a",
    " a b ",
    "null",
    "NULL",
    "é",
    "🎈",
    "\u2028",
    "\ufeffx",
    "a\u0301",
    "#x",
    "1",
    "true",
    "-",
    "{}",
    "%2F",
    "a=b/c",
)
_MARKED = ('"', 'say "hi"', "'", "\\", "c:\\temp\\new", "ends\\", '\\"', "a,b", ";", "a\tb", '""', '",')
_BROKEN = ("a\nb", "a\rb", "a\r\nb", "\n", "\r")


def _strings(texts: tuple[str, ...], after: str = "") -> tuple[tuple[str, str], ...]:
    return tuple((f"decode(X'{text.encode().hex()}', 'UTF-8'){after}", f"s:{text}") for text in texts)


_TEXTS = (
    Kind(name="string", title="string", type="string", values=_strings(_PLAIN)),
    Kind(name="string_marks", title="string with quotes and backslashes", type="string", values=_strings(_MARKED)),
    Kind(name="string_lines", title="string with line ends", type="string", values=_strings(_BROKEN)),
    Kind(name="string_empty", title="empty string", type="string", values=_strings(("", "a"))),
    Kind(name="string_zero", title="string with a null byte", type="string", values=_strings(("a\0b", "\0"))),
    Kind(
        name="string_ci",
        title="string collate UNICODE_CI",
        type="string collate UNICODE_CI",
        values=_strings(("a", "A", "É"), " collate UNICODE_CI"),
        key=False,  # Spark's own writers refuse it
    ),
    Kind(
        name="char",
        title="char(4)",
        type="char(4)",
        values=tuple((f"cast('{text}' as char(4))", f"s:{text:4}") for text in ("a", "abcd", "")),
        nested=False,
    ),
    Kind(
        name="varchar",
        title="varchar(4)",
        type="varchar(4)",
        values=tuple((f"cast('{text}' as varchar(4))", f"s:{text}") for text in ("a", "abcd", "b ")),
        nested=False,
    ),
    Kind(
        name="binary",
        title="binary",
        type="binary",
        values=tuple((f"X'{text}'", f"x:{text}") for text in ("00", "ff00ff", "", "616263", "0a0d225c", "c328")),
    ),
)


# --- time -------------------------------------------------------------------------------------------------------------
_EPOCH = datetime.datetime(1970, 1, 1)


def _micros(text: str) -> int:
    return (datetime.datetime.fromisoformat(text) - _EPOCH) // datetime.timedelta(microseconds=1)


def _days(*numbers_or_texts: str | int) -> tuple[tuple[str, str], ...]:
    numbers = [
        one if isinstance(one, int) else datetime.date.fromisoformat(one).toordinal() - 719_163
        for one in numbers_or_texts
    ]
    return tuple((f"date_from_unix_date({number})", f"d:{number}") for number in numbers)


def _instants(*texts: str | int) -> tuple[tuple[str, str], ...]:
    numbers = [text if isinstance(text, int) else _micros(text) for text in texts]
    return tuple((f"timestamp_micros(cast('{number}' as bigint))", f"t:{number}") for number in numbers)


def _locals(*texts: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"timestamp_ntz'{text.replace('T', ' ')}'", f"n:{_micros(text)}") for text in texts)


_EARLY = (
    "0001-01-01T00:00:00",
    "1000-02-28T12:00:00",
    "1500-03-01T00:00:00.000001",
    "1582-10-04T23:59:59",
)
_USUAL = (
    "1970-01-01T00:00:00",
    "2026-07-02T03:04:05.000006",
    "2026-03-08T07:30:00",  # New York's clocks jump forward at 07:00
    "2026-11-01T05:30:00",  # the first 01:30 in New York
    "2026-11-01T06:30:00",  # and the second one
    "1985-12-31T18:20:00",  # Kathmandu's offset changes by a quarter of an hour at 18:30
    "1985-12-31T18:40:00",
    "1900-01-01T00:00:00",
    "2261-12-31T23:59:59.999999",
)
_FRACTIONS = (
    "1969-12-31T23:59:59.999999",
    "1969-12-31T23:59:59.500000",
    "1960-01-01T00:00:00.000001",
)
_OLD = (
    "1582-10-15T00:00:00",
    "1677-09-20T00:00:00",
    "1677-09-22T00:00:00",
    "1800-01-01T00:00:00",
    "1883-11-18T17:00:00",
    "1899-12-31T12:34:56.789",
)
_LATE = ("2262-04-12T00:00:00", "9999-12-31T23:59:59.999999", "2500-01-01T00:00:00")
_LOCAL_ONLY = ("2026-03-08T02:30:00", "2026-11-01T01:30:00")  # a missing and a repeated hour in New York

_TIMES = (
    Kind(
        name="date",
        title="date",
        type="date",
        values=_days("1582-10-15", "1899-12-31", "1969-12-31", "1970-01-01", "2026-02-28", "2262-04-12", "9999-12-31"),
    ),
    Kind(
        name="date_early",
        title="date before 1582-10-15",
        type="date",
        values=_days("0001-01-01", "1500-02-28", "1582-10-04", "1582-10-05", "1582-10-14"),
    ),
    Kind(name="date_late", title="date after 9999", type="date", values=_days(2_932_897, 106_751_000)),
    Kind(name="date_bc", title="date before year 1", type="date", values=_days(-719_163, -719_527)),
    Kind(
        name="instant_far",
        title="timestamp after 9999",
        type="timestamp",
        values=_instants(253_402_300_800_000_000, 8_210_266_876_799_123_456),
    ),
    Kind(
        name="instant_bc",
        title="timestamp before year 1",
        type="timestamp",
        values=_instants(-62_135_596_800_000_001, -62_150_000_000_000_000),
    ),
    Kind(name="instant", title="timestamp", type="timestamp", values=_instants(*_USUAL)),
    Kind(name="instant_old", title="timestamp before 1900", type="timestamp", values=_instants(*_OLD)),
    Kind(
        name="instant_fraction",
        title="timestamp before 1970 with a fraction",
        type="timestamp",
        values=_instants(*_FRACTIONS),
    ),
    Kind(name="instant_early", title="timestamp before 1582-10-15", type="timestamp", values=_instants(*_EARLY)),
    Kind(name="instant_late", title="timestamp after 2262", type="timestamp", values=_instants(*_LATE)),
    Kind(name="local", title="timestamp_ntz", type="timestamp_ntz", values=_locals(*_USUAL, *_FRACTIONS, *_LOCAL_ONLY)),
    Kind(
        name="local_far",
        title="timestamp_ntz before 1900 or after 2262",
        type="timestamp_ntz",
        values=_locals(*_EARLY, *_OLD, *_LATE),
    ),
    Kind(
        name="time",
        title="time(6)",
        type="time(6)",
        values=tuple(
            (f"time'{text}'", f"time:{number}")
            for text, number in (
                ("00:00:00", 0),
                ("23:59:59.999999", 86_399_999_999_000),
                ("12:34:56.000001", 45_296_000_001_000),
            )
        ),
    ),
)


# --- intervals --------------------------------------------------------------------------------------------------------
_US = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def _day_time(name: str, first: str, last: str, *texts: tuple[str, int], nested: bool = False) -> Kind:
    fields = first if first == last else f"{first} to {last}"
    return Kind(
        name=name,
        title=f"interval {fields}",
        type=f"interval {fields}",
        values=tuple((f"interval '{text}' {fields}", f"i:{number}") for text, number in texts),
        nested=nested,
    )


def _months(name: str, fields: str, *texts: tuple[str, int], nested: bool = False) -> Kind:
    return Kind(
        name=name,
        title=f"interval {fields}",
        type=f"interval {fields}",
        values=tuple((f"interval '{text}' {fields}", f"m:{number}") for text, number in texts),
        nested=nested,
    )


_INTERVALS = (
    _day_time(
        "days_seconds",
        "day",
        "second",
        ("106751991 04:00:54.775807", 2**63 - 1),
        ("-106751991 04:00:54.775808", -(2**63)),
        ("0 00:00:00", 0),
        ("-1 00:00:00.000003", -86_400_000_003),
        nested=True,
    ),
    _day_time("days", "day", "day", ("-3", -3 * _US["day"]), ("106751991", 106_751_991 * _US["day"])),
    _day_time("days_hours", "day", "hour", ("1 02", _US["day"] + 2 * _US["hour"]), ("-0 01", -_US["hour"])),
    _day_time("days_minutes", "day", "minute", ("1 02:03", _US["day"] + 123 * _US["minute"])),
    _day_time("hours", "hour", "hour", ("-5", -5 * _US["hour"])),
    _day_time("hours_minutes", "hour", "minute", ("5:06", 306 * _US["minute"])),
    _day_time("hours_seconds", "hour", "second", ("5:06:07.5", 306 * _US["minute"] + 7_500_000)),
    _day_time("minutes", "minute", "minute", ("-7", -7 * _US["minute"])),
    _day_time("minutes_seconds", "minute", "second", ("7:08.000001", 428_000_001)),
    _day_time("seconds", "second", "second", ("-0.000001", -1), ("9.25", 9_250_000)),
    _months(
        "years_months",
        "year to month",
        ("178956970-7", 2**31 - 1),
        ("-178956970-8", -(2**31)),
        ("0-0", 0),
        ("1-2", 14),
        nested=True,
    ),
    _months("years", "year", ("-3", -36)),
    _months("months", "month", ("3", 3), ("-1", -1)),
    Kind(
        name="calendar",
        title="interval (calendar)",
        type="interval",
        values=(("make_interval(1, 2, 0, 3)", "c:1 years 2 months 3 days"),),
        nested=False,
        key=False,
        partition=False,
    ),
)


# --- others -----------------------------------------------------------------------------------------------------------
def _variants(*texts: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"parse_json(decode(X'{text.encode().hex()}', 'UTF-8'))", f"v:{text}") for text in texts)


_POINT = "0101000000000000000000F03F0000000000000040"
_OTHERS = (
    Kind(
        name="variant",
        title="variant",
        type="variant",
        values=_variants('{"a":[1,null,"x"]}', "null", "1.5", '"q\\"q"', "[]", "true", '{"b":{"c":-1}}'),
        key=False,
        partition=False,
    ),
    Kind(name="void", title="void", type="void", values=(("null", "null"),), key=False, partition=False),
    Kind(
        name="udt",
        title="user-defined type",
        type="udt",
        values=(
            # Arrays here; `tests.matrix.shapes` converts them with a function of Spark ML.
            ("array(1.5D, 2.0D)", "u:[1.5,2.0]"),
            ("array(-0.0D)", "u:[-0.0]"),
        ),
        nested=False,
        key=False,
        partition=False,
    ),
    Kind(
        name="geometry",
        title="geometry(0)",
        type="geometry(0)",
        values=((f"st_geomfromwkb(X'{_POINT}')", f"g:{_POINT.lower()}"),),
        nested=False,
        key=False,
        partition=False,
    ),
)

KINDS: tuple[Kind, ...] = (*_NUMBERS, *_TEXTS, *_TIMES, *_INTERVALS, *_OTHERS)

_DAY_FIELDS = tuple(one.name for one in _INTERVALS if one.values[0][1].startswith("i:") and one.name != "days_seconds")
GROUPS = {
    "day-time intervals": ("days_seconds", *_DAY_FIELDS),
    "day-time intervals other than day to second": _DAY_FIELDS,
    "year-month intervals": tuple(one.name for one in _INTERVALS if one.values[0][1].startswith("m:")),
    "char(n), varchar(n)": ("char", "varchar"),
}
"""Kinds that the docs list as one where all of them behave alike."""
