"""Uploads that could not be found otherwise: each is announced before the store sees it.

A pending upload shows its key and nothing else. Under a name of the caller's choice that is not enough to find its job,
and on a server that does not list uploads it is not shown at all. So an attempt first writes down which uploads it is
about to start: one record for a batch of small files, not one a file. Whoever sweeps reads the records of jobs that are
over, and takes what they name; of names of the caller's choice, unless a job that may still commit names it too: then
the last of them takes it.

Order is everything (C7, C9):

- a record stands before the first upload that it names is started, so that an upload that was seen in a listing is
  named by a record that a *later* listing shows;
- a record goes only after a sweep that began when its attempt had nothing more to start: the attempt has reported, or
  has been quiet for so long that it is taken for dead. Tasks of a job that was given up go on for some seconds before
  Spark kills them, and what they start then must still be found;
- nor does it go while an upload that it names is spared for another job's sake: that job may withdraw.
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

__all__ = ["QUIET_S", "Intents", "announced_keys", "find_announcers", "is_intents", "judge_keys", "unreported_intents"]

QUIET_S = 3600.0
"""How long an attempt that has not reported may be silent before its records go: more than any pause of a live one."""

_log = logging.getLogger(__name__)

_BATCH_FILES = 64
_RECORD = re.compile(r"(.+)\.intents-\d+\.jsonl", re.DOTALL)


def is_intents(key: str) -> bool:
    """Whether `key` is that of such a record."""
    return _RECORD.fullmatch(key) is not None


class Intents:
    """The guard through which those uploads of one attempt go; a `holdfast.commit.sinks.UploadGuard`.

    Guarantee: when an upload is started, a durable record names it. Small files cost one request a batch, a file of
    more than one part at most one.

    Memory: small files that wait for their batch hold a quarter of the attempt's part budget at most.
    """

    def __init__(self, ctx: CommitContext, owner: FileOwner, background: BackgroundExecutor) -> None:
        self._ctx = ctx
        self._owner = owner
        self._background = background
        self._limit_bytes = ctx.settings.part_buffer_bytes // 4
        self._waiting: list[tuple[str, Callable[[], object]]] = []
        self._waiting_bytes = 0
        self._records: list[str] = []

    def enter(self, path: str) -> None:
        """Returns when an upload for `path` may be started."""
        self._announce([*(waiting for waiting, _ in self._waiting), path])

    def wait(self, path: str, size_bytes: int, work: Callable[[], object]) -> None:
        """Run `work`, which starts an upload for `path` and holds `size_bytes`, in the background as soon as it may."""
        self._waiting.append((path, work))
        self._waiting_bytes += size_bytes
        if len(self._waiting) >= _BATCH_FILES or self._waiting_bytes >= self._limit_bytes:
            self.flush()

    def flush(self) -> None:
        """Let everything in that waits."""
        if self._waiting:
            self._announce([path for path, _ in self._waiting])

    def _announce(self, paths: Sequence[str]) -> None:
        owner = self._owner
        key = self._ctx.key(layout.intents(owner.job, owner.task, owner.attempt, len(self._records)))
        self._records.append(key)  # before the put: also one whose reply is lost is withdrawn
        self._ctx.store.put(key, encode_intents(owner, paths))
        ready, self._waiting, self._waiting_bytes = self._waiting, [], 0
        for _, work in ready:
            self._background.submit(work)

    def withdraw(self) -> None:
        """Remove the attempt's records. Requires: the attempt has started nothing that it has not aborted."""
        self._waiting.clear()
        for batch in batched_keys(self._records):
            self._ctx.store.delete_many(batch)


# --- sweeping ---------------------------------------------------------------------------------------------------------
def unreported_intents(records: Iterable[str], keys: Collection[str]) -> set[str]:
    """Those of attempts that have not reported: they may have started something since, and may be alive.

    Args:
        records: keys of records of intents.
        keys: all that is in the folders of their jobs, as the same listing shows it.
    """
    unreported = set()
    for key in records:
        found = _RECORD.fullmatch(key)
        assert found is not None, "is_intents found them"
        # The manifest is an attempt's last act: behind it no upload is started.
        if f"{found[1]}.jsonl" not in keys:
            unreported.add(key)
    return unreported


