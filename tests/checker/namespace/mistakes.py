"""Mistakes in the namespace: functions that run in place of shipped ones.

Each takes the shipped function first (see `planting`). `mutants` says what a developer might have been thinking.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from holdfast.errors import OutcomeUnknownError
from holdfast.namespace.collector import CollectionResult, Collector
from holdfast.namespace.errors import PathNotFoundError, RenameError
from holdfast.namespace.inode import Inode
from holdfast.namespace.keys import children_range, lease_key
from holdfast.namespace.listing import FileStatus, list_page
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.operation import Changes, Operation, OperationContext
from holdfast.namespace.operations.base import PathsOnlyOperation
from holdfast.namespace.operations.content import OpenForReading
from holdfast.namespace.operations.files import Publish, WriteUnderLease
from holdfast.namespace.operations.names import Delete, Rename
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import READ, Caller
from holdfast.namespace.phases import OperationRunner
from holdfast.namespace.receipts import Receipt, _Once
from holdfast.namespace.view import InodeCache, OperationReads, Reader, ResolvedPath, View, read_view_from_cache
from holdfast.stores.base import Change
from holdfast.transactions.base import ABSENT, Backend, Commit, Record, ScanPage

__all__ = [
    "add_again",
    "believe_hints",
    "charge_without_bound",
    "collect_without_age",
    "collect_without_validation",
    "commit_again",
    "create_without_lease",
    "delete_without_count",
    "forget_garbage",
    "forget_stickiness",
    "forget_the_lease",
    "forget_the_tree",
    "guess_the_answer",
    "list_in_two",
    "move_into_itself",
    "publish_as_superuser",
    "publish_one_by_one",
    "put_one_by_one",
    "read_step_by_step",
    "read_what_was_looked_at",
    "refuse_nobody",
    "rename_without_count",
    "reserve_ids",
    "stay_at_the_path",
    "take_any_end",
    "take_any_lease",
    "take_any_mark",
    "take_nothing_for_done",
    "take_repeats_for_new",
    "validate_the_parent",
    "validate_the_parents",
    "walk_in_many",
    "write_in_place_of_insert",
    "write_what_has_the_path",
]


# --- validation -------------------------------------------------------------------------------------------------------
def _without_ancestors(shipped: Callable[[View], dict[bytes, int]], view: View) -> dict[bytes, int]:
    kept = {key for chain in view.chains for key in chain.keys[-2:]}
    above = {key for chain in view.chains for key in chain.keys} - kept
    return {key: version for key, version in shipped(view).items() if key not in above}


def validate_the_parent(shipped: Callable[[View], dict[bytes, int]], self: View) -> dict[bytes, int]:
    """In place of `View.versions`: validate parent and target of a path, not what is above."""
    return _without_ancestors(shipped, self) if len(self.chains) == 1 else shipped(self)


def validate_the_parents(shipped: Callable[[View], dict[bytes, int]], self: View) -> dict[bytes, int]:
    """In place of `View.versions`: the same for operations on two paths."""
    return _without_ancestors(shipped, self) if len(self.chains) == 2 else shipped(self)


def believe_hints(shipped: Callable[[View], dict[bytes, int]], self: View) -> dict[bytes, int]:
    """In place of `View.versions`: compare the versions of what was read, not of what was known before."""
    return {} if self.is_guess else shipped(self)


def guess_the_answer(shipped: Callable[..., View | None], hints: InodeCache, group: OperationReads) -> View | None:
    """In place of `read_view_from_cache`: take a guess for a snapshot, whose errors are true."""
    view = shipped(hints, group)
    return None if view is None else replace(view, is_guess=False)


class _Remembering:
    """A reader that does not ask again for what it has."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[bytes, Record | None] = {}

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        new = [key for key in keys if key not in self._known]
        return self._with(keys, self._reader.get_many(new) if new else {})

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        page = self._reader.scan(start, end, limit, [key for key in guards if key not in self._known])
        return replace(page, guards=self._with(guards, page.guards))

    def _with(self, keys: Collection[bytes], found: Mapping[bytes, Record]) -> dict[bytes, Record]:
        for key in keys:
            self._known.setdefault(key, found.get(key))
        return {key: record for key in keys if (record := self._known[key]) is not None}


