"""Run an operation in the four phases of paper 004 (3, Algorithm 1).

| phase | here |
|---|---|
| 1. read | `read_view`: resolve the semantic related group and take a snapshot of it |
| 2. execute | `Operation.execute`: a function of the snapshot; it never reads from the database |
| 3. validate | `commit`: the database locks the group, shared or exclusive, and compares versions |
| 4. update | in the same call: writes in key order, and new versions for what was written, and for nothing else |

A conflict in phase 3 or 4 starts over from phase 1, after a random wait, at most `TOTAL_RETRY` times. The last of these
tries are pessimistic: they lock all ancestors shared, and the parents and targets exclusively, before they execute
(paper 004, 2.3, Table 2). Where many want the same path, one of them would else lose every time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain as chained
from itertools import islice
from typing import Any, TypeVar, overload

from holdfast.errors import (
    DeadlockError,
    HoldfastError,
    OutcomeUnknownError,
    TransactionConflictError,
    UnavailableError,
)
from holdfast.namespace.directory_times import DirectoryTimes
from holdfast.namespace.errors import DirectoryFrozenError, NamesQuotaExceededError, SpaceQuotaExceededError
from holdfast.namespace.keys import ROOT_ID, id_in_key, new_inode_id
from holdfast.namespace.operation import (
    Changes,
    CombinedCommit,
    Operation,
    OperationBatch,
    OperationContext,
    RequestAbandonedError,
)
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import Caller
from holdfast.namespace.view import (
    InodeCache,
    OperationReads,
    PathResolver,
    Reader,
    ResolvedPath,
    SeenRecord,
    View,
    read_view,
    read_view_from_cache,
    resolve_path,
)
from holdfast.runtime import Backoff, Environment
from holdfast.transactions.base import (
    ABSENT,
    Backend,
    Commit,
    Committed,
    Conflict,
    LockingTransaction,
    Outcome,
    Record,
    ScanPage,
)
from holdfast.transactions.validation import count_independent

R = TypeVar("R")

TOTAL_RETRY = 12
"""How often an operation is tried; paper 004 tries 10 times. The first try may be a guess that costs no read."""

_BACKOFF = Backoff(first_s=0.004, longest_s=0.25)
_WHILE_FROZEN = Backoff(first_s=0.25, longest_s=0.25)
_MOST_WAITS = 80
"""How often an operation waits for a directory that is being counted: for ten seconds, on average."""

_PIECE = 1000
"""How many operations of a batch share a snapshot."""

_KNOWING_TRIES, _KNOWING_STEP_S = 40, 0.25
"""How often, and how far apart, an operation is tried again to know the outcome of its first try."""

_MOST_RECLAIMS = 3
"""How often an operation collects what counts for a quota, before the quota is exceeded."""

_Try = tuple["Outcome | None", "Changes[R] | None"]
"""The outcome of a try and its changes; None if a guess failed before its commit."""


@dataclass(slots=True)
class OperationRunner:
    """Runs operations in transactions of one database, with retries.

    Attributes:
        hints: the cache of inodes and leases.
        times: the modification times of directories, which are written later.
        reclaim: called with the ids of quotas that are exceeded; collects deleted trees that still count, and returns
            whether it found any.
        tries_without_locks: after so many conflicts, an operation locks what it reads; 0 is the pessimistic mode of
            paper 004, for comparison.
    """

    database: Backend
    environment: Environment
    hints: InodeCache
    times: DirectoryTimes
    reclaim: Callable[[Collection[int]], bool] = lambda quotas: False
    tries_without_locks: int = 7

    @overload
    def run(self, operation: Operation[R], caller: Caller) -> R: ...

    @overload
    def run(self, operation: OperationBatch, caller: Caller) -> None: ...

    def run(self, operation: Operation[R] | OperationBatch, caller: Caller) -> R | None:
        """Run an operation and return its result, or run a batch of operations in one transaction.

        Guarantee: it takes effect in one step between the call and the return, or not at all.

        Raises:
            HoldfastError: the operation is impossible; nothing happened.
            TransactionConflictError: too many others changed the same inodes; nothing happened.
            DirectoryFrozenError: a directory on the path is being counted for too long; nothing happened.
            OutcomeUnknownError: the database went away during the commit. Read before you repeat.
        """
        context = self._make_context(caller)
        clock, chance = self.environment.clock, self.environment.chance
        number = waits = reclaims = 0
        keys: tuple[bytes, ...] = ()
        while number < TOTAL_RETRY:
            outcome: Outcome | None = None
            changes: Changes[Any] | None = None
            try:
                if isinstance(operation, OperationBatch):
                    outcome, changes = self._try_batch(operation, context, number)
                else:
                    outcome, changes = self._try_operation(operation, context, number)
            except DirectoryFrozenError:
                waits += 1
                if waits == _MOST_WAITS:
                    raise
                _WHILE_FROZEN.wait(1, clock, chance)
                number = max(number, 1)  # no guess anymore
                context = replace(context, now_ms=self.now_ms())
                continue
            except DeadlockError:
                pass  # between two that lock
            if isinstance(outcome, Committed) and changes is not None:
                return changes.result  # type: ignore[no-any-return]  # that of the operation
            if isinstance(outcome, Conflict) and changes is not None:
                keys = outcome.keys
                if {bound.key for bound in changes.bounds}.issuperset(keys):  # a bound is a counter's only condition
                    # If nothing is left to collect, another may have collected it since this try: try once more.
                    reclaims += 1
                    if reclaims > (_MOST_RECLAIMS if self.reclaim({id_in_key(key) for key in keys}) else 1):
                        raise _quota_error(keys[0], str(operation.paths[-1]))
                self.hints.drop(keys)
            number += 1
            if 1 < number < TOTAL_RETRY:
                _BACKOFF.wait(number - 1, clock, chance)
        raise TransactionConflictError(
            "too many other operations change the same paths: repeat later", path=str(operation.paths[0]), key=keys[:1]
        )

    def run_again(self, operation: Operation[R], caller: Caller) -> R:
        """Run an operation that recognizes its own effect; again if its outcome is unknown, and while the database is
        away. For errors, see `run`.
        """
        try:
            return self.run(operation, caller)
        except OutcomeUnknownError as error:
            unknown = error
        for _ in range(_KNOWING_TRIES):
            try:
                return self.run(operation, caller)
            except (OutcomeUnknownError, UnavailableError):
                self.environment.clock.sleep(_KNOWING_STEP_S)
            except HoldfastError:
                break
        raise unknown  # that the other tries had no effect says nothing about the first one

    def require_new(self, caller: Caller) -> None:
        """Do nothing; see `receipts.RequestRunner`."""

    def read(self, operation: Operation[R], caller: Caller) -> R:
        """Run an operation that only reads, on one snapshot, and return its result. Nothing is validated or
        committed.
        """
        context = OperationContext(caller, self.now_ms(), lambda: ROOT_ID)  # no inode is made
        self.times.flush_if_due()
        return operation.execute(read_view(self.database, self.hints, operation), context).result

    def read_together(self, reads: Sequence[tuple[Operation[R], Caller]]) -> list[R | HoldfastError]:
        """Run several operations that only read, each on one path, on one snapshot; return the result or the error of
        each.
        """
        self.times.flush_if_due()
        piece = _BatchPiece([operation for operation, _ in reads])
        view = read_view(self.database, self.hints, piece)
        found: list[R | HoldfastError] = []
        for (operation, caller), chain in zip(reads, view.chains, strict=True):
            try:
                context = OperationContext(caller, self.now_ms(), lambda: ROOT_ID)  # no inode is made
                found.append(operation.execute(replace(view, chains=(chain,)), context).result)
            except HoldfastError as error:
                found.append(error)
        return found

    def try_together(self, asked: Sequence[tuple[Operation[Any], Caller]]) -> list[bool]:
        """Try several operations once, from cached hints alone and in one call of the database; return for each whether
        it took effect. The others have to be run by themselves: it was refused, or the hints were wrong, or it changes
        nothing, or it is in the way of another one.

        Raises:
            OutcomeUnknownError, UnavailableError: see `Backend.commit_group`; it is unknown which took effect.
        """
        tries: list[tuple[int, View, Changes[Any], OperationContext]] = []
        commits: list[Commit] = []
        for number, (operation, caller) in enumerate(asked):
            view, context = read_view_from_cache(self.hints, operation), self._make_context(caller)
            if view is None or not self.tries_without_locks:
                continue
            with suppress(HoldfastError, RequestAbandonedError):  # perhaps only the guess is wrong
                changes = operation.execute(view, context)
                if not changes.is_empty:
                    _remove_expired_freeze_marks(view, changes, context.now_ms)
                    tries.append((number, view, changes, context))
                    commits.append(changes.to_commit(view))
        has_effect = [False] * len(asked)
        count = count_independent(commits) if commits else 0
        outcomes = self.database.commit_group(commits[:count]) if count else []
        for (number, view, changes, context), outcome in zip(tries, outcomes, strict=False):
            if isinstance(outcome, Committed):
                has_effect[number] = True
                self._remember(view, changes, context, outcome.version)
            elif isinstance(outcome, Conflict):
                self.hints.drop(outcome.keys)
        return has_effect

    def check(self, operation: Operation[R], caller: Caller) -> None:
        """Raise the error that running the operation would raise now; change nothing. If the cached hints say that it
        is possible, the database is not asked.

        Raises:
            HoldfastError: the operation is impossible.
        """
        context = OperationContext(caller, self.now_ms(), lambda: ROOT_ID)  # nothing of the result is used
        guess = read_view_from_cache(self.hints, operation)
        if guess is not None:
            with suppress(HoldfastError):  # perhaps only the guess is wrong
                operation.execute(guess, context)
                return
        operation.execute(read_view(self.database, self.hints, operation), context)

    def _make_context(self, caller: Caller) -> OperationContext:
        return OperationContext(caller, self.now_ms(), lambda: new_inode_id(self.environment))

    def now_ms(self) -> int:
        """Return the current time, milliseconds since the epoch."""
        return max(int(self.environment.clock.now_s() * 1000), 0)

    def _try_operation(self, operation: Operation[R], context: OperationContext, number: int) -> _Try[R]:
        """Run the phases once."""
        if number < self.tries_without_locks:
            view = read_view_from_cache(self.hints, operation) if number == 0 else None
            view = view or read_view(self.database, self.hints, operation)
            outcome, changes = _execute_operation(operation, view, context, self.database.commit)
        else:
            with self.database.begin_locking_transaction() as transaction:
                view = read_view(LockingReader(self.hints, operation, transaction), self.hints, operation)
                outcome, changes = _execute_operation(operation, view, context, transaction.apply)
        if isinstance(outcome, Committed) and changes is not None:
            self._remember(view, changes, context, outcome.version)
        return outcome, changes

    def _remember(self, view: View, changes: Changes[Any], context: OperationContext, version: int) -> None:
        """Update hints and times after a commit."""
        changes.update_hints(self.hints, version)
        touched = {key: view.entries[key] for key in changes.touched if key in view.entries}
        self.times.touch(touched, context.now_ms, changes, version)

    def _try_batch(self, batch: OperationBatch, context: OperationContext, number: int) -> _Try[None]:
        """Run the phases once, the first two piece by piece."""
        if number < self.tries_without_locks:
            rest = iter(batch.operations())
            first = list(islice(rest, 2))
            if len(first) == 1:
                return self._try_operation(first[0], context, number)
            pieces = _split_into_pieces(chained(first, rest))
            joined = self._run_pieces_in_one_commit(pieces, lambda piece: self.database, context, self.database.commit)
        else:
            whole = list(
                _split_into_pieces(batch.operations())
            )  # it may read, which must not wait for these very locks
            with self.database.begin_locking_transaction() as transaction:
                joined = self._run_pieces_in_one_commit(
                    whole, lambda piece: LockingReader(self.hints, piece, transaction), context, transaction.apply
                )
        outcome, changes, touched = joined
        if isinstance(outcome, Committed):  # now that no locks are held: it may write
            self.times.touch(touched, context.now_ms, changes, outcome.version)
        return outcome, changes

    def _run_pieces_in_one_commit(
        self,
        pieces: Iterable[_BatchPiece],
        reader_for: Callable[[_BatchPiece], Reader],
        context: OperationContext,
        commit: Callable[[Commit], Outcome],
    ) -> tuple[Outcome, Changes[None], dict[bytes, SeenRecord]]:
        """Read and execute piece by piece; validate and write all of them together.

        Returns:
            The outcome, what failed bounds may have refused, and the directories whose entries have changed.
        """
        joined, touched = CombinedCommit(), dict[bytes, SeenRecord]()
        for piece in pieces:
            view = read_view(reader_for(piece), self.hints, piece)
            if changed := joined.add_reads(view):
                return Conflict(changed), Changes(None), touched
            seen = replace(view)  # each operation sees its own path
            for operation, chain in zip(piece.operations, _iter_chains_with_new_directories(view, joined), strict=True):
                seen.chains = (chain,)
                changes = operation.execute(seen, context)
                _remove_expired_freeze_marks(seen, changes, context.now_ms)
                joined.add_changes(changes)
                touched.update((key, view.entries[key]) for key in changes.touched if key in view.entries)
            self.hints.drop([key for chain in view.chains for key in chain.keys[len(chain.path.names) :]])
        whole = joined.to_commit()
        outcome = commit(whole)
        if isinstance(outcome, Committed):
            self.hints.drop([*whole.puts, *whole.deletes])
        return outcome, Changes(None, bounds=list(whole.bounds)), touched


@dataclass(frozen=True, slots=True)
class _BatchPiece:
    """Operations of a batch that share a snapshot: the group of all of them."""

    operations: Sequence[Operation[Any]]

    @property
    def paths(self) -> Sequence[NsPath]:
        return [one.paths[0] for one in self.operations]

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        pairs = zip(self.operations, chains, strict=True)
        return list(chained.from_iterable(one.extra_keys((chain,)) for one, chain in pairs))

    def extra_range(self, chains: Sequence[ResolvedPath]) -> None:
        return None


def _split_into_pieces(operations: Iterable[Operation[Any]]) -> Iterator[_BatchPiece]:
    rest = iter(operations)
    while piece := list(islice(rest, _PIECE)):
        yield _BatchPiece(piece)


def _iter_chains_with_new_directories(view: View, joined: CombinedCommit) -> Iterator[ResolvedPath]:
    """Yield the chains of a view, with the directories that the operations so far have made."""

    def find_record(key: bytes) -> SeenRecord | None:
        inode = joined.find_inserted_inode(key)
        return view.entries.get(key) if inode is None else SeenRecord(ABSENT, inode)

    resolver, made = PathResolver(find_record), len(joined.directories)
    for chain in view.chains:
        if len(joined.directories) > made:
            resolver, made = PathResolver(find_record), len(joined.directories)  # it remembers what was missing
        yield chain if joined.find_inserted_inode(chain.keys[-1]) is None else resolver.resolve(chain.path)


def _execute_operation(
    operation: Operation[R], view: View, context: OperationContext, commit: Callable[[Commit], Outcome]
) -> _Try[R]:
    """Run all phases but the first."""
    try:
        changes = operation.execute(view, context)
    except HoldfastError:
        if view.is_guess:
            return None, None  # perhaps only the guess is wrong
        raise
    if changes.is_empty:
        # A snapshot proves the result; a guess does not.
        return (None if view.is_guess else Committed(ABSENT)), changes
    _remove_expired_freeze_marks(view, changes, context.now_ms)
    return commit(changes.to_commit(view)), changes


def _remove_expired_freeze_marks(view: View, changes: Changes[R], now_ms: int) -> None:
    """Remove the marks on the paths that no longer freeze their trees: who set them must notice (`trees`)."""
    for chain in view.chains:
        for key, seen in zip(chain.keys, chain.inodes, strict=False):
            inode = changes.puts.get(key, seen)
            is_expired = inode.moving and inode.moving == seen.moving and not seen.is_tree_frozen(now_ms)
            if is_expired and key not in changes.deletes:
                changes.puts[key] = replace(inode, moving="", moving_until_ms=0)


def _quota_error(key: bytes, path: str) -> HoldfastError:
    """Return the error of an exceeded quota, given the key of the counter."""
    kind, what = (NamesQuotaExceededError, "names") if key.endswith(b"n") else (SpaceQuotaExceededError, "space")
    return kind(
        f"the quota of {what} of a directory on the path is exceeded: delete something, or raise the quota", path=path
    )


class LockingReader:
    """Reads records in a transaction and locks them: shared above the parents of the operation's paths, all others
    exclusively.

    The others are exclusive because two readers with a shared lock on a record that both then write would deadlock.
    """

    def __init__(self, hints: InodeCache, group: OperationReads, transaction: LockingTransaction) -> None:
        self._hints = hints
        self._group = group
        self._transaction = transaction
        self._records: dict[bytes, Record] = {}
        self._held: set[bytes] = set()

    def get_many(self, keys: Collection[bytes]) -> Mapping[bytes, Record]:
        """Lock and read the given keys; return all records that this reader has read so far."""
        chains = [resolve_path(path, self._hints.get) for path in self._group.paths]
        ends = {key for chain in chains for key in chain.keys[max(len(chain.path.names) - 1, 0) :]}
        above = {key for chain in chains for key in chain.keys} - ends
        for exclusive in (False, True):
            new = [key for key in keys if (key not in above) == exclusive and key not in self._held]
            if new:
                self._records.update(self._transaction.read(new, exclusive=exclusive))
                self._held.update(new)
        return self._records

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        """Read a page of a range of keys, without a lock on the range; also lock and read the keys in `guards`,
        as `get_many` does.
        """
        found = self.get_many(guards)
        page = self._transaction.scan(start, end, limit)
        return ScanPage(page.records, page.more, found)
