"""Which runs of a job's functions count: those of one whole stage, or none."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

pytest.importorskip("pyspark.sql")

from holdfast.commit import AttemptId, JobId, TaskCommit, Totals
from holdfast.errors import InvalidRequestError
from holdfast.spark.accepted_runs import StageTasks, accepted_commits, forget_runs, mark_run, marked_runs
from holdfast.spark.task_report import PARTITIONS, Run, TaskReport
from tests.simulation.world import World

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own imports warn; the subject here is ours

JOB = JobId("20261121093853123-a1b2c3d4e5f6")


@dataclass
class Application:
    """Spark, as far as a job's functions see it: numbers stages and tasks, and remembers what it accepted."""

    reports: list[TaskReport] = field(default_factory=list)
    begun: list[Run] = field(default_factory=list)
    stages: dict[int, StageTasks] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def stage(self, tasks: int, *, complete: bool = True) -> int:
        number = next(self.numbers)
        self.stages[number] = StageTasks(count=tasks, complete=complete)
        return number

    def begin(self, stage: int, partition: int, *, use: int = 0, spark_task: int | None = None) -> Run:
        number = next(self.numbers)
        run = Run(
            task=use * PARTITIONS + partition,
            stage=stage,
            spark_task=number if spark_task is None else spark_task,
            attempt=f"{number:012d}",
        )
        self.begun.append(run)
        return run

    def run(self, stage: int, partitions: Collection[int], *, use: int = 0) -> list[str]:
        """Accepted runs; their attempts."""
        runs = [self.begin(stage, partition, use=use) for partition in partitions]
        for run in runs:
            totals = Totals(files=1)
            commit = TaskCommit(job=JOB, task=run.task, attempt=AttemptId(run.attempt), totals=totals)
            self.reports.append(TaskReport(run=run, commit=commit))
        return [run.attempt for run in runs]

    def counting(self, *, pins_attempts: bool = True) -> list[str]:
        commits = accepted_commits(self.reports, self.begun, self.stages.get, pins_attempts=pins_attempts)
        assert len({commit.task for commit in commits}) == len(commits)
        return [commit.attempt for commit in commits]

    def refused(self, sentence: str) -> None:
        with pytest.raises(InvalidRequestError, match=sentence):
            self.counting()


@pytest.fixture
def app() -> Application:
    return Application()


# --- one stage --------------------------------------------------------------------------------------------------------
def test_failed_runs_leave_marks_only(app: Application) -> None:
    stage = app.stage(2)
    app.begin(stage, 1)
    attempts = app.run(stage, [0, 1])
    app.begin(stage, 0)  # a speculative copy that lost
    assert app.counting() == attempts


def test_a_stage_that_is_run_again_in_part(app: Application) -> None:
    """Its outputs were lost with an executor: the same stage runs the missing partitions; the latest run counts."""
    stage = app.stage(3)
    first = app.run(stage, [0, 1, 2])
    assert app.counting() == first
    (again,) = app.run(stage, [1])
    assert app.counting() == [first[0], again, first[2]]


def test_each_data_set_counts(app: Application) -> None:
    """Two functions in one stage, and one function for two data sets."""
    one, other = app.stage(2), app.stage(1)
    assert [*app.run(one, [0, 1]), *app.run(one, [0, 1], use=1), *app.run(other, [0], use=2)] == app.counting()


def test_a_part_of_a_union(app: Application) -> None:
    """The stage has the tasks of both sides, and each function ran in its own."""
    stage = app.stage(5)
    assert [*app.run(stage, [0, 1]), *app.run(stage, [2, 3, 4], use=1)] == app.counting()
    stage = app.stage(5)
    again = [*app.run(stage, [0, 1]), *app.run(stage, [2, 3, 4], use=1)]
    assert app.counting() == again, "a sort looks at its input first"


def test_a_union_whose_stage_has_failed(app: Application) -> None:
    app.run(app.stage(5, complete=False), [0, 1])
    app.refused("let one action take all rows")


def test_a_partition_without_a_whole_run(app: Application) -> None:
    stage = app.stage(6)
    app.run(stage, [0])
    app.begin(stage, 4)
    with pytest.raises(InvalidRequestError, match="read only in part") as caught:
        app.counting()
    assert caught.value.variables["partition"] == 4


