"""Test the production problems of paper 000, section XIV, once for every safe committer."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from holdfast.commit import SaveMode
from holdfast.runtime import ThreadRunner
from tests.unit.commit.committer_jobs import CONCURRENT, SAFE, Bucket

HOMES = ["dataset1/", "out put/dataset 1/", "ä+%20#?/sub dir/"]


@pytest.mark.parametrize("committer", SAFE)
def test_no_thread_is_left_after_fifty_jobs(committer: str) -> None:
    """HADOOP-16570, HADOOP-16798, scenarios 66 and 67: leaked threads exhausted the memory of long-lived drivers."""
    bucket = Bucket(committer, runner=ThreadRunner(threads=4, background_threads=2))
    before = threading.active_count()
    for number in range(50):
        bucket.run_job(bucket.context(f"t{number}/"), "new")
    assert threading.active_count() == before
    assert bucket.debris() == []


@pytest.mark.parametrize("committer", CONCURRENT)
def test_two_jobs_on_one_destination(committer: str) -> None:
    """XIV.C.1, scenario 27: the job that ends first does not touch the other one's hidden data (C7)."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    one, two = bucket.start(ctx), bucket.start(ctx)
    ones = [bucket.run_task(ctx, one, task, bucket.contents("one", task)) for task in range(2)]
    twos = [bucket.run_task(ctx, two, task, bucket.contents("two", task)) for task in range(2)]
    bucket.commit(ctx, one, ones)
    assert sorted(bucket.visible().values()) == bucket.expected("one")
    bucket.commit(ctx, two, twos)
    assert sorted(bucket.visible().values()) == sorted(bucket.expected("one") + bucket.expected("two"))
    assert bucket.debris() == []


@pytest.mark.parametrize("committer", CONCURRENT)
def test_an_abort_leaves_the_other_job_alone(committer: str) -> None:
    """C7 again: clean-up after an abort was what aborted other jobs' uploads (HADOOP-18797)."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    one, two = bucket.start(ctx), bucket.start(ctx)
    ones = [bucket.run_task(ctx, one, task, bucket.contents("one", task)) for task in range(2)]
    bucket.run_task(ctx, two, 0, bucket.contents("two", 0))
    bucket.value.abort_job(ctx, two)
    bucket.commit(ctx, one, ones)
    assert sorted(bucket.visible().values()) == bucket.expected("one")
    assert bucket.debris() == []


@pytest.mark.parametrize("committer", SAFE)
def test_adjacent_destinations(committer: str) -> None:
    """Scenarios 25 and 26, paper 000 VIII.D: ``dataset1`` never reaches into ``dataset10`` (C7)."""
    bucket = Bucket(committer)
    near, far = bucket.context("dataset1/"), bucket.context("dataset10/")
    one, two = bucket.start(near), bucket.start(far)
    ones = [bucket.run_task(near, one, task, bucket.contents("one", task)) for task in range(2)]
    twos = [bucket.run_task(far, two, task, bucket.contents("two", task)) for task in range(2)]
    bucket.commit(near, one, ones)
    bucket.commit(far, two, twos)
    assert sorted(bucket.visible("dataset1/").values()) == bucket.expected("one")
    assert sorted(bucket.visible("dataset10/").values()) == bucket.expected("two")


@pytest.mark.parametrize("committer", SAFE)
def test_jobs_of_one_second_have_ids_of_their_own(committer: str) -> None:
    """SPARK-33402, SPARK-33230, HADOOP-17318, scenario 28: two jobs of one second shared a directory."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    jobs = []
    for _ in range(20):
        bucket.clock.at_s = 1_800_000_000.0  # the clock does not move
        jobs.append(bucket.start(ctx).job)
    assert max(Counter(jobs).values()) == 1


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("committer", SAFE)
def test_whitespace_in_paths(committer: str, home: str) -> None:
    """HADOOP-17112, scenario 33: spaces, and other characters that urls escape, in destinations and file names."""
    bucket = Bucket(committer)
    ctx = bucket.context(home)
    job = bucket.start(ctx)
    path = "day=a b/  leading and trailing /file3 with space %20+é.bin"
    with bucket.value.setup_task(ctx, job, 0) as attempt:
        sink = attempt.open(path)
        sink.write(b"content")
        sink.close()
        commit = attempt.commit()
    bucket.commit(ctx, job, [commit])
    assert bucket.visible(home) == {path: b"content"}
    assert bucket.debris() == []


