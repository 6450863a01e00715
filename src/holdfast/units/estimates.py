"""Estimate what rows will hold when a job is finished, from the units that are done.

The model. The m units that are done are a sample of all N, without replacement. A unit adds X to a row, independently
of its place in the order of work; X has the mean p and the variance q p, where q is the *dispersion* of the row: about
1 if a unit adds 1 or nothing, more if units add large amounts. A row that holds c is expected to hold c N / m at the
end. What is still to come, Y, has the mean w c with w = (N - m) / m, and

    Var(Y - w c) = q p (N - m) + w² q p m = q w (c + Y),    with p estimated by (c + Y) / N.

So the limits of Y are the two solutions of (Y - w c)² = t² q w (c + Y): Y = w c + A/2 ± √(A c (1 + w) + A²/4) with
A = t² q w. They are right for small c too, and exact at the end, where w = 0.

The dispersion comes from successive looks at the growing table: the mean square of (d - p n) / √(p n) over the steps
between them, where d is what a row has gained in a step of n units. What single rows show is uncertain, so the larger
one of a row's own dispersion and that of all rows that are looked at counts, and Student's t.

The rows that are looked at are the largest ones, and they may be so by chance. So the intervals are those that hold for
*all* rows of the table at once with the stated confidence (Bonferroni): however the rows are chosen then, they hold.

When it does not hold: if the order of work has to do with what units add, as with an input whose keys are dates or
sorted words; and if the table had rows before the job began. Then steps differ more from the mean than from their
neighbors (von Neumann's ratio), and `Dispersion.is_steady` is False. What only units that have not begun would show is
in no data. And it holds for each look by itself: among many looks, more than 5 % of jobs may have a wrong one.

Sources: Krishnamoorthy and Peng, "Improved closed-form prediction intervals for binomial and Poisson distributions",
Journal of Statistical Planning and Inference 141 (2011), for the interval; von Neumann, "Distribution of the ratio of
the mean square successive difference to the variance" (1941); Wallace, "Bounds on normal approximations to Student's
and the chi-square distributions" (1959); Hellerstein, Haas and Wang, "Online aggregation" (1997), for the idea.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import NormalDist

CONFIDENCE = 0.95
"""With which probability all intervals of one view hold, and a set of rows that is called certain is the final one."""

_MOST_LOOKS = 32
_FEWEST_DEGREES = 8
_UNSTEADY_DEVIATIONS = 4.0
_LARGEST = 1e100
_NEARLY_ALL = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Estimate:
    """What something will be at the end, and between which limits.

    Attributes:
        low, high: the limits of the 95 % interval.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Dispersion:
    """How much the amounts vary that units add.

    Attributes:
        of_rows: variance over mean, by row.
        pooled: of all rows that were looked at.
        degrees: degrees of freedom of `pooled`.
        is_steady: False if the units that are done do not look like a sample of all; None if it is too early to tell.
    """

    of_rows: Mapping[bytes, float]
    pooled: float
    degrees: int
    is_steady: bool | None

    def of(self, key: bytes | None) -> float:
        """Return the dispersion of a row; of one that was not looked at, the usual one."""
        own = self.of_rows.get(key, 0.0) if key is not None else 0.0
        return max(own, self.pooled)


@dataclass(slots=True)
class Looks:
    """The values of the largest rows at successive numbers of units that were done. Its memory is bounded."""

    _looks: list[tuple[int, Mapping[bytes, float]]] = field(default_factory=list)

    def note(self, done: int, values: Mapping[bytes, float]) -> None:
        """Note the values, all above 0, when so many units were done, instead of looks at as many, or at lost ones."""
        while self._looks and self._looks[-1][0] >= done:
            self._looks.pop()
        self._looks.append((done, values))
        if len(self._looks) > _MOST_LOOKS:
            del self._looks[-2::-2]

    def dispersion(self) -> Dispersion | None:
        """Return the dispersion of the rows of the last look; None if there are too few looks to tell."""
        if not self._looks:
            return None
        of_rows: dict[bytes, float] = {}
        squares = differences = 0.0
        degrees = pairs = 0
        falls = False
        for key, value in self._looks[-1][1].items():
            steps = self._steps(key)
            if len(steps) < 2:
                continue
            falls = falls or any(gained < 0 for _units, gained in steps)
            mean = value / self._looks[-1][0]
            square = sum((gained - mean * units) ** 2 / (mean * units) for units, gained in steps)
            of_rows[key] = square / (len(steps) - 1)
            squares += square
            degrees += len(steps) - 1
            for (units, gained), (more, then) in pairwise(steps):
                differences += (gained / units - then / more) ** 2 / (mean * (1 / units + 1 / more))
                pairs += 1
        if degrees < _FEWEST_DEGREES:
            return None
        pooled = squares / degrees
        is_steady = not falls and (
            not pooled or differences / pairs / pooled > 1 - _UNSTEADY_DEVIATIONS / math.sqrt(degrees)
        )
        return Dispersion(of_rows, pooled, degrees, is_steady)

    def _steps(self, key: bytes) -> list[tuple[int, float]]:
        """Return how many units were done between two looks at a row, and what it gained; all rows began with 0."""
        found: list[tuple[int, float]] = []
        before, had = 0, 0.0
        for done, values in self._looks:
            value = values.get(key)
            if value is not None and done > before:
                found.append((done - before, value - had))
                before, had = done, value
        return found


