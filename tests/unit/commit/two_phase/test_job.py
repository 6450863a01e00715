"""Check the driver's side: what is refused, when, and that nothing is written then."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pickle
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, SaveMode, get_committer, read_history, recover, verify
from holdfast.commit.codec import sha256_hex
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.commit.two_phase.records import decode_manifest, encode_manifest
from holdfast.errors import (
    AccessDeniedError,
    ConflictError,
    CorruptDataError,
    DestinationExistsError,
    FencedError,
    InvalidRequestError,
    UnsupportedError,
)
from holdfast.stores.base import Overwrite, Support, iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.interceptors import Fault, FaultMode, Recorder, SimulatedCrash, crash_at
from tests.simulation.world import HOME, PUBLICATIONS, TASKS, World, expected, run_job, run_task, run_tasks, start


def everything(world: World) -> dict[str, bytes]:
    return {info.key: world.store.get(info.key) for info in iter_objects(world.store, "")}


@pytest.mark.parametrize(
    "pick",
    [lambda m: m[:1], lambda m: [m[0], None], lambda m: [m[0], m[0]], lambda m: [], lambda m: [*m, m[0]]],
    ids=["missing", "none", "twice", "no messages", "one too many"],
)
def test_each_task_reports_exactly_once(pick) -> None:  # type: ignore[no-untyped-def]  # a lambda of the table
    """Fault 20, C1: a missing or duplicate message is refused and nothing is decided."""
    world = World("upload")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")
    with pytest.raises(InvalidRequestError, match="not every task reported exactly once"):
        TWO_PHASE.commit_job(world.context(), job, pick(messages), TASKS)
    assert read_log(world.context()).head == 0 and world.listing() == {}


def test_two_files_with_one_target_are_refused() -> None:
    """Fault 19: before the decision."""
    world = World("rename")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")
    first = messages[0]
    data = first and first.manifest_data()
    assert first is not None and data is not None
    manifest = decode_manifest(first.ref, data)
    doubled = encode_manifest(dataclasses.replace(manifest, files=manifest.files + manifest.files[:1]))
    totals = dataclasses.replace(first.ref.totals, files=3)
    ref = dataclasses.replace(first.ref, sha256=sha256_hex(doubled), totals=totals)
    twice = dataclasses.replace(first, ref=ref, inline=zlib.compress(doubled))
    with pytest.raises(InvalidRequestError, match="same target"):
        TWO_PHASE.commit_job(world.context(), job, [twice, messages[1]], TASKS)
    assert read_log(world.context()).head == 0


def test_message_of_another_job_is_refused() -> None:
    world = World("upload")
    job, other = start(world.context()), start(world.context())
    with pytest.raises(InvalidRequestError, match="another job"):
        TWO_PHASE.commit_job(world.context(), job, [run_task(world.context(), other, 0, "x")], 1)


@pytest.mark.parametrize("mode", [SaveMode.FAIL, SaveMode.IGNORE])
def test_fail_and_ignore_write_nothing(mode: SaveMode) -> None:
    world = World("upload")
    run_job(world.context(), "old")
    before = everything(world)
    if mode is SaveMode.FAIL:
        with pytest.raises(DestinationExistsError, match="append or overwrite"):
            TWO_PHASE.setup_job(world.context(), mode, {})
    else:
        assert TWO_PHASE.setup_job(world.context(), mode, {}) is None
    assert everything(world) == before


def test_destination_that_is_a_file() -> None:
    world = World("upload")
    world.store.put(HOME.rstrip("/"), b"a file")
    before = everything(world)
    with pytest.raises(InvalidRequestError, match="is a file"):
        start(world.context())
    assert everything(world) == before


class Ignoring:
    """A store that accepts conditional writes and ignores the condition, as some servers do (facts: conformance)."""

    def __call__(self, call: StoreCall, proceed):  # type: ignore[no-untyped-def]  # an interceptor
        return proceed()


class IgnoringStore(InterceptedStore):
    @property
    def capabilities(self):  # type: ignore[no-untyped-def]  # as the wrapped store's
        return dataclasses.replace(super().capabilities, conditional_put=Support.UNKNOWN)

    def put(self, key, data, mode=Overwrite(), metadata=None):  # type: ignore[no-untyped-def]  # as the wrapped store's
        return super().put(key, data, Overwrite(), metadata)


class RefusingStore(IgnoringStore):
    def put(self, key, data, mode=Overwrite(), metadata=None):  # type: ignore[no-untyped-def]  # as the wrapped store's
        if mode != Overwrite():
            raise UnsupportedError("501")
        return super().put(key, data, mode, metadata)


@pytest.mark.parametrize("kind", [IgnoringStore, RefusingStore])
def test_store_without_conditional_writes(kind: type[IgnoringStore]) -> None:
    """Refused by default with nothing left behind; accepted with a setting, and then it works (one driver)."""
    world = World("upload")
    store = kind(world.store, Ignoring())
    with pytest.raises(UnsupportedError, match=r"conditional writes|501"):
        start(world.context(store=store))
    assert everything(world) == {}
    ctx = world.context(store=store).with_settings(allow_unfenced=True)
    run_job(ctx, "old")
    run_job(ctx, "new", SaveMode.OVERWRITE)
    assert world.contents() == expected("new") and verify(ctx).verified
    aborted = start(ctx)
    run_tasks(ctx, aborted, "never")
    TWO_PHASE.abort_job(ctx, aborted)
    with pytest.raises(FencedError):
        TWO_PHASE.commit_job(ctx, aborted, [], TASKS)


def test_unknown_conditional_writes_are_probed_and_used() -> None:
    world = World("upload")

    class Unknown(InterceptedStore):
        @property
        def capabilities(self):  # type: ignore[no-untyped-def]  # as the wrapped store's
            return dataclasses.replace(super().capabilities, conditional_put=Support.UNKNOWN)

    run_job(world.context(store=Unknown(world.store, Recorder())), "new")
    assert world.contents() == expected("new")


def test_store_without_any_way_to_hide_a_file() -> None:
    ctx = World("upload").context(store=MemoryStore(limits=None))
    with pytest.raises(UnsupportedError, match=r"multipart uploads or atomic file rename.*another committer or store"):
        TWO_PHASE.setup_job(ctx, SaveMode.APPEND, {})


def test_two_jobs_with_one_id() -> None:
    """Fault 24: the second is refused, for whatever reason the ids are equal."""
    world = World("upload")
    job = start(world.context())
    world.ids.last = 0
    world.clock.at_s = 1_800_000_000.0
    fresh = World("upload")
    fresh.store, fresh.ids, fresh.clock = world.store, world.ids, world.clock
    with pytest.raises(ConflictError, match="same id"):
        start(fresh.context(), SaveMode.OVERWRITE)
    assert job.job in str(everything(world).keys())


def test_corrupted_manifest_stops_the_job_and_is_kept() -> None:
    world = World("upload")
    ctx = world.context().with_settings(inline_manifest_bytes=0)
    job = start(ctx)
    messages = run_tasks(ctx, job, "new")
    assert messages[0] is not None
    key = HOME + messages[0].ref.key
    world.store.put(key, b"garbage")
    with pytest.raises(CorruptDataError, match="its bytes are kept"):
        TWO_PHASE.commit_job(ctx, job, messages, TASKS)
    assert world.store.get(key) == b"garbage" and world.listing() == {}
    assert not TWO_PHASE.abort_job(ctx, job).committed
    assert world.pending() == []


def test_corrupted_log_entry_stops_everybody_and_is_kept() -> None:
    world = World("upload")
    run_job(world.context(), "old")
    key = f"{HOME}_holdfast/log/{1:020d}.json"
    world.store.delete(f"{HOME}_holdfast/log/{1:020d}.done")
    world.store.put(key, b"{}")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")
    with pytest.raises(CorruptDataError, match="its bytes are kept"):
        TWO_PHASE.commit_job(world.context(), job, messages, TASKS)
    report = recover(world.context())
    assert not report.clean
    assert world.store.get(key) == b"{}" and world.contents() == expected("old")


@pytest.mark.parametrize(
    "name", ["notes.txt", "7.json", f"{1:020d}.txt", f"{1:020d}", f"{'²' * 20}.json", f"{-1:020d}.done"]
)
def test_stranger_in_the_log_folder(name: str) -> None:
    world = World("upload")
    world.store.put(f"{HOME}_holdfast/log/{name}", b"")
    with pytest.raises(CorruptDataError, match="move it away"):
        start(world.context())


def test_log_is_trimmed_but_never_its_newest_entry() -> None:
    world = World("upload")
    ctx = world.context().with_settings(log_retention_entries=3)
    for number in range(10):
        run_job(ctx, f"job{number}", tasks=1)
    view = read_log(ctx)
    assert (view.oldest, view.head) == (8, 10)
    assert len(list(iter_objects(world.store, f"{HOME}_holdfast/log/"))) == 9
    assert verify(ctx).verified, verify(ctx).problems
    assert len(world.listing()) == 20


def test_trim_that_was_cut_off_goes_on() -> None:
    world = World("upload")
    for number in range(5):
        run_job(world.context(), f"job{number}", tasks=1)
    world.store.delete(f"{HOME}_holdfast/log/{2:020d}.json")  # a gap, as a crash in the middle leaves it
    assert read_log(world.context()).oldest == 3
    run_job(world.context().with_settings(log_retention_entries=2), "next", tasks=1)
    left = [info.key.rpartition("/")[2] for info in iter_objects(world.store, f"{HOME}_holdfast/log/")]
    assert left == [f"{seq:020d}.{kind}" for seq in (5, 6) for kind in ("done", "json", "visible")]


@pytest.mark.parametrize("after", [False, True])
def test_a_driver_that_dies_while_it_trims_leaves_no_unfinished_entry(after: bool) -> None:
    """C9: at every store call. An entry without its marks would be carried out again, its manifests long gone."""
    trimmed_in_part = 0
    for nth in itertools.count(1):
        world = World("upload")
        for number in range(3):
            run_job(world.context(), f"job{number}", tasks=1)
        job = start(world.context())
        messages = run_tasks(world.context(), job, "last", 1)
        dying = world.context(crash_at(nth, after=after)).with_settings(log_retention_entries=1)
        try:
            TWO_PHASE.commit_job(dying, job, messages, 1)
        except SimulatedCrash:
            trimmed_in_part += len(read_log(world.context()).stale) > 0
            assert set(read_log(world.context()).unfinished) <= {4}
            run_job(world.context(), "next", tasks=1)
            assert verify(world.context()).verified
        else:
            break
    assert trimmed_in_part, "a trim was cut off between the entries and their marks"


def test_driver_from_before_the_oldest_entry_is_fenced() -> None:
    """The log no longer reaches back to the job's start: it may have been aborted."""
    world = World("upload")
    ctx = world.context().with_settings(log_retention_entries=2)
    slow = start(ctx)
    messages = run_tasks(ctx, slow, "slow")
    for number in range(4):
        run_job(ctx, f"job{number}", tasks=1)
    with pytest.raises(FencedError, match="raise logRetention in all jobs"):
        TWO_PHASE.commit_job(ctx, slow, messages, TASKS)
    assert not TWO_PHASE.abort_job(ctx, slow).committed
    assert world.pending() == [] and world.leftovers() == []


