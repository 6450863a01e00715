"""Find what ``holdfast read`` shows: the files that a url names, and their columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from holdfast.cli.inspection import require_anything
from holdfast.cli.patterns import compile_word, is_pattern
from holdfast.commit import CommitContext, Snapshot, VisibleFile, read_snapshot
from holdfast.commit.context import Place
from holdfast.commit.layout import HOME
from holdfast.commit.nesting import refuse_part
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.formats import get_format
from holdfast.formats.spark.ddl import parse_ddl
from holdfast.formats.spark.schema_json import arrow_schema_of, spark_schema_json
from holdfast.spark.file_format import FormatChoice
from holdfast.stores.base import iter_objects
from holdfast.table.contract import TableRecord, require_known
from holdfast.table.files import opener
from holdfast.table.foreign import refuse_foreign_read
from holdfast.table.partition import parse_partition_path, raw_partition_values
from holdfast.table.partition_values import infer_type
from holdfast.table.reader import TableSchema, first_with_bytes, given_schema, read_schema

SPLIT_BYTES = 128 * 1024 * 1024


# --- files ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Source:
    """Files to read as one table.

    Attributes:
        ctx: the context of the directory to which the paths of the files, with their partition directories, are
            relative.
        snapshot: the files, and the table record of the log.
    """

    ctx: CommitContext
    snapshot: Snapshot


def find_source(ctx: CommitContext) -> Source:
    """Find the files at the url of `ctx`.

    The url is taken literally if something of that name exists; if not, as a pattern.

    Guarantee: the result contains only files of committed jobs, according to the log of the directory at which the
    pattern starts.

    Raises:
        NotFoundError: nothing exists at the url, or nothing matches the pattern.
        InvalidRequestError: the url is a directory inside a destination, or the pattern is invalid or reaches into
            other destinations.
    """
    refuse_foreign_read(ctx)
    snapshot = read_snapshot(ctx)
    if snapshot.files and not snapshot.head:
        refuse_part(ctx)
    if snapshot.files or snapshot.head:
        return Source(ctx, snapshot)
    own = ctx.prefix.rstrip("/")
    if own:
        try:
            info = ctx.store.head(own)
        except NotFoundError:
            pass
        else:
            parent, _, name = own.rpartition("/")
            return Source(_at(ctx, parent), replace(snapshot, files=(VisibleFile(name, info.size_bytes, info.etag),)))
    if is_pattern(own):
        return _match(ctx, own)
    require_anything(ctx)
    return Source(ctx, snapshot)


def _at(ctx: CommitContext, prefix: str) -> CommitContext:
    """Return a context for a parent directory in the same store."""
    root = ctx.url.removesuffix(ctx.prefix.rstrip("/")).rstrip("/")
    if ctx.url.startswith("file://"):
        root = "file://"
    return ctx.at(Place(store=ctx.store, prefix=f"{prefix}/" if prefix else "", url=f"{root}/{prefix}"))


def _match(ctx: CommitContext, path: str) -> Source:
    words = path.split("/")
    fixed = next(index for index, word in enumerate(words) if is_pattern(word))
    pattern = [compile_word(word) for word in words[fixed:]]
    base = _at(ctx, "/".join(words[:fixed]))
    refuse_foreign_read(base)
    snapshot = read_snapshot(base)
    files = tuple(file for file in snapshot.files if _matches(file.path, pattern))
    if not files:
        raise NotFoundError(
            "nothing matches the pattern: check it, and keep it in quotes so that no shell expands it", url=ctx.url
        )
    if not snapshot.head:
        refuse_part(base)
        _refuse_inner_destinations(base, files)
    return Source(base, replace(snapshot, files=files))


def _matches(path: str, pattern: Sequence[re.Pattern[str]]) -> bool:
    """Check whether the pattern matches the file, or a directory that contains the file."""
    words = path.split("/")
    return len(words) >= len(pattern) and all(
        one.fullmatch(word) for one, word in zip(pattern, words[: len(pattern)], strict=True)
    )


def _refuse_inner_destinations(base: CommitContext, files: Sequence[VisibleFile]) -> None:
    """Refuse a pattern that reaches into another destination, whose log is not read to see what is committed."""
    inner = {
        key.partition(f"/{HOME}log/")[0]
        for key in (info.key[len(base.prefix) :] for info in iter_objects(base.store, base.prefix))
        if f"/{HOME}log/" in key
    }
    for root in sorted(inner):
        if any(file.path.startswith(f"{root}/") for file in files):
            raise InvalidRequestError(
                "the pattern reaches into a destination that has its own log: read each destination separately",
                url=f"{base.url.rstrip('/')}/{root}",
            )


# --- columns ----------------------------------------------------------------------------------------------------------
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
        return _given(parse_ddl(ddl), files, choice, kept)
    table = _found(source, files, choice, kept)
    return table, table.schema


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