@pytest.mark.parametrize("both_end", [True, False])
def test_several_runs_in_one_task_of_spark(app: Application, both_end: bool) -> None:
    """Behind them came a coalesce: Spark calls them by one number, so one would replace the other."""
    stage = app.stage(1)
    app.run(stage, [0])
    task = app.begun[0].spark_task
    second = app.begin(stage, 0, spark_task=task)
    if both_end:
        commit = TaskCommit(job=JOB, task=0, attempt=AttemptId(second.attempt), totals=Totals(files=1))
        app.reports.append(TaskReport(run=second, commit=commit))
    app.refused("coalesce before")


# --- several stages ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("larger_first", [True, False])
def test_two_actions_in_different_partitions(app: Application, larger_first: bool) -> None:
    """The runs of one stage count, never 0 and 1 of the newer beside 2 and 3 of the older."""
    for tasks in (4, 2) if larger_first else (2, 4):
        attempts = app.run(app.stage(tasks), range(tasks))
        if tasks == 4:
            expected = attempts
    assert app.counting() == expected


def test_the_newest_of_equals(app: Application) -> None:
    app.run(app.stage(2), [0, 1])
    newest = app.run(app.stage(2), [1, 0])
    assert app.counting() == newest[::-1]


def test_a_cached_partition_that_is_lost(app: Application) -> None:
    """A later stage of as many tasks runs the function for it alone."""
    whole = app.run(app.stage(3), [0, 1, 2])
    app.run(app.stage(3), [1])
    app.begin(app.stage(3), 2)  # and another action stops halfway
    assert app.counting() == whole


@pytest.mark.parametrize("lost", [[0], [0, 1], [2]])
def test_an_output_that_is_lost_between_jobs(app: Application, lost: list[int]) -> None:
    """The later job has a stage of its own for what is missing, and it looks whole if that is the beginning."""
    whole = app.run(app.stage(3), [0, 1, 2])
    app.run(app.stage(len(lost)), lost)
    assert app.counting() == whole


def test_jobs_over_some_partitions_each(app: Application) -> None:
    """As of take and toLocalIterator."""
    app.run(app.stage(1), [0])
    app.run(app.stage(2), [1, 2])
    app.refused("let one action take all rows")


def test_a_lost_output_behind_a_union(app: Application) -> None:
    app.run(app.stage(5), [0, 1, 2])
    app.run(app.stage(1), [0])
    app.refused("let one action take all rows")


def test_a_part_of_a_union_beside_a_cache(app: Application) -> None:
    """A failed action has cached a partition; in the union behind it, that partition goes by another number."""
    app.run(app.stage(4, complete=False), [1])
    app.run(app.stage(5), [1, 3, 4])
    app.refused("let one action take all rows")


def test_a_forgotten_stage(app: Application) -> None:
    stage = app.stage(2)
    attempts = app.run(stage, [0, 1])
    del app.stages[stage]
    app.refused("raise spark.ui.retainedStages")
    newer = app.stage(2)
    assert attempts != app.run(newer, [0, 1]) == app.counting()


def test_a_committer_that_goes_by_numbers(app: Application) -> None:
    """What a newer run has replaced is not there to be chosen."""
    app.run(app.stage(2), [0, 1])
    newest = app.run(app.stage(3), [0, 1, 2])
    assert app.counting(pins_attempts=False) == newest
    app.run(app.stage(1), [0])
    assert app.counting() == newest
    with pytest.raises(InvalidRequestError, match="use committer two_phase"):
        app.counting(pins_attempts=False)


# --- any history ------------------------------------------------------------------------------------------------------
ROWS = 12


