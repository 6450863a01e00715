"""Compare the columns that a reader requests with the current table, which an overwrite may have changed.

A reader selects values by the names and types of columns that it got earlier or that its user gave. If the table no
longer has these columns, the reader would show the values of one column as those of another, or nulls for a removed
column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.formats import FileFormat, get_format
from holdfast.table.contract import TableRecord
from holdfast.table.widening import SparkType, fold, read_exactly, type_text
from holdfast.wording import nearest

_HINT = "read the table without a schema, or build the DataFrame again if the table was replaced since"


def require_known(wanted: Sequence[Mapping[str, Any]], table: TableRecord) -> None:
    """Check that the table has every requested column, with the requested type or a narrower type that fits exactly.

    Raises:
        InvalidRequestError: the table lacks a column; the error says what the table has.
    """
    _require_fields("", wanted, table.fields, get_format(table.file_format))


def _require_fields(
    path: str, wanted: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]], file_format: FileFormat[Any]
) -> None:
    existing = fold(known)
    for field in wanted:
        name = f"{path}{field['name']}"
        found = existing.get(str(field["name"]).lower())
        if found is None:
            near = nearest(str(field["name"]), [str(one["name"]) for one in known])
            raise InvalidRequestError(f"the table has no such column: {near}; {_HINT}", column=name)
        _require_type(name, field["type"], found["type"], file_format)


def _require_type(path: str, wanted: SparkType, known: SparkType, file_format: FileFormat[Any]) -> None:
    wanted, known = _stored(wanted), _stored(known)
    if isinstance(wanted, dict) and isinstance(known, dict) and wanted.get("type") == known.get("type"):
        if wanted["type"] == "struct":
            _require_fields(f"{path}.", wanted["fields"], known["fields"], file_format)
            return
        inner = ("elementType",) if wanted["type"] == "array" else ("keyType", "valueType")
        for name in inner:
            _require_type(f"{path}.{name.removesuffix('Type')}", wanted[name], known[name], file_format)
        return
    as_text = wanted == "string" and file_format.is_text
    if not (as_text or wanted == known or read_exactly(file_format, wanted, known)):
        raise InvalidRequestError(
            f"the table's column has another type: {_HINT}",
            column=path,
            wanted=type_text(wanted),
            table=type_text(known),
        )


def _stored(kind: SparkType) -> SparkType:
    """Return the type as which values are stored: a user-defined type's SQL type, and string for char and varchar."""
    if isinstance(kind, dict) and kind.get("type") == "udt":
        return _stored(kind["sqlType"])
    return "string" if isinstance(kind, str) and kind.startswith(("char(", "varchar(")) else kind
