"""Work off lists with real Spark while workers die or freeze: every item comes back, and each is done exactly once."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark import TaskContext
from pyspark.sql import SparkSession

from holdfast.records.database import Database, open_database
from holdfast.spark.units import TransactionalMap
from holdfast.units.work_list import open_work_list
from tests.frozen import thaw
from tests.integration.dying_units import ANYTIME, COMMITTED, COMMITTING, FUNCTION, Dying, marks
from tests.integration.spark_session import by_value
from tests.patience import PATIENCE_S, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the units
]

by_value(__name__)

WORKERS = 2  # as many as tasks that run at the same time
SIDE = 24  # with fewer cells, two attempts that are to die could do all units before


@pytest.fixture
def db(tmp_path: Path) -> Database:
    (tmp_path / "marks").mkdir()
    db = open_database(f"sqlite://{tmp_path}/database.db?synchronous=normal", create=True)
    for table in ("words", "distances", "visits", "seen"):
        db.create_table(table)
    return db


def column(db: Database, table: str) -> dict[Any, Any]:
    return {row: columns["value"] for row, columns in db.scan(table)}


# --- a graph search ---------------------------------------------------------------------------------------------------
def neighbors(cell: tuple[int, int]) -> list[tuple[int, int]]:
    """Return where one can go from a cell of a grid with walls."""
    x, y = cell
    near = [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)]
    return [(a, b) for a, b in near if 0 <= a < SIDE and 0 <= b < SIDE and not (a % 4 == 2 and b != (a * 7) % SIDE)]


def distances() -> dict[tuple[int, int], int]:
    """Return the right answer: a breadth-first search."""
    found = {(0, 0): 0}
    queue = deque(found)
    while queue:
        cell = queue.popleft()
        for near in neighbors(cell):
            if near not in found:
                found[near] = found[cell] + 1
                queue.append(near)
    return found


def search(txn: Any, cell: tuple[int, int], value: Any) -> None:
    """Improve the distances of the neighbors of a cell, and look at those that got better."""
    txn.add("visits", cell)
    distance = txn.get("distances", cell)
    for near in neighbors(cell):
        known = txn.get("distances", near)
        if known is None or known > distance + 1:
            txn.put("distances", near, distance + 1)
            txn.emit(near, priority=distance + 1)


@pytest.mark.parametrize(
    ("plan", "group"),
    [
        pytest.param((COMMITTED, FUNCTION, COMMITTING), 4),
        pytest.param((COMMITTED, FUNCTION, COMMITTING), 1, marks=pytest.mark.slow),
        pytest.param((COMMITTED, COMMITTED, COMMITTED), 32, marks=pytest.mark.slow),
        pytest.param((ANYTIME, ANYTIME, ANYTIME), 4, marks=pytest.mark.slow),
    ],
)
def test_a_graph_search_is_exact_though_workers_die_with_their_claims(
    plan: tuple[str, ...], group: int, spark: SparkSession, db: Database, tmp_path: Path
) -> None:
    db.put("distances", (0, 0), 0)
    work = open_work_list(db, "frontier", create=True)
    work.add((0, 0))
    dying = Dying(search, plan, tmp_path / "marks")
    report = TransactionalMap(dying, database=db, group=group).run_work_list(spark, "frontier", tasks=WORKERS)
    assert column(db, "distances") == distances()
    assert work.counts() == (0, 0)
    assert report.total.units == sum(column(db, "visits").values())
    assert marks(tmp_path / "marks").total() >= len(plan), "at least one worker died as often as it could"


# --- skew -------------------------------------------------------------------------------------------------------------
def meet(folder: Path, workers: int) -> None:
    """Wait until so many workers have come here."""
    context = TaskContext.get()
    assert context is not None
    (folder / str(context.partitionId())).touch()
    wait_until(lambda: len(list(folder.iterdir())) >= workers, "no other worker has begun")


def test_what_one_key_emits_is_shared_by_all_workers(spark: SparkSession, db: Database, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()

    def spread(txn: Any, key: int, value: Any) -> None:
        """Emit 2,000 keys from the first; note who did each."""
        context = TaskContext.get()
        assert context is not None
        if key == 0:
            for number in range(1, 2001):
                txn.emit(number)
        else:
            meet(begun, WORKERS)
            sum(range(20_000))  # some work
        txn.put("seen", key, context.partitionId())
        txn.add("visits", key)

    open_work_list(db, "skewed", create=True).add(0)
    report = TransactionalMap(spread, database=db, timeout_s=PATIENCE_S).run_work_list(spark, "skewed", tasks=WORKERS)
    assert column(db, "visits") == dict.fromkeys(range(2001), 1)
    shares = Counter(column(db, "seen").values())
    assert min(shares[slot] for slot in range(WORKERS)) >= 2001 // WORKERS // 4
    assert [one.units for one in report.tasks] == [shares[slot] for slot in range(WORKERS)]


# --- fewer free slots than workers ------------------------------------------------------------------------------------
@contextmanager
def one_slot_taken(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Let another job of the application hold a slot."""
    held, go_on = folder / "held", folder / "go-on"

    def hold(_number: int) -> None:
        held.touch()
        wait_until(go_on.exists, "the test has not released the slot")

    with released(go_on, lambda: spark.sparkContext.parallelize([0], 1).foreach(hold)) as job:
        wait_until(held.exists, "the other job got no slot", over=lambda: not job.is_alive())
        yield


