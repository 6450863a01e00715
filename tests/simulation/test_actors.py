"""Test two and three concurrent processes: for every n, stop one before call n, run the others, and continue it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.commit import (
    TWO_PHASE,
    CommitContext,
    JobOutcome,
    Kind,
    SaveMode,
    TaskCommit,
    read_history,
    read_snapshot,
    recover,
)
from holdfast.errors import ConflictError, CorruptDataError, DestinationExistsError, FencedError, NotFoundError
from holdfast.stores.base import iter_uploads
from tests.interceptors import SimulatedCrash, crash_at
from tests.simulation.world import (
    PUBLICATIONS,
    TASKS,
    At,
    World,
    allow_nesting,
    assert_settled,
    expected,
    interleavings,
    run_job,
    run_task,
    run_tasks,
    start,
)


def log_order(world: World) -> list[tuple[str, SaveMode]]:
    """Return the committed jobs in log order, by the names in their details."""
    decisions = read_history(world.context()).decisions
    return [
        (str(d.entry.record.details["name"]), d.entry.record.mode) for d in decisions if d.entry.kind is Kind.COMMIT
    ]


def serial(order: list[tuple[str, SaveMode]]) -> list[bytes]:
    """Return the result of running the jobs one after the other."""
    contents: list[bytes] = []
    for name, mode in order:
        contents = expected(name) if mode is not SaveMode.APPEND else contents + expected(name)
    return sorted(contents)


def ready(world: World, name: str, mode: SaveMode) -> Callable[[CommitContext], JobOutcome]:
    """Run the tasks of a job, so that only its commit remains."""
    ctx = world.context()
    job = TWO_PHASE.setup_job(ctx, mode, {"name": name})
    assert job is not None
    messages = run_tasks(ctx, job, name)
    return lambda ctx: TWO_PHASE.commit_job(ctx, job, messages, TASKS)


MODE_PAIRS = [
    (SaveMode.APPEND, SaveMode.APPEND),
    (SaveMode.OVERWRITE, SaveMode.APPEND),
    (SaveMode.APPEND, SaveMode.OVERWRITE),
    (SaveMode.OVERWRITE, SaveMode.OVERWRITE),
    (SaveMode.OVERWRITE_PARTITIONS, SaveMode.APPEND),
    (SaveMode.OVERWRITE_PARTITIONS, SaveMode.OVERWRITE_PARTITIONS),
]


@pytest.mark.parametrize("modes", MODE_PAIRS, ids=lambda modes: "+".join(mode.value for mode in modes))
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_two_jobs_on_one_destination(publication: str, modes: tuple[SaveMode, SaveMode]) -> None:
    """C7: both succeed, and the result is that of running them one after the other in log order."""

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        ready(world, "old", SaveMode.APPEND)(world.context())
        first, second = ready(world, "first", modes[0]), ready(world, "second", modes[1])
        return first, lambda: second(world.context())

    orders = set()
    for world in interleavings(publication, prepare):
        order = log_order(world)
        assert len(order) == 3
        orders.add(order[1][0])
        assert_settled(world, serial(order))
    assert orders == {"first", "second"}, "both orders were seen"


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_second_job_dies_in_the_middle_of_the_first(publication: str) -> None:
    """C7, C9 with three actors: the first is stopped at call n, the second dies at call m, the first continues."""
    for nth, second_nth in itertools.product(range(1, 60, 3), range(1, 60, 2)):
        world = World(publication)
        ready(world, "old", SaveMode.APPEND)(world.context())
        first, second = ready(world, "first", SaveMode.OVERWRITE), ready(world, "second", SaveMode.APPEND)

        def die(world: World = world, second: Callable[..., object] = second, at: int = second_nth) -> None:
            with contextlib.suppress(SimulatedCrash):
                second(world.context(crash_at(at)))

        first(world.intercepted(At(nth, die)))
        recover(world.context())
        assert_settled(world, serial(log_order(world)))


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_two_drivers_of_one_job(publication: str) -> None:
    """C8: a partitioned driver and its replacement commit the same job: one decision, and both report a commit."""
    outcomes: list[JobOutcome] = []

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        ready(world, "old", SaveMode.APPEND)(world.context())
        job = ready(world, "new", SaveMode.OVERWRITE)

        def commit(ctx: CommitContext) -> None:
            outcome = job(ctx)
            outcomes.append(outcome)

        return commit, lambda: commit(world.context())

    for world in interleavings(publication, prepare):
        assert log_order(world) == [("old", SaveMode.APPEND), ("new", SaveMode.OVERWRITE)]
        assert_settled(world, expected("new"))
        assert all(outcome.committed and outcome.finished for outcome in outcomes[-2:])


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_drivers_that_chose_different_attempts(publication: str) -> None:
    """C3, C8: two drivers have messages of different attempts. The first to decide wins: one attempt per task."""

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        ctx = world.context()
        job = start(ctx)
        ones, twos = run_tasks(ctx, job, "one"), run_tasks(ctx, job, "two")

        def commit(messages: list[TaskCommit | None]) -> Callable[[CommitContext], object]:
            return lambda ctx: TWO_PHASE.commit_job(ctx, job, messages, TASKS)

        return commit(ones), lambda: commit(twos)(world.context())

    seen = set()
    for world in interleavings(publication, prepare):
        assert world.contents() in (expected("one"), expected("two"))
        seen.add(world.contents()[0])
        assert_settled(world, world.contents())
    assert len(seen) == 2, "both drivers won once"


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_recovery_races_a_slow_driver(publication: str) -> None:
    """C6, C8, faults 14 and 71: recovery presumes a slow driver dead at any moment. It is fenced or has finished."""
    fenced = []

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        ready(world, "old", SaveMode.APPEND)(world.context())
        job = start(world.context(), SaveMode.OVERWRITE)
        messages = run_tasks(world.context(), job, "new")

        def commit(ctx: CommitContext) -> None:
            try:
                TWO_PHASE.commit_job(ctx, job, messages, TASKS)
                fenced.append(False)
            except FencedError:
                assert not TWO_PHASE.abort_job(ctx, job).committed  # as Spark does
                fenced.append(True)

        return commit, lambda: recover(world.context())

    for world in interleavings(publication, prepare):
        assert_settled(world, expected("old") if fenced[-1] else expected("new"))
    assert set(fenced) == {True, False}


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_abort_after_another_job(publication: str) -> None:
    """C8: another job takes the next number in the log; recovery takes the one after it to abort the slow job."""
    fenced = []

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        ctx = world.context()
        other = ready(world, "other", SaveMode.APPEND)
        job = start(ctx)
        messages = run_tasks(ctx, job, "new")

        def commit(ctx: CommitContext) -> None:
            try:
                TWO_PHASE.commit_job(ctx, job, messages, TASKS)
                fenced.append(False)
            except FencedError:
                fenced.append(True)

        def others() -> None:
            other(world.context())
            TWO_PHASE.abort_job(world.context(), job)

        return commit, others

    for world in interleavings(publication, prepare):
        assert world.contents() == (expected("other") if fenced[-1] else sorted(expected("other") + expected("new")))
        decided = [d.entry.job for d in read_history(world.context()).decisions]
        assert len(decided) == len(set(decided)) == 2, "each job is decided once"
    assert set(fenced) == {True, False}


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_slow_helper_after_later_jobs(publication: str) -> None:
    """C6: a driver stops after its decision. Others finish and replace its output. It then changes nothing."""

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        late = ready(world, "late", SaveMode.OVERWRITE)  # finishes the slow job, then replaces it
        return ready(world, "slow", SaveMode.APPEND), lambda: late(world.context())

    for world in interleavings(publication, prepare):
        assert_settled(world, serial(log_order(world)))
        success = world.store.get("out put/dataset1/_SUCCESS")
        newest = read_history(world.context()).decisions[-1].entry
        assert newest.job.encode() in success, "the report is the newest job's"


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_zombie_attempt_finishes_at_any_moment(publication: str) -> None:
    """C2, C6: a losing attempt writes between any two calls of a job commit and after it. The next job cleans up."""

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        ctx = world.context()
        job = start(ctx)
        messages = run_tasks(ctx, job, "new")
        return (
            lambda ctx: TWO_PHASE.commit_job(ctx, job, messages, TASKS),
            lambda: run_task(world.context(), job, 0, "zombie"),
        )

    for world in interleavings(publication, prepare):
        assert world.contents() == expected("new")
        run_job(world.context(), "next")
        assert_settled(world, sorted(expected("new") + expected("next")))


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_zombie_of_an_aborted_job(publication: str) -> None:
    """C5: an attempt of an aborted job continues for a while. Nothing of it becomes visible; recovery cleans up."""

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        ctx = world.context()
        job = start(ctx)
        run_tasks(ctx, job, "new")

        def zombie(ctx: CommitContext) -> None:
            try:
                run_task(ctx, job, 0, "zombie")
            except NotFoundError:
                return  # its upload was aborted while it was writing

        return zombie, lambda: TWO_PHASE.abort_job(world.context(), job)

    for world in interleavings(publication, prepare):
        assert world.contents() == []
        recover(world.context())
        assert_settled(world, [])


@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_reader_sees_whole_jobs_only(publication: str, mode: SaveMode) -> None:
    """C4: a reader at every moment of a commit, and a commit at every moment of a reader."""
    allowed = (expected("old"), serial([("old", SaveMode.APPEND), ("new", mode)]))

    def look(world: World, ctx: CommitContext) -> None:
        paths = [file.path for file in read_snapshot(ctx).files]
        listing = world.listing()
        assert sorted(listing[path] for path in paths if path in listing) in allowed

    def reader_inside(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        ready(world, "old", SaveMode.APPEND)(world.context())
        return ready(world, "new", mode), lambda: look(world, world.context())

    for world in interleavings(publication, reader_inside):
        assert_settled(world, allowed[1])

    snapshots = []

    def commit_inside(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        ready(world, "old", SaveMode.APPEND)(world.context())
        job = ready(world, "new", mode)
        before = world.listing()

        def read(ctx: CommitContext) -> None:
            paths = [file.path for file in read_snapshot(ctx).files]
            everything = {**before, **world.listing()}
            snapshots.append(sorted(everything[path] for path in paths))

        return read, lambda: job(world.context())

    for _ in interleavings(publication, commit_inside):
        assert snapshots[-1] in allowed


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_reader_while_a_job_is_half_published(publication: str) -> None:
    """C4: the driver died halfway. A reader sees the old data at every step of the process that finishes the job."""

    def half_published(world: World) -> dict[str, bytes]:
        ready(world, "old", SaveMode.APPEND)(world.context())
        job = ready(world, "new", SaveMode.OVERWRITE)
        for nth in itertools.count(1):  # die as soon as the first new file is visible
            try:
                job(world.context(crash_at(nth)))
            except SimulatedCrash:
                if set(world.contents()) & set(expected("new")):
                    return world.listing()
        raise AssertionError

    def check(world: World, ctx: CommitContext, before: dict[str, bytes]) -> None:
        paths = [file.path for file in read_snapshot(ctx).files]
        everything = {**before, **world.listing()}
        assert sorted(everything[path] for path in paths) in (expected("old"), expected("new"))

    def reader_inside(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        before = half_published(world)
        return recover, lambda: check(world, world.context(), before)

    for world in interleavings(publication, reader_inside):
        assert_settled(world, expected("new"))

    def helper_inside(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        before = half_published(world)
        return lambda ctx: check(world, ctx, before), lambda: recover(world.context())

    for world in interleavings(publication, helper_inside):
        assert_settled(world, expected("new"))


@pytest.mark.parametrize("mode", [SaveMode.FAIL, SaveMode.IGNORE])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_fail_and_ignore_meet_another_job(publication: str, mode: SaveMode) -> None:
    """``fail`` and ``ignore`` are checked against everything that was decided before, until the last moment."""
    results = []

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        job, other = ready(world, "new", mode), ready(world, "other", SaveMode.APPEND)

        def commit(ctx: CommitContext) -> None:
            try:
                outcome = job(ctx)
                results.append(outcome.committed)
            except DestinationExistsError:
                recover(world.context())  # Spark calls abort
                results.append(False)

        return commit, lambda: other(world.context())

    for world in interleavings(publication, prepare):
        order = log_order(world)
        assert [name for name, _ in order] == (["new", "other"] if results[-1] else ["other"])
        assert_settled(world, sorted(b for name, _ in order for b in expected(name)))
    assert set(results) == {True, False}


def test_uploads_aborted_by_a_lifecycle_rule() -> None:
    """Fault 16: a lifecycle rule removed a committed job's uploads. The damage is reported and nothing is deleted."""
    world = World("upload")
    run_job(world.context(), "old")
    ctx = world.context()
    job = start(ctx, SaveMode.OVERWRITE)
    messages = run_tasks(ctx, job, "new")
    upload = next(iter_uploads(world.store, ""))
    world.store.abort_upload(upload.key, upload.upload_id)
    with pytest.raises(CorruptDataError, match="accept-damage"):
        TWO_PHASE.commit_job(ctx, job, messages, TASKS)
    assert set(expected("old")) <= set(world.contents()), "what the job replaces is kept"
    with pytest.raises(ConflictError, match="touches the same files") as waits:
        run_job(ctx, "next")
    assert isinstance(waits.value.__cause__, CorruptDataError)
    report = recover(ctx)
    assert not report.clean and job.job in report.damaged
    assert recover(ctx, accept_damage=True).clean
    assert len(world.contents()) == len(expected("new")) - 1


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_job_in_a_destination_above_another(publication: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """C7: jobs, aborts and recovery run in ``out put/dataset1/`` while a job of ``out put/`` writes."""
    allow_nesting(monkeypatch)
    parent = "out put/"

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        def others() -> None:
            run_job(world.context(), "child")
            TWO_PHASE.abort_job(world.context(), start(world.context()))
            recover(world.context())

        def write_below(ctx: CommitContext) -> None:
            above = replace(ctx, prefix=parent, url=f"memory://world/{parent}")
            job = start(above)
            with TWO_PHASE.setup_task(above, job, 0) as attempt:
                for path in (f"dataset1/day=0/{attempt.file_name('.txt')}", "dataset1/of my choice.txt"):
                    sink = attempt.open(path)
                    sink.write(b"of the parent")
                    sink.close()
                commit = attempt.commit()
            assert TWO_PHASE.commit_job(above, job, [commit], 1).finished

        return write_below, others

    for world in interleavings(publication, prepare):
        assert world.contents() == sorted([*expected("child"), b"of the parent", b"of the parent"])
        assert world.pending() == [] and world.leftovers(parent) == [] and world.leftovers() == []


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_job_in_a_destination_below_another(publication: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """C7: jobs, aborts and recovery run in ``out put/`` while a job runs below it. Its uploads survive."""
    allow_nesting(monkeypatch)
    parent = "out put/"

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        def others() -> None:
            run_job(world.context(home=parent), "parent")
            TWO_PHASE.abort_job(world.context(home=parent), start(world.context(home=parent)))
            recover(world.context(home=parent))
            run_task(world.context(), zombie, 0, "zombie")

        zombie = start(world.context())
        TWO_PHASE.abort_job(world.context(), zombie)
        return lambda ctx: run_job(ctx, "new"), others

    for world in interleavings(publication, prepare):
        recover(world.context())
        assert_settled(world, expected("new"))
