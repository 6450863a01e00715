"""Let clients in several processes and threads work at the same time, and measure them.

The threads of one Python process take turns, so a process with 64 threads is slower than 64 clients are: a thread that
holds a lock in the database may have to wait for 63 others before it can go on. So clients can be spread over
processes, and a figure always says how.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any

from benchmarks.namespace_runs.worker import Order
from benchmarks.worker_processes import WorkerProcesses

__all__ = ["Clients", "Layout", "Taken"]

_NOTHING = nullcontext()


@dataclass(frozen=True, order=True)
class Layout:
    """How many processes there are, and threads in each."""

    processes: int
    threads: int

    @staticmethod
    def parse(text: str) -> Layout:
        """Parse ``8x8``: processes, then threads in each."""
        processes, separator, threads = text.partition("x")
        if not separator or not (processes + threads).isdigit() or not int(processes) * int(threads):
            raise ValueError(f"a layout is processes x threads, such as 8x8: {text}")
        return Layout(int(processes), int(threads))

    @property
    def clients(self) -> int:
        """The number of clients."""
        return self.processes * self.threads

    def __str__(self) -> str:
        return f"{self.processes}x{self.threads}"


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What one run took.

    Attributes:
        wanted, done: operations; fewer were done if time was up.
        failures: by the class of the error; they count as done.
        elapsed_s: from the first client's start to the last one's end.
        client_cpu_s, server_cpu_s: of all client processes, and of the server.
        median_ms, high_ms: the median and the 99th percentile of an operation's time.
    """

    wanted: int
    done: int
    elapsed_s: float
    client_cpu_s: float
    server_cpu_s: float
    median_ms: float
    high_ms: float
    failures: Mapping[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Operations per second."""
        return self.done / self.elapsed_s

    @property
    def is_complete(self) -> bool:
        """Whether all operations were done in time."""
        return self.done == self.wanted

    @property
    def seconds(self) -> float:
        """The time for all operations: measured, or at the rate of those that were done."""
        return self.wanted / self.rate


class Clients:
    """Processes with clients that wait for orders.

    Args:
        processes: how many there are; a layout may use fewer.
    """

    def __init__(self, processes: int) -> None:
        self._processes = WorkerProcesses("benchmarks.namespace_runs.worker", processes)

    def run(
        self,
        layout: Layout,
        order: Order,
        server_cpu_s: Callable[[], float] = lambda: 0.0,
        watch: AbstractContextManager[object] = _NOTHING,
    ) -> Taken:
        """Run a workload.

        Args:
            order: for all clients; its numbers and its threads are those of this call.
            server_cpu_s: returns the CPU seconds of the server so far.
            watch: entered while the clients work.

        Raises:
            RuntimeError: a process failed, or did not answer.
        """
        assert layout.processes <= self._processes.count, "more processes than were started"
        own = {**asdict(order), "threads": layout.threads, "stride": layout.processes}
        self._processes.ask(
            [{"do": "prepare", "order": {**own, "first": number}} for number in range(layout.processes)]
        )
        before_s = server_cpu_s()
        with watch:
            answers = self._processes.ask([{"do": "go"}] * layout.processes, order.limit_s)
        return _taken(order.count, answers, server_cpu_s() - before_s)

    def close_namespaces(self) -> None:
        """Close what the processes have opened, such as connections to a server that is about to stop."""
        self._processes.ask([{"do": "close"}] * self._processes.count)

    def __enter__(self) -> Clients:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._processes.__exit__(kind, error, traceback)


def _taken(wanted: int, answers: Sequence[Mapping[str, Any]], server_cpu_s: float) -> Taken:
    latencies_s = sorted(one for answer in answers for one in answer["latencies_s"])
    failures: Counter[str] = Counter()
    for answer in answers:
        failures.update(answer["failures"])
    return Taken(
        wanted=wanted,
        done=len(latencies_s),
        elapsed_s=max(one["ended_s"] for one in answers) - min(one["started_s"] for one in answers),
        client_cpu_s=sum(one["cpu_s"] for one in answers),
        server_cpu_s=server_cpu_s,
        median_ms=1000 * statistics.median(latencies_s),
        high_ms=1000 * latencies_s[min(len(latencies_s) - 1, int(0.99 * len(latencies_s)))],
        failures=dict(failures),
    )
