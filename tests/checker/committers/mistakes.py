"""Mistakes in `two_phase`: functions that run in place of shipped ones.

Each takes the shipped function first (see `planting`). `mutants` says what a developer might have been thinking.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from holdfast.commit import layout
from holdfast.commit.codec import sha256_hex
from holdfast.commit.committer import TaskReports
from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.ids import AttemptId, FileOwner, JobId
from holdfast.commit.intents import QUIET_S
from holdfast.commit.leftovers import RecoveryReport
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, JobReport, Kind, ManifestRef, TaskCommit, Totals
from holdfast.commit.task import AttemptContext, count_totals
from holdfast.commit.two_phase import roll_forward, snapshot
from holdfast.commit.two_phase.decision import JobDecision, StuckDecision
from holdfast.commit.two_phase.decision_log import append_entry, find_decision, write_decision_mark
from holdfast.commit.two_phase.job import abort_job, commit_job
from holdfast.commit.two_phase.manifests import ManifestCache, PreparedOutput
from holdfast.commit.two_phase.pending_uploads import LiveJobs, UploadRecords
from holdfast.commit.two_phase.publication import PublicationMethod, find_job_publication
from holdfast.commit.two_phase.records import LogEntry, decode_entry, decode_manifest, encode_entry
from holdfast.commit.two_phase.replacement import delete_replaced_files
from holdfast.commit.two_phase.roll_forward import JobSummary
from holdfast.errors import FencedError, OutcomeUnknownError, UnavailableError
from holdfast.stores.base import Change, Part, UploadInfo, iter_objects
from holdfast.stores.probe import UploadListingMode
from holdfast.versioned_log import LogView, RecordStore
from tests.checker.committers.planting import planted, swap

__all__ = [
    "abort_every_upload_of_the_job",
    "abort_without_entry",
    "abort_without_looking",
    "announce_nothing",
    "commit_open_job",
    "commit_without_looking",
    "complete_without_looking",
    "create_unconditionally",
    "delete_replaced_first",
    "delete_then_rename",
    "end_every_job",
    "help_nobody",
    "hide_nothing",
    "ignore_trouble",
    "list_below_bare_prefix",
    "list_manifests",
    "look_in_own_destination",
    "mark_done_first",
    "mark_visible_first",
    "name_by_task",
    "name_without_attempt",
    "publish_first",
    "publish_in_task",
    "see_no_change",
    "sweep_with_limit_only",
    "take_any_entry",
    "take_every_entry_for_anothers",
    "take_silence_for_completion",
    "take_silence_for_success",
    "try_next_number",
]


# --- the decision -----------------------------------------------------------------------------------------------------
def publish_first(
    shipped: Callable[..., LogEntry], ctx: CommitContext, entry: LogEntry, view: LogView, changes: Sequence[Change] = ()
) -> LogEntry:
    """In place of `append_entry`: publish the files of the job, then write its decision."""
    if entry.kind is Kind.COMMIT:
        roll_forward._publish_all(ctx, entry, None, False)
    return shipped(ctx, entry, view, changes)


def abort_without_entry(
    shipped: Callable[..., LogEntry], ctx: CommitContext, entry: LogEntry, view: LogView, changes: Sequence[Change] = ()
) -> LogEntry:
    """In place of `append_entry`: write no abort, so that the job's files are dropped without one."""
    if entry.kind is Kind.ABORT:
        raise FencedError("the abort is not in the log", job=entry.job)
    return shipped(ctx, entry, view, changes)


def _blind_once() -> Callable[..., LogEntry | None]:
    """In place of `find_decision`: find nothing the first time."""
    looks = 0

    def find(
        shipped: Callable[..., LogEntry | None], ctx: CommitContext, view: LogView, job: JobId, after: int
    ) -> LogEntry | None:
        nonlocal looks
        looks += 1
        return None if looks == 1 else shipped(ctx, view, job, after)

    return find


def commit_without_looking(
    shipped: Callable[..., JobDecision | None], measure: Measure, job: JobRecord, reports: TaskReports
) -> JobDecision | None:
    """In place of the commit's `_decide`: do not check whether the log already has an entry about the job."""
    with planted(swap(find_decision, _blind_once())):
        return shipped(measure, job, reports)


