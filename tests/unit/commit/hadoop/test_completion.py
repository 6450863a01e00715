"""Test the completion of a whole job's pending uploads, and their revert after an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from holdfast.commit import CommitContext
from holdfast.commit.context import Measure
from holdfast.commit.hadoop.completion import (
    PublishedFiles,
    abort_all_uploads,
    abort_pendingsets,
    abort_selected_uploads,
    bucket_name,
    build_pending_record,
    complete_all_uploads,
    find_writer_attempt,
)
from holdfast.commit.hadoop.pending import PendingSet, SinglePending
from holdfast.commit.ids import AttemptId, FileOwner, JobId
from holdfast.commit.records import FileEntry, Totals
from holdfast.commit.task import ATTEMPT_METADATA
from holdfast.errors import CorruptDataError, NotFoundError, OutcomeUnknownError, UnavailableError
from holdfast.runtime import ThreadRunner
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty, Recorder
from tests.unit.commit.attempts import Before, faulty_context
from tests.unit.commit.committer_jobs import Bucket

T = TypeVar("T")

JOB = JobId("20270115080000000-00000000000a")
OWNER = FileOwner(JOB, 0, AttemptId("00000000000b"))


def upload(ctx: CommitContext, path: str, content: bytes) -> SinglePending:
    """Return a pending upload whose parts are all uploaded."""
    store = ctx.store
    upload_id = store.create_upload(ctx.key(path), {ATTEMPT_METADATA: OWNER.attempt})  # type: ignore[attr-defined]  # a MultipartStore
    part = store.upload_part(ctx.key(path), upload_id, 1, content)  # type: ignore[attr-defined]  # a MultipartStore
    entry = FileEntry(
        path=path, size_bytes=len(content), rows=1, upload_id=upload_id, parts=((part.etag, part.size_bytes),)
    )
    return build_pending_record(ctx, entry, OWNER, uri=f"{ctx.url}{path}")


def three_sets(bucket: Bucket) -> dict[str, PendingSet]:
    """Return twelve uploads in three sets."""
    ctx = bucket.context()
    return {
        f"set{one}": PendingSet(
            job_id=JOB, commits=tuple(upload(ctx, f"day={one}/f{n}", f"{one}/{n}".encode()) for n in range(4))
        )
        for one in range(3)
    }


def complete(ctx: CommitContext, sets: dict[str, PendingSet]) -> PublishedFiles:
    return complete_all_uploads(Measure(ctx), list(sets), sets.__getitem__)


def pending(bucket: Bucket) -> list[str]:
    return [key for key in bucket.debris() if key]


def test_all_are_completed() -> None:
    """Scenarios 23 and 68: files, counts, and progress for each file."""
    bucket = Bucket("magic")
    seen: list[tuple[str, int, int]] = []
    ctx = bucket.context(progress=lambda *told: seen.append(told))
    measure, sets = Measure(ctx), three_sets(bucket)
    published = complete_all_uploads(measure, list(sets), sets.__getitem__)
    assert sorted(bucket.visible().values()) == sorted(f"{one}/{n}".encode() for one in range(3) for n in range(4))
    assert published.sets == 3 and published.totals == Totals(files=12, size_bytes=36, rows=12)
    assert published.paths[:2] == ("day=0/f0", "day=0/f1") and len(published.paths) == 12
    assert seen == [("uploads", done, 0) for done in range(1, 13)]
    statistics = measure.statistics()
    assert statistics.counters["committer_commits_completed"] == 12
    assert statistics.counters["committer_bytes_committed"] == 36
    assert statistics.durations["committer_materialize_file"].count == 12
    assert pending(bucket) == []


def test_a_failure_takes_all_back() -> None:
    """Scenario 11: the sixth of twelve completions fails: five files are deleted, seven uploads aborted."""
    bucket = Bucket("magic")
    sets, recorded = three_sets(bucket), Recorder()
    faulty = Faulty(Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, nth=6))
    ctx = bucket.context(store=InterceptedStore(InterceptedStore(bucket.store, faulty), recorded))
    measure = Measure(ctx)
    with pytest.raises(UnavailableError, match="injected"):
        complete_all_uploads(measure, list(sets), sets.__getitem__)
    deleted = [call.key for call in recorded.calls if call.operation is StoreOperation.DELETE]
    aborted = [call.key for call in recorded.calls if call.operation is StoreOperation.ABORT_UPLOAD]
    assert (len(deleted), len(aborted)) == (5, 7)
    assert {*deleted, *aborted} == {one.key for found in sets.values() for one in found.commits}
    assert bucket.visible() == {} and pending(bucket) == []
    counters = measure.statistics().counters
    assert counters["committer_commits_reverted"] == 5 and counters["committer_commits_aborted"] == 7
    assert counters["committer_commits.failures"] == 1


def test_a_failure_among_threads_takes_all_back() -> None:
    """Scenario 11, in parallel: completions in flight when another one fails are reverted as well."""
    for nth in range(1, 13):
        bucket = Bucket("magic", runner=ThreadRunner(threads=4))
        sets = three_sets(bucket)
        ctx = faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, nth=nth))
        with pytest.raises(UnavailableError, match="injected"):
            complete(ctx, sets)
        assert bucket.visible() == {} and pending(bucket) == []


def test_aborts_and_deletions_that_fail_do_not_hide_the_first_error() -> None:
    """Scenario 15."""
    bucket = Bucket("magic")
    sets = three_sets(bucket)
    ctx = faulty_context(
        bucket,
        Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, nth=6, error=CorruptDataError("the first error")),
        Fault(FaultMode.FAIL, StoreOperation.ABORT_UPLOAD, times=FOR_EVER),
        Fault(FaultMode.FAIL, StoreOperation.DELETE, times=FOR_EVER),
    )
    with pytest.raises(CorruptDataError, match="the first error"):
        complete(ctx, sets)
    assert len(bucket.visible()) == 5 and len(pending(bucket)) == 7


def test_taking_back_a_file_that_is_gone_is_no_error() -> None:
    """Scenario 23."""
    bucket = Bucket("magic")
    sets = three_sets(bucket)
    gone = sets["set0"].commits[0].key
    remove = Before(StoreOperation.DELETE, lambda: bucket.store.delete(gone))
    faulty = Faulty(Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, nth=2))
    ctx = bucket.context(store=InterceptedStore(InterceptedStore(bucket.store, faulty), remove))
    with pytest.raises(UnavailableError):
        complete(ctx, sets)
    assert remove.fired and bucket.visible() == {} and pending(bucket) == []


def test_without_revert_everything_stays_and_can_be_done_again() -> None:
    bucket = Bucket("magic")
    sets = three_sets(bucket)
    ctx = faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, nth=6))
    with pytest.raises(UnavailableError):
        complete_all_uploads(Measure(ctx), list(sets), sets.__getitem__, revert=False)
    assert len(bucket.visible()) == 5 and len(pending(bucket)) == 7
    assert complete(bucket.context(), sets).totals.files == 12
    assert len(bucket.visible()) == 12 and pending(bucket) == []


def test_a_set_that_cannot_be_loaded() -> None:
    """Paper 001, "Job Commit": the job fails, and every set that can be loaded is aborted."""
    bucket = Bucket("magic")
    sets = three_sets(bucket)

    def load(name: str) -> PendingSet:
        if name == "set1":
            raise CorruptDataError("a stored record cannot be read", key=name)
        return sets[name]

    with pytest.raises(CorruptDataError, match="set1"):
        complete_all_uploads(Measure(bucket.context()), list(sets), load)
    assert bucket.visible() == {}
    assert pending(bucket) == [one.key for one in sets["set1"].commits], "the other sets' uploads are gone"


def test_sets_are_loaded_as_they_are_completed() -> None:
    """HADOOP-16570: not all sets are in memory at once."""
    bucket = Bucket("magic")
    sets = three_sets(bucket)
    seen: list[str] = []

    def load(name: str) -> PendingSet:
        seen.append(name)
        return sets[name]

    ctx = bucket.context(progress=lambda *told: seen.append("file"))
    complete_all_uploads(Measure(ctx), list(sets), load)
    assert seen == ["set0", *["file"] * 4, "set1", *["file"] * 4, "set2", *["file"] * 4]


def test_lost_replies_are_settled() -> None:
    """A completion whose reply was lost had its effect: the file is visible, and it is the upload's own."""
    bucket = Bucket("magic")
    sets = three_sets(bucket)
    ctx = faulty_context(bucket, Fault(FaultMode.LOST_REPLY, StoreOperation.COMPLETE_UPLOAD, times=FOR_EVER))
    assert complete(ctx, sets).totals.files == 12
    assert len(bucket.visible()) == 12


