"""What Spark's own reader reads otherwise than the Python reader, and cannot be told: left to the Python reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from holdfast.options.parsing import ReadOptions
from holdfast.spark.file_format import FormatChoice

__all__ = ["limit_of_columns", "limit_of_read", "limit_of_zones"]

_FORMATS = ("parquet", "orc", "csv", "json", "text")  # what stock Spark reads without another package
_TIME_PARSER = "spark.sql.legacy.timeParserPolicy"
_TIME = re.compile(r"\btime\(\d\)")
_TIME_TYPE = "spark.sql.timeType.enabled"
_FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
# Settings of the session that no option of a read overrules, with the value under which both readers read the same;
# under a name that a release of Spark does not have nothing is set.
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
    "json": {
        "spark.sql.json.enableExactStringParsing": "true",
        "spark.sql.legacy.json.allowEmptyString.enabled": "false",
        "spark.sql.legacy.json.enableDateTimeParsingFallback": "false",
    },
    "csv": {"spark.sql.legacy.csv.enableDateTimeParsingFallback": "false"},
}


def limit_of_read(spark: SparkSession, options: ReadOptions, choice: FormatChoice) -> str:
    """Why a read of a format is not for Spark's own reader; empty if it is."""
    if choice.name not in _FORMATS:
        return f"stock Spark has no {choice.name}"
    if choice.name == "csv" and options.reader == "auto":
        return "Spark reads what does not parse in CSV as null without a word"
    if choice.name in ("csv", "json") and str(spark.conf.get(_TIME_PARSER)).upper() == "LEGACY":
        return f"with {_TIME_PARSER}=LEGACY Spark takes microseconds in text for milliseconds"
    if options.push_filters or options.split_size_bytes != ReadOptions(store=options.store).split_size_bytes:
        return "pushFilters and splitSize are options of the Python reader"
    for name, wanted in {**_SETTINGS, **_SETTINGS_OF.get(choice.name, {})}.items():
        found = str(spark.conf.get(name, wanted))
        if found.lower() != wanted.lower():
            return f"with {name}={found} Spark may read other rows or values"
    return ""


def limit_of_zones(choice: FormatChoice, table_zone: str, time_zone: str | None) -> str:
    """Why text is not for Spark's own reader: the directories' zone is the table's, that of text the session's."""
    if choice.name in ("csv", "json") and table_zone and time_zone and time_zone != table_zone:
        return f"directories name timestamps in {table_zone}, text without a zone in {time_zone}: Spark takes one zone"
    return ""


def limit_of_columns(spark: SparkSession, choice: FormatChoice, schema: StructType) -> str:
    """Why columns are not for Spark's own reader; empty if they are."""
    kinds = list(_types(schema))
    fields = [field for kind in kinds if isinstance(kind, StructType) for field in kind.fields]
    if choice.name == "orc":
        for field in fields:
            if not field.name or "`" in field.name:
                return f"Spark finds no column of ORC whose name is empty or has a backtick: {field.name!r}"
        for name in schema.names:
            if name.startswith("_col"):
                return f"Spark takes columns of ORC by position where all names in a file start with _col: {name!r}"
    if _TIME.search(schema.simpleString()) and str(spark.conf.get(_TIME_TYPE, "true")).lower() != "true":
        return f"without {_TIME_TYPE}=true Spark reads no column of the type TIME"
    if choice.name == "json" and any(
        isinstance(one, MapType) and not isinstance(one.keyType, StringType) for one in kinds
    ):
        return "Spark takes a map in JSON for an object with string keys"
    if choice.name == "parquet" and str(spark.conf.get(_FIELD_IDS, "false")).lower() == "true":
        for field in fields:
            if "parquet.field.id" in field.metadata:
                return f"with {_FIELD_IDS}=true Spark looks for columns by ids that files need not have"
    return ""


def _types(kind: DataType) -> Iterator[DataType]:
    """The type, and all in it at any depth."""
    yield kind
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _types(field.dataType)
    elif isinstance(kind, ArrayType):
        yield from _types(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _types(kind.keyType)
        yield from _types(kind.valueType)
