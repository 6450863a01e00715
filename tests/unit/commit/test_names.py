"""Check names that are used once, and the layout below a destination."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.commit import layout
from holdfast.commit.ids import AttemptId, FileOwner, JobId, file_name, file_owner, is_job_id, new_job_id
from holdfast.runtime import SystemClock, SystemIds
from holdfast.stores.base import iter_objects
from holdfast.stores.memory import MemoryStore
from tests.clocks import CountingIds, SimulatedClock

OWNER = FileOwner(JobId("20261121093853123-a1b2c3d4e5f6"), 3, AttemptId("0123456789ab"))


def test_job_ids_sort_by_start_and_differ_within_a_second() -> None:
    """SPARK-33402: two jobs in the same second had the same id."""
    clock = SimulatedClock()
    ids = [new_job_id(clock, CountingIds()) for _ in range(3)]
    assert ids == sorted(set(ids)) and all(map(is_job_id, ids))
    stopped = SimulatedClock()
    same_moment = set()
    for _ in range(1000):
        stopped.at_s = 0.0
        same_moment.add(new_job_id(stopped, SystemIds()))
    assert len(same_moment) == 1000
    assert is_job_id(new_job_id(SystemClock(), SystemIds()))


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["", ".csv", ".snappy.parquet", ".json.gz"]))
def test_a_file_tells_whose_it_is(task: int, number: int, extension: str) -> None:
    owner = FileOwner(OWNER.job, task, OWNER.attempt)
    assert file_owner(f"month=1/a b/{file_name(owner, number, extension)}") == owner


@pytest.mark.parametrize(
    "path",
    [
        "part-00000-1f3a9c2b-7d10-4b5e-8d9e-0a1b2c3d4e5f-c000.snappy.parquet",  # Spark's own
        "part-00000-20261121093853123-a1b2c3d4e5f6-0123456789ab.csv",
        "part-00000-20261121093853123-A1B2C3D4E5F6-0123456789ab-00000.csv",
        "part-00000-20261121093853123-a1b2c3d4e5f6-0123456789ab-00000.csv/other",
        "data.csv",
        "",
    ],
)
def test_foreign_names_have_no_owner(path: str) -> None:
    assert file_owner(path) is None


@pytest.mark.parametrize("path", ["a/b.csv", "_x=1/b.csv", "a b/%2F+ü=/c", "month=__HIVE_DEFAULT_PARTITION__/c"])
def test_paths_that_are_output(path: str) -> None:
    assert not layout.is_hidden(path) and layout.is_safe_path(path)


@pytest.mark.parametrize(
    "path", ["_a/b", "a/_b", ".a/b", "a/.b", "../a", "a/../b", "_SUCCESS", "_holdfast/log/x", "k=1/b.csv._COPYING_"]
)
def test_paths_that_readers_skip(path: str) -> None:
    assert layout.is_hidden(path) and not layout.is_safe_path(path)


def test_a_path_that_no_record_can_hold_is_not_safe() -> None:
    assert not layout.is_safe_path("a/\udcff.csv")


def test_listing_of_output_skips_the_folder_of_holdfast() -> None:
    """Names on both sides of ``_holdfast/`` in byte order are found, and the folder costs one page at most."""
    store = MemoryStore()
    for key in ["A", "Z/1", "_SUCCESS", "_a=1/x", "_holdfas", "_holdfast0", "_holdfastx=1/y", "a", "z/9", "ü"]:
        store.put(f"d/{key}", b"")
    for number in range(3000):
        store.put(f"d/_holdfast/log/{number:020d}.json", b"")
    found = [path for path, _ in layout.iter_visible(store, "d/")]
    assert found == ["A", "Z/1", "_a=1/x", "_holdfastx=1/y", "a", "z/9", "ü"]
    assert len(list(iter_objects(store, "d/"))) == 3010
