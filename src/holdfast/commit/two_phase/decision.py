"""Decide a job: check everything that can be checked in advance, then append one entry to the log (C8, C11).

Earlier jobs are helped first: their decisions are rolled forward. A decision stands even if the work after it fails,
for example because a directory blocks a file name, an upload is lost, or a permission has been revoked. Such work stays
pending, a warning is logged, and every later job retries it. Pending work blocks only jobs that conflict with it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.commit import layout
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import is_job_to_be_skipped, make_durable_and_search_again
from holdfast.commit.nested_destinations import is_first_commit, refuse_nested_destination
from holdfast.commit.records import JobRecord, JobReport, Kind, SaveMode, Totals
from holdfast.commit.two_phase.decision_log import (
    append_entry,
    decision_record_exists,
    destination_gone_error,
    find_decision,
    is_write_id_used,
    job_exists,
    read_entry,
    read_log,
    read_newest_state,
    write_id_of,
)
from holdfast.commit.two_phase.manifests import (
    ManifestCache,
    PreparedOutput,
    build_manifest_list,
    iter_committed_manifests,
    iter_manifests,
)
from holdfast.commit.two_phase.pending_uploads import find_missing_uploads
from holdfast.commit.two_phase.publication import UPLOADS, find_job_publication
from holdfast.commit.two_phase.records import LogEntry, LogState, advance_streams, is_committed_batch
from holdfast.commit.two_phase.replacement import ReplacementPlan, load_replaced_files, plan_replaced_files
from holdfast.commit.two_phase.roll_forward import TransactionPlan, commit_in_one_transaction, plan_files, roll_forward
from holdfast.errors import ConflictError, FencedError, HoldfastError, NotFoundError
from holdfast.versioned_log import LogView


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDecision:
    """The log entry about a job: it commits the job, or another process has aborted the job with it.

    Attributes:
        view: the log right after this process created the entry; None if another process created the entry, or if it
            was already in the log.
        cache: manifests that this process still holds in memory; None if the process has loaded none.
        report: the report in ``_SUCCESS``, if this process wrote it together with the entry.
    """

    entry: LogEntry
    view: LogView | None = None
    cache: ManifestCache | None = None
    report: JobReport | None = None


_log = logging.getLogger(__name__)
_NEED_ALL = (SaveMode.OVERWRITE, SaveMode.FAIL, SaveMode.IGNORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckDecision:
    """A decision that could not be carried out completely (rolled forward), and why.

    Attributes:
        error: why it could not be rolled forward.
        is_visible: whether the decision is marked visible; None if the store did not answer.
    """

    entry: LogEntry
    error: HoldfastError
    is_visible: bool | None


def roll_forward_earlier_jobs(ctx: CommitContext, view: LogView) -> list[StuckDecision]:
    """Roll forward every decision that is not done, oldest first, and return the decisions that are stuck.

    Ensures: when the next job is decided, every earlier decision is done or is returned here. A job that would replace
    the output of a returned decision has to wait (`refuse_conflicting_job`). So if a roll forward does not find a
    pending upload or file, the only explanation is that its decision is already done.

    Raises:
        CorruptDataError: a log entry cannot be read, so its conflicts are unknown.
    """
    stuck = []
    for seq in view.unfinished:
        try:
            entry = read_entry(ctx, seq)
        except NotFoundError:
            continue  # another process has completed the decision, and its entry has been trimmed
        try:
            roll_forward(Measure(ctx), entry, visible=seq in view.visible)
        except HoldfastError as error:
            _log.warning("job %s is %sted, the remaining work is pending: %s", entry.job, entry.kind.value, error)
            stuck.append(StuckDecision(entry=entry, error=error, is_visible=_is_decision_visible(ctx, view, entry)))
    return stuck


def _is_decision_visible(ctx: CommitContext, view: LogView, entry: LogEntry) -> bool | None:
    """Check whether a stuck decision is visible; the failed roll forward may just have marked it."""
    if entry.kind is Kind.ABORT:
        return False
    if entry.seq in view.visible:
        return True
    try:
        return decision_record_exists(ctx, entry.seq, "visible")
    except HoldfastError:
        return None


def refuse_conflicting_job(
    ctx: CommitContext, job: JobRecord, prepared: PreparedOutput, stuck: Sequence[StuckDecision]
) -> None:
    """Refuse a job that conflicts with an earlier job's pending work, because the new job would take effect first.

    Raises:
        ConflictError: the jobs conflict; the error names the earlier job and the cause. The new job is undecided.
    """
    for earlier in stuck:
        if earlier.entry.kind is Kind.COMMIT and _job_conflicts(ctx, job, prepared, earlier):
            raise ConflictError(
                "an earlier job is committed but cannot be rolled forward, and this one touches the same files: fix "
                "the cause, run holdfast recover, then run the job again",
                url=ctx.url,
                earlier=earlier.entry.job,
                reason=str(earlier.error),
            ) from earlier.error


def _job_conflicts(ctx: CommitContext, job: JobRecord, prepared: PreparedOutput, earlier: StuckDecision) -> bool:
    """Check whether a job conflicts with files that a stuck decision must still publish or delete; if in doubt, yes."""
    entry = earlier.entry
    streams = [one.stream.stream for one in (job, entry.record) if one.stream is not None]
    if len(streams) == 2 and streams[0] == streams[1]:
        return True  # cleaning up after a batch also aborts the pending uploads of earlier batches
    if earlier.is_visible is None:
        return True
    try:
        if earlier.is_visible:
            # The decision may still delete files that it replaces, and a new file with the same bytes has the same
            # etag.
            return bool(prepared.chosen) and any(
                file.path in prepared.chosen for file in load_replaced_files(ctx, entry)
            )
        if job.mode in _NEED_ALL or entry.record.mode is SaveMode.OVERWRITE:
            return True
        by_partition = SaveMode.OVERWRITE_PARTITIONS in (job.mode, entry.record.mode)
        if not by_partition and not prepared.chosen:
            return False  # generated names are never used twice
        files = (file for manifest in iter_committed_manifests(ctx, entry) for file in manifest.files)
        return any(_path_overlaps(ctx, file.path, prepared, by_partition) for file in files)
    except HoldfastError:
        return True  # the decision's records are lost, or cannot be read at the moment


def _path_overlaps(ctx: CommitContext, path: str, prepared: PreparedOutput, by_partition: bool) -> bool:
    if by_partition and ctx.partition(path.rpartition("/")[0]) in prepared.partitions:
        return True
    # A name that the caller chose may also be a directory of the other job, or lie below one of its files.
    return any(
        path == other or path.startswith(f"{other}/") or other.startswith(f"{path}/") for other in prepared.chosen
    )


_MAY_EXPIRE_S = 6 * 3600.0
"""No server expires uploads younger than this: MinIO waits 24 hours, and bucket lifecycle rules count in days."""


def decide_job(measure: Measure, job: JobRecord, prepared: PreparedOutput, view: LogView) -> JobDecision | None:
    """Append the job's commit entry to the log, unless the job is already decided or has to be skipped.

    Guarantee: no error is raised if another driver of the job has decided it in the meantime. On a store with
    transactions, the decision is also carried out.

    Returns:
        None if the job needs no entry: its batch or its write id is already committed, or the mode is ``ignore`` and
        the destination contains data.

    Raises:
        InvalidRequestError: one of the job's files could not be made visible; the message says which.
        ConflictError: the job conflicts with an earlier job that cannot be rolled forward, or does not fit the table,
            or too many other jobs are being decided.
        NotFoundError: uploads of a job have expired. On a store without transactions, only those of a job that ran for
            a long time are checked.
        DestinationExistsError: the mode is ``fail`` and the destination contains data, or a file name that the caller
            chose is taken.
        LogRemovedError: the destination was renamed or deleted while the job ran, as its record shows. On a store
            without transactions, a rename that comes between this check and the decision is not noticed.
    """
    ctx = measure.ctx
    try:
        return _append_commit(measure, job, prepared, view)
    except HoldfastError:
        # The error may have been caused by the job's own visible files, if another driver has decided the job.
        with contextlib.suppress(FencedError):
            decided = find_decision(ctx, read_log(ctx), job.job, job.base_seq)
            if decided is not None:
                return JobDecision(entry=decided, cache=prepared.cache)
        raise


def _append_commit(measure: Measure, job: JobRecord, prepared: PreparedOutput, view: LogView) -> JobDecision | None:
    """Check the job against the newest entry, then append the job's entry; start over if another job comes first."""
    ctx = measure.ctx
    draft = _draft_entry(ctx, job, prepared)
    files = plan_files(ctx, job, prepared) if find_job_publication(job).at_once else None
    refuse_nested_destination(ctx, first=is_first_commit(ctx, view), deciding=True)
    _refuse_expired_uploads(ctx, job, prepared)
    for attempt in range(ctx.settings.conflict_attempts):
        stuck = roll_forward_earlier_jobs(ctx, view)
        newest = read_newest_state(ctx, view)
        if newest is not None:
            state = newest.state
            if is_already_committed(ctx, job, state, view):
                return None
            refuse_conflicting_job(ctx, job, prepared, stuck)
            if is_job_to_be_skipped(ctx, job.mode):
                return None
            table = ctx.contract(ctx, job, state.table)
            deleting = [earlier.entry for earlier in stuck if earlier.is_visible]
            plan = plan_replaced_files(ctx, job, prepared, f"{draft.token}-{attempt}", deleting)
            if files is None and plan.ref is not None:
                ctx.store.put(ctx.key(plan.ref.key), plan.data)
            find_job_publication(job).check(ctx, [*_list_target_paths(job, prepared), *plan.places])
            entry = replace(
                draft,
                seq=view.head + 1,
                decided_at_s=round(ctx.clock.now_s(), 3),
                replaced=plan.ref,
                replaced_by_job=plan.by_job,
                state=LogState(streams=advance_streams(job, state.streams), table=table),
                after=newest.token,
            )
            found = _append_entry_atomically(measure, entry, view, files, plan, prepared.cache)
            if found is not None:
                return found
        seen = view.head
        view = reread_log_after_conflict(ctx, seen, attempt)
        decided = find_decision(ctx, view, job.job, seen)
        if decided is not None:
            return JobDecision(entry=decided, cache=prepared.cache)
    raise ConflictError("too many other jobs are deciding on the destination: run the job again", url=ctx.url)


