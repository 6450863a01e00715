"""Announce uploads to chosen names: its cost, its records, and what cleanup aborts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, TaskCommit, read_history, recover, verify
from holdfast.commit.codec import decode_intents, encode_intents
from holdfast.commit.ids import AttemptId, FileOwner, JobId
from holdfast.commit.intents import QUIET_S, find_announcers, is_intent_record
from holdfast.commit.layout import intents_path, manifest_path
from holdfast.commit.records import JobRecord
from holdfast.errors import AccessDeniedError, CorruptDataError, OutcomeUnknownError, UnavailableError
from holdfast.runtime import Environment, ThreadRunner
from holdfast.stores.base import iter_uploads
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from tests.interceptors import FOR_EVER, Fault, FaultMode, Recorder
from tests.simulation.world import HOME, World, run_job, run_tasks, start

OWNER = FileOwner(JobId("20261121093853123-a1b2c3d4e5f6"), 3, AttemptId("0123456789ab"))
KEY = intents_path(OWNER.job, OWNER.task, OWNER.attempt, 0)
PATHS = ("images/ä b.jpg", 'odd "name"\n\x85', "x")


def written(ctx: CommitContext, job: JobRecord, count: int, size: int = 3, task: int = 0) -> TaskCommit:
    with TWO_PHASE.setup_task(ctx, job, task) as attempt:
        for number in range(count):
            with_sink = attempt.open(f"f/{task}-{number}")
            with_sink.write(b"x" * size)
            with_sink.close()
        return attempt.commit()


def give_up(ctx: CommitContext, job: JobRecord) -> None:
    """End an attempt without commit, as after an error in the caller's code."""
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open("large").write(b"more than one part")
        attempt.open("small").close()


def records(world: World) -> list[str]:
    return [key for key in world.leftovers() if is_intent_record(key)]


