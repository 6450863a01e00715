"""Which Arrow types a format can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError

__all__ = ["HOLDS", "check_types", "children", "is_string"]


def is_string(kind: pa.DataType) -> bool:
    """Any of Arrow's string types."""
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_fixed_size_binary(kind) or pat.is_binary_view(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind))


def children(kind: pa.DataType) -> list[pa.Field]:
    """The fields right below a nested type."""
    return [kind.field(i) for i in range(kind.num_fields)] if pat.is_nested(kind) else []


# --- kinds: words for groups of types ---------------------------------------------------------------------------------
_KINDS: Mapping[str, Callable[[pa.DataType], bool]] = {
    "null": pat.is_null,
    "boolean": pat.is_boolean,
    "integer": pat.is_signed_integer,
    "float": lambda kind: pat.is_float32(kind) or pat.is_float64(kind),
    "decimal": lambda kind: pat.is_decimal128(kind),
    "string": is_string,
    "binary": _is_binary,
    "date": pat.is_date32,
    "timestamp": lambda kind: pat.is_timestamp(kind) and kind.tz is not None,
    "timestamp_ntz": lambda kind: pat.is_timestamp(kind) and kind.tz is None,
    "time": pat.is_time,
    "duration": pat.is_duration,
    "list": _is_list,
    "map": pat.is_map,
    "struct": pat.is_struct,
}
_BASE = frozenset({"boolean", "integer", "float", "decimal", "string", "date", "timestamp", "timestamp_ntz"})
_NESTED = frozenset({"list", "map", "struct"})


def _kind_of(kind: pa.DataType) -> str | None:
    return next((name for name, matches in _KINDS.items() if matches(kind)), None)


# --- what each format holds -------------------------------------------------------------------------------------------
HOLDS: Mapping[str, frozenset[str]] = {
    "parquet": _BASE | _NESTED | {"null", "binary", "duration", "time"},
    "orc": _BASE | _NESTED | {"binary", "duration", "time"},
    "avro": _BASE | _NESTED | {"null", "binary"},
    "arrow": frozenset(_KINDS),
    "json": _BASE | _NESTED | {"null", "binary"},
    "csv": _BASE | {"null"},
    "text": frozenset({"string"}),
}


@dataclass(frozen=True, slots=True)
class _Unheld:
    path: str
    type: pa.DataType
    needs: frozenset[str]


def check_types(format_name: str, schema: pa.Schema) -> None:
    """See `FileFormat.check_schema`.

    Raises:
        InvalidRequestError: the format cannot hold a column; the message names the formats that can.
    """
    holds = HOLDS[format_name]
    seen: dict[str, str] = {}
    for column in schema:
        folded = column.name.lower()
        if folded in seen:
            raise InvalidRequestError(
                "two columns are the same or differ only by case: rename one", first=seen[folded], second=column.name
            )
        seen[folded] = column.name
        for unheld in _unheld(column.name, column.type, holds):
            formats = sorted(name for name, kinds in HOLDS.items() if unheld.needs <= kinds)
            advice = f"use {' or '.join(formats)}, or cast the column" if formats else "cast the column"
            raise InvalidRequestError(
                f"{format_name} cannot hold this type: {advice}", column=unheld.path, type=str(unheld.type)
            )
        _check_struct_names(column.name, column.type)


def _unheld(path: str, kind: pa.DataType, holds: frozenset[str]) -> Iterator[_Unheld]:
    if pat.is_dictionary(kind):
        kind = kind.value_type
    word = _kind_of(kind)
    if word is None:
        yield _Unheld(path, kind, frozenset({"unknown"}))
    elif word not in holds:
        yield _Unheld(path, kind, frozenset({word}))
    for child in children(kind):
        yield from _unheld(f"{path}.{child.name}", child.type, holds)


def _check_struct_names(path: str, kind: pa.DataType) -> None:
    if pat.is_struct(kind):
        if kind.num_fields == 0:
            raise InvalidRequestError("no format can hold a struct without fields: add one", column=path)
        names = [field.name.lower() for field in children(kind)]
        if len(set(names)) < len(names):
            raise InvalidRequestError("two fields of a struct differ only by case: rename one", column=path)
    for child in children(kind):
        _check_struct_names(f"{path}.{child.name}", child.type)
