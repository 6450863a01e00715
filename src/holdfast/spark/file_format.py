"""Which format a destination's files have, and with which options each is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.commit import Snapshot
from holdfast.errors import InvalidRequestError
from holdfast.formats import FORMATS, FormatOptions, get_format
from holdfast.spark.options import ReadOptions, parse_late_format_options
from holdfast.table import ReadSettings

__all__ = ["FormatChoice"]

_STREAM_CODECS = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}
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
            InvalidRequestError: nothing tells the format, or an option is not the format's.
        """
        kept = snapshot.details.get("format")
        name = options.file_format or (kept if isinstance(kept, str) else _format_of(snapshot))
        name = get_format(name).name
        strings: dict[str, str] = {}
        kept_options = snapshot.details.get("format_options")
        if name == kept and isinstance(kept_options, dict):
            strings.update({str(key): str(value) for key, value in kept_options.items()})
        given = {key.lower(): value for key, value in options.format_options.items()}
        if options.time_zone is not None and name in _ZONED_FORMATS:
            given["timezone"] = options.time_zone
        choice = cls(name, {**strings, **given}, options.time_zone or "UTC")
        choice.parsed("")
        return choice

    def settings(self, path: str, split_bytes: int) -> ReadSettings:
        """How the file at `path` is read."""
        return ReadSettings(
            file_format=get_format(self.name),
            format_options=self.parsed(path),
            split_bytes=max(split_bytes, 1),
            time_zone=self.time_zone,
        )

    def parsed(self, path: str) -> FormatOptions:
        """The options for the file at `path`: for text files the name tells the codec, as in Spark."""
        strings = dict(self.option_strings)
        if self.name in _STREAM_FORMATS:
            strings.pop("compression", None)
            strings.pop("codec", None)
            codec = _STREAM_CODECS.get(path[path.rfind(".") :].lower())
            if codec is not None:
                strings["compression"] = codec
        return parse_late_format_options(strings, self.name)


def _format_of(snapshot: Snapshot) -> str:
    words = snapshot.files[0].path.rpartition("/")[2].lower().split(".")[1:]
    for word in reversed(words):
        for known in FORMATS.values():
            if word in (known.name, *known.aliases):
                return known.name
    raise InvalidRequestError(
        "the files' names do not tell their format: give the option fileFormat", file=snapshot.files[0].path
    )
