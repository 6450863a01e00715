"""Describe the columns of existing files as a table records them: with Spark's types, and all nullable."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError
from holdfast.formats.columns.conversion import map_children
from holdfast.formats.columns.types import children, is_binary, is_list, is_string
from holdfast.formats.spark.schema_json import arrow_schema_of, spark_schema_json
from holdfast.table.widening import nullable_fields
from holdfast.wording import OR_OVERWRITE

Fields = list[Mapping[str, Any]]


def fields_of(schema: Iterable[pa.Field]) -> Fields:
    """Convert columns to the fields of a table.

    Raises:
        InvalidRequestError: Spark has no type for a column.
    """
    return list(nullable_fields([_field_of(column) for column in schema]))


def _field_of(column: pa.Field) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = json.loads(spark_schema_json(pa.schema([column])))["fields"][0]
    except InvalidRequestError as error:
        raise InvalidRequestError(
            f"Spark has no type for a column of the existing files: use another destination, {OR_OVERWRITE}",
            column=column.name,
            type=str(column.type),
        ) from error
    return found


def is_plain(schema: pa.Schema, fields: Fields) -> bool:
    """Check whether a file stores its columns as Holdfast would."""
    ours = arrow_schema_of(json.dumps({"type": "struct", "fields": fields}))
    return all(_stored(one).type == _stored(other).type for one, other in zip(schema, ours, strict=True))


def _stored(field: pa.Field) -> pa.Field:
    """Return the field with the type in which files store its values; it may differ from Arrow's type in memory."""
    kind = field.type.value_type if pat.is_dictionary(field.type) else field.type
    if is_string(kind):
        kind = pa.string()
    elif is_binary(kind):
        kind = pa.binary()
    elif is_list(kind):
        kind = pa.list_(_stored(kind.value_field.with_name("element")))
    else:
        kind = map_children(kind, _stored)
    return pa.field(field.name, kind, True)


# --- names that differ only in case -----------------------------------------------------------------------------------
def require_folded(fields: Iterable[pa.Field]) -> None:
    """Check that no two names, including nested ones, differ only in case, because Spark does not distinguish them.

    Raises:
        InvalidRequestError: two names differ only in case.
    """
    columns = list(fields)
    require_names([column.name for column in columns])
    for column in columns:
        _require_folded_below(column.type)


def _require_folded_below(kind: pa.DataType) -> None:
    if pat.is_dictionary(kind):
        kind = kind.value_type
    if pat.is_struct(kind):
        require_folded(children(kind))
    else:
        for child in children(kind):
            _require_folded_below(child.type)


def require_names(names: Sequence[str]) -> None:
    """Check that no two of the names differ only in case; see `require_folded`."""
    if len({name.lower() for name in names}) < len(names):
        raise InvalidRequestError(
            f"the existing files have columns whose names differ only in case: use another destination, {OR_OVERWRITE}",
            columns=list(names[:20]),
        )
