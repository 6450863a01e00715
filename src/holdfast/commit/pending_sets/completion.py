"""Pending uploads of a whole job: completed side by side, taken back when one fails, or aborted.

What a job commit completes are sets, one a task, each behind a name: a record in a store. They are loaded a few ahead
of the completions, so that memory holds some sets and not all (HADOOP-16570). Interface::

    published = complete_all(measure, names, load)      # names: Sequence[T]; load: T -> PendingSet
    abort_sets(measure, names, load)                    # as far as the sets can be loaded
    abort_all(measure, pendings)                        # of any iterable of SinglePending
    pending = pending_of_entry(ctx, file, owner, uri=...)   # what to save of a file whose bytes are all up

Sources: paper 000, VI and XIV.B; paper 001, "Magic Committer" (Task commit, Job Commit); HADOOP-16570.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Generic, TypeVar

from holdfast.commit.attempt_names import attempt_name, attempt_owner
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.pending import Etags, PendingPart, PendingSet, SinglePending
from holdfast.commit.ids import AttemptId, FileOwner
from holdfast.commit.job_ends import succeed
from holdfast.commit.measure import Measure
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, Totals
from holdfast.commit.statistics import NO_STATISTICS, Statistics
from holdfast.commit.success_file import FILENAME_LIMIT
from holdfast.commit.uploads import complete_upload, is_published
from holdfast.errors import HoldfastError, NotFoundError, OutcomeUnknownError
from holdfast.stores.base import Support, iter_uploads_of, multipart

__all__ = [
    "Published",
    "abort_all",
    "abort_sets",
    "bucket_name",
    "complete_all",
    "etags_of",
    "pending_of_entry",
    "succeed_with",
    "waits_unlisted",
    "writer_of",
]

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What `complete_all` has made visible.

    Attributes:
        sets: how many there were.
        paths: the first files, relative to the destination, as many as a report names.
        statistics: of the sets' tasks.
    """

    sets: int
    totals: Totals
    paths: tuple[str, ...]
    statistics: Statistics


def bucket_name(url: str) -> str:
    """The bucket that records of a destination at `url` name; for files, which have none, ``file``."""
    scheme, _, rest = url.partition("://")
    return rest.partition("/")[0] or scheme


