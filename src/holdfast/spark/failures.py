"""How an error of ours reaches the person in front of Spark: one sentence instead of pages of stack traces."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Iterator

import holdfast.errors as errors
from holdfast.errors import HoldfastError, UnsupportedError

__all__ = ["first_line", "of_workers", "one_sentence", "typed_again"]

_log = logging.getLogger(__name__)

_SHOWN = re.compile(r"holdfast\.errors\.(\w+Error): (.+)")


@contextlib.contextmanager
def one_sentence() -> Iterator[None]:
    """Around everything that Spark calls in a worker process: our errors leave without causes and stack.

    PySpark sends the whole traceback to the driver, where it is printed together with the JVM's. It leaves it out if
    the variable below is set in the worker, which is over after the error.
    """
    try:
        yield
    except HoldfastError as error:
        _log.debug("the error's causes", exc_info=error)
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise error from None


def typed_again(error: BaseException) -> HoldfastError | None:
    """The error of ours that Spark's error tells of, or of workers that cannot run us; else None."""
    found = None
    for match in _SHOWN.finditer(str(error)):
        found = match  # the last one is the one that ended the job
    if found is None:
        return of_workers(str(error))
    kind = getattr(errors, found[1], None)
    if not (isinstance(kind, type) and issubclass(kind, HoldfastError)):
        return None
    return kind(found[2].strip())


# What Holdfast itself needs; a module that somebody's own function lacks is named well enough by Python.
_MISSING = re.compile(
    r"ModuleNotFoundError: No module named '((?:pyspark_)?holdfast|pyarrow|pyspark|fsspec|botocore|boto3)\b"
)
_VERSIONS = re.compile(r"different version: (\S+) than that in driver: ([\d.]*\d)")
_PROGRAM = re.compile(r'Cannot run program "([^"]*python[^"]*)"')


def first_line(error: Exception) -> str:
    """What Spark says before it lists where in its own code it was."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.toString())
    return text.strip().partition("\n")[0]


def of_workers(text: str) -> HoldfastError | None:
    """What is wrong with the Python that Spark's workers run, if what Spark says tells of that."""
    here = f"before Spark starts, such as {sys.executable}"
    if found := _MISSING.search(text):
        return UnsupportedError(
            f"Spark's workers run a Python without {found[1]}: set PYSPARK_PYTHON to one that has holdfast, {here}",
            python=os.environ.get("PYSPARK_PYTHON", "python3"),
        )
    if found := _VERSIONS.search(text):
        return UnsupportedError(
            f"Spark's workers run another version of Python than the driver: set PYSPARK_PYTHON to one of the same, "
            f"{here}",
            python=os.environ.get("PYSPARK_PYTHON", "python3"),
            workers=found[1],
            here=found[2],
        )
    if found := _PROGRAM.search(text):
        return UnsupportedError(
            "Spark's workers find no Python where they look for it: set PYSPARK_PYTHON to one that all of their "
            "machines have, with holdfast",
            python=found[1],
        )
    return None