def test_two_transient_failures_of_a_completion_are_survived() -> None:
    """Scenario 69: the third attempt succeeds."""
    bucket = Bucket("magic")
    sets = three_sets(bucket)
    unknown = OutcomeUnknownError("injected: it may have happened")
    ctx = faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, nth=3, times=2, error=unknown))
    assert complete(ctx, sets).totals.files == 12


@pytest.mark.parametrize("done", [True, False])
def test_a_completion_that_nobody_confirms_is_taken_back(done: bool) -> None:
    """The store never answers: whether it completed or not, nothing is left."""
    bucket = Bucket("magic")
    sets = three_sets(bucket)
    last = sets["set2"].commits[3]
    unknown = OutcomeUnknownError("injected: it may have happened")
    late = Before(StoreOperation.ABORT_UPLOAD, lambda: done and complete_plainly(bucket, last))
    faulty = Faulty(
        Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, key="*day=2/f3", times=FOR_EVER, error=unknown)
    )
    ctx = bucket.context(store=InterceptedStore(InterceptedStore(bucket.store, faulty), late))
    with pytest.raises(OutcomeUnknownError, match="unknown whether"):
        complete(ctx, sets)
    assert late.fired and bucket.visible() == {} and pending(bucket) == []


def complete_plainly(bucket: Bucket, one: SinglePending) -> None:
    complete_all_uploads(Measure(bucket.context()), [PendingSet(job_id=JOB, commits=(one,))], lambda found: found)


