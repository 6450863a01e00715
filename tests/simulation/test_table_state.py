"""Check that every decision carries the table: aborts, trimming and slow publication lose nothing (C12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, JobRecord, SaveMode, read_instant, read_snapshot
from holdfast.commit.two_phase.decision_log import read_log
from holdfast.errors import ConflictError, InvalidRequestError
from tests.interceptors import SimulatedCrash, crash_at
from tests.simulation.world import STEPWISE, TASKS, World, expected, run_job, run_tasks, start

Table = Mapping[str, object] | None


def table_context(ctx: CommitContext, columns: str) -> CommitContext:
    """Define a minimal contract: a table is a text of columns; jobs append columns, and none may occur twice."""

    def contract(ctx: CommitContext, job: JobRecord, table: Table) -> Table:
        if table is None or job.mode is SaveMode.OVERWRITE:
            return {"format": "toy", "columns": columns}
        known = str(table["columns"])
        if set(known) & set(columns):
            raise ConflictError("another job changed the table meanwhile: run the job again", there=known)
        return {**table, "columns": known + columns}

    return replace(ctx, contract=contract)


def columns(world: World) -> object:
    table = read_snapshot(world.context()).table
    return None if table is None else table["columns"]


def test_every_decision_copies_the_table() -> None:
    """300 consecutive aborted jobs, and a log that retains two entries, lose nothing."""
    world = World("upload")
    ctx = world.context().with_settings(log_retention_entries=2)
    run_job(table_context(ctx, "a"), "one")
    run_job(table_context(ctx, "b"), "two")
    for _ in range(30):
        TWO_PHASE.abort_job(ctx, start(ctx))
    assert read_log(ctx).oldest > 2, "both decisions are trimmed"
    assert columns(world) == "ab"
    run_job(table_context(ctx, "c"), "three", SaveMode.OVERWRITE)
    assert columns(world) == "c"


def test_of_two_first_jobs_the_second_finds_the_table_of_the_first() -> None:
    world = World("upload")
    ctx = table_context(world.context(), "a")
    first, second = start(ctx), start(ctx)
    messages = [run_tasks(ctx, job, name) for job, name in ((first, "first"), (second, "second"))]
    TWO_PHASE.commit_job(ctx, first, messages[0], TASKS)
    with pytest.raises(ConflictError, match="meanwhile"):
        TWO_PHASE.commit_job(ctx, second, messages[1], TASKS)
    TWO_PHASE.abort_job(ctx, second)
    assert world.contents() == expected("first")


def test_a_job_of_files_does_not_add_to_a_table() -> None:
    world = World("upload")
    run_job(table_context(world.context(), "a"), "rows")
    with pytest.raises(InvalidRequestError, match=r"contains a table.*format='toy'"):
        run_job(world.context(), "files")
    run_job(world.context(), "files", SaveMode.OVERWRITE)
    assert columns(world) is None


@pytest.mark.parametrize("publication", ["upload", "rename"])
def test_readers_see_the_table_that_belongs_to_the_files(publication: str) -> None:
    """At every store call of the second job's commit, its columns become visible exactly with its files."""
    seen = set()
    for after in (False, True):
        for nth in range(1, 200):
            world = World(publication)
            retained = world.context().with_settings(log_retention_entries=1)
            run_job(table_context(retained, "a"), "one")
            TWO_PHASE.abort_job(retained, start(retained))
            job = start(retained)
            messages = run_tasks(retained, job, "two")
            dying = table_context(world.context(crash_at(nth, after=after)), "b")
            try:
                TWO_PHASE.commit_job(dying.with_settings(log_retention_entries=1), job, messages, TASKS)
            except SimulatedCrash:
                pass
            else:
                assert nth > 10, "the process made no calls: nothing was tested"
                break
            TWO_PHASE.abort_job(retained, start(retained))  # an entry after the one that is not visible yet
            snapshot = read_snapshot(world.context())
            contents = sorted(world.store.get(world.context().key(file.path)) for file in snapshot.files)
            whole = contents == sorted(expected("one") + expected("two"))
            assert whole or contents == expected("one")
            assert columns(world) == ("ab" if whole else "a")
            seen.add(whole)
    assert seen == {True, False}


def test_an_abort_that_is_not_done_keeps_no_reader_waiting() -> None:
    """It changes nothing that readers see: their own listing is a snapshot at all times."""
    undone = 0
    for nth in range(1, 200):
        world = World("upload")
        run_job(table_context(world.context(), "a"), "one")
        job = start(world.context())
        try:
            TWO_PHASE.abort_job(world.context(crash_at(nth, after=True)), job)
        except SimulatedCrash:
            undone += len(read_log(world.context()).unfinished)
            instant = read_instant(world.context())
            assert instant.is_settled and instant.table is not None
            assert world.contents() == expected("one")
        else:
            break
    assert undone, "an abort that was decided and not done was seen"


@pytest.mark.parametrize("publication", STEPWISE)
def test_no_instant_is_settled_while_a_plain_listing_shows_files_of_two_jobs(publication: str) -> None:
    """C4: the replaced files of a decision that is visible are still listed until they are deleted."""
    mixed = 0
    for nth in range(1, 500):
        world = World(publication)
        run_job(world.context(), "one")
        try:
            run_job(world.context(crash_at(nth, after=True)), "two", SaveMode.OVERWRITE)
        except SimulatedCrash:
            if world.contents() not in (expected("one"), expected("two")):
                mixed += 1
                assert not read_instant(world.context()).is_settled
        else:
            break
    assert mixed > 3, "a listing in the middle of a commit was seen"