# --- cost -------------------------------------------------------------------------------------------------------------
def test_small_files_are_announced_by_the_batch() -> None:
    """A thousand small files cost one more request for every 64 of them."""
    world, recorded = World("upload"), Recorder()
    job = start(world.context())
    commit = written(world.context(store=InterceptedStore(world.store, recorded)), job, 1000)
    puts = -(-1000 // 64) + 1
    assert recorded.counts() == {
        StoreOperation.PUT: puts,
        StoreOperation.CREATE_UPLOAD: 1000,
        StoreOperation.UPLOAD_PART: 1000,
    }
    recorded.clear()
    TWO_PHASE.commit_job(world.context(store=InterceptedStore(world.store, recorded)), job, [commit], 1)
    counts = recorded.counts()
    assert counts.pop(StoreOperation.COMPLETE_UPLOAD) == 1000
    assert counts[StoreOperation.GET] == 1, "the manifest; what was announced is read only if an upload is left"
    assert sum(counts.values()) <= 20, "of them five look for destinations above and below"
    assert len(world.listing()) == 1000 and world.pending() == [] and world.leftovers() == []


def test_a_large_file_announces_what_waits_along_with_itself() -> None:
    world, recorded = World("upload"), Recorder()
    with TWO_PHASE.setup_task(
        world.context(store=InterceptedStore(world.store, recorded)), start(world.context()), 0
    ) as attempt:
        attempt.open("small").close()
        large = attempt.open("large")
        assert recorded.counts() == {}
        large.write(b"more than one part")
        attempt.open("small too").write(b"x")
        attempt.commit()
    assert recorded.counts()[StoreOperation.PUT] == 3, "two records and the manifest"
    named = [decode_intents(key, world.store.get(key))[1] for key in records(world)]
    assert named == [("small", "large"), ("small too",)]


def test_waiting_files_hold_a_quarter_of_the_budget() -> None:
    world, recorded = World("upload"), Recorder()
    ctx = world.context(store=InterceptedStore(world.store, recorded)).with_settings(
        part_size_bytes=100, part_buffer_bytes=400
    )
    written(ctx, start(world.context()), 10, size=30)
    assert recorded.counts()[StoreOperation.PUT] == 3 + 1, "four files are a quarter"


def test_names_of_ours_need_no_announcement() -> None:
    world, recorded = World("upload"), Recorder()
    run_job(world.context(store=InterceptedStore(world.store, recorded)), "new")
    assert not any(is_intent_record(call.key) for call in recorded.calls)


def test_in_threads() -> None:
    world = World("upload")
    ctx = world.context()
    ctx = CommitContext(
        store=ctx.store,
        prefix=ctx.prefix,
        url=ctx.url,
        settings=ctx.settings,
        environment=Environment(runner=ThreadRunner(8)),
    )
    job = start(ctx)
    TWO_PHASE.commit_job(ctx, job, [written(ctx, job, 300, size=9)], 1)
    assert len(world.listing()) == 300 and world.pending() == [] and world.leftovers() == []


# --- failed attempts --------------------------------------------------------------------------------------------------
def test_an_attempt_that_gives_up_in_order_takes_its_announcements_back() -> None:
    world = World("upload")
    job = start(world.context())
    give_up(world.context(), job)
    assert world.pending() == [] and records(world) == []


@pytest.mark.parametrize("operation", [StoreOperation.CREATE_UPLOAD, StoreOperation.UPLOAD_PART])
def test_an_attempt_in_doubt_leaves_them_for_the_sweep(operation: StoreOperation) -> None:
    """C9: the store may have started an upload whose id was lost with the reply."""
    world = World("upload")
    job = start(world.context())
    with pytest.raises(OutcomeUnknownError):
        written(world.context(Fault(FaultMode.LOST_REPLY, operation)), job, 1)
    assert len(records(world)) == 1
    TWO_PHASE.abort_job(world.context(), job)
    assert world.pending() == []
    assert len(records(world)) == 1, "its attempt has not reported: it might be alive"
    world.clock.sleep(QUIET_S)
    run_job(world.context(), "next")
    assert world.leftovers() == []


def test_a_report_of_a_living_job_is_not_taken_for_an_announcement() -> None:
    """It cannot be read as one, and an unreadable record spares everything that it might name."""
    world = World("upload")
    run_tasks(world.context(), start(world.context()), "alive", 1)
    living = world.pending()
    job = start(world.context())
    with pytest.raises(OutcomeUnknownError):
        written(world.context(Fault(FaultMode.LOST_REPLY, StoreOperation.CREATE_UPLOAD)), job, 1)
    assert len(world.pending()) == len(living) + 1
    TWO_PHASE.abort_job(world.context(), job)
    assert world.pending() == living


def test_one_that_cannot_drop_its_uploads_leaves_them_too() -> None:
    world = World("upload")
    job = start(world.context())
    fault = Fault(FaultMode.FAIL, StoreOperation.ABORT_UPLOAD, times=FOR_EVER)
    give_up(world.context(fault), job)
    assert len(world.pending()) == len(records(world)) == 1
    TWO_PHASE.abort_job(world.context(), job)
    assert world.pending() == []


def test_an_announcement_that_fails_starts_nothing() -> None:
    world = World("upload")
    fault = Fault(FaultMode.FAIL, StoreOperation.PUT, key="*intents*", times=FOR_EVER)
    with pytest.raises(UnavailableError):
        written(world.context(fault), start(world.context()), 3)
    assert world.pending() == []


def test_a_dropped_file_is_no_part_of_the_attempt() -> None:
    for publication in ("upload", "rename"):
        world = World(publication)
        ctx = world.context()
        job = start(ctx)
        with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
            attempt.open("kept").write(b"1")
            attempt.open("dropped").write(b"more than one part")
            attempt.drop("dropped")
            attempt.open("again").write(b"2")
            attempt.drop("again")
            attempt.open("again").write(b"3")
            TWO_PHASE.commit_job(ctx, job, [attempt.commit()], 1)
        assert world.listing() == {"kept": b"1", "again": b"3"}
        assert world.pending() == [] and world.leftovers() == []


# --- records ----------------------------------------------------------------------------------------------------------
def test_a_destination_whose_name_has_a_line_break_has_records_too() -> None:
    assert is_intent_record(f"a\nb/{KEY}")


def test_round_trip() -> None:
    assert decode_intents(f"out put/{KEY}", encode_intents(OWNER, PATHS)) == (OWNER, PATHS)
    assert is_intent_record(KEY) and not is_intent_record(manifest_path(OWNER.job, OWNER.task, OWNER.attempt))


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "a/../x",
        "/x",
        "_holdfast/log/x",
        ".x",
        "a//b",
        "",
        "a\0",
        "part-00000-" + OWNER.job + "-0123456789ab-00000",
    ],
)
def test_a_hostile_path_is_refused(path: str) -> None:
    """C7: no record may cause an abort outside the destination, or of an upload whose key names its job."""
    with pytest.raises(CorruptDataError, match="its bytes are kept"):
        decode_intents(KEY, encode_intents(OWNER, [path]))


