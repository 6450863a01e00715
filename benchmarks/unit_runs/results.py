"""Turn measurements into results."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.fresh_process import run_module
from benchmarks.measure import Result, Say, run_in_turn
from benchmarks.namespace_runs.databases import DatabaseServer
from benchmarks.spark_session import open_session
from benchmarks.unit_runs.large_unit import CELLS as LARGE_CELLS
from benchmarks.unit_runs.large_unit import create_large_cells
from benchmarks.unit_runs.peers import PEERS
from benchmarks.unit_runs.rates import Cell, Measured, opened_place, run_cells, run_once
from benchmarks.unit_runs.tasks import VARIANTS
from benchmarks.worker_processes import WorkerProcesses

__all__ = ["Plan", "measure_levels", "measure_memory", "measure_rates", "measure_retry", "measure_shares"]

_GROUPED = ("grouped 32", "grouped 128")
_RETRIED = ("naive", "serializable", "for update", "single", "grouped 32", "server")
_SHARED = ("single", "grouped 32", "grouped 128")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure.

    Attributes:
        variants: keys of `VARIANTS` and `PEERS`.
        workers: numbers of worker processes.
        limit_s: of one run.
        units: of one job of `shares` and of `retry`, at most.
        levels: of the graph.
    """

    variants: Sequence[str]
    workloads: Sequence[str]
    networks: Sequence[str]
    workers: Sequence[int]
    rounds: int
    limit_s: float
    units: int
    levels: int
    say: Say


def _settings(experiment: str, server: DatabaseServer, **others: object) -> dict[str, object]:
    return {"experiment": experiment, "database": server.name, "server": dict(server.settings), **others}


# --- units per second -------------------------------------------------------------------------------------------------
def measure_rates(server: DatabaseServer, workers: WorkerProcesses, plan: Plan) -> Iterator[Result]:
    """Measure units per second; yield a result for each network and workload."""
    for network in plan.networks:
        if network != "local" and server.pid is None:
            continue
        with opened_place(server, network) as place:
            plan.say(f"  {server.name}: {place.network}")
            variants = [one for one in plan.variants if place.has_peers or one not in PEERS]
            for workload in plan.workloads:
                cells = [
                    Cell(variant=variant, workload=workload, workers=count, limit_s=plan.limit_s)
                    for count in plan.workers
                    for variant in variants
                ]
                found = list(run_cells(cells, place, workers, plan.rounds, plan.say))
                yield from _rate_results(
                    found,
                    f"units-{server.name}-{network}-{workload}",
                    _settings("rates", server, network=place.network, workload=workload, limit_s=plan.limit_s),
                    has_targets=(network, workload) == ("proxy", "uniform"),
                )


def _rate_results(
    found: Sequence[Measured], name: str, settings: Mapping[str, object], *, has_targets: bool
) -> Iterator[Result]:
    details = {"cells": [one.as_dict() for one in found]}
    title = f"units per second, {settings['workload']}, {settings['database']}"
    yield Result(
        benchmark=name,
        title=title,
        figure=sum(one.rounds[0].wrong != 0 for one in found if one.cell.variant != "naive"),
        figure_name="variants with a wrong sum, apart from naive",
        target=0,
        settings=settings,
        details=details,
    )
    peer = {one.cell.workers: one.rate for one in found if one.cell.variant == "serializable"}
    if not has_targets or not peer:
        return
    for what, variants, target in (("single", ("single",), 3), ("grouped", _GROUPED, 30)):
        ratios = {
            count: max(one.rate for one in found if one.cell.variant in variants and one.cell.workers == count) / rate
            for count, rate in peer.items()
            if any(one.cell.variant in variants and one.cell.workers == count for one in found)
        }
        if ratios:
            yield Result(
                benchmark=f"{name}-{what}",
                title=f"{what} beside SERIALIZABLE, through the proxy: {target}x is the target",
                figure=1 / min(ratios.values()),
                figure_name="time of a unit / SERIALIZABLE, the worst of all numbers of workers ("
                + ", ".join(f"{count}: {ratio:.1f}x" for count, ratio in ratios.items())
                + ")",
                target=1 / target,
                settings=settings,
            )


