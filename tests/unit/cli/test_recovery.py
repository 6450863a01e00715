"""`recover` and `uploads`: what they end, what they leave alone, and when they ask for confirmation."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.commit import (
    TWO_PHASE,
    CommitContext,
    JobRecord,
    SaveMode,
    get_committer,
    open_context,
    read_snapshot,
)
from holdfast.commit.ids import AttemptId, FileOwner, new_job_id
from holdfast.commit.ids import spark_file_name as classic_name
from holdfast.errors import AccessDeniedError, UnsupportedError
from holdfast.runtime import SystemIds
from holdfast.stores.base import ObjectInfo, Overwrite, Part, PutMode, iter_uploads, multipart
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.interceptors import Fault, FaultMode, Faulty, SimulatedCrash
from tests.unit.cli.destinations import commit_table, run, start_table


@pytest.fixture
def ctx() -> Iterator[CommitContext]:
    """A destination on an in-memory store with multipart uploads."""
    found = open_context(f"memory://{SystemIds().token()}/flights")
    yield found
    found.store.close()


def pending(ctx: CommitContext) -> int:
    return len(list(iter_uploads(multipart(ctx.store), ctx.prefix)))


def leave_behind(ctx: CommitContext) -> None:
    """Leave the upload of a late attempt, whose job is over."""
    job, commits = start_table(ctx)
    TWO_PHASE.commit_job(ctx, job, commits, 1)
    attempt = TWO_PHASE.setup_task(ctx, job, 0)
    store = multipart(ctx.store)
    key = ctx.key(attempt.file_name(".parquet"))
    part: Part = store.upload_part(key, store.create_upload(key), 1, b"x")
    assert part.size_bytes == 1
    attempt.abort()


# --- recover ----------------------------------------------------------------------------------------------------------
def test_a_young_undecided_job_is_left_alone_and_a_command_suggested(ctx: CommitContext) -> None:
    job, commits = start_table(ctx)
    result = run("recover", ctx.url)
    assert result.exit_code == 0
    assert f"left alone: undecided job {job.job}" in result.stdout
    assert f"holdfast recover {ctx.url} --older-than 0s, which ends every undecided job" in result.stdout
    assert TWO_PHASE.commit_job(ctx, job, commits, 1).committed


def test_age_zero_ends_every_undecided_job(ctx: CommitContext) -> None:
    jobs = [start_table(ctx)[0].job for _ in range(2)]
    for command in ("history", "verify"):
        assert "--older-than 0s ends it at once, and every other undecided job" in run(command, ctx.url).output
    result = run("recover", ctx.url, "--older-than", "0s")
    assert result.exit_code == 0
    assert all(f"aborted: job {job}" in result.stdout for job in jobs)
    assert pending(ctx) == 0
    assert "nothing to do" in run("recover", ctx.url).stdout


def test_a_dry_run_changes_nothing(ctx: CommitContext) -> None:
    job, commits = start_table(ctx)
    result = run("recover", ctx.url, "--older-than", "0s", "--dry-run")
    assert f"would be aborted: job {job.job}" in result.stdout
    assert TWO_PHASE.commit_job(ctx, job, commits, 1).committed


def test_damage_exits_1_unless_it_is_accepted(ctx: CommitContext) -> None:
    job, commits = start_table(ctx)
    crash = Fault(FaultMode.CRASH_AFTER, StoreOperation.PUT, "*/_holdfast/log/*.json")
    with pytest.raises(SimulatedCrash):
        TWO_PHASE.commit_job(replace(ctx, store=InterceptedStore(ctx.store, Faulty(crash))), job, commits, 1)
    store = multipart(ctx.store)
    first = next(iter_uploads(store, ctx.prefix))
    store.abort_upload(first.key, first.upload_id)  # somebody's lifecycle rule
    result = run("recover", ctx.url)
    assert result.exit_code == 1
    assert f"damaged: {job.job}" in result.stdout
    assert "--accept-damage" in result.stdout
    assert read_snapshot(ctx).files == ()
    accepted = run("recover", ctx.url, "--accept-damage")
    assert accepted.exit_code == 0 and "all of its files" not in accepted.stdout and "lost: 1 file" in accepted.stdout
    assert len(read_snapshot(ctx).files) == 1


def test_uploads_that_this_user_may_not_end_are_not_called_damaged(
    ctx: CommitContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_table(ctx)

    def refuse(store: MemoryStore, key: str, upload_id: str) -> None:
        raise AccessDeniedError("the policy forbids ending uploads", key=key)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "abort_upload", refuse)
        result = run("recover", ctx.url, "--older-than", "0s")
    assert result.exit_code == 1 and "damaged" not in result.stdout
    assert re.search("not finished: cleanup: .*forbids.*run this command again", result.stdout)
    assert run("recover", ctx.url, "--older-than", "0s").exit_code == 0 and pending(ctx) == 0


def test_recover_as_json(ctx: CommitContext) -> None:
    job, _ = start_table(ctx)
    document = json.loads(run("recover", ctx.url, "--older-than", "0s", "--json").stdout)
    assert document["rolled_back"] == [job.job]
    assert document["left_alone"] == []


@pytest.mark.parametrize("text", ["soon", "1", "-1h", "1y", "h"])
def test_an_invalid_age_is_refused(ctx: CommitContext, text: str) -> None:
    result = run("recover", ctx.url, "--older-than", text)
    assert result.exit_code == 2
    assert "such as 0s, 15m, 1h or 2d" in result.stderr


# --- uploads ----------------------------------------------------------------------------------------------------------
def test_uploads_are_listed_with_their_state(ctx: CommitContext) -> None:
    leave_behind(ctx)
    start_table(ctx)
    multipart(ctx.store).create_upload(ctx.key("theirs.bin"))
    found = json.loads(run("uploads", "list", ctx.url, "--json").stdout)["uploads"]
    assert sorted(one["state"] for one in found) == ["other tool", "over", "unfinished", "unfinished"]
    assert "4 pending uploads below" in run("uploads", "list", ctx.url).stdout
    assert "0 pending uploads below" in run("uploads", "list", ctx.url, "--older-than", "1h").stdout


def test_only_uploads_below_the_url_are_seen(ctx: CommitContext) -> None:
    """facts: dataset1 beside dataset10."""
    start_table(open_context(f"{ctx.url}10"))
    assert json.loads(run("uploads", "list", ctx.url, "--json").stdout)["uploads"] == []


def test_abort_removes_leftovers_but_no_upload_of_an_unfinished_job(ctx: CommitContext) -> None:
    leave_behind(ctx)
    job, commits = start_table(ctx)
    multipart(ctx.store).create_upload(ctx.key("theirs.bin"))
    result = run("uploads", "abort", ctx.url, "--older-than", "0s", "--yes")
    assert result.exit_code == 0
    assert "1 upload aborted" in result.stdout
    assert "left alone: 2 of unfinished jobs: run holdfast recover" in result.stdout
    assert "left alone: 1 of other tools or of unknown jobs: see --all-tools" in result.stdout
    assert TWO_PHASE.commit_job(ctx, job, commits, 1).committed


def test_abort_at_a_parent_spares_the_jobs_below_it(ctx: CommitContext) -> None:
    """C7: the record of a job is in its own destination, which may be below the url."""
    job, commits = start_table(ctx)
    parent = ctx.url.rpartition("/")[0]
    result = run("uploads", "abort", parent, "--older-than", "0s", "--all-tools", "--yes")
    assert "0 uploads aborted" in result.stdout
    assert TWO_PHASE.commit_job(ctx, job, commits, 1).committed
    assert len(read_snapshot(ctx).files) == 2


@pytest.mark.parametrize("above", [False, True])
def test_uploads_under_chosen_names_are_known_by_their_announcement(ctx: CommitContext, above: bool) -> None:
    """C7: the key of a file of `holdfast.job` names no job, but the file is the data of an unfinished job."""
    job = TWO_PHASE.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open("images/1.jpg").write(b"picture")
        commit = attempt.commit()
    url = ctx.url.rpartition("/")[0] if above else ctx.url
    result = run("uploads", "abort", url, "--older-than", "0s", "--all-tools", "--yes")
    assert "0 uploads aborted" in result.stdout
    found = json.loads(run("uploads", "list", url, "--json").stdout)["uploads"]
    assert [(one["state"], one["job"]) for one in found] == [("unfinished", job.job)]
    assert TWO_PHASE.commit_job(ctx, job, [commit], 1).committed
    assert [file.path for file in read_snapshot(ctx).files] == ["images/1.jpg"]


def test_uploads_of_other_tools_are_aborted_only_on_request(ctx: CommitContext) -> None:
    commit_table(ctx.url)
    multipart(ctx.store).create_upload(ctx.key("theirs.bin"))
    document = json.loads(
        run("uploads", "abort", ctx.url, "--older-than", "0s", "--all-tools", "--yes", "--json").stdout
    )
    assert [one["path"] for one in document["aborted"]] == ["theirs.bin"]
    assert pending(ctx) == 0


def test_young_uploads_are_not_aborted_by_default(ctx: CommitContext) -> None:
    leave_behind(ctx)
    result = run("uploads", "abort", ctx.url, "--yes")
    assert "left alone: 1 younger than 1d: see --older-than" in result.stdout
    assert pending(ctx) == 1


def test_without_a_terminal_nothing_is_aborted(ctx: CommitContext) -> None:
    leave_behind(ctx)
    result = run("uploads", "abort", ctx.url, "--older-than", "0s", answer="y\n")
    assert result.exit_code == 2
    assert "run this command with --yes" in result.stderr
    assert pending(ctx) == 1


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 130, 1), ("\n", 130, 1)])
def test_abort_asks_for_confirmation(
    ctx: CommitContext, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: int
) -> None:
    """Scenario 76: abort prompts, unless --yes is given."""
    leave_behind(ctx)
    monkeypatch.setattr("holdfast.cli.output.is_terminal", lambda stream: stream is sys.stdin)
    result = run("uploads", "abort", ctx.url, "--older-than", "0s", answer=answer)
    assert (result.exit_code, pending(ctx)) == (code, left)
    assert re.search(r"Abort 1 upload permanently\?", result.stdout)


# --- uploads list --expect --------------------------------------------------------------------------------------------
def test_the_exit_code_tells_whether_the_number_is_the_expected_one(ctx: CommitContext) -> None:
    """Scenario 75."""
    multipart(ctx.store).create_upload(ctx.key("a"))
    for expected, code in (("1", 0), ("0", 1), ("2", 1)):
        result = run("uploads", "list", ctx.url, "--expect", expected)
        assert result.exit_code == code
        assert f"1 pending upload below {ctx.url}, {expected} expected" in result.stdout
    assert run("uploads", "list", ctx.url, "--expect", "0", "--older-than", "10m").exit_code == 0
    document = json.loads(run("uploads", "list", ctx.url, "--expect", "2", "--json").stdout)
    assert (document["expected"], len(document["uploads"])) == (2, 1)


@pytest.mark.parametrize("number", ["-1", "many"])
def test_expect_refuses_an_invalid_count(ctx: CommitContext, number: str) -> None:
    """Scenario 75: a negative number is wrong usage."""
    result = run("uploads", "list", ctx.url, "--expect", number)
    assert (result.exit_code, result.stdout) == (2, "")


# --- jobs of committers that keep no log ------------------------------------------------------------------------------
def classic_uploads(ctx: CommitContext) -> JobRecord:
    """Start a job of `magic` with one committed task of two uploads, and do not end it."""
    chosen = get_committer("magic")
    job = chosen.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    attempt = chosen.setup_task(ctx, job, 0)
    for number in range(2):
        attempt.open(f"month={number}/{attempt.file_name('.csv')}").write(b"x" * 9_000_000)
    attempt.commit()
    return job


def test_uploads_of_a_job_without_a_log_are_listed_but_not_aborted(ctx: CommitContext) -> None:
    job = classic_uploads(ctx)
    found = json.loads(run("uploads", "list", ctx.url, "--json").stdout)["uploads"]
    assert [(one["job"], one["committer"], one["state"]) for one in found] == [(job.job, "magic", "unfinished")] * 2
    assert "0 uploads aborted" in run("uploads", "abort", ctx.url, "--older-than", "0s", "--yes").stdout
    result = run("recover", ctx.url, "--older-than", "0s")
    assert (result.exit_code, pending(ctx)) == (0, 0)
    assert f"job {job.job} (magic): " in result.stdout


def test_uploads_of_an_unknown_job_are_aborted_only_on_request(ctx: CommitContext) -> None:
    """Before its first task commit, a live job looks like a dead one; at a parent's url it always does."""
    owner = FileOwner(new_job_id(ctx.clock, ctx.ids), 0, AttemptId(ctx.ids.token()))
    multipart(ctx.store).create_upload(ctx.key(classic_name(owner, 0, ".csv")))
    for url in (ctx.url, ctx.url.rpartition("/")[0]):
        found = json.loads(run("uploads", "list", url, "--json").stdout)["uploads"]
        assert [(one["job"], one["committer"], one["state"]) for one in found] == [(owner.job, None, "unknown")]
        assert "0 uploads aborted" in run("uploads", "abort", url, "--older-than", "0s", "--yes").stdout
    run("uploads", "abort", ctx.url, "--older-than", "0s", "--all-tools", "--yes")
    assert pending(ctx) == 0


