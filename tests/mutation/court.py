"""Let tests judge mutants, each in a process forked from one that has collected the tests and imported everything.

This is a pytest plugin that replaces the loop over the tests. First each test runs once on the shipped code, and the
functions that it executes are recorded. Then, for each mutant, the tests that execute its function run on it, until one
fails: first those that killed other mutants of the function, then the quickest. The processes that run mutants share
nothing, and are killed when they take too long.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any

import pytest
from _pytest import runner

from tests.mutation.coverage import Coverage, Place
from tests.mutation.mutants import Mutant, plant
from tests.mutation.parts import needs_server

__all__ = ["Court", "Verdict"]

_HANG_FACTOR, _HANG_S, _WAIT_S = 10.0, 5.0, 60.0
"""A test hangs if it uses more than this many times its usual CPU time, plus `_HANG_S`; or, since a test that waits
uses no CPU time, if it takes as many times its usual CPU time, plus `_WAIT_S`."""

_HANGS = 2
"""Number of hanging tests after which judging ends; until then another test may fail, which says more."""

_MEMORY_BYTES = 4 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the tests found about a mutant.

    Attributes:
        kind: "killed", "hangs", "survived", or "not run": no test executes its function.
        test: the test that failed or hung.
        asked: the number of tests that ran.
        seconds: CPU time in seconds.
    """

    kind: str
    test: str = ""
    asked: int = 0
    seconds: float = 0.0

    @property
    def is_caught(self) -> bool:
        return self.kind in ("killed", "hangs")


@dataclass(slots=True)
class _Evidence:
    """What is known about the tests: which tests execute each function, and how long each test takes."""

    items: dict[str, pytest.Item] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    passing: dict[Place, set[str]] = field(default_factory=dict)
    kills: dict[Place, dict[str, int]] = field(default_factory=dict)

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a mutant's function: first those that killed other mutants of it."""
        kills, found = self.kills.get(mutant.place, {}), self.passing.get(mutant.place, set())
        return sorted(found, key=lambda test: (-kills.get(test, 0), self.seconds[test], test))

    def longest_s(self, last: Sequence[Any]) -> float:
        """Return how long a process says nothing, at most, that said last which test runs."""
        return self.seconds.get(last[1], 0.0) * _HANG_FACTOR + _WAIT_S if last else _WAIT_S

    def learn(self, mutant: Mutant, verdict: Verdict) -> None:
        if verdict.kind == "killed":
            kills = self.kills.setdefault(mutant.place, {})
            kills[verdict.test] = kills.get(verdict.test, 0) + 1


class Court:
    """The pytest plugin that judges mutants.

    Args:
        mutants: the mutants to judge, in this order.
        packages: those that are mutated.
        workers: number of concurrent processes.
        patience_s: CPU seconds after which no further test runs on a mutant.
        told: called with each verdict.
        say: called with reports of progress.
    """

    def __init__(
        self,
        mutants: Sequence[Mutant],
        packages: Sequence[str],
        *,
        workers: int,
        patience_s: float,
        told: Callable[[Mutant, Verdict], None],
        say: Callable[[str], None],
    ) -> None:
        self._mutants = mutants
        self._workers = workers
        self._patience_s = patience_s
        self._told = told
        self._say = say
        self._evidence = _Evidence()
        self._coverage = Coverage(*packages)
        self._setups: set[Place] = set()
        self._began_s = self._setup_s = 0.0

    def pytest_configure(self) -> None:
        """Use the same examples for every mutant, and store none of them."""
        from hypothesis import settings  # only now: pytest must be imported first

        settings.register_profile("mutants", settings.default, database=None, derandomize=True)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [one for one in items if not needs_server(one)]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        started_s = time.monotonic()
        self._gather(session)
        known = self._evidence
        self._say(f"{len(known.seconds)} tests pass on the shipped code ({time.monotonic() - started_s:.0f} s)")
        self._judge_all()
        return True

    # --- the shipped code ---------------------------------------------------------------------------------------------
    def _gather(self, session: pytest.Session) -> None:
        by_file: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            by_file.setdefault(str(item.path), []).append(item)
        jobs = [partial(_Fork, partial(self._watch, items)) for items in by_file.values()]
        for job in _side_by_side(jobs, self._workers):
            for test, seconds, places in job.said:
                self._evidence.seconds[test] = seconds
                for module, function in places:
                    self._evidence.passing.setdefault((module, function), set()).add(test)
        self._evidence.items = {item.nodeid: item for item in session.items if item.nodeid in self._evidence.seconds}

    def _watch(self, items: Sequence[pytest.Item], write: Callable[[object], None]) -> None:
        """Run the tests of a file, and record what each executes; tests that fail cannot judge."""
        with self._coverage.watching():
            for item, after in zip(items, (*items[1:], None), strict=True):
                self._coverage.ran.clear()
                self._began_s = time.process_time()
                if _run(item, after, between=self._note_setup):
                    seconds = time.process_time() - self._began_s + self._setup_s
                    write([item.nodeid, seconds, sorted(self._setups | self._coverage.ran)])

    def _note_setup(self) -> None:
        """Record what a fixture of the whole file executes, and its time, for every test of the file."""
        self._setups |= self._coverage.ran
        self._setup_s = max(self._setup_s, time.process_time() - self._began_s)

    # --- mutants ------------------------------------------------------------------------------------------------------
    def _judge_all(self) -> None:
        def jobs() -> Iterator[Callable[[], _Fork]]:
            for mutant in self._mutants:
                tests = self._evidence.tests_of(mutant)
                if not tests:
                    self._told(mutant, Verdict(kind="not run"))
                    continue
                work = partial(self._judge, mutant, tests)
                yield partial(_Fork, work, about=mutant, longest_s=self._evidence.longest_s)

        for job in _side_by_side(jobs(), self._workers):
            mutant = job.about
            assert isinstance(mutant, Mutant)
            verdict = _verdict(job)
            self._evidence.learn(mutant, verdict)
            self._told(mutant, verdict)

    def _judge(self, mutant: Mutant, tests: Sequence[str], write: Callable[[object], None]) -> None:
        """Judge in a separate process: report which test runs, then its result."""
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
        if not plant(mutant):
            write(["same", "", 0.0])
            return
        hung: list[str] = []
        for test in tests:
            write(["runs", test, time.process_time()])
            with _time_limit(self._evidence.seconds[test] * _HANG_FACTOR + _HANG_S) as is_over:
                passed = _run(self._evidence.items[test], None)
            if not passed and not is_over():
                write(["failed", test, time.process_time()])
                return
            hung += [test] * (not passed)
            if len(hung) == _HANGS or time.process_time() > self._patience_s:
                break
        write(["hangs", hung[0], time.process_time()] if hung else ["passed", "", time.process_time()])


