"""Run `holdfast.job` under real Spark: files of any kind, of accepted attempts only."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql")

from dataclasses import replace
from functools import partial

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import holdfast
from holdfast.commit import COMMITTERS, TWO_PHASE, Kind, open_context, read_history, recover
from holdfast.commit.layout import iter_visible
from holdfast.commit.leftovers import RecoveryAction
from holdfast.errors import DestinationExistsError, FencedError, InvalidRequestError
from holdfast.s3_server import SeaweedServer
from holdfast.spark.task import Task
from holdfast.stores.s3 import S3Options
from tests.integration.spark_session import assert_clean, by_value, visible
from tests.variants import variants

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]

by_value(__name__)

ROWS, PARTITIONS = 90, 3


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> SparkSession:
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    return spark


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, PARTITIONS)


def ids_of(rows: Iterable[Any]) -> Iterator[tuple[Any, list[int]]]:
    """Yield each batch or row from Spark with its ids."""
    for some in rows:
        yield some, some.column("id").to_pylist() if isinstance(some, pa.RecordBatch) else [some.id]


def save_each(task: Task, rows: Iterable[Any]) -> Iterator[list[int]]:
    for _some, ids in ids_of(rows):
        for number in ids:
            with task.open(f"images/ä {number % 7}/{number}.bin") as file:
                file.write(content(number))
        yield ids


def content(number: int) -> bytes:
    return f"image {number}".encode() * (number % 5)


ALL_FILES = {f"images/ä {number % 7}/{number}.bin": content(number) for number in range(ROWS)}


def contents(target: Path) -> dict[str, bytes]:
    return {path: (target / path).read_bytes() for path in visible(target)}


DATA: dict[str, Callable[[DataFrame], Any]] = {"batches": lambda df: df, "rows": lambda df: df.rdd}


# --- runs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", DATA)
def test_a_run_publishes_files_and_returns_results(rows: DataFrame, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "t"
    with holdfast.job(rows.sparkSession, str(target)) as job:
        results = job.run(DATA[kind](rows), save_each)
        assert visible(target) == []
    assert [number for ids in results for number in ids] == [*range(ROWS)], "in the order of the partitions"
    assert contents(target) == ALL_FILES
    assert (job.result.files, job.result.finished) == (ROWS, True)
    assert job.result.bytes == sum(map(len, ALL_FILES.values()))
    assert_clean(target)


def failing(how: str, attempts: int) -> Callable[[Task, Iterable[Any]], Iterator[Any]]:
    """`save_each`, whose partition 1 fails after a few files in its first attempts."""

    def save(task: Task, rows: Iterable[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        with task.open(f"extra/{task.partition}.txt") as file:
            file.write(b"attempts may differ: " + task.attempt.encode())
        for done, some in enumerate(save_each(task, rows)):
            if done == 2 and task.partition == 1 and context.attemptNumber() < attempts:
                if how == "kill":
                    os._exit(9)
                raise ValueError("injected")
            yield some

    return save


@pytest.mark.parametrize(("kind", "how"), [("rows", "raise"), ("batches", "kill")])
def test_a_retried_task_counts_once(rows: DataFrame, tmp_path: Path, kind: str, how: str) -> None:
    """facts: faults 1 and 2: what the accepted attempt reports is what counts (C3)."""
    target = tmp_path / "t"
    with holdfast.job(rows.sparkSession, str(target)) as job:
        job.run(DATA[kind](rows), failing(how, attempts=2))
    found = contents(target)
    assert {path for path in found if path.startswith("extra/")} == {f"extra/{n}.txt" for n in range(PARTITIONS)}
    assert {path: data for path, data in found.items() if path.startswith("images/")} == ALL_FILES
    assert_clean(target)


@pytest.mark.slow
def test_a_task_that_fails_for_good_leaves_nothing(rows: DataFrame, tmp_path: Path) -> None:
    target = tmp_path / "t"
    with pytest.raises(Exception, match="injected"), holdfast.job(rows.sparkSession, str(target)) as job:
        job.run(rows, failing("raise", attempts=99))
    assert visible(target) == []
    with pytest.raises(InvalidRequestError, match="not committed"):
        _ = job.result
    assert_clean(target)


@pytest.mark.slow
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_in_the_block_aborts(rows: DataFrame, tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "t"

    def run() -> None:
        with holdfast.job(rows.sparkSession, str(target)) as job:
            job.run(rows, save_each)
            raise error("in the driver")

    with pytest.raises(error, match="in the driver"):
        run()
    assert visible(target) == []
    assert not any(target.rglob("*.pending"))
    ctx = open_context(str(target))
    assert [decision.entry.kind for decision in read_history(ctx).decisions] == [Kind.ABORT]
    ctx.close()
    assert_clean(target)


@pytest.mark.slow
def test_ctrl_c_in_the_commit(rows: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the decision the job is aborted; after it the files stay (Iceberg 4686)."""

    def interrupted(before: bool, *args: Any) -> Any:
        if not before:
            TWO_PHASE.commit(*args)
        raise KeyboardInterrupt

    for before, files in ((True, 0), (False, ROWS)):
        target = tmp_path / str(before)
        committer = replace(TWO_PHASE, commit=partial(interrupted, before))
        monkeypatch.setattr("holdfast.spark.job.get_committer", lambda name, committer=committer: committer)
        with pytest.raises(KeyboardInterrupt), holdfast.job(rows.sparkSession, str(target)) as job:
            job.run(rows, save_each)
        assert len(visible(target)) == files
        assert_clean(target)


