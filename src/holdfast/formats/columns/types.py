"""Name the kinds of types that formats support, and attach what Spark knows of a column beyond its Arrow type.

A *kind* is a name for a group of types that formats treat alike, such as ``integer``. Collations, interval fields,
user-defined types and metadata are in the JSON of Spark's schema only; the metadata of the Arrow field carries the JSON
of the column's ``StructField`` until a file is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.formats import FORMATS, FileFormat
from holdfast.formats.columns.arrow_types import child_fields, contains_type, is_binary, is_list, is_string

_KEY = b"holdfast.spark.field"
_FINE_TIME = re.compile(r"time\([7-9]\)")


def attach_spark_json(field: pa.Field, spark: Mapping[str, Any]) -> pa.Field:
    """Return the Arrow field with the JSON of Spark's ``StructField`` in its metadata; see `spark_json_of`."""
    return field.with_metadata({_KEY: json.dumps(spark, ensure_ascii=False)})


def spark_json_of(field: pa.Field) -> Mapping[str, Any] | None:
    """Return the parsed JSON of Spark's ``StructField`` from the field's metadata; None if it has none."""
    text = (field.metadata or {}).get(_KEY)
    if text is None:
        return None
    found: Mapping[str, Any] = json.loads(text)
    return found


def with_field_metadata_of(schema: pa.Schema, like: pa.Schema) -> pa.Schema:
    """Return `schema` with the field metadata of `like`, a schema with the same columns."""
    fields = (field.with_metadata(other.metadata) for field, other in zip(schema, like, strict=True))
    return pa.schema(fields)


def kinds_beyond_arrow(field: pa.Field) -> frozenset[str]:
    """Return the kinds of types in a column that Arrow cannot express, such as ``collated string``.

    The kinds are those of `holdfast.formats.columns.types`; Spark's JSON reveals them.
    """
    spark = spark_json_of(field)
    return frozenset() if spark is None else frozenset(_field_kinds_beyond_arrow(spark))


def _field_kinds_beyond_arrow(field: Mapping[str, Any]) -> Iterator[str]:
    if (field.get("metadata") or {}).get("__COLLATIONS"):
        yield "collated string"
    yield from _type_kinds_beyond_arrow(field["type"])


def _type_kinds_beyond_arrow(kind: Any) -> Iterator[str]:
    if isinstance(kind, str):
        if _FINE_TIME.fullmatch(kind):
            yield "time of nanoseconds"
        if kind.startswith("interval") and kind != "interval day to second":
            yield "interval of other fields"
        return
    if kind["type"] == "udt":
        yield "user-defined"
    for part in ("elementType", "keyType", "valueType"):
        if part in kind:
            yield from _type_kinds_beyond_arrow(kind[part])
    for field in kind.get("fields", ()):
        yield from _field_kinds_beyond_arrow(field)


def find_spark_type_of_struct(kind: pa.DataType) -> str | None:
    """Return ``variant``, ``geometry`` or ``geography`` if PySpark marks the struct as one of these, else None."""
    for field in child_fields(kind) if pat.is_struct(kind) else ():
        for word in ("variant", "geometry", "geography"):
            if (field.metadata or {}).get(word.encode()) == b"true":
                return word
    return None


# --- kinds: names for groups of types ---------------------------------------------------------------------------------
KINDS: Mapping[str, Callable[[pa.DataType], bool]] = {
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
    "variant": lambda kind: find_spark_type_of_struct(kind) == "variant",
    "geometry": lambda kind: find_spark_type_of_struct(kind) == "geometry",
    "geography": lambda kind: find_spark_type_of_struct(kind) == "geography",
    "struct": pat.is_struct,
}
BASE = frozenset({"boolean", "integer", "float", "decimal", "string", "date", "timestamp", "timestamp_ntz"})
NESTED = frozenset({"list", "map", "struct"})
BEYOND = frozenset({"interval of other fields", "collated string", "user-defined"})


def _kind_of_type(kind: pa.DataType) -> str | None:
    return next((name for name, matches in KINDS.items() if matches(kind)), None)


def kind_of_column(field: pa.Field) -> str | None:
    """Return the kind of a column's type, such as ``integer``; None for a type that Spark does not have."""
    beyond = sorted(kinds_beyond_arrow(field))
    if beyond:
        return beyond[0]
    return _kind_of_type(field.type.value_type if pat.is_dictionary(field.type) else field.type)


# --- which kinds a format supports, and why not -----------------------------------------------------------------------
SPATIAL = "spatial types are not supported yet: store st_asbinary(column) and the SRID"
NANOSECONDS = "times are stored in microseconds: cast the column to time(6)"
INTERVALS = ("interval", "interval of other fields")
TIMES = ("time", "time of nanoseconds")


# Types that never reach a format, because PySpark cannot pass them to Python.
UNREACHABLE: Mapping[str, str] = {
    "interval year to month": "PySpark cannot pass year-month intervals to Python: store cast(column as string)",
    "interval": "Spark cannot store calendar intervals: store the parts in separate columns",
}


