"""Recover jobs of Hadoop's S3A committers whose driver died of SIGKILL in its job commit, on a real server."""

from __future__ import annotations

import dataclasses
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from py4j.protocol import Py4JError

from holdfast.cli.app import cli
from holdfast.commit import TWO_PHASE, CommitContext, SaveMode, open_context
from holdfast.commit.layout import iter_visible
from holdfast.s3_server import SeaweedServer
from holdfast.stores.base import iter_objects, iter_uploads, multipart
from holdfast.stores.s3 import S3Options
from tests.integration.hadoop_jvm import JARS, HadoopJob, HadoopJvm
from tests.integration.lossy_proxy import LossyProxy

pytestmark = [
    pytest.mark.spark,
    pytest.mark.s3,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn
]
needs_jars = pytest.mark.skipif(not JARS, reason="no hadoop-aws in HOLDFAST_S3A_JARS: docs/how-to/read-with-s3a.md")

BUCKET = "hadoop-dead"
UUID = "3b1f9c0e-5a77-4c3d-9c55-0d5c8f7e1a2b"
OTHER = "99999999-5a77-4c3d-9c55-0d5c8f7e1a2b"
TASKS, FILES = 5, 6
Command = Callable[..., Result]
_numbers = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def bucket(server: SeaweedServer) -> None:
    server.create_bucket(BUCKET)


@pytest.fixture
def ctx(server: SeaweedServer) -> Iterator[CommitContext]:
    url = f"s3://{BUCKET}/{next(_numbers)}/dataset1"
    found = open_context(url, store_options=[server.options])
    yield found
    found.close()


@pytest.fixture
def holdfast(server: SeaweedServer, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return a function that runs ``holdfast …``."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", str(server.options.access_key))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", str(server.options.secret_key))
    reach = ("--endpoint-url", server.endpoint_url, "--region", "us-east-1")

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli, [*arguments, *reach])

    return run


def files_of(task: int, uuid: str) -> dict[str, bytes]:
    """Return the files of a task, named as Spark names them."""
    return {
        f"day={number}/part-{task:05d}-{uuid}-c{number:03d}.txt": f"{task}/{number}/{uuid}".encode()
        for number in range(FILES)
    }


def expected(uuid: str = UUID) -> dict[str, bytes]:
    return {path: data for task in range(TASKS) for path, data in files_of(task, uuid).items()}


def die(s3: S3Options, ctx: CommitContext, scratch: Path, completed: int, uuid: str = UUID) -> None:
    """Run a job in a JVM and kill it after so many completed uploads; 0: before the job commit."""
    spared = {"fs.s3a.committer.abort.pending.uploads": "false"}
    with (
        LossyProxy(str(s3.endpoint_url).removeprefix("http://")) as proxy,
        HadoopJvm(dataclasses.replace(s3, endpoint_url=proxy.url), scratch) as jvm,
    ):
        job = HadoopJob(jvm, f"s3a{ctx.url.removeprefix('s3')}", uuid, "magic", spared)
        job.set_up()
        for task in range(TASKS):
            job.run_task(task, files_of(task, uuid))
        job.run_task(TASKS, {f"part-{TASKS:05d}-{uuid}-c000.txt": b"late"}, commit=False)
        seen, lock = itertools.count(1), threading.Lock()

        def kill(method: str, path: str) -> bool:
            if method != "POST" or "uploadId=" not in path:
                return False
            with lock:
                is_enough = next(seen) >= completed
                if is_enough:
                    jvm.kill()
            return is_enough

        if completed:
            proxy.loses = kill
            with pytest.raises((Py4JError, OSError)):  # its connection is gone
                job.commit()


def visible(ctx: CommitContext) -> dict[str, bytes]:
    return {path: ctx.store.get(info.key) for path, info in iter_visible(ctx.store, ctx.prefix)}


def debris(ctx: CommitContext) -> list[str]:
    """List pending uploads and everything in magic directories, directory markers included."""
    hidden = [info.key for info in iter_objects(ctx.store, ctx.prefix, markers=True) if "__magic" in info.key]
    return hidden + [upload.key for upload in iter_uploads(multipart(ctx.store), ctx.prefix)]


