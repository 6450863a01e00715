"""Mistakes in the transaction that commits a job: functions that run in place of shipped ones.

See `planting`; `transaction_mutants` says what a developer might have been thinking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.records import JobRecord
from holdfast.commit.two_phase.manifests import PreparedOutput
from holdfast.commit.two_phase.records import LogEntry, ReplacedFile
from holdfast.commit.two_phase.roll_forward import TransactionPlan
from holdfast.errors import OutcomeUnknownError
from holdfast.stores.base import Change, Create, Delete, Overwrite, Put, Require, RequireEmpty, as_transactional
from holdfast.versioned_log import LogView, RecordStore

__all__ = [
    "complete_over_anything",
    "delete_first",
    "delete_whatever_is_there",
    "forget_the_order",
    "keep_the_records",
    "mark_afterwards",
    "publish_first",
    "publish_in_two",
    "report_afterwards",
    "take_silence_for_commit",
]


def _path(ctx: CommitContext, change: Change) -> str:
    return change.key.removeprefix(ctx.prefix)


def _is_mark(ctx: CommitContext, change: Change) -> bool:
    return _path(ctx, change).startswith(layout.LOG)


def _apply_after(
    shipped: Callable[..., LogEntry],
    ctx: CommitContext,
    entry: LogEntry,
    view: LogView,
    now: list[Change],
    later: list[Change],
) -> LogEntry:
    """Make some changes with the entry, and the others in a second step if the entry is the caller's."""
    winner = shipped(ctx, entry, view, now)
    if later and winner.token == entry.token:
        as_transactional(ctx.store).apply(later)
    return winner


def publish_in_two(
    shipped: Callable[..., LogEntry], ctx: CommitContext, entry: LogEntry, view: LogView, changes: Sequence[Change] = ()
) -> LogEntry:
    """In place of `append_entry`: decide in one transaction, and do everything else in another."""
    return _apply_after(shipped, ctx, entry, view, [], list(changes))


def publish_first(
    shipped: Callable[..., LogEntry], ctx: CommitContext, entry: LogEntry, view: LogView, changes: Sequence[Change] = ()
) -> LogEntry:
    """In place of `append_entry`: do everything in one transaction, and decide afterwards."""
    if changes:
        as_transactional(ctx.store).apply(changes)
    return shipped(ctx, entry, view)


def delete_first(
    shipped: Callable[..., LogEntry], ctx: CommitContext, entry: LogEntry, view: LogView, changes: Sequence[Change] = ()
) -> LogEntry:
    """In place of `append_entry`: delete what the job replaces before the transaction."""
    gone = [one for one in changes if isinstance(one, Delete) and not layout.is_hidden(_path(ctx, one))]
    if gone:
        as_transactional(ctx.store).apply(gone)
    return shipped(ctx, entry, view, [one for one in changes if one not in gone])


def report_afterwards(
    shipped: Callable[..., LogEntry], ctx: CommitContext, entry: LogEntry, view: LogView, changes: Sequence[Change] = ()
) -> LogEntry:
    """In place of `append_entry`: write the report after the transaction."""
    later = [one for one in changes if _path(ctx, one) == layout.SUCCESS]
    return _apply_after(shipped, ctx, entry, view, [one for one in changes if one not in later], later)


def mark_afterwards(
    shipped: Callable[..., LogEntry], ctx: CommitContext, entry: LogEntry, view: LogView, changes: Sequence[Change] = ()
) -> LogEntry:
    """In place of `append_entry`: mark the decision visible and done after the transaction."""
    later = [one for one in changes if _is_mark(ctx, one)]
    return _apply_after(shipped, ctx, entry, view, [one for one in changes if one not in later], later)


def keep_the_records(
    shipped: Callable[..., LogEntry], ctx: CommitContext, entry: LogEntry, view: LogView, changes: Sequence[Change] = ()
) -> LogEntry:
    """In place of `append_entry`: leave the records of the job to the cleanup."""
    return shipped(ctx, entry, view, [one for one in changes if not _path(ctx, one).startswith(layout.JOBS)])


def forget_the_order(
    shipped: Callable[..., bytes], self: RecordStore, path: str, data: bytes, changes: Sequence[Change]
) -> bytes:
    """In place of `RecordStore.create_with_changes`: do not require that the entry before this one exists."""
    return shipped(self, path, data, [one for one in changes if not isinstance(one, Require | RequireEmpty)])


def take_silence_for_commit(
    shipped: Callable[..., bytes], self: RecordStore, path: str, data: bytes, changes: Sequence[Change]
) -> bytes:
    """In place of `RecordStore.create_with_changes`: consider a transaction made although it was not answered."""
    with suppress(OutcomeUnknownError):
        as_transactional(self.store).apply([Put(self.key(path), data, Create()), *changes])
        return data
    return data


def delete_whatever_is_there(
    shipped: Callable[..., Iterator[Delete]], ctx: CommitContext, entry: LogEntry, files: Iterator[ReplacedFile]
) -> Iterator[Delete]:
    """In place of `deletions`: delete by name alone."""
    for one in shipped(ctx, entry, files):
        yield Delete(one.key)


def complete_over_anything(
    shipped: Callable[..., TransactionPlan], ctx: CommitContext, job: JobRecord, prepared: PreparedOutput
) -> TransactionPlan:
    """In place of `plan_files`: replace whatever exists under the job's names."""
    planned = shipped(ctx, job, prepared)
    return replace(planned, completions=[replace(one, mode=Overwrite()) for one in planned.completions])
