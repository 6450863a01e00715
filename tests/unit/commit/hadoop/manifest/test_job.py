"""Test ``manifest`` in the driver: start, the stages of a job commit, abort."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from holdfast.commit import (
    COMMITTERS,
    CommitContext,
    JobRecord,
    Place,
    SaveMode,
    TaskCommit,
    require_fit,
)
from holdfast.commit.hadoop.manifest.format import attempt_dir, job_record_path, manifests_dir, task_manifest_path
from holdfast.commit.ids import FileOwner
from holdfast.commit.records import JobOutcome
from holdfast.commit.success_file import parse_success_file, read_success_file
from holdfast.errors import (
    CorruptDataError,
    DestinationExistsError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.runtime import ThreadRunner
from holdfast.stores.base import iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.clocks import CountingIds, SimulatedClock
from tests.interceptors import FOR_EVER, Fault, FaultMode, Recorder
from tests.unit.commit.attempts import HOME, Before, faulty_context, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket

T = TypeVar("T")

MANIFEST = COMMITTERS["manifest"]
REPLACING = [SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS]


def run_tasks(bucket: Bucket, ctx: CommitContext, job: JobRecord, name: str, tasks: int = 2) -> list[TaskCommit]:
    return [bucket.run_task(ctx, job, task, bucket.contents(name, task)) for task in range(tasks)]


def committed(bucket: Bucket, files: dict[str, bytes], mode: SaveMode = SaveMode.APPEND) -> JobOutcome:
    """Return a job of one task."""
    ctx = bucket.context()
    job = bucket.start(ctx, mode)
    return bucket.commit(ctx, job, [run_attempt(bucket, ctx, job, 0, files)])


# --- life of a job ----------------------------------------------------------------------------------------------------
def test_life_of_a_job() -> None:
    """Scenario 1, scenario 4 and scenario 72.

    The exact bytes under the tree that the tasks made, a report, and nothing else.
    """
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    assert bucket.visible() == {}
    outcome = bucket.commit(ctx, job, commits)
    assert outcome.committed and outcome.finished and outcome.totals.files == 4 and outcome.totals.rows == 4
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []
    assert {path.partition("/")[0] for path in bucket.visible()} == {"day=0", "day=1"}
    report = read_success_file(ctx)
    assert report is not None and report["success"] and report["committer"] == "manifest"
    assert report["jobId"] == job.job and sorted(report["filenames"]) == [f"/{HOME}{path}" for path in bucket.visible()]
    counters = report["iostatistics"]["counters"]
    assert counters["committer_files_committed"] == counters["commit_file_rename"] == 4
    assert counters["committer_bytes_committed"] == sum(map(len, bucket.expected("new")))
    assert counters["committer_tasks_completed"] == counters["task_stage_scan_directory"] == 2
    stages = ["load_manifests", "create_target_dirs", "rename_files"]
    assert {f"job_stage_{name}" for name in stages} <= set(counters)
    assert {"job_stage_save_success_marker", "job_stage_cleanup"} <= set(outcome.statistics.durations)


def test_report_names_a_hundred_files() -> None:
    """Scenario 72."""
    bucket = Bucket("manifest")
    committed(bucket, {f"f{number:03d}": b"x" for number in range(120)})
    report = read_success_file(bucket.context())
    assert report is not None and len(report["filenames"]) == 100 and report["metrics"]["files"] == 120


def test_job_without_tasks() -> None:
    """Scenario 3, scenario 9 and scenario 17: an empty job succeeds; what a task left without a commit is deleted."""
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx)
    open_attempt(bucket, ctx, job, 0, {"a": b"not committed"})
    outcome = MANIFEST.commit_job(ctx, job, [], 0)
    assert outcome.committed and outcome.totals.files == 0
    assert bucket.visible() == {} and bucket.debris() == []
    report = read_success_file(ctx)
    assert report is not None and report["filenames"] == []


def test_old_success_marker_goes_at_the_start() -> None:
    """Scenario 73."""
    bucket = Bucket("manifest")
    committed(bucket, {"a": b"1"})
    bucket.start(bucket.context())
    assert read_success_file(bucket.context()) is None


def test_a_message_has_to_come_from_every_task() -> None:
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    with pytest.raises(InvalidRequestError, match="exactly once"):
        MANIFEST.commit_job(ctx, job, commits[:1], 2)
    with pytest.raises(InvalidRequestError, match="exactly once"):
        MANIFEST.commit_job(ctx, job, [*commits, commits[0]], 2)
    assert bucket.visible() == {}


def test_second_start_of_a_job() -> None:
    """Scenario 28 and scenario 31: the directory of a job attempt must be new; that of the next attempt is."""
    bucket = Bucket("manifest")

    def same_moment() -> CommitContext:
        return bucket.context().with_environment(clock=SimulatedClock(), ids=CountingIds())

    job = bucket.start(same_moment())
    before = bucket.store.get(HOME + job_record_path(job))
    with pytest.raises(DestinationExistsError, match="started before"):
        bucket.start(same_moment())
    assert bucket.store.get(HOME + job_record_path(job)) == before
    bucket.store.delete(HOME + job_record_path(job))
    taken = Before(StoreOperation.PUT, lambda: bucket.store.put(HOME + job_record_path(job), before))
    with pytest.raises(DestinationExistsError, match="started before"):
        bucket.start(replace(same_moment(), store=InterceptedStore(bucket.store, taken)))
    bucket.store.delete(HOME + job_record_path(job))
    bucket.store.put(f"{HOME}{manifests_dir(job)}/x", b"left by a job that skipped its clean-up")
    with pytest.raises(DestinationExistsError, match="started before"):
        bucket.start(same_moment())
    second = replace(job, job_attempt=1)
    assert job_record_path(second) == f"_temporary/manifest_{job.job}/01/job.json"


@pytest.mark.parametrize("rename", [False, True])
def test_store_without_rename_is_refused(rename: bool) -> None:
    """Scenario 63: on S3 with any setting, naming committers that fit; also without full listings."""
    store = MemoryStore(rename=rename, consistent_listing=not rename)
    bucket = Bucket("manifest")
    ctx = bucket.context(store=store).with_settings(allow_unfenced=True)
    with pytest.raises(UnsupportedError, match="two_phase") as refused:
        require_fit(MANIFEST, ctx, SaveMode.APPEND)
    with pytest.raises(UnsupportedError, match="manifest needs"):
        MANIFEST.setup_job(ctx, SaveMode.APPEND)
    assert "manifest needs" in str(refused.value) and list(iter_objects(store, "")) == []


# --- neighbours -------------------------------------------------------------------------------------------------------
def test_two_jobs_on_one_destination() -> None:
    """HADOOP-17318: both survive, whichever ends first; the clean-up of one does not touch the other (C7)."""
    bucket = Bucket("manifest")
    one, two = bucket.context(), bucket.context()
    first, second = bucket.start(one), bucket.start(two)
    reports = run_tasks(bucket, one, first, "first"), run_tasks(bucket, two, second, "second")
    bucket.store.put(f"{HOME}_temporary/0/task", b"a classic committer's")
    MANIFEST.abort_task(one, first, FileOwner(second.job, 0, reports[1][0].attempt))
    bucket.commit(one, first, reports[0])
    assert sorted(bucket.visible().values()) == bucket.expected("first")
    bucket.commit(two, second, reports[1])
    assert sorted(bucket.visible().values()) == sorted(bucket.expected("first") + bucket.expected("second"))
    assert bucket.debris() == [f"{HOME}_temporary/0/task"]


def test_neighbouring_destinations() -> None:
    """Scenario 25 and scenario 26: ``dataset10`` is not part of ``dataset1``."""
    bucket = Bucket("manifest")
    near, far = bucket.context(), bucket.context("out put/dataset10/")
    job, other = bucket.start(near), bucket.start(far)
    reports = run_tasks(bucket, far, other, "other")
    bucket.commit(near, job, run_tasks(bucket, near, job, "new"))
    MANIFEST.abort_job(near, bucket.start(near))
    bucket.commit(far, other, reports)
    assert sorted(bucket.visible("out put/dataset10/").values()) == bucket.expected("other")
    assert sorted(bucket.visible().values()) == bucket.expected("new")


# --- failures of a job commit -----------------------------------------------------------------------------------------
def test_job_commit_fails_then_succeeds_then_fails() -> None:
    """Scenario 8: the first fails before it does anything, the second succeeds, the third finds no job."""
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    with pytest.raises(UnavailableError):
        bucket.commit(faulty_context(bucket, Fault(FaultMode.FAIL)), job, commits)
    bucket.commit(ctx, job, commits)
    with pytest.raises(NotFoundError, match="before"):
        bucket.commit(ctx, job, commits)
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []


def test_rename_that_raises_ends_the_job_commit() -> None:
    """Scenario 53, scenario 68 and scenario 74.

    Its message is kept, the report counts it; fewer files are there. Again goes on.
    """
    bucket = Bucket("manifest")
    stages: list[tuple[str, int, int]] = []
    reports = MemoryStore()
    fault = Fault(FaultMode.FAIL, StoreOperation.RENAME, nth=3, error=UnavailableError("throttled: repeat later"))
    failing = replace(
        faulty_context(bucket, fault),
        reports=Place(store=reports, prefix="reports/", url="memory://reports"),
        progress=lambda stage, done, total: stages.append((stage, done, total)),
    )
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    with pytest.raises(UnavailableError, match="throttled: repeat later"):
        bucket.commit(failing, job, commits)
    assert len(bucket.visible()) == 2
    assert stages == [("manifests", 1, 2), ("manifests", 2, 2), ("files", 1, 4), ("files", 2, 4)]
    key = f"reports/summary-{job.job}.json"
    report = parse_success_file(key, reports.get(key))
    assert report["success"] is False and report["stage"] == "job_stage_rename_files"
    assert report["iostatistics"]["counters"]["commit_file_rename.failures"] == 1
    assert "throttled" in report["diagnostics"]["exception"]
    bucket.commit(ctx, job, commits)
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []


def test_missing_source() -> None:
    """Scenario 55: always an error, even if another file has its name."""
    for stands_there in (False, True):
        bucket = Bucket("manifest")
        ctx = bucket.context()
        job = bucket.start(ctx)
        commit = run_attempt(bucket, ctx, job, 0, {"d/a": b"new"})
        source = f"{attempt_dir(job, FileOwner(job.job, 0, commit.attempt))}/d/a"
        bucket.store.delete(HOME + source)
        if stands_there:
            bucket.store.put(f"{HOME}d/a", b"old")
        with pytest.raises(DestinationExistsError if stands_there else NotFoundError):
            bucket.commit(ctx, job, [commit])


@pytest.mark.parametrize("path", ["a", "day=1/a"])
def test_target_exists(path: str) -> None:
    """Scenario 56: a file with a chosen name is not replaced, unless the mode allows it."""
    bucket = Bucket("manifest")
    bucket.store.put(HOME + path, b"old")
    with pytest.raises(DestinationExistsError, match="another name"):
        committed(bucket, {path: b"new"})
    assert bucket.visible() == {path: b"old"}
    for mode in REPLACING:
        committed(bucket, {path: mode.value.encode()}, mode)
        assert bucket.visible() == {path: mode.value.encode()}


def test_directory_stands_where_a_file_goes() -> None:
    """Scenario 56: the same for a directory."""
    bucket = Bucket("manifest")
    bucket.store.put(f"{HOME}a/b/c", b"old")
    with pytest.raises(InvalidRequestError, match="directory"):
        committed(bucket, {"a": b"new"})
    assert bucket.visible() == {"a/b/c": b"old"}


def test_no_request_is_spent_on_names_of_our_own() -> None:
    """One rename per file, and no check of its target unless the caller chose the name."""
    bucket = Bucket("manifest")
    bucket.store.put(f"{HOME}day=0/old", b"old")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [*run_tasks(bucket, ctx, job, "new"), run_attempt(bucket, ctx, job, 2, {"day=9/chosen": b"x"})]
    recorded = Recorder()
    bucket.commit(bucket.context(store=InterceptedStore(bucket.store, recorded)), job, commits)
    counts = recorded.counts()
    assert counts[StoreOperation.HEAD] == 2 and counts[StoreOperation.GET] == 3 and counts[StoreOperation.RENAME] == 5


@pytest.mark.parametrize("mode", [SaveMode.APPEND, *REPLACING])
def test_file_where_a_directory_has_to_be(mode: SaveMode) -> None:
    """Scenario 57: the job is refused before anything is deleted or visible."""
    bucket = Bucket("manifest")
    bucket.store.put(f"{HOME}a", b"in the way")
    with pytest.raises(InvalidRequestError, match="file stands where a directory"):
        committed(bucket, {"a/x": b"1", "b/c/d/e": b"2"}, mode)
    assert bucket.visible() == {"a": b"in the way"}


def _changed(change: Callable[[dict[str, object]], object]) -> Callable[[bytes], bytes]:
    def apply(data: bytes) -> bytes:
        value = json.loads(data)
        change(value)
        return json.dumps(value).encode()

    return apply


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-20],
        _changed(lambda value: value.update(version=2)),
        _changed(lambda value: value.update(type="another")),
        _changed(lambda value: value.update(jobId="another")),
        _changed(lambda value: value.update(taskID="task_of_another_name")),
        _changed(lambda value: value["files"].append(value["files"][0])),  # type: ignore[attr-defined]  # it is a list
    ],
)
def test_damaged_manifest(damage: Callable[[bytes], bytes]) -> None:
    """Scenario 58: nothing is renamed, and the record is not changed."""
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    key = HOME + task_manifest_path(job, 1)
    damaged = damage(bucket.store.get(key))
    bucket.store.put(key, damaged)
    with pytest.raises(CorruptDataError):
        bucket.commit(ctx, job, commits)
    assert bucket.visible() == {} and bucket.store.get(key) == damaged


def test_manifest_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not even read: the driver's memory is for the records of many tasks (HADOOP-16570)."""
    monkeypatch.setattr("holdfast.commit.hadoop.manifest.job.MAX_MANIFEST_BYTES", 100)
    bucket = Bucket("manifest")
    recorded = Recorder()
    ctx = bucket.context(store=InterceptedStore(bucket.store, recorded))
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    with pytest.raises(CorruptDataError, match="too long"):
        bucket.commit(ctx, job, commits)
    read = [call.key for call in recorded.calls if call.operation is StoreOperation.GET]
    assert read == [HOME + "_SUCCESS"], "whether the job is the first one"


