"""`holdfast.job` without Spark: the files that tasks write, which reports count, and what is refused."""

from __future__ import annotations

import csv
import io
import pickle
import tarfile
import zipfile
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark.sql")

import holdfast
from holdfast.commit import TWO_PHASE, AttemptId, JobId, TaskAttempt, TaskCommit, Totals
from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.spark.task_files import Task, TaskFile
from holdfast.spark.task_reports import (
    PARTITIONS,
    Run,
    RunReport,
    accepted_commits,
    forget_runs,
    mark_run,
    marked_runs,
)
from tests.simulation.world import PUBLICATIONS, World, start

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own imports warn; the subject here is ours


class Holder:
    """A job of one task in a simulated world."""

    def __init__(self, publication: str = "upload") -> None:
        self.world = World(publication)
        self.ctx = self.world.context()
        self.job = start(self.ctx)
        self.attempt: TaskAttempt = TWO_PHASE.start_task(self.ctx, self.job, 0)
        self.task = Task(self.attempt, partition=7)

    def published(self) -> dict[str, bytes]:
        with self.attempt:
            TWO_PHASE.commit_job(self.ctx, self.job, [self.attempt.commit()], 1)
        return self.world.listing()


@pytest.fixture(params=PUBLICATIONS)
def holder(request: pytest.FixtureRequest) -> Holder:
    return Holder(request.param)


# --- files ------------------------------------------------------------------------------------------------------------
def test_a_file_is_a_file_object_that_cannot_seek(holder: Holder) -> None:
    with holder.task.open("a b/ä.bin") as file:
        assert isinstance(file, io.BufferedIOBase)
        assert (file.name, file.mode, file.tell()) == ("a b/ä.bin", "wb", 0)
        assert (file.writable(), file.readable(), file.seekable(), file.isatty()) == (True, False, False, False)
        assert file.write(b"12345") == 5 and file.write(memoryview(b"67")) == 2 and file.tell() == 7
        file.flush()
        with pytest.raises(io.UnsupportedOperation):
            file.seek(0)
        with pytest.raises(io.UnsupportedOperation):
            file.read()
        with pytest.raises(TypeError):
            file.write("text")
    assert file.closed
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.write(b"8")
    assert holder.world.listing() == {}
    assert holder.published() == {"a b/ä.bin": b"1234567"}


def test_what_takes_file_objects_takes_these(holder: Holder) -> None:
    task = holder.task
    with task.open("a.tar") as file, tarfile.open(fileobj=file, mode="w|") as tar:
        member = tarfile.TarInfo("x")
        member.size = 3
        tar.addfile(member, io.BytesIO(b"abc"))
    with task.open("a.zip") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("y", "def" * 100)
    with task.open("a.pickle") as file:
        pickle.dump({"k": bytearray(100_000)}, file, protocol=5)
    table = pa.table({"n": [1, 2, 3]})
    with task.open("a.parquet") as file:
        pq.write_table(table, file)
    with task.open("a.arrow") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    with task.open("a.csv") as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
        csv.writer(text).writerows([["ä", 1]])
    found = {path: io.BytesIO(data) for path, data in holder.published().items()}
    with tarfile.open(fileobj=found["a.tar"]) as tar:
        assert tar.getnames() == ["x"]
    assert zipfile.ZipFile(found["a.zip"]).read("y") == b"def" * 100
    assert pickle.load(found["a.pickle"]) == {"k": bytearray(100_000)}
    assert pq.read_table(found["a.parquet"]) == table
    assert pa.ipc.open_stream(found["a.arrow"]).read_all() == table
    assert found["a.csv"].read() == "ä,1\r\n".encode()


def test_an_error_in_the_block_of_a_file_drops_it(holder: Holder) -> None:
    def write(content: bytes, error: Exception | None) -> None:
        with holder.task.open("x") as file:
            file.write(content)
            if error is not None:
                raise error

    with pytest.raises(RuntimeError, match="stop"):
        write(b"more than one part", RuntimeError("stop"))
    write(b"second", None)
    holder.task.open("never closed").write(b"complete all the same")
    assert holder.published() == {"x": b"second", "never closed": b"complete all the same"}
    assert holder.world.pending() == [] and holder.world.leftovers() == []


def test_a_closed_file_stays_whatever_comes_then(holder: Holder) -> None:
    def write() -> None:
        with holder.task.open("x") as file:
            file.write(b"whole")
            file.close()
            raise RuntimeError("later")

    with pytest.raises(RuntimeError, match="later"):
        write()
    assert holder.published() == {"x": b"whole"}


def test_a_file_outlives_its_attempt_harmlessly(holder: Holder) -> None:
    file = holder.task.open("x")
    file.write(b"more than one part")
    with holder.attempt:
        pass  # given up
    file.close()
    assert holder.world.pending() == [] and holder.world.listing() == {}


