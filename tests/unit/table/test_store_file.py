"""`StoreFile`: an object as a file, in few requests."""

from __future__ import annotations

import io
import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.errors import CorruptDataError, InvalidRequestError, NotFoundError
from holdfast.stores.memory import MemoryStore
from holdfast.table import StoreFile


class CountingStore(MemoryStore):
    """Notes the ranges that were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.ranges: list[tuple[int, int | None]] = []

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        self.ranges.append((start, length))
        return super().get(key, start, length)


def stored(data: bytes, read_ahead_bytes: int = 16) -> tuple[CountingStore, StoreFile]:
    store = CountingStore()
    store.put("k", data)
    return store, StoreFile(store, "k", len(data), read_ahead_bytes)


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


def test_a_shorter_object_is_an_error() -> None:
    store, file = stored(bytes(100))
    store.put("k", bytes(10))
    with pytest.raises(CorruptDataError, match="shorter than its listing"):
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