def test_recovery_of_a_job_that_the_log_has_left_behind() -> None:
    world = World("upload")
    ctx = world.context().with_settings(log_retention_entries=2)
    dead = start(ctx)
    run_tasks(ctx, dead, "dead")
    for number in range(4):
        run_job(ctx, f"job{number}", tasks=1)
    assert recover(ctx).rolled_back == [dead.job]
    assert world.pending() == [] and world.leftovers() == []
    assert all(decision.entry.job != dead.job for decision in read_history(ctx).decisions), "C8: no entry is made up"


def test_removed_log_fences() -> None:
    world = World("upload")
    run_job(world.context(), "old")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")
    for info in list(iter_objects(world.store, f"{HOME}_holdfast/log/")):
        world.store.delete(info.key)
    with pytest.raises(FencedError, match="renamed or deleted"):
        TWO_PHASE.commit_job(world.context(), job, messages, TASKS)


def test_why_a_job_was_not_decided_is_told_also_when_the_log_goes_meanwhile() -> None:
    world = World("upload")
    run_job(world.context(), "old")
    job = start(world.context())
    messages = run_tasks(world.context(), job, "new")

    def refuse(call: StoreCall, proceed: Callable[[], Any]) -> Any:
        if call.operation is StoreOperation.PUT and "/committed-" in call.key:
            for info in list(iter_objects(world.store, f"{HOME}_holdfast/log/")):
                world.store.delete(info.key)
            raise AccessDeniedError("the policy forbids writing", key=call.key)
        return proceed()

    ctx = world.context(store=InterceptedStore(world.store, refuse))
    with pytest.raises(AccessDeniedError, match="the policy"):
        TWO_PHASE.commit_job(ctx, job, messages, TASKS)


