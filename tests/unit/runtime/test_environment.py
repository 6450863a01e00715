"""Clocks, ids, random numbers and waits: those of the system, and simulated ones."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from holdfast.commit import CommitContext
from holdfast.runtime import (
    Backoff,
    Environment,
    Moment,
    SeededRandom,
    SerialRunner,
    SystemClock,
    SystemIds,
    ThreadRunner,
)
from holdfast.stores.memory import MemoryStore
from tests.clocks import StillClock, SuspendedClock
from tests.patience import PATIENCE_S


# --- clock ------------------------------------------------------------------------------------------------------------
def test_now_is_the_wall_clock_in_seconds_since_the_epoch() -> None:
    before = time.time()
    now_s = SystemClock().now_s()
    after = time.time()
    assert before <= now_s <= after


def test_sleeping_takes_at_least_the_time_asked_for() -> None:
    clock = SystemClock()
    start_s = clock.elapsed_s()
    clock.sleep(0.01)
    assert clock.elapsed_s() - start_s >= 0.01


@pytest.mark.parametrize(("passed_s", "slept_s", "set_s", "age_s"), [
    (10.0, 0.0, 0.0, 10.0),
    (10.0, 3600.0, 0.0, 3610.0),
    (10.0, 0.0, -3600.0, 10.0),
    (10.0, 0.0, 3600.0, 3610.0),
])  # fmt: skip
def test_a_moment_is_as_old_as_the_clock_says_that_has_advanced_more(
    passed_s: float, slept_s: float, set_s: float, age_s: float
) -> None:
    """The machine was suspended, or somebody has set the wall clock."""
    clock = SuspendedClock(1_800_000_000.0)
    moment = Moment.of(clock)
    clock.at_s += passed_s
    clock.suspend(slept_s)
    clock.suspend(set_s)
    assert moment.age_s(clock) == age_s


def test_a_moment_of_the_system_is_young() -> None:
    assert 0 <= Moment.of(SystemClock()).age_s(SystemClock()) < 60


# --- ids --------------------------------------------------------------------------------------------------------------
_FORK = """
import os
from holdfast.runtime import SystemIds
ids = SystemIds()
ids.token()
if os.fork():
    os.wait()
print(ids.token(), flush=True)
"""


def test_a_token_is_twelve_hexadecimal_digits() -> None:
    assert re.fullmatch("[0-9a-f]{12}", SystemIds().token())


def test_tokens_do_not_repeat() -> None:
    ids = SystemIds()
    assert len({ids.token() for _ in range(10_000)}) == 10_000


def test_a_forked_process_draws_other_tokens() -> None:
    """Spark forks its Python workers from one daemon: they must not share a random state."""
    run = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    tokens = run.stdout.split()
    assert len(tokens) == 2
    assert len(set(tokens)) == 2


# --- chance -----------------------------------------------------------------------------------------------------------
def test_the_same_seed_gives_the_same_draws() -> None:
    """Also in other versions of Python: saved seeds must stay valid."""
    chance = SeededRandom(7)
    assert [chance.pick("abcdef") for _ in range(12)] == list("badadcadacaa")
    assert chance.shuffled(range(6)) == [2, 5, 0, 1, 4, 3]
    assert SeededRandom.derive(7, 3) == 3647706739097066463


def test_every_choice_can_be_drawn() -> None:
    chance = SeededRandom(1)
    assert {chance.pick("abc") for _ in range(100)} == set("abc")
    assert {tuple(chance.shuffled("abc")) for _ in range(200)} == {
        ("a", "b", "c"),
        ("a", "c", "b"),
        ("b", "a", "c"),
        ("b", "c", "a"),
        ("c", "a", "b"),
        ("c", "b", "a"),
    }
    assert 150 < sum(chance.happens(0.2) for _ in range(1000)) < 250


def test_derived_seeds_differ() -> None:
    assert len({SeededRandom.derive(seed, number) for seed in range(10) for number in range(100)}) == 1000


# --- environment ------------------------------------------------------------------------------------------------------
class _Closing(MemoryStore):
    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_the_default_is_the_machine() -> None:
    found = Environment()
    assert isinstance(found.clock, SystemClock) and isinstance(found.ids, SystemIds)
    assert isinstance(found.runner, ThreadRunner) and isinstance(found.chance, SeededRandom)
    draws = {Environment().chance.fraction() for _ in range(20)}
    assert len(draws) == 20, "two processes do not draw alike"


def test_a_context_hands_it_on() -> None:
    serial = SerialRunner()
    environment = replace(Environment(), runner=serial)
    ctx = CommitContext(store=MemoryStore(), prefix="a/", url="memory://a", environment=environment)
    assert ctx.runner is serial and ctx.clock is environment.clock and ctx.ids is environment.ids
    other = ctx.with_environment(runner=ThreadRunner(2))
    assert isinstance(other.runner, ThreadRunner) and other.clock is ctx.clock and ctx.runner is serial


def test_leaving_a_context_closes_its_stores() -> None:
    store = _Closing()
    with CommitContext(store=store, prefix="", url="memory://a") as ctx:
        assert ctx.store is store and store.closed == 0
    assert store.closed == 1


# --- waits between tries ----------------------------------------------------------------------------------------------
class _Most(SeededRandom):
    """Draws the largest value each time."""

    def fraction(self) -> float:
        return 1.0


def test_the_limit_doubles_up_to_the_longest() -> None:
    clock = StillClock()
    for number in (1, 2, 3, 4, 5, 10_000):
        Backoff(0.5, 3.0).wait(number, clock, _Most(0))
    assert clock.waits == [0.5, 1.0, 2.0, 3.0, 3.0, 3.0]


def test_waits_are_random() -> None:
    clock, chance = StillClock(), SeededRandom(1)
    for _ in range(100):
        Backoff(1.0, 1.0).wait(1, clock, chance)
    assert len(set(clock.waits)) == 100
    assert 0 <= min(clock.waits) < 0.1 < 0.9 < max(clock.waits) < 1
