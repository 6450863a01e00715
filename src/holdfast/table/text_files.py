"""Files of CSV or JSON, which do not tell their types: seen to be readable with those of the rows to add."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import pyarrow as pa

from holdfast.commit import CommitContext
from holdfast.errors import CorruptDataError, InvalidRequestError
from holdfast.formats import FileFormat, FormatOptions
from holdfast.formats.csv.format import header_names
from holdfast.formats.csv.schema import safe_names
from holdfast.formats.lines.blocks import codec_of_name
from holdfast.formats.spark.arrow_schema import arrow_schema_of
from holdfast.table.contract import TableRecord
from holdfast.table.inferred import File, look_at_files, opener, what_files_tell

__all__ = ["TextFiles"]


@dataclass(frozen=True, slots=True)
class TextFiles:
    """Files of CSV or JSON.

    Attributes:
        options: with which the rows are written.
        whole: whether to read the files to their end, or their first rows only.
    """

    ctx: CommitContext
    file_format: FileFormat[Any]
    options: FormatOptions
    files: Sequence[File]
    whole: bool

    def _options_of(self, path: str) -> Any:
        """The options with what the file's name tells; instants without a zone are a matter of each read."""
        texts: Any = self.options
        return replace(texts, codec=codec_of_name(path), time_zone=texts.time_zone or "UTC")

    def rows_type(self) -> pa.DataType:
        """The struct that all objects of JSON are of, with nulls where nothing else was seen."""
        found: pa.DataType = what_files_tell(
            self.files, opener(self.ctx), self.file_format, self._options_of, self.ctx.runner.map
        )
        return found

    def require_values(self, table: TableRecord) -> None:
        """The files have to be readable with the table's types, and no number of theirs may become another one."""
        schema = arrow_schema_of(table.schema_json)

        def look(file: File, source: BinaryIO) -> None:
            options = replace(self._options_of(file.path), exact=True)
            try:
                batches = self.file_format.read_batches(source, schema, schema.names, None, options, None)
                deque(batches if self.whole else itertools.islice(batches, 1), maxlen=0)
            except (CorruptDataError, InvalidRequestError) as error:
                raise InvalidRequestError(
                    "the files that are there hold values that are not of the rows' types: cast the rows, use another "
                    "destination, or mode overwrite",
                    file=file.path,
                    reason=str(error),
                ) from error

        deque(look_at_files(self.files, opener(self.ctx), look, self.ctx.runner.map), maxlen=0)

    def require_columns(self, names: Sequence[str]) -> Sequence[str]:
        """The names as the files spell them. CSV's columns are told by position, and only by the first line if at all.

        Files behind the first one may lack columns: these are null there. Files without a line tell nothing.

        Args:
            names: of the rows' columns.
        """
        with_header = self.file_format.reader_options(self.options).get("header") == "true"
        folded = [name.lower() for name in names]

        def look(file: File, source: BinaryIO) -> tuple[File, list[str]]:
            try:
                return file, self._first_line(source, file, with_header)
            except CorruptDataError as error:
                raise InvalidRequestError(
                    "the CSV files that are there do not parse with the options of this write: write with theirs, or "
                    "use mode overwrite",
                    file=file.path,
                ) from error

        spelled: Sequence[str] = ()
        for file, there in look_at_files(self.files, opener(self.ctx), look, self.ctx.runner.map):
            here = [name.lower() for name in there]
            if not here:
                continue
            if not spelled and not with_header and here == folded:
                raise InvalidRequestError(
                    "the first line of the CSV files that are there holds the columns' names: write with header=true, "
                    "or use mode overwrite",
                    file=file.path,
                    there=there[:20],
                )
            if not (_fits_header if with_header else _fits_width)(here, folded, is_first=not spelled):
                raise InvalidRequestError(
                    "the CSV files that are there have other columns, or were written with another header or "
                    "separator: write the same, or use mode overwrite",
                    file=file.path,
                    there=there[:20],
                    given=list(names[:20]),
                    header=with_header,
                )
            spelled = spelled or (there if with_header else names)
        return spelled or names

    def _first_line(self, source: BinaryIO, file: File, with_header: bool) -> list[str]:
        """The names of columns in a header, as readers have them; else the first record."""
        texts = header_names(source, replace(self._options_of(file.path), header=True))
        return safe_names(texts, self._options_of(file.path).null_value) if with_header else texts


def _fits_header(here: Sequence[str], wanted: Sequence[str], *, is_first: bool) -> bool:
    if is_first:
        return here == wanted
    return len(set(here)) == len(here) and set(here) <= set(wanted)


def _fits_width(here: Sequence[str], wanted: Sequence[str], *, is_first: bool) -> bool:
    """Whether a record may be one of rows with the wanted columns, rather than their names."""
    if here == wanted[: len(here)]:
        return False
    return len(here) == len(wanted) if is_first else len(here) <= len(wanted)