@pytest.mark.parametrize("committer", SAFE)
def test_bytes_and_files_are_counted(committer: str) -> None:
    """HADOOP-17414, SPARK-33739, scenario 72: the written files are known, although none is visible."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    commits = [bucket.run_task(ctx, job, task, bucket.contents("new", task)) for task in range(2)]
    size_bytes = sum(len(content) for content in bucket.expected("new"))
    assert sum(commit.totals.size_bytes for commit in commits) == size_bytes
    outcome = bucket.commit(ctx, job, commits)
    assert (outcome.totals.files, outcome.totals.size_bytes) == (4, size_bytes)
    assert outcome.report is not None and outcome.report.totals == outcome.totals


@pytest.mark.parametrize("committer", ["two_phase", "magic", "staging-directory", "manifest"])
def test_a_long_job_commit_shows_progress(committer: str) -> None:
    """HADOOP-15961, scenario 68: a commit that makes progress reports it, so it does not appear to hang."""
    bucket = Bucket(committer)
    seen: list[tuple[str, int, int]] = []
    ctx = bucket.context(progress=lambda stage, done, total: seen.append((stage, done, total)))
    bucket.run_job(ctx, "new", tasks=5)
    last = seen[-1] if seen else ("", 0, 0)
    assert len(seen) >= 10 and max(done for _stage, done, _total in seen) >= 10, last


@pytest.mark.parametrize("committer", SAFE)
@pytest.mark.parametrize("mode", [SaveMode.APPEND, SaveMode.FAIL])
def test_a_task_without_output(committer: str, mode: SaveMode) -> None:
    """Scenario 3: no output is not an error, and the job's report names no file."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx, mode)
    outcome = bucket.commit(ctx, job, [bucket.run_task(ctx, job, 0, [])])
    assert outcome.committed and bucket.visible() == {} and bucket.debris() == []
    assert outcome.report is not None and outcome.report.filenames == ()


@pytest.mark.parametrize("committer", SAFE)
def test_an_empty_file(committer: str) -> None:
    """Scenario 2: an empty file is a file too."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    bucket.commit(ctx, job, [bucket.run_task(ctx, job, 0, [b"", b"x"])])
    assert sorted(bucket.visible().values()) == [b"", b"x"]


@pytest.mark.parametrize("committer", SAFE)
def test_nothing_is_seen_before_the_job_commits(committer: str) -> None:
    """Scenarios 1 and 38 (C4): neither while a task writes, nor after it has committed."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    with bucket.value.setup_task(ctx, job, 0) as attempt:
        sink = attempt.open(f"day=0/{attempt.file_name('.txt')}")
        sink.write(b"abcdefghijkl")
        assert bucket.visible() == {}
        sink.close()
        assert bucket.visible() == {}
        commit = attempt.commit()
    assert bucket.visible() == {}
    bucket.commit(ctx, job, [commit])
    assert list(bucket.visible().values()) == [b"abcdefghijkl"]
    assert bucket.debris() == []


@pytest.mark.parametrize("committer", SAFE)
def test_of_two_attempts_at_a_task_one_counts(committer: str) -> None:
    """Scenario 7, HADOOP-17258: the second attempt's commit is not an error, and only one's files appear (C2, C3)."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    job = bucket.start(ctx)
    bucket.run_task(ctx, job, 0, [b"first", b"first", b"first"])
    accepted = bucket.run_task(ctx, job, 0, [b"second", b"second"])
    bucket.commit(ctx, job, [accepted])
    assert sorted(bucket.visible().values()) == [b"second", b"second"]
    assert bucket.debris() == []


@pytest.mark.parametrize("committer", SAFE)
def test_aborts(committer: str) -> None:
    """Scenarios 16 to 20: of tasks and jobs, with and without work, once and twice."""
    bucket = Bucket(committer)
    ctx = bucket.context()
    idle = bucket.start(ctx)
    bucket.value.abort_job(ctx, idle)
    bucket.value.abort_job(ctx, idle)
    job = bucket.start(ctx)
    bucket.run_task(ctx, job, 0, [b"committed"])
    with bucket.value.setup_task(ctx, job, 1) as attempt:
        attempt.open(f"day=0/{attempt.file_name('.txt')}").write(b"dropped")
    bucket.value.abort_task(ctx, job, attempt.owner)
    bucket.value.abort_job(ctx, job)
    bucket.value.abort_job(ctx, job)
    assert bucket.visible() == {} and bucket.debris() == []
