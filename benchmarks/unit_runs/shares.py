"""Find out where the time of a job in Spark goes: Spark, this process, the network, the database."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.unit_runs.rates import Place
from benchmarks.unit_runs.tasks import VARIANTS, reads, step
from benchmarks.unit_runs.workloads import CELLS
from holdfast.spark.units import TransactionalMap
from holdfast.units.progress import Statistics
from holdfast.units.unit import UnitTransaction

__all__ = ["Shares", "measure_shares"]

_TASKS = 2


def _step(transaction: UnitTransaction, key: int, row: Any) -> None:
    step(transaction, key, (row.one, row.other))


def _reads(key: int, row: Any) -> Any:
    return reads(key, (row.one, row.other))


@dataclass(frozen=True, kw_only=True)
class Shares:
    """The seconds of all tasks of a job, from the call to its return.

    Attributes:
        spark: not in the tasks' units: planning, shuffling and sorting the rows, starting tasks.
        function: in the functions of the units, without the calls of the database.
        client: what else the tasks' Python does: rows from Spark, groups, keys, progress.
        network: what the network adds to the calls of the database: as many round trips as there are calls.
        database: the rest of these calls: the server, its disk, and the driver in Python.
    """

    spark: float
    function: float
    client: float
    network: float
    database: float

    def as_dict(self) -> dict[str, float]:
        """Return the shares of the whole."""
        parts = {
            "Spark": self.spark,
            "functions": self.function,
            "client": self.client,
            "network": self.network,
            "database": self.database,
        }
        whole = sum(parts.values())
        return {name: round(seconds / whole, 3) for name, seconds in parts.items()}


def measure_shares(spark: SparkSession, variant: str, units: int, place: Place) -> Mapping[str, Any]:
    """Run a job, and say where its time has gone.

    Args:
        place: a database behind a network.
    """
    _run(spark, variant, 200, place)  # starts Spark's workers, and their connections
    seconds, found = _run(spark, variant, units, place)
    calls_s = found.read_s + found.commit_s
    reads = 0 if VARIANTS[variant].hints else 2 * units  # what is named beforehand is read with a commit
    trips = found.groups + found.conflicts + reads
    network_s = min(calls_s, trips * place.added_s)
    shares = Shares(
        spark=_TASKS * seconds - found.run_s,
        function=found.function_s,
        client=found.run_s - found.function_s - calls_s,
        network=network_s,
        database=calls_s - network_s,
    )
    return {
        "variant": variant,
        "units": units,
        "seconds": round(seconds, 3),
        "units_per_s": round(units / seconds, 1),
        "round_trips": trips,
        "shares": shares.as_dict(),
    }


def _run(spark: SparkSession, variant: str, units: int, place: Place) -> tuple[float, Statistics]:
    chosen = VARIANTS[variant]
    first = f"2 * id % {CELLS}"
    rows = spark.range(units).selectExpr("id", f"int({first}) AS one", f"int({first} + 1) AS other")
    job = TransactionalMap(
        _step,
        database=place.worker_url,
        reads=_reads if chosen.hints else None,
        group=chosen.group,
        buffering=chosen.buffering,
    )
    before_s = time.monotonic()
    report = job.run(rows, key="id", tasks=_TASKS)
    seconds = time.monotonic() - before_s
    if report.total.units != units:
        raise RuntimeError(f"{report.total.units} of {units} units took effect")
    return seconds, report.total