@pytest.mark.parametrize(
    ("name", "value"),
    [("format", "holdfast-intents/2"), ("job", "x"), ("task", 4), ("attempt", ""), ("attempt", "f" * 12), ("files", 2)],
)
def test_a_wrong_header_is_refused(name: str, value: object) -> None:
    header, *lines = encode_intents(OWNER, PATHS).splitlines()
    data = b"\n".join([json.dumps(json.loads(header) | {name: value}).encode(), *lines])
    with pytest.raises(CorruptDataError):
        decode_intents(KEY, data)


@pytest.mark.parametrize("data", [b"", b"null", b"{}", b"\xff"])
def test_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptDataError):
        decode_intents(KEY, data)


def test_in_another_place_it_is_refused() -> None:
    data = encode_intents(OWNER, PATHS)
    for key in (KEY.replace("intents-0", "intents-x"), KEY.replace("00003", "00004"), "x.jsonl"):
        with pytest.raises(CorruptDataError):
            decode_intents(key, data)


def test_a_damaged_record_spares_what_it_might_name_and_stays(caplog: pytest.LogCaptureFixture) -> None:
    """Only if an upload is left that it might explain. Otherwise a record of a dead job would block every commit."""
    world = World("upload")
    job = start(world.context())
    world.store.create_upload(f"{HOME}f/0-0", {})
    world.store.put(HOME + intents_path(job.job, 0, OWNER.attempt, 0), b"scribble")
    assert TWO_PHASE.abort_job(world.context(), job).finished
    assert "report them, or restore" in caplog.text
    assert len(records(world)) == 1 and world.pending() == [f"{HOME}f/0-0"]
    assert run_job(world.context(), "next").finished and recover(world.context()).clean
    assert verify(world.context()).verified


def test_recovery_counts_attempts_that_reported() -> None:
    """Intent records are no manifests: `holdfast recover` and `history` show how many attempts have reported."""
    world = World("upload")
    job = start(world.context())
    written(world.context(), job, 70)
    assert [found.manifests for found in read_history(world.context()).open_jobs] == [1]
    assert recover(world.context(), older_than_s=10.0).uploads_aborted == 0
    assert len(world.pending()) == 70
    recover(world.context())
    assert world.pending() == [] and world.leftovers() == []


T = TypeVar("T")


def denying(world: World, folder: str) -> CommitContext:
    """Return a context whose credentials may not list the job folders of one destination."""

    def deny(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.LIST and call.key == f"{folder}_holdfast/jobs/":
            raise AccessDeniedError("the policy forbids it", key=call.key)
        return proceed()

    return world.context(store=InterceptedStore(world.store, deny))


def test_announcements_that_may_not_be_listed_are_not_taken_for_none() -> None:
    """C7: only above the destination does a refusal say that no job writes here."""
    world = World("upload")
    job = start(world.context())
    TWO_PHASE.setup_task(world.context(), job, 0).open("chosen").write(b"0123456789")
    uploads = list(iter_uploads(world.store, ""))
    for folder in ("", "out put/"):
        assert find_announcers(denying(world, folder), uploads) == {f"{HOME}chosen": {job.job}}
    with pytest.raises(AccessDeniedError):
        find_announcers(denying(world, HOME), uploads)
