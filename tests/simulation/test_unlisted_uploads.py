"""Test servers that do not list pending uploads: a job finds its own by its records (C9, C7, C11)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, SaveMode, recover, verify
from holdfast.commit.intents import QUIET_S, is_intent_record
from holdfast.commit.records import TaskCommit
from holdfast.commit.two_phase.pending_uploads import NOTES, find_uploads
from holdfast.commit.upload_owners import find_pending_uploads
from holdfast.errors import HoldfastError, NotFoundError
from holdfast.stores.base import ObjectStore, UploadPage, iter_objects, iter_uploads
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.probe import UploadListingMode
from tests.interceptors import Faulty, Recorder, SimulatedCrash, crash_at
from tests.servers.minio_like import MinioLike
from tests.simulation.world import HOME, TASKS, World, expected, run_job, run_task, run_tasks, start

T = TypeVar("T")
_each = pytest.mark.parametrize("publication", ["upload", "transaction"])


class Unlisted(InterceptedStore):
    """A server that lists no pending upload at all."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner, lambda _call, proceed: proceed())

    def list_uploads_page(self, prefix: str, marker: tuple[str, str] | None = None) -> UploadPage:
        return UploadPage([], None)


def minio(world: World) -> CommitContext:
    return world.context(store=MinioLike(world.store))


def announcements(world: World) -> list[str]:
    return [info.key for info in iter_objects(world.store, HOME) if is_intent_record(info.key)]


def settle(world: World) -> None:
    """Let every process that might be alive become idle, and run recovery."""
    world.clock.sleep(QUIET_S + 1)
    recover(minio(world))
    assert world.pending() == [], "C9: no pending upload remains"
    assert world.leftovers() == []


def test_every_upload_is_announced_where_the_server_does_not_list_them() -> None:
    world = World("upload")
    job = start(minio(world))
    assert job.announced and world.pending() == [], "the probe leaves nothing"
    large = minio(world).with_settings(part_size_bytes=100)
    run_tasks(large, job, "new")
    assert len(announcements(world)) == TASKS, "one record an attempt whose files are of one part"
    run_task(minio(world), job, 0, "new")
    assert len(announcements(world)) == TASKS + 2, "or one a file of more parts"
    assert start(world.context()).announced is False, "and nowhere else: there a listing does it"


def crashes(publication: str, start_with: Callable[[World], Callable[[CommitContext], object]]) -> Iterator[World]:
    """Yield each world in which a process died at one of its calls, before and after the effect."""
    for after in (False, True):
        for nth in itertools.count(1):
            world = World(publication)
            run = start_with(world)
            dying = world.context(store=MinioLike(InterceptedStore(world.store, Faulty(crash_at(nth, after=after)))))
            try:
                run(dying)
            except SimulatedCrash:
                yield world
            else:
                break


@_each
def test_an_attempt_that_dies_at_any_call_leaves_nothing_behind(publication: str) -> None:
    """The keys that it announced are looked up one by one, because its manifest was never written."""

    def prepare(world: World) -> Callable[[CommitContext], object]:
        job = start(minio(world))
        return lambda ctx: run_task(ctx, job, 0, "dead")

    for world in crashes(publication, prepare):
        settle(world)
        assert world.contents() == []


@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.OVERWRITE])
@_each
def test_a_driver_that_dies_at_any_call_leaves_all_or_nothing(publication: str, mode: SaveMode) -> None:
    def prepare(world: World) -> Callable[[CommitContext], object]:
        run_job(minio(world), "old")
        job = start(minio(world), mode)
        messages = run_tasks(minio(world), job, "new")
        return lambda ctx: TWO_PHASE.commit_job(ctx, job, messages, TASKS)

    wanted = expected("new") if mode is SaveMode.OVERWRITE else sorted(expected("old") + expected("new"))
    for world in crashes(publication, prepare):
        settle(world)
        assert world.contents() in (expected("old"), wanted)


@_each
def test_an_aborted_job_aborts_what_it_reported(publication: str) -> None:
    """Defect: `recover` reported that nothing of the job was left while all of its uploads were pending."""
    world = World(publication)
    dead = start(minio(world))
    run_tasks(minio(world), dead, "dead")
    assert len(world.pending()) == 4
    assert recover(minio(world)).rolled_back == [dead.job]
    assert world.pending() == [] and world.leftovers() == []


