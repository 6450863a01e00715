"""Test dead jobs of Hadoop's S3A committers: found, distinguished, committed or aborted as the user wishes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.commit import COMMITTERS, TWO_PHASE, SaveMode, recover
from holdfast.commit.hadoop.dead_jobs.recovery import find_hadoop_jobs
from holdfast.commit.leftovers import FOREIGN_QUIET_S as QUIET_S
from holdfast.commit.leftovers import ForeignJobPolicy, RecoveryAction
from holdfast.commit.success_file import read_success_file
from holdfast.errors import ConflictError, NotFoundError, UnavailableError
from holdfast.stores.base import MultipartStore, iter_uploads
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.clocks import SimulatedClock
from tests.interceptors import Fault, FaultMode, Faulty, SimulatedCrash
from tests.servers.minio_like import MinioLike
from tests.unit.commit.attempts import Before
from tests.unit.commit.hadoop.dead_jobs.dead_jobs import RECORDED, UUID, Destination, HadoopTasks, name, only

OTHER = "99999999-5a77-4c3d-9c55-0d5c8f7e1a2b"
LAYOUTS = ("magic", "old magic")
each_layout = pytest.mark.parametrize("layout", LAYOUTS)
each_release = pytest.mark.parametrize("release", ["3.5.0", "3.4.1"])


def files_of(task: int, uuid: str = UUID) -> dict[str, bytes]:
    return {name(task, number, uuid): f"{task}/{number}".encode() for number in range(2)}


def dead_job(at: Destination, completed: int = 0, *, uuid: str = UUID, **made: str) -> HadoopTasks:
    """Two tasks have committed two files each, a third has written one; `completed` files are visible."""
    tasks = HadoopTasks(at, uuid=uuid, **made)  # type: ignore[arg-type]  # names are fields
    for task in range(2):
        tasks.commit_task(task, files_of(task, uuid))
    tasks.write(2, {name(2, uuid=uuid): b"late"})
    for path in list(tasks.uploads)[:completed]:
        tasks.complete(path)
    return tasks


ALL = {**files_of(0), **files_of(1)}


# --- finding ----------------------------------------------------------------------------------------------------------
@each_layout
@each_release
def test_what_it_is_is_said_and_nothing_is_touched(layout: str, release: str) -> None:
    at = Destination()
    dead_job(at, 1, layout=layout, release=release)
    before = at.debris()
    found = only(at.context())
    assert (found.job, found.action, found.files, found.uploads) == (UUID, RecoveryAction.KEEP, 1, 4)
    assert found.committer == "hadoop-magic"
    assert "1 of its files are visible, 3 are pending" in found.reason
    found.recover()
    assert at.debris() == before and len(at.visible()) == 1


def test_recovery_only_reports_it_and_a_person_is_needed() -> None:
    at = Destination()
    dead_job(at)
    before = at.debris()
    at.clock.sleep(QUIET_S + 1)
    report = recover(at.context(), foreign=ForeignJobPolicy())
    assert report.kept == [UUID] and not report.clean and at.debris() == before
    assert recover(at.context()).jobs == [], "who does not ask is not told"


def test_a_young_one_is_left_alone_whatever_is_wished() -> None:
    """Hadoop has no fence: its job commit would fail, or delete files that recovery has published."""
    for abort in (False, True):
        at = Destination()
        dead_job(at, 1)
        before = at.debris()
        at.clock.sleep(QUIET_S - 1)
        report = recover(at.context(), foreign=ForeignJobPolicy(abort=abort), accept_damage=True)
        assert report.left_alone == [UUID] and report.clean and at.debris() == before


def test_an_upload_that_may_be_its_tasks_keeps_it_alive() -> None:
    """A task writes its record only when it closes a file, and MapReduce's names contain no job id."""
    at = Destination()
    dead_job(at, 1)
    at.clock.sleep(QUIET_S + 1)
    upload = at.store.create_upload(f"{at.home}part-r-00007")
    assert recover(at.context(), foreign=ForeignJobPolicy(abort=True)).left_alone == [UUID]
    at.store.abort_upload(f"{at.home}part-r-00007", upload)
    assert recover(at.context(), foreign=ForeignJobPolicy(abort=True)).rolled_back == [UUID]