def test_a_young_job_without_a_log_is_left_alone(ctx: CommitContext) -> None:
    job = classic_uploads(ctx)
    assert f"left alone: undecided job {job.job} (magic)" in run("recover", ctx.url).stdout
    result = run("recover", ctx.url, "--older-than", "0s", "--dry-run")
    assert f"would be aborted: job {job.job} (magic): " in result.stdout
    assert pending(ctx) == 2


def test_uploads_of_a_directory_on_this_machine(tmp_path: Path) -> None:
    commit_table(str(tmp_path / "t"))
    assert run("uploads", "list", str(tmp_path / "t")).stdout.startswith("0 pending uploads")
    assert os.listdir(tmp_path) == ["t"]


def test_recover_works_without_conditional_writes_if_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect: only jobs could accept such a store, so what they left could not be finished."""

    class Refusing(MemoryStore):
        def put(  # type: ignore[override]  # the default is the same
            self,
            key: str,
            data: bytes,
            mode: PutMode = Overwrite(),  # as its parent
            metadata: Mapping[str, str] | None = None,
        ) -> ObjectInfo:
            if mode != Overwrite():
                raise UnsupportedError("501")
            return super().put(key, data, mode, metadata)

    store = Refusing()
    monkeypatch.setattr("holdfast.stores.memory._stores", {"unfenced": store})
    ctx = open_context("memory://unfenced/t").with_settings(allow_unfenced=True)
    job, commits = start_table(ctx)
    dying = replace(
        ctx, store=InterceptedStore(store, Faulty(Fault(FaultMode.CRASH_BEFORE, StoreOperation.COMPLETE_UPLOAD)))
    )
    with pytest.raises(SimulatedCrash):
        TWO_PHASE.commit_job(dying, job, commits, 1)
    refused = run("recover", "memory://unfenced/t")
    assert refused.exit_code == 1 and "accept that with allow_unfenced" in refused.output
    assert run("recover", "memory://unfenced/t", "--allow-unfenced").exit_code == 0
    assert len(read_snapshot(ctx).files) == 2
