"""Test what a running transaction sees, and what it asks the database to commit."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidRequestError
from holdfast.transactions.base import (
    ABSENT,
    Bound,
    Commit,
    Committed,
    Conflict,
    RangeCount,
    Record,
    ScanPage,
)
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.transaction import Transaction


class _Counting(MemoryBackend):
    """A database that keeps the keys and pages it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[bytes] = []
        self.pages: list[tuple[bytes, bytes, int]] = []

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        self.asked += keys
        return super().get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        self.pages.append((start, end, limit))
        return super().scan(start, end, limit, guards)


def _backend(**values: bytes) -> _Counting:
    backend = _Counting()
    backend.commit(Commit(puts={key.encode(): value for key, value in values.items()}))
    backend.asked.clear()
    return backend


def _values(records: list[tuple[bytes, Record]]) -> list[tuple[bytes, bytes]]:
    return [(key, record.value) for key, record in records]


def _commit(backend: MemoryBackend, transaction: Transaction) -> None:
    assert isinstance(backend.commit(transaction.to_commit()), Committed)


# --- reads ------------------------------------------------------------------------------------------------------------
def test_a_scan_knows_what_is_missing_in_its_range() -> None:
    backend = _backend(c=b"1")
    transaction = Transaction(backend)
    transaction.scan(b"b", b"d", None, guard=b"g")
    assert transaction.get_many([b"b", b"c"]).keys() == {b"c"}
    assert backend.asked == []
    transaction.get(b"d")
    assert backend.asked == [b"d"], "the end is not in the range"


def test_a_scan_with_a_limit_has_read_nothing_behind_its_last_record() -> None:
    backend = _backend(**{"a\0": b"2", "b": b"3"})
    transaction = Transaction(backend)
    transaction.put(b"a", b"1")  # so that a page of one record is more than is wanted
    assert _values(transaction.scan(b"a", b"z", 1, guard=b"g")) == [(b"a", b"1")]
    assert transaction.to_commit().reads.keys() <= {b"a", b"g"}


def test_each_record_is_read_once() -> None:
    backend = _backend(a=b"1", b=b"2")
    transaction = Transaction(backend)
    first = transaction.get(b"a")
    assert first is not None and first.value == b"1"
    assert transaction.get(b"missing") is None
    backend.commit(Commit(puts={b"a": b"other", b"missing": b"other"}))
    backend.asked.clear()
    assert transaction.get(b"a") is first
    assert transaction.get_many([b"a", b"missing", b"b", b"b"]).keys() == {b"a", b"b"}
    assert backend.asked == [b"b"]
    assert backend.commit(transaction.to_commit()) == Conflict((b"a", b"missing"))


def test_reads_carry_their_versions() -> None:
    backend = _backend(a=b"1")
    transaction = Transaction(backend)
    found = transaction.get_many([b"a", b"b"])
    assert transaction.to_commit() == Commit(reads={b"a": found[b"a"].version, b"b": ABSENT}, deletes=[])


def test_what_was_read_ahead_is_validated_if_it_is_used() -> None:
    backend = _backend(a=b"1", b=b"2")
    ahead = {**backend.get_many([b"a", b"b"]), b"c": None}
    backend.asked.clear()
    transaction = Transaction(backend, ahead)
    found = transaction.get(b"a")
    assert found is not None and found.value == b"1"
    assert transaction.get(b"c") is None
    assert transaction.to_commit().reads == {b"a": found.version, b"c": ABSENT}
    assert backend.asked == []


def test_only_one_call_is_a_snapshot() -> None:
    transaction = Transaction(_backend(a=b"1", b=b"2"))
    assert transaction.has_read_one_snapshot
    transaction.get_many([b"a", b"b"])
    transaction.get(b"a")
    assert transaction.has_read_one_snapshot
    transaction.scan(b"a", b"z", guard=b"g")
    assert not transaction.has_read_one_snapshot


def test_a_written_record_is_not_read() -> None:
    backend = _backend(a=b"1", b=b"2", c=b"3")
    transaction = Transaction(backend)
    transaction.put(b"a", b"new")
    transaction.insert(b"new", b"n")
    transaction.delete(b"b")
    assert transaction.get(b"a") == Record(ABSENT, b"new")
    assert transaction.get_many([b"new", b"b"]) == {b"new": Record(ABSENT, b"n")}
    assert backend.asked == []
    assert transaction.to_commit().reads == {}


