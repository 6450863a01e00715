"""Divide the code into parts: which packages are mutated, and which tests judge their mutants.

Tests that need a server of a database do not judge: each mutant would start one. So the backends that talk to servers
are not mutated.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.databases import needs_mariadb, needs_postgres

__all__ = ["EQUIVALENT", "PARTS", "REVIEWED", "ROOT", "Part", "judges", "needs_server"]

ROOT = Path(__file__).parents[2]

_NO_JUDGES = frozenset({"test_mutants.py"})  # plants its own mistakes
_SERVERS = frozenset(
    {
        "mariadb",
        "mariadb_server",
        "mysql",
        "new_mysql_url",
        "new_postgres_url",
        "postgres",
        "postgres_server",
        "postgresql",
    }
)
"""Fixtures, and parameters that stand for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the code.

    Attributes:
        packages: their modules are mutated, apart from those below `spared`.
        tests: folders of tests that judge, below ``tests/``.
        files: further files of tests.
        chosen: pytest's expression for the tests that judge, of those that need no server.
    """

    packages: Sequence[str]
    spared: Sequence[str] = ()
    tests: Sequence[str]
    files: Sequence[str] = ()
    chosen: str = ""


PARTS: Mapping[str, Part] = {
    "commit": Part(
        packages=("holdfast.commit", "holdfast.versioned_log"),
        tests=(
            "simulation",
            "checker/committers",
            "checker/narrative",
            "unit/commit",
            "unit/cli",
        ),
        files=("unit/test_versioned_log.py",),
    ),
    "namespace": Part(
        packages=("holdfast.namespace",),
        tests=("unit/namespace", "checker/namespace"),
        files=("property/test_namespace_model.py", "conformance/test_conformance.py"),
        chosen="not (test_conformance and not [namespace-)",  # of the suite of all object stores
    ),
    "transactions": Part(
        packages=("holdfast.transactions",),
        spared=tuple(f"holdfast.transactions.{name}" for name in ("mysql", "postgres")),
        tests=("unit/transactions", "checker/transactions"),
        files=("conformance/test_backends.py",),
    ),
    "units": Part(
        packages=("holdfast.units",),
        tests=("unit/units", "unit/spark/units", "checker/units"),
        files=("property/test_unit_records.py",),
    ),
    "records": Part(
        packages=("holdfast.records",),
        tests=("unit/records", "unit/cli/database"),
        files=("property/test_unit_records.py", "property/test_values_of_records.py"),
    ),
}
"""By name. The first part of a mutant's name tells its part, but for `commit`, whose names begin below the package."""


def _survivors() -> dict[str, str]:
    parser = configparser.ConfigParser(allow_no_value=True, delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read(ROOT / "tests" / "mutation" / "survivors.ini", encoding="utf-8")
    return {name: reason for reason in parser.sections() for name in parser[reason]}


REVIEWED: Mapping[str, str] = _survivors()
"""Why each mutant is not caught, by the mutant's name."""

EQUIVALENT = frozenset(name for name, reason in REVIEWED.items() if reason.startswith("Equivalent"))
"""Mutants that no test can tell from the shipped code: they do not count."""


def judges(*parts: str) -> list[Path]:
    """Return the files of the tests that judge mutants of the parts, by default of all."""
    found = {path for name in parts or PARTS for path in _judges_of(PARTS[name])}
    return sorted(found)


def needs_server(test: pytest.Item) -> bool:
    """Check whether a test needs the server of a database: by its fixtures, its parameters or its marks."""
    parameters = test.name.partition("[")[2].rstrip("]").split("-")
    if not _SERVERS.isdisjoint([*getattr(test, "fixturenames", ()), *parameters]):
        return True
    return any(mark in (needs_mariadb.mark, needs_postgres.mark) for mark in test.iter_markers("skipif"))


def _judges_of(part: Part) -> Iterator[Path]:
    for folder in part.tests:
        yield from (path for path in (ROOT / "tests" / folder).rglob("test_*.py") if _may_judge(path))
    yield from (ROOT / "tests" / name for name in part.files)


def _may_judge(path: Path) -> bool:
    return path.name not in _NO_JUDGES