def pending_of_entry(ctx: CommitContext, file: FileEntry, owner: FileOwner | None, *, uri: str) -> SinglePending:
    """What to save of a file whose bytes are all up: enough for any process to complete or abort it.

    Args:
        owner: the attempt that wrote it; None if nobody knows, as for files written through a plain file system.
        uri: of the path that the program wrote to.
    """
    now_s = ctx.clock.now_s()
    now_ms = int(now_s * 1000)
    return SinglePending(
        bucket=bucket_name(ctx.url),
        key=ctx.key(file.path),
        upload_id=file.upload_id,
        parts=tuple(PendingPart(etag, size_bytes) for etag, size_bytes in file.parts),
        size_bytes=file.size_bytes,
        uri=uri,
        rows=file.rows,
        created_ms=now_ms,
        saved_ms=now_ms,
        date=datetime.fromtimestamp(now_s, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        job_id=owner.job if owner is not None else "",
        task_id=attempt_name(owner) if owner is not None else "",
    )


def etags_of(ctx: CommitContext) -> Etags:
    """How the user wants etags written: for which releases of Hadoop."""
    return Etags.TEXTS if ctx.settings.hadoop.etags_as_text else Etags.OBJECTS


def writer_of(pending: SinglePending) -> AttemptId | None:
    """The attempt that wrote the file, where its record tells: two attempts may share the file's name."""
    owner = attempt_owner(pending.task_id)
    return None if owner is None else owner.attempt


@dataclass(slots=True)
class _Run(Generic[T]):
    """How far a run has come. Workers only append to `completed` and `unknown` and remove from `waiting`."""

    measure: Measure
    sets: Sequence[T]
    load: Callable[[T], PendingSet]
    loaded: int = 0
    statistics: Statistics = NO_STATISTICS
    waiting: dict[tuple[str, str], SinglePending] = field(default_factory=dict)
    completed: list[str] = field(default_factory=list)
    unknown: list[SinglePending] = field(default_factory=list)

    def draw(self) -> Generator[SinglePending, None, None]:
        for found in self.measure.ctx.runner.map(self.load, self.sets):
            self.loaded += 1
            self.statistics += found.statistics
            self.waiting.update({(one.key, one.upload_id): one for one in found.commits})
            yield from found.commits

    def complete(self, pending: SinglePending) -> SinglePending:
        ctx, recorder = self.measure.ctx, self.measure.recorder
        try:
            with recorder.timed("committer_materialize_file"):
                there = _complete(ctx, pending)
            if not there:
                raise NotFoundError(
                    "somebody aborted a pending upload of the job, as another job on the destination with "
                    "abort_pending_uploads does: run the job again",
                    key=pending.key,
                )
        except HoldfastError as error:
            recorder.count("committer_commits.failures")
            if isinstance(error, OutcomeUnknownError):
                self.unknown.append(pending)
            raise
        self.completed.append(pending.key)
        del self.waiting[pending.key, pending.upload_id]
        recorder.count("committer_commits_completed")
        recorder.count("committer_bytes_committed", pending.size_bytes)
        return pending

    def undo(self) -> None:
        # Deletions first: while something waits, recovery can still tell a job that was taken back from one that
        # was committed and lost files to a later job (see `judge`).
        runner = self.measure.ctx.runner
        _run_through(runner.map(self._revert, self.completed))
        abort_all(self.measure, self.waiting.values())
        _run_through(runner.map(self._revert_if_there, self.unknown))
        abort_sets(self.measure, self.sets[self.loaded :], self.load)

    def _revert(self, key: str) -> None:
        try:
            self.measure.ctx.store.delete(key)
        except HoldfastError as error:
            _log.warning("a file of a job that failed could not be deleted: delete it (%s)", error)
        else:
            self.measure.recorder.count("committer_commits_reverted")

    def _revert_if_there(self, pending: SinglePending) -> None:
        """The store never said whether it is visible; its upload is aborted by now, so what stands there stays."""
        ctx = self.measure.ctx
        try:
            there = is_published(ctx, pending.file_entry(ctx.prefix), writer_of(pending))
        except HoldfastError as error:
            _log.warning("nobody knows whether a file of a job that failed is visible: look at it (%s)", error)
        else:
            if there:
                self._revert(pending.key)


def _is_named(pending: SinglePending) -> bool:
    return bool(pending.job_id) and pending.job_id in pending.key.rpartition("/")[2]


def _complete(ctx: CommitContext, pending: SinglePending) -> bool:
    """As `complete_upload`. A file that an attempt of ours wrote is known by its metadata, one of Hadoop's by its etag.

    Where its store's etags say nothing and its name does not tell the job, its size has to do.
    """
    file, writer = pending.file_entry(ctx.prefix), writer_of(pending)
    if writer is not None or not pending.completed_etag or _is_named(pending):
        return complete_upload(ctx, file, writer, pending.checksums)

    def is_there() -> bool:
        try:
            found = ctx.store.head(pending.key)
        except NotFoundError:
            return False
        return (found.size_bytes, found.etag) == (pending.size_bytes, pending.completed_etag)

    return complete_upload(ctx, file, None, pending.checksums, is_there)


def complete_all(
    measure: Measure, sets: Sequence[T], load: Callable[[T], PendingSet], *, revert: bool = True
) -> Published:
    """Make every pending upload of `sets` visible.

    Guarantee: on return all files are there. After an error none of them is, as far as the store lets: files that this
    call completed are deleted, all other uploads of sets that can be loaded are aborted, and the first error is the
    one that is raised, whatever else goes wrong (scenarios 11, 15). A completion whose reply was lost is settled.
    Memory: the sets that are loaded ahead, and the keys of completed files.

    Args:
        sets: names of the sets; small values.
        load: reads one, in a worker thread.
        revert: False to leave everything as it is at an error, so that the call can be run again.

    Raises:
        NotFoundError: an upload is gone and its file is not there.
        HoldfastError: of `load` or of the store.

    Crash: some files are visible (C4 does not hold), the uploads of the others wait; run it again.
    """
    ctx = measure.ctx
    run = _Run(measure, sets, load)
    totals, paths = Totals(), list[str]()
    uploads = run.draw()
    try:
        for done, pending in enumerate(ctx.runner.map(run.complete, uploads), start=1):
            totals += Totals(files=1, size_bytes=pending.size_bytes, rows=pending.rows)
            if len(paths) < FILENAME_LIMIT:
                paths.append(pending.key.removeprefix(ctx.prefix))
            ctx.progress("uploads", done, 0)
    except Exception:
        uploads.close()  # ends the threads that load
        if revert:
            run.undo()
        raise
    return Published(sets=run.loaded, totals=totals, paths=tuple(paths), statistics=run.statistics)


def succeed_with(measure: Measure, job: JobRecord, published: Published) -> JobOutcome:
    """The end of a job whose uploads were completed: see `succeed`."""
    return succeed(
        measure,
        job,
        totals=published.totals,
        tasks=published.sets,
        paths=published.paths,
        statistics=published.statistics,
    )


def waits_unlisted(ctx: CommitContext, pending: SinglePending) -> bool:
    """Whether an upload waits that a listing by directory has not shown: asked by its key, where there may be such.

    MinIO shows none, others lose some: a listing confirms what a record tells, it does not deny it.
    """
    if ctx.store.capabilities.lists_uploads is Support.YES:
        return False
    return any(found.upload_id == pending.upload_id for found in iter_uploads_of(multipart(ctx.store), pending.key))


def abort_all(measure: Measure, pendings: Iterable[SinglePending]) -> int:
    """Abort pending uploads side by side; returns how many. Missing ones are no error, again is harmless.

    An upload that cannot be aborted is logged, not raised: aborts happen because of another error (paper 001, "Failure
    during task/job abort"), and ``holdfast uploads abort`` finds what is left.
    """
    store, recorder = multipart(measure.ctx.store), measure.recorder

    def abort(pending: SinglePending) -> bool:
        try:
            store.abort_upload(pending.key, pending.upload_id)
        except HoldfastError as error:
            _log.warning("a pending upload could not be aborted: abort it with holdfast uploads abort (%s)", error)
            return False
        recorder.count("committer_commits_aborted")
        return True

    return sum(measure.ctx.runner.map(abort, pendings))


def abort_sets(measure: Measure, sets: Iterable[T], load: Callable[[T], PendingSet]) -> int:
    """Abort every upload of the sets that can be loaded, set by set; returns how many."""

    def load_if_possible(name: T) -> Sequence[SinglePending]:
        try:
            return load(name).commits
        except HoldfastError as error:
            _log.warning("pending uploads could not be read and are not aborted (%s)", error)
            return ()

    def drawn() -> Iterator[SinglePending]:
        for commits in measure.ctx.runner.map(load_if_possible, sets):
            yield from commits

    return abort_all(measure, drawn())


def _run_through(results: Iterator[None]) -> None:
    for _done in results:
        pass
