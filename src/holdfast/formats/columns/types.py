"""Which types a format can hold, and for what reason it does not hold the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.spark_fields import beyond_arrow

__all__ = [
    "HOLDS",
    "REASONS",
    "UNREACHABLE",
    "check_map_keys",
    "check_names",
    "check_types",
    "children",
    "is_binary",
    "is_list",
    "is_string",
    "kind_of",
    "special_struct",
]


def is_string(kind: pa.DataType) -> bool:
    """Any of Arrow's string types."""
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Any of Arrow's binary types."""
    return bool(
        pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_fixed_size_binary(kind) or pat.is_binary_view(kind)
    )


def is_list(kind: pa.DataType) -> bool:
    """Any of Arrow's list types that a file can hold; views are none of them."""
    return bool(pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind))


def children(kind: pa.DataType) -> list[pa.Field]:
    """The fields right below a nested type."""
    return [kind.field(i) for i in range(kind.num_fields)] if pat.is_nested(kind) else []


def special_struct(kind: pa.DataType) -> str | None:
    """``variant``, ``geometry`` or ``geography`` if PySpark marks a struct as one of these; None for any other type."""
    for field in children(kind) if pat.is_struct(kind) else ():
        for word in ("variant", "geometry", "geography"):
            if (field.metadata or {}).get(word.encode()) == b"true":
                return word
    return None


# --- kinds: words for groups of types ---------------------------------------------------------------------------------
_KINDS: Mapping[str, Callable[[pa.DataType], bool]] = {
    "null": pat.is_null,
    "boolean": pat.is_boolean,
    "integer": pat.is_signed_integer,
    "float": lambda kind: pat.is_float32(kind) or pat.is_float64(kind),
    "decimal": lambda kind: pat.is_decimal128(kind),
    "string": is_string,
    "binary": is_binary,
    "date": pat.is_date32,
    "timestamp": lambda kind: pat.is_timestamp(kind) and kind.tz is not None,
    "timestamp_ntz": lambda kind: pat.is_timestamp(kind) and kind.tz is None,
    "time": pat.is_time,
    "interval": pat.is_duration,
    "list": is_list,
    "map": pat.is_map,
    "variant": lambda kind: special_struct(kind) == "variant",
    "geometry": lambda kind: special_struct(kind) == "geometry",
    "geography": lambda kind: special_struct(kind) == "geography",
    "struct": pat.is_struct,
}
_BASE = frozenset({"boolean", "integer", "float", "decimal", "string", "date", "timestamp", "timestamp_ntz"})
_NESTED = frozenset({"list", "map", "struct"})
_BEYOND = frozenset({"interval of other fields", "collated string", "user-defined"})


def _kind_of(kind: pa.DataType) -> str | None:
    return next((name for name, matches in _KINDS.items() if matches(kind)), None)


def kind_of(field: pa.Field) -> str | None:
    """The word for a column's type: a key of `REASONS`; None for a type that Spark does not have."""
    beyond = sorted(beyond_arrow(field))
    if beyond:
        return beyond[0]
    return _kind_of(field.type.value_type if pat.is_dictionary(field.type) else field.type)


# --- what each format holds, and why not ------------------------------------------------------------------------------
HOLDS: Mapping[str, frozenset[str]] = {
    "parquet": _BASE | _NESTED | {"null", "binary", "interval", "time", "variant", *_BEYOND},
    "orc": _BASE | _NESTED | {"binary", "interval", "time"},
    "avro": _BASE | _NESTED | {"null", "binary"},
    "arrow": frozenset(_KINDS) - {"geometry", "geography"} | _BEYOND,
    "json": _BASE | _NESTED | {"null", "binary", "collated string", "user-defined"},
    "csv": _BASE | {"null", "collated string"},
    "text": frozenset({"string", "collated string"}),
}
_SPATIAL = "spatial types are not written yet: store st_asbinary(column) and the SRID"
_NANOSECONDS = "times are kept in microseconds: cast the column to time(6)"
_TEXT = "a line of text is a string: cast the column to a string"
REASONS: Mapping[tuple[str, str], str] = {
    **{(name, kind): _SPATIAL for name in HOLDS for kind in ("geometry", "geography")},
    ("parquet", "time of nanoseconds"): _NANOSECONDS,
    ("arrow", "time of nanoseconds"): _NANOSECONDS,
    **{
        ("text", kind): _TEXT
        for kind in (*_KINDS, *_BEYOND, "time of nanoseconds")
        if kind not in ("string", "collated string", "geometry", "geography")
    },
    ("orc", "null"): "an ORC column has a type: cast it to the type that it will have",
    ("orc", "interval of other fields"): "ORC files get one type of intervals: cast to interval day to second",
    ("orc", "time of nanoseconds"): _NANOSECONDS,
    ("orc", "variant"): "ORC has no VARIANT: store to_json(column)",
    ("orc", "collated string"): "ORC keeps no collation: cast to string collate UTF8_BINARY",
    ("orc", "user-defined"): "ORC keeps only the type below a user-defined one: take its parts",
    ("avro", "interval"): "Avro has no length of time: cast the column to a string",
    ("avro", "interval of other fields"): "Avro has no length of time: cast the column to a string",
    ("avro", "time"): "Spark has no times in Avro: cast the column to a string",
    ("avro", "time of nanoseconds"): "Spark has no times in Avro: cast the column to a string",
    ("avro", "variant"): "Avro has no VARIANT: store to_json(column)",
    ("avro", "collated string"): "Avro keeps no collation: cast to string collate UTF8_BINARY",
    ("avro", "user-defined"): "Avro keeps only the type below a user-defined one: take its parts",
    ("json", "interval"): "JSON has no length of time: cast the column to a string",
    ("json", "interval of other fields"): "JSON has no length of time: cast the column to a string",
    ("json", "time"): "JSON has no time of day: cast the column to a string",
    ("json", "time of nanoseconds"): "JSON has no time of day: cast the column to a string",
    ("json", "variant"): "JSON keeps no types, 1 and 1.0 would be one: store to_json(column)",
    ("csv", "binary"): "CSV has text only, Spark's [00 FF] does not read back: store base64(column)",
    ("csv", "interval"): "CSV has no length of time: cast the column to a string",
    ("csv", "interval of other fields"): "CSV has no length of time: cast the column to a string",
    ("csv", "time"): "CSV has no time of day: cast the column to a string",
    ("csv", "time of nanoseconds"): "CSV has no time of day: cast the column to a string",
    ("csv", "list"): "CSV has no nested values: store to_json(column)",
    ("csv", "map"): "CSV has no nested values: store to_json(column)",
    ("csv", "struct"): "CSV has no nested values: store to_json(column)",
    ("csv", "variant"): "CSV has no nested values: store to_json(column)",
    ("csv", "user-defined"): "CSV has no nested values: take its parts",
}
"""Why a format does not hold a kind of types, and what to do: in errors, and in the docs' table."""