def test_a_driver_that_dies_leaves_the_job_to_recovery(rows: DataFrame, tmp_path: Path) -> None:
    """The block is never left, as after SIGKILL."""
    target = tmp_path / "t"
    job = holdfast.job(rows.sparkSession, str(target)).__enter__()
    job.run(rows, save_each)
    assert visible(target) == []
    ctx = open_context(str(target))
    assert [ended.action for ended in recover(ctx).jobs] == [RecoveryAction.BACK]
    ctx.close()
    assert [path.name for path in (target / "_holdfast").iterdir()] == ["log"]
    with pytest.raises(FencedError):  # the driver was alive after all
        job.__exit__(None, None, None)
    assert visible(target) == []
    assert_clean(target)


def test_each_run_counts(spark: SparkSession, tmp_path: Path) -> None:
    """One function serves two data sets; a run may have no rows, or no files."""
    target = tmp_path / "t"

    def save(task: Task, rows: Iterable[Any]) -> None:
        for row in rows:
            with task.open(f"first/{row.id}") as file:
                file.write(b"1")

    with holdfast.job(spark, str(target)) as job:
        assert job.run(spark.range(0, 4, 1, 2).rdd, save) == []
        job.run(spark.range(4, 8, 1, 2).rdd, save)
        assert job.run(spark.range(2).filter("id > 5"), lambda task, batches: [sum(map(len, batches))]) == [0, 0]
        assert job.run(spark.sparkContext.emptyRDD(), save) == []
    assert visible(target) == [f"first/{n}" for n in range(8)]
    with holdfast.job(spark, str(target), mode="overwrite") as job:
        job.run(spark.sparkContext.emptyRDD(), save)
    assert (visible(target), job.result.files) == ([], 0)
    assert_clean(target)


def test_a_block_without_a_run_commits_nothing(rows: DataFrame, tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidRequestError, match=r"nothing has run, nothing is committed: call job\.run"),
        holdfast.job(rows.sparkSession, str(tmp_path / "t"), mode="overwrite") as job,
    ):
        pass
    with pytest.raises(InvalidRequestError, match="not committed"):
        _ = job.result
    assert_clean(tmp_path / "t")


# --- names ------------------------------------------------------------------------------------------------------------
def test_modes_and_taken_names(rows: DataFrame, tmp_path: Path) -> None:
    target = tmp_path / "t"

    def run(mode: str, data: DataFrame) -> None:
        with holdfast.job(rows.sparkSession, str(target), mode=mode) as job:
            job.run(data, save_each)

    run("fail", rows.filter("id < 50"))
    for mode, data in (("append", rows.filter("id > 40")), ("fail", rows.filter("id > 50"))):
        with pytest.raises(DestinationExistsError):
            run(mode, data)
    assert len(visible(target)) == 50
    run("append", rows.filter("id >= 50"))
    assert contents(target) == ALL_FILES
    run("overwrite", rows.filter("id >= 30"))
    assert contents(target) == {path: data for path, data in ALL_FILES.items() if int(Path(path).stem) >= 30}
    with pytest.raises(InvalidRequestError, match="same target"):
        run("overwrite", rows.union(rows))
    assert len(visible(target)) == 60
    assert_clean(target)


# --- stores and committers --------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def access(server: SeaweedServer) -> dict[str, Any]:
    server.create_bucket("spark-job")
    return {
        "endpoint": server.endpoint_url,
        "region": "us-east-1",
        "access_key": "holdfast",
        "secret_key": "holdfast-secret",
        "path_style": True,
    }


@pytest.fixture(scope="module")
def s3(server: SeaweedServer) -> S3Options:
    return server.options


def on_server(url: str, s3: S3Options) -> dict[str, bytes]:
    ctx = open_context(url, store_options=[s3])
    try:
        return {path: ctx.store.get(info.key) for path, info in iter_visible(ctx.store, ctx.prefix)}
    finally:
        ctx.close()


@pytest.mark.slow
@pytest.mark.s3
def test_a_thousand_small_files(spark: SparkSession, access: dict[str, Any], s3: S3Options) -> None:
    """Their uploads are announced in batches; each file appears once, byte for byte. Scenario 33: spaces."""
    url = "s3://spark-job/thousand files"

    def save(task: Task, rows: Iterable[Any]) -> None:
        for row in rows:
            with task.open(f"images/{row.id:04d}.jpg") as file:
                file.write(content(row.id))

    with holdfast.job(spark, url, **access) as job:
        job.run(spark.range(0, 1000, 1, 4).rdd, save)
    assert job.result.files == 1000
    assert on_server(url, s3) == {f"images/{n:04d}.jpg": content(n) for n in range(1000)}
    assert_clean(url, store_options=[s3])


