"""Measure what single operations cost as directories grow, as paths get deeper, and as trees get larger.

One client, one operation after the other: the median of many, each timed alone.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.measure import Say
from benchmarks.namespace_runs.databases import USER, DatabaseServer
from benchmarks.namespace_runs.directories import fill
from holdfast.namespace import Namespace
from holdfast.runtime import Environment

__all__ = [
    "DEPTHS",
    "DEPTH_OPERATIONS",
    "ENTRY_OPERATIONS",
    "TREE_OPERATIONS",
    "measure_depths",
    "measure_entries",
    "measure_trees",
]

Series = Mapping[str, Mapping[int, float]]
"""By operation, then by size: the median of its time, in microseconds."""

ENTRY_OPERATIONS = ("mkdirs", "status", "list 100", "rename", "delete")
TREE_OPERATIONS = ("rename the tree", "delete the tree")
DEPTH_OPERATIONS = ("status, warm", "status, cold", "mkdirs, warm", "mkdirs, cold")
DEPTHS = (1, 2, 5, 10, 20)


def _entry(number: int) -> str:
    return f"entry{number:08}"


def _median_us(act: Callable[[int], object], numbers: Sequence[int]) -> float:
    taken: list[float] = []
    for number in numbers:
        started_s = time.perf_counter()
        act(number)
        taken.append(time.perf_counter() - started_s)
    return round(1e6 * statistics.median(taken), 1)


def _spread(count: int, size: int) -> list[int]:
    """Return so many different numbers below a size, in an order that jumps."""
    count = min(count, size // 4)
    return [(number * 7919 + 13) % count * (size // count) for number in range(count)]


def _new_client(database: DatabaseServer, namespace: Namespace) -> Namespace:
    """Return a client of the same namespace that has seen nothing yet, with the same connections."""
    return Namespace(namespace.database, namespace.blobs, namespace.configuration, Environment(), user=USER)


def measure_entries(database: DatabaseServer, sizes: Sequence[int], samples: int, say: Say) -> Series:
    """Measure operations on entries of one directory that grows from size to size."""
    found: dict[str, dict[int, float]] = {name: {} for name in ENTRY_OPERATIONS}
    url = database.new_namespace()
    with database.open(url) as namespace:
        namespace.mkdirs("/grows")
        filled = 0
        for size in sizes:
            started_s = time.perf_counter()
            fill(namespace, "/grows", map(_entry, range(filled, size)))
            filled = size
            say(f"  {database.name}: {size:,} entries, filled in {time.perf_counter() - started_s:.1f} s")
            for name, micros in _on_entries(_new_client(database, namespace), size, samples):
                found[name][size] = micros
            say("  " + ", ".join(f"{name} {found[name][size]:,.0f} us" for name in ENTRY_OPERATIONS))
    return found


def _on_entries(namespace: Namespace, size: int, samples: int) -> Iterator[tuple[str, float]]:
    """Measure, and leave the directory as it was."""
    numbers = _spread(samples, size)
    namespace.mkdirs("/grows/warm")
    namespace.delete("/grows/warm")
    yield "mkdirs", _median_us(lambda n: namespace.mkdirs(f"/grows/{_entry(n)}.new"), numbers)
    for number in numbers:
        namespace.delete(f"/grows/{_entry(number)}.new")
    yield "status", _median_us(lambda n: namespace.status(f"/grows/{_entry(n)}"), numbers)
    yield (
        "list 100",
        _median_us(lambda n: namespace.list_page("/grows", start_after=_entry(n), limit=100), numbers),
    )
    yield (
        "rename",
        _median_us(lambda n: namespace.rename(f"/grows/{_entry(n)}", f"/grows/{_entry(n)}.moved"), numbers),
    )
    yield "delete", _median_us(lambda n: namespace.delete(f"/grows/{_entry(n)}.moved"), numbers)
    fill(namespace, "/grows", map(_entry, numbers))


def measure_depths(database: DatabaseServer, samples: int, say: Say) -> Series:
    """Measure operations at the end of a path, by its depth: with hints, and by clients that have seen nothing."""
    found: dict[str, dict[int, float]] = {name: {} for name in DEPTH_OPERATIONS}
    url = database.new_namespace()
    with database.open(url) as namespace:
        for depth in DEPTHS:
            parent = "/" + "/".join(f"level{number}" for number in range(depth))
            namespace.mkdirs(parent)
            for operation in DEPTH_OPERATIONS:
                found[operation][depth] = _at_depth(database, namespace, operation, parent, samples)
    for operation, micros in found.items():
        shown = ", ".join(f"depth {depth} {us:,.0f} us" for depth, us in micros.items())
        say(f"  {database.name}: {operation}: {shown}")
    return found


def _at_depth(database: DatabaseServer, namespace: Namespace, operation: str, parent: str, samples: int) -> float:
    name, _, how = operation.partition(", ")
    clients = [_new_client(database, namespace) for _ in range(samples if how == "cold" else 1)]
    if how == "warm":
        clients = samples * clients
        clients[0].status(parent)

    def act(number: int) -> object:
        if name == "status":
            return clients[number].status(parent)
        return clients[number].mkdirs(f"{parent}/{how}{number}")

    return _median_us(act, range(samples))


def measure_trees(database: DatabaseServer, sizes: Sequence[int], trees: int, say: Say) -> Series:
    """Measure renames and recursive deletions of directories with so many entries below."""
    found: dict[str, dict[int, float]] = {name: {} for name in TREE_OPERATIONS}
    url = database.new_namespace()
    with database.open(url) as namespace:
        for size in sizes:
            for tree in range(trees):
                namespace.mkdirs(f"/tree{size}-{tree}/below")
                fill(namespace, f"/tree{size}-{tree}/below", map(_entry, range(size)))
            moved = {tree: f"/moved{size}-{tree}" for tree in range(trees)}
            for name, act in _tree_operations(namespace, size, moved).items():
                found[name][size] = _median_us(act, range(trees))
            assert not any(map(namespace.exists, moved.values()))
    for name, micros in found.items():
        say(f"  {database.name}: {name}: " + ", ".join(f"{size:,} entries {us:,.0f} us" for size, us in micros.items()))
    return found


def _tree_operations(
    namespace: Namespace, size: int, moved: Mapping[int, str]
) -> Mapping[str, Callable[[int], object]]:
    return {
        "rename the tree": lambda tree: namespace.rename(f"/tree{size}-{tree}", moved[tree]),
        "delete the tree": lambda tree: namespace.delete(moved[tree], recursive=True),
    }
