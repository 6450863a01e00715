"""Declare as data which values do not survive a round trip: which way, which types, the result, and the reason.

The test fails if a declared deviation does not occur, or if an undeclared one does. `tests.matrix.document` prints the
declarations as the tables in docs/reference/types.md. The first one that matches a cell applies.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.matrix.cells import Cell
from tests.matrix.kinds import KINDS
from tests.matrix.value_changes import (
    add_second_before_epoch,
    drop_prefix,
    drop_small_sign,
    empty_to_null,
    encode_base64,
    join_variant,
    join_vector,
    nested_variant_null_to_null,
    skip_lost_days,
    spark_hex,
    trim,
    trim_or_null,
    truncate_to_millis,
    variant_null_to_null,
)

__all__ = ["DEVIATIONS", "Deviation", "Fails", "Reads"]


@dataclass(frozen=True)
class Fails:
    """The write is rejected (on ways to ``-``), or the reader cannot read the column.

    Attributes:
        words: a part of the error message, in any case.
        by_value: whether this depends on the values; without such values the column is read back as written.
    """

    words: str
    by_value: bool = False


@dataclass(frozen=True)
class Reads:
    """The reader returns something else.

    Attributes:
        shown: the result, for the docs.
        value: maps a canonical leaf to the one that is read.
        seen: converts what is read to canonical form, where a reader splits a value.
        type: Spark's name of the type that is read; empty if the type is unchanged, or if the reader is not Spark's.
    """

    shown: str
    value: Callable[[str], Any] = lambda text: text
    seen: Callable[[Any], Any] = lambda value: value
    type: str = ""


@dataclass(frozen=True)
class Deviation:
    """One row of the table.

    Attributes:
        ways, kinds, nestings: patterns, like those for file names.
        how: the result.
        why: the reason, for the docs.
        title: the types or values, for the docs; empty for the titles of the kinds and nestings.
    """

    ways: tuple[str, ...]
    kinds: tuple[str, ...]
    how: Fails | Reads
    why: str
    nestings: tuple[str, ...] = ("*",)
    title: str = ""

    def covers(self, cell: Cell) -> bool:
        """Check whether the row applies to the cell."""
        return (
            _any(self.ways, cell.way)
            and _any(self.kinds, cell.column.kind.name)
            and _any(self.nestings, cell.column.nesting.name)
        )


def _any(patterns: Sequence[str], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


# --- the table --------------------------------------------------------------------------------------------------------
_DEEP = ("struct*", "array*", "map*")
_MONTHS = ("years*", "months")
_DAYS = ("days*", "hours*", "minutes*", "seconds")
_DAY_FIELDS = ("days", "days_hours", "days_minutes", "hours*", "minutes*", "seconds")  # all but day to second
_CHAR = ("char", "varchar")
_OTHERS = ("pyarrow", "pandas", "DuckDB", "polars", "fastavro")
_VECTOR = "struct<type:tinyint,size:int,indices:array<int>,values:array<double>>"


def _by(writer: str, dialect: str, *readers: str) -> tuple[str, ...]:
    return tuple(f"{writer}>{dialect}>{reader}" for reader in readers)


def _spark_refuses(dialect: str, kinds: tuple[str, ...], nestings: tuple[str, ...] = ("*",)) -> Deviation:
    words = "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE"
    return Deviation(_by("spark", dialect, "-"), kinds, Fails(words), "Spark does not support it", nestings)


_WRITTEN = (
    Deviation(("holdfast>*>-",), ("calendar",), Fails("interval"), "Spark does not write it either"),
    Deviation(
        ("holdfast>*>-",),
        _MONTHS,
        Fails("cannot pass year-month intervals to Python"),
        "store cast(column as string)",
    ),
    Deviation(
        ("holdfast>*>-",),
        _CHAR,
        Fails("cannot pass a column"),
        "cast them to string (only with `spark.sql.preserveCharVarcharTypeInfo`)",
    ),
    Deviation(_by("holdfast", "csv", "-"), ("*",), Fails("does not support"), "CSV has no nested values", _DEEP),
    Deviation(
        ("holdfast>*>-",),
        ("geometry",),
        Fails("spatial types are not supported"),
        "store st_asbinary(column) and the SRID",
    ),
)


def _held(dialects: tuple[str, ...], kinds: tuple[str, ...], words: str, why: str) -> Deviation:
    return Deviation(tuple(f"holdfast>{one}>-" for one in dialects), kinds, Fails(words), why)


_CUT = "Spark's writer truncates them; set its timestampFormat"
_STRUCT = Reads("the underlying struct", seen=join_vector, type=_VECTOR)
_AS_TEXT = "read it as a string"
_TIMESTAMPS = ("instant*", "local*")
_INSTANTS = ("instant", "instant_bc", "instant_early", "instant_f*", "instant_late", "local*")  # some with micros


def _no_months(dialect: str) -> Deviation:
    words = "cannot pass year-month intervals to Python"
    return Deviation(_by("spark", dialect, "holdfast"), _MONTHS, Fails(words), _AS_TEXT)


def _no_sign_below_a_second(dialect: str) -> Deviation:
    how = Reads("without the sign if shorter than a second", drop_small_sign)
    return Deviation(_by("spark", dialect, "spark"), ("seconds",), how, "Spark's parser loses the sign")


def _whole_millis(dialect: str) -> Deviation:
    return Deviation(
        _by("spark", dialect, "spark"),
        _INSTANTS,
        Reads("whole milliseconds", truncate_to_millis),
        _CUT,
        title="timestamp, timestamp_ntz",
    )


_PARQUET = (
    _spark_refuses("parquet*", ("calendar",)),
    Deviation(
        _by("holdfast", "parquet", "DuckDB"),
        _DAYS,
        Reads("the number of microseconds", drop_prefix),
        "Parquet has no such type",
    ),
    Deviation(
        _by("holdfast", "parquet", *_OTHERS),
        ("variant",),
        Reads("a struct of its two parts", seen=join_variant),
        "they have no VARIANT type",
    ),
    Deviation(_by("holdfast", "parquet", *_OTHERS), ("udt",), _STRUCT, "they do not know the type"),
    Deviation(_by("spark", "parquet*", "holdfast"), ("udt",), _STRUCT, "the type's class is not loaded"),
    Deviation(
        _by("spark", "parquet*", "holdfast"),
        (*_CHAR, *_MONTHS, "geometry"),
        Fails("leave it out with the option columns"),
        "use `spark.read`",
    ),
)

_ORC = (
    _spark_refuses("orc", ("calendar", "geometry", "variant", "void")),
    _held(("orc",), ("string_ci",), "ORC does not store collations", "ORC does not store collations"),
    _held(("orc",), _DAY_FIELDS, "ORC files store only day-time intervals", "cast it to interval day to second"),
    _held(("orc",), ("udt",), "stores only the underlying type", "store its parts"),
    _held(("orc",), ("variant",), "ORC has no VARIANT", "store to_json(column)"),
    _held(("orc",), ("void",), "every ORC column needs a concrete type", "cast it to a concrete type"),
    Deviation(
        _by("holdfast", "orc", "-"),
        ("date_bc", "date_early"),
        Fails("ORC cannot store dates before 1582", by_value=True),
        "Spark's ORC reader takes them for Julian ones: use parquet",
        title="dates before 1582-10-15",
    ),
    Deviation(
        _by("holdfast", "orc", "-"),
        ("instant_early", "instant_old", "instant_bc"),
        Fails("ORC cannot store timestamps before 1900", by_value=True),
        "Java's ORC reader shifts them: use parquet",
        title="timestamps before 1900",
    ),
    Deviation(
        _by("holdfast", "orc", "-"),
        ("instant_fraction",),
        Fails("fractions of seconds before 1970", by_value=True),
        "pyarrow's ORC encoder changes them: use parquet",
        title="timestamps before 1970 with a fraction of a second",
    ),
    Deviation(
        _by("holdfast", "orc", "pyarrow", "pandas"),
        ("days_seconds", "time"),
        Reads("the stored number", drop_prefix),
        "the file's metadata has Spark's type",
    ),
    Deviation(
        _by("holdfast", "orc", "pyarrow", "pandas"),
        ("local*",),
        Reads("the stored number", drop_prefix),
        "the file's metadata has Spark's type",
        title="timestamp_ntz",
    ),
    Deviation(
        _by("holdfast", "orc", "pyarrow", "pandas"),
        ("instant_late", "instant_far"),
        Fails("out of range for nanosecond", by_value=True),
        "they represent ORC's timestamps as nanoseconds",
        title="timestamps after 2262",
    ),
    Deviation(
        _by("spark", "orc", "holdfast", "spark"), _CHAR, Reads("string", type="string"), "Spark stores plain strings"
    ),
    Deviation(
        _by("spark", "orc", "holdfast", "spark"),
        ("string_ci",),
        Reads("string", type="string"),
        "Spark stores plain strings",
    ),
    Deviation(_by("spark", "orc", "holdfast", "spark"), ("udt",), _STRUCT, "Spark stores only the struct"),
    Deviation(
        _by("spark", "orc", "holdfast"),
        ("date_bc", "date_early", "instant_early", "instant_old", "instant_bc"),
        Fails("old calendar", by_value=True),
        "Spark writes ORC in Java's old calendar: use `spark.read`",
        title="dates before 1582-10-15, timestamps before 1900",
    ),
    Deviation(
        _by("spark", "orc", "spark"),
        ("date_early",),
        Reads("1582-10-15 for 1582-10-05 to 1582-10-14", skip_lost_days),
        "Spark writes ORC in Java's calendar, which skips these days",
    ),
    Deviation(
        _by("spark", "orc", "holdfast", "spark"),
        ("instant_fraction",),
        Reads("a second later", add_second_before_epoch),
        "Java's ORC writer shifts them",
        title="timestamps in the last second before 1970",
    ),
    Deviation(
        _by("spark", "orc", "holdfast"),
        _DAY_FIELDS,
        Reads("interval day to second", type="interval day to second"),
        "PySpark's Arrow types do not distinguish the fields",
    ),
    Deviation(
        _by("spark", "orc", "holdfast"),
        _MONTHS,
        Fails("year-month intervals in ORC files are not supported"),
        "use `spark.read`",
    ),
)

_CSV = (
    Deviation(
        _by("holdfast", "csv", "-"), ("*",), Fails("csv does not support this type"), "CSV has no nested values", _DEEP
    ),
    _spark_refuses("csv", ("*",), _DEEP),
    _spark_refuses("csv", ("calendar", "geometry", "udt", "variant", "void")),
    _held(("csv",), ("binary",), "CSV stores text only", "store base64(column)"),
    _held(("csv",), ("udt",), "csv does not support this type", "store its parts"),
    _held(("csv",), ("variant",), "csv does not support this type", "store to_json(column)"),
    _held(("csv", "json"), _DAYS, "has no interval type", "cast it to a string"),
    _held(("csv", "json"), ("time",), "has no time type", "cast it to a string"),
    Deviation(
        _by("holdfast", "csv", "spark"),
        ("string_empty",),
        Reads("null", empty_to_null),
        'Spark\'s CSV reader reads "" as null',
    ),
    Deviation(_by("*", "csv", "spark"), ("void",), Reads("string", type="string"), "Spark's CSV reader has no void"),
    Deviation(
        _by("spark", "csv", "spark"),
        ("binary",),
        Reads("the text [FF 00]", spark_hex),
        "Spark's writer converts binary values to such text",
    ),
    Deviation(
        _by("spark", "csv", "spark"),
        _CHAR,
        Reads("trimmed", trim_or_null, type="string"),
        "Spark's writer trims strings",
    ),
    _no_sign_below_a_second("csv"),
    _whole_millis("csv"),
    Deviation(_by("spark", "csv", "spark"), ("string",), Reads("trimmed", trim), "Spark's writer trims strings"),
    Deviation(
        _by("spark", "csv", "spark"),
        ("string_empty", "string_lines", "string_zero"),
        Reads("null if there are only blanks", trim_or_null),
        'Spark\'s writer trims, its reader reads "" as null',
    ),
)

_NOT_STRING = tuple(one.name for one in KINDS if not one.name.startswith("string") or one.name == "string_ci")

_KEYS = (
    Deviation(
        ("holdfast>json>-", "holdfast>avro>-"),
        _NOT_STRING,
        Fails("string"),
        "use strings",
        ("map_key",),
        title="map keys other than strings",
    ),
    Deviation(
        _by("spark", "json", "spark"),
        _NOT_STRING,
        Fails(""),
        "not even Spark reads them back: use strings",
        ("map_key",),
        title="map keys other than strings",
    ),
)

_JSON = (
    Deviation(
        _by("holdfast", "json", "pyarrow"),
        ("*",),
        Fails("JSON conversion to map"),
        "pyarrow's reader does not support maps",
        ("map*",),
    ),
    Deviation(
        _by("spark", "json", "spark"), _CHAR, Fails("AS_STRING"), "Spark's reader does not accept the schema", _DEEP
    ),
    _spark_refuses("json", ("calendar", "geometry")),
    _held(("json",), ("variant",), "JSON does not store types", "store to_json(column)"),
    Deviation(_by("holdfast", "json", "pyarrow"), ("binary",), Reads("base64", encode_base64), "JSON stores text only"),
    Deviation(
        _by("holdfast", "json", "pyarrow"),
        ("date", "date_early", "float", "double"),
        Fails("changed from number to string", by_value=True),
        "pyarrow's reader does not accept them as text",
        title="NaN, infinity, dates",
    ),
    Deviation(_by("holdfast", "json", "pyarrow"), ("udt",), _STRUCT, "pyarrow does not know the type"),
    Deviation(_by("*", "json", "spark"), ("void",), Reads("string", type="string"), "Spark's JSON reader has no void"),
    _whole_millis("json"),
    Deviation(
        _by("spark", "json", "spark"), _CHAR, Reads("string", type="string"), "Spark's JSON reader has no char(n)"
    ),
    _no_sign_below_a_second("json"),
    Deviation(
        _by("spark", "json", "spark"),
        ("variant",),
        Reads("VARIANT's null for null", variant_null_to_null, seen=nested_variant_null_to_null),
        "Spark's reader does not distinguish the two",
        ("array*", "map*"),
    ),
)

_AVRO = (
    Deviation(
        (*_by("holdfast", "csv", "-"), *_by("holdfast", "json", "-"), *_by("holdfast", "avro", "-")),
        ("date_late", "date_bc", "instant_far", "instant_bc"),
        Fails("supports only the years 1 to 9999", by_value=True),
        "use parquet",
        title="dates and timestamps outside the years 1 to 9999",
    ),
    _held(("avro",), _DAYS, "Avro has no interval type", "cast it to a string"),
    _held(("avro",), ("string_ci",), "Avro does not store collations", "cast to string collate UTF8_BINARY"),
    _held(("avro",), ("time",), "Spark does not support times in Avro", "cast it to a string"),
    _held(("avro",), ("udt",), "stores only the underlying type", "store its parts"),
    _held(("avro",), ("variant",), "Avro has no VARIANT", "store to_json(column)"),
)

_ARROW = (
    Deviation(
        _by("holdfast", "arrow", *_OTHERS),
        ("variant",),
        Reads("a struct of its two parts", seen=join_variant),
        "they have no VARIANT type",
    ),
    Deviation(_by("holdfast", "arrow", *_OTHERS), ("udt",), _STRUCT, "they do not know the type"),
)

_PARTITIONS = (
    Deviation(
        _by("holdfast", "partitions", "-"), ("string_ci",), Fails("by plain strings only"), "Spark rejects it too"
    ),
    Deviation(
        _by("spark", "partitions", "-"), ("string_ci",), Fails("INVALID_PARTITION_COLUMN"), "Spark does not support it"
    ),
    Deviation(
        _by("holdfast", "partitions", "-"),
        ("string_empty",),
        Fails("cannot distinguish an empty string"),
        "Spark's directory names do not distinguish the two",
    ),
    Deviation(
        _by("spark", "partitions", "*"),
        ("string_empty",),
        Reads("null", empty_to_null),
        "Spark's directory names do not distinguish the two",
    ),
    Deviation(
        _by("spark", "partitions", "-"),
        ("string_zero", "binary"),
        Fails("parquet"),
        "file systems do not allow the name",
    ),
    Deviation(
        _by("holdfast", "partitions", "-"),
        ("binary",),
        Fails("a directory name cannot hold"),
        "partition by hex(column)",
    ),
    Deviation(
        _by("holdfast", "partitions", "-"),
        (*_DAYS, "time"),
        Fails("a directory name cannot hold"),
        "cast it to a string",
    ),
    Deviation(
        _by("holdfast", "partitions", "-"),
        ("float", "double"),
        Fails("a directory name cannot hold"),
        "cast it to a decimal or a string",
    ),
    Deviation(
        _by("holdfast", "partitions", "-"),
        _TIMESTAMPS,
        Fails("a directory name cannot hold"),
        "partition by a date or a string",
        title="timestamp, timestamp_ntz",
    ),
    Deviation(
        _by("holdfast", "partitions", "-"),
        ("date_late", "date_bc"),
        Fails("supports only the years 1 to 9999", by_value=True),
        "cast it to a string",
        title="dates outside the years 1 to 9999",
    ),
    Deviation(
        _by("spark", "partitions", "*"),
        _CHAR,
        Reads("string", type="string"),
        "use Spark's own table, which has the schema",
    ),
    Deviation(
        _by("spark", "partitions", "holdfast"),
        (*_DAYS, "time", "float", "double", "date_late"),
        Fails("a partition directory's value"),
        _AS_TEXT,
    ),
    Deviation(
        _by("spark", "partitions", "holdfast"),
        _TIMESTAMPS,
        Fails("a partition directory's value"),
        _AS_TEXT,
        title="timestamp, timestamp_ntz",
    ),
    _no_months("partitions"),
    _no_sign_below_a_second("partitions"),
)

DEVIATIONS: tuple[Deviation, ...] = (*_WRITTEN, *_KEYS, *_PARQUET, *_ORC, *_CSV, *_JSON, *_AVRO, *_ARROW, *_PARTITIONS)
