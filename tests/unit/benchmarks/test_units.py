"""Test the parts of the benchmark of computation units: the proxy, the workloads, the peers, and what is reported."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from benchmarks import units
from benchmarks.measure import Result
from benchmarks.unit_runs import peers, results
from benchmarks.unit_runs.network import delayed
from benchmarks.unit_runs.rates import Cell, Measured, Run
from benchmarks.unit_runs.tasks import create_cells, run_attempt, total
from benchmarks.unit_runs.worker import Order, order_json
from benchmarks.unit_runs.workloads import CELLS, HOT, WORKLOADS, pairs
from holdfast.records.database import open_database
from holdfast.units.jobs import begin_job
from tests.database_servers import NewUrl
from tests.databases import needs_postgres

_DELAY_S = 0.003


# --- the network ------------------------------------------------------------------------------------------------------
@pytest.fixture
def answering_port() -> Iterator[int]:
    """Serve one connection, which gets back what it sends, twice."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while data := connection.recv(1 << 16):
                    connection.sendall(data + data)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def test_the_proxy_delays_both_directions_and_loses_nothing(answering_port: int) -> None:
    with delayed(answering_port, _DELAY_S) as network:
        assert network.delayed_ms >= 2000 * _DELAY_S > network.direct_ms
        with socket.create_connection(("127.0.0.1", network.port)) as client:
            before_s = time.monotonic()
            client.sendall(b"ab")
            assert client.recv(4, socket.MSG_WAITALL) == b"abab"
            assert time.monotonic() - before_s >= 2 * _DELAY_S
            client.sendall(b"cd")
            client.shutdown(socket.SHUT_WR)
            assert client.recv(4, socket.MSG_WAITALL) == b"cdcd"
            assert client.recv(1) == b"", "the end of the connection gets through as well"


# --- the work ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("workload", WORKLOADS)
def test_units_have_two_cells_in_order(workload: str) -> None:
    taken = [list(islice(pairs(workload, worker, 3, seed=1), 500)) for worker in range(3)]
    limit = HOT if workload == "zipf" else CELLS
    assert all(0 <= one < other < limit for cells in taken for one, other in cells)
    assert taken[0] == list(islice(pairs(workload, 0, 3, seed=1), 500)), "another attempt gets the same"
    used = [{cell for pair in cells for cell in pair} for cells in taken]
    assert used[0].isdisjoint(used[1]) == (workload == "uniform")


def test_variants_count_what_they_say() -> None:
    with open_database("memory://bench-units", create=True) as database:
        create_cells(database)
        for number, variant in enumerate(("single", "grouped 32, no hint", "server")):
            job = f"job-{variant[:6]}"
            begin_job(database.backend, job, kind="map", shards=1, environment=database.environment)
            found = run_attempt(database, variant, job, 0, islice(pairs("zipf", 0, 1, seed=number), 40))
            assert found.units == 40
            assert total(database) == 80 * (number + 1)


@needs_postgres
def test_peers_go_on_where_they_were_and_naive_does_not(new_postgres_url: NewUrl) -> None:
    url = new_postgres_url()
    peers.create_tables(url)
    cells = list(islice(pairs("zipf", 0, 1, seed=1), 6))
    expected = 0
    with peers.connect(url) as connection:
        for name in peers.PEERS:
            peers.forget_progress(url, 1)
            done = peers.Done()
            for attempt in (cells[:4], cells):
                peers.PeerTask(connection, name, 0).run(attempt, done)
            expected += 2 * (10 if name == "naive" else 6)
            assert done.units == (10 if name == "naive" else 6)
            assert peers.peer_total(url) == expected


def test_an_order_survives_the_way_to_a_worker() -> None:
    order = Order(
        url="sqlite:///x",
        variant="single",
        job="j",
        workload="zipf",
        worker=0,
        workers=1,
        seed=3,
        limit_s=1.0,
        units=5,
    )
    found = json.loads(json.dumps(order_json(order)))
    assert Order(**found["order"]) == order
    assert len(list(order.cells())) == 5


# --- the report -------------------------------------------------------------------------------------------------------
def measured(variant: str, workers: int, rate: int, wrong: float = 0.0) -> Measured:
    cell = Cell(variant=variant, workload="uniform", workers=workers, limit_s=1.0)
    run = Run(
        units=rate,
        by_worker=[rate // 2, rate],
        wrong=wrong,
        elapsed_s=1.0,
        conflicts=7,
        client_cpu_s=0.1,
        server_cpu_s=0.2,
    )
    return Measured(cell, [run])


def test_the_worst_ratio_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [
        measured("naive", 1, 90, wrong=-3),
        measured("serializable", 1, 100),
        measured("single", 1, 400),
        measured("grouped 32", 1, 4_000),
        measured("serializable", 8, 100),
        measured("single", 8, 200),
        measured("grouped 32", 8, 3_500),
        measured("grouped 32, no hint", 8, 1_234),
    ]
    settings = {
        "experiment": "rates",
        "database": "postgresql",
        "server": {},
        "network": "proxy",
        "workload": "uniform",
    }
    shown = list(results._rate_results(found, "units-x", settings, has_targets=True))
    assert [one.figure for one in shown] == [0, 0.5, 1 / 35]
    assert [one.met for one in shown] == [True, False, True]
    shares = {"Spark": 0.2, "functions": 0.1, "client": 0.1, "network": 0.5, "database": 0.1}
    shown.append(
        Result(
            benchmark="units-y",
            title="shares",
            figure=0.2,
            figure_name="Spark",
            target=1,
            settings={"experiment": "shares", "database": "postgresql", "network": "proxy"},
            details={"rows": [{"variant": "single", "units": 5, "seconds": 1.0, "calls": 9, "shares": shares}]},
        )
    )
    monkeypatch.setattr(units, "_measure", lambda *arguments: iter(shown))
    monkeypatch.setattr(units, "opened", lambda name: _Nothing())
    monkeypatch.setattr(units, "WorkerProcesses", lambda module, count: _Nothing())
    plot = tmp_path / "plot.png"
    command = ["--only", "rates", "--database", "postgresql", "--results", str(tmp_path), "--plot", str(plot)]
    assert units.main(command) == 0
    printed = capsys.readouterr().out
    assert "35.0" in printed
    assert "missed" in printed
    assert "grouped 32, no hint" in printed
    assert "database" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert plot.stat().st_size > 0
    assert json.loads((tmp_path / "units-x.json").read_text())["details"]["cells"][0]["wrong"] == -3


class _Nothing:
    name = "postgresql"

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *error: object) -> None:
        return None
