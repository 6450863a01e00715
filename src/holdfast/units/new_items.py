"""Take what users add to a work list: keys with values and priorities, and a function that combines values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast.errors import InvalidRequestError
from holdfast.records.row_keys import Row
from holdfast.records.values import Value
from holdfast.units.work_list import WorkList, decode_item, encode_item

NewItem: TypeAlias = "tuple[Row, Value | None] | tuple[Row, Value | None, int]"
"""A key, its value, and perhaps its priority."""

Combine: TypeAlias = "Callable[[Any, Any], Value | None]"
"""Makes one value of the one that waits and a new one, such as `min`; the order in which values come is by chance."""


@dataclass(frozen=True, slots=True)
class NewRecord:
    """An item that is to be added.

    Attributes:
        key: of its record.
        encoded: its value.
    """

    key: bytes
    encoded: bytes

    def combined_with(self, waiting: bytes | None, combine: Combine) -> bytes:
        """Return the bytes of the value that waits from now on.

        A transaction that conflicts combines again, so each time `combine` gets values of its own: it may change them.

        Args:
            waiting: those of the value that waits; None if none does.

        Raises:
            InvalidRequestError: the combined value cannot be stored.
        """
        if waiting is None:
            return self.encoded
        return encode_item(combine(decode_item(waiting), decode_item(self.encoded)))


def new_records(work: WorkList, items: Iterable[NewItem], combine: Combine | None) -> Iterable[NewRecord]:
    """Yield the records of items; those whose values are combined have a place for their key.

    Raises:
        InvalidRequestError: an item is not valid, or `combine` is no function.
    """
    if combine is not None and not callable(combine):
        raise InvalidRequestError(
            "combine is a function of two values, such as min: pass it itself, not its name", combine=combine
        )
    for item in items:
        _require_item(item)
        key, value, priority = item if len(item) == 3 else (*item, 0)
        yield NewRecord(*work.new_item(key, value, priority, combined=combine is not None))


def _require_item(item: object) -> None:
    """Check that something is an item: a text of two letters, which Python would take apart, is none.

    Raises:
        InvalidRequestError: it is not.
    """
    if not isinstance(item, tuple) or len(item) not in (2, 3):
        raise InvalidRequestError(
            "an item is a pair (key, value), or (key, value, priority): make tuples", type=type(item).__name__
        )