def test_two_tasks_with_one_target() -> None:
    """Paper 002, "Benefits": the preflight check; nothing is renamed."""
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [run_attempt(bucket, ctx, job, task, {"d/same": b"x"}) for task in range(2)]
    with pytest.raises(InvalidRequestError, match="same target"):
        bucket.commit(ctx, job, commits)
    assert bucket.visible() == {}


def test_only_manifests_count() -> None:
    """Scenario 60: counts, bytes and directories of all manifests; drafts and other files are skipped."""
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [run_attempt(bucket, ctx, job, task, {f"p={task % 3}/q/{task}": b"x" * task}) for task in range(20)]
    for name in ("who-knows-manifest.json.tmp", "notes.txt", "below/task-manifest.json"):
        bucket.store.put(f"{HOME}{manifests_dir(job)}/{name}", b"{}")
    outcome = bucket.commit(ctx, job, commits)
    assert (outcome.totals.files, outcome.totals.size_bytes) == (20, sum(range(20)))
    assert outcome.report is not None and outcome.report.tasks == 20
    assert {path.rpartition("/")[0] for path in bucket.visible()} == {f"p={number}/q" for number in range(3)}


# --- modes ------------------------------------------------------------------------------------------------------------
def test_modes_that_look_at_the_start() -> None:
    """Scenario 40 and scenario 41: ``fail`` and ``ignore`` decide when the job starts, ``append`` never."""
    bucket = Bucket("manifest")
    for mode in (SaveMode.FAIL, SaveMode.IGNORE, SaveMode.APPEND):
        bucket = Bucket("manifest")
        committed(bucket, {"a": b"1"}, mode)
        if mode is SaveMode.FAIL:
            with pytest.raises(DestinationExistsError):
                MANIFEST.setup_job(bucket.context(), mode)
        elif mode is SaveMode.IGNORE:
            assert MANIFEST.setup_job(bucket.context(), mode) is None
        else:
            committed(bucket, {"b": b"2"}, mode)
            assert bucket.visible() == {"a": b"1", "b": b"2"}


