"""Measure the CPU time of each test module, with all processes that it starts, and start the longest modules first.

The default suite has a budget of 600 CPU seconds. A session prints where its time went, per folder and for the longest
modules; ``--record-cpu-times`` writes the times of modules to ``tests/cpu_times.json``, which orders later sessions.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.session_processes import session_processes

__all__ = ["CpuTimes", "in_order", "is_alone"]

_ROOT = Path(__file__).parents[1]
_RECORD = _ROOT / "tests/cpu_times.json"
_KEY = "cpu_times"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LONGEST = 12
_WORTH_PRINTING_S = 20.0


class CpuTimes:
    """A plugin that adds up the CPU seconds of each module, in every worker, and prints them at the end."""

    def __init__(self, *, is_worker: bool) -> None:
        self._is_worker = is_worker
        self._last_s = _used_s()
        self.seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
        """Charge a module for what was used since the end of the module before."""
        result = yield
        if nextitem is None or nextitem.path != item.path:
            now_s = _used_s()
            self.seconds[os.path.relpath(item.path, _ROOT)] += max(0.0, now_s - self._last_s)
            self._last_s = now_s
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Add what a worker has measured."""
        for module, seconds in getattr(node, "workeroutput", {}).get(_KEY, {}).items():
            self.seconds[module] += seconds

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send a worker's times to the session."""
        if self._is_worker:
            session.config.workeroutput[_KEY] = dict(self.seconds)  # type: ignore[attr-defined]  # set by xdist

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Print the times of folders and of the longest modules."""
        if sum(self.seconds.values()) < _WORTH_PRINTING_S:
            return
        terminalreporter.section(f"{sum(self.seconds.values()):,.0f} CPU seconds")
        folders: dict[str, float] = defaultdict(float)
        for module, seconds in self.seconds.items():
            folders["/".join(module.split("/")[: 3 if "unit/" in module or "checker/" in module else 2])] += seconds
        for name, seconds in _longest_first(folders):
            terminalreporter.line(f"{seconds:8.1f} {name}")
        terminalreporter.line(f"the {_LONGEST} longest modules:")
        for name, seconds in _longest_first(self.seconds)[:_LONGEST]:
            terminalreporter.line(f"{seconds:8.1f} {name}")
        if config.getoption("record_cpu_times"):
            times = {name: round(seconds, 1) for name, seconds in sorted(self.seconds.items()) if seconds >= 1}
            _RECORD.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")


def in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """Put the longest modules first, so that no worker is left alone with one of them at the end.

    Before them come modules with a Spark application of their own, since it ends the one that a worker's modules share.
    """
    known: Mapping[str, float] = json.loads(_RECORD.read_text(encoding="utf-8"))

    def rank(item: pytest.Item) -> tuple[bool, float]:
        return not is_alone(item), -known.get(os.path.relpath(item.path, _ROOT), 0.0)

    ranks: dict[Path, tuple[bool, float]] = {}
    for item in items:
        ranks.setdefault(item.path, rank(item))
    return sorted(items, key=lambda item: ranks[item.path])  # a stable sort: modules stay whole, tests in their order


def is_alone(item: pytest.Item) -> bool:
    """Return whether the module of a test starts Spark applications of its own."""
    return hasattr(getattr(item, "module", None), "spark_session")


def _longest_first(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda pair: -pair[1])


def _used_s() -> float:
    """Return the CPU seconds of this process, of its descendants that are over, and of those that run."""
    return sum(_of_process(pid) for pid in (os.getpid(), *(one.pid for one in session_processes())))


def _of_process(pid: int) -> float:
    """Return the CPU seconds of a process and of the children that it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has exited just now, or there is no /proc
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS_PER_S
