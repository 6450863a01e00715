"""Run `holdfast.job` under real Spark: files of any kind, from four functions of Spark, of accepted attempts only."""

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

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import holdfast
from holdfast.commit import COMMITTERS, Kind, get_committer, open_context, read_history, recover
from holdfast.commit.committer import Action
from holdfast.commit.layout import iter_visible
from holdfast.errors import DestinationExistsError, FencedError, InvalidRequestError
from holdfast.s3_server import SeaweedServer
from holdfast.spark.task_files import Task
from holdfast.stores.s3.options import S3Options
from tests.integration.spark_session import assert_clean, by_value, visible

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
    """Yield each batch, pandas frame or row from Spark with its ids."""
    for some in rows:
        if isinstance(some, pa.RecordBatch):
            yield some, some.column("id").to_pylist()
        elif hasattr(some, "columns"):
            yield some, some["id"].tolist()
        else:
            yield some, [some.id]


def save_each(task: Task, rows: Iterable[Any]) -> Iterator[Any]:
    for some, ids in ids_of(rows):
        for number in ids:
            with task.open(f"images/ä {number % 7}/{number}.bin") as file:
                file.write(content(number))
        yield some


def content(number: int) -> bytes:
    return f"image {number}".encode() * (number % 5)


ALL_FILES = {f"images/ä {number % 7}/{number}.bin": content(number) for number in range(ROWS)}


def contents(target: Path) -> dict[str, bytes]:
    return {path: (target / path).read_bytes() for path in visible(target)}


RUNS: dict[str, Callable[[DataFrame, Any], object]] = {
    "foreachPartition": lambda df, save: df.rdd.foreachPartition(save),
    "mapPartitions": lambda df, save: df.rdd.mapPartitions(save).collect(),
    "mapInArrow": lambda df, save: df.mapInArrow(save, df.schema).collect(),
    "mapInPandas": lambda df, save: df.mapInPandas(save, df.schema).collect(),
}


# --- the four functions -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", RUNS)
def test_every_function_of_spark_publishes_files(rows: DataFrame, tmp_path: Path, how: str) -> None:
    target = tmp_path / "t"
    with holdfast.job(rows.sparkSession, str(target)) as job:
        RUNS[how](rows, job.attempt(save_each))
        assert visible(target) == []
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


@pytest.mark.parametrize(
    ("run", "how"), [("foreachPartition", "raise"), ("mapInArrow", "kill"), ("mapInPandas", "raise")]
)
def test_a_retried_task_counts_once(rows: DataFrame, tmp_path: Path, run: str, how: str) -> None:
    """facts: faults 1 and 2: what the accepted attempt reports is what counts (C3)."""
    target = tmp_path / "t"
    with holdfast.job(rows.sparkSession, str(target)) as job:
        RUNS[run](rows, job.attempt(failing(how, attempts=2)))
    found = contents(target)
    assert {path for path in found if path.startswith("extra/")} == {f"extra/{n}.txt" for n in range(PARTITIONS)}
    assert {path: data for path, data in found.items() if path.startswith("images/")} == ALL_FILES
    assert_clean(target)