# --- scans ------------------------------------------------------------------------------------------------------------
def test_a_scan_reads_every_record_and_counts_them() -> None:
    backend = _backend(a=b"1", b=b"2", c=b"3")
    transaction = Transaction(backend)
    assert _values(transaction.scan(b"a", b"c", guard=b"g")) == [(b"a", b"1"), (b"b", b"2")]
    commit = transaction.to_commit()
    assert commit.reads.keys() == {b"a", b"b"}
    assert commit.ranges == (RangeCount(b"g", b"a", b"c", 2),)
    _commit(backend, transaction)


def test_own_writes_are_in_scans_and_not_in_counts() -> None:
    backend = _backend(a=b"1", b=b"2", d=b"4", e=b"i5")
    transaction = Transaction(backend)
    transaction.put(b"b", b"mine")
    transaction.insert(b"c", b"new")
    transaction.put(b"c2", b"put")
    transaction.add(b"c3", 7)
    transaction.delete(b"d")
    transaction.delete(b"nothing")
    transaction.add(b"e", 2)
    shown = transaction.scan(b"a", b"z", guard=b"g")
    assert _values(shown) == [
        (b"a", b"1"),
        (b"b", b"mine"),
        (b"c", b"new"),
        (b"c2", b"put"),
        (b"c3", b""),
        (b"e", b"i5"),
    ]
    assert dict(shown)[b"c3"].number == 7 and dict(shown)[b"e"].number == 2
    assert transaction.to_commit().ranges == (RangeCount(b"g", b"a", b"z", 4),)
    _commit(backend, transaction)
    assert transaction.scan(b"a", b"z", guard=b"g") == shown, "a second scan shows the same"


def test_a_limited_scan_protects_only_what_it_shows() -> None:
    backend = _backend(a=b"1", b=b"2", c=b"3", d=b"4")
    transaction = Transaction(backend)
    transaction.delete(b"a")
    transaction.insert(b"a2", b"new")
    assert _values(transaction.scan(b"a", b"z", 2, guard=b"g")) == [(b"a2", b"new"), (b"b", b"2")]
    commit = transaction.to_commit()
    assert commit.reads.keys() == {b"a", b"b"}
    assert commit.ranges == (RangeCount(b"g", b"a", b"b\0", 2),)
    backend.commit(Commit(deletes=[b"c"], inserts={b"b2": b""}))
    _commit(backend, transaction)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_a_limited_scan_reads_on_over_own_deletes(limit: int) -> None:
    backend = _backend(a=b"1", b=b"2", c=b"3", d=b"4", e=b"5")
    transaction = Transaction(backend)
    for key in (b"a", b"b", b"d"):
        transaction.delete(key)
    shown = transaction.scan(b"a", b"z", limit, guard=b"g")
    assert [key for key, _record in shown] == [b"c", b"e"][:limit]
    _commit(backend, transaction)


def test_a_long_scan_takes_several_pages() -> None:
    backend = _Counting()
    backend.commit(Commit(inserts={b"%04d" % number: b"" for number in range(2500)}))
    transaction = Transaction(backend)
    shown = transaction.scan(b"0", b"9", guard=b"g")
    assert [key for key, _record in shown] == [b"%04d" % number for number in range(2500)]
    assert [start for start, _end, _limit in backend.pages] == [b"0", b"0999\0", b"1999\0"]
    assert transaction.to_commit().ranges == (RangeCount(b"g", b"0", b"9", 2500),)
    _commit(backend, transaction)


def test_what_a_scan_did_not_show_is_absent() -> None:
    backend = _backend(a=b"1")
    transaction = Transaction(backend)
    transaction.scan(b"a", b"c", guard=b"g")
    backend.commit(Commit(inserts={b"b": b"other"}))
    backend.asked.clear()
    assert transaction.get(b"b") is None
    assert transaction.get_many([b"b", b"a"]).keys() == {b"a"}
    assert _values(transaction.scan(b"a", b"z", guard=b"g")) == [(b"a", b"1")], "scans repeat what was seen"
    assert backend.asked == []
    assert backend.commit(transaction.to_commit()) == Conflict((b"g",))
    backend.commit(Commit(deletes=[b"b"]))
    _commit(backend, transaction)


