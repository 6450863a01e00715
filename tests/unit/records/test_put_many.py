"""Many rows are put in transactions of bounded size; whatever fails, doing it again ends with all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from holdfast.errors import ConflictError, HoldfastError, InvalidRequestError, NotFoundError
from holdfast.records import Database
from holdfast.records.keys import old_commit_counts_range
from holdfast.records.row_keys import Row
from holdfast.runtime import Environment
from holdfast.transactions.memory import MemoryBackend
from tests.forgetful_database import ForgetfulDatabase
from tests.unit.records.databases import FAST, SERVERS, open_dbs
from tests.units_world import FAULTS, Death, Shaky, fail_at, refused_after_failovers


@pytest.mark.parametrize("backend", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS)])
@pytest.mark.parametrize("history", [False, True])
def test_many_rows(backend: str, history: bool, request: pytest.FixtureRequest) -> None:
    with open_dbs(backend, request) as (db, other):
        db.create_table("t", history=history)
        assert db.put_many("t", (((number % 1201), number) for number in range(1300))) == 1300
        assert db.put_many("t", iter([("a", [1, 2])]), column="c") == 1
        assert db.put_many("t", []) == 0
        expected = {row: row + 1201 if row < 99 else row for row in range(1201)}
        assert other.get_many("t", range(1300)) == expected
        assert other.get_row("t", "a") == {"c": [1, 2]}
        if history:
            assert db.history("t", 5) == [(1, 5), (2, 1206)]


def test_update_counters_are_read_in_one_round_trip() -> None:
    """A table with a history needs the number of a cell's last update before it can write the next."""
    reads = []
    for rows in (1, 50):
        db, shaky = _db()
        db.create_table("h", history=True)
        shaky.calls.clear()
        db.put_many("h", ((row, row) for row in range(rows)))
        reads.append(shaky.calls.count("get_many"))
    assert reads[0] == reads[1]


def _db() -> tuple[Database, Shaky]:
    shaky = Shaky(MemoryBackend())
    db = Database(shaky, "memory://", Environment())
    db.create_table("t")
    shaky.calls.clear()
    return db, shaky


def test_no_transaction_is_large_and_none_waits_for_the_last_value() -> None:
    db, shaky = _db()
    seen: list[int] = []

    def rows() -> Iterator[tuple[Row, bytes]]:
        for number in range(10):
            seen.append(shaky.calls.count("commit"))
            yield number, bytes(700_000)

    db.put_many("t", rows())
    assert seen == [0, 0, 0, 0, 0, 0, 2, 2, 2, 3]


def test_values_are_stored_as_they_were_when_they_came() -> None:
    """A generator may use its list or its array again for the next row."""
    buffer, numbers = np.zeros(2), []

    def rows() -> Iterator[tuple[Row, Any]]:
        for number in range(3):
            buffer[:] = number
            numbers.append(number)
            yield ("array", number), buffer
            yield ("list", number), numbers

    db, _shaky = _db()
    assert db.put_many("t", rows()) == 6
    assert [db.get("t", ("list", number)) for number in range(3)] == [[0], [0, 1], [0, 1, 2]]
    arrays = [db.get("t", ("array", number)) for number in range(3)]
    np.testing.assert_array_equal(arrays, [[0, 0], [1, 1], [2, 2]])


@pytest.mark.parametrize("fault", FAULTS)
def test_after_any_fault_the_same_call_puts_the_rest(fault: str) -> None:
    values = [(number, number) for number in range(1100)]
    db, shaky = _db()
    db.put_many("t", values)
    calls = len(shaky.calls)
    for call in range(1, calls):  # the last one only tidies up
        db, shaky = _db()
        fail_at(shaky, call, fault)
        with pytest.raises((Death, HoldfastError)):
            db.put_many("t", values)
        there = list(db.scan("t"))
        assert there == [(number, {"value": number}) for number in range(len(there))], "the first ones"
        assert db.put_many("t", values) == 1100
        assert dict(db.scan("t")) == {row: {"value": value} for row, value in values}


def test_what_a_failover_loses_between_the_transactions_is_no_success() -> None:
    """Before each call, with each number of lost transactions."""
    values = [(number, number) for number in range(1100)]

    def put(db: Database) -> None:
        assert db.put_many("t", values) == len(values)
        assert dict(db.scan("t")) == {row: {"value": value} for row, value in values}

    assert refused_after_failovers(lambda db: db.create_table("t"), put, "call it again with the same values") > 6


def test_who_is_told_to_put_the_rows_again_is_told_of_histories() -> None:
    """In which the rows of the transactions that are not lost would be twice."""
    database = ForgetfulDatabase(keeps=False)
    shaky = Shaky(database, lambda _number, name: name == "make_durable" and database.forget(1))
    db = Database(shaky, "memory://", Environment())
    db.create_table("t", history=True)
    with pytest.raises(ConflictError, match=r"again with the same values; but look first .*history"):
        db.put_many("t", ((number, number) for number in range(600)))
    assert len(list(db.scan("t"))) == 500


def test_many_rows_are_durable_on_a_database_that_flushes_late() -> None:
    database = ForgetfulDatabase()
    db = Database(database, "memory://", Environment())
    db.create_table("t")
    db.put_many("t", ((number, number) for number in range(600)))
    database.forget(database.newest)
    assert len(list(db.scan("t"))) == 600


@pytest.mark.parametrize("fault", ["lost with effect", "lost without effect", "unavailable"])
def test_a_call_whose_last_step_fails_has_succeeded(fault: str) -> None:
    values = [(number, number) for number in range(600)]
    db, shaky = _db()
    db.put_many("t", values)
    calls = len(shaky.calls)
    db, shaky = _db()
    fail_at(shaky, calls, fault)
    assert db.put_many("t", values) == 600
    assert db.collect(calls_older_than_s=-2) == (0 if fault == "lost with effect" else 1)


def test_calls_that_do_not_end_leave_a_record_for_a_week() -> None:
    db, shaky = _db()
    db.put_many("t", [(number, number) for number in range(500)])
    assert shaky.calls.count("commit") == 1 and "make_durable" not in shaky.calls
    db.put_many("t", [(number, number) for number in range(501)])
    assert not shaky.inner.scan(*old_commit_counts_range(2**40), 1).records
    with pytest.raises(InvalidRequestError):
        db.put_many("t", [*((number, number) for number in range(1100)), "ab"])  # type: ignore[list-item]  # the mistake under test
    assert db.collect() == 0
    assert db.collect(calls_older_than_s=-2) == 1
    assert not shaky.inner.scan(*old_commit_counts_range(2**40), 1).records


@pytest.mark.parametrize("given", ["ab", 5, ("a",), ("a", 1, 2), ["a", 1]])
def test_what_is_no_pair_is_refused(given: Any) -> None:
    db, _shaky = _db()
    with pytest.raises(InvalidRequestError, match=r"rows come as pairs \(row, value\)"):
        db.put_many("t", [given])
    assert not list(db.scan("t"))


def test_a_missing_table_is_told_before_a_value_is_taken() -> None:
    db, _shaky = _db()
    values = iter([("a", 1)])
    with pytest.raises(NotFoundError):
        db.put_many("missing", values)
    assert list(values) == [("a", 1)]
