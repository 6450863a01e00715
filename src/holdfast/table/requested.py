"""Columns that a reader asks for, held against the table as it is: an overwrite may have changed it since.

A reader that was told the columns earlier, or by its user, finds values by name and type. If those are not the table's
any more it would show one column's values as another's, or nulls for a column that is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.table.contract import TableRecord
from holdfast.table.widening import SparkType, fold, read_exactly, type_text
from holdfast.wording import nearest

__all__ = ["require_known"]

_TEXT_FORMATS = frozenset({"csv", "json", "text"})
_HINT = "read the table without a schema, or make the DataFrame anew if the table was replaced since"


def require_known(wanted: Sequence[Mapping[str, Any]], table: TableRecord) -> None:
    """See that every wanted column is one of the table's, of its type or of one that holds it exactly.

    Raises:
        InvalidRequestError: one is not; says what is there.
    """
    _require_fields("", wanted, table.fields, table.file_format)


def _require_fields(
    path: str, wanted: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]], file_format: str
) -> None:
    there = fold(known)
    for field in wanted:
        name = f"{path}{field['name']}"
        found = there.get(str(field["name"]).lower())
        if found is None:
            near = nearest(str(field["name"]), [str(one["name"]) for one in known])
            raise InvalidRequestError(f"the table has no such column: {near}; {_HINT}", column=name)
        _require_type(name, field["type"], found["type"], file_format)


def _require_type(path: str, wanted: SparkType, known: SparkType, file_format: str) -> None:
    wanted, known = _stored(wanted), _stored(known)
    if isinstance(wanted, dict) and isinstance(known, dict) and wanted.get("type") == known.get("type"):
        if wanted["type"] == "struct":
            _require_fields(f"{path}.", wanted["fields"], known["fields"], file_format)
            return
        inner = ("elementType",) if wanted["type"] == "array" else ("keyType", "valueType")
        for name in inner:
            _require_type(f"{path}.{name.removesuffix('Type')}", wanted[name], known[name], file_format)
        return
    as_text = wanted == "string" and file_format in _TEXT_FORMATS
    if not (as_text or wanted == known or read_exactly(file_format, wanted, known)):
        raise InvalidRequestError(
            f"the table's column is of another type: {_HINT}",
            column=path,
            wanted=type_text(wanted),
            there=type_text(known),
        )


def _stored(kind: SparkType) -> SparkType:
    """The type of the values: that below a user-defined type, and a text for texts of any length."""
    if isinstance(kind, dict) and kind.get("type") == "udt":
        return _stored(kind["sqlType"])
    return "string" if isinstance(kind, str) and kind.startswith(("char(", "varchar(")) else kind
