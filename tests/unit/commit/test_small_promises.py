"""Check returned counts, records that vanish while they are read, and recoveries that end what they report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, Place, SaveMode, codec, verify
from holdfast.commit.context import StagingPlaces
from holdfast.commit.destination import delete_visible_files
from holdfast.commit.ids import AttemptId, FileOwner, JobId, file_name
from holdfast.commit.intents import find_announcers, is_intent_record
from holdfast.commit.layout import attempt_file_path, intents_path, manifest_path
from holdfast.commit.leftovers import FOREIGN_QUIET_S as QUIET_S
from holdfast.commit.leftovers import ForeignJobPolicy
from holdfast.commit.records import FileEntry
from holdfast.commit.recovery import recover
from holdfast.commit.success_file import read_success_file
from holdfast.commit.two_phase import records as two_phase_records
from holdfast.commit.two_phase.pending_uploads import UploadRecords, is_manifest, iter_reported_uploads
from holdfast.commit.two_phase.publication import RENAMES
from holdfast.commit.two_phase.records import TaskManifest
from holdfast.errors import HoldfastError, NotFoundError, OutcomeUnknownError, UnavailableError
from holdfast.stores.base import UploadInfo
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.memory import MemoryStore
from holdfast.stores.probe import UploadListingMode
from tests.interceptors import SimulatedCrash, crash_at
from tests.simulation.world import HOME, World, run_job, run_tasks, start
from tests.unit.commit.hadoop.dead_jobs.dead_jobs import UUID, Destination, HadoopTasks, name

T = TypeVar("T")

JOB = JobId("20261121093853123-a1b2c3d4e5f6")
OWNER = FileOwner(JOB, 3, AttemptId("0123456789ab"))


class Vanishing(InterceptedStore):
    """A store whose objects are listed and then missing when they are read."""

    def __init__(self, store: MemoryStore, is_gone: Callable[[str], bool]) -> None:
        def look(call: StoreCall, proceed: Callable[[], T]) -> T:
            if call.operation is StoreOperation.GET and is_gone(call.key):
                raise NotFoundError("no such object", key=call.key)
            return proceed()

        super().__init__(store, look)


def test_a_record_of_intents_that_is_swept_meanwhile_announces_nothing() -> None:
    world = World("upload")
    ctx = world.context()
    for task in (3, 4):
        owner = FileOwner(JOB, task, OWNER.attempt)
        key = ctx.key(intents_path(JOB, task, OWNER.attempt, 0))
        ctx.store.put(key, codec.encode_intents(owner, [f"file {task}"]))
    uploads = [UploadInfo(key=ctx.key(f"file {task}"), upload_id="u") for task in (3, 4)]
    late = world.context(store=Vanishing(world.store, lambda key: is_intent_record(key) and "/attempts/00003-" in key))
    assert find_announcers(ctx, uploads) == {ctx.key(f"file {task}"): {JOB} for task in (3, 4)}
    assert find_announcers(late, uploads) == {ctx.key("file 4"): {JOB}}


def test_a_manifest_that_is_swept_meanwhile_reports_nothing() -> None:
    world = World("upload")
    ctx = world.context()
    path = file_name(OWNER, 0, ".csv")
    file = FileEntry(path=path, size_bytes=1, upload_id="u", parts=(("e", 1),))
    data = two_phase_records.encode_manifest(TaskManifest(job=JOB, task=3, attempt=OWNER.attempt, files=(file,)))
    key = ctx.key(manifest_path(JOB, 3, OWNER.attempt))
    ctx.store.put(key, data)
    assert list(iter_reported_uploads(ctx, {key: 5.0})) == [UploadInfo(ctx.key(path), "u", 5.0)]
    assert list(iter_reported_uploads(world.context(store=Vanishing(world.store, is_manifest)), {key: 5.0})) == []


def test_how_many_files_were_deleted_is_told() -> None:
    world = World("rename")
    ctx = world.context()
    for number in range(3):
        ctx.store.put(ctx.key(f"day={number % 2}/{number}"), b"x")
    ctx.store.put(ctx.key("_hidden"), b"x")
    assert delete_visible_files(ctx, lambda path: path.startswith("day=0/")) == 2
    assert delete_visible_files(ctx) == 1
    assert delete_visible_files(ctx) == 0
    assert ctx.store.get(ctx.key("_hidden")) == b"x"


def test_a_store_without_uploads_has_none_to_sweep() -> None:
    ctx = World("rename").context()
    assert RENAMES.sweep(ctx, lambda job, key: True, UploadRecords(listing=UploadListingMode.NOT_AT_ALL)) == (
        0,
        False,
    )


def test_a_dead_job_of_hadoop_is_ended_and_not_only_reported() -> None:
    at = Destination()
    HadoopTasks(at).commit_task(0, {name(0, number, UUID): b"x" for number in range(2)})
    at.clock.sleep(QUIET_S + 1)
    assert recover(at.context(), foreign=ForeignJobPolicy(abort=True)).rolled_back == [UUID]
    assert not any(at.debris())


def _stuck(kind: str) -> CommitContext:
    """Leave a job whose driver died right after its decision, to commit or to abort."""
    world = World("upload")
    job = start(world.context(), SaveMode.APPEND)
    messages = run_tasks(world.context(), job, "new")
    for nth in range(1, 60):
        ctx = world.context(crash_at(nth, after=True))
        try:
            if kind == "commit":
                TWO_PHASE.commit_job(ctx, job, messages, 2)
            else:
                TWO_PHASE.abort_job(ctx, job)
        except SimulatedCrash:
            if verify(world.context()).problems and "ted but not finished" in verify(world.context()).problems[0]:
                return world.context()
    raise AssertionError("no driver died behind its decision")


@pytest.mark.parametrize(("kind", "waits"), [("commit", True), ("abort", False)])
def test_only_a_committed_job_has_files_that_wait(kind: str, waits: bool) -> None:
    (problem,) = [one for one in verify(_stuck(kind)).problems if "not finished" in one]
    assert ("have been pending" in problem) is waits


def test_attempt_files_lie_in_their_attempts_folder() -> None:
    """With its slash: only `attempts` starts with this."""
    assert "/attempts/00003-0123456789ab" in attempt_file_path(JOB, 3, OWNER.attempt, "a")


def test_a_context_closes_every_store_that_it_has() -> None:
    closed: list[str] = []

    class Closing(MemoryStore):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def close(self) -> None:
            closed.append(self.name)

    places = {name: Place(store=Closing(name), prefix="", url=f"memory://{name}") for name in ("scratch", "shared")}
    reports = Place(store=Closing("reports"), prefix="", url="memory://reports")
    CommitContext(
        store=Closing("own"), prefix="", url="memory://own", reports=reports, staging=StagingPlaces(**places)
    ).close()
    assert sorted(closed) == ["own", "reports", "scratch", "shared"]


@pytest.mark.parametrize("data", [b"not json", b"", b"[]"])
def test_a_success_file_that_nobody_can_read_is_replaced(data: bytes) -> None:
    world = World("upload")
    world.store.put(f"{HOME}_SUCCESS", data)
    outcome = run_job(world.context(), "new")
    assert outcome.committed and outcome.finished
    report = read_success_file(world.context())
    assert report is not None and report["jobId"] == outcome.job


def test_verify_tells_of_every_dead_job_of_hadoop() -> None:
    at = Destination()
    HadoopTasks(at).commit_task(0, {name(0, 0, UUID): b"x"})
    at.clock.sleep(QUIET_S + 1)
    assert any(UUID in one for one in verify(at.context()).problems)


@pytest.mark.parametrize(
    ("first", "said"), [(OutcomeUnknownError, OutcomeUnknownError), (UnavailableError, UnavailableError)]
)
def test_a_record_that_may_be_there_is_not_called_unavailable(
    first: type[HoldfastError], said: type[HoldfastError]
) -> None:
    """A caller that receives UnavailableError assumes that nothing happened."""
    errors = iter([first("no answer")])

    def fail(call: StoreCall, proceed: Callable[[], T]) -> T:
        raise next(errors, UnavailableError("try later"))

    world = World("upload")
    ctx = world.context(store=InterceptedStore(world.store, fail))
    with pytest.raises(said):
        ctx.records.create("_holdfast/log/x", b"{}")
