"""Build the options with which Spark's own reader returns the same rows as the Python reader, in any session."""

from __future__ import annotations

from holdfast.formats import get_format
from holdfast.options.read import ReadOptions
from holdfast.spark.file_format import FormatChoice
from holdfast.table.contract import TableRecord

_NO_COLUMN = "\0corrupt"  # no column has this name


def spark_options(table: TableRecord | None, choice: FormatChoice, options: ReadOptions) -> dict[str, str]:
    """Return options for Spark's reader.

    Args:
        table: the table as the log records it; None if the log records none.
        choice: the format.
        options: the options of the read.
    """
    given = dict(choice.option_strings)
    given["__globPaths__"] = "false"  # take paths literally, whatever characters they contain
    # Files that were deleted or cannot be read are errors.
    given |= {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
    if choice.name in ("json", "csv"):
        given["columnNameOfCorruptRecord"] = _NO_COLUMN  # else Spark may write into one of the table's columns
    if choice.name == "json" or (choice.name == "csv" and table is None):
        # Without this option, invalid values silently become null. CSV tables cannot have it: their older files may
        # lack columns.
        given["mode"] = "FAILFAST"
    zone = (table.time_zone if table is not None else "") or options.time_zone
    if zone:
        given["timeZone"] = zone
    if choice.name == "csv":
        needed = get_format("csv").reader_options(choice.parsed(""))
        given |= {name.lower(): value for name, value in needed.items()}
        given["multiLine"] = "true"
        if table is None:
            given["enforceSchema"] = "false"  # refuse headers in another order; a table's headers were checked before
    if choice.name == "parquet":
        # Do not rebase dates in files without metadata about their calendar, such as Holdfast's.
        given |= {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
        given["parquet.page.verify-checksum.enabled"] = "true"  # a Hadoop setting: without it, damage is read as data
    if choice.name == "orc":  # these become Hadoop settings
        given |= {"orc.force.positional.evolution": "false", "orc.skip.corrupt.data": "false"}
    return given
