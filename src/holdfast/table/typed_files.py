"""Merge the columns of existing files in formats that describe their columns.

Each column gets a type that can represent the values of all files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from holdfast.commit import CommitContext
from holdfast.errors import InvalidRequestError
from holdfast.formats import FileFormat, FormatOptions
from holdfast.table.file_fields import Fields, fields_of, is_plain, require_folded
from holdfast.table.inferred import File, map_files, naming_file, opener
from holdfast.table.widening import MismatchError, Rules, merge_fields
from holdfast.wording import OR_OVERWRITE


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the files inspected so far.

    Attributes:
        field: the column with a type for all files; the type in a file without rows is ignored if it does not fit.
        bound: the column with a type for only the files that have rows; another file's type must fit this one.
        file: the file from which `bound` comes; while no file is known to have rows, the last file with the column.
        has_rows: whether one of the files is known to have rows.
    """

    field: Mapping[str, Any]
    bound: Mapping[str, Any]
    file: File
    has_rows: bool = False


@dataclass(frozen=True, slots=True)
class TypedFiles:
    """Existing Parquet, ORC, Avro or Arrow files.

    Attributes:
        options: the format options of the rows to write.
        known_rows: maps the paths of files that were checked to whether they have rows.
        odd: the first files that store a column differently from Holdfast, such as in nanoseconds.
    """

    ctx: CommitContext
    file_format: FileFormat[Any]
    options: FormatOptions
    known_rows: dict[str, bool] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)

    def columns(self, files: Iterable[File], partition_by: set[str]) -> Fields:
        """Return the columns of all files in order of appearance, each with a type that fits all files' values."""

        def look(file: File, source: BinaryIO) -> tuple[File, Fields]:
            schema = self.file_format.read_schema(source, self.options)
            require_folded(schema)
            fields = fields_of(schema)
            if not self.odd and not is_plain(schema, fields):
                self.odd.append(file.path)
            return file, fields

        columns: dict[str, _Column] = {}
        for file, fields in map_files(files, opener(self.ctx), look, self.ctx.runner.map, footers=True):
            for one in fields:
                name = str(one["name"]).lower()
                if name not in partition_by:
                    new = _Column(one, one, file)
                    columns[name] = self._merged(columns[name], new) if name in columns else new
        return [column.field for column in columns.values()]

    def _merged(self, known: _Column, new: _Column) -> _Column:
        named = {**new.field, "name": known.field["name"]}
        if not known.has_rows and not self._has_rows(known.file):
            return _Column(self._held(known.field, named) or named, named, new.file)
        known = replace(known, has_rows=True)
        if named == known.bound:
            return known
        try:
            bound = merge_fields([known.bound], [named], self._rules)[0]
        except MismatchError as error:
            if not self._has_rows(new.file):
                return known
            raise InvalidRequestError(
                f"two of the existing files have different types of a column: use another destination, {OR_OVERWRITE}",
                column=error.path,
                first=known.file.path,
                first_type=error.known,
                other=new.file.path,
                other_type=error.given,
            ) from error
        if bound == known.bound:
            return known
        field = self._held(known.field, bound) or bound
        if not self._has_rows(new.file):
            return replace(known, field=field)
        return replace(known, field=field, bound=bound, file=new.file)

    @property
    def _rules(self) -> Rules:
        return Rules(file_format=self.file_format, merge=True, written=True)

    def _held(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return a field that can represent the values of both fields, or None if no field can."""
        try:
            return merge_fields([one], [other], self._rules)[0]
        except MismatchError:
            return None

    def _has_rows(self, file: File) -> bool:
        """Check whether a file has rows. The types in a file without rows (an empty data frame) may be guesses.

        This is called until a file with rows is found, and for files whose types differ. Each file is checked only
        once.
        """
        if file.path not in self.known_rows:
            self.known_rows[file.path] = self._any_rows(file)
        return self.known_rows[file.path]

    def _any_rows(self, file: File) -> bool:
        with naming_file(file.path), opener(self.ctx)(file) as source:
            schema = self.file_format.read_schema(source, self.options)
        with naming_file(file.path), opener(self.ctx)(file) as source:
            batches = self.file_format.read_batches(source, schema, schema.names[:1], None, self.options, None)
            return any(batch.num_rows for batch in batches)
