"""Define a table's schema and layout, and the changes that a job may make to them: the table's contract.

The contract is checked twice: before a job starts, and when it is decided. An append must fit the existing table: the
same format, the same reader options (those that all readers of the files must use), the same partition columns (C12).
Columns match by name in any case. A column that the job lacks reads as null. Rows are cast to the table's types if no
value can change; a wider type or a new column needs ``mergeSchema``. An overwrite may change everything; overwriting
partitions counts as an append.

The table's record is part of the log: every entry contains a copy of it (`holdfast.commit.two_phase.records.LogState`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.commit.codec import decode_record, require_valid
from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.formats import FileFormat, get_format
from holdfast.table.widening import (
    AppendRules,
    MismatchError,
    SparkType,
    can_read_without_loss,
    map_by_folded_name,
    merge_fields,
    type_text,
)
from holdfast.wording import OR_OVERWRITE, suggest_nearest


@dataclass(frozen=True, kw_only=True)
class TableRecord:
    """The properties of a table that readers must know and writers must preserve.

    Attributes:
        fields: the columns in order, as in the JSON of a Spark schema; all of them are nullable.
        file_format: name of the files' format.
        reader_options: the options that all readers of the files must use, by Spark's names, such as CSV's ``header``
            and ``sep``.
        partition_by: columns whose values are in directory names, outermost first, spelled as in `fields`.
        adopted: fingerprint of the files of other writers that were inspected before the first append
            (`holdfast.table.existing`), if all readers return the same values from them. Empty if there were no such
            files, or if readers differ.
    """

    fields: Sequence[Mapping[str, Any]]
    file_format: str
    reader_options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    adopted: str = ""

    @property
    def schema_json(self) -> str:
        """The schema, in the JSON of Spark's `StructType`."""
        return json.dumps({"type": "struct", "fields": list(self.fields)}, ensure_ascii=False, separators=(",", ":"))

    @property
    def data_names(self) -> list[str]:
        """Names of the columns that are stored in files, in order."""
        return [str(one["name"]) for one in self.fields if one["name"] not in self.partition_by]

    def encode(self) -> dict[str, object]:
        """Convert the record to the JSON object that the log stores."""
        return {
            "schema": self.schema_json,
            "format": self.file_format,
            "format_options": dict(self.reader_options),
            "partition_by": list(self.partition_by),
            **({"adopted": self.adopted} if self.adopted else {}),
        }


def decode_table(table: Mapping[str, object]) -> TableRecord:
    """Convert the JSON object of a table in the log to a `TableRecord`, after checking it.

    Raises:
        CorruptDataError: the record is invalid; the error contains it.
    """

    def decode_fields() -> TableRecord:
        schema, options, partition_by = table["schema"], table["format_options"], table["partition_by"]
        require_valid(isinstance(schema, str), "the schema is not a string")
        value = json.loads(str(schema))
        require_valid(isinstance(value, dict) and "fields" in value, "the schema is not a struct")
        _require_valid_fields(value["fields"])
        require_valid(isinstance(options, dict), "format_options is not an object")
        require_valid(isinstance(partition_by, list), "partition_by is not a list")
        require_valid(isinstance(table["format"], str), "format is not a string")
        assert isinstance(options, dict) and isinstance(partition_by, list)
        names = {one["name"] for one in value["fields"]}
        require_valid(all(name in names for name in partition_by), "partition_by names a column that does not exist")
        return TableRecord(
            fields=value["fields"],
            file_format=str(table["format"]),
            reader_options={str(key): str(one) for key, one in options.items()},
            partition_by=tuple(map(str, partition_by)),
            adopted=str(table.get("adopted", "")),
        )

    return decode_record("the table in the decision log", decode_fields)


def _require_valid_fields(fields: Any) -> None:
    require_valid(isinstance(fields, list), "a struct has no fields")
    for one in fields:
        require_valid(
            isinstance(one, dict) and isinstance(one.get("name"), str) and "type" in one, "a field is invalid"
        )
        require_valid(isinstance(one.get("metadata") or {}, dict), "a field's metadata is not an object")
        _require_valid_type(one["type"])


def _require_valid_type(kind: Any) -> None:
    """Check that a type has the structure that `holdfast.table.widening` relies on; Spark checks the names of types."""
    if isinstance(kind, str):
        return
    require_valid(isinstance(kind, dict), "a type is neither a string nor an object")
    inner: dict[Any, tuple[str, ...]] = {"array": ("elementType",), "map": ("keyType", "valueType"), "udt": ()}
    if kind.get("type") == "struct":
        _require_valid_fields(kind.get("fields"))
        return
    require_valid(kind.get("type") in inner, "a type is unknown")
    for name in inner[kind["type"]]:
        _require_valid_type(kind[name])


def merge_append(known: TableRecord, given: TableRecord, *, merge: bool, written: bool = False) -> TableRecord:
    """Check that rows can be added to a table, and return the record of the resulting table.

    Args:
        known: the table.
        given: the columns and the layout of the rows.
        merge: whether the append may change the table (``mergeSchema``).
        written: whether the rows are already in files, as when the job commits. Another job may have changed the table
            since the rows were written.

    Raises:
        InvalidRequestError: the rows do not fit; the error describes the table.
        ConflictError: the rows do not fit and `written` is set: another job changed the table in the meantime.
    """
    if replace(given, adopted=known.adopted) == known:
        return known  # the usual append; return early, because the code below loads the format
    try:
        _require_same_layout(known, given)
        file_format = get_format(known.file_format)
        rules = AppendRules(file_format=file_format, merge=merge, written=written)
        fields = merge_fields(known.fields, given.fields, rules)
        after = replace(known, fields=fields)
        _require_partition_types(known, after, given)
        if written and file_format.by_position:
            _require_column_positions(after, given)
        return after
    except _TableMismatchError as misfit:
        sentence, variables = misfit.sentence, misfit.variables
    except MismatchError as error:
        sentence, variables = _explain_mismatch(error)
    if written:
        raise ConflictError(
            "another job changed the table in the meantime, nothing is committed: run the job again", **variables
        )
    raise InvalidRequestError(sentence, **variables)


