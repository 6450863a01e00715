"""What dead jobs of `manifest` left, and what may be done about each.

Hadoop has no recovery for this committer: Spark starts again from scratch. But a job commit that was under way can be
ended: manifests say where each file was and where it goes, and a rename keeps size and etag, so each file is told to
be at its source or at its place. The recipe is paper 001's for pending uploads ("Job Driver failure during Job
Commit"), with renames for completions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from holdfast.commit import layout
from holdfast.commit.attempt_names import file_job
from holdfast.commit.codec import decode_job
from holdfast.commit.committer import Action, Leftover
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId, is_job_id
from holdfast.commit.job_ends import delete_visible
from holdfast.commit.manifest.cleanup import remove_job_dir
from holdfast.commit.manifest.job import finish_job, is_reported
from holdfast.commit.manifest.layout import TEMPORARY, job_dir, tasks_dir
from holdfast.commit.manifest.loading import LoadedJob, load_manifests
from holdfast.commit.manifest.renaming import REPLACING, is_same_file, rename_files
from holdfast.commit.measure import Measure
from holdfast.commit.moves import file_info, list_files
from holdfast.commit.records import JobRecord
from holdfast.errors import ConflictError, CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.stores.base import ObjectInfo

__all__ = ["find_leftovers"]

_COMMITTER = "manifest"
_JOB_DIR = re.compile(r"manifest_([^/]+)/(?:(\d\d)/job\.json$)?")


@dataclass(slots=True)
class _Directory:
    """A job's directory.

    Attributes:
        job_attempt: of the newest record in it; None if there is none.
    """

    job: JobId
    active_at_s: float = 0.0
    job_attempt: int | None = None


@dataclass(slots=True, kw_only=True)
class _Places:
    """Where a job's files are.

    Attributes:
        waiting: where their tasks left them.
        shown: at their places, by size and etag.
        lost: at neither.
        blocked: waiting, and another file stands at their place.
        chosen: those of `shown` whose names do not tell whose they are.
        own: visible files whose names say that they are the job's.
        strangers: those of `own` that no manifest names.
    """

    waiting: int = 0
    shown: int = 0
    lost: int = 0
    blocked: int = 0
    chosen: int = 0
    own: int = 0
    strangers: int = 0

    @property
    def visible(self) -> int:
        return self.own + self.chosen


def find_leftovers(ctx: CommitContext) -> Iterator[Leftover]:
    """Every job that has a directory below the destination, oldest first; live ones, too: they wrote recently.

    A job whose record is gone is over, and one whose ``_SUCCESS`` stands. The others died before the end of their job
    commit, or are alive. *Forward* only if that is provably right: some files are at their places, so the job commit
    was under way and all tasks had committed; the others wait with nothing in their way; and nothing else of the job
    is visible, as it would be if a late attempt had replaced a manifest meanwhile. Else *back*: visible files that
    carry the job's id go. Files with names of the caller's choice are never deleted: then the job is *kept* for a
    person to look at.

    A live job that is rolled back fails; what it had renamed until then is deleted with it.
    """
    for directory in _directories(ctx):
        try:
            leftover = _judged(ctx, directory)
        except NotFoundError:
            continue  # it ended while we looked
        yield leftover


def _directories(ctx: CommitContext) -> list[_Directory]:
    found: dict[JobId, _Directory] = {}
    for path, info in list_files(ctx, TEMPORARY):
        match = _JOB_DIR.match(path, len(TEMPORARY) + 1)
        if match is None or not is_job_id(match[1]):
            continue  # another committer's, or Hadoop's own
        job = JobId(match[1])
        directory = found.setdefault(job, _Directory(job))
        directory.active_at_s = max(directory.active_at_s, info.modified_at_s)
        if match[2] is not None:
            directory.job_attempt = max(directory.job_attempt or 0, int(match[2]))
    return [directory for _job, directory in sorted(found.items())]


def _judged(ctx: CommitContext, directory: _Directory) -> Leftover:
    job = directory.job

    def leftover(action: Action, reason: str, finish: Callable[[], None], files: int = 0) -> Leftover:
        return Leftover(
            committer=_COMMITTER,
            job=job,
            active_at_s=directory.active_at_s,
            action=action,
            reason=reason,
            finish=finish,
            files=files,
        )

    def clean() -> None:
        remove_job_dir(ctx, job)

    if directory.job_attempt is None:
        return leftover(Action.CLEAN, "the job is over, only its directory is left", clean)
    try:
        record = _read_record(ctx, job, directory.job_attempt)
        if is_reported(ctx, record):
            return leftover(Action.CLEAN, "_SUCCESS says that the job is committed", clean)
        loaded = load_manifests(ctx, record)
    except NotFoundError:
        raise
    except (CorruptDataError, InvalidRequestError) as error:
        return leftover(Action.KEEP, f"its records cannot be used: {error}", lambda: None)
    places = _find_places(ctx, record, loaded)
    action, reason = _decided(places)

    def forward() -> None:
        _go_forward(ctx, record, loaded)

    def back() -> None:
        if _is_still(ctx, directory, Action.BACK):
            delete_visible(ctx, lambda path: file_job(path) == job)
            remove_job_dir(ctx, job)

    finish = {Action.FORWARD: forward, Action.BACK: back, Action.CLEAN: clean, Action.KEEP: lambda: None}[action]
    return leftover(action, reason, finish, places.visible)


def _is_still(ctx: CommitContext, directory: _Directory, expected: Action) -> bool:
    """Whether what was decided is still right and to be done: between looking and acting the job may have gone on.

    Raises:
        ConflictError: it has.
    """
    try:
        found = _judged(ctx, directory)
    except NotFoundError:
        return False  # somebody else has ended it
    if found.action is not expected:
        raise ConflictError("the job has gone on: look again", job=directory.job, found=found.reason)
    return True


def _read_record(ctx: CommitContext, job: JobId, job_attempt: int) -> JobRecord:
    path = f"{job_dir(job)}/{job_attempt:02d}/job.json"
    return replace(decode_job(path, ctx.store.get(ctx.key(path))), job_attempt=job_attempt)


def _find_places(ctx: CommitContext, job: JobRecord, loaded: LoadedJob) -> _Places:
    """Look where each file is: one listing of what waits, one of what is visible."""
    sources = dict(list_files(ctx, tasks_dir(job)))
    places = _Places()
    visible: dict[str, ObjectInfo] = {}
    for path, info in layout.iter_visible(ctx.store, ctx.prefix):
        is_target = loaded.is_target(path)
        if file_job(path) == job.job:
            places.own += 1
            places.strangers += not is_target
        if is_target:
            visible[path] = info
    for file in loaded.files():
        source, target = sources.get(file.source), visible.get(file.dest)
        is_own = file_job(file.dest) == job.job
        arrived = target is not None and is_same_file(file, target)
        if source is not None and is_same_file(file, source):
            places.waiting += 1
            places.blocked += target is not None and not arrived and (is_own or job.mode not in REPLACING)
        elif arrived:
            places.shown += 1
            places.chosen += not is_own
        else:
            places.lost += 1
    return places


def _decided(places: _Places) -> tuple[Action, str]:
    shown, waiting = places.shown, places.waiting
    total = shown + waiting + places.lost
    if not shown and not places.own:
        return Action.BACK, f"none of its {total} files is visible: it is undecided"
    if shown == total and not places.strangers:
        return Action.CLEAN, f"all {total} files are at their places"
    if shown and not (places.lost or places.blocked or places.strangers):
        return Action.FORWARD, f"its job commit was under way: {shown} files are at their places, {waiting} wait"
    story = (
        f"of {total} files {shown} are at their places, {waiting} wait, {places.lost} are lost, {places.blocked} are "
        f"blocked, and {places.strangers} others of the job are visible"
    )
    if places.chosen:
        return Action.KEEP, f"{story}: names of the caller's choice do not tell whose files they are, look at them"
    if shown == total:
        return Action.KEEP, f"{story}: nobody can say which belong to it, look at them"
    return Action.BACK, f"{story}: it cannot be completed"


def _go_forward(ctx: CommitContext, job: JobRecord, loaded: LoadedJob) -> None:
    """Rename what waits and end the job; again is harmless. A ``_SUCCESS`` of a job that ended since stays (C6)."""
    is_newest = file_info(ctx, layout.SUCCESS) is None
    options = replace(
        ctx.settings.hadoop,
        mark_successful_jobs=ctx.settings.hadoop.mark_successful_jobs and is_newest,
        cleanup_skipped=False,
        cleanup_failures_ignored=False,
    )
    measure = Measure(ctx.with_settings(hadoop=options))
    rename_files(measure, job, loaded)
    finish_job(measure, job, loaded)
