"""The formats by name. Each is loaded when it is first asked for: a process of a Spark job needs one of them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.formats.base import FileFormat
from holdfast.formats.options import nearest

__all__ = ["FORMATS", "format_name", "format_of_name", "get_format"]

_NAMES: Mapping[str, tuple[str, ...]] = {
    "parquet": ("pq",),
    "csv": (),
    "json": ("jsonl", "ndjson"),
    "orc": (),
    "text": ("txt",),
    "arrow": ("ipc", "feather"),
    "avro": (),
}  # with the aliases of each; the module `format` of the package of the name holds it, under the name in capitals
_BY_ALIAS = {alias: name for name, aliases in _NAMES.items() for alias in (name, *aliases)}


class _Formats(Mapping[str, FileFormat[Any]]):
    """Looks like a dictionary that holds all of them."""

    def __getitem__(self, name: str) -> FileFormat[Any]:
        if name not in _NAMES:
            raise KeyError(name)
        found: FileFormat[Any] = getattr(importlib.import_module(f"holdfast.formats.{name}.format"), name.upper())
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


FORMATS: Mapping[str, FileFormat[Any]] = _Formats()


def format_of_name(path: str) -> FileFormat[Any] | None:
    """The format that a file's name tells, also behind the ending of a codec; None if it tells none."""
    words = path.rpartition("/")[2].lower().split(".")[1:]
    return next((FORMATS[_BY_ALIAS[word]] for word in reversed(words) if word in _BY_ALIAS), None)


def format_name(name: str) -> str:
    """The one name of the format of that name or alias, in any case.

    Raises:
        InvalidRequestError: no such format; the message offers the nearest names.
    """
    try:
        return _BY_ALIAS[name.strip().lower()]
    except KeyError:
        raise InvalidRequestError(f"no such file format: {nearest(name, FORMATS)}", format=name) from None


def get_format(name: str) -> FileFormat[Any]:
    """The format of that name or alias, in any case.

    Raises:
        InvalidRequestError: no such format; the message offers the nearest names.
    """
    return FORMATS[format_name(name)]
