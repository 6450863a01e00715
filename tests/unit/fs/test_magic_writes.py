"""Programs that know nothing of commits write below a magic path; a task and a job commit publish their files."""

from __future__ import annotations

from typing import Any

import pandas
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from holdfast.fs import MagicFileSystem
from tests.unit.fs.magic_job import MagicJob

TABLE = pa.table({"day": [1, 1, 2], "n": [10, 11, 12]})


def test_a_plain_file() -> None:
    """Scenarios 1, 37 and 38: pending until the job commits; an empty file at the path itself."""
    job = MagicJob()
    path = f"{job.work}/sub dir/0001.tar"
    with job.fs.open(path, "wb") as file:
        file.write(b"12345")
        assert file.tell() == 5 and not job.fs.exists(path)
    assert job.visible() == {} and job.uploads() == ["out put/table/sub dir/0001.tar"]
    info = job.fs.info(path)
    assert (info["size"], info["type"]) == (0, "file")
    assert info["metadata"] == {"x-hadoop-s3a-magic-data-length": "5"}
    assert job.fs.cat_file(path) == b""
    outcome = job.finish()
    assert outcome.totals.files == 1 and outcome.totals.size_bytes == 5
    assert job.visible() == {"sub dir/0001.tar": b"12345"} and job.hidden() == [] and job.uploads() == []


def test_large_files_go_up_in_parts() -> None:
    job = MagicJob()
    fs = MagicFileSystem.over(job.ctx)
    data = bytes(range(256)) * (70_000)
    with fs.open(f"{job.work}/large", "wb") as file:
        for start in range(0, len(data), 1_000_003):
            file.write(memoryview(data)[start : start + 1_000_003])
    job.finish()
    assert job.visible() == {"large": data}


def test_pandas() -> None:
    job = MagicJob()
    frame = TABLE.to_pandas()
    frame.to_parquet(f"{job.work}/frame.parquet", filesystem=job.fs)
    assert job.visible() == {} and len(job.uploads()) == 1
    job.finish()
    assert list(job.visible()) == ["frame.parquet"]
    found = pandas.read_parquet(f"{job.ctx.url}/frame.parquet", filesystem=job.fs)
    pandas.testing.assert_frame_equal(found, frame)


def test_pyarrow_table() -> None:
    job = MagicJob()
    pq.write_table(TABLE, job.fs._strip_protocol(f"{job.work}/day=1/table.parquet"), filesystem=job.fs)
    assert job.visible() == {}
    job.finish()
    assert list(job.visible()) == ["day=1/table.parquet"]
    path = job.fs._strip_protocol(f"{job.ctx.url}/day=1/table.parquet")
    assert pq.ParquetFile(path, filesystem=job.fs).read().equals(TABLE)


def test_pyarrow_dataset() -> None:
    job = MagicJob()
    base = job.fs._strip_protocol(job.work)
    ds.write_dataset(TABLE, base, filesystem=job.fs, format="parquet", partitioning=["day"], partitioning_flavor="hive")
    assert job.visible() == {}
    job.finish()
    assert sorted(job.visible()) == ["day=1/part-0.parquet", "day=2/part-0.parquet"]
    found = ds.dataset(job.fs._strip_protocol(job.ctx.url), filesystem=job.fs, partitioning="hive", format="parquet")
    assert found.to_table().sort_by("n").select(["day", "n"]).to_pydict() == TABLE.to_pydict()


def test_text() -> None:
    job = MagicJob()
    with job.fs.open(f"{job.work}/a.txt", "w", encoding="utf-8") as file:
        file.write("größe\n")
    job.finish()
    assert job.visible() == {"a.txt": "größe\n".encode()}
    with job.fs.open(f"{job.ctx.url}/a.txt", "r", encoding="utf-8") as file:
        assert file.read() == "größe\n"


@pytest.mark.parametrize("mode", ["wb", "w"])
@pytest.mark.parametrize("size", [3, 9_000_000])
def test_an_error_discards_the_file(mode: str, size: int) -> None:
    job = MagicJob()
    data = "x" * size if mode == "w" else b"x" * size
    file = job.fs.open(f"{job.work}/a", mode)
    with pytest.raises(RuntimeError, match="in the middle"), file:
        write_and_fail(file, data)
    assert job.uploads() == [] and job.hidden() == []
    assert file.closed
    job.finish()
    assert job.visible() == {}


def write_and_fail(file: Any, data: str | bytes) -> None:
    file.write(data)
    raise RuntimeError("in the middle")


def test_a_file_that_is_never_closed_does_not_count() -> None:
    job = MagicJob()
    file = job.fs.open(f"{job.work}/a", "wb")
    file.write(b"x" * 9_000_000)
    assert len(job.uploads()) == 1
    del file
    assert job.uploads() == [] and job.hidden() == []


def test_deleting_a_file_aborts_its_upload() -> None:
    job = MagicJob()
    for name in ("a", "b", "sub/c", "sub/d"):
        job.fs.pipe_file(f"{job.work}/{name}", name.encode())
    assert job.fs.find(job.work) == sorted(
        job.fs._strip_protocol(f"{job.work}/{name}{ending}")
        for name in ("a", "b", "sub/c", "sub/d")
        for ending in ("", ".pending")
    )
    job.fs.rm(f"{job.work}/a")
    job.fs.rm(f"{job.work}/sub", recursive=True)
    assert job.uploads() == ["out put/table/b"] and len(job.hidden()) == 2
    job.finish()
    assert job.visible() == {"b": b"b"}


def test_a_file_that_is_written_again() -> None:
    """Paper 001, "Limitations": the later record counts; only its age reveals the earlier upload."""
    job = MagicJob()
    for content in (b"first", b"second"):
        job.fs.pipe_file(f"{job.work}/a", content)
    job.finish()
    assert job.visible() == {"a": b"second"} and job.uploads() == ["out put/table/a"]


def test_a_failed_attempt_discards_its_files() -> None:
    job = MagicJob()
    with job.attempt:
        job.fs.pipe_file(f"{job.work}/a", b"a")
        assert len(job.uploads()) == 1  # and no commit
    assert job.uploads() == [] and job.hidden() == []


def test_files_of_the_attempt_and_of_the_filesystem_together() -> None:
    """The commit counts every file that it lists, whoever wrote it; it knows the rows of some."""
    job = MagicJob()
    sink = job.attempt.open("own.txt")
    sink.write(b"own")
    sink.close()
    job.attempt.record_rows("own.txt", 7)
    job.fs.pipe_file(f"{job.work}/other.txt", b"other")
    outcome = job.finish()
    assert job.visible() == {"own.txt": b"own", "other.txt": b"other"}
    assert (outcome.totals.files, outcome.totals.size_bytes, outcome.totals.rows) == (2, 8, 7)
