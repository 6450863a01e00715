"""Errors become one sentence on stderr and an exit code; a traceback only with --debug."""

from __future__ import annotations

import re

from holdfast.errors import (
    ConflictError,
    CorruptDataError,
    FencedError,
    HoldfastError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
    UnsupportedError,
)

__all__ = ["INTERRUPTED", "PROBLEM", "STORE", "TERMINATED", "WRONG_USAGE", "as_holdfast_error", "exit_code"]

PROBLEM = 1
"""Something is wrong with the data, or was in the way: a mismatch, damage, a conflict, a job that failed."""
WRONG_USAGE = 2
"""The request cannot be right; nothing happened."""
STORE = 3
"""The store could not be reached, or did not say whether something happened."""
INTERRUPTED = 130
"""Ctrl-C; what was not decided is aborted."""
TERMINATED = 143
"""SIGTERM; as after Ctrl-C."""

_EXTRAS = {"pyspark": "spark", "py4j": "spark", "fastavro": "avro"}


def exit_code(error: HoldfastError) -> int:
    """The exit code of an error, by what the caller does next."""
    if isinstance(error, UnavailableError | OutcomeUnknownError):
        return STORE
    if isinstance(error, ConflictError | CorruptDataError | FencedError):
        return PROBLEM
    return WRONG_USAGE


def as_holdfast_error(error: Exception) -> HoldfastError | None:
    """An error of somebody else's in our words; None if nobody can say what to do about it.

    Covers a missing extra, a missing Java, workers with another Python, and a query that Spark refuses.
    """
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, ModuleNotFoundError):
        module = (error.name or "").partition(".")[0]
        if module in _EXTRAS:
            needed = "PySpark" if _EXTRAS[module] == "spark" else module
            return UnsupportedError(f"this needs {needed}, which is missing: pip install 'holdfast[{_EXTRAS[module]}]'")
        return None
    if type(error).__module__.partition(".")[0] in ("pyspark", "py4j"):
        return _of_spark(error)
    return None


def _of_spark(error: Exception) -> HoldfastError:
    condition = getattr(error, "getCondition", lambda: None)()
    if condition in ("JAVA_GATEWAY_EXITED", "JAVA_HOME_NOT_SET"):
        return UnsupportedError("Spark needs Java 17 or newer: install it, or set JAVA_HOME")
    if condition == "PATH_NOT_FOUND":
        parameters: dict[str, str] = error.getMessageParameters() or {}  # type: ignore[attr-defined]  # has a condition
        return NotFoundError("there is no such input: check its path", input=parameters.get("path"))
    from holdfast.spark.failures import of_workers

    return of_workers(str(error)) or ConflictError(f"Spark could not do it, nothing was written: {_said(error)}")


_RAISED = re.compile(r"^[\w.]+(?:Error|Exception|Exit)\b.*", re.MULTILINE)
_CALLED = re.compile(r"^An error occurred while calling .*\n: ")


def _said(error: Exception) -> str:
    """The line that tells most: of Python's traceback the last, of Java's the first."""
    text = _CALLED.sub("", str(error))
    raised = _RAISED.findall(text) if "Traceback (most recent call last)" in text else []
    lines = [line.strip() for line in (raised[-1:] or text.splitlines()) if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:400]
