"""Announce uploads that could otherwise not be found later, before the attempt starts them.

A listing shows only the key of a pending upload. If the caller chose the file name, the key does not identify the job;
and some servers do not list uploads at all. So an attempt first writes an intent record, which names the uploads that
the attempt is about to start; one record covers a whole batch of small files. A sweep, which is the part of cleanup
that aborts leftover uploads, reads the intent records of jobs that have ended, and aborts the uploads that these
records name. If the caller chose the file name, several jobs may have announced the same key: the sweep spares the
upload as long as one of these jobs may still commit, and aborts it after the last of them has ended.

The order matters (C7, C9):

- A record is written before the first upload that it names is started. So if a listing shows an upload, every *later*
  listing of records shows its record.
- A record is deleted only after a sweep that began when the record's attempt could start no more uploads: the attempt
  had reported, or had been quiet for so long that it was considered dead. The tasks of an aborted job continue for some
  seconds before Spark kills them, and uploads that they start in that time must still be found.
- A record is not deleted while a sweep spares one of its uploads because of another job: that job may withdraw.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from holdfast.commit import layout
from holdfast.commit.codec import decode_intents, encode_intents
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import FileOwner, JobId, is_job_id
from holdfast.errors import AccessDeniedError, CorruptDataError, NotFoundError
from holdfast.runtime import BackgroundExecutor
from holdfast.stores.base import UploadInfo, batched_keys, iter_objects

QUIET_S = 3600.0
"""How long an attempt that has not reported must be quiet before its intent records are deleted; live attempts never
pause for so long.
"""

_log = logging.getLogger(__name__)

_BATCH_FILES = 64
_RECORD = re.compile(r"(.+)\.intents-\d+\.jsonl", re.DOTALL)


def is_intent_record(key: str) -> bool:
    """Check whether `key` is the key of an intent record."""
    return _RECORD.fullmatch(key) is not None


class Intents:
    """Announces the uploads of one attempt before they are started, so that cleanup can find them.

    Guarantee: before an upload is started, a durable record names it. Small files cost one request per batch; a file of
    more than one part costs at most one request.

    Memory: small files that wait for their batch use at most a quarter of the attempt's part budget.
    """

    def __init__(self, ctx: CommitContext, owner: FileOwner, background: BackgroundExecutor) -> None:
        self._ctx = ctx
        self._owner = owner
        self._background = background
        self._limit_bytes = ctx.settings.part_buffer_bytes // 4
        self._waiting: list[tuple[str, Callable[[], object]]] = []
        self._waiting_bytes = 0
        self._records: list[str] = []

    def announce(self, path: str) -> None:
        """Write an intent record for an upload to `path` and for all waiting uploads, then start the waiting ones."""
        self._write_record([*(waiting for waiting, _ in self._waiting), path])

    def wait(self, path: str, size_bytes: int, work: Callable[[], object]) -> None:
        """Queue `work`, an upload of `size_bytes` to `path`, to run in the background once a record announces it."""
        self._waiting.append((path, work))
        self._waiting_bytes += size_bytes
        if len(self._waiting) >= _BATCH_FILES or self._waiting_bytes >= self._limit_bytes:
            self.flush()

    def flush(self) -> None:
        """Write an intent record for all waiting uploads, if there are any, then start them."""
        if self._waiting:
            self._write_record([path for path, _ in self._waiting])

    def _write_record(self, paths: Sequence[str]) -> None:
        owner = self._owner
        key = self._ctx.key(layout.intents_path(owner.job, owner.task, owner.attempt, len(self._records)))
        self._records.append(key)  # before the put, so that a record is withdrawn even if its reply is lost
        self._ctx.store.put(key, encode_intents(owner, paths))
        ready, self._waiting, self._waiting_bytes = self._waiting, [], 0
        for _, work in ready:
            self._background.submit(work)

    def withdraw(self) -> None:
        """Delete the attempt's intent records. Requires: the attempt has aborted every upload that it started."""
        self._waiting.clear()
        for batch in batched_keys(self._records):
            self._ctx.store.delete_many(batch)


# --- sweeping ---------------------------------------------------------------------------------------------------------
def unreported_intents(records: Iterable[str], keys: Collection[str]) -> set[str]:
    """Return the intent records of attempts that have not reported: these attempts may still start uploads.

    Args:
        records: keys of intent records.
        keys: all keys in the folders of these records' jobs, from the same listing.
    """
    unreported = set()
    for key in records:
        found = _RECORD.fullmatch(key)
        assert found is not None, "is_intent_record selected them"
        # An attempt writes its manifest last: it starts no upload afterwards.
        if f"{found[1]}.jsonl" not in keys:
            unreported.add(key)
    return unreported


