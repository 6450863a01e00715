"""The fields of files of others, as a table keeps them: Spark's words for their types, null allowed everywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from holdfast.errors import InvalidRequestError
from holdfast.formats.spark_schema import spark_schema_json
from holdfast.table.widening import fold, nullable_fields

__all__ = ["Fields", "fields_of", "require_folded", "with_theirs"]

Fields = list[Mapping[str, Any]]


def fields_of(schema: pa.Schema) -> Fields:
    return list(nullable_fields([_field_of(one) for one in schema]))


def _field_of(column: pa.Field) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = json.loads(spark_schema_json(pa.schema([column])))["fields"][0]
    except InvalidRequestError as error:
        raise InvalidRequestError(
            "Spark has no type for a column of the files that are there: use another destination, or mode overwrite",
            column=column.name,
            type=str(column.type),
        ) from error
    return found


def require_folded(fields: Sequence[Mapping[str, Any]]) -> None:
    if len(fold(fields)) < len(fields):
        raise InvalidRequestError(
            "the files that are there have columns whose names differ in case only: use another destination, or mode "
            "overwrite",
            columns=[str(one["name"]) for one in fields][:20],
        )


def with_theirs(mine: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> Fields:
    """The rows' fields as the files of JSON spell them, then those of the files that the rows lack."""
    require_folded(theirs)
    found = fold(theirs)
    fields: Fields = []
    for one in mine:
        other = found.pop(str(one["name"]).lower(), None)
        if other is not None:
            one = {**one, "name": other["name"], "type": _typewith_theirs(one["type"], other["type"])}
        fields.append(one)
    return [*fields, *found.values()]


def _typewith_theirs(mine: Any, theirs: Any) -> Any:
    kinds = [one.get("type") if isinstance(one, dict) else "" for one in (mine, theirs)]
    if kinds == ["struct", "struct"]:
        return {**mine, "fields": with_theirs(mine["fields"], theirs["fields"])}
    if kinds == ["array", "array"]:
        return {**mine, "elementType": _typewith_theirs(mine["elementType"], theirs["elementType"])}
    return mine
