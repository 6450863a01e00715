"""Test the recovery of ``manifest``: crash at every store call, lose every reply, and check the recovery action."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from holdfast.commit import COMMITTERS, CommitContext, JobRecord, SaveMode, TaskCommit
from holdfast.commit.hadoop.manifest.format import job_record_path, task_manifest_path
from holdfast.commit.leftovers import Leftover, RecoveryAction
from holdfast.commit.success_file import read_success_file
from holdfast.errors import NotFoundError, OutcomeUnknownError, UnavailableError
from holdfast.stores.base import iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty, SimulatedCrash, crash_at
from tests.simulation.world import At
from tests.unit.commit.attempts import HOME, Before, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket

MANIFEST = COMMITTERS["manifest"]
OLD = [b"old/0/0", b"old/0/1"]
TASKS = 2

Process = Callable[[CommitContext], object]


def leftovers(bucket: Bucket) -> list[Leftover]:
    assert MANIFEST.leaves_records
    return list(MANIFEST.find_leftovers(bucket.context()))


def prepared(mode: SaveMode = SaveMode.APPEND) -> tuple[Bucket, JobRecord, list[TaskCommit]]:
    """Return a bucket with an old job that ended, and a new one whose tasks have committed."""
    bucket = Bucket("manifest")
    ctx = bucket.context()
    bucket.run_job(ctx, "old", tasks=1)
    job = bucket.start(ctx, mode)
    return bucket, job, [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(TASKS)]


def crashes(prepare: Callable[[], tuple[Bucket, Process]]) -> Iterator[Bucket]:
    """Yield buckets in which one process died at its nth call, for every n and both sides of the effect."""
    for after in (False, True):
        for nth in itertools.count(1):
            bucket, process = prepare()
            try:
                process(faulty_context(bucket, crash_at(nth, after=after)))
            except SimulatedCrash:
                yield bucket
            else:
                assert nth > 3, "the process made no calls: nothing was tested"
                break


def contents(bucket: Bucket) -> list[bytes]:
    return sorted(bucket.visible().values())


# --- crashes ----------------------------------------------------------------------------------------------------------
def test_driver_dies_in_job_commit() -> None:
    """C1, C2, C9 at every call of a job commit: afterwards all of its files are visible, or none; old data stays."""

    def prepare() -> tuple[Bucket, Process]:
        bucket, job, commits = prepared()
        return bucket, lambda ctx: bucket.commit(ctx, job, commits)

    seen = set()
    for bucket in crashes(prepare):
        shown = set(contents(bucket)) - set(OLD)
        found = leftovers(bucket)
        assert len(found) <= 1, "one job died"
        action = found[0].action if found else None
        seen.add(action)
        if action is RecoveryAction.FORWARD:
            assert 0 < len(shown) < 4
        for leftover in found:
            assert leftover.files == len(shown) or action is RecoveryAction.CLEAN
            leftover.recover()
            leftover.recover()  # C10
        expected = sorted(OLD + (bucket.expected("new") if shown else []))
        assert contents(bucket) == expected and bucket.debris() == [] and leftovers(bucket) == []
        if action is RecoveryAction.FORWARD:
            report = read_success_file(bucket.context())
            assert report is not None and report["success"] and report["metrics"]["files"] == 4
    assert seen == {RecoveryAction.BACK, RecoveryAction.FORWARD, RecoveryAction.CLEAN, None}


@pytest.mark.parametrize("mode", [SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS])
def test_driver_dies_in_a_job_commit_that_replaces(mode: SaveMode) -> None:
    """C9 does not hold: replaced data is deleted before the first rename. The new data is complete or absent."""

    def prepare() -> tuple[Bucket, Process]:
        bucket, job, commits = prepared(mode)
        return bucket, lambda ctx: bucket.commit(ctx, job, commits)

    lost = False
    for bucket in crashes(prepare):
        shown = set(contents(bucket)) - set(OLD)
        for leftover in leftovers(bucket):
            leftover.recover()
        after = contents(bucket)
        assert after == bucket.expected("new") if shown else after in (OLD, [])
        lost = lost or not after
        assert bucket.debris() == []
    assert lost, "the hole that the docstring of delete_replaced_files names"


def test_driver_dies_and_another_commits_again() -> None:
    """C10: a new process repeats the job commit, wherever the first one died."""

    def prepare() -> tuple[Bucket, Process]:
        bucket, job, commits = prepared()
        jobs[:] = [(job, commits)]
        return bucket, lambda ctx: bucket.commit(ctx, job, commits)

    jobs: list[tuple[JobRecord, list[TaskCommit]]] = []
    for bucket in crashes(prepare):
        job, commits = jobs[0]
        try:
            bucket.commit(bucket.context(), job, commits)
        except NotFoundError:
            for leftover in leftovers(bucket):
                assert leftover.action is RecoveryAction.CLEAN
                leftover.recover()
        assert contents(bucket) == sorted(OLD + bucket.expected("new")) and bucket.debris() == []


def test_task_attempt_dies() -> None:
    """C2, C3 at every call of an attempt and its commit: the retry's files count, none of the dead one's."""
    jobs: list[JobRecord] = []

    def prepare() -> tuple[Bucket, Process]:
        bucket = Bucket("manifest")
        jobs[:] = [bucket.start(bucket.context())]
        return bucket, lambda ctx: bucket.run_task(ctx, jobs[0], 0, [b"dead/0", b"dead/1", b"dead/2"])

    for bucket in crashes(prepare):
        ctx = bucket.context()
        assert bucket.visible() == {}
        commits = [bucket.run_task(ctx, jobs[0], task, bucket.contents("new", task)) for task in range(TASKS)]
        bucket.commit(ctx, jobs[0], commits)
        assert contents(bucket) == bucket.expected("new") and bucket.debris() == []


def test_second_attempt_dies_while_the_first_counts() -> None:
    """C1, C3: it may delete the first one's manifest; then the job fails with an error, and shows nothing of either."""
    jobs: list[tuple[JobRecord, TaskCommit]] = []

    def prepare() -> tuple[Bucket, Process]:
        bucket = Bucket("manifest")
        ctx = bucket.context()
        job = bucket.start(ctx)
        jobs[:] = [(job, run_attempt(bucket, ctx, job, 0, {"a": b"first"}))]
        return bucket, lambda ctx: run_attempt(bucket, ctx, job, 0, {"a": b"second"})

    outcomes = set()
    for bucket in crashes(prepare):
        job, commit = jobs[0]
        try:
            bucket.commit(bucket.context(), job, [commit])
        except NotFoundError:
            assert bucket.visible() == {}
            MANIFEST.abort_job(bucket.context(), job)
        outcomes.add(tuple(contents(bucket)))
        assert bucket.debris() == []
    assert outcomes == {(b"first",), (), (b"second",)}


