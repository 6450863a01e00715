"""Define the experiments of paper 004: which cells each of them has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.namespace_runs.cells import MODES, Cell
from benchmarks.namespace_runs.clients import Layout, Taken
from benchmarks.namespace_runs.directories import count_entries, prepare_workload
from holdfast.namespace import Namespace

__all__ = ["EXPERIMENTS", "OPERATIONS", "Scale"]

OPERATIONS: Mapping[str, str] = {
    "create": "create",
    "create, under a lease": "create-with-lease",
    "mkdirs": "mkdirs-spread",
    "rename": "rename",
    "delete": "delete",
}
"""The operations of the paper's Table 3, with their workloads. HDFS creates a file under a lease: two transactions."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much to measure.

    Attributes:
        sizes: numbers of operations in Tables 4, 6 and 7.
        usual: of them, the one for all other layouts.
        conflicting: operations of Table 8.
        names: for Table 8: how many different names they want.
        single: operations of each kind of Table 3.
        layouts: processes and threads; the last one for 64 clients is for comparison only.
        wide: the layout of all experiments but the first.
        limit_s: when a cell stops.
        modes: of `MODES`.
    """

    sizes: Sequence[int]
    usual: int
    conflicting: int
    names: Sequence[int]
    single: int
    layouts: Sequence[Layout]
    wide: Layout
    limit_s: float
    modes: Sequence[str] = tuple(MODES)


def _same_parent(scale: Scale) -> list[Cell]:
    return [
        Cell(
            mode=mode,
            layout=layout,
            workload="mkdirs",
            operations=operations,
            limit_s=scale.limit_s,
            label=f"{operations:,}",
            check=_check_new(lambda taken: taken.done),
        )
        for layout in scale.layouts
        for operations in (scale.sizes if layout == scale.wide else [scale.usual])
        for mode in scale.modes
    ]


def _mixed(scale: Scale) -> list[Cell]:
    return [
        Cell(
            mode=mode,
            layout=scale.wide,
            workload="mixed",
            operations=operations,
            limit_s=scale.limit_s,
            label=f"{operations:,}",
            prepare=partial(prepare_workload, workload="mixed", operations=operations),
        )
        for operations in scale.sizes
        for mode in scale.modes
    ]


def _conflicts(scale: Scale) -> list[Cell]:
    return [
        Cell(
            mode=mode,
            layout=scale.wide,
            workload="same-names",
            operations=scale.conflicting,
            limit_s=scale.limit_s,
            label=f"{names:,} names",
            options={"sharing": scale.conflicting // names},
            check=_check_new(partial(_all_names, names)),
        )
        for names in scale.names
        for mode in scale.modes
        if mode != "global"
    ]


def _all_names(names: int, taken: Taken) -> int | None:
    return names if taken.is_complete else None


def _operations(scale: Scale) -> list[Cell]:
    return [
        Cell(
            mode=mode,
            layout=scale.wide,
            workload=workload,
            operations=scale.single,
            limit_s=scale.limit_s,
            label=name,
            prepare=partial(prepare_workload, workload=workload, operations=scale.single),
        )
        for name, workload in OPERATIONS.items()
        for mode in scale.modes
    ]


def _check_new(expected: Callable[[Taken], int | None]) -> Callable[[Namespace, str, Taken], None]:
    """Return a check of the number of entries, unless something failed or the number is not known."""

    def check(namespace: Namespace, root: str, taken: Taken) -> None:
        count = expected(taken)
        if count is not None and not taken.failures:
            found = count_entries(namespace, root)
            assert found == count, f"{root} has {found} entries instead of {count}"

    return check


EXPERIMENTS: Mapping[str, Callable[[Scale], list[Cell]]] = {
    "same-parent": _same_parent,
    "mixed": _mixed,
    "conflicts": _conflicts,
    "operations": _operations,
}
"""By name: a function that returns the cells, those of one layout beside each other."""