# --- ending -----------------------------------------------------------------------------------------------------------
@each_layout
@pytest.mark.parametrize("completed", [0, 1, 3])
def test_abort_leaves_nothing(layout: str, completed: int) -> None:
    at = Destination()
    dead_job(at, completed, layout=layout)
    found = only(at.context(), abort=True)
    assert found.action is RecoveryAction.BACK
    found.recover()
    assert at.visible() == {} and at.debris() == [] and read_success_file(at.context()) is None


def test_a_job_that_was_through_but_for_its_marker() -> None:
    """Whether it finished is not provable: a job commit may be configured to write none. No visible file is deleted."""
    at = Destination()
    dead_job(at, 4)
    found = only(at.context(), abort=True)
    assert found.action is RecoveryAction.CLEAN
    found.recover()
    assert at.visible() == ALL and at.debris() == [] and read_success_file(at.context()) is None


def test_a_job_that_was_taking_files_back() -> None:
    at = Destination()
    dead_job(at, 2)
    at.store.delete(at.home + name(0))
    assert "1 are gone" in only(at.context()).reason
    only(at.context(), abort=True).recover()
    assert at.visible() == {} and at.debris() == []


def test_a_job_that_is_over_has_its_directory_removed_and_no_more() -> None:
    """Hadoop 3.4.2 can be configured to leave it (HADOOP-18568): then later jobs have replaced or deleted files."""
    at = Destination()
    dead_job(at, 4)
    at.store.put(f"{at.home}_SUCCESS", b"")
    at.store.abort_upload(*next((one.key, one.upload_id) for one in iter_uploads(at.store, "")))
    (found,) = find_hadoop_jobs(at.context())
    assert found.is_over
    at.clock.sleep(QUIET_S + 1)
    assert recover(at.context(), foreign=ForeignJobPolicy()).jobs == []
    at.store.delete(at.home + name(1))
    assert only(at.context(), abort=True).action is RecoveryAction.KEEP, "aborted or replaced: unknown"


def test_one_that_wrote_its_marker_and_died_cleaning_up() -> None:
    """Attempts' uploads may be pending; visible files stay, whatever the user wishes."""
    at = Destination()
    dead_job(at, 4)
    at.store.put(f"{at.home}_SUCCESS", (RECORDED / "3.5.0" / "_SUCCESS").read_bytes())
    found = only(at.context(), abort=True)
    assert found.action is RecoveryAction.CLEAN and "_SUCCESS names the job" in found.reason
    found.recover()
    assert at.visible() == ALL and at.debris() == []


def test_visible_files_that_no_set_names_are_left_to_a_person() -> None:
    at = Destination()
    dead_job(at, 1)
    at.store.put(at.home + name(9), b"whose?")
    before = at.debris()
    found = only(at.context(), abort=True, insist=True)
    assert found.action is RecoveryAction.KEEP and "do not name" in found.reason
    assert at.debris() == before


def test_a_file_with_the_jobs_name_and_another_size_is_not_its_own() -> None:
    at = Destination()
    tasks = dead_job(at, 1)
    at.store.abort_upload(at.home + name(0, 1), tasks.uploads[name(0, 1)][0])
    at.store.put(at.home + name(0, 1), b"cut")
    at.store.put(at.home + name(0, 1), b"somebody made it longer")
    assert "do not name" in only(at.context()).reason


def test_a_name_that_tells_the_job_needs_no_etag() -> None:
    """Encrypted buckets have etags without information (SSE-KMS)."""
    at = Destination()
    tasks = dead_job(at)
    at.store.abort_upload(at.home + name(0), tasks.uploads[name(0)][0])
    at.store.put(at.home + name(0), b"0/0")
    assert "1 of its files are visible, 3 are pending" in only(at.context()).reason


def test_names_that_do_not_tell_the_job() -> None:
    """MapReduce names files ``part-r-00000``: another job may have written the same bytes."""
    at = Destination()
    tasks = HadoopTasks(at, uuid="job_20261122101112_0007")
    tasks.commit_task(0, {"part-r-00000": b"zero", "part-r-00001": b"one"})
    tasks.complete("part-r-00000")
    found = only(at.context(), abort=True)
    assert found.action is RecoveryAction.KEEP and found.files == 1, "known by its etag, not by its name"
    at.store.put(f"{at.home}part-r-00000", b"ZERO")
    assert only(at.context()).files == 0, "an older file of the same size"
    only(at.context(), abort=True).recover()
    assert at.visible() == {"part-r-00000": b"ZERO"} and at.debris() == []