def test_driver_dies_in_start_or_abort() -> None:
    def start() -> tuple[Bucket, Process]:
        bucket = Bucket("manifest")
        bucket.run_job(bucket.context(), "old", tasks=1)
        return bucket, lambda ctx: MANIFEST.setup_job(ctx, SaveMode.OVERWRITE)

    def abort() -> tuple[Bucket, Process]:
        bucket, job, _commits = prepared(SaveMode.OVERWRITE)
        return bucket, lambda ctx: MANIFEST.abort_job(ctx, job)

    for bucket in itertools.chain(crashes(start), crashes(abort)):
        for leftover in leftovers(bucket):
            assert leftover.action in (RecoveryAction.BACK, RecoveryAction.CLEAN)
            leftover.recover()
        assert contents(bucket) == OLD and bucket.debris() == []


def test_recovery_dies_too() -> None:
    """C9, C10: the driver dies at every call, then recovery at every one of its calls."""
    for nth in itertools.count(1):
        for recovery_nth in itertools.count(1):
            bucket, job, commits = prepared()
            try:
                bucket.commit(faulty_context(bucket, crash_at(nth)), job, commits)
                return
            except SimulatedCrash:
                shown = set(contents(bucket)) - set(OLD)
            assert MANIFEST.leaves_records
            try:
                for leftover in MANIFEST.find_leftovers(faulty_context(bucket, crash_at(recovery_nth, after=True))):
                    leftover.recover()
                done = True
            except SimulatedCrash:
                done = False
                for leftover in leftovers(bucket):
                    leftover.recover()
            assert contents(bucket) == sorted(OLD + (bucket.expected("new") if shown else []))
            assert bucket.debris() == []
            if done:
                break