@_each
def test_a_losing_attempt_is_cleaned_up_with_its_job(publication: str) -> None:
    world = World(publication)
    ctx = minio(world)
    job = start(ctx)
    run_task(ctx, job, 0, "loser")
    assert TWO_PHASE.commit_job(ctx, job, [run_task(ctx, job, 0, "winner")], 1).finished
    assert world.contents() == expected("winner", 1) and world.pending() == [] and world.leftovers() == []


@_each
def test_chosen_names_of_a_live_job_are_spared(publication: str) -> None:
    """C7: two jobs have announced one key; the cleanup of the first spares the other's upload."""

    def write(ctx: CommitContext, name: bytes) -> tuple[TaskCommit, object]:
        job = start(ctx, SaveMode.OVERWRITE)
        with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
            attempt.open("a").write(name)
            return attempt.commit(), job

    world = World(publication)
    commit, live = write(minio(world), b"live")
    _commit, dead = write(minio(world), b"dead")
    TWO_PHASE.abort_job(minio(world), dead)  # type: ignore[arg-type]  # the job
    TWO_PHASE.commit_job(minio(world), live, [commit], 1)  # type: ignore[arg-type]  # the job
    assert world.listing() == {"a": b"live"}
    settle(world)


def test_an_upload_that_only_an_announcement_names_is_in_the_list() -> None:
    world = World("upload")
    job = start(minio(world))
    with TWO_PHASE.setup_task(minio(world), job, 0) as attempt:
        attempt.open("no manifest names it").write(b"0123456789")
        assert [upload.key for upload in find_uploads(minio(world))[0]] == [f"{HOME}no manifest names it"]
    assert find_uploads(minio(world))[0] == []


def test_the_list_of_pending_uploads_says_what_it_lacks() -> None:
    world = World("upload")
    world.store.create_upload(f"{HOME}of another tool")
    job = start(minio(world))
    run_tasks(minio(world), job, "new")
    uploads, note = find_uploads(minio(world))
    assert note == NOTES[UploadListingMode.BY_KEY] and "does not list" in note
    assert sorted(upload.key for upload in uploads) == [key for key in world.pending() if "part-" in key]
    uploads, note = find_uploads(world.context(store=Unlisted(MinioLike(world.store))))
    assert (len(uploads), note) == (4, NOTES[UploadListingMode.NOT_AT_ALL])
    start(world.context())  # a later job, of a driver that found a complete listing, so it announces nothing
    assert find_uploads(world.context(store=Unlisted(MinioLike(world.store))))[1] == NOTES[UploadListingMode.NOT_AT_ALL]
    uploads, note = find_uploads(world.context())
    assert (len(uploads), note) == (5, "")
    report = verify(minio(world))
    assert report.pending_uploads == 4 and any("does not list" in note for note in report.notes)


def test_the_command_line_says_what_it_cannot_see() -> None:
    """Defect: `uploads list` showed 0 while 13 were pending."""
    world = World("upload")
    assert find_pending_uploads(world.context()) == ([], "")
    found, note = find_pending_uploads(minio(world))
    assert found == [] and "does not list" in note
    job = start(minio(world))
    run_tasks(minio(world), job, "new")
    found, note = find_pending_uploads(minio(world))
    assert [one.state for one in found] == ["unfinished"] * 4 and "does not list" in note
    assert recover(minio(world)).notes == [note]


@_each
def test_cleanup_uses_manifests_where_nothing_is_listed(publication: str) -> None:
    world = World(publication)
    ctx = world.context(store=Unlisted(MinioLike(world.store)))
    job = start(ctx)
    run_tasks(ctx, job, "dead")
    TWO_PHASE.abort_job(ctx, job)
    assert world.pending() == []


# --- a stale listing --------------------------------------------------------------------------------------------------
def test_a_listing_that_lags_does_not_keep_what_was_reported() -> None:
    """The job's own records are used first; the listing only confirms."""
    world = World("upload")
    job = start(world.context())
    run_tasks(world.context(), job, "dead")
    TWO_PHASE.abort_job(world.context(store=Unlisted(world.store)), job)
    assert world.pending() == []


