"""A store with transactions: the decision, the files and what they replace appear at one instant, for every reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from holdfast.commit import (
    TWO_PHASE,
    CommitContext,
    JobOutcome,
    JobRecord,
    SaveMode,
    StreamBatch,
    TaskCommit,
    read_history,
    read_instant,
    read_snapshot,
    recover,
    verify,
)
from holdfast.commit.layout import SUCCESS, log_entry_path
from holdfast.commit.two_phase.decision_log import WRITE_ID, find_job_by_write_id, read_log
from holdfast.commit.two_phase.records import ReplacedFile
from holdfast.commit.two_phase.replacement import ReplacementPlan
from holdfast.commit.two_phase.streams import announce_stream_batch, plan_batch
from holdfast.errors import (
    AccessDeniedError,
    CorruptDataError,
    DestinationExistsError,
    FencedError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    UnavailableError,
)
from holdfast.stores.base import MultipartLimits, iter_objects, iter_uploads
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast_checker.simulated.memory import RestorableStore
from tests.interceptors import FOR_EVER, Fault, FaultMode, Recorder, SimulatedCrash, crash_at
from tests.simulation.world import (
    HOME,
    TASKS,
    World,
    assert_settled,
    expected,
    result,
    run_job,
    run_task,
    run_tasks,
    start,
)

T = TypeVar("T")

MODES = [SaveMode.APPEND, SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS]
KEPT = f"{HOME}day=9/kept.txt"


def ready(world: World, mode: SaveMode, details: dict[str, object] | None = None) -> tuple[JobRecord, list[TaskCommit]]:
    """Run the tasks of a job, so that only its commit remains."""
    job = TWO_PHASE.setup_job(world.context(), mode, details or {})
    assert job is not None
    return job, [run_task(world.context(), job, task, "new") for task in range(TASKS)]


def chosen(ctx: CommitContext, path: str, mode: SaveMode = SaveMode.APPEND) -> Callable[[CommitContext], JobOutcome]:
    """Run the task of a job that writes one file under a name of its choice, so that only its commit remains."""
    job = TWO_PHASE.setup_job(ctx, mode, {})
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        sink = attempt.open(path)
        sink.write(b"mine, in parts")
        sink.close()
        message = attempt.commit()
    return lambda ctx: TWO_PHASE.commit_job(ctx, job, [message], 1)


def before_the_transaction(world: World, action: Callable[[], object]) -> CommitContext:
    """Return the context of a process; the action runs just before its first transaction."""
    waiting = [action]

    def interceptor(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.APPLY and waiting:
            waiting.pop()()
        return proceed()

    return world.context(store=InterceptedStore(world.store, interceptor))


def reported_job(world: World) -> object:
    return json.loads(world.store.get(f"{HOME}{SUCCESS}"))["jobId"]


# --- one instant ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", MODES)
def test_a_plain_reader_sees_the_job_and_its_report_at_one_instant(mode: SaveMode) -> None:
    """C4, for a reader that only lists and knows nothing of the log, between any two calls of the commit."""
    world = World("transaction")
    old = run_job(world.context(), "old").job
    job, messages = ready(world, mode)
    seen: list[tuple[list[bytes], object, bool]] = []

    def look(call: StoreCall, proceed: Callable[[], T]) -> T:
        seen.append((world.contents(), reported_job(world), read_instant(world.context()).is_settled))
        return proceed()

    outcome = TWO_PHASE.commit_job(world.context(store=InterceptedStore(world.store, look)), job, messages, TASKS)
    assert outcome.committed and outcome.finished
    assert outcome.report is not None and outcome.report.totals.files == 4 and len(outcome.report.filenames) == 4
    before, after = (expected("old"), old, True), (result(mode), job.job, True)
    assert [one for one in seen if one not in (before, after)] == []
    assert before in seen and after in seen
    assert_settled(world, result(mode))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_the_driver_dies_at_any_call_and_nothing_is_left_to_roll_forward(mode: SaveMode, after: bool) -> None:
    outcomes = set()
    for nth in range(1, 200):
        world = World("transaction")
        run_job(world.context(), "old")
        job, messages = ready(world, mode)
        try:
            TWO_PHASE.commit_job(world.context(crash_at(nth, after=after)), job, messages, TASKS)
        except SimulatedCrash:
            assert world.contents() in (expected("old"), result(mode)), "before recovery, too"
            committed = world.contents() == result(mode)
            outcomes.add(committed)
            assert read_log(world.context()).unfinished == []
            assert (reported_job(world) == job.job) is committed
            assert len(read_snapshot(world.context()).files) == len(world.contents())
            report = recover(world.context())
            assert report.rolled_forward == [] and report.rolled_back == ([] if committed else [job.job])
            assert_settled(world, result(mode) if committed else expected("old"))
        else:
            break
    assert outcomes == {True, False}


def test_one_request_publishes_any_number_of_files() -> None:
    counts = []
    for files in (1, 40):
        world = World("transaction")
        run_job(world.context(), "old")
        job = start(world.context(), SaveMode.OVERWRITE)
        with TWO_PHASE.setup_task(world.context(), job, 0) as attempt:
            for _ in range(files):
                attempt.open(attempt.file_name(".txt")).write(b"1")
            message = attempt.commit()
        recorded = Recorder()
        TWO_PHASE.commit_job(world.context(store=InterceptedStore(world.store, recorded)), job, [message], 1)
        assert_settled(world, [b"1"] * files)
        assert recorded.count(StoreOperation.APPLY) == 1
        assert recorded.count(StoreOperation.COMPLETE_UPLOAD) == recorded.count(StoreOperation.PUT) == 0
        [call] = [call for call in recorded.calls if call.operation is StoreOperation.APPLY]
        assert call.key == HOME + log_entry_path(2), "the decision comes first, so that a fault can be aimed at it"
        counts.append(len(recorded.calls))
    assert counts[0] == counts[1]


def test_the_decision_says_how_its_files_became_visible() -> None:
    world = World("transaction")
    run_job(world.context(), "old")
    [decision] = read_history(world.context()).decisions
    assert decision.entry.record.publication == "transaction"
    assert decision.state == "done"
    assert verify(world.context()).verified


def test_a_file_system_in_a_database_commits_by_transactions_too() -> None:
    """It could also rename: but then readers would see one file after the other."""
    world = World("transaction")
    limits = MultipartLimits(min_part_size_bytes=4)
    world.store = RestorableStore(limits=limits, rename=True, transactions=True, clock=world.clock, ids=world.ids)
    run_job(world.context(), "old")
    run_job(world.context(), "new", SaveMode.OVERWRITE)
    assert_settled(world, expected("new"))
    blocked = chosen(world.context(), "day=7")
    world.store.put(f"{HOME}day=7/there", b"1")
    with pytest.raises(InvalidRequestError, match="a file and a directory"):
        blocked(world.context())
    hidden = chosen(world.context(), "day=8")
    with pytest.raises(InvalidRequestError, match="a directory stands"):
        hidden(before_the_transaction(world, lambda: world.store.put(f"{HOME}day=8/_hidden", b"1")))
    assert read_log(world.context()).head == 2, "undecided"


# --- what is refused --------------------------------------------------------------------------------------------------
def test_a_job_whose_uploads_have_expired_stays_undecided() -> None:
    """On other stores this would be found out after the decision, as damage."""
    world = World("transaction")
    run_job(world.context(), "old")
    job, messages = ready(world, SaveMode.OVERWRITE)
    upload = next(iter_uploads(world.store, ""))
    world.store.abort_upload(upload.key, upload.upload_id)
    with pytest.raises(NotFoundError, match="expired, something aborted them: run the job again") as caught:
        TWO_PHASE.commit_job(world.context(), job, messages, TASKS)
    assert caught.value.variables["first"] == upload.key.removeprefix(HOME)
    assert world.contents() == expected("old")
    assert not TWO_PHASE.abort_job(world.context(), job).committed
    assert_settled(world, expected("old"))


@pytest.mark.parametrize("error", [AccessDeniedError("the policy forbids it"), UnavailableError("no database")])
def test_a_store_that_refuses_the_transaction_leaves_the_job_undecided(error: HoldfastError) -> None:
    world = World("transaction")
    run_job(world.context(), "old")
    job, messages = ready(world, SaveMode.OVERWRITE)
    refusing = world.context(Fault(FaultMode.FAIL, StoreOperation.APPLY, times=FOR_EVER, error=error))
    with pytest.raises(type(error)):
        TWO_PHASE.commit_job(refusing, job, messages, TASKS)
    assert world.contents() == expected("old") and read_log(world.context()).head == 1
    assert TWO_PHASE.commit_job(world.context(), job, messages, TASKS).finished
    assert_settled(world, expected("new"))


@pytest.mark.parametrize("mode", MODES)
def test_a_name_that_another_tool_takes_at_the_last_moment(mode: SaveMode) -> None:
    world = World("transaction")
    commit = chosen(world.context(), "day=9/kept.txt", mode)
    ctx = before_the_transaction(world, lambda: world.store.put(KEPT, b"another tool's"))
    if mode is SaveMode.APPEND:
        with pytest.raises(DestinationExistsError, match=r"already exists.*path='day=9/kept\.txt'"):
            commit(ctx)
        assert world.listing() == {"day=9/kept.txt": b"another tool's"} and read_log(ctx).head == 0
    else:
        assert commit(ctx).finished
        assert world.listing() == {"day=9/kept.txt": b"mine, in parts"}


def test_a_file_that_another_tool_has_replaced_meanwhile_is_not_deleted() -> None:
    world = World("transaction")
    world.store.put(KEPT, b"old")
    world.store.put(f"{HOME}day=9/gone.txt", b"old")
    job, messages = ready(world, SaveMode.OVERWRITE)
    ctx = before_the_transaction(world, lambda: world.store.put(KEPT, b"another tool's"))
    assert TWO_PHASE.commit_job(ctx, job, messages, TASKS).finished
    assert_settled(world, sorted([*expected("new"), b"another tool's"]))


@pytest.mark.parametrize("mode", [SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS])
def test_a_chosen_name_is_replaced_without_a_gap(mode: SaveMode) -> None:
    world = World("transaction")
    chosen(world.context(), "a/file", mode)(world.context())
    world.store.put(f"{HOME}a/other", b"old")
    commit, seen = chosen(world.context(), "a/file", mode), []

    def look(call: StoreCall, proceed: Callable[[], T]) -> T:
        paths = {file.path for file in read_snapshot(world.context()).files}
        assert paths == set(world.listing()), "a reader through Holdfast sees what a plain reader sees"
        seen.append(world.listing())
        return proceed()

    commit(world.context(store=InterceptedStore(world.store, look)))
    old, new = {"a/file": b"mine, in parts", "a/other": b"old"}, {"a/file": b"mine, in parts"}
    assert all(one in (old, new) for one in seen) and old in seen and new in seen


def test_a_damaged_plan_never_deletes_the_jobs_own_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """C2. On other stores, a forged list of replaced files is found out before anything is deleted."""
    world = World("transaction")
    run_job(world.context(), "old")
    job, messages = ready(world, SaveMode.OVERWRITE)
    own = next(iter_uploads(world.store, "")).key.removeprefix(HOME)
    monkeypatch.setattr(ReplacementPlan, "files", lambda plan: iter([ReplacedFile(path=own, size_bytes=1)]))
    with pytest.raises(CorruptDataError, match="its own output"):
        TWO_PHASE.commit_job(world.context(), job, messages, TASKS)
    assert world.contents() == expected("old") and read_log(world.context()).head == 1


def test_a_stray_file_in_an_empty_log_is_named() -> None:
    """On other stores it is in nobody's way: here, the first entry requires that the folder is empty."""
    world = World("transaction")
    job, messages = ready(world, SaveMode.APPEND)
    world.store.put(f"{HOME}_holdfast/log/.DS_Store", b"1")
    with pytest.raises(CorruptDataError, match="move it away"):
        TWO_PHASE.commit_job(world.context(), job, messages, TASKS)
    assert "move it away" in recover(world.context(), older_than_s=0).damaged[job.job]
    world.store.delete(f"{HOME}_holdfast/log/.DS_Store")
    assert TWO_PHASE.commit_job(world.context(), job, messages, TASKS).finished
    assert_settled(world, expected("new"))


