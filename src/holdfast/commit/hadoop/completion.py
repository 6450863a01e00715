"""Complete the pending uploads of a whole job in parallel, revert them after an error, or abort them.

A pending set lists the pending uploads of one task; a job commit completes all of them. Each set has a name, which
refers to a record in a store. Only a few sets are loaded ahead of the completions, so that memory never holds all sets
(HADOOP-16570). Interface::

    published = complete_all_uploads(measure, names, load)  # names: Sequence[T]; load: T -> PendingSet
    abort_pendingsets(measure, names, load)                 # all uploads of the sets that can be loaded
    abort_all_uploads(measure, pendings)                    # pendings: any iterable of SinglePending
    pending = build_pending_record(ctx, file, owner, uri=...)   # the record of a file whose parts are all uploaded

Sources: paper 000, VI and XIV.B; paper 001, "Magic Committer" (Task commit, Job Commit); HADOOP-16570.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.hadoop.pending import PendingSet, SinglePending
from holdfast.commit.ids import AttemptId, FileOwner, make_hadoop_attempt_id, parse_hadoop_attempt_id
from holdfast.commit.records import FileEntry, JobOutcome, JobRecord, Totals
from holdfast.commit.statistics import NO_STATISTICS, Statistics
from holdfast.commit.success_file import FILENAME_LIMIT, write_success_report
from holdfast.commit.task import complete_upload, is_file_published
from holdfast.errors import HoldfastError, NotFoundError, OutcomeUnknownError
from holdfast.stores.base import Support, iter_uploads, iter_uploads_of, multipart

T = TypeVar("T")
Upload = tuple[str, str]
"""Key and upload id."""

_ROUNDS = 3
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFiles:
    """The result of `complete_all_uploads`.

    Attributes:
        sets: the number of sets.
        paths: the paths of the first files, relative to the destination, as many as a report lists.
        statistics: the merged statistics of the tasks whose sets were loaded.
    """

    sets: int
    totals: Totals
    paths: tuple[str, ...]
    statistics: Statistics


def bucket_name(url: str) -> str:
    """Return the bucket of a destination, as its records name it; ``file`` for a local destination."""
    scheme, _, rest = url.partition("://")
    return rest.partition("/")[0] or scheme


def build_pending_record(ctx: CommitContext, file: FileEntry, owner: FileOwner | None, *, uri: str) -> SinglePending:
    """Return the record with which any process can complete or abort the upload of a file whose parts are all uploaded.

    Args:
        owner: the attempt that wrote the file; None if unknown, for example if it was written through a plain file
            system.
        uri: the URI of the path that the program wrote to.
    """
    return SinglePending(
        bucket=bucket_name(ctx.url),
        key=ctx.key(file.path),
        upload_id=file.upload_id,
        parts=file.upload_parts,
        size_bytes=file.size_bytes,
        uri=uri,
        rows=file.rows,
        created_ms=int(ctx.clock.now_s() * 1000),
        job_id=owner.job if owner is not None else "",
        task_id=make_hadoop_attempt_id(owner) if owner is not None else "",
    )


def find_writer_attempt(pending: SinglePending) -> AttemptId | None:
    """Return the attempt that wrote the file, according to its record; two attempts may use the same file name."""
    owner = parse_hadoop_attempt_id(pending.task_id)
    return None if owner is None else owner.attempt


@dataclass(slots=True)
class _UploadCompletion(Generic[T]):
    """The progress of one `complete_all_uploads`.

    Workers only add to `completed` and `unknown`, and remove from `pending`.
    """

    measure: Measure
    sets: Sequence[T]
    load: Callable[[T], PendingSet]
    loaded: int = 0
    statistics: Statistics = NO_STATISTICS
    pending: dict[tuple[str, str], SinglePending] = field(default_factory=dict)
    completed: list[str] = field(default_factory=list)
    unknown: list[SinglePending] = field(default_factory=list)

    def iter_pending_uploads(self) -> Generator[SinglePending, None, None]:
        for found in self.measure.ctx.runner.map(self.load, self.sets):
            self.loaded += 1
            self.statistics += found.statistics
            self.pending.update({(one.key, one.upload_id): one for one in found.commits})
            yield from found.commits

    def complete(self, pending: SinglePending) -> SinglePending:
        ctx, recorder = self.measure.ctx, self.measure.recorder
        try:
            with recorder.time_block("committer_materialize_file"):
                there = _complete_pending(ctx, pending)
            if not there:
                raise NotFoundError(
                    "a pending upload of the job was aborted, as Hadoop's committers do when another job on the "
                    "destination ends: run the job again",
                    key=pending.key,
                )
        except HoldfastError as error:
            recorder.count("committer_commits.failures")
            if isinstance(error, OutcomeUnknownError):
                self.unknown.append(pending)
            raise
        self.completed.append(pending.key)
        del self.pending[pending.key, pending.upload_id]
        recorder.count("committer_commits_completed")
        recorder.count("committer_bytes_committed", pending.size_bytes)
        return pending

    def require_first_file_still_exists(self) -> None:
        """Check that the first file still exists: if the destination was moved or deleted, later files recreated it."""
        for key in self.completed[:1]:
            try:
                self.measure.ctx.store.head(key)
            except NotFoundError as error:
                raise NotFoundError(
                    "the destination was renamed or deleted while the job committed: run the job again",
                    url=self.measure.ctx.url,
                    key=key,
                ) from error

    def revert_completions(self) -> None:
        # Delete files before aborting uploads: while uploads are pending, recovery can distinguish a reverted job from
        # a committed job some of whose files a later job has replaced.
        runner = self.measure.ctx.runner
        _consume_results(runner.map(self._revert_completion, self.completed))
        abort_all_uploads(self.measure, self.pending.values())
        _consume_results(runner.map(self._revert_if_visible, self.unknown))
        abort_pendingsets(self.measure, self.sets[self.loaded :], self.load)

    def _revert_completion(self, key: str) -> None:
        try:
            self.measure.ctx.store.delete(key)
        except HoldfastError as error:
            _log.warning("a file of a failed job could not be deleted: delete it (%s)", error)
        else:
            self.measure.recorder.count("committer_commits_reverted")

    def _revert_if_visible(self, pending: SinglePending) -> None:
        """Delete a file whose completion was not confirmed. Its upload is aborted by now, so it cannot appear later."""
        ctx = self.measure.ctx
        try:
            there = is_upload_visible(ctx, pending)
        except HoldfastError as error:
            _log.warning("it is unknown whether a file of a failed job is visible: check it (%s)", error)
        else:
            if there:
                self._revert_completion(pending.key)


def _key_names_job(pending: SinglePending) -> bool:
    return bool(pending.job_id) and pending.job_id in pending.key.rpartition("/")[2]


def is_upload_visible(ctx: CommitContext, pending: SinglePending) -> bool:
    """Check whether the file at the final path of an upload is the one that the upload, once completed, has made.

    It is recognized by its metadata if a Holdfast attempt wrote it, and by its etag if Hadoop wrote it. If the store's
    etags are not MD5 sums, or the file's name carries the job's id, only the size is compared.
    """
    writer = find_writer_attempt(pending)
    if writer is not None or not pending.completed_etag or _key_names_job(pending):
        return is_file_published(ctx, pending.file_entry(ctx.prefix), writer)
    try:
        found = ctx.store.head(pending.key)
    except NotFoundError:
        return False
    return (found.size_bytes, found.etag) == (pending.size_bytes, pending.completed_etag)


def _complete_pending(ctx: CommitContext, pending: SinglePending) -> bool:
    file = pending.file_entry(ctx.prefix)
    return complete_upload(ctx, file, None, pending.parts, lambda: is_upload_visible(ctx, pending))


def complete_all_uploads(
    measure: Measure, sets: Sequence[T], load: Callable[[T], PendingSet], *, revert: bool = True
) -> PublishedFiles:
    """Make every pending upload of `sets` visible.

    Guarantee: on return all files are visible. After an error no file is visible, as far as possible: the files that
    this call completed are deleted, all other uploads of sets that can be loaded are aborted, and the first error is
    raised, even if the clean-up fails too. If the reply to a completion is lost, the file's state is
    checked. At the end the first file must still exist: if not, the destination was renamed or deleted meanwhile.
    Memory: the sets that are loaded ahead, and the keys of completed files.

    Args:
        sets: small values that identify the sets, such as their names.
        load: loads one set, in a worker thread.
        revert: False to leave all files and uploads as they are after an error, so that the call can be repeated; then
            it is not checked at the end that the first file still exists.

    Raises:
        NotFoundError: an upload does not exist and its file is not visible, or the first file is gone at the end.
        HoldfastError: `load` or the store failed.

    Crash: some files are visible, although the job is not committed (against C4), and the uploads of the others are
        pending; run it again.
    """
    ctx = measure.ctx
    run = _UploadCompletion(measure, sets, load)
    totals, paths = Totals(), list[str]()
    uploads = run.iter_pending_uploads()
    try:
        for done, pending in enumerate(ctx.runner.map(run.complete, uploads), start=1):
            totals += Totals(files=1, size_bytes=pending.size_bytes, rows=pending.rows)
            if len(paths) < FILENAME_LIMIT:
                paths.append(pending.key.removeprefix(ctx.prefix))
            ctx.progress("uploads", done, 0)
        if revert:
            run.require_first_file_still_exists()
    except Exception:
        uploads.close()  # stops the threads that load
        if revert:
            run.revert_completions()
        raise
    return PublishedFiles(sets=run.loaded, totals=totals, paths=tuple(paths), statistics=run.statistics)


def report_completion(measure: Measure, job: JobRecord, published: PublishedFiles) -> JobOutcome:
    """Write the report of a job whose uploads are completed to ``_SUCCESS``, and return the job's outcome."""
    return write_success_report(
        measure,
        job,
        totals=published.totals,
        tasks=published.sets,
        paths=published.paths,
        statistics=published.statistics,
    )


