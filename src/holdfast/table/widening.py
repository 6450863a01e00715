"""Define how a column's type may change; types are spelled as in the JSON of a Spark schema.

``holds(wide, narrow)`` is true if every value of `narrow` can be represented exactly in `wide`. Integers widen to
larger integers, float to double, integers up to 32 bits to double, decimals to decimals with no fewer digits on either
side of the point, and a column of nulls to any type (`can_read_without_loss` covers files with such a column). Source:
the widening that Spark 4's Parquet reader supports (SPARK-40876), as far as it changes no value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.formats import FileFormat

_INTEGERS = ("byte", "short", "integer", "long")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")

SparkType = Any
"""A type in the JSON of a Spark schema: a string, or a mapping for arrays, maps and structs."""


class MismatchError(Exception):
    """Raised if two types do not fit together; never leaves the table layer.

    Attributes:
        path: the path of the column or field.
        known, given: the types as strings, for messages.
        needs_merge: whether they would fit with ``mergeSchema``.
    """

    def __init__(self, path: str, known: str, given: str, *, needs_merge: bool = False) -> None:
        super().__init__(path)
        self.path = path
        self.known = known
        self.given = given
        self.needs_merge = needs_merge


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRules:
    """The circumstances that decide how an append may change the types of a table.

    Attributes:
        file_format: the files' format.
        merge: whether the table may change.
        written: whether the rows are already in files, rather than cast before they are written.
    """

    file_format: FileFormat[Any]
    merge: bool
    written: bool


def map_by_folded_name(fields: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Map the lower-case names of schema fields to the fields, since Spark ignores the case of names."""
    return {str(field["name"]).lower(): field for field in fields}


def can_represent_without_loss(wide: SparkType, narrow: SparkType) -> bool:
    """Check whether every value of the atomic type `narrow` can be represented exactly in `wide`."""
    if wide == narrow or narrow == "void":
        return True
    if isinstance(narrow, str) and narrow in _INTEGERS:
        if wide in _INTEGERS:
            return _INTEGERS.index(wide) >= _INTEGERS.index(narrow)
        return bool(wide == "double" and narrow != "long")
    if narrow == "float":
        return bool(wide == "double")
    if isinstance(wide, str) and isinstance(narrow, str):
        into, of = _DECIMAL.fullmatch(wide), _DECIMAL.fullmatch(narrow)
        if into and of:
            digits, scale = int(into[1]), int(into[2])
            return scale >= int(of[2]) and digits - scale >= int(of[1]) - int(of[2])
    return False


def can_read_without_loss(file_format: FileFormat[Any], wide: SparkType, narrow: SparkType) -> bool:
    """Check whether values that files of this format store with the atomic type `narrow` can be read exactly as `wide`.

    Text does not distinguish float from double: the ``0.1`` of a float column would become a double with a different
    value.
    """
    if narrow == "void" and wide != "void":
        return file_format.void_becomes_any
    return can_represent_without_loss(wide, narrow) and not (
        file_format.is_text and narrow == "float" and wide != "float"
    )


def merge_types(path: str, known: SparkType, given: SparkType, rules: AppendRules) -> SparkType:
    """Return the type that a column of type `known` has after values of type `given` are added to it.

    Args:
        path: the path of the column, for the error.

    Raises:
        MismatchError: the types do not fit.
    """
    kinds = _kind_of_type(known), _kind_of_type(given)
    if kinds[0] != kinds[1]:
        if given == "void" and (not rules.written or can_read_without_loss(rules.file_format, known, given)):
            return known
        widens = known == "void" and can_read_without_loss(rules.file_format, given, known)
        if widens and rules.merge:
            return given
        raise MismatchError(path, type_text(known), type_text(given), needs_merge=widens)
    if kinds[0] == "struct":
        return {"type": "struct", "fields": merge_fields(known["fields"], given["fields"], rules, path)}
    if kinds[0] == "array":
        element = merge_types(f"{path}.element", known["elementType"], given["elementType"], rules)
        return {"type": "array", "elementType": element, "containsNull": True}
    if kinds[0] == "map":
        key = merge_types(f"{path}.key", known["keyType"], given["keyType"], rules)
        value = merge_types(f"{path}.value", known["valueType"], given["valueType"], rules)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if known == given:
        return known
    fits = (
        can_read_without_loss(rules.file_format, known, given)
        if rules.written
        else can_represent_without_loss(known, given)
    )
    if fits:
        return known
    widens = can_read_without_loss(rules.file_format, given, known)
    if widens and rules.merge:
        return given
    raise MismatchError(path, type_text(known), type_text(given), needs_merge=widens)


def merge_fields(
    known: Sequence[Mapping[str, Any]], given: Sequence[Mapping[str, Any]], rules: AppendRules, path: str = ""
) -> list[dict[str, Any]]:
    """Return the fields `known` of a table or struct, changed so that values with the fields `given` can be added.

    Raises:
        MismatchError: a type does not fit, or a field is new and the table may not change.
    """
    found = map_by_folded_name(given)
    fields = []
    for field in known:
        other = found.pop(str(field["name"]).lower(), None)
        where = f"{path}.{field['name']}" if path else str(field["name"])
        if other is None:
            fields.append(dict(field))
            continue
        if _read_collations(field) != _read_collations(other):
            raise MismatchError(where, _format_collated_type(field), _format_collated_type(other))
        fields.append({**field, "type": merge_types(where, field["type"], other["type"], rules)})
    for other in found.values():
        where = f"{path}.{other['name']}" if path else str(other["name"])
        if not rules.merge:
            raise MismatchError(where, "", type_text(other["type"]), needs_merge=True)
        fields.append(dict(other))
    return fields


def make_fields_nullable(fields: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return schema fields made nullable at every level, because later rows may contain nulls."""
    return [{**field, "nullable": True, "type": _make_nullable(field["type"])} for field in fields]


def _make_nullable(kind: SparkType) -> SparkType:
    found = _kind_of_type(kind)
    if found == "struct":
        return {**kind, "fields": make_fields_nullable(kind["fields"])}
    if found == "array":
        return {**kind, "elementType": _make_nullable(kind["elementType"]), "containsNull": True}
    if found == "map":
        inner = {name: _make_nullable(kind[name]) for name in ("keyType", "valueType")}
        return {**kind, **inner, "valueContainsNull": True}
    return kind


def _kind_of_type(kind: SparkType) -> str:
    """Return ``struct``, ``array``, ``map`` or ``atomic``; user-defined types are atomic and compared as a whole."""
    found = kind.get("type") if isinstance(kind, dict) else None
    return str(found) if found in ("struct", "array", "map") else "atomic"


def _read_collations(field: Mapping[str, Any]) -> Any:
    return (field.get("metadata") or {}).get("__COLLATIONS")


def _format_collated_type(field: Mapping[str, Any]) -> str:
    collations = _read_collations(field)
    text = type_text(field["type"])
    return f"{text} collate {', '.join(sorted(map(str, collations.values())))}" if collations else text


def type_text(kind: SparkType) -> str:
    """Format a type as in Spark's DDL, for messages."""
    if not isinstance(kind, dict):
        return {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}.get(kind, str(kind))
    if kind.get("type") == "struct":
        return "struct<" + ",".join(f"{f['name']}:{type_text(f['type'])}" for f in kind["fields"]) + ">"
    if kind.get("type") == "array":
        return f"array<{type_text(kind['elementType'])}>"
    if kind.get("type") == "map":
        return f"map<{type_text(kind['keyType'])},{type_text(kind['valueType'])}>"
    return str(kind.get("type"))
