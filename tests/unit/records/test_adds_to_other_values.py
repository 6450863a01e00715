"""Whatever is added to, and whoever was first: a table can be read, and nothing that was added is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from holdfast.errors import InvalidRequestError
from holdfast.records import CellTransaction, Database
from holdfast.transactions.base import MAX_NUMBER
from tests.unit.records.databases import FAST, SERVERS, open_dbs

_BACKENDS = [*FAST, *SERVERS]
_OTHERS: list[Any] = ["text", "", b"bytes", b"", 1.5, True, [1], {"a": 1}, np.zeros(2)]


@pytest.mark.parametrize("backend", _BACKENDS)
def test_nothing_is_added_to_what_is_no_integer(backend: str, request: pytest.FixtureRequest) -> None:
    with open_dbs(backend, request) as (db, other):
        db.create_table("t")
        for number, value in enumerate(_OTHERS):
            db.put("t", number, value)
            for add in (lambda: other.add("t", number), lambda: other.transact(_adds_with_others(number))):  # noqa: B023  # called at once
                with pytest.raises(InvalidRequestError, match=rf"only an integer .*row={number} column='value'"):
                    add()
        found = {row: columns["value"] for row, columns in db.scan("t")}
        assert list(found) == list(range(len(_OTHERS)))
        assert all(np.array_equal(found[number], value) for number, value in enumerate(_OTHERS))


def _adds_with_others(row: int) -> Callable[[CellTransaction], None]:
    def function(cells: CellTransaction) -> None:
        cells.put("t", "other", 1)
        cells.add("t", "count")
        cells.add("t", row, 5)

    return function


@pytest.mark.parametrize("backend", _BACKENDS)
def test_integers_of_any_size_are_added_to(backend: str, request: pytest.FixtureRequest) -> None:
    with open_dbs(backend, request) as (db, other):
        db.create_table("t")
        numbers = [0, -1, 5, MAX_NUMBER, -(2**200)]
        for row, number in enumerate(numbers):
            db.put("t", row, number)
            other.add("t", row, 3)
            other.transact(lambda cells, row=row: (cells.get("t", row), cells.add("t", row, -1)))  # type: ignore[misc]  # mypy infers no types for defaults of lambdas
        assert [db.get("t", row) for row in range(len(numbers))] == [number + 2 for number in numbers]


def test_a_text_over_a_counter_is_told_to_those_who_add_later(db: Database) -> None:
    db.add("t", "n", 7)
    db.put("t", "n", "seven")
    with pytest.raises(InvalidRequestError, match="only an integer can be added to"):
        db.add("t", "n")
    assert dict(db.scan("t")) == {"n": {"value": "seven"}}
    db.put("t", "n", 7)
    db.add("t", "n")
    assert db.get("t", "n") == 8


def test_a_text_that_comes_between_is_noticed(db: Database) -> None:
    """The transaction has begun when another one puts a text."""

    def function(cells: CellTransaction) -> None:
        cells.add("t", "n")
        db.put("t", "n", "text")

    with pytest.raises(InvalidRequestError, match="only an integer can be added to"):
        db.transact(function)
    assert db.get("t", "n") == "text"


@pytest.fixture
def db(request: pytest.FixtureRequest) -> Any:
    with open_dbs("sqlite", request) as (db, _other):
        db.create_table("t")
        yield db