def read_step_by_step(
    shipped: Callable[..., View], reader: Reader, hints: InodeCache, group: OperationReads, most: int = 1
) -> View:
    """In place of `read_view`: read each component of a path once, in as many snapshots as it takes."""
    return shipped(_Remembering(reader), hints, group, most)


def write_in_place_of_insert(shipped: Callable[..., Commit], self: Changes[Any], view: View) -> Commit:
    """In place of `Changes.to_commit`: write new records as if they might exist, since they were not there."""
    commit = shipped(self, view)
    reads = {key: version for key, version in commit.reads.items() if version != ABSENT}
    return replace(commit, reads=reads, inserts={}, puts={**commit.puts, **commit.inserts})


def commit_again(
    shipped: Callable[..., Any],
    self: OperationRunner,
    operation: Operation[Any],
    context: OperationContext,
    number: int,
) -> Any:
    """In place of `Operations._try`: repeat what got no reply."""
    try:
        return shipped(self, operation, context, number)
    except OutcomeUnknownError:
        return shipped(self, operation, context, max(number, 1))


def publish_as_superuser(
    shipped: Callable[..., Any], self: OperationRunner, operation: Operation[Any], caller: Caller
) -> Any:
    """In place of `Operations.run`: do not check permissions again when a file is published."""
    if isinstance(operation, Publish):
        caller = replace(caller, is_superuser=True)
    return shipped(self, operation, caller)


def read_what_was_looked_at(
    shipped: Callable[..., Any], self: OperationRunner, operation: Operation[Any], caller: Caller
) -> Any:
    """In place of `Operations.read`: if hints allow a file to be opened, read it without another check."""
    guess = read_view_from_cache(self.hints, _Looking(operation.paths))
    if isinstance(operation, OpenForReading) and guess is not None and guess.chains[0].target is not None:
        if caller.has_permission(guess.chains[0].target, READ):
            caller = replace(caller, is_superuser=True)
    return shipped(self, operation, caller)


@dataclass(frozen=True)
class _Looking(PathsOnlyOperation):
    """The group of a look at paths."""

    paths: Sequence[NsPath]


def forget_stickiness(shipped: Callable[..., bool], self: Caller, parent: Inode, entry: Inode) -> bool:
    """In place of `Caller.passes_sticky_bit_check`: who may write a directory may remove all entries."""
    return True


# --- directories ------------------------------------------------------------------------------------------------------
def delete_without_count(
    shipped: Callable[..., Changes[bool]], self: Delete, view: View, context: OperationContext
) -> Changes[bool]:
    """In place of `Delete.execute`: trust the look whether the directory is empty."""
    changes = shipped(self, view, context)
    changes.ranges.clear()
    return changes


def rename_without_count(
    shipped: Callable[..., Changes[NsPath]], self: Rename, view: View, context: OperationContext
) -> Changes[NsPath]:
    """In place of `Rename.execute`: trust the look whether the replaced directory is empty."""
    changes = shipped(self, view, context)
    changes.ranges.clear()
    return changes


def move_into_itself(
    shipped: Callable[..., Inode],
    self: Rename,
    source: ResolvedPath,
    target: ResolvedPath,
    view: View,
    context: OperationContext,
) -> Inode:
    """In place of `Rename._check_rename_allowed`: do not look whether the source is above the target."""
    try:
        return shipped(self, source, target, view, context)
    except RenameError:
        assert source.target is not None
        return source.target


