"""After a decision: make it so. Everything here may be run again, by anybody, at any time (C10).

The driver that decided runs these steps first; after a crash the next job on the destination or `recover` runs the
rest. Order matters and is this: publish all, mark visible, delete what is replaced, report, clean up, mark done.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from holdfast.commit import layout
from holdfast.commit.alive import OverJobs
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.log import LogView, mark_exists, read_entry, write_mark
from holdfast.commit.manifests import ManifestCache, iter_files, load_refs
from holdfast.commit.measure import JobMeasure
from holdfast.commit.publication import PUBLICATIONS, UPLOADS
from holdfast.commit.records import FileEntry, Kind, LogEntry
from holdfast.commit.replacement import delete_replaced
from holdfast.commit.success import FILENAME_LIMIT, write_success
from holdfast.errors import CorruptDataError, NotFoundError
from holdfast.stores.base import batched_keys, iter_objects

__all__ = ["finish_decision", "finish_earlier", "reap_uploads", "remove_job_dirs"]


def finish_earlier(ctx: CommitContext, view: LogView) -> None:
    """Finish every decision that is not done yet, oldest first: helping.

    Ensures: when the next decision is made, all earlier ones are done. So an object that a decision's completion
    does not find can be explained only by that decision being done already.
    """
    for seq in view.unfinished:
        finish_decision(ctx, read_entry(ctx, seq), visible=seq in view.visible)


def finish_decision(
    ctx: CommitContext,
    entry: LogEntry,
    *,
    visible: bool = False,
    cache: ManifestCache | None = None,
    accept_damage: bool = False,
    measure: JobMeasure | None = None,
) -> None:
    """Roll a decision forward to its end.

    Args:
        visible: whether its ``visible`` mark was seen.
        cache: manifests that the caller still holds.
        measure: of the job commit that this belongs to, for the report.
        accept_damage: go on although files of the job are lost, and note which.

    Raises:
        CorruptDataError: files of a committed job are nowhere. Nothing was deleted; restore them, or accept the loss
            with ``holdfast recover --accept-damage``.
    """
    measure = measure or JobMeasure(ctx)
    ctx = measure.ctx
    damaged: list[str] = []
    if entry.kind is Kind.COMMIT:
        if not visible:
            with measure.stage("publish"):
                lost = _publish_all(ctx, entry, cache)
            if lost is None and mark_exists(ctx, entry.seq, "done"):
                return
            damaged = _refuse_damage(ctx, entry, lost or [], accept_damage)
            write_mark(ctx, entry.seq, "visible")
        with measure.stage("delete_replaced"):
            delete_replaced(ctx, entry)
        write_success(ctx, entry, _some_names(ctx, entry, cache), {**measure.metrics(), "files_lost": len(damaged)})
    # The job is over: what is still pending under its name belongs to attempts that do not count.
    over = OverJobs(ctx, [entry.job])
    PUBLICATIONS[entry.record.publication].sweep(ctx, over.is_over)
    remove_job_dirs(ctx, over)
    write_mark(ctx, entry.seq, "done", json.dumps({"damaged": damaged[:1000]}).encode() + b"\n")


def _refuse_damage(ctx: CommitContext, entry: LogEntry, lost: list[str], accept_damage: bool) -> list[str]:
    if lost and not accept_damage:
        raise CorruptDataError(
            "files of a committed job are lost, somebody removed its uploads; nothing was deleted: restore them or run "
            "holdfast recover --accept-damage",
            url=ctx.url,
            job=entry.job,
            lost=len(lost),
            first=lost[0],
        )
    return lost


def _publish_all(ctx: CommitContext, entry: LogEntry, cache: ManifestCache | None) -> list[str] | None:
    """Publish every file: returns those that are lost, or None if somebody else has made the job visible meanwhile."""
    assert entry.manifests is not None  # decode_entry checked it
    publish = PUBLICATIONS[entry.record.publication].publish_file
    lost: list[str] = []

    def publish_one(file: FileEntry) -> tuple[FileEntry, bool]:
        return file, publish(ctx, file)

    try:
        files = iter_files(ctx, load_refs(ctx, entry.manifests, cache), cache)
        for done, (file, there) in enumerate(ctx.runner.map(publish_one, files), start=1):
            if not there:
                lost.append(file.path)
            ctx.progress("publish", done, entry.totals.files)
    except NotFoundError as error:
        # The manifests go only when the decision is finished, except by a foreign hand.
        if _is_visible(ctx, entry.seq):
            return None
        raise CorruptDataError(
            "the manifests of a committed job are lost, somebody removed them; nothing was deleted: restore them",
            url=ctx.url,
            job=entry.job,
        ) from error
    if lost and _is_visible(ctx, entry.seq):
        return None  # a helper was faster, and a later job has replaced the files since
    return lost


def _some_names(ctx: CommitContext, entry: LogEntry, cache: ManifestCache | None) -> list[str]:
    """The first names for the report; none if a helper has cleaned up already."""
    assert entry.manifests is not None  # decode_entry checked it
    try:
        files = itertools.islice(iter_files(ctx, load_refs(ctx, entry.manifests, cache), cache), FILENAME_LIMIT)
        return ["/" + ctx.key(file.path).lstrip("/") for file in files]
    except NotFoundError:
        return []


def _is_visible(ctx: CommitContext, seq: int) -> bool:
    return mark_exists(ctx, seq, "visible") or mark_exists(ctx, seq, "done")


def remove_job_dirs(ctx: CommitContext, over: OverJobs) -> int:
    """Delete the folders of jobs that are over, also of those whose zombies wrote after their own clean-up.

    Requires: what the jobs had waiting is swept, so that nothing of theirs needs the protection of ``job.json``.
    Returns how many folders went.

    Crash: a folder without its record, which belongs to nobody; the next job takes it.
    """
    prefix = ctx.key(layout.JOBS)
    gone: set[str] = set()

    def keys() -> Iterator[str]:
        for info in iter_objects(ctx.store, prefix):
            name = info.key[len(prefix) :].partition("/")[0]
            if is_job_id(name) and over.is_over(JobId(name), prefix):
                gone.add(name)
                yield info.key

    for batch in batched_keys(keys()):
        ctx.store.delete_many(batch)
    return len(gone)


def reap_uploads(ctx: CommitContext) -> int:
    """Abort the pending uploads of jobs that are over; returns how many."""
    if ctx.store.capabilities.multipart is None:
        return 0
    return UPLOADS.sweep(ctx, OverJobs(ctx).is_over)
