"""Check that `verify` finds what is wrong with a destination, and only that."""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Callable

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, JobRecord, SaveMode, recover, verify
from holdfast.commit.layout import log_mark_path
from holdfast.commit.two_phase.snapshot import read_checksums
from holdfast.stores.interceptors import StoreOperation
from tests.interceptors import Fault, FaultMode, SimulatedCrash
from tests.simulation.world import HOME, PUBLICATIONS, STEPWISE, TASKS, World, interleavings, run_job, run_tasks, start
from tests.unit.commit.test_upload_owners import write


def first_file(world: World) -> str:
    return HOME + next(iter(world.listing()))


def truncate(world: World) -> None:
    world.store.put(first_file(world), b"")


def delete(world: World) -> None:
    world.store.delete(first_file(world))


def add(world: World) -> None:
    key = first_file(world)
    world.store.put(key.replace("-00000.txt", "-00009.txt"), b"x")


def forge(world: World) -> None:
    """Create a file of a job that never committed."""
    job = start(world.context())
    name = f"part-00000-{job.job}-0123456789ab-00000.txt"
    world.store.put(HOME + name, b"x")
    TWO_PHASE.abort_job(world.context(), job)


def drop_success(world: World) -> None:
    world.store.delete(f"{HOME}_SUCCESS")


def old_success(world: World) -> None:
    report = world.store.get(f"{HOME}_SUCCESS")
    run_job(world.context(), "later")
    world.store.put(f"{HOME}_SUCCESS", report)


