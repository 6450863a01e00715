"""Whether Spark's own file systems see a destination, and by which path."""

from __future__ import annotations

import logging
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from holdfast.commit import CommitContext
from holdfast.commit.layout import log_entry
from holdfast.spark.options import StoreOptions
from holdfast.stores.s3_options import S3Options

__all__ = ["hadoop_path"]

_log = logging.getLogger(__name__)

_SCHEMES = {"file": "file", "s3": "s3a"}


def hadoop_path(spark: SparkSession, ctx: CommitContext, store: StoreOptions, head: int) -> tuple[str | None, str]:
    """The destination's path in Spark's own words; or None, and why Spark cannot open it.

    Guarantee: it is the same place: the newest decision is seen there, too.

    Args:
        head: number of the newest decision, 0 for none.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return None, "over Spark Connect nobody can look whether the server sees the same files"
    scheme, _, rest = ctx.url.partition("://")
    if scheme not in _SCHEMES:
        return None, f"Spark has no file system for {scheme}://"
    if scheme == "s3" and store.s3 != S3Options():
        # Hadoop keeps one file system a bucket, whatever options a read has: it would be asked with other keys.
        return None, "endpoint and keys are given to this read alone; set them as spark.hadoop.fs.s3a.… instead"
    path = f"{_SCHEMES[scheme]}://{rest.rstrip('/')}"
    seen = log_entry(head) if head else ""
    try:
        if not _exists(spark, jvm, f"{path}/{seen}" if seen else path):
            return None, "Spark's file system does not see the destination"
    except Py4JError as error:
        _log.debug("Spark cannot open %s", path, exc_info=error)
        return None, f"Spark cannot open {_SCHEMES[scheme]}:// paths here, its classes or its keys are missing"
    return path, ""


def _exists(spark: SparkSession, jvm: Any, path: str) -> bool:
    found = jvm.org.apache.hadoop.fs.Path(path)
    file_system = found.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    return bool(file_system.exists(found))
