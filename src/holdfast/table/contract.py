"""What a table is, and what a job may do to it: one rule, asked before a job starts and again in its decision (C12).

An append must fit what is there: the same format, the same reader options of the format, the same partition columns.
Columns are matched by name, regardless of case. A column that the job lacks reads as null. Rows are cast to the table's
types where no value can change; a wider type or a new column needs ``mergeSchema``. An overwrite may change everything;
overwriting partitions is an append in this respect.

The record travels with the log: every entry carries it on (`holdfast.commit.two_phase.records.LogState`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.commit.json_fields import guarded, require
from holdfast.errors import ConflictError, InvalidRequestError
from holdfast.formats import get_format
from holdfast.table.widening import MismatchError, Rules, fold, merge_fields, type_text

__all__ = ["TableRecord", "agree", "decode_table"]


@dataclass(frozen=True, kw_only=True)
class TableRecord:
    """What readers have to know of a table, and writers have to keep to.

    Attributes:
        fields: the columns in order, as in the JSON of a Spark schema; everything may be null.
        file_format: name of the files' format.
        reader_options: options without which the files read wrongly, under Spark's names (CSV's ``header``, ``sep``).
        partition_by: columns that directories hold, outermost first, spelled as in `fields`.
        time_zone: in which directories name timestamps; empty if they name none.
        adopted: what tells the files of others that were looked at before the first append (`holdfast.table.others`):
            all readers read them as the table's columns. Empty if none were, or not all readers do.
    """

    fields: Sequence[Mapping[str, Any]]
    file_format: str
    reader_options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    time_zone: str = ""
    adopted: str = ""

    @property
    def schema_json(self) -> str:
        """The schema as Spark's `StructType` prints it."""
        return json.dumps({"type": "struct", "fields": list(self.fields)}, ensure_ascii=False, separators=(",", ":"))

    @property
    def data_names(self) -> list[str]:
        """The columns that files hold, in order."""
        return [str(one["name"]) for one in self.fields if one["name"] not in self.partition_by]

    def encode(self) -> dict[str, object]:
        """The record as the log keeps it."""
        return {
            "schema": self.schema_json,
            "format": self.file_format,
            "format_options": dict(self.reader_options),
            "partition_by": list(self.partition_by),
            "time_zone": self.time_zone,
            **({"adopted": self.adopted} if self.adopted else {}),
        }


def decode_table(table: Mapping[str, object]) -> TableRecord:
    """The record that the log keeps.

    Raises:
        CorruptDataError: it cannot be read; its bytes are kept.
    """

    def decode() -> TableRecord:
        schema, options, partition_by = table["schema"], table["format_options"], table["partition_by"]
        require(isinstance(schema, str), "the schema is not a text")
        value = json.loads(str(schema))
        require(isinstance(value, dict) and "fields" in value, "the schema is not a struct")
        _require_fields(value["fields"])
        require(isinstance(options, dict), "format_options is not an object")
        require(isinstance(partition_by, list), "partition_by is not a list")
        require(isinstance(table["format"], str), "format is not a text")
        assert isinstance(options, dict) and isinstance(partition_by, list)
        names = {one["name"] for one in value["fields"]}
        require(all(name in names for name in partition_by), "partition_by names a column that is not there")
        return TableRecord(
            fields=value["fields"],
            file_format=str(table["format"]),
            reader_options={str(key): str(one) for key, one in options.items()},
            partition_by=tuple(map(str, partition_by)),
            time_zone=str(table.get("time_zone", "")),
            adopted=str(table.get("adopted", "")),
        )

    return guarded("the table in the decision log", decode)


def _require_fields(fields: Any) -> None:
    require(isinstance(fields, list), "a struct has no fields")
    for one in fields:
        require(isinstance(one, dict) and isinstance(one.get("name"), str) and "type" in one, "a field is wrong")
        require(isinstance(one.get("metadata") or {}, dict), "a field's metadata are no object")
        _require_type(one["type"])


def _require_type(kind: Any) -> None:
    """What `holdfast.table.widening` goes by; the words for types are Spark's to know."""
    if isinstance(kind, str):
        return
    require(isinstance(kind, dict), "a type is neither a word nor an object")
    inner: dict[Any, tuple[str, ...]] = {"array": ("elementType",), "map": ("keyType", "valueType"), "udt": ()}
    if kind.get("type") == "struct":
        _require_fields(kind.get("fields"))
        return
    require(kind.get("type") in inner, "a type is unknown")
    for name in inner[kind["type"]]:
        _require_type(kind[name])


