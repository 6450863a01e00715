"""Test the clean-up of ``manifest``: what is deleted, in which order, and the effect of errors."""

from __future__ import annotations

import pytest

from holdfast.commit import COMMITTERS
from holdfast.commit.leftovers import RecoveryAction
from holdfast.commit.records import JobOutcome
from holdfast.runtime import ThreadRunner
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty
from tests.unit.commit.attempts import open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket

MANIFEST = COMMITTERS["manifest"]


def ended(bucket: Bucket, *faults: Fault) -> JobOutcome:
    """Return a job with an attempt that never committed; its commit meets `faults`."""
    ctx = bucket.context(store=InterceptedStore(bucket.store, Faulty(*faults)))
    job = bucket.start(bucket.context())
    for number in range(3):
        open_attempt(bucket, bucket.context(), job, 0, {f"dead-{number}": b"x"})
    commit = run_attempt(bucket, bucket.context(), job, 0, {"a": b"1"})
    return bucket.commit(ctx, job, [commit])


def actions(bucket: Bucket) -> list[RecoveryAction]:
    assert MANIFEST.leaves_records
    return [found.action for found in MANIFEST.find_leftovers(bucket.context())]


def finish_all(bucket: Bucket) -> None:
    assert MANIFEST.leaves_records
    for found in MANIFEST.find_leftovers(bucket.context()):
        found.recover()


def test_clean_up_side_by_side_on_threads() -> None:
    """Scenario 62 and scenario 66."""
    bucket = Bucket("manifest", runner=ThreadRunner(threads=4))
    assert ended(bucket).finished and bucket.debris() == []


@pytest.mark.parametrize("operation", [StoreOperation.DELETE, StoreOperation.DELETE_MANY])
def test_trouble_in_clean_up(operation: StoreOperation) -> None:
    """Scenario 62 and scenario 82: the job is committed, and the outcome says that clean-up is left."""
    bucket = Bucket("manifest")
    outcome = ended(bucket, Fault(FaultMode.FAIL, operation, times=FOR_EVER))
    assert bucket.visible() == {"a": b"1"} and bucket.debris() != []
    assert outcome.committed and not outcome.finished and "recover" in outcome.pending_reason
    assert actions(bucket) == [RecoveryAction.CLEAN]
    finish_all(bucket)
    assert bucket.visible() == {"a": b"1"} and bucket.debris() == []


def test_trouble_in_abort() -> None:
    """The same in an abort; nothing is committed then."""
    bucket = Bucket("manifest")
    job = bucket.start(bucket.context())
    run_attempt(bucket, bucket.context(), job, 0, {"a": b"1"})
    store = InterceptedStore(bucket.store, Faulty(Fault(FaultMode.FAIL, StoreOperation.DELETE_MANY, times=FOR_EVER)))
    ctx = bucket.context(store=store)
    outcome = MANIFEST.abort_job(ctx, job)
    assert not outcome.committed and not outcome.finished
    assert actions(bucket) == [RecoveryAction.BACK]
    finish_all(bucket)
    assert bucket.debris() == [] and bucket.visible() == {}
