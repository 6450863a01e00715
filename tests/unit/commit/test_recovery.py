"""Recover committers without a log: every job is ended as its leftovers allow, and reported."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, Committer, SaveMode, recover
from holdfast.commit.committer import MULTIPART
from holdfast.commit.leftovers import Leftover, RecoveryAction
from holdfast.commit.recovery import UNKNOWN
from holdfast.errors import AccessDeniedError, CorruptDataError, HoldfastError, NotFoundError, UnavailableError
from holdfast.stores.interceptors import InterceptedStore
from tests.interceptors import Faulty, SimulatedCrash, crash_at
from tests.simulation.world import World
from tests.unit.commit.attempts import recovered_jobs
from tests.unit.commit.committer_jobs import Bucket
from tests.variants import variants

NOW_S = 1_800_000_000.0


@dataclass
class Found:
    """The leftovers of a committer, and which of them were finished."""

    leftovers: list[Leftover] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)

    def add(
        self,
        job: str,
        action: RecoveryAction,
        *,
        active_at_s: float = 0.0,
        error: Exception | None = None,
        name: str = "fake",
    ) -> None:
        def finish() -> None:
            if error is not None:
                raise error
            self.finished.append(job)

        self.leftovers.append(
            Leftover(
                committer=name,
                job=job,
                active_at_s=active_at_s,
                action=action,
                reason=f"because of {job}",
                recover=finish,
                files=2,
                uploads=3,
            )
        )

    def committer(self, **changes: object) -> Committer:
        def leftovers(ctx: CommitContext) -> Iterator[Leftover]:
            return iter(self.leftovers)

        found: dict[str, Any] = {"name": "fake", "needs": (), "find_leftovers": leftovers, **changes}
        return replace(TWO_PHASE, **found)


@pytest.fixture
def ctx() -> CommitContext:
    return World("upload").context()


def test_each_action_is_done_and_said(ctx: CommitContext) -> None:
    found = Found()
    for action in RecoveryAction:
        found.add(action.value, action)
    report = recover(ctx, committers=[found.committer()])
    assert found.finished == ["roll forward", "roll back", "clean up"]
    assert (report.rolled_forward, report.rolled_back) == (["roll forward"], ["roll back"])
    assert (report.cleaned_up, report.kept) == (["clean up"], ["keep"])
    first = report.jobs[0]
    assert (first.committer, first.reason, first.files, first.uploads) == ("fake", "because of roll forward", 2, 3)


def test_what_is_kept_needs_a_person(ctx: CommitContext) -> None:
    found = Found()
    found.add("a", RecoveryAction.KEEP)
    assert not recover(ctx, committers=[found.committer()]).clean
    assert found.finished == []


@pytest.mark.parametrize("action", list(RecoveryAction))
def test_a_job_that_may_be_alive_is_left_alone(ctx: CommitContext, action: RecoveryAction) -> None:
    found = Found()
    found.add("young", action, active_at_s=NOW_S - 30)
    report = recover(ctx, older_than_s=60, committers=[found.committer()])
    assert (report.left_alone, found.finished, report.clean) == (["young"], [], True)
    assert report.rolled_forward + report.rolled_back + report.cleaned_up + report.kept == []
    assert recover(ctx, older_than_s=20, committers=[found.committer()]).left_alone == []


def test_a_dry_run_says_the_same_and_does_nothing(ctx: CommitContext) -> None:
    found = Found()
    for action in RecoveryAction:
        found.add(action.value, action)
    planned = recover(ctx, dry_run=True, committers=[found.committer()])
    assert found.finished == []
    assert planned.jobs == recover(ctx, committers=[found.committer()]).jobs


@pytest.mark.parametrize(
    ("kind", "damaged", "pending"),
    [
        (CorruptDataError, {"bad": "no luck"}, {}),
        (UnavailableError, {}, {"bad": "no luck"}),
        (AccessDeniedError, {}, {"bad": "no luck"}),
    ],
)
def test_one_failure_does_not_stop_the_rest(
    ctx: CommitContext, kind: Callable[[str], Exception], damaged: dict[str, str], pending: dict[str, str]
) -> None:
    found = Found()
    found.add("bad", RecoveryAction.BACK, error=kind("no luck"))
    found.add("good", RecoveryAction.BACK)
    report = recover(ctx, committers=[found.committer()])
    assert (report.damaged, report.pending) == (damaged, pending), "damaged is only what cannot be read"
    assert (report.rolled_back, found.finished, report.clean) == (["good"], ["good"], False)


def test_a_job_is_ended_once_though_two_committers_find_it(ctx: CommitContext) -> None:
    found, other = Found(), Found()
    found.add("a", RecoveryAction.FORWARD)
    other.add("a", RecoveryAction.BACK, name="other")
    report = recover(ctx, committers=[found.committer(), other.committer(name="other")])
    assert ([job.committer for job in report.jobs], other.finished) == (["fake"], [])


def test_a_committer_that_cannot_have_run_here_is_not_asked() -> None:
    found = Found()
    found.add("a", RecoveryAction.BACK)
    on_rename = World("rename").context()
    assert recover(on_rename, committers=[found.committer(needs=(MULTIPART,))]).jobs == []
    assert recover(on_rename, committers=[found.committer(staging=True)]).jobs == []  # there is no shared directory
    assert recover(on_rename, committers=[found.committer()]).rolled_back == ["a"]


def test_leftovers_that_cannot_be_read_are_damage_of_that_committer(ctx: CommitContext) -> None:
    def broken(ctx: CommitContext) -> Iterator[Leftover]:
        yield from ()
        raise CorruptDataError("a record cannot be read", key="x")

    good = Found()
    good.add("good", RecoveryAction.CLEAN)
    fakes = [good.committer(name="broken", find_leftovers=broken), good.committer()]
    report = recover(ctx, committers=fakes)
    assert list(report.damaged) == ["broken"]
    assert report.cleaned_up == ["good"]


# --- the committers themselves ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("after", variants([True, False]))
@pytest.mark.parametrize("committer", ["two_phase", "magic", "staging-directory", "staging-partitioned", "manifest"])
def test_a_process_that_dies_at_any_call_leaves_all_or_nothing(committer: str, after: bool) -> None:
    """C9; paper 001, "Job Driver failure during Job Commit": next to another job's data, found among all committers."""
    actions = set[RecoveryAction]()
    for nth in range(1, 500):
        bucket = Bucket(committer)
        old = bucket.run_job(bucket.context(), "old")
        dying = bucket.context(store=InterceptedStore(bucket.store, Faulty(crash_at(nth, after=after))))
        try:
            bucket.run_job(dying, "new")
        except SimulatedCrash:
            planned = recover(bucket.context(), dry_run=True)
            report = recover(bucket.context())
            assert report.jobs == planned.jobs, f"call {nth}"
            assert report.clean, f"call {nth}: {report.damaged} {report.kept}"
            assert {job.committer for job in report.jobs} <= {committer, UNKNOWN}, f"call {nth}"
            assert old.job not in {job.job for job in report.jobs}
            found = sorted(bucket.visible().values())
            assert found in (bucket.expected("old"), sorted(bucket.expected("old") + bucket.expected("new"))), nth
            assert bucket.debris() == [], f"call {nth}"
            assert recover(bucket.context()).jobs == [], f"call {nth}: again does nothing"
            actions.update(job.action for job in report.jobs)
        else:
            assert {RecoveryAction.FORWARD, RecoveryAction.BACK} <= actions
            return
    raise AssertionError("the job never ended")