def test_what_was_absent_is_absent_in_scans() -> None:
    backend = _backend(a=b"1")
    transaction = Transaction(backend)
    assert transaction.get(b"b") is None
    backend.commit(Commit(inserts={b"b": b"other"}))
    assert _values(transaction.scan(b"a", b"c", guard=b"g")) == [(b"a", b"1")]
    assert isinstance(backend.commit(transaction.to_commit()), Conflict)
    backend.commit(Commit(deletes=[b"b"]))
    _commit(backend, transaction)


def test_what_was_there_is_there_in_scans() -> None:
    backend = _backend(a=b"1", b=b"2")
    transaction = Transaction(backend)
    transaction.get(b"b")
    backend.commit(Commit(deletes=[b"b"]))
    assert _values(transaction.scan(b"a", b"c", guard=b"g")) == [(b"a", b"1"), (b"b", b"2")]
    backend.commit(Commit(inserts={b"b": b"2"}))
    assert backend.commit(transaction.to_commit()) == Conflict((b"b",))


def test_a_scan_that_shows_an_inserted_record_conflicts() -> None:
    backend = _backend(a=b"1")
    transaction = Transaction(backend)
    transaction.insert(b"a", b"mine")
    assert _values(transaction.scan(b"a", b"c", guard=b"g")) == [(b"a", b"mine")]
    assert isinstance(backend.commit(transaction.to_commit()), Conflict)
    backend.commit(Commit(deletes=[b"a"]))
    _commit(backend, transaction)


def test_empty_ranges_and_limits() -> None:
    backend = _backend(a=b"1")
    transaction = Transaction(backend)
    assert transaction.scan(b"b", b"a", guard=b"g") == []
    assert transaction.scan(b"a", b"a", guard=b"g") == []
    assert backend.pages == [] and transaction.to_commit().ranges == ()
    with pytest.raises(InvalidRequestError, match="at least one record"):
        transaction.scan(b"a", b"b", 0, guard=b"g")


# --- writes -----------------------------------------------------------------------------------------------------------
def test_adds_add_up_and_overlay_numbers() -> None:
    backend = _backend(a=b"i1")
    backend.commit(Commit(adds={b"a": 10}))
    transaction = Transaction(backend)
    transaction.add(b"a", 1)
    transaction.add(b"a", 2)
    transaction.add(b"n", -4)
    assert transaction.to_commit() == Commit(adds={b"a": 3, b"n": -4}, deletes=[])
    assert transaction.get(b"a") == Record(ABSENT, b"i1", 13)
    assert transaction.get(b"n") == Record(ABSENT, b"", -4)
    assert transaction.to_commit().reads.keys() == {b"a", b"n"}
    _commit(backend, transaction)
    assert backend.get_many([b"a", b"n"])[b"a"].number == 13


def test_bounds_keep_the_least() -> None:
    transaction = Transaction(_backend())
    transaction.add(b"n", 3)
    transaction.require_at_most(b"n", 5)
    transaction.require_at_most(b"n", 4)
    transaction.require_at_most(b"n", 6)
    assert transaction.to_commit().bounds == (Bound(b"n", 4),)


def test_a_bound_needs_an_add() -> None:
    backend = _backend(n=b"")
    transaction = Transaction(backend)
    transaction.require_at_most(b"n", 5)
    assert not transaction.is_read_only
    with pytest.raises(InvalidRequestError, match="a bound needs an add"):
        backend.commit(transaction.to_commit())


def test_an_insert_of_what_is_there_is_a_mistake() -> None:
    backend = _backend(a=b"1", b=b"2", n=b"")
    transaction = Transaction(backend)
    transaction.get(b"a")
    transaction.scan(b"b", b"c", guard=b"g")
    transaction.put(b"p", b"")
    transaction.insert(b"i", b"")
    transaction.add(b"n", 1)
    for key in (b"a", b"b", b"p", b"i", b"n"):
        with pytest.raises(InvalidRequestError, match="put it instead"):
            transaction.insert(key, b"again")


