"""Define which types each format supports, and why it does not support the others.

A *kind* is a name for a group of types that formats treat alike, such as ``integer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.spark_fields import beyond_arrow


def is_string(kind: pa.DataType) -> bool:
    """Check whether the type is one of Arrow's string types."""
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Check whether the type is one of Arrow's binary types."""
    return bool(
        pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_fixed_size_binary(kind) or pat.is_binary_view(kind)
    )


def is_list(kind: pa.DataType) -> bool:
    """Check whether the type is an Arrow list type that a file can store; this excludes list views."""
    return bool(pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind))


def children(kind: pa.DataType) -> list[pa.Field]:
    """Return the direct child fields of a nested type."""
    return [kind.field(i) for i in range(kind.num_fields)] if pat.is_nested(kind) else []


def holds(kind: pa.DataType, matches: Callable[[pa.DataType], bool]) -> bool:
    """Check whether the type, or a type nested in it, matches."""
    return matches(kind) or any(holds(child.type, matches) for child in children(kind))


def special_struct(kind: pa.DataType) -> str | None:
    """Return ``variant``, ``geometry`` or ``geography`` if PySpark marks the struct as one of these, else None."""
    for field in children(kind) if pat.is_struct(kind) else ():
        for word in ("variant", "geometry", "geography"):
            if (field.metadata or {}).get(word.encode()) == b"true":
                return word
    return None


# --- kinds: names for groups of types ---------------------------------------------------------------------------------
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
    """Return the kind of a column's type, as in `HOLDS` and `REASONS`; None for a type that Spark does not have."""
    beyond = sorted(beyond_arrow(field))
    if beyond:
        return beyond[0]
    return _kind_of(field.type.value_type if pat.is_dictionary(field.type) else field.type)


# --- which kinds each format supports, and why not --------------------------------------------------------------------
HOLDS: Mapping[str, frozenset[str]] = {
    "parquet": _BASE | _NESTED | {"null", "binary", "interval", "time", "variant", *_BEYOND},
    "orc": _BASE | _NESTED | {"binary", "interval", "time"},
    "avro": _BASE | _NESTED | {"null", "binary"},
    "arrow": frozenset(_KINDS) - {"geometry", "geography"} | _BEYOND,
    "json": _BASE | _NESTED | {"null", "binary", "collated string", "user-defined"},
    "csv": _BASE | {"null", "collated string"},
    "text": frozenset({"string", "collated string"}),
}
_SPATIAL = "spatial types are not supported yet: store st_asbinary(column) and the SRID"
_NANOSECONDS = "times are stored in microseconds: cast the column to time(6)"
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
    ("orc", "null"): "every ORC column needs a concrete type: cast the column to one",
    ("orc", "interval of other fields"): "ORC files store only day-time intervals: cast to interval day to second",
    ("orc", "time of nanoseconds"): _NANOSECONDS,
    ("orc", "variant"): "ORC has no VARIANT: store to_json(column)",
    ("orc", "collated string"): "ORC does not store collations: cast to string collate UTF8_BINARY",
    ("orc", "user-defined"): "ORC stores only the underlying type of a user-defined type: store its parts",
    ("avro", "interval"): "Avro has no interval type: cast the column to a string",
    ("avro", "interval of other fields"): "Avro has no interval type: cast the column to a string",
    ("avro", "time"): "Spark does not support times in Avro: cast the column to a string",
    ("avro", "time of nanoseconds"): "Spark does not support times in Avro: cast the column to a string",
    ("avro", "variant"): "Avro has no VARIANT: store to_json(column)",
    ("avro", "collated string"): "Avro does not store collations: cast to string collate UTF8_BINARY",
    ("avro", "user-defined"): "Avro stores only the underlying type of a user-defined type: store its parts",
    ("json", "interval"): "JSON has no interval type: cast the column to a string",
    ("json", "interval of other fields"): "JSON has no interval type: cast the column to a string",
    ("json", "time"): "JSON has no time type: cast the column to a string",
    ("json", "time of nanoseconds"): "JSON has no time type: cast the column to a string",
    ("json", "variant"): "JSON does not store types, so 1 and 1.0 would be the same value: store to_json(column)",
    ("csv", "binary"): "CSV stores text only, and Spark's [00 FF] cannot be read back: store base64(column)",
    ("csv", "interval"): "CSV has no interval type: cast the column to a string",
    ("csv", "interval of other fields"): "CSV has no interval type: cast the column to a string",
    ("csv", "time"): "CSV has no time type: cast the column to a string",
    ("csv", "time of nanoseconds"): "CSV has no time type: cast the column to a string",
    ("csv", "list"): "CSV has no nested values: store to_json(column)",
    ("csv", "map"): "CSV has no nested values: store to_json(column)",
    ("csv", "struct"): "CSV has no nested values: store to_json(column)",
    ("csv", "variant"): "CSV has no nested values: store to_json(column)",
    ("csv", "user-defined"): "CSV has no nested values: store its parts",
}
"""Why a format does not support a kind, and what to do instead. Errors and a table in the docs show these texts."""

