"""Histories of random concurrent transactions are strictly serializable, on every backend, in threads and processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from holdfast.runtime import ThreadRunner
from holdfast.transactions.base import Backend, Commit
from holdfast.transactions.memory import MemoryBackend
from holdfast_checker.histories.linearizable import Linearizability
from tests.patience import PATIENCE_S
from tests.simulation.histories import wrong_backends as wrong
from tests.simulation.histories.lists import judge_lists
from tests.simulation.histories.random_mixes import judge_mixes
from tests.simulation.histories.registers import judge_registers
from tests.simulation.histories.told import Told, often_switched
from tests.simulation.histories.worker import KINDS
from tests.tidy.source_tree import ROOT
from tests.transaction_backends import BACKENDS, Handles, opened
from tests.variants import variants

_THREADS = 4
_PROCESSES = 3


def _backends(names: Sequence[str]) -> list[object]:
    return [pytest.param(name, marks=BACKENDS[name][1]) for name in names]


@pytest.fixture(scope="module", params=_backends(list(BACKENDS)))
def handles(request: pytest.FixtureRequest) -> Iterator[Handles]:
    with opened(request.param, request) as found:
        yield found


def _in_threads(backends: Sequence[Backend], kind: str, prefix: str, seed: int, count: int) -> list[Told]:
    together = threading.Barrier(_THREADS)

    def work(number: int) -> list[Told]:
        together.wait(PATIENCE_S)
        return KINDS[kind](backends[number % len(backends)], prefix, f"w{number}", seed * 100 + number, count)

    with often_switched():
        return [one for told in ThreadRunner(_THREADS).map(work, range(_THREADS)) for one in told]


def _in_processes(url: str, kind: str, prefix: str, seed: int, count: int) -> list[Told]:
    command = [sys.executable, "-W", "error", "-m", "tests.simulation.histories.worker", kind, url, prefix]
    processes = [
        subprocess.Popen(
            [*command, f"w{number}", str(seed * 100 + number), str(count)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(_PROCESSES)
    ]
    try:
        for process in processes:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("start\n")
            process.stdin.flush()
        outputs = [process.communicate(timeout=PATIENCE_S)[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * _PROCESSES
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    return [Told.decode(line) for output in outputs for line in output.splitlines()]


def _prefix(kind: str, seed: int, backend: Backend, where: str) -> str:
    """Return the keys of a history; every second one has a guard that exists."""
    prefix = f"{where}/{kind}/{seed}/"
    if seed % 2:
        backend.commit(Commit(puts={f"{prefix}guard".encode(): b""}))
    return prefix


def _judge(kind: str, told: Sequence[Told]) -> str:
    """Return what is wrong with a history; empty if nothing is."""
    if kind == "lists":
        return "; ".join(one.words for one in judge_lists(told))
    verdict = judge_mixes(told) if kind == "mixes" else judge_registers(told)
    return "" if verdict.answer is Linearizability.YES else f"{verdict.answer.value}: {verdict.words}"


def _overlap(told: Sequence[Told]) -> bool:
    """Check whether operations of two workers overlap: if none do, a history proves nothing."""
    return any(
        one.began_s < other.ended_s and other.began_s < one.ended_s
        for one in told
        for other in told
        if one.who != other.who
    )


_COUNTS = {"mixes": 60, "lists": 120, "registers": 200}


@pytest.mark.parametrize("kind", variants(KINDS, "mixes"))
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_threads(handles: Handles, kind: str, seed: int) -> None:
    prefix = _prefix(kind, seed, handles.backend, "threads")
    told = _in_threads((handles.backend, handles.other), kind, prefix, seed, _COUNTS[kind])
    assert _judge(kind, told) == ""
    assert _overlap(told)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_processes(handles: Handles, kind: str) -> None:
    if not handles.url:
        pytest.skip("the records are in this process's memory")
    prefix = _prefix(kind, 1, handles.backend, "processes")
    told = _in_processes(handles.url, kind, prefix, 1, _COUNTS[kind])
    assert len({one.who for one in told}) == _PROCESSES
    assert _judge(kind, told) == ""
    assert _overlap(told)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_histories(handles: Handles, kind: str) -> None:
    seed = 3
    prefix = _prefix(kind, seed, handles.backend, "many")
    told = _in_threads((handles.backend, handles.other), kind, prefix, seed, 3 * _COUNTS[kind])
    if handles.url:
        prefix = _prefix(kind, seed, handles.backend, "many processes")
        assert _judge(kind, _in_processes(handles.url, kind, prefix, seed, 3 * _COUNTS[kind])) == ""
    assert _judge(kind, told) == ""


# --- the judges would notice ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        ("mixes", wrong.ValidatesNothing),
        ("mixes", wrong.ValidatesWhatItWrites),
        ("mixes", wrong.ValidatesNoAbsence),
        ("mixes", wrong.JudgesThenApplies),
        ("mixes", wrong.CountsNothing),
        ("mixes", wrong.PutsKeepNumbers),
        ("lists", wrong.ValidatesNothing),
        ("lists", wrong.ValidatesWhatItWrites),
        ("lists", wrong.JudgesThenApplies),
    ],
)
def test_a_mistake_is_noticed(kind: str, backend: Callable[[], MemoryBackend]) -> None:
    assert any(_judge(kind, _in_threads((backend(),), kind, "wrong/", seed, 40)) for seed in range(40))


def test_a_stale_read_is_noticed() -> None:
    def told(seed: int) -> list[Told]:
        leader = MemoryBackend()
        return _in_threads((leader, wrong.Lags(leader)), "registers", "wrong/", seed, 50)

    assert any(_judge("registers", told(seed)) for seed in range(10))
