"""Provide time, tokens and random numbers, bundled with threads as one `Environment`.

Correctness never depends on a clock: clocks only date records and pace retries.
"""

from __future__ import annotations

import hashlib
import random
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from holdfast.runtime.threads import Runner, ThreadRunner


class Clock(Protocol):
    """A source of time."""

    def now_s(self) -> float:
        """Return the time of the wall clock, in seconds since the epoch; it may jump."""
        ...

    def elapsed_s(self) -> float:
        """Return the time of a monotonic clock, in seconds; only differences mean anything. It may stop while the
        machine is suspended, so it may show too small an age: see `Moment`."""
        ...

    def sleep(self, duration_s: float) -> None:
        """Wait for `duration_s` seconds."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def now_s(self) -> float:
        return time.time()

    def elapsed_s(self) -> float:
        return time.monotonic()

    def sleep(self, duration_s: float) -> None:
        time.sleep(duration_s)


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, as both clocks of this process showed it, whose age can be measured later.

    Attributes:
        now_s, elapsed_s: the readings of the wall clock and of the monotonic clock, in seconds.
    """

    now_s: float
    elapsed_s: float

    @staticmethod
    def of(clock: Clock) -> Moment:
        """Return the present moment according to `clock`."""
        return Moment(clock.now_s(), clock.elapsed_s())

    def age_s(self, clock: Clock) -> float:
        """Return how long ago the moment was, in seconds; the result may be too large, but not too small.

        It is the larger of what the two clocks show: the monotonic clock may stop while the machine is suspended, and
        the wall clock may be set back. A wall clock that is set forward makes the moment look older.
        """
        return max(clock.now_s() - self.now_s, clock.elapsed_s() - self.elapsed_s)


class Ids(Protocol):
    """A source of unique tokens."""

    def token(self) -> str:
        """Return twelve lower-case hexadecimal digits (48 random bits)."""
        ...


class SystemIds:
    """Tokens from the operating system's random generator; safe after fork."""

    def token(self) -> str:
        return secrets.token_hex(6)


T = TypeVar("T")


class SeededRandom:
    """A random generator that depends on its seed alone.

    Guarantee: the same seed gives the same values on every machine and in every version of Python.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    @staticmethod
    def derive(seed: int, number: int) -> int:
        """Derive from `seed` the seed (63 bits) of the `number`-th of several independent random sequences."""
        digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 1

    def fraction(self) -> float:
        """Return a random number from 0 (included) to 1 (excluded)."""
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


_MOST_DOUBLINGS = 60


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits before a call is repeated: for a random time from 0 to a limit that doubles with each repetition.

    Attributes:
        first_s: the limit of the first wait, seconds.
        longest_s: the limit of all waits, seconds.

    Source: M. Brooker, "Exponential Backoff and Jitter" (AWS Architecture Blog, 2015): full jitter.
    """

    first_s: float
    longest_s: float

    def wait(self, number: int, clock: Clock, chance: SeededRandom) -> None:
        """Sleep for a random time before the `number`-th repetition, counted from 1."""
        limit_s = min(self.first_s * 2.0 ** min(number - 1, _MOST_DOUBLINGS), self.longest_s)
        clock.sleep(limit_s * chance.fraction())


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The clock, ids, threads and random numbers that code uses, passed as one value.

    The checker and the tests pass a simulated environment; production code uses the defaults.

    Attributes:
        chance: seeded random numbers, for jitter and sampling; never for tokens.
    """

    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    runner: Runner = field(default_factory=ThreadRunner)
    chance: SeededRandom = field(default_factory=lambda: SeededRandom(int(SystemIds().token(), 16)))
