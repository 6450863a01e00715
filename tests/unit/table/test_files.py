"""`StoreFile`: an object as a file, in few requests."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.commit import open_context, read_snapshot
from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError, PreconditionError, UnavailableError
from holdfast.formats import get_format
from holdfast.stores.base import iter_objects
from holdfast.stores.local.store import LocalStore
from holdfast.stores.memory import MemoryStore, memory_store
from holdfast.table.files import StoreFile, file_opener
from holdfast.table.reader import ReadSettings, plan_splits, read_schema, read_split


class CountingStore(MemoryStore):
    """Notes the ranges that were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.ranges: list[tuple[int, int | None]] = []

    def get(self, key: str, start: int = 0, length: int | None = None, etag: str = "") -> bytes:
        self.ranges.append((start, length))
        return super().get(key, start, length, etag)


def stored(data: bytes, read_ahead_bytes: int = 16) -> tuple[CountingStore, StoreFile]:
    store = CountingStore()
    return store, StoreFile(store, "k", len(data), store.put("k", data).etag, read_ahead_bytes)


def test_it_is_the_same_as_a_file_in_memory() -> None:
    data = bytes(range(100))
    for read_ahead in (1, 16, 1000):
        _, file = stored(data, read_ahead)
        model = io.BytesIO(data)
        for offset, size in itertools.product((0, 3, 50, 99, 100, 150), (0, 1, 10, 60, 200, -1)):
            assert file.seek(offset) == model.seek(offset)
            assert file.read(size) == model.read(size), (offset, size)
            assert file.tell() == model.tell()
        assert file.seek(-5, io.SEEK_END) == 95
        assert file.seek(2, io.SEEK_CUR) == 97
        assert file.readall() == data[97:]
        buffer = bytearray(4)
        file.seek(0)
        assert file.readinto(memoryview(buffer)) == 4
        assert buffer == data[:4]


def test_small_reads_share_a_request_and_large_ones_are_exact() -> None:
    store, file = stored(bytes(100))
    for _ in range(8):
        file.read(2)
    assert store.ranges == [(0, 16)]
    file.read(50)
    assert store.ranges[1:] == [(16, 50)]
    file.seek(-4, io.SEEK_END)
    file.read(4)
    assert store.ranges[2:] == [(96, 4)]
    file.read(10)
    assert len(store.ranges) == 3  # at the end there is nothing to ask for


def test_a_read_after_one_that_failed_returns_the_right_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect: the bytes at hand were taken for those at the place of the read that failed."""
    data = bytes(range(100))
    store, file = stored(data)
    assert file.read(4) == data[:4]

    def fail(*args: object) -> bytes:
        raise UnavailableError("no answer")

    file.seek(60)
    with monkeypatch.context() as patched:
        patched.setattr(store, "get", fail)
        with pytest.raises(UnavailableError):
            file.read(4)
    file.seek(60)
    assert file.read(4) == data[60:64]
    file.seek(2)
    assert file.read(4) == data[2:6]


def test_a_shorter_object_is_an_error() -> None:
    store = MemoryStore()
    store.put("k", bytes(10))
    file = StoreFile(store, "k", 100, read_ahead_bytes=16)
    with pytest.raises(CorruptDataError, match="shorter than the listing"):
        file.read(50)


def test_an_object_that_is_gone_is_an_error() -> None:
    store, file = stored(bytes(100))
    store.delete("k")
    with pytest.raises(NotFoundError):
        file.read(1)


def test_seeking_before_the_start_is_refused() -> None:
    _, file = stored(b"abc")
    with pytest.raises(InvalidRequestError):
        file.seek(-1)


def test_pyarrow_reads_through_it() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": list(range(100_000)), "y": ["same"] * 100_000}), sink, row_group_size=20_000)
    _, file = stored(sink.getvalue().to_pybytes(), 4096)
    found = pq.ParquetFile(file, pre_buffer=False).read(["x"], use_threads=False)
    assert found["x"].to_pylist() == list(range(100_000))
    assert not file.closed


@pytest.mark.parametrize("make", [MemoryStore, None])
def test_ranges_of_a_replaced_object_do_not_mix(make: type[MemoryStore] | None, tmp_path: Path) -> None:
    """Of the same size, so that nothing else tells them apart."""
    store = make() if make is not None else LocalStore(str(tmp_path))
    store.put("k", b"a" * 100)
    [listed] = iter_objects(store, "")
    file = StoreFile(store, "k", listed.size_bytes, listed.etag, 10)
    assert file.read(50) == b"a" * 50
    store.put("k", b"b" * 100)
    with pytest.raises(PreconditionError, match="replaced while it was read: list again"):
        file.read(50)


def test_a_linked_file_and_one_that_another_machine_numbers_anew_are_read(tmp_path: Path) -> None:
    """A mounted object store gives a file other inode numbers on another machine: tasks see what the driver listed."""
    (tmp_path / "data").write_bytes(b"x" * 100)
    (tmp_path / "t").mkdir()
    (tmp_path / "t/link").symlink_to(tmp_path / "data")
    (tmp_path / "t/file").write_bytes(b"y" * 100)
    store = LocalStore(str(tmp_path))
    for listed in iter_objects(store, "t/"):
        time, _, size = listed.etag.split("-")
        for etag in (listed.etag, f"{time}-12345-{size}"):
            assert len(StoreFile(store, listed.key, 100, etag, 10).read(50)) == 50


def test_a_table_whose_file_is_replaced_is_not_read_half_and_half() -> None:
    """By a tool that uses a name twice, as `spark.write.mode("overwrite")` of other committers does."""
    store = memory_store("replaced-meanwhile")

    def parquet(value: int) -> bytes:
        sink = io.BytesIO()
        table = pa.table({"x": pa.array([value] * 300_000, pa.int64())})
        pq.write_table(table, sink, row_group_size=100_000, use_dictionary=False, compression="none")
        return sink.getvalue()

    old, new = parquet(1), parquet(2)
    assert len(old) == len(new)
    store.put("t/part-0.parquet", old)
    ctx = open_context("memory://replaced-meanwhile/t")
    settings = ReadSettings(file_format=get_format("parquet"), split_bytes=1024 * 1024)
    files = read_snapshot(ctx).files
    schema = read_schema(files, file_opener(ctx), settings)
    splits = plan_splits(files, file_opener(ctx), schema, settings)
    assert len(splits) == 2
    assert sum(batch.num_rows for batch in read_split(splits[0], file_opener(ctx), schema, settings, ["x"])) == 200_000
    store.put("t/part-0.parquet", new)
    with pytest.raises(PreconditionError, match="list again"):
        list(read_split(splits[1], file_opener(ctx), schema, settings, ["x"]))
