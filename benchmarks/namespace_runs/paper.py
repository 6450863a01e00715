"""Repeat what paper 004 says about its own measurements, for the tables: seconds, unless a name says otherwise.

Its operations are those of 1,024 threads in one NameNode with a MySQL Cluster of six machines. HDFS keeps the namespace
in memory; PCC locks (our mode ``pessimistic``); OCC is the paper's contribution (our mode ``optimistic``).
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CONFLICTS", "MIXED", "OPERATIONS_PER_S", "SAME_PARENT", "slower_than_occ"]

SAME_PARENT: Mapping[str, Mapping[int, float]] = {
    "HDFS": {1_000: 0.82, 10_000: 7.83, 100_000: 77.13},
    "PCC": {1_000: 4.35, 10_000: 36.74, 100_000: 332.36},
    # For 1,000 and 10,000, the paper has only the improvement over PCC: 68.7 % and 67.3 %.
    "OCC": {1_000: 4.35 * (1 - 0.687), 10_000: 36.74 * (1 - 0.673), 100_000: 103.23},
}
"""Tables 4 and 6: directories in one directory."""

MIXED: Mapping[str, Mapping[int, float]] = {
    "PCC": {1_000: 4.92, 10_000: 50.69, 100_000: 352.25},
    "OCC": {1_000: 1.78, 10_000: 15.31, 100_000: 120.64},
}
"""Table 7: half of the operations only look."""

CONFLICTS: Mapping[int, float] = {1: 14.53, 10: 14.11, 100: 13.51, 1_000: 12.72, 10_000: 11.75}
"""Table 8: 10,000 operations that want so many different names, with OCC."""

OPERATIONS_PER_S: Mapping[str, Mapping[str, float]] = {
    "HDFS": {"create": 609, "mkdirs": 636, "delete": 833, "rename": 869},
    "PCC": {"create": 188, "mkdirs": 413, "delete": 242, "rename": 132},
}
"""Table 3: operations per second of three threads, over four directories."""


def slower_than_occ(table: Mapping[str, Mapping[int, float]], operations: int) -> float:
    """Return how many times longer PCC takes than OCC."""
    return table["PCC"][operations] / table["OCC"][operations]
