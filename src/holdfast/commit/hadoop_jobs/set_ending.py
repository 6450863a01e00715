"""How a dead job of Hadoop's S3A committers is ended: its uploads completed, or aborted, as a person wishes.

What is provable, as for our own jobs without a log (paper 001, "Job Driver failure during Job Commit"): Hadoop's job
commit begins when all tasks have committed. So

- some files are visible and all others wait: the job commit was under way, and completing the rest makes it whole.
- none is visible: nobody has recorded how many tasks there were. It is committed only if the person insists.
- some are neither: the job commit had failed and was taking files back, or somebody replaced them. Never committed.
- nothing waits: it is through, or given up. Nothing visible is ever deleted then.

An abort deletes visible files only where their names carry the job; others may be somebody else's, of the same bytes.
Two sets may name the same file (names that carry no job): both are completed, as Hadoop does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from holdfast.commit.committer import Action, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.pending import PendingSet
from holdfast.commit.hadoop_jobs.marker import save_first_marker
from holdfast.commit.hadoop_jobs.set_jobs import load_record
from holdfast.commit.hadoop_jobs.set_look import Found, look_at_sets
from holdfast.commit.hadoop_jobs.values import HadoopJob, HadoopLeftover, Resolution, carries
from holdfast.commit.ids import JobId
from holdfast.commit.job_ends import succeed
from holdfast.commit.measure import Measure
from holdfast.commit.moves import delete_dir
from holdfast.commit.pending_sets.completion import complete_all
from holdfast.commit.records import JobRecord, SaveMode
from holdfast.commit.two_phase.snapshot import read_instant
from holdfast.errors import ConflictError, UnavailableError
from holdfast.stores.base import batched_keys, iter_uploads, multipart
from holdfast.wording import counted

__all__ = ["judge_set_jobs"]

_ROUNDS = 3


def judge_set_jobs(
    ctx: CommitContext, jobs: Sequence[HadoopJob], resolution: Resolution | None, *, insist: bool
) -> Iterator[HadoopLeftover]:
    """What each job has left, and what may be done about it.

    Args:
        resolution: None: nothing is done to it.
        insist: commit it although nobody knows whether all of its tasks had committed.
    """
    for job, found in zip(jobs, look_at_sets(ctx, jobs), strict=True):
        action, reason = _decide(ctx, job, found, resolution, insist)
        leftover = Leftover(
            committer=job.committer,
            job=job.job,
            active_at_s=found.active_at_s,
            action=action,
            reason=reason,
            finish=partial(_finish, ctx, job, resolution, insist, action),
            files=len(found.written) + len(found.strangers),
            uploads=len(found.uploads),
        )
        yield HadoopLeftover(leftover=leftover, is_over=found.is_over)


# --- deciding ---------------------------------------------------------------------------------------------------------
def _decide(
    ctx: CommitContext, job: HadoopJob, found: Found, resolution: Resolution | None, insist: bool
) -> tuple[Action, str]:
    if found.damaged:
        return _decide_damaged(job, found, resolution, insist=insist)
    if resolution is None:
        return Action.KEEP, _state(found)
    if found.succeeded:
        return Action.CLEAN, "it is committed, _SUCCESS says so; its records are left"
    if found.strangers and (found.waiting or found.missing):
        return Action.KEEP, "files of it are visible that its pending sets do not name: look at them"
    if found.commits and not found.waiting:
        return _decide_over(found, resolution)
    return _decide_abort(job, found) if resolution is Resolution.ABORT else _decide_commit(ctx, job, found, insist)


def _decide_damaged(job: HadoopJob, found: Found, resolution: Resolution | None, *, insist: bool) -> tuple[Action, str]:
    """Never committed. An abort has to be insisted on: it forgets what only the damaged record names."""
    state = f"a record cannot be read, {found.damaged}"
    if resolution is not Resolution.ABORT or not insist:
        return Action.KEEP, (
            f"{state}: repair it, or abort the job with --foreign abort --accept-damage; uploads that only this record "
            "names then go with holdfast uploads abort --all-tools"
        )
    if found.strangers:
        return Action.KEEP, (
            f"{state}, and visible files are of it: delete those with {job.job} in their names, then run this again"
        )
    action, reason = _decide_abort(job, found)
    return action, f"{state}; {reason}"


def _state(found: Found) -> str:
    if found.succeeded:
        return "it is committed, _SUCCESS says so; its records are left"
    if not found.commits:
        return f"no task has committed anything; waiting: {counted(len(found.late), 'upload')} of attempts"
    total = counted(len(found.commits), "file")
    state = f"{len(found.written)} of its {total} are visible, {len(found.waiting)} wait"
    return state + (f", {len(found.missing)} are neither" if found.missing else "")


def _decide_over(found: Found, resolution: Resolution) -> tuple[Action, str]:
    if found.written and found.missing:
        return Action.KEEP, f"{_state(found)}: it was given up, or others have replaced files of it"
    if not found.written:
        return Action.CLEAN, "nothing of it is visible or waits"
    if resolution is Resolution.COMMIT:
        return Action.FORWARD, "all of its files are visible, what is left is to say so"
    return Action.CLEAN, "all of its files are visible: it is committed but for its _SUCCESS, and they stay"


def _decide_abort(job: HadoopJob, found: Found) -> tuple[Action, str]:
    strange = [one for one in found.written if not carries(job.job, one.key)]
    if strange:
        return Action.KEEP, (
            f"{_state(found)}; the names of visible ones do not tell that they are its own, so none is deleted: commit "
            "it, or delete them"
        )
    return Action.BACK, _state(found)


def _decide_commit(ctx: CommitContext, job: HadoopJob, found: Found, insist: bool) -> tuple[Action, str]:
    if not found.commits:
        return Action.KEEP, f"{_state(found)}: there is nothing to commit, abort it"
    if found.missing:
        return Action.KEEP, f"{_state(found)}: it cannot be made whole, abort it"
    if job.starts > 1:
        return (
            Action.KEEP,
            f"{_state(found)}; its driver started {job.starts} times, nobody knows which tasks count",
        )
    if read_instant(ctx).table is not None:
        return Action.KEEP, f"{_state(found)}; they would make the destination's table unreadable: abort it"
    if not found.written and not insist:
        return Action.KEEP, (
            f"{_state(found)}: its job commit had not begun, and nobody recorded how many tasks it had: abort it, or "
            "insist with --accept-damage"
        )
    return Action.FORWARD, _state(found)


# --- acting -----------------------------------------------------------------------------------------------------------
def _finish(ctx: CommitContext, job: HadoopJob, resolution: Resolution | None, insist: bool, expected: Action) -> None:
    """Do what was decided, if it is still right.

    Raises:
        ConflictError: the job has gone on: it is alive.
        UnavailableError: something is left; run it again.

    Crash: run it again; what is half done leads to the same end (C10).
    """
    if expected is Action.KEEP:
        return
    (found,) = look_at_sets(ctx, [job])
    action, reason = _decide(ctx, job, found, resolution, insist)
    if action not in (expected, Action.CLEAN):
        raise ConflictError("the job has gone on, so it may be alive: look again", job=job.job, found=reason)
    measure = Measure(ctx)
    if action is Action.FORWARD:
        _complete(measure, job)
    elif action is Action.BACK:
        # Before the uploads: while some wait, whoever looks next comes to the same decision.
        for batch in batched_keys(sorted(one.key for one in found.written)):
            ctx.store.delete_many(batch)
    _clean_up(measure, job, found, with_sets=action is not Action.FORWARD)


def _complete(measure: Measure, job: HadoopJob) -> None:
    """Complete what waits, and say so in ``_SUCCESS``.

    Raises:
        NotFoundError: an upload is gone and its file is not there: somebody else works here.
    """
    ctx = measure.ctx

    def load(key: str) -> PendingSet:
        return PendingSet(job_id=job.job, commits=load_record(ctx, job, key))

    published = complete_all(measure, job.sets, load, revert=False)
    record = JobRecord(
        job=JobId(job.job),
        committer=job.committer.removeprefix("hadoop-"),
        mode=SaveMode.APPEND,
        started_at_s=0.0,
    )
    succeed(
        measure,
        record,
        totals=published.totals,
        tasks=published.sets,
        paths=published.paths,
        statistics=published.statistics,
        save=save_first_marker,
    )


def _clean_up(measure: Measure, job: HadoopJob, found: Found, *, with_sets: bool) -> None:
    """Abort what still waits, then delete the job's records: never others', nor what no record or name tells.

    Records go after the uploads. A driver that is alive all the same then finds its uploads gone and fails; had it
    found no sets first, it would report success with no files.

    Args:
        with_sets: whether what tasks have committed is aborted; it is not once it is completed.

    Raises:
        UnavailableError: uploads are left; run it again.
    """
    ctx = measure.ctx
    store = multipart(ctx.store)
    left = own = found.uploads if with_sets else found.late
    # A part that was on its way while its upload was aborted can leave the upload alive: look again, a few times.
    for _ in range(_ROUNDS):
        for _done in ctx.runner.map(lambda upload: store.abort_upload(*upload), sorted(left)):
            measure.recorder.count("committer_commits_aborted")
        waiting = ((one.key, one.upload_id) for one in iter_uploads(store, ctx.prefix))
        left = frozenset(upload for upload in waiting if upload in own or carries(job.job, upload[0]))
        if not left:
            delete_dir(job.home, job.directory, unfinished=False)
            return
    raise UnavailableError("uploads of the job could not be aborted: run it again", job=job.job, uploads=len(left))