def test_recover_leaves_recent_jobs_alone_and_dry_run_touches_nothing() -> None:
    world = World("upload")
    job = start(world.context())
    run_tasks(world.context(), job, "new")
    before = everything(world)
    assert recover(world.context(), older_than_s=3600).left_alone == [job.job]
    assert recover(world.context(), dry_run=True).rolled_back == [job.job]
    assert everything(world) == before and len(world.pending()) == 4
    world.clock.sleep(3601)
    assert recover(world.context(), older_than_s=3600).rolled_back == [job.job]
    assert world.pending() == []


def test_a_job_is_as_old_as_what_its_tasks_wrote_last() -> None:
    """Tasks may run for days after the driver has written ``job.json``."""
    world = World("upload")
    job = start(world.context())
    world.clock.sleep(3601)
    messages = run_tasks(world.context(), job, "new")
    assert recover(world.context(), older_than_s=3600).left_alone == [job.job]
    assert TWO_PHASE.commit_job(world.context(), job, messages, TASKS).committed
    assert verify(world.context()).verified


@pytest.mark.parametrize("other", ["driver", "recovery", "stranger"])
def test_why_a_manifest_is_missing(other: str) -> None:
    """Another process ends the job while this driver loads its manifests: the log tells how."""
    world = World("upload")
    job = start(world.context())
    inline = run_tasks(world.context(), job, "new")
    messages = [message and dataclasses.replace(message, inline=None) for message in inline]
    done: list[str] = []

    def end_first(call: StoreCall, proceed: Callable[[], Any]) -> Any:
        if call.operation is StoreOperation.GET and "/attempts/" in call.key and not done:
            done.append(call.key)
            if other == "driver":
                assert TWO_PHASE.commit_job(world.context(), job, messages, TASKS).finished
            elif other == "recovery":
                assert recover(world.context()).rolled_back == [job.job]
            else:
                world.store.delete(call.key)
        return proceed()

    ctx = world.context(store=InterceptedStore(world.store, end_first))
    if other == "driver":
        outcome = TWO_PHASE.commit_job(ctx, job, messages, TASKS)
        assert outcome.committed and outcome.totals.files == 4
    elif other == "recovery":
        with pytest.raises(FencedError, match="another process has aborted the job"):
            TWO_PHASE.commit_job(ctx, job, messages, TASKS)
    else:
        with pytest.raises(CorruptDataError, match="a task's manifest is missing"):
            TWO_PHASE.commit_job(ctx, job, messages, TASKS)
    assert done, "the manifests were loaded from the store"


