"""Hadoop's S3A committers and ours on one job: what tasks of the one have committed, the other's job commit completes.

The jars are those of docs/how-to/read-with-s3a.md, in the directory that ``HOLDFAST_S3A_JARS`` names: hadoop-aws 3.5.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.commit import (
    COMMITTERS,
    CommitContext,
    CommitSettings,
    JobRecord,
    SaveMode,
    TaskCommit,
    open_context,
)
from holdfast.commit.hadoop.magic.files import pendingset_path
from holdfast.commit.hadoop.staging.layout import list_pendingsets, staged_job_context
from holdfast.commit.layout import iter_visible
from holdfast.s3_server import SeaweedServer
from holdfast.stores.base import iter_objects, iter_uploads, multipart
from tests.integration.hadoop_jvm import JARS, HadoopJob, HadoopJvm

pytestmark = [
    pytest.mark.spark,
    pytest.mark.s3,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn
    pytest.mark.skipif(not JARS, reason="no hadoop-aws in HOLDFAST_S3A_JARS: docs/how-to/read-with-s3a.md"),
]

BUCKET = "hadoop-exchange"
LARGE = bytes(range(256)) * 50_000  # three parts of 5 MiB
MAGIC = COMMITTERS["magic"]
NAMES = ["plain", "with space/50% of+all", "a=b/c&d;e's (1) ,@!", "naïve-☃"]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def jvm(server: SeaweedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopJvm]:
    server.create_bucket(BUCKET)
    with HadoopJvm(server.options, tmp_path_factory.mktemp("hadoop"), JARS) as running:
        yield running


@pytest.fixture
def ctx(server: SeaweedServer, jvm: HadoopJvm, tmp_path: Path) -> Iterator[CommitContext]:
    settings = CommitSettings(
        part_size_bytes=5 << 20,
        scratch_dir=str(tmp_path / "scratch"),
        shared_dir=str(tmp_path / "shared"),
    )
    url = f"s3://{BUCKET}/{next(_numbers)}/out put"
    found = open_context(url, store_options=[server.options], settings=settings, staging=True)
    yield found
    found.close()


def files_of(task: int) -> dict[str, bytes]:
    return {f"{name}-{task}": f"{name}/{task}".encode() for name in NAMES}


def run_task(ctx: CommitContext, job: JobRecord, task: int, files: Mapping[str, bytes], by: str) -> TaskCommit:
    with COMMITTERS[by].setup_task(ctx, job, task) as attempt:
        for path, content in files.items():
            sink = attempt.open(path)
            sink.write(content)
            sink.close()
        return attempt.commit()


def start(ctx: CommitContext, by: str = "magic") -> JobRecord:
    job = COMMITTERS[by].setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    return job


def hadoop_job(jvm: HadoopJvm, ctx: CommitContext, job: JobRecord, committer: str = "magic", **given: str) -> HadoopJob:
    return HadoopJob(jvm, f"s3a{ctx.url.removeprefix('s3')}", job.job, committer, given)


def visible(ctx: CommitContext) -> dict[str, bytes]:
    return {path: ctx.store.get(info.key) for path, info in iter_visible(ctx.store, ctx.prefix)}


def debris(ctx: CommitContext) -> list[str]:
    hidden = [info.key for info in iter_objects(ctx.store, ctx.prefix) if "__magic" in info.key]
    return hidden + [upload.key for upload in iter_uploads(multipart(ctx.store), ctx.prefix)]


def load_set(jvm: HadoopJvm, path: str) -> Any:
    """Load a pending set with Hadoop's own reader, which validates it."""
    found = jvm.fs.Path(path)
    file_system = found.getFileSystem(jvm.configuration({}))
    return jvm.fs.s3a.commit.files.PendingSet.load(file_system, found, file_system.getFileStatus(found))


# --- Hadoop reads ours ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("committer", ["magic", "staging-directory", "staging-partitioned"])
def test_hadoop_loads_and_validates_our_sets(jvm: HadoopJvm, ctx: CommitContext, committer: str) -> None:
    job = start(ctx, committer)
    run_task(ctx, job, 0, {"large": LARGE, "empty": b"", **files_of(0)}, committer)
    if committer == "magic":
        path = f"s3a://{BUCKET}/{ctx.key(pendingset_path(job.job, 0))}"
    else:
        (name,) = list_pendingsets(ctx, job)
        path = f"file:///{staged_job_context(ctx, job.job).key(name)}".replace("////", "///")
    loaded = load_set(jvm, path)
    assert (loaded.getVersion(), loaded.getJobId(), loaded.size()) == (3, job.job, 6)
    parts = {commit.getDestinationKey(): commit.getPartCount() for commit in loaded.getCommits()}
    assert parts[ctx.key("large")] == 3 and parts[ctx.key("empty")] == 1
    COMMITTERS[committer].abort_job(ctx, job)


