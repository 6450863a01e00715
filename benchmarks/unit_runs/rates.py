"""Measure how many units per second take effect, and check after each run that each took effect exactly once."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import psycopg

from benchmarks.measure import Say, run_in_turn
from benchmarks.namespace_runs.databases import DatabaseServer
from benchmarks.unit_runs import peers
from benchmarks.unit_runs.network import Network, delayed
from benchmarks.unit_runs.tasks import create_cells, total
from benchmarks.unit_runs.worker import Order, order_json
from benchmarks.worker_processes import WorkerProcesses
from holdfast.records.database import Database, open_database
from holdfast.units.jobs import begin_job, forget_job

__all__ = ["DELAY_S", "NETWORKS", "Cell", "Measured", "Place", "Run", "opened_place", "run_cells", "run_once"]

DELAY_S = 0.001
"""Of each direction, through the proxy."""

NETWORKS = ("local", "proxy")

_numbers = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Place:
    """A database with all cells, in the tables of Holdfast and of the peers.

    Attributes:
        server: its database server.
        database: to prepare and to check runs.
        url: of the database, for that.
        worker_url: of the database, for workers.
        network: what is between them, in words.
        added_s: what the network adds to a round trip, as measured.
    """

    server: DatabaseServer
    database: Database
    url: str
    worker_url: str
    network: str
    added_s: float = 0.0

    @property
    def has_peers(self) -> bool:
        """Whether the peers know the database."""
        return self.server.name == "postgresql"


@contextmanager
def opened_place(server: DatabaseServer, network: str) -> Iterator[Place]:
    """Create all cells in a new database.

    Args:
        network: ``local`` or ``proxy``.
    """
    url = server.new_url()
    with ExitStack() as stack:
        added_s = 0.0
        worker_url, words = url, "a file" if server.pid is None else "TCP on the same machine"
        if network == "proxy":
            found = stack.enter_context(delayed(_port(url), DELAY_S))
            worker_url, words = _with_port(url, found.port), _words(found)
            added_s = (found.delayed_ms - found.direct_ms) / 1000
        elif server.name == "postgresql":
            worker_url, words = _with_socket(url), "Unix socket"
        database = stack.enter_context(open_database(url, create=True))
        create_cells(database)
        if server.name == "postgresql":
            peers.create_tables(url)
        yield Place(server=server, database=database, url=url, worker_url=worker_url, network=words, added_s=added_s)


def _words(network: Network) -> str:
    return f"delaying proxy, {network}"


def _port(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None, "the servers of benchmarks have one"
    return port


def _with_port(url: str, port: int) -> str:
    return url.replace(f":{_port(url)}/", f":{port}/")


def _with_socket(url: str) -> str:
    """Return the URL of a PostgreSQL database for its Unix socket."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW unix_socket_directories").fetchone()
    assert row is not None, "every setting has a row"
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    return f"postgresql://{login}@{parts.path}?host={row[0]}&port={parts.port}"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What to measure.

    Attributes:
        variant: a key of `VARIANTS` or of `PEERS`.
        units: of each worker; 0 for as many as there is time for.
        dies_after: units after which each worker is given up, and starts anew; 0 for never.
    """

    variant: str
    workload: str
    workers: int
    limit_s: float
    units: int = 0
    dies_after: int = 0


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run came to.

    Attributes:
        units: that the workers have reported.
        by_worker: units of each of them.
        wrong: by how many units the sum of the cells is wrong: lost ones are negative.
        conflicts: transactions that were repeated.
        tasks: the statistics of Holdfast's tasks.
    """

    units: int
    by_worker: Sequence[int]
    wrong: float
    elapsed_s: float
    conflicts: int
    client_cpu_s: float
    server_cpu_s: float
    tasks: Sequence[Mapping[str, Any]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Units per second."""
        return self.units / self.elapsed_s


@dataclass(frozen=True)
class Measured:
    """A cell with its rounds."""

    cell: Cell
    rounds: Sequence[Run]

    @property
    def rate(self) -> float:
        """The median of the units per second."""
        return statistics.median(run.rate for run in self.rounds)

    def as_dict(self) -> dict[str, Any]:
        """Return what tables and JSON need."""
        units = sum(run.units for run in self.rounds)
        conflicts = sum(run.conflicts for run in self.rounds)
        return {
            "variant": self.cell.variant,
            "workers": self.cell.workers,
            "rates": [round(run.rate, 1) for run in self.rounds],
            "rate": round(self.rate, 1),
            "wrong": sum(run.wrong for run in self.rounds),
            "units": units,
            "conflicts_per_unit": round(conflicts / units, 4),
            "least_share": round(min(_least_share(run.by_worker) for run in self.rounds), 3),
            "client_cpu_us": round(1e6 * sum(run.client_cpu_s for run in self.rounds) / units, 1),
            "server_cpu_us": round(1e6 * sum(run.server_cpu_s for run in self.rounds) / units, 1),
        }


def _least_share(by_worker: Sequence[int]) -> float:
    """Return the units of the worker that did least, divided by those of the one that did most."""
    return min(by_worker) / max(by_worker)


def run_cells(
    cells: Sequence[Cell], place: Place, workers: WorkerProcesses, rounds: int, say: Say
) -> Iterator[Measured]:
    """Measure cells in rounds, those with the same workload and number of workers in turn."""
    for (workload, count), same in itertools.groupby(cells, key=lambda cell: (cell.workload, cell.workers)):
        chosen = list(same)
        taken: dict[str, list[Run]] = {cell.variant: [] for cell in chosen}

        def contender(cell: Cell, taken: dict[str, list[Run]] = taken) -> Callable[[int], float]:
            def run(number: int) -> float:
                found = run_once(cell, place, workers, seed=number)
                taken[cell.variant].append(found)
                return 1 / found.rate

            return run

        run_in_turn({cell.variant: contender(cell) for cell in chosen}, rounds, lambda line: None, warm_ups=0)
        for cell in chosen:
            measured = Measured(cell, taken[cell.variant])
            say(f"  {place.server.name}, {workload}, {count} workers, {cell.variant}: {measured.rate:,.0f}/s")
            yield measured


def run_once(cell: Cell, place: Place, workers: WorkerProcesses, *, seed: int) -> Run:
    """Run a cell once.

    Raises:
        RuntimeError: a worker failed, or units of a variant that promises otherwise did not take effect exactly once.
    """
    is_peer = cell.variant in peers.PEERS
    job = f"run-{next(_numbers)}"
    if is_peer:
        peers.forget_progress(place.url, cell.workers)
    else:
        begin_job(place.database.backend, job, kind="map", shards=cell.workers, environment=place.database.environment)
    before = _total(place, is_peer=is_peer)
    orders = [
        Order(
            url=place.worker_url,
            variant=cell.variant,
            job=job,
            workload=cell.workload,
            worker=worker,
            workers=cell.workers,
            seed=seed,
            limit_s=cell.limit_s,
            units=cell.units,
            dies_after=cell.dies_after,
        )
        for worker in range(cell.workers)
    ]
    workers.ask([order_json(order) for order in orders])
    server_s = place.server.cpu_s()
    answers = workers.ask([{"do": "go"}] * cell.workers, cell.limit_s)
    server_s = place.server.cpu_s() - server_s
    if not is_peer:
        forget_job(place.database.backend, job, place.database.environment)
    run = _run_of(cell, answers, _total(place, is_peer=is_peer) - before, server_s)
    if run.wrong and cell.variant != "naive":
        raise RuntimeError(f"{cell.variant}: the cells are wrong by {run.wrong} of {run.units} units")
    return run


def _total(place: Place, *, is_peer: bool) -> int:
    return peers.peer_total(place.url) if is_peer else total(place.database)


def _run_of(cell: Cell, answers: Sequence[Mapping[str, Any]], added: int, server_s: float) -> Run:
    by_worker = [answer["units"] for answer in answers]
    expected = cell.units * cell.workers or sum(by_worker)
    return Run(
        units=sum(by_worker),
        by_worker=by_worker,
        wrong=added / 2 - expected,
        elapsed_s=max(one["ended_s"] for one in answers) - min(one["started_s"] for one in answers),
        conflicts=sum(answer["conflicts"] for answer in answers),
        client_cpu_s=sum(answer["cpu_s"] for answer in answers),
        server_cpu_s=server_s,
        tasks=[answer["statistics"] for answer in answers if "statistics" in answer],
    )
