"""Carry out a logged decision: step by step, or in the transaction that decides the job.

The steps of `roll_forward` are data: `PUBLISH`, then `WHEN_VISIBLE`, in this order. Each is idempotent: any process may
run it, at any time (C10). The driver that decided the job runs the steps first; after a crash, the next job on the
destination or `recover` runs those whose mark is missing.

On stores that make many changes in one step, `commit_in_one_transaction` decides the job and does all of this, apart
from the cleanup, in one transaction; it also deletes the records that are not needed after the decision. So every
reader sees the job at one instant (C4), and no process ever finds such a decision half carried out.

To add a step: a `RollForwardStep` of `WHEN_VISIBLE`, before ``delete_replaced`` if it must come before files go, and
before `CLEAN_UP`, which deletes the manifests; the same as a `Change` in `_iter_record_changes`; its path in `layout`,
if it is outside the job's folder also in `is_holdfast_record` (recovery aborts what is half written there), in
`decision._list_target_paths` and in `check_publishable`, so that nothing blocks it after the decision (C11). That check
looks for directories: a record that must be new needs a look of its own. `decision_log.save_write_id_record` is an
example. Files: `iter_committed_manifests` (``work.summary`` is empty if a manifest is lost), and a field of
`TransactionPlan`. Recovery knows neither the settings of the writer nor its contract: a step has only the `LogEntry`,
and its record follows from that, without a clock. What later jobs continue is in `LogState`, set in
`decision._append_commit` and copied by aborts, which have numbers, too; the schema is in ``entry.state.table``, as
`table.contract` encodes it, which this package may not import. A job may be decided while an earlier one is stuck: if
the order of steps matters, let them conflict in `decision._job_conflicts`. `table.foreign` refuses names of other
tools, such as ``_delta_log``. Tests: simulation/test_crashes.py, unit/commit/two_phase/test_transaction.py.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.codec import PackedLines
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.destination import REPLACING
from holdfast.commit.ids import AttemptId, file_owner
from holdfast.commit.records import FileEntry, JobRecord, JobReport, Kind
from holdfast.commit.statistics import NO_STATISTICS, Statistics
from holdfast.commit.success_file import FILENAME_LIMIT, encode_report, write_success_file
from holdfast.commit.two_phase.cleanup import clean_up_decided_job
from holdfast.commit.two_phase.decision_log import (
    append_entry,
    decision_record_exists,
    destination_gone_error,
    make_write_id_record,
    save_write_id_record,
    write_decision_mark,
)
from holdfast.commit.two_phase.manifests import (
    ManifestCache,
    PreparedOutput,
    iter_committed_manifests,
    iter_manifests,
    load_manifest_list,
)
from holdfast.commit.two_phase.publication import find_job_publication
from holdfast.commit.two_phase.records import LogEntry, TaskManifest
from holdfast.commit.two_phase.replacement import ReplacementPlan, delete_replaced_files, iter_deletions
from holdfast.errors import (
    CorruptDataError,
    DestinationExistsError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    PreconditionError,
)
from holdfast.stores.base import Change, Complete, Create, Delete, Overwrite, Put, Require, batched_keys
from holdfast.versioned_log import LogView
from holdfast.wording import OR_OVERWRITE

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class JobSummary:
    """Sums up a job's committed manifests, for its report and for its mark ``visible``.

    Attributes:
        names: keys of the first files.
        statistics: the statistics of all tasks.
        checksums: the checksums of all files, for the mark ``visible``.
        lost: files that are neither pending nor visible, and manifests that cannot be read.
    """

    names: list[str] = field(default_factory=list)
    statistics: Statistics = NO_STATISTICS
    checksums: PackedLines = field(default_factory=PackedLines)
    lost: list[str] = field(default_factory=list)

    def note(self, ctx: CommitContext, manifest: TaskManifest) -> None:
        """Add the files and the statistics of a task."""
        self.statistics += manifest.statistics
        for file in manifest.files:
            self.checksums.add({"path": file.path, "crc32": file.crc32})
        for file in manifest.files[: FILENAME_LIMIT - len(self.names)]:
            self.names.append("/" + ctx.key(file.path).lstrip("/"))


def summarize_job(ctx: CommitContext, entry: LogEntry) -> JobSummary:
    """Read the committed manifests for the report; return an empty summary if any is already deleted or damaged."""
    summary = JobSummary()
    try:
        for manifest in iter_committed_manifests(ctx, entry):
            summary.note(ctx, manifest)
    except (NotFoundError, CorruptDataError):
        return JobSummary()
    return summary


def make_job_report(measure: Measure, entry: LogEntry, summary: JobSummary, lost: int = 0) -> JobReport:
    """Return the report of a committed job.

    Args:
        measure: measures the job commit or recovery that writes the report.
        lost: how many files are lost.
    """
    return JobReport(
        job=entry.job,
        committer=entry.record.committer,
        mode=entry.record.mode,
        at_s=entry.decided_at_s,
        success=True,
        stage="job_stage_save_success_marker",
        totals=entry.totals,
        tasks=entry.tasks,
        filenames=tuple(summary.names),
        metrics={**measure.metrics(), "files_lost": lost},
        diagnostics={"holdfast.seq": str(entry.seq), "holdfast.publication": entry.record.publication},
        statistics=summary.statistics + measure.statistics(),
    )


# --- the steps --------------------------------------------------------------------------------------------------------
@dataclass(slots=True, kw_only=True)
class DecisionWork:
    """A decision that `roll_forward` carries out, and what its steps pass on to later steps.

    Attributes:
        cache: manifests that the caller still holds in memory.
        accept_damage: if files of the job are lost, record the lost files and continue.
        damaged: the lost files and lists of which a person accepted the loss.
        report: the report in ``_SUCCESS``, once it is written.
    """

    measure: Measure
    entry: LogEntry
    cache: ManifestCache | None = None
    accept_damage: bool = False
    summary: JobSummary = field(default_factory=JobSummary)
    damaged: list[str] = field(default_factory=list)
    report: JobReport | None = None


@dataclass(frozen=True, slots=True)
class RollForwardStep:
    """A step after a decision, timed as ``job_stage_<name>``.

    Attributes:
        run: does the step, and returns the content of its mark; None if another process has done all steps.
        mark: the mark of the decision that is written when the step is done: ``visible`` or ``done``. A log with
            any other mark is refused as damaged (`VersionedLog.read`). Empty for a step without a mark, which is run
            again until a later step has written its own.
    """

    name: str
    run: Callable[[DecisionWork], bytes | None]
    mark: str = ""


def _publish_files(work: DecisionWork) -> bytes | None:
    """Make all files visible.

    Raises:
        CorruptDataError: files are lost. Nothing was deleted.
    """
    ctx, entry = work.measure.ctx, work.entry
    published = _publish_all(ctx, entry, work.cache, work.accept_damage)
    if published is None and _is_decision_done(ctx, entry.seq):
        return None
    work.summary = published or JobSummary()
    lost = work.summary.lost
    if lost and not work.accept_damage:
        raise CorruptDataError(
            "files of a committed job are lost, something aborted its uploads; nothing was deleted: restore them or "
            "run holdfast recover --accept-damage",
            url=ctx.url,
            job=entry.job,
            lost=len(lost),
            first=lost[0],
        )
    work.damaged += lost
    return work.summary.checksums.encode()


def _delete_replaced_files(work: DecisionWork) -> bytes:
    """Delete the replaced files; if their list cannot be read and the damage is accepted, they remain."""
    entry = work.entry
    try:
        delete_replaced_files(work.measure.ctx, entry)
    except CorruptDataError as error:
        if not work.accept_damage or entry.replaced is None:
            raise
        _log.warning(
            "the files that job %s replaced are unknown and remain: delete them yourself (%s)", entry.job, error
        )
        work.damaged.append(entry.replaced.key)
    return b""


def _write_report(work: DecisionWork) -> bytes:
    """Write ``_SUCCESS``, and the record of the write id."""
    work.report = make_job_report(work.measure, work.entry, work.summary, len(work.damaged))
    write_success_file(work.measure.ctx, work.report, work.entry.seq)
    save_write_id_record(work.measure.ctx, work.entry)
    return b""


def _clean_up(work: DecisionWork) -> bytes:
    """Abort the uploads that are still pending under the job's id: now they belong to attempts that do not count."""
    clean_up_decided_job(work.measure.ctx, work.entry)
    return encode_done_mark(work.damaged)


