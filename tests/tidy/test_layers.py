"""Check imports: downward as drawn in ARCHITECTURE.md, never in a circle, and Spark only in the top layers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.tidy.source_tree import Module, iter_imports, modules

# Layer -> what it may import besides itself. Types count too: code that names a type of a layer depends on that layer.
_BELOW_STORES = {"errors", "runtime", "wording", "conformance"}
_BELOW_LOG = _BELOW_STORES | {"stores"}
_BELOW_COMMIT = _BELOW_LOG | {"versioned_log", "guarantees"}
_BELOW_TABLE = _BELOW_COMMIT | {"commit", "formats"}
_BELOW_OPTIONS = _BELOW_TABLE | {"table"}
_BELOW_SPARK = _BELOW_OPTIONS | {"options"}
_BELOW_DEMO = _BELOW_SPARK | {"spark", "s3_server"}
_ALLOWED = {
    "errors": set[str](),
    "wording": set[str](),
    "conformance": {"errors"},
    "guarantees": set[str](),
    "runtime": {"errors"},
    "stores": _BELOW_STORES,
    "transactions": _BELOW_STORES,  # beside stores: neither knows the other
    "versioned_log": _BELOW_LOG,
    "records": _BELOW_STORES | {"transactions"},  # beside namespace: another use of the same transactions
    "units": _BELOW_STORES | {"transactions", "records"},
    "namespace": _BELOW_LOG | {"transactions"},  # beside commit: the commit layer sees it as a store
    "webhdfs": _BELOW_STORES | {"stores", "transactions", "namespace"},
    "commit": _BELOW_COMMIT,
    "formats": _BELOW_LOG,
    "table": _BELOW_TABLE,
    "options": _BELOW_OPTIONS | {"records"},
    "fs": _BELOW_COMMIT | {"commit", "transactions", "namespace"},
    "spark": _BELOW_SPARK | {"transactions", "records", "units"},
    "holdfast_checker": _BELOW_COMMIT
    | {"commit", "guarantees", "transactions", "namespace", "records", "units", "cli"},
    "s3_server": _BELOW_LOG,
    "demo": _BELOW_DEMO | {"namespace", "transactions"},
    # `holdfast demo` starts it; `holdfast fs` works with namespaces and writes to stores.
    "cli": _BELOW_DEMO | {"demo", "guarantees", "namespace", "transactions", "records", "units", "fs", "webhdfs"},
    "__main__": {"cli"},
    "pyspark_holdfast": {"spark"},
    "pyspark_holdfast_database": {"spark"},
    "holdfast": {
        "errors",
        "records",
        "spark",
        "units",
    },  # all but errors are imported on first use: test_light_import.py
}
_KNOW_SPARK = {"spark", "cli", "demo", "pyspark_holdfast", "pyspark_holdfast_database"}

# Room of commit/ -> the rooms that it may import besides itself. "base" means the modules in commit/ itself; those of
# `_ABOVE` are above all protocols. Protocols do not import each other, with the exceptions listed here.
_HADOOP = {"base", "hadoop"}
_COMMIT_ROOMS = {
    "base": set[str](),
    "two_phase": {"base"},
    "hadoop": {"base"},  # the modules in hadoop/ itself: what Hadoop's protocols share
    "magic": _HADOOP,
    "manifest": _HADOOP,
    "file_output": _HADOOP,
    "staging": _HADOOP | {"file_output"},  # its pending sets travel through a commit of file-v1
    "dead_jobs": _HADOOP | {"file_output", "two_phase"},
    "above": _HADOOP | {"two_phase", "magic", "manifest", "file_output", "staging", "dead_jobs"},
}
_ABOVE = {"registry", "recovery", "verification", "writes", "upload_owners"}

# The rooms of stores/: stores do not import each other; the registry imports all of them.
_STORES = {"local", "memory", "s3"}

# The same inside the checker: the part of `holdfast_checker` -> the parts that it may import besides itself.
_CHECKER = {
    "kernel": set[str](),
    "histories": {"kernel"},
    "narrative": {"kernel"},
    "simulated": {"kernel", "histories", "narrative"},
    "framework": {"kernel", "narrative"},
    "specimens": set[str](),
    "committers": {"kernel", "simulated", "narrative", "framework", "specimens"},
    "transactions": {"kernel", "simulated", "histories", "narrative", "framework"},
    "namespace": {"kernel", "simulated", "histories", "narrative", "framework", "transactions"},
    "units": {"kernel", "simulated", "histories", "narrative", "framework"},
    "subjects": {"kernel", "framework", "specimens", "committers", "transactions", "namespace", "units"},
    "cli": {"kernel", "narrative", "framework", "specimens", "committers", "subjects"},
}


def _layer(dotted: str) -> str | None:
    """Return the layer of a dotted name: `holdfast.commit.context` is in `commit`. None for names of other packages."""
    first, _, rest = dotted.partition(".")
    if first in ("holdfast_checker", "pyspark_holdfast", "pyspark_holdfast_database"):
        return first
    if first != "holdfast":
        return None
    second = rest.partition(".")[0]
    return second if second in _ALLOWED else first


def _commit_room(dotted: str) -> str | None:
    if not dotted.startswith("holdfast.commit."):
        return None  # the package itself has the public names
    first, *rest = dotted.split(".")[2:]
    if first == "hadoop" and rest and rest[0] in _COMMIT_ROOMS:
        return rest[0]
    return first if first in _COMMIT_ROOMS else "above" if first in _ABOVE else "base"


def _violations(module: Module) -> list[str]:
    layer, room = _layer(module.name), _commit_room(module.name)
    assert layer is not None
    found = []
    for line, imported in iter_imports(module):
        target = _layer(imported)
        if target is not None and target != layer and target not in _ALLOWED[layer]:
            found.append(f"{module.name}:{line}: {layer} may not import {imported}")
        if imported.split(".")[0] in {"pyspark", "py4j"} and layer not in _KNOW_SPARK:
            found.append(f"{module.name}:{line}: {layer} may not know Spark")
        other = _commit_room(imported)
        if room is not None and other is not None and other != room and other not in _COMMIT_ROOMS[room]:
            found.append(f"{module.name}:{line}: {room} of commit may not import {imported}")
    return found


def test_imports_point_downwards() -> None:
    assert [line for module in modules() for line in _violations(module)] == []


def _part(dotted: str) -> str | None:
    """Return the part of the checker to which a dotted name belongs, None for names outside it."""
    names = dotted.split(".")
    return names[1] if names[0] == "holdfast_checker" and len(names) > 1 else None


def _checker_violations(module: Module) -> list[str]:
    part = _part(module.name)
    return [
        f"{module.name}:{line}: {part} may not import {imported}"
        for line, imported in iter_imports(module)
        if part is not None and _part(imported) not in {None, part, *_CHECKER[part]}
    ]


def test_imports_inside_the_checker_point_downwards() -> None:
    assert [line for module in modules() for line in _checker_violations(module)] == []


def test_every_part_of_the_checker_has_a_place() -> None:
    assert {part for module in modules() if (part := _part(module.name)) is not None} == set(_CHECKER)


@pytest.mark.parametrize(
    ("name", "source", "count"),
    [
        ("holdfast_checker.kernel.walk", "from holdfast_checker.histories.history import Operation", 1),
        ("holdfast_checker.histories.history", "import holdfast_checker.committers.output", 1),
        ("holdfast_checker.narrative.story", "from holdfast_checker import committers", 1),
        ("holdfast_checker.narrative.story", "from holdfast_checker.kernel.world import World", 0),
        ("holdfast_checker.committers.goals", "from holdfast_checker.kernel.world import World", 0),
        ("holdfast_checker.committers.goals", "from holdfast_checker.histories.effects import Effect", 1),
    ],
)
def test_the_check_of_the_checker_sees_what_it_should(name: str, source: str, count: int) -> None:
    assert len(_checker_violations(Module(Path(), name, ast.parse(source)))) == count


def test_every_module_has_a_layer() -> None:
    """A new top-level module must be assigned to a layer first."""
    tops = {module.name.split(".")[1] for module in modules() if module.name.startswith("holdfast.")}
    assert tops <= set(_ALLOWED)


def test_stores_do_not_know_each_other() -> None:
    """Outside `stores`, a store is known only by its URL."""
    found = []
    for module in modules():
        own = module.name.split(".")
        for line, imported in iter_imports(module):
            target = imported.split(".")
            if target[:2] == ["holdfast", "stores"] and len(target) > 2 and target[2] in _STORES:
                inside = own[:2] == ["holdfast", "stores"]
                if inside and own[2:3] != ["registry"] and own[2] in _STORES and own[2] != target[2]:
                    found.append(f"{module.name}:{line}: {imported}")
    assert found == []


# --- circles ----------------------------------------------------------------------------------------------------------
def _graph(found: tuple[Module, ...]) -> dict[str, set[str]]:
    """Return module -> imported modules, including deferred imports, which must not hide a circle."""
    names = {module.name for module in found}
    graph: dict[str, set[str]] = {}
    for module in found:
        imported = {name if name in names else name.rpartition(".")[0] for _line, name in iter_imports(module)}
        graph[module.name] = (imported & names) - {module.name}
    return graph


def _circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components with more than one module (Tarjan)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                circles.append(sorted(stack[at:]))
            del stack[at:]

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return circles


def test_no_imports_in_a_circle() -> None:
    assert _circles(_graph(modules())) == []


def test_circles_are_seen() -> None:
    one = Module(Path(), "holdfast.a", ast.parse("def f():\n    from holdfast.b import g"))
    two = Module(Path(), "holdfast.b", ast.parse("if TYPE_CHECKING:\n    from holdfast.c import h"))
    three = Module(Path(), "holdfast.c", ast.parse("import holdfast.a"))
    four = Module(Path(), "holdfast.d", ast.parse("from holdfast import a, b"))
    assert _circles(_graph((one, two, three, four))) == [["holdfast.a", "holdfast.b", "holdfast.c"]]
    assert _circles(_graph((two, three, four, Module(Path(), "holdfast.a", ast.parse(""))))) == []


@pytest.mark.parametrize(
    ("name", "source", "count"),
    [
        ("holdfast.stores.s3.store", "from holdfast.commit.two_phase.decision_log import head", 1),
        ("holdfast.stores.s3.store", "import holdfast.commit", 1),
        ("holdfast.stores.s3.store", "from holdfast import commit", 1),
        ("holdfast.stores.s3.store", "from holdfast import write", 1),
        ("holdfast.stores.s3.store", "from holdfast.errors import FencedError\nimport holdfast.stores.base", 0),
        ("holdfast.stores.base", "import holdfast.transactions.base", 1),
        ("holdfast.transactions.sqlite.backend", "from holdfast.stores.base import ObjectStore", 1),
        ("holdfast.transactions.sqlite.backend", "from holdfast.runtime import Environment", 0),
        ("holdfast.versioned_log", "from holdfast.commit.records import LogEntry", 1),
        ("holdfast.commit.two_phase.decision_log", "from holdfast.formats.csv import CsvWriter", 1),
        ("holdfast.commit.two_phase.decision_log", "def f():\n    import pyspark.sql", 1),
        ("holdfast.commit.two_phase.decision_log", "from holdfast.commit.hadoop.magic.files import attempt_dir", 1),
        ("holdfast.commit.two_phase.decision_log", "from holdfast.commit.registry import TWO_PHASE", 1),
        ("holdfast.commit.context", "def f():\n    from holdfast.commit.two_phase import job", 1),
        (
            "holdfast.commit.hadoop.magic.committer",
            "from holdfast.commit.hadoop.completion import complete_all_uploads",
            0,
        ),
        ("holdfast.commit.recovery", "from holdfast.commit.two_phase.recovery import recover_logged_jobs", 0),
        ("holdfast.table.read", "if TYPE_CHECKING:\n    from pyspark.sql import DataFrame", 1),
        ("holdfast.table.read", "if TYPE_CHECKING:\n    from holdfast.spark.options import Options", 1),
        ("holdfast.spark.source", "from pyspark.sql.datasource import DataSource", 0),
        ("holdfast.s3_server", "import holdfast.demo", 1),
        ("holdfast.cli.main", "from holdfast.demo import run\nfrom holdfast.s3_server import SeaweedServer", 0),
    ],
)
def test_the_check_sees_what_it_should(name: str, source: str, count: int) -> None:
    assert len(_violations(Module(Path(), name, ast.parse(source)))) == count