def agree(known: TableRecord, given: TableRecord, *, merge: bool, written: bool = False) -> TableRecord:
    """The table once rows that look like `given` are added to a table that looks like `known`.

    Args:
        merge: whether the table may change (``mergeSchema``).
        written: whether the rows stand in files already: so it is in the decision, when the table may have changed
            since the job started.

    Raises:
        InvalidRequestError: they do not fit; says what is there.
        ConflictError: the same, with `written`: another job changed the table meanwhile.
    """
    alike = replace(given, time_zone=known.time_zone, adopted=known.adopted) == known
    if alike and given.time_zone in ("", known.time_zone):
        return known  # the usual append; what follows loads the format
    try:
        _require_layout(known, given)
        rules = Rules(file_format=known.file_format, merge=merge, written=written)
        fields = merge_fields(known.fields, given.fields, rules)
        after = replace(known, fields=fields)
        _require_partition_types(known, after, given)
        if written and get_format(known.file_format).by_position:
            _require_positions(after, given)
        return after
    except _Misfit as misfit:
        sentence, there = misfit.sentence, misfit.there
    except MismatchError as error:
        sentence, there = _sentence_of(error)
    if written:
        raise ConflictError("another job changed the table meanwhile, nothing is committed: run the job again", **there)
    raise InvalidRequestError(sentence, **there)


class _Misfit(Exception):  # an answer between two functions here, not an error that anybody sees
    def __init__(self, sentence: str, **there: object) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.there = there


def _require_layout(known: TableRecord, given: TableRecord) -> None:
    if known.file_format != given.file_format:
        raise _Misfit(
            "the table has another file format: write that one, or use mode overwrite",
            there=known.file_format,
            given=given.file_format,
        )
    if [name.lower() for name in known.partition_by] != [name.lower() for name in given.partition_by]:
        raise _Misfit(
            "the table is partitioned otherwise: partition by the same columns, or use mode overwrite",
            there=list(known.partition_by),
            given=list(given.partition_by),
        )
    for name in sorted(known.reader_options.keys() | given.reader_options.keys()):
        there, here = known.reader_options.get(name), given.reader_options.get(name)
        if there != here:
            raise _Misfit(
                f"the table's files were written with another {name}: write the same, or use mode overwrite",
                there=there,
                given=here,
            )
    if known.time_zone and given.time_zone and known.time_zone != given.time_zone:
        raise _Misfit(
            "the table's directories name timestamps in another time zone: write in that one, or use mode overwrite",
            there=known.time_zone,
            given=given.time_zone,
        )


def _require_partition_types(known: TableRecord, after: TableRecord, given: TableRecord) -> None:
    """Directories keep the names that they have: a wider type would name the same value otherwise."""
    before, now, new = fold(known.fields), fold(after.fields), fold(given.fields)
    for name in known.partition_by:
        column = name.lower()
        if column not in new:
            raise _Misfit("the table is partitioned by a column that the rows lack: add it", column=name)
        if before[column]["type"] != now[column]["type"]:
            raise _Misfit(
                "a partition column keeps its type: cast it, or use mode overwrite",
                column=name,
                there=type_text(before[column]["type"]),
                given=type_text(new[column]["type"]),
            )


def _require_positions(after: TableRecord, given: TableRecord) -> None:
    names = [name.lower() for name in after.data_names]
    written = [name.lower() for name in given.data_names]
    if names[: len(written)] != written:
        raise _Misfit("the files have their columns in another order", there=after.data_names, given=given.data_names)


def _sentence_of(error: MismatchError) -> tuple[str, dict[str, object]]:
    if not error.known:
        return (
            "the table has no such column: leave it out, or give mergeSchema=true to add it",
            {"column": error.path, "given": error.given},
        )
    act = "cast it, or give mergeSchema=true to widen the column" if error.needs_merge else "cast it"
    return (
        f"a column has another type in the table: {act}, or use mode overwrite",
        {"column": error.path, "there": error.known, "given": error.given},
    )
