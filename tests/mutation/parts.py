"""Divide the code into parts: which packages are mutated, and which tests judge their mutants.

Tests that need a server of a database do not judge: each mutant would start one. So the backends that talk to servers
are not mutated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PARTS", "ROOT", "Part", "judges"]

ROOT = Path(__file__).parents[2]

_NO_JUDGES = frozenset({"test_mutants.py"})  # plants its own mistakes
_SERVERS = ("postgres", "mysql", "mariadb")
_NO_SERVERS = f"not {' and not '.join(_SERVERS)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the code.

    Attributes:
        packages: their modules are mutated, apart from those below `spared`.
        tests: folders of tests that judge, below ``tests/``.
        files: further files of tests.
        chosen: pytest's expression for the tests that judge.
    """

    packages: Sequence[str]
    spared: Sequence[str] = ()
    tests: Sequence[str]
    files: Sequence[str] = ()
    chosen: str = _NO_SERVERS


PARTS: Mapping[str, Part] = {
    "commit": Part(
        packages=("holdfast.commit", "holdfast.versioned_log"),
        tests=(
            "simulation",
            "checker/committers",
            "checker/narrative",
            "unit/commit",
            "unit/versioned_log",
            "unit/cli",
        ),
    ),
    "namespace": Part(
        packages=("holdfast.namespace",),
        tests=("unit/namespace", "checker/namespace"),
        files=("property/test_namespace_model.py", "conformance/test_conformance.py"),
        chosen=f"{_NO_SERVERS} and not (test_conformance and not [namespace-)",  # of the suite of all object stores
    ),
    "transactions": Part(
        packages=("holdfast.transactions",),
        spared=tuple(f"holdfast.transactions.{name}" for name in ("conformance", "mysql", "postgres")),
        tests=("unit/transactions", "checker/transactions"),
        files=("conformance/test_transactions.py", "property/test_transactions.py"),
    ),
    "units": Part(
        packages=("holdfast.units",),
        tests=("unit/units", "checker/units"),
        files=("property/test_unit_records.py",),
    ),
    "records": Part(
        packages=("holdfast.records",),
        tests=("unit/records",),
        files=("property/test_unit_records.py", "property/test_values_of_records.py"),
    ),
}
"""By name. The first part of a mutant's name tells its part, but for `commit`, whose names begin below the package."""


def judges(*parts: str) -> list[Path]:
    """Return the files of the tests that judge mutants of the parts, by default of all."""
    found = {path for name in parts or PARTS for path in _judges_of(PARTS[name])}
    return sorted(found)


def _judges_of(part: Part) -> Iterator[Path]:
    for folder in part.tests:
        yield from (path for path in (ROOT / "tests" / folder).rglob("test_*.py") if _may_judge(path))
    yield from (ROOT / "tests" / name for name in part.files)


def _may_judge(path: Path) -> bool:
    return path.name not in _NO_JUDGES and not path.parent.name.startswith(_SERVERS)
