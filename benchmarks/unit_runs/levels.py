"""Visit a graph level by level: with a Spark job for each level, and with a work list."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import SparkSession

from holdfast.records.database import Database, open_database
from holdfast.spark.units import TransactionalMap
from holdfast.units.unit import UnitTransaction
from holdfast.units.work_list import open_work_list

__all__ = ["CONTENDERS", "visit_with_jobs", "visit_with_work_list"]

_TASKS = 2
_DISTANCE, _FRONTIER, _WORK = "distance", "frontier", "nodes"


def _next_nodes(node: tuple[int, int], levels: int, width: int) -> Iterable[tuple[int, int]]:
    """Return the neighbors of a node in the next level: of those, each has two before it."""
    level, place = node
    return [(level + 1, place), (level + 1, (place + 1) % width)] if level + 1 < levels else []


def visit_with_work_list(spark: SparkSession, url: str, levels: int, width: int) -> float:
    """Visit all nodes with one Spark job whose units emit their neighbors; return the seconds."""

    def visit(transaction: UnitTransaction, node: tuple[int, int], value: Any) -> None:
        if transaction.get(_DISTANCE, node) is None:
            transaction.put(_DISTANCE, node, node[0])
            for neighbor in _next_nodes(node, levels, width):
                transaction.emit(neighbor)

    with open_database(url, create=True) as database:
        database.create_table(_DISTANCE)
        open_work_list(database, _WORK, create=True).add_many(((0, place), None) for place in range(width))
        before_s = time.monotonic()
        TransactionalMap(visit, database=url).run_work_list(spark, _WORK, tasks=_TASKS)
        seconds = time.monotonic() - before_s
        _check(database, levels, width)
    return seconds


def visit_with_jobs(spark: SparkSession, url: str, levels: int, width: int) -> float:
    """Visit all nodes with one Spark job for each level, whose units write the next frontier; return the seconds."""

    def visit(transaction: UnitTransaction, node: tuple[int, int], value: Any) -> None:
        if transaction.get(_DISTANCE, node) is None:
            transaction.put(_DISTANCE, node, node[0])
            for neighbor in _next_nodes(node, levels, width):
                transaction.put(_FRONTIER, neighbor, b"")

    with open_database(url, create=True) as database:
        for table in (_DISTANCE, _FRONTIER):
            database.create_table(table)
        before_s = time.monotonic()
        frontier: list[Any] = [(0, place) for place in range(width)]
        for level in range(levels):
            pairs = spark.sparkContext.parallelize([(node, None) for node in frontier], _TASKS)
            TransactionalMap(visit, database=url).run(pairs, tasks=_TASKS)
            frontier = [row for row, _ in database.scan(_FRONTIER, start=(level + 1, 0), end=(level + 2, 0))]
        seconds = time.monotonic() - before_s
        _check(database, levels, width)
    return seconds


def _check(database: Database, levels: int, width: int) -> None:
    found = {row: columns["value"] for row, columns in database.scan(_DISTANCE)}
    expected = {(level, place): level for level in range(levels) for place in range(width)}
    if found != expected:
        raise RuntimeError(f"{len(found)} of {len(expected)} nodes were visited")


CONTENDERS: dict[str, Callable[[SparkSession, str, int, int], float]] = {
    "work list": visit_with_work_list,
    "a job per level": visit_with_jobs,
}
