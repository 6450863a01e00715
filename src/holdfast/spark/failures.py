"""How an error of ours reaches the person in front of Spark: one sentence instead of pages of stack traces."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterator

import holdfast.errors as errors
from holdfast.errors import HoldfastError

__all__ = ["one_sentence", "typed_again"]

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
    """The error of ours that Spark's error tells of, None if it tells of another."""
    found = None
    for match in _SHOWN.finditer(str(error)):
        found = match  # the last one is the one that ended the job
    if found is None:
        return None
    kind = getattr(errors, found[1], None)
    if not (isinstance(kind, type) and issubclass(kind, HoldfastError)):
        return None
    return kind(found[2].strip())