DAMAGES: dict[Callable[[World], None], str] = {
    truncate: "should have 4 files",
    delete: "has 3 files",
    add: "has 5 files",
    forge: "did not commit them",
    drop_success: "_SUCCESS is missing",
    old_success: "but the last job is",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_found(damage: Callable[[World], None]) -> None:
    world = World("upload")
    run_job(world.context(), "new")
    assert verify(world.context()).verified
    damage(world)
    problems = verify(world.context()).problems
    assert len(problems) == 1 and DAMAGES[damage] in problems[0]


def test_counts_follow_the_log() -> None:
    world = World("upload")
    run_job(world.context(), "a")
    run_job(world.context(), "b", SaveMode.OVERWRITE_PARTITIONS, tasks=1)
    run_job(world.context(), "c")
    report = verify(world.context())
    assert report.verified and report.jobs == 3 and report.totals.files == 6
    run_job(world.context(), "d", SaveMode.OVERWRITE)
    report = verify(world.context())
    assert report.verified and report.totals.files == 4


def test_foreign_files_and_reports_are_notes() -> None:
    world = World("upload")
    run_job(world.context(), "new")
    world.store.put(f"{HOME}data.csv", b"x")
    world.store.put(f"{HOME}_SUCCESS", b"")
    report = verify(world.context())
    assert report.verified and len(report.notes) == 2


# --- files of other jobs ----------------------------------------------------------------------------------------------
def put_file_of(world: World, job: JobRecord) -> None:
    """Make a file visible that the job has not committed."""
    world.store.put(f"{HOME}part-00000-{job.job}-0123456789ab-00000.txt", b"x")


def trimmed_world() -> tuple[World, CommitContext]:
    """Return a world whose log retains only its newest entries."""
    world = World("upload")
    ctx = world.context().with_settings(log_retention_entries=2)
    for number in range(4):
        run_job(ctx, f"job{number}", tasks=1)
    return world, ctx


def unknown_job(ctx: CommitContext) -> JobRecord:
    """Return a job that has left no record: neither its own nor a log entry."""
    job = start(ctx)
    ctx.store.delete(ctx.key(f"_holdfast/jobs/{job.job}/job.json"))
    return job


def test_files_of_a_job_that_a_complete_log_lacks_are_a_problem() -> None:
    world = World("upload")
    run_job(world.context(), "new")
    put_file_of(world, unknown_job(world.context()))
    (problem,) = verify(world.context()).problems
    assert "1 of the visible files belong to job" in problem and "did not commit them" in problem


def test_files_of_a_job_that_a_trimmed_log_lacks_are_a_note() -> None:
    world, ctx = trimmed_world()
    put_file_of(world, unknown_job(ctx))
    report = verify(ctx)
    assert report.verified and any("whose log entry has been trimmed" in note for note in report.notes)


def test_files_of_an_undecided_job_are_a_problem_in_a_trimmed_log_too() -> None:
    world, ctx = trimmed_world()
    job = start(ctx)
    put_file_of(world, job)
    (problem,) = verify(ctx).problems
    assert job.job in problem and "did not commit them" in problem


def test_files_of_an_aborted_job_are_a_problem_while_the_log_retains_its_entry() -> None:
    """Also of the oldest entry of a trimmed log, after the others have been trimmed."""
    world, ctx = trimmed_world()
    job = start(ctx)
    TWO_PHASE.abort_job(ctx, job)
    run_job(ctx, "next", tasks=1)
    put_file_of(world, job)
    (problem,) = verify(ctx).problems
    assert job.job in problem and "did not commit them" in problem


def test_a_trimmed_log_that_an_overwrite_follows_is_complete() -> None:
    """The overwrite has replaced all files of the jobs whose entries were trimmed."""
    world, ctx = trimmed_world()
    job = unknown_job(ctx)
    run_job(ctx, "all", SaveMode.OVERWRITE, tasks=1)
    put_file_of(world, job)
    (problem,) = verify(ctx).problems
    assert job.job in problem and "did not commit them" in problem


@pytest.mark.parametrize("chosen", [False, True])
def test_files_without_a_job_in_their_names_may_be_chosen_names(chosen: bool) -> None:
    world = World("upload")
    ctx = world.context()
    job = start(ctx, SaveMode.OVERWRITE)
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open("chosen.txt" if chosen else attempt.file_name(".txt")).write(b"x")
        commit = attempt.commit()
    TWO_PHASE.commit_job(ctx, job, [commit], 1)
    if not chosen:
        world.store.put(f"{HOME}foreign.txt", b"x")
    report = verify(ctx)
    assert report.verified
    assert report.notes == [
        "the names of 1 file do not contain a job id" + ("" if chosen else ": no job in Holdfast's log wrote them")
    ]


@pytest.mark.parametrize(
    ("operation", "pending"), [(StoreOperation.COMPLETE_UPLOAD, True), (StoreOperation.LIST_UPLOADS, False)]
)
def test_a_problem_speaks_of_pending_uploads_only_while_there_are_any(operation: StoreOperation, pending: bool) -> None:
    world = World("upload")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")
    with pytest.raises(SimulatedCrash):
        TWO_PHASE.commit_job(world.context(Fault(FaultMode.CRASH_BEFORE, operation)), job, messages, TASKS)
    world.clock.sleep(7200)
    unfinished = [problem for problem in verify(world.context()).problems if "not finished" in problem]
    assert len(unfinished) == 1
    assert ("pending uploads for 2 h" in unfinished[0]) is pending


def test_an_upload_that_a_live_job_has_announced_too_is_not_a_finished_jobs() -> None:
    """It is unknown which of the two jobs started it: recovery may abort it only after both have ended."""
    world = World("upload")
    jobs = [write(world.context()), write(world.context())]
    for number, job in enumerate(jobs, start=1):
        world.store.delete(f"{HOME}_holdfast/jobs/{job.job}/job.json")
        report = verify(world.context())
        said = [note for note in report.notes if "an upload of finished job" in note]
        assert len(said) == (2 if number == 2 else 0) and report.pending_uploads == 2


# --- contents ---------------------------------------------------------------------------------------------------------
def flip(world: World) -> int:
    key, data = first_file(world), bytearray(world.store.get(first_file(world)))
    data[3] ^= 1
    world.store.put(key, bytes(data))
    return 1


def refill(world: World) -> int:
    key, data = first_file(world), world.store.get(first_file(world))
    world.store.put(key, data[:4] + bytes(len(data) - 4))
    return 1


def exchange(world: World) -> int:
    (first, one), (second, other) = list(world.listing().items())[:2]
    world.store.put(HOME + first, other)
    world.store.put(HOME + second, one)
    return 2


@pytest.mark.parametrize("damage", [flip, refill, exchange], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_changed_bytes_are_found_by_reading(publication: str, damage: Callable[[World], int]) -> None:
    world = World(publication)
    run_job(world.context(), "new")
    report = verify(world.context(), read=True)
    assert report.verified and (report.files_read, report.without_checksum) == (4, 0)
    changed = damage(world)
    assert verify(world.context()).verified, "the sizes are as before"
    problems = verify(world.context(), read=True).problems
    assert len(problems) == changed and all("are not those that were committed" in problem for problem in problems)


def test_the_checksums_of_a_file_in_many_parts_are_those_of_its_bytes() -> None:
    world = World("upload")
    ctx = world.context()
    job = start(ctx)
    with TWO_PHASE.setup_task(ctx, job, 0) as task:
        sink = task.open("chosen.bin")
        for piece in (b"ab", bytearray(b"cdefghij"), memoryview(b"klm"), b""):
            sink.write(piece)
        commit = task.commit()
    TWO_PHASE.commit_job(ctx, job, [commit], 1)
    assert verify(ctx, read=True).files_read == 1 and world.contents() == [b"abcdefghijklm"]
    assert dict(read_checksums(ctx, 1)) == {"chosen.bin": zlib.crc32(b"abcdefghijklm")}


@pytest.mark.parametrize("mode", [FaultMode.CRASH_BEFORE, FaultMode.CRASH_AFTER])
@pytest.mark.parametrize("publication", STEPWISE)
def test_recovery_records_the_checksums_too(publication: str, mode: FaultMode) -> None:
    committed = 0
    for nth in itertools.count(1):
        world = World(publication)
        job = start(world.context())
        messages = run_tasks(world.context(), job, "new")
        try:
            TWO_PHASE.commit_job(world.context(Fault(mode, nth=nth)), job, messages, TASKS)
        except SimulatedCrash:
            recover(world.context())
            report = verify(world.context(), read=True)
            assert report.verified and report.files_read == len(world.listing()) and report.without_checksum == 0
            committed += report.files_read == 4
        else:
            break
    assert committed > 5


def test_files_without_a_checksum_are_counted() -> None:
    world = World("upload")
    run_job(world.context(), "new")
    world.store.put(f"{HOME}theirs.csv", b"1\n")
    report = verify(world.context(), read=True)
    assert report.verified and (report.files_read, report.without_checksum) == (4, 1)
    assert any("1 file of 5 have no checksum" in note for note in report.notes)


def test_a_file_that_is_replaced_while_it_is_read_is_not_damaged() -> None:
    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        run_job(world.context(), "old")

        def look(ctx: CommitContext) -> None:
            assert verify(ctx, read=True).verified

        return look, lambda: run_job(world.context(), "new", SaveMode.OVERWRITE)

    assert sum(1 for _ in interleavings("upload", prepare)) > 4


DAMAGED = {
    "cut": lambda data: data[:-9],
    "no path": lambda data: gzip.compress(b'{"crc32":1}\n'),
    "no checksum": lambda data: gzip.compress(b'{"path":"x","crc32":-1}\n'),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_damaged_checksums_are_a_problem(damage: Callable[[bytes], bytes]) -> None:
    world = World("upload")
    run_job(world.context(), "new")
    key = HOME + log_mark_path(1, "visible")
    world.store.put(key, damage(world.store.get(key)))
    report = verify(world.context(), read=True)
    assert len(report.problems) == 1 and "checksums of job" in report.problems[0]