def damage_a_record(tasks: HadoopTasks, task: int) -> str:
    key = f"{tasks.directory}/task_20261122101112_0007_m_{task:06d}.pendingset"
    tasks.at.store.put(key, b'{"version":9}')
    return key


@each_layout
def test_a_record_that_cannot_be_read_keeps_the_job(layout: str) -> None:
    at = Destination()
    key = damage_a_record(dead_job(at, 1, layout=layout), 1)
    before = at.debris()
    for abort, insist in ((False, True), (True, False)):
        found = only(at.context(), abort, insist=insist)
        assert found.action is RecoveryAction.KEEP and "version" in found.reason
        assert key in found.reason and "--foreign --accept-damage" in found.reason
        found.recover()
    assert at.debris() == before


@each_layout
def test_an_abort_that_is_insisted_on_goes_on_without_such_a_record(layout: str) -> None:
    """Uploads that it named are aborted if their names contain the job's id."""
    at = Destination()
    damage_a_record(dead_job(at, 1, layout=layout), 1)
    found = only(at.context(), abort=True, insist=True)
    assert found.action is RecoveryAction.BACK
    found.recover()
    assert at.visible() == {} and at.debris() == []


def test_what_only_such_a_record_named_is_left_to_a_person() -> None:
    at = Destination()
    tasks = HadoopTasks(at)
    tasks.commit_task(0, {"part-r-00000": b"0"})
    tasks.commit_task(1, {"part-r-00001": b"1", name(1): b"1"})
    tasks.complete(name(1))
    damage_a_record(tasks, 1)
    found = only(at.context(), abort=True, insist=True)
    assert found.action is RecoveryAction.KEEP and "after deleting visible files" in found.reason
    at.store.delete(at.home + name(1))
    only(at.context(), abort=True, insist=True).recover()
    assert [upload.key for upload in iter_uploads(at.store, "")] == [f"{at.home}part-r-00001"]
    assert list(find_hadoop_jobs(at.context())) == []


def test_our_job_commit_does_not_take_an_older_file_for_one_of_hadoops_tasks() -> None:
    """A Holdfast job with Hadoop tasks: an upload is missing, and a file with its name and size exists."""
    at = Destination()
    ctx = at.context()
    magic = COMMITTERS["magic"]
    job = magic.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    tasks = HadoopTasks(at, uuid=job.job)
    tasks.commit_task(0, {"part-r-00000": b"new"})
    at.store.abort_upload(f"{at.home}part-r-00000", tasks.uploads["part-r-00000"][0])
    at.store.put(f"{at.home}part-r-00000", b"old")
    with pytest.raises(NotFoundError, match="a pending upload of the job was aborted"):
        magic.commit_job(ctx, job, [], 0)
    assert at.visible() == {"part-r-00000": b"old"}


def test_our_job_commit_knows_a_file_of_hadoops_tasks_by_its_etag() -> None:
    """Completed by another process, or by a request whose reply was lost."""
    at = Destination()
    ctx = at.context()
    magic = COMMITTERS["magic"]
    job = magic.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    tasks = HadoopTasks(at, uuid=job.job)
    tasks.commit_task(0, {"part-r-00000": b"new", "part-r-00001": b"two"})
    tasks.complete("part-r-00000")
    assert magic.commit_job(ctx, job, [], 0).committed
    assert at.visible() == {"part-r-00000": b"new", "part-r-00001": b"two"} and at.debris() == []


# --- others -----------------------------------------------------------------------------------------------------------
@each_layout
def test_neighbours_and_other_jobs_are_never_touched(layout: str) -> None:
    """C7: ``dataset10``, a second Hadoop job, a live Holdfast job, an upload of another tool."""
    at = Destination()
    dead_job(at, 1, layout=layout)
    other = dead_job(at, 1, uuid=OTHER, layout=layout)
    neighbour = Destination(home="out put/dataset10/", clock=at.clock, ids=at.ids, store=at.store)
    dead_job(neighbour, 1, uuid="77777777-5a77-4c3d-9c55-0d5c8f7e1a2b", layout=layout)
    ours = TWO_PHASE.setup_job(at.context(), SaveMode.APPEND)
    assert ours is not None
    with TWO_PHASE.setup_task(at.context(), ours, 0) as attempt:
        attempt.open("day=9/" + attempt.file_name(".txt")).write(b"ours")
        commits = [attempt.commit()]
    at.store.create_upload(f"{at.home}tool.bin")
    others = [key for key in at.debris() if UUID not in key]
    (found,) = (one.leftover for one in find_hadoop_jobs(at.context(), abort=True) if one.leftover.job == UUID)
    found.recover()
    assert at.debris() == others and len(others) > 10
    assert other.uuid == OTHER and len(neighbour.visible()) == 1
    assert TWO_PHASE.commit_job(at.context(), ours, commits, 1).committed


