"""Commit a job in the transaction that decides it, on stores that make many changes in one step.

The transaction contains everything that `roll_forward` does step by step on other stores: it publishes all files, marks
the decision visible, deletes the replaced files, writes the report, stores the write id and marks the decision done. It
also deletes the records that nobody needs after the decision: the job's own and the manifests that count. So every
reader sees the job at one instant (C4), and no process ever finds such a decision half carried out. Cleanup after
attempts that do not count follows, and needs no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.measure import Measure
from holdfast.commit.records import JobRecord, JobReport
from holdfast.commit.save_mode import SaveMode
from holdfast.commit.success_file import encode_report
from holdfast.commit.two_phase.decision_log import append_entry, destination_gone
from holdfast.commit.two_phase.job_summary import JobSummary, report_job
from holdfast.commit.two_phase.manifests import Prepared, iter_manifests
from holdfast.commit.two_phase.records import LogEntry
from holdfast.commit.two_phase.replacement import ReplacementPlan, deletions
from holdfast.commit.two_phase.roll_forward import done_mark
from holdfast.commit.two_phase.write_ids import write_record
from holdfast.errors import DestinationExistsError, HoldfastError, InvalidRequestError, NotFoundError, PreconditionError
from holdfast.stores.base import Change, Complete, Create, Delete, Overwrite, Put, Require
from holdfast.versioned_log import LogView
from holdfast.wording import OR_OVERWRITE

_REPLACING = (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFiles:
    """The changes that do not depend on the state of the log, planned once.

    Attributes:
        completions: the job's files.
        required: keys of records without which nothing may happen: they are where the destination is.
        obsolete: keys of the records that nobody needs after the decision.
        summary: the facts about the files for the job's report.
    """

    completions: Sequence[Complete]
    required: Sequence[str]
    obsolete: Sequence[str]
    summary: JobSummary


def plan_files(ctx: CommitContext, job: JobRecord, prepared: Prepared) -> JobFiles:
    """Plan the completion of the job's uploads.

    A file replaces another one only if the caller chose its name, and the mode says so. In every other case its name
    must be free.

    Memory: about 500 bytes per file. The manifests in the cache are dropped, because nobody reads them again.
    """
    summary = JobSummary()
    completions: list[Complete] = []
    for manifest in iter_manifests(ctx, prepared.refs, prepared.cache):
        summary.note(ctx, manifest)
        for file in manifest.files:
            replaces = job.mode in _REPLACING and file.path in prepared.chosen
            mode = Overwrite() if replaces else Create()
            completions.append(Complete(ctx.key(file.path), file.upload_id, file.upload_parts, mode))
    prepared.cache.drop()
    obsolete = [ctx.key(path) for path in (layout.job_record(job.job), *(ref.key for ref in prepared.refs))]
    # The tasks of a stream write the job's record, so some of them may have written it after a rename.
    required = obsolete if job.stream else obsolete[:1]
    return JobFiles(completions=completions, required=required, obsolete=obsolete, summary=summary)


def commit_at_once(
    measure: Measure, entry: LogEntry, view: LogView, files: JobFiles, plan: ReplacementPlan
) -> tuple[LogEntry | None, JobReport]:
    """Decide a job and carry out the decision, in one transaction.

    Guarantee: if the returned entry is `entry`, the job is committed, everything that readers see of it is visible, and
    the decision is done. Otherwise nothing happened.

    Args:
        view: the log for which the job was decided.

    Returns:
        The entry that has the number of `entry` now, and the report of the job. The entry is None if a record that the
        transaction creates has appeared meanwhile: read the log again.

    Raises:
        DestinationExistsError: the caller chose a file name that has been taken since the plan was made.
        NotFoundError: an upload of the job has expired, or parts of it are lost.
        InvalidRequestError: the store does not accept a file at one of the names.
        LogRemovedError: the destination was renamed or deleted while the job ran.
        FencedError: see `append_entry`.

    Crash: the job is undecided, or it is committed and only the leftovers of attempts that do not count remain.
    """
    ctx = measure.ctx
    report = report_job(measure, entry, files.summary)
    changes = [*files.completions, *_records(ctx, entry, files, plan, report)]
    try:
        return append_entry(ctx, entry, view, changes), report
    except PreconditionError as error:
        if error.variables.get("key") in files.required:
            raise destination_gone(ctx) from error
        path = _refused_file(ctx, error)
        if not path:
            return None, report
        raise DestinationExistsError(
            f"a file with this name already exists: write under another name, {OR_OVERWRITE}",
            url=ctx.url,
            path=path,
        ) from error
    except (NotFoundError, InvalidRequestError) as error:
        path = _refused_file(ctx, error)
        is_lost = isinstance(error, NotFoundError) or "part" in error.variables
        if not path or not is_lost:
            raise  # the bucket is missing, or the store does not accept the name
        raise NotFoundError(
            "uploads of the job have expired, something aborted them: run the job again",
            url=ctx.url,
            job=entry.job,
            first=path,
        ) from error


def _refused_file(ctx: CommitContext, error: HoldfastError) -> str:
    """Return the path of the job's file that made the store refuse the transaction; empty if it was something else."""
    key = str(error.variables.get("key", ""))
    path = key.removeprefix(ctx.prefix)
    return path if key.startswith(ctx.prefix) and not layout.is_hidden(path) else ""


def _records(
    ctx: CommitContext, entry: LogEntry, files: JobFiles, plan: ReplacementPlan, report: JobReport
) -> Iterator[Change]:
    """Iterate over all changes except the entry and the files."""
    yield from map(Require, files.required)
    yield from deletions(ctx, entry, plan.files())
    # No decision is later than this one, so the report of an earlier job is replaced in any case (C6).
    yield Put(ctx.key(layout.SUCCESS), encode_report(report))
    written = write_record(entry)
    if written is not None:
        yield Put(ctx.key(written[0]), written[1], Create())
    yield Put(ctx.key(layout.log_mark(entry.seq, "visible")), files.summary.checksums.encode())
    yield Put(ctx.key(layout.log_mark(entry.seq, "done")), done_mark())
    yield from (Delete(key) for key in files.obsolete)