def test_a_task_that_fails_for_good_leaves_nothing(rows: DataFrame, tmp_path: Path) -> None:
    target = tmp_path / "t"
    with pytest.raises(Exception, match="injected"), holdfast.job(rows.sparkSession, str(target)) as job:
        RUNS["mapInArrow"](rows, job.attempt(failing("raise", attempts=99)))
    assert visible(target) == []
    with pytest.raises(InvalidRequestError, match="not committed"):
        _ = job.result
    assert_clean(target)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_in_the_block_aborts(rows: DataFrame, tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "t"

    def run() -> None:
        with holdfast.job(rows.sparkSession, str(target)) as job:
            RUNS["foreachPartition"](rows, job.attempt(save_each))
            raise error("in the driver")

    with pytest.raises(error, match="in the driver"):
        run()
    assert visible(target) == []
    assert not any(target.rglob("*.pending"))
    ctx = open_context(str(target))
    assert [decision.entry.kind for decision in read_history(ctx).decisions] == [Kind.ABORT]
    ctx.close()
    assert_clean(target)


def test_ctrl_c_in_the_commit(rows: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the decision the job is aborted; after it the files stay (Iceberg 4686)."""

    class Interrupted(type(get_committer("two_phase"))):  # type: ignore[misc]  # the class behind the name
        def __init__(self, before: bool) -> None:
            self._before = before

        def commit_job(self, *args: Any) -> Any:
            if not self._before:
                super().commit_job(*args)
            raise KeyboardInterrupt

    for before, files in ((True, 0), (False, ROWS)):
        target = tmp_path / str(before)
        committer = Interrupted(before)
        monkeypatch.setattr("holdfast.spark.job.get_committer", lambda name, committer=committer: committer)
        with pytest.raises(KeyboardInterrupt), holdfast.job(rows.sparkSession, str(target)) as job:
            RUNS["foreachPartition"](rows, job.attempt(save_each))
        assert len(visible(target)) == files
        assert_clean(target)


def test_a_driver_that_dies_leaves_the_job_to_recovery(rows: DataFrame, tmp_path: Path) -> None:
    """The block is never left, as after SIGKILL."""
    target = tmp_path / "t"
    job = holdfast.job(rows.sparkSession, str(target)).__enter__()
    RUNS["foreachPartition"](rows, job.attempt(save_each))
    assert visible(target) == []
    ctx = open_context(str(target))
    assert [ended.action for ended in recover(ctx).jobs] == [Action.BACK]
    ctx.close()
    assert [path.name for path in (target / "_holdfast").iterdir()] == ["log"]
    with pytest.raises(FencedError):  # the driver was alive after all
        job.__exit__(None, None, None)
    assert visible(target) == []
    assert_clean(target)


# --- what Spark computes twice, or not to its end ---------------------------------------------------------------------
def test_a_partition_that_is_computed_twice_counts_once(rows: DataFrame, tmp_path: Path) -> None:
    """The latest attempt counts: with two actions on one DataFrame, and with a sort, which samples its input first."""
    target = tmp_path / "t"
    with holdfast.job(rows.sparkSession, str(target)) as job:
        saved = rows.mapInArrow(job.attempt(failing("raise", attempts=0)), rows.schema)
        assert len(saved.collect()) == ROWS
        assert [row.id for row in saved.orderBy("id").collect()] == [*range(ROWS)]
    assert len(visible(target)) == ROWS + PARTITIONS == job.result.files
    assert_clean(target)


def save_ids(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write a file per partition with its row ids: mixed partitions would duplicate rows or lose some."""
    ids: list[int] = []
    for batch in batches:
        ids += batch.column("id").to_pylist()
        yield batch
    with task.open(f"{task.partition}.txt") as file:
        file.write(" ".join(map(str, ids)).encode())


def ids_in(target: Path) -> list[int]:
    return sorted(int(word) for data in contents(target).values() for word in data.split())


@pytest.mark.parametrize("committer", ["two_phase", "file-v1"])
@pytest.mark.parametrize("coalesced", [(False, True), (True, False)])
def test_actions_in_different_partitions_are_not_mixed(
    spark: SparkSession, tmp_path: Path, coalesced: tuple[bool, bool], committer: str
) -> None:
    """Spark plans the second action again with other partitions: exactly one of the two counts."""
    target = tmp_path / "t"
    options: dict[str, Any] = {} if committer == "two_phase" else {"committer": committer, "allow_unsafe": True}
    counts: list[int] = []

    def run() -> None:
        spark.conf.set("spark.sql.shuffle.partitions", "5")
        with holdfast.job(spark, str(target), **options) as job:
            saved = spark.range(100).repartition("id").mapInArrow(job.attempt(save_ids), "id long")
            for enabled in coalesced:
                spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", str(enabled).lower())
                spark.conf.set("spark.sql.adaptive.enabled", str(enabled).lower())
                by_stage = saved.selectExpr("id", "spark_partition_id() as p").collect()
                counts.append(len({row.p for row in by_stage}))

    try:
        if committer == "file-v1" and not coalesced[0]:
            with pytest.raises(InvalidRequestError, match="use committer two_phase"):
                run()
            assert visible(target) == []
        else:
            run()
            assert ids_in(target) == [*range(100)]
            assert len(visible(target)) == max(counts)
    finally:
        for name in ("adaptive.coalescePartitions.enabled", "adaptive.enabled", "shuffle.partitions"):
            spark.conf.unset(f"spark.sql.{name}")
    assert counts[0] != counts[1], "Spark had a reason to mix"


def test_unions_count_and_rows_by_and_by_do_not(rows: DataFrame, tmp_path: Path) -> None:
    """In a union the stage has more tasks than the function; toLocalIterator has a stage for every partition."""
    target = tmp_path / "t"
    with holdfast.job(rows.sparkSession, str(target)) as job:
        saved = rows.mapInArrow(job.attempt(save_ids), rows.schema)
        assert saved.union(rows).orderBy("id").count() == 2 * ROWS
        assert len(rows.union(saved.limit(0)).collect()) == ROWS
    assert ids_in(target) == [*range(ROWS)]
    other = tmp_path / "u"
    with (
        pytest.raises(InvalidRequestError, match="let one action take all rows"),
        holdfast.job(rows.sparkSession, str(other)) as job,
    ):
        assert len([*rows.mapInArrow(job.attempt(save_ids), rows.schema).toLocalIterator()]) == ROWS
    assert visible(other) == []


def test_each_data_set_counts(spark: SparkSession, tmp_path: Path) -> None:
    """One function serves two data sets, and two functions run in one stage."""
    target = tmp_path / "t"

    def save(task: Task, rows: Iterable[Any]) -> Iterator[Any]:
        for row in rows:
            with task.open(f"first/{row.id}") as file:
                file.write(b"1")
            yield row

    def save_too(task: Task, rows: Iterable[Any]) -> None:
        with task.open(f"second/{task.partition}-{[row.id for row in rows]}") as file:
            file.write(b"2")

    with holdfast.job(spark, str(target)) as job:
        attempt = job.attempt(save)
        spark.range(0, 4, 1, 2).rdd.foreachPartition(attempt)
        spark.range(4, 8, 1, 2).rdd.mapPartitions(attempt).foreachPartition(job.attempt(save_too))
    assert visible(target) == [*(f"first/{n}" for n in range(8)), "second/0-[4, 5]", "second/1-[6, 7]"]
    assert_clean(target)


CUTS: dict[str, Callable[[DataFrame, Any], object]] = {
    "take": lambda df, save: df.rdd.mapPartitions(save).take(2),
    "limit": lambda df, save: df.mapInArrow(save, df.schema).limit(2).collect(),
    "coalesce": lambda df, save: df.rdd.mapPartitions(save).coalesce(1).collect(),
    "limit behind coalesce": lambda df, save: df.mapInArrow(save, df.schema).coalesce(1).limit(ROWS // 2).collect(),
    "the step behind takes some rows": lambda df, save: df.rdd.mapPartitions(save).foreachPartition(next),
    "no action": lambda df, save: df.rdd.mapPartitions(save),
}


@pytest.mark.parametrize("how", CUTS)
def test_a_partition_that_is_cut_short_commits_nothing(rows: DataFrame, tmp_path: Path, how: str) -> None:
    target = tmp_path / "t"
    with (
        pytest.raises(InvalidRequestError, match=r"read only in part|no task has reported|coalesce before"),
        holdfast.job(rows.sparkSession, str(target), mode="overwrite") as job,
    ):
        CUTS[how](rows, job.attempt(save_each))
    assert visible(target) == []
    assert_clean(target)


def test_a_job_without_files_if_it_is_allowed(rows: DataFrame, tmp_path: Path) -> None:
    target = tmp_path / "t"
    with holdfast.job(rows.sparkSession, str(target)) as job:
        RUNS["foreachPartition"](rows, job.attempt(save_each))
    with holdfast.job(rows.sparkSession, str(target), mode="overwrite", allow_empty=True) as job:
        pass
    assert visible(target) == [] and job.result.files == 0
    assert_clean(target)


# --- names ------------------------------------------------------------------------------------------------------------
def test_modes_and_taken_names(rows: DataFrame, tmp_path: Path) -> None:
    target = tmp_path / "t"

    def run(mode: str, data: DataFrame) -> None:
        with holdfast.job(rows.sparkSession, str(target), mode=mode) as job:
            RUNS["foreachPartition"](data, job.attempt(save_each))

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


@pytest.mark.s3
def test_a_thousand_small_files(spark: SparkSession, access: dict[str, Any], s3: S3Options) -> None:
    """Their uploads are announced in batches; each file appears once, byte for byte. Scenario 33: spaces."""
    url = "s3://spark-job/thousand files"

    def save(task: Task, rows: Iterable[Any]) -> None:
        for row in rows:
            with task.open(f"images/{row.id:04d}.jpg") as file:
                file.write(content(row.id))

    with holdfast.job(spark, url, **access) as job:
        spark.range(0, 1000, 1, 4).rdd.foreachPartition(job.attempt(save))
    assert job.result.files == 1000
    assert on_server(url, s3) == {f"images/{n:04d}.jpg": content(n) for n in range(1000)}
    assert_clean(url, store_options=[s3])


def save_shard(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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
    yield pa.RecordBatch.from_pydict({"shard": [task.partition], "members": [count]})


@pytest.mark.s3
def test_tar_shards(rows: DataFrame, access: dict[str, Any], s3: S3Options) -> None:
    url = "s3://spark-job/shards"
    with holdfast.job(rows.sparkSession, url, part_size="5m", **access) as job:
        counts = rows.mapInArrow(job.attempt(save_shard), "shard long, members long").collect()
    assert sorted((row.shard, row.members) for row in counts) == [(n, ROWS // PARTITIONS) for n in range(PARTITIONS)]
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
        RUNS["mapInArrow"](rows, job.attempt(save))
    assert on_server(url, s3) == ALL_FILES
    assert_clean(url, store_options=[s3])
    ctx = open_context(url, store_options=[s3])
    recover(ctx)
    ctx.close()


# Not stocator, which puts the attempt into every name, nor direct, which shows what failed attempts wrote.
FITTING = {
    "two_phase": "s3",
    "magic": "s3",
    "emr": "s3",
    "staging-directory": "s3",
    "staging-partitioned": "s3",
    "manifest": "disk",
    "file-v1": "disk",
    "file-v2": "disk",
}


@pytest.mark.s3
@pytest.mark.parametrize(
    "committer",
    [name if name in ("magic", "manifest") else pytest.param(name, marks=pytest.mark.slow) for name in FITTING],
)
def test_every_committer(
    rows: DataFrame, tmp_path: Path, access: dict[str, Any], s3: S3Options, committer: str
) -> None:
    options: dict[str, Any] = {"committer": committer, "allow_unsafe": bool(COMMITTERS[committer].unsafe)}
    if COMMITTERS[committer].staging:
        options |= {"scratch_dir": str(tmp_path / "scratch"), "shared_dir": str(tmp_path / "shared")}
    url = str(tmp_path / "t") if FITTING[committer] == "disk" else f"s3://spark-job/{committer}"
    options |= {} if FITTING[committer] == "disk" else access
    with holdfast.job(rows.sparkSession, url, **options) as job:
        RUNS["mapInArrow"](rows, job.attempt(failing("raise", attempts=1)))
    found = contents(tmp_path / "t") if FITTING[committer] == "disk" else on_server(url, s3)
    assert {path: data for path, data in found.items() if path.startswith("images/")} == ALL_FILES
    assert job.result.files == len(found) == ROWS + PARTITIONS


@pytest.mark.s3
def test_programs_that_open_files_by_themselves(rows: DataFrame, access: dict[str, Any], s3: S3Options) -> None:
    """Users of fsspec write below the magic work path and know nothing of jobs."""
    url = "s3://spark-job/work path"
    server = {key: access[key] for key in ("endpoint", "region", "access_key", "secret_key")}

    def save(task: Task, some: Iterable[Any]) -> None:
        from holdfast.fs import MagicFileSystem

        fs = MagicFileSystem(**server, path_style=True)
        with fs.open(f"{task.work_path}/by fsspec/{task.partition}.txt", "wb") as file:
            file.write(f"{len([*some])} rows".encode())
        with task.open(f"by task/{task.partition}.txt") as own:
            own.write(b"side by side")

    with holdfast.job(rows.sparkSession, url, committer="magic", **access) as job:
        rows.rdd.foreachPartition(job.attempt(save))
        assert on_server(url, s3) == {}
    found = on_server(url, s3)
    assert {path: data for path, data in found.items() if path.startswith("by fsspec")} == {
        f"by fsspec/{number}.txt": b"30 rows" for number in range(PARTITIONS)
    }
    assert job.result.files == len(found) == 2 * PARTITIONS
