"""Estimates of final values: how often the stated limits hold, on data whose truth is known, and when they do not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist, mean, variance

import numpy as np
import pytest

from holdfast.units.estimates import (
    CONFIDENCE,
    Dispersion,
    Estimate,
    Looks,
    chance_of_change,
    final_value,
)

_TASKS = 8
_LOOKS = 12


@dataclass(frozen=True)
class Look:
    """What was estimated at one look.

    Attributes:
        share: of the units that are done.
        held: for each of the top rows, whether the final value was within the limits.
        width: half of the mean width of the limits, relative to the estimate.
        chance: that the first rows are not those of the end; is_right: whether they are.
    """

    share: float
    held: list[bool]
    width: float
    is_steady: bool | None
    chance: float
    is_right: bool


@dataclass(frozen=True)
class Case:
    """A job: each unit adds an amount to some of the rows.

    Attributes:
        power: of Zipf's law by which rows are chosen; 0 for a uniform choice.
        amounts: what is added each time; one of these.
        top: how many rows are the first ones.
    """

    rows: int = 500
    units: int = 6000
    words: int = 5
    power: float = 1.0
    amounts: tuple[float, ...] = (1.0,)
    top: int = 10
    is_sorted: bool = False

    def run(self, seed: int) -> Iterator[Look]:
        """Run the tasks at different speeds, and look at the table from time to time."""
        random = np.random.default_rng(seed)
        chances = 1.0 / np.arange(1, self.rows + 1) ** self.power
        words = random.choice(self.rows, size=(self.units, self.words), p=chances / chances.sum())
        amounts = random.choice(self.amounts, size=words.shape)
        final = np.bincount(words.ravel(), weights=amounts.ravel(), minlength=self.rows)
        if self.is_sorted:
            order = np.argsort(words[:, 0], kind="stable")
            words, amounts = words[order], amounts[order]
        task_of = random.integers(0, _TASKS, self.units)
        tasks = [np.flatnonzero(task_of == task) for task in range(_TASKS)]
        speeds = random.uniform(0.5, 1.5, _TASKS) * self.units / _TASKS / _LOOKS
        places = [0] * _TASKS
        table = np.zeros(self.rows)
        looks = Looks()
        while any(place < len(task) for place, task in zip(places, tasks, strict=True)):
            ends = [place + int(speed) for place, speed in zip(places, speeds, strict=True)]
            now = np.concatenate([task[place:end] for task, place, end in zip(tasks, places, ends, strict=True)])
            np.add.at(table, words[now].ravel(), amounts[now].ravel())
            places = [min(len(task), end) for task, end in zip(tasks, ends, strict=True)]
            done = sum(places)
            largest = np.argsort(-table, kind="stable")[: 2 * self.top + 10]
            looks.note(done, {_key(row): float(table[row]) for row in largest if table[row]})
            dispersion = looks.dispersion()
            if dispersion is not None and done < self.units:
                yield self._look(table, final, largest, done, dispersion)

    def _look(
        self,
        table: np.ndarray,
        final: np.ndarray,
        largest: np.ndarray,
        done: int,
        dispersion: Dispersion,
    ) -> Look:
        total = self.units
        rows, degrees = int((table > 0).sum()), dispersion.degrees
        top = largest[: self.top]
        found = [
            final_value(table[row], done, total, dispersion.of(_key(row)), degrees=degrees, rows=rows) for row in top
        ]
        estimates = [one for one in found if one is not None]
        assert len(estimates) == self.top
        held = [bool(one.low <= final[row] <= one.high) for row, one in zip(top, estimates, strict=True)]
        width = float(np.mean([(one.high - one.low) / 2 / one.value for one in estimates]))
        known = [(float(table[row]), dispersion.of(_key(row))) for row in largest if table[row]]
        chance = chance_of_change(
            known, self.top, rows=rows, total_value=float(table.sum()), done=done, total=total, degrees=degrees
        )
        is_right = float(final[top].min()) >= float(np.delete(final, top).max())
        return Look(done / self.units, held, width, dispersion.is_steady, min(chance, 1.0), is_right)


def _key(row: int) -> bytes:
    return b"%d" % row


CASES = {
    "uniform": Case(power=0.0),
    "few rows": Case(rows=20, power=0.0, words=1),
    "zipf": Case(),
    "one word": Case(words=1),
    "amounts": Case(amounts=(1.0, 10.0, 100.0)),
    "fractions": Case(amounts=(0.001, 0.002)),
}


# --- coverage ---------------------------------------------------------------------------------------------------------
def _coverage(case: Case, runs: int) -> tuple[float, int]:
    """Return in which share of the looks all limits held at once, and how many looks that were."""
    looks = [look for seed in range(runs) for look in case.run(seed)]
    assert not [look for look in looks if look.is_steady is False], "the units are a sample of all"
    return sum(all(look.held) for look in looks) / len(looks), len(looks)


@pytest.mark.parametrize("name", CASES)
def test_all_limits_hold_at_once_as_often_as_stated(name: str) -> None:
    coverage, looks = _coverage(CASES[name], 12)
    assert looks >= 36
    # The looks of a run depend on each other: allow three standard errors of as many values as there are runs.
    assert coverage >= CONFIDENCE - 3 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / 12 / 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_all_limits_hold_at_once_in_many_runs(name: str) -> None:
    assert _coverage(CASES[name], 400)[0] >= CONFIDENCE


RACES = {
    "two rows": Case(rows=2, power=0.0, words=5, top=1),
    "dear rows": Case(rows=2, power=0.0, words=5, top=1, amounts=(100.0,)),
    "many rows": Case(rows=40, power=0.2, top=1),
    "zipf": Case(rows=100, words=1, top=3),
}


def _wrong_claims(case: Case, runs: int) -> tuple[float, int]:
    """Return which share of the sets that were called certain were wrong, and how many that were."""
    claims = [look for seed in range(runs) for look in case.run(seed) if look.chance <= 1 - CONFIDENCE]
    return sum(not look.is_right for look in claims) / len(claims), len(claims)


@pytest.mark.parametrize("name", RACES)
def test_what_is_called_certain_is_so(name: str) -> None:
    wrong, claims = _wrong_claims(RACES[name], 20)
    assert claims > 100
    assert wrong <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", RACES)
def test_what_is_called_certain_is_so_in_many_runs(name: str) -> None:
    assert _wrong_claims(RACES[name], 400)[0] <= 0.05


def test_limits_are_worth_something() -> None:
    """Very wide limits would always hold: with a quarter of the units, those of frequent words are near the truth."""
    looks = [look for seed in range(3) for look in Case(units=20_000).run(seed)]
    early = [look.width for look in looks if 0.2 < look.share < 0.3]
    late = [look.width for look in looks if look.share > 0.85]
    assert early and max(early) < 0.25
    assert late and max(late) < 0.06


def test_a_sorted_input_is_noticed() -> None:
    """If the order of work has to do with what units add, limits do not hold; then most views say so."""
    looks = [look for seed in range(10) for look in Case(is_sorted=True).run(seed)]
    early = [look for look in looks if look.share < 0.4]
    assert sum(all(look.held) for look in early) / len(early) < CONFIDENCE - 0.1
    assert sum(look.is_steady is False for look in looks) / len(looks) > 0.7


def test_rows_that_were_there_before_are_noticed() -> None:
    looks = Looks()
    random = np.random.default_rng(5)
    table = np.full(30, 1000.0)
    steady = []
    for number in range(25):
        table += random.poisson(20, 30) if number else 0
        looks.note(100 * number, {_key(row): value for row, value in enumerate(table.tolist())})
        dispersion = looks.dispersion()
        steady.append(None if dispersion is None else dispersion.is_steady)
    assert steady[-1] is False


@pytest.mark.parametrize("falling", [range(10), [0], [9]], ids=["all", "the first", "the last"])
def test_a_value_that_falls_is_noticed(falling: Sequence[int]) -> None:
    looks = Looks()
    for done, value in ((10, 100.0), (20, 200.0), (30, 150.0)):
        looks.note(done, {_key(row): value if row in falling else 10.0 * done for row in range(10)})
    dispersion = looks.dispersion()
    assert dispersion is not None and dispersion.is_steady is False


def test_looks_at_units_that_a_database_has_lost_do_not_count() -> None:
    looks, fresh = Looks(), Looks()
    for done, per_unit in ((10, 3.0), (20, 4.0), (30, 3.0), (40, 5.0)):
        looks.note(done, {_key(row): per_unit * done for row in range(10)})
    for done, per_unit in ((10, 3.0), (20, 3.0), (30, 4.0)):
        for one in (looks, fresh):
            one.note(done, {_key(row): per_unit * done for row in range(10)})
    assert looks.dispersion() == fresh.dispersion()


# --- single figures ---------------------------------------------------------------------------------------------------
def test_what_is_known_is_exact() -> None:
    whole = 100
    assert final_value(40.0, 100, whole, 1.0, degrees=20, rows=1) == Estimate(40.0, 40.0, 40.0)
    every_unit_adds_the_same = final_value(40.0, 50, whole, 0.0, degrees=20, rows=1)
    assert every_unit_adds_the_same == Estimate(80.0, 80.0, 80.0)


def test_limits_solve_the_equation_of_the_model() -> None:
    """(Y - w c)² = t² q w (c + Y), with the normal distribution, which many degrees of freedom give."""
    count, dispersion, w = 100.0, 3.0, 4.0
    found = final_value(count, 20, 100, dispersion, degrees=10**9, rows=5)
    assert found is not None
    for limit in (found.low, found.high):
        square = NormalDist().inv_cdf(1 - 0.05 / 2 / 5) ** 2 * dispersion * w * limit
        assert (limit - count - w * count) ** 2 == pytest.approx(square)
    assert found.low < found.value == count * (1 + w) < found.high


def test_limits_are_never_below_what_is_there() -> None:
    for value in (1.0, 2.0, 7.0):
        found = final_value(value, 5, 1000, 3.0, degrees=8, rows=100)
        assert found is not None and value <= found.low <= found.value <= found.high


@pytest.mark.parametrize(
    ("value", "done", "expected"), [(5.0, 0, 10), (0.0, 5, 10), (-1.0, 5, 10), (1e100, 5, 10), (5.0, 5, None)]
)
def test_nothing_is_said_without_a_basis(value: float, done: int, expected: int | None) -> None:
    assert final_value(value, done, expected, 1.0, degrees=20, rows=3) is None


def test_there_is_no_dispersion_without_looks() -> None:
    looks = Looks()
    assert looks.dispersion() is None
    looks.note(0, {b"a": 1.0})
    assert looks.dispersion() is None
    looks.note(10, {_key(row): 5.0 for row in range(30)})
    assert looks.dispersion() is None, "one step shows no variance"
    looks.note(20, {_key(row): 10.0 for row in range(7)})
    assert looks.dispersion() is None, "seven degrees of freedom are too few"
    looks.note(20, {_key(row): 10.0 for row in range(8)})
    assert looks.dispersion() is not None


def test_the_dispersion_is_variance_over_mean() -> None:
    gains = {b"a": [3, 1, 4, 1, 5, 9], b"b": [2, 7, 1, 8, 2, 8]}
    looks = Looks()
    for number in range(1, 7):
        late = {b"new": 1.0} if number == 6 else {}
        looks.note(10 * number, late | {key: float(sum(one[:number])) for key, one in gains.items()})
    expected = {key: variance(one) / mean(one) for key, one in gains.items()}
    dispersion = looks.dispersion()
    assert dispersion is not None and (dispersion.of_rows, dispersion.degrees) == (pytest.approx(expected), 10)
    assert dispersion.of(b"z") == dispersion.pooled == pytest.approx(mean(expected.values()))
    assert max(expected.values()) == pytest.approx(max(dispersion.of(key) for key in gains))


def test_looks_are_bounded_and_keep_the_last_one() -> None:
    looks = Looks()
    for done in range(1, 1000):
        looks.note(10 * done, {b"a": float(done), b"b": 2.0 * done})
        assert len(looks._looks) == done if done <= 32 else 16 <= len(looks._looks) <= 32
        assert looks._looks[-1][0] == 10 * done
    dispersion = looks.dispersion()
    assert dispersion is not None and dispersion.pooled == pytest.approx(0.0, abs=1e-9)


def test_a_look_without_progress_replaces_the_one_before() -> None:
    looks = Looks()
    looks.note(10, {b"a": 1.0})
    looks.note(10, {b"a": 2.0})
    assert looks._looks == [(10, {b"a": 2.0})]


def _chance(
    *values: float,
    top: int = 1,
    rows: int = 2,
    done: int = 1000,
    units: int | None = 2000,
    all_rows: float = 1e99,
    own: tuple[float, ...] = (),
    degrees: int = 100,
) -> float:
    return chance_of_change(
        list(zip(values, own or [1.0] * len(values), strict=True)),
        top,
        rows=rows,
        total_value=all_rows,
        done=done,
        total=units,
        degrees=degrees,
    )


def test_rows_that_are_far_ahead_stay_there() -> None:
    assert _chance(500, 100) < 1e-12
    assert 0.5 < _chance(500, 490) < 0.9
    assert _chance(500, 500) == 2.0
    assert _chance(500, 499, done=2000) == 0.0
    assert _chance(500, 100, units=None) == 2.0


def test_the_chances_of_all_pairs_that_may_change_places_add_up() -> None:
    """Each first row and the next one, the last of them and all others; unknown rows count like the last known one."""

    def pair(ahead: float, behind: float) -> float:
        return _chance(ahead, behind) / 2  # the other half is of a row that does not exist yet

    expected = pair(520, 450) + pair(500, 450) + pair(500, 440) + pair(500, 430) + 4 * pair(500, 430)
    assert _chance(520, 500, 450, 440, 430, top=2, rows=8) == pytest.approx(expected)


def test_rows_that_share_what_a_unit_adds_may_change_places_sooner() -> None:
    """If each unit adds 1 to one of two rows, each varies less, and their difference like that of independent ones."""
    alone = _chance(550, 450)
    assert _chance(550, 450, all_rows=1000, own=(0.45, 0.55)) == pytest.approx(alone)
    assert _chance(550, 450, own=(0.45, 0.55)) < alone / 2


@pytest.mark.parametrize(
    ("tail", "degrees", "quantile"),
    [(0.025, 8, 2.306), (0.025, 30, 2.042), (0.0005, 10, 4.587), (0.005, 100, 2.626)],
)
def test_quantiles_and_tails_are_those_of_the_tables(tail: float, degrees: int, quantile: float) -> None:
    """With half of the units to come, and one row, the width of the limits shows the quantile."""
    found = final_value(1e12, 1, 2, 1.0, degrees=degrees, rows=round(0.05 / 2 / tail))
    assert found is not None
    shown = (found.high - found.low) / 2 / math.sqrt(2e12)
    assert shown == pytest.approx(quantile, rel=0.01)
    lead = shown * math.sqrt(1e6 / 2)
    assert _chance(1e6, 1e6 - lead, own=(1.0, 0.0), degrees=degrees) / 2 == pytest.approx(tail)
