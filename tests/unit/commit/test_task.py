"""Run task attempts: parts, budgets, errors, and leftovers."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace

import pytest

from holdfast.commit import COMMITTERS, TWO_PHASE, CommitContext, SaveMode, recover
from holdfast.commit.intents import QUIET_S
from holdfast.commit.records import TaskCommit
from holdfast.commit.sinks import part_size
from holdfast.commit.two_phase.records import TaskManifest, decode_manifest
from holdfast.errors import HoldfastError, InvalidRequestError, OutcomeUnknownError, UnavailableError
from holdfast.runtime import Environment, ThreadRunner
from holdfast.stores.base import MultipartLimits
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty, Recorder
from tests.simulation.world import HOME, World, payload, run_task, start
from tests.unit.commit.attempts import faulty_context
from tests.unit.commit.committer_jobs import RENAMING, Bucket


def manifest_of(world: World, commit: TaskCommit) -> TaskManifest:
    return decode_manifest(commit.ref, world.store.get(HOME + commit.ref.key))


def test_request_cost_of_a_task() -> None:
    """Scenario 70, facts 2.5: a small file is one create and one part, the task one PUT; no HEAD, LIST or DELETE."""
    world = World("upload")
    job = start(world.context())
    recorded = Recorder()
    with TWO_PHASE.setup_task(world.context(store=InterceptedStore(world.store, recorded)), job, 0) as attempt:
        for _ in range(3):
            sink = attempt.open(attempt.file_name(".txt"))
            sink.write(b"abc")
            sink.close()
        attempt.commit()
    assert recorded.counts() == {StoreOperation.CREATE_UPLOAD: 3, StoreOperation.UPLOAD_PART: 3, StoreOperation.PUT: 1}


def test_bytes_become_parts_in_order() -> None:
    world = World("upload")
    job = start(world.context())
    commit = run_task(world.context(), job, 0, "a-long-name")
    manifest = manifest_of(world, commit)
    content = payload("a-long-name", 0, 0)
    assert [size for _, size in manifest.files[0].parts] == [4] * (len(content) // 4) + [len(content) % 4]
    travelled = commit.manifest_data()
    assert travelled is not None and decode_manifest(commit.ref, travelled) == manifest
    assert commit.ref.totals.rows == 2 and commit.ref.totals.files == 2


@pytest.mark.parametrize("publication", ["upload", "rename"])
def test_a_name_with_a_lone_surrogate_is_refused_before_anything_is_written(publication: str) -> None:
    world = World(publication)
    with TWO_PHASE.setup_task(world.context(), start(world.context()), 0) as attempt:
        before = (world.listing(), world.pending())
        with pytest.raises(InvalidRequestError, match="must be valid Unicode"):
            attempt.open("caf\udce9.txt")
        assert (world.listing(), world.pending()) == before


@pytest.mark.parametrize("publication", ["upload", "rename"])
def test_empty_file_and_task_without_files(publication: str) -> None:
    """Scenarios 2 and 3: an empty file is created, a task without output commits."""
    world = World(publication)
    ctx = world.context()
    job = start(ctx)
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        name = attempt.file_name(".txt")
        attempt.open(name).close()
        empty = attempt.commit()
    with TWO_PHASE.setup_task(ctx, job, 1) as attempt:
        nothing = attempt.commit()
    assert TWO_PHASE.commit_job(ctx, job, [empty, nothing], 2).committed
    assert world.listing() == {name: b""}


def test_part_sizes_reach_terabytes() -> None:
    """Scenario 71: the limit is ten thousand parts; parts grow so that they are enough."""
    base = 8 * 1024 * 1024
    assert part_size(0, base) == base
    assert sum(part_size(number, base) for number in range(10_000)) > 5 * 1024**4


def test_file_that_needs_too_many_parts_is_refused() -> None:
    world = World("upload")
    limits = MultipartLimits(min_part_size_bytes=1, max_parts=3)
    store = MemoryStore(limits=limits, clock=world.clock, ids=world.ids)
    ctx = world.context(store=store).with_settings(part_size_bytes=1)
    job = start(ctx)
    with pytest.raises(InvalidRequestError, match="write smaller files"), TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open(attempt.file_name(".txt")).write(b"12345")
    assert not store.list_uploads_page("").uploads


def test_many_open_files_share_one_budget() -> None:
    """The parts buffered in open files are limited together: the fullest is uploaded early."""
    world = World("upload")
    recorded = Recorder()
    ctx = world.context(store=InterceptedStore(world.store, recorded)).with_settings(
        part_size_bytes=100, part_buffer_bytes=50
    )
    job = start(ctx)
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        sinks = [attempt.open(attempt.file_name(".txt")) for _ in range(10)]
        for number, sink in enumerate(sinks):
            sink.write(b"x" * (number + 5))
            assert sum(sink.waiting_bytes for sink in sinks) <= 50  # type: ignore[attr-defined]  # upload sinks
        attempt.commit()
    early = [call for call in recorded.calls if call.operation is StoreOperation.UPLOAD_PART]
    assert max(call.size_bytes for call in early) == 14


STRANGER = "part-00000-20200101000000000-00000000000a-00000000000b-00000.txt"


@pytest.mark.parametrize("path", ["../{}", "/{}", "_x/{}", "a//{}", "p=x._COPYING_/{}", STRANGER, ""])
def test_task_writes_only_below_its_destination(path: str) -> None:
    world = World("upload")
    with TWO_PHASE.setup_task(world.context(), start(world.context()), 0) as attempt:
        with pytest.raises(InvalidRequestError, match=r"do not start with '_' or '\.' and do not end in '\._COPYING_'"):
            attempt.open(path.format(attempt.file_name(".txt")))
        name = attempt.file_name(".txt")
        attempt.open(name)
        with pytest.raises(InvalidRequestError, match="already"):
            attempt.open(name)


@pytest.mark.parametrize(
    ("publication", "operation"),
    [
        ("upload", StoreOperation.CREATE_UPLOAD),
        ("upload", StoreOperation.UPLOAD_PART),
        ("rename", StoreOperation.FILE_CLOSE),
    ],
)
def test_failed_attempt_leaves_no_upload(publication: str, operation: StoreOperation) -> None:
    """Scenarios 12 to 15: the original error is raised, every started upload is aborted, also when an abort fails."""
    world = World(publication)
    job = start(world.context())
    fault = Fault(FaultMode.FAIL, operation, nth=2, times=FOR_EVER)
    with pytest.raises(UnavailableError, match="injected"):
        run_task(world.context(fault), job, 0, "new")
    assert world.pending() == [] and world.listing() == {}

    faults = (fault, Fault(FaultMode.FAIL, StoreOperation.ABORT_UPLOAD, times=FOR_EVER))
    with pytest.raises(UnavailableError, match="injected"):
        run_task(world.context(*faults), job, 0, "new")
    TWO_PHASE.abort_job(world.context(), job)
    assert world.pending() == [] and world.leftovers() == []


def test_threads_end_with_the_attempt_and_the_job() -> None:
    """HADOOP-16570: fifty jobs in one process, as many threads afterwards as before."""
    world = World("upload")
    ctx = world.context()
    ctx = CommitContext(
        store=ctx.store,
        prefix=ctx.prefix,
        url=ctx.url,
        settings=ctx.settings,
        environment=Environment(runner=ThreadRunner(8)),
    )
    before = threading.active_count()
    for number in range(50):
        job = start(ctx)
        with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
            sink = attempt.open(attempt.file_name(".txt"))
            sink.write(b"content of more than one part")
            commit = attempt.commit()
        if number % 2:
            TWO_PHASE.commit_job(ctx, job, [commit], 1)
        else:
            TWO_PHASE.abort_job(ctx, job)
    assert threading.active_count() == before
    assert len(world.listing()) == 25 and world.pending() == []


# --- discarded files --------------------------------------------------------------------------------------------------
def test_a_discarded_file_is_not_published_although_its_abort_failed() -> None:
    """Defect: it stayed among the attempt's files, so a truncated file became visible."""
    world = World("upload")
    job = start(world.context(), SaveMode.OVERWRITE)
    ctx = world.context(Fault(FaultMode.FAIL, StoreOperation.ABORT_UPLOAD, times=FOR_EVER))
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open("good").write(b"good")
        attempt.open("bad").write(b"12345678")  # two whole parts
        attempt.drop("bad")
        attempt.open("bad").write(b"again")
        commit = attempt.commit()
    assert TWO_PHASE.commit_job(world.context(), job, [commit], 1).committed
    assert world.listing() == {"good": b"good", "bad": b"again"}
    assert recover(world.context()).clean and world.pending() == []


