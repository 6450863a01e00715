"""Find the path under which Spark's own file systems, those of Hadoop, see a destination."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from holdfast.commit import CommitContext
from holdfast.commit.layout import log_entry_path
from holdfast.errors import NotFoundError
from holdfast.options.location import LocationOptions
from holdfast.stores.provider import HadoopFileSystem
from holdfast.stores.registry import locate_url, options_for_provider

_log = logging.getLogger(__name__)

_NO_CLASSES = ("java.lang.ClassNotFoundException", "java.lang.NoClassDefFoundError", "UnsupportedFileSystemException")
_FILTER = "mapreduce.input.pathFilter.class"


def find_hadoop_path(
    spark: SparkSession, ctx: CommitContext, store: LocationOptions, head: int
) -> tuple[str | None, str]:
    """Find the path under which Spark's Hadoop file systems see a destination.

    Guarantee: the path leads to the same data: at this path, the newest log entry has the same bytes. This is checked
    because Spark may be configured with another server, which may have a bucket and a table with the same names.

    Args:
        head: the number of the newest log entry.

    Returns:
        The path and ``""``, or None and the reason why there is none.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return None, "over Spark Connect it cannot be checked whether the server sees the same files"
    provider, location = locate_url(ctx.url)
    hadoop = provider.hadoop
    if hadoop is None:
        return None, f"Spark has no file system for {provider.schemes[0]}://"
    if options_for_provider(provider, store.store_options) != provider.options():
        # Hadoop caches one file system per bucket, so options that are given to a single read would have no effect.
        return None, f"endpoint and keys are given to this read only; set them as spark.hadoop.{hadoop.settings}"
    path = f"{hadoop.scheme}://{ctx.url.partition('://')[2].rstrip('/')}"
    settings = _copy_hadoop_settings(spark)
    if settings.get(_FILTER):
        return None, f"Hadoop's setting {_FILTER} hides files from Spark"
    try:
        if hadoop.fail_fast is not None:
            with _open_impatient_filesystem(spark, jvm, path, hadoop.fail_fast(location.root)) as file_system:
                found = _does_hadoop_see_same_log_entry(jvm, file_system, path, ctx, head)
            if not found:
                return None, "Spark's file system does not see the destination"
        # Check again with the file system that Spark will use: the one that it created first, maybe with other keys.
        file_system = jvm.org.apache.hadoop.fs.Path(path).getFileSystem(settings)
        if not _does_hadoop_see_same_log_entry(jvm, file_system, path, ctx, head):
            return None, "Spark's file system does not see the destination"
    except (Py4JError, PySparkException) as error:
        _log.debug("Spark cannot open %s", path, exc_info=error)
        return None, f"Spark cannot open {hadoop.scheme}:// paths here, {_explain_hadoop_failure(error, hadoop)}"
    except NotFoundError:
        return None, "the log changes faster than it can be compared"
    return path, ""


def _copy_hadoop_settings(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().newHadoopConf()  # a copy


@contextlib.contextmanager
def _open_impatient_filesystem(spark: SparkSession, jvm: Any, path: str, fail_fast: Mapping[str, str]) -> Iterator[Any]:
    """Create a separate file system that fails fast, to check whether the server accepts Spark's keys."""
    settings = _copy_hadoop_settings(spark)
    for name, value in fail_fast.items():
        settings.set(name, value)
    file_system = jvm.org.apache.hadoop.fs.FileSystem.newInstance(jvm.org.apache.hadoop.fs.Path(path).toUri(), settings)
    try:
        yield file_system
    finally:
        file_system.close()


def _does_hadoop_see_same_log_entry(jvm: Any, file_system: Any, path: str, ctx: CommitContext, head: int) -> bool:
    entry = log_entry_path(head)
    try:
        stream = file_system.open(jvm.org.apache.hadoop.fs.Path(f"{path}/{entry}"))
        try:
            return bytes(stream.readAllBytes()) == ctx.store.get(ctx.key(entry))
        finally:
            stream.close()
    except Py4JJavaError as error:
        if _java_class_name(error) == "java.io.FileNotFoundException":
            return False
        raise


def _java_class_name(error: BaseException) -> str:
    found = getattr(error, "java_exception", None)
    return "" if found is None else str(found.getClass().getName())


def _explain_hadoop_failure(error: BaseException, hadoop: HadoopFileSystem) -> str:
    text = f"{_java_class_name(error)} {error}"
    if any(name in text for name in _NO_CLASSES):
        return f"its classes are missing: put {hadoop.package} on Spark's class path"
    if "AccessDenied" in text:
        return f"its keys are missing or rejected: set them as spark.hadoop.{hadoop.settings}"
    return f"its endpoint does not answer or its settings are wrong: check spark.hadoop.{hadoop.settings}"