@pytest.mark.parametrize(
    ("mode", "left"),
    [
        (SaveMode.OVERWRITE, set()),
        (SaveMode.OVERWRITE_PARTITIONS, {"top", "p=1/q=2/old", "p=2/old", "p=10/old"}),
    ],
)
def test_modes_that_replace(mode: SaveMode, left: set[str]) -> None:
    """Scenario 42 and scenario 45: at the job commit, the destination or only the partitions that are written."""
    bucket = Bucket("manifest")
    old = dict.fromkeys(("top", "p=1/old", "p=1/q=2/old", "p=2/old", "p=10/old"), b"old")
    committed(bucket, old)
    ctx = bucket.context()
    job = bucket.start(ctx, mode)
    commit = run_attempt(bucket, ctx, job, 0, {"p=1/new": b"new"})
    assert bucket.visible() == old
    bucket.commit(ctx, job, [commit])
    assert set(bucket.visible()) == left | {"p=1/new"}


@pytest.mark.parametrize("mode", REPLACING)
def test_replacing_job_commit_goes_on_after_an_error(mode: SaveMode) -> None:
    """C10: the second attempt deletes nothing that the first one renamed, whatever its name."""
    bucket = Bucket("manifest")
    committed(bucket, {"d/old": b"old", "d/a": b"old"})
    ctx = bucket.context()
    job = bucket.start(ctx, mode)
    commit = run_attempt(bucket, ctx, job, 0, {"d/a": b"1", "d/b": b"2", "d/c": b"3"})
    fault = Fault(FaultMode.FAIL, StoreOperation.RENAME, nth=3)
    with pytest.raises(UnavailableError):
        bucket.commit(faulty_context(bucket, fault), job, [commit])
    bucket.commit(ctx, job, [commit])
    assert bucket.visible() == {"d/a": b"1", "d/b": b"2", "d/c": b"3"}