@pytest.mark.parametrize(
    "committer",
    ["two_phase", "magic", "staging-directory", "staging-partitioned", "manifest", "file-v1", "file-v2"],
)
@pytest.mark.parametrize("task_commits", [True, False])
def test_what_a_zombie_writes_does_not_undo_a_committed_job(committer: str, task_commits: bool) -> None:
    """Nothing acknowledged is lost: an attempt continues after its job, the next job's start deletes ``_SUCCESS``."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    bucket.commit(ctx, job, [bucket.run_task(ctx, job, 0, [b"one"])])
    zombie = bucket.value.setup_task(ctx, job, 0)
    sink = zombie.open(f"day=9/{zombie.file_name('.txt')}")
    sink.write(b"late")
    sink.close()
    if task_commits and committer != "file-v2":  # whose zombies are seen at once, and that is known
        with contextlib.suppress(HoldfastError):
            zombie.commit()
    dead = bucket.start(ctx)
    bucket.run_task(ctx, dead, 0, [b"two"])
    report = recover(bucket.context())
    assert not report.damaged
    visible = sorted(bucket.visible().values())
    assert visible == [b"one"], "the committed job's file stays, the dead job's goes"
    zombie.abort()


def test_what_file_v1_had_merged_is_rolled_back() -> None:
    """Nothing shows how far a merge came (paper 001, "Job Recovery"): the job is rolled back by the names of its files.

    Unless nothing is left to merge.
    """
    actions = set[RecoveryAction]()
    for nth in range(1, 500):
        bucket = Bucket("file-v1")
        dying = bucket.context(store=InterceptedStore(bucket.store, Faulty(crash_at(nth))))
        try:
            bucket.run_job(dying, "new")
        except SimulatedCrash:
            report = recover(bucket.context())
            actions.update(job.action for job in report.jobs)
            assert sorted(bucket.visible().values()) in ([], bucket.expected("new")), f"call {nth}"
        else:
            assert actions == {RecoveryAction.BACK, RecoveryAction.CLEAN}, "all merged is as good as done"
            return
    raise AssertionError("the job never ended")


def test_two_live_jobs_of_two_committers_are_left_alone_together() -> None:
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(2)]
    other = TWO_PHASE.setup_job(ctx, SaveMode.APPEND)
    assert other is not None
    assert recover(ctx, older_than_s=3600).left_alone == [other.job, job.job]
    assert bucket.commit(ctx, job, commits).committed
    assert TWO_PHASE.commit_job(ctx, other, [], 0).committed
    assert sorted(bucket.visible().values()) == bucket.expected("new")


def test_recovery_at_a_parents_url_spares_the_jobs_below() -> None:
    """C7: a job's records are in its own destination, which the parent's recovery does not read."""
    for committer in ("two_phase", "magic"):
        bucket = Bucket(committer)
        ctx = bucket.context("a/t/")
        job = bucket.start(ctx)
        commits = [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(2)]
        assert recover(bucket.context("a/")).jobs == []
        assert bucket.commit(ctx, job, commits).committed
        assert sorted(bucket.visible("a/t/").values()) == bucket.expected("new")


@pytest.mark.parametrize("name", ["magic", "manifest", "file-v1"])
def test_who_is_late_for_a_job_that_recovery_has_finished_is_not_just_told_to_run_it_again(name: str) -> None:
    """All files are there: another run in mode append would add them once more."""
    finished = 0
    for bucket, job, commits in recovered_jobs(name):
        with pytest.raises(NotFoundError, match=r"unless files of .*are visible, run it again"):
            bucket.commit(bucket.context(), job, commits)
        finished += sorted(bucket.visible().values()) == bucket.expected("new")
    assert finished > 2