@needs_jars
def test_killed_in_mid_job_commit(server: SeaweedServer, ctx: CommitContext, holdfast: Command, tmp_path: Path) -> None:
    """Hadoop cannot resume: a second run duplicates what was visible. Our recovery leaves no row."""
    die(server.options, ctx, tmp_path, 7)
    shown = len(visible(ctx))
    assert 7 <= shown < TASKS * FILES
    result = holdfast("recover", ctx.url, "--older-than", "0s")
    assert result.exit_code == 1, result.output
    waiting = TASKS * FILES - shown
    assert f"{shown} of its files are visible, {waiting} are pending" in result.stdout
    assert holdfast("recover", ctx.url, "--foreign").exit_code == 0, "young: it may be running"
    assert len(visible(ctx)) == shown
    result = holdfast("recover", ctx.url, "--older-than", "0s", "--foreign")
    assert result.exit_code == 0, result.output
    assert visible(ctx) == {} and debris(ctx) == []


@needs_jars
def test_killed_before_its_job_commit(
    server: SeaweedServer, ctx: CommitContext, holdfast: Command, tmp_path: Path
) -> None:
    die(server.options, ctx, tmp_path, 0)
    found = json.loads(holdfast("uploads", "list", ctx.url, "--json").stdout)["uploads"]
    assert len(found) == TASKS * FILES + 1
    assert {(one["job"], one["committer"], one["state"]) for one in found} == {(UUID, "hadoop-magic", "Hadoop's")}
    assert f"Hadoop job {UUID} (hadoop-magic) is unfinished" in holdfast("verify", ctx.url).output
    assert holdfast("recover", ctx.url, "--older-than", "0s", "--foreign").exit_code == 0
    assert visible(ctx) == {} and debris(ctx) == []


@needs_jars
def test_two_jobs_a_neighbour_and_a_live_job_of_ours(
    server: SeaweedServer, ctx: CommitContext, holdfast: Command, tmp_path: Path
) -> None:
    """C7: recovery of one Hadoop job affects no other, nor ``dataset10``, nor a running job of ours."""
    neighbour = dataclasses.replace(ctx, prefix=ctx.prefix[:-1] + "0/", url=ctx.url + "0")
    die(server.options, ctx, tmp_path / "1", 7)
    die(server.options, neighbour, tmp_path / "2", 7)
    beside = (visible(neighbour), debris(neighbour))
    ours = TWO_PHASE.setup_job(ctx, SaveMode.APPEND)
    assert ours is not None
    with TWO_PHASE.setup_task(ctx, ours, 0) as attempt:
        own = f"day=9/{attempt.file_name('.txt')}"
        attempt.open(own).write(b"ours")
        reported = [attempt.commit()]
    die(server.options, ctx, tmp_path / "3", 5, uuid=OTHER)
    for job in (UUID, OTHER):
        assert f"job {job} (hadoop-magic)" in holdfast("recover", ctx.url).stdout
    assert holdfast("recover", ctx.url, "--older-than", "0s", "--foreign").exit_code == 0
    assert visible(ctx) == {}, "an undecided job of ours was aborted by its age"
    assert (visible(neighbour), debris(neighbour)) == beside
    assert len(reported) == 1 and debris(ctx) == []


@pytest.mark.parametrize("algorithm", ["1", "2"])
def test_spark_s_own_committer_on_a_disk(
    server: SeaweedServer, holdfast: Command, tmp_path: Path, algorithm: str
) -> None:
    """FileOutputCommitter needs no jar. When the driver dies, v1 has moved one file and v2 all that were committed."""
    home = tmp_path / "out put"
    settings = {"mapreduce.fileoutputcommitter.algorithm.version": algorithm}
    with HadoopJvm(server.options, tmp_path, jars=()) as jvm:
        job = HadoopJob(jvm, f"file://{home}", UUID, "file", settings)
        job.set_up()
        for task in range(TASKS):
            job.run_task(task, files_of(task, UUID))
        job.run_task(TASKS, {f"part-{TASKS:05d}-{UUID}-c000.txt": b"late"}, commit=False)
    if algorithm == "1":
        first = next(path for path in sorted(home.rglob("part-00000-*")) if "task_" in str(path))
        (home / first.parent.name).mkdir()
        first.rename(home / first.parent.name / first.name)
    arguments = ("recover", str(home), "--older-than", "0s")
    assert "job job_20261122101112_0007 (hadoop-file)" in holdfast(*arguments).stdout
    assert holdfast(*arguments, "--foreign").exit_code == 0
    found = {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in home.rglob("part-*")
        if "_temporary" not in path.parts
    }
    assert found == ({} if algorithm == "1" else expected())
    assert not list(home.rglob("_temporary/**/part-*"))