def is_unlisted_upload_pending(ctx: CommitContext, pending: SinglePending) -> bool:
    """Check by key whether an upload is pending although a listing by directory did not show it.

    MinIO lists no uploads by directory, and other stores omit some. So a listing can prove that an upload is pending,
    but not that it is not. On stores with complete listings no request is made.
    """
    if ctx.store.capabilities.lists_uploads is Support.YES:
        return False
    return any(found.upload_id == pending.upload_id for found in iter_uploads_of(multipart(ctx.store), pending.key))


def abort_all_uploads(measure: Measure, pendings: Iterable[SinglePending]) -> int:
    """Abort pending uploads in parallel; return how many were aborted. Missing uploads are not an error. Idempotent.

    If an upload cannot be aborted, this is logged and not raised, because an abort usually follows another error (paper
    001, "Failure during task/job abort"); ``holdfast uploads abort`` finds the remaining uploads.
    """
    store, recorder = multipart(measure.ctx.store), measure.recorder

    def abort_upload(pending: SinglePending) -> bool:
        try:
            store.abort_upload(pending.key, pending.upload_id)
        except HoldfastError as error:
            _log.warning("a pending upload could not be aborted: abort it with holdfast uploads abort (%s)", error)
            return False
        recorder.count("committer_commits_aborted")
        return True

    return sum(measure.ctx.runner.map(abort_upload, pendings))


