"""Which format a destination's files have, and with which options each is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from holdfast.commit import Snapshot
from holdfast.errors import InvalidRequestError
from holdfast.formats import FormatOptions, format_of_name, get_format
from holdfast.formats.lines.blocks import codec_of_name
from holdfast.options.parsing import ReadOptions, parse_late_format_options
from holdfast.table import ReadSettings, first_with_rows
from holdfast.table.contract import decode_table

__all__ = ["FormatChoice"]

_STREAM_FORMATS = ("csv", "json", "text")
_ZONED_FORMATS = ("csv", "json")  # an instant may be written there without a zone


@dataclass(frozen=True)
class FormatChoice:
    """A format and its option strings; plain values, for they travel to tasks."""

    name: str
    option_strings: Mapping[str, str] = field(default_factory=dict)
    time_zone: str = "UTC"

    @classmethod
    def of(cls, options: ReadOptions, snapshot: Snapshot) -> FormatChoice:
        """What the user said, else what the newest decision kept, else what the files are called.

        Raises:
            InvalidRequestError: nothing tells the format, or an option is not the format's or not the table's.
        """
        table = None if snapshot.table is None else decode_table(snapshot.table)
        name = options.file_format or (table.file_format if table is not None else _format_of(snapshot))
        name = get_format(name).name
        kept = table.reader_options if table is not None and table.file_format == name else {}
        strings = {key.lower(): value for key, value in kept.items()}
        strings |= {key.lower(): value for key, value in options.format_options.items()}
        if options.time_zone is not None and name in _ZONED_FORMATS:
            strings["timezone"] = options.time_zone
        zone = (table.time_zone if table is not None else "") or options.time_zone or "UTC"
        choice = cls(name, strings, zone)
        parsed = choice.parsed("")
        if table is not None and table.file_format == name:
            _require_kept(table.reader_options, get_format(name).reader_options(parsed))
        return choice

    def settings(self, path: str, split_bytes: int) -> ReadSettings:
        """How the file at `path` is read."""
        return ReadSettings(
            file_format=get_format(self.name),
            format_options=self.parsed(path),
            split_bytes=max(split_bytes, 1),
            time_zone=self.time_zone,
        )

    def settings_of(self, split_bytes: int) -> Callable[[str], ReadSettings]:
        """`settings` as a function of the path alone, which looks only at what tells files of a format apart."""
        known: dict[str, ReadSettings] = {}

        def settings(path: str) -> ReadSettings:
            ending = path[path.rfind(".") :].lower() if self.name in _STREAM_FORMATS else ""
            if ending not in known:
                known[ending] = self.settings(path, split_bytes)
            return known[ending]

        return settings

    def parsed(self, path: str) -> FormatOptions:
        """The options for the file at `path`: for text files the name tells the codec, as in Spark."""
        strings = dict(self.option_strings)
        if self.name in _STREAM_FORMATS:
            strings.pop("compression", None)
            strings.pop("codec", None)
        parsed = parse_late_format_options(strings, self.name)
        if self.name in _STREAM_FORMATS:
            return replace(parsed, codec=codec_of_name(path))  # type: ignore[call-arg]  # all of these have one
        return parsed


def _require_kept(kept: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Files read with other options than they were written with give other rows."""
    for name, value in kept.items():
        if given.get(name, value) != value:
            raise InvalidRequestError(
                "the table's files are written with another value of a format option: leave the option out",
                option=name,
                there=value,
                given=given[name],
            )


def _format_of(snapshot: Snapshot) -> str:
    first = first_with_rows(snapshot.files)
    assert first is not None  # a snapshot without files has a table, or there is nothing to read
    known = format_of_name(first.path)
    if known is not None:
        for file in snapshot.files:
            other = format_of_name(file.path)
            if other is not None and other is not known and file.size_bytes:
                raise InvalidRequestError(
                    "the files are of different formats: read them one by one, or give the option fileFormat to read "
                    "all of them as one",
                    first=first.path,
                    other=file.path,
                )
        return known.name
    raise InvalidRequestError(
        "the files' names do not tell their format: give it (the option fileFormat, --format on a command line)",
        file=first.path,
    )
