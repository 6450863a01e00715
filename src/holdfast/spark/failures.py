"""Report Holdfast's errors to the Spark user in one sentence, instead of pages of stack traces."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Iterator

import holdfast.errors as errors
from holdfast.errors import HoldfastError, UnsupportedError

_log = logging.getLogger(__name__)

_SHOWN = re.compile(r"holdfast\.errors\.(\w+Error): (.+)")


@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """Raise Holdfast's errors without cause and stack trace.

    Everything that Spark calls in a worker process runs in this context.

    PySpark sends the whole traceback to the driver, which prints it together with the JVM's. PySpark omits the
    traceback if the environment variable below is set in the worker process, which ends after the error anyway.
    """
    try:
        yield
    except HoldfastError as error:
        _log.debug("the error's causes", exc_info=error)
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise error from None


def find_holdfast_error(error: BaseException) -> HoldfastError | None:
    """Return the Holdfast error inside Spark's error, or one that explains why workers cannot run; None for others."""
    found = None
    for match in _SHOWN.finditer(str(error)):
        found = match  # the last one ended the job
    if found is None:
        return find_worker_problem(str(error))
    kind = getattr(errors, found[1], None)
    if not (isinstance(kind, type) and issubclass(kind, HoldfastError)):
        return None
    return kind(found[2].strip())


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
    """Explain what is wrong with the Python of Spark's workers, if Spark's message shows that."""
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
