"""Run an operation in the four phases of paper 004 (3, Algorithm 1).

| phase | here |
|---|---|
| 1. read | `read_view`: resolve the semantic related group and take a snapshot of it |
| 2. execute | `Operation.execute`: a function of the snapshot; it never reads from the database |
| 3. validate | `validate_and_update`: the store locks the group, shared or exclusive, and compares versions |
| 4. update | in the same call: writes in key order, and new versions for what was written, and for nothing else |

A conflict in phase 3 or 4 starts over from phase 1, after a random wait, at most `TOTAL_RETRY` times. The last of these
tries are pessimistic, whatever the mode: where many want the same path, somebody would else lose every time.

The modes differ in phase 1. ``optimistic`` locks nothing. ``pessimistic`` locks all ancestors shared, and the parents
and targets exclusively, before it executes (paper 004, 2.3, Table 2). ``global`` locks the root exclusively: one
operation at a time, as HDFS's lock of the whole namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain as chained
from itertools import islice
from typing import TypeVar

from holdfast.errors import DeadlockError, HoldfastError, TransactionConflictError
from holdfast.namespace.changes import Changes, Joined
from holdfast.namespace.directory_times import DirectoryTimes
from holdfast.namespace.errors import (
    NamesQuotaExceededError,
    QuotaExceededError,
    SpaceQuotaExceededError,
    TreeMovingError,
)
from holdfast.namespace.inode_ids import new_id
from holdfast.namespace.keys import ROOT_ID, id_of
from holdfast.namespace.locking_reader import LockingReader
from holdfast.namespace.operation import Context, Mode, Operation, Parts
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import Caller
from holdfast.namespace.view import Hints, Reader, View, guess_view, read_view
from holdfast.runtime import Environment
from holdfast.transactions.base import ABSENT, Backend, Commit, Committed, Conflict, Outcome

R = TypeVar("R")

TOTAL_RETRY = 12
"""How often an operation is tried; paper 004 tries 10 times. The first try may be a guess that costs no read."""

_TRIES_WITHOUT_LOCKS = 7
"""How often an operation loses against others before it locks what it reads."""

_FIRST_WAIT_S = 0.001
_LONGEST_WAIT_S = 0.25
_MOST_RECLAIMS = 3
"""How often an operation collects what counts for a quota, before the quota is exceeded."""

_MOVING_TRIES = 80
"""How often an operation looks whether a directory is still being counted: for ten seconds, on average."""


_Attempt = Callable[[Context, int], tuple["Outcome | None", "Changes[R] | None"]]


@dataclass(slots=True)
class Operations:
    """Runs operations on one store.

    Attributes:
        hints: what this process last saw.
        times: the modification times of directories, which are written later.
        reclaim: called with the ids of quotas that are exceeded; collects what was deleted and is still counted, and
            returns whether there was anything.
    """

    store: Backend
    environment: Environment
    hints: Hints
    times: DirectoryTimes
    mode: Mode = "optimistic"
    reclaim: Callable[[Collection[int]], bool] = lambda quotas: False

    def run(self, operation: Operation[R], caller: Caller) -> R:
        """Run an operation.

        Guarantee: it takes effect in one step between the call and the return, or not at all.

        Raises:
            HoldfastError: the operation is impossible; nothing happened.
            TransactionConflictError: too many others changed the same inodes; nothing happened.
            OutcomeUnknownError: the database went away during the commit. Read before you repeat.
        """
        return self._repeat(lambda context, number: self._try(operation, context, number), caller, operation.paths)

    def run_in_parts(self, parts: Parts, caller: Caller, paths: Sequence[NsPath]) -> None:
        """Run an operation that is too large for one view, part by part, but in one transaction.

        Guarantee: that of `run`. A part sees what the parts before it create. The hints do not learn about its files.

        Args:
            paths: those that errors name.

        Raises: see `run`.
        """
        self._repeat(lambda context, number: self._try_parts(parts, context, number), caller, paths)

    def _repeat(self, attempt: _Attempt[R], caller: Caller, paths: Sequence[NsPath]) -> R:
        """Try until an attempt commits: see `run`."""
        context = self._context(caller)
        keys: tuple[bytes, ...] = ()
        reclaims = 0
        for number in range(TOTAL_RETRY):
            if number > 1:
                self._wait(number)
            try:
                outcome, changes = self._unfrozen(attempt, context, number)
            except DeadlockError:
                continue  # between two pessimistic operations
            if isinstance(outcome, Committed):
                assert changes is not None
                return changes.result
            if isinstance(outcome, Conflict):
                assert changes is not None
                keys = outcome.keys
                if {bound.key for bound in changes.bounds}.issuperset(keys):  # a bound is a counter's only condition
                    # If nothing is left to collect, somebody else may have collected it since this try: try once more.
                    reclaims += 1
                    most = _MOST_RECLAIMS if self.reclaim({id_of(key) for key in keys}) else 1
                    if reclaims > most:
                        raise _quota_error(keys[0], paths)
                self.hints.drop(keys)
        raise TransactionConflictError(
            "too many other operations change the same paths: repeat later", path=str(paths[0]), key=keys[:1]
        )

    def read(self, operation: Operation[R], caller: Caller) -> R:
        """Run an operation that only reads: its view is one snapshot, so there is nothing to validate."""
        context = self._context(caller)
        self.times.flush_if_due()
        view = read_view(self.store, self.hints, operation)
        return operation.execute(view, context).result

    def check(self, operation: Operation[R], caller: Caller) -> None:
        """Raise what the operation would raise now. If hints say that it is possible, nothing is read.

        Raises:
            HoldfastError: the operation is impossible.
        """
        context = Context(caller, self.now_ms(), lambda: ROOT_ID)  # nothing of the result is used
        guess = guess_view(self.hints, operation)
        if guess is not None:
            with suppress(HoldfastError):  # perhaps only the guess is wrong
                operation.execute(guess, context)
                return
        operation.execute(read_view(self.store, self.hints, operation), context)

    def _context(self, caller: Caller) -> Context:
        return Context(caller, self.now_ms(), lambda: new_id(self.environment))

    def now_ms(self) -> int:
        """Return the time, milliseconds since the epoch."""
        return max(int(self.environment.clock.now_s() * 1000), 0)

    def _try(self, operation: Operation[R], context: Context, number: int) -> tuple[Outcome | None, Changes[R] | None]:
        """Run the phases once; return the outcome, or None if a guess failed before its commit."""
        if self._is_without_locks(number):
            view = guess_view(self.hints, operation) if number == 0 else None
            view = view or read_view(self.store, self.hints, operation)
            outcome, changes = self._execute(operation, view, context, self.store.commit)
        else:
            with self.store.locked() as transaction:
                view = read_view(LockingReader(self.mode, self.hints, operation, transaction), self.hints, operation)
                outcome, changes = self._execute(operation, view, context, transaction.apply)
        if isinstance(outcome, Committed) and changes is not None:
            changes.remember(self.hints, outcome.version)
            self.times.touch(view, changes.touched, context.now_ms)
        return outcome, changes

    def _is_without_locks(self, number: int) -> bool:
        return self.mode == "optimistic" and number < _TRIES_WITHOUT_LOCKS

    def _try_parts(self, parts: Parts, context: Context, number: int) -> tuple[Outcome | None, Changes[None] | None]:
        """Run the phases once, the first two for each part."""
        if not self._is_without_locks(number):
            whole = list(parts())  # it may read, which must not wait for the locks of this very transaction
            with self.store.locked() as transaction:
                outcome, changes, touched = self._join(
                    whole,
                    lambda part: LockingReader(self.mode, self.hints, part, transaction),
                    context,
                    transaction.apply,
                )
        else:
            rest = iter(parts())
            first = list(islice(rest, 2))
            if len(first) == 1:
                return self._try(first[0], context, number)
            outcome, changes, touched = self._join(
                chained(first, rest), lambda part: self.store, context, self.store.commit
            )
        if isinstance(outcome, Committed):  # now that no locks are held: it may write
            self.times.touch(touched, touched.entries, context.now_ms)
        return outcome, changes

    def _join(
        self,
        parts: Iterable[Operation[None]],
        reader_for: Callable[[Operation[None]], Reader],
        context: Context,
        validate_and_update: Callable[[Commit], Outcome],
    ) -> tuple[Outcome, Changes[None], View]:
        """Read and execute part by part; validate and write all of them together.

        Returns:
            The outcome, what failed bounds may have refused, and the directories whose entries have changed.
        """
        joined = Joined()
        touched = View((), {})
        for part in parts:
            view = read_view(reader_for(part), self.hints, part)
            view.made = joined.made
            changes = part.execute(view, context)
            _end_expired_marks(view, changes, context.now_ms)
            changed = joined.add(changes.to_commit(view))
            if changed:
                return Conflict(tuple(changed)), Changes(None), touched
            touched.entries.update((key, view.entries[key]) for key in changes.touched if key in view.entries)
            self.hints.drop([key for chain in view.chains for key in chain.keys[len(chain.path.names) :]])
        commit = joined.to_commit()
        outcome = validate_and_update(commit)
        if isinstance(outcome, Committed):
            self.hints.drop([*commit.puts, *commit.deletes])
        return outcome, Changes(None, bounds=list(commit.bounds)), touched

    def _execute(
        self, operation: Operation[R], view: View, context: Context, validate_and_update: Callable[[Commit], Outcome]
    ) -> tuple[Outcome | None, Changes[R] | None]:
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
        _end_expired_marks(view, changes, context.now_ms)
        return validate_and_update(changes.to_commit(view)), changes

    def _unfrozen(
        self, attempt: _Attempt[R], context: Context, number: int
    ) -> tuple[Outcome | None, Changes[R] | None]:
        """Run the phases once; wait while a directory on the path is being counted.

        Raises:
            TreeMovingError: that takes too long; nothing happened.
        """
        for left in reversed(range(_MOVING_TRIES)):
            try:
                return attempt(context, number)
            except TreeMovingError:
                if not left:
                    raise
            self.environment.clock.sleep(_LONGEST_WAIT_S * self.environment.chance.fraction())
            number = max(number, 1)  # no guess anymore
            context = replace(context, now_ms=self.now_ms())
        raise AssertionError("the last try returns or raises")

    def _wait(self, attempt: int) -> None:
        """Wait a random time, longer after each conflict, so that the others get ahead."""
        longest_s = min(_FIRST_WAIT_S * 2**attempt, _LONGEST_WAIT_S)
        self.environment.clock.sleep(longest_s * self.environment.chance.fraction())


def _end_expired_marks(view: View, changes: Changes[R], now_ms: int) -> None:
    """Remove the marks on the paths that no longer freeze their trees: who set them must notice (`trees`)."""
    for chain in view.chains:
        for key, seen in zip(chain.keys, chain.inodes, strict=False):
            inode = changes.puts.get(key, seen)
            is_expired = inode.moving and inode.moving == seen.moving and not seen.is_frozen(now_ms)
            if is_expired and key not in changes.deletes:
                changes.puts[key] = replace(inode, moving="", moving_until_ms=0)


def _quota_error(key: bytes, paths: Sequence[NsPath]) -> QuotaExceededError:
    """Return the error of an exceeded quota, given the key of the counter."""
    kind, what = (NamesQuotaExceededError, "names") if key.endswith(b"n") else (SpaceQuotaExceededError, "space")
    return kind(
        f"the quota of {what} of a directory on the path is exceeded: delete something, or raise the quota",
        path=str(paths[-1]),
    )