def test_foreign_uploads_are_left_alone() -> None:
    """C7: uploads whose names Holdfast did not generate may belong to another tool."""
    world = World("upload")
    world.store.create_upload(f"{HOME}data.csv")
    run_job(world.context(), "new")
    recover(world.context())
    assert world.pending() == [f"{HOME}data.csv"]


def test_overwrite_of_foreign_files_spares_what_was_rewritten_meanwhile() -> None:
    """Such a name may be used again: a slow helper deletes only what existed when the job was decided."""
    world = World("upload")
    world.store.put(f"{HOME}data.csv", b"first")
    job = start(world.context(), SaveMode.OVERWRITE)
    messages = run_tasks(world.context(), job, "new")
    fault = Fault(FaultMode.CRASH_BEFORE, StoreOperation.DELETE_MANY)
    with pytest.raises(SimulatedCrash):
        TWO_PHASE.commit_job(world.context(fault), job, messages, TASKS)
    world.store.put(f"{HOME}data.csv", b"second")
    recover(world.context())
    assert world.contents() == sorted([b"second", *expected("new")])


def test_overwrite_replaces_foreign_files_and_spares_hidden_ones() -> None:
    world = World("upload")
    for key in ("data.csv", "x=1/part-0.parquet", "_metadata", ".crc"):
        world.store.put(HOME + key, b"foreign")
    world.store.put("out put/dataset10/data.csv", b"neighbour")
    run_job(world.context(), "new", SaveMode.OVERWRITE)
    assert world.contents() == expected("new")
    assert world.store.get(HOME + "_metadata") == b"foreign"
    assert world.store.get("out put/dataset10/data.csv") == b"neighbour"


def test_dynamic_overwrite_replaces_only_the_partitions_written() -> None:
    """Scenario 45: not siblings, not parents, not children."""
    world = World("upload")
    for key in ("top.csv", "day=0/a.csv", "day=0/hour=1/b.csv", "day=7/c.csv"):
        world.store.put(HOME + key, key.encode())
    run_job(world.context(), "new", SaveMode.OVERWRITE_PARTITIONS)
    assert world.contents() == sorted([b"top.csv", b"day=0/hour=1/b.csv", b"day=7/c.csv", *expected("new")])