def test_a_bucket_that_disappears_is_no_expired_upload() -> None:
    world = World("transaction")
    job, messages = ready(world, SaveMode.APPEND)
    gone = NotFoundError("no such bucket: check the name", bucket="b")
    missing = world.context(Fault(FaultMode.FAIL, StoreOperation.APPLY, times=FOR_EVER, error=gone))
    with pytest.raises(NotFoundError, match="no such bucket"):
        TWO_PHASE.commit_job(missing, job, messages, TASKS)


def test_unfenced_jobs_are_fenced_all_the_same() -> None:
    """The setting accepts a store without conditional writes; this store has them."""
    world = World("transaction")
    ctx = world.context().with_settings(allow_unfenced=True)
    run_job(ctx, "old")
    job = start(ctx, SaveMode.OVERWRITE)
    messages = run_tasks(ctx, job, "new")
    late = before_the_transaction(world, lambda: recover(ctx)).with_settings(allow_unfenced=True)
    with pytest.raises(FencedError):
        TWO_PHASE.commit_job(late, job, messages, TASKS)
    assert_settled(world, expected("old"))
    run_job(ctx, "new", SaveMode.OVERWRITE)
    assert_settled(world, expected("new"))


# --- conflicts and lost replies ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", MODES)
def test_another_job_is_decided_first(mode: SaveMode) -> None:
    """The plan is made again: what the other job added is replaced as well."""
    world = World("transaction")
    run_job(world.context(), "old")
    job, messages = ready(world, mode)
    ctx = before_the_transaction(world, lambda: run_job(world.context(), "other"))
    assert TWO_PHASE.commit_job(ctx, job, messages, TASKS).finished
    added = expected("old") + expected("other") if mode is SaveMode.APPEND else []
    assert_settled(world, sorted(added + expected("new")))
    assert reported_job(world) == job.job


