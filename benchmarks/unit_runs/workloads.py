"""Choose the cells of units: two different ones for each, in the order of their rows."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

__all__ = ["CELLS", "HOT", "WORKLOADS", "pairs"]

CELLS = 100_000
HOT = 1_000
_SKEW = 1.1

WORKLOADS = ("uniform", "zipf")
"""``uniform``: each worker has cells of its own, so there are no conflicts. ``zipf``: all workers share 1,000 cells,
and the n-th of them is used with a frequency of 1 / n ** 1.1."""


def pairs(workload: str, worker: int, workers: int, seed: int) -> Iterator[tuple[int, int]]:
    """Yield the cells of one unit after the other.

    The cells of a unit are in order, so that units that lock them one by one do not wait for each other in circles.
    """
    chance = random.Random(f"{seed}-{worker}")
    draw = _zipf(chance) if workload == "zipf" else _uniform(chance, worker, workers)
    while True:
        one, other = next(draw), next(draw)
        if one != other:
            yield min(one, other), max(one, other)


def _uniform(chance: random.Random, worker: int, workers: int) -> Iterator[int]:
    while True:
        yield chance.randrange(worker, CELLS, workers)


def _zipf(chance: random.Random) -> Iterator[int]:
    sums = list(accumulate(1 / rank**_SKEW for rank in range(1, HOT + 1)))
    places = list(range(HOT))
    random.Random(0).shuffle(places)  # the same for all workers; hot cells are not neighbors
    while True:
        yield places[bisect_left(sums, chance.random() * sums[-1])]
