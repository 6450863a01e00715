"""Chance that can be repeated: numbers drawn from a seed, for simulated worlds. Never for tokens: see `Ids`."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["SeededRandom"]

T = TypeVar("T")


class SeededRandom:
    """Draws that depend on the seed alone.

    Guarantee: the same seed gives the same draws on every machine and in every version of Python.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    @staticmethod
    def derive(seed: int, number: int) -> int:
        """The seed of the `number`-th of several independent sequences: 63 bits."""
        digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 1

    def fraction(self) -> float:
        """From 0 up to, but not 1."""
        return self._random.random()  # of all draws of the standard library this one is promised to stay as it is

    def happens(self, probability: float) -> bool:
        """True with this probability."""
        return self.fraction() < probability

    def pick(self, choices: Sequence[T]) -> T:
        """One of these, each as likely as the others; there is at least one."""
        return choices[int(self.fraction() * len(choices))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in an order of chance."""
        left = list(items)
        return [left.pop(int(self.fraction() * len(left))) for _ in items]
