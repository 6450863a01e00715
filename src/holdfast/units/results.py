"""Tell whether the function of a unit has run: what it returns may be what would run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import chain
from types import CoroutineType

from holdfast.errors import InvalidRequestError

_PLAIN = (str, bytes, bytearray, int, float, complex, type(None), Decimal, date, time, timedelta)


def require_run(returned: object) -> None:
    """Check that a function has returned None or a plain value, which is dropped.

    A plain value is a text, bytes, a number, a date or a time, an array of numpy, or a list, a tuple, a set or a
    dictionary of plain values. Everything else may be lazy: a generator, a `zip`, a coroutine, a task, a future, and
    whatever other libraries have.

    Raises:
        InvalidRequestError: it has returned something else: the unit must not count as done.
    """
    lazy = list(_not_plain(returned))
    if not lazy:
        return
    for one in lazy:
        if isinstance(one, CoroutineType):
            one.close()  # or Python warns that nobody has awaited it
    raise InvalidRequestError(
        "the function of a unit returns what would run, and perhaps nothing has run it: leave out yield and async,"
        " write loops instead of map, wait for what runs elsewhere, and return None or a plain value",
        returned=type(lazy[0]).__name__,
    )


def _not_plain(value: object) -> Iterator[object]:
    """Yield those parts of a value that are not plain."""
    if isinstance(value, _PLAIN) or _is_array(value):
        return
    parts: Iterable[object]
    if isinstance(value, dict):
        parts = chain(value, value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        parts = value
    else:
        yield value
        return
    for part in parts:
        yield from _not_plain(part)


def _is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray | numpy.generic) and not value.dtype.hasobject
