"""One value holds everything that code takes from its surroundings, and each part can be replaced."""

from __future__ import annotations

from dataclasses import replace

from holdfast.commit import CommitContext
from holdfast.runtime import Environment, SeededRandom, SerialRunner, SystemClock, SystemIds, ThreadRunner
from holdfast.stores.memory.store import MemoryStore


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