@pytest.mark.parametrize(
    "write",
    [
        lambda transaction: transaction.put(b"a", b""),
        lambda transaction: transaction.delete(b"a"),
        lambda transaction: transaction.insert(b"a", b""),
    ],
)
def test_an_add_after_another_write_is_a_mistake(write: Callable[[Transaction], None]) -> None:
    transaction = Transaction(_backend())
    write(transaction)
    with pytest.raises(InvalidRequestError, match="in another transaction"):
        transaction.add(b"a", 1)


def test_an_insert_and_a_delete_leave_a_condition() -> None:
    backend = _backend()
    transaction = Transaction(backend)
    transaction.insert(b"a", b"1")
    transaction.delete(b"a")
    assert transaction.get(b"a") is None
    assert transaction.to_commit() == Commit(reads={b"a": ABSENT}, deletes=[])
    assert transaction.is_read_only and not transaction.has_read_one_snapshot, "the absence was not read"
    transaction.insert(b"a", b"2")
    assert transaction.to_commit() == Commit(reads={b"a": ABSENT}, inserts={b"a": b"2"}, deletes=[])
    _commit(backend, transaction)


def test_a_delete_and_an_insert_are_a_put() -> None:
    backend = _backend(a=b"1")
    transaction = Transaction(backend)
    transaction.delete(b"a")
    transaction.insert(b"a", b"2")
    assert transaction.to_commit() == Commit(puts={b"a": b"2"}, deletes=[])
    _commit(backend, transaction)


# --- a model ----------------------------------------------------------------------------------------------------------
_KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
_VALUES = st.sampled_from([b"", b"i1", b"i2"])
_CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("get"), _KEYS),
        st.tuples(st.just("scan"), _KEYS, _KEYS, st.sampled_from([None, 1, 2])),
        st.tuples(st.just("put"), _KEYS, _VALUES),
        st.tuples(st.just("insert"), _KEYS, _VALUES),
        st.tuples(st.just("delete"), _KEYS),
        st.tuples(st.just("add"), _KEYS, st.integers(-2, 2)),
    ),
    max_size=8,
)
_Model = dict[bytes, tuple[bytes, int]]


def _apply(model: _Model, call: tuple[object, ...]) -> object:
    """Run a call on a dictionary: what one transaction alone would see and do."""
    match call:
        case ("get", bytes(key)):
            return model.get(key)
        case ("scan", bytes(start), bytes(end), limit):
            found = [(key, model[key]) for key in sorted(model) if start <= key < end]
            return found if limit is None else found[: int(str(limit))]
        case ("put" | "insert", bytes(key), bytes(value)):
            model[key] = (value, 0)
        case ("delete", bytes(key)):
            model.pop(key, None)
        case ("add", bytes(key), int(delta)):
            value, number = model.get(key, (b"", 0))
            model[key] = (value, number + delta)
    return None


def _run(transaction: Transaction, call: tuple[object, ...]) -> object:
    name, *args = call
    if name == "scan":
        start, end, limit = args
        shown = transaction.scan(start, end, limit, guard=b"guard")  # type: ignore[arg-type]  # drawn with these types
        return [(key, (record.value, record.number)) for key, record in shown]
    found = getattr(transaction, str(name))(*args)
    return (found.value, found.number) if isinstance(found, Record) else found


@given(st.dictionaries(_KEYS, st.tuples(_VALUES, st.integers(-1, 1))), _CALLS)
def test_a_lone_transaction_acts_like_a_dictionary(start: _Model, calls: list[tuple[object, ...]]) -> None:
    """Its reads, and what is there after its commit, are those of a plain dictionary; a refused call does nothing."""
    backend = MemoryBackend()
    backend.commit(Commit(puts={key: value for key, (value, _number) in start.items()}))
    backend.commit(Commit(adds={key: number for key, (_value, number) in start.items()}))
    model, transaction = dict(start), Transaction(backend)
    blind_insert = False
    for call in calls:
        try:
            found = _run(transaction, call)
        except InvalidRequestError:
            continue
        blind_insert |= call[0] == "insert" and call[1] in start and call[1] in model
        assert blind_insert or found == _apply(model, call)
    outcome = backend.commit(transaction.to_commit())
    if blind_insert:  # nobody had looked
        assert isinstance(outcome, Conflict)
        return
    assert isinstance(outcome, Committed)
    now = {key: (record.value, record.number) for key, record in backend.scan(b"a", b"z", 9).records}
    assert now == model