def forget_the_tree(
    shipped: Callable[..., None],
    changes: Changes[Any],
    inode: Inode,
    ancestors: Iterable[Inode],
    path: NsPath,
    now_ms: int,
) -> None:
    """In place of `record_deleted_tree`: remove the directory, and leave what is below to nobody."""


def walk_in_many(
    shipped: Callable[..., Iterator[FileStatus]], operations: OperationRunner, path: NsPath, caller: Caller
) -> Iterator[FileStatus]:
    """In place of `listing.walk_tree`: list one directory after the other, as it is by then, unless it is gone."""
    for entry in list_page(operations, path, caller).entries:
        yield entry
        if entry.is_directory:
            with suppress(PathNotFoundError):
                yield from walk_in_many(shipped, operations, NsPath.parse(entry.path), caller)


def list_in_two(
    shipped: Callable[..., View], operations: OperationRunner, path: NsPath, start_after: bytes, limit: int
) -> View:
    """In place of `listing._read_children_view`: find the directory first, and read its entries then."""
    view = shipped(operations, path, start_after, limit)
    target = view.chains[0].target
    if target is None:
        return view
    page = operations.database.scan(*children_range(target.id), limit)
    return replace(view, page=page.records, has_more=page.more)


# --- files ------------------------------------------------------------------------------------------------------------
def take_any_lease(
    shipped: Callable[..., Changes[Inode]], self: WriteUnderLease, view: View, context: OperationContext
) -> Changes[Inode]:
    """In place of `WriteUnderLease.execute`: do not ask who has the lease."""
    (chain,) = view.chains
    return shipped(self if chain.target is None else replace(self, writer=chain.target.writer), view, context)


def refuse_nobody(shipped: Callable[..., None], view: View, inode: Inode, chain: ResolvedPath, now_ms: int) -> None:
    """In place of `refuse_file_with_writer`: take a lease from whoever has it."""


def forget_the_lease(
    shipped: Callable[..., Changes[NsPath]], self: Rename, view: View, context: OperationContext
) -> Changes[NsPath]:
    """In place of `Rename.execute`: leave the lease of a file that moves as it is."""
    changes = shipped(self, view, context)
    moved = view.chains[0].target
    if moved is not None:
        changes.values.pop(lease_key(moved.id), None)
    return changes


def stay_at_the_path(
    shipped: Callable[..., Any], database: Backend, operation: Publish | WriteUnderLease
) -> Publish | WriteUnderLease:
    """In place of `_present`: look for a file where it was opened."""
    return operation


def take_any_end(shipped: Callable[..., None], self: WriteUnderLease, inode: Inode, known: set[str]) -> None:
    """In place of `WriteUnderLease._require_unchanged_file_end`: do not look what the file ends with."""


_NEXT_ID = b"xnext-id"
_BATCH = 10


def reserve_ids(shipped: Callable[..., OperationContext], self: OperationRunner, caller: Caller) -> OperationContext:
    """In place of `Operations._context`: take ids from a batch that the database has reserved for this process."""
    batch: list[int] = vars(self.database).setdefault("batch", [])

    def reserved() -> int:
        if not batch:
            record = self.database.get_many([_NEXT_ID]).get(_NEXT_ID)
            first = 1000 if record is None else record.number
            self.database.commit(Commit(adds={_NEXT_ID: first * (record is None) + _BATCH}))
            batch.extend(range(first + _BATCH - 1, first - 1, -1))
        return batch.pop()

    return replace(shipped(self, caller), new_id=reserved)


def publish_one_by_one(
    shipped: Callable[..., None], operations: OperationRunner, caller: Caller, files: list[Publish | WriteUnderLease]
) -> None:
    """In place of `publish`: publish each file in a step of its own."""
    for one in files:
        shipped(operations, caller, [one])


