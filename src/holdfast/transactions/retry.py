"""Run transactions, and repeat those that conflict: Algorithm 1 of paper 004."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, cast

from holdfast.errors import (
    HoldfastError,
    InvalidRequestError,
    OutcomeUnknownError,
    TransactionConflictError,
    UnavailableError,
)
from holdfast.runtime import Backoff, Environment
from holdfast.transactions.base import (
    ABSENT,
    MAX_NUMBER,
    AlreadyDone,
    Backend,
    Commit,
    Committed,
    Conflict,
    Outcome,
    Progress,
    Record,
    takes_adds,
)
from holdfast.transactions.transaction import Transaction

_log = logging.getLogger(__name__)

T = TypeVar("T")

_ATTEMPTS = 10
_BACKOFF = Backoff(first_s=0.002, longest_s=0.1)
_NAMED_KEYS = 3


def run_transaction(
    backend: Backend,
    function: Callable[[Transaction], T],
    environment: Environment,
    *,
    attempts: int = _ATTEMPTS,
) -> T:
    """Run a function in a transaction, and repeat both after a conflict, up to a limit, with growing random waits.

    Guarantee: the function's reads and writes take effect in one step, once, or not at all. The result is that of the
    attempt that took effect. An error of the function reaches the caller only if what the function had read was true
    at one instant; otherwise the attempt is repeated, as after a conflict.

    Args:
        function: reads and writes through the transaction, and does nothing else that others can see: it may run many
            times. It may see records that never existed together (`Transaction`), so its loops must end anyway.
        attempts: how often the function runs at most.

    Returns:
        What the function returned.

    Raises:
        TransactionConflictError: other transactions were first in every attempt. Nothing happened; start over later.
        InvalidRequestError: a number is added to a record that holds no integer, or it would leave its limits. Nothing
            happened.
        OutcomeUnknownError: the reply of the commit was lost. Read the records before you repeat.

    Crash: the transaction has taken effect, or nothing happened.

    Source: paper 004 (3.4 to 3.6).
    """
    return cast("T", _run(backend, function, environment, attempts, None))


def run_in_series(
    backend: Backend,
    function: Callable[[Transaction], T],
    environment: Environment,
    progress: Progress,
    *,
    attempts: int = _ATTEMPTS,
) -> T | AlreadyDone:
    """Run a transaction of a series, in which each takes effect at most once: see `run_transaction`.

    If a reply was lost, just repeat: if the commit has taken effect, the result is `AlreadyDone`.

    Args:
        progress: the place of the transaction in its series.

    Returns:
        What the function returned; `AlreadyDone` if the transaction had taken effect before, by another process or by
        a commit whose reply was lost.
    """
    return _run(backend, function, environment, attempts, progress)


def _run(
    backend: Backend,
    function: Callable[[Transaction], T],
    environment: Environment,
    attempts: int,
    progress: Progress | None,
) -> T | AlreadyDone:
    if attempts < 1:
        raise InvalidRequestError("a transaction needs at least one attempt: pass a larger number", attempts=attempts)
    conflict = Conflict(())
    for attempt in range(attempts):
        if attempt:
            _BACKOFF.wait(attempt, environment.clock, environment.chance)
        transaction = Transaction(backend)
        try:
            result = function(transaction)
            outcome = _end(backend, transaction, progress)
        except OutcomeUnknownError:
            raise
        except Exception:
            if progress is not None and (done := _done_before(backend, progress)) is not None:
                return done
            outcome = _validate(backend, transaction)
            if not isinstance(outcome, Conflict):
                raise
        if isinstance(outcome, Committed):
            return result
        if isinstance(outcome, AlreadyDone):
            return outcome
        conflict = outcome
        if progress is None and (hopeless := refused_add(backend, transaction.to_commit(), conflict)) is not None:
            raise hopeless
    raise TransactionConflictError(
        "other transactions were first in every attempt: repeat later, or change fewer records at a time",
        attempts=attempts,
        keys=conflict.keys[:_NAMED_KEYS],
    )


def run_until_known(
    backend: Backend,
    function: Callable[[Transaction], T],
    environment: Environment,
    *,
    lost_replies: int,
    attempts: int = _ATTEMPTS,
) -> T:
    """Run a transaction that may take effect twice, or looks itself whether it has; repeat it while replies are lost.

    Args:
        function: see `run_transaction`.
        lost_replies: after how many of them it is repeated.
        attempts: how often the function runs at most for each reply.

    Raises:
        OutcomeUnknownError: one reply after the other was lost. Read the records before you repeat.
        HoldfastError: see `run_transaction`.
    """
    for _ in range(lost_replies):
        try:
            return run_transaction(backend, function, environment, attempts=attempts)
        except OutcomeUnknownError as error:
            _log.info("a reply was lost, and the transaction is repeated: %s", error)
    return run_transaction(backend, function, environment, attempts=attempts)


def refused_add(backend: Backend, commit: Commit, conflict: Conflict) -> InvalidRequestError | None:
    """Return the error of a conflict that would occur again in every attempt, because of what a record holds.

    An add conflicts because its bound does not hold, because its record was read and has changed, because that holds no
    integer, or because its number is at its limit.
    """
    bounded = {bound.key for bound in commit.bounds}
    if not conflict.keys or any(key not in commit.adds or key in bounded for key in conflict.keys):
        return None
    now = backend.get_many(conflict.keys)
    if any(commit.reads.get(key, version) != version for key, version in _versions(conflict.keys, now).items()):
        return None
    # A record that was created and deleted since has the version that was read, and one that was lowered has room.
    for key, record in now.items():
        if commit.adds[key] and not takes_adds(record.value):
            return InvalidRequestError("only an integer can be added to: put a new value instead", key=key)
        if abs(record.number + commit.adds[key]) > max(MAX_NUMBER, abs(record.number)):
            return InvalidRequestError("a counter would leave the range of 62 bits: put a new value", key=key)
    return None


def _versions(keys: Iterable[bytes], found: Mapping[bytes, Record]) -> dict[bytes, int]:
    return {key: found[key].version if key in found else ABSENT for key in keys}


def _end(backend: Backend, transaction: Transaction, progress: Progress | None) -> Outcome:
    """Commit; if the reply is lost, look whether the progress shows the effect."""
    if progress is None:
        return _validate(backend, transaction) if transaction.is_read_only else backend.commit(transaction.to_commit())
    try:
        return backend.commit(transaction.to_commit(progress))
    except OutcomeUnknownError as unknown:
        try:
            done = _done_before(backend, progress)
        except HoldfastError:
            raise unknown from None  # not "nothing happened", which the database may have said about the second call
        if done is None:
            raise
        return done


def _validate(backend: Backend, transaction: Transaction) -> Outcome:
    """Check whether everything that was read was true at one instant.

    What one call has read was true when it was read. Only reads of several calls need another one.
    """
    if transaction.is_snapshot:
        return Committed(ABSENT)  # no record has this version
    try:
        return backend.commit(transaction.to_validation())
    except OutcomeUnknownError as error:
        raise UnavailableError("the database did not confirm what was read, nothing happened: repeat later") from error


def _done_before(backend: Backend, progress: Progress) -> AlreadyDone | None:
    """Return what the database would answer to a commit with this progress, if it has taken effect before."""
    record = backend.get_many([progress.owner]).get(progress.owner)
    return AlreadyDone(record.number) if record is not None and record.number >= progress.number else None