def believe_in_the_record(shipped: Callable[..., bool], ctx: CommitContext, job: JobId) -> bool:
    """In place of `job_exists`: do not look."""
    return True


def abort_without_looking(shipped: Callable[..., JobOutcome], measure: Measure, job: JobRecord) -> JobOutcome:
    """In place of `abort_job`: do not check whether the log already has an entry about the job."""
    with planted(swap(find_decision, _blind_once())):
        return shipped(measure, job)


def _anothers(entry: LogEntry) -> LogEntry:
    """Return the entry as if it were about another job."""
    return replace(entry, record=replace(entry.record, job=JobId("another")))


def try_next_number(
    shipped: Callable[..., JobDecision | None],
    measure: Measure,
    job: JobRecord,
    prepared: PreparedOutput,
    view: LogView,
) -> JobDecision | None:
    """In place of `_append_commit`: after a conflict, do not check whether the winner decided this very job."""

    def append(
        shipped: Callable[..., LogEntry],
        ctx: CommitContext,
        entry: LogEntry,
        view: LogView,
        changes: Sequence[Change] = (),
    ) -> LogEntry:
        found = shipped(ctx, entry, view, changes)
        return found if found.token == entry.token else _anothers(found)

    def find(shipped: Callable[..., object], ctx: CommitContext, view: LogView, job: JobId, after: int) -> None:
        return None

    with planted(swap(append_entry, append), swap(find_decision, find)):
        return shipped(measure, job, prepared, view)


class _StandsError(Exception):
    """Carries the entry that stands at a number."""

    def __init__(self, entry: LogEntry) -> None:
        super().__init__(entry)
        self.entry = entry


def take_any_entry(
    shipped: Callable[..., JobDecision | None],
    measure: Measure,
    job: JobRecord,
    prepared: PreparedOutput,
    view: LogView,
) -> JobDecision | None:
    """In place of `_append_commit`: take the entry at the number as the job's own, whatever job it is about."""

    def append(
        shipped: Callable[..., LogEntry],
        ctx: CommitContext,
        entry: LogEntry,
        view: LogView,
        changes: Sequence[Change] = (),
    ) -> LogEntry:
        raise _StandsError(shipped(ctx, entry, view, changes))

    with planted(swap(append_entry, append)):
        try:
            return shipped(measure, job, prepared, view)
        except _StandsError as stands:
            return JobDecision(entry=stands.entry, cache=prepared.cache)


def take_every_entry_for_anothers(
    shipped: Callable[..., JobDecision | None],
    measure: Measure,
    job: JobRecord,
    prepared: PreparedOutput,
    view: LogView,
) -> JobDecision | None:
    """In place of `_append_commit`: take every entry as another job's, as if each put met a conflict."""

    def append(
        shipped: Callable[..., LogEntry],
        ctx: CommitContext,
        entry: LogEntry,
        view: LogView,
        changes: Sequence[Change] = (),
    ) -> LogEntry:
        path = layout.log_entry_path(entry.seq)
        return _anothers(decode_entry(path, entry.seq, ctx.records.create(path, encode_entry(entry))))

    with planted(swap(append_entry, append)):
        return shipped(measure, job, prepared, view)


def create_unconditionally(shipped: Callable[..., bool], self: RecordStore, path: str, data: bytes) -> bool:
    """In place of `RecordStore._put_new`: write without the condition that nobody else has created the record."""
    self.store.put(self.key(path), data)
    return True


def take_silence_for_success(shipped: Callable[..., bool], self: RecordStore, path: str, data: bytes) -> bool:
    """In place of `RecordStore._put_new`: consider a record written although its put was not answered."""
    try:
        return shipped(self, path, data)
    except OutcomeUnknownError:
        return True


# --- after the decision -----------------------------------------------------------------------------------------------
def delete_replaced_first(
    shipped: Callable[..., JobSummary | None],
    ctx: CommitContext,
    entry: LogEntry,
    cache: ManifestCache | None,
    accept_damage: bool,
) -> JobSummary | None:
    """In place of `_publish_all`: delete what the job replaces, then publish its files."""
    delete_replaced_files(ctx, entry)
    return shipped(ctx, entry, cache, accept_damage)