def take_nothing_for_done(
    shipped: Callable[..., Changes[Inode]], self: WriteUnderLease, view: View, context: OperationContext
) -> Changes[Inode]:
    """In place of `WriteUnderLease.execute`: take a closed file that has everything for one that this writer closed."""
    (chain,) = view.chains
    inode = chain.target
    if inode is not None and inode.id == self.file_id and self.closes and not inode.writer:
        known = {one.blob for one in inode.extents}
        if all(one.blob in known for one in self.extents):
            return Changes(inode)
    return shipped(self, view, context)


def add_again(
    shipped: Callable[..., Changes[Inode]], self: WriteUnderLease, view: View, context: OperationContext
) -> Changes[Inode]:
    """In place of `WriteUnderLease.execute`: add what a writer repeats, even if the file has it already."""
    changes = shipped(self, view, context)
    (chain,) = view.chains
    known = () if chain.target is None else {one.blob for one in chain.target.extents}
    again = tuple(one for one in self.extents if one.blob in known)
    if again and chain.keys[-1] in changes.puts:
        inode = changes.puts[chain.keys[-1]]
        changes.puts[chain.keys[-1]] = replace(inode, extents=(*inode.extents, *again))
    return changes


def write_what_has_the_path(
    shipped: Callable[..., Changes[Inode]], self: WriteUnderLease, view: View, context: OperationContext
) -> Changes[Inode]:
    """In place of `WriteUnderLease.execute`: take the file that has the path for the one that was opened."""
    (chain,) = view.chains
    found = chain.target
    if found is not None and found.id != self.file_id:
        self = replace(self, file_id=found.id, writer=found.writer, newest=None)
    return shipped(self, view, context)


def create_without_lease(
    shipped: Callable[..., Changes[Inode]], self: Publish, view: View, context: OperationContext
) -> Changes[Inode]:
    """In place of `Publish.execute`: name the writer in the inode, and leave the lease to the first renewal."""
    changes = shipped(self, view, context)
    changes.new_values.pop(lease_key(self.file_id), None)
    return changes


def put_one_by_one(shipped: Callable[..., None], self: NamespaceStore, changes: Sequence[Change]) -> None:
    """In place of `NamespaceStore.apply`: make each change in a transaction of its own."""
    for one in changes:
        shipped(self, [one])


# --- what is deleted --------------------------------------------------------------------------------------------------
def collect_without_validation(shipped: Callable[..., Commit], self: Changes[Any], view: View) -> Commit:
    """In place of `Changes.to_commit`: let the collector write without comparing versions."""
    commit = shipped(self, view)
    return commit if view.chains else replace(commit, reads={})


def collect_without_age(
    shipped: Callable[..., Iterator[None]], self: Collector, done: CollectionResult, damage: Any
) -> Iterator[None]:
    """In place of `Collector._collect_garbage`: delete blobs as soon as no file refers to them."""
    return shipped(replace(self, safety_age_s=-1), done, damage)


def forget_garbage(shipped: Callable[..., None], changes: Changes[Any], inode: Inode, now_ms: int) -> None:
    """In place of `discard_blobs`: leave the bytes of replaced files where they are."""


# --- quotas and ids ---------------------------------------------------------------------------------------------------
def charge_without_bound(
    shipped: Callable[..., None], changes: Changes[Any], key: bytes, amount: int, quota: int | None
) -> None:
    """In place of `_charge`: count, and let nobody be refused."""
    shipped(changes, key, amount, None)


def take_any_mark(
    shipped: Callable[..., Inode],
    self: Rename,
    source: ResolvedPath,
    target: ResolvedPath,
    view: View,
    context: OperationContext,
) -> Inode:
    """In place of `Rename._check_rename_allowed`: use a count even if the tree was not frozen all the time."""
    if self.usage is not None and source.target is not None:
        self = replace(self, usage=replace(self.usage, token=source.target.moving))
    return shipped(self, source, target, view, context)


# --- requests that come again -----------------------------------------------------------------------------------------
def take_repeats_for_new(
    shipped: Callable[[_Once, Receipt, int], bool], self: _Once, earlier: Receipt, now_ms: int
) -> bool:
    return False
