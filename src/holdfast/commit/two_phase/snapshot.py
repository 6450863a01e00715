"""Read a snapshot of a destination: readers through Holdfast see whole jobs only (C4).

Before a decision is marked ``visible``, its files do not count and the files that it replaces do; afterwards it is the
other way round. So one record switches between the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import JobId, file_owner
from holdfast.commit.nesting import refuse_inner
from holdfast.commit.records import Kind
from holdfast.commit.two_phase.decision_log import read_entry, read_log
from holdfast.commit.two_phase.manifests import committed_manifests
from holdfast.commit.two_phase.records import LogEntry
from holdfast.commit.two_phase.replacement import load_replaced
from holdfast.errors import CorruptDataError, NotFoundError, UnavailableError
from holdfast.versioned_log import LogView

__all__ = ["Instant", "Snapshot", "VisibleFile", "read_instant", "read_snapshot"]


@dataclass(frozen=True, slots=True)
class VisibleFile:
    """A file of the destination; `path` is relative to it.

    Attributes:
        etag: from the listing; a reader of byte ranges passes it on, so that all ranges are from the same file.
    """

    path: str
    size_bytes: int
    etag: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The destination at one instant.

    Attributes:
        head: number of the newest decision, 0 if Holdfast never wrote here.
        table: see `LogState`.
    """

    head: int
    files: tuple[VisibleFile, ...]
    table: Mapping[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """The state of the log at one moment. If two of them are equal, the destination's files were the same.

    Attributes:
        head: number of the newest decision, 0 if Holdfast never wrote here.
        waiting: decisions whose files may not all be visible, or whose replaced files may still exist.
        table: see `LogState`.
    """

    head: int
    waiting: frozenset[int]
    table: Mapping[str, object] | None

    @property
    def is_settled(self) -> bool:
        """Return whether a plain listing shows whole jobs only, until another job is decided."""
        return not self.waiting


def read_instant(ctx: CommitContext, attempts: int = 50) -> Instant:
    """Read the state of the log, for callers that list the files with another tool and compare it again afterwards.

    Raises:
        UnavailableError: jobs are decided faster than the log can be read. Repeat.
        CorruptDataError: a log record cannot be read.
    """
    for _ in range(attempts):
        view = read_log(ctx)
        try:
            unfinished = [read_entry(ctx, seq) for seq in view.unfinished]
            waiting = frozenset(entry.seq for entry in unfinished if entry.kind is Kind.COMMIT)
            return Instant(head=view.head, waiting=waiting, table=_table(ctx, view, unfinished))
        except NotFoundError:
            continue  # an entry was trimmed in between, so the log has moved on
    raise UnavailableError("jobs are decided faster than the log is read: read again", url=ctx.url)


@dataclass(frozen=True, slots=True)
class _Rule:
    """Which listed files do not count.

    Attributes:
        jobs: all files of these jobs.
        paths: these files, by path, if they have this etag; an empty etag matches every file.
    """

    jobs: frozenset[JobId]
    paths: Mapping[str, str]

    def hides(self, path: str, etag: str) -> bool:
        owner = file_owner(path)
        if owner is not None and owner.job in self.jobs:
            return True
        # A later job may have used the name again, before or after the deletion: then this is another file.
        return path in self.paths and self.paths[path] in ("", etag)


def read_snapshot(ctx: CommitContext, attempts: int = 50) -> Snapshot:
    """List the files that count at one instant between the start and the end of this call.

    Raises:
        UnavailableError: jobs are decided faster than the destination can be listed. Repeat.
        CorruptDataError: a log record cannot be read, or records of a committed job are lost.
        InvalidRequestError: another destination lies inside this one.
    """
    before: LogView | None = None
    for _ in range(attempts):
        view = read_log(ctx)  # outside the try block: NotFoundError here means that the bucket does not exist
        try:
            unfinished = [read_entry(ctx, seq) for seq in view.unfinished]
            rule = _visibility(ctx, view, unfinished)
            files = tuple(
                VisibleFile(path, info.size_bytes, info.etag)
                for path, info in layout.iter_visible(ctx.store, ctx.prefix, partial(refuse_inner, ctx))
                if not rule.hides(path, info.etag)
            )
            if _instant(read_log(ctx)) == _instant(view):
                return Snapshot(head=view.head, files=files, table=_table(ctx, view, unfinished))
        except NotFoundError as error:
            if view == before:
                raise CorruptDataError(
                    "records of a committed job are lost, something deleted them: restore them, or run holdfast "
                    "recover --accept-damage",
                    url=ctx.url,
                ) from error
            before = view  # a record was deleted in between: as a rule its decision is done now, and the log moved on
    raise UnavailableError("jobs are decided faster than the destination is listed: read again", url=ctx.url)


def _instant(view: LogView) -> tuple[int, frozenset[int]]:
    """Return what must not change while the files are listed: the head, and the decisions that are not visible."""
    return view.head, frozenset(view.unfinished) - view.visible


def _visibility(ctx: CommitContext, view: LogView, unfinished: list[LogEntry]) -> _Rule:
    jobs: set[JobId] = set()
    paths: dict[str, str] = {}
    for entry in unfinished:
        if entry.kind is Kind.COMMIT and entry.seq in view.visible:
            paths.update((file.path, file.etag) for file in load_replaced(ctx, entry))
        elif entry.kind is Kind.COMMIT:
            jobs.add(entry.job)
            if entry.chosen.files:
                paths.update(dict.fromkeys(_chosen_paths(ctx, entry), ""))
    return _Rule(frozenset(jobs), paths)


def _chosen_paths(ctx: CommitContext, entry: LogEntry) -> Iterator[str]:
    """Iterate over the files of a decision whose names the caller chose."""
    for manifest in committed_manifests(ctx, entry):
        yield from (file.path for file in manifest.files if file_owner(file.path) is None)


def _table(ctx: CommitContext, view: LogView, unfinished: list[LogEntry]) -> Mapping[str, object] | None:
    """Return the table after the newest visible commit, which includes all earlier ones.

    An abort entry copies the table as well; after a commit that is not visible yet, it contains columns that no reader
    sees.
    """
    waiting = {entry.seq for entry in unfinished if entry.kind is Kind.COMMIT} - view.visible
    newest = view.head
    if waiting:
        # The log retains the entry before the oldest unfinished one; only entry 1 has none before it.
        newest = max((seq for seq in view.visible if seq > min(waiting)), default=min(waiting) - 1)
    return read_entry(ctx, newest).state.table if newest else None
