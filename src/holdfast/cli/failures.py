"""Errors become one sentence on stderr and an exit code; a traceback only with --debug."""

from __future__ import annotations

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

    Covers a missing extra, a missing Java and a query that Spark refuses.
    """
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, ModuleNotFoundError):
        module = (error.name or "").partition(".")[0]
        if module in _EXTRAS:
            return UnsupportedError(f"this needs {module}, which is missing: pip install 'holdfast[{_EXTRAS[module]}]'")
        return None
    if type(error).__module__.partition(".")[0] == "pyspark":
        return _of_spark(error)
    return None


def _of_spark(error: Exception) -> HoldfastError:
    condition = getattr(error, "getCondition", lambda: None)()
    if condition in ("JAVA_GATEWAY_EXITED", "JAVA_HOME_NOT_SET"):
        return UnsupportedError("Spark needs Java 17 or newer: install it, or set JAVA_HOME")
    if condition == "PATH_NOT_FOUND":
        return NotFoundError("there is no such input: check its path")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[0] if lines else type(error).__name__
    return ConflictError(f"Spark could not do it, nothing was written: {said[:400]}")
