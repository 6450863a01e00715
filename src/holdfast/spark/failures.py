"""Report Holdfast's errors to the Spark user in one sentence, instead of pages of stack traces."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping

from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException

import holdfast.errors as errors
from holdfast.errors import HoldfastError, InvalidRequestError, UnsupportedError

_log = logging.getLogger(__name__)

_SHOWN = re.compile(r"holdfast\.errors\.(\w+Error): (.+)")


@contextlib.contextmanager
def errors_without_traceback() -> Iterator[None]:
    """Raise Holdfast's errors in a worker process without cause and stack trace, so that the user sees one sentence.

    Everything that Spark calls in a worker process runs in this context.

    PySpark sends the whole traceback to the driver, which prints it together with the JVM's. PySpark omits the
    traceback if ``SPARK_HIDE_TRACEBACK`` is set in the worker process, which ends after the error anyway.
    """
    try:
        yield
    except HoldfastError as error:
        _log.debug("the error's causes", exc_info=error)
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise error from None


def find_holdfast_error(error: BaseException) -> HoldfastError | None:
    """Return the Holdfast error inside Spark's error, or one that explains why workers cannot run; else None."""
    found = None
    for match in _SHOWN.finditer(str(error)):
        found = match  # the last one ended the job
    if found is None:
        return find_worker_problem(str(error))
    kind = getattr(errors, found[1], None)
    if not (isinstance(kind, type) and issubclass(kind, HoldfastError)):
        return None
    return kind(found[2].strip())


@contextlib.contextmanager
def unwrap_task_errors() -> Iterator[None]:
    """Raise the Holdfast error that ended a task, instead of Spark's error about it with pages of stack traces."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        found = find_holdfast_error(error)
        if found is None:
            raise
        raise found from None


# Modules that Holdfast needs. If a user's own function needs another module that is missing, Python's message is clear
# enough.
_MISSING = re.compile(
    r"ModuleNotFoundError: No module named '((?:pyspark_)?holdfast(?:_store)?|pyarrow|pyspark|fsspec|botocore|boto3)\b"
)
_VERSIONS = re.compile(r"different version: (\S+) than that in driver: ([\d.]*\d)")
_PROGRAM = re.compile(r'Cannot run program "([^"]*python[^"]*)"')


def first_line(error: Exception) -> str:
    """Return the first line of Spark's message, which precedes its stack trace."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.toString())
    return text.strip().partition("\n")[0]


def find_worker_problem(text: str) -> HoldfastError | None:
    """Return an error that explains what is wrong with the Python of Spark's workers, if Spark's message shows that."""
    here = f"before Spark starts, such as {sys.executable}"
    if found := _MISSING.search(text):
        return UnsupportedError(
            f"Spark's workers run a Python without {found[1]}: set PYSPARK_PYTHON to one that has holdfast, {here}",
            python=os.environ.get("PYSPARK_PYTHON", "python3"),
        )
    if found := _VERSIONS.search(text):
        return UnsupportedError(
            f"Spark's workers run another Python version than the driver: set PYSPARK_PYTHON to one of the "
            f"same version, {here}",
            python=os.environ.get("PYSPARK_PYTHON", "python3"),
            workers=found[1],
            here=found[2],
        )
    if found := _PROGRAM.search(text):
        return UnsupportedError(
            "Spark's workers do not find the configured Python: set PYSPARK_PYTHON to one that exists on all of their "
            "machines, with holdfast installed",
            python=found[1],
        )
    return None


_WHY = "Spark does not tell a Python source where a table of its catalog is stored"
_INSTEAD = (
    "write with save(path) or holdfast.write, or with save() to a table of a store, and CREATE TEMPORARY VIEW for a "
    "name in SQL"
)

_TABLE_PROPERTIES = {"provider", "owner"}  # reserved properties, which every table of a catalog has
# The ids of the current and the outermost SQL execution; they differ in a statement that creates and fills a table.
_EXECUTION = "spark.sql.execution.id"
_ROOT = "spark.sql.execution.root.id"
_STREAM = "sql.streaming.queryId"  # in foreachBatch, the batch's own writes run inside the stream


def refuse_table_properties(options: Iterable[str]) -> None:
    """Refuse a catalog table when Spark asks for its schema, because the options then contain catalog properties.

    Raises:
        UnsupportedError: a table is being created.
    """
    if {name.lower() for name in options} >= _TABLE_PROPERTIES:
        raise UnsupportedError(f"{_WHY}, so it could not be read: {_INSTEAD}")


def refuse_save_as_table(context: TaskContext) -> None:
    """Refuse ``saveAsTable``. Its writer gets the same options as that of ``save``; only tasks can tell the two apart.

    Raises:
        UnsupportedError: a table is being created.
    """
    own, root = context.getLocalProperty(_EXECUTION), context.getLocalProperty(_ROOT)
    if None not in (own, root) and own != root and context.getLocalProperty(_STREAM) is None:
        raise UnsupportedError(f"{_WHY}, so it could not be read: {_INSTEAD}")


def require_path_option(options: Mapping[str, str]) -> None:
    """Check that the options contain a path; for a catalog table, Spark passes no options.

    Raises:
        InvalidRequestError: there is no path.
    """
    if not any(name.lower() in ("path", "paths") for name in options):
        raise InvalidRequestError(
            f"no destination was given: pass it to save() or load(), or as the option path; {_WHY}"
        )
