"""Attach details of Spark's schema to Arrow fields: collations, interval fields, user-defined types, metadata.

Spark stores these details in the JSON of its schema; Arrow types cannot express them. The metadata of the Arrow field
carries the JSON of the column's ``StructField`` until a file is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

_KEY = b"holdfast.spark.field"
_FINE_TIME = re.compile(r"time\([7-9]\)")


def describe(field: pa.Field, spark: Mapping[str, Any]) -> pa.Field:
    """Return the field with Spark's description attached: the JSON of a ``StructField`` as Python values."""
    return field.with_metadata({_KEY: json.dumps(spark, ensure_ascii=False)})


def spark_field(field: pa.Field) -> Mapping[str, Any] | None:
    """Return the description that `describe` attached to the field, or None."""
    text = (field.metadata or {}).get(_KEY)
    if text is None:
        return None
    found: Mapping[str, Any] = json.loads(text)
    return found


def with_spark_fields_of(schema: pa.Schema, like: pa.Schema) -> pa.Schema:
    """Return the schema with the field metadata of another schema that has the same columns."""
    fields = (field.with_metadata(other.metadata) for field, other in zip(schema, like, strict=True))
    return pa.schema(fields)


def beyond_arrow(field: pa.Field) -> frozenset[str]:
    """Return the kinds of types in a column that Arrow cannot express, such as ``collated string``.

    The kinds are those of `holdfast.formats.columns.types`; Spark's JSON reveals them.
    """
    spark = spark_field(field)
    return frozenset() if spark is None else frozenset(_words(spark))


def _words(field: Mapping[str, Any]) -> Iterator[str]:
    if (field.get("metadata") or {}).get("__COLLATIONS"):
        yield "collated string"
    yield from _type_words(field["type"])


def _type_words(kind: Any) -> Iterator[str]:
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
            yield from _type_words(kind[part])
    for field in kind.get("fields", ()):
        yield from _words(field)
