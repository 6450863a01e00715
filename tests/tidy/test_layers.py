"""Imports point one way, downwards, as drawn in ARCHITECTURE.md; only the top layers know Spark."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.tidy.source_tree import Module, iter_imports, modules

# Layer -> what it may import besides itself. Types count as well: who names a type from above knows about above.
_BELOW_STORES = {"errors", "runtime", "wording"}
_BELOW_COMMIT = _BELOW_STORES | {"stores"}
_BELOW_TABLE = _BELOW_COMMIT | {"commit", "formats"}
_BELOW_OPTIONS = _BELOW_TABLE | {"table"}
_BELOW_SPARK = _BELOW_OPTIONS | {"options"}
_BELOW_DEMO = _BELOW_SPARK | {"spark", "testing"}
_ALLOWED = {
    "errors": set[str](),
    "wording": set[str](),
    "runtime": {"errors"},
    "stores": _BELOW_STORES,
    "commit": _BELOW_COMMIT,
    "formats": _BELOW_COMMIT,
    "table": _BELOW_TABLE,
    "fs": _BELOW_COMMIT | {"commit"},
    "options": _BELOW_OPTIONS,
    "spark": _BELOW_SPARK,
    "guarantees": set[str](),
    "checker": _BELOW_COMMIT | {"commit", "guarantees"},
    "testing": _BELOW_COMMIT,
    "demo": _BELOW_DEMO,
    "cli": _BELOW_DEMO | {"demo", "checker", "guarantees"},  # `holdfast demo` and `holdfast check` start them
    "pyspark_holdfast": {"spark"},
    "holdfast": {"errors", "spark"},  # spark only when somebody asks: test_light_import.py
}
_KNOW_SPARK = {"spark", "cli", "demo", "pyspark_holdfast"}


def _layer(dotted: str) -> str | None:
    """The layer of a dotted name: `holdfast.commit.context` is in `commit`. None for names that are not ours."""
    first, _, rest = dotted.partition(".")
    if first == "pyspark_holdfast":
        return first
    if first != "holdfast":
        return None
    second = rest.partition(".")[0]
    return second if second in _ALLOWED else first


def _violations(module: Module) -> list[str]:
    layer = _layer(module.name)
    assert layer is not None
    found = []
    for line, imported in iter_imports(module):
        target = _layer(imported)
        if target is not None and target != layer and target not in _ALLOWED[layer]:
            found.append(f"{module.name}:{line}: {layer} may not import {imported}")
        if imported.split(".")[0] in {"pyspark", "py4j"} and layer not in _KNOW_SPARK:
            found.append(f"{module.name}:{line}: {layer} may not know Spark")
    return found


def test_imports_point_downwards() -> None:
    assert [line for module in modules() for line in _violations(module)] == []


def test_every_module_has_a_layer() -> None:
    """A new top-level module must be given its place first."""
    tops = {module.name.split(".")[1] for module in modules() if module.name.startswith("holdfast.")}
    assert tops <= set(_ALLOWED)


@pytest.mark.parametrize(
    ("name", "source", "count"),
    [
        ("holdfast.stores.s3.store", "from holdfast.commit.two_phase.decision_log import head", 1),
        ("holdfast.stores.s3.store", "import holdfast.commit", 1),
        ("holdfast.stores.s3.store", "from holdfast import commit", 1),
        ("holdfast.stores.s3.store", "from holdfast import write", 1),
        (
            "holdfast.stores.s3.store",
            "from holdfast.errors import FencedError\nfrom holdfast.stores.base import Part",
            0,
        ),
        ("holdfast.commit.two_phase.decision_log", "from holdfast.formats.csv.format import CsvWriter", 1),
        ("holdfast.commit.two_phase.decision_log", "def f():\n    import pyspark.sql", 1),
        ("holdfast.table.read", "if TYPE_CHECKING:\n    from pyspark.sql import DataFrame", 1),
        ("holdfast.table.read", "if TYPE_CHECKING:\n    from holdfast.options.parsing import Options", 1),
        ("holdfast.spark.source", "from pyspark.sql.datasource import DataSource", 0),
        ("holdfast.testing.server", "import holdfast.demo", 1),
        ("holdfast.cli.main", "from holdfast.demo import run\nfrom holdfast.testing.weed import WeedServer", 0),
    ],
)
def test_the_check_sees_what_it_should(name: str, source: str, count: int) -> None:
    assert len(_violations(Module(Path(), name, ast.parse(source)))) == count