@contextmanager
def released(go_on: Path, work: Callable[[], object]) -> Iterator[threading.Thread]:
    """Run something in a thread; at the end create the file that it waits for, and wait for the thread."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield thread
    finally:
        go_on.touch()
        thread.join(PATIENCE_S)


@pytest.mark.parametrize("slots", [1, WORKERS])
def test_fewer_slots_than_workers_do_all_the_work(
    slots: int, spark: SparkSession, db: Database, tmp_path: Path
) -> None:
    """The first worker dies, and somebody takes its slot; whoever starts after the last unit finds the end."""
    workers = 2 * WORKERS
    begun = tmp_path / "begun"
    begun.mkdir()

    def together(txn: Any, key: int, value: Any) -> None:
        """Count a visit, as soon as workers that live have begun in all slots; emit."""
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0 and context.attemptNumber() == 0:
            os._exit(7)
        meet(begun, slots)
        txn.add("visits", key)
        if key < 100:
            txn.emit(key + 100)

    work = open_work_list(db, "crowded", create=True)
    work.add_many((key, None) for key in range(100))
    with one_slot_taken(spark, tmp_path) if slots == 1 else nullcontext():
        units = TransactionalMap(together, database=db, group=4, lease_s=1.0, timeout_s=PATIENCE_S)
        report = units.run_work_list(spark, "crowded", tasks=workers)
    assert column(db, "visits") == dict.fromkeys(range(200), 1)
    assert work.counts() == (0, 0)
    assert sum(one.units > 0 for one in report.tasks) == slots
    assert (report.number, report.total.units) == (workers, 200)


# --- priorities -------------------------------------------------------------------------------------------------------
def in_order(txn: Any, key: int, value: Any) -> None:
    """Note when a key was done; the key 3 adds one that is urgent, and one that is not."""
    number = txn.get("visits", "count", default=0)
    txn.put("visits", "count", number + 1)
    txn.put("seen", number, key)
    if key == 3:
        txn.emit(100, priority=-7)
        txn.emit(200, priority=1000)


def test_one_worker_respects_priorities(spark: SparkSession, db: Database) -> None:
    work = open_work_list(db, "urgent", create=True)
    work.add_many((key, None, (key * 7) % 31) for key in range(31))
    TransactionalMap(in_order, database=db, group=1).run_work_list(spark, "urgent", tasks=1)
    first = sorted(range(31), key=lambda key: (key * 7) % 31)
    where = first.index(3) + 1
    assert list(column(db, "seen").values()) == [*first[:where], 100, *first[where:], 200]


# --- a worker that freezes --------------------------------------------------------------------------------------------
def test_a_lease_runs_out_while_its_worker_is_frozen(spark: SparkSession, db: Database, tmp_path: Path) -> None:
    """The worker that took the first item freezes with it; the other does everything; the first wakes up too late."""
    frozen, go_on = tmp_path / "frozen", tmp_path / "go-on"

    def freeze_first(txn: Any, key: int, value: Any) -> None:
        txn.add("visits", key)
        if key == 0:
            if frozen.exists():
                go_on.touch()  # its claim was dissolved: the other worker has the item
                return
            part = tmp_path / "part"
            part.write_text(str(os.getpid()))
            part.rename(frozen)
            os.kill(os.getpid(), signal.SIGSTOP)

    work = open_work_list(db, "leased", create=True)
    work.add_many((key, None) for key in range(50))

    def thaw_at_last() -> None:
        try:
            wait_until(go_on.exists, "nobody has taken over")
        finally:
            thaw(frozen)

    with released(go_on, thaw_at_last):
        units = TransactionalMap(freeze_first, database=db, group=4, lease_s=0.5)
        report = units.run_work_list(spark, "leased", tasks=WORKERS)
    assert column(db, "visits") == dict.fromkeys(range(50), 1)
    assert work.counts() == (0, 0)
    assert report.total.units == 50
    assert report.total.skipped >= 1, "the frozen worker has found that its items are somebody else's"