def test_a_job_with_an_id_of_ours_is_ours() -> None:
    at = Destination()
    dead_job(at, uuid="20270115080000000-00000000000a")
    assert list(find_hadoop_jobs(at.context())) == []


def test_a_forged_record_does_not_end_an_upload_of_ours() -> None:
    at = Destination()
    ours = TWO_PHASE.setup_job(at.context(), SaveMode.APPEND)
    assert ours is not None
    with TWO_PHASE.setup_task(at.context(), ours, 0) as attempt:
        path = attempt.file_name(".txt")
        attempt.open(path).write(b"ours")
        commits = [attempt.commit()]
    (upload,) = iter_uploads(at.store, "")
    tasks = HadoopTasks(at)
    tasks.commit_task(0, {"stolen": b"x"})
    record = f"{tasks.directory}/task_20261122101112_0007_m_000000.pendingset"
    data = at.store.get(record).decode().replace(f"{at.home}stolen", upload.key)
    at.store.put(record, data.replace(tasks.uploads["stolen"][0], upload.upload_id).encode())
    found = only(at.context(), abort=True)
    assert found.action is RecoveryAction.KEEP and "a file of a Holdfast job" in found.reason
    found.recover()
    assert TWO_PHASE.commit_job(at.context(), ours, commits, 1).committed and at.visible() == {path: b"ours"}


def test_an_id_that_is_a_part_of_anothers_owns_nothing_of_it() -> None:
    at = Destination()
    other = dead_job(at, 1)
    before = [key for key in at.debris() if "__magic" not in key]
    part = HadoopTasks(at, uuid=UUID[:18])
    part.commit_task(0, {"own": b"x"})
    (found,) = (one.leftover for one in find_hadoop_jobs(at.context(), abort=True) if one.leftover.job == UUID[:18])
    assert (found.files, found.uploads) == (0, 1)
    found.recover()
    assert [key for key in at.debris() if "__magic" not in key] == before and other.uuid == UUID


def test_an_upload_of_its_own_that_is_young_keeps_it_alive() -> None:
    """A task that writes for hours puts no record; its upload's name contains the job id."""
    at = Destination()
    dead_job(at, 1)
    at.clock.sleep(QUIET_S + 1)
    at.store.create_upload(at.home + name(7))
    assert recover(at.context(), foreign=ForeignJobPolicy(abort=True)).left_alone == [UUID]


def test_a_clock_that_went_back_keeps_no_job_alive() -> None:
    """Its records are from the future then; 0s means all jobs, whatever the clocks say."""
    at = Destination()
    dead_job(at)
    ctx = at.context().with_environment(clock=SimulatedClock(at.clock.now_s() - 10 * QUIET_S))
    assert recover(ctx, foreign=ForeignJobPolicy(abort=True)).left_alone == [UUID]
    assert recover(ctx, foreign=ForeignJobPolicy(abort=True, older_than_s=0.0)).rolled_back == [UUID]
    assert at.debris() == []


def test_many_jobs_cost_one_listing_of_the_destination() -> None:
    """Hadoop can be configured to leave the directories of finished jobs: there may be thousands."""
    at = Destination()
    for number in range(20):
        dead_job(at, 4, uuid=f"{number:08d}-5a77-4c3d-9c55-0d5c8f7e1a2b")
    calls: Counter[StoreOperation] = Counter()

    def count(call: StoreCall, proceed: Callable[[], Any]) -> Any:
        calls[call.operation] += 1
        return proceed()

    assert len(list(find_hadoop_jobs(at.context(store=InterceptedStore(at.store, count))))) == 20
    assert calls[StoreOperation.LIST] <= 6 and calls[StoreOperation.LIST_UPLOADS] <= 2