def is_usable(value: float) -> bool:
    """Check whether the estimates apply to a value."""
    return 0 < value < _LARGEST


def final_value(
    value: float, done: int, total: int | None, dispersion: float, *, degrees: int, rows: int
) -> Estimate | None:
    """Estimate what a row will hold; None if nothing can be said.

    Args:
        value: what it holds now.
        total: how many units the job has; None if nobody knows.
        degrees: degrees of freedom of the dispersion.
        rows: number of rows, for all of which the intervals hold at once.
    """
    if total is None or not done or not is_usable(value):
        return None
    to_come = max(0, total - done) / done
    quantile = _student_quantile((1 - CONFIDENCE) / (2 * max(1, rows)), degrees)
    width = quantile**2 * dispersion * to_come
    root = math.sqrt(width * value * (1 + to_come) + width**2 / 4)
    middle = to_come * value
    return Estimate(value + middle, value + max(0.0, middle - root + width / 2), value + middle + root + width / 2)


def chance_of_change(
    largest: Sequence[tuple[float, float]],
    top: int,
    *,
    rows: int,
    total_value: float,
    done: int,
    total: int | None,
    degrees: int,
) -> float:
    """Return an upper bound of the probability that the first rows are not the first ones at the end, in any order.

    It adds up the chances that a row overtakes another one. The rows nearest to the border are looked at one by one;
    all others count like the last one that is known.

    Args:
        largest: what the largest rows hold, and their dispersion; the largest first, and more than the first ones.
        top: how many are the first ones.
        rows: number of all rows.
        total_value: what all rows hold together.
    """
    # If a unit adds to one row what it does not add to another one, their difference varies more than each of them.
    apart = [(value, own / (1 - min(value / total_value, _NEARLY_ALL))) for value, own in largest]
    last, following = apart[top - 1], apart[top]
    unknown = rows - len(apart) + 1  # one of them stands for rows that do not exist yet

    def chance(ahead: tuple[float, float], behind: tuple[float, float]) -> float:
        return _chance_of_overtaking(ahead, behind, done, total, degrees)

    return (
        sum(chance(one, following) for one in apart[:top])
        + sum(chance(last, one) for one in apart[top + 1 :])
        + unknown * chance(last, apart[-1])
    )


def _chance_of_overtaking(
    ahead: tuple[float, float], behind: tuple[float, float], done: int, total: int | None, degrees: int
) -> float:
    """Return with which probability a row that is behind another one will be ahead of it at the end.

    The difference of their final values has the variance (q c + q' c') (1 - m / N) (N / m)², if what they gain does not
    depend on each other.
    """
    lead = ahead[0] - behind[0]
    if total is None or lead <= 0:
        return 1.0
    variance = (ahead[0] * ahead[1] + behind[0] * behind[1]) * max(0, total - done) / total
    return _student_tail(lead / math.sqrt(variance), degrees) if variance else 0.0


def _student_quantile(tail: float, degrees: int) -> float:
    """Return what Student's t exceeds with this probability (Wallace 1959, solved for t)."""
    normal = NormalDist().inv_cdf(1 - min(tail, 0.5))
    factor = (8 * degrees + 3) / (8 * degrees + 1)
    return math.sqrt(degrees * math.expm1((normal * factor) ** 2 / degrees))


def _student_tail(value: float, degrees: int) -> float:
    """Return the probability that Student's t exceeds a value."""
    factor = (8 * degrees + 1) / (8 * degrees + 3)
    normal = factor * math.sqrt(degrees * math.log1p(value**2 / degrees))
    return math.erfc(normal / math.sqrt(2)) / 2