def announced_keys(ctx: CommitContext, records: Iterable[str]) -> set[str]:
    """Return the keys that intent records of this destination announce; skip unreadable records."""
    return _read_announced_keys(ctx, ctx.prefix, records)[0]


def find_abortable_and_contested_keys(
    ctx: CommitContext, records: Iterable[str], wanted: set[str], has_ended: Callable[[JobId, str], bool]
) -> tuple[set[str], set[str]]:
    """Find the keys in `wanted` that ended jobs announced: those whose uploads may be aborted, and contested ones.

    Returns:
        Two sets: the keys that were announced only by jobs that have ended, and the contested keys, which a job that
        may still commit has announced too, or may have announced. Every key that an unreadable record might name is
        contested.

    Args:
        records: keys of the intent records of jobs that have ended, in the context's own destination.
        wanted: keys of pending uploads, from a listing that was made before this call.
        has_ended: returns whether a job can no longer commit; see `holdfast.commit.two_phase.pending_uploads`.
    """
    announced, all_read = _read_announced_keys(ctx, ctx.prefix, records)
    own = wanted & announced
    contested = set() if all_read else wanted - own
    # This comes after the listing of uploads, so the record of every listed upload exists by now (C7).
    for home in sorted({home for key in own for home in layout.iter_folders_above(key)}):
        alive, all_read = _read_announced_keys(ctx, home, _list_live_intent_records(ctx, home, has_ended))
        contested |= own & alive if all_read else own
    return own - contested, contested


def find_announcers(ctx: CommitContext, uploads: Iterable[UploadInfo]) -> dict[str, set[JobId]]:
    """Map the key of each upload to the jobs that announced it, including jobs of destinations above or below this one.

    Args:
        uploads: the uploads to look up. Uploads whose keys name their job are skipped, and need no request.
    """
    found: dict[str, set[JobId]] = {}
    unnamed = {upload.key for upload in uploads if layout.job_in_key(upload.key) is None}
    for home in sorted({home for key in unnamed for home in layout.iter_folders_above(key)}):
        for job, keys in _read_intent_records(ctx, home, (record for _, record in _list_intent_records(ctx, home))):
            for key in unnamed.intersection(keys):
                found.setdefault(key, set()).add(job)
    return found


def find_owning_jobs(ctx: CommitContext, uploads: Sequence[UploadInfo]) -> Callable[[str], list[JobId]]:
    """Return a function from the key of one of the uploads to the jobs that may own it, oldest first.

    That is the job in the key, or else all jobs that announced it.
    """
    announcers = find_announcers(ctx, uploads)

    def owners_of(key: str) -> list[JobId]:
        job = layout.job_in_key(key)
        return sorted(announcers.get(key, ())) if job is None else [job]

    return owners_of


def _list_intent_records(ctx: CommitContext, home: str) -> Iterator[tuple[JobId, str]]:
    jobs = home + layout.JOBS
    try:
        for info in iter_objects(ctx.store, jobs):
            name = info.key[len(jobs) :].partition("/")[0]
            if is_job_id(name) and is_intent_record(info.key):
                yield JobId(name), info.key
    except AccessDeniedError:
        if len(home) >= len(ctx.prefix):
            raise
        # The credentials cover only this destination; see `holdfast.commit.two_phase.pending_uploads`.


def _list_live_intent_records(ctx: CommitContext, home: str, has_ended: Callable[[JobId, str], bool]) -> Iterator[str]:
    return (record for job, record in _list_intent_records(ctx, home) if not has_ended(job, home + layout.JOBS))


def _read_announced_keys(ctx: CommitContext, home: str, records: Iterable[str]) -> tuple[set[str], bool]:
    """Return the keys that records name, and whether all records could be read."""
    found = list(_read_intent_records(ctx, home, records))
    return {key for _, keys in found for key in keys}, all(job for job, _ in found)


def _read_intent_records(ctx: CommitContext, home: str, records: Iterable[str]) -> Iterator[tuple[JobId, list[str]]]:
    """Read records, and yield the job and the keys of each; the job is empty if the record cannot be read."""

    def read_intent_record(record: str) -> tuple[JobId, list[str]] | None:
        try:
            owner, paths = decode_intents(record, ctx.store.get(record))
        except NotFoundError:
            return None  # its job has ended, and another process has cleaned up
        except CorruptDataError as error:
            _log.warning("an intent record cannot be read, cleanup spares the uploads that it may name: %s", error)
            return JobId(""), []
        return owner.job, [home + path for path in paths]

    return (found for found in ctx.runner.map(read_intent_record, records) if found is not None)