# --- two drivers, late attempts ---------------------------------------------------------------------------------------
def interleaved(other: Callable[[Bucket, JobRecord, list[TaskCommit]], object]) -> Iterator[tuple[Bucket, bool]]:
    """Yield buckets in which an action ran before the nth call of a job commit, and whether the commit succeeded."""
    for nth in itertools.count(1):
        bucket, job, commits = prepared()
        at = At(nth, lambda b=bucket, j=job, c=commits: other(b, j, c))  # type: ignore[misc]  # bound to this turn
        try:
            bucket.commit(bucket.context(store=InterceptedStore(bucket.store, at)), job, commits)
            ended = True
        except NotFoundError:
            ended = False
        if not at.fired:
            return
        yield bucket, ended


def test_two_drivers_commit_one_job() -> None:
    """Each file is renamed by one of them; the slower one recognizes its etag, or finds that the job has ended."""

    def commit_too(bucket: Bucket, job: JobRecord, commits: list[TaskCommit]) -> None:
        with contextlib.suppress(NotFoundError):
            bucket.commit(bucket.context(), job, commits)

    outcomes = set()
    for bucket, ended in interleaved(commit_too):
        outcomes.add(ended)
        assert contents(bucket) == sorted(OLD + bucket.expected("new")) and bucket.debris() == []
        assert read_success_file(bucket.context()) is not None
    assert outcomes == {True, False}


def test_abort_in_the_middle_of_a_job_commit() -> None:
    """C8 does not hold: nothing is logged, so a part of the job may stay; a job commit that misses a file fails."""
    shown = set()
    for bucket, ended in interleaved(lambda b, j, c: MANIFEST.abort_job(b.context(), j)):
        new = set(contents(bucket)) - set(OLD)
        shown.add(len(new))
        assert bucket.debris() == [] and (not ended or len(new) == 4)
    assert shown == {0, 1, 2, 3, 4}


def test_attempt_that_goes_on_after_its_job_has_ended() -> None:
    """C6: what it writes stays hidden, and is deleted as leftover data of an ended job."""
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx)
    late = MANIFEST.setup_task(ctx, job, 0)
    sink = late.open("late")
    sink.write(b"late")
    bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, {"a": b"1"})])
    late.commit()
    assert bucket.visible() == {"a": b"1"} and bucket.debris() != []
    with pytest.raises(NotFoundError, match="before"):
        MANIFEST.commit_job(ctx, job, [], 0)
    (found,) = leftovers(bucket)
    assert found.action is RecoveryAction.CLEAN
    found.recover()
    assert bucket.visible() == {"a": b"1"} and bucket.debris() == []


# --- lost replies -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("had_effect", [False, True])
def test_reply_of_every_rename_is_lost_once(had_effect: bool) -> None:
    """Scenario 49 and scenario 50: the etag at the target shows what happened."""
    error = OutcomeUnknownError("injected fault: timed out, read before repeating")
    mode = FaultMode.LOST_REPLY if had_effect else FaultMode.FAIL
    for nth in itertools.count(1):
        bucket, job, commits = prepared()
        faulty = Faulty(Fault(mode, StoreOperation.RENAME, nth=nth, error=error))
        outcome = bucket.commit(bucket.context(store=InterceptedStore(bucket.store, faulty)), job, commits)
        assert outcome.committed and contents(bucket) == sorted(OLD + bucket.expected("new")) and bucket.debris() == []
        if not faulty.fired:
            assert nth == 4 + 1
            break


def test_rename_that_never_answers() -> None:
    """It is unknown whether the file was renamed: the error says so, and recovery finds out."""
    bucket, job, commits = prepared()
    error = OutcomeUnknownError("injected fault: timed out, read before repeating")
    fault = Fault(FaultMode.FAIL, StoreOperation.RENAME, nth=2, times=FOR_EVER, error=error)
    with pytest.raises(OutcomeUnknownError, match="holdfast recover"):
        bucket.commit(faulty_context(bucket, fault), job, commits)
    (found,) = leftovers(bucket)
    assert found.action is RecoveryAction.FORWARD
    found.recover()
    assert contents(bucket) == sorted(OLD + bucket.expected("new"))


# --- choosing the action ----------------------------------------------------------------------------------------------
def half_committed(files: dict[str, bytes], mode: SaveMode = SaveMode.APPEND) -> tuple[Bucket, JobRecord]:
    """Return a job of one task that died after its first rename."""
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx, mode)
    named = {path.format(job=job.job): content for path, content in files.items()}
    commit = run_attempt(bucket, ctx, job, 0, named)
    crash = Fault(FaultMode.CRASH_AFTER, StoreOperation.RENAME)
    with pytest.raises(SimulatedCrash):
        bucket.commit(faulty_context(bucket, crash), job, [commit])
    return bucket, job


