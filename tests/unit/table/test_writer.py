"""`TableWriter`: file limits, memory limits, what abort drops, what the attempt is told."""

from __future__ import annotations

import dataclasses
import io
import pickle
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.errors import InvalidRequestError, UnavailableError
from holdfast.formats import FORMATS, get_format
from holdfast.formats.parquet import ParquetOptions
from holdfast.table.writer import AttemptSink, TableWriter, WriteCounts, WriteSettings


class Sink:
    def __init__(self, attempt: Attempt, path: str) -> None:
        self.attempt = attempt
        self.path = path
        self.data = bytearray()

    def write(self, data: bytes | memoryview, /) -> int:
        self.attempt.step("write")
        assert self.path not in self.attempt.discarded, "a file that was dropped is left alone"
        self.data += data
        return len(data)

    def close(self) -> None:
        self.attempt.step("close")
        self.attempt.open_now -= 1
        self.attempt.files[self.path] = bytes(self.data)

    def discard(self) -> None:
        self.attempt.discarded.append(self.path)
        self.attempt.step("discard")


class Attempt:
    """A task attempt that keeps its files in a dictionary and can fail at one kind of call."""

    def __init__(self, fail_at: str = "") -> None:
        self.fail_at = fail_at
        self.files: dict[str, bytes] = {}
        self.rows: dict[str, int] = {}
        self.discarded: list[str] = []
        self.named = self.open_now = self.most_open = 0

    def step(self, name: str) -> None:
        if name == self.fail_at:
            raise UnavailableError("down: repeat later")

    def file_name(self, extension: str) -> str:
        self.named += 1
        return f"part-00000-job-attempt-{self.named:05d}{extension}"

    def open(self, path: str) -> AttemptSink:
        assert path not in self.files
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        return Sink(self, path)

    def record_rows(self, path: str, rows: int) -> None:
        assert path in self.files, "rows are recorded after the file was closed"
        self.rows[path] = rows

    def table(self, path: str) -> pa.Table:
        return pq.read_table(io.BytesIO(self.files[path]), use_threads=False, pre_buffer=False, partitioning=None)


def settings(**changes: Any) -> WriteSettings:
    return dataclasses.replace(WriteSettings(file_format=get_format("parquet")), **changes)


def numbers(start: int, rows: int, groups: int = 3) -> pa.RecordBatch:
    ids = range(start, start + rows)
    return pa.record_batch(
        {"id": pa.array(ids, pa.int64()), "k": pa.array([f"g{i % groups}" for i in ids], pa.string())}
    )


def write(batches: list[pa.RecordBatch], attempt: Attempt, **changes: Any) -> WriteCounts:
    writer = TableWriter(batches[0].schema, settings(**changes), attempt)
    for batch in batches:
        writer.write(batch)
    return writer.close()


def test_unpartitioned_rows_go_to_one_file() -> None:
    attempt = Attempt()
    counts = write([numbers(0, 10), numbers(10, 0), numbers(10, 5)], attempt)
    [(path, data)] = attempt.files.items()
    assert path == "part-00000-job-attempt-00001.snappy.parquet"
    assert counts == WriteCounts(1, 15, len(data))
    assert attempt.rows == {path: 15}
    assert attempt.table(path)["id"].to_pylist() == list(range(15))


@pytest.mark.parametrize("most", [1, 4, 5, 7, 100])
def test_max_records_per_file_is_exact(most: int) -> None:
    attempt = Attempt()
    counts = write([numbers(0, 12), numbers(12, 8)], attempt, max_records_per_file=most)
    full, rest = divmod(20, most)
    assert list(attempt.rows.values()) == [most] * full + [rest] * (rest > 0)
    assert counts.rows == 20
    assert [row for path in attempt.files for row in attempt.table(path)["id"].to_pylist()] == list(range(20))


def test_partitioned_rows_keep_their_order_and_lose_the_partition_columns() -> None:
    attempt = Attempt()
    write([numbers(0, 10), numbers(10, 10)], attempt, partition_by=("K",))
    assert sorted(path.rpartition("/")[0] for path in attempt.files) == ["k=g0", "k=g1", "k=g2"]
    for path in attempt.files:
        group = int(path[3])
        assert attempt.table(path).to_pydict() == {"id": [i for i in range(20) if i % 3 == group]}


def test_the_number_of_open_files_is_bounded() -> None:
    """Partitions of 10 MB each, in turns: all would be open at once."""
    attempt = Attempt()
    rows = 1_250_000
    batch = pa.record_batch(
        {"x": pa.repeat(pa.scalar(1, pa.int64()), rows), "k": pa.array([i % 5 for i in range(rows)])}
    )
    counts = write([batch] * 5, attempt, partition_by=("k",), max_open_files=2)
    assert attempt.most_open == 2
    assert counts.rows == sum(attempt.rows.values()) == 5 * rows


def test_many_small_partitions_make_one_file_each() -> None:
    """More partitions than open files, with a few rows of each in every batch."""
    attempt = Attempt()
    batches = [numbers(200 * i, 200, groups=100) for i in range(30)]
    counts = write(batches, attempt, partition_by=("k",), max_open_files=4)
    assert attempt.most_open == 1
    assert counts.files == 100
    found = sorted(row for path in attempt.files for row in attempt.table(path)["id"].to_pylist())
    assert found == list(range(6000))


