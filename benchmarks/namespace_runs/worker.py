"""Be a process with clients: it takes orders as JSON lines on its standard input, and answers with JSON lines.

| order | answer |
|---|---|
| ``prepare`` with the fields of `Order` | ``ready``, once every thread has a connection |
| ``go`` | what the clients did, see `_go` |
| ``close`` | ``closed``: the namespaces that were opened are closed |
"""

from __future__ import annotations

import json
import sys
import threading
import time
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.namespace_runs.workloads import WORKLOADS, Act
from holdfast.errors import HoldfastError
from holdfast.namespace import Namespace, open_namespace
from holdfast.namespace.keys import ROOT_KEY
from holdfast.transactions.base import Backend, LockingTransaction
from holdfast.transactions.group_commit import GroupCommit

__all__ = ["Order", "main", "open_in_mode"]

_WARM_UP = 2
"""So many operations each thread does before the start, elsewhere."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What the clients of one process are to do.

    Attributes:
        url: of the database.
        mode: of the namespace.
        workload: its name in `WORKLOADS`.
        root: the directory in which it takes place; ``<root>-warm`` exists too.
        first, count, stride: the numbers of this process's operations.
        limit_s: when to stop.
        options: of the workload.
    """

    url: str
    user: str
    mode: str
    workload: str
    root: str
    threads: int
    first: int
    count: int
    stride: int
    limit_s: float
    options: Mapping[str, int] = field(default_factory=dict)


class _Clients:
    """The threads of one order."""

    def __init__(self, namespace: Namespace, order: Order) -> None:
        self._namespace = namespace
        self._order = order
        self._act: Act = WORKLOADS[order.workload](order.root, order.options)
        self._numbers: Iterator[int] = iter(range(order.first, order.count, order.stride))
        self._latencies_s = [array("d") for _ in range(order.threads)]
        self._failures: list[str] = []
        self._start = threading.Barrier(order.threads)
        self._deadline_s = 0.0
        self._threads = ThreadPoolExecutor(order.threads)

    def prepare(self) -> None:
        """Let every thread warm up."""
        list(self._threads.map(self._warm_up, range(self._order.threads)))

    def _warm_up(self, thread: int) -> None:
        self._start.wait()  # all at once, so that all of them need a connection
        for number in range(_WARM_UP):
            self._namespace.mkdirs(f"{self._order.root}-warm/{self._order.first}-{thread}-{number}")

    def go(self) -> dict[str, Any]:
        """Let the threads work; return what they did."""
        cpu_s, started_s = time.process_time(), time.monotonic()
        self._deadline_s = started_s + self._order.limit_s
        list(self._threads.map(self._work, self._latencies_s))
        ended_s = time.monotonic()
        self._threads.shutdown()
        return {
            "started_s": started_s,
            "ended_s": ended_s,
            "cpu_s": time.process_time() - cpu_s,
            "failures": dict(Counter(self._failures)),
            "latencies_s": [one for taken in self._latencies_s for one in taken],
        }

    def _work(self, latencies_s: array[float]) -> None:
        self._start.wait()  # or a thread that ends early would work for another one
        clock, act, namespace, deadline_s = time.monotonic, self._act, self._namespace, self._deadline_s
        begun_s = clock()
        for number in self._numbers:  # the threads share it: each number goes to one of them
            if begun_s > deadline_s:
                return
            try:
                act(namespace, number)
            except HoldfastError as error:
                self._failures.append(type(error).__name__)
            ended_s = clock()
            latencies_s.append(ended_s - begun_s)
            begun_s = ended_s


def open_in_mode(mode: str, url: str, **options: Any) -> Namespace:
    """Open a namespace in a mode: ``grouped`` as shipped; without shared commits, ``optimistic``, ``pessimistic`` or
    ``global``.

    Args:
        options: see `open_namespace`.
    """
    namespace = open_namespace(url, **options)
    if mode == "grouped":
        return namespace
    assert isinstance(namespace.database, GroupCommit)
    alone = namespace.database._inner
    namespace.operations.database = _OneAtATime(alone) if mode == "global" else alone
    if mode != "optimistic":
        namespace.operations.tries_without_locks = 0
    return namespace


class _OneAtATime:
    """A database whose transactions lock the root exclusively first, as HDFS locks the whole namespace."""

    def __init__(self, inner: Backend) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @contextmanager
    def begin_locking_transaction(self) -> Iterator[LockingTransaction]:
        with self._inner.begin_locking_transaction() as transaction:
            transaction.read([ROOT_KEY], exclusive=True)
            yield transaction


def main() -> None:
    """Obey orders until the standard input ends."""
    namespaces: dict[tuple[str, str], Namespace] = {}
    clients: _Clients | None = None
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any]
        if order["do"] == "prepare":
            wanted = Order(**order["order"])
            place = (wanted.url, wanted.mode)
            if place not in namespaces:
                namespaces[place] = open_in_mode(wanted.mode, wanted.url, user=wanted.user, groups=())
            clients = _Clients(namespaces[place], wanted)
            clients.prepare()
            answer = {"ready": True}
        elif order["do"] == "go":
            assert clients is not None, "first prepare"
            answer = clients.go()
        else:
            for namespace in namespaces.values():
                namespace.close()
            namespaces.clear()
            answer = {"closed": True}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
