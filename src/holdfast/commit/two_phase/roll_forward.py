"""After a decision: make it so. Everything here may be run again, by anybody, at any time (C10).

The driver that decided runs these steps first; after a crash the next job on the destination or `recover` runs the
rest. Order matters and is this: publish all, mark visible, delete what is replaced, report, remember the write's id,
clean up, mark done.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import AttemptId, file_owner
from holdfast.commit.measure import Measure
from holdfast.commit.records import FileEntry, JobReport, Kind
from holdfast.commit.statistics import NO_STATISTICS, Statistics
from holdfast.commit.success_file import FILENAME_LIMIT, write_success
from holdfast.commit.two_phase.cleanup import clean_up_decided
from holdfast.commit.two_phase.decision_log import record_exists, write_mark
from holdfast.commit.two_phase.manifests import ManifestCache, committed_manifests, iter_manifests, load_refs
from holdfast.commit.two_phase.publication import publication_of
from holdfast.commit.two_phase.records import LogEntry, TaskManifest
from holdfast.commit.two_phase.replacement import delete_replaced
from holdfast.commit.two_phase.write_ids import remember_write
from holdfast.errors import CorruptDataError, HoldfastError, NotFoundError
from holdfast.stores.base import batched_keys

__all__ = ["check_decision", "finish_decision"]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Seen:
    """What a walk over the committed manifests gathers for the report."""

    names: list[str] = field(default_factory=list)
    statistics: Statistics = NO_STATISTICS
    lost: list[str] = field(default_factory=list)

    def note(self, ctx: CommitContext, manifest: TaskManifest) -> None:
        self.statistics += manifest.statistics
        for file in manifest.files[: FILENAME_LIMIT - len(self.names)]:
            self.names.append("/" + ctx.key(file.path).lstrip("/"))


def finish_decision(
    measure: Measure,
    entry: LogEntry,
    *,
    visible: bool = False,
    cache: ManifestCache | None = None,
    accept_damage: bool = False,
) -> JobReport | None:
    """Roll a decision forward to its end; returns the report of a commit, None if somebody else saved it.

    Args:
        measure: of the job commit that this belongs to.
        visible: whether its ``visible`` mark was seen.
        cache: manifests that the caller still holds.
        accept_damage: go on although files of the job are lost, and note which.

    Raises:
        CorruptDataError: files of a committed job are nowhere. Nothing was deleted; restore them, or accept the loss
            with ``holdfast recover --accept-damage``.
    """
    ctx = measure.ctx
    damaged: list[str] = []
    report = None
    if entry.kind is Kind.COMMIT:
        if visible:
            seen = _look_back(ctx, entry)
        else:
            with measure.stage("job_stage_publish"):
                found = _publish_all(ctx, entry, cache, accept_damage)
            if found is None and _is_done(ctx, entry.seq):
                return None
            seen = found or _Seen()
            damaged = _refuse_damage(ctx, entry, seen.lost, accept_damage)
            write_mark(ctx, entry.seq, "visible")
        with measure.stage("job_stage_delete_replaced"):
            damaged += _delete_replaced(ctx, entry, accept_damage)
        report = _report(measure, entry, seen, len(damaged))
        write_success(ctx, report, entry.seq)
        remember_write(ctx, entry)
    # The job is over: what is still pending under its name belongs to attempts that do not count.
    with measure.stage("job_stage_cleanup"):
        clean_up_decided(ctx, entry)
    write_mark(ctx, entry.seq, "done", json.dumps({"damaged": damaged[:1000]}).encode() + b"\n")
    return report


def _delete_replaced(ctx: CommitContext, entry: LogEntry, accept_damage: bool) -> list[str]:
    """Delete what the decision replaces; returns the list of it if that cannot be read, which is accepted."""
    try:
        delete_replaced(ctx, entry)
    except CorruptDataError as error:
        if not accept_damage or entry.replaced is None:
            raise
        _log.warning("what job %s has replaced is not known and stays: delete it yourself (%s)", entry.job, error)
        return [entry.replaced.key]
    return []


def check_decision(ctx: CommitContext, entry: LogEntry) -> None:
    """Raise what would keep `finish_decision` from publishing a commit, as far as looking can tell. Reads only.

    Raises:
        NotFoundError: its manifests are gone.
        HoldfastError: a file cannot appear where it has to.
    """
    check = publication_of(entry.record).check
    paths = (file.path for manifest in committed_manifests(ctx, entry) for file in manifest.files)
    for batch in batched_keys(itertools.chain(paths, [layout.SUCCESS])):
        check(ctx, batch)


def _report(measure: Measure, entry: LogEntry, seen: _Seen, lost: int) -> JobReport:
    return JobReport(
        job=entry.job,
        committer=entry.record.committer,
        mode=entry.record.mode,
        at_s=entry.decided_at_s,
        success=True,
        stage="job_stage_save_success_marker",
        totals=entry.totals,
        tasks=entry.tasks,
        filenames=tuple(seen.names),
        metrics={**measure.metrics(), "files_lost": lost},
        diagnostics={"holdfast.seq": str(entry.seq), "holdfast.publication": entry.record.publication},
        statistics=seen.statistics + measure.statistics(),
    )


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


def _publish_all(ctx: CommitContext, entry: LogEntry, cache: ManifestCache | None, accept_damage: bool) -> _Seen | None:
    """Publish every file: returns what was seen, or None if somebody else has made the job visible meanwhile."""
    publish = publication_of(entry.record).publish_file
    seen = _Seen()

    def files(manifests: Iterator[TaskManifest]) -> Iterator[tuple[FileEntry, AttemptId]]:
        for manifest in manifests:
            seen.note(ctx, manifest)
            yield from ((file, manifest.attempt) for file in manifest.files)

    # The driver that decided knows that nothing is there yet.
    there_already = frozenset() if cache is not None else _published_before(ctx, entry)

    def publish_one(found: tuple[FileEntry, AttemptId]) -> tuple[FileEntry, bool]:
        file, attempt = found
        return file, (file.path, file.size_bytes) in there_already or publish(ctx, file, attempt)

    try:
        if accept_damage:
            manifests: Iterator[TaskManifest] = _manifests_left(ctx, entry, seen.lost)
        else:
            manifests = committed_manifests(ctx, entry, cache)
        found = files(manifests)
        for done, (file, there) in enumerate(ctx.runner.map(publish_one, found), start=1):
            if not there:
                seen.lost.append(file.path)
            ctx.progress("publish", done, entry.totals.files)
    except NotFoundError as error:
        # The manifests go only when the decision is finished, except by a foreign hand.
        if _is_visible(ctx, entry.seq):
            return None
        raise CorruptDataError(
            "the manifests of a committed job are lost, somebody removed them; nothing was deleted: restore them or "
            "run holdfast recover --accept-damage",
            url=ctx.url,
            job=entry.job,
        ) from error
    if seen.lost and _is_visible(ctx, entry.seq):
        return None  # a helper was faster, and a later job has replaced the files since
    return seen


def _published_before(ctx: CommitContext, entry: LogEntry) -> frozenset[tuple[str, int]]:
    """Files of the job that an earlier try has made visible, as (path, bytes), so that they are not asked for singly.

    Names of ours are used once: one that a listing shows at its size is settled. What the listing does not show, and
    names of the caller's choice, are published as ever; so it is given up where it would cost more than it saves.
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
        return frozenset()  # it only saves requests


def _manifests_left(ctx: CommitContext, entry: LogEntry, lost: list[str]) -> Iterator[TaskManifest]:
    """The manifests that can still be read; the keys of the others go into `lost`."""
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


def _look_back(ctx: CommitContext, entry: LogEntry) -> _Seen:
    """The same for the report alone; nothing if a helper has cleaned up already, or somebody broke the records."""
    seen = _Seen()
    try:
        for manifest in committed_manifests(ctx, entry):
            seen.note(ctx, manifest)
    except (NotFoundError, CorruptDataError):
        return _Seen()
    return seen


def _is_visible(ctx: CommitContext, seq: int) -> bool:
    return record_exists(ctx, seq, "visible") or _is_done(ctx, seq)


def _is_done(ctx: CommitContext, seq: int) -> bool:
    """Whether a decision is finished: it has its mark, or the log has dropped it, which it does with no other."""
    return record_exists(ctx, seq, "done") or not record_exists(ctx, seq, "json")
