"""Test dead jobs of Hadoop's FileOutputCommitter: what they leave below ``_temporary``, and how they are ended."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from holdfast.commit.hadoop.dead_jobs.recovery import find_hadoop_jobs, find_upload_owners
from holdfast.commit.leftovers import RecoveryAction
from holdfast.errors import ConflictError
from holdfast.stores.base import MultipartStore, iter_uploads
from holdfast.stores.interceptors import InterceptedStore
from holdfast.stores.memory import MemoryStore
from tests.interceptors import Fault, FaultMode, Faulty, SimulatedCrash
from tests.unit.commit.hadoop.dead_jobs.dead_jobs import Destination, name, only

JOB = "202611221011120004321_0007"
ALL = {name(task, number): f"{task}/{number}".encode() for task in range(2) for number in range(2)}
each_store = pytest.mark.parametrize("kind", ["disk", "s3"])


def destination(kind: str = "disk") -> Destination:
    """On a disk, which renames, or on S3, which copies."""
    at = Destination()
    at.store = MemoryStore(rename=kind == "disk", clock=at.clock, ids=at.ids)
    return at


def dead_job(at: Destination, moved: int = 0, files: Mapping[str, bytes] = ALL) -> None:
    """v1: two tasks have committed, a third has written; `moved` files are already visible."""
    for number, (path, data) in enumerate(files.items()):
        task = f"{at.home}_temporary/0/task_{JOB}_m_{number // 2:06d}/"
        at.store.put(at.home + path if number < moved else task + path, data)
    at.store.put(f"{at.home}_temporary/0/_temporary/attempt_{JOB}_m_000002_5/{name(2)}", b"late")


@each_store
def test_what_it_is_is_said_and_nothing_is_touched(kind: str) -> None:
    at = destination(kind)
    dead_job(at, 1)
    before = at.debris()
    found = only(at.context())
    assert (found.committer, found.job, found.action, found.files) == (
        "hadoop-file",
        f"job_{JOB}",
        RecoveryAction.KEEP,
        1,
    )
    assert "committed 3 files, still in _temporary; visible: 1 file" in found.reason
    found.recover()
    assert at.debris() == before


@each_store
@pytest.mark.parametrize("moved", [0, 1, 3])
def test_abort_leaves_nothing(kind: str, moved: int) -> None:
    at = destination(kind)
    at.store.put(f"{at.home}day=0/part-00000-{'0' * 8}-5a77-4c3d-9c55-0d5c8f7e1a2b-c000.txt", b"old")
    dead_job(at, moved)
    only(at.context(), abort=True).recover()
    assert list(at.visible().values()) == [b"old"] and at.debris() == []


def test_where_nothing_waits_nothing_visible_goes() -> None:
    """v2 shows files at task commit; a finished job of v1 looks the same."""
    at = destination()
    dead_job(at, 4)
    found = only(at.context(), abort=True)
    assert found.action is RecoveryAction.CLEAN and "no committed file is left" in found.reason
    found.recover()
    assert at.visible() == ALL and at.debris() == []


def test_names_that_do_not_tell_the_write() -> None:
    at = destination()
    dead_job(at, 1, {"part-r-00000": b"0", "part-r-00001": b"1"})
    assert only(at.context(), abort=True).action is RecoveryAction.KEEP
    only(at.context(), abort=True, insist=True).recover()
    assert at.visible() == {"part-r-00000": b"0"} and at.debris() == []


def test_hidden_files_of_a_task_are_neither_counted_nor_asked_for_a_name() -> None:
    """Hadoop's local file system stores a checksum next to each file."""
    at = destination()
    dead_job(at, 1)
    at.store.put(f"{at.home}_temporary/0/task_{JOB}_m_000000/day=1/.{name(0, 1).rpartition('/')[2]}.crc", b"sum")
    assert "committed 3 files" in only(at.context()).reason
    only(at.context(), abort=True).recover()
    assert at.visible() == {} and at.debris() == []


def test_other_jobs_are_never_touched() -> None:
    """C7: another job in the same ``_temporary``, one of Holdfast, a manifest committer's, ``dataset10``."""
    at = destination()
    dead_job(at, 1)
    other = "202611221011129999999_0008"
    ours = "20270115080000000-00000000000a"
    uuid = "99999999-5a77-4c3d-9c55-0d5c8f7e1a2b"
    kept = {
        f"{at.home}_temporary/0/task_{other}_m_000000/{name(0, 0, uuid)}",
        f"{at.home}_temporary/0/task_{ours}_m_000000/part-00000-{ours}-c000.txt",
        f"{at.home}_temporary/manifest_job_1/00/manifests/a.json",
        f"{at.home}_temporary/0/strange/file",
        f"out put/dataset10/_temporary/0/task_{JOB}_m_000000/{name(0)}",
    }
    for key in kept:
        at.store.put(key, b"kept")
    assert {one.leftover.job for one in find_hadoop_jobs(at.context())} == {f"job_{JOB}", f"job_{other}"}
    (found,) = (one.leftover for one in find_hadoop_jobs(at.context(), abort=True) if one.leftover.job == f"job_{JOB}")
    found.recover()
    assert set(at.debris()) == kept and at.visible() == {}


def test_an_upload_that_a_task_had_open_is_the_jobs() -> None:
    at = destination("s3")
    dead_job(at)
    key = f"{at.home}_temporary/0/_temporary/attempt_{JOB}_m_000002_5/large"
    at.store.create_upload(key)
    uploads = list(iter_uploads(at.store, ""))
    ((_, owner),) = find_upload_owners(at.context(), uploads).items()
    assert owner == (f"job_{JOB}", "hadoop-file") and only(at.context()).uploads == 1
    only(at.context(), abort=True).recover()
    assert at.debris() == []


@each_store
def test_ending_dies_at_every_call(kind: str) -> None:
    """C9, C10: a repeated recovery has the same result."""
    for nth in range(1, 80):
        ended = []
        for mode in (FaultMode.CRASH_BEFORE, FaultMode.CRASH_AFTER):
            at = destination(kind)
            dead_job(at, 1)
            try:
                only(at.context(store=_dying(at.store, nth, mode)), abort=True).recover()
                ended.append(mode)
            except SimulatedCrash:
                for one in list(find_hadoop_jobs(at.context(), abort=True)):
                    one.leftover.recover()
            assert at.visible() == {}, (nth, mode)
            assert at.debris() == [], (nth, mode)
        if len(ended) == 2:
            break
    else:
        pytest.fail("it makes more calls than were tried")


def _dying(store: MultipartStore, nth: int, mode: FaultMode) -> InterceptedStore:
    return InterceptedStore(store, Faulty(Fault(mode, nth=nth)))


def test_a_job_that_goes_on_is_not_ended() -> None:
    at = destination()
    dead_job(at)
    found = only(at.context(), abort=True)
    at.store.put(f"{at.home}_temporary/1/task_{JOB}_m_000000/part-r-00000", b"another name")
    with pytest.raises(ConflictError, match="made progress"):
        found.recover()
    assert at.visible() == {}


@each_store
def test_a_job_that_another_recovery_has_ended_is_no_error(kind: str) -> None:
    at = destination(kind)
    dead_job(at, 1)
    first, second = (only(at.context(), abort=True) for _ in range(2))
    first.recover()
    before = at.visible()
    second.recover()
    assert at.visible() == before and at.debris() == []