def check_unique_names(schema: pa.Schema) -> None:
    """Check that the names of columns, and those of the fields of each struct, are unique, regardless of case.

    With ``spark.sql.caseSensitive`` on, Spark's own writers accept both ``a`` and ``A``. But every reader without that
    setting fails on such a table, so the schema is rejected here.

    Raises:
        InvalidRequestError: two names are equal, or a name contains NUL (Spark truncates such a name when it passes it
            to Python).
    """
    _check_field_names("", list(schema))


def _check_field_names(path: str, fields: Sequence[pa.Field]) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        name = path + field.name
        if "\0" in name:
            raise InvalidRequestError("a column name contains NUL: rename the column", column=name.replace("\0", r"\0"))
        if name.lower() in seen:
            raise InvalidRequestError(
                "two names are equal or differ only by case: rename one", first=seen[name.lower()], second=name
            )
        seen[name.lower()] = name
        _check_field_names(f"{name}.", child_fields(field.type))


def check_types_supported(file_format: FileFormat[Any], schema: pa.Schema) -> None:
    """Check that the format supports all columns; see `FileFormat.check_schema`.

    Raises:
        InvalidRequestError: the format does not support a column; the message names the formats that do.
    """
    check_unique_names(schema)
    for column in schema:
        for path, kind, needs in (
            *_iter_unsupported_beyond_arrow(column, file_format.holds),
            *_iter_unsupported_types(column.name, column.type, file_format.holds),
        ):
            raise InvalidRequestError(
                f"{file_format.name} does not support this type{_advise_unsupported(file_format, needs)}",
                column=path,
                type=str(kind),
            )
        if contains_type(column.type, lambda kind: bool(pat.is_struct(kind)) and kind.num_fields == 0):
            raise InvalidRequestError("no format supports a struct without fields: add a field", column=column.name)


def check_columns_supported(file_format: FileFormat[Any], schema: pa.Schema) -> None:
    """Check that there is at least one column and that the format supports all columns.

    Raises:
        InvalidRequestError: there is no column, or the format does not support one (see `check_types_supported`).
    """
    if not schema.names:
        raise InvalidRequestError("a file needs at least one column: select one")
    check_types_supported(file_format, schema)


def check_map_keys(format_name: str, schema: pa.Schema) -> None:
    """Check that map keys are strings, as formats require that store a map as an object with named values.

    Raises:
        InvalidRequestError: a map has keys of another type, which Spark's reader would reject.
    """
    for column in schema:
        if contains_type(column.type, lambda kind: bool(pat.is_map(kind)) and not is_string(kind.key_type)):
            raise InvalidRequestError(
                f"{format_name} maps need string keys: cast the keys or use parquet", column=column.name
            )


def _advise_unsupported(file_format: FileFormat[Any], kind: str) -> str:
    """Return the reason why the format does not support the kind, and what to do."""
    usual = SPATIAL if kind in ("geometry", "geography") else ": cast the column"
    reason, _, act = file_format.reasons.get(kind, usual).rpartition(": ")
    others = sorted(one.name for one in FORMATS.values() if kind in one.holds)
    return f"{reason and ', '}{reason}: {' or '.join([act, *(f'use {name}' for name in others)])}"


def _iter_unsupported_types(
    path: str, kind: pa.DataType, supported: frozenset[str]
) -> Iterator[tuple[str, pa.DataType, str]]:
    if pat.is_dictionary(kind):
        kind = kind.value_type
    word = _kind_of_type(kind)
    if word is None:
        yield path, kind, "unknown"
    elif word not in supported:
        yield path, kind, word
    for child in () if find_spark_type_of_struct(kind) else child_fields(kind):
        yield from _iter_unsupported_types(f"{path}.{child.name}", child.type, supported)


def _iter_unsupported_beyond_arrow(
    column: pa.Field, supported: frozenset[str]
) -> Iterator[tuple[str, pa.DataType, str]]:
    for word in sorted(kinds_beyond_arrow(column) - supported):
        yield column.name, column.type, word


# PySpark recognizes the type by the metadata of its second field.
VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
_SHREDDED = "typed_value"


def refuse_shredded_variant(needed: pa.Schema, physical: pa.Schema) -> None:
    """Check that the file does not store a requested VARIANT column in shredded form.

    Args:
        needed: the requested columns.
        physical: the columns of the file.

    Raises:
        UnsupportedError: a requested column is shredded.
    """
    there = {field.name.lower(): field for field in physical}
    for field in needed:
        found = there.get(field.name.lower())
        if found is not None and _is_shredded(field.type, found.type):
            raise UnsupportedError(
                "a file stores a VARIANT column in shredded form, which only Spark can read: read it with spark.read, "
                "or write it with spark.sql.variant.writeShredding.enabled=false",
                column=field.name,
            )


def _is_shredded(wanted: pa.DataType, found: pa.DataType) -> bool:
    if find_spark_type_of_struct(wanted) == "variant":
        return pat.is_struct(found) and any(field.name == _SHREDDED for field in child_fields(found))
    if not pat.is_nested(wanted) or not pat.is_nested(found):
        return False
    if pat.is_struct(wanted):
        there = {field.name.lower(): field.type for field in child_fields(found)}
        return any(
            _is_shredded(field.type, there[field.name.lower()])
            for field in child_fields(wanted)
            if field.name.lower() in there
        )
    return any(
        _is_shredded(one.type, other.type)
        for one, other in zip(child_fields(wanted), child_fields(found), strict=False)
    )
