"""Choose a file format and parse its options once per process; refuse options that are not valid in a call."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.formats import FORMATS, FileFormat, FormatOptions, ParsedOptions, get_format
from holdfast.wording import suggest_nearest


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
        found: FormatOptions = self._parsed_options.options
        return found

    @functools.cached_property
    def _parsed_options(self) -> ParsedOptions[Any]:
        return self.file_format.parse_options(self.strings)

    def check(self, known: Iterable[str]) -> FormatRequest:
        """Check that every option of the format is known and can be parsed; return self.

        Args:
            known: names of options that are valid besides those of the format; only used for suggestions.

        Raises:
            InvalidRequestError: an option is unknown, or its value is invalid.
        """
        refuse_unknown_options(self._parsed_options.unknown, (*known, *self.file_format.parsers))
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "strings": self.strings}


# --- unknown options --------------------------------------------------------------------------------------------------
_SHORTEST = 4
"""The least letters of a name that may stand for a longer one."""


def refuse_unknown_options(unknown: Iterable[str], known: Iterable[str]) -> None:
    """Raise an error if there are options that are not valid in this call.

    Args:
        unknown: the names of the invalid options, as given.
        known: the names that are valid in this call, including those of the chosen format.

    Raises:
        InvalidRequestError: there are unknown options; the message suggests the valid name that ends in this one or is
            nearest to it, or the format that has an option with this name.
    """
    unknown = tuple(unknown)
    if not unknown:
        return
    documented = {name.lower(): name for name in known}
    of_formats = {name for one in FORMATS.values() for name in one.parsers} - set(documented)
    for key in unknown:
        longer = [name for low, name in documented.items() if len(key) >= _SHORTEST and low.endswith(key.lower())]
        if longer:  # user for namespaceUser: nearer than any name that merely looks alike
            raise InvalidRequestError(f"unknown option: did you mean {' or '.join(longer)}", option=key)
        near = difflib.get_close_matches(key.lower(), [*documented, *sorted(of_formats)], n=1, cutoff=0.5)
        if near and near[0] in of_formats:
            owners = [one.name for one in FORMATS.values() if near[0] in one.parsers]
            raise InvalidRequestError(
                f"unknown option: {near[0]} is an option of {' and '.join(owners)} files: leave it out, or choose that "
                "format",
                option=key,
            )
        # Spark lower-cases what the user wrote; show the names as the documentation spells them.
        hint = re.sub(
            r"[\w.]+", lambda word: documented.get(word.group(), word.group()), suggest_nearest(key, documented)
        )
        raise InvalidRequestError(f"unknown option: {hint}", option=key)
