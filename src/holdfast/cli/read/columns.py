"""Find the columns that ``holdfast read`` shows: those of the user's schema, of the log, or of the files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from holdfast.cli.read.source import Source
from holdfast.commit import VisibleFile
from holdfast.formats import get_format
from holdfast.formats.spark.arrow_schema import arrow_schema_of
from holdfast.formats.spark.ddl import parse_ddl
from holdfast.formats.spark.schema_json import spark_schema_json
from holdfast.spark.file_format import FormatChoice
from holdfast.table import TableSchema, first_with_bytes, given_schema, read_schema
from holdfast.table.contract import TableRecord
from holdfast.table.inference import infer_type
from holdfast.table.inferred import opener
from holdfast.table.partition import parse_partition_path, raw_partition_values
from holdfast.table.requested import require_known

SPLIT_BYTES = 128 * 1024 * 1024


def find_columns(
    source: Source, files: Sequence[VisibleFile], choice: FormatChoice | None, kept: TableRecord | None, ddl: str | None
) -> tuple[TableSchema, pa.Schema]:
    """Return the schema with which to read the files, and the columns to show.

    Args:
        choice: how to read the files; None if there are no files and no format is known.
        kept: the table record in the log; None if there is none.
        ddl: the user's schema in Spark's DDL; None for the schema in the log or, if the log has none, that of the
            files.

    Raises:
        InvalidRequestError: the schema does not match the table, or two columns have the same name.
    """
    if ddl is not None:
        table, shown = _given(parse_ddl(ddl), files, choice, kept)
    else:
        table = _found(source, files, choice, kept)
        shown = table.schema
    return table, shown


def _found(
    source: Source, files: Sequence[VisibleFile], choice: FormatChoice | None, kept: TableRecord | None
) -> TableSchema:
    if kept is not None:
        return given_schema(_with_directories(arrow_schema_of(kept.schema_json), files, {}), files)
    if not files or choice is None:
        return TableSchema(pa.schema([]))
    first = first_with_bytes(files)
    return read_schema(
        files,
        opener(source.ctx),
        choice.settings(first.path if first else "", SPLIT_BYTES),
        settings_of=choice.settings_of(SPLIT_BYTES),
        each=source.ctx.runner.map,
    )


def _given(
    wanted: pa.Schema, files: Sequence[VisibleFile], choice: FormatChoice | None, kept: TableRecord | None
) -> tuple[TableSchema, pa.Schema]:
    """Check the user's schema against the table: a mismatch would put values into wrong columns, or lose them."""
    if kept is None:
        table = given_schema(_with_directories(wanted, files, {}), files)
        return table, table.schema
    folded = {str(field["name"]).lower(): field for field in kept.fields}
    asked = {name.lower(): _arrow_field(folded[name.lower()]) for name in wanted.names if name.lower() in folded}
    others = [field for name, field in folded.items() if name not in asked]
    # Compare only types that Arrow can express, because the user's schema cannot name others.
    known = _spark_fields(pa.schema([field.remove_metadata() for field in asked.values()]))
    require_known(_spark_fields(wanted), replace(kept, fields=[*known, *others]))
    described = pa.schema([_described(field, asked[field.name.lower()]) for field in wanted])
    shown = _with_directories(described, files, folded)
    whole = shown
    if choice is not None and get_format(choice.name).maybe_by_position:
        given = {field.name.lower(): field for field in shown}
        whole = pa.schema([given.get(field.name.lower(), field) for field in arrow_schema_of(kept.schema_json)])
    return given_schema(whole, files), shown


def _described(field: pa.Field, kept: pa.Field) -> pa.Field:
    """Return the field with its metadata from the log, such as a collation."""
    return kept.with_name(field.name) if kept.type.equals(field.type) else field


def _arrow_field(kept: Mapping[str, Any]) -> pa.Field:
    return arrow_schema_of(json.dumps({"type": "struct", "fields": [kept]})).field(0)


def _spark_fields(schema: pa.Schema) -> list[Mapping[str, Any]]:
    fields: list[Mapping[str, Any]] = json.loads(spark_schema_json(schema))["fields"]
    return fields


def _with_directories(
    schema: pa.Schema, files: Sequence[VisibleFile], kept: Mapping[str, Mapping[str, Any]]
) -> pa.Schema:
    """Append the partition columns that only directory names contain, as Spark does for a given schema.

    Args:
        kept: the table's columns by lower-case name; their types take precedence over types inferred from the names.
    """
    known = {name.lower() for name in schema.names}
    partition_by = list(parse_partition_path(files[0].path)) if files else []
    for name in partition_by:
        if name.lower() in kept and name.lower() not in known:
            schema = schema.append(_arrow_field(kept[name.lower()]))
        elif name.lower() not in known:
            texts = [raw_partition_values(file.path, partition_by)[name] for file in files]
            schema = schema.append(pa.field(name, infer_type(texts)))
    return schema
