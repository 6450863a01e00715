"""Read and write file formats through `FileFormat`, one package per format.

A format's module, and with it pyarrow, is imported when the format is first requested.
"""

from holdfast.formats.base import (
    BatchWriter,
    ByteSink,
    FileFormat,
    FormatOptions,
    ParsedOptions,
    RowFilter,
    require_all,
)
from holdfast.formats.registry import FORMATS, format_name, format_of_name, get_format

__all__ = [
    "FORMATS",
    "BatchWriter",
    "ByteSink",
    "FileFormat",
    "FormatOptions",
    "ParsedOptions",
    "RowFilter",
    "format_name",
    "format_of_name",
    "get_format",
    "require_all",
]
