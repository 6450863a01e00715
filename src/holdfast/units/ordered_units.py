"""Check the input of a task: units in the order of their ids, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.errors import InvalidRequestError
from holdfast.units.progress import START, Place
from holdfast.units.unit import Unit

__all__ = ["PlacedUnit", "ordered_units"]


class PlacedUnit(NamedTuple):
    """A unit, and its place in the input of its task."""

    unit: Unit
    place: Place


def ordered_units(units: Iterable[Unit]) -> Iterator[PlacedUnit]:
    """Yield units with their places. Each is yielded when the one after it is known to be another one.

    Raises:
        InvalidRequestError: a key occurs twice, or the units are not in the order of their ids.
    """
    place = START
    waiting: Unit | None = None
    for unit in units:
        if waiting is not None:
            if unit.id == waiting.id:
                raise InvalidRequestError(
                    "two units have the same key: choose columns that identify each row, or use TransactionalReduce",
                    unit=unit.key,
                )
            if unit.id < waiting.id:
                raise InvalidRequestError(
                    "the units of a task are not sorted by their keys: cast texts that are not UTF-8 to binary, or "
                    "report it",
                    unit=unit.key,
                    after=waiting.key,
                )
            place = place.after(waiting.id)
            yield PlacedUnit(waiting, place)
        waiting = unit
    if waiting is not None:
        yield PlacedUnit(waiting, place.after(waiting.id))
