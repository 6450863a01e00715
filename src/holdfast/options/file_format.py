"""Choose a file format and parse its options once per process."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.formats import FileFormat, FormatOptions, ParsedOptions, get_format
from holdfast.options.unknown import refuse_unknown


@dataclass(frozen=True)
class FormatRequest:
    """A file format by name, with its options as strings.

    Only the strings are sent to other processes. Each process parses them when it first needs the options: a process
    that only passes the strings on, such as one that commits a job, never loads the format.

    Attributes:
        name: the format's name.
        strings: the format's options as the user gave them.
    """

    name: str = "parquet"
    strings: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_format(self) -> FileFormat[Any]:
        """The format with this name."""
        return get_format(self.name)

    @property
    def options(self) -> FormatOptions:
        """The parsed options.

        Raises:
            InvalidRequestError: a value is invalid.
        """
        found: FormatOptions = self._parsed.options
        return found

    @functools.cached_property
    def _parsed(self) -> ParsedOptions[Any]:
        return self.file_format.parse_options(self.strings)

    def check(self, known: Iterable[str]) -> FormatRequest:
        """Check that every option is known and can be parsed; return self.

        Args:
            known: names of options that are valid besides those of the format; only used for suggestions.

        Raises:
            InvalidRequestError: an option is unknown, or its value is invalid.
        """
        refuse_unknown(self._parsed.unknown, (*known, *self.file_format.parsers))
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "strings": self.strings}