def mark_visible_first(
    shipped: Callable[..., JobSummary | None],
    ctx: CommitContext,
    entry: LogEntry,
    cache: ManifestCache | None,
    accept_damage: bool,
) -> JobSummary | None:
    """In place of `_publish_all`: mark the decision visible, then publish its files."""
    write_decision_mark(ctx, entry, "visible")
    return shipped(ctx, entry, cache, accept_damage)


def mark_done_first(shipped: Callable[..., None], ctx: CommitContext, entry: LogEntry) -> None:
    """In place of `clean_up_decided_job`: mark the decision done, then clean up."""
    write_decision_mark(ctx, entry, "done")
    shipped(ctx, entry)


def ignore_trouble(
    shipped: Callable[..., JobOutcome],
    measure: Measure,
    entry: LogEntry,
    *,
    view: LogView | None = None,
    cache: ManifestCache | None = None,
) -> JobOutcome:
    """In place of the driver's `_roll_forward_with_retries`: swallow the failure of a store call."""

    def ignore(
        shipped: Callable[..., JobReport | None],
        measure: Measure,
        entry: LogEntry,
        *,
        visible: bool = False,
        cache: ManifestCache | None = None,
        accept_damage: bool = False,
    ) -> JobReport | None:
        with suppress(UnavailableError, OutcomeUnknownError):
            return shipped(measure, entry, visible=visible, cache=cache, accept_damage=accept_damage)
        return None

    with planted(swap(roll_forward.roll_forward, ignore)):
        return shipped(measure, entry, view=view, cache=cache)


def take_silence_for_completion(
    shipped: Callable[..., bool],
    ctx: CommitContext,
    path: str,
    move: Callable[[], object],
    is_there: Callable[[bool], bool],
) -> bool:
    """In place of `settle`: consider a file published although its publication was not answered."""

    def publish_once() -> None:
        with suppress(OutcomeUnknownError):
            move()

    return shipped(ctx, path, publish_once, is_there)


def complete_without_looking(
    shipped: Callable[..., bool],
    ctx: CommitContext,
    file: FileEntry,
    written_by: AttemptId | None = None,
    parts: Sequence[Part] = (),
    is_there: Callable[[], bool] | None = None,
) -> bool:
    """In place of `complete_upload`: consider a file published if its upload is gone, without checking the object."""
    return shipped(ctx, file, written_by, parts, lambda: True)


def delete_then_rename(
    shipped: Callable[..., bool], ctx: CommitContext, file: FileEntry, written_by: AttemptId
) -> bool:
    """In place of `_rename_file`: delete the target first."""
    ctx.store.delete(ctx.key(file.path))
    return shipped(ctx, file, written_by)


def help_nobody(shipped: Callable[..., list[StuckDecision]], ctx: CommitContext, view: LogView) -> list[StuckDecision]:
    """In place of `roll_forward_earlier_jobs`: leave earlier decisions to their drivers."""
    return []


# --- tasks ------------------------------------------------------------------------------------------------------------
def publish_in_task(
    shipped: Callable[..., TaskCommit], scope: AttemptContext, files: tuple[FileEntry, ...]
) -> TaskCommit:
    """In place of the task commit: publish the files, then write the manifest."""
    for file in files:
        find_job_publication(scope.job).publish_file(scope.ctx, file, scope.owner.attempt)
    return shipped(scope, files)


def name_by_task(shipped: Callable[..., str], job: JobId, task: int, attempt: AttemptId) -> str:
    """In place of `layout.manifest_path`: name manifests by task alone."""
    return shipped(job, task, attempt).replace(f"-{attempt}", "")


def name_without_attempt(shipped: Callable[..., str], owner: FileOwner, number: int, extension: str) -> str:
    """In place of `file_name`: leave the attempt out, as Spark does."""
    return shipped(owner, number, extension).replace(f"-{owner.attempt}", "")


def list_manifests(
    shipped: Callable[..., JobDecision | None], measure: Measure, job: JobRecord, reports: TaskReports
) -> JobDecision | None:
    """In place of the commit's `_decide`: take the manifests in the job's folder, not those in the messages."""
    return shipped(measure, job, replace(reports, commits=_listed_commits(measure.ctx, job)))


def abort_every_upload_of_the_job(
    shipped: Callable[..., None], ctx: CommitContext, job: JobRecord, owner: FileOwner
) -> None:
    """In place of the task abort: abort every pending upload of the job."""
    left = UploadRecords(listing=UploadListingMode.BY_DIRECTORY)
    find_job_publication(job).sweep(ctx, lambda found, key: found == job.job, left)
    shipped(ctx, job, owner)


