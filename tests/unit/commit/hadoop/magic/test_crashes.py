"""``magic``: every store call of a task, a job commit and an abort is a process's last; then leftovers are finished.

What holds for jobs that append: all or nothing, wherever the driver dies. What does not, because the protocol keeps no
record: a reader sees a part of the job between the crash and its recovery (C4); an upload under a name of the caller's
choice whose attempt died before it put the record is found by nobody (C9); an abort in place of the recovery leaves
what is visible (C5).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from holdfast.commit import CommitContext, JobRecord
from holdfast.commit.leftovers import RecoveryAction
from holdfast.commit.success_file import read_success_file
from holdfast.errors import NotFoundError
from holdfast.stores.base import iter_uploads
from tests.interceptors import SimulatedCrash, crash_at
from tests.unit.commit.attempts import HOME, faulty_context
from tests.unit.commit.committer_jobs import Bucket
from tests.unit.commit.hadoop.magic.magic_jobs import MAGIC, hidden, leftovers, orphans, run_tasks, uploads

Process = Callable[[CommitContext], object]


def crashes(prepare: Callable[[Bucket], Process]) -> Iterator[Bucket]:
    """Yield buckets in which one process died at its nth call, for every n and both sides of the effect."""
    for after in (False, True):
        for nth in itertools.count(1):
            bucket = Bucket("magic")
            process = prepare(bucket)
            try:
                process(faulty_context(bucket, crash_at(nth, after=after)))
            except SimulatedCrash:
                yield bucket
            else:
                assert nth > 3, "the process made no calls: nothing was tested"
                break


def finish_all(bucket: Bucket) -> list[RecoveryAction]:
    """Recover as `recover` does: carry out every possible action, twice (C10)."""
    found = leftovers(bucket.context())
    for left in found.values():
        left.recover()
        left.recover()
    for left in orphans(bucket.context()).values():
        left.recover()
    return [left.action for left in found.values()]


def started(bucket: Bucket) -> tuple[CommitContext, JobRecord]:
    ctx = bucket.context()
    bucket.run_job(ctx, "old")
    return ctx, bucket.start(ctx)


def test_driver_dies_in_job_commit() -> None:
    """Paper 001, "Job Driver failure during Job Commit": all or nothing, and which of the two is known before."""

    def prepare(bucket: Bucket) -> Process:
        ctx, job = started(bucket)
        commits = run_tasks(bucket, ctx, job, "new", tasks=3)
        return lambda dying: bucket.commit(dying, job, commits)

    actions = set()
    for bucket in crashes(prepare):
        before = sorted(bucket.visible().values())
        reported = read_success_file(bucket.context()) is not None
        done = finish_all(bucket)
        actions.update(done)
        whole = sorted(bucket.expected("old") + bucket.expected("new", tasks=3))
        assert sorted(bucket.visible().values()) == (bucket.expected("old") if RecoveryAction.BACK in done else whole)
        assert (RecoveryAction.BACK in done) == (before == bucket.expected("old"))
        if reported:
            assert before == whole, "_SUCCESS comes after the last file"
        if RecoveryAction.FORWARD in done:
            assert read_success_file(bucket.context()) is not None
        assert bucket.debris() == []
        assert finish_all(bucket) == []
    assert actions == {RecoveryAction.BACK, RecoveryAction.FORWARD, RecoveryAction.CLEAN}


def test_driver_dies_while_it_takes_files_back() -> None:
    """A job commit fails at its fifth file and dies at every following call: nothing of the job stays."""

    def prepare(bucket: Bucket) -> Process:
        ctx, job = started(bucket)
        commits = [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(3)]
        lost = list(iter_uploads(bucket.store, ""))[4]
        bucket.store.abort_upload(lost.key, lost.upload_id)

        def process(dying: CommitContext) -> None:
            with pytest.raises(NotFoundError, match="was aborted"):
                bucket.commit(dying, job, commits)

        return process

    actions = set()
    for bucket in crashes(prepare):
        actions.update(finish_all(bucket))
        assert sorted(bucket.visible().values()) == bucket.expected("old")
        assert bucket.debris() == []
    assert actions == {RecoveryAction.BACK, RecoveryAction.CLEAN}


@pytest.mark.slow
def test_recovery_dies_too() -> None:
    """C9, C10: the driver dies at every call, and then recovery dies at every one of its calls."""
    for nth in itertools.count(1):
        for again in itertools.count(1):
            bucket = Bucket("magic")
            ctx, job = started(bucket)
            commits = run_tasks(bucket, ctx, job, "new")
            try:
                bucket.commit(faulty_context(bucket, crash_at(nth)), job, commits)
                return
            except SimulatedCrash:
                whole = [left.action is not RecoveryAction.BACK for left in leftovers(ctx).values()]
            try:
                for left in leftovers(faulty_context(bucket, crash_at(again, after=True))).values():
                    left.recover()
            except SimulatedCrash:
                finish_all(bucket)
                new = bucket.expected("new") if all(whole) else []
                assert sorted(bucket.visible().values()) == sorted(bucket.expected("old") + new)
                assert bucket.debris() == []
            else:
                break


def test_task_attempt_dies_and_is_run_again() -> None:
    """C2: the next attempt's files count, never the dead one's. Uploads under chosen names may stay pending."""

    def prepare(bucket: Bucket) -> Process:
        _ctx, job = started(bucket)
        jobs[id(bucket)] = job
        return lambda dying: run_tasks(bucket, dying, job, "dead", tasks=1)

    jobs: dict[int, JobRecord] = {}
    for bucket in crashes(prepare):
        ctx, job = bucket.context(), jobs[id(bucket)]
        assert sorted(bucket.visible().values()) == bucket.expected("old")
        bucket.commit(ctx, job, run_tasks(bucket, ctx, job, "new"))
        assert sorted(bucket.visible().values()) == sorted(bucket.expected("old") + bucket.expected("new"))
        assert hidden(bucket) == []
        # The dead attempt's upload to a chosen name: it was not recorded yet, or its set was replaced.
        assert set(uploads(bucket)) <= {f"{HOME}blobs/0.tar"}


def test_everything_dies_in_a_task() -> None:
    """No job commit follows: the leftovers are rolled back, by records or by the names of uploads."""

    def prepare(bucket: Bucket) -> Process:
        _ctx, job = started(bucket)
        return lambda dying: bucket.run_task(dying, job, 0, bucket.contents("new", 0))

    actions = set()
    for bucket in crashes(prepare):
        actions.update(finish_all(bucket))
        assert sorted(bucket.visible().values()) == bucket.expected("old") and bucket.debris() == []
    assert actions == {RecoveryAction.BACK}


def test_driver_dies_in_an_abort() -> None:
    """C5 at every call."""

    def prepare(bucket: Bucket) -> Process:
        ctx, job = started(bucket)
        run_tasks(bucket, ctx, job, "new")
        return lambda dying: MAGIC.abort_job(dying, job)

    for bucket in crashes(prepare):
        finish_all(bucket)
        assert sorted(bucket.visible().values()) == bucket.expected("old") and bucket.debris() == []


def test_an_abort_instead_of_a_recovery() -> None:
    """C5 does not hold: after a commit that died, an abort aborts pending uploads and leaves visible files."""
    partial = 0
    jobs: dict[int, JobRecord] = {}

    def prepare(bucket: Bucket) -> Process:
        ctx, job = started(bucket)
        jobs[id(bucket)] = job
        commits = run_tasks(bucket, ctx, job, "new")
        return lambda dying: bucket.commit(dying, job, commits)

    for bucket in crashes(prepare):
        before = bucket.visible()
        MAGIC.abort_job(bucket.context(), jobs[id(bucket)])
        assert bucket.visible() == before and bucket.debris() == []
        partial += 0 < len(set(before.values()) & set(bucket.expected("new"))) < 4
    assert partial > 0


def test_a_neighbour_is_not_touched() -> None:
    """Scenario 26 (C7): a crash in ``dataset1`` and its recovery do not affect a job in ``dataset10``."""
    neighbour = HOME.replace("dataset1", "dataset10")
    others = {}

    def prepare(bucket: Bucket) -> Process:
        far = bucket.context(neighbour)
        other = bucket.start(far)
        others[id(bucket)] = (other, run_tasks(bucket, far, other, "far"))
        ctx, job = started(bucket)
        commits = run_tasks(bucket, ctx, job, "new")
        return lambda dying: bucket.commit(dying, job, commits)

    for bucket in crashes(prepare):
        finish_all(bucket)
        other, commits = others[id(bucket)]
        bucket.commit(bucket.context(neighbour), other, commits)
        assert sorted(bucket.visible(neighbour).values()) == bucket.expected("far") and bucket.debris() == []