def abort_pendingsets(measure: Measure, sets: Iterable[T], load: Callable[[T], PendingSet]) -> int:
    """Abort every upload of the sets that can be loaded, set by set; return how many were aborted."""

    def load_if_possible(name: T) -> Sequence[SinglePending]:
        try:
            return load(name).commits
        except HoldfastError as error:
            _log.warning("a pending set could not be loaded, so its uploads are not aborted (%s)", error)
            return ()

    def iter_uploads() -> Iterator[SinglePending]:
        for commits in measure.ctx.runner.map(load_if_possible, sets):
            yield from commits

    return abort_all_uploads(measure, iter_uploads())


def abort_selected_uploads(measure: Measure, select: Callable[[set[Upload]], set[Upload]]) -> None:
    """Abort the destination's pending uploads that `select` chooses, in parallel, until it chooses none.

    A part that is in flight during the abort can keep its upload alive. So uploads are listed and aborted up to three
    times.

    Args:
        select: called with the pending uploads that a listing shows; returns the uploads to abort.

    Raises:
        HoldfastError: a store call failed; some uploads are aborted.
    """
    ctx = measure.ctx
    store = multipart(ctx.store)
    for _ in range(_ROUNDS):
        selected = select({(upload.key, upload.upload_id) for upload in iter_uploads(store, ctx.prefix)})
        if not selected:
            return
        for _done in ctx.runner.map(lambda upload: store.abort_upload(*upload), sorted(selected)):
            measure.recorder.count("committer_commits_aborted")


def _consume_results(results: Iterator[None]) -> None:
    for _done in results:
        pass
