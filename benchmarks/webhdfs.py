"""Measure the server of a namespace: ``python benchmarks/webhdfs.py --help``.

- ``operations``: 64 connections of small operations through the server, against 64 threads that use the library in one
  process, on the same database in the same run.
- ``servers``: paper 004's experiments with several namenodes: directories made below one parent, half of the operations
  only looks, and conflicts, through 1, 2 and 4 servers on one database.
- ``parquet``: stock Spark writes and reads Parquet through WebHDFS, against the local disk.

Starts databases and servers itself, with durable commits. Exits with 0 if every benchmark ran: a missed target is a
finding, not a failure. docs/explanation/benchmarks.md explains the figures.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for a script, only its own directory is on the path

from benchmarks.command_line import add_json_option, add_results_option, positive, run
from benchmarks.measure import Result, Say, run_in_turn
from benchmarks.namespace_runs.clients import Clients, Layout
from benchmarks.namespace_runs.databases import DATABASES, USER, DatabaseServer, opened
from benchmarks.namespace_runs.worker import Order
from benchmarks.spark_session import open_session
from benchmarks.webhdfs_runs.servers import started_servers
from benchmarks.worker_processes import WorkerProcesses

__all__ = ["main"]

_WHAT = ("operations", "servers", "parquet")
_CONNECTIONS = 64
_WORKLOADS = ("status", "mkdirs", "mixed")
_roots = itertools.count()


def _library_rate(clients: Clients, url: str, root: str, workload: str, count: int, limit_s: float) -> float:
    order = Order(
        url=url,
        user=USER,
        mode="grouped",
        workload=workload,
        root=root,
        threads=_CONNECTIONS,
        first=0,
        count=count,
        stride=1,
        limit_s=limit_s,
    )
    return clients.run(Layout(1, _CONNECTIONS), order).rate


def _server_rate(
    load: WorkerProcesses,
    addresses: Sequence[str],
    root: str,
    workload: str,
    count: int,
    limit_s: float,
    sharing: int = 1,
) -> float:
    order = {
        "addresses": addresses,
        "clients": _CONNECTIONS,
        "workload": workload,
        "root": root,
        "count": count,
        "limit_s": limit_s,
        "options": {"sharing": sharing},
    }
    (answer,) = load.ask([order], limit_s)
    if answer["failed"]:
        raise RuntimeError(f"{answer['failed']} requests failed")
    return float(answer["rate"])


def _measure_operations(database: DatabaseServer, arguments: argparse.Namespace, say: Say) -> Iterator[Result]:
    url = database.new_namespace()
    count, limit_s = arguments.operations, arguments.limit_s
    with (
        database.open(url) as namespace,
        Clients(1) as clients,
        WorkerProcesses("benchmarks.webhdfs_runs.load", 1) as load,
        started_servers(url, 1, arguments.workers) as addresses,
    ):
        for workload in _WORKLOADS:
            rates: dict[str, list[float]] = {"library": [], "server": []}

            def measure(name: str, workload: str = workload, rates: dict[str, list[float]] = rates) -> float:
                root = f"/r{next(_roots)}"
                namespace.mkdirs(root)
                namespace.mkdirs(f"{root}-warm")
                rate = (
                    _library_rate(clients, url, root, workload, count, limit_s)
                    if name == "library"
                    else _server_rate(load, addresses, root, workload, count, limit_s)
                )
                rates[name].append(rate)
                return count / rate

            contenders = {name: (lambda number, name=name: measure(name)) for name in rates}
            seconds = run_in_turn(contenders, arguments.rounds, say, warm_ups=1)
            library, server = (statistics.median(rates[name][1:]) for name in ("library", "server"))
            yield Result(
                benchmark=f"webhdfs-{workload}-{database.name}",
                title=f"{_CONNECTIONS} connections, {workload}, {database.name}",
                figure=library / server,
                figure_name="rate of the library / rate of the server",
                target=2.0,
                seconds=seconds,
                settings={"workers": arguments.workers, "operations": count, "server": dict(database.settings)},
                details={"library": f"{library:,.0f}/s", "server": f"{server:,.0f}/s"},
            )


_EXPERIMENTS: Mapping[str, tuple[str, int]] = {
    "same parent (Table 3)": ("mkdirs", 1),
    "half looks (Table 6)": ("mixed", 1),
    "conflicts, 8 want a name (Table 7)": ("mkdirs", 8),
}


def _measure_servers(database: DatabaseServer, arguments: argparse.Namespace, say: Say) -> Iterator[Result]:
    url = database.new_namespace()
    with database.open(url) as namespace, WorkerProcesses("benchmarks.webhdfs_runs.load", 1) as load:
        rates: dict[tuple[str, int], list[float]] = {}
        for servers in (1, 2, 4):
            with started_servers(url, servers) as addresses:
                for name, (workload, sharing) in _EXPERIMENTS.items():
                    for number in range(arguments.rounds + 1):
                        root = f"/r{next(_roots)}"
                        namespace.mkdirs(root)
                        rate = _server_rate(
                            load, addresses, root, workload, arguments.operations, arguments.limit_s, sharing
                        )
                        say(f"  {name}, {servers} servers, round {number}: {rate:,.0f}/s")
                        if number:
                            rates.setdefault((name, servers), []).append(rate)
    for name in _EXPERIMENTS:
        medians = {servers: statistics.median(rates[name, servers]) for servers in (1, 2, 4)}
        yield Result(
            benchmark=f"webhdfs-servers-{database.name}",
            title=f"{name}, {_CONNECTIONS} connections, {database.name}",
            figure=medians[1] / medians[2],
            figure_name="rate of one server / rate of two",
            target=1.0,
            settings={"operations": arguments.operations, "server": dict(database.settings)},
            details={f"{servers} servers": f"{rate:,.0f}/s" for servers, rate in medians.items()},
        )


def _measure_parquet(arguments: argparse.Namespace, say: Say) -> Iterator[Result]:
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-webhdfs-") as home,
        opened("sqlite") as database,
        started_servers(url := database.new_namespace(), 1) as addresses,
        open_session(Path(home)) as spark,
    ):
        with database.open(url) as namespace:
            namespace.set_permission("/", 0o777)
        places = {"local": f"file://{home}/table", "webhdfs": f"webhdfs://{addresses[0]}/table"}
        columns = ("id", "id * 7 AS a", "CAST(id % 1000 AS INT) AS b", "rand(1) AS c", "CAST(id AS STRING) AS s")
        rows = spark.range(0, arguments.rows, 1, 4).selectExpr(*columns)

        def write(name: str, number: int) -> float:
            begun_s = time.perf_counter()
            rows.write.mode("overwrite").parquet(places[name] + str(number % 2))
            return time.perf_counter() - begun_s

        def read(name: str, number: int) -> float:
            begun_s = time.perf_counter()
            spark.read.parquet(places[name] + "0").selectExpr("sum(a)", "max(c)", "count(s)").collect()
            return time.perf_counter() - begun_s

        for what, act in (("write", write), ("read", read)):
            contenders: dict[str, Any] = {
                name: (lambda number, name=name, act=act: act(name, number)) for name in places
            }
            seconds = run_in_turn(contenders, arguments.rounds, say, warm_ups=2)
            result = Result(
                benchmark=f"webhdfs-parquet-{what}",
                title=f"stock Spark, {what} {arguments.rows:,} rows of Parquet",
                figure=0.0,
                figure_name="time through WebHDFS / local disk",
                target=1.1,
                seconds=seconds,
                settings={"rows": arguments.rows, "columns": len(columns)},
            )
            yield result.with_figure(result.ratio_of("webhdfs", "local"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure the server of a namespace.")
    parser.add_argument("--only", action="append", choices=_WHAT, help="a benchmark (all)")
    parser.add_argument("--database", action="append", choices=DATABASES, help="a database (postgresql and sqlite)")
    parser.add_argument("--workers", type=positive, default=2, help="processes of the server (2)")
    parser.add_argument("--operations", type=positive, default=10_000, help="operations of each round (10000)")
    parser.add_argument("--rows", type=positive, default=20_000_000, help="rows of the table (20000000)")
    parser.add_argument("--rounds", type=positive, default=3, help="rounds; the medians count (3)")
    parser.add_argument(
        "--limit-s", type=float, default=4.0, help="seconds after which a round of operations stops (4)"
    )
    add_results_option(parser)
    add_json_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks with the given arguments, or with those of the process."""
    arguments = _parser().parse_args(argv)
    wanted = arguments.only or _WHAT

    def measure(say: Say) -> Iterator[Result]:
        for name in arguments.database or ("postgresql", "sqlite"):
            with opened(name) as database:
                if "operations" in wanted:
                    yield from _measure_operations(database, arguments, say)
                if "servers" in wanted and name == "postgresql":
                    yield from _measure_servers(database, arguments, say)
        if "parquet" in wanted:
            yield from _measure_parquet(arguments, say)

    return run(measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