@dataclass
class DataSet:
    """A data set in as many layouts as Spark plans, each perhaps cached or kept behind a shuffle.

    A layout is a division of the same rows into partitions; some are empty. What an attempt wrote is known by the
    rows that its partition had.
    """

    app: Application
    layouts: list[list[tuple[int, ...]]]
    kept: dict[int, set[int]] = field(default_factory=dict)  # of a layout: partitions that need not be run
    ran: dict[int, set[int]] = field(default_factory=dict)  # of a layout: partitions that were accepted
    rows_of: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def stage(self, tasks: int, complete: bool = True) -> int:
        return self.app.stage(tasks, complete=complete)

    def accept(self, stage: int, layout: int, partition: int, offset: int) -> None:
        (attempt,) = self.app.run(stage, [partition + offset])
        self.rows_of[attempt] = self.layouts[layout][partition]
        self.ran.setdefault(layout, set()).add(partition)

    def action(self, data: st.DataObject, layout: int) -> None:
        """All rows are taken: of the data set alone, or of a union; perhaps from a cache; it may fail halfway."""
        size = len(self.layouts[layout])
        before, after = data.draw(st.sampled_from([(0, 0), (0, 0), (0, 2), (1, 0), (2, 1)]))
        todo = [number for number in range(size) if number not in self.kept.get(layout, ())]
        fails = data.draw(st.sampled_from([False, False, False, True])) and bool(todo)
        stage = self.stage(before + size + after, not fails)
        done = data.draw(st.lists(st.sampled_from(todo), unique=True, max_size=len(todo) - 1)) if fails else todo
        for number in data.draw(st.permutations(done)):
            if data.draw(st.booleans()):
                self.app.begin(stage, number + before)  # an attempt that failed
            self.accept(stage, layout, number, before)
        if data.draw(st.booleans()):
            self.kept.setdefault(layout, set()).update(done)  # persisted
        if done and not fails and data.draw(st.booleans()):
            for number in data.draw(st.lists(st.sampled_from(done), unique=True)):
                self.accept(stage, layout, number, before)  # the stage's output was lost with an executor

    def recover(self, data: st.DataObject, layout: int) -> None:
        """A later job finds outputs of an earlier stage lost, and runs a stage for those alone."""
        if (ran := sorted(self.ran.get(layout, ()))) and len(ran) == len(self.layouts[layout]):
            lost = data.draw(st.lists(st.sampled_from(ran), min_size=1, unique=True))
            stage = self.stage(len(lost))
            for number in lost:
                self.accept(stage, layout, number, 0)

    def lose(self, data: st.DataObject, layout: int) -> None:
        """Blocks of the cache are gone."""
        if kept := self.kept.get(layout):
            kept -= set(data.draw(st.lists(st.sampled_from(sorted(kept)))))

    def take(self, data: st.DataObject, layout: int) -> None:
        """Partitions one after the other, each time in a stage of its own, until there are enough rows.

        It goes on past the first partition: whether one that stopped there has taken all cannot be told from runs.
        """
        size = len(self.layouts[layout])
        if size == 1 or self.kept.get(layout):
            return
        self.accept(self.stage(1), layout, 0, 0)
        more = data.draw(st.integers(1, size - 1))
        stage = self.stage(more)
        for number in range(1, more + 1):
            if number == more and data.draw(st.booleans()):
                self.app.begin(stage, number)  # cut short
            else:
                self.accept(stage, layout, number, 0)


def divided(cuts: Sequence[int]) -> list[tuple[int, ...]]:
    edges = [0, *sorted(cuts), ROWS]
    return [tuple(range(*edge)) for edge in itertools.pairwise(edges)]


@given(st.data())
def test_all_rows_count_once_or_nothing_does(data: st.DataObject) -> None:
    """C1 to C3, whatever Spark computes again, in whatever partitions, and whatever part of it."""
    layouts = data.draw(st.lists(st.lists(st.integers(0, ROWS), max_size=4).map(divided), min_size=1, max_size=3))
    app = Application()
    found = DataSet(app, layouts)
    steps = (found.action, found.action, found.action, found.recover, found.lose, found.take)
    for step in data.draw(st.lists(st.sampled_from(steps), min_size=1, max_size=5)):
        step(data, data.draw(st.integers(0, len(layouts) - 1)))
    try:
        counting = app.counting()
    except InvalidRequestError:
        event("refused")
        return
    event(f"counted, of {len({run.stage for run in app.begun})} stages")
    assert sorted(row for attempt in counting for row in found.rows_of[attempt]) == [*range(ROWS)] or not app.begun


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_whole_actions_are_never_refused(sizes: list[int], data: st.DataObject) -> None:
    """Two and more actions on one data set, in whatever partitions and of whatever attempts."""
    app = Application()
    runs = {}
    for size in sizes:
        stage = app.stage(size)
        app.begin(stage, data.draw(st.integers(0, size - 1)))
        runs[size] = app.run(stage, range(size))
    assert app.counting() == runs[max(sizes)]


# --- marks ------------------------------------------------------------------------------------------------------------
def test_marks_come_and_go() -> None:
    world = World("upload")
    ctx = world.context()
    runs = [
        Run(task=0, stage=3, spark_task=1, attempt="000000000001"),
        Run(task=PARTITIONS * 999, stage=123456, spark_task=123456, attempt="0123456789ab"),
    ]
    for each in runs:
        mark_run(ctx, JOB, each)
    world.store.put(ctx.key(f"_holdfast/jobs/{JOB}/started/scribble"), b"")
    assert sorted(marked_runs(ctx, JOB), key=lambda each: each.task) == runs
    forget_runs(ctx, JOB)
    forget_runs(ctx, JOB)
    assert world.leftovers() == []
