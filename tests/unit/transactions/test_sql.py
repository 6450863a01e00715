"""The SQL of a backend is in files beside it; waits for a server grow, and end."""

from __future__ import annotations

import pytest

from holdfast.runtime import Environment, SeededRandom
from holdfast.transactions.sql import iter_retries_until_timeout, load_queries


@pytest.mark.parametrize("backend", ["sqlite", "postgres"], ids=["a file", "a server"])
def test_a_query_is_what_follows_its_name_without_comments(backend: str) -> None:
    queries = load_queries.__wrapped__(f"holdfast.transactions.{backend}")
    assert queries == load_queries(f"holdfast.transactions.{backend}")
    for query in queries.values():
        assert query and not query.endswith(";")
        assert not any(line.startswith("--") or not line.strip() for line in query.splitlines())


def test_pauses_grow_and_end() -> None:
    class Clock:
        def __init__(self) -> None:
            self.slept: list[float] = []

        def now_s(self) -> float:
            return 0.0

        def elapsed_s(self) -> float:
            return sum(self.slept)

        def sleep(self, duration_s: float) -> None:
            self.slept.append(duration_s)

    clock = Clock()
    tries = list(iter_retries_until_timeout(Environment(clock=clock, chance=SeededRandom(1)), 5.0))
    assert len(tries) == len(clock.slept) + 1
    assert 5.0 <= sum(clock.slept) < 5.75
    assert clock.slept[0] < 0.003
    assert max(clock.slept) < 0.75
    assert len(set(clock.slept)) == len(clock.slept)
    assert len(list(iter_retries_until_timeout(Environment(clock=clock), 0.0))) == 1
