"""Requests of one moment are carried out together; what goes wrong with one concerns no other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from holdfast.runtime import LoopThreads
from holdfast.webhdfs.batches import Batches
from tests.patience import PATIENCE_S


@pytest.fixture
def threads() -> Iterator[LoopThreads]:
    threads = LoopThreads(4, "test")
    yield threads
    threads.close()


def _ask(
    threads: LoopThreads, answer: Callable[[Sequence[int]], Sequence[int | Exception]], asked: Sequence[int]
) -> list[int | BaseException]:
    """Ask all in one turn of the loop; return the answers and errors."""

    async def all_of_them() -> list[int | BaseException]:
        batches = Batches(threads, answer)
        futures = [batches.ask(one) for one in asked]
        return await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), PATIENCE_S)

    return asyncio.run(all_of_them())


def test_each_gets_its_own_answer(threads: LoopThreads) -> None:
    sizes: list[int] = []

    def answer(batch: Sequence[int]) -> list[int | Exception]:
        sizes.append(len(batch))
        return [one * one for one in batch]

    assert _ask(threads, answer, range(500)) == [one * one for one in range(500)]
    assert sum(sizes) == 500
    assert max(sizes) <= 64 < len(sizes) * 64
    assert len(sizes) < 20  # together


def test_an_error_is_that_of_its_request(threads: LoopThreads) -> None:
    def answer(batch: Sequence[int]) -> list[int | Exception]:
        return [ValueError(one) if one % 10 == 3 else one for one in batch]

    found = _ask(threads, answer, range(100))
    assert [one for one in found if isinstance(one, int)] == [one for one in range(100) if one % 10 != 3]
    assert [one.args for one in found if isinstance(one, ValueError)] == [(one,) for one in range(3, 100, 10)]


def test_a_batch_that_fails_is_asked_again_one_by_one(threads: LoopThreads) -> None:
    def answer(batch: Sequence[int]) -> list[int | Exception]:
        if 77 in batch:
            raise ZeroDivisionError("a fault of the program that one request meets")
        return list(batch)

    found = _ask(threads, answer, range(200))
    assert isinstance(found[77], ZeroDivisionError)
    assert [one for number, one in enumerate(found) if number != 77] == [one for one in range(200) if one != 77]


def test_a_request_whose_client_went_away_hinders_no_other(threads: LoopThreads) -> None:
    may_go_on = threading.Event()

    def answer(batch: Sequence[int]) -> list[int | Exception]:
        assert may_go_on.wait(PATIENCE_S)
        return list(batch)

    async def leave() -> list[int | BaseException]:
        batches = Batches(threads, answer)
        futures = [batches.ask(one) for one in range(10)]
        await asyncio.sleep(0)
        futures[4].cancel()
        may_go_on.set()
        return await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), PATIENCE_S)

    found = asyncio.run(leave())
    assert isinstance(found.pop(4), asyncio.CancelledError)
    assert found == [one for one in range(10) if one != 4]