@pytest.mark.parametrize("path", ["../x", "/x", "a/../x", "_x", "a/.x", "a//b", "", "a/", "_holdfast/log/1"])
def test_a_path_stays_below_the_destination(path: str) -> None:
    with pytest.raises(InvalidRequestError):
        Holder().task.open(path)


@pytest.mark.parametrize("mode", ["w", "rb", "ab", "r+b", "wt"])
def test_files_are_binary_and_written_once(mode: str) -> None:
    with pytest.raises(InvalidRequestError, match="TextIOWrapper"):
        Holder().task.open("x", mode)


def test_a_name_is_taken_once_in_a_task() -> None:
    holder = Holder()
    assert isinstance(holder.task.open(PurePosixPath("a") / "x", "xb"), TaskFile)
    with pytest.raises(InvalidRequestError, match="already"):
        holder.task.open("a/x")
    holder.task.end()
    with pytest.raises(InvalidRequestError, match="over"):
        holder.task.open("a/y")


def test_a_task_knows_its_number_and_attempt() -> None:
    holder = Holder()
    assert (holder.task.partition, holder.task.attempt) == (7, holder.attempt.owner.attempt)
    assert holder.task.work_path == ""


# --- reports ----------------------------------------------------------------------------------------------------------
JOB = JobId("20261121093853123-a1b2c3d4e5f6")


def run(task: int, spark_task: int, attempt: int = 1) -> Run:
    return Run(task=task, spark_task=spark_task, attempt=f"{spark_task:06d}{attempt:06d}")


def report(of: Run) -> RunReport:
    return RunReport(
        run=of, commit=TaskCommit(job=JOB, task=of.task, attempt=AttemptId(of.attempt), totals=Totals(files=1))
    )


def test_the_latest_whole_run_counts() -> None:
    """Failed and killed runs leave a mark and no report; a second action leaves two of both."""
    failed, first, again, other = run(0, 1), run(0, 2), run(0, 5), run(PARTITIONS, 3)
    commits = accepted_commits([report(first), report(other), report(again)], [failed, first, again, other])
    assert {commit.task: commit.attempt for commit in commits} == {0: again.attempt, PARTITIONS: other.attempt}


def test_a_run_that_was_cut_short_does_no_harm_if_another_was_whole() -> None:
    whole, cut = run(0, 1), run(0, 9)
    assert [commit.attempt for commit in accepted_commits([report(whole)], [whole, cut])] == [whole.attempt]


def test_a_partition_without_a_whole_run_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="cut short") as caught:
        accepted_commits([report(run(0, 1))], [run(0, 1), run(PARTITIONS + 4, 2)])
    assert caught.value.variables["partition"] == 4


def test_several_runs_in_one_task_of_spark_are_refused() -> None:
    """Behind them came a coalesce: Spark calls them by one number, so one would replace the other."""
    one, two = run(0, 1, 1), run(0, 1, 2)
    for reports, begun in (([one, two], []), ([one], [one, two])):
        with pytest.raises(InvalidRequestError, match="coalesce before"):
            accepted_commits([report(each) for each in reports], begun)


def test_marks_come_and_go() -> None:
    world = World("upload")
    ctx = world.context()
    runs = [run(0, 1), run(PARTITIONS * 999, 123456)]
    for each in runs:
        mark_run(ctx, JOB, each)
    world.store.put(ctx.key(f"_holdfast/jobs/{JOB}/started/scribble"), b"")
    assert sorted(marked_runs(ctx, JOB), key=lambda each: each.task) == runs
    forget_runs(ctx, JOB)
    forget_runs(ctx, JOB)
    assert world.leftovers() == []


# --- refusals ---------------------------------------------------------------------------------------------------------
class Session:
    """Looks like a classic session to whoever does not use it."""

    _jsparkSession: Any = None


def test_spark_connect_is_refused_in_one_sentence() -> None:
    with pytest.raises(UnsupportedError, match="Spark Connect has no accumulators"):
        holdfast.job(object(), "/data/x")  # type: ignore[arg-type]  # as a session of Spark Connect lacks it


@pytest.mark.parametrize("mode", ["ignore", "upsert", ""])
def test_an_unknown_mode_is_refused(mode: str) -> None:
    with pytest.raises(InvalidRequestError, match="no such mode for a job"):
        holdfast.job(Session(), "/data/x", mode=mode)  # type: ignore[arg-type]  # never asked


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"partition_by": "k"}, "unknown option"),
        ({"compression": "zstd"}, "unknown option"),
        ({"part_sise": "8m"}, "partSize"),
        ({"committer": "magik"}, "did you mean"),
        ({"part_size": "1m"}, "not a size"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequestError, match=says):
        holdfast.job(Session(), "/data/x", **options)  # type: ignore[arg-type]  # never asked