def _verdict(job: _Fork) -> Verdict:
    asked = sum(one[0] == "runs" for one in job.said)
    last = job.said[-1] if job.said else ["runs", "", 0.0]
    if last[0] == "same":
        return Verdict(kind="survived", test="the compiled code is the same")
    kind = {"failed": "killed", "hangs": "hangs", "passed": "survived"}.get(last[0])
    if kind is None:  # it ended within a test: out of memory, or killed because it did not end
        kind = "hangs" if job.was_killed else "killed"
    return Verdict(kind=kind, test=last[1], asked=asked, seconds=round(last[2], 2))


def _run(item: pytest.Item, after: pytest.Item | None, between: Callable[[], None] = lambda: None) -> bool:
    """Run a test, keep the fixtures that `after` needs as well, and return whether the test passes or is skipped."""
    item.session._setupstate  # noqa: B018  # as pytest's own loop does, the state is the session's
    reports = [runner.call_and_report(item, "setup", log=False)]
    between()
    if reports[0].passed:
        reports.append(runner.call_and_report(item, "call", log=False))
    reports.append(runner.call_and_report(item, "teardown", log=False, nextitem=after))
    return not any(report.failed for report in reports)


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[Callable[[], bool]]:
    """Raise an error in the main thread when the CPU time is used up."""
    over = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal over
        over = True
        signal.setitimer(signal.ITIMER_PROF, 0.5)  # again: code under test may have caught the first one
        raise TimeoutError("the test does not end")

    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield lambda: over
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


# --- processes --------------------------------------------------------------------------------------------------------
_Send = Callable[[object], None]


class _Fork:
    """A task in a separate process, and what it sends.

    Args:
        about: whatever the caller wants to find again.
        longest_s: for how long it may say nothing, given what it said last.
    """

    def __init__(
        self,
        work: Callable[[_Send], None],
        *,
        about: object = None,
        longest_s: Callable[[Sequence[Any]], float] = lambda _last: 1200.0,
    ) -> None:
        self.about = about
        self.said: list[Any] = []
        self.was_killed = False
        self._longest_s = longest_s
        self._heard_s = time.monotonic()
        self.reads, writes = _FORKS.Pipe(duplex=False)
        self._process = _FORKS.Process(target=_run_apart, args=(work, writes))
        self._process.start()
        writes.close()

    def read(self) -> bool:
        """Read what comes next; return False if the process has ended."""
        try:
            self.said.append(self.reads.recv())
        except EOFError:
            self.kill()
            self._process.join()
            return False
        self._heard_s = time.monotonic()
        return True

    def kill_if_late(self) -> None:
        if time.monotonic() - self._heard_s > self._longest_s(self.said[-1] if self.said else []):
            self.was_killed = True
            self.kill()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)  # and everything that it started


_FORKS = multiprocessing.get_context("fork")


def _run_apart(work: Callable[[_Send], None], writes: Connection) -> None:
    """Work in a process group of its own, without output; end without cleaning up, which is the parent's."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    try:
        work(writes.send)
    finally:
        os._exit(0)


def _side_by_side(jobs: Iterable[Callable[[], _Fork]], workers: int) -> Iterator[_Fork]:
    """Run jobs concurrently, at most `workers` at a time, and yield each job when it has ended."""
    waiting = iter(jobs)
    running: dict[Any, _Fork] = {}
    try:
        while True:
            while len(running) < workers and (start := next(waiting, None)) is not None:
                job = start()
                running[job.reads] = job
            if not running:
                return
            for reads in wait(list(running), 1.0):
                if not running[reads].read():
                    yield running.pop(reads)
            for job in running.values():
                job.kill_if_late()
    finally:
        for job in running.values():
            job.kill()