def test_waiting_rows_are_bounded_and_the_largest_file_ends_first() -> None:
    attempt = Attempt()
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    writer = TableWriter(schema, settings(partition_by=("k",), buffer_bytes=8 * 100), attempt)

    def add(key: str, rows: int) -> None:
        writer.write(pa.record_batch([pa.array(range(rows), pa.int64()), pa.array([key] * rows)], schema=schema))

    add("small", 40)
    add("large", 60)
    assert attempt.files == {}  # 800 bytes: just within the limit
    add("small", 10)
    assert list(attempt.rows.values()) == [60]
    add("large", 5)  # a later row of that partition starts a new file
    assert writer.close() == WriteCounts(3, 115, sum(map(len, attempt.files.values())))
    assert sorted(path.rpartition("/")[0] for path in attempt.files) == ["k=large", "k=large", "k=small"]


def test_target_file_size_is_about_right() -> None:
    attempt = Attempt()
    noise = [number * 0x9E3779B97F4A7C15 % 2**63 for number in range(100_000)]
    batches = [pa.record_batch({"x": pa.array(noise[start : start + 1000])}) for start in range(0, 100_000, 1000)]
    write(batches, attempt, target_file_size_bytes=100_000, format_options=ParquetOptions(compression="none"))
    sizes = [len(data) for data in attempt.files.values()]
    assert 6 <= len(sizes) <= 12  # 800,000 bytes of longs
    assert all(50_000 < size < 150_000 for size in sizes[:-1])
    assert sum(attempt.rows.values()) == 100_000


def test_no_rows_no_file_unless_the_schema_is_to_be_kept() -> None:
    """An empty DataFrame still has a schema: Spark writes one file for it."""
    attempt = Attempt()
    assert write([numbers(0, 0)], attempt) == WriteCounts(0, 0, 0)
    assert attempt.files == {}
    counts = write([numbers(0, 0)], attempt, write_empty_file=True, partition_by=("k",))
    assert (counts.files, counts.rows) == (1, 0)
    [path] = attempt.files
    assert "/" not in path
    assert attempt.table(path).schema.names == ["id"]
    attempt = Attempt()
    write([numbers(0, 1)], attempt, write_empty_file=True)
    assert list(attempt.rows.values()) == [1]


def test_abort_drops_what_is_open() -> None:
    attempt = Attempt()
    writer = TableWriter(numbers(0, 0).schema, settings(partition_by=("k",), buffer_bytes=2000), attempt)
    writer.write(numbers(0, 100))
    writer.abort()
    writer.abort()
    del writer  # collects pyarrow's writers, which then send their footers
    assert len(attempt.discarded) == 3
    assert attempt.files == {}


def test_abort_tries_every_file_and_then_tells() -> None:
    attempt = Attempt(fail_at="discard")
    writer = TableWriter(numbers(0, 0).schema, settings(partition_by=("k",), buffer_bytes=2000), attempt)
    writer.write(numbers(0, 100))
    with pytest.raises(UnavailableError):
        writer.abort()
    assert len(attempt.discarded) == 3


@pytest.mark.parametrize("fail_at", ["write", "close"])
def test_a_file_that_fails_to_end_is_dropped_by_abort(fail_at: str) -> None:
    attempt = Attempt(fail_at=fail_at)
    writer = TableWriter(numbers(0, 0).schema, settings(), attempt)
    writer.write(numbers(0, 10))
    with pytest.raises(UnavailableError, match="down: repeat later"):
        writer.close()
    writer.abort()
    assert len(attempt.discarded) == 1
    assert attempt.rows == {}


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_through_the_table(name: str) -> None:
    attempt = Attempt()
    batch = pa.record_batch({"value": pa.array(["a", "b", ""]), "k": pa.array([1, 1, 2])})
    counts = write([batch], attempt, file_format=get_format(name), partition_by=("k",), max_records_per_file=1)
    assert counts == WriteCounts(3, 3, sum(map(len, attempt.files.values())))
    assert all(path.endswith(get_format(name).extension(get_format(name).default_options)) for path in attempt.files)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"partition_by": ("nope",)}, "no such column to partition by"),
        ({"partition_by": ("id", "k")}, "leaves no data"),
        ({"file_format": get_format("text")}, "one string column"),
        ({"file_format": get_format("text"), "partition_by": ("k",)}, "text does not support this type"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_opened(changes: dict[str, Any], sentence: str) -> None:
    attempt = Attempt()
    with pytest.raises(InvalidRequestError, match=sentence):
        TableWriter(numbers(0, 0).schema, settings(**changes), attempt)
    assert attempt.named == 0


def test_a_batch_of_another_schema_is_refused() -> None:
    writer = TableWriter(numbers(0, 0).schema, settings(), Attempt())
    with pytest.raises(InvalidRequestError, match="different columns"):
        writer.write(pa.record_batch({"other": pa.array([1])}))


def test_settings_survive_pickling() -> None:
    """Spark carries them to the tasks."""
    one = settings(partition_by=("k",), format_options=ParquetOptions(compression="zstd"))
    assert pickle.loads(pickle.dumps(one)) == one
