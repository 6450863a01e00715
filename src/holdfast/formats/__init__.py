"""File formats: one package each, all behind `FileFormat`. A format, and pyarrow, is loaded when it is asked for."""

from holdfast.formats.base import (
    BatchWriter,
    ByteSink,
    FileFormat,
    FormatOptions,
    ParsedOptions,
    RowFilter,
    require_all,
)
from holdfast.formats.options import nearest
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
    "nearest",
    "require_all",
]
