"""Determine the columns that existing files have as one table, before Holdfast adds the first rows to them.

To record such files in the log as a table is called *adopting* them. If their format describes its columns, all files
are inspected. Types inferred from text files would be a guess, so text files get the types of the new rows, provided
that their values fit these types.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from holdfast.commit import CommitContext
from holdfast.formats import FileFormat, FormatOptions
from holdfast.formats.columns.types import children
from holdfast.table.contract import TableRecord
from holdfast.table.file_fields import Fields, merge_json_fields
from holdfast.table.inferred import File
from holdfast.table.text_files import TextFiles
from holdfast.table.typed_files import TypedFiles
from holdfast.table.widening import fold


@dataclass(frozen=True, slots=True)
class Adopted:
    """The columns of the existing files, as the table will record them.

    Attributes:
        fields: the columns.
        plain: whether all files store values as Holdfast would, so that all readers return the same values from them.
    """

    fields: Fields
    plain: bool


def adopted_columns(
    ctx: CommitContext,
    files: Iterable[File],
    file_format: FileFormat[Any],
    options: FormatOptions,
    given: TableRecord,
    *,
    limit: int | None,
) -> Adopted:
    """Return the columns of the files, then the partition columns, named like the directories and typed like the rows.

    Args:
        files: the existing files, none of them empty.
        options: the format options of the rows to write.
        given: the table that the rows alone would form, with its partition columns spelled like the directories.
        limit: None to read all text files completely; with any other value, only the first rows of the first text file
            are read.

    Raises:
        InvalidRequestError: the files contradict each other or the rows; the error says which.
    """
    partition_by = {name.lower() for name in given.partition_by}
    mine = [one for one in given.fields if str(one["name"]).lower() not in partition_by]
    given_fields = fold(given.fields)
    directories = [{**given_fields[name.lower()], "name": name} for name in given.partition_by]
    if not file_format.is_text:
        typed = TypedFiles(ctx, file_format, options)
        return Adopted([*typed.columns(files, partition_by), *directories], plain=not typed.odd)
    if file_format.inference is not None:
        looked_at = list(files if limit is None else itertools.islice(files, 1))
        texts = TextFiles(ctx, file_format, options, looked_at, whole=limit is None)
        if file_format.by_position:
            names = texts.require_columns([str(one["name"]) for one in mine])
            mine = [{**one, "name": name} for one, name in zip(mine, names, strict=True)]
        else:
            mine = merge_json_fields(
                mine, [one for one in children(texts.rows_type()) if one.name.lower() not in partition_by]
            )
        texts.require_values(replace(given, fields=mine))
    return Adopted([*mine, *directories], plain=False)  # Spark's reader may read others' text files differently
