"""The functions of a `foreachBatch` are told apart: none takes what another one has done for its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.runtime import Environment
from holdfast.spark.units.streams import Batch, _Turn, batch_of_query
from holdfast.transactions.memory import MemoryBackend
from holdfast.units.jobs import MAP, Job, begin_job

REFUSED = "give each a job name of its own"


class _Query:
    """A query whose batches have one name, and a database with their job."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.db = MemoryBackend()
        self.job = self.new_job(self.db)

    def new_job(self, db: MemoryBackend) -> Job:
        return begin_job(db, f"{self.prefix}-0", kind=MAP, shards=1, environment=Environment())

    def batch(self, function: object, turn: str = "1") -> Batch:
        return Batch(f"{self.prefix}-0", "", (self.prefix, "query"), _Turn("application", turn, 0), function)


@pytest.fixture
def query(request: Any) -> _Query:
    return _Query(request.node.name)


def first() -> None:
    """Stands for a function."""


def second() -> None:
    """Stands for another one."""


def test_what_another_function_has_begun_is_refused_whether_or_not_it_has_ended(query: _Query) -> None:
    one, other = query.batch(first), query.batch(second)
    one.begin(query.job.id)
    with pytest.raises(InvalidRequestError, match=REFUSED):
        other.require_own(query.db)
    with pytest.raises(InvalidRequestError, match=REFUSED):
        other.begin(query.job.id)
    one.end()
    with pytest.raises(InvalidRequestError, match=REFUSED):
        query.batch(second).require_own(query.db)


def test_of_two_that_look_before_either_begins_one_is_refused(query: _Query) -> None:
    one, other = query.batch(first), query.batch(second)
    one.require_own(query.db)
    other.require_own(query.db)
    other.begin(query.job.id)
    with pytest.raises(InvalidRequestError, match=REFUSED):
        one.begin(query.job.id)


def test_a_function_goes_on_with_its_own_job_until_that_has_ended(query: _Query) -> None:
    for _ in range(2):
        one = query.batch(first)
        one.require_own(query.db)
        one.begin(query.job.id)
    one.end()
    with pytest.raises(InvalidRequestError, match=REFUSED):
        query.batch(first).require_own(query.db)


def test_another_turn_or_db_is_nothing_to_be_refused_for(query: _Query) -> None:
    query.batch(first).begin(query.job.id)
    other = MemoryBackend()
    batch = query.batch(second)
    batch.require_own(other)
    batch.begin(query.new_job(other).id)
    again = query.batch(second, turn="2")
    again.require_own(query.db)
    again.begin(query.job.id)


def test_over_spark_connect_the_advice_lets_no_row_count_twice() -> None:
    batch: Any = SimpleNamespace(sparkSession=object())
    with pytest.raises(UnsupportedError, match="let the source begin behind the rows that have counted"):
        batch_of_query("words", batch, 0, first)