def _append_entry_atomically(
    measure: Measure,
    entry: LogEntry,
    view: LogView,
    files: TransactionPlan | None,
    plan: ReplacementPlan,
    cache: ManifestCache,
) -> JobDecision | None:
    """Append `entry`, in a transaction if there are `files`; return None if another job's entry was appended first."""
    after = replace(view, head=entry.seq)
    winner: LogEntry | None
    report: JobReport | None = None
    if files is None:
        if not job_exists(measure.ctx, entry.job):
            if read_log(measure.ctx).head >= entry.seq:
                return None  # another job of the same stream was decided first, and has cleaned up after this one
            raise destination_gone_error(measure.ctx)
        winner = append_entry(measure.ctx, entry, view)  # the commit point
    else:
        winner, report = commit_in_one_transaction(measure, entry, view, files, plan)  # the commit point
        after = replace(after, visible=view.visible | {entry.seq}, done=view.done | {entry.seq})
    if winner is None or winner.job != entry.job:
        return None
    if winner.token != entry.token:
        return JobDecision(entry=winner, cache=cache)
    return JobDecision(entry=winner, view=after, cache=cache, report=report)


def _draft_entry(ctx: CommitContext, job: JobRecord, prepared: PreparedOutput) -> LogEntry:
    """Return the part of the entry that does not depend on the log; store the list of manifests if it will be read."""
    token = ctx.ids.token()
    manifests, data = build_manifest_list(job, prepared, token)
    if not find_job_publication(job).at_once:
        ctx.store.put(ctx.key(manifests.key), data)
    return LogEntry(
        seq=0,
        kind=Kind.COMMIT,
        record=job,
        token=token,
        decided_at_s=0.0,
        totals=prepared.totals,
        tasks=len(prepared.refs),
        manifests=manifests,
        chosen=sum(prepared.chosen.values(), Totals()),
    )


