"""Refuse some of the requests that follow a decision: the job is done, and the next one costs no more."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, SaveMode, read_history, recover, verify
from holdfast.commit.intents import QUIET_S
from holdfast.commit.layout import iter_job_folders
from holdfast.commit.records import StreamBatch
from holdfast.commit.success_file import read_success_file
from holdfast.commit.two_phase.streams import announce_stream_batch, plan_batch
from holdfast.errors import AccessDeniedError, UnsupportedError
from holdfast.stores.base import ObjectPage, PutMode, Update, iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.interceptors import SimulatedCrash
from tests.simulation.world import HOME, TASKS, World, expected, run_job, run_tasks, start

T = TypeVar("T")


def refusing(world: World, matches: Callable[[StoreCall], bool]) -> tuple[CommitContext, Counter[StoreOperation]]:
    """Return a context whose store denies matching calls, and a counter of all calls."""
    calls: Counter[StoreOperation] = Counter()

    def refuse(call: StoreCall, proceed: Callable[[], T]) -> T:
        calls[call.operation] += 1
        if matches(call):
            raise AccessDeniedError("the policy forbids it", key=call.key)
        return proceed()

    return world.context(store=InterceptedStore(world.store, refuse)), calls


def zombie(world: World) -> None:
    """Leave something for cleanup to remove: an upload of a job that has ended and whose record is deleted."""
    dead = start(world.context())
    run_tasks(world.context(), dead, "dead", 1)
    for key in [info.key for info in iter_objects(world.store, f"{HOME}_holdfast/jobs/{dead.job}/")]:
        world.store.delete(key)


_REFUSED = {
    "listing uploads": lambda call: call.operation is StoreOperation.LIST_UPLOADS,
    "aborting uploads": lambda call: call.operation is StoreOperation.ABORT_UPLOAD,
    "deleting": lambda call: call.operation in (StoreOperation.DELETE, StoreOperation.DELETE_MANY),
}


@pytest.mark.parametrize("what", _REFUSED)
def test_a_clean_up_that_is_refused_keeps_no_decision_undone(what: str, caplog: pytest.LogCaptureFixture) -> None:
    """Defect: every later job repeated the cleanup of all earlier ones, and the log was never trimmed."""
    world = World("upload")
    zombie(world)
    ctx, calls = refusing(world, _REFUSED[what])
    ctx = ctx.with_settings(log_retention_entries=3)
    costs = []
    for number in range(8):
        calls.clear()
        assert run_job(ctx, f"job{number}").finished
        costs.append(calls.total())
    assert (
        "denies aborting a leftover upload" in caplog.text
        or "denies listing pending uploads" in caplog.text
        or "check its policy" in caplog.text
    )
    assert [one.state for one in read_history(ctx).decisions] == ["done"] * len(read_history(ctx).decisions)
    assert what == "deleting" or max(costs[4:]) <= costs[3] + 2, costs
    assert world.contents() == sorted(one for number in range(8) for one in expected(f"job{number}"))
    assert not recover(ctx).clean, "a person is told"
    assert recover(world.context()).clean and world.pending() == []


class _SupportsOnlyCreate(MemoryStore):
    """A store that answers If-Match with 501."""

    def put(self, key: str, data: bytes, mode: PutMode | None = None, metadata: Mapping[str, str] | None = None):  # type: ignore[no-untyped-def,override]  # as its parent
        if isinstance(mode, Update):
            raise UnsupportedError("the server does not know this header")
        return super().put(key, data, *([] if mode is None else [mode]), metadata=metadata)


def test_a_server_without_if_match_gets_its_reports() -> None:
    world = World("upload")
    ctx = dataclasses.replace(world.context(), store=_SupportsOnlyCreate(clock=world.clock))
    for number in range(3):
        outcome = run_job(ctx, f"job{number}")
        assert outcome.finished
        assert (read_success_file(ctx) or {}).get("jobId") == outcome.job


def test_a_damaged_list_of_replaced_files_blocks_no_other_job() -> None:
    """Defect: every append failed, and no recovery completed."""
    world = World("upload")
    run_job(world.context(), "old")
    ctx, _ = refusing(
        world, lambda call: call.operation is StoreOperation.DELETE_MANY and any("day=" in k for k in call.keys)
    )
    stuck = run_job(ctx, "new", SaveMode.OVERWRITE)
    assert stuck.committed and not stuck.finished
    (key,) = [info.key for info in iter_objects(world.store, HOME) if "/replaced-" in info.key]
    world.store.put(key, b"somebody broke it")
    assert run_job(world.context(), "later").finished
    assert list(recover(world.context()).damaged) == [stuck.job]
    accepted = recover(world.context(), accept_damage=True)
    assert accepted.clean and [one.lost for one in accepted.jobs] == [1]
    assert read_history(world.context()).decisions[-2].state == "done"


def test_a_broken_manifest_of_a_visible_job_costs_only_its_report() -> None:
    world = World("upload")

    def die(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.PUT and call.key.endswith("_SUCCESS"):
            raise SimulatedCrash
        return proceed()

    with pytest.raises(SimulatedCrash):
        run_job(world.context(store=InterceptedStore(world.store, die)), "mine")
    for info in list(iter_objects(world.store, f"{HOME}_holdfast/jobs/")):
        if "job.json" not in info.key:
            world.store.put(info.key, b"somebody broke it")
    assert recover(world.context()).clean
    assert verify(world.context()).verified and world.contents() == expected("mine")


class _EmptyPages(MemoryStore):
    """A store whose listings begin with an empty page, as on servers that filter after they have cut a page."""

    def list_page(
        self, prefix: str, start_after: str = "", max_keys: int = 1000, token: str | None = None
    ) -> ObjectPage:
        if token is None:
            return ObjectPage([], "behind nothing")
        return super().list_page(prefix, start_after, max_keys, None if token == "behind nothing" else token)


def test_an_empty_page_is_not_the_end_of_the_jobs() -> None:
    store = _EmptyPages()
    jobs = [f"20261121093853123-00000000000{number}" for number in range(3)]
    for job in jobs:
        store.put(f"{HOME}_holdfast/jobs/{job}/job.json", b"{}")
    assert [job for job, _objects in iter_job_folders(store, HOME)] == jobs


def test_a_batch_whose_record_cannot_be_read_is_spared_by_its_stream() -> None:
    """Nothing proves that it is dead."""
    world = World("upload")
    ctx = world.context()

    def batch(number: int):  # type: ignore[no-untyped-def]  # a job
        return announce_stream_batch(
            ctx, plan_batch(ctx, SaveMode.APPEND, {}), StreamBatch(stream="s", checkpoint="c", batch=number)
        )

    spared, next_one = batch(0), batch(1)
    run_tasks(ctx, spared, "spared", 1)
    living = world.pending()
    world.store.put(f"{HOME}_holdfast/jobs/{spared.job}/job.json", b"somebody broke it")
    assert TWO_PHASE.commit_job(ctx, next_one, run_tasks(ctx, next_one, "next"), TASKS).finished
    assert world.pending() == living


class _SlowParts(MemoryStore):
    """A store in which an abort races with a part, which keeps the upload alive: S3 says to abort again."""

    met = False

    def abort_upload(self, key: str, upload_id: str) -> None:
        if not self.met:
            self.met = True
            return
        super().abort_upload(key, upload_id)


def test_an_upload_that_outlives_its_abort_is_aborted_again() -> None:
    world = World("upload")
    store = _SlowParts(clock=world.clock)
    ctx = dataclasses.replace(world.context(), store=store)
    job = start(ctx)
    run_tasks(ctx, job, "mine", 1)
    assert not TWO_PHASE.abort_job(ctx, job).committed
    assert store.met and list(store.list_uploads_page(HOME).uploads) == []


@pytest.mark.parametrize("refused", [True, False])
def test_an_upload_whose_abort_is_refused_keeps_its_announcement(refused: bool) -> None:
    """C9: its key does not contain the job, so only the announcement leads recovery to it."""
    world = World("upload")
    job = start(world.context(), SaveMode.OVERWRITE)
    dead = TWO_PHASE.setup_task(world.context(), job, 0)
    dead.open("chosen").write(b"more than one part")
    world.clock.sleep(QUIET_S + 1)  # the attempt counts as dead
    ctx, _calls = refusing(world, lambda call: refused and call.operation is StoreOperation.ABORT_UPLOAD)
    TWO_PHASE.commit_job(ctx, job, run_tasks(world.context(), job, "new"), TASKS)
    assert world.pending() == [f"{HOME}chosen"] * refused
    recover(world.context())
    assert world.pending() == [] and world.leftovers() == []
