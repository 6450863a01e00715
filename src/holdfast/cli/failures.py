"""Map errors to exit codes, and errors of other libraries to Holdfast's own."""

from __future__ import annotations

import itertools
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
    missing_spark_error,
)

PROBLEM = 1
"""A problem was found: a mismatch, damaged data, a conflict, or a failed job."""
WRONG_USAGE = 2
"""The request is invalid; nothing happened."""
STORE = 3
"""The store is unavailable, or it is unknown whether a request took effect."""
INTERRUPTED = 130
"""Ctrl-C; an undecided job is aborted."""
TERMINATED = 143
"""SIGTERM; an undecided job is aborted, as after Ctrl-C."""


def exit_code(error: HoldfastError) -> int:
    """Return the exit code of a command that ends with this error; it tells scripts what to do next."""
    if isinstance(error, UnavailableError | OutcomeUnknownError):
        return STORE
    if isinstance(error, ConflictError | CorruptDataError | FencedError):
        return PROBLEM
    return WRONG_USAGE


def as_holdfast_error(error: Exception) -> HoldfastError | None:
    """Convert another library's error to an error that says what to do next; return None if that is unknown.

    Known causes are a missing package or extra, missing Java, Spark workers with a different Python, and a query
    that Spark refuses.
    """
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, ModuleNotFoundError):
        return missing_spark_error(error)
    if type(error).__module__.partition(".")[0] in ("pyspark", "py4j"):
        return _convert_spark_error(error)
    return None


def _convert_spark_error(error: Exception) -> HoldfastError:
    condition = getattr(error, "getCondition", lambda: None)()
    if condition in ("JAVA_GATEWAY_EXITED", "JAVA_HOME_NOT_SET"):
        return UnsupportedError(
            "Spark did not start, which needs Java 17 or newer: install it, or set JAVA_HOME; --debug shows Spark's log"
        )
    if condition == "PATH_NOT_FOUND":
        parameters: dict[str, str] = error.getMessageParameters() or {}  # type: ignore[attr-defined]  # has a condition
        return NotFoundError("the input does not exist: check its path", input=parameters.get("path"))
    lacks = _NO_FILE_SYSTEM.search(str(error))
    if lacks is not None:
        scheme = lacks[1] or lacks[2]
        package = "org.apache.hadoop:hadoop-aws:VERSION" if scheme.startswith("s3") else "GROUP:PACKAGE:VERSION"
        return UnsupportedError(
            f"this Spark cannot read {scheme}:// urls: copy the input to this machine, or let Spark load the "
            f"package for them with PYSPARK_SUBMIT_ARGS='--packages {package} pyspark-shell'"
            f"{' and write s3a://' if scheme in ('s3', 's3n') else ''}"
        )
    from holdfast.spark.failures import find_worker_problem

    return find_worker_problem(str(error)) or ConflictError(
        f"Spark failed, nothing was written: {_extract_useful_message_lines(error)}"
    )


_RAISED = re.compile(r"^[\w.]+(?:Error|Exception|Exit)\b.*", re.MULTILINE)
_CALLED = re.compile(r"^An error occurred while calling .*\n: ")
_CAUSE = re.compile(r"^Caused by: (.+)", re.MULTILINE)
_NO_FILE_SYSTEM = re.compile(r'No FileSystem for scheme "?(\w+)|Class org\.apache\.hadoop\.fs\.(s3a)\.\w+ not found')
_MOST = 400
"""Maximum number of characters that are shown of another library's error."""


def _extract_useful_message_lines(error: Exception) -> str:
    """Return the most useful lines of a message.

    For a Python traceback, this is the last line. For a Java stack trace, these are the first line and the root cause,
    because the first line may say no more than which file Spark failed to read.
    """
    text = _CALLED.sub("", str(error))
    raised: list[str] = _RAISED.findall(text) if "Traceback (most recent call last)" in text else []
    if raised:
        return raised[-1].strip()[:_MOST]
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    first = lines[0]
    if first.endswith(":"):  # the explanation follows, up to the stack trace
        more = itertools.takewhile(lambda line: not line.startswith(("at ", "Caused by")), lines[1:])
        first = " ".join([first, *more])
    first = first[:_MOST]
    causes: list[str] = _CAUSE.findall(text)
    return f"{first}, caused by {causes[-1].strip()[:_MOST]}" if causes else first