OWN = {"d/part-00000-{job}-c000.x": b"a", "d/part-00000-{job}-c001.x": b"b"}
CHOSEN = {"d/one": b"a", "d/two": b"b"}


def waiting(bucket: Bucket) -> str:
    return next(info.key for info in iter_objects(bucket.store, HOME) if "/tasks/attempt_" in info.key)


@pytest.mark.parametrize("files", [OWN, CHOSEN])
def test_forward_also_with_chosen_names(files: dict[str, bytes]) -> None:
    bucket, _job = half_committed(files)
    (found,) = leftovers(bucket)
    assert (found.committer, found.action, found.files) == ("manifest", RecoveryAction.FORWARD, 1)
    assert "1 files are visible, 1 are pending" in found.reason
    found.recover()
    assert contents(bucket) == [b"a", b"b"] and bucket.debris() == []


def test_lost_file_means_back() -> None:
    """Visible files that carry the job's id are deleted, and nothing else."""
    bucket, job = half_committed(OWN)
    bucket.store.put(f"{HOME}d/other", b"somebody else's")
    bucket.store.delete(waiting(bucket))
    (found,) = leftovers(bucket)
    assert found.action is RecoveryAction.BACK and "1 are missing" in found.reason and found.job == job.job
    found.recover()
    assert bucket.visible() == {"d/other": b"somebody else's"} and bucket.debris() == []


def test_files_of_chosen_names_are_never_deleted() -> None:
    bucket, _job = half_committed(CHOSEN)
    bucket.store.delete(waiting(bucket))
    before = [info.key for info in iter_objects(bucket.store, "")]
    (found,) = leftovers(bucket)
    assert found.action is RecoveryAction.KEEP and "file names do not carry the job's id" in found.reason
    found.recover()
    assert [info.key for info in iter_objects(bucket.store, "")] == before


def test_late_attempt_that_replaced_a_manifest_during_the_job_commit() -> None:
    """C3: the visible file is the accepted attempt's, but the manifest names the late one's. Not provable: back."""
    bucket, job = half_committed(OWN)
    files = {path.format(job=job.job): b"late" for path in OWN}
    run_attempt(bucket, bucket.context(), job, 0, files)
    (found,) = leftovers(bucket)
    assert found.action is RecoveryAction.BACK and "blocked" in found.reason
    found.recover()
    assert bucket.visible() == {} and bucket.debris() == []


def test_late_attempt_that_replaced_a_manifest_when_more_was_visible() -> None:
    """C3: rolling forward would replace files of the accepted attempt with those of the late one."""
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(TASKS)]
    with pytest.raises(SimulatedCrash):
        bucket.commit(faulty_context(bucket, Fault(FaultMode.CRASH_AFTER, StoreOperation.RENAME, nth=3)), job, commits)
    (found,) = leftovers(bucket)
    assert (found.action, found.files) == (RecoveryAction.FORWARD, 3)
    bucket.run_task(ctx, job, 0, bucket.contents("late", 0))
    (found,) = leftovers(bucket)
    assert found.action is RecoveryAction.BACK and ", 2 are blocked" in found.reason
    found.recover()
    assert bucket.visible() == {} and bucket.debris() == []


@pytest.mark.parametrize("mode", list(SaveMode))
def test_file_of_somebody_else_stands_where_one_goes(mode: SaveMode) -> None:
    """The job replaces what it may replace; otherwise it cannot be completed."""
    bucket, _job = half_committed(CHOSEN, mode)
    bucket.store.put(f"{HOME}d/two", b"old")
    (found,) = leftovers(bucket)
    replaces = mode in (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)
    assert found.action is (RecoveryAction.FORWARD if replaces else RecoveryAction.KEEP)
    found.recover()
    assert bucket.visible() == {"d/one": b"a", "d/two": b"b" if replaces else b"old"}


def test_recovery_that_cannot_clean_up_says_so() -> None:
    bucket, _job = half_committed(OWN)
    ctx = faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.DELETE_MANY, times=FOR_EVER))
    assert MANIFEST.leaves_records
    (found,) = MANIFEST.find_leftovers(ctx)
    with pytest.raises(UnavailableError):
        found.recover()
    (found,) = leftovers(bucket)
    found.recover()
    assert bucket.debris() == []