PUBLISH = RollForwardStep("publish", _publish_files, "visible")
CLEAN_UP = RollForwardStep("cleanup", _clean_up, "done")
WHEN_VISIBLE = (
    RollForwardStep("delete_replaced", _delete_replaced_files),
    RollForwardStep("save_success_marker", _write_report),
    CLEAN_UP,
)
"""The steps after `PUBLISH`, in order: those that are left of a commit that has the mark ``visible``."""


def roll_forward(
    measure: Measure,
    entry: LogEntry,
    *,
    visible: bool = False,
    cache: ManifestCache | None = None,
    accept_damage: bool = False,
) -> JobReport | None:
    """Roll a decision forward until it is done.

    Args:
        measure: measures the job commit or recovery that calls this.
        visible: whether the log view shows the decision's ``visible`` mark.
        cache, accept_damage: see `DecisionWork`.

    Returns:
        The report of a commit; None for an abort, or if another process has already done all steps.

    Raises:
        CorruptDataError: files of a committed job are lost. Nothing was deleted: restore them, or accept the loss with
            ``holdfast recover --accept-damage``.
    """
    work = DecisionWork(measure=measure, entry=entry, cache=cache, accept_damage=accept_damage)
    steps: Sequence[RollForwardStep] = (PUBLISH, *WHEN_VISIBLE)
    if entry.kind is Kind.ABORT:
        steps = (CLEAN_UP,)
    elif visible:
        work.summary = summarize_job(measure.ctx, entry)
        steps = WHEN_VISIBLE
    for step in steps:
        with measure.stage(f"job_stage_{step.name}"):
            content = step.run(work)
        if content is None:
            return None
        if step.mark:
            write_decision_mark(measure.ctx, entry, step.mark, content)
    return work.report