def test_trouble_while_deleting_ends_the_job_commit() -> None:
    """Scenario 46: nothing is renamed then."""
    bucket = Bucket("manifest")
    committed(bucket, {"old": b"old"})
    ctx = bucket.context()
    job = bucket.start(ctx, SaveMode.OVERWRITE)
    commit = run_attempt(bucket, ctx, job, 0, {"new": b"new"})
    with pytest.raises(UnavailableError):
        bucket.commit(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.DELETE_MANY)), job, [commit])
    assert bucket.visible() == {"old": b"old"}


# --- abort ------------------------------------------------------------------------------------------------------------
def test_abort_of_a_job() -> None:
    """Scenario 17, scenario 18, scenario 19, scenario 20 and scenario 21.

    Without work, with running and committed attempts, twice, by another process.
    """
    bucket = Bucket("manifest")
    ctx = bucket.context()
    MANIFEST.abort_job(ctx, bucket.start(ctx))
    assert bucket.debris() == []
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    running = open_attempt(bucket, ctx, job, 2, {"a": b"1"})
    reports = MemoryStore()
    other = replace(bucket.context(), reports=Place(store=reports, prefix="", url="memory://reports"))
    for _ in range(2):
        outcome = MANIFEST.abort_job(other, job)
        assert not outcome.committed and outcome.finished
    assert bucket.debris() == [] and bucket.visible() == {}
    with pytest.raises(NotFoundError):
        running.commit()
    with pytest.raises(NotFoundError):
        bucket.commit(ctx, job, commits)
    assert bucket.debris() == [] and bucket.visible() == {}
    key = f"summary-{job.job}.json"
    report = parse_success_file(key, reports.get(key))
    assert report["success"] is False and report["stage"] == "job_stage_abort"