class _TableMismatchError(Exception):  # passed between functions of this module only
    def __init__(self, sentence: str, **variables: object) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.variables = variables


def _require_same_layout(known: TableRecord, given: TableRecord) -> None:
    if known.file_format != given.file_format:
        raise _TableMismatchError(
            f"the table has another file format: write in that format, {OR_OVERWRITE}",
            table=known.file_format,
            given=given.file_format,
        )
    if [name.lower() for name in known.partition_by] != [name.lower() for name in given.partition_by]:
        act = "pass the table's as" if known.partition_by else "leave out"
        raise _TableMismatchError(
            f"the table has other partition columns: {act} partition_by (partitionBy as an option of Spark, "
            f"--partition-by in commands), {OR_OVERWRITE}",
            table=list(known.partition_by),
            given=list(given.partition_by),
        )
    for name in sorted(known.reader_options.keys() | given.reader_options.keys()):
        before, now = known.reader_options.get(name), given.reader_options.get(name)
        if before != now:
            raise _TableMismatchError(
                f"the table's files were written with another {name}: use the same, {OR_OVERWRITE}",
                table=before,
                given=now,
            )


def _require_partition_types(known: TableRecord, after: TableRecord, given: TableRecord) -> None:
    """Check that partition columns keep their types: as a wider type, a value could have another directory name."""
    before, now, new = (
        map_by_folded_name(known.fields),
        map_by_folded_name(after.fields),
        map_by_folded_name(given.fields),
    )
    for name in known.partition_by:
        column = name.lower()
        if column not in new:
            raise _TableMismatchError("the table is partitioned by a column that the rows lack: add it", column=name)
        if before[column]["type"] != now[column]["type"]:
            raise _TableMismatchError(
                f"the type of a partition column cannot change: cast the column, {OR_OVERWRITE}",
                column=name,
                table=type_text(before[column]["type"]),
                given=type_text(new[column]["type"]),
            )


def _require_column_positions(after: TableRecord, given: TableRecord) -> None:
    names = [name.lower() for name in after.data_names]
    written = [name.lower() for name in given.data_names]
    if names[: len(written)] != written:
        raise _TableMismatchError(
            "the files have their columns in another order", table=after.data_names, given=given.data_names
        )


def _explain_mismatch(error: MismatchError) -> tuple[str, dict[str, object]]:
    if not error.known:
        return (
            "the table has no such column: leave it out, or set mergeSchema=true to add it",
            {"column": error.path, "given": error.given},
        )
    act = "cast it, or set mergeSchema=true to widen the column" if error.needs_merge else "cast it"
    return (
        f"a column has another type in the table: {act}, {OR_OVERWRITE}",
        {"column": error.path, "table": error.known, "given": error.given},
    )


# --- what a reader requests -------------------------------------------------------------------------------------------
# A reader selects values by the names and types of columns that it got earlier or that its user gave. If an overwrite
# has changed the table since, it would show the values of one column as those of another, or nulls for a lost column.
_HINT = "read the table without a schema, or build the DataFrame again if the table was replaced since"


def require_columns(wanted: Sequence[Mapping[str, Any]], table: TableRecord) -> None:
    """Check that a table has every requested column, with the requested type or one that converts to it exactly.

    Raises:
        InvalidRequestError: the table lacks a column; the error says what the table has.
    """
    _require_wanted_columns("", wanted, table.fields, get_format(table.file_format))


def _require_wanted_columns(
    path: str, wanted: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]], file_format: FileFormat[Any]
) -> None:
    existing = map_by_folded_name(known)
    for one in wanted:
        name = f"{path}{one['name']}"
        found = existing.get(str(one["name"]).lower())
        if found is None:
            near = suggest_nearest(str(one["name"]), [str(other["name"]) for other in known])
            raise InvalidRequestError(f"the table has no such column: {near}; {_HINT}", column=name)
        _require_wanted_type(name, one["type"], found["type"], file_format)


def _require_wanted_type(path: str, wanted: SparkType, known: SparkType, file_format: FileFormat[Any]) -> None:
    wanted, known = _find_stored_type(wanted), _find_stored_type(known)
    if isinstance(wanted, dict) and isinstance(known, dict) and wanted.get("type") == known.get("type"):
        if wanted["type"] == "struct":
            _require_wanted_columns(f"{path}.", wanted["fields"], known["fields"], file_format)
            return
        inner = ("elementType",) if wanted["type"] == "array" else ("keyType", "valueType")
        for name in inner:
            _require_wanted_type(f"{path}.{name.removesuffix('Type')}", wanted[name], known[name], file_format)
        return
    if not (wanted == known or can_read_without_loss(file_format, wanted, known)):
        raise InvalidRequestError(
            f"the table's column has another type: {_HINT}",
            column=path,
            wanted=type_text(wanted),
            table=type_text(known),
        )


def _find_stored_type(kind: SparkType) -> SparkType:
    """Return the type as which values are stored: a user-defined type's SQL type, and string for char and varchar."""
    if isinstance(kind, dict) and kind.get("type") == "udt":
        return _find_stored_type(kind["sqlType"])
    return "string" if isinstance(kind, str) and kind.startswith(("char(", "varchar(")) else kind