# --- crashes ----------------------------------------------------------------------------------------------------------
@each_layout
def test_ending_dies_at_every_call(layout: str) -> None:
    """C9, C10: a repeated recovery has the same result."""
    for nth in range(1, 60):
        for mode in (FaultMode.CRASH_BEFORE, FaultMode.CRASH_AFTER):
            at = Destination()
            dead_job(at, 1, layout=layout)
            try:
                only(at.context(store=_dying(at.store, nth, mode)), abort=True).recover()
                ended = True
            except SimulatedCrash:
                ended = False
            for one in list(find_hadoop_jobs(at.context(), abort=True)):
                one.leftover.recover()
            assert at.visible() == {}, (nth, mode)
            assert at.debris() == [], (nth, mode)
        if ended:
            break
    else:
        pytest.fail("it makes more calls than were tried")


def _dying(store: MultipartStore, nth: int, mode: FaultMode) -> InterceptedStore:
    return InterceptedStore(store, Faulty(Fault(mode, nth=nth)))


def test_a_job_that_goes_on_is_not_ended() -> None:
    at = Destination()
    tasks = dead_job(at)
    found = only(at.context(), abort=True)
    for path in ALL:
        tasks.complete(path)
    found.recover()  # its job commit has finished: none of its files is deleted
    assert at.visible() == ALL
    at = Destination()
    tasks = dead_job(at, 1)
    found = only(at.context(), abort=True)
    at.store.put(at.home + name(9), b"whose?")
    with pytest.raises(ConflictError, match="made progress"):
        found.recover()


def test_uploads_that_do_not_go_away_are_told() -> None:
    at = Destination()
    dead_job(at, 1)
    store = InterceptedStore(at.store, Faulty(Fault(FaultMode.FAIL, StoreOperation.ABORT_UPLOAD, nth=1, times=99)))
    with pytest.raises(UnavailableError):
        only(at.context(store=store), abort=True).recover()


def test_on_a_server_that_does_not_list_uploads_by_directory() -> None:
    """MinIO: the records name the uploads to check."""
    at = Destination()
    inner = at.store
    dead_job(at, 1)
    store = MinioLike(inner)
    found = only(at.context(store=store), abort=True)
    assert found.uploads == 4
    found.recover()
    assert at.visible() == {} and at.debris() == []


def test_a_rename_store_has_none() -> None:
    at = Destination()
    assert list(find_hadoop_jobs(at.context(store=MemoryStore(limits=None, rename=True)))) == []


def test_a_users_file_may_be_named_like_a_record() -> None:
    at = Destination()
    tasks = dead_job(at, 1)
    tasks.write(3, {name(3).replace(".txt", ".pendingset"): b"late"})
    found = only(at.context(), abort=True)
    assert (found.action, found.uploads) == (RecoveryAction.BACK, 5)
    found.recover()
    assert at.visible() == {} and at.debris() == []


@each_layout
def test_an_upload_that_starts_during_the_abort_is_aborted(layout: str) -> None:
    """Its key contains the job, and no record names it yet."""
    at = Destination()
    dead_job(at, layout=layout)
    race = Before(StoreOperation.ABORT_UPLOAD, lambda: at.store.create_upload(at.home + name(9)))
    only(at.context(store=InterceptedStore(at.store, race)), abort=True).recover()
    assert race.fired and at.visible() == {} and at.debris() == []


def test_an_upload_that_no_record_names_is_counted_and_aborted() -> None:
    """Also if it is the first in the listing."""
    at = Destination()
    tasks = HadoopTasks(at)
    tasks.commit_task(0, files_of(0))
    at.store.create_upload(at.home + f"a/{name(0)}")
    found = only(at.context(), abort=True)
    assert found.uploads == 3
    found.recover()
    assert at.visible() == {} and at.debris() == []


@pytest.mark.parametrize("lost", [False, True])
def test_a_marker_of_another_job_says_nothing_about_lost_files(lost: bool) -> None:
    """Some files are visible, none is pending: only if none is lost can a later job's _SUCCESS stand for this one."""
    at = Destination()
    tasks = HadoopTasks(at)
    paths = [name(0), name(0, 1)]
    tasks.commit_task(0, {path: path.encode() for path in paths})
    tasks.complete(paths[0])
    if lost:
        at.store.abort_upload(at.home + paths[1], tasks.uploads[paths[1]][0])  # by a lifecycle rule
    else:
        tasks.complete(paths[1])
    at.store.put(f"{at.home}_SUCCESS", b"")
    (found,) = find_hadoop_jobs(at.context())
    assert found.is_over is not lost
