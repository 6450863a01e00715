"""Test the clean-up of ``manifest``: what is deleted, in which order, and the effect of errors."""

from __future__ import annotations

import pytest

from holdfast.commit import COMMITTERS, HadoopSettings, JobRecord
from holdfast.commit.leftovers import Action
from holdfast.commit.records import JobOutcome
from holdfast.errors import OutcomeUnknownError
from holdfast.runtime import ThreadRunner
from holdfast.stores.interceptors import InterceptedStore, Operation
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty, Recorder
from tests.unit.commit.attempts import HOME, open_attempt, run_attempt
from tests.unit.commit.committer_jobs import Bucket

MANIFEST = COMMITTERS["manifest"]
ATTEMPTS = "*/tasks/attempt_*"


def ended(bucket: Bucket, *faults: Fault, **options: bool) -> tuple[JobRecord, JobOutcome | None, Recorder]:
    """Return a job with an attempt that never committed; its commit meets `faults` and runs with `options`."""
    recorded = Recorder()
    store = InterceptedStore(InterceptedStore(bucket.store, Faulty(*faults)), recorded)
    ctx = bucket.context(store=store).with_settings(hadoop=HadoopSettings(**options))
    job = bucket.start(bucket.context())
    for number in range(3):
        open_attempt(bucket, bucket.context(), job, 0, {f"dead-{number}": b"x"})
    commit = run_attempt(bucket, bucket.context(), job, 0, {"a": b"1"})
    try:
        return job, bucket.commit(ctx, job, [commit]), recorded
    except OutcomeUnknownError:
        return job, None, recorded


def actions(bucket: Bucket) -> list[Action]:
    assert MANIFEST.leaves_records
    return [found.action for found in MANIFEST.find_leftovers(bucket.context())]


def finish_all(bucket: Bucket) -> None:
    assert MANIFEST.leaves_records
    for found in MANIFEST.find_leftovers(bucket.context()):
        found.recover()


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("base_first", [True, False])
def test_clean_up(parallel: bool, base_first: bool) -> None:
    """Scenario 62: attempts' directories one by one, or the job's directory in one step."""
    bucket = Bucket("manifest")
    _job, outcome, recorded = ended(bucket, cleanup_parallel_delete=parallel, cleanup_base_first=base_first)
    assert outcome is not None and outcome.finished and bucket.debris() == []
    one_by_one = sum("/tasks/attempt_" in call.key for call in recorded.calls if call.operation is Operation.LIST)
    assert one_by_one == (3 if parallel and not base_first else 0)


def test_clean_up_side_by_side_on_threads() -> None:
    """Scenario 62 and scenario 66."""
    bucket = Bucket("manifest", runner=ThreadRunner(threads=4))
    assert ended(bucket)[1] is not None and bucket.debris() == []


def test_clean_up_is_skipped() -> None:
    """Scenario 62: the directory stays, but the job is over: recovery rolls it neither forward nor back."""
    bucket = Bucket("manifest")
    job, outcome, _recorded = ended(bucket, cleanup_skipped=True)
    assert outcome is not None and outcome.finished and bucket.debris() != []
    assert not any(key.endswith("job.json") for key in bucket.debris())
    bucket.store.delete(f"{HOME}a")  # by a later job
    bucket.store.delete(f"{HOME}_SUCCESS")
    assert actions(bucket) == [Action.CLEAN]
    assert not MANIFEST.abort_job(bucket.context(), job).committed and bucket.debris() == []


def test_one_attempts_directory_cannot_be_deleted() -> None:
    """Scenario 62: then the job's directory is deleted as a whole."""
    bucket = Bucket("manifest")
    _job, outcome, recorded = ended(bucket, Fault(FaultMode.FAIL, Operation.DELETE_MANY, ATTEMPTS))
    assert outcome is not None and outcome.finished and bucket.debris() == []
    assert sum(call.operation is Operation.DELETE_MANY for call in recorded.calls) == 2


def test_base_first_fails_then_the_rest_works() -> None:
    """Scenario 62."""
    bucket = Bucket("manifest")
    _job, outcome, _recorded = ended(bucket, Fault(FaultMode.FAIL, Operation.DELETE_MANY), cleanup_base_first=True)
    assert outcome is not None and outcome.finished and bucket.debris() == []


@pytest.mark.parametrize("operation", [Operation.DELETE, Operation.DELETE_MANY])
def test_trouble_in_clean_up(operation: Operation) -> None:
    """Scenario 62 and scenario 82.

    An error that says that the job is committed, or none at all if it is to be ignored.
    """
    for ignored in (False, True):
        bucket = Bucket("manifest")
        fault = Fault(FaultMode.FAIL, operation, times=FOR_EVER)
        _job, outcome, _recorded = ended(bucket, fault, cleanup_failures_ignored=ignored)
        assert bucket.visible() == {"a": b"1"} and bucket.debris() != []
        if ignored:
            assert outcome is not None and outcome.committed and not outcome.finished
            assert "recover" in outcome.pending_reason
        else:
            assert outcome is None
        assert actions(bucket) == [Action.CLEAN]
        finish_all(bucket)
        assert bucket.visible() == {"a": b"1"} and bucket.debris() == []


def test_trouble_in_abort() -> None:
    """The same in an abort; nothing is committed then."""
    bucket = Bucket("manifest")
    job = bucket.start(bucket.context())
    run_attempt(bucket, bucket.context(), job, 0, {"a": b"1"})
    store = InterceptedStore(bucket.store, Faulty(Fault(FaultMode.FAIL, Operation.DELETE_MANY, times=FOR_EVER)))
    ctx = bucket.context(store=store).with_settings(hadoop=HadoopSettings(cleanup_failures_ignored=True))
    outcome = MANIFEST.abort_job(ctx, job)
    assert not outcome.committed and not outcome.finished
    assert actions(bucket) == [Action.BACK]
    finish_all(bucket)
    assert bucket.debris() == [] and bucket.visible() == {}
