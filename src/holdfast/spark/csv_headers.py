"""Headers of CSV files, which Spark's reader passes over: it tells a table's columns by position."""

from __future__ import annotations

from typing import Any

from holdfast.commit import CommitContext
from holdfast.commit.layout import iter_visible
from holdfast.errors import UnsupportedError
from holdfast.formats.csv import CsvOptions, header_names
from holdfast.spark.file_format import FormatChoice
from holdfast.table import StoreFile
from holdfast.table.contract import TableRecord

__all__ = ["require_headers_in_order"]


def require_headers_in_order(ctx: CommitContext, choice: FormatChoice, table: TableRecord) -> None:
    """See that every file's columns are the table's in its order; the last ones may be missing.

    Args:
        choice: the format, CSV.
        table: what the log tells of the table.

    Raises:
        UnsupportedError: a file's are not; the Python reader, which goes by the names, can read it.
    """
    names = table.data_names
    folded = [name.lower() for name in names]

    def look(found: tuple[str, int]) -> None:
        path, size_bytes = found
        options = choice.parsed(path)
        assert isinstance(options, CsvOptions)
        file: Any = StoreFile(ctx.store, ctx.key(path), size_bytes)  # a reader's file, which typing.BinaryIO is not
        with file as source:
            header = header_names(source, options)
        if [name.lower() for name in header] != folded[: len(header)]:
            raise UnsupportedError(
                "a file's header has not the table's columns in their order, and Spark's own reader tells them by "
                "position: leave reader=native out",
                file=path,
                header=header[:20],
                columns=names[:20],
            )

    if choice.name == "csv" and getattr(choice.parsed(""), "header", False):
        files = ((path, info.size_bytes) for path, info in iter_visible(ctx.store, ctx.prefix) if info.size_bytes)
        for _ in ctx.runner.map(look, files):
            pass
