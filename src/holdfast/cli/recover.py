"""Run ``holdfast recover``: end the jobs that died, and report what was done with each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import Reach, Word, age, on_store, reports
from holdfast.cli.failures import PROBLEM
from holdfast.cli.output import Output, duration
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.commit import RecoveredJob, RecoveryReport
    from holdfast.commit.hadoop_jobs import ForeignJobPolicy

_EPILOG = """\b
Examples:
  holdfast recover s3://bucket/flights --dry-run
  holdfast recover s3://bucket/flights
  holdfast recover s3://bucket/flights --older-than 0s
  holdfast recover s3://bucket/flights --shared-dir /mnt/shared/staging
  holdfast recover s3://bucket/flights --foreign abort

A job whose decision is in the log is finished at once, whatever its age. Any other job may still be running, so it is
ended only if it has written nothing for --older-than. If a two_phase job was running after all, it fails cleanly; for
the other committers, choose an age at which a job is certainly dead. The exit code is 1 if something needs your
attention. It is safe to run this command again.

Jobs of Hadoop's own committers are reported, but changed only with --foreign: abort removes all output of a job, commit
completes a job whose job commit had started (with --accept-damage even if it is unknown whether all tasks had
committed). Hadoop's committers have no fencing: if you end a job that is still running, it may report success although
its files are missing."""


_QUIET_S = 3600.0


@click.command(epilog=_EPILOG)
@click.argument("url")
@click.option(
    "--older-than",
    type=age,
    help="End undecided jobs whose last write is this long ago, e.g. 15m, 1h, 2d; 0s for all.  "
    "[default: 1h; 1d for Hadoop's]",
)
@click.option("--dry-run", is_flag=True, help="Only report what would be done.")
@click.option(
    "--accept-damage", is_flag=True, help="End jobs even if some of their files or records are lost or may be missing."
)
@click.option("--foreign", type=Word(["abort", "commit"]), help="What to do with dead jobs of Hadoop's committers.")
@click.option("--shared-dir", default="", metavar="DIR_OR_URL", help="The sharedDir of staging-* jobs, if set.")
@click.option("--scratch-dir", default="", metavar="DIR", help="The scratchDir of staging-* jobs on this machine.")
@click.option(
    "--allow-unfenced",
    is_flag=True,
    help="Work on a store without conditional writes, as allowUnfenced does for jobs. No job may be running.",
)
@on_store
@reports
def recover(
    url: str,
    older_than: float | None,
    dry_run: bool,
    accept_damage: bool,
    foreign: str | None,
    shared_dir: str,
    scratch_dir: str,
    allow_unfenced: bool,
    reach: Reach,
    out: Output,
) -> None:
    """End every dead job at URL, whichever committer it used.

    Afterwards each decided job is either completely visible or completely absent, and none of its uploads is pending.
    """
    from holdfast.cli.destination_checks import NO_LOG, has_history, require_anything
    from holdfast.commit import CommitSettings
    from holdfast.commit import recover as end_jobs
    from holdfast.commit.hadoop_jobs import QUIET_S, ForeignJobPolicy, Resolution

    older_than_s = _QUIET_S if older_than is None else older_than
    resolution = None if foreign is None else Resolution(foreign)
    hadoops = ForeignJobPolicy(resolution=resolution, older_than_s=QUIET_S if older_than is None else older_than)
    settings = CommitSettings(shared_dir=shared_dir, scratch_dir=scratch_dir, allow_unfenced=allow_unfenced)
    with out.progress() as progress, reach.open(url, progress, settings=settings, staging=True) as ctx:
        require_anything(ctx)
        report = end_jobs(ctx, older_than_s=older_than_s, dry_run=dry_run, accept_damage=accept_damage, foreign=hadoops)
        is_elsewhere = not (report.jobs or report.damaged or report.pending) and not has_history(ctx)
    out.document(
        {
            "url": ctx.url,
            "dry_run": dry_run,
            "jobs": [_fields(job) for job in report.jobs],
            "rolled_forward": report.rolled_forward,
            "rolled_back": report.rolled_back,
            "cleaned_up": report.cleaned_up,
            "kept": report.kept,
            "left_alone": report.left_alone,
            "damaged": report.damaged,
            "pending": report.pending,
            "uploads_aborted": report.uploads_aborted,
            "folders_removed": report.folders_removed,
            "notes": report.notes,
        }
    )
    _show(report, older_than_s, hadoops, dry_run, ctx.url, out)
    if is_elsewhere:
        out.note(NO_LOG)
    if not report.clean:
        raise click.exceptions.Exit(PROBLEM)


def _fields(job: RecoveredJob) -> dict[str, object]:
    return {
        "job": job.job,
        "committer": job.committer,
        "action": job.action.value,
        "reason": job.reason,
        "files": job.files,
        "uploads": job.uploads,
        "lost": job.lost,
        "left_alone": job.is_alive,
        "foreign": job.is_foreign,
    }


_DONE = {
    "roll forward": ("rolled forward", "; all of its files are visible now"),
    "roll back": ("aborted", "; nothing of it is left"),
    "clean up": ("cleaned up", ""),
    "keep": ("kept for you to decide", ""),
}


def _show(
    report: RecoveryReport, older_than_s: float, foreign: ForeignJobPolicy, dry_run: bool, url: str, out: Output
) -> None:
    for job in report.jobs:
        if job.is_foreign and (job.is_alive or foreign.resolution is None):
            out.say(_describe_hadoop_job(job, foreign.older_than_s, url))
            continue
        if job.is_alive:
            out.say(
                f"left alone: undecided job {job.job} ({job.committer}) wrote something in the last "
                f"{duration(older_than_s)}; if it is dead, run holdfast recover {url} --older-than 0s, which ends "
                "every undecided job"
            )
            continue
        verb, result = _DONE[job.action.value]
        if dry_run and job.action.value != "keep":
            verb, result = f"would be {verb}", ""
        if job.lost:
            result = f"; lost: {counted(job.lost, 'file')} of the job, or manifests of its tasks"
        out.say(f"{verb}: job {job.job} ({job.committer}): {job.reason}{result}")
    for note in report.notes:
        out.say(f"note: {note}")
    for what, sentence in report.pending.items():
        out.say(f"not finished: {what}: {sentence}; remove the cause, then run this command again")
    for what, sentence in report.damaged.items():
        out.say(f"damaged: {what}: {sentence}")
    if report.uploads_aborted or report.folders_removed:
        removed = f"{counted(report.uploads_aborted, 'upload')}, {counted(report.folders_removed, 'folder')}"
        out.say(f"removed leftovers of finished jobs: {removed}")
    elif not (report.jobs or report.damaged or report.pending):
        out.say(f"nothing to do: {url} has no unfinished jobs")


def _describe_hadoop_job(job: RecoveredJob, older_than_s: float, url: str) -> str:
    """Describe a job of Hadoop's committers that was not changed, and how to end it."""
    what = f"job {job.job} ({job.committer}): {job.reason}"
    if job.is_alive:
        return (
            f"left alone: {what}; something was written here in the last {duration(older_than_s)}, so the job may "
            f"still be running; if it is dead, run holdfast recover {url} --foreign abort --older-than 0s, or "
            "--foreign commit"
        )
    return f"job of Hadoop: {what}; end it with holdfast recover {url} --foreign abort, or --foreign commit"
