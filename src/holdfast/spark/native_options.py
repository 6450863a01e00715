"""What Spark's own reader is told, so that it reads what the Python reader reads, whatever the session says."""

from __future__ import annotations

from holdfast.formats import get_format
from holdfast.options.parsing import ReadOptions
from holdfast.spark.file_format import FormatChoice
from holdfast.table.contract import TableRecord

__all__ = ["spark_options"]

_NO_COLUMN = "\0corrupt"  # no column is called that


def spark_options(table: TableRecord | None, choice: FormatChoice, options: ReadOptions) -> dict[str, str]:
    """Options for Spark's reader.

    Args:
        table: what the log tells; None: of a directory in which Holdfast never wrote.
        choice: the format.
        options: of the read.
    """
    given = dict(choice.option_strings)
    given["__globPaths__"] = "false"  # a path is a path, whatever characters it holds
    # Rows that are not there any more, or cannot be read, are an error.
    given |= {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
    if choice.name in ("json", "csv"):
        given["columnNameOfCorruptRecord"] = _NO_COLUMN  # else Spark puts nothing, or the whole line, into one of ours
    if choice.name == "json" or (choice.name == "csv" and table is None):
        given["mode"] = "FAILFAST"  # else what does not parse is null without a word; but CSV may grow by columns
    zone = (table.time_zone if table is not None else "") or options.time_zone
    if zone:
        given["timeZone"] = zone
    if choice.name == "csv":
        needed = get_format("csv").reader_options(choice.parsed(""))
        given |= {name.lower(): value for name, value in needed.items()}
        given["multiLine"] = "true"
        if table is None:
            given["enforceSchema"] = "false"  # a header in another order is refused; a table's were looked at
    if choice.name == "parquet":
        # Files without a note on their calendar are taken as they are; ours have none, for nothing in them is rebased.
        given |= {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
    if choice.name == "orc":  # these go to Hadoop's settings
        given |= {"orc.force.positional.evolution": "false", "orc.skip.corrupt.data": "false"}
    return given
