"""Read a snapshot of a destination, so that readers that use Holdfast see only whole jobs (C4).

Until a decision is marked ``visible``, the files that it replaces belong to the snapshot and its own files do not. From
then on, its own files belong to the snapshot and the replaced files do not. So creating one record switches between the
two states.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from holdfast.commit import layout
from holdfast.commit.codec import decode_record, iter_json_lines, read_crc_field, read_text_field
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId, file_owner
from holdfast.commit.nested_destinations import refuse_inner_destination
from holdfast.commit.records import Kind
from holdfast.commit.two_phase.decision_log import read_entry, read_log
from holdfast.commit.two_phase.manifests import iter_committed_manifests
from holdfast.commit.two_phase.records import LogEntry
from holdfast.commit.two_phase.replacement import load_replaced_files
from holdfast.errors import CorruptDataError, NotFoundError, PreconditionError, UnavailableError
from holdfast.versioned_log import LogView


@dataclass(frozen=True, slots=True)
class VisibleFile:
    """A file that belongs to the snapshot; `path` is relative to the destination.

    Attributes:
        etag: the etag in the listing. A reader of byte ranges sends it, so that all ranges come from the same version
            of the file.
    """

    path: str
    size_bytes: int
    etag: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The files and the table of a destination at one moment.

    Attributes:
        head: number of the newest decision, 0 if Holdfast never wrote here.
        table: the table after the newest visible commit; see `LogState`.
    """

    head: int
    files: tuple[VisibleFile, ...]
    table: Mapping[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """The state of the log at one moment. While the log is in this state, no job changes the files that count.

    Attributes:
        head: number of the newest decision, 0 if Holdfast never wrote here.
        etag: see `LogView`.
        waiting: decisions whose files may not all be visible, or whose replaced files may still exist.
        table: see `LogState`.
    """

    head: int
    etag: str = ""
    waiting: frozenset[int]
    table: Mapping[str, object] | None

    @property
    def is_settled(self) -> bool:
        """Check whether a plain listing shows only complete jobs, because every decision has been carried out."""
        return not self.waiting


def read_instant(ctx: CommitContext, attempts: int = 50) -> Instant:
    """Read the state of the log. Compare the states before and after another tool lists the files.

    If the two states are equal, no job changed the files during the listing.

    Raises:
        UnavailableError: jobs are decided faster than the log can be read. Call this again.
        CorruptDataError: a log record cannot be read.
    """
    for _ in range(attempts):
        view = read_log(ctx)
        try:
            unfinished = [read_entry(ctx, seq) for seq in view.unfinished]
            waiting = frozenset(entry.seq for entry in unfinished if entry.kind is Kind.COMMIT)
            return Instant(head=view.head, etag=view.etag, waiting=waiting, table=_read_table(ctx, view, unfinished))
        except NotFoundError:
            continue  # an entry was trimmed after the listing: read the log again
    raise UnavailableError("jobs are decided faster than the log is read: read again", url=ctx.url)


@dataclass(frozen=True, slots=True)
class _VisibilityRule:
    """A rule that says which listed files do not count.

    Attributes:
        jobs: all files with generated names of these jobs do not count.
        paths: files at these paths do not count if they have the given etag; an empty etag matches every file.
    """

    jobs: frozenset[JobId]
    paths: Mapping[str, str]

    def hides(self, path: str, etag: str) -> bool:
        owner = file_owner(path)
        if owner is not None and owner.job in self.jobs:
            return True
        # If the etag differs, a later job has used the name again, and this is another file.
        return path in self.paths and self.paths[path] in ("", etag)


def read_snapshot(ctx: CommitContext, attempts: int = 50) -> Snapshot:
    """List the files that belonged to the destination at one moment during this call.

    Raises:
        UnavailableError: jobs are decided faster than the destination can be listed. Call this again.
        CorruptDataError: a log record cannot be read, or records of a committed job are lost.
        InvalidRequestError: another destination lies inside this one.
    """
    before: LogView | None = None
    for _ in range(attempts):
        view = read_log(ctx)  # outside the try block: NotFoundError here means that the bucket does not exist
        try:
            unfinished = [read_entry(ctx, seq) for seq in view.unfinished]
            rule = _build_visibility_rule(ctx, view, unfinished)
            files = tuple(
                VisibleFile(path, info.size_bytes, info.etag)
                for path, info in layout.iter_visible(ctx.store, ctx.prefix, partial(refuse_inner_destination, ctx))
                if not rule.hides(path, info.etag)
            )
            if _summarize_log_state(read_log(ctx)) == _summarize_log_state(view):
                return Snapshot(head=view.head, files=files, table=_read_table(ctx, view, unfinished))
        except NotFoundError as error:
            if view == before:
                raise CorruptDataError(
                    "records of a committed job are lost, something deleted them: restore them, or run holdfast "
                    "recover --accept-damage",
                    url=ctx.url,
                ) from error
            before = view  # a record was deleted just now; usually its decision is done, and the log has changed
    raise UnavailableError("jobs are decided faster than the destination is listed: read again", url=ctx.url)


def _summarize_log_state(view: LogView) -> tuple[int, str, frozenset[int]]:
    """Return the state that must not change during a listing: the head, and the decisions that are not visible."""
    return view.head, view.etag, frozenset(view.unfinished) - view.visible


def _build_visibility_rule(ctx: CommitContext, view: LogView, unfinished: list[LogEntry]) -> _VisibilityRule:
    jobs: set[JobId] = set()
    paths: dict[str, str] = {}
    for entry in unfinished:
        if entry.kind is Kind.COMMIT and entry.seq in view.visible:
            paths.update((file.path, file.etag) for file in load_replaced_files(ctx, entry))
        elif entry.kind is Kind.COMMIT:
            jobs.add(entry.job)
            if entry.chosen.files:
                paths.update(dict.fromkeys(_iter_chosen_paths(ctx, entry), ""))
    return _VisibilityRule(frozenset(jobs), paths)


def _iter_chosen_paths(ctx: CommitContext, entry: LogEntry) -> Iterator[str]:
    """Iterate over the paths of a decision's files whose names the caller chose."""
    for manifest in iter_committed_manifests(ctx, entry):
        yield from (file.path for file in manifest.files if file_owner(file.path) is None)


def _read_table(ctx: CommitContext, view: LogView, unfinished: list[LogEntry]) -> Mapping[str, object] | None:
    """Return the table after the newest visible commit, which includes the changes of all earlier commits.

    The newest entry cannot always be used: an abort entry copies the table of its predecessor, even if that is a commit
    that is not visible yet, with columns that no reader sees.
    """
    waiting = {entry.seq for entry in unfinished if entry.kind is Kind.COMMIT} - view.visible
    newest = view.head
    if waiting:
        # The log always retains the entry before the oldest unfinished one; only entry 1 has no entry before it.
        newest = max((seq for seq in view.visible if seq > min(waiting)), default=min(waiting) - 1)
    return read_entry(ctx, newest).state.table if newest else None


_RANGE_BYTES = 4 * 1024 * 1024  # 32 threads hold 128 MiB


def read_checksums(ctx: CommitContext, seq: int) -> Iterator[tuple[str, int]]:
    """Iterate over the paths of a visible decision's files and their checksums; empty if the decision is trimmed.

    Raises:
        CorruptDataError: the list is damaged.
    """
    key = layout.log_mark_path(seq, "visible")
    try:
        data = ctx.records.read(key)
    except NotFoundError:
        return
    for value in iter_json_lines(key, data):
        yield decode_record(key, partial(_parse_checksum, value))


def _parse_checksum(value: dict[str, Any]) -> tuple[str, int]:
    return read_text_field(value, "path"), read_crc_field(value)


def find_damaged_files(
    ctx: CommitContext, files: Iterable[VisibleFile], checksums: Mapping[str, int]
) -> Iterator[VisibleFile]:
    """Read files, and yield those that cannot be read, or whose bytes do not match `checksums`.

    This includes files that a job replaces in the meantime.
    """

    def compare_checksum(file: VisibleFile) -> tuple[VisibleFile, bool]:
        return file, _compute_crc32(ctx, file) != checksums[file.path]

    for done, (file, changed) in enumerate(ctx.runner.map(compare_checksum, files), start=1):
        ctx.progress("read", done, len(checksums))
        if changed:
            yield file


def _compute_crc32(ctx: CommitContext, file: VisibleFile) -> int | None:
    """Return the CRC-32 of a file; None if it is no longer the file that was listed, or the store finds it damaged."""
    crc32 = 0
    try:
        for start in range(0, file.size_bytes, _RANGE_BYTES):
            length = min(_RANGE_BYTES, file.size_bytes - start)
            crc32 = zlib.crc32(ctx.store.get(ctx.key(file.path), start, length, file.etag), crc32)
    except (NotFoundError, PreconditionError, CorruptDataError):
        return None
    return crc32