def test_hadoops_job_commit_completes_what_our_tasks_committed(jvm: HadoopJvm, ctx: CommitContext) -> None:
    job = start(ctx)
    hadoop = hadoop_job(jvm, ctx, job)
    hadoop.set_up()
    for task in range(2):
        run_task(ctx, job, task, files_of(task), "magic")
    run_task(ctx, job, 2, {"large": LARGE, "empty": b""}, "magic")
    assert visible(ctx) == {}
    hadoop.commit()
    assert visible(ctx) == {**files_of(0), **files_of(1), "large": LARGE, "empty": b""}
    assert debris(ctx) == []


def test_our_job_commit_completes_what_hadoops_tasks_committed(jvm: HadoopJvm, ctx: CommitContext) -> None:
    """Hadoop's tasks send no message: the job commit counts ours and finds theirs in the store."""
    job = start(ctx)
    sums = {"fs.s3a.create.checksum.algorithm": "CRC32C"}  # S3 then wants them for the completion, too
    hadoop = hadoop_job(jvm, ctx, job, **{"fs.s3a.multipart.size": "5M"}, **sums)
    hadoop.run_task(1, files_of(1))
    hadoop.run_task(2, {"large": LARGE, "empty": b""})
    hadoop.run_task(3, {"late": b"of an attempt that did not commit"}, commit=False)
    reported = [run_task(ctx, job, 0, files_of(0), "magic")]
    assert visible(ctx) == {} and len(debris(ctx)) > 0
    outcome = MAGIC.commit_job(ctx, job, reported, 1)
    assert outcome.committed and outcome.finished and outcome.totals.files == 2 * len(NAMES) + 2
    assert visible(ctx) == {**files_of(0), **files_of(1), "large": LARGE, "empty": b""}
    assert debris(ctx) == []


def test_a_job_of_hadoops_tasks_alone(jvm: HadoopJvm, ctx: CommitContext) -> None:
    job = start(ctx)
    hadoop_job(jvm, ctx, job).run_task(0, files_of(0))
    assert MAGIC.commit_job(ctx, job, [], 0).committed
    assert visible(ctx) == files_of(0) and debris(ctx) == []


def test_either_aborts_the_others(jvm: HadoopJvm, ctx: CommitContext) -> None:
    for ends in ("ours", "hadoop"):
        job = start(ctx)
        hadoop = hadoop_job(jvm, ctx, job)
        hadoop.run_task(0, files_of(0))
        hadoop.run_task(1, files_of(1), commit=False)
        run_task(ctx, job, 2, files_of(2), "magic")
        if ends == "ours":
            MAGIC.abort_job(ctx, job)
        else:
            hadoop.abort()
        assert visible(ctx) == {} and debris(ctx) == []


# --- staging ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("committer", ["directory", "partitioned"])
def test_hadoops_staging_job_commit_completes_uploads_of_ours(
    jvm: HadoopJvm, ctx: CommitContext, committer: str
) -> None:
    """Only the directories differ: Hadoop commits a pending set of ours in the place of one of its tasks."""
    by = f"staging-{committer}"
    job = start(ctx, by)
    run_task(ctx, job, 0, {f"day=1/{name}": data for name, data in files_of(0).items()}, by)
    (name,) = list_pendingsets(ctx, job)
    shared = staged_job_context(ctx, job.job)
    hadoop = hadoop_job(jvm, ctx, job, committer)
    hadoop.set_up()
    hadoop.run_task(1, {"day=2/x": b"theirs"})
    jvm.staged_task(job.job, 0).write_bytes(shared.store.get(shared.key(name)))
    hadoop.commit()
    found = visible(ctx)
    assert found.pop(f"day=2/x-{job.job}") == b"theirs"
    assert found == {f"day=1/{path}": data for path, data in files_of(0).items()}
    assert debris(ctx) == []
