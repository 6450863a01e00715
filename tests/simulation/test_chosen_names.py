"""Test files under names that the caller chose: crash or interleave at every store call.

Such names do not show which job a file belongs to. Unlike names that are used once, two jobs may use the same key, and
a pending upload shows only its key. These tests are about which job's data cleanup removes (C7, C9) and about late
completions (C6).
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.commit import (
    TWO_PHASE,
    CommitContext,
    JobRecord,
    Kind,
    SaveMode,
    TaskCommit,
    read_history,
    read_snapshot,
    recover,
)
from holdfast.commit.context import open_context
from holdfast.commit.intents import QUIET_S
from holdfast.errors import (
    ConflictError,
    CorruptDataError,
    DestinationExistsError,
    HoldfastError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from holdfast.stores.base import iter_uploads
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from tests.interceptors import Fault, FaultMode, Faulty, SimulatedCrash, crash_at
from tests.simulation.world import (
    HOME,
    PUBLICATIONS,
    TASKS,
    At,
    SmallPages,
    World,
    assert_settled,
    interleavings,
    run_job,
    start,
)

MODES = [SaveMode.APPEND, SaveMode.OVERWRITE]


def files(name: str, task: int, folder: str = "") -> dict[str, bytes]:
    """Return path to content: two small files that wait for their batch, and one of several parts."""
    return {
        f"{folder}images/{task} ä.jpg": f"{name}{task}"[-3:].encode(),
        f"{folder}images/{task}-empty": b"",
        f"{folder}tars/{task}.tar": f"{name}, task {task}, many bytes".encode(),
    }


def job_files(name: str, folder: str = "") -> dict[str, bytes]:
    return {path: data for task in range(TASKS) for path, data in files(name, task, folder).items()}


def run_task(ctx: CommitContext, job: JobRecord, task: int, name: str, folder: str = "") -> TaskCommit:
    with TWO_PHASE.setup_task(ctx, job, task) as attempt:
        for path, data in files(name, task, folder).items():
            sink = attempt.open(path)
            sink.write(data[:5])
            sink.write(data[5:])
            sink.close()
        return attempt.commit()


def ready(
    world: World, name: str, mode: SaveMode = SaveMode.APPEND, folder: str = ""
) -> tuple[JobRecord, Callable[[CommitContext], object]]:
    """Run the tasks of a job, and return the job and a function that commits it."""
    ctx = world.context()
    job = start(ctx, mode)
    messages = [run_task(ctx, job, task, name, folder) for task in range(TASKS)]
    return job, lambda ctx: TWO_PHASE.commit_job(ctx, job, messages, TASKS)


def run_chosen(world: World, name: str, mode: SaveMode = SaveMode.APPEND, folder: str = "") -> None:
    ready(world, name, mode, folder)[1](world.context())


def settled(world: World, expected: dict[str, bytes]) -> None:
    assert world.listing() == expected
    assert_settled(world, sorted(expected.values()))


def crashes(publication: str, prepare: Callable[[World], Callable[[CommitContext], object]]) -> Iterator[World]:
    """Yield each world in which one process died at its nth call, for every n, before and after the effect."""
    for after in (False, True):
        for nth in itertools.count(1):
            world = World(publication)
            process = prepare(world)
            try:
                process(world.context(crash_at(nth, after=after)))
            except SimulatedCrash:
                yield world
            else:
                assert nth > 3, "the process made no calls: nothing was tested"
                break


# --- crashes ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_task_attempt_dies_and_is_retried(publication: str) -> None:
    """C2, C3, C9: the uploads of the dead attempt have the same keys as its successor's, and are removed."""
    jobs = []

    def prepare(world: World) -> Callable[[CommitContext], object]:
        jobs.append(start(world.context()))
        return lambda ctx: run_task(ctx, jobs[-1], 0, "dead")

    for world in crashes(publication, prepare):
        assert world.listing() == {}
        messages = [run_task(world.context(), jobs[-1], task, "new") for task in range(TASKS)]
        assert TWO_PHASE.commit_job(world.context(), jobs[-1], messages, TASKS).finished
        assert world.listing() == job_files("new")
        assert world.pending() == [], "C9: swept by the job's own clean-up"
        recover(world.context())
        settled(world, job_files("new"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_driver_dies_in_job_commit(publication: str, mode: SaveMode) -> None:
    """C1, C4, C8, C9. In mode overwrite, each file has the name of one that it replaces."""
    folder = "more/" if mode is SaveMode.APPEND else ""
    old, new = job_files("old"), job_files("new", folder)
    after = {**old, **new} if mode is SaveMode.APPEND else new

    def prepare(world: World) -> Callable[[CommitContext], object]:
        run_chosen(world, "old")
        return ready(world, "new", mode, folder)[1]

    outcomes = set()
    for world in crashes(publication, prepare):
        committed = any(
            d.entry.seq == 2 and d.entry.kind is Kind.COMMIT for d in read_history(world.context()).decisions
        )
        outcomes.add(committed)
        if not committed:
            assert world.listing() == old
        listing = world.listing()
        seen = {file.path: listing[file.path] for file in read_snapshot(world.context()).files}
        assert seen.items() <= old.items() or seen == after, "C4: nothing new before all of it"
        recover(world.context())
        settled(world, after if committed else old)
        recover(world.context())
        settled(world, after if committed else old)  # C10
    assert outcomes == {True, False}


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_abort_leaves_nothing(publication: str) -> None:
    """C5, C9 at every call of the abort."""

    def prepare(world: World) -> Callable[[CommitContext], object]:
        run_chosen(world, "old")
        job, _ = ready(world, "new", SaveMode.OVERWRITE)
        return lambda ctx: TWO_PHASE.abort_job(ctx, job)

    world = World(publication)
    prepare(world)(world.context())
    settled(world, job_files("old"))
    for world in crashes(publication, prepare):
        assert world.listing() == job_files("old")
        recover(world.context())
        settled(world, job_files("old"))


@pytest.mark.parametrize("ender", ["recovery", "next job"])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_task_continues_after_the_abort_and_is_killed(publication: str, ender: str) -> None:
    """C5, C9: Spark kills tasks of an aborted job seconds later. Abort at every call, die at all later calls.

    The abort may come between an attempt's record and the uploads that it announces, so the record must survive.
    """
    for nth in itertools.count(1):
        for death in itertools.count(nth):
            world = World(publication)
            job = start(world.context())
            stop = At(nth, lambda world=world, job=job: TWO_PHASE.abort_job(world.context(), job))
            killed = Faulty(crash_at(death))
            ctx = world.context(store=SmallPages(InterceptedStore(world.store, killed), stop))
            with contextlib.suppress(SimulatedCrash, NotFoundError):  # an upload may be aborted while it is in use
                run_task(ctx, job, 0, "zombie")
            if not stop.fired:
                assert nth > 3
                return
            assert world.listing() == {}
            expected = {}
            if ender == "recovery":
                recover(world.context())
            else:
                world.clock.sleep(QUIET_S)
                run_chosen(world, "new", folder="more/")  # it does not even use the same names
                expected = job_files("new", "more/")
            settled(world, expected)
            if not killed.fired:
                break


@pytest.mark.parametrize("fault", [FaultMode.LOST_REPLY, FaultMode.FAIL])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_failure_at_every_call_of_a_task(publication: str, fault: FaultMode) -> None:
    """C9: an upload whose id no process received is removed too. After a failure, Spark retries."""
    for nth in itertools.count(1):
        world = World(publication)
        job = start(world.context())
        faulty = Faulty(Fault(fault, nth=nth))
        try:
            first = run_task(world.context(store=InterceptedStore(world.store, faulty)), job, 0, "new")
        except HoldfastError:
            first = run_task(world.context(), job, 0, "new")
        second = run_task(world.context(), job, 1, "new")
        TWO_PHASE.commit_job(world.context(), job, [first, second], TASKS)
        assert world.pending() == []
        recover(world.context())
        settled(world, job_files("new"))
        if not faulty.fired:
            return


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("fault", [FaultMode.LOST_REPLY, FaultMode.FAIL])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_failure_at_every_call_of_a_commit_over_the_same_names(publication: str, fault: FaultMode, times: int) -> None:
    """C1, C8: after a lost reply, the new file is distinguished from the old one of that name, whatever its size."""
    for nth in itertools.count(1):
        world = World(publication)
        run_chosen(world, "old")
        job, commit = ready(world, "new", SaveMode.OVERWRITE)
        faulty = Faulty(Fault(fault, nth=nth, times=times))
        try:
            commit(world.context(store=InterceptedStore(world.store, faulty)))
            expected = job_files("new")
        except (OutcomeUnknownError, UnavailableError):
            expected = job_files("new" if TWO_PHASE.abort_job(world.context(), job).committed else "old")
        settled(world, expected)
        if not faulty.fired:
            return


def test_a_lost_upload_is_not_taken_for_the_old_file_of_its_name() -> None:
    """The attempt in the metadata reveals the damage: the old file has the size of the lost one."""
    world = World("upload")
    run_chosen(world, "old")
    _, commit = ready(world, "new", SaveMode.OVERWRITE)
    lost = next(iter_uploads(world.store, ""))
    world.store.abort_upload(lost.key, lost.upload_id)
    with pytest.raises(CorruptDataError, match="accept-damage"):
        commit(world.context())


def test_a_lost_source_is_not_taken_for_the_old_file_of_its_name(tmp_path: Path) -> None:
    """The same on a file system without metadata. Defect: an older file of the same size counted as published."""
    ctx = open_context(str(tmp_path))
    for number in range(2):
        job = start(ctx, SaveMode.OVERWRITE)
        with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
            attempt.open("a").write(b"%d" % number)
            message = attempt.commit()
        if number == 0:
            TWO_PHASE.commit_job(ctx, job, [message], 1)
    [source] = tmp_path.glob("_holdfast/jobs/*/attempts/*/*.pending")
    source.unlink()
    with pytest.raises(CorruptDataError, match="accept-damage"):
        TWO_PHASE.commit_job(ctx, job, [message], 1)
    assert (tmp_path / "a").read_bytes() == b"0"
    ctx.close()


def test_a_rename_whose_reply_was_lost_is_known_by_the_file(tmp_path: Path) -> None:
    ctx = open_context(str(tmp_path))
    job = start(ctx)
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open("a").write(b"1")
        message = attempt.commit()
    faulty = Faulty(Fault(FaultMode.LOST_REPLY, StoreOperation.RENAME))
    lost = dataclasses.replace(ctx, store=InterceptedStore(ctx.store, faulty))
    outcome = TWO_PHASE.commit_job(lost, job, [message], 1)
    assert outcome.finished and (tmp_path / "a").read_bytes() == b"1"
    ctx.close()


@pytest.mark.parametrize("place", ["memory", "local"])
def test_chosen_names_that_look_like_attempts_files(place: str, tmp_path: Path) -> None:
    """``a`` next to ``a.pending/b``. Defect: the attempt's file for the first blocked the directory of the second."""
    ctx = World("rename").context() if place == "memory" else open_context(str(tmp_path))
    names = ["a", "a.pending/b", "a.pending.pending", "b/a", "b/a.pending/c"]
    job = start(ctx)
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        for name in names:
            attempt.open(name).write(name.encode())
        message = attempt.commit()
    TWO_PHASE.commit_job(ctx, job, [message], 1)
    assert sorted(file.path for file in read_snapshot(ctx).files) == sorted(names)
    assert all(ctx.store.get(ctx.key(name)) == name.encode() for name in names)
    ctx.close()


# --- several jobs -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_zombie_while_another_job_overwrites_the_same_names(publication: str) -> None:
    """C2, C6, C7: an attempt of a finished job continues at every moment of the next, which writes the same keys."""

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        job, commit = ready(world, "first", SaveMode.OVERWRITE)
        commit(world.context())

        def second(ctx: CommitContext) -> None:
            other = start(ctx, SaveMode.OVERWRITE)
            messages = [run_task(ctx, other, task, "second") for task in range(TASKS)]
            assert TWO_PHASE.commit_job(ctx, other, messages, TASKS).finished

        return second, lambda: run_task(world.context(), job, 0, "zombie")

    for world in interleavings(publication, prepare):
        assert world.listing() == job_files("second")
        recover(world.context())
        settled(world, job_files("second"))


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_jobs_overwrite_the_same_names_in_the_middle_of_a_zombie(publication: str) -> None:
    """The reverse: the attempt's own job and the next job commit between two calls of the attempt."""

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        job, commit = ready(world, "first", SaveMode.OVERWRITE)

        def zombie(ctx: CommitContext) -> None:
            with contextlib.suppress(NotFoundError):  # its upload is aborted while it is in use
                run_task(ctx, job, 0, "zombie")

        def others() -> None:
            commit(world.context())
            run_chosen(world, "second", SaveMode.OVERWRITE)

        return zombie, others

    for world in interleavings(publication, prepare):
        assert world.listing() == job_files("second")
        recover(world.context())
        settled(world, job_files("second"))


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_a_late_completer_never_replaces_newer_files(publication: str) -> None:
    """C6: a driver stops at any call of its commit. The next job finishes it and replaces its files by name."""

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        run_chosen(world, "old")
        _, slow = ready(world, "slow", SaveMode.OVERWRITE)
        _, late = ready(world, "late", SaveMode.OVERWRITE)
        return slow, lambda: late(world.context())

    seen = set()
    for world in interleavings(publication, prepare):
        newest = read_history(world.context()).decisions[-1].entry
        order = "slow", "late"
        contents = world.listing()
        winner = next(name for name in order if contents == job_files(name))
        seen.add(winner)
        assert len(read_history(world.context()).decisions) == 3 and newest.kind is Kind.COMMIT
        assert world.pending() == []
        recover(world.context())  # announcements of uploads that were spared because of the other job
        settled(world, job_files(winner))
    assert seen == {"slow", "late"}, "both orders were seen"


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_abort_of_one_job_spares_another_with_the_same_names(publication: str) -> None:
    """C7: while one job is cleaned up, another starts uploads of the same keys, at any call of either."""
    others: list[list[TaskCommit]] = []

    def task_inside(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        dead, _ = ready(world, "dead")
        live = start(world.context())
        jobs.append(live)
        return (
            lambda ctx: TWO_PHASE.abort_job(ctx, dead),
            lambda: others.append([run_task(world.context(), live, task, "live") for task in range(TASKS)]),
        )

    def abort_inside(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        dead, _ = ready(world, "dead")
        live = start(world.context())
        jobs.append(live)
        return (
            lambda ctx: others.append([run_task(ctx, live, task, "live") for task in range(TASKS)]),
            lambda: TWO_PHASE.abort_job(world.context(), dead),
        )

    jobs: list[JobRecord] = []
    for prepare in (task_inside, abort_inside):
        for world in interleavings(publication, prepare):
            outcome = TWO_PHASE.commit_job(world.context(), jobs[-1], others[-1], TASKS)
            assert outcome.committed and outcome.finished
            assert world.listing() == job_files("live")
            assert world.pending() == [], "uploads of both went with the last job that had announced them"
            recover(world.context())
            settled(world, job_files("live"))


def test_uploads_of_a_job_in_a_destination_below_are_spared() -> None:
    """C7: ``out put/`` announces a key that a live job of ``out put/dataset1/`` announces as well."""
    world = World("upload")
    parent = world.context(home="out put/")
    dead = start(parent)
    run_task(parent, dead, 0, "dead", "dataset1/")
    _, commit = ready(world, "live")
    TWO_PHASE.abort_job(world.context(home="out put/"), dead)
    commit(world.context())
    assert world.listing() == job_files("live")
    assert world.pending() == [], "the last job that had announced the keys took the other's uploads along"
    recover(world.context(home="out put/"))
    assert world.leftovers("out put/") == []


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_contested_uploads_are_aborted_after_the_other_job_withdraws(publication: str, quiet: bool) -> None:
    """C9: the live attempt that protected the uploads fails and withdraws its announcements."""
    world = World(publication)
    dead, live = start(world.context()), start(world.context())
    killed = TWO_PHASE.setup_task(world.context(), dead, 0)  # it reports nothing and aborts nothing
    killed.open("tars/0.tar").write(b"many bytes")
    if quiet:
        world.clock.sleep(QUIET_S + 1)  # it counts as dead
    with contextlib.suppress(ValueError), TWO_PHASE.setup_task(world.context(), live, 0) as attempt:
        attempt.open("tars/0.tar").write(b"many bytes")
        TWO_PHASE.abort_job(world.context(), dead)
        if publication == "upload":
            assert world.pending() == [f"{HOME}tars/0.tar"] * 2
        raise ValueError("the attempt fails")
    TWO_PHASE.abort_job(world.context(), live)
    recover(world.context())
    settled(world, {})


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_reported_uploads_are_aborted_at_once_although_another_job_uses_the_name(publication: str) -> None:
    """The manifest names the upload by its id, which identifies it."""
    world = World(publication)
    dead, _ = ready(world, "dead")
    _, commit = ready(world, "live", SaveMode.OVERWRITE)
    before = len(world.pending())
    TWO_PHASE.abort_job(world.context(), dead)
    assert len(world.pending()) * 2 == before
    commit(world.context())
    recover(world.context())
    settled(world, job_files("live"))


def test_uploads_of_other_tools_are_spared_unless_their_keys_were_announced() -> None:
    """C7: another tool's upload is aborted only if a job of Holdfast announced its key; otherwise it is left alone."""
    world = World("upload")
    foreign = world.store.create_upload(f"{HOME}images/another.jpg", {})
    run_chosen(world, "new")
    recover(world.context())
    assert world.pending() == [f"{HOME}images/another.jpg"]
    world.store.abort_upload(f"{HOME}images/another.jpg", foreign)


# --- refusals ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_append_to_a_taken_name_is_refused_and_nothing_changes(publication: str) -> None:
    world = World(publication)
    run_chosen(world, "old")
    job, commit = ready(world, "new")
    with pytest.raises(DestinationExistsError, match="name"):
        commit(world.context())
    assert world.listing() == job_files("old")
    TWO_PHASE.abort_job(world.context(), job)
    settled(world, job_files("old"))
    run_job(world.context(), "other")  # generated names never collide with them
    assert world.listing().items() >= job_files("old").items()


@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_two_jobs_append_the_same_names_at_once(publication: str) -> None:
    """C7 at any call of the first job: exactly one of them gets the names."""
    results: list[str] = []

    def prepare(world: World) -> tuple[Callable[[CommitContext], object], Callable[[], object]]:
        jobs = {name: ready(world, name) for name in ("one", "two")}

        def commit(name: str, ctx: CommitContext) -> None:
            try:
                jobs[name][1](ctx)
                results.append(name)
            except ConflictError:
                TWO_PHASE.abort_job(ctx, jobs[name][0])

        return lambda ctx: commit("one", ctx), lambda: commit("two", world.context())

    for world in interleavings(publication, prepare):
        winner = results.pop()
        assert results == [], "one of the two"
        assert world.pending() == []
        recover(world.context())
        settled(world, job_files(winner))


@pytest.mark.parametrize("paths", [("a", "a/b"), ("a/b/c", "a")])
@pytest.mark.parametrize("publication", PUBLICATIONS)
def test_a_name_is_a_file_or_a_directory(publication: str, paths: tuple[str, str]) -> None:
    """The decision refuses clashes within a job and with existing files: a file system would refuse them later."""

    def commit(mode: SaveMode, *names: str) -> None:
        ctx = world.context()
        job = start(ctx, mode)
        with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
            for name in names:
                attempt.open(name).write(name.encode())
            message = attempt.commit()
        try:
            TWO_PHASE.commit_job(ctx, job, [message], 1)
        except InvalidRequestError:
            TWO_PHASE.abort_job(ctx, job)
            raise

    world = World(publication)
    with pytest.raises(InvalidRequestError, match="rename the file"):
        commit(SaveMode.APPEND, *paths)
    commit(SaveMode.APPEND, paths[0])
    for mode in MODES:
        with pytest.raises(InvalidRequestError, match="rename the file"):
            commit(mode, paths[1])
    settled(world, {paths[0]: paths[0].encode()})


def test_uploads_of_chosen_names_beyond_the_limit_are_left_to_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    """C9: intent records stay while uploads that they name may be pending, even ones that no listing has shown yet."""
    monkeypatch.setattr("holdfast.commit.two_phase.cleanup._LIMIT", 2)
    world = World("upload")
    for name in ("a", "b"):
        world.store.create_upload(HOME + name)  # of other tools: they fill the part of the listing that is inspected
    ctx = world.context()
    job = start(ctx)
    dead = TWO_PHASE.setup_task(ctx, job, 0)
    dead.open("chosen").write(b"0123456789")
    world.clock.sleep(QUIET_S + 1)  # the attempt counts as dead
    TWO_PHASE.commit_job(ctx, job, [run_task(ctx, job, 0, "new")], 1)
    assert world.pending() == [HOME + name for name in ("a", "b", "chosen")]
    recover(world.context())
    assert world.pending() == [HOME + name for name in ("a", "b")]