def test_an_upload_that_somebody_aborted() -> None:
    """Scenario 27: the job fails and names a possible cause; another attempt's file of the same size does not count."""
    bucket = Bucket("magic")
    sets = three_sets(bucket)
    one = sets["set1"].commits[0]
    bucket.store.abort_upload(one.key, one.upload_id)
    bucket.store.put(one.key, b"x/x", metadata={ATTEMPT_METADATA: "00000000000c"})
    with pytest.raises(NotFoundError, match="was aborted"):
        complete(bucket.context(), sets)
    assert bucket.visible() == {"day=1/f0": b"x/x"} and pending(bucket) == []


@pytest.mark.parametrize("abort", ["all", "sets"])
def test_abort(abort: str) -> None:
    """Idempotent; what cannot be loaded or aborted does not stop the rest."""
    bucket = Bucket("magic")
    sets = three_sets(bucket)
    measure = Measure(faulty_context(bucket, Fault(FaultMode.FAIL, StoreOperation.ABORT_UPLOAD, nth=2)))
    run: Callable[[Measure], int] = {
        "all": lambda measure: abort_all_uploads(measure, (one for found in sets.values() for one in found.commits)),
        "sets": lambda measure: abort_pendingsets(measure, ["gone", *sets], lambda name: load_or_fail(sets, name)),
    }[abort]
    assert run(measure) == 11 and len(pending(bucket)) == 1
    assert measure.statistics().counters["committer_commits_aborted"] == 11
    assert run(Measure(bucket.context())) == 12 and pending(bucket) == []


def load_or_fail(sets: dict[str, PendingSet], name: str) -> PendingSet:
    if name not in sets:
        raise NotFoundError("no such object", key=name)
    return sets[name]


@pytest.mark.parametrize(
    ("url", "bucket"),
    [("s3://flights/out put", "flights"), ("memory://world/", "world"), ("file:///data/out", "file")],
)
def test_names_of_buckets(url: str, bucket: str) -> None:
    assert bucket_name(url) == bucket


def test_what_is_saved_of_a_file() -> None:
    bucket = Bucket("magic")
    found = upload(bucket.context(), "a", b"12345")
    assert (found.bucket, found.key, found.size_bytes, found.rows) == ("bucket", "out put/dataset1/a", 5, 1)
    assert (found.job_id, found.task_id) == (JOB, f"attempt_{JOB}_m_000000_{OWNER.attempt}")
    assert found.created_ms > 0
    assert find_writer_attempt(found) == OWNER.attempt


# --- uploads that outlive their abort ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("outlived", "left"), [(0, 0), (2, 0), (3, 1)])
def test_listed_uploads_are_aborted_in_at_most_three_rounds(outlived: int, left: int) -> None:
    """A part in flight can keep an upload alive: what a listing still shows is aborted again, but not forever."""
    bucket = Bucket("magic")
    bucket.store.create_upload(f"{bucket.context().prefix}x")
    calls = 0

    def outlive(call: StoreCall, proceed: Callable[[], T]) -> T | None:
        nonlocal calls
        if call.operation is StoreOperation.ABORT_UPLOAD:
            calls += 1
            if calls <= outlived:
                return None
        return proceed()

    ctx = bucket.context(store=InterceptedStore(bucket.store, outlive))  # type: ignore[arg-type]  # an abort returns None
    abort_selected_uploads(Measure(ctx), lambda uploads: uploads)
    assert len(pending(bucket)) == left