# --- a task that is repeated ------------------------------------------------------------------------------------------
def measure_retry(server: DatabaseServer, workers: WorkerProcesses, plan: Plan) -> Iterator[Result]:
    """Give every worker up after half of its units, and repeat it; yield what the cells add up to."""
    units = min(plan.units, 1_000)
    dies_after = units // 2
    rows = []
    with opened_place(server, "local") as place:
        for variant in _RETRIED:
            if variant not in plan.variants or (variant in PEERS and not place.has_peers):
                continue
            cell = Cell(
                variant=variant, workload="uniform", workers=2, limit_s=600.0, units=units, dies_after=dies_after
            )
            run = run_once(cell, place, workers, seed=1)
            rows.append({"variant": variant, "meant": units * cell.workers, "wrong": run.wrong})
            plan.say(f"  {variant}: {rows[-1]['meant']} units, wrong by {run.wrong:+g}")
    yield Result(
        benchmark=f"units-{server.name}-retry",
        title=f"tasks that are given up after half of their units, and repeated, {server.name}",
        figure=sum(bool(row["wrong"]) for row in rows if row["variant"] != "naive"),
        figure_name="variants with a wrong sum, apart from naive",
        target=0,
        settings=_settings("retry", server, units=units),
        details={"rows": rows},
    )


# --- in Spark ---------------------------------------------------------------------------------------------------------
def measure_shares(server: DatabaseServer, plan: Plan) -> Iterator[Result]:
    """Measure where the time of jobs in Spark goes."""
    from benchmarks.unit_runs.shares import measure_shares as measure

    rows = []
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-units-") as home,
        opened_place(server, "proxy") as place,
        open_session(Path(home)) as spark,
    ):
        for variant in (one for one in _SHARED if one in plan.variants):
            units = plan.units if VARIANTS[variant].group > 1 else max(200, plan.units // 20)
            rows.append(dict(measure(spark, variant, units, place)))
            plan.say(f"  {variant}: {json.dumps(rows[-1]['shares'])}")
    yield Result(
        benchmark=f"units-{server.name}-shares",
        title=f"shares of a job in Spark, two tasks, {server.name} through the proxy",
        figure=max(row["shares"]["Spark"] for row in rows),
        figure_name="largest share of Spark",
        target=1.0,
        settings=_settings("shares", server, network=place.network),
        details={"rows": rows},
    )


def measure_levels(server: DatabaseServer, plan: Plan) -> Iterator[Result]:
    """Compare a work list with one Spark job per level of a graph."""
    from benchmarks.unit_runs.levels import CONTENDERS

    width = 8
    with tempfile.TemporaryDirectory(prefix="holdfast-units-") as home, open_session(Path(home)) as spark:
        for visit in CONTENDERS.values():
            visit(spark, server.new_url(), 2, width)  # starts Spark's workers

        def run(name: str, number: int) -> float:
            return CONTENDERS[name](spark, server.new_url(), plan.levels, width)

        seconds = run_in_turn(
            {name: partial(run, name) for name in CONTENDERS},
            min(plan.rounds, 2),
            plan.say,
            warm_ups=0,
        )
    result = Result(
        benchmark=f"units-{server.name}-levels",
        title=f"{plan.levels} levels of {width} nodes, {server.name}",
        figure=0.0,
        figure_name="seconds with a work list / with one Spark job per level",
        target=0.1,
        seconds=seconds,
        settings=_settings("levels", server, levels=plan.levels, width=width),
    )
    yield result.with_figure(result.ratio_of("work list", "a job per level"))


# --- memory -----------------------------------------------------------------------------------------------------------
def measure_memory(server: DatabaseServer, plan: Plan) -> Iterator[Result]:
    """Measure the memory of a unit that reads many cells, with both kinds of buffering."""
    from holdfast.records.database import open_database

    url = server.new_url()
    with open_database(url, create=True) as database:
        create_large_cells(database)
    found: dict[str, Any] = {
        buffering: run_module("benchmarks.unit_runs.large_unit", url, buffering) for buffering in ("client", "server")
    }
    for buffering, taken in found.items():
        plan.say(f"  {buffering}: {taken['mb']:.0f} MB, {taken['seconds']:.1f} s")
    yield Result(
        benchmark=f"units-{server.name}-memory",
        title=f"peak memory of a unit that reads {LARGE_CELLS:,} cells of 1 KB, {server.name}",
        figure=found["server"]["mb"] / found["client"]["mb"],
        figure_name="MB with server-side buffering / client-side",
        target=0.5,
        settings=_settings("memory", server, cells=LARGE_CELLS),
        details={"rows": [{"buffering": buffering, **taken} for buffering, taken in found.items()]},
    )
