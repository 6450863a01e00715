"""Compare the footers of files that Holdfast did not write with the columns that Spark will read.

If a column has another type in a file, Spark's readers silently reinterpret its bits, truncate values or return null.
So all footers are read first, as Spark does for ``mergeSchema``: by Spark's tasks, from the files that Spark has
listed.
"""

from __future__ import annotations

import json

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from holdfast.commit.ids import file_owner
from holdfast.spark.failures import first_line


def has_foreign_files(frame: DataFrame) -> bool:
    """Check whether Spark has listed files that Holdfast did not write."""
    files = frame._jdf.queryExecution().analyzed().relation().location().inputFiles()
    jvm = frame.sparkSession._jvm
    assert jvm is not None, "a native read is classic Spark's"
    # Fetch all paths as one string: one call to the JVM per path would take longer than reading 100,000 files.
    return any(
        file_owner(path) is None
        for path in jvm.org.apache.hadoop.util.StringUtils.join("\n", files).split("\n")
        if path
    )


def unlike_footers(spark: SparkSession, frame: DataFrame) -> str:
    """Describe how the files' types differ from the types that Spark will read; empty if they do not.

    Additional columns in the files are ignored.

    Args:
        frame: a DataFrame from Spark's reader, in a format whose files describe their columns.
    """
    relation = frame._jdf.queryExecution().analyzed().relation()
    files = relation.location().allFiles()
    # Skip files that are empty or damaged here: the read itself reports them.
    options = relation.options().updated("mergeSchema", "true").updated("ignoreCorruptFiles", "true")
    try:
        found = relation.fileFormat().inferSchema(spark._jsparkSession, options, files)
    except (PySparkException, Py4JError) as error:
        return f"the files' columns contradict each other: {first_line(error)}"
    if not found.isDefined():
        return "no file describes its columns"
    path = _first_unlike("", StructType.fromJson(json.loads(found.get().json())), frame.schema)
    return path and f"a file's column has another type than the one read, and Spark would change its values: {path}"


def _first_unlike(path: str, theirs: DataType, mine: DataType) -> str:
    """Return the path of the first column or nested field whose types differ; empty if there is none."""
    if isinstance(theirs, StructType) and isinstance(mine, StructType):
        known = {field.name.lower(): field.dataType for field in mine.fields}
        for field in theirs.fields:
            name = field.name.lower()
            if name in known and (found := _first_unlike(f"{path}{field.name}.", field.dataType, known[name])):
                return found
        return ""
    if isinstance(theirs, ArrayType) and isinstance(mine, ArrayType):
        return _first_unlike(f"{path}element.", theirs.elementType, mine.elementType)
    if isinstance(theirs, MapType) and isinstance(mine, MapType):
        keys = _first_unlike(f"{path}key.", theirs.keyType, mine.keyType)
        return keys or _first_unlike(f"{path}value.", theirs.valueType, mine.valueType)
    return "" if theirs.simpleString() == mine.simpleString() else path.removesuffix(".")
