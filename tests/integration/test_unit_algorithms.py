"""Algorithms over graphs as units of a work list come to the answers of others, also while workers die."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql import SparkSession

from holdfast.records.database import Database, open_database
from holdfast.spark.units import TransactionalMap
from holdfast.units.work_list import open_work_list
from tests.integration.dying_units import ANYTIME, COMMITTED, COMMITTING, FUNCTION, Dying, marks
from tests.integration.unit_algorithms import (
    MaximumFlow,
    PageRank,
    SpanningTree,
    largest_flow,
    lightest_tree,
    ranks_by_iteration,
    reachable,
    some_links,
    some_weights,
    washington_rlg,
)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the answers
]

WORKERS = 2  # as many as tasks that run at the same time
PLANS = {
    "nobody dies": (),
    "deaths at chosen points": (COMMITTED, FUNCTION, COMMITTING),
    "one death": (COMMITTED,),
    "SIGKILL at any time": (ANYTIME, ANYTIME, ANYTIME),
}


@dataclass(frozen=True)
class Scene:
    """A database, and how the workers on it die.

    Attributes:
        folder: where they leave their marks.
    """

    spark: SparkSession
    db: Database
    folder: Path
    plan: Sequence[str]
    group: int

    def begin(self, tables: Iterable[str], begin: Callable[[Any], list[int]]) -> list[int]:
        """Create tables and fill them; return the first keys."""
        for table in tables:
            self.db.create_table(table)
        return self.db.transact(begin)

    def run(self, step: Callable[..., None], first: Iterable[int]) -> None:
        """Run the units of a work list to its end; check that workers died as planned."""
        self.db.create_table("words")  # who dies in the function has written to it
        work = open_work_list(self.db, "work", create=True)
        work.add_many((key, None) for key in first)
        dying = Dying(step, self.plan, self.folder)
        TransactionalMap(dying, database=self.db, group=self.group).run_work_list(self.spark, "work", tasks=WORKERS)
        assert work.counts() == (0, 0)
        assert not self.column("words")
        assert marks(self.folder).total() >= len(self.plan), "at least one worker died as often as it could"

    def column(self, table: str) -> dict[Any, Any]:
        return {row: columns["value"] for row, columns in self.db.scan(table)}


@pytest.fixture
def scene(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Return the scene of a backend, a plan and a group size."""
    backend, plan, group = request.param
    url = f"sqlite://{tmp_path}/database.db?synchronous=normal"
    if backend == "postgresql":
        url = request.getfixturevalue("new_postgres_url")()
    (tmp_path / "marks").mkdir()
    with open_database(url, create=True) as db:
        yield Scene(spark, db, tmp_path / "marks", PLANS[plan], group)


EVERYTHING = pytest.mark.parametrize(
    "scene",
    [
        pytest.param((backend, plan, group), id=f"{backend}-{plan}-{group}")
        for backend in ("sqlite", "postgresql")
        for plan in PLANS
        if plan != "one death"
        for group in (1, 32)
    ],
    indirect=True,
)


# --- maximum flow -----------------------------------------------------------------------------------------------------
def check_flow(scene: Scene, size: int) -> None:
    edges = washington_rlg(size, size)
    steps = MaximumFlow.of(edges)
    scene.run(steps, scene.begin(("excess", "height", "residual"), lambda txn: steps.begin(txn, edges)))
    excess, residual = scene.column("excess"), scene.column("residual")
    flow = largest_flow(edges, steps.source, steps.sink)
    assert excess == {**dict.fromkeys(steps.near, 0), steps.source: -flow, steps.sink: flow}
    assert min(residual.values()) >= 0
    assert all(residual[edge] + residual[edge[::-1]] == most for edge, most in edges.items())
    assert steps.sink not in reachable(residual, steps.source)


@pytest.mark.parametrize("scene", [("sqlite", "one death", 8)], indirect=True)
def test_a_small_flow_is_maximal_though_workers_die(scene: Scene) -> None:
    check_flow(scene, 4)


@pytest.mark.slow
@EVERYTHING
def test_a_flow_is_maximal(scene: Scene) -> None:
    check_flow(scene, 10)


# --- minimum spanning tree --------------------------------------------------------------------------------------------
@pytest.mark.slow
@EVERYTHING
def test_a_spanning_tree_is_minimal(scene: Scene) -> None:
    edges = some_weights(450, 1800)  # with fewer vertices, two attempts that are to die could do all units before
    steps = SpanningTree(edges)
    scene.run(steps, scene.begin(("member", "component", "tree", "weight"), steps.begin))
    tree = lightest_tree(edges)
    assert scene.column("tree") == tree
    assert scene.db.get("weight", "sum") == sum(tree.values())
    assert len(set(scene.column("component").values())) == 1


# --- PageRank ---------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@EVERYTHING
def test_ranks_are_those_of_power_iteration(scene: Scene) -> None:
    links = some_links(40)
    steps = PageRank(links)
    scene.run(steps, scene.begin(("rank", "left"), steps.begin))
    ranks, left = scene.column("rank"), scene.column("left")
    assert sum(ranks.values()) + sum(left.values()) == len(links) * steps.each, "nothing is lost, or counted twice"
    assert max(left.values()) <= steps.enough
    right = ranks_by_iteration(links)
    assert sum(abs(ranks[page] / steps.each - right[page]) for page in links) < steps.error
