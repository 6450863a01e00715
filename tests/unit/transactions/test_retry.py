"""Test which attempts of a transaction are repeated, and what its caller gets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import count

import pytest

from holdfast.errors import InvalidRequestError, OutcomeUnknownError, TransactionConflictError, UnavailableError
from holdfast.runtime import Environment
from holdfast.transactions.base import MAX_NUMBER, Commit, Outcome, Record, ScanPage
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.transaction import Transaction, run_transaction, run_until_known
from tests.clocks import StillClock


class _Store:
    """A database that holds another one, in which others write in between, and replies are lost.

    Attributes:
        before_read: runs before each `get_many`.
        before_commit, after_commit: run before and after each commit.
        lose: how many replies to commits are lost; `effect` says whether they take effect.
    """

    def __init__(self) -> None:
        self.inner = MemoryBackend()
        self.before_read: Callable[[], object] = lambda: None
        self.before_commit: Callable[[], object] = lambda: None
        self.after_commit: Callable[[], object] = lambda: None
        self.lose = 0
        self.effect = True
        self.commits: list[Commit] = []
        self.inner.commit(Commit(puts={b"x": b"1", b"y": b"1"}))

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        self.before_read()
        return self.inner.get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return self.inner.scan(start, end, limit, guards)

    def commit(self, commit: Commit) -> Outcome:
        self.before_commit()
        self.commits.append(commit)
        if not self.lose:
            outcome = self.inner.commit(commit)
            self.after_commit()
            return outcome
        self.lose -= 1
        if self.effect:
            self.inner.commit(commit)
        raise OutcomeUnknownError("the reply was lost")

    def commit_group(self, commits: Sequence[Commit]) -> list[Outcome]:
        return self.inner.commit_group(commits)

    def close(self) -> None:
        self.inner.close()

    def change(self, *keys: bytes) -> None:
        """Write as another transaction."""
        self.inner.commit(Commit(puts=dict.fromkeys(keys, b"other")))

    def record(self, key: bytes) -> Record:
        """Return a record that exists."""
        return self.inner.get_many([key])[key]


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def environment(clock: StillClock) -> Environment:
    return Environment(clock=clock)


def _one_time(number: int, act: Callable[[], object]) -> Callable[[], None]:
    """Return a function that does something when it is called for the `number`-th time, from 1."""
    calls = count(1)

    def run() -> None:
        if next(calls) == number:
            act()

    return run


def _copy(transaction: Transaction) -> bytes:
    record = transaction.get(b"x")
    assert record is not None
    transaction.put(b"y", record.value)
    return record.value


def test_the_result_is_that_of_the_attempt_that_took_effect(environment: Environment, clock: StillClock) -> None:
    backend = _Store()
    backend.before_commit = _one_time(1, lambda: backend.change(b"x"))
    assert run_transaction(backend, _copy, environment) == b"other"
    assert backend.record(b"y").value == b"other"
    assert len(backend.commits) == 2 and len(clock.waits) == 1


def test_the_attempts_are_limited(environment: Environment, clock: StillClock) -> None:
    backend = _Store()
    backend.before_commit = lambda: backend.change(b"x")
    with pytest.raises(TransactionConflictError, match="in every attempt") as caught:
        run_transaction(backend, _copy, environment, attempts=12)
    assert caught.value.variables == {"attempts": 12, "keys": (b"x",)}
    assert len(backend.commits) == 12 and backend.record(b"y").value == b"1"
    longest = [min(0.002 * 2**number, 0.1) for number in range(11)]
    assert len(clock.waits) == 11
    assert all(0 <= wait < most for wait, most in zip(clock.waits, longest, strict=True))
    assert len(set(clock.waits)) > 1, "waits are random"


def _add_to_new(transaction: Transaction) -> None:
    assert transaction.get(b"new") is None
    transaction.add(b"new", 1)


def test_a_counter_that_others_create_and_delete_is_at_no_limit(environment: Environment) -> None:
    backend = _Store()
    backend.before_commit = lambda: backend.inner.commit(Commit(puts={b"new": b""}))
    backend.after_commit = lambda: backend.inner.commit(Commit(deletes=[b"new"]))
    with pytest.raises(TransactionConflictError, match="in every attempt"):
        run_transaction(backend, _add_to_new, environment, attempts=2)


def test_a_counter_that_others_have_lowered_since_is_at_no_limit(environment: Environment) -> None:
    backend = _Store()
    backend.inner.commit(Commit(adds={b"n": MAX_NUMBER}))
    backend.after_commit = lambda: backend.inner.commit(Commit(adds={b"n": -1}))
    with pytest.raises(TransactionConflictError, match="in every attempt"):
        run_transaction(backend, lambda transaction: transaction.add(b"n", 1), environment, attempts=1)


def test_an_addition_to_what_is_no_integer_is_refused_at_once(environment: Environment) -> None:
    backend = _Store()
    backend.inner.commit(Commit(puts={b"n": b"text"}))
    with pytest.raises(InvalidRequestError, match=r"only an integer can be added to.*key=b'n'"):
        run_transaction(backend, lambda transaction: transaction.add(b"n", 1), environment)
    assert len(backend.commits) == 1


@pytest.mark.parametrize(("read", "refused"), [(b"a", b"z"), (b"z", b"a")])
def test_an_addition_that_depends_on_an_old_value_is_not_refused(
    environment: Environment, read: bytes, refused: bytes
) -> None:
    backend = _Store()
    backend.inner.commit(Commit(adds={read: 1}, puts={refused: b"text"}))
    others = iter([Commit(adds={read: 1})])
    backend.before_commit = lambda: [backend.inner.commit(one) for one in others]

    def add(transaction: Transaction) -> None:
        record = transaction.get(read)
        assert record is not None
        transaction.add(read, 1)
        if record.number == 1:
            transaction.add(refused, 1)

    run_transaction(backend, add, environment)
    assert backend.inner.get_many([read])[read].number == 3


@pytest.mark.parametrize("effect", [True, False])
def test_lost_replies_are_repeated_up_to_a_bound(environment: Environment, effect: bool) -> None:
    backend = _Store()
    backend.lose, backend.effect = 3, effect
    run_until_known(backend, lambda transaction: transaction.put(b"a", b"1"), environment, lost_replies=3)
    assert len(backend.commits) == 4
    backend.lose = 4
    with pytest.raises(OutcomeUnknownError):
        run_until_known(backend, lambda transaction: transaction.put(b"a", b"2"), environment, lost_replies=3)
    assert len(backend.commits) == 4 + 4


def test_the_error_names_a_few_keys(environment: Environment) -> None:
    backend = _Store()
    keys = [b"%d" % number for number in range(9)]

    def read(transaction: Transaction) -> None:
        transaction.get_many(keys)
        transaction.put(b"y", b"")

    backend.before_commit = lambda: backend.change(*keys)
    with pytest.raises(TransactionConflictError) as caught:
        run_transaction(backend, read, environment, attempts=2)
    assert caught.value.variables["keys"] == (b"0", b"1", b"2")


def test_no_attempt_is_a_mistake(environment: Environment) -> None:
    with pytest.raises(InvalidRequestError, match="at least one attempt"):
        run_transaction(_Store(), _copy, environment, attempts=0)


# --- reads only -------------------------------------------------------------------------------------------------------
def test_one_snapshot_needs_no_validation(environment: Environment) -> None:
    backend = _Store()
    assert run_transaction(backend, lambda t: len(t.get_many([b"x", b"y"])), environment) == 2
    assert backend.commits == []


def _sum(transaction: Transaction) -> bytes:
    found = [transaction.get(b"x"), transaction.get(b"y")]
    return b"+".join(record.value for record in found if record is not None)


def test_two_snapshots_are_validated(environment: Environment) -> None:
    backend = _Store()
    backend.before_read = _one_time(2, lambda: backend.change(b"x", b"y"))
    assert run_transaction(backend, _sum, environment) == b"other+other"
    assert len(backend.commits) == 2


def test_a_validation_without_reply_did_nothing(environment: Environment) -> None:
    backend = _Store()
    backend.lose = 1
    with pytest.raises(UnavailableError, match="nothing happened"):
        run_transaction(backend, _sum, environment)


# --- errors of the function -------------------------------------------------------------------------------------------
def _fail_if_mixed(transaction: Transaction) -> None:
    x, y = transaction.get(b"x"), transaction.get(b"y")
    assert x is not None and y is not None
    if x.value != y.value:
        raise KeyError("a state that never existed")
    transaction.put(b"done", b"")


def test_an_error_after_a_mixed_state_is_a_conflict(environment: Environment) -> None:
    backend = _Store()
    backend.before_read = _one_time(2, lambda: backend.change(b"x", b"y"))
    run_transaction(backend, _fail_if_mixed, environment)
    assert backend.record(b"done").value == b""


def test_an_error_after_a_true_state_is_real(environment: Environment, clock: StillClock) -> None:
    backend = _Store()
    backend.change(b"x")
    with pytest.raises(KeyError, match="never existed"):
        run_transaction(backend, _fail_if_mixed, environment)
    assert len(backend.commits) == 1, "the reads were validated"
    assert not backend.commits[0].puts and clock.waits == []


def test_an_error_after_one_snapshot_is_real(environment: Environment) -> None:
    backend = _Store()

    def fail(transaction: Transaction) -> None:
        transaction.get_many([b"x", b"y"])
        raise LookupError("missing")

    with pytest.raises(LookupError, match="missing"):
        run_transaction(backend, fail, environment)
    assert backend.commits == []


def test_a_phantom_makes_an_error_a_conflict(environment: Environment) -> None:
    backend = _Store()

    def fail(transaction: Transaction) -> int:
        found = transaction.scan(b"x", b"z", guard=b"g")
        transaction.get(b"other")
        if len(found) < 3:
            raise LookupError("too few")
        return len(found)

    backend.before_commit = _one_time(1, lambda: backend.inner.commit(Commit(inserts={b"y2": b""})))
    assert run_transaction(backend, fail, environment) == 3


def test_what_the_backend_refuses_after_a_mixed_state_is_a_conflict(environment: Environment) -> None:
    backend = _Store()

    def grow(transaction: Transaction) -> None:
        x, y = transaction.get(b"x"), transaction.get(b"y")
        assert x is not None and y is not None
        transaction.put(b"key" * (1 if x.value == y.value else 1000), b"")

    backend.before_read = _one_time(2, lambda: backend.change(b"x", b"y"))
    run_transaction(backend, grow, environment)
    assert backend.record(b"key").value == b""


def test_interrupts_are_not_repeated(environment: Environment) -> None:
    def stop(transaction: Transaction) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_transaction(_Store(), stop, environment)


# --- lost replies -----------------------------------------------------------------------------------------------------
def _add_one(transaction: Transaction) -> str:
    transaction.add(b"n", 1)
    return "counted"


@pytest.mark.parametrize("effect", [True, False])
def test_an_unknown_outcome_is_never_repeated(environment: Environment, effect: bool) -> None:
    backend = _Store()
    backend.lose, backend.effect = 1, effect
    with pytest.raises(OutcomeUnknownError):
        run_transaction(backend, _add_one, environment)
    assert len(backend.commits) == 1