def test_abort_after_a_commit() -> None:
    """A driver that requests an abort because it missed the commit's reply learns that the job is committed."""
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    fault = Fault(FaultMode.FAIL, StoreOperation.DELETE, times=FOR_EVER)
    outcome = bucket.commit(faulty_context(bucket, fault), job, commits)
    assert outcome.committed and not outcome.finished and "recover" in outcome.pending_reason
    assert MANIFEST.abort_job(ctx, job).committed
    assert sorted(bucket.visible().values()) == bucket.expected("new") and bucket.debris() == []
    bucket.store.put(f"{HOME}_SUCCESS", b"{")
    assert not MANIFEST.abort_job(ctx, bucket.start(ctx)).committed


def test_abort_after_half_a_commit_leaves_what_is_visible() -> None:
    """C5 does not hold, as in Hadoop: the job's directory is deleted, renamed files stay visible."""
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = run_tasks(bucket, ctx, job, "new")
    with pytest.raises(UnavailableError):
        bucket.commit(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.RENAME, nth=2)), job, commits)
    assert not MANIFEST.abort_job(ctx, job).committed
    assert len(bucket.visible()) == 1 and bucket.debris() == []


# --- scale ------------------------------------------------------------------------------------------------------------
def test_many_tasks_and_no_thread_left() -> None:
    """Scenario 65 and scenario 66, HADOOP-16570.

    500 tasks x 10 files on real threads.
    """
    bucket = Bucket("manifest")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [
        run_attempt(
            bucket,
            ctx,
            job,
            task,
            {f"day={number}/part-{task:05d}-{job.job}-c{number:03d}.x": b"x" for number in range(10)},
        )
        for task in range(500)
    ]
    threads = threading.active_count()
    outcome = bucket.commit(ctx.with_environment(runner=ThreadRunner(threads=8)), job, commits)
    assert outcome.totals.files == len(bucket.visible()) == 5000 and bucket.debris() == []
    assert threading.active_count() == threads


def test_a_manifest_that_goes_while_it_is_loaded_fails_the_job() -> None:
    """The job commit has listed it, then a late attempt deletes it."""
    bucket = Bucket("manifest")
    job = bucket.start(bucket.context())
    commit = run_attempt(bucket, bucket.context(), job, 0, {"a": b"one"})

    def displace(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.GET and call.key.endswith("-manifest.json"):
            bucket.store.delete(call.key)
        return proceed()

    with pytest.raises(NotFoundError, match="a late attempt is replacing it"):
        bucket.commit(bucket.context(store=InterceptedStore(bucket.store, displace)), job, [commit])
    assert bucket.visible() == {}
