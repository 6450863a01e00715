"""Turn values into hashable keys: equal values have equal keys, in every run."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

_ATOMS = frozenset({str, bytes, int, float, bool, type(None)})
_FIELDS: dict[type, tuple[str, ...]] = {}


def canonical(value: object) -> Hashable:
    """Return a hashable key that is equal for equal values. This also works for errors and records with mappings."""
    kind = type(value)
    if kind in _ATOMS or isinstance(value, enum.Enum):
        return value
    if isinstance(value, tuple | list):
        return tuple(map(canonical, value))
    if isinstance(value, Mapping):
        return ("", *sorted((key, canonical(each)) for key, each in value.items()))
    if isinstance(value, BaseException):
        return (kind.__name__, str(value))
    if isinstance(value, frozenset):
        return frozenset(map(canonical, value))
    fields = _FIELDS.get(kind)
    if fields is None:
        assert dataclasses.is_dataclass(value), f"a {kind.__name__} is not a value: make it a frozen dataclass"
        fields = _FIELDS[kind] = tuple(field.name for field in dataclasses.fields(value))
    return (kind.__name__, *[canonical(getattr(value, name)) for name in fields])


class Numbered(Generic[T]):
    """A numbering of values from 0; values with equal keys get the same number."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self.values)

    def number(self, key: Hashable, value: T) -> int:
        """Return the number of `value`, whose key is `key`."""
        number = self._numbers.setdefault(key, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number