def test_a_transaction_whose_reply_is_lost_for_ever_is_found_in_the_log() -> None:
    world = World("transaction")
    job, messages = ready(world, SaveMode.APPEND)
    unanswered = world.context(Fault(FaultMode.LOST_REPLY, StoreOperation.APPLY, times=FOR_EVER))
    outcome = TWO_PHASE.commit_job(unanswered, job, messages, TASKS)
    assert outcome.committed and outcome.finished
    assert_settled(world, expected("new"))


def test_a_request_that_was_lost_for_ever_leaves_the_outcome_to_the_abort() -> None:
    world = World("transaction")
    job, messages = ready(world, SaveMode.APPEND)
    error = OutcomeUnknownError("no answer")
    silent = world.context(Fault(FaultMode.FAIL, StoreOperation.APPLY, times=FOR_EVER, error=error))
    with pytest.raises(OutcomeUnknownError, match="run the same command again"):
        TWO_PHASE.commit_job(silent, job, messages, TASKS)
    assert not TWO_PHASE.abort_job(world.context(), job).committed
    assert_settled(world, [])


def test_a_request_that_arrives_after_the_abort_changes_nothing() -> None:
    """C5, C8: the network delivers the driver's transaction when recovery has given the job up."""
    world = World("transaction")
    run_job(world.context(), "old")
    job, messages = ready(world, SaveMode.OVERWRITE)
    held: list[Callable[[], object]] = []

    def hold(call: StoreCall, proceed: Callable[[], T]) -> T:
        if call.operation is StoreOperation.APPLY:
            held.append(proceed)
            raise OutcomeUnknownError("no answer")
        return proceed()

    with pytest.raises(OutcomeUnknownError):
        TWO_PHASE.commit_job(world.context(store=InterceptedStore(world.store, hold)), job, messages, TASKS)
    assert recover(world.context()).rolled_back == [job.job]
    before = world.store.take_snapshot().key
    for deliver in held:
        with pytest.raises((PreconditionError, NotFoundError)):  # the number is taken, and the uploads are gone
            deliver()
    assert world.store.take_snapshot().key == before
    assert_settled(world, expected("old"))


