"""Run the experiments, and turn what was measured into results with figures and targets."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.measure import Result, Say, run_in_turn
from benchmarks.namespace_runs import paper
from benchmarks.namespace_runs.cells import Cell, Measured, run_cells
from benchmarks.namespace_runs.clients import Clients, Layout
from benchmarks.namespace_runs.databases import DatabaseServer
from benchmarks.namespace_runs.experiments import EXPERIMENTS, OPERATIONS, Scale
from benchmarks.namespace_runs.growth import Series, measure_depths, measure_entries, measure_trees
from benchmarks.namespace_runs.peer import DURABILITIES, Juicefs, TreeRun, make_our_tree
from benchmarks.namespace_runs.waits import WaitSampler

__all__ = ["Run", "measure_growth", "measure_paper", "measure_peer", "measure_waits"]

_FLAT = 1.5
"""What a flat series may grow by, from its smallest size to its largest."""

_TARGETS: Mapping[tuple[str, str], float] = {("postgresql", "optimistic"): 1 / 5, ("postgresql", "grouped"): 1 / 10}
"""By database and mode: the time of directories in one directory, relative to pessimistic. The others: the paper's."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What all experiments need.

    Attributes:
        files: for the peer, by the number of clients: files of each client in each directory.
        entries: for growth: the sizes of a directory.
        trees: for growth: the sizes of trees.
        samples: for growth: operations of each kind.
    """

    scale: Scale
    rounds: int
    files: Mapping[int, int]
    entries: Sequence[int]
    trees: Sequence[int]
    samples: int
    say: Say


# --- the experiments of paper 004 -------------------------------------------------------------------------------------
def measure_paper(experiment: str, database: DatabaseServer, clients: Clients, run: Run) -> Iterator[Result]:
    """Measure an experiment of the paper on one database."""
    cells = EXPERIMENTS[experiment](run.scale)
    found = list(run_cells(cells, database, clients, run.rounds, run.say))
    for number, (what, figure, target) in enumerate(_figures(experiment, database.name, found, run.scale)):
        yield Result(
            benchmark=f"namespace-{experiment}-{database.name}-{what}",
            title=f"{experiment}, {database.name}, {run.scale.wide.clients} clients: {what}",
            figure=figure,
            figure_name=_FIGURE_NAMES[experiment],
            target=target,
            seconds=_seconds(found, run.scale.wide) if not number else {},
            settings={"experiment": experiment, "database": database.name, "server": dict(database.settings)},
            details={"cells": [one.as_dict() for one in found]} if not number else {},
        )


_FIGURE_NAMES = {
    "same-parent": "time, relative to pessimistic",
    "mixed": "time, relative to pessimistic",
    "conflicts": "time if all want the same name, relative to no conflicts",
    "operations": "time, relative to pessimistic: the worst of all operations",
}


def _figures(
    experiment: str, database: str, found: Sequence[Measured], scale: Scale
) -> Iterator[tuple[str, float, float]]:
    """Yield mode, figure and target."""
    times = {(one.cell.mode, one.cell.label): one.seconds for one in found if one.cell.layout == scale.wide}
    for mode in ("optimistic", "grouped"):
        if mode not in scale.modes:
            continue
        if experiment == "conflicts":
            few, many = f"{min(scale.names):,} names", f"{max(scale.names):,} names"
            yield mode, times[mode, few] / times[mode, many], paper.CONFLICTS[1] / paper.CONFLICTS[10_000]
        elif "pessimistic" in scale.modes:
            labels = [*OPERATIONS] if experiment == "operations" else [f"{scale.usual:,}"]
            figure = max(times[mode, label] / times["pessimistic", label] for label in labels)
            yield mode, figure, _target(experiment, database, mode)


def _target(experiment: str, database: str, mode: str) -> float:
    if experiment == "operations":
        return 1.0
    if experiment == "mixed":
        return 1 / paper.slower_than_occ(paper.MIXED, 10_000)
    return _TARGETS.get((database, mode), 1 / paper.slower_than_occ(paper.SAME_PARENT, 10_000))


def _seconds(found: Sequence[Measured], layout: Layout) -> dict[str, list[float]]:
    return {one.cell.name: [taken.seconds for taken in one.rounds] for one in found if one.cell.layout == layout}


# --- where the time goes ----------------------------------------------------------------------------------------------
def measure_waits(database: DatabaseServer, clients: Clients, run: Run) -> Iterator[Result]:
    """Watch the connections to PostgreSQL while directories are made in one directory."""
    found: list[dict[str, Any]] = []
    for layout, modes in ((run.scale.wide, run.scale.modes), (Layout(1, run.scale.wide.clients), ("grouped",))):
        samplers = {mode: WaitSampler(database.admin_url) for mode in modes}
        cells = [
            Cell(
                mode=mode,
                layout=layout,
                workload="mkdirs",
                operations=1_000_000,
                limit_s=run.scale.limit_s,
                watch=sampler,
            )
            for mode, sampler in samplers.items()
        ]
        for measured in run_cells(cells, database, clients, 1, run.say):
            waits = samplers[measured.cell.mode].means()
            run.say(f"  {measured.cell.name}: {waits}")
            found.append({**measured.as_dict(), "waits": waits})
    yield Result(
        benchmark=f"namespace-waits-{database.name}",
        title=f"where the time goes, {database.name}",
        figure=found[-1]["client_cpu_us"] + found[-1]["server_cpu_us"],
        figure_name="CPU microseconds of client and server for each operation, grouped in one process",
        target=100.0,
        settings={"experiment": "waits", "database": database.name, "server": dict(database.settings)},
        details={"cells": found},
    )


# --- growth -----------------------------------------------------------------------------------------------------------
def measure_growth(database: DatabaseServer, run: Run) -> Iterator[Result]:
    """Measure how the cost of an operation depends on the size of a directory, on depth, and on the size of a tree."""
    for name, series in (
        ("entries", measure_entries(database, run.entries, run.samples, run.say)),
        ("depth", measure_depths(database, run.samples, run.say)),
        ("trees", measure_trees(database, run.trees, 5, run.say)),
    ):
        yield Result(
            benchmark=f"namespace-growth-{name}-{database.name}",
            title=f"growth with {name}, {database.name}, one client",
            figure=max(growth for operation, growth in _growths(series).items() if "cold" not in operation),
            figure_name="time at the largest size, relative to the smallest: the worst operation, cold clients aside",
            target=_FLAT,
            settings={"experiment": "growth", "database": database.name, "by": name, "samples": run.samples},
            details={"microseconds": {operation: dict(of) for operation, of in series.items()}},
        )


def _growths(series: Series) -> dict[str, float]:
    return {operation: of[max(of)] / of[min(of)] for operation, of in series.items()}


# --- the peer ---------------------------------------------------------------------------------------------------------
def measure_peer(
    database: DatabaseServer, clients: Clients, program: str, layouts: Sequence[Layout], run: Run
) -> Iterator[Result]:
    """Compare with JuiceFS on the same server, in turn.

    Args:
        program: the path of JuiceFS.
        layouts: of our clients; JuiceFS is one process.
    """
    for durability, (ours, theirs) in DURABILITIES.get(database.name, {}).items():
        url = database.new_namespace()
        juicefs = Juicefs(program, database, theirs)
        with database.open(f"{url}?{ours}" if ours else url) as namespace:
            for count, files in run.files.items():
                makers = {
                    f"holdfast {layout}": partial(make_our_tree, database, namespace, clients, url, ours, layout, files)
                    for layout in layouts
                    if layout.clients == count
                }
                taken = _run_trees({**makers, "juicefs": partial(juicefs.make_tree, count, files)}, run)
                clients.close_namespaces()
                yield _peer_result(database, durability, count, files, taken)


def _run_trees(makers: Mapping[str, Callable[[], TreeRun]], run: Run) -> Mapping[str, Sequence[TreeRun]]:
    taken: dict[str, list[TreeRun]] = {name: [] for name in makers}

    def make(name: str, number: int) -> float:
        found = makers[name]()
        taken[name].append(found)
        run.say(f"  {name}, round {number}: {found.files / found.files_s:,.0f} files/s")
        return found.files_s

    run_in_turn({name: partial(make, name) for name in makers}, run.rounds, lambda line: None, warm_ups=0)
    return taken


def _peer_result(
    database: DatabaseServer, durability: str, count: int, files: int, taken: Mapping[str, Sequence[TreeRun]]
) -> Result:
    rates = {name: statistics.median(one.files / one.files_s for one in runs) for name, runs in taken.items()}
    rows = [
        {
            "contender": name,
            "files": runs[0].files,
            "files_per_s": round(rates[name], 1),
            "directories_per_s": round(statistics.median(one.directories / one.directories_s for one in runs), 1),
            "client_cpu_us": round(1e6 * sum(one.client_cpu_s for one in runs) / sum(one.files for one in runs), 1),
            "server_cpu_us": round(1e6 * sum(one.server_cpu_s for one in runs) / sum(one.files for one in runs), 1),
        }
        for name, runs in taken.items()
    ]
    name = " ".join(word for word in (database.name, durability) if word)
    best = max(rate for contender, rate in rates.items() if contender != "juicefs")
    return Result(
        benchmark=f"namespace-peer-{name.replace(' ', '-')}-{count}",
        title=f"empty files beside JuiceFS, {name}, {count} clients",
        figure=rates["juicefs"] / best,
        figure_name="time, relative to JuiceFS",
        target=1.0 if count == 1 else 0.5,
        seconds={name: [one.files_s for one in runs] for name, runs in taken.items()},
        settings={"experiment": "peer", "database": name, "clients": count, "files": files},
        details={"rows": rows},
    )
