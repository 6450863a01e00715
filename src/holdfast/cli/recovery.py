"""Run ``holdfast recover`` and ``holdfast uploads``: end the jobs that died, and abort the uploads that they left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import click

from holdfast.cli.arguments import parse_age
from holdfast.cli.command import CommandRun, ResourceKind, Url, Yes, command, option
from holdfast.cli.failures import PROBLEM
from holdfast.cli.inspection import EMPTY, NO_LOG, has_no_objects_or_uploads, require_nonempty
from holdfast.cli.output import Output, ResultColumn, duration_text, to_documents
from holdfast.wording import format_count

if TYPE_CHECKING:
    from holdfast.commit.leftovers import ForeignJobPolicy, RecoveredJob, RecoveryReport

# --- recover ----------------------------------------------------------------------------------------------------------
_QUIET_S = 3600.0
_IDLE = "End undecided jobs idle for so long, e.g. 15m or 2d; 0s for all.  [default: 1h; Hadoop's: 1d]"
_UNFENCED = "Work on a store without conditional writes, as allowUnfenced does for jobs. No job may be running."

_JOB = (
    ResultColumn("job", None, lambda job: job.job),
    ResultColumn("committer", None, lambda job: job.committer),
    ResultColumn("action", None, lambda job: job.action.value),
    ResultColumn("reason", None, lambda job: job.reason),
    ResultColumn("files", None, lambda job: job.files),
    ResultColumn("uploads", None, lambda job: job.uploads),
    ResultColumn("lost", None, lambda job: job.lost),
    ResultColumn("left_alone", None, lambda job: job.is_alive),
    ResultColumn("foreign", None, lambda job: job.is_foreign),
)


@command(ResourceKind.STORES)
def recover(
    run: CommandRun,
    url: Url,
    older_than: Annotated[float | None, option("--older-than", _IDLE, type=parse_age)],
    dry_run: Annotated[bool, option("--dry-run", "Only report what would be done.")],
    accept_damage: Annotated[bool, option("--accept-damage", "End jobs even if files or records are lost or may be.")],
    foreign: Annotated[bool, option("--foreign", "Also abort dead jobs of Hadoop's own committers.")],
    shared_dir: Annotated[str, option("--shared-dir", "The sharedDir of staging-* jobs.", metavar="URL")],
    scratch_dir: Annotated[str, option("--scratch-dir", "The scratchDir of staging-* jobs, here.", metavar="DIR")],
    allow_unfenced: Annotated[bool, option("--allow-unfenced", _UNFENCED)],
) -> None:
    """End every dead job at URL, whichever committer it used.

    Afterwards each decided job is either completely visible or completely absent, and none of its uploads is pending.

    Examples:
      holdfast recover s3://bucket/flights --dry-run
      holdfast recover s3://bucket/flights
      holdfast recover s3://bucket/flights --older-than 0s
      holdfast recover s3://bucket/flights --shared-dir /mnt/shared/staging
      holdfast recover s3://bucket/flights --foreign

    A job whose decision is in the log is finished at once, whatever its age. Any other job may still be running, so it
    is ended only if it has written nothing for --older-than. If a two_phase job was running after all, it fails
    cleanly; for the other committers, choose an age at which a job is certainly dead. The exit code is 1 if something
    needs your attention. It is safe to run this command again.

    Jobs of Hadoop's own committers are reported, but changed only with --foreign, which removes all output of a dead
    job: then run its application again. Hadoop's committers have no fencing: if you end a job that is still running, it
    may report success although its files are missing.
    """
    from holdfast.commit import CommitSettings, read_history
    from holdfast.commit import recover as end_jobs
    from holdfast.commit.leftovers import FOREIGN_QUIET_S, ForeignJobPolicy

    older_than_s = _QUIET_S if older_than is None else older_than
    hadoops = ForeignJobPolicy(abort=foreign, older_than_s=FOREIGN_QUIET_S if older_than is None else older_than)
    settings = CommitSettings(shared_dir=shared_dir or "", scratch_dir=scratch_dir or "", allow_unfenced=allow_unfenced)
    with run.out.progress() as progress, run.reach.open(url, progress, settings=settings, staging=True) as ctx:
        require_nonempty(ctx)
        report = end_jobs(ctx, older_than_s=older_than_s, dry_run=dry_run, accept_damage=accept_damage, foreign=hadoops)
        is_elsewhere = False
        if not (report.jobs or report.damaged or report.pending):
            found = read_history(ctx)
            is_elsewhere = not found.decisions and not found.open_jobs
    _report_recovery(report, older_than_s, hadoops, dry_run, ctx.url, run.out)
    if is_elsewhere:
        run.out.note(NO_LOG)
    if not report.clean:
        raise click.exceptions.Exit(PROBLEM)


_FIGURES = (
    *("rolled_forward", "rolled_back", "cleaned_up", "kept", "left_alone"),
    *("damaged", "pending", "uploads_aborted", "folders_removed", "notes"),
)
_DONE = {
    "roll forward": ("rolled forward", "; all of its files are visible now"),
    "roll back": ("aborted", "; nothing of it is left"),
    "clean up": ("cleaned up", ""),
    "keep": ("kept for you to decide", ""),
}


def _report_recovery(
    report: RecoveryReport, older_than_s: float, foreign: ForeignJobPolicy, dry_run: bool, url: str, out: Output
) -> None:
    figures = {name: getattr(report, name) for name in _FIGURES}
    out.document({"url": url, "dry_run": dry_run, "jobs": to_documents(_JOB, report.jobs), **figures})
    for job in report.jobs:
        out.say(_describe_recovered_job(job, older_than_s, foreign, dry_run, url))
    for note in report.notes:
        out.say(f"note: {note}")
    for what, sentence in report.pending.items():
        out.say(f"not finished: {what}: {sentence}; remove the cause, then run this command again")
    for what, sentence in report.damaged.items():
        out.say(f"damaged: {what}: {sentence}")
    if report.uploads_aborted or report.folders_removed:
        removed = f"{format_count(report.uploads_aborted, 'upload')}, {format_count(report.folders_removed, 'folder')}"
        out.say(f"removed leftovers of finished jobs: {removed}")
    elif not (report.jobs or report.damaged or report.pending):
        out.say(f"nothing to do: {url} has no unfinished jobs")


def _describe_recovered_job(
    job: RecoveredJob, older_than_s: float, foreign: ForeignJobPolicy, dry_run: bool, url: str
) -> str:
    """Describe what was done with a job, or why it was left alone and how to end it."""
    what = f"job {job.job} ({job.committer}): {job.reason}"
    if job.is_foreign and job.is_alive:
        return (
            f"left alone: {what}; something was written here in the last {duration_text(foreign.older_than_s)}, so the "
            f"job may still be running; if it is dead, run holdfast recover {url} --foreign --older-than 0s"
        )
    if job.is_foreign and not foreign.abort:
        return f"job of Hadoop: {what}; abort it with holdfast recover {url} --foreign"
    if job.is_alive:
        return (
            f"left alone: undecided job {job.job} ({job.committer}) wrote something in the last "
            f"{duration_text(older_than_s)}; if it is dead, run holdfast recover {url} --older-than 0s, which ends "
            "every undecided job"
        )
    verb, result = _DONE[job.action.value]
    if dry_run and job.action.value != "keep":
        verb, result = f"would be {verb}", ""
    if job.lost:
        result = f"; lost: {format_count(job.lost, 'file')} of the job, or manifests of its tasks"
    return f"{verb}: {what}{result}"


# --- uploads ----------------------------------------------------------------------------------------------------------
_UPLOAD = (
    ResultColumn("path", None, lambda one: one.path),
    ResultColumn("upload_id", None, lambda one: one.upload.upload_id),
    ResultColumn("age_s", "age", lambda one: round(one.age_s, 1), duration_text),
    ResultColumn("job", None, lambda one: one.job or None),
    ResultColumn("state", "state", lambda one: one.state.value),
    ResultColumn("committer", "committer", lambda one: one.committer or None, lambda name: name or ""),
    ResultColumn("", "path", lambda one: one.path),
)


@command(ResourceKind.STORES, name="list")
def list_uploads(
    run: CommandRun,
    url: Url,
    older_than: Annotated[
        float, option("--older-than", "Only uploads at least this old.", type=parse_age, default="0s")
    ],
    expected: Annotated[int | None, option("--expect", "Exit with 1 if there are not N.", type=click.IntRange(min=0))],
) -> None:
    """Show the pending uploads below URL.

    Examples:
      holdfast uploads list s3://bucket/flights
      holdfast uploads list s3://bucket --older-than 7d
      holdfast uploads list s3://bucket --expect 0 || echo "something is pending"

    Only uploads below URL are shown: for s3://bucket/dataset1, none of s3://bucket/dataset10. States: "over": the
    upload's job has ended, and nothing can complete it; "unfinished": the job may still commit; "unknown": the job left
    no record below URL; "Hadoop's": a job of Hadoop's committers started it; "other tool": another tool did.
    """
    from holdfast.commit.upload_owners import find_pending_uploads

    with run.reach.open(url) as ctx, run.out.show_spinner("listing uploads"):
        pending, note = find_pending_uploads(ctx)
        nothing = not pending and expected is None and has_no_objects_or_uploads(ctx)
    found = [one for one in pending if one.age_s >= older_than]
    run.out.document({"url": ctx.url, "uploads": to_documents(_UPLOAD, found), "expected": expected, "note": note})
    if found:
        run.out.show(_UPLOAD, found)
    what = "" if expected is None else f", {expected} expected"
    run.out.say(f"{format_count(len(found), 'pending upload')} below {ctx.url}{what}")
    _print_notes(note, nothing, run.out)
    if expected is not None and len(found) != expected:
        raise click.exceptions.Exit(PROBLEM)


@command(ResourceKind.STORES, name="abort")
def abort_uploads(
    run: CommandRun,
    url: Url,
    older_than: Annotated[
        float, option("--older-than", "Only uploads at least this old.", type=parse_age, default="1d")
    ],
    all_tools: Annotated[bool, option("--all-tools", "Also abort uploads of other tools and of unknown jobs.")],
    yes: Yes,
) -> None:
    """Abort uploads that belong to no unfinished job.

    Examples:
      holdfast uploads abort s3://bucket/flights
      holdfast uploads abort s3://bucket/flights --older-than 7d --all-tools --yes

    Uploads of an unfinished job are never aborted: they are its data. End the job with holdfast recover (for a job of
    Hadoop's committers, with --foreign), which aborts its uploads if that is safe. Uploads of other tools, and of jobs
    that left no record below URL, are aborted only with --all-tools. You are asked to confirm, unless you give --yes.
    """
    from holdfast.commit.upload_owners import UploadState, find_pending_uploads
    from holdfast.stores.base import multipart

    unowned = {UploadState.OTHER_TOOL, UploadState.UNKNOWN}
    out = run.out
    with run.reach.open(url) as ctx:
        with out.show_spinner("listing uploads"):
            found, note = find_pending_uploads(ctx)
            nothing = not found and has_no_objects_or_uploads(ctx)
        states = {UploadState.OVER, *(unowned if all_tools else ())}
        chosen = [one for one in found if one.age_s >= older_than and one.state in states]
        if chosen and not yes:
            out.show(_UPLOAD, chosen)
            out.confirm(f"Abort {format_count(len(chosen), 'upload')} permanently?")
        store = multipart(ctx.store)
        with out.progress() as progress:
            aborted = ctx.runner.map(lambda one: store.abort_upload(one.upload.key, one.upload.upload_id), chosen)
            for done, _ in enumerate(aborted, start=1):
                progress("abort", done, len(chosen))
    rest = [one for one in found if one not in chosen]
    kept = {
        "unfinished": sum(one.state is UploadState.UNFINISHED for one in rest),
        "hadoops": sum(one.state is UploadState.HADOOP for one in rest),
        "other_tools": 0 if all_tools else sum(one.state in unowned for one in rest),
    }
    kept["younger"] = len(rest) - sum(kept.values())
    out.document({"url": ctx.url, "aborted": to_documents(_UPLOAD, chosen), "left_alone": kept, "note": note})
    out.say(f"{format_count(len(chosen), 'upload')} aborted below {ctx.url}")
    _print_notes(note, nothing, out)
    sentences = {
        "unfinished": f"of unfinished jobs: run holdfast recover {ctx.url}",
        "hadoops": f"of Hadoop jobs: run holdfast recover {ctx.url} --foreign",
        "other_tools": "of other tools or of unknown jobs: see --all-tools",
        "younger": f"younger than {duration_text(older_than)}: see --older-than",
    }
    for reason, count in kept.items():
        if count:
            out.say(f"left alone: {count} {sentences[reason]}")


def _print_notes(note: str, nothing: bool, out: Output) -> None:
    if note:
        out.note(note)
    if nothing:
        out.note(EMPTY)
