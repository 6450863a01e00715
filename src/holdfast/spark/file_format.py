"""Determine the format of a destination's files, and the options with which each file is read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.commit import Snapshot
from holdfast.commit.ids import file_owner
from holdfast.errors import InvalidRequestError
from holdfast.formats import FileFormat, FormatOptions, format_of_path, get_format
from holdfast.formats.lines import codec_of_name
from holdfast.options.file_format import FormatRequest
from holdfast.options.read import READ_KEYS, ReadOptions
from holdfast.table.contract import TableRecord, decode_table
from holdfast.table.reader import ReadSettings, find_first_nonempty_or_first


@dataclass(frozen=True)
class DestinationFormat:
    """The format of a destination's files, and its options as strings.

    Spark sends it to tasks, so all fields are plain values.
    """

    name: str
    option_strings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, options: ReadOptions, snapshot: Snapshot) -> DestinationFormat:
        """Choose the format that the user gave, else that of the newest log entry, else that of the file names.

        Raises:
            InvalidRequestError: the format is unknown, or an option does not fit the format or the table.
        """
        table = None if snapshot.table is None else decode_table(snapshot.table)
        name = options.file_format or (table.file_format if table is not None else _detect_snapshot_format(snapshot))
        name = get_format(name).name
        recorded = table.reader_options if table is not None and table.file_format == name else {}
        strings = {key.lower(): value for key, value in recorded.items()}
        strings |= {key.lower(): value for key, value in options.format_options.items()}
        _require_typed_files(get_format(name), table, snapshot)
        choice = cls(name, strings)
        parsed = choice.parse_options_for("")
        if table is not None and table.file_format == name:
            _require_options_as_recorded(table.reader_options, get_format(name).reader_options(parsed))
        return choice

    def settings(self, path: str, split_bytes: int) -> ReadSettings:
        """Return the settings with which to read the file at `path`."""
        return ReadSettings(
            file_format=get_format(self.name),
            format_options=self.parse_options_for(path),
            split_bytes=max(split_bytes, 1),
        )

    def make_settings_by_path(self, split_bytes: int) -> Callable[[str], ReadSettings]:
        """Return a function that takes a path and returns its `settings`, building them once per file extension."""
        known: dict[str, ReadSettings] = {}

        def make_settings(path: str) -> ReadSettings:
            extension = path[path.rfind(".") :].lower() if get_format(self.name).is_text else ""
            if extension not in known:
                known[extension] = self.settings(path, split_bytes)
            return known[extension]

        return make_settings

    def parse_options_for(self, path: str) -> FormatOptions:
        """Parse the format options for the file at `path`. As in Spark, a text file's name determines its codec."""
        if get_format(self.name).is_text:
            return replace(self._parsed_options, codec=codec_of_name(path))  # type: ignore[call-arg]  # all of these have one
        return self._parsed_options

    @functools.cached_property
    def _parsed_options(self) -> FormatOptions:
        strings = dict(self.option_strings)
        if get_format(self.name).is_text:
            strings.pop("compression", None)
            strings.pop("codec", None)
        return FormatRequest(self.name, strings).check(READ_KEYS).options

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_options"}


def _require_typed_files(file_format: FileFormat[Any], table: TableRecord | None, snapshot: Snapshot) -> None:
    """Refuse files that do not tell the types of their values, except those that Holdfast wrote into its own table."""
    if file_format.tells_types:
        return
    described = table is not None and table.file_format == file_format.name
    for file in snapshot.files:
        if file.size_bytes and not (described and file_owner(file.path)):
            if table is not None and not described:
                raise InvalidRequestError(
                    "the table is in another format: leave out the format", table=table.file_format
                )
            raise InvalidRequestError(
                f"{file_format.name} files that no log describes are read by Spark only: use spark.read, or write the "
                "table with the committer two_phase",
                file=file.path,
            )


def _require_options_as_recorded(recorded: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Refuse options that differ from those with which the files were written: the read would return other rows."""
    for name, value in recorded.items():
        if given.get(name, value) != value:
            raise InvalidRequestError(
                "the table's files were written with another value of a format option: leave the option out",
                option=name,
                table=value,
                given=given[name],
            )


def _detect_snapshot_format(snapshot: Snapshot) -> str:
    first = find_first_nonempty_or_first(snapshot.files)
    assert first is not None  # without files and without a table, the read was refused before
    known = format_of_path(first.path)
    if known is not None:
        for file in snapshot.files:
            if file.size_bytes and format_of_path(file.path) not in (None, known):
                raise InvalidRequestError(
                    "the files have different formats: read them separately, or give the option fileFormat to read all "
                    "of them as one format",
                    first=first.path,
                    other=file.path,
                )
        return known
    raise InvalidRequestError(
        "the file names do not show the format: give it (option fileFormat, --format on a command line)",
        file=first.path,
    )
