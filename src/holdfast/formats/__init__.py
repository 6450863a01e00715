"""Read and write file formats through `FileFormat`: a module for each format, some with a second one for reading.

A format's module, and with it pyarrow, is imported when the format is first requested: a process of a Spark job needs
only one. To recognize files of other tools, and for the advice in some errors, all are imported: so a module imports a
package that an extra brings only in its functions, as `avro` does.

To add a format: a module such as `arrow` (for batches) or `avro` (for rows of objects) and a line of `_NAMES`; its name
in the docstring of `spark.write.write`; an extra, in pyproject.toml, and that extra in ``test``; if Spark reads it, a
word in `cli.write.INPUT_FORMATS`: what Spark does not read is no input of ``holdfast write``; if its tools keep tables
of their own, a line in `table.foreign`. `orc` shows how to read only some columns, `parquet` how to split files; a
package of an extra is first imported by `check_schema`, so that the driver fails and not each task. No format's mark
may begin with another one's; if files end with a mark and do not begin with one: `format_of_bytes`, `table.existing`.
Everything else goes by the `FileFormat`: options, reads, the first append to files of others, ``holdfast read``. A read
knows the format of files by their extension alone. Tests: a dialect in tests/matrix/cells.py and its deviations, then
``python -m tests.matrix.document``; `FLAT` in unit/formats/test_round_trip.py; docs/reference/formats.md, options.md.
"""

from __future__ import annotations

import copyreg
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.formats.base import (
    BatchWriter,
    ByteSink,
    FileFormat,
    FormatOptions,
    ParsedOptions,
)
from holdfast.formats.filters import RowFilter, require_all
from holdfast.wording import suggest_nearest

__all__ = [
    "FORMATS",
    "BatchWriter",
    "ByteSink",
    "FileFormat",
    "FormatOptions",
    "ParsedOptions",
    "RowFilter",
    "format_name",
    "format_of_bytes",
    "format_of_path",
    "get_format",
    "require_all",
]

_NAMES: Mapping[str, tuple[str, ...]] = {
    "parquet": ("pq",),
    "csv": (),
    "json": ("jsonl", "ndjson"),
    "orc": (),
    "text": ("txt",),
    "arrow": ("ipc", "feather"),
    "avro": (),
}
"""The aliases of each format. A format is the upper-case constant in the module `holdfast.formats.<name>`."""
_BY_ALIAS = {alias: name for name, aliases in _NAMES.items() for alias in (name, *aliases)}


class _FormatsByName(Mapping[str, FileFormat[Any]]):
    """A read-only mapping of all formats that imports each one on access."""

    def __getitem__(self, name: str) -> FileFormat[Any]:
        if name not in _NAMES:
            raise KeyError(name)
        found: FileFormat[Any] = getattr(importlib.import_module(f"holdfast.formats.{name}"), name.upper())
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


FORMATS: Mapping[str, FileFormat[Any]] = _FormatsByName()


def format_of_path(path: str) -> str | None:
    """Return the name of the format that a file name's extension indicates, ignoring that of a codec; None if none."""
    words = path.rpartition("/")[2].lower().split(".")[1:]
    return next((_BY_ALIAS[word] for word in reversed(words) if word in _BY_ALIAS), None)


def format_of_bytes(start: bytes) -> str | None:
    """Return the name of the format whose files start with these bytes; None if there is none."""
    return next((one.name for one in FORMATS.values() if one.magic and start.startswith(one.magic)), None)


def format_name(name: str) -> str:
    """Return the canonical name of a format, given its name or an alias in upper or lower case.

    Raises:
        InvalidRequestError: there is no such format; the message suggests the closest names.
    """
    try:
        return _BY_ALIAS[name.strip().lower()]
    except KeyError:
        raise InvalidRequestError(f"no such file format: {suggest_nearest(name, FORMATS)}", format=name) from None


def get_format(name: str) -> FileFormat[Any]:
    """Return a format, given its name or an alias in upper or lower case.

    Raises:
        InvalidRequestError: there is no such format; the message suggests the closest names.
    """
    return FORMATS[format_name(name)]


def _pickle_by_name(file_format: FileFormat[Any]) -> tuple[Callable[[str], FileFormat[Any]], tuple[str]]:
    """Pickle a format as its name, because its functions cannot be pickled.

    Spark sends settings from process to process.
    """
    return get_format, (file_format.name,)


copyreg.pickle(FileFormat, _pickle_by_name)
