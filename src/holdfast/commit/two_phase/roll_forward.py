"""Roll a logged decision forward. Every step is idempotent: any process may run it, at any time (C10).

The driver that decided the job runs the steps first; after a crash, the next job on the destination or `recover` runs
the remaining ones. Their order matters: publish all files, mark the decision visible, delete the replaced files, write
the report, store the write id, clean up, mark the decision done. On a store with transactions, the decision of a commit
does all of this itself, so that nothing is left to roll forward (see `transaction`).
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator, Sequence

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import AttemptId, file_owner
from holdfast.commit.measure import Measure
from holdfast.commit.records import FileEntry, JobReport, Kind
from holdfast.commit.success_file import write_success
from holdfast.commit.two_phase.cleanup import clean_up_decided_job
from holdfast.commit.two_phase.decision_log import record_exists, write_mark
from holdfast.commit.two_phase.job_summary import JobSummary, report_job, summarize
from holdfast.commit.two_phase.manifests import ManifestCache, committed_manifests, iter_manifests, load_refs
from holdfast.commit.two_phase.publication import publication_of
from holdfast.commit.two_phase.records import LogEntry, TaskManifest
from holdfast.commit.two_phase.replacement import delete_replaced
from holdfast.commit.two_phase.write_ids import remember_write
from holdfast.errors import CorruptDataError, HoldfastError, NotFoundError
from holdfast.stores.base import batched_keys

_log = logging.getLogger(__name__)


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
        cache: manifests that the caller still holds in memory.
        accept_damage: if files of the job are lost, record the lost files and continue.

    Returns:
        The report of a commit; None for an abort, or if another process has already done all steps.

    Raises:
        CorruptDataError: files of a committed job are lost. Nothing was deleted: restore them, or accept the loss with
            ``holdfast recover --accept-damage``.
    """
    ctx = measure.ctx
    damaged: list[str] = []
    report = None
    if entry.kind is Kind.COMMIT:
        if visible:
            summary = summarize(ctx, entry)
        else:
            with measure.stage("job_stage_publish"):
                published = _publish_all(ctx, entry, cache, accept_damage)
            if published is None and _is_done(ctx, entry.seq):
                return None
            summary = published or JobSummary()
            damaged = _refuse_damage(ctx, entry, summary.lost, accept_damage)
            write_mark(ctx, entry, "visible", summary.checksums.encode())
        with measure.stage("job_stage_delete_replaced"):
            damaged += _delete_replaced(ctx, entry, accept_damage)
        report = report_job(measure, entry, summary, len(damaged))
        write_success(ctx, report, entry.seq)
        remember_write(ctx, entry)
    # Uploads that are still pending under the job's id now belong to attempts that do not count.
    with measure.stage("job_stage_cleanup"):
        clean_up_decided_job(ctx, entry)
    write_mark(ctx, entry, "done", done_mark(damaged))
    return report


def done_mark(damaged: Sequence[str] = ()) -> bytes:
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
    check = publication_of(entry.record).check
    paths = (file.path for manifest in committed_manifests(ctx, entry) for file in manifest.files)
    for batch in batched_keys(itertools.chain(paths, [layout.SUCCESS])):
        check(ctx, batch)


# --- publish ----------------------------------------------------------------------------------------------------------
def _publish_all(
    ctx: CommitContext, entry: LogEntry, cache: ManifestCache | None, accept_damage: bool
) -> JobSummary | None:
    """Publish every file; return None if another process has made the job visible in the meantime."""
    publish = publication_of(entry.record).publish_file
    summary = JobSummary()

    def files(manifests: Iterator[TaskManifest]) -> Iterator[tuple[FileEntry, AttemptId]]:
        for manifest in manifests:
            summary.note(ctx, manifest)
            yield from ((file, manifest.attempt) for file in manifest.files)

    # A process that has a cache has decided the job itself, so usually no file is published yet.
    published = frozenset() if cache is not None else _list_published(ctx, entry)

    def publish_one(found: tuple[FileEntry, AttemptId]) -> tuple[FileEntry, bool]:
        file, attempt = found
        return file, (file.path, file.size_bytes) in published or publish(ctx, file, attempt)

    try:
        if accept_damage:
            manifests: Iterator[TaskManifest] = _readable_manifests(ctx, entry, summary.lost)
        else:
            manifests = committed_manifests(ctx, entry, cache)
        found = files(manifests)
        for done, (file, is_visible) in enumerate(ctx.runner.map(publish_one, found), start=1):
            if not is_visible:
                summary.lost.append(file.path)
            ctx.progress("publish", done, entry.totals.files)
    except NotFoundError as error:
        # Holdfast deletes the manifests only after the decision is visible.
        if _is_visible(ctx, entry.seq):
            return None
        raise CorruptDataError(
            "the manifests of a committed job are lost, something deleted them; no output was deleted: restore them or "
            "run holdfast recover --accept-damage",
            url=ctx.url,
            job=entry.job,
        ) from error
    if summary.lost and _is_visible(ctx, entry.seq):
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
        refs = load_refs(ctx, entry.manifests, None)
    except (NotFoundError, CorruptDataError):
        lost.append(entry.manifests.key)
        return
    for ref in refs:
        try:
            yield from iter_manifests(ctx, [ref], None)
        except (NotFoundError, CorruptDataError):
            lost.append(ref.key)


def _refuse_damage(ctx: CommitContext, entry: LogEntry, lost: list[str], accept_damage: bool) -> list[str]:
    if lost and not accept_damage:
        raise CorruptDataError(
            "files of a committed job are lost, something aborted its uploads; nothing was deleted: restore them or "
            "run holdfast recover --accept-damage",
            url=ctx.url,
            job=entry.job,
            lost=len(lost),
            first=lost[0],
        )
    return lost


# --- delete -----------------------------------------------------------------------------------------------------------
def _delete_replaced(ctx: CommitContext, entry: LogEntry, accept_damage: bool) -> list[str]:
    """Delete the replaced files; return the key of their list if it cannot be read and the damage is accepted."""
    try:
        delete_replaced(ctx, entry)
    except CorruptDataError as error:
        if not accept_damage or entry.replaced is None:
            raise
        _log.warning(
            "the files that job %s replaced are unknown and remain: delete them yourself (%s)", entry.job, error
        )
        return [entry.replaced.key]
    return []


# --- progress of a decision -------------------------------------------------------------------------------------------
def _is_visible(ctx: CommitContext, seq: int) -> bool:
    return record_exists(ctx, seq, "visible") or _is_done(ctx, seq)


def _is_done(ctx: CommitContext, seq: int) -> bool:
    """Check whether a decision is done: it has the mark ``done``, or it has been trimmed, so it must have been done."""
    return record_exists(ctx, seq, "done") or not record_exists(ctx, seq, "json")