# Types that never reach a format, because PySpark cannot pass them to Python.
UNREACHABLE: Mapping[str, str] = {
    "interval year to month": "PySpark cannot pass year-month intervals to Python: store cast(column as string)",
    "interval": "Spark cannot store calendar intervals: store the parts in separate columns",
}


@dataclass(frozen=True, slots=True)
class _Unsupported:
    path: str
    type: pa.DataType
    needs: str


def check_names(schema: pa.Schema) -> None:
    """Check that the column names are unique, regardless of case.

    With ``spark.sql.caseSensitive`` on, Spark's own writers accept both ``a`` and ``A``. But every reader without that
    setting fails on such a table, so the schema is rejected here.

    Raises:
        InvalidRequestError: two names are equal, or a name contains NUL (Spark truncates such a name when it passes it
            to Python).
    """
    seen: dict[str, str] = {}
    for field in schema:
        _refuse_nul(field)
    for name in schema.names:
        folded = name.lower()
        if folded in seen:
            raise InvalidRequestError(
                "two column names are equal or differ only by case: rename one", first=seen[folded], second=name
            )
        seen[folded] = name


def _refuse_nul(field: pa.Field) -> None:
    if "\0" in field.name:
        spelled = field.name.replace("\0", r"\0")
        raise InvalidRequestError("a column name contains NUL: rename the column", column=spelled)
    for child in children(field.type):
        _refuse_nul(child)


def check_types(format_name: str, schema: pa.Schema) -> None:
    """Check that the format supports all columns; see `FileFormat.check_schema`.

    Raises:
        InvalidRequestError: the format does not support a column; the message names the formats that do.
    """
    holds = HOLDS[format_name]
    check_names(schema)
    for column in schema:
        for unsupported in (*_beyond(column, holds), *_unsupported(column.name, column.type, holds)):
            raise InvalidRequestError(
                f"{format_name} does not support this type{_advice(format_name, unsupported.needs)}",
                column=unsupported.path,
                type=str(unsupported.type),
            )
        _check_struct_names(column.name, column.type)


def check_columns(format_name: str, schema: pa.Schema) -> None:
    """Check that there is at least one column and that the format supports all columns.

    Raises:
        InvalidRequestError: there is no column, or the format does not support one (see `check_types`).
    """
    if not schema.names:
        raise InvalidRequestError("a file needs at least one column: select one")
    check_types(format_name, schema)


def check_map_keys(format_name: str, schema: pa.Schema) -> None:
    """Check that map keys are strings, as formats require that store a map as an object with named values.

    Raises:
        InvalidRequestError: a map has keys of another type, which Spark's reader would reject.
    """
    for column in schema:
        _check_map_keys(format_name, column.name, column.type)


def _check_map_keys(format_name: str, path: str, kind: pa.DataType) -> None:
    if pat.is_map(kind) and not is_string(kind.key_type):
        raise InvalidRequestError(f"{format_name} maps need string keys: cast the keys or use parquet", column=path)
    for child in children(kind):
        inner = path if pat.is_map(kind) else f"{path}.{child.name if pat.is_struct(kind) else 'element'}"
        _check_map_keys(format_name, inner, child.type)


def _advice(format_name: str, kind: str) -> str:
    """Return the reason why the format does not support the kind, and what to do."""
    reason, _, act = REASONS.get((format_name, kind), ": cast the column").rpartition(": ")
    others = sorted(name for name, kinds in HOLDS.items() if kind in kinds)
    return f"{reason and ', '}{reason}: {' or '.join([act, *(f'use {name}' for name in others)])}"


def _unsupported(path: str, kind: pa.DataType, holds: frozenset[str]) -> Iterator[_Unsupported]:
    if pat.is_dictionary(kind):
        kind = kind.value_type
    word = _kind_of(kind)
    if word is None:
        yield _Unsupported(path, kind, "unknown")
    elif word not in holds:
        yield _Unsupported(path, kind, word)
    for child in () if special_struct(kind) else children(kind):
        yield from _unsupported(f"{path}.{child.name}", child.type, holds)


def _beyond(column: pa.Field, holds: frozenset[str]) -> Iterator[_Unsupported]:
    for word in sorted(beyond_arrow(column) - holds):
        yield _Unsupported(column.name, column.type, word)


def _check_struct_names(path: str, kind: pa.DataType) -> None:
    if pat.is_struct(kind):
        if kind.num_fields == 0:
            raise InvalidRequestError("no format supports a struct without fields: add a field", column=path)
        names = [field.name.lower() for field in children(kind)]
        if len(set(names)) < len(names):
            raise InvalidRequestError("two field names of a struct differ only by case: rename one", column=path)
    for child in children(kind):
        _check_struct_names(f"{path}.{child.name}", child.type)
