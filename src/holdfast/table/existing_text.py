"""Check that existing CSV or JSON files, which do not describe their types, can be read with the types of new rows."""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.types as pat

from holdfast.commit import CommitContext
from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats import FileFormat, FormatOptions
from holdfast.formats.columns.types import children
from holdfast.formats.csv import header_names
from holdfast.formats.csv_inference import safe_names
from holdfast.formats.json_inference import merge_types, schema_of
from holdfast.formats.lines.blocks import codec_of_name
from holdfast.formats.spark.schema_json import arrow_schema_of
from holdfast.table.contract import TableRecord
from holdfast.table.existing_fields import Fields, fields_of, require_folded, require_names
from holdfast.table.files import File, infer_types, map_files, opener
from holdfast.wording import OR_OVERWRITE


@dataclass(frozen=True, slots=True)
class TextFiles:
    """Existing CSV or JSON files.

    Attributes:
        options: the format options of the rows to write.
        whole: whether to read the files completely, rather than only their first rows.
    """

    ctx: CommitContext
    file_format: FileFormat[Any]
    options: FormatOptions
    files: Sequence[File]
    whole: bool

    def _options_of(self, path: str) -> Any:
        """Return the options for one file, with the codec that its name implies, and UTC if no time zone was given."""
        texts: Any = self.options
        return replace(texts, codec=codec_of_name(path), time_zone=texts.time_zone or "UTC")

    def rows_type(self) -> pa.DataType:
        """Return the struct type of all JSON objects; fields that contain only nulls have the null type."""
        found: pa.DataType = infer_types(
            self.files, opener(self.ctx), self.file_format, self._options_of, self.ctx.runner.map
        )
        return found

    def require_values(self, table: TableRecord) -> None:
        """Check that the files are readable with the table's types, and that no number would change.

        Raises:
            InvalidRequestError: a file is not readable, or a number would change; the error names the file.
        """
        schema = arrow_schema_of(table.schema_json)

        def look(file: File, source: BinaryIO) -> None:
            options = replace(self._options_of(file.path), exact=True)
            try:
                batches = self.file_format.read_batches(source, schema, schema.names, None, options, None)
                deque(batches if self.whole else itertools.islice(batches, 1), maxlen=0)
            except (CorruptDataError, InvalidRequestError) as error:
                raise InvalidRequestError(
                    "the existing files hold values that do not fit the rows' types: cast the rows, use another "
                    f"destination, {OR_OVERWRITE}",
                    file=file.path,
                    reason=str(error),
                ) from error

        deque(map_files(self.files, opener(self.ctx), look, self.ctx.runner.map), maxlen=0)

    def require_columns(self, names: Sequence[str]) -> Sequence[str]:
        """Check that the CSV files have the columns of the rows, in order; return the names as the files spell them.

        CSV columns are identified by position; only headers contain names. Files after the first one may lack columns,
        which then read as null. Empty files are ignored.

        Args:
            names: the names of the rows' columns.

        Raises:
            InvalidRequestError: a file has other columns, or does not parse.
        """
        with_header = self.file_format.reader_options(self.options).get("header") == "true"
        folded = [name.lower() for name in names]

        def look(file: File, source: BinaryIO) -> tuple[File, list[str]]:
            try:
                return file, self._first_line(source, file, with_header)
            except CorruptDataError as error:
                raise InvalidRequestError(
                    "the existing CSV files do not parse with the options of this write: write with theirs, "
                    f"{OR_OVERWRITE}",
                    file=file.path,
                ) from error

        spelled: Sequence[str] = ()
        for file, columns in map_files(self.files, opener(self.ctx), look, self.ctx.runner.map):
            found = [name.lower() for name in columns]
            if not found:
                continue
            if not spelled and not with_header and found == folded:
                raise InvalidRequestError(
                    "the first line of the existing CSV files holds the column names: write with header=true, "
                    f"{OR_OVERWRITE}",
                    file=file.path,
                    file_columns=columns[:20],
                )
            if not (_fits_header if with_header else _fits_width)(found, folded, is_first=not spelled):
                raise InvalidRequestError(
                    "the existing CSV files have other columns, or were written with another header or separator: "
                    f"write the same, {OR_OVERWRITE}",
                    file=file.path,
                    file_columns=columns[:20],
                    given=list(names[:20]),
                    header=with_header,
                )
            spelled = spelled or (columns if with_header else names)
        return spelled or names

    def _first_line(self, source: BinaryIO, file: File, with_header: bool) -> list[str]:
        """Return the column names in the header as readers see them; if the files have no header, the first record."""
        texts = header_names(source, replace(self._options_of(file.path), header=True))
        return safe_names(texts, self._options_of(file.path).null_value) if with_header else texts


def _fits_header(found: Sequence[str], wanted: Sequence[str], *, is_first: bool) -> bool:
    if is_first:
        return found == wanted
    return len(set(found)) == len(found) and set(found) <= set(wanted)


def _fits_width(found: Sequence[str], wanted: Sequence[str], *, is_first: bool) -> bool:
    """Check whether a line may be a record of the wanted columns, rather than their names."""
    if found == wanted[: len(found)]:
        return False
    return len(found) == len(wanted) if is_first else len(found) <= len(wanted)


# --- JSON -------------------------------------------------------------------------------------------------------------
def merge_json_fields(mine: Sequence[Mapping[str, Any]], theirs: Iterable[pa.Field]) -> Fields:
    """Merge the fields of the rows to write, spelled as in the JSON files, with the fields that only the files have.

    Args:
        mine: the fields of the rows. They come first in the result, and keep their types.
        theirs: the fields inferred from the values in the files. A null says nothing about a field's type, and a field
            that is always null is not a column yet.
    """
    columns = {column.name: column for column in theirs}
    names = schema_of(pa.struct(list(columns.values()))).names
    require_names(names)
    found = {name.lower(): columns[name] for name in names}
    fields: Fields = []
    for one in mine:
        other = found.pop(str(one["name"]).lower(), None)
        if other is not None:
            one = {**one, "name": other.name, "type": _type_with_theirs(one["type"], other.type)}
        fields.append(one)
    further = schema_of(pa.struct(list(found.values())))
    require_folded(further)
    return [*fields, *fields_of(further)]


def _type_with_theirs(mine: Any, theirs: pa.DataType) -> Any:
    kind = mine.get("type") if isinstance(mine, dict) else ""
    if kind == "struct" and pat.is_struct(theirs):
        return {**mine, "fields": merge_json_fields(mine["fields"], children(theirs))}
    if kind == "map" and pat.is_struct(theirs) and theirs.num_fields:
        # Only the rows' types reveal which objects are maps: in the files, the keys of a map look like fields, and may
        # differ only in case.
        value = functools.reduce(merge_types, [field.type for field in children(theirs)])
        return {**mine, "valueType": _type_with_theirs(mine["valueType"], value)}
    if kind == "array" and pat.is_list(theirs):
        return {**mine, "elementType": _type_with_theirs(mine["elementType"], theirs.value_type)}
    return mine