def save_shard(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int]]:
    """Write a WebDataset shard: a tar file, as a stream."""
    count = 0
    with task.open(f"shards/{task.partition:05d}.tar") as file, tarfile.open(fileobj=file, mode="w|") as tar:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                member = tarfile.TarInfo(f"{number:05d}.txt")
                data = os.urandom(100_000) if number == 0 else content(number)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
                count += 1
    yield task.partition, count


@pytest.mark.slow
@pytest.mark.s3
def test_tar_shards(rows: DataFrame, access: dict[str, Any], s3: S3Options) -> None:
    url = "s3://spark-job/shards"
    with holdfast.job(rows.sparkSession, url, part_size="5m", **access) as job:
        counts = job.run(rows, save_shard)
    assert counts == [(n, ROWS // PARTITIONS) for n in range(PARTITIONS)]
    found = on_server(url, s3)
    assert sorted(found) == [f"shards/{n:05d}.tar" for n in range(PARTITIONS)]
    with tarfile.open(fileobj=io.BytesIO(found["shards/00001.tar"])) as tar:
        assert tar.getnames() == [f"{n:05d}.txt" for n in range(30, 60)]
        member = tar.extractfile("00031.txt")
        assert member is not None and member.read() == content(31)
    assert_clean(url, store_options=[s3])


@pytest.mark.s3
def test_a_task_that_dies_on_s3_leaves_no_upload(rows: DataFrame, access: dict[str, Any], s3: S3Options) -> None:
    """C9: recovery finds uploads of a killed attempt under chosen names by the intents that it announced."""
    url = "s3://spark-job/killed"

    def save(task: Task, batches: Iterable[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        yield from save_each(task, batches)
        if task.partition == 1 and context.attemptNumber() == 0:
            with task.open("large") as file:
                file.write(bytes(11 * 1024 * 1024))
                os._exit(9)

    with holdfast.job(rows.sparkSession, url, part_size="5m", **access) as job:
        job.run(rows, save)
    assert on_server(url, s3) == ALL_FILES
    assert_clean(url, store_options=[s3])
    ctx = open_context(url, store_options=[s3])
    recover(ctx)
    ctx.close()


# Not stocator, which puts the attempt into every name, nor direct, which shows what failed attempts wrote.
FITTING = {
    "two_phase": "s3",
    "magic": "s3",
    "staging-directory": "s3",
    "staging-partitioned": "s3",
    "manifest": "disk",
    "file-v1": "disk",
    "file-v2": "disk",
}


@pytest.mark.s3
@pytest.mark.parametrize(
    "committer",
    variants(FITTING, "magic"),
)
def test_every_committer(
    rows: DataFrame, tmp_path: Path, access: dict[str, Any], s3: S3Options, committer: str
) -> None:
    options: dict[str, Any] = {"committer": committer}
    if COMMITTERS[committer].staging:
        options |= {"scratch_dir": str(tmp_path / "scratch"), "shared_dir": str(tmp_path / "shared")}
    url = str(tmp_path / "t") if FITTING[committer] == "disk" else f"s3://spark-job/{committer}"
    options |= {} if FITTING[committer] == "disk" else access
    with holdfast.job(rows.sparkSession, url, **options) as job:
        job.run(rows, failing("raise", attempts=1))
    found = contents(tmp_path / "t") if FITTING[committer] == "disk" else on_server(url, s3)
    assert {path: data for path, data in found.items() if path.startswith("images/")} == ALL_FILES
    assert job.result.files == len(found) == ROWS + PARTITIONS


@pytest.mark.slow
@pytest.mark.s3
@pytest.mark.parametrize("committer", ["two_phase", "magic"])
def test_libraries_write_through_the_filesystem_of_a_task(
    rows: DataFrame, access: dict[str, Any], s3: S3Options, committer: str
) -> None:
    url = f"s3://spark-job/filesystem {committer}"

    def save(task: Task, some: Iterable[Any]) -> None:
        with task.filesystem.open(f"by fsspec/{task.partition}.txt", "wb") as file:
            file.write(f"{sum(map(len, some))} rows".encode())
        with task.open(f"by task/{task.partition}.txt") as own:
            own.write(b"side by side")

    with holdfast.job(rows.sparkSession, url, committer=committer, **access) as job:
        job.run(rows, save)
        assert on_server(url, s3) == {}
    found = on_server(url, s3)
    assert {path: data for path, data in found.items() if path.startswith("by fsspec")} == {
        f"by fsspec/{number}.txt": b"30 rows" for number in range(PARTITIONS)
    }
    assert job.result.files == len(found) == 2 * PARTITIONS
