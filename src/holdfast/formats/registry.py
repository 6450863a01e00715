"""The formats by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.formats.arrow import ARROW
from holdfast.formats.avro import AVRO
from holdfast.formats.base import FileFormat
from holdfast.formats.csv import CSV
from holdfast.formats.json import JSON
from holdfast.formats.options import nearest
from holdfast.formats.orc import ORC
from holdfast.formats.parquet import PARQUET
from holdfast.formats.text import TEXT

__all__ = ["FORMATS", "format_of_name", "get_format"]

FORMATS: Mapping[str, FileFormat[Any]] = {value.name: value for value in (PARQUET, CSV, JSON, ORC, TEXT, ARROW, AVRO)}
_BY_ALIAS = {alias: value for value in FORMATS.values() for alias in (value.name, *value.aliases)}


def format_of_name(path: str) -> FileFormat[Any] | None:
    """The format that a file's name tells, also behind the ending of a codec; None if it tells none."""
    words = path.rpartition("/")[2].lower().split(".")[1:]
    return next((_BY_ALIAS[word] for word in reversed(words) if word in _BY_ALIAS), None)


def get_format(name: str) -> FileFormat[Any]:
    """The format of that name or alias, in any case.

    Raises:
        InvalidRequestError: no such format; the message offers the nearest names.
    """
    try:
        return _BY_ALIAS[name.strip().lower()]
    except KeyError:
        raise InvalidRequestError(f"no such file format: {nearest(name, FORMATS)}", format=name) from None
