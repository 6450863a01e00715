"""What a reader through Holdfast sees: whole jobs only (C4).

A decided job without ``visible`` is left out and what it replaces is kept; with ``visible`` it counts and what it
replaces does not. The switch is one record.
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
    """A file of the destination; `path` is relative to it. A reader of ranges names the `etag` of the listing."""

    path: str
    size_bytes: int
    etag: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The destination at one instant.

    Attributes:
        head: newest decision that was looked at, 0 if Holdfast never wrote here.
        table: what the table looks like (see `LogState`), None if the log tells of no table.
    """

    head: int
    files: tuple[VisibleFile, ...]
    table: Mapping[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """What the log says at one moment. Two that are equal stand for one state of the destination's files.

    Attributes:
        head: newest decision, 0 if Holdfast never wrote here.
        waiting: decisions whose files are not all visible, or whose replaced files may still be there.
        table: as in `Snapshot`.
    """

    head: int
    waiting: frozenset[int]
    table: Mapping[str, object] | None

    @property
    def is_settled(self) -> bool:
        """Whether a plain listing shows whole jobs only, for as long as nothing new is decided."""
        return not self.waiting


def read_instant(ctx: CommitContext, attempts: int = 50) -> Instant:
    """What the log says now; for who lists the files with another tool, and looks again afterwards.

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
            continue  # an entry was trimmed under our eyes: the log has moved
    raise UnavailableError("jobs are decided faster than the log is read: read again", url=ctx.url)


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a listing shows and no reader counts.

    Attributes:
        jobs: their files.
        paths: files, by the etag that they have; empty for any.
    """

    jobs: frozenset[JobId]
    paths: Mapping[str, str]

    def hides(self, path: str, etag: str) -> bool:
        owner = file_owner(path)
        if owner is not None and owner.job in self.jobs:
            return True
        # A later job may have used a name again that is not deleted yet, or is: then another file stands there.
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
        view = read_log(ctx)  # outside: what is not found here is the bucket
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
                    "records of a committed job are lost, somebody removed them: restore them, or run holdfast recover "
                    "--accept-damage",
                    url=ctx.url,
                ) from error
            before = view  # a record went under our eyes: its job is finished by now, and the log has moved
    raise UnavailableError("jobs are decided faster than the destination is listed: read again", url=ctx.url)


def _instant(view: LogView) -> tuple[int, frozenset[int]]:
    """What must not have moved while the files were listed: the head, and which decisions are not visible yet."""
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
    """Files of a decision whose names do not tell whose they are."""
    for manifest in committed_manifests(ctx, entry):
        yield from (file.path for file in manifest.files if file_owner(file.path) is None)


def _table(ctx: CommitContext, view: LogView, unfinished: list[LogEntry]) -> Mapping[str, object] | None:
    """The table as the newest visible commit left it, which carries on all earlier ones.

    An abort carries on the table, too; one behind a commit that is not visible yet tells of columns that nobody sees.
    """
    waiting = {entry.seq for entry in unfinished if entry.kind is Kind.COMMIT} - view.visible
    newest = view.head
    if waiting:
        # The log keeps the entry before the oldest unfinished one; only the first of all has none before it.
        newest = max((seq for seq in view.visible if seq > min(waiting)), default=min(waiting) - 1)
    return read_entry(ctx, newest).state.table if newest else None