# --- uploads that expire ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("gone", range(2 * TASKS))
@pytest.mark.parametrize("listed", [True, False])
def test_uploads_that_expired_are_noticed_before_the_decision(listed: bool, gone: int) -> None:
    """C11: a job runs for a day on a server that discards idle uploads. Defect: it was decided and then damaged."""
    world = World("upload")
    run_job(world.context(), "old")
    store = MinioLike(world.store)
    ctx = world.context() if listed else world.context(store=store)
    job = start(ctx, SaveMode.OVERWRITE)
    messages = run_tasks(ctx, job, "new")
    world.clock.sleep(24 * 3600.0)
    expired = [upload for upload in iter_uploads(world.store, HOME) if job.job in upload.key][gone]
    world.store.abort_upload(expired.key, expired.upload_id)
    with pytest.raises(NotFoundError, match="uploads of the job have expired"):
        TWO_PHASE.commit_job(ctx, job, messages, TASKS)
    assert not TWO_PHASE.abort_job(ctx, job).committed
    assert world.contents() == expected("old") and world.pending() == []


def test_a_long_job_whose_uploads_are_pending_is_decided() -> None:
    world = World("upload")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")
    world.clock.sleep(24 * 3600.0)
    assert TWO_PHASE.commit_job(world.context(), job, messages, TASKS).finished


def test_a_warning_names_a_decision_that_is_pending() -> None:
    """The warning comes before the uploads expire: a decided job's files remain uploads until the job is finished."""
    world = World("upload")
    ctx = world.context()
    job = start(ctx)
    messages = run_tasks(ctx, job, "new")
    with pytest.raises(SimulatedCrash):
        TWO_PHASE.commit_job(dying_at(world, StoreOperation.COMPLETE_UPLOAD), job, messages, TASKS)
    world.clock.sleep(20 * 3600.0)
    [problem] = [sentence for sentence in verify(ctx).problems if "not finished" in sentence]
    assert "20 h" in problem and "24 hours" in problem and "holdfast recover" in problem


def dying_at(world: World, operation: StoreOperation, ending: str = "") -> CommitContext:
    """Return the context of a process that dies at the first matching call."""

    def die(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is operation and call.key.endswith(ending):
            raise SimulatedCrash
        return proceed()

    return world.context(store=InterceptedStore(world.store, die))


# --- data of other jobs -----------------------------------------------------------------------------------------------
def test_a_job_does_not_read_the_folders_of_others() -> None:
    """After a decision, cleanup reads only the job's own records: another's folder costs one request, however full."""
    world = World("upload")
    other = start(world.context())
    for number in range(2500):
        world.store.put(f"{HOME}_holdfast/jobs/{other.job}/attempts/{number:05d}-x.jsonl", b"")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")
    recorded = Recorder()
    TWO_PHASE.commit_job(world.context(store=InterceptedStore(world.store, recorded)), job, messages, TASKS)
    listings = [
        call
        for call in recorded.calls
        if call.operation is StoreOperation.LIST and call.key == f"{HOME}_holdfast/jobs/"
    ]
    assert len(listings) == 2, "a page that ends in the other's folder, and the one behind it"
    assert world.leftovers() != []


def test_pending_uploads_of_others_are_inspected_up_to_a_limit() -> None:
    world = World("upload")
    theirs = [world.store.create_upload(f"{HOME}of another tool {number:06d}") for number in range(12_000)]
    recorded = Recorder()
    run_job(world.context(store=InterceptedStore(world.store, recorded)), "new")
    assert recorded.counts()[StoreOperation.LIST_UPLOADS] <= 10
    assert len(world.pending()) == len(theirs)


def test_recovery_lists_published_files_once_before_it_completes_uploads() -> None:
    """Defect: a driver died when 40 of 40 files were visible, and each cost a completion and a lookup."""
    world = World("upload")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new", 10)
    recorded = Recorder()
    with pytest.raises(SimulatedCrash):
        TWO_PHASE.commit_job(dying_at(world, StoreOperation.PUT, ".visible"), job, messages, 10)
    assert recover(world.context(store=InterceptedStore(world.store, recorded))).rolled_forward == [job.job]
    counts = recorded.counts()
    assert counts.get(StoreOperation.COMPLETE_UPLOAD, 0) == 0 and counts.get(StoreOperation.HEAD, 0) <= 4
    assert verify(world.context()).verified and world.leftovers() == []


def test_recovery_does_not_take_a_file_of_another_size_for_the_jobs() -> None:
    world = World("upload")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")
    with pytest.raises(SimulatedCrash):
        TWO_PHASE.commit_job(dying_at(world, StoreOperation.COMPLETE_UPLOAD), job, messages, TASKS)
    first = next(iter_uploads(world.store, HOME))
    world.store.put(first.key, b"?")
    world.store.abort_upload(first.key, first.upload_id)
    with pytest.raises(HoldfastError, match="lost"):
        TWO_PHASE.abort_job(world.context(), job)
