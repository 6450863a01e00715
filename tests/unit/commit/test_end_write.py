"""Check how `settle_write` reports the end of an interrupted write; tests of the command line cover all committers."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

import pytest

from holdfast.cli.write import _describe_end
from holdfast.commit import TWO_PHASE, CommitContext, CommitSettings, SaveMode, get_committer, open_context
from holdfast.commit.leftovers import Leftover, RecoveryAction
from holdfast.commit.writes import TOKEN, EndedWrite, WriteEnd, WriteJobIdSource, settle_write
from holdfast.errors import HoldfastError
from holdfast.stores.interceptors import StoreOperation
from tests.interceptors import FOR_EVER, Fault, FaultMode, SimulatedCrash, crash_at
from tests.simulation.world import PUBLICATIONS, TASKS, World, assert_settled, expected, run_job, run_tasks

TOKEN_VALUE = "00000000abcd"


@pytest.fixture
def ctx(tmp_path: Path) -> CommitContext:
    return open_context(str(tmp_path / "out"))


def test_a_write_that_never_started_has_no_job(ctx: CommitContext) -> None:
    assert settle_write(ctx, TWO_PHASE, TOKEN_VALUE) == EndedWrite(end=WriteEnd.ABORTED)


def test_an_undecided_job_is_aborted_once(ctx: CommitContext) -> None:
    named = ctx.with_environment(ids=WriteJobIdSource(TOKEN_VALUE, ctx.ids))
    job = TWO_PHASE.setup_job(named, SaveMode.APPEND, {TOKEN: TOKEN_VALUE})
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open(attempt.file_name(".csv")).write(b"a")
        attempt.commit()
    assert settle_write(ctx, TWO_PHASE, TOKEN_VALUE) == EndedWrite(end=WriteEnd.ABORTED, job=job.job)
    assert settle_write(ctx, TWO_PHASE, TOKEN_VALUE).end is WriteEnd.ABORTED, "C10"


def test_a_job_that_cannot_be_judged_is_kept(ctx: CommitContext, monkeypatch: pytest.MonkeyPatch) -> None:
    finished: list[str] = []
    leftover = Leftover(
        committer="magic",
        job=f"20260102030405678-{TOKEN_VALUE}",
        active_at_s=0.0,
        action=RecoveryAction.KEEP,
        reason="1 file is lost",
        recover=lambda: finished.append("finish"),
    )
    monkeypatch.setattr("holdfast.commit.writes.find_leftovers", lambda ctx: iter([leftover]))
    ended = settle_write(ctx, get_committer("magic"), TOKEN_VALUE)
    assert ended == EndedWrite(end=WriteEnd.KEPT, job=leftover.job, reason="1 file is lost")
    assert finished == ["finish"]


def test_a_write_without_records_and_files_has_no_job(tmp_path: Path) -> None:
    ctx = open_context(str(tmp_path / "out"), settings=CommitSettings())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "foreign.csv").write_bytes(b"1")
    assert settle_write(ctx, get_committer("file-v2"), TOKEN_VALUE) == EndedWrite(end=WriteEnd.ABORTED)
    assert (tmp_path / "out" / "foreign.csv").exists()


@pytest.mark.parametrize("publication", PUBLICATIONS)
@pytest.mark.parametrize("after", [False, True])
def test_whatever_it_says_holds_wherever_the_driver_stopped(publication: str, after: bool) -> None:
    """C9. Defect: a job that was only decided was reported as visible, and nothing made it so."""
    ends = set()
    for nth in itertools.count(1):
        world = World(publication)
        run_job(world.context(), "old")
        named = world.context().with_environment(ids=WriteJobIdSource(TOKEN_VALUE, world.ids))
        job = TWO_PHASE.setup_job(named, SaveMode.APPEND, {TOKEN: TOKEN_VALUE})
        assert job is not None
        messages = run_tasks(world.context(), job, "new")
        try:
            TWO_PHASE.commit_job(world.context(crash_at(nth, after=after)), job, messages, TASKS)
        except SimulatedCrash:
            ended = settle_write(world.context(), TWO_PHASE, TOKEN_VALUE)
            assert (ended.job, ended.reason) == (job.job, "")
            new = expected("new") if ended.end is WriteEnd.COMMITTED else []
            assert_settled(world, sorted(expected("old") + new))
            ends.add(ended.end)
            continue
        break
    assert ends == {WriteEnd.COMMITTED, WriteEnd.ABORTED}


def test_a_decided_job_that_cannot_be_finished_says_so() -> None:
    world = World("upload")
    job = TWO_PHASE.setup_job(world.context(), SaveMode.APPEND, {TOKEN: TOKEN_VALUE})
    assert job is not None
    messages = run_tasks(world.context(), job, "new")
    broken = Fault(FaultMode.FAIL, StoreOperation.COMPLETE_UPLOAD, times=FOR_EVER)
    with contextlib.suppress(HoldfastError):
        TWO_PHASE.commit_job(world.context(broken), job, messages, TASKS)
    ended = settle_write(world.context(broken), TWO_PHASE, TOKEN_VALUE)
    assert (ended.end, ended.job) == (WriteEnd.COMMITTED, job.job) and "run holdfast recover" in ended.reason
    assert "was already committed" in _describe_end(ended) and "run holdfast recover" in _describe_end(ended)
    assert "visible:" not in _describe_end(ended)
