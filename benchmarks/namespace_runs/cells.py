"""Define one measured cell of a table, and run cells in turn."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from benchmarks.measure import Say, run_in_turn
from benchmarks.namespace_runs.clients import Clients, Layout, Taken
from benchmarks.namespace_runs.databases import USER, DatabaseServer
from benchmarks.namespace_runs.worker import Order
from holdfast.namespace import Namespace

__all__ = ["MODES", "Cell", "Check", "Measured", "Prepare", "run_cells", "url_for"]

MODES = ("global", "pessimistic", "optimistic", "grouped")
"""The modes of the benchmark. In ``grouped``, the threads of a process share commits, as shipped."""

Prepare = Callable[[Namespace, str], None]
"""Prepares a directory for one run of a cell."""

Check = Callable[[Namespace, str, Taken], None]
"""Checks that a run has done its work in the directory."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What to measure.

    Attributes:
        mode: one of `MODES`.
        label: what distinguishes the cell from others with the same mode and layout.
        watch: entered while the clients work.
    """

    mode: str
    layout: Layout
    workload: str
    operations: int
    limit_s: float
    label: str = ""
    options: Mapping[str, int] = field(default_factory=dict)
    prepare: Prepare = lambda namespace, root: None
    check: Check = lambda namespace, root, taken: None
    watch: AbstractContextManager[object] = field(default_factory=nullcontext)

    @property
    def name(self) -> str:
        """Name the cell among those of one experiment and database."""
        return " ".join(word for word in (self.mode, str(self.layout), self.label) if word)


@dataclass(frozen=True)
class Measured:
    """A cell with its rounds."""

    cell: Cell
    rounds: Sequence[Taken]

    @property
    def rate(self) -> float:
        """The median of the operations per second."""
        return statistics.median(taken.rate for taken in self.rounds)

    @property
    def seconds(self) -> float:
        """The time of all operations, at that rate."""
        return self.cell.operations / self.rate

    def as_dict(self) -> dict[str, Any]:
        """Return what tables and JSON need."""
        done = sum(taken.done for taken in self.rounds)
        failures: dict[str, int] = {}
        for taken in self.rounds:
            for name, count in taken.failures.items():
                failures[name] = failures.get(name, 0) + count
        return {
            "mode": self.cell.mode,
            "layout": str(self.cell.layout),
            "clients": self.cell.layout.clients,
            "label": self.cell.label,
            "operations": self.cell.operations,
            "rates": [round(taken.rate, 1) for taken in self.rounds],
            "rate": round(self.rate, 1),
            "seconds": round(self.seconds, 3),
            "complete": all(taken.is_complete for taken in self.rounds),
            "client_cpu_us": round(1e6 * sum(taken.client_cpu_s for taken in self.rounds) / done, 1),
            "server_cpu_us": round(1e6 * sum(taken.server_cpu_s for taken in self.rounds) / done, 1),
            "median_ms": round(statistics.median(taken.median_ms for taken in self.rounds), 3),
            "high_ms": round(statistics.median(taken.high_ms for taken in self.rounds), 3),
            "failures": failures,
        }


def url_for(url: str, layout: Layout) -> str:
    """Return the URL with which the processes of a layout open a database."""
    return url if url.startswith("sqlite:") else f"{url}?connections={max(8, layout.threads)}"


_roots = itertools.count()


def run_cells(
    cells: Sequence[Cell], database: DatabaseServer, clients: Clients, rounds: int, say: Say
) -> Iterator[Measured]:
    """Measure cells in a namespace of their own: in rounds, those of one layout in turn; then comes the next layout."""
    url = database.new_namespace()
    with database.open(url) as namespace:
        for _, same_layout in groupby(cells, key=lambda cell: cell.layout):
            chosen = list(same_layout)
            taken: dict[str, list[Taken]] = {cell.name: [] for cell in chosen}
            assert len(taken) == len(chosen), "cells have different names"
            contenders = {
                cell.name: _contender(cell, database, clients, namespace, url, taken[cell.name], say) for cell in chosen
            }
            run_in_turn(contenders, rounds, lambda line: None, warm_ups=0)
            clients.close_namespaces()
            yield from (Measured(cell, taken[cell.name]) for cell in chosen)


def _contender(
    cell: Cell,
    database: DatabaseServer,
    clients: Clients,
    namespace: Namespace,
    url: str,
    taken: list[Taken],
    say: Say,
) -> Callable[[int], float]:
    def run(number: int) -> float:
        root = f"/r{next(_roots)}"
        namespace.mkdirs(root)
        namespace.mkdirs(f"{root}-warm")
        cell.prepare(namespace, root)
        order = Order(
            url=url_for(url, cell.layout),
            user=USER,
            mode=cell.mode,
            workload=cell.workload,
            root=root,
            threads=cell.layout.threads,
            first=0,
            count=cell.operations,
            stride=1,
            limit_s=cell.limit_s,
            options=cell.options,
        )
        found = clients.run(cell.layout, order, database.cpu_s, cell.watch)
        taken.append(found)
        cell.check(namespace, root, found)
        failed = f", failed: {dict(found.failures)}" if found.failures else ""
        say(f"  {database.name} {cell.name}, round {number}: {found.rate:,.0f}/s, {found.done:,} done{failed}")
        return found.seconds

    return run
