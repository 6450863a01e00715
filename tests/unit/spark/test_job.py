"""`holdfast.job` without Spark: the files that tasks write, which reports count, and what is refused."""

from __future__ import annotations

import contextlib
import csv
import io
import pickle
import tarfile
import zipfile
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark.sql")

from pathlib import Path

import pytest

import holdfast
from holdfast.commit import TWO_PHASE, SaveMode, TaskAttempt
from holdfast.errors import InvalidRequestError, UnavailableError
from holdfast.options.write import parse_job_options
from holdfast.spark.job import Job
from holdfast.spark.task import Task, TaskFile
from holdfast.stores.interceptors import InterceptedStore, StoreOperation
from tests.interceptors import Fault, FaultMode, Faulty
from tests.simulation.world import PUBLICATIONS, World, start
from tests.unit.spark.test_reader import commit_table

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own imports warn; the subject here is ours


class Holder:
    """A job of one task in a simulated world."""

    def __init__(self, publication: str = "upload") -> None:
        self.world = World(publication)
        self.ctx = self.world.context()
        self.job = start(self.ctx)
        self.attempt: TaskAttempt = TWO_PHASE.setup_task(self.ctx, self.job, 0)
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
        with pytest.raises(TypeError, match=r"take bytes: encode the text, or open the file with mode 'w'"):
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


@pytest.mark.parametrize("mode", ["r", "rb", "a", "ab", "r+b", "w+"])
def test_files_are_written_once(mode: str) -> None:
    with pytest.raises(InvalidRequestError, match="written once, from start to end"):
        Holder().task.open("x", mode)


@pytest.mark.parametrize("mode", ["w", "wt", "x", "xt"])
def test_a_text_file(mode: str, holder: Holder) -> None:
    with holder.task.open("a.csv", mode, newline="") as file:
        csv.writer(file).writerows([["ä", 1]])
    with holder.task.open("b.txt", mode, encoding="latin-1", errors="replace", newline="\r\n") as file:
        file.write("ä€\n")  # type: ignore[arg-type]  # the mode tells the type
    assert holder.published() == {"a.csv": "ä,1\r\n".encode(), "b.txt": b"\xe4?\r\n"}


def write_half(task: Task, how: str) -> None:
    """Write part of a text and fail."""
    if how == "mode w":
        with task.open("x", "w") as file:
            file.write("half")
            raise RuntimeError("stop")
    with task.open("x") as raw, io.TextIOWrapper(raw) as text:
        text.write("half")
        raise RuntimeError("stop")


def test_an_error_in_the_block_of_a_text_file_drops_it(holder: Holder) -> None:
    """Defect: the documented way, io.TextIOWrapper, published the half file if the caller went on."""
    with pytest.raises(RuntimeError, match="stop"):
        write_half(holder.task, "mode w")
    assert holder.published() == {}


def test_a_wrapper_that_closes_the_file_on_an_error_fails_the_attempt(holder: Holder) -> None:
    with pytest.raises(RuntimeError, match="stop"):
        write_half(holder.task, "wrapped")
    with pytest.raises(InvalidRequestError, match=r"open text files with task.open\(path, 'w'\)"):
        holder.attempt.commit()
    holder.attempt.abort()
    assert holder.world.pending() == []


def test_a_file_whose_write_failed_never_counts() -> None:
    """Also if the caller ignores the error and closes the file."""
    holder = Holder()
    faulty = Faulty(Fault(FaultMode.FAIL, StoreOperation.CREATE_UPLOAD))
    attempt = TWO_PHASE.setup_task(
        holder.world.context(store=InterceptedStore(holder.world.store, faulty)), holder.job, 0
    )
    file = Task(attempt, 0).open("x")
    with contextlib.suppress(UnavailableError):
        file.write(b"more than one part")
    with pytest.raises(InvalidRequestError, match="an earlier write to this file failed"):
        file.close()
    assert attempt.commit().totals.files == 0


def test_a_name_is_taken_once_in_a_task() -> None:
    holder = Holder()
    assert isinstance(holder.task.open(PurePosixPath("a") / "x", "xb"), TaskFile)
    with pytest.raises(InvalidRequestError, match="already"):
        holder.task.open("a/x")
    holder.task.end()
    with pytest.raises(InvalidRequestError, match="has ended"):
        holder.task.open("a/y")


