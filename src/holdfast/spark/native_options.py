"""Detect reads for which no option makes Spark's own reader return the same as the Python reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

from holdfast.options.read import ReadOptions
from holdfast.spark.file_format import FormatChoice
from holdfast.table.contract import TableRecord

_TIME = re.compile(r"\btime\(\d\)")
_TIME_TYPE = "spark.sql.timeType.enabled"
_WITHOUT_ORC_INSTANTS = "4.1."
"""These releases do not know ORC's own name of the type, "timestamp with local time zone"."""

_FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
# Session settings that no option of a read overrides, and the value under which both readers return the same. A setting
# that a Spark release does not have counts as unset.
_SETTINGS: Mapping[str, str] = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.files.archive.reader.enabled": "false",
    "spark.sql.files.ignoreInvalidPartitionPaths": "false",
    "spark.sql.files.ignoredPathSegmentRegex": "^[._]",
    "spark.sql.sources.validatePartitionColumns": "true",
}
_SETTINGS_OF: Mapping[str, Mapping[str, str]] = {
    "parquet": {
        "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
        "spark.sql.parquet.int96TimestampConversion": "false",
    },
    "orc": {"spark.sql.orc.impl": "native"},
}


def limit_of_read(spark: SparkSession, options: ReadOptions, choice: FormatChoice) -> str:
    """Return the reason why Spark's own reader cannot do a read with this format and these options; empty if it can."""
    if choice.name not in _SETTINGS_OF:
        return "Spark's own reader reads Parquet and ORC only as Holdfast does: of text, it silently changes values"
    if options.split_size_bytes != ReadOptions(store=options.store).split_size_bytes:
        return "splitSize is an option of the Python reader"
    for name, wanted in {**_SETTINGS, **_SETTINGS_OF[choice.name]}.items():
        found = str(spark.conf.get(name, wanted))
        if found.lower() != wanted.lower():
            return f"with {name}={found} Spark may read other rows or values"
    return ""


def limit_of_columns(spark: SparkSession, choice: FormatChoice, schema: StructType) -> str:
    """Return the reason why Spark's own reader cannot read these columns; empty if it can."""
    kinds = list(_types(schema))
    fields = [field for kind in kinds if isinstance(kind, StructType) for field in kind.fields]
    if choice.name == "orc":
        for field in fields:
            if not field.name or "`" in field.name:
                return f"Spark does not find ORC columns whose name is empty or contains a backtick: {field.name!r}"
        for name in schema.names:
            if name.startswith("_col"):
                return f"Spark matches ORC columns by position if all names in a file start with _col: {name!r}"
        if spark.version.startswith(_WITHOUT_ORC_INSTANTS) and any(isinstance(one, TimestampType) for one in kinds):
            return f"Spark {spark.version} cannot read timestamps in ORC files that it did not write itself"
    if _TIME.search(schema.simpleString()) and str(spark.conf.get(_TIME_TYPE, "true")).lower() != "true":
        return f"without {_TIME_TYPE}=true Spark cannot read columns of type TIME"
    if choice.name == "parquet" and str(spark.conf.get(_FIELD_IDS, "false")).lower() == "true":
        for field in fields:
            if "parquet.field.id" in field.metadata:
                return f"with {_FIELD_IDS}=true Spark matches columns by ids, which files may lack"
    return ""


def _types(kind: DataType) -> Iterator[DataType]:
    """Yield a type, and all types nested in it."""
    yield kind
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _types(field.dataType)
    elif isinstance(kind, ArrayType):
        yield from _types(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _types(kind.keyType)
        yield from _types(kind.valueType)


def spark_options(table: TableRecord, choice: FormatChoice, options: ReadOptions) -> dict[str, str]:
    """Return options for Spark's reader, with which it reads the same as the Python reader.

    Args:
        choice: the format.
        options: the options of the read.
    """
    given = dict(choice.option_strings)
    given["__globPaths__"] = "false"  # take paths literally, whatever characters they contain
    # Files that were deleted or cannot be read are errors.
    given |= {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
    if choice.name == "parquet":
        # Do not rebase dates in files without metadata about their calendar, such as Holdfast's.
        given |= {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
        given["parquet.page.verify-checksum.enabled"] = "true"  # a Hadoop setting: without it, damage is read as data
    if choice.name == "orc":  # these become Hadoop settings
        given |= {"orc.force.positional.evolution": "false", "orc.skip.corrupt.data": "false"}
    return given
