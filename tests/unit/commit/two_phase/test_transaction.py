"""What the transaction of a job contains, and which stores commit jobs by transactions."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, JobRecord, Kind, SaveMode, TaskCommit
from holdfast.commit.context import Measure
from holdfast.commit.layout import job_record_path, log_entry_path, log_mark_path
from holdfast.commit.two_phase.decision_log import WRITE_ID, read_log
from holdfast.commit.two_phase.manifests import PreparedOutput, build_manifest_list, prepare_job_output
from holdfast.commit.two_phase.publication import (
    RENAMES,
    TRANSACTION,
    UPLOADS,
    choose_publication,
    find_job_publication,
)
from holdfast.commit.two_phase.records import ListRef, LogEntry, LogState, decode_entry, encode_entry
from holdfast.commit.two_phase.replacement import ReplacementPlan
from holdfast.commit.two_phase.roll_forward import commit_in_one_transaction, plan_files
from holdfast.errors import CorruptDataError
from holdfast.runtime import Environment, SystemClock, SystemIds, ThreadRunner
from holdfast.stores.base import Create, Overwrite, PutMode, Require, RequireEmpty, iter_objects
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.interceptors import Recorder
from tests.patience import PATIENCE_S
from tests.simulation.world import HOME, World, run_job


def test_a_store_with_transactions_uses_them() -> None:
    assert choose_publication(MemoryStore()) is UPLOADS
    assert choose_publication(MemoryStore(rename=True)) is RENAMES
    assert choose_publication(MemoryStore(transactions=True)) is TRANSACTION
    assert choose_publication(MemoryStore(rename=True, transactions=True)) is TRANSACTION
    assert [one.at_once for one in (UPLOADS, RENAMES, TRANSACTION)] == [False, False, True]


def _ready(ctx: CommitContext, mode: SaveMode, *paths: str, **details: object) -> tuple[JobRecord, list[TaskCommit]]:
    """Run the only task of a job; an empty path stands for a generated name."""
    job = TWO_PHASE.setup_job(ctx, mode, details)
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        for path in paths:
            sink = attempt.open(path or attempt.file_name(".txt"))
            sink.write(b"twelve bytes")
            sink.close()
        return job, [attempt.commit()]


def _prepared(ctx: CommitContext, mode: SaveMode, *paths: str, **details: object) -> tuple[JobRecord, PreparedOutput]:
    job, commits = _ready(ctx, mode, *paths, **details)
    return job, prepare_job_output(ctx, job, commits)


@pytest.mark.parametrize(
    ("mode", "chosen"),
    [
        (SaveMode.APPEND, Create()),
        (SaveMode.FAIL, Create()),
        (SaveMode.IGNORE, Create()),
        (SaveMode.OVERWRITE, Overwrite()),
        (SaveMode.OVERWRITE_PARTITIONS, Overwrite()),
    ],
)
def test_only_a_chosen_name_may_be_taken_and_only_by_an_overwrite(mode: SaveMode, chosen: PutMode) -> None:
    ctx = World("transaction").context()
    job, prepared = _prepared(ctx, mode, "", "a/chosen")
    files = plan_files(ctx, job, prepared)
    assert [one.mode for one in files.completions] == [Create(), chosen]
    assert [one.key.startswith(f"{HOME}part-") for one in files.completions] == [True, False]
    assert [sum(part.size_bytes for part in one.parts) for one in files.completions] == [12, 12]
    assert [len(one.parts) for one in files.completions] == [3, 3], "parts of four bytes each"
    assert files.summary.names == [f"/{one.key}" for one in files.completions]


def test_the_manifests_are_not_kept_in_memory_twice() -> None:
    ctx = World("transaction").context()
    job, prepared = _prepared(ctx, SaveMode.APPEND, "")
    build_manifest_list(job, prepared, "token")
    assert prepared.cache.data
    files = plan_files(ctx, job, prepared)
    assert (prepared.cache.data, prepared.cache.size_bytes) == ({}, 0)
    assert prepared.cache.listed is not None, "cleanup asks which attempts have reported"
    assert files.obsolete == [ctx.key(job_record_path(job.job)), ctx.key(prepared.refs[0].key)]


def _entry(job: JobRecord, seq: int = 1, after: str = "") -> LogEntry:
    return LogEntry(
        seq=seq,
        kind=Kind.COMMIT,
        record=job,
        token="mine",
        decided_at_s=1.0,
        tasks=1,
        manifests=ListRef(key=f"_holdfast/jobs/{job.job}/committed-mine.jsonl", sha256="0" * 64, count=1),
        state=LogState(),
        after=after,
    )


def test_the_transaction_contains_all_that_readers_and_recovery_look_at() -> None:
    world, recorded = World("transaction"), Recorder()
    run_job(world.context(), "old")
    ctx = world.context(store=InterceptedStore(world.store, recorded))
    job, prepared = _prepared(ctx, SaveMode.APPEND, "", **{WRITE_ID: "daily"})
    files = plan_files(ctx, job, prepared)
    newest = decode_entry("", 1, world.store.get(HOME + log_entry_path(1)))
    winner, report = commit_in_one_transaction(
        Measure(ctx), _entry(job, 2, newest.token), read_log(ctx), files, ReplacementPlan()
    )
    assert winner is not None and winner.token == "mine" and report.job == job.job
    [call] = [call for call in recorded.calls if call.operation is StoreOperation.APPLY]
    paths = [key.removeprefix(HOME) for key in call.keys]
    assert paths[:2] == [log_entry_path(2), log_entry_path(1)], (
        "the entry, and the condition that the one before exists"
    )
    assert paths[3] == job_record_path(job.job), "the destination is still there"
    assert paths[4] == "_SUCCESS"
    assert paths[5].startswith("_holdfast/writes/")
    assert paths[6:] == [
        log_mark_path(2, "visible"),
        log_mark_path(2, "done"),
        job_record_path(job.job),
        prepared.refs[0].key,
    ]
    left = [key for key in (ctx.key(job_record_path(job.job)), ctx.key(prepared.refs[0].key)) if _exists(world, key)]
    assert left == []


def _exists(world: World, key: str) -> bool:
    return any(info.key == key for info in iter_objects(world.store, key))


def test_the_first_entry_requires_an_empty_log() -> None:
    conditions = []

    class Noting(MemoryStore):
        def apply(self, changes):  # type: ignore[no-untyped-def]  # as in the protocol
            conditions.append([one for one in changes if isinstance(one, Require | RequireEmpty)])
            super().apply(changes)

    ctx = replace(World("transaction").context(), store=Noting(transactions=True))
    for _ in range(2):
        job, commits = _ready(ctx, SaveMode.APPEND, "")
        TWO_PHASE.commit_job(ctx, job, commits, 1)
        assert conditions[-1].pop() == Require(ctx.key(job_record_path(job.job))), "the destination is still there"
    aborted, _ = _ready(ctx, SaveMode.APPEND, "")
    TWO_PHASE.abort_job(ctx, aborted)
    assert conditions == [
        [RequireEmpty(f"{HOME}_holdfast/log/")],
        *([Require(key, ctx.store.head(key).etag)] for key in (HOME + log_entry_path(1), HOME + log_entry_path(2))),
        [Require(HOME + log_entry_path(3), ctx.store.head(HOME + log_entry_path(3)).etag)],
    ], "an abort requires it too: a late one would free the number after it; and its mark requires the abort"


def test_the_publication_is_stored_and_an_unknown_one_is_refused() -> None:
    job, _ = _ready(World("transaction").context(), SaveMode.APPEND, "")
    assert job.publication == "transaction" and find_job_publication(job) is TRANSACTION
    entry = _entry(job)
    assert decode_entry("log/1", 1, encode_entry(entry)) == entry
    forged = encode_entry(replace(entry, record=replace(job, publication="transactions")))
    with pytest.raises(CorruptDataError, match="publication is unknown"):
        decode_entry("log/1", 1, forged)


def test_jobs_in_threads_are_seen_whole_by_a_thread_that_only_lists() -> None:
    """Real threads: four drivers decide at the same moment, on one destination, while a plain reader lists it."""
    store = MemoryStore(transactions=True)
    environment = Environment(clock=SystemClock(), ids=SystemIds(), runner=ThreadRunner(2))
    ctx = CommitContext(store=store, prefix=HOME, url="memory://t", environment=environment)
    modes = [SaveMode.APPEND, SaveMode.OVERWRITE, SaveMode.APPEND, SaveMode.OVERWRITE_PARTITIONS] * 2
    jobs = [_ready(ctx, mode, *[""] * 5) for mode in modes]
    start, over = threading.Barrier(5), threading.Event()
    torn: list[Counter[str]] = []
    problems: list[Exception] = []

    def drive(number: int) -> None:
        start.wait(PATIENCE_S)
        try:
            for job, commits in jobs[number::4]:
                assert TWO_PHASE.commit_job(ctx, job, commits, 1).finished
        except Exception as error:  # noqa: BLE001  # the test raises it
            problems.append(error)

    def read() -> None:
        start.wait(PATIENCE_S)
        while not over.is_set():
            page = store.list_page(f"{HOME}part-")
            seen = Counter("-".join(info.key.split("-")[2:4]) for info in page.objects)
            if set(seen.values()) - {5}:
                torn.append(seen)

    reader = threading.Thread(target=read)
    drivers = [threading.Thread(target=drive, args=(number,)) for number in range(4)]
    for thread in (reader, *drivers):
        thread.start()
    for thread in drivers:
        thread.join(PATIENCE_S)
    over.set()
    reader.join(PATIENCE_S)
    assert (problems, torn) == ([], [])
    assert len(list(iter_objects(store, f"{HOME}_holdfast/log/"))) == 3 * len(modes)
