"""What the footers of files tell that Holdfast did not write, held against the columns that Spark is to read.

Where a file's type is another one, Spark's readers take its bits for the wanted type, cut them or give null, and say
nothing. So all footers are asked, as Spark does it for ``mergeSchema``: by its tasks, over the files it has listed.
"""

from __future__ import annotations

import json

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from holdfast.commit.ids import file_owner
from holdfast.spark.failures import first_line

__all__ = ["holds_others", "unlike_footers"]


def holds_others(frame: DataFrame) -> bool:
    """Whether Spark has listed files that Holdfast did not name."""
    files = frame._jdf.queryExecution().analyzed().relation().location().inputFiles()
    jvm = frame.sparkSession._jvm
    assert jvm is not None, "a native read is classic Spark's"
    # One text: an answer for each of 100,000 files would take longer than to read them.
    return any(
        file_owner(path) is None
        for path in jvm.org.apache.hadoop.util.StringUtils.join("\n", files).split("\n")
        if path
    )


def unlike_footers(spark: SparkSession, frame: DataFrame) -> str:
    """Why the files' own types are not all those that Spark is to read; empty if they are.

    What files hold besides does not count.

    Args:
        frame: as Spark's reader loaded it, over a format whose files tell their columns.
    """
    relation = frame._jdf.queryExecution().analyzed().relation()
    files = relation.location().allFiles()
    # A file that is empty, or damaged, is a matter of the read.
    options = relation.options().updated("mergeSchema", "true").updated("ignoreCorruptFiles", "true")
    try:
        found = relation.fileFormat().inferSchema(spark._jsparkSession, options, files)
    except (PySparkException, Py4JError) as error:
        return f"the files' own columns do not go together: {first_line(error)}"
    if not found.isDefined():
        return "no file tells its columns"
    path = _first_unlike("", StructType.fromJson(json.loads(found.get().json())), frame.schema)
    return path and f"a file's column is not of the type that is read, and Spark would change its values: {path}"


def _first_unlike(path: str, theirs: DataType, mine: DataType) -> str:
    """The first column of another type, at any depth; empty if there is none."""
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