# Types that never come as far as a format: PySpark has no way to hand them to Python.
UNREACHABLE: Mapping[str, str] = {
    "interval year to month": "PySpark hands no year-month interval to Python: store cast(column as string)",
    "interval": "Spark stores no INTERVAL of the calendar: store its parts in columns of their own",
}


@dataclass(frozen=True, slots=True)
class _Unheld:
    path: str
    type: pa.DataType
    needs: str


def check_names(schema: pa.Schema) -> None:
    """Columns are told apart by their names, regardless of case.

    Spark's own writers take ``a`` beside ``A`` if ``spark.sql.caseSensitive`` is on; every reader without that setting
    then fails on the table, so it is refused.

    Raises:
        InvalidRequestError: two names are the same, or one holds NUL, where Spark cuts it off on the way to Python.
    """
    seen: dict[str, str] = {}
    for field in schema:
        _refuse_nul(field)
    for name in schema.names:
        folded = name.lower()
        if folded in seen:
            raise InvalidRequestError(
                "two columns are the same or differ only by case: rename one", first=seen[folded], second=name
            )
        seen[folded] = name


def _refuse_nul(field: pa.Field) -> None:
    if "\0" in field.name:
        spelled = field.name.replace("\0", r"\0")
        raise InvalidRequestError("a column's name holds NUL: rename the column", column=spelled)
    for child in children(field.type):
        _refuse_nul(child)


def check_types(format_name: str, schema: pa.Schema) -> None:
    """See `FileFormat.check_schema`.

    Raises:
        InvalidRequestError: the format cannot hold a column; the message names the formats that can.
    """
    holds = HOLDS[format_name]
    check_names(schema)
    for column in schema:
        for unheld in (*_beyond(column, holds), *_unheld(column.name, column.type, holds)):
            raise InvalidRequestError(
                f"{format_name} cannot hold this type{_advice(format_name, unheld.needs)}",
                column=unheld.path,
                type=str(unheld.type),
            )
        _check_struct_names(column.name, column.type)


def check_map_keys(format_name: str, schema: pa.Schema) -> None:
    """See that maps have strings for keys, as they do where a map is an object of names and values.

    Raises:
        InvalidRequestError: a map has others, which at least Spark's reader would not take back.
    """
    for column in schema:
        _check_map_keys(format_name, column.name, column.type)


def _check_map_keys(format_name: str, path: str, kind: pa.DataType) -> None:
    if pat.is_map(kind) and not is_string(kind.key_type):
        raise InvalidRequestError(f"{format_name} maps have string keys: cast them or use parquet", column=path)
    for child in children(kind):
        inner = path if pat.is_map(kind) else f"{path}.{child.name if pat.is_struct(kind) else 'element'}"
        _check_map_keys(format_name, inner, child.type)


def _advice(format_name: str, kind: str) -> str:
    """Why not, and what to do."""
    reason, _, act = REASONS.get((format_name, kind), ": cast the column").rpartition(": ")
    others = sorted(name for name, kinds in HOLDS.items() if kind in kinds)
    return f"{reason and ', '}{reason}: {' or '.join([act, *(f'use {name}' for name in others)])}"


def _unheld(path: str, kind: pa.DataType, holds: frozenset[str]) -> Iterator[_Unheld]:
    if pat.is_dictionary(kind):
        kind = kind.value_type
    word = _kind_of(kind)
    if word is None:
        yield _Unheld(path, kind, "unknown")
    elif word not in holds:
        yield _Unheld(path, kind, word)
    for child in () if special_struct(kind) else children(kind):
        yield from _unheld(f"{path}.{child.name}", child.type, holds)


def _beyond(column: pa.Field, holds: frozenset[str]) -> Iterator[_Unheld]:
    for word in sorted(beyond_arrow(column) - holds):
        yield _Unheld(column.name, column.type, word)


def _check_struct_names(path: str, kind: pa.DataType) -> None:
    if pat.is_struct(kind):
        if kind.num_fields == 0:
            raise InvalidRequestError("no format can hold a struct without fields: add one", column=path)
        names = [field.name.lower() for field in children(kind)]
        if len(set(names)) < len(names):
            raise InvalidRequestError("two fields of a struct differ only by case: rename one", column=path)
    for child in children(kind):
        _check_struct_names(f"{path}.{child.name}", child.type)