# --- leftovers, streams, write ids ------------------------------------------------------------------------------------
def test_what_other_attempts_left_is_swept_after_the_transaction() -> None:
    world = World("transaction")
    job = start(world.context())
    loser = [run_task(world.context(), job, task, "loser") for task in range(TASKS)]
    winner = run_tasks(world.context(), job, "new")
    world.store.create_upload(f"{HOME}chosen by nobody yet")
    assert TWO_PHASE.commit_job(world.context(), job, winner, TASKS).finished
    assert loser[0].job == job.job
    assert world.pending() == [f"{HOME}chosen by nobody yet"]
    assert world.leftovers() == [] and world.contents() == expected("new")


@pytest.mark.parametrize("by", ["next job", "recovery"])
def test_what_a_driver_left_that_died_after_its_transaction(by: str) -> None:
    """The manifests that count are gone with the transaction, so nobody tries to abort the completed uploads."""
    world = World("transaction")
    job = start(world.context())
    run_task(world.context(), job, 0, "loser")
    messages = run_tasks(world.context(), job, "new")

    def die(call: StoreCall, proceed: Callable[[], T]) -> T:
        result = proceed()
        if call.operation is StoreOperation.APPLY:
            raise SimulatedCrash(call)
        return result

    with pytest.raises(SimulatedCrash):
        TWO_PHASE.commit_job(world.context(store=InterceptedStore(world.store, die)), job, messages, TASKS)
    assert len(world.pending()) == 2 and len(world.leftovers()) == 1
    recorded = Recorder()
    ctx = world.context(store=InterceptedStore(world.store, recorded))
    if by == "recovery":
        assert recover(ctx).clean
        assert_settled(world, expected("new"))
    else:
        run_job(ctx, "next")
        assert_settled(world, sorted(expected("new") + expected("next")))
    assert recorded.count(StoreOperation.ABORT_UPLOAD) == 2