@pytest.mark.parametrize("ends", [True, False])
def test_an_upload_in_doubt_of_a_discarded_file_is_found_by_cleanup(ends: bool) -> None:
    """C9. Defect: the announcement, the only record of the upload, was withdrawn with the attempt."""
    world = World("upload")
    job = start(world.context())
    ctx = world.context(Fault(FaultMode.LOST_REPLY, StoreOperation.CREATE_UPLOAD))
    attempt = TWO_PHASE.setup_task(ctx, job, 0)
    sink = attempt.open("d/big")
    with pytest.raises(OutcomeUnknownError):
        sink.write(b"more than one part")
    attempt.drop("d/big")
    if ends:
        attempt.abort()
    assert len(world.pending()) == 1, "the attempt does not know its id"
    TWO_PHASE.abort_job(world.context(), job)
    assert world.pending() == []


@pytest.mark.parametrize("committer", COMMITTERS)
def test_an_error_that_the_caller_ignored_fails_the_attempt(committer: str) -> None:
    """C1. Defect: the error of one file was raised where another was discarded, once, and the attempt committed."""
    bucket = Bucket(committer, runner=ThreadRunner(threads=2))
    job = bucket.start(bucket.context())
    operation = (
        StoreOperation.FILE_CLOSE if committer in RENAMING or "staging" in committer else StoreOperation.UPLOAD_PART
    )
    ctx = faulty_context(bucket, Fault(FaultMode.FAIL, operation, times=FOR_EVER))
    if "staging" in committer:
        assert ctx.staging is not None
        scratch = replace(ctx.staging.scratch, store=InterceptedStore(bucket.scratch, Faulty(FAIL_CLOSE)))
        ctx = replace(ctx, staging=replace(ctx.staging, scratch=scratch))
    with bucket.value.setup_task(ctx, job, 0) as attempt:
        sink = attempt.open("a.jpg")
        with contextlib.suppress(HoldfastError):
            sink.write(b"123")
            sink.close()
        other = attempt.open("bad.jpg")
        with contextlib.suppress(HoldfastError):
            other.write(b"1")
        attempt.drop("bad.jpg")
        for _ in range(2):
            with pytest.raises(HoldfastError, match="injected"):
                attempt.commit()
    assert bucket.visible() == {}
    bucket.value.abort_job(bucket.context(), job)
    bucket.clock.sleep(QUIET_S + 1)  # the attempt might be alive until then
    assert recover(bucket.context()).clean and bucket.debris() == []


FAIL_CLOSE = Fault(FaultMode.FAIL, StoreOperation.FILE_CLOSE, times=FOR_EVER)


def test_a_failure_that_is_not_the_stores_forbids_the_commit() -> None:
    world = World("upload")
    with TWO_PHASE.setup_task(world.context(), start(world.context()), 0) as attempt:
        attempt.make_commit_fail(InvalidRequestError("the first"))
        attempt.make_commit_fail(InvalidRequestError("the second"))
        for _ in range(2):
            with pytest.raises(InvalidRequestError, match="the first"):
                attempt.commit()
