"""Check how `end_write` reports the end of an interrupted write; tests of the command line cover all committers."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.commit import TWO_PHASE, CommitContext, CommitSettings, SaveMode, get_committer, open_context
from holdfast.commit.committer import Action, Leftover
from holdfast.commit.end_write import EndedWrite, WriteEnd, end_write
from holdfast.commit.write_lookup import TOKEN, JobIds

TOKEN_VALUE = "00000000abcd"


@pytest.fixture
def ctx(tmp_path: Path) -> CommitContext:
    return open_context(str(tmp_path / "out"))


def test_a_write_that_never_started_has_no_job(ctx: CommitContext) -> None:
    assert end_write(ctx, TWO_PHASE, TOKEN_VALUE) == EndedWrite(end=WriteEnd.ABORTED)


def test_an_undecided_job_is_aborted_once(ctx: CommitContext) -> None:
    named = ctx.with_environment(ids=JobIds(TOKEN_VALUE, ctx.ids))
    job = TWO_PHASE.setup_job(named, SaveMode.APPEND, {TOKEN: TOKEN_VALUE})
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open(attempt.file_name(".csv")).write(b"a")
        attempt.commit()
    assert end_write(ctx, TWO_PHASE, TOKEN_VALUE) == EndedWrite(end=WriteEnd.ABORTED, job=job.job)
    assert end_write(ctx, TWO_PHASE, TOKEN_VALUE).end is WriteEnd.ABORTED, "C10"


def test_a_job_that_cannot_be_judged_is_kept(ctx: CommitContext, monkeypatch: pytest.MonkeyPatch) -> None:
    finished: list[str] = []
    leftover = Leftover(
        committer="magic",
        job=f"20260102030405678-{TOKEN_VALUE}",
        active_at_s=0.0,
        action=Action.KEEP,
        reason="1 file is lost",
        recover=lambda: finished.append("finish"),
    )
    monkeypatch.setattr("holdfast.commit.end_write.find_leftovers", lambda ctx, committer: [leftover])
    ended = end_write(ctx, get_committer("magic"), TOKEN_VALUE)
    assert ended == EndedWrite(end=WriteEnd.KEPT, job=leftover.job, reason="1 file is lost")
    assert finished == ["finish"]


def test_a_write_without_records_and_files_has_no_job(tmp_path: Path) -> None:
    ctx = open_context(str(tmp_path / "out"), settings=CommitSettings(allow_unsafe=True))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "foreign.csv").write_bytes(b"1")
    assert end_write(ctx, get_committer("direct"), TOKEN_VALUE) == EndedWrite(end=WriteEnd.ABORTED)
    assert (tmp_path / "out" / "foreign.csv").exists()
