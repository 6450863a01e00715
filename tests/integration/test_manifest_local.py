"""Test ``manifest`` on a real file system: threads, odd names, files of a dead writer, drivers that die of SIGKILL."""

from __future__ import annotations

import itertools
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.commit import COMMITTERS, CommitContext, JobRecord, SaveMode, TaskCommit, open_context
from holdfast.commit.layout import iter_visible
from holdfast.commit.leftovers import RecoveryAction
from tests.patience import PATIENCE_S

MANIFEST = COMMITTERS["manifest"]
KILLER = Path(__file__).with_name("kill_driver.py")
TASKS = 2


def run_tasks(ctx: CommitContext, job: JobRecord, name: str) -> list[TaskCommit]:
    """Write two files per task, in two partitions with spaces in their names."""
    commits = []
    for task in range(TASKS):
        with MANIFEST.setup_task(ctx, job, task) as attempt:
            for number in range(2):
                sink = attempt.open(f"day={number} of 2/{attempt.file_name('.txt')}")
                sink.write(f"{name}/{task}/{number}".encode())
                sink.close()
            commits.append(attempt.commit())
    return commits


def start(ctx: CommitContext, mode: SaveMode = SaveMode.APPEND) -> JobRecord:
    job = MANIFEST.setup_job(ctx, mode)
    assert job is not None
    return job


def expected(name: str) -> list[str]:
    return [f"{name}/{task}/{number}" for task in range(TASKS) for number in range(2)]


def visible(ctx: CommitContext) -> list[str]:
    return sorted(ctx.store.get(info.key).decode() for _path, info in iter_visible(ctx.store, ctx.prefix))


def on_disk(root: Path) -> set[str]:
    """List everything below a directory, hidden files and empty directories included."""
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_jobs_on_local_disk(tmp_path: Path) -> None:
    """Scenario 1, scenario 33 and scenario 62.

    Append, overwrite, chosen names, and an attempt that died while it wrote.
    """
    ctx = open_context(str(tmp_path / "out put" / "50% of+all"), threads=8)
    for name, mode in (("old", SaveMode.APPEND), ("new", SaveMode.OVERWRITE)):
        job = start(ctx, mode)
        dead = MANIFEST.setup_task(ctx, job, 0).open("day=0/dead.txt")
        dead.write(b"x" * 100)  # its process dies: neither closed nor dropped
        assert MANIFEST.commit_job(ctx, job, run_tasks(ctx, job, name), TASKS).finished
        dead.discard()
    assert visible(ctx) == expected("new")
    files = [
        f"day={number} of 2/part-{task:05d}-{job.job}-c{number:03d}.txt" for task in range(2) for number in range(2)
    ]
    assert on_disk(tmp_path / "out put" / "50% of+all") == {"_SUCCESS", "day=0 of 2", "day=1 of 2", *files}


def killed(ctx: CommitContext, job: JobRecord, commits: list[TaskCommit], nth: int) -> bool:
    """Commit in another process that dies before its nth store call; return whether it made that call."""
    done = subprocess.run(
        [sys.executable, str(KILLER), ctx.url, "null", str(nth), "any"],
        input=pickle.dumps((job, commits)),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode != 0


@pytest.mark.slow
def test_driver_killed_in_job_commit(tmp_path: Path) -> None:
    """C9: a real SIGKILL before every second store call; recovery leaves all files or none, and nothing else."""
    seen = set()
    for nth in itertools.count(1, 2):
        ctx = open_context(str(tmp_path / str(nth)), threads=4)
        old = start(ctx)
        MANIFEST.commit_job(ctx, old, run_tasks(ctx, old, "old"), TASKS)
        job = start(ctx)
        died = killed(ctx, job, run_tasks(ctx, job, "new"), nth)
        shown = len(visible(ctx)) - len(expected("old"))
        assert MANIFEST.leaves_records
        for leftover in MANIFEST.find_leftovers(ctx):
            seen.add(leftover.action)
            leftover.recover()
        assert visible(ctx) == sorted(expected("old") + (expected("new") if shown else []))
        assert not any("_temporary" in path for path in on_disk(tmp_path / str(nth)))
        if not died:
            assert nth > 9
            break
    assert seen == {RecoveryAction.BACK, RecoveryAction.FORWARD, RecoveryAction.CLEAN}
