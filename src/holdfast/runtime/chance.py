"""Draw repeatable random values from a seed, for simulated worlds; for unique tokens, use `Ids`."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class SeededRandom:
    """A random generator that depends on its seed alone.

    Guarantee: the same seed gives the same values on every machine and in every version of Python.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    @staticmethod
    def derive(seed: int, number: int) -> int:
        """Return the seed (63 bits) of the `number`-th of several independent sequences."""
        digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 1

    def fraction(self) -> float:
        """Return a value from 0 (included) to 1 (excluded)."""
        return self._random.random()  # the one generator that the standard library promises not to change

    def happens(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.fraction() < probability

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of the choices, each with equal probability; there must be at least one."""
        return choices[int(self.fraction() * len(choices))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in random order."""
        left = list(items)
        return [left.pop(int(self.fraction() * len(left))) for _ in items]