def test_bucket_root_as_destination() -> None:
    world = World("upload")
    run_job(world.context(home=""), "old")
    run_job(world.context(home=""), "new", SaveMode.OVERWRITE)
    assert world.contents("") == expected("new") and verify(world.context(home="")).verified


def test_success_report_is_hadoops() -> None:
    """Scenario 72, facts 2.2: fields and types that Hadoop's reader of SuccessData/1 expects."""
    world = World("upload")
    run_job(world.context(), "new")
    report = json.loads(world.store.get(f"{HOME}_SUCCESS"))
    assert report["name"] == "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"
    assert report["success"] is True and report["committer"] == "two_phase" and report["jobIdSource"] == "holdfast"
    assert isinstance(report["timestamp"], int) and report["hostname"] and report["date"].endswith("Z")
    assert all(isinstance(value, int) for value in report["metrics"].values())
    assert all(isinstance(value, str) for value in report["diagnostics"].values())
    assert sorted(report["filenames"]) == sorted(f"/{HOME}{path}" for path in world.listing())
    assert set(report["iostatistics"]) == {"counters", "gauges", "minimums", "maximums", "meanstatistics"}
    assert report["metrics"]["files"] == 4 and report["metrics"]["rows"] == 4


def test_success_report_lists_a_hundred_files_at_most() -> None:
    world = World("upload")
    run_job(world.context(), "new", tasks=60)
    assert len(json.loads(world.store.get(f"{HOME}_SUCCESS"))["filenames"]) == 100


def test_request_cost_of_a_job_commit() -> None:
    """At most 1.2 requests per file: 200 tasks of 5 files, with small manifests in the messages."""
    world = World("upload")
    ctx = world.context()
    job = start(ctx)
    messages = []
    for task in range(200):
        with TWO_PHASE.setup_task(ctx, job, task) as attempt:
            for _ in range(5):
                attempt.open(attempt.file_name(".txt")).close()
            messages.append(attempt.commit())
    recorded = Recorder()
    TWO_PHASE.commit_job(world.context(store=InterceptedStore(world.store, recorded)), job, messages, 200)
    assert recorded.count(StoreOperation.COMPLETE_UPLOAD) == 1000
    assert len(recorded.calls) <= 1200


def test_records_and_messages_can_be_pickled() -> None:
    """Spark pickles them, so they contain no handle."""
    world = World("upload")
    job = start(world.context())
    message = run_task(world.context(), job, 0, "new")
    assert pickle.loads(pickle.dumps((job, message))) == (job, message)


def test_unknown_committer_offers_the_nearest() -> None:
    assert get_committer("two-phase") is TWO_PHASE
    with pytest.raises(InvalidRequestError, match="two_phase"):
        get_committer("two_fase")


def test_context_prefix_is_a_directory() -> None:
    """C7: a prefix without its slash would reach into ``dataset10``."""
    with pytest.raises(AssertionError):
        CommitContext(store=MemoryStore(), prefix="dataset1", url="memory://x/dataset1")


def test_one_attempt_at_a_decision_is_enough_without_other_jobs() -> None:
    world = World("upload")
    assert run_job(world.context().with_settings(conflict_attempts=1), "new").committed
    assert world.contents() == expected("new")


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_recovery_of_a_healthy_destination_reports_nothing(publication: str) -> None:
    world = World(publication)
    run_job(world.context(), "new")
    report = recover(world.context())
    assert report.clean and (report.uploads_aborted, report.folders_removed) == (0, 0)


def test_a_job_of_an_unknown_publication_is_reported_and_blocks_nobody() -> None:
    """Defect: its abort was appended to the log, and from then on nobody could read the log."""
    world = World("upload")
    run_job(world.context(), "old")
    job = start(world.context())
    key = f"{HOME}_holdfast/jobs/{job.job}/job.json"
    record = json.loads(world.store.get(key)) | {"publication": "of a later version"}
    world.store.put(key, json.dumps(record).encode())
    assert "its record cannot be read" in recover(world.context()).damaged[job.job]
    with pytest.raises(CorruptDataError, match="unknown publication"):
        TWO_PHASE.abort_job(world.context(), dataclasses.replace(job, publication="of a later version"))
    run_job(world.context(), "new")
    assert world.contents() == sorted(expected("old") + expected("new"))
    assert verify(world.context()).verified and key in everything(world)