def is_already_committed(ctx: CommitContext, job: JobRecord, state: LogState, view: LogView) -> bool:
    """Check whether the stream batch that `job` would commit, or the write with its write id, is already committed.

    Guarantee: on a store with transactions, what is committed is durable.

    Args:
        state: the state that the newest entry of `view` contains.
    """

    def is_still_committed() -> bool:
        newest = read_newest_state(ctx, read_log(ctx))
        return newest is not None and is_committed_batch(job, newest.state.streams)  # else the log has moved on

    return make_durable_and_search_again(
        ctx, is_committed_batch(job, state.streams), is_still_committed
    ) or is_write_id_used(ctx, job, view)


def reread_log_after_conflict(ctx: CommitContext, seen: int, attempt: int) -> LogView:
    """Read the log again after another writer has appended to it; if no entry after `seen` is listed yet, wait once."""
    view = read_log(ctx)
    if view.head <= seen:
        ctx.clock.sleep(min(0.05 * 2.0**attempt, 1.0))
        view = read_log(ctx)
    return view


def _refuse_expired_uploads(ctx: CommitContext, job: JobRecord, prepared: PreparedOutput) -> None:
    """Check that a long job's uploads are still pending; the server or a lifecycle rule may have aborted them.

    Raises:
        NotFoundError: some uploads have expired. The job is undecided.
    """
    if job.publication != UPLOADS.name or ctx.clock.now_s() - job.started_at_s < _MAY_EXPIRE_S:
        return
    gone = find_missing_uploads(ctx, job, iter_manifests(ctx, prepared.refs, prepared.cache))
    if gone:
        raise NotFoundError(
            "uploads of the job have expired, the server or a lifecycle rule of the bucket aborted them: run the job "
            "again, in less time or where idle uploads are retained longer",
            url=ctx.url,
            job=job.job,
            gone=len(gone),
            first=gone[0],
        )


def _list_target_paths(job: JobRecord, prepared: PreparedOutput) -> list[str]:
    """List the paths that must be free to write to.

    These are the names that the caller chose, ``_SUCCESS``, the record of the write id if there is one, and one
    generated name in each of the job's directories.
    """
    ours = (f"{directory}/{job.job}" if directory else job.job for directory in sorted(prepared.partitions))
    written = [layout.write_id_record_path(job.job)] if write_id_of(job) else []
    return [layout.SUCCESS, *written, *ours, *prepared.chosen]