def announced_keys(ctx: CommitContext, records: Iterable[str]) -> set[str]:
    """The keys that records of the context's own destination name, as far as they can be read."""
    return _announced(ctx, ctx.prefix, records)[0]


def judge_keys(
    ctx: CommitContext, records: Iterable[str], wanted: set[str], is_over: Callable[[JobId, str], bool]
) -> tuple[set[str], set[str]]:
    """Which of the keys in `wanted` jobs that are over have announced.

    Returns:
        Those that they alone have announced, and those that a job which may still commit has announced, too, or may
        have: a record that cannot be read spares what it might name.

    Args:
        records: keys of the records of jobs that are over, in the context's own destination.
        wanted: keys of pending uploads, from a listing that was made before this call.
        is_over: see `holdfast.commit.two_phase.live_jobs`.
    """
    announced, all_read = _announced(ctx, ctx.prefix, records)
    own = wanted & announced
    contested = set() if all_read else wanted - own
    # Later than the listing of uploads: whoever had started one of them by then is found now (C7).
    for home in sorted({home for key in own for home in layout.folders(key)}):
        alive, all_read = _announced(ctx, home, _live_records(ctx, home, is_over))
        contested |= own & alive if all_read else own
    return own - contested, contested


def find_announcers(ctx: CommitContext, uploads: Iterable[UploadInfo]) -> dict[str, set[JobId]]:
    """The jobs that have announced uploads, by key; also jobs in destinations below or above the context's own.

    Args:
        uploads: what is asked about; nothing is read if their keys tell whose they are.
    """
    found: dict[str, set[JobId]] = {}
    unnamed = {upload.key for upload in uploads if layout.job_of(upload.key) is None}
    for home in sorted({home for key in unnamed for home in layout.folders(key)}):
        for job, keys in _read(ctx, home, (record for _, record in _records(ctx, home))):
            for key in unnamed.intersection(keys):
                found.setdefault(key, set()).add(job)
    return found


def _records(ctx: CommitContext, home: str) -> Iterator[tuple[JobId, str]]:
    jobs = home + layout.JOBS
    try:
        for info in iter_objects(ctx.store, jobs):
            name = info.key[len(jobs) :].partition("/")[0]
            if is_job_id(name) and is_intents(info.key):
                yield JobId(name), info.key
    except AccessDeniedError:
        if len(home) >= len(ctx.prefix):
            raise
        # Credentials for this destination alone, as in `holdfast.commit.two_phase.live_jobs`.


def _live_records(ctx: CommitContext, home: str, is_over: Callable[[JobId, str], bool]) -> Iterator[str]:
    return (record for job, record in _records(ctx, home) if not is_over(job, home + layout.JOBS))


def _announced(ctx: CommitContext, home: str, records: Iterable[str]) -> tuple[set[str], bool]:
    """The keys that records name, and whether all of them could be read."""
    found = list(_read(ctx, home, records))
    return {key for _, keys in found for key in keys}, all(job for job, _ in found)


def _read(ctx: CommitContext, home: str, records: Iterable[str]) -> Iterator[tuple[JobId, list[str]]]:
    """Job and keys of each record; no job if it cannot be read."""

    def read(record: str) -> tuple[JobId, list[str]] | None:
        try:
            owner, paths = decode_intents(record, ctx.store.get(record))
        except NotFoundError:
            return None  # its job is over, and somebody else has swept for it
        except CorruptDataError as error:
            _log.warning("what an attempt has announced is spared: %s", error)
            return JobId(""), []
        return owner.job, [home + path for path in paths]

    return (found for found in ctx.runner.map(read, records) if found is not None)