def test_a_task_knows_its_number_and_attempt() -> None:
    holder = Holder()
    assert (holder.task.partition, holder.task.attempt) == (7, holder.attempt.owner.attempt)


# --- libraries that take a filesystem ---------------------------------------------------------------------------------
def test_a_library_writes_through_the_filesystem_of_a_task(holder: Holder) -> None:
    table, fs = pa.table({"day": [1, 1, 2], "n": [10, 11, 12]}), holder.task.filesystem
    assert fs is holder.task.filesystem
    table.to_pandas().to_parquet("sub dir/frame.parquet", filesystem=fs)
    pq.write_table(table, "table.parquet", filesystem=fs)
    flavor = {"partitioning": ["day"], "partitioning_flavor": "hive", "format": "parquet"}
    ds.write_dataset(table, "set", filesystem=fs, **flavor)
    with fs.open("a.txt", "w", encoding="utf-8") as text:
        text.write("größe")
    with contextlib.suppress(ZeroDivisionError), fs.open("lost", "wb") as file:
        file.write(b"%d" % (1 // 0))
    assert fs.ls("", detail=False) == ["sub dir", "table.parquet", "set", "a.txt"]
    assert fs.info("a.txt") == {"name": "a.txt", "size": 7, "type": "file"}
    assert fs.isdir("set/day=1") and not fs.exists("lost") and not fs.exists("se")
    found = holder.published()
    names = ["a.txt", "set/day=1/part-0.parquet", "set/day=2/part-0.parquet", "sub dir/frame.parquet", "table.parquet"]
    assert sorted(found) == names and found["a.txt"] == "größe".encode()
    assert pq.read_table(pa.BufferReader(found["table.parquet"])).equals(table)


def test_the_filesystem_of_a_task_writes_whole_files_only() -> None:
    fs = Holder().task.filesystem
    for mode in ("ab", "r+b", "rb"):
        with pytest.raises(InvalidRequestError, match="written once"):
            fs.open("a", mode)
    with pytest.raises(InvalidRequestError, match="below its destination"):
        fs.open("../a", "wb")


# --- refusals ---------------------------------------------------------------------------------------------------------
class Session:
    """Looks like a classic session to whoever does not use it."""

    _jsparkSession: Any = None
    conf: Any = None


@pytest.mark.parametrize("mode", ["ignore", "upsert", ""])
def test_an_unknown_mode_is_refused(mode: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"no such mode|a job has no mode ignore"):
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


def enter(url: Path, committer: str, mode: SaveMode) -> None:
    """Enter a job, and abort it at once."""
    job = Job(parse_job_options({"path": str(url), "committer": committer}), mode)
    with pytest.raises(KeyError), job:
        raise KeyError


@pytest.mark.parametrize(
    ("committer", "mode", "may_replace"),
    [
        ("two_phase", SaveMode.OVERWRITE, True),
        ("two_phase", SaveMode.APPEND, False),
        ("two_phase", SaveMode.OVERWRITE_PARTITIONS, False),
        ("manifest", SaveMode.OVERWRITE, False),
        ("file-v1", SaveMode.OVERWRITE, False),
    ],
)
def test_only_a_committer_with_a_log_replaces_a_table(
    tmp_path: Path, committer: str, mode: SaveMode, may_replace: bool
) -> None:
    """The log would go on to describe the table that is gone; these committers delete before the first task."""
    commit_table(tmp_path, "csv", b"1,x\n")
    before = sorted(tmp_path.glob("part-*"))
    if may_replace:
        enter(tmp_path, committer, mode)
    else:
        with pytest.raises(InvalidRequestError, match="contains a table"):
            enter(tmp_path, committer, mode)
    assert sorted(tmp_path.glob("part-*")) == before != []


@pytest.mark.parametrize("error", [InvalidRequestError("no"), KeyboardInterrupt()])
def test_a_job_whose_commit_fails_is_aborted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """Otherwise every later job and reader meets an undecided job until somebody runs holdfast recover."""

    def fail(*_arguments: object, **_options: object) -> Any:
        raise error

    job = Job(parse_job_options({"path": str(tmp_path)}), SaveMode.APPEND)
    monkeypatch.setattr(job, "_runs", 1)
    monkeypatch.setattr(type(TWO_PHASE), "commit_job", fail)
    with pytest.raises(type(error)), job:
        assert list(tmp_path.glob("_holdfast/jobs/*/job.json")) != []
    assert list(tmp_path.glob("_holdfast/jobs/*/job.json")) == []
