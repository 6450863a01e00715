"""Load the input of ``holdfast write`` with Spark, in the format that its name or the user indicates."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import InvalidRequestError, NotFoundError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INPUT_FORMATS = ("csv", "json", "parquet", "orc", "text", "avro")
_EXTENSIONS = {"csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "txt": "text"}
_EXTENSIONS |= {"parquet": "parquet", "orc": "orc", "avro": "avro"}
_CODECS = ("gz", "bz2", "zst", "snappy", "lz4", "deflate", "crc")

_PLAIN = re.compile(r"[^:*?\[\]{}\\]+")
"""A path that is neither a URL nor a pattern."""

_SETTINGS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME")


class Input(NamedTuple):
    """The input that Spark reads.

    Attributes:
        path: a file, a directory, a glob, or a url that the installed Spark supports.
        format: one of `INPUT_FORMATS`.
        options: the user's options for Spark's reader.
        schema: columns and types as DDL; None to infer them.
    """

    path: str
    format: str
    options: Mapping[str, str]
    schema: str | None

    def check(self) -> None:
        """Refuse a local file that does not exist, before Spark starts, if it is certain that Spark would look for it.

        Raises:
            NotFoundError: the input does not exist.
        """
        has_settings = any(name in os.environ for name in _SETTINGS)  # in which a plain path may mean HDFS
        if not has_settings and _PLAIN.fullmatch(self.path) and not Path(self.path).exists():
            raise NotFoundError("the input does not exist: check its path", input=self.path)

    def load(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a DataFrame."""
        reader = spark.read.format(self.format).options(**self._defaults()).options(**self.options)
        if self.schema:
            reader = reader.schema(self.schema)
        return reader.load(self.path)

    def _defaults(self) -> dict[str, str]:
        if self.format not in ("csv", "json"):
            return {}
        found = {"mode": "FAILFAST"}  # by default, Spark turns what it cannot parse into nulls
        if self.format == "json":
            return found
        # With a schema, Spark by default ignores the header: columns in another order would be swapped. Its escape
        # character is a backslash; other programs double quotes (RFC 4180).
        found |= {"header": "true", "inferSchema": "true", "enforceSchema": "false", "escape": '"'}
        if "delimiter" not in map(str.lower, self.options):  # given both names, Spark uses sep
            found["sep"] = "\t" if ".tsv" in PurePosixPath(self.path).name.lower() else ","
        return found


def format_of(path: str) -> str:
    """Return the input format that the extension of a file name indicates, ignoring the extension of a codec.

    Raises:
        InvalidRequestError: the name indicates no format.
    """
    words = PurePosixPath(path).name.lower().split(".")[1:]
    while words and words[-1] in _CODECS:
        words.pop()
    if not words or words[-1] not in _EXTENSIONS:
        raise InvalidRequestError(
            f"the file name does not tell the format of the input: give --input-format {'|'.join(INPUT_FORMATS)}",
            input=path,
        )
    return _EXTENSIONS[words[-1]]
