"""The columns of files of others, once rows are to be added to them: those of all files, as one table has them.

Files that tell their columns are asked, each of them. Types in text files are a guess: there those of the rows hold, if
the files' values are of them.
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
from holdfast.table.file_fields import Fields, with_theirs
from holdfast.table.inferred import File
from holdfast.table.text_files import TextFiles
from holdfast.table.typed_files import TypedFiles
from holdfast.table.widening import fold

__all__ = ["Adopted", "adopted_columns"]

_SELF_DESCRIBING = frozenset({"parquet", "orc", "avro", "arrow"})


@dataclass(frozen=True, slots=True)
class Adopted:
    """What was seen.

    Attributes:
        fields: the columns.
        plain: whether all files hold their values as Holdfast's do, so that readers of any kind read them alike.
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
    most: int | None,
) -> Adopted:
    """The columns: those of the files, then the partition columns: names of the directories, types of the rows.

    Args:
        files: none of which is empty.
        options: with which the rows are written.
        given: what the rows look like, partitioned as the directories are.
        most: None to read all text files, else only the first one's first rows count.

    Raises:
        InvalidRequestError: the files do not agree with each other, or not with the rows; says which.
    """
    partition_by = {name.lower() for name in given.partition_by}
    mine = [one for one in given.fields if str(one["name"]).lower() not in partition_by]
    given_fields = fold(given.fields)
    directories = [{**given_fields[name.lower()], "name": name} for name in given.partition_by]
    if file_format.name in _SELF_DESCRIBING:
        typed = TypedFiles(ctx, file_format, options)
        return Adopted([*typed.columns(files, partition_by), *directories], plain=not typed.odd)
    if file_format.name in ("csv", "json"):
        looked_at = list(files if most is None else itertools.islice(files, 1))
        texts = TextFiles(ctx, file_format, options, looked_at, whole=most is None)
        if file_format.name == "csv":
            names = texts.require_columns([str(one["name"]) for one in mine])
            mine = [{**one, "name": name} for one, name in zip(mine, names, strict=True)]
        else:
            mine = with_theirs(
                mine, [one for one in children(texts.rows_type()) if one.name.lower() not in partition_by]
            )
        texts.require_values(replace(given, fields=mine))
    return Adopted([*mine, *directories], plain=False)  # Spark's reader has its own ideas of texts that others wrote