def test_visible_file_that_no_manifest_names() -> None:
    bucket, job = half_committed(OWN)
    bucket.store.put(f"{HOME}d/part-00009-{job.job}-c000.x", b"whose?")
    (found,) = leftovers(bucket)
    assert found.action is RecoveryAction.BACK and found.files == 2
    moved = waiting(bucket)
    bucket.store.rename(moved, f"{HOME}d/{moved.rpartition('/')[2]}")
    (found,) = leftovers(bucket)
    assert found.action is RecoveryAction.KEEP and "it is unknown which of them belong to the job" in found.reason


def test_success_marker_of_the_job_means_clean() -> None:
    """Regardless of the later fate of its files."""
    bucket, job, commits = prepared()
    crash = Fault(FaultMode.CRASH_BEFORE, StoreOperation.DELETE)
    with pytest.raises(SimulatedCrash):
        bucket.commit(faulty_context(bucket, crash), job, commits)
    victim = next(path for path in bucket.visible() if job.job in path)
    bucket.store.delete(HOME + victim)
    (found,) = leftovers(bucket)
    assert found.action is RecoveryAction.CLEAN and "_SUCCESS" in found.reason
    found.recover()
    assert len(bucket.visible()) == 2 + 3 and bucket.debris() == []


def test_later_success_marker_stays() -> None:
    """C6: rolling an old job forward does not replace the report of a later one."""
    bucket, _job = half_committed(OWN)
    bucket.run_job(bucket.context(), "later")
    before = read_success_file(bucket.context())
    (found,) = leftovers(bucket)
    found.recover()
    assert read_success_file(bucket.context()) == before and len(bucket.visible()) == 6


@pytest.mark.parametrize("damaged", ["record", "manifest"])
def test_damaged_records_are_kept(damaged: str) -> None:
    bucket, job = half_committed(OWN)
    path = job_record_path(job) if damaged == "record" else task_manifest_path(job, 0)
    bucket.store.put(HOME + path, b"{")
    (found,) = leftovers(bucket)
    assert found.action is RecoveryAction.KEEP and "cannot be used" in found.reason
    found.recover()
    assert bucket.store.get(HOME + path) == b"{" and len(bucket.visible()) == 1


def test_record_of_another_job() -> None:
    """Stored records are untrusted: a record that names another job is ignored."""
    bucket, job = half_committed(OWN)
    other = bucket.start(bucket.context())
    bucket.store.put(HOME + job_record_path(job), bucket.store.get(HOME + job_record_path(other)))
    assert [found.action for found in leftovers(bucket)] == [RecoveryAction.KEEP, RecoveryAction.BACK]


def test_others_in_the_temporary_directory() -> None:
    """C7: Hadoop's own jobs, jobs of other committers and neighbors are not touched; live jobs wrote recently."""
    bucket = Bucket("manifest")
    ctx = bucket.context()
    strangers = [
        f"{HOME}_temporary/manifest_job_2020_0001/00/manifests/x",
        f"{HOME}_temporary/0/x",
        "out put/dataset10/_temporary/manifest_20270115080000001-000000000001/00/x",
    ]
    for key in strangers:
        bucket.store.put(key, b"not ours")
    job = bucket.start(ctx)
    at_s = bucket.clock.now_s()
    open_attempt(bucket, ctx, job, 0, {"a": b"1"})
    (found,) = leftovers(bucket)
    assert found.job == job.job and found.active_at_s > at_s
    found.recover()
    assert bucket.debris() == sorted(strangers)


def test_newest_attempt_at_a_job_counts() -> None:
    bucket, job = half_committed(OWN)
    second = replace(job, job_attempt=1)
    bucket.store.put(HOME + job_record_path(second), bucket.store.get(HOME + job_record_path(job)))
    run_attempt(bucket, bucket.context(), second, 0, {"d/x": b"x"})
    (found,) = leftovers(bucket)
    assert found.action is RecoveryAction.BACK and found.files == 1


def test_job_that_ends_while_recovery_looks() -> None:
    """A live job may end at the next call: it is skipped."""
    bucket, job, _commits = prepared()
    meanwhile = Before(StoreOperation.GET, lambda: MANIFEST.abort_job(bucket.context(), job))
    assert MANIFEST.leaves_records
    assert list(MANIFEST.find_leftovers(bucket.context(store=InterceptedStore(bucket.store, meanwhile)))) == []
    assert meanwhile.fired
