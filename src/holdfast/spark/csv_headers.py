"""Check the headers of a table's CSV files, because Spark's reader skips headers and goes by position."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import BinaryIO

from holdfast.commit import CommitContext
from holdfast.errors import UnsupportedError
from holdfast.formats.csv.format import CsvOptions, header_names
from holdfast.spark.file_format import FormatChoice
from holdfast.table.contract import TableRecord
from holdfast.table.inferred import File, map_files


def require_headers_in_order(
    ctx: CommitContext,
    files: Iterable[File],
    open_file: Callable[[File], BinaryIO],
    choice: FormatChoice,
    table: TableRecord,
) -> None:
    """Check that every file has the table's columns in the table's order; the last columns may be missing.

    Args:
        files: the table's files.
        choice: the format, CSV.
        table: the table as the log records it.

    Raises:
        UnsupportedError: a file has its columns in another order; the Python reader can read it, because it goes by
            name.
    """
    plain = choice.parsed("")
    if not (isinstance(plain, CsvOptions) and plain.header):
        return
    names = table.data_names
    folded = [name.lower() for name in names]

    def look(file: File, source: BinaryIO) -> None:
        options = choice.parsed(file.path)
        assert isinstance(options, CsvOptions)
        header = header_names(source, options)
        if [name.lower() for name in header] != folded[: len(header)]:
            raise UnsupportedError(
                "a file's header does not list the table's columns in order, and Spark's own reader identifies them by "
                "position: leave out reader=native",
                file=file.path,
                header=header[:20],
                columns=names[:20],
            )

    files = (file for file in files if file.size_bytes)
    deque(map_files(files, open_file, look, ctx.runner.map, footers=True), maxlen=0)