def encode_done_mark(damaged: Sequence[str] = ()) -> bytes:
    """Return the content of the mark ``done``.

    Args:
        damaged: the lost files and lists of which a person accepted the loss.
    """
    return json.dumps({"damaged": damaged[:1000]}).encode() + b"\n"


def check_publishable(ctx: CommitContext, entry: LogEntry) -> None:
    """Check whether `roll_forward` could publish the files of a commit. This only reads.

    Raises:
        NotFoundError: manifests of the commit are lost.
        HoldfastError: something blocks the target of a file.
    """
    check = find_job_publication(entry.record).check
    paths = (file.path for manifest in iter_committed_manifests(ctx, entry) for file in manifest.files)
    for batch in batched_keys(itertools.chain(paths, [layout.SUCCESS])):
        check(ctx, batch)


# --- publish ----------------------------------------------------------------------------------------------------------
def _publish_all(
    ctx: CommitContext, entry: LogEntry, cache: ManifestCache | None, accept_damage: bool
) -> JobSummary | None:
    """Publish every file; return None if another process has made the job visible in the meantime."""
    publish = find_job_publication(entry.record).publish_file
    summary = JobSummary()

    def iter_files(manifests: Iterator[TaskManifest]) -> Iterator[tuple[FileEntry, AttemptId]]:
        for manifest in manifests:
            summary.note(ctx, manifest)
            yield from ((file, manifest.attempt) for file in manifest.files)

    # A process that has a cache has decided the job itself, so usually no file is published yet.
    published = frozenset() if cache is not None else _list_published(ctx, entry)

    def publish_file(found: tuple[FileEntry, AttemptId]) -> tuple[FileEntry, bool]:
        file, attempt = found
        return file, (file.path, file.size_bytes) in published or publish(ctx, file, attempt)

    try:
        if accept_damage:
            manifests: Iterator[TaskManifest] = _readable_manifests(ctx, entry, summary.lost)
        else:
            manifests = iter_committed_manifests(ctx, entry, cache)
        found = iter_files(manifests)
        for done, (file, is_visible) in enumerate(ctx.runner.map(publish_file, found), start=1):
            if not is_visible:
                summary.lost.append(file.path)
            ctx.progress("publish", done, entry.totals.files)
    except NotFoundError as error:
        # Holdfast deletes the manifests only after the decision is visible.
        if _is_decision_visible(ctx, entry.seq):
            return None
        raise CorruptDataError(
            "the manifests of a committed job are lost, something deleted them; no output was deleted: restore them or "
            "run holdfast recover --accept-damage",
            url=ctx.url,
            job=entry.job,
        ) from error
    if summary.lost and _is_decision_visible(ctx, entry.seq):
        return None  # another process has published the files, and a later job has replaced them
    return summary


