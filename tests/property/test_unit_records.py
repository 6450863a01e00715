"""The records of jobs of units read back equal, and damaged ones are refused, whatever is in them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import CorruptDataError
from holdfast.records.tables import Table
from holdfast.transactions.base import Record
from holdfast.units.jobs import Job, job_key
from holdfast.units.progress import Statistics, TaskProgress
from holdfast.units.work_list import decode_claim

_COUNTS = st.integers(0, 10**9)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_STATISTICS = st.builds(
    Statistics,
    units=_COUNTS,
    conflicts=_COUNTS,
    run_s=st.integers(0, 10**6).map(float),
)
_PROGRESS = st.builds(
    TaskProgress,
    last=st.binary(max_size=9),
    done=_COUNTS,
    deferred=st.lists(st.binary(max_size=9), max_size=4).map(tuple),
    is_finished=st.booleans(),
    statistics=_STATISTICS,
)


@given(_PROGRESS)
def test_progress_reads_back_equal(progress: TaskProgress) -> None:
    assert TaskProgress.of(progress.to_bytes()) == progress


def _read(value: bytes) -> None:
    record = Record(1, value)
    for read in (
        lambda: TaskProgress.of(value),
        lambda: Job.of(job_key("a"), record),
        lambda: Table.of("a", record),
        lambda: decode_claim(b"a", record),
    ):
        with suppress(CorruptDataError):
            assert read() is not None


@given(st.binary(max_size=40) | _JSON.map(lambda found: json.dumps(found).encode()))
def test_what_is_no_record_is_refused(value: bytes) -> None:
    _read(value)


@pytest.mark.parametrize(
    "value", [b'{"count":Infinity,"last":"","id":1e999,"ended":null}', b"[" * 100_000, b'{"id":[]}']
)
def test_a_record_that_no_number_and_no_stack_holds(value: bytes) -> None:
    _read(value)


@given(_PROGRESS, st.data())
def test_a_damaged_record_is_refused(progress: TaskProgress, data: st.DataObject) -> None:
    found: dict[str, Any] = json.loads(progress.to_bytes())
    where = found if data.draw(st.booleans()) else found["statistics"]
    where[data.draw(st.sampled_from(sorted(where)))] = data.draw(_JSON)
    _read(json.dumps(found).encode())


@given(_STATISTICS, _STATISTICS)
def test_sums_of_statistics_can_be_taken_apart(one: Statistics, other: Statistics) -> None:
    assert one.plus(other).since(one) == other
    assert one.plus(other) == other.plus(one) == Statistics.total([one, other])