def test_the_intents_of_attempts_that_count_are_not_kept() -> None:
    """A chosen name is announced before its upload; the manifest that ends the announcement is deleted at once."""
    world = World("transaction")
    commit = chosen(world.context(), "a/file")
    assert any("intents" in key for key in world.leftovers())
    commit(world.context())
    assert world.leftovers() == []


def test_a_batch_is_committed_with_its_mark() -> None:
    world = World("transaction")
    batch = StreamBatch(stream="s", checkpoint="c", batch=0)
    plans = [plan_batch(world.context(), SaveMode.APPEND, {}) for _ in range(2)]
    jobs = [announce_stream_batch(world.context(), plan, batch) for plan in plans]
    assert jobs[0] is not None and jobs[1] is not None
    first, again = (run_tasks(world.context(), job, "new") for job in jobs if job is not None)
    late = before_the_transaction(world, lambda: TWO_PHASE.commit_job(world.context(), jobs[0], first, TASKS))  # type: ignore[arg-type]  # checked above
    assert not TWO_PHASE.commit_job(late, jobs[1], again, TASKS).committed
    assert announce_stream_batch(world.context(), plans[0], replace(batch, batch=1)) is not None
    assert sorted(world.contents()) == expected("new")
    assert [decision.entry.kind.value for decision in read_history(world.context()).decisions] == ["commit"]


def test_a_write_id_is_recorded_in_the_transaction() -> None:
    world = World("transaction")
    job, messages = ready(world, SaveMode.APPEND, {WRITE_ID: "daily"})
    twin, its_messages = ready(world, SaveMode.APPEND, {WRITE_ID: "daily"})

    def die(call: StoreCall, proceed: Callable[[], T]) -> T:
        result = proceed()
        if call.operation is StoreOperation.APPLY:
            raise SimulatedCrash(call)
        return result

    with pytest.raises(SimulatedCrash):
        TWO_PHASE.commit_job(world.context(store=InterceptedStore(world.store, die)), job, messages, TASKS)
    ctx = world.context()
    found = find_job_by_write_id(ctx, read_log(ctx), "daily")
    assert found is not None and (found.job, found.finished) == (job.job, True)
    assert not TWO_PHASE.commit_job(ctx, twin, its_messages, TASKS).committed
    assert world.contents() == expected("new")


def test_a_write_id_that_is_recorded_at_the_last_moment_skips_the_job() -> None:
    world = World("transaction")
    job, messages = ready(world, SaveMode.APPEND, {WRITE_ID: "daily"})
    twin, its_messages = ready(world, SaveMode.APPEND, {WRITE_ID: "daily"})
    ctx = before_the_transaction(world, lambda: TWO_PHASE.commit_job(world.context(), twin, its_messages, TASKS))
    assert not TWO_PHASE.commit_job(ctx, job, messages, TASKS).committed
    restored, record = World("transaction"), next(iter_objects(world.store, f"{HOME}_holdfast/writes/"))
    job, messages = ready(restored, SaveMode.APPEND, {WRITE_ID: "daily"})
    data = world.store.get(record.key)
    ctx = before_the_transaction(restored, lambda: restored.store.put(record.key, data))
    assert not TWO_PHASE.commit_job(ctx, job, messages, TASKS).committed, "only the record has appeared"
    assert restored.contents() == []


# --- a destination that other publications have written ---------------------------------------------------------------
def test_a_decision_that_was_made_step_by_step_is_rolled_forward_first() -> None:
    """The store has learned transactions since, or another version of Holdfast has decided the job."""
    world = World("upload")
    run_job(world.context(), "old")
    job = start(world.context(), SaveMode.OVERWRITE)
    messages = run_tasks(world.context(), job, "stepwise")
    broken = world.context(Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, nth=2, times=FOR_EVER))
    assert not TWO_PHASE.commit_job(broken, job, messages, TASKS).finished
    image = world.store.take_snapshot()
    world.store = RestorableStore(
        limits=MultipartLimits(min_part_size_bytes=4), transactions=True, clock=world.clock, ids=world.ids
    )
    world.store.restore(image)
    assert run_job(world.context(), "new").finished
    assert_settled(world, sorted(expected("stepwise") + expected("new")))
    publications = [one.entry.record.publication for one in read_history(world.context()).decisions]
    assert publications == ["upload", "upload", "transaction"]