def _list_published(ctx: CommitContext, entry: LogEntry) -> frozenset[tuple[str, int]]:
    """List files that an earlier call has published, as (path, size in bytes), which saves one request per file.

    Generated names are used only once, so a file that is listed with the right size needs no further check. Files that
    are not listed, and files whose names the caller chose, are published as usual. So the listing may stop as soon as
    it would cost more requests than it saves.
    """
    enough = 1000 * (entry.totals.files // 4)
    found = itertools.islice(layout.iter_visible(ctx.store, ctx.prefix), enough)
    try:
        return frozenset(
            (path, info.size_bytes)
            for path, info in found
            if (owner := file_owner(path)) is not None and owner.job == entry.job
        )
    except HoldfastError:
        return frozenset()  # the listing is only an optimization


def _readable_manifests(ctx: CommitContext, entry: LogEntry, lost: list[str]) -> Iterator[TaskManifest]:
    """Iterate over the manifests that can still be read; append the keys of all others to `lost`."""
    assert entry.manifests is not None  # decode_entry checked it
    try:
        refs = load_manifest_list(ctx, entry.manifests, None)
    except (NotFoundError, CorruptDataError):
        lost.append(entry.manifests.key)
        return
    for ref in refs:
        try:
            yield from iter_manifests(ctx, [ref], None)
        except (NotFoundError, CorruptDataError):
            lost.append(ref.key)


# --- progress of a decision -------------------------------------------------------------------------------------------
def _is_decision_visible(ctx: CommitContext, seq: int) -> bool:
    return decision_record_exists(ctx, seq, "visible") or _is_decision_done(ctx, seq)


def _is_decision_done(ctx: CommitContext, seq: int) -> bool:
    """Check whether a decision is done: it has the mark ``done``, or it has been trimmed, so it must have been done."""
    return decision_record_exists(ctx, seq, "done") or not decision_record_exists(ctx, seq, "json")


# --- at once ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPlan:
    """The changes of `commit_in_one_transaction` that do not depend on the state of the log, planned once.

    Attributes:
        completions: the job's files.
        required: keys of records that must exist, or else the transaction fails: without them, the destination was
            renamed or deleted.
        obsolete: keys of the records that are no longer needed after the decision.
        summary: the facts about the files for the job's report.
    """

    completions: Sequence[Complete]
    required: Sequence[str]
    obsolete: Sequence[str]
    summary: JobSummary


def plan_files(ctx: CommitContext, job: JobRecord, prepared: PreparedOutput) -> TransactionPlan:
    """Plan the completion of the job's uploads.

    A file replaces another one only if the caller chose its name, and the mode says so. In every other case its name
    must be free.

    Memory: about 500 bytes per file. The manifests in the cache are dropped, because they are not read again.
    """
    summary = JobSummary()
    completions: list[Complete] = []
    for manifest in iter_manifests(ctx, prepared.refs, prepared.cache):
        summary.note(ctx, manifest)
        for file in manifest.files:
            replaces = job.mode in REPLACING and file.path in prepared.chosen
            mode = Overwrite() if replaces else Create()
            completions.append(Complete(ctx.key(file.path), file.upload_id, file.upload_parts, mode))
    prepared.cache.drop()
    obsolete = [ctx.key(path) for path in (layout.job_record_path(job.job), *(ref.key for ref in prepared.refs))]
    # The tasks of a stream write the job's record, so some of them may have written it after a rename.
    required = obsolete if job.stream else obsolete[:1]
    return TransactionPlan(completions=completions, required=required, obsolete=obsolete, summary=summary)


def commit_in_one_transaction(
    measure: Measure, entry: LogEntry, view: LogView, files: TransactionPlan, plan: ReplacementPlan
) -> tuple[LogEntry | None, JobReport]:
    """Decide a job and carry out the decision, in one transaction.

    The steps of `roll_forward` are not used: each of them sends requests of its own, and here their effects have to be
    changes of one transaction, which either decides the job and does everything, or does nothing.

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
    report = make_job_report(measure, entry, files.summary)
    changes = [*files.completions, *_iter_record_changes(ctx, entry, files, plan, report)]
    try:
        return append_entry(ctx, entry, view, changes), report
    except PreconditionError as error:
        if error.variables.get("key") in files.required:
            raise destination_gone_error(ctx) from error
        path = _find_refused_path(ctx, error)
        if not path:
            return None, report
        raise DestinationExistsError(
            f"a file with this name already exists: write under another name, {OR_OVERWRITE}",
            url=ctx.url,
            path=path,
        ) from error
    except (NotFoundError, InvalidRequestError) as error:
        path = _find_refused_path(ctx, error)
        is_lost = isinstance(error, NotFoundError) or "part" in error.variables
        if not path or not is_lost:
            raise  # the bucket is missing, or the store does not accept the name
        raise NotFoundError(
            "uploads of the job have expired, something aborted them: run the job again",
            url=ctx.url,
            job=entry.job,
            first=path,
        ) from error


def _find_refused_path(ctx: CommitContext, error: HoldfastError) -> str:
    """Return the path of the job's file that made the store refuse the transaction; empty if it was something else."""
    key = str(error.variables.get("key", ""))
    path = key.removeprefix(ctx.prefix)
    return path if key.startswith(ctx.prefix) and not layout.is_hidden(path) else ""


def _iter_record_changes(
    ctx: CommitContext, entry: LogEntry, files: TransactionPlan, plan: ReplacementPlan, report: JobReport
) -> Iterator[Change]:
    """Iterate over all changes except the entry and the files."""
    yield from map(Require, files.required)
    yield from iter_deletions(ctx, entry, plan.files())
    # No decision is later than this one, so the report of an earlier job is replaced in any case (C6).
    yield Put(ctx.key(layout.SUCCESS), encode_report(report))
    written = make_write_id_record(entry)
    if written is not None:
        yield Put(ctx.key(written[0]), written[1], Create())
    yield Put(ctx.key(layout.log_mark_path(entry.seq, "visible")), files.summary.checksums.encode())
    yield Put(ctx.key(layout.log_mark_path(entry.seq, "done")), encode_done_mark())
    yield from (Delete(key) for key in files.obsolete)
