"""After Ctrl-C in a write: end the job, so that nothing of it is ever seen, or say that it is committed already."""

from __future__ import annotations

from holdfast.cli.output import Output
from holdfast.commit import (
    COMMITTERS,
    CommitContext,
    Committer,
    JobId,
    JobRecord,
    SaveMode,
    get_committer,
    read_history,
)
from holdfast.commit.committer import Action, Leftover
from holdfast.commit.recovery import find_leftovers
from holdfast.commit.write_lookup import TOKEN, find_files, find_written, is_job_of
from holdfast.errors import HoldfastError
from holdfast.options.parsing import WriteOptions

__all__ = ["end_write"]


def end_write(options: WriteOptions, out: Output) -> None:
    """Abort the job of a write, or carry out what was decided about it; says which.

    Requires: its Spark is stopped, so that no task of this machine still writes; its token is this call's alone.
    """
    out.note("interrupted: ending the job, one moment")
    url = options.store.url
    try:
        ctx = options.open()
        try:
            sentence = _end(ctx, get_committer(options.committer), options.token)
        finally:
            ctx.close()
    except HoldfastError as error:
        out.note(f"error: {error}")
        out.note(f"the job could not be ended: holdfast recover {url}")
        return
    out.note(sentence)


def _end(ctx: CommitContext, committer: Committer, token: str) -> str:
    """End the job of the write if it is not over; what has become of it, in one sentence."""
    for record in (job.record for job in read_history(ctx).open_jobs):
        if record is not None and record.details.get(TOKEN) == token:
            outcome = committer.abort_job(ctx, record)
            return _committed(outcome.job) if outcome.committed else _aborted(outcome.job)
    found = _leftover(ctx, token)
    if found is not None:
        found.finish()
    written = find_written(ctx, token)
    if written is not None:
        return _committed(written.job)
    if found is not None and found.action is Action.FORWARD:
        return _committed(found.job)
    if found is not None and found.action is Action.KEEP:
        return f"the job was left as it is, decide yourself: job {found.job}: {found.reason}"
    return _given_up(ctx, committer, token, found.job if found is not None else "")


def _given_up(ctx: CommitContext, committer: Committer, token: str, job: str) -> str:
    """Some committers show files early and keep no record of the job but the names of these files."""
    early = find_files(ctx, token)
    if early is not None and not committer.leaves_records:
        committer.abort_job(ctx, _record(early.job, committer))
        job, early = early.job, find_files(ctx, token)
    if early is not None:
        count = early.totals.files
        return (
            f"the job is aborted, but files of it are visible ({count}): delete those with {early.job} in their names"
        )
    return _aborted(job) if job else "the job is aborted or never began, nothing of it is there"


def _record(job: str, committer: Committer) -> JobRecord:
    """What an abort has to know of a job that keeps no record."""
    return JobRecord(
        job=JobId(job),
        committer=committer.name,
        publication="",
        mode=SaveMode.APPEND,
        base_seq=0,
        started_at_s=0.0,
    )


def _leftover(ctx: CommitContext, token: str) -> Leftover | None:
    """What the write's job has left. All committers are asked: jobs of `file-v1` and `file-v2` look alike at first."""
    for committer in COMMITTERS.values():
        for found in find_leftovers(ctx, committer):
            if is_job_of(found.job, token):
                return found
    return None


def _committed(job: str) -> str:
    return f"the job was committed already, its rows are there: job {job}"


def _aborted(job: str) -> str:
    return f"the job is aborted, nothing of it is visible: job {job}"