def _listed_commits(ctx: CommitContext, record: JobRecord) -> list[TaskCommit]:
    """Rebuild the reports of a job's tasks from a listing of its folder: the last manifest of each task."""
    found: dict[int, TaskCommit] = {}
    for info in iter_objects(ctx.store, ctx.key(f"{layout.job_dir(record.job)}attempts/")):
        if info.key.endswith(".jsonl"):
            data = ctx.store.get(info.key)
            header = json.loads(data.splitlines()[0])
            key = info.key.removeprefix(ctx.prefix)
            ref = ManifestRef(
                key=key, sha256=sha256_hex(data), task=header["task"], totals=Totals(files=header["files"])
            )
            totals = count_totals(decode_manifest(ref, data).files)
            ref = replace(ref, totals=totals)
            attempt = AttemptId(header["attempt"])
            found[ref.task] = TaskCommit(job=record.job, task=ref.task, attempt=attempt, totals=totals, ref=ref)
    return [found[task] for task in sorted(found)]


# --- clean-up, recovery -----------------------------------------------------------------------------------------------
def end_every_job(shipped: Callable[..., bool], self: LiveJobs, job: JobId, key: str) -> bool:
    """In place of `LiveJobs.has_ended`: consider every job ended."""
    return True


def look_in_own_destination(shipped: Callable[..., bool], self: LiveJobs, job: JobId, key: str) -> bool:
    """In place of `LiveJobs.has_ended`: look for the job's record only in the own destination."""
    return job in self._ended or not self._is_job_live_in(self._ctx.prefix, job)


def list_below_bare_prefix(
    shipped: Callable[..., list[UploadInfo] | None], ctx: CommitContext, prefix: str, left: UploadRecords
) -> list[UploadInfo] | None:
    """In place of `_list_below`: list pending uploads under the prefix without its slash."""
    bare = prefix.rstrip("/")
    above = shipped(ctx, bare[: bare.rfind("/") + 1], left)
    return None if above is None else [upload for upload in above if upload.key.startswith(bare)]


def announce_nothing(shipped: Callable[..., None], ctx: CommitContext, record: JobRecord) -> None:
    """In place of `announce_job`: write no record of the job."""


def sweep_with_limit_only(
    shipped: Callable[..., tuple[int, int]],
    ctx: CommitContext,
    jobs: LiveJobs,
    publication: PublicationMethod,
    listing: UploadListingMode,
    *,
    quiet_s: float = QUIET_S,
    limit: int | None = None,
    decided: LogEntry | None = None,
    reported: Collection[str] = (),
) -> tuple[int, int]:
    """In place of `clean_up`: leave out the sweep without a limit, which is that of recovery."""
    if limit is None:
        return 0, 0
    return shipped(ctx, jobs, publication, listing, quiet_s=quiet_s, limit=limit, decided=decided, reported=reported)


def commit_open_job(
    shipped: Callable[..., None], ctx: CommitContext, record: JobRecord, report: RecoveryReport
) -> None:
    """In place of recovery's `_end_open_job`: commit an undecided job with the manifests in its folder."""

    def commit(shipped: Callable[..., JobOutcome], measure: Measure, job: JobRecord) -> JobOutcome:
        found = _listed_commits(measure.ctx, job)
        return commit_job(measure, job, TaskReports(found, [one.task for one in found]))

    with planted(swap(abort_job, commit)):
        shipped(ctx, record, report)


# --- readers ----------------------------------------------------------------------------------------------------------
def hide_nothing(
    shipped: Callable[..., snapshot._VisibilityRule], ctx: CommitContext, view: LogView, unfinished: list[LogEntry]
) -> snapshot._VisibilityRule:
    """In place of the snapshot's `_visibility`: do not hide the files of decisions that are not marked visible."""
    return shipped(ctx, view, [entry for entry in unfinished if entry.seq in view.visible])


def see_no_change(shipped: Callable[..., object], view: LogView) -> tuple[int, str, frozenset[int]]:
    """In place of the snapshot's `_instant`: consider the log unchanged."""
    return 0, "", frozenset()
